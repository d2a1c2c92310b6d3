#!/usr/bin/env python3
"""nginx as the origin: what a common server sends with ranges, conditionals, gzip, autoindex, errors."""

import http.client
import subprocess

import rig


def main():
    nginx = rig.tool("nginx")
    check = rig.Rig()
    port = rig.free_port()
    directory = check.directory
    (directory / "www").mkdir()
    (directory / "www" / "page.html").write_bytes(b"<p>hello</p>\n" * 5_000)
    (directory / "nginx.conf").write_text(f"""
daemon off; worker_processes 1; pid {directory}/pid; error_log {directory}/error.log; user root;
events {{ worker_connections 1000; }}
http {{
    access_log off; client_body_temp_path {directory}/b; proxy_temp_path {directory}/p;
    fastcgi_temp_path {directory}/f; uwsgi_temp_path {directory}/u; scgi_temp_path {directory}/s;
    types {{ text/html html; }}
    gzip on; gzip_min_length 100;
    keepalive_requests 3;
    server {{
        listen 127.0.0.1:{port}; root {directory}/www;
        location = /empty {{ return 204; }}
        location = /moved {{ return 301 /page.html; }}
        location = /upload {{ client_max_body_size 10k; return 200 "taken"; }}
    }}
}}
""")
    directory.chmod(0o755)
    check.start([nginx, "-c", directory / "nginx.conf", "-p", directory], "nginx", port)
    plain, _secure = check.gate(f"127.0.0.1:{port}", tls=False)
    client = http.client.HTTPConnection("127.0.0.1", plain, timeout=10)

    def ask(method, path, body=None, **headers):
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        client.request(method, path, body, headers)
        response = client.getresponse()
        return response, response.read()

    page = (directory / "www" / "page.html").read_bytes()
    response, body = ask("GET", "/page.html")
    check.check("a file", response.status == 200 and body == page, (response.status, len(body)))
    etag = response.getheader("ETag")
    response, body = ask("GET", "/page.html", If_None_Match=etag)
    check.check("a conditional request", response.status == 304 and body == b"", (response.status, body[:100]))
    response, body = ask("GET", "/page.html", Range="bytes=5-14")
    check.check("a range", response.status == 206 and body == page[5:15], (response.status, body[:100]))
    response, body = ask("GET", "/page.html", Range="bytes=0-0,10-12")
    check.check("two ranges", response.status == 206 and b"multipart" in response.getheader("Content-Type").encode(), body[:100])
    response, body = ask("GET", "/page.html", Range="bytes=999999999-")
    check.check("a range beyond the end", response.status == 416, response.status)
    response, body = ask("GET", "/page.html", Accept_Encoding="gzip")
    check.check("gzip in chunks", response.getheader("Content-Encoding") == "gzip" and body[:2] == b"\x1f\x8b", body[:10])
    response, body = ask("HEAD", "/page.html")
    check.check("HEAD", response.getheader("Content-Length") == str(len(page)) and body == b"", response.headers)
    response, body = ask("GET", "/empty")
    check.check("204", response.status == 204 and body == b"", (response.status, body))
    response, body = ask("GET", "/moved")
    check.check("a redirect", response.status == 301 and "page.html" in response.getheader("Location"), response.headers)
    response, body = ask("GET", "/missing")
    check.check("404", response.status == 404, response.status)
    response, body = ask("POST", "/upload", b"x" * 5_000)
    check.check("a body that fits", response.status == 200 and body == b"taken", (response.status, body))
    response, body = ask("POST", "/upload", b"x" * 500_000)
    check.check("a body that the origin refuses", response.status == 413, response.status)
    client.close()
    for number in range(30):
        response, body = ask("GET", "/page.html")
        if response.status != 200 or body != page:
            check.check(f"request {number} over connections that nginx closes", False, response.status)
    check.check("thirty requests over connections that nginx closes", True)
    version = subprocess.run([nginx, "-v"], capture_output=True, text=True).stderr.strip()
    print(version)
    check.finish()


main()
