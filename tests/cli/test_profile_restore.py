#!/usr/bin/env python3
"""ipw profile killed and resumed on a machine of known power: every query that had ended has the energy
that the disk can tell."""

import json
import random
import shutil
import sys
import time
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from machines import Both, Intel  # noqa: E402
from profiling import MODEL, ProfileTest, Run, Sums  # noqa: E402
from program import STOOD_STILL_S  # noqa: E402

WATTS = 50
ROWS = 60  # so many that a start has not asked all of them before it is killed
SLOW, QUICK = "normal:gap_ms=30", "normal:gap_ms=2"


class RestoreTest(ProfileTest):
    def kill(self, process):
        process.kill()
        process.communicate(timeout=60)
        return Run(self.directory())

    def whole_lines(self, name="records.jsonl"):
        """Of a file that may end in a torn line."""
        path = self.directory() / name
        return [json.loads(line) for line in path.read_text().split("\n")[:-1]]

    def ended(self):
        """Keys of the queries that are in the journal."""
        found = list(self.out.glob("*/records.jsonl"))
        return [line["key"] for line in self.whole_lines() if line["kind"] == "query"] if found else []

    def kill_after(self, least, more_s, *options, machine=None, **play):
        """Kills a start of ipw when `least` more queries have ended and a moment later."""
        least += len(self.ended())
        process = self.start(*options, machine=machine, **play)
        self.until(lambda: len(self.ended()) >= least or process.poll() is not None, "queries")
        time.sleep(more_s)
        self.assertIsNone(process.poll(), "it ended before it could be killed")
        return self.kill(process)

    def assertAddsUp(self, report):
        joules = report["joules"]
        parts = sum(joules[part] or 0 for part in ("queries", "failed", "idle", "unattributed"))
        self.assertAlmostEqual(parts / report["energy"]["joules"], 1, delta=1e-3)
        self.assertLess(report["conservation_error"], 1e-3)

    @staticmethod
    def samples(run, start):
        """Those of a start, and how far they reach."""
        sums = Sums(run.path / ("samples.csv" if start == 1 else f"samples-{start}.csv"))
        return sums, max(t for t, _ in sums.points["cpu0"]["energy"])

    def assertRestored(self, run, start, keys):
        """As far as the samples of that start reach, its queries have the joules that these tell.
        Gives how many of them were restored."""
        sums, reach = self.samples(run, start)
        spans = {span["key"]: span for span in run.lines("spans.jsonl")
                 if span["span"] == "request" and span["start"] == start}
        records, restored = run.records(), 0
        for key in keys:
            energy = records[key]["ipw"]["energy"]
            begin, end = spans[key]["from_s"], spans[key]["to_s"]
            if begin >= reach - 0.002:
                continue
            restored += records[key]["ipw"].get("restored", False)
            self.assertIsNotNone(energy["joules"], energy)
            self.assertAlmostEqual(energy["coverage"], (min(end, reach) - begin) / (end - begin),
                                   delta=0.03)
            window = sums.between("cpu0", begin, min(end, reach))
            self.assertAlmostEqual(records[key]["ipw"]["window_joules"] / window, 1, delta=0.01)
            self.assertLessEqual(energy["joules"], window * 1.001)
            self.assertGreater(energy["joules"], window / records[key]["ipw"]["company"] * 0.2)
            for field in ("plus_minus", "method", "source"):
                self.assertIsNotNone(energy[field])
            if records[key]["ipw"]["company"] < 1.0001:
                self.assertAlmostEqual(energy["joules"] / window, 1, delta=1e-3)
        return restored


