"""The sizes of the models, and the constants that all of them share."""
from dataclasses import dataclass

CONTEXT = 512
ROPE_BASE = 10000.0
NORM_EPSILON = 1e-5


@dataclass(frozen=True)
class Shape:
    width: int
    layers: int
    heads: int
    kv_heads: int
    hidden: int
    vocabulary: int = 480
    context: int = CONTEXT

    @property
    def head_width(self):
        return self.width // self.heads


# All widths are multiples of 32, the length of a block of Q8_0 and Q4_0.
SHAPES = {
    "ipw-1m": Shape(width=128, layers=5, heads=4, kv_heads=4, hidden=352),
    "ipw-6m": Shape(width=256, layers=8, heads=8, kv_heads=4, hidden=704),
}

# The one that calls a calculator: its own tokenizer and training (train_tools.py).
TOOLS_NAME = "tools-2m"
TOOLS_SHAPE = Shape(width=160, layers=6, heads=5, kv_heads=5, hidden=448, vocabulary=640, context=1024)
