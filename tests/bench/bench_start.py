#!/usr/bin/env python3
"""Start-up overhead: wall time of `ipw run true` beyond its sampling, and of `ipw doctor`."""
import os
import re
import subprocess
import sys
import time

IPW = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "ipw")
ROUNDS = 15


def row(name, value, unit, bound):
    verdict = "pass" if value <= bound else "fail"
    print(f"{name}\t{value:.4g}\t{unit}\t<= {bound:g}\t{verdict}")


def report(name, value, unit):
    """A figure without a bound."""
    print(f"for comparison: {name} {value:.4g} {unit}")


def timed(*words):
    began = time.monotonic()
    done = subprocess.run([IPW, *words], capture_output=True, text=True, env=dict(os.environ, IPW_LOG="debug"))
    wall = time.monotonic() - began
    if done.returncode:
        sys.exit(f"{words}: exit {done.returncode}: {done.stderr}")
    return wall, done.stderr


def beyond_sampling():
    """Wall time minus the command itself and the waits for sensors, which the program reports."""
    wall, said = timed("run", "--", "true")
    waits = sum(float(ms) for ms in re.findall(r"(?:begun|marked|settled) after ([\d.]+) ms", said))
    return wall * 1e3 - waits


extra = sorted(beyond_sampling() for _ in range(ROUNDS))[ROUNDS // 2]
alone = sorted(timed("--version")[0] for _ in range(ROUNDS))[ROUNDS // 2] * 1e3
report("ipw run true, beyond its sampling", extra, "ms")
report("a process that does nothing", alone, "ms")
row("ipw run true, beyond its sampling, against a process that does nothing", extra / alone, "ratio", 20)
report("ipw doctor", timed("doctor")[0], "s")
