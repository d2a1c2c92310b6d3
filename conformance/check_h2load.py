#!/usr/bin/env python3
"""h2load as a smoke test: every request of a short run succeeds, over each protocol. No figures."""

import re
import subprocess

import rig

REQUESTS = 2_000


def main():
    h2load = rig.tool("h2load")
    nginx = rig.tool("nginx")
    check = rig.Rig()
    port = rig.free_port()
    directory = check.directory
    (directory / "page").write_bytes(b"x" * 62_000)
    (directory / "nginx.conf").write_text(f"""
daemon off; worker_processes 1; pid {directory}/pid; error_log {directory}/error.log; user root;
events {{ worker_connections 1000; }}
http {{
    access_log off; client_body_temp_path {directory}/b; proxy_temp_path {directory}/p;
    fastcgi_temp_path {directory}/f; uwsgi_temp_path {directory}/u; scgi_temp_path {directory}/s;
    keepalive_requests 1000000;
    server {{ listen 127.0.0.1:{port}; root {directory}; location = / {{ return 200 "hello"; }} }}
}}
""")
    directory.chmod(0o755)
    check.start([nginx, "-c", directory / "nginx.conf", "-p", directory], "nginx", port)
    plain, secure = check.gate(f"127.0.0.1:{port}")
    runs = {
        "HTTP/1.1": ["--h1", f"http://127.0.0.1:{plain}/"],
        "HTTP/1.1, large": ["--h1", f"http://127.0.0.1:{plain}/page"],
        "HTTP/2": ["-m", "32", f"http://127.0.0.1:{plain}/"],
        "HTTP/2, large": ["-m", "32", f"http://127.0.0.1:{plain}/page"],
        "HTTP/1.1 over TLS": ["--h1", f"https://127.0.0.1:{secure}/"],
        "HTTP/2 over TLS": ["-m", "32", f"https://127.0.0.1:{secure}/"],
        "HTTP/2 over TLS, large": ["-m", "32", f"https://127.0.0.1:{secure}/page"],
    }
    for name, options in runs.items():
        command = [h2load, "-n", str(REQUESTS), "-c", "10", *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        codes = re.search(r"status codes: (\d+) 2xx", done.stdout)
        check.check(name, codes and int(codes[1]) == REQUESTS, done.stdout[-1000:] + done.stderr)
    check.finish()


main()
