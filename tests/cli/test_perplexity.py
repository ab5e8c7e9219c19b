#!/usr/bin/env python3
# test: real time
"""Command-line tests of `ipw profile --task perplexity`: the null client, whose figures follow from arithmetic, and
fake servers of OpenAI's completions API.  test_perplexity_models.py has real models."""

import csv
import http.server
import io
import json
import math
import re
import sys
import tempfile
import threading
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from program import ipw  # noqa: E402

TEXT = "The quick brown fox jumps over the lazy dog. Käse kostet 3 €.\n" * 40


class Completions(http.server.BaseHTTPRequestHandler):
    """Words are tokens; the path selects the behavior: /echo, /usage_only, /refuses."""

    def log_message(self, *_):
        pass

    def reply(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        self.reply(200, {"data": [{"id": "m"}]})

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, asked))
        scenario = self.path.split("/")[1]
        if scenario == "refuses":
            return self.reply(400, {"error": {"message": "Only no echo is supported"}})
        tokens = re.findall(r"\s*\S+|\s+$", asked["prompt"])
        choice = {"index": 0, "text": asked["prompt"] + " end", "finish_reason": "length"}
        if scenario in ("echo", "shifted"):
            # The most likely token is correct half of the time; "shifted" is one token off, like llama-cpp-python
            # 0.3.36.
            every = [*tokens, " end"]
            right = [{every[k]: -0.5} if k % 2 else {" no": -0.5, every[k]: -2} for k in range(len(every))]
            top = [None, *right[1:]] if scenario == "echo" else [None, *right[2:]]
            choice["logprobs"] = {"tokens": every if scenario == "echo" else tokens, "top_logprobs": top,
                                  "token_logprobs": [None, *(-len(token) for token in tokens[1:]), -9][:len(top)]}
        usage = {"prompt_tokens": len(tokens), "completion_tokens": 1, "total_tokens": len(tokens) + 1}
        return self.reply(200, {"choices": [choice], "usage": usage})


