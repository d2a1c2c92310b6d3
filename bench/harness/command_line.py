"""The command `bench/run`: which scenario, how many rounds, where results go."""

import argparse
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from . import context, firewall, idle, machine, results, survive, tables
from .contestants import tidegate_binary
from .processes import Failed
from .scenarios import COMPARISONS
from .stage import Options

SCENARIOS: dict[str, Callable[[str, Options], None]] = {
    **{name: comparison.run for name, comparison in COMPARISONS.items()},
    "idle-10k": idle.run_load_beside,
    "idle-memory-plain": idle.run_memory_plain,
    "idle-memory-tls": idle.run_memory_tls,
    "waf-1": firewall.run_level(1),
    "waf-4": firewall.run_level(4),
    "waf-beside": firewall.run_beside,
    "waf-context": context.run,
    "survive": survive.run,
}


def main(arguments: list[str]) -> int:
    """Run what was asked for. Fails on a wrong answer or a broken run, never on a slow one."""
    parser = argparse.ArgumentParser(
        prog="bench/run",
        description="Measure the gate beside nginx, HAProxy and Varnish. The gate is taken from TIDEGATE_BIN, "
        "or target/release/tidegate; without it only the peers are measured.",
    )
    parser.add_argument(
        "scenario",
        nargs="+",
        choices=["all", "figures", *SCENARIOS],
        metavar="scenario",
        help="all, figures (a table of the newest results), or any of " + ", ".join(SCENARIOS),
    )
    parser.add_argument("--rounds", type=int, default=5, help="counted rounds of each contestant (5)")
    parser.add_argument("--seconds", type=int, default=4, help="loaded seconds of each turn, where a load is timed (4)")
    parser.add_argument("--results", type=Path, default=machine.BENCH / "results", help="where raw results go")
    options = parser.parse_args(arguments)

    if options.scenario == ["figures"]:
        results.say(tables.figures(options.results, SCENARIOS))
        for name in ("waf-1", "waf-4"):
            results.say(tables.firewall(options.results, name))
        return 0
    machine.prepare()
    # An ended run must stop its servers as a finished one does.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    if not tidegate_binary().exists():
        results.say("The gate has not been built: measuring its peers only.")
    names = list(SCENARIOS) if "all" in options.scenario else [name for name in options.scenario if name in SCENARIOS]
    failed = []
    for name in names:
        results.say(f"{name}:")
        try:
            SCENARIOS[name](name, Options(options.rounds, options.seconds, options.results))
        except Failed as error:
            results.say(f"  FAILED: {error}")
            failed.append(name)
    if failed:
        results.say(f"failed: {' '.join(failed)}")
    return 1 if failed else 0
