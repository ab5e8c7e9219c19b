#!/usr/bin/env python3
"""ipw compare: figures against SciPy on the same records, verdicts, warnings about fairness, bounds for scripts, bad
input.  The run directories are synthetic (rundirs.py); test_compare_measured.py has measured runs."""

import json
import math
import random
import re
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
import oracle  # noqa: E402

oracle.use()

from program import ipw  # noqa: E402
from rundirs import MODEL, query, summary, texts_of, write_run  # noqa: E402

try:
    import numpy as np
    import scipy.stats as st
except ImportError:
    st = None

METRICS = ["energy_per_query", "energy_per_output_token", "active_energy", "latency", "ttft", "itl",
           "tokens_per_s", "accuracy", "ipj", "ipw", "power", "perplexity", "bits_per_byte",
           "cost_per_query", "cost_per_million_output_tokens", "gco2e_per_query", "gco2e_per_million_output_tokens",
           "energy_per_image", "energy_per_audio_second", "energy_per_denoise_step", "real_time_factor"]
# Neither scored nor priced here, nor workloads: see test_perplexity_models.py, test_costs.py and test_workloads.py.
UNKNOWN_HERE = {"perplexity", "bits_per_byte", *METRICS[-8:]}


class CompareTest(unittest.TestCase):
    def setUp(self):
        self.root = Path(tempfile.mkdtemp(prefix="ipw-compare-"))
        self.addCleanup(shutil.rmtree, self.root)

    def run_of(self, name, queries, **facts):
        return write_run(self.root / name, queries, **facts)

    def compare(self, *arguments, code=0):
        self.done = ipw(None, "compare", *arguments, "--json")
        self.assertEqual(self.done.returncode, code, self.done.stderr)
        return json.loads(self.done.stdout) if self.done.stdout else None

    def metrics(self, *arguments, **options):
        return self.compare(*arguments, **options)["comparisons"][0]["metrics"]

    def warnings(self, *arguments):
        return texts_of(self.compare(*arguments)["comparisons"][0])

    def random_pair(self, count, shift=0.0, seed=1, **facts):
        """Two runs of the same questions: a cost per question, plus noise."""
        rng = random.Random(seed)
        costs = [rng.lognormvariate(2, 0.5) for _ in range(count)]
        runs = []
        for name, more in (("a", 0.0), ("b", shift)):
            queries = [query(i, joules=c * rng.lognormvariate(0, 0.1) * (1 + more),
                             latency=c / 10 * rng.lognormvariate(0, 0.1) * (1 + more),
                             tokens=rng.randrange(5, 50), correct=rng.random() < 0.6)
                       for i, c in enumerate(costs)]
            runs.append((self.run_of(f"{name}{seed}", queries, **facts), queries))
        return runs


def joules_of(queries):
    return [q["ipw"]["energy"]["joules"] for q in queries]


def metric_of(q, group, name):
    return q["model_metrics"][MODEL][group][name]


# ---- figures ----

