#!/usr/bin/env python3
# test: real time
"""Number of NVML calls, and energy between readings of the counter."""

import json
import signal
import subprocess
import time
import unittest

from machines import Nvidia
from program import IPW, TIMEOUT_S, StallMonitor

COUNTER = "nvmlDeviceGetTotalEnergyConsumption"
WATTS = 300


class Stream:
    """`ipw energy --json` on a scripted GPU."""

    def __init__(self, case, script, interval, rows):
        self.machine = Nvidia(f"power 0 constant {WATTS}\n{script}\n")
        case.addClassCleanup(self.machine.close)
        self.calls_file, self.interval, self.begin = self.machine.root / "calls", interval, time.monotonic()
        self.process = subprocess.Popen(
            [IPW, "energy", "--json", "-i", str(interval), "-n", str(rows)], text=True, stdout=subprocess.PIPE,
            env={**self.machine.environment(), "IPW_FAKE_NVML_CALLS": str(self.calls_file)})

    def end(self):
        out, _ = self.process.communicate(timeout=TIMEOUT_S)
        self.rows = [json.loads(line) for line in out.splitlines()]
        self.calls = {name: float(count) for name, count in map(str.split, self.calls_file.read_text().splitlines())}
        self.gpu = [next(d for d in row["devices"] if d["id"] == "gpu0") for row in self.rows]
        self.since = [d["energy_since_start"]["joules"] for d in self.gpu]
        self.energy = self.gpu[-1]["energy_since_start"]
        self.length = self.rows[-1]["elapsed_s"]  # longer on a busy machine, which merges rows
        self.late = any(row["interval_s"] > 1.5 * self.interval for row in self.rows)
        self.stall = stalls.longest(self.begin)
        return self

    def tolerance_j(self, share, truth, energy):
        """Allowed deviation from the true energy: a relative share, plus the energy used during stalls of the test
        host, plus the stated uncertainty of late rows."""
        allowed = share * truth + (WATTS * self.stall if self.stall > 0.005 else 0)
        return energy["plus_minus"] if self.late else min(energy["plus_minus"], allowed)


def setUpModule():
    """All programs run concurrently: they mostly sleep."""
    global stalls
    stalls = StallMonitor()
    CallCounts.start()


def tearDownModule():
    stalls.over.set()


