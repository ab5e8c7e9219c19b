#!/usr/bin/env python3
"""Measures an NVIDIA GPU for `ipw estimate calibrate` and `ipw estimate validate`.

    research/calibrate-gpu.py [--out DIR] [--seconds S] [--budget S] [--only host|calibrate|validate]

Writes DIR/calibrate.csv (GEMMs of many sizes and dtypes, streams, FMA chains, kernel launches, host launch time of an
operator in eager mode, idle), DIR/validate.csv (ResNet-50, BERT, ViT and decoders of the shapes of Llama 3.2 1B and
3.1 8B, with random weights) and DIR/about.json.  Needs PyTorch and NVIDIA's driver.  Changes no clock, limit or mode of
the GPU.

A window begins and ends at an update of the GPU's energy counter while the load continues, so that its joules and its
seconds cover the same time.  A row is one repetition: latency_s is its mean time, energy_j is power times latency_s;
window_s and updates are the length of the window and its number of counter updates.
"""
import argparse
import csv
import ctypes
import itertools
import json
import math
import pathlib
import sys
import threading
import time

WARM_S = 0.25        # load before a window, for clocks and power to settle
BATCH_S = 0.01       # work enqueued at a time
IN_FLIGHT = 3        # enqueued batches, so that the GPU is never idle
ROTATE_BYTES = 256e6  # rotated operands, so that they are read from memory rather than from the cache
START = time.monotonic()


def say(text):
    print(f"[{time.monotonic() - START:6.1f} s] {text}", flush=True)


# ---- the meter ----

class Meter:
    """The energy counter of one GPU, read through NVML."""

    def __init__(self, uuid):
        self.lib = ctypes.CDLL("libnvidia-ml.so.1")
        self.check(self.lib.nvmlInit_v2(), "nvmlInit")
        self.card = ctypes.c_void_p()
        code = -1
        if uuid:
            name = uuid if uuid.startswith("GPU-") else "GPU-" + uuid
            code = self.lib.nvmlDeviceGetHandleByUUID(name.encode(), ctypes.byref(self.card))
        if code:
            self.check(self.lib.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.card)), "device 0")
        self.joules()

    @staticmethod
    def check(code, what):
        if code:
            sys.exit(f"calibrate-gpu: {what}: NVML returned {code}: energy cannot be measured on this machine")

    def joules(self):
        value = ctypes.c_ulonglong()
        self.check(self.lib.nvmlDeviceGetTotalEnergyConsumption(self.card, ctypes.byref(value)),
                   "the energy counter")
        return value.value / 1000

    def number(self, function, *args):
        value = ctypes.c_uint()
        code = getattr(self.lib, function)(self.card, *args, ctypes.byref(value))
        return None if code else value.value

    def text(self, function, *args):
        buffer = ctypes.create_string_buffer(96)
        code = getattr(self.lib, function)(*args, buffer, 96)
        return None if code else buffer.value.decode()

    def reasons(self):
        value = ctypes.c_ulonglong()
        code = self.lib.nvmlDeviceGetCurrentClocksThrottleReasons(self.card, ctypes.byref(value))
        return None if code else value.value

    def state(self):
        return {"sm_clock_mhz": self.number("nvmlDeviceGetClockInfo", 1),
                "memory_clock_mhz": self.number("nvmlDeviceGetClockInfo", 2),
                "temperature_c": self.number("nvmlDeviceGetTemperature", 0),
                "throttle": self.reasons()}

    def about(self):
        limit = self.number("nvmlDeviceGetEnforcedPowerLimit")
        return {"driver": self.text("nvmlSystemGetDriverVersion"),
                "power_limit_w": limit / 1000 if limit else None, **self.state()}

    def tick(self):
        """Waits for the counter to change: (time, joules), the time to within half a millisecond.  Polls with a pause, since
        a busy loop would hold the GIL and slow down the thread that launches kernels in eager mode."""
        value, before = self.joules(), time.monotonic()
        give_up = before + 3
        while True:
            time.sleep(0.001)
            started = time.monotonic()
            now = self.joules()
            ended = time.monotonic()
            if now != value:
                return (before + ended) / 2, now
            if ended > give_up:
                sys.exit("calibrate-gpu: the energy counter does not change")
            before = started


