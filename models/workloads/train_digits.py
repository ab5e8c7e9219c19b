#!/usr/bin/env python3
"""Trains digits-whisper on synthesized digits; see ../README.md.

    train_digits.py --out FOLDER --seconds 150

Needs PyTorch and NumPy; a GPU for anything but a trial.  Written are the averaged weights (.npz) and digits.json.
"""
import argparse
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

import digits
from digit_tokens import encode, prompt, vocabulary
from training import Batches, Trainer, add_options, parameters, save, train, write_result
from whisper_network import CHUNK_S, RATE, Whisper, log_mel, transcribe

LENGTH = 9  # tokens: prompt, at most four words, end
IGNORED = -100
HIDDEN_MOST = 12  # bins or frames of a masked band


def rows_of(items, device):
    """Features (half precision) and tokens of utterances."""
    features, tokens = [], np.full((len(items), LENGTH), IGNORED)
    for first in range(0, len(items), 2000):
        some = items[first:first + 2000]
        samples = np.zeros((len(some), CHUNK_S * RATE), np.int16)
        for row, (wave, _) in zip(samples, some):
            row[:len(wave)] = wave
        features.append(log_mel(torch.from_numpy(samples).to(device).float() / 32768).half())
    for row, (_, text) in zip(tokens, items):
        ids = prompt() + encode(text)
        row[:len(ids)] = ids
    return torch.cat(features), torch.from_numpy(tokens).to(device)


def loss_of(network, features, tokens):
    """Of the words and the end; bands of time and frequency are masked."""
    batch, bins, frames = features.shape
    device = features.device

    def band(length):
        at, start = torch.arange(length, device=device), torch.rand(batch, 1, device=device) * length
        return (at >= start) & (at < start + torch.rand(batch, 1, device=device) * HIDDEN_MOST)
    keep = ~(band(bins)[:, :, None] | band(frames)[:, None, :])
    logits = network(features.float() * keep, tokens[:, :-1].clamp(min=0)).float()
    begin = len(prompt()) - 1
    return F.cross_entropy(logits[:, begin:].flatten(0, 1), tokens[:, begin + 1:].flatten(), ignore_index=IGNORED,
                           label_smoothing=0.02)


def distance(a, b):
    """Edit distance of two sequences."""
    row = list(range(len(b) + 1))
    for i, left in enumerate(a, 1):
        row, above = [i], row
        for j, right in enumerate(b, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (left != right)))
    return row[-1]


def word_error_rate(network, features, items):
    wrong = words = 0
    end = vocabulary()["<|endoftext|>"]
    for first in range(0, len(items), 1000):
        found = transcribe(network, features[first:first + 1000].float(), prompt(), end)
        for row, (_, text) in zip(found, items[first:first + 1000]):
            wrong += distance(row, encode(text)[:-1])
            words += len(text.split())
    return wrong / words


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    add_options(parser)
    parser.add_argument("--voices", type=int, default=2400, help="speakers of the training (2400)")
    options = parser.parse_args()
    out, begin = Path(options.out), time.monotonic()
    out.mkdir(parents=True, exist_ok=True)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    voices, batch = (3, 16) if options.trial else (options.voices, 512)
    items = digits.dataset(voices, 50, digits.TRAIN_SEED, options.workers)
    test = digits.dataset(3 if options.trial else 500, 4, 3, options.workers)
    print(f"utterances after {time.monotonic() - begin:.1f} s", flush=True)
    torch.manual_seed(1)
    batches = Batches(rows_of(items, device), batch, device)
    trainer = Trainer(Whisper(), loss_of, batches, 2e-3, is_recorded=not options.no_graph)
    print(f"network after {time.monotonic() - begin:.1f} s", flush=True)
    steps = train(options, [trainer], "digits")
    save(trainer.average, out / "digits-whisper.npz")
    write_result(out / "digits.json", utterances=len(items), batch=batch, steps=steps,
                 seconds=time.monotonic() - begin, parameters=parameters(trainer.average),
                 word_error_rate=word_error_rate(trainer.average, rows_of(test, device)[0], test))


if __name__ == "__main__":
    main()
