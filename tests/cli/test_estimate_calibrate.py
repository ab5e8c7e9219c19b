#!/usr/bin/env python3
"""ipw estimate calibrate and validate: known energies are recovered and agree with NumPy's least squares, public
measurements are fitted or refused, the hardware file is usable by estimate, bounds for scripts."""

import csv
import io
import json
import math
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
import oracle  # noqa: E402

oracle.use()

from program import ipw  # noqa: E402
from rundirs import query, write_run  # noqa: E402
from test_manual import command_page, key_problems, section  # noqa: E402

try:
    import numpy as np
except ImportError:
    np = None

SOURCE = Path(os.environ.get("IPW_SOURCE", "."))
DATA = SOURCE.resolve().parent / "shared/data/estimator"
PER_FLOP, PER_BYTE, CONSTANT = 20e-12, 150e-12, 30.0
PEAK, WIDE = 2e12, 1e11


def row_of(flops, size, rng, noise=0.01, per_flop=PER_FLOP, **more):
    """A row of a load on a device that follows the model, with some noise."""
    latency = max(flops / PEAK, size / WIDE) + 5e-6
    joules = per_flop * flops + PER_BYTE * size + CONSTANT * latency
    return {"op": "load", "dtype": "fp32", "flops": flops, "bytes": size, "latency_s": latency,
            "energy_j": joules * rng.gauss(1, noise), **more}


def loads(noise=0.01, **more):
    rng = random.Random(4)
    return [row_of(2.0 ** power * 4e9, 4e9, rng, noise, **more) for power in range(-2, 10)
            for _ in range(2)]


class Files(unittest.TestCase):
    def setUp(self):
        self.root = Path(tempfile.mkdtemp(prefix="ipw-calibrate-"))
        self.addCleanup(shutil.rmtree, self.root)

    def write(self, rows, name="rows.csv"):
        path = self.root / name
        with path.open("w", newline="") as file:
            out = csv.DictWriter(file, list(dict.fromkeys(key for row in rows for key in row)))
            out.writeheader()
            out.writerows(rows)
        return path

    def ipw(self, *arguments, code=0):
        done = ipw(None, "estimate", *arguments)
        self.assertEqual(done.returncode, code, done.stderr or done.stdout)
        return done

    def calibrate(self, rows, *more):
        path = rows if isinstance(rows, Path) else self.write(rows)
        return json.loads(self.ipw("calibrate", "--csv", path, *more, "--json").stdout)

    def refused(self, rows, says, *more):
        path = rows if isinstance(rows, Path) else self.write(rows)
        done = self.ipw("calibrate", "--csv", path, *more, code=1)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertRegex(done.stderr, f"^ipw estimate calibrate: refused: .*{says}")


