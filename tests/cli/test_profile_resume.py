#!/usr/bin/env python3
# test: real time, asan
"""ipw profile interrupted, killed and resumed; and its progress display."""

import fcntl
import json
import os
import pty
import random
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import unittest
from collections import Counter
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from machines import Intel  # noqa: E402
from profiling import MODEL, TEXT, ProfileTest, Run  # noqa: E402
from program import IPW, ipw  # noqa: E402


class RepeatedRuns(ProfileTest):
    """--repeat-runs: the whole run several times."""

    def runs(self):
        return {path.name: Run(path) for path in sorted(self.out.iterdir()) if path.is_dir()}

    def asked(self):
        return sum(q.startswith("question") for q in self.service.questions())

    def repeats(self, *more, code=0, count=3, **options):
        done = ipw(self.on, *self.arguments("--json", "--name", "x", "--repeat-runs", count, *more, **options))
        self.assertEqual(done.returncode, code, done.stderr)
        self.done = done
        return json.loads(done.stdout) if done.stdout else None

    def test_each_repeat_is_a_separate_run(self):
        report = self.repeats("--idle", "0.1")
        runs = self.runs()
        self.assertEqual(list(runs), ["x_r1", "x_r2", "x_r3"])
        self.assertEqual([Path(one["output_dir"]).name for one in report["repeats"]], list(runs))
        self.assertEqual(self.asked(), 12)
        for number, run in enumerate(runs.values(), 1):
            self.assertEqual((run.lines()[0]["repeat_group"], run.lines()[0]["repeat_number"]),
                             (report["repeat_group"], number))
            self.assertEqual(run.summary()["repeat_group"], report["repeat_group"])
            self.assertEqual(run.summary()["profiler_config"]["idle_s"], 0.1)
            self.assertGreaterEqual(run.summary()["ipw"]["conditions"]["idle_tries"], 1)  # one baseline each
            self.assertIn(f"run {number} of 3", self.done.stderr)

    def test_existing_repeats_are_refused_or_replaced(self):
        self.repeats(count=2)
        first = self.runs()["x_r1"].lines()[0]["repeat_group"]
        self.repeats(count=2, code=2)
        self.assertIn("x_r1", self.done.stderr)
        self.repeats("--overwrite", count=2)
        groups = {run.lines()[0]["repeat_group"] for run in self.runs().values()}
        self.assertEqual(len(groups), 1)
        self.assertNotIn(first, groups)

    def test_resume_adds_repeats(self):
        report = self.repeats(count=2)
        before = {name: (run.path / "records.jsonl").read_bytes() for name, run in self.runs().items()}
        again = self.repeats("--resume", count=3)
        self.assertEqual(again["repeat_group"], report["repeat_group"])
        self.assertEqual(len(again["repeats"]), 3)
        self.assertEqual(again["repeats"][0]["energy"], report["repeats"][0]["energy"])
        for name, journal in before.items():  # finished ones are unchanged
            self.assertEqual((self.runs()[name].path / "records.jsonl").read_bytes(), journal)
        self.assertEqual({run.lines()[0]["repeat_group"] for run in self.runs().values()}, {report["repeat_group"]})
        self.assertEqual(self.asked(), 12)

    def test_interrupted_repeats_are_resumed(self):
        dataset = self.numbered(12)
        process = self.start("--name", "x", "--repeat-runs", "2", scenario="normal:gap_ms=60", dataset=dataset)
        self.until(lambda: self.asked() >= 14, "the second run")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, err)
        report = json.loads(out)
        self.assertEqual([one["queries"] < 12 for one in report["repeats"]], [False, True])
        self.assertTrue(self.runs()["x_r2"].summary()["ipw"]["interrupted"])
        again = self.repeats("--resume", count=3, dataset=dataset)
        self.assertEqual([one["completed"] for one in again["repeats"]], [12, 12, 12])
        self.assertEqual(again["repeat_group"], report["repeat_group"])
        self.assertEqual(self.runs()["x_r2"].summary()["repeat_group"], report["repeat_group"])
        self.assertEqual([run.summary()["ipw"]["starts"] for run in self.runs().values()], [1, 2, 1])

    def test_single_run_has_no_repeat_group(self):
        self.profile("--name", "y")
        self.assertNotIn("repeat_group", self.run.lines()[0])
        self.assertIsNone(self.run.summary()["repeat_group"])


