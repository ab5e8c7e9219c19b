#!/usr/bin/env python3
"""`ipw agent` with a real MCP server, the reference filesystem server, which tools/setup installs."""

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
SERVER = PLACE / "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"


def call(name, **arguments):
    return {"type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


class Filesystem(unittest.TestCase):
    def setUp(self):
        if not (PLACE / "ready").exists() or not shutil.which("node"):
            self.skipTest("no MCP server here: tools/setup test")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def agent(self, lines, *options, questions=1):
        (self.folder / "script.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        (self.folder / "questions.jsonl").write_text("".join(
            json.dumps({"problem": f"question {n}", "answer": "done"}) + "\n" for n in range(questions)))
        done = subprocess.run(
            [os.environ.get("IPW", "build/ipw"), "agent", "--client", "null", "--model", "m", "--dataset",
             self.folder / "questions.jsonl", "--client-param", f"script={self.folder / 'script.jsonl'}", "--idle", "0",
             "--output-dir", self.folder / "runs", "--name", "run", "--json", "--workspaces", self.folder / "work",
             "--tools", "none", "--tool-timeout", "60", *options], capture_output=True, text=True, timeout=160)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def traces(self):
        lines = (self.folder / "runs/run/traces.jsonl").read_text().splitlines()
        return {trace["query_id"]: trace for trace in map(json.loads, lines)}

    def tools(self, query="q0000"):
        """(name, error) of the tool calls of a query; those of one turn may be in any order."""
        return [(span["name"], span.get("error")) for span in self.traces()[query]["ipw"]["spans"]
                if span["type"] == "tool_call"]

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


if __name__ == "__main__":
    unittest.main()
