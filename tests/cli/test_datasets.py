#!/usr/bin/env python3
# test: real time
"""Datasets: answers of the built-in tasks recomputed from the problem text, memory use of large files, and public
datasets over HTTP."""

import json
import os
import re
import subprocess
import tempfile
import threading
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlparse

TOOLS = Path(os.environ.get("IPW_BUILD", "build")).resolve() / "tests" / "tools"
DUMP = TOOLS / "dump_items"
TIMEOUT_S = 120


def dump(*arguments, env=None):
    return subprocess.run([DUMP, *map(str, arguments)], text=True, capture_output=True,
                          timeout=TIMEOUT_S, env={**os.environ, **(env or {})}, check=False)


def items(*arguments, env=None):
    """The items, and the summary that follows them."""
    result = dump(*arguments, env=env)
    assert result.returncode == 0, result.stderr + result.stdout
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    return lines[:-1], lines[-1]


# ---- an oracle for the built-in tasks ----

def numbers(text):
    return [int(number) for number in re.findall(r"\d+", text)]


def arithmetic(problem):
    terms = re.fullmatch(r"What is ([\d +*()-]+)\?", problem).group(1)
    return str(eval(terms))  # pylint: disable=eval-used  # only digits and signs


def comparison(problem):
    pick = max if re.match(r"Which is (the )?larg", problem) else min
    if "\n" not in problem:
        return str(pick(numbers(problem)))
    choices = {letter: eval(terms)  # pylint: disable=eval-used
               for letter, terms in re.findall(r"^([A-Z])\. ([\d +*]+)$", problem, re.M)}
    assert len(set(choices.values())) == len(choices) >= 2, problem
    return pick(choices, key=choices.get)


def sequences(problem):
    row = numbers(problem)
    steps = [after - before for before, after in zip(row, row[1:])]
    growth = {after - before for before, after in zip(steps, steps[1:])}
    if len(growth) == 1 and len(row) > 3:
        return str(row[-1] + steps[-1] + growth.pop())
    factor, rest = divmod(row[1], row[0])
    assert rest == 0 and row[2] == row[1] * factor, problem
    return str(row[2] * factor)


def sorting(problem):
    order = re.match(r"Sort from (small to large|large to small): ", problem)
    row = sorted(numbers(problem), reverse=order.group(1) == "large to small")
    assert len(set(row)) == len(row), problem
    return ", ".join(map(str, row))


def reading(problem):
    facts = {thing: [name, colour] for name, colour, thing
             in re.findall(r"(\w+) has a (\w+) (\w+)\.", problem)}
    for giver, thing, taker in re.findall(r"(\w+) gives the (\w+) to (\w+)\.", problem):
        assert facts[thing][0] == giver != taker, problem
        facts[thing][0] = taker
    question = problem.removesuffix(" Answer with one word.").rsplit(". ", 1)[1]
    if found := re.fullmatch(r"What colour is the (\w+)\?", question):
        return facts[found.group(1)][1]
    if found := re.fullmatch(r"Who has the (\w+)(?: now)?\?", question):
        return facts[found.group(1)][0]
    name = re.fullmatch(r"What does (\w+) have\?", question).group(1)
    (thing,) = [thing for thing, (owner, _) in facts.items() if owner == name]
    return thing


ORACLE = {"arithmetic": arithmetic, "comparison": comparison, "sequences": sequences,
          "sorting": sorting, "reading": reading}
GRADERS = {"arithmetic": {"numeric"}, "comparison": {"numeric", "choice"}, "sequences": {"numeric"},
           "sorting": {"list"}, "reading": {"exact"}}


class BuiltinTasks(unittest.TestCase):
    def test_answers_are_correct(self):
        for split, count in (("test", 2500), ("train", 5000)):
            rows, summary = items("builtin", f"split={split}", f"count={count}", "seed=11")
            self.assertEqual(summary["items"], count)
            for row in rows:
                self.assertEqual(ORACLE[row["subject"]](row["problem"]), row["answer"], row)
                self.assertIn(row["grader"], GRADERS[row["subject"]])

    def test_harder_levels_are_longer_or_larger(self):
        rows, _ = items("builtin", "count=2500")
        mean = {}
        for row in rows:
            level = json.loads(row["metadata"])["level"]
            mean.setdefault((row["subject"], level), []).append(len(row["problem"]))
        for subject in ORACLE:
            lengths = [sum(mean[subject, level]) / 100 for level in range(1, 6)]
            self.assertGreater(lengths[4], lengths[0], subject)

    def test_answers_are_not_biased(self):
        """A constant answer to multiple-choice or yes/no questions is not better than chance."""
        rows, _ = items("builtin", "tasks=comparison", "level=4|5", "count=1000")
        for level, letters in ((4, "ABCD"), (5, "AB")):
            answers = [row["answer"] for row in rows if json.loads(row["metadata"])["level"] == level]
            for letter in letters:
                share = answers.count(letter) / len(answers)
                self.assertAlmostEqual(share, 1 / len(letters), delta=0.08)


