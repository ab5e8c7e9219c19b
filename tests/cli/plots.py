"""Synthetic run directories and layers results for plots, and readers of the plots' SVG and PNG files."""

import json
import re
import struct
import xml.etree.ElementTree as ElementTree
import zlib
from pathlib import Path

SVG = "{http://www.w3.org/2000/svg}"
GPU = "NVIDIA H100 80GB HBM3"


def query(number, *, model, **known):
    """A line of the journal; defaults for what is not in `known` are computed from the number."""
    tokens_in = known.get("tokens_in", 50 + 37 * number % 400)
    tokens_out = known.get("tokens_out", 20 + 53 * number % 300)
    latency = known.get("latency", 0.1 + tokens_out * 0.01 + 0.001 * (number % 7))
    joules = known.get("joules", 5 + 0.25 * (tokens_in + tokens_out) + 3 * (number * 7 % 5))
    has = joules is not None
    metrics = {
        "energy_metrics": {"per_query_joules": joules, "basis": "gpu"},
        "latency_metrics": {"time_to_first_token_seconds": 0.02 + 0.0003 * tokens_in,
                            "total_query_seconds": latency},
        "power_metrics": {"gpu": {"per_query_watts": {"avg": joules / latency if has else None}}},
        "token_metrics": {"input": tokens_in, "output": tokens_out,
                          "total": tokens_in + tokens_out},
        "phase_metrics": {"prefill_energy_j": 0.2 * joules if has else None,
                          "decode_energy_j": 0.8 * joules if has else None},
        "hardware_utilization": {"derived": {"mfu": 0.01 + 0.001 * (number % 9), "mbu": 0.3,
                                             "arithmetic_intensity": 2.0 ** (number % 9)}},
        "evaluation": {"is_correct": known.get("correct", number % 3 > 0)},
    }
    own = {"key": f"q{number:06}", "index": number, "start": 1,
           "status": known.get("status", "completed"),
           "energy": {"joules": joules, "plus_minus": 0.02 * joules if has else None,
                      "method": "counter", "coverage": 1}}
    return {"kind": "query", "key": own["key"], "model_metrics": {model: metrics}, "ipw": own}


def run_directory(path, rows, *, model="tiny-1b", concurrency=1, dataset="sums", timeline=True):
    """Writes a run directory; rows are keyword arguments of query()."""
    path = Path(path)
    path.mkdir(parents=True)
    lines = [{"kind": "run", "format": 1, "start": 1}]
    lines += [query(number, model=model, **row) for number, row in enumerate(rows)]
    (path / "records.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (path / "summary.json").write_text(json.dumps({
        "model": model, "hardware_label": "H100", "dataset_name": dataset,
        "profiler_config": {"max_concurrency": concurrency}, "gpu_info": {"name": GPU},
        "ipw": {"energy": {"joules": 1000, "plus_minus": 20}, "starts": 1}}))
    if timeline:
        samples = ["t_s,sensor,device,channel,scope,quantity,unit,value,sum,covered,t_plus_minus_s"]
        for i in range(100):
            for device, scope, watts in (('"gpu ""0"", big"', "gpu", 300 + 5 * (i % 20)),
                                         ("cpu0", "package", 40), ("cpu0", "core", 20)):
                samples.append(f"{i / 20},x:0,{device},{scope},{scope},power,W,{watts},"
                               f"{watts * i / 20},1,")
        (path / "samples.csv").write_text("\n".join(samples) + "\n")
        spans = [{"key": f"q{i:06}", "start": 1, "span": "request", "attempt": 1,
                  "from_s": i / concurrency * 0.5, "first_token_s": i / concurrency * 0.5 + 0.1,
                  "to_s": i / concurrency * 0.5 + 0.5} for i in range(8)]
        (path / "spans.jsonl").write_text("".join(json.dumps(span) + "\n" for span in spans))
    return path


def add_gauge(run, rows, *, device="gpu0", quantity="clock", sensor="nvml:0", start=1):
    """Appends readings (second, value[, coverage]) to the samples; a value holds since the previous reading."""
    unit = {"clock": "MHz", "utilisation": "%"}[quantity]
    lines, total, before = [], 0.0, None
    for second, value, *covered in rows:
        share = covered[0] if covered else 1
        total += 0 if before is None else value * share * (second - before)
        lines.append(f"{second},{sensor},{device},{quantity},none,{quantity},{unit},{value},{total:.12g},"
                     f"{0 if before is None else share},\n")
        before = second
    with open(run / ("samples.csv" if start == 1 else f"samples-{start}.csv"), "a", encoding="utf-8") as file:
        file.writelines(lines)
    return run


