"""Running `ipw estimate` from a test, and a device with round figures."""

import csv
import io
import json
import shutil
import tempfile
import unittest
from pathlib import Path

from program import ipw

GPU = "a100-sxm-80gb"


def figure(value, unit=None):
    return {"value": value, **({"unit": unit} if unit else {}), "evidence": "published",
            "source": "round figures for a test"}


# Every operation takes the same joules on every unit, so that totals can be computed by hand.
ROUND = {
    "id": "round", "name": "Round figures", "vendor": "nobody", "class": "gpu", "year": 2020,
    "matrix": {"fp16": {"peak": figure(100, "tflops"), "energy": figure(1, "pj")}},
    "vector": {"fp32": {"peak": figure(50, "tflops"), "energy": figure(1, "pj")},
               "fp16": {"peak": figure(50, "tflops"), "energy": figure(1, "pj")}},
    "memories": [{"name": "RAM", "bandwidth": figure(1000, "gb_per_s"),
                  "capacity": figure(16, "gib"), "energy": figure(50, "pj")}],
    "power": {"limit": figure(200, "w"), "idle": figure(40, "w")},
    "launch": figure(1, "us"), "units": figure(1), "compute_share": figure(1),
    "memory_share": figure(1),
    "link": {"bandwidth": figure(100, "gb_per_s"), "latency": figure(1, "us")},
}


class EstimateTest(unittest.TestCase):
    """Estimates with ideal kernels, whose figures can be computed by hand, unless a test selects another runtime."""
    runtime = ("--runtime", "ideal")

    def setUp(self):
        self.root = Path(tempfile.mkdtemp(prefix="ipw-estimate-"))
        self.addCleanup(shutil.rmtree, self.root)

    def device(self, **changes):
        path = self.root / "device.json"
        path.write_text(json.dumps({**ROUND, **changes}))
        return path

    def run_ipw(self, *arguments, code=0):
        selects_runtime = {"--runtime", "--no-fusion", "--model-compat", "--graph"} & set(map(str, arguments))
        done = ipw(None, "estimate", *arguments, *(() if selects_runtime else self.runtime))
        self.assertIn(done.returncode, (0, 1) if code is None else (code,), done.stderr + done.stdout)
        return done

    def estimate(self, model, *arguments, code=0):
        return json.loads(self.run_ipw("--model", model, *arguments, "--json", code=code).stdout)

    def on(self, hardware, model, *arguments, code=0):
        return self.estimate(model, "--hardware", hardware, *arguments, code=code)

    def rows(self, model, *arguments):
        """The rows of the CSV output."""
        text = self.run_ipw("--model", model, *arguments, "--format", "csv").stdout
        return list(csv.DictReader(io.StringIO(text)))

    def assertClose(self, a, b, share=1e-9):
        self.assertLessEqual(abs(a - b), share * max(abs(a), abs(b)), f"{a} against {b}")

    def refused(self, *arguments):
        done = self.run_ipw(*arguments, code=2)
        self.assertEqual((done.stdout, done.stderr.count("\n")), ("", 1), done.stderr)
        return done.stderr
