#!/usr/bin/env python3
"""Run directories of an earlier version give exactly the same figures: tests/fixtures/runs/expected was written by the
version that wrote the runs, except for bootstrap intervals, whose method has changed since."""

import csv
import io
import json
import shutil
import sqlite3
import sys
import tempfile
import unittest
from contextlib import closing
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from machines import Machine  # noqa: E402
from program import ipw  # noqa: E402

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures/runs"
EXPECTED = FIXTURES / "expected"
RUNS = ("gpu-concurrent", "gpu-repeats", "cpu-killed-resumed", "cpu-judged")
# Prose, whose wording may change.
PROSE = {"warnings", "detail", "not_enough_data", "reason", "note"}


# What earlier versions called the checks of `quality`: findings have their own codes since.
CODES = {"finished": "interrupted", "energy": "energy_unknown", "method": "estimated_energy", "coverage": "low_coverage",
         "uncertainty": "high_uncertainty", "cross_check": "channels_disagree", "conservation": "not_conserved",
         "unattributed": "unattributed_energy", "idle_baseline": "no_baseline", "background_load": "background_cpu",
         "throttling": "clocks_limited", "device": "device_unmeasured"}
# Columns and attributes that have another name since.
RENAMED = {"company": "concurrency", "ipw.company": "ipw.concurrency"}


def renamed(old):
    """With today's names: of keys, and of attributes in OTLP."""
    if isinstance(old, list):
        return [renamed(value) for value in old]
    if not isinstance(old, dict):
        return old
    return {RENAMED.get(key, key): RENAMED[value] if key == "key" and value in RENAMED else renamed(value)
            for key, value in old.items()}


def missing(old, new, where="", prose=PROSE):
    """Values of `old` that `new` lacks or changes; keys may be added."""
    if isinstance(old, dict):
        if not isinstance(new, dict):
            return [f"{where}: {new!r} in place of an object"]
        return [line for key, value in old.items() if key not in prose
                for line in (missing(value, new[key], f"{where}.{key}", prose) if key in new
                             else [f"{where}.{key} is gone"])]
    if isinstance(old, list):
        if not isinstance(new, list) or len(old) != len(new):
            return [f"{where}: {new!r} in place of {old!r}"]
        return [line for i, pair in enumerate(zip(old, new))
                for line in missing(*pair, f"{where}[{i}]", prose)]
    return [] if old == new and type(old) is type(new) else [f"{where}: {new!r} in place of {old!r}"]


