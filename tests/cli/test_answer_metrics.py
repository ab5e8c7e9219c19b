#!/usr/bin/env python3
"""Metrics of all answers together (ipw.quality): computed once after the queries, saved in the summary, shown by `ipw
profile`, and compared between runs."""

import json
import random
import shutil
import struct
import sys
import tempfile
import unittest
import zlib
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from program import ipw  # noqa: E402

WORDS = "zero one two three four five six seven eight nine".split()


def ranked(*labels):
    return json.dumps([{"label": label, "score": round(1 / (i + 2), 3)} for i, label in enumerate(labels)])


class Metrics(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix="ipw-metrics-")
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = Path(scratch.name)

    def run_ipw(self, *words, code=0):
        done = ipw(None, *map(str, words))
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def profile(self, name, rows, *words, grader=None, code=0):
        """Rows are (expected, answer): the null client echoes the question, which is the answer."""
        dataset = self.folder / f"{name}.jsonl"
        dataset.write_text("".join(json.dumps({"problem": answer, "answer": expected}) + "\n" for expected, answer in rows))
        return self.run_ipw("profile", "--client", "null", "--client-param", "answer=echo", "--model", "m", "--dataset", "jsonl",
                            "--dataset-param", f"path={dataset}", "--no-answer-format", "--idle", 0, "--name", name,
                            "--output-dir", self.folder / "runs", *(["--grader", grader] if grader else []), *words, code=code)

    def summary(self, name):
        return json.loads((self.folder / "runs" / name / "summary.json").read_text())["ipw"]

    def test_speech(self):
        rows = [("one two three", "one too three"), ("four", "four"), ("five six", "five six seven"), ("", "eight")]
        done = self.profile("speech", rows, "--format", "json", grader="wer")
        found = self.summary("speech")["quality"]
        self.assertEqual([(each["name"], each["count"], each["better"]) for each in found], [("wer", 3, "lower"), ("cer", 3, "lower")])
        self.assertAlmostEqual(found[0]["value"], 2 / 6)
        self.assertGreater(found[0]["plus_minus"], 0)
        self.assertEqual(json.loads(done.stdout)["quality"], found)
        self.assertAlmostEqual(self.summary("speech")["score"], (2 / 3 + 1 + 1 / 2) / 3)

    def test_text_of_a_profile_shows_them(self):
        done = self.profile("shown", [("cat", ranked("cat", "dog")), ("dog", ranked("cat", "dog")), ("cat", "damaged")], "--grader", "top_1")
        self.assertRegex(done.stderr, r"\n   top_1 +0\.50 ± 0\.\d+, 2 answers\n   top_5 +1\.0\d* ± 0\.\d+, 2 answers\n")
        self.assertRegex(done.stderr, r"accuracy +50\.0 %, 1 of 2 correct .*1 not graded: the answer is not JSON")

    def test_repeated_questions_are_one_item(self):
        rows = [(word, ranked(word if i % 2 else "none", "other")) for i, word in enumerate(WORDS)]
        self.profile("once", rows, grader="top_1")
        self.profile("thrice", rows, "--repeat", 3, grader="top_1")
        once, thrice = (self.summary(name)["quality"][0] for name in ("once", "thrice"))
        self.assertEqual((once["value"], once["count"], thrice["value"], thrice["count"]), (0.5, 10, 0.5, 30))
        self.assertAlmostEqual(once["plus_minus"], thrice["plus_minus"], delta=1e-9)

    def test_resumed_run_has_those_of_all_answers(self):
        rows = [(word, word if i else "none") for i, word in enumerate(WORDS)]
        self.profile("resumed", rows, "--max-queries", 4, grader="wer")
        self.assertEqual(self.summary("resumed")["quality"][0]["count"], 4)
        self.profile("resumed", rows, "--resume", grader="wer")
        self.assertEqual(self.summary("resumed")["quality"][0]["count"], 10)
        self.assertAlmostEqual(self.summary("resumed")["quality"][0]["value"], 0.1)

    def test_other_graders_have_none(self):
        self.profile("plain", [("1", "1"), ("2", "3")], grader="exact")
        self.assertNotIn("quality", self.summary("plain"))

    def test_nothing_to_grade_is_unknown_with_the_reason(self):
        done = self.profile("nothing", [("[]", "[]"), ("[]", "[]")], grader="map")
        found = self.summary("nothing")["quality"]
        self.assertEqual([each["value"] for each in found], [None, None])
        self.assertEqual({each["reason"] for each in found}, {"no image has an expected object"})
        self.assertIn("map_50        unknown: no image has an expected object", done.stderr)

    def test_metric_of_all_images_leaves_answers_ungraded(self):
        rng = random.Random(3)
        tables = {}
        for name, shift in ("own", 0), ("reference", 1):
            tables[name] = self.folder / f"{name}.csv"
            tables[name].write_text("".join(f"{rng.gauss(shift, 1)},{rng.gauss(shift, 1)}\n" for _ in range(200)))
        done = self.profile("fid", [("", f"{i}.png") for i in range(200)], "--grader-param", f"features={tables['own']}",
                            "--grader-param", f"reference={tables['reference']}", grader="fid")
        found, = self.summary("fid")["quality"]
        self.assertAlmostEqual(found["value"], 2, delta=0.6)  # two features, whose means differ by 1
        self.assertGreater(found["plus_minus"], 0.1)
        self.assertRegex(done.stderr, r"fid +\d\.\d+ ± 0\.\d+, 200 answers; lower is better")
        self.assertNotIn("accuracy", done.stderr)
        self.assertIsNone(self.summary("fid")["accuracy"])
        done = self.profile("missing", [("", "0.png")], grader="fid", code=2)
        self.assertIn("needs encoder=FILE.onnx or features=FILE", done.stderr)

    def compare(self, *names):
        done = self.run_ipw("compare", *(self.folder / "runs" / name for name in names), "--json")
        return json.loads(done.stdout)["comparisons"][0]["metrics"]

    def test_compare_draws_the_same_questions_in_pairs(self):
        """The errors of both runs are those of the same hard questions: their difference is far more certain."""
        rng = random.Random(5)
        hard = [rng.random() < 0.5 for _ in range(120)]
        for name, wrong in ("pair-a", set()), ("pair-b", set(range(0, 120, 12))):
            rows = [(f"word{i} x y z", f"word{i} " + ("a b c" if hard[i] else "x y z") + (" more" if i in wrong else ""))
                    for i in range(120)]
            self.profile(name, [(expected, f"{answer}") for expected, answer in rows], grader="wer")
        # The questions are the answers here, and differ; the pairs need equal ones.
        unpaired = self.compare("pair-a", "pair-b")["wer"]
        self.assertEqual((unpaired["test"], unpaired["verdict"]), ("normal approximation", "no evidence"))
        for name in "pair-a", "pair-b":
            path = self.folder / "runs" / name / "records.jsonl"
            lines = [json.loads(line) for line in path.read_text().splitlines()]
            for line in lines:
                if "problem" in line:
                    line["problem"] = "say it"
            path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        paired = self.compare("pair-a", "pair-b")["wer"]
        self.assertEqual((paired["test"], paired["paired_questions"], paired["verdict"]), ("paired permutation test", 120, "worse"))
        self.assertAlmostEqual(paired["difference"], 10 / 480)
        low, high = paired["difference_interval_95"]
        self.assertTrue(0 < low < 10 / 480 < high)
        self.assertLess(high - low, (unpaired["difference_interval_95"][1] - unpaired["difference_interval_95"][0]) / 2)
        self.assertLess(paired["p_value"], 0.01)
        back = self.compare("pair-b", "pair-a")["wer"]
        self.assertEqual((back["verdict"], back["better"]), ("better", "lower"))
        self.assertAlmostEqual(back["relative"], -back["baseline"]["value"] ** -1 * 10 / 480)

    def test_compare_of_equal_and_of_unknown_metrics_decides_nothing(self):
        rows = [(word, ranked(word, "other")) for word in WORDS]
        self.profile("equal-a", rows, grader="top_1")
        self.profile("equal-b", rows, grader="top_1")
        same = self.compare("equal-a", "equal-b")
        self.assertEqual({same[name]["verdict"] for name in ("top_1", "top_5")}, {"no evidence"})
        self.assertEqual((same["top_1"]["difference"], same["top_1"]["p_value"]), (0, 1))
        self.profile("damaged", [(word, "no list") for word in WORDS], grader="top_1")
        unknown = self.compare("equal-a", "damaged")["top_1"]
        self.assertEqual((unknown["verdict"], unknown["run"]["value"], unknown["p_value"]), ("not known", None, None))
        self.profile("none", [("1", "1")], grader="exact")
        self.assertNotIn("top_1", self.compare("none", "equal-a"))
        self.assertNotIn("top_1", self.compare("equal-a", "none"))
        done = self.run_ipw("compare", self.folder / "runs/equal-a", self.folder / "runs/equal-b")
        self.assertRegex(done.stdout, r"\n +top_1 +1\.0\S* ± 0\.\d+ ")

    def test_runs_without_accuracy_have_a_metric_on_the_quality_axis(self):
        """The Pareto frontier of runs whose answers have no verdict: lower is better."""
        files = {}
        for name, shift in ("good", 0.1), ("bad", 3), ("truth", 0):
            rng = random.Random(len(name))
            files[name] = self.folder / f"axis-{name}.csv"
            files[name].write_text("".join(f"{rng.gauss(shift, 1)},{rng.gauss(0, 1)}\n" for _ in range(100)))
        runs = []
        for name in "good", "bad":
            self.profile(f"axis-{name}", [("", f"{i}.png") for i in range(100)], "--grader-param", f"features={files[name]}",
                         "--grader-param", f"reference={files['truth']}", grader="fid")
            runs.append(self.folder / "runs" / f"axis-{name}")
        page = self.folder / "axis.html"
        self.run_ipw("report", *runs, "-o", page)
        text = page.read_text()
        self.assertIn('"quality":{"name":"fid","better":"lower"}', text)
        done = self.run_ipw("analyze", *runs)
        self.assertRegex(done.stdout, r"run +fid +J/query")
        if shutil.which("gnuplot"):
            self.run_ipw("plot", *runs, "--plot", "pareto", "--format", "svg", "--output-dir", self.folder / "plots")
            self.assertIn("fid against energy", (self.folder / "plots/pareto.svg").read_text())
        done = self.run_ipw("export", runs[0], "--to", "prom")
        self.assertRegex(done.stdout, r'ipw_run_answer_quality\{[^}]*metric="fid"\} \d')
        found = json.loads(self.run_ipw("analyze", runs[0], "--analysis", "accuracy", "--json").stdout)
        quality, = found[str(runs[0])]["accuracy"]["summary"]["quality"]
        self.assertEqual((quality["name"], quality["better"], quality["count"]), ("fid", "lower", 100))

    def test_generated_files_are_those_of_the_run(self):
        """The answer is the name of a file in the run's outputs."""
        name = "generated"
        outputs = self.folder / "runs" / name / "outputs"
        self.profile(name, [("", f"{i}.png") for i in range(3)], "--max-queries", 1, grader="null")
        outputs.mkdir()
        data = zlib.compress(b"\0" + bytes(12) + b"\0" + bytes(12))
        chunks = [(b"IHDR", struct.pack(">IIBBBBB", 4, 2, 8, 2, 0, 0, 0)), (b"IDAT", data), (b"IEND", b"")]
        for i in range(3):
            (outputs / f"{i}.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(
                struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks))
        (outputs / "2.png").write_bytes(b"no image")
        encoder, reference = self.folder / "encoder.onnx", self.folder / "reference.csv"
        encoder.write_bytes(b"no model")
        reference.write_text("1,2\n3,4\n5,7\n")
        self.profile(name, [("", f"{i}.png") for i in range(3)], "--resume", "--grader-param", f"encoder={encoder}",
                     "--grader-param", f"reference={reference}", grader="fid")
        found, = self.summary(name)["quality"]
        self.assertIsNone(found["value"])
        self.assertIn("encoder.onnx", found["reason"])


if __name__ == "__main__":
    unittest.main()
