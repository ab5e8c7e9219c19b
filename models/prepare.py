#!/usr/bin/env python3
"""Makes what train.py learns from: items of ipw's own generator, and a tokenizer of their words.

    prepare.py --items build/tests/tools/dump_items --data models/prepared

The generator's `train` and `test` share no problem, so nothing that is asked later is seen here.
Written are tokenizer.json and, in train.npz and test.npz, items as tokens: problem and answer apart,
because the chat template goes around them.  The same arguments give the same files.
"""
import argparse
import json
import random
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

VOCABULARY = 480
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|pad|>"]
TASKS = ["arithmetic", "comparison", "sequences", "sorting", "reading"]
LEVELS = [1, 2, 3, 4, 5]
# A few words that a system message may have: the models need not know them, but must not be upset.
SYSTEM_LINES = [
    "You are a helpful assistant.",
    "Answer with the result only.",
    "Answer briefly.",
    "You solve short tasks. Give the answer and nothing else.",
    "Be brief and correct.",
]


def draw(dump_items, split, task, level, count, seed):
    """Items of one task and level; the generator remembers what it gave, and so do we."""
    done = subprocess.run(
        [dump_items, "builtin", f"split={split}", f"seed={seed}", f"count={count}",
         f"tasks={task}", f"level={level}"], capture_output=True, text=True, check=True)
    items = {}
    for line in done.stdout.splitlines():
        item = json.loads(line)
        if "problem" in item:
            items.setdefault(item["problem"], item["answer"])
    return items


def draw_cell(dump_items, task, level, most):
    """Different problems of the training split, until there are `most` or no more come."""
    items, seed = {}, 1
    while len(items) < most:
        before = len(items)
        items.update(draw(dump_items, "train", task, level, min(20000, most), seed))
        seed += 1
        if len(items) - before < 40:
            break
    return dict(list(items.items())[:most])


def train_tokenizer(cells):
    """Byte-level BPE; digits stand alone.  llama.cpp splits alike under the name `smollm`."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True),
         pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, special_tokens=SPECIAL, show_progress=False,
                                  initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    texts = ["user\n", "assistant\n", "system\n"] * 3000 + SYSTEM_LINES * 300
    for items in cells.values():
        for problem, answer in list(items.items())[:3000]:
            texts += [problem, answer]
    tokenizer.train_from_iterator(texts, trainer)
    assert tokenizer.get_vocab_size() == VOCABULARY, "too few words for the models' vocabulary"
    return tokenizer


def encode(tokenizer, texts):
    return [encoding.ids for encoding in tokenizer.encode_batch(texts, add_special_tokens=False)]


def flat(rows, key):
    return {key: np.concatenate([np.asarray(row, np.uint16) for row in rows]),
            key + "_length": np.asarray([len(row) for row in rows], np.uint8)}


def write_train(tokenizer, cells, path):
    rng = random.Random(1)
    problems, answers, cell_of, system_of = [], [], [], []
    for index, items in enumerate(cells.values()):
        keys = sorted(items)
        problems += encode(tokenizer, keys)
        answers += encode(tokenizer, [items[key] for key in keys])
        cell_of += [index] * len(keys)
        system_of += [rng.randrange(1, len(SYSTEM_LINES) + 1) if rng.random() < 0.05 else 0
                      for _ in keys]
    np.savez_compressed(path, **flat(problems, "problem"), **flat(answers, "answer"),
                        cell=np.asarray(cell_of, np.uint8), system=np.asarray(system_of, np.uint8))
    return len(problems), sum(map(len, problems)) + sum(map(len, answers))


def write_test(tokenizer, dump_items, count, path):
    """The first items of seed 0, as `ipw profile --dataset builtin` asks them."""
    done = subprocess.run([dump_items, "builtin", "split=test", "seed=0", f"count={count}"],
                          capture_output=True, text=True, check=True)
    items = [json.loads(line) for line in done.stdout.splitlines()]
    items = [item for item in items if "problem" in item]
    names = [f"{task} {level}" for task in TASKS for level in LEVELS]
    cell = [names.index(f"{item['subject']} {json.loads(item['metadata'])['level']}")
            for item in items]
    np.savez_compressed(path, **flat(encode(tokenizer, [i["problem"] for i in items]), "problem"),
                        **flat(encode(tokenizer, [i["answer"] for i in items]), "answer"),
                        cell=np.asarray(cell, np.uint8))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--items", required=True, help="the program dump_items of the tests")
    parser.add_argument("--data", type=Path, required=True, help="folder to write to")
    parser.add_argument("--most", type=int, default=100000, help="items of one task and level")
    parser.add_argument("--test", type=int, default=2500, help="items to test with")
    options = parser.parse_args()
    options.data.mkdir(parents=True, exist_ok=True)

    keys = [(task, level) for task in TASKS for level in LEVELS]
    with ThreadPoolExecutor(2) as pool:
        drawn = pool.map(lambda key: draw_cell(options.items, *key, options.most), keys)
    cells = dict(zip(keys, drawn))
    tokenizer = train_tokenizer(cells)
    tokenizer.save(str(options.data / "tokenizer.json"))
    rows, tokens = write_train(tokenizer, cells, options.data / "train.npz")
    write_test(tokenizer, options.items, options.test, options.data / "test.npz")
    for (task, level), items in cells.items():
        print(f"{task} {level}: {len(items)} items")
    print(f"{rows} items, {tokens} tokens, {tokenizer.get_vocab_size()} words")


if __name__ == "__main__":
    main()
