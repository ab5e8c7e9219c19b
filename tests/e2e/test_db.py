#!/usr/bin/env python3
# test: real time
"""`ipw db` and `--db` with a real PostgreSQL, and with SQLite.  psql and Python's sqlite3 read the tables, which are
compared with synthetic run directories."""
import json
import math
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "cli"))
from dashboards import Dashboard  # noqa: E402
from make_gguf import make  # noqa: E402
from postgres import Postgres  # noqa: E402
from program import IPW, TIMEOUT_S, ipw, python  # noqa: E402
from rundirs import query, write_run  # noqa: E402

SOURCE = Path(__file__).resolve().parent.parent.parent
FIXTURES = SOURCE / "tests/fixtures"
server = None


def setUpModule():
    global server
    server = Postgres()


def tearDownModule():
    server.release()


def wait_until(true):
    end = time.monotonic() + TIMEOUT_S
    while not true():
        if time.monotonic() > end:
            raise AssertionError("it does not become true")
        time.sleep(0.02)


def contents(directory):
    return {path.relative_to(directory).as_posix(): path.read_bytes()
            for path in Path(directory).rglob("*") if path.is_file()}


class DbTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="ipw-db-")
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name)
        self.database = "d" + str(abs(hash(self.id())) % 10**9)
        self.url = server.create(self.database)

    def ipw(self, *words, code=0, **options):
        done = ipw(None, *words, cwd=self.root, **options)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def db(self, action, *words, code=0, url=None, **options):
        return self.ipw("db", action, "--db", url or self.url, *words, code=code, **options)

    def psql(self, sql, user="postgres"):
        return server.psql(sql, self.database, user)

    def make(self, name, queries=5, start=1.7e9, **facts):
        """A unique run, by its `start`; its joules are not exact binary fractions."""
        whole = [query(i, joules=(start % 97 + i + 1) / 3) for i in range(queries)]
        run = write_run(self.root / "runs" / name, whole, **facts)
        text = (run / "records.jsonl").read_text()
        (run / "records.jsonl").write_text(text.replace('"started_at": 1700000000.0,', f'"started_at": {start},', 1))
        return run

    @staticmethod
    def joules(run):
        lines = map(json.loads, (run / "records.jsonl").read_text().splitlines())
        return [line["ipw"]["energy"]["joules"] for line in lines if line["kind"] == "query"]

    def stored(self):
        """{name: joules of its queries} by psql, which prints doubles exactly."""
        found = {name: [] for (name,) in self.psql("SELECT name FROM ipw.runs")}
        for name, joules in self.psql("SELECT run, energy_j FROM ipw.queries ORDER BY run, index"):
            found[name].append(float(joules) if joules else None)
        return found


