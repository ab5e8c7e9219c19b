#!/usr/bin/env python3
# test: real time, asan
"""Answers that a grader cannot read: how they are counted and shown, how prompts ask for an answer that it can read, and
how a judge grades the rest."""

import csv
import io
import json
import os
import signal
import sqlite3
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from machines import Intel  # noqa: E402
from profiling import MODEL, ProfileTest, Run  # noqa: E402
from program import ipw, main_parallel  # noqa: E402
from rundirs import outcomes_of, query, texts_of, write_run  # noqa: E402
from rundirs import MODEL as WRITTEN  # noqa: E402

# What `choice` makes of these, if B is right.
RIGHT, WRONG, UNREADABLE = "Answer: B", "Answer: C", "42 + 43"
CHOICE = ("--grader", "choice")


def evaluation_of(run, key):
    found = run.metrics(key)["evaluation"]
    return {**found, "metadata": json.loads(found["metadata"])}


class UnreadTest(ProfileTest):
    def answers(self, *texts, name="questions"):
        """A dataset whose answers these are; None fails."""
        return self.dataset(*({"problem": f"{n} [" + ("status:code=500" if text is None else f"say:text={text}") + "]",
                               "answer": "B"} for n, text in enumerate(texts)), name=name)

    def graded(self, *texts, more=(), **options):
        return self.profile(*CHOICE, *more, scenario="mixed", dataset=self.answers(*texts), **options)


class Counting(UnreadTest):
    def test_unread_answer_is_in_the_denominator(self):
        report = self.graded(*[RIGHT] * 14, *[WRONG] * 3, *[UNREADABLE] * 2, None)
        self.assertEqual([report[key] for key in ("correct", "incorrect", "unread", "ungraded", "failed")],
                         [14, 3, 2, 0, 1])
        self.assertEqual(report["queries"], 20)
        self.assertAlmostEqual(report["accuracy"], 14 / 19)
        self.assertAlmostEqual(report["accuracy_at_most"], 16 / 19)
        low, high = report["accuracy_interval_95"]  # Wilson's interval of 14 in 19
        self.assertAlmostEqual(low, 0.5121, places=4)
        self.assertAlmostEqual(high, 0.8819, places=4)
        self.assertTrue(report["unread_reason"])

    def test_record_of_an_unread_answer(self):
        self.graded(RIGHT, UNREADABLE)
        read, unread = (evaluation_of(self.run, key) for key in ("q000000", "q000001"))
        self.assertEqual((read["is_correct"], read["status"]), (True, "graded"))
        self.assertEqual((unread.get("is_correct"), unread["status"]), (None, "unread"))
        self.assertEqual(unread["metadata"]["grader"], "choice")
        self.assertTrue(unread["metadata"]["reason"])
        self.assertIs(self.run.metrics("q000001")["lm_correctness"], False)

    def test_every_query_has_one_outcome(self):
        """The sum of the outcomes is the number of queries, also after --resume, with a row that has no grader."""
        rows = self.answers(RIGHT, WRONG, UNREADABLE, None)
        with open(rows, "a", encoding="utf-8") as file:
            file.write("\n" + json.dumps({"problem": "4 [say:text=x]", "answer": ""}))
        for more in ((), ("--resume",)):
            report = self.profile(*CHOICE, *more, scenario="mixed", dataset=rows)
            outcomes = [report[key] for key in ("correct", "incorrect", "unread", "ungraded", "failed")]
            self.assertEqual(outcomes, [1, 1, 1, 1, 1])
            self.assertEqual(sum(outcomes), report["queries"])

    def test_unread_answer_is_not_asked_or_graded_again_on_resume(self):
        self.graded(RIGHT, UNREADABLE)
        lines, asked = self.run.lines(), len(self.service.questions("mixed"))
        report = self.graded(RIGHT, UNREADABLE, more=("--resume",))
        self.assertEqual((report["correct"], report["unread"]), (1, 1))
        self.assertFalse([q for q in self.service.questions("mixed")[asked:] if "say" in q])
        after = self.run.lines()[len(lines):]
        self.assertFalse([line for line in after if line["kind"] in ("query", "grade")], after)

    def test_report_says_the_bound(self):
        done = ipw(self.on, *self.arguments(*CHOICE, scenario="mixed",
                                            dataset=self.answers(*[RIGHT] * 18, WRONG, UNREADABLE)))
        self.assertIn("accuracy      90.0 %, 18 of 20 correct (95 % CI ", done.stderr)
        self.assertIn("; 5.0 % unread: at most 95.0 % (", done.stderr)
        self.assertNotIn("[unread_answers]", done.stderr)  # only above 10 %

    def test_more_than_a_tenth_is_said_first(self):
        rows = self.answers(*[RIGHT] * 8, UNREADABLE, UNREADABLE)
        done = ipw(self.on, *self.arguments(*CHOICE, scenario="mixed", dataset=rows))
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        heading = next(i for i, line in enumerate(lines) if line.startswith("energy of 10 queries"))
        shown = " ".join(lines[heading + 1:])
        self.assertTrue(shown.startswith("warning: 2 of 10 graded answers (20.0 %) could not be read"), shown)
        self.assertLess(shown.index("[unread_answers]"), shown.index("per query"))
        summary = Run(self.directory()).summary()["ipw"]
        self.assertEqual([finding["code"] for finding in summary["conditions"]["findings"]
                          if finding["code"] == "unread_answers"], ["unread_answers"])

    def test_merged_shards_have_one_finding(self):
        rows = self.answers(*[RIGHT] * 6, *[UNREADABLE] * 2)
        for shard in ("1/2", "2/2"):
            self.profile(*CHOICE, "--shard", shard, "--name", "run", scenario="mixed", dataset=rows)
        done = ipw(self.on, "profile", "--merge", "--output-dir", self.out, "--json", *sorted(self.out.glob("run_shard*")))
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual((report["correct"], report["unread"], report["accuracy_at_most"]), (6, 2, 1))
        self.assertEqual([finding["text"].partition(" could")[0] for finding in report["conditions"]["findings"]
                          if finding["code"] == "unread_answers"], ["2 of 8 graded answers (25.0 %)"])

    def test_all_unread(self):
        report = self.graded(UNREADABLE, UNREADABLE)
        self.assertEqual((report["accuracy"], report["accuracy_at_most"], report["unread"]), (0, 1, 2))

    def test_nothing_graded_is_nothing_unread(self):
        report = self.profile("--grader", "none")
        self.assertEqual((report["unread"], report["accuracy"], report["accuracy_at_most"]), (0, None, None))


