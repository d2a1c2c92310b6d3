"""Filling in the configurations under bench/peers: @NAME@ is replaced, and nothing may be left over."""

import re
from pathlib import Path

from .machine import BENCH
from .processes import Failed

PEERS = BENCH / "peers"


def fill(template: str, values: dict[str, str]) -> str:
    """The text of a template below bench/peers with its placeholders replaced."""
    text = (PEERS / template).read_text()
    used = set()

    def replace(match: re.Match) -> str:
        used.add(match.group(1))
        if match.group(1) not in values:
            raise Failed(f"{template} asks for @{match.group(1)}@, which is not given")
        return values[match.group(1)]

    filled = re.sub(r"@([A-Z_]+)@", replace, text)
    if unused := values.keys() - used:
        raise Failed(f"{template} does not use {sorted(unused)}")
    return filled


def write(directory: Path, name: str, text: str) -> Path:
    """Write one file of a contestant, and say where."""
    path = directory / name
    path.write_text(text)
    return path
