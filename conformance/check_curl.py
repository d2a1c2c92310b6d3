#!/usr/bin/env python3
"""curl over HTTP/1.1, HTTP/2 with and without TLS: downloads, uploads, Expect, HEAD."""

import hashlib
import subprocess

import rig


def main():
    curl = rig.tool("curl")
    check = rig.Rig()
    plain, secure = check.gate(rig.origin())
    upload = check.directory / "upload"
    upload.write_bytes(bytes(range(256)) * 40_000)
    digest = hashlib.sha256(upload.read_bytes()).hexdigest()

    def fetch(*options):
        command = [curl, "--silent", "--show-error", "--max-time", "30", "--cacert", check.directory / "ca.pem"]
        done = subprocess.run([*map(str, command), *map(str, options)], capture_output=True)
        return done.returncode, done.stdout, done.stderr.decode(errors="replace")

    ways = {
        "HTTP/1.1": (f"http://127.0.0.1:{plain}", "--http1.1", "1.1"),
        "HTTP/1.0": (f"http://127.0.0.1:{plain}", "--http1.0", "1.1"),
        "HTTP/2 with prior knowledge": (f"http://127.0.0.1:{plain}", "--http2-prior-knowledge", "2"),
        "HTTP/1.1 over TLS": (f"https://localhost:{secure}", "--http1.1", "1.1"),
        "HTTP/2 over TLS": (f"https://localhost:{secure}", "--http2", "2"),
        "HTTP/2 over TLS 1.2": (f"https://localhost:{secure}", "--http2 --tlsv1.2 --tls-max 1.2", "2"),
        "HTTP/2 over TLS 1.3": (f"https://localhost:{secure}", "--http2 --tlsv1.3", "2"),
    }
    for name, (base, options, version) in ways.items():
        options = options.split()
        code, out, error = fetch(*options, "--write-out", "%{http_version}", f"{base}/")
        check.check(f"{name}: a page", code == 0 and out == b"hello\n" + version.encode(), error or out)
        code, out, error = fetch(*options, f"{base}/size/3000000")
        check.check(f"{name}: a large download", code == 0 and out == b"x" * 3_000_000, error or len(out))
        code, out, error = fetch(*options, f"{base}/chunked")
        check.check(f"{name}: a chunked download", code == 0 and out == b"one two three", error or out)
        code, out, error = fetch(*options, "--data-binary", f"@{upload}", f"{base}/echo")
        same = hashlib.sha256(out).hexdigest() == digest
        check.check(f"{name}: an upload comes back whole", code == 0 and same, error or len(out))
        if name != "HTTP/1.0":
            code, out, error = fetch(
                *options, "--header", "Transfer-Encoding: chunked" if version == "1.1" else "X-A: b",
                "--upload-file", upload, f"{base}/echo")
            same = hashlib.sha256(out).hexdigest() == digest
            check.check(f"{name}: a chunked upload comes back whole", code == 0 and same, error or len(out))
            code, out, error = fetch(
                *options, "--header", "Expect: 100-continue", "--expect100-timeout", "10", "--data-binary", f"@{upload}",
                "--write-out", "\n%{time_total}", f"{base}/echo")
            body, _, seconds = out.rpartition(b"\n")
            quick = code == 0 and float(seconds) < 5
            same = hashlib.sha256(body).hexdigest() == digest
            check.check(f"{name}: Expect: 100-continue is answered", quick and same, error or (len(body), seconds))
        code, out, error = fetch(*options, "--head", f"{base}/size/1000")
        check.check(f"{name}: HEAD tells the length", b"ontent-" in out and b": 1000\r\n" in out, error or out)
        # curl 7.88 cannot use a connection again that began with prior knowledge.
        if "--http2-prior-knowledge" not in options:
            code, out, error = fetch(*options, f"{base}/", f"{base}/size/10", f"{base}/")
            check.check(f"{name}: several on one connection", out == b"hello\n" + b"x" * 10 + b"hello\n", error or out)
    code, out, error = fetch("--insecure", "--http2", f"https://127.0.0.1:{secure}/headers")
    forwarded = out.decode().lower()
    check.check("the origin is told of TLS", "x-forwarded-proto: https" in forwarded, forwarded)
    check.check("the origin is told of the client", "127.0.0.1" in forwarded, forwarded)
    code, out, error = fetch("--http0.9", "--request-target", "/a#b", f"http://127.0.0.1:{plain}/", "--write-out", "%{http_code}")
    check.check("a fragment is refused", out.endswith(b"400"), out)
    check.finish()


main()
