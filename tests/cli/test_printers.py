#!/usr/bin/env python3
"""One result, several printers: CSV, Markdown and text have the figures of the JSON, for every command.

It reads the files of tests/fixtures/golden, which test_golden.py holds equal to what the program writes; every command
and format has one there."""

import bisect
import csv
import io
import json
import math
import re
import unittest
from pathlib import Path

GOLDEN = Path(__file__).resolve().parent.parent / "fixtures/golden"
MASK = re.compile(r"<(?:number|string): ([^>]*)>")
WORDS = {None: "", True: "true", False: "false"}

# Files whose CSV is not that of their JSON, and why.
OTHER_CSV = {
    "serve-records.csv": "two pages of the API: the records of another run",
    "energy.csv": "written row by row, with the digits of a reading",
    "energy-once.csv": "as energy.csv",
}
# Text that shows more than the result, and why.
OTHER_TEXT = {
    "compare.txt": "names the hardware of each run",
    "govern.txt": "shows every step while it runs",
    "list-device.txt": "shows the peaks of a device in a table by precision",
}


def read_json(path):
    return json.loads(re.sub(r"(:\s*)(<number: [^>]*>)", r'\1"\2"', path.read_text(encoding="utf-8")))


def read_csv(path):
    text = MASK.sub("<masked>", path.read_text(encoding="utf-8"))  # the name of a mask may have a comma
    return list(csv.DictReader(io.StringIO(text), strict=True))


def follow(document, path):
    for word in path.split("."):
        document = document[int(word)] if isinstance(document, list) else document[word]
    return document


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def find_numbers(value, found):
    """Appends every number below the value, also those that are text."""
    if isinstance(value, (dict, list)):
        for inner in value.values() if isinstance(value, dict) else value:
            find_numbers(inner, found)
    elif is_number(value) or isinstance(value, str) and re.fullmatch(r"-?\d+(\.\d+)?", value):
        found.append(float(value))


def has_number(have, number):
    """Whether the sorted numbers have it, with the digits of a CSV."""
    at = bisect.bisect_left(have, number)
    return any(math.isclose(other, number, rel_tol=1e-8) for other in have[max(at - 1, 0):at + 1])


def shown_numbers(text):
    return set(re.findall(r"\d[\d.]*\d|\d", text.partition("---- stderr")[0]))


class Csv(unittest.TestCase):
    def compare_paths(self, rows, document):
        """Rows of path and value, as of a result that is no table."""
        for row in rows:
            value = follow(document, row["path"])
            if is_number(value):
                self.assertTrue(math.isclose(float(row["value"]), value, rel_tol=1e-8), (row, value))
            elif MASK.match(str(value)):
                self.assertIn(row["value"], ("<masked>", value))
            else:
                self.assertEqual(row["value"], value if isinstance(value, str) else WORDS[value], row)

    def compare_table(self, rows, document):
        have = []
        find_numbers(document, have)
        have.sort()
        for row in rows:
            self.assertNotIn(None, row, "more cells than columns")
            self.assertNotIn(None, row.values(), "fewer cells than columns")
            for column, text in row.items():
                if re.fullmatch(r"-?\d[\d.]*(e-?\d+)?", text):
                    self.assertTrue(has_number(have, float(text)), (column, text))

    def test_figures_are_those_of_the_json(self):
        compared = 0
        for path in sorted(GOLDEN.glob("*.csv")):
            reference = path.with_suffix(".json")
            if not reference.exists() or path.name in OTHER_CSV:
                continue
            with self.subTest(path.name):
                rows, document = read_csv(path), read_json(reference)
                self.assertTrue(rows)
                (self.compare_paths if "path" in rows[0] else self.compare_table)(rows, document)
                compared += 1
        self.assertGreater(compared, 12)

    def test_errors_and_units_stand_beside_their_figure(self):
        """A row of path and value has the ± of its figure, which the JSON has as a key of its own."""
        compared = 0
        for name in ("run", "profile", "agent"):
            document = read_json(GOLDEN / f"{name}.json")
            for row in read_csv(GOLDEN / f"{name}.csv"):
                if row["path"].endswith("energy.joules") and row["value"]:
                    expected = follow(document, row["path"].removesuffix("joules") + "plus_minus")
                    self.assertTrue(math.isclose(float(row["error"]), expected, rel_tol=1e-8), row)
                    self.assertEqual(row["unit"], "J")
                    compared += 1
        self.assertGreater(compared, 3)


class Markdown(unittest.TestCase):
    def test_tables_have_the_cells_of_their_header(self):
        compared = 0
        for path in sorted(GOLDEN.glob("*.md")):
            columns = None
            for line in path.read_text(encoding="utf-8").splitlines():
                cells = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else None
                if cells and columns:
                    self.assertEqual(cells, columns, (path.name, line))
                    compared += 1
                columns = cells
        self.assertGreater(compared, 100)

    def test_pages_end_in_one_line_feed(self):
        for path in sorted(GOLDEN.glob("*.md")):
            self.assertTrue(re.search(r"[^\n]\n\Z", path.read_text(encoding="utf-8")), path.name)

    def test_figures_of_the_text_are_in_the_markdown(self):
        compared = 0
        for path in sorted(GOLDEN.glob("*.md")):
            shown = GOLDEN / "text" / f"{path.stem}.txt"
            if shown.exists() and shown.name not in OTHER_TEXT:
                with self.subTest(path.name):
                    compared += 1
                    missing = shown_numbers(shown.read_text(encoding="utf-8")) - shown_numbers(path.read_text(encoding="utf-8"))
                    self.assertEqual(missing, set())
        self.assertGreater(compared, 15)


if __name__ == "__main__":
    unittest.main()
