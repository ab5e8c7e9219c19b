#!/usr/bin/env python3
# test: real time
"""Command-line tests of ipw doctor: each fake machine gets the right diagnosis, with reason and fix."""

import csv
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from machines import Fixture, Intel, Machine, Modeled, Nvidia  # noqa: E402
from program import IPW, TIMEOUT_S, MachineTest, ipw, main_parallel  # noqa: E402

STATUSES = {"ok", "estimated", "dead", "denied", "unsupported", "absent"}
KEYS = {"id", "driver", "kind", "status", "reason", "fix", "period_ms", "read_us", "measures"}
NOBODY = 65534


class Doctor(MachineTest):
    def diagnose(self, machine, *arguments, **options):
        done = ipw(machine, "doctor", "--json", *arguments, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def sensor(self, report, name):
        found = [s for s in report["sensors"] if s["id"] == name]
        self.assertEqual(len(found), 1, [s["id"] for s in report["sensors"]])
        return found[0]

    def assertShape(self, report):
        self.assertTrue(report["host"]["hardware_label"])
        self.assertTrue(report["sensors"])
        for sensor in report["sensors"]:
            self.assertLessEqual(KEYS, set(sensor), sensor)
            self.assertIn(sensor["status"], STATUSES)
            self.assertIsInstance(sensor["measures"], list)
            self.assertNotEqual(sensor["kind"], "test")
            if sensor["status"] not in ("ok", "estimated"):
                self.assertTrue(sensor["reason"], sensor)
                self.assertIsNone(sensor["power_w"], sensor)

    def test_csv_and_markdown_list_the_sensors(self):
        intel = self.machine(Intel, 100)
        rows = list(csv.DictReader(ipw(intel, "doctor", "--format", "csv").stdout.splitlines()))
        self.assertIn(("rapl:0", "rapl", "ok"), [(row["id"], row["driver"], row["status"]) for row in rows])
        markdown = ipw(intel, "doctor", "--format", "md").stdout
        self.assertTrue(markdown.startswith("# doctor\n"), markdown)
        self.assertIn("\n| rapl:0 | rapl |", markdown)

    def test_sensor_of_unknown_scope_does_not_measure_the_machine(self):
        laptop = self.machine(Machine)
        laptop.put("/sys/class/hwmon/hwmon0/name", "BAT0")
        laptop.put("/sys/class/hwmon/hwmon0/power1_input", 12000000)
        report = self.diagnose(laptop)
        battery = self.sensor(report, "hwmon:BAT0.0")
        self.assertEqual((battery["status"], report["energy_measured"]), ("ok", False))
        self.assertIn("not in the total", battery["reason"])
        self.assertEqual(ipw(laptop, "doctor", "--require-energy").returncode, 3)
        self.assertEqual(ipw(laptop, "run", "--require-energy", "--", "sleep", "0.2").returncode, 3)

    def test_diagnosis_of_every_machine(self):
        gpu = "power 0 constant 300"
        silent = "\n".join(f"fail {f} 0 3" for f in (
            "nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetPowerUsage",
            "nvmlDeviceGetFieldValues", "nvmlDeviceGetSamples"))
        cases = [
            (Fixture, ("intel2", 100), {"rapl:0": "ok", "rapl:1": "ok"}, True),
            (Fixture, ("intel2",), {"rapl:0": "dead", "rapl:1": "dead"}, False),
            (Fixture, ("amd", 60), {"rapl:0": "ok"}, True),
            (Fixture, ("guest",), {"rapl": "absent"}, False),
            (Fixture, ("psys-dead",), {"rapl:psys": "dead", "rapl": "absent"}, False),
            (Fixture, ("none",), {"rapl": "absent", "nvml": "absent", "cpu_model": "absent"}, False),
            (Fixture, ("jetson",), {"jetson": "ok", "rapl": "absent"}, True),
            (Fixture, ("jetson-agx",), {"jetson": "ok"}, True),
            (Fixture, ("grace",), {"hwmon:power_meter0": "ok"}, True),
            (Modeled, (), {"cpu_model": "estimated"}, False),
            (Intel, (40, 0), {"rapl:0": "ok", "rapl:1": "dead"}, True),
            (Nvidia, (gpu,), {"nvml:0": "ok"}, True),
            (Nvidia, ("devices 2",), {"nvml:0": "ok", "nvml:1": "ok"}, True),
            (Nvidia, (silent,), {"nvml:0": "unsupported"}, False),
            (Nvidia, ("init 9",), {"nvml": "absent"}, False),
            (Nvidia, ("init 18",), {"nvml": "unsupported"}, False),
        ]
        def diagnose(case):
            with case[0](*case[1]) as machine:
                return self.diagnose(machine)
        # In parallel: a diagnosis mostly sleeps, and no time is asserted.
        with ThreadPoolExecutor(4) as pool:
            reports = pool.map(diagnose, cases)
        for (kind, arguments, expected, measured), report in zip(cases, reports):
            with self.subTest(kind=kind.__name__, arguments=arguments):
                self.assertShape(report)
                self.assertEqual({name: self.sensor(report, name)["status"] for name in expected},
                                 expected)
                self.assertIs(report["energy_measured"], measured)

    def test_working_sensor_has_figures(self):
        report = self.diagnose(self.machine(Intel, 40))
        rapl = self.sensor(report, "rapl:0")
        self.assertEqual((rapl["driver"], rapl["kind"], rapl["measures"]), ("rapl", "cpu", ["energy"]))
        self.assertIsNone(rapl["reason"])
        self.assertIsNone(rapl["fix"])
        self.assertAlmostEqual(rapl["power_w"] / 40, 1, delta=0.3)
        self.assertGreater(rapl["period_ms"], 0)
        self.assertGreater(rapl["read_us"], 0)

    def test_gpu_update_period_is_reported(self):
        report = self.diagnose(self.machine(Nvidia, "power 0 constant 300"))
        gpu = self.sensor(report, "nvml:0")
        self.assertAlmostEqual(gpu["power_w"] / 300, 1, delta=0.15)
        self.assertAlmostEqual(gpu["period_ms"] / 100, 1, delta=0.3)
        self.assertLessEqual({"energy", "power", "temperature"}, set(gpu["measures"]))
        self.assertEqual(report["host"]["gpu"], "NVIDIA H200 x1")

    def test_dead_sensor_has_reason(self):
        report = self.diagnose(self.machine(Fixture, "psys-dead"))
        self.assertRegex(self.sensor(report, "rapl:psys")["reason"], r"counter did not change in \d\.\d s under load")

    def run_unprivileged(self, machine, *arguments):
        """Runs ipw as a user without root's read permission."""
        os.chmod(machine.root, 0o755)
        program = shutil.copy(IPW, machine.root / "ipw")
        options = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        return subprocess.run([program, *arguments], env=machine.environment(), cwd="/", text=True,
                              capture_output=True, timeout=TIMEOUT_S, **options)

    def test_denied_sensor_has_fix(self):
        machine = self.machine(Intel, 40)
        os.chmod(machine.path(), 0o400 if os.geteuid() == 0 else 0)
        done = self.run_unprivileged(machine, "doctor", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        rapl = self.sensor(json.loads(done.stdout), "rapl:0")
        self.assertEqual(rapl["status"], "denied")
        self.assertTrue(rapl["reason"])
        self.assertRegex(rapl["fix"], "chmod|setcap|sysctl|udev")
        text = self.run_unprivileged(machine, "doctor").stdout
        self.assertRegex(text, r"rapl:0 +DENIED")
        self.assertIn("fix: ", text)

    def test_text_report(self):
        text = ipw(self.machine(Intel, 40), "doctor").stdout
        self.assertRegex(text, r"rapl:0 +ok +Intel\(R\) Xeon\(R\) Gold 6330.*: energy")
        self.assertIn("Energy is measured here.", text)
        self.assertNotIn("\033", text)
        text = ipw(self.machine(Fixture, "none"), "doctor").stdout
        self.assertIn("No sensor measures or estimates energy here: energy will be unknown.", text)
        self.assertIn("fix: sudo modprobe intel_rapl_msr", text)
        text = ipw(self.machine(Modeled), "doctor").stdout
        self.assertIn("figures are estimated from CPU utilization", text)

    def test_sensors_option_selects_drivers(self):
        report = self.diagnose(self.machine(Intel, 40), "--sensors", "rapl,host")
        self.assertEqual({s["driver"] for s in report["sensors"]}, {"rapl", "host"})

    def test_exit_codes(self):
        none = self.machine(Machine)
        done = ipw(none, "doctor", "--require-energy")
        self.assertEqual(done.returncode, 3)
        self.assertIn("no sensor measures energy here", done.stderr)
        self.assertEqual(ipw(self.machine(Intel, 40), "doctor", "--require-energy").returncode, 0)
        self.assertEqual(ipw(none, "doctor", "extra").returncode, 2)
        self.assertEqual(ipw(none, "doctor", "--", "extra").returncode, 2)

    def test_output_file(self):
        none = self.machine(Machine)
        path = none.root / "report"
        done = ipw(none, "doctor", "--json", "-o", path)
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        self.assertShape(json.loads(path.read_text()))
        done = ipw(none, "doctor", "-o", "/dev/full")
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot write /dev/full: No space left", done.stderr)
        with open("/dev/full", "w") as full:
            done = ipw(none, "doctor", stdout=full, stderr=subprocess.PIPE, capture_output=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("standard output", done.stderr)


if __name__ == "__main__":
    main_parallel()
