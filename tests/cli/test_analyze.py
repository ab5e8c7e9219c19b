#!/usr/bin/env python3
"""ipw analyze from outside: what it writes and prints, bad input, runs that are not finished."""

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
from rundirs import MODEL, query, write_run  # noqa: E402

ALL = ["quality", "efficiency", "latency", "accuracy", "regression", "scaling", "outliers"]
ARROW = "data-00000-of-00001.arrow"
missing = [part for part in json.loads(ipw(None, "doctor", "--json").stdout)["parts"]
           if part["name"] in ("cJSON", "nanoarrow") and not part["available"]]
if missing:
    print(f"skipped: {missing[0]['missing']}")
    sys.exit(77)


def profiled(machine, *more, out="out", queries=30, model="echo:1b"):
    """A run by the null client; gives its directory."""
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

    def assertComplains(self, *parts):
        self.assertEqual(self.done.stderr.count("\n"), 1, self.done.stderr)
        self.assertTrue(self.done.stderr.startswith("ipw analyze: "), self.done.stderr)
        for part in parts:
            self.assertIn(part, self.done.stderr)


class Results(AnalyzeTest):
    @classmethod
    def setUpClass(cls):
        cls.measured = Intel(40)
        cls.addClassCleanup(cls.measured.close)
        cls.path = cls.while_it_counts()

    @classmethod
    def while_it_counts(cls, *more, out="out"):
        """Slow enough for the counter to be seen moving."""
        return profiled(cls.measured, "--client-param", "ttft_ms=12", *more, out=out)

    def test_files_and_json_are_the_same(self):
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

    def test_the_same_again(self):
        self.assertEqual(self.analyze(self.path, "--json"), self.analyze(self.path, "--json"))
        self.assertEqual(self.analyze(self.path, "-v"), self.analyze("-v", self.path))

    def test_some(self):
        got = self.read(self.path, "--analysis", "latency,quality")[str(self.path)]
        self.assertEqual(list(got), ["latency", "quality"])
        self.assertNotIn(" outliers", self.analyze(self.path, "--analysis", "latency"))

    def test_text(self):
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

    def test_one_screen(self):
        lines = self.analyze(self.path, "--analysis", ",".join(ALL)).splitlines()
        self.assertLessEqual(len(lines), 25)
        self.assertLessEqual(max(len(line) for line in lines if str(self.path) not in line), 80, "\n".join(lines))

    def test_evidence(self):
        checks = {c["check"]: c for c in self.read(self.path)[str(self.path)]["quality"]["data"]["checks"]}
        known = [r["ipw"]["energy"] for r in Run(self.path).records().values()
                 if r["ipw"]["energy"]["joules"] is not None]  # the fake's counter may have stood still
        short = sum(energy["low_confidence"] for energy in known)
        self.assertIn(f"{len(known)} of 30 completed queries" if known else "unknown for all 30",
                      checks["energy"]["detail"])
        if known:
            self.assertEqual(checks["method"]["verdict"], "good")
            self.assertIn(f"{short} of {len(known)} queries are shorter",
                          checks["low_confidence"]["detail"])
        self.assertEqual(checks["idle_baseline"]["verdict"], "warning")

    def test_a_place_that_cannot_be_written(self):
        copy = self.on.root / "copy"
        shutil.copytree(self.path, copy)
        shutil.rmtree(copy / "analysis", ignore_errors=True)
        (copy / "analysis").write_text("in the way")
        got = self.read(copy)
        self.assertEqual(list(got[str(copy)]), ALL)
        self.assertIn("results not written", self.done.stderr)
        self.assertEqual(self.done.stderr.count("\n"), 1, self.done.stderr)

    def test_an_interrupted_write_leaves_no_half(self):
        """A result stands under its name whole: it is renamed into place."""
        before = (self.path / "analysis/latency.json").stat().st_ino
        self.analyze(self.path)
        self.assertNotEqual((self.path / "analysis/latency.json").stat().st_ino, before)

    def test_two_runs(self):
        other = self.while_it_counts("--concurrency", "4", out="two")
        got = self.read(self.path, other)
        self.assertEqual(list(got), [str(self.path), str(other), "across"])
        runs = got["across"]["data"]["runs"]
        self.assertEqual([run["concurrency"] for run in runs], [1, 4])
        self.assertEqual(got["across"]["data"]["against"]["output_tokens_per_s_of_concurrency"]["count"], 2)
        self.assertEqual(got["across"]["warnings"], [])
        for run, path in zip(runs, (self.path, other)):
            records = Run(path).records().values()
            joules = [r["ipw"]["energy"]["joules"] for r in records if r["ipw"]["energy"]["joules"]]
            if joules:  # else the fake's counter stood still all the time
                self.assertAlmostEqual(run["joules_per_query"], sum(joules) / len(joules), places=9)
            else:
                self.assertIsNone(run["joules_per_query"])
        self.assertIn("\n comparison\n", self.analyze(self.path, other))

    def test_different_machines_are_reported(self):
        other = self.on.root / "other"
        shutil.copytree(self.path, other)
        summary = json.loads((other / "summary.json").read_text())
        summary["hardware_label"] = "H100"
        (other / "summary.json").write_text(json.dumps(summary))
        warnings = self.read(self.path, other)["across"]["warnings"]
        self.assertEqual(len(warnings), 1)
        self.assertIn("2 different machines", warnings[0])

    def test_a_bad_one_among_good_ones(self):
        got = self.read(self.path, self.on.root / "nothing", code=1)
        self.assertEqual(list(got), [str(self.path)])
        self.assertComplains("no such directory")