@unittest.skipIf(st is None, "numpy and scipy are not here (IPW_PYTHON names an interpreter with them)")
class Oracle(CompareTest):
    def assertClose(self, ours, theirs, tolerance):
        self.assertLessEqual(abs(ours - theirs), tolerance, f"{ours} against {theirs}")

    def test_paired_figures_agree_with_scipy(self):
        (a, in_a), (b, in_b) = self.random_pair(60, shift=0.03)
        found = self.metrics(a, b)
        for name, pick in (("energy_per_query", joules_of),
                           ("latency", lambda qs: [metric_of(q, "latency_metrics", "total_query_seconds")
                                                   for q in qs])):
            x, y = np.array(pick(in_a)), np.array(pick(in_b))
            row = found[name]
            self.assertClose(row["baseline"]["value"], x.mean(), 1e-12)
            self.assertClose(row["difference"], (y - x).mean(), 1e-12)
            self.assertClose(row["relative"], y.mean() / x.mean() - 1, 1e-12)
            # p-values from 9999 permutations each scatter independently.
            theirs = st.permutation_test((y, x), lambda u, v, axis: (u - v).mean(axis),
                                         permutation_type="samples", n_resamples=9999, rng=1)
            within = row["of_these_runs"]
            scatter = 2 * (theirs.pvalue * (1 - theirs.pvalue) / 9999) ** 0.5
            self.assertClose(within["p_value"], theirs.pvalue, 4 * scatter + 2e-4)
            low, high = oracle.studentized(lambda sums: sums[0] / sums[1], (y - x, np.ones(60)), logs=False)
            self.assertClose(within["difference_interval_95"][0], low, 0.1 * (high - low))
            self.assertClose(within["difference_interval_95"][1], high, 0.1 * (high - low))
            self.assertClose(row["run"]["plus_minus_statistical"], st.sem(y), 0.1 * st.sem(y))

    def test_paired_ratios_agree_with_scipy(self):
        (a, in_a), (b, in_b) = self.random_pair(50, shift=0.1, seed=4)
        row = self.metrics(a, b)["energy_per_output_token"]
        within = row["of_these_runs"]
        x, y = np.array(joules_of(in_a)), np.array(joules_of(in_b))
        s, t = (np.array([metric_of(q, "token_metrics", "output") for q in qs]) for qs in (in_a, in_b))
        self.assertClose(row["baseline"]["value"], x.sum() / s.sum(), 1e-12)
        self.assertClose(row["run"]["value"], y.sum() / t.sum(), 1e-12)
        low, high = oracle.studentized(lambda of: of[2] / of[3] / (of[0] / of[1]), (x, s, y, t))
        self.assertClose(within["relative_interval_95"][0], low - 1, 0.1 * (high - low))
        self.assertClose(within["relative_interval_95"][1], high - 1, 0.1 * (high - low))
        # Permutations exchange joules and tokens of the two runs within each query.
        rng = np.random.default_rng(5)
        seen = abs(y.sum() / t.sum() - x.sum() / s.sum())
        flips = rng.random((9999, len(x))) < 0.5
        e = np.where(flips, y, x).sum(1) / np.where(flips, t, s).sum(1)
        f = np.where(flips, x, y).sum(1) / np.where(flips, s, t).sum(1)
        p = ((abs(f - e) >= seen).sum() + 1) / 10000
        self.assertClose(within["p_value"], p, 8 * (p * (1 - p) / 9999) ** 0.5 + 2e-4)

    def test_paired_accuracy_uses_mcnemar(self):
        (a, in_a), (b, in_b) = self.random_pair(80, seed=7)
        row = self.metrics(a, b)["accuracy"]
        right = [[metric_of(q, "evaluation", "is_correct") for q in qs] for qs in (in_a, in_b)]
        gained = sum(v and not u for u, v in zip(*right))
        lost = sum(u and not v for u, v in zip(*right))
        self.assertEqual(row["test"], "McNemar, exact")
        self.assertClose(row["p_value"], st.binomtest(gained, gained + lost).pvalue, 1e-12)
        self.assertClose(row["difference"], (gained - lost) / 80, 1e-12)
        self.assertClose(row["baseline"]["value"], np.mean(right[0]), 1e-12)

    def test_unpaired_figures_agree_with_scipy(self):
        rng = np.random.default_rng(11)
        x, y = rng.gamma(3, 2, 45), rng.gamma(3, 2.6, 30)
        a = self.run_of("a", [query(i, joules=float(j)) for i, j in enumerate(x)])
        b = self.run_of("b", [query(i, joules=float(j), problem=f"another {i}") for i, j in enumerate(y)])
        report = self.compare(a, b)["comparisons"][0]
        self.assertFalse(report["paired"])
        self.assertEqual(report["changed_questions"], 30)
        row = report["metrics"]["energy_per_query"]
        self.assertEqual((row["test"], row["baseline"]["queries"], row["run"]["queries"]),
                         ("permutation", 45, 30))
        self.assertClose(row["difference"], y.mean() - x.mean(), 1e-12)
        theirs = st.permutation_test((y, x), lambda u, v, axis: u.mean(axis) - v.mean(axis),
                                     permutation_type="independent", n_resamples=9999, rng=1)
        scatter = 2 * (theirs.pvalue * (1 - theirs.pvalue) / 9999) ** 0.5
        within = row["of_these_runs"]
        self.assertClose(within["p_value"], theirs.pvalue, 4 * scatter + 2e-4)
        low, high = oracle.studentized(lambda of_y, of_x: of_y[0] / of_y[1] - of_x[0] / of_x[1],
                                       (y, np.ones(30)), (x, np.ones(45)), logs=False)
        self.assertClose(within["difference_interval_95"][0], low, 0.1 * (high - low))
        self.assertClose(within["difference_interval_95"][1], high, 0.1 * (high - low))

    def test_intelligence_per_watt_and_joule(self):
        (a, in_a), (b, _) = self.random_pair(40, seed=9, busy=250.0)
        found = self.metrics(a, b)
        accuracy = np.mean([metric_of(q, "evaluation", "is_correct") for q in in_a])
        self.assertClose(found["power"]["baseline"]["value"], 250, 1e-9)
        self.assertClose(found["ipw"]["baseline"]["value"], accuracy / 250, 1e-12)
        self.assertClose(found["ipj"]["baseline"]["value"], accuracy / np.mean(joules_of(in_a)), 1e-12)

    def test_energy_is_tested_first(self):
        """Energy per query has 70 % of the level of 0.05, the other metrics the rest, or all of it if every energy
        differs; Holm's correction among each."""
        def holm(rows, factor):
            raw = np.array([row["p_value"] for row in rows])
            running = 0
            for rank, i in enumerate(np.argsort(raw, kind="stable")):
                running = max(running, min(1, raw[i] * (len(raw) - rank)))
                self.assertClose(rows[i]["p_holm"], min(1, running * factor), 1e-12)
        for shift, rest in ((0.03, 0.3), (1.0, 1)):
            (a, _), (b, _) = self.random_pair(60, shift=shift)
            (_, _), (c, _) = self.random_pair(60, shift=shift, seed=2)
            shutil.rmtree(self.root / "a2")
            metrics = [one["metrics"] for one in self.compare(a, b, c)["comparisons"]]
            energies = [one["energy_per_query"] for one in metrics]
            others = [row for one in metrics for name, row in one.items()
                      if row["p_value"] is not None and name != "energy_per_query"]
            self.assertEqual(len(others), 2 * (len(set(METRICS) - UNKNOWN_HERE) - 1))
            holm(energies, 1 / 0.7)
            self.assertEqual(all(row["p_holm"] < 0.05 for row in energies), rest == 1)
            holm(others, 1 / rest)
            for run in (a, b, c):
                shutil.rmtree(run)


# ---- verdicts ----

