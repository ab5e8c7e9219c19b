#!/usr/bin/env python3
"""`ipw sweep --slurm` and `ipw profile --slurm` on a real Slurm of one node: what is submitted is measured once, and
collected; elements that fail, are requeued or whose node daemon is killed lose and double nothing."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "cli"))
from program import IPW, PATIENCE_S, python  # noqa: E402
from slurm import Slurm, wait_until  # noqa: E402

# Appends its last argument to a file, as one write; then waits while that file has a neighbor with its name.
NOTE = """
import os, sys, time
with open(sys.argv[1], 'ab', 0) as file: file.write((sys.argv[2] + '\\n').encode())
while os.path.exists(sys.argv[1] + '.' + sys.argv[2]): time.sleep(0.02)
"""
cluster = None


def setUpModule():
    global cluster
    cluster = Slurm()


def tearDownModule():
    cluster.stop()


class SlurmTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="ipw-on-slurm-")
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name)
        self.notes = self.root / "notes"
        self.notes.touch()

    def ipw(self, *words, code=0):
        done = subprocess.run([IPW, *map(str, words)], env=cluster.environment, text=True, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=PATIENCE_S)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr + self.logs())
        return done

    def start(self, *words):
        return subprocess.Popen([IPW, *map(str, words)], env=cluster.environment, text=True, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def end(self, process, code=0):
        out, said = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, code, out + said + self.logs())
        return said

    def logs(self):
        return "".join(path.read_text() for path in self.root.glob("runs/*/slurm/*.log"))

    def sweep(self, *options, command=None):
        return ["sweep", "--output-dir", self.root / "runs", "--slurm", "--partition", "debug", *options, "--",
                *(command or python(NOTE, self.notes, "{a}"))]

    def directory(self):
        found = list((self.root / "runs").glob("sweep_*"))
        self.assertEqual(len(found), 1)
        return found[0]

    def lines(self, kind):
        lines = [json.loads(line) for line in (self.directory() / "records.jsonl").read_text().splitlines()]
        return [line for line in lines if line["kind"] == kind]

    def noted(self):
        return self.notes.read_text().split()

    def hold(self, value):
        """The command of this setting waits until the file is deleted."""
        (self.root / f"notes.{value}").touch()
        return self.root / f"notes.{value}"

    def wait_for(self, value):
        wait_until(lambda: value in self.noted(), f"setting {value}; {self.logs()}")


class Sweeps(SlurmTest):
    def test_every_setting_once(self):
        done = self.ipw(*self.sweep("--knob", "a=1-6:1", "--repeat", 2, "--json", "--array-limit", 3, "--gres", "gpu:1",
                                    "--time", 5, "--nodes", 1, "--sbatch", "comment=ipw"))
        self.assertEqual(sorted(self.noted()), sorted(list("123456") * 2))
        self.assertEqual(sorted((point["settings"]["a"], point["repeat"]) for point in self.lines("point")),
                         sorted((a, repeat) for a in "123456" for repeat in (1, 2)))
        result = json.loads(done.stdout)["sweep"]
        self.assertEqual((result["summary"]["settings"], result["summary"]["complete"]), (6, True))
        self.assertEqual(len(self.lines("job")), 1)


if __name__ == "__main__":
    unittest.main()
