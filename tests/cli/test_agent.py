#!/usr/bin/env python3
# test: real time, asan
"""Command-line tests of ipw agent: turns, tools, protocols and failures, with scripted replies of the null client;
energies on a fake machine add up."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from machines import IntelNvidia  # noqa: E402
from profiling import TOKENS, Run, Service  # noqa: E402
from program import (IPW, LANDLOCK_CREATE_RULESET, MachineTest, deep_folder, ipw, main_parallel,  # noqa: E402
                     without_system_calls)  # noqa: E402

SERVER = f"{sys.executable} {Path(__file__).parent.parent / 'fakes' / 'mcp_server.py'}"


def call(name, **arguments):
    return {"type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def calls(*made, **more):
    return {"content": "", "tool_calls": list(made), **more}


class AgentTest(MachineTest):
    on = None  # the machine

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.questions({"problem": "What is 17 * 24?", "answer": "408"})

    def questions(self, *rows):
        (self.folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def script(self, *lines):
        (self.folder / "script.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    def agent(self, *options, client=(), code=0, env=None):
        params = ",".join((f"script={self.folder / 'script.jsonl'}", *client))
        done = ipw(self.on, "agent", "--client", "null", "--model", "m", "--dataset", self.folder / "questions.jsonl",
                   "--client-param", params, "--idle", "0", "--output-dir", self.folder / "runs", "--name", "run", "--json",
                   "--workspaces", self.folder / "work", *options, env=env)
        self.assertEqual(done.returncode, code, done.stderr)
        self.stderr = done.stderr
        return json.loads(done.stdout) if done.stdout else None

    def records(self):
        return Run(self.folder / "runs/run").records()

    def traces(self):
        """Traces by query id."""
        lines = Run(self.folder / "runs/run").lines("traces.jsonl")
        self.assertEqual(len({line["query_id"] for line in lines}), len(lines), "one line per query")
        return {line["query_id"]: line for line in lines}

    def answer(self, number=0):
        return list(self.records().values())[number]["model_answers"]["m"]


class AgentLoop(AgentTest):
    def test_calls_tools_until_final_answer(self):
        self.script(calls(call("calculator", expression="17 * 24")), {"content": "It is 408."})
        report = self.agent("--grader", "numeric")
        self.assertEqual((report["queries"], report["completed"], report["accuracy"]), (1, 1, 1))
        self.assertEqual(self.answer(), "It is 408.")

    def test_tool_is_executed(self):
        self.script(calls(call("file_write", path="a/x.txt", content="hello")), {"content": "done"})
        self.agent()
        self.assertEqual((self.folder / "work/q000000/a/x.txt").read_text(), "hello")

    def test_workspace_may_have_a_long_path(self):
        self.folder = deep_folder(self.folder)
        self.questions({"problem": "What is 17 * 24?", "answer": "408"})
        command = '{ pwd; echo "$HOME"; echo "$TMPDIR"; echo "$IPW_WORKSPACE"; } > made'
        self.script(calls(call("file_write", path="a/x.txt", content="hello"), call("shell", command=command)),
                    {"content": "done"})
        report = self.agent("--tools", "file_write,shell", env={"TMPDIR": str(self.folder)})
        self.assertEqual(report["completed"], 1)
        self.assertEqual(report["output_dir"], str(self.folder / "runs/run"))
        workspace = self.folder / "work/q000000"
        self.assertEqual((workspace / "a/x.txt").read_text(), "hello")
        self.assertEqual((workspace / "made").read_text().splitlines(), [str(workspace)] * 4)

    def test_calls_with_side_effects_run_in_order(self):
        made = [call("file_write", path="x", content=str(n), append=True) for n in range(8)]
        self.script(calls(*made), {"content": "done"})
        self.agent()
        self.assertEqual((self.folder / "work/q000000/x").read_text(), "01234567")

    def test_calls_of_one_turn_run_concurrently(self):
        self.script(calls(*[call("null", n=n) for n in range(20)]), {"content": "done"})
        report = self.agent("--tools", "null", "--tool-param", "null.delay_ms=400")
        self.assertEqual(report["completed"], 1)
        latency = list(self.records().values())[0]["model_metrics"]["m"]["latency_metrics"]["total_query_seconds"]
        self.assertGreaterEqual(latency, 0.4)
        self.assertLess(latency, 20 * 0.4)

    def test_tokens_are_the_sum_of_all_turns(self):
        self.script(calls(call("think", thought="hm"), prompt_tokens=10, output_tokens=3),
                    calls(call("think", thought="hm"), prompt_tokens=20, output_tokens=4),
                    {"content": "408", "prompt_tokens": 30, "output_tokens": 5})
        self.agent()
        tokens = list(self.records().values())[0]["model_metrics"]["m"]["token_metrics"]
        self.assertEqual((tokens["input"], tokens["output"]), (60, 12))

    def test_max_turns_ends_query(self):
        self.script(calls(call("think", thought="hm")))
        report = self.agent("--max-turns", "3", "--grader", "numeric")
        record = list(self.records().values())[0]
        self.assertEqual(record["ipw"]["finish_reason"], "max_turns")
        self.assertEqual((report["completed"], report["failed"], report["accuracy"]), (1, 0, 0))

    def test_text_next_to_last_tool_call_is_not_the_answer(self):
        self.script(calls(call("think", thought="hm"), content="The answer is 408"))
        report = self.agent("--max-turns", "1", "--grader", "numeric")
        record = list(self.records().values())[0]
        self.assertEqual(record["ipw"]["finish_reason"], "max_turns")
        self.assertEqual((report["completed"], report["failed"], report["accuracy"]), (1, 0, 0))
        self.assertEqual(self.answer(), "")

    def test_tool_errors_are_returned_to_model(self):
        self.script(calls(call("no_such_tool"), call("file_read", path="../../etc/passwd"), call("calculator")),
                    {"content": "408"})
        self.assertEqual(self.agent()["completed"], 1)

    def test_model_error_fails_its_query_only(self):
        self.questions({"problem": "good", "answer": "1"}, {"problem": "bad", "answer": "1"})
        self.script({"content": "1", "when": "good"}, {"error": "broken", "when": "bad"})
        report = self.agent("--max-failed", "1", "--warmup-queries", "0")
        self.assertEqual((report["completed"], report["failed"]), (1, 1))

    def test_transient_errors_are_retried(self):
        self.script(calls(call("think", thought="hm")), {"content": "408"})
        report = self.agent("--warmup-queries", "0", client=("fail_every=2",))
        self.assertEqual(report["completed"], 1)
        report = self.agent("--warmup-queries", "0", "--retries", "0", "--overwrite", client=("fail_every=2",), code=1)
        self.assertEqual(report["failed"], 1)

    def test_query_timeout_fails_query(self):
        self.script(calls(call("null")))
        report = self.agent("--tools", "null", "--tool-param", "null.delay_ms=300", "--query-timeout", "1", "--max-turns",
                            "1000", code=1)
        self.assertEqual(report["failed"], 1)
        self.assertIn("longer than 1 s", json.dumps(list(self.records().values())[0]))

    def test_query_timeout_starts_no_further_turn(self):
        self.script(calls(call("null")), {"content": "408"})
        self.agent("--tools", "null", "--tool-param", "null.delay_ms=5000", "--query-timeout", "0.7", "--warmup-queries", "0",
                   code=1)
        trace = self.traces()["q0000"]
        self.assertEqual((trace["num_turns"], trace["total_tool_calls"]), (1, 1))
        self.assertEqual([s["type"] for s in trace["ipw"]["spans"]].count("lm_inference"), 1)

    def test_query_timeout_kills_running_tool(self):
        """The running tool is killed, and the next one of the turn is not started."""
        self.script(calls(call("shell", command="touch begun; sleep 4; touch late"), call("shell", command="touch next")))
        report = self.agent("--tools", "shell", "--tool-timeout", "60", "--query-timeout", "2", "--warmup-queries", "0", code=1)
        self.assertEqual(report["failed"], 1)
        self.assertIn("longer than 2 s", json.dumps(list(self.records().values())[0]))
        self.assertEqual([path.name for path in (self.folder / "work/q000000").iterdir()], ["begun"])


class Traces(AgentTest):
    """Turns in traces.jsonl, compared with the script."""

    def test_trace_has_turns_and_tools(self):
        self.questions({"problem": "one", "answer": "1"}, {"problem": "two", "answer": "3"})
        self.script(calls(call("null"), call("null"), prompt_tokens=10, output_tokens=3),
                    calls(call("file_write", path="x", content="y"), prompt_tokens=20, output_tokens=4),
                    {"content": "1", "prompt_tokens": 30, "output_tokens": 5})
        self.agent("--grader", "numeric", "--tools", "null,file_write", "--tool-param", "null.delay_ms=200")
        first, second = self.traces()["q0000"], self.traces()["q0001"]
        self.assertEqual([turn["tools_called"] for turn in first["turns"]], [["null", "null"], ["file_write"], []])
        self.assertEqual([turn["input_tokens"] for turn in first["turns"]], [10, 20, 30])
        self.assertEqual([turn["output_tokens"] for turn in first["turns"]], [3, 4, 5])
        self.assertEqual([turn["has_parallel_tools"] for turn in first["turns"]], [True, False, False])
        self.assertEqual((first["num_turns"], first["total_tool_calls"], first["total_tokens"]), (3, 3, 72))
        self.assertEqual((first["is_resolved"], second["is_resolved"]), (True, False))
        self.assertEqual((first["query_text"], first["response_text"], first["completed"]), ("one", "1", True))
        totals = Run(self.folder / "runs/run").summary()["totals"]
        self.assertIn("3 turns and 3 tool calls per query", self.stderr)
        self.assertEqual((totals["queries"], totals["turns"], totals["tool_calls"], totals["resolved"]), (2, 6, 6, 1))
        self.assertEqual(Run(self.folder / "runs/run").lines()[0]["run_kind"], "agent")

    def test_trace_of_failed_query(self):
        self.script(calls(call("calculator", expression="1/0")), {"error": "broken"})
        self.agent("--warmup-queries", "0", code=1)
        trace = self.traces()["q0000"]
        self.assertEqual((trace["completed"], trace["num_turns"]), (False, 2))
        spans = trace["ipw"]["spans"]
        self.assertIn("division by zero", next(s["error"] for s in spans if s["type"] == "tool_call"))
        self.assertIn("broken", json.dumps([s for s in spans if s["type"] == "lm_inference"]))
        # as the Python IPW, which has the reason in place of the answer
        self.assertIn("broken", trace["unscorable_reason"])
        self.assertEqual(trace["response_text"], trace["unscorable_reason"])
        self.assertEqual((trace["is_resolved"], trace["accuracy_score"]), (None, None))

    def test_trace_has_score(self):
        self.questions(*[{"problem": p, "answer": "1"} for p in ("right", "wrong")])
        self.script({"content": "Answer: 1", "when": "right"}, {"content": "Answer: 2", "when": "wrong"})
        self.agent("--grader", "numeric")
        traces = [self.traces()[f"q000{n}"] for n in range(2)]
        self.assertEqual([trace["accuracy_score"] for trace in traces], [1, 0])
        self.assertEqual([trace["score_metadata"]["grader"] for trace in traces], ["numeric"] * 2)
        self.assertEqual([trace["score_metadata"]["extracted"] for trace in traces], ["1", "2"])

    def test_trace_has_the_score_of_its_grader(self):
        self.questions({"problem": "one", "answer": "w x y z"})
        self.script({"content": "w x"})
        self.agent("--grader", "f1")
        self.assertAlmostEqual(self.traces()["q0000"]["accuracy_score"], 2 / 3)

    def test_workload_type_is_the_dataset_s(self):
        self.questions({"problem": "one", "answer": "1", "workload_type": "coding"}, {"problem": "two", "answer": "1"})
        self.script({"content": "1"})
        self.agent("--max-queries", "1")
        self.agent("--resume")
        self.assertEqual([self.traces()[key]["workload_type"] for key in ("q0000", "q0001")], ["coding", "agentic"])

    def test_retries_are_counted(self):
        self.script(calls(call("think", thought="hm")), {"content": "408"})
        self.agent("--warmup-queries", "0", client=("fail_every=2",))
        trace = self.traces()["q0000"]
        self.assertEqual(trace["n_retries"], 1)
        # A failed attempt has no tokens and does not hide those of others.
        self.assertEqual(trace["total_output_tokens"], sum(s.get("output_tokens", 0) for s in trace["ipw"]["spans"]))
        self.assertGreater(trace["total_input_tokens"], 0)
        metrics = list(self.records().values())[0]["model_metrics"]["m"]
        self.assertEqual(metrics["token_metrics"]["output"], trace["total_output_tokens"])

    def test_judge_verdict_is_in_trace(self):
        service = Service()
        self.addCleanup(service.server_close)
        self.addCleanup(service.shutdown)
        self.questions({"problem": "one", "answer": "1"}, {"problem": "two", "answer": "2"})
        self.script({"content": "1"})
        self.agent("--grader", "judge", "--eval-client", "openai", "--eval-base-url", service.url("judge"), "--eval-model", "j")
        self.assertEqual([self.traces()[key]["is_resolved"] for key in ("q0000", "q0001")], [True, False])
        self.assertEqual([self.traces()[key]["accuracy_score"] for key in ("q0000", "q0001")], [1, 0])
        self.assertEqual(self.traces()["q0000"]["score_metadata"]["grader"], "judge")
        self.assertEqual(Run(self.folder / "runs/run").summary()["totals"]["resolved"], 1)

    def test_unread_answer_resolves_nothing(self):
        self.questions({"problem": "one", "answer": "B"}, {"problem": "two", "answer": "B"})
        self.script({"content": "42 + 43"})
        self.agent("--grader", "choice")
        trace = self.traces()["q0000"]
        self.assertIs(trace["is_resolved"], False)
        self.assertTrue(trace["unscorable_reason"])
        self.assertIsNone(trace["accuracy_score"])
        summary = Run(self.folder / "runs/run").summary()
        self.assertEqual((summary["totals"]["unresolved"], summary["totals"]["accuracy"]), (2, 0))
        self.assertEqual((summary["ipw"]["unread"], summary["ipw"]["incorrect"]), (2, 0))

    def test_judge_resolves_unread_answers(self):
        service = Service()
        self.addCleanup(service.server_close)
        self.addCleanup(service.shutdown)
        self.questions({"problem": "one", "answer": "B"})
        self.script({"content": "42 + 43"})
        judge = ("--grader", "choice", "--judge-unread", "--eval-client", "openai", "--eval-model", "tiny-1b", "--eval-base-url")
        for verdict in ("FALSE", "TRUE"):
            self.agent(*judge, service.url(f"say:text={verdict}"), "--overwrite")
            trace = self.traces()["q0000"]
            self.assertEqual((trace["is_resolved"], trace["unscorable_reason"]), (verdict == "TRUE", None))

    def test_resumed_run_has_all_traces(self):
        self.questions(*[{"problem": f"question {n}", "answer": "1"} for n in range(4)])
        self.script({"content": "1"})
        self.agent("--max-queries", "2")
        self.agent("--resume")
        self.assertEqual(set(self.traces()), {"q0000", "q0001", "q0002", "q0003"})
        self.assertEqual(Run(self.folder / "runs/run").summary()["totals"]["queries"], 4)

    def test_killed_run_has_traces_of_all_records(self):
        """Energies are settled after answers: a kill in between leaves a trace without them."""
        self.questions(*[{"problem": f"question {n}", "answer": "1"} for n in range(60)])
        self.script(calls(call("null")), {"content": "1"})
        options = ["--tools", "null", "--tool-param", "null.delay_ms=50", "--warmup-queries", "0", "-c", "3"]
        process = subprocess.Popen(
            [IPW, "agent", "--client", "null", "--model", "m", "--dataset", self.folder / "questions.jsonl", "--client-param",
             f"script={self.folder / 'script.jsonl'}", "--idle", "0", "--output-dir", self.folder / "runs", "--name", "run",
             "--workspaces", self.folder / "work", *options], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.kill)
        journal, deadline = self.folder / "runs/run/records.jsonl", time.monotonic() + 60
        while not journal.exists() or journal.read_bytes().count(b'"problem"') < 9:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        process.kill()
        process.wait()
        self.agent("--resume", *options)
        summary, count = Run(self.folder / "runs/run").summary(), len(self.traces())
        self.assertGreaterEqual(count, 60 - 3)  # each worker may have been between its record and its trace
        totals = summary["totals"]
        self.assertEqual((totals["queries"], totals["turns"], totals["tool_calls"]), (count, 2 * count, count))
        self.assertEqual(summary["trace_events"]["queries_without_trace"], 60 - count)

    def test_resume_keeps_damaged_trace_lines(self):
        self.questions({"problem": "one", "answer": "1"}, {"problem": "two", "answer": "2"})
        self.script({"content": "1"})
        self.agent("--max-queries", "1")
        path = self.folder / "runs/run/traces.jsonl"
        path.write_text(path.read_text() + '{"query_id": "damaged"}\n')
        self.agent("--resume", "--max-queries", "2")
        self.assertEqual(set(self.traces()), {"q0000", "q0001"})
        self.assertIn('{"query_id": "damaged"}', path.with_name("traces.jsonl.damaged").read_text())
        self.assertIn("traces.jsonl.damaged", self.stderr)

    def test_resume_warns_of_records_without_trace(self):
        self.questions(*[{"problem": f"question {n}", "answer": "1"} for n in range(4)])
        self.script({"content": "1"})
        self.agent("--max-queries", "2")
        (self.folder / "runs/run/traces.jsonl").write_text("")
        self.agent("--resume")
        self.assertIn("2 queries have no trace", self.stderr)
        self.assertEqual(Run(self.folder / "runs/run").summary()["trace_events"]["queries_without_trace"], 2)


class EnergyLedger(AgentTest):
    """On a machine with running counters, joules of spans add up to those of their queries, and these to the
    machine's."""

    def run_agents(self, *options):
        self.on = self.machine(IntelNvidia)
        self.questions(*[{"problem": f"question {n}", "answer": "1"} for n in range(8)])
        self.script(calls(call("null", n=1), call("null", n=2)), calls(call("shell", command=self.BURN)), {"content": "one " * 20})
        return self.agent(
            "--tools", "null,shell", "--tool-param", "null.delay_ms=150", "--idle", "0.3", "--overwrite",
            "--warmup-queries", "0", *options, client=("tokens_per_s=100", "ttft_ms=30"))

    BURN = "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done"

    def check(self, report):
        records, traces = self.records(), self.traces()
        total, queries = report["energy"]["joules"], 0
        for trace in traces.values():
            spans, own = trace["ipw"]["spans"], trace["ipw"]["energy_joules"]
            self.assertAlmostEqual(sum(span["own_joules"] for span in spans) / own, 1, delta=1e-6)
            self.assertAlmostEqual(records[trace["ipw"]["key"]]["ipw"]["energy"]["joules"] / own, 1, delta=1e-9)
            for at, span in enumerate(spans):
                inside = sum(s["joules"] for s in spans if s.get("parent") == at)
                self.assertAlmostEqual(span["joules"], span["own_joules"] + inside, delta=1e-6 * own)
                self.assertIsNotNone(span["plus_minus"])
            queries += own
            self.assertAlmostEqual(trace["query_mbu_avg_pct"], 20)
            self.assertAlmostEqual(trace["query_mbu_max_pct"], 20)
        parts = queries + (report["joules"]["idle"] or 0) + report["joules"]["unattributed"]
        self.assertAlmostEqual(parts / total, 1, delta=1e-3)
        self.assertLess(report["conservation_error"], 1e-3)
        return traces

    def test_energy_adds_up_with_concurrency_1(self):
        traces = self.check(self.run_agents())
        for trace in traces.values():
            kinds = [span["type"] for span in trace["ipw"]["spans"]]
            energy = self.records()[trace["ipw"]["key"]]["model_metrics"]["m"]["energy_metrics"]
            for prefix in ("", "cpu_"):  # parallel tools count once
                self.assertAlmostEqual(energy[prefix + "total_joules"] / energy[prefix + "per_query_joules"], 1, delta=1e-6)
            self.assertEqual((kinds.count("turn"), kinds.count("lm_inference"), kinds.count("tool_call")), (3, 3, 3))
            shell = next(s for s in trace["ipw"]["spans"] if s.get("name") == "shell")
            self.assertGreater(shell["cpu_s"], 0)

    def test_energy_adds_up_with_concurrency_4(self):
        traces = self.check(self.run_agents("-c", "4"))
        self.assertTrue(any(trace["shared_device_warning"] for trace in traces.values()))
        for record in self.records().values():
            energy, ours = record["model_metrics"]["m"]["energy_metrics"], record["ipw"]
            self.assertGreater(energy["total_joules"], 1.5 * energy["per_query_joules"])  # the whole device
            whole = energy["total_joules"] + energy["cpu_total_joules"]
            self.assertAlmostEqual(ours["window_joules"] / whole, 1, delta=1e-6)


