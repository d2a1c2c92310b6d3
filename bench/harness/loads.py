"""Load generators on their own core. Each says how much was done, and fails unless all of it was right."""

import json
import os
import re
import subprocess
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from pathlib import Path

from . import origin
from .certificates import HOST
from .contestants import Contestant
from .machine import BENCH, LOAD_CORE
from .processes import Failed

HEAD_BYTES_MAX = 1024
"""More than any contestant's response head: what wrk counted beyond the bodies must stay below."""


@dataclass(frozen=True)
class Work:
    """What one run of a generator came to: `units` correct ones, and what else it said."""

    units: int
    seconds: float
    command: list[str]
    detail: dict = field(default_factory=dict)


class ServedBy(Enum):
    """Whose answers a load gets: the origin's count of requests is held against it."""

    ORIGIN = "origin"
    CONTESTANT = "contestant"


@dataclass(frozen=True)
class Wrk:
    """Keep-alive requests over HTTP/1.1 for a while."""

    path: str
    secured: bool = False
    connections: int = 50
    seconds: int = 4
    rotate_hosts: bool = False
    served_by: ServedBy = ServedBy.ORIGIN
    unit: str = "request"

    def run(self, contestant: Contestant) -> Work:
        scheme, address = ("https", contestant.tls) if self.secured else ("http", contestant.plain)
        url = f"{scheme}://{HOST}:{address.rpartition(':')[2]}{self.path}"
        command = ["wrk", "-t1", f"-c{self.connections}", f"-d{self.seconds}s"]
        report = BENCH / "harness/report.lua"
        if self.rotate_hosts:
            names = contestant.work / "hosts"
            names.write_text("".join(f"{host}\n" for host in contestant.hosts()))
            command += ["-s", str(BENCH / "harness/sites.lua"), url, "--", str(names)]
        else:
            command += ["-H", f"Host: {HOST}", "-s", str(report), url]
        output = run(command, {"TIDEGATE_BENCH_REPORT": str(report)})
        said = json.loads(output.strip().splitlines()[-1])
        requests, body_bytes = said["requests"], origin.BODIES[self.path]
        for problem in ("connect", "read", "write", "status", "timeout"):
            if said[problem]:
                raise Failed(f"{contestant.label}: {said[problem]} {problem} errors")
        # wrk counts the bytes of responses that were under way at the end, too.
        head_bytes = said["bytes"] / max(requests, 1) - body_bytes
        slack_bytes = (self.connections * body_bytes) / max(requests, 1)
        if not 0 < head_bytes < HEAD_BYTES_MAX + slack_bytes:
            raise Failed(f"{contestant.label}: {head_bytes:.0f} bytes a response beside the body")
        return Work(requests, said["duration_us"] / 1e6, command, said)


@dataclass(frozen=True)
class H2load:
    """A number of requests over HTTP/2 and TLS."""

    path: str
    requests: int
    connections: int = 10
    streams: int = 32
    served_by: ServedBy = ServedBy.ORIGIN
    unit: str = "request"

    def run(self, contestant: Contestant) -> Work:
        command = [
            "h2load", "-t1", f"-n{self.requests}", f"-c{self.connections}", f"-m{self.streams}",
            f"--connect-to={contestant.tls}", f"https://{HOST}{self.path}",
        ]  # fmt: skip
        output = run(command)
        done = _numbers(r"requests: (\d+) total, (\d+) started, (\d+) done, (\d+) succeeded", output)
        statuses = _numbers(r"status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx", output)
        (data,) = _numbers(r"\((\d+)\) data$", output)
        expected = self.requests * origin.BODIES[self.path]
        if done != [self.requests] * 4 or statuses != [self.requests, 0, 0, 0] or data != expected:
            raise Failed(f"{contestant.label}: not all answered rightly:\n{output}")
        if "Application protocol: h2" not in output:
            raise Failed(f"{contestant.label} did not speak h2")
        seconds = re.search(r"finished in ([\d.]+)(ms|s),", output)
        elapsed = float(seconds.group(1)) * (1e-3 if seconds.group(2) == "ms" else 1.0)
        chosen = re.findall(r"^(TLS Protocol|Cipher|Server Temp Key): (.*)$", output, re.M)
        return Work(self.requests, elapsed, command, {"negotiated": dict(chosen)})


@dataclass(frozen=True)
class Handshakes:
    """Full TLS 1.3 handshakes, each with one fixed answer, for a while."""

    concurrency: int = 16
    seconds: int = 4
    served_by: ServedBy = ServedBy.CONTESTANT
    unit: str = "handshake"

    def run(self, contestant: Contestant) -> Work:
        command = [
            str(client()), "handshakes", "-address", contestant.tls, "-host", HOST,
            "-concurrency", str(self.concurrency), "-duration", f"{self.seconds}s",
        ]  # fmt: skip
        said = json.loads(run(command))
        if said["failures"] or len(said["negotiated"]) != 1:
            raise Failed(f"{contestant.label}: {said['failures']} {said['negotiated']}")
        return Work(said["handshakes"], said["seconds"], command, said)


def fresh_connections(contestant: Contestant, count: int = 200) -> dict:
    """How long new clients wait for their first answer."""
    command = [str(client()), "fresh", "-address", contestant.plain, "-host", HOST, "-count", str(count)]
    said = json.loads(run(command))
    if said["failures"]:
        raise Failed(f"{contestant.label} failed new clients: {said['failures']}")
    return said


@cache
def client() -> Path:
    """The program under bench/clients, built on first use."""
    built = BENCH / "clients/build/clients"
    done = subprocess.run(
        ["go", "build", "-o", str(built), "."],
        cwd=BENCH / "clients",
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise Failed(f"bench/clients does not build:\n{done.stderr}")
    return built


def run(command: list[str], environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | (environment or {}),
        preexec_fn=lambda: os.sched_setaffinity(0, {LOAD_CORE}),
    )
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def _numbers(pattern: str, text: str) -> list[int]:
    match = re.search(pattern, text, re.M)
    if not match:
        raise Failed(f"no {pattern!r} in:\n{text}")
    return [int(group) for group in match.groups()]
