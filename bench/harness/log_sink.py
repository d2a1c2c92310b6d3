"""A log server for HAProxy's ring: takes a TCP stream and writes it to a file, unread.

Run as a program of its own: `log_sink.py PORT FILE`. Says a line when it listens.
"""

import socket
import sys

BLOCK_BYTES = 1 << 18


def serve(port: int, path: str) -> None:
    """Append what arrives, one connection after another."""
    with socket.create_server(("127.0.0.1", port)) as listener, open(path, "ab", buffering=0) as log:
        print("listening", flush=True)
        while True:
            connection, _ = listener.accept()
            with connection:
                while block := connection.recv(BLOCK_BYTES):
                    log.write(block)


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2])
