#!/usr/bin/env python3
"""`ipw profile` measures Ollama by its own protocol, where it was asked for."""

import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
import servers  # noqa: E402
from profiling import Profiled  # noqa: E402


class OllamaTest(Profiled, unittest.TestCase):
    serve = staticmethod(servers.ollama_server)
    client = "ollama"

    def test_its_durations_are_kept(self):
        for query, _ in self.records(self.alone()):
            self.assertGreater(query["ipw"]["server_decode_s"], 0)
            self.assertLess(query["ipw"]["server_decode_s"],
                            self.metrics(query)["latency_metrics"]["total_query_seconds"])

    def test_chat_works_too(self):
        self.check_counts(self.profile(2, "--client-param", "endpoint=chat"))


if __name__ == "__main__":
    servers.main()
