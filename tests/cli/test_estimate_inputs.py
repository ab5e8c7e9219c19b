#!/usr/bin/env python3
"""ipw estimate on unusual input: incomplete, contradictory or hostile files, and options without effect."""

import json
import re
import shutil
import subprocess
import sys
import unittest
import xml.etree.ElementTree
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from compiler import SOURCE  # noqa: E402
from estimates import GPU, ROUND, EstimateTest, figure  # noqa: E402
from onnx_bytes import BOOL, FLOAT, FLOAT16, INT8, INT64, field, info, integer, integers, model, node, weight  # noqa: E402
from program import ipw  # noqa: E402


class FileTest(EstimateTest):
    def write(self, name, data):
        path = self.root / name
        path.write_bytes(data) if isinstance(data, bytes) else path.write_text(data)
        return path

    def onnx(self, *arguments, name="made.onnx"):
        return self.write(name, model(*arguments))


class NoModel(FileTest):
    def test_invalid_file_is_not_taken_for_a_model_name(self):
        for name, data in (("empty.gguf", ""), ("text", "hello")):
            words = self.run_ipw("--model", self.write(name, data), "--hardware", GPU, code=1).stderr
            self.assertIn(f"{name} is not a model file", words)


# ---- ONNX inputs without a shape ----

class Shapeless(FileTest):
    def matmul(self):
        return self.onnx([node("MatMul", ["x", "w"], ["y"])], [info("x")], [info("y")],
                         [weight("w", [16, 32])])

    def test_missing_shape_is_requested(self):
        words = self.refused("--model", self.matmul(), "--hardware", GPU)
        self.assertRegex(words, r"input 'x' has no shape: give it, for example --dim x=\d+x\d+")

    def test_given_iteration_count_is_used(self):
        report = self.on(GPU, self.matmul(), "--dim", "x=4x16")
        self.assertEqual(report["macs"], 4 * 16 * 32)
        self.assertFalse(report.get("is_guessed"))
        conv = self.onnx([node("Conv", ["x", "w"], ["y"], "", integers("pads", [1, 1, 1, 1]))],
                         [info("x")], [info("y")], [weight("w", [8, 3, 3, 3])])
        self.assertEqual(self.on(GPU, conv, "--dim", "x=2x3x10x12")["macs"], 2 * 8 * 10 * 12 * 27)

    def test_shape_that_does_not_fit_is_reported(self):
        words = self.run_ipw("--model", self.matmul(), "--hardware", GPU, "--dim", "x=4x17",
                             code=1).stderr
        self.assertIn("MatMul", words)

    def test_rejects_invalid_shapes(self):
        for wrong in ("x=4x", "x=", "x=axb", "x=0x3", "x=1x1x1x1x1x1x1x1x1", "x=-1x3", "x=1.5"):
            with self.subTest(wrong):
                self.assertIn("not a shape", self.refused("--model", self.matmul(), "--hardware", GPU,
                                                          "--dim", wrong))

    def test_an_unread_input_needs_no_shape(self):
        path = self.onnx([node("Relu", ["x"], ["y"])], [info("x", [1, 4]), info("unused")], [info("y")])
        self.assertEqual(self.on(GPU, path)["macs"], 0)

    def test_rejects_shape_for_input_with_shape(self):
        path = self.onnx([node("Relu", ["x"], ["y"])], [info("x", [1, 4])], [info("y")])
        self.assertIn("no dynamic dimension", self.refused("--model", path, "--hardware", GPU, "--dim",
                                                        "x=1x4"))


class Images(FileTest):
    """Dynamic heights and widths, recognized by name or position."""

    def conv(self, dims):
        return self.onnx([node("Conv", ["x", "w"], ["y"], "", integers("pads", [1, 1, 1, 1]))],
                         [info("x", dims)], [info("y")], [weight("w", [8, 3, 3, 3])])

    def test_image_option_sets_height_and_width(self):
        for dims in (["batch", 3, "height", "width"], ["N", 3, "H", "W"],
                     ["b", 3, "in_height", "in_width"], ["a", 3, "b", "c"], [1, 3, "image_size", "image_size"]):
            with self.subTest(dims):
                report = self.on(GPU, self.conv(dims), "--image", "64")
                self.assertEqual(report["macs"], 8 * 64 * 64 * 27)
        for dims in (["batch", 3, "height", "width"], ["a", 3, "b", "c"]):
            report = self.on(GPU, self.conv(dims), "--image", "48x64", "--batch", "2")
            self.assertEqual(report["macs"], 2 * 8 * 48 * 64 * 27)
            self.assertEqual((report["setting"]["image"], report["setting"]["image_width"]), (48, 64))
            table = self.run_ipw("--model", self.conv(dims), "--hardware", GPU, "--image", "48x64").stdout
            self.assertIn("48 x 64 pixels", table)
        self.assertEqual(self.on(GPU, self.conv([1, 3, "height", 10]), "--image", "64")["macs"],
                         8 * 64 * 10 * 27)

    def test_channels_last(self):
        path = self.onnx([node("Relu", ["x"], ["y"])], [info("x", ["b", "s1", "s2", 3])], [info("y")])
        self.assertEqual(self.on(GPU, path, "--image", "6x7")["flops"], 6 * 7 * 3)

    def test_image_option_without_effect_is_rejected(self):
        for dims, more in (([1, 3, 64, 64], ()), ([1, 3, "h", "w"], ("--dim", "h=8,w=8")),
                           ([1, 3, "h", "w"], ("--dim", "x=1x3x8x8"))):
            words = self.refused("--model", self.conv(dims), "--hardware", GPU, "--image", "64", *more)
            self.assertIn("--image has no effect", words)
            self.assertIn("inputs: x [1, 3, ", words)
        self.assertIn("takes no --image", self.refused("--model", "gpt2", "--hardware", GPU, "--image", "64"))
        self.assertIn("square images", self.refused("--model", "resnet18", "--hardware", GPU,
                                                    "--image", "224x256"))
        self.on(GPU, "resnet18", "--image", "224x224")

    def test_prompt_option_for_image_is_rejected(self):
        words = self.refused("--model", self.conv([1, 3, "h", "w"]), "--hardware", GPU, "--image", "64",
                             "--prompt-tokens", "7")
        self.assertIn("--prompt-tokens has no effect", words)

    def test_rejects_invalid_image_sizes(self):
        for wrong in ("x", "0", "64x", "x64", "64x0", "64x64x3", "-1", "1e3", "100001", "wide"):
            with self.subTest(wrong):
                words = self.refused("--model", self.conv([1, 3, "h", "w"]), "--hardware", GPU,
                                     f"--image={wrong}")
                self.assertIn("--image takes a side or HEIGHTxWIDTH", words)


