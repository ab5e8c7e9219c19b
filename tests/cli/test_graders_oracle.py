#!/usr/bin/env python3
"""Graders against reference packages: bleu with sacrebleu, rouge_* with rouge-score, f1 with SQuAD's definition, math
with sympy.  On the labeled answers of tests/fixtures/graders, choice, numeric and math never call a right answer false nor
a wrong one right; on replies that others wrote they hold their rates, and miss and accept less than
math-verify and the extractors of lm-eval.  What the packages say is recorded in tests/fixtures/grader_oracles by
research/record-graders.py."""

import collections
import functools
import hashlib
import json
import os
import re
import string
import subprocess
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from program import TIMEOUT_S  # noqa: E402

SOURCE = Path(os.environ.get("IPW_SOURCE", ".")).resolve()
ORACLES = SOURCE / "tests/fixtures/grader_oracles"
GRADE = Path(os.environ.get("IPW_BUILD", "build")) / "tests/tools/grade"


def grade(lines):
    """Grades of many lines, by one run of the helper program."""
    text = "".join(json.dumps(line) + "\n" for line in lines)
    done = subprocess.run([GRADE], input=text, capture_output=True, text=True, timeout=TIMEOUT_S)
    if done.returncode == 77:
        raise unittest.SkipTest(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    grades = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(grades) == len(lines)
    return grades


def recorded(name):
    return [json.loads(line) for line in (ORACLES / name).read_text().splitlines()]


# ---- scores of texts ----

def squad_words(text):
    text = "".join(c for c in text.lower() if c not in set(string.punctuation))
    return re.sub(r"\b(a|an|the)\b", " ", text).split()


def squad_f1(expected, answer):
    gold, guess = squad_words(expected), squad_words(answer)
    if not gold or not guess:
        return float(gold == guess)
    same = sum((collections.Counter(gold) & collections.Counter(guess)).values())
    if not same:
        return 0.0
    precision, recall = same / len(guess), same / len(gold)
    return 2 * precision * recall / (precision + recall)


class Scores(unittest.TestCase):
    def compare(self, grader, cases, wanted):
        lines = [{"grader": grader, "expected": case["references"][0], "answer": case["answer"],
                  "metadata": {"references": case["references"][1:]} if case["references"][1:] else {}}
                 for case in cases]
        for line, got, score in zip(lines, grade(lines), wanted):
            self.assertIsNotNone(got.get("score"), (line, got))
            self.assertAlmostEqual(got["score"], score, delta=1e-9, msg=json.dumps(line))
        self.assertGreater(sum(0 < score < 1 for score in wanted), len(wanted) // 3)

    def test_f1_agrees_with_squad(self):
        cases = [case for case in recorded("texts.jsonl") if len(case["references"]) == 1]
        self.compare("f1", cases, [squad_f1(*case["references"], case["answer"]) for case in cases])

    def test_bleu_and_rouge_agree_with_sacrebleu_and_rouge_score(self):
        """Alone, and with several references."""
        cases = recorded("texts.jsonl")
        self.assertEqual({len(case["references"]) for case in cases}, {1, 3})
        for grader in "bleu", "rouge_1", "rouge_2", "rouge_l":
            with self.subTest(grader):
                self.compare(grader, cases, [case[grader] for case in cases])


class Math(unittest.TestCase):
    def test_rewritten_expressions_are_equal_and_changed_ones_are_not(self):
        cases = recorded("expressions.jsonl")
        self.assertEqual({case["equal"] for case in cases}, {True, False})
        lines = [{"grader": "math", "params": {"final": "whole"}, "expected": case["expected"], "answer": case["answer"]}
                 for case in cases]
        for case, got in zip(cases, grade(lines)):
            self.assertEqual(got.get("verdict"), case["equal"], case)


# ---- labeled answers ----

LABELLED = SOURCE / "tests/fixtures/graders"
GRADERS = ("choice", "numeric", "math")


class Row:
    """An answer, its label, and the grader's verdict: True, False, None or "unread"."""

    def __init__(self, label, expected, answer, question=""):
        self.label, self.expected, self.answer, self.question = label, expected, answer, question
        self.is_right = label != "wrong"
        self.verdict = None

    def __repr__(self):
        return f"{self.label}: expected {self.expected!r}, {self.verdict}: {self.answer!r}"


def labelled(folder, grader):
    """The rows of a file; the newline symbol stands for a newline, " ; " for several expected answers."""
    rows = []
    for line in (folder / f"{grader}.tsv").read_text().split("\n")[:-1]:
        label, expected, *rest = line.replace("\u2424", "\n").split("\t")
        rows += [Row(label, one, *rest) for one in expected.split(" ; ")]
    return rows


# Most errors of each set of replies, of the kinds:
KINDS_OF_ERRORS = "marked, missed", "plain, unread", "plain, called false", "wrong, accepted"
ERRORS = {
    "replies-1": {"choice": (1, 38, 0, 0), "math": (0, 31, 0, 0), "numeric": (0, 25, 0, 0)},
    "replies-2": {"choice": (0, 23, 0, 0), "math": (0, 14, 0, 1), "numeric": (1, 14, 0, 0)},
    "replies-3": {"choice": (0, 32, 0, 1), "math": (0, 24, 0, 2), "numeric": (0, 30, 1, 2)},
    "replies-4": {"choice": (0, 42, 1, 0), "math": (0, 29, 0, 1), "numeric": (1, 23, 0, 1)},
    "replies-5": {"choice": (1, 41, 0, 1), "math": (1, 24, 0, 2), "numeric": (0, 30, 0, 2)},
    "replies-6": {"choice": (0, 35, 0, 0), "math": (0, 15, 0, 1), "numeric": (0, 23, 1, 0)},
    "replies-7": {"choice": (0, 10, 0, 0), "math": (0, 22, 0, 3), "numeric": (0, 26, 1, 2)},
    "replies-8": {"choice": (0, 33, 0, 0), "math": (0, 13, 0, 2), "numeric": (0, 19, 0, 2)},
    "replies-9": {"choice": (0, 25, 0, 1), "math": (0, 23, 0, 0), "numeric": (0, 13, 0, 1)},
    "replies-10": {"choice": (0, 13, 0, 2), "math": (0, 26, 0, 2), "numeric": (0, 26, 0, 2)},
}


def replies(grader):
    """Those with which other packages are compared."""
    return [row for name in ERRORS for row in labelled(LABELLED / name, grader)]


def found_errors(rows):
    assert min(collections.Counter(row.label for row in rows).values()) >= 100
    return (sum(row.label == "marked" and row.verdict is not True for row in rows),
            sum(row.label == "plain" and row.verdict == "unread" for row in rows),
            sum(row.label == "plain" and row.verdict is False for row in rows),
            sum(row.label == "wrong" and row.verdict is True for row in rows))


def with_verdicts(rows, grader):
    lines = [{"grader": grader, "expected": row.expected, "answer": row.answer, "problem": row.question}
             for row in rows]
    for row, got in zip(rows, grade(lines)):
        row.verdict = got["verdict"]
    return rows


def graded(folder, grader):
    return with_verdicts(labelled(folder, grader), grader)


def errors(rows, verdicts):
    """Counts of right answers that are missed and of wrong ones that are accepted."""
    missed = sum(row.is_right and not verdict for row, verdict in zip(rows, verdicts))
    return missed, sum(verdict and not row.is_right for row, verdict in zip(rows, verdicts))


def number(text):
    try:
        return float(text.replace(",", "").replace("$", "").rstrip("."))
    except ValueError:
        return None


# The filters of lm-eval's published task configurations: gsm8k strict-match and flexible-extract,
# mmlu_pro custom-extract, and the flexible-extract of mmlu's and gpqa's generative tasks.

def gsm8k_strict(expected, answer):
    found = re.search(r"#### (\-?[0-9\.\,]+)", answer)
    return found and number(found.group(1)) == number(expected)


def gsm8k_flexible(expected, answer):
    found = re.findall(r"(-?[$0-9.,]{2,})|(-?[0-9]+)", answer)
    return found and number(found[-1][0] or found[-1][1]) == number(expected)


def mmlu_pro(expected, answer):
    found = re.search(r"answer is \(?([ABCDEFGHIJ])\)?", answer)
    return found and found.group(1) == expected


def mmlu_flexible(expected, answer):
    found = re.findall(r"(\([A-Z]\))", answer)
    return found and found[-1].strip("()") == expected


# math-verify, as recorded

def key_of(row):
    return hashlib.sha256(f"{row.expected}\n{row.answer}".encode()).hexdigest()[:16]


@functools.cache
def verdicts_of_math_verify():
    return dict(line.split("\t") for line in (ORACLES / "verdicts.tsv").read_text().splitlines())


def by_math_verify(row):
    verdict = verdicts_of_math_verify().get(key_of(row))
    assert verdict, f"no verdict of math-verify is recorded: run research/record-graders.py verdicts\n{row}"
    return verdict == "right"


class Answers(unittest.TestCase):
    def test_no_labeled_answer_is_misjudged(self):
        """Rows that are known to be unread may be, and are counted; no right answer is called false."""
        for grader in GRADERS:
            rows = graded(LABELLED, grader)
            wanted = {"right": (True,), "unread": (True, "unread"), "wrong": (False, "unread")}
            self.assertEqual([row for row in rows if row.verdict not in wanted[row.label]], [], grader)
            counts = collections.Counter(row.label for row in rows)
            self.assertGreaterEqual(min(counts["right"], counts["wrong"]), 500, grader)
            print(f"{grader}: {counts['unread']} of {counts['right'] + counts['unread']} right answers unread")

    def test_replies_hold_their_rates(self):
        """The rates of docs/metrics.md.  A marked answer is missed and a wrong one accepted as seldom as that."""
        for name, bounds in ERRORS.items():
            for grader, most in bounds.items():
                found = found_errors(graded(LABELLED / name, grader))
                print(f"{name}, {grader}: " + "; ".join(f"{what} {count}" for what, count in zip(KINDS_OF_ERRORS, found)))
                for what, count, bound in zip(KINDS_OF_ERRORS, found, most):
                    self.assertLessEqual(count, bound, (name, grader, what))

    def compare(self, grader, oracles):
        rows = with_verdicts(replies(grader), grader)
        missed, wrong = errors(rows, [row.verdict is True for row in rows])
        for name, oracle in oracles.items():
            their_missed, their_wrong = errors(rows, [bool(oracle(row)) for row in rows])
            print(f"{grader}: {missed} missed, {wrong} wrong accepted; {name}: {their_missed}, {their_wrong} of {len(rows)}")
            self.assertLess(missed, their_missed, (grader, name))
            if 2 * their_missed < sum(row.is_right for row in rows):  # others read, and so accept, almost nothing
                self.assertLessEqual(wrong, their_wrong, (grader, name))

    def test_fewer_errors_than_other_packages(self):
        def extractors(*found):
            return {each.__name__: lambda row, each=each: each(row.expected, row.answer) for each in found}
        math_verify = {"math-verify": by_math_verify}
        self.compare("choice", extractors(mmlu_pro, mmlu_flexible))
        self.compare("numeric", {**extractors(gsm8k_strict, gsm8k_flexible), **math_verify})
        self.compare("math", math_verify)


class LowerCase(unittest.TestCase):
    def test_lower_case_follows_unicode(self):
        letters = "\u0130\u00c4\u00d8\u0141\u01a0\u01af\u0394\u0416\u0531\u1ea0\u1e9e"
        lines = [{"grader": grader, "expected": letter.lower(), "answer": letter}
                 for letter in letters for grader in ("exact", "f1")]
        for line, got in zip(lines, grade(lines)):
            self.assertTrue(got["verdict"], line)
        self.assertFalse(grade([{"grader": "exact", "expected": "i", "answer": "\u0130"}])[0]["verdict"])


if __name__ == "__main__":
    if not GRADE.exists():
        print(f"{GRADE} was not built")
        sys.exit(77)
    unittest.main()