class Perplexity(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name)
        self.text = self.path / "text.txt"
        self.text.write_text(TEXT)

    def profile(self, *words, client="null", dataset=None):
        return ipw(None, "profile", "--task", "perplexity", "--client", client, "--model", "m", "--dataset",
                   dataset or self.text, "--idle", "0", "--output-dir", self.path / "runs", "--json", *words)

    def report(self, *words, **options):
        done = self.profile("-q", *words, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    @staticmethod
    def records(report):
        lines = (Path(report["output_dir"]) / "records.jsonl").read_text().splitlines()
        return [line for line in map(json.loads, lines) if line.get("kind") == "query"]

    def refused(self, *words, code=2, **options):
        done = self.profile(*words, **options)
        self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
        self.assertEqual(list((self.path / "runs").glob("*")), [])  # nothing was written
        return done.stderr

    def serve(self):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Completions)
        server.asked = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server, f"http://127.0.0.1:{server.server_port}"

    def test_uniform_model_over_bytes(self):
        report = self.report("--concurrency", "3", "--dataset-param", "window=64")
        self.assertAlmostEqual(report["perplexity"], 256, places=9)
        self.assertAlmostEqual(report["bits_per_byte"], 8, places=12)
        self.assertEqual(report["input_tokens"], len(TEXT.encode()))  # the whole text
        self.assertEqual(report["scored_tokens"], report["scored_bytes"])
        self.assertEqual(report["ungraded_reason"], None)
        records = self.records(report)
        queries = sorted((line["ipw"]["index"], line) for line in records)
        self.assertEqual("".join(line["problem"] for _, line in queries), TEXT)
        for _, line in queries:
            size = len(line["problem"].encode())
            self.assertLessEqual(size, 4 * 64)
            self.assertEqual(line["ipw"]["scored_tokens"], size - size // 2 - 1)
            self.assertAlmostEqual(line["ipw"]["negative_log_likelihood"],
                                   line["ipw"]["scored_tokens"] * math.log(256), places=9)
        summary = json.loads((Path(report["output_dir"]) / "summary.json").read_text())
        self.assertEqual(summary["profiler_config"]["task"], "perplexity")
        done = ipw(None, "export", report["output_dir"], "--to", "csv")
        rows = list(csv.DictReader(io.StringIO(done.stdout)))
        self.assertEqual(sum(int(row["scored_tokens"]) for row in rows), report["scored_tokens"])

    def test_report_and_resume(self):
        done = self.profile("--max-queries", "1")
        self.assertRegex(done.stderr, r"perplexity +256 per token, 8 bits per byte \(\d+ tokens, \d+ bytes scored\)")
        self.assertNotIn("accuracy", done.stderr)
        first = json.loads(done.stdout)
        self.assertIsNone(first["perplexity_plus_minus"])  # one window only
        self.assertEqual(self.report("--resume")["perplexity_plus_minus"], 0)
        done = ipw(None, "profile", "--client", "null", "--model", "m", "--dataset", self.text, "--idle", "0",
                   "--output-dir", self.path / "runs", "--resume")
        self.assertEqual(done.returncode, 2)
        self.assertIn("task was \"perplexity\"", done.stderr)

    def test_server_with_shifted_tokens_is_refused(self):
        """Its log-probabilities belong to the next token, so the perplexity would be wrong."""
        _, url = self.serve()
        said = self.refused("--client-base-url", url + "/shifted", "--dataset-param", "window=64", client="openai", code=1)
        self.assertIn("one token off", said)
        self.assertIn("--client llama", said)

    def test_server_with_echo(self):
        server, url = self.serve()
        report = self.report("--client-base-url", url + "/echo", "--dataset-param", "window=64", client="openai")
        path, asked = server.asked[0]
        self.assertEqual(path, "/echo/v1/completions")
        self.assertEqual((asked["echo"], asked["logprobs"], asked["max_tokens"], asked["stream"]), (True, 1, 1, False))
        records = self.records(report)
        nats = scored = size = 0
        for line in records:
            tokens = re.findall(r"\s*\S+|\s+$", line["problem"])
            wanted = tokens[len(tokens) // 2 + 1:]
            nats, scored = nats + sum(map(len, wanted)), scored + len(wanted)
            size += sum(len(token.encode()) for token in wanted)
            self.assertEqual(line["model_answers"]["m"], "")  # the echoed prompt is not an answer
        self.assertEqual((report["scored_tokens"], report["scored_bytes"]), (scored, size))
        self.assertAlmostEqual(report["perplexity"], math.exp(nats / scored), places=6)
        self.assertAlmostEqual(report["bits_per_byte"], nats / math.log(2) / size, places=9)
        self.assertEqual(report["cut"], 0)

    def test_server_without_log_probabilities_is_refused(self):
        _, url = self.serve()
        message = self.refused("--client-base-url", url + "/usage_only", client="openai", code=1)
        self.assertIn("returned no log-probabilities of the prompt", message)
        message = self.refused("--client-base-url", url + "/refuses", client="openai", code=1)
        self.assertIn("Only no echo is supported", message)

    def test_rejects_clients_and_options_that_cannot_be_scored(self):
        self.assertIn("client ollama returns no log-probabilities", self.refused(client="ollama"))
        self.assertIn("give --dataset FILE.txt", self.refused(dataset="builtin"))
        self.assertIn("--system", self.refused("--system", "x"))
        self.assertIn("window=3", self.refused("--dataset-param", "window=3"))
        self.assertIn("no such file", self.refused(dataset=self.path / "absent.txt").lower())
        self.text.write_text("")
        self.assertIn("is empty", self.refused(code=1))
        self.assertIn("TASK", ipw(None, "profile", "--help").stdout)
        done = ipw(None, "profile", "--client", "null", "--model", "m", "--task", "guess")
        self.assertEqual(done.returncode, 2)


if __name__ == "__main__":
    unittest.main()