class DenormalWeights(FileTest):
    """A share of the second matrix is denormal numbers, which a CPU multiplies in microcode."""

    def products(self, share):
        numbers = [1e-40 if i % 100 < 100 * share else 0.5 for i in range(64 * 64)]
        return self.onnx([node("MatMul", ["x", "u"], ["h"]), node("MatMul", ["h", "w"], ["y"])], [info("x", [1, 64])],
                         [info("y", [1, 64])], [weight("u", [64, 64]), weight("w", [64, 64], numbers=numbers)])

    def test_denormal_weights_are_reported(self):
        report = self.on(GPU, self.products(0.4))
        self.assertEqual(len(report["notes"]), 1)
        found = re.match(r"(\d+) % of the weights 'w' are denormal numbers", report["notes"][0])
        self.assertAlmostEqual(int(found[1]), 40, delta=6)  # estimated from a sample
        self.assertEqual(self.on(GPU, self.products(0))["notes"], [])


class ControlFlow(FileTest):
    """A loop whose iteration count is an input: a 4 x 16 state times a matrix per iteration."""

    def loop(self):
        body = b"".join([
            field(1, node("MatMul", ["h", "w"], ["next"])), field(2, "body"),
            *(field(11, info(*of)) for of in (("i", [], INT64), ("go", [], BOOL), ("h", [4, 16]))),
            *(field(12, info(*of)) for of in (("go", [], BOOL), ("next", [4, 16])))])
        return self.onnx([node("Loop", ["n", "", "x"], ["y"], "repeat", field(1, "body") + field(6, body) + field(20, 5))],
                         [info("n", [], INT64), info("x", [4, 16])], [info("y", [4, 16])], [weight("w", [16, 16])])

    def test_loop_of_unknown_length_is_counted_once_and_reported(self):
        report = self.on(GPU, self.loop())
        self.assertEqual(report["macs"], 4 * 16 * 16)
        self.assertEqual(len(report["notes"]), 1)
        self.assertIn("notes", report["confidence_reason"])
        words = self.run_ipw("--model", self.loop(), "--hardware", GPU).stdout
        self.assertIn("Loop 'repeat' runs an unknown number of times: counted once; give it with --dim repeat=N", words)
        words = self.run_ipw("--model", self.loop(), "--hardware", GPU, "--precision", "fp32,fp16").stdout
        self.assertIn("--dim repeat=N", words)

    def scan(self, *dims):
        """A scan: for each index of the first dimension, a slice of 16 elements times a matrix."""
        body = b"".join([
            field(1, node("MatMul", ["h", "w"], ["next"])), field(1, node("Add", ["next", "s"], ["out"])),
            field(2, "body"), field(11, info("h", [4, 16])), field(11, info("s", [4, 16])),
            field(12, info("out", [4, 16]))])
        return self.onnx([node("Scan", ["x", "seq"], ["y"], "steps", field(1, "body") + field(6, body) + field(20, 5),
                               integer("num_scan_inputs", 1))],
                         [info("x", [4, 16]), info("seq", [*dims, 4, 16])], [info("y", [4, 16])], [weight("w", [16, 16])])

    def test_scan_of_unknown_length_is_reported(self):
        once = self.on(GPU, self.scan("T"))
        self.assertEqual(once["macs"], 4 * 16 * 16)
        self.assertEqual(once["notes"], ["Scan 'steps' runs over 'T', taken as a batch of 1: "
                                         "give its length with --dim T=N"])
        given = self.on(GPU, self.scan("T"), "--dim", "T=25")
        self.assertEqual((given["macs"], given["notes"]), (25 * once["macs"], []))
        fixed = self.on(GPU, self.scan(25))
        self.assertEqual((fixed["macs"], fixed["notes"]), (25 * once["macs"], []))

    def test_given_iteration_count_is_used(self):
        once, report = self.on(GPU, self.loop()), self.on(GPU, self.loop(), "--dim", "repeat=25")
        self.assertEqual(report["macs"], 25 * once["macs"])
        self.assertEqual((report["notes"], len(report["subgraphs"])), ([], 25))
        self.assertEqual(report["memory_bytes"]["weights"], 4 * 16 * 16)  # once
        self.assertEqual(report["traffic_bytes"]["weights"], 25 * 4 * 16 * 16)  # per iteration
        words = self.run_ipw("--model", self.loop(), "--hardware", GPU, "--dim", "repeat=25").stdout
        self.assertRegex(words, r"repeat\.\*\.next +x 25 ")