class Verdicts(CompareTest):
    def test_run_against_itself_has_no_difference(self):
        (a, _), _ = self.random_pair(30)
        report = self.compare(a, a)
        self.assertEqual(report["comparisons"][0]["findings"], [])
        for name, row in report["comparisons"][0]["metrics"].items():
            wanted = ("not known", None, None) if name in UNKNOWN_HERE else ("no evidence", 0, 1)
            self.assertEqual((row["verdict"], row["difference"], row["p_holm"]), wanted, name)

    def test_random_differences_are_no_evidence(self):
        worded = 0
        for seed in range(100, 120):
            (a, _), (b, _) = self.random_pair(20, seed=seed)
            worded += any(row["verdict"] != "no evidence" for name, row in self.metrics(a, b).items() if name not in UNKNOWN_HERE)
        self.assertLessEqual(worded, 5)  # one of twenty is expected; six have a probability of 1/3000

    def test_known_difference_is_found_in_both_directions(self):
        (a, _), (b, _) = self.random_pair(60, shift=0.5)
        forth, back = self.metrics(a, b), self.metrics(b, a)
        for name in ("energy_per_query", "active_energy", "latency", "ttft"):
            self.assertEqual((forth[name]["verdict"], back[name]["verdict"]), ("worse", "better"), name)
            low, high = forth[name]["relative_interval_95"]
            self.assertTrue(low < 0.5 < high, (name, low, high))
            self.assertEqual(forth[name]["better"], "lower")
        self.assertEqual(forth["tokens_per_s"]["better"], "higher")
        self.assertEqual(forth["energy_per_query"]["label"], "Energy per query")
        self.assertEqual(forth["accuracy"]["verdict"], "no evidence")

    def test_higher_is_better_for_accuracy_and_throughput(self):
        a = self.run_of("a", [query(i, latency=2.0 + 0.01 * (i % 7), correct=i % 5 == 0) for i in range(60)])
        b = self.run_of("b", [query(i, latency=1.0 + 0.01 * (i % 5), correct=i % 5 != 0) for i in range(60)])
        found = self.metrics(a, b)
        for name in ("accuracy", "tokens_per_s", "ipj"):
            self.assertEqual(found[name]["verdict"], "better", name)
        self.assertEqual(found["power"]["verdict"], "higher")  # the same joules in half the time

    def test_same_seed_gives_same_result(self):
        (a, _), (b, _) = self.random_pair(40)
        one, two = (ipw(None, "compare", a, b, "--seed", "5", "--json").stdout for _ in range(2))
        self.assertEqual(one, two)
        self.assertNotEqual(one, ipw(None, "compare", a, b, "--seed", "6", "--json").stdout)

    def test_repeats_of_a_question_count_once(self):
        rng = random.Random(3)
        rows = [[query(i, joules=rng.gauss(10, 2) + more, repeat=r, correct=rng.random() < 0.5)
                 for i in range(12) for r in range(4)] for more in (0, 1)]
        a, b = self.run_of("a", rows[0]), self.run_of("b", rows[1])
        found = self.metrics(a, b)
        self.assertEqual(found["energy_per_query"]["run"]["queries"], 48)
        self.assertEqual(found["accuracy"]["test"], "paired permutation")
        sums = [[sum(joules_of(run[4 * i:4 * i + 4])) for i in range(12)] for run in rows]
        self.assertAlmostEqual(found["energy_per_query"]["difference"], (sum(sums[1]) - sum(sums[0])) / 48)
        # Twelve questions have 4096 permutations, all of which are tried.
        p = found["energy_per_query"]["of_these_runs"]["p_value"] * 4096
        self.assertAlmostEqual(p, round(p))

    def test_queries_missing_in_one_run_are_left_out(self):
        a = self.run_of("a", [query(i, joules=10.0 + i) for i in range(20)])
        b = self.run_of("b", [query(i, joules=10.0 + i, failed=i == 3) for i in range(15)])
        report = self.compare(a, b)["comparisons"][0]
        self.assertEqual((report["same_queries"], report["baseline_only"], report["run_only"]), (15, 5, 0))
        row = report["metrics"]["energy_per_query"]
        self.assertEqual((row["baseline"]["queries"], row["difference"]), (14, 0))

    def commands(self, name, joules):
        """A run of `ipw run -r N`: repeats of a command."""
        return self.run_of(name, [query(0, joules=j, latency=j / 50, repeat=i) for i, j in enumerate(joules)], kind="run")

    def test_repeats_of_commands_get_welch_test(self):
        """Four repeats each, 63 % apart with a scatter of 0.5 %, are enough for Welch's test."""
        a = self.commands("four", [100.0, 100.5, 99.5, 100.2])
        b = self.commands("more", [163.0, 163.8, 162.2, 163.1])
        found = self.compare(a, b)["comparisons"][0]
        self.assertFalse([line for line in texts_of(found) if "too few" in line])
        row = found["metrics"]["energy_per_query"]
        self.assertEqual((row["test"], row["verdict"]), ("Welch's t", "worse"))
        low, high = row["relative_interval_95"]
        self.assertTrue(0.60 < low < 0.63 < high < 0.66, (low, high))
        if st:
            p = st.ttest_ind([163.0, 163.8, 162.2, 163.1], [100.0, 100.5, 99.5, 100.2], equal_var=False).pvalue
            self.assertAlmostEqual(row["p_value"] / p, 1, delta=1e-6)
        one = self.commands("one", [100.0])
        found = self.compare(a, one)["comparisons"][0]
        self.assertIn("too few runs for a verdict: at least 2 repeats each (-r 2)", texts_of(found))
        self.assertEqual(found["metrics"]["energy_per_query"]["verdict"], "not known")

    def test_one_run_of_each_command(self):
        """A factor of two is decided, 9 % is not: nothing is known of the scatter but the 5 % that are assumed."""
        a = self.commands("a", [100.0])
        for joules, verdict, said in ((200.0, "worse", "higher by 100 %: worse"), (50.0, "better", "lower by 50 %: better"),
                                      (91.0, "not decided", "lower in this run by 9 %; one run a side: not decided")):
            found = self.compare(a, self.commands(f"b{joules}", [joules]))["comparisons"][0]
            row = found["metrics"]["energy_per_query"]
            self.assertEqual((row["verdict"], row["statement"], row["test"]), (verdict, said, "spread between runs"))
            self.assertFalse([line for line in texts_of(found) if "too few" in line])
            self.assertIn("repeat both sides with -r N", found["basis"])
            low, high = row["difference_interval_95"]
            half = 1.959964 * 0.05 * math.hypot(100, joules)
            self.assertAlmostEqual(low, joules - 100 - half, delta=1e-3)
            self.assertAlmostEqual(high, joules - 100 + half, delta=1e-3)

    def test_drift_of_the_machine_is_no_difference(self):
        """Repeats of one command, then of another, while the power drifts: not decided; alternating, it would be."""
        def side(name, joules, times):
            return self.run_of(name, [query(0, joules=j, latency=j / 50, repeat=i, started_at=1.7e9 + t)
                                      for i, (j, t) in enumerate(zip(joules, times))], kind="run")
        a, b = [100.0, 100.55, 101.3, 101.75, 102.4], [103.1, 103.5, 104.3, 104.85, 105.3]
        found = self.compare(side("a", a, range(5)), side("b", b, range(5, 10)))["comparisons"][0]
        row = found["metrics"]["energy_per_query"]
        self.assertEqual((row["verdict"], row["test"]), ("not decided", "Welch's t with trend"))
        self.assertLess(row["of_these_runs"]["p_value"], 0.005)
        self.assertEqual(row["statement"], "higher in these runs by 3 %; runs also change in the order of their measurement: "
                                           "not decided")
        found = self.compare(side("c", a, range(0, 10, 2)), side("d", b, range(1, 10, 2)))["comparisons"][0]
        self.assertEqual(found["metrics"]["energy_per_query"]["verdict"], "worse")

    def test_too_few_queries_for_a_verdict_are_reported(self):
        """A permutation test of n pairs has p >= 2 / 2^n, one of n against n has p >= 2 / C(2n, n)."""
        def against(n, paired):
            a = self.run_of(f"a{n}{paired}", [query(i, joules=10.0 + i / 10) for i in range(n)])
            b = self.run_of(f"b{n}{paired}", [query(i, joules=99.0 + i / 10, problem=None if paired else f"other {i}")
                                              for i in range(n)])
            found = self.compare(a, b)["comparisons"][0]
            self.assertEqual(found["paired"], paired)
            tests = sum(row["p_value"] is not None for row in found["metrics"].values()) - 1  # beside energy per query
            few = [line for line in texts_of(found) if line.startswith("too few")]
            return tests, few, found["metrics"]["energy_per_query"]["verdict"]
        for paired in (True, False):
            tests, few, verdict = against(4, paired)
            floor = (lambda n: 2 / 2 ** n) if paired else (lambda n: 2 / math.comb(2 * n, n))
            needed = next(n for n in range(2, 64) if tests * floor(n) < 0.05)
            self.assertGreater(needed, 4)
            self.assertEqual((few, verdict in ("no evidence", "worse")), ([f"too few queries for a verdict on {tests} metrics: at least {needed}"
                                               + ("" if paired else " on each side")], True))
            self.assertEqual(against(needed - 1, paired)[1], few)
            self.assertEqual(against(needed + 1, paired)[1:], ([], "worse"))

    def test_unknown_figures_have_no_verdict(self):
        a = self.run_of("a", [query(i) for i in range(10)])
        b = self.run_of("b", [query(i, joules=None) for i in range(10)])
        found = self.metrics(a, b)
        for name in ("energy_per_query", "ipj", "ipw", "power", "accuracy"):
            row = found[name]
            self.assertEqual((row["verdict"], row["p_value"], row["difference"]), ("not known", None, None))
        self.assertEqual(found["latency"]["verdict"], "no evidence")


