#!/usr/bin/env python3
"""How fast single operators run on an NVIDIA GPU, over a grid of sizes, and what they draw.

    tools/measure-kernels.py [--out DIR] [--budget S]

Writes DIR/kernels.csv: operator, shape, format, FLOPs and bytes (compulsory traffic, each operand once), the time of
one call inside a CUDA graph of many on operands in turn (so that they come from memory where they are larger than the
cache), and for every few rows the power of a window under that load.  Needs PyTorch.  Reads the card only.
"""
import importlib.util
import itertools
import json
import math
import pathlib
import sys

spec = importlib.util.spec_from_file_location("calibrate", pathlib.Path(__file__).with_name("calibrate-gpu.py"))
calibrate = importlib.util.module_from_spec(spec)
spec.loader.exec_module(calibrate)
say = calibrate.say

COLUMNS = ["hardware", "op", "shape", "dtype", "flops", "bytes", "latency_s", "cold", "power_w", "window_s",
           "sm_clock_mhz", "temperature_c", "throttle"]
CALLS = 20         # in a graph
ROTATE = 200e6     # bytes of operands in turn
ROTATE_MOST = 20


class Grid:
    def __init__(self, bench, table):
        self.bench, self.torch, self.table = bench, bench.torch, table
        torch = bench.torch
        self.f = torch.nn.functional
        self.kinds = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32, "tf32": torch.float32}
        self.seen = 0

    def random(self, dtype, *shape):
        return self.torch.randn(shape, dtype=self.kinds[dtype], device="cuda")

    def time(self, graph):
        torch = self.torch
        for _ in range(2):
            graph()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        best, spent = math.inf, 0.0
        for _ in range(12):
            begin.record()
            graph()
            end.record()
            end.synchronize()
            took = begin.elapsed_time(end) * 1e-3
            best, spent = min(best, took), spent + took
            if spent > 0.06:
                break
        return best / CALLS

    def row(self, op, shape, dtype, flops, size, make, power=False):
        """`make` gives one set of operands' call; `size` is what a call reads and writes."""
        if self.bench.left() < 5:
            self.bench.skipped.append(f"{op} {shape} {dtype}")
            return
        torch = self.torch
        calibrate.set_tf32(torch, dtype == "tf32")
        try:
            sets = max(1, min(ROTATE_MOST, math.ceil(ROTATE / size)))
            calls = [make() for _ in range(sets)]

            def many():
                for call in itertools.islice(itertools.cycle(calls), CALLS):
                    call()
            graph = calibrate.capture(torch, many)
            what = {"hardware": self.bench.hardware, "op": op, "shape": shape, "dtype": dtype, "flops": flops,
                    "bytes": size, "cold": int(sets * size >= ROTATE)}
            row = {**what, "latency_s": f"{self.time(graph):.6g}"}
            if power:
                measured = self.bench.measure(graph, self.bench.args.seconds)
                row.update({k: measured[k] for k in ("power_w", "window_s", "sm_clock_mhz", "temperature_c",
                                                     "throttle")})
                row["latency_s"] = f"{float(measured['latency_s']) / CALLS:.6g}"
            self.table.add(row)
        except Exception as problem:
            say(f"{op} {shape} {dtype}: {type(problem).__name__}: {str(problem).splitlines()[0][:100]}")
            self.bench.skipped.append(f"{op} {shape} {dtype}")
        finally:
            calls = graph = many = None
            torch.cuda.empty_cache()

    def gemms(self):
        pairs = [(768, 768), (3072, 768), (768, 3072), (2048, 2048), (8192, 2048), (4096, 4096), (14336, 4096),
                 (4096, 14336), (128256, 2048), (1000, 2048)]
        rows = [(m, n, k, "fp16") for n, k in pairs for m in (1, 4, 16, 64, 128, 197, 512, 1024, 2048, 4096, 6304)]
        rows += [(m, n, k, d) for d in ("bf16", "tf32", "fp32") for n, k in pairs[:2] + pairs[5:7]
                 for m in (1, 16, 256, 2048)]
        for at, (m, n, k, dtype) in enumerate(rows):
            width = calibrate.WIDTH[dtype]

            def make():
                a, b, c = self.random(dtype, m, k), self.random(dtype, n, k), self.random(dtype, n)
                return lambda: self.f.linear(a, b, c)
            self.row("gemm", f"{m}x{n}x{k}", dtype, 2 * m * n * k, width * (m * k + n * k + m * n), make, at % 6 == 0)

    def convolutions(self):
        dense = [(c, o, k, s, hw) for c, o, k, s, hw in (
            (3, 64, 7, 2, 224), (64, 64, 3, 1, 56), (64, 256, 1, 1, 56), (256, 128, 1, 1, 56), (128, 128, 3, 1, 28),
            (128, 128, 3, 2, 56), (512, 256, 1, 1, 28), (256, 256, 3, 1, 14), (1024, 512, 1, 2, 14),
            (512, 512, 3, 1, 7), (512, 2048, 1, 1, 7), (64, 64, 3, 1, 224), (512, 512, 3, 1, 28), (96, 24, 1, 1, 56),
            (24, 144, 1, 1, 56), (320, 1280, 1, 1, 7))]
        for dtype in ("fp16", "tf32"):
            for at, ((c, o, k, s, hw), batch) in enumerate(itertools.product(dense, (1, 8, 32))):
                self.convolution("conv", c, o, k, s, hw, 1, batch, dtype, at % 7 == 0)
        grouped = [(128, 128, 3, 1, 56, 32), (256, 256, 3, 1, 28, 32), (512, 512, 3, 1, 14, 32), (224, 224, 3, 1, 56, 4),
                   (448, 448, 3, 1, 28, 8), (896, 896, 3, 1, 14, 16)]
        for at, ((c, o, k, s, hw, g), batch) in enumerate(itertools.product(grouped, (1, 8, 32))):
            self.convolution("conv_grouped", c, o, k, s, hw, g, batch, "fp16", at % 6 == 0)
        depthwise = [(32, 3, 1, 112), (96, 3, 2, 112), (144, 3, 1, 56), (240, 5, 1, 28), (480, 3, 1, 14),
                     (672, 5, 2, 14), (960, 3, 1, 7), (96, 7, 1, 56), (384, 7, 1, 14)]
        for dtype in ("fp16", "fp32"):
            for at, ((c, k, s, hw), batch) in enumerate(itertools.product(depthwise, (1, 8, 32))):
                self.convolution("conv_depthwise", c, c, k, s, hw, c, batch, dtype, at % 9 == 0)

    def convolution(self, op, c, o, k, s, hw, groups, batch, dtype, power):
        torch, width, out = self.torch, calibrate.WIDTH[dtype], (hw + 2 * (k // 2) - k) // s + 1
        size = width * (batch * c * hw * hw + batch * o * out * out + o * c // groups * k * k)

        def make():
            x = self.random(dtype, batch, c, hw, hw).to(memory_format=torch.channels_last)
            w = self.random(dtype, o, c // groups, k, k).to(memory_format=torch.channels_last)
            return lambda: self.f.conv2d(x, w, None, s, k // 2, 1, groups)
        self.row(op, f"{batch}x{c}x{hw}x{hw}->{o}k{k}s{s}g{groups}", dtype,
                 2 * batch * o * out * out * c // groups * k * k, size, make, power)

    def attention(self):
        full = [(b, h, h_kv, s, d, causal) for (h, h_kv, d, causal) in ((12, 12, 64, 0), (32, 8, 64, 1), (32, 8, 128, 1))
                for b, s in ((1, 128), (1, 512), (1, 2048), (8, 512), (32, 128), (32, 197))]
        for at, (b, h, kv, s, d, causal) in enumerate(full):
            def make():
                q, k, v = (self.random("fp16", b, n, s, d) for n in (h, kv, kv))
                return lambda: self.f.scaled_dot_product_attention(q, k, v, is_causal=bool(causal), enable_gqa=h != kv)
            self.row("attention_causal" if causal else "attention", f"{b}x{h}/{kv}x{s}x{s}x{d}", "fp16",
                     4 * b * h * s * s * d // (2 if causal else 1), 2 * b * s * d * (2 * h + 2 * kv), make, at % 4 == 0)
        for at, (masked, (h, kv, d), b, s) in enumerate(itertools.product(
                (0, 1), ((32, 8, 64), (32, 8, 128), (12, 2, 128), (12, 12, 64)), (1, 4, 16, 64), (512, 2048, 8192))):
            if b * s > 64 * 2048:
                continue

            def make():
                q, k, v = (self.random("fp16", b, n, t, d) for n, t in ((h, 1), (kv, s), (kv, s)))
                mask = self.torch.ones(b, 1, 1, s, dtype=self.torch.bool, device="cuda") if masked else None
                if masked and h != kv:  # as transformers does it: keys and values repeated, then a mask
                    def call():
                        kk, vv = (x[:, :, None].expand(b, kv, h // kv, s, d).reshape(b, h, s, d) for x in (k, v))
                        return self.f.scaled_dot_product_attention(q, kk, vv, attn_mask=mask)
                    return call
                return lambda: self.f.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=h != kv)
            self.row("attention_decode_masked" if masked else "attention_decode", f"{b}x{h}/{kv}x1x{s}x{d}", "fp16",
                     4 * b * h * s * d, 2 * b * d * (2 * h + 2 * kv * s), make, at % 9 == 0)

    def vectors(self):
        torch = self.torch
        sizes = [1 << n for n in (10, 13, 16, 18, 20, 21, 22, 23, 24, 26, 28)]
        for dtype, (at, count) in itertools.product(("fp16", "fp32"), enumerate(sizes)):
            width, power = calibrate.WIDTH[dtype], at in (6, 9)
            unary = {"relu": self.f.relu, "gelu": self.f.gelu, "silu": self.f.silu, "copy": torch.clone}
            for name, function in unary.items():
                def make():
                    x = self.random(dtype, count)
                    return lambda: function(x)
                self.row(name, count, dtype, count, 2 * width * count, make, power and name == "gelu")

            def make_add():
                x, y = self.random(dtype, count), self.random(dtype, count)
                return lambda: x + y
            self.row("add", count, dtype, count, 3 * width * count, make_add, power)
            for inner in (768, 4096):
                if count < inner * 4:
                    continue
                rows = count // inner

                def make_norm():
                    x, w, b = self.random(dtype, rows, inner), self.random(dtype, inner), self.random(dtype, inner)
                    return lambda: self.f.layer_norm(x, (inner,), w, b)

                def make_softmax():
                    x = self.random(dtype, rows, inner)
                    return lambda: self.f.softmax(x, -1)

                def make_sum():
                    x = self.random(dtype, rows, inner)
                    return lambda: x.mean(-1)
                self.row("layer_norm", f"{rows}x{inner}", dtype, 5 * count, 2 * width * count, make_norm, power)
                self.row("softmax", f"{rows}x{inner}", dtype, 5 * count, 2 * width * count, make_softmax)
                self.row("reduction", f"{rows}x{inner}", dtype, count, width * count, make_sum)
        for batch, c, hw in itertools.product((1, 8, 32), (64, 256, 960), (7, 28, 112)):
            if batch * c * hw * hw > 1 << 27:
                continue
            count = batch * c * hw * hw

            def make_batch_norm():
                x = self.random("fp16", batch, c, hw, hw).to(memory_format=torch.channels_last)
                w = [self.random("fp16", c) for _ in range(3)]
                var = torch.ones(c, dtype=torch.float16, device="cuda")
                return lambda: self.f.batch_norm(x, w[0], var, w[1], w[2])

            def make_pool():
                x = self.random("fp16", batch, c, hw, hw).to(memory_format=torch.channels_last)
                return lambda: self.f.adaptive_avg_pool2d(x, 1)

            def make_max():
                x = self.random("fp16", batch, c, hw, hw).to(memory_format=torch.channels_last)
                return lambda: self.f.max_pool2d(x, 3, 2, 1)
            self.row("batch_norm", f"{batch}x{c}x{hw}x{hw}", "fp16", 2 * count, 4 * count, make_batch_norm)
            self.row("pool_global", f"{batch}x{c}x{hw}x{hw}", "fp16", count, 2 * count, make_pool)
            self.row("pool_max", f"{batch}x{c}x{hw}x{hw}", "fp16", 9 * count // 4, 2 * count + count // 2, make_max)
        for rows, inner in itertools.product((1, 128, 4096), (768, 4096)):
            def make_gather():
                table = self.random("fp16", 30522, inner)
                ids = torch.randint(0, 30522, (rows,), device="cuda")
                return lambda: self.f.embedding(ids, table)
            self.row("gather", f"{rows}x{inner}", "fp16", 0, 4 * rows * inner, make_gather)
        for shape in ((8, 12, 512, 64), (32, 8, 2048, 128)):
            def make_transpose():
                x = self.random("fp16", *shape)
                return lambda: x.transpose(1, 2).contiguous()
            self.row("transpose", "x".join(map(str, shape)), "fp16", 0, 4 * math.prod(shape), make_transpose)


def main():
    args, torch, bench = calibrate.start(calibrate.arguments("measure-kernels", __doc__, budget=300))
    table = calibrate.Table(args.out / "kernels.csv", COLUMNS)
    with torch.inference_mode():
        grid = Grid(bench, table)
        for part in (grid.gemms, grid.attention, grid.convolutions, grid.vectors):
            part()
            say(f"{part.__name__}: {table.count} rows")
    if bench.skipped:
        say(f"{len(bench.skipped)} left out: " + "; ".join(bench.skipped)[:2000])


if __name__ == "__main__":
    main()
