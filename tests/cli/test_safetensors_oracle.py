#!/usr/bin/env python3
"""Safetensors files written by the safetensors package: single, sharded, with a matching or a wrong config.json.
$IPW_PYTHON may name an interpreter that has it; without it the test is skipped."""

import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import oracle  # noqa: E402

oracle.use()

import json
import struct
import subprocess
import tempfile
import unittest
from pathlib import Path

from model_graphs import BUILD, show
from program import TIMEOUT_S

try:
    import numpy
    from safetensors.numpy import save_file
except ImportError as error:
    print(f"skipped: {error} (set IPW_PYTHON to an interpreter that has safetensors)")
    sys.exit(77)

CONFIG = {"model_type": "llama", "num_hidden_layers": 3, "hidden_size": 64, "num_attention_heads": 4,
          "num_key_value_heads": 2, "intermediate_size": 96, "vocab_size": 100,
          "tie_word_embeddings": True, "hidden_act": "silu"}


def zeros(*shape, dtype=numpy.float16):
    return numpy.zeros(shape, dtype)


def layer(number, moe=None, query=64, key=32, bias=False, fused=False, normed=0):
    """The tensors of one layer with 64 features."""
    place = f"model.layers.{number}."
    tensors = {"input_layernorm.weight": zeros(64), "post_attention_layernorm.weight": zeros(64),
               "self_attn.o_proj.weight": zeros(64, query)}
    if fused:
        tensors["self_attn.qkv_proj.weight"] = zeros(query + 2 * key, 64)
        tensors["mlp.gate_up_proj.weight"] = zeros(192, 64)
        tensors["mlp.down_proj.weight"] = zeros(64, 96)
        return {place + name: value for name, value in tensors.items()}
    for name, rows in (("q", query), ("k", key), ("v", key)):
        tensors[f"self_attn.{name}_proj.weight"] = zeros(rows, 64)
        if bias:
            tensors[f"self_attn.{name}_proj.bias"] = zeros(rows)
    if normed:
        tensors["self_attn.q_norm.weight"] = tensors["self_attn.k_norm.weight"] = zeros(normed)
    if moe:
        tensors["block_sparse_moe.gate.weight"] = zeros(moe, 64)
        for expert in range(moe):
            for name, shape in (("w1", (96, 64)), ("w2", (64, 96)), ("w3", (96, 64))):
                tensors[f"block_sparse_moe.experts.{expert}.{name}.weight"] = zeros(*shape)
    else:
        tensors["mlp.gate_proj.weight"] = tensors["mlp.up_proj.weight"] = zeros(96, 64)
        tensors["mlp.down_proj.weight"] = zeros(64, 96)
    return {place + name: value for name, value in tensors.items()}


def decoder(head=False, **more):
    tensors = {"model.embed_tokens.weight": zeros(100, 64), "model.norm.weight": zeros(64)}
    for number in range(3):
        tensors.update(layer(number, **more))
    if head:
        tensors["lm_head.weight"] = zeros(100, 64)
    return tensors


def count(tensors):
    return sum(tensor.size for tensor in tensors.values())


