#!/usr/bin/env python3
# test: real time
"""`ipw govern` reads the metrics of llama.cpp's server; the GPU is fake."""

import json
import re
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "cli"))
import make_gguf  # noqa: E402
import servers  # noqa: E402
from machines import ControllableGpu  # noqa: E402
from proxies import Proxy  # noqa: E402
from program import IPW, TIMEOUT_S  # noqa: E402


class LlamaServer(unittest.TestCase):
    def totals(self, url):
        with urllib.request.urlopen(f"{url}/metrics") as answer:
            lines = [line.split() for line in answer.read().decode().splitlines() if line.startswith("llamacpp:")]
        values = {name: float(value) for name, value in lines}
        return values["llamacpp:tokens_predicted_total"], values["llamacpp:tokens_predicted_seconds_total"]

    def test_latency_equals_server_metrics(self):
        folder = tempfile.TemporaryDirectory(prefix="ipw-model-")
        self.addCleanup(folder.cleanup)
        model, log = Path(folder.name, "random.gguf"), Path(folder.name, "log.jsonl")
        make_gguf.make(model)
        with servers.llama_server(model, parallel=1) as url, ControllableGpu() as machine:
            govern = subprocess.Popen([IPW, "govern", "--dry-run", "--slo-itl-ms", "1000", "--metrics-url", url,
                                       "--interval", "0.3", "--log", str(log)], env=machine.environment(),
                                      stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            self.addCleanup(govern.stderr.close)
            self.addCleanup(govern.kill)
            govern.stderr.readline()  # after its first reading
            for _ in range(3):
                servers.post(f"{url}/v1/completions", {"model": url.model, "prompt": "A joule is", "max_tokens": 40})
            tokens, seconds = self.totals(url)
            deadline, steps = time.monotonic() + TIMEOUT_S, []
            while sum(step["observations"] or 0 for step in steps) < tokens:
                self.assertLess(time.monotonic(), deadline, steps)
                time.sleep(0.1)
                steps = [json.loads(line) for line in (log.read_text() if log.exists() else "").splitlines()
                         if line.endswith("}")]
            govern.terminate()
            self.assertEqual(govern.wait(TIMEOUT_S), 128 + 15)
        read = [step for step in steps if step["observations"]]
        self.assertEqual(tokens, 120)
        self.assertEqual(sum(step["observations"] for step in read), tokens)
        self.assertTrue(all(step["itl_is_mean"] for step in read))
        # The server prints six digits.
        self.assertAlmostEqual(sum(step["observations"] * step["itl_ms"] for step in read) / 1e3, seconds, delta=1e-3)

    def test_latencies_from_proxy(self):
        """llama.cpp's server has no time to first token; `ipw proxy` in front of it does."""
        folder = tempfile.TemporaryDirectory(prefix="ipw-model-")
        self.addCleanup(folder.cleanup)
        model, log = Path(folder.name, "random.gguf"), Path(folder.name, "log.jsonl")
        make_gguf.make(model)
        with servers.llama_server(model, parallel=1) as url, ControllableGpu() as machine:
            proxy = Proxy(url, folder.name)
            self.addCleanup(proxy.close)
            govern = subprocess.Popen([IPW, "govern", "--dry-run", "--slo-ttft-ms", "60000", "--slo-itl-ms", "60000", "--metrics-url",
                                       f"{proxy.url}/ipw/metrics", "--interval", "0.3", "--log", str(log)],
                                      env=machine.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            self.addCleanup(govern.stderr.close)
            self.addCleanup(govern.kill)
            govern.stderr.readline()
            for _ in range(12):
                with servers.opened(f"{proxy.url}/v1/completions", {"model": url.model, "prompt": "A joule is", "max_tokens": 8,
                                                                   "stream": True}) as answer:
                    answer.read()
            deadline, steps = time.monotonic() + TIMEOUT_S, []
            while not any(step["ttft_ms"] and step["itl_ms"] for step in steps):
                self.assertLess(time.monotonic(), deadline, steps)
                time.sleep(0.1)
                steps = [json.loads(line) for line in (log.read_text() if log.exists() else "").splitlines()
                         if line.endswith("}")]
            with urllib.request.urlopen(f"{proxy.url}/ipw/metrics") as answer:
                metrics = answer.read().decode()
            govern.terminate()
            self.assertEqual(govern.wait(TIMEOUT_S), 128 + 15)
        self.assertIn("ipw_proxy_time_to_first_token_seconds_count 12\n", metrics)
        slowest = min(float(bound) for bound, count in re.findall(r'time_to_first_token_seconds_bucket\{le="([\d.]+)"\} (\d+)', metrics)
                      if count == "12")
        for step in steps:
            if step["ttft_ms"]:
                self.assertFalse(step["itl_is_mean"])
                self.assertTrue(0 < step["ttft_ms"] <= 1e3 * slowest, (step, slowest))


if __name__ == "__main__":
    servers.main()
