#!/usr/bin/env python3
# test: real time
"""`ipw profile` with a model in its own process, compared with llama.cpp's server."""

import contextlib
import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
import servers  # noqa: E402
from profiling import ANSWER_TOKENS, ProfileContract  # noqa: E402


@contextlib.contextmanager
def no_server(model_path, parallel):
    """No server: the model is a file."""
    del parallel
    listing = subprocess.run([os.environ["IPW"], "list", "clients", "--json"], check=True,
                             capture_output=True, text=True)
    row = next(row for row in json.loads(listing.stdout)["clients"] if row["name"] == "llama")
    if not row["available"]:
        raise servers.Skip(row["missing"])
    address = servers.Address("")
    address.model = str(model_path)
    yield address


class InProcessTest(ProfileContract, unittest.TestCase):
    serve = staticmethod(no_server)
    client = "llama"
    # Several threads would wait for each other on a busy machine.
    more = ("--client-param", "threads=1")

    def answers(self, report):
        return [(query["problem"], self.metrics(query)["lm_response"], self.metrics(query)["token_metrics"])
                for query, _ in self.records(report)]

    def test_token_counts_are_exact(self):
        for query, _ in self.records(self.sequential_report()):
            tokens = self.metrics(query)["token_metrics"]["output"]
            self.assertEqual(tokens, ANSWER_TOKENS)  # random weights never end an answer
            self.assertEqual(query["ipw"]["pieces"], tokens)
            self.assertGreater(query["ipw"]["server_prefill_s"], 0)
            self.assertGreater(query["ipw"]["server_decode_s"], 0)
            self.assertEqual(query["ipw"]["finish_reason"], "length")

    def test_run_directory_is_named_after_model_file(self):
        report = self.sequential_report()
        self.assertIn("_random_builtin", Path(report["output_dir"]).name)

    def test_answers_equal_those_of_llama_server(self):
        """Token for token, for the raw prompt and with the chat template."""
        with servers.llama_server(self.url.model) as url:
            for problem, answer, tokens in self.answers(self.profile(1, "--client-param", "chat=off")):
                said = servers.post(f"{url}/completion", {
                    "prompt": problem, "n_predict": ANSWER_TOKENS, "temperature": 0,
                    "cache_prompt": False})
                self.assertEqual(answer, said["content"])
                self.assertEqual(tokens["input"], said["tokens_evaluated"])
                self.assertEqual(tokens["output"], said["tokens_predicted"])
            for problem, answer, tokens in self.answers(self.sequential_report()):
                said = servers.post(f"{url}/v1/chat/completions", {
                    "messages": [{"role": "user", "content": problem}], "temperature": 0,
                    "max_tokens": ANSWER_TOKENS, "cache_prompt": False})
                self.assertEqual(answer, said["choices"][0]["message"]["content"])
                self.assertEqual(tokens["input"], said["usage"]["prompt_tokens"])
                self.assertEqual(tokens["output"], said["usage"]["completion_tokens"])

    def test_broken_model_file_is_reported(self):
        broken = Path(self.folder.name, "broken.gguf")
        broken.write_bytes(Path(self.url.model).read_bytes()[:100000])
        done = subprocess.run([os.environ["IPW"], "profile", "--client", "llama", "--model", broken,
                               "--dataset", "builtin", "--idle", "0", "--quiet"],
                              cwd=self.folder.name, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("broken.gguf", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)


if __name__ == "__main__":
    servers.main()