class Analyses(UnreadTest):
    def file(self, name):
        self.assertEqual(ipw(None, "analyze", self.run.path).returncode, 0)
        return json.loads((self.run.path / f"analysis/{name}.json").read_text())

    def test_accuracy_analysis(self):
        self.graded(*[RIGHT] * 14, *[WRONG] * 3, *[UNREADABLE] * 2, None)
        file = self.file("accuracy")
        summary = file["summary"]
        self.assertEqual([summary[key] for key in ("correct", "incorrect", "unread", "total_scored", "failed_queries")],
                         [14, 3, 2, 19, 1])
        self.assertAlmostEqual(summary["accuracy"], 14 / 19)
        self.assertAlmostEqual(summary["accuracy_at_most"], 16 / 19)
        self.assertEqual(summary["correct"] + summary["incorrect"] + summary["unread"] + summary["unevaluated"]
                         + summary["failed"], 20)
        self.assertTrue([line for line in file["warnings"] if "2 of 19 graded answers (10.5 %)" in line])
        [subject] = file["data"]["by_subject"]
        self.assertEqual((subject["correct"], subject["incorrect"], subject["unread"]), (14, 3, 2))
        records = file["data"]["records"][MODEL]
        self.assertEqual([r["evaluation"] for r in records if r["model_answer"] == UNREADABLE],
                         [{"status": "unread"}] * 2)

    def test_finding_and_check(self):
        self.graded(*[RIGHT] * 8, UNREADABLE, UNREADABLE)
        severity, text = outcomes_of(self.file("quality"))["unread_answers"]
        self.assertEqual(severity, "warning")
        self.assertIn("2 of 10 graded answers", text)
        self.graded(*[RIGHT] * 19, UNREADABLE, more=("--overwrite",))
        self.assertEqual(outcomes_of(self.file("quality"))["unread_answers"],
                         ("good", "the grader could not read 1 of 20 graded answers"))

    def test_conclusions(self):
        self.graded(*[RIGHT] * 18, WRONG, UNREADABLE)
        done = ipw(None, "analyze", self.run.path)
        self.assertIn("5.0 % unread: at most 95.0 %", " ".join(done.stdout.split()))
        other = self.run.path
        self.graded(*[RIGHT] * 10, *[WRONG] * 10, more=("--name", "worse"))
        done = ipw(None, "analyze", other, self.run.path)
        self.assertIn("most accurate, 90.0 % (5.0 % unread: at most 95.0 %), 40.0 points more", " ".join(done.stdout.split()))

    def test_page_lists_unread_answers(self):
        self.graded(*[RIGHT] * 18, WRONG, UNREADABLE)
        done = ipw(None, "report", self.run.path)
        self.assertEqual(done.returncode, 0, done.stderr)
        page = (self.run.path / "report.html").read_text()
        self.assertIn("18 of 20 correct", page)
        self.assertIn("5.0 % unread: at most 95.0 %", page)

    def test_exports(self):
        self.graded(RIGHT, UNREADABLE)
        wanted = ["graded", "unread"]
        for to in ("csv", "jsonl", "sqlite", "prom", "perfetto", "otlp-json"):
            done = ipw(None, "export", self.run.path, "--to", to, "-o", self.on.root / f"run.{to}")
            self.assertEqual(done.returncode, 0, done.stderr)
        text = {to: (self.on.root / f"run.{to}").read_text() for to in ("csv", "jsonl", "prom", "perfetto", "otlp-json")}
        rows = list(csv.DictReader(io.StringIO(text["csv"])))
        self.assertEqual([(row["correct"], row["evaluation_status"]) for row in rows], [("true", "graded"), ("", "unread")])
        rows = [json.loads(line) for line in text["jsonl"].splitlines()]
        self.assertEqual([row["evaluation_status"] for row in rows], wanted)
        with sqlite3.connect(self.on.root / "run.sqlite") as store:
            found = store.execute("SELECT evaluation_status FROM queries ORDER BY key").fetchall()
        self.assertEqual([row[0] for row in found], wanted)
        self.assertRegex(text["prom"], r"(?m)^ipw_run_unread_answers\{.*\} 1$")
        self.assertIn('"evaluation_status":"unread"', text["perfetto"].replace('": "', '":"'))
        self.assertIn("ipw.evaluation_status", text["otlp-json"])

    def test_run_of_an_earlier_version(self):
        """Its number of unread answers is unknown, not 0."""
        path = write_run(self.on.root / "old", [query(i, correct=i % 4 > 0) for i in range(12)])
        self.run = Run(path)
        summary = self.file("accuracy")["summary"]
        self.assertEqual((summary["correct"], summary["incorrect"], summary["accuracy"]), (9, 3, 0.75))
        self.assertIsNone(summary["unread"])
        self.assertIsNone(summary["accuracy_at_most"])
        self.assertEqual(outcomes_of(self.file("quality"))["unread_answers"][0], "unknown")