class Unfinished(AnalyzeTest):
    def test_without_a_summary(self):
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

    def test_a_journal_that_was_continued(self):
        """A resumed run that was killed: the Arrow files are of its first part."""
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

    def test_one_record(self):
        path = profiled(self.on, queries=1)
        got = self.read(path)[str(path)]
        self.assertIn("two completed queries", got["regression"]["summary"]["not_enough_data"])
        self.assertEqual(got["latency"]["data"]["times"]["latency_s"]["count"], 1)
        self.assertIsNone(got["latency"]["data"]["times"]["latency_s"]["std"])
        self.assertEqual(sorted(p.name for p in (path / "analysis").iterdir()),
                         ["accuracy.json", "latency.json", "quality.json"])

    def test_all_failed(self):
        path = profiled(self.on, "--client-param", "fail_every=1", queries=5)
        got = self.read(path)[str(path)]
        for name in ALL[1:]:
            self.assertEqual(got[name]["summary"], {"not_enough_data": "all 5 queries failed"})
        self.assertEqual(got["quality"]["summary"]["failed"], 5)
        self.assertEqual(sum(f["queries"] for f in got["quality"]["data"]["failures"]), 5)
        self.analyze(path, "--analysis", "latency", code=1)

    def test_some_failed(self):
        path = profiled(self.on, "--client-param", "fail_every=3")
        got = self.read(path)[str(path)]
        failed = sum(r["ipw"]["status"] == "failed" for r in Run(path).records().values())
        self.assertGreater(failed, 0)
        self.assertEqual(got["quality"]["summary"]["failed"], failed)
        self.assertEqual(got["latency"]["data"]["times"]["latency_s"]["count"], 30 - failed)
        self.assertEqual(got["accuracy"]["summary"]["failed_queries"], failed)


class Written(unittest.TestCase):
    """Of runs whose every figure is known."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="ipw-analyze-")
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name)


class Labels(Written):
    def test_a_value_carries_its_unit_and_its_label_none(self):
        run = write_run(self.root / "run", [query(i, latency=0.012 + 0.001 * i) for i in range(6)])
        said = ipw(None, "analyze", run, "-v").stdout
        self.assertRegex(said, r"\n +latency +6 +14\.50 ms")
        self.assertRegex(said, r"\n +itl median +6 ")
        self.assertNotRegex(said, r"(latency|first token|prefill|decode) s\b")
        self.assertNotRegex(said, r"itl ms\b")

    def test_a_count_has_no_unit_whatever_surrounds_it(self):
        """Not even in the group of a model whose name begins like a figure; nor is it hidden by another's name."""
        lines = [json.loads(json.dumps(query(i, correct=i % 2)).replace(MODEL, "ipw-1b")) for i in range(6)]
        lines += [json.loads(json.dumps(query(6, joules=None, failed=True)).replace(MODEL, "ipw-1b"))]
        said = ipw(None, "analyze", write_run(self.root / "run", lines, model="ipw-1b"), "-v", "--analysis", "accuracy").stdout
        self.assertRegex(said, r"\n +ipw-1b +ipw-1b +3 +3 +1 +0 +6 +50\.0 % ")
        self.assertRegex(said, r"\n   failed queries +1\n")


