#!/usr/bin/env python3
"""ONNX files as exported by frameworks: minimal examples of patterns of exporters, compared with the onnx package.
Local functions are compared with ONNX's inliner.  Without the package the test is skipped."""

import sys
import unittest

sys.dont_write_bytecode = True
import test_onnx_oracle  # skips without onnx, or re-executes with another Python that has it
from test_onnx_oracle import Case, onnx

import onnx.inliner
from onnx import TensorProto, helper
from onnx_models import Writer

IMPORTS = [helper.make_opsetid("", 17), helper.make_opsetid("ours", 1)]


def attribute_reference(name, of_call, kind=onnx.AttributeProto.INTS):
    """A node attribute that refers to an attribute of the function."""
    return onnx.AttributeProto(name=name, ref_attr_name=of_call, type=kind)


def function(name, inputs, outputs, nodes, settings=(), defaults=()):
    return helper.make_function("ours", name, inputs, outputs, nodes, IMPORTS, settings, defaults)


def call(op, inputs, outputs, name="", **settings):
    return helper.make_node(op, inputs, outputs, name=name, domain="ours", **settings)


class Functions(Case):
    """A call is replaced by the nodes of its function."""

    def filtered(self):
        """A convolution with optional bias, with attributes of the call and its own."""
        conv = helper.make_node("Conv", ["x", "w", "b"], ["y"])
        conv.attribute.extend([attribute_reference("strides", "strides"), attribute_reference("pads", "pads")])
        act = helper.make_node("LeakyRelu", ["y"], ["z"])
        act.attribute.append(attribute_reference("alpha", "slope", onnx.AttributeProto.FLOAT))
        return function("Filtered", ["x", "w", "b"], ["z"], [conv, act], ["strides", "slope"],
                        [helper.make_attribute("pads", [1, 1, 1, 1])])

    def block(self):
        return function("Block", ["x", "w1", "b1", "w2"], ["out"], [
            call("Filtered", ["x", "w1", "b1"], ["a"], "first", strides=[1, 1], slope=0.5,
                 pads=[1] * 4),
            call("Filtered", ["a", "w2"], ["b"], "second", strides=[1, 1], pads=[1] * 4),
            helper.make_node("Add", ["b", "x"], ["out"])])

    def model(self, nodes, functions, writer, output="y"):
        writer.nodes.extend(nodes)
        made = writer.model(output)
        made.opset_import.extend(IMPORTS[1:])
        made.functions.extend(functions)
        return made

    def blocks(self):
        """One block called twice, with shared weights."""
        out = Writer()
        x = out.input("x", [2, 8, 6, 6])
        w = [out.weight(f"w{i}", [8, 8, 3, 3]) for i in range(2)]
        return self.model([call("Block", [x, w[0], out.weight("b", [8]), w[1]], ["h"], "layers.0"),
                           call("Block", ["h", w[1], "", w[0]], ["y"], "layers.1")],
                          [self.block(), self.filtered()], out)

    def test_functions_are_inlined_like_onnx(self):
        """Except for attribute defaults, which ONNX's inliner ignores."""
        model = self.blocks()
        shown, inlined = self.read(model), self.read(onnx.inliner.inline_local_functions(model))
        for key in "parameters", "macs", "unknown", "is_guessed":
            self.assertEqual(shown[key], inlined[key], key)
        self.assertEqual(shown["parameters"], 2 * 8 * 8 * 9 + 8)
        self.assertEqual(shown["macs"], 4 * 2 * 36 * 8 * 8 * 9)
        self.assertEqual([node["op"] for node in shown["nodes"]],
                         [node["op"] for node in inlined["nodes"]])
        self.assertEqual([tensor["dims"] for tensor in shown["tensors"]],
                         [tensor["dims"] for tensor in inlined["tensors"]])

    def test_inlined_nodes_are_named_by_their_calls(self):
        nodes = self.read(self.blocks())["nodes"]
        self.assertEqual(nodes[0]["name"], "layers.0/first/y")
        self.assertEqual([node["layer"] for node in nodes], [0] * 5 + [1] * 5)

    def test_call_attributes_and_defaults_determine_shapes(self):
        for strides, pads, side in (([2, 2], None, 5), ([1, 1], [0] * 4, 7), ([3, 3], None, 3)):
            more = {"pads": pads} if pads else {}
            out = Writer()
            x, w = out.input("x", [1, 3, 9, 9]), out.weight("w", [4, 3, 3, 3])
            model = self.model([call("Filtered", [x, w], ["y"], strides=strides, slope=0.1, **more)],
                               [self.filtered()], out)
            shown = self.read(model)
            self.assertEqual(shown["tensors"][-1]["dims"], [1, 4, side, side])
            self.assertEqual(shown["macs"], side * side * 4 * 27)

    def test_shapes_computed_by_functions(self):
        """A reshape by values that a function computes from the shape of another tensor."""
        sizes = function("Sizes", ["x"], ["s"], [
            helper.make_node("Shape", ["x"], ["all"]),
            helper.make_node("Constant", [], ["i"], value_ints=[0, 2]),
            helper.make_node("Gather", ["all", "i"], ["s"])])
        out = Writer()
        x = out.input("x", [2, 1, 5, 1])
        made = out.node("Reshape", x, "s")
        out.nodes.insert(0, call("Sizes", [x], ["s"]))
        shown = self.read(self.model([], [sizes], out, made))
        self.assertEqual(shown["tensors"][-1]["dims"], [2, 5])
        self.assertEqual([node["label"] for node in shown["nodes"]], ["Reshape"])

    def test_branch_in_function_sees_its_inputs(self):
        def branch(op, name):
            return helper.make_graph([helper.make_node(op, ["a"], [name])], name, [], [
                helper.make_tensor_value_info(name, TensorProto.FLOAT, None)])

        chosen = function("Chosen", ["a", "c"], ["out"], [
            helper.make_node("If", ["c"], ["out"], then_branch=branch("Relu", "t"),
                             else_branch=branch("Tanh", "e"))])
        out = Writer()
        x = out.input("x", [2, 3])
        out.nodes.append(helper.make_node("Constant", [], ["no"], value=helper.make_tensor(
            "no", TensorProto.BOOL, [], [0])))
        shown = self.read(self.model([call("Chosen", [x, "no"], ["y"])], [chosen], out))
        self.assertEqual([node["label"] for node in shown["nodes"]], ["Tanh"])

    def test_function_does_not_see_tensors_of_caller(self):
        spying = function("Spying", ["a"], ["out"], [helper.make_node("Add", ["a", "w"], ["out"])])
        out = Writer()
        x = out.input("x", [3])
        out.weight("w", [3])
        said = self.refused(self.model([call("Spying", [x], ["y"])], [spying], out))
        self.assertIn("'w' is not defined", said)

    def test_known_operator_is_not_inlined(self):
        gelu = helper.make_function("com.microsoft", "Gelu", ["a"], ["out"], [
            helper.make_node("Relu", ["a"], ["out"])], IMPORTS)
        out = Writer()
        x = out.input("x", [3])
        shown = self.read(self.model([helper.make_node("Gelu", [x], ["y"], domain="com.microsoft")],
                                     [gelu], out))
        self.assertEqual([node["op"] for node in shown["nodes"]], ["gelu"])

    def test_recursive_functions_are_rejected(self):
        out = Writer()
        x = out.input("x", [3])
        functions = [function("A", ["a"], ["out"], [call("B", ["a"], ["out"])]),
                     function("B", ["a"], ["out"], [call("A", ["a"], ["out"])])]
        self.assertIn("function 'A' calls itself",
                      self.refused(self.model([call("A", [x], ["y"])], functions, out)))

    def test_exponential_inlining_is_rejected(self):
        """Each function calls the next twice: a depth of forty would be 2^40 nodes."""
        for depth in 12, 40:
            out = Writer()
            x = out.input("x", [3])
            functions = [function(f"F{i}", ["a"], ["out"], [
                call(f"F{i + 1}", ["a"], ["b"]), call(f"F{i + 1}", ["b"], ["out"])])
                         for i in range(depth)]
            functions.append(function(f"F{depth}", ["a"], ["out"],
                                      [helper.make_node("Relu", ["a"], ["out"])]))
            model = self.model([call("F0", [x], ["y"])], functions, out)
            if depth == 12:
                self.assertEqual(len(self.read(model)["nodes"]), 4096)
            else:
                self.assertIn("nested too deeply", self.refused(model))

    def test_function_without_its_output_is_rejected(self):
        out = Writer()
        x = out.input("x", [3])
        empty = function("Empty", ["a"], ["out"], [helper.make_node("Relu", ["a"], ["other"])])
        self.assertIn("does not produce", self.refused(self.model([call("Empty", [x], ["y"])], [empty], out)))


