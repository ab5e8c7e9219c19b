#!/usr/bin/env python3
"""Perplexity of the shipped models against a NumPy implementation of tokenizer, forward pass and windows, with weights
read by the package gguf.  $IPW_PYTHON may name an interpreter that has it; without it the test is skipped."""

import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import oracle  # noqa: E402

oracle.use()
os.environ["OPENBLAS_NUM_THREADS"] = "1"  # several wait for each other on a busy machine

import json
import math
import shutil
import tempfile
import unittest
from pathlib import Path

from program import ipw

try:
    import gguf
    import numpy
    import regex
except ImportError as error:
    print(f"skipped: {error} (set IPW_PYTHON to an interpreter that has gguf)")
    sys.exit(77)

BUILD = Path(os.environ.get("IPW_BUILD", "build")).resolve()
SOURCE = Path(os.environ.get("IPW_SOURCE", ".")).resolve()
WORDS = regex.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")


def byte_letters():
    """GPT-2's mapping of bytes to characters."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [byte for byte in range(256) if byte not in plain]
    return {**{byte: chr(byte) for byte in plain}, **{byte: chr(256 + i) for i, byte in enumerate(rest)}}


class Tokenizer:
    def __init__(self, fields):
        self.ids = {token: i for i, token in enumerate(fields["tokenizer.ggml.tokens"])}
        self.ranks = {tuple(pair.split(" ")): i for i, pair in enumerate(fields["tokenizer.ggml.merges"])}
        self.letters = byte_letters()

    def word(self, text):
        parts = [self.letters[byte] for byte in text.encode()]
        while len(parts) > 1:
            rank, i = min((self.ranks.get(pair, math.inf), i) for i, pair in enumerate(zip(parts, parts[1:])))
            if rank == math.inf:
                break
            parts[i:i + 2] = ["".join(parts[i:i + 2])]
        return parts

    def tokens(self, text):
        for piece in regex.findall(r"\p{N}|[^\p{N}]+", text):  # single digits
            for word in WORDS.findall(piece):
                yield from self.word(word)


class Llama:
    """RMSNorm, RoPE of adjacent pairs, grouped-query attention, SwiGLU, tied embedding; float64."""

    def __init__(self, path):
        reader = gguf.GGUFReader(path)
        self.fields = {name: field.contents() for name, field in reader.fields.items()}
        self.weights = {tensor.name.removesuffix(".weight"): numpy.array(tensor.data, dtype=numpy.float64)
                        for tensor in reader.tensors}
        self.tokenizer = Tokenizer(self.fields)

    def of(self, name):
        return self.fields["llama." + name]

    def norm(self, x, name):
        scale = numpy.sqrt((x * x).mean(-1, keepdims=True) + self.of("attention.layer_norm_rms_epsilon"))
        return x / scale * self.weights[name]

    def rotate(self, x):
        width = x.shape[-1]
        angles = numpy.outer(numpy.arange(x.shape[-2]),
                             self.of("rope.freq_base") ** (-numpy.arange(0, width, 2) / width))
        even, odd, out = x[..., 0::2], x[..., 1::2], numpy.empty_like(x)
        out[..., 0::2] = even * numpy.cos(angles) - odd * numpy.sin(angles)
        out[..., 1::2] = even * numpy.sin(angles) + odd * numpy.cos(angles)
        return out

    def attend(self, x, block):
        heads, grouped = self.of("attention.head_count"), self.of("attention.head_count_kv")
        q, k, v = ((x @ self.weights[f"{block}.attn_{part}"].T).reshape(len(x), count, -1).transpose(1, 0, 2)
                   for part, count in (("q", heads), ("k", grouped), ("v", grouped)))
        k, v = (numpy.repeat(part, heads // grouped, 0) for part in (self.rotate(k), v))
        scores = self.rotate(q) @ k.transpose(0, 2, 1) / math.sqrt(q.shape[-1])
        scores += numpy.triu(numpy.full(scores.shape[1:], -numpy.inf), 1)
        shares = numpy.exp(scores - scores.max(-1, keepdims=True))
        mixed = shares / shares.sum(-1, keepdims=True) @ v
        return mixed.transpose(1, 0, 2).reshape(len(x), -1) @ self.weights[f"{block}.attn_output"].T

    def log_probabilities(self, ids):
        x = self.weights["token_embd"][ids]
        for block in (f"blk.{i}" for i in range(self.of("block_count"))):
            x = x + self.attend(self.norm(x, f"{block}.attn_norm"), block)
            y = self.norm(x, f"{block}.ffn_norm")
            gate = y @ self.weights[f"{block}.ffn_gate"].T
            up = y @ self.weights[f"{block}.ffn_up"].T
            x = x + (gate / (1 + numpy.exp(-gate)) * up) @ self.weights[f"{block}.ffn_down"].T
        logits = self.norm(x, "output_norm") @ self.weights["token_embd"].T
        top = logits.max(-1, keepdims=True)
        return logits - top - numpy.log(numpy.exp(logits - top).sum(-1, keepdims=True))

    def windows(self, text, length, begin=None):
        """-ln p, tokens and bytes of the second half of each window, like llama.cpp's perplexity program."""
        pieces = ([None] if begin is not None else []) + list(self.tokenizer.tokens(text))
        ids = [begin if piece is None else self.tokenizer.ids[piece] for piece in pieces]
        for at in range(0, len(ids) - length + 1, length):
            window = ids[at:at + length]
            if begin is not None:
                window[0] = begin
            found = self.log_probabilities(numpy.array(window))
            scored = range(length // 2 + 1, length)
            yield (-sum(found[i - 1][window[i]] for i in scored), len(scored), sum(len(pieces[at + i]) for i in scored))


class Perplexity(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.path = Path(folder.name)
        items = json.loads((SOURCE / "models/golden.json").read_text())["items"]
        cls.text = "\n".join(item["problem"] for item in items[:120]) + "\nEnglish text: naïve, 3.5 €, 日本.\n"
        (cls.path / "text.txt").write_text(cls.text)

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
        nats, tokens, size = (numpy.array(column) for column in zip(*wanted))
        self.assertEqual((report["completed"], report["scored_tokens"], report["scored_bytes"]),
                         (len(wanted), tokens.sum(), size.sum()))
        perplexity, bits = math.exp(nats.sum() / tokens.sum()), nats.sum() / math.log(2) / size.sum()
        self.assertAlmostEqual(report["perplexity"] / perplexity, 1, delta=1e-3)
        self.assertAlmostEqual(report["bits_per_byte"] / bits, 1, delta=1e-3)
        error = math.sqrt(((nats - tokens * nats.sum() / tokens.sum()) ** 2).sum()
                          * len(wanted) / (len(wanted) - 1)) / tokens.sum()
        self.assertAlmostEqual(report["perplexity_plus_minus"] / (perplexity * error), 1, delta=0.02)

    def test_perplexity_agrees_with_numpy(self):
        for model, window in (("ipw-1m-f16", 128), ("ipw-1m-f16", 512), ("ipw-6m-f16", 256)):
            with self.subTest(model=model, window=window):
                report = self.profile(model, f"{model}-{window}", window=window)
                self.agrees(report, list(Llama(SOURCE / f"models/{model}.gguf").windows(self.text, window)))
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
        reader = gguf.GGUFReader(model, "r+")
        field = reader.fields["tokenizer.ggml.add_bos_token"]
        field.parts[field.data[0]][0] = True
        reader.data.flush()
        report = self.profile(model, "begins", window=128)
        self.agrees(report, list(Llama(model).windows(self.text, 128, begin=1)))
        self.assertNotAlmostEqual(report["perplexity"] / self.profile("ipw-1m-f16", "plain", window=128)["perplexity"], 1,
                                  delta=1e-3)

    def test_sweep_over_model_files_is_optimized_by_perplexity(self):
        self.profile("ipw-1m-f16", "there", window=256)  # or skipped
        done = ipw(None, "sweep", "--profile", "-q", "--knob", "model=ipw-1m-f16,ipw-1m-q4_0", "--output-dir", self.path / "sweeps", "--",
                   "--task", "perplexity", "--client", "llama", "--model", "{model}", "--dataset", self.path / "text.txt",
                   "--idle", "0", "--warmup-queries", "0", "--dataset-param", "window=256", "--client-param", "threads=1")
        self.assertEqual(done.returncode, 0, done.stderr)
        sweep, = (self.path / "sweeps").glob("sweep_*")
        whole, = (numpy.array(list(Llama(SOURCE / "models/ipw-1m-f16.gguf").windows(self.text, 256))),)
        wanted = math.exp(whole[:, 0].sum() / whole[:, 1].sum())
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
