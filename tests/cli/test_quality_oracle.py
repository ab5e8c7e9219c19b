#!/usr/bin/env python3
# test: asan
"""Metrics of all answers together against the packages that define them: map_50 and map_50_95 with pycocotools, wer and
cer with jiwer; the uncertainties with what repeated draws give."""

import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import oracle  # noqa: E402

oracle.use()

import contextlib
import io
import json
import random
import string
import subprocess
import unittest
from pathlib import Path

from program import TIMEOUT_S  # noqa: E402

try:
    import jiwer
    import numpy as np
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval
except ImportError as error:
    print(f"skipped: {error} (set IPW_PYTHON to an interpreter that has pycocotools and jiwer)")
    sys.exit(77)

GRADE = Path(os.environ.get("IPW_BUILD", "build")).resolve() / "tests/tools/grade"
CLOSE = 1e-9


def ask(lines):
    done = subprocess.run([GRADE], input="".join(json.dumps(line) + "\n" for line in lines), capture_output=True,
                          text=True, timeout=TIMEOUT_S)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def qualities(grader, items, **params):
    """The metrics of (expected, answer) pairs or complete items, by name."""
    corpus = [item if isinstance(item, dict) else {"index": i, "expected": item[0], "answer": item[1]}
              for i, item in enumerate(items)]
    got, = ask([{"grader": grader, "params": params, "corpus": corpus}])
    assert "qualities" in got, got
    return {quality["name"]: quality for quality in got["qualities"]}


# ---- detection ----

LABELS = ["circle", "square", "triangle", "star", "cross"]


def random_box(rng):
    return [rng.randrange(600) / 4, rng.randrange(600) / 4, rng.randrange(4, 200) / 4, rng.randrange(4, 200) / 4]


def moved(rng, box):
    """Often exactly at a threshold of the overlap: boxes are on a grid."""
    return [box[0] + rng.randrange(-8, 9) / 4, box[1] + rng.randrange(-8, 9) / 4,
            max(0.25, box[2] + rng.randrange(-8, 9) / 4), max(0.25, box[3] + rng.randrange(-8, 9) / 4)]


def random_image(rng, crowds, many):
    """Expected objects, and detections: near them, several of one object, of another class, and of nothing."""
    expected = [{"label": rng.choice(LABELS[:4]), "box": random_box(rng)} for _ in range(rng.randrange(0, 9))]
    for each in expected:
        if crowds and rng.random() < 0.25:
            each["crowd"] = True
    found = []
    for each in expected:
        for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
            label = each["label"] if rng.random() < 0.9 else rng.choice(LABELS)
            found.append({"label": label, "box": moved(rng, each["box"])})
    for _ in range(rng.randrange(0, 4) + (250 if many else 0)):
        found.append({"label": rng.choice(LABELS[:1] if many else LABELS), "box": random_box(rng)})
    for each in found:
        each["score"] = rng.randrange(1, 40) / 40  # with ties
    rng.shuffle(found)
    return expected, found


def coco_of(images):
    """mAP at IoU 0.5, and averaged over 0.5 to 0.95, as COCOeval gives them."""
    truth = COCO()
    annotations, detections = [], []
    for image, (expected, found) in enumerate(images, 1):
        for each in expected:
            annotations.append({"id": len(annotations) + 1, "image_id": image, "bbox": each["box"],
                                "category_id": LABELS.index(each["label"]) + 1,
                                "area": each["box"][2] * each["box"][3], "iscrowd": int(each.get("crowd", False))})
        for each in found:
            detections.append({"image_id": image, "bbox": each["box"], "score": each["score"],
                               "category_id": LABELS.index(each["label"]) + 1})
    truth.dataset = {"info": {}, "images": [{"id": i + 1} for i in range(len(images))], "annotations": annotations,
                     "categories": [{"id": i + 1, "name": name} for i, name in enumerate(LABELS)]}
    with contextlib.redirect_stdout(io.StringIO()):
        truth.createIndex()
        run = COCOeval(truth, truth.loadRes(detections), "bbox")
        run.evaluate()
        run.accumulate()
        run.summarize()
    return run.stats[1], run.stats[0]


def items_of(images):
    return [(json.dumps(expected), json.dumps(found)) for expected, found in images]


