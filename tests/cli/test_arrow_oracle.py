#!/usr/bin/env python3
"""Arrow files against other implementations: pyarrow, datasets, Polars and DuckDB read files of ipw, and ipw those of
pyarrow and datasets.  $IPW_PYTHON may name an interpreter with these packages; without them the test is skipped."""

import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import oracle  # noqa: E402

oracle.use()

import base64
import datetime
import json
import math
import random
import re
import struct
import subprocess
import tempfile
import unittest
from pathlib import Path

from program import IPW, TIMEOUT_S
from proxies import Proxy, Upstream, send_document

SCRATCH = tempfile.TemporaryDirectory(prefix="ipw-arrow-")
os.environ.update(HF_HOME=SCRATCH.name, HF_DATASETS_OFFLINE="1", HF_HUB_OFFLINE="1",
                  HF_DATASETS_DISABLE_PROGRESS_BARS="1")
try:
    import datasets
    import duckdb
    import polars
    import pyarrow as pa
except ImportError as error:
    print(f"skipped: {error} (set IPW_PYTHON to an interpreter that has datasets, duckdb, polars and pyarrow)")
    sys.exit(77)

BUILD = Path(os.environ.get("IPW_BUILD", "build")).resolve()
SOURCE = Path(os.environ.get("IPW_SOURCE", ".")).resolve()
MODELS = ["llama3.2:1b", 'org/a_b "x"', "modèle", "a.b"]

DOUBLE, TEXT, INTEGER, BOOL = pa.float64(), pa.string(), pa.int64(), pa.bool_()
STATS = ["avg", "max", "median", "min"]


def fields(kind, names):
    return [(name, kind) for name in names.split()]


def stats(name):
    return [(name, pa.struct(fields(DOUBLE, " ".join(STATS))))]


def watts():
    return pa.struct(stats("per_query_watts") + stats("total_watts"))


def metrics_type():
    """The schema of a record of the Python IPW, defined independently."""
    return pa.struct([
        ("compute_metrics", pa.struct(
            fields(DOUBLE, "flops_per_request macs_per_request") + fields(INTEGER, "total_flops")
            + fields(DOUBLE, "flops_per_token"))),
        ("energy_metrics", pa.struct(fields(DOUBLE, """
            per_query_joules total_joules cpu_per_query_joules cpu_total_joules judge_gpu_joules
            judge_cpu_joules total_task_gpu_joules total_task_cpu_joules ane_per_query_joules
            ane_total_joules soc_per_query_joules soc_total_joules energy_per_output_token_joules
            energy_per_total_token_joules""") + fields(TEXT, "basis"))),
        ("latency_metrics", pa.struct(fields(DOUBLE, """
            per_token_ms throughput_tokens_per_sec time_to_first_token_seconds total_query_seconds
            median_itl_ms p90_itl_ms p95_itl_ms p99_itl_ms itl_std_ms"""))),
        ("memory_metrics", pa.struct(stats("cpu_mb") + stats("gpu_mb"))),
        ("power_metrics", pa.struct([(part, watts()) for part in ("gpu", "cpu", "ane", "soc")]
                                    + fields(TEXT, "basis"))),
        *stats("temperature_metrics"),
        ("token_metrics", pa.struct(fields(INTEGER, "input output total"))),
        ("phase_metrics", pa.struct(fields(DOUBLE, """
            prefill_energy_j decode_energy_j prefill_duration_ms decode_duration_ms
            prefill_power_avg_w decode_power_avg_w prefill_energy_per_input_token_j
            decode_energy_per_output_token_j""")
            + fields(TEXT, "prefill_energy_components_j decode_energy_components_j"))),
        ("hardware_utilization", pa.struct([
            ("gpu", pa.struct(fields(DOUBLE, """
                compute_utilization_pct memory_bandwidth_utilization_pct
                tensor_core_utilization_pct memory_used_gb memory_total_gb"""))),
            ("derived", pa.struct(fields(DOUBLE, "mfu mbu arithmetic_intensity")))])),
        ("efficiency", pa.struct(fields(DOUBLE,
                                        "throughput_per_watt flops_per_joule flops_per_watt"))),
        ("cost", pa.struct(fields(DOUBLE, """
            input_cost_usd output_cost_usd tool_cost_usd total_cost_usd"""))),
        ("gpu_info", pa.struct(fields(TEXT, "name vendor") + fields(INTEGER, "device_id")
                               + fields(TEXT, "device_type backend"))),
        ("system_info", pa.struct(
            fields(TEXT, "os_name os_version kernel_version host_name")
            + fields(INTEGER, "cpu_count") + fields(TEXT, "cpu_brand"))),
        ("lm_correctness", BOOL),
        ("lm_response", TEXT),
        ("evaluation", pa.struct([("is_correct", BOOL), ("metadata", TEXT), ("status", TEXT)])),
    ])


