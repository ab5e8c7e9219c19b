#!/usr/bin/env python3
"""ONNX files as frameworks export them: what exporters write in ways of their own, in the smallest form that
shows it, with ONNX's own package as the second opinion.  Functions that a file brings along are held to
ONNX's own inliner.  Without the package this is a skip."""

import sys
import unittest

sys.dont_write_bytecode = True
import test_onnx_oracle  # skips where there is no onnx, and starts again where another Python has it
from test_onnx_oracle import Case, onnx

import onnx.inliner
from onnx import TensorProto, helper
from onnx_models import Writer

IMPORTS = [helper.make_opsetid("", 17), helper.make_opsetid("ours", 1)]


def passed(name, of_call, kind=onnx.AttributeProto.INTS):
    """A setting that has the value of one of the function's."""
    return onnx.AttributeProto(name=name, ref_attr_name=of_call, type=kind)


def function(name, inputs, outputs, nodes, settings=(), defaults=()):
    return helper.make_function("ours", name, inputs, outputs, nodes, IMPORTS, settings, defaults)


def call(op, inputs, outputs, name="", **settings):
    return helper.make_node(op, inputs, outputs, name=name, domain="ours", **settings)


class Functions(Case):
    """In the place of a call stand the nodes of the function."""

    def filtered(self):
        """A convolution whose bias may be left out, with settings of the call and of its own."""
        conv = helper.make_node("Conv", ["x", "w", "b"], ["y"])
        conv.attribute.extend([passed("strides", "strides"), passed("pads", "pads")])
        act = helper.make_node("LeakyRelu", ["y"], ["z"])
        act.attribute.append(passed("alpha", "slope", onnx.AttributeProto.FLOAT))
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
        """One block twice, and its weights at the second call those of the first."""
        out = Writer()
        x = out.input("x", [2, 8, 6, 6])
        w = [out.weight(f"w{i}", [8, 8, 3, 3]) for i in range(2)]
        return self.model([call("Block", [x, w[0], out.weight("b", [8]), w[1]], ["h"], "layers.0"),
                           call("Block", ["h", w[1], "", w[0]], ["y"], "layers.1")],
                          [self.block(), self.filtered()], out)

    def test_as_onnx_inlines_them(self):
        """But for defaults of settings, which its inliner leaves out."""
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

    def test_nodes_are_named_by_their_calls(self):
        nodes = self.read(self.blocks())["nodes"]
        self.assertEqual(nodes[0]["name"], "layers.0/first/y")
        self.assertEqual([node["layer"] for node in nodes], [0] * 5 + [1] * 5)

    def test_a_setting_of_the_call_or_its_default_decides_shapes(self):
        for strides, pads, side in (([2, 2], None, 5), ([1, 1], [0] * 4, 7), ([3, 3], None, 3)):
            more = {"pads": pads} if pads else {}
            out = Writer()
            x, w = out.input("x", [1, 3, 9, 9]), out.weight("w", [4, 3, 3, 3])
            model = self.model([call("Filtered", [x, w], ["y"], strides=strides, slope=0.1, **more)],
                               [self.filtered()], out)
            shown = self.read(model)
            self.assertEqual(shown["tensors"][-1]["dims"], [1, 4, side, side])
            self.assertEqual(shown["macs"], side * side * 4 * 27)

    def test_shapes_that_functions_compute(self):
        """Numbers go in and out of calls: a reshape by what one computed of another's shape."""
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

    def test_a_branch_inside_sees_what_the_function_takes(self):
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

    def test_a_function_does_not_see_who_calls_it(self):
        spying = function("Spying", ["a"], ["out"], [helper.make_node("Add", ["a", "w"], ["out"])])
        out = Writer()
        x = out.input("x", [3])
        out.weight("w", [3])
        said = self.refused(self.model([call("Spying", [x], ["y"])], [spying], out))
        self.assertIn("'w' is not defined", said)

    def test_an_operator_that_is_known_needs_no_function(self):
        gelu = helper.make_function("com.microsoft", "Gelu", ["a"], ["out"], [
            helper.make_node("Relu", ["a"], ["out"])], IMPORTS)
        out = Writer()
        x = out.input("x", [3])
        shown = self.read(self.model([helper.make_node("Gelu", [x], ["y"], domain="com.microsoft")],
                                     [gelu], out))
        self.assertEqual([node["op"] for node in shown["nodes"]], ["gelu"])

    def test_functions_that_call_themselves(self):
        out = Writer()
        x = out.input("x", [3])
        functions = [function("A", ["a"], ["out"], [call("B", ["a"], ["out"])]),
                     function("B", ["a"], ["out"], [call("A", ["a"], ["out"])])]
        self.assertIn("function 'A' calls itself",
                      self.refused(self.model([call("A", [x], ["y"])], functions, out)))

    def test_calls_that_grow_without_end(self):
        """Each function calls the next twice: forty would be more nodes than there are atoms in a cup."""
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

    def test_a_function_that_makes_nothing(self):
        out = Writer()
        x = out.input("x", [3])
        empty = function("Empty", ["a"], ["out"], [helper.make_node("Relu", ["a"], ["other"])])
        self.assertIn("does not produce", self.refused(self.model([call("Empty", [x], ["y"])], [empty], out)))


