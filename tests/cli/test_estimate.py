#!/usr/bin/env python3
"""ipw estimate: figures against independent sums, recommendations against their own estimates, Pareto frontiers against
all pairs, limits, formats, bad input.  Devices are from the catalog, plus one with round figures."""

import csv
import io
import json
import math
import re
import shutil
import sys
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from compiler import SOURCE  # noqa: E402
from estimates import GPU, ROUND, EstimateTest, figure  # noqa: E402
from machines import Machine, Nvidia  # noqa: E402
from program import MachineTest, ipw  # noqa: E402

LEGACY = SOURCE / "tests" / "fixtures" / "hardware"
GGUF = SOURCE / "models" / "ipw-6m-f16.gguf"
RECORDED = {model["name"]: model
            for model in json.loads((SOURCE / "tests/fixtures/configs/models.json").read_text())["models"]}
ONNX = Path("/usr/share/libonnx-testdata/data/node")  # Debian's models of single operators


# ---- figures ----

EVIDENCES = ("measured", "fitted", "published", "derived", "assumed")


class Figures(EstimateTest):
    KEYS = {
        "model", "hardware", "precision", "batch", "params", "macs", "flops", "bytes", "latency_s",
        "energy_j", "power_w", "memory_bytes", "subgraphs", "bound_counts", "concurrency",
        "recommendations", "confidence"}

    def check(self, report):
        """Invariants of every estimate."""
        self.assertLessEqual(self.KEYS, set(report))
        energy, power = report["energy_j"], report["power_w"]
        parts = sum(energy[key] for key in ("compute", "memory", "static", "link"))
        self.assertClose(parts, energy["total"])
        self.assertClose(sum(row["energy_j"] for row in report["subgraphs"]), energy["total"], 1e-6)
        self.assertClose(sum(row["latency_s"] for row in report["subgraphs"]), report["latency_s"],
                         1e-6)
        self.assertClose(power["average"], energy["total"] / report["latency_s"])
        self.assertLessEqual(power["idle"], power["average"] * (1 + 1e-9))
        self.assertLessEqual(power["average"], power["limit"] * (1 + 1e-9))
        self.assertLessEqual(power["average"], power["peak"] * (1 + 1e-9))
        for value in (energy["plus_minus"], report["latency_plus_minus"], power["plus_minus"]):
            self.assertGreater(value, 0)
        memory = report["memory_bytes"]
        self.assertLessEqual(memory["weights"] + memory["kv_cache"], memory["total_peak"])
        self.assertIn(report["confidence"], ("calibrated", "interpolated", "theoretical"))
        self.assertEqual(report["method"], "estimated")
        for row in report["hardware_figures"]:
            self.assertTrue(row["value"] is None or row["source"], row)

    def test_invariants_of_estimates(self):
        for model, *more in (["resnet18"], ["mobilenet_v2", "--batch", "16"], ["gpt2"],
                             ["bert-base-uncased", "--no-fusion"], [GGUF], ["gpt2", "--tensor-parallel", "2"],
                             ["gpt2", "--phase", "prefill"],
                             ["gpt2", "--phase", "decode", "--context", "700"]):
            for hardware in (GPU, "xeon-8490h"):
                if "--tensor-parallel" in more and hardware != GPU:
                    continue  # it has no link to other devices
                with self.subTest(model=model, more=more, hardware=hardware):
                    self.check(self.on(hardware, model, *more))

    def test_counts_equal_published_ones(self):
        for model, params, macs in (("resnet18", 11689512, 1814073344),
                                    ("mobilenet_v2", 3504872, 300774272)):
            report = self.on(GPU, model)
            self.assertEqual((report["params"], report["macs"]), (params, macs))
        self.assertEqual(self.on(GPU, "resnet18", "--batch", "3")["macs"], 3 * 1814073344)

    def test_energy_computed_by_hand(self):
        """1 pJ per operation, 50 pJ per byte, 40 W idle."""
        for more in ([], ["--batch", "8"], ["--no-fusion"]):
            report = self.estimate("resnet18", "--hardware-file", self.device(), *more)
            self.assertClose(report["energy_j"]["compute"], report["flops"] * 1e-12)
            self.assertClose(report["energy_j"]["memory"], report["bytes"] * 50e-12)
            self.assertClose(report["energy_j"]["static"], 40 * report["latency_s"])

    def test_narrower_precision_costs_less(self):
        for hardware in (GPU, "h100-sxm", "l4"):
            wide, narrow = (self.on(hardware, "resnet18", "--precision", p)["energy_j"]["total"]
                            for p in ("fp32", "fp16"))
            self.assertLess(narrow, wide)

    def test_matrix_products_run_on_units_of_their_precision(self):
        """Or on those that compute such numbers with the least energy, according to the hardware file."""
        for hardware, precision, units, computed_in, others in (
                ("b200", "fp4", "matrix", "fp4", "fp32"), ("b200", "int4", "matrix", "int8", "fp32"),
                ("a100-sxm-80gb", "int4", "matrix", "int4", "fp16"),
                ("a100-sxm-80gb", "fp4", "matrix", "fp16", "fp16"),
                ("xeon-8592", "fp8", "matrix", "bf16", "fp16"),
                ("xeon-8592", "fp16", "vector", "fp16", "fp16"),
                ("graviton3", "fp4", "vector", "bf16", "bf16"),
                ("i7-12700k", "int4", "vector", "int8", "fp32")):
            with self.subTest(hardware=hardware, precision=precision):
                device = json.loads((SOURCE / "data" / "hardware" / f"{hardware}.json").read_text())
                report = self.on(hardware, "bert-base-uncased", "--precision", precision, "--no-fusion")
                self.assertEqual(report["setting"]["computed_in"], computed_in)
                rest = report["flops"] - 2 * report["macs"]
                joules = 1e-12 * (
                    2 * report["macs"] * device[units][computed_in]["energy"]["value"] +
                    rest * device["vector"][others]["energy"]["value"])
                self.assertClose(report["energy_j"]["compute"], joules, 1e-6)

    def test_all_input_figures_are_listed(self):
        """Including assumed ones: time and energy are recomputed from the list alone."""
        gpu = {"compute_share": 0.7, "memory_share": 0.8, "launch": 4e-6}  # as in docs/estimate.md
        without = {key: value for key, value in ROUND.items() if key not in gpu}
        path = self.root / "bare.json"
        path.write_text(json.dumps(without))
        for file, assumed in ((self.device(), {}), (path, gpu)):
            report = self.estimate("gpt2", "--phase", "decode", "--hardware-file", file)
            rows = {(row["name"], row["format"]): row for row in report["hardware_figures"]}
            for name in gpu:
                row = rows[name, None]
                self.assertEqual(row["evidence"], "assumed" if name in assumed else "published")
                if name in assumed:
                    self.assertEqual((row["value"], row["plus_minus"]),
                                     (assumed[name], 0.5 * assumed[name]))
                    self.assertIn("not stated", row["source"])
            f = {name: row["value"] for (name, _), row in rows.items()}
            self.assertIn(("vector_flops", "fp16"), rows)
            rest = report["flops"] - 2 * report["macs"]
            self.assertClose(report["energy_j"]["compute"], 2 * report["macs"] * f["matrix_joules"] +
                             rest * f["vector_joules"])
            bare = [row for row in report["subgraphs"] if row["bound"] == "memory" and
                    row["energy_j"] < 0.99 * f["power_limit"] * row["latency_s"]]
            for row in bare:  # if the power limit has no effect
                self.assertClose(row["latency_s"], f["launch"] + row["bytes"] /
                                 (f["memory_bandwidth"] * f["memory_share"]))
            self.assertTrue(bare)
        text = self.run_ipw("--model", "resnet18", "--hardware-file", path, "-v").stdout
        self.assertRegex(text, r"launch +4\.000 µs +assumed +not stated")
        names = {row["name"] for row in self.on(GPU, "resnet18", "--tensor-parallel", "2")["hardware_figures"]}
        self.assertLessEqual({"link_bandwidth", "link_latency", "units"}, names)

    def test_default_precision_of_devices(self):
        for hardware, precision in ((GPU, "fp16"), ("tpu-v4", "bf16"), ("xeon-8380", "fp32"),
                                    ("epyc-9654", "bf16"), ("xeon-8592", "bf16"),
                                    ("graviton3", "bf16"), ("altra-q80-30", "fp16"),
                                    ("h200", "fp16"), ("coral-edge-tpu", "int8")):
            self.assertEqual(self.on(hardware, "resnet18")["precision"], precision)

    def test_default_precision_is_the_cheaper_16_bit_one(self):
        """No device defaults to a 16-bit precision that costs much more than the other."""
        table = self.rows("bert-base-uncased", "--compare")
        both = {p: {row["hardware"]: row for row in self.rows(
            "bert-base-uncased", "--compare", "--precision", p)}
            for p in ("fp16", "bf16")}
        seen = 0
        for row in table:
            if row["missing"] or row["precision"] not in both:
                continue
            seen += 1
            least = min(float(both[p][row["hardware"]]["energy_each_j"]) for p in both)
            self.assertLess(float(row["energy_each_j"]), 1.1 * least, row)
        self.assertGreater(seen, 30)

    def test_file_keeps_its_precision(self):
        report = self.on(GPU, GGUF)
        self.assertTrue(report["setting"]["keeps_stored"])
        self.assertEqual(report, self.on(GPU, GGUF, "--precision", "stored"))
        eight = self.on(GPU, GGUF, "--precision", "int8")
        self.assertFalse(eight["setting"]["keeps_stored"])
        self.assertEqual(eight["memory_bytes"]["weights"], eight["params"])

    def test_power_mode_changes_limit_and_latency(self):
        default, low = (self.on(hardware, "resnet18") for hardware in
                        ("jetson-orin-nano-8gb", "jetson-orin-nano-8gb@7W"))
        self.assertEqual(low["power_w"]["limit"], 7)
        self.assertLess(default["latency_s"], low["latency_s"])


# ---- requests ----