class Detection(unittest.TestCase):
    def test_precision_agrees_with_pycocotools(self):
        rng = random.Random(20)
        seen = []
        for case in range(60):
            images = [random_image(rng, crowds=case % 2, many=case % 10 == 0) for _ in range(rng.choice([1, 3, 20]))]
            if not any(found for _, found in images) or not any(expected for expected, _ in images):
                continue
            wanted = coco_of(images)
            got = qualities("map", items_of(images))
            self.assertEqual(list(got), ["map_50", "map_50_95"])
            for quality, value in zip(got.values(), wanted):
                if value < 0:  # crowds only
                    self.assertIsNone(quality["value"])
                    self.assertIn("no image has an expected object", quality["reason"])
                else:
                    self.assertAlmostEqual(quality["value"], value, delta=CLOSE, msg=f"case {case}")
                    seen.append(value)
                self.assertEqual(quality["count"], len(images))
        self.assertGreater(sum(0.05 < value < 0.95 for value in seen), 50)

    def test_score_of_an_image_is_its_precision_at_50(self):
        rng = random.Random(21)
        images = [random_image(rng, crowds=False, many=False) for _ in range(40)]
        images = [image for image in images if image[0] and image[1]]
        grades = ask([{"grader": "map", "expected": expected, "answer": answer} for expected, answer in items_of(images)])
        for image, grade in zip(images, grades):
            wanted = coco_of([image])[0]
            self.assertAlmostEqual(grade["score"], wanted, delta=CLOSE)
            self.assertEqual(grade["verdict"], wanted > 1 - 1e-9)
        self.assertGreater(len({round(grade["score"], 6) for grade in grades}), 5)

    def test_uncertainty_is_that_of_images_drawn_again(self):
        rng = random.Random(22)
        draws = [[random_image(rng, crowds=False, many=False) for _ in range(30)] for _ in range(60)]
        got = [qualities("map", items_of(images))["map_50"] for images in draws]
        scatter = np.std([quality["value"] for quality in got], ddof=1)
        stated = np.mean([quality["plus_minus"] for quality in got])
        self.assertGreater(stated / scatter, 0.7)
        self.assertLess(stated / scatter, 1.5)

    def test_damaged_answers_are_left_out_and_empty_ones_find_nothing(self):
        box = json.dumps([{"label": "a", "box": [0, 0, 10, 10]}])
        right = json.dumps([{"label": "a", "box": [0, 0, 10, 10], "score": 0.5}])
        damaged = ['[{"label": "a", "box": [0, 0, 10, 10], "score": 0.5}', "no JSON", "{}", '[{"label": "a"}]',
                   '[{"label": "a", "box": [0, 0, 10], "score": 1}]', '[{"label": "a", "box": [0, 0, -1, 10], "score": 1}]',
                   '[{"label": "a", "box": [0, 0, 1, 10], "score": null}]',
                   '[{"label": "a", "box": [0, 0, NaN, 10], "score": 1}]', '[{"box": [0, 0, 1, 10], "score": 1}]']
        for grade, answer in zip(ask([{"grader": "map", "expected": box, "answer": each} for each in damaged]), damaged):
            self.assertIsNone(grade["verdict"], answer)
            self.assertIsNone(grade["score"], answer)
            self.assertTrue(grade["reason"], answer)
        got = qualities("map", [(box, each) for each in damaged] + [(box, right)])["map_50"]
        self.assertAlmostEqual(got["value"], 1, delta=CLOSE)
        self.assertEqual(got["count"], 1)
        got = qualities("map", [(box, "[]"), (box, "")])["map_50"]
        self.assertEqual((got["value"], got["count"]), (0, 2))
        for items in [], [("[]", right)], [(box, "no JSON")]:
            got = qualities("map", items)["map_50"]
            self.assertIsNone(got["value"])
            self.assertTrue(got["reason"])


# ---- speech ----

WORDS = "the a one two three four cat dog seven it is not there über naïve 東京".split()


def speech(rng, punctuation):
    expected = [rng.choice(WORDS) for _ in range(rng.randrange(1, 90))]
    heard = []
    for word in expected:
        chance = rng.random()
        heard += [] if chance < 0.08 else [rng.choice(WORDS)] if chance < 0.16 else [word, rng.choice(WORDS)] if chance < 0.2 \
            else [word]
    if punctuation:
        expected = [word.capitalize() + rng.choice(["", "", ",", "."]) for word in expected]
    return " ".join(expected), " ".join(heard)