def energy_type():
    return pa.struct(
        fields(DOUBLE, """joules plus_minus plus_minus_statistical coverage idle_joules
                          active_joules""")
        + fields(TEXT, "method source") + fields(INTEGER, "updates")
        + fields(BOOL, "low_confidence") + fields(TEXT, "note"))


def ipw_type():
    return pa.struct(
        fields(TEXT, "key id") + fields(INTEGER, "index repeat start")
        + fields(TEXT, "status error") + fields(INTEGER, "http_status attempts")
        + fields(TEXT, "finish_reason")
        + fields(DOUBLE, """started_at queue_s prefill_s decode_s server_load_s
                            server_prefill_s server_decode_s""")
        + fields(INTEGER, "prompt_cached_tokens reasoning_tokens pieces") + fields(TEXT, "tokens_note")
        + fields(BOOL, "paused") + fields(DOUBLE, "concurrency alone_s") + [("energy", energy_type())]
        + fields(DOUBLE, "window_joules prefill_plus_minus decode_plus_minus")
        + fields(TEXT, "devices") + [("judge_energy", energy_type())]
        + fields(TEXT, "failed_attempts") + fields(BOOL, "restored")
        + fields(INTEGER, "scored_tokens scored_bytes") + fields(DOUBLE, "negative_log_likelihood images audio_s denoise_steps")
        + fields(INTEGER, "turns inferences tool_calls")
        + fields(DOUBLE, "inference_s tool_s inference_joules tool_joules gap_joules"
                         " inference_plus_minus tool_plus_minus gap_plus_minus"))


def schema_of(model, metadata):
    return pa.schema([
        ("problem", TEXT), ("answer", TEXT), ("dataset_metadata", metadata), ("subject", TEXT),
        ("model_answers", pa.struct([(model, TEXT)])),
        ("model_metrics", pa.struct([(model, metrics_type())])),
        ("ipw", ipw_type())])


def random_value(kind, rng):
    """A random value of an Arrow type, or None with probability 1/4."""
    if pa.types.is_struct(kind):
        return {field.name: random_value(field.type, rng) for field in kind}
    if rng.random() < 0.25:
        return None
    if kind == DOUBLE:
        bits = struct.unpack("<d", rng.randbytes(8))[0]
        return rng.choice([0.1, 1 / 3, -2.5e-300, 1e22, 5.0, bits if math.isfinite(bits) else 0.0])
    if kind == INTEGER:
        return rng.choice([0, -1, 7, 2**53, -2**53])
    if kind == BOOL:
        return rng.random() < 0.5
    return rng.choice(["", "plain", "é😀 \"quoted\" \\ \n\t", "漢字", "\u2028", "a" * 300])


def tool(name, *arguments):
    done = subprocess.run([BUILD / "tests" / "tools" / name, *map(str, arguments)], capture_output=True,
                          timeout=TIMEOUT_S)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