class Signals(ProfileTest):
    def begin(self, scenario, *more, dataset=None):
        process = self.start("--concurrency", 3, *more, scenario=scenario,
                             dataset=dataset or self.numbered(30))
        self.until(lambda: self.asked() >= 3, "three queries in flight")
        return process

    def asked(self):
        return sum(q.startswith("question") for q in self.service.questions())

    def ended(self, process, number=signal.SIGINT):
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 128 + number, err)
        report = json.loads(out)
        self.assertTrue(report["interrupted"])
        self.run = Run(report["output_dir"])
        names = {p.name for p in self.run.path.iterdir()}
        self.assertLessEqual({"records.jsonl", "summary.json", "dataset_info.json", "state.json",
                              "data-00000-of-00001.arrow"}, names)
        self.assertEqual(self.run.summary()["total_queries"], report["queries"])
        self.assertTrue(self.run.summary()["ipw"]["interrupted"])
        self.assertEqual(self.run.lines()[-1]["kind"], "end")
        return report

    def test_first_signal_completes_queries_in_flight(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.begin("normal:gap_ms=150", "--overwrite")
            process.send_signal(number)
            report = self.ended(process, number)
            self.assertEqual(report["queries"], self.asked())
            self.assertTrue(3 <= report["completed"] < 30)
            self.assertEqual(report["failed"], 0)
            self.assertEqual(set(self.run.answers().values()), {TEXT})
            self.service.requests.clear()

    def test_second_signal_aborts_queries(self):
        hanging = self.dataset(*(f"question {n} [hang]" for n in range(9)))
        process = self.begin("mixed", dataset=hanging)
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGTERM)  # two equal signals would merge while the first is pending
        report = self.ended(process)
        self.assertEqual((report["queries"], report["failed"]), (0, 0))  # as if never sent

    def test_third_signal_ends_immediately(self):
        hanging = self.dataset("question 0", *(f"question {n} [hang]" for n in range(1, 9)))
        process = self.begin("mixed", dataset=hanging)
        self.until(lambda: b'"kind":"query"' in (self.directory() / "records.jsonl").read_bytes(),
                   "an answer")
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):  # two equal pending signals would merge
            process.send_signal(number)
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, out), (128 + signal.SIGHUP, ""), err)
        self.assertIn("interrupted three times", err)
        names = {path.name for path in self.directory().iterdir()}
        self.assertEqual(names, {".lock", "records.jsonl", "spans.jsonl", "samples.csv"})
        report = self.profile("--resume", dataset=hanging)
        self.assertEqual((report["queries"], report["completed"]), (9, 9))
        self.assertEqual(self.service.times("question 0"), 1)

    def test_signal_during_warm_up_and_idle_power(self):
        process = self.start("--warmup-queries", 3, scenario="normal:gap_ms=300")
        self.until(lambda: self.asked() > 0, "a warm-up query")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, err)
        self.out = self.on.root / "rest"
        process = self.start("--idle", 50)
        self.until(lambda: self.out.exists() and list(self.out.glob("*/.lock")), "the directory")
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM, err)

    def test_signal_during_health_check(self):
        process = self.start(scenario="hang:after=request,all=1")
        self.until(lambda: self.service.requests, "the first request")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, err)
        self.assertFalse(self.out.exists())

    def test_query_that_spans_a_suspension_is_marked(self):
        process = self.start("--concurrency", 1, scenario="normal:gap_ms=60", dataset=self.numbered(8))
        self.until(lambda: self.asked() >= 3, "the third query")
        process.send_signal(signal.SIGSTOP)
        time.sleep(1.5)
        process.send_signal(signal.SIGCONT)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, err)
        records = Run(self.directory()).records()
        paused = [r for r in records.values() if r["ipw"]["paused"]]
        self.assertEqual(len(paused), 1, [r["ipw"]["paused"] for r in records.values()])
        latency = {r["ipw"]["key"]: r["model_metrics"][MODEL]["latency_metrics"]["total_query_seconds"]
                   for r in records.values()}
        self.assertGreater(latency[paused[0]["ipw"]["key"]], 1.4)
        quality = ipw(None, "analyze", self.directory(), "--analysis", "quality")
        self.assertIn("1 of 8 queries include time in which ipw was", quality.stdout)

    def test_interrupted_run_is_resumed(self):
        process = self.begin("normal:gap_ms=50")
        process.send_signal(signal.SIGINT)
        first = self.ended(process)
        report = self.profile("--resume", "--concurrency", 3, dataset=self.numbered(30))
        self.assertEqual((report["queries"], report["completed"]), (30, 30))
        self.assertFalse(report["interrupted"])
        self.assertEqual(self.asked(), 30)
        self.assertGreater(first["completed"], 0)