class DeadNodes(FileTest):
    def test_nodes_without_effect_on_outputs_are_ignored(self):
        live, dead = node("MatMul", ["x", "w"], ["y"]), node("MatMul", ["x", "v"], ["z"])
        dead_too = node("Relu", ["z"], ["q"])
        weights = [weight("w", [16, 32]), weight("v", [16, 4096])]
        for nodes in ([live, dead, dead_too], [dead_too, dead, live]):
            path = self.onnx(nodes, [info("x", [4, 16])], [info("y")], weights)
            self.assertEqual(self.on(GPU, path)["macs"], 4 * 16 * 32)
        path = self.onnx([live, dead], [info("x", [4, 16])], [info("y"), info("z")], weights)
        self.assertEqual(self.on(GPU, path)["macs"], 4 * 16 * (32 + 4096))


# ---- the precision of a file ----

class FilePrecision(FileTest):
    M, K, N = 512, 1024, 2048

    def matmul(self, element=FLOAT):
        return self.onnx([node("MatMul", ["x", "w"], ["y"])], [info("x", [self.M, self.K], element)],
                         [info("y", None, element)], [weight("w", [self.K, self.N], element)])

    def quantized(self):
        return self.onnx([node("QuantizeLinear", ["x", "s", "z"], ["q"]),
                          node("DequantizeLinear", ["q", "s", "z"], ["d"]),
                          node("DequantizeLinear", ["w", "s", "z"], ["v"]),
                          node("MatMul", ["d", "v"], ["y"])], [info("x", [self.M, self.K])], [info("y")],
                         [weight("w", [self.K, self.N], INT8), weight("s", []), weight("z", [], INT8)])

    def device_with_energies(self):
        """Options for a device with a different energy per precision."""
        matrix = {name: {"peak": figure(peak, "tflops"), "energy": figure(picojoules, "pj")}
                  for name, peak, picojoules in (("int8", 400, 0.25), ("fp16", 200, 0.5))}
        return ("--hardware-file", self.device(matrix=matrix))

    def test_file_is_estimated_in_its_own_precision(self):
        for element, name, width in ((FLOAT, "fp32", 4), (FLOAT16, "fp16", 2)):
            report = self.estimate(self.matmul(element), *self.device_with_energies())
            self.assertEqual((report["precision"], report["setting"]["file_precision"]), (name, name))
            self.assertEqual(report["memory_bytes"]["weights"], width * self.K * self.N)
            table = self.run_ipw("--model", self.matmul(element), *self.device_with_energies()).stdout
            self.assertRegex(table, rf"\n   {name}, batch 512\n")

    def test_stored_precision_is_that_of_file(self):
        report = self.estimate(self.matmul(FLOAT16), *self.device_with_energies(), "--precision", "stored")
        self.assertEqual((report["precision"], report["setting"]["keeps_stored"]), ("fp16", False))
        self.assertIn("no stored precision", self.refused("--model", "resnet18", "--hardware", GPU,
                                                          "--precision", "stored"))

    def test_other_precision_is_reported(self):
        asked = ("--model", self.matmul(), *self.device_with_energies(), "--precision")
        report = json.loads(self.run_ipw(*asked, "fp16", "--json").stdout)
        self.assertEqual((report["precision"], report["setting"]["file_precision"]), ("fp16", "fp32"))
        lines = self.run_ipw(*asked, "fp16").stdout.splitlines()
        self.assertIn("fp16 (the file is fp32)", "\n".join(lines[:4]))
        self.assertIn("fp8 (computed in fp16; the file is fp32)", self.run_ipw(*asked, "fp8").stdout)
        self.assertIn("the file is fp32", self.run_ipw(*asked, "fp16,int8").stdout.splitlines()[2])
        points = json.loads(self.run_ipw(*asked, "fp16,int8", "--json").stdout)
        self.assertEqual(points["file_precision"], "fp32")
        self.assertIsNone(self.on(GPU, "resnet18")["setting"]["file_precision"])

    def test_device_without_support_for_precision(self):
        """The device only has 16-bit units."""
        sixteen = {"fp16": {"peak": figure(50, "tflops"), "energy": figure(1, "pj")}}
        path = self.device(vector=sixteen)
        words = self.run_ipw("--model", self.matmul(), "--hardware-file", path).stdout
        self.assertIn("fp16 (the file is fp32)", words)

    def test_quantized_model_computed_by_hand(self):
        m, k, n = self.M, self.K, self.N
        report = self.estimate(self.quantized(), *self.device_with_energies())
        self.assertEqual((report["precision"], report["setting"]["file_precision"],
                          report["setting"]["computed_in"], report["setting"]["keeps_stored"]),
                         ("int8", "int8", "int8", True))
        self.assertEqual(report["memory_bytes"]["weights"], k * n)
        moved = 4 * m * k + m * k + m * k + k * n + 4 * m * n  # floats in, int8 out and in, weights, floats out
        self.assertEqual(report["bytes"], moved)
        self.assertAlmostEqual(report["energy_j"]["compute"], (2 * m * k * n / 4 + m * k) * 1e-12, 12)
        self.assertAlmostEqual(report["energy_j"]["memory"], moved * 50e-12, 12)
        self.assertIn("int8 as in the file", self.run_ipw("--model", self.quantized(), *self.device_with_energies()).stdout)

    def test_quantized_model_in_other_precision(self):
        """As if weights, activations and products were in 16 bits."""
        m, k, n = self.M, self.K, self.N
        report = self.estimate(self.quantized(), *self.device_with_energies(), "--precision", "fp16")
        self.assertEqual(report["memory_bytes"]["weights"], 2 * k * n)
        self.assertEqual(report["bytes"], 2 * (3 * m * k + k * n + m * n))
        self.assertAlmostEqual(report["energy_j"]["compute"], (2 * m * k * n / 2 + m * k) * 1e-12, 12)
        words = self.run_ipw("--model", self.quantized(), *self.device_with_energies(), "--precision", "fp16").stdout
        self.assertIn("fp16 (the file is int8)", words)

    def test_partly_quantized_model(self):
        m, k, n = self.M, self.K, self.N
        path = self.onnx([node("QuantizeLinear", ["x", "s", "z"], ["q"]),
                          node("DequantizeLinear", ["q", "s", "z"], ["d"]),
                          node("DequantizeLinear", ["w", "s", "z"], ["v"]),
                          node("MatMul", ["d", "v"], ["t"]), node("MatMul", ["t", "u"], ["y"])],
                         [info("x", [m, k])], [info("y")],
                         [weight("w", [k, n], INT8), weight("s", []), weight("z", [], INT8), weight("u", [n, 64])])
        report = self.estimate(path, *self.device_with_energies())
        self.assertEqual(report["precision"], "int8")
        self.assertEqual(report["memory_bytes"]["weights"], k * n + 4 * n * 64)
        picojoules = 2 * m * k * n / 4 + m * k + 2 * m * n * 64  # fp32 on the vector units: 1 pJ
        self.assertAlmostEqual(report["energy_j"]["compute"], picojoules * 1e-12, 12)
        self.assertIn("int8 as in the file (94.1 % of MACs; others fp32)",
                      self.run_ipw("--model", path, *self.device_with_energies()).stdout)