class Findings(Written):
    def test_the_finding_of_each_analysis_fits_a_screen(self):
        """Half of 40 right at 10 J each, 2 J per second, and 0.5 J per token more."""
        lines = [query(i, joules=5 + 0.5 * (10 + i % 20), tokens=10 + i % 20, correct=i % 2) for i in range(40)]
        text = ipw(None, "analyze", write_run(self.root / "run", lines, busy=10.0)).stdout
        self.assertLessEqual(text.count("\n"), 25, text)
        self.assertLessEqual(max(len(line) for line in text.splitlines() if str(self.root) not in line), 80)
        words = " ".join(text.split())
        self.assertIn("50.0 % correct", words)
        self.assertRegex(words, r"regression 500(\.\d+)?( ± [\d.]+)? mJ per output token \(r² 1\.00\)")

    def test_records_that_are_no_requests(self):
        """Windows of layers and runs of a command differ by their settings: no fit per token, and no answers."""
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

    def test_rounding_is_no_spread(self):
        """Equal watts but for the last bit: nothing stands out; one of twice as many does, by a finite z."""
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
    """The 95 % interval of a share."""
    z, share = 1.959963984540054, right / count
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return middle - half, middle + half


class Conclusions(Written):
    """What is said first, above the findings of the analyses."""

    def run_of(self, name, joules, right, count=40, spread=0.5, failed=0, **facts):
        """Joules of `joules` ± `spread` in turn; the first `right` of `count` are correct."""
        lines = [query(i, joules=joules + (spread if i % 2 else -spread), correct=i < right) for i in range(count)]
        lines += [query(count + i, joules=None, failed=True) for i in range(failed)]
        return write_run(self.root / name, lines, **facts)

    def told(self, *words):
        text = ipw(None, "analyze", *words).stdout
        self.assertLessEqual(text.count("\n"), 25, text)
        for line in text.splitlines():
            self.assertTrue(len(line) <= 80 or str(self.root) in line, line)
        return text

    def sentence(self, *words):
        return " ".join(self.told(*words).strip().split("\n\n")[0].split())

    def test_a_run_named_twice_is_analyzed_once(self):
        first, second = self.run_of("first", 12, 30), self.run_of("second", 13, 30)
        done = ipw(None, "analyze", first, first, second, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([key for key in json.loads(done.stdout) if key != "across"], [str(first), str(second)])

    def test_of_a_run(self):
        low, high = wilson(30, 40)
        path = self.run_of("one", 12, 30, failed=2)
        self.assertRegex(self.sentence(path), re.escape("tiny.model:1b on H100: 75.0 % correct (95 % CI: "
                         f"{100 * low:.1f} % to {100 * high:.1f} %) at 12.00 ± 0.60 J per query (measured (counter)), "
                         "median latency 1.000 s; 2 of 42 failed; ") + r"\d of \d\d checks warn\.")
        self.assertLess(self.told(path).index("% correct"), self.told(path).index(" quality "))

    def test_of_nothing(self):
        path = write_run(self.root / "none", [query(i, joules=None, failed=True) for i in range(5)])
        self.assertRegex(self.sentence(path), r"^tiny.model:1b on H100: nothing was completed; ")
        path = write_run(self.root / "bare", [query(i, joules=None) for i in range(5)])
        self.assertRegex(self.sentence(path), r"^tiny.model:1b on H100: unknown energy, median latency 1\.000 s; ")

    def test_which_is_most_accurate_and_which_cheapest(self):
        """40 of 40 against 10 of 40, and 10 J against 2 J: beyond all doubt."""
        good, cheap = self.run_of("good", 10, 40, concurrency=1), self.run_of("cheap", 2, 10, concurrency=8)
        self.assertEqual(self.sentence(good, cheap),
                         "concurrency 1: most accurate, 100 %, 75.0 points more than concurrency 8 (outside the 95 % CI), "
                         "10.00 J per query; concurrency 8: cheapest, 2.000 J per query, 5.0 times less than "
                         "concurrency 1 (outside ±), 25.0 % correct. Energies measured (counter), ±3.0 % common.")
        rows = [line.split()[:6] for line in self.told(good, cheap).splitlines() if line.startswith("   *  ")]
        self.assertEqual(rows, [["*", "concurrency", "1", "100", "%", "10.000"], ["*", "concurrency", "8", "25.0", "%", "2.000"]])

    def test_inside_the_errors(self):
        """The difference is compared with Newcombe's interval, and with 1.96 standard errors of both means."""
        for right, joules in ((20, 10.2), (24, 10.3), (29, 10.4), (30, 10.7)):
            a = self.run_of(f"a{right}", 10, 20, spread=1, concurrency=1)
            b = self.run_of(f"b{right}", joules, right, spread=1, concurrency=2)
            low, high = wilson(right, 40)[0], wilson(20, 40)[1]
            points = "outside" if right / 40 - 0.5 > math.hypot(right / 40 - low, high - 0.5) else "inside"
            error = 1.96 * math.sqrt(40 / 39) / math.sqrt(40)
            energy = "outside" if joules - 10 > math.hypot(error, error) else "inside"
            said = self.sentence(a, b)
            less = f"cheapest, 10.00 J per query, {100 * (1 - 10 / joules):.1f} % less than concurrency 2 ({energy} ±)"
            self.assertIn(less, said)
            self.assertIn(f"most accurate, 50.0 %, as is concurrency 2; and {less}" if right == 20 else
                          f"{100 * right / 40 - 50:.1f} points more than concurrency 1 ({points} the 95 % CI)", said)

    def test_the_next_that_costs_as_little_is_named(self):
        runs = [self.run_of(f"run{at}", joules, right, spread=1, concurrency=at)
                for at, joules, right in ((1, 20, 40), (2, 10, 20), (3, 10.1, 22))]
        self.assertIn("concurrency 2: cheapest, 10.00 J per query, 2.0 times less than concurrency 1 (outside ±), "
                      "concurrency 3 the same within ±, 50.0 % correct", self.sentence(*runs))

    def test_without_energy_or_grades(self):
        runs = [write_run(self.root / f"run{at}", [query(i, joules=None) for i in range(5)], concurrency=at) for at in (1, 2)]
        self.assertEqual(self.sentence(*runs), "energy and accuracy unknown.")
        runs[0] = write_run(self.root / "more", [query(i, joules=4 + i % 2) for i in range(6)], concurrency=4)
        self.assertIn("concurrency 4: cheapest, 4.500 J per query. ", self.sentence(*runs))

    def test_many_fit_a_screen(self):
        runs = [self.run_of(f"run{at}", 10 + at, 30, concurrency=at, failed=3, dataset=f"dataset-{at}-of-a-long-name")
                for at in range(12)]
        text = self.told(*runs)
        self.assertIn("6 more runs: -v shows them", text)
        self.assertRegex(text, r"\n   quality +checks warn in 12 of 12 runs\n")
        whole = ipw(None, "analyze", "-v", *runs).stdout
        for at in range(12):
            self.assertRegex(whole[:4000], rf"\n   [* ]  dataset-\d…\w+ {at} +3 +75\.0 % +{10 + at}\.\d+ ± ")


class Throttling(Written):
    HEAD = "t_s,sensor,device,channel,scope,quantity,unit,value,sum,covered,t_plus_minus_s\n"

    def check(self, rows):
        """The check of a run with these values of a device's throttle."""
        run = write_run(self.root / f"run{len(list(self.root.iterdir()))}", [query(i) for i in range(3)])
        with open(run / "samples.csv", "w") as file:
            file.write(self.HEAD)
            file.writelines(f"{at / 10},nvml:0,gpu0,throttle,none,throttle,bits,{bits},{tail}\n" for at, (bits, tail) in enumerate(rows))
        found = json.loads(ipw(None, "analyze", run, "--analysis", "quality", "--json").stdout)[str(run)]
        return next(check for check in found["quality"]["data"]["checks"] if check["check"] == "throttling")

    def test_what_devices_reported(self):
        self.assertEqual(self.check([]), {"check": "throttling", "verdict": "unknown", "detail": "no device reports it"})
        self.assertEqual(self.check([(0, "")] * 40), {"check": "throttling", "verdict": "good", "detail": "none in 40 samples"})
        told = self.check([(0, "")] * 30 + [(1, "")] * 6 + [(2, "")] * 4)
        self.assertEqual((told["verdict"], told["detail"]), ("warning", "clocks throttled in 25.0 % of 40 samples: power, thermal"))

    def test_a_file_of_many_samples(self):
        """Some are looked at, from the beginning to the end."""
        tail = "0" * 1000  # of each line, so that the file is large
        told = self.check([(0, tail)] * 63_000 + [(2, tail)] * 7_000)
        self.assertEqual(told["verdict"], "warning")
        share, samples = re.fullmatch(r"clocks throttled in ([\d.]+) % of (\d+) samples, evenly spaced: thermal", told["detail"]).groups()
        self.assertAlmostEqual(float(share), 10, delta=1)
        self.assertTrue(20_000 < int(samples) < 70_000, samples)


class BadInput(AnalyzeTest):
    def test_usage(self):
        self.analyze(code=2)
        self.assertComplains("missing run directory")
        self.analyze("x", "--analysis", "latancy", code=2)
        self.assertComplains("did you mean 'latency'?")
        self.analyze("x", "--option", "skip_zeros=yes", code=2)
        self.assertComplains("skip_zeroes")
        self.analyze("x", "--analysis", "", code=2)

    def test_no_run(self):
        for path, words in ((self.on.root / "nothing", "no such directory"),
                            (self.on.put("/file", ""), "neither a run directory nor"),
                            (self.on.root, "holds no run")):
            self.assertEqual(self.analyze(path, code=1), "")
            self.assertComplains(words, str(path))
        self.assertEqual(self.read(self.on.root / "nothing", code=1), {})

    def test_no_record(self):
        path = self.on.put("/empty/records.jsonl", '{"kind":"run","format":1}').parent
        self.analyze(path, code=1)
        self.assertComplains("no record")
        (path / "records.jsonl").write_text('{"kind":"run"}\nnonsense\n{"also"\n')
        self.analyze(path, code=1)
        self.assertComplains("the first is line 2")

    def test_a_later_format(self):
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
            text = self.analyze(path)  # the journal has it all
            self.assertIn("the journal is read in place of the Arrow files", text)
            self.assertIn(words, text)
        journal = (path / "records.jsonl").rename(path / "away")
        for damaged, words in ((whole[:-2000], "after record 0"), (b"", "empty")):
            (path / ARROW).write_bytes(damaged)
            self.assertEqual(self.analyze(path, code=1), "")
            self.assertComplains(words, ARROW)
        journal.rename(path / "records.jsonl")

    def test_bytes_that_were_changed(self):
        """No byte of an Arrow file makes it crash: it is reported, or the figures are there."""
        path = profiled(self.on, queries=3)
        whole = (path / ARROW).read_bytes()
        (path / "records.jsonl").unlink()
        step = max(1, len(whole) // 150)
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

    def test_a_dataset_that_is_no_run(self):
        path = profiled(self.on)
        (path / "records.jsonl").unlink()
        text = (path / ARROW).read_bytes().replace(b"model_metrics", b"model_mectrix")
        (path / ARROW).write_bytes(text)
        self.analyze(path, code=1)
        self.assertComplains("no metrics of any model")


class Listing(AnalyzeTest):
    def test_list(self):
        listed = json.loads(ipw(None, "list", "analyses", "--json").stdout)["analyses"]
        self.assertEqual([row["name"] for row in listed], [*ALL, "agent", "layers", "sweep"])
        self.assertTrue(all(row["available"] for row in listed))
        regression = next(row for row in listed if row["name"] == "regression")
        self.assertEqual([p["name"] for p in regression["parameters"]], ["skip_zeroes"])


if __name__ == "__main__":
    unittest.main()
