#!/usr/bin/env python3
# test: real time, asan
"""Names of run directories, the run catalog, and interrupted stores."""

import json
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

BUILD = Path(os.environ.get("IPW_BUILD", "build")).resolve()
TOOL = BUILD / "tests" / "tools" / "run_store"

SUMMARY = {
    "run_kind": "agent", "model": "llama3.2:1b", "dataset": "set", "dataset_name": "A set", "hardware_label": "H200",
    "generated_at": 1700000001.5, "total_queries": 10, "profiler_config": {"client_id": "ollama"},
    "ipw": {"started_at": 1700000000.25, "completed": 9, "failed": 1, "accuracy": 0.5,
            "energy": {"joules": 123.456, "plus_minus": 1.5, "method": "counter"},
            "joules_per_output_token": 0.1, "output_tokens_per_s": 80.5,
            "time_to_first_token_s": {"p50": 0.125, "p95": 0.25}, "ipj": 0.004, "ipw": 0.01,
            "joules_per_query": 12.5, "busy_watts": 80.0, "interrupted": False},
}


def run(*arguments, **options):
    return subprocess.run([TOOL, *map(str, arguments)], capture_output=True, timeout=120, **options)


def slug_by_rule(model):
    """Each character that is neither letter nor digit becomes "_"; those at the ends are removed."""
    return "".join(c if c.isalnum() else "_" for c in model).strip("_") or "model"


def name_by_rule(hardware, model, dataset):
    return f"profile_{hardware}_{slug_by_rule(model)}_{dataset}".replace("/", "_").strip("_")


class TestNames(unittest.TestCase):
    def check(self, hardware, model, dataset):
        done = run("name", hardware, model, dataset)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.decode().splitlines(),
                         [slug_by_rule(model), name_by_rule(hardware, model, dataset)])

    def test_directory_names_follow_rule(self):
        for model in ("llama3.2:1b", "Qwen/Qwen3-30B-A3B", 'org/a_b "x"', "__x__", ":::", "",
                      "modèle", "模型-7б", "x²", "ⅷ", "a\u0301b", "ก็", "👍ok", "ﬁ", "٣", "–—"):
            for dataset in ("ipw", "a b", "org/set", "_x_", ""):
                self.check("H200", model, dataset)

    def test_names_with_random_characters_follow_rule(self):
        rng = random.Random(7)
        for _ in range(150):
            model = "".join(chr(rng.choice([rng.randrange(0x20, 0x3000), rng.randrange(0x20, 0x250),
                                            rng.randrange(0x3000, 0xD7FF)])) for _ in range(40))
            # Unicode versions differ: characters unknown to either side are left out.
            self.check("X", "".join(c for c in model if c.isprintable()), "d")