class Protocols(AgentTest):
    REACT = [{"content": "Thought: compute\nAction: calculator\nAction Input: {\"expression\": \"17 * 24\"}"},
             {"content": "Thought: now I know\nFinal Answer: 408"}]

    def test_react_protocol_for_model_without_tools(self):
        for tools in ("no", "unknown"):
            self.script(*self.REACT)
            self.agent("--overwrite", "--protocol", "auto" if tools == "no" else "react", client=(f"tools={tools}",))
            self.assertEqual(self.answer(), "408")

    def test_hermes_protocol(self):
        self.script({"content": "<tool_call>{\"name\": \"calculator\", \"arguments\": {\"expression\": \"17 * 24\"}}</tool_call>"},
                    {"content": "It is 408."})
        self.agent("--protocol", "hermes", client=("tools=no",))
        self.assertEqual(self.answer(), "It is 408.")

    def test_fallback_to_text_protocol_is_not_a_retry(self):
        service = Service()
        self.addCleanup(service.server_close)
        self.addCleanup(service.shutdown)
        done = ipw(None, "agent", "--client", "openai", "--client-base-url", service.url("toolless"), "--model", "tiny-1b",
                   "--dataset", self.folder / "questions.jsonl", "--idle", "0", "--warmup-queries", "0", "--output-dir",
                   self.folder / "runs", "--name", "run", "--json", "--retries", "0")
        self.assertEqual((done.returncode, json.loads(done.stdout)["completed"]), (0, 1), done.stderr)
        trace = self.traces()["q0000"]
        self.assertEqual((trace["n_retries"], trace["num_turns"]), (0, 1))

    def test_native_protocol_fails_if_tools_are_rejected(self):
        self.script({"content": "408"})
        self.assertEqual(self.agent("--protocol", "native", client=("tools=no",), code=1)["failed"], 1)


