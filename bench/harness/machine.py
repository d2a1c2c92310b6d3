"""What the measurements run on: the two cores they use, limits, and facts for the record."""

import os
import platform
import re
import resource
import subprocess
from pathlib import Path

SERVER_CORE = 0
"""The core of the measured server, and of nothing else that the harness starts."""

LOAD_CORE = 1
"""The core of the load generator, the origin and the harness itself."""

FILES_MAX = 65_536
"""Open files for every process: 10,000 held connections need that many on both ends."""

BENCH = Path(__file__).resolve().parent.parent
REPOSITORY = BENCH.parent


def prepare() -> None:
    """Raise the limit of open files and leave the server's core. Children inherit both."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, FILES_MAX), hard))
    os.sched_setaffinity(0, {LOAD_CORE})


def files_max() -> int:
    """The limit of open files that now holds."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def facts() -> dict:
    """The machine, kernel and versions that belong beside every figure."""
    cpu = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.M)
    memory = re.search(r"^MemTotal:\s*(\d+) kB$", Path("/proc/meminfo").read_text(), re.M)
    return {
        "cpu": cpu.group(1) if cpu else platform.processor(),
        "cores": os.cpu_count(),
        "memory_mib": int(memory.group(1)) // 1024 if memory else None,
        "kernel": platform.release(),
        "load_average": os.getloadavg(),
        "versions": {
            "nginx": _first_line(["nginx", "-v"]),
            "haproxy": _first_line(["haproxy", "-v"]),
            "varnish": _first_line(["varnishd", "-V"]),
            "wrk": _first_line(["wrk", "-v"]),
            "h2load": _first_line(["h2load", "--version"]),
            "openssl": _first_line(["openssl", "version"]),
            "go": _first_line(["go", "version"]),
            "python": platform.python_version(),
            "tidegate_commit": _first_line(["git", "-C", str(REPOSITORY), "rev-parse", "HEAD"]),
        },
    }


def _first_line(command: list[str]) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    lines = (done.stdout + done.stderr).strip().splitlines()
    return lines[0] if lines else None