class TestCatalog(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ipw-catalogue-")
        self.addCleanup(folder.cleanup)
        self.runs = Path(folder.name)
        self.database = self.runs / "catalog.db"

    def make(self, name):
        (self.runs / name).mkdir(exist_ok=True)
        (self.runs / name / "records.jsonl").write_text('{"kind":"query","key":"a"}\n')
        return self.runs / name

    def start(self, name, summary):
        return subprocess.Popen([TOOL, "store", "sqlite", self.make(name), "m", "{}",
                                 json.dumps(summary)], stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE)

    def add(self, name, summary=None):
        return run("store", "sqlite", self.make(name), "m", "{}", json.dumps(summary or SUMMARY))

    def rows(self):
        connection = sqlite3.connect(self.database)
        connection.row_factory = sqlite3.Row
        try:
            self.assertEqual(connection.execute("PRAGMA integrity_check").fetchone()[0], "ok")
            self.assertEqual(connection.execute("PRAGMA user_version").fetchone()[0], 4)
            return [dict(row) for row in
                    connection.execute("SELECT * FROM runs ORDER BY directory")]
        finally:
            connection.close()

    def test_row_is_made_from_summary(self):
        done = self.add("profile_a")
        self.assertEqual(done.returncode, 0, done.stderr)
        row = self.rows()[0]
        self.assertEqual(json.loads(row.pop("summary")), SUMMARY)
        self.assertEqual(row, {
            "directory": "profile_a", "model": "llama3.2:1b", "dataset": "A set",
            "client": "ollama", "hardware": "H200", "started": 1700000000.25,
            "finished": 1700000001.5, "queries": 10, "completed": 9, "failed": 1, "accuracy": 0.5,
            "joules": 123.456, "plus_minus": 1.5, "method": "counter",
            "joules_per_output_token": 0.1, "output_tokens_per_s": 80.5, "ttft_p50_s": 0.125,
            "ttft_p95_s": 0.25, "ipj": 0.004, "ipw": 0.01, "joules_per_query": 12.5,
            "busy_watts": 80.0, "interrupted": 0, "run_kind": "agent", "name": "profile_a", "kind": "agent",
            "state": "done", "created_at": 1700000000.25, "precision": None, "written_at": None, "is_attempt": 0})

    def test_unknown_fields_are_null(self):
        self.add("profile_a", {"model": "m", "dataset": "set", "ipw": {"accuracy": None},
                               "total_queries": "ten"})
        row = self.rows()[0]
        self.assertEqual({key: value for key, value in row.items() if value is not None}.keys(),
                         {"directory", "model", "dataset", "summary", "name", "kind", "state", "is_attempt"})
        self.assertEqual(row["dataset"], "set")

    def test_repeated_run_replaces_its_row(self):
        self.add("profile_a")
        self.add("profile_b")
        self.add("profile_a", {**SUMMARY, "total_queries": 11})
        self.assertEqual([(row["directory"], row["queries"]) for row in self.rows()],
                         [("profile_a", 11), ("profile_b", 10)])

    def test_directory_by_any_path(self):
        folder = self.make("profile_a")
        for way in (str(folder) + "/", "."):
            done = run("store", "sqlite", way, "m", "{}", json.dumps(SUMMARY), cwd=folder)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([row["directory"] for row in self.rows()], ["profile_a"])

    def test_concurrent_writers(self):
        running = [self.start(f"profile_{i % 12:02}", {**SUMMARY, "total_queries": i})
                   for i in range(24)]
        for process in running:
            _, err = process.communicate(timeout=120)
            self.assertEqual(process.returncode, 0, err)
        self.assertEqual([row["directory"] for row in self.rows()],
                         [f"profile_{i:02}" for i in range(12)])
        self.assertEqual([path.name for path in self.runs.glob("catalog*")], ["catalog.db"])

    def test_killed_writers_leave_valid_catalog(self):
        self.add("profile_a")
        for i in range(10):
            process = self.start("profile_b", {**SUMMARY, "model": "x" * 100000, "total_queries": i})
            time.sleep(0.002 * i)
            process.kill()
            process.communicate()
        names = [row["directory"] for row in self.rows()]
        self.assertIn(names, (["profile_a"], ["profile_a", "profile_b"]))
        self.assertEqual(self.add("profile_c").returncode, 0)

    def test_later_version_is_not_modified(self):
        connection = sqlite3.connect(self.database)
        connection.executescript("CREATE TABLE other (x); PRAGMA user_version = 9")
        connection.close()
        before = self.database.read_bytes()
        done = self.add("profile_a")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"later version of ipw", done.stderr)
        self.assertEqual(self.database.read_bytes(), before)

    def test_invalid_database_is_renamed(self):
        notes = "these are my notes\n" * 100
        self.database.write_text(notes)
        self.assertEqual(self.add("profile_a").returncode, 0)
        self.assertEqual(self.database.with_name("catalog.db.damaged").read_text(), notes)
        self.assertEqual([row["directory"] for row in self.rows()], ["profile_a"])


class TestInterrupted(unittest.TestCase):
    def test_killed_arrow_store_keeps_old_file(self):
        with tempfile.TemporaryDirectory(prefix="ipw-store-") as name:
            folder = Path(name)
            journal = folder / "records.jsonl"
            journal.write_text('{"kind":"query","key":"a","problem":"old"}\n')
            done = run("store", "arrow", folder, "m", "{}", "{}")
            self.assertEqual(done.returncode, 0, done.stderr)
            ours = ("data-00000-of-00001.arrow", "dataset_info.json", "state.json")
            before = [(folder / file).read_bytes() for file in ours]
            with open(journal, "a") as lines:
                for i in range(60000):
                    lines.write('{"kind":"query","key":"k%d","problem":"new"}\n' % i)
            process = subprocess.Popen([TOOL, "store", "arrow", folder, "m", "{}", "{}"],
                                       stdout=subprocess.DEVNULL)
            time.sleep(0.15)
            process.kill()
            self.assertNotEqual(process.wait(), 0)
            self.assertEqual([(folder / file).read_bytes() for file in ours], before)


if __name__ == "__main__":
    probe = run("store", "sqlite", "/", "m", "{}", "{}")
    if b"not installed" in probe.stderr:
        print("skipped:", probe.stderr.decode().strip())
        sys.exit(77)
    unittest.main()