class Speech(unittest.TestCase):
    def test_error_rates_agree_with_jiwer(self):
        rng = random.Random(30)
        for count in 1, 2, 40:
            items = [speech(rng, punctuation=False) for _ in range(count)]
            expected, heard = [item[0] for item in items], [item[1] for item in items]
            for grader in "wer", "cer":
                got = qualities(grader, items)
                self.assertEqual(next(iter(got)), grader)
                self.assertAlmostEqual(got["wer"]["value"], jiwer.wer(expected, heard), delta=CLOSE)
                self.assertAlmostEqual(got["cer"]["value"], jiwer.cer(expected, heard), delta=CLOSE)
                self.assertTrue(got["wer"]["lower_is_better"])

    def test_basic_normalization_is_lower_case_without_punctuation(self):
        rng = random.Random(31)
        items = [speech(rng, punctuation=True) for _ in range(20)]
        plain = [expected.lower().translate(str.maketrans("", "", string.punctuation)) for expected, _ in items]
        heard = [item[1] for item in items]
        self.assertAlmostEqual(qualities("wer", items, normalize="basic")["wer"]["value"], jiwer.wer(plain, heard),
                               delta=CLOSE)
        self.assertGreater(qualities("wer", items)["wer"]["value"], jiwer.wer(plain, heard) + 0.2)

    def test_score_of_an_answer(self):
        rng = random.Random(32)
        items = [speech(rng, punctuation=False) for _ in range(40)] + [("one", "two three four"), ("one two", "one  two ")]
        for grader, rate in ("wer", jiwer.wer), ("cer", jiwer.cer):
            grades = ask([{"grader": grader, "expected": expected, "answer": heard} for expected, heard in items])
            for (expected, heard), grade in zip(items, grades):
                heard = " ".join(heard.split())
                if heard:
                    self.assertAlmostEqual(grade["score"], max(0, 1 - rate(expected, heard)), delta=CLOSE)
                    self.assertEqual(grade["verdict"], expected == heard)

    def test_uncertainty_is_that_of_other_utterances(self):
        rng = random.Random(33)
        draws = [qualities("wer", [speech(rng, punctuation=False) for _ in range(40)])["wer"] for _ in range(200)]
        scatter = np.std([each["value"] for each in draws], ddof=1)
        self.assertAlmostEqual(np.mean([each["plus_minus"] for each in draws]) / scatter, 1, delta=0.2)

    def test_repeats_of_an_utterance_are_not_independent(self):
        rng = random.Random(34)
        items = [{"index": i, "expected": expected, "answer": heard}
                 for i, (expected, heard) in enumerate(speech(rng, punctuation=False) for _ in range(30))]
        once, often = qualities("wer", items)["wer"], qualities("wer", items * 4)["wer"]
        self.assertAlmostEqual(often["plus_minus"], once["plus_minus"], delta=CLOSE)
        self.assertEqual((often["value"], often["count"]), (once["value"], 4 * once["count"]))

    def test_nothing_expected_is_unknown_and_nothing_heard_is_all_wrong(self):
        for grader in "wer", "cer":
            got = qualities(grader, [("...", "one"), (" ", "two")], normalize="basic")[grader]
            self.assertIsNone(got["value"])
            self.assertIn("no words", got["reason"])
            self.assertEqual(qualities(grader, [("one two", "")])[grader]["value"], 1)
            grade, = ask([{"grader": grader, "params": {"normalize": "basic"}, "expected": "!", "answer": "x"}])
            self.assertIsNone(grade["verdict"])
            self.assertIsNone(grade["score"])


# ---- classification ----

def ranked(*labels):
    return json.dumps([{"label": label, "score": 1 / (i + 2)} for i, label in enumerate(labels)])


class Classification(unittest.TestCase):
    def test_shares_and_their_uncertainty(self):
        rng = random.Random(40)
        items, first, few = [], 0, 0
        for _ in range(300):
            labels = rng.sample(string.ascii_lowercase, 10)
            expected = labels[min(9, int(rng.expovariate(0.5)))]
            items.append((expected, ranked(*labels)))
            first += labels[0] == expected
            few += expected in labels[:5]
        for grader in "top_1", "top_5":
            got = qualities(grader, items)
            self.assertEqual(next(iter(got)), grader)
            for name, right in ("top_1", first), ("top_5", few):
                share = right / 300
                self.assertAlmostEqual(got[name]["value"], share, delta=CLOSE)
                self.assertAlmostEqual(got[name]["plus_minus"], (share * (1 - share) / 299) ** 0.5, delta=1e-4)
        grades = ask([{"grader": "top_5", "expected": expected, "answer": answer} for expected, answer in items])
        self.assertEqual(sum(grade["verdict"] for grade in grades), few)

    def test_all_right_is_still_uncertain(self):
        got = qualities("top_1", [("a", ranked("a", "b"))] * 10)["top_1"]
        self.assertEqual(got["value"], 1)
        self.assertGreater(got["plus_minus"], 0.04)

    def test_expected_class_by_index(self):
        answer = json.dumps([{"label": "tabby", "index": 281, "score": 0.5}])
        self.assertTrue(ask([{"grader": "top_1", "expected": "281", "answer": answer}])[0]["verdict"])
        self.assertTrue(ask([{"grader": "top_1", "expected": " tabby ", "answer": answer}])[0]["verdict"])
        self.assertFalse(ask([{"grader": "top_1", "expected": "28", "answer": answer}])[0]["verdict"])

    def test_damaged_answers_have_no_verdict(self):
        damaged = ["[]", "tabby", '"tabby"', '["tabby"]', '[{"label": "a", "score": null}]', '[{"score": 0.5}]',
                   '[{"label": "a", "score": NaN}]', '[{"label": "b", "score": 0.2}, {"label": "a", "score": 0.8}]']
        for answer, grade in zip(damaged, ask([{"grader": "top_1", "expected": "a", "answer": each} for each in damaged])):
            self.assertIsNone(grade["verdict"], answer)
            self.assertTrue(grade["reason"], answer)
        got = qualities("top_1", [("a", each) for each in damaged])["top_1"]
        self.assertEqual((got["value"], got["count"]), (None, 0))
        self.assertIn("no answer lists labels", got["reason"])


if __name__ == "__main__":
    if not GRADE.exists():
        print(f"{GRADE} was not built")
        sys.exit(77)
    unittest.main()
