#!/usr/bin/env python3
"""Figures of ipw analyze and compare on synthetic runs: invalid energies, repeats, uncertainties, means over part of
the queries.  Computed by hand, and by NumPy and SciPy for resampling."""

import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import oracle  # noqa: E402

oracle.use()

import json  # noqa: E402
import math  # noqa: E402
import re  # noqa: E402
import tempfile  # noqa: E402
import unittest  # noqa: E402
from pathlib import Path  # noqa: E402

from program import ipw  # noqa: E402
from rundirs import MODEL, outcomes_of, query, texts_of, write_run  # noqa: E402

try:
    import numpy as np
    import scipy.stats as st
except ImportError as error:
    print(f"skipped: {error} (set IPW_PYTHON to an interpreter that has numpy and scipy)")
    sys.exit(77)


class FiguresTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ipw-figures-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_of(self, queries, name="run", **facts):
        return write_run(self.folder / name, queries, **facts)

    def ipw(self, *words, code=0):
        self.done = ipw(None, *words)
        self.assertEqual(self.done.returncode, code, self.done.stdout + self.done.stderr)
        return self.done.stdout

    def analyze(self, path):
        return json.loads(self.ipw("analyze", path, "--json"))[str(path)]

    def compare(self, a, b, *more, code=0):
        got = json.loads(self.ipw("compare", a, b, "--json", *more, code=code))
        return got["comparisons"][0]

    def page(self, *paths):
        """The text of the HTML report, including its data."""
        self.ipw("report", *paths, "-o", self.folder / "page.html")
        return (self.folder / "page.html").read_text()

    def check(self, analyses, name):
        return outcomes_of(analyses["quality"]).get(name)


def changed(line, **energy):
    line["ipw"]["energy"].update(energy)
    return line


class InvalidEnergy(FiguresTest):
    def test_rounding_residue_is_not_active_energy(self):
        """If idle and total energy are equal, their difference is only rounding, here 1e-13 J."""
        def run(name, residue):
            return self.run_of([changed(query(i, joules=0.3, tokens=20 + i), idle_joules=0.3 - residue * (1 + i % 3),
                                        active_joules=residue * (1 + i % 3)) for i in range(40)], name)
        a, b = run("a", 8e-15), run("b", 9e-13)
        self.assertEqual(self.analyze(b)["efficiency"]["summary"]["active_joules_per_output_token"], 0)
        active = self.compare(a, b, "--fail-if", "active_energy > +5%")["metrics"]["active_energy"]
        self.assertEqual((active["baseline"]["value"], active["run"]["value"], active["difference"]), (0, 0, 0))
        self.assertIsNone(active["relative"])
        self.assertEqual(active["verdict"], "no evidence")

    def test_small_active_energy_is_kept(self):
        path = self.run_of([changed(query(i, joules=10), idle_joules=10 - 1e-6, active_joules=1e-6)
                            for i in range(20)])
        got = self.analyze(path)["efficiency"]["summary"]["active_joules_per_output_token"]
        self.assertAlmostEqual(got, 1e-6 / 20, delta=1e-15)

    def test_negative_energy_is_unknown(self):
        good = self.run_of([query(i, joules=10 + i % 5, correct=i % 2) for i in range(40)], "good")
        bad = self.run_of([query(i, joules=-5 if i < 30 else 10 + i % 5, correct=i % 2) for i in range(40)], "bad")
        got = self.analyze(bad)
        self.assertEqual(got["efficiency"]["summary"]["energy_known"], 10)
        self.assertEqual(got["efficiency"]["summary"]["joules_per_query"], 12)
        self.assertEqual(self.check(got, "negative_energy")[0], "warning")
        self.assertIn("30 of 40", self.check(got, "negative_energy")[1])
        self.assertIsNone(self.check(self.analyze(good), "negative_energy"))
        self.assertIn("negative", self.ipw("analyze", bad))
        compared = self.compare(good, bad)
        self.assertTrue(any("30 energies of this run are negative" in line for line in texts_of(compared)))
        energy = compared["metrics"]["energy_per_query"]
        self.assertEqual((energy["run"]["queries"], energy["run"]["value"], energy["difference"]), (10, 12, 0))

    def test_run_with_only_negative_energies(self):
        good = self.run_of([query(i, joules=10 + i % 5) for i in range(40)], "good")
        bad = self.run_of([query(i, joules=-5) for i in range(40)], "bad", busy=-5.0)
        got = self.analyze(bad)
        self.assertEqual(self.check(got, "energy_unknown")[0], "warning")
        self.assertNotIn("joules", got["efficiency"]["summary"])
        metric = self.compare(good, bad)["metrics"]["energy_per_query"]
        self.assertIsNone(metric["run"]["value"])
        self.assertEqual(metric["verdict"], "not known")


