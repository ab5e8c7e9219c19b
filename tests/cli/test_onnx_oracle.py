#!/usr/bin/env python3
"""ONNX files against the onnx package, which writes models and infers shapes; all operator models of Debian's package
are read.  $IPW_PYTHON may name an interpreter that has the package; without it the test is skipped."""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
import oracle

oracle.use()
try:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper, shape_inference
except ImportError as error:
    print(f"skipped: {error} (set IPW_PYTHON to an interpreter that has onnx)")
    sys.exit(77)
import onnx_models
from onnx_models import Writer
from program import TIMEOUT_S

BUILD = Path(os.environ.get("IPW_BUILD", "build")).resolve()
TOOL = BUILD / "tests/tools/onnx_show"
DEBIAN = Path("/usr/share/libonnx-testdata/data")


def run(*arguments, **more):
    return subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, timeout=TIMEOUT_S,
                          **more)


def known_shapes(graph):
    """Dimensions by name of each tensor whose shape is fully known."""
    for value in [*graph.value_info, *graph.output]:
        kind = value.type.tensor_type
        if not value.type.HasField("tensor_type") or not kind.HasField("shape"):
            continue
        dims = [dim.dim_value if dim.HasField("dim_value") else None for dim in kind.shape.dim]
        if None not in dims:
            yield value.name, dims


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="ipw-onnx-")
        cls.addClassCleanup(folder.cleanup)
        cls.scratch = Path(folder.name)

    def save(self, model):
        path = self.scratch / "model.onnx"
        path.write_bytes(model.SerializeToString())
        return path

    def show(self, model, *arguments, says=None):
        done = run(self.save(model), *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        if says:
            self.assertIn(says, done.stderr)
        else:
            self.assertEqual(done.stderr, "")
        return json.loads(done.stdout)

    def read(self, model, *arguments, **more):
        shown = self.show(model, *arguments, **more)
        self.assertNotIn("error", shown)
        return shown

    def refused(self, model, *arguments):
        """The one-line error message."""
        shown = self.show(model, *arguments)
        self.assertIn("error", shown)
        self.assertNotIn("\n", shown["error"])
        return shown["error"]

    def assert_shapes(self, model, shown, at_least):
        """Tensors known to both have the same shape; at least this many are compared."""
        inferred = shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
        ours = {tensor["name"]: tensor["dims"] for tensor in shown["tensors"]}
        compared = 0
        for name, dims in known_shapes(inferred.graph):
            if name in ours:
                self.assertEqual(ours[name], dims, name)
                compared += 1
        self.assertGreaterEqual(compared, at_least)


class Counts(Case):
    """Published parameter and MAC counts of models."""

    def test_resnets(self):
        for depth, parameters, macs in ((18, 11_689_512, 1_814_073_344),
                                        (50, 25_557_032, 4_089_184_256)):
            model = onnx_models.resnet(depth)
            shown = self.read(model)
            self.assertEqual((shown["parameters"], shown["macs"]), (parameters, macs))
            self.assertEqual((shown["unknown"], shown["is_guessed"]), (0, False))
            self.assert_shapes(model, shown, len(model.graph.node))

    def test_weights_in_constant_nodes(self):
        shown = self.read(onnx_models.resnet(18, weights="constants"))
        self.assertEqual((shown["parameters"], shown["macs"]), (11_689_512, 1_814_073_344))

    def test_weights_in_a_missing_file(self):
        shown = self.read(onnx_models.resnet(18, weights="outside"), says="weights.bin")
        self.assertEqual((shown["parameters"], shown["macs"]), (11_689_512, 1_814_073_344))
        (self.scratch / "weights.bin").touch()
        self.read(onnx_models.resnet(18, weights="outside"))
        (self.scratch / "weights.bin").unlink()

    def test_batch_norm_statistics_are_buffers(self):
        shown = self.read(onnx_models.resnet(18))
        roles = {tensor["name"]: tensor["role"] for tensor in shown["tensors"]}
        self.assertEqual(roles["bn1.weight"], "parameter")
        self.assertEqual(roles["bn1.running_var"], "buffer")

    def test_mobilenet_v2(self):
        for batch in (1, 3):
            shown = self.read(onnx_models.mobilenet_v2(), batch)
            self.assertEqual((shown["parameters"], shown["macs"]), (3_504_872, batch * 300_774_272))

    def test_transformer(self):
        """Counted by hand: four projections, two of four times the width, attention scores and values."""
        batch, tokens, width = 2, 7, 64
        shown = self.read(onnx_models.transformer(), 0, f"batch={batch},tokens={tokens}")
        self.assertEqual(shown["parameters"],
                         100 * width + 12 * width * width + 4 * width + 5 * width + 2 * width)
        self.assertEqual(shown["macs"], batch * tokens * 12 * width * width +
                         2 * batch * tokens * tokens * width)
        self.assertEqual((shown["batch"], shown["tokens"]), (batch, batch * tokens))
        ops = [node["op"] for node in shown["nodes"]]
        self.assertEqual((ops.count("linear"), ops.count("matmul"), ops.count("embedding")), (6, 2, 1))
        self.assertEqual({node["layer"] for node in shown["nodes"] if node["op"] == "linear"}, {0})
        self.assertNotIn("Shape", [node["label"] for node in shown["nodes"]])
        fixed = onnx_models.transformer(batch, tokens)
        self.assert_shapes(fixed, self.read(fixed), 20)

    def test_counts_of_recurrent_layers(self):
        for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
            model = onnx_models.recurrent(op)
            shown = self.read(model)
            self.assertEqual(shown["parameters"], 2 * gates * 16 * (8 + 16 + 2))
            self.assertEqual(shown["macs"], 2 * 5 * 2 * gates * 16 * (8 + 16))
            self.assertEqual(shown["batch"], 2)
            self.assert_shapes(model, shown, 2)

    def test_tied_and_transposed_weights_count_once(self):
        out = Writer()
        table = out.weight("table", [50, 16])
        x = out.node("Gather", table, out.input("ids", [1, 4], TensorProto.INT64))
        y = out.node("MatMul", x, out.node("Transpose", out.node("Identity", table), perm=[1, 0]))
        shown = self.read(out.model(y))
        self.assertEqual((shown["parameters"], shown["macs"]), (800, 4 * 16 * 50))
        self.assertEqual([node["op"] for node in shown["nodes"]], ["embedding", "linear"])

    def test_split_and_concatenated_weights_are_folded(self):
        """torch reorders gates into ONNX's order in the graph: this is not part of a pass."""
        for weights in ("raw", "constants"):
            out = Writer(weights)

            def ordered(name, dims):
                whole = out.weight(name, dims)
                pieces = [out.node("Slice", whole, out.integers(begin), out.integers(end),
                                   out.integers(0))
                          for begin, end in ((0, 16), (48, 64), (16, 48))]
                return out.node("Concat", *pieces, axis=0)

            biases = out.node("Concat", ordered("bias_ih", [64]), ordered("bias_hh", [64]), axis=0)
            x = out.input("x", [5, 2, 8])
            y, last = out.node(
                "LSTM", x, *(out.node("Unsqueeze", each, out.integers(0)) for each in
                             (ordered("w", [64, 8]), ordered("r", [64, 16]), biases)),
                outputs=2, hidden_size=16)
            head = out.node("Split", out.weight("heads", [16, 6]), axis=1, outputs=2)
            ends = [out.node("MatMul", last, each) for each in head]
            model = out.model(y, *ends)
            shown = self.read(model)
            self.assertEqual(shown["parameters"], 64 * 8 + 64 * 16 + 2 * 64 + 96)
            self.assertEqual(shown["macs"], 5 * 2 * 64 * (8 + 16) + 2 * 16 * 6)
            self.assertEqual([node["op"] for node in shown["nodes"]], ["lstm", "linear", "linear"])
            self.assert_shapes(model, shown, 4)

    def test_concatenated_filters(self):
        out = Writer()
        filters = out.node("Concat", out.weight("a", [2, 3, 3, 3]), out.weight("b", [4, 3, 3, 3]), axis=0)
        model = out.model(out.node("Conv", out.input("x", [1, 3, 5, 5]), filters))
        shown = self.read(model)
        self.assertEqual((shown["parameters"], shown["macs"]), (162, 9 * 162))

    def test_quantized_weights(self):
        out = Writer()
        x = out.input("x", [1, 8, 10, 10], TensorProto.UINT8)
        scale, zero = "scale", "zero"
        out.tensors += [numpy_helper.from_array(np.float32(0.5), scale),
                        numpy_helper.from_array(np.uint8(3), zero)]
        weight = out.weight("w", [4, 8, 3, 3], TensorProto.INT8)
        out.tensors.append(numpy_helper.from_array(np.int8(0), "zero_w"))
        y = out.node("QLinearConv", x, scale, zero, weight, scale, "zero_w", scale, zero)
        y = out.node("DequantizeLinear", y, scale, zero)
        v = out.node("DequantizeLinear", out.weight("v", [6, 4], TensorProto.INT8), scale)
        z = out.node("Gemm", out.node("ReduceMean", y, axes=[2, 3], keepdims=0), v, transB=1)
        model = out.model(z)
        shown = self.read(model)
        self.assertEqual(shown["parameters"], 4 * 8 * 9 + 24)
        self.assertEqual(shown["macs"], 64 * 4 * 8 * 9 + 24)
        stored = {tensor["name"]: tensor["stored_bytes"] for tensor in shown["tensors"]}
        self.assertEqual((stored["w"], stored["v"]), (288, 24))
        self.assert_shapes(model, shown, 3)

    def test_four_bit_weights(self):
        out = Writer()
        packed = out.weight("w", [48, 2, 16], TensorProto.UINT8)  # 48 x 64 elements in blocks of 32
        out.nodes.append(helper.make_node(
            "MatMulNBits", [out.input("x", [2, 5, 64]), packed, out.weight("s", [96])], ["y"],
            domain="com.microsoft", N=48, K=64, bits=4, block_size=32))
        shown = self.read(out.model("y"))
        self.assertEqual((shown["parameters"], shown["macs"]), (48 * 64, 10 * 48 * 64))
        self.assertEqual(shown["tensors"][-1]["dims"], [2, 5, 48])
        stored = {tensor["name"]: tensor["stored_bytes"] for tensor in shown["tensors"]}
        self.assertEqual(stored["w"], 48 * 32)

    def test_macs_for_any_contracted_axis(self):
        for op, shapes, settings, macs in (
                ("Gemm", ([5, 3], [5, 7]), {"transA": 1}, 3 * 5 * 7),
                ("Einsum", ([2, 3, 4], [2, 5, 3]), {"equation": "bsi,bjs->bij"}, 2 * 3 * 4 * 5),
                ("Einsum", ([2, 6, 3, 4], [2, 6, 5, 4]), {"equation": "bhid,bhjd->bhij"},
                 2 * 6 * 3 * 4 * 5),
                ("MatMul", ([3], [3, 4]), {}, 12), ("MatMul", ([7, 1, 2, 3], [5, 3, 4]), {}, 7 * 5 * 24)):
            out = Writer()
            names = [out.input(f"x{i}", shape) for i, shape in enumerate(shapes)]
            model = out.model(out.node(op, *names, **settings))
            shown = self.read(model)
            self.assertEqual(shown["macs"], macs, (op, settings))
            self.assert_shapes(model, shown, 1)

    def test_attention_of_onnx_runtime(self):
        out = Writer()
        x = out.input("x", [2, 5, 32])
        y = out.nodes.append(helper.make_node(
            "Attention", [x, out.weight("w", [32, 96]), out.weight("b", [96])], ["y"],
            domain="com.microsoft", num_heads=4)) or "y"
        z = out.nodes.append(helper.make_node(
            "SkipLayerNormalization", [y, x, out.weight("g", [32]), out.weight("h", [32])], ["z"],
            domain="com.microsoft")) or "z"
        shown = self.read(out.model(z))
        self.assertEqual(shown["macs"], 2 * 5 * 32 * 96 + 2 * 2 * 25 * 32)
        self.assertEqual([node["op"] for node in shown["nodes"]],
                         ["linear", "attention", "add", "layer_norm"])

    def test_attention_of_opset_23(self):
        out = Writer(opset=23)
        q = out.input("q", [2, 8, 5, 16])
        k, v = out.input("k", [2, 2, 9, 16]), out.input("v", [2, 2, 9, 12])
        model = out.model(out.node("Attention", q, k, v))
        shown = self.read(model)
        self.assertEqual(shown["macs"], 2 * 8 * 5 * 9 * (16 + 12))
        self.assert_shapes(model, shown, 1)


class Quantized(Case):
    """Files with 8-bit tensors, which are stored and computed in 8 bits."""

    def precisions(self, shown):
        return [node["precision"] for node in shown["nodes"] if node["macs"]]

    def test_qdq_pairs_are_fused(self):
        """Except for the quantization of the input, the nodes are those of the float model."""
        floats = self.read(onnx_models.small_net())
        for quantize in "qdq", "trained":
            shown = self.read(onnx_models.small_net(quantize))
            self.assertEqual([node["op"] for node in shown["nodes"]],
                             ["unary", *(node["op"] for node in floats["nodes"])])
            for key in "parameters", "macs":
                self.assertEqual(shown[key], floats[key], key)
            self.assertEqual(self.precisions(shown), ["int8"] * 3)
            self.assertEqual((shown["file_precision"], shown["floats"]), ("int8", "fp32"))
            self.assertEqual(self.precisions(floats), ["fp32"] * 3)
            stored = {tensor["name"]: tensor["stored_bytes"] for tensor in shown["tensors"]}
            self.assertEqual([stored[name] for name in ("w1", "w2", "w3")], [216, 576, 80])
        self.assertEqual((floats["file_precision"], floats["floats"]), ("fp32", "fp32"))

    def test_tensor_read_in_both_precisions_is_quantized_by_kernel(self):
        out = Writer()
        out.tensors += [numpy_helper.from_array(np.float32(0.5), "scale")]
        x = out.node("Relu", out.input("x", [4, 8]))
        y = out.node("DequantizeLinear", out.node("QuantizeLinear", x, "scale"), "scale")
        model = out.model(out.node("Add", y, x))
        self.assertEqual([node["label"] for node in self.read(model)["nodes"]],
                         ["Relu", "QuantizeLinear", "Add"])
        model = out.model(y)  # an output is in floats again
        self.assertEqual([node["label"] for node in self.read(model)["nodes"]],
                         ["Relu", "DequantizeLinear"])

    def test_integer_operators(self):
        out = Writer()
        out.tensors += [numpy_helper.from_array(np.float32(0.5), "s"), numpy_helper.from_array(np.uint8(3), "z"),
                        numpy_helper.from_array(np.int8(0), "zw")]
        x = out.node("QuantizeLinear", out.input("x", [1, 4, 8, 8]), "s", "z")
        x = out.node("QLinearConv", x, "s", "z", out.weight("w1", [4, 4, 3, 3], TensorProto.INT8), "s", "zw", "s", "z")
        y = out.node("ConvInteger", x, out.weight("w2", [4, 4, 3, 3], TensorProto.INT8), "z", "zw")
        x = out.node("Reshape", x, out.integers(1, 144))
        x = out.node("QLinearMatMul", x, "s", "z", out.weight("w3", [144, 16], TensorProto.INT8), "s", "zw", "s", "z")
        v = out.node("MatMulInteger", x, out.weight("w4", [16, 8], TensorProto.INT8), "z", "zw")
        f = out.input("f", [2, 16])
        codes, scale, zero = out.node("DynamicQuantizeLinear", f, outputs=3)
        u = out.node("MatMulInteger", codes, out.weight("w5", [16, 8], TensorProto.INT8), zero, "zw")
        out.nodes.append(helper.make_node(
            "DynamicQuantizeMatMul", [f, out.weight("w6", [16, 8], TensorProto.INT8), "s"], ["d"],
            domain="com.microsoft"))
        shown = self.read(out.model(y, v, u, "d"))
        self.assertEqual(self.precisions(shown), ["int8"] * 6)
        self.assertEqual(shown["macs"], 36 * 4 * 36 + 16 * 4 * 36 + 144 * 16 + 16 * 8 + 2 * 2 * 16 * 8)
        self.assertEqual((shown["file_precision"], shown["parameters"]),
                         ("int8", 2 * 144 + 144 * 16 + 3 * 128))

    def test_weight_only_quantization_computes_in_floats(self):
        for kind in TensorProto.FLOAT, TensorProto.FLOAT16:
            out = Writer()
            x = out.input("x", [2, 64], kind)
            scale = numpy_helper.from_array(np.ones([], np.float32 if kind == TensorProto.FLOAT else np.float16), "s")
            out.tensors.append(scale)
            x = out.node("MatMul", x, out.node("DequantizeLinear", out.weight("w", [64, 64], TensorProto.INT8), "s"))
            out.nodes.append(helper.make_node(
                "MatMulNBits", [x, out.weight("v", [48, 2, 16], TensorProto.UINT8), out.weight("t", [96])], ["y"],
                domain="com.microsoft", N=48, K=64, bits=4, block_size=32))
            shown = self.read(out.model("y"))
            name = "fp32" if kind == TensorProto.FLOAT else "fp16"
            self.assertEqual(self.precisions(shown), [name] * 2)
            self.assertEqual((shown["file_precision"], shown["floats"]), (name, name))

    def test_precision_is_that_of_most_macs(self):
        """A model with one of three products in floats."""
        out = Writer()
        out.tensors.append(numpy_helper.from_array(np.float32(0.5), "s"))
        x = out.input("x", [2, 64])

        def codes(x):
            return out.node("DequantizeLinear", out.node("QuantizeLinear", x, "s"), "s")

        for i in range(2):
            x = out.node("MatMul", codes(x),
                         out.node("DequantizeLinear", out.weight(f"w{i}", [64, 64], TensorProto.INT8), "s"))
        shown = self.read(out.model(out.node("MatMul", x, out.weight("v", [64, 32]))))
        self.assertEqual((self.precisions(shown), shown["file_precision"]), (["int8", "int8", "fp32"], "int8"))

    def test_fp8(self):
        out = Writer(opset=19)
        out.tensors += [numpy_helper.from_array(np.float32(0.5), "s"),
                        helper.make_tensor("z", TensorProto.FLOAT8E4M3FN, [], [0.0])]
        x = out.node("DequantizeLinear", out.node("QuantizeLinear", out.input("x", [2, 64]), "s", "z"), "s")
        w = out.node("DequantizeLinear", out.weight("w", [64, 64], TensorProto.FLOAT8E4M3FN), "s")
        shown = self.read(out.model(out.node("MatMul", x, w)))
        self.assertEqual((self.precisions(shown), shown["file_precision"]), (["fp8"], "fp8"))


class RandomAttributes(Case):
    """Random attributes of operators with complex shape rules."""
    ROUNDS = 400

    def window(self, out, pick):
        space = pick.integers(1, 4)
        numbers = lambda low, high: pick.integers(low, high + 1, space).tolist()
        kernel, settings = numbers(1, 4), {"strides": numbers(1, 3)}
        if pick.random() < 0.3:
            settings["auto_pad"] = ("SAME_UPPER", "SAME_LOWER", "VALID")[pick.integers(3)]
        elif pick.random() < 0.7:
            settings["pads"] = [min(pad, size // 2) for pad, size in
                                zip(numbers(0, 2), kernel)] * 2
        x = out.input("x", [2, 4, *numbers(5, 12)])
        op = ("Conv", "MaxPool", "AveragePool", "ConvTranspose")[pick.integers(4)]
        if op == "ConvTranspose":
            settings.pop("auto_pad", None)
            settings["output_padding"] = [stride - 1 for stride in settings["strides"]]
            return out.node(op, x, out.weight("w", [4, 3, *kernel]), kernel_shape=kernel, **settings)
        if op == "Conv":
            groups = int(2 ** pick.integers(3))
            return out.node(op, x, out.weight("w", [8, 4 // groups, *kernel]), kernel_shape=kernel,
                            group=groups, **settings)
        return out.node(op, x, kernel_shape=kernel, **settings)

    def slice(self, out, pick):
        rank = pick.integers(1, 5)
        axes = pick.permutation(rank)[:pick.integers(1, rank + 1)]
        numbers = lambda low, high: out.integers(*pick.integers(low, high + 1, len(axes)).tolist())
        steps = [int(pick.choice([1, 2, 3, -1, -2])) for _ in axes]
        return out.node("Slice", out.input("x", pick.integers(1, 10, rank).tolist()),
                        numbers(-11, 11), numbers(-11, 11), out.integers(*axes.tolist()),
                        out.integers(*steps))

    def broadcast(self, out, pick):
        shapes = [pick.choice([1, 3], pick.integers(0, 5)).tolist() for _ in range(2)]
        return out.node("Mul", *(out.input(f"x{i}", shape) for i, shape in enumerate(shapes)))

    def gather(self, out, pick):
        rank = pick.integers(1, 5)
        return out.node("Gather", out.input("x", pick.integers(1, 7, rank).tolist()), out.input(
            "i", pick.integers(1, 4, pick.integers(0, 4)).tolist(), TensorProto.INT64),
                        axis=int(pick.integers(-rank, rank)))

    def test_shapes_agree(self):
        pick, paths, wanted = np.random.default_rng(11), [], []
        makers = (self.window, self.slice, self.broadcast, self.gather)
        for number in range(self.ROUNDS):
            out = Writer()
            model = out.model(makers[number % len(makers)](out, pick))
            try:
                inferred = shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
            except shape_inference.InferenceError:
                continue  # window larger than its input
            shapes = dict(known_shapes(inferred.graph))
            if any(dim < 0 for dims in shapes.values() for dim in dims):
                continue
            paths.append(self.scratch / f"{number}.onnx")
            paths[-1].write_bytes(model.SerializeToString())
            wanted.append(shapes)
        self.assertGreater(len(paths), self.ROUNDS // 2)
        lines = run("-", input="".join(f"{path}\n" for path in paths)).stdout.splitlines()
        for path, shapes, line in zip(paths, wanted, lines, strict=True):
            shown = json.loads(line)
            ours = {tensor["name"]: tensor["dims"] for tensor in shown.get("tensors", ())}
            for name, dims in shapes.items():
                self.assertEqual(ours.get(name), dims, (
                    name, shown.get("error"), str(onnx.load(path).graph)))

    def test_window_beyond_input_is_dropped(self):
        """As in the ONNX specification and torch; ONNX's shape inference differs."""
        out = Writer()
        model = out.model(out.node("MaxPool", out.input("x", [1, 1, 2, 2]), kernel_shape=[1, 1],
                                   strides=[2, 2], ceil_mode=1))
        self.assertEqual(self.read(model)["tensors"][-1]["dims"], [1, 1, 1, 1])


class DynamicDimensions(Case):
    """Dynamic dimensions of a file."""

    def model(self, dims, **more):
        out = Writer()
        x = out.input("x", dims)
        return out.model(out.node("Relu", x), **more)

    def test_dynamic_dimensions_are_requested_by_name(self):
        said = self.refused(self.model(["batch", 3, "height", "width"]))
        self.assertIn("unknown size of height, width:", said)
        self.assertIn("--image HxW or --dim height=224", said)
        self.assertIn("inputs: x [batch, 3, height, width]", said)
        self.assertIn("x.1", self.refused(self.model([1, None])))

    def test_all_inputs_are_listed_with_their_shapes(self):
        out = Writer()
        ids = out.input("ids", ["batch", "sequence_length"], TensorProto.INT64)
        mask = out.input("mask", ["batch", 1, None, 7], TensorProto.INT64)
        said = self.refused(out.model(out.node("Relu", ids), out.node("Relu", mask)))
        self.assertIn("--prompt-tokens N or --dim sequence_length=128", said)
        self.assertIn("inputs: ids [batch, sequence_length]; mask [batch, 1, ?, 7]", said)
        out = Writer()
        names = [out.input(f"input_{i:02}", ["batch", "length"]) for i in range(40)]
        said = self.refused(out.model(out.node("Sum", *names)))
        self.assertRegex(said, r"inputs: input_00 \[batch, length\]; .*; \d+ more$")

    def test_dynamic_batch_defaults_to_1(self):
        for first in ("batch", "decoder_batch_size", "N", "whatever", None, "?"):
            self.assertEqual(self.read(self.model([first, 4]))["tensors"][0]["dims"], [1, 4])
        self.assertIn("samples", self.refused(self.model(["samples"])))  # audio samples, not a batch

    def test_given_input_shape(self):
        model = self.model(["batch", 3, "height", "width"])
        shown = self.read(model, 0, "x=2x3x64x48")
        self.assertEqual((shown["tensors"][0]["dims"], shown["batch"]), ([2, 3, 64, 48], 2))
        for wrong, said in (("x=2x3x64", "number of dimensions differs"), ("x=2x4x64x48", "that the file fixes"),
                            ("x=2x3x64x0", "not a shape")):
            message = self.refused(model, 0, wrong)
            self.assertIn(said, message)
            self.assertIn("x [batch, 3, height, width]" if "shape" not in said else "1x3x224x224", message)
        self.assertIn("no dynamic dimension", self.refused(self.model([1, 4]), 0, "x=1x4"))
        self.assertIn("--batch", self.refused(self.model([1, 3, "h", "w"]), 0, "x=2x3x8x8"))

    def test_misspelled_dimension_is_reported_first(self):
        said = self.refused(self.model(["batch", 3, "height", "width"]), 0, "heihgt=640")
        self.assertRegex(said, "^--dim heihgt: .* has no dynamic dimension, input or loop of that name; inputs: x ")

    def test_sum_of_dimensions(self):
        """As in the mask of a decoder, which precedes the KV cache input that has the other dimension."""
        out = Writer()
        mask = out.input("mask", ["batch", "past_sequence_length + sequence_length"])
        more = out.input("more", ["batch", "past_sequence_length + 1"])
        past = out.input("past", ["batch", 4, "past_sequence_length", 8])
        ids = out.input("ids", ["batch", "sequence_length"], TensorProto.INT64)
        model = out.model(*(out.node("Relu", x) for x in (mask, more, past, ids)))
        shown = self.read(model, 0, "past_sequence_length=20,sequence_length=3")
        dims = {tensor["name"]: tensor["dims"] for tensor in shown["tensors"]}
        self.assertEqual([dims[name] for name in ("mask", "more", "past", "ids")],
                         [[1, 23], [1, 21], [1, 4, 20, 8], [1, 3]])
        shown = self.read(model, 0, "past_sequence_length + sequence_length=50,past_sequence_length=20,sequence_length=3")
        self.assertEqual(shown["tensors"][0]["dims"], [1, 50])
        said = self.refused(model)
        self.assertIn("unknown size of past_sequence_length, sequence_length:", said)

    def test_given_shape_binds_dimensions_of_other_inputs(self):
        out = Writer()
        first = out.input("first", ["batch", "length"])  # bound by the other, later input
        y = out.node("MatMul", first, out.input("second", ["length", "width"]))
        model = out.model(y)
        shown = self.read(model, 0, "second=16x24,batch=5")
        self.assertEqual((shown["macs"], shown["tensors"][0]["dims"]), (5 * 16 * 24, [5, 16]))
        self.assertIn("differ in size", self.refused(model, 0, "first=5x17,second=16x24"))


    def test_given_dimensions_are_used(self):
        shown = self.read(self.model(["batch", 3, "side", "side"]), 0, "batch=8,side=32")
        self.assertEqual(shown["tensors"][0]["dims"], [8, 3, 32, 32])
        self.assertEqual(self.read(self.model([None, 4]), 0, "x.0=6")["batch"], 6)

    def test_dimensions_without_valid_name(self):
        """Paddle names every dynamic dimension "?"."""
        model = self.model(["?", 3, "?", "?"])
        self.assertIn("x.2, x.3", self.refused(model))
        shown = self.read(model, 2, "x.2=32,x.3=64")
        self.assertEqual(shown["tensors"][0]["dims"], [2, 3, 32, 64])

    def test_batch_is_first_dimension(self):
        for first in ("batch", "N", "whatever", None):
            self.assertEqual(self.read(self.model([first, 4]), 5)["tensors"][0]["dims"], [5, 4])

    def test_invalid_names_and_sizes(self):
        self.assertIn("--dim other", self.refused(self.model(["batch", 4]), 2, "other=3"))
        self.assertIn("not a size", self.refused(self.model(["batch", 4]), 0, "batch=many"))
        self.assertIn("not a size", self.refused(self.model(["batch", 4]), 0, "batch=0"))

    def test_batch_overrides_fixed_batch(self):
        self.assertEqual(self.read(onnx_models.resnet(18), 4)["macs"], 4 * 1_814_073_344)

    def test_rejects_batch_fixed_in_graph(self):
        out = Writer()
        y = out.node("Reshape", out.input("x", [1, 3, 4]), out.integers(1, -1, 2))
        model = out.model(y)
        model.graph.output[0].CopyFrom(helper.make_tensor_value_info(y, TensorProto.FLOAT, [1, 6, 2]))
        self.read(model, 1)
        self.assertIn("batch of 1 is fixed in its graph", self.refused(model, 2))


class Subgraphs(Case):
    """Subgraphs of nodes, unknown operators, unordered nodes."""

    def branch(self, op, name):
        return helper.make_graph([helper.make_node(op, ["x"], [name])], name, [],
                                 [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3])])

    def conditional(self, condition):
        out = Writer()
        out.input("x", [2, 3])
        if condition is None:
            out.input("c", [], TensorProto.BOOL)
        else:
            out.tensors.append(numpy_helper.from_array(np.array(condition), "c"))
        out.nodes.append(helper.make_node("If", ["c"], ["y"], then_branch=self.branch("Relu", "a"),
                                          else_branch=self.branch("Tanh", "b")))
        return out.model("y")

    def test_taken_branch_is_counted(self):
        for condition, label, guessed in ((True, "Relu", False), (False, "Tanh", False),
                                          (None, "Tanh", True)):
            shown = self.read(self.conditional(condition))
            self.assertEqual([node["label"] for node in shown["nodes"]], [label])
            self.assertEqual((shown["is_guessed"], len(shown["notes"])), (guessed, int(guessed)))

    def weighted(self, width, name, inside):
        """A branch that multiplies by a weight, its own or of the outer graph."""
        weight = numpy_helper.from_array(np.zeros((3, width), np.float32), f"{name}_weight")
        return helper.make_graph([helper.make_node("MatMul", ["x", weight.name], [f"{name}_t"]),
                                  helper.make_node("MatMul", [f"{name}_t", f"{name}_back"], [name])], name, [],
                                 [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3])],
                                 [weight] if inside else []), weight

    def test_weights_of_both_branches_are_in_memory(self):
        for inside in False, True:
            for first, second in ((5, 700), (700, 5)):
                out = Writer()
                out.input("x", [2, 3])
                out.input("c", [], TensorProto.BOOL)
                branches = []
                for width, name in ((first, "a"), (second, "b")):
                    branch, weight = self.weighted(width, name, inside)
                    out.weight(f"{name}_back", [width, 3])
                    out.tensors += [] if inside else [weight]
                    branches.append(branch)
                out.nodes.append(helper.make_node("If", ["c"], ["y"], name="choice", then_branch=branches[0],
                                                  else_branch=branches[1]))
                shown = self.read(out.model(out.node("Relu", "y")))
                self.assertEqual((shown["parameters"], shown["macs"]), (6 * 705, 2 * 6 * 700))
                self.assertEqual([node["label"] for node in shown["nodes"]], ["MatMul", "MatMul", "Relu"])
                self.assertIn(f"If 'choice' depends on data: its larger branch ({'then' if first > second else 'else'})",
                              shown["notes"][0])

    def test_branch_with_invalid_shapes_is_not_taken(self):
        out = Writer()
        out.input("x", [2, 3])
        out.input("c", [], TensorProto.BOOL)
        out.weight("w", [7, 5])
        wrong = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["a"])], "a", [],
                                  [helper.make_tensor_value_info("a", TensorProto.FLOAT, None)])
        for branches in (wrong, self.branch("Relu", "b")), (self.branch("Relu", "b"), wrong):
            out.nodes[:] = [helper.make_node("If", ["c"], ["y"], then_branch=branches[0], else_branch=branches[1])]
            self.assertEqual([node["label"] for node in self.read(out.model("y"))["nodes"]], ["Relu"])

    def loop(self, trips, condition="go", extra=(), limit=None, state=(2, 4)):
        """state = state @ w in each iteration, and the sum over the stacked states."""
        nodes = [helper.make_node("MatMul", ["state", "w"], ["next"]), *extra,
                 helper.make_node("Identity", [condition], ["on"]),
                 helper.make_node("Identity", ["next"], ["each"])]
        body = helper.make_graph(
            nodes, "body",
            [helper.make_tensor_value_info("i", TensorProto.INT64, []),
             helper.make_tensor_value_info("go", TensorProto.BOOL, []),
             helper.make_tensor_value_info("state", TensorProto.FLOAT, list(state))],
            [helper.make_tensor_value_info("on", TensorProto.BOOL, []),
             helper.make_tensor_value_info("next", TensorProto.FLOAT, list(state)),
             helper.make_tensor_value_info("each", TensorProto.FLOAT, list(state))],
            [numpy_helper.from_array(np.zeros((4, 4), np.float32), "w")])
        out = Writer()
        if limit is not None:
            out.tensors.append(numpy_helper.from_array(np.int64(limit), "limit"))
        trips = "" if trips is None else trips if isinstance(trips, str) else out.integers(trips)
        if trips == "trips":
            out.input("trips", [], TensorProto.INT64)
        out.nodes.append(helper.make_node("Loop", [trips, "", out.input("x", list(state))], ["y", "all"],
                                          name="repeat", body=body))
        return out.model("y", out.node("ReduceSum", "all"))

    def test_loop_is_counted_per_iteration(self):
        for trips in 1, 3, 50:
            shown = self.read(self.loop(trips))
            self.assertEqual((shown["macs"], shown["parameters"]), (trips * 32, 16))
            self.assertEqual((shown["is_guessed"], shown["notes"]), (False, []))
            dims = {tensor["name"]: tensor["dims"] for tensor in shown["tensors"]}
            self.assertEqual(dims["all"], [trips, 2, 4])  # the stacked states
            self.assertEqual(shown["elementwise"], trips * 8)
        shown = self.read(self.loop(0))
        self.assertEqual((shown["macs"], shown["parameters"]), (0, 0))

    def test_loop_that_ends_by_iteration_number(self):
        """A condition on the iteration number is evaluated: six iterations until it is not less than 5."""
        less = [helper.make_node("Less", ["i", "limit"], ["less"])]
        for trips in None, 1000, 9223372036854775807:
            shown = self.read(self.loop(trips, "less", less, 5) if trips is not None else
                              self.loop(trips, "less", less, 5), 0, *(["repeat=1000"] if trips != 1000 else []))
            self.assertEqual((shown["macs"], shown["is_guessed"]), (6 * 32, False))

    def test_loop_of_unknown_length(self):
        for trips in None, "trips":
            shown = self.read(self.loop(trips))
            self.assertEqual((shown["macs"], shown["is_guessed"]), (32, True))
            self.assertEqual(shown["notes"], ["Loop 'repeat' runs an unknown number of times: counted once; "
                                              "give it with --dim repeat=N"])
            shown = self.read(self.loop(trips), 0, "repeat=7")
            self.assertEqual((shown["macs"], shown["is_guessed"], shown["notes"]), (7 * 32, False, []))
            self.assertIn("not a number of iterations", self.refused(self.loop(trips), 0, "repeat=often"))
        self.assertIn("of that name", self.refused(self.loop(3), 0, "repeat=7"))  # it is 3

    def test_loop_that_may_end_early(self):
        depends = [helper.make_node("ReduceMax", ["next"], ["most"], keepdims=0),
                   helper.make_node("Cast", ["most"], ["ends"], to=TensorProto.BOOL)]
        shown = self.read(self.loop(10, "ends", depends))
        self.assertEqual((shown["macs"], shown["is_guessed"]), (320, True))
        self.assertEqual(shown["notes"], ["Loop 'repeat' may end early: all 10 iterations are counted"])

    def test_loop_state_that_grows(self):
        """One more row in each iteration, all of them multiplied: each iteration has its own shapes."""
        body = helper.make_graph(
            [helper.make_node("Concat", ["state", "row"], ["next"], axis=0),
             helper.make_node("MatMul", ["next", "w"], ["product"]),
             helper.make_node("ReduceSum", ["product"], ["each"], keepdims=0)], "body",
            [helper.make_tensor_value_info("i", TensorProto.INT64, []),
             helper.make_tensor_value_info("go", TensorProto.BOOL, []),
             helper.make_tensor_value_info("state", TensorProto.FLOAT, ["rows", 4])],
            [helper.make_tensor_value_info("go", TensorProto.BOOL, []),
             helper.make_tensor_value_info("next", TensorProto.FLOAT, ["rows", 4]),
             helper.make_tensor_value_info("each", TensorProto.FLOAT, [])])
        out = Writer()
        out.weight("w", [4, 5])
        out.input("row", [1, 4])
        out.nodes.append(helper.make_node("Loop", [out.integers(6), "", out.input("x", [2, 4])], ["y", "sums"],
                                          body=body))
        shown = self.read(out.model(out.node("MatMul", "y", "w"), "sums"))
        self.assertEqual(shown["macs"], (sum(range(3, 9)) + 8) * 20)
        self.assertEqual(shown["parameters"], 20)

    def scan(self, length, axis=0, features=6, hidden=4):
        """A recurrence in elementary operators: h = tanh(x w + h r)."""
        body = helper.make_graph(
            [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("MatMul", ["h", "r"], ["b"]),
             helper.make_node("Add", ["a", "b"], ["s"]), helper.make_node("Tanh", ["s"], ["next"]),
             helper.make_node("Identity", ["next"], ["out"])], "body",
            [helper.make_tensor_value_info("h", TensorProto.FLOAT, [2, hidden]),
             helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, features])],
            [helper.make_tensor_value_info("next", TensorProto.FLOAT, [2, hidden]),
             helper.make_tensor_value_info("out", TensorProto.FLOAT, [2, hidden])])
        out = Writer()
        out.weight("w", [features, hidden]), out.weight("r", [hidden, hidden])
        h = out.input("start", [2, hidden])
        dims = [2, features]
        dims.insert(axis, length)
        out.nodes.append(helper.make_node("Scan", [h, out.input("sequence", dims)], ["last", "all"], body=body,
                                          num_scan_inputs=1, scan_input_axes=[axis], scan_output_axes=[axis]))
        return out.model("last", "all")

    def test_scan_is_counted_per_slice(self):
        for length, axis in ((1, 0), (9, 0), (9, 1), (9, 2)):
            shown = self.read(self.scan(length, axis))
            self.assertEqual(shown["macs"], length * 2 * (6 * 4 + 4 * 4))
            self.assertEqual((shown["parameters"], shown["is_guessed"], shown["notes"]), (40, False, []))
            last = next(tensor for tensor in reversed(shown["tensors"]) if tensor["is_output"])
            dims = [2, 4]
            dims.insert(axis, length)
            self.assertEqual(last["dims"], dims)
        inferred = shape_inference.infer_shapes(self.scan(9, 1), strict_mode=True, data_prop=True)
        self.assertIn(("all", [2, 9, 4]), list(known_shapes(inferred.graph)))

    def test_nested_loops(self):
        inner = self.loop(4).graph.node[0].attribute[0].g
        del inner.output[2:]
        body = helper.make_graph(
            [helper.make_node("Loop", ["four", "", "outer"], ["after"], name="inner", body=inner)], "outer_body",
            [helper.make_tensor_value_info("j", TensorProto.INT64, []),
             helper.make_tensor_value_info("going", TensorProto.BOOL, []),
             helper.make_tensor_value_info("outer", TensorProto.FLOAT, [2, 4])],
            [helper.make_tensor_value_info("going", TensorProto.BOOL, []),
             helper.make_tensor_value_info("after", TensorProto.FLOAT, [2, 4])])
        out = Writer()
        out.tensors.append(numpy_helper.from_array(np.int64(4), "four"))
        out.nodes.append(helper.make_node("Loop", [out.integers(5), "", out.input("x", [2, 4])], ["y"], body=body))
        shown = self.read(out.model("y"))
        self.assertEqual((shown["macs"], shown["parameters"], shown["is_guessed"]), (20 * 32, 16, False))

    def test_long_loop_is_truncated(self):
        shown = self.read(self.loop(10_000_000))
        self.assertTrue(shown["is_guessed"])
        self.assertRegex(shown["notes"][0], r"Loop 'repeat' runs 10000000 times, too many to unroll: the first "
                         r"\d+ are counted")

    def test_unknown_operators_are_listed(self):
        out = Writer()
        out.nodes.append(helper.make_node("Conjure", [out.input("x", [2, 3])], ["y"], domain="odd"))
        shown = self.read(out.model(out.node("Relu", "y")))
        self.assertEqual((shown["unknown"], shown["is_guessed"]), (1, True))
        self.assertEqual([(node["label"], node["op"]) for node in shown["nodes"]],
                         [("Conjure", "unknown"), ("Relu", "relu")])
        self.assertEqual(shown["tensors"][-1]["dims"], [2, 3])

    def test_unordered_nodes(self):
        out = Writer()
        x = out.input("x", [1, 3])
        for _ in range(50):
            x = out.node("Relu", x)
        model = out.model(x)
        nodes = list(reversed(model.graph.node))
        del model.graph.node[:]
        model.graph.node.extend(nodes)
        self.assertEqual(len(self.read(model)["nodes"]), 50)


