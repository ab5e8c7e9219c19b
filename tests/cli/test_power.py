#!/usr/bin/env python3
"""Command-line tests of ipw power: on synthetic data, and on public measurements if present ($IPW_SHARED, or shared/ in
the source tree)."""

import csv
import itertools
import json
import math
import os
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from program import ipw  # noqa: E402

SOURCE = Path(os.environ.get("IPW_SOURCE", Path(__file__).parents[2])).resolve()
DATA = Path(os.environ.get("IPW_SHARED", SOURCE.parent / "shared")) / "data/dvfs"
AI, V100, CLOCKS = DATA / "ai_runs_dev.csv", DATA / "v100_fgcs_dev.csv", DATA / "supported_clocks.csv"
needs_data = unittest.skipUnless(AI.exists(), f"no measurements at {DATA}")


def knee_rows(application="work", fmax=1400, noise=0.0):
    """(clock, watts, seconds) with a knee at 1000 MHz, a cubic power curve and 30 W idle power."""
    for i in range(0, 61):
        mhz = 500 + 15 * i
        z, u = mhz / fmax - 1, fmax / mhz
        wobble = 1 + noise * math.sin(37 * i + len(application))
        yield mhz, (220 + 320 * z + 260 * z * z + 90 * z ** 3) * wobble, (10 + 9 * max(0, u - 1.4)) * wobble


def write_csv(path, header, rows):
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


class PowerTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = Path(self.folder.name)

    def fails(self, code, *words):
        done = ipw(None, "power", *words)
        self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        return done.stderr

    def json(self, *words):
        done = ipw(None, "power", *words, "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def found(self, report, check):
        return {(row["gpu"], row["application"]) for row in report["findings"] if row["code"] == check}


class SyntheticData(PowerTest):
    def sweep(self, header=("freq_mhz", "power_w", "time_s"), **options):
        return write_csv(self.path / "made.csv", header, knee_rows(**options))

    def test_fit_recovers_curve_and_is_saved(self):
        report = self.json("fit", "--input", self.sweep(), "-o", self.path / "m.json")
        at = report["curves"][0]["at_fmax"]
        self.assertAlmostEqual(at["power_w"]["value"], 220, delta=0.1)
        self.assertAlmostEqual(at["time_s"]["value"], 10, delta=0.05)
        rows = self.json("predict", self.path / "m.json", "--freq", "1400,800,500")["predictions"]
        for row, mhz in zip(rows, (1400, 800, 500)):
            wanted = next(made for made in knee_rows() if made[0] == mhz)
            self.assertAlmostEqual(row["power_w"]["value"], wanted[1], delta=0.002 * wanted[1])
            self.assertAlmostEqual(row["time_s"]["value"], wanted[2], delta=0.01 * wanted[2])
            self.assertAlmostEqual(row["energy_j"]["value"], wanted[1] * wanted[2], delta=0.01 * wanted[1] * wanted[2])
            self.assertAlmostEqual(row["edp_js"], row["energy_j"]["value"] * row["time_s"]["value"], places=6)
            self.assertFalse(row["extrapolated"])
        saved = json.loads((self.path / "m.json").read_text())
        self.assertEqual(saved["provenance"]["rows"], 61)
        self.assertEqual(saved["provenance"]["data"], "made.csv")

    def test_columns_are_mapped_and_rows_selected(self):
        rows = [("x", *row) for row in knee_rows()] + [("y", mhz, 2 * p, t) for mhz, p, t in knee_rows()]
        path = write_csv(self.path / "other.csv", ("what", "clk", "watts", "t"), rows)
        report = self.json("fit", "--input", path, "--columns", "freq_mhz=clk,power_w=watts,time_s=t",
                           "--where", "what=y")
        self.assertEqual(report["rows"], 61)
        self.assertAlmostEqual(report["curves"][0]["at_fmax"]["power_w"]["value"], 440, delta=0.2)

    def test_predicts_new_application_from_probes(self):
        ipw(None, "power", "fit", "--input", self.sweep(), "-o", self.path / "m.json")
        points = {mhz: (p, t) for mhz, p, t in knee_rows()}
        probes = [word for mhz in (1400, 1010, 620) for word in
                  ("--probe", f"{mhz}:{points[mhz][0]}:{points[mhz][1]}")]
        report = self.json("predict", self.path / "m.json", *probes, "--freq", "500-1400:15")
        self.assertEqual(report["probes"], 3)
        errors = [abs(row["power_w"]["value"] / points[row["freq_mhz"]][0] - 1) for row in report["predictions"]]
        self.assertEqual(len(errors), 61)
        self.assertLess(sum(errors) / len(errors), 0.03)

    def test_eight_probes_are_a_sweep_in_any_order(self):
        ipw(None, "power", "fit", "--input", self.sweep(), "-o", self.path / "m.json")
        points = {mhz: (p, t) for mhz, p, t in knee_rows()}
        probes = [("--probe", f"{mhz}:{points[mhz][0]}:{points[mhz][1]}") for mhz in range(1400, 500, -120)]
        reports = [self.json("predict", self.path / "m.json", *itertools.chain(*order), "--freq", "1100,860")["predictions"]
                   for order in (probes, probes[::-1])]
        self.assertEqual(*reports)
        for row in reports[0]:
            self.assertAlmostEqual(row["power_w"]["value"], points[row["freq_mhz"]][0], delta=0.03 * points[row["freq_mhz"]][0])

    def test_bad_input_is_reported(self):
        empty = self.path / "empty.csv"
        empty.write_text("")
        self.assertIn("empty", self.fails(1, "fit", "--input", empty))
        head = write_csv(self.path / "head.csv", ("freq_mhz", "power_w"), [])
        self.assertIn("no rows", self.fails(1, "fit", "--input", head))
        word = write_csv(self.path / "word.csv", ("freq_mhz", "power_w"), [("510", "much")])
        self.assertIn("word.csv:2: power_w 'much': not a number", self.fails(1, "fit", "--input", word))
        bad = write_csv(self.path / "bad.csv", ("freq_mhz", "power_w", "energy_j"),
                        [(510, -3, 4), (0, 5, 5), (520, "nan", "nan"), (530, 4, -1)])
        self.assertIn("none of 4 rows is usable", self.fails(1, "fit", "--input", bad))
        self.assertIn("no column of frequencies",
                      self.fails(1, "fit", "--input", write_csv(self.path / "no.csv", ("a", "power_w"), [(1, 2)])))
        self.assertIn("missing measurements", self.fails(2, "fit"))
        self.assertIn("no column 'zz'", self.fails(1, "fit", "--input", self.sweep(), "--where", "zz=1"))
        self.assertIn("selects none", self.fails(1, "fit", "--input", self.sweep(), "--where", "power_w=1"))
        self.assertIn("unknown model 'rooflin': did you mean 'roofline'?",
                      self.fails(2, "fit", "--input", self.sweep(), "--model", "rooflin"))
        (self.path / "m.json").write_text('{"format":"ipw-power-model","version":1,"model":"roofline","state":{}}')
        self.assertIn("damaged", self.fails(1, "predict", self.path / "m.json", "--freq", "510"))
        self.assertIn("unknown command", self.fails(2, "bake"))
        for words in (("fit", "--model", "linear"), ("fit",), ("validate", "--model", "poly2,ridge")):
            self.assertIn("--published applies to fgcs", self.fails(2, *words, "--input", self.sweep(), "--published"))

    def test_bad_rows_are_flagged_by_every_command(self):
        """A bad energy, a duplicate clock, unordered times, a GPU without a clock list, an unsupported clock: reported
        without a crash."""
        header = ("gpu", "freq_mhz", "power_w", "time_s", "energy_j", "timestamp_s")
        good = [("A100", mhz, p, t, p * t, 1000 + i) for i, (mhz, p, t) in enumerate(knee_rows(noise=0.01))]
        clocks = write_csv(self.path / "c.csv", ("gpu", "graphics_mhz"), [("A100", row[1]) for row in good])
        flaws = {"invalid_value": good + [("A100", 515, 100, 10, "nan", 1070), ("A100", 530, 100, 10, -5, 1071)],
                 "duplicate_points": good + [good[7][:5] + (1072,)],
                 "unordered_timestamps": good[:9] + [good[9][:5] + (1003,)] + good[10:],
                 "unknown_gpu": [("B7", *row[1:]) for row in good],
                 "illegal_clock": good + [("A100", 1003, 100, 10, 1000, 1073)]}
        for check, rows in flaws.items():
            path = write_csv(self.path / f"{check}.csv", header, rows)
            for words in (("power", "fit"), ("power", "validate"), ("optimize",)):
                done = ipw(None, *words, "--json", "--input", path, "--clocks", clocks)
                self.assertEqual(done.returncode, 0, (check, words, done.stderr))
                self.assertIn(check, {row["code"] for row in json.loads(done.stdout)["findings"]}, words)

    def test_one_point_is_fitted_and_flagged(self):
        path = write_csv(self.path / "one.csv", ("freq_mhz", "power_w", "time_s"), [(1400, 220, 10)])
        report = self.json("fit", "--input", path)
        self.assertEqual(self.found(report, "too_few_points"), {(None, None)})
        self.assertAlmostEqual(report["curves"][0]["at_fmax"]["energy_j"]["value"], 2200, places=3)
        text = ipw(None, "power", "fit", "--input", path).stdout
        self.assertIn("1 curve; no interval", text)
        self.assertNotIn("±", text)
        self.assertIn("1 curve; ± is 90 %", ipw(None, "power", "fit", "--input", self.sweep()).stdout)

    def test_data_checks_flag_their_own_input_only(self):
        named = write_csv(self.path / "named.csv", ("gpu", "application", "freq_mhz", "power_w", "time_s"),
                          [("A100", "llama", *row) for row in knee_rows(noise=0.01)])
        few = write_csv(self.path / "few.csv", ("freq_mhz", "power_w", "time_s"), [(1400, 220, 10), (1000, 150, 12)])
        done = ipw(None, "optimize", "--input", named, "--input", few, "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        flags = {row["application"]: row["flags"] for row in json.loads(done.stdout)["applications"]}
        self.assertNotIn("too_few_points", flags["llama"])
        self.assertIn("too_few_points", flags[None])

    def test_probe_below_highest_clock(self):
        model = self.path / "m.json"
        ipw(None, "power", "fit", "--input", self.sweep(), "--gpu", "A100", "-o", model)
        points = {mhz: (p, t) for mhz, p, t in knee_rows()}
        probe = ("--probe", f"800:{points[800][0]}:{points[800][1]}", "--freq", "1400,800")
        self.assertIn("--freq 1400 is above the highest probe, 800 MHz: give --fmax",
                      self.fails(2, "predict", model, *probe))
        given = self.json("predict", model, *probe, "--fmax", 1400)["predictions"]
        self.assertEqual(self.json("predict", model, *probe, "--gpu", "A100")["predictions"], given)
        self.assertGreater(given[0]["power_w"]["value"], 1.2 * given[1]["power_w"]["value"])
        self.json("predict", model, *probe[:2], "--freq", "800,600")


@needs_data
class DataProblems(PowerTest):
    """Known problems of the public measurements."""

    @classmethod
    def setUpClass(cls):
        cls.ai = json.loads(ipw(None, "power", "fit", "--json", "--input", AI, "--clocks", CLOCKS).stdout)

    def test_cold_baselines_are_named_and_left_out(self):
        cold = self.found(self.ai, "cold_baseline")
        for pair in (("A100", "vit"), ("A100", "whisper"), ("V100", "whisper"), ("A100", "stablediffusion")):
            self.assertIn(pair, cold)
        self.assertNotIn(("V100", "stablediffusion"), cold)
        vit = next(row for row in self.ai["curves"] if row["application"] == "vit")
        self.assertLess(vit["at_fmax"]["time_s"]["value"], 60)  # 383 s in the rows

    def test_idle_gpus_are_void(self):
        self.assertEqual(self.found(self.ai, "idle_gpu"),
                         {("A100", "vit"), ("A100", "whisper"), ("V100", "whisper")})
        void = {(row["gpu"], row["application"]) for row in self.ai["curves"] if row["invalid"]}
        self.assertEqual(void, self.found(self.ai, "idle_gpu"))

    def test_identical_times_are_not_used(self):
        report = self.json("fit", "--input", V100, "--gpu", "V100")
        self.assertEqual(self.found(report, "identical_raw_times"), {(None, None)})
        self.assertEqual(self.found(report, "identical_times"), set())
        raw = self.json("fit", "--input", V100, "--gpu", "V100", "--columns", "time_s=run_time_s_raw")
        copied = {application for _, application in self.found(raw, "identical_times")}
        self.assertEqual(len(copied), 12)
        for row in raw["curves"]:
            self.assertEqual(row["at_fmax"]["energy_j"]["value"] is None, row["application"] in copied)

    def test_unsupported_clocks_are_left_out(self):
        with open(AI) as file:
            rows = list(csv.DictReader(file))[:30]
        rows[3]["freq_mhz"] = "1403"
        path = write_csv(self.path / "off.csv", rows[0].keys(), (row.values() for row in rows))
        report = self.json("fit", "--input", path, "--clocks", CLOCKS)
        self.assertEqual(self.found(report, "illegal_clock"), {("A100", "llama")})


@needs_data
class HeldOutErrors(PowerTest):
    """Error bounds for held-out public measurements."""

    def scores(self, *words):
        return self.json("validate", *words)["validations"][0]

    def test_probes_of_a_held_out_application(self):
        three = self.scores("--input", V100, "--leave-out", "application", "--probes", 3)
        self.assertEqual((three["probes"], three["folds"], three["leaks"]), (3, 14, False))
        self.assertLessEqual(three["power_w"]["mape"], 0.035)
        self.assertLessEqual(three["time_s"]["mape"], 0.05)
        four = self.scores("--input", V100, "--leave-out", "application", "--probes", 4)
        self.assertLessEqual(four["power_w"]["mape"], 0.025)
        self.assertLessEqual(four["time_s"]["mape"], 0.05)
        for found in (three, four):
            for figure in ("power_w", "time_s", "energy_j"):
                self.assertGreater(found[figure]["coverage"], 0.85, figure)
                self.assertLess(found[figure]["coverage"], 0.95, figure)
            self.assertLess(found["edp_regret"]["mean"], 0.05)

    def test_probes_of_a_held_out_gpu(self):
        found = self.scores("--input", AI, "--leave-out", "gpu")
        self.assertEqual(found["folds"], 3)
        self.assertLess(found["power_w"]["mape"], 0.06)
        self.assertLess(found["edp_regret"]["mean"], 0.05)
        void = {row["application"] for row in found["curves"] if row["edp_regret"] is None}
        self.assertEqual(void, {"vit", "whisper"})
        for model in ("roofline", "ensemble"):
            scores = self.scores("--input", AI, "--leave-out", "gpu", "--model", model)
            for figure in ("power_w", "time_s", "energy_j"):
                self.assertGreaterEqual(scores[figure]["coverage"], 0.88, (model, figure))

    def test_activities_alone_are_worse_and_random_split_hides_it(self):
        for model in ("fgcs", "poly2"):
            alone = self.scores("--input", V100, "--leave-out", "application", "--model", model)
            self.assertEqual(alone["probes"], 0)
            self.assertGreater(alone["power_w"]["mape"], 0.1)
        random = self.scores("--input", V100, "--leave-out", "random", "--model", "poly2")
        self.assertTrue(random["leaks"])
        self.assertLess(random["power_w"]["mape"], 0.8 * alone["power_w"]["mape"])

    def test_published_model_is_fitted_to_two_kernels(self):
        """A fit to DGEMM and STREAM gives the published coefficients, up to rounding in the public data."""
        with open(V100) as file:
            rows = [row for row in csv.DictReader(file) if row["application"] in ("dgemm", "stream")]
        path = write_csv(self.path / "two.csv", rows[0].keys(), (row.values() for row in rows))
        self.json("fit", "--input", path, "--model", "fgcs", "-o", self.path / "m.json")
        power = json.loads((self.path / "m.json").read_text())["state"]["power"]
        for found, wanted in zip(power, (-1.00224, 0.83927, 0.10419, 0.76658)):
            self.assertAlmostEqual(found, wanted, delta=6e-6)

    def test_max_mape_sets_exit_status(self):
        words = ("validate", "--input", V100, "--leave-out", "application")
        self.assertTrue(self.json(*words, "--max-mape", 5)["pass"])
        done = ipw(None, "power", *words, "--max-mape", 1)
        self.assertEqual(done.returncode, 1)
        self.assertIn("FAIL: power and time MAPE beyond 1 %", done.stdout)


if __name__ == "__main__":
    unittest.main()
