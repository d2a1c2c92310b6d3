"""What every check shares: the gate as a process, an origin, certificates, results.

A check is a script `check_NAME.py`: it takes the gate's binary from TIDEGATE_BIN, makes its own
directory, ports, certificates and configuration, and exits with 0 (held), 1 (failed) or 77 (skipped,
with the reason on the last line).
"""

import atexit
import contextlib
import http.server
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

SKIPPED = 77
CACHE = pathlib.Path(
    os.environ.get("TIDEGATE_CONFORMANCE_CACHE")
    or pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    / "tidegate-conformance"
)


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def tool(name):
    """The path of an installed program, or the end of the check."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin") or skip(f"{name} is not installed")


def in_venv():
    """Runs the calling script again in a virtual environment that holds requirements.txt."""
    requirements = pathlib.Path(__file__).with_name("requirements.txt")
    directory = CACHE / "venv"
    python = directory / "bin" / "python"
    if pathlib.Path(sys.prefix) == directory:
        return
    stamp = directory / "requirements.txt"
    if not stamp.exists() or stamp.read_text() != requirements.read_text():
        try:
            subprocess.run([sys.executable, "-m", "venv", "--clear", directory], check=True, capture_output=True)
            install = [python, "-m", "pip", "install", "--quiet", "--requirement", requirements]
            subprocess.run(install, check=True, capture_output=True, timeout=300)
        except (subprocess.SubprocessError, OSError) as error:
            skip(f"the packages of requirements.txt cannot be installed ({error})")
        stamp.write_text(requirements.read_text())
    os.execv(python, [str(python), *sys.argv])


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(port, process=None, seconds=60):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return True
        if process and process.poll() is not None:
            return False
        time.sleep(0.05)
    return False


class Rig:
    """One check: its directory, its gate, what holds and what does not."""

    def __init__(self):
        self.binary = os.environ.get("TIDEGATE_BIN") or skip("TIDEGATE_BIN does not name the gate's binary")
        if not os.access(self.binary, os.X_OK):
            skip(f"{self.binary} is no program")
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="tidegate-check-"))
        self.failed = []
        self.held = 0
        self.processes = []
        atexit.register(self.stop)

    def check(self, name, holds, detail=""):
        """Counts one result and shows it if it is a failure."""
        if holds:
            self.held += 1
        else:
            self.failed.append(name)
            print(f"FAILED {name}\n    {str(detail).strip()[:2000]}")

    def finish(self):
        """Stops what runs, judges the gate's own end and leaves."""
        for process, name, log in reversed(self.processes):
            if name == "tidegate":
                self.check("the gate still runs", process.poll() is None, log.read_text()[-2000:])
                self.check("the gate did not panic", "panicked" not in log.read_text(), log.read_text()[-2000:])
        self.stop()
        print(f"{self.held} held, {len(self.failed)} failed")
        sys.exit(1 if self.failed else 0)

    def stop(self):
        """Ends every process of the check and removes its directory."""
        while self.processes:
            process = self.processes.pop()[0]
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def start(self, command, name, port):
        """Starts a server and waits until it listens."""
        log = self.directory / f"{name}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [str(part) for part in command], stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
        self.processes.append((process, name, log))
        if not wait_for(port, process):
            self.check(f"{name} starts", False, log.read_text()[-2000:])
            self.finish()
        return process

    def certificates(self):
        """A test CA (ca.pem) and a certificate for localhost (chain.pem, key.pem)."""
        openssl = tool("openssl")
        def run(*arguments):
            subprocess.run([openssl, *arguments], cwd=self.directory, check=True, capture_output=True)
        curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        run("req", "-x509", *curve, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2",
            "-subj", "/CN=Tidegate test CA")
        run("req", *curve, "-keyout", "key.pem", "-out", "request.pem", "-subj", "/CN=localhost")
        (self.directory / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        run("x509", "-req", "-in", "request.pem", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
            "-out", "leaf.pem", "-days", "2", "-extfile", "names")
        chain = (self.directory / "leaf.pem").read_text() + (self.directory / "ca.pem").read_text()
        (self.directory / "chain.pem").write_text(chain)
        return self.directory / "ca.pem"

    def gate(self, upstream, protocol="http1", tls=True, protocols="both"):
        """The gate in front of one upstream address. Returns its plain and its TLS port."""
        plain, secure = free_port(), free_port()
        text = f"""
[process]
workers = 1

[admin]
listen = "off"

[[listen]]
address = "127.0.0.1:{plain}"
protocols = "{protocols}"

[group.origin]
servers = ["{upstream}"]
protocol = "{protocol}"

[[site]]
host = "*"
  [[site.route]]
  path = "/"
  group = "origin"
  body_max = "100MB"
"""
        if tls:
            self.certificates()
            text += f"""
[[listen]]
address = "127.0.0.1:{secure}"
protocols = "both"
  [listen.tls]
  certificates = [{{ chain = "{self.directory}/chain.pem", key = "{self.directory}/key.pem" }}]
"""
        file = self.directory / "tidegate.toml"
        file.write_text(text)
        self.start([self.binary, "serve", file], "tidegate", plain)
        return plain, secure


class Origin(http.server.BaseHTTPRequestHandler):
    """GET /size/N answers N bytes, POST /echo the body, /headers the request's head, others a word."""

    protocol_version = "HTTP/1.1"

    def answer(self, body, status=200, kind="text/plain"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        whole = b""
        while size := int(self.rfile.readline() or self.cut(), 16):
            whole += self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return whole

    def cut(self):
        raise ConnectionError("the gate ended the connection within a body")

    def do_GET(self):
        body = self.body()
        if self.path.startswith("/size/"):
            self.answer(b"x" * int(self.path.removeprefix("/size/")))
        elif self.path == "/echo":
            self.answer(body)
        elif self.path == "/headers":
            self.answer(f"{self.requestline}\n{self.headers}".encode())
        elif self.path == "/chunked":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for part in (b"one ", b"two ", b"three"):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.answer(b"hello\n")

    do_POST = do_PUT = do_DELETE = do_HEAD = do_OPTIONS = do_GET

    def log_message(self, *_):
        pass


class QuietServer(http.server.ThreadingHTTPServer):
    """A gate may drop an idle connection; that is no error."""

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def origin():
    """Starts the origin in this process; returns its address."""
    server = QuietServer(("127.0.0.1", 0), Origin)
    server.daemon_threads = True
    server.request_queue_size = 128
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"127.0.0.1:{server.server_port}"
