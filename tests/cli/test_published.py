#!/usr/bin/env python3
"""ipw estimate against published figures of LLMs: vendors' tables, runtime benchmarks, forum threads.  Ratios are
predicted over published speeds, so 1.1 is a tenth too fast for any metric."""

import csv
import io
import math
import re
import sys
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from compiler import SOURCE  # noqa: E402
from estimates import EstimateTest  # noqa: E402

ROWS = list(csv.DictReader((SOURCE / "tests/fixtures/estimate/published_llm.csv").open()))
LEAST, MOST = 0.85, 1.15  # bounds of the geometric mean of a group
# Bounds of each half of the sources: the model's parameters were fitted to the first.
LEAST_HALF, MOST_HALF = 0.80, 1.20
GROUPS = {
    "A100": lambda row: row["device"].startswith("a100"),
    "H100": lambda row: row["device"].startswith("h100"),
    "H200": lambda row: row["device"] == "h200",
    "MI300X": lambda row: row["device"] == "mi300x",
    "RTX 4090": lambda row: row["device"] == "rtx-4090",
    "Apple": lambda row: row["device"].startswith("apple-"),
    "Jetson": lambda row: row["device"].startswith("jetson-"),
    "16 bits": lambda row: row["precision"] in ("fp16", "bf16"),
    "fp8": lambda row: row["precision"] == "fp8",
    "int8": lambda row: row["precision"] == "int8",
    "int4": lambda row: row["precision"] == "int4",
    "one device": lambda row: row["tp"] == "1",
    "tensor parallel": lambda row: row["tp"] != "1",
    "time to first token": lambda row: row["metric"] == "ttft_ms",
    "vllm": lambda row: row["runtime"] == "vllm",
    "tensorrt": lambda row: row["runtime"] == "tensorrt",
    "torch-compile": lambda row: row["runtime"] == "torch-compile",
    "llama.cpp": lambda row: row["runtime"] == "llama.cpp",
}
TIMES = {"ttft_ms": 1e3, "tpot_ms": 1e3, "latency_s": 1}  # rates
PREFILLS, DECODES = ("ttft_ms", "prefill_tokens_per_s"), ("tpot_ms", "decode_tokens_per_s")


