#!/usr/bin/env python3
"""Runtimes: bounds on performance, precisions and devices, over scans of models and the catalog."""

import json
import unittest

from compiler import SOURCE
from estimates import EstimateTest
from program import ipw

RUNTIMES = ("pytorch-eager", "pytorch-graph", "torch-compile", "tensorrt", "vllm", "llama.cpp", "onnxruntime")

OF_TEXT = ("vllm", "llama.cpp")


class Scan(EstimateTest):
    """Models on every device of the catalog."""
    models = ("resnet50", "mobilenet_v3_small", "vgg16", "bert-base-uncased", "llama-3.2-1b", "llama-3.1-8b")

    @staticmethod
    def key(row):
        return row["hardware"], row["precision"], row["batch"]

    def scan(self, model, runtime, *arguments):
        """The rows of devices that the runtime supports."""
        rows = self.rows(model, "--hardware", "all", "--runtime", runtime, "--top", "0", *arguments)
        return [row for row in rows if not row["missing"]]

    def test_no_device_exceeds_its_peaks(self):
        """Neither memory bandwidth nor MAC rate, whatever caches hold; fp32 may be computed in tf32."""
        cpus = 0
        for model in self.models:
            for row in self.scan(model, "onnxruntime", "--precision", "fp32,int8", "--batch", "1,32"):
                what = (model, row["hardware"], row["precision"], row["batch"], row["mfu"], row["mbu"])
                self.assertLessEqual(float(row["mfu"]), 1, what)
                self.assertLessEqual(float(row["mbu"]), 1, what)
                cpus += row["hardware"].startswith(("xeon-", "epyc-"))
        self.assertGreater(cpus, 40)

    def test_ideal_runtime_is_below_every_other(self):
        """In time and energy, for the same model, device, precision and batch.  The output matrix of llama.cpp, a large
        part of a step of these two models, is narrower than that of others."""
        compared = 0
        for model, *phase in (*((model,) for model in self.models), ("lstm-text",), ("phi-2", "--phase", "decode")):
            options = ("--precision", "fp32,bf16,fp8,int8,int4", "--batch", "1,64", *phase)
            bounds = {self.key(row): row for row in self.scan(model, "ideal", *options)}
            for runtime in RUNTIMES:
                if runtime in OF_TEXT and not model.startswith(("bert", "llama", "lstm", "phi")):
                    continue
                for row in self.scan(model, runtime, *options):
                    bound = bounds[self.key(row)]
                    for figure in ("latency_s", "energy_j"):
                        if row[figure]:
                            self.assertLessEqual(float(bound[figure]), 1.000001 * float(row[figure]),
                                                 (model, runtime, *self.key(row), figure))
                            compared += 1
        self.assertGreater(compared, 10_000)

    def test_weights_of_a_large_model_come_from_memory(self):
        """16 GB of weights at 614 GB/s: at most 38 tokens per second."""
        report = self.on("xeon-6980p", "llama-3.1-8b", "--precision", "fp32", "--phase", "decode", "--context", "512",
                         "--runtime", "onnxruntime")
        self.assertGreaterEqual(report["latency_s"], 4 * report["params"] * 0.9 / 614.4e9)


