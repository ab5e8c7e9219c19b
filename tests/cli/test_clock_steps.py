#!/usr/bin/env python3
# test: real time
"""The wall clock is stepped forward and back during a measurement: joules, durations and counters follow the monotonic
clock."""

import json
import os
import sys
import threading
import time
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from machines import FAKES, Intel, Nvidia  # noqa: E402
from monitors import Monitor  # noqa: E402
from profiling import MODEL, ProfileTest, Run  # noqa: E402
from program import EchoRun, main_parallel  # noqa: E402

STEPS = ("864000", "-864000", "7", "0")


class StepTest(ProfileTest):
    def stepping(self, machine):
        """The machine with a wall clock that is set by `self.step`."""
        self.step = machine.put("/step", "0")
        plain, library = machine.environment, os.path.abspath(os.path.join(FAKES, "libfake_wall_clock.so"))
        machine.environment = lambda: {**plain(), "LD_PRELOAD": f"{plain()['LD_PRELOAD']}:{library}",
                                       "IPW_FAKE_STEP": str(self.step)}
        return machine

    def steps(self, every=0.7):
        for seconds in STEPS:
            time.sleep(every)
            self.step.write_text(seconds)
        time.sleep(every)

    def check_energy(self, kind, *arguments, watts):
        led = EchoRun(self.stepping(self.machine(kind, *arguments)))
        began = time.monotonic()
        self.steps()
        report, passed = led.end(), time.monotonic() - began
        wall = report["wall_s"]["mean"]
        self.assertLessEqual(0.7 * (len(STEPS) + 1), wall)
        self.assertLessEqual(wall, passed + 1)
        self.assertEqual(report["energy"]["coverage"], 1)
        self.assertAlmostEqual(report["energy"]["joules"], watts * wall, delta=0.03 * watts * wall)

    def test_energy_counter(self):
        self.check_energy(Intel, 40, watts=40)

    def test_driver_samples_with_wall_clock_timestamps(self):
        self.check_energy(Nvidia, "power 0 constant 300\ntick * 0.02\n", watts=300)

    def test_run_directory(self):
        machine, ended = self.stepping(self.machine(Intel, 40)), threading.Event()
        process = self.start("--concurrency", "1", machine=machine, dataset=self.numbered(12),
                             scenario="normal:gap_ms=20")

        def walk():
            while not ended.is_set():
                for seconds in STEPS[:2]:
                    self.step.write_text(seconds)
                    time.sleep(0.15)

        walker, began = threading.Thread(target=walk, daemon=True), time.time()
        self.until(lambda: self.service.bodies(), "a query")
        walker.start()
        out, err = process.communicate()
        passed = time.time() - began
        ended.set()
        walker.join()
        self.assertEqual(process.returncode, 0, err)
        run = Run(json.loads(out)["output_dir"])
        records = list(run.records().values())
        self.assertEqual(len(records), 12)
        latencies = [record["model_metrics"][MODEL]["latency_metrics"]["total_query_seconds"]
                     for record in records]
        starts = sorted(record["ipw"]["started_at"] for record in records)
        for latency in latencies:
            self.assertTrue(0 < latency < passed, latencies)
        self.assertLess(starts[-1] - starts[0], passed)
        self.assertLessEqual(sum(latencies), passed)
        lines = run.lines()
        begun = next(line for line in lines if line["kind"] == "run")["started_at"]
        end = next(line for line in lines if line["kind"] == "end")["ended_at"]
        self.assertTrue(0 <= end - begun <= passed + 5, (begun, end, passed))

    def test_monitor(self):
        machine = self.stepping(self.machine(Nvidia, "power 0 constant 300\ntick * 0.02\n"))
        monitor = Monitor(machine, "--interval", "0.2")
        self.addCleanup(monitor.close)
        name = ("ipw_node_gpu_joules_total", {"gpu": "0", "zone": "gpu"})
        before, began = monitor.wait(lambda now: now.find(name[0], **name[1])), time.monotonic()
        last = before.get(name[0], **name[1])
        for seconds in STEPS:
            self.step.write_text(seconds)
            now = monitor.wait_updates(6)
            joules = now.get(name[0], **name[1])  # present, so it was not considered stale
            self.assertGreater(joules, last)
            self.assertAlmostEqual(now.get("ipw_node_gpu_watts", **name[1]), 300, delta=15)
            last = joules
        passed = time.monotonic() - began
        self.assertAlmostEqual(last - before.get(name[0], **name[1]), 300 * passed, delta=300 * 3)
        with monitor.ask("/api/v1/readings") as answer:
            points = json.load(answer)["domains"][0]["points"]
        for one, next_one in zip(points, points[1:]):
            self.assertLess(one["t_ns"], next_one["t_ns"])
            self.assertLessEqual(one["energy_j"], next_one["energy_j"])
            self.assertEqual(next_one["covered_ns"] - one["covered_ns"], next_one["t_ns"] - one["t_ns"])


if __name__ == "__main__":
    main_parallel(2)