def arguments_of(row):
    """The arguments of a row's estimate, without the batch.  Decode steps are taken in the middle of the output."""
    given, made = int(row["input"]), int(row["output"])
    words = ["--model", row["model"], "--hardware", row["device"], "--precision", row["precision"],
             "--runtime", row["runtime"], "--tensor-parallel", row["tp"]]
    if row["metric"] in PREFILLS:
        return [*words, "--phase", "prefill", "--prompt-tokens", str(given)]
    if row["metric"] in DECODES:
        return [*words, "--phase", "decode", "--context", str(given + made // 2)]
    return [*words, "--prompt-tokens", str(given), "--output-tokens", str(made)]


def speed_over_published(row, seconds):
    metric, value, batch = row["metric"], float(row["value"]), int(row["batch"])
    if metric in TIMES:
        return value / (seconds * TIMES[metric])
    tokens = {"prefill_tokens_per_s": int(row["input"]), "decode_tokens_per_s": 1,
              "output_tokens_per_s": int(row["output"])}[metric]
    return batch * tokens / seconds / value


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


class Published(EstimateTest):
    def seconds(self, words, batches):
        """Seconds and their ± by batch.  Several batches are given, because a single estimate also tries other
        devices."""
        table = self.run_ipw(*words, "--batch", ",".join(sorted(batches | {"1", "2"}, key=int)), "--format", "csv").stdout
        return {point["batch"]: (float(point["latency_s"]), float(point["latency_plus_minus"]))
                for point in csv.DictReader(io.StringIO(table))}

    def estimates(self):
        """Ratio to the published speed and relative ± of each row."""
        questions = {}
        for row in ROWS:
            questions.setdefault(tuple(arguments_of(row)), set()).add(row["batch"])
        with ThreadPoolExecutor(2) as pool:
            asked = dict(zip(questions, pool.map(self.seconds, questions, questions.values())))
        for row in ROWS:
            took, plus_minus = asked[tuple(arguments_of(row))][row["batch"]]
            yield speed_over_published(row, took), plus_minus / took

    def test_rows_have_sources(self):
        self.assertGreaterEqual(len(ROWS), 40)
        seen = set()
        for row in ROWS:
            for key, value in row.items():
                self.assertTrue(value, (key, row))
            self.assertTrue(row["address"].startswith("https://"), row["address"])
            self.assertRegex(row["date"], r"^20\d\d(-\d\d)?$")
            self.assertIn(row["half"], ("fit", "check"))
            self.assertEqual(row["count"], row["tp"])
            key = tuple(row[k] for k in row if k not in ("half", "date"))
            self.assertNotIn(key, seen)
            seen.add(key)
        halves = {}
        for row in ROWS:  # each source is in one half
            self.assertEqual(halves.setdefault(row["source"], row["half"]), row["half"])

    def check_intervals(self, estimates):
        """The ± of a runtime equals the spread of its rows, with each source corrected by the others, and the
        documented value: about 68 and 95 % are within one and two of it."""
        page = (SOURCE / "docs/estimate.md").read_text()
        for runtime in ("vllm", "llama.cpp", "tensorrt", "torch-compile"):
            rows = [(row["source"], ratio - 1, relative) for row, (ratio, relative) in zip(ROWS, estimates)
                    if row["runtime"] == runtime]
            stated, = re.findall(rf"^\| `{re.escape(runtime)}` \| {len(rows)} \| (\d+) % \|$", page, re.M)
            left_out = []
            for source in {source for source, _, _ in rows}:
                others = [error ** 2 for other, error, _ in rows if other != source]
                left_out += [sum(others) / len(others)] * (len(rows) - len(others))
            spread = math.sqrt(sum(left_out) / len(left_out))
            with self.subTest(runtime=runtime, spread=spread):
                self.assertTrue(0.93 < float(stated) / 100 / spread < 1.07, stated)
                for _, _, relative in rows:
                    self.assertAlmostEqual(relative, float(stated) / 100, delta=1e-6)
        for times, least, most in ((1, 0.60, 0.76), (2, 0.90, 0.98)):
            inside = sum(abs(ratio - 1) <= times * relative for ratio, relative in estimates) / len(estimates)
            self.assertTrue(least <= inside <= most, (times, inside))

    def test_mean_errors_of_groups_are_bounded(self):
        estimates = list(self.estimates())
        ratios = [ratio for ratio, _ in estimates]
        self.check_intervals(estimates)
        for name, belongs in GROUPS.items():
            group = [(row["half"], ratio) for row, ratio in zip(ROWS, ratios) if belongs(row)]
            with self.subTest(group=name, rows=len(group)):
                self.assertGreaterEqual(len(group), 7)
                overall = mean([ratio for _, ratio in group])
                self.assertTrue(LEAST <= overall <= MOST, overall)
            for half in ("fit", "check"):
                part = [ratio for which, ratio in group if which == half]
                with self.subTest(group=name, half=half, rows=len(part)):
                    if part:  # MI300X has one source
                        self.assertTrue(LEAST_HALF <= mean(part) <= MOST_HALF, mean(part))
        errors = [abs(ratio - 1) for ratio in ratios]
        self.assertLess(sum(errors) / len(errors), 0.16)

    def test_computed_precisions(self):
        """Integer precisions are weight-only, computed in 16 bits; fp8 is native on Hopper, Ada and MI300X."""
        words = ["llama-3.1-8b", "--phase", "decode", "--context", "64", "--runtime", "vllm", "--precision"]
        for device, eight in (("h100-sxm", "fp8"), ("rtx-4090", "fp8"), ("mi300x", "fp8"), ("a100-sxm-80gb", "fp16")):
            self.assertEqual(self.on(device, *words, "fp8")["setting"]["computed_in"], eight, device)
            four = self.on(device, *words, "int4")
            self.assertEqual(four["setting"]["computed_in"], "fp16", device)
            # 4 bits, a 16-bit scale per 32 weights, and an output matrix in 16 bits.
            matrices, head = 32 * (2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336), 4096 * 128256
            self.assertClose(four["traffic_bytes"]["weights"], matrices * 4.5 / 8 + head * 2, 1e-3)
            # Memory also has the embeddings.
            self.assertClose(four["memory_bytes"]["weights"], (matrices + head) * 4.5 / 8 + head * 2, 1e-3)

    def test_server_steps_include_scheduling(self):
        """vLLM schedules between two steps: a model of half a billion parameters takes at least 2.2 ms."""
        words = ["qwen2.5-0.5b", "--phase", "decode", "--context", "64", "--precision", "bf16", "--runtime"]
        served, compiled = (self.on("h200", *words, name)["latency_s"] for name in ("vllm", "torch-compile"))
        self.assertClose(served - compiled, 2.22e-3, 0.01)


if __name__ == "__main__":
    unittest.main()
