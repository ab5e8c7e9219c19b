#!/usr/bin/env python3
"""ipw estimate calibrate by loads that run on this machine: what is refused, and what a machine without a meter gives."""

import json
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from machines import Intel, Machine, Modeled  # noqa: E402
from program import MachineTest, SANITIZED, ipw, main_side_by_side  # noqa: E402


class Here(MachineTest):
    """Loads that run on this machine, measured by the sensors of a fake one."""

    def setUp(self):
        self.root = Path(tempfile.mkdtemp(prefix="ipw-calibrate-"))
        self.addCleanup(shutil.rmtree, self.root)

    def ipw(self, *arguments, machine=None, code=0, env=None):
        done = ipw(machine, "estimate", *arguments, env=env)
        self.assertEqual(done.returncode, code, done.stderr or done.stdout)
        return done

    def test_a_meter_that_sees_no_load_is_refused(self):
        done = self.ipw("calibrate", "--seconds", "1", "--threads", "2", "-q", "--runtime", "none",
                        machine=self.machine(Intel, 40), code=1)
        self.assertRegex(done.stderr, r"refused: (power does not depend on the load|negative|not identified)")

    def test_joules_of_a_model_are_refused_before_minutes_are_spent(self):
        done = self.ipw("calibrate", "--seconds", "3600", "--require-energy", "--runtime", "none",
                        machine=self.machine(Modeled), code=1)
        self.assertIn("estimated by a model", done.stderr)

    def test_where_energy_is_required_a_meter_is(self):
        done = self.ipw("calibrate", "--seconds", "1", "--require-energy", "--runtime", "none",
                        machine=self.machine(Machine), code=3)
        self.assertIn("energy of the processor is not measured", done.stderr)

    def times_and_no_joules(self, machine, says, *runtime):
        """Rates are measured all the same; every energy is unknown, also in an estimate by the file."""
        file = self.root / "times.json"
        done = self.ipw("calibrate", "--seconds", "2", "--threads", "1", *runtime, "-q", "-o", file,
                        machine=self.machine(machine), env={"IPW_LLAMA_LIB": "/nowhere", "IPW_ONNXRUNTIME_LIB": "/nowhere"})
        self.assertIn(says, done.stdout)
        self.assertNotIn("nan", done.stdout)
        made = json.loads(file.read_text())
        self.assertNotIn("calibrated", made)
        self.assertNotIn("energy", made["vector"]["fp32"])
        self.assertNotIn("power", made)
        self.assertEqual(made["vector"]["fp32"]["peak"]["evidence"], "measured")
        self.assertEqual(made["memories"][0]["name"], "L2")  # out of a cache it is faster
        report = json.loads(self.ipw("--model", "resnet18", "--hardware-file", file, "--json").stdout)
        self.assertGreater(report["latency_s"], 0)
        self.assertIsNone(report["energy_j"]["total"])
        return [line for line in done.stderr.splitlines() if "were not timed" in line]

    def test_without_a_meter_there_are_times_and_no_joules(self):
        """By default operators of all runtimes are timed: one line for each whose library is missing, and how to give it."""
        lines = self.times_and_no_joules(Machine, "not measured")
        self.assertEqual(len(lines), 2, lines)
        self.assertRegex(lines[1], r"operators of ONNX Runtime were not timed: .*set IPW_ONNXRUNTIME_LIB to its path$")

    @unittest.skipIf(SANITIZED, "how a model is told from a meter is the code of the test of refused joules")
    def test_by_a_model_there_are_times_and_no_joules(self):
        self.assertEqual(self.times_and_no_joules(Modeled, "estimated by a model", "--runtime", "none"), [])


if __name__ == "__main__":
    main_side_by_side()  # rates are over the time that the threads ran, and none is compared with another run's