class Window(threading.Thread):
    """Measures from one update of the counter to another, at least `seconds` later, while a load runs."""

    def __init__(self, meter, seconds, warm):
        super().__init__(daemon=True)
        self.meter, self.seconds, self.warm = meter, seconds, warm
        self.window_s = self.joules = None
        self.state, self.failure = {}, None

    def run(self):
        try:
            time.sleep(self.warm)
            start, before = self.meter.tick()
            time.sleep(self.seconds / 2)
            self.state = self.meter.state()
            time.sleep(max(0.0, start + self.seconds - 0.02 - time.monotonic()))
            end, after = self.meter.tick()
            self.window_s, self.joules = end - start, after - before
        except BaseException as problem:  # raised by the waiting thread
            self.failure = problem


def run_load(torch, step, window):
    """Keeps the queue full until the window has ended: (seconds per repetition, repetitions)."""
    step()
    torch.cuda.synchronize()
    one, count = 0.0, 1
    while True:  # finds the number of repetitions per batch
        begun = time.monotonic()
        for _ in range(count):
            step()
        torch.cuda.synchronize()
        one = (time.monotonic() - begun) / count
        if one * count >= BATCH_S / 2 or count >= 1 << 16:
            break
        count *= 4
    batch = max(1, round(BATCH_S / one))
    events, done, marks = [], 0, []
    window.start()
    while window.is_alive():
        for _ in range(batch):
            step()
        event = torch.cuda.Event()
        event.record()
        events.append(event)
        if len(events) > IN_FLIGHT:
            events.pop(0).synchronize()
            done += batch
            marks.append((time.monotonic(), done))
    torch.cuda.synchronize()
    window.join()
    if window.failure:
        raise window.failure
    skip = next((i for i, (when, _) in enumerate(marks) if when > marks[0][0] + window.warm), 0)
    (first, before), (last, after) = marks[min(skip, len(marks) - 2)], marks[-1]
    return (last - first) / (after - before), after - before


# ---- rows ----

class Table:
    """A CSV file that is flushed after each row."""

    def __init__(self, path, columns):
        self.file = open(path, "w", newline="", encoding="utf-8")
        self.out = csv.DictWriter(self.file, columns, extrasaction="ignore", restval="")
        self.out.writeheader()
        self.file.flush()
        self.count = 0

    def add(self, row):
        self.out.writerow({k: "" if v is None else v for k, v in row.items()})
        self.file.flush()
        self.count += 1


MEASURED = ["latency_s", "energy_j", "repeats", "window_s", "updates", "power_w", "sm_clock_mhz",
            "memory_clock_mhz", "temperature_c", "throttle", "notes"]
CALIBRATE = ["hardware", "op", "shape", "dtype", "unit", "flops", "bytes"] + MEASURED
VALIDATE = ["hardware", "model", "precision", "batch", "phase", "prompt_tokens", "context",
            "runtime"] + MEASURED


