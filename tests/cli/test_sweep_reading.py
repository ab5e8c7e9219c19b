#!/usr/bin/env python3
"""Commands that read a sweep: analyze, export, compare, plot, the catalogue.  The sweeps are made here, so that every
figure in them is known."""

import json
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from program import ipw  # noqa: E402
from sweeps import made_sweep  # noqa: E402


class Reading(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name)

    def knobs(self, settings=12, **more):
        """Energy falls with n, time rises; two repeats that differ by 2 %."""
        attempts = [((n,), {"joules": f * 100 / n, "seconds": n, "accuracy": 0.9, **more})
                    for f in (0.99, 1.01) for n in range(1, settings + 1)]
        attempts += [((1,), {"joules": 1, "seconds": 1, "exit_code": 2}), ((2,), {"joules": 1, "seconds": 1, "flags": "throttled"})]
        return made_sweep(self.path / f"sweep{settings}", ("n",), attempts, command=("work", "{n}"))

    def run_ok(self, *words):
        done = ipw(None, *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout


class Analyze(Reading):
    def test_the_answer_comes_first_and_all_fits_a_screen(self):
        shown = self.run_ok("analyze", self.knobs(100), "--analysis", "sweep")
        self.assertRegex(" ".join(shown.split()), r"^n=100 uses 99\.0 ± [\d.]+ % less energy per run than n=1, in 9900\.0 % more time\.")
        self.assertLessEqual(len(shown.splitlines()), 25)
        self.assertIn("92 more", shown)
        self.assertIn("1 failed, 1 throttled", shown)

    def test_settings_are_means_of_the_attempts_that_count(self):
        sweep = self.knobs()
        result = json.loads(self.run_ok("analyze", sweep, "--analysis", "sweep", "--json"))[str(sweep)]["sweep"]
        rows = result["data"]["settings"]
        self.assertEqual([row["values"]["n"] for row in rows], [str(n) for n in range(12, 0, -1)])  # the least energy first
        for row in rows:
            n = int(row["values"]["n"])
            self.assertAlmostEqual(row["joules"], 100 / n)
            self.assertAlmostEqual(row["edp"], 100)
            self.assertAlmostEqual(row["accuracy"], 0.9)
            self.assertEqual(row["repeats"], 2)
            self.assertTrue(row["pareto_optimal"])
        self.assertEqual({key: result["summary"][key] for key in ("attempts", "failed", "left_out", "per", "baseline")},
                         {"attempts": 26, "failed": 1, "left_out": 2, "per": "run", "baseline": "n=1"})
        self.assertAlmostEqual(result["summary"]["saving_pct"], 100 * (1 - 1 / 12))

    def test_profiles_are_per_query_and_estimates_said(self):
        attempts = [((n,), {"joules": 200 / n, "seconds": 40 / n, "queries": 20, "latency": 2.0 * n, "method": "estimated"})
                    for n in (1, 2)]
        sweep = made_sweep(self.path / "profiles", ("n",), attempts, profile=True)
        result = json.loads(self.run_ok("analyze", sweep, "--analysis", "sweep", "--json"))[str(sweep)]["sweep"]
        self.assertEqual([(row["joules"], row["seconds"]) for row in result["data"]["settings"]], [(5, 4), (10, 2)])
        self.assertEqual((result["summary"]["per"], result["summary"]["estimated"]), ("query", True))
        self.assertIn("estimated, not measured", result["summary"]["conclusion"])
        self.assertIn("± unknown", result["summary"]["conclusion"])


if __name__ == "__main__":
    unittest.main()