class Exporters(Case):
    """Ways of exporters."""

    def labels(self, model, *arguments):
        return [node["label"] for node in self.read(model, *arguments)["nodes"]]

    def test_padding_as_the_older_exporter_computes_it(self):
        """Pairs of torch's order are turned round: reshape, reverse, transpose, flatten."""
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

    def test_padding_by_nothing_does_nothing(self):
        out = Writer()
        x = out.node("Pad", out.input("x", [1, 3, 4]), out.integers(0, 0, 0, 0, 0, 0))
        nodes = self.read(out.model(out.node("Relu", x)))["nodes"]
        self.assertEqual([node["op"] for node in nodes], ["view", "relu"])

    def test_what_is_the_same_at_every_pass_is_done_once(self):
        """A mask that is computed of shapes, a table of weights that is spread out by known places."""
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

    def test_what_is_random_is_not_the_same(self):
        out = Writer()
        noise = out.node("RandomNormalLike", out.weight("w", [3, 4]))
        self.assertEqual(self.labels(out.model(out.node("Add", out.input("x", [3, 4]), noise))),
                         ["RandomNormalLike", "Add"])

    def test_lone_numbers_that_were_not_trained(self):
        """Scales that an exporter made up have no place in the model, a bias of one number has."""
        out = Writer()
        x = out.node("Mul", out.input("x", [2, 8]), out.weight("val_7", [1]))
        x = out.node("MatMul", x, out.weight("head.weight", [8, 1]))
        model = out.model(out.node("Add", x, out.weight("head.bias", [1])))
        self.assertEqual(self.read(model)["parameters"], 9)

    def test_tables_that_an_exporter_computed(self):
        """Cosines of a fixed number of tokens, frequencies of any: of the model, and not trained."""
        out = Writer()
        x = out.node("Mul", out.input("x", [2, 3, 128, 64]), out.weight("unsqueeze_14", [1, 1, 128, 64]))
        x = out.node("Mul", x, out.weight("model.rotary_emb.inv_freq", [64]))
        model = out.model(out.node("Mul", x, out.weight("layers.0.scale", [3, 1, 1])))
        shown = self.read(model)
        self.assertEqual(shown["parameters"], 3)
        self.assertEqual({tensor["name"]: tensor["role"] for tensor in shown["tensors"]}["unsqueeze_14"],
                         "buffer")

    def test_norms_of_groups_in_small_steps(self):
        """Ones and zeros that the norm needs were not trained; weights of channels were, whatever their name."""
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

    def test_states_that_a_recurrence_begins_with(self):
        out = Writer("constants")
        weights = [out.weight("w", [1, 64, 8]), out.weight("r", [1, 64, 16]), out.weight("b", [1, 128])]
        y = out.node("LSTM", out.input("x", [5, 2, 8]), *weights, "", out.weight("h", [1, 2, 16]),
                     out.weight("c", [1, 2, 16]), hidden_size=16)
        self.assertEqual(self.read(out.model(y))["parameters"], 64 * 24 + 128)

    def test_a_slope_that_was_trained(self):
        out = Writer()
        model = out.model(out.node("PRelu", out.input("x", [2, 8]), out.weight("onnx::PRelu_7", [1])))
        self.assertEqual(self.read(model)["parameters"], 1)

    def test_lists_of_parts(self):
        """As chunks are exported without optimization."""
        out = Writer()
        parts = out.node("SplitToSequence", out.input("x", [2, 6, 5]), out.integers(3, 3), axis=1)
        ends = [out.node("SequenceAt", parts, out.integers(i)) for i in range(2)]
        model = out.model(out.node("MatMul", *(ends[0], out.node("Transpose", ends[1],
                                                                 perm=[0, 2, 1]))))
        shown = self.read(model)
        self.assertEqual((shown["macs"], shown["unknown"], shown["is_guessed"]),
                         (2 * 3 * 3 * 5, 0, False))
        self.assertEqual(shown["tensors"][-1]["dims"], [2, 3, 3])

    def test_one_of_several_is_a_slice(self):
        """Queries, keys and values by a known place; a place that comes in is a copy."""
        for is_known in True, False:
            out = Writer()
            x = out.input("x", [3, 4, 5])
            place = out.integers(1) if is_known else out.input("i", [1], TensorProto.INT64)
            model = out.model(out.node("Relu", out.node("Gather", x, place, axis=0)))
            ops = [node["op"] for node in self.read(model)["nodes"]]
            self.assertEqual(ops, ["rearrange" if is_known else "move", "relu"])


