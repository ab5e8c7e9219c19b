#!/usr/bin/env python3
# test: alone
"""ipw estimate calibrate with its own loads: their speed is the result, so nothing else may run in parallel."""

import csv
import json
import subprocess
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from machines import Intel, Machine  # noqa: E402
from program import IPW, MachineTest, ipw  # noqa: E402


# Plausible power: arithmetic draws more than memory, half of the threads less than all.
DRAWS = {"idle": 10, "compute": 60, "gemm": 58, "triad": 45, "mix 1": 46, "mix 4": 48, "mix 16": 52,
         "mix 64": 57, "mix 256": 60, "compute half": 35, "triad half": 28}
# Power of the machine to be fitted: constant, at full arithmetic, at full memory bandwidth.
ALWAYS_W, ARITHMETIC_W, MEMORY_W = 12, 40, 60


class CalibrateLoads(MachineTest):
    """Loads run on this machine and are measured by the sensors of a fake one."""

    def setUp(self):
        self.root = self.machine(Machine).root

    def set_power_by_load(self, machine, process, draws):
        """Sets the power according to the load that ipw announces; returns all lines."""
        lines = []
        for line in process.stderr:
            lines.append(line)
            load = line.rpartition(": ")[2].strip()
            if load in draws:
                machine.set_power(draws[load])
        return lines

    def calibrated(self, draws, *options):
        machine = self.machine(Intel, draws["idle"])
        # A high rate, because a window has at least thirteen readings.
        with subprocess.Popen([IPW, "estimate", "calibrate", "--seconds", "8", "--threads", "2", "--sample-rate", "250",
                               "--runtime", "none", "--json", *map(str, options)], env=machine.environment(), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            lines = self.set_power_by_load(machine, process, draws)
            said = process.stdout.read()
        return process.returncode, said, lines

    def rates(self, path):
        """Operations and bytes per second of each load, averaged over its windows."""
        found = {}
        with open(path, newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                if row["op"] not in ("idle", "launch", "cache"):
                    found.setdefault(row["op"], []).append(
                        [float(row[key]) / float(row["latency_s"]) for key in ("flops", "bytes")])
        return {load: [sum(column) / len(column) for column in zip(*rows)] for load, rows in found.items()}

    def fit(self, rows):
        return json.loads(ipw(None, "estimate", "calibrate", "--csv", rows, "--json").stdout)

    def test_fit_recovers_energy_per_operation_and_byte(self):
        """The energy of the fake machine is linear in operations and bytes, and the fit must recover the coefficients.
        The rates of the loads are measured first and determine the power of the second calibration; if rates changed in
        between because of other load, its rows are refused and it is repeated."""
        rows, file = self.root / "rows.csv", self.root / "here.json"
        self.calibrated(DRAWS, "--rows", rows)
        for _ in range(6):
            rates = self.rates(rows)
            self.assertEqual(set(rates), set(DRAWS) - {"idle"})
            flop, byte = ARITHMETIC_W / rates["compute"][0], MEMORY_W / rates["triad"][1]
            draws = {load: ALWAYS_W + flop * flops + byte * moved for load, (flops, moved) in rates.items()}
            draws["idle"] = 10
            code, said, lines = self.calibrated(draws, "-o", file, "--rows", rows)
            if code == 0:
                break
            self.assertRegex(lines[-1], "refused: (not identified|negative)")
        self.assertEqual(code, 0, lines)
        report = json.loads(said)
        self.assertEqual(report["method"], "measured")
        for point in report["points"]:
            self.assertAlmostEqual(point["measured_w"] / draws[point["name"]], 1, delta=0.1, msg=point)
        self.assertAlmostEqual(report["idle_w"] / 10, 1, delta=0.1)
        self.assertEqual([row["unit"] for row in report["coefficients"]], ["J/FLOP", "J/B", "W"])
        self.assertEqual([row["value"] for row in self.fit(rows)["coefficients"]],
                         [row["value"] for row in report["coefficients"]])
        self.assertFitRecovers(rows, flop, byte)
        done = ipw(None, "estimate", "--model", "resnet18", "--hardware-file", file, "--json")
        self.assertEqual(json.loads(done.stdout)["model"], "resnet18")

    def assertFitRecovers(self, rows, flop, byte):
        """Given exact joules of each window's operations and bytes, the fit returns the coefficients: the loads
        separate arithmetic, memory and constant power."""
        with open(rows, newline="", encoding="utf-8") as file:
            windows = list(csv.DictReader(file))
        for row in windows:
            if row["op"] not in ("idle", "launch"):
                row["energy_j"] = (flop * float(row["flops"]) + byte * float(row["bytes"]) +
                                   ALWAYS_W * float(row["latency_s"]))
        exact = self.root / "exact.csv"
        with open(exact, "w", newline="", encoding="utf-8") as file:
            table = csv.DictWriter(file, windows[0])
            table.writeheader()
            table.writerows(windows)
        for row, wanted in zip(self.fit(exact)["coefficients"], (flop, byte, ALWAYS_W)):
            with self.subTest(row["name"]):
                self.assertAlmostEqual(row["value"] / wanted, 1, places=6, msg=row)


if __name__ == "__main__":
    unittest.main()
