"""Small models with random weights in the layouts that workloads recognize, and their inference by ONNX Runtime."""

import json

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
onnxruntime.set_default_logger_severity(4)


class Network:
    """Nodes and weights in the order of calls; each call returns the name of its output."""

    def __init__(self, seed):
        self.random, self.nodes, self.tensors = np.random.default_rng(seed), [], []

    def constant(self, array):
        name = f"constant_{len(self.tensors)}"
        self.tensors.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def weight(self, *shape, scale=1.0):
        return self.constant((self.random.standard_normal(shape) * scale).astype(np.float32))

    def node(self, kind, *inputs, outputs=None, **attributes):
        names = outputs or [f"{kind.lower()}_{len(self.nodes)}"]
        self.nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names[0]

    def save(self, path, inputs, outputs, metadata=None):
        """inputs and outputs: (name, element type, shape); a dimension may be a symbol."""
        values = [[helper.make_tensor_value_info(*each) for each in side] for side in (inputs, outputs)]
        graph = helper.make_graph(self.nodes, "network", *values, self.tensors)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
        helper.set_model_props(model, {key: str(value) for key, value in (metadata or {}).items()})
        onnx.checker.check_model(model)
        path.parent.mkdir(parents=True, exist_ok=True)
        onnx.save(model, str(path))
        return path


def image_input(side, batch="batch", kind=TensorProto.FLOAT, name="pixel_values"):
    return (name, kind, [batch, 3, *(["height", "width"] if side is None else [side, side])])


def classifier(path, side, classes, batch="batch", half=False, probabilities=False, seed=1, metadata=None):
    """Convolution, mean, linear layer."""
    net = Network(seed)
    kind = TensorProto.FLOAT16 if half else TensorProto.FLOAT
    x = net.node("Cast", "pixel_values", to=TensorProto.FLOAT) if half else "pixel_values"
    x = net.node("Relu", net.node("Conv", x, net.weight(6, 3, 4, 4), strides=[4, 4]))
    x = net.node("GlobalAveragePool", x)
    x = net.node("MatMul", net.node("Flatten", x), net.weight(6, classes, scale=2))
    if probabilities:
        x = net.node("Softmax", x)
    if half:
        x = net.node("Cast", x, to=TensorProto.FLOAT16)
    net.node("Identity", x, outputs=["logits"])
    return net.save(path, [image_input(side, batch, kind)], [("logits", kind, [batch, classes])], metadata)


def detector(path, side, names, seed=1, batch="batch", metadata=None, size=64):
    """One anchor per 8 x 8 pixels, in the order of YOLOv8: x, y, width, height and the score of each class.  `size` scales
    the boxes."""
    net, rows = Network(seed), 4 + len(names)
    x = net.node("Conv", "images", net.weight(rows, 3, 8, 8, scale=0.15), net.weight(rows), strides=[8, 8])
    x = net.node("Sigmoid", net.node("Reshape", x, net.constant(np.array([0, rows, -1], np.int64))))
    scale = np.array([size, size, size / 4, size / 4] + [1] * len(names), np.float32)
    net.node("Mul", x, net.constant(scale.reshape(1, rows, 1)), outputs=["output0"])
    return net.save(path, [image_input(side, batch, name="images")],
                    [("output0", TensorProto.FLOAT, [batch, rows, "anchors"])],
                    {"task": "detect", "stride": 8, "names": dict(enumerate(names)), **(metadata or {})})


def constant_output(path, output, side=32, kind=TensorProto.FLOAT, metadata=None, name="logits"):
    """An image model with the same output for every image."""
    net = Network(0)
    zero = net.node("Mul", net.node("ReduceMean", "pixel_values", keepdims=0), net.constant(np.float32(0)))
    net.node("Add", net.constant(np.asarray(output, np.float32)), zero, outputs=[name])
    return net.save(path, [image_input(side, 1)], [(name, kind, list(np.shape(output)))], metadata)


def text_classifier(path, vocabulary, classes, inputs=("input_ids",), length="length", seed=1, kind=TensorProto.INT64):
    """Embedding, LSTM, linear layer of the last state; a mask multiplies the embeddings."""
    net, width, hidden = Network(seed), 8, 6
    x = net.node("Gather", net.weight(vocabulary, width), "input_ids")
    if "attention_mask" in inputs:
        mask = net.node("Cast", "attention_mask", to=TensorProto.FLOAT)
        x = net.node("Mul", x, net.node("Unsqueeze", mask, net.constant(np.array([2], np.int64))))
    x = net.node("Transpose", x, perm=[1, 0, 2])
    if "token_type_ids" in inputs:
        kinds = net.node("Cast", net.node("ReduceSum", "token_type_ids", keepdims=0), to=TensorProto.FLOAT)
        x = net.node("Add", x, kinds)
    sizes = ""
    if "lengths" in inputs:
        sizes = net.node("Cast", "lengths", to=TensorProto.INT32)
    net.node("LSTM", x, net.weight(1, 4 * hidden, width), net.weight(1, 4 * hidden, hidden), "", sizes,
             outputs=["", "last"], hidden_size=hidden)
    x = net.node("Squeeze", "last", net.constant(np.array([0], np.int64)))
    net.node("MatMul", x, net.weight(hidden, classes, scale=3), outputs=["logits"])
    shapes = [(name, kind, [1] if name == "lengths" else [1, length]) for name in inputs]
    return net.save(path, shapes, [("logits", TensorProto.FLOAT, [1, classes])])


def run(path, **inputs):
    """The first output."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return session.run(None, inputs)[0]


def write_json(path, **members):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(members))
