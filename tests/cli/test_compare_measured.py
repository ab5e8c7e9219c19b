#!/usr/bin/env python3
# test: serial
"""ipw compare of measured runs on a machine of known power; these tests need an idle CPU."""

import json
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from machines import Intel, Modeled  # noqa: E402
from program import MachineTest, ipw  # noqa: E402
from rundirs import texts_of  # noqa: E402


class MeasuredRuns(MachineTest):
    def profile(self, machine, name, *more):
        out = machine.root / name
        done = ipw(machine, "profile", "--client", "null", "--model", "m", "--dataset", "builtin",
                   "--max-queries", "12", "--idle", "0.1", "--warmup-queries", "0", "--output-dir", out, "--json",
                   *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["output_dir"]

    def test_slower_run_is_worse(self):
        """All queries are in flight at once, so a stall of the test host delays all of them equally: only a stall of
        more than two seconds could hide the difference."""
        on = self.machine(Intel, 50)
        fast = self.profile(on, "fast", "--concurrency", "12", "--client-param", "ttft_ms=20")
        slow = self.profile(on, "slow", "--concurrency", "12", "--client-param", "ttft_ms=2500")
        report = json.loads(ipw(None, "compare", fast, slow, "--ignore-conditions",  # of the test host
                                "--json").stdout)["comparisons"][0]
        self.assertTrue(report["paired"])
        self.assertEqual(report["same_queries"], 12)
        self.assertEqual(report["metrics"]["latency"]["verdict"], "worse")
        self.assertEqual(report["metrics"]["energy_per_query"]["verdict"], "worse")
        self.assertTrue(any("parameter set" in line for line in texts_of(report)), texts_of(report))

    def test_two_commands_get_a_verdict(self):
        on = self.machine(Intel, 50)
        runs = []
        for name, seconds in (("short", "0.1"), ("long", "1.5")):
            done = ipw(on, "run", "--output-dir", on.root / name, "-r", "4", "--", "sleep", seconds)
            self.assertEqual(done.returncode, 0, done.stderr)
            runs += [path for path in (on.root / name).iterdir() if path.is_dir()]
        report = json.loads(ipw(None, "compare", *runs, "--ignore-conditions", "--json").stdout)["comparisons"][0]
        self.assertFalse([line for line in texts_of(report) if "too few" in line], texts_of(report))
        for metric in ("energy_per_query", "latency"):
            row = report["metrics"][metric]
            self.assertEqual((row["test"], row["verdict"]), ("Welch's t with trend", "worse"), row)
        text = ipw(None, "compare", *runs, "--ignore-conditions").stdout
        self.assertIn("Welch's t-test, from the variation between the repeats (-r) of each `ipw run`", " ".join(text.split()))
        self.assertNotIn("--repeat-runs", text)

    def test_measured_against_estimated_is_reported(self):
        measured = self.profile(self.machine(Intel, 50), "m", "--client-param", "ttft_ms=20")
        modeled = self.profile(self.machine(Modeled), "e", "--client-param", "ttft_ms=20")
        report = json.loads(ipw(None, "compare", measured, modeled, "--json").stdout)["comparisons"][0]
        text = "\n".join(texts_of(report))
        self.assertIn("energy of this run is estimated by a model", text)
        self.assertIn("different energy method: 'estimated', baseline 'counter'", text)


if __name__ == "__main__":
    unittest.main(verbosity=2)
