"""Items as rows of tokens: the chat template around problem and answer, padded to a few lengths."""
import numpy as np
from tokenizers import Tokenizer

from prepare import LEVELS, SYSTEM_LINES, TASKS

CELLS = [f"{task} {level}" for task in TASKS for level in LEVELS]
# How often a task and level is drawn: more of what is hard, less of what has few different problems.
WEIGHTS = [0.2, 1.5, 0.4, 3.0, 2.5,
           0.5, 0.5, 1.0, 1.5, 3.0,
           0.2, 1.0, 0.6, 0.3, 1.2,
           0.5, 1.0, 1.5, 2.0, 2.5,
           0.3, 0.5, 1.0, 1.5, 2.5]
LENGTHS = [40, 64, 112]


class Template:
    """ChatML, in tokens."""

    def __init__(self, path):
        self.tokenizer = Tokenizer.from_file(str(path))
        self.before = self.encode("<|im_start|>user\n")
        self.between = self.encode("<|im_end|>\n<|im_start|>assistant\n")
        self.end = self.tokenizer.token_to_id("<|im_end|>")
        self.system = [[]] + [self.encode(f"<|im_start|>system\n{line}<|im_end|>\n")
                              for line in SYSTEM_LINES]

    def encode(self, text):
        return self.tokenizer.encode(text).ids

    def prompt(self, problem):
        return self.before + list(problem) + self.between


def split(flat, lengths):
    return np.split(flat, np.cumsum(lengths.astype(np.int64))[:-1])


def scatter(rows, at, flat, lengths):
    """Puts one piece of each row at its place; moves the places on."""
    lengths = lengths.astype(np.int64)
    first = np.cumsum(lengths) - lengths
    row = np.repeat(np.arange(len(lengths)), lengths)
    rows[row, np.arange(len(flat)) - first[row] + at[row]] = flat
    at += lengths


def scatter_same(rows, at, tokens):
    for token in tokens:
        rows[np.arange(len(rows)), at] = token
        at += 1


def pick(flat, lengths, which):
    """The pieces of some rows."""
    return flat[np.repeat(which, lengths)], lengths[which]


class Bucket:
    """Rows of one length: tokens, where the answer starts, where the row ends, which cell."""

    def __init__(self, data, template, which, length):
        system = data["system"][which]
        self.rows = np.full((len(system), length), template.end, np.int16)
        at = np.zeros(len(system), np.int64)
        for index, line in enumerate(template.system):
            self.rows[system == index, :len(line)] = line
            at[system == index] = len(line)
        scatter_same(self.rows, at, template.before)
        scatter(self.rows, at, *pick(data["problem"], data["problem_length"], which))
        scatter_same(self.rows, at, template.between)
        self.starts = at.astype(np.int16)
        scatter(self.rows, at, *pick(data["answer"], data["answer_length"], which))
        scatter_same(self.rows, at, [template.end])
        self.ends = at.astype(np.int16)
        self.cells = data["cell"][which]


def load_train(folder, template):
    with np.load(folder / "train.npz") as file:
        data = dict(file)
    lengths = (data["problem_length"].astype(np.int64) + data["answer_length"] + 1
               + len(template.before) + len(template.between)
               + np.asarray([len(line) for line in template.system])[data["system"]])
    bounds = [0] + LENGTHS
    buckets = [Bucket(data, template, (lengths > low) & (lengths <= high), high)
               for low, high in zip(bounds, bounds[1:])]
    assert sum(len(bucket.rows) for bucket in buckets) == len(lengths), "an item is too long"
    return buckets


def load_test(folder):
    with np.load(folder / "test.npz") as data:
        return (split(data["problem"], data["problem_length"]),
                [answer.tolist() for answer in split(data["answer"], data["answer_length"])],
                data["cell"].tolist())
