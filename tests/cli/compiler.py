"""Compiles examples of the documentation with the compiler and flags of the build, so that a sanitized build gets
sanitized programs."""

import json
import os
import shlex
import subprocess
from pathlib import Path

from program import TIMEOUT_S

BUILD = Path(os.environ.get("IPW_BUILD", "build")).resolve()
SOURCE = Path(os.environ.get("IPW_SOURCE", ".")).resolve()


def project_command():
    """The command that compiles a source of src/, without its input and output."""
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        if not entry["file"].startswith(f"{SOURCE}/src/"):
            continue
        words = shlex.split(entry["command"])
        output = words.index("-o")
        del words[output:output + 2]
        return [word for word in words if word != "-c" and not word.endswith(".c")]
    raise LookupError("the build has no source of src/")


def build(*words):
    """Runs the compiler; raises an error with its messages."""
    command = [*project_command(), "-Werror", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    if done.returncode:
        raise AssertionError(f"{' '.join(command)}\n{done.stderr}")
