"""Running ipw from a test, to completion or with a command that the test controls."""

import ctypes
import errno
import fcntl
import io
import json
import multiprocessing
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import unittest
from pathlib import Path

IPW = os.environ.get("IPW", "build/ipw")
# Slightly shorter than ctest's timeout for timed tests, so that a hang is reported by name; untimed tests may wait
# longer.
TIMEOUT_S = float(os.environ.get("IPW_TEST_TIMEOUT_S", 170))
# A sanitized program takes ten times as long to start: each path is tested only once there.
SANITIZED = "IPW_SANITIZED" in os.environ
# A number printed as nan; a temporary folder may have these letters in its random name.
NAN = r"\bnan\b"


# A shell starts background jobs with SIGINT ignored, which ipw and its commands would inherit.
signal.signal(signal.SIGINT, signal.default_int_handler)


def ipw(machine, *arguments, env=None, **options):
    """Runs ipw to completion; machine may be None for commands that need none."""
    environment = {**(machine.environment() if machine else os.environ), **(env or {})}
    options = {"text": True, "capture_output": True, "timeout": TIMEOUT_S,
               "stdin": None if "input" in options else subprocess.DEVNULL, **options}
    return subprocess.run([IPW, *map(str, arguments)], env=environment, **options)


def call_tools(tool, calls, *params, **options):
    """Results of (name, arguments) calls of an agent's tool, as (is_error, text)."""
    program = Path(os.environ.get("IPW_BUILD", "build")) / "tests/tools/tool_call"
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)  # a test may run it as another user
        lines = "".join(f"{name}\t{json.dumps(arguments)}\n" for name, arguments in calls)
        done = subprocess.run([program, folder, tool, *params], input=lines, capture_output=True, text=True,
                              timeout=TIMEOUT_S, **options)
    assert done.returncode == 0, done.stderr
    results = [line.split("\t", 1) for line in done.stdout.splitlines()]
    assert len(results) == len(calls)
    return [(kind == "error", json.loads(text)) for kind, text in results]


def deep_folder(parent, length=1600):
    """A new directory whose path is at least that long."""
    path = str(parent)
    while len(path) < length:
        path += "/" + "d" * max(1, min(100, length - len(path) - 1))
    os.makedirs(path)
    return Path(path)


def without_system_calls(*numbers):
    """A preexec_fn that makes them fail as on a kernel that lacks them."""
    def install():
        # load the number; if it is one of them, ENOSYS; else allow
        code = [(0x20, 0, 0, 0)]
        for number in numbers:
            code += [(0x15, 0, 1, number), (0x06, 0, 0, 0x00050000 | errno.ENOSYS)]
        code.append((0x06, 0, 0, 0x7fff0000))
        filters = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in code))
        program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(code), ctypes.addressof(filters)))
        libc = ctypes.CDLL(None)
        libc.prctl(38, 1, 0, 0, 0)
        libc.prctl(22, 2, program, 0, 0)
    return install


LANDLOCK_CREATE_RULESET = 444


def wait_until(condition, what):
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, f"timeout while waiting for {what}"
        time.sleep(0.01)


def wait_for_signal_handlers(process):
    """Waits until ipw handles signals instead of being killed by them.  While it waits in sigtimedwait, /proc does not
    show those signals as blocked; SIGCHLD is blocked with them, and if ipw waits for that too, the wait channel shows
    it."""
    def handles_signals():
        lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
        status = dict(line.split(":", 1) for line in lines)
        assert not status["State"].strip().startswith("Z"), "the process has ended"
        taken = int(status["SigBlk"], 16) | int(status["SigCgt"], 16)
        return (taken >> (signal.SIGINT - 1) & 1 or int(status["SigBlk"], 16) >> (signal.SIGCHLD - 1) & 1
                or "sigtimedwait" in Path(f"/proc/{process.pid}/wchan").read_text())
    wait_until(handles_signals, "ipw to handle signals")


class StallMonitor(threading.Thread):
    """Measures how long this machine stalled its processes, with a thread that sleeps 10 ms at a time: an independent
    bound on how late sensor readings may have been."""

    def __init__(self):
        super().__init__(daemon=True)
        self.found, self.over = [], threading.Event()
        self.start()

    def run(self):
        before = time.monotonic()
        while not self.over.wait(0.01):
            now = time.monotonic()
            self.found.append((now, now - before - 0.01))
            before = now

    def longest(self, since):
        return max((length for end, length in self.found if end > since), default=0)


def python(script, *arguments):
    """A command that runs a Python script, independent of the shell."""
    return [sys.executable, "-S", "-c", script, *map(str, arguments)]