class Restored(RestoreTest):
    def check(self, concurrency, chance, kills):
        machine = self.machine(Intel, WATTS)
        options = {"machine": machine, "dataset": self.numbered(ROWS)}
        words = ("--concurrency", concurrency, "--idle", 0.3)
        before, starts = set(), []
        self.out = machine.root / "out"
        with self.service.lock:
            self.service.requests.clear()
        for kill in range(kills):
            self.kill_after(chance.randrange(1, 4), chance.random() * 0.3,
                            *words, *(["--resume"] if kill else []), play=SLOW, **options)
            now = set(self.ended())
            starts.append((kill + 1, now - before))
            before = now
        asked = len(self.service.questions())
        report = self.profile("--resume", *words, play=QUICK, **options)
        again = self.service.questions()[asked:]
        done = {record["problem"] for key, record in self.run.records().items() if key in before}
        self.assertFalse(done & set(again))
        self.assertEqual((report["completed"], report["failed"]), (ROWS, 0))
        self.assertAddsUp(report)
        ends = [line for line in self.run.lines() if line["kind"] == "end"]
        for run, end in zip((x for x in self.run.lines() if x["kind"] == "run"), ends[:-1]):
            sums, reach = self.samples(self.run, end["start"])
            begin, to = run["measuring"]["from_s"], end["ended_at"] - run["started_at"]
            energy = end["energy"]
            self.assertAlmostEqual(energy["joules"] / sums.between("cpu0", begin, min(to, reach)), 1,
                                   delta=0.01, msg=(begin, to, reach, end))
            self.assertAlmostEqual(energy["coverage"], (min(to, reach) - begin) / (to - begin),
                                   delta=0.02)
            if machine.worst_s < STOOD_STILL_S:  # it drew what it should
                self.assertAlmostEqual(energy["joules"] / energy["coverage"] / (to - begin) / WATTS, 1,
                                       delta=0.1)
        self.assertEqual([line["start"] for line in ends], list(range(1, kills + 2)))
        self.assertEqual([line["restored"] for line in ends], [True] * kills + [False])
        self.assertNotIn("did not come to an end", report["energy"]["note"] or "")
        return sum(self.assertRestored(self.run, start, keys) for start, keys in starts)

    def test_one_at_a_time(self):
        restored = 0
        for seed in range(3):
            with self.subTest(seed):
                restored += self.check(1, random.Random(seed), 1)
        self.assertGreater(restored, 0)

    def test_four_at_a_time(self):
        restored = 0
        for seed in range(3):
            with self.subTest(seed):
                restored += self.check(4, random.Random(100 + seed), 1)
        self.assertGreater(restored, 0)

    def test_a_resumed_start_that_is_killed_too(self):
        self.check(4, random.Random(7), 2)

    def test_in_the_middle_of_a_judgement(self):
        machine = self.machine(Intel, WATTS)
        rows = self.dataset(*({"problem": f"question {n} [say:text=yes]", "answer": "yes"}
                              for n in range(24)))
        judge = ("--grader", "judge", "--eval-model", "tiny-3b-chat", "--concurrency", 2)

        def options(gap_ms):
            url = self.service.url(f"judge:head_ms={gap_ms}")
            return (*judge, "--eval-base-url", url), {"play": "mixed:head_ms=40", "dataset": rows,
                                                      "machine": machine}
        words, more = options(150)
        process = self.start(*words, **more)
        self.until(lambda: self.kinds().count("grade") >= 3, "verdicts")
        time.sleep(0.2)
        self.kill(process)
        lines = self.whole_lines()
        graded = {line["key"] for line in lines if line["kind"] == "grade"}
        settled = {line["key"] for line in lines if "judge_energy" in line.get("ipw", {})}
        self.assertTrue(graded - settled)
        asked = len(self.service.questions("judge"))
        words, more = options(20)
        report = self.profile("--resume", *words, **more)
        self.assertEqual(report["correct"], 24)
        again = self.service.questions("judge")[asked:]
        self.assertLessEqual(len([q for q in again if "question" in q]), 24 - len(graded))
        records = self.run.records()
        for key in graded:
            own = records[key]["ipw"]
            self.assertIs(own.get("restored", False), key not in settled)
            # Two at a time, each for 150 ms at the least.
            self.assertGreater(own["judge_energy"]["joules"], 0.15 * WATTS / 2 * 0.8
                               * own["judge_energy"]["coverage"])
            metrics = records[key]["model_metrics"][MODEL]["energy_metrics"]
            self.assertAlmostEqual(metrics["total_task_cpu_joules"], metrics["judge_cpu_joules"]
                                   + metrics["cpu_per_query_joules"])
        self.assertEqual(self.kinds().count("judge"), self.kinds().count("judged"))

    def kinds(self):
        found = list(self.out.glob("*/records.jsonl"))
        return [line["kind"] for line in self.whole_lines()] if found else []


