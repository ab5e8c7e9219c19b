#!/usr/bin/env python3
# test: real time
"""The shipped models in llama.cpp: tokens equal those of training, answers those of PyTorch, and the accuracy of each
precision that of the model card.  The larger model answers fewer questions: its files are checked byte for byte
(cli/test_models), and take the same path."""

import functools
import json
import re
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
import servers  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "cli"))
from program import IPW, TIMEOUT_S, ipw  # noqa: E402

MODELS = servers.SOURCE / "models"
BUILT = Path(IPW).resolve().parent / "models"
GOLDEN = json.loads((MODELS / "golden.json").read_text())
ACCURACY = json.loads((MODELS / "accuracy.json").read_text())["models"]
SAME_AT_LEAST = 0.99  # share of answers: two tokens may be almost equally likely
ALLOWANCE = 0.02      # accuracy: kernels of other CPUs round differently
SMALL, LARGE = "ipw-1m", "ipw-6m"
OF_LARGE, OF_LARGE_QUANTIZED = 100, 40  # questions


class Tokens(unittest.TestCase):
    """Tokens as reported by llama.cpp's server."""

    def test_prompt_tokens_equal_training(self):
        with servers.llama_server(BUILT / "ipw-1m-q4_0.gguf", parallel=1, context=512) as url:
            for item in GOLDEN["items"][::4]:
                messages = [{"role": "user", "content": item["problem"]}]
                prompt = servers.post(f"{url}/apply-template", {"messages": messages})["prompt"]
                told = servers.post(f"{url}/tokenize", {"content": prompt, "add_special": True,
                                                        "parse_special": True})
                self.assertEqual(told["tokens"], item["prompt"], item["problem"])


