#!/usr/bin/env python3
"""ipw agent from outside: turns, tools, protocols and failures, with the scripted replies of the null client; energies on
a fake machine add up."""

import json
import os
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from machines import Intel  # noqa: E402
from profiling import Run  # noqa: E402
from program import MachineTest, ipw  # noqa: E402

SERVER = f"{sys.executable} {Path(__file__).parent.parent / 'fakes' / 'mcp_server.py'}"


def call(name, **arguments):
    return {"type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def calls(*made, **more):
    return {"content": "", "tool_calls": list(made), **more}


class AgentTest(unittest.TestCase):
    machine = None

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
        done = ipw(self.machine, "agent", "--client", "null", "--model", "m", "--dataset", self.folder / "questions.jsonl",
                   "--client-param", params, "--idle", "0", "--output-dir", self.folder / "runs", "--name", "run", "--json",
                   "--workspaces", self.folder / "work", *options, env=env)
        self.assertEqual(done.returncode, code, done.stderr)
        self.stderr = done.stderr
        return json.loads(done.stdout) if done.stdout else None

    def records(self):
        return Run(self.folder / "runs/run").records()

    def answer(self, number=0):
        return list(self.records().values())[number]["model_answers"]["m"]


class Loop(AgentTest):
    def test_tools_are_called_until_there_is_an_answer(self):
        self.script(calls(call("calculator", expression="17 * 24")), {"content": "It is 408."})
        report = self.agent("--grader", "numeric")
        self.assertEqual((report["queries"], report["completed"], report["accuracy"]), (1, 1, 1))
        self.assertEqual(self.answer(), "It is 408.")

    def test_a_tool_really_runs(self):
        self.script(calls(call("file_write", path="a/x.txt", content="hello")), {"content": "done"})
        self.agent()
        self.assertEqual((self.folder / "work/q000000/a/x.txt").read_text(), "hello")

    def test_calls_that_change_something_run_in_order(self):
        made = [call("file_write", path="x", content=str(n), append=True) for n in range(8)]
        self.script(calls(*made), {"content": "done"})
        self.agent()
        self.assertEqual((self.folder / "work/q000000/x").read_text(), "01234567")

    def test_calls_of_one_turn_run_at_the_same_time(self):
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

    def test_turns_are_limited(self):
        self.script(calls(call("think", thought="hm")))
        report = self.agent("--max-turns", "3", "--grader", "numeric")
        record = list(self.records().values())[0]
        self.assertEqual(record["ipw"]["finish_reason"], "max_turns")
        self.assertEqual((report["completed"], report["failed"], report["accuracy"]), (1, 0, 0))

    def test_failures_of_tools_are_results(self):
        self.script(calls(call("no_such_tool"), call("file_read", path="../../etc/passwd"), call("calculator")),
                    {"content": "408"})
        self.assertEqual(self.agent()["completed"], 1)

    def test_a_failure_of_the_model_is_one_of_the_query(self):
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

    def test_a_query_has_a_limit_of_time(self):
        self.script(calls(call("null")))
        report = self.agent("--tools", "null", "--tool-param", "null.delay_ms=300", "--query-timeout", "1", "--max-turns",
                            "1000", code=1)
        self.assertEqual(report["failed"], 1)
        self.assertIn("longer than 1 s", json.dumps(list(self.records().values())[0]))


class Protocols(AgentTest):
    REACT = [{"content": "Thought: compute\nAction: calculator\nAction Input: {\"expression\": \"17 * 24\"}"},
             {"content": "Thought: now I know\nFinal Answer: 408"}]

    def test_a_model_without_tools_is_asked_in_text(self):
        for tools in ("no", "unknown"):
            self.script(*self.REACT)
            self.agent("--overwrite", "--protocol", "auto" if tools == "no" else "react", client=(f"tools={tools}",))
            self.assertEqual(self.answer(), "408")

    def test_hermes(self):
        self.script({"content": "<tool_call>{\"name\": \"calculator\", \"arguments\": {\"expression\": \"17 * 24\"}}</tool_call>"},
                    {"content": "It is 408."})
        self.agent("--protocol", "hermes", client=("tools=no",))
        self.assertEqual(self.answer(), "It is 408.")

    def test_native_alone_fails_where_tools_are_rejected(self):
        self.script({"content": "408"})
        self.assertEqual(self.agent("--protocol", "native", client=("tools=no",), code=1)["failed"], 1)


class Servers(AgentTest):
    def test_an_mcp_server(self):
        self.script(calls(call("add", a=17, b=24)), calls(call("crash")), calls(call("where")), {"content": "408"})
        self.assertEqual(self.agent("--tools", "none", "--mcp", SERVER)["completed"], 1)

    def test_a_server_of_each_query_in_its_workspace(self):
        log = self.folder / "log"
        self.questions(*[{"problem": f"question {n}", "answer": "1"} for n in range(3)])
        self.script(calls(call("s_where")), {"content": "1"})
        report = self.agent("--tools", "none", "--mcp", f"s={SERVER} --log {log} {{workspace}}", "-c", "3")
        self.assertEqual(report["completed"], 3)
        self.assertEqual(log.read_text().splitlines().count("start"), 1 + 3)  # one lists the tools

    def test_a_server_that_does_not_start(self):
        self.script({"content": "408"})
        self.agent("--mcp", SERVER + " --dead", code=1)
        self.assertIn("no configuration", self.stderr)


class Options(AgentTest):
    def test_wrong_ones(self):
        self.script({"content": "408"})
        for options, said in [(("--tools", "calculater"), "did you mean 'calculator'"),
                              (("--tools", "calculator,calculator"), "more than once"),
                              (("--tools", "http_get"), "http_get.allow"),
                              (("--tool-param", "shell.memory_mb=1"), "of a tool in use"),
                              (("--tools", "shell", "--tool-param", "shell.memory=1"), "did you mean 'memory_mb'"),
                              (("--protocol", "xml"), "hermes"),
                              (("--max-turns", "0"), "--max-turns"),
                              (("--mcp-server", "x"), "--mcp")]:
            self.agent(*options, code=2)
            self.assertIn(said, self.stderr)

    def test_resume_needs_the_same_agent(self):
        self.script({"content": "408"})
        self.agent("--tools", "think")
        self.agent("--tools", "think", "--resume")
        self.agent("--tools", "calculator", "--resume", code=2)
        self.assertIn("agent was", self.stderr)

    def test_the_workspace_is_removed(self):
        self.script(calls(call("file_write", path="a/b/c", content="x")), {"content": "408"})
        temporary = self.folder / "tmp"
        temporary.mkdir()
        done = ipw(None, "agent", "--client", "null", "--model", "m", "--dataset", self.folder / "questions.jsonl",
                   "--client-param", f"script={self.folder / 'script.jsonl'}", "--idle", "0", "--output-dir",
                   self.folder / "runs", "-q", env={"TMPDIR": str(temporary)})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(os.listdir(temporary), [])


if __name__ == "__main__":
    unittest.main()
