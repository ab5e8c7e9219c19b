#!/usr/bin/env python3
# test: serial
"""Ollama, if installed, behaves as the tests that measure it require."""

import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
import servers  # noqa: E402
from server_contract import ServerContract  # noqa: E402


class OllamaTest(ServerContract, unittest.TestCase):
    serve = staticmethod(servers.ollama_server)

    def test_native_api_reports_counts_and_durations(self):
        answer = servers.post(f"{self.url}/api/chat", {
            "model": self.url.model, "stream": False, "options": {"num_predict": 20},
            "messages": [{"role": "user", "content": "How warm is a joule?"}]})
        self.assertEqual(answer["eval_count"], 20)
        self.assertGreater(answer["prompt_eval_count"], 0)
        self.assertGreater(answer["eval_duration"], 0)


if __name__ == "__main__":
    servers.main()
