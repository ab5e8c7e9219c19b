#!/usr/bin/env python3
# test: serial
"""ipw estimate calibrate on this CPU predicts the times of models outside of the calibration, in llama.cpp and ONNX
Runtime."""

import json
import os
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "cli")]
import servers  # noqa: E402
from make_gguf import make  # noqa: E402
from onnx_bytes import info, integer, integers, model, node, weight  # noqa: E402
from program import ipw  # noqa: E402

MODEL = Path(servers.SOURCE) / "models/ipw-6m-f16.gguf"
# One thread: several would wait for each other on a busy machine.  Other load differs between the two measurements, so
# the factor is generous.
FACTOR = 3
ATTEMPTS_S = 120  # until some window ran without other load


# Prints the library of the package; with a model file and its input sizes, the seconds of a pass on one thread.
RUN = """
import json, pathlib, sys, time
import numpy, onnxruntime
if len(sys.argv) == 1:
    print(*pathlib.Path(onnxruntime.__file__).parent.glob("capi/libonnxruntime.so.*"))
    sys.exit()
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
inputs = {"x": numpy.ones(json.loads(sys.argv[2]), numpy.float32)}
best = 1e9
for _ in range(30):
    begin = time.thread_time()
    session.run(None, inputs)
    best = min(best, time.thread_time() - begin)
print(best)
"""


def setUpModule():
    """One quick calibration for all tests, with operations of both libraries."""
    listing = json.loads(ipw(None, "list", "clients", "--json").stdout)
    row = next(row for row in listing["clients"] if row["name"] == "llama")
    if not row["available"]:
        raise servers.Skip(row["missing"])
    python = os.environ.get("IPW_PYTHON", sys.executable)
    found = subprocess.run([python, "-c", RUN], capture_output=True, text=True)
    folder = tempfile.TemporaryDirectory(prefix="ipw-calibrate-cpu-")
    unittest.addModuleCleanup(folder.cleanup)
    Calibrated.root, Calibrated.file = Path(folder.name), Path(folder.name) / "here.json"
    Calibrated.python, Calibrated.onnx = python, found.stdout.strip() if not found.returncode else ""
    done = Calibrated.done = ipw(None, "estimate", "calibrate", "--seconds", "1", "--threads", "1", "--json", "-o",
                                 Calibrated.file, env={"IPW_ONNXRUNTIME_LIB": Calibrated.onnx})
    if "could not be timed undisturbed" in done.stderr and done.returncode:
        raise servers.Skip(done.stderr.strip().splitlines()[-1])