class Safetensors(unittest.TestCase):
    def setUp(self):
        self.kept = tempfile.TemporaryDirectory()
        self.addCleanup(self.kept.cleanup)
        self.folder = Path(self.kept.name) / "small"
        self.folder.mkdir()
        self.file = self.folder / "model.safetensors"

    def save(self, tensors, config=None):
        save_file(tensors, self.file, metadata={"format": "pt"})
        if config:
            (self.folder / "config.json").write_text(json.dumps(config))

    def test_file_with_config(self):
        self.save(decoder(), CONFIG)
        for word in (self.file, self.folder):
            found = show(word, phase="decode", context=9)
            self.assertEqual(found["reader"], "safetensors")
            self.assertEqual(found["name"], "small")
            self.assertEqual(found["parameters"], count(decoder()))
            self.assertFalse(found["is_guessed"])
            by_config = show(self.folder / "config.json", phase="decode", context=9)
            self.assertEqual(found["macs"], by_config["macs"])

    def test_precision_of_file(self):
        """A decoder is estimated in 16 bits; a 32-bit file is reported."""
        for dtype, name, words in ((numpy.float16, "fp16", "   fp16, batch 1"),
                                   (numpy.float32, "fp32", "   fp16 (the file is fp32), batch 1")):
            self.save({key: value.astype(dtype) for key, value in decoder().items()}, CONFIG)
            asked = [BUILD / "ipw", "estimate", "--model", self.folder, "--hardware", "a100-sxm-80gb"]
            done = subprocess.run([*asked, "--json"], capture_output=True, text=True, timeout=TIMEOUT_S)
            report = json.loads(done.stdout)
            self.assertEqual((report["precision"], report["setting"]["file_precision"]), ("fp16", name))
            done = subprocess.run(asked, capture_output=True, text=True, timeout=TIMEOUT_S)
            self.assertIn(words, done.stdout)

    def test_config_of_another_model_is_rejected(self):
        self.save(decoder(), {**CONFIG, "num_hidden_layers": 4})
        error = show(self.folder)["error"]
        self.assertIn(str(count(decoder())), error)
        self.assertIn("not of the same model", error)

    def test_duplicate_tied_head_and_buffers_are_not_counted(self):
        tensors = decoder(head=True)
        tensors["model.rotary_emb.inv_freq"] = zeros(8, dtype=numpy.float32)
        self.save(tensors, CONFIG)
        self.assertEqual(show(self.folder)["parameters"], count(decoder()))

    def test_file_without_config(self):
        cases = {
            "plain": {}, "own head": {"head": True}, "biases": {"bias": True},
            "norms of heads": {"normed": 16}, "one matrix for three": {"fused": True},
            "experts": {"moe": 4},
        }
        for name, more in cases.items():
            with self.subTest(name):
                tensors = decoder(**more)
                self.save(tensors)
                found = show(self.folder, phase="decode", context=1)
                self.assertEqual(found.get("parameters"), count(tensors), found)
                self.assertTrue(found["is_guessed"])
                used = 2 if more.get("moe") else 1
                linear = 3 * (64 * (2 * 64 + 2 * 32) + used * 3 * 64 * 96 + 64 * more.get("moe", 0))
                self.assertEqual(found["macs"], linear + 3 * 2 * 64 + 64 * 100)

    def test_other_model_needs_config(self):
        self.save({"conv1.weight": zeros(8, 3, 3, 3), "fc.weight": zeros(10, 8)})
        error = show(self.folder)["error"]
        for words in ("2 tensors with 296 parameters", "config.json"):
            self.assertIn(words, error)

    def test_packed_weights_need_config(self):
        tensors = decoder()
        tensors["model.layers.0.mlp.up_proj.weight"] = zeros(96, 32, dtype=numpy.uint8)
        self.save(tensors)
        self.assertIn("packed", show(self.folder)["error"])
        self.save(tensors, CONFIG)
        self.assertEqual(show(self.folder)["parameters"], count(decoder()))

    def test_other_models_with_config(self):
        config = {"model_type": "gpt2", "n_embd": 32, "n_layer": 1, "n_head": 2, "n_positions": 16,
                  "vocab_size": 50}
        tensors = {"wte.weight": zeros(50, 32), "wpe.weight": zeros(16, 32),
                   "h.0.attn.bias": zeros(1, 1, 16, 16), "h.0.attn.c_attn.weight": zeros(32, 96),
                   "h.0.attn.c_attn.bias": zeros(96), "h.0.attn.c_proj.weight": zeros(32, 32),
                   "h.0.attn.c_proj.bias": zeros(32), "h.0.mlp.c_fc.weight": zeros(32, 128),
                   "h.0.mlp.c_fc.bias": zeros(128), "h.0.mlp.c_proj.weight": zeros(128, 32),
                   "h.0.mlp.c_proj.bias": zeros(32)}
        for name in ("h.0.ln_1", "h.0.ln_2", "ln_f"):
            tensors[name + ".weight"] = tensors[name + ".bias"] = zeros(32)
        self.save(tensors, config)
        found = show(self.folder, tokens=8)
        self.assertEqual(found["parameters"], count(tensors) - 256)
        self.assertFalse(found["is_guessed"])
        tensors["score.weight"] = zeros(2, 32)
        self.save(tensors, config)
        self.assertTrue(show(self.folder, tokens=8)["is_guessed"])

    def test_sharded_files(self):
        tensors = decoder()
        names = sorted(tensors)
        parts = {"model-00001-of-00002.safetensors": names[:9],
                 "model-00002-of-00002.safetensors": names[9:]}
        listed = {"metadata": {"total_size": 1}, "weight_map": {}}
        for file, own in parts.items():
            save_file({name: tensors[name] for name in own}, self.folder / file)
            listed["weight_map"].update({name: file for name in own})
        index = self.folder / "model.safetensors.index.json"
        index.write_text(json.dumps(listed))
        for word in (index, self.folder):
            found = show(word)
            self.assertEqual(found["parameters"], count(tensors))
            self.assertEqual(found["name"], "small")
        (self.folder / "model-00002-of-00002.safetensors").unlink()
        self.assertIn("model-00002-of-00002.safetensors", show(index)["error"])
        listed["weight_map"]["other"] = "../../outside.safetensors"
        index.write_text(json.dumps(listed))
        self.assertIn("is not a file next to it", show(index)["error"])
        index.write_text("{}")
        self.assertIn("'weight_map' is missing", show(index)["error"])

    def test_every_dtype(self):
        tensors = decoder()
        for dtype in (numpy.float64, numpy.float32):
            self.save({name: tensor.astype(dtype) for name, tensor in tensors.items()}, CONFIG)
            self.assertEqual(show(self.folder)["parameters"], count(tensors))

    def test_damaged_files_are_rejected(self):
        self.save(decoder(), CONFIG)
        whole = self.file.read_bytes()
        length = struct.unpack("<Q", whole[:8])[0]
        for lie in (0, 1, length - 1, length + 1, len(whole), 2**31, 2**63, 2**64 - 1):
            with self.subTest(f"header of {lie}"):
                self.file.write_bytes(struct.pack("<Q", lie) + whole[8:])
                self.assertIn("error", show(self.file))
        for size in (0, 1, 7, 8, 9, length, length + 7, length + 8, len(whole) - 1):
            with self.subTest(f"cut to {size}"):
                self.file.write_bytes(whole[:size])
                self.assertIn("error", show(self.file))
        self.file.write_bytes(whole + b"x")
        self.assertIn("bytes", show(self.file)["error"])


if __name__ == "__main__":
    unittest.main()
