#!/usr/bin/env python3
# test: serial
"""`ipw profile` with Ollama's native API, if installed."""

import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
import servers  # noqa: E402
from profiling import ProfileContract  # noqa: E402


class OllamaTest(ProfileContract, unittest.TestCase):
    serve = staticmethod(servers.ollama_server)
    client = "ollama"

    def test_server_durations_are_recorded(self):
        for query, _ in self.records(self.sequential_report()):
            self.assertGreater(query["ipw"]["server_decode_s"], 0)
            self.assertLess(query["ipw"]["server_decode_s"],
                            self.metrics(query)["latency_metrics"]["total_query_seconds"])

    def test_chat_endpoint(self):
        self.check_counts(self.profile(2, "--client-param", "endpoint=chat"))


if __name__ == "__main__":
    servers.main()
