#!/usr/bin/env python3
# test: real time, asan
"""Activity of GPU units, from GPM of the fake NVML, from a fake `dcgmi dmon` in PATH, or from utilization alone."""

import csv
import json
import os
import sys
import time
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from machines import Nvidia  # noqa: E402
from program import ipw, python  # noqa: E402

SCRIPT = """power 0 constant 200
value utilisation 0 88
value tensor 0 31
value sm_util 0 64
value sm_occupancy 0 42
value dram_bandwidth 0 23
value fp64_util 0 1
value fp32_util 0 17
value fp16_util 0 5
"""
NAMES = ("sm_active", "sm_occupancy", "dram_active", "tensor_active", "fp64_active", "fp32_active", "fp16_active")
DCGMI = """#!/usr/bin/env python3
import os, sys, time
from pathlib import Path
folder = Path(__file__).parent
(folder / "started").write_text(f"{os.getpid()} {' '.join(sys.argv[1:])}")
print("#Entity   GRACT        SMACT        SMOCC        TENSO        DRAMA        FP64A        FP32A        FP16A")
print("ID")
for row in range(14):
    print("GPU-I 0   0.999        0.999        0.999        0.999        0.999        0.999        0.999        0.999")
    print("GPU 1     0.111        0.111        0.111        0.111        0.111        0.111        0.111        0.111")
    print("GPU 0     0.900        0.500        0.250        0.125        0.375        N/A          0.200        0.050",
          flush=True)
    time.sleep(0.3)
    if row == 4:
        (folder / "written").touch()
time.sleep(1000)
"""


def runs(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


class GpuWithPrograms(Nvidia):
    """A GPU machine with its own folder of programs first in PATH."""

    def program(self, text):
        path = self.put("/bin/dcgmi", text)
        path.chmod(0o755)
        return path.parent

    def environment(self):
        found = super().environment()
        return {**found, "PATH": f"{self.root}/bin:{found['PATH']}"}


class Activity(unittest.TestCase):
    def machine(self, more=""):
        machine = GpuWithPrograms(SCRIPT + more)
        self.addCleanup(machine.close)
        return machine

    def run_json(self, machine, work=1.5, *options):
        """work: seconds to sleep, or Python code to run."""
        script = work if isinstance(work, str) else f"import time; time.sleep({work})"
        done = ipw(machine, "run", "--json", *options, "--", *python(script))
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def activity(self, report):
        return next(device for device in report["conditions"]["devices"] if device["id"] == "gpu0")["activity"]

    def check(self, activity, source, *shares):
        self.assertEqual(activity["source"], source)
        for name, share in zip(NAMES, shares):
            if share is None:
                self.assertIsNone(activity[name], name)
            else:
                self.assertAlmostEqual(activity[name], share, places=6, msg=name)
        self.assertAlmostEqual(activity["utilization"], 0.88, places=6)

    def test_activity_from_gpm_counters(self):
        report = self.run_json(self.machine())
        self.check(self.activity(report), "gpm", .64, .42, .23, .31, .01, .17, .05)
        gpu = next(device for device in report["devices"] if device["id"] == "gpu0")
        self.assertEqual(gpu["activity_source"], "gpm")
        self.assertAlmostEqual(gpu["sm_active_pct"]["mean"], 64, places=6)
        self.assertAlmostEqual(gpu["tensor_utilisation_pct"]["mean"], 31, places=6)

    def test_activity_of_command_shorter_than_gpm_period(self):
        self.check(self.activity(self.run_json(self.machine(), 0.4)), "gpm", .64, .42, .23, .31, .01, .17, .05)

    def test_gpm_is_read_once_per_second_regardless_of_sample_rate(self):
        machine = self.machine()
        samples = machine.root / "samples.csv"
        report = self.run_json(machine, 2, "--samples", samples, "--sample-rate", "100")
        with open(samples, newline="") as file:
            times = [float(row["t_s"]) for row in csv.DictReader(file) if row["channel"] == "gpm.sm"]
        self.assertGreaterEqual(len(times), 2)
        self.assertLessEqual(len(times), 4 + times[-1] - times[0])
        self.check(self.activity(report), "gpm", .64)

    def test_text_report_lists_activities(self):
        done = ipw(self.machine(), "run", "--", *python("import time; time.sleep(0.5)"))
        self.assertIn("gpu0 activity: SM 64 %, occupancy 42 %, DRAM 23 %, tensor 31 %, FP64 1 %, FP32 17 %, FP16 5 %, "
                      "utilization 88 % (gpm)", done.stdout + done.stderr)

    def test_falls_back_to_dcgmi_without_gpm(self):
        machine = self.machine("gpm 0 no\n")
        folder = machine.program(DCGMI)
        wait = (f"import os, time\nwhile not os.path.exists({str(folder / 'written')!r}): time.sleep(0.05)\n"
                "time.sleep(1.2)")  # until ipw has read its rows
        report = self.run_json(machine, wait)
        self.check(self.activity(report), "dcgmi", .5, .25, .375, .125, None, .2, .05)
        pid, *words = (folder / "started").read_text().split()
        self.assertEqual(words, ["dmon", "-i", "0", "-e", "1001,1002,1003,1004,1005,1006,1007,1008", "-d", "1000"])
        deadline = time.monotonic() + 20
        while runs(pid) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertFalse(runs(pid), "dcgmi still runs")
        self.assertEqual([run["left_running"] for run in report["runs"]], [0])

    def test_wait_all_does_not_wait_for_dcgmi(self):
        machine = self.machine("gpm 0 no\n")
        machine.program(DCGMI)
        self.run_json(machine, 0.5, "--wait-all")  # the fake dcgmi sleeps for 1000 s

    def test_falls_back_to_utilization_if_dcgmi_fails(self):
        for text in ("#!/bin/sh\necho 'Error: unable to establish a connection to the specified host: localhost'\nexit 1\n",
                     "#!/bin/sh\nexec sleep 100\n", "#!/bin/sh\nkill -9 $$\n", "not a program\n"):
            with self.subTest(text=text):
                machine = self.machine("gpm 0 no\n")
                machine.program(text)
                report = self.run_json(machine, 0.7)
                self.check(self.activity(report), "utilization", *[None] * 7)
                self.assertEqual([run["left_running"] for run in report["runs"]], [0])

    def test_empty_ipw_dcgmi_disables_dcgmi(self):
        machine = self.machine("gpm 0 no\n")
        machine.program(DCGMI)
        os.environ["IPW_DCGMI"] = ""
        self.addCleanup(os.environ.pop, "IPW_DCGMI")
        self.check(self.activity(self.run_json(machine)), "utilization", *[None] * 7)
        self.assertFalse((machine.root / "bin/started").exists())

    def test_profile_reports_activity(self):
        machine = self.machine()
        done = ipw(machine, "profile", "--client", "null", "--model", "none", "--dataset", "builtin", "--max-queries", "3",
                   "--client-param", "ttft_ms=300", "--output-dir", machine.root / "runs")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("gpu0 activity: SM 64 %", done.stdout + done.stderr)
        summary = json.loads(next((machine.root / "runs").glob("*/summary.json")).read_text())
        self.check(self.activity(summary["ipw"]), "gpm", .64, .42, .23, .31, .01, .17, .05)

    def test_saved_run_has_activity(self):
        machine = self.machine()
        self.run_json(machine, 0.5, "--output-dir", machine.root / "runs")
        summary = json.loads(next((machine.root / "runs").glob("*/summary.json")).read_text())
        self.check(self.activity(summary["ipw"]), "gpm", .64, .42, .23, .31, .01, .17, .05)


if __name__ == "__main__":
    unittest.main()
