"""How figures are formed from rounds. Run with `python3 -m unittest discover -s bench -t bench`."""

import unittest

from harness.accounting import CpuUsed
from harness.loads import Work
from harness.rounds import Ratio, Turn, medians, unlike


def turn(label: str, cpu_us: float, detail: dict | None = None) -> Turn:
    """A turn of 1,000 requests at a given cost each."""
    used = CpuUsed(run_ns=int(cpu_us * 1_000_000), stat_ns=0, softirqd_ns=0)
    return Turn(label, Work(1000, 1.0, [], detail or {}), used, None)


def round_of(**costs: float) -> dict[str, Turn]:
    return {label: turn(label, cost) for label, cost in costs.items()}


class RatioOfRounds(unittest.TestCase):
    def check(self, rounds: list[dict[str, Turn]], ratio: Ratio, expected: dict | None) -> None:
        found = ratio.of(rounds)
        if expected is None:
            self.assertIsNone(found)
        else:
            self.assertEqual({key: found[key] for key in expected}, expected)

    def test_best_reference_of_each_round_counts(self):
        rounds = [round_of(a=20, b=10, gate=5), round_of(a=10, b=20, gate=5), round_of(a=10, b=10, gate=10)]
        self.check(rounds, Ratio("gate", ("a", "b")), {"median": 0.5, "min": 0.5, "max": 1.0})

    def test_absent_reference_is_left_out(self):
        self.check([round_of(a=20, gate=5)], Ratio("gate", ("a", "b")), {"references": ["a"], "median": 0.25})

    def test_absent_subject_has_no_ratio(self):
        self.check([round_of(a=20, b=10)], Ratio("gate", ("a", "b")), None)

    def test_bar_is_met_up_to_its_value(self):
        self.check([round_of(a=20, gate=15)], Ratio("gate", ("a",), bar=0.75), {"met": True})
        self.check([round_of(a=20, gate=16)], Ratio("gate", ("a",), bar=0.75), {"met": False})

    def test_medians_stand_beside_their_range(self):
        rounds = [round_of(a=1), round_of(a=5), round_of(a=2)]
        self.assertEqual(medians(rounds), {"a": {"median": 2, "min": 1, "max": 5}})


class Negotiated(unittest.TestCase):
    def check(self, probes: dict[str, dict], details: list[dict], expected: int) -> None:
        turns = {f"server-{n}": turn(f"server-{n}", 1, {"negotiated": one}) for n, one in enumerate(details)}
        self.assertEqual(len(unlike(probes, [turns])), expected)

    def test_difference_is_found_in_probes_and_loads(self):
        alike, other = {"cipher": "A"}, {"cipher": "B"}
        self.check({"a": alike, "b": alike}, [], 0)
        self.check({"a": alike, "b": other}, [], 1)
        self.check({}, [{"TLS 1.3 A": 10}, {"TLS 1.3 A": 20}], 0)
        self.check({}, [{"TLS 1.3 A": 10}, {"TLS 1.3 B": 10}], 1)
        self.check({}, [{"Cipher": "A"}, {"Cipher": "B"}], 1)


if __name__ == "__main__":
    unittest.main()