# ---- options that would change nothing ----

class ConfigPrecision(FileTest):
    """The precision of a config.json, by its dtype and quantization_config."""
    runtime = ()
    LAYERS, HIDDEN, WIDTH, WORDS = 8, 2048, 8192, 32000
    MATRICES = LAYERS * (4 * HIDDEN ** 2 + 3 * HIDDEN * WIDTH)
    OTHERS = 2 * WORDS * HIDDEN + (2 * LAYERS + 1) * HIDDEN  # embedding, head, norms

    def config(self, **more):
        return self.write("config.json", json.dumps({
            "model_type": "llama", "num_hidden_layers": self.LAYERS, "hidden_size": self.HIDDEN,
            "num_attention_heads": 16, "intermediate_size": self.WIDTH, "vocab_size": self.WORDS,
            "tie_word_embeddings": False, "max_position_embeddings": 4096, **more}).encode())

    def compressed(self, bits, kind, activations, **more):
        inputs = activations and {"num_bits": activations, "type": kind}
        group = {"targets": ["Linear"], "weights": {"num_bits": bits, "type": kind, **more}, "input_activations": inputs}
        return self.config(dtype="bfloat16", quantization_config={
            "quant_method": "compressed-tensors", "ignore": ["lm_head"], "config_groups": {"group_0": group}})

    def computed(self, path, hardware):
        report = self.on(hardware, path)
        return report["precision"], report["setting"]["computed_in"], report["setting"]["keeps_stored"]

    def test_fp8_is_computed_in_fp8(self):
        plain = self.on("h200", self.config(dtype="bfloat16"), "-p", "fp8")
        for make in (lambda: self.config(dtype="bfloat16", quantization_config={"quant_method": "fp8"}),
                     lambda: self.compressed(8, "float", 8, strategy="channel")):
            path = make()  # one after the other: both use the same file
            self.assertEqual(self.computed(path, "h200"), ("fp8", "fp8", True))
            report = self.on("h200", path)
            self.assertEqual(report["memory_bytes"]["weights"], self.MATRICES + 2 * self.OTHERS)
            self.assertClose(report["request"]["first_token_s"], plain["request"]["first_token_s"], 0.05)
            self.assertEqual(self.computed(path, GPU), ("fp8", "fp16", True))
            self.assertIn("fp8 as in the file, computed in fp16 (",
                          self.run_ipw("--model", path, "--hardware", GPU).stdout)

    def test_compressed_tensors(self):
        path = self.compressed(8, "int", 8)
        self.assertEqual(self.computed(path, GPU), ("int8", "int8", True))
        eight = self.on(GPU, path)["request"]["first_token_s"]
        path = self.compressed(4, "int", None, group_size=128)
        self.assertEqual(self.computed(path, GPU), ("bf16", "bf16", True))
        report = self.on(GPU, path)
        self.assertClose(report["memory_bytes"]["weights"], self.MATRICES * (4 + 16 / 128) / 8 + 2 * self.OTHERS)
        self.assertLess(eight, 0.8 * report["request"]["first_token_s"])
        done = self.run_ipw("--model", self.compressed(4, "float", 4, group_size=16), "--hardware", GPU, code=1)
        self.assertIn("activations of 8 or 16 bits", done.stderr)

    def test_quantization_without_effect_is_reported(self):
        path = self.config(dtype="bfloat16", quantization_config={"quant_method": "mxfp4"})
        done = self.run_ipw("--model", path, "--hardware", "h200")
        self.assertIn("mxfp4 quantizes experts, and this model has none", done.stderr)
        self.assertRegex(done.stdout, r"\n   bf16, batch 1")

    def test_dtype_of_config(self):
        for key in ("dtype", "torch_dtype"):
            path = self.config(**{key: "float32"})
            self.assertIn("fp16 (the file is fp32)", self.run_ipw("--model", path, "--hardware", "h200").stdout)
            self.assertEqual(self.on("h200", self.config(**{key: "bfloat16"}))["precision"], "bf16")
        self.assertEqual(self.on("h200", self.config())["setting"]["file_precision"], None)

    def test_dtype_of_config_and_safetensors_agree(self):
        for model, dtype, short, expected in (
                ("gpt2", "float32", "F32", "fp16"), ("gpt2", "bfloat16", "BF16", "bf16"),
                ("bert", "float32", "F32", "fp32"), ("bert", "float16", "F16", "fp16")):
            path = self.write("config.json", json.dumps({
                "model_type": model, "torch_dtype": dtype, "hidden_size": 64, "n_embd": 64, "num_hidden_layers": 2,
                "n_layer": 2, "num_attention_heads": 2, "n_head": 2, "intermediate_size": 128, "vocab_size": 100,
                "max_position_embeddings": 128, "n_positions": 128, "type_vocab_size": 2}).encode())
            width = 4 if short == "F32" else 2
            header = json.dumps({"w": {"dtype": short, "shape": [2], "data_offsets": [0, 2 * width]}}).encode()
            file = self.write("m.safetensors", len(header).to_bytes(8, "little") + header + bytes(2 * width))
            self.assertEqual(self.on("h200", path)["precision"], expected)
            self.assertEqual(self.on("h200", file)["precision"], expected)


