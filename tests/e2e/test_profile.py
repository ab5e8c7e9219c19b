#!/usr/bin/env python3
"""`ipw profile` measures llama.cpp's server."""

import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
import servers  # noqa: E402
from profiling import ANSWER_TOKENS, Profiled  # noqa: E402


class LlamaTest(Profiled, unittest.TestCase):
    serve = staticmethod(servers.llama_server)
    client = "openai"

    def test_its_counts_are_ours(self):
        """The server sends each token as an event of its own: pieces and tokens are as many."""
        for query, _ in self.records(self.alone()):
            self.assertEqual(query["ipw"]["pieces"], self.metrics(query)["token_metrics"]["output"])
            self.assertGreater(query["ipw"]["server_decode_s"], 0)

    def test_completions_work_too(self):
        report = self.profile(2, "--client-param", "endpoint=completions")
        self.check_counts(report)

    def test_the_same_seed_gives_the_same_answers(self):
        first, second = (
            [self.metrics(query)["lm_response"] for query, _ in self.records(report)]
            for report in (self.alone(), self.profile(1)))
        self.assertEqual(first, second)
        self.assertTrue(any(len(answer) >= ANSWER_TOKENS // 2 for answer in first), first)

    def check_unknown_model(self, done):
        """It has one model and serves it under any name; so do we, and say so."""
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(self.url.model, done.stderr)


if __name__ == "__main__":
    servers.main()