class Sampling(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """Concurrently: they mostly sleep."""
        streams = {"fast": Stream(cls, "", 0.1, 80), "slow": Stream(cls, "", 1, 8),
                   "reset": Stream(cls, "energy_reset 0 4", 0.5, 16),
                   "lost": Stream(cls, "fail * 0 15 from 3 to 4", 0.5, 16),
                   "biased": Stream(cls, f"value samples_mw 0 {WATTS * 800}", 0.5, 24)}
        cls.streams = {name: stream.end() for name, stream in streams.items()}

    def test_expensive_counter_is_read_rarely(self):
        for name in ("fast", "slow"):
            calls = self.streams[name].calls
            # At open, to learn its update period, and at 1, 2 and 4 s; one reading per row would be 80.
            self.assertLess(calls[COUNTER], 30, name)
            self.assertEqual(calls["repeated"], 0, name)

    def test_samples_are_fetched_at_most_twice_per_second(self):
        for name in ("fast", "slow"):
            stream = self.streams[name]
            self.assertLess(stream.calls["nvmlDeviceGetSamples"], 2 * stream.length + 16, name)

    def test_rows_have_their_energy_and_add_up(self):
        for name in ("fast", "slow"):
            stream = self.streams[name]
            truth = WATTS * stream.length
            self.assertAlmostEqual(stream.since[-1], truth, delta=stream.tolerance_j(0.005, truth, stream.energy))
            self.assertAlmostEqual(sum(d["energy"]["joules"] for d in stream.gpu), stream.since[-1], delta=1e-6)
            for device in stream.gpu:
                self.assertEqual(device["energy"]["method"], "counter")
                self.assertEqual(device["energy"]["coverage"], 1)

    def test_energy_never_decreases(self):
        for name in ("fast", "slow", "reset", "biased"):
            since = self.streams[name].since
            self.assertEqual(since, sorted(since), name)

    def test_counter_reset_loses_nothing(self):
        stream = self.streams["reset"]
        truth = WATTS * stream.length
        self.assertAlmostEqual(stream.since[-1], truth, delta=stream.tolerance_j(0.01, truth, stream.energy))
        self.assertEqual(stream.gpu[-1]["energy_since_start"]["coverage"], 1)

    def test_lost_device_is_not_counted(self):
        stream = self.streams["lost"]
        energy = stream.gpu[-1]["energy_since_start"]
        self.assertLess(energy["coverage"], 0.95)
        truth = WATTS * stream.length
        self.assertAlmostEqual(energy["joules"], truth * energy["coverage"], delta=0.02 * truth)
        last = stream.gpu[-1]["energy"]  # part of a late row is not covered yet
        truth = WATTS * stream.rows[-1]["interval_s"] * last["coverage"]
        self.assertAlmostEqual(last["joules"], truth, delta=stream.tolerance_j(0.02, truth, last))

    def test_biased_samples_are_corrected_by_counter(self):
        """The samples show 80 % of the power."""
        stream = self.streams["biased"]
        truth = WATTS * stream.length
        self.assertAlmostEqual(stream.since[-1], truth, delta=stream.tolerance_j(0.02, truth, stream.energy))


class CallCounts(unittest.TestCase):
    """NVML calls per minute of one GPU in steady state, since each call costs CPU time.  Delays differ between hosts,
    but not the number of calls: the bounds follow from the intervals, plus a tenth.  Calls at start and end are not
    counted."""

    FROM_S, TO_S = 9, 29  # the counter is read at 8 and 16 s
    WORDS = {"energy 10 Hz": ("energy", "--json", "-i", "0.1"), "energy 1 Hz": ("energy", "--json", "-i", "1"),
             "monitor 10 Hz": ("monitor", "--listen", "127.0.0.1:0", "--interval", "0.1"),
             "monitor 1 Hz": ("monitor", "--listen", "127.0.0.1:0"), "run": ("run", "--", "sleep", "32")}
    #                  energy             monitor            run
    #                  10 Hz     1 Hz     10 Hz     1 Hz
    MOST = {"nvmlDeviceGetTotalEnergyConsumption": (3, 3, 3, 3, 18),  # two or three in 10 s for `run`: around an update
            "nvmlDeviceGetSamples": (120, 60, 120, 60, 40),
            "nvmlDeviceGetFieldValues": (120, 60, 120, 60, 120),
            "nvmlDeviceGetTemperature": (60, 60, 30, 30, 60),
            "nvmlDeviceGetMemoryInfo_v2": (60, 60, 30, 30, 60),
            "nvmlDeviceGetUtilizationRates": (60, 60, 30, 30, 60),
            "nvmlGpmSampleGet": (30, 30, 30, 30, 30),
            "nvmlDeviceGetComputeRunningProcesses_v3": (0, 0, 12, 12, 12),
            "nvmlDeviceGetProcessUtilization": (0, 0, 12, 12, 12)}

    @classmethod
    def start(cls):
        """An H200 has memory power only as an average."""
        cls.machine = Nvidia("power 0 square 80 690 1.7\nfail field:186:2 0 3\nprocess 0 1 1e9 50\n")
        cls.end, cls.programs = time.monotonic() + cls.TO_S + 1, {}
        for mode, words in cls.WORDS.items():
            calls = cls.machine.root / f"calls {mode}"
            cls.programs[mode] = calls, subprocess.Popen(
                [IPW, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                env={**cls.machine.environment(), "IPW_FAKE_NVML_CALLS": str(calls),
                     "IPW_FAKE_NVML_CALLS_RANGE": f"{cls.FROM_S} {cls.TO_S}"})

    @classmethod
    def tearDownClass(cls):
        for _, program in cls.programs.values():
            program.kill()
            program.wait()
        cls.machine.close()

    def test_calls_per_minute_of_each_mode_are_bounded(self):
        time.sleep(max(0, self.end - time.monotonic()))
        for mode, (calls, program) in self.programs.items():
            if mode != "run":
                program.send_signal(signal.SIGINT)
        for column, (mode, (calls, program)) in enumerate(self.programs.items()):
            program.wait(TIMEOUT_S)
            counts = {name: float(count) for name, count in map(str.split, calls.read_text().splitlines())}
            for name, most in self.MOST.items():
                wanted = most[column] / 60 * (self.TO_S - self.FROM_S)
                with self.subTest(mode=mode, call=name, wanted=wanted):
                    self.assertLessEqual(counts.get(name, 0), 1.1 * wanted + 1)
            self.assertGreater(counts["nvmlDeviceGetSamples"], 8, mode)


if __name__ == "__main__":
    unittest.main()
