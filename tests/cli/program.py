"""Running ipw from a test: to its end, or with a command that does what the test tells it."""

import io
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path

IPW = os.environ.get("IPW", "build/ipw")
# A little less than ctest's for tests that watch the clock, so that what hangs is named; others may wait.
TIMEOUT_S = float(os.environ.get("IPW_TEST_TIMEOUT_S", 170))
# Every start of a sanitized program takes ten times as long: the same path once is enough there.
SANITIZED = "IPW_SANITIZED" in os.environ


# A shell that starts something in the background has it ignore SIGINT, which ipw and its commands would inherit.
signal.signal(signal.SIGINT, signal.default_int_handler)


def ipw(machine, *arguments, env=None, **options):
    """Runs ipw to its end; machine may be None for commands that need none."""
    environment = {**(machine.environment() if machine else os.environ), **(env or {})}
    options = {"text": True, "capture_output": True, "timeout": TIMEOUT_S,
               "stdin": None if "input" in options else subprocess.DEVNULL, **options}
    return subprocess.run([IPW, *map(str, arguments)], env=environment, **options)


def await_condition(condition, what):
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.01)


def await_signals(process):
    """Until ipw takes signals itself, instead of dying by them.  Those that it waits for in sigtimedwait are not shown as
    blocked meanwhile; SIGCHLD is blocked with them, and where that is waited for, too, the kernel says where it waits."""
    def takes_them():
        lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
        status = dict(line.split(":", 1) for line in lines)
        assert not status["State"].strip().startswith("Z"), "it has ended"
        taken = int(status["SigBlk"], 16) | int(status["SigCgt"], 16)
        return (taken >> (signal.SIGINT - 1) & 1 or int(status["SigBlk"], 16) >> (signal.SIGCHLD - 1) & 1
                or "sigtimedwait" in Path(f"/proc/{process.pid}/wchan").read_text())
    await_condition(takes_them, "a program that takes signals")


class Stalls(threading.Thread):
    """How long this machine stopped its programs, as a thread sees it that sleeps 10 ms at a time: an outside measure of
    how late readings may have been."""

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
    """A command that runs a Python script: no shell's version matters."""
    return [sys.executable, "-S", "-c", script, *map(str, arguments)]


class Led:
    """`ipw run ... -- cat`: runs for as long as the test likes.  A line that comes back proves
    that the command is running, so whatever the test does next happens inside the run."""

    def __init__(self, machine, *options, command=("cat",), env=None):
        self.report, self.stderr = machine.root / "report.json", ""
        self.process = subprocess.Popen(
            [IPW, "run", "--json", "-o", self.report, *map(str, options), "--", *command],
            env={**machine.environment(), **(env or {})}, text=True, bufsize=1,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.say("ready")

    def say(self, line):
        self.process.stdin.write(line + "\n")
        answer = self.process.stdout.readline()
        assert answer == line + "\n", (answer, self.process.stderr.read())

    def await_words(self, words):
        """Until ipw says them."""
        while words not in self.stderr:
            line = self.process.stderr.readline()
            assert line, (words, self.stderr)
            self.stderr += line

    def end(self):
        """Lets the command end; gives the report."""
        self.process.stdin.close()
        return self.finish()

    def finish(self):
        """Waits for ipw; gives the report."""
        self.stderr += self.process.stderr.read()
        self.process.stdout.close()
        self.process.stderr.close()
        self.code = self.process.wait(TIMEOUT_S)
        return json.loads(self.report.read_text())


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
        """`ipw run --json ...` to its end; gives the report and the finished process."""
        report = machine.root / "report.json"
        done = ipw(machine, "run", "--json", "-o", report, *arguments, **options)
        return json.loads(report.read_text()), done


def device(report, name):
    return next(d for d in report["devices"] if d["id"] == name)


def run_share(name):
    """One test of the script, in a process of its own: what it printed, whether it was fine, and why it did not run."""
    out = io.StringIO()
    suite = unittest.defaultTestLoader.loadTestsFromName(name, sys.modules["__main__"])
    result = unittest.TextTestRunner(out, verbosity=2).run(suite)
    skipped = None if result.testsRun else "".join(reason for _, reason in result.skipped)
    return out.getvalue(), result.wasSuccessful(), skipped


def main_side_by_side(at_once=4):
    """unittest.main for tests that mostly wait, and compare no figure that their neighbors could change."""
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])
    names = [test.id().removeprefix("__main__.") for group in suite for test in group]
    if len(sys.argv) > 1:
        unittest.main()
    results = []
    with multiprocessing.get_context("fork").Pool(at_once, maxtasksperchild=1) as pool:
        for text, fine, skipped in pool.imap_unordered(run_share, names, chunksize=1):
            # At once: what ctest stops after its limit has shown everything but the tests that hang.
            print(text if not fine else text.split("\n\n-----")[0].rstrip(), file=sys.stderr, flush=True)
            results.append((text, fine, skipped))
    wrong = sum(not fine for _, fine, _ in results)
    print(f"Ran {len(results)} tests, {wrong} of them failed", file=sys.stderr)
    if results and all(skipped for _, _, skipped in results):
        print("skipped:", results[0][2])
        sys.exit(77)
    sys.exit(1 if wrong or not results else 0)