# ---- fairness ----

class Fairness(CompareTest):
    def pair(self, **facts):
        queries = [query(i, joules=10.0 + i % 3) for i in range(20)]
        count = len(list(self.root.iterdir()))
        return self.run_of(f"a{count}", queries), self.run_of(f"b{count}", queries, **facts)

    def test_differences_of_setup_are_reported(self):
        for facts, words in (({"hardware": "A100"}, ("different hardware", "A100", "H100")),
                             ({"host": "node2"}, ("different machine", "node2", "node1")),
                             ({"dataset": "gsm8k"}, ("different dataset", "gsm8k", "builtin")),
                             ({"concurrency": 8}, ("different concurrency", "8", "1")),
                             ({"source": "rapl package"}, ("different energy sensors", "rapl package")),
                             ({"method": "integral"}, ("different energy method", "integral", "counter")),
                             ({"method": "estimated"}, ("estimated by a model",)),
                             ({"template": "x {problem}"}, ("prompt template", "x {problem}", "none"))):
            found = self.warnings(*self.pair(**facts))
            self.assertTrue(any(all(word in line for word in words) for line in found), (facts, found))
        self.assertEqual(self.warnings(*self.pair()), [])

    def test_different_models_are_reported(self):
        a, _ = self.pair()
        text = (a / "records.jsonl").read_text().replace(MODEL, "other:7b")
        b = self.root / "other"
        shutil.copytree(a, b)
        (b / "records.jsonl").write_text(text)
        (b / "summary.json").write_text((a / "summary.json").read_text().replace(MODEL, "other:7b"))
        self.assertIn(f"different model: 'other:7b', baseline '{MODEL}'", self.warnings(a, b))

    def test_different_questions_are_reported(self):
        a, _ = self.pair()
        b = self.run_of("c", [query(i, problem=f"question {i}" if i < 18 else "new") for i in range(20)])
        found = self.warnings(a, b)
        self.assertTrue(any("2 questions with the same key differ" in line for line in found), found)
        self.assertTrue(self.compare(a, b)["comparisons"][0]["paired"])

    def test_question_warnings_depend_on_run_kind(self):
        """Windows of `ipw layers` are settings and runs of commands have no questions; requests of a proxy may
        differ."""
        for kind, says in (("layers", False), ("run", False), ("proxy", True), ("profile", True)):
            a = self.run_of(f"a-{kind}", [query(i) for i in range(8)], kind=kind)
            b = self.run_of(f"b-{kind}", [query(i, problem=f"new {i}") for i in range(8)], kind=kind)
            self.assertEqual(any("question" in line for line in self.warnings(a, b)), says, kind)

    def test_interruptions_failures_and_low_coverage_are_reported(self):
        queries = [query(i, failed=i < 4) for i in range(20)]
        gaps = [query(i) for i in range(20)]
        for row in gaps:
            row["ipw"]["energy"]["coverage"] = 0.5
        a, _ = self.pair()
        cut = summary(queries)
        cut["ipw"]["interrupted"] = True
        for run, words in ((self.run_of("f", queries), "4 of 20 queries of this run failed"),
                           (self.run_of("u", queries[4:], whole=False), "this run is unfinished"),
                           (self.run_of("i", queries[4:], whole=cut), "this run was interrupted"),
                           (self.run_of("g", gaps), "cover only 50 %"),
                           (self.run_of("n", [query(i, joules=None if i else 1.0) for i in range(20)]),
                            "energy of 19 of 20 queries of this run is unknown")):
            found = self.warnings(a, run)
            self.assertTrue(any(words in line for line in found), (words, found))
            self.assertFalse([line for line in found if "{" in line], "journal line in a warning")

    def test_different_sensors_widen_the_interval(self):
        """With a sensor error of 10 %, a difference of 20 % is no evidence, but 70 % is."""
        def against(factor, **facts):
            a = self.run_of(f"a{factor}{len(facts)}", [query(i, joules=10.0 + i % 3) for i in range(40)])
            b = self.run_of(f"b{factor}{len(facts)}",
                            [query(i, joules=factor * (10.0 + (i + 1) % 3)) for i in range(40)], **facts)
            return self.metrics(a, b)["energy_per_query"]
        self.assertEqual(against(1.2)["verdict"], "worse")
        self.assertEqual(against(1.2, source="rapl package", calibration=0.1)["verdict"], "not decided")
        far = against(1.7, source="rapl package", calibration=0.1)
        self.assertEqual(far["verdict"], "worse")
        half = (far["relative_interval_95"][1] - far["relative_interval_95"][0]) / 2
        self.assertGreater(half, 1.9 * 1.7 * (0.1 ** 2 + 0.03 ** 2) ** 0.5)
        side = far["run"]
        self.assertAlmostEqual(side["plus_minus"],
                               (side["plus_minus_statistical"] ** 2 + (0.1 * side["value"]) ** 2) ** 0.5)