def run_at(path, mhz, rows=({},) * 6, **options):
    """A run whose requests, from 0 to 4 s, ran at this GPU clock; the GPU idles before and after."""
    return add_gauge(run_directory(path, rows, **options),
                     [(-30, 210), (0, 210), (1, mhz), (2.5, mhz), (4, mhz), (90, 210)])


def layers_of(model="some/tiny.gguf", layers=6, parameters=1e9, prompts=(32, 128)):
    """The parts of a result of `ipw layers --json` that plots need."""
    parts = {"attention.qkv": 2.0, "attention.scores": 0.5, "ffn.gate_up": 3.0, "ffn.down": 1.5}

    def component(name, phase, scale):
        joules = parts[name] * scale * (1 if phase == "prefill" else 2.5)
        return {"name": name, "phase": phase, "time_s": joules / 40, "energy_j": joules,
                "plus_minus": 0.1 * joules, "flops": 1e9 * joules * (20 if phase == "prefill" else 1),
                "bytes": 2e9 * joules}

    def both(scale):
        return [component(name, phase, scale) for phase in ("prefill", "decode") for name in parts]

    entries = []
    for index in range(layers):
        inside = both(1 + index / 10)
        entries.append({"index": index, "time_s": 1, "plus_minus": 1, "components": inside,
                        "energy_j": sum(part["energy_j"] for part in inside)})
    settings = [{"phase": phase, "prompt_tokens": n, "tokens": tokens, "energy_j": joules, "plus_minus": joules / 20}
                for n in prompts for phase, tokens, joules in (("prefill", n, parameters * n / 1e10),
                                                               ("decode", 16, parameters * (n + 500) / 1e10))]
    windows = [{"setting": setting, "start_s": at, "time_s": 1.5, "power_w": watts,
                "plus_minus": 3, "watched": watts is None}
               for at, (setting, watts) in enumerate([(None, 60), (0, 300), (1, None), (1, 180)])]
    return {"model": model, "method": "nnls", "attribution": "nnls", "windows": windows,
            "settings": settings, "granularity": "component", "parameters": parameters,
            "workload": {"gpu_layers": 99}, "energy": {"joules": 200, "plus_minus": 4},
            "components": both(layers), "layers": entries, "host": {"gpu": GPU}}


# ---- image files ----

def png_size(data):
    """Width and height of a PNG; asserts that it is valid and not blank."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n", data[:8]
    at, pixels, size, names = 8, b"", None, []
    while at < len(data):
        length, name = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        assert zlib.crc32(name + body) == struct.unpack(">I", data[at + 8 + length:at + 12 + length])[0]
        names.append(name)
        size = struct.unpack(">II", body[:8]) if name == b"IHDR" else size
        pixels += body if name == b"IDAT" else b""
        at += 12 + length
    assert names[-1] == b"IEND", names
    assert len(set(zlib.decompress(pixels))) > 20, "blank image"
    return size


class Picture:
    """An SVG plot: its texts, and the marks of each series."""

    def __init__(self, path):
        self.root = ElementTree.parse(path).getroot()
        assert self.root.tag == f"{SVG}svg", self.root.tag
        self.text = "\n".join(self.texts())

    def texts(self):
        return ["".join(text.itertext()).strip() for text in self.root.iter(f"{SVG}text")]

    def placed_texts(self):
        """Every text with its position, or the anchor that gnuplot gives it."""
        found = []
        for group in self.root.iter(f"{SVG}g"):
            place = re.match(r"translate\(([\d.]+),([\d.]+)\)", group.get("transform", ""))
            text = "".join("".join(part.itertext()) for part in group.findall(f"{SVG}text")).strip()
            if place and text:
                found.append((text, tuple(map(float, place.groups()))))
        return found

    def series(self):
        """Marks (x, y) of every series, in order; the legend's mark is the last."""
        groups = [g for g in self.root.iter(f"{SVG}g") if g.get("id", "").startswith("gnuplot_plot_")]
        return [[tuple(map(float, re.match(r"translate\(([\d.]+),([\d.]+)\)",
                                           use.get("transform")).groups()))
                 for use in group.iter(f"{SVG}use")] for group in groups]
