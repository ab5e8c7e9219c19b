#!/usr/bin/env python3
"""Overhead of `ipw sweep` per point, beyond the command and the sampling of a measurement."""
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import time

IPW = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "ipw")
POINTS = 25


def row(name, value, unit, bound):
    verdict = "pass" if value <= bound else "fail"
    print(f"{name}\t{value:.4g}\t{unit}\t<= {bound:g}\t{verdict}")


def report(name, value, unit):
    """A figure without a bound."""
    print(f"for comparison: {name} {value:.4g} {unit}")


def waits_ms(folder):
    """Time spent waiting for sensors, as reported by the program that measures a point."""
    text = "".join(open(path).read() for path in glob.glob(f"{folder}/points/*/output.log"))
    return sum(float(ms) for ms in re.findall(r"(?:begun|marked|settled) after ([\d.]+) ms", text))


with tempfile.TemporaryDirectory(prefix="ipw-bench-sweep-") as parent:
    began = time.monotonic()
    done = subprocess.run([IPW, "sweep", "-q", "--output-dir", parent, "--knob", f"a=1-{POINTS}:1", "--", "true", "{a}"],
                          capture_output=True, text=True, env=dict(os.environ, IPW_LOG="debug"))
    wall_ms = (time.monotonic() - began) * 1e3
    if done.returncode:
        sys.exit(f"exit {done.returncode}: {done.stderr}")
    folder, = glob.glob(f"{parent}/sweep_*")
    attempts = [json.loads(line) for line in open(f"{folder}/records.jsonl") if '"kind":"point"' in line.replace(": ", ":")]
    commands_ms = sum(attempt["seconds"] for attempt in attempts) * 1e3
    runs_ms = sum(attempt["wall_s"] for attempt in attempts) * 1e3
    assert len(attempts) == POINTS
    report("ipw sweep, overhead per point beyond command and sampling",
           (wall_ms - commands_ms - waits_ms(folder)) / POINTS, "ms")
    report("ipw sweep, overhead per point beyond its ipw run", (wall_ms - runs_ms) / POINTS, "ms")
    row("the same, against that of its ipw run", (wall_ms - runs_ms) / (runs_ms - commands_ms - waits_ms(folder)),
        "ratio", 0.5)
