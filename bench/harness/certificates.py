"""The certificate that every contestant shows: ECDSA P-256, self-signed, made for the run."""

import subprocess
from pathlib import Path

from .processes import Failed

HOST = "localhost"
"""The name of the measured site. wrk and h2load send it as SNI, which an address could not be."""


def make(directory: Path) -> None:
    """Write server.pem and server.key, and haproxy.pem that holds both."""
    key, chain = directory / "server.key", directory / "server.pem"
    command = [
        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
        "-days", "30", "-subj", f"/CN={HOST}", "-addext", f"subjectAltName=DNS:{HOST}",
        "-keyout", str(key), "-out", str(chain),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"openssl made no certificate: {done.stderr}")
    (directory / "haproxy.pem").write_text(chain.read_text() + key.read_text())