class Killed(ProfileTest):
    """SIGKILL at a random time: no completed query is lost or repeated."""

    ROWS = 60

    def test_resumes_after_sigkill(self):
        for seed in range(5):
            with self.subTest(seed):
                self.kill_and_resume(random.Random(seed))

    def kill_and_resume(self, rng):
        self.service.requests.clear()
        dataset = self.numbered(self.ROWS)
        kills = 0
        for attempt in range(3):
            word = "--resume" if attempt else "--overwrite"
            process = self.start(word, "--concurrency", 4, scenario="normal:gap_ms=5", dataset=dataset)
            goal = len(self.service.questions()) + rng.randrange(2, 15)
            self.until(lambda: len(self.service.questions()) >= goal or process.poll() is not None,
                       "some queries")
            time.sleep(rng.random() * 0.05)
            process.kill()
            process.communicate(timeout=60)
            kills += 1
        # Queries in the journal at the last kill must not be sent again.
        path = self.directory() / "records.jsonl"
        whole = path.read_bytes().rpartition(b"\n")[0].decode().split("\n")
        done = {line["problem"] for line in map(json.loads, whole) if line["kind"] == "query"}
        before = len(self.service.requests)
        report = self.profile("--resume", "--concurrency", 4, dataset=dataset)
        again = [json.loads(r["body"])["messages"][-1]["content"]
                 for r in self.service.requests[before:] if r["method"] == "POST"]
        self.assertFalse(done & set(again))
        self.assertEqual((report["queries"], report["completed"]), (self.ROWS, self.ROWS))
        self.assertEqual(sorted(self.run.records()), [f"q{n:06d}" for n in range(self.ROWS)])
        keys = Counter(line["key"] for line in self.run.lines() if line["kind"] == "query")
        self.assertEqual(set(keys.values()), {1})
        # At most the queries in flight at each kill are repeated.
        asked = [q for q in self.service.questions() if q.startswith("question")]
        self.assertLessEqual(len(asked) - self.ROWS, 4 * kills)
        self.assertEqual(len(set(asked)), self.ROWS)
        self.assertEqual(self.run.summary()["ipw"]["starts"], kills + 1)
        ends = [line["start"] for line in self.run.lines() if line["kind"] == "end"]
        self.assertEqual(ends, [kills + 1])  # a killed start has no end line


class Resuming(ProfileTest):
    def test_truncated_last_line_is_dropped(self):
        self.profile()
        journal = self.directory() / "records.jsonl"
        whole = journal.read_bytes()
        journal.write_bytes(whole + b'{"kind":"query","key":"q0000')
        report = self.profile("--resume")
        self.assertEqual(report["queries"], 4)
        self.assertTrue(journal.read_bytes().startswith(whole))
        self.assertEqual(len(self.run.records()), 4)

    def test_failed_queries_are_retried(self):
        rows = self.dataset("question 0", "question 1 [status:code=500]", "question 2")
        report = self.profile("--max-queries", 3, scenario="mixed", dataset=rows)
        self.assertEqual((report["completed"], report["failed"]), (2, 1))
        report = self.profile("--resume", dataset=rows)
        self.assertEqual((report["queries"], report["completed"], report["failed"]), (3, 3, 0))
        self.assertEqual(self.service.times("question 0"), 1)

    def test_complete_run_is_unchanged(self):
        first = self.profile("--grader", "exact")
        asked = len(self.service.questions())
        again = self.profile("--grader", "exact", "--resume")
        self.assertEqual(len([q for q in self.service.questions()[asked:]
                              if q.startswith("question")]), 0)
        for key in ("queries", "completed", "accuracy", "output_tokens", "time_to_first_token_s"):
            self.assertEqual(again[key], first[key], key)

    def test_resume_with_more_and_fewer_queries(self):
        self.profile("--max-queries", 2, dataset=self.numbered(6))
        report = self.profile("--resume", "--max-queries", 5, dataset=self.numbered(6))
        self.assertEqual(report["queries"], 5)
        report = self.profile("--resume", "--max-queries", 3, dataset=self.numbered(6))
        self.assertEqual(report["queries"], 5)  # existing ones are kept

    def test_resume_rejects_changed_settings(self):
        self.profile("--system", "a", "--param", "max_tokens=5")
        before = (self.directory() / "records.jsonl").read_bytes()
        for changed, word in ((("--system", "b", "--param", "max_tokens=5"), "system"),
                              (("--param", "max_tokens=5"), "system"),
                              (("--system", "a", "--param", "max_tokens=6"), "request_params"),
                              (("--system", "a"), "request_params"),
                              (("--system", "a", "--param", "max_tokens=5", "--template", "{id}"),
                               "template"),
                              (("--system", "a", "--param", "max_tokens=5", "--repeat", "2"),
                               "repeat"),
                              (("--system", "a", "--param", "max_tokens=5", "--dataset-param",
                                "offset=1"), "dataset_params")):
            self.profile("--resume", *changed, code=2)
            self.assertErrorMessage("cannot resume", word)
        self.assertEqual((self.directory() / "records.jsonl").read_bytes(), before)

    def test_resume_rejects_changed_dataset(self):
        rows = [f"question {n}" for n in range(6)]
        self.profile("--max-queries", 2, dataset=self.dataset(*rows))
        before = (self.directory() / "records.jsonl").read_bytes()
        self.profile("--resume", dataset=self.dataset(*rows[:5], "another"), code=2)
        self.assertErrorMessage("cannot resume", "the dataset has changed")
        self.assertEqual((self.directory() / "records.jsonl").read_bytes(), before)
        report = self.profile("--resume", dataset=self.dataset(*rows))
        self.assertEqual(report["completed"], 6)

    def test_resume_without_run_starts_a_new_one(self):
        self.assertEqual(self.profile("--resume")["queries"], 4)


