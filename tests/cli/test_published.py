#!/usr/bin/env python3
"""ipw estimate against published figures of LLMs: vendors' tables, runtime benchmarks, forum threads.  Ratios are
predicted over published speeds, so 1.1 is a tenth too fast for any metric."""

import csv
import io
import math
import re
import statistics
import sys
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from compiler import SOURCE  # noqa: E402
from estimates import EstimateTest  # noqa: E402


def read(name):
    return list(csv.DictReader((SOURCE / "tests/fixtures/estimate" / name).open()))


ROWS = read("published_llm.csv")
# Nothing was fitted to these, neither parameters nor intervals, except the rate of fp4 to one model of SERVING.
HELD_OUT = read("published_llm_held_out.csv")
SERVING = read("published_serving.csv")
RUNTIMES = ("vllm", "llama.cpp", "tensorrt", "tensorrt-0.7", "torch-compile")
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
    "tensorrt-0.7": lambda row: row["runtime"] == "tensorrt-0.7",
    "torch-compile": lambda row: row["runtime"] == "torch-compile",
    "llama.cpp": lambda row: row["runtime"] == "llama.cpp",
}
TIMES = {"ttft_ms": 1e3, "tpot_ms": 1e3, "latency_s": 1}  # rates
PREFILLS, DECODES = ("ttft_ms", "prefill_tokens_per_s"), ("tpot_ms", "decode_tokens_per_s")


def arguments_of(row, gives_runtime=True):
    """The arguments of a row's estimate, without the batch.  Decode steps are taken in the middle of the output."""
    given, made = int(row["input"]), int(row["output"])
    words = ["--model", row["model"], "--hardware", row["device"], "--precision", row["precision"],
             "--tensor-parallel", row["tp"], *(["--runtime", row["runtime"]] if gives_runtime else [])]
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
    runtime = ()

    def seconds(self, words, batches):
        """Seconds and their ± by batch.  Several batches are given, because a single estimate also tries other
        devices."""
        table = self.run_ipw(*words, "--batch", ",".join(sorted(batches | {"1", "2"}, key=int)), "--format", "csv").stdout
        return {point["batch"]: (float(point["latency_s"]), float(point["latency_plus_minus"]))
                for point in csv.DictReader(io.StringIO(table))}

    def estimates(self, rows=ROWS, gives_runtime=True):
        """Ratio to the published speed and relative ± of each row."""
        questions = {}
        for row in rows:
            questions.setdefault(tuple(arguments_of(row, gives_runtime)), set()).add(row["batch"])
        with ThreadPoolExecutor(2) as pool:
            asked = dict(zip(questions, pool.map(self.seconds, questions, questions.values())))
        for row in rows:
            took, plus_minus = asked[tuple(arguments_of(row, gives_runtime))][row["batch"]]
            yield speed_over_published(row, took), plus_minus / took

    def test_rows_have_sources(self):
        self.assertGreaterEqual(len(ROWS), 40)
        seen = set()
        for row in ROWS + HELD_OUT + SERVING:
            for key, value in row.items():
                self.assertTrue(value, (key, row))
            self.assertTrue(row["address"].startswith("https://"), row["address"])
            self.assertRegex(row["date"], r"^20\d\d(-\d\d)?$")
            self.assertIn(row.get("half", "held out"), ("fit", "check", "held out"))
            self.assertEqual(row.get("count", row["tp"]), row["tp"])
            key = tuple(row[k] for k in row if k not in ("half", "date"))
            self.assertNotIn(key, seen)
            seen.add(key)
        halves = {}
        for row in ROWS + HELD_OUT:  # each source is in one of them
            self.assertEqual(halves.setdefault(row["source"], row["half"]), row["half"])
        self.assertGreater(len(HELD_OUT) + len(SERVING), 140)

    def test_stated_intervals_are_documented(self):
        page = (SOURCE / "docs/estimate.md").read_text()
        for runtime in RUNTIMES:
            row = next(row for row in ROWS if row["runtime"] == runtime)
            _, relative = next(self.estimates([row]))
            count = sum(row["runtime"] == runtime for row in ROWS)
            stated, = re.findall(rf"^\| `{re.escape(runtime)}` \| {count} \| (\d+) % \|$", page, re.M)
            self.assertAlmostEqual(relative, float(stated) / 100, delta=1e-6, msg=runtime)

    def test_intervals_hold_and_are_no_wider_than_needed(self):
        """With the runtime of each row, and with the default one of its model and device, which may be another: 95 % are
        within two of the ±, whose median is bounded; at 0.8 of it, fewer of those that it was chosen by are."""
        for gives_runtime, widest in ((True, 0.20), (False, 0.206)):
            for rows in (ROWS, HELD_OUT):
                estimates = list(self.estimates(rows, gives_runtime))
                inside, inside_less = (sum(abs(ratio - 1) <= times * relative for ratio, relative in estimates) / len(rows)
                                       for times in (2, 1.6))
                with self.subTest(gives_runtime=gives_runtime, held_out=rows is HELD_OUT):
                    self.assertGreaterEqual(inside, 0.95)
                    self.assertLessEqual(statistics.median(relative for _, relative in estimates), widest)
                    if rows is ROWS:
                        self.assertLess(inside_less, 0.95)

    def capacity(self, row):
        """Output tokens per second when all requests wait from the start."""
        report = self.on(row["device"], row["model"], "--precision", row["precision"], "--runtime", row["runtime"],
                         "--tensor-parallel", row["tp"], "--serve", "--prompt-tokens", row["input"], "--output-tokens",
                         row["output"], "--requests", str(min(int(row["requests"]), 1500)), "--request-rate", "100000")
        point, = report["points"]
        return point["tokens_per_s"], point["tokens_per_s_plus_minus"]

    def test_server_throughput(self):
        """Under the highest load, long prompts and long outputs alike.  Published over estimated is within two of the ±."""
        rows = [row for row in SERVING if (int(row["input"]), int(row["output"])) in
                ((128, 128), (128, 2048), (1000, 1000), (2048, 2048), (20000, 2000))]
        with ThreadPoolExecutor(2) as pool:
            found = list(pool.map(self.capacity, rows))
        groups = {}
        for row, (rate, _) in zip(rows, found):
            groups.setdefault((row["device"], row["model"]), []).append(rate / float(row["output_tokens_per_s"]))
        for group, ratios in groups.items():
            with self.subTest(group):
                self.assertTrue(0.8 <= mean(ratios) <= 1.25, ratios)
        for row, (rate, _) in zip(rows, found):
            if int(row["output"]) >= 1000:
                self.assertGreaterEqual(rate / float(row["output_tokens_per_s"]), 0.8, row)
        inside = [abs(float(row["output_tokens_per_s"]) - rate) <= 2 * plus_minus for row, (rate, plus_minus) in zip(rows, found)]
        self.assertGreaterEqual(sum(inside) / len(inside), 0.9)

    def test_mean_errors_of_groups_are_bounded(self):
        ratios = [ratio for ratio, _ in self.estimates()]
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
