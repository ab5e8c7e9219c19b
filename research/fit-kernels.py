#!/usr/bin/env python3
"""Fits the attained performance of kernel classes on a device, for its hardware file.

    research/fit-kernels.py KERNELS.csv HARDWARE.json [-o FILE]

KERNELS.csv is the grid of single operators that research/measure-kernels.py measures on the device; HARDWARE.json its
hardware file, with peaks, bandwidth, units and power (`ipw list hardware ID --json` has those of the catalog).  Writes
that file with `kernels` and `kernel_classes` (docs/formats.md), and prints the error of each class to stderr.  The
formulas are those of src/estimate/kernel.c.  A class whose operators were not measured keeps the figures of the file,
else those of data/hardware/h200.json.  Needs only Python.
"""
import argparse
import csv
import json
import math
import pathlib
import re
import statistics
import sys

TILES = [(256, 128), (128, 128), (64, 128), (64, 64), (32, 64), (16, 64)]
NARROW_TILES = [(192, 128), (96, 128)]  # for 16-bit GEMMs
WIDTH = {"fp16": 2, "bf16": 2, "tf32": 4, "fp32": 4}
SPLIT_S, LEAST_DEPTH, VECTOR_DEPTH, FULL_GROUP, WIDE_GROUP, NARROW_SHARE, GROUP_S, REDUCTION_POWER = 5.4e-6, 256, 3000, 56, 180, 0.0051, 2e-6, 1.29
STEP_BYTES, TILE_QUERIES, NORM_MEASURED, NEAR_LATENCY = 128, 128, 1204224, 0.5
SETS = 20  # maximum number of rotated operand sets
TILE_SHARE = {2: 0.001, 4: 0.0022}  # per channel of a group as wide as a tile
KEYS = {"fixed": ("fixed_us", 1e6), "compute": ("compute_share", 1), "memory": ("memory_share", 1),
        "depth": ("depth_ns", 1e9), "row": ("row_ns", 1e9)}
UNITS = {"tflops": 1e12, "tops": 1e12, "mb_per_s": 1e6, "mw": 1e-3, "gflops": 1e9, "gb_per_s": 1e9, "tb_per_s": 1e12, "pj": 1e-12, "nj": 1e-9, "w": 1,
         "kib": 2 ** 10, "mb": 1e6, "gb": 1e9, "mib": 2 ** 20, "gib": 2 ** 30, None: 1}


def value(figure):
    return figure["value"] * UNITS[figure.get("unit")]


class Device:
    def __init__(self, file):
        memory = file["memories"][-1]
        self.units, self.bandwidth = value(file["units"]), value(memory["bandwidth"])
        self.byte_j = value(memory["energy"])
        cache = file["memories"][-2] if len(file["memories"]) > 1 else {}
        self.cache_bytes = value(cache["capacity"]) if {"capacity", "energy"} <= cache.keys() else 0
        self.cache_j = value(cache["energy"]) if self.cache_bytes else self.byte_j
        self.limit, self.idle = value(file["power"]["limit"]), value(file["power"]["idle"])
        self.matrix = {k: value(v["peak"]) for k, v in file["matrix"].items()}
        self.vector = {k: value(v["peak"]) for k, v in file["vector"].items()}
        self.product_j = {**{k: value(v["energy"]) for k, v in file["vector"].items()},
                          **{k: value(v["energy"]) for k, v in file["matrix"].items()}}
        self.other_j = {k: value(v["energy"]) for k, v in file["vector"].items()}

    def is_cached(self, row):
        """Whether all rotated operands fit into the last-level cache."""
        return SETS * row["bytes"] <= self.cache_bytes


# ---- predicted time of a row, by kernel class ----

def both(compute, memory):
    return (compute ** 4 + memory ** 4) ** 0.25


def moved(d, p, row, elements=False):
    share = p["memory"] * (WIDTH[row["dtype"]] / 2 if elements else 1)
    return row["bytes"] / (d.bandwidth * min(1, share))