class Exporters(Case):
    """Patterns of exporters."""

    def labels(self, model, *arguments):
        return [node["label"] for node in self.read(model, *arguments)["nodes"]]

    def test_padding_of_older_torch_exporter(self):
        """Pairs in torch's order are reversed: reshape, reverse, transpose, flatten."""
        out = Writer()
        x = out.input("x", [1, 3, 9, 14])
        width = out.node("Gather", out.node("Shape", x), out.integers(3), axis=0)
        missing = out.node("Mod", out.node("Sub", out.integers(16), width), out.integers(16))
        pairs = out.node("Concat", out.integers(0), missing, out.integers(1, 3, 0, 0, 0, 0), axis=0)
        pairs = out.node("Reshape", pairs, out.integers(-1, 2))
        turned = out.node("Slice", pairs, out.integers(-1), out.integers(-(2 ** 63) + 1),
                          out.integers(0), out.integers(-1))
        pads = out.node("Reshape", out.node("Transpose", turned, perm=[1, 0]), out.integers(-1))
        model = out.model(out.node("Pad", x, out.node("Cast", pads, to=TensorProto.INT64)))
        shown = self.read(model)
        self.assertEqual(shown["tensors"][-1]["dims"], [1, 3, 13, 16])
        self.assertFalse(shown["is_guessed"])
        self.assertEqual(self.labels(model), ["Pad"])

    def test_zero_padding_is_a_view(self):
        out = Writer()
        x = out.node("Pad", out.input("x", [1, 3, 4]), out.integers(0, 0, 0, 0, 0, 0))
        nodes = self.read(out.model(out.node("Relu", x)))["nodes"]
        self.assertEqual([node["op"] for node in nodes], ["view", "relu"])

    def test_constant_subgraphs_are_folded(self):
        """A mask computed from shapes, and a weight table gathered by constant indices."""
        out = Writer()
        x = out.input("x", [2, 4, 64, 64])
        zeros = out.node("Expand", out.scalar(0.0), out.integers(64, 64))
        mask = out.node("ScatterND", zeros, out.node("Unsqueeze", out.integers(*range(64)),
                                                     out.integers(1)), zeros)
        mask = out.node("Where", out.node("Equal", mask, out.scalar(0.0)), mask, zeros)
        table = out.node("Gather", out.weight("table", [225, 4]), out.node(
            "Reshape", out.integers(*(i % 225 for i in range(4096))), out.integers(-1)), axis=0)
        table = out.node("Transpose", out.node("Reshape", table, out.integers(64, 64, 4)),
                         perm=[2, 0, 1])
        y = out.node("Add", out.node("Add", x, table), out.node("Unsqueeze", mask, out.integers(0)))
        model = out.model(y)
        self.assertEqual(self.labels(model), ["Add", "Add"])
        self.assertEqual(self.read(model)["parameters"], 225 * 4)

    def test_random_operators_are_not_folded(self):
        out = Writer()
        noise = out.node("RandomNormalLike", out.weight("w", [3, 4]))
        self.assertEqual(self.labels(out.model(out.node("Add", out.input("x", [3, 4]), noise))),
                         ["RandomNormalLike", "Add"])

    def test_exporter_constants_are_no_parameters(self):
        """Scales added by an exporter are not parameters; a bias with one element is."""
        out = Writer()
        x = out.node("Mul", out.input("x", [2, 8]), out.weight("val_7", [1]))
        x = out.node("MatMul", x, out.weight("head.weight", [8, 1]))
        model = out.model(out.node("Add", x, out.weight("head.bias", [1])))
        self.assertEqual(self.read(model)["parameters"], 9)

    def test_tables_computed_by_exporter_are_buffers(self):
        """Rotary cosines of a fixed length and frequencies belong to the model but are not trained."""
        out = Writer()
        x = out.node("Mul", out.input("x", [2, 3, 128, 64]), out.weight("unsqueeze_14", [1, 1, 128, 64]))
        x = out.node("Mul", x, out.weight("model.rotary_emb.inv_freq", [64]))
        model = out.model(out.node("Mul", x, out.weight("layers.0.scale", [3, 1, 1])))
        shown = self.read(model)
        self.assertEqual(shown["parameters"], 3)
        self.assertEqual({tensor["name"]: tensor["role"] for tensor in shown["tensors"]}["unsqueeze_14"],
                         "buffer")

    def test_group_norm_in_separate_operators(self):
        """Constant ones and zeros are no parameters; channel weights are, whatever their name."""
        out = Writer()
        x = out.node("Reshape", out.input("x", [2, 8, 6, 6]), out.integers(0, 4, -1))
        for name, number in (("ones", 1.0), ("zeros", 0.0)):
            out.nodes.append(helper.make_node("Constant", [], [name], value=helper.make_tensor(
                name, TensorProto.FLOAT, [4], [number] * 4)))
        x = out.node("InstanceNormalization", x, "ones", "zeros")
        x = out.node("Mul", out.node("Reshape", x, out.integers(2, 8, 6, 6)),
                     out.weight("onnx::Mul_44", [8, 1, 1]))
        model = out.model(out.node("Add", x, out.weight("onnx::Add_45", [8, 1, 1])))
        self.assertEqual(self.read(model)["parameters"], 16)

    def test_initial_states_are_no_parameters(self):
        out = Writer("constants")
        weights = [out.weight("w", [1, 64, 8]), out.weight("r", [1, 64, 16]), out.weight("b", [1, 128])]
        y = out.node("LSTM", out.input("x", [5, 2, 8]), *weights, "", out.weight("h", [1, 2, 16]),
                     out.weight("c", [1, 2, 16]), hidden_size=16)
        self.assertEqual(self.read(out.model(y))["parameters"], 64 * 24 + 128)

    def test_prelu_slope_is_a_parameter(self):
        out = Writer()
        model = out.model(out.node("PRelu", out.input("x", [2, 8]), out.weight("onnx::PRelu_7", [1])))
        self.assertEqual(self.read(model)["parameters"], 1)

    def test_sequence_of_chunks(self):
        """As exported without optimization."""
        out = Writer()
        parts = out.node("SplitToSequence", out.input("x", [2, 6, 5]), out.integers(3, 3), axis=1)
        ends = [out.node("SequenceAt", parts, out.integers(i)) for i in range(2)]
        model = out.model(out.node("MatMul", *(ends[0], out.node("Transpose", ends[1],
                                                                 perm=[0, 2, 1]))))
        shown = self.read(model)
        self.assertEqual((shown["macs"], shown["unknown"], shown["is_guessed"]),
                         (2 * 3 * 3 * 5, 0, False))
        self.assertEqual(shown["tensors"][-1]["dims"], [2, 3, 3])

    def test_gather_of_constant_index_is_a_slice(self):
        """Q, K and V by constant index; a dynamic index is a copy."""
        for is_known in True, False:
            out = Writer()
            x = out.input("x", [3, 4, 5])
            place = out.integers(1) if is_known else out.input("i", [1], TensorProto.INT64)
            model = out.model(out.node("Relu", out.node("Gather", x, place, axis=0)))
            ops = [node["op"] for node in self.read(model)["nodes"]]
            self.assertEqual(ops, ["rearrange" if is_known else "move", "relu"])


