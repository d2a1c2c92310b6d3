"""Processes that the harness starts, pins and ends: always by their own id, never by name."""

import os
import signal
import socket
import subprocess
import time
from pathlib import Path

STOP_PATIENCE_S = 10.0


class Failed(Exception):
    """A process, a server or a load did not do what the measurement depends on."""


class Process:
    """One started program, pinned to one core, its output in files of its work directory."""

    def __init__(self, name: str, command: list[str], core: int, work: Path, orders: bool = False):
        self.name = name
        self.work = work
        self._out = open(work / f"{name}.out", "wb")
        self._err = open(work / f"{name}.err", "wb")
        self._child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE if orders else subprocess.DEVNULL,
            stdout=self._out,
            stderr=self._err,
            cwd=work,
            preexec_fn=lambda: os.sched_setaffinity(0, {core}),
        )
        self._read = 0

    @property
    def pid(self) -> int:
        return self._child.pid

    def order(self, line: str) -> None:
        """Write one line to the program's input."""
        self._child.stdin.write(line.encode() + b"\n")
        self._child.stdin.flush()

    def end_orders(self) -> None:
        """Close the program's input, which ends a client's run."""
        self._child.stdin.close()

    def next_line(self, patience_s: float) -> str:
        """The next whole line of the program's output."""
        deadline = time.monotonic() + patience_s
        while time.monotonic() < deadline:
            ended = self._child.poll() is not None
            line, newline, _ = (self.work / f"{self.name}.out").read_bytes()[self._read :].partition(b"\n")
            if newline:
                self._read += len(line) + 1
                return line.decode()
            if ended:
                break
            time.sleep(0.02)
        raise Failed(f"{self.name} gave no answer: {self.errors()}")

    def running(self) -> bool:
        return self._child.poll() is None

    def errors(self) -> str:
        """The end of what the program complained of."""
        return (self.work / f"{self.name}.err").read_text(errors="replace")[-2000:].strip()

    def kill(self) -> None:
        """SIGKILL, as in a crash."""
        self._child.kill()
        self._child.wait()

    def stop(self) -> None:
        """SIGTERM, then SIGKILL if that is not heeded, for the program and what it started.

        A worker that outlived its master would share the port with the next run's, unseen.
        """
        members = family(self.pid) if self.running() else []
        if self.running():
            self._child.send_signal(signal.SIGTERM)
            try:
                self._child.wait(STOP_PATIENCE_S)
            except subprocess.TimeoutExpired:
                self.kill()
        for pid in members:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self._out.close()
        self._err.close()


def family(root: int) -> list[int]:
    """A process and all its living descendants."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            # The parent is the second field after the name, which may hold anything but ends in ')'.
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
        children.setdefault(parent, []).append(int(entry.name))
    found, frontier = [], [root]
    while frontier:
        pid = frontier.pop()
        found.append(pid)
        frontier.extend(children.get(pid, []))
    return found


def require_free(address: str) -> None:
    """Fail if anything listens there: SO_REUSEPORT would share the load with it, unseen."""
    host, port = address.split(":")
    try:
        socket.create_connection((host, int(port)), timeout=1).close()
    except ConnectionRefusedError:
        return
    raise Failed(f"something else listens on {address}")


def await_true(what: str, condition, patience_s: float = 15.0, pause_s: float = 0.05) -> None:
    """Wait until a condition holds, or fail saying what did not come."""
    deadline = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > deadline:
            raise Failed(f"{what} did not happen within {patience_s:g} s")
        time.sleep(pause_s)