class Bench:
    def __init__(self, torch, meter, args):
        self.torch, self.meter, self.args = torch, meter, args
        self.hardware = torch.cuda.get_device_name(0)
        self.skipped = []

    def left(self):
        return self.args.budget - (time.monotonic() - START)

    def measure(self, step, seconds):
        window = Window(self.meter, seconds, WARM_S)
        latency, repeats = run_load(self.torch, step, window)
        power = window.joules / window.window_s
        return {"hardware": self.hardware, "latency_s": f"{latency:.9g}",
                "energy_j": f"{power * latency:.9g}", "repeats": repeats,
                "window_s": f"{window.window_s:.6g}", "updates": round(window.window_s * 10),
                "power_w": f"{power:.6g}", **window.state}

    def row(self, table, what, label, make, keep_s, measure=None):
        """Adds one row; `make` returns a step.  A failure is reported, and the row is skipped."""
        if self.left() < keep_s:
            self.skipped.append(label)
            return
        try:
            step = make()
            row = {**what, **(measure or self.measure)(step, self.args.seconds)}
            table.add(row)
            rate = what.get("flops", 0) / float(row["latency_s"]) / 1e12
            flow = what.get("bytes", 0) / float(row["latency_s"]) / 1e12
            say(f"{label:44s} {float(row['latency_s']) * 1e3:10.4f} ms {float(row['power_w']):7.1f} W"
                f" {rate:8.2f} TFLOP/s {flow:6.3f} TB/s {row['sm_clock_mhz']} MHz"
                f" {row['temperature_c']} C throttle {row['throttle']}")
        except Exception as problem:
            say(f"{label:44s} skipped: {type(problem).__name__}: {str(problem).splitlines()[0][:120]}")
            self.skipped.append(label)
        finally:
            step = make = None
            self.torch.cuda.empty_cache()

    def idle(self, table, note):
        window = Window(self.meter, max(1.5, self.args.seconds), 0)
        window.start()
        window.join()
        if window.failure:
            raise window.failure
        power = window.joules / window.window_s
        table.add({"hardware": self.hardware, "op": "idle", "flops": 0, "bytes": 0, "repeats": 1,
                   "latency_s": f"{window.window_s:.6g}", "energy_j": f"{window.joules:.6g}",
                   "window_s": f"{window.window_s:.6g}", "updates": round(window.window_s * 10),
                   "power_w": f"{power:.6g}", **window.state, "notes": note})
        say(f"idle, {note}: {power:.1f} W, {window.state['sm_clock_mhz']} MHz")


# ---- loads of the calibration ----

def host_s(torch, step, count):
    """Host time of one of the `count` operators of a step: lower quartile of twelve rounds."""
    took = []
    for _ in range(12):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        step()
        torch.cuda.synchronize()
        took.append(time.perf_counter() - begun)
    return sorted(took)[3] / count


def host_launch_s(torch):
    """Host time to launch one small operator in eager mode."""
    number = torch.zeros(8, device="cuda", dtype=torch.float16)
    return host_s(torch, lambda: [number.add_(1) for _ in range(500)], 500)


class Loads:
    def __init__(self, torch):
        self.torch = torch
        self.types = {"fp64": torch.float64, "fp32": torch.float32, "tf32": torch.float32,
                      "fp16": torch.float16, "bf16": torch.bfloat16, "int8": torch.int8,
                      "fp8": getattr(torch, "float8_e4m3fn", None)}

    def random(self, dtype, *shape):
        torch = self.torch
        if dtype == "int8":
            return torch.randint(-127, 128, shape, dtype=torch.int8, device="cuda")
        wide = torch.float64 if dtype == "fp64" else torch.float32
        return torch.randn(shape, dtype=wide, device="cuda").to(self.types[dtype])

    def gemm(self, dtype, m, n, k):
        """Rotates operands, so that they do not stay in the cache."""
        torch = self.torch
        set_tf32(torch, dtype == "tf32")
        sets = max(1, min(64, math.ceil(ROTATE_BYTES / gemm_bytes(dtype, m, n, k))))
        operands = [(self.random(dtype, m, k), self.random(dtype, n, k).t()) for _ in range(sets)]
        turn = itertools.cycle(operands).__next__
        if dtype == "int8":
            return lambda: torch._int_mm(*turn())
        if dtype == "fp8":
            scale = torch.ones((), device="cuda")
            return lambda: torch._scaled_mm(*turn(), scale_a=scale, scale_b=scale,
                                            out_dtype=torch.bfloat16)
        results = itertools.cycle([torch.empty(m, n, dtype=self.types[dtype], device="cuda")
                                   for _ in range(sets)]).__next__
        return lambda: torch.mm(*turn(), out=results())

    def add(self, dtype, count):
        torch = self.torch
        a, b = self.random(dtype, count), self.random(dtype, count)
        out = torch.empty_like(a)
        return lambda: torch.add(a, b, out=out)

    def copy(self, count):
        a = self.random("fp32", count)
        out = self.torch.empty_like(a)
        return lambda: out.copy_(a)

    def chain(self, count, length):
        """x = x a + b, `length` times in registers: vector units at any arithmetic intensity.  With an explicit fma()
        if the compiler has it, since it does not contract the expression itself."""
        make, x = self.torch.cuda.jiterator._create_jit_fn, self.random("fp32", count)
        for step in ("fma(x, a, b)", "x * a + b"):
            code = ("template <typename T> T chain(T x, T a, T b) {\n#pragma unroll 32\n"
                    f"for (int i = 0; i < {length}; i++) x = {step}; return x; }}")
            function = make(code, a=-0.9990234375, b=0.7001953125)
            try:
                function(x[:16])
                break
            except RuntimeError as problem:
                say(f"{step}: {str(problem).splitlines()[0][:100]}")
        return lambda: function(x)

    def launch(self):
        x = self.torch.zeros(1, device="cuda")
        return lambda: x.add_(1)

    def launch_graph(self, kernels):
        x = self.torch.zeros(1, device="cuda")

        def many():
            for _ in range(kernels):
                x.add_(1)
        return capture(self.torch, many)