class Exact(RestoreTest):
    """A journal without its energies, as a kill at the worst moment leaves it."""

    def keep(self, keeps):
        """The lines of which that is true."""
        path = self.run.path / "records.jsonl"
        path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n"
                                for line in self.whole_lines() if keeps(line)))

    def alike(self, ours, theirs, where):
        if isinstance(theirs, dict):
            self.assertEqual(set(ours), set(theirs), where)
            for key in theirs:
                self.alike(ours[key], theirs[key], f"{where}.{key}")
        elif isinstance(theirs, (int, float)) and not isinstance(theirs, bool):
            # The pieces' times are kept in whole microseconds, sums with twelve digits.
            self.assertAlmostEqual(ours, theirs, delta=2e-3 * abs(theirs) + 1e-4, msg=where)
        else:
            self.assertEqual(ours, theirs, where)

    def attempts(self):
        return {line["key"]: line["ipw"]["failed_attempts"] for line in self.run.lines()
                if line["kind"] == "energy" and "failed_attempts" in line["ipw"]}

    def check(self, machine, share):
        """A kill of the start leaves none of the energies, one while they are restored some."""
        words = ("--concurrency", 4, "--idle", 0.4, "--retries", 1, "--decode-weight", 3)
        rows = self.dataset(*(f"question {n} [{'flaky:fails=1,' if n % 5 == 0 else 'normal:'}"
                              f"gap_ms={20 + 3 * n}]" for n in range(16)))
        options = {"machine": machine, "play": "mixed", "dataset": rows}
        first = self.profile(*words, **options)
        before, end, tries = self.run.records(), self.run.lines()[-1], self.attempts()
        chance, gone = random.Random(5), set()

        def keeps(line):
            stays = line["kind"] not in ("energy", "end") or (line["kind"] == "energy"
                                                              and chance.random() < share)
            gone.update([] if stays or line["kind"] == "end" else [line["key"]])
            return stays
        self.keep(keeps)
        asked = len(self.service.questions())
        again = self.profile("--resume", *words, **options)
        self.assertFalse([q for q in self.service.questions()[asked:] if q.startswith("question")])
        after = self.run.records()
        self.assertTrue(gone)
        for key, record in before.items():
            self.assertIs(after[key]["ipw"].pop("restored", False), key in gone, key)
            for one in (record["ipw"], after[key]["ipw"]):
                one["devices"] = {share["id"]: share for share in json.loads(one["devices"])}
                one.pop("failed_attempts", None)  # their lines may stand before the query's
            for part in ("ipw", "model_metrics"):
                self.alike(after[key][part], record[part], f"{key}.{part}")
        self.assertEqual(len(tries), 4)
        self.alike(self.attempts(), tries, "failed_attempts")
        restored = [line for line in self.run.lines() if line["kind"] == "end"][0]
        self.assertTrue(restored["restored"])
        for key in ("busy_joules", "busy_s", "busy_covered_s"):
            self.assertAlmostEqual(restored[key] / end[key], 1, delta=2e-3, msg=key)
        for key in ("queries", "failed"):
            self.assertAlmostEqual(again["joules"][key] / first["joules"][key], 1, delta=2e-3)
        self.assertAddsUp(again)

    def test_the_energies_are_those_that_were(self):
        self.check(self.machine(Intel, 40, 25), 0)

    def test_killed_while_they_were_restored(self):
        self.check(self.machine(Intel, 40, 25), 0.4)

    def test_of_gpus_too(self):
        self.check(self.machine(Both), 0)

    def test_not_twice(self):
        machine = self.machine(Intel, WATTS)
        self.profile(machine=machine, play="normal:gap_ms=20")
        self.keep(lambda line: line["kind"] != "end")
        lines = self.whole_lines()
        self.profile("--resume", machine=machine)
        new = self.run.lines()[len(lines):]
        self.assertEqual([line["kind"] for line in new], ["end", "run", "end"])
        self.assertEqual([line.get("restored") for line in new], [True, None, False])


