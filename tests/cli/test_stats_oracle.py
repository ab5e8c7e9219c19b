#!/usr/bin/env python3
"""src/stats against SciPy and NumPy, to nine digits.  $IPW_PYTHON may name an interpreter with these packages; without
them the test is skipped."""

import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import oracle  # noqa: E402

oracle.use()

import json
import math
import subprocess
import unittest
from pathlib import Path

try:
    import numpy as np
    import scipy.linalg
    import scipy.stats as st
except ImportError as error:
    print(f"skipped: {error} (set IPW_PYTHON to an interpreter that has numpy and scipy)")
    sys.exit(77)

TOOL = Path(os.environ.get("IPW_BUILD", "build")).resolve() / "tests/tools/stats"
CLOSE = 1e-9


def plain(value):
    if isinstance(value, np.ndarray):
        return [None if not math.isfinite(v) else float(v) for v in value]
    return float(value) if isinstance(value, np.floating) else value


def ask(*questions):
    """Sends requests (dicts) to the helper program; returns the answers in order."""
    lines = [json.dumps({k: plain(v) for k, v in q.items()}) for q in questions]
    done = subprocess.run([TOOL], input="\n".join(lines) + "\n", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def samples():
    """Pairs of columns: small, large, with ties, far from 0, nearly linear."""
    rng = np.random.default_rng(42)
    for n in (3, 4, 10, 57, 400):
        x = rng.uniform(1, 1000, n)
        yield x, 3 * x + rng.normal(0, 50, n)
        yield np.round(x / 100), np.round(rng.uniform(0, 5, n)) + 1
        yield x, np.exp(rng.normal(0, 2, n))
        yield x + 1e7, 2e-3 * x + 1e-9 * rng.normal(0, 1, n) + 5


class Oracle(unittest.TestCase):
    def close(self, got, wanted, tolerance=CLOSE, what=""):
        if not math.isfinite(wanted):
            self.assertIsNone(got, what)
            return
        self.assertIsNotNone(got, what)
        self.assertLessEqual(abs(got - wanted), tolerance * abs(wanted) + 1e-300,
                             f"{what}: {got} is not {wanted}")


class Distributions(Oracle):
    def test_student_t_distribution(self):
        cases = [(t, f) for t in (0.001, 0.5, 1, 2.5, 12, 300)
                 for f in (1, 2, 3.5, 9, 30, 100, 1e3, 1e5, 999998)]
        got = ask(*({"ask": "student_two_sided", "p": t, "freedom": f} for t, f in cases))
        for (t, f), answer in zip(cases, got):
            wanted = 2 * st.t.sf(t, f)
            if wanted > 1e-290:
                self.close(answer["value"], wanted, what=f"t={t}, {f}")
        cases = [(p, f) for p in (0.9, 0.5, 0.1, 0.05, 0.01, 1e-6)
                 for f in (1, 2, 5, 28, 1e3, 999998)]
        got = ask(*({"ask": "student_quantile", "p": p, "freedom": f} for p, f in cases))
        for (p, f), answer in zip(cases, got):
            self.close(answer["value"], st.t.isf(p / 2, f), what=f"p={p}, {f}")


def precise(u, v):
    """A linear fit in extended precision: if all x are far from 0, SciPy loses digits."""
    u, v = u.astype(np.longdouble), v.astype(np.longdouble)
    du, n = u - u.mean(), len(u)
    slope = (du * (v - v.mean())).sum() / (du * du).sum()
    intercept = v.mean() - slope * u.mean()
    spread = np.sqrt(((v - intercept - slope * u) ** 2).sum() / (n - 2))
    return (float(slope), float(intercept), float(spread / np.sqrt((du * du).sum())),
            float(spread * np.sqrt(np.longdouble(1) / n + u.mean() ** 2 / (du * du).sum())))


class Fits(Oracle):
    def check(self, logs, x, y):
        got, = ask({"ask": "linear", "logs": logs, "x": x, "y": y})
        u = np.log(x) if logs else x
        v = np.log(y) if logs == "both" else y
        wanted = st.linregress(u, v)
        near = np.std(u) > 1e-3 * abs(np.mean(u)) and 1 - wanted.rvalue ** 2 > 1e-6
        slope, intercept, slope_error, intercept_error = precise(u, v)
        if near:
            slope, intercept, slope_error, intercept_error = (
                wanted.slope, wanted.intercept, wanted.stderr, wanted.intercept_stderr)
        t = st.t.isf(0.025, len(x) - 2)
        # Residuals of y have a precision of at most 1e-16 of y.
        loose = CLOSE if near else 1e-5
        for key, value in (("slope", slope), ("intercept", intercept), ("slope_error", slope_error),
                           ("intercept_error", intercept_error),
                           ("slope_low", slope - t * slope_error),
                           ("intercept_high", intercept + t * intercept_error)):
            scale = slope_error if key.startswith("slope") else intercept_error
            self.assertLessEqual(abs(got[key] - value), loose * (abs(value) + scale),
                                 f"{logs} {key}: {got[key]} is not {value}")
        self.assertAlmostEqual(got["r2"], wanted.rvalue ** 2, delta=1e-9)
        if wanted.pvalue > 1e-200 and near:
            self.close(got["p_value"], wanted.pvalue, 1e-6)  # t has already lost digits
        self.assertEqual(got["count"], len(x))

    def test_linear_fits(self):
        for x, y in samples():
            self.check("", x, y)

    def test_logarithmic_fits(self):
        for x, y in samples():
            if np.min(y) > 0 and np.min(x) > 0 and len(set(x)) > 1:
                self.check("x", x, y)
                self.check("both", x, y)

    def test_unknown_values_are_left_out(self):
        x = np.array([1, 2, np.nan, 4, 5.0])
        y = np.array([2, np.nan, 3, 8, 11.0])
        got, = ask({"ask": "linear", "x": x, "y": y})
        wanted = st.linregress([1, 4, 5], [2, 8, 11])
        self.assertEqual(got["count"], 3)
        self.close(got["slope"], wanted.slope)

    def test_fit_without_enough_points(self):
        for x, y in (([], []), ([1.0], [2.0]), ([3.0, 3.0], [1.0, 2.0])):
            got, = ask({"ask": "linear", "x": x, "y": y})
            self.assertFalse(got["done"])
            self.assertIsNone(got["slope"])
        got, = ask({"ask": "linear", "x": [1.0, 2.0], "y": [1.0, 3.0]})
        self.assertTrue(got["done"])
        self.assertIsNone(got["slope_error"])  # two points have no error
        self.close(got["slope"], 2)

    def test_theil_sen_agrees_with_scipy(self):
        for x, y in samples():
            if len(set(x)) < 2:
                continue
            got, = ask({"ask": "theil_sen", "x": x, "y": y})
            wanted = st.theilslopes(y, x)
            self.assertFalse(got["sampled"])
            self.close(got["slope"], wanted.slope, 1e-9)
            self.assertAlmostEqual(got["intercept"], wanted.intercept,
                                   delta=1e-9 * (abs(wanted.intercept) + np.max(np.abs(y))))

    def test_theil_sen_of_large_sample(self):
        rng = np.random.default_rng(1)
        x = rng.uniform(0, 100, 20000)
        y = 2 * x + rng.standard_t(2, 20000)
        got, again = ask({"ask": "theil_sen", "x": x, "y": y}, {"ask": "theil_sen", "x": x, "y": y})
        self.assertTrue(got["sampled"])
        self.assertEqual(got, again)
        self.close(got["slope"], 2, 0.01)


class Correlations(Oracle):
    def test_values_and_p_values(self):
        for x, y in samples():
            for name, function in (("spearman", st.spearmanr),
                                   ("kendall", lambda a, b: st.kendalltau(a, b, method="asymptotic"))):
                got, = ask({"ask": name, "x": x, "y": y})
                value, p = function(x, y)
                self.close(got["value"], value, CLOSE, name)
                if 1e-250 < p and 1 - abs(value) > 1e-9:
                    self.close(got["p_value"], p, 1e-7 if name != "kendall" else CLOSE, name)

    def test_constant_column_has_no_correlation(self):
        for name in ("spearman", "kendall"):
            got, = ask({"ask": name, "x": [1.0, 1.0, 1.0], "y": [1.0, 2.0, 3.0]})
            self.assertIsNone(got["value"])


class Runs(Oracle):
    """Several runs per side: Welch's t-test."""

    def test_agrees_with_ttest_ind(self):
        rng = np.random.default_rng(8)
        for n, m in ((2, 2), (2, 5), (3, 3), (4, 3), (10, 8), (60, 40)):
            for shift, wider in ((0, 1), (0.5, 1), (3, 8), (1e-3, 0.1)):
                x, y = rng.normal(50, 1, n), rng.normal(50 + shift, wider, m)
                got, = ask({"ask": "runs", "x": x, "y": y})
                wanted = st.ttest_ind(y, x, equal_var=False)
                interval = wanted.confidence_interval(0.95)
                what = f"{n}, {m}, {shift}, {wider}"
                for key, value in (("difference", y.mean() - x.mean()), ("p_value", wanted.pvalue),
                                   ("freedom", wanted.df), ("a_error", st.sem(x))):
                    self.close(got[key], value, 1e-9, f"{key} of {what}")
                for key, value in (("low", interval.low), ("high", interval.high)):
                    self.assertAlmostEqual(got[key], value, delta=1e-9 * (interval.high - interval.low), msg=what)
                # Fieller's interval: ratios r at which mean(y) - r mean(x) is t standard errors from 0.
                t = st.t.isf(0.025, wanted.df)
                for key in ("relative_low", "relative_high"):
                    if got[key] is None:
                        self.assertLess(abs(x.mean()), t * st.sem(x), what)
                        continue
                    r = 1 + got[key]
                    self.assertAlmostEqual(abs(y.mean() - r * x.mean()) / np.hypot(st.sem(y), r * st.sem(x)), t,
                                           delta=1e-6 * t, msg=what)

    def test_unknown_values(self):
        got, = ask({"ask": "runs", "x": np.array([1.0, np.nan, 2.0]), "y": np.array([3.0, 4.0])})
        self.close(got["p_value"], st.ttest_ind([3, 4], [1, 2], equal_var=False).pvalue)
        got, = ask({"ask": "runs", "x": [1.0], "y": [3.0, 4.0]})
        self.assertEqual((got["difference"], got["p_value"], got["low"], got["freedom"]), (2.5, None, None, None))
        got, = ask({"ask": "runs", "x": [2.0, 2.0], "y": [2.0, 2.0]})
        self.assertEqual((got["difference"], got["p_value"], got["low"], got["high"]), (0, 1, 0, 0))


def silverman(x):
    """SciPy's density with the bandwidth of the Python IPW."""
    return st.gaussian_kde(x, bw_method=0.9 * len(x) ** -0.2)


class Densities(Oracle):
    def test_agrees_with_gaussian_kde(self):
        rng = np.random.default_rng(3)
        for n in (2, 5, 100, 3000):
            x = np.concatenate([rng.normal(0, 1, n), rng.normal(8, 2, n)])
            at = np.linspace(x.min() - 1, x.max() + 1, 64)
            got, = ask({"ask": "kde", "x": x, "y": at})
            for a, b in zip(got["density"], silverman(x)(at)):
                self.close(a, b)

    def test_density_of_large_sample(self):
        rng = np.random.default_rng(4)
        x = rng.gamma(2, 30, 50000)
        at = np.linspace(0, 300, 40)
        got, = ask({"ask": "kde", "x": x, "y": at})
        wanted = silverman(x)(at)
        self.assertLess(np.max(np.abs(np.array(got["density"]) - wanted)), 1e-3 * wanted.max())

    def test_density_of_one_value(self):
        got, = ask({"ask": "kde", "x": [3.0, 3.0], "y": [3.0]})
        self.assertFalse(got["done"])


class Contrasts(Oracle):
    """The permutation test of `ipw compare`."""

    @staticmethod
    def difference(a, b, axis=0):
        return np.mean(b, axis=axis) - np.mean(a, axis=axis)

    def test_exact_permutation_test(self):
        rng = np.random.default_rng(5)
        for shift in (0, 0.5, 3):
            a, b = rng.normal(shift, 1, 9), rng.normal(0, 1, 9)
            got, = ask({"ask": "paired", "x": a, "y": b})
            wanted = st.permutation_test((a, b), self.difference, permutation_type="samples",
                                         n_resamples=np.inf, vectorized=True)
            self.assertTrue(got["exact"])
            self.close(got["p_value"], wanted.pvalue)
            self.close(got["difference"], wanted.statistic)
            c = rng.normal(0, 1, 6)
            for first, second in ((a, c), (c, a)):
                got, = ask({"ask": "unpaired", "x": first, "y": second})
                # Two-sided by absolute value, unlike SciPy's "two-sided" for sets of different sizes.
                wanted = st.permutation_test(
                    (first, second), lambda p, q, axis=0: np.abs(self.difference(p, q, axis)),
                    n_resamples=np.inf, vectorized=True, alternative="greater")
                # Ours is from 9999 random permutations.
                spread = (wanted.pvalue * (1 - wanted.pvalue) / 9999) ** 0.5
                self.assertAlmostEqual(got["p_value"], wanted.pvalue, delta=4 * spread + 2e-4)
                self.close(got["difference"], self.difference(first, second))

    def test_sampled_permutation_test(self):
        rng = np.random.default_rng(6)
        a, b = rng.normal(0.3, 1, 80), rng.normal(0, 1, 100)
        for kind, wanted in (("unpaired", st.ttest_ind(a, b).pvalue),
                             ("paired", st.ttest_rel(a, b[:80]).pvalue)):
            got, again = (ask({"ask": kind, "x": a, "y": b if kind == "unpaired" else b[:80]})[0]
                          for _ in range(2))
            self.assertFalse(got["exact"])
            self.assertEqual(got, again)
            self.assertAlmostEqual(got["p_value"], wanted, delta=0.02)


class Intervals(Oracle):
    @staticmethod
    def ratio(x, y, axis=-1):
        return np.sum(x, axis=axis) / np.sum(y, axis=axis)

    def check(self, x, y):
        got, again = ask(*2 * [{"ask": "bootstrap", "x": x, "y": y, "draws": 4000, "seed": 1}])
        self.assertEqual(got, again)
        wanted = st.bootstrap((x, y), self.ratio, paired=True, method="percentile", n_resamples=4000,
                              vectorized=True, rng=np.random.default_rng(8))
        low, high = oracle.studentized(lambda sums: sums[0] / sums[1], (x, y), draws=4000)
        # Two bootstrap intervals differ by some percent of their width.
        for key, end in (("low", low), ("high", high)):
            self.assertAlmostEqual(got[key], end, delta=0.1 * (high - low))
        self.close(got["figure"], self.ratio(x, y))
        self.assertAlmostEqual(got["error"], wanted.standard_error,
                               delta=0.1 * wanted.standard_error)

    def test_agrees_with_bootstrap_t(self):
        rng = np.random.default_rng(9)
        for n in (12, 60, 500):
            y = rng.gamma(1.5, 40, n)
            self.check(y * rng.uniform(0.5, 2, n), y)

    def test_interval_of_large_sample(self):
        rng = np.random.default_rng(10)
        y = rng.gamma(1.5, 40, 2000)
        self.check(y + rng.normal(0, 30, 2000), y)

    def test_interval_of_one_value(self):
        got, = ask({"ask": "bootstrap", "x": [2.0], "y": [1.0], "draws": 100, "seed": 1})
        self.assertEqual(got["figure"], 2)
        self.assertIsNone(got["low"])


class Matrices(Oracle):
    @staticmethod
    def matrices():
        rng = np.random.default_rng(5)
        for size in 1, 2, 3, 30, 120:
            rows = rng.normal(size=(size, size))
            yield rows @ rows.T
        yield np.outer(rows[0], rows[0])  # of rank 1
        yield np.diag([3.0, 1, 1, 0, 2])
        yield np.zeros((4, 4))
        yield 1e150 * np.array([[2.0, 1], [1, 2]])

    def test_eigenvalues_and_vectors_agree_with_lapack(self):
        for a in self.matrices():
            size, scale = len(a), np.abs(a).max() or 1
            got, = ask({"ask": "eigen", "x": a.ravel(), "size": size})
            values, vectors = np.array(got["values"]), np.reshape(got["vectors"], (size, size))
            np.testing.assert_allclose(values / scale, np.linalg.eigvalsh(a) / scale, atol=1e-12)
            np.testing.assert_allclose(vectors @ vectors.T, np.eye(size), atol=1e-12)
            np.testing.assert_allclose((vectors.T * values) @ vectors / scale, a / scale, atol=1e-12)

    def test_square_root_agrees_with_sqrtm(self):
        for a in self.matrices():
            got, = ask({"ask": "eigen", "x": a.ravel(), "size": len(a)})
            scale = np.abs(a).max() ** 0.5 or 1
            root = scipy.linalg.sqrtm(a).real if np.linalg.matrix_rank(a) == len(a) else None
            got = np.reshape(got["root"], a.shape) / scale
            np.testing.assert_allclose(got @ got, a / scale ** 2, atol=1e-12)
            if root is not None:
                np.testing.assert_allclose(got, root / scale, atol=1e-9)

    def test_matrix_that_is_not_finite(self):
        self.assertFalse(ask({"ask": "eigen", "x": [1, None, None, 1], "size": 2})[0]["done"])

    def test_frechet_distance_agrees_with_sqrtm(self):
        rng = np.random.default_rng(6)
        for count, size in (40, 3), (200, 64), (500, 100):
            x = rng.normal(size=(count, size)) @ rng.normal(size=(size, size))
            y = rng.normal(size=(count + 7, size)) * rng.uniform(0.1, 3, size) + rng.normal(size=size)
            got, = ask({"ask": "frechet", "x": x.ravel(), "y": y.ravel(), "size": size})
            a, b = np.cov(x, rowvar=False), np.cov(y, rowvar=False)
            root = scipy.linalg.sqrtm(a @ b).real
            wanted = ((x.mean(0) - y.mean(0)) ** 2).sum() + np.trace(a + b - 2 * root)
            self.close(got["value"], wanted)
            transport = np.reshape(got["transport"], (size, size))  # the map under which a becomes b
            np.testing.assert_allclose(transport @ a @ transport, b, atol=1e-7 * np.abs(b).max())


class Order(Oracle):
    def test_sorted_and_quantiles(self):
        rng = np.random.default_rng(11)
        for n in (1, 2, 3, 16, 17, 100, 5000):
            for x in (rng.normal(0, 1, n), np.round(rng.normal(0, 2, n)), np.arange(n, 0, -1.0),
                      np.arange(n, dtype=float), np.full(n, 7.0)):
                p = float(rng.uniform())
                got, = ask({"ask": "sorted", "x": x, "p": p})
                self.assertEqual(got["sorted"], sorted(x))
                self.close(got["quantile"], np.quantile(x, p))


if __name__ == "__main__":
    unittest.main()
