#!/usr/bin/env python3
# test: real time
"""Command-line tests of ipw analyze: results, text output, bad input, unfinished runs."""

import csv
import io
import json
import math
import os
import re
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from machines import Intel, Machine  # noqa: E402
from profiling import Run  # noqa: E402
from program import MachineTest, ipw  # noqa: E402
from rundirs import MODEL, outcomes_of, query, write_run  # noqa: E402

ALL = ["quality", "efficiency", "latency", "accuracy", "regression", "scaling", "outliers"]
ARROW = "data-00000-of-00001.arrow"


def profiled(machine, *more, out="out", queries=30, model="echo:1b"):
    """Profiles with the null client; returns the run directory."""
    rows = [{"problem": "word " * (1 + 11 * i % 30), "answer": "word", "subject": "xy"[i % 2]}
            for i in range(queries)]
    file = machine.put("/questions.jsonl", "\n".join(map(json.dumps, rows)))
    done = ipw(machine, "profile", "--client", "null", "--model", model, "--dataset", file,
               "--client-param", "answer=echo,ttft_ms=1,tokens_per_s=5000", "--idle", "0", "--retries",
               "0", "--warmup-queries", "0", "--grader", "contains", "--output-dir",
               machine.root / out, "--overwrite", "--json", *more)
    assert done.stdout, done.stderr
    return Path(json.loads(done.stdout)["output_dir"])


class AnalyzeTest(MachineTest):
    def setUp(self):
        self.on = self.machine(Machine)

    def analyze(self, *words, code=0):
        self.done = ipw(None, "analyze", *words)
        self.assertEqual(self.done.returncode, code, self.done.stdout + self.done.stderr)
        return self.done.stdout

    def read(self, *words, code=0):
        return json.loads(self.analyze(*words, "--json", code=code))

    def assertErrorMessage(self, *parts):
        self.assertEqual(self.done.stderr.count("\n"), 1, self.done.stderr)
        self.assertTrue(self.done.stderr.startswith("ipw analyze: "), self.done.stderr)
        for part in parts:
            self.assertIn(part, self.done.stderr)


