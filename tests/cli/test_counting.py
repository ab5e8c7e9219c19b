#!/usr/bin/env python3
"""The costs of operations in docs/metrics.md equal those of the source, and `ipw list models` shows the counts of
models."""

import json
import re
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from program import ipw  # noqa: E402

SOURCE = Path(__file__).resolve().parents[2]

DEFINED = re.compile(r'^OP\(\w+, "(\w+)", (\w+), (\d+)\)', re.M)
# Operations with their own rule are in the first table.
OWN_RULE = {"PRODUCT", "RECURRENT", "LOOKUP", "POOL"}


def rows(section):
    """(operations, cells) of each table row of the section that starts with names in code spans."""
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        names = re.findall(r"`(\w+)`", cells[0])
        if line.startswith("|") and names:
            yield names, cells[1:]


class Counting(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        text = (SOURCE / "docs/metrics.md").read_text()
        cls.section = re.search(r"^## Counting\n(.*?)^## ", text, re.M | re.S).group(1)
        cls.defined = DEFINED.findall((SOURCE / "src/graph/ops.def").read_text())

    def test_every_operation_is_documented_once(self):
        named = [name for names, _ in rows(self.section) for name in names]
        self.assertGreater(len(self.defined), 30)
        self.assertEqual(sorted(named), sorted(name for name, _, _ in self.defined))

    def test_documented_costs_equal_source(self):
        shown = {name: cells for names, cells in rows(self.section) for name in names}
        for name, kind, cost in self.defined:
            with self.subTest(operation=name):
                cells = shown[name]
                self.assertEqual(len(cells), 2 if kind in OWN_RULE else 1)
                if kind not in OWN_RULE:
                    self.assertEqual(re.match(r"\d+", cells[0]).group(), cost)


class Models(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.text = ipw(None, "list", "models").stdout
        cls.json = json.loads(ipw(None, "list", "models", "--json").stdout)

    def test_counts_equal_published_figures(self):
        models = {model["name"]: model for model in self.json["models"]}
        self.assertEqual(models["resnet50"]["params"], 25557032)
        self.assertEqual(models["resnet18"]["macs"], 1814073344)
        self.assertEqual((models["resnet18"]["image"], models["resnet18"]["tokens"]), (224, None))
        self.assertEqual((models["gpt2"]["params"], models["gpt2"]["image"]), (124439808, None))
        self.assertGreater(models["gpt2"]["context"], 0)

    def test_every_model_is_available(self):
        for model in self.json["models"]:
            with self.subTest(model=model["name"]):
                self.assertTrue(model["available"], model["missing"])
                self.assertGreater(model["macs"], 0)
                self.assertTrue(model["image"] or model["tokens"])
                self.assertTrue(model["source"] and model["summary"] and model["family"])
                self.assertIn(model["name"], self.text)

    def test_zoo_reader_is_listed(self):
        self.assertIn("zoo", [reader["name"] for reader in self.json["readers"]])

    def test_misspelled_kind_gets_suggestion(self):
        done = ipw(None, "list", "modles")
        self.assertEqual(done.returncode, 2)
        self.assertIn("did you mean 'models'?", done.stderr)


if __name__ == "__main__":
    unittest.main()
