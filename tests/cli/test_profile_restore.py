#!/usr/bin/env python3
# test: real time
"""ipw profile killed and resumed on a machine of known power: settled energies are unchanged, others are null with a
reason, and known ones still add up."""

import json
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from machines import IntelNvidia, Intel  # noqa: E402
from profiling import MODEL, ProfileTest, Run, merge_record  # noqa: E402
from program import main_parallel  # noqa: E402

WATTS = 50
ROWS = 60  # more than one start completes before it is killed
SLOW, QUICK = "normal:gap_ms=30", "normal:gap_ms=2"
SETTLE_S = 1.0  # maximum time between two settlings
SLACK_S = 1.0  # allowance for a busy machine
NOTE = "the run was killed before its energy was settled"


class KillTest(ProfileTest):
    def kill(self, process):
        self.killed_at = time.time()
        process.kill()
        process.communicate(timeout=60)
        return Run(self.directory())

    def whole_lines(self, name="records.jsonl"):
        """Complete lines of a file that may end in a truncated one."""
        path = self.directory() / name
        return [json.loads(line) for line in path.read_text().split("\n")[:-1]]

    def ended(self):
        """Keys of queries in the journal."""
        found = list(self.out.glob("*/records.jsonl"))
        return [line["key"] for line in self.whole_lines() if line["kind"] == "query"] if found else []

    def kinds(self):
        found = list(self.out.glob("*/records.jsonl"))
        return [line["kind"] for line in self.whole_lines()] if found else []

    def kill_while(self, process, holds, what):
        """Kills the process while a condition holds.  It is stopped for the check, because time may pass between a
        check and the kill."""
        while True:
            self.until(lambda: holds() or process.poll() is not None, what)
            self.assertIsNone(process.poll(), f"it ended before there were {what}")
            process.send_signal(signal.SIGSTOP)
            if holds():
                return self.kill(process)
            process.send_signal(signal.SIGCONT)

    def kill_after(self, least, more_s, *options, machine=None, **scenario):
        """Kills a start of ipw `more_s` after at least `least` more queries have ended."""
        least += len(self.ended())
        process = self.start(*options, machine=machine, **scenario)
        self.until(lambda: len(self.ended()) >= least or process.poll() is not None, "queries")
        time.sleep(more_s)
        self.assertIsNone(process.poll(), "it ended before it could be killed")
        return self.kill(process)

    def settled(self):
        """Merged energy lines of the journal by key."""
        found = {}
        for line in self.whole_lines():
            if line["kind"] == "energy" and "energy" in line["ipw"]:
                merge_record(found.setdefault(line["key"], {}), line)
        return found

    def assertAddsUp(self, report):
        joules = report["joules"]
        parts = sum(joules[part] or 0 for part in ("queries", "failed", "idle", "unattributed"))
        self.assertAlmostEqual(parts / report["energy"]["joules"], 1, delta=1e-3)
        self.assertLess(report["conservation_error"], 1e-3)
        known = [r["ipw"]["energy"]["joules"] for r in self.run.records().values()]
        self.assertAlmostEqual(sum(j for j in known if j is not None) / joules["queries"], 1, delta=1e-9)

    def assertKept(self, before):
        """Settled energies are unchanged to the last digit."""
        records = self.run.records()
        for key, line in before.items():
            self.assertWithin(records[key], {**line, "kind": "query"}, key)

    def assertWithin(self, ours, theirs, where):
        if isinstance(theirs, dict):
            for key in theirs:
                self.assertWithin(ours[key], theirs[key], f"{where}.{key}")
        else:
            self.assertEqual(ours, theirs, where)

    def assertUnknown(self, report, keys):
        """Exactly these queries have no energy, each with a reason, which is in the journal once."""
        records = self.run.records()
        unknown = {key for key in records if records[key]["ipw"]["energy"]["joules"] is None}
        self.assertEqual(unknown, set(keys))
        for key in unknown:
            self.assertEqual(records[key]["ipw"]["energy"]["note"], NOTE)
            self.assertIsNone(records[key]["ipw"]["energy"]["method"])
        self.assertEqual(report["energy_known"], report["completed"] - len(unknown))
        lines = Counter(line["key"] for line in self.run.lines()
                        if line["kind"] == "energy" and "energy" in line["ipw"])
        self.assertEqual({key: lines[key] for key in records}, dict.fromkeys(records, 1))


