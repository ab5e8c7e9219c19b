#!/usr/bin/env python3
"""Records the perplexity of the shipped models, as a NumPy implementation of tokenizer, forward pass and windows has it,
with weights read by the package gguf:

    research/record-perplexity.py

It writes tests/fixtures/perplexity.json, with which tests/cli/test_perplexity_models.py compares `ipw profile --task
perplexity`.  Needs gguf, numpy (tests/requirements.txt) and regex."""

import json
import math
from pathlib import Path

import gguf
import numpy
import regex

SOURCE = Path(__file__).resolve().parent.parent
OUTPUT = SOURCE / "tests/fixtures/perplexity.json"
# Models, lengths of windows and the token that begins each, if any.
CASES = (("ipw-1m-f16", 128, None), ("ipw-1m-f16", 256, None), ("ipw-1m-f16", 512, None), ("ipw-6m-f16", 256, None),
         ("ipw-1m-f16", 128, 1))
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


def main():
    items = json.loads((SOURCE / "models/golden.json").read_text())["items"]
    text = "\n".join(item["problem"] for item in items[:120]) + "\nEnglish text: naïve, 3.5 €, 日本.\n"
    rows = []
    for name, window, begin in CASES:
        found = list(Llama(SOURCE / f"models/{name}.gguf").windows(text, window, begin))
        rows.append({"model": name, "window": window, "begin": begin,
                     "windows": [[round(float(nats), 6), tokens, size] for nats, tokens, size in found]})
    lines = ",\n  ".join(json.dumps(row) for row in rows)
    OUTPUT.write_text(f'{{"numpy": "{numpy.__version__}", "gguf_weights": "float64", "text": {json.dumps(text, ensure_ascii=False)},\n'
                      f' "cases": [\n  {lines}\n ]}}\n', encoding="utf-8")


main()
