#!/usr/bin/env python3
"""ipw estimate calibrate on loads of its own: how fast they go is the figure, so nothing else may run meanwhile."""

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


# What a machine might draw: arithmetic more than memory, half of the threads less than all.
DRAWS = {"idle": 10, "compute": 60, "gemm": 58, "triad": 45, "mix 1": 46, "mix 4": 48, "mix 16": 52,
         "mix 64": 57, "mix 256": 60, "compute half": 35, "triad half": 28}
# What the machine that is fitted draws all the time, for full arithmetic and for full memory.
ALWAYS_W, ARITHMETIC_W, MEMORY_W = 12, 40, 60


class Here(MachineTest):
    """Loads that run on this machine, measured by the sensors of a fake one."""

    def setUp(self):
        self.root = self.machine(Machine).root

    def draw_as_told(self, machine, process, draws):
        """Sets the watts by the load that is announced; gives all lines."""
        lines = []
        for line in process.stderr:
            lines.append(line)
            load = line.rpartition(": ")[2].strip()
            if load in draws:
                machine.turn(draws[load])
        return lines

    def calibrated(self, draws, *options):
        machine = self.machine(Intel, draws["idle"])
        with subprocess.Popen([IPW, "estimate", "calibrate", "--seconds", "10", "--threads", "2",
                               "--runtime", "none", "--json", *map(str, options)], env=machine.environment(), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            lines = self.draw_as_told(machine, process, draws)
            said = process.stdout.read()
        return process.returncode, said, lines

    def rates(self, path):
        """Operations and bytes per second of each load, the means of its windows."""
        found = {}
        with open(path, newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                if row["op"] not in ("idle", "launch", "cache"):
                    found.setdefault(row["op"], []).append(
                        [float(row[key]) / float(row["latency_s"]) for key in ("flops", "bytes")])
        return {load: [sum(column) / len(column) for column in zip(*rows)] for load, rows in found.items()}

    def fit(self, rows):
        return json.loads(ipw(None, "estimate", "calibrate", "--csv", rows, "--json").stdout)

    def test_its_own_loads_are_fitted(self):
        """A machine whose joules are those of operations and bytes is found out: how fast the loads go
        here is measured first, then it draws what such a machine would.  Where they went at another pace the
        second time, because something else runs here, the rows tell nothing and are refused; then once more."""
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
        self.assertIsFoundOut(rows, flop, byte)
        done = ipw(None, "estimate", "--model", "resnet18", "--hardware-file", file, "--json")
        self.assertEqual(json.loads(done.stdout)["model"], "resnet18")

    def assertIsFoundOut(self, rows, flop, byte):
        """With the joules that such a machine needs for what each window did, at whatever pace, its figures come out:
        these loads tell arithmetic, memory and the rest apart."""
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
