#!/usr/bin/env python3
"""Quality checks of ipw analyze: each warns for a run with its problem, and not for a good run."""

import json
import random
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from program import ipw  # noqa: E402
from rundirs import MODEL, outcomes_of, query, summary, write_run  # noqa: E402


QUERIES = 60
DRIFTS = ("temperature_drift", "energy_drift", "power_drift", "speed_drift")
HEADER = "t_s,sensor,device,channel,scope,quantity,unit,value,sum\n"


def steady(**change):
    """60 queries with a scatter of 2 %; `change` gives linear drifts over the run: factors of "seconds" and "joules",
    and "degrees" in °C."""
    chance = random.Random(11)
    lines = []
    for i in range(QUERIES):
        grown = {key: 1 + (change.get(key, 1) - 1) * i / (QUERIES - 1) for key in ("seconds", "joules")}
        seconds = grown["seconds"] * chance.uniform(0.98, 1.02)
        joules = 10 * grown["joules"] * chance.uniform(0.98, 1.02)
        line = query(i, joules=joules, latency=seconds, tokens=20, finish_reason="stop")
        line["model_metrics"][MODEL]["latency_metrics"]["time_to_first_token_seconds"] = 0.2 * chance.uniform(0.9, 1.1)
        degrees = 50 + change.get("degrees", 0) * i / (QUERIES - 1) + chance.uniform(-1, 1)
        line["model_metrics"][MODEL]["temperature_metrics"] = {"avg": degrees}
        lines.append(line)
    return lines


class Quality(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ipw-quality-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def checks(self, lines, samples=None, name="run", whole=None):
        path = write_run(self.folder / name, lines, whole)
        if samples is not None:
            (path / "samples.csv").write_text(HEADER + samples)
        done = ipw(None, "analyze", path, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return outcomes_of(json.loads(done.stdout)[str(path)]["quality"])

    def assertOnly(self, checks, *warned, of=DRIFTS):
        """Exactly these drift checks warn."""
        self.assertEqual([name for name in of if checks[name][0] == "warning"], list(warned), checks)

    def test_steady_run_passes_all_checks(self):
        checks = self.checks(steady())
        for name in (*DRIFTS, "cold_start", "cut_answers", "failed_queries", "interrupted", "energy_unknown", "low_coverage"):
            self.assertEqual(checks[name][0], "good", f"{name}: {checks[name]}")

    def test_warns_if_parts_do_not_add_up(self):
        """Independent of conservation_error, which earlier versions computed from other sums."""
        lines = steady()
        whole = summary(lines)
        own = whole["ipw"]
        own["energy"]["joules"] = 127.6
        own |= {"conservation_error": 0, "energy_known": 60,
                "joules": {"queries": 70.0, "failed": 0, "idle": 9.0, "unattributed": 0.9}}
        self.assertEqual(self.checks(lines, whole=whole)["not_conserved"],
                         ("warning", "the parts differ from the machine's energy by 37 %"))
        own["energy_known"] = 30
        own["joules"]["unattributed"] = 48.6
        checks = self.checks(lines, whole=whole, name="lost")
        self.assertEqual(checks["not_conserved"][0], "good")
        self.assertEqual(checks["unattributed_energy"][0], "warning")
        self.assertIn("48.6 J, 38 % of the energy, are not attributed to any query", checks["unattributed_energy"][1])

    def test_warns_of_temperature_drift(self):
        self.assertOnly(self.checks(steady(degrees=12)), "temperature_drift")

    def test_small_temperature_drift_passes(self):
        self.assertOnly(self.checks(steady(degrees=3)))

    def test_warns_of_speed_and_power_drift(self):
        """At constant energy: less power and more time per token."""
        checks = self.checks(steady(seconds=1.3))
        self.assertOnly(checks, "power_drift", "speed_drift")
        self.assertRegex(checks["speed_drift"][1], r"changes by \+2[0-9]\.[0-9] % of its median")
        self.assertRegex(checks["power_drift"][1], r"changes by -2[0-9]\.[0-9] % of its median")

    def test_warns_of_energy_and_power_drift(self):
        """At constant time: more energy per token and more power."""
        self.assertOnly(self.checks(steady(joules=1.3)), "energy_drift", "power_drift")

    def test_small_drifts_pass(self):
        self.assertOnly(self.checks(steady(joules=1.03, seconds=1.03)))

    def test_drift_checks_need_ten_queries(self):
        checks = self.checks(steady(joules=2, degrees=30)[:9])
        for name in (*DRIFTS, "cold_start"):
            self.assertEqual(checks[name][0], "unknown", name)

    def first_token(self, line, seconds):
        line["model_metrics"][MODEL]["latency_metrics"]["time_to_first_token_seconds"] = seconds

    def test_warns_of_cold_start(self):
        lines = steady()
        self.first_token(lines[0], 1.5)
        verdict, detail = self.checks(lines)["cold_start"]
        self.assertEqual(verdict, "warning")
        self.assertIn("first query 1.5 s", detail)

    def test_later_slow_query_is_no_cold_start(self):
        lines = steady()
        self.first_token(lines[30], 1.5)
        self.assertEqual(self.checks(lines)["cold_start"][0], "good")

    def test_warns_of_truncated_answers(self):
        lines = steady()
        for i in (3, 7, 11):
            lines[i]["ipw"]["finish_reason"] = "length"
        self.assertEqual(self.checks(lines)["cut_answers"], ("warning", "3 answers reached the token limit"))

    def test_truncation_is_unknown_without_finish_reason(self):
        lines = steady()
        for line in lines:
            del line["ipw"]["finish_reason"]
        self.assertEqual(self.checks(lines)["cut_answers"][0], "unknown")

    @staticmethod
    def samples(*causes):
        return "".join(f"{i / 10},nvml:0,gpu0,clocks,gpu,throttle,bits,{bits},\n"
                       f"{i / 10},nvml:0,gpu0,power,gpu,power,W,{300 + i},\n" for i, bits in enumerate(causes))

    def test_warns_of_throttling(self):
        verdict, detail = self.checks(steady(), self.samples(0, 1, 1, 2, 0, 0, 0, 0))["clocks_limited"]
        self.assertEqual(verdict, "warning")
        self.assertEqual(detail, "clocks limited in 37.5 % of 8 samples: power, thermal")

    def test_no_throttling_passes(self):
        self.assertEqual(self.checks(steady(), self.samples(*[0] * 8))["clocks_limited"], ("good", "in none of 8 samples"))

    def test_unreported_throttling_is_unknown(self):
        power = "0.1,nvml:0,gpu0,power,gpu,power,W,300,\n"
        self.assertEqual(self.checks(steady(), power)["clocks_limited"][0], "unknown")
        self.assertEqual(self.checks(steady(), name="bare")["clocks_limited"], ("unknown", "no samples"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
