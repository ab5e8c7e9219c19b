"""Synthetic sweeps in the format of `ipw sweep`: records.jsonl with a line per attempt, and the summary of each
attempt's run."""

import json
from pathlib import Path


def write_sweep(path, knobs, attempts, command=("work", "{a}"), profile=False, planned=(), ended=True):
    """knobs: their names; attempts: (values, {figure: ...}) each, with joules, seconds and optionally exit_code,
    answers (journal lines of its queries, see rundirs.query), flags, accuracy, score, perplexity, bits_per_byte,
    quality ({name: (value, better)}), queries, latency, overhead
    (joules of no query), method, source, coverage, gpu,
    uuids, plus_minus, statistical, idle_w, temperature_c, activity.  Repeats of a setting are numbered in order.
    planned: settings without an attempt; ended: whether the sweep is complete."""
    path = Path(path)
    points = list(dict.fromkeys([*(values for values, _ in attempts), *planned]))
    header = {"kind": "run", "format": 1, "run_kind": "sweep", "ipw": "0.1.0", "start": 1, "started_at": 1.7e9,
              "settings": {"knobs": list(knobs), "points": [list(map(str, values)) for values in points],
                           "kind": "profile" if profile else "run", "options": [], "command": list(command),
                           "order": "random", "seed": 1, "repeats": 1, "max_repeats": 1, "until_pct": None,
                           "cooldown_s": None}}
    lines, made = [header], {}
    for values, figures in attempts:
        point = points.index(values) + 1
        repeat = made[values] = made.get(values, 0) + 1
        name = f"points/p{point:03d}_r{repeat}/{'profile' if profile else 'run'}_x"
        write_run(path / name, figures, profile)
        lines.append({"kind": "point", "point": point, "repeat": repeat, "settings": dict(zip(knobs, map(str, values))),
                      "run": name, "exit_code": figures.get("exit_code", 0), "flags": figures.get("flags", ""),
                      "wall_s": 1.0, "seconds": figures["seconds"], "joules": figures["joules"],
                      "gpu_uuids": figures.get("uuids"), "plus_minus": figures.get("plus_minus"),
                      "plus_minus_statistical": figures.get("statistical")})
    lines += [{"kind": "end", "state": "completed"}] if ended else []
    (path / "records.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    summary = {"model": "made", "run_kind": "sweep", "total_queries": len(attempts),
               "ipw": {"output_dir": str(path), "queries": len(attempts), "started_at": 1.7e9}}
    (path / "summary.json").write_text(json.dumps(summary))
    return path


def write_run(path, figures, profile):
    path.mkdir(parents=True)
    queries = figures.get("queries", 1)
    header = {"kind": "run", "format": 1, "run_kind": "profile" if profile else "run", "start": 1, "started_at": 1.7e9}
    (path / "records.jsonl").write_text("".join(json.dumps(line) + "\n" for line in (header, *figures.get("answers", ()))))
    queries = len(figures["answers"]) if "answers" in figures else queries
    ipw = {"queries": queries, "completed": queries, "failed": 0, "accuracy": figures.get("accuracy"),
           **{name: figures.get(name) for name in ("score", "perplexity", "bits_per_byte")},
           "seconds": figures["seconds"], "started_at": 1.7e9,
           "energy": {"joules": figures["joules"], "plus_minus": figures.get("plus_minus"),
                      "method": figures.get("method", "counter"),
                       **{key: figures[key] for key in ("source", "coverage") if key in figures}},
           "joules_per_query": (figures["joules"] - figures.get("overhead", 0)) / queries if figures["joules"] and profile else None,
           "conditions": {"idle_w": figures.get("idle_w"),
                          "devices": [{"id": "gpu0", "temperature_end_c": figures.get("temperature_c"),
                                       "activity": figures.get("activity")}]},
           "statistics": {}}
    if "quality" in figures:
        ipw["quality"] = [{"name": name, "value": value, "plus_minus": None, "count": queries, "better": better}
                          for name, (value, better) in figures["quality"].items()]
    if "latency" in figures:
        ipw["statistics"]["latency_s"] = {"avg": figures["latency"], "median": figures["latency"], "count": queries}
    summary = {"model": figures.get("model", "made"), "run_kind": "profile" if profile else "run", "hardware_label": "made",
               "gpu_info": {"name": figures.get("gpu", "NVIDIA H100")}, "ipw": ipw}
    (path / "summary.json").write_text(json.dumps(summary))
