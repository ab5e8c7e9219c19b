#!/usr/bin/env python3
# test: real time
"""Compatibility with the Python IPW in both directions.  Its package is in no registry, so its analyze and plot are
reimplemented here after its source (15 November 2026): Hugging Face datasets load the directory, NumPy fits, the same
columns are read in the same order.  For our directories it must give the figures of our analysis/*.json, and
directories in its old and new layouts must work in every command with its figures.
$IPW_PYTHON may name an interpreter that has datasets and NumPy; without them the test is skipped."""

import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
import oracle  # noqa: E402

oracle.use()

import csv
import io
import json
import math
import os
import re
import shutil
import sqlite3
import tempfile
import unittest

SCRATCH = tempfile.TemporaryDirectory(prefix="ipw-python-")
os.environ.update(HF_HOME=SCRATCH.name, HF_DATASETS_OFFLINE="1", HF_HUB_OFFLINE="1",
                  HF_DATASETS_DISABLE_PROGRESS_BARS="1")
try:
    import datasets
    import numpy as np
except ImportError as error:
    print(f"skipped: {error} (set IPW_PYTHON to an interpreter that has datasets and numpy)")
    sys.exit(77)

from machines import IntelNvidia  # noqa: E402
from plots import Picture  # noqa: E402
from program import ipw  # noqa: E402
from rundirs import texts_of  # noqa: E402
from python_ipw import MODEL, record, stats, summary  # noqa: E402

datasets.disable_progress_bars()
PAIRS = {"input_tokens_vs_ttft": ("input", "ttft", False), "total_tokens_vs_energy": ("total", "energy", False),
         "total_tokens_vs_latency": ("total", "latency", False),
         "total_tokens_vs_power": ("total", "power", False),
         "total_tokens_vs_power_log": ("total", "power", True)}
PLOTS = ("ttft", "latency", "energy", "power", "completion_tokens_kde")


# ---- the Python IPW's analysis of a directory ----

def at(value, *path):
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def first_known(values):
    return next((value for value in values if value is not None), None)


def first_positive(values):
    return next((value for value in values if positive(value)), None)


def only_model(rows):
    """The model of a directory that has exactly one with figures."""
    named = {name for row in rows for name, metrics in row["model_metrics"].items() if metrics}
    if len(named) != 1:
        raise RuntimeError(f"which of {sorted(named)}?")
    return named.pop()


def watts_of(metrics, component):
    stored = at(metrics, "power_metrics", component, "per_query_watts")
    return [at(stored, key) for key in ("avg", "median", "max", "min")]


def entries(path, model=None):
    """One entry per record with the model: the columns of its regression, plots and accuracy."""
    rows = datasets.load_from_disk(str(path))
    if not isinstance(rows, datasets.Dataset) or not len(rows):
        raise RuntimeError("no dataset")
    model = model or only_model(rows)
    found = []
    for row in rows:
        metrics = row["model_metrics"].get(model)
        if not isinstance(metrics, dict):
            continue
        tokens_in, tokens_out = at(metrics, "token_metrics", "input"), at(metrics, "token_metrics", "output")
        total = at(metrics, "token_metrics", "total")
        if total is None and None not in (tokens_in, tokens_out):  # it treats unknown as 0
            total = tokens_in + tokens_out
        basis = at(metrics, "energy_metrics", "basis") or at(metrics, "power_metrics", "basis") or "gpu"
        joules, rail = at(metrics, "energy_metrics", "per_query_joules"), "gpu"
        board = at(metrics, "energy_metrics", "soc_per_query_joules")
        if basis == "soc" and board is not None and first_positive(watts_of(metrics, "soc")) is not None:
            joules, rail = board, "soc"
        evaluation = at(metrics, "evaluation")
        notes = at(evaluation, "metadata")
        notes = json.loads(notes) if isinstance(notes, str) else notes or {}
        found.append({
            "input": tokens_in, "output": tokens_out, "total": total, "energy": joules, "rail": rail,
            "power": first_known(watts_of(metrics, rail)), "watts": first_positive(watts_of(metrics, rail)),
            "power_given": first_known(watts_of(metrics, rail)) is not None,
            "latency": at(metrics, "latency_metrics", "total_query_seconds"),
            "ttft": at(metrics, "latency_metrics", "time_to_first_token_seconds"),
            "graded": bool(evaluation), "in_vain": bool(notes.get("evaluation_failed")),
            "correct": at(evaluation, "is_correct"),
            "problem": row.get("problem"), "expected": row.get("answer"),
            "answer": (row.get("model_answers") or {}).get(model)})
    return found


