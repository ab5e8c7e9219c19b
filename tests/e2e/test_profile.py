#!/usr/bin/env python3
# test: real time
"""`ipw profile` measures llama.cpp's server."""

import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
import servers  # noqa: E402
from profiling import ANSWER_TOKENS, ProfileContract, ipw  # noqa: E402


class LlamaTest(ProfileContract, unittest.TestCase):
    serve = staticmethod(servers.llama_server)
    client = "openai"

    def test_token_counts_equal_stream_chunks(self):
        """The server sends one event per token, so there are as many chunks as tokens."""
        for query, _ in self.records(self.sequential_report()):
            self.assertEqual(query["ipw"]["pieces"], self.metrics(query)["token_metrics"]["output"])
            self.assertGreater(query["ipw"]["server_decode_s"], 0)

    def test_completions_endpoint(self):
        report = self.profile(2, "--client-param", "endpoint=completions")
        self.check_counts(report)

    def test_messages_api_gives_the_same_answers(self):
        """The client anthropic, to the same server: the same prompts, tokens and text.  It counts a cached prompt in
        parts."""
        openai = self.records(self.sequential_report())
        self.client = "anthropic"
        report = self.profile(1)
        self.check_counts(report)
        for (query, _), (other, _) in zip(self.records(report), openai):
            ours, theirs = self.metrics(query), self.metrics(other)
            self.assertEqual((ours["lm_response"], ours["token_metrics"]), (theirs["lm_response"], theirs["token_metrics"]))
            self.assertEqual((query["ipw"]["finish_reason"], query["ipw"]["pieces"]),
                             (other["ipw"]["finish_reason"], other["ipw"]["pieces"]))

    def test_same_seed_gives_same_answers(self):
        first, second = (
            [self.metrics(query)["lm_response"] for query, _ in self.records(report)]
            for report in (self.sequential_report(), self.profile(1)))
        self.assertEqual(first, second)
        self.assertTrue(any(len(answer) >= ANSWER_TOKENS // 2 for answer in first), first)

    def test_perplexity_is_refused(self):
        """The server ignores echo and returns log-probabilities of the generated token, which must not be taken for
        those of the text."""
        asked = {"model": self.url.model, "prompt": "one two three", "max_tokens": 1, "echo": True, "logprobs": 1}
        choice, = servers.post(f"{self.url}/v1/completions", asked)["choices"]
        # if this fails, the server can be scored: change the client
        self.assertNotIn("token_logprobs", choice["logprobs"])
        self.assertEqual(len(choice["logprobs"]["content"]), 1)
        text = Path(self.folder.name, "text.txt")
        text.write_text("The quick brown fox jumps over the lazy dog.\n" * 4)
        runs = Path(self.folder.name, "perplexity")
        done = ipw(self.machine, "profile", "--task", "perplexity", "--client", "openai", *self.address(), "--model",
                   self.url.model, "--dataset", text, "--dataset-param", "window=64", "--idle", "0", "--output-dir", runs)
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        self.assertIn("returned no log-probabilities of the prompt: it ignores echo", done.stderr)
        self.assertIn("--client llama", done.stderr)
        self.assertEqual(list(runs.glob("*")), [])
        text.write_text("The quick brown fox jumps over the lazy dog.\n" * 2000)
        done = ipw(self.machine, "profile", "--task", "perplexity", "--client", "openai", *self.address(), "--model",
                   self.url.model, "--dataset", text, "--dataset-param", "window=60000", "--idle", "0", "--output-dir", runs)
        self.assertEqual(done.returncode, 1)
        self.assertIn("context size", done.stderr)  # the error message
        self.assertNotIn("echo", done.stderr)

    def check_unknown_model(self, done):
        """The server has one model and serves it under any name, which ipw accepts with a note."""
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(self.url.model, done.stderr)


if __name__ == "__main__":
    servers.main()
