#!/usr/bin/env python3
"""Trains tools-2m, which answers arithmetic by calling a calculator; see README.md for the results.

    train_tools.py --out FOLDER --seconds 200

Needs PyTorch, NumPy and tokenizers; a GPU for anything but a trial.  Written are the tokenizer, the weights (f16) and
what the model makes of questions whose numbers it never saw, with a calculator that really computes.
"""
import argparse
import json
import re
import sys
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from conversations import BEGIN, END, Maker
from network import Llama, greedy
from prepare import SPECIAL
from shapes import TOOLS_NAME, TOOLS_SHAPE
from train import save_weights, schedule

LENGTHS = [96, 160, 320, 512, 800]
RATE = 2e-3
TOKENS = 131072  # in a step


def make_tokenizer(texts):
    """As prepare.py makes it, of these words."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=TOOLS_SHAPE.vocabulary, special_tokens=SPECIAL, show_progress=False,
                                  initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.train_from_iterator(texts, trainer)
    assert tokenizer.get_vocab_size() == TOOLS_SHAPE.vocabulary
    return tokenizer


def rows_of(tokenizer, conversations):
    """By length: tokens, and which of them are learned."""
    flat = [text for parts in conversations for text, _ in parts]
    ids = iter(tokenizer.encode_batch(flat, add_special_tokens=False))
    buckets, dropped = {length: ([], []) for length in LENGTHS}, 0
    for parts in conversations:
        tokens, learned = [], []
        for _, is_learned in parts:
            some = next(ids).ids
            tokens += some
            learned += [is_learned] * len(some)
        length = next((length for length in LENGTHS if length >= len(tokens)), None)
        if length is None:
            dropped += 1
            continue
        pad = length - len(tokens)
        buckets[length][0].append(tokens + [tokenizer.token_to_id(END)] * pad)
        buckets[length][1].append(learned + [False] * pad)
    print({length: len(rows) for length, (rows, _) in buckets.items()}, "too long:", dropped, flush=True)
    return {length: (np.asarray(rows, np.int16), np.asarray(learned, bool))
            for length, (rows, learned) in buckets.items() if rows}


class Calculator:
    """What the tests compute with."""

    @staticmethod
    def answer(expression):
        if not re.fullmatch(r"[-+*() 0-9]{1,80}", expression):
            return "error"
        try:
            return str(eval(expression))
        except (SyntaxError, TypeError):
            return "error"


def solve(model, tokenizer, questions):
    """Runs every question to its answer, all side by side: (answer, turns) of each."""
    texts = [f"{BEGIN}user\n{question}{END}\n{BEGIN}assistant\n" if not system else
             f"{BEGIN}system\n{system}{END}\n{BEGIN}user\n{question}{END}\n{BEGIN}assistant\n"
             for system, question in questions]
    answers, turns, open_ones = [None] * len(texts), [0] * len(texts), list(range(len(texts)))
    end = tokenizer.token_to_id(END)
    for _ in range(4):
        waiting = []
        open_ones.sort(key=lambda index: len(texts[index]))
        for first in range(0, len(open_ones), 250):
            some = open_ones[first:first + 250]
            prompts = [tokenizer.encode(texts[index], add_special_tokens=False).ids for index in some]
            for index, output in zip(some, greedy(model, prompts, end, 120)):
                said = tokenizer.decode(output, skip_special_tokens=False)
                calls = re.findall(r'<tool_call>\n\{"name":"calculator","arguments":\{"expression":"(.*?)"\}\}\n</tool_call>',
                                   said)
                if not calls:
                    answers[index] = said
                    continue
                turns[index] += 1
                results = "\n".join(f"<tool_response>\n{Calculator.answer(call)}\n</tool_response>" for call in calls)
                texts[index] += f"{said}{END}\n{BEGIN}user\n{results}{END}\n{BEGIN}assistant\n"
                waiting.append(index)
        open_ones = waiting
        if not open_ones:
            break
    return list(zip(answers, turns))


def expected(maker):
    """One question of the test: (system, question, right answer, turns)."""
    question, turns, answer = maker.problem()
    results = []
    for expressions in turns:
        results = [str(eval(expression.format(*results))) for expression in expressions]
    return maker.system(), question, answer.format(*results), len(turns)


def evaluate(model, tokenizer, tests):
    model.eval()
    with torch.no_grad():
        solved = solve(model, tokenizer, [(system, question) for system, question, _, _ in tests])
    model.train()
    right = [answer == wanted for (answer, _), (_, _, wanted, _) in zip(solved, tests)]
    wrong = [{"question": t[1], "wanted": t[2], "answer": s[0], "turns": s[1], "system": bool(t[0])}
             for s, t, ok in zip(solved, tests, right) if not ok]
    called = sum(count == t[3] for (_, count), t in zip(solved, tests)) / len(tests)
    return sum(right) / len(right), called, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=200)
    parser.add_argument("--conversations", type=int, default=250000)
    parser.add_argument("--test", type=int, default=1000)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    began = time.monotonic()
    maker, tester = Maker(1, False), Maker(2, True)
    conversations = [maker.conversation() for _ in range(options.conversations)]
    tokenizer = make_tokenizer(["".join(text for text, _ in parts) for parts in conversations[:20000]])
    tokenizer.save(str(options.out / "tokenizer.json"))
    buckets = rows_of(tokenizer, conversations)
    tests = [expected(tester) for _ in range(options.test)]
    print(f"data after {time.monotonic() - began:.1f} s", flush=True)

    torch.manual_seed(1)
    model = Llama(TOOLS_SHAPE).to(device)
    print(sum(p.numel() for p in model.parameters()), "parameters", flush=True)
    data = {length: tuple(torch.from_numpy(part).to(device) for part in pair) for length, pair in buckets.items()}
    shares = np.asarray([len(pair[0]) * length for length, pair in data.items()], float)
    groups = [{"params": [p for p in model.parameters() if p.dim() == 2], "weight_decay": 0.1},
              {"params": [p for p in model.parameters() if p.dim() == 1], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=RATE, betas=(0.9, 0.95), fused=device.type == "cuda")
    lengths, rng = list(data), np.random.default_rng(2)
    begin, step, progress, shown = time.monotonic(), 0, 0.0, 0.0
    while progress < 1:
        length = rng.choice(lengths, p=shares / shares.sum())
        rows, learned = data[length]
        which = torch.randint(0, len(rows), (max(1, TOKENS // length),), device=device)
        tokens, mask = rows[which].long(), learned[which][:, 1:]
        for group in optimizer.param_groups:
            group["lr"] = RATE * schedule(progress)
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            logits = model(tokens[:, :-1])
        each = F.cross_entropy(logits.float().flatten(0, 1), tokens[:, 1:].flatten(), reduction="none").view_as(mask)
        loss = (each * mask).sum() / mask.sum() + 0.02 * each.mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        step += 1
        if step % 20 == 0:
            value = loss.item()
            progress = (time.monotonic() - begin) / options.seconds
            if progress - shown > 0.1:
                shown = progress
                right, called, _ = evaluate(model, tokenizer, tests[:200])
                print(f"step {step} {time.monotonic() - begin:.0f} s loss {value:.4f} right {right:.3f} turns as expected "
                      f"{called:.3f}", flush=True)
                save_weights(model, options.out / f"{TOOLS_NAME}.npz")
    save_weights(model, options.out / f"{TOOLS_NAME}.npz")
    right, called, wrong = evaluate(model, tokenizer, tests)
    result = {"steps": step, "seconds": time.monotonic() - begin, "tests": len(tests), "right": right,
              "turns_as_expected": called, "wrong": wrong[:60],
              "parameters": sum(p.numel() for p in model.parameters()), "torch": torch.__version__}
    (options.out / "tools-result.json").write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps({key: value for key, value in result.items() if key != "wrong"}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