class Unused(FileTest):
    def test_prompt_option_must_match_fixed_prompt(self):
        path = self.onnx([node("Gather", ["table", "i"], ["z"])], [info("i", [2, 5], 7)], [info("z")],
                         [weight("table", [100, 8])])
        words = self.refused("--model", path, "--hardware", GPU, "--prompt-tokens", "700")
        self.assertIn("prompt", words)
        self.on(GPU, path, "--prompt-tokens", "5")  # the same length
        path = self.onnx([node("Gather", ["table", "i"], ["z"])], [info("i", ["batch", "seq_len"], 7)],
                         [info("z")], [weight("table", [100, 8])])
        self.assertEqual(self.on(GPU, path, "--prompt-tokens", "700", "--batch", "2")["setting"]["prompt_tokens"],
                         700)
        self.assertIn("prompt", self.refused("--model", path, "--hardware", GPU, "--batch", "2",
                                             "--dim", "seq_len=4", "--prompt-tokens", "700"))


    def test_legacy_model_rejects_options_it_ignores(self):
        legacy = SOURCE / "tests" / "fixtures" / "hardware"
        path = next(p for p in sorted(legacy.glob("*.json")) if '"legacy"' in p.read_text())
        asked = ["--model", "resnet18", "--model-compat", "--hardware-file", path]
        self.run_ipw(*asked)
        for option in ("--max-latency-ms=0.001", "--max-energy-j=1", "--max-memory-gb=1",
                       "--max-power-w=1", "--plot=a.png", "--graph=dot", "--top=1", "-v", "--batch=2",
                       "--tensor-parallel=2", "--compare", "--sweep", "--no-fusion"):
            with self.subTest(option):
                words = self.refused(*asked, option)
                self.assertIn("verbose" if option == "-v" else option.split("=")[0], words)


    def test_duplicate_options_are_rejected(self):
        self.assertIn("more than once", self.refused("--model", "resnet18", "--model", "gpt2", "--hardware", GPU))
        path = self.onnx([node("Relu", ["x"], ["y"])], [info("x", ["batch", "seq"])], [info("y")])
        self.assertIn("more than once", self.refused("--model", path, "--hardware", GPU, "--batch", "1", "--dim",
                                            "seq=4", "--dim", "seq=5"))

    def test_sweep_keeps_given_batch(self):
        path = self.onnx([node("Relu", ["x"], ["y"])], [info("x", ["batch", 8])], [info("y")])
        for size in (1, 4):
            points = self.on(GPU, path, "--sweep", "--dim", f"batch={size}")["points"]
            self.assertEqual({point["batch"] for point in points}, {size})
            self.assertEqual(len(points), len({point["precision"] for point in points}))
            self.assertIn("has no effect", self.refused("--model", path, "--hardware", GPU, "--dim",
                                                          f"batch={size}", "--batch", f"{size},8"))
        points = self.on(GPU, path, "--sweep")["points"]
        self.assertEqual({point["batch"] for point in points}, {1, 2, 4, 8, 16, 32, 64})

    def test_an_unknown_model_is_reported_first(self):
        self.assertIn("nosuchmodel", self.refused("--model", "nosuchmodel"))


