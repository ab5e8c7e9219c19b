#!/usr/bin/env python3
"""Missing, empty, unfinished, damaged or odd runs in analyze, plot, report, compare and export: usable data is
reported; otherwise there is a one-line error with the location, exit status 1 and no output file."""

import json
import os
import re
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from program import ipw  # noqa: E402
from rundirs import MODEL, query, write_run  # noqa: E402

PARTS = {part["name"]: part for part in json.loads(ipw(None, "doctor", "--json").stdout)["parts"]}
HAS = {"plot": PARTS["gnuplot"]["available"], "sqlite": PARTS["SQLite"]["available"]}
ARROW = "data-00000-of-00001.arrow"


def each_object(tree):
    if isinstance(tree, dict):
        yield tree
    for child in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from each_object(child)


class BadRuns(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="ipw-bad-runs-")
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name)
        self.good = self.run_of("good")

    def run_of(self, name, queries=None, **facts):
        queries = queries if queries is not None else [
            query(i, joules=10.0 + i % 3, correct=i % 2, tokens=20 + i) for i in range(12)]
        return write_run(self.root / name, queries, **facts)

    def commands(self, path):
        """Each of the five commands, and its output file."""
        out = self.root / "out"
        yield ("analyze", path), None
        if HAS["plot"]:
            yield ("plot", path, "--plot", "ttft,energy", "--format", "svg", "--output-dir", out / "plots"), out / "plots"
        yield ("report", path, "-o", out / "page.html"), out / "page.html"
        yield ("compare", self.good, path), None
        yield ("compare", path, self.good, "--json"), None
        for name in ("jsonl", "csv", "otlp-json"):  # prom only reads the summary
            yield ("export", path, "--to", name), None
        if HAS["sqlite"]:
            yield ("export", path, "--to", "sqlite", "-o", out / "x.db", "--replace"), out / "x.db"

    def assertRefused(self, path, *words, commands=None):
        """Every command (or those given) prints one line with these words, exits with status 1 and writes nothing."""
        (self.root / "out").mkdir(exist_ok=True)
        for command, made in self.commands(path):
            if commands and command[0] not in commands:
                continue
            with self.subTest(command=command):
                done = ipw(None, *command)
                self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
                self.assertEqual(done.stdout, "")
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                self.assertTrue(done.stderr.startswith(f"ipw {command[0]}: "), done.stderr)
                self.assertIn(path.name, done.stderr)
                for word in words:
                    self.assertIn(word, done.stderr)
                self.assertFalse(made and made.exists(), made)

    def assertAccepted(self, path, *words, commands=None):
        """Every command (or those given) succeeds; its output or page has these words."""
        (self.root / "out").mkdir(exist_ok=True)
        for command, _ in self.commands(path):
            if commands and command[0] not in commands:
                continue
            with self.subTest(command=command):
                done = ipw(None, *command)
                self.assertEqual(done.returncode, 0, done.stderr)
                said = done.stdout + done.stderr
                if command[0] == "report":
                    said += (self.root / "out/page.html").read_text()
                for word in words:
                    self.assertIn(word, said)

    def assertExits(self, path, said, **codes):
        """Exit status 0 of every command but those given; if 0, the output has these words."""
        for command, _ in self.commands(path):
            with self.subTest(command=command):
                done = ipw(None, *command)
                self.assertEqual(done.returncode, codes.get(command[0], 0), done.stderr)
                if said and command[0] in ("analyze", "compare") and not done.returncode:
                    self.assertRegex(done.stdout, said)

    def test_exit_statuses(self):
        """As documented in docs/man/ipw.1: doubtful data is reported and is not a failure."""
        (self.root / "out").mkdir()
        self.assertExits(self.run_of("unfinished", whole=False), "is unfinished")
        self.assertExits(self.run_of("one", [query(0, correct=True)]), "")
        self.assertExits(self.run_of("some failed", [query(i, failed=i == 3) for i in range(8)]), "1 of 8")
        # the energy plot is selected by name
        self.assertExits(self.run_of("no energy", [query(i, joules=None) for i in range(8)]), "energy", plot=1)
        self.assertExits(self.run_of("all failed", [query(i, failed=True) for i in range(8)]), "", compare=1, plot=1)
        elsewhere = self.run_of("elsewhere", hardware="H200", host="node2")
        self.assertExits(elsewhere, "")
        done = ipw(None, "analyze", self.good, elsewhere)
        self.assertEqual(done.returncode, 0)
        self.assertIn("2 different machines", done.stdout)
        self.assertIn("different hardware", ipw(None, "compare", self.good, elsewhere).stdout)

    def test_missing_directory(self):
        self.assertRefused(self.root / "nowhere", "no such directory")

    def test_empty_directory(self):
        (self.root / "empty").mkdir()
        self.assertRefused(self.root / "empty", "not a run directory")

    def test_file_instead_of_directory(self):
        path = self.root / "a file"
        path.write_text("hello\n")
        self.assertRefused(path, "neither a run directory nor", commands=("analyze", "plot", "report"))
        self.assertRefused(path, "Not a directory", commands=("compare", "export"))

    def test_run_without_records(self):
        self.assertRefused(self.run_of("none", []), "no record")

    def test_unfinished_run(self):
        path = self.run_of("unfinished", whole=False)
        self.assertAccepted(path, "is unfinished", commands=("analyze", "plot", "report", "compare"))
        self.assertAccepted(path, commands=("export",))

    def test_damaged_journal_lines_are_skipped(self):
        path = self.run_of("damaged")
        lines = (path / "records.jsonl").read_text().splitlines()
        lines[4] = lines[4][:50]
        lines[7] = "nonsense"
        (path / "records.jsonl").write_text("\n".join(lines) + "\n")
        self.assertAccepted(path, "2 damaged lines", "line 5", commands=("analyze", "plot", "report", "export"))
        self.assertAccepted(path, "2 damaged lines in the journal", commands=("compare",))

    def test_journal_without_readable_line(self):
        path = self.run_of("ruined")
        for content, line in ((b'{"kind":"run"}\n{"kind": broken\nxx\n', 2), (bytes(range(256)) * 40, 1)):
            (path / "records.jsonl").write_bytes(content)
            self.assertRefused(path, "no record in", "are damaged", f"the first is line {line}")

    def test_damaged_summary(self):
        path = self.run_of("summary")
        (path / "summary.json").write_text('{"model":\n "x",\n oops}')
        self.assertAccepted(path, "summary.json: not JSON at byte 18, line 3",
                         commands=("analyze", "plot", "report"))
        said = ipw(None, "analyze", path).stdout
        self.assertNotIn("no summary.json", said)
        self.assertRefused(path, "summary.json: not JSON at byte 18, line 3", commands=("export",))

    def test_damaged_arrow(self):
        """Without a journal there is no other data."""
        path = self.root / "arrow"
        path.mkdir()
        for content, words in ((b"", "is empty"), (b"x" * 500, "not an Arrow stream"),
                               (b"\xff\xff\xff\xff\x10\0\0\0" + b"garbage." * 9, "message at byte 0")):
            (path / ARROW).write_bytes(content)
            self.assertRefused(path, ARROW, words)

    def test_arrow_rows_without_bytes(self):
        """328 bytes claim 2^31 - 1 records, of structs without fields: nothing is allocated for them."""
        path = self.root / "claim"
        path.mkdir()
        shutil.copy(Path(__file__).parent.parent / "fixtures/inputs/rows.arrow", path / ARROW)
        self.assertRefused(path, ARROW, "is damaged: a batch of 2147483647 rows in 0 bytes")

    def test_terminal_escapes_in_names_are_neutralized(self):
        """Model, subject and machine are printed with escapes neutralized; JSON escapes them anyway."""
        path = self.run_of("steering", hardware="H\x9b2J")
        for name in ("records.jsonl", "summary.json"):
            text = (path / name).read_text().replace(MODEL, "evil\\u001b[2J\\u001b]0;gone\\u0007model")
            (path / name).write_text(text.replace('"general"', '"law\\u001b[31m"'))
        for command, _ in self.commands(path):
            if command[0] == "export":
                continue
            with self.subTest(command=command):
                done = ipw(None, *command)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual([c for c in done.stdout + done.stderr if (c < " " and c != "\n") or "\x7f" <= c < "\xa0"], [])
        self.assertIn(r"'evil\x1b[2J\x1b]0;gone\x07model' on H\u009b2J", ipw(None, "analyze", path).stdout)
        done = ipw(None, "analyze", path, "--model", "\x1b[2J")
        self.assertIn(r"no model '\x1b[2J'", done.stderr)
        self.assertNotIn("\x1b", done.stderr)

    def test_fifos_in_run_directory_do_not_block(self):
        """Nobody writes to these pipes: opening one would block forever."""
        for name in ("records.jsonl", "summary.json", "samples.csv", "samples-2.csv", "layers.json", ARROW):
            path = self.run_of("with " + name)
            (path / name).unlink(missing_ok=True)
            os.mkfifo(path / name)
            self.assertRefused(path, f"{name} is a pipe, not a regular file")
        path = self.run_of("device")
        (path / "records.jsonl").unlink()
        (path / "records.jsonl").symlink_to("/dev/zero")
        self.assertRefused(path, "records.jsonl is a device, not a regular file")

    def test_does_not_write_through_symlinks(self):
        outside = self.root / "outside"
        outside.mkdir()
        for name in ("efficiency.json", "energy.png", "page"):
            (outside / name).write_text("precious")
        before = {p.name: p.read_text() for p in outside.iterdir()}
        for command, link, target in (
                (("report",), "report.html", outside / "page"),
                (("plot", "--plot", "energy"), "plots", outside),
                (("plot", "--plot", "energy"), "plots/energy.png", outside / "energy.png"),
                (("analyze", "--analysis", "efficiency"), "analysis", outside),
                (("analyze", "--analysis", "efficiency"), "analysis/efficiency.json", outside / "efficiency.json")):
            if not HAS.get(command[0], True):
                continue
            with self.subTest(link=link):
                run = self.run_of("linked " + link.replace("/", " "))
                (run / link).parent.mkdir(exist_ok=True)
                (run / link).symlink_to(target)
                done = ipw(None, command[0], run, *command[1:])
                self.assertEqual(done.returncode, 0 if command[0] == "analyze" else 1, done.stderr)
                self.assertIn(f"{link} is a symbolic link", done.stderr)
                self.assertEqual({p.name: p.read_text() for p in outside.iterdir()}, before)
        latest = self.root / "latest"  # the directory itself may be a symlink
        latest.symlink_to(self.good)
        self.assertEqual(ipw(None, "analyze", latest).returncode, 0)
        self.assertTrue((self.good / "analysis" / "efficiency.json").exists())

    def test_summary_that_is_not_an_object(self):
        path = self.run_of("array")
        (path / "summary.json").write_text("[1, 2]")
        self.assertAccepted(path, "summary.json: not a JSON object", commands=("analyze", "plot", "report"))
        self.assertAccepted(path, "summary.json of ", "cannot be read and is ignored", commands=("compare",))
        self.assertRefused(path, "summary.json: not a JSON object", commands=("export",))

    def test_non_finite_numbers(self):
        """JSON has no NaN: such a line is damaged.  A number that overflows a double is unknown."""
        path = self.run_of("odd")
        text = (path / "records.jsonl").read_text()
        (path / "records.jsonl").write_text(text.replace('"joules": 10.0,', '"joules": NaN,'))
        self.assertAccepted(path, "4 damaged lines", "line 2", commands=("analyze", "plot", "export"))
        (path / "records.jsonl").write_text(text.replace('"joules": 10.0,', '"joules": 1e999,'))
        for command, _ in self.commands(path):
            done = ipw(None, *command)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotRegex(done.stdout.lower(), r"\b(inf|nan|infinity)\b")
        # All prompts have the same length: there is no fit against it.
        laws = json.loads(ipw(None, "analyze", path, "--json").stdout)[str(path)]["scaling"]["data"]["power_laws"]
        self.assertIsNone(laws["joules_of_input_tokens"]["exponent"])

    def test_values_of_wrong_type(self):
        path = self.run_of("strings")
        text = (path / "records.jsonl").read_text()
        for old, new in (('"joules": 10.0', '"joules": {"a": 1}'), ('"total_query_seconds": 1.0', '"total_query_seconds": -5'),
                         ('"output": 2', '"output": 1e3'), ('"subject": "general"', '"subject": [1, {}]'),
                         ('"ipw": {', '"ipw": [], "ipw2": {'), ('"model_metrics": {', '"model_metrics": 7, "x": {')):
            (path / "records.jsonl").write_text(text.replace(old, new))
            for command, _ in self.commands(path):
                done = ipw(None, *command)
                self.assertIn(done.returncode, (0, 1), (old, command, done.stderr))
                self.assertTrue(done.returncode == 0 or done.stderr.startswith(("ipw ", "skipped", "note: ")), done.stderr)

    def test_record_with_list_of_metrics_is_ignored(self):
        """They belong to no model, so the record is not counted."""
        path = self.run_of("list")
        text = (path / "records.jsonl").read_text().splitlines(keepends=True)
        text[3] = text[3].replace('"model_metrics": {', '"model_metrics": [1], "x": {')
        text[4] = text[4].replace('"dataset_metadata": {', '"dataset_metadata": [1], "y": {')
        (path / "records.jsonl").write_text("".join(text))
        self.assertAccepted(path)
        self.assertIn("11 queries", ipw(None, "analyze", path).stdout)

    def test_run_with_only_lists_of_metrics(self):
        path = self.run_of("lists", whole=False)
        text = (path / "records.jsonl").read_text()
        (path / "records.jsonl").write_text(text.replace('"model_metrics": {', '"model_metrics": [1], "x": {'))
        self.assertRefused(path, "no record")

    def test_times_beyond_64_bits(self):
        """In nanoseconds they exceed 64 bits: such queries and samples are not on a time axis."""
        path = self.run_of("times", [query(i, latency=9e8 if i == 2 else 1.0, **({"started_at": 8.9e9} if i in (2, 3) else {}))
                                     for i in range(6)])
        rows = ("-1e300", "1e300", "9.3e9", "0.5", "1.5", "2.5")
        (path / "samples.csv").write_text(
            "t_s,sensor,device,channel,scope,quantity,unit,value,sum,covered,t_plus_minus_s\n" + "".join(
                f"{at},nvml:0,gpu0,power,device,power,W,300,{i},1,\n" for i, at in enumerate(rows)))
        done = ipw(None, "export", path, "--to", "perfetto")
        self.assertEqual(done.returncode, 0, done.stderr)
        trace = json.loads(done.stdout)
        self.assertEqual(trace["otherData"]["queries_without_times"], 2)
        events = [event for event in trace["traceEvents"] if "ts" in event]
        self.assertEqual(len([event for event in events if event["ph"] == "C"]), 3)
        for event in events:
            self.assertTrue(0 <= event["ts"] < 1e8 and 0 <= event.get("dur", 0) < 1e8, event)
        done = ipw(None, "export", path, "--to", "otlp-json")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_report_omits_unreadable_runs(self):
        folder = self.root / "folder"
        runs = {name: self.run_of(f"folder/{name}") for name in ("a ruined", "b", "c", "d none")}
        (runs["a ruined"] / "records.jsonl").write_text("xx\n")
        (runs["d none"] / "records.jsonl").write_text("")
        done = ipw(None, "report", folder)
        self.assertEqual(done.returncode, 1, done.stderr)
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), 2, done.stderr)
        self.assertRegex(lines[0], r"^ipw report: .*a ruined.*damaged")
        self.assertRegex(lines[1], r"^ipw report: .*no records in .*d none")
        page = runs["b"] / "report.html"  # in the first readable one
        self.assertEqual(done.stdout, f"{page}\n")
        self.assertFalse((runs["a ruined"] / "report.html").exists())
        data = json.loads(re.search(r'id="data">(.*?)</script>', page.read_text(), re.S)[1])
        self.assertEqual([Path(run["directory"]).name for run in data["runs"]], ["b", "c"])
        self.assertEqual([f"ipw report: {text}" for text in data["left_out"]], lines)
        self.assertTrue((page.parent / data["runs"][0]["files"][0]["href"]).exists())
        for name in ("b", "c"):
            (runs[name] / "records.jsonl").write_text("")
        page.unlink()
        done = ipw(None, "report", folder)
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (1, "", 4), done.stderr)
        self.assertFalse(page.exists())

    def test_histogram_counts_every_query_once(self):
        """Most prompts have one length, some are longer, a few are outliers."""
        queries = [query(i) for i in range(2600)]
        for i, one in enumerate(queries):
            length = 5000 if i % 400 == 5 else 58 if i in (10, 15) else 10 if i % 5 or i == 7 else 10 + i * 8 % 49
            one["model_metrics"][MODEL]["token_metrics"]["input"] = length
        page = self.root / "page.html"
        done = ipw(None, "report", self.run_of("whole", queries), "-o", page)
        self.assertEqual(done.returncode, 0, done.stderr)
        data = json.loads(re.search(r'id="data">(.*?)</script>', page.read_text(), re.DOTALL)[1])
        found = [one for one in each_object(data) if one.get("key") == "input_tokens" and "counts" in one]
        self.assertEqual(len(found), 1)
        self.assertEqual(sum(found[0]["counts"]), 2600)
        self.assertEqual(found[0]["counts"][-1], 7 if found[0]["beyond"] else 0)

    def test_run_with_one_record(self):
        path = self.run_of("one", [query(0, correct=True)])
        self.assertAccepted(path, commands=("plot", "report", "export", "compare"))
        self.assertAccepted(path, "not enough data", commands=("analyze",))

    def test_run_with_all_queries_failed(self):
        path = self.run_of("failed", [query(i, failed=True, joules=None) for i in range(4)])
        self.assertAccepted(path, "all 4 queries failed", commands=("analyze", "report"))
        self.assertAccepted(path, commands=("export",))
        self.assertRefused(path, "all 4 queries failed", "nothing to compare", commands=("compare",))
        if HAS["plot"]:
            done = ipw(None, "plot", path, "--plot", "ttft,energy")
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertEqual(done.stderr, "skipped: ttft, energy: all 4 queries failed\n")

    def test_mixed_hardware(self):
        other = self.run_of("other", hardware="A100", host="node9")
        self.assertAccepted(other, "different hardware", "A100", commands=("compare",))
        said = ipw(None, "analyze", self.good, other).stdout
        self.assertIn("2 different machines", said)
        page = self.root / "both.html"
        self.assertEqual(ipw(None, "report", self.good, other, "-o", page).returncode, 0)
        self.assertIn("2 different machines", page.read_text())

    def test_warns_of_later_format(self):
        path = self.run_of("later")
        text = (path / "records.jsonl").read_text()
        (path / "records.jsonl").write_text(text.replace('"format": 1', '"format": 9'))
        self.assertAccepted(path, "format 9", commands=("analyze", "plot", "report"))
        self.assertAccepted(path, commands=("compare", "export"))

    def test_directories_instead_of_files(self):
        (self.root / "out").mkdir()
        for name in ("records.jsonl", "summary.json"):
            path = self.run_of(name.split(".")[0])
            (path / name).unlink()
            (path / name).mkdir()
            for command, _ in self.commands(path):
                done = ipw(None, *command)
                self.assertIn(done.returncode, (0, 1))
                if done.returncode:
                    self.assertIn("Is a directory", done.stderr)


if __name__ == "__main__":
    unittest.main()
