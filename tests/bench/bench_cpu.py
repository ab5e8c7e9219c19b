#!/usr/bin/env python3
"""How far estimates of models on this CPU are off after `ipw estimate calibrate`: passes of the shipped models, and of
SmolLM2 where it was brought, in llama.cpp with one thread and with all.  None of them is part of the calibration."""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
IPW, PASSES = HERE.parent / "ipw", HERE / "bench_passes"
SOURCE = Path(re.search("^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$", (HERE.parent / "CMakeCache.txt").read_text(), re.M)[1])
MODELS = [*sorted((SOURCE / "models").glob("*.gguf")), *sorted((SOURCE / "third_party/models").glob("*.gguf"))]
BOUND = 20  # per cent


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode:
        print(done.stderr.strip(), file=sys.stderr)
        sys.exit(1)
    return done.stdout


def main():
    with tempfile.TemporaryDirectory(prefix="ipw-bench-cpu-") as folder:
        for threads in sorted({1, len(os.sched_getaffinity(0))}):
            file, rows = Path(folder) / "here.json", Path(folder) / "rows.csv"
            run(IPW, "estimate", "calibrate", "-q", "-t", threads, "-o", file)
            if '"timings"' not in file.read_text():
                print("bench_cpu: no llama.cpp here: nothing to compare", file=sys.stderr)
                return
            rows.write_text(run(PASSES, threads, "16,64,200,480", *MODELS))
            said = run(IPW, "estimate", "validate", "--hardware-file", file, "--csv", rows, "--json")
            mape = 100 * float(re.search(r'"mape": ([0-9.e-]+)', said)[1])
            verdict = "pass" if mape <= BOUND else "fail"
            name = f"models in llama.cpp on {threads} thread{'s' * (threads > 1)}, estimated: MAPE of time"
            print(f"{name}\t{mape:.4g}\t%\t<= {BOUND}\t{verdict}")


main()
