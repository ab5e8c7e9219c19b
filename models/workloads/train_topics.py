#!/usr/bin/env python3
"""Trains topics-lstm on generated sentences; see ../README.md.

    train_topics.py --out FOLDER --steps 2000

Needs PyTorch and NumPy.  Written are the averaged weights (.npz), vocab.txt and topics.json.
"""
import argparse
import time
from collections import Counter
from pathlib import Path

import torch
import torch.nn.functional as F

import topics
from topics_network import TopicsLSTM
from training import Batches, Trainer, add_options, parameters, save, train, write_result

LENGTH = 40
LEAST = 20           # occurrences of a word of the vocabulary
PAD, UNKNOWN = "[PAD]", "[UNK]"
DROPPED = 0.03       # words that the training replaces by the unknown one


def vocabulary(sentences):
    count = Counter(word for text, _ in sentences for word in topics.words_of(text))
    return [PAD, UNKNOWN, *sorted(word for word in count if count[word] >= LEAST)]


def rows_of(sentences, words):
    ids = {word: index for index, word in enumerate(words)}
    tokens = torch.zeros(len(sentences), LENGTH, dtype=torch.long)
    for row, (text, _) in zip(tokens, sentences):
        found = [ids.get(word, ids[UNKNOWN]) for word in topics.words_of(text)]
        row[:len(found)] = torch.tensor(found)
    return tokens, torch.tensor([topics.LABELS.index(label) for _, label in sentences])


def loss_of(network, tokens, labels):
    mask = (tokens > 0).long()
    dropped = (torch.rand(tokens.shape, device=tokens.device) < DROPPED) & (mask > 0)
    return F.cross_entropy(network(tokens.masked_fill(dropped, 1), mask), labels)


@torch.no_grad()
def accuracy(network, tokens, labels):
    return (network(tokens, (tokens > 0).long()).argmax(1) == labels).float().mean().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    add_options(parser)
    options = parser.parse_args()
    out, begin = Path(options.out), time.monotonic()
    out.mkdir(parents=True, exist_ok=True)
    sentences = topics.dataset(2000 if options.trial else topics.TRAINING, topics.TRAIN_SEED)
    words = vocabulary(sentences)
    (out / "vocab.txt").write_text("\n".join(words) + "\n")
    torch.manual_seed(1)
    batches = Batches(rows_of(sentences, words), 128, torch.device("cpu"))  # small enough for a processor
    trainer = Trainer(TopicsLSTM(len(words), len(topics.LABELS)), loss_of, batches, 3e-3, decay=0.99)
    steps = train(options, [trainer], "topics")
    save(trainer.average, out / "topics-lstm.npz")
    test = rows_of(topics.dataset(4000, 3, is_test=True), words)
    write_result(out / "topics.json", sentences=len(sentences), steps=steps, seconds=time.monotonic() - begin,
                 words=len(words), parameters=parameters(trainer.average), accuracy=accuracy(trainer.average, *test))


if __name__ == "__main__":
    main()