class Results(AnalyzeTest):
    @classmethod
    def setUpClass(cls):
        cls.measured = Intel(40)
        cls.addClassCleanup(cls.measured.close)
        cls.path = cls.profile_slowly()

    @classmethod
    def profile_slowly(cls, *more, out="out"):
        """Profiles slowly enough for the counter to change."""
        return profiled(cls.measured, "--client-param", "ttft_ms=12", *more, out=out)

    def test_files_and_json_output_are_equal(self):
        got = self.read(self.path)
        self.assertEqual(list(got), [str(self.path)])
        self.assertEqual(list(got[str(self.path)]), ALL)
        for name in ALL:
            self.assertEqual(json.loads((self.path / f"analysis/{name}.json").read_text()),
                             got[str(self.path)][name])
        for result in got[str(self.path)].values():
            self.assertEqual(set(result), {"analysis", "summary", "data", "warnings"})
        self.assertEqual([p.name for p in (self.path / "analysis").iterdir()
                          if not p.name.endswith(".json")], [])

    def test_output_is_deterministic(self):
        self.assertEqual(self.analyze(self.path, "--json"), self.analyze(self.path, "--json"))
        self.assertEqual(self.analyze(self.path, "-v"), self.analyze("-v", self.path))

    def test_analysis_option_selects_analyses(self):
        got = self.read(self.path, "--analysis", "latency,quality")[str(self.path)]
        self.assertEqual(list(got), ["latency", "quality"])
        self.assertNotIn(" outliers", self.analyze(self.path, "--analysis", "latency"))

    def test_text_output(self):
        text = self.analyze(self.path)
        for name in ALL:
            self.assertRegex(text, rf"\n   {name} +\S")
        self.assertIn("30 queries to 'echo:1b'", text)
        self.assertNotIn("total tokens vs energy", text)
        whole = self.analyze(self.path, "-v")
        for name in ALL:
            self.assertIn(f"\n {name}\n", whole)
        self.assertIn("total tokens vs energy", whole)
        self.assertIn("p value", whole)

    def test_text_fits_one_screen(self):
        lines = self.analyze(self.path, "--analysis", ",".join(ALL)).splitlines()
        self.assertLessEqual(len(lines), 25)
        self.assertLessEqual(max(len(line) for line in lines if str(self.path) not in line), 80, "\n".join(lines))

    def test_quality_reports_evidence_of_energy(self):
        checks = outcomes_of(self.read(self.path)[str(self.path)]["quality"])
        known = [r["ipw"]["energy"] for r in Run(self.path).records().values()
                 if r["ipw"]["energy"]["joules"] is not None]  # the fake counter may not have changed
        short = sum(energy["low_confidence"] for energy in known)
        self.assertIn(f"{len(known)} of 30 completed queries" if known else "unknown for all 30",
                      checks["energy_unknown"][1])
        if known:
            self.assertEqual(checks["estimated_energy"][0], "good")
            self.assertIn(f"{short} of {len(known)} queries are shorter",
                          checks["low_confidence"][1])
        self.assertEqual(checks["no_baseline"][0], "warning")

    def test_unwritable_results_are_reported(self):
        copy = self.on.root / "copy"
        shutil.copytree(self.path, copy)
        shutil.rmtree(copy / "analysis", ignore_errors=True)
        (copy / "analysis").write_text("in the way")
        got = self.read(copy)
        self.assertEqual(list(got[str(copy)]), ALL)
        self.assertIn("results not written", self.done.stderr)
        self.assertEqual(self.done.stderr.count("\n"), 1, self.done.stderr)

    def test_results_are_written_atomically(self):
        """A result file is renamed into place."""
        before = (self.path / "analysis/latency.json").stat().st_ino
        self.analyze(self.path)
        self.assertNotEqual((self.path / "analysis/latency.json").stat().st_ino, before)

    def test_two_runs_are_compared_across(self):
        other = self.profile_slowly("--concurrency", "4", out="two")
        got = self.read(self.path, other)
        self.assertEqual(list(got), [str(self.path), str(other), "across"])
        runs = got["across"]["data"]["runs"]
        self.assertEqual([run["concurrency"] for run in runs], [1, 4])
        self.assertEqual(got["across"]["data"]["against"]["output_tokens_per_s_of_concurrency"]["count"], 2)
        self.assertEqual(got["across"]["warnings"], [])
        for run, path in zip(runs, (self.path, other)):
            records = Run(path).records().values()
            joules = [r["ipw"]["energy"]["joules"] for r in records if r["ipw"]["energy"]["joules"]]
            if joules:  # otherwise the fake counter never changed
                self.assertAlmostEqual(run["joules_per_query"], sum(joules) / len(joules), places=9)
            else:
                self.assertIsNone(run["joules_per_query"])
        self.assertIn("\n comparison; ± with 5 % between runs (assumed)\n", self.analyze(self.path, other))

    def test_different_machines_are_reported(self):
        other = self.on.root / "other"
        shutil.copytree(self.path, other)
        summary = json.loads((other / "summary.json").read_text())
        summary["hardware_label"] = "H100"
        (other / "summary.json").write_text(json.dumps(summary))
        warnings = self.read(self.path, other)["across"]["warnings"]
        self.assertEqual(len(warnings), 1)
        self.assertIn("2 different machines", warnings[0])

    def test_bad_run_among_good_ones_is_reported(self):
        got = self.read(self.path, self.on.root / "nothing", code=1)
        self.assertEqual(list(got), [str(self.path)])
        self.assertErrorMessage("no such directory")


