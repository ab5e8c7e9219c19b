#!/usr/bin/env python3
# test: real time
"""SmolLM2, a real model of 135 million parameters, in ipw's process; tools/fetch-model downloads it."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

IPW, BUILD = os.environ["IPW"], Path(os.environ["IPW_BUILD"])
MODEL = Path(os.environ["IPW_SOURCE"]) / "third_party/models/smollm2.gguf"
FACTS = {"What is the capital of France?": "Paris", "What is the capital of Italy?": "Rome"}


def missing():
    """Why it cannot run here; None if it can."""
    if not MODEL.exists():
        return "no SmolLM2 here: tools/fetch-model smollm2"
    listing = subprocess.run([IPW, "list", "clients", "--json"], check=True, capture_output=True)
    row = next(row for row in json.loads(listing.stdout)["clients"] if row["name"] == "llama")
    return row["missing"]


class SmolLM2(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_answers_known_facts(self):
        questions = self.folder / "capitals.jsonl"
        questions.write_text("".join(json.dumps({"problem": problem, "answer": answer}) + "\n"
                                     for problem, answer in FACTS.items()))
        done = subprocess.run(
            [IPW, "profile", "--client", "llama", "--model", "smollm2", "--client-param",
             "threads=1", "--dataset", questions, "--grader", "contains", "--param",
             "max_tokens=24", "--warmup-queries", "0", "--idle", "0.5", "--json", "-q",
             "--output-dir", self.folder / "runs"], capture_output=True, text=True, check=True)
        report = json.loads(done.stdout)
        self.assertEqual((report["completed"], report["accuracy"]), (len(FACTS), 1))
        self.assertEqual(Path(report["output_dir"]).name.count("smollm2"), 1)
        self.assertGreater(report["output_tokens"], 2 * len(FACTS))
        self.assertLessEqual(report["conservation_error"], 1e-3)
        self.assertIn(report["energy"]["method"], ("counter", "integral", "estimated", None))

    def test_shape_is_the_published_one(self):
        shown = subprocess.run([BUILD / "tests/tools/gguf_show", MODEL], check=True,
                               capture_output=True)
        decoder = json.loads(shown.stdout)["decoder"]
        self.assertEqual(decoder["parameters"], 134_515_008)
        self.assertEqual(len(decoder["layers"]), 30)


if __name__ == "__main__":
    why = missing()
    if why:
        print(f"skipped: {why}")
        sys.exit(77)
    unittest.main()