def tiled(d, p, flops, rows, columns, depth, part_min=LEAST_DEPTH, tiles_of=TILES):
    best, full = math.inf, 128 * 128
    for height, width in tiles_of:
        area = height * width
        for parts in (1, 2, 4, 8):
            if parts > 1 and depth / parts < part_min:
                break
            each = depth / parts
            tiles = math.ceil(rows / height) * math.ceil(columns / width) * parts
            busy = 2 * area * each / (flops / d.units * min(1, math.sqrt(area / full)))
            wait = each * p["depth"]
            at_once = d.units * (max(1, min(4, full / area)) if wait > busy else 1)
            took = math.ceil(tiles / at_once) * max(busy, wait)
            if parts > 1:
                took += SPLIT_S + 4 * parts * rows * columns / d.bandwidth
            best = min(best, took)
    return best


def shape_of(row):
    if "->" in row["shape"]:
        b, c, h, _, o, k, s, g = map(int, re.match(r"(\d+)x(\d+)x(\d+)x(\d+)->(\d+)k(\d+)s(\d+)g(\d+)", row["shape"]).groups())
        side = (h + 2 * (k // 2) - k) // s + 1
        return b, c, o, k, g, side
    if "/" in row["shape"]:
        return tuple(map(int, re.match(r"(\d+)x(\d+)/(\d+)x(\d+)x(\d+)x(\d+)", row["shape"]).groups()))
    return tuple(map(int, row["shape"].split("x")))


def gemm(d, p, row):
    m, n, k = shape_of(row)
    return p["fixed"] + both(tiled(d, p, p["compute"] * d.matrix[row["dtype"]], m, n, k, tiles_of=TILES + NARROW_TILES),
                             moved(d, p, row))


def gemm_vector(d, p, row):
    m, n, k = shape_of(row)
    busy = tiled(d, p, p["compute"] * d.vector[row["dtype"]], m, n, k, VECTOR_DEPTH) if m > 4 else 0
    return p["fixed"] + both(busy, moved(d, p, row))


def conv(d, p, row):
    b, c, o, k, _, side = shape_of(row)
    step = STEP_BYTES / WIDTH[row["dtype"]]
    padded = math.ceil(c / step) * step if k > 1 else c
    return p["fixed"] + both(tiled(d, p, p["compute"] * d.matrix[row["dtype"]], b * side * side, o, padded * k * k),
                             moved(d, p, row))


def conv_image(d, p, row):
    b, _, o, k, _, side = shape_of(row)
    busy = tiled(d, p, p["compute"] * d.matrix["fp16"], b * side * side, o, 8 * k * k, math.inf)
    return p["fixed"] + both(busy, moved(d, p, row, elements=True))


def conv_grouped(d, p, row):
    _, c, _, _, g, _ = shape_of(row)
    width = c / g
    narrow = width <= 16 or width in (32, 64, 128, 256)
    share = TILE_SHARE[WIDTH[row["dtype"]]] * width if width in (64, 128, 256) else NARROW_SHARE * width if narrow else p["compute"] * (1 if width == FULL_GROUP else min(1, width / WIDE_GROUP))
    return p["fixed"] + (0 if narrow else GROUP_S * g) + both(row["flops"] / (d.matrix[row["dtype"]] * share), moved(d, p, row))


def conv_depthwise(d, p, row):
    _, _, _, k, _, _ = shape_of(row)
    return p["fixed"] + k * k * p["depth"] + both(row["flops"] / (d.vector[row["dtype"]] * p["compute"]), moved(d, p, row))


def conv_atrous(d, p, row):
    return p["fixed"] + both(row["flops"] / (d.vector["fp32"] * p["compute"]), moved(d, p, row))


def attention(d, p, row):
    b, h, _, s, _, _ = shape_of(row)
    peak = d.vector if row["dtype"] == "fp32" else d.matrix
    tiles, padding = b * h * math.ceil(s / TILE_QUERIES), math.ceil(s / TILE_QUERIES) * TILE_QUERIES / s
    return p["fixed"] + both(row["flops"] * padding / (peak[row["dtype"]] * p["compute"] * min(1, tiles / d.units)),
                             moved(d, p, row))


def rows_of(d, p, row):
    n, m = shape_of(row)
    return p["fixed"] + m * p["depth"] + n * p["row"] + moved(d, p, row)


def batch_norm_fp32(d, p, row):
    _, c, h, w = shape_of(row)
    near = NEAR_LATENCY if d.is_cached(row) else 1
    return p["fixed"] + both(min(c * h * w, NORM_MEASURED) * p["depth"] * near, moved(d, p, row))


def reduction(d, p, row):
    _, _, h, w = shape_of(row)
    return p["fixed"] * math.log2(max(2, h * w)) ** REDUCTION_POWER + moved(d, p, row)


def bytes_only(d, p, row):
    return p["fixed"] + moved(d, p, row)


def elements_only(d, p, row):
    return p["fixed"] + moved(d, p, row, elements=True)


def channels(row):
    return shape_of(row)[1]


# class: its operators, row filter, predicted time, fitted figures
CLASSES = {
    "gemm": (("gemm",), lambda r: r["dtype"] != "fp32", gemm, "fixed compute memory depth"),
    "gemm_vector": (("gemm",), lambda r: r["dtype"] == "fp32", gemm_vector, "fixed compute memory depth"),
    "conv": (("conv",), lambda r: channels(r) > 4, conv, "fixed compute memory depth"),
    "conv_image": (("conv",), lambda r: channels(r) <= 4, conv_image, "fixed compute memory depth"),
    "conv_grouped": (("conv_grouped",), None, conv_grouped, "fixed compute"),
    "conv_depthwise": (("conv_depthwise",), None, conv_depthwise, "fixed compute memory depth"),
    "conv_atrous": (("conv_atrous",), None, conv_atrous, "fixed compute"),
    "attention": (("attention", "attention_causal"), lambda r: r["dtype"] != "fp32", attention, "fixed compute memory"),
    "attention_vector": (("attention",), lambda r: r["dtype"] == "fp32", attention, "fixed compute"),
    "attention_decode": (("attention_decode",), None, bytes_only, "fixed memory"),
    "norm": (("layer_norm",), None, rows_of, "fixed depth row memory"),
    "batch_norm": (("batch_norm",), lambda r: r["dtype"] != "fp32", bytes_only, "fixed memory"),
    "batch_norm_fp32": (("batch_norm", "batch_norm_large"), lambda r: r["dtype"] == "fp32", batch_norm_fp32, "fixed depth memory"),
    "softmax": (("softmax",), lambda r: r["dtype"] == "fp16", rows_of, "fixed row memory"),
    "reduction": (("pool_global", "mean_image"), None, reduction, "fixed memory"),
    "pool": (("pool_max",), None, elements_only, "fixed memory"),
    "elementwise": (("add", "relu", "gelu", "silu", "relu_in_place"), None, bytes_only, "fixed memory"),
    "broadcast": (("bias", "scale_image"), None, elements_only, "fixed memory"),
    "concatenate": (("cat",), None, elements_only, "fixed memory"),
    "resize": (("resize",), None, elements_only, "fixed memory"),
    "gather": (("gather",), None, bytes_only, "fixed memory"),
    "rearrange": (("rearrange", "roll"), None, elements_only, "fixed memory"),
    "repeat": (("repeat_kv",), None, elements_only, "fixed memory"),
}
LIMITS = {"fixed": (1e-7, 1e-3), "compute": (1e-3, 1), "memory": (1e-2, 1), "depth": (1e-13, 1e-6), "row": (1e-13, 1e-6)}
PRODUCTS = ("gemm", "gemm_vector", "conv", "conv_image", "conv_grouped", "conv_depthwise", "conv_atrous", "attention", "attention_vector", "attention_decode")


# ---- the fit ----

def loss(d, time, figures, rows):
    """Smoothed absolute log errors, robust to outliers."""
    total = 0.0
    for row in rows:
        off = math.log(time(d, figures, row) / row["latency_s"]) / 0.1
        total += 2 * (math.sqrt(1 + off * off) - 1)
    return total / len(rows)


def fit(d, time, start, names, rows):
    figures, step, best = dict(start), 0.5, None
    best = loss(d, time, figures, rows)
    while step > 0.01:
        improved = False
        for name in names:
            for way in (math.exp(step), math.exp(-step)):
                least, most = LIMITS[name]
                tried = {**figures, name: min(most, max(least, figures[name] * way))}
                found = loss(d, time, tried, rows)
                if found < best - 1e-9:
                    figures, best, improved = tried, found, True
        step = step if improved else step / 2
    return figures


def counted_watts(d, name, row):
    """Power of operations and bytes: fp32 convolutions are computed in tf32, and small operands come from the cache."""
    dtype = "tf32" if name.startswith("conv_") and row["dtype"] == "fp32" else row["dtype"]
    per_flop = (d.product_j if name in PRODUCTS else d.other_j).get(dtype, 0)
    per_byte = d.cache_j if d.is_cached(row) else d.byte_j
    return (per_flop * row["flops"] + per_byte * row["bytes"]) / row["latency_s"]


def active_watts(d, name, figures, rows, before):
    """Power of busy units besides operations and bytes, fitted to log power up to the limit; a class with few windows
    stays near its previous figure."""
    rows, most = [r for r in rows if r["power_w"]], 0.996 * d.limit

    def off(watts):
        total = (math.log(watts / max(before, 1)) / 0.4) ** 2
        for row in rows:
            busy = max(row["latency_s"] - figures["fixed"], 0.15 * row["latency_s"])
            if name == "batch_norm_fp32":  # the other units are idle
                busy = min(busy, moved(d, figures, row))
            power = min(most, d.idle + counted_watts(d, name, row) + watts * busy / row["latency_s"])
            error = math.log(power / min(most, float(row["power_w"]))) / 0.12
            total += 2 * (math.sqrt(1 + error * error) - 1)
        return total
    return float(min(range(1, int(d.limit)), key=off)) if rows else None


def read_rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        for key in ("flops", "bytes", "latency_s"):
            row[key] = float(row[key])
    return rows


def fit_class(d, name, figures, all_rows):
    ops, is_wanted, time, words = CLASSES[name]
    rows = [r for r in all_rows if r["op"] in ops and (not is_wanted or is_wanted(r))]
    names = words.split()
    if len(rows) < 2 * len(names):
        return figures, 0, math.nan
    start = {k: max(figures[key] / factor, LIMITS[k][0]) for k, (key, factor) in KEYS.items()}
    found = fit(d, time, start, names, rows)
    off = statistics.fmean(abs(time(d, found, r) / r["latency_s"] - 1) for r in rows)
    out = dict(figures)
    for key in names:
        out[KEYS[key][0]] = float(f"{found[key] * KEYS[key][1]:.3g}")
    watts = active_watts(d, name, found, rows, figures["active_w"])
    if watts is not None:
        out["active_w"] = watts
    return out, len(rows), off


def main():
    parser = argparse.ArgumentParser(prog="fit-kernels", description=__doc__.splitlines()[0])
    parser.add_argument("rows", help="kernels.csv of research/measure-kernels.py")
    parser.add_argument("hardware", help="the device's hardware file")
    parser.add_argument("-o", "--output", help="output file (default: stdout)")
    args = parser.parse_args()
    file = json.loads(pathlib.Path(args.hardware).read_text(encoding="utf-8"))
    file = file["hardware"][0] if isinstance(file.get("hardware"), list) else file
    h200 = pathlib.Path(__file__).resolve().parent.parent / "data/hardware/h200.json"
    start = file.get("kernel_classes") or json.loads(h200.read_text(encoding="utf-8"))["kernel_classes"]
    device, rows, used, classes = Device(file), read_rows(args.rows), 0, {}
    for name, figures in start.items():
        classes[name], count, off = fit_class(device, name, figures, rows) if name in CLASSES else (figures, 0, math.nan)
        used += count
        print(f"{name:18s} {count:4d} rows" + (f", error {100 * off:.1f} %" if count else ": unchanged"), file=sys.stderr)
    file["kernels"] = {"value": len(rows), "evidence": "fitted",
                       "source": f"research/fit-kernels.py: {used} of {len(rows)} rows of {pathlib.Path(args.rows).name}"}
    file["kernel_classes"] = classes
    text = json.dumps(file, indent=1, ensure_ascii=False) + "\n"
    if args.output:
        pathlib.Path(args.output).write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