class Unfinished(AnalyzeTest):
    def test_run_without_summary(self):
        path = profiled(self.on)
        for name in ("summary.json", ARROW, "state.json", "dataset_info.json"):
            (path / name).unlink()
        with open(path / "records.jsonl", "r+", encoding="utf-8") as file:
            lines = file.readlines()
            queries = [line for line in lines if '"kind":"query"' in line][:12]
            file.seek(0)
            file.truncate()
            file.writelines([lines[0], *queries[:6], "{broken\n", *queries[6:], '{"kind":"query","key'])
        text = self.analyze(path)
        self.assertIn("the run is unfinished; 12 records", text)
        self.assertIn("is unfinished", text)
        got = self.read(path)[str(path)]
        self.assertEqual(got["latency"]["summary"]["queries"], 12)
        self.assertEqual(got["quality"]["summary"]["records"], "journal")
        self.assertIn("energy is known for none of 12", got["efficiency"]["summary"]["not_enough_data"])
        self.assertTrue(any("the first is line 8" in w for w in got["quality"]["warnings"]),
                        got["quality"]["warnings"])

    def test_journal_newer_than_arrow_files_is_read(self):
        """A resumed run that was killed: its Arrow files only have the first part."""
        path = profiled(self.on, "--max-queries", "10")
        lines = (path / "records.jsonl").read_text().splitlines()
        query = json.loads(next(line for line in lines if '"kind":"query"' in line))
        query["key"] = query["ipw"]["key"] = "q000010"
        query["ipw"]["index"] = 10
        with open(path / "records.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps(query, separators=(",", ":")) + "\n")
        later = (path / ARROW).stat().st_mtime + 10
        os.utime(path / "records.jsonl", (later, later))
        self.assertEqual(self.read(path)[str(path)]["quality"]["summary"]["queries"], 11)

    def test_run_with_one_record(self):
        path = profiled(self.on, queries=1)
        got = self.read(path)[str(path)]
        self.assertIn("two completed queries", got["regression"]["summary"]["not_enough_data"])
        self.assertEqual(got["latency"]["data"]["times"]["latency_s"]["count"], 1)
        self.assertIsNone(got["latency"]["data"]["times"]["latency_s"]["std"])
        self.assertEqual(sorted(p.name for p in (path / "analysis").iterdir()),
                         ["accuracy.json", "latency.json", "quality.json"])

    def test_run_with_all_queries_failed(self):
        path = profiled(self.on, "--client-param", "fail_every=1", queries=5)
        got = self.read(path)[str(path)]
        for name in ALL[1:]:
            self.assertEqual(got[name]["summary"], {"not_enough_data": "all 5 queries failed"})
        self.assertEqual(got["quality"]["summary"]["failed"], 5)
        self.assertEqual(sum(f["queries"] for f in got["quality"]["data"]["failures"]), 5)
        self.analyze(path, "--analysis", "latency", code=1)

    def test_run_with_some_queries_failed(self):
        path = profiled(self.on, "--client-param", "fail_every=3")
        got = self.read(path)[str(path)]
        failed = sum(r["ipw"]["status"] == "failed" for r in Run(path).records().values())
        self.assertGreater(failed, 0)
        self.assertEqual(got["quality"]["summary"]["failed"], failed)
        self.assertEqual(got["latency"]["data"]["times"]["latency_s"]["count"], 30 - failed)
        self.assertEqual(got["accuracy"]["summary"]["failed_queries"], failed)


class SyntheticRunTest(unittest.TestCase):
    """Tests on runs whose every figure is known."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="ipw-analyze-")
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name)


class Labels(SyntheticRunTest):
    def test_units_are_on_values_not_labels(self):
        run = write_run(self.root / "run", [query(i, latency=0.012 + 0.001 * i) for i in range(6)])
        said = ipw(None, "analyze", run, "-v").stdout
        self.assertRegex(said, r"\n +latency +6 +14\.50 ms")
        self.assertRegex(said, r"\n +itl median +6 ")
        self.assertNotRegex(said, r"(latency|first token|prefill|decode) s\b")
        self.assertNotRegex(said, r"itl ms\b")

    def test_counts_have_no_unit(self):
        """Even in the group of a model whose name starts like that of a figure."""
        lines = [json.loads(json.dumps(query(i, correct=i % 2)).replace(MODEL, "ipw-1b")) for i in range(6)]
        lines += [json.loads(json.dumps(query(6, joules=None, failed=True)).replace(MODEL, "ipw-1b"))]
        said = ipw(None, "analyze", write_run(self.root / "run", lines, model="ipw-1b"), "-v", "--analysis", "accuracy").stdout
        self.assertRegex(said, r"\n +ipw-1b +ipw-1b +3 +3 +1 +0 +6 +50\.0 % ")
        self.assertRegex(said, r"\n   failed queries +1\n")


class Formats(SyntheticRunTest):
    """CSV and Markdown of several directories, against the JSON."""

    def setUp(self):
        super().setUp()
        self.runs = [write_run(self.root / f"run.{n}", [query(i, joules=5 + n + i, tokens=10 + i, correct=i % 2)
                                                        for i in range(8)]) for n in (1, 2)]
        self.report = json.loads(self.output("json"))

    def output(self, form, *more):
        done = ipw(None, "analyze", *self.runs, "--format", form, *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def at(self, row):
        found = self.report[row["source"]][row["result"]] if row["source"] else self.report[row["result"]]
        while row["path"] and not isinstance(found, (str, float, int, bool, type(None))):
            # A key may have dots of its own, as the name of a model does.
            name = max((key for key in (found if isinstance(found, dict) else map(str, range(len(found))))
                        if row["path"] == key or row["path"].startswith(key + ".")), key=len)
            found, row["path"] = found[name if isinstance(found, dict) else int(name)], row["path"][len(name) + 1:]
        return found

    def test_csv_has_every_figure_of_every_directory(self):
        rows = list(csv.DictReader(io.StringIO(self.output("csv"))))
        self.assertEqual(list(rows[0]), ["source", "result", "path", "value", "unit", "error", "low", "high"])
        self.assertEqual(list(dict.fromkeys(row["source"] for row in rows)), [*map(str, self.runs), ""])
        for run in map(str, self.runs):
            self.assertEqual(list(dict.fromkeys(row["result"] for row in rows if row["source"] == run)),
                             list(self.report[run]))
        for row in rows:
            value, expected = row["value"], self.at(row)
            if isinstance(expected, (int, float)) and not isinstance(expected, bool):
                self.assertTrue(math.isclose(float(value), expected, rel_tol=1e-8), (row, expected))
            else:
                self.assertEqual(value, {None: "", True: "true", False: "false"}.get(expected, expected), row)

    def test_csv_has_errors_and_intervals(self):
        rows = {(row["source"], row["path"]): row for row in csv.DictReader(io.StringIO(self.output("csv")))}
        for run in map(str, self.runs):
            summary, row = self.report[run]["efficiency"]["summary"], rows[run, "summary.joules_per_output_token"]
            for bound, expected in zip((row["low"], row["high"]), summary["joules_per_output_token_interval_95"]):
                self.assertTrue(math.isclose(float(bound), expected, rel_tol=1e-8))
            self.assertEqual(row["unit"], "J")

    def test_markdown_has_a_section_per_directory_and_analysis(self):
        # A temporary folder may have special characters in its name.
        headings = re.findall(r"(?m)^(##?) (.*)$", self.output("md").replace("\\", ""))
        expected = [heading for run in map(str, self.runs)
                    for heading in (("#", run), *(("##", name) for name in self.report[run]))]
        # Below the title of a result over all, its groups have the level of an analysis.
        self.assertEqual(headings[:len(expected) + 1], [*expected, ("#", "across")])

    def test_suffix_of_the_file_gives_the_format(self):
        for form in ("json", "csv", "md"):
            done = ipw(None, "analyze", *self.runs, "-o", self.root / f"out.{form}")
            self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
            self.assertEqual((self.root / f"out.{form}").read_text(), self.output(form))


class Findings(SyntheticRunTest):
    def test_findings_fit_one_screen(self):
        """40 queries, half of them correct, at 5 J plus 0.5 J per token."""
        lines = [query(i, joules=5 + 0.5 * (10 + i % 20), tokens=10 + i % 20, correct=i % 2) for i in range(40)]
        text = ipw(None, "analyze", write_run(self.root / "run", lines, busy=10.0)).stdout
        self.assertLessEqual(text.count("\n"), 25, text)
        self.assertLessEqual(max(len(line) for line in text.splitlines() if str(self.root) not in line), 80)
        words = " ".join(text.split())
        self.assertIn("50.0 % correct", words)
        self.assertRegex(words, r"regression 500(\.\d+)?( ± [\d.]+)? mJ per output token \(r² 1\.00\)")

    def test_records_of_layers_and_commands_have_no_token_fit(self):
        """Windows of layers and runs of a command differ by their settings: no fit per token and no accuracy."""
        for kind, unit, units in (("layers", "window", "windows"), ("run", "run", "runs")):
            path = write_run(self.root / kind, [query(i, joules=10.0 - i, tokens=20 + i) for i in range(4)], kind=kind)
            done = ipw(None, "analyze", path, "-v")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotRegex(done.stdout, r"completed (queries|answers)|\d queries\b")
            done = ipw(None, "analyze", path, "--json")
            found = json.loads(done.stdout)[str(path)]
            for name in ("accuracy", "regression", "scaling"):
                self.assertEqual(found[name]["summary"], {"not_enough_data": "needs requests to a model: the records of "
                                                          f"`ipw {kind}` are {units}"})
            self.assertEqual(found["efficiency"]["summary"]["unit"], unit)
            self.assertRegex(ipw(None, "analyze", path).stdout, rf"efficiency +8\.50 ± [\d.]+ J per {unit},")
        asked = write_run(self.root / "asked", [query(i, joules=10.0 + i, tokens=20 + i) for i in range(4)])
        self.assertRegex(ipw(None, "analyze", asked).stdout, r"efficiency +11\.50 ± [\d.]+ J per query,")

    def test_slopes_have_units(self):
        lines = [query(i, joules=5 + 0.5 * (10 + i % 20) + i % 3, tokens=10 + i % 20) for i in range(40)]
        text = ipw(None, "analyze", write_run(self.root / "run", lines), "-v", "--analysis", "regression").stdout
        self.assertRegex(text, r"output tokens vs energy .*\d ± [\d.]+ mJ\b.* ± [\d.]+ J\b")

    def test_rounding_errors_make_no_outliers(self):
        """Watts equal up to the last bit have no outlier; a value twice as large is one, with a finite z."""
        lines = [query(i, joules=10 * (1 + 2e-16 * (i % 3))) for i in range(40)]
        path = write_run(self.root / "even", lines)
        rows = json.loads(ipw(None, "analyze", path, "--analysis", "outliers", "--json").stdout)[str(path)]["outliers"]["data"]
        self.assertEqual([row["beyond_z"] for row in rows.values()], [0] * len(rows))
        lines[7] = query(7, joules=20)
        path = write_run(self.root / "one", lines)
        row = json.loads(ipw(None, "analyze", path, "--analysis", "outliers", "--json").stdout)[str(path)]["outliers"]["data"]["joules"]
        self.assertEqual((row["beyond_z"], row["queries"][0]["key"]), (1, "q000007"))
        self.assertAlmostEqual(row["queries"][0]["z"], 1000, places=6)


def wilson(right, count):
    """Wilson's 95 % interval of a proportion."""
    z, share = 1.959963984540054, right / count
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return middle - half, middle + half


class Conclusions(SyntheticRunTest):
    """The conclusion at the top of the output."""

    def run_of(self, name, joules, right, count=40, spread=0.5, failed=0, **facts):
        """Energies alternate between `joules` + `spread` and - `spread`; the first `right` of `count` are correct."""
        lines = [query(i, joules=joules + (spread if i % 2 else -spread), correct=i < right) for i in range(count)]
        lines += [query(count + i, joules=None, failed=True) for i in range(failed)]
        return write_run(self.root / name, lines, **facts)

    def text_of(self, *words):
        text = ipw(None, "analyze", *words).stdout
        self.assertLessEqual(text.count("\n"), 25, text)
        for line in text.splitlines():
            self.assertTrue(len(line) <= 80 or str(self.root) in line, line)
        return text

    def sentence(self, *words):
        return " ".join(self.text_of(*words).strip().split("\n\n")[0].split())

    def test_duplicate_run_is_analyzed_once(self):
        first, second = self.run_of("first", 12, 30), self.run_of("second", 13, 30)
        done = ipw(None, "analyze", first, first, second, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([key for key in json.loads(done.stdout) if key != "across"], [str(first), str(second)])

    def test_conclusion_of_one_run(self):
        low, high = wilson(30, 40)
        path = self.run_of("one", 12, 30, failed=2)
        self.assertRegex(self.sentence(path), re.escape("tiny.model:1b on H100: 75.0 % correct (95 % CI: "
                         f"{100 * low:.1f} % to {100 * high:.1f} %) at 12.00 ± 0.60 J per query (measured (counter)), "
                         "median latency 1.000 s; 2 of 42 failed; ") + r"\d warnings\.")
        self.assertLess(self.text_of(path).index("% correct"), self.text_of(path).index(" quality "))

    def test_conclusion_without_completed_queries(self):
        path = write_run(self.root / "none", [query(i, joules=None, failed=True) for i in range(5)])
        self.assertRegex(self.sentence(path), r"^tiny.model:1b on H100: nothing was completed; ")
        path = write_run(self.root / "bare", [query(i, joules=None) for i in range(5)])
        self.assertRegex(self.sentence(path), r"^tiny.model:1b on H100: unknown energy, median latency 1\.000 s; ")

    def test_conclusion_names_most_accurate_and_cheapest(self):
        """40 of 40 against 10 of 40 correct, and 10 J against 2 J: both significant."""
        good, cheap = self.run_of("good", 10, 40, concurrency=1), self.run_of("cheap", 2, 10, concurrency=8)
        self.assertEqual(self.sentence(good, cheap),
                         "concurrency 1: most accurate, 100 %, 75.0 points more than concurrency 8, "
                         "10.00 J per query; concurrency 8: cheapest, 2.000 J per query, 5.0 times less than "
                         "concurrency 1, 25.0 % correct. Energies measured (counter), ±3.0 % common to all, cancels in "
                         "differences.")
        rows = [line.split()[:6] for line in self.text_of(good, cheap).splitlines() if line.startswith("   *  ")]
        self.assertEqual(rows, [["*", "concurrency", "1", "100", "%", "10.00"], ["*", "concurrency", "8", "25.0", "%", "2.00"]])

    def test_headings_of_the_comparison(self):
        """Those of record.def: of queries J/query; a run of a command is not a query."""
        for kind, energy in ((None, "J/query"), ("run", "energy")):
            runs = [write_run(self.root / f"{kind}{joules}", [query(i, joules=joules) for i in range(5)], kind=kind)
                    for joules in (1, 2)]
            heads = [line.split() for line in self.text_of(*runs).splitlines() if " latency " in line]
            self.assertIn(["run", "accuracy", energy, "latency", "tok/s"], heads)

    def test_conclusion_has_the_verdicts_of_compare(self):
        """With one run a side, a factor of two is decided, 2 and 10 % are not; 1 of 40 answers is no evidence."""
        for right, joules in ((20, 10.2), (21, 11), (38, 20)):
            a = self.run_of(f"a{right}", 10, 20, spread=1, concurrency=1)
            b = self.run_of(f"b{right}", joules, right, spread=1, concurrency=2)
            report = json.loads(ipw(None, "compare", a, b, "--json").stdout)["comparisons"][0]["metrics"]
            energy = report["energy_per_query"]
            said, less = self.sentence(a, b), f"{100 * (1 - 10 / joules):.1f} % less"
            if joules == 20:
                self.assertEqual(energy["verdict"], "worse")
                self.assertIn("2.0 times less than concurrency 2, 50.0 % correct", said)
                self.assertEqual(report["accuracy"]["verdict"], "better")
                self.assertIn("45.0 points more than concurrency 1, 20.00 J per query", said)
            else:
                self.assertEqual(energy["verdict"], "not decided")
                self.assertEqual(energy["statement"], f"higher in this run by {10 * joules - 100:.0f} %; "
                                                      "one run a side: not decided")
                self.assertIn(f"cheapest, 10.00 J per query, {less} than concurrency 2 in this run "
                              "(one run a side: not decided)", said)
            if right == 21:
                self.assertIn("2.5 points more than concurrency 1 in this run (no evidence of a difference)", said)

    def test_conclusion_names_runs_of_equal_cost(self):
        runs = [self.run_of(f"run{at}", joules, right, spread=1, concurrency=at)
                for at, joules, right in ((1, 20, 40), (2, 10, 20), (3, 10.1, 22))]
        self.assertIn("concurrency 2: cheapest, 10.00 J per query, 2.0 times less than concurrency 1, "
                      "not distinguishable from concurrency 3, 50.0 % correct", self.sentence(*runs))

    def test_conclusion_without_energy_or_accuracy(self):
        runs = [write_run(self.root / f"run{at}", [query(i, joules=None) for i in range(5)], concurrency=at) for at in (1, 2)]
        self.assertEqual(self.sentence(*runs), "energy and accuracy unknown.")
        runs[0] = write_run(self.root / "more", [query(i, joules=4 + i % 2) for i in range(6)], concurrency=4)
        self.assertIn("concurrency 4: cheapest, 4.500 J per query. ", self.sentence(*runs))

    def test_conclusion_of_many_runs_fits_one_screen(self):
        runs = [self.run_of(f"run{at}", 10 + at, 30, concurrency=at, failed=3, dataset=f"dataset-{at}-of-a-long-name")
                for at in range(12)]
        text = self.text_of(*runs)
        self.assertIn("6 more runs: -v shows them", text)
        self.assertRegex(text, r"\n   quality +warnings in 12 of 12 runs\n")
        whole = ipw(None, "analyze", "-v", *runs).stdout
        for at in range(12):
            self.assertRegex(whole[:4000], rf"\n   [* ]  dataset-\d…\w+ {at} +3 +75\.0 % +{10 + at}\.\d+ ± ")


class Throttling(SyntheticRunTest):
    HEAD = "t_s,sensor,device,channel,scope,quantity,unit,value,sum,covered,t_plus_minus_s\n"

    def check(self, rows):
        """The check of clock limits of a run with these samples."""
        run = write_run(self.root / f"run{len(list(self.root.iterdir()))}", [query(i) for i in range(3)])
        with open(run / "samples.csv", "w") as file:
            file.write(self.HEAD)
            file.writelines(f"{at / 10},nvml:0,gpu0,throttle,none,throttle,bits,{bits},{tail}\n" for at, (bits, tail) in enumerate(rows))
        found = json.loads(ipw(None, "analyze", run, "--analysis", "quality", "--json").stdout)[str(run)]
        return outcomes_of(found["quality"])["clocks_limited"]

    def test_clock_limits(self):
        self.assertEqual(self.check([]), ("unknown", "no device reports it"))
        self.assertEqual(self.check([(0, "")] * 40), ("good", "in none of 40 samples"))
        check = self.check([(0, "")] * 30 + [(1, "")] * 6 + [(2, "")] * 4)
        self.assertEqual(check, ("warning", "clocks limited in 25.0 % of 40 samples: power, thermal"))

    def test_large_sample_file_is_subsampled(self):
        """Samples are read from the whole file."""
        tail = "0" * 1000  # makes each line long, so that the file is large
        check = self.check([(0, tail)] * 63_000 + [(2, tail)] * 7_000)
        self.assertEqual(check[0], "warning")
        share, samples = re.fullmatch(r"clocks limited in ([\d.]+) % of (\d+) samples, evenly spaced: thermal", check[1]).groups()
        self.assertAlmostEqual(float(share), 10, delta=1)
        self.assertTrue(20_000 < int(samples) < 70_000, samples)


class BadInput(AnalyzeTest):
    def test_usage_errors(self):
        self.analyze(code=2)
        self.assertErrorMessage("missing run directory")
        self.analyze("x", "--analysis", "latancy", code=2)
        self.assertErrorMessage("did you mean 'latency'?")
        self.analyze("x", "--option", "skip_zeros=yes", code=2)
        self.assertErrorMessage("skip_zeroes")
        self.analyze("x", "--analysis", "", code=2)

    def test_missing_run(self):
        for path, words in ((self.on.root / "nothing", "no such directory"),
                            (self.on.put("/file", ""), "neither a run directory nor"),
                            (self.on.root, "not a run directory")):
            self.assertEqual(self.analyze(path, code=1), "")
            self.assertErrorMessage(words, str(path))
        self.assertEqual(self.read(self.on.root / "nothing", code=1), {})

    def test_run_without_records(self):
        path = self.on.put("/empty/records.jsonl", '{"kind":"run","format":1}').parent
        self.analyze(path, code=1)
        self.assertErrorMessage("no record")
        (path / "records.jsonl").write_text('{"kind":"run"}\nnonsense\n{"also"\n')
        self.analyze(path, code=1)
        self.assertErrorMessage("the first is line 2")

    def test_warns_of_later_format(self):
        path = profiled(self.on, queries=3)
        (path / ARROW).unlink()
        text = (path / "records.jsonl").read_text()
        (path / "records.jsonl").write_text(text.replace('"format":1', '"format":9', 1))
        self.assertIn("has format 9", self.analyze(path))

    def test_damaged_arrow(self):
        path = profiled(self.on)
        whole = (path / ARROW).read_bytes()
        for damaged, words in ((whole[:-2000], "truncated"), (b"", "empty"), (b"x" * 4000, "not an Arrow")):
            (path / ARROW).write_bytes(damaged)
            text = self.analyze(path)  # the journal is complete
            self.assertIn("the journal is read in place of the Arrow files", text)
            self.assertIn(words, text)
        journal = (path / "records.jsonl").rename(path / "away")
        for damaged, words in ((whole[:-2000], "after record 0"), (b"", "empty")):
            (path / ARROW).write_bytes(damaged)
            self.assertEqual(self.analyze(path, code=1), "")
            self.assertErrorMessage(words, ARROW)
        journal.rename(path / "records.jsonl")

    def test_corrupt_arrow_bytes_do_not_crash(self):
        """A corrupt byte is reported, or the figures are still there.  A fuzz target tries more of them."""
        path = profiled(self.on, queries=3)
        whole = (path / ARROW).read_bytes()
        (path / "records.jsonl").unlink()
        step = max(1, len(whole) // 60)
        for at in range(0, len(whole), step):
            (path / ARROW).write_bytes(whole[:at] + bytes([whole[at] ^ 0x5A]) + whole[at + 1:])
            done = ipw(None, "analyze", path, "--json")
            self.assertIn(done.returncode, (0, 1), f"byte {at}: {done.stderr}")

    def test_damaged_summary(self):
        path = profiled(self.on)
        (path / "summary.json").write_text('{"model": "x", ')
        text = self.analyze(path)
        self.assertIn("summary.json: not JSON", text)
        self.assertIn("byte", text)
        (path / "summary.json").write_text("[]")
        self.assertIn("summary.json: not a JSON object", self.analyze(path))

    def test_dataset_without_metrics(self):
        path = profiled(self.on)
        (path / "records.jsonl").unlink()
        text = (path / ARROW).read_bytes().replace(b"model_metrics", b"model_mectrix")
        (path / ARROW).write_bytes(text)
        self.analyze(path, code=1)
        self.assertErrorMessage("no metrics of any model")


class Listing(AnalyzeTest):
    def test_list_analyses(self):
        listed = json.loads(ipw(None, "list", "analyses", "--json").stdout)["analyses"]
        self.assertEqual([row["name"] for row in listed], [*ALL, "agent", "layers", "sweep"])
        self.assertTrue(all(row["available"] for row in listed))
        regression = next(row for row in listed if row["name"] == "regression")
        self.assertEqual([p["name"] for p in regression["parameters"]], ["skip_zeroes"])


if __name__ == "__main__":
    unittest.main()