class Uncertainty(FiguresTest):
    def test_error_of_sum_combines_calibration_and_statistics(self):
        """3 % of 10 J calibration error, common to all, and 0.4 J statistical error of each of 40 queries."""
        lines = [changed(query(i, joules=10), plus_minus=0.5, plus_minus_statistical=0.4) for i in range(40)]
        got = self.analyze(self.run_of(lines))["efficiency"]["summary"]
        self.assertAlmostEqual(got["joules_error"], math.hypot(40 * 0.3, 0.4 * math.sqrt(40)), places=9)

    def test_errors_without_parts_add_up(self):
        """They may be calibration errors, so they add up linearly."""
        lines = [changed(query(i, joules=10), plus_minus=0.5, plus_minus_statistical=None) for i in range(40)]
        got = self.analyze(self.run_of(lines))["efficiency"]["summary"]
        self.assertAlmostEqual(got["joules_error"], 20, places=9)

    def test_missing_errors_are_unknown(self):
        lines = [changed(query(i, joules=10), plus_minus=None, plus_minus_statistical=None) for i in range(40)]
        self.assertIsNone(self.analyze(self.run_of(lines))["efficiency"]["summary"]["joules_error"])


class IntervalLabels(FiguresTest):
    def test_intervals_state_their_kind(self):
        path = self.run_of([query(i, joules=10 + i % 7, correct=i % 2) for i in range(40)], busy=50.0)
        text = self.ipw("analyze", path, "-v")
        for key in ("joules per output token", "ipj", "ipw"):
            line = next(line for line in text.splitlines() if line.startswith(f"   {key}  "))
            self.assertIn("95 % CI (sampling error only): ", line)
            self.assertIn(", n = 40)", line)
        self.assertIn("(95 % CI: 35.2 % to 64.8 %)", text)
        page = self.page(path)
        self.assertIn("95 % CI (sampling error only): ", page)
        self.assertNotIn("An interval holds 95 %", page)