# ---- large files ----

class LargeFiles(unittest.TestCase):
    ROWS = 100_000

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="ipw-datasets-")
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name)

    def check(self, path, *arguments, most_kb=4_000):
        _, summary = items("--quiet", path, *arguments)
        self.assertEqual(summary["items"], self.ROWS)
        self.assertLess(summary["rss_kb"], most_kb)

    def test_memory_does_not_grow_with_file_size(self):
        filler = "x" * 500
        lines = self.root / "large.jsonl"
        with lines.open("w") as file:
            for i in range(self.ROWS):
                file.write(f'{{"problem": "question {i}", "answer": "{i}", "more": "{filler}"}}\n')
        self.check(lines)
        # Offsets of the rows are kept, the rows are not.
        self.check(lines, "shuffle=1", most_kb=4_000 + self.ROWS * 64 // 1024)
        table = self.root / "large.csv"
        with table.open("w") as file:
            file.write("problem,answer,more\n")
            for i in range(self.ROWS):
                file.write(f'"question\n{i}",{i},{filler}\n')
        self.check(table)

    def test_memory_for_a_folder_of_images_is_that_of_its_names_and_labels(self):
        for i in range(self.ROWS):
            if i % 50_000 == 0:  # a file system limits the links to one file
                first = self.root / f"{i:06d}.png"
                first.touch()
            else:
                os.link(first, self.root / f"{i:06d}.png")
        lines = (f"{i:06d}.png,class {i % 1000}\n" for i in range(self.ROWS))
        (self.root / "labels.csv").write_text("file,label\n" + "".join(lines))
        self.check(self.root, most_kb=4_000 + self.ROWS * 160 // 1024)

    def test_huge_line_is_reported_and_skipped(self):
        path = self.root / "huge.jsonl"
        with path.open("w") as file:
            file.write('{"problem": "first"}\n{"problem": "')
            for _ in range(65):
                file.write("y" * 1024 * 1024)
            file.write('"}\n{"problem": "last"}\n')
        rows, _ = items(path)
        self.assertEqual([row.get("problem") for row in rows], ["first", None, "last"])
        self.assertRegex(rows[1]["error"], r"line 2: a row of \d+ bytes \(limit 67108864\)")


# ---- saved datasets ----

class SavedDatasets(unittest.TestCase):
    def save(self, folder, rows):
        """Writes a directory in the format of save_to_disk with our own store; the files are checked in other tests."""
        folder.mkdir(parents=True)
        with (folder / "records.jsonl").open("w") as journal:
            for i, row in enumerate(rows):
                journal.write(json.dumps({"kind": "query", "key": str(i), "ipw": {"index": i}, **row},
                                         ensure_ascii=False) + "\n")
        metadata = {"level": 1.5, "source": "x"}
        subprocess.run([TOOLS / "run_store", "store", "arrow", folder, "model",
                        json.dumps(metadata), "{}"], check=True, capture_output=True)

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="ipw-saved-")
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name)
        self.rows = [{"problem": f"Größe {i}? \U0001F600\n", "answer": str(i), "subject": "s",
                      "dataset_metadata": {"level": i / 2, "source": "é"}} for i in range(3)]
        self.rows.append({"problem": "unanswered", "answer": "", "subject": None,
                          "dataset_metadata": {}})

    def test_saved_run_is_read_as_dataset(self):
        self.save(self.root / "set", self.rows)
        rows, summary = items(self.root / "set")
        self.assertEqual((summary["driver"], summary["name"], len(rows)), ("hf", "set", 4))
        for i, row in enumerate(rows[:3]):
            self.assertEqual({key: row[key] for key in ("problem", "answer", "subject", "id")},
                             {"problem": f"Größe {i}? \U0001F600\n", "answer": str(i),
                              "subject": "s", "id": str(i)})
            self.assertEqual(json.loads(row["metadata"])["dataset_metadata"],
                             {"level": i / 2, "source": "é"})
        self.assertEqual(rows[3]["subject"], "general")

    def test_bundled_dataset_and_its_splits(self):
        for split in ("train", "test"):
            self.save(self.root / "dict" / split, self.rows)
        (self.root / "dict" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
        rows, summary = items("ipw", f"path={self.root}/dict", "split=test")
        self.assertEqual((summary["name"], summary["grader"], len(rows)), ("ipw", "judge", 3))
        self.assertEqual(json.loads(rows[1]["metadata"]), {"level": 0.5, "source": "é"})

    def test_truncated_arrow_file_is_an_error(self):
        self.save(self.root / "set", self.rows)
        data = self.root / "set" / "data-00000-of-00001.arrow"
        data.write_bytes(data.read_bytes()[:-400])
        result = dump(self.root / "set")
        self.assertEqual(result.returncode, 1)
        self.assertIn("data-00000-of-00001.arrow", result.stdout + result.stderr)


# ---- public datasets over HTTP ----

class Hub(BaseHTTPRequestHandler):
    """A server of the rows API that answers "busy" every third time."""
    rows, seen, busy = [], [], True

    def log_message(self, *_):
        pass

    def reply(self, status, value, **headers):
        body = json.dumps(value).encode()
        self.send_response(status)
        for key, text in headers.items():
            self.send_header(key.replace("_", "-"), text)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):  # pylint: disable=invalid-name
        url = urlparse(self.path)
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        self.seen.append((self.path, self.headers.get("Authorization")))
        if self.busy and len(self.seen) % 3 == 1:
            self.reply(429, {"error": "too many requests"}, Retry_After="0")
        elif query.get("dataset") == "gated/set" and not self.headers.get("Authorization"):
            self.reply(401, {"error": "The dataset does not exist, or is not accessible."})
        elif url.path == "/splits":
            self.reply(200, {"splits": [{"dataset": query["dataset"], "config": "default",
                                         "split": split} for split in ("train", "test")]})
        elif url.path == "/rows":
            first, length = int(query["offset"]), int(query["length"])
            if length > 100:
                return self.reply(422, {"error": "length must not exceed 100"})
            part = list(enumerate(self.rows))[first:first + length]
            self.reply(200, {"features": [], "num_rows_total": len(self.rows), "rows": [
                {"row_idx": i, "row": row, "truncated_cells": []} for i, row in part]})
        else:
            self.reply(404, {"error": "Not found."})
        return None