class ExternalProgram(AgentTest):
    """`--exec`: a program that sends two requests through the proxy, with other work in between."""

    PROGRAM = """
import json, os, socket, sys, time, urllib.request
def ask(text):
    body = {"model": os.environ["IPW_MODEL"], "stream": True, "messages": [{"role": "user", "content": text}]}
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", json.dumps(body).encode(),
                                     {"Content-Type": "application/json",
                                      "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]})
    return urllib.request.urlopen(request).read()
def send(line):
    socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(json.dumps(line).encode(), os.environ["IPW_EVENTS"])
def event(kind, way):
    line = json.dumps({"type": "tool_call_" + kind, "correlation_id": "c1",
                       "metadata": {"tool": "search", **({"cost_usd": 0.25} if kind == "end" else {})}})
    if way == "print":
        print(line, flush=True)
    elif way == "socket":
        send(json.loads(line))
    elif way == "own_id":
        send({**json.loads(line), "query_id": "q-mine"})
def inference(begin, end, number, kinds=("lm_inference", "prefill")):
    for kind in kinds:
        for edge, at in (("start", begin), ("end", end)):
            send({"type": f"{kind}_{edge}", "correlation_id": f"{kind}-{number}", "timestamp": at,
                  **({"parent_id": f"lm_inference-{number}"} if kind == "prefill" else {}),
                  "metadata": {"input_tokens": 7, "output_tokens": 20}})
problem, way = sys.argv[1:3]
begin = time.time()
if way == "embed":
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/embeddings", json.dumps({"input": "x"}).encode(),
                                     {"Content-Type": "application/json"})
    urllib.request.urlopen(request).read()
ask(problem)
if way == "inferences":
    inference(begin, time.time(), 1, ("lm_inference", "prefill", "submodel_call"))
    inference(time.time() + 0.1, time.time() + 0.2, 2)  # of no request
event("start", way)
time.sleep(0.3)
event("end", way)
ask("again")
print("answer to", problem, "in", os.path.isdir(os.environ["IPW_WORKSPACE"]))
if way == "fail":
    sys.exit("out of cheese")
"""

    def setUp(self):
        super().setUp()
        self.service = Service()
        self.addCleanup(self.service.server_close)
        self.addCleanup(self.service.shutdown)
        (self.folder / "agent.py").write_text(self.PROGRAM)

    def external(self, way, *options, code=0, scenario="normal", env=None):
        if "--exec" not in options:
            options += ("--exec", f"{sys.executable} {self.folder / 'agent.py'} {{problem}} {way}")
        done = ipw(None, "agent", "--client", "openai", "--client-base-url", self.service.url(scenario), "--model",
                   "tiny-1b", "--dataset", self.folder / "questions.jsonl", "--idle", "0", "--warmup-queries", "0", "--output-dir",
                   self.folder / "runs", "--name", "run", "--json", *options,
                   env={"OPENAI_BASE_URL": "http://127.0.0.1:1/wrong", **(env or {})})
        self.assertEqual(done.returncode, code, done.stderr)
        self.stderr = done.stderr
        return json.loads(done.stdout)

    def spans(self, kind, query="q0000"):
        return [span for span in self.traces()[query]["ipw"]["spans"] if span["type"] == kind]

    def test_time_between_inferences_is_a_tool_span(self):
        self.questions({"problem": "it's $HOME; \"x\" `y`", "answer": "1"})
        report = self.external("none")
        self.assertEqual(report["completed"], 1)
        self.assertEqual(list(self.records().values())[0]["model_answers"]["tiny-1b"],
                         "answer to it's $HOME; \"x\" `y` in True")
        self.assertEqual(len(self.spans("lm_inference")), 2)
        tool, = self.spans("tool_call")
        self.assertEqual(tool["name"], "between_inferences")
        self.assertGreaterEqual(tool["to_s"] - tool["from_s"], 0.3)
        trace = self.traces()["q0000"]
        self.assertEqual((trace["num_turns"], trace["total_output_tokens"]), (2, 2 * TOKENS))

    def test_usage_is_requested_unless_disabled(self):
        for options, wanted, tokens in (((), {"include_usage": True}, 2 * TOKENS), (("--no-inject-usage",), None, None)):
            del self.service.requests[:]
            self.external("none", "--overwrite", *options)
            asked = [json.loads(r["body"]).get("stream_options") for r in self.service.requests if r["method"] == "POST"]
            self.assertEqual(asked[-2:], [wanted] * 2)  # preceded by ipw's health check
            self.assertEqual(self.traces()["q0000"]["total_output_tokens"], tokens)

    def test_events_from_stdout_and_socket(self):
        for way in ("print", "socket"):
            self.external(way, "--overwrite")
            tool, = self.spans("tool_call")
            self.assertEqual(tool["name"], "search")
            self.assertGreaterEqual(tool["to_s"] - tool["from_s"], 0.25)
            self.assertNotIn("tool_call", list(self.records().values())[0]["model_answers"]["tiny-1b"])

    def costs(self, *options):
        """Of trace and record, and of the run."""
        report = self.external("print", "--overwrite", *options)
        trace, record = self.traces()["q0000"], list(self.records().values())[0]
        found = record["model_metrics"]["tiny-1b"].get("cost", {})
        self.assertEqual(trace["total_cost_usd"], found.get("total_cost_usd"))
        self.assertEqual(trace["total_cost_usd"], sum(turn["cost_usd"] or 0 for turn in trace["turns"]))
        self.assertEqual(report["cost"], found.get("total_cost_usd"))
        self.assertEqual(Run(self.folder / "runs/run").summary()["totals"]["cost_usd"], found.get("total_cost_usd"))
        return found

    def prices(self, currency):
        path = self.folder / f"prices-{currency}.json"
        path.write_text(json.dumps({"currency": currency, "models": {"tiny-1b": {"input_per_million": 2000,
                                                                                "output_per_million": 5000}}}))
        return "--prices", path

    def test_cost_is_one_sum_of_tokens_and_tools(self):
        tokens = {"input_cost_usd": 2 * 11 * 2e-3, "output_cost_usd": 2 * TOKENS * 5e-3}
        for options, wanted in (((), {"tool_cost_usd": 0.25, "total_cost_usd": 0.25}),
                                (self.prices("USD"), {**tokens, "tool_cost_usd": 0.25,
                                                      "total_cost_usd": sum(tokens.values()) + 0.25}),
                                # dollars are not added to another currency
                                (self.prices("EUR"), {**tokens, "total_cost_usd": sum(tokens.values())})):
            found = self.costs(*options)
            self.assertEqual(set(key for key in found if found[key] is not None), set(wanted))
            for key, value in wanted.items():
                self.assertAlmostEqual(found[key], value, places=12)
        self.assertIn("in USD, are not included: prices are in EUR", self.stderr)

    def test_workspace_of_program_may_have_a_long_path(self):
        self.folder = deep_folder(self.folder)
        (self.folder / "agent.py").write_text(self.PROGRAM + "open(__file__ + '.events', 'w').write(os.environ['IPW_EVENTS'])")
        self.questions({"problem": "What is 17 * 24?", "answer": "408"})
        for options in (("--workspaces", self.folder / "work"), ("--overwrite",)):
            self.external("socket", *options, env={"TMPDIR": str(self.folder)})
            self.assertEqual([tool["name"] for tool in self.spans("tool_call")], ["search"])
            self.assertEqual(list(self.records().values())[0]["model_answers"]["tiny-1b"], "answer to What is 17 * 24? in True")
            events = Path((self.folder / "agent.py.events").read_text())
            self.assertFalse(events.parent.exists())  # a directory of its own, since a socket has a short path
        self.assertTrue((self.folder / "work/q000000").is_dir())
        self.assertEqual(list(self.folder.glob("ipw-agent-*")), [])

    def test_inference_seen_by_proxy_is_counted_once(self):
        self.external("inferences")
        tokens = sorted(span["output_tokens"] for span in self.spans("lm_inference"))
        self.assertEqual(tokens, sorted([TOKENS, TOKENS, 20]))
        trace = self.traces()["q0000"]
        self.assertEqual((trace["total_output_tokens"], trace["ipw"]["duplicates"]), (2 * TOKENS + 20, 6))
        self.assertNotIn("prefill-1", [span.get("id") for span in self.spans("prefill")])

    def test_answer_that_looks_like_an_event_is_kept(self):
        answer = '{"event": "game_start", "answer": 4}'
        self.external("none", "--exec", f"printf '%s\\nA\\000B\\n' '{answer}'")
        self.assertEqual(list(self.records().values())[0]["model_answers"]["tiny-1b"], answer + "\nAB")
        self.assertIsNone(self.traces()["q0000"]["ipw"]["event_problems"])

    def test_program_may_use_its_own_ids(self):
        self.external("own_id")
        self.assertEqual([tool["name"] for tool in self.spans("tool_call")], ["search"])

    def test_api_key_is_forwarded(self):
        self.external("none", env={"IPW_API_KEY": "sk-upstream-7"})
        with self.service.lock:
            keys = [r["headers"].get("authorization") for r in self.service.requests if r["method"] == "POST"]
        self.assertEqual(set(keys), {"Bearer sk-upstream-7"})

    def test_client_headers_are_forwarded(self):
        self.external("none", "--client-param", "api_key_env=OTHER_KEY,header.X-Team=blue",
                      env={"OTHER_KEY": "sk-other-9", "OPENAI_API_KEY": "sk-of-the-program"})
        with self.service.lock:
            posts = [r["headers"] for r in self.service.requests if r["method"] == "POST"]
        self.assertEqual({(h.get("authorization"), h.get("x-team")) for h in posts}, {("Bearer sk-other-9", "blue")})

    def test_long_question_is_passed_as_file(self):
        problem = "abcdefghi\n" * 20000
        self.questions({"problem": problem + "end", "answer": "1"})
        command = f"{sys.executable} -c 'import sys; print(len(open(sys.argv[1]).read()))' {{problem_file}}"
        self.external("none", "--exec", command)
        self.assertEqual(list(self.records().values())[0]["model_answers"]["tiny-1b"], "200003")
        self.assertEqual(self.external("none", "--overwrite", code=1)["failed"], 1)
        self.assertIn("{problem_file}", list(self.records().values())[0]["ipw"]["error"])

    def test_unstreamed_reply_of_program_has_no_phases(self):
        for scenario, phases in (("normal", 2), ("whole", 0)):
            self.external("none", "--overwrite", scenario=scenario)
            self.assertEqual((len(self.spans("prefill")), len(self.spans("decode"))), (phases, phases))
            record = list(self.records().values())[0]
            self.assertEqual("prefill_s" in record["ipw"], phases > 0)

    def test_unstreamed_reply_of_agent_loop_has_no_phases(self):
        for scenario, phases in (("normal", 1), ("whole", 0)):
            done = ipw(None, "agent", "--client", "openai", "--client-base-url", self.service.url(scenario), "--model",
                       "tiny-1b", "--dataset", self.folder / "questions.jsonl", "--idle", "0", "--warmup-queries", "0", "--output-dir",
                       self.folder / "runs", "--name", "run", "--json", "--overwrite")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual((len(self.spans("prefill")), len(self.spans("decode"))), (phases, phases))

    def test_embeddings_have_no_output_tokens(self):
        self.external("embed", scenario="embedding")
        trace = self.traces()["q0000"]
        self.assertEqual(len(self.spans("lm_inference")), 3)
        self.assertEqual((trace["total_input_tokens"], trace["total_output_tokens"]), (4 + 2 * 11, 2 * TOKENS))

    def test_requests_are_attributed_to_their_query(self):
        self.questions(*[{"problem": f"question {n}", "answer": "1"} for n in range(4)])
        self.assertEqual(self.external("none", "-c", "4")["completed"], 4)
        for n in range(4):
            self.assertEqual(len(self.spans("lm_inference", f"q000{n}")), 2)

    def test_failed_and_timed_out_programs(self):
        self.assertEqual(self.external("fail", code=1)["failed"], 1)
        self.assertIn("out of cheese", json.dumps(list(self.records().values())[0]))
        self.assertEqual(self.external("none", "--overwrite", "--query-timeout", "0.2", code=1)["failed"], 1)
        self.assertTrue(self.traces()["q0000"]["timed_out"])

    def is_running(self, pid):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        return True

    def test_child_processes_end_with_program(self):
        command = f"setsid sh -c 'sleep 300 & echo $! > {self.folder / 'pid'}; wait' & " \
                  f"while [ ! -s {self.folder / 'pid'} ]; do sleep 0.05; done; echo 1"
        self.assertEqual(self.external("none", "--exec", command)["completed"], 1)
        self.assertFalse(self.is_running(int((self.folder / "pid").read_text())))

    def test_child_processes_end_with_ipw(self):
        command = f"setsid sh -c 'sleep 300 & echo $! > {self.folder / 'pid'}; wait' & sleep 300"
        process = subprocess.Popen([IPW, "agent", "--client", "openai", "--client-base-url", self.service.url("normal"),
                                    "--model", "tiny-1b", "--dataset", self.folder / "questions.jsonl", "--idle", "0",
                                    "--warmup-queries", "0", "--output-dir", self.folder / "runs", "--exec", command],
                                   stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        deadline = time.monotonic() + 60
        while not (self.folder / "pid").exists() or not (self.folder / "pid").read_text():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)
        process.kill()
        while self.is_running(int((self.folder / "pid").read_text())):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)

    def test_usage_errors(self):
        done = ipw(None, "agent", "--client", "openai", "--model", "m", "--exec", "true", "--tools", "shell")
        self.assertEqual(done.returncode, 2)
        self.assertIn("mutually exclusive", done.stderr)
        for option, value in (("--max-turns", "3"), ("--protocol", "react"), ("--tool-timeout", "1"), ("--tool-output", "1"),
                              ("--tool-param", "shell.memory_mb=1"), ("--mcp", "true")):
            done = ipw(None, "agent", "--client", "openai", "--model", "m", "--exec", "true", option, value)
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"--exec and {option} are mutually exclusive", done.stderr)
        done = ipw(None, "agent", "--client", "openai", "--model", "m", "--no-inject-usage")
        self.assertEqual((done.returncode, "--no-inject-usage needs --exec" in done.stderr), (2, True), done.stderr)
        done = ipw(None, "agent", "--client", "null", "--model", "m", "--exec", "true")
        self.assertEqual(done.returncode, 2)
        self.assertIn("openai or ollama", done.stderr)