class Listed(unittest.TestCase):
    def test_list_models_by_name(self):
        done = ipw(None, "list", "models", "resnet50", "microsoft/resnet-18")
        self.assertEqual(done.returncode, 0, done.stderr)
        for figure in ("25557032", "4089184256", "family       resnet", "11689512", "1814073344"):
            self.assertIn(figure, done.stdout)
        self.assertNotIn("alexnet", done.stdout)
        models = json.loads(ipw(None, "list", "models", "resnet50", "--json").stdout)["models"]
        self.assertEqual([(m["name"], m["params"], m["family"]) for m in models],
                         [("resnet50", 25557032, "resnet")])
        done = ipw(None, "list", "models", "resnet5o")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("did you mean resnet50", done.stderr)


# ---- graphs ----

ODD_NAMES = ['a"b', "c]d[e", "f{g}|h", "<i>&j", "&amp;", "k\\l;m", "n\no", "%%{init}%%", "end", "ünï", "",
             "graph", 'x"]; evil -> y [label="', "--> n0", "#quot;", "`q`", "a\\", "\\N", "]" * 300]


class Graphs(FileTest):
    def odd(self):
        names = [f"t{i}" for i in range(len(ODD_NAMES) + 1)]
        return self.onnx([node("Relu", [names[i]], [names[i + 1]], name)
                          for i, name in enumerate(ODD_NAMES)],
                         [info("t0", [2, 3])], [info(names[-1])], name='odd "n|a]me.onnx')

    def shown(self, name, index):
        """A node name as displayed: newlines are escaped, long names are truncated, an unnamed node has the name of its
        output."""
        name = name.replace("\n", "\\n") or f"t{index + 1}"
        return name if len(name) <= 60 else name[:60]

    @unittest.skipUnless(shutil.which("dot"), "graphviz (dot) is not installed")
    def test_graphviz_parses_dot(self):
        """Graphviz's parser finds every node, with its name, and every edge."""
        dot = self.run_ipw("--model", self.odd(), "--graph", "dot").stdout
        svg = subprocess.run(["dot", "-Tsvg"], input=dot, text=True, capture_output=True, check=True)
        self.assertEqual(svg.stderr, "")
        tree = xml.etree.ElementTree.fromstring(svg.stdout)
        space = {"s": "http://www.w3.org/2000/svg"}
        texts = {group.find("s:title", space).text: [t.text for t in group.findall("s:text", space)]
                 for group in tree.iterfind(".//s:g[@class='node']", space)}
        self.assertEqual(len(texts), len(ODD_NAMES) + 2)
        for i, name in enumerate(ODD_NAMES):
            words = [(text or "").replace("\u00a0", " ") for text in texts[f"n{i}"]]
            self.assertTrue(words[0].startswith(self.shown(name, i)[:20]), (words, name))
            self.assertIn("Relu", words[-1])
        edges = {group.find("s:title", space).text
                 for group in tree.iterfind(".//s:g[@class='edge']", space)}
        self.assertLessEqual({f"n{i}->n{i + 1}" for i in range(len(ODD_NAMES) - 1)}, edges)
        self.assertEqual(len(edges), len(ODD_NAMES) + 1)
        for model in ("resnet18", "gpt2"):
            dot = self.run_ipw("--model", model, "--graph", "dot").stdout
            subprocess.run(["dot", "-Tcanon"], input=dot, text=True, capture_output=True, check=True)

    def test_mermaid_output_matches_grammar(self):
        """Mermaid's parser needs Node.js, which the tests do not have: each line must be a node with quoted text or an
        edge, without characters that are special within quotes.  Rendering is not tested."""
        lines = self.run_ipw("--model", self.odd(), "--graph", "mermaid").stdout.splitlines()
        self.assertEqual(lines[0], "flowchart TD")
        text = r'"(?:[^"<>`&;#]|<br/>|#(?:quot|lt|gt|amp|35|96|59);)*"'
        line = re.compile(rf'  (?:[nio]\d+(?:\[{text}\]|\(\[{text}\]\))|[nio]\d+ -- "[\dx]+" --> [nio]\d+)')
        for each in lines[1:]:
            self.assertRegex(each, rf"^{line.pattern}$")
        boxes = [each for each in lines if re.match(r"  n\d+\[", each)]
        self.assertEqual(len(boxes), len(ODD_NAMES))
        self.assertEqual(sum(" --> " in each and "-- \"" in each for each in lines), len(ODD_NAMES) + 1)


# ---- memory over time ----

