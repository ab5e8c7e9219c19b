#!/usr/bin/env python3
# test: real time
"""ipw export: each format is read by its standard library (csv, sqlite3, datasets, prometheus_client,
opentelemetry-proto) and compared with the records of the journal."""

import csv
import http.server
import io
import json
import os
import random
import re
import resource
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
import unittest
from base64 import b64encode
from collections import defaultdict
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
import oracle  # noqa: E402

oracle.use()

from machines import Intel  # noqa: E402
from profiling import ProfileTest, Run  # noqa: E402
from program import IPW, ipw  # noqa: E402
from rundirs import MODEL, query, summary, write_run  # noqa: E402

FORMATS = ["jsonl", "csv", "hf", "sqlite", "prom", "perfetto", "otlp-json", "otlp-metrics"]
STREAMS = ["jsonl", "csv", "prom", "perfetto", "otlp-json", "otlp-metrics"]

# Flat column -> path in the journal: from the top, or below the model's metrics.
PLACES = {
    "key": "/ipw.key", "index": "/ipw.index", "status": "/ipw.status", "error": "/ipw.error",
    "problem": "/problem", "expected_answer": "/answer", "subject": "/subject",
    "correct": "evaluation.is_correct", "evaluation_status": "evaluation.status", "started_at_unix_s": "/ipw.started_at",
    "latency_s": "latency_metrics.total_query_seconds",
    "time_to_first_token_s": "latency_metrics.time_to_first_token_seconds",
    "itl_median_ms": "latency_metrics.median_itl_ms", "input_tokens": "token_metrics.input",
    "output_tokens": "token_metrics.output", "energy_j": "/ipw.energy.joules",
    "energy_plus_minus_j": "/ipw.energy.plus_minus", "energy_method": "/ipw.energy.method",
    "energy_source": "/ipw.energy.source", "energy_coverage": "/ipw.energy.coverage",
    "energy_low_confidence": "/ipw.energy.low_confidence",
    "idle_energy_j": "/ipw.energy.idle_joules", "prefill_energy_j": "phase_metrics.prefill_energy_j",
    "decode_energy_j": "phase_metrics.decode_energy_j",
    "cpu_energy_j": "energy_metrics.cpu_per_query_joules",
    "gpu_energy_j": "energy_metrics.per_query_joules", "concurrency": "/ipw.concurrency"}


def at(record, place, model):
    value = record if place[0] == "/" else record["model_metrics"][model]
    for name in place.lstrip("/").split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def flat(record, model):
    return {column: at(record, place, model) for column, place in PLACES.items()} | {
        "response": record["model_answers"].get(model), "model": model}


class ExportTest(unittest.TestCase):
    def setUp(self):
        self.root = Path(tempfile.mkdtemp(prefix="ipw-export-"))
        self.addCleanup(shutil.rmtree, self.root)

    def export(self, run, to, *more, code=0):
        done = ipw(None, "export", run, "--to", to, *more)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout if code == 0 else done.stderr


