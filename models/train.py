#!/usr/bin/env python3
"""Trains the models of SHAPES side by side on the same batches; see README.md for the results.

    train.py --data models/prepared --out FOLDER --seconds 150      as many steps as that allows
    train.py --data models/prepared --out FOLDER --steps N          the same again

Needs PyTorch, NumPy and tokenizers; a GPU for anything but a trial.  Written are weights (f16),
the loss curve, what the models answer to problems they never saw, and golden answers.
"""
import argparse
import csv
import json
import math
import os
import sys
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from items import CELLS, WEIGHTS, Template, load_test, load_train
from network import Llama, greedy
from shapes import SHAPES

RATES = {"ipw-1m": 3e-3, "ipw-6m": 1.5e-3}
WARM_UP = 0.03       # share of the training
PROMPT_WEIGHT = 0.02  # of a token of the prompt, beside 1 for an answer of one token
ANSWER_MOST = 40     # tokens; the longest right answer has 35
GOLDEN = 200
QUICK_TEST = 500


class Batches:
    """Draws rows of all lengths, by the weights of their cells, into tensors that stay in place."""

    def __init__(self, buckets, size, device):
        self.device = device
        count = np.bincount(np.concatenate([bucket.cells for bucket in buckets]),
                            minlength=len(CELLS))
        weight = np.asarray(WEIGHTS) / np.maximum(count, 1)
        shares = [weight[bucket.cells].sum() for bucket in buckets]
        self.sources, self.places = [], []
        for bucket, share in zip(buckets, shares):
            rows = max(8, round(size * share / sum(shares) / 8) * 8)
            chance = np.cumsum(weight[bucket.cells])
            source = [torch.from_numpy(array).to(device) for array in
                      (bucket.rows, bucket.starts, bucket.ends, chance / chance[-1])]
            self.sources.append(source)
            self.places.append([torch.zeros((rows, bucket.rows.shape[1]), dtype=torch.long,
                                            device=device),
                                torch.zeros(rows, dtype=torch.long, device=device),
                                torch.ones(rows, dtype=torch.long, device=device)])

    def draw(self):
        for (rows, starts, ends, chance), place in zip(self.sources, self.places):
            random = torch.rand(len(place[0]), dtype=torch.float64, device=self.device)
            which = torch.searchsorted(chance, random).clamp_(max=len(rows) - 1)
            for source, to in zip((rows, starts, ends), place):
                to.copy_(source[which])


def loss_of(model, places):
    """Mean over the answers' tokens; long answers count for more, but not by their length."""
    total = weights = 0
    for tokens, starts, ends in places:
        logits = model(tokens[:, :-1]).float()
        each = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten(), reduction="none")
        at = torch.arange(1, tokens.shape[1], device=tokens.device)[None]
        of_answer = (at >= starts[:, None]) & (at < ends[:, None])
        weight = (of_answer / (ends - starts)[:, None].sqrt()
                  + PROMPT_WEIGHT * (at < starts[:, None]))
        total = total + (each.view_as(weight) * weight).sum()
        weights = weights + weight.sum()
    return total / weights


class Trainer:
    """One model, its optimizer and, on a GPU, the whole step recorded once and replayed."""

    def __init__(self, name, batches, graph):
        self.name, self.batches, self.device = name, batches, batches.device
        torch.manual_seed(1)
        self.model = Llama(SHAPES[name]).to(self.device)
        matrices = [p for p in self.model.parameters() if p.dim() == 2]
        vectors = [p for p in self.model.parameters() if p.dim() == 1]
        rate = torch.tensor(0.0, device=self.device) if graph else 0.0
        self.optimizer = torch.optim.AdamW(
            [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}],
            lr=rate, betas=(0.9, 0.95), fused=True, capturable=graph)
        self.loss = torch.zeros((), device=self.device)
        self.graph = None
        if graph:
            self.record()

    def once(self):
        kind = self.device.type
        with torch.autocast(kind, torch.bfloat16, enabled=kind == "cuda"):
            loss = loss_of(self.model, self.batches.places)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.loss.copy_(loss.detach())

    def record(self):
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(3):  # at a rate of 0: nothing changes but the optimizer's state
                self.once()
                self.optimizer.zero_grad(set_to_none=True)
        torch.cuda.current_stream().wait_stream(aside)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.once()

    def step(self, progress):
        rate = RATES[self.name] * schedule(progress)
        for group in self.optimizer.param_groups:
            if self.graph:
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate
        if self.graph:
            self.graph.replay()
        else:
            self.optimizer.zero_grad(set_to_none=True)
            self.once()


def schedule(progress):
    if progress < WARM_UP:
        return progress / WARM_UP
    return 0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * min(1, (progress - WARM_UP)
                                                           / (1 - WARM_UP))))


def answers(model, template, problems, chunk):
    """Greedy answers in float32; prompts of like length go together."""
    prompts = [template.prompt(problem.tolist()) for problem in problems]
    order = sorted(range(len(prompts)), key=lambda index: len(prompts[index]))
    out = [None] * len(prompts)
    for first in range(0, len(order), chunk):
        some = order[first:first + chunk]
        for index, output in zip(some, greedy(model, [prompts[i] for i in some], template.end,
                                              ANSWER_MOST)):
            out[index] = output
    return out


def accuracy(outputs, right, cells):
    hits = {}
    for output, answer, cell in zip(outputs, right, cells):
        hits.setdefault(CELLS[cell], []).append(output == answer)
    every = [hit for cell in hits.values() for hit in cell]
    return {"all": sum(every) / len(every),
            "cells": {name: sum(cell) / len(cell) for name, cell in hits.items()}}


