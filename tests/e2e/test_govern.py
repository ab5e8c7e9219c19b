#!/usr/bin/env python3
"""`ipw govern` reads the metrics of llama.cpp's own server; the GPU is a fake."""

import json
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
from machines import Controlled  # noqa: E402
from program import IPW, PATIENCE_S  # noqa: E402


class LlamaServer(unittest.TestCase):
    def totals(self, url):
        with urllib.request.urlopen(f"{url}/metrics") as answer:
            lines = [line.split() for line in answer.read().decode().splitlines() if line.startswith("llamacpp:")]
        values = {name: float(value) for name, value in lines}
        return values["llamacpp:tokens_predicted_total"], values["llamacpp:tokens_predicted_seconds_total"]

    def test_the_latency_is_the_servers_own(self):
        folder = tempfile.TemporaryDirectory(prefix="ipw-model-")
        self.addCleanup(folder.cleanup)
        model, log = Path(folder.name, "random.gguf"), Path(folder.name, "log.jsonl")
        make_gguf.make(model)
        with servers.llama_server(model, parallel=1) as url, Controlled() as machine:
            govern = subprocess.Popen([IPW, "govern", "--dry-run", "--slo-itl-ms", "1000", "--metrics-url", url,
                                       "--interval", "0.3", "--log", str(log)], env=machine.environment(),
                                      stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            self.addCleanup(govern.stderr.close)
            self.addCleanup(govern.kill)
            govern.stderr.readline()  # it has taken its first reading
            for _ in range(3):
                servers.post(f"{url}/v1/completions", {"model": url.model, "prompt": "A joule is", "max_tokens": 40})
            tokens, seconds = self.totals(url)
            deadline, steps = time.monotonic() + PATIENCE_S, []
            while sum(step["observations"] or 0 for step in steps) < tokens:
                self.assertLess(time.monotonic(), deadline, steps)
                time.sleep(0.1)
                steps = [json.loads(line) for line in (log.read_text() if log.exists() else "").splitlines()
                         if line.endswith("}")]
            govern.terminate()
            self.assertEqual(govern.wait(PATIENCE_S), 128 + 15)
        read = [step for step in steps if step["observations"]]
        self.assertEqual(tokens, 120)
        self.assertEqual(sum(step["observations"] for step in read), tokens)
        self.assertTrue(all(step["itl_is_mean"] for step in read))
        # The server writes six digits.
        self.assertAlmostEqual(sum(step["observations"] * step["itl_ms"] for step in read) / 1e3, seconds, delta=1e-3)


if __name__ == "__main__":
    servers.main()