class Conditions(CompareTest):
    """The second run uses 30 % more energy and 50 % more time, because of the program or of the conditions."""

    def measured(self, name, factor, conditions, **facts):
        queries = [query(i, joules=factor * (10.0 + i % 3), latency=1.0 + (factor - 1) * 5 / 3,
                         correct=i % 4 > 0) for i in range(20)]
        whole = summary(queries, **facts)
        if conditions is not None:
            whole["ipw"]["conditions"] = {"seconds": 2.0, "idle_w": 50.0, "idle_plus_minus": 0.5, "devices": [],
                                          "findings": [], **conditions}
        return self.run_of(name, queries, whole=whole)

    def against(self, left, right, *options, code=0, **facts):
        count = len(list(self.root.iterdir()))
        a = self.measured(f"a{count}", 1.0, left)
        return self.compare(a, self.measured(f"b{count}", 1.3, right, **facts), *options, code=code)["comparisons"][0]

    @staticmethod
    def finding(code, severity):
        return {"findings": [{"code": code, "severity": severity, "text": f"the {code} of it"}]}

    def test_conditions_that_block_a_verdict(self):
        cases = [({}, self.finding("background_cpu", "breaks"), "this run: the background_cpu of it"),
                 (self.finding("background_cpu", "breaks"), None, "the baseline: the background_cpu of it"),
                 ({}, self.finding("background_cpu", "warning"), "this run: the background_cpu of it"),
                 (self.finding("throttled", "warning"), {}, "the baseline: the throttled of it")]
        for left, right, words in cases:
            found = self.against(left, right)
            self.assertIn(f"energies are not comparable: {words}", texts_of(found)[:2])
            self.assertEqual(found["conditions"], "not comparable")
            for name, row in found["metrics"].items():
                energy = name in ("energy_per_query", "energy_per_output_token", "active_energy", "ipj", "ipw", "power")
                self.assertEqual(row["verdict"] == "not comparable", energy, (name, words))
            self.assertEqual(found["metrics"]["latency"]["verdict"], "worse")

    def test_idle_power_counts_in_joules(self):
        """Runs of 110 and 143 W: of the 30 % more energy, 40 W of idle power explain 28 %, and 8 W 6 %."""
        found = self.against({}, {"idle_w": 90.0})
        self.assertEqual((found["conditions"], found["metrics"]["energy_per_query"]["verdict"]),
                         ("not comparable", "not comparable"))
        self.assertIn("energies are not comparable: idle power 90 W, baseline 50 W, which may explain up to +28.",
                      texts_of(found)[0])
        self.assertEqual(found["metrics"]["energy_per_query"]["statement"],
                         "higher in this run by 30 %; conditions differ: not comparable")
        found = self.against({}, {"idle_w": 58.0})
        self.assertEqual((found["conditions"], found["metrics"]["energy_per_query"]["verdict"]), ("comparable", "worse"))
        self.assertIn("idle power 58 W, baseline 50 W, which may explain up to +6.", texts_of(found)[0])
        self.assertIn("verdicts allow for it", texts_of(found)[0])
        found = self.against({}, {"idle_w": 20.0})  # it makes the difference smaller
        self.assertEqual(found["metrics"]["energy_per_query"]["verdict"], "worse")

    def test_background_load_counts_in_joules(self):
        """At most twice its recorded energy, else its share of the busy CPUs."""
        load = {"cpus": 32, "background_cpus": 1.28, "background_cpus_plus_minus": 0.01, "cpu_busy_s": 10.0,
                "cpu_own_s": 7.44, "background_joules": 40.0}
        calm = {**load, "background_cpus": 0.0, "cpu_busy_s": 7.44, "background_joules": 0.0}
        found = self.against(calm, load)
        self.assertEqual(found["metrics"]["energy_per_query"]["verdict"], "not comparable")
        self.assertIn("background load of 4 % of the CPUs, baseline 0 %, which may explain -0.5 to +32.", texts_of(found)[0])
        self.assertEqual(self.against(calm, {**load, "background_joules": 3.0})["metrics"]["energy_per_query"]["verdict"],
                         "worse")
        unknown = self.against({**calm, "background_joules": None}, {**load, "background_joules": None})
        self.assertEqual(unknown["metrics"]["energy_per_query"]["verdict"], "not comparable")
        self.assertIn("to +30.", texts_of(unknown)[0])  # 25.6 % of the busy time, and 4 % of all CPUs
        self.assertEqual(self.against(load, load)["metrics"]["energy_per_query"]["verdict"], "worse")

    def test_conditions_that_do_not_block_a_verdict(self):
        both = self.finding("throttled", "warning")
        for left, right, facts in (({}, {}, {}), ({}, {"idle_w": 50.9}, {}), (both, both, {}),
                                   ({}, self.finding("background_unknown", "note"), {}),
                                   ({}, {"idle_w": 90.0}, {"host": "node2"})):
            found = self.against(left, right, **facts)
            self.assertEqual((found["conditions"], found["metrics"]["energy_per_query"]["verdict"]),
                             ("comparable", "worse"), (left, right))

    def test_runs_without_conditions_are_compared(self):
        found = self.against({}, None)
        self.assertEqual((found["conditions"], found["metrics"]["energy_per_query"]["verdict"]), ("unknown", "worse"))
        self.assertTrue(texts_of(found)[0].startswith("conditions unknown: this run"), texts_of(found))

    def test_bounds_that_conditions_may_exceed_are_refused(self):
        energy, latency = ("--fail-if", "energy_per_query > 5%"), ("--fail-if", "latency > 5%")
        hot = {"idle_w": 90.0}
        self.against({}, hot, *energy, code=4)
        self.assertEqual(self.done.stderr.count("\n"), 1)
        self.assertIn("--ignore-conditions", self.done.stderr)
        self.assertEqual(json.loads(self.done.stdout)["checks"][0]["outcome"], "not comparable")
        self.against({}, hot, *energy, *latency, code=1)
        self.against({}, hot, "--fail-if", "latency > 90%", code=0)
        self.against({}, hot, "--fail-if", "energy_per_query > 50%", code=0)  # whatever idle power explains
        self.against({}, {"idle_w": 60.0}, *energy, code=1)
        found = self.against({}, hot, *energy, "--ignore-conditions", code=1)
        self.assertEqual((found["conditions"], found["metrics"]["energy_per_query"]["verdict"]), ("ignored", "worse"))


# ---- bounds ----