class Comparing(UnreadTest):
    def compare(self, a, b, *more, code=0):
        done = ipw(None, "compare", a, b, *more, "--json")
        self.assertEqual(done.returncode, code, done.stderr)
        return json.loads(done.stdout)["comparisons"][0]

    def written(self, name, verdicts):
        """A run of these verdicts: True, False, or None for an unread answer."""
        rows = [query(i, correct=verdict) for i, verdict in enumerate(verdicts)]
        for row, verdict in zip(rows, verdicts):
            row["model_metrics"][WRITTEN]["evaluation"] = (
                {"status": "unread"} if verdict is None else {"is_correct": verdict, "status": "graded"})
        return write_run(self.on.root / name, rows)

    def test_unread_counts_as_not_correct(self):
        """The same figures and the same test as if it were incorrect."""
        base = self.written("base", [True] * 30 + [False] * 10)
        as_unread = self.written("unread", [True] * 18 + [None] * 12 + [False] * 10)
        as_wrong = self.written("wrong", [True] * 18 + [False] * 22)
        for metric in ("accuracy", "ipj"):
            unread, wrong = (self.compare(base, other)["metrics"][metric] for other in (as_unread, as_wrong))
            self.assertEqual(unread, wrong)
        comparison = self.compare(base, as_unread)
        accuracy = comparison["metrics"]["accuracy"]
        self.assertEqual((accuracy["baseline"]["value"], accuracy["run"]["value"]), (0.75, 0.45))
        self.assertEqual((accuracy["test"], accuracy["run"]["queries"]), ("McNemar, exact", 40))
        [said] = [text for text in texts_of(comparison) if "unread" in text or "read by the grader" in text]
        self.assertIn("12 of 40 graded answers (30.0 %) could not be read by the grader", said)
        self.compare(base, as_unread, "--fail-if", "accuracy < -0.2", code=1)
        self.compare(base, as_unread, "--fail-if", "accuracy < -0.4")