class MeasuredRun(ProfileTest):
    """A measured run with two concurrent requests, one of which fails."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.root = Path(tempfile.mkdtemp(prefix="ipw-export-"))
        cls.addClassCleanup(shutil.rmtree, cls.root)
        machine = Intel(80)
        cls.addClassCleanup(machine.close)
        rows = [{"problem": f'question {n}, "quoted"\nand more ±', "answer": "Hello, world",
                 "subject": "maths", "level": n} for n in range(12)]
        rows.append({"problem": "fails [status:code=400]", "answer": "x", "subject": "s", "level": 1})
        dataset = cls.root / "questions.jsonl"
        dataset.write_text("\n".join(map(json.dumps, rows)))

        done = ipw(machine, "profile", "--client", "openai", "--model", "tiny-1b", "--idle", "0.1",
                   "--warmup-queries", "0", "--retries", "0", "--concurrency", "2", "--json",
                   "--output-dir", cls.root / "runs", "--client-base-url",
                   cls.service.url("mixed:delay=0.05,together=2"), "--dataset", dataset)
        assert done.stdout, done.stderr
        cls.kept = Run(json.loads(done.stdout)["output_dir"])
        cls.model = "tiny-1b"

    def setUp(self):
        super().setUp()
        self.records = list(self.kept.records().values())
        self.assertEqual(len(self.records), 13)

    def export(self, to, *more):
        done = ipw(None, "export", self.kept.path, "--to", to, *more)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def expected(self):
        return [flat(record, self.model) for record in self.records]

    def test_run_has_failure_concurrency_and_energy(self):
        self.assertEqual([r["ipw"]["status"] for r in self.records].count("failed"), 1)
        self.assertTrue(any(r["ipw"]["concurrency"] > 1.5 for r in self.records if "concurrency" in r["ipw"]))
        self.assertTrue(all(r["ipw"]["energy"]["method"] == "counter" for r in self.records))

    def test_jsonl(self):
        rows = [json.loads(line) for line in self.export("jsonl").splitlines()]
        self.assertEqual([{k: row[k] for k in self.expected()[0]} for row in rows], self.expected())
        self.assertEqual({row["run"] for row in rows}, {self.kept.path.name})
        self.assertEqual(len({tuple(row) for row in rows}), 1)  # same keys in the same order
        for key in rows[0]:
            if "energy" in key and not re.search(r"_(basis|method|source|coverage|updates|confidence|note)$", key):
                self.assertRegex(key, "_j$")

    def test_csv(self):
        rows = list(csv.DictReader(io.StringIO(self.export("csv"), newline="")))
        self.assertEqual(len(rows), 13)
        for row, true in zip(rows, self.expected()):
            self.assertNotIn(None, row)
            for column, value in true.items():
                if isinstance(value, bool):
                    self.assertEqual(row[column], str(value).lower(), column)
                elif isinstance(value, (int, float)):
                    self.assertEqual(float(row[column]), value, column)
                else:
                    self.assertEqual(row[column], value or "", column)

    def test_sqlite(self):
        file = self.root / "all.db"
        file.unlink(missing_ok=True)
        for more in ((), ("--replace",)):  # the second replaces the first
            self.export("sqlite", "-o", file, *more)
        other = write_run(self.root / "other", [query(i) for i in range(3)])
        self.assertEqual(ipw(None, "export", other, "--to", "sqlite", "-o", file).returncode, 0)
        with sqlite3.connect(file) as db:
            db.row_factory = sqlite3.Row
            rows = db.execute("SELECT * FROM queries WHERE run = ?", (self.kept.path.name,)).fetchall()
            self.assertEqual([{k: row[k] for k in self.expected()[0]} for row in rows], self.expected())
            runs = db.execute("SELECT run, joules, completed, summary FROM runs ORDER BY queries").fetchall()
            self.assertEqual([row["run"] for row in runs], ["other", self.kept.path.name])
            self.assertEqual(json.loads(runs[1]["summary"]), self.kept.summary())
            self.assertEqual(runs[1]["joules"], self.kept.summary()["ipw"]["energy"]["joules"])
            self.assertEqual(db.execute("SELECT count(*) FROM queries").fetchone()[0], 16)
            self.assertEqual(db.execute("PRAGMA integrity_check").fetchone()[0], "ok")
        db.close()
        file.unlink()
        shutil.rmtree(other)

    def test_hf(self):
        try:
            import datasets
            from pyarrow import parquet
        except ImportError:
            self.skipTest("datasets is not here (IPW_PYTHON names an interpreter that has it)")
        where = self.root / "hf"
        shutil.rmtree(where, ignore_errors=True)
        self.export("hf", "--output-dir", where)
        ours, theirs = datasets.load_from_disk(str(where)), datasets.load_from_disk(str(self.kept.path))
        self.assertEqual(ours.features, theirs.features)
        self.assertEqual(ours.to_list(), theirs.to_list())
        self.assertEqual(ours["problem"], [record["problem"] for record in self.records])
        manual = (Path(os.environ["IPW_SOURCE"]) / "docs/formats.md").read_text()
        script = re.search(r"python3 -c '([^']*to_parquet[^']*)'", manual)[1]  # the documented conversion
        file = self.root / "run.parquet"
        exec(script.replace("DIR", str(where)).replace("FILE", str(file)), {})
        self.assertEqual(parquet.read_table(file).to_pylist(), ours.flatten().to_list())
        done = ipw(None, "export", self.kept.path, "--to", "hf", "--output-dir", where)
        self.assertEqual(done.returncode, 1)
        self.assertIn("is not empty", done.stderr)

    def test_prom(self):
        try:
            from prometheus_client.parser import text_string_to_metric_families
        except ImportError:
            self.skipTest("prometheus_client is not here (IPW_PYTHON names an interpreter that has it)")
        text = self.export("prom")
        families = list(text_string_to_metric_families(text))
        self.assertEqual(len({f.name for f in families}), len(families))
        for family in families:
            self.assertEqual(family.type, "gauge", family.name)
            self.assertTrue(family.documentation, family.name)
        samples = {(s.name, *sorted(s.labels.items())): s.value for f in families for s in f.samples}
        self.assertEqual(len(samples), sum(len(f.samples) for f in families))  # no duplicate line
        common = {"run": self.kept.path.name, "model": "tiny-1b"}
        whole = self.kept.summary()

        def value(name, **labels):
            found = [v for k, v in samples.items() if k[0] == name and
                     (common | labels).items() <= dict(k[1:]).items()]
            self.assertEqual(len(found), 1, name)
            return found[0]
        self.assertEqual(value("ipw_run_energy_joules"), whole["ipw"]["energy"]["joules"])
        self.assertEqual(value("ipw_run_queries", status="failed"), 1)
        self.assertEqual(value("ipw_run_queries", status="completed"), 12)
        self.assertEqual(value("ipw_run_attributed_energy_joules", to="queries"),
                         whole["ipw"]["joules"]["queries"])
        self.assertEqual(value("ipw_run_info", energy_method="counter"), 1)
        self.assertEqual(value("ipw_run_time_to_first_token_seconds", percentile="95"),
                         whole["ipw"]["time_to_first_token_s"]["p95"])
        device = whole["ipw"]["devices"][0]
        self.assertEqual(value("ipw_run_device_energy_joules", device=device["id"]),
                         device["energy"]["joules"])

    def test_perfetto(self):
        trace = json.loads(self.export("perfetto"))
        events = trace["traceEvents"]
        spans = defaultdict(list)
        for event in events:
            if event["ph"] == "X":
                self.assertGreaterEqual(event["ts"], 0)
                spans[event["pid"], event["tid"]].append(event)
        self.assertEqual(len(spans), 2)  # two concurrent requests: two lanes
        seen = 0
        for lane in spans.values():
            queries = [e for e in lane if e["name"].startswith("q")]
            seen += len(queries)
            for before, after in zip(queries, queries[1:]):
                self.assertLessEqual(before["ts"] + before["dur"], after["ts"] + 1e-4)
            for phase in (e for e in lane if e["name"] in ("prefill", "decode")):
                holds = [q for q in queries if q["ts"] - 1e-4 <= phase["ts"] and
                         phase["ts"] + phase["dur"] <= q["ts"] + q["dur"] + 1e-4]
                self.assertEqual(len(holds), 1, phase)
        self.assertEqual(seen, 13)
        record = self.records[0]
        span = next(e for lane in spans.values() for e in lane if e["name"] == record["key"])
        self.assertEqual(span["args"]["energy_j"], record["ipw"]["energy"]["joules"])
        self.assertAlmostEqual(span["ts"] / 1e6 + trace["otherData"]["begin_unix_s"],
                               record["ipw"]["started_at"], places=5)
        self.assertAlmostEqual(span["dur"] / 1e6, at(record, PLACES["latency_s"], self.model), places=8)
        counters, names = defaultdict(list), {}
        for event in events:
            if event["ph"] == "C":
                counters[event["pid"], event["name"]].append((event["ts"], event["args"]["value"]))
            elif event["name"] == "process_name":
                names[event["pid"]] = event["args"]["name"]
        self.assertEqual(names[1], "queries")
        power = next(points for (pid, name), points in counters.items()
                     if names[pid] == "cpu0" and name.endswith(" W"))
        with open(self.kept.path / "samples.csv", newline="") as file:
            taken = [row for row in csv.DictReader(file) if row["device"] == "cpu0" and row["quantity"] == "energy"]
        self.assertEqual(len(power), len(taken) - 1)  # mean power between two readings
        self.assertEqual([t for t, _ in power], sorted(t for t, _ in power))
        begin, end = power[0][0], power[-1][0]
        joules = sum(w * (t1 - t0) for (t0, w), (t1, _) in zip(power, power[1:])) / 1e6
        self.assertAlmostEqual(joules / ((end - begin) / 1e6), 80, delta=8)  # the machine's 80 W
        first = min(e["ts"] for lane in spans.values() for e in lane)
        self.assertLess(begin, first)

    def test_otlp_traces(self):
        try:
            from google.protobuf import json_format
            from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
        except ImportError:
            self.skipTest("opentelemetry-proto is not here (IPW_PYTHON names an interpreter that has it)")
        spans = []
        for line in self.export("otlp-json").splitlines():
            document = json.loads(line)
            for span in document["resourceSpans"][0]["scopeSpans"][0]["spans"]:
                for key in ("traceId", "spanId", "parentSpanId"):  # OTLP/JSON uses hex, protobuf's JSON base64
                    if key in span:
                        self.assertRegex(span[key], r"^[0-9a-f]{%d}$" % (32 if key == "traceId" else 16))
                        span[key] = b64encode(bytes.fromhex(span[key])).decode()
            message = json_format.ParseDict(document, ExportTraceServiceRequest())
            resource_of = {a.key: a.value.string_value for a in message.resource_spans[0].resource.attributes}
            self.assertEqual(resource_of["service.name"], "ipw")
            spans += message.resource_spans[0].scope_spans[0].spans
        roots = [span for span in spans if not span.parent_span_id]
        self.assertEqual(len(roots), 13)
        self.assertEqual(len({span.span_id for span in spans}), len(spans))
        self.assertEqual(len({span.trace_id for span in roots}), 13)
        for root, record in zip(roots, self.records):
            self.check_span(root, record)
        by_id = {span.span_id: span for span in roots}
        for child in (span for span in spans if span.parent_span_id):
            parent = by_id[child.parent_span_id]
            self.assertEqual(child.trace_id, parent.trace_id)
            self.assertLessEqual(parent.start_time_unix_nano, child.start_time_unix_nano)
            self.assertLessEqual(child.end_time_unix_nano, parent.end_time_unix_nano)
            self.assertIn(child.name, ("prefill", "decode"))
        self.assertEqual(self.export("otlp-json"), self.export("otlp-json"))  # including ids

    def check_span(self, span, record):
        attributes = {a.key: a.value for a in span.attributes}
        failed = record["ipw"]["status"] == "failed"
        self.assertEqual((span.name, span.kind), (f"chat {self.model}", 3))
        self.assertEqual(attributes["gen_ai.request.model"].string_value, self.model)
        self.assertEqual(attributes["gen_ai.operation.name"].string_value, "chat")
        self.assertEqual(attributes["gen_ai.provider.name"].string_value, "openai")
        self.assertEqual(attributes["ipw.energy.joules"].double_value, record["ipw"]["energy"]["joules"])
        self.assertEqual(attributes["ipw.energy.method"].string_value, "counter")
        self.assertEqual(span.status.code, 2 if failed else 1)
        self.assertEqual("error.type" in attributes, failed)
        self.assertAlmostEqual(span.start_time_unix_nano / 1e9, record["ipw"]["started_at"], places=5)
        if not failed:
            tokens = record["model_metrics"][self.model]["token_metrics"]
            self.assertEqual(attributes["gen_ai.usage.input_tokens"].int_value, tokens["input"])
            self.assertEqual(attributes["gen_ai.usage.output_tokens"].int_value, tokens["output"])
            reasons = attributes["gen_ai.response.finish_reasons"].array_value.values
            self.assertEqual([r.string_value for r in reasons], [record["ipw"]["finish_reason"]])
            length = (span.end_time_unix_nano - span.start_time_unix_nano) / 1e9
            self.assertAlmostEqual(length, at(record, PLACES["latency_s"], self.model), places=8)

    def test_otlp_metrics(self):
        try:
            from google.protobuf import json_format
            from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import \
                ExportMetricsServiceRequest
        except ImportError:
            self.skipTest("opentelemetry-proto is not here (IPW_PYTHON names an interpreter that has it)")
        message = json_format.Parse(self.export("otlp-metrics"), ExportMetricsServiceRequest())
        found = {m.name: m for m in message.resource_metrics[0].scope_metrics[0].metrics}
        energy = found["ipw.client.operation.energy"]
        joules = [record["ipw"]["energy"]["joules"] for record in self.records]
        point = energy.histogram.data_points[0]
        self.assertEqual((energy.unit, point.count, sum(point.bucket_counts)), ("J", 13, 13))
        self.assertAlmostEqual(point.sum, sum(joules))
        self.assertEqual((point.min, point.max), (min(joules), max(joules)))
        bounds = list(point.explicit_bounds)
        self.assertEqual(list(point.bucket_counts),
                         [sum(low < j <= high for j in joules) for low, high in
                          zip([float("-inf"), *bounds], [*bounds, float("inf")])])
        usage = found["gen_ai.client.token.usage"].histogram
        kinds = {a.value.string_value: p for p in usage.data_points for a in p.attributes
                 if a.key == "gen_ai.token.type"}
        self.assertEqual(set(kinds), {"input", "output"})
        self.assertEqual(found["gen_ai.client.operation.duration"].unit, "s")
        self.assertEqual(list(found["gen_ai.client.operation.duration"].histogram.data_points[0]
                              .explicit_bounds)[-1], 81.92)


class ExportedFiles(ExportTest):
    def test_two_runs_with_the_same_name(self):
        """Refused, stored under another name, or replaced: neither is lost silently."""
        file, runs = self.root / "all.db", [write_run(self.root / place / "run1", [query(i, joules=joules) for i in range(count)])
                                            for place, count, joules in (("a", 3, 1.0), ("b", 5, 2.0))]

        def held():
            db = sqlite3.connect(file)
            self.addCleanup(db.close)
            return db.execute("SELECT run, count(*), sum(energy_j) FROM queries GROUP BY run ORDER BY run").fetchall()

        self.export(runs[0], "sqlite", "-o", file)
        said = self.export(runs[1], "sqlite", "-o", file, code=1)
        self.assertEqual(said.count("\n"), 1)
        for words in ("'run1'", "--replace", "--name"):
            self.assertIn(words, said)
        self.assertEqual(held(), [("run1", 3, 3.0)])
        self.export(runs[1], "sqlite", "-o", file, "--name", "run1 of b")
        self.assertEqual(held(), [("run1", 3, 3.0), ("run1 of b", 5, 10.0)])
        self.export(runs[1], "sqlite", "-o", file, "--replace")
        self.assertEqual(held(), [("run1", 5, 10.0), ("run1 of b", 5, 10.0)])

    def test_list_exports(self):
        listing = json.loads(ipw(None, "list", "exports", "--json").stdout)
        self.assertEqual([row["name"] for row in listing["exports"]], FORMATS)
        self.assertEqual([row["name"] for row in listing["exports"] if not row["available"]], [])

    def test_file_equals_stdout(self):
        run = write_run(self.root / "run", [query(i) for i in range(5)])
        for name in STREAMS:
            out = self.root / f"out.{name}"
            self.export(run, name, "-o", out)
            self.assertEqual(out.read_text(), self.export(run, name), name)
        self.assertEqual([p.name for p in self.root.iterdir() if p.name.endswith(".tmp")], [])

    def test_writes_into_fifos_and_device_files(self):
        run = write_run(self.root / "run", [query(i) for i in range(5)])
        pipe, node = self.root / "pipe", self.root / "node"
        os.mkfifo(pipe)
        for name in STREAMS:
            reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE, text=True)
            self.export(run, name, "-o", pipe)
            self.assertEqual(reader.communicate(timeout=60)[0], self.export(run, name), name)
            self.assertTrue(stat.S_ISFIFO(pipe.lstat().st_mode), name)
        self.assertIn("not a regular file", self.export(run, "sqlite", "-o", pipe, code=1))
        self.assertTrue(stat.S_ISFIFO(pipe.lstat().st_mode))
        try:
            os.mknod(node, stat.S_IFCHR | 0o600, os.makedev(1, 7))  # a copy of /dev/full
            node.open("w").close()
        except OSError as problem:
            self.skipTest(f"no device node can be made here: {problem}")
        for name in STREAMS:
            self.assertIn("No space left", self.export(run, name, "-o", node, code=1))
            self.assertTrue(stat.S_ISCHR(node.lstat().st_mode), name)
        self.assertIn("not a regular file", self.export(run, "sqlite", "-o", node, code=1))
        self.assertTrue(stat.S_ISCHR(node.lstat().st_mode))

    def test_dash_and_dev_stdout_are_stdout(self):
        run = write_run(self.root / "run", [query(i) for i in range(5)])
        for name in STREAMS:
            for where in ("-", "/dev/stdout"):
                self.assertEqual(self.export(run, name, "-o", where), self.export(run, name), where)
        self.assertIn("sqlite needs -o FILE", self.export(run, "sqlite", "-o", "-", code=2))
        self.assertFalse(Path("-").exists())

    def test_labels_and_text_are_escaped(self):
        run = write_run(self.root / "run \"x\"\\ü", [query(0, problem="a,b\n\"c\"\r\n=1+1")],
                        dataset="line\nbreak \\ \"quote\"")
        out = self.root / "out.csv"
        self.export(run, "csv", "-o", out)
        with out.open(newline="") as file:
            row = next(csv.DictReader(file))
        self.assertEqual((row["problem"], row["run"]), ("a,b\n\"c\"\r\n=1+1", "run \"x\"\\ü"))
        line = next(line for line in self.export(run, "prom").splitlines() if line.startswith("ipw_run_info"))
        self.assertIn(r'run="run \"x\"\\ü"', line)
        self.assertIn(r'dataset="line\nbreak \\ \"quote\""', line)

    def test_spreadsheet_formulas_are_escaped(self):
        texts = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(1)", "\t=1", "-7", "+1.5e3", "a=b", ""]
        run = write_run(self.root / "run", [query(i, problem=text or " ") for i, text in enumerate(texts)])
        wanted = ["'=1+1", "'+cmd|' /C calc'!A0", "'-2+3", "'@SUM(1)", "'\t=1", "-7", "+1.5e3", "a=b", " "]
        for options, problems in (([], wanted), (["--raw"], texts[:-1] + [" "])):
            rows = list(csv.DictReader(io.StringIO(self.export(run, "csv", *options), newline="")))
            self.assertEqual([row["problem"] for row in rows], problems)

    def test_unfinished_run(self):
        run = write_run(self.root / "run", [query(i) for i in range(5)], whole=False)
        self.assertEqual(len(self.export(run, "csv").splitlines()), 6)
        self.assertEqual(json.loads(self.export(run, "jsonl").splitlines()[0])["model"], MODEL)
        self.assertIn("no summary.json", self.export(run, "prom", code=1))

    def test_unknown_is_not_zero(self):
        run = write_run(self.root / "run", [query(0, joules=None)])
        row = json.loads(self.export(run, "jsonl"))
        self.assertIsNone(row["energy_j"])
        row = next(csv.DictReader(io.StringIO(self.export(run, "csv"))))
        self.assertEqual((row["energy_j"], row["correct"]), ("", ""))
        self.assertNotIn("ipw.energy", self.export(run, "otlp-json"))
        whole = summary([query(0)])
        whole["ipw"]["energy"]["joules"] = None
        (run / "summary.json").write_text(json.dumps(whole))
        self.assertNotIn("\nipw_run_energy_joules{", self.export(run, "prom"))

    def test_several_models(self):
        rows = [query(0), query(1)]
        rows[1]["model_metrics"]["other"] = rows[1]["model_metrics"].pop(MODEL)
        run = write_run(self.root / "run", rows)
        self.assertEqual([json.loads(line)["key"] for line in self.export(run, "jsonl").splitlines()],
                         ["q000000"])
        self.assertEqual(json.loads(self.export(run, "jsonl", "--model", "other"))["key"], "q000001")
        self.assertIn("no record of model 'none'", self.export(run, "jsonl", "--model", "none", code=1))

    def test_rejects_invalid_arguments(self):
        run = write_run(self.root / "run", [query(0)])
        bare = self.root / "bare"
        bare.mkdir()
        for arguments, code, words in (
                ((run, "--to", "parquet"), 2, "unknown export 'parquet'"), ((run, "--to", "hf"), 2, "hf needs --output-dir DIR"),
                ((run, "--to", "sqlite"), 2, "sqlite needs -o FILE"),
                ((run, "--to", "cvs"), 2, "did you mean 'csv'"), ((run,), 2, "missing --to"),
                ((run, "--to", "csv", "--output-dir", "d"), 2, "csv writes a file: use -o FILE"),
                *(((run, "--to", "hf", *words), 2, "hf writes a directory: use --output-dir DIR instead of -o")
                  for words in (("-o", self.root / "d"), ("--output", self.root / "d"), ("-o", "-"),
                                ("--output-dir", self.root / "d", "-o", self.root / "d"))),
                (("--to", "csv"), 2, "missing run directory"), ((run, run, "--to", "csv"), 2, "more than one run directory"),
                ((self.root / "no", "--to", "csv"), 1, "no such directory"),
                ((bare, "--to", "csv"), 1, "not a run directory"),
                ((self.root, "--to", "csv"), 2, "more than one run directory"),
                ((run, "--to", "csv", "-o", self.root / "no" / "x"), 1, "cannot write"),
                ((run, "--to", "csv", "-o", self.root), 1, "cannot write"),
                ((run, "--to", "sqlite", "-o", self.root / "run" / "records.jsonl"), 1, "not a database"),
                ((write_run(self.root / "empty", []), "--to", "csv"), 1, "no record")):
            done = ipw(None, "export", *arguments)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (code, 1), (arguments, done.stderr))
            self.assertIn(words, done.stderr)
        self.assertEqual([p.name for p in self.root.iterdir() if ".tmp" in p.name or p.name == "d"], [])
        self.assertTrue((run / "records.jsonl").read_text().startswith('{"kind": "run"'))

    def test_full_disk_fails(self):
        run = write_run(self.root / "run", [query(i) for i in range(50)])
        with open("/dev/full", "w") as full:
            done = subprocess.run([IPW, "export", run, "--to", "csv"], stdout=full, stderr=subprocess.PIPE,
                                  text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("No space left", done.stderr)

    def test_damaged_run(self):
        run = write_run(self.root / "run", [query(i) for i in range(5)])
        lines = (run / "records.jsonl").read_text().splitlines(keepends=True)
        lines[2] = "{broken\n"
        (run / "records.jsonl").write_text("".join(lines))
        done = ipw(None, "export", run, "--to", "csv")
        self.assertEqual((done.returncode, len(done.stdout.splitlines())), (0, 5))
        self.assertIn("skipped 1 damaged line of records.jsonl; the first is line 3", done.stderr)
        (run / "summary.json").write_text("{")
        self.assertIn("summary.json", self.export(run, "csv", code=1))

    def test_overlapping_queries_have_separate_lanes(self):
        rows = [query(i, latency=5.0, started_at=1.7e9 + i) for i in range(20)]
        run = write_run(self.root / "run", rows)
        spans = [e for e in json.loads(self.export(run, "perfetto"))["traceEvents"]
                 if e["ph"] == "X" and e["name"].startswith("q")]
        self.assertEqual(len({e["tid"] for e in spans}), 5)
        self.assertEqual(sorted(e["name"] for e in spans), [f"q{i:06d}" for i in range(20)])

    def test_number_of_lanes_is_number_of_workers(self):
        """Spans of seven workers need seven lanes without overlap."""
        draws, rows = random.Random(4), []
        for worker in range(7):
            at = 1.7e9 + 0.01 * worker
            for _ in range(60):
                length = draws.randint(100, 1000) / 1024
                rows.append((at, length))
                at += length + draws.randint(1, 3) / 1024
        rows.sort(key=lambda row: row[0] + row[1])
        run = write_run(self.root / "run", [query(i, latency=length, started_at=at)
                                            for i, (at, length) in enumerate(rows)])
        spans = [e for e in json.loads(self.export(run, "perfetto"))["traceEvents"]
                 if e["ph"] == "X" and e["name"].startswith("q")]
        lanes = {e["tid"] for e in spans}
        self.assertEqual((len(spans), len(lanes)), (420, 7))
        for lane in lanes:
            mine = sorted((e["ts"], e["dur"]) for e in spans if e["tid"] == lane)
            self.assertFalse([a for a, b in zip(mine, mine[1:]) if a[0] + a[1] > b[0] + 1])

    def test_memory_does_not_grow_with_number_of_records(self):
        """Runs under a memory limit below the size of the records."""
        run = self.root / "run"
        write_run(run, [query(0)])
        text = json.dumps(query(0, problem="x" * 4000))
        with (run / "records.jsonl").open("w") as file:
            for i in range(4500):
                file.write(text.replace("q000000", f"q{i:06d}") + "\n")
        size = (run / "records.jsonl").stat().st_size
        limit = 16 << 20
        self.assertGreater(size, limit)
        for name in ("jsonl", "csv", "perfetto", "otlp-json", "sqlite"):
            out = self.root / f"out.{name}"
            done = subprocess.run(
                [IPW, "export", run, "--to", name, "-o", out], capture_output=True, text=True,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (limit, limit)))
            self.assertEqual((done.returncode, done.stderr), (0, ""), name)
            self.assertTrue(out.exists())
            out.unlink()


class Receiver(http.server.BaseHTTPRequestHandler):
    """An OTLP receiver; `responses` of its server are (status, headers, body), then 200."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received.append((self.path, self.headers, body))
        status, headers, reply = self.server.responses.pop(0) if self.server.responses else (200, {}, b"{}")
        self.send_response(status)
        for name, value in {**headers, "Content-Length": len(reply)}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *_):
        pass


