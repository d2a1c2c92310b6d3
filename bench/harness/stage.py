"""What every scenario stands on: its options, and a running origin with running contestants."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .contestants import Contestant
from .origin import Origin


@dataclass(frozen=True)
class Options:
    """What the command line decides."""

    rounds: int
    seconds: int
    """How long a turn is loaded, where the load is timed and not counted."""
    directory: Path
    """Where raw results are kept."""


@contextmanager
def work_directory() -> Iterator[Path]:
    """A directory for configurations, logs and sockets that other users' workers may enter."""
    with tempfile.TemporaryDirectory(prefix="tidegate-bench-") as directory:
        work = Path(directory)
        work.chmod(0o755)
        yield work


@contextmanager
def running(contestants: list[Contestant]) -> Iterator[Origin]:
    """The origin and the contestants, started, and stopped whatever happens."""
    with work_directory() as work:
        origin = Origin(work / "origin")
        started = []
        try:
            for contestant in contestants:
                started.append(contestant)
                contestant.start(work / contestant.label)
            yield origin
        finally:
            for contestant in reversed(started):
                contestant.stop()
            origin.stop()
