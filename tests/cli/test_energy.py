#!/usr/bin/env python3
# test: serial
"""Command-line tests of ipw energy: formats, exit codes, full-screen view."""

import csv
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from machines import FAKE, Intel, Machine, Modeled, Nvidia, Ramp  # noqa: E402
from program import MachineTest, wait_for_signal_handlers, main_parallel  # noqa: E402

IPW = os.environ.get("IPW", "build/ipw")
FAKE_NVML = Path(os.environ.get("IPW_FAKES", "build/fakes"), "libfake_nvml.so").resolve()
TIMEOUT_S = 120


def ipw(machine, *arguments, **options):
    return subprocess.run([IPW, "energy", *arguments], env=machine.environment(), text=True,
                          capture_output=True, timeout=TIMEOUT_S, **options)


def start(machine, *arguments, **options):
    return subprocess.Popen([IPW, "energy", *arguments], env=machine.environment(), text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


class WithMachine(unittest.TestCase):
    def machine(self, kind, *watts):
        machine = kind(*watts)
        self.addCleanup(machine.close)
        return machine

    def assertOneLine(self, text, *pieces):
        self.assertEqual(text.count("\n"), 1, text)
        for piece in pieces:
            self.assertIn(piece, text)


class NothingToMeasure(WithMachine):
    def setUp(self):
        self.empty = self.machine(Machine)

    def test_reports_no_sensor_and_null_energy(self):
        done = ipw(self.empty, "--json")
        self.assertEqual(done.returncode, 0)
        self.assertOneLine(done.stderr, "no readable sensor", "ipw doctor")
        reading = json.loads(done.stdout)
        self.assertIsNone(reading["energy"]["joules"])
        self.assertIsNone(reading["energy"]["method"])
        self.assertIsNone(reading["energy_since_start"]["joules"])
        self.assertEqual(reading["devices"], [])

    def test_table_has_dashes_and_csv_only_header(self):
        rows = ipw(self.empty, "--once").stdout.splitlines()
        self.assertEqual(rows[1].split()[1:], ["total", "-", "-", "-"])
        self.assertEqual(len(ipw(self.empty, "--format", "csv").stdout.splitlines()), 1)

    def test_require_energy_exits_3(self):
        for arguments in ([], ["--once"], ["--count", "2"], ["--json"]):
            done = ipw(self.empty, "--require-energy", *arguments)
            self.assertEqual(done.returncode, 3, done)
            self.assertIn("required", done.stderr)
            self.assertIn("ipw doctor", done.stderr)


class WrongUsage(WithMachine):
    CASES = [
        (["--intervall", "1"], "did you mean '--interval'"),
        (["--format", "jsn"], "did you mean 'json'"),
        (["--interval", "0.01"], "between 0.1"),
        (["--interval", "soon"], "takes a number"),
        (["--count", "0"], "between 1"),
        (["--count", "1.5"], "an integer"),
        (["--count"], "missing argument"),
        (["--once", "--count", "2"], "mutually exclusive"),
        (["--json", "--format", "csv"], "mutually exclusive"),
        (["--sensors", "nul"], "did you mean 'null'"),
        (["now"], "unexpected argument 'now'"),
        (["--", "now"], "unexpected argument 'now'"),
    ]

    def test_usage_errors_exit_2_with_one_line(self):
        empty = self.machine(Machine)
        for arguments, piece in self.CASES:
            with self.subTest(arguments):
                done = ipw(empty, *arguments)
                self.assertEqual(done.returncode, 2)
                self.assertEqual(done.stdout, "")
                self.assertOneLine(done.stderr, piece)

    def test_help_lists_the_csv_columns(self):
        done = ipw(self.machine(Machine), "--help")
        self.assertEqual(done.returncode, 0)
        header = ipw(self.machine(Machine), "--format", "csv").stdout.strip()
        for column in header.split(","):
            self.assertIn(column, done.stdout)


class Measured(WithMachine):
    def setUp(self):
        self.intel = self.machine(Intel, 100, 40)

    def assertNear(self, value, expected, share=0.05):
        self.assertLess(abs(value / expected - 1), share, f"{value}, expected {expected}")

    def test_json_lines_format(self):
        done = ipw(self.intel, "--json", "--count", "3", "--interval", "0.5")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        readings = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(len(readings), 3)
        for reading in readings:
            # On a busy machine a row may be late; it is then longer by whole intervals.
            elapsed, interval = reading["elapsed_s"], reading["interval_s"]
            self.assertAlmostEqual(elapsed / 0.5, round(elapsed / 0.5), 3)
            self.assertRegex(reading["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
            self.assertEqual(reading["energy"]["method"], "counter")
            self.assertNear(reading["energy"]["joules"], 140 * interval)
            self.assertNear(reading["energy_since_start"]["joules"], 140 * elapsed)
            self.assertEqual([d["id"] for d in reading["devices"]], ["cpu0", "cpu1"])
            self.assertNear(reading["devices"][0]["power_w"]["mean"], 100)
            self.assertNear(reading["devices"][1]["energy_since_start"]["joules"], 40 * elapsed)
            self.assertFalse(reading["devices"][0]["lost"])
        parts = sum(r["energy"]["joules"] for r in readings)
        self.assertNear(parts, readings[-1]["energy_since_start"]["joules"], 0.001)

    def test_table_format(self):
        done = ipw(self.intel, "-n", "2", "-i", "0.5")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = done.stdout.splitlines()
        self.assertEqual(lines[0].split()[:3], ["time", "device", "power"])
        self.assertEqual([line.split()[1] for line in lines[1:]], ["cpu0", "cpu1", "total"] * 2)
        self.assertNotIn("\033", done.stdout)
        for line in lines:
            self.assertEqual(line, line.rstrip())

    def test_once_takes_half_a_second(self):
        began = time.monotonic()
        done = ipw(self.intel, "--once", "--json")
        self.assertLess(time.monotonic() - began, 60)
        reading = json.loads(done.stdout)
        self.assertAlmostEqual(reading["interval_s"], 0.5, 3)
        self.assertNear(reading["energy"]["joules"], 70)

    def test_require_energy_passes_with_sensor(self):
        self.assertEqual(ipw(self.intel, "--once", "--require-energy").returncode, 0)

    def test_output_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "out.csv")
            done = ipw(self.intel, "--once", "--format", "csv", "-o", str(path))
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
            self.assertEqual(len(path.read_text().splitlines()), 3)
            done = ipw(self.intel, "--once", "-o", str(Path(folder, "no", "such")))
            self.assertEqual(done.returncode, 1)
            self.assertOneLine(done.stderr, "No such file")

    def test_full_disk_fails(self):
        for form in ("table", "csv", "json"):
            done = ipw(self.intel, "--once", "--format", form, "-o", "/dev/full")
            self.assertEqual(done.returncode, 1)
            self.assertOneLine(done.stderr, "/dev/full", "No space left")

    def test_closed_pipe_ends_the_stream(self):
        for form in ("json", "csv", "table"):
            process = start(self.intel, "--format", form, "-i", "0.1")
            process.stdout.readline()
            process.stdout.close()
            self.assertEqual(process.wait(TIMEOUT_S), 0)
            self.assertEqual(process.stderr.read(), "")
            process.stderr.close()

    def test_signal_ends_stream_with_complete_lines(self):
        for form, number in (("json", signal.SIGINT), ("csv", signal.SIGTERM),
                             ("table", signal.SIGINT)):
            process = start(self.intel, "--format", form, "-i", "0.2")
            for _ in range(4):
                process.stdout.readline()
            process.send_signal(number)
            rest, errors = process.communicate(timeout=TIMEOUT_S)
            self.assertEqual(process.returncode, 128 + number)
            self.assertEqual(errors, "")
            self.assertTrue(rest.endswith("\n") or not rest)
            if form == "json":
                for line in rest.splitlines():
                    json.loads(line)
            if form == "table":
                self.assertRegex(rest, r"\nin .*\ndevice +energy +mean +peak")

    def test_signal_before_first_row_prints_partial_interval(self):
        process = start(self.intel, "--json", "-i", "3600")
        wait_for_signal_handlers(process)
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=TIMEOUT_S)
        self.assertEqual(process.returncode, 130)
        reading = json.loads(rest)  # the interval so far
        self.assertLess(reading["interval_s"], 60)
        self.assertNear(reading["energy"]["joules"], 140 * reading["interval_s"])

    def test_stalled_stream_resumes_with_one_long_row(self):
        process = start(self.intel, "--json", "-i", "0.2", "-n", "4")
        first = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGSTOP)
        time.sleep(1)
        process.send_signal(signal.SIGCONT)
        rest, _ = process.communicate(timeout=TIMEOUT_S)
        readings = [first] + [json.loads(line) for line in rest.splitlines()]
        self.assertEqual(len(readings), 4)
        self.assertGreater(max(r["interval_s"] for r in readings), 0.5)
        self.assertAlmostEqual(sum(r["interval_s"] for r in readings),
                               readings[-1]["elapsed_s"], 3)