def column(found, name):
    return np.array([math.nan if entry[name] is None else entry[name] for entry in found], float)


def fit(x, y, log=False):
    """Least squares; null for less than two points or a single x; the mean is over all pairs, also those without a
    logarithm.  Its mean of non-finite values is not finite; ours is over the others."""
    keep = np.isfinite(x) & np.isfinite(y)
    known = y[keep]
    result = {"avg_y": known.mean() if len(known) else None, "slope": None, "intercept": None, "r2": None}
    keep &= (x > 0) if log else True
    x, y = x[keep], y[keep]
    x = np.log(x) if log else x
    result["count"] = len(x)
    if len(x) < 2 or len(set(x)) < 2:
        return result
    x, y = x.astype(np.longdouble), y.astype(np.longdouble)
    slope = ((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum()
    intercept = y.mean() - slope * x.mean()
    rest, all_ = ((y - slope * x - intercept) ** 2).sum(), ((y - y.mean()) ** 2).sum()
    return {**result, "slope": float(slope), "intercept": float(intercept),
            "r2": float(1 - rest / all_) if all_ else 1.0}


def regressions(found):
    made = {}
    for name, (x, y, log) in PAIRS.items():
        values = column(found, y)
        if y == "power":
            values[np.abs(values) < 1e-12] = math.nan
        made[name] = fit(column(found, x), values, log)
    return made


def positive(value):
    return value is not None and math.isfinite(value) and value > 1e-12


def spread(values):
    return {"count": len(values), "avg": np.mean(values) if values else None,
            "median": np.median(values) if values else None,
            "min": min(values, default=None), "max": max(values, default=None)}


def share(verdicts):
    return sum(verdicts) / len(verdicts) if verdicts else None


def accuracy(found):
    """Its summary and efficiency, for records with a verdict.  The power of a query is energy over time, else the
    sampled one; an energy of zero or less is replaced by power times time, a missing one is not."""
    joules, watts, made_up, with_joules, with_watts = [], [], [], [], []
    zero_joules = zero_watts = derived = 0
    counted = [entry for entry in found if entry["graded"] and not entry["in_vain"]]
    for entry in counted:
        if not isinstance(entry["correct"], bool):
            continue
        energy, power, seconds = entry["energy"], entry["watts"], entry["latency"]
        if positive(energy):
            joules.append(energy)
            with_joules.append(entry["correct"])
        elif energy is not None and math.isfinite(energy):
            zero_joules += 1
            made_up += [power * seconds] if positive(power) and positive(seconds) else []
        if positive(energy) and positive(seconds):
            watts.append(energy / seconds)
            with_watts.append(entry["correct"])
            derived += 1
        elif positive(power):
            watts.append(power)
            with_watts.append(entry["correct"])
        elif entry["power_given"]:
            zero_watts += 1
    joules += made_up
    right = sum(entry["correct"] is True for entry in counted)
    wrong = sum(entry["correct"] is False for entry in counted)
    rate = right / (right + wrong) if right + wrong else None
    mean_j, mean_w = np.mean(joules) if joules else None, np.mean(watts) if watts else None
    rails = {entry["rail"] for entry in found}
    per = {"intelligence_per_joule": rate / mean_j if joules and rate is not None else None,
           "intelligence_per_watt": rate / mean_w if watts and rate is not None else None}
    whole = {"correct": right, "incorrect": wrong, "total_scored": right + wrong, "accuracy": rate,
             "unevaluated": sum(not entry["graded"] or entry["correct"] is None and not entry["in_vain"]
                                for entry in found),
             "failed": sum(entry["graded"] and entry["in_vain"] for entry in found),
             "avg_per_query_energy_joules": mean_j, "avg_per_query_power_watts": mean_w,
             "energy_sample_count": len(joules), "power_sample_count": len(watts),
             "energy_basis": rails.pop() if len(rails) == 1 else "mixed", **per}
    efficiency = {
        "energy": {**spread(joules), "total": sum(joules) if joules else None, "accuracy": share(with_joules),
                   "zero_values": zero_joules, "imputed_count": len(made_up),
                   "imputed_from_power": np.mean(made_up) if made_up else None},
        "power": {**spread(watts), "accuracy": share(with_watts), "zero_values": zero_watts,
                  "derived_power_samples": derived, "power_metric_samples": len(watts) - derived}}
    return whole, per, efficiency


# ---- tests ----

class PythonTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ipw-python-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def saved(self, rows, name="profile_H10080GB_org_Model_7B_MMLU-Pro", first=False, shards=None, **facts):
        """A directory as written by the Python IPW."""
        path = self.folder / name
        datasets.Dataset.from_list(rows).save_to_disk(path, num_shards=shards)
        (path / "summary.json").write_text(json.dumps(summary(rows, first=first, **facts), indent=2))
        return path

    def run_ipw(self, *words):
        done = ipw(None, *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def assertSame(self, got, wanted, what):
        """Compares every key of wanted, with a relative tolerance of 1e-9."""
        for key, value in wanted.items():
            if value is None or isinstance(value, (int, bool, str)):
                self.assertEqual(got[key], value, f"{what} {key}")
            else:
                self.assertIsNotNone(got[key], f"{what} {key}")
                self.assertLessEqual(abs(got[key] - value), 1e-9 * max(abs(value), 1e-3), f"{what} {key}")

    def check_analysis(self, path, model=None, graded=True, samples=None):
        """Our analysis files equal its results."""
        self.run_ipw("analyze", path, *(["--model", model] if model else []))
        found = entries(path, model)
        file = json.loads((path / "analysis/regression.json").read_text())
        self.assertEqual(file["analysis"], "regression")
        self.assertEqual(file["summary"]["total_samples"], samples or len(found))
        self.assertEqual(list(file["data"]["regressions"]), list(PAIRS))
        for name, wanted in regressions(found).items():
            self.assertSame(file["data"]["regressions"][name], wanted, name)
        if graded:
            self.check_accuracy(json.loads((path / "analysis/accuracy.json").read_text()), found)
        else:
            self.assertFalse((path / "analysis/accuracy.json").exists())
        return found

    def check_accuracy(self, file, found):
        whole, per, efficiency = accuracy(found)
        model = file["summary"]["model"]
        self.assertSame(file["summary"], whole, "accuracy")
        self.assertEqual(set(file["data"]) & {"per_model", "records", "efficiency"},
                         {"per_model", "records", "efficiency"})
        self.assertEqual(set(file["data"]["per_model"][model]), {"model", *whole})
        self.assertSame(file["data"]["per_model"][model], whole, "per_model")
        its = file["data"]["efficiency"][model]
        self.assertSame(its, per, "efficiency")
        for name in ("energy", "power"):
            self.assertEqual(set(its[name]), set(efficiency[name]))
            self.assertSame(its[name], efficiency[name], name)
        records = file["data"]["records"][model]
        self.assertEqual([(r["problem"], r["reference_answer"], r["model_answer"],
                           r["evaluation"].get("is_correct")) for r in records],
                         [(e["problem"], e["expected"], e["answer"], e["correct"]) for e in found])

    def check_plots(self, path, found):
        """Our plots have its file names and marks."""
        listed = json.loads(ipw(None, "list", "plots", "--json").stdout)["plots"]
        if not all(row["available"] for row in listed):
            self.skipTest(listed[0]["missing"])
        self.run_ipw("plot", path, "--plot", ",".join(PLOTS), "--format", "png,svg")
        self.assertEqual(sorted(p.name for p in (path / "plots").glob("*.png")),
                         sorted(f"{name}.png" for name in PLOTS))
        for name, (x, y) in {"ttft": ("input", "ttft"), "latency": ("total", "latency"),
                             "energy": ("total", "energy"), "power": ("total", "power")}.items():
            points = np.column_stack([column(found, x), column(found, y)])
            points = points[np.isfinite(points).all(axis=1)]
            marks = np.array(sorted(set(Picture(path / f"plots/{name}.svg").series()[0])))
            for axis, sign in ((0, 1), (1, -1)):  # linear in the same values; y points down
                wanted = np.unique(points[:, axis])
                drawn = np.sort(sign * marks[:, axis])
                self.assertEqual(len(marks), len(points), name)
                scale = (drawn[-1] - drawn[0]) / (wanted[-1] - wanted[0])
                expected = drawn[0] + scale * (np.sort(points[:, axis]) - wanted[0])
                self.assertLess(np.abs(expected - drawn).max(), 0.11, name)


class OurDirectories(PythonTest):
    """The Python IPW reads our directories with the same figures."""

    @classmethod
    def setUpClass(cls):
        cls.machine = IntelNvidia()
        cls.addClassCleanup(cls.machine.close)
        rows = [{"problem": "word " * (1 + 7 * i % 40), "answer": "word", "subject": "abc"[i % 3],
                 "level": i % 4} for i in range(40)]
        file = cls.machine.put("/questions.jsonl", "\n".join(map(json.dumps, rows)))
        cls.path, cls.with_failures = cls.profiled(file, "all"), cls.profiled(file, "some", ",fail_every=5")

    @classmethod
    def profiled(cls, file, name, params=""):
        words = ("profile", "--client", "null", "--model", "echo:1b", "--dataset", file, "--client-param",
                 "answer=echo,ttft_ms=9,tokens_per_s=900" + params, "--idle", "0.3", "--warmup-queries", "0",
                 "--retries", "0", "--grader", "contains", "--concurrency", "2",
                 "--output-dir", cls.machine.root / name, "--json", "--overwrite")
        done = ipw(cls.machine, *words)
        return Path(json.loads(done.stdout)["output_dir"])

    def copy(self, path=None):
        return Path(shutil.copytree(path or self.path, self.folder / "run"))

    def test_figures_agree(self):
        found = self.check_analysis(self.copy())
        self.assertEqual(len(found), 40)
        self.assertGreater(sum(positive(entry["energy"]) for entry in found), 30)

    def test_failed_queries(self):
        """It reads them as records with few figures and no verdict."""
        path = self.copy(self.with_failures)
        completed = sum(row["ipw"]["status"] == "completed" for row in datasets.load_from_disk(str(path)))
        self.assertIn(completed, range(30, 36))
        found = self.check_analysis(path, samples=completed)
        self.assertEqual((len(found), accuracy(found)[0]["unevaluated"]), (40, 40 - completed))

    def test_plots_agree(self):
        path = self.copy()
        self.check_plots(path, entries(path))

    def test_fields_needed_by_its_plots(self):
        """They fail on a record whose token counts are not a struct, and use the names as titles."""
        path = self.copy()
        self.run_ipw("analyze", path)
        drawn = json.loads((path / "analysis/regression.json").read_text())["data"]["regressions"]
        self.assertTrue(all(drawn[name]["count"] > 0 for name in PAIRS), drawn)
        for row in datasets.load_from_disk(str(path)):
            self.assertEqual(next(iter(row["model_metrics"])), "echo:1b")
            metrics = row["model_metrics"]["echo:1b"]
            self.assertIsInstance(metrics["token_metrics"], dict)
            self.assertTrue(metrics["gpu_info"]["name"] or metrics["system_info"]["cpu_brand"])

    def test_fields_needed_for_rescoring(self):
        summary = json.loads((self.path / "summary.json").read_text())
        self.assertEqual(summary["model"], "echo:1b")
        self.assertIsInstance(summary["dataset"], str)
        self.assertIsInstance(summary["profiler_config"]["dataset_params"], dict)
        row = datasets.load_from_disk(str(self.path))[0]
        for name in ("problem", "answer", "subject", "dataset_metadata", "model_answers"):
            self.assertIsNotNone(row[name], name)
        self.assertIsInstance(row["model_answers"]["echo:1b"], str)
        metrics = row["model_metrics"]["echo:1b"]
        self.assertIn("gpu_info", metrics)
        self.assertIn("system_info", metrics)

    def test_run_rescored_by_python_ipw(self):
        """It saves a new dataset, replaces ours with it, and copies the other files back."""
        path, model = self.copy(), "echo:1b"

        def score(row):
            row["model_metrics"][model]["evaluation"] = {
                "is_correct": len(row["problem"]) % 3 == 0, "metadata": '{"evaluation_attempts": 2}',
                "config": {}}
            return row
        evaluated = self.folder / "run_temp_evaluated_dataset"
        datasets.load_from_disk(str(path)).map(score).save_to_disk(str(evaluated))
        backup = path.rename(self.folder / "run.bak")
        evaluated.rename(path)
        for item in backup.iterdir():
            if not (path / item.name).exists() and not re.match(r"data-.*\.arrow", item.name):
                (shutil.copytree if item.is_dir() else shutil.copy2)(item, path / item.name)
        shutil.rmtree(backup)
        found = self.check_analysis(path)
        self.assertEqual([entry["correct"] for entry in found],
                         [len(row["problem"]) % 3 == 0 for row in datasets.load_from_disk(str(path))])


class PythonDirectories(PythonTest):
    """Every command of ours reads directories of the Python IPW."""

    def rows(self, count=60, seed=1, **options):
        rng = np.random.default_rng(seed)
        return [record(i, rng, **options) for i in range(count)]

    def test_later_version(self):
        path = self.saved(self.rows())
        self.check_plots(path, self.check_analysis(path))

    def test_first_release(self):
        path = self.saved(self.rows(first=True), first=True)
        self.check_plots(path, self.check_analysis(path, graded=False))

    def test_sharded_dataset(self):
        self.check_analysis(self.saved(self.rows(), shards=3))

    def test_token_counts_without_total(self):
        rows = self.rows()
        for row in rows:
            del row["model_metrics"][MODEL]["token_metrics"]["total"]
        self.check_analysis(self.saved(rows))

    def test_zeros_nulls_and_non_finite_values(self):
        rows = self.rows()
        for i, (group, key, value) in enumerate((
                ("energy_metrics", "per_query_joules", 0.0), ("energy_metrics", "per_query_joules", None),
                ("energy_metrics", "per_query_joules", math.inf), ("latency_metrics", "total_query_seconds", None),
                ("latency_metrics", "time_to_first_token_seconds", math.nan), ("token_metrics", "total", None))):
            rows[3 * i]["model_metrics"][MODEL][group][key] = value
        rows[40]["model_metrics"][MODEL]["power_metrics"]["gpu"]["per_query_watts"] = {
            **stats(None), "median": 7.0}
        rows[41]["model_metrics"][MODEL]["power_metrics"]["gpu"]["per_query_watts"] = stats(0)
        rows[42]["model_metrics"][MODEL]["evaluation"]["is_correct"] = None
        self.check_analysis(self.saved(rows))

    def test_failed_grading(self):
        """It is counted separately, and its energy is not part of graded answers."""
        rows = self.rows()
        for i in (3, 4, 5):
            rows[i]["model_metrics"][MODEL]["evaluation"] = {
                "is_correct": None, "config": None,
                "metadata": '{"error": "x", "evaluation_failed": true, "evaluation_attempts": 3}'}
        rows[6]["model_metrics"][MODEL]["evaluation"] = {
            "is_correct": None, "metadata": '{"evaluation_failed": false}', "config": None}
        whole, _, _ = accuracy(self.check_analysis(self.saved(rows)))
        self.assertEqual((whole["failed"], whole["unevaluated"], whole["energy_sample_count"]), (3, 1, 56))

    def test_regressions_without_data_are_not_plotted(self):
        rows = self.rows()
        for row in rows:
            row["model_metrics"][MODEL]["latency_metrics"]["time_to_first_token_seconds"] = None
        path = self.saved(rows)
        self.run_ipw("analyze", path, "--option", "skip_zeroes=yes")
        drawn = json.loads((path / "analysis/regression.json").read_text())["data"]["regressions"]
        self.assertEqual(list(drawn), [name for name in PAIRS if name != "input_tokens_vs_ttft"])
        self.check_analysis(path)

    def test_page_of_many_records_shows_a_subset(self):
        """A subset of the texts of a long run is shown, and the page says so."""
        path = self.saved(self.rows(4100))
        self.run_ipw("analyze", path, "--analysis", "accuracy")
        file = json.loads((path / "analysis/accuracy.json").read_text())
        records = [record["problem"] for record in file["data"]["records"][MODEL]]
        self.assertEqual(records, [f"question {i}" for i in range(0, 4100, 2)])
        self.assertIn("records: 2050 of 4100 queries, evenly spaced", file["warnings"])

    def test_energy_basis_soc(self):
        rows = self.rows()
        for i, row in enumerate(rows):
            metrics = row["model_metrics"][MODEL]
            metrics["energy_metrics"].update(basis="soc", soc_per_query_joules=7.0 + i % 5,
                                             per_query_joules=0.1)
            metrics["power_metrics"]["soc"] = {"per_query_watts": stats(9 + i % 3), "total_watts": stats(9)}
        self.check_analysis(self.saved(rows))

    def test_directory_with_two_models(self):
        rows, rng = self.rows(), np.random.default_rng(2)
        for i, row in enumerate(rows):
            row["model_metrics"]["b:2"] = record(i, rng, model="b:2")["model_metrics"]["b:2"] if i < 25 else None
            row["model_answers"]["b:2"] = "x"
        path = self.saved(rows)
        self.assertRaises(RuntimeError, entries, path)  # it requires a choice; we use the model of the summary
        self.run_ipw("analyze", path)
        self.assertEqual(len(self.check_analysis(path, MODEL)), 60)
        self.assertEqual(len(self.check_analysis(path, "b:2")), 25)

    def layouts(self):
        """Old and new layouts, and some that lack whole groups."""
        yield "later", self.rows(), {}
        yield "first", self.rows(first=True), {"first": True}
        yield "no-gpu", self.rows(gpu=False), {}
        for name in ("latency_metrics", "energy_metrics", "token_metrics", "power_metrics", "system_info"):
            rows = self.rows()
            for row in rows:
                del row["model_metrics"][MODEL][name]
            yield "no-" + name, rows, {}
        bare = self.rows()
        for row in bare:
            for name in ("problem", "answer", "subject", "dataset_metadata", "model_answers"):
                del row[name]
        yield "metrics-alone", bare, {}

    def test_every_command_reads_every_layout(self):
        page = "ECharts" not in ipw(None, "report", self.folder).stderr
        for name, rows, facts in self.layouts():
            path = self.saved(rows, name, **facts)
            with self.subTest(name):
                self.run_ipw("analyze", path)
                if page:
                    self.check_page(path, entries(path))
                if name in ("later", "first", "no-energy_metrics", "metrics-alone"):
                    self.check_exports(path, entries(path))
        done = ipw(None, "compare", self.folder / "later", self.folder / "no-energy_metrics", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)

    def check_page(self, path, found):
        """The page has exactly the figures of the records."""
        self.run_ipw("report", path, "-o", path / "page.html")
        html = (path / "page.html").read_text()
        data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', html,
                                    re.S).group(1))
        run, = data["runs"]
        self.assertFalse(run["ours"])
        headline = {figure["key"]: figure["value"] for figure in run["headline"]}
        joules = column(found, "energy")
        known = joules[np.isfinite(joules)]
        graded = [entry["correct"] for entry in found if entry["correct"] is not None]
        wanted = {
            "accuracy": np.mean(graded) if graded else None,
            "joules_per_query": known.mean() if len(known) else None,
            "joules": known.sum() if len(known) else None,
            "output_tokens_per_s": None,  # its runs have no throughput
            "latency_s": np.median(times) if (times := [e["latency"] for e in found
                                                        if e["latency"] is not None]) else None}
        self.assertSame(headline, wanted, path.name)
        self.assertEqual((run["timelines"], run["shares"], run["command"]), ([], [], None))

    def check_exports(self, path, found):
        rows = [json.loads(line) for line in self.run_ipw("export", path, "--to", "jsonl").splitlines()]
        self.assertEqual(len(rows), len(found))
        for row, entry in zip(rows, found):
            self.assertEqual((row["input_tokens"], row["output_tokens"]), (entry["input"], entry["output"]))
            self.assertEqual(row["latency_s"], entry["latency"])
        text = self.run_ipw("export", path, "--to", "csv")
        self.assertEqual(len(list(csv.DictReader(io.StringIO(text)))), len(found))
        database = path / "out.db"
        self.run_ipw("export", path, "--to", "sqlite", "-o", database)
        with sqlite3.connect(database) as db:
            count, joules = db.execute("select count(*), sum(gpu_energy_j) from queries").fetchone()
        self.assertEqual(count, len(found))
        known = [entry["energy"] for entry in found if entry["energy"] is not None]
        self.assertSame({"joules": joules}, {"joules": sum(known) if known else None}, path.name)
        self.run_ipw("export", path, "--to", "hf", "--output-dir", path / "hf")
        self.assertEqual(len(datasets.load_from_disk(str(path / "hf"))), len(found))
        self.assertIn("ipw_", self.run_ipw("export", path, "--to", "prom"))
        for name in ("perfetto", "otlp-json"):  # its records have no timestamps
            done = ipw(None, "export", path, "--to", name)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (1, "", 1), done.stderr)
            self.assertIn("do not say when queries were sent", done.stderr)

    def test_compare(self):
        a, b = self.rows(seed=3), self.rows(seed=4)
        for row in b:
            row["model_metrics"][MODEL]["energy_metrics"]["per_query_joules"] *= 2
        paths = [self.saved(a, "a"), self.saved(b, "b", hardware="A100SXM4")]
        done = ipw(None, "compare", *paths, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        metric = json.loads(done.stdout)["comparisons"][0]["metrics"]["energy_per_query"]
        means = [column(entries(path), "energy").mean() for path in paths]
        self.assertSame({"difference": metric["difference"], "baseline": metric["baseline"]["value"],
                         "run": metric["run"]["value"]},
                        {"baseline": means[0], "run": means[1], "difference": means[1] - means[0]}, "compare")
        self.assertEqual(metric["verdict"], "worse")
        self.assertIn("A100SXM4", done.stdout)  # a different machine is reported
        first = self.saved(self.rows(first=True), "c", first=True)
        warnings = texts_of(json.loads(self.run_ipw("compare", paths[0], first, "--json"))["comparisons"][0])
        self.assertIn("this run does not record, and may differ in: dataset selection, concurrency, client, "
                      "parameter set, set of request parameters, version of ipw", warnings)
        self.assertFalse([w for w in warnings if "none against" in w], warnings)
        self.assertEqual(ipw(None, "compare", *paths, "--fail-if", "energy_per_query > +5%").returncode, 1)


if __name__ == "__main__":
    unittest.main()