def http_is_missing():
    return "libcurl is not installed" in dump("hub", "dataset=a/b").stderr


@unittest.skipIf(http_is_missing(), "libcurl is not installed")
class PublicDatasets(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="ipw-hub-")
        self.addCleanup(scratch.cleanup)
        Hub.rows = [{"question": f"Wer ist Nr. {i}? é \U0001F600", "options": ["x", "y"],
                     "answer": "AB"[i % 2], "question_id": i, "category": "c"} for i in range(230)]
        Hub.seen = []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.base = f"base_url=http://127.0.0.1:{self.server.server_port}"
        self.env = {"XDG_CACHE_HOME": scratch.name, "HF_TOKEN": "", "no_proxy": "127.0.0.1"}

    def test_preset_is_downloaded_then_read_from_cache(self):
        arguments = ("mmlu-pro", self.base, "retry_delay=0")
        rows, summary = items(*arguments, env=self.env)
        self.assertEqual((len(rows), summary["count"], summary["grader"]), (230, 230, "choice"))
        self.assertEqual(rows[229]["problem"],
                         "Wer ist Nr. 229? é \U0001F600\n\nA. x\nB. y")
        self.assertEqual([row["answer"] for row in rows[:4]], ["A", "B", "A", "B"])
        asked = len(Hub.seen)
        self.assertEqual(asked, 5)  # three pages, and busy twice
        self.assertEqual(items(*arguments, env=self.env)[0], rows)
        self.assertEqual(len(Hub.seen), asked)

    def test_config_and_split_are_requested(self):
        rows, _ = items("hub", "dataset=some/set", self.base, "retry_delay=0", "limit=3",
                        env=self.env)
        self.assertEqual(len(rows), 3)
        self.assertTrue(any("config=default&split=test" in path for path, _ in Hub.seen))

    def test_gated_dataset_needs_token(self):
        arguments = ("hub", "dataset=gated/set", "config=c", "split=s", self.base, "retry_delay=0")
        result = dump(*arguments, env=self.env)
        self.assertEqual(result.returncode, 1)
        self.assertIn("set HF_TOKEN", result.stderr)
        items(*arguments, "limit=1", env={**self.env, "HF_TOKEN": "hf_secret"})
        self.assertEqual(Hub.seen[-1][1], "Bearer hf_secret")

    def test_unreachable_server_is_an_error(self):
        self.server.shutdown()
        self.server.server_close()
        result = dump("hub", "dataset=a/b", "config=c", "split=s", self.base, "retry_delay=0",
                      "tries=2", env=self.env)
        self.assertEqual(result.returncode, 1)
        self.assertIn("127.0.0.1", result.stderr)


if __name__ == "__main__":
    unittest.main()
