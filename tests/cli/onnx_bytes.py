"""Writes ONNX files byte by byte, without the onnx package, which would reject odd names."""

import struct

def varint(number):
    out = bytearray()
    number &= (1 << 64) - 1
    while number > 0x7f:
        out.append(number & 0x7f | 0x80)
        number >>= 7
    return bytes([*out, number])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, str):
        value = value.encode()
    return varint(number << 3 | 2) + varint(len(value)) + value


def node(op, inputs, outputs, name="", *attributes):
    return b"".join([*(field(1, i) for i in inputs), *(field(2, o) for o in outputs), field(3, name),
                     field(4, op), *(field(5, a) for a in attributes)])


def info(name, dims=None, element=1):
    """An input or output; dims=None: without a shape."""
    shape = b"" if dims is None else field(2, b"".join(
        field(1, field(1, d) if isinstance(d, int) else field(2, d)) for d in dims))
    return field(1, name) + field(2, field(1, field(1, element) + shape))


FLOAT, INT8, FLOAT16, INT64, BOOL = 1, 3, 10, 7, 9
WIDTHS = {FLOAT: 4, INT8: 1, FLOAT16: 2, INT64: 8, BOOL: 1}


def weight(name, dims, element=FLOAT, numbers=None):
    """A tensor of zeros, or of these float32 numbers."""
    count = WIDTHS[element]
    for size in dims:
        count *= size
    data = bytes(count) if numbers is None else struct.pack(f"<{len(numbers)}f", *numbers)
    return b"".join([*(field(1, d) for d in dims), field(2, element), field(8, name), field(9, data)])


def integer(name, value):
    return field(1, name) + field(3, value) + field(20, 2)


def integers(name, values):
    """An attribute of a node: a list of integers."""
    return field(1, name) + b"".join(field(8, v) for v in values) + field(20, 7)


def model(nodes, inputs, outputs, weights=()):
    graph = b"".join([*(field(1, n) for n in nodes), field(2, "made"), *(field(5, w) for w in weights),
                      *(field(11, i) for i in inputs), *(field(12, o) for o in outputs)])
    return field(1, 8) + field(7, graph) + field(8, field(2, 17))
