#!/usr/bin/env python3
"""Instrumentation overhead of `ipw layers` on a model of more than a hundred million parameters: passes with and
without it are interleaved, and the program itself reports the difference."""
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

BUILD = Path(__file__).resolve().parent.parent
SOURCE = re.search(r"^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.M)[1]
MAKE = Path(SOURCE, "tests/e2e/make_gguf.py")


def row(name, value, unit, bound):
    verdict = "pass" if value <= bound else "fail"
    print(f"{name}\t{value:.4g}\t{unit}\t<= {bound:g}\t{verdict}")


def measured(model):
    words = [BUILD / "ipw", "layers", "--model", model, "--prompt-tokens", "32,128", "--gen", "8",
             "--repeat", "3", "--idle", "0.2", "--json", "--quiet"]
    done = subprocess.run(words, capture_output=True, text=True)
    if "libllama" in done.stderr and done.returncode:
        print(f"left out, ipw layers: {done.stderr.strip()}")
        sys.exit(0)
    if done.returncode:
        sys.exit(f"ipw layers: exit {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)


with tempfile.TemporaryDirectory(prefix="ipw-bench-") as folder:
    path = Path(folder, "large.gguf")
    subprocess.run([sys.executable, MAKE, path, "--layers", "30", "--hidden", "576", "--heads", "8",
                    "--quick", "1"], check=True, stdout=subprocess.DEVNULL)
    report = measured(path)
row(f"ipw layers, instrumentation overhead, {report['parameters'] / 1e6:.0f} M parameters",
    report["overhead_pct"], "%", 5)
for setting in report["settings"]:
    print(f"for comparison: {setting['phase']} at {setting['prompt_tokens']} tokens, stride "
          f"{setting['stride']}: {setting['overhead_pct']:.2f} %")
