#!/usr/bin/env python3
"""ipw estimate calibrate on this CPU: what it times is what models that it never saw take in llama.cpp."""

import json
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "cli")]
import servers  # noqa: E402
from make_gguf import make  # noqa: E402
from program import ipw  # noqa: E402

MODEL = Path(servers.SOURCE) / "models/ipw-6m-f16.gguf"
# One thread: two would wait for each other on a busy machine.  What other programs take differs between the two
# measurements, so the factor is generous.
FACTOR = 3
ATTEMPTS = 6  # a window in which nothing else ran is among them


def setUpModule():
    listing = json.loads(ipw(None, "list", "clients", "--json").stdout)
    row = next(row for row in listing["clients"] if row["name"] == "llama")
    if not row["available"]:
        raise servers.Skip(row["missing"])


class Calibrated(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="ipw-calibrate-cpu-")
        cls.addClassCleanup(folder.cleanup)
        cls.root = Path(folder.name)
        cls.file = cls.root / "here.json"
        cls.done = ipw(None, "estimate", "calibrate", "--seconds", "1", "--threads", "1", "--json", "-o", cls.file)
        if "could not be timed undisturbed" in cls.done.stderr and cls.done.returncode:
            raise servers.Skip(cls.done.stderr.strip().splitlines()[-1])

    def estimate(self, *arguments):
        done = ipw(None, "estimate", "--hardware-file", self.file, "--json", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_the_file_has_operations_by_format(self):
        self.assertEqual(self.done.returncode, 0, self.done.stderr)
        self.assertRegex(self.done.stderr, r"window \d+ of \d+: llama\.cpp Q4_K")
        timings = json.loads(self.file.read_text())["timings"]
        self.assertEqual((timings["runtime"], timings["threads"]), ("llama.cpp", 1))
        self.assertEqual(json.loads(self.done.stdout)["operations"], len(timings["operations"]))
        products = [row for row in timings["operations"] if row["op"] == "product"]
        self.assertLessEqual({"F32", "F16", "Q8_0", "Q4_0", "Q4_K"}, {row["format"] for row in products})
        for name in {row["format"] for row in products}:
            cost = {}
            for row in products:
                if row["format"] == name:
                    macs = row["rows"] * row["depth"] * row["columns"]
                    cost.setdefault(row["rows"], []).append(row["us"] / macs)
            # Tokens that share weights cost less each than a token alone.
            self.assertLess(min(cost[512]), min(cost[1]) * 1.5, name)
        self.assertEqual({row["op"] for row in timings["operations"]},
                         {"pass", "step", "product", "attention", "norm", "add", "rotation", "gate"})

    def shortest(self, report, phase, prompt):
        """Seconds of a pass in the best of its windows: other programs only add time."""
        number = next(i for i, each in enumerate(report["settings"])
                      if (each["phase"], each["prompt_tokens"]) == (phase, prompt))
        setting = report["settings"][number]
        best = min(each["time_s"] / each["passes"] for each in report["windows"]
                   if each["setting"] == number and not each["watched"])
        return best / (setting["tokens"] if phase == "decode" else 1)

    def test_a_shipped_model_takes_about_what_is_estimated(self):
        made = self.root / "layers.json"
        wanted = {(phase, prompt): self.estimate("--model", MODEL, "--phase", phase, length, str(prompt))["latency_s"]
                  for phase, length in (("prefill", "--prompt-tokens"), ("decode", "--context"))
                  for prompt in (32, 128)}
        best = {}
        for _ in range(ATTEMPTS):
            done = ipw(None, "layers", "--model", MODEL, "--threads", "1", "--prompt-tokens", "32,128", "--gen", "8",
                       "--repeat", "3", "--window", "0.03", "--idle", "0", "-q", "-o", made)
            self.assertEqual(done.returncode, 0, done.stderr)
            report = json.loads(made.read_text())
            for key in wanted:
                best[key] = min(best.get(key, 1e9), self.shortest(report, *key))
            if all(best[key] < FACTOR * wanted[key] for key in wanted):
                break
        for key, estimated in wanted.items():
            with self.subTest(key):
                self.assertTrue(1 / FACTOR < estimated / best[key] < FACTOR, (estimated, best[key]))

    def test_formats_differ_as_they_were_timed(self):
        """The same model in the file's operations and at the shares of peaks: only the former knows its runtime."""
        timed = self.estimate("--model", MODEL, "--phase", "decode", "--context", "256")
        bound = self.estimate("--model", MODEL, "--phase", "decode", "--context", "256", "--runtime", "ideal")
        self.assertGreater(timed["latency_s"], bound["latency_s"])
        small = self.root / "small.gguf"
        make(small, layers=2, hidden=64, heads=4, context=256)
        less = self.estimate("--model", small, "--phase", "decode", "--context", "256")
        self.assertLess(less["latency_s"], timed["latency_s"])
        self.assertAlmostEqual(sum(row["latency_s"] for row in timed["subgraphs"]) / timed["latency_s"], 1, places=6)


if __name__ == "__main__":
    unittest.main()