class Case(unittest.TestCase):
    def folder(self):
        folder = tempfile.TemporaryDirectory(dir=SCRATCH.name)
        self.addCleanup(folder.cleanup)
        return Path(folder.name)

    def store(self, lines, model, metadata=None):
        """Writes a run directory with these journal lines; returns it and its table."""
        folder = self.folder()
        with open(folder / "records.jsonl", "w", encoding="utf-8") as journal:
            for line in lines:
                journal.write(json.dumps(line, ensure_ascii=False) + "\n")
        code, _, err = tool("run_store", "store", "arrow", folder, model,
                            json.dumps(metadata or {}), "{}")
        self.assertEqual(code, 0, err)
        table = pa.ipc.open_stream(folder / "data-00000-of-00001.arrow").read_all()
        table.validate(full=True)
        return folder, table

    def same(self, ours, theirs, where=""):
        """Asserts equality, bit for bit for floats."""
        if isinstance(theirs, dict) and isinstance(ours, dict):
            self.assertEqual(list(ours), list(theirs), where)
            for key in theirs:
                self.same(ours[key], theirs[key], f"{where}.{key}")
        elif isinstance(theirs, float):
            self.assertIsInstance(ours, (int, float), where)
            self.assertEqual(struct.pack("<d", ours), struct.pack("<d", theirs), where)
        else:
            self.assertEqual(ours, theirs, where)
            self.assertIs(type(ours), type(theirs), where)