class Runtime(Case):
    """Operators of ONNX Runtime, as its optimizer and its quantizer write them."""

    def write(self, out, op, *inputs, **settings):
        out.nodes.append(helper.make_node(op, list(inputs), [name := out.name(op.lower())],
                                          domain="com.microsoft", **settings))
        return name

    def scale(self, out, kind=TensorProto.UINT8):
        """A scale and a zero point."""
        zero = out.name("zero")
        out.tensors.append(helper.make_tensor(zero, kind, [], [0]))
        return out.scalar(0.5), zero

    def test_products_of_heads_that_lie_behind_rows(self):
        """Rows, batches, columns: 5 x (2 x 3) x 8 times 7 x (2 x 3) x 8, turned."""
        out = Writer()
        y = self.write(out, "FusedMatMul", out.input("a", [5, 6, 8]), out.input("b", [7, 6, 8]),
                       transBatchA=1, transBatchB=1, transA=0, transB=1)
        z = self.write(out, "FusedMatMul", out.input("c", [8, 6, 5]), out.input("d", [6, 8, 9]),
                       transBatchA=1, transBatchB=0, transA=1, transB=0)
        shown = self.read(out.model(y, z))
        dims = {tensor["name"]: tensor["dims"] for tensor in shown["tensors"]}
        self.assertEqual((dims[y], dims[z]), ([6, 5, 7], [6, 5, 9]))
        self.assertEqual(shown["macs"], 6 * 5 * 7 * 8 + 6 * 5 * 9 * 8)

    def test_quantized_steps(self):
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

    def test_a_quantized_table_at_known_places(self):
        """Positions of a fixed number of tokens: looked up and scaled when the model is loaded."""
        out = Writer()
        rows = out.node("Gather", out.weight("places", [64, 32], TensorProto.INT8),
                        out.integers(*range(40)))
        rows = out.node("DequantizeLinear", rows, *self.scale(out, TensorProto.INT8))
        shown = self.read(out.model(out.node("Add", out.input("x", [2, 40, 32]), rows)))
        self.assertEqual(shown["parameters"], 64 * 32)
        self.assertEqual([node["op"] for node in shown["nodes"]], ["add"])


if __name__ == "__main__":
    unittest.main()