class Timeline(FileTest):
    def test_timeline_of_live_tensors(self):
        """x, then a = x W, which both branches read; each tensor has 4 x N fp16 elements."""
        path = self.onnx([node("MatMul", ["x", "w"], ["a"]), node("MatMul", ["a", "v"], ["b"]),
                          node("MatMul", ["b", "u"], ["c"]), node("Concat", ["a", "c"], ["y"], "joined",
                                                                  integer("axis", 1))],
                         [info("x", [4, 16])], [info("y")],
                         [weight("w", [16, 32]), weight("v", [32, 64]), weight("u", [64, 8])])
        memory = self.on(GPU, path, "--precision", "fp16")["memory_bytes"]
        x, a, b, c, y = (2 * 4 * n for n in (16, 32, 64, 8, 40))
        self.assertEqual([row["bytes"] for row in memory["timeline"]],
                         [x + a, a + b, a + b + c, a + c + y])
        self.assertEqual([row["step"] for row in memory["timeline"]], [0, 1, 2, 3])
        self.assertEqual(memory["activations_peak"], max(r["bytes"] for r in memory["timeline"]))

    def test_timeline_contains_activation_peak(self):
        for model in ("resnet18", "gpt2"):
            memory = self.on(GPU, model)["memory_bytes"]
            self.assertEqual(memory["activations_peak"], max(r["bytes"] for r in memory["timeline"]))
        points = self.on(GPU, "resnet18", "--batch", "1,2")["points"]
        self.assertEqual([p["memory_bytes"]["timeline"] for p in points], [None, None])


# ---- contradictory devices ----

class DoubtfulDevices(FileTest):
    def test_warns_of_contradictory_hardware_file(self):
        sane = self.run_ipw("--model", "resnet18", "--hardware-file", self.device(), "--json")
        self.assertEqual(sane.stderr, "")
        energy = {**ROUND["matrix"]["fp16"]["energy"], "value": 1e6}
        for change, key in (
                ({"matrix": {"fp16": {**ROUND["matrix"]["fp16"], "energy": energy}}}, "matrix.fp16"),
                ({"memories": [{**ROUND["memories"][0], "energy": energy}]}, "memories.RAM")):
            with self.subTest(key):
                path = self.device(**change)
                done = self.run_ipw("--model", "resnet18", "--hardware-file", path, "--json")
                self.assertEqual(done.stderr.count("\n"), 1)
                self.assertIn("device.json contradicts itself", done.stderr)
                self.assertIn(f"{key}: at its peak it would draw", done.stderr)
                report = json.loads(done.stdout)
                self.assertEqual((json.loads(sane.stdout)["confidence"], report["confidence"]),
                                 ("interpolated", "theoretical"))
                self.assertIn(key, report["confidence_reason"])

    def test_confidence_of_calibrated_device_has_reason(self):
        base = {**ROUND, "calibrated": True}
        told = lambda *more, **change: self.estimate(
            "resnet18", "--hardware-file", self.device(**{**base, **change}), *more)
        report = told()
        self.assertEqual(report["confidence"], "calibrated")
        report = told(power={"idle": ROUND["power"]["idle"]})
        self.assertEqual(report["confidence"], "calibrated")
        self.assertIn("no power limit", report["confidence_reason"])
        self.assertIsNone(report["power_w"]["limit"])
        assumed = {**ROUND["memories"][0]["energy"], "evidence": "assumed"}
        report = told(memories=[{**ROUND["memories"][0], "energy": assumed}])
        self.assertEqual(report["confidence"], "interpolated")
        self.assertIn("not the energy per byte: assumed", report["confidence_reason"])
        report = told("--precision", "int8")
        self.assertEqual(report["confidence"], "interpolated")
        self.assertIn("not in int8", report["confidence_reason"])


# ---- invalid measurements ----

class ValidateInput(FileTest):
    def rows(self, *lines, header="model,latency_s,energy_j"):
        return self.write("v.csv", "\n".join([header, *lines, ""]))

    def validate(self, path, *more, code=0):
        return self.run_ipw("validate", "--hardware", GPU, "--csv", path, *more, code=code)

    def test_rejects_invalid_measurements(self):
        for wrong in ("0,", "-1,", "nan,", "inf,", "1e400,", "0.01,0", "0.01,-3", "0.01,nan", "0.01,inf"):
            with self.subTest(wrong):
                done = self.validate(self.rows("resnet18,0.01,1", f"resnet50,{wrong}"), "--max-mape",
                                     "1e5", code=1)
                self.assertEqual((done.stdout, done.stderr.count("\n")), ("", 1))
                self.assertIn("v.csv:3:", done.stderr)
        loads = "op,shape,latency_s,energy_j"
        self.assertIn("v.csv:2:", self.validate(self.rows("matmul,8x8x8,0.01,0", header=loads),
                                                code=1).stderr)
        self.validate(self.rows("matmul,8x8x8,0.00001,0", header=loads))  # as shown by a meter

    def test_empty_comparison_does_not_pass(self):
        path = self.rows("resnet18,,")
        done = self.validate(path, "--max-mape", "1e5", code=1)
        self.assertIn("UNKNOWN", done.stdout)
        done = self.validate(path, "--max-mape", "1e5", "--json", code=1)
        self.assertIsNone(json.loads(done.stdout)["pass"])
        self.validate(path)
        done = self.validate(self.rows("resnet18,0.01,"), "--max-mape", "1e5", "--json")
        self.assertTrue(json.loads(done.stdout)["pass"])

    def test_where_option(self):
        path = self.rows("resnet18,1,0.01,", "resnet18,2,0.01,", header="model,batch,latency_s,energy_j")
        done = self.validate(path, "--where", "batch=2", "--json")
        self.assertEqual(json.loads(done.stdout)["left_out"], 1)
        done = self.validate(path, "--where", "batch", code=2)
        self.assertIn("--where takes KEY=VALUE, not 'batch'", done.stderr)
        done = self.validate(path, "--where", "bach=2", code=2)
        self.assertIn("(known: model, batch, latency_s", done.stderr)
        self.validate(path, "--where", "batch=1", "--where", "batch=2", code=2)
        self.assertIn("--where selects none", self.validate(path, "--where", "batch=3", code=1).stderr)
        loads = self.rows("matmul,8x8x8,0.01,1", "copy,8,0.01,1", header="op,shape,latency_s,energy_j")
        done = self.validate(loads, "--where", "op=copy", "--json")
        self.assertEqual([r["name"] for r in json.loads(done.stdout)["rows"]], ["copy 8 fp32"])


