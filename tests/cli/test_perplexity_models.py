#!/usr/bin/env python3
"""Perplexity of the shipped models against a NumPy implementation of tokenizer, forward pass and windows, whose results
research/record-perplexity.py recorded in tests/fixtures/perplexity.json."""

import json
import math
import os
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from program import ipw  # noqa: E402

SOURCE = Path(os.environ.get("IPW_SOURCE", Path(__file__).parents[2])).resolve()
RECORDED = json.loads((SOURCE / "tests/fixtures/perplexity.json").read_text(encoding="utf-8"))


def recorded(model, window, begin=None):
    """-ln p, scored tokens and bytes of each window."""
    return next(case["windows"] for case in RECORDED["cases"]
                if (case["model"], case["window"], case["begin"]) == (model, window, begin))


def add_bos_token(path):
    """Sets the boolean of the GGUF file: after its key and the type, 4 bytes."""
    data = bytearray(path.read_bytes())
    at = data.index(b"tokenizer.ggml.add_bos_token") + len(b"tokenizer.ggml.add_bos_token") + 4
    assert data[at] == 0
    data[at] = 1
    path.write_bytes(data)


class Perplexity(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.path = Path(folder.name)
        (cls.path / "text.txt").write_text(RECORDED["text"], encoding="utf-8")

    def profile(self, model, name, *words, window):
        done = ipw(None, "profile", "--task", "perplexity", "--client", "llama", "--model", model, "--dataset",
                   self.path / "text.txt", "--idle", "0", "--warmup-queries", "0", "--output-dir", self.path / "runs",
                   "--name", name, "--json", "-q", "--dataset-param", f"window={window}", "--client-param",
                   "threads=1", *words)  # several wait for each other on a busy machine
        if "libllama" in done.stderr and done.returncode:
            self.skipTest(done.stderr.strip())
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def agrees(self, report, wanted):
        nats, tokens, size = (sum(column) for column in zip(*wanted))
        self.assertEqual((report["completed"], report["scored_tokens"], report["scored_bytes"]),
                         (len(wanted), tokens, size))
        perplexity, bits = math.exp(nats / tokens), nats / math.log(2) / size
        self.assertAlmostEqual(report["perplexity"] / perplexity, 1, delta=1e-3)
        self.assertAlmostEqual(report["bits_per_byte"] / bits, 1, delta=1e-3)
        squares = sum((each - count * nats / tokens) ** 2 for each, count, _ in wanted)
        error = math.sqrt(squares * len(wanted) / (len(wanted) - 1)) / tokens
        self.assertAlmostEqual(report["perplexity_plus_minus"] / (perplexity * error), 1, delta=0.02)

    def test_perplexity_agrees_with_numpy(self):
        for model, window in (("ipw-1m-f16", 128), ("ipw-1m-f16", 512), ("ipw-6m-f16", 256)):
            with self.subTest(model=model, window=window):
                report = self.profile(model, f"{model}-{window}", window=window)
                self.agrees(report, recorded(model, window))
                self.assertIsNone(report["accuracy"])
                self.assertGreater(report["joules_per_input_token"], 0)
                self.assertEqual(report["input_tokens"], report["completed"] * window)

    def test_batch_smaller_than_window_gives_same_perplexity(self):
        whole, parts = (self.profile("ipw-1m-f16", name, *words, window=128)["perplexity"] for name, words in
                        (("whole", ()), ("parts", ("--client-param", "batch=48,ubatch=16,flash_attention=off"))))
        self.assertAlmostEqual(parts / whole, 1, delta=2e-3)

    def test_bos_token_is_added_if_model_uses_one(self):
        model = self.path / "begins.gguf"
        shutil.copy(SOURCE / "models/ipw-1m-f16.gguf", model)
        add_bos_token(model)
        report = self.profile(model, "begins", window=128)
        self.agrees(report, recorded("ipw-1m-f16", 128, begin=1))
        self.assertNotAlmostEqual(report["perplexity"] / self.profile("ipw-1m-f16", "plain", window=128)["perplexity"], 1,
                                  delta=1e-3)

    def test_sweep_over_model_files_is_optimized_by_perplexity(self):
        self.profile("ipw-1m-f16", "there", window=256)  # or skipped
        done = ipw(None, "sweep", "--profile", "-q", "--knob", "model=ipw-1m-f16,ipw-1m-q4_0", "--output-dir", self.path / "sweeps", "--",
                   "--task", "perplexity", "--client", "llama", "--model", "{model}", "--dataset", self.path / "text.txt",
                   "--idle", "0", "--warmup-queries", "0", "--dataset-param", "window=256", "--client-param", "threads=1")
        self.assertEqual(done.returncode, 0, done.stderr)
        sweep, = (self.path / "sweeps").glob("sweep_*")
        nats, tokens, _ = (sum(column) for column in zip(*recorded("ipw-1m-f16", 256)))
        wanted = math.exp(nats / tokens)
        quality, names = {}, ("model=ipw-1m-f16", "model=ipw-1m-q4_0")
        for name in names:
            report = json.loads(ipw(None, "optimize", sweep, "--baseline", name, "--json").stdout)
            quality[name] = report["baseline"]["quality"]
        self.assertAlmostEqual(quality[names[0]] / wanted, 1, delta=1e-3)
        worst, best = sorted(names, key=quality.get, reverse=True)
        self.assertLess(quality[best] / quality[worst], 0.98)  # they differ
        for least, left in ((99, {best}), (100 * quality[best] / quality[worst] - 1, {best, worst})):
            report = json.loads(ipw(None, "optimize", sweep, "--baseline", best, "--min-quality", least, "--objective", "energy",
                                    "--json").stdout)
            self.assertIn(report["recommended"]["setting"], left)

    def test_compare_and_export_have_perplexity(self):
        runs = [self.profile(model, model, window=64) for model in ("ipw-1m-f16", "ipw-1m-q4_0")]
        folders = [self.path / "runs" / model for model in ("ipw-1m-f16", "ipw-1m-q4_0")]
        done = ipw(None, "compare", *folders, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)["comparisons"][0]
        self.assertTrue(found["paired"])
        for name in ("perplexity", "bits_per_byte"):
            metric = found["metrics"][name]
            values = [metric[side]["value"] for side in ("baseline", "run")]
            for value, run in zip(values, runs):
                self.assertAlmostEqual(value / run[name], 1, places=9)
            low, high = metric["relative_interval_95"]
            self.assertLessEqual(low, metric["relative"])
            self.assertLessEqual(metric["relative"], high)
            self.assertAlmostEqual(metric["relative"], values[1] / values[0] - 1, places=9)
        done = ipw(None, "export", folders[0], "--to", "prom")
        self.assertIn("ipw_run_perplexity", done.stdout)


if __name__ == "__main__":
    unittest.main()