class Pushing(DbTest):
    def test_concurrent_pushes_with_some_killed(self):
        self.db("init")
        runs = [self.make(f"run{i}", queries=20 + i, start=1.7e9 + i) for i in range(8)]
        # A push has written part of its transaction when it waits for this lock.
        holder = subprocess.Popen(["psql", "-X", "-q", "-h", "127.0.0.1", "-p", str(server.port), "-U", "postgres",
                                   "-d", self.database], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(holder.communicate)
        holder.stdin.write("BEGIN; LOCK TABLE ipw.queries IN SHARE MODE;\n\\echo locked\n")
        holder.stdin.flush()
        self.assertEqual(holder.stdout.readline(), "locked\n")
        pushers = [subprocess.Popen([IPW, "db", "push", "--db", self.url, run], stderr=subprocess.PIPE, text=True)
                   for run in runs]
        waiting = f"SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database WHERE " \
                  f"d.datname = '{self.database}' AND NOT granted AND relation = 'ipw.queries'::regclass"
        wait_until(lambda: self.psql(waiting) == [["8"]])
        self.assertEqual(self.psql("SELECT count(*) FROM ipw.files"), [["0"]])  # no partial run is visible
        for pusher in pushers[:3]:
            pusher.send_signal(signal.SIGKILL)
            pusher.communicate()
        holder.stdin.write("COMMIT;\n")
        holder.stdin.flush()
        for pusher in pushers[3:]:
            _, said = pusher.communicate(timeout=TIMEOUT_S)
            self.assertEqual(pusher.returncode, 0, said)
        # The transaction of a killed client ends when the server notices; until then its run is locked.
        wait_until(lambda: self.psql("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'ipw' AND "
                                     f"datname = '{self.database}'") == [["0"]])
        self.assertEqual(self.stored(), {run.name: self.joules(run) for run in runs[3:]})
        self.assertEqual(self.psql("SELECT count(DISTINCT run_id) FROM ipw.files"), [["5"]])
        said = self.db("push", "runs").stderr
        self.assertEqual((said.count(" pushed "), said.count(" unchanged ")), (3, 5))
        self.assertEqual(self.stored(), {run.name: self.joules(run) for run in runs})
        totals = self.psql("SELECT run, count(*), sum(energy_j) FROM ipw.queries GROUP BY run")
        for name, count, total in totals:
            joules = self.joules(self.root / "runs" / name)
            self.assertEqual(int(count), len(joules))
            self.assertAlmostEqual(float(total), math.fsum(joules), delta=1e-9 * math.fsum(joules))

    def test_concurrent_pushes_of_same_run(self):
        self.db("init")
        run = self.make("same", queries=30)
        pushers = [subprocess.Popen([IPW, "db", "push", "--db", self.url, run], stderr=subprocess.PIPE, text=True)
                   for _ in range(4)]
        said = [pusher.communicate(timeout=TIMEOUT_S)[1] for pusher in pushers]
        self.assertEqual([pusher.returncode for pusher in pushers], [0] * 4, said)
        self.assertEqual(sum(" pushed " in words for words in said), 1, said)
        self.assertEqual(self.stored(), {"same": self.joules(run)})

    def test_push_of_unchanged_and_changed_run(self):
        self.db("init")
        run = self.make("one")
        self.db("push", run)
        before = self.psql("SELECT xmin, pushed FROM ipw.runs UNION ALL SELECT xmin, 0 FROM ipw.queries")
        self.assertIn("unchanged", self.db("push", run).stderr)
        self.assertEqual(self.psql("SELECT xmin, pushed FROM ipw.runs UNION ALL SELECT xmin, 0 FROM ipw.queries"), before)
        moved = run.rename(run.with_name("renamed"))
        with open(moved / "records.jsonl", "a") as file:  # resumed
            file.write(json.dumps(query(5, joules=1 / 3)) + "\n")
        self.assertIn("replaced", self.db("push", moved).stderr)
        self.assertEqual(self.stored(), {"renamed": self.joules(moved)})
        self.assertEqual(len(self.joules(moved)), 6)

    def test_invalid_utf8_is_replaced_in_tables(self):
        """The stored files are unchanged."""
        self.db("init")
        run = self.make("broken", queries=1)
        text = (run / "records.jsonl").read_bytes().replace(b"the answer", b"the \xff\\u0000answer")
        (run / "records.jsonl").write_bytes(text)
        self.db("push", run)
        self.assertEqual(self.psql("SELECT response FROM ipw.queries"), [["the \ufffd\ufffdanswer"]])
        self.db("pull", "broken", "--output-dir", "back")
        self.assertEqual((self.root / "back/broken/records.jsonl").read_bytes(), text)


class Pulling(DbTest):
    def test_pulled_run_has_same_figures(self):
        self.db("init")
        runs = self.root / "runs"
        shutil.copytree(FIXTURES / "runs", runs, ignore=shutil.ignore_patterns("expected", "analysis", "*.md"))
        names = [path.name for path in runs.iterdir() if (path / "records.jsonl").exists()]
        self.assertGreaterEqual(len(names), 4)
        self.db("push", "runs")
        self.db("pull", "--all", "--output-dir", "back")
        for name in names:
            self.assertEqual(contents(self.root / "back" / name), contents(runs / name), name)
            rows = [self.ipw("export", f"{folder}/{name}", "--to", "csv").stdout for folder in ("runs", "back")]
            self.assertEqual(rows[0], rows[1])
            found = [self.ipw("analyze", f"{folder}/{name}", "--json").stdout for folder in ("runs", "back")]
            self.assertEqual(found[0], found[1].replace("back/", "runs/"))
        pair = [self.ipw("compare", "--json", f"{folder}/gpu-concurrent", "--", f"{folder}/gpu-repeats").stdout
                for folder in ("runs", "back")]
        self.assertEqual(pair[0], pair[1].replace("back/", "runs/"))
        self.assertEqual(self.db("pull", "--all", "--output-dir", "back").stderr.count("unchanged"), len(names))

    def test_pull_of_run_with_same_name(self):
        self.db("init")
        mine, theirs = self.make("same"), self.make("other", start=1.7e9 + 1)
        self.db("push", mine, theirs)
        shutil.rmtree(mine)
        theirs.rename(mine)  # the name is taken by another run
        self.db("pull", "same")
        ids = dict(self.psql("SELECT name, id FROM ipw.runs"))
        self.assertEqual(sorted(path.name for path in (self.root / "runs").iterdir()), ["same", f"same_{ids['same'][:8]}"])

    def test_pull_replaces_earlier_state_of_resumed_run(self):
        """Files of the user are kept."""
        self.db("init")
        run = self.make("one")
        (run / "samples-2.csv").write_text("of an attempt that is gone\n")
        self.db("push", run)
        self.db("pull", "one", "--output-dir", "back")
        (self.root / "back/one/notes.txt").write_text("mine")
        (run / "samples-2.csv").unlink()
        with open(run / "records.jsonl", "a") as file:
            file.write(json.dumps(query(5, joules=1 / 3)) + "\n")
        self.db("push", run)
        self.assertIn("pulled", self.db("pull", "one", "--output-dir", "back").stderr)
        self.assertEqual(contents(self.root / "back"),
                         {"one/notes.txt": b"mine", **{f"one/{name}": held for name, held in contents(run).items()}})

    def test_damaged_run_is_not_pulled(self):
        self.db("init")
        self.db("push", self.make("one"))
        self.psql("UPDATE ipw.files SET content = overlay(content placing '\\x5a'::bytea from 100) WHERE piece = 0")
        self.assertIn("differs from what was stored", self.db("pull", "one", "--output-dir", "back", code=1).stderr)
        self.assertEqual(list((self.root / "back").iterdir()), [])

    def test_path_traversal_in_names_is_rejected(self):
        """Write access to the tables must not give write access to the machine that pulls."""
        self.db("init")
        self.db("push", self.make("one"))
        for table, name in (("files", "../../escaped"), ("files", "hf_dataset/../x.json"), ("runs", "../escaped")):
            kept = self.psql(f"SELECT name FROM ipw.{table} LIMIT 1")[0][0]
            self.psql(f"UPDATE ipw.{table} SET name = '{name}' WHERE name = '{kept}'")
            self.assertIn("invalid name", self.db("pull", "--all", "--output-dir", "back", code=1).stderr)
            self.psql(f"UPDATE ipw.{table} SET name = '{kept}' WHERE name = '{name}'")
        self.assertEqual(list(self.root.rglob("*escaped*")), [])


class Listing(DbTest):
    def setUp(self):
        super().setUp()
        self.db("init")
        self.make("old", start=1.6e9, host="a", model="m1")
        self.make("mid", start=1.65e9, host="b", model="m1")
        self.make("new", start=1.7e9, host="b", model="m2")
        self.db("push", "runs")

    def names(self, *words):
        return [run["name"] for run in json.loads(self.db("list", "--json", *words).stdout)]

    def test_list_filters(self):
        self.assertEqual(self.names(), ["new", "mid", "old"])
        self.assertEqual(self.names("--host", "b"), ["new", "mid"])
        self.assertEqual(self.names("--host", "b", "--model", "m1"), ["mid"])
        self.assertEqual(self.names("--kind", "sweep"), [])
        self.assertEqual(self.names("--since", "2021-06-01"), ["new", "mid"])
        self.assertEqual(self.names("--limit", "1"), ["new"])
        self.assertEqual(self.names("mid"), ["mid"])
        ids = dict(self.psql("SELECT name, id FROM ipw.runs"))
        self.assertEqual(self.names(ids["old"][:6]), ["old"])
        table = self.db("list").stdout.splitlines()
        self.assertEqual([line.split()[-1] for line in table], ["name", "new", "mid", "old"])
        self.assertIn("--since", self.db("list", "--since", "soon", code=2).stderr)

    def test_prune_deletes_old_runs(self):
        self.assertIn("missing --older-than", self.db("prune", code=2).stderr)
        self.assertIn("would delete 2 runs", self.db("prune", "--older-than", "2023-01-01", "--dry-run").stderr)
        self.assertEqual(self.names(), ["new", "mid", "old"])
        self.assertIn("deleted 2 runs", self.db("prune", "--older-than", "2023-01-01").stderr)
        self.assertEqual(self.names(), ["new"])
        for table in "queries", "files":
            self.assertEqual(self.psql(f"SELECT count(DISTINCT run_id) FROM ipw.{table}"), [["1"]])


class Schema(DbTest):
    def test_missing_tables_are_reported(self):
        self.assertIn("run `ipw db init` first", self.db("push", self.make("one"), code=1).stderr)
        self.assertIn("run `ipw db init` first", self.db("list", code=1).stderr)

    def test_later_schema_version_is_refused(self):
        self.db("init")
        self.psql("INSERT INTO ipw.migrations VALUES (99, 'of tomorrow', 0, '9.9')")
        for action, words in ("init", []), ("push", [self.make("one")]), ("list", []):
            self.assertIn("schema version 99", self.db(action, *words, code=1).stderr)
            shutil.rmtree(self.root / "runs", ignore_errors=True)

    def test_migration_from_version_1(self):
        subprocess.run(["psql", "-X", "-q", "-h", "127.0.0.1", "-p", str(server.port), "-U", "postgres", "-d",
                        self.database, "-f", FIXTURES / "db/version1.sql"], check=True, capture_output=True)
        before = self.psql("SELECT company FROM ipw.queries WHERE run = 'old_run'")
        self.assertEqual([float(row[0]) for row in before], [1, 1])
        self.psql("ALTER TABLE ipw.queries DROP COLUMN energy_j")  # as if record.def had added it since
        self.assertIn("earlier schema", self.db("list", code=1).stderr)
        run = self.make("new", start=1.7e9 + 1)
        self.db("push", run)  # runs the migration
        self.assertEqual(self.stored()["new"], self.joules(run))
        self.assertEqual(self.psql("SELECT concurrency FROM ipw.queries WHERE run = 'old_run'"), before)
        fresh = server.create(self.database + "b")
        self.db("init", url=fresh)
        columns = "SELECT table_name, column_name, data_type FROM information_schema.columns WHERE " \
                  "table_schema = 'ipw' ORDER BY 1, 2"
        self.assertEqual(self.psql(columns), server.psql(columns, self.database + "b"))
        self.assertEqual(self.psql("SELECT version FROM ipw.migrations ORDER BY 1"),
                         server.psql("SELECT version FROM ipw.migrations ORDER BY 1", self.database + "b"))
        self.db("pull", "old_run")
        self.assertEqual(self.joules(self.root / "runs/old_run"), [10.0, 10.0 + 1 / 3])

    def test_reader_and_writer_roles(self):
        self.db("init", "--roles")
        self.db("init", "--roles")  # idempotent
        for role in "reader", "writer":
            name = f"{self.database}_{role}"
            self.psql(f"CREATE ROLE {name} LOGIN IN ROLE ipw_{role}")
            self.addCleanup(self.psql, f"DROP ROLE {name}")
        as_reader = server.url(self.database, f"{self.database}_reader")
        as_writer = server.url(self.database, f"{self.database}_writer")
        run = self.make("one")
        self.assertIn("permission denied", self.db("push", run, url=as_reader, code=1).stderr)
        self.assertEqual(self.stored(), {})
        self.psql("ALTER TABLE ipw.queries DROP COLUMN energy_j")
        self.db("push", run, url=as_writer)  # migrates as the owner of the tables
        self.assertEqual(self.stored(), {"one": self.joules(run)})
        self.assertIn("one", self.db("list", url=as_reader).stdout)
        self.db("pull", "one", "--output-dir", "back", url=as_reader)
        self.assertEqual(contents(self.root / "back/one"), contents(run))
        self.assertIn("permission denied", self.db("prune", "one", url=as_reader, code=1).stderr)
        self.check_dashboard(as_reader, run)

    def check_dashboard(self, as_reader, run):
        """`ipw serve` works with the reader role and reconnects after lost connections."""
        served = Dashboard("--db", as_reader, "--no-live", scratch=self.root)
        self.addCleanup(served.close)
        row, = served.get("runs")["runs"]
        self.assertEqual((row["name"], row["state"], row["queries"]), ("one", "done", 5))
        self.assertAlmostEqual(row["energy_j"], sum(self.joules(run)))

        def joules():
            records = served.ask(f"/api/v1/runs/{row['id']}/records")
            return records.status == 200 and [record["ipw"]["energy"]["joules"] for record in records.json["records"]]

        self.assertEqual(joules(), self.joules(run))
        self.psql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{self.database}_reader'")
        wait_until(lambda: joules() == self.joules(run))
        self.db("push", self.make("two", start=1.8e9))
        wait_until(lambda: (answer := served.ask("/api/v1/runs")).status == 200 and answer.json["total"] == 2)
        self.assertEqual(served.end(), 0)

    def test_invalid_addresses(self):
        for address in "mysql://u:s3cretpw@h/d", "lab", "http://lab/energy":
            said = self.db("list", url=address, code=2).stderr
            self.assertIn("postgres://", said)
            self.assertNotIn("s3cretpw", said)
        self.assertIn("missing database", self.ipw("db", "list", code=2, env={"IPW_DB": ""}).stderr)
        self.ipw("db", "init", code=0, env={"IPW_DB": self.url})
        self.assertIn("does not exist", self.db("list", url=server.url("nowhere"), code=1).stderr)


class Measuring(DbTest):
    def run_command(self, *words, code=0, **options):
        return self.ipw("run", "--output-dir", "runs", *words, "--", *python("raise SystemExit(0)"), code=code, **options)

    def test_run_is_pushed_when_database_is_back(self):
        """The measurement succeeds; pending runs are pushed later."""
        self.db("init")
        url = server.url(self.database, password="s3cretpw")
        self.run_command("--db", url)
        self.assertEqual(len(self.stored()), 1)
        server.stop()
        try:
            said = self.run_command("--db", url).stderr
            self.assertIn("was not pushed", said)
            self.assertIn("ipw db push", said)
            self.assertEqual(self.ipw("run", "--output-dir", "runs", "--db", url, "--", *python("raise SystemExit(7)"),
                                      code=7).returncode, 7)
            pending = [path.parent for path in self.root.rglob("pending.db")]
            self.assertEqual(len(pending), 2)
            self.assertIn("refused", self.ipw("db", "push", code=1).stderr)  # still unavailable and pending
            self.assertEqual(len(list(self.root.rglob("pending.db"))), 2)
        finally:
            server.start()
        self.ipw("db", "push")
        self.assertEqual(list(self.root.rglob("pending.db")), [])
        self.assertEqual({name for name in self.stored()}, {path.name for path in (self.root / "runs").glob("run_*")})
        self.assertEqual(len(self.stored()), 3)
        self.assertIn("no run in runs is pending", self.ipw("db", "push").stderr)
        for path, held in contents(self.root).items():
            self.assertNotIn(b"s3cretpw", held, path)
        self.assertNotIn("s3cretpw", said)
        self.assertEqual(self.psql("SELECT count(*) FROM ipw.files WHERE position('s3cretpw'::bytea in content) > 0"),
                         [["0"]])

    def test_sweep_is_pushed_with_its_runs(self):
        """Analyses of the pulled sweep give the same results."""
        self.db("init")
        self.ipw("sweep", "--knob", "a=1,2", "--repeat", "2", "--db", self.url, "--", *python("pass", "{a}"))
        (sweep,) = (self.root / "runs").glob("sweep_*")
        runs = [path.parent for path in sweep.rglob("points/*/*/records.jsonl")]
        self.assertEqual(len(runs), 4)
        kinds = self.psql("SELECT kind, count(*), count(sweep) FROM ipw.runs GROUP BY kind ORDER BY kind")
        self.assertEqual(kinds, [["run", "4", "4"], ["sweep", "1", "0"]])
        self.db("pull", "--kind", "sweep", "--output-dir", "back")
        back = self.root / "back" / sweep.name
        for run in [sweep, *runs]:
            here = {path.name: path.read_bytes() for path in run.iterdir() if path.is_file() and path.name != ".lock"}
            there = {path.name: path.read_bytes() for path in (back / run.relative_to(sweep)).iterdir() if path.is_file()}
            self.assertEqual(here, there)
        rows = [self.ipw("export", folder, "--to", "csv").stdout for folder in (sweep, back)]
        self.assertEqual(rows[0], rows[1])
        self.assertEqual(self.db("pull", "--all", "--output-dir", "all").stderr.count(" pulled "), 1)
        self.psql("UPDATE ipw.runs SET path = '../../x/' || name WHERE kind = 'run'")
        self.assertIn("invalid name", self.db("pull", "--all", "--output-dir", "none", code=1).stderr)
        self.db("prune", sweep.name)
        for table in "runs", "queries", "files":
            self.assertEqual(self.psql(f"SELECT count(*) FROM ipw.{table}"), [["0"]])

    def test_profile_is_pushed(self):
        self.db("init")
        self.ipw("profile", "--client", "null", "--model", "none", "--idle", "0", "--max-queries", "4",
                 "--warmup-queries", "0", "--db", self.url)
        (run,) = (self.root / "runs").glob("profile_*")
        self.assertEqual(self.psql("SELECT name, kind, queries FROM ipw.runs"), [[run.name, "profile", "4"]])
        self.assertEqual(self.psql("SELECT count(*) FROM ipw.queries"), [["4"]])
        self.assertIn("invalid database address",
                      self.ipw("profile", "--client", "null", "--model", "none", "--db", "lab", code=2).stderr)

    def test_agent_run_is_pushed(self):
        self.db("init")
        self.ipw("agent", "--client", "null", "--model", "none", "--dataset", "builtin", "--tools", "null", "--idle", "0",
                 "--max-queries", "3", "--warmup-queries", "0", "--db", self.url)
        (run,) = (self.root / "runs").glob("agent_*")
        self.assertEqual(self.psql("SELECT name, kind, queries FROM ipw.runs"), [[run.name, "agent", "3"]])
        self.assert_round_trip(run)

    def test_layers_are_pushed(self):
        """One run per model."""
        listing = json.loads(self.ipw("list", "clients", "--json").stdout)
        missing = next(row.get("missing") for row in listing["clients"] if row["name"] == "llama")
        if missing:
            self.skipTest(missing)
        self.db("init")
        for name in "a", "b":
            make(self.root / f"{name}.gguf", layers=2, hidden=64, heads=4, context=256)
        self.ipw("layers", "--model", "a.gguf,b.gguf", "--prompt-tokens", "16", "--gen", "4", "--repeat", "1", "--idle", "0",
                 "--threads", "1", "--window", "0.05", "--output-dir", "runs", "--db", self.url)
        runs = sorted((self.root / "runs").glob("layers_*"))
        self.assertEqual(len(runs), 2)
        self.assertEqual(self.psql("SELECT name, kind FROM ipw.runs ORDER BY name"), [[run.name, "layers"] for run in runs])
        for run in runs:
            self.assert_round_trip(run)

    def assert_round_trip(self, run):
        self.db("pull", run.name, "--output-dir", "back")
        here = {name: content for name, content in contents(run).items() if name != ".lock"}
        self.assertEqual(contents(self.root / "back" / run.name), here)


class Sqlite(DbTest):
    def test_missing_database(self):
        for url, hint in ((f"sqlite://{self.root}/none.db", "sqlite://PATH is a relative path"), ("sqlite://none.db", "")):
            words = self.db("list", url=url, code=1).stderr
            self.assertIn("none.db: `ipw db init` creates it", words)
            self.assertIn(hint, words)
        self.assertFalse((self.root / "none.db").exists())

    def test_sqlite_has_same_tables(self):
        self.db("init")
        path = self.root / "lab.db"
        url = f"sqlite://{path}"
        self.db("init", url=url)
        run = self.make("one")
        self.db("push", run)
        self.db("push", run, url=url)
        self.assertIn("unchanged", self.db("push", run, url=url).stderr)
        with sqlite3.connect(path) as database:
            for table in "runs", "queries", "files":
                columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
                self.assertEqual(columns, [row[0] for row in self.psql(
                    "SELECT column_name FROM information_schema.columns WHERE table_schema = 'ipw' AND "
                    f"table_name = '{table}' ORDER BY ordinal_position")])
            self.assertEqual([row[0] for row in database.execute("SELECT energy_j FROM queries ORDER BY \"index\"")],
                             self.joules(run))
        both = [json.loads(self.db("list", "--json", url=address).stdout) for address in (self.url, url)]
        for listed in both:
            del listed[0]["pushed"]
        self.assertEqual(both[0], both[1])
        self.db("pull", "one", "--output-dir", "back", url=url)
        self.assertEqual(contents(self.root / "back/one"), contents(run))
        self.assertIn("no roles", self.db("init", "--roles", url=url, code=1).stderr)


if __name__ == "__main__":
    unittest.main()