class EchoRun:
    """`ipw run ... -- cat`: runs until the test ends it.  An echoed line proves that the command is running, so what
    the test does next happens during the measurement."""

    def __init__(self, machine, *options, command=("cat",), env=None):
        self.report, self.stderr = machine.root / "report.json", ""
        self.process = subprocess.Popen(
            [IPW, "run", "--json", "-o", self.report, *map(str, options), "--", *command],
            env={**machine.environment(), **(env or {})}, text=True, bufsize=1,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.send_line("ready")

    def send_line(self, line):
        self.process.stdin.write(line + "\n")
        answer = self.process.stdout.readline()
        assert answer == line + "\n", (answer, self.process.stderr.read())

    def wait_for_message(self, words):
        """Waits until ipw has printed this text."""
        while words not in self.stderr:
            line = self.process.stderr.readline()
            assert line, (words, self.stderr)
            self.stderr += line

    def end(self):
        """Lets the command end; returns the report."""
        self.process.stdin.close()
        return self.finish()

    def finish(self):
        """Waits for ipw; returns the report."""
        self.stderr += self.process.stderr.read()
        self.process.stdout.close()
        self.process.stderr.close()
        self.code = self.process.wait(TIMEOUT_S)
        return json.loads(self.report.read_text())


class Terminal:
    """A program as the foreground process group of a terminal, which sends its signals."""

    def __init__(self, command, environment):
        self.ours, theirs = pty.openpty()
        self.shown = ""
        self.process = subprocess.Popen([str(word) for word in command], env=environment, stdin=theirs, stdout=theirs,
                                        stderr=theirs, start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(theirs)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.ours)

    def read(self):
        """False at the end of all output."""
        try:
            ready, _, _ = select.select([self.ours], [], [], TIMEOUT_S)
            assert ready, ("timeout while waiting for the terminal", self.shown)
            text = os.read(self.ours, 4096).decode()
        except OSError:  # EIO: nobody has it open
            return False
        self.shown += text
        return bool(text)

    def wait_for(self, words):
        while words not in self.shown:
            assert self.read(), (words, self.shown)

    def press_ctrl_c(self):
        os.write(self.ours, b"\x03")

    def wait(self):
        """Its exit status, when no process uses the terminal any more."""
        while self.read():
            pass
        return self.process.wait(TIMEOUT_S)


class MachineTest(unittest.TestCase):
    def machine(self, kind, *arguments, **options):
        machine = kind(*arguments, **options)
        self.addCleanup(machine.close)
        return machine

    def assertUnknown(self, energy):
        for key in ("joules", "plus_minus", "method", "coverage", "idle_joules", "active_joules"):
            self.assertIsNone(energy[key], energy)
        self.assertTrue(energy["note"], energy)

    def run_json(self, machine, *arguments, **options):
        """Runs `ipw run --json ...` to completion; returns the report and the finished process."""
        report = machine.root / "report.json"
        done = ipw(machine, "run", "--json", "-o", report, *arguments, **options)
        return json.loads(report.read_text()), done


def device(report, name):
    return next(d for d in report["devices"] if d["id"] == name)


def run_one_test(name):
    """Runs one test of the script in its own process; returns its output, whether it passed, and the reason if it was
    skipped."""
    out = io.StringIO()
    suite = unittest.defaultTestLoader.loadTestsFromName(name, sys.modules["__main__"])
    result = unittest.TextTestRunner(out, verbosity=2).run(suite)
    skipped = None if result.testsRun else "".join(reason for _, reason in result.skipped)
    return out.getvalue(), result.wasSuccessful(), skipped


def main_parallel(jobs=4):
    """unittest.main in parallel, for tests that mostly sleep and check no figure that other load could change."""
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])
    names = [test.id().removeprefix("__main__.") for group in suite for test in group]
    if len(sys.argv) > 1:
        unittest.main()
    results = []
    with multiprocessing.get_context("fork").Pool(jobs, maxtasksperchild=1) as pool:
        for text, passed, skipped in pool.imap_unordered(run_one_test, names, chunksize=1):
            # Printed immediately: after a ctest timeout, the output has everything but the tests that hang.
            print(text if not passed else text.split("\n\n-----")[0].rstrip(), file=sys.stderr, flush=True)
            results.append((text, passed, skipped))
    failed = sum(not passed for _, passed, _ in results)
    print(f"Ran {len(results)} tests, {failed} of them failed", file=sys.stderr)
    if results and all(skipped for _, _, skipped in results):
        print("skipped:", results[0][2])
        sys.exit(77)
    sys.exit(1 if failed or not results else 0)
