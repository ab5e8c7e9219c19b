#!/usr/bin/env python3
# test: real time
"""Runs saved by `ipw run --save` can be listed, analyzed, compared and exported."""
import csv
import io
import json
import os
import sqlite3
import tempfile
import unittest
from pathlib import Path

from program import ipw


class Saved(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix="ipw-saved-")
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = Path(scratch.name) / "my runs"
        for _ in range(2):
            done = ipw(None, "run", "--output-dir", cls.folder, "-r", "3", "--", "sh", "-c", "sleep 0.05")
            assert done.returncode == 0, done.stderr
            assert "saved in " in done.stderr, done.stderr
        cls.runs = sorted(path for path in cls.folder.iterdir() if path.is_dir())

    def test_files_of_saved_run(self):
        self.assertEqual(len(self.runs), 2)  # even within one second
        for run in self.runs:
            self.assertRegex(run.name, r"^run_\w+_sh__c_sleep_0_05_\d{8}T\d{6}Z(-\d+)?$")
            lines = [json.loads(line) for line in (run / "records.jsonl").read_text().splitlines()]
            self.assertEqual([line["kind"] for line in lines], ["run"] + 3 * ["query"])
            self.assertEqual((lines[0]["run_kind"], lines[0]["format"]), ("run", 1))
            self.assertEqual([line["ipw"]["repeat"] for line in lines[1:]], [0, 1, 2])
            self.assertEqual({line["ipw"]["exit_code"] for line in lines[1:]}, {0})
            self.assertGreater(lines[1]["model_metrics"]["sh -c sleep 0.05"]["latency_metrics"]["total_query_seconds"], 0.05)
            summary = json.loads((run / "summary.json").read_text())
            self.assertEqual((summary["run_kind"], summary["command"]), ("run", ["sh", "-c", "sleep 0.05"]))
            self.assertEqual(summary["ipw"]["completed"], 3)
            self.assertTrue((run / "samples.csv").read_text().startswith("t_s,sensor,"))
            self.assertEqual(len((run / "spans.jsonl").read_text().splitlines()), 3)

    def listed(self, *arguments):
        done = ipw(None, "list", "runs", *arguments)
        if "JSON" in done.stderr and done.returncode == 1:
            self.skipTest(done.stderr)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_saved_runs_are_listed(self):
        def unique(pairs):
            self.assertEqual(len(dict(pairs)), len(pairs), pairs)
            return dict(pairs)
        runs = json.loads(self.listed(self.folder, "--json"), object_pairs_hook=unique)["runs"]
        self.assertEqual({(run["complete"], run["finished"] > run["started"]) for run in runs}, {(True, True)})
        self.assertEqual([run["directory"] for run in runs], [run.name for run in self.runs])
        self.assertEqual({(run["kind"], run["model"], run["queries"]) for run in runs}, {("run", "sh -c sleep 0.05", 3)})
        self.assertIn(self.runs[0].name, self.listed(self.folder))
        for run in self.runs:  # an estimate is marked as one
            energy = json.loads((run / "summary.json").read_text())["ipw"]["energy"]
            row = next(line for line in self.listed(self.folder).splitlines() if f" {run.name} " in line)
            mark = "~" if energy["method"] == "estimated" else ""
            self.assertRegex(row, rf" 3 \w+  +{mark}\d[\d.]* ± \d[\d.]* .?J ")
        self.assertNotEqual(ipw(None, "list", "runs", self.folder / "nowhere").returncode, 0)

    def index(self):
        with sqlite3.connect(self.folder / "catalog.db") as database:
            return [row[0] for row in database.execute("SELECT directory FROM runs ORDER BY directory")]

    def test_index_is_rebuilt(self):
        self.listed(self.folder)
        if not (self.folder / "catalog.db").exists():
            self.skipTest("SQLite is not installed")
        names = [run.name for run in self.runs]
        self.assertEqual(self.index(), names)
        (self.folder / "catalog.db").unlink()
        self.listed(self.folder)
        self.assertEqual(self.index(), names)
        with sqlite3.connect(self.folder / "catalog.db") as database:
            database.execute("UPDATE runs SET directory = 'gone' WHERE directory = ?", (names[0],))
        self.listed(self.folder)
        self.assertEqual(self.index(), names)
        with sqlite3.connect(self.folder / "catalog.db") as database:  # the schema of version 1, with fewer columns
            database.executescript("ALTER TABLE runs DROP COLUMN joules_per_query; PRAGMA user_version = 1")
        self.listed(self.folder)
        self.assertEqual(self.index(), names)
        with sqlite3.connect(self.folder / "catalog.db") as database:
            self.assertEqual(database.execute("SELECT count(*) FROM runs WHERE joules_per_query > 0").fetchone()[0],
                             len(names))
            self.assertEqual(database.execute("PRAGMA user_version").fetchone()[0], 4)
        before = os.stat(self.folder / "catalog.db").st_mtime_ns
        self.listed(self.folder)
        self.assertEqual(os.stat(self.folder / "catalog.db").st_mtime_ns, before)
        whole = (self.folder / "catalog.db").read_bytes()
        for damaged in (b"no database\n" * 1000, whole[:4096], whole[:5000]):
            (self.folder / "catalog.db").write_bytes(damaged)
            self.listed(self.folder)
            self.assertEqual(self.index(), names)

    def test_a_damaged_index_is_rebuilt_by_the_next_run(self):
        with tempfile.TemporaryDirectory(prefix="ipw-saved-") as folder:
            index = Path(folder) / "catalog.db"
            index.write_text("no database\n" * 1000)
            done = ipw(None, "run", "--output-dir", folder, "--", "true")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn("index", done.stderr)
            run = next(path for path in Path(folder).iterdir() if path.is_dir())
            self.listed(folder)
            with sqlite3.connect(index) as database:
                self.assertEqual(database.execute("SELECT directory FROM runs").fetchall(), [(run.name,)])

    def test_other_commands_read_saved_run(self):
        done = ipw(None, "analyze", self.runs[0], "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        times = json.loads(done.stdout)[str(self.runs[0])]["latency"]["data"]["times"]
        self.assertGreater(times["latency_s"]["min"], 0.05)
        self.assertIn("3 runs of 'sh -c sleep 0.05'", ipw(None, "analyze", self.runs[0]).stdout)
        done = ipw(None, "compare", *self.runs, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("latency", done.stdout)
        done = ipw(None, "export", self.runs[0], "--to", "csv")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = list(csv.DictReader(io.StringIO(done.stdout)))
        self.assertEqual([row["key"] for row in rows], ["q000000", "q000000.r1", "q000000.r2"])
        self.assertEqual({row["status"] for row in rows}, {"completed"})

    def test_folder_stands_for_its_runs(self):
        """Given directly, or by a wildcard that also matches the run index, plots and reports."""
        self.listed(self.folder)
        (self.folder / "plots").mkdir(exist_ok=True)
        (self.folder / "report.html").write_text("")
        asked = ipw(None, "compare", *self.runs, "--json")
        for words in ([self.folder], [f"{self.folder}/"], sorted(self.folder.iterdir()), [self.folder.parent / "my runs"]):
            done = ipw(None, "compare", *words, "--json")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            for report in map(json.loads, (done.stdout, asked.stdout)):
                self.assertEqual([Path(run["directory"]).name for run in (report["baseline"], *report["comparisons"])],
                                 [run.name for run in self.runs])
        (self.folder / "notes.txt").write_text("")
        self.addCleanup((self.folder / "notes.txt").unlink)
        done = ipw(None, "analyze", *self.runs, self.folder / "notes.txt")  # no named run is skipped silently
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("notes.txt", done.stderr)
        for nothing in (self.folder / "plots", self.folder / "notes.txt", self.folder / "nowhere"):
            self.assertNotEqual(ipw(None, "report", nothing).returncode, 0)
            self.assertNotEqual(ipw(None, "compare", *self.runs, self.folder / "nowhere").returncode, 0)

    def test_two_commands_are_compared(self):
        """By their runs, since commands have no questions or models."""
        done = ipw(None, "run", "--output-dir", self.folder.parent / "other", "-r", "4", "--", "sh", "-c", "sleep 0.2")
        self.assertEqual(done.returncode, 0, done.stderr)
        other, = (path for path in (self.folder.parent / "other").iterdir() if path.is_dir())
        done = ipw(None, "compare", self.runs[0], other)
        if "JSON" in done.stderr and done.returncode == 1:
            self.skipTest(done.stderr)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("warning: different command: 'sh -c sleep 0.2', baseline 'sh -c sleep 0.05'", done.stdout)
        self.assertIn("3 runs", done.stdout)
        for word in ("question", "different model", "dataset"):
            self.assertNotIn(word, done.stdout)

    def test_messages_use_singular_for_one_run(self):
        with tempfile.TemporaryDirectory(prefix="ipw-saved-") as folder:
            done = ipw(None, "run", "--output-dir", folder, "-q", "--", "true")
            self.assertEqual(done.returncode, 0, done.stderr)
            single, = (path for path in Path(folder).iterdir() if path.is_dir())
            self.assertIn(f"ipw run: saved in {single}\n", done.stderr)  # -q only affects progress
            done = ipw(None, "compare", single, self.runs[0])
            if "JSON" in done.stderr and done.returncode == 1:
                self.skipTest(done.stderr)
            self.assertRegex(done.stdout, r"; 1 run\n")

    def test_failed_command_is_saved(self):
        with tempfile.TemporaryDirectory(prefix="ipw-saved-") as folder:
            done = ipw(None, "run", "--output-dir", folder, "-q", "--", "sh", "-c", "exit 3")
            self.assertEqual(done.returncode, 3)
            run, = (path for path in Path(folder).iterdir() if path.is_dir())
            record = json.loads((run / "records.jsonl").read_text().splitlines()[1])["ipw"]
            self.assertEqual((record["status"], record["error"], record["exit_code"]), ("failed", "exit status 3", 3))
            done = ipw(None, "run", "--output-dir", "/dev/null/x", "-q", "--", "true")
            self.assertEqual((done.returncode, done.stderr), (1, "ipw run: cannot create /dev/null/x: Not a directory\n"))


class Repeated(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="ipw-saved-")
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name) / "runs"

    def repeat(self, *arguments, code=0):
        done = ipw(None, "run", "--output-dir", self.folder, *arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        return done, sorted(path for path in self.folder.iterdir() if path.is_dir())

    def test_repeated_runs_share_a_group(self):
        done, runs = self.repeat("--repeat-runs", "3", "-r", "2", "--json", "--", "sleep", "0.02")
        report = json.loads(done.stdout)
        self.assertEqual([len(one["runs"]) for one in report["repeats"]], [2, 2, 2])
        for number in (1, 2, 3):
            self.assertIn(f"measurement {number} of 3", done.stderr)
        self.assertEqual(len({run.name[:-3] for run in runs}), 1, runs)
        self.assertEqual([run.name[-3:] for run in runs], ["_r1", "_r2", "_r3"])
        groups = set()
        for number, run in enumerate(runs, 1):
            header = json.loads((run / "records.jsonl").read_text().splitlines()[0])
            summary = json.loads((run / "summary.json").read_text())
            self.assertEqual((header["repeat_number"], summary["repeat_number"]), (number, number))
            self.assertEqual(summary["repeat_group"], header["repeat_group"])
            groups.add(header["repeat_group"])
        self.assertEqual(groups, {report["repeat_group"]})
        _, others = self.repeat("--repeat-runs", "2", "--", "sleep", "0.04")
        compared = json.loads(ipw(None, "compare", self.folder, "--json").stdout)
        self.assertEqual(compared["comparisons"][0]["runs"], {"baseline": 3, "run": 2})
        self.assertEqual(compared["comparisons"][0]["method"], "run-level")
        self.assertIsNotNone(compared["comparisons"][0]["metrics"]["latency"]["p_value"])
        self.assertEqual([compared["baseline"]["name"], compared["comparisons"][0]["name"]], ["0.02", "0.04"])

    def test_single_run_has_no_group(self):
        _, runs = self.repeat("--", "true")
        self.assertNotIn("repeat_group", (runs[0] / "records.jsonl").read_text())
        self.assertIsNone(json.loads((runs[0] / "summary.json").read_text())["repeat_group"])

    def test_failing_command_ends_repeats(self):
        _, runs = self.repeat("--repeat-runs", "3", "--", "false", code=1)
        self.assertEqual(len(runs), 1)
        _, runs = self.repeat("--repeat-runs", "3", "--ignore-failure", "--", "false", code=1)
        self.assertEqual(len(runs), 4)

    def test_repeat_runs_needs_save(self):
        done = ipw(None, "run", "--repeat-runs", "2", "--", "true")
        self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1))
        self.assertIn("--save or --output-dir", done.stderr)

    def test_samples_of_repeats_are_separate(self):
        """Samples of a run extend slightly into the next, for slow sensors."""
        _, runs = self.repeat("--repeat-runs", "2", "--", "sleep", "4")
        first = [float((run / "samples.csv").read_text().splitlines()[1].split(",")[0]) for run in runs]
        self.assertGreater(first[1], -3.5)


if __name__ == "__main__":
    unittest.main()
