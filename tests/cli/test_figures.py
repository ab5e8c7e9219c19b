#!/usr/bin/env python3
"""What ipw analyze and compare make of runs whose figures the test chose: energies that are none, repeats,
uncertainties, means over a part of the queries.  By hand, and by NumPy and SciPy where there are draws."""

import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import oracle  # noqa: E402

oracle.use()

import json  # noqa: E402
import math  # noqa: E402
import tempfile  # noqa: E402
import unittest  # noqa: E402
from pathlib import Path  # noqa: E402

from program import ipw  # noqa: E402
from rundirs import MODEL, query, summary, write_run  # noqa: E402

try:
    import numpy as np
    import scipy.stats as st
except ImportError as error:
    print(f"skipped: {error} (set IPW_PYTHON to an interpreter that has numpy and scipy)")
    sys.exit(77)
missing = [part["missing"] for part in json.loads(ipw(None, "doctor", "--json").stdout)["parts"]
           if part["name"] == "cJSON" and not part["available"]]
if missing:
    print(f"skipped: {missing[0]}")
    sys.exit(77)


class FiguresTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ipw-figures-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_of(self, queries, name="run", **facts):
        return write_run(self.folder / name, queries, **facts)

    def ipw(self, *words, code=0):
        self.done = ipw(None, *words)
        self.assertEqual(self.done.returncode, code, self.done.stdout + self.done.stderr)
        return self.done.stdout

    def analyze(self, path):
        return json.loads(self.ipw("analyze", path, "--json"))[str(path)]

    def compare(self, a, b, *more, code=0):
        got = json.loads(self.ipw("compare", a, b, "--json", *more, code=code))
        return got["comparisons"][0]

    def check(self, analyses, name):
        found = [check for check in analyses["quality"]["data"]["checks"] if check["check"] == name]
        return found[0] if found else None


def changed(line, **energy):
    line["ipw"]["energy"].update(energy)
    return line


class NoEnergy(FiguresTest):
    def test_rounding_of_a_difference_is_nothing(self):
        """At its ceiling a machine spends at rest what it spends at work; 1e-13 J are left of the two."""
        def run(name, residue):
            return self.run_of([changed(query(i, joules=0.3, tokens=20 + i), idle_joules=0.3 - residue * (1 + i % 3),
                                        active_joules=residue * (1 + i % 3)) for i in range(40)], name)
        a, b = run("a", 8e-15), run("b", 9e-13)
        self.assertEqual(self.analyze(b)["efficiency"]["summary"]["active_joules_per_output_token"], 0)
        active = self.compare(a, b, "--fail-if", "active_energy > +5%", "--confident")["metrics"]["active_energy"]
        self.assertEqual((active["baseline"]["value"], active["run"]["value"], active["difference"]), (0, 0, 0))
        self.assertIsNone(active["relative"])
        self.assertEqual(active["verdict"], "no evidence")

    def test_a_small_energy_above_idle_stays(self):
        path = self.run_of([changed(query(i, joules=10), idle_joules=10 - 1e-6, active_joules=1e-6)
                            for i in range(20)])
        got = self.analyze(path)["efficiency"]["summary"]["active_joules_per_output_token"]
        self.assertAlmostEqual(got, 1e-6 / 20, delta=1e-15)

    def test_below_nothing_is_unknown(self):
        good = self.run_of([query(i, joules=10 + i % 5, correct=i % 2) for i in range(40)], "good")
        bad = self.run_of([query(i, joules=-5 if i < 30 else 10 + i % 5, correct=i % 2) for i in range(40)], "bad")
        got = self.analyze(bad)
        self.assertEqual(got["efficiency"]["summary"]["energy_known"], 10)
        self.assertEqual(got["efficiency"]["summary"]["joules_per_query"], 12)
        self.assertEqual(self.check(got, "negative_energy")["verdict"], "warning")
        self.assertIn("30 of 40", self.check(got, "negative_energy")["detail"])
        self.assertIsNone(self.check(self.analyze(good), "negative_energy"))
        self.assertIn("below 0", self.ipw("analyze", bad))
        compared = self.compare(good, bad)
        self.assertTrue(any("30 energies of this run are below 0" in line for line in compared["warnings"]))
        energy = compared["metrics"]["energy_per_query"]
        self.assertEqual((energy["run"]["queries"], energy["run"]["value"], energy["difference"]), (10, 12, 0))

    def test_nothing_but_below_nothing(self):
        good = self.run_of([query(i, joules=10 + i % 5) for i in range(40)], "good")
        bad = self.run_of([query(i, joules=-5) for i in range(40)], "bad", busy=-5.0)
        got = self.analyze(bad)
        self.assertEqual(self.check(got, "energy")["verdict"], "warning")
        self.assertNotIn("joules", got["efficiency"]["summary"])
        metric = self.compare(good, bad)["metrics"]["energy_per_query"]
        self.assertIsNone(metric["run"]["value"])
        self.assertEqual(metric["verdict"], "not known")


if __name__ == "__main__":
    unittest.main(verbosity=2)
