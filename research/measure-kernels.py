#!/usr/bin/env python3
"""Measures time and power of single operators on an NVIDIA GPU, over a grid of sizes.

    research/measure-kernels.py [--out DIR] [--budget S] [--parts NAME ...]

Writes DIR/kernels.csv: operator, shape, dtype, FLOPs and bytes (compulsory traffic, each operand once), the time of one
call in a CUDA graph of many with rotated operands (so that they are read from memory if they exceed the cache), and for
some rows the power of a window under that load.  Needs PyTorch.  Changes no setting of the GPU.
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
CALLS = 20         # per graph
ROTATE = 200e6     # bytes of rotated operands
ROTATE_MOST = 20
PARTS = ["gemms", "attention", "convolutions", "vectors", "frameworks", "segmentation"]


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
        """`make` returns a call with its own operands; `size` is the bytes that a call reads and writes."""
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

    def convolution(self, op, c, o, k, s, hw, groups, batch, dtype, power, dilation=1):
        torch, width, out = self.torch, calibrate.WIDTH[dtype], (hw + 2 * (k // 2) - k) // s + 1
        size = width * (batch * c * hw * hw + batch * o * out * out + o * c // groups * k * k)

        def make():
            x = self.random(dtype, batch, c, hw, hw).to(memory_format=torch.channels_last)
            w = self.random(dtype, o, c // groups, k, k).to(memory_format=torch.channels_last)
            return lambda: self.f.conv2d(x, w, None, s, k // 2 * dilation, dilation, groups)
        atrous = f"d{dilation}" if dilation > 1 else ""
        self.row(op, f"{batch}x{c}x{hw}x{hw}->{o}k{k}s{s}g{groups}{atrous}", dtype,
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
                if masked and h != kv:  # as in transformers: K and V repeated, then a mask
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

    def segmentation(self):
        """Operators specific to semantic segmentation: atrous convolution, resizing, large images."""
        torch = self.torch
        for at, (dtype, (c, k, hw), batch, d) in enumerate(itertools.product(
                ("fp16", "bf16", "fp32"), ((240, 3, 33), (672, 5, 33), (960, 5, 33), (960, 5, 17), (480, 3, 65)), (1, 2, 8), (2, 4))):
            self.convolution("conv_atrous", c, c, k, 1, hw, c, batch, dtype, at % 15 == 1, d)
        for at, (dtype, (c, o), hw, batch, d) in enumerate(itertools.product(
                ("fp16", "bf16", "tf32"), ((960, 256), (2048, 256), (512, 512)), (33, 65), (1, 4), (2, 4, 12, 36))):
            self.convolution("conv_dilated", c, o, 3, 1, hw, 1, batch, dtype, at % 24 == 3, d)
        sizes = [(1, 256, 1, 33), (8, 256, 1, 33), (8, 128, 1, 65), (1, 21, 33, 260), (1, 21, 65, 520), (4, 21, 65, 520),
                 (8, 21, 33, 520), (2, 128, 33, 65), (8, 256, 28, 56), (8, 64, 56, 112)]
        for at, (dtype, (b, c, small, large)) in enumerate(itertools.product(("fp16", "fp32"), sizes)):
            def make():
                x = self.random(dtype, b, c, small, small).to(memory_format=torch.channels_last)
                return lambda: self.f.interpolate(x, size=(large, large), mode="bilinear", align_corners=False)
            count = b * c * large * large
            self.row("resize", f"{b}x{c}x{small}x{large}", dtype, 8 * count,
                     calibrate.WIDTH[dtype] * (count + b * c * small * small), make, at % 5 == 0)
        for at, (b, (c, hw)) in enumerate(itertools.product((1, 4), (
                (64, 130), (128, 65), (256, 65), (512, 65), (1024, 65), (2048, 65), (256, 130), (16, 260), (64, 260),
                (72, 130), (96, 112), (144, 112), (32, 112), (960, 33)))):
            def make():
                x = self.random("fp32", b, c, hw, hw).to(memory_format=torch.channels_last)
                w, v = self.random("fp32", c), torch.ones(c, device="cuda")
                return lambda: self.f.batch_norm(x, w, v, w, w)
            count = b * c * hw * hw
            self.row("batch_norm_large", f"{b}x{c}x{hw}x{hw}", "fp32", 2 * count, 8 * count, make, at % 9 == 0)

        for dtype, width, (groups, hw, batch) in itertools.product(
                ("fp16", "bf16", "tf32"), (64, 128, 256), ((8, 14, 16), (4, 28, 4), (16, 14, 4))):
            c = width * groups
            self.convolution("conv_tile_groups", c, c, 3, 1, hw, groups, batch, dtype, False)

    def frameworks(self):
        """Kernels that frameworks launch around the operators above, each through the library's own call."""
        torch, f = self.torch, self.f
        # Few input channels, as in images: the layout is converted and channels are padded.
        for dtype, (o, k, s, hw), batch in itertools.product(
                ("fp16", "tf32"), ((64, 3, 1, 224), (32, 3, 2, 224), (64, 11, 4, 224), (96, 4, 4, 224), (768, 16, 16, 224)),
                (1, 8, 32)):
            self.convolution("conv", 3, o, k, s, hw, 1, batch, dtype, batch == 8)
        widths = [(64, 3, 56, 8), (192, 3, 28, 24), (336, 3, 14, 24), (232, 3, 28, 58), (528, 3, 14, 48), (240, 3, 28, 120)]
        for (c, k, hw, width), batch in itertools.product(widths, (1, 8, 32)):
            self.convolution("conv_grouped", c // width * width, c // width * width, k, 1, hw, c // width, batch, "fp16",
                             batch == 32)
        images = [(b, c, hw) for b in (1, 8, 32) for c, hw in ((64, 56), (256, 56), (512, 14), (1024, 14), (96, 112))]
        for at, (b, c, hw) in enumerate(images):
            count = b * c * hw * hw

            def image(dtype, *shape):
                return self.random(dtype, *shape).to(memory_format=torch.channels_last)

            def make_norm():
                x, w, v = image("fp32", b, c, hw, hw), self.random("fp32", c), torch.ones(c, device="cuda")
                return lambda: f.batch_norm(x, w, v, w, w)

            def make_bias():
                x, w = image("fp16", b, c, hw, hw), self.random("fp16", 1, c, 1, 1)
                return lambda: x.add_(w)

            def make_mean():
                x = image("fp16", b, c, hw, hw)
                return lambda: x.mean((2, 3), keepdim=True)

            def make_scale():
                x, w = image("fp16", b, c, hw, hw), self.random("fp16", b, c, 1, 1)
                return lambda: x * w

            def make_cat():
                x, y = image("fp16", b, c, hw, hw), image("fp16", b, 32, hw, hw)
                return lambda: torch.cat((x, y), 1)

            def make_relu():
                x = image("fp16", b, c, hw, hw)
                return lambda: f.relu_(x)
            shape = f"{b}x{c}x{hw}x{hw}"
            self.row("batch_norm", shape, "fp32", 2 * count, 8 * count, make_norm, at % 4 == 0)
            self.row("bias", shape, "fp16", count, 4 * count, make_bias, at % 4 == 1)
            self.row("mean_image", shape, "fp16", count, 2 * count, make_mean)
            self.row("scale_image", shape, "fp16", count, 4 * count, make_scale)
            self.row("cat", shape, "fp16", 0, 4 * (count + b * 32 * hw * hw), make_cat, at % 4 == 2)
            self.row("relu_in_place", shape, "fp16", count, 4 * count, make_relu)
        # Windowed attention (Swin, MaxViT): reordering, rolling, and batched products of small matrices.
        for b, hw, c, w in itertools.product((1, 8, 32), (56, 28), (96, 192), (7,)):
            count, heads = b * hw * hw * c, c // 32
            windows = b * (hw // w) ** 2

            def make_windows():
                x = self.random("fp16", b, hw, hw, c)
                return lambda: x.view(b, hw // w, w, hw // w, w, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, w * w, c)

            def make_roll():
                x = self.random("fp16", b, hw, hw, c)
                return lambda: torch.roll(x, (-3, -3), (1, 2))

            def make_scores():
                q, k = (self.random("fp16", windows * heads, w * w, 32) for _ in range(2))
                return lambda: torch.bmm(q, k.transpose(1, 2))

            def make_softmax():
                x = self.random("fp16", windows, heads, w * w, w * w)
                return lambda: f.softmax(x, -1)

            def make_norm_rows():
                x, weight, bias = self.random("fp16", b * hw * hw, c), self.random("fp16", c), self.random("fp16", c)
                return lambda: f.layer_norm(x, (c,), weight, bias)
            pairs = windows * heads * w ** 4
            self.row("rearrange", f"{b}x{hw}x{hw}x{c}w{w}", "fp16", 0, 4 * count, make_windows, b == 8)
            self.row("roll", f"{b}x{hw}x{hw}x{c}", "fp16", 0, 4 * count, make_roll)
            self.row("bmm", f"{windows * heads}x{w * w}x{w * w}x32", "fp16", 2 * pairs * 32,
                     2 * (windows * heads * 2 * w * w * 32 + pairs), make_scores, b == 32)
            self.row("softmax", f"{windows * heads * w * w}x{w * w}", "fp16", 5 * pairs, 4 * pairs, make_softmax)
            self.row("layer_norm", f"{b * hw * hw}x{c}", "fp16", 5 * count, 4 * count, make_norm_rows, b == 8)
        # K and V repeated for each head, and chains of elementwise operators of a decoder in transformers.
        for b, s, (h, kv, d) in itertools.product((1, 4, 16), (512, 4096), ((32, 8, 64), (32, 8, 128), (12, 2, 128))):
            def make_repeat():
                x = self.random("fp16", b, kv, s, d)
                return lambda: x[:, :, None].expand(b, kv, h // kv, s, d).reshape(b, h, s, d)
            self.row("repeat_kv", f"{b}x{h}/{kv}x{s}x{d}", "fp16", 0, 2 * b * s * d * (kv + h), make_repeat, b == 16)
        for rows, n in itertools.product((1, 16, 512, 4096), (1536, 4096)):
            def make_rms():
                x, w = self.random("fp16", rows, n), self.random("fp16", n)

                def call():
                    y = x.to(torch.float32)
                    y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-5)
                    return w * y.to(torch.float16)
                return call

            def make_rotary():
                x, cos = self.random("fp16", rows, n // 128, 128), self.random("fp16", rows, 1, 128)

                def call():
                    return x * cos + torch.cat((-x[..., 64:], x[..., :64]), -1) * cos
                return call
            self.row("rms_norm_chain", f"{rows}x{n}", "fp16", 4 * rows * n, 4 * rows * n, make_rms, rows == 512)
            self.row("rotary_chain", f"{rows}x{n}", "fp16", 3 * rows * n, 4 * rows * n, make_rotary)
        for b, h, s, d in ((1, 12, 128, 64), (8, 12, 128, 64), (8, 12, 197, 64), (8, 12, 512, 64), (1, 12, 2048, 64)):
            def make_attention():
                q, k, v = (self.random("fp32", b, h, s, d) for _ in range(3))
                return lambda: f.scaled_dot_product_attention(q, k, v)
            self.row("attention", f"{b}x{h}/{h}x{s}x{s}x{d}", "fp32", 4 * b * h * s * s * d, 16 * b * s * d * h,
                     make_attention, s == 512)


def main():
    parser = calibrate.arguments("measure-kernels", __doc__, budget=300)
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=PARTS, help="parts of the grid (all)")
    args, torch, bench = calibrate.start(parser)
    table = calibrate.Table(args.out / "kernels.csv", COLUMNS)
    with torch.inference_mode():
        grid = Grid(bench, table)
        for part in args.parts:
            getattr(grid, part)()
            say(f"{part}: {table.count} rows")
    if bench.skipped:
        say(f"{len(bench.skipped)} skipped: " + "; ".join(bench.skipped)[:2000])


if __name__ == "__main__":
    main()
