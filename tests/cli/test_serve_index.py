#!/usr/bin/env python3
# test: real time
"""The dashboard's table of runs over the run index: in catalog.db, in memory, and without SQLite.  Orders and filters
are compared with a brute-force oracle over the same rows."""

import itertools
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path
from urllib.parse import quote

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from dashboards import Dashboard  # noqa: E402
from program import IPW, SANITIZED, TIMEOUT_S, MachineTest, ipw, main_parallel, wait_until  # noqa: E402
from rundirs import query, summary, write_run  # noqa: E402

NOBODY = 65534
# The table of version 3, with the columns that it had.
VERSION_3 = ("CREATE TABLE runs (directory TEXT PRIMARY KEY, model TEXT, dataset TEXT, client TEXT, hardware TEXT, started REAL, "
             "finished REAL, queries INTEGER, completed INTEGER, failed INTEGER, accuracy REAL, joules REAL, plus_minus REAL, "
             "method TEXT, joules_per_output_token REAL, output_tokens_per_s REAL, ttft_p50_s REAL, ttft_p95_s REAL, ipj REAL, "
             "ipw REAL, joules_per_query REAL, busy_watts REAL, interrupted INTEGER, run_kind TEXT, summary TEXT); "
             "PRAGMA user_version = 3")


def random_summary(draw):
    """Few different values, so that many are equal, and some unknown."""
    def some(*values):
        return draw.choice((None, *values))
    return {"model": some("a", "b-q4", "B", "ä", "100%_x", "b-fp16"), "hardware_label": some("H100", "A100"), "dataset_name": some("set", "Set2"),
            "dataset": "d", "generated_at": 1.7e9 + draw.randrange(9), "total_queries": some(3, 20, 100),
            "run_kind": draw.choice(("profile", "run", "agent")), "profiler_config": {"client_id": some("null", "openai")},
            "ipw": {"started_at": some(1.7e9, 1.6e9, 1.65e9), "failed": some(0, 1), "accuracy": some(0, 0.5, 1),
                    "energy": {"joules": some(-1.5, 0, 1e-300, 40, 1e300), "plus_minus": some(0.1, 3), "method": some("counter", "estimated")},
                    "joules_per_query": some(1, 2), "ipj": some(0.1), "output_tokens_per_s": some(1, 1e3),
                    "time_to_first_token_s": {"p50": some(0.1, 0.2)}, "interrupted": some(True, False)}}


def in_order(rows, column, is_descending):
    known = [row for row in rows if row[column] is not None]
    unknown = [row for row in rows if row[column] is None]

    def key(row):
        return (value.encode() if isinstance(value := row[column], str) else value, row["id"].encode())
    return sorted(known, key=key, reverse=is_descending) + sorted(unknown, key=lambda row: row["id"].encode(), reverse=is_descending)


class IndexTest(MachineTest):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="ipw-serve-rows-"))
        self.addCleanup(subprocess.run, ["rm", "-rf", self.folder])
        self.runs, self.index = self.folder / "runs", self.folder / "runs/catalog.db"
        self.runs.mkdir()

    def serve(self, *options, **more):
        served = Dashboard(*(options or ("--runs", self.runs)), "--no-live", scratch=self.folder, **more)
        self.addCleanup(served.close)
        return served

    def serve_without_sqlite(self):
        (self.folder / "hidden").mkdir(exist_ok=True)
        (self.folder / "hidden/libsqlite3.so.0").touch()
        return self.serve(env={"LD_LIBRARY_PATH": str(self.folder / "hidden")})

    def serve_unprivileged(self):
        """As a user who may read the folder but not write into it."""
        os.chmod(self.folder, 0o755)
        os.chmod(self.runs, 0o555)
        self.addCleanup(os.chmod, self.runs, 0o755)
        program = shutil.copy(IPW, self.folder / "ipw")
        options = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        return self.serve(program=program, cwd="/", **options)

    def write(self, name, joules=10.0, **facts):
        return write_run(self.runs / name, [query(i, joules) for i in range(4)], **facts)

    def indexed(self, columns="directory"):
        with sqlite3.connect(self.index) as database:
            return database.execute(f"SELECT {columns} FROM runs ORDER BY directory").fetchall()

    def listing(self):
        return sorted((path.name, path.stat().st_mtime_ns) for path in self.runs.iterdir())


