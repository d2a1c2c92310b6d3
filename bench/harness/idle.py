"""Idle keep-alive connections: what they cost beside a load, and what memory they hold."""

import json
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from . import accounting, loads, results, rounds
from .certificates import HOST
from .contestants import Contestant, Program, Setup, line_up
from .machine import LOAD_CORE
from .origin import BODIES
from .processes import Failed, Process
from .rounds import Ratio
from .stage import Options, running

BESIDE_CONNECTIONS = 10_000
MEMORY_CONNECTIONS = 5_000

HOLD_PATIENCE_S = 120.0

QUIET_S = 2.0
"""After the last answer: what a server frees late, it has freed by then."""

PROGRAMS = (Program.NGINX, Program.HAPROXY, Program.TIDEGATE)


class Holder:
    """A client that keeps connections open and idle after one request on each."""

    def __init__(self, contestant: Contestant, count: int, secured: bool):
        self.count = count
        address = contestant.tls if secured else contestant.plain
        command = [
            str(loads.client()), "hold", "-address", address, "-host", HOST, "-count", str(count),
            "-path", "/1k", "-size", str(BODIES["/1k"]), f"-tls={'true' if secured else 'false'}",
        ]  # fmt: skip
        self._label = contestant.label
        self._process = Process("holder", command, LOAD_CORE, contestant.work, orders=True)
        self._expect_all("answered once")

    def reuse(self) -> None:
        """A second request on every connection: none may have been closed."""
        self._process.order("reuse")
        self._expect_all("answered again")

    def _expect_all(self, what: str) -> None:
        said = json.loads(self._process.next_line(HOLD_PATIENCE_S))
        if said["held"] != self.count or said["failures"]:
            raise Failed(f"{self._label}: {said['held']} of {self.count} connections {what}: {said['failures']}")

    def stop(self) -> None:
        self._process.stop()


@contextmanager
def holding(contestant: Contestant, count: int, secured: bool) -> Iterator[Holder]:
    """Idle connections to one contestant for as long as the block runs."""
    holder = Holder(contestant, count, secured)
    try:
        yield holder
    finally:
        holder.stop()


def run_load_beside(name: str, options: Options) -> None:
    """The same load on two equal servers of each program, one of which holds idle connections."""
    contestants = line_up(
        *((program.value + suffix, program, Setup()) for program in PROGRAMS for suffix in ("", "-idle"))
    )
    load = loads.Wrk("/1k")
    holders: list[Holder] = []
    with running(contestants) as origin:
        try:
            burdened = [contestant for contestant in contestants if contestant.label.endswith("-idle")]
            for contestant in burdened:
                holders.append(Holder(contestant, BESIDE_CONNECTIONS, secured=False))
            measured = rounds.alternate(contestants, load, origin, options.rounds, results.say)
            waits = {contestant.label: _newcomers(contestant) for contestant in contestants}
            for holder in holders:
                holder.reuse()
        finally:
            for holder in holders:
                holder.stop()
    entries = [
        Ratio(f"{program.value}-idle", (program.value,), 1.1 if program is Program.TIDEGATE else None)
        for program in PROGRAMS
    ]
    ratios = [ratio for entry in entries if (ratio := entry.of(measured))]
    for ratio in ratios:
        results.say_ratio(ratio)
    for label, wait in waits.items():
        results.say(f"  new clients of {label} under load waited {wait['median_ms']:.2f} ms, at most {wait['max_ms']:.2f} ms")
    results.keep(
        options.directory,
        name,
        {
            "title": f"1 KB proxied over 50 connections while {BESIDE_CONNECTIONS} idle ones are held, against none held",
            "unit": f"µs CPU per {load.unit}",
            "summary": rounds.medians(measured),
            "ratios": ratios,
            "new_clients_under_load": waits,
            "rounds": [[turn.record() for turn in turns.values()] for turns in measured],
        },
        contestants,
    )


def _newcomers(contestant: Contestant) -> dict:
    """What new clients wait while the usual load runs."""
    errors: list[Failed] = []

    def press() -> None:
        try:
            loads.Wrk("/1k").run(contestant)
        except Failed as error:
            errors.append(error)

    load = threading.Thread(target=press)
    load.start()
    try:
        time.sleep(0.5)
        waits = loads.fresh_connections(contestant)
    finally:
        load.join()
    if errors:
        raise errors[0]
    return waits


def run_memory_plain(name: str, options: Options) -> None:
    """Memory per idle plain connection."""
    _run_memory(name, options, secured=False, bar_kib=1.2)


def run_memory_tls(name: str, options: Options) -> None:
    """Memory per idle TLS connection."""
    _run_memory(name, options, secured=True, bar_kib=10.0)


def _run_memory(name: str, options: Options, secured: bool, bar_kib: float) -> None:
    """Each round starts every server anew: freed memory that a server keeps would hide the second time."""
    measured: list[dict[str, dict]] = []
    for n in range(options.rounds):
        contestants = line_up(*((program.value, program, Setup()) for program in PROGRAMS))
        with running(contestants):
            found = {contestant.label: _memory_of(contestant, secured) for contestant in contestants}
        measured.append(found)
        results.say(f"  round {n + 1}: " + "  ".join(f"{label} {one['kib_each']:.2f} KiB" for label, one in found.items()))
    summary = {
        label: {
            "median": statistics.median(values := [found[label]["kib_each"] for found in measured]),
            "min": min(values),
            "max": max(values),
        }
        for label in measured[0]
    }
    if "tidegate" in summary:
        met = summary["tidegate"]["median"] <= bar_kib
        results.say(f"  tidegate {summary['tidegate']['median']:.2f} KiB  bar {bar_kib:g}: {'met' if met else 'MISSED'}")
    results.keep(
        options.directory,
        name,
        {
            "title": f"memory of {MEMORY_CONNECTIONS} idle keep-alive connections after one request each",
            "unit": "KiB PSS per connection",
            "bar": bar_kib,
            "summary": summary,
            "rounds": measured,
        },
        contestants,
    )


def _memory_of(contestant: Contestant, secured: bool) -> dict:
    """PSS before and after, once the server has set up what it sets up late.

    The warm-up is a single connection: what a wider one leaves freed but kept would take the idle
    connections in, and they would seem to cost less.
    """
    loads.Wrk("/1k", secured=secured, seconds=1, connections=1).run(contestant)
    time.sleep(QUIET_S)
    before = accounting.pss_bytes(contestant.pid)
    with holding(contestant, MEMORY_CONNECTIONS, secured) as holder:
        time.sleep(QUIET_S)
        after = accounting.pss_bytes(contestant.pid)
        holder.reuse()
    return {
        "pss_before_bytes": before,
        "pss_after_bytes": after,
        "connections": MEMORY_CONNECTIONS,
        "kib_each": (after - before) / MEMORY_CONNECTIONS / 1024,
    }