without_landlock = without_system_calls(LANDLOCK_CREATE_RULESET)


class OlderKernel(AgentTest):
    def test_without_landlock_tools_run_with_a_warning(self):
        self.script(calls(call("shell", command="pwd > made")), {"content": "408"})
        params = f"script={self.folder / 'script.jsonl'}"
        done = ipw(None, "agent", "--client", "null", "--model", "m", "--dataset", self.folder / "questions.jsonl",
                   "--client-param", params, "--idle", "0", "--output-dir", self.folder / "runs", "--tools", "shell,python",
                   "--workspaces", self.folder / "work", preexec_fn=without_landlock)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue((self.folder / "work/q000000/made").exists())
        self.assertEqual(done.stderr.count("may read and write all files of this user"), 1, done.stderr)
        listed = ipw(None, "list", "tools", preexec_fn=without_landlock).stdout
        self.assertEqual(listed.count("not confined to the workspace: this kernel has no Landlock"), 2, listed)


class Interrupted(AgentTest):
    def test_second_signal_kills_tools_and_run_resumes(self):
        """A tool that takes minutes is killed with the run."""
        self.questions(*[{"problem": f"question {n}", "answer": "1"} for n in range(3)])
        self.script(calls(call("shell", command="touch started; sleep 300")), {"content": "1"})
        arguments = ["agent", "--client", "null", "--model", "m", "--dataset", self.folder / "questions.jsonl", "--client-param",
                     f"script={self.folder / 'script.jsonl'}", "--idle", "0", "--output-dir", self.folder / "runs", "--name",
                     "run", "--tools", "shell", "--tool-timeout", "600", "--workspaces", self.folder / "work"]
        process = subprocess.Popen([IPW, *map(str, arguments)], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.addCleanup(process.kill)
        deadline = time.monotonic() + 60
        while not (self.folder / "work/q000000/started").exists():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)
        for _ in range(2):
            process.send_signal(signal.SIGINT)
            time.sleep(0.5)
        _, said = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, said)
        self.script({"content": "1"})
        report = self.agent("--resume", "--tools", "shell", "--tool-timeout", "600")
        self.assertEqual((report["queries"], report["completed"]), (3, 3))
        self.assertEqual(set(self.traces()), {"q0000", "q0001", "q0002"})