class Pushed(ExportTest):
    def receiver(self, *responses):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
        server.received, server.responses = [], list(responses)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server, f"http://127.0.0.1:{server.server_address[1]}"

    def push(self, run, to, url, code=0, **environment):
        done = ipw(None, "export", run, "--to", to, "--push", url, env={**os.environ, **environment})
        self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
        return done.stderr

    def test_every_batch_arrives(self):
        run = write_run(self.root / "run", [query(i) for i in range(600)])
        for to, path, count in (("otlp-json", "/v1/traces", 3), ("otlp-metrics", "/v1/metrics", 1)):
            for more in ("", "/", path):
                server, url = self.receiver()
                said = self.push(run, to, url + more, OTEL_EXPORTER_OTLP_HEADERS="x-key=a%20b")
                self.assertEqual(said, f"ipw export: pushed {count} batch{'es' if count > 1 else ''} to {url}{path}\n")
                self.assertEqual([path for path, _, _ in server.received], [path] * count)
                self.assertEqual({(h["Content-Type"], h["x-key"]) for _, h, _ in server.received},
                                 {("application/json", "a b")})
                self.assertEqual([body.decode() for _, _, body in server.received],
                                 self.export(run, to).splitlines())

    def test_receiver_that_is_not_ready_is_asked_again(self):
        run = write_run(self.root / "run", [query(i) for i in range(3)])
        server, url = self.receiver((503, {"Retry-After": "0"}, b""), (429, {"Retry-After": "0"}, b""))
        self.push(run, "otlp-json", url)
        self.assertEqual(len({body for _, _, body in server.received}), 1)
        self.assertEqual(len(server.received), 3)

    def test_failures(self):
        run = write_run(self.root / "run", [query(i) for i in range(600)])
        dropped = json.dumps({"partialSuccess": {"rejectedSpans": "7", "errorMessage": "too old"}}).encode()
        server, url = self.receiver((200, {}, b"{}"), (400, {}, b"no"))
        said = self.push(run, "otlp-json", url, code=1)
        self.assertIn("refuses the data: HTTP status 400 (batches sent before: 1)", said)
        self.assertEqual((said.count("\n"), len(server.received)), (1, 2))
        server, url = self.receiver((200, {}, dropped))
        self.assertIn("the OTLP receiver dropped 7 spans: too old", self.push(run, "otlp-json", url, code=1))
        self.assertEqual(len(server.received), 3)
        for words, said in ((["--to", "csv"], "not csv"), (["--to", "otlp-json", "-o", "x"], "omit -o"),
                            (["--to", "otlp-json"], "'nonsense'")):
            done = ipw(None, "export", run, *words, "--push", url if said != "'nonsense'" else "nonsense")
            self.assertEqual(done.returncode, 1 if said == "'nonsense'" else 2, done.stderr)
            self.assertIn(said, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)


class PythonRuns(ExportTest):
    def test_directory_without_journal(self):
        """As written by the Python IPW: Arrow files and a summary."""
        ours = write_run(self.root / "ours", [query(i) for i in range(4)])
        made = self.root / "made"
        done = ipw(None, "export", ours, "--to", "hf", "--output-dir", made)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [json.loads(line) for line in self.export(made, "jsonl").splitlines()]
        self.assertEqual([row["key"] for row in rows], [f"q{i:06d}" for i in range(4)])
        self.assertEqual([{**row, "run": ""} for row in rows],
                         [{**json.loads(line), "run": ""} for line in self.export(ours, "jsonl").splitlines()])


if __name__ == "__main__":
    unittest.main(verbosity=2)