class Killed(KillTest):
    def assertFewUnsettled(self, start, unsettled, concurrency):
        """Unsettled at the kill are only queries that had just ended, or that overlapped such a query or one in
        flight."""
        spans = {span["key"]: span for span in self.whole_lines("spans.jsonl")
                 if span["span"] == "request" and span["start"] == start}
        runs = [line for line in self.whole_lines() if line["kind"] == "run"]
        killed_s = self.killed_at - runs[start - 1]["started_at"]
        longest = max(span["to_s"] - span["from_s"] for span in spans.values())
        settled_s = killed_s - SETTLE_S - SLACK_S - 2 * longest
        recent = [key for key, span in spans.items() if span["to_s"] > settled_s]
        self.assertLessEqual(unsettled, set(recent))
        self.assertLessEqual(len(unsettled), len(recent) + concurrency)

    def check(self, concurrency, rng, kills):
        machine = self.machine(Intel, WATTS)
        options = {"machine": machine, "dataset": self.numbered(ROWS)}
        words = ("--concurrency", concurrency, "--idle", 0.3)
        before, unsettled = set(), set()
        self.out = machine.root / "out"
        with self.service.lock:
            self.service.requests.clear()
        for kill in range(kills):
            self.kill_after(rng.randrange(1, 12), rng.random() * 0.3,
                            *words, *(["--resume"] if kill else []), scenario=SLOW, **options)
            now, energies = set(self.ended()), self.settled()
            new = now - before - set(energies)
            self.assertFewUnsettled(kill + 1, new, concurrency)
            before, unsettled = now, unsettled | new
        asked = len(self.service.questions())
        report = self.profile("--resume", *words, scenario=QUICK, **options)
        again = self.service.questions()[asked:]
        done = {record["problem"] for key, record in self.run.records().items() if key in before}
        self.assertFalse(done & set(again))
        self.assertEqual((report["completed"], report["failed"]), (ROWS, 0))
        self.assertKept(energies)
        self.assertUnknown(report, unsettled)
        self.assertAddsUp(report)
        self.assertIn("did not finish", report["energy"]["note"])
        if new:
            self.assertIn("stays unknown", self.done.stderr)
        ends = [line["start"] for line in self.run.lines() if line["kind"] == "end"]
        self.assertEqual(ends, [kills + 1])
        return len(energies), len(unsettled)

    def check_until_both(self, concurrency, seeds):
        """Repeats with kills at random times until some energies were settled and some were not."""
        settled = unsettled = 0
        for count, seed in enumerate(seeds):
            with self.subTest(seed):
                found = self.check(concurrency, random.Random(seed), 1)
                settled, unsettled = settled + found[0], unsettled + found[1]
            if count > 0 and settled and unsettled:
                return
        self.fail(f"{settled} settled, {unsettled} not")

    def test_killed_with_concurrency_1(self):
        self.check_until_both(1, range(8))

    def test_killed_with_concurrency_4(self):
        self.check_until_both(4, range(100, 108))

    def test_resumed_start_is_killed_too(self):
        self.check(4, random.Random(7), 2)

    def test_killed_while_judging(self):
        machine = self.machine(Intel, WATTS)
        rows = self.dataset(*({"problem": f"question {n} [say:text=yes]", "answer": "yes"}
                              for n in range(24)))
        judge = ("--grader", "judge", "--eval-model", "tiny-3b-chat", "--concurrency", 2)

        def options(gap_ms):
            url = self.service.url(f"judge:head_ms={gap_ms}")
            return (*judge, "--eval-base-url", url), {"scenario": "mixed:head_ms=40", "dataset": rows,
                                                      "machine": machine}
        words, more = options(150)

        def judged():
            """Keys with a verdict, and the settled energies of the judge."""
            lines = self.whole_lines() if self.kinds() else []
            return ({line["key"] for line in lines if line["kind"] == "grade"},
                    {line["key"]: line["ipw"]["judge_energy"] for line in lines
                     if "judge_energy" in line.get("ipw", {})})

        def some_are_not_settled():
            graded, settled = judged()
            return len(graded) >= 3 and graded - set(settled)
        self.kill_while(self.start(*words, **more), some_are_not_settled, "verdicts that are not settled")
        graded, settled = judged()
        asked = len(self.service.questions("judge"))
        words, more = options(20)
        report = self.profile("--resume", *words, **more)
        self.assertEqual((report["correct"], report["energy_known"]), (24, 24))
        again = self.service.questions("judge")[asked:]
        self.assertLessEqual(len([q for q in again if "question" in q]), 24 - len(graded))
        records = self.run.records()
        for key in graded:
            energy = records[key]["ipw"]["judge_energy"]
            metrics = records[key]["model_metrics"][MODEL]["energy_metrics"]
            if key in settled:
                self.assertEqual(energy, settled[key])
                self.assertAlmostEqual(metrics["total_task_cpu_joules"], metrics["judge_cpu_joules"]
                                       + metrics["cpu_per_query_joules"])
            else:
                self.assertEqual((energy["joules"], energy["note"]), (None, NOTE))
                self.assertNotIn("total_task_cpu_joules", metrics)
        known = [records[key]["ipw"]["judge_energy"]["joules"] for key in records]
        self.assertAlmostEqual(report["joules"]["judge"], sum(j for j in known if j is not None))
        self.assertAddsUp(report)


