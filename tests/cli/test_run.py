#!/usr/bin/env python3
# test: serial
"""Command-line tests of ipw run: transparency for the command, report, and figures on fake machines."""

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from machines import FAKE_NVML, RANGE_UJ, Fixture, Intel, Machine, Modeled, Nvidia  # noqa: E402
from program import (  # noqa: E402
    IPW, TIMEOUT_S, EchoRun, MachineTest, Terminal, wait_until, device, ipw, main_parallel, python)

WATTS = 50


class Transparency(MachineTest):
    """The command's input, output and status are unaffected."""

    def setUp(self):
        self.empty = self.machine(Machine)

    def run_it(self, *arguments, **options):
        return ipw(self.empty, "run", *arguments, **options)

    def test_stdout_is_unchanged_and_report_is_on_stderr(self):
        done = self.run_it("--", "printf", "a\\0b\\n", text=False)
        self.assertEqual(done.stdout, b"a\0b\n")
        self.assertIn(b"energy of 'printf a\\0b\\n'", done.stderr)
        self.assertEqual(done.returncode, 0)

    def test_stdin_is_passed_to_command(self):
        done = self.run_it("--", "cat", input="over and over\n")
        self.assertEqual(done.stdout, "over and over\n")

    def test_exit_status(self):
        for script, code in (("exit 0", 0), ("exit 3", 3), ("exit 255", 255), ("kill -TERM $$", 143),
                             ("kill -KILL $$", 137), ("kill -SEGV $$", 139)):
            report, done = self.run_json(self.empty, "--", "sh", "-c", script)
            self.assertEqual(done.returncode, code, script)
            self.assertEqual(report["exit_code"], code)
            self.assertEqual(report["runs"][0]["exit_code"], code)

    def test_commands_that_cannot_be_executed(self):
        plain = self.empty.put("/plain", "no program")
        for command, code, words in (("/no/such/thing", 127, "No such file"),
                                     ("ipw-no-such-command", 127, "No such file"),
                                     (plain, 126, "Permission denied"),
                                     (self.empty.root, 126, "Permission denied")):
            # A PATH entry that may not be searched turns "not found" into "denied".
            done = self.run_it("--", command, env={"PATH": "/usr/bin:/bin"})
            self.assertEqual(done.returncode, code)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertIn(f"cannot run '{command}': {words}", done.stderr)

    def test_options_after_command_belong_to_it(self):
        self.assertEqual(self.run_it("echo", "-r", "--json").stdout, "-r --json\n")
        self.assertEqual(self.run_it("--", "echo", "--", "x").stdout, "-- x\n")

    def test_sigpipe_has_default_action_in_command(self):
        done = self.run_it("--", "sh", "-c", "yes | head -1")
        self.assertEqual(done.stdout, "y\n")
        self.assertNotIn("yes:", done.stderr)

    def test_closed_pipe_keeps_the_command_status(self):
        for words in (["--json"], ["-o", "-"]):
            reader, writer = os.pipe()
            os.close(reader)
            done = subprocess.run([IPW, "run", *words, "--", "sh", "-c", "exit 5"], stdout=writer, stderr=subprocess.PIPE,
                                  env=self.empty.environment(), text=True, timeout=TIMEOUT_S)
            os.close(writer)
            self.assertEqual((done.returncode, done.stderr), (5, ""), words)

    def test_closed_descriptors_are_not_reused(self):
        report = self.empty.root / "report.txt"
        for closed in (0, 1, 2):
            script = f"exec {closed}>&-; exec {IPW} run -o {report} -- sh -c 'exit 4'"
            done = subprocess.run(["sh", "-c", script], env=self.empty.environment(),
                                  capture_output=True, timeout=TIMEOUT_S)
            self.assertEqual(done.returncode, 4)
            self.assertTrue(report.read_text().startswith("\n energy of"))
        done = subprocess.run(["sh", "-c", f"exec 2>&-; exec {IPW} run -- true"],
                              env=self.empty.environment(), capture_output=True, timeout=TIMEOUT_S)
        self.assertEqual(done.returncode, 1)  # the report was lost
        done = subprocess.run(["sh", "-c", f"exec 1>&-; exec {IPW} --version"], capture_output=True)
        self.assertEqual(done.returncode, 1)

    def test_waits_for_command_if_sigchld_is_ignored(self):
        show = "import signal; print(signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN)"
        done = self.run_it("--", *python(show + "; raise SystemExit(7)"), preexec_fn=lambda:
                           signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        self.assertEqual((done.returncode, done.stdout), (7, "True\n"))

    def test_closed_descriptors_stay_closed_for_command(self):
        def close_all():
            for fd in range(3):
                os.close(fd)
        found = self.empty.root / "found"
        script = ("import os, sys\nopen_ = []\nfor fd in range(3):\n  try: os.fstat(fd)\n"
                "  except OSError: continue\n  open_.append(fd)\n"
                "open(sys.argv[1], 'w').write(str(open_))")
        report, done = self.run_json(self.empty, "--", *python(script, found), preexec_fn=close_all)
        self.assertEqual((done.returncode, found.read_text()), (0, "[]"))

    def test_background_processes_are_reported(self):
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL,
                 "capture_output": False}
        left = self.empty.root / "left"
        self.addCleanup(lambda: [os.kill(int(pid), signal.SIGKILL) for pid in left.read_text().split()])
        script = f"sleep 600 & echo $! >>{left}; sleep 600 & echo $! >>{left}"
        report, done = self.run_json(self.empty, "--", "sh", "-c", script, **quiet)
        self.assertEqual(report["runs"][0]["left_running"], 2)
        self.assertLess(report["wall_s"]["mean"], 600)
        text = self.empty.root / "text"
        done = self.run_it("-o", text, "--", "sh", "-c", script, **quiet)
        self.assertIn("warning: the command ended but left 2 processes running", text.read_text())
        report, done = self.run_json(self.empty, "--wait-all", "--", "sh", "-c", "sleep 0.7 & sleep 0.7 &", **quiet)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(report["runs"][0]["left_running"], 0)
        self.assertGreaterEqual(report["wall_s"]["mean"], 0.7)

    def test_usage_errors(self):
        for arguments, words in (([], "missing command"), (["-r", "0", "true"], "--repeat"),
                                 (["-r", "x", "true"], "an integer"),
                                 (["--idle", "-1", "true"], "--idle"),
                                 (["--repeet", "2", "true"], "did you mean '--repeat'"),
                                 (["--sensors", "rapll", "true"], "did you mean 'rapl'"),
                                 (["--json=yes", "true"], "takes no value"),
                                 (["-r"], "missing argument")):
            done = self.run_it(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertIn(words, done.stderr)

    def test_place_of_a_saved_run_is_checked_first(self):
        file, mark = self.empty.put("/file", ""), self.empty.root / "mark"
        for place, words in ((file, f"{file} exists and is not a directory"), (file / "runs", "Not a directory")):
            done = self.run_it("--output-dir", place, "--", "touch", mark)
            self.assertEqual((done.returncode, mark.exists()), (1, False))
            self.assertIn(words, done.stderr)


class Interruption(MachineTest):
    def setUp(self):
        self.intel = self.machine(Intel, WATTS)

    def test_signal_is_forwarded_and_report_is_partial(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            run = EchoRun(self.intel)
            time.sleep(0.2)
            run.process.send_signal(number)
            report = run.finish()
            run.process.stdin.close()
            self.assertEqual(run.code, 128 + number)
            self.assertTrue(report["interrupted"])
            self.assertEqual(report["runs"][0]["exit_code"], 128 + number)
            self.assertGreater(report["energy"]["joules"], 0.1 * WATTS)

    def test_ignored_signals_escalate(self):
        stubborn = ("import signal, sys, time\n"
                    "seen = lambda n, f: print(n, flush=True)\n"
                    "signal.signal(signal.SIGINT, seen)\n"
                    "signal.signal(signal.SIGTERM, seen)\n"
                    "sys.stdout.write(sys.stdin.readline())\n"
                    "sys.stdout.flush()\n"
                    "while True: time.sleep(60)\n")
        run = EchoRun(self.intel, command=python(stubborn))
        run.process.send_signal(signal.SIGINT)
        self.assertEqual(run.process.stdout.readline(), f"{int(signal.SIGINT)}\n")
        run.process.send_signal(signal.SIGINT)
        self.assertEqual(run.process.stdout.readline(), f"{int(signal.SIGTERM)}\n")
        run.process.send_signal(signal.SIGINT)
        report = run.finish()
        run.process.stdin.close()
        self.assertEqual(run.code, 130)
        self.assertEqual(report["runs"][0]["exit_code"], 137)

    NOTICES = ("press Ctrl-C again to terminate it", "press Ctrl-C again to kill it")

    def test_each_signal_reaches_all_processes_of_the_command(self):
        """A shell waits for its program, whatever signal it gets; the run is saved in any case."""
        for ignored, notices, code in (("", 0, 130), ("INT", 1, 143), ("INT TERM", 2, 137)):
            folder = self.intel.root / f"runs{notices}"
            trap = f"trap '' {ignored}; " if ignored else ""
            run = EchoRun(self.intel, "--output-dir", folder, command=("sh", "-c", f"{trap}cat; :"))
            run.process.send_signal(signal.SIGINT)
            for notice in self.NOTICES[:notices]:
                run.wait_for_message(f"ipw run: waiting for the command to end; {notice}\n")
                run.process.send_signal(signal.SIGINT)
            report = run.finish()
            run.process.stdin.close()
            self.assertEqual((run.code, report["interrupted"]), (130, True))
            measured = report["runs"][0]
            self.assertEqual((measured["exit_code"], measured["left_running"]), (code, 0))
            self.assertGreater(report["energy"]["joules"], 0)
            self.assertEqual(run.stderr.count("waiting for the command"), notices)
            saved = json.loads(next(folder.glob("run_*/summary.json")).read_text())
            self.assertEqual(saved["ipw"]["energy"]["joules"], report["energy"]["joules"])

    def test_other_signals_than_ctrl_c_are_named(self):
        run = EchoRun(self.intel, command=("sh", "-c", "trap '' TERM; exec cat"))
        run.process.send_signal(signal.SIGTERM)
        run.wait_for_message("ipw run: waiting for the command to end; send another signal to terminate it\n")
        run.process.stdin.close()
        self.assertEqual(run.finish()["runs"][0]["exit_code"], 0)
        self.assertEqual(run.code, 143)

    def test_ctrl_c_of_a_terminal(self):
        """The kernel sends it to the foreground process group, which `timeout` leaves."""
        for command in (("sh", "-c", "echo started; exec sleep 600"),
                        ("timeout", "600", "sh", "-c", "echo started; exec sleep 600"),
                        ("sh", "-c", "trap '' INT TERM; echo started; sleep 600; :")):
            report = self.intel.root / "report.json"
            with Terminal([IPW, "run", "--json", "-o", report, "--", *command], self.intel.environment()) as terminal:
                terminal.wait_for("started")
                terminal.press_ctrl_c()
                if "trap" in command[-1]:
                    for notice in self.NOTICES:
                        terminal.wait_for(notice)
                        terminal.press_ctrl_c()
                self.assertEqual(terminal.wait(), 130, terminal.shown)
            self.assertEqual(json.loads(report.read_text())["runs"][0]["left_running"], 0)

    def test_interruption_ends_repeats(self):
        run = EchoRun(self.intel, "-r", 5)
        run.process.send_signal(signal.SIGINT)
        report = run.finish()
        run.process.stdin.close()
        self.assertEqual((run.code, len(report["runs"])), (130, 1))

    def interrupt(self, when, *arguments):
        """Interrupts after half a second of measurement, once `when(names of its children)` holds."""
        report = self.intel.root / "report.json"
        process = subprocess.Popen([IPW, "run", "--json", "-o", report, *arguments],
                                   env=self.intel.environment(), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)

        def children():
            names = []
            for task in Path(f"/proc/{process.pid}/task").iterdir():
                for pid in (task / "children").read_text().split():
                    names.append(Path(f"/proc/{pid}/comm").read_text().strip())
            return names

        def holds():
            try:
                return when(children())
            except OSError:  # a process has ended
                return False
        wait_until(lambda: any(task.read_text().startswith("ipw-rapl") for task in
                                    Path(f"/proc/{process.pid}/task").glob("*/comm")), "its sampler")
        time.sleep(0.5)
        wait_until(holds, "its children")
        process.send_signal(signal.SIGINT)
        code = process.wait(TIMEOUT_S)
        return code, json.loads(report.read_text())

    def test_interrupted_while_measuring_idle_power(self):
        code, report = self.interrupt(lambda children: True, "--idle", "600", "--", "true")
        self.assertEqual((code, report["runs"], report["interrupted"]), (130, [], True))
        self.assertUnknown(report["energy"])

    def test_interrupted_while_waiting_for_background_processes(self):
        left = self.intel.root / "left"
        self.addCleanup(lambda: os.kill(int(left.read_text()), signal.SIGKILL))
        code, report = self.interrupt(lambda children: children == ["sleep"], "-r", "3", "--wait-all", "--", "sh", "-c",
                                      f"sleep 600 & echo $! >{left}")
        self.assertEqual((code, report["interrupted"]), (130, True))
        self.assertEqual([r["left_running"] for r in report["runs"]], [1])

    def test_nohup_is_respected(self):
        report = self.intel.root / "report.json"
        process = subprocess.Popen(
            [IPW, "run", "--json", "-o", report, "--", "sleep", "1"], env=self.intel.environment(),
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        time.sleep(0.5)
        process.send_signal(signal.SIGHUP)
        self.assertEqual(process.wait(TIMEOUT_S), 0)
        self.assertFalse(json.loads(report.read_text())["interrupted"])


class Reports(MachineTest):
    def setUp(self):
        self.intel = self.machine(Intel, WATTS)

    def test_report_in_a_file_leaves_stdout_to_the_command(self):
        """--format sends the report to stdout, but for the format by the suffix of -o."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "report.json"
            done = ipw(self.intel, "run", "-o", path, "--", "echo", "hello")
            self.assertEqual(done.stdout, "hello\n")
            self.assertEqual(json.loads(path.read_text())["command"], ["echo", "hello"])

    def test_csv_of_repeated_measurements_is_one_table(self):
        with tempfile.TemporaryDirectory() as folder:
            done = ipw(self.intel, "run", "--format", "csv", "--repeat-runs", "2", "--output-dir", folder, "-q", "--",
                       "true")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [row["path"] for row in csv.DictReader(done.stdout.splitlines())]
        self.assertEqual(len(rows), len(set(rows)))
        self.assertEqual([path for path in rows if path.endswith(".exit_code") and "runs" not in path],
                         ["repeats.0.exit_code", "repeats.1.exit_code"])

    def test_report_keys_and_types(self):
        report, done = self.run_json(self.intel, "--", "sleep", "0.3")
        self.assertEqual(report["command"], ["sleep", "0.3"])
        self.assertEqual(report["exit_code"], 0)
        self.assertEqual(len(report["runs"]), 1)
        for key in ("wall_s", "energy_j", "user_s", "system_s"):
            self.assertIsInstance(report["runs"][0][key], (int, float), key)
        self.assertIsNone(report["runs"][0]["rss_mb"])  # below our own usage, so unknown
        report, _ = self.run_json(self.intel, "--", *python("x = bytearray(200 << 20)"))
        self.assertGreater(report["runs"][0]["rss_mb"], 200)
        report, done = self.run_json(self.intel, "--", "sleep", "1")
        self.assertEqual(set(report["wall_s"]), {"mean", "stddev", "min", "max"})
        self.assertIsNone(report["wall_s"]["stddev"])  # one run has no spread
        energy = report["energy"]
        for key in ("joules", "plus_minus", "coverage"):
            self.assertIsInstance(energy[key], (int, float), key)
        self.assertEqual((energy["method"], energy["source"]), ("counter", "rapl:0 package"))
        self.assertIsNone(energy["idle_joules"])
        self.assertIsNone(energy["active_joules"])
        cpu = device(report, "cpu0")
        self.assertEqual(set(cpu["power_w"]), {"mean", "max"})
        self.assertEqual(cpu["energy"]["joules"], energy["joules"])
        self.assertIs(cpu["in_total"], True)
        self.assertEqual(set(report["own"]), {"cpu_s", "rss_mb", "reads"})
        self.assertGreater(report["own"]["reads"], 5)
        self.assertTrue(report["host"]["hardware_label"])
        self.assertRegex(report["started"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")

    def test_jetson_is_named_after_its_board(self):
        """As in the Python IPW, because NVML does not know its GPU."""
        for model, label in (("NVIDIA Jetson TX2 Developer Kit", "TX2"),
                             ("NVIDIA Jetson Orin Nano Developer Kit", "A78AE")):  # without a digit: name of the CPU
            machine = self.machine(Fixture, "jetson")
            (machine.root / "proc/device-tree/model").write_text(model + "\0")
            report, _ = self.run_json(machine, "--output-dir", machine.root / "runs", "--", "sleep", "0.3")
            self.assertEqual((report["host"]["hardware_label"], report["host"]["gpu"]), (label, model))
            run, = (path for path in (machine.root / "runs").iterdir() if path.is_dir())
            summary = json.loads((run / "summary.json").read_text())
            self.assertEqual(summary["hardware_label"], label)
            self.assertEqual(summary["gpu_info"], {"name": model, "vendor": "NVIDIA", "device_id": 0,
                                                   "device_type": "SoC", "backend": "sysfs/ina3221"})

    def test_command_with_any_bytes_gives_valid_json(self):
        report, _ = self.run_json(self.intel, "--", "true", "a\"b\\\n", b"\xff\xc3".decode("latin1"))
        self.assertEqual(report["command"][1], "a\"b\\\n")
        raw = subprocess.run([IPW, "run", "--json", "-o", self.intel.root / "raw", "--", b"true",
                              b"\xff\xfe"], env=self.intel.environment())
        self.assertEqual(raw.returncode, 0)
        command = json.loads((self.intel.root / "raw").read_text(encoding="utf-8"))["command"]
        self.assertEqual(command[1], "\ufffd\ufffd")

    def test_json_can_be_piped(self):
        """Standard output has only the report, whatever the command writes."""
        for options in (["--json"], ["--json", "-o", "-"]):
            done = ipw(self.intel, "run", *options, "--", "echo", "hello")
            self.assertEqual(json.loads(done.stdout)["command"], ["echo", "hello"])
            self.assertEqual(done.stderr, "hello\n")
        done = ipw(self.intel, "run", "-o", "-", "--", "echo", "hello")
        self.assertIn("energy of 'echo hello'", done.stdout)
        self.assertFalse(os.path.exists("-"))

    def test_without_json_stdout_is_that_of_command(self):
        done = ipw(self.intel, "run", "--", "echo", "hello")
        self.assertEqual(done.stdout, "hello\n")
        self.assertIn("energy of 'echo hello'", done.stderr)

    def test_text_report(self):
        done = ipw(self.intel, "run", "-r", 2, "--", "sleep", "0.2")
        self.assertRegex(done.stderr, r"cpu0 +[\d.]+ ± [\d.]+ J .* counter +[\d.]+ %")
        self.assertIn("mean of 2 runs", done.stderr)
        self.assertRegex(done.stderr, r"ipw itself: [\d.]+ .s CPU, [\d.]+ MB, \d+ reads")
        self.assertNotIn("\033", done.stderr)

    def test_output_file_replaces_stderr(self):
        path = self.intel.root / "out.txt"
        done = ipw(self.intel, "run", "-o", path, "--", "true")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("energy of 'true'", path.read_text())

    def test_unwritable_report_is_shown_and_fails(self):
        done = ipw(self.intel, "run", "-o", "/dev/full", "--", "true")
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot write /dev/full: No space left", done.stderr)
        self.assertIn("energy of 'true'", done.stderr)
        done = ipw(self.intel, "run", "-o", "/dev/full", "--", "sh", "-c", "exit 7")
        self.assertEqual(done.returncode, 7)  # the exit status of the command has priority

    def test_unwritable_output_is_detected_before_the_run(self):
        root, ran = self.intel.root, self.intel.root / "ran"
        (root / "file").write_text("")
        for option, path, words in (("-o", root / "none/out", "No such file"), ("-o", root, "Is a directory"),
                                    ("--samples", root / "none/s.csv", "No such file"),
                                    ("--output-dir", root / "file/runs", "Not a directory")):
            done = ipw(self.intel, "run", option, path, "--", "touch", ran)
            self.assertEqual(done.returncode, 1, done)
            self.assertRegex(done.stderr, rf"^ipw run: cannot \w+ {path}: {words}[^\n]*\n$")
            self.assertFalse(ran.exists(), option)

    def test_samples_are_kept_if_report_cannot_be_written(self):
        samples = self.intel.root / "s.csv"
        done = ipw(self.intel, "run", "-o", "/dev/full", "--samples", samples, "--", "sleep", "0.3")
        self.assertEqual(done.returncode, 1)
        self.assertGreater(len(samples.read_text().splitlines()), 2)
        done = ipw(self.intel, "run", "--samples", "/dev/full", "--", "true")
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot write /dev/full", done.stderr)
        self.assertIn("energy of 'true'", done.stderr)

    def test_samples_add_up_to_the_report(self):
        samples = self.intel.root / "s.csv"
        report, _ = self.run_json(self.intel, "--samples", samples, "--", "sleep", "0.6")
        with open(samples, newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(list(rows[0]), ["t_s", "sensor", "device", "channel", "scope", "quantity",
                                         "unit", "value", "sum", "covered", "t_plus_minus_s"])
        points = [(float(r["t_s"]), float(r["sum"])) for r in rows
                  if (r["sensor"], r["channel"]) == ("rapl:0", "package")]
        self.assertEqual(points, sorted(points))

        def sum_at(t):
            t = min(t, points[-1][0])
            (t0, s0), (t1, s1) = next((a, b) for a, b in zip(points, points[1:]) if a[0] <= t <= b[0])
            return s0 + (s1 - s0) * (t - t0) / (t1 - t0)
        joules = sum_at(report["runs"][0]["wall_s"]) - sum_at(0)
        self.assertAlmostEqual(joules, report["energy"]["joules"], delta=0.01 * joules)

    def test_repeats_and_warmups(self):
        log = self.intel.root / "log"
        report, _ = self.run_json(self.intel, "-r", 3, "--warmup", 2, "--", "sh", "-c",
                                  f"echo x >>{log}; sleep 0.1")
        self.assertEqual(log.read_text(), "x\n" * 5)
        runs = report["runs"]
        self.assertEqual(len(runs), 3)
        walls = [r["wall_s"] for r in runs]
        mean = sum(walls) / 3
        self.assertAlmostEqual(report["wall_s"]["mean"], mean, delta=1e-6)
        self.assertAlmostEqual(report["wall_s"]["min"], min(walls), delta=1e-6)
        self.assertAlmostEqual(report["wall_s"]["max"], max(walls), delta=1e-6)
        stddev = (sum((w - mean)**2 for w in walls) / 2)**0.5
        self.assertAlmostEqual(report["wall_s"]["stddev"], stddev, delta=1e-6)
        self.assertAlmostEqual(report["energy"]["joules"], sum(r["energy_j"] for r in runs) / 3,
                               delta=1e-6)

    def test_failing_run_stops_repeats(self):
        count = self.intel.root / "count"
        fails_second = f"echo x >>{count}; [ $(wc -l <{count}) -ne 2 ] || exit 9"
        report, done = self.run_json(self.intel, "-r", 4, "--", "sh", "-c", fails_second)
        self.assertEqual((len(report["runs"]), done.returncode, report["exit_code"]), (2, 9, 9))
        count.unlink()
        report, done = self.run_json(self.intel, "-r", 4, "--ignore-failure", "--", "sh", "-c",
                                     fails_second)
        self.assertEqual((len(report["runs"]), done.returncode), (4, 9))
        count.unlink()
        report, done = self.run_json(self.intel, "--warmup", 3, "--", "sh", "-c", "exit 4")
        self.assertEqual((len(report["runs"]), done.returncode), (0, 4))
        self.assertUnknown(report["energy"])

    def test_idle_and_active_energy_add_up(self):
        began = time.monotonic()
        report, _ = self.run_json(self.intel, "--idle", 0.5, "--", "sleep", "0.4")
        most = time.monotonic() - began - report["wall_s"]["mean"]
        energy = report["energy"]
        self.assertTrue(0.5 <= report["idle"]["seconds"] <= most, (report["idle"], most))
        [row] = report["idle"]["devices"]
        self.assertEqual(row["id"], "cpu0")
        self.assertAlmostEqual(row["power_w"] / WATTS, 1, delta=0.2)
        self.assertAlmostEqual(energy["idle_joules"] + energy["active_joules"], energy["joules"],
                               delta=1e-9 * energy["joules"])
        self.assertAlmostEqual(
            energy["idle_joules"], row["power_w"] * report["wall_s"]["mean"] * energy["coverage"],
            delta=0.02 * energy["joules"])

    def test_progress_lines_only_on_a_terminal(self):
        done = ipw(self.intel, "run", "-r", 2, "--warmup", 1, "--idle", 0.1, "--", "true")
        self.assertNotIn("warm-up", done.stderr)


class Figures(MachineTest):
    """Energies on machines with correct counters, and with failing ones."""

    def assertNear(self, joules, low, high):
        self.assertTrue(low <= joules <= high, f"{joules} J is not in {low} .. {high}")

    def whole(self, energy):
        """Joules extrapolated to the whole run.  On a busy machine, a late reading leaves the end uncovered; coverage
        must still be high."""
        self.assertGreater(energy["coverage"], 0.6)
        return energy["joules"] / energy["coverage"]

    def measure(self, machine, during=lambda: None, seconds=0.4, options=()):
        """A run with `seconds` before and after `during`.  The counter is read within the run at both ends, so the
        report must have at least that difference."""
        run = EchoRun(machine, *options)
        before = machine.count()
        time.sleep(seconds)
        during()
        time.sleep(seconds)
        inside = (machine.count() - before) * 1e-6
        report = run.end()
        self.assertEqual(run.code, 0, run.stderr)
        return report, inside

    def test_energy_equals_counter_difference(self):
        report, inside = self.measure(self.machine(Intel, WATTS))
        energy = report["energy"]
        self.assertEqual(energy["method"], "counter")
        # The run is longer than what the test observed; wall time bounds the difference.
        self.assertNear(self.whole(energy), inside * 0.95,
                        inside * 1.05 + WATTS * (report["wall_s"]["mean"] - 0.8 + 0.1))
        self.assertAlmostEqual(device(report, "cpu0")["power_w"]["mean"] / WATTS, 1, delta=0.15)

    def test_two_sockets_add_up(self):
        report, _ = self.measure(self.machine(Intel, 50, 80))
        parts = [device(report, d)["energy"]["joules"] for d in ("cpu0", "cpu1")]
        self.assertAlmostEqual(sum(parts), report["energy"]["joules"], delta=1e-6)
        self.assertAlmostEqual(parts[1] / parts[0], 1.6, delta=0.1)
        self.assertEqual(report["energy"]["source"], "rapl:0 package + rapl:1 package")

    def test_perf_counters(self):
        machine = self.machine(Fixture, "intel2", 100)
        report, _ = self.run_json(machine, "--", "sleep", "0.5")
        self.assertEqual(report["energy"]["method"], "counter")
        expected = 100 * 1.93 * 1.2 * report["wall_s"]["mean"]
        self.assertAlmostEqual(self.whole(report["energy"]) / expected, 1, delta=0.2)
        self.assertEqual({d["id"] for d in report["devices"] if d["in_total"]},
                         {"cpu0", "cpu1", "dram0", "dram1"})

    def test_counter_wrap_loses_nothing(self):
        # A minute from the start, but two seconds after the run starts.
        machine = self.machine(Intel, 6, start_uj=RANGE_UJ - 400_000_000)
        run = EchoRun(machine)
        machine.set_power(200)
        before = machine.count()
        wait_until(lambda: machine.count() < before, "the wrap")
        time.sleep(0.3)
        inside = (machine.count() - before + RANGE_UJ + 1) * 1e-6
        report = run.end()
        self.assertNear(self.whole(report["energy"]), inside * 0.95, 200 * report["wall_s"]["mean"] * 1.05)

    def test_counter_reset_reduces_coverage(self):
        machine = self.machine(Intel, WATTS)
        report, _ = self.measure(machine, machine.reset, 1.5)
        energy = report["energy"]
        self.assertLess(energy["coverage"], 1)
        self.assertGreater(energy["coverage"], 0.5)
        self.assertNear(energy["joules"], 0.25 * WATTS, report["wall_s"]["mean"] * WATTS)
        self.assertAlmostEqual(device(report, "cpu0")["power_w"]["mean"] / WATTS, 1, delta=0.3)

    def test_temporary_garbage_is_bridged_by_counter(self):
        for nonsense in (b"", b"12", b"garbage\n", b"-5\n", b"99999999999999999999999\n", b"nan\n"):
            machine = self.machine(Intel, WATTS)

            def during():
                machine.show(0, nonsense)
                time.sleep(0.15)
                machine.show(0)
            report, inside = self.measure(machine, during, 0.2)
            self.assertNear(self.whole(report["energy"]), inside * 0.9, 1.05 * WATTS * report["wall_s"]["mean"])

    def test_meter_that_drops_to_0_w_is_dead(self):
        machine = self.machine(Machine)
        machine.put("/sys/class/hwmon/hwmon0/name", "power_meter")
        machine.put("/sys/class/hwmon/hwmon0/power1_average", 50_000_000)
        began = time.monotonic()
        run = EchoRun(machine, "--sensors", "hwmon")
        time.sleep(1)
        machine.overwrite("/sys/class/hwmon/hwmon0/power1_average", b"0\n")
        alive = time.monotonic() - began
        time.sleep(2)
        report = run.end()
        energy = report["devices"][0]["energy"]
        self.assertNear(energy["coverage"], 0.1, alive / report["wall_s"]["mean"])
        self.assertIn("reads 0 W: a dead sensor", energy["note"])
        self.assertAlmostEqual(energy["joules"], 50 * energy["coverage"] * report["wall_s"]["mean"], delta=0.1)

    def test_garbage_to_the_end_reduces_coverage(self):
        machine = self.machine(Intel, WATTS)
        report, _ = self.measure(machine, lambda: machine.show(0, b"garbage\n"), 1.5)
        energy = report["energy"]
        self.assertNear(energy["coverage"], 0.2, 0.8)
        self.assertIn("not covered", energy["note"] or device(report, "cpu0")["energy"]["note"])

    def test_require_energy_rejects_low_coverage(self):
        machine = self.machine(Intel, WATTS)
        run = EchoRun(machine, "--require-energy")
        time.sleep(1)  # also a machine that stalls reads it meanwhile
        machine.show(0, b"garbage\n")
        time.sleep(2)
        run.end()
        self.assertEqual(run.code, 3, run.stderr)
        self.assertRegex(run.stderr, "coverage only .* %")

    def test_garbage_from_the_start_is_unknown(self):
        machine = self.machine(Intel, WATTS)
        run = EchoRun(machine)  # the sensor works when it is opened ...
        run.end()
        machine.show(0, b"garbage\n")
        report, _ = self.run_json(machine, "--", "sleep", "0.2")
        self.assertIsNone(report["energy"]["joules"])
        self.assertIsNone(report["runs"][0]["energy_j"])

    def test_zone_that_disappears(self):
        machine = self.machine(Intel, WATTS, 70)
        run = EchoRun(machine)
        time.sleep(0.3)
        shutil.rmtree(machine.path(1).parent)
        time.sleep(0.3)
        report = run.end()
        self.assertEqual(run.code, 0)
        # An open attribute stays readable here; on a real machine it may not.  Either way the
        # other socket is measured and nothing is negative or 0.
        self.assertGreater(device(report, "cpu0")["energy"]["joules"], 0.1 * WATTS)
        self.assertGreater(report["energy"]["joules"], 0.1 * WATTS)

    def test_dead_counter_is_unknown_next_to_working_one(self):
        report, _ = self.run_json(self.machine(Intel, WATTS, 0), "--", "sleep", "0.3")
        self.assertUnknown(device(report, "cpu1")["energy"])
        self.assertEqual(device(report, "cpu1")["power_w"], {"mean": None, "max": None})
        self.assertIs(device(report, "cpu1")["in_total"], False)
        self.assertGreater(report["energy"]["joules"], 0)
        self.assertIn("without cpu1", report["energy"]["note"])

    def test_machines_without_energy(self):
        for name in ("none", "guest", "psys-dead"):
            machine = self.machine(Fixture, name)
            report, done = self.run_json(machine, "-r", 2, "--idle", 0.1, "--", "sleep", "0.1")
            self.assertEqual(done.returncode, 0)
            self.assertUnknown(report["energy"])
            self.assertEqual([r["energy_j"] for r in report["runs"]], [None, None])
            text = ipw(machine, "run", "--", "true").stderr
            self.assertIn("energy unknown", text)
            self.assertNotRegex(text, r"\b0(\.0+)? m?J")
        self.assertUnknown(device(report, "psys")["energy"])
        self.assertIn("counter did not change", report["energy"]["note"])

    def test_estimate_is_labeled(self):
        machine = self.machine(Machine)
        for path in ("/proc/stat", "/proc/cpuinfo"):
            (machine.root / "proc").mkdir(exist_ok=True)
            (machine.root / path.lstrip("/")).symlink_to(path)
        report, done = self.run_json(machine, "--", "sleep", "0.5")
        self.assertEqual(report["energy"]["method"], "estimated")
        self.assertGreater(report["energy"]["joules"], 0)
        text = ipw(machine, "run", "--", "sleep", "0.3").stderr
        self.assertIn("~ estimated from CPU utilization, not measured", text)
        done = ipw(machine, "run", "--require-energy", "--", "sleep", "0.3")
        self.assertEqual(done.returncode, 3)
        self.assertIn("only estimated", done.stderr)

    def test_late_estimate_covers_the_whole_interval(self):
        """Utilization covers the time since the previous reading, however late."""
        machine = self.machine(Modeled)
        run = EchoRun(machine)
        time.sleep(0.3)
        with machine.locked("/proc/stat"):
            time.sleep(0.9)
        run.send_line("on")
        energy = run.end()["energy"]
        self.assertEqual(energy["method"], "estimated")
        self.assertAlmostEqual(energy["coverage"], 1, delta=1e-3)

    def test_require_energy(self):
        measured, none = self.machine(Intel, WATTS), self.machine(Machine)
        done = ipw(measured, "run", "--require-energy", "--", "sleep", "0.5")
        self.assertEqual(done.returncode, 0)
        done = ipw(none, "run", "--require-energy", "--", "true")
        self.assertEqual(done.returncode, 3)
        self.assertIn("energy is required but was not measured", done.stderr)
        self.assertEqual(ipw(none, "run", "--require-energy", "--", "sh", "-c", "exit 5").returncode, 5)

    def test_short_run_has_low_confidence(self):
        report, _ = self.run_json(self.machine(Intel, WATTS), "--", "true")
        energy = report["energy"]
        if energy["joules"] is not None:
            self.assertGreater(energy["joules"], 0)
            self.assertTrue(energy["low_confidence"] or energy["updates"] >= 10)

    def test_board_sensors(self):
        report, _ = self.run_json(self.machine(Fixture, "jetson"), "--", "sleep", "0.3")
        self.assertEqual([d["id"] for d in report["devices"] if d.get("in_total")], ["board"])
        covered = report["energy"]["coverage"] * report["wall_s"]["mean"]  # below 1 if readings were late
        self.assertAlmostEqual(report["energy"]["joules"] / covered, 6, delta=0.2)
        report, _ = self.run_json(self.machine(Fixture, "grace"), "--", "sleep", "0.3")
        self.assertEqual([d["id"] for d in report["devices"] if d.get("in_total")],
                         ["module0", "module1"])
        self.assertEqual(report["energy"]["method"], "integral")

    def test_requested_driver_must_be_available(self):
        """Otherwise nothing is run; the reason is that of doctor."""
        machine = self.machine(Intel, WATTS)
        rows = {row["driver"]: row for row in json.loads(ipw(machine, "doctor", "--json").stdout)["sensors"]}
        for names, driver in (("nvml", "nvml"), ("rapl,hwmon", "hwmon")):
            for command in (("run", "--sensors", names, "--", "touch", machine.root / "ran"),
                            ("energy", "--sensors", names, "--count", "1")):
                with self.subTest(command):
                    done = ipw(machine, *command)
                    self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
                    # On a busy machine the last reading may be skipped, which is reported in another line.
                    lines = [line for line in done.stderr.splitlines() if not line.endswith("; ending without it")]
                    self.assertEqual(len(lines), 1, done.stderr)
                    self.assertIn(f"--sensors: {driver}: {rows[driver]['reason']}", done.stderr)
        self.assertFalse((machine.root / "ran").exists())
        self.assertEqual(ipw(machine, "doctor", "--sensors", "nvml").returncode, 0)

    def test_denied_sensor(self):
        machine = self.machine(Intel, WATTS)
        os.chmod(machine.root, 0o755)
        os.chmod(machine.path(), 0o400 if os.geteuid() == 0 else 0)
        program = shutil.copy(IPW, machine.root / "ipw")
        options = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}

        def denied(*words):
            return subprocess.run([program, *words], env=machine.environment(),
                                  cwd="/", text=True, capture_output=True, timeout=TIMEOUT_S, **options)

        done = denied("run", "--json", "--", "true")
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        self.assertIsNone(report["energy"]["joules"])
        rapl = next(row for row in json.loads(denied("doctor", "--json").stdout)["sensors"] if row["driver"] == "rapl")
        self.assertEqual(rapl["status"], "denied")
        done = denied("run", "--sensors", "rapl", "--", "true")
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"{rapl['reason']} (fix: {rapl['fix']})", done.stderr)


class Gpus(MachineTest):
    TWO = "devices 2\npower 0 constant 300\npower 1 constant 400"

    def test_energy_of_two_gpus(self):
        report, _ = self.run_json(self.machine(Nvidia, self.TWO), "--", "sleep", "0.6")
        wall = report["wall_s"]["mean"]
        joules = 0
        for name, watts in (("gpu0", 300), ("gpu1", 400)):
            gpu = device(report, name)
            self.assertEqual((gpu["energy"]["method"], gpu["cross_check"]["method"]),
                             ("counter", "integral"))
            # Between two updates of the counter, 100 ms apart, its energy is uncertain: the true value is within the
            # stated uncertainty.
            sigma = gpu["energy"]["plus_minus_statistical"]
            self.assertAlmostEqual(gpu["energy"]["joules"], watts * wall,
                                   delta=4 * sigma + 0.05 * watts * wall)
            self.assertLess(sigma, 0.15 * watts * wall)
            self.assertAlmostEqual(gpu["cross_check"]["joules"] / (watts * wall), 1, delta=0.05)
            joules += gpu["energy"]["joules"]
        self.assertAlmostEqual(joules, report["energy"]["joules"], delta=1e-6)

    def test_selected_gpus(self):
        machine = self.machine(Nvidia, self.TWO)
        for arguments, env, expected in (
                (["--devices", "1"], {}, ["gpu1"]),
                (["--devices", "nvml:1"], {}, ["gpu1"]),  # the name used in messages
                (["--devices", "GPU-00000000-1111-2222-3333-444444444444"], {}, ["gpu0"]),
                ([], {"CUDA_VISIBLE_DEVICES": "1"}, ["gpu1"]),
                (["--devices", "0,1"], {"CUDA_VISIBLE_DEVICES": "1"}, ["gpu0", "gpu1"])):
            report, _ = self.run_json(machine, *arguments, "--", "true", env=env)
            self.assertEqual([d["id"] for d in report["devices"] if d["kind"] == "gpu"], expected)

    def test_missing_gpu_is_reported(self):
        machine = self.machine(Nvidia, self.TWO)
        for devices, words in (("7", '"7" does not identify exactly one GPU'),
                               ("0,7", '"7" does not identify'),
                               ("GPU-ffff", '"GPU-ffff" does not identify')):
            done = ipw(machine, "run", "--devices", devices, "--", "true")
            self.assertIn(words, done.stderr)
        self.assertNotIn("--devices", ipw(machine, "run", "--devices", "1", "--", "true").stderr)
        done = ipw(self.machine(Machine), "run", "--devices", "0", "--", "true")
        self.assertIn('no readable GPU matches "0"', done.stderr)

    def test_integral_is_used_on_counter_errors(self):
        # not supported, no permission, not found, timeout, unknown
        for code in (3, 4, 6, 10, 999):
            machine = self.machine(Nvidia, "power 0 constant 200\n"
                                   f"fail nvmlDeviceGetTotalEnergyConsumption 0 {code}\n"
                                   f"fail field:83 0 {code}\nfail field:191 0 {code}")
            report, done = self.run_json(machine, "--", "sleep", "0.5")
            self.assertEqual(done.returncode, 0, done.stderr)
            energy = device(report, "gpu0")["energy"]
            self.assertEqual(energy["method"], "integral", code)
            self.assertAlmostEqual(energy["joules"] / (200 * report["wall_s"]["mean"]), 1, delta=0.15)

    def test_library_that_fails_to_initialize(self):
        # uninitialized, no permission, driver not loaded, driver/library mismatch, unknown
        for code in (1, 4, 9, 18, 999):
            report, done = self.run_json(self.machine(Nvidia, f"init {code}"), "--", "true")
            self.assertEqual(done.returncode, 0)
            self.assertUnknown(report["energy"])

    def test_gpu_without_readings_is_unknown(self):
        machine = self.machine(Nvidia, "\n".join(
            f"fail {name} 0 3" for name in (
                "nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetPowerUsage",
                "nvmlDeviceGetFieldValues", "nvmlDeviceGetSamples")))
        report, _ = self.run_json(machine, "--", "sleep", "0.2")
        self.assertUnknown(report["energy"])

    def test_invalid_values_are_unknown(self):
        machine = self.machine(Nvidia, "type fields double\ntype samples double\n"
                               "value power_mw 0 nan\nvalue samples_mw 0 nan\n"
                               "fail nvmlDeviceGetTotalEnergyConsumption 0 3\n"
                               "fail field:83 0 3\nfail field:191 0 3\n"
                               "fail nvmlDeviceGetPowerUsage 0 3")
        report, _ = self.run_json(machine, "--", "sleep", "0.4")
        self.assertIsNone(report["energy"]["joules"])

    def test_slow_calls_do_not_slow_the_command(self):
        machine = self.machine(Nvidia, "power 0 constant 200\n"
                               "block nvmlDeviceGetTotalEnergyConsumption 0 15\n"
                               "block nvmlDeviceGetFieldValues 0 15")
        times = machine.root / "times"
        report, _ = self.run_json(machine, "--", "sh", "-c",
                                  f"cat /proc/uptime >{times}; sleep 0.6; cat /proc/uptime >>{times}")
        first, last = (float(line.split()[0]) for line in times.read_text().splitlines())
        self.assertLess(report["wall_s"]["mean"], last - first + 0.3)
        self.assertAlmostEqual(report["energy"]["joules"] / (200 * report["wall_s"]["mean"]), 1,
                               delta=0.15)

    def test_lost_gpu_recovers(self):
        machine = self.machine(Nvidia, "power 0 constant 200")
        run = EchoRun(machine)
        time.sleep(0.5)
        machine.script("power 0 constant 200\nfail * 0 15")
        run.wait_for_message("nvml:0: device lost")
        time.sleep(0.6)
        machine.script("power 0 constant 200")
        run.wait_for_message("nvml:0: device available again")
        time.sleep(0.6)
        report = run.end()
        energy = device(report, "gpu0")["energy"]
        self.assertNotEqual(energy["joules"], 0)
        self.assertTrue(0.15 < energy["coverage"] < 0.97, energy)
        self.assertIn("not covered", energy["note"])
        self.assertAlmostEqual(device(report, "gpu0")["power_w"]["mean"] / 200, 1, delta=0.15)

    def test_gpu_counter_reset(self):
        machine = self.machine(Nvidia, "power 0 constant 200\nenergy_start 0 5000000\n"
                               "energy_reset 0 1")
        report, _ = self.run_json(machine, "--", "sleep", "1.5")
        gpu = device(report, "gpu0")
        self.assertAlmostEqual(gpu["power_w"]["mean"] / 200, 1, delta=0.25)
        # The power samples cover the reset, so they are used and nothing is missing.
        self.assertEqual(gpu["energy"]["method"], "integral")
        self.assertAlmostEqual(gpu["energy"]["coverage"], 1, delta=0.05)
        self.assertAlmostEqual(gpu["energy"]["joules"] / (200 * report["wall_s"]["mean"]), 1, delta=0.15)

    def test_cpu_and_gpu_together(self):
        machine = self.machine(Intel, WATTS)
        script = machine.put("/nvml.txt", "power 0 constant 200")
        report, _ = self.run_json(machine, "--", "sleep", "0.5", env={
            "IPW_NVML": FAKE_NVML,
            "IPW_FAKE_NVML": str(script)})
        self.assertEqual({d["id"] for d in report["devices"] if d.get("in_total")}, {"cpu0", "gpu0"})
        self.assertAlmostEqual(report["energy"]["joules"] / (250 * report["wall_s"]["mean"]), 1,
                               delta=0.15)


if __name__ == "__main__":
    main_parallel(jobs=3)
