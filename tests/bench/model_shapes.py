#!/usr/bin/env python3
"""Writes decoders with the shapes of public models and random weights, a few layers each, for timing:
    model_shapes.py FOLDER [NAME...]
Their output is meaningless; the cost of a pass only depends on shapes and precisions.  Needs the packages gguf and
numpy."""

import sys
from pathlib import Path

import gguf
import numpy

# hidden, feed-forward, heads, KV heads, head size, layers, vocabulary, precision
SHAPES = {
    "tinyllama-q4_0": (2048, 5632, 32, 4, 64, 4, 32000, "Q4_0"),
    "smollm2-360m-q8_0": (960, 2560, 15, 5, 64, 8, 49152, "Q8_0"),
    "llama-3.2-1b-q4_k": (2048, 8192, 32, 8, 64, 3, 32000, "Q4_K"),
    "qwen2.5-0.5b-f16": (896, 4864, 14, 2, 64, 4, 32000, "F16"),
    "pythia-70m-f32": (512, 2048, 8, 8, 64, 6, 16000, "F32"),
}
# llama.cpp's mix "Q4_K - Medium": half of these tensors have more bits.
MIXED = {"Q4_K": {"attn_v": "Q6_K", "ffn_down": "Q6_K", "output": "Q6_K"}}
ROWS = 64  # random ones; the others repeat them


def quantized(kind, rows, columns):
    """Bytes of a quantized matrix, in the shape that gguf expects."""
    draws = numpy.random.default_rng(1)
    some = min(ROWS, rows)
    numbers = draws.normal(0, 0.02, (some, columns)).astype(numpy.float32)
    if kind in (gguf.GGMLQuantizationType.Q4_K, gguf.GGMLQuantizationType.Q6_K):
        block, size = gguf.GGML_QUANT_SIZES[kind]
        data = draws.integers(0, 256, (some, columns // block, size), dtype=numpy.uint8)
        scale = numpy.array([0.001], numpy.float16).view(numpy.uint8)
        for at in ((0, 2) if kind == gguf.GGMLQuantizationType.Q4_K else (size - 2,)):
            data[:, :, at:at + 2] = scale
        data = data.reshape(some, -1)
    elif kind == gguf.GGMLQuantizationType.F32:
        data = numbers
    else:
        data = gguf.quants.quantize(numbers, kind)
    return numpy.concatenate([data] * (rows // some + 1))[:rows]


def write(path, name):
    hidden, forward, heads, heads_kv, size, layers, vocabulary, word = SHAPES[name]
    out = gguf.GGUFWriter(path, "llama")
    out.add_name(name)
    out.add_context_length(2048)
    out.add_embedding_length(hidden)
    out.add_block_count(layers)
    out.add_feed_forward_length(forward)
    out.add_head_count(heads)
    out.add_head_count_kv(heads_kv)
    out.add_key_length(size)
    out.add_value_length(size)
    out.add_rope_dimension_count(size)
    out.add_layer_norm_rms_eps(1e-5)
    out.add_vocab_size(vocabulary)
    out.add_tokenizer_model("llama")
    out.add_token_list([f"t{i}" for i in range(vocabulary)])
    out.add_token_scores([-float(i) for i in range(vocabulary)])
    out.add_token_types([1] * vocabulary)

    def matrix(tensor, rows, columns):
        mixed = MIXED.get(word, {}).get(tensor.split(".")[-2], word)
        kind = gguf.GGMLQuantizationType[mixed]
        out.add_tensor(tensor, quantized(kind, rows, columns), raw_dtype=kind)

    def vector(tensor):
        out.add_tensor(tensor, numpy.ones(hidden, numpy.float32))

    matrix("token_embd.weight", vocabulary, hidden)
    for layer in range(layers):
        at = f"blk.{layer}."
        vector(at + "attn_norm.weight")
        vector(at + "ffn_norm.weight")
        matrix(at + "attn_q.weight", heads * size, hidden)
        matrix(at + "attn_k.weight", heads_kv * size, hidden)
        matrix(at + "attn_v.weight", heads_kv * size, hidden)
        matrix(at + "attn_output.weight", hidden, heads * size)
        matrix(at + "ffn_gate.weight", forward, hidden)
        matrix(at + "ffn_up.weight", forward, hidden)
        matrix(at + "ffn_down.weight", hidden, forward)
    vector("output_norm.weight")
    matrix("output.weight", vocabulary, hidden)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or SHAPES:
        write(folder / f"{name}.gguf", name)
        print(folder / f"{name}.gguf")


if __name__ == "__main__":
    main()