class DeadSensor(WithMachine):
    def test_dead_sensor_is_named_and_energy_unknown(self):
        machine = self.machine(Intel, 0)
        done = ipw(machine, "--json", "-n", "1", "-i", "0.5", "--require-energy")
        self.assertEqual(done.returncode, 3)
        reading = json.loads(done.stdout)
        self.assertIsNone(reading["energy"]["joules"])
        for device in reading["devices"]:
            self.assertIsNone(device["energy"]["joules"])
        self.assertIn("ipw doctor", done.stderr)


class Estimated(WithMachine):
    def test_estimate_is_marked_and_fails_require_energy(self):
        machine = self.machine(Modeled)
        done = ipw(machine, "-n", "1", "--require-energy")
        self.assertEqual(done.returncode, 3, done)
        self.assertRegex(done.stdout, r"cpu +~\S.* +~\S.* +estimated")
        self.assertIn("only estimated", done.stderr)
        rows = csv.DictReader(io.StringIO(ipw(machine, "-n", "1", "--format", "csv").stdout))
        self.assertIn("estimated", [row["method"] for row in rows])


@unittest.skipUnless(FAKE_NVML.exists(), "the fake NVML library is not built")
class LostDevice(WithMachine):
    def test_lost_device_is_reported_and_recovers(self):
        """The card is lost once a row shows it, and returns once a row shows that it is lost."""
        present = "power 0 constant 200"
        machine = self.machine(Nvidia, present)
        process = start(machine, "--format", "csv", "-i", "0.5")
        watchdog = threading.Timer(TIMEOUT_S, process.kill)
        watchdog.start()
        self.addCleanup(watchdog.cancel)
        rows = csv.DictReader(process.stdout)
        first = next(rows)
        machine.script(f"{present}\nfail * 0 15")
        lost = next(r for r in rows if r["state"] == "lost" and not r["power_w"])
        machine.script(present)
        back = next(r for r in rows if r["state"] == "ok" and r["power_w"])
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
        self.assertEqual(first["state"], "ok")
        self.assertEqual(lost["temperature_c"], "")
        self.assertAlmostEqual(float(back["power_w"]), 200, delta=1)
        self.assertIn("lost", errors)


