"""The table of figures for BENCHMARKING.md, made from the newest raw result of each scenario."""

import json
from collections.abc import Iterable
from pathlib import Path

COLUMNS = ("scenario", "date", "unit", "gate", "peers", "ratio (min to max)", "bar")


def figures(directory: Path, scenarios: Iterable[str]) -> str:
    """A Markdown table with a row for each scenario that has a result, in the given order."""
    rows = [COLUMNS, tuple("---" for _ in COLUMNS)]
    for scenario in scenarios:
        # Dates sort as text, and a longer scenario name cannot match: the date has a fixed form.
        found = sorted(directory.glob(f"????-??-??-{scenario}.json"))
        if found and "cases" not in (result := json.loads(found[-1].read_text())):
            rows.append(_row(result))
    return _table(rows)


def firewall(directory: Path, scenario: str) -> str:
    """A Markdown table with a row for each request of a firewall scenario; empty if it has not been run."""
    found = sorted(directory.glob(f"????-??-??-{scenario}.json"))
    if not found:
        return ""
    result = json.loads(found[-1].read_text())
    labels = list(next(iter(result["cases"].values())))
    rows = [("request", *labels, "ratio of what is added (min to max)", "bar")]
    rows.append(tuple("---" for _ in rows[0]))
    for case, costs in result["cases"].items():
        ratio = next((it for it in result["ratios"] if it["case"] == case), None)
        shown = "1/{:.0f} (1/{:.0f} to 1/{:.0f})".format(*(1 / ratio[it] for it in ("median", "min", "max"))) if ratio else ""
        bar = f"1/{1 / ratio['bar']:.0f}" if ratio else ""
        rows.append((case, *(f"{costs[label]:.0f}" for label in labels), shown, bar))
    return f"{result['scenario']}, {result['at'][:10]}, {result['unit']}:\n\n{_table(rows)}"


def _table(rows: list[tuple[str, ...]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _row(result: dict) -> tuple[str, ...]:
    summary = result.get("summary", {})
    gate = [_cost(label, cost) for label, cost in summary.items() if label.startswith("tidegate")]
    peers = [_cost(label, cost) for label, cost in summary.items() if not label.startswith("tidegate")]
    ratios = [ratio for ratio in result.get("ratios", []) if ratio["subject"].startswith("tidegate")]
    if ratios:
        ratio = "{median:.2f} ({min:.2f} to {max:.2f})".format(**ratios[0])
        bar = f"{ratios[0]['bar']:g}"
    elif "faults" in result:
        ratio, bar = f"{len(result['faults'])} faults, {sum(result['clients']['requests'].values())} requests", "0 faults"
    else:
        ratio, bar = "", f"{result['bar']:g}" if "bar" in result else ""
    return (result["scenario"], result["at"][:10], result["unit"], ", ".join(gate), ", ".join(peers), ratio, bar)


def _cost(label: str, cost: dict) -> str:
    return f"{label} {cost['median']:.2f}"