class OldRuns(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="ipw-old-runs-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.on = Machine()
        self.addCleanup(self.on.close)

    def copy(self, name):
        shutil.copytree(FIXTURES / name, self.folder / name)
        for path in (self.folder / name).glob("*.arrow"):
            path.touch()  # a checkout may make the journal newer, so that it would be read instead
        return name

    def run_ipw(self, *words):
        done = ipw(self.on, *words, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def assertContains(self, old, new):
        differences = missing(renamed(old), new)
        self.assertFalse(differences, "\n".join(differences[:20]))

    def assertSameChecks(self, old, new):
        """Takes the checks out of both.  What warned is a finding; what was unknown may have the reason as a note."""
        found = {(check["check"], check["verdict"]) for check in new["data"]["checks"]}
        found |= {(finding["code"], finding["severity"]) for finding in new["data"]["findings"]}
        for check in old["data"].pop("checks"):
            code = CODES.get(check["check"], check["check"])
            if code == "background_gpu" and check["verdict"] == "unknown":
                code = "background_gpu_unknown"
            expected = {"good": ("good",), "warning": ("warning", "invalid"), "unknown": ("unknown", "note")}
            self.assertTrue(any((code, verdict) in found for verdict in expected[check["verdict"]]), check)
        for verdict in ("good", "warning", "unknown"):
            del old["summary"][f"checks_{verdict}"]

    def test_analyze(self):
        for name in RUNS:
            with self.subTest(name):
                found = json.loads(self.run_ipw("analyze", self.copy(name), "--json"))
                old = json.loads((EXPECTED / f"{name}.analyze.json").read_text())
                self.assertSameChecks(old[name]["quality"], found[name]["quality"])
                self.assertContains(old, found)

    def test_analyze_without_arrow_files(self):
        name = self.copy("gpu-concurrent")
        for path in (self.folder / name).glob("*.arrow"):
            path.unlink()
        found = json.loads(self.run_ipw("analyze", name, "--json"))
        old = json.loads((EXPECTED / f"{name}.analyze.json").read_text())
        self.assertEqual(found[name]["quality"]["summary"].pop("records"), "journal")
        self.assertEqual(old[name]["quality"]["summary"].pop("records"), "arrow")
        self.assertSameChecks(old[name]["quality"], found[name]["quality"])
        self.assertContains(old, found)

    def test_layers(self):
        self.copy("layers")
        found = json.loads(self.run_ipw("analyze", "layers/layers-1m.json", "--json"))
        self.assertContains(json.loads((EXPECTED / "layers.analyze.json").read_text()), found)

    def test_compare(self):
        found = json.loads(self.run_ipw("compare", self.copy("gpu-concurrent"), self.copy("gpu-repeats"),
                                    "--json"))
        wanted = json.loads((EXPECTED / "compare.json").read_text())
        # What earlier versions had is now the test within these runs; the correction for several tests differs.
        for row in found["comparisons"][0]["metrics"].values():
            row.update(row["of_these_runs"])
        for row in wanted["comparisons"][0]["metrics"].values():
            del row["p_holm"]
        self.assertContains(wanted, found)

    def test_csv(self):
        for name in RUNS:
            with self.subTest(name):
                old = list(csv.DictReader(io.StringIO((EXPECTED / f"{name}.csv").read_text())))
                new = list(csv.DictReader(io.StringIO(self.run_ipw("export", self.copy(name), "--to", "csv"))))
                self.assertEqual(len(new), len(old))
                for before, now in zip(renamed(old), new):
                    self.assertEqual({key: now[key] for key in before}, before)

    def test_jsonl(self):
        for name in ("gpu-concurrent", "cpu-killed-resumed"):
            with self.subTest(name):
                old = (EXPECTED / f"{name}.jsonl").read_text().splitlines()
                new = self.run_ipw("export", self.copy(name), "--to", "jsonl").splitlines()
                self.assertContains([json.loads(line) for line in old], [json.loads(line) for line in new])

    def test_dataset_of_earlier_journal(self):
        """The Arrow columns of a journal whose keys have other names today."""
        name = self.copy("gpu-concurrent")
        journal = (self.folder / name / "records.jsonl").read_text().splitlines()
        old = [line["ipw"]["company"] for line in map(json.loads, journal) if "company" in line.get("ipw", {})]
        self.assertGreater(len(old), 10)
        self.run_ipw("export", name, "--to", "hf", "--output-dir", "dataset")
        exported = self.run_ipw("export", "dataset", "--to", "jsonl").splitlines()
        self.assertEqual(sorted(json.loads(line)["concurrency"] for line in exported), sorted(old))

    def test_sqlite_of_earlier_version(self):
        """A run is added to a database whose column has another name today."""
        name = self.copy("gpu-concurrent")
        self.run_ipw("export", name, "--to", "sqlite", "-o", "all.db")
        with closing(sqlite3.connect(self.folder / "all.db")) as db, db:
            db.execute("ALTER TABLE queries RENAME COLUMN concurrency TO company")
        self.run_ipw("export", name, "--to", "sqlite", "--name", "again", "-o", "all.db")
        with closing(sqlite3.connect(self.folder / "all.db")) as db:
            rows = [db.execute("SELECT concurrency FROM queries WHERE run = ? ORDER BY key", (run,)).fetchall()
                    for run in (name, "again")]
        self.assertGreater(len(rows[0]), 10)
        self.assertEqual(*rows)

    def test_prometheus(self):
        for name in RUNS:
            with self.subTest(name):
                new = self.run_ipw("export", self.copy(name), "--to", "prom").splitlines()
                for line in (EXPECTED / f"{name}.prom").read_text().splitlines():
                    if not line.startswith("# HELP"):
                        self.assertIn(line, new)

    def test_traces(self):
        for name, form in (("gpu-concurrent", "perfetto"), ("cpu-killed-resumed", "perfetto"),
                           ("gpu-concurrent", "otlp-json"), ("gpu-concurrent", "otlp-metrics")):
            with self.subTest(f"{name} {form}"):
                if not (self.folder / name).exists():
                    self.copy(name)
                old = json.loads((EXPECTED / f"{name}.{form}").read_text())
                found = json.loads(self.run_ipw("export", name, "--to", form))
                differences = missing(renamed(old), found, prose=PROSE | {"description", "traceId", "spanId"})
                self.assertFalse(differences, "\n".join(differences[:20]))


if __name__ == "__main__":
    unittest.main()
