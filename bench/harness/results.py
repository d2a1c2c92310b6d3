"""What a scenario leaves behind: a JSON file with everything behind the figure, and a short table."""

import datetime
import json
import sys
from pathlib import Path

from . import machine
from .contestants import Contestant, tidegate_binary


def say(line: str) -> None:
    """Tell the person who runs it."""
    print(line, flush=True)


def say_ratio(ratio: dict, unit: str = "") -> None:
    """One line for one ratio, with its bar."""
    against = " | ".join(ratio["references"])
    bar = "" if ratio["bar"] is None else f"  bar {ratio['bar']:g}: {'met' if ratio['met'] else 'MISSED'}"
    say(f"  {ratio['subject']} / {against}{unit}: {ratio['median']:.3f} ({ratio['min']:.3f} to {ratio['max']:.3f}){bar}")


def keep(directory: Path, scenario: str, measured: dict, contestants: list[Contestant]) -> Path:
    """Write the raw results of one scenario."""
    now = datetime.datetime.now(datetime.timezone.utc)
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{now:%Y-%m-%d}-{scenario}.json"
    record = {
        "scenario": scenario,
        "at": now.isoformat(timespec="seconds"),
        "command": "bench/run " + " ".join(sys.argv[1:]),
        "machine": machine.facts(),
        "gate": "measured" if tidegate_binary().exists() else "not built",
        **measured,
        "configurations": {
            contestant.label: {name: _shortened(text) for name, text in contestant.files.items()}
            for contestant in contestants
        },
    }
    path.write_text(json.dumps(record, indent=1) + "\n")
    say(f"  raw results: {path}")
    return path


CONFIGURATION_CHARACTERS_MAX = 20_000
"""Ten thousand sites differ in a number only; the first of them say it all."""


def _shortened(text: str) -> str:
    if len(text) <= CONFIGURATION_CHARACTERS_MAX:
        return text
    return text[:CONFIGURATION_CHARACTERS_MAX] + f"\n… {len(text) - CONFIGURATION_CHARACTERS_MAX} characters more"
