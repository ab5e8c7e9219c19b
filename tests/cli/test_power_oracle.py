#!/usr/bin/env python3
"""Models of ipw power against scikit-learn and xgboost on the same rows, as recorded by research/record-power.py:
coefficients, trees, forests; and validation scores against NumPy.  $IPW_PYTHON may name an interpreter with NumPy and
xgboost, whose library ipw loads; without them the test is skipped."""

import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import oracle  # noqa: E402

oracle.use()

import csv
import hashlib
import importlib.util
import json
import tempfile
import unittest
from pathlib import Path

from program import ipw  # noqa: E402

try:
    import numpy as np
    XGBOOST = importlib.util.find_spec("xgboost")
    if not XGBOOST:
        raise ImportError("No module named 'xgboost'")
except ImportError as error:
    print(f"skipped: {error} (set IPW_PYTHON to an interpreter that has numpy and xgboost)")
    sys.exit(77)

SOURCE = Path(os.environ.get("IPW_SOURCE", Path(__file__).parents[2])).resolve()
DATA = Path(os.environ.get("IPW_SHARED", SOURCE.parent / "shared")) / "data/dvfs"
AI, V100 = DATA / "ai_runs_dev.csv", DATA / "v100_fgcs_dev.csv"
FMAX, CLOCKS, APPLICATIONS = 1380.0, 40, 12
ACTIVITIES = [(0.1, 0.7), (0.3, 0.15), (0.45, 0.5), (0.8, 0.3)]
TRIED_MHZ = [510 + 43.5 * i for i in range(21)]
# The library of the wheel if the system has none: the C interface is the same.
LIBRARY = Path(XGBOOST.origin).parent / "lib/libxgboost.so"
RECORDED = SOURCE / "tests/fixtures/power_oracle.json"
TREES = 120


def make_rows(seed=7):
    """A list of rows (application, fp, dram, MHz, W, s) of applications with different activities, with noise, in the order of
    ipw, which determines the samples of a tree."""
    rng, rows = np.random.default_rng(seed), []
    for a in range(APPLICATIONS):
        fp, dram = rng.uniform(0.05, 0.9), rng.uniform(0.05, 0.8)
        knee, base = rng.uniform(1, 1.8), rng.uniform(3, 20)
        for mhz in np.linspace(510, FMAX, CLOCKS):
            x = mhz / FMAX
            watts = 30 + 70 * dram * x + (40 + 120 * fp) * x ** 2.5
            seconds = base * (1 + fp * max(0, 1 / x - knee))
            rows.append((f"app{a:02}", fp * rng.normal(1, 0.005), dram * rng.normal(1, 0.005), round(mhz, 3),
                         watts * rng.normal(1, 0.01), seconds * rng.normal(1, 0.01)))
    return rows


def v100_rows():
    """The same of the public measurements, without times."""
    with open(V100, newline="") as file:
        return [(row["application"], float(row["fp_active"]), float(row["dram_active"]), float(row["sm_app_clock_mhz"]),
                 float(row["power_w"])) for row in csv.DictReader(file)]


def digest(rows):
    text = "".join(f"{name} {' '.join(f'{float(figure):.9g}' for figure in figures)}\n" for name, *figures in rows)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def arrays(rows):
    """Names of applications, features and watts."""
    return (np.array([row[0] for row in rows]), np.array([[row[1], row[2], row[3] / FMAX] for row in rows]),
            np.array([row[4] for row in rows]))


def tried():
    return np.array([[*activities, mhz / FMAX] for activities in ACTIVITIES for mhz in TRIED_MHZ])


