"""Answers of a workload without a profile, from build/tests/tools/workload."""

import json
import os
import subprocess
from pathlib import Path

from program import TIMEOUT_S

TOOL = Path(os.environ.get("IPW_BUILD", "build")).resolve() / "tests/tools/workload"


def answers(name, model, inputs, *settings):
    """The description, and for each input an object with its answer in "content", or "error"; (None, MESSAGE) if the model
    is refused."""
    done = subprocess.run([TOOL, name, str(model), "client:threads=1", *settings], text=True, capture_output=True,
                          input="".join(f"{each}\n" for each in inputs), timeout=TIMEOUT_S)
    if done.returncode:
        assert done.returncode == 1, done.stderr
        return None, done.stderr.strip()
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) == 1 + len(inputs), done.stdout + done.stderr
    return lines[0], lines[1:]