class Fit(Files):
    def test_fit_recovers_known_energies(self):
        report = self.calibrate(loads())
        found = {row["name"]: row for row in report["coefficients"]}
        for name, truth in (("fp32", PER_FLOP), ("byte", PER_BYTE), ("constant", CONSTANT)):
            self.assertAlmostEqual(found[name]["value"] / truth, 1, delta=0.1)
            self.assertLess(found[name]["low"], found[name]["value"])
            self.assertGreater(found[name]["high"], found[name]["value"])
            self.assertFalse(found[name]["given"])
        self.assertGreater(report["r2"], 0.95)
        self.assertEqual(report["method"], "measured")
        self.assertEqual(report["rows"], {"used": 24, "too_short": 0, "without_energy": 0, "idle": 0})

    @unittest.skipUnless(np, "NumPy is not installed")
    def test_fit_agrees_with_numpy(self):
        for noise, span in ((0.02, "equal"), (0.02, "relative")):
            rows = loads(noise)
            if span == "relative":  # rows with almost no work: powers differ by more than a factor of two
                rng = random.Random(9)
                rows += [row_of(1e6, 1e6, rng, noise, window_s=1) for _ in range(4)]
            report = self.calibrate(rows)
            self.assertEqual(report["weights"], span)
            t, e, f, b = (np.array([row[key] for row in rows])
                          for key in ("latency_s", "energy_j", "flops", "bytes"))
            power = e / t
            a = np.c_[f / t, b / t, np.ones_like(t)]
            weight = np.mean(power) / power if span == "relative" else np.ones_like(power)
            scale = np.linalg.norm(a * weight[:, None], axis=0)
            scaled = a * weight[:, None] / scale
            x = np.linalg.lstsq(scaled, power * weight, rcond=None)[0]
            rest = (scaled @ x - power * weight)
            error = np.sqrt(rest @ rest / (len(t) - 3) * np.diag(np.linalg.inv(scaled.T @ scaled)))
            for row, value, sigma in zip(report["coefficients"], x / scale, error / scale):
                self.assertAlmostEqual(row["value"] / value, 1, delta=1e-9)
                self.assertAlmostEqual(row["plus_minus"] / sigma, 1, delta=1e-9)
            fitted = a @ (x / scale)
            self.assertAlmostEqual(report["mape"], np.mean(abs(fitted / power - 1)), delta=1e-9)
            self.assertAlmostEqual(report["condition"], np.linalg.cond(scaled), delta=1e-6)
            held_out = []
            for i in range(len(t)):
                keep = np.arange(len(t)) != i
                part = np.linalg.lstsq(scaled[keep], (power * weight)[keep], rcond=None)[0]
                held_out.append(a[i] @ (part / scale) / power[i] - 1)
            self.assertAlmostEqual(report["mape_held_out"], np.mean(np.abs(held_out)), delta=1e-9)

    @unittest.skipUnless(np, "NumPy is not installed")
    def test_given_coefficients_are_fixed(self):
        rows, file = loads(0.02), self.root / "given.json"
        t, e, f, b = (np.array([row[key] for row in rows])
                      for key in ("latency_s", "energy_j", "flops", "bytes"))
        for key, column, value in (("pj-per-byte=120", 1, 120e-12), ("constant-w=33", 2, 33)):
            report = self.calibrate(rows, "--given", key, "--given-source", "a datasheet", "-o", file)
            a = np.c_[f / t, b / t, np.ones_like(t)]
            rest = np.delete(a, column, 1)
            x = np.linalg.lstsq(rest, e / t - a[:, column] * value, rcond=None)[0]
            expected = np.insert(x, column, value)
            for row, wanted in zip(report["coefficients"], expected):
                self.assertAlmostEqual(row["value"] / wanted, 1, delta=1e-9)
            given = report["coefficients"][column]
            self.assertEqual([given[k] for k in ("given", "plus_minus", "low", "high")],
                             [True, None, None, None])
            fitted = rest @ x + a[:, column] * value
            self.assertAlmostEqual(report["mape"], np.mean(abs(fitted / (e / t) - 1)), delta=1e-9)
            made = json.loads(file.read_text())
            figure = made["memories"][-1]["energy"] if column == 1 else made["power"]["idle"]
            self.assertEqual((figure["evidence"], figure["source"]),
                             ("assumed", "given, not fitted: a datasheet"))

    def test_rejects_invalid_given_coefficients(self):
        for given in (["pj-per-bite=3"], ["pj-per-byte"], ["pj-per-byte=0"], ["pj-per-byte=nan"],
                      ["constant-w=-1"], ["constant-w=1", "--given", "constant-w=2"]):
            done = self.ipw("calibrate", "--csv", self.write(loads()), "--given", *given, code=2)
            self.assertEqual((done.stdout, done.stderr.count("\n")), ("", 1))
        self.ipw("calibrate", "--csv", self.write(loads()), "--given-source", "me", code=2)

    def test_undetermined_coefficients_are_named(self):
        """With almost no bytes, their energy is below the noise."""
        rng, rows = random.Random(7), []
        for i in range(36):
            rate, wide = PEAK / 2 ** (i % 3), 1e8 * (1 + i // 3 % 4)
            watts = PER_FLOP * rate + PER_BYTE * wide + CONSTANT
            rows.append({"op": "load", "flops": rate, "bytes": wide, "latency_s": 1,
                         "energy_j": watts * rng.gauss(1, 0.03)})
        self.refused(rows, "(not identified|negative): pJ/byte")
        report = self.calibrate(rows, "--given", "pj-per-byte=150")
        self.assertAlmostEqual(report["coefficients"][0]["value"] / PER_FLOP, 1, delta=0.1)

    def test_manual_page_documents_every_key(self):
        lines = section(command_page("estimate calibrate"), "JSON REPORT")
        cache = {"op": "cache", "shape": "1048576", "dtype": "fp32", "flops": 1e6, "bytes": 1e9, "latency_s": 1e-3}
        report = self.calibrate(loads() + [cache])
        self.assertEqual(key_problems(report, lines), [])
        self.assertEqual(report["caches"], [{"bytes": 1048576, "bytes_per_s": 1e12}])
        # The speed of a cache does not determine the energy of memory.
        self.assertEqual(report["coefficients"], self.calibrate(loads())["coefficients"])

    def test_refusals_state_their_reason(self):
        self.refused(loads()[:8], "too few rows: 8 can be used")
        self.refused(loads(updates=9), "24 too short for the sensor")
        self.refused([{**row, "energy_j": 0} for row in loads()], "24 without energy")
        self.refused([{**row, "method": "estimated"} for row in loads()], "estimated by a model")
        self.refused(loads(per_flop=-10e-12), "negative: pJ/FLOP of fp32 is -")
        rng = random.Random(2)
        alike = [{**row_of(n * 3e8, n * 1e8, rng), "latency_s": n * 1e-3 * (1 + 0.05 * n)}
                 for n in range(1, 25)]
        self.refused(alike, "cannot be separated")

    def test_estimated_energies_are_labeled(self):
        rows = [{**row, "method": "estimated"} for row in loads()]
        file = self.root / "mine.json"
        report = self.calibrate(rows, "--allow-estimated", "-o", file)
        self.assertEqual(report["method"], "estimated")
        made = json.loads(file.read_text())
        self.assertFalse(made.get("calibrated", False))
        self.assertEqual(made["power"]["idle"]["evidence"], "assumed")
        self.assertIn("ESTIMATED", self.ipw("calibrate", "--csv", self.root / "rows.csv",
                                            "--allow-estimated").stdout)

    def test_errors_in_files_have_line_and_column(self):
        for text, says in (("latency_s,energy_j\n1,1\n", "missing column op, or"),
                           ("op,latency_s\nidle,1\n", "missing column energy_j"),
                           ("op,shape,latency_s,energy_j\nmatmul,4x4,1,1\n", ":2: op 'matmul'"),
                           ("op,shape,latency_s,energy_j\nmatmul,4x4x4,x,1\n", ":2: latency_s 'x'"),
                           ("op,shape,dtype,latency_s,energy_j\nmatmul,4x4x4,fp7,1,1\n", ":2: dtype"),
                           ("op,latency_s,energy_j\nidle,1\n", "line 2: 2 fields, but the header has 3")):
            path = self.root / "bad.csv"
            path.write_text(text)
            self.assertIn(says, self.ipw("calibrate", "--csv", path, code=1).stderr)

    def test_hardware_file_is_used_by_estimate(self):
        file = self.root / "mine.json"
        self.calibrate(loads(hardware="i7_12700k"), "-o", file)
        made = json.loads(file.read_text())
        self.assertTrue(made["calibrated"])
        self.assertEqual(made["id"], "i7-12700k-calibrated")
        self.assertEqual(made["vector"]["fp32"]["energy"]["evidence"], "fitted")
        self.assertAlmostEqual(made["vector"]["fp32"]["energy"]["value"], 1e12 * PER_FLOP, delta=2)
        self.assertAlmostEqual(made["memories"][-1]["energy"]["value"], 1e12 * PER_BYTE, delta=15)
        done = self.ipw("--model", "resnet18", "--hardware-file", file, "--precision", "fp32", "--json")
        self.assertEqual(json.loads(done.stdout)["confidence"], "calibrated")

    def test_host_launch_time_is_in_hardware_file(self):
        """Its row only has a time: it does not affect the fit, and eager mode is predicted for this host."""
        rows, file = loads(hardware="i7_12700k"), self.root / "mine.json"
        plain = self.calibrate(rows, "-o", file)
        self.assertIsNone(plain["host_launch_s"])
        self.assertNotIn("host", json.loads(file.read_text()))
        report = self.calibrate(rows + [{"hardware": "i7_12700k", "op": "host_launch", "latency_s": us * 1e-6} for us in (13.5, 12.5)],
                                "-o", file)
        self.assertAlmostEqual(report["host_launch_s"], 12.5e-6, 12)
        self.assertEqual((report["coefficients"], report["rows"]), (plain["coefficients"], plain["rows"]))
        self.assertEqual(json.loads(file.read_text())["host"]["launch"]["value"], 12.5)

    def test_unknown_device_gets_hardware_file(self):
        file = self.root / "mine.json"
        report = self.calibrate(loads(hardware="Board 9"), "-o", file)
        self.assertIsNone(report["base"])
        made = json.loads(file.read_text())
        self.assertEqual(made["id"], "board-9-calibrated")
        self.assertAlmostEqual(made["vector"]["fp32"]["peak"]["value"], PEAK / 1e12, delta=0.1)
        self.ipw("--model", "resnet18", "--hardware-file", file, "--precision", "fp32")


class MeasuredRows(Files):
    """Rows from measurements of other commands."""

    def cost(self, *arguments):
        done = self.ipw("--model", "gpt2", "--hardware", "h200", "--precision", "fp32", *arguments, "--json")
        report = json.loads(done.stdout)
        return report["flops"], report["bytes"]

    def layers(self):
        rng, windows, settings = random.Random(3), [], []
        windows.append({"setting": None, "watched": False, "time_s": 2, "passes": 0, "energy_j": 40,
                        "updates": 100})
        for prompt in (16, 128, 512):
            settings.append(("prefill", prompt, prompt, 1, self.cost(
                "--phase", "prefill", "--prompt-tokens", str(prompt))))
            settings.append(("decode", prompt, 16, 16, self.cost(
                "--phase", "decode", "--context", str(prompt + 8))))
        for index, (_, _, _, steps, (flops, size)) in enumerate(settings):
            for _ in range(3):
                row = row_of(steps * flops, steps * size, rng)
                passes = 1 / row["latency_s"]
                windows.append({"setting": index, "watched": False, "time_s": 1, "passes": passes,
                                "energy_j": passes * row["energy_j"], "updates": 100})
            windows.append({"setting": index, "watched": True, "time_s": 1, "passes": 9,
                            "energy_j": None, "updates": 0})
        path = self.root / "layers.json"
        path.write_text(json.dumps({"model": "gpt2", "method": "nnls", "workload": {"batch": 1},
                                    "windows": windows, "settings": [
            {"phase": phase, "prompt_tokens": prompt, "tokens": tokens, "time_s": 1, "energy_j": 1}
            for phase, prompt, tokens, _, _ in settings]}))
        return path

    def test_rows_from_layers_result(self):
        report = json.loads(self.ipw("calibrate", "--from", self.layers(), "--json").stdout)
        flop, byte, constant = (row["value"] for row in report["coefficients"])
        self.assertEqual(report["rows"], {"used": 18, "too_short": 0, "without_energy": 0, "idle": 1})
        self.assertAlmostEqual(flop / PER_FLOP, 1, delta=0.15)
        self.assertAlmostEqual(byte / PER_BYTE, 1, delta=0.15)
        self.assertAlmostEqual(constant / CONSTANT, 1, delta=0.3)
        self.assertAlmostEqual(report["idle_w"], 20, delta=1e-9)

    def test_rows_from_queries_that_ran_alone(self):
        queries = [query(i, concurrency=1 + i % 2) for i in range(10)]
        run = write_run(self.root / "run", queries)
        done = self.ipw("calibrate", "--from", run, "--model", "gpt2", code=1)
        self.assertIn("too few rows: 5 can be used", done.stderr)
        self.assertIn("--model", self.ipw("calibrate", "--from", run, code=1).stderr)


@unittest.skipUnless(DATA.is_dir(), f"no measurements in {DATA}")
class PublicMeasurements(Files):
    """Published measurements: valid ones are fitted, invalid ones are refused."""

    def test_desktop_cpu(self):
        files = ["--csv", DATA / "i7_12700k_matmul.csv", "--csv", DATA / "i7_12700k_vector_add.csv"]
        done = self.ipw("calibrate", *files, code=1)
        self.assertIn("refused: not identified: pJ/byte is 25.2 ", done.stderr)
        self.assertIn("--given pj-per-byte=", done.stderr)
        done = self.ipw("calibrate", *files, "--given", "pj-per-byte=25", "--json")
        report = json.loads(done.stdout)
        flop, byte, constant = (row["value"] for row in report["coefficients"])
        self.assertAlmostEqual(flop * 1e12, 78.6, delta=0.05)
        self.assertEqual(byte, 25e-12)
        self.assertAlmostEqual(constant, 92.3, delta=0.06)
        self.assertAlmostEqual(report["r2"], 0.77, delta=0.005)
        self.assertAlmostEqual(100 * report["mape"], 4.3, delta=0.05)
        self.assertEqual(report["rows"]["used"], 41)
        self.assertEqual(report["rows"]["too_short"], 48)
        self.assertEqual([row["given"] for row in report["coefficients"]], [False, True, False])

    def test_catalog_entry_of_desktop_cpu_covers_its_measurements(self):
        done = self.ipw("validate", "--hardware", "i7-12700k", "--csv", DATA / "i7_12700k_matmul.csv",
                        "--json")
        sums = json.loads(done.stdout)["all"]
        done = self.ipw("--model", "resnet50", "--hardware", "i7-12700k", "-p", "fp32", "--json")
        estimate = json.loads(done.stdout)
        self.assertLess(sums["energy"]["mape"],
                        estimate["energy_j"]["plus_minus"] / estimate["energy_j"]["total"])
        self.assertLess(sums["latency"]["mape"], estimate["latency_plus_minus"] / estimate["latency_s"])
        self.assertLess(abs(sums["energy"]["bias"]), 0.1)

    def test_refuses_board_with_rails_counted_twice(self):
        self.refused(DATA / "jetson_orin_nano_8gb_matmul.csv", "negative")

    def test_where_selects_one_host(self):
        path = DATA / "subgraph-latency-measured.csv"
        done = self.ipw("validate", "--hardware", "i7-12700k", "--csv", path, code=1)
        self.assertIn("--where hardware_id=", done.stderr)
        done = self.ipw("validate", "--hardware", "i7-12700k", "--csv", path, "--where",
                        "hardware_id=i7_12700K", "--json")
        report = json.loads(done.stdout)
        self.assertEqual(report["all"]["latency"]["rows"], 421)
        self.assertEqual(report["all"]["energy"]["rows"], 0)


class Validate(Files):
    def validate(self, *arguments, code=0):
        done = self.ipw("validate", *arguments, "--json", code=code)
        return json.loads(done.stdout)

    def predicted(self, *arguments):
        report = json.loads(self.ipw("--hardware", "h200", *arguments, "--json").stdout)
        return report["latency_s"], report["energy_j"]["total"]

    def test_estimates_validate_against_themselves(self):
        rows = []
        for precision, batch in (("fp16", 1), ("fp16", 64), ("fp32", 8)):
            latency, joules = self.predicted("--model", "resnet50", "--precision", precision, "--batch",
                                             str(batch))
            rows.append({"model": "resnet50", "precision": precision, "batch": batch,
                         "latency_s": latency * 0.8, "energy_j": joules * 2, "window_s": 2})
        latency, joules = self.predicted("--model", "gpt2", "--precision", "fp16", "--phase", "decode",
                                         "--context", "128")
        rows.append({"model": "gpt2", "precision": "fp16", "batch": 1, "phase": "decode", "context": 128,
                     "latency_s": latency * 0.8, "energy_j": joules * 2, "window_s": 2})
        report = self.validate("--hardware", "h200", "--csv", self.write(rows))
        self.assertEqual(len(report["rows"]), 4)
        self.assertAlmostEqual(report["all"]["latency"]["mape"], 0.25, delta=1e-6)
        self.assertAlmostEqual(report["all"]["latency"]["bias"], 0.25, delta=1e-6)
        self.assertAlmostEqual(report["all"]["energy"]["mape"], 0.5, delta=1e-6)
        self.assertAlmostEqual(report["all"]["energy"]["bias"], -0.5, delta=1e-6)
        self.assertEqual(sum(part["latency"]["rows"] for part in report["regimes"].values()), 4)

    def test_manual_page_documents_every_key(self):
        path = self.write([{"model": "resnet50", "latency_s": 1, "energy_j": 1}])
        report = self.validate("--hardware", "h200", "--csv", path)
        report["regimes"] = dict.fromkeys(["compute", "memory", "launch", "link", "balanced"])
        lines = section(command_page("estimate validate"), "JSON REPORT")
        self.assertEqual(key_problems(report, lines), [])

    def test_energies_below_a_millisecond_are_not_compared(self):
        rows = [{"model": "resnet50", "precision": "fp16", "batch": 1, "latency_s": 5e-4,
                 "energy_j": 0.1, "window_s": window} for window in ("", 1)]
        report = self.validate("--hardware", "h200", "--csv", self.write(rows))
        self.assertEqual(report["too_short_for_energy"], 1)
        self.assertEqual([row["energy_j"]["measured"] for row in report["rows"]], [None, 0.1])

    def test_max_mape_sets_exit_status(self):
        latency, joules = self.predicted("--model", "resnet50", "--precision", "fp16")
        path = self.write([{"model": "resnet50", "precision": "fp16", "latency_s": latency * 1.1,
                            "energy_j": joules * 1.1, "window_s": 1}])
        self.assertTrue(self.validate("--hardware", "h200", "--csv", path, "--max-mape", "15")["pass"])
        report = self.validate("--hardware", "h200", "--csv", path, "--max-mape", "5", code=1)
        self.assertFalse(report["pass"])

    def test_validates_single_operators(self):
        report = self.validate("--hardware", "h200", "--csv", self.write(
            [{"op": "matmul", "shape": "8192x8192x8192", "dtype": "bf16", "latency_s": 1.6e-3,
              "energy_j": 1.1}, {"op": "vector_add", "shape": 1 << 28, "dtype": "fp32",
                                 "latency_s": 7.35e-4, "energy_j": 0.43}]))
        self.assertEqual([row["bound"] for row in report["rows"]], ["compute", "memory"])
        for row in report["rows"]:
            self.assertLess(abs(row["latency_s"]["error"]), 0.5)

    def test_validates_layers_result(self):
        path = self.root / "layers.json"
        path.write_text(json.dumps({
            "model": "llama-3.2-1b", "method": "nnls", "workload": {"batch": 1}, "settings": [
                {"phase": "prefill", "prompt_tokens": 512, "tokens": 512, "time_s": 3.2e-3,
                 "energy_j": 2.1},
                {"phase": "decode", "prompt_tokens": 512, "tokens": 16, "time_s": 3e-2, "energy_j": 8}]}))
        report = self.validate("--hardware", "h200", "--precision", "fp16", path)
        names = [row["name"] for row in report["rows"]]
        self.assertEqual(names, ["llama-3.2-1b prefill at 512 tokens", "llama-3.2-1b decode at 512 tokens"])
        one, _ = self.predicted("--model", "llama-3.2-1b", "--precision", "fp16", "--phase", "decode",
                                "--context", "520")
        self.assertAlmostEqual(report["rows"][1]["latency_s"]["predicted"] / (16 * one), 1, delta=1e-6)
        self.assertEqual(report["method"], "measured")
        path.write_text("{}")
        self.assertIn("no settings", self.ipw("validate", "--hardware", "h200", path, code=1).stderr)

    def test_validates_profile_run(self):
        run = write_run(self.root / "run", [query(i) for i in range(4)])
        done = self.ipw("validate", "--hardware", "h200", run, code=1)
        self.assertIn("--model", done.stderr)
        report = self.validate("--hardware", "h200", "--model", "llama-3.2-1b", run)
        self.assertEqual(report["all"]["latency"]["rows"], 4)

    def test_usage_errors(self):
        path = self.write([{"model": "resnet50", "latency_s": 1, "energy_j": 1}])
        for arguments, says in ((["--csv", path], "give either --hardware"),
                                (["--hardware", "h200"], "missing measurements"),
                                (["--hardware", "h20O", "--csv", path], "h200"),
                                (["--hardware", "h200", "--csv", path, "--precision", "fp17"], "fp16")):
            self.assertIn(says, self.ipw("validate", *arguments, code=2).stderr)
        done = self.ipw("validate", "--hardware", "h200", "--csv", path, "--where", "model=x", code=1)
        self.assertIn("no rows to compare", done.stderr)


# ---- models as they ship ----

def normal(z):
    return 0.5 * (1 + math.erf(z / math.sqrt(2)))


def figures(tree, path=""):
    """The scalars of a JSON value by path: "coefficients.0.value"."""
    if not isinstance(tree, (dict, list)):
        return {path: tree}
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    return {key: value for name, item in items
            for key, value in figures(item, f"{path}.{name}" if path else str(name)).items()}


class Formats(Files):
    def reports(self, *arguments):
        """The report as JSON, CSV rows by path, and Markdown."""
        as_json, as_csv, as_markdown = (self.ipw(*arguments, "--format", name).stdout for name in ("json", "csv", "md"))
        return json.loads(as_json), {row["path"]: row for row in csv.DictReader(io.StringIO(as_csv))}, as_markdown

    def assert_same(self, report, rows):
        expected = figures(report)
        self.assertEqual(list(rows), list(expected))
        for path, value in expected.items():
            found = rows[path]["value"]
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                self.assertAlmostEqual(float(found), value, delta=1e-8 * abs(value))
            else:
                self.assertEqual(found, {None: "", True: "true", False: "false"}.get(value, value), path)

    def test_output_file_of_calibrate_does_not_set_the_format_of_the_report(self):
        file = self.root / "mine.json"
        done = self.ipw("calibrate", "--csv", self.write(loads()), "-o", file)
        self.assertIn(f"written to {file}", done.stdout)
        self.assertIn("memories", json.loads(file.read_text()))

    def test_suffix_of_output_file_sets_the_format_of_a_validation(self):
        file = self.root / "errors.json"
        arguments = ("validate", "--csv", SOURCE / "tests/fixtures/estimate/h200.csv", "--hardware", "h200")
        self.assertEqual(self.ipw(*arguments, "-o", file).stdout, "")
        self.assertEqual(json.loads(file.read_text()), json.loads(self.ipw(*arguments, "--json").stdout))


# Rows of the first two sets have no host launch time: that of the first is the unit of the eager mode times.
UNIT_HOST = ("--host-launch-us", "9.2")
HOSTS = ("shipped", *(f"unseen{n}" for n in ("", *range(2, 11))))  # one set of measurements each


class ShippedModels(Files):
    """The ± covers measured models, which take longer than the bound: 68 and 90 % of rows are within 1 and 2 of
    it."""

    def inside(self, name, *arguments):
        done = self.ipw("validate", "--csv", SOURCE / "tests/fixtures/estimate" / name, *arguments, "--json")
        sums = json.loads(done.stdout)["all"]
        for kind in ("latency", "energy"):
            if sums[kind]["rows"]:
                self.assertGreaterEqual(sums[kind]["inside_1_sigma"], 0.68, (kind, arguments))
                self.assertGreaterEqual(sums[kind]["inside_2_sigma"], 0.90, (kind, arguments))
        return sums

    def estimate(self, *arguments):
        return json.loads(self.ipw(*arguments, "--json").stdout)

    def test_published_models_in_pytorch(self):
        rows = 0
        for hardware, runtime in (("rtx-3090", "eager"), ("rtx-4090", "eager"), ("rtx-4090", "torch.compile")):
            words = ("--hardware", hardware, "--where", f"hardware={hardware}", "--where", f"runtime={runtime}")
            rows += self.inside("shipped.csv", *words, "--runtime", "ideal")["latency"]["rows"]
            if runtime == "eager":
                self.inside("shipped.csv", *words, "--no-fusion")
        self.assertEqual(rows, 67)

    def test_unfused_layers_on_h200(self):
        sums = self.inside("h200.csv", "--hardware", "h200", "--no-fusion")
        self.assertEqual((sums["latency"]["rows"], sums["energy"]["rows"]), (18, 17))

    reports = {}  # several tests check the same report

    def measured(self, name, *arguments):
        """Errors of one set of measurements on an H200; some of its models are defined by a config.json."""
        with (SOURCE / f"tests/fixtures/estimate/h200_{name}.csv").open() as file:
            rows = list(csv.DictReader(file))
        for row in rows:
            if row["model"].endswith(".json"):
                row["model"] = self.config(row["model"].removesuffix(".json"))
        key = (name, arguments)
        if key not in self.reports:
            self.reports[key] = self.ipw("validate", "--csv", self.write(rows), "--hardware", "h200", *arguments, "--json").stdout
        return json.loads(self.reports[key])

    def held_out(self, runtime):
        done = self.ipw("validate", "--csv", SOURCE / "tests/fixtures/estimate/h200_shipped.csv", "--hardware", "h200",
                        *UNIT_HOST, "--where", f"runtime={runtime}", "--runtime", f"pytorch-{runtime}", "--leave-out", "family", "--json")
        return json.loads(done.stdout)

    def test_models_as_shipped_with_their_runtime(self):
        """114 rows on an H200, as CUDA graphs and in eager mode; also with each family left out of a common correction.
        The model was developed on these rows: this is a regression test, not evidence for other models."""
        for runtime, most, bias in (("graph", 0.12, 0.05), ("eager", 0.20, 0.05)):
            report = self.held_out(runtime)
            self.assertEqual(len(report["held_out"]["groups"]), 22)
            for sums in (report["all"], report["held_out"]["all"]):
                for kind in ("latency", "energy"):
                    self.assertEqual(sums[kind]["rows"], 57)
                    self.assertLess(sums[kind]["mape"], most, (runtime, kind))
                    self.assertLess(abs(sums[kind]["bias"]), bias, (runtime, kind))
                    self.assertGreaterEqual(sums[kind]["inside_2_sigma"], 0.85, (runtime, kind))

    def test_leave_out_corrects_by_other_families_only(self):
        """Three rows of two families, all twice as slow as predicted: each family corrected by the other has no
        error."""
        words = ("--hardware", "h200", "--where", "runtime=graph", "--runtime", "pytorch-graph", "--leave-out", "family")
        rows = []
        for family, model, batch in (("a", "resnet18", 1), ("a", "resnet18", 8), ("b", "vgg11", 2)):
            report = self.estimate("--model", model, "--precision", "fp16", "--batch", str(batch), "--hardware", "h200",
                                   "--runtime", "pytorch-graph")
            rows.append({"family": family, "model": model, "precision": "fp16", "batch": batch, "window_s": 1,
                         "runtime": "graph", "latency_s": 2 * report["latency_s"],
                         "energy_j": 3 * report["energy_j"]["total"]})
        path = self.write(rows)
        report = json.loads(self.ipw("validate", "--csv", path, *words, "--json").stdout)
        self.assertAlmostEqual(report["all"]["latency"]["bias"], -0.5, 6)
        self.assertAlmostEqual(report["all"]["energy"]["bias"], -2 / 3, 6)
        for sums in (report["held_out"]["all"], *report["held_out"]["groups"].values()):
            self.assertAlmostEqual(sums["latency"]["mape"], 0, 6)
            self.assertAlmostEqual(sums["energy"]["mape"], 0, 6)
        self.assertEqual({k: v["latency"]["rows"] for k, v in report["held_out"]["groups"].items()}, {"a": 2, "b": 1})
        done = self.ipw("validate", "--csv", path, *words[:-1], "kind", code=1)
        self.assertIn("no such column", done.stderr)

    def test_runtimes_on_unmeasured_devices(self):
        """Published step times of GPUs whose kernel figures are scaled from an H200."""
        for hardware, runtime, name in (("rtx-3090", "eager", "pytorch-eager"), ("rtx-4090", "eager", "pytorch-eager"),
                                        ("rtx-4090", "torch.compile", "torch-compile")):
            sums = self.inside("shipped.csv", "--hardware", hardware, "--where", f"hardware={hardware}", "--where",
                               f"runtime={runtime}", "--runtime", name)
            self.assertLess(sums["latency"]["mape"], 0.30, (hardware, runtime))

    def test_runtime_is_never_faster_than_roofline(self):
        """Published peaks of an H200: 989.4 TFLOPS in fp16, 494.7 in tf32, 4.8 TB/s."""
        for model, precision, peak in (("resnet50", "fp16", 989.4e12), ("resnet50", "fp32", 494.7e12),
                                       ("vit_b_16", "fp16", 989.4e12), ("mobilenet_v2", "fp16", 989.4e12)):
            for batch in ("1", "1024"):
                for runtime in ("pytorch-eager", "pytorch-graph", "torch-compile", "tensorrt", "onnxruntime"):
                    report = self.estimate("--model", model, "--hardware", "h200", "--precision", precision,
                                           "--batch", batch, "--runtime", runtime)
                    self.assertGreater(report["latency_s"], 2 * report["macs"] / peak)
                    self.assertGreater(report["latency_s"], report["bytes"] / 4.8e12)
                    self.assertLessEqual(report["power_w"]["average"], 700 * (1 + 1e-12))
                    self.assertEqual(report["setting"]["runtime"], runtime)
                    self.assertEqual(report["basis"], f"kernels of {runtime}")

    def test_effects_of_runtime(self):
        def run(runtime, *words):
            return self.estimate("--hardware", "h200", "--runtime", runtime, *words)
        # Kernels that are not fused, and a host that launches them.
        words = ("--model", "resnet50", "--precision", "fp16")
        times = [run(r, *words)["latency_s"] for r in ("torch-compile", "pytorch-graph", "pytorch-eager")]
        self.assertLess(2 * times[0], times[1])
        self.assertLess(3 * times[1], times[2])
        # Convolutions in fp32 are computed in tf32, products of linear layers are not.
        device = json.loads(ipw(None, "list", "hardware", "h200", "--json").stdout)["hardware"][0]
        without = {key: value for key, value in device["matrix"].items() if key != "tf32"}
        path = self.root / "device.json"
        path.write_text(json.dumps({**device, "id": "mine", "aliases": [], "match": [], "matrix": without}))
        for model, is_faster in (("vgg16", True), ("bert-base-uncased", False)):
            words = ("--model", model, "--precision", "fp32", "--batch", "8")
            for runtime in ("pytorch-graph", "ideal"):
                slow = self.estimate("--hardware-file", path, "--runtime", runtime, *words)["latency_s"]
                self.assertEqual(run(runtime, *words)["latency_s"] < 0.6 * slow, is_faster, (model, runtime))
        # A static KV cache is repeated for each query head, unless there are as many KV heads.
        for model, is_repeated in (("llama-3.1-8b", True), ("gpt2", False)):
            words = ("--model", model, "--phase", "decode", "--batch", "16", "--context", "1024" if model == "gpt2" else "8192")
            self.assertEqual(run("pytorch-graph", *words)["bytes"] > 2 * run("vllm", *words)["bytes"], is_repeated)

    def test_kernel_figures_are_those_of_hardware_file(self):
        """Ten microseconds more per kernel in the device's file; a device without kernel figures uses those of an
        H200."""
        device = next(d for d in json.loads(ipw(None, "list", "hardware", "h200", "--json").stdout)["hardware"])
        words = ("--model", "resnet50", "--runtime", "pytorch-graph", "--precision", "fp16")

        def latency(**changes):
            path = self.root / "device.json"
            path.write_text(json.dumps({**device, "id": "mine", "aliases": [], "match": [], **changes}))
            return self.estimate(*words, "--hardware-file", path)

        classes, before = device["kernel_classes"], latency()
        slow = latency(kernel_classes={k: {**v, "fixed_us": v["fixed_us"] + 10} for k, v in classes.items()})
        kernels = sum(1 for row in before["subgraphs"] if row["latency_s"] > 0)
        self.assertGreaterEqual(slow["latency_s"] - before["latency_s"], 9.9e-6 * kernels)
        self.assertAlmostEqual(before["latency_s"], self.estimate(*words, "--hardware", "h200")["latency_s"], 9)
        other = {k: v for k, v in device.items() if k not in ("kernel_classes", "kernels")}
        device = other
        self.assertAlmostEqual(latency()["latency_s"], before["latency_s"], 9)
        for changes, says in (({"kernel_classes": {k: v for k, v in classes.items() if k != "gemm"}}, "kernel_classes.gemm: is missing"),
                              ({"kernel_classes": {**classes, "gemm": {**classes["gemm"], "compute_share": 1.5}}},
                               "kernel_classes.gemm.compute_share: must be a number above 0"),
                              ({"kernel_classes": classes}, "kernels: is missing")):
            path = self.root / "device.json"
            path.write_text(json.dumps({**other, "id": "mine", "aliases": [], "match": [], **(
                {} if "kernels:" in says else {"kernels": {"value": 1, "evidence": "fitted", "source": "a test"}}), **changes}))
            self.assertIn(says, self.ipw(*words, "--hardware-file", path, code=1).stderr)

    def test_fit_kernels_tool_recovers_figures(self):
        """A fit of 1288 operators, started from doubled or halved figures, returns close to the file's and is as
        accurate on whole models."""
        device = json.loads(ipw(None, "list", "hardware", "h200", "--json").stdout)["hardware"][0]
        classes = device["kernel_classes"]
        far = {k: {**v, "fixed_us": 2 * v["fixed_us"], "memory_share": v["memory_share"] / 2} for k, v in classes.items()}
        given, made = self.root / "given.json", self.root / "made.json"
        given.write_text(json.dumps({**device, "id": "mine", "aliases": [], "match": [], "kernel_classes": far}))
        done = subprocess.run([SOURCE / "research/fit-kernels.py", SOURCE / "tests/fixtures/estimate/h200_kernels.csv", given,
                               "-o", made], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        fitted = json.loads(made.read_text())
        self.assertIn("1288 rows", fitted["kernels"]["source"])
        for name in ("gemm", "elementwise", "norm", "broadcast", "concatenate", "attention_decode"):
            for key in ("fixed_us", "memory_share"):
                self.assertLess(abs(fitted["kernel_classes"][name][key] / classes[name][key] - 1), 0.25, (name, key))
        for name in ("shipped", "unseen", "unseen2"):
            sums = json.loads(self.ipw("validate", "--csv", SOURCE / f"tests/fixtures/estimate/h200_{name}.csv", "--hardware-file",
                                       made, "--where", "runtime=graph", "--json").stdout)["all"]
            self.assertLess(sums["latency"]["mape"], 0.12, name)
            self.assertLess(sums["energy"]["mape"], 0.15, name)

    def test_eager_mode_scales_with_host_launch_time(self):
        """A host that takes twice as long doubles launch-bound times, by option, file or row; a CUDA graph does not
        depend on it."""
        words = ("--model", "resnet50", "--precision", "fp16", "--hardware", "h200")
        usual = self.estimate(*words, *UNIT_HOST)["latency_s"]
        # By the table of docs/estimate.md: 53 convolutions, 53 norms, 49 activations, 16 additions, 2 poolings, a
        # linear layer.
        operations = 53 * 1.12 + 53 * 1.5 + 49 * 0.45 + 16 * 0.5 + 2 + 1.4
        self.assertAlmostEqual(usual, 32e-6 * operations, 9)
        slow = self.estimate(*words, "--host-launch-us", "18.4")["latency_s"]
        self.assertAlmostEqual(slow / usual, 2, 6)
        graph = [self.estimate(*words, "--runtime", "pytorch-graph", "--host-launch-us", us)["latency_s"] for us in ("9.2", "99")]
        self.assertEqual(graph[0], graph[1])
        device = json.loads(ipw(None, "list", "hardware", "h200", "--json").stdout)["hardware"][0]
        path = self.root / "device.json"
        path.write_text(json.dumps({**device, "id": "mine", "aliases": [], "match": [], "host": {"launch": {
            "value": 18.4, "unit": "us", "evidence": "measured", "source": "a test"}}}))
        self.assertAlmostEqual(self.estimate(*words[:-2], "--hardware-file", path)["latency_s"], slow, 9)
        rows = [{"model": "resnet50", "precision": "fp16", "batch": 1, "window_s": 1, "runtime": "eager", "latency_s": us / 9.2 * usual,
                 "energy_j": 1, "host_launch_us": us} for us in (9.2, 18.4, 36.8)]
        report = json.loads(self.ipw("validate", "--hardware", "h200", "--csv", self.write(rows), "--json").stdout)
        self.assertLess(report["all"]["latency"]["mape"], 1e-6)

    def test_assumed_launch_time_has_the_smallest_error_on_measured_hosts(self):
        """Hosts measured without a profiler, which slows launches.  With log-normal times, the relative error of
        exp(mean - variance) is the smallest; ± reaches to half of the upper end of the prediction interval of a tenth host
        (Student's t, 95 %)."""
        rows = list(csv.DictReader((SOURCE / "tests/fixtures/estimate/h200_hosts.csv").read_text().splitlines()))
        hosts = [float(row["launch_us"]) for row in rows]
        variance = statistics.variance(map(math.log, hosts))
        best = statistics.geometric_mean(hosts) * math.exp(-variance)
        spread = (math.sqrt(variance) * 2.306 * math.sqrt(1 + 1 / len(hosts)) + variance) / 2
        words = ("--model", "resnet50", "--precision", "fp16", "--hardware", "h200")
        assumed = self.estimate(*words)
        setting = assumed["setting"]
        self.assertIs(setting["host_launch_is_assumed"], True)
        self.assertAlmostEqual(setting["host_launch_us"] / best, 1, delta=0.02)
        self.assertIn(f"± {100 * spread:.0f} %; set it with --host-launch-us", self.ipw(*words).stdout)
        for row in rows:  # times of the model on the same hosts
            if row["resnet50_s"]:
                self.assertAlmostEqual(float(row["resnet50_s"]), assumed["latency_s"], delta=2 * assumed["latency_plus_minus"])
        # With the same time given, the estimate is the same and its interval excludes the spread of hosts.
        given = self.estimate(*words, "--host-launch-us", str(setting["host_launch_us"]))
        self.assertAlmostEqual(given["setting"]["host_launch_us"], setting["host_launch_us"], 9)
        self.assertIs(given["setting"]["host_launch_is_assumed"], False)
        self.assertEqual(given["latency_s"], assumed["latency_s"])
        self.assertEqual(given["energy_j"]["total"], assumed["energy_j"]["total"])
        wide, narrow = (report["latency_plus_minus"] / report["latency_s"] for report in (assumed, given))
        self.assertAlmostEqual(narrow, 0.2, 6)
        self.assertAlmostEqual(math.sqrt(wide ** 2 - narrow ** 2), math.expm1(spread), delta=0.03)  # the upper side
        # A device that waits for the host draws idle power.
        joules = math.sqrt(assumed["energy_j"]["plus_minus"] ** 2 - given["energy_j"]["plus_minus"] ** 2)
        seconds = math.sqrt(assumed["latency_plus_minus"] ** 2 - given["latency_plus_minus"] ** 2)
        self.assertAlmostEqual(joules / seconds, assumed["power_w"]["idle"], 3)

    def test_assumed_launch_time_is_reported_if_launch_bound(self):
        """Not at a large batch, in a CUDA graph, or if the time is given."""
        words = ("--model", "resnet50", "--precision", "fp16", "--hardware", "h200")
        says = "host launch time assumed: 8.13 µs, ± 26 %; set it with --host-launch-us"
        for more, is_said in (((), True), (("--hardware", "a100-sxm-80gb"), True), (("--format", "md"), True),
                              (("--batch", "256"), False), (("--host-launch-us", "8.13"), False),
                              (("--runtime", "pytorch-graph"), False)):
            self.assertEqual(says in self.ipw(*words, *more).stdout, is_said, more)
        for more in (("--batch", "256"), ("--runtime", "pytorch-graph")):
            reports = [self.estimate(*words, *more, *host) for host in ((), ("--host-launch-us", "14"))]
            for key in ("latency_s", "latency_plus_minus", "energy_j", "power_w"):
                self.assertEqual(reports[0][key], reports[1][key], more)
        figures = {row["name"]: row for row in self.estimate(*words)["hardware_figures"]}
        self.assertEqual((figures["host_launch"]["value"], figures["host_launch"]["evidence"]), (8.13e-6, "assumed"))
        self.assertIsNone(self.estimate(*words, "--runtime", "pytorch-graph")["setting"]["host_launch_us"])
        # A saving has the uncertainty of the host if one of the two settings is more launch-bound.
        savings = [{row["options"]: row["saving_plus_minus"] for row in self.estimate(*words, *host)["recommendations"]}
                   for host in ((), ("--host-launch-us", "8.13"))]
        self.assertGreater(savings[0]["--runtime pytorch-graph"], savings[1]["--runtime pytorch-graph"])
        # Launch-bound devices take the same time on one host, so the one with less energy is better.
        for us in ("7", "9.2", "11", "14.4"):
            points = self.estimate(*words, "--hardware", "rtx-4090", "--host-launch-us", us)["points"]
            self.assertEqual([row["hardware"] for row in points if row["frontier"]], ["rtx-4090"], us)

    def test_rows_of_usual_hosts_are_within_assumed_interval(self):
        """90 % of times and energies are within two of the ±, ignoring the hosts stated by the rows, and times are off by
        18 % over all sets up to the tenth, by 20 % in any.  Sets 2, 4, 5 and 7 are of hosts slowed down to 13 to 15 µs by
        a profiler, the eleventh of a faster one."""
        errors, rows = 0, 0
        for name in HOSTS:
            if name in ("unseen2", "unseen4", "unseen5", "unseen7"):
                continue
            sums = self.measured(name, "--where", "runtime=eager", "--host-launch-us", "0")["all"]
            for kind, most in (("latency", 0.20), ("energy", 0.15)):
                self.assertGreaterEqual(sums[kind]["inside_2_sigma"], 0.90, (name, kind))
                self.assertLess(sums[kind]["mape"], most, (name, kind))
            errors += sums["latency"]["mape"] * sums["latency"]["rows"]
            rows += sums["latency"]["rows"]
        self.assertGreater(rows, 200)
        self.assertLessEqual(errors / rows, 0.18)

    def test_launch_time_is_inferred_from_rows(self):
        """Within a sixth of the stated value for sets that have one; with it, each set has an error of at most a fifth
        (20.0 % in the sixth and seventh, where the host's speed changed between rows)."""
        for name in HOSTS:
            report = self.measured(name, "--where", "runtime=eager", "--host-launch-us", "0")
            with (SOURCE / f"tests/fixtures/estimate/h200_{name}.csv").open() as file:
                stated = [float(row["host_launch_us"]) for row in csv.DictReader(file)
                          if row["runtime"] == "eager" and row.get("host_launch_us")]
            if stated:
                self.assertAlmostEqual(math.log(report["host_launch_us"] / statistics.median(stated)), 0, delta=0.17)
            self.assertEqual(report["host_assumed"], sum(row["bound"] == "launch" for row in report["rows"]))
            given = self.measured(name, "--where", "runtime=eager", "--host-launch-us", str(report["host_launch_us"]))
            self.assertLess(given["all"]["latency"]["mape"], 0.205, name)
            self.assertLess(given["all"]["energy"]["mape"], 0.16, name)
            self.assertEqual((given["host_assumed"], given["host_launch_us"]), (0, None))
        rows = [{"model": "resnet50", "precision": "fp16", "batch": 1, "window_s": 1, "runtime": "eager", "latency_s": 0.01,
                 "energy_j": 1}] * 5
        said = [self.ipw("validate", "--hardware", "h200", "--csv", self.write(rows[:n])).stdout for n in (4, 5)]
        self.assertIn("host launch time of 4 rows assumed: 8.13 µs\n", said[0])
        self.assertRegex(said[1], r"of 5 rows assumed: 8.13 µs; by these rows it is (\d+) µs: --host-launch-us \1\n")

    def test_host_launch_option_overrides_column(self):
        """A launch time of 0 ignores the column."""
        rows = [{k: v for k, v in row.items() if not k.startswith("host_")} for row in csv.DictReader(
            (SOURCE / "tests/fixtures/estimate/h200_unseen3.csv").read_text().splitlines()) if row["runtime"] == "eager"]

        def errors(us, *more):
            path = self.write([{**row, "host_launch_us": us} for row in rows])
            return json.loads(self.ipw("validate", "--csv", path, "--hardware", "h200", *more, "--json").stdout)["all"]

        assumed, slow = errors(""), errors("14")
        self.assertNotEqual(assumed, slow)
        self.assertEqual(errors("14", "--host-launch-us", "0"), assumed)
        self.assertEqual(errors("8", "--host-launch-us", "14"), slow)

    def test_unseen_models_of_first_two_sets(self):
        """Two sets that were predicted before they were examined; later changes must not make them worse."""
        for name, runtime, rows, most in (("unseen", "graph", 29, 0.12), ("unseen2", "graph", 23, 0.12),
                                          ("unseen2", "eager", 23, 0.20)):
            done = self.ipw("validate", "--csv", SOURCE / f"tests/fixtures/estimate/h200_{name}.csv", "--hardware", "h200",
                            "--where", f"runtime={runtime}", "--leave-out", "family", "--json")
            report = json.loads(done.stdout)
            for kind in ("latency", "energy"):
                self.assertLess(report["all"][kind]["mape"], most, (name, runtime, kind))
                self.assertGreaterEqual(report["all"][kind]["inside_2_sigma"], 0.85, (name, runtime, kind))
                self.assertEqual(report["held_out"]["all"][kind]["rows"], rows)
                sums = report["all" if runtime == "graph" else "held_out"]
                self.assertLess(abs((sums if runtime == "graph" else sums["all"])[kind]["bias"]), 0.05, (name, runtime, kind))

    def test_eager_mode_with_host_speed_corrected(self):
        """Each host is corrected by its rows of other families: what remains is the relative cost of operations.  The
        fastest host took less time for transformers than the other eight (docs/measurements.md)."""
        errors = {"latency": [], "energy": []}
        for name in HOSTS:
            sums = self.measured(name, *(UNIT_HOST if name in HOSTS[:2] else ()), "--where", "runtime=eager", "--leave-out",
                                 "family")["held_out"]["all"]
            for kind, found in errors.items():
                most = 0.13 if kind == "energy" else 0.175 if name == "unseen" else 0.155
                self.assertLess(sums[kind]["mape"], most, (name, kind))
                self.assertLess(abs(sums[kind]["bias"]), 0.05, (name, kind))
                found.append(sums[kind]["mape"])
        self.assertLess(statistics.mean(errors["latency"]), 0.14)  # 16.7 and 11.3 % before the fit to all sets
        self.assertLess(statistics.mean(errors["energy"]), 0.10)

    def test_third_set_with_other_families(self):
        """Errors found when it was first predicted must not return; in eager mode also with the host of the first
        set."""
        for runtime, host, most, bias in (("graph", (), 0.12, 0.05), ("eager", (), 0.20, 0.05), ("eager", UNIT_HOST, 0.20, 0.07)):
            report = self.measured("unseen3", "--where", f"runtime={runtime}", *host)
            for kind in ("latency", "energy"):
                sums = report["all"][kind]
                self.assertEqual(sums["rows"], 26)
                self.assertLess(sums["mape"], most, (runtime, kind))
                self.assertLess(abs(sums["bias"]), bias, (runtime, kind))
                self.assertGreaterEqual(sums["inside_2_sigma"], 0.85, (runtime, kind))

    def test_fourth_set_with_other_precisions(self):
        for runtime, most in (("graph", {"latency": 0.12, "energy": 0.12}), ("eager", {"latency": 0.20, "energy": 0.20})):
            done = self.ipw("validate", "--csv", SOURCE / "tests/fixtures/estimate/h200_unseen4.csv", "--hardware", "h200",
                            "--where", f"runtime={runtime}", "--json")
            for kind in ("latency", "energy"):
                sums = json.loads(done.stdout)["all"][kind]
                self.assertEqual(sums["rows"], 29)
                self.assertLess(sums["mape"], most[kind], (runtime, kind))
                self.assertLess(abs(sums["bias"]), 0.05, (runtime, kind))
                self.assertGreaterEqual(sums["inside_2_sigma"], 0.85, (runtime, kind))

    def test_fifth_set_predicted_in_advance(self):
        """None of its rows was seen before the predicting program was finished."""
        for runtime, most, bias in (("graph", 0.12, 0.05), ("eager", 0.20, 0.06)):
            done = self.ipw("validate", "--csv", SOURCE / "tests/fixtures/estimate/h200_unseen5.csv", "--hardware", "h200",
                            "--where", f"runtime={runtime}", "--json")
            for kind in ("latency", "energy"):
                sums = json.loads(done.stdout)["all"][kind]
                self.assertEqual(sums["rows"], 30)
                self.assertLess(sums["mape"], most, (runtime, kind))
                self.assertLess(abs(sums["bias"]), bias, (runtime, kind))
                self.assertGreaterEqual(sums["inside_2_sigma"], 0.85, (runtime, kind))

    def test_small_fp32_batches_are_memory_bound(self):
        """Linear layers of VGG read their 494 MB of weights once for 1 to 4 images; 8 images take longer."""
        def linear(batch):
            report = self.estimate("--model", "vgg13", "--precision", "fp32", "--batch", str(batch), "--hardware", "h200",
                                   "--runtime", "pytorch-graph")
            return sum(row["latency_s"] for row in report["subgraphs"] if row["ops"] == ["linear"])
        for batch in (1, 2, 4):
            self.assertTrue(1 < linear(batch) / (494.5e6 / 4.8e12) < 1.4, batch)
        self.assertGreater(linear(8), 2 * linear(4))
        for name, model in (("unseen3", "vgg13"), ("unseen5", "vgg19")):
            rows = self.measured(name, "--where", "runtime=graph", "--where", f"model={model}")["rows"]
            self.assertEqual(len(rows), 1)
            self.assertLess(abs(rows[0]["latency_s"]["predicted"] / rows[0]["latency_s"]["measured"] - 1), 0.12, model)

    def config(self, name):
        """A config.json of tests/fixtures/configs, as passed to transformers by research/measure-models.py."""
        models = json.loads((SOURCE / "tests/fixtures/configs/models.json").read_text())["models"]
        words = dict(next(row for row in models if row["name"] == name)["config"])
        if words["model_type"] == "t5":
            words["architectures"] = ["T5EncoderModel"]
        path = self.root / f"{name}.json"
        path.write_text(json.dumps(words))
        return path

    def check_set(self, name, expected):
        """Checks rows, MAPE, bias and share within the 95 % interval of a set, for each list of options."""
        for words, count, most, bias, inside in expected:
            report = self.measured(name, *words)
            for kind in ("latency", "energy"):
                sums = report["all"][kind]
                self.assertEqual(sums["rows"], count)
                self.assertLess(sums["mape"], most, (words, kind))
                self.assertLess(abs(sums["bias"]), bias, (words, kind))
                self.assertGreaterEqual(sums["inside_2_sigma"], inside, (words, kind))

    def test_sixth_set_with_new_families(self):
        """Kernels of attention, GELU and experts were fitted to it."""
        self.check_set("unseen6", (
            (("--where", "runtime=graph"), 25, 0.12, 0.05, 0.80),
            (("--where", "runtime=eager"), 34, 0.20, 0.06, 0.85)))

    def test_seventh_set_predicted_in_advance(self):
        """None of its rows was seen before, except those of eager mode by the fit of host times per operator."""
        self.check_set("unseen7", (
            (("--where", "runtime=graph"), 22, 0.12, 0.05, 0.85),
            (("--where", "runtime=eager"), 26, 0.20, 0.05, 0.85)))

    def test_eighth_set_predicted_in_advance(self):
        """None of its rows was seen before in either runtime, nor five of its families, three of them with experts."""
        self.check_set("unseen8", (
            (("--where", "runtime=graph"), 32, 0.12, 0.05, 0.85),
            (("--where", "runtime=eager"), 38, 0.20, 0.08, 0.85)))

    def test_ninth_set_predicted_in_advance(self):
        """Common models at batch sizes of no other set, without a profiler; the bounds are those of the others."""
        self.check_set("unseen9", (
            (("--where", "runtime=graph"), 44, 0.12, 0.05, 0.85),
            (("--where", "runtime=eager"), 46, 0.20, 0.08, 0.85)))

    def test_tenth_set_predicted_in_advance(self):
        """None of its rows was seen before, on a new host; also with the launch time that was assumed then."""
        self.check_set("unseen10", (
            (("--where", "runtime=graph"), 32, 0.12, 0.05, 0.85),
            (("--where", "runtime=eager"), 32, 0.20, 0.05, 0.85),
            (("--where", "runtime=eager", "--host-launch-us", "8.5"), 32, 0.20, 0.05, 0.85)))

    def test_eleventh_set_predicted_in_advance(self):
        """Known models on other batches, on a host that launches faster than is assumed, which the ± covers."""
        self.check_set("unseen11", (
            (("--where", "runtime=graph"), 31, 0.12, 0.05, 0.90),
            (("--where", "runtime=eager"), 31, 0.20, 0.05, 0.90),
            (("--where", "runtime=eager", "--host-launch-us", "0"), 31, 0.36, 0.33, 0.90)))

    def test_errors_of_fp32_matrix_products(self):
        """Every fp32 graph that is mostly matrix products (encoders, ViT, ConvNeXt) has an error of at most an
        eighth."""
        off = {row["name"]: row["latency_s"]["predicted"] / row["latency_s"]["measured"] - 1
               for name in HOSTS for row in self.measured(name, "--where", "runtime=graph")["rows"]
               if " fp32 " in row["name"] and re.match("(bert|roberta|distilbert|all-|vit|convnext)", row["name"])}
        self.assertEqual(len(off), 14)
        self.assertLess(max(map(abs, off.values())), 0.125, off)

    def test_single_kv_head_is_not_copied(self):
        """A single KV head is expanded as a view; two are copied by 1.5 operations per layer."""
        def launched(heads_kv):
            path = self.root / "config.json"
            path.write_text(json.dumps({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 512,
                                        "intermediate_size": 1024, "num_hidden_layers": 4, "num_attention_heads": 8,
                                        "num_key_value_heads": heads_kv, "head_dim": 64, "vocab_size": 1000}))
            return self.estimate("--model", path, "--precision", "fp16", "--phase", "decode", "--context", "64", "--hardware",
                                 "h200", "--runtime", "pytorch-eager", "--host-launch-us", "1000")["latency_s"] / 32e-6 * 9.2 / 1000
        self.assertAlmostEqual(launched(2) - launched(1), 4 * 1.5, 2)
        self.assertAlmostEqual(launched(8), launched(1), 2)

    def test_experts_are_launched_separately_except_in_bf16(self):
        """transformers has a grouped kernel in bf16; otherwise the host launches two kernels per active expert."""
        def launched(model, precision, batch):
            words = ("--model", self.config(model), "--precision", precision, "--batch", str(batch), "--phase", "decode",
                     "--context", "64", "--hardware", "h200", "--runtime", "pytorch-eager", "--host-launch-us")
            # in operators of the table in docs/estimate.md
            return self.estimate(*words, "1000")["latency_s"] / 32e-6 * 9.2 / 1000
        for batch in (1, 8):
            active = 64 * (1 - (1 - 8 / 64) ** batch)
            more = launched("olmoe-1b-7b", "fp16", batch) - launched("olmoe-1b-7b", "bf16", batch)
            self.assertAlmostEqual(more / (16 * 3 * (active - 1)), 0.53, 2)
        self.assertAlmostEqual(launched("pythia-1.4b", "fp16", 8), launched("pythia-1.4b", "bf16", 8), 1)

    def test_residuals_of_t5_are_clamped_in_fp16(self):
        """By nine more kernels each; scores with a bias are computed in fp32 in any precision."""
        def passes(precision, *more):
            return self.estimate("--model", self.config("t5-base"), "--precision", precision, "--prompt-tokens", "256",
                                 "--hardware", "h200", "--runtime", "pytorch-graph", "--verbose", *more)["subgraphs"]
        adds = {precision: [row["latency_s"] for row in passes(precision) if row["name"].endswith("add")]
                for precision in ("fp16", "bf16")}
        self.assertEqual(len(adds["fp16"]), 24)
        self.assertGreater(min(adds["fp16"]), 4 * max(adds["bf16"]))
        # 2 x 2 x 12 heads x 512^2 pairs x 64 elements of 8 sequences, at 0.4 of 67 TFLOP/s: more than fused in 16 bits.
        scores = [row["latency_s"] for row in passes("bf16", "--batch", "8", "--prompt-tokens", "512") if row["ops"] == ["attention"]]
        self.assertGreater(min(scores), 4 * 12 * 8 * 512 ** 2 * 64 / (0.4 * 67e12))

    def test_attention_with_bias_is_unfused(self):
        """PyTorch writes the scores of T5 to memory; those of BERT, of the same size, stay in the kernel."""
        def attention(model):
            report = self.estimate("--model", model, "--prompt-tokens", "512", "--batch", "8", "--precision", "fp16",
                                   "--hardware", "h200", "--runtime", "pytorch-graph", "--verbose")
            return [row["bytes"] for row in report["subgraphs"] if row["ops"] == ["attention"]]
        fused, unfused = attention("bert-base-uncased"), attention(self.config("t5-base"))
        self.assertEqual(len(fused), len(unfused))
        scores = 2 * 8 * 12 * 512 * 512
        self.assertLess(max(fused), scores)
        self.assertGreater(min(unfused), 4 * scores)

    def test_gelu_is_several_kernels_in_gpt2_and_one_elsewhere(self):
        """transformers computes that of GPT-2 in separate steps; "gelu" of a config.json and that of Gemma use
        PyTorch's kernel."""
        for model, width, least, most in (("gemma-2b", 16384, 1, 1), (self.config("pythia-1.4b"), 8192, 1, 1),
                                          ("gpt2", 3072, 5, 10), ("phi-2", 10240, 5, 10)):
            report = self.estimate("--model", model, "--phase", "prefill", "--prompt-tokens", "256", "--precision", "fp16",
                                   "--hardware", "h200", "--runtime", "pytorch-graph", "--verbose")
            found = {row["bytes"] / (2 * 2 * 256 * width) for row in report["subgraphs"]
                     if row["ops"] in (["gelu"], ["ngelu"])}
            self.assertEqual(len(found), 1)
            self.assertTrue(least <= found.pop() <= most, model)

    def test_power_limit_applies_to_pass_average(self):
        """Single kernels may exceed the limit as long as the average does not; a limit above the average has no effect,
        and below it the average equals the limit, in no less time."""
        device = json.loads(ipw(None, "list", "hardware", "h200", "--json").stdout)["hardware"][0]

        def run(limit):
            path = self.root / "device.json"
            power = {**device["power"], "limit": {**device["power"]["limit"], "value": limit}}
            path.write_text(json.dumps({**device, "id": "mine", "aliases": [], "match": [], "power": power}))
            return self.estimate("--model", "bert-base-uncased", "--precision", "fp16", "--prompt-tokens", "128", "--batch", "32",
                                 "--runtime", "pytorch-graph", "--hardware-file", path, "--top", "0")
        report = run(700)
        watts = [row["energy_j"] / row["latency_s"] for row in report["subgraphs"] if row["latency_s"] > 0]
        self.assertGreater(max(watts), 700)
        self.assertLess(report["power_w"]["average"], 700)
        self.assertLessEqual(report["power_w"]["peak"], 700)
        self.assertAlmostEqual(sum(row["energy_j"] for row in report["subgraphs"]) / report["energy_j"]["total"], 1, 6)
        low, lower = run(500), run(200)
        for limited, limit in ((low, 500), (lower, 200)):
            self.assertAlmostEqual(limited["power_w"]["average"], limit, 3)
            self.assertLess(limited["energy_j"]["compute"], report["energy_j"]["compute"])
        self.assertAlmostEqual(low["latency_s"], report["latency_s"], 9)
        self.assertGreater(lower["latency_s"], 2 * report["latency_s"])

    def all_sets(self, runtime):
        """The reports of all eleven sets."""
        return [self.measured(name, "--where", f"runtime={runtime}", *(UNIT_HOST if name in HOSTS[:2] else ()))
                for name in HOSTS]

    def test_interval_is_neither_too_narrow_nor_too_wide(self):
        """About 68 and 95 % of all rows are within one and two of the ±."""
        for runtime, count in (("graph", 349), ("eager", 370)):
            reports = self.all_sets(runtime)
            for kind in ("latency", "energy"):
                sums = [report["all"][kind] for report in reports]
                rows = [one["rows"] for one in sums]
                self.assertEqual(sum(rows), count)
                within = [sum(n * one[f"inside_{k}_sigma"] for n, one in zip(rows, sums)) / count for k in (1, 2)]
                self.assertTrue(0.6 < within[0] < 0.85, (runtime, kind, within))
                self.assertGreaterEqual(within[1], 0.9, (runtime, kind))

    def test_interval_equals_spread_of_held_out_families(self):
        """The table of docs/estimate.md, by bound, against the spread of rows corrected by other families."""
        def families(runtime):
            return [row["family"] for name in HOSTS for row in csv.DictReader(
                (SOURCE / f"tests/fixtures/estimate/h200_{name}.csv").read_text().splitlines()) if row["runtime"] == runtime]
        page = (SOURCE / "docs/estimate.md").read_text()
        for runtime in ("graph", "eager"):
            row = re.search(rf"^\| `pytorch-{runtime}`[^|]*\|( [0-9.]+, .*) \|$", page, re.M).group(1)
            stated = [[float(figure) / 100 for figure in cell.strip(" %").split(",")] for cell in row.split("|")]
            rows = [row for report in self.all_sets(runtime) for row in report["rows"]]
            for kind, key in enumerate(("latency_s", "energy_j")):
                self.assertEqual(len(rows), len(families(runtime)))
                ratios = [(family, row["bound"], row[key]["measured"] / row[key]["predicted"])
                          for family, row in zip(families(runtime), rows) if row[key]]
                for cell, bound in zip(stated, ("compute", "memory", "launch")):
                    errors = [ratio / statistics.mean(r for other, _, r in ratios if other != family) - 1
                              for family, at, ratio in ratios if at == bound]
                    if len(errors) < 8:
                        continue
                    spread = math.sqrt(statistics.mean(error ** 2 for error in errors))
                    self.assertTrue(0.9 < cell[kind] / spread < 1.15, (runtime, key, bound, spread, cell[kind]))

    def test_activations_that_fit_are_read_from_cache(self):
        """Memory energy with a free L2 cache, relative to an L2 as expensive as memory."""
        device = json.loads(ipw(None, "list", "hardware", "h200", "--json").stdout)["hardware"][0]

        def memory_joules(batch, joules):
            levels = [dict(level) for level in device["memories"]]
            levels[1]["energy"] = {**levels[1]["energy"], "value": joules}
            levels[0]["energy"] = {**levels[0]["energy"], "value": min(joules, levels[0]["energy"]["value"])}
            path = self.root / "device.json"
            path.write_text(json.dumps({**device, "id": "mine", "aliases": [], "match": [], "memories": levels}))
            report = self.estimate("--model", "resnet50", "--precision", "fp16", "--batch", str(batch), "--runtime",
                                   "pytorch-graph", "--hardware-file", path)
            return report["energy_j"]["memory"], report["traffic_bytes"]["activations"]

        for batch, is_cached in ((1, True), (512, False)):
            dear, bytes_moved = memory_joules(batch, 102)
            cheap, _ = memory_joules(batch, 1e-3)
            saved = (dear - cheap) / (bytes_moved * 102e-12)
            self.assertTrue(0.4 < saved < 0.6 if is_cached else saved < 0.1, (batch, saved))

    def test_rejects_invalid_runtimes(self):
        for words, says in ((("--hardware", "h200", "--runtime", "torch"), "torch is not a runtime: ideal, pytorch-eager"),
                            (("--hardware", "h200", "--runtime", "vllm", "--no-fusion"), "contradicts --runtime"),
                            (("--hardware", "epyc-9654", "--runtime", "tensorrt"), "known of GPUs only")):
            self.assertIn(says, self.ipw("--model", "resnet18", *words, code=1 if "epyc-9654" in words else 2).stderr)
        done = self.ipw("validate", "--csv", SOURCE / "tests/fixtures/estimate/h200.csv", "--hardware", "h200",
                        "--runtime", "torch", code=2)
        self.assertIn("torch is not a runtime", done.stderr)

    def test_sets_with_recorded_means_only(self):
        """57 rows on an H200: the mean error of each set, and -85 % as the largest error (docs/measurements.md), taken
        as two standard deviations of a log-normal distribution around the mean."""
        for options, means in ((("--runtime", "ideal"), (0.66, 0.62)), (("--no-fusion",), (0.38, 0.52))):
            report = self.estimate("--model", "resnet50", "--hardware", "h200", "--batch", "8", *options)
            energy = report["energy_j"]
            for low, value, high in ((report["latency_low_s"], report["latency_s"], report["latency_high_s"]),
                                     (energy["low"], energy["total"], energy["high"])):
                self.assertLess(low, value)
                for mean in means:
                    middle = -math.log(1 - mean)
                    sigma = (-math.log(1 - 0.85) - middle) / 2
                    for times, share in ((1, 0.68), (2, 0.90)):
                        top = math.log(1 + times * (high / value - 1))
                        self.assertGreaterEqual(normal((top - middle) / sigma), share, (options, mean, times))

    def test_decoders_keep_their_uncertainty(self):
        """72 and 94 % of 71 published figures are within one and two of it."""
        for options in ((), ("--phase", "prefill"), ("--phase", "decode"), ("--no-fusion",)):
            bound = () if "--no-fusion" in options else ("--runtime", "ideal")
            report = self.estimate("--model", "llama-3.1-8b", "--hardware", "h100-sxm", *options, *bound)
            energy, latency = report["energy_j"], report["latency_s"]
            self.assertAlmostEqual(energy["high"] - energy["total"], energy["plus_minus"])
            self.assertAlmostEqual(energy["total"] - energy["low"], energy["plus_minus"])
            self.assertAlmostEqual(report["latency_high_s"] - latency, latency - report["latency_low_s"])
            self.assertLess(energy["plus_minus"] / energy["total"], 0.4)
            self.assertLess(report["latency_plus_minus"] / latency, 0.4)


if __name__ == "__main__":
    unittest.main()