@unittest.skipUnless(shutil.which("tmux"), "tmux is not installed")
class FullScreen(WithMachine):
    def setUp(self):
        self.intel = self.machine(Intel, 100, 40)
        # A separate tmux server: one that is exiting would end the next test's session.
        self.socket = str(self.intel.root / "tmux")
        self.addCleanup(self.tmux, "kill-server")

    def tmux(self, *arguments):
        return subprocess.run(["tmux", "-S", self.socket, "-f", "/dev/null", *arguments],
                              text=True, capture_output=True, timeout=TIMEOUT_S).stdout

    def open(self, columns=100, rows=30, **environment):
        """Starts a shell in a terminal with `ipw energy` running."""
        variables = {"LC_ALL": "C.UTF-8", "PS1": "$ ", "IPW_SYSROOT": str(self.intel.root),
                     "LD_PRELOAD": self.intel.environment()["LD_PRELOAD"], **environment}
        words = [f"{key}={value}" for key, value in variables.items()]
        self.tmux("new-session", "-d", "-x", str(columns), "-y", str(rows), "env", "-u", "NO_COLOR",
                  *words, "sh")
        self.keys("ulimit -c 0; stty -g >$IPW_SYSROOT/before; echo MARK; " + str(Path(IPW).resolve()) +
                  " energy -i 0.2; echo EXIT $?; stty -g >$IPW_SYSROOT/after", "Enter")

    def keys(self, *keys):
        self.tmux("send-keys", *keys)

    def screen(self, *options):
        return self.tmux("capture-pane", "-p", *options)

    def wait_for_screen(self, pattern, *options, curves=()):
        """Waits until the screen shows this text, and curves of these devices: on a busy machine, the first frame may
        precede readings."""
        end = time.monotonic() + TIMEOUT_S
        while time.monotonic() < end:
            screen = self.screen(*options)
            if re.search(pattern, screen) and set(curves) <= set(self.curve_rows(screen)):
                return screen
            time.sleep(0.05)
        self.fail(f"no {pattern!r} on the screen:\n{screen}")

    def program(self):
        shell = int(self.tmux("list-panes", "-F", "#{pane_pid}"))
        return int(Path(f"/proc/{shell}/task/{shell}/children").read_text().split()[0])

    def assertEnded(self, code, totals=True):
        screen = self.wait_for_screen(rf"EXIT {code}\b")
        self.assertIn("MARK", screen)  # the shell's screen is restored
        self.assertEqual("device" in screen, totals)
        end = time.monotonic() + TIMEOUT_S
        after = self.intel.root / "after"
        while not (after.exists() and after.read_text()) and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual(after.read_text(), (self.intel.root / "before").read_text())

    def pause(self):
        """Pauses at a frame with readings of both devices."""
        for _ in range(100):
            self.keys("p")
            screen = self.wait_for_screen("PAUSED")
            if "did not change" not in screen and "no reading" not in screen:
                return screen
            self.keys("p")
            self.wait_for_screen(r"\Aipw energy +\d")
        self.fail(f"no readings on the screen:\n{screen}")

    def test_shows_pauses_resizes_and_quits(self):
        self.open()
        screen = self.wait_for_screen(r"(?=[\s\S]*█)[\s\S]*counter(?! did)[\s\S]*total")
        for piece in ("cpu0", "cpu1", "total", "█", "q quit", "every 0.2 s"):
            self.assertIn(piece, screen)
        self.assertNotIn("MARK", screen)
        paused = self.pause()
        time.sleep(0.6)
        self.assertEqual(self.screen(), paused)
        self.tmux("resize-window", "-x", "40", "-y", "8")
        small = self.wait_for_screen(r"cpu0 +\S+ W +\S+ J")
        self.assertIn("PAUSED", small)
        for line in small.splitlines():
            self.assertLessEqual(len(line), 40)
        self.keys("p")
        self.wait_for_screen(r"\Aipw energy +\d")
        self.tmux("resize-window", "-x", "100", "-y", "30")
        self.wait_for_screen(r"mean \S+ W")
        self.keys("?")
        self.wait_for_screen("close this help")
        self.keys("Escape")
        self.wait_for_screen("cpu0")
        self.keys("q")
        self.assertEnded(0)

    def curve_rows(self, screen):
        """Number of screen lines of each device's curve."""
        rows, device = {}, None
        for line in screen.splitlines():
            named = re.match(r"(cpu\d|psys|host|total|processes)\b", line)
            device = named[1] if named else device
            if re.search("[▁-█]", line) and not line.startswith("  util"):
                rows[device] = rows.get(device, 0) + 1
        return rows

    def test_charts_fill_the_screen(self):
        self.open(columns=200, rows=60)
        self.wait_for_screen(r"cpu1[^█]*█")
        for columns, rows, least, most in ((200, 60, 14, 36), (80, 24, 2, 7), (40, 10, 1, 1)):
            with self.subTest(f"{columns}x{rows}"):
                self.tmux("resize-window", "-x", str(columns), "-y", str(rows))
                screen = self.wait_for_screen(rf"\Aipw energy.*(\n.*){{{rows - 2}}}\nq quit.*\n\Z",
                                           curves=("cpu0", "cpu1"))
                heights = self.curve_rows(screen)
                self.assertEqual(set(heights) - {"total"}, {"cpu0", "cpu1"}, screen)
                for device in ("cpu0", "cpu1"):
                    self.assertTrue(least <= heights[device] <= most, screen)
                lines = screen.splitlines()
                self.assertLessEqual(len(lines), rows)
                self.assertLessEqual(max(map(len, lines)), columns)
                self.assertTrue(lines[0].startswith("ipw energy"))  # nothing wrapped or scrolled
                self.assertIn("q quit", lines[rows - 1])
                axes = [line for line in lines if re.search(r"╵-\d+ s.*now", line)]
                self.assertEqual(len(axes), 2 if heights["cpu0"] >= 3 else 0, screen)

    def test_dead_sensor_is_last_with_reason(self):
        self.intel = self.machine(Intel, 0, 40)
        self.open(columns=120, rows=40)
        screen = self.wait_for_screen(r"cpu1[\s\S]*counter\n[\s\S]*cpu0 .*did not change", curves=("cpu1",))
        self.assertEqual(set(self.curve_rows(screen)) - {"total"}, {"cpu1"}, screen)

    def test_large_screen_lists_processes(self):
        """One of two processes uses half of the CPU time: half of the power is attributed to it."""
        ticks = Ramp(1000, 100)
        self.intel.put("/proc/stat", f"{FAKE}cpu  {ticks} 0 0 {ticks} 0 0 0 0 0 0")
        for pid, name, used in ((100, "llama-server", ticks), (200, "postgres", 1000)):
            self.intel.put(f"/proc/{pid}/stat", f"{FAKE}{pid} ({name}) S 1 1 1 0 -1 0 0 0 0 0 {used} 0 0 0 20 0 1 0 5 6 7")
            self.intel.put(f"/proc/{pid}/comm", name)
        self.open(columns=120, rows=40)
        screen = self.wait_for_screen("llama-server")
        self.assertRegex(screen, r"attributed by their share")
        self.assertRegex(screen, r" 100 +cpu +(4\d|5\d)\.\d % +\S+ m?W +\S+ m?J +llama-server")
        self.assertNotIn("postgres", screen)
        self.assertRegex(screen, r"cpu +(4\d|5\d)\.\d % +\S+ m?W +- +idle, others")

    def test_ctrl_c_exits_130(self):
        self.open()
        self.wait_for_screen("total")
        self.keys("C-c")
        self.assertEnded(130)

    def test_sigterm_exits_143(self):
        self.open()
        self.wait_for_screen("total")
        os.kill(self.program(), signal.SIGTERM)
        self.assertEnded(143)

    def test_crash_restores_terminal(self):
        self.open()
        self.wait_for_screen("total")
        os.kill(self.program(), signal.SIGSEGV)
        self.assertEnded(139, totals=False)

    def test_continues_after_sigstop(self):
        self.open()
        self.wait_for_screen("total")
        os.kill(self.program(), signal.SIGSTOP)
        self.wait_for_screen("EXIT 147")  # the terminal is still in raw mode, which a shell can handle
        self.keys("fg", "Enter")
        self.wait_for_screen(r"\Aipw energy[\s\S]*scroll\s*\Z")
        self.keys("q")
        self.wait_for_screen(r"device +energy")

    def test_continues_after_ctrl_z(self):
        self.open()
        self.wait_for_screen("total")
        self.keys("C-z")
        stopped = self.wait_for_screen(r"MARK[\s\S]*EXIT 148")
        self.assertNotIn("q quit", stopped)
        self.keys("fg; echo EXIT $?", "Enter")
        self.wait_for_screen(r"\Aipw energy[\s\S]*q quit")
        self.keys("q")
        self.wait_for_screen(r"MARK[\s\S]*EXIT 0")

    def test_ascii_without_color(self):
        self.open(LC_ALL="C", NO_COLOR="1")
        screen = self.wait_for_screen(r"total[\s\S]*counter(?! did)", "-e")
        self.assertTrue(screen.isascii(), screen)
        self.assertNotIn("\033[", screen)
        self.assertIn("+-", screen)
        self.keys("q")
        self.wait_for_screen("EXIT 0")

    def test_dumb_terminal_streams_the_table(self):
        self.open(TERM="dumb")
        self.wait_for_screen(r"MARK\n(.*\n)*time +device[\s\S]*total[\s\S]*total")
        self.keys("C-c")
        self.wait_for_screen("EXIT 130")