class TestWriting(Case):
    def test_records_round_trip_bit_for_bit(self):
        rng = random.Random(1)
        metadata = pa.struct([("level", DOUBLE), ("name", TEXT), ("hard", BOOL)])
        for model in MODELS:
            schema = schema_of(model, metadata)
            rows = [{field.name: random_value(field.type, rng) for field in schema} for _ in range(1500 if model == MODELS[1] else 20)]
            lines = [{"kind": "query", "key": f"k{i}", **row} for i, row in enumerate(rows)]
            folder, table = self.store(lines, model, {"level": 1.5, "name": "", "hard": True})
            self.assertEqual(table.schema.remove_metadata(), schema)
            self.assertEqual(table.column(0).num_chunks, 1 + len(rows) // 1000)
            loaded = datasets.load_from_disk(str(folder))
            self.assertEqual(loaded.features.arrow_schema.remove_metadata(), schema)
            for ours, theirs in zip(rows, table.to_pylist(), strict=True):
                self.same(theirs, ours)
            for at in (0, 999, 1000, 1499) if len(rows) > 1000 else (0, 19):
                self.same(loaded[at]["model_metrics"][model], rows[at]["model_metrics"][model])

    def test_unknown_fields_are_null(self):
        model = MODELS[0]
        _, table = self.store([{"kind": "query", "key": "k"}], model, {"level": 3})
        row = table.to_pylist()[0]
        self.assertIsNone(row["problem"])
        self.assertEqual(row["model_answers"], {model: None})
        self.assertEqual(row["dataset_metadata"], {"level": None})
        metrics = row["model_metrics"][model]
        # Readers access these structs without a check; only the three optional ones are null.
        for name, group in metrics.items():
            if name in ("gpu_info", "system_info", "evaluation", "lm_correctness", "lm_response"):
                self.assertIsNone(group, name)
            else:
                self.assertIsInstance(group, dict, name)
        self.assertIsNone(metrics["power_metrics"]["gpu"]["per_query_watts"]["avg"])
        self.assertIsNone(metrics["energy_metrics"]["per_query_joules"])
        self.assertFalse(any(pa.types.is_null(kind) for kind in self.leaves(table.schema)))

    def leaves(self, schema):
        kinds = [field.type for field in schema]
        while kinds:
            kind = kinds.pop()
            if pa.types.is_struct(kind):
                kinds += [field.type for field in kind]
            else:
                yield kind

    def test_later_journal_lines_are_merged_into_row(self):
        model = MODELS[1]
        metrics = "model_metrics"
        lines = [
            {"kind": "query", "key": "a", "problem": "p", metrics: {model: {"lm_response": "r"}}},
            {"kind": "energy", "key": "a", metrics: {model: {"energy_metrics": {"per_query_joules": 2}}}},
            {"kind": "grade", "key": "a", metrics: {model: {"evaluation": {
                "is_correct": True, "metadata": {"evaluation_attempts": 1}, "config": {}, "status": "graded"}}}},
        ]
        _, table = self.store(lines, model)
        row = table.to_pylist()[0][metrics][model]
        self.assertEqual(row["lm_response"], "r")
        self.assertEqual(row["energy_metrics"]["per_query_joules"], 2.0)
        self.assertEqual(row["evaluation"], {"is_correct": True, "metadata": '{"evaluation_attempts":1}',
                                             "status": "graded"})

    def test_dataset_metadata_columns(self):
        example = {"level": 5, "tags": ["a"], "deep": {"x": 1}, "note": None, "ok": False, "s": "x"}
        item = {"level": 2.5, "tags": ["é", 1], "deep": {}, "note": "n", "ok": True, "s": "y"}
        _, table = self.store([{"kind": "query", "key": "k", "dataset_metadata": item}], "m", example)
        self.assertEqual(table.schema.field("dataset_metadata").type, pa.struct([
            ("level", DOUBLE), ("tags", TEXT), ("deep", TEXT), ("note", TEXT), ("ok", BOOL),
            ("s", TEXT)]))
        row = table.to_pylist()[0]["dataset_metadata"]
        self.assertEqual(row, {"level": 2.5, "tags": '["é",1]', "deep": "{}", "note": "n",
                               "ok": True, "s": "y"})

    def test_empty_run(self):
        folder, table = self.store([], MODELS[0])
        self.assertEqual(table.num_rows, 0)
        self.assertNotIn("dataset_metadata", table.schema.names)
        self.assertEqual(len(datasets.load_from_disk(str(folder))), 0)

    def test_files_of_dataset_directory(self):
        folder, table = self.store([{"kind": "query", "key": "k"}], MODELS[0])
        state = json.loads((folder / "state.json").read_text())
        self.assertRegex(state.pop("_fingerprint"), re.compile(r"\A[0-9a-f]{16}\Z"))
        self.assertEqual(state, {
            "_data_files": [{"filename": "data-00000-of-00001.arrow"}], "_format_columns": None,
            "_format_kwargs": {}, "_format_type": None, "_output_all_columns": False,
            "_split": None})
        info = json.loads((folder / "dataset_info.json").read_text())
        self.assertEqual(list(info), ["citation", "description", "features", "homepage", "license"])
        inside = json.loads(table.schema.metadata[b"huggingface"])["info"]["features"]
        self.assertEqual(info["features"], inside)
        self.assertEqual(inside["problem"], {"dtype": "string", "_type": "Value"})
        self.assertNotIn("dataset_metadata", inside)
        self.assertEqual(list(inside["model_metrics"][MODELS[0]]["evaluation"]),
                         ["is_correct", "metadata", "status"])

    def test_datasets_can_modify_and_save(self):
        model = MODELS[1]
        lines = [{"kind": "query", "key": str(i), "problem": str(i)} for i in range(5)]
        folder, _ = self.store(lines, model)
        again = self.folder() / "again"
        loaded = datasets.load_from_disk(str(folder)).map(lambda row: {"problem": row["problem"] + "!"})
        loaded.save_to_disk(str(again))
        code, out, err = tool("arrow_cat", next(again.glob("*.arrow")))
        self.assertEqual(code, 0, err)
        self.assertEqual([json.loads(line)["problem"] for line in out.splitlines()],
                         ["0!", "1!", "2!", "3!", "4!"])

    def test_twenty_batches(self):
        count = 20_000
        lines = ({"kind": "query", "key": f"k{i}", "ipw": {"index": i}} for i in range(count))
        folder, table = self.store(lines, "m")
        index = table.column("ipw").combine_chunks().field("index")
        self.assertEqual(index.to_pylist(), list(range(count)))
        self.assertEqual(len(datasets.load_from_disk(str(folder))), count)


class TestRun(Case):
    def missing_fields(self, record, kind, where=""):
        """Fields of a record that its columns lack."""
        for key, value in record.items():
            place = f"{where}.{key}"
            field = next((field for field in kind if field.name == key), None)
            if field is None and value != {}:
                yield place
            elif field is None:
                continue
            elif isinstance(value, dict) and pa.types.is_struct(field.type):
                yield from self.missing_fields(value, field.type, place)

    def test_all_fields_of_a_run_are_columns(self):
        model = MODELS[1]
        done = subprocess.run(
            [os.environ.get("IPW", "build/ipw"), "profile", "--client", "null", "--model", model,
             "--max-queries", "5"], cwd=self.folder_of_runs(), capture_output=True, timeout=TIMEOUT_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        run = next(self.runs.glob("runs/profile_*"))
        table = pa.ipc.open_stream(run / "data-00000-of-00001.arrow").read_all()
        table.validate(full=True)
        records = [json.loads(line) for line in tool("run_store", "records", run)[1].splitlines()]
        self.assertEqual(len(records), 5)
        for record, row in zip(records, table.to_pylist(), strict=True):
            # Kind, key, reasoning text and objects without members are only in the journal.
            self.assertLessEqual(set(self.missing_fields(record, table.schema)), {".kind", ".key", ".reasoning"})
            self.assertEqual(row["ipw"]["key"], record["key"])
            self.same(row["model_metrics"][model]["latency_metrics"]["total_query_seconds"],
                      record["model_metrics"][model]["latency_metrics"]["total_query_seconds"])
        self.assertEqual(len(datasets.load_from_disk(str(run))), 5)

    def folder_of_runs(self):
        self.runs = self.folder()
        return self.runs


class TestReaders(Case):
    """Readers other than pyarrow get the same values, directly and from the Parquet file that `datasets` makes, which it
    also uploads to a hub."""

    def check(self, folder):
        folder = Path(folder)
        table = pa.ipc.open_stream(folder / "data-00000-of-00001.arrow").read_all()
        rows = table.to_pylist()
        with open(folder / "data-00000-of-00001.arrow", "rb") as file:
            self.assertEqual(polars.read_ipc_stream(file).to_dicts(), rows)
        loaded = datasets.load_from_disk(str(folder))
        parquet = self.folder() / "run.parquet"
        loaded.to_parquet(str(parquet))
        self.assertEqual(polars.read_parquet(parquet).to_dicts(), rows)
        connection = duckdb.connect()
        connection.register("run", table)
        for source in ("run", f"'{parquet}'"):
            read = connection.execute(f"SELECT * FROM {source}")
            names = [column[0] for column in read.description]
            self.assertEqual([dict(zip(names, row, strict=True)) for row in read.fetchall()], rows)
        return rows

    def test_records_with_and_without_metadata(self):
        rng = random.Random(2)
        for metadata, example in ((pa.struct([("level", DOUBLE)]), {"level": 1}), (pa.struct([]), {})):
            schema = schema_of(MODELS[1], metadata)
            lines = [{"kind": "query", "key": f"k{i}",
                      **{field.name: random_value(field.type, rng) for field in schema}} for i in range(20)]
            folder, table = self.store(lines, MODELS[1], example)
            self.assertEqual("dataset_metadata" in table.schema.names, bool(example))
            self.assertEqual(len(self.check(folder)), 20)

    def test_runs_of_earlier_versions(self):
        """Their Arrow files may have structs without fields: ipw reads them, and what it writes from the same journal has
        none."""
        for run in sorted((SOURCE / "tests/fixtures/runs").glob("*/data-00000-of-00001.arrow")):
            with self.subTest(run.parent.name):
                model = json.loads((run.parent / "summary.json").read_text())["model"]
                code, out, err = tool("arrow_cat", run)
                self.assertEqual(code, 0, err)
                old = [json.loads(line) for line in out.splitlines()]
                lines = [json.loads(line) for line in (run.parent / "records.jsonl").read_text().splitlines()]
                folder, _ = self.store(lines, model, old[0]["dataset_metadata"])
                new = self.check(folder)
                self.assertEqual([row["ipw"]["key"] for row in new], [row["ipw"]["key"] for row in old])
                self.assertEqual([row["model_answers"] for row in new], [row["model_answers"] for row in old])

    def test_traces_of_an_agent(self):
        """Exported as queries, and as the traces of the Python IPW."""
        out = self.folder() / "out"
        run = SOURCE / "tests/fixtures/measured/agent"
        subprocess.run([IPW, "export", run, "--to", "hf", "--output-dir", out], check=True, timeout=TIMEOUT_S)
        traces = [json.loads(line)["query_id"] for line in (run / "traces.jsonl").read_text().splitlines()]
        self.assertEqual(len(self.check(out)), len(traces))
        self.assertEqual([row["query_id"] for row in self.check(out / "hf_dataset")], traces)

    def test_every_kind_of_run(self):
        runs = self.folder()
        program = os.environ.get("IPW", "build/ipw")
        data = runs / "data.jsonl"
        data.write_text('{"problem": "p", "answer": "a", "level": 2}\n{"problem": "q", "answer": "b", "level": 3}\n')
        script = runs / "script.jsonl"
        script.write_text(json.dumps({"content": "408"}) + "\n")
        common = ["--client", "null", "--model", "m", "--output-dir", str(runs), "--idle", "0"]
        for name, words in {
            "profile": ["profile", *common, "--max-queries", "3"],
            "metadata": ["profile", *common, "--dataset", str(data)],
            "repeated": ["profile", *common, "--dataset", str(data), "--repeat", "2"],
            "agent": ["agent", *common, "--dataset", str(data), "--client-param", f"script={script}",
                      "--workspaces", str(runs / "work")],
        }.items():
            done = subprocess.run([program, *words, "--name", name], capture_output=True, timeout=TIMEOUT_S)
            self.assertEqual(done.returncode, 0, done.stderr)
        upstream = Upstream(send_document)
        self.addCleanup(upstream.close)
        proxy = Proxy(upstream.url, runs)
        proxy.ask()
        self.assertEqual(proxy.end(), 0)
        found = sorted(path.parent for path in runs.glob("**/data-00000-of-00001.arrow"))
        self.assertEqual({path.relative_to(runs).as_posix() for path in found},
                         {"profile", "metadata", "repeated", "agent", "agent/hf_dataset", "runs/run"})
        for path in found:
            with self.subTest(path.name):
                self.assertTrue(self.check(path))


class TestReading(Case):
    def write(self, table, path, rows=None, **options):
        with pa.OSFile(str(path), "wb") as file, \
                pa.ipc.new_stream(file, table.schema, **options) as writer:
            writer.write_table(table, max_chunksize=rows)

    def read(self, path):
        code, out, err = tool("arrow_cat", path)
        self.assertEqual(code, 0, err)
        return [json.loads(line) for line in out.splitlines()]

    def refused(self, path, reason):
        code, _, err = tool("arrow_cat", path)
        self.assertEqual(code, 1)
        self.assertIn(reason, err)
        self.assertIn(path.name, err)

    def test_reads_every_arrow_type(self):
        integers = {f"{sign}int{bits}": pa.array(
            [0, None, 2**(bits - (not sign)) - 1, 0 if sign else -2**(bits - 1)],
            getattr(pa, f"{sign}int{bits}")()) for sign in ("", "u") for bits in (8, 16, 32, 64)}
        others = {
            "half": pa.array([0.5, None, -1, 2], pa.float16()),
            "single": pa.array([0.1, None, 1e30, -0.0], pa.float32()),
            "double": pa.array([0.1, None, 1e-300, 2.0**60]),
            "long": pa.array([2**53 - 1, 2**53, 2**53 + 1, -2**53 - 1]),
            "bool": pa.array([True, None, False, True]),
            "text": pa.array(["", None, "é😀\u0000\n\"", "x" * 5000]),
            "large": pa.array(["a", None, "", "b"], pa.large_string()),
            "list": pa.array([[1, None], None, [], [2]], pa.list_(pa.int16())),
            "large_list": pa.array([["a"], None, [], [None]], pa.large_list(pa.string())),
            "fixed": pa.array([[1.5, 2.5], None, [None, 1], [0, 0]], pa.list_(DOUBLE, 2)),
            "struct": pa.array([{"x": 1, "y": [{"z": "a"}]}, None, {"x": None, "y": None},
                                {"x": 2, "y": []}]),
            "empty": pa.array([{}, None, {}, {}], pa.struct([])),
            "null": pa.nulls(4),
        }
        table = pa.table({**integers, **others})
        expected = table.to_pylist()
        expected[2]["text"] = expected[2]["text"].replace("\u0000", "\ufffd")  # a C string cannot hold it
        for rows in (None, 1, 3):
            path = self.folder() / "all.arrow"
            self.write(table, path, rows)
            for ours, theirs in zip(self.read(path), expected, strict=True):
                self.assertEqual(list(ours), list(theirs))
                for name, value in theirs.items():
                    self.assertEqual(ours[name], value, name)

    def test_reads_types_without_json_equivalent(self):
        day, moment = datetime.date(1969, 12, 31), datetime.datetime(2024, 2, 29, 1, 2, 3, 45)
        table = pa.table({
            "binary": pa.array([b"\x00\xff", b"", None]),
            "fixed": pa.array([b"abcd", b"\x00" * 4, None], pa.binary(4)),
            "day": pa.array([day, datetime.date(2024, 2, 29), None]),
            "day64": pa.array([day, datetime.date(2024, 2, 29), None], pa.date64()),
            "us": pa.array([moment, datetime.datetime(1969, 12, 31, 23, 59, 59, 999999), None]),
            "s": pa.array([0, -1, None], pa.timestamp("s")),
            "zone": pa.array([1, -1, None], pa.timestamp("ms", "Europe/Zurich")),
            "map": pa.array([[("a", 1), ("b", None)], [], None], pa.map_(pa.string(), pa.int64())),
            "pairs": pa.array([[(1, "a")], [], None], pa.map_(pa.int32(), pa.string())),
            "nan": pa.array([float("nan"), float("inf"), None]),
        })
        path = self.folder() / "odd.arrow"
        self.write(table, path)
        self.assertEqual(self.read(path), [
            {"binary": base64.b64encode(b"\x00\xff").decode(), "fixed": "YWJjZA==",
             "day": "1969-12-31", "day64": "1969-12-31", "us": moment.isoformat(),
             "s": "1970-01-01T00:00:00", "zone": "1970-01-01T00:00:00.001Z",
             "map": {"a": 1, "b": None}, "pairs": [[1, "a"]], "nan": None},
            {"binary": "", "fixed": "AAAAAA==", "day": "2024-02-29", "day64": "2024-02-29",
             "us": "1969-12-31T23:59:59.999999", "s": "1969-12-31T23:59:59",
             "zone": "1969-12-31T23:59:59.999Z", "map": {}, "pairs": [], "nan": None},
            dict.fromkeys(table.column_names)])

    def test_reads_sharded_datasets(self):
        rows = [{"question": f"q{i}", "choices": ["a", "b"], "answer": i, "meta": {"x": i / 3}}
                for i in range(2500)]
        folder = self.folder() / "saved"
        datasets.Dataset.from_list(rows).save_to_disk(str(folder), num_shards=3)
        shards = sorted(folder.glob("data-*.arrow"))
        self.assertEqual(len(shards), 3)
        self.assertEqual([row for shard in shards for row in self.read(shard)], rows)

    def test_reads_arrow_file_format(self):
        table = pa.table({"a": [1, 2, 3]})
        path = self.folder() / "file.arrow"
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        self.assertEqual(self.read(path), table.to_pylist())

    def test_unsupported_encodings_are_reported(self):
        folder = self.folder()
        self.write(pa.table({"a": pa.array(["x", "y", "x"]).dictionary_encode()}), folder / "d")
        self.refused(folder / "d", "DictionaryEncoding not supported")
        for codec in ("zstd", "lz4"):
            options = pa.ipc.IpcWriteOptions(compression=codec)
            self.write(pa.table({"a": ["x" * 1000]}), folder / codec, options=options)
            self.refused(folder / codec, "compressed, which is not supported")
        self.write(pa.table({"took": pa.array([1], pa.duration("s"))}), folder / "t")
        self.refused(folder / "t", "column 'took' is of type duration")
        self.write(pa.table({"deep": pa.array([1])}), folder / "shallow")
        kind = pa.int8()
        for _ in range(30):
            kind = pa.list_(kind)
        self.write(pa.table({"deep": pa.array([None], kind)}), folder / "deep")
        self.refused(folder / "deep", "deeper than")


if __name__ == "__main__":
    unittest.main()
