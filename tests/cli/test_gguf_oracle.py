#!/usr/bin/env python3
"""GGUF files against the package gguf, which writes and reads the same files; the cost of a pass is counted
independently from what it reads.  $IPW_PYTHON may name an interpreter that has it; without it the test is skipped.
$IPW_GGUF may name a further model to compare."""

import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import oracle  # noqa: E402

oracle.use()

import json
import math
import re
import struct
import subprocess
import tempfile
import unittest
from pathlib import Path

from program import TIMEOUT_S

try:
    import gguf
    import numpy
except ImportError as error:
    print(f"skipped: {error} (set IPW_PYTHON to an interpreter that has gguf)")
    sys.exit(77)

BUILD = Path(os.environ.get("IPW_BUILD", "build")).resolve()
SOURCE = Path(os.environ.get("IPW_SOURCE", ".")).resolve()
sys.path.append(str(SOURCE / "tests/e2e"))
import make_gguf

Kind, Quant = gguf.GGUFValueType, gguf.GGMLQuantizationType
# A type for intermediate results in memory: no file has it, and the package has an outdated size.
IN_MEMORY_ONLY = {Quant.Q8_1}


def show(path, *a_pass):
    """The content of a file as read by ipw."""
    done = subprocess.run([BUILD / "tests/tools/gguf_show", path, *map(str, a_pass)],
                          capture_output=True, text=True, timeout=TIMEOUT_S)
    assert not done.stderr, done.stderr
    # strict=False: vocabularies may contain control characters
    return json.loads(done.stdout, strict=False)


# ---- the reference reader ----

def items_of(field):
    """The items of a key, as Python numbers and strings."""
    kind = field.types[-1]
    if kind == Kind.STRING:
        return [bytes(field.parts[index]).decode(errors="replace") for index in field.data]
    if len(field.types) == 1:
        return field.parts[field.data[0]].tolist()
    return [item for index in field.data for item in field.parts[index].tolist()]


class FileTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix="ipw-gguf-")
        cls.addClassCleanup(scratch.cleanup)
        cls.scratch = Path(scratch.name)

    def assert_equal_content(self, path):
        """Compares every key and tensor."""
        ours, theirs = show(path), gguf.GGUFReader(path)
        fields = {name: field for name, field in theirs.fields.items()
                  if not name.startswith("GGUF.")}
        self.assertEqual(ours["version"], theirs.fields["GGUF.version"].contents())
        self.assertEqual(ours["alignment"], theirs.alignment)
        self.assertEqual([value["key"] for value in ours["values"]], list(fields))
        for value in ours["values"]:
            field = fields[value["key"]]
            self.assertEqual(value["is_array"], field.types[0] == Kind.ARRAY, value["key"])
            if field.data:  # the package does not keep the type of an empty array
                self.assertEqual(value["type"], field.types[-1], value["key"])
            self.assert_same_items(value["items"], items_of(field) if field.data else [])
        self.assertEqual(len(ours["tensors"]), len(theirs.tensors))
        for ours_one, their_one in zip(ours["tensors"], theirs.tensors):
            self.assertEqual(ours_one, {
                "name": their_one.name, "type": their_one.tensor_type.name,
                "number": int(their_one.tensor_type), "dimensions": their_one.shape.tolist(),
                "elements": int(their_one.n_elements), "bytes": int(their_one.n_bytes),
                "offset": int(their_one.data_offset)})
        return ours, theirs

    def assert_same_items(self, ours, theirs):
        self.assertEqual(len(ours), len(theirs))
        for one, other in zip(ours, theirs):
            if isinstance(other, float) and not math.isfinite(other):
                other = None
            self.assertEqual(one, other)
            self.assertEqual(isinstance(one, bool), isinstance(other, bool))


# ---- files with every type ----

def bytes_for(shape, kind):
    """Data of a tensor; the values do not matter."""
    block, size = gguf.GGML_QUANT_SIZES[kind]
    rows = math.prod(shape[1:])
    assert shape[0] % block == 0, (shape, kind)
    row = shape[0] // block * size
    return numpy.zeros((*reversed(shape[1:]), row) if rows > 1 or len(shape) > 1 else (row,),
                       dtype=numpy.uint8)