class RuntimeOperators(Case):
    """Operators of ONNX Runtime's optimizer and quantizer."""

    def write(self, out, op, *inputs, **settings):
        out.nodes.append(helper.make_node(op, list(inputs), [name := out.name(op.lower())],
                                          domain="com.microsoft", **settings))
        return name

    def scale(self, out, kind=TensorProto.UINT8):
        """A scale and a zero point."""
        zero = out.name("zero")
        out.tensors.append(helper.make_tensor(zero, kind, [], [0]))
        return out.scalar(0.5), zero

    def test_fused_matmul_with_transposed_batch(self):
        """Rows, batches, columns: 5 x (2 x 3) x 8 times 7 x (2 x 3) x 8, transposed."""
        out = Writer()
        y = self.write(out, "FusedMatMul", out.input("a", [5, 6, 8]), out.input("b", [7, 6, 8]),
                       transBatchA=1, transBatchB=1, transA=0, transB=1)
        z = self.write(out, "FusedMatMul", out.input("c", [8, 6, 5]), out.input("d", [6, 8, 9]),
                       transBatchA=1, transBatchB=0, transA=1, transB=0)
        shown = self.read(out.model(y, z))
        dims = {tensor["name"]: tensor["dims"] for tensor in shown["tensors"]}
        self.assertEqual((dims[y], dims[z]), ([6, 5, 7], [6, 5, 9]))
        self.assertEqual(shown["macs"], 6 * 5 * 7 * 8 + 6 * 5 * 9 * 8)

    def test_quantized_operators(self):
        out = Writer()
        x = out.input("x", [2, 4, 6, 6], TensorProto.UINT8)
        y = self.write(out, "QLinearAdd", x, *self.scale(out), x, *self.scale(out), *self.scale(out))
        y = self.write(out, "QLinearConcat", *self.scale(out), x, *self.scale(out), y,
                       *self.scale(out), axis=1)
        y = self.write(out, "QLinearGlobalAveragePool", y, *self.scale(out), *self.scale(out))
        y = out.node("Flatten", y)
        y = self.write(out, "QGemm", y, *self.scale(out), out.weight("w", [10, 8], TensorProto.INT8),
                       *self.scale(out, TensorProto.INT8), "bias", *self.scale(out), transB=1)
        out.tensors.append(helper.make_tensor("bias", TensorProto.INT32, [10], [0] * 10))
        shown = self.read(out.model(y, kinds=[TensorProto.UINT8]))
        self.assertEqual((shown["unknown"], shown["is_guessed"]), (0, False))
        self.assertEqual((shown["parameters"], shown["macs"]), (90, 2 * 8 * 10))
        self.assertEqual([node["op"] for node in shown["nodes"]],
                         ["add", "move", "reduce", "view", "linear"])
        self.assertEqual(shown["tensors"][-1]["dims"], [2, 10])

    def test_quantized_table_with_constant_indices_is_folded(self):
        """Position embeddings of a fixed length are looked up and scaled at load time."""
        out = Writer()
        rows = out.node("Gather", out.weight("places", [64, 32], TensorProto.INT8),
                        out.integers(*range(40)))
        rows = out.node("DequantizeLinear", rows, *self.scale(out, TensorProto.INT8))
        shown = self.read(out.model(out.node("Add", out.input("x", [2, 40, 32]), rows)))
        self.assertEqual(shown["parameters"], 64 * 32)
        self.assertEqual([node["op"] for node in shown["nodes"]], ["add"])


if __name__ == "__main__":
    unittest.main()
