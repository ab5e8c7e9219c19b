#!/usr/bin/env python3
"""ONNX files against ONNX Runtime: MACs are counted from the tensor shapes of a real run, and its quantizer writes
quantized models.  Without the package the test is skipped."""

import importlib.util
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
import test_onnx_oracle  # skips without onnx, or re-executes with another Python that has it
from test_onnx_oracle import Case, np, onnx

try:
    import onnxruntime
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_dynamic, quantize_static
except ImportError as error:
    print(f"skipped: {error} (set IPW_PYTHON to an interpreter that has onnxruntime)")
    sys.exit(77)
import onnx_models
from onnx import TensorProto

KINDS = {TensorProto.FLOAT: np.float32, TensorProto.INT64: np.int64, TensorProto.INT32: np.int32}
onnxruntime.set_default_logger_severity(4)


def inputs_of(model):
    """Ones for every input, with the shape of the file."""
    weights = {tensor.name for tensor in model.graph.initializer}
    return {value.name: np.ones([dim.dim_value or 1 for dim in value.type.tensor_type.shape.dim],
                                KINDS[value.type.tensor_type.elem_type])
            for value in model.graph.input if value.name not in weights}


def run_shapes(model, inputs):
    """The shape of every tensor in a run without graph optimizations."""
    every = onnx.ModelProto()
    every.CopyFrom(model)
    known = {value.name for value in every.graph.output}
    every.graph.output.extend(onnx.ValueInfoProto(name=name) for node in every.graph.node
                              for name in node.output if name and name not in known)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(every.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_outputs()]
    shapes = {name: np.shape(value) for name, value in zip(names, session.run(names, inputs))}
    shapes.update({name: value.shape for name, value in inputs.items()})
    shapes.update({tensor.name: tuple(tensor.dims) for tensor in every.graph.initializer})
    return shapes


def products(model, shapes):
    """MACs of every product: elements of its result times the length of the contraction."""
    total = 0
    for node in model.graph.node:
        size = int(np.prod(shapes[node.output[0]])) if node.output[0] in shapes else 0
        if node.op_type in ("Conv", "ConvInteger", "QLinearConv"):
            weight = shapes[node.input[3 if node.op_type == "QLinearConv" else 1]]
            total += size * int(np.prod(weight[1:]))
        elif node.op_type in ("MatMul", "Gemm", "MatMulInteger", "QLinearMatMul", "QGemm"):
            total += size * shapes[node.input[0]][-1]
    return total


class OneBatchReader(CalibrationDataReader):
    def __init__(self, inputs):
        self.rows = iter([inputs])

    def get_next(self):
        return next(self.rows, None)


class Quantizer(Case):
    """Models quantized by ONNX Runtime, in each of its formats."""

    def quantize(self, model, form):
        here, there = self.scratch / "floats.onnx", self.scratch / f"{form}.onnx"
        here.write_bytes(model.SerializeToString())
        if form == "dynamic":
            quantize_dynamic(here, there)
        else:
            quantize_static(here, there, OneBatchReader(inputs_of(model)), quant_format=QuantFormat[form],
                            per_channel=form == "QDQ")
        return onnx.load(there)

    def models(self):
        """The small one in each form, the others in the one of their kind."""
        yield "small", onnx_models.small_net(), ("QDQ", "QOperator", "dynamic")
        yield "mobilenet", onnx_models.mobilenet_v2(side=64), ("QDQ",)
        yield "transformer", onnx_models.transformer(1, 12), ("dynamic",)

    def test_quantized_products_are_int8(self):
        for name, model, forms in self.models():
            model.ir_version = 8  # supported by every ONNX Runtime
            floats = self.read(model)
            for form in forms:
                with self.subTest(f"{name} {form}"):
                    quantized = self.quantize(model, form)
                    shown = self.read(quantized)
                    self.assertEqual(shown["macs"], products(quantized, run_shapes(quantized, inputs_of(model))))
                    self.assertEqual(shown["macs"], floats["macs"])
                    self.assertEqual((shown["unknown"], shown["is_guessed"]), (0, False))
                    self.assertEqual(shown["file_precision"], "int8")
                    eight = sum(node["macs"] for node in shown["nodes"] if node["precision"] == "int8")
                    self.assertGreater(eight, 0.9 * shown["macs"])
                    if form == "QDQ":
                        kernels = [node["label"] for node in shown["nodes"] if "Quantize" in node["label"]]
                        pairs = sum("Quantize" in node.op_type for node in quantized.graph.node)
                        self.assertGreater(pairs, 8)
                        self.assertLessEqual(len(kernels), 2)  # at the boundary to floats


class PackagedModel(Case):
    """A model shipped with a Python package."""

    def test_magika_model(self):
        spec = importlib.util.find_spec("magika")
        if not spec:
            self.skipTest("magika is not installed")
        path = next(Path(spec.origin).parent.rglob("*.onnx"))
        model = onnx.load(path)
        shown = self.read(model)
        self.assertEqual(shown["macs"], products(model, run_shapes(model, inputs_of(model))))
        self.assertGreater(shown["macs"], 1e8)
        self.assertEqual((shown["unknown"], shown["is_guessed"], shown["file_precision"]), (0, False, "fp32"))


if __name__ == "__main__":
    unittest.main()