class Oracle(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.path = Path(cls.folder.name)
        rows = make_rows()
        cls.input = cls.path / "rows.csv"
        with open(cls.input, "w", newline="") as file:
            csv.writer(file).writerows([("application", "fp", "dram", "freq_mhz", "power_w", "time_s"), *rows])
        cls.names, cls.x, cls.watts = arrays(rows)
        cls.recorded = json.loads(RECORDED.read_text())
        assert cls.recorded["of"] == digest(rows), "recorded for other rows: run research/record-power.py"

    def fit(self, model, *options):
        file = self.path / f"{model}.json"
        done = ipw(None, "power", "fit", "--input", self.input, "--model", model, "-o", file, *options, env=self.env())
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return file

    @staticmethod
    def env():
        found = list(Path("/usr/lib").glob("*-linux-gnu/libxgboost.so.0"))
        return {} if found or "IPW_XGBOOST" in os.environ else {"IPW_XGBOOST": str(LIBRARY)}

    def predicted(self, file):
        watts = []
        for fp, dram in ACTIVITIES:
            done = ipw(None, "power", "predict", file, "--fp", fp, "--dram", dram, "--fmax", FMAX, "--freq",
                       ",".join(map(str, TRIED_MHZ)), "--json", env=self.env())
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            watts += [row["power_w"]["value"] for row in json.loads(done.stdout)["predictions"]]
        return np.array(watts)

    def close(self, model, recorded, tolerance, *options):
        got = self.predicted(self.fit(model, *options))
        self.assertLess(np.max(np.abs(got / np.array(self.recorded[recorded]) - 1)), tolerance)

    def test_linear_and_polynomial_models(self):
        for model in ("linear", "poly2", "poly3"):
            with self.subTest(model):
                self.close(model, model, 1e-4)

    def test_ridge_regression(self):
        for penalty in (1.0, 250.0):
            with self.subTest(penalty):
                self.close("ridge", f"ridge {penalty}", 1e-8, "--ridge", penalty)

    def test_boosted_trees(self):
        self.close("gbt", "gbt", 1e-4, "--seed", 5, "--trees", TREES)

    def test_random_forest(self):
        """Samples are drawn differently from scikit-learn: the forests agree as well as two of its own with different
        seeds."""
        forests = [np.array(self.recorded[f"rf {seed}"]) for seed in (1, 2, 3)]
        ours = self.predicted(self.fit("rf"))
        mean = np.mean(forests, axis=0)
        apart = max(np.mean(np.abs(one / mean - 1)) for one in forests)
        self.assertLess(np.mean(np.abs(ours / mean - 1)), max(4 * apart, 0.03))
        self.assertGreater(np.corrcoef(ours, mean)[0, 1], 0.995)

    @unittest.skipUnless(V100.exists(), f"no measurements at {V100}")
    def test_held_out_applications_as_well_as_scikit_learn(self):
        """Which knows the activities at every clock of the application that is left out, and not only at the highest."""
        for model, recorded in self.recorded["held out"].items():
            done = ipw(None, "power", "validate", "--input", V100, "--gpu", "V100", "--model", model, "--leave-out",
                       "application", "--json", env=self.env())
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertLess(json.loads(done.stdout)["validations"][0]["power_w"]["mape"], recorded, model)

    def test_scores_of_a_held_out_application(self):
        """For a linear model, which NumPy recomputes."""
        done = ipw(None, "power", "validate", "--input", self.input, "--model", "linear", "--leave-out", "application",
                   "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        got = json.loads(done.stdout)["validations"][0]["power_w"]
        measured, predicted, mapes = [], [], []
        for name in sorted(set(self.names)):
            held = self.names == name
            constant = np.ones((len(self.x), 1))
            fitted = np.linalg.lstsq(np.hstack([constant, self.x])[~held], self.watts[~held], rcond=None)[0]
            x = self.x[held].copy()
            x[:, :2] = x[-5:, :2].mean(axis=0)  # only activities at fmax are known for a new application
            watts = np.maximum(0, fitted[0] + x @ fitted[1:])
            measured += list(self.watts[held])
            predicted += list(watts)
            mapes.append(np.mean(np.abs(watts / self.watts[held] - 1)))
        measured, predicted = np.array(measured), np.array(predicted)
        off = predicted - measured
        wanted = {"rows": len(off), "mae": np.mean(np.abs(off)), "rmse": np.sqrt(np.mean(off ** 2)),
                  "r2": 1 - np.sum(off ** 2) / np.sum((measured - measured.mean()) ** 2), "mape": np.mean(mapes),
                  "within_5": np.mean(np.abs(off) <= 0.05 * measured),
                  "within_10": np.mean(np.abs(off) <= 0.10 * measured),
                  "within_15": np.mean(np.abs(off) <= 0.15 * measured),
                  "total_error": predicted.sum() / measured.sum() - 1}
        for key, value in wanted.items():
            self.assertAlmostEqual(got[key], value, delta=1e-6 * max(1, abs(value)), msg=key)


def least_absolute(x, y):
    weights = np.ones(len(y))
    for _ in range(200):
        root = np.sqrt(weights)
        found = np.linalg.lstsq(x * root[:, None], y * root, rcond=None)[0]
        weights = 1 / np.maximum(np.abs(x @ found - y), 1e-6 * np.median(y))
    return found


def knee_curve(u, t):
    """The best fit t0 + t1 max(0, u - knee) over all knees, evaluated at u."""
    tried = []
    for knee in [1, *u[u < u.max()]]:
        x = np.column_stack([np.ones_like(u), np.maximum(u, knee) - knee])
        curve = x @ least_absolute(x, t)
        tried.append((np.abs(curve - t).sum(), knee, curve))
    return min(tried, key=lambda one: one[:2])[2]


@unittest.skipUnless(AI.exists(), f"no measurements at {AI}")
class Optima(unittest.TestCase):
    """The clock of the lowest predicted EDP, judged by the EDP of an independent robust fit, since curves are flat in
    MHz."""

    def test_optima_of_usable_applications(self):
        with open(AI) as file:
            rows = list(csv.DictReader(file))
        with tempfile.TemporaryDirectory() as folder:
            model = Path(folder) / "m.json"
            self.assertEqual(ipw(None, "power", "fit", "--input", AI, "-o", model).returncode, 0)
            for gpu, application in (("H100", "stablediffusion"), ("A100", "stablediffusion"),
                                     ("V100", "stablediffusion"), ("A100", "llama")):
                own = [row for row in rows if (row["gpu"], row["workload"]) == (gpu, application)]
                column = {key: np.array([float(row[key]) for row in own])
                          for key in ("freq_mhz", "time_s", "avg_power_w", "energy_j")}
                clocks = np.unique(column["freq_mhz"])

                def medians(values):
                    return np.array([np.median(values[column["freq_mhz"] == mhz]) for mhz in clocks])
                x = clocks / clocks[-1]
                if gpu == "V100":  # whose time rises by 7 % down to the clock of its knee
                    energy = np.log(medians(column["energy_j"]) * medians(column["time_s"]))
                    near = [np.argsort(np.abs(clocks - mhz))[:11] for mhz in clocks]
                    lines = [np.polyfit(clocks[i] - mhz, energy[i], 1)[1] for i, mhz in zip(near, clocks)]
                    self.judge(model, gpu, application, clocks, np.exp(lines))
                    continue
                cubic = np.column_stack([x ** k for k in range(4)])
                power = cubic @ least_absolute(cubic, medians(column["avg_power_w"]))
                edp = power * knee_curve(1 / x, medians(column["time_s"])) * \
                    knee_curve(1 / x, medians(column["energy_j"] / column["avg_power_w"]))
                self.judge(model, gpu, application, clocks, edp)

    def judge(self, model, gpu, application, clocks, edp):
        done = ipw(None, "power", "predict", model, "--gpu", gpu, "--application", application, "--freq",
                   ",".join(map(str, clocks)), "--json")
        ours = np.array([row["edp_js"] for row in json.loads(done.stdout)["predictions"]])
        self.assertLess(edp[ours.argmin()] / edp.min() - 1, 0.02, (gpu, application))


if __name__ == "__main__":
    unittest.main()
