#!/usr/bin/env python3
"""SIGINT and SIGTERM end ipw while it waits for a dataset that stalls or a driver that hangs."""
import json
import os
import signal
import socket
import subprocess
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from machines import Machine, Nvidia  # noqa: E402
from program import IPW, wait_until, ipw, main_parallel  # noqa: E402

HANGS = 600_000  # ms: far longer than any test
SOON_S = 60      # timeout for the end of ipw


class Interrupted(unittest.TestCase):
    def on(self, machine):
        self.addCleanup(machine.close)
        return machine

    def start(self, machine, *arguments):
        process = subprocess.Popen([IPW, *map(str, arguments)], env=machine.environment(), text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def end_by(self, process, number):
        """A single signal must be enough."""
        process.send_signal(number)
        _, err = process.communicate(timeout=SOON_S)
        self.assertIn(process.returncode, (128 + number, -number), err)
        return err


class Datasets(Interrupted):
    def profile(self, machine, *dataset):
        return self.start(machine, "profile", "--client", "null", "--model", "m",
                          "--output-dir", machine.root / "runs", "--dataset", *dataset)

    def fifo(self, machine):
        path = machine.root / "questions.jsonl"
        os.mkfifo(path)
        return path

    def test_interrupts_fifo_without_writer(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            machine = self.on(Machine())
            process = self.profile(machine, self.fifo(machine))
            time.sleep(0.5)
            self.assertIsNone(process.poll())
            self.end_by(process, number)
            self.assertFalse((machine.root / "runs").exists())

    def test_interrupts_fifo_whose_writer_stalls(self):
        row = json.dumps({"problem": "What is 1 + 1?", "answer": "2"}) + "\n"
        for rows, number in ((0, signal.SIGINT), (1, signal.SIGTERM), (3, signal.SIGINT)):
            machine = self.on(Machine())
            path = self.fifo(machine)
            process = self.profile(machine, path)
            with open(path, "w") as writer:  # comes when it is read
                writer.write(rows * row)
                writer.flush()
                time.sleep(0.5)
                self.assertIsNone(process.poll())
                self.end_by(process, number)

    def interrupt_warm_up(self, settled_s):
        """Replaces the dataset file by a FIFO without a writer between set-up and warm-up; returns the messages of the
        interrupted run, or None if the warm-up came first.  settled_s: time for the set-up to end after it has created
        the directory."""
        machine = self.on(Machine())
        path, fifo = machine.root / "questions.jsonl", machine.root / "fifo"
        path.write_text(json.dumps({"problem": "What is 1 + 1?", "answer": "2"}) + "\n")
        os.mkfifo(fifo)
        process = self.profile(machine, path, "--idle", 8 * settled_s)
        wait_until(lambda: list(machine.root.glob("runs/*/.lock")), "the lock of the run")
        time.sleep(settled_s)
        os.replace(fifo, path)
        while process.poll() is None:
            try:
                writer = os.open(path, os.O_WRONLY | os.O_NONBLOCK)  # comes when it is read
            except OSError:
                time.sleep(0.02)
                continue
            try:
                return self.end_by(process, signal.SIGTERM)
            finally:
                os.close(writer)
        return None

    def test_interrupts_dataset_that_stalls_in_warm_up(self):
        said = []
        for settled_s in (1, 3, 9):  # on a busy machine, the set-up or this test may take longer than a second
            said.append(self.interrupt_warm_up(settled_s))
            if said[-1] and "interrupted while the dataset was being read" in said[-1]:
                return
        self.fail(said)

    def test_interrupts_hub_that_does_not_answer(self):
        machine = self.on(Machine())
        with socket.create_server(("127.0.0.1", 0)) as silent:
            port = silent.getsockname()[1]
            process = self.profile(machine, "hub", "--dataset-param", "dataset=o/n",
                                   "--dataset-param", f"base_url=http://127.0.0.1:{port}")
            caller, _ = silent.accept()
            with caller:
                self.end_by(process, signal.SIGINT)


class Drivers(Interrupted):
    COUNTER = f"block nvmlDeviceGetTotalEnergyConsumption 0 {HANGS}"

    def test_command_is_reported_without_hanging_sensor(self):
        machine = self.on(Nvidia(f"power 0 constant 100\n{self.COUNTER} from 3\n"))
        report = machine.root / "report.json"
        done = ipw(machine, "run", "--sensors", "nvml", "--json", "-o", report, "--", "sleep", "6", timeout=SOON_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("nvml:0: the driver has not returned from a call", done.stderr)
        report = json.loads(report.read_text())
        energy = report["devices"][0]["energy"]
        self.assertIn("driver has not returned", energy["note"])
        self.assertLess(energy["coverage"], 0.9)
        self.assertAlmostEqual(energy["joules"], 100 * report["wall_s"]["mean"] * energy["coverage"], delta=20)

    def test_missing_coverage_has_reason_if_driver_hangs_near_the_end(self):
        runs = []
        for hangs_at in (1.2, 1.4, 1.6, 1.8):
            machine = self.on(Nvidia(f"power 0 constant 100\n{self.COUNTER} from {hangs_at}\n"))
            runs.append((machine, self.start(machine, "run", "--sensors", "nvml", "--json", "-o",
                                             machine.root / "report.json", "--", "sleep", "2")))
        missing = []
        for machine, process in runs:
            _, err = process.communicate(timeout=SOON_S)
            self.assertEqual(process.returncode, 0, err)
            energy = json.loads((machine.root / "report.json").read_text())["devices"][0]["energy"]
            missing += [energy["note"]] if energy["joules"] is None or energy["coverage"] < 0.99 else []
        self.assertTrue(missing)
        for note in missing:
            self.assertIn("driver has not returned", note, missing)

    def test_energy_of_hanging_sensor_is_unknown(self):
        machine = self.on(Nvidia(f"power 0 constant 100\n{self.COUNTER} after 2\n"))
        done = ipw(machine, "run", "--sensors", "nvml", "--", "sleep", "2", timeout=SOON_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("energy unknown", done.stderr)
        self.assertIn("driver has not returned", done.stderr)
        done = ipw(machine, "run", "--sensors", "nvml", "--require-energy", "--", "sleep", "2", timeout=SOON_S)
        self.assertEqual(done.returncode, 3, done.stderr)

    def test_driver_that_hangs_in_setup_is_abandoned(self):
        runs = []
        for call in ("nvmlDeviceGetUUID", "nvmlDeviceGetTotalEnergyConsumption"):  # in probe; in open
            machine = self.on(Nvidia(f"power 0 constant 100\nblock {call} 0 {HANGS}\n"))
            runs.append((machine, self.start(machine, "run", "--json", "-o", machine.root / "report.json", "--", "true")))
        for machine, process in runs:
            _, err = process.communicate(timeout=2 * SOON_S)
            self.assertEqual(process.returncode, 0, err)
            self.assertRegex(err, "nvml.*: the driver does not return from a call")
            report = json.loads((machine.root / "report.json").read_text())
            self.assertNotIn("nvml", {device["driver"] for device in report["devices"]})

    def test_signals_end_wait_for_driver(self):
        reads = f"power 0 constant 100\n{self.COUNTER} after 2\n"
        opens = f"block nvmlDeviceGetUUID 0 {HANGS}\n"
        for script, number, command in ((reads, signal.SIGINT, ("run", "--", "sleep", "100")),
                                        (opens, signal.SIGINT, ("run", "--", "sleep", "100")),
                                        (opens, signal.SIGTERM, ("energy",))):
            machine = self.on(Nvidia(script))
            process = self.start(machine, command[0], "--sensors", "nvml", *command[1:])
            time.sleep(1)
            self.assertIsNone(process.poll(), command)
            self.end_by(process, number)
        machine = self.on(Nvidia(reads))
        process = self.start(machine, "energy", "--sensors", "nvml")
        time.sleep(1.5)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=SOON_S)  # a stream always ends with its totals


if __name__ == "__main__":
    main_parallel()
