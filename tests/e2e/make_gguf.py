#!/usr/bin/env python3
"""Writes a small Llama-architecture model with random weights:  make_gguf.py OUT.gguf [--seed N]

A server loads it and streams from it like from a real model, without a download. Its output is random: suitable for
counting and timing tokens, not for grading; --says makes it repeat one token instead.  The same options give the same
file, byte for byte."""

import argparse
import array
import itertools
import random
import string
import struct

ALIGNMENT = 32
QUICK_BLOCK = 65521  # a prime, so that rows of a matrix differ
# Numbers of value, tensor and token types in the GGUF format.
U32, I32, F32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9
TENSOR_F32 = 0
NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6

SPACE = "\u2581"  # SentencePiece's symbol

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")


def vocabulary():
    """(piece, score, kind) of each token, in the manner of SentencePiece: any text can be written,
    by bytes if need be, and common letters join to pairs, so that tokens are fewer than bytes."""
    special = [("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL),
               ("<|im_start|>", CONTROL), ("<|im_end|>", CONTROL)]
    yield from ((piece, 0.0, kind) for piece, kind in special)
    yield from ((f"<0x{byte:02X}>", 0.0, BYTE) for byte in range(256))
    letters = string.ascii_lowercase
    singles = [SPACE] + [chr(code) for code in range(0x21, 0x7f)]
    pairs = [a + b for a, b in itertools.product(SPACE + letters, letters)]
    # Higher scores merge first; any order will do.
    yield from ((piece, -float(rank), NORMAL) for rank, piece in enumerate(pairs + singles))


# ---- the format ----

def text(value):
    encoded = value.encode()
    return struct.pack("<Q", len(encoded)) + encoded


def value(kind, content):
    if kind == STRING:
        return text(content)
    return struct.pack({U32: "<I", I32: "<i", F32: "<f", BOOL: "<?"}[kind], content)


def field(key, kind, content):
    if isinstance(content, list):
        items = b"".join(value(kind, item) for item in content)
        return text(key) + struct.pack("<IIQ", ARRAY, kind, len(content)) + items
    return text(key) + struct.pack("<I", kind) + value(kind, content)


def padding(length):
    return bytes(-length % ALIGNMENT)


def write(path, fields, tensors):
    """tensors: name, (columns, rows) or (columns,), and a function that returns the numbers."""
    with open(path, "wb") as out:
        head = [b"GGUF", struct.pack("<IQQ", 3, len(tensors), len(fields))]
        head += [field(*each) for each in fields]
        offset = 0
        for name, shape, _ in tensors:
            head.append(text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape,
                                                 TENSOR_F32, offset))
            size = 4 * count(shape)
            offset += size + len(padding(size))
        head = b"".join(head)
        out.write(head + padding(len(head)))
        for _, _, numbers in tensors:
            data = numbers().tobytes()  # both supported architectures are little-endian, like the format
            out.write(data + padding(len(data)))


def count(shape):
    return shape[0] * (shape[1] if len(shape) > 1 else 1)


# ---- the model ----

