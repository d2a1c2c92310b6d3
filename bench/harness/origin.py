"""The origin behind every contestant: nginx with fixed bodies, on the load generator's core."""

import re
import urllib.request
from pathlib import Path

from . import templates
from .machine import LOAD_CORE, files_max
from .processes import Failed, Process, await_true, require_free

ADDRESS = "127.0.0.1:18000"

BODIES = {"/1k": 1024, "/62k": 62 * 1024, "/kept/1k": 1024, "/kept/62k": 62 * 1024}
"""What it serves, by path, and how many bytes each has; what is kept may be stored by caches."""


def body(path: str) -> bytes:
    """The bytes behind a path: no run of them repeats, so that a shifted body shows."""
    return b"".join(b"%07d\n" % n for n in range(BODIES[path] // 8))


class Origin:
    """A running origin."""

    def __init__(self, work: Path):
        pages = work / "pages"
        (pages / "kept").mkdir(parents=True)
        for path in BODIES:
            (pages / path.removeprefix("/")).write_bytes(body(path))
        self.config = templates.fill(
            "origin/nginx.conf", {"WORK": str(work), "ORIGIN": ADDRESS, "NOFILE": str(files_max())}
        )
        path = templates.write(work, "nginx.conf", self.config)
        require_free(ADDRESS)
        self._process = Process("origin", ["nginx", "-c", str(path)], LOAD_CORE, work)
        await_true("the origin's start", self._answers)

    def _answers(self) -> bool:
        if not self._process.running():
            raise Failed(f"the origin ended: {self._process.errors()}")
        try:
            self.requests()
        except OSError:
            return False
        return True

    def requests(self) -> int:
        """How many requests it has answered: a contestant that served from elsewhere shows here."""
        with urllib.request.urlopen(f"http://{ADDRESS}/requests", timeout=5) as answer:
            return int(re.search(r"^ \d+ \d+ (\d+)", answer.read().decode(), re.M).group(1))

    def stop(self) -> None:
        self._process.stop()