class MigTest(MachineTest):
    def test_mig_instances_share_power_of_gpu(self):
        """50 % of 2 of 7 slices, 10 % of one, and an instance that reports nothing: the rest is unattributed, and the
        sum is the GPU's."""
        machine = self.machine(Nvidia, "power 0 constant 300\ntick * 0.02\nmig 0 3\nmig_instance 0 0 2 50 2g.35gb\n"
                               "mig_instance 0 1 1 10 1g.18gb\nmig_instance 0 2 1 nan 1g.18gb\n")
        done = ipw(machine, "--json", "-i", "1", "-n", "3")
        row = json.loads(done.stdout.splitlines()[-1])
        devices = {d["id"]: d for d in row["devices"]}
        self.assertEqual(set(devices), {"gpu0", "gpu0:gi1", "gpu0:gi2", "gpu0:gi3"})
        for key in ("energy", "energy_since_start"):
            card = devices["gpu0"][key]["joules"]
            for name, share in (("gpu0:gi1", 1 / 7), ("gpu0:gi2", 0.1 / 7)):
                energy = devices[name][key]
                self.assertAlmostEqual(energy["joules"], card * share, delta=1e-6 * card)
                self.assertEqual(energy["method"], "estimated")
                self.assertIn("SM activity", energy["source"])
                self.assertGreater(energy["plus_minus"], 0.3 * energy["joules"])
            self.assertIsNone(devices["gpu0:gi3"][key]["joules"])
            self.assertIn("no SM activity", devices["gpu0:gi3"][key]["note"])
        card = devices["gpu0"]["energy"]["joules"]
        parts = {part["name"]: part["energy"]["joules"] for part in devices["gpu0"]["parts"]}
        self.assertAlmostEqual(devices["gpu0:gi1"]["energy"]["joules"] + devices["gpu0:gi2"]["energy"]["joules"]
                               + parts["mig.unattributed"], card, places=9)
        self.assertEqual(row["energy"]["joules"], card)
        self.assertFalse(devices["gpu0:gi1"]["in_total"])
        sources = {d["activity_source"] for line in done.stdout.splitlines() for d in json.loads(line)["devices"]
                   if d["id"] == "gpu0:gi1"}
        self.assertEqual(sources - {None}, {"gpm"})  # the first second may have no mean yet
        self.assertTrue(devices["gpu0"]["facts"]["mig_gi1"].startswith("2g.35gb MIG-"))
        doctor = subprocess.run([IPW, "doctor"], env=machine.environment(), text=True, stdout=subprocess.PIPE)
        self.assertIn("sm_active", doctor.stdout)


if __name__ == "__main__":
    main_parallel()
