#!/usr/bin/env python3
# test: real time, asan
"""SIGINT and SIGTERM end ipw while it waits: for a dataset, a driver, a server, a database, a program, or the reader of its
output.  docs/interrupts.md lists all waits with their tests."""
import fcntl
import json
import os
import pty
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from machines import ControllableGpu, Machine, Nvidia  # noqa: E402
from profiling import Service  # noqa: E402
from program import IPW, wait_for_signal_handlers, wait_until, ipw, main_parallel  # noqa: E402

HANGS = 600_000  # ms: far longer than any test
SOON_S = 60      # timeout for the end of ipw


class Interrupted(unittest.TestCase):
    def on(self, machine):
        self.addCleanup(machine.close)
        return machine

    def start(self, machine, *arguments, env=None, **options):
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        process = subprocess.Popen([IPW, *map(str, arguments)], env={**machine.environment(), **(env or {})}, text=True,
                                   **options)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def end_by(self, process, number, *more):
        """A single signal must be enough, except where queries in flight are waited for: `more` are sent after it."""
        process.send_signal(number)
        for other in more:  # two equal signals would merge while the first is pending
            time.sleep(0.5)
            process.send_signal(other)
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
                                        (opens, signal.SIGTERM, ("energy",)), (opens, signal.SIGINT, ("doctor",))):
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



class Silent:
    """A server that accepts connections and never answers."""

    def __init__(self, test):
        self.listener, self.callers, self.called = socket.create_server(("127.0.0.1", 0)), [], threading.Event()
        self.port = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.accept, daemon=True).start()
        test.addCleanup(self.listener.close)

    def accept(self):
        while True:
            try:
                self.callers.append(self.listener.accept()[0])
            except OSError:
                return
            self.called.set()

    def wait(self):
        assert self.called.wait(SOON_S), "nobody called"