def set_tf32(torch, yes):
    torch.backends.cuda.matmul.allow_tf32 = yes
    torch.backends.cudnn.allow_tf32 = yes


WIDTH = {"fp64": 8, "fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2, "int8": 1, "fp8": 1}
WIDTH_OUT = {**WIDTH, "int8": 4, "fp8": 2}


def gemm_bytes(dtype, m, n, k):
    return WIDTH[dtype] * (m * k + k * n) + WIDTH_OUT[dtype] * m * n


def capture(torch, step):
    """The same work as one CUDA graph."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


SQUARES = [(2048,) * 3, (4096,) * 3, (8192,) * 3]
SKINNY = [(128, 8192, 8192)]
GEMMS = [("fp16", [(1024,) * 3] + SQUARES + [(16, 8192, 8192), (256, 8192, 8192), (512, 8192, 8192)]),
         ("fp32", SQUARES + SKINNY + [(16, 8192, 8192)]),
         ("bf16", SQUARES + SKINNY),
         ("tf32", SQUARES + SKINNY),
         ("fp8", SQUARES + SKINNY),
         ("int8", SQUARES + SKINNY),
         ("fp64", SQUARES[:2] + [(8192, 8192, 1024)] + SKINNY)]


def measure_host(bench, table):
    host_launch_s(bench.torch)
    took = sorted(host_launch_s(bench.torch) for _ in range(5))[2]
    table.add({"hardware": bench.hardware, "op": "host_launch", "latency_s": f"{took:.6g}", "energy_j": "",
               "notes": "one addition, eager"})
    say(f"host launch time of an operator: {1e6 * took:.2f} us: ipw estimate --host-launch-us {1e6 * took:.2f}")


def calibrate(bench, table, keep_s):
    torch, loads = bench.torch, Loads(bench.torch)

    def row(label, make, **what):
        bench.row(table, what, label, make, keep_s)

    measure_host(bench, table)
    row("launch, one element", loads.launch, op="launch", shape="1", dtype="fp32", unit="vector",
        flops=1, bytes=8, notes="eager")
    row("launch, one element, 100 in a graph", lambda: loads.launch_graph(100), op="launch_graph",
        shape="100", dtype="fp32", unit="vector", flops=100, bytes=800,
        notes="CUDA graph of 100 kernels; a repetition is all of them")
    for count in (1 << 28, 1 << 25):
        row(f"vector_add fp32 {count}", lambda: loads.add("fp32", count), op="vector_add", shape=count,
            dtype="fp32", unit="vector", flops=count, bytes=12 * count)
    row(f"copy {1 << 28}", lambda: loads.copy(1 << 28), op="copy", shape=1 << 28, dtype="fp32",
        unit="vector", flops=0, bytes=8 << 28)
    for length in (8, 32, 128, 512, 4096):
        count = 1 << (26 if length < 4096 else 24)
        row(f"chain fp32 {count} x {length}", lambda: loads.chain(count, length), op="fma_chain",
            shape=f"{count}x{length}", dtype="fp32", unit="vector", flops=2 * count * length,
            bytes=8 * count)
    for dtype, shapes in GEMMS:
        for m, n, k in shapes:
            row(f"matmul {dtype} {m}x{n}x{k}", lambda: loads.gemm(dtype, m, n, k), op="matmul",
                shape=f"{m}x{n}x{k}", dtype=dtype,
                unit="vector" if dtype == "fp32" else "matrix",
                flops=2 * m * n * k, bytes=gemm_bytes(dtype, m, n, k))
    set_tf32(torch, False)


# ---- whole models for the validation ----

def plain_resnet50(torch):
    """ResNet-50 for machines without torchvision: the same layers."""
    nn = torch.nn

    class Bottleneck(nn.Module):
        def __init__(self, inside, width, stride):
            super().__init__()
            out = 4 * width
            self.body = nn.Sequential(
                nn.Conv2d(inside, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(True),
                nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(True),
                nn.Conv2d(width, out, 1, bias=False), nn.BatchNorm2d(out))
            self.short = nn.Identity() if inside == out and stride == 1 else nn.Sequential(
                nn.Conv2d(inside, out, 1, stride, bias=False), nn.BatchNorm2d(out))
            self.relu = nn.ReLU(True)

        def forward(self, x):
            return self.relu(self.body(x) + self.short(x))

    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(True),
              nn.MaxPool2d(3, 2, 1)]
    inside = 64
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for index in range(blocks):
            layers.append(Bottleneck(inside, width, stride if index == 0 else 1))
            inside = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


def make_resnet50(torch):
    try:
        from torchvision.models import resnet50
        model = resnet50(weights=None)
    except Exception:
        model = plain_resnet50(torch)
    count = sum(p.numel() for p in model.parameters())
    assert count == 25557032, f"ResNet-50 has {count} parameters"
    return model.cuda().eval()


SHAPES = {"llama-3.2-1b": {"DIM": 2048, "LAYERS": 16, "HEADS": 32, "HEADS_KV": 8, "HEAD": 64, "INNER": 8192,
                           "WORDS": 128256, "tied": True, "parameters": 1235814400},
          "llama-3.1-8b": {"DIM": 4096, "LAYERS": 32, "HEADS": 32, "HEADS_KV": 8, "HEAD": 128, "INNER": 14336,
                           "WORDS": 128256, "tied": False, "parameters": 8030261248}}


class Llama:
    """A decoder of such a shape with random weights and a static KV cache."""

    def __init__(self, torch, name, dtype):
        self.torch, self.f = torch, torch.nn.functional
        vars(self).update(SHAPES[name])
        self.options = {"dtype": dtype, "device": "cuda"}
        kv = self.HEADS_KV * self.HEAD
        self.table = self.weight(self.WORDS, self.DIM)
        self.layers = [{"norm1": self.ones(), "norm2": self.ones(),
                        "q": self.weight(self.DIM, self.DIM), "k": self.weight(kv, self.DIM),
                        "v": self.weight(kv, self.DIM), "o": self.weight(self.DIM, self.DIM),
                        "gate": self.weight(self.INNER, self.DIM), "up": self.weight(self.INNER, self.DIM),
                        "down": self.weight(self.DIM, self.INNER)} for _ in range(self.LAYERS)]
        self.last = self.ones()
        self.head = self.table if self.tied else self.weight(self.WORDS, self.DIM)
        count = sum(w.numel() for layer in self.layers for w in layer.values()) + self.last.numel()
        count += self.table.numel() + (0 if self.tied else self.head.numel())
        assert count == self.parameters, f"{name} has {count} parameters"
        angles = torch.outer(torch.arange(16384, device="cuda").float(),
                             500000.0 ** (-torch.arange(0, self.HEAD, 2, device="cuda").float() / self.HEAD))
        angles = torch.cat([angles, angles], -1)
        self.cos, self.sin = angles.cos().to(dtype), angles.sin().to(dtype)

    def weight(self, *shape):
        return self.torch.randn(shape, **self.options) * 0.02

    def ones(self):
        return self.torch.ones(self.DIM, **self.options)

    def cache(self, batch, length):
        shape = (2, self.LAYERS, batch, self.HEADS_KV, length, self.HEAD)
        return self.torch.randn(shape, **self.options) * 0.1

    def norm(self, x, weight):
        return self.f.rms_norm(x, (self.DIM,), weight, 1e-5)

    def turn(self, x, start):
        half = self.HEAD // 2
        cos, sin = (t[start:start + x.shape[2]] for t in (self.cos, self.sin))
        return x * cos + self.torch.cat([-x[..., half:], x[..., :half]], -1) * sin

    def attend(self, q, k, v, causal):
        try:
            return self.f.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True)
        except TypeError:
            times = self.HEADS // self.HEADS_KV
            k, v = k.repeat_interleave(times, 1), v.repeat_interleave(times, 1)
            return self.f.scaled_dot_product_attention(q, k, v, is_causal=causal)

    def forward(self, ids, cache, start):
        """Computes new tokens at positions from `start`; returns the logits of the last one."""
        batch, new = ids.shape
        x = self.f.embedding(ids, self.table)
        for index, layer in enumerate(self.layers):
            h = self.norm(x, layer["norm1"])
            q, k, v = (self.f.linear(h, layer[name]).view(batch, new, heads, self.HEAD).transpose(1, 2)
                       for name, heads in (("q", self.HEADS), ("k", self.HEADS_KV), ("v", self.HEADS_KV)))
            q, k = self.turn(q, start), self.turn(k, start)
            keys, values = cache[0, index], cache[1, index]
            keys[:, :, start:start + new] = k
            values[:, :, start:start + new] = v
            seen = slice(0, start + new)
            a = self.attend(q, keys[:, :, seen], values[:, :, seen], new > 1)
            x = x + self.f.linear(a.transpose(1, 2).reshape(batch, new, self.DIM), layer["o"])
            h = self.norm(x, layer["norm2"])
            h = self.f.silu(self.f.linear(h, layer["gate"])) * self.f.linear(h, layer["up"])
            x = x + self.f.linear(h, layer["down"])
        return self.f.linear(self.norm(x[:, -1:], self.last), self.head)


def validate_resnet(bench, table):
    torch = bench.torch
    for dtype, kind in (("fp32", torch.float32), ("fp16", torch.float16)):
        set_tf32(torch, False)
        model = make_resnet50(torch).to(dtype=kind, memory_format=torch.channels_last)
        for batch, runtime in ((1, "eager"), (8, "eager"), (64, "eager"), (1, "graph")):
            image = torch.randn(batch, 3, 224, 224, dtype=kind, device="cuda").to(
                memory_format=torch.channels_last)

            def make():
                step = lambda: model(image)
                return step if runtime == "eager" else capture(torch, step)
            bench.row(table, {"model": "resnet50", "precision": dtype, "batch": batch,
                              "runtime": runtime, "notes": "channels last, batch norm not folded"},
                      f"resnet50 {dtype} batch {batch} {runtime}", make, 4)


def validate_llama(bench, table, name, cases):
    """Each case: tokens of the prompt, or context of the decoded token; batch, runtime."""
    torch = bench.torch
    model = Llama(torch, name, torch.float16)
    for phase, length, batch, runtime in cases:
        prompt, context = (length, 0) if phase == "prefill" else (0, length)
        ids = torch.randint(0, model.WORDS, (batch, prompt or 1), device="cuda")

        def make():
            cache = model.cache(batch, context + ids.shape[1])
            step = lambda: model.forward(ids, cache, context)
            return step if runtime == "eager" else capture(torch, step)
        bench.row(table, {"model": name, "precision": "fp16", "batch": batch, "phase": phase,
                          "prompt_tokens": prompt or None, "context": context or None,
                          "runtime": runtime, "notes": "random weights; logits of the last token"},
                  f"{name} fp16 {phase} {length} batch {batch} {runtime}", make, 4)


def validate_small_llama(bench, table):
    validate_llama(bench, table, "llama-3.2-1b",
                   [("decode", 512, 1, "graph"), ("decode", 512, 8, "graph"), ("decode", 512, 32, "graph"),
                    ("prefill", 512, 1, "eager"), ("prefill", 512, 8, "eager"), ("decode", 512, 1, "eager"),
                    ("prefill", 512, 1, "graph")])


def validate_large_llama(bench, table):
    validate_llama(bench, table, "llama-3.1-8b",
                   [("decode", context, batch, "graph")
                    for context, batch in ((512, 1), (8192, 1), (512, 16), (4096, 16), (1024, 64))] +
                   [("prefill", 512, 1, "graph"), ("prefill", 2048, 1, "graph")])


class Encoder:
    """Twelve blocks of the size of BERT-base and ViT-B with random weights; pre-norm as in ViT, or post-norm as in
    BERT."""
    DIM, LAYERS, HEADS, INNER = 768, 12, 12, 3072

    def __init__(self, torch, norm_first):
        self.torch, self.f, self.norm_first = torch, torch.nn.functional, norm_first
        self.layers = [{"q": self.pair(self.DIM, self.DIM), "k": self.pair(self.DIM, self.DIM),
                        "v": self.pair(self.DIM, self.DIM), "o": self.pair(self.DIM, self.DIM),
                        "up": self.pair(self.INNER, self.DIM), "down": self.pair(self.DIM, self.INNER),
                        "norm1": self.pair(self.DIM), "norm2": self.pair(self.DIM)}
                       for _ in range(self.LAYERS)]

    def weight(self, *shape):
        return self.torch.randn(shape, dtype=self.torch.float16, device="cuda") * 0.02

    def pair(self, *shape):
        return self.weight(*shape), self.weight(shape[0])

    def norm(self, x, weights):
        return self.f.layer_norm(x, (self.DIM,), *weights)

    def attention(self, x, layer):
        q, k, v = (self.f.linear(x, *layer[name]).view(*x.shape[:2], self.HEADS, -1).transpose(1, 2)
                   for name in "qkv")
        a = self.f.scaled_dot_product_attention(q, k, v)
        return self.f.linear(a.transpose(1, 2).reshape(x.shape), *layer["o"])

    def feed(self, x, layer):
        return self.f.linear(self.f.gelu(self.f.linear(x, *layer["up"])), *layer["down"])

    def forward(self, x):
        for layer in self.layers:
            for part, norm in ((self.attention, layer["norm1"]), (self.feed, layer["norm2"])):
                x = x + part(self.norm(x, norm), layer) if self.norm_first else \
                    self.norm(x + part(x, layer), norm)
        return x


class Bert(Encoder):
    def __init__(self, torch):
        super().__init__(torch, norm_first=False)
        self.tables = [self.weight(count, self.DIM) for count in (30522, 512, 2)]
        self.first, self.pool = self.pair(self.DIM), self.pair(self.DIM, self.DIM)

    def __call__(self, ids, places, kinds):
        x = sum(self.f.embedding(i, table) for i, table in zip((ids, places, kinds), self.tables))
        x = self.forward(self.norm(x, self.first))
        return x, self.torch.tanh(self.f.linear(x[:, 0], *self.pool))


class Vit(Encoder):
    def __init__(self, torch):
        super().__init__(torch, norm_first=True)
        self.patches, self.head = self.pair(self.DIM, 3, 16, 16), self.pair(1000, self.DIM)
        self.token, self.places = self.weight(1, 1, self.DIM), self.weight(1, 197, self.DIM)
        self.last = self.pair(self.DIM)

    def __call__(self, image):
        x = self.f.conv2d(image, *self.patches, stride=16).flatten(2).transpose(1, 2)
        x = self.torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.places
        return self.f.linear(self.norm(self.forward(x), self.last)[:, 0], *self.head)


def validate_encoders(bench, table):
    torch = bench.torch
    bert, vit = Bert(torch), Vit(torch)
    for batch in (1, 32):
        ids = [torch.randint(0, most, (batch, 128), device="cuda") for most in (30522, 512, 2)]
        image = torch.randn(batch, 3, 224, 224, dtype=torch.float16, device="cuda")
        for name, tokens, step in (("bert-base-uncased", 128, lambda: bert(*ids)),
                                   ("vit_b_16", None, lambda: vit(image))):
            bench.row(table, {"model": name, "precision": "fp16", "batch": batch, "prompt_tokens": tokens,
                              "runtime": "graph", "notes": "random weights"},
                      f"{name} fp16 batch {batch} graph", lambda: capture(torch, step), 4)


def arguments(name, description, budget):
    """Common options of the tools that use a Bench."""
    parser = argparse.ArgumentParser(prog=name, description=description.splitlines()[0])
    parser.add_argument("--out", default=name, type=pathlib.Path)
    parser.add_argument("--seconds", default=1.1, type=float, help="length of a power window")
    parser.add_argument("--budget", default=budget, type=float, help="total time in seconds")
    return parser


def start(parser):
    """Returns the options, PyTorch, and a Bench on its first device; writes about.json."""
    args = parser.parse_args()
    if args.seconds < 1:
        parser.error("--seconds below 1 is under ten updates of the card's counter")
    sys.setswitchinterval(0.0005)
    args.out.mkdir(parents=True, exist_ok=True)
    say("starting PyTorch")
    import torch
    if not torch.cuda.is_available():
        sys.exit(f"{parser.prog}: PyTorch sees no CUDA device")
    uuid = getattr(torch.cuda.get_device_properties(0), "uuid", None)
    meter = Meter(str(uuid) if uuid else None)
    bench = Bench(torch, meter, args)
    about = {"hardware": bench.hardware, "torch": torch.__version__, "cuda": torch.version.cuda,
             **meter.about()}
    (args.out / "about.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    say(json.dumps(about))
    return args, torch, bench


def main():
    parser = arguments("calibrate-gpu", __doc__, budget=240)
    parser.add_argument("--only", choices=("host", "calibrate", "validate"))
    args, torch, bench = start(parser)
    with torch.inference_mode():
        if args.only == "host":
            measure_host(bench, Table(args.out / "calibrate.csv", CALIBRATE))
            return
        if args.only != "validate":
            table = Table(args.out / "calibrate.csv", CALIBRATE)
            torch.zeros(1, device="cuda")
            bench.idle(table, "before the loads, context open")
            calibrate(bench, table, keep_s=48 if args.only is None else 4)
            time.sleep(1.5)
            bench.idle(table, "1.5 s after the loads")
            say(f"{table.count} rows in {args.out / 'calibrate.csv'}")
        if args.only != "calibrate":
            args.seconds = max(2.0, args.seconds)
            table = Table(args.out / "validate.csv", VALIDATE)
            for part in (validate_small_llama, validate_large_llama, validate_resnet, validate_encoders):
                try:
                    part(bench, table)
                except Exception as problem:
                    say(f"{part.__name__}: {type(problem).__name__}: {problem}")
                torch.cuda.empty_cache()
            say(f"{table.count} rows in {args.out / 'validate.csv'}")
    if bench.skipped:
        say("skipped: " + "; ".join(bench.skipped))
    say("done")


if __name__ == "__main__":
    main()
