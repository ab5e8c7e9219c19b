"""What an NVIDIA GPU draws at full use of one thing at a time: products in each format, memory, cache,
and nothing.  The energies of data/hardware/h200.json are made of its output.

    python3 examples/gpu_draw.py [--seconds 5]

Clocks and limits stay as found: `nvidia-smi -lgc 1200` before it shows another point.
"""
import argparse
import ctypes
import json
import time

import torch

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--seconds", type=float, default=5)
SECONDS = parser.parse_args().seconds
SIZE = 8192

nvml, card = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_void_p()
nvml.nvmlInit_v2()
nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(card))


def joules():
    value = ctypes.c_ulonglong()
    if nvml.nvmlDeviceGetTotalEnergyConsumption(card, ctypes.byref(value)):
        raise SystemExit("this GPU has no energy counter")
    return value.value / 1e3


def clock():
    value = ctypes.c_uint()
    nvml.nvmlDeviceGetClockInfo(card, 1, ctypes.byref(value))
    return value.value


def go_on(work, seconds):
    """Rounds of the work, seconds that they took, mean MHz."""
    begun, rounds, clocks = time.monotonic(), 0, []
    while time.monotonic() - begun < seconds:
        if work:
            for _ in range(20):
                work()
            rounds += 20
        else:
            time.sleep(0.2)
        clocks.append(clock())
        torch.cuda.synchronize()
    return rounds, time.monotonic() - begun, sum(clocks) / len(clocks)


def measure(name, work, flop=0, byte=0):
    go_on(work, 1.5)  # clocks, power and temperature settle
    before = joules()
    rounds, seconds, mhz = go_on(work, SECONDS)
    watts = (joules() - before) / seconds
    print(json.dumps({"name": name, "watts": round(watts, 1), "mhz": round(mhz),
                      "tflops": round(rounds * flop / seconds / 1e12, 1),
                      "gb_per_s": round(rounds * byte / seconds / 1e9)}), flush=True)
    time.sleep(2)


def numbers(kind):
    return torch.randn(SIZE, SIZE, device="cuda").to(kind)


def products():
    flop = 2 * SIZE**3
    for kind in (torch.bfloat16, torch.float16, torch.float64):
        left, right = numbers(kind), numbers(kind)
        measure(str(kind)[6:], lambda: left @ right, flop)
    left, right = numbers(torch.float32), numbers(torch.float32)
    for tf32 in (True, False):
        torch.backends.cuda.matmul.allow_tf32 = tf32
        measure("tf32" if tf32 else "float32", lambda: left @ right, flop)
    kind, one = torch.float8_e4m3fn, torch.ones(1, device="cuda")
    left, right = numbers(kind), numbers(kind).t()
    measure("float8", lambda: torch._scaled_mm(left, right, one, one, out_dtype=torch.bfloat16), flop)
    left = torch.randint(-127, 127, (SIZE, SIZE), device="cuda", dtype=torch.int8)
    measure("int8", lambda: torch._int_mm(left, left.t()), flop)


def streams():
    for count in (2**31, 2**22):
        here = torch.randn(count, device="cuda")
        there = torch.empty_like(here)
        measure(f"copy of {count >> 18} MiB", lambda: there.copy_(here), 0, 8 * count)
        measure(f"sum of {count >> 18} MiB", here.sum, 0, 4 * count)


measure("idle, a context open", None)
products()
streams()