class Damaged(RestoreTest):
    """What the disk does not tell stays unknown, and says why."""

    def setUp(self):
        super().setUp()
        self.fake = self.machine(Intel, WATTS)
        self.options = {"machine": self.fake, "dataset": self.numbered(ROWS)}
        self.kill_after(4, 0.1, "--concurrency", 2, play=SLOW, **self.options)
        self.killed, self.at = set(self.ended()), self.out

    def resume(self, damage):
        """A copy of what the kill left, damaged, and resumed."""
        self.out = self.fake.root / damage.__name__
        shutil.rmtree(self.out, ignore_errors=True)
        shutil.copytree(self.at, self.out)
        damage(self.directory())
        report = self.profile("--resume", "--concurrency", 2, play=QUICK, **self.options)
        self.assertEqual((report["completed"], report["failed"]), (ROWS, 0))
        return report

    def assertUnknown(self, report, *words):
        records = self.run.records()
        unknown = {key for key in records if records[key]["ipw"]["energy"]["joules"] is None}
        self.assertTrue(unknown)
        self.assertLessEqual(unknown, self.killed)
        for key in unknown:
            for word in words:
                self.assertIn(word, records[key]["ipw"]["energy"]["note"])
        self.assertEqual(report["energy_known"], ROWS - len(unknown))
        self.assertIn("did not come to an end", report["energy"]["note"])
        self.assertIn("stay unknown", self.done.stderr)

    def test_no_samples(self):
        def missing(run):
            (run / "samples.csv").unlink()

        def empty(run):
            (run / "samples.csv").write_text("")

        def header_only(run):
            path = run / "samples.csv"
            path.write_text(path.read_text().partition("\n")[0] + "\n")

        def older(run):
            path = run / "samples.csv"
            path.write_text(path.read_text().replace(",covered,t_plus_minus_s", "", 1))
        for damage, word in ((missing, "samples.csv"), (empty, "columns"), (older, "columns"),
                             (header_only, "no samples")):
            with self.subTest(damage.__name__):
                self.assertUnknown(self.resume(damage), "killed before it was settled", word)

    def test_no_sensors(self):
        def change(run, value):
            path = run / "records.jsonl"
            lines = self.whole_lines()
            lines[0].pop("measuring")
            if value is not None:
                lines[0]["measuring"] = value
            path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))

        def none(run):
            change(run, None)

        def other(run):
            change(run, {"from_s": 0, "decode_weight": 1, "idle": None, "sensors": [{"id": 7}]})
        for damage in (none, other):
            with self.subTest(damage.__name__):
                self.assertUnknown(self.resume(damage), "what its sensors were")

    def test_torn_samples(self):
        def torn(run):
            path = run / "samples.csv"
            whole = path.read_bytes()
            path.write_bytes(whole[:-7])

        def in_the_middle(run):
            path = run / "samples.csv"
            lines = path.read_text().split("\n")
            for place in range(len(lines) // 2, len(lines) - 1, 50):
                lines[place] = lines[place].replace("energy", "\0\0\0")
            path.write_text("\n".join(lines))

        def half(run):
            """None of the time in which the queries ran but the beginning."""
            path = run / "samples.csv"
            head, *lines = path.read_text().split("\n")[:-1]
            path.write_text("\n".join([head, *(x for x in lines if float(x.split(",")[0]) < 0.1), ""]))
        for damage in (torn, in_the_middle):
            with self.subTest(damage.__name__):
                report = self.resume(damage)
                self.assertRestored(self.run, 1, self.killed)
                self.assertAddsUp(report)
        report = self.resume(half)
        records = self.run.records()
        unknown = [records[key]["ipw"]["energy"] for key in self.killed
                   if records[key]["ipw"]["energy"]["joules"] is None]
        self.assertTrue(unknown)
        for energy in unknown:
            self.assertIn("no reading in this window", energy["note"])
        self.assertLess(report["energy"]["coverage"], 0.99)
        self.assertAddsUp(report)


if __name__ == "__main__":
    unittest.main()