# ---- hostile names ----

ODD = "\x1b[31mred\r\nline\u202egpj"
BAD = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufffd]")


class Help(unittest.TestCase):
    def test_examples_of_help_work(self):
        example = re.search(r"--context NUMBERS .*: (\S+)\n", ipw(None, "estimate", "--help").stdout)[1]
        done = ipw(None, "estimate", "--model", "llama-3.2-1b", "--hardware", GPU, "--context", example)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_listed_model_is_estimated(self):
        listed = ipw(None, "list", "models").stdout
        name = re.search(r"^  (\S+) +shipped: ", listed, re.M)
        done = ipw(None, "estimate", "--model", name[1], "--hardware", GPU)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        done = ipw(None, "estimate", "--model", "ipw-of-no-size", "--hardware", GPU)
        self.assertIn("neither a supported model file nor the name of a model", done.stderr)


class HostileNames(FileTest):
    def clean(self, *arguments, code=0, lines=1):
        done = ipw(None, "estimate", *arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIsNone(BAD.search(done.stdout + done.stderr), done.stdout + done.stderr)
        if code:
            self.assertEqual(done.stderr.count("\n"), lines, done.stderr)
        return done

    def test_hostile_names_of_onnx_nodes_and_operators(self):
        raw = ODD.encode() + b"\xff\xfe"
        path = self.onnx([node("MatMul", ["x", "w"], [raw], raw), node(raw, [raw], ["y"], b"\x1b[2J"),
                          node("Relu", ["y"], ["z"])],
                         [info("x", [4, 16])], [info("z")], [weight("w", [16, 32])])
        for more in ([], ["--json"], ["--format", "md"], ["--format", "csv", "-v"], ["--graph", "dot"],
                     ["--graph", "mermaid"]):
            with self.subTest(more):
                done = self.clean("--model", path, "--hardware", GPU, *more)
                if more == ["--json"]:
                    names = [row["name"] for row in json.loads(done.stdout)["subgraphs"]]
                    self.assertTrue(any("\\x1b[31mred" in name for name in names), names)
        path = self.onnx([node("Relu", [raw], ["z"], raw)], [info("x", [4])], [info("z")])
        self.clean("--model", path, "--hardware", GPU, code=1)
        path = self.onnx([node("Relu", [raw], ["z"])], [info(raw)], [info("z")])
        self.clean("--model", path, "--hardware", GPU, code=2)

    def test_hostile_names_in_hardware_files(self):
        for change in ({ODD: 1}, {"name": ODD}, {"id": ODD}, {"class": ODD}, {"aliases": [ODD]},
                       {"name": "\u202emirrored"}, {"matrix": {ODD: {}}}):
            with self.subTest(change):
                self.clean("--model", "resnet18", "--hardware-file", self.device(**change), code=1)

    def test_hostile_names_in_legacy_file(self):
        legacy = {"flops": {ODD: 1}, "joules_per_flop": {"fp32": 1}, "bytes_per_s": 1,
                  "joules_per_byte": 1, "threads": 1, "launch_s": 1}
        path = self.write("legacy.json", json.dumps({"id": ODD, "name": ODD, "legacy": legacy}))
        self.clean("--model", "resnet18", "--model-compat", "--hardware-file", path, code=1)
        legacy["flops"] = {"fp32": 1e12}
        path = self.write("legacy.json", json.dumps({"id": ODD, "name": ODD, "legacy": legacy}))
        self.clean("--model", "resnet18", "--model-compat", "--hardware-file", path)

    def test_hostile_names_in_csv_files(self):
        cell = f'"{ODD}"'
        path = self.write("c.csv", f"op,shape,dtype,latency_s,energy_j\nmatmul,8x8x8,{cell},1,1\n")
        self.clean("calibrate", "--csv", path, code=1)
        self.clean("validate", "--hardware", GPU, "--csv", path, code=1)
        path = self.write("v.csv", f"model,runtime,latency_s\nresnet18,{cell},1\n")
        self.clean("validate", "--hardware", GPU, "--csv", path)
        self.clean("validate", "--hardware", GPU, "--csv", path, "--json")

    def test_hostile_names_in_config_and_safetensors(self):
        path = self.write("config.json", json.dumps({"model_type": ODD}))
        self.clean("--model", path, "--hardware", GPU, code=1)
        header = json.dumps({ODD: {"dtype": ODD, "shape": [1], "data_offsets": [0, 4]}}).encode()
        path = self.write("m.safetensors", len(header).to_bytes(8, "little") + header + bytes(4))
        self.clean("--model", path, "--hardware", GPU, code=1)

    def test_hostile_file_name(self):
        path = self.onnx([node("Relu", ["x"], ["z"])], [info("x", [4])], [info("z")],
                         name="\x1b[31m\u202e.onnx")
        self.clean("--model", path, "--hardware", GPU)


if __name__ == "__main__":
    unittest.main()
