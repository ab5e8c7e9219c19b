#!/usr/bin/env python3
"""Reads datasets saved by the Python library `datasets`: shards, splits, nested columns.  $IPW_PYTHON may name an
interpreter that has it; without it the test is skipped."""

import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import oracle  # noqa: E402

oracle.use()

import json
import subprocess
import tempfile
import unittest
from pathlib import Path

from program import TIMEOUT_S

SCRATCH = tempfile.TemporaryDirectory(prefix="ipw-saved-")
os.environ.update(HF_HOME=SCRATCH.name, HF_DATASETS_OFFLINE="1", HF_HUB_OFFLINE="1",
                  HF_DATASETS_DISABLE_PROGRESS_BARS="1")
try:
    import datasets
except ImportError as error:
    print(f"skipped: {error} (set IPW_PYTHON to an interpreter that has datasets)")
    sys.exit(77)

BUILD = Path(os.environ.get("IPW_BUILD", "build")).resolve()
TOOLS = BUILD / "tests" / "tools"


def read(*arguments):
    done = subprocess.run([TOOLS / "dump_items", *map(str, arguments)], capture_output=True,
                          timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return lines[:-1], lines[-1]


def rows(count):
    return [{"question": f"Frage {i} \U0001F600", "options": [f"a{i}", f"b{i}", "é"],
             "answer": i % 3, "category": None if i % 7 == 0 else "c", "extra": {"n": i, "x": None}}
            for i in range(count)]


class SavedDatasets(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=SCRATCH.name)
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def check(self, items, expected):
        self.assertEqual(len(items), len(expected))
        for i, (item, row) in enumerate(zip(items, expected)):
            lines = [f"{letter}. {option}" for letter, option in zip("ABC", row["options"])]
            self.assertEqual(item["problem"], "\n".join([row["question"], *lines]))
            self.assertEqual(item["answer"], "ABC"[row["answer"]])
            self.assertEqual(item["subject"], row["category"] or "general")
            self.assertEqual(item["id"], str(i))
            self.assertEqual(json.loads(item["metadata"])["extra"], row["extra"])

    def test_sharded_dataset(self):
        saved = rows(1000)
        datasets.Dataset.from_list(saved).save_to_disk(self.root / "set", num_shards=3)
        items, summary = read(self.root / "set", "choices=options")
        self.assertEqual(summary["grader"], "choice")
        self.check(items, saved)

    def test_splits_and_subsets(self):
        whole = datasets.Dataset.from_list(rows(50))
        part = whole.select(range(40, 50)).flatten_indices()
        datasets.DatasetDict({"train": whole, "test": part}).save_to_disk(self.root / "dict")
        items, _ = read(self.root / "dict", "choices=options", "split=train")
        self.check(items, rows(50))
        items, _ = read(self.root / "dict", "choices=options", "split=test")
        self.assertEqual([item["problem"][:8] for item in items], [f"Frage {i}" for i in range(40, 50)])

    def test_integers_keep_all_digits(self):
        numbers = [2**53 + 1, -2**53 - 1, 2**63 - 1, -2**63, 12345678901234567]
        saved = [{"question": f"q{i}", "n": n, "more": [{"n": n}]} for i, n in enumerate(numbers)]
        datasets.Dataset.from_list(saved).save_to_disk(self.root / "set")
        for order in ("", "shuffle=1"):
            items, _ = read(self.root / "set", "template={question}: {n}", "answer=n", "id=n", order)
            for item, row in zip(sorted(items, key=lambda item: item["problem"]), saved):
                self.assertEqual(item["problem"], f"{row['question']}: {row['n']}")
                self.assertEqual((item["answer"], item["id"]), (str(row["n"]),) * 2)
                self.assertEqual(json.loads(item["metadata"])["more"], row["more"])
        runs = self.root / "runs"
        subprocess.run([BUILD / "ipw", "profile", "--client", "null", "--model", "m", "--dataset",
                        self.root / "set", "--dataset-param", "template={question}: {n}", "--idle", "0",
                        "--warmup-queries", "0", "--output-dir", runs],
                       capture_output=True, timeout=TIMEOUT_S, check=True)
        (journal,) = runs.glob("*/records.jsonl")
        records = [record for record in map(json.loads, journal.read_text().splitlines())
                   if record["kind"] == "query"]
        self.assertEqual(sorted((record["problem"], record["dataset_metadata"]["more"]) for record in records),
                         [(f"{row['question']}: {row['n']}", row["more"]) for row in saved])

    def test_columns_of_bundled_dataset(self):
        saved = [{"problem": "p", "answer": "a", "subject": "s", "model_answers": {},
                  "model_metrics": {}, "anthropic_index_category": "x",
                  "dataset_metadata": json.dumps({"config": {"dataset_name": "allenai/WildChat"}})},
                 {"problem": "", "answer": "a", "subject": "", "model_answers": {},
                  "model_metrics": {}, "anthropic_index_category": None, "dataset_metadata": "{}"}]
        datasets.Dataset.from_list(saved).save_to_disk(self.root / "bundle")
        items, summary = read("ipw", f"path={self.root / 'bundle'}")
        self.assertEqual((len(items), summary["grader"]), (1, "judge"))
        self.assertEqual(json.loads(items[0]["metadata"])["config"]["dataset_name"],
                         "allenai/WildChat")


if __name__ == "__main__":
    unittest.main()
