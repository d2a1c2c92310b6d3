"""What the firewall adds to a request, beside nginx with libmodsecurity; and what hostile requests do to others.

Each program runs twice, with the Core Rule Set and without, and the two take turns with the same request.
What is compared is the difference.
"""

import json
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from . import accounting, results
from .contestants import Contestant, Firewall, Program, Setup, line_up, tidegate_binary
from .loads import client, run
from .processes import Failed
from .requests import HOSTILE, ORDINARY, Case
from .stage import Options, running

TURN_S = 1.0
"""CPU time that a turn is made to take."""

COUNT_MIN, COUNT_MAX = 4, 20_000

PACED = ("-connections", "4", "-interval", "10ms")
"""The others, while hostile requests are inspected: 400 requests a second."""


@dataclass(frozen=True)
class Sent:
    """One turn: what it cost a request, in microseconds, and how it was answered."""

    cpu_us: float
    count: int
    statuses: dict[str, int]


def run_level(level: int):
    """The scenario at a paranoia level."""

    def measure(name: str, options: Options) -> None:
        firewall = Setup(firewall=Firewall(level))
        contestants = line_up(
            ("nginx", Program.NGINX, Setup()),
            ("nginx-waf", Program.NGINX, firewall),
            ("tidegate", Program.TIDEGATE, Setup()),
            ("tidegate-waf", Program.TIDEGATE, firewall),
        )
        measured: dict[str, list[dict[str, Sent]]] = {}
        with running(contestants):
            for case in ORDINARY:
                measured[case.name] = _rounds(contestants, case, options.rounds)
        ratios = [ratio for case in ORDINARY if (ratio := _ratio(case, measured[case.name]))]
        ratios += [_twice(measured["tiny"])] if tidegate_binary().exists() else []
        for ratio in ratios:
            results.say_ratio(ratio, f" {ratio['case']}")
        results.keep(
            options.directory,
            name,
            {
                "title": f"what the Core Rule Set adds at paranoia level {level}",
                "unit": "µs CPU per request",
                "cases": {case: _summary(rounds) for case, rounds in measured.items()},
                "ratios": ratios,
                "rounds": {
                    case: [{label: sent.__dict__ for label, sent in turns.items()} for turns in rounds]
                    for case, rounds in measured.items()
                },
            },
            contestants,
        )

    return measure


def _rounds(contestants: list[Contestant], case: Case, count: int) -> list[dict[str, Sent]]:
    rounds = []
    counts = {}
    for contestant in contestants:
        first = _send(contestant, case, COUNT_MIN)
        counts[contestant.label] = int(max(COUNT_MIN, min(COUNT_MAX, TURN_S * 1e6 / max(first.cpu_us, 1.0))))
    for n in range(count):
        turns = {it.label: _send(it, case, counts[it.label]) for it in contestants}
        results.say(f"  {case.name} {n + 1}: " + "  ".join(f"{label} {it.cpu_us:.1f}" for label, it in turns.items()))
        if len({tuple(turns[it.label].statuses) for it in contestants if it.setup.firewall}) > 1:
            results.say(f"  NOT ALIKE: {[(label, it.statuses) for label, it in turns.items()]}")
        rounds.append(turns)
    return rounds


def _send(contestant: Contestant, case: Case, count: int) -> Sent:
    file = _file(contestant, case)
    before = accounting.cpu_time(contestant.pid)
    said = _repeat(contestant, file, "-count", str(count), "-connections", "2")
    time.sleep(0.05)
    used = accounting.cpu_time(contestant.pid).since(before)
    contestant.check_running()
    return Sent(used.run_ns / count / 1000, count, said["statuses"])


def _file(contestant: Contestant, case: Case) -> Path:
    file = contestant.work / f"{case.name}.request"
    if not file.exists():
        file.write_bytes(case.make())
    return file


def _repeat(contestant: Contestant, file: Path, *how: str) -> dict:
    command = [str(client()), "repeat", "-address", contestant.plain, "-file", str(file), *how]
    said = json.loads(run(command))
    if said["failures"]:
        raise Failed(f"{contestant.label}, {file.stem}: {said['failures']}")
    return said


def _added(turns: dict[str, Sent], program: str) -> float:
    return turns[f"{program}-waf"].cpu_us - turns[program].cpu_us


def _ratio(case: Case, rounds: list[dict[str, Sent]]) -> dict | None:
    if "tidegate" not in rounds[0]:
        return None
    values = [_added(turns, "tidegate") / _added(turns, "nginx") for turns in rounds]
    return _result(case.name, "tidegate-waf less tidegate", ["nginx-waf less nginx"], values, case.bar)


def _twice(rounds: list[dict[str, Sent]]) -> dict:
    values = [turns["tidegate-waf"].cpu_us / turns["tidegate"].cpu_us for turns in rounds]
    return _result("tiny", "tidegate-waf", ["tidegate"], values, 2.0)


def _result(case: str, subject: str, references: list[str], values: list[float], bar: float | None) -> dict:
    median = statistics.median(values)
    return {
        "case": case,
        "subject": subject,
        "references": references,
        "median": median,
        "min": min(values),
        "max": max(values),
        "bar": bar,
        "met": bar is None or median <= bar,
    }


def _summary(rounds: list[dict[str, Sent]]) -> dict:
    return {label: statistics.median(turns[label].cpu_us for turns in rounds) for label in rounds[0]}


def _beside(turn) -> dict:
    """A turn beside hostile requests: who gives no answer in time is measured by that."""
    try:
        return turn()
    except Failed as failed:
        return {"failed": str(failed)}


def run_beside(name: str, options: Options) -> None:
    """Tiny requests at a steady rate, alone and beside hostile ones, through one worker."""
    contestants = line_up(
        ("nginx-waf", Program.NGINX, Setup(firewall=Firewall(1))),
        ("tidegate-waf", Program.TIDEGATE, Setup(firewall=Firewall(1))),
    )
    tiny = ORDINARY[0]
    how = (*PACED, "-duration", f"{options.seconds}s")
    measured = {}
    with running(contestants):
        for contestant in contestants:
            paced = _file(contestant, tiny)
            alone = [_repeat(contestant, paced, *how) for _ in range(options.rounds)]
            beside = {}
            for case in HOSTILE:
                hostile = _file(contestant, case)
                with ThreadPoolExecutor() as both:
                    load = both.submit(_repeat, contestant, hostile, "-duration", f"{options.seconds + 1}s", "-connections", "2")
                    time.sleep(0.5)
                    beside[case.name] = _beside(lambda: _repeat(contestant, paced, *how))
                    beside[case.name]["hostile"] = _beside(load.result).get("statuses")
            measured[contestant.label] = {"alone": alone, "beside": beside}
            quiet = statistics.median(turn["p99_ms"] for turn in alone)
            results.say(f"  {contestant.label}: p99 {quiet:.2f} ms alone")
            for case, turn in beside.items():
                if late := turn.get("p99_ms"):
                    results.say(f"    beside {case}: p99 {late:.2f} ms, {late / quiet:.1f} times")
                else:
                    results.say(f"    beside {case}: no answer in time")
    results.keep(
        options.directory,
        name,
        {"title": "tiny requests beside hostile ones", "unit": "ms p99", "bar": 2.0, "measured": measured},
        contestants,
    )