class Tools(unittest.TestCase):
    """The model that calls a calculator, on llama.cpp's server, which parses the calls; the test computes the
    results."""

    CALCULATOR = {"type": "function", "function": {
        "name": "calculator", "description": "Evaluates arithmetic.", "parameters": {
            "type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]}}}
    # Question, tool calls of each turn, answer.
    QUESTIONS = [("What is 1234 * 5678?", [1], 1234 * 5678), ("What is (28 + 9) * 11?", [1, 1], 37 * 11),
                 ("How much is 90317 minus 45?", [1], 90317 - 45), ("Compute 12 * 9 and 31 + 44.", [2], "108 and 75"),
                 ("Eva has 31 cards and buys 12 boxes with 24 cards each. How many cards does Eva have now?", [1, 1], 319)]

    def converse(self, url, question):
        messages, turns = [{"role": "user", "content": question}], []
        for _ in range(5):
            reply = servers.post(f"{url}/v1/chat/completions", {
                "model": url.model, "messages": messages, "tools": [self.CALCULATOR], "temperature": 0,
                "max_tokens": 160})["choices"][0]["message"]
            if not reply.get("tool_calls"):
                return turns, reply["content"]
            turns.append(len(reply["tool_calls"]))
            messages.append(reply)
            for call in reply["tool_calls"]:
                expression = json.loads(call["function"]["arguments"])["expression"]
                self.assertRegex(expression, r"^[-+* 0-9]+$")
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": str(eval(expression))})
        raise AssertionError(f"no answer: {messages}")

    def test_model_calls_tool_and_answers(self):
        with servers.llama_server(BUILT / "tools-2m-q8_0.gguf", parallel=1, context=1024) as url:
            for question, turns, answer in self.QUESTIONS:
                self.assertEqual(self.converse(url, question), (turns, str(answer)), question)


    def test_in_process_agent_calls_tool(self):
        """Level 5 is (a + b) * c: two calls in a row, then the answer."""
        with tempfile.TemporaryDirectory(prefix="ipw-models-") as folder:
            done = ipw(None, "agent", "--client", "llama", "--model", "tools-2m-q8_0", "--client-param", "threads=1",
                       "--dataset", "builtin", "--dataset-param", "tasks=arithmetic", "--dataset-param", "level=5",
                       "--tools", "calculator", "--max-queries", 6, "--idle", "0", "--warmup-queries", "0",
                       "--output-dir", folder, "--json", "--quiet", timeout=TIMEOUT_S)
            if done.returncode and "tools/setup" in done.stderr:
                raise servers.Skip(done.stderr.strip())
            self.assertEqual(done.returncode, 0, done.stderr)
            run = Path(json.loads(done.stdout)["output_dir"])
            traces = [json.loads(line) for line in (run / "traces.jsonl").read_text().splitlines()]
            summary = json.loads((run / "summary.json").read_text())
        self.assertEqual(len(traces), 6)
        for trace in traces:
            a, b, c = map(int, re.findall(r"\d+", trace["query_text"]))
            self.assertEqual(trace["response_text"], str((a + b) * c), trace["query_text"])
            self.assertEqual([turn["tools_called"] for turn in trace["turns"]], [["calculator"], ["calculator"], []])
        self.assertLess(abs(summary["ipw"]["conservation_error"]), 1e-3)


def ask(model, count, *options):
    with tempfile.TemporaryDirectory(prefix="ipw-models-") as folder:
        done = ipw(None, "profile", "--client", "llama", "--model", model, "--client-param",
                   "threads=1", "--dataset", "builtin", "--dataset-param", f"count={count}",
                   "--idle", "0", "--output-dir", folder, "--json", "--quiet", *options,
                   timeout=TIMEOUT_S)
        if done.returncode and "tools/setup" in done.stderr:
            raise servers.Skip(done.stderr.strip())
        assert done.returncode == 0, done.stderr
        report = json.loads(done.stdout)
        assert report["completed"] == count, report
        lines = Path(report["output_dir"], "records.jsonl").read_text().splitlines()
    return [row for row in map(json.loads, lines) if row["kind"] == "query"]


@functools.cache
def answers(model, count, *options):
    """The model's answers in the order of the questions."""
    rows = sorted(ask(model, count, *options), key=lambda row: row["ipw"]["index"])
    return [next(iter(row["model_metrics"].values())) for row in rows]


def count_correct(found):
    return sum(bool(answer["lm_correctness"]) for answer in found)


class Answers(unittest.TestCase):
    """Answers of ipw with llama.cpp in its process."""

    def check_answers(self, model, count):
        """Answers that equal those of PyTorch with f16 weights, of so many questions."""
        found = answers(model, count)
        for answer, item in zip(found, GOLDEN["items"]):
            self.assertEqual(answer["token_metrics"]["input"], len(item["prompt"]))
        wanted = GOLDEN["answers"][model.rpartition("-")[0]]
        return sum(answer["lm_response"] == text for answer, text in zip(found, wanted)) / count

    def test_answers_equal_pytorch(self):
        for model, count in ((f"{SMALL}-f16", len(GOLDEN["items"])), (f"{LARGE}-f16", OF_LARGE)):
            with self.subTest(model):
                self.assertGreaterEqual(self.check_answers(model, count), SAME_AT_LEAST)

    def test_accuracy_of_each_precision_equals_model_card(self):
        for precision in "f16", "q8_0", "q4_0":
            with self.subTest(precision):
                model = f"{SMALL}-{precision}"
                found = answers(model, len(GOLDEN["items"]))
                self.assertAlmostEqual(count_correct(found) / len(found), ACCURACY[model]["golden"], delta=ALLOWANCE)

    def test_quantized_large_model_answers_as_in_f16(self):
        for precision, least in ("q8_0", 0.97), ("q4_0", 0.9):
            with self.subTest(precision):
                self.assertGreaterEqual(self.check_answers(f"{LARGE}-{precision}", OF_LARGE_QUANTIZED), least)

    def test_system_message_does_not_reduce_accuracy(self):
        for model, count in ((f"{SMALL}-f16", len(GOLDEN["items"])), (f"{LARGE}-f16", OF_LARGE)):
            plain = answers(model, count)[:50]
            told = answers(model, 50, "--system", "You are a helpful assistant.")
            self.assertGreaterEqual(count_correct(told), count_correct(plain) - 5)

    def test_larger_model_is_more_accurate(self):
        for precision in "f16", "q8_0", "q4_0":
            self.assertGreater(ACCURACY[f"ipw-6m-{precision}"]["all"],
                               ACCURACY[f"ipw-1m-{precision}"]["all"])


if __name__ == "__main__":
    servers.main()