class ModifiedJournal(KillTest):
    """A journal without some of its energies, as after a kill, and one of an older version."""

    def rewrite(self, lines, name="records.jsonl"):
        (self.run.path / name).write_text("".join(json.dumps(line, separators=(",", ":")) + "\n"
                                                  for line in lines))

    def attempts(self):
        return [(line["key"], line["ipw"]["failed_attempts"]) for line in self.run.lines()
                if line["kind"] == "energy" and "failed_attempts" in line["ipw"]]

    def check(self, machine, share):
        words = ("--concurrency", 4, "--idle", 0.4, "--retries", 1, "--decode-weight", 3)
        rows = self.dataset(*(f"question {n} [{'flaky:fails=1,' if n % 5 == 0 else 'normal:'}"
                              f"gap_ms={20 + 3 * n}]" for n in range(16)))
        options = {"machine": machine, "scenario": "mixed", "dataset": rows}
        first = self.profile(*words, **options)
        tries, before, rng, gone = self.attempts(), self.settled(), random.Random(5), set()

        def keeps(line):
            stays = line["kind"] != "end" and (line["kind"] != "energy" or rng.random() < share
                                               or "failed_attempts" in line["ipw"])
            gone.update([] if stays or line["kind"] == "end" else [line["key"]])
            return stays
        self.rewrite([line for line in self.whole_lines() if keeps(line)])
        asked = len(self.service.questions())
        again = self.profile("--resume", *words, **options)
        self.assertFalse([q for q in self.service.questions()[asked:] if q.startswith("question")])
        self.assertTrue(gone)
        self.assertEqual((len(tries), self.attempts()), (4, tries))
        self.assertUnknown(again, gone)
        self.assertKept({key: line for key, line in before.items() if key not in gone})
        self.assertAlmostEqual(again["joules"]["failed"], first["joules"]["failed"])
        if len(gone) < 16:
            self.assertAddsUp(again)
        for key in ("queries", "completed", "output_tokens", "input_tokens"):
            self.assertEqual(again[key], first[key], key)

    def test_some_energies_are_missing(self):
        self.check(self.machine(Intel, 40, 25), 0.4)

    def test_all_energies_are_missing(self):
        self.check(self.machine(Intel, 40, 25), 0)

    def test_some_energies_of_gpus_are_missing(self):
        self.check(self.machine(IntelNvidia), 0.4)

    def test_missing_energy_is_reported_once(self):
        machine = self.machine(Intel, WATTS)
        self.profile(machine=machine, scenario="normal:gap_ms=20")
        lines = [line for line in self.whole_lines()
                 if line["kind"] != "end" and (line["kind"], line.get("key")) != ("energy", "q000002")]
        self.rewrite(lines)
        report = self.profile("--resume", machine=machine)
        self.assertUnknown(report, {"q000002"})
        new = self.run.lines()[len(lines):]
        self.assertEqual([line["kind"] for line in new], ["energy", "run", "end"])
        report = self.profile("--resume", machine=machine)
        self.assertUnknown(report, {"q000002"})
        self.assertEqual([line["kind"] for line in self.run.lines()[len(lines):]],
                         ["energy", "run", "end", "run", "end"])

    def test_a_failed_query_is_retried_and_measured(self):
        """The unsettled first attempt does not affect the second."""
        machine = self.machine(Intel, WATTS)
        rows = self.dataset("question 0", "question 1 [status:code=500,head_ms=50]")
        self.profile(machine=machine, scenario="mixed:gap_ms=20", dataset=rows)
        self.rewrite([line for line in self.whole_lines() if line["kind"] not in ("energy", "end")])
        report = self.profile("--resume", machine=machine, scenario="normal:gap_ms=20", dataset=rows)
        records = self.run.records()
        self.assertIsNone(records["q000000"]["ipw"]["energy"]["joules"])
        self.assertGreater(records["q000001"]["ipw"]["energy"]["joules"], 0)
        self.assertEqual((report["completed"], report["energy_known"]), (2, 1))

    def test_reads_restored_energies_of_older_versions(self):
        """They re-attributed energy after a kill: `restored`, START.ATTEMPT, further lines and spans."""
        machine = self.machine(Intel, WATTS)
        first = self.profile(machine=machine, scenario="normal:gap_ms=20", dataset=self.numbered(3))
        lines = self.whole_lines()
        cut_off = {"joules": 2.5, "plus_minus": 0.1, "plus_minus_statistical": 0, "coverage": 1,
                   "idle_joules": None, "active_joules": None, "method": "counter", "updates": 50,
                   "low_confidence": False, "source": "rapl", "note": None}
        lines[0]["measuring"].update(idle=None, sensors=[{"id": "intel-rapl", "channels": []}])
        end = lines[-1]
        lines.insert(-1, {"kind": "energy", "key": "q000001",
                          "ipw": {"restored": True, "failed_attempts": {"1.1": cut_off}}})
        end.update(restored=True, accounted_joules=end["accounted_joules"] + 2.5)
        end["energy"]["joules"] += 2.5
        lines += [{"kind": "judge", "start": 1, "at_s": 1.5}, {"kind": "judged", "start": 1, "at_s": 2}]
        self.rewrite(lines)
        spans = self.whole_lines("spans.jsonl")
        sent = [{"key": s["key"], "start": 1, "span": "sent", "attempt": 1, "from_s": s["from_s"]}
                for s in spans]
        self.rewrite(sent + spans + [{**sent[0], "span": "broken_off"}], "spans.jsonl")
        report = self.profile("--resume", machine=machine, dataset=self.numbered(3))
        records = self.run.records()
        self.assertIs(records["q000001"]["ipw"]["restored"], True)
        self.assertUnknown(report, set())
        self.assertAlmostEqual(report["joules"]["failed"], first["joules"]["failed"] + 2.5)
        self.assertAlmostEqual(report["joules"]["queries"], first["joules"]["queries"])
        self.assertAlmostEqual(report["energy"]["joules"], first["energy"]["joules"] + 2.5)
        self.assertAddsUp(report)


if __name__ == "__main__":
    main_parallel(jobs=3)