class Calibrated(unittest.TestCase):
    def tables(self):
        """Tables by runtime; a single one is not in a list."""
        tables = json.loads(self.file.read_text())["timings"]
        return {table["runtime"]: table for table in (tables if isinstance(tables, list) else [tables])}

    def estimate(self, *arguments):
        done = ipw(None, "estimate", "--hardware-file", self.file, "--json", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

class LlamaCpp(Calibrated):
    def test_file_has_operations_by_precision(self):
        self.assertEqual(self.done.returncode, 0, self.done.stderr)
        self.assertRegex(self.done.stderr, r"window \d+ of \d+: llama\.cpp Q4_K")
        timings = self.tables()["llama.cpp"]
        self.assertEqual(timings["threads"], 1)
        self.assertEqual(json.loads(self.done.stdout)["operations"],
                         sum(len(table["operations"]) for table in self.tables().values()))
        products = [row for row in timings["operations"] if row["op"] == "product"]
        self.assertLessEqual({"F32", "F16", "Q8_0", "Q4_0", "Q4_K"}, {row["format"] for row in products})
        for name in {row["format"] for row in products}:
            cost = {}
            for row in products:
                if row["format"] == name:
                    macs = row["rows"] * row["depth"] * row["columns"]
                    cost.setdefault(row["rows"], []).append(row["us"] / macs)
            # Batched tokens cost less each than a single token.
            self.assertLess(min(cost[512]), min(cost[1]) * 1.5, name)
        self.assertEqual({row["op"] for row in timings["operations"]},
                         {"pass", "step", "product", "attention", "norm", "add", "rotation", "gate"})

    def shortest(self, report, phase, prompt):
        """Shortest time of a pass over its windows: other programs only add time."""
        number = next(i for i, each in enumerate(report["settings"])
                      if (each["phase"], each["prompt_tokens"]) == (phase, prompt))
        setting = report["settings"][number]
        best = min(each["time_s"] / each["passes"] for each in report["windows"]
                   if each["setting"] == number and not each["watched"])
        return best / (setting["tokens"] if phase == "decode" else 1)

    def test_time_of_shipped_model_agrees_with_estimate(self):
        made = self.root / "layers.json"
        wanted = {(phase, prompt): self.estimate("--model", MODEL, "--phase", phase, length, str(prompt))["latency_s"]
                  for phase, length in (("prefill", "--prompt-tokens"), ("decode", "--context"))
                  for prompt in (32, 128)}
        best = {}
        end = time.monotonic() + ATTEMPTS_S
        while not best or time.monotonic() < end:
            done = ipw(None, "layers", "--model", MODEL, "--threads", "1", "--prompt-tokens", "32,128", "--gen", "4",
                       "--repeat", "1", "--window", "0.02", "--idle", "0", "-q", "-o", made)
            self.assertEqual(done.returncode, 0, done.stderr)
            report = json.loads(made.read_text())
            for key in wanted:
                best[key] = min(best.get(key, 1e9), self.shortest(report, *key))
            if all(best[key] < FACTOR * wanted[key] for key in wanted):
                break
        for key, estimated in wanted.items():
            with self.subTest(key):
                self.assertTrue(1 / FACTOR < estimated / best[key] < FACTOR, (estimated, best[key]))

    def test_estimate_uses_timed_operations(self):
        """The same model by timed operations and by shares of peaks: only the former has the runtime."""
        timed = self.estimate("--model", MODEL, "--phase", "decode", "--context", "256")
        bound = self.estimate("--model", MODEL, "--phase", "decode", "--context", "256", "--runtime", "ideal")
        self.assertGreater(timed["latency_s"], bound["latency_s"])
        small = self.root / "small.gguf"
        make(small, layers=2, hidden=64, heads=4, context=256)
        less = self.estimate("--model", small, "--phase", "decode", "--context", "256")
        self.assertLess(less["latency_s"], timed["latency_s"])
        self.assertAlmostEqual(sum(row["latency_s"] for row in timed["subgraphs"]) / timed["latency_s"], 1, places=6)


class OnnxRuntime(Calibrated):
    """Compared with runs of the package on models with sizes that were not timed."""

    def setUp(self):
        if not self.onnx:
            self.skipTest("no onnxruntime in " + self.python)

    def test_file_has_onnx_operators(self):
        self.assertEqual(self.done.returncode, 0, self.done.stderr)
        table = self.tables()["onnxruntime"]
        self.assertEqual(table["threads"], 1)
        # other architectures may use one layout for all
        blocked = {"reorder"} if os.uname().machine == "x86_64" else set()
        self.assertLessEqual({"conv", "conv_1x1", "conv_1d", "conv_image", "conv_depthwise", "product", "lstm", "add", "scale",
                              "sigmoid", "lrn", "step", "pass"} | blocked, {row["op"] for row in table["operations"]})

    def write(self, name, nodes, tensors, sizes):
        path = self.root / f"{name}.onnx"
        path.write_bytes(model(nodes, [info("x", sizes)], [info("y", [])], tensors))
        return path

    def test_times_of_models_agree_with_estimates(self):
        window = [integers("kernel_shape", [3, 3]), integers("pads", [1, 1, 1, 1])]
        wide, deep, square = 48 * 48 * 9, 96 * 9, 384 * 384
        convs = self.write("convs", [node("Conv", ["x", "a"], ["h"], "", *window), node("Conv", ["h", "a"], ["y"], "", *window)],
                           [weight("a", [48, 48, 3, 3], numbers=numbers(wide))], [1, 48, 40, 40])
        deeps = self.write("deeps", [node("Conv", ["x", "a"], ["h"], "", *window, integer("group", 96)),
                                     node("Sigmoid", ["h"], ["s"]), node("Mul", ["h", "s"], ["y"])],
                           [weight("a", [96, 1, 3, 3], numbers=numbers(deep))], [1, 96, 60, 60])
        products = self.write("products", [node("MatMul", ["x", "a"], ["h"]), node("MatMul", ["h", "a"], ["y"])],
                              [weight("a", [384, 384], numbers=numbers(square))], [200, 384])
        for path, sizes in ((convs, [1, 48, 40, 40]), (deeps, [1, 96, 60, 60]), (products, [200, 384])):
            took = float(subprocess.run([self.python, "-c", RUN, path, json.dumps(sizes)], check=True,
                                        capture_output=True, text=True).stdout)
            with self.subTest(path.stem):
                wanted = self.estimate("--model", path, "--runtime", "onnxruntime")["latency_s"]
                self.assertTrue(1 / FACTOR < wanted / took < FACTOR, (wanted, took))


def numbers(count):
    return [(-0.05, 0.05)[i * 2654435761 >> 7 & 1] for i in range(count)]


if __name__ == "__main__":
    unittest.main()