class Bounds(CompareTest):
    def setUp(self):
        super().setUp()
        rng = random.Random(1)
        noise = [rng.gauss(0, 1) for _ in range(20)]
        self.a = self.run_of("a", [query(i, joules=10.0, latency=1.0, correct=True) for i in range(20)])
        self.b = self.run_of("b", [query(i, joules=10.8 + 4 * noise[i] - 4 * sum(noise) / 20, latency=1.0,
                                         correct=i > 0) for i in range(20)])

    def check_bounds(self, *bounds, confident=False):
        done = ipw(None, "compare", self.a, self.b, *(["--confident"] if confident else []),
                   *(part for bound in bounds for part in ("--fail-if", bound)))
        return done

    def test_bounds_in_both_directions(self):
        for bound, code in (("energy_per_query > +5%", 1), ("energy_per_query > +9%", 0),
                            ("energy_per_query>5%", 1), ("energy_per_query < +9%", 1),
                            ("energy_per_query < -5%", 0), ("energy_per_query > 0.7", 1),
                            ("energy_per_query > 0.9", 0), ("accuracy < -0.04", 1),
                            ("accuracy < -0.06", 0), ("accuracy < -4%", 1), ("accuracy >= 0", 0),
                            ("latency >= 0", 1), ("latency > 0", 0), ("latency <= 0", 1),
                            ("  latency  <  -1e-3 % ", 0)):
            done = self.check_bounds(bound)
            self.assertEqual(done.returncode, code, (bound, done.stderr))
            self.assertIn("FAILED" if code else "passed", done.stdout)
            lines = done.stderr.splitlines()
            self.assertEqual(len(lines), code, done.stderr)
            if code:
                self.assertTrue(lines[0].startswith(f"ipw compare: '{bound}': "), lines)

    def test_confident_needs_repeats(self):
        bound = "energy_per_query > +5%"
        done = self.check_bounds(bound, confident=True)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (4, 1))
        for words in (bound, "one run a side: not decided", "--repeat-runs"):
            self.assertIn(words, done.stderr)
        self.assertIn("energy_per_query ", done.stdout)  # the report is still printed
        report = self.compare(self.a, self.b, "--confident", "--fail-if", bound, code=4)
        self.assertEqual([c["outcome"] for c in report["checks"]], ["not repeated"])
        done = self.check_bounds(confident=True)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (4, 1))
        self.assertIn("--repeat-runs", done.stderr)

    def test_one_run_per_side_is_reported(self):
        unknown = "one run a side: not decided"
        done = self.check_bounds("energy_per_query > +5%", "latency > 1%")
        self.assertEqual(done.returncode, 1)
        self.assertIn(unknown, done.stderr)
        self.assertRegex(done.stdout, rf"passed: 'latency > 1%': .*; {unknown}\n")

    def test_several_bounds(self):
        done = self.check_bounds("latency > 1%", "energy_per_query > 5%", "accuracy < -1%")
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 2))
        report = self.compare(self.a, self.b, "--fail-if", "latency > 1%", "--fail-if",
                              "energy_per_query > 5%", code=1)
        self.assertEqual([(c["metric"], c["outcome"]) for c in report["checks"]],
                         [("latency", "passed"), ("energy_per_query", "failed")])

    def test_bound_on_unknown_figure_fails(self):
        blind = self.run_of("blind", [query(i, joules=None) for i in range(20)])
        done = ipw(None, "compare", self.a, blind, "--fail-if", "energy_per_query > 5%")
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot be checked", done.stderr)

    def test_invalid_bounds(self):
        for bound, words in (("energy_per_token > 5%", "did you mean 'energy_per_query'"),
                             ("latensy > 5%", "did you mean 'latency'"),
                             ("zzzzzzzz > 1", "use one of energy_per_query"),
                             ("latency", "is not a bound"), ("latency = 5", "is not a bound"),
                             ("> 5%", "is not a bound"), ("latency >", "no number"),
                             ("latency > much", "no number"), ("latency > 5%%", "no number"),
                             ("latency > nan", "no number"), ("latency > 0x10%", "no number")):
            done = self.check_bounds(bound)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), bound)
            self.assertIn(words, done.stderr)


# ---- repeats ----