class McpServers(AgentTest):
    def test_mcp_server_provides_tools(self):
        self.script(calls(call("add", a=17, b=24)), calls(call("crash")), calls(call("where")), {"content": "408"})
        self.assertEqual(self.agent("--tools", "none", "--mcp", SERVER)["completed"], 1)

    def test_each_query_has_its_own_mcp_server(self):
        log = self.folder / "log"
        self.questions(*[{"problem": f"question {n}", "answer": "1"} for n in range(3)])
        self.script(calls(call("s_where")), {"content": "1"})
        report = self.agent("--tools", "none", "--mcp", f"s={SERVER} --log {log} {{workspace}}", "-c", "3")
        self.assertEqual(report["completed"], 3)
        self.assertEqual(log.read_text().splitlines().count("start"), 1 + 3)  # one more to list the tools

    def test_mcp_server_that_does_not_start(self):
        self.script({"content": "408"})
        self.agent("--mcp", SERVER + " --dead", code=1)
        self.assertIn("no configuration", self.stderr)


class Options(AgentTest):
    def test_rejects_invalid_options(self):
        self.script({"content": "408"})
        for options, said in [(("--tools", "calculater"), "did you mean 'calculator'"),
                              (("--tools", "calculator,calculator"), "more than once"),
                              (("--tools", "http_get"), "http_get.allow"),
                              (("--tool-param", "shell.memory_mb=1"), "add it to --tools"),
                              (("--tool-param", "memory_mb=1"), "expected TOOL.KEY=VALUE"),
                              (("--tools", "shell", "--tool-param", "shell.memory=1"), "did you mean 'memory_mb'"),
                              (("--protocol", "xml"), "hermes"),
                              (("--max-turns", "0"), "--max-turns"),
                              (("--mcp-server", "x"), "--mcp")]:
            self.agent(*options, code=2)
            self.assertIn(said, self.stderr)

    def test_resume_rejects_different_agent(self):
        self.script({"content": "408"})
        self.agent("--tools", "think")
        self.agent("--tools", "think", "--resume")
        self.agent("--tools", "calculator", "--resume", code=2)
        self.assertIn("agent was", self.stderr)
        self.agent("--tools", "think", "--resume", "--tool-output", "1", code=2)
        self.agent("--tools", "think", "--resume", "--mcp", SERVER, code=2)
        self.agent("--tools", "null", "--tool-param", "null.delay_ms=1", "--overwrite")
        self.agent("--tools", "null", "--tool-param", "null.delay_ms=1", "--resume")
        self.agent("--tools", "null", "--tool-param", "null.delay_ms=2", "--resume", code=2)
        self.assertIn("agent was", self.stderr)

    def test_workspace_is_removed(self):
        deep = "i=0; while [ $i -lt 300 ]; do mkdir d && cd d; i=$((i+1)); done; touch bottom"
        self.script(calls(call("file_write", path="a/b/c", content="x"), call("shell", command=deep),
                          call("shell", command="mkdir closed; touch closed/f; chmod 0 closed")), {"content": "408"})
        temporary = self.folder / "tmp"
        temporary.mkdir()
        done = ipw(None, "agent", "--client", "null", "--model", "m", "--dataset", self.folder / "questions.jsonl",
                   "--client-param", f"script={self.folder / 'script.jsonl'}", "--idle", "0", "--output-dir",
                   self.folder / "runs", "-q", "--tools", "file_write,shell", env={"TMPDIR": str(temporary)})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(os.listdir(temporary), [])


if __name__ == "__main__":
    main_parallel()
