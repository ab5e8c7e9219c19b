"""Tests of `ipw profile` that apply to every real server."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import make_gguf
import servers

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "cli"))
from machines import Fixture  # noqa: E402
from program import ipw  # noqa: E402

QUERIES = 12
ANSWER_TOKENS = 24
TIMEOUT_S = 150

# The rows of the directory as read by pyarrow; datasets, which takes a second to start, reads those of cli/test_python_ipw.
LOAD = """
import json, pathlib, pyarrow, sys
files = sorted(pathlib.Path(sys.argv[1]).glob("data-*.arrow"))
print(json.dumps([row for file in files for row in pyarrow.ipc.open_stream(file).read_all().to_pylist()]))
"""


class ProfileContract:
    """Mixin for a TestCase with `serve` (a context manager of servers.py), `client`, `suffix` and `more` options for
    every run."""

    suffix = ""
    more = ()

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="ipw-e2e-")
        cls.addClassCleanup(cls.folder.cleanup)
        model = Path(cls.folder.name, "random.gguf")
        make_gguf.make(model)
        server = cls.serve(model, parallel=4)
        cls.url = server.__enter__()
        cls.addClassCleanup(server.__exit__, None, None, None)
        cls.machine = Fixture("intel2", watts=40)
        cls.addClassCleanup(cls.machine.close)

    def address(self):
        return ("--client-base-url", self.url) if self.url else ()

    def profile(self, concurrency, *options):
        folder = tempfile.mkdtemp(dir=self.folder.name)
        done = ipw(self.machine, "profile", "--client", self.client, *self.address(),
                   "--model", self.url.model + self.suffix, "--dataset", "builtin",
                   "--max-queries", QUERIES, "--concurrency", concurrency, "--idle", "0.5",
                   "--param", f"max_tokens={ANSWER_TOKENS},temperature=0,seed=1",
                   "--output-dir", folder, "--json", "--quiet", *self.more, *options, timeout=TIMEOUT_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def sequential_report(self):
        """The report of a run with concurrency 1, shared by several tests."""
        if "report" not in type(self).__dict__:
            type(self).report = self.profile(1)
        return self.report

    def records(self, report):
        """The queries of the journal with their energies."""
        queries, energies = {}, {}
        for line in Path(report["output_dir"], "records.jsonl").read_text().split("\n")[:-1]:
            row = json.loads(line)
            if row["kind"] == "query":
                queries[row["key"]] = row
            elif row["kind"] == "energy":
                energies[row["key"]] = row["ipw"]["energy"]
        self.assertEqual(len(queries), QUERIES)
        self.assertEqual(set(queries), set(energies))
        return [(queries[key], energies[key]) for key in sorted(queries)]

    def metrics(self, query):
        return query["model_metrics"][self.url.model + self.suffix]

    def check_counts(self, report):
        self.assertEqual((report["completed"], report["failed"]), (QUERIES, 0))
        for query, _ in self.records(report):
            metrics = self.metrics(query)
            tokens = metrics["token_metrics"]
            self.assertGreater(tokens["input"], 0)
            self.assertTrue(0 < tokens["output"] <= ANSWER_TOKENS, tokens)
            latency = metrics["latency_metrics"]
            self.assertTrue(0 < latency["time_to_first_token_seconds"]
                            <= latency["total_query_seconds"], latency)

    def check_energy(self, report):
        """The machine's energy is the sum of queries, idle and unattributed energy."""
        shares = sum(energy["joules"] for _, energy in self.records(report))
        rest = report["joules"]["idle"] + report["joules"]["unattributed"]
        total = report["energy"]
        self.assertEqual(total["method"], "counter")
        self.assertLess(abs(shares + rest - total["joules"]) / total["joules"], 1e-3)
        self.assertLess(report["conservation_error"], 1e-3)
        for _, energy in self.records(report):
            self.assertGreater(energy["joules"], 0)
            self.assertGreater(energy["plus_minus"], 0)
            self.assertEqual(energy["method"], "counter")

    def test_concurrency_1(self):
        report = self.sequential_report()
        self.check_counts(report)
        self.check_energy(report)

    def test_concurrency_4(self):
        report = self.profile(4)
        self.check_counts(report)
        self.check_energy(report)
        # Some requests overlapped and were charged for part of the time.
        concurrency = report["statistics"]["requests_alive"]["max"]
        self.assertGreater(concurrency, 1.5)

    def test_pyarrow_reads_run_directory(self):
        report = self.sequential_report()
        done = subprocess.run([servers.ENVIRONMENT / "python/bin/python", "-c", LOAD,
                               report["output_dir"]],
                              check=True, capture_output=True, text=True, timeout=TIMEOUT_S)
        rows = json.loads(done.stdout)
        self.assertEqual(len(rows), QUERIES)
        kept = {query["key"]: (query, energy) for query, energy in self.records(report)}
        for row in rows:
            query, energy = kept[row["ipw"]["key"]]
            ours, theirs = self.metrics(query), self.metrics(row)
            self.assertEqual(row["problem"], query["problem"])
            self.assertEqual(theirs["token_metrics"], ours["token_metrics"])
            self.assertEqual(theirs["latency_metrics"]["total_query_seconds"],
                             ours["latency_metrics"]["total_query_seconds"])
            self.assertEqual(row["ipw"]["energy"]["joules"], energy["joules"])
            self.assertIsNone(theirs["energy_metrics"]["per_query_joules"])  # the machine has no GPU

    def test_unknown_model_is_reported(self):
        done = ipw(self.machine, "profile", "--client", self.client, *self.address(),
                   "--model", "no-such-model", "--dataset", "builtin", "--max-queries", "1",
                   "--idle", "0", "--param", f"max_tokens={ANSWER_TOKENS}", "--output-dir",
                   Path(self.folder.name, "none"), "--quiet", timeout=TIMEOUT_S)
        self.check_unknown_model(done)

    def check_unknown_model(self, done):
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("no-such-model", done.stderr)