class OrderTest(IndexTest):
    numbers = itertools.count()

    def setUp(self):
        super().setUp()
        draw = random.Random(20261119)
        for i in range(20 if SANITIZED else 60):
            write_run(self.runs / f"run {draw.randrange(10**6):06} {i}", [], whole=random_summary(draw))
        write_run(self.runs / "unfinished", [query(0)], whole=False)

    def database(self):
        address = f"sqlite:///{self.folder / 'team.db'}"
        for words in (("init",), ("push", *(path for path in self.runs.iterdir() if (path / "summary.json").exists()))):
            done = ipw(None, "db", *words, "--db", address)
            self.assertEqual(done.returncode, 0, done.stderr)
        return address

    def pages(self, served, asked, limit):
        """The ids of all pages, which have at most `limit` rows, and all but the last as many."""
        found, cursor = [], ""
        while cursor is not None:
            page = served.get(f"runs?{asked}&limit={limit}{cursor and '&cursor=' + cursor}")
            cursor = page["next_cursor"]
            self.assertTrue(len(page["runs"]) == limit or cursor is None, asked)
            found += [row["id"] for row in page["runs"]]
        return found

    def check_orders(self, served):
        rows = served.get("runs?limit=1000")["runs"]
        columns = [column for column in rows[0] if column != "id"]
        self.assertGreater(len(columns), 20)
        for column, order in itertools.product(columns, ("asc", "desc")):
            expected = [row["id"] for row in in_order(rows, column, order == "desc")]
            for limit in (7, len(rows)):
                self.assertEqual(self.pages(served, f"sort={column}&order={order}", limit), expected, (column, order, limit))
        return rows

    def check_filters(self, served, rows):
        searched = ("name", "model", "hardware", "dataset", "client")
        for text in ("B", "b-Q4", "ä", "%", "_", "null", "RUN 1", "nothing"):
            expected = [row["id"] for row in in_order(rows, "energy_j", False)
                        if any(row[column] and text.lower() in row[column].lower() for column in searched)]
            self.assertEqual(self.pages(served, f"sort=energy_j&order=asc&q={quote(text)}", 5), expected, text)
        for wanted in ({"model": "b-q4"}, {"kind": "run", "hardware": "A100"}, {"state": "interrupted"}, {"precision": "4-bit"},
                       {"client": "null", "dataset": "set"}, {"model": "' OR 1=1 --"}):
            expected = [row["id"] for row in in_order(rows, "accuracy", True) if all(row[key] == value for key, value in wanted.items())]
            asked = "&".join(f"{key}={quote(value)}" for key, value in wanted.items())
            self.assertEqual(self.pages(served, f"sort=accuracy&order=desc&{asked}", 4), expected, wanted)
            self.assertEqual(served.get(f"runs?{asked}")["total"], len(expected))
        page = served.get("runs")
        self.assertEqual(page["total"], len(rows))
        for column in ("kind", "model", "hardware"):
            self.assertEqual(page["facets"][column], sorted({row[column] for row in rows} - {None}, key=str.encode), column)

    def test_pages_agree_with_an_oracle(self):
        """In every order, unknown values last, equal ones by id."""
        served = {"catalog.db": self.serve(), "memory": self.serve("--db", self.database()), "no SQLite": self.serve_without_sqlite()}
        rows = {}
        for name, dashboard in served.items():
            with self.subTest(name):
                rows[name] = self.check_orders(dashboard)
                self.check_filters(dashboard, rows[name])
        self.assertEqual(rows["catalog.db"], rows["no SQLite"])
        self.assertTrue(self.index.exists())
        fronts = [served[name].get("pareto?x=energy_j&y=accuracy&group=model") for name in ("catalog.db", "no SQLite")]
        self.assertEqual(fronts[0], fronts[1])
        self.assertGreater(len(fronts[0]["points"]), 5)

    def test_pages_neither_repeat_nor_skip_runs_that_stay(self):
        """While others are added and removed before, at and behind the cursor."""
        for served in (self.serve(), self.serve_without_sqlite()):
            for column, order in (("accuracy", "asc"), ("model", "desc"), ("created_at", "asc")):
                before = {row["id"] for row in served.get("runs?limit=1000")["runs"]}
                asked, seen, removed = f"runs?sort={column}&order={order}&limit=9", [], set()
                page = served.get(asked)
                for i in itertools.count():
                    seen += [row["id"] for row in page["runs"]]
                    if not page["next_cursor"]:
                        break
                    if i < 3:
                        added = f"{column} {next(self.numbers)}"
                        write_run(self.runs / added, [], whole=random_summary(random.Random(i)))
                        subprocess.run(["rm", "-r", self.runs / seen[-1]], check=True)  # the run of the cursor
                        removed.add(seen[-1])
                        wait_until(lambda: {added} <= (now := {r["id"] for r in served.get("runs?limit=1000")["runs"]})
                                   and not removed & now, "the change")
                    page = served.get(asked + "&cursor=" + page["next_cursor"])
                self.assertEqual(len(seen), len(set(seen)), (column, order))
                self.assertLessEqual(before, set(seen) | removed)


