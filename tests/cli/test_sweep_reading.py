#!/usr/bin/env python3
"""Commands that read a sweep: analyze, export, compare, plot, list.  The sweeps are synthetic, so every figure is
known."""

import csv
import io
import json
import random
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from program import ipw  # noqa: E402
from rundirs import query, write_run  # noqa: E402
from sweeps import write_sweep  # noqa: E402


class Reading(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name)

    def knobs(self, settings=12, **more):
        """A sweep whose energy falls and time rises with n; two repeats that differ by 2 %."""
        attempts = [((n,), {"joules": f * 100 / n, "seconds": n, "accuracy": 0.9, **more})
                    for f in (0.99, 1.01) for n in range(1, settings + 1)]
        attempts += [((1,), {"joules": 1, "seconds": 1, "exit_code": 2}), ((2,), {"joules": 1, "seconds": 1, "flags": "throttled"})]
        return write_sweep(self.path / f"sweep{settings}", ("n",), attempts, command=("work", "{n}"))

    def run_ok(self, *words):
        done = ipw(None, *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout


class Analyze(Reading):
    def test_conclusion_comes_first_and_output_fits_one_screen(self):
        shown = self.run_ok("analyze", self.knobs(100), "--analysis", "sweep")
        self.assertRegex(" ".join(shown.split()), r"^n=100 uses 99\.0 ± [\d.]+ % less energy per run than n=1, in 9900\.0 % more time\.")
        self.assertLessEqual(len(shown.splitlines()), 25)
        self.assertIn("92 more", shown)
        self.assertIn("1 failed, 1 throttled", shown)

    def test_verbose_text_has_the_saving_in_percent(self):
        said = self.run_ok("analyze", "-v", self.knobs(), "--analysis", "sweep")
        self.assertRegex(said, r"\n +saving pct +91\.67\n")  # 100 J at n=1, 8.33 J at n=12

    def test_settings_are_means_of_valid_attempts(self):
        sweep = self.knobs()
        result = json.loads(self.run_ok("analyze", sweep, "--analysis", "sweep", "--json"))[str(sweep)]["sweep"]
        rows = result["data"]["settings"]
        self.assertEqual([row["values"]["n"] for row in rows], [str(n) for n in range(12, 0, -1)])  # sorted by energy
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

    def test_profiles_are_per_query_and_estimates_are_labeled(self):
        attempts = [((n,), {"joules": 200 / n, "seconds": 40 / n, "queries": 20, "latency": 2.0 * n, "method": "estimated"})
                    for n in (1, 2)]
        sweep = write_sweep(self.path / "profiles", ("n",), attempts, profile=True)
        result = json.loads(self.run_ok("analyze", sweep, "--analysis", "sweep", "--json"))[str(sweep)]["sweep"]
        self.assertEqual([(row["joules"], row["seconds"]) for row in result["data"]["settings"]], [(5, 4), (10, 2)])
        self.assertEqual((result["summary"]["per"], result["summary"]["estimated"]), ("query", True))
        self.assertIn("estimated, not measured", result["summary"]["conclusion"])
        self.assertIn("cannot be distinguished from noise (no repeats", result["summary"]["conclusion"])

    def sweep_result(self, sweep):
        return json.loads(self.run_ok("analyze", sweep, "--analysis", "sweep", "--json"))[str(sweep)]["sweep"]

    def test_single_runs_show_no_saving(self):
        """The sensor error is small, but the run-to-run variation is unknown: no saving, and no count of equivalent
        settings."""
        figures = {"seconds": 1, "plus_minus": 0.9, "statistical": 0.03}
        sweep = write_sweep(self.path / "single", ("n",), [((n,), {"joules": 30 + n / 10, **figures}) for n in (3, 1, 2)])
        result = self.sweep_result(sweep)
        self.assertRegex(result["summary"]["conclusion"], r"^n=1 used 0\.7 % less energy per run .*cannot be distinguished from noise")
        self.assertIsNone(result["summary"]["saving_pct"])
        for best in result["data"]["best"]:
            self.assertIsNone(best["not_distinguishable"], best["objective"])
        twice = write_sweep(self.path / "twice", ("n",), [((n,), {"joules": (30 + n) * f, **figures})
                                                        for f in (0.98, 1.02) for n in (2, 1, 20)])
        self.assertEqual(self.sweep_result(twice)["data"]["best"][0]["not_distinguishable"], 1)

    def quality_sentence(self, name, better, rows):
        attempts = [((n,), {"joules": joules, "seconds": 1, "quality": {name: (value, better)}}) for n, joules, value in rows]
        sweep = write_sweep(self.path / name, ("n",), attempts, command=("--workload", "x", "{n}"), profile=True)
        said = " ".join(self.run_ok("analyze", sweep, "--analysis", "sweep").split())
        return said[said.find("In these runs"):said.find(" best objective")]

    def test_cheapest_setting_of_nearly_the_best_quality_is_named(self):
        self.assertEqual(self.quality_sentence("map_50", "higher", ((1, 40, 0.90), (2, 30, 0.86), (3, 20, 0.85), (4, 10, 0.5))),
                         "In these runs n=1 has the best map_50, 0.9; n=2 comes within 5 % of it with the least energy, 25 % less.")
        self.assertEqual(self.quality_sentence("wer", "lower", ((1, 40, 0.100), (2, 30, 0.105), (3, 20, 0.106))),
                         "In these runs n=1 has the best wer, 0.1; n=2 comes within 5 % of it with the least energy, 25 % less.")
        self.assertEqual(self.quality_sentence("fid", "lower", ((1, 40, 2), (2, 30, 3), (3, 20, 4))),
                         "In these runs n=1 has the best fid, 2, and nothing cheaper comes within 5 % of it.")
        self.assertEqual(self.quality_sentence("top_1", "higher", ((1, 40, 0.9), (2, 30, 0.9))), "")

    def test_incomplete_sweep_is_reported_first(self):
        sweep = write_sweep(self.path / "part", ("gpu-clock",), [((900,), {"joules": 5, "seconds": 1})],
                           planned=[(1200,), (600,)], ended=False)
        conclusion = self.sweep_result(sweep)["summary"]["conclusion"]
        self.assertIn("only one clock was measured", conclusion)
        self.assertIn("2 of 3 settings were not measured", conclusion)

    def test_whole_runs_are_compared_if_numbers_of_queries_differ(self):
        """A text of ten or of three windows: a window of the latter uses more energy, the whole text less."""
        sweep = write_sweep(self.path / "windows", ("w",), [
            ((w,), {"joules": e * f + 50, "overhead": 50, "seconds": s * f, "queries": n, "latency": s / n})
            for f in (0.99, 1.01) for w, e, s, n in ((128, 33.0, 10.0, 10), (512, 16.0, 6.0, 3))], profile=True)
        result = self.sweep_result(sweep)
        self.assertEqual(result["summary"]["per"], "run")
        self.assertRegex(result["summary"]["conclusion"], r"^w=512 uses 51\.5 .* less energy per run than w=128, in 40\.0 % less")
        self.assertIn("different numbers of queries", result["summary"]["conclusion"])
        self.assertEqual([(row["values"]["w"], round(row["joules"], 9)) for row in result["data"]["settings"]],
                         [("512", 16), ("128", 33)])
        report = json.loads(self.run_ok("optimize", sweep, "--json"))
        self.assertEqual(report["recommended"]["setting"], "w=512")
        self.assertIn("uneven_queries", report["flags"])
        even = write_sweep(self.path / "even", ("w",), [((w,), {"joules": w, "seconds": 1, "queries": 5}) for w in (1, 2)],
                          profile=True)
        self.assertEqual(self.sweep_result(even)["summary"]["per"], "query")


class Best(Reading):
    """The best setting has one definition: analysis, report and `ipw optimize` name the same one."""
    NAMES = {"energy": "least energy", "edp": "least EDP", "ed2p": "least ED2P"}

    def sweeps(self):
        """Noisy sweeps of settings, of many clocks, which are fitted, and of a few."""
        for seed in range(4):
            noise = random.Random(seed)
            for name, knob, values in (("settings", "n", range(1, 9)), ("clocks", "gpu-clock", range(600, 1500, 60)),
                                       ("few", "gpu-clock", (600, 900, 1200))):
                attempts = []
                for _ in range(3):
                    for x in values:
                        share = x / max(values)
                        seconds = (0.4 + 0.6 / share) * noise.gauss(1, 0.01)
                        attempts.append(((x,), {"seconds": seconds, "idle_w": 50, "activity": {"sm_active": 0.9, "utilization": 0.9},
                                                "joules": (60 + 200 * share ** 3) * seconds * noise.gauss(1, 0.02)}))
                attempts[noise.randrange(len(attempts))][1]["flags"] = "throttled"
                yield f"{name} {seed}", write_sweep(self.path / f"{name}{seed}", (knob,), attempts)

    def test_analysis_report_and_optimize_name_the_same_setting(self):
        recommended = 0
        for title, sweep in self.sweeps():
            page = self.path / "page.html"
            result = json.loads(self.run_ok("analyze", sweep, "--analysis", "sweep", "--json"))[str(sweep)]["sweep"]
            best = {row["objective"]: row for row in result["data"]["best"]}
            self.run_ok("report", sweep, "-o", page)
            text = page.read_text()
            for objective, name in self.NAMES.items():
                with self.subTest(sweep=title, objective=objective):
                    row = best[name]
                    self.assertIn(f'"objective":"{name}","setting":"{row["setting"]}"', "".join(text.split("\n")))
                    report = json.loads(self.run_ok("optimize", sweep, "--objective", objective, "--json"))
                    choice = report["recommended"]
                    if choice:
                        recommended += 1
                        self.assertEqual(choice["setting"] or f"gpu-clock={choice['freq_mhz']:g}", row["setting"])
                    else:  # withdrawn, since it cannot be distinguished from the baseline: the reason names it
                        self.assertTrue(report["reason"].startswith((row["setting"] + " ", row["setting"].split("=")[1] + " MHz ")),
                                        report["reason"])
                        if not title.startswith("clocks"):
                            self.assertGreater(row["not_distinguishable"], 0)
        self.assertGreater(recommended, 20)

    def test_best_of_many_equal_settings_saves_nothing(self):
        """The best of 30 noisy ones looks better than it is: a test of it alone would find a saving."""
        for seed in range(5):
            noise = random.Random(seed)
            sweep = write_sweep(self.path / f"equal{seed}", ("n",), [
                ((n,), {"joules": 100 * noise.gauss(1, 0.02), "seconds": 1}) for _ in range(3) for n in range(30)])
            result = json.loads(self.run_ok("analyze", sweep, "--analysis", "sweep", "--json"))[str(sweep)]["sweep"]
            self.assertRegex(result["summary"]["conclusion"], "^No setting is shown to save energy: .* not significant")
            self.assertGreater(result["data"]["best"][0]["not_distinguishable"], 20)


class OtherCommands(Reading):
    def test_export_has_a_row_per_attempt(self):
        sweep = write_sweep(self.path / "s", ("n", "point"), [
            ((1, "=x"), {"joules": 10, "seconds": 2, "accuracy": 0.5, "plus_minus": 0.25, "temperature_c": 61, "idle_w": 3}),
            ((4, "y"), {"joules": 6, "seconds": 3, "flags": "throttled"}), ((4, "y"), {"joules": None, "seconds": 1})])
        rows = list(csv.DictReader(io.StringIO(self.run_ok("export", sweep, "--to", "csv"))))
        self.assertEqual([(row["n"], row["point"], row["repeat"], row["left_out"]) for row in rows],
                         [("1", "1", "1", "no"), ("4", "2", "1", "throttled"), ("4", "2", "2", "without energy or time")])
        self.assertEqual(rows[0]["knob_point"], "'=x")  # escaped spreadsheet formula
        self.assertEqual([float(rows[0][key]) for key in ("energy_j", "energy_plus_minus_j", "time_s", "power_w", "edp_js",
                                                          "ed2p_js2", "accuracy", "temperature_c", "idle_w")],
                         [10, 0.25, 2, 5, 20, 40, 0.5, 61, 3])
        self.assertEqual((rows[1]["energy_j"], rows[2]["energy_j"]), ("6", ""))  # measured, and unknown
        lines = [json.loads(line) for line in self.run_ok("export", sweep, "--to", "jsonl").splitlines()]
        self.assertEqual((lines[0]["n"], lines[0]["edp_js"], lines[2]["energy_j"]), ("1", 20, None))
        self.assertTrue((sweep / lines[0]["directory"]).is_dir())
        for words, said in ((("--to", "prom"), "csv or jsonl"),
                            (("--to", "csv", "--output-dir", self.path / "d"), "csv writes a file: use -o FILE")):
            done = ipw(None, "export", sweep, *words)
            self.assertEqual(done.returncode, 2)
            self.assertIn(said, done.stderr)

    def test_exported_sweep_has_same_optimum(self):
        sweep = self.knobs()
        table = self.path / "table.csv"
        self.run_ok("export", sweep, "--to", "csv", "-o", table)
        ours = json.loads(self.run_ok("optimize", sweep, "--objective", "energy", "--json"))
        theirs = json.loads(self.run_ok("optimize", "--input", table, "--setting", "n", "--where", "left_out=no",
                                        "--objective", "energy", "--json"))
        self.assertEqual((ours["recommended"]["setting"], theirs["recommended"]["setting"]), ("n=12", "12"))
        self.assertAlmostEqual(ours["savings_pct"]["energy"], theirs["savings_pct"]["energy"])

    def test_list_runs_shows_sweep_and_its_points(self):
        sweep = self.knobs(2)
        listed = json.loads(self.run_ok("list", "runs", self.path, "--json"))["runs"]
        self.assertEqual([(run["directory"], run["kind"]) for run in listed], [(sweep.name, "sweep")])
        points = json.loads(self.run_ok("list", "runs", sweep, "--json"))["runs"]
        self.assertEqual(sorted(run["directory"].split("/")[1] for run in points),
                         ["p001_r1", "p001_r2", "p001_r3", "p002_r1", "p002_r2", "p002_r3"])
        self.assertEqual({run["kind"] for run in points}, {"run"})

    def test_runs_outside_a_sweep_are_refused(self):
        sweep = self.knobs(2)
        (self.path / "link").symlink_to(sweep)
        self.run_ok("analyze", self.path / "link")  # named by the user
        journal = (sweep / "records.jsonl").read_text()
        for run in ("../outside", "/etc", "points/../../outside", "."):
            lines = [json.loads(line) for line in journal.splitlines()]
            lines[1]["run"] = run
            (sweep / "records.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
            for words in (["analyze", sweep], ["export", sweep, "--to", "csv", "-o", "-"], ["sweep", "--resume", sweep]):
                done = ipw(None, *words)
                self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
                self.assertIn(f"the run '{run}' of setting 1 is not below", done.stderr)

    def test_settings_of_one_sweep_are_compared(self):
        sweep = self.path / "sweep"
        write_sweep(sweep, ("n",), [((n,), {"joules": 1, "seconds": 1}) for _ in range(2) for n in (1, 2)])
        for run in sweep.glob("points/*/run_x"):
            shutil.rmtree(run)
            joules = 10.0 if "p001" in str(run) else 5.0
            write_run(run, [query(i, joules=joules + 0.01 * i) for i in range(20)])
        report = json.loads(self.run_ok("compare", sweep, "--json"))
        side, = report["comparisons"]
        self.assertEqual(side["runs"], {"baseline": 2, "run": 2})  # repeats form one side
        one = write_sweep(self.path / "one", ("n",), [((1,), {"joules": 1, "seconds": 1})], planned=[(2,)], ended=False)
        done = ipw(None, "compare", one)
        self.assertEqual(done.returncode, 1)
        self.assertIn("one measured setting", done.stderr)
        self.assertNotIn("usage", done.stderr)
        done = ipw(None, "compare", sweep, sweep)
        self.assertEqual(done.returncode, 2)
        self.assertIn(f"{sweep}/points/p001_r* --", done.stderr)


if __name__ == "__main__":
    unittest.main()
