"""Rounds: contestants take turns, so that what disturbs the machine disturbs all of them.

A ratio is formed within each round and the median of those is the figure. Where a subject is
compared with several references, the best of each round counts: the strictest reading.
"""

import json
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

from . import accounting
from .contestants import AccessLog, Contestant
from .loads import ServedBy, Work
from .origin import Origin
from .processes import Failed, await_true

SETTLE_S = 0.2
"""Between a load's end and the sample after it: the server still closes connections."""


@dataclass(frozen=True)
class Turn:
    """One contestant's part of one round."""

    label: str
    work: Work
    cpu: accounting.CpuUsed
    log_lines: int | None

    @property
    def cpu_us(self) -> float:
        """CPU time per unit of work, in microseconds."""
        return self.cpu.run_ns / self.work.units / 1000

    def record(self) -> dict:
        return {
            "label": self.label,
            "cpu_us": self.cpu_us,
            "cpu": asdict(self.cpu),
            "work": asdict(self.work),
            "log_lines": self.log_lines,
        }


@dataclass(frozen=True)
class Ratio:
    """A subject's CPU per unit as a ratio to the best of its references."""

    subject: str
    references: tuple[str, ...]
    bar: float | None = None

    def of(self, rounds: list[dict[str, Turn]]) -> dict | None:
        """Median, least and greatest of the rounds' ratios; None if the subject took no part."""
        labels = rounds[0].keys()
        references = [label for label in self.references if label in labels]
        if self.subject not in labels or not references:
            return None
        values = [
            turns[self.subject].cpu_us / min(turns[label].cpu_us for label in references) for turns in rounds
        ]
        median = statistics.median(values)
        return {
            "subject": self.subject,
            "references": references,
            "median": median,
            "min": min(values),
            "max": max(values),
            "bar": self.bar,
            "met": self.bar is None or median <= self.bar,
        }


def alternate(
    contestants: list[Contestant], load, origin: Origin, count: int, say: Callable[[str], None]
) -> list[dict[str, Turn]]:
    """One uncounted round, then `count` rounds in which each contestant takes one turn."""
    rounds = []
    for n in range(count + 1):
        turns = {contestant.label: take_turn(contestant, load, origin) for contestant in contestants}
        costs = "  ".join(f"{label} {turn.cpu_us:.2f}" for label, turn in turns.items())
        say(f"  {f'round {n}' if n else 'warm-up'}: {costs}")
        if n:
            rounds.append(turns)
    return rounds


def take_turn(contestant: Contestant, load, origin: Origin) -> Turn:
    """Measure one contestant under one load, and check that the work was really its own and the origin's."""
    lines_before = contestant.log_lines()
    served_before = origin.requests()
    before = accounting.cpu_time(contestant.pid)
    work = load.run(contestant)
    time.sleep(SETTLE_S)
    used = accounting.cpu_time(contestant.pid).since(before)
    contestant.check_running()
    # The first of the two counts is itself a request.
    served = origin.requests() - served_before - 1
    if served < work.units if load.served_by is ServedBy.ORIGIN else served > 0:
        raise Failed(f"{contestant.label}: the origin saw {served} of {work.units} requests")
    return Turn(contestant.label, work, used, _logged(contestant, lines_before, work))


def _logged(contestant: Contestant, before: int, work: Work) -> int | None:
    """The lines logged for a turn; waits for buffers to be written out, and insists on every request."""
    if contestant.setup.log is AccessLog.OFF:
        return None
    await_true(
        f"the whole access log of {contestant.label}",
        lambda: contestant.log_lines() - before >= work.units,
        patience_s=5.0,
        pause_s=0.5,
    )
    return contestant.log_lines() - before


def unlike(negotiated: dict[str, dict], rounds: list[dict[str, Turn]]) -> list[str]:
    """What contestants negotiated differently: figures of different ciphers are not compared unsaid."""
    found = []
    # Without TLS a contestant has nothing to differ in.
    if len({json.dumps(one, sort_keys=True) for one in negotiated.values() if one}) > 1:
        found.append(f"probe: {negotiated}")
    for turns in rounds:
        chosen = {label: turn.work.detail.get("negotiated") for label, turn in turns.items()}
        # Where it is a count of connections, only the kinds matter.
        kinds = {label: sorted(map(str, one.items() if "Cipher" in one else one)) for label, one in chosen.items() if one}
        if len({tuple(kind) for kind in kinds.values()}) > 1:
            found.append(f"load: {kinds}")
            break
    return found


def medians(rounds: list[dict[str, Turn]]) -> dict[str, dict[str, float]]:
    """Each contestant's CPU per unit over the rounds, in microseconds."""
    return {
        label: {
            "median": statistics.median(values := [turns[label].cpu_us for turns in rounds]),
            "min": min(values),
            "max": max(values),
        }
        for label in rounds[0]
    }
