#!/usr/bin/env python3
"""CPU time of fitting and validating power models: every model on fourteen applications at 117 clocks, choosing clocks
with a model, and scaling with the number of rows.  Uses the public measurements if present ($IPW_SHARED, or shared/ in
the source tree), else synthetic data of the same shape."""
import csv
import math
import os
import random
import re
import resource
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
IPW = os.path.join(HERE, "..", "ipw")
FAST = "roofline,fgcs,linear,ridge,poly2,poly3,ensemble"
with open(os.path.join(HERE, "..", "CMakeCache.txt"), encoding="utf-8") as cache:
    SOURCE = re.search("^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$", cache.read(), re.M)[1]
SHARED = os.environ.get("IPW_SHARED", os.path.join(os.path.dirname(SOURCE), "shared"))
MEASURED = os.path.join(SHARED, "data/dvfs/v100_fgcs_dev.csv")


def row(name, value, unit, bound):
    verdict = "pass" if value <= bound else "fail"
    print(f"{name}\t{value:.4g}\t{unit}\t<= {bound:g}\t{verdict}")


def report(name, value, unit):
    """A figure without a bound."""
    print(f"for comparison: {name} {value:.4g} {unit}")


def cpu_s(*words, command="power"):
    """CPU seconds of ipw; wall time depends too much on other load."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([IPW, command, *words], capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        print(done.stderr.strip(), file=sys.stderr)
        sys.exit(1)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stderr


def make(path, applications, runs):
    draw = random.Random(1)
    with open(path, "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["application", "run", "freq_mhz", "power_w", "time_s", "fp", "dram", "sm"])
        for a in range(applications):
            fp, dram, knee = draw.uniform(0.1, 0.9), draw.uniform(0.1, 0.8), draw.uniform(1, 1.8)
            for i in range(117):
                x = (510 + 7.5 * i) / 1380
                for run in range(1, runs + 1):
                    noise = draw.gauss(1, 0.01)
                    out.writerow([f"app{a:03}", run, math.floor(510 + 7.5 * i),
                                  noise * (30 + 70 * dram * x + (40 + 120 * fp) * x ** 2.5),
                                  noise * 10 * (1 + fp * max(0, 1 / x - knee)), fp, dram, 0.9])
    return path


def make_sweep(path):
    sys.path.insert(0, os.path.join(SOURCE, "tests/cli"))
    from sweeps import write_sweep
    clocks = [(math.floor(510 + 7.5 * i), (510 + 7.5 * i) / 1380) for i in range(117)]
    write_sweep(path, ("gpu-clock",), [((mhz,), {"joules": (60 + 200 * x ** 3) * 10 * max(1, 0.7 / x), "seconds": 10 * max(1, 0.7 / x)})
                                      for _ in range(3) for mhz, x in clocks])
    return path


def main():
    with tempfile.TemporaryDirectory(prefix="ipw-bench-") as folder:
        data = MEASURED if os.path.exists(MEASURED) else make(os.path.join(folder, "made.csv"), 14, 1)
        fast = sum(cpu_s("fit", "--input", data, "--model", model)[0] for model in FAST.split(","))
        fast += cpu_s("validate", "--input", data, "--model", FAST)[0]
        report("fit and validate all models but rf and gbt, 14 x 117 rows", fast, "s")
        try:
            trees, said = cpu_s("validate", "--input", data, "--model", "rf,gbt")
            trees += sum(cpu_s("fit", "--input", data, "--model", model)[0] for model in ("rf", "gbt"))
            report("fit and validate rf and gbt, the same rows", trees, "s")
        except SystemExit:
            print("bench_power: rf and gbt are skipped: no XGBoost library (Debian: libxgboost-dev)")
        model, clocks = os.path.join(folder, "model.json"), os.path.join(folder, "clocks.csv")
        cpu_s("fit", "--input", data, "--gpu", "V100", "-o", model)
        with open(clocks, "w", newline="") as file:
            csv.writer(file).writerows([("gpu", "graphics_mhz"), *(("V100", math.floor(510 + 7.5 * i)) for i in range(117))])
        best = min(cpu_s(model, "--clocks", clocks, "--json", command="optimize")[0] for _ in range(3))
        report("optimize from a fitted model, 14 applications, 117 clocks", best, "s")
        sweep = make_sweep(os.path.join(folder, "sweep"))
        report("optimize a sweep, 117 clocks, 3 runs each", min(cpu_s(sweep, command="optimize")[0] for _ in range(3)), "s")
        few, many = (make(os.path.join(folder, f"{runs}.csv"), 14, runs) for runs in (10, 100))
        once = [min(cpu_s("fit", "--input", path)[0] for _ in range(3)) for path in (few, many)]
        row("ten times the rows, fit", once[1] / once[0], "ratio", 13)


main()