class AnswerFormat(UnreadTest):
    """Presets ask for the marker that their grader reads."""

    LETTER = 'End your reply with the line "Answer: X", where X is the letter of the right choice.'

    def copy_of(self, preset):
        rows = {"mmlu-pro": {"question_id": 7, "question": "Which? [say:text=Answer: B]", "options": ["no", "yes"],
                             "answer": "B", "category": "law"},
                "gsm8k": {"question": "1+1? [say:text=Answer: 2]", "answer": "#### 2"},
                "math500": {"problem": "1+1? [say:text=2]", "answer": "2", "subject": "a", "unique_id": "u"},
                "simpleqa": {"problem": "Who? [say:text=x]", "answer": "x"}}
        return self.dataset(rows[preset], name=preset)

    def asked(self, preset, *more, code=0):
        self.service.requests.clear()
        report = self.profile("--dataset-param", f"path={self.copy_of(preset)}", *more, "--overwrite", scenario="mixed",
                              dataset=preset, code=code)
        prompts = [q for q in self.service.questions("mixed") if "?" in q]
        return prompts[-1], report["answer_format"]

    def test_prompt_ends_with_the_format(self):
        for preset, marker in (("mmlu-pro", '"Answer: X"'), ("gsm8k", '"Answer: X"'), ("math500", "\\boxed{}")):
            prompt, recorded = self.asked(preset)
            self.assertIn(marker, recorded)
            self.assertTrue(prompt.endswith("\n\n" + recorded), prompt)
            self.assertEqual(self.run.summary()["ipw"]["answer_format"], recorded)
        prompt, recorded = self.asked("mmlu-pro")
        self.assertEqual(prompt, "Which? [say:text=Answer: B]\n\nA. no\nB. yes\n\n" + self.LETTER)
        self.assertEqual(self.run.records()["q000000"]["problem"], prompt.removesuffix("\n\n" + self.LETTER))
        self.assertEqual(self.run.verdicts(), {"q000000": True})

    def test_no_answer_format_leaves_prompts_alone(self):
        self.assertEqual(self.asked("mmlu-pro", "--no-answer-format"),
                         ("Which? [say:text=Answer: B]\n\nA. no\nB. yes", None))
        self.assertEqual(self.asked("gsm8k", "--no-answer-format"), ("1+1? [say:text=Answer: 2]", None))

    def test_judged_presets_and_own_datasets_ask_for_nothing(self):
        self.assertEqual(self.asked("simpleqa"), ("Who? [say:text=x]", None))
        report = self.profile("--overwrite", "--max-queries", 1, dataset="builtin")
        self.assertIsNone(report["answer_format"])
        self.assertEqual(self.service.questions()[-1], self.run.records()["q000000"]["problem"])

    def test_template_includes_it_with_the_problem(self):
        prompt, _ = self.asked("gsm8k", "--template", "Q: {problem}\\nGo.")
        self.assertRegex(prompt, r'\AQ: 1\+1\? \[say:text=Answer: 2\]\n\nEnd your reply .*\nGo\.\Z')

    def test_resume_with_other_prompts_is_refused(self):
        where = ("--dataset-param", f"path={self.copy_of('gsm8k')}", "--name", "run")
        self.profile(*where, scenario="mixed", dataset="gsm8k")
        self.profile(*where, "--no-answer-format", "--resume", scenario="mixed", dataset="gsm8k", code=2)
        self.assertIn("answer_format was", self.done.stderr)

    def test_compare_warns_of_different_formats(self):
        paths = []
        for name, more in (("with", ()), ("without", ("--no-answer-format",))):
            self.profile("--dataset-param", f"path={self.copy_of('gsm8k')}", "--name", name, *more, scenario="mixed",
                         dataset="gsm8k")
            paths.append(self.run.path)
        done = ipw(None, "compare", *paths, "--json")
        comparison = json.loads(done.stdout)["comparisons"][0]
        said = [text for text in texts_of(comparison) if "answer format" in text]
        self.assertEqual(len(said), 1, texts_of(comparison))
        self.assertTrue(said[0].startswith("different requested answer format: none, baseline End your reply"), said)
        self.assertFalse([text for text in texts_of(comparison) if "different questions" in text])


