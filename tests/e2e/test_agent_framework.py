#!/usr/bin/env python3
# test: real time
"""An agent framework without knowledge of ipw, the OpenAI Agents SDK, with llama.cpp's server and a model that calls
tools: through `ipw proxy` its answers are unchanged, each request is recorded, and energies add up.  Under `ipw agent
--exec` its answers are graded."""

import functools
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
import servers  # noqa: E402
from machines import Fixture  # noqa: E402
from program import IPW, TIMEOUT_S, ipw  # noqa: E402
from proxies import CHAT, Proxy  # noqa: E402

MODEL = Path(IPW).resolve().parent / "models/tools-2m-q8_0.gguf"
SCRIPT = Path(__file__).with_name("agents_sdk.py")
# Question, answer, and the calculator expressions of each turn.
QUESTIONS = [("What is 1234 * 5678?", "7006652", [["1234 * 5678"]]),
             ("What is (28 + 9) * 11?", "407", [["28 + 9"], ["37 * 11"]]),
             ("Compute 12 * 9 and 31 + 44.", "108 and 75", [["12 * 9", "31 + 44"]]),
             ("Eva has 31 cards and buys 12 boxes with 24 cards each. How many cards does Eva have now?", "319",
              [["12 * 24"], ["31 + 288"]])]


class Framework(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        python = servers.present("python/bin/python", "python/ready", "test")
        is_there = "import importlib.util, sys; sys.exit(importlib.util.find_spec('agents') is None)"
        if subprocess.run([python, "-c", is_there]).returncode:
            raise servers.Skip("no openai-agents: tools/setup test installs it")
        cls.program = subprocess.Popen([python, SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        cls.addClassCleanup(cls.program.communicate, timeout=TIMEOUT_S)
        cls.machine = Fixture("intel2", watts=40)
        cls.addClassCleanup(cls.machine.close)
        server = servers.llama_server(MODEL, parallel=len(QUESTIONS), context=1024)
        cls.url = server.__enter__()
        cls.addClassCleanup(server.__exit__, None, None, None)

    @classmethod
    def framework(cls, url, way):
        """The framework's results by question."""
        print(json.dumps([f"{url}/v1", cls.url.model, way, *(q for q, _, _ in QUESTIONS)]), file=cls.program.stdin, flush=True)
        return json.loads(cls.program.stdout.readline())

    @classmethod
    @functools.cache
    def without_proxy(cls):
        return cls.framework(cls.url, "one-by-one")

    def through_proxy(self, way):
        """The framework's results, and the proxy, which has ended."""
        folder = tempfile.TemporaryDirectory(prefix="ipw-e2e-")
        self.addCleanup(folder.cleanup)
        proxy = Proxy(self.url, folder.name, "--json", "--model", self.url.model, machine=self.machine)
        self.addCleanup(proxy.close)
        got = self.framework(proxy.url, way)
        self.assertEqual(proxy.end(), 0, proxy.stderr)
        return got, proxy

    def check_answers(self, got):
        for each, (question, answer, turns) in zip(got, QUESTIONS, strict=True):
            self.assertEqual((each["answer"], each["calls"]), (answer, sum(turns, [])), question)
            self.assertEqual(each["sent"], [CHAT] * (len(turns) + 1), question)

    def check_records(self, got, proxy):
        """One record per request, with the token counts that the framework received, and its query and turn."""
        found = {}
        for record in proxy.records():
            labels = record["dataset_metadata"]
            tokens = record["model_metrics"][self.url.model]["token_metrics"]
            self.assertEqual((record["ipw"]["status"], labels["path"], labels["model"]),
                             ("completed", CHAT, self.url.model))
            self.assertNotIn((labels["query"], labels["turn"]), found)
            found[labels["query"], labels["turn"]] = [tokens["input"], tokens["output"]]
        self.assertEqual(found, {(each["query"], str(turn)): tokens for each in got
                                 for turn, tokens in enumerate(each["tokens"])})

    def check_energy(self, proxy):
        """The run's energy is the sum of requests and unattributed energy; idle power was not measured."""
        energies = proxy.energies()
        self.assertEqual(set(energies), {record["key"] for record in proxy.records()})
        for energy in energies.values():
            self.assertGreater(energy["joules"], 0)
            self.assertGreater(energy["plus_minus"], 0)
            self.assertEqual(energy["method"], "counter")
        summary = json.loads((proxy.root / "runs/run/summary.json").read_text())["ipw"]
        total, parts = summary["energy"], summary["joules"]
        shares = sum(energy["joules"] for energy in energies.values())
        self.assertEqual((total["method"], parts["idle"]), ("counter", None))
        self.assertAlmostEqual((shares + parts["unattributed"]) / total["joules"], 1, delta=1e-3)
        self.assertLess(shares, total["joules"])  # the framework's tools run in the remaining time

    def test_sequential_questions_through_proxy(self):
        alone = self.without_proxy()
        got, proxy = self.through_proxy("one-by-one")
        self.check_answers(alone)
        self.assertEqual(got, alone)
        self.check_records(got, proxy)
        self.check_energy(proxy)

    def test_concurrent_streams_through_proxy(self):
        got, proxy = self.through_proxy("at-once")
        self.check_answers(got)
        self.check_records(got, proxy)
        self.check_energy(proxy)

    def test_answers_are_graded_under_ipw_agent(self):
        folder = tempfile.TemporaryDirectory(prefix="ipw-e2e-")
        self.addCleanup(folder.cleanup)
        asked = QUESTIONS[1:2]  # one: the framework takes seconds to start
        dataset = Path(folder.name, "questions.jsonl")
        dataset.write_text("".join(json.dumps({"problem": question, "answer": answer}) + "\n"
                                   for question, answer, _ in asked))
        done = ipw(
            self.machine, "agent", "--client", "openai", "--client-base-url", self.url, "--model", self.url.model, "--dataset",
            dataset, "--idle", "0", "--warmup-queries", "0", "--output-dir", folder.name, "--name", "run",
            "--json", "--grader", "exact", "--exec",
            f"{servers.ENVIRONMENT / 'python/bin/python'} {SCRIPT} {{model}} answer {{problem}}")
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual((report["completed"], report["failed"], report["accuracy"]), (1, 0, 1))
        rows = [json.loads(line) for line in Path(folder.name, "run/records.jsonl").read_text().splitlines()]
        self.assertEqual({row["problem"]: row["model_answers"][self.url.model] for row in rows if row["kind"] == "query"},
                         {question: answer for question, answer, _ in asked})
        traces = map(json.loads, Path(folder.name, "run/traces.jsonl").read_text().splitlines())
        self.assertEqual(
            {trace["query_id"]: (trace["num_turns"], trace["total_input_tokens"], trace["total_output_tokens"])
             for trace in traces},
            {f"q000{n}": (len(each["tokens"]), *map(sum, zip(*each["tokens"])))
             for n, each in enumerate(self.without_proxy()[1:2])})
        shares = sum(row["ipw"]["energy"]["joules"] for row in rows if row["kind"] == "energy")
        self.assertAlmostEqual((shares + report["joules"]["unattributed"]) / report["energy"]["joules"], 1, delta=1e-3)


if __name__ == "__main__":
    servers.main()