def add_tensor(writer, name, shape, kind=Quant.F32):
    """shape: columns, rows, ... in the order of the file."""
    if kind in (Quant.F32, Quant.F16):
        dtype = numpy.float32 if kind == Quant.F32 else numpy.float16
        writer.add_tensor(name, numpy.zeros(tuple(reversed(shape)), dtype=dtype))
    else:
        writer.add_tensor(name, bytes_for(shape, kind), raw_dtype=kind)


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class Files(FileTest):
    def test_keys_of_every_type(self):
        path = self.scratch / "keys.gguf"
        writer = gguf.GGUFWriter(path, "llama")
        edges = {Kind.UINT8: (0, 2**8 - 1), Kind.INT8: (-2**7, 2**7 - 1),
                 Kind.UINT16: (0, 2**16 - 1), Kind.INT16: (-2**15, 2**15 - 1),
                 Kind.UINT32: (0, 2**32 - 1), Kind.INT32: (-2**31, 2**31 - 1),
                 Kind.UINT64: (0, 2**64 - 1), Kind.INT64: (-2**63, 2**63 - 1),
                 Kind.FLOAT32: (0.1, -1e-38, math.inf, math.nan),
                 Kind.FLOAT64: (0.1, 5e-324, -math.inf), Kind.BOOL: (True, False),
                 Kind.STRING: ("", "é漢\n\"\\", "x" * 70000)}
        for kind, values in edges.items():
            for number, value in enumerate(values):
                writer.add_key_value(f"one.{kind.name}.{number}", value, kind)
            writer.add_key_value(f"list.{kind.name}", list(values), Kind.ARRAY, sub_type=kind)
        finish(writer)
        ours, _ = self.assert_equal_content(path)
        self.assertEqual(len(ours["values"]), 1 + sum(map(len, edges.values())) + len(edges))

    def test_tensors_of_every_type(self):
        for alignment in (32, 256):
            path = self.scratch / f"tensors-{alignment}.gguf"
            writer = gguf.GGUFWriter(path, "llama")
            if alignment != 32:
                writer.add_custom_alignment(alignment)
            for kind in sorted(set(gguf.GGML_QUANT_SIZES) - IN_MEMORY_ONLY):
                if kind in (Quant.F32, Quant.F16):
                    add_tensor(writer, f"{kind.name}.half", (3, 5), kind)
                else:
                    add_tensor(writer, f"{kind.name}.one", (256,), kind)
                    add_tensor(writer, f"{kind.name}.three", (768, 3, 2), kind)
            finish(writer)
            ours, _ = self.assert_equal_content(path)
            self.assertLess(50, len(ours["tensors"]))

    def test_tensor_types_equal_reference(self):
        rows = re.findall(r'\{(\d+), "(\w+)", (\d+), (\d+)\}', (SOURCE / "src/graph/gguf.c").read_text())
        ours = {name: (int(number), int(block), int(size)) for number, name, block, size in rows}
        for kind, (block, size) in gguf.GGML_QUANT_SIZES.items():
            if kind not in IN_MEMORY_ONLY:
                self.assertEqual(ours[kind.name], (int(kind), block, size))

    def test_big_endian_is_refused(self):
        path = self.scratch / "big.gguf"
        writer = gguf.GGUFWriter(path, "llama", endianess=gguf.GGUFEndian.BIG)
        finish(writer)
        self.assertIn("big-endian", show(path)["error"])


# ---- an independent count of costs ----

RMS, LAYER_NORM, ROTATION, SOFTMAX, SILU, GELU = 4, 7, 3, 5, 4, 8
IN_LAYERS = ("norm", "attn_qkv", "attn_scores", "attn_out", "ffn_gate_up", "ffn_down")
PART_OF = {"attn_q": "attn_qkv", "attn_k": "attn_qkv", "attn_v": "attn_qkv", "attn_qkv": "attn_qkv",
           "attn_output": "attn_out", "ffn_gate": "ffn_gate_up", "ffn_up": "ffn_gate_up",
           "ffn_gate_inp": "ffn_gate_up", "ffn_gate_exps": "ffn_gate_up",
           "ffn_up_exps": "ffn_gate_up", "ffn_down": "ffn_down", "ffn_down_exps": "ffn_down"}