class Digits(FiguresTest):
    """Figures of all commands have two digits of the ±, the value to the same digit, and one unit per metric."""

    def outputs(self):
        lines = [query(i, joules=10 + i % 7, tokens=20 + i % 5, correct=i % 2, source="nvml energy") for i in range(40)]
        other = [query(i, joules=15 + i % 5, tokens=20 + i % 5, correct=i % 2) for i in range(40)]
        a, b = self.run_of(lines, "a", busy=50.0, rate=20.5), self.run_of(other, "b", busy=61.0)
        headline = json.loads(re.search(r'"headline":(\[.*?\}\s*\])', self.page(a), re.S).group(1))
        return {"analyze": self.ipw("analyze", a, "-v"), "compare": self.ipw("compare", a, b),
                "page": "\n".join(f"{item['key']} {item['text']}" for item in headline)}

    def test_two_digits_of_uncertainty(self):
        for command, text in self.outputs().items():
            found = re.findall(r"(-?[\d.]+) ± ([\d.]+)", text)
            self.assertGreater(len(found), 3, text)
            for value, error in found:
                with self.subTest(command=command, figure=f"{value} ± {error}"):
                    self.assertEqual(len(value.partition(".")[2]), len(error.partition(".")[2]))
                    digits = error.replace(".", "").lstrip("0")
                    self.assertLessEqual(len(digits.rstrip("0")), 2)
                    self.assertGreaterEqual(len(digits), 2)

    def test_one_unit_per_metric(self):
        for command, text in self.outputs().items():
            with self.subTest(command=command):
                for metric, unit in (("ipj", "J"), ("ipw", "W")):
                    line = next(line for line in text.splitlines() if line.split()[:1] == [metric])
                    self.assertRegex(line, rf"[\d.]+ /k?{unit}\b")
                self.assertNotRegex(text, r"\d 1/[JWs]\b")

    def test_smallest_possible_p_value_is_shown_as_bound(self):
        """9999 permutations cannot resolve less than 0.0001, here times the number of tests."""
        a = self.run_of([query(i, joules=10 + i % 7) for i in range(40)], "a")
        b = self.run_of([query(i, joules=30 + i % 7) for i in range(40)], "b")
        got = self.compare(a, b)["metrics"]["energy_per_query"]
        self.assertAlmostEqual(got["p_value"], 1e-4)
        self.assertTrue(got["p_is_bound"])
        line = next(line for line in self.done_text(a, b) if line.split()[:1] == ["energy_per_query"])
        mark = float(re.search(r"< (0\.\d+)", line).group(1))
        self.assertLess(got["p_holm"], mark)
        self.assertFalse(self.compare(a, a)["metrics"]["energy_per_query"]["p_is_bound"])

    def done_text(self, a, b):
        return self.ipw("compare", a, b).splitlines()


class Basis(FiguresTest):
    def test_regression_lines_state_their_energy_basis(self):
        """GPUs use 2 J plus 0.1 J per token, the machine 12 J plus 0.3 J per token."""
        lines = []
        for i in range(30):
            tokens = 10 + 3 * i
            line = query(i, tokens=tokens, joules=12 + 0.3 * (tokens + 5))
            line["model_metrics"][MODEL]["energy_metrics"] = {"per_query_joules": 2 + 0.1 * (tokens + 5), "basis": "gpu"}
            lines.append(line)
        path = self.run_of(lines)
        got = self.analyze(path)["regression"]["data"]
        gpus, machine = got["regressions"]["total_tokens_vs_energy"], got["more"]["total_tokens_vs_energy"]
        self.assertEqual((gpus["energy_basis"], machine["energy_basis"]), ("gpu", "machine"))
        for line, slope, intercept in ((gpus, 0.1, 2), (machine, 0.3, 12)):
            self.assertAlmostEqual(line["slope"], slope, places=9)
            self.assertAlmostEqual(line["intercept"], intercept, places=9)
        self.assertEqual(got["more"]["total_tokens_vs_energy_log_log"]["energy_basis"], "machine")
        self.assertNotIn("energy_basis", got["regressions"]["total_tokens_vs_latency"])
        # The points of the page are of the machine, so its line must be too.
        self.assertIn('{ key: "total_tokens_vs_energy", group: "more", x: "total_tokens", y: "joules"', self.page(path))


