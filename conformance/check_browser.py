#!/usr/bin/env python3
"""A real browser (headless Chromium) through the gate: HTTP/2 over TLS, a page with many parts and
a WebSocket. The page reports what it saw by a last request."""

import asyncio
import base64
import contextlib
import hashlib
import http
import json
import os
import signal
import subprocess
import urllib.parse

import rig

rig.in_venv()

import websockets  # noqa: E402
from websockets.datastructures import Headers  # noqa: E402
from websockets.http11 import Response  # noqa: E402

PAGE = """<!doctype html><title>working</title><script>
async function main() {
  const out = {protocol: performance.getEntriesByType("navigation")[0].nextHopProtocol};
  const parts = await Promise.all([...Array(60).keys()].map(n => fetch("/part/" + n).then(r => r.text())));
  out.parts = parts.every((text, n) => text === "part " + n);
  const large = await (await fetch("/large")).arrayBuffer();
  out.large = large.byteLength;
  out.protocols = [...new Set(performance.getEntriesByType("resource").map(e => e.nextHopProtocol))];
  out.socket = await new Promise(resolve => {
    const socket = new WebSocket("wss://" + location.host + "/socket");
    socket.onopen = () => socket.send("hello");
    socket.onmessage = event => { resolve(event.data); socket.close(); };
    socket.onerror = () => resolve("error");
  });
  return out;
}
main().catch(error => ({error: String(error)})).then(out => {
  return fetch("/report/" + encodeURIComponent(JSON.stringify(out)));
});
</script>"""


def answer(report, request):
    """Plain HTTP from the same server; None lets the WebSocket handshake go on."""
    if request.path == "/socket":
        return None
    if request.path == "/":
        body, kind = PAGE.encode(), "text/html"
    elif request.path.startswith("/report/"):
        report.set_result(json.loads(urllib.parse.unquote(request.path.removeprefix("/report/"))))
        body, kind = b"thanks", "text/plain"
    elif request.path.startswith("/part/"):
        body, kind = f"part {request.path.removeprefix('/part/')}".encode(), "text/plain"
    else:
        body, kind = b"x" * 2_000_000, "application/octet-stream"
    headers = Headers({"Content-Type": kind, "Content-Length": str(len(body)), "Connection": "close"})
    return Response(http.HTTPStatus.OK.value, "OK", headers, body)


async def echo(socket):
    with contextlib.suppress(websockets.ConnectionClosed):
        async for message in socket:
            await socket.send(message.upper())


def browser(check, port):
    """The command of a Chromium that trusts the test certificate by the hash of its key."""
    public = ["openssl", "x509", "-in", str(check.directory / "leaf.pem"), "-pubkey", "-noout"]
    pem = subprocess.run(public, capture_output=True, check=True, text=True).stdout
    key = base64.b64decode("".join(line for line in pem.splitlines() if "-----" not in line))
    pin = base64.b64encode(hashlib.sha256(key).digest()).decode()
    return [
        rig.tool("chromium"), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
        "--no-proxy-server", "--disable-background-networking", "--disable-component-update", "--no-first-run",
        "--remote-debugging-port=0", f"--user-data-dir={check.directory}/profile",
        f"--ignore-certificate-errors-spki-list={pin}", f"https://localhost:{port}/",
    ]


async def main():
    rig.tool("chromium")
    check = rig.Rig()
    port = rig.free_port()
    report = asyncio.get_running_loop().create_future()
    handle = lambda _connection, request: answer(report, request)
    async with websockets.serve(echo, "127.0.0.1", port, process_request=handle):
        _plain, secure = await asyncio.to_thread(check.gate, f"127.0.0.1:{port}")
        log = (check.directory / "chromium.log").open("w+")
        process = await asyncio.create_subprocess_exec(
            *browser(check, secure), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            env=os.environ | {"HOME": str(check.directory)}, start_new_session=True)
        try:
            out = await asyncio.wait_for(report, 60)
        except TimeoutError:
            out = {}
        os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    log.seek(0)
    check.check("the page ran", out, log.read()[-1500:])
    check.check("the page came over HTTP/2", out.get("protocol") == "h2", out)
    check.check("sixty parts at once", out.get("parts") is True, out)
    check.check("a large part is whole", out.get("large") == 2_000_000, out)
    check.check("the parts came over HTTP/2", out.get("protocols") == ["h2"], out)
    check.check("a WebSocket talks", out.get("socket") == "HELLO", out)
    check.finish()


asyncio.run(main())