def save_weights(model, path):
    arrays = {name: weight.detach().half().cpu().numpy()
              for name, weight in model.named_parameters()}
    np.savez(path.with_suffix(".part.npz"), **arrays)
    os.replace(path.with_suffix(".part.npz"), path)


def load_weights(model, path):
    with np.load(path) as arrays:
        model.load_state_dict({name: torch.from_numpy(arrays[name]).float() for name in arrays})


class Curve:
    """The training as a table, one line per call."""

    def __init__(self, path, names):
        self.file = open(path, "w", newline="", encoding="utf-8")
        self.writer = csv.writer(self.file, lineterminator="\n")
        self.writer.writerow(["step", "seconds", "rate"] + [f"{name} loss" for name in names]
                             + [f"{name} accuracy" for name in names])

    def add(self, step, seconds, share, losses, accuracies):
        self.writer.writerow([step, round(seconds, 1), round(share, 4)]
                             + [round(loss, 4) for loss in losses]
                             + [round(value, 4) for value in accuracies])
        self.file.flush()


def train(options, trainers, batches, quick):
    """Returns the number of steps made."""
    curve = Curve(options.out / "curve.csv", [trainer.name for trainer in trainers])
    begin, step, tested, saved = time.monotonic(), 0, 0.0, 0.0
    progress = 0.0
    while progress < 1:
        batches.draw()
        for trainer in trainers:
            trainer.step(progress)
        step += 1
        if step % 20 == 0:  # waits for the GPU, so that the clock below tells the truth
            losses = [trainer.loss.item() for trainer in trainers]
        passed = time.monotonic() - begin
        progress = step / options.steps if options.steps else passed / options.seconds
        if step % 100 == 0:
            found = []
            if progress - tested > 0.12:
                found, tested = [quick(trainer.model) for trainer in trainers], progress
            curve.add(step, passed, schedule(progress), losses, found)
            if step % 500 == 0 or found:
                print(f"step {step}, {passed:.0f} s, losses {losses}, accuracies {found}",
                      flush=True)
        if passed - saved > 30:
            saved = passed
            for trainer in trainers:
                save_weights(trainer.model, options.out / f"{trainer.name}.npz")
    return step


def finish(options, name, device, template, test):
    """Judges the weights as they are kept: in f16, computed in float32."""
    problems, right, cells = test
    model = Llama(SHAPES[name]).to(device).eval()
    load_weights(model, options.out / f"{name}.npz")
    outputs = answers(model, template, problems, options.chunk)
    golden = [{"prompt": template.prompt(problem.tolist()), "output": output, "right": answer,
               "problem_text": template.tokenizer.decode(problem.tolist()),
               "output_text": template.tokenizer.decode(output)}
              for problem, output, answer in list(zip(problems, outputs, right))[:GOLDEN]]
    (options.out / f"{name}-golden.json").write_text(json.dumps(golden) + "\n")
    return accuracy(outputs, right, cells)


def options_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="what prepare.py wrote")
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    parser.add_argument("--seconds", type=float, default=150, help="how long to train (150)")
    parser.add_argument("--steps", type=int, help="how many steps instead")
    parser.add_argument("--batch", type=int, default=1024, help="items in a step (1024)")
    parser.add_argument("--test", type=int, default=2500, help="items to test with at the end")
    parser.add_argument("--no-graph", action="store_true", help="launch each kernel by itself")
    return parser.parse_args(arguments)


def main():
    options = options_of(sys.argv[1:])
    options.out.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    options.chunk = 500 if device.type == "cuda" else 50
    template = Template(options.data / "tokenizer.json")
    assert template.tokenizer.get_vocab_size() == SHAPES["ipw-1m"].vocabulary
    torch.manual_seed(1)
    batches = Batches(load_train(options.data, template), options.batch, device)
    test = tuple(part[:options.test] for part in load_test(options.data))
    print(f"data after {time.monotonic() - begin:.1f} s; rows of a step: "
          f"{[list(place[0].shape) for place in batches.places]}", flush=True)
    batches.draw()
    graph = device.type == "cuda" and not options.no_graph
    try:
        trainers = [Trainer(name, batches, graph) for name in SHAPES]
    except RuntimeError as error:
        if not graph:
            raise
        print(f"no recording: {error}; starting again without", flush=True)
        os.execv(sys.executable, [sys.executable, *sys.argv, "--no-graph"])
    print(f"models after {time.monotonic() - begin:.1f} s", flush=True)

    def quick(model):
        some = tuple(part[:QUICK_TEST] for part in test)
        model.eval()
        outputs = answers(model, template, some[0], options.chunk)
        return accuracy(outputs, some[1], some[2])["all"]

    torch.manual_seed(2)
    steps = train(options, trainers, batches, quick)
    result = {"steps": steps, "batch": [list(place[0].shape) for place in batches.places],
              "seconds": time.monotonic() - begin, "torch": torch.__version__,
              "device": torch.cuda.get_device_name() if graph else device.type, "models": {}}
    for trainer in trainers:
        save_weights(trainer.model, options.out / f"{trainer.name}.npz")
        found = finish(options, trainer.name, device, template, test)
        result["models"][trainer.name] = {
            "parameters": sum(p.numel() for p in trainer.model.parameters()),
            "loss": trainer.loss.item(), "accuracy": found}
        print(trainer.name, json.dumps(found), flush=True)
        (options.out / "result.json").write_text(json.dumps(result, indent=1) + "\n")
    print(f"{steps} steps, {time.monotonic() - begin:.0f} s in all", flush=True)


if __name__ == "__main__":
    main()
