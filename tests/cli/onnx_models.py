"""Models written with the onnx package, for tests of the ONNX reader.  Weights are zeros, because only shapes
matter."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Writer:
    """Adds nodes in the order of calls; each call returns the name of its output."""

    def __init__(self, weights="raw", opset=17):
        self.nodes, self.tensors, self.inputs, self.weights = [], [], [], weights
        self.opset, self.count = opset, 0

    def name(self, word):
        self.count += 1
        return f"{word}_{self.count}"

    def input(self, name, dims, kind=TensorProto.FLOAT):
        self.inputs.append(helper.make_tensor_value_info(name, kind, dims))
        return name

    def weight(self, name, dims, kind=TensorProto.FLOAT):
        """A tensor of zeros: as an initializer, in a Constant node, or in an external file."""
        size = int(np.prod(dims)) * (4 if kind == TensorProto.FLOAT else 1)
        tensor = TensorProto(name=name, dims=dims, data_type=kind)
        if self.weights == "outside":
            tensor.data_location = TensorProto.EXTERNAL
            for key, value in (("location", "weights.bin"), ("offset", "0"), ("length", str(size))):
                tensor.external_data.add(key=key, value=value)
        else:
            tensor.raw_data = bytes(size)
        if self.weights == "constants":
            self.nodes.append(helper.make_node("Constant", [], [name], value=tensor))
        else:
            self.tensors.append(tensor)
        return name

    def integers(self, *numbers):
        name = self.name("shape")
        self.tensors.append(numpy_helper.from_array(np.array(numbers, np.int64), name))
        return name

    def scalar(self, number):
        name = self.name("number")
        self.tensors.append(numpy_helper.from_array(np.float32(number), name))
        return name

    def node(self, op, *inputs, outputs=1, **settings):
        out = [self.name(op.lower()) for _ in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), out, name=f"node_{out[0]}", **settings))
        return out[0] if outputs == 1 else out

    def conv(self, name, x, cin, cout, kernel, stride=1, pad=0, groups=1, bias=False):
        inputs = [x, self.weight(f"{name}.weight", [cout, cin // groups, kernel, kernel])]
        if bias:
            inputs.append(self.weight(f"{name}.bias", [cout]))
        return self.node("Conv", *inputs, kernel_shape=[kernel] * 2, strides=[stride] * 2,
                         pads=[pad] * 4, group=groups)

    def norm(self, name, x, channels):
        return self.node("BatchNormalization", x, *(
            self.weight(f"{name}.{part}", [channels])
            for part in ("weight", "bias", "running_mean", "running_var")))

    def linear(self, name, x, cin, cout):
        return self.node("Gemm", x, self.weight(f"{name}.weight", [cout, cin]),
                         self.weight(f"{name}.bias", [cout]), transB=1)

    def projection(self, name, x, cin, cout):
        """A linear layer over more than two dimensions, in the form that exporters write."""
        product = self.node("MatMul", x, self.weight(f"{name}.weight", [cin, cout]))
        return self.node("Add", product, self.weight(f"{name}.bias", [cout]))

    def model(self, *outputs, kinds=None):
        graph = helper.make_graph(
            self.nodes, "made", self.inputs,
            [helper.make_tensor_value_info(name, kind, None) if kind else
             onnx.ValueInfoProto(name=name)
             for name, kind in zip(outputs, kinds or [TensorProto.FLOAT] * len(outputs))],
            self.tensors)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset),
                                                       helper.make_opsetid("com.microsoft", 1)])


def resnet(depth, batch=1, weights="raw"):
    """ResNets of torchvision."""
    blocks, is_deep = {18: ((2, 2, 2, 2), False), 50: ((3, 4, 6, 3), True)}[depth]
    out = Writer(weights)
    x = out.input("image", [batch, 3, 224, 224])
    x = out.node("Relu", out.norm("bn1", out.conv("conv1", x, 3, 64, 7, 2, 3), 64))
    x = out.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    cin, grown = 64, 4 if is_deep else 1
    for stage, count in enumerate(blocks):
        width = 64 << stage
        for block in range(count):
            at, stride = f"layer{stage + 1}.{block}", 2 if stage and not block else 1
            kernels = ((1, 1, 0), (3, stride, 1), (1, 1, 0)) if is_deep else (
                (3, stride, 1), (3, 1, 1))
            y, channels = x, cin
            for i, (kernel, step, pad) in enumerate(kernels):
                wide = width * grown if i == len(kernels) - 1 else width
                y = out.norm(f"{at}.bn{i + 1}", out.conv(
                    f"{at}.conv{i + 1}", y, channels, wide, kernel, step, pad), wide)
                y = out.node("Relu", y) if i < len(kernels) - 1 else y
                channels = wide
            if stride != 1 or cin != channels:
                x = out.norm(f"{at}.downsample.1", out.conv(
                    f"{at}.downsample.0", x, cin, channels, 1, stride), channels)
            x = out.node("Relu", out.node("Add", y, x))
            cin = channels
    x = out.node("Flatten", out.node("GlobalAveragePool", x), axis=1)
    return out.model(out.linear("fc", x, cin, 1000))


def small_net(quantize=None, side=16):
    """Two convolutions with a residual, pooling and a linear layer, in floats or with QuantizeLinear/DequantizeLinear
    pairs around every operation: int8 weights ("qdq"), or fp32 weights that are quantized in the graph ("trained")."""
    out = Writer()
    if quantize:
        out.tensors += [numpy_helper.from_array(np.float32(0.5), "scale"),
                        numpy_helper.from_array(np.uint8(3), "zero"),
                        numpy_helper.from_array(np.int8(0), "zero_w")]

    def codes(x):
        x = out.node("QuantizeLinear", x, "scale", "zero") if quantize else x
        return out.node("DequantizeLinear", x, "scale", "zero") if quantize else x

    def weight(name, dims):
        if quantize == "trained":
            x = out.node("QuantizeLinear", out.weight(name, dims), "scale", "zero_w")
        else:
            x = out.weight(name, dims, TensorProto.INT8 if quantize else TensorProto.FLOAT)
        return out.node("DequantizeLinear", x, "scale", "zero_w") if quantize else x

    def bias(name, count):
        if quantize != "qdq":
            return out.weight(name, [count])
        out.tensors.append(numpy_helper.from_array(np.zeros(count, np.int32), name))
        return out.node("DequantizeLinear", name, "scale")

    x = codes(out.input("x", [1, 3, side, side]))
    x = codes(out.node("Relu", out.node("Conv", x, weight("w1", [8, 3, 3, 3]), bias("b1", 8), pads=[1] * 4)))
    y = codes(out.node("Conv", x, weight("w2", [8, 8, 3, 3]), bias("b2", 8), pads=[1] * 4))
    x = codes(out.node("Add", x, y))
    x = codes(out.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2]))
    x = codes(out.node("Flatten", out.node("GlobalAveragePool", x)))
    x = codes(out.node("Gemm", x, weight("w3", [10, 8]), bias("b3", 10), transB=1))
    return out.model(out.node("Softmax", x))


def mobilenet_v2(side=224):
    out = Writer()
    low, high = (out.name("limit") for _ in range(2))
    for name, number in ((low, 0), (high, 6)):
        out.tensors.append(numpy_helper.from_array(np.array(number, np.float32), name))

    def block(name, x, cin, cout, kernel=1, stride=1, groups=1, is_last=False):
        x = out.norm(f"{name}.1", out.conv(f"{name}.0", x, cin, cout, kernel, stride,
                                           kernel // 2, groups), cout)
        return x if is_last else out.node("Clip", x, low, high)

    x, cin = block("features.0", out.input("image", ["batch", 3, side, side]), 3, 32, 3, 2), 32
    for grown, cout, count, first in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
                                      (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
        for i in range(count):
            name, y, wide = out.name("features"), x, cin * grown
            if grown != 1:
                y = block(f"{name}.0", y, cin, wide)
            y = block(f"{name}.1", y, wide, wide, 3, first if i == 0 else 1, wide)
            y = block(f"{name}.2", y, wide, cout, is_last=True)
            x = out.node("Add", x, y) if i and cin == cout else y
            cin = cout
    x = block("features.18", x, cin, 1280)
    x = out.node("ReduceMean", x, axes=[2, 3], keepdims=0)
    return out.model(out.linear("classifier.1", x, 1280, 1000))


def transformer(batch="batch", tokens="tokens", width=64, heads=4, rows=100):
    """An encoder block with shape computations in the form of torch's exporter."""
    out = Writer()
    ids = out.input("input_ids", [batch, tokens], TensorProto.INT64)
    x = out.node("Gather", out.weight("embeddings.weight", [rows, width]), ids)
    shape = out.node("Shape", x)
    sizes = [out.node("Gather", shape, out.integers(i)) for i in range(2)]
    split = out.node("Concat", *sizes, out.integers(heads), out.integers(width // heads), axis=0)
    merge_record = out.node("Concat", *sizes, out.integers(-1), axis=0)

    def headed(name):
        y = out.projection(f"layers.0.{name}", x, width, width)
        return out.node("Reshape", y, split)

    q = out.node("Transpose", headed("q"), perm=[0, 2, 1, 3])
    k = out.node("Transpose", headed("k"), perm=[0, 2, 3, 1])
    v = out.node("Transpose", headed("v"), perm=[0, 2, 1, 3])
    scale = out.name("scale")
    out.nodes.append(helper.make_node("Constant", [], [scale], value_float=0.25))
    scores = out.node("Softmax", out.node("Mul", out.node("MatMul", q, k), scale), axis=-1)
    y = out.node("Transpose", out.node("MatMul", scores, v), perm=[0, 2, 1, 3])
    y = out.projection("layers.0.out", out.node("Reshape", y, merge_record), width, width)
    y = out.node("LayerNormalization", out.node("Add", x, y), out.weight("norm.weight", [width]),
                 out.weight("norm.bias", [width]))
    z = out.node("Relu", out.projection("layers.0.up", y, width, 4 * width))
    return out.model(out.node("Add", y, out.projection("layers.0.down", z, 4 * width, width)))


def recurrent(op="LSTM", steps=5, batch=2, features=8, hidden=16, both=True):
    gates, ways = {"LSTM": 4, "GRU": 3, "RNN": 1}[op], 2 if both else 1
    out = Writer()
    x = out.input("x", [steps, batch, features])
    results = out.node(op, x, out.weight("w", [ways, gates * hidden, features]),
                       out.weight("r", [ways, gates * hidden, hidden]),
                       out.weight("b", [ways, 2 * gates * hidden]),
                       outputs=2, hidden_size=hidden,
                       direction="bidirectional" if both else "forward")
    return out.model(*results)