class Repeats(CompareTest):
    """Runs differ by a few percent from each other, their queries by one percent."""
    A, B = (-0.04, 0.03, 0.01, -0.02), (0.03, -0.03, 0.02, 0.0)

    def repeats(self, name, offsets, shift=0.0, folder="", correct=None, **facts):
        rng = random.Random(name)
        return [self.run_of(f"{folder}{name}_r{r + 1}",
                            [query(i, joules=(10 + i % 7) * (1 + offset + shift) * rng.gauss(1, 0.01),
                                   latency=(1 + offset + shift) * rng.gauss(1, 0.01),
                                   correct=correct and correct(i)) for i in range(40)], **facts)
                for r, offset in enumerate(offsets)]

    def test_repeated_runs_are_compared_at_run_level(self):
        a, b = self.repeats("a", self.A), self.repeats("b", self.B)
        one = self.compare(a[0], b[0])["comparisons"][0]
        self.assertEqual((one["method"], one["runs"]), ("query-level", {"baseline": 1, "run": 1}))
        self.assertEqual(one["metrics"]["energy_per_query"]["verdict"], "not decided")
        self.assertLess(one["metrics"]["energy_per_query"]["of_these_runs"]["p_value"], 0.001)
        self.assertIsNone(one["metrics"]["energy_per_query"]["dof"])
        all_of = self.compare(*a, *b)["comparisons"]
        self.assertEqual(len(all_of), 1)
        self.assertEqual((all_of[0]["method"], all_of[0]["runs"]), ("run-level", {"baseline": 4, "run": 4}))
        for name in ("energy_per_query", "latency", "tokens_per_s", "power"):
            self.assertEqual(all_of[0]["metrics"][name]["verdict"], "no evidence", name)
            self.assertGreater(all_of[0]["metrics"][name]["p_value"], 0.2)
        self.assertEqual(all_of[0]["directories"], [str(run) for run in b])

    def test_difference_beyond_run_to_run_scatter_is_found(self):
        a, b = self.repeats("a", self.A), self.repeats("b", self.B, shift=0.3)
        row = self.metrics(*a, *b)["energy_per_query"]
        self.assertEqual((row["verdict"], row["test"]), ("worse", "Welch's t"))
        low, high = row["relative_interval_95"]
        self.assertTrue(0.2 < low < 0.31 < high < 0.4, (low, high))

    @unittest.skipIf(st is None, "scipy is not here")
    def test_run_level_figures_agree_with_scipy(self):
        a, b = self.repeats("a", self.A), self.repeats("b", self.B, shift=0.04)
        found = self.metrics(*a, *b)

        def means(runs, pick):
            return [np.mean([pick(json.loads(line)) for line in (run / "records.jsonl").read_text().splitlines()[1:-1]])
                    for run in runs]
        for name, pick in (("energy_per_query", lambda q: q["ipw"]["energy"]["joules"]),
                           ("latency", lambda q: metric_of(q, "latency_metrics", "total_query_seconds"))):
            x, y = means(a, pick), means(b, pick)
            wanted, row = st.ttest_ind(y, x, equal_var=False), found[name]
            self.assertAlmostEqual(row["p_value"], wanted.pvalue, delta=1e-9)
            self.assertAlmostEqual(row["dof"], wanted.df, delta=1e-9)
            self.assertAlmostEqual(row["run"]["value"], np.mean(y), delta=1e-12)
            self.assertAlmostEqual(row["run"]["plus_minus"], st.sem(y), delta=1e-12)
            for ours, theirs in zip(row["difference_interval_95"], wanted.confidence_interval(0.95)):
                self.assertAlmostEqual(ours, theirs, delta=1e-9)

    def test_one_run_a_side_has_the_spread_of_repeats_in_the_run_index(self):
        """8 % between single runs: not decided with 5 % assumed, nor with repeats that scatter by 3 %; decided with repeats
        that scatter by 0.3 %.  Runs of another configuration or machine do not count."""
        def statement(folder, scatter, **others):
            repeats = self.repeats("a", [scatter * x for x in (-1, 1, 0.5, -0.5, 0)], folder=folder)
            other = self.repeats("b", [0], shift=0.08, folder=folder, concurrency=4)[0]
            self.repeats("c", [-0.5, 0.5], folder=folder, concurrency=16, host="node2")
            if scatter:
                done = ipw(None, "list", "runs", self.root / folder)
                self.assertEqual(done.returncode, 0, done.stderr)
            one = self.compare(repeats[4], "--", other)["comparisons"][0]
            return one["spread"], one["metrics"]["energy_per_query"]["statement"], one["basis"]
        spread, said, basis = statement("none/", 0)
        self.assertEqual((spread, said), ({"energy_pct": 5, "time_pct": 5, "repeats": 0},
                                          "higher in this run by 8.1 %; one run a side: not decided"))
        self.assertIn("5 % of each energy and time, assumed", basis)
        values = [-0.003, 0.003, 0.0015, -0.0015, 0]
        spread, said, basis = statement("calm/", 0.003)
        wanted = 100 * (sum(v * v for v in values) / 4) ** 0.5
        self.assertEqual((spread["repeats"], said), (5, "higher by 8.1 %: worse"))
        self.assertAlmostEqual(spread["energy_pct"], wanted, delta=0.3 * wanted)  # queries scatter by 1 % as well
        self.assertIn("of 5 repeats in the run index", basis)
        self.assertIn("not decided", statement("wild/", 0.03)[1])

    def test_grouping_of_runs_into_sides(self):
        a, b = self.repeats("a", self.A[:2]), self.repeats("b", self.B[:3])

        def sides(*arguments):
            report = self.compare(*arguments)
            return [len(side["directories"]) for side in (report["baseline"], *report["comparisons"])]
        self.assertEqual(sides(*a, *b), [2, 3])
        self.assertEqual(sides(a[0], b[0], a[1], b[1]), [2, 2])     # in any order
        self.assertEqual(sides(a[0], "--", a[1], "--", *b), [1, 1, 3])
        self.assertEqual(sides(*a, b[0], "--", b[1], b[2]), [3, 2])
        self.assertEqual(sides(*a), [1, 1])                          # repeats of one setting against each other
        self.assertEqual(sides(a[0], a[0]), [1, 1])
        self.assertEqual(sides(self.root), [2, 3])                   # a folder stands for the runs in it
        queries = [query(i) for i in range(40)]
        before, after = self.run_of("before", queries), self.run_of("after", queries)
        self.assertEqual(sides(before, after), [1, 1])               # equal settings without a repeat group
        at_8 = self.repeats("a8", self.A[:2], concurrency=8)
        other = self.run_of("a8_r3", queries, concurrency=4)
        self.assertEqual(sides(*at_8, other), [2, 1])
        c = [self.run_of(f"{folder}/{name}", queries, group=group)
             for folder, name, group in (("c", "x", "1f"), ("c", "y", "1f"), ("d", "x", "2f"), ("d", "y", "2f"))]
        self.assertEqual(sides(*c), [2, 2])
        self.assertEqual(sides(self.root / "c", self.root / "d"), [2, 2])

    def test_options_after_separator(self):
        a, b = self.repeats("a", self.A[:2]), self.repeats("b", self.B[:2])
        done = ipw(None, "compare", a[0], "--", b[0], "--format", "md")
        self.assertIn("| metric |", done.stdout, done.stderr)
        done = ipw(None, "compare", *a, "--")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_one_run_against_several(self):
        a, b = self.repeats("a", self.A[:1]), self.repeats("b", self.B)
        found = self.compare(a[0], "--", *b)["comparisons"][0]
        row = found["metrics"]["energy_per_query"]
        self.assertEqual((row["verdict"], row["p_value"], row["difference_interval_95"]), ("not known", None, None))
        self.assertIsNotNone(row["difference"])
        self.assertTrue(any("differences between runs are unknown" in line for line in texts_of(found)))
        self.compare(a[0], "--", *b, "--confident", "--fail-if", "latency > 90%", code=4)

    def test_confident_bounds_use_the_interval(self):
        """+8 % with an interval from about 3 to 13 %."""
        a, b = self.repeats("a", self.A), self.repeats("b", self.B, shift=0.075)
        for bound, code in (("energy_per_query > +5%", 0), ("energy_per_query > -30%", 1),
                            ("energy_per_query < +60%", 1), ("energy_per_query < +9%", 0)):
            done = ipw(None, "compare", *a, *b, "--confident", "--fail-if", bound)
            self.assertEqual(done.returncode, code, (bound, done.stderr))
            self.assertNotIn("unknown", done.stderr)

    def test_identical_answers_add_no_certainty(self):
        """A model that is wrong about one question in every run: McNemar's test has one differing pair."""
        a = self.repeats("a", self.A, correct=lambda i: i % 2 == 0)
        b = self.repeats("b", self.B, correct=lambda i: i % 2 == 0 and i > 0)
        row = self.metrics(*a, *b)["accuracy"]
        self.assertAlmostEqual(row["difference"], -1 / 40)
        self.assertEqual((row["verdict"], row["p_value"]), ("no evidence", 1))
        low, high = row["difference_interval_95"]
        self.assertTrue(low < 0 <= high, (low, high))

    def test_sides_are_named_by_their_difference(self):
        one, eight = self.repeats("a", self.A[:2]), self.repeats("b", self.B[:2], concurrency=8)
        report = self.compare(*one, *eight)
        self.assertEqual([report["baseline"]["name"], report["comparisons"][0]["name"]],
                         ["concurrency 1", "concurrency 8"])
        text = ipw(None, "compare", *one, *eight).stdout
        self.assertIn(" baseline: concurrency 1\n", text)
        self.assertIn(f"{eight[0]} and 1 more: 2 runs", text)
        self.assertEqual(self.compare(*self.repeats("x", self.A[:2]), *self.repeats("y", self.A[:2]))
                         ["comparisons"][0]["name"], "y")

    def test_mixed_settings_on_one_side_are_reported(self):
        a = self.repeats("a", self.A[:1]) + self.repeats("a4", self.A[:1], concurrency=4)
        found = texts_of(self.compare(*a, "--", *self.repeats("b", self.B[:2]))["comparisons"][0])
        self.assertTrue(any("not repeats of one setting" in line and "a4_r1" in line for line in found), found)


# ---- common calibration error ----

class CommonError(CompareTest):
    def pair(self, **facts):
        (a, _), (b, _) = self.random_pair(30, shift=0.3, calibration=0.6, **facts)
        return a, b

    def test_common_error_of_one_machine_cancels(self):
        a, b = self.pair(method="estimated", source="cpu model")
        one = self.compare(a, b)["comparisons"][0]
        self.assertAlmostEqual(one["common_pct"], 60)
        row = one["metrics"]["energy_per_query"]
        for side in (row["baseline"], row["run"]):
            self.assertEqual(side["plus_minus"], side["plus_minus_statistical"])
            self.assertLess(side["plus_minus"], 0.2 * side["value"])
        text = ipw(None, "compare", a, b).stdout
        self.assertEqual(text.count("energies ±60 % common to all, cancels in differences"), 1)
        self.assertEqual(ipw(None, "compare", a, b, a).stdout.count("energies ±60 % common to all, cancels in differences"), 1)
        self.assertIn("energies ±60 % common to all, cancels in differences", ipw(None, "compare", a, b, "--format", "md").stdout)

    def test_errors_of_different_sensors_do_not_cancel(self):
        a, _ = self.pair()
        b = self.run_of("b", [query(i) for i in range(30)], calibration=0.6, host="node2")
        one = self.compare(a, b)["comparisons"][0]
        self.assertIsNone(one["common_pct"])
        row = one["metrics"]["energy_per_query"]
        for side in (row["baseline"], row["run"]):
            self.assertGreater(side["plus_minus"], 0.59 * side["value"])
        self.assertNotIn("common to all", ipw(None, "compare", a, b).stdout)