class JudgeUnread(UnreadTest):
    """--judge-unread: the judge says TRUE if the answer is the expected one."""

    def judged(self, *texts, more=(), judge="judge", **options):
        judge = ("--judge-unread", "--eval-base-url", self.service.url(judge), "--eval-model", "tiny-3b-chat",
                 "--eval-param", "temperature=0")
        return self.graded(*texts, more=(*judge, *more), **options)

    def test_verdict_replaces_unread(self):
        report = self.judged(RIGHT, WRONG, UNREADABLE)
        self.assertEqual(self.run.verdicts(), {"q000000": True, "q000001": False, "q000002": False})
        self.assertEqual([report[key] for key in ("correct", "incorrect", "unread")], [1, 2, 0])
        self.assertEqual(len(self.service.bodies("judge")), 1)  # only what could not be read
        judged = evaluation_of(self.run, "q000002")
        self.assertEqual(judged["status"], "graded")
        self.assertEqual({key: judged["metadata"][key] for key in ("grader", "judge", "label", "evaluation_attempts")},
                         {"grader": "choice", "judge": "tiny-3b-chat", "label": "FALSE", "evaluation_attempts": 1})
        self.assertNotIn("judge", evaluation_of(self.run, "q000000")["metadata"])
        body = self.service.bodies("judge")[0]
        self.assertEqual((body["model"], body["temperature"]), ("tiny-3b-chat", 0))

    def test_right_answer(self):
        report = self.judged(UNREADABLE, judge="say:text=TRUE")
        self.assertEqual((report["correct"], report["unread"], report["accuracy"]), (1, 0, 1))
        self.assertIs(self.run.metrics("q000000")["lm_correctness"], True)

    def test_judge_without_verdict_leaves_it_unread(self):
        report = self.judged(RIGHT, UNREADABLE, judge="say:text=perhaps")
        self.assertEqual((report["correct"], report["unread"], report["ungraded"]), (1, 1, 0))
        left = evaluation_of(self.run, "q000001")
        self.assertEqual((left["status"], left["metadata"]["evaluation_attempts"]), ("unread", 3))
        self.assertIn("no verdict from the judge", left["metadata"]["reason"])
        report = self.judged(RIGHT, UNREADABLE, more=("--resume",), judge="say:text=TRUE")
        self.assertEqual((report["correct"], report["unread"]), (2, 0))

    def test_unread_answers_of_an_earlier_start_are_judged_on_resume(self):
        self.graded(RIGHT, UNREADABLE)
        asked = len(self.service.questions("mixed"))
        report = self.judged(RIGHT, UNREADABLE, more=("--resume",), judge="say:text=TRUE")
        self.assertEqual((report["correct"], report["unread"]), (2, 0))
        self.assertFalse([q for q in self.service.questions("mixed")[asked:] if "say" in q])

    def test_interrupted_judging_is_continued(self):
        texts = [UNREADABLE] * 6
        process = self.start(*CHOICE, "--judge-unread", "--eval-base-url", self.service.url("hang"),
                             "--eval-model", "tiny-3b-chat", "--name", "run", scenario="mixed", dataset=self.answers(*texts))
        journal = self.out / "run/records.jsonl"
        self.until(lambda: journal.exists() and journal.read_text().count('"kind":"query"') == 6, "answers")
        self.until(lambda: self.service.bodies("hang"), "the judge")
        os.kill(process.pid, signal.SIGINT)
        time.sleep(0.5)  # two signals at once would be one
        os.kill(process.pid, signal.SIGINT)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        self.assertEqual(Run(self.out / "run").summary()["ipw"]["unread"], 6)
        report = self.graded(*texts, more=("--judge-unread", "--eval-base-url", self.service.url("say:text=TRUE"),
                                           "--eval-model", "tiny-3b-chat", "--name", "run", "--resume"))
        self.assertEqual((report["correct"], report["unread"]), (6, 0))

    def test_energy_of_judging_is_separate(self):
        report = self.judged(RIGHT, UNREADABLE, judge="judge:head_ms=200", machine=self.machine(Intel, 50))
        records = self.run.records()
        self.assertGreater(records["q000001"]["ipw"]["judge_energy"]["joules"], 50 * 0.15)
        self.assertNotIn("judge_energy", records["q000000"]["ipw"])
        self.assertEqual(report["joules"]["judge"], records["q000001"]["ipw"]["judge_energy"]["joules"])
        self.assertAlmostEqual(report["joules"]["queries"], sum(r["ipw"]["energy"]["joules"] for r in records.values()))

    def test_judge_is_required(self):
        done = ipw(self.on, *self.arguments("--judge-unread", *CHOICE))
        self.assertEqual(done.returncode, 2)
        self.assertIn("--judge-unread needs a judge: --eval-model NAME", done.stderr)
        done = ipw(self.on, *self.arguments("--judge-unread", *CHOICE, "--eval-model", "x", "--eval-client", "olama"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("olama", done.stderr)


if __name__ == "__main__":
    main_parallel()
