#!/usr/bin/env python3
"""A real browser (headless Chromium) takes the firewall's challenge: it finds the proof, keeps the pass,
loads the page again and is let through. Once with plain HTTP, where scripts have no hashes of the
browser's, and once over TLS. CHALLENGE_SHOT=FILE keeps a picture of the page."""

import base64
import hashlib
import http.server
import os
import queue
import signal
import subprocess
import threading

import rig

PAGE = b"""<!doctype html><title>in</title><script>
fetch("/report?" + encodeURIComponent(document.cookie));
</script>"""

RULES = """
SecRule ARGS:odd "@ge 1" "id:1,phase:2,pass,nolog,setvar:tx.blocking_inbound_anomaly_score=%{ARGS.odd}"
"""

CONFIGURATION = """
[process]
workers = 1

[admin]
listen = "off"

[[listen]]
address = "127.0.0.1:{plain}"

[[listen]]
address = "127.0.0.1:{secure}"
  [listen.tls]
  certificates = [{{ chain = "{directory}/chain.pem", key = "{directory}/key.pem" }}]

[waf]
mode = "block"
builtin = false
rules = ["{directory}/rules.conf"]

[[site]]
host = "*"
upstream = "{origin}"
waf = {{ challenge_from = 3 }}

# Work for minutes: its page stands still for a picture.
[[site]]
host = "127.0.0.1"
upstream = "{origin}"
waf = {{ challenge_from = 3, challenge_bits = 24 }}
"""


class Origin(http.server.BaseHTTPRequestHandler):
    """A page that reports the cookies it sees."""

    reports = queue.Queue()

    def do_GET(self):
        if self.path.startswith("/report"):
            self.reports.put(self.path)
        body = PAGE if self.path.startswith("/page") else b""
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def chromium(check, name, *arguments):
    """A Chromium that trusts the test certificate by the hash of its key; its own session, to end it whole."""
    public = ["openssl", "x509", "-in", str(check.directory / "leaf.pem"), "-pubkey", "-noout"]
    pem = subprocess.run(public, capture_output=True, check=True, text=True).stdout
    key = base64.b64decode("".join(line for line in pem.splitlines() if "-----" not in line))
    pin = base64.b64encode(hashlib.sha256(key).digest()).decode()
    command = [
        rig.tool("chromium"), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
        "--no-proxy-server", "--disable-background-networking", "--disable-component-update", "--no-first-run",
        f"--user-data-dir={check.directory}/{name}", f"--ignore-certificate-errors-spki-list={pin}",
        "--host-resolver-rules=MAP gate.example 127.0.0.1", "--window-size=900,600", *arguments,
    ]
    log = (check.directory / f"{name}.log").open("wb")
    environment = os.environ | {"HOME": str(check.directory)}
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment,
                            start_new_session=True)


def end(process):
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def main():
    rig.tool("chromium")
    check = rig.Rig()
    check.certificates()
    server = rig.QuietServer(("127.0.0.1", 0), Origin)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    plain, secure = rig.free_port(), rig.free_port()
    (check.directory / "rules.conf").write_text(RULES)
    file = check.directory / "tidegate.toml"
    file.write_text(CONFIGURATION.format(
        plain=plain, secure=secure, directory=check.directory, origin=f"127.0.0.1:{server.server_port}"))
    check.start([check.binary, "serve", file], "tidegate", plain)

    # With plain HTTP, gate.example is no secure context: scripts have no WebCrypto there.
    for name, url in (("plain", f"http://gate.example:{plain}"), ("tls", f"https://localhost:{secure}")):
        process = chromium(check, name, "--remote-debugging-port=0", f"{url}/page?odd=3")
        try:
            report = Origin.reports.get(timeout=120)
        except queue.Empty:
            report = ""
        end(process)
        log = (check.directory / f"{name}.log").read_text(errors="replace")
        check.check(f"{name}: the browser gets to the page, with a pass", "tidegate_pass" in report, report or log)

    if shot := os.environ.get("CHALLENGE_SHOT"):
        process = chromium(check, "shot", f"--screenshot={shot}", f"http://127.0.0.1:{plain}/page?odd=3")
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            end(process)
    check.finish()


main()