class PartialMeans(FiguresTest):
    """Means over part of the queries."""

    def phases(self, known):
        """24 queries of the subject reading and 24 others; known: how many of each have phases."""
        lines = []
        for i in range(48):
            line = query(i, joules=10, tokens=20)
            line["subject"] = "reading" if i < 24 else "sums"
            if i % 24 < known[i // 24]:
                line["model_metrics"][MODEL]["phase_metrics"] = {"prefill_energy_j": 1.0 + i, "decode_energy_j": 9.0 - i / 9}
            lines.append(line)
        return self.run_of(lines)

    def test_means_state_number_of_queries(self):
        path = self.phases((1, 20))
        got = self.analyze(path)["efficiency"]
        self.assertEqual(got["summary"]["prefill_joules_per_input_token_queries"], 21)
        self.assertEqual(got["summary"]["joules_per_output_token_queries"], 48)
        rows = {row["subject"]: row for row in got["data"]["by_subject"]}
        self.assertEqual((rows["reading"]["prefill_joules_per_input_token_queries"],
                          rows["reading"]["joules_per_query_queries"],
                          rows["sums"]["decode_joules_per_output_token_queries"]), (1, 24, 20))
        self.assertAlmostEqual(rows["reading"]["prefill_joules_per_input_token"], 1 / 5)
        self.assertIn("prefill_joules_per_input_token is based on 21 of 48 completed queries: unknown for the others",
                      got["warnings"])
        self.assertIn("prefill_joules_per_input_token is known for fewer than half of the queries in 1 group by subject: for 1 of "
                      "24 in 'reading'", got["warnings"])
        text = self.ipw("analyze", path, "-v")
        self.assertRegex(text, r"prefill joules per input token +[0-9.]+ J \(21 of 48\)")
        self.assertRegex(text, r"reading .*200\.0 mJ \(1 of 24\)")
        self.assertNotIn("token queries", text)

    def test_means_of_times_and_energies_state_number_of_queries(self):
        lines = [query(i, joules=10 if i < 5 else None, correct=1) for i in range(24)]
        for line in lines[3:]:
            del line["model_metrics"][MODEL]["latency_metrics"]["time_to_first_token_seconds"]
        got = self.analyze(self.run_of(lines))
        row = got["latency"]["data"]["by_subject"][0]
        self.assertEqual((row["latency_s_queries"], row["time_to_first_token_s_queries"]), (24, 3))
        self.assertEqual(got["accuracy"]["data"]["by_subject"][0]["joules_per_query_queries"], 5)
        self.assertEqual(got["accuracy"]["summary"]["joules_per_query_queries"], 5)
        self.assertEqual(got["efficiency"]["data"]["by_subject"][0]["joules_per_query_queries"], 5)

    def test_complete_means_have_no_count(self):
        path = self.phases((24, 24))
        got = self.analyze(path)["efficiency"]
        self.assertEqual(got["summary"]["prefill_joules_per_input_token_queries"], 48)
        self.assertEqual(got["warnings"], [])
        self.assertNotIn(" of 48)", self.ipw("analyze", path, "-v"))


class AllFailed(FiguresTest):
    def test_no_figures_without_completed_queries(self):
        lines = [query(i, joules=1.0, failed=True) for i in range(10)]
        path = self.run_of(lines)
        energy = self.check(self.analyze(path), "energy_unknown")
        self.assertEqual(energy[0], "unknown")
        self.assertIn("no query was completed", energy[1])
        page = self.page(path)
        tiles = {tile["key"]: tile for tile in json.loads(
            page.split('id="data">')[1].split("</script>")[0])["runs"][0]["headline"]}
        for key in ("joules_per_query", "joules_per_output_token", "accuracy", "latency_s", "time_to_first_token_s"):
            self.assertEqual((tiles[key]["value"], tiles[key]["note"]), (None, "no query completed"), key)
        self.assertEqual(tiles["joules"]["value"], 10)


class Pairs(FiguresTest):
    def test_number_of_pairs_is_reported(self):
        a = self.run_of([query(i, joules=10 + i % 5, correct=i % 2) for i in range(40)], "a")
        b = self.run_of([query(i, joules=None if i < 20 else 10 + i % 5, correct=i % 2, failed=i % 3 == 0)
                         for i in range(40)], "b")
        got = self.compare(a, b)
        self.assertEqual((got["same_queries"], got["pairs"]), (40, 26))
        self.assertEqual(got["metrics"]["latency"]["run"]["queries"], 26)
        self.assertEqual(got["metrics"]["energy_per_query"]["run"]["queries"], 13)
        text = self.ipw("compare", a, b)
        self.assertIn("26 of 40 common queries, paired: those that both runs completed", text)
        self.assertIn("energy_per_query (13 of 26)", text)
        self.assertIn(" latency  ", text)

    def test_all_queries_are_paired(self):
        a = self.run_of([query(i, joules=10 + i % 5) for i in range(40)], "a")
        self.assertIn("40 common queries, paired\n", self.ipw("compare", a, a))


class Scaling(FiguresTest):
    def test_sizes_and_precisions_are_distinguished(self):
        """J per token is 2e-6 x parameters^0.8 x bits^0.5, with known noise."""
        runs, rows = [], []
        noise = iter((0.02, -0.01, 0.03, -0.02, 0.01, 0.0))
        for name, size in (("ipw-1m", 1066368), ("ipw-6m", 6025472)):
            for word, bits in (("f16", 16), ("q8_0", 8), ("q4_0", 4)):
                model, per_token = f"{name}-{word}", 2e-6 * size ** 0.8 * bits ** 0.5 * math.exp(next(noise))
                lines = [json.loads(json.dumps(query(i, joules=20 * per_token, tokens=20)).replace(MODEL, model))
                         for i in range(6)]
                runs.append(self.run_of(lines, model, model=model, rate=50.0))
                rows.append((math.log(bits), math.log(size), math.log(per_token)))
        across = json.loads(self.ipw("analyze", *runs, "--json"))["across"]
        self.assertEqual([run["parameters"] for run in across["data"]["runs"]], [1066368] * 3 + [6025472] * 3)
        bits, size, energy = np.array(rows).T
        for key, x, others, groups in (("weight_bits", bits, size, 2), ("parameters", size, bits, 3)):
            law = across["data"]["against"][f"joules_per_output_token_of_{key}"]
            columns = np.column_stack([x, *[others == other for other in np.unique(others)]])
            wanted, residual, _, _ = np.linalg.lstsq(columns, energy, rcond=None)
            error = math.sqrt(residual[0] / (6 - groups - 1) * np.linalg.inv(columns.T @ columns)[0, 0])
            self.assertEqual((law["count"], law["groups"]), (6, groups), key)
            self.assertAlmostEqual(law["exponent"], wanted[0], places=9, msg=key)
            self.assertAlmostEqual(law["exponent_error"], error, places=9, msg=key)

    def test_no_scaling_law_if_size_and_precision_are_confounded(self):
        runs = []
        for model, joules in (("ipw-1m-f16", 1.0), ("ipw-6m-q4_0", 2.0)):
            lines = [json.loads(json.dumps(query(i, joules=joules)).replace(MODEL, model)) for i in range(6)]
            runs.append(self.run_of(lines, model, model=model, rate=50.0))
        self.assertEqual(json.loads(self.ipw("analyze", *runs, "--json"))["across"]["data"]["against"], {})


def wilson(p, n):
    """Wilson's interval of a proportion p of n, by SciPy; n may be fractional."""
    z = st.norm.isf(0.025)
    middle, half = (p + z * z / (2 * n)) / (1 + z * z / n), z / (1 + z * z / n) * math.sqrt(
        p * (1 - p) / n + z * z / (4 * n * n))
    return [max(0, middle - half), min(1, middle + half)]


class Repeats(FiguresTest):
    """The unit is the question: repeats give no information on other questions."""

    RIGHT = [i % 3 == 0 for i in range(24)]
    JOULES = [5 + 1.7 * (i * 7 % 11) for i in range(24)]

    def asked(self, rounds, name, subject=None, change=lambda i, r: {}):
        lines = [query(i, joules=self.JOULES[i], correct=self.RIGHT[i], tokens=10 + i, repeat=r, **change(i, r))
                 for r in range(rounds) for i in range(24)]
        return self.run_of(lines, name)

    def test_identical_rounds_add_no_certainty(self):
        once, ten = self.analyze(self.asked(1, "once")), self.analyze(self.asked(10, "ten"))
        for name, keys in (("accuracy", ("accuracy_interval_95", "ipj_interval_95", "ipw_interval_95")),
                           ("efficiency", ("joules_per_output_token_interval_95",
                                           "joules_per_input_token_interval_95",
                                           "active_joules_per_output_token_interval_95",
                                           "output_tokens_per_joule_interval_95"))):
            for key in keys:
                if once[name]["summary"][key] is None:
                    self.assertIsNone(ten[name]["summary"][key], key)
                    continue
                for a, b in zip(once[name]["summary"][key], ten[name]["summary"][key]):
                    self.assertAlmostEqual(a, b, delta=1e-9 * abs(a), msg=key)
        for a, b in zip(once["accuracy"]["data"]["by_level"], ten["accuracy"]["data"]["by_level"]):
            np.testing.assert_allclose(a["accuracy_interval_95"], b["accuracy_interval_95"], rtol=1e-9)
            np.testing.assert_allclose(a["ipj_interval_95"], b["ipj_interval_95"], rtol=1e-9)
        wanted = st.binomtest(8, 24).proportion_ci(method="wilson")
        np.testing.assert_allclose(ten["accuracy"]["summary"]["accuracy_interval_95"], list(wanted), rtol=1e-9)

    def test_interval_of_differing_rounds(self):
        """Bootstrap over questions by NumPy, and Wilson's interval of the effective number of answers."""
        rng = np.random.default_rng(5)
        hard = rng.random(60)
        right = rng.random((60, 4)) < hard[:, None]
        joules = 10 * (1 + hard)[:, None] * rng.uniform(0.7, 1.3, (60, 4))
        tokens = rng.integers(10, 90, (60, 4))
        path = self.run_of([query(i, joules=joules[i, r], correct=right[i, r], tokens=int(tokens[i, r]), repeat=r)
                            for r in range(4) for i in range(60)])
        got = self.analyze(path)
        p = right.mean()
        variance = ((right.sum(1) - 4 * p) ** 2).sum() / 240 ** 2
        effective = p * (1 - p) / variance
        self.assertTrue(60 < effective < 240)
        np.testing.assert_allclose(got["accuracy"]["summary"]["accuracy_interval_95"], wilson(p, effective), rtol=1e-9)
        drawn = rng.integers(0, 60, (20000, 60))
        for key, figure in (("ipj_interval_95", right.sum(1)[drawn].sum(1) / joules.sum(1)[drawn].sum(1)),
                            ("joules_per_output_token_interval_95",
                             joules.sum(1)[drawn].sum(1) / tokens.sum(1)[drawn].sum(1))):
            low, high = got["accuracy" if "ipj" in key else "efficiency"]["summary"][key]
            wanted = np.quantile(figure, [0.025, 0.975])
            width = wanted[1] - wanted[0]
            self.assertAlmostEqual(low, wanted[0], delta=0.12 * width, msg=key)
            self.assertAlmostEqual(high, wanted[1], delta=0.12 * width, msg=key)

    def test_interval_of_run_agrees(self):
        """ipw profile with the echo client, which is correct if the answer is in the question."""
        (self.folder / "questions.jsonl").write_text("".join(
            json.dumps({"problem": f"word {i}", "answer": "word" if i % 3 else "none"}) + "\n" for i in range(9)))
        done = json.loads(self.ipw(
            "profile", "--client", "null", "--model", "echo", "--dataset", self.folder / "questions.jsonl",
            "--client-param", "answer=echo,ttft_ms=1,tokens_per_s=5000", "--idle", "0", "--warmup-queries", "0",
            "--grader", "contains", "--repeat", "4", "--output-dir", self.folder / "out", "--json"))
        self.assertEqual((done["queries"], done["accuracy"]), (36, 24 / 36))
        wanted = list(st.binomtest(6, 9).proportion_ci(method="wilson"))
        np.testing.assert_allclose(done["accuracy_interval_95"], wanted, rtol=1e-9)
        got = self.analyze(Path(done["output_dir"]))["accuracy"]["summary"]["accuracy_interval_95"]
        np.testing.assert_allclose(got, wanted, rtol=1e-9)

    def test_error_bars_of_plots_are_over_questions(self):
        """Without the calibration error of 3 %, which is common to both runs and is in the subtitle."""
        program, script = self.folder / "bin/gnuplot", self.folder / "script"
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\ncat > {script}; echo drawn\n")
        program.chmod(0o755)
        rng = np.random.default_rng(8)
        runs, wanted = [], []
        for at_once, rounds in ((1, 1), (4, 5)):
            tokens = rng.integers(10, 60, 24)
            joules = 0.2 * tokens + rng.uniform(1, 5, 24)
            lines = [query(i, joules=joules[i], tokens=int(tokens[i]), repeat=r) for r in range(rounds) for i in range(24)]
            runs.append(self.run_of(lines, f"at{at_once}", concurrency=at_once))
            ratio = joules.sum() / tokens.sum()
            error = np.std(joules - ratio * tokens, ddof=1) / math.sqrt(24) / tokens.mean()
            half = 1.96 * math.hypot(error, 0.05 * ratio)  # another run would differ by as much
            wanted.append((at_once, *(1e3 * value for value in (ratio, ratio - half, ratio + half))))
        done = ipw(None, "plot", *runs, "--plot", "concurrency", "--output-dir", self.folder / "out",
                   env={"PATH": f"{program.parent}:/usr/bin:/bin"})
        self.assertEqual(done.returncode, 0, done.stderr)
        text = script.read_text()
        self.assertIn("±3.0 % common to all, cancels in differences bars: 95 % CI, with 5 % between runs (assumed)", " ".join(
            line for line in re.findall(r"set label '(.*?)' at", text)))
        self.assertIn("energy (mJ per output token)", text)
        bars = [tuple(map(float, row.split())) for row in text.split("$p0s1 << END\n")[1].split("END")[0].splitlines()]
        np.testing.assert_allclose(bars, wanted, rtol=1e-6)

    def test_interval_with_all_or_no_answer_correct(self):
        """Without scatter, the interval is not zero."""
        for right, name in ((0, "none"), (1, "all")):
            path = self.run_of([query(i, joules=self.JOULES[i], correct=right) for i in range(24)], name)
            got = self.analyze(path)["accuracy"]["summary"]
            low, high = st.binomtest(24 * right, 24).proportion_ci(method="wilson")
            joules = np.array(self.JOULES)
            inverse_low, inverse_high = oracle.studentized(lambda sums: sums[1] / sums[0], (joules, np.ones(24)))
            mean = 1 / joules.mean()
            wanted = (right * mean - math.hypot((right - low) * mean, right * (mean - inverse_low)),
                      right * mean + math.hypot((high - right) * mean, high * (inverse_high - mean)))
            np.testing.assert_allclose(got["ipj_interval_95"], wanted, atol=0.03 * mean)
            self.assertGreater(got["ipj_interval_95"][1], got["ipj_interval_95"][0])
        a, b = self.folder / "none", self.folder / "all"
        metrics = self.compare(a, b)["metrics"]
        z = st.norm.isf(0.025)
        for side in ("baseline", "run"):
            self.assertAlmostEqual(metrics["accuracy"][side]["plus_minus"], z / (2 * (24 + z * z)), delta=1e-12)
            self.assertGreaterEqual(metrics["ipj"][side]["plus_minus"], z / (2 * (24 + z * z)) / np.mean(self.JOULES))


if __name__ == "__main__":
    unittest.main(verbosity=2)