class FileTest(IndexTest):
    def names(self, served):
        return sorted(row["id"] for row in served.get("runs?limit=1000")["runs"])

    def test_table_of_an_earlier_version_is_made_again(self):
        self.write("alpha", hardware="H100", model="m-q4", interrupted=False)
        with sqlite3.connect(self.index) as database:
            database.executescript(VERSION_3)
            database.execute("INSERT INTO runs (directory, model, joules) VALUES ('alpha', 'old', 1), ('gone', 'old', 2)")
        for reader in (self.serve, lambda: ipw(None, "list", "runs", self.runs)):
            reader_rows = reader()
            if isinstance(reader_rows, Dashboard):
                row, = reader_rows.get("runs")["runs"]
                self.assertEqual((row["id"], row["model"], row["energy_j"], row["precision"]), ("alpha", "m-q4", 40, "4-bit"))
            with sqlite3.connect(self.index) as database:
                self.assertEqual(database.execute("PRAGMA user_version").fetchone()[0], 4)
            written = (self.runs / "alpha/summary.json").stat().st_mtime_ns
            self.assertEqual(self.indexed("directory, model, joules, name, kind, state, created_at, precision, written_at, is_attempt"),
                             [("alpha", "m-q4", 40, "alpha", "profile", "done", 1.7e9 + 1000, "4-bit", written, 0)])
            with sqlite3.connect(self.index) as database:
                database.executescript("DROP TABLE runs; " + VERSION_3)

    def test_table_of_a_later_version_is_not_modified(self):
        self.write("alpha")
        with sqlite3.connect(self.index) as database:
            database.executescript("CREATE TABLE runs (directory TEXT, joules REAL); INSERT INTO runs VALUES ('alpha', 7); "
                                   "PRAGMA user_version = 5")
        before = self.index.read_bytes()
        served = self.serve()
        self.assertEqual([(row["id"], row["energy_j"]) for row in served.get("runs")["runs"]], [("alpha", 40)])
        self.assertEqual(self.index.read_bytes(), before)

    def test_no_index_is_created_for_no_runs(self):
        (self.runs / "notes").mkdir()
        served = self.serve()
        self.assertEqual((served.get("runs")["runs"], served.get("runs")["total"]), ([], 0))
        ipw(None, "list", "runs", self.runs)
        self.assertEqual([path.name for path in self.runs.iterdir()], ["notes"])
        self.write("alpha")
        wait_until(lambda: self.names(served) == ["alpha"], "the first run")
        self.assertEqual(self.indexed(), [("alpha",)])

    def test_read_only_folder_is_not_written(self):
        """Its index is read, since that is faster than reading the directories."""
        for name in ("alpha", "beta"):
            self.write(name)
        ipw(None, "list", "runs", self.runs)
        with sqlite3.connect(self.index) as database:
            database.execute("UPDATE runs SET joules = 777")  # a figure that only the index has
            database.execute("UPDATE runs SET written_at = written_at - 1 WHERE directory = 'beta'")
        self.write("gamma")
        content = self.index.read_bytes()
        served = self.serve_unprivileged()
        before = self.listing()
        for column in ("energy_j", "name", "accuracy"):
            found = served.get(f"runs?sort={column}")["runs"]
            self.assertEqual({row["id"]: row["energy_j"] for row in found}, {"alpha": 777, "beta": 40, "gamma": 40})
        self.assertEqual((self.listing(), self.index.read_bytes()), (before, content))

    def test_index_behind_a_link_is_not_written(self):
        outside = self.folder / "outside.db"
        self.write("alpha")
        ipw(None, "list", "runs", self.runs)
        self.index.rename(outside)
        self.write("beta")
        for target in (outside, self.folder / "none.db"):
            self.index.unlink(missing_ok=True)
            self.index.symlink_to(target)
            before = outside.read_bytes()
            served = self.serve()
            self.assertEqual(self.names(served), ["alpha", "beta"])
            self.assertEqual(outside.read_bytes(), before)
            self.assertFalse((self.folder / "none.db").exists())
            served.end()

    def test_continues_when_the_index_cannot_be_used(self):
        """Locked by another program, damaged, or deleted while it is served."""
        self.write("alpha")
        ipw(None, "list", "runs", self.runs)
        database = sqlite3.connect(self.index, isolation_level=None)
        self.addCleanup(database.close)
        database.execute("BEGIN EXCLUSIVE")
        served = self.serve()
        self.assertEqual(self.names(served), ["alpha"])
        database.execute("COMMIT")
        for damage in (lambda: self.index.write_bytes(b"no database\n" * 1000), lambda: os.truncate(self.index, 4096), self.index.unlink):
            served = self.serve()
            known = self.names(served)
            damage()
            name = f"run{len(known)}"
            self.write(name)
            wait_until(lambda: served.ask("/api/v1/runs").status == 200 and self.names(served) == sorted([*known, name]), "the new run")
            served.end()
            ipw(None, "list", "runs", self.runs)
            self.assertEqual([row[0] for row in self.indexed()], sorted([*known, name]))

    def test_commands_write_the_index_while_it_is_read(self):
        """Neither waits for the other, and no row is lost."""
        for i in range(40):
            self.write(f"before{i}")
        served, stopped, failures = self.serve(), threading.Event(), []

        def read():
            for i in itertools.cycle(range(40)):
                os.utime(self.runs / f"before{i}/summary.json")  # a row to be written again
                answer = served.ask("/api/v1/runs?limit=1000&sort=energy_j")
                if answer.status != 200:
                    failures.append(answer.body)
                run("list", "runs", self.runs)
                if stopped.is_set():
                    return

        def run(*words):
            done = ipw(None, *words)
            if done.returncode or "index" in done.stderr:
                failures.append(done.stderr)

        def measure():
            for _ in range(3):
                run("run", "--output-dir", self.runs, "--", "true")

        reader = threading.Thread(target=read)
        writers = [threading.Thread(target=measure) for _ in range(3)]
        for thread in (reader, *writers):
            thread.start()
        for thread in writers:
            thread.join()
        expected = sorted(path.name for path in self.runs.iterdir() if path.is_dir())
        self.assertEqual(len(expected), 49)
        stopped.set()
        reader.join()
        wait_until(lambda: {(row["id"], row["state"]) for row in served.get("runs?limit=1000")["runs"]} ==
                   {(name, "done") for name in expected}, "all runs")
        self.assertEqual(failures, [])
        written = {name: (self.runs / name / "summary.json").stat().st_mtime_ns for name in expected}
        wait_until(lambda: dict(self.indexed("directory, written_at")) == written, "all rows")
        with sqlite3.connect(self.index) as database:
            self.assertEqual(database.execute("PRAGMA integrity_check").fetchone()[0], "ok")


if __name__ == "__main__":
    probe = ipw(None, "list", "stores", "--json")
    if any(store["name"] == "sqlite" and not store["available"] for store in json.loads(probe.stdout)["stores"]):
        print("skipped: SQLite is not installed")
        sys.exit(77)
    main_parallel()