class Model:
    def __init__(self, name, seed, layers, hidden, heads, context, quick, says, template, fills):
        self.name, self.layers, self.hidden = name, layers, hidden
        self.heads, self.context, self.quick = heads, context, quick
        self.random = random.Random(seed)
        self.tokens = list(vocabulary())
        self.template, self.says, self.fills = template, says.replace(" ", SPACE), fills
        if says:
            self.tokens.append((self.says, -1e6, NORMAL))

    def fields(self):
        named = {piece: number for number, (piece, _, _) in enumerate(self.tokens)}
        return [
            ("general.architecture", STRING, "llama"),
            ("general.name", STRING, self.name),
            ("general.alignment", U32, ALIGNMENT),
            ("general.file_type", U32, 0),
            ("llama.vocab_size", U32, len(self.tokens)),
            ("llama.context_length", U32, self.context),
            ("llama.embedding_length", U32, self.hidden),
            ("llama.block_count", U32, self.layers),
            ("llama.feed_forward_length", U32, 3 * self.hidden),
            ("llama.attention.head_count", U32, self.heads),
            ("llama.attention.head_count_kv", U32, self.heads // 2),
            ("llama.attention.layer_norm_rms_epsilon", F32, 1e-5),
            ("llama.rope.dimension_count", U32, self.hidden // self.heads),
            ("llama.rope.freq_base", F32, 10000.0),
            ("tokenizer.ggml.model", STRING, "llama"),
            ("tokenizer.ggml.pre", STRING, "default"),
            ("tokenizer.ggml.tokens", STRING, [piece for piece, _, _ in self.tokens]),
            ("tokenizer.ggml.scores", F32, [score for _, score, _ in self.tokens]),
            ("tokenizer.ggml.token_type", I32, [kind for _, _, kind in self.tokens]),
            ("tokenizer.ggml.unknown_token_id", U32, named["<unk>"]),
            ("tokenizer.ggml.bos_token_id", U32, named["<s>"]),
            ("tokenizer.ggml.eos_token_id", U32, named["</s>"]),
            ("tokenizer.ggml.eot_token_id", U32, named["<|im_end|>"]),
            ("tokenizer.ggml.add_bos_token", BOOL, True),
            ("tokenizer.ggml.add_eos_token", BOOL, False),
            ("tokenizer.ggml.add_space_prefix", BOOL, False),
            ("tokenizer.chat_template", STRING, self.template),
        ] + [(f"tokenizer.ggml.fim_{part}_token_id", U32, named[piece]) for part, piece in
             (("pre", "<|im_start|>"), ("suf", "<unk>"), ("mid", "<|im_end|>")) if self.fills]

    def tensors(self):
        hidden, forward = self.hidden, 3 * self.hidden
        half = hidden // 2  # two query heads share one KV head
        yield "token_embd.weight", (hidden, len(self.tokens)), self.embedding
        for layer in range(self.layers):
            for name, columns, rows in (("attn_q", hidden, hidden), ("attn_k", hidden, half),
                                        ("attn_v", hidden, half), ("ffn_gate", hidden, forward),
                                        ("ffn_up", hidden, forward)):
                yield self.matrix(f"blk.{layer}.{name}", columns, rows)
            yield self.matrix(f"blk.{layer}.attn_output", hidden, hidden, first_row=0.0)
            yield self.matrix(f"blk.{layer}.ffn_down", forward, hidden, first_row=0.0)
            yield self.ones(f"blk.{layer}.attn_norm")
            yield self.ones(f"blk.{layer}.ffn_norm")
        yield self.ones("output_norm")
        yield "output.weight", (hidden, len(self.tokens)), self.output

    def matrix(self, name, columns, rows, first_row=None):
        def numbers():
            data = self.noise(columns * rows, columns ** -0.5)
            if first_row is not None:
                data[:columns] = array.array("f", [first_row]) * columns
            return data
        return f"{name}.weight", (columns, rows), numbers

    def ones(self, name):
        hidden = self.hidden
        return f"{name}.weight", (hidden,), lambda: array.array("f", [1.0]) * hidden

    def noise(self, length, scale):
        """Uniform numbers with this standard deviation.  If `quick`, a block of numbers is repeated."""
        draw, width = self.random.random, scale * 12 ** 0.5
        drawn = min(length, QUICK_BLOCK) if self.quick else length
        numbers = array.array("f", [(draw() - 0.5) * width for _ in range(drawn)])
        return numbers if drawn == length else (numbers * (length // drawn + 1))[:length]

    # The first feature is constant and not modified by any layer.  It serves as an output bias: the model never picks a
    # byte token, which would be half a character, nor a control token, which would end the answer, nor the start of a
    # control token's text, which servers hold back.  So every token is streamed immediately.
    def embedding(self):
        data = self.noise(self.hidden * len(self.tokens), 1.0)
        for token in range(len(self.tokens)):
            data[token * self.hidden] = 4.0
        return data

    def output(self):
        data = self.noise(self.hidden * len(self.tokens), 2 * self.hidden ** -0.5)
        for token, (piece, _, kind) in enumerate(self.tokens):
            speakable = kind == NORMAL and piece != "<"
            data[token * self.hidden] = (100.0 if self.says and piece == self.says else
                                         0.0 if speakable else -100.0)
        return data


def make(path, *, name="ipw-random", seed=1, layers=8, hidden=128, heads=4, context=2048, quick=0,
         says="", template=CHAT_TEMPLATE, fills=False):
    """Writes the model; returns its number of parameters.  quick: large models in seconds.  fills: it has tokens for
    fill-in-the-middle."""
    if heads % 2 or hidden % (2 * heads):
        raise ValueError("hidden must be a multiple of twice the heads, and the heads even")
    model = Model(name, seed, layers, hidden, heads, context, quick, says, template, fills)
    tensors = list(model.tensors())
    write(path, model.fields(), tensors)
    return sum(count(shape) for _, shape, _ in tensors)


def main():
    parse = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parse.add_argument("path", metavar="OUT.gguf")
    for name, default in make.__kwdefaults__.items():
        parse.add_argument(f"--{name}", type=type(default), default=default,
                           help=f"{default} unless told".replace("%", "%%"))
    try:
        parameters = make(**vars(parse.parse_args()))
    except ValueError as problem:
        parse.error(str(problem))
    print(f"{parameters / 1e6:.1f} M parameters")


if __name__ == "__main__":
    main()
