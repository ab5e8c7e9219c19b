#!/usr/bin/env python3
"""Measures how often the ± of `ipw optimize` covers the true saving, and how often it recommends a useless setting.

    $ research/simulate-optimize.py [--trials 400] [--ipw build/ipw] [--laws [--curves 208] [--seed 1]]

Sweeps are simulated from formulas with noise per run, so that the true saving of the recommended setting is known.  The
table in docs/power-models.md is its output; with --laws, those of simulated curves in docs/measurements.md."""

import argparse
import json
import math
import random
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent.parent / "tests/cli"))
import clock_laws  # noqa: E402
from sweeps import write_sweep  # noqa: E402


def clocks(count):
    """{clock: (energy, time)} with a knee at three quarters of the highest clock and cubic power."""
    true = {}
    for i in range(count):
        mhz = round(600 + 1380 * i / (count - 1))
        x = mhz / 1980
        time = 10 * max(1, 0.75 / x)
        true[mhz] = ((90 + 60 * x + 400 * x ** 3) * time, time)
    return true


def settings(count, saving):
    """{n: (energy, time)}: energy decreases linearly up to the last one; all times are equal."""
    return {n: (100 * (1 - saving * n / max(count - 1, 1)), 10.0) for n in range(count)}


# name, knob, true values, runs per setting, relative noise of a run
SCENARIOS = [
    ("5 clocks, measured, 3 runs, noise 2 %", "gpu-clock", clocks(5), 3, 0.02),
    ("4 settings up to 20 %, 2 runs, noise 2 %", "n", settings(4, 0.2), 2, 0.02),
    ("4 settings up to 20 %, 3 runs, noise 5 %", "n", settings(4, 0.2), 3, 0.05),
    ("12 settings up to 10 %, 3 runs, noise 3 %", "n", settings(12, 0.1), 3, 0.03),
    ("4 settings, all alike, 3 runs, noise 3 %", "n", settings(4, 0), 3, 0.03),
    ("12 settings, all alike, 3 runs, noise 3 %", "n", settings(12, 0), 3, 0.03),
    ("12 settings, all alike, 10 runs, noise 3 %", "n", settings(12, 0), 10, 0.03),
]


def trial(arguments, scenario, seed):
    name, knob, true, runs, noise = scenario
    rng = random.Random(f"{name} {seed}")
    attempts = []
    for _ in range(runs):
        for value, (joules, seconds) in true.items():
            slow = 1 + rng.gauss(0, noise / 2)  # a slow run uses more energy
            attempts.append(((value,), {"joules": joules * slow * (1 + rng.gauss(0, noise * 0.75 ** 0.5)),
                                        "seconds": seconds * slow}))
    folder = Path(tempfile.mkdtemp(prefix="ipw-simulate-"))
    try:
        write_sweep(folder / "s", (knob,), attempts)
        done = subprocess.run([arguments.ipw, "optimize", folder / "s", "--objective", "energy", "--json"],
                              capture_output=True, text=True, check=True)
    finally:
        shutil.rmtree(folder)
    report = json.loads(done.stdout)
    if not report["recommended"] or report["savings_pct"]["plus_minus"] is None:
        return None
    value = report["recommended"]["freq_mhz"] or int(report["recommended"]["setting"].split("=")[1])
    base = max(true) if knob == "gpu-clock" else 0
    if value == base:
        return None
    saving = 100 * (1 - true[round(value)][0] / true[base][0])
    error = report["savings_pct"]["energy"] - saving
    return abs(error) <= report["savings_pct"]["plus_minus"], error, report["savings_pct"]["plus_minus"], saving


def print_score(title, found):
    print(f"| {title} | {found.claims} of {found.curves} | {found.covered:.0f} % | {found.width:.2f} | {found.bias:+.2f} | "
          f"{found.regret:.2f} % | {found.over_limit} | {found.measured_over} |", flush=True)


def print_laws(arguments):
    asked = ((("--objective", "edp"), 1, math.inf), (("--objective", "energy", "--max-slowdown", 5), 0, 5))
    for laws in (clock_laws.LAWS, clock_laws.HELD_OUT_LAWS):
        made = clock_laws.curves(arguments.curves, arguments.seed, laws)
        for options, exponent, limit in asked:
            with tempfile.TemporaryDirectory() as folder:
                reports = clock_laws.recommendations(arguments.ipw, made, Path(folder) / "laws.csv", *options)
            print(f"\n{' '.join(map(str, options))}\n")
            print("| law | lower clock | ± covers | median ± | bias | regret | over the limit | by own runs |\n|---" + "|---" * 7 + "|")
            for law in laws:
                print_score(law, clock_laws.score([one for one in made if one.law == law], reports, exponent, limit))
            print_score("all", clock_laws.score(made, reports, exponent, limit))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=400)
    parser.add_argument("--ipw", default="build/ipw")
    parser.add_argument("--laws", action="store_true")
    parser.add_argument("--curves", type=int, default=208)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.laws:
        print_laws(arguments)
        return
    print("| sweep | recommended | of these, ± covers the true saving | bias | mean ± |\n|---|---|---|---|---|")
    for scenario in SCENARIOS:
        with ThreadPoolExecutor(2) as pool:
            found = list(pool.map(lambda seed: trial(arguments, scenario, seed), range(arguments.trials)))
        found = [one for one in found if one]
        if not found:
            print(f"| {scenario[0]} | 0 % | | | |", flush=True)
            continue
        mean = [sum(one[k] for one in found) / len(found) for k in range(3)]
        print(f"| {scenario[0]} | {100 * len(found) / arguments.trials:.0f} % | {100 * mean[0]:.0f} % | "
              f"{mean[1]:+.2f} points | {mean[2]:.2f} points |", flush=True)


if __name__ == "__main__":
    main()