class Evidence(EstimateTest):
    runtime = ()

    def test_unmeasured_values_are_not_called_measured(self):
        for model, hardware, runtime, precision, evidence in (
                ("resnet50", "h200", "pytorch-eager", "fp16", "measured"),
                ("resnet50", "h200", "pytorch-graph", "fp8", "derived"),
                ("resnet50", "l4", "pytorch-graph", "fp16", "derived"),
                ("llama-3.1-8b", "h200", "vllm", "fp8", "published"),
                ("llama-3.1-8b", "h200", "vllm", "fp32", "derived"),
                ("bert-base-uncased", "h200", "vllm", "fp16", "assumed"),
                ("llama-3.2-1b", "epyc-9654", "llama.cpp", "int8", "assumed")):
            words = ("--hardware", hardware, "--runtime", runtime, "--precision", precision)
            self.assertEqual(self.estimate(model, *words)["setting"]["runtime_evidence"], evidence, (model, *words))
            title = self.run_ipw("--model", model, *words).stdout.splitlines()[1]
            self.assertIn(f"{runtime} ({evidence})", title)

    def test_refuses_unsupported_combinations(self):
        for model, hardware, runtime, says in (
                ("resnet50", "mi300x", "tensorrt", "mi300x: tensorrt runs on NVIDIA GPUs only"),
                ("resnet50", "apple-m3", "tensorrt", "apple-m3: tensorrt runs on NVIDIA GPUs only"),
                ("resnet50", "apple-m3", "pytorch-graph", "pytorch-graph captures CUDA graphs"),
                ("llama-3.2-1b", "apple-m3", "vllm", "vllm captures CUDA graphs"),
                ("resnet50", "h200", "vllm", "--runtime vllm runs language models: resnet50 is not one"),
                ("resnet50", "h200", "llama.cpp", "--runtime llama.cpp runs language models")):
            done = self.run_ipw("--model", model, "--hardware", hardware, "--runtime", runtime, code=None if "language" not in says else 2)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(says, done.stderr)


    def test_int8_in_eager_mode_is_refused(self):
        """No framework computes a model in int8 operator by operator; the message has the runtimes that do."""
        for runtime in (("--runtime", "pytorch-eager"), ("--runtime", "pytorch-graph"), ()):
            for model in ("resnet50", "llama-3.1-8b")[:1 if not runtime else 2]:
                done = self.run_ipw("--model", model, "--hardware", "a100-sxm-80gb", "--precision", "int8", *runtime, code=1)
                self.assertEqual((done.stdout, done.stderr.count("\n")), ("", 1))
                name = runtime[1] if runtime else "pytorch-eager"
                self.assertIn(f"{name} has no int8 kernels; --runtime tensorrt, onnxruntime and torch-compile", done.stderr)
                self.assertIn("vllm and llama.cpp", done.stderr)
        text = self.run_ipw("--model", "resnet50", "--hardware", "a100-sxm-80gb", "--precision", "fp16,int8").stdout
        self.assertIn("pytorch-eager has no int8 kernels", text)
        text = self.run_ipw("--model", "resnet50", "--hardware", "all", "--precision", "int8").stdout
        reasons = [line for line in text.splitlines() if "has no int8 kernels" in line]
        self.assertEqual(len(reasons), 1)
        self.assertRegex(reasons[0], r"^   a10, a100-pcie-40gb, \S+, \S+ and \d+ more: pytorch-eager ")
        for runtime in ("tensorrt", "onnxruntime", "torch-compile"):
            self.on("a100-sxm-80gb", "resnet50", "--precision", "int8", "--runtime", runtime)


class Captured(EstimateTest):
    """CUDA graphs of transformers on an H200.  Figures are of passes with a mask and a static cache; others were captured
    without."""

    def interval(self, model, *words):
        """Two of the ±, relative to the time."""
        report = self.on("h200", model, "--precision", "fp16", "--runtime", "pytorch-graph", *words)
        took = report["latency_s"]
        return 2 * (1 - report["latency_low_s"] / took), 2 * (report["latency_high_s"] / took - 1)

    def test_encoders_without_a_mask_are_within_two_of_the_interval(self):
        """They took 1.75 to 2.56 times the estimate; models of torchvision, measured as they are, did not."""
        for model, *words in (["bert-base-uncased", "--prompt-tokens", "128", "--batch", "32"],
                              ["roberta-large", "--prompt-tokens", "256", "--batch", "8"], ["distilbert-base-uncased"]):
            below, above = self.interval(model, *words)
            self.assertGreaterEqual(1 + above, 2.56, model)
            self.assertLess(below, 0.25, model)
        for model in ("vit_b_16", "resnet50"):
            self.assertLess(max(self.interval(model)), 0.25, model)

    def test_prompts_of_gpt2_are_within_two_of_the_interval(self):
        """Without a static cache they took 1 / 1.46 to 1 / 1.23 of the estimate; decode is not affected."""
        for model in ("gpt2", "gpt2-medium"):
            for batch in ("1", "16"):
                below, above = self.interval(model, "--phase", "prefill", "--prompt-tokens", "512", "--batch", batch)
                self.assertGreaterEqual(below, 1 - 1 / 1.46)
                self.assertLess(above, 0.4)
        self.assertLess(max(self.interval("gpt2", "--phase", "decode")), 0.23)


class Versions(EstimateTest):
    def test_tensorrt_of_2023_reads_the_cache_per_query_head(self):
        """With eight query heads per KV head, a long context and a large batch take several times as long; with one
        they do not.  Both run language models on NVIDIA GPUs."""
        words = ("--phase", "decode", "--context", "2048", "--batch", "64", "--precision", "fp8")
        for model, least, most in (("llama-3.1-70b", 1.5, 9), ("llama-2-7b", 0.99, 1.15)):
            now, then = (self.on("h200", model, *words, "--runtime", name)["latency_s"] for name in ("tensorrt", "tensorrt-0.7"))
            self.assertTrue(least <= then / now <= most, (model, then / now))
        done = self.run_ipw("--model", "resnet50", "--hardware", "h200", "--runtime", "tensorrt-0.7", code=2)
        self.assertIn("tensorrt-0.7 runs language models", done.stderr)
        done = self.run_ipw("--model", "llama-2-7b", "--hardware", "mi300x", "--runtime", "tensorrt-0.7", code=1)
        self.assertIn("mi300x: tensorrt-0.7 runs on NVIDIA GPUs only", done.stderr)


