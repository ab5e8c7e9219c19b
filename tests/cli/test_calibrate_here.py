#!/usr/bin/env python3
# test: real time
"""ipw estimate calibrate with loads on this machine: refusals, and machines without a power sensor."""

import json
import shutil
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from machines import Intel, Machine, Modeled  # noqa: E402
from program import NAN, MachineTest, ipw, main_parallel  # noqa: E402


class CalibrateHere(MachineTest):
    """Loads run on this machine and are measured by the sensors of a fake one."""

    def setUp(self):
        self.root = Path(tempfile.mkdtemp(prefix="ipw-calibrate-"))
        self.addCleanup(shutil.rmtree, self.root)

    def ipw(self, *arguments, machine=None, code=0, env=None):
        done = ipw(machine, "estimate", *arguments, env=env)
        self.assertEqual(done.returncode, code, done.stderr or done.stdout)
        return done

    def test_refuses_power_independent_of_load(self):
        done = self.ipw("calibrate", "--seconds", "1", "--threads", "1", "--sample-rate", "200", "-q", "--runtime", "none",
                        machine=self.machine(Intel, 40), code=1)
        self.assertRegex(done.stderr, r"refused: (power does not depend on the load|negative|not identified)")

    def test_refuses_modeled_energy_before_measuring(self):
        done = self.ipw("calibrate", "--seconds", "3600", "--require-energy", "--runtime", "none",
                        machine=self.machine(Modeled), code=1)
        self.assertIn("estimated by a model", done.stderr)

    def test_require_energy_fails_without_sensor(self):
        done = self.ipw("calibrate", "--seconds", "1", "--require-energy", "--runtime", "none",
                        machine=self.machine(Machine), code=3)
        self.assertIn("energy of the processor is not measured", done.stderr)

    def check_times_without_energy(self, machine, says, *runtime):
        """Rates are measured; every energy is unknown, also in an estimate with the file."""
        file = self.root / "times.json"
        done = self.ipw("calibrate", "--seconds", "1", "--threads", "1", *runtime, "-q", "-o", file,
                        machine=self.machine(machine), env={"IPW_LLAMA_LIB": "/nowhere", "IPW_ONNXRUNTIME_LIB": "/nowhere"})
        self.assertIn(says, done.stdout)
        self.assertNotRegex(done.stdout, NAN)
        made = json.loads(file.read_text())
        self.assertNotIn("calibrated", made)
        self.assertNotIn("energy", made["vector"]["fp32"])
        self.assertNotIn("power", made)
        self.assertEqual(made["vector"]["fp32"]["peak"]["evidence"], "measured")
        self.assertEqual(made["memories"][0]["name"], "L2")  # faster from a cache
        report = json.loads(self.ipw("--model", "resnet18", "--hardware-file", file, "--json").stdout)
        self.assertGreater(report["latency_s"], 0)
        self.assertIsNone(report["energy_j"]["total"])
        return [line for line in done.stderr.splitlines() if "were not timed" in line]

    def test_without_sensor_calibrates_times_only(self):
        """By default operators of all runtimes are timed; for each missing library one line says where it was looked for."""
        lines = self.check_times_without_energy(Machine, "not measured")
        self.assertEqual(len(lines), 2, lines)
        self.assertRegex(lines[1], r"operators of ONNX Runtime were not timed: IPW_ONNXRUNTIME_LIB /nowhere: no libonnxruntime there$")

    def test_with_modeled_power_calibrates_times_only(self):
        self.assertEqual(self.check_times_without_energy(Modeled, "estimated by a model", "--runtime", "none"), [])


if __name__ == "__main__":
    main_parallel()  # rates are over the threads' run time, and are not compared with another run
