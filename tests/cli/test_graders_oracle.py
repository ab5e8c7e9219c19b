#!/usr/bin/env python3
"""Graders against reference packages: bleu with sacrebleu, rouge_* with rouge-score, f1 with SQuAD's definition, math
with sympy.  On the labeled answers of tests/fixtures/graders, choice, numeric and math have fewer false negatives than
math-verify and the extractors of lm-eval, and no more false positives.  Other texts are random, with a fixed seed.
$IPW_PYTHON names an interpreter with the packages; the default is that of the tests' set-up.  Tests without their
package are skipped."""

import os
import sys
from pathlib import Path

SOURCE = Path(os.environ.get("IPW_SOURCE", ".")).resolve()
WANTED = Path(os.environ.get("IPW_PYTHON") or SOURCE / ".test-env/python/bin/python")
if WANTED.exists() and "IPW_AGAIN" not in os.environ:
    os.environ["IPW_AGAIN"] = "1"
    os.execv(WANTED, [str(WANTED), *sys.argv])

import collections
import functools
import json
import logging
import random
import re
import string
import subprocess
import unittest

sys.dont_write_bytecode = True
from program import TIMEOUT_S  # noqa: E402

try:
    import sacrebleu
except ImportError:
    sacrebleu = None
try:
    from rouge_score import rouge_scorer
except ImportError:
    rouge_scorer = None
try:
    import math_verify
    import sympy
except ImportError:
    math_verify = sympy = None

GRADE = Path(os.environ.get("IPW_BUILD", "build")) / "tests/tools/grade"
CASES = 1500
ROUGE = {"rouge_1": "rouge1", "rouge_2": "rouge2", "rouge_l": "rougeL"}


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


# ---- texts ----

WORDS = ("the cat sat on a mat and an owl flew over it The Cat U.S.A. 3.14 1,000 10-20 don't "
         "e-mail AT&T &amp; &lt;b&gt; &quot;x&quot; <skipped> $5.00 50% (yes) [no] {maybe} a/b "
         "C++ x=1 end. stop, what? why! semi; colon: \"quoted\" 'single' well-known 2024-01-15 "
         "caf\u00e9 \u00dcber na\u00efve \u041c\u043e\u0441\u043a\u0432\u0430 \u6771\u4eac \u20ac5 "
         "\u201ccurly\u201d \u2014 _under_ *star* ~ ^ | \\ # @ 1. .5 , . - -- ...").split(" ")
GAPS = [" "] * 12 + ["\n", "\t", "  ", "-\n", "\u00a0", "\u2009", ""]


def sentence(rng, longest=14):
    return "".join(rng.choice(WORDS) + rng.choice(GAPS)
                   for _ in range(rng.randint(1, longest))).strip() or "x"


def varied(rng, text):
    """A variation of a text."""
    words = text.split(" ")
    for _ in range(rng.randint(0, 4)):
        place = rng.randrange(len(words) + 1)
        words[place:place + rng.randint(0, 2)] = sentence(rng, 3).split(" ")
    rng.random() < 0.1 and rng.shuffle(words)
    return " ".join(words).strip() or "x"


def pairs(seed):
    rng = random.Random(seed)
    for _ in range(CASES):
        expected = sentence(rng)
        answer = varied(rng, expected) if rng.random() < 0.8 else sentence(rng)
        yield expected, answer


