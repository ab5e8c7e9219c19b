#!/usr/bin/env python3
# test: real time
"""research/serving-check against llama.cpp's server: requests have the simulated lengths, and the comparison has all
figures.  Agreement is not tested, because it needs an idle machine: see docs/measurements.md."""

import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
import servers  # noqa: E402


class ServingCheckTest(unittest.TestCase):
    def test_comparison_of_short_load(self):
        servers.present("python/bin/python", "python/ready", "test")
        done = subprocess.run([sys.executable, servers.SOURCE / "research" / "serving-check", "--ipw", os.environ["IPW"],
                               "--model", servers.SOURCE / "models/ipw-1m-f16.gguf", "--rates", "2", "--segments", "1", "--requests", "6", "--slots", "2"],
                              capture_output=True, text=True, timeout=300)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        figures = re.findall(r"^ +2\.00  (.+?) +([\d.]+) +([\d.]+) +[-+][\d.]+ %$", done.stdout, re.M)
        self.assertEqual([name for name, _, _ in figures],
                         ["tokens/s", "TTFT p50, ms", "TTFT p95, ms", "ITL p50, ms", "ITL p95, ms"], done.stdout + done.stderr)
        for name, measured, simulated in figures:
            self.assertGreater(float(measured), 0, name)
            self.assertGreater(float(simulated), 0, name)
        self.assertRegex(done.stdout, r"6 requests; busy [\d.]+, batch [12]\.\d; steps fitted to ±\d+ %")


if __name__ == "__main__":
    servers.main()