class InvalidFiles(Case):
    """Contradictory files: a one-line error with the location."""

    def relu(self, *edges, dims=(1, 2)):
        return helper.make_model(helper.make_graph(
            [helper.make_node("Add", list(inputs), [output], name=f"make_{output}")
             for *inputs, output in edges], "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, list(dims))],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]))

    def test_rejects_cycles(self):
        said = self.refused(self.relu(("x", "b", "a"), ("a", "x", "b"), ("b", "x", "y")))
        self.assertIn("cycle", said)
        self.assertIn("cycle", self.refused(self.relu(("x", "y", "y"))))

    def test_rejects_undefined_and_duplicate_names(self):
        self.assertIn("'nowhere' is not defined", self.refused(self.relu(("x", "nowhere", "y"))))
        self.assertIn("output of two nodes", self.refused(self.relu(("x", "x", "y"), ("x", "x", "y"))))
        self.assertIn("its output 'y' is not defined", self.refused(self.relu(("x", "x", "z"))))
        model = self.relu(("x", "w", "y"))
        for _ in range(2):
            model.graph.initializer.append(numpy_helper.from_array(np.zeros(2, np.float32), "w"))
        self.assertIn("'w' is defined more than once", self.refused(model))

    def test_rejects_invalid_shapes(self):
        model = self.relu(("x", "w", "y"))
        model.graph.initializer.append(TensorProto(name="w", dims=[-3], data_type=1))
        self.assertIn("negative", self.refused(model))
        model.graph.initializer[0].dims[:] = [1 << 40, 1 << 40]
        self.assertIn("too many elements", self.refused(model))
        model.graph.initializer[0].dims[:] = [1] * 9
        self.assertIn("more than 8 dimensions", self.refused(model))
        model.graph.initializer[0].dims[:] = [3]
        self.assertIn("node 'make_y' (Add)", self.refused(model))
        self.assertIn("too many elements",
                      self.refused(self.relu(("x", "x", "y"), dims=(1 << 62, 8))))

    def test_rejects_operands_that_do_not_fit(self):
        for op, shapes, settings in (
                ("MatMul", ([2, 3], [4, 5]), {}), ("Gemm", ([2, 3], [4, 5]), {}),
                ("Conv", ([1, 3, 8, 8], [4, 2, 3, 3]), {}),
                ("Conv", ([1, 3, 2, 2], [4, 3, 3, 3]), {}),
                ("Conv", ([1, 3, 8, 8], [4, 3, 3, 3]), {"strides": [0, 1]}),
                ("Concat", ([1, 3], [2, 4]), {"axis": 0}), ("Concat", ([1, 3], [1, 3]), {"axis": 5}),
                ("Transpose", ([2, 3],), {"perm": [0]}), ("Flatten", ([2, 3],), {"axis": 7})):
            out = Writer()
            names = [out.input(f"x{i}", shape) for i, shape in enumerate(shapes)]
            self.assertIn(f"({op})", self.refused(out.model(out.node(op, *names, **settings))))

    def test_rejects_deeply_nested_graphs(self):
        graph = b""
        for _ in range(5000):
            body = self.field(1, b"body") + self.field(6, graph)
            node = self.field(2, b"y") + self.field(4, b"If") + self.field(5, body)
            graph = self.field(1, node)
        path = self.scratch / "deep.onnx"
        path.write_bytes(b"\x08\x08" + self.field(7, graph))
        self.assertIn("nested too deeply", json.loads(run(path).stdout)["error"])

    def test_rejects_deeply_nested_types(self):
        """Twenty thousand nested sequence types, which would overflow the stack of a recursive reader."""
        kind = b""
        for _ in range(20000):
            kind = self.field(4, self.field(1, kind))  # sequence type
        info = self.field(1, b"x") + self.field(2, kind)
        path = self.scratch / "deep.onnx"
        path.write_bytes(b"\x08\x08" + self.field(7, self.field(11, info)))
        done = run(path)
        self.assertEqual(done.returncode, 0)
        self.assertTrue(json.loads(done.stdout)["is_guessed"])

    @staticmethod
    def field(number, body):
        """A length-delimited protobuf field."""
        length, size = len(body), b""
        while length > 127:
            size, length = size + bytes([length & 127 | 128]), length >> 7
        return bytes([number << 3 | 2]) + size + bytes([length]) + body


class GraphOutput(Case):
    """DOT and Mermaid: names stay within labels."""
    BOX = re.compile(r'  [nio]\d+ \[label="(?:[^"\\]|\\.)*"(, shape=ellipse)?\];')
    ARROW = re.compile(r'  [nio]\d+ -> [nio]\d+ \[label="[\dx]+"\];')
    MERMAID = re.compile(r'  [nio]\d+(\["[^"]*"\]|\(\["[^"]*"\]\)| -- "[\dx]+" --> [nio]\d+)')

    def model(self, name):
        out = Writer()
        x = out.input("x", [1, 2])
        out.nodes.append(helper.make_node("Relu", [x], ["y"], name=name))
        return out.model("y")

    def draw(self, how, model):
        done = run(how, self.save(model))
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout.splitlines()

    def test_hostile_names_stay_in_labels(self):
        for name in ('a"]; x', "a\\", 'b\n"] --> evil', "<b>&amp;</b>", "`x`", "#quot;", "é\x01", "]" * 300):
            model = self.model(name)
            lines = self.draw("--dot", model)
            self.assertRegex(lines[0], r'^digraph "model" \{$')
            self.assertEqual(lines[-1], "}")
            for line in lines[3:-1]:
                self.assertTrue(self.BOX.fullmatch(line) or self.ARROW.fullmatch(line), line)
            lines = self.draw("--mermaid", model)
            for line in lines[1:]:
                self.assertTrue(self.MERMAID.fullmatch(line), line)
                self.assertNotRegex(line.replace("<br/>", ""), "[<>`](?!-)(?<!-->)")

    def test_shapes_and_weights_are_shown(self):
        text = "\n".join(self.draw("--dot", onnx_models.resnet(18)))
        self.assertIn("Conv 64x3x7x7", text)
        self.assertRegex(text, r'n0 -> n1 \[label="1x64x112x112"\]')
        self.assertEqual(text.count(" -> "), 68 + 8 + 2)

    def test_large_graphs_are_drawn_in_groups(self):
        out = Writer()
        x = out.input("x", [1, 2])
        for _ in range(5000):
            x = out.node("Relu", x)
        model = out.model(x)
        for how, most in (("--dot", 1000), ("--mermaid", 250)):
            lines = self.draw(how, model)
            self.assertIn("5000 nodes, in runs of", "\n".join(lines))
            self.assertLess(len(lines), 2 * most + 12)


@unittest.skipUnless(DEBIAN.is_dir(), "Debian's libonnx-testdata is not installed")
class DebianModels(Case):
    """One model per operator, from ONNX's backend tests."""

    def test_all_models_are_read_and_shapes_agree(self):
        paths = sorted(DEBIAN.rglob("*.onnx"))
        self.assertGreater(len(paths), 1000)
        done = run("-", input="".join(f"{path}\n" for path in paths))
        self.assertEqual(done.returncode, 0)
        compared = folded = 0
        open_sizes, unlike = [], []
        for path, line in zip(paths, done.stdout.splitlines(), strict=True):
            shown, model = json.loads(line), onnx.load(path)
            if "error" in shown:
                self.assertIn("--dim", shown["error"])
                open_sizes.append(path.parent.name)
                continue
            names = {tensor["name"]: tensor["dims"] for tensor in shown["tensors"]}
            inferred = shape_inference.infer_shapes(model, data_prop=True)
            for name, dims in known_shapes(inferred.graph):
                if name not in names:
                    folded += 1
                    continue
                compared += 1
                if names[name] != dims:
                    unlike.append((path.parent.name, name, names[name], dims))
        self.assertEqual(unlike, [])
        self.assertGreater(compared, 2000)
        self.assertLess(len(open_sizes), 8, open_sizes)


if __name__ == "__main__":
    unittest.main()