class ReferenceCount:
    """Cost of a pass, token by token and matrix by matrix, from the package's reading. It only supports the
    architectures of the tests below."""

    def __init__(self, reader):
        self.architecture = reader.fields["general.architecture"].contents()
        self.tensors = {tensor.name: tensor for tensor in reader.tensors}
        self.layers = self.key(reader, "block_count")
        self.width = self.key(reader, "embedding_length")
        self.heads = self.key(reader, "attention.head_count")
        self.heads_kv = self.key(reader, "attention.head_count_kv", self.heads)
        self.head = self.key(reader, "attention.key_length", self.width // self.heads)
        self.experts = self.key(reader, "expert_count", 0)
        self.used = self.key(reader, "expert_used_count", 0)
        self.window = self.key(reader, "attention.sliding_window", 0)
        self.activation = GELU if self.architecture.startswith("gemma") else SILU
        self.vocabulary = int(self.tensors["token_embd.weight"].shape[1])

    def key(self, reader, name, otherwise=None):
        field = reader.fields.get(f"{self.architecture}.{name}")
        return otherwise if field is None else field.contents()

    def part_of(self, name):
        """Layer and component of a tensor."""
        words = name.split(".")
        if words[0] != "blk":
            return -1, {"token_embd": "embedding", "output": "head", "output_norm": "norm"}.get(
                words[0], "attn_qkv")
        return int(words[1]), PART_OF.get(words[2], "norm")

    def tokens_of(self, name, tokens, after):
        """How many tokens a tensor of a layer is for: after the last attention some may be left out."""
        layer, part = name.split(".")[1:3]
        is_after = part.startswith(("ffn_", "post_"))
        return after if is_after and int(layer) == self.layers - 1 else tokens

    def weights(self, tokens, after, wanted):
        """Bytes of weights by layer and component."""
        found = {}
        for name, tensor in self.tensors.items():
            size = float(tensor.n_bytes)
            used_by = self.tokens_of(name, tokens, after) if name.startswith("blk.") else tokens
            if "_exps" in name:
                size *= 1 - (1 - self.used / self.experts) ** used_by
            elif name == "token_embd.weight":
                size *= min(1, tokens / self.vocabulary)
            elif used_by == 0:
                size = 0
            place = self.part_of(name)
            found[place] = found.get(place, 0) + size
        if "output.weight" not in self.tensors:
            found[-1, "head"] = float(self.tensors["token_embd.weight"].n_bytes)
        if not wanted:
            found[-1, "head"] = found[-1, "norm"] = 0
        return found

    def matrix_flops(self, layer, component, tokens, after):
        """FLOPs without attention scores."""
        flops = 0
        for name, tensor in self.tensors.items():
            if self.part_of(name) == (layer, component) and len(tensor.shape) > 1:
                share = self.used / self.experts if "_exps" in name else 1
                flops += 2 * int(tensor.n_elements) * share * self.tokens_of(name, tokens, after)
        return flops

    def attended(self, layer, tokens, before):
        """Number of tokens that each token of the pass attends to, and the size of their union."""
        period = {"gemma2": 2, "gemma3": 6}.get(self.architecture)
        windowed = period and (layer + 1) % period
        views = [range(max(0, at + 1 - self.window) if windowed else 0, at + 1)
                 for at in range(before, before + tokens)]
        return sum(map(len, views)), len(set().union(*views))

    def elementwise(self, layer, component, tokens, after):
        """Elementwise operations without the softmax of attention; biases are counted with their matrix."""
        behind = after if layer == self.layers - 1 else tokens  # tokens after attention
        operations = {
            "norm": self.norms(layer, tokens, after) * (
                LAYER_NORM if self.has_bias("attn_norm") else RMS),
            "attn_qkv": (self.heads + self.heads_kv) * self.head * ROTATION * tokens,
            "attn_out": self.width * behind, "attn_scores": 0}.get(component)
        if component == "ffn_gate_up":
            down = self.tensors.get(f"blk.{layer}.ffn_down.weight")
            experts = self.tensors.get(f"blk.{layer}.ffn_down_exps.weight")
            up = self.tensors.get(f"blk.{layer}.ffn_up.weight")
            inner = int(down.shape[0]) if down else int(experts.shape[0]) * self.used
            is_gated = (f"blk.{layer}.ffn_gate.weight" in self.tensors or experts is not None or
                        int(up.shape[1]) == 2 * inner)
            operations = behind * (inner * (self.activation + (1 if is_gated else 0)) +
                                   self.experts * SOFTMAX)
        elif component == "ffn_down":
            operations = behind * self.width * (1 + 2 * self.used)
        return operations + sum(
            int(tensor.n_elements) * self.tokens_of(name, tokens, after)
            for name, tensor in self.tensors.items()
            if name.endswith(".bias") and "norm" not in name
            and self.part_of(name) == (layer, component))

    def has_bias(self, name):
        return f"blk.0.{name}.bias" in self.tensors

    def norms(self, layer, tokens, after):
        numbers = 0
        for name in self.tensors:
            if self.part_of(name) == (layer, "norm") and name.endswith(".weight"):
                heads = {"attn_q_norm": self.heads, "attn_k_norm": self.heads_kv}.get(
                    name.split(".")[2])
                numbers += (heads * self.head if heads else self.width) * self.tokens_of(
                    name, tokens, after)
        return numbers


class Models(FileTest):
    PASSES = ((1, 0, 1, "last"), (1, 37, 1, "pruned"), (23, 0, 1, "last"), (23, 6, 2, "pruned"),
              (23, 11, 3, "all"), (5, 2, 2, "none"))

    def assert_counted(self, path):
        reader = gguf.GGUFReader(path)
        for a_pass in self.PASSES:
            decoder = show(path, *a_pass)["decoder"]
            self.assertNotIn("error", decoder)
            self.assert_sums(decoder, reader)
            self.assert_cost(decoder["cost"], ReferenceCount(reader), *a_pass)
        return decoder

    def assert_sums(self, decoder, reader):
        everything = [decoder["parts"], *(layer["parts"] for layer in decoder["layers"])]
        for figure, wanted in (("parameters", "n_elements"), ("bytes", "n_bytes")):
            total = sum(int(getattr(tensor, wanted)) for tensor in reader.tensors)
            self.assertEqual(decoder[figure], total)
            self.assertEqual(sum(part[figure] for parts in everything for part in parts.values()),
                             total)

    def assert_cost(self, cost, count, tokens, before, sequences, wanted):
        self.assertEqual(len(cost["layers"]), count.layers + 1)
        all_tokens = tokens * sequences
        logits = {"all": all_tokens, "none": 0}.get(wanted, sequences)
        after = logits if wanted in ("pruned", "none") else all_tokens
        weights = count.weights(all_tokens, after, logits)
        for layer in range(-1, count.layers):
            for name, figures in cost["layers"][layer + 1].items():
                self.assertAlmostEqual(figures["weight_bytes"], weights.get((layer, name), 0),
                                       delta=1e-6 * figures["weight_bytes"], msg=(layer, name))
                if layer >= 0 and name in IN_LAYERS:
                    self.assert_layer(figures, count, layer, name, tokens, before, sequences, after)
        outside = cost["layers"][0]
        self.assertEqual(outside["head"]["matrix_flops"],
                         2 * count.width * count.vocabulary * logits)
        self.assertEqual(outside["norm"]["elementwise_flops"], count.width * logits * (
            LAYER_NORM if count.has_bias("attn_norm") else RMS))
        self.assertEqual(outside["embedding"]["activation_write_bytes"],
                         4 * count.width * all_tokens)
        for figure, total in cost["total"].items():
            parts = math.fsum(part[figure] for layer in cost["layers"] for part in layer.values())
            self.assertAlmostEqual(total, parts, delta=1e-9 * parts)

    def assert_layer(self, figures, count, layer, name, tokens, before, sequences, after):
        pairs, keys = count.attended(layer, tokens, before)
        matrix = count.matrix_flops(layer, name, tokens * sequences, after)
        other = count.elementwise(layer, name, tokens * sequences, after)
        both = 2 * count.head  # sizes of a key and a value
        read = written = 0
        if name == "attn_scores":
            matrix = 2 * count.heads * both * pairs * sequences
            other = SOFTMAX * count.heads * pairs * sequences
            read = 2 * count.heads_kv * both * keys * sequences
        elif name == "attn_qkv":
            written = 2 * count.heads_kv * both * tokens * sequences
        self.assertAlmostEqual(figures["matrix_flops"], matrix, delta=1e-9 * matrix)
        self.assertAlmostEqual(figures["elementwise_flops"], other, delta=1e-9 * other)
        self.assertEqual(figures["cache_read_bytes"], read)
        self.assertEqual(figures["cache_write_bytes"], written)

    def write_model(self, name, architecture, layers, keys, outside, inside):
        """A model of zeros: tensors as name -> (shape, type); `inside` is per layer."""
        path = self.scratch / f"{name}.gguf"
        writer = gguf.GGUFWriter(path, architecture)
        writer.add_uint32(f"{architecture}.block_count", layers)
        for key, value in keys.items():
            writer.add_uint32(f"{architecture}.{key}", value)
        for tensor, (shape, kind) in outside.items():
            add_tensor(writer, tensor, shape, kind)
        for layer in range(layers):
            for tensor, (shape, kind) in inside.items():
                add_tensor(writer, f"blk.{layer}.{tensor}", shape, kind)
        finish(writer)
        return path

    def test_random_model_of_thirty_layers(self):
        path = self.scratch / "random.gguf"
        parameters = make_gguf.make(path, layers=30, hidden=64, heads=4)
        self.assert_equal_content(path)
        decoder = self.assert_counted(path)
        self.assertEqual(decoder["parameters"], parameters)
        self.assertFalse(decoder["has_tied_head"])
        self.assertEqual((decoder["layers"][29]["heads"], decoder["layers"][29]["heads_kv"]), (4, 2))

    def test_published_counts(self):
        """Published parameter counts, from published shapes."""
        for name, total, layers, width, heads, heads_kv, inner, vocabulary, tied in (
                ("smollm2-135m", 134_515_008, 30, 576, 9, 3, 1536, 49152, True),
                ("llama-3.2-1b", 1_235_814_400, 16, 2048, 32, 8, 8192, 128256, True)):
            path, head = self.scratch / f"{name}.gguf", width // heads
            self.header_only(path, layers, {
                "embedding_length": width, "attention.head_count": heads,
                "attention.head_count_kv": heads_kv}, {
                "token_embd.weight": (width, vocabulary), "output_norm.weight": (width,)}, {
                "attn_norm.weight": (width,), "attn_q.weight": (width, width),
                "attn_k.weight": (width, heads_kv * head), "attn_v.weight": (width, heads_kv * head),
                "attn_output.weight": (width, width), "ffn_norm.weight": (width,),
                "ffn_gate.weight": (width, inner), "ffn_up.weight": (width, inner),
                "ffn_down.weight": (inner, width)})
            decoder = show(path, 1, 0, 1, "last")["decoder"]
            self.assertEqual(decoder["parameters"], total)
            self.assertEqual(decoder["has_tied_head"], tied)
            # 2 per matrix parameter, plus the scores of one pair
            norms = (2 * layers + 1) * width
            self.assertEqual(decoder["cost"]["total"]["matrix_flops"],
                             2 * (total - norms) + 4 * layers * width)

    def header_only(self, path, layers, keys, outside, inside):
        """A sparse file: its tensors take no space on disk."""
        fields = [("general.architecture", make_gguf.STRING, "llama"),
                  ("llama.block_count", make_gguf.U32, layers)]
        fields += [(f"llama.{key}", make_gguf.U32, value) for key, value in keys.items()]
        shapes = dict(outside)
        for layer in range(layers):
            shapes |= {f"blk.{layer}.{name}": shape for name, shape in inside.items()}
        head = [b"GGUF", struct.pack("<IQQ", 3, len(shapes), len(fields))]
        head += [make_gguf.field(*each) for each in fields]
        offset = 0
        for name, shape in shapes.items():
            head.append(make_gguf.text(name) + struct.pack(
                f"<I{len(shape)}QIQ", len(shape), *shape, make_gguf.TENSOR_F32, offset))
            offset += 4 * math.prod(shape)
            offset += -offset % make_gguf.ALIGNMENT
        head = b"".join(head)
        with open(path, "wb") as out:
            out.write(head + make_gguf.padding(len(head)))
            out.truncate(out.tell() + offset)

    def test_quantized_and_tied(self):
        path = self.write_model("quantized", "llama", 3, {
            "embedding_length": 256, "attention.head_count": 8, "attention.head_count_kv": 2,
            "feed_forward_length": 512, "context_length": 128}, {
            "token_embd.weight": ((256, 40), Quant.Q6_K), "output_norm.weight": ((256,), Quant.F32),
            "rope_freqs.weight": ((16,), Quant.F32)}, {
            "attn_norm.weight": ((256,), Quant.F32), "attn_q.weight": ((256, 256), Quant.Q4_K),
            "attn_k.weight": ((256, 64), Quant.Q4_K), "attn_v.weight": ((256, 64), Quant.Q6_K),
            "attn_output.weight": ((256, 256), Quant.IQ4_XS), "ffn_norm.weight": ((256,), Quant.F32),
            "ffn_gate.weight": ((256, 512), Quant.Q5_1), "ffn_up.weight": ((256, 512), Quant.Q5_1),
            "ffn_down.weight": ((512, 256), Quant.BF16)})
        self.assert_equal_content(path)
        decoder = self.assert_counted(path)
        self.assertTrue(decoder["has_tied_head"])

    def test_experts(self):
        path = self.write_model("experts", "qwen3moe", 2, {
            "embedding_length": 64, "attention.head_count": 4, "attention.head_count_kv": 2,
            "attention.key_length": 32, "attention.value_length": 32,
            "expert_count": 8, "expert_used_count": 3}, {
            "token_embd.weight": ((64, 40), Quant.F16), "output.weight": ((64, 40), Quant.Q8_0),
            "output_norm.weight": ((64,), Quant.F32)}, {
            "attn_norm.weight": ((64,), Quant.F32), "attn_q.weight": ((64, 128), Quant.Q8_0),
            "attn_k.weight": ((64, 64), Quant.Q8_0), "attn_v.weight": ((64, 64), Quant.Q8_0),
            "attn_q_norm.weight": ((32,), Quant.F32), "attn_k_norm.weight": ((32,), Quant.F32),
            "attn_output.weight": ((128, 64), Quant.Q8_0), "ffn_norm.weight": ((64,), Quant.F32),
            "ffn_gate_inp.weight": ((64, 8), Quant.F32),
            "ffn_gate_exps.weight": ((64, 96, 8), Quant.Q4_0),
            "ffn_up_exps.weight": ((64, 96, 8), Quant.Q4_0),
            "ffn_down_exps.weight": ((96, 64, 8), Quant.Q5_0)})
        decoder = self.assert_counted(path)
        self.assertEqual((decoder["experts"], decoder["experts_used"]), (8, 3))
        self.assertEqual(decoder["layers"][0]["expert_feed_forward"], 96)

    def test_biases(self):
        path = self.write_model("biases", "qwen2", 2, {
            "embedding_length": 64, "attention.head_count": 4, "attention.head_count_kv": 2}, {
            "token_embd.weight": ((64, 40), Quant.F16), "output_norm.weight": ((64,), Quant.F32)}, {
            "attn_norm.weight": ((64,), Quant.F32), "attn_q.weight": ((64, 64), Quant.F16),
            "attn_k.weight": ((64, 32), Quant.F16), "attn_v.weight": ((64, 32), Quant.F16),
            "attn_q.bias": ((64,), Quant.F32), "attn_k.bias": ((32,), Quant.F32),
            "attn_v.bias": ((32,), Quant.F32), "attn_output.weight": ((64, 64), Quant.F16),
            "ffn_norm.weight": ((64,), Quant.F32), "ffn_gate.weight": ((64, 96), Quant.F16),
            "ffn_up.weight": ((64, 96), Quant.F16), "ffn_down.weight": ((96, 64), Quant.F16)})
        self.assert_counted(path)

    def test_fused_qkv_and_gate_up_matrices(self):
        path = self.write_model("fused", "phi3", 2, {
            "embedding_length": 64, "attention.head_count": 4, "attention.head_count_kv": 4}, {
            "token_embd.weight": ((64, 40), Quant.F16), "output.weight": ((64, 40), Quant.F16),
            "output_norm.weight": ((64,), Quant.F32)}, {
            "attn_norm.weight": ((64,), Quant.F32), "attn_qkv.weight": ((64, 192), Quant.F16),
            "attn_output.weight": ((64, 64), Quant.F16), "ffn_norm.weight": ((64,), Quant.F32),
            "ffn_up.weight": ((64, 192), Quant.F16), "ffn_down.weight": ((96, 64), Quant.F16)})
        self.assert_counted(path)

    def test_layer_norms_without_gate(self):
        path = self.write_model("phi2", "phi2", 2, {
            "embedding_length": 64, "attention.head_count": 4}, {
            "token_embd.weight": ((64, 40), Quant.F16), "output.weight": ((64, 40), Quant.F16),
            "output_norm.weight": ((64,), Quant.F32), "output_norm.bias": ((64,), Quant.F32)}, {
            "attn_norm.weight": ((64,), Quant.F32), "attn_norm.bias": ((64,), Quant.F32),
            "attn_qkv.weight": ((64, 192), Quant.F16), "attn_qkv.bias": ((192,), Quant.F32),
            "attn_output.weight": ((64, 64), Quant.F16), "attn_output.bias": ((64,), Quant.F32),
            "ffn_up.weight": ((64, 96), Quant.F16), "ffn_up.bias": ((96,), Quant.F32),
            "ffn_down.weight": ((96, 64), Quant.F16), "ffn_down.bias": ((64,), Quant.F32)})
        reader = gguf.GGUFReader(path)
        for a_pass in self.PASSES:
            decoder = show(path, *a_pass)["decoder"]
            count = ReferenceCount(reader)
            count.activation = GELU
            self.assert_cost(decoder["cost"], count, *a_pass)

    def test_sliding_windows(self):
        for architecture in ("gemma2", "gemma3"):
            path = self.write_model(architecture, architecture, 7, {
                "embedding_length": 64, "attention.head_count": 4, "attention.head_count_kv": 1,
                "attention.key_length": 32, "attention.value_length": 32,
                "attention.sliding_window": 6}, {
                "token_embd.weight": ((64, 40), Quant.F16), "output_norm.weight": ((64,), Quant.F32)
                }, {
                "attn_norm.weight": ((64,), Quant.F32), "attn_q.weight": ((64, 128), Quant.F16),
                "attn_k.weight": ((64, 32), Quant.F16), "attn_v.weight": ((64, 32), Quant.F16),
                "attn_output.weight": ((128, 64), Quant.F16),
                "post_attention_norm.weight": ((64,), Quant.F32),
                "ffn_norm.weight": ((64,), Quant.F32), "post_ffw_norm.weight": ((64,), Quant.F32),
                "ffn_gate.weight": ((64, 96), Quant.F16), "ffn_up.weight": ((64, 96), Quant.F16),
                "ffn_down.weight": ((96, 64), Quant.F16)})
            decoder = self.assert_counted(path)
            windows = [layer["window"] for layer in decoder["layers"]]
            self.assertEqual(windows, [6, 0, 6, 0, 6, 0, 6] if architecture == "gemma2"
                             else [6, 6, 6, 6, 6, 0, 6])

    def test_unknown_architecture_is_named(self):
        path = self.write_model("other", "mamba", 1, {"embedding_length": 64}, {
            "token_embd.weight": ((64, 40), Quant.F16)}, {})
        self.assertIn("'mamba'", show(path)["decoder"]["error"])

    @unittest.skipUnless(os.environ.get("IPW_GGUF"), "no model given in IPW_GGUF")
    def test_model_of_ipw_gguf(self):
        path = os.environ["IPW_GGUF"]
        self.assert_equal_content(path)
        decoder = self.assert_counted(path)
        if "smollm2-135m" in path.lower():
            self.assertEqual(decoder["parameters"], 134_515_008)


if __name__ == "__main__":
    unittest.main()
