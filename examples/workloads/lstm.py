"""Text classification with a bidirectional LSTM, random weights.

    ipw run -- python3 examples/workloads/lstm.py --batch 64 --length 128
"""
import torch
from torch import nn

from common import build, host, measure, options_of, part

SIZES = {"lstm-512x2": (512, 2), "lstm-1024x2": (1024, 2)}  # width and layers
WORDS, EMBEDDED, CLASSES = 30000, 300, 6


class Classifier(nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, EMBEDDED)
        self.lstm = nn.LSTM(EMBEDDED, width, layers, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * width, CLASSES)

    def forward(self, tokens):
        return self.head(self.lstm(self.embedding(tokens))[0].mean(1))


options = options_of(__doc__, list(SIZES), length=(128, "words of a text"))
model = build(options, lambda: Classifier(*SIZES[options.model]))
texts = host(options, torch.randint(0, WORDS, (options.batch, options.length)))


def run():
    with part(options, "prepare"):
        tokens = texts.to(options.device, non_blocking=True)
    with part(options, "classify"):
        model(tokens).argmax(-1)


measure(options, run, texts=options.batch, tokens=options.batch * options.length)
