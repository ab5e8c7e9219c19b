#!/usr/bin/env python3
"""Command-line tests of agent traces: analyze, export and list of run directories of ipw and of the Python IPW."""

import json
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
import oracle  # noqa: E402

oracle.use()

from agent_runs import span, trace, write_agent_run
from program import ipw  # noqa: E402
from rundirs import MODEL, query, write_run  # noqa: E402

FIXTURES = Path(__file__).parents[1] / "fixtures" / "traces"


class TracesTest(unittest.TestCase):
    def setUp(self):
        self.root = Path(tempfile.mkdtemp(prefix="ipw-traces-"))
        self.addCleanup(shutil.rmtree, self.root)
        self.run_dir = write_agent_run(self.root / "agent")

    def analyzed(self, path, *options):
        done = ipw(None, "analyze", path, "--analysis", "agent", "--json", *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)[str(path)]["agent"]


class Analysis(TracesTest):
    def test_energy_breakdown(self):
        found = self.analyzed(self.run_dir)
        summary, data = found["summary"], found["data"]
        self.assertEqual((summary["queries"], summary["completed"]), (3, 3))
        for key, value in (("joules_per_query", 210), ("joules_per_turn", 210), ("joules_per_resolved_query", 315),
                           ("inference_share", 120 / 210), ("tool_share", 60 / 210), ("gap_share", 30 / 210),
                           ("prefill_share", 30 / 210), ("decode_share", 90 / 210), ("accuracy", 2 / 3),
                           ("tool_calls_per_query", 2), ("joules_of_unresolved", 210)):
            self.assertAlmostEqual(summary[key], value, 9, key)
        self.assertAlmostEqual(summary["joules_per_query_error"], 10.5)
        self.assertAlmostEqual(sum(summary[key] for key in ("inference_share", "tool_share", "gap_share")), 1)
        tools = {row["tool"]: row for row in data["tools"]}
        self.assertAlmostEqual(tools["calculator"]["joules"], 78)
        self.assertEqual((tools["<shell>"]["count"], tools["<shell>"]["errors"]), (3, 3))
        self.assertEqual([row["kind"] for row in data["kinds"]],
                         ["lm_inference", "decode", "tool_call", "gap", "prefill"])
        kinds = {row["kind"]: row for row in data["kinds"]}
        # own energy for gaps and tools, inclusive energy for the others
        for row, joules, error, idle in ((kinds["gap"], 90, 9, 27), (kinds["tool_call"], 180, 18, 54),
                                         (kinds["decode"], 270, 13.5, 54), (tools["calculator"], 78, 3.9, 15.6),
                                         (data["turns"][0], 540, 27, 108)):
            for key, value in (("joules", joules), ("joules_error", error), ("joules_each_error", error / 3 / (
                    2 if row is kinds["tool_call"] or row is kinds["gap"] else 1)), ("idle_joules", idle),
                               ("active_joules", joules - idle)):
                self.assertAlmostEqual(row[key], value, 9, (row, key))
        for key, error in (("joules_per_turn", 10.5), ("joules_per_resolved_query", 15.75), ("joules_of_resolved", 21),
                           ("joules_of_unresolved", 10.5)):
            self.assertAlmostEqual(summary[key + "_error"], error, 9, key)
        self.assertEqual(found["warnings"], [])
        self.assertTrue((self.run_dir / "analysis" / "agent.json").exists())

    def test_energy_of_turns_includes_all_devices(self):
        """Sixty turns of 10 J, of which 4 J come from a board sensor, which is neither GPU nor CPU."""
        line = trace(0, energy_joules=600.0)
        turn = {**line["turns"][0], "gpu_energy_joules": 5.0, "cpu_energy_joules": 1.0}
        line["turns"] = [{**turn, "turn_index": i} for i in range(60)]
        line["ipw"]["spans"] = [span("agent", 0, 60, 600, own=0)] + [
            span("turn", i, i + 1, 10, own=10, parent=0, turn=i, gpu_joules=5, cpu_joules=1) for i in range(60)]
        (self.run_dir / "traces.jsonl").write_text(json.dumps(line) + "\n")
        turns = self.analyzed(self.run_dir)["data"]["turns"]
        self.assertEqual([row["turn"] for row in turns], list(range(60)))
        self.assertEqual({(row["joules"], row["share"]) for row in turns}, {(10, 10 / 600)})

    def test_agent_analysis_runs_by_default_for_agent_runs_only(self):
        done = ipw(None, "analyze", self.run_dir)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(" ".join(done.stdout.split()), r"agent 210 ± 10 J per query.*inferences 57\.1 %")
        plain = write_run(self.root / "plain", [query(0)])
        self.assertNotIn("agent ", ipw(None, "analyze", plain).stdout)
        done = ipw(None, "analyze", plain, "--analysis", "agent")
        self.assertIn("no agent traces", done.stdout + done.stderr)
        self.assertEqual(done.returncode, 1)

    def test_event_problems_and_missing_spans_are_reported(self):
        lines = [trace(0, event_problems="1 event without an end", spans=None), trace(1)]
        del lines[0]["ipw"]["spans"]
        lines[0]["turns"][0].update(gpu_energy_joules=None, cpu_energy_joules=None)
        (self.run_dir / "traces.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines) + "{broken\n")
        warnings = " ".join(self.analyzed(self.run_dir)["warnings"])
        for words in ("events of 1 of 2 queries", "share of its wall-clock time", "1 lines of traces.jsonl"):
            self.assertIn(words, warnings)

    def test_queries_without_trace_are_reported(self):
        lines = (self.run_dir / "traces.jsonl").read_text().splitlines(True)
        (self.run_dir / "traces.jsonl").write_text("".join(lines[:1]))
        self.assertIn("2 of 3 queries have no trace", " ".join(self.analyzed(self.run_dir)["warnings"]))

    def test_estimated_energies_are_labeled(self):
        write_agent_run(self.root / "estimated", method="estimated")
        self.assertIn("energies of 3 of 3 queries are estimated", self.analyzed(self.root / "estimated")["warnings"][0])

    def test_reads_traces_of_python_ipw(self):
        for name, queries, joules in (("old", 3, 180.0), ("new", 5, 2695.0)):
            path = self.root / name
            shutil.copytree(FIXTURES / name, path)
            summary = self.analyzed(path)["summary"]
            self.assertEqual(summary["queries"], queries)
            self.assertAlmostEqual(summary["joules"], joules)
            self.assertNotIn("gap_share", {key: value for key, value in summary.items() if value is not None})


class Exports(TracesTest):
    def exported(self, form):
        done = ipw(None, "export", self.run_dir, "--to", form)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_perfetto_export(self):
        events = [event for event in json.loads(self.exported("perfetto"))["traceEvents"] if event["ph"] == "X"]
        self.assertEqual(len(events), 3 * 7)
        named = {event["name"]: event for event in events[:7]}
        inference = named[f"lm_inference {MODEL}"]
        self.assertEqual((inference["dur"], inference["args"]["energy_j"]), (400000.0, 120))
        self.assertEqual(named["turn 0"]["args"]["own_j"], 0)
        # Concurrent tools are on separate tracks; spans on one track nest.
        self.assertNotEqual(named["tool_call calculator"]["tid"], named["tool_call <shell>"]["tid"])
        for one in events:
            for other in events:
                a, b = (one["ts"], one["ts"] + one["dur"]), (other["ts"], other["ts"] + other["dur"])
                if one["tid"] == other["tid"] and a[0] < b[0] < a[1] - 1e-6:
                    self.assertLessEqual(b[1], a[1] + 1e-6, (one, other))

    def test_otlp_export(self):
        spans = [span for line in self.exported("otlp-json").splitlines()
                 for span in json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"]]
        self.assertEqual(len(spans), 3 * 7)
        self.assertEqual(len({span["spanId"] for span in spans}), 3 * 7)
        by_id = {span["spanId"]: span for span in spans}
        names = [span["name"] for span in spans[:7]]
        self.assertEqual(names, [f"invoke_agent {MODEL}", "turn", f"chat {MODEL}", "prefill", "decode",
                                 "execute_tool calculator", "execute_tool <shell>"])
        parents = [by_id[span["parentSpanId"]]["name"] if "parentSpanId" in span else None for span in spans[:7]]
        self.assertEqual(parents, [None, names[0], "turn", names[2], names[2], "turn", "turn"])
        self.assertEqual(spans[6]["status"], {"code": 2, "message": "exit 1"})
        for one in spans[1:7]:
            above = by_id[one["parentSpanId"]]
            self.assertLessEqual(int(above["startTimeUnixNano"]), int(one["startTimeUnixNano"]))
            self.assertGreaterEqual(int(above["endTimeUnixNano"]), int(one["endTimeUnixNano"]))

    def test_hf_dataset_of_traces(self):
        try:
            import pyarrow as pa
        except ImportError as error:
            self.skipTest(str(error))
        done = ipw(None, "export", self.run_dir, "--to", "hf", "--output-dir", self.root / "out")
        self.assertEqual(done.returncode, 0, done.stderr)
        with pa.ipc.open_stream(self.root / "out" / "hf_dataset" / "data-00000-of-00001.arrow") as stream:
            table = stream.read_all()
        text, double, integer, truth = pa.string(), pa.float64(), pa.int64(), pa.bool_()
        names = {text: "query_id workload_type query_text response_text unscorable_reason score_metadata_json trace_json",
                 integer: "num_turns total_input_tokens total_output_tokens total_tool_calls total_tokens",
                 truth: "completed timed_out is_resolved"}
        for kind, listed in names.items():
            for name in listed.split():
                self.assertEqual(table.schema.field(name).type, kind, name)
        self.assertEqual(table.column_names, """query_id workload_type query_text response_text num_turns
            total_input_tokens total_output_tokens total_tool_calls total_wall_clock_s total_gpu_energy_joules
            total_cpu_energy_joules judge_gpu_energy_joules judge_cpu_energy_joules judge_wall_clock_s
            total_task_gpu_energy_joules total_task_cpu_energy_joules total_tokens total_cost_usd avg_gpu_power_watts
            avg_cpu_power_watts throughput_tokens_per_sec energy_per_token_joules query_mbu_avg_pct query_mbu_max_pct
            completed timed_out is_resolved unscorable_reason score_metadata_json trace_json""".split())
        self.assertEqual(sum(field.type == double for field in table.schema), 30 - 7 - 5 - 3)
        row = table.to_pylist()[0]
        self.assertEqual((row["query_id"], row["num_turns"], row["total_tool_calls"], row["total_tokens"]),
                         ("q0000", 1, 2, 120))
        self.assertAlmostEqual(row["total_gpu_energy_joules"], 147)
        self.assertAlmostEqual(row["energy_per_token_joules"], 147 / 20)
        self.assertEqual(json.loads(row["trace_json"])["turns"][0]["tools_called"], ["calculator", "<shell>"])
        self.assertIsNone(row["judge_gpu_energy_joules"])
        self.assertEqual(table.column("query_id").to_pylist()[:2], ["q0000", "q0001"])

    def test_flat_exports_have_energy_of_tools_and_gaps(self):
        row = json.loads(self.exported("jsonl").splitlines()[0])
        self.assertEqual((row["turns"], row["tool_calls"], row["tool_energy_j"], row["gap_energy_j"]), (1, 2, 60, 30))


class Index(TracesTest):
    def test_run_is_listed_with_kind_agent(self):
        done = ipw(None, "list", "runs", self.root, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('"agent"', done.stdout)

    def test_list_agents_and_tools(self):
        for kind, names in (("agents", {"auto", "native", "react"}), ("tools", {"calculator", "shell"})):
            found = json.loads(ipw(None, "list", kind, "--json").stdout)[kind]
            self.assertLessEqual(names, {row["name"] for row in found})

    def test_compare_pairs_queries_of_two_runs(self):
        other = write_agent_run(self.root / "other")
        done = ipw(None, "compare", self.run_dir, other, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("not compared", done.stderr)


if __name__ == "__main__":
    unittest.main()
