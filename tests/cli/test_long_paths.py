#!/usr/bin/env python3
# test: asan
"""Every command works on runs under a path of 1,600 characters; a path that the kernel refuses is named with its reason."""
import csv
import io
import json
import shutil
import tempfile
import unittest
from pathlib import Path

from dashboards import Dashboard
from program import ipw

LENGTH = 1600
PART = 100  # longest name in the path


def deepen(folder):
    """A folder in this one whose path has LENGTH characters; it is not created."""
    path = str(folder)
    while len(path) < LENGTH:
        path += "/" + "d" * min(PART, max(LENGTH - len(path) - 1, 1))
    return Path(path)


class LongPaths(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix="ipw-long-")
        cls.addClassCleanup(scratch.cleanup)
        cls.scratch = Path(scratch.name).resolve()
        cls.folder = deepen(cls.scratch)
        cls.commands = cls.folder / "commands"
        cls.queries = cls.folder / "queries"
        for _ in range(2):
            cls.ipw("run", "--output-dir", cls.commands, "-r", "2", "--", "true")
        for name in ("one", "two"):
            cls.profile("--output-dir", cls.queries, "--name", name)

    @classmethod
    def ipw(cls, *arguments, code=0, env=None):
        done = ipw(None, *arguments, env=env)
        if done.returncode != code:
            raise AssertionError(f"{arguments[:2]}: exit status {done.returncode}: {done.stderr}")
        return done

    @classmethod
    def profile(cls, *more, code=0):
        return cls.ipw("profile", "--client", "null", "--model", "m", "--idle", 0, "--max-queries", 4,
                       "--warmup-queries", 0, *more, code=code)

    def runs(self, folder):
        return sorted(path for path in folder.iterdir() if (path / "records.jsonl").exists())

    def test_runs_are_saved_whole(self):
        for run in self.runs(self.commands) + self.runs(self.queries):
            self.assertGreater(len(str(run)), LENGTH)
            names = {path.name for path in run.iterdir()}
            self.assertLessEqual({"records.jsonl", "spans.jsonl", "summary.json", "samples.csv"}, names)
        for run in self.runs(self.queries):
            self.assertTrue((run / "data-00000-of-00001.arrow").exists())
        self.assertEqual([len(self.runs(folder)) for folder in (self.commands, self.queries)], [2, 2])

    def test_messages_have_the_whole_path(self):
        done = self.ipw("run", "--output-dir", self.folder / "said", "--", "true")
        run, = self.runs(self.folder / "said")
        self.assertIn(f"ipw run: saved in {run}\n", done.stderr)

    def test_a_run_is_resumed_and_replaced(self):
        at = ("--output-dir", self.folder / "again", "--name", "run")
        self.profile(*at)
        self.assertIn("already holds a run", self.profile(*at, code=2).stderr)
        self.profile(*at, "--resume")
        self.profile(*at, "--overwrite")
        lines = (self.folder / "again/run/records.jsonl").read_text().splitlines()
        self.assertEqual(sum(json.loads(line)["kind"] == "query" for line in lines), 4)

    def test_shards_are_merged(self):
        for shard in ("1/2", "2/2"):
            self.profile("--output-dir", self.folder / "parts", "--name", "x", "--shard", shard)
        self.ipw("profile", "--merge", *self.runs(self.folder / "parts"), "--output-dir", self.folder / "whole")
        whole, = self.runs(self.folder / "whole")
        self.assertEqual(json.loads((whole / "summary.json").read_text())["ipw"]["completed"], 4)

    def test_traces_of_agents_are_saved_and_analyzed(self):
        self.ipw("agent", "--client", "null", "--model", "m", "--idle", 0, "--max-queries", 1, "--output-dir",
                 self.folder / "agents")
        run, = self.runs(self.folder / "agents")
        self.assertTrue((run / "hf_dataset/data-00000-of-00001.arrow").exists())
        self.assertEqual(len((run / "traces.jsonl").read_text().splitlines()), 1)
        self.ipw("analyze", run)
        with (run / "traces.jsonl").open("a") as traces:
            traces.write("{}\n")  # not a trace: the file that has it is kept
        done = self.ipw("agent", "--client", "null", "--model", "m", "--idle", 0, "--max-queries", 2, "--output-dir",
                        self.folder / "agents", "--resume")
        self.assertIn(f"the file with them is now {run}/traces.jsonl.damaged\n", done.stderr)

    def test_runs_are_listed(self):
        listed = json.loads(self.ipw("list", "runs", self.queries, "--json").stdout)["runs"]
        self.assertEqual(sorted(run["directory"] for run in listed), ["one", "two"])

    def test_runs_are_analyzed(self):
        runs = self.runs(self.queries)
        one = self.ipw("analyze", runs[0])
        self.assertIn(f" {runs[0]}: 4 queries", one.stdout)
        self.assertTrue((runs[0] / "analysis").is_dir())
        both = json.loads(self.ipw("analyze", *runs, "--json").stdout)
        self.assertIn(str(runs[1]), json.dumps(both))

    def test_runs_are_compared(self):
        runs = self.runs(self.queries)
        done = json.loads(self.ipw("compare", *runs, "--ignore-conditions", "--json").stdout)
        self.assertIn(str(runs[0]), json.dumps(done))

    def test_runs_are_reported(self):
        run = self.runs(self.queries)[0]
        self.ipw("report", run)
        page = (run / "report.html").read_text()
        self.assertIn('"./records.jsonl"', page)  # a link next to the page
        elsewhere = self.folder / "page/report.html"
        elsewhere.parent.mkdir()
        self.ipw("report", run, "-o", elsewhere)
        self.assertIn('"./../queries/one/records.jsonl"', elsewhere.read_text())

    @unittest.skipUnless(shutil.which("gnuplot"), "gnuplot is not installed")
    def test_runs_are_plotted(self):
        run = self.runs(self.queries)[0]
        done = self.ipw("plot", run, "--plot", "latency")
        self.assertEqual(done.stdout, f"{run}/plots/latency.png\n")
        self.assertTrue((run / "plots/latency.png").exists())
        self.ipw("plot", *self.runs(self.queries), "--plot", "latency", "--output-dir", self.folder / "plots")
        self.assertTrue((self.folder / "plots/two/latency.png").exists())

    def test_runs_are_exported(self):
        run = self.runs(self.queries)[0]
        for name in ("csv", "jsonl", "prom", "perfetto", "otlp-json"):
            out = self.folder / f"export.{name}"
            self.ipw("export", run, "--to", name, "-o", out)
            self.assertGreater(out.stat().st_size, 0, name)
        self.assertEqual(len(list(csv.reader(io.StringIO((self.folder / "export.csv").read_text())))), 5)
        self.ipw("export", run, "--to", "hf", "--output-dir", self.folder / "dataset")
        self.assertTrue((self.folder / "dataset/state.json").exists())

    def test_runs_are_served(self):
        dashboard = Dashboard("--runs", self.queries)
        self.addCleanup(dashboard.close)
        self.assertEqual(sorted(run["name"] for run in dashboard.get("runs")["runs"]), ["one", "two"])
        self.assertEqual(dashboard.get("runs/one")["summary"]["ipw"]["queries"], 4)
        self.assertEqual(len(dashboard.get("runs/one/records")["records"]), 4)
        self.assertIn(str(self.queries / "two"), json.dumps(dashboard.get("compare?run=one&run=two")))
        for name in ("page", "records.csv", "records.arrow", "files/summary.json"):
            with self.subTest(name):
                self.assertEqual(dashboard.ask(f"/api/v1/runs/one/{name}").status, 200)

    def test_a_sweep_is_recorded_and_analyzed(self):
        self.ipw("sweep", "--output-dir", self.folder / "sweeps", "--knob", "n=1,2", "--", "true", "{n}")
        sweep, = self.runs(self.folder / "sweeps")
        self.ipw("sweep", "--resume", sweep)
        rows = list(csv.DictReader(io.StringIO(self.ipw("export", sweep, "--to", "csv").stdout)))
        self.assertEqual(sorted(row["n"] for row in rows), ["1", "2"])
        self.assertIn(f'"{sweep}"', self.ipw("analyze", sweep, "--json").stdout)

    def test_runs_are_copied_to_a_database_and_back(self):
        run = self.runs(self.queries)[0]
        env = {"IPW_DB": f"sqlite://{self.scratch / 'runs.db'}"}
        self.ipw("db", "init", env=env)
        self.ipw("db", "push", run, env=env)
        self.ipw("db", "pull", "--all", "--output-dir", self.folder / "pulled", env=env)
        copy, = self.runs(self.folder / "pulled")
        for name in ("records.jsonl", "spans.jsonl", "samples.csv", "summary.json", "data-00000-of-00001.arrow"):
            self.assertEqual((copy / name).read_bytes(), (run / name).read_bytes(), name)

    def test_a_path_that_sqlite_refuses_is_named_with_its_limit(self):
        said = "SQLite opens no path of more than 504 bytes: "
        done = self.profile("--output-dir", self.folder / "indexed", "--name", "run")
        if "SQLite is not installed" in done.stderr:
            self.skipTest("SQLite is not installed")
        self.assertIn(said, done.stderr)
        self.assertFalse((self.folder / "indexed/catalog.db").exists())
        run = self.folder / "indexed/run"
        for arguments in (("export", run, "--to", "sqlite", "-o", self.folder / "export.db"),
                          ("db", "init", "--db", f"sqlite://{self.folder}/runs.db")):
            self.assertIn(said, self.ipw(*arguments, code=1).stderr)

    def test_a_path_that_the_kernel_refuses_is_named_with_its_reason(self):
        beyond = Path(str(self.folder) + "/" + "/".join(["e" * PART] * 30))
        for arguments in (("run", "--output-dir", beyond, "--", "true"), ("analyze", beyond), ("report", beyond),
                          ("export", beyond, "--to", "csv"), ("list", "runs", beyond)):
            done = ipw(None, *arguments)
            self.assertNotEqual(done.returncode, 0, arguments[0])
            self.assertIn("File name too long", done.stderr, arguments[0])
            self.assertIn(str(self.scratch)[:40], done.stderr, arguments[0])


if __name__ == "__main__":
    unittest.main()
