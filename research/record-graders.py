#!/usr/bin/env python3
"""Records what other packages say about answers, for tests/cli/test_graders_oracle.py:

    research/record-graders.py [texts] [expressions] [verdicts]

It writes to tests/fixtures/grader_oracles: texts.jsonl, random texts with their scores by sacrebleu and rouge-score;
expressions.jsonl, random expressions and rewritten ones, equal or not by sympy; verdicts.tsv, math-verify's verdict of
every row of tests/fixtures/graders/replies-*, which is to be recorded again when rows change.  Default: all of them.

    pip install sacrebleu==2.6.0 rouge-score==0.1.2 'math-verify[antlr4-13-2]==0.9.0'
"""

import functools
import json
import logging
import random
import sys
from pathlib import Path

sys.dont_write_bytecode = True
SOURCE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(SOURCE / "tests/cli"))
from test_graders_oracle import ORACLES, key_of, replies  # noqa: E402

SINGLE, SEVERAL, EXPRESSIONS = 300, 150, 300
ROUGE = {"rouge_1": "rouge1", "rouge_2": "rouge2", "rouge_l": "rougeL"}
WORDS = ("the cat sat on a mat and an owl flew over it The Cat U.S.A. 3.14 1,000 10-20 don't "
         "e-mail AT&T &amp; &lt;b&gt; &quot;x&quot; <skipped> $5.00 50% (yes) [no] {maybe} a/b "
         "C++ x=1 end. stop, what? why! semi; colon: \"quoted\" 'single' well-known 2024-01-15 "
         "caf\u00e9 \u00dcber na\u00efve \u041c\u043e\u0441\u043a\u0432\u0430 \u6771\u4eac \u20ac5 "
         "\u201ccurly\u201d \u2014 _under_ *star* ~ ^ | \\ # @ 1. .5 , . - -- ...").split(" ")
GAPS = [" "] * 12 + ["\n", "\t", "  ", "-\n", "\u00a0", "\u2009", ""]


# ---- scores of texts ----

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


def texts():
    """The first ones have one reference, the others three."""
    import sacrebleu
    from rouge_score import rouge_scorer
    rng = random.Random(2)
    scorers = {grader: rouge_scorer.RougeScorer([kind]) for grader, kind in ROUGE.items()}
    for number in range(SINGLE + SEVERAL):
        expected = sentence(rng)
        answer = varied(rng, expected) if rng.random() < 0.8 else sentence(rng)
        more = [varied(rng, expected), sentence(rng)] if number >= SINGLE else []
        references = [expected, *more]
        scores = {"bleu": sacrebleu.sentence_bleu(answer, references).score / 100}
        for grader, scorer in scorers.items():
            scores[grader] = scorer.score_multi(references, answer)[ROUGE[grader]].fmeasure
        yield {"references": references, "answer": answer, **{name: round(score, 12) for name, score in scores.items()}}


# ---- equal and unequal expressions ----

def expression(sympy, rng, depth):
    if depth == 0 or rng.random() < 0.2:
        return rng.choice([sympy.Symbol("x"), sympy.Symbol("y"), sympy.pi, sympy.Integer(rng.randint(-9, 9)),
                           sympy.Rational(rng.randint(1, 9), rng.randint(2, 9))])
    left, right = (expression(sympy, rng, depth - 1) for _ in range(2))
    return rng.choice([lambda: left + right, lambda: left * right, lambda: left - right,
                       lambda: left ** rng.randint(2, 3), lambda: sympy.sin(left),
                       lambda: sympy.sqrt(left ** 2 + 1)])()


def expressions():
    import sympy
    rng, count = random.Random(6), 0
    while count < EXPRESSIONS:
        one = expression(sympy, rng, 3)
        if one.has(sympy.zoo, sympy.nan, sympy.oo):
            continue
        other = rng.choice([sympy.expand, sympy.factor, lambda e: e])(one)
        for form, is_equal in ((other, True), (other + sympy.Rational(1, 7), False)):
            written = rng.choice([sympy.latex, lambda e: str(e)])(form)
            yield {"expected": sympy.latex(one), "answer": written, "equal": is_equal}
            count += 1


# ---- verdicts ----

def verdicts():
    import math_verify
    logging.disable(logging.ERROR)  # it logs each answer that it cannot parse
    parse = functools.cache(math_verify.parse)  # several answers for each expected one
    found = {}
    for grader in "math", "numeric":
        for row in replies(grader):
            verdict = math_verify.verify(parse(f"${row.expected}$"), parse(row.answer))
            found[key_of(row)] = f"{key_of(row)}\t{'right' if verdict else 'wrong'}\n"
    return found.values()


def lines_of(rows):
    return (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


KINDS = {"texts": ("texts.jsonl", lambda: lines_of(texts())),
         "expressions": ("expressions.jsonl", lambda: lines_of(expressions())),
         "verdicts": ("verdicts.tsv", verdicts)}

if __name__ == "__main__":
    if "--help" in sys.argv or "-h" in sys.argv or set(sys.argv[1:]) - set(KINDS):
        sys.exit(__doc__)
    ORACLES.mkdir(exist_ok=True)
    for kind in sys.argv[1:] or KINDS:
        name, record = KINDS[kind]
        (ORACLES / name).write_text("".join(record()))