# ---- oracles ----

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
    def compare(self, grader, cases, oracle, several=False):
        lines = [{"grader": grader, "expected": expected if not several else expected[0],
                  "answer": answer,
                  "metadata": {"references": expected[1:]} if several else {}}
                 for expected, answer in cases]
        scores = []
        for line, got, (expected, answer) in zip(lines, grade(lines), cases):
            wanted = oracle(expected, answer)
            scores.append(wanted)
            self.assertIsNotNone(got.get("score"), (line, got))
            self.assertAlmostEqual(got["score"], wanted, delta=1e-9, msg=json.dumps(line))
        self.assertGreater(sum(0 < score < 1 for score in scores), len(scores) // 3)

    def test_f1_agrees_with_squad(self):
        self.compare("f1", list(pairs(1)), squad_f1)

    @unittest.skipUnless(sacrebleu, "sacrebleu is not installed")
    def test_bleu_agrees_with_sacrebleu(self):
        self.compare("bleu", list(pairs(2)), lambda expected, answer: sacrebleu.sentence_bleu(
            answer, [expected]).score / 100)

    @unittest.skipUnless(sacrebleu, "sacrebleu is not installed")
    def test_bleu_with_several_references(self):
        rng = random.Random(3)
        cases = [([expected, varied(rng, expected), sentence(rng)], answer)
                 for expected, answer in pairs(3)]
        self.compare("bleu", cases, lambda expected, answer: sacrebleu.sentence_bleu(
            answer, expected).score / 100, several=True)

    @unittest.skipUnless(rouge_scorer, "rouge-score is not installed")
    def test_rouge_agrees_with_rouge_score(self):
        for grader, kind in ROUGE.items():
            scorer = rouge_scorer.RougeScorer([kind])
            self.compare(grader, list(pairs(4)), lambda expected, answer: scorer.score(
                expected, answer)[kind].fmeasure)

    @unittest.skipUnless(rouge_scorer, "rouge-score is not installed")
    def test_rouge_with_several_references(self):
        for grader, kind in ROUGE.items():
            rng = random.Random(5)
            scorer = rouge_scorer.RougeScorer([kind])
            cases = [([expected, varied(rng, expected)], answer) for expected, answer in pairs(5)]
            self.compare(grader, cases, lambda expected, answer: scorer.score_multi(
                expected, answer)[kind].fmeasure, several=True)


# ---- math ----

@unittest.skipUnless(sympy, "sympy is not installed")
class Math(unittest.TestCase):
    def expression(self, rng, depth):
        if depth == 0 or rng.random() < 0.2:
            return rng.choice([sympy.Symbol("x"), sympy.Symbol("y"), sympy.pi,
                                  sympy.Integer(rng.randint(-9, 9)),
                                  sympy.Rational(rng.randint(1, 9), rng.randint(2, 9))])
        left, right = (self.expression(rng, depth - 1) for _ in range(2))
        return rng.choice([lambda: left + right, lambda: left * right, lambda: left - right,
                              lambda: left ** rng.randint(2, 3), lambda: sympy.sin(left),
                              lambda: sympy.sqrt(left ** 2 + 1)])()

    def test_rewritten_expressions_are_equal_and_changed_ones_are_not(self):
        rng = random.Random(6)
        lines, wanted = [], []
        while len(lines) < 300:
            one = self.expression(rng, 3)
            if one.has(sympy.zoo, sympy.nan, sympy.oo):
                continue
            other = rng.choice([sympy.expand, sympy.factor, lambda e: e])(one)
            for form, equal in ((other, True), (other + sympy.Rational(1, 7), False)):
                lines.append({"grader": "math", "params": {"final": "whole"},
                              "expected": sympy.latex(one),
                              "answer": rng.choice([sympy.latex, lambda e: str(e)])(form)})
                wanted.append(equal)
        for line, got, equal in zip(lines, grade(lines), wanted):
            self.assertEqual(got.get("verdict"), equal, json.dumps(line))


# ---- labeled answers ----

LABELLED = SOURCE / "tests/fixtures/graders"


def labeled(grader):
    """[is_correct, expected, answer, question] of each row; the newline symbol stands for a newline."""
    rows = []
    for line in (LABELLED / f"{grader}.tsv").read_text().split("\n")[:-1]:
        label, expected, answer, *question = line.replace("\u2424", "\n").split("\t")
        rows += [(label == "right", one, answer, *(question or [""])) for one in expected.split(" ; ")]
    return rows


def accepted(grader, rows):
    lines = [{"grader": grader, "expected": expected, "answer": answer, "problem": question}
             for _, expected, answer, question in rows]
    return [got["verdict"] is True for got in grade(lines)]


def errors(rows, verdicts):
    """Counts of false negatives and false positives."""
    missed = sum(row[0] and not verdict for row, verdict in zip(rows, verdicts))
    return missed, sum(verdict and not row[0] for row, verdict in zip(rows, verdicts))


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


@functools.cache  # several answers are labeled for each expected one
def parsed_by_math_verify(text):
    return math_verify.parse(text)


def by_math_verify(expected, answer):
    return math_verify.verify(parsed_by_math_verify(f"${expected}$"), parsed_by_math_verify(answer))


class Answers(unittest.TestCase):
    def test_false_negatives_and_false_positives_are_few(self):
        for grader in ("choice", "numeric", "math"):
            rows = labeled(grader)
            verdicts = accepted(grader, rows)
            missed, wrong = errors(rows, verdicts)
            rights = sum(row[0] for row in rows)
            listed = [row for row, verdict in zip(rows, verdicts) if row[0] != verdict]
            self.assertGreaterEqual(rights, 300, grader)
            self.assertGreaterEqual(len(rows) - rights, 300, grader)
            self.assertLessEqual(missed, 0.05 * rights, (grader, listed))
            self.assertLessEqual(wrong, 0.01 * (len(rows) - rights), (grader, listed))

    def compare(self, grader, oracle, step=1):
        rows = labeled(grader)[::step]
        missed, wrong = errors(rows, accepted(grader, rows))
        theirs = [bool(oracle(expected, answer)) for _, expected, answer, _ in rows]
        their_missed, their_wrong = errors(rows, theirs)
        self.assertLess(missed, their_missed, (grader, oracle.__name__))
        self.assertLessEqual(wrong, their_wrong, (grader, oracle.__name__))
        print(f"{grader}: {missed} missed, {wrong} wrong accepted; "
              f"{oracle.__name__}: {their_missed}, {their_wrong} of {len(rows)}")

    def test_fewer_errors_than_lm_eval_extractors(self):
        for grader, oracle in (("numeric", gsm8k_strict), ("numeric", gsm8k_flexible),
                               ("choice", mmlu_pro), ("choice", mmlu_flexible)):
            self.compare(grader, oracle)

    @unittest.skipUnless(math_verify, "math-verify is not installed")
    def test_fewer_errors_than_math_verify(self):
        logging.disable(logging.ERROR)  # it logs each answer that it cannot parse
        for grader in ("math", "numeric"):
            self.compare(grader, by_math_verify, step=3)  # all rows would take most of a minute


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
    if not (sacrebleu and rouge_scorer and math_verify):
        missing = [name for name, module in (("sacrebleu", sacrebleu), ("rouge-score", rouge_scorer),
                                             ("math-verify", math_verify)) if not module]
        print(f"not installed: {', '.join(missing)} (see tests/requirements.txt)")
        result = unittest.main(exit=False).result
        sys.exit(77 if result.wasSuccessful() else 1)
    unittest.main()