class Requests(EstimateTest):
    def step(self, context, *more):
        return self.on(GPU, "gpt2", "--phase", "decode", "--context", str(context), *more)

    def request(self, prompt, output, *more):
        return self.on(GPU, "gpt2", "--prompt-tokens", str(prompt), "--output-tokens", str(output),
                       *more)

    def sum_of_passes(self, prompt, output, *more):
        """Joules and seconds of a prefill plus each decode step."""
        passes = [self.on(GPU, "gpt2", "--phase", "prefill", "--prompt-tokens", str(prompt), *more)]
        passes += [self.step(prompt + 1 + i, *more) for i in range(output - 1)]
        return (sum(p["energy_j"]["total"] for p in passes), sum(p["latency_s"] for p in passes))

    def test_short_request_is_exact_sum_of_passes(self):
        for output in (1, 2, 5):
            report = self.request(20, output, "--batch", "3")
            joules, seconds = self.sum_of_passes(20, output, "--batch", "3")
            self.assertClose(report["energy_j"]["total"], joules)
            self.assertClose(report["latency_s"], seconds)

    def test_long_request_is_nearly_sum_of_passes(self):
        report, (joules, seconds) = self.request(16, 36), self.sum_of_passes(16, 36)
        self.assertClose(report["energy_j"]["total"], joules, 1e-3)
        self.assertClose(report["latency_s"], seconds, 1e-3)

    def test_figures_per_request(self):
        report = self.request(100, 50, "--batch", "4")
        request, each = report["request"], report["each"]
        self.assertClose(request["energy_j"], report["energy_j"]["total"] / 4)
        self.assertEqual((each["unit"], each["count"]), ("output token", 200))
        self.assertClose(each["energy_j"] * 200, report["energy_j"]["total"])
        self.assertClose(each["per_s"], 200 / report["latency_s"])
        prefill, decode = request["phases"]
        self.assertEqual((prefill["tokens"], decode["tokens"]), (100, 49))
        self.assertClose(request["first_token_s"], prefill["latency_s"])
        self.assertClose(prefill["latency_s"] + decode["latency_s"], report["latency_s"])
        self.assertClose(prefill["energy_j"]["total"] + decode["energy_j"]["total"],
                         report["energy_j"]["total"])

    def test_context_option_sets_output_length(self):
        self.assertEqual(self.on(GPU, "gpt2", "--prompt-tokens", "10", "--context", "30"),
                         self.request(10, 20))

    def test_kv_cache_traffic(self):
        """16 layers of 8 heads of 64, two bytes per element: the KV cache of 512 tokens is read, that of one is
        written."""
        said = self.estimate("llama-3.2-1b", "--hardware", "h200", "--precision", "fp16", "--phase", "decode",
                             "--context", 512, "--batch", 8)
        moved = said["traffic_bytes"]
        self.assertEqual(moved["kv_read"], 8 * 512 * 16 * 2 * 8 * 64 * 2)
        self.assertEqual(moved["kv_written"], moved["kv_read"] / 512)
        self.assertAlmostEqual(sum(moved.values()) / said["bytes"], 1)
        self.assertEqual(moved["link"], 0)

    def test_longer_context_costs_more(self):
        costs = [self.step(context)["energy_j"]["total"] for context in (1, 100, 1000)]
        self.assertEqual(costs, sorted(costs))
        caches = [self.step(context)["memory_bytes"]["kv_cache"] for context in (99, 999)]
        self.assertEqual(caches[1] - caches[0], 900 * 2 * 12 * 768 * 2)  # keys, values; layers; fp16

    def test_batching_reduces_energy_per_token(self):
        alone, together = (self.request(64, 32, "--batch", str(b))["each"]["energy_j"]
                           for b in (1, 16))
        self.assertLess(together, alone / 4)


# ---- many ----

class Sweeps(EstimateTest):
    def points(self, *arguments, code=0):
        return self.estimate("resnet18", *arguments, code=code)["points"]

    def test_every_combination_equals_single_estimate(self):
        points = self.points("--hardware", f"{GPU},l4", "--precision", "fp32,fp16", "--batch", "1,8")
        found = {(p["hardware"], p["precision"], p["batch"]) for p in points}
        self.assertEqual((len(points), len(found)), (8, 8))
        for point in points:
            alone = self.on(point["hardware"], "resnet18", "--precision", point["precision"],
                            "--batch", str(point["batch"]))
            alone["memory_bytes"]["timeline"] = None  # of one alone
            for key in ("energy_j", "latency_s", "memory_bytes", "each", "bound_counts"):
                self.assertEqual(point[key], alone[key])

    def test_batch_ranges(self):
        for word, batches in (("1..4", [1, 2, 3, 4]), ("2..20x3", [2, 6, 18]),
                              ("7,1..2", [1, 2, 7])):
            points = self.points("--hardware", GPU, "--batch", word)
            self.assertEqual(sorted(p["batch"] for p in points), batches)

    def test_pareto_frontier_and_order(self):
        points = self.points("--hardware", f"{GPU},l4,t4,tpu-v4,xeon-8490h", "--sweep")
        self.assertGreater(len(points), 100)
        figures = [(p["each"]["energy_j"], p["latency_s"]) for p in points]
        self.assertEqual([e for e, _ in figures], sorted(e for e, _ in figures))

        def is_dominated(mine):
            return any(e <= mine[0] and t <= mine[1] and (e, t) != mine for e, t in figures)
        self.assertEqual([p["frontier"] for p in points], [not is_dominated(f) for f in figures])

    def test_compare_covers_whole_catalog(self):
        listed = json.loads(ipw(None, "list", "hardware", "--json").stdout)["hardware"]
        names = {row["id"] if "id" in row else row["name"] for row in listed}
        self.assertEqual({p["hardware"] for p in self.points("--compare")}, names)

    def test_points_that_do_not_fit_are_not_on_frontier(self):
        small = self.device(memories=[{**ROUND["memories"][0], "capacity": figure(40, "mib")}])
        points = self.points("--hardware-file", small, "--batch", "1,64,4096")
        self.assertEqual([(p["batch"], p["fits"]) for p in points][0], (1, True))
        self.assertFalse(any(p["frontier"] for p in points if not p["fits"]))
        self.assertIn(False, [p["fits"] for p in points])


# ---- recommendations ----