class NativeFp4(EstimateTest):
    def test_products_run_on_fp4_units_where_a_device_has_them(self):
        """Many prompts on a B200, whose fp4 peak is four times that of fp16, and on an H200, which has none."""
        words = ("llama-3.1-8b", "--phase", "prefill", "--prompt-tokens", "256", "--batch", "64", "--precision")
        for runtime in ("vllm", "tensorrt", "torch-compile"):
            took = {(hardware, precision): self.on(hardware, *words, precision, "--runtime", runtime)
                    for hardware in ("b200", "h200") for precision in ("fp16", "fp4")}
            native = took["b200", "fp4"]
            self.assertEqual(native["setting"]["computed_in"], "fp4")
            self.assertEqual(took["h200", "fp4"]["setting"]["computed_in"], "fp16")
            self.assertGreaterEqual(native["latency_s"], 2 * native["macs"] / 9e15)
            self.assertLess(native["latency_s"], 0.6 * took["b200", "fp16"]["latency_s"])
            self.assertGreater(took["h200", "fp4"]["latency_s"], 0.95 * took["h200", "fp16"]["latency_s"])
        converted = self.on("b200", *words, "fp4", "--runtime", "llama.cpp")
        self.assertEqual(converted["setting"]["computed_in"], "fp16")


class StaticInt8(EstimateTest):
    def test_activations_between_layers_have_8_bits(self):
        """In engines of models other than decoders; LLMs keep 16-bit activations."""
        for runtime in ("tensorrt", "onnxruntime"):
            for model, share in (("resnet50", 0.5), ("bert-base-uncased", 0.5), ("llama-3.2-1b", 1)):
                words = ("a100-sxm-80gb", model, "--batch", "8", "--runtime", runtime, "--precision")
                wide, narrow = self.on(*words, "fp16"), self.on(*words, "int8")
                self.assertClose(narrow["memory_bytes"]["activations_peak"],
                                 share * wide["memory_bytes"]["activations_peak"], 0.01)
                self.assertLess(narrow["latency_s"], wide["latency_s"])


class StateSpace(EstimateTest):
    """Mamba is a decoder without attention."""

    def setUp(self):
        super().setUp()
        self.model = self.root / "config.json"
        recorded = json.loads((SOURCE / "tests/fixtures/configs/models.json").read_text())
        self.model.write_text(json.dumps(next(m for m in recorded["models"] if m["name"] == "mamba-130m")["config"]))

    def test_server_step_includes_scheduling(self):
        """2.2 ms of host time per step and 20 us per sequence, while the device waits; not in a CUDA graph without a
        server."""
        for batch, least in ((1, 2.22e-3), (64, 3.48e-3)):
            words = ("--phase", "decode", "--context", "512", "--precision", "fp16", "--batch", str(batch))
            served, alone = (self.on("h200", self.model, *words, "--runtime", name)["latency_s"]
                             for name in ("vllm", "torch-compile"))
            self.assertClose(served - alone, least, 1e-6)

    def test_default_prompt_is_that_of_other_decoders(self):
        setting = self.on("h200", self.model)["setting"]
        self.assertEqual((setting["prompt_tokens"], setting["output_tokens"]), (512, 128))


class OnnxRuntimeOnACpu(EstimateTest):
    runtime = ()

    def test_floats_are_computed_in_fp32(self):
        """The default, and also used for other floating-point precisions; the report says so."""
        usual = self.on("xeon-8480", "bert-large-uncased")
        self.assertEqual((usual["setting"]["runtime"], usual["precision"]), ("onnxruntime", "fp32"))
        for precision in ("bf16", "fp16"):
            narrow = self.on("xeon-8480", "bert-large-uncased", "--precision", precision)
            self.assertEqual(narrow["setting"]["computed_in"], "fp32")
            self.assertClose(narrow["latency_s"], usual["latency_s"])
            self.assertEqual(narrow["memory_bytes"], usual["memory_bytes"])
            text = ipw(None, "estimate", "--model", "bert-large-uncased", "--hardware", "xeon-8480", "--precision", precision)
            self.assertIn(f"{precision} (computed in fp32)", text.stdout)
        eight = self.on("xeon-8480", "bert-large-uncased", "--precision", "int8")
        self.assertEqual(eight["setting"]["computed_in"], "int8")
        self.assertEqual(json.loads(ipw(None, "estimate", "--model", "bert-large-uncased", "--hardware", "xeon-8480",
                                        "--runtime", "ideal", "--json").stdout)["precision"], "bf16")


if __name__ == "__main__":
    unittest.main()