class Waits(Interrupted):
    def setUp(self):
        self.machine = self.on(Machine())
        self.runs = self.machine.root / "runs"
        self.questions = self.machine.root / "questions.jsonl"
        self.questions.write_text('{"problem": "question 1 + 1", "answer": "2"}\n' * 3)

    def arguments(self, command, *more, client=("--client", "null"), model="m"):
        return [command, *client, "--model", model, "--dataset", self.questions, "--idle", "0", "--warmup-queries", "0",
                "--output-dir", self.runs, "--name", "run", *more]

    def agent(self, tool, *more, **arguments):
        """An agent whose model calls a tool in its first turn."""
        script = self.machine.root / "script.jsonl"
        script.write_text(json.dumps({"content": "", "tool_calls": [
            {"type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}]})
            + '\n{"content": "2"}\n')
        return self.start(self.machine, *self.arguments("agent", "--client-param", f"script={script}", *more))

    def program(self, name, script):
        """A program in PATH."""
        folder = self.machine.root / "bin"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
        return {"PATH": f"{folder}:{os.environ['PATH']}"}

    def wait_for(self, name, process):
        self.until((self.machine.root / name).exists, name, process)

    def until(self, condition, what, process):
        def holds():
            self.assertIsNone(process.poll(), what)
            return condition()
        wait_until(holds, what)

    def is_gone(self, pid):
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except OSError:
            return True

    # ---- servers and services ----

    def test_mcp_server_that_hangs_at_its_start(self):
        server = Path(__file__).resolve().parent.parent / "fakes/mcp_server.py"
        for method, number in (("initialize", signal.SIGINT), ("tools/list", signal.SIGTERM),
                               ("tools/list {workspace}", signal.SIGINT)):
            log, pids = self.machine.root / "log", self.machine.root / "pids"
            log.unlink(missing_ok=True)
            process = self.agent("add", "--tools", "none", "--mcp",
                                 f"sleep 1000 & echo $! $$ > {pids}; exec {sys.executable} {server} --log {log} --mute {method}")
            wait_until(lambda: log.exists() and f'"{method.split()[0]}"' in log.read_text(), method)
            self.assertIn("interrupted", self.end_by(process, number))
            for pid in pids.read_text().split():
                wait_until(lambda: self.is_gone(pid), "the end of the server and its child")
            self.assertFalse(self.runs.exists())

    def test_mcp_call_that_hangs(self):
        server, log = Path(__file__).resolve().parent.parent / "fakes/mcp_server.py", self.machine.root / "log"
        process = self.agent("slow", "--tools", "none", "--tool-timeout", "3600", "--mcp",
                             f"{sys.executable} {server} --log {log}", s=3600)
        wait_until(lambda: log.exists() and "tools/call" in log.read_text(), "the call")
        self.end_by(process, signal.SIGINT, signal.SIGTERM)

    def test_http_get_that_is_not_answered(self):
        silent = Silent(self)
        process = self.agent("http_get", "--tools", "http_get", "--tool-timeout", "3600", "--tool-param",
                             f"http_get.allow=127.0.0.1:{silent.port}", url=silent.url)
        silent.wait()
        self.end_by(process, signal.SIGINT, signal.SIGTERM)

    def service(self, scenario):
        """Options for a client of the fake service, and the service."""
        service = Service()
        self.addCleanup(service.server_close)
        self.addCleanup(service.shutdown)
        return ("--client", "openai", "--client-base-url", service.url(scenario)), service

    def test_external_agent_that_hangs(self):
        client, _ = self.service("normal")
        process = self.start(self.machine, *self.arguments(
            "agent", "--exec", f"touch {self.machine.root}/made; sleep 3600 # {{problem}}", client=client, model="tiny-1b"))
        self.wait_for("made", process)
        self.end_by(process, signal.SIGINT, signal.SIGTERM)

    def test_pause_before_a_retry(self):
        client, service = self.service("flaky:fails=99,code=503,retry_after=3600")
        process = self.start(self.machine, *self.arguments("profile", client=client, model="tiny-1b"))
        self.until(lambda: service.times("question 1 + 1"), "a request", process)
        time.sleep(0.5)
        self.end_by(process, signal.SIGINT)

    def test_wait_for_an_arrival(self):
        process = self.start(self.machine, *self.arguments("profile", "--request-rate", "0.0001"))
        self.until(lambda: list(self.runs.glob("run/records.jsonl")), "the run", process)
        self.end_by(process, signal.SIGTERM)

    def test_judge_that_does_not_answer(self):
        silent = Silent(self)
        process = self.start(self.machine, *self.arguments("profile", "--grader", "judge", "--eval-model", "j",
                                                           "--eval-base-url", silent.url))
        silent.wait()
        self.end_by(process, signal.SIGINT)
        self.assertTrue((self.runs / "run/summary.json").exists())

    def test_remote_monitor_that_does_not_answer(self):
        for scheme in ("", "grpc://"):
            silent = Silent(self)
            process = self.start(self.machine, "run", "--sensors", f"remote={scheme}127.0.0.1:{silent.port}", "--", "sleep",
                                 "3600")
            silent.wait()
            self.end_by(process, signal.SIGINT)

    def test_receiver_of_metrics_that_does_not_answer(self):
        silent = Silent(self)
        process = self.start(self.machine, "monitor", "--listen", "127.0.0.1:0", "--otlp", silent.url)
        silent.wait()
        self.end_by(process, signal.SIGINT)

    def test_receiver_of_an_export_that_does_not_answer(self):
        silent = Silent(self)
        self.assertEqual(ipw(self.machine, *self.arguments("profile")).returncode, 0)
        process = self.start(self.machine, "export", self.runs / "run", "--to", "otlp-metrics", "--push", silent.url)
        silent.wait()
        self.end_by(process, signal.SIGINT)

    def test_metrics_of_governed_server_that_does_not_answer(self):
        silent, gpu = Silent(self), self.on(ControllableGpu())
        process = self.start(gpu, "govern", "--slo-ttft-ms", "100", "--metrics-url", silent.url)
        silent.wait()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=SOON_S)
        self.assertEqual(gpu.settings(), gpu.FREE)

    def test_idle_power_of_a_proxy(self):
        process = self.start(self.machine, "proxy", "--upstream", "http://127.0.0.1:1", "--listen", "127.0.0.1:0", "--idle",
                             "3600", "--output-dir", self.runs)
        wait_for_signal_handlers(process)
        self.until(lambda: list(self.runs.glob("*/.lock")), "the run", process)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=SOON_S)

    # ---- databases ----

    def test_push_to_a_database_that_does_not_answer(self):
        for command in (self.arguments("profile", "--overwrite"), ["run", "--save", "--output-dir", self.runs]):
            silent = Silent(self)
            process = self.start(self.machine, *command, "--db", f"postgres://u@127.0.0.1:{silent.port}/d",
                                 *(("--", "true") if command[0] == "run" else ()), env={"PGCONNECT_TIMEOUT": "3600"})
            if process.poll() is None and not silent.called.wait(SOON_S):
                process.kill()
                self.skipTest(process.stderr.read())  # no libpq
            self.end_by(process, signal.SIGINT)
        self.assertTrue((self.runs / "run/summary.json").exists())

    def test_command_for_a_database_that_does_not_answer(self):
        silent = Silent(self)
        process = self.start(self.machine, "db", "list", "--db", f"postgres://u@127.0.0.1:{silent.port}/d",
                             env={"PGCONNECT_TIMEOUT": "3600"})
        if not silent.called.wait(SOON_S):
            self.skipTest("no libpq")
        self.end_by(process, signal.SIGTERM)

    def locked(self, path):
        """A SQLite database that another process, this one, is writing."""
        path.parent.mkdir(exist_ok=True)
        database = sqlite3.connect(path, isolation_level=None)
        database.execute("CREATE TABLE a (b)")
        database.execute("BEGIN EXCLUSIVE")
        self.addCleanup(database.close)
        return path

    def test_push_to_a_locked_database(self):
        path = self.locked(self.machine.root / "x.db")
        process = self.start(self.machine, *self.arguments("profile", "--db", f"sqlite:///{path}"))
        self.wait_for("runs/run/summary.json", process)
        time.sleep(0.5)
        self.end_by(process, signal.SIGINT)

    def test_locked_index_of_runs(self):
        self.locked(self.runs / "catalog.db")
        process = self.start(self.machine, *self.arguments("profile"))
        self.wait_for("runs/run/records.jsonl", process)
        time.sleep(2)
        self.assertIsNone(process.poll())
        self.end_by(process, signal.SIGINT)
        self.assertTrue((self.runs / "run/summary.json").exists())

    # ---- programs ----

    def test_slurm_that_does_not_answer(self):
        environment = self.program("sbatch", "echo 123")
        self.program("squeue", f"touch {self.machine.root}/asked; exec sleep 3600")
        process = self.start(self.machine, *self.arguments("profile", "--slurm", "--shards", "2"), env=environment)
        self.wait_for("asked", process)
        self.assertIn("detached", self.end_by(process, signal.SIGINT))
        self.program("sbatch", f"touch {self.machine.root}/submitted; exec sleep 3600")
        process = self.start(self.machine, "sweep", "--slurm", "--output-dir", self.runs, "--knob", "a=1,2", "--", "true",
                             "{a}", env=environment)
        self.wait_for("submitted", process)
        self.end_by(process, signal.SIGTERM)

    def test_commands_and_pauses_of_a_sweep(self):
        for options, command in (((), f"touch {self.machine.root}/began; exec sleep 3600"),
                                 (("--cooldown-s", "3600"), f"touch {self.machine.root}/began")):
            (self.machine.root / "began").unlink(missing_ok=True)
            process = self.start(self.machine, "sweep", "--output-dir", self.runs, "--knob", "a=1,2", *options, "--", "sh",
                                 "-c", f"{command} # {{a}}")
            self.wait_for("began", process)
            time.sleep(1)
            self.end_by(process, signal.SIGINT)

    def test_load_and_calibration(self):
        for command in (("load", "--seconds", "3600", "--threads", "1"), ("estimate", "calibrate", "--seconds", "3600")):
            process = self.start(self.machine, *command)
            wait_for_signal_handlers(process)
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=SOON_S)
            self.assertIn(process.returncode, (0, 130), err)

    def test_plot_program_that_hangs(self):
        self.assertEqual(ipw(self.machine, *self.arguments("profile")).returncode, 0)
        pid = self.machine.root / "pid"
        environment = self.program("gnuplot", f"echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 3600")
        process = self.start(self.machine, "plot", self.runs / "run", env=environment, start_new_session=True)
        self.wait_for("pid", process)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        process.communicate(timeout=SOON_S)
        self.assertEqual(process.returncode, -signal.SIGINT)
        wait_until(lambda: self.is_gone(pid.read_text().strip()), "the end of gnuplot")

    def test_check_of_dedicated_hardware(self):
        process = self.start(self.machine, *self.arguments("agent", "--require-dedicated-hardware"))
        wait_for_signal_handlers(process)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=SOON_S)
        self.assertIn(process.returncode, (1, 130), err)  # 1: this machine was busy

    # ---- files, output and questions ----

    def test_prices_from_a_fifo_without_writer(self):
        os.mkfifo(self.machine.root / "prices")
        process = self.start(self.machine, *self.arguments("profile", "--prices", self.machine.root / "prices"))
        time.sleep(0.5)
        self.assertIsNone(process.poll())
        self.end_by(process, signal.SIGINT)

    def test_model_from_a_fifo_without_writer(self):
        os.mkfifo(self.machine.root / "m.onnx")
        process = self.start(self.machine, "estimate", "--model", self.machine.root / "m.onnx")
        time.sleep(0.5)
        if process.poll() is None:  # otherwise it was refused
            self.end_by(process, signal.SIGINT)

    def test_output_to_a_fifo_without_reader(self):
        os.mkfifo(self.machine.root / "fifo")
        for command in (self.arguments("profile"), ["run"]):
            process = self.start(self.machine, *command, "-o", self.machine.root / "fifo",
                                 *(("--", "true") if command[0] == "run" else ()))
            time.sleep(2)
            self.assertIsNone(process.poll())
            self.end_by(process, signal.SIGTERM)

    def test_output_to_a_fifo_waits_for_its_reader(self):
        path = self.machine.root / "fifo"
        os.mkfifo(path)
        process = self.start(self.machine, "run", "--json", "-o", path, "--", "true")
        time.sleep(0.5)
        self.assertIsNone(process.poll())
        self.assertIn("wall_s", json.loads(path.read_text()))
        process.communicate(timeout=SOON_S)
        self.assertEqual(process.returncode, 0)

    def full_pipe(self):
        """The write end of a pipe that is full and is not read."""
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        self.addCleanup(os.close, writer)
        fcntl.fcntl(writer, 1031, 4096)  # F_SETPIPE_SZ
        os.set_blocking(writer, False)
        try:
            while True:
                os.write(writer, bytes(4096))
        except BlockingIOError:
            os.set_blocking(writer, True)
        return writer

    def test_output_that_is_not_read(self):
        for command, stream in ((self.arguments("profile", "--json"), "stdout"), (["energy", "--json"], "stdout"),
                                (self.arguments("profile", "--overwrite"), "stderr")):
            process = self.start(self.machine, *command, **{stream: self.full_pipe()})
            wait_for_signal_handlers(process)
            time.sleep(2)
            self.assertIsNone(process.poll())
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=SOON_S)
            self.assertEqual(process.returncode, 130)

    def test_question_whether_to_overwrite(self):
        self.assertEqual(ipw(self.machine, *self.arguments("profile")).returncode, 0)
        master, terminal = pty.openpty()
        self.addCleanup(os.close, master)
        process = self.start(self.machine, *self.arguments("profile"), stdin=terminal, stderr=terminal)
        os.close(terminal)
        said = b""
        while b"[y/N]" not in said:
            said += os.read(master, 4096)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(SOON_S), 130)
        self.assertTrue((self.runs / "run/summary.json").exists())


if __name__ == "__main__":
    main_parallel()