class Recommendations(EstimateTest):
    def estimate_with(self, model, before, proposal):
        """The estimate with the recommended change."""
        words, given = proposal["options"].split(), list(before)
        for option in words[::2]:
            if option in given:
                at = given.index(option)
                given[at:at + 2] = []
        return self.estimate(model, *given, *words)

    def check_all(self, model, *before):
        """Checks each recommendation by its own estimate; returns the recommendations."""
        report = self.estimate(model, *before)
        savings = [p["saving"] for p in report["recommendations"]]
        self.assertEqual(savings, sorted(savings, reverse=True))
        for proposal in report["recommendations"]:
            with self.subTest(model=model, before=before, options=proposal["options"]):
                then = self.estimate_with(model, before, proposal)
                self.assertClose(then["each"]["energy_j"], proposal["energy_j"])
                self.assertClose(then["latency_s"], proposal["latency_s"])
                self.assertClose(then["memory_bytes"]["total_peak"], proposal["memory_bytes"])
                self.assertClose(report["each"]["energy_j"] - then["each"]["energy_j"],
                                 proposal["saved_j"], 1e-6)
                self.assertGreater(proposal["saving"], 0.02)
        return report["recommendations"]

    def test_recommendations_agree_with_their_estimates(self):
        kinds = set()
        for model, *before in (["resnet18", "--hardware", GPU, "--precision", "fp32"],
                               ["gpt2", "--hardware", "jetson-orin-nano-8gb"],
                               ["resnet18", "--hardware", GPU, "--tensor-parallel", "4"]):
            proposals = self.check_all(model, *before)
            self.assertTrue(proposals)
            kinds |= {p["kind"] for p in proposals}
        self.assertLessEqual({"batch", "precision", "hardware", "devices"}, kinds)

    def test_recommendations_hold_in_default_precision(self):
        """The default may differ on the recommended device."""
        count = 0
        for hardware in ("epyc-7742", "xeon-8180", "altra-q80-30", "tpu-v4", "hailo-8"):
            for model in ("mobilenet_v2", GGUF):
                if hardware == "hailo-8" and model == GGUF:
                    continue  # more than fits
                for proposal in self.check_all(model, "--hardware", hardware):
                    words = proposal["options"].split()
                    count += proposal["kind"] == "hardware" and "--precision" in words
        self.assertGreater(count, 2)

    def test_recommended_precisions_are_supported(self):
        """Those of the hardware file, and int4, for which the text says how it is computed."""
        said = 0
        for hardware in (GPU, "v100-sxm2-32gb", "apple-m3", "b200"):
            device = json.loads((SOURCE / "data" / "hardware" / f"{hardware}.json").read_text())
            formats = set(device.get("matrix", {})) | set(device["vector"])
            for model, *more in (["bert-base-uncased"], ["gpt2"],
                                 ["llama-3.2-1b", "--phase", "decode"]):
                report = self.on(hardware, model, *more)
                for proposal in report["recommendations"]:
                    if proposal["kind"] != "precision":
                        continue
                    precision = proposal["options"].split()[1]
                    if precision in formats:
                        self.assertEqual(proposal["note"], "answers may change")
                        continue
                    self.assertEqual(precision, "int4", hardware)
                    then = self.on(hardware, model, *more, "--precision", "int4")
                    self.assertIn(f"weights only, computed in {then['setting']['computed_in']};",
                                  proposal["note"])
                    said += 1
                for own in formats & {"int4", "fp4"}:
                    then = self.on(hardware, model, *more, "--precision", own)["each"]["energy_j"]
                    ratio = then / report["each"]["energy_j"]
                    if 1 - ratio > ratio * math.hypot(0.25, 0.25):  # more than the error of the model
                        self.assertIn(f"--precision {own}",
                                      [p["options"] for p in report["recommendations"]])
        self.assertGreater(said, 3)
        for runtime, used in (("ideal", "int8"), ("vllm", "fp16")):  # vLLM converts weights, whatever the device has
            text = self.run_ipw("--model", "llama-3.2-1b", "--hardware", "h200", "--runtime", runtime).stdout
            self.assertIn(f"--precision int4: weights only, computed in {used};", text)

    def test_saving_within_its_error_is_not_recommended(self):
        """Errors of two devices add up; those of one device cancel, except for what differs between settings."""
        words = ("llama-3.1-8b", "--phase", "decode")
        now = self.on("h100-sxm", *words)
        listed = {p["options"]: p for p in now["recommendations"]}
        unsure = 0
        for point in self.estimate(*words, "--hardware", "all", "--precision", "fp16")["points"]:
            if point["missing"] or not point["fits"] or point["hardware"] == "h100-sxm":
                continue
            relative = [math.hypot(0.25, each["plus_minus"] / each["energy_j"])
                        for each in (now["each"], point["each"])]
            ratio = point["each"]["energy_j"] / now["each"]["energy_j"]
            if 1 - ratio <= ratio * math.hypot(*relative):
                self.assertNotIn(f"--hardware {point['hardware']}", listed)
                unsure += 1 - ratio > 0.02
        self.assertGreater(unsure, 1)
        self.assertGreater(now["recommendations_unsure"], 1)
        for proposal in listed.values():
            self.assertGreater(proposal["saving"], proposal["saving_plus_minus"])
        batch = listed["--batch 2"]  # a few percent of the same kernels on the same device
        self.assertLess(batch["saving_plus_minus"], 0.06)
        text = self.run_ipw("--model", *words, "--hardware", "h100-sxm").stdout
        self.assertIn(f"; {now['recommendations_unsure']} more changes save less than their uncertainty\n", text)
        self.assertRegex(text, r"--batch 2 +\d+ ± \d %")

    def test_larger_batch_is_recommended_beyond_error_only(self):
        """A saving of 4 % is within the error; at twice the batch it is 6 % and beyond it."""
        batches = {p["options"] for p in self.on("h200", "resnet50", "--no-fusion", "--batch", "32")
                   ["recommendations"] if p["kind"] == "batch"}
        self.assertEqual(batches, {"--batch 128"})

    def test_fusion_is_recommended(self):
        report = self.on(GPU, "resnet18", "--no-fusion")
        saved = [p for p in report["recommendations"] if p["kind"] == "fusion"]
        self.assertEqual(len(saved), 1)
        self.assertClose(saved[0]["energy_j"], self.on(GPU, "resnet18")["each"]["energy_j"])

    def test_recommendations_keep_limits(self):
        free = self.on(GPU, "resnet18")
        limit = 1.2e3 * free["latency_s"]
        held = self.on(GPU, "resnet18", "--max-latency-ms", str(limit))
        self.assertTrue(any(p["latency_s"] > limit / 1e3 for p in free["recommendations"]))
        self.assertFalse(any(p["latency_s"] > limit / 1e3 for p in held["recommendations"]))

    def test_recommendations_that_restore_a_limit_come_first(self):
        """The largest smaller batch that meets the limit, found by trying all; verdicts are checked by their own
        estimates."""
        for model, before, limit in (
                ("resnet50", ["--hardware", "l4", "--batch", "64"], ["--max-latency-ms", "5"]),
                ("gpt2", ["--hardware", GPU, "--batch", "48", "--phase", "decode"],
                 ["--max-power-w", "210"]),
                ("resnet18", ["--hardware", "t4", "--batch", "1"], ["--max-energy-j", "0.008"])):
            report = self.estimate(model, *before, *limit, code=1)
            proposals = report["recommendations"]
            held = [p["limits"] for p in proposals]
            self.assertEqual(held, sorted(held, reverse=True))
            self.assertEqual(held[0], "PASS")
            for proposal in proposals:
                code = 0 if proposal["limits"] == "PASS" else 1
                words, given = proposal["options"].split(), [*before, *limit]
                if words[0] in given:
                    given[given.index(words[0]):given.index(words[0]) + 2] = []
                then = self.estimate(model, *given, *words, code=code)
                self.assertEqual(then["budget"]["verdict"], proposal["limits"])
                self.assertClose(then["latency_s"], proposal["latency_s"])
            now = int(before[3])
            rest = [w for w in before if w not in ("--batch", before[3])]
            kept = {p["batch"] for p in self.estimate(
                model, *rest, "--batch", "1..64", *limit, code=None)["points"]
                if p["budget"]["verdict"] == "PASS"}
            batches = {int(p["options"].split()[1]) for p in proposals
                       if p["kind"] == "batch" and p["limits"] == "PASS"}
            smaller = {b for b in kept if b < now}
            self.assertEqual({b for b in batches if b < now}, {max(smaller)} if smaller else set())
            if any(2 ** k in kept for k in range(7) if 2 ** k > now):
                self.assertTrue(any(b > now for b in batches))

    def test_smaller_batch_is_recommended_if_batch_does_not_fit(self):
        small = self.device(memories=[{**ROUND["memories"][0], "capacity": figure(128, "mib")}])
        words = ["--hardware-file", small, "--max-latency-ms", "1e6"]
        report = self.estimate("resnet18", "--batch", "512", *words, code=1)
        batch, = (p for p in report["recommendations"] if p["kind"] == "batch")
        self.assertEqual(batch["limits"], "PASS")
        most = int(batch["options"].split()[1])
        self.assertTrue(self.estimate("resnet18", "--batch", str(most), *words)["fits"])
        self.assertFalse(self.estimate("resnet18", "--batch", str(most + 1), *words, code=1)["fits"])

    def test_text_states_whether_recommendations_meet_limits(self):
        words = ["--model", "resnet50", "--hardware", "l4", "--batch", "64", "--max-latency-ms", "5"]
        text = self.run_ipw(*words, code=1).stdout
        self.assertRegex(text, r"to meet the limits .* limits\n")
        self.assertRegex(text, r"--batch \d+ .* PASS\n")
        self.assertRegex(self.run_ipw(*words, "--format", "md", code=1).stdout,
                         r"\| --batch \d+ \|.*\| PASS \|\n")
        free = self.on("l4", "resnet50", "--batch", "64")
        self.assertEqual({p["limits"] for p in free["recommendations"]}, {None})

    def test_no_recommendation_without_saving(self):
        """A device without idle power, overhead and other precisions gains nothing from batching."""
        lazy = self.device(id="lazy", **{"class": "npu"}, launch=figure(1e-9, "us"),
                           power={"limit": figure(200, "w"), "idle": figure(1e-9, "w")})
        report = self.estimate("vgg11", "--hardware-file", lazy, "--batch", "512", "--precision", "int4")
        self.assertEqual([p for p in report["recommendations"] if p["kind"] in ("batch", "precision")],
                         [])
        words = ["--model", "vgg11", "--hardware-file", lazy, "--precision", "int4",
                 "--batch", "512"]
        self.assertIn("that fits saves 2 %", self.run_ipw(*words).stdout)
        self.assertIn("that fits meets the limits",
                      self.run_ipw(*words, "--max-latency-ms", "1e-6", code=1).stdout)


# ---- limits ----

