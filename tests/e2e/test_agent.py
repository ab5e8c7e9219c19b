#!/usr/bin/env python3
# test: real time
"""`ipw agent` with real MCP servers, which tools/setup installs: the reference filesystem server over stdio, and servers
of the Python and TypeScript SDKs over streamable HTTP."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
SOURCE = Path(os.environ.get("IPW_SOURCE", ".")).resolve()
PLACE = SOURCE / ".test-env/mcp"
PYTHON = SOURCE / ".test-env/python/bin/python"
SERVER = PLACE / "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"


def call(name, **arguments):
    return {"type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


class AgentTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def require_node(self):
        if not (PLACE / "ready").exists() or not shutil.which("node"):
            self.skipTest("no MCP server here: tools/setup test")

    def agent(self, lines, *options, questions=1, code=0, **env):
        (self.folder / "script.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        (self.folder / "questions.jsonl").write_text("".join(
            json.dumps({"problem": f"question {n}", "answer": "done"}) + "\n" for n in range(questions)))
        done = subprocess.run(
            [os.environ.get("IPW", "build/ipw"), "agent", "--client", "null", "--model", "m", "--dataset",
             self.folder / "questions.jsonl", "--client-param", f"script={self.folder / 'script.jsonl'}", "--idle", "0",
             "--output-dir", self.folder / "runs", "--name", "run", "--json", "--workspaces", self.folder / "work",
             "--tools", "none", "--tool-timeout", "60", *options], capture_output=True, text=True, timeout=160, env={**os.environ, **env})
        self.assertEqual(done.returncode, code, done.stderr)
        self.stderr = done.stderr
        return json.loads(done.stdout) if done.stdout else None

    def traces(self):
        lines = (self.folder / "runs/run/traces.jsonl").read_text().splitlines()
        return {trace["query_id"]: trace for trace in map(json.loads, lines)}

    def tools(self, query="q0000"):
        """(name, error) of the tool calls of a query; those of one turn may be in any order."""
        return [(span["name"], span.get("error")) for span in self.traces()[query]["ipw"]["spans"]
                if span["type"] == "tool_call"]


class Filesystem(AgentTest):
    def setUp(self):
        super().setUp()
        self.require_node()

    def test_each_query_has_its_own_server_and_workspace(self):
        """The server of a query writes to the query's workspace."""
        report = self.agent(
            [{"content": "", "tool_calls": [call("write_file", path="a.txt", content="hello\n")]},
             {"content": "", "tool_calls": [call("read_text_file", path="a.txt"), call("list_directory", path=".")]},
             {"content": "done"}],
            "--mcp", f"cd {{workspace}} && node {SERVER} {{workspace}}", "--grader", "exact", "-c", "2", questions=2)
        self.assertEqual((report["completed"], report["accuracy"]), (2, 1))
        for key, query in (("q000000", "q0000"), ("q000001", "q0001")):
            self.assertEqual((self.folder / "work" / key / "a.txt").read_text(), "hello\n")
            self.assertEqual(sorted(self.tools(query)), [("list_directory", None), ("read_text_file", None), ("write_file", None)])

    def test_server_refusals_are_tool_results(self):
        """The model gets the refusal as a result and continues."""
        (self.folder / "shared").mkdir()
        report = self.agent(
            [{"content": "", "tool_calls": [call("fs_read_text_file", path="/etc/passwd")]},
             {"content": "", "tool_calls": [call("fs_read_text_file")]}, {"content": "done"}],
            "--mcp", f"fs=node {SERVER} {self.folder / 'shared'}")
        self.assertEqual(report["completed"], 1)
        (first, outside), (second, missing) = self.tools()
        self.assertEqual((first, second), ("fs_read_text_file", "fs_read_text_file"))
        self.assertIn("denied", outside)
        self.assertTrue(missing)


class Http(AgentTest):
    def start(self, *command):
        process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_python_sdk(self):
        """Responses as JSON and as events, with sessions and without, and a server that requires a token."""
        if subprocess.run([PYTHON, "-c", "import importlib.util, sys; sys.exit(importlib.util.find_spec('mcp') is None)"]
                          if PYTHON.exists() else ["false"]).returncode:
            self.skipTest("no MCP SDK here: tools/setup test")
        token = "mcp-0123456789abcdef"
        servers = self.start(PYTHON, Path(__file__).with_name("mcp_http.py"), token)
        urls = json.loads(servers.stdout.readline())
        self.assertEqual(len(urls), 5)
        lines = [{"content": "", "tool_calls": [call("add", a=17, b=24)]},
                 {"content": "", "tool_calls": [call("count", steps=20), call("count", steps=3)]},
                 {"content": "", "tool_calls": [call("refuse", reason="no"), call("add", a="x")]}, {"content": "done"}]
        self.agent(lines, "--mcp", urls["token"], code=1)
        self.assertIn("IPW_MCP_TOKEN", self.stderr)
        for name, url in urls.items():
            shutil.rmtree(self.folder / "runs", ignore_errors=True)
            report = self.agent(lines, "--mcp", url, "-c", "3", questions=3, IPW_MCP_TOKEN=token)
            self.assertEqual(report["completed"], 3)
            for query in ("q0000", "q0001", "q0002"):
                made = sorted(self.tools(query), key=str)
                self.assertEqual([tool for tool, _ in made], ["add", "add", "count", "count", "refuse"])
                self.assertEqual([error is None for _, error in made].count(True), 3, made)
                self.assertIn("refuse", made[-1][1])
        servers.kill()
        requests = [tuple(json.loads(line)) for line in servers.stdout]
        for name in urls:
            self.assertEqual(requests.count((name, "DELETE")), 0 if "stateless" in name else 1, name)

    def test_typescript_sdk(self):
        self.require_node()
        server = self.start("node", Path(__file__).with_name("mcp_http.mjs"), PLACE / "node_modules/@modelcontextprotocol/sdk")
        report = self.agent([{"content": "", "tool_calls": [call("zone")]}, {"content": "done"}],
                            "--mcp", server.stdout.readline().strip())
        self.assertEqual((report["completed"], self.tools()), (1, [("zone", None)]))
        self.assertEqual(server.stdout.readline(), "closed true\n")


if __name__ == "__main__":
    unittest.main()
