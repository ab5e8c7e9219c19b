"""What the programs of this folder share: options, NVTX ranges, the measured loop, and the energy of that loop by libipw."""
import argparse
import contextlib
import ctypes
import json
import math
import time

import torch

DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


def options_of(doc, models, length=None, steps=None):
    """`models`: names of the sizes, the default first; `length` and `steps`: defaults, where the program has them."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--model", choices=models, default=models[0])
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--precision", choices=list(DTYPES), default="bf16")
    parser.add_argument("--seconds", type=float, default=10, help="least length of the measured loop (10)")
    if length:
        parser.add_argument("--length", type=int, default=length[0], help=f"{length[1]} ({length[0]})")
    if steps:
        parser.add_argument("--steps", type=int, default=steps, help=f"denoising steps ({steps})")
    parser.add_argument("--device", default="cuda", help="cuda or cpu")
    parser.add_argument("--libipw", default="libipw.so.0", help="library for the energy of the loop (libipw.so.0)")
    options = parser.parse_args()
    options.dtype = DTYPES[options.precision]
    return options


def build(options, make):
    """A model with random weights, made on the device."""
    torch.manual_seed(1)
    with torch.device(options.device):
        model = make()
    return model.to(options.dtype).eval().requires_grad_(False)


def part(options, name):
    """An NVTX range, which profilers show."""
    return torch.cuda.nvtx.range(name) if options.device == "cuda" else contextlib.nullcontext()


def wait(options):
    if options.device == "cuda":
        torch.cuda.synchronize()


class Result(ctypes.Structure):
    """ipw_result of include/ipw.h."""
    _fields_ = [("size", ctypes.c_size_t), ("seconds", ctypes.c_double), ("joules", ctypes.c_double),
                ("plus_minus", ctypes.c_double), ("coverage", ctypes.c_double), ("watts", ctypes.c_double),
                ("method", ctypes.c_int), ("low_confidence", ctypes.c_int), ("updates", ctypes.c_ulong),
                ("source", ctypes.c_char * 320), ("note", ctypes.c_char * 160)]


class Energy:
    """A region of libipw on the first GPU; everything is unknown without the library."""

    def __init__(self, path):
        try:
            self.library = ctypes.CDLL(path)
        except OSError:
            self.library = None
            return
        self.library.ipw_open.restype = ctypes.c_void_p
        self.session = ctypes.c_void_p(self.library.ipw_open(None, None))
        if not self.session:
            self.library = None

    def begin(self):
        if self.library:
            self.region = self.library.ipw_begin(self.session, b"inference")

    def end(self):
        if self.library:
            self.library.ipw_end(self.session, self.region)

    def read(self):
        result = Result(size=ctypes.sizeof(Result))
        if not self.library or self.library.ipw_read_device(self.session, self.region, b"gpu0", ctypes.byref(result)):
            return {"energy_j": None}
        known = math.isfinite(result.joules)
        return {"energy_j": result.joules if known else None, "plus_minus_j": result.plus_minus if known else None,
                "power_w": result.watts if known else None, "coverage": result.coverage}


@torch.inference_mode()
def measure(options, run, **counts):
    """Repeats run() and prints one line of JSON; `counts` are those of one call."""
    energy = Energy(options.libipw)
    begin = time.monotonic()
    for _ in range(3):  # memory, choice of kernels
        run()
        wait(options)
        if time.monotonic() - begin > options.seconds:
            break
    calls, begin = 0, time.monotonic()
    energy.begin()
    while time.monotonic() - begin < options.seconds:
        run()
        wait(options)
        calls += 1
    energy.end()
    seconds = time.monotonic() - begin
    print(json.dumps({"model": options.model, "batch": options.batch, "precision": options.precision,
                      **{key: value * calls for key, value in counts.items()}, "seconds": seconds, **energy.read()}))


def to_device(options, tensor):
    """Inputs are on the host, as they would come from decoding."""
    return tensor.to(options.device, options.dtype if tensor.is_floating_point() else tensor.dtype, non_blocking=True)


def host(options, tensor):
    return tensor.pin_memory() if options.device == "cuda" else tensor