class Limits(EstimateTest):
    def test_limits_pass_and_fail(self):
        report = self.on(GPU, "resnet18")
        self.assertIsNone(report["budget"])
        values = {"--max-latency-ms": 1e3 * report["latency_s"],
                  "--max-energy-j": report["each"]["energy_j"],
                  "--max-memory-gb": report["memory_bytes"]["total_peak"] / 1e9,
                  "--max-power-w": report["power_w"]["average"]}
        for option, value in values.items():
            for factor, code, verdict in ((2, 0, "PASS"), (0.5, 1, "FAIL")):
                held = self.on(GPU, "resnet18", option, str(factor * value), code=code)["budget"]
                self.assertEqual(held["verdict"], verdict)
                self.assertEqual([c["verdict"] for c in held["checks"]], [verdict])
                self.assertClose(held["checks"][0]["margin"], 1 - 1 / factor, 1e-6)

    def test_verdict_near_a_limit_is_unsure(self):
        value = 1.01e3 * self.on(GPU, "resnet18")["latency_s"]
        check, = self.on(GPU, "resnet18", "--max-latency-ms", str(value))["budget"]["checks"]
        self.assertEqual((check["verdict"], check["sure"]), ("PASS", False))

    def test_one_of_several_devices_must_pass(self):
        latency = {h: self.on(h, "resnet18")["latency_s"] for h in (GPU, "t4")}
        between = 1e3 * sum(latency.values()) / 2
        for limit, code in ((between, 0), (1e3 * min(latency.values()) / 2, 1)):
            points = self.estimate("resnet18", "--hardware", f"{GPU},t4", "--max-latency-ms",
                                   str(limit), code=code)["points"]
            for point in points:
                held = latency[point["hardware"]] <= limit / 1e3
                self.assertEqual(point["budget"]["verdict"], "PASS" if held else "FAIL")

    def test_devices_within_the_limits_come_first(self):
        """The cheapest device may be too slow: the headline is the cheapest of those within the limits."""
        free = [(p["hardware"], p["latency_s"]) for p in self.estimate("resnet18", "--compare")["points"]
                if not p["missing"] and p["fits"] and p["energy_j"]["total"]]
        limit = 0.9e3 * free[0][1]  # excludes the cheapest
        words = ("--model", "resnet18", "--compare", "--max-latency-ms", str(limit))
        points = [p for p in json.loads(self.run_ipw(*words, "--json").stdout)["points"] if not p["missing"]]
        verdicts = [p["budget"]["verdict"] for p in points]
        self.assertEqual(verdicts, sorted(verdicts, key=("PASS", "UNKNOWN", "FAIL").index))
        passing = [p["each"]["energy_j"] for p in points if p["budget"]["verdict"] == "PASS" and p["each"]["energy_j"]]
        self.assertEqual(passing, sorted(passing))
        self.assertTrue(1 < len(passing) < len(free))
        text = self.run_ipw(*words).stdout
        self.assertIn(f"lowest within the limits: ~", text.splitlines()[1])
        self.assertIn(f"({points[0]['hardware']}, ", text.splitlines()[1])
        self.assertEqual(next(csv.DictReader(io.StringIO(self.run_ipw(*words, "--format", "csv").stdout)))["limits"], "PASS")

    def test_no_device_within_the_limits_is_stated_first(self):
        text = self.run_ipw("--model", "resnet18", "--compare", "--max-latency-ms", "1e-6", code=1).stdout
        self.assertRegex(text.splitlines()[1], r"^ resnet18, ideal \(lower bound\): none of \d+ estimates meets the limits$")
        self.assertIn("lowest: ~", text.splitlines()[2])
        words = ("--model", "gpt2", "--phase", "prefill", "--hardware", f"{GPU},t4", "--prompt-tokens", "16,1000")
        slowest = max(p["latency_s"] for p in json.loads(self.run_ipw(*words, "--json").stdout)["points"]
                      if p["setting"]["prompt_tokens"] == 16)
        fastest = min(p["latency_s"] for p in json.loads(self.run_ipw(*words, "--json").stdout)["points"]
                      if p["setting"]["prompt_tokens"] == 1000)
        self.assertLess(slowest, fastest)
        text = self.run_ipw(*words, "--max-latency-ms", str(500 * (slowest + fastest)), code=1).stdout
        self.assertIn("no estimate meets the limits for 1 of 2 prompts", text.splitlines()[1])

    def test_energy_limit_applies_per_request(self):
        report = self.on(GPU, "gpt2", "--batch", "4")
        joules = report["request"]["energy_j"]
        self.on(GPU, "gpt2", "--batch", "4", "--max-energy-j", str(1.001 * joules))
        self.on(GPU, "gpt2", "--batch", "4", "--max-energy-j", str(0.999 * joules), code=1)

    def test_model_too_large_is_reported_and_estimated(self):
        small = self.device(memories=[{**ROUND["memories"][0], "capacity": figure(128, "mib")}])
        words = ["--model", "gpt2", "--hardware-file", small]
        text = self.run_ipw(*words).stdout
        self.assertRegex(text, r"EXCEEDS DEVICE MEMORY; fits with --tensor-parallel (\d+)")
        devices = re.search(r"--tensor-parallel (\d+)", text).group(1)
        self.assertTrue(self.estimate(*words[1:], "--tensor-parallel", devices)["fits"])
        report = self.estimate(*words[1:])
        self.assertFalse(report["fits"])
        self.assertGreater(report["energy_j"]["total"], 0)
        self.run_ipw(*words, "--max-memory-gb", "0.128", code=1)

    def test_model_too_large_for_all_devices_is_estimated(self):
        """Also on devices without a link, since tensor parallelism was not requested."""
        catalogue = json.loads(ipw(None, "list", "hardware", "--json").stdout)["hardware"]
        words = ["llama-3.1-405b", "--phase", "decode", "--context", "64"]
        for device in catalogue[::12]:
            with self.subTest(device=device["id"]):
                report = self.on(device["id"], *words)
                memory = report["memory_bytes"]
                self.assertGreater(memory["total_peak"], 4.05e11)  # as many elements of one or two bytes
                fits = memory["capacity"] and memory["total_peak"] <= memory["capacity"]
                self.assertEqual(report["fits"], fits)
                self.assertGreater(report["latency_s"], 0)
        for changes in ({"link": None}, {}):
            device = self.device(**changes)
            if "link" in changes:
                device.write_text(json.dumps({k: v for k, v in ROUND.items() if k != "link"}))
            text = self.run_ipw("--model", *words, "--hardware-file", device).stdout
            self.assertIn("EXCEEDS DEVICE MEMORY", text)
            self.assertEqual("fits with --tensor-parallel" in text, "link" not in changes)

    def test_model_that_does_not_fit_fails_limits(self):
        words = ["llama-3.1-70b", "--phase", "decode", "--max-latency-ms", "1e9"]
        report = self.on("l4", *words, code=1)
        memory, budget = report["memory_bytes"], report["budget"]
        self.assertEqual(budget["verdict"], "FAIL")
        self.assertEqual([(c["limit"], c["verdict"]) for c in budget["checks"]],
                         [("latency", "PASS"), ("fit", "FAIL")])
        self.assertEqual(budget["checks"][1]["left"], memory["capacity"] - memory["total_peak"])
        self.assertRegex(self.run_ipw("--model", *words, "--hardware", "l4", code=1).stdout,
                         r"FAIL +fit +141\.?\d* GB, capacity 2[45]\.?\d* GB: exceeds device memory by 11\d\.?\d* GB")
        for hardware, code, verdicts in (("l4,t4", 1, ["FAIL", "FAIL"]),
                                         ("l4,mi300x", 0, ["PASS", "FAIL"])):
            points = self.on(hardware, *words, code=code)["points"]
            self.assertEqual([p["budget"]["verdict"] for p in points], verdicts)
            table = self.run_ipw("--model", *words, "--hardware", hardware, code=code).stdout
            self.assertEqual(table.count("FAIL"), verdicts.count("FAIL"))

    def test_on_chip_memory_holds_small_models_only(self):
        """As the vendor's compiler does: ResNet-50 fits, a model with twice as many weights is split."""
        for hardware, small, large in (("hailo-8", "resnet50", "resnet101"),
                                       ("coral-edge-tpu", "mobilenet_v2", "resnet18")):
            self.assertIs(self.on(hardware, small, "--precision", "int8")["fits"], True)
            report = self.on(hardware, large, "--precision", "int8")
            self.assertIs(report["fits"], False)
            self.assertGreater(report["params"], report["memory_bytes"]["capacity"])


# ---- unknown energy ----

class UnknownEnergy(EstimateTest):
    """Devices without idle power or energy per operation: energy and power are unknown."""

    def devices(self):
        dumb = {unit: {name: {"peak": row["peak"]} for name, row in ROUND[unit].items()}
                for unit in ("matrix", "vector")}
        memory = {k: v for k, v in ROUND["memories"][0].items() if k != "energy"}
        yield self.device(power={"limit": ROUND["power"]["limit"]})
        yield self.device(**dumb, memories=[memory])

    def test_unknown_energy_is_null_everywhere(self):
        for device in self.devices():
            for model in ("resnet18", "gpt2"):
                words = ["--hardware-file", device, "--max-energy-j", "0.005"]
                report = self.estimate(model, *words, code=1)
                for value in (report["power_w"]["average"], report["power_w"]["peak"],
                              report["power_w"]["plus_minus"], report["energy_j"]["total"],
                              report["each"]["energy_j"]):
                    self.assertIsNone(value)
                check, = report["budget"]["checks"]
                self.assertEqual((check["verdict"], check["value"], check["left"], check["sure"]),
                                 ("UNKNOWN", None, None, False))
                self.assertEqual(report["budget"]["verdict"], "UNKNOWN")
                points = self.estimate(model, *words, "--batch", "1,2", code=1)["points"]
                self.assertEqual([p["budget"]["verdict"] for p in points], ["UNKNOWN"] * 2)

    def test_unknown_energy_is_dash_in_text_and_empty_in_csv(self):
        for device in self.devices():
            words = ["--model", "gpt2", "--hardware-file", device, "--max-power-w", "100"]
            for more in ([], ["--batch", "1,2"], ["--format", "md"],
                         ["--batch", "1,2", "--format", "md"]):
                text = self.run_ipw(*words, *more, code=1).stdout
                self.assertNotRegex(text, r"nan|~0\.0|~-|~ W")
                self.assertIn("UNKNOWN", text)
            self.assertIn("No recommendations: figures", self.run_ipw(*words[:-2]).stdout)
            for more in ("1", "1,2"):
                lines = self.run_ipw(*words, "--batch", more, "--format", "csv", code=1).stdout
                for row in csv.DictReader(io.StringIO(lines)):
                    self.assertEqual({row[k] for k in ("energy_j", "average_w", "peak_w")}, {""})
                    self.assertEqual(row["limits"], "UNKNOWN")

    def test_unknown_energy_is_not_plotted(self):
        for device in self.devices():
            for more in ([], ["--batch", "1,2"]):
                done = self.run_ipw("--model", "resnet18", "--hardware-file", device, *more, "--plot",
                                    self.root / "a.png", code=1)
                self.assertRegex(done.stderr, r"known.*: nothing to plot\n$")
                self.assertFalse((self.root / "a.png").exists())

    def test_unknown_energy_sorts_last(self):
        """A device without energy figures is listed after the others."""
        for device in self.devices():
            points = self.estimate("resnet18", "--hardware", "t4,l4", "--hardware-file", device,
                                   "--batch", "1,2")["points"]
            joules = [p["each"]["energy_j"] for p in points]
            self.assertEqual(joules, sorted(filter(None, joules)) + [None, None])
            self.assertFalse(any(p["frontier"] for p in points[-2:]))


# ---- several devices ----

# Every token uses the shared expert and 2 of 4 others, in both layers.
EXPERTS = {"architectures": ["Qwen2MoeForCausalLM"], "model_type": "qwen2_moe", "num_hidden_layers": 2,
           "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
           "intermediate_size": 96, "vocab_size": 32, "max_position_embeddings": 512,
           "hidden_act": "silu", "tie_word_embeddings": False, "num_experts": 4,
           "num_experts_per_tok": 2, "moe_intermediate_size": 24,
           "shared_expert_intermediate_size": 40, "decoder_sparse_step": 1}