class Terminal:
    """A process on a pseudo-terminal of 100 columns."""

    def __init__(self, arguments, environment, columns=100):
        self.screen = b""
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.process = subprocess.Popen([IPW, *map(str, arguments)], stdin=slave, stderr=slave,
                                        stdout=subprocess.DEVNULL, env=environment)
        os.close(slave)

    def read(self, until=None, timeout_s=60):
        """Reads until a text appears, or the process ends."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline and not (until and until in self.text()):
            if select.select([self.master], [], [], 0.2)[0]:
                try:
                    self.screen += os.read(self.master, 65536)
                except OSError:  # the other end is closed
                    break
        return self.text()

    def text(self):
        return self.screen.decode(errors="replace")

    def send_line(self, line):
        os.write(self.master, line.encode())

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.master)


class OnATerminal(ProfileTest):
    def terminal(self, *more, machine=None, env=None, **options):
        environment = {**(machine or self.on).environment(), "TERM": "xterm", "LANG": "C.UTF-8",
                       **(env or {})}
        if not (env or {}).get("NO_COLOR"):
            environment.pop("NO_COLOR", None)
        terminal = Terminal(self.arguments(*more, **options), environment)
        self.addCleanup(terminal.close)
        return terminal

    def test_progress_bar_has_rate_time_power_and_energy(self):
        machine = self.machine(Intel, 50)
        terminal = self.terminal("--concurrency", 2, "--max-queries", 30, machine=machine,
                                 scenario="normal:gap_ms=40", dataset="builtin")
        shown = terminal.read()
        self.assertEqual(terminal.process.wait(), 0, shown)
        frames = [f for f in shown.split("\r\x1b[K") if f.startswith("queries ")]
        self.assertTrue(frames, shown)
        full = [f for f in frames if re.search(
            r"\[[^\]]+\] \d+/30(?: \(\d+ unread\))?  [\d.]+/s  .+ left  .*W  .*tok/s  .*J/tok", f)]
        self.assertTrue(full, frames[-3:])
        self.assertRegex(frames[-1], r"\(\d+ unread\)")  # the server's words are no answers
        for frame in frames:
            self.assertLess(len(frame.rstrip("\r\n").split("\r")[0].split("\n")[0]), 101)
        self.assertIn("energy of 30 queries", shown)

    def test_no_progress_bar_without_color(self):
        terminal = self.terminal(env={"NO_COLOR": "1"})
        shown = terminal.read()
        self.assertEqual(terminal.process.wait(), 0, shown)
        self.assertNotIn("\x1b", shown)
        self.assertIn("energy of 4 queries", shown)

    def test_plain_lines_without_terminal(self):
        self.profile("--concurrency", 2)
        self.assertNotIn("\x1b", self.done.stderr)
        self.assertNotIn("\r", self.done.stderr)

    def test_asks_before_replacing_a_run(self):
        self.profile()
        before = (self.directory() / "records.jsonl").read_bytes()
        for answer in ("n\n", "\n", "\x04"):
            terminal = self.terminal()
            self.assertIn("Replace it? [y/N]", terminal.read("[y/N] "))
            terminal.send_line(answer)
            shown = terminal.read()
            self.assertEqual(terminal.process.wait(), 2, shown)
            self.assertEqual((self.directory() / "records.jsonl").read_bytes(), before)
        terminal = self.terminal("--max-queries", 1)
        terminal.read("[y/N] ")
        terminal.send_line("y\n")
        shown = terminal.read()
        self.assertEqual(terminal.process.wait(), 0, shown)
        self.assertEqual(len(Run(self.directory()).records()), 1)
        self.assertEqual(Run(self.directory()).answers()["q000000"], TEXT)


if __name__ == "__main__":
    unittest.main()