# ---- output formats and bad input ----

class Formats(CompareTest):
    def setUp(self):
        super().setUp()
        (self.a, _), (self.b, _) = self.random_pair(30, shift=0.3)

    def test_table_format(self):
        text = ipw(None, "compare", self.a, self.b).stdout
        for name in sorted(set(METRICS) - UNKNOWN_HERE):
            self.assertRegex(text, rf"(?m)^   {name} ")
        self.assertRegex(text, r"energy_per_query .* ± .* J .*\+\d+\.\d %.* 0\.0\d+  worse\n")
        self.assertIn("Holm", text)
        self.assertRegex(text, r"baseline: .*\n.*\n +'.*' on H100; 30 queries\n")
        self.assertIn("Energy per query: higher by 27 %: worse\n", text)
        self.assertRegex(text, r"include the spread between runs, 5 % of each\s+energy and time, assumed")
        self.assertLess(text.index("30 common queries"), text.index("energy_per_query"))

    def test_warnings_come_first(self):
        b = self.run_of("other", [query(i) for i in range(30)], hardware="A100")
        text = ipw(None, "compare", self.a, b).stdout
        self.assertLess(text.index("warning: different hardware"), text.index("energy_per_query"))

    def test_json_has_all_metrics_in_order(self):
        report = self.compare(self.a, self.b)
        self.assertEqual(list(report["comparisons"][0]["metrics"]), METRICS)
        self.assertEqual(report["correction"], "holm")
        self.assertEqual(ipw(None, "compare", self.a, self.b, "--format", "json").stdout, self.done.stdout)

    def test_suffix_of_the_file_gives_the_format(self):
        for name in ("json", "csv", "md", "html"):
            out, given = self.root / f"out.{name}", self.root / "given"
            self.assertEqual(ipw(None, "compare", self.a, self.b, "-o", out).returncode, 0)
            ipw(None, "compare", self.a, self.b, "--format", name, "-o", given)
            without_time = [re.sub(r'"made_at": ?"[^"]*"', "", path.read_text()) for path in (out, given)]
            self.assertEqual(*without_time)
        self.assertIn("energy_per_query", (self.root / "out.html").read_text())

    def test_output_file(self):
        out = self.root / "out.json"
        done = ipw(None, "compare", self.a, self.b, "--json", "-o", out)
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        self.assertEqual(len(json.loads(out.read_text())["comparisons"]), 1)
        done = ipw(None, "compare", self.a, self.b, "-o", self.root / "no" / "where")
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1))

    def test_several_runs_against_one_baseline(self):
        report = self.compare(self.a, self.b, self.a)
        self.assertEqual([c["directory"] for c in report["comparisons"]], [str(self.b), str(self.a)])


class OneVoice(CompareTest):
    """The same two runs in `ipw compare`, `ipw analyze` and the report; the page of the dashboard is test_serve_web.py."""

    def test_every_view_has_the_same_verdict(self):
        for shift, decided in ((0.1, False), (1.0, True)):
            (a, _), (b, _) = self.random_pair(40, shift=shift, seed=int(10 * shift))
            row = self.metrics(a, b)["energy_per_query"]
            self.assertEqual(row["verdict"], "worse" if decided else "not decided")
            caveat = "one run a side: not decided"
            for name in ("table", "md"):
                text = ipw(None, "compare", a, b, "--format", name).stdout
                self.assertIn(f"Energy per query: {row['statement']}", text)
                self.assertEqual(caveat in text, not decided)
            page = self.root / "page.html"
            self.assertEqual(ipw(None, "report", a, b, "-o", page).returncode, 0)
            answer = json.loads(re.search(r'"answer":("[^"]*less than[^"]*")', page.read_text()).group(1))
            self.assertEqual(caveat in answer, not decided, answer)
            said = " ".join(ipw(None, "analyze", a, b).stdout.split())
            self.assertTrue(said.startswith(answer), (said[:300], answer))


class BadInput(CompareTest):
    def fails(self, *arguments, code=1, words=""):
        done = ipw(None, "compare", *arguments)
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (code, "", 1), done.stderr)
        self.assertIn(words, done.stderr)

    def test_usage_errors(self):
        self.fails(code=2, words="missing run directories")
        self.fails(self.root, code=2, words="missing run to compare with the baseline")
        self.fails(self.root, self.root, "--format", "xml", code=2)

    def test_bad_directories(self):
        good = self.run_of("good", [query(i) for i in range(5)])
        self.fails(good, self.root / "nothing", words="no such directory")
        self.fails(self.root / "nothing", good, words="no such directory")
        (self.root / "folder").mkdir()
        self.fails(good, self.root / "folder", words="not a run directory")
        self.fails(good, good, "--model", "other", words="has no model 'other'")

    def test_runs_with_one_record(self):
        one = self.run_of("one", [query(0)])
        row = self.metrics(one, one)["latency"]
        self.assertEqual((row["verdict"], row["difference"], row["of_these_runs"]["difference_interval_95"]),
                         ("no evidence", 0, None))

    def test_empty_and_failed_runs(self):
        good = self.run_of("good", [query(i) for i in range(5)])
        self.fails(good, self.run_of("empty", []), words="no record")
        self.fails(good, self.run_of("failed", [query(i, failed=True) for i in range(5)]),
                   words="all 5 queries")

    def test_damaged_run(self):
        good = self.run_of("good", [query(i) for i in range(10)])
        bad = self.run_of("bad", [query(i) for i in range(10)])
        lines = (bad / "records.jsonl").read_text().splitlines(keepends=True)
        lines[3] = lines[3][:40] + "\n"
        (bad / "records.jsonl").write_text("".join(lines))
        (bad / "summary.json").write_text("{")
        report = self.compare(good, bad)["comparisons"][0]
        self.assertEqual(report["same_queries"], 9)
        self.assertTrue(any("1 damaged lines in the journal of this run skipped" in w for w in texts_of(report)))
        (bad / "records.jsonl").write_bytes(bytes(range(256)) * 50)
        self.fails(good, bad)


if __name__ == "__main__":
    unittest.main(verbosity=2)