class TensorParallelism(EstimateTest):
    def test_convolutions_are_replicated(self):
        """Devices only divide the classifier of ResNet-152, 2048 x 1000 of 11.51 G MACs: this is reported, and
        replicated work is counted on each device."""
        words = ["--model", "resnet152", "--hardware", "t4", "--tensor-parallel", "64"]
        done = self.run_ipw(*words)
        self.assertIn("over 64 devices is inefficient for resnet152: 0.018 % of its MACs split", done.stderr)
        self.assertIn("tensor parallel over 64 devices: < 0.1 % of MACs split, rest replicated", done.stdout)
        self.assertIn("over 64 devices: < 0.1 % of MACs split", self.run_ipw(*words, "--batch", "1,2").stdout)
        one, many = self.on("t4", "resnet152"), self.estimate(*words[1:])
        self.assertIsNone(one["setting"]["divided"])
        self.assertClose(many["setting"]["divided"], 2048 * 1000 / one["macs"], 1e-6)
        self.assertClose(many["macs"], 64 * (one["macs"] - 2048000) + 2048000, 1e-6)
        self.assertClose(many["flops"], 64 * one["flops"], 1e-3)
        self.assertGreater(many["bytes"], 62 * one["bytes"])
        self.assertClose(64 * many["mfu"] * many["latency_s"], one["mfu"] * one["latency_s"], 1e-6)

    def test_refuses_model_that_cannot_be_divided(self):
        done = self.run_ipw("--model", "squeezenet1_1", "--hardware", "t4", "--tensor-parallel", "2", code=1)
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertIn("squeezenet1_1: tensor parallelism divides none of it",
                      done.stderr)

    def test_decoder_is_divided(self):
        for model in ("llama-3.2-1b", "gpt2", "gemma-2-2b", "phi-2", "bert-base-uncased"):
            phase = [] if model.startswith("bert") else ["--phase", "prefill"]
            words = [model, *phase, "--prompt-tokens", "64"]
            report = self.on(GPU, *words, "--tensor-parallel", "4")
            self.assertEqual(report["setting"]["divided"], 1, model)
            one = self.on(GPU, *words)
            self.assertClose(report["macs"], one["macs"])
            self.assertLess(report["bytes"], 2 * one["bytes"])

    def test_device_count_must_divide_heads(self):
        """As in frameworks, the device count must divide the query heads; KV heads are replicated."""
        words = ["--model", "llama-3.1-8b", "--hardware", "h100-sxm", "--phase", "decode", "--context", "64"]
        for devices in ("3", "5", "6", "7", "64"):
            done = self.run_ipw(*words, "--tensor-parallel", devices, code=1)
            self.assertIn(f"llama-3.1-8b: {devices} devices do not divide its 32 attention heads", done.stderr)
        for devices, warned in (("1", False), ("8", False), ("16", True)):
            done = self.run_ipw(*words, "--tensor-parallel", devices)
            self.assertEqual("16 devices replicate them" in done.stderr, warned, devices)
        done = self.run_ipw("--model", "phi-4", "--hardware", "h100-sxm", "--phase", "decode", "--context", "64",
                            "--tensor-parallel", "4")
        self.assertIn("phi-4 has 10 KV heads: 4 devices do not divide them", done.stderr)

    def test_more_devices_than_the_link_joins_are_reported(self):
        """An HGX board joins 8 H200; a hardware file without peers has no limit."""
        step = ("--phase", "decode", "--context", "64")
        for devices, warned in ((8, False), (16, True), (32, True)):
            done = self.run_ipw("--model", "llama-3.1-405b", "--hardware", "h200", "--tensor-parallel", devices, *step)
            self.assertEqual(f"its link connects at most 8 devices: the network that {devices} need" in done.stderr, warned, done.stderr)
        done = self.run_ipw("--model", "llama-3.1-405b", "--hardware-file", self.device(), "--tensor-parallel", "16", *step)
        self.assertNotIn("its link connects", done.stderr)

    def test_mamba_is_divided_by_its_inner_size(self):
        path = self.root / "config.json"
        path.write_text(json.dumps({"model_type": "mamba", "hidden_size": 768, "num_hidden_layers": 2,
                                    "vocab_size": 50280, "state_size": 16}))
        done = self.run_ipw("--model", path, "--hardware", "h200", "--tensor-parallel", "7", code=1)
        self.assertIn("7 devices do not divide the 1536 features of its scans", done.stderr)
        self.on("h200", path, "--tensor-parallel", "8")

    def test_all_reduce_time_depends_on_link(self):
        """A token of Llama-2-70B needs 160 all-reduces of 16 kB: over NVLink each takes two latencies of a one-shot
        kernel for any number of devices, over PCIe as many as the ring has steps."""
        def links(hardware, devices):
            report = self.on(hardware, "llama-2-70b", "--phase", "decode", "--context", "64", "--precision", "fp16",
                             "--tensor-parallel", str(devices), "--top", "0")
            figures = {row["name"]: row["value"] for row in report["hardware_figures"]}
            return report["latency_s"], figures["link_latency"]
        for devices in (2, 8):
            switched, latency = links("a100-sxm-80gb", devices)
            bus, step = links("a100-pcie-80gb", devices)
            least, most = 160 * 2 * latency, 160 * 2 * (devices - 1) * step
            self.assertGreater(switched, least)
            self.assertGreater(bus, most)
            self.assertLess(switched, bus)

    def test_moe_router_is_replicated(self):
        """Mixtral: 4096 x 8 elements per layer, 32 layers."""
        words = ["mixtral-8x7b", "--phase", "decode", "--context", "64"]
        one, two = self.on("h200", *words), self.on("h200", *words, "--tensor-parallel", "2")
        self.assertClose(two["macs"] - one["macs"], 32 * 4096 * 8, 1e-6)
        self.assertClose(two["setting"]["divided"], 1 - 32 * 4096 * 8 / one["macs"])

    def test_work_of_all_devices_is_that_of_one_plus_replicas(self):
        """MACs of eight devices are those of one plus seven times the replicated ones: MoE routers, and the two
        compression matrices of DeepSeek V3, which vLLM also replicates.  Matrices by heads are divided."""
        layers, hidden = 61, 7168
        compressed = layers * hidden * (1536 + 512 + 64)
        routed = (layers - 3) * hidden * 256
        for name, repeated in (("llama-3.1-8b", 0), ("gpt2", 0), ("mixtral-8x7b", 32 * 4096 * 8),
                               ("deepseek-v3", compressed + routed), ("mamba-130m", 0)):
            model = RECORDED[name] if name in RECORDED else name
            if isinstance(model, dict):
                folder = self.root / name
                folder.mkdir()
                (folder / "config.json").write_text(json.dumps(model["config"]))
                model = folder / "config.json"
            heads = 4 if name == "gpt2" else 8
            for phase in (["--phase", "decode", "--context", "100"], ["--phase", "prefill", "--prompt-tokens", "10"]):
                tokens = 10 if "prefill" in phase else 1
                # Kernels by which operators are fused do not change what is divided.
                for mode in ([], ["--no-fusion"]) if name in ("gpt2", "mixtral-8x7b") else ([],):
                    words = [model, "--hardware", "h200", "--precision", "fp8", *phase, *mode]
                    one, many = self.estimate(*words), self.estimate(*words, "--tensor-parallel", str(heads))
                    with self.subTest(name, phase=phase, mode=mode):
                        self.assertEqual(many["macs"], one["macs"] + (heads - 1) * tokens * repeated)
                        self.assertClose(many["setting"]["divided"], 1 - tokens * repeated / one["macs"])
                        cached = [report["memory_bytes"]["kv_cache"] for report in (one, many)]
                        kept = {"deepseek-v3": 1}.get(name, heads)
                        self.assertClose(cached[0], kept * cached[1])

    def test_selective_scan_runs_on_vector_units(self):
        """A selective scan is not a matrix product: 8 operations and a multiplication per element of its state, at an
        assumed quarter of the fp32 vector peak, so half of its time and energy is uncertainty."""
        (self.root / "config.json").write_text(json.dumps(RECORDED["mamba-130m"]["config"]))
        vector = json.loads((SOURCE / "data/hardware/h200.json").read_text())["vector"]["fp32"]["peak"]["value"] * 1e12

        def scan(tokens):
            report = self.on("h200", self.root / "config.json", "--phase", "prefill", "--prompt-tokens", str(tokens),
                             "--runtime", "vllm", "--precision", "fp16", "--top", "0")
            rows = [row for row in report["subgraphs"] if row["name"].endswith("selective_scan")]
            self.assertEqual(len(rows), 24)
            return report, rows[0]["latency_s"]
        (_, short), (report, long) = scan(8192), scan(16384)
        self.assertClose(long - short, 8192 * 1536 * 16 * 10 / (vector / 4), 0.03)
        self.assertGreater(report["latency_plus_minus"], 0.5 * 24 * long)

    def test_activations_between_matrices_are_divided(self):
        """Residual stream and norms are replicated, feed-forward columns are divided, so larger batches fit."""
        for devices in (1, 2, 4, 8, 16):
            report = self.on("h100-sxm", "llama-3.1-8b", "--tensor-parallel", str(devices), "--phase",
                             "prefill", "--prompt-tokens", "2048", "--precision", "fp16")
            memory = report["memory_bytes"]
            self.assertEqual(memory["activations_peak"], 2 * 2048 * (2 * 4096 + 14336 / devices))
            cache = 2 * 2 * 32 * 2048 * 1024 / min(devices, 8)
            self.assertEqual(memory["kv_cache"], cache)
            room = memory["capacity"] - memory["weights"]
            self.assertEqual(report["largest_batch"],
                             room // (memory["activations_peak"] + cache))

    def test_shared_expert_is_in_the_same_all_reduce(self):
        (self.root / "config.json").write_text(json.dumps(EXPERTS))
        report = self.estimate(self.root / "config.json", "--hardware-file", self.device(),
                               "--phase", "prefill", "--prompt-tokens", "100", "--tensor-parallel", "2",
                               "--precision", "fp16")
        # Two ring all-reduces per layer over two devices, in 16 bits; logits of the last token once.
        self.assertEqual(report["traffic_bytes"]["link"], 2 * (2 * 2 * 2 * 100 * 64 + 32))


# ---- output formats ----

class Formats(EstimateTest):
    def test_tables_fit_80_columns(self):
        for words in (["resnet18", "--hardware", GPU], ["gpt2", "--hardware", GPU], [GGUF, "--hardware", "l4"],
                      ["resnet18", "--compare"], ["gpt2", "--hardware", "l4", "--sweep"],
                      ["llama-3.1-8b", "--hardware", f"{GPU},h200", "--batch", "1,8", "--max-latency-ms", "9"],
                      ["resnet18", "--hardware", GPU, "--max-power-w", "1", "--max-latency-ms", "9"]):
            done = ipw(None, "estimate", "--model", *words)
            self.assertEqual(done.stderr, "")
            self.assertIn("not measured", done.stdout)
            self.assertNotIn("\033", done.stdout)
            for line in done.stdout.splitlines():
                self.assertLessEqual(len(line), 100, line)

    def test_every_energy_is_marked_as_estimated(self):
        text = self.run_ipw("--model", "gpt2", "--hardware", GPU, "--max-energy-j", "1e6").stdout
        joules = re.findall(r"(\S*?)([\d.]+(?: ± [\d.]+)? [mµk]?J)\b", text)
        self.assertGreater(len(joules), 20)
        self.assertEqual([before for before, figure in joules
                          if not before.startswith("~") and not figure.startswith("1.000 MJ")], [])

    def test_csv_of_points(self):
        text = self.run_ipw("--model", "resnet18", "--hardware", f"{GPU},l4", "--format", "csv").stdout
        rows = list(csv.DictReader(io.StringIO(text)))
        self.assertEqual([row["fits"] for row in rows], ["1", "1"])
        for row in rows:
            self.assertNotIn(None, row)
            report = self.on(row["hardware"], "resnet18")
            self.assertClose(float(row["energy_j"]), report["energy_j"]["total"], 1e-8)
            self.assertClose(float(row["total_peak_bytes"]), report["memory_bytes"]["total_peak"])
        one = self.run_ipw("--model", "resnet18", "--hardware", "l4", "--format", "csv").stdout
        self.assertEqual(next(csv.DictReader(io.StringIO(one)))["energy_j"],
                         next(row["energy_j"] for row in rows if row["hardware"] == "l4"))

    def test_kv_cache_is_that_of_last_token(self):
        """Llama 3.2 1B: K and V of 16 layers with 8 heads of 64, in 16 bits."""
        each = 2 * 16 * 8 * 64 * 2
        for batch, words in ((1, "of 639 tokens"), (4, "of 4 x 639 tokens")):
            asked = ("--hardware", "h200", "--prompt-tokens", "512", "--output-tokens", "128", "--batch", batch)
            memory = self.estimate("llama-3.2-1b", *asked)["memory_bytes"]
            self.assertEqual((memory["kv_cache"], memory["kv_cache_tokens"]), (batch * 639 * each, 639))
            self.assertEqual(memory["total_peak"], memory["weights"] + memory["activations_peak"] + memory["kv_cache"])
            self.assertRegex(self.run_ipw("--model", "llama-3.2-1b", *asked).stdout, rf"KV cache [\d.]+ MiB {words}\n")
        row, = self.rows("llama-3.2-1b", *asked)
        self.assertEqual(float(row["kv_cache_bytes"]), memory["kv_cache"])
        step = self.on("h200", "llama-3.2-1b", "--phase", "decode", "--context", "100")["memory_bytes"]
        self.assertEqual((step["kv_cache"], step["kv_cache_tokens"]), (100 * each, 100))
        self.assertIsNone(self.on("h200", "resnet18")["memory_bytes"]["kv_cache_tokens"])

    def test_tables_of_requests_have_ttft_and_tpot(self):
        """Compared with the JSON report of each point."""
        words = ("gpt2", "--hardware", f"{GPU},l4", "--batch", "1,8")
        for row in self.rows(*words):
            request = self.on(row["hardware"], "gpt2", "--batch", row["batch"])["request"]
            for key in ("first_token_s", "tpot_s", "tokens_per_s_per_user"):
                self.assertClose(float(row[key]), request[key], 1e-8)
        for form, titles in (("table", ("TTFT", "TPOT", "tokens/s")),
                             ("md", ("latency", "TTFT", "TPOT", "tok/s/user", "tokens/s", "power"))):
            head = next(line for line in self.run_ipw("--model", *words, "--format", form).stdout.splitlines()
                        if "hardware" in line and "per token" in line)
            for title in titles:
                self.assertIn(title, head)
        self.assertEqual(self.rows("gpt2", "--hardware", "l4", "--output-tokens", "1")[0]["tpot_s"], "")
        self.assertEqual(self.rows("resnet18", "--hardware", "l4")[0]["first_token_s"], "")
        self.assertNotIn("TTFT", self.run_ipw("--model", "resnet18", "--hardware", f"{GPU},l4").stdout)

    def test_csv_counts_are_exact(self):
        """Compared with the JSON report."""
        for model, *more in (["resnet50", "--batch", "64"], ["llama-3.1-8b", "--phase", "prefill"]):
            report = self.on("h200", model, *more)
            row, = self.rows(model, "--hardware", "h200", *more)
            for key in ("params", "macs", "flops", "bytes"):
                self.assertEqual(row[key], str(report[key]), key)
            parts = self.rows(model, "--hardware", "h200", *more, "-v")
            self.assertEqual(sum(int(part["flops"]) for part in parts), report["flops"])

    @unittest.skipUnless(ONNX.exists(), "ONNX's test models are not installed (libonnx-testdata)")
    def test_plurals_agree_with_numbers(self):
        relu = self.run_ipw("--model", ONNX / "test_relu/model.onnx", "--hardware", "h200").stdout
        self.assertIn(" 1 subgraph, bound by", relu)
        self.assertIn(" 1 sequential level, none with", relu)
        token = self.run_ipw("--model", "gpt2", "--hardware", "h200", "--phase", "decode",
                             "--max-energy-j", "1e6").stdout
        self.assertRegex(token, r"per output token, limit")
        for text in (relu, token):
            self.assertNotRegex(text, r"(?<![\d.])1 \w+s\b(?!/s)")

    def test_ideal_runtime_is_labeled_as_bound(self):
        for model, *options, says in (["resnet50", "took 1.2-2.9 times as long"],
                                      ["resnet50", "--no-fusion", "took 0.9-2.1 times as long"],
                                      ["gpt2", "the ± covers published figures of LLMs"]):
            words = ("--model", model, "--hardware", "h200", *options)
            basis = "ideal kernels without fusion" if options else "lower bound with ideal kernels"
            for more in ((), ("--batch", "1,8")):
                head = self.run_ipw(*words, *more).stdout.splitlines()[:4]
                self.assertTrue(any(basis in line and says in line for line in head), head)
                self.assertEqual(any("lower bound" in line for line in head), not options)
            report = json.loads(self.run_ipw(*words, "--json").stdout)
            self.assertEqual(report["basis"], basis)
            if model == "gpt2":
                self.assertIsNone(report["as_shipped_over_estimate"])
            else:
                least, most = report["as_shipped_over_estimate"]
                self.assertIn(f"took {least:.1f}-{most:.1f} times as long", says)

    def test_default_runtime(self):
        """Chosen by file, model type and device; stated in the first line with its evidence, and in JSON."""
        config = self.root / "config.json"
        config.write_text(json.dumps({"model_type": "bert", "vocab_size": 1000, "hidden_size": 64, "num_hidden_layers": 2,
                                      "num_attention_heads": 2, "intermediate_size": 128, "type_vocab_size": 2,
                                      "max_position_embeddings": 128}))
        for model, hardware, runtime, evidence in (
                ("resnet50", "h200", "pytorch-eager", "measured"), ("resnet50", "l4", "pytorch-eager", "derived"),
                (config, "a100-sxm-80gb", "pytorch-eager", "derived"), ("llama-3.2-1b", "h200", "vllm", None),
                ("llama-3.2-1b", "rtx-4090", "llama.cpp", None), ("llama-3.2-1b", "apple-m3", "llama.cpp", None),
                ("vit_b_16", "apple-m3", "onnxruntime", "assumed"), ("vit_b_16", "epyc-9654", "onnxruntime", None),
                ("llama-3.2-1b", "epyc-9654", "llama.cpp", None), (GGUF, "h200", "llama.cpp", None),
                (ONNX / "test_relu/model.onnx", "h200", "onnxruntime", "assumed"),
                ("resnet50", "jetson-orin-agx-64gb@30W", "tensorrt", "assumed"),
                ("resnet18", "tpu-v4", "ideal", None)):
            words = ("--model", model, "--hardware", hardware)
            setting = json.loads(ipw(None, "estimate", *words, "--json").stdout)["setting"]
            self.assertEqual((setting["runtime"], setting["runtime_is_default"]), (runtime, True), words)
            self.assertIn(setting["runtime_evidence"], (evidence,) if evidence else EVIDENCES)
            line = ipw(None, "estimate", *words).stdout.splitlines()[1]
            self.assertIn("ideal (lower bound)" if runtime == "ideal" else f"{runtime} ({setting['runtime_evidence']})", line)
        given = ipw(None, "estimate", *words, "--runtime", runtime, "--json")
        self.assertIs(json.loads(given.stdout)["setting"]["runtime_is_default"], False)

    def test_each_device_of_a_table_has_its_runtime(self):
        words = ("--model", "resnet18", "--hardware", "h200,epyc-9654,l4", "--batch", "1,4")
        rows = csv.DictReader(io.StringIO(ipw(None, "estimate", *words, "--format", "csv").stdout))
        for row in rows:
            self.assertEqual(row["runtime"], "onnxruntime" if row["hardware"] == "epyc-9654" else "pytorch-eager")
            alone = json.loads(ipw(None, "estimate", "--model", "resnet18", "--hardware", row["hardware"], "--batch",
                                   row["batch"], "--json").stdout)
            self.assertClose(float(row["latency_s"]), alone["latency_s"], 1e-6)
            self.assertClose(float(row["energy_j"]), alone["energy_j"]["total"], 1e-6)
        text = ipw(None, "estimate", *words).stdout
        self.assertRegex(text.splitlines()[1], "^ resnet18, usual runtimes: ")
        self.assertRegex(text, r"hardware +dtype +runtime ")

    def test_cuda_graph_is_recommended_if_launch_bound(self):
        """Recommended if the saving exceeds its ±, and equal to the estimate of that runtime."""
        def proposed(batch):
            report = json.loads(ipw(None, "estimate", "--model", "resnet50", "--hardware", "h200", "--batch", batch,
                                    "--json").stdout)
            return report, [p for p in report["recommendations"] if p["kind"] == "runtime"]
        report, found = proposed("1")
        self.assertEqual([p["options"] for p in found], ["--runtime pytorch-graph"])
        then = self.on("h200", "resnet50", "--runtime", "pytorch-graph")
        self.assertClose(1 - then["energy_j"]["total"] / report["energy_j"]["total"], found[0]["saving"])
        self.assertGreater(found[0]["saving"], found[0]["saving_plus_minus"])
        self.assertEqual(proposed("256")[1], [])

    def test_model_without_option_is_an_error(self):
        self.assertIn("unexpected argument 'resnet50': use --model for models",
                      self.run_ipw("resnet50", "--hardware", "h200", code=2).stderr)

    def test_first_line_is_the_result(self):
        for model, says in (("resnet50", r" resnet50 on NVIDIA H200 .*: ~\d+.* mJ per sample, \d+.* µs$"),
                            ("gpt2", r" gpt2 on .*: ~\d+.* mJ per output token, \d+.* ms per request$")):
            text = self.run_ipw("--model", model, "--hardware", "h200").stdout
            self.assertRegex(text.splitlines()[1], says)
            text = self.run_ipw("--model", model, "--hardware", "h200", "--format", "md").stdout
            self.assertRegex("  " + text.splitlines()[0].lstrip("#"), says)
        text = self.run_ipw("--model", "resnet50", "--hardware", "h200,l4", "--batch", "1,8").stdout
        self.assertRegex(text.splitlines()[1], r" resnet50, ideal \(lower bound\): lowest: ~19 mJ per sample \(h200, fp16, batch 8\)$")
        small = self.run_ipw("--model", "vgg11", "--hardware", "coral-edge-tpu").stdout
        self.assertIn("; EXCEEDS DEVICE MEMORY", small.splitlines()[1])

    def test_power_mode_is_in_heading(self):
        mode = "jetson-orin-agx-64gb@30W"
        for form, titles in (("table", ("TTFT", "TPOT", "tokens/s")),
                             ("md", ("latency", "TTFT", "TPOT", "tok/s/user", "tokens/s", "power"))):
            text = self.run_ipw("--model", "resnet18", "--hardware", mode, "--format", form).stdout
            self.assertRegex(text, r"resnet18 on NVIDIA Jetson AGX Orin 64GB@30W, ")

    def test_duplicate_device_is_reported(self):
        done = self.run_ipw("--model", "resnet18", "--hardware", "h100-sxm,l4,h100", "--format", "csv")
        self.assertEqual(done.stdout.count("h100-sxm"), 1)
        self.assertIn("h100-sxm given more than once", done.stderr)
        alone = self.run_ipw("--model", "resnet18", "--hardware", "l4,l4", "--json")
        self.assertEqual(json.loads(alone.stdout)["hardware"], "l4")

    def test_csv_of_subgraphs(self):
        text = self.run_ipw("--model", "resnet18", "--hardware", GPU, "--format", "csv", "-v").stdout
        rows, report = list(csv.DictReader(io.StringIO(text))), self.on(GPU, "resnet18")
        self.assertEqual([row["name"] for row in rows], [row["name"] for row in report["subgraphs"]])
        self.assertClose(sum(float(row["energy_j"]) for row in rows), report["energy_j"]["total"],
                         1e-6)

    def test_markdown_format(self):
        for hardware in (GPU, f"{GPU},l4"):
            text = self.run_ipw("--model", "resnet18", "--hardware", hardware, "--format", "md").stdout
            self.assertTrue(text.startswith("### resnet18"))
            tables = re.findall(r"(?:^\|.*\n)+", text, re.M)
            self.assertTrue(tables)
            for table in tables:
                self.assertEqual(len({line.count("|") for line in table.splitlines()}), 1, table)

    def test_output_format_follows_file_name(self):
        for name, begin in (("a.json", "{"), ("a.csv", "model,"), ("a.md", "###"), ("a.txt", "\n ")):
            done = self.run_ipw("--model", "resnet18", "--hardware", GPU, "-o", self.root / name)
            self.assertEqual(done.stdout, "")
            self.assertTrue((self.root / name).read_text().startswith(begin), name)
        self.run_ipw("--model", "resnet18", "--hardware", GPU, "-o", self.root / "no" / "a", code=1)

    def test_top_limits_consumers(self):
        shown = self.run_ipw("--model", "gpt2", "--hardware", GPU, "--top", "3").stdout
        block = shown.split("top consumers")[1].split("\n\n")[0].splitlines()
        self.assertEqual(len(block), 5)  # heading, three rows, count of the rest
        self.assertRegex("\n".join(block), r"transformer\.h\.\*\.mlp\.\w+ +x 12 ")
        everything = self.run_ipw("--model", "gpt2", "--hardware", GPU, "-v").stdout
        self.assertIn("transformer.h.11.mlp.c_fc", everything)
        self.assertRegex(everything, r"idle_power +[\d.]+ W +\w+ +\S")

    def test_graph_output(self):
        dot = self.run_ipw("--model", "resnet18", "--graph", "dot").stdout
        self.assertTrue(dot.startswith('digraph "resnet18" {'))
        nodes, edges = re.findall(r"^  (n\d+) \[", dot, re.M), re.findall(
            r'^  (\w+) -> (\w+) \[label="[\dx]+"\];', dot, re.M)
        self.assertEqual(len(nodes), len(set(nodes)))
        read = {end for _, end in edges if end.startswith("n")}
        self.assertEqual(read, set(nodes))  # each reads something
        adds = [n for n in re.findall(r"^  (n\d+) \[label=\"\S+add\\nadd", dot, re.M)]
        self.assertEqual(len(adds), 8)
        for node in adds:
            self.assertEqual(sum(end == node for _, end in edges), 2)
        mermaid = self.run_ipw("--model", "resnet18", "--graph", "mermaid").stdout
        self.assertTrue(mermaid.startswith("flowchart TD\n"))
        self.assertEqual(mermaid.count(" --> "), len(edges))


class Plots(EstimateTest):
    def draw(self, name, *arguments):
        self.run_ipw("--model", "resnet18", *arguments, "--plot", self.root / name)
        return (self.root / name).read_bytes()

    @unittest.skipUnless(shutil.which("gnuplot"), "gnuplot is not here")
    def test_plots_of_one_and_many_estimates(self):
        one = self.draw("a.svg", "--hardware", GPU).decode()
        for word in ("resnet18 on NVIDIA A100", "layer1.*.conv1", "static", "not measured"):
            self.assertIn(word, one)
        many = self.draw("b.svg", "--hardware", f"{GPU},l4", "--batch", "1..8x2").decode()
        for word in (GPU, "l4", "Pareto frontier", "8 settings"):
            self.assertIn(word, many)
        self.assertTrue(self.draw("c.png", "--hardware", GPU).startswith(b"\x89PNG"))

    def test_rejects_plot_name_without_image_suffix(self):
        for name in ("a.gif", "png", ".png"):
            self.assertIn(".png", self.refused("--model", "resnet18", "--hardware", GPU, "--plot",
                                               self.root / name))


# ---- the legacy model ----

class Legacy(EstimateTest):
    def legacy(self, model, device, *more):
        return self.run_ipw("--model", model, "--hardware-file", LEGACY / f"legacy-{device}-like.json",
                            "--model-compat", *more).stdout

    def assertShows(self, text, **lines):
        for name, shown in lines.items():
            self.assertRegex(text, rf"(?m)^   {name} +~?{re.escape(shown)}(?!\d)")

    def test_legacy_model_gives_published_figures(self):
        self.assertShows(self.legacy("resnet18", "a100"), energy="205.23 mJ", compute="72873 µJ",
                         memory="1170 µJ", static="131186 µJ", power="366.07 W", latency="0.56 ms",
                         efficiency="14.8 %", wasted="73028 µJ", subgraphs="68")
        self.assertShows(self.legacy("resnet18", "a100", "--precision", "fp16"), energy="814.88 mJ",
                         power="1962.57 W", latency="0.42 ms")
        self.assertShows(self.legacy("mobilenet_v2", "a100"), compute="12825 µJ", memory="1728 µJ",
                         static="204530 µJ", subgraphs="151")
        self.assertShows(self.legacy("resnet18", "jetson"), compute="364363 µJ", memory="5848 µJ",
                         static="296826 µJ", latency="3.30 ms", efficiency="21.1 %")

    def test_legacy_top_consumers(self):
        text = self.legacy("resnet18", "a100")
        self.assertRegex(text, r"top +conv1 +~8761 µJ")
        self.assertRegex(text, r" layer4.0.conv2 +~8665 µJ")

    def test_legacy_json(self):
        report = json.loads(self.legacy("resnet18", "a100", "--json"))
        self.assertLessEqual(Figures.KEYS, set(report))
        self.assertEqual((report["confidence"], report["flops"]), ("legacy", 3643625984))

    def test_legacy_model_needs_hardware_file(self):
        self.assertIn("--hardware-file", self.refused("--model", "resnet18", "--hardware", GPU,
                                                      "--model-compat"))


# ---- local hardware ----

class OwnDevice(MachineTest):
    def test_default_hardware_is_local_gpu(self):
        machine = self.machine(Nvidia, "devices 1\nname 0 NVIDIA H200\npower 0 constant 300")
        done = ipw(machine, "estimate", "--model", "resnet18", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["hardware"], "h200")

    def test_unknown_local_hardware_is_an_error(self):
        machine = self.machine(Machine)
        machine.put("/proc/cpuinfo", "processor\t: 0\nmodel name\t: Abacus 3000\n")
        done = ipw(machine, "estimate", "--model", "resnet18")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("ipw list hardware", done.stderr)


# ---- the catalog ----

class Catalog(EstimateTest):
    # Published totals in billions, of a model card or paper; a text part alone has fewer.
    MODELS = {"gpt-oss-20b": 20.9, "gpt-oss-120b": 117, "deepseek-ai/DeepSeek-V3": 671, "deepseek-r1:671b": 671,
              "llama-4-scout": 109, "llama-4-maverick": 400, "gemma-3-4b-it": 3.88, "gemma-3-12b-it": 11.8,
              "gemma-3-27b-it": 27, "qwen3-235b-a22b": 235, "phi-4": 14.7, "mistral-small:24b": 23.6,
              "Mistral-Small-3.2-24B-Instruct-2506": 23.6, "OLMo-2-0425-1B": 1.48, "OLMo-2-0325-32B": 32.2,
              "llama-7b": 6.74, "llama-13b": 13.0, "stable-diffusion-v1-4-unet": 0.860,
              "stable-diffusion-2.1-unet": 0.865, "sdxl-unet": 2.57, "flux.1-dev": 11.9, "flux.1-schnell": 11.9}
    DEVICES = ("gb200", "b300", "rtx-5090", "rtx-6000-ada", "rtx-pro-6000", "a10", "mi325x", "mi355x", "tpu-v6e",
               "gaudi-3", "trainium2", "jetson-thor", "apple-m4-max", "apple-m5")

    def test_models_of_today_have_their_published_size_and_an_estimate(self):
        listed = json.loads(ipw(None, "list", "models", *self.MODELS, "--json").stdout)["models"]
        for (name, billions), model in zip(self.MODELS.items(), listed, strict=True):
            self.assertAlmostEqual(model["params"] / billions / 1e9, 1, delta=0.015, msg=name)
            self.assertIn(model["name"] + " on NVIDIA H200", self.run_ipw("--model", name, "--hardware", "h200").stdout)

    def test_devices_of_today_run_a_model(self):
        found = json.loads(self.run_ipw("--model", "llama-3.2-1b", "--hardware", ",".join(self.DEVICES), "--json").stdout)
        joules = {point["hardware"]: point["energy_j"]["total"] for point in found["points"]}
        self.assertEqual(set(joules), set(self.DEVICES))
        self.assertTrue(all(value > 0 for value in joules.values()), joules)


# ---- published accuracies ----

class Accuracies(EstimateTest):
    def test_an_estimate_and_the_list_say_what_was_published(self):
        told = ipw(None, "list", "models", "resnet50").stdout
        self.assertRegex(told, r"accuracy +76\.15 % ImageNet top-1, 1 crop, published for torchvision/resnet50, .*models\.rst")
        self.assertRegex(self.run_ipw("--model", "resnet50", "--hardware", GPU).stdout,
                         r"accuracy +76\.15 % ImageNet top-1, 1 crop; published, not measured")
        found = json.loads(self.run_ipw("--model", "resnet50", "--hardware", GPU, "--json").stdout)
        self.assertEqual([(one["benchmark"], one["percent"]) for one in found["accuracies"]], [("imagenet-top-1", 76.15)])
        verbose = ipw(None, "list", "models", "-v").stdout
        self.assertIn("published: 69.76 % ImageNet top-1, 1 crop\n", verbose)
        self.assertNotIn("published: ", ipw(None, "list", "models").stdout)

    def test_models_compare_in_energy_latency_and_accuracy(self):
        words = ("--model", "resnet18", "--compare-models", "resnet50,densenet121", "--compare-models", "resnet152",
                 "--hardware", GPU, "--batch", "8")
        found = json.loads(self.run_ipw(*words, "--json").stdout)
        self.assertEqual(found["accuracy_axis"], "imagenet-top-1")
        self.assertEqual([one["name"] for one in found["benchmarks"]], ["imagenet-top-1"])
        models = found["models"]
        self.assertEqual({one["model"] for one in models}, {"resnet18", "resnet50", "densenet121", "resnet152"})
        self.assertEqual(sorted(models, key=lambda one: one["energy_j"]), models)
        for one in models:
            beaten = any(other["energy_j"] <= one["energy_j"] and other["latency_s"] <= one["latency_s"]
                         and other["accuracy_percent"] >= one["accuracy_percent"] for other in models if other is not one)
            self.assertEqual(one["frontier"], not beaten, one["model"])
            alone = json.loads(self.run_ipw("--model", one["model"], "--hardware", GPU, "--batch", "8", "--json").stdout)
            self.assertEqual(one["energy_j"], alone["each"]["energy_j"])
            self.assertEqual(one["latency_s"], alone["latency_s"])
        text = self.run_ipw(*words).stdout
        self.assertIn("* Pareto-optimal in energy, latency and ImageNet top-1, 1 crop (4 of 4 models have it)", text)
        self.assertIn("published ones", text)
        self.assertEqual(len(self.run_ipw(*words, "--format", "csv").stdout.splitlines()), 5)

    def test_a_column_has_one_benchmark(self):
        words = ("--model", "llama-3.1-8b", "--compare-models", "llama-3.2-3b,qwen3-8b", "--hardware", GPU)
        for name, known in (("mmlu-5-shot", {"llama-3.1-8b": 69.4}),
                            ("gpqa-0-shot", {"llama-3.1-8b": 30.4, "llama-3.2-3b": 32.8}), ("coco-map", {})):
            found = json.loads(self.run_ipw(*words, "--benchmark", name, "--json").stdout)
            self.assertEqual({one["model"]: one["accuracy_percent"] for one in found["models"]
                              if one["accuracy_percent"] is not None}, known)
            self.assertTrue(all(one["model"] in known for one in found["models"] if one["frontier"]))

    def test_a_file_has_no_published_accuracy(self):
        with TemporaryDirectory(prefix="ipw-estimate-") as root:
            config = {"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
                      "intermediate_size": 128, "vocab_size": 1000}
            folder = Path(root, "Llama-3.1-8B")
            folder.mkdir()
            (folder / "config.json").write_text(json.dumps(config))
            found = json.loads(self.run_ipw("--model", folder, "--hardware", GPU, "--json").stdout)
        self.assertNotIn("accuracies", found)

    def test_mistakes(self):
        words = ("--model", "resnet18", "--hardware", GPU)
        for more, problem in ((("--benchmark", "coco-map"), "--benchmark is for --compare-models"),
                              (("--compare-models", "resnet50", "--benchmark", "mmlu"), "--benchmark mmlu is unknown; there are"),
                              (("--compare-models", "resnet50,"), "separated by commas"),
                              (("--compare-models", "resnet5o"), "did you mean"),
                              (("--compare-models", "llama-3.2-1b"), "process different workloads"),
                              (("--compare-models", "resnet50", "--batch", "1,2"), "takes one --batch"),
                              (("--compare-models", "resnet50", "--precision", "fp16,fp32"), "takes one precision"),
                              (("--compare-models", "resnet50", "--sweep"), "takes no --sweep"),
                              (("--compare-models", "resnet50", "--hardware", "h100-pcie"), "takes one --hardware")):
            done = ipw(None, "estimate", *words, *more)
            self.assertEqual(done.returncode, 2, more)
            self.assertIn(problem, done.stderr, more)


# ---- models of which only the size is known ----

class Sizes(EstimateTest):
    def estimate(self, *words):
        return json.loads(self.run_ipw(*words, "--hardware", GPU, "--json").stdout)

    def test_parameters_alone_give_an_estimate_that_says_so(self):
        found = self.estimate("--parameters", "671B,37B", "--tensor-parallel", "16")
        self.assertAlmostEqual(found["params"] / 671e9, 1, delta=0.02)
        self.assertIn("only its parameters are known", found["notes"][0])
        self.assertEqual(found["confidence"], "theoretical")
        self.assertGreater(found["energy_j"]["plus_minus"], 0.29 * found["energy_j"]["total"])

    def test_an_assumed_model_costs_about_what_its_architecture_does(self):
        for name, size in (("llama-3.1-8b", "8.03B"), ("qwen3-30b-a3b", "30.5B,3.3B"), ("mixtral-8x7b", "46.7B,12.9B")):
            known, assumed = self.estimate("--model", name), self.estimate("--parameters", size)
            ratio = assumed["energy_j"]["total"] / known["energy_j"]["total"]
            self.assertTrue(0.75 < ratio < 1.25, (name, ratio))

    def test_a_listed_model_without_an_architecture_is_assumed(self):
        found = self.estimate("--model", "GLM-4.5-Air", "--tensor-parallel", "4")
        self.assertAlmostEqual(found["params"] / 106e9, 1, delta=0.02)
        self.assertIn("only its parameters are known", found["notes"][0])


# ---- bad input ----

class Refusals(EstimateTest):
    def test_rejects_invalid_arguments(self):
        given = ["--model", "resnet18", "--hardware", GPU]
        for words, hint in (([], "missing --model"),
                            ([*given, "--parameters", "8B"], "give one of them"),
                            (["--parameters", "8", "--hardware", GPU], "write 8B for billions"),
                            (["--parameters", "3B,30B", "--hardware", GPU], "exceed the total"),
                            (["--parameters", "5M", "--hardware", GPU], "too few"),
                            (["--model", "resnet18", "--hardware", "h2OO"], "did you mean h200?"),
                            (["--model", "resnet18", "--hardware", f"{GPU},"], "commas"),
                            (["--model", "resnet18", "--hardware", "jetson-orin-nano-8gb@9W"], "7W"),
                            (["--model", "resnet99x", "--hardware", GPU], "resnet99x"),
                            ([*given, "--precision", "fp61"], "did you mean"),
                            ([*given, "--precision", "fp16,fp16"], "given more than once"),
                            ([*given, "--precision", "stored"], "no stored precision"),
                            ([*given, "--batch", "0"], "from 1 to"),
                            ([*given, "--batch", "-1"], "from 1 to"),
                            ([*given, "--batch", "1e3"], "from 1 to"),
                            ([*given, "--batch", "99999999999999999999"], "from 1 to"),
                            ([*given, "--batch", "4..2"], "from 1 to"),
                            ([*given, "--batch", "1..8x1"], "from 1 to"),
                            ([*given, "--batch", "1..1000000"], "more than 4096"),
                            ([*given, "--phase", "decode"], "no phases"),
                            ([*given, "--prompt-tokens", "5"], "takes no --prompt-tokens"),
                            ([*given, "--dim", "batch=5"], "takes no --dim"),
                            (["--model", "bert-base-uncased", "--hardware", GPU, "--image", "64"],
                             "takes no --image"),
                            (["--model", "gpt2", "--hardware", GPU, "--prompt-tokens", "50",
                              "--context", "50"], "not above the prompt"),
                            (["--model", "gpt2", "--hardware", GPU, "--context", "900",
                              "--output-tokens", "5"], "one of them"),
                            (["--model", "gpt2", "--hardware", GPU, "--phase", "decode",
                              "--output-tokens", "5"], "omit --phase")):
            with self.subTest(words=words):
                self.assertIn(hint, self.refused(*words))

    @unittest.skipUnless(ONNX.exists(), "ONNX's test models are not installed (libonnx-testdata)")
    def test_rejects_excessive_lengths(self):
        """The message contains the given number, or the sum of two."""
        for words, said in ((["--context", "100000000"], "'100000000'"),
                            (["--prompt-tokens", "9000000", "--output-tokens", "9000000"],
                             "18000000 tokens together: at most 10000000")):
            self.assertIn(said, self.refused("--model", "llama-3.2-1b", "--hardware", GPU, *words))

    def test_model_without_operations_is_an_error(self):
        done = self.run_ipw("--model", ONNX / "test_identity" / "model.onnx", "--hardware", GPU, code=1)
        self.assertIn("no operations to estimate", done.stderr)

    @unittest.skipUnless(ONNX.exists(), "ONNX's test models are not installed (libonnx-testdata)")
    def test_dynamic_batch_defaults_to_1(self):
        model = ONNX / "test_sequence_map_add_1_sequence_1_tensor" / "model.onnx"
        self.run_ipw("--model", model, "--hardware", GPU)
        self.run_ipw("--model", model, "--hardware", GPU, "--dim", "N=8")
        words = self.refused("--model", model, "--hardware", GPU, "--dim", "M=8")
        self.assertIn("no dynamic dimension, input or loop of that name; inputs: ", words)

    def test_invalid_files(self):
        junk = self.root / "junk.json"
        junk.write_text("{")
        done = self.run_ipw("--model", "resnet18", "--hardware-file", junk, code=1)
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertIn(str(junk), done.stderr)


if __name__ == "__main__":
    unittest.main()
