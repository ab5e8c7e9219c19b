#!/usr/bin/env python3
"""Takes the results of a training into the repository: all that depends on the weights, in one go.

    publish.py --data models/prepared --trained FOLDER --build build

Exports the weights, lets the build make the other precisions, asks every model the questions that were
kept from it through `ipw profile`, and writes the models, SHA256SUMS, golden.json, accuracy.json,
curve.csv and the tables of README.md.  Needs NumPy and gguf, and llama.cpp's library for ipw.
"""
import argparse
import csv
import hashlib
import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from export import export
from prepare import LEVELS, TASKS
from shapes import SHAPES

HERE = Path(__file__).parent
PRECISIONS = ["f16", "q8_0", "q4_0"]
GOLDEN = 200  # items of golden.json, which train.py chose


def write_golden(trained):
    """The first items with what each model answers in PyTorch, f16 weights computed in float32."""
    answers = {name: json.loads((trained / f"{name}-golden.json").read_text()) for name in SHAPES}
    some = next(iter(answers.values()))
    golden = {"items": [{"problem": item["problem_text"], "prompt": item["prompt"]}
                        for item in some],
              "answers": {name: [item["output_text"] for item in items]
                          for name, items in answers.items()}}
    (HERE / "golden.json").write_text(json.dumps(golden, separators=(",", ":")) + "\n")


def ask(build, model, count):
    """One model's answers to the first items of the test split: (task, level, right) of each."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [build / "ipw", "profile", "--client", "llama", "--model", model, "--client-param",
             "threads=1", "--dataset", "builtin", "--dataset-param", f"count={count}", "--idle", "0",
             "--output-dir", folder, "--json", "-q"], check=True, stdout=subprocess.PIPE)
        records = Path(json.loads(done.stdout)["output_dir"], "records.jsonl").read_text()
    lines = [json.loads(line) for line in records.splitlines()]
    queries = [line for line in lines if line["kind"] == "query"]
    assert len(queries) == count, f"{model}: {len(queries)} answers"
    return [(query["subject"], query["dataset_metadata"]["level"],
             bool(next(iter(query["model_metrics"].values()))["lm_correctness"]))
            for query in sorted(queries, key=lambda query: query["ipw"]["index"])]


def share(hits):
    return round(sum(hits) / len(hits), 4)


def judge(answers):
    return {"all": share([right for _, _, right in answers]),
            "golden": share([right for _, _, right in answers[:GOLDEN]]),
            "cells": {f"{task} {level}": share([right for t, l, right in answers
                                                if (t, l) == (task, level)])
                      for task in TASKS for level in LEVELS}}


def percent(value):
    return f"{100 * value:.0f}" if value in (0, 1) else f"{100 * value:.1f}"


def cells_table(accuracy):
    """Task by task, a row a model; the columns are levels."""
    lines = ["| task | model | " + " | ".join(f"level {level}" for level in LEVELS) + " |",
             "|---|---|" + "---:|" * len(LEVELS)]
    for task in TASKS:
        for model, figures in accuracy["models"].items():
            row = [percent(figures["cells"][f"{task} {level}"]) for level in LEVELS]
            lines.append(f"| {task} | {model} | " + " | ".join(row) + " |")
    return lines


def totals_table(accuracy, build):
    lines = ["| model | file | accuracy, all levels | "
             + " | ".join(f"level {level}" for level in LEVELS) + " |",
             "|---|---:|---:|" + "---:|" * len(LEVELS)]
    for model, figures in accuracy["models"].items():
        size = (build / "models" / f"{model}.gguf").stat().st_size / 1e6
        by_level = [sum(figures["cells"][f"{task} {level}"] for task in TASKS) / len(TASKS)
                    for level in LEVELS]
        lines.append(f"| {model} | {size:.1f} MB | {percent(figures['all'])} % | "
                     + " | ".join(f"{percent(value)} %" for value in by_level) + " |")
    return lines


def training_table(trained):
    with open(trained / "curve.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    names, rows = rows[0][3:3 + len(SHAPES)], rows[1:]
    tested = [row for row in rows if len(row) > 3 + len(SHAPES)]
    lines = ["| step | seconds | " + " | ".join(names) + " | "
             + " | ".join(name.replace("loss", "accuracy") for name in names) + " |",
             "|---:|---:|" + "---:|" * (2 * len(SHAPES))]
    for row in tested:
        shares = [f"{percent(float(value))} %" for value in row[3 + len(SHAPES):]]
        lines.append("| " + " | ".join(row[:2] + row[3:3 + len(SHAPES)] + shares) + " |")
    return lines


def write_card(tables):
    """Each table stands in README.md between two marks of its name."""
    card = HERE / "README.md"
    text = card.read_text(encoding="utf-8")
    for name, lines in tables.items():
        pattern = rf"(<!-- {name} -->\n).*?(<!-- end -->)"
        text, count = re.subn(pattern, lambda found: found[1] + "\n".join(lines) + "\n" + found[2],
                              text, flags=re.S)
        assert count == 1, f"README.md has no place for {name}"
    card.write_text(text, encoding="utf-8")


def write_checksums(files):
    """Files of other models keep theirs."""
    path, own = HERE / "SHA256SUMS", {file.name for file in files}
    others = [line for line in path.read_text().splitlines(True) if line.split()[1] not in own]
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files]
    path.write_text("".join(lines + others))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, required=True, help="what prepare.py wrote")
    parser.add_argument("--trained", type=Path, required=True, help="what train.py wrote")
    parser.add_argument("--build", type=Path, required=True, help="a build folder of ipw")
    parser.add_argument("--items", type=int, default=2500, help="questions to ask (2500)")
    options = parser.parse_args()
    build = options.build.resolve()
    for name in SHAPES:
        export(name, options.trained / f"{name}.npz", options.data / "tokenizer.json",
               HERE / f"{name}-f16.gguf")
    subprocess.run(["cmake", build], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", build, "--target", "ipw", "models"], check=True)

    models = [f"{name}-{precision}" for name in SHAPES for precision in PRECISIONS]
    accuracy = {"items": options.items, "models": {}}
    for model in models:
        accuracy["models"][model] = judge(ask(build, model, options.items))
        print(model, accuracy["models"][model]["all"], flush=True)
    (HERE / "accuracy.json").write_text(json.dumps(accuracy, indent=1) + "\n")
    shutil.copyfile(options.trained / "curve.csv", HERE / "curve.csv")
    write_golden(options.trained)
    write_checksums([build / "models" / f"{model}.gguf" for model in models])
    write_card({"totals": totals_table(accuracy, build), "cells": cells_table(accuracy),
                "training": training_table(options.trained)})


if __name__ == "__main__":
    main()
