#!/usr/bin/env python3
# test: asan
"""Metrics of all answers together against the packages that define them: map_50 and map_50_95 with pycocotools, wer and
cer with jiwer, FID with SciPy's sqrtm, encoders with ONNX Runtime in Python; the uncertainties with what repeated draws
give."""

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
import re
import string
import struct
import subprocess
import tempfile
import unittest
import zlib
from pathlib import Path

from program import TIMEOUT_S  # noqa: E402

try:
    import jiwer
    import numpy as np
    import onnx
    import onnxruntime
    import scipy.linalg
    from onnx import TensorProto, helper, numpy_helper
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval
except ImportError as error:
    print(f"skipped: {error} (set IPW_PYTHON to an interpreter that has pycocotools and jiwer)")
    sys.exit(77)

GRADE = Path(os.environ.get("IPW_BUILD", "build")).resolve() / "tests/tools/grade"
TOKENS = Path(os.environ.get("IPW_SOURCE", ".")).resolve() / "tests/fixtures/workloads/clip_tokens"
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
    params = {key: str(value) for key, value in params.items()}
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

    def test_any_lengths(self):
        """The edit distance takes 64 characters at a time."""
        rng = random.Random(35)
        items = []
        for length in (1, 2, 63, 64, 65, 127, 128, 129, 300):
            for letters in "ab", "abcdefghij", "".join(chr(0x4e00 + i) for i in range(400)):
                text = "".join(rng.choice(letters) for _ in range(length))
                items.append((text, "".join(rng.choice(letters) for _ in range(rng.choice([1, length, length + 70])))))
                items.append((text, "".join(c for c in text if rng.random() < 0.9) or "x"))
        for grade, (expected, heard) in zip(ask([{"grader": "cer", "expected": a, "answer": b} for a, b in items]), items):
            self.assertAlmostEqual(grade["score"], max(0, 1 - jiwer.cer(expected, heard)), delta=CLOSE)

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


# ---- generated images ----

def write_png(path, pixels):
    """8-bit RGB."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + pixels[y].tobytes() for y in range(height))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
                     chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def planes_of(pixels, mean=0.5, std=0.5):
    return ((pixels.astype(np.float64) / 255 - mean) / std).transpose(2, 0, 1)[None].astype(np.float32)


CLIP_MEAN, CLIP_STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)


def write_encoder(path, features, images=1):
    """Convolution with random weights, mean over the image; of two images, the sum of squared differences."""
    rng = np.random.default_rng(features)
    weight = numpy_helper.from_array(rng.normal(size=(features, 3, 3, 3)).astype(np.float32), "weight")
    nodes, inputs = [], []
    for i in range(images):
        inputs.append(helper.make_tensor_value_info(f"image_{i}", TensorProto.FLOAT, [1, 3, "height", "width"]))
        nodes += [helper.make_node("Conv", [f"image_{i}", "weight"], [f"conv_{i}"], kernel_shape=[3, 3]),
                  helper.make_node("Relu", [f"conv_{i}"], [f"relu_{i}"]),
                  helper.make_node("GlobalAveragePool", [f"relu_{i}"], [f"features_{i}"])]
    if images == 2:
        nodes += [helper.make_node("Sub", ["features_0", "features_1"], ["difference"]),
                  helper.make_node("ReduceSumSquare", ["difference"], ["distance"], keepdims=0)]
    output = "distance" if images == 2 else "features_0"
    graph = helper.make_graph(nodes, "encoder", inputs, [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)],
                              [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, path)
    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])


def frechet(x, y):
    a, b = np.cov(x, rowvar=False), np.cov(y, rowvar=False)
    root = scipy.linalg.sqrtm(a @ b).real
    return ((x.mean(0) - y.mean(0)) ** 2).sum() + np.trace(a + b - 2 * root)


class Images(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix="ipw-quality-")
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = Path(scratch.name)

    def table(self, name, rows, kind="npy", dtype="<f8"):
        path = self.folder / f"{name}.{kind}"
        if kind == "npy":
            np.save(path, np.asarray(rows).astype(dtype))
        else:
            names = ",".join(f"f{i}" for i in range(len(rows[0]))) + "\n" if kind == "csv" else ""
            path.write_text(names + "".join(",".join(repr(float(x)) for x in row) + "\n" for row in rows))
        return str(path)

    def images(self, name, count, size=24, seed=1):
        rng = np.random.default_rng(seed)
        pixels = [(rng.integers(0, 256, (size, size, 3)) // rng.integers(1, 5)).astype(np.uint8) for _ in range(count)]
        folder = self.folder / name
        folder.mkdir()
        for i, each in enumerate(pixels):
            write_png(folder / f"{i:04}.png", each)
        return folder, pixels

    @staticmethod
    def items(count, answers=None):
        return [{"index": i, "expected": "", "answer": str(answers[i]) if answers else "x.png"} for i in range(count)]

    def test_fid_of_features_agrees_with_scipy(self):
        rng = np.random.default_rng(50)
        for kind, dtype, digits in ("npy", "<f8", 1e-9), ("npy", "<f4", 1e-6), ("csv", None, 1e-9), ("txt", None, 1e-9):
            for width in 3, 40:
                x = rng.normal(size=(100, width)) @ rng.normal(size=(width, width))
                y = rng.normal(size=(80, width)) * 2 + 1
                files = [self.table(f"{name}-{width}", rows, kind, dtype) for name, rows in (("x", x), ("y", y))]
                got = qualities("fid", self.items(100), features=files[0], reference=files[1])["fid"]
                self.assertAlmostEqual(got["value"] / frechet(x, y), 1, delta=digits)
                self.assertEqual((got["count"], got["lower_is_better"]), (100, True))
                moments = {"reference_mean": self.table("mean", y.mean(0)), "features": files[0],
                           "reference_cov": self.table("cov", np.cov(y, rowvar=False))}
                again = qualities("fid", self.items(100), **moments)["fid"]
                self.assertAlmostEqual(again["value"] / got["value"], 1, delta=1e-6)
                fewer = qualities("fid", self.items(100)[::2], features=files[0], reference=files[1])["fid"]
                self.assertAlmostEqual(fewer["value"] / frechet(x[::2], y), 1, delta=digits)

    def test_uncertainty_of_fid_is_that_of_other_images(self):
        rng = np.random.default_rng(51)
        turn, reference = rng.normal(size=(4, 4)), self.table("r", rng.normal(size=(2000, 4)))
        got = [qualities("fid", self.items(300), reference=reference,
                         features=self.table("g", rng.normal(size=(300, 4)) @ turn + 0.2))["fid"] for _ in range(60)]
        scatter = np.std([each["value"] for each in got], ddof=1)
        self.assertAlmostEqual(np.mean([each["plus_minus"] for each in got]) / scatter, 1, delta=0.3)

    def test_fid_of_too_few_images_is_refused_with_its_bias(self):
        rng = np.random.default_rng(52)
        features = self.table("few", rng.normal(size=(40, 60)))
        reference = self.table("many", rng.normal(size=(4000, 60)))
        got = qualities("fid", self.items(40), features=features, reference=reference)["fid"]
        self.assertIsNone(got["value"])
        self.assertRegex(got["reason"], r"40 generated images for 60 features: FID is too large by about \d")
        allowed = qualities("fid", self.items(40), features=features, reference=reference, few="allow")["fid"]
        self.assertGreater(allowed["value"], 5)  # 0 for infinitely many
        self.assertIn("FID is too large", allowed["reason"])
        enough = qualities("fid", self.items(100), reference=reference, features=self.table("own", rng.normal(size=(100, 60))))
        self.assertGreater(enough["fid"]["value"], 5 * enough["fid"]["plus_minus"])  # of the same distribution
        excess = float(re.match(r"too large by about ([\d.]+): 100 images for 60 features", enough["fid"]["reason"])[1])
        self.assertLess(abs(enough["fid"]["value"] - excess), enough["fid"]["value"] / 2)
        few = qualities("fid", self.items(100), reference=features, features=self.table("own", rng.normal(size=(100, 60))))
        self.assertIn("40 reference images", few["fid"]["reason"])
        for count in 0, 1:
            got = qualities("fid", self.items(count), features=features, reference=reference)["fid"]
            self.assertIsNone(got["value"])
            self.assertIn("two or more", got["reason"])

    def test_fid_of_images(self):
        folder, pixels = self.images("generated", 30)
        reference_folder, reference = self.images("reference", 40, seed=2)
        path = str(self.folder / "encoder.onnx")
        session = write_encoder(path, 6)

        def encode(images):
            return np.concatenate([session.run(None, {"image_0": planes_of(each)})[0].reshape(1, -1) for each in images])
        files = sorted(folder.iterdir())
        got = qualities("fid", self.items(30, files), encoder=path, reference=str(reference_folder), size=24)["fid"]
        wanted = frechet(encode(pixels), encode(reference))
        self.assertAlmostEqual(got["value"] / wanted, 1, delta=1e-3)
        (folder / "0003.png").write_bytes(b"\x89PNG broken")
        got = qualities("fid", self.items(30, files), encoder=path, reference=str(reference_folder), size=24)["fid"]
        self.assertEqual(got["count"], 29)
        self.assertRegex(got["reason"], r"1 of 30 left out: .*0003.png")
        got = qualities("fid", self.items(30), encoder=path, reference=str(reference_folder), size=24)["fid"]
        self.assertIsNone(got["value"])
        self.assertIn("30 of 30 left out", got["reason"])

    def test_clip_score_is_the_mean_cosine(self):
        rng = np.random.default_rng(53)
        images, texts = rng.normal(size=(50, 16)), rng.normal(size=(50, 16))
        images[:30] += 2 * texts[:30]
        cosines = (images * texts).sum(1) / np.linalg.norm(images, axis=1) / np.linalg.norm(texts, axis=1)
        got = qualities("clip_score", self.items(50), features=self.table("i", images), text_features=self.table("t", texts))
        wanted = 100 * np.maximum(cosines, 0)
        self.assertAlmostEqual(got["clip_score"]["value"], wanted.mean(), delta=CLOSE)
        self.assertAlmostEqual(got["clip_score"]["plus_minus"], wanted.std(ddof=1) / 50 ** 0.5, delta=CLOSE)
        short = qualities("clip_score", self.items(50), features=self.table("i", images),
                          text_features=self.table("t", texts[:20]))["clip_score"]
        self.assertIsNone(short["value"])
        self.assertIn("30 of 50 items have no embedding", short["reason"])

    def test_clip_score_of_images(self):
        folder, pixels = self.images("clip", 8)
        path = str(self.folder / "clip.onnx")
        session = write_encoder(path, 5)
        embeddings = np.concatenate([session.run(None, {"image_0": planes_of(each, CLIP_MEAN, CLIP_STD)})[0].reshape(1, -1)
                                     for each in pixels])
        texts = np.random.default_rng(54).normal(size=(8, 5)) + 0.5
        cosines = (embeddings * texts).sum(1) / np.linalg.norm(embeddings, axis=1) / np.linalg.norm(texts, axis=1)
        got = qualities("clip_score", self.items(8, sorted(folder.iterdir())), encoder=path, size=24,
                        text_features=self.table("texts", texts))["clip_score"]
        self.assertAlmostEqual(got["value"], (100 * np.maximum(cosines, 0)).mean(), delta=1e-3)

    def test_clip_score_of_images_and_texts(self):
        """Embeddings of both by encoders; the tokens are those of the tokenizer's own test."""
        folder, pixels = self.images("clip-texts", 4)
        path, texts = str(self.folder / "clip-image.onnx"), str(self.folder / "clip-text.onnx")
        image_session = write_encoder(path, 5)
        rng = np.random.default_rng(57)
        table = numpy_helper.from_array(rng.normal(size=(700, 5)).astype(np.float32), "table")
        for kind in TensorProto.INT64, TensorProto.INT32:
            nodes = [helper.make_node("Gather", ["table", "input_ids"], ["each"]),
                     helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
                     helper.make_node("Unsqueeze", ["mask", "last"], ["wide"]), helper.make_node("Mul", ["each", "wide"], ["used"]),
                     helper.make_node("ReduceSum", ["used", "axis"], ["text_embeds"], keepdims=0)]
            graph = helper.make_graph(nodes, "text", [helper.make_tensor_value_info(name, kind, ["batch", 77])
                                                      for name in ("input_ids", "attention_mask")],
                                      [helper.make_tensor_value_info("each", TensorProto.FLOAT, None),
                                       helper.make_tensor_value_info("text_embeds", TensorProto.FLOAT, None)],
                                      [table, numpy_helper.from_array(np.array([1], np.int64), "axis"),
                                       numpy_helper.from_array(np.array([2], np.int64), "last")])
            onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), texts)
            cases = [case for case in json.loads((TOKENS / "tokens.json").read_text()) if len(case["ids"]) > 5][:4]
            self.assertEqual(len(cases), 4)
            cosines = []
            for case, image in zip(cases, pixels):
                text = numpy_helper.to_array(table)[case["ids"]].sum(0)
                found = image_session.run(None, {"image_0": planes_of(image, CLIP_MEAN, CLIP_STD)})[0].ravel()
                cosines.append(found @ text / np.linalg.norm(found) / np.linalg.norm(text))
            items = [{**item, "problem": case["text"]} for item, case in zip(self.items(4, sorted(folder.iterdir())), cases)]
            got = qualities("clip_score", items, encoder=path, size=24, text_encoder=texts, tokenizer=TOKENS)["clip_score"]
            self.assertAlmostEqual(got["value"], (100 * np.maximum(cosines, 0)).mean(), delta=1e-3)

    def test_lpips_of_images_and_features(self):
        folder, pixels = self.images("lpips", 6)
        reference_folder, reference = self.images("lpips-reference", 6, seed=3)
        path = str(self.folder / "lpips.onnx")
        session = write_encoder(path, 4, images=2)
        wanted = np.array([session.run(None, {"image_0": planes_of(a), "image_1": planes_of(b)})[0]
                           for a, b in zip(pixels, reference)])
        got = qualities("lpips", self.items(6, sorted(folder.iterdir())), model=path, reference=str(reference_folder))
        self.assertEqual(got["lpips"]["reason"], "")
        self.assertAlmostEqual(got["lpips"]["value"] / wanted.mean(), 1, delta=1e-5)
        self.assertTrue(got["lpips"]["lower_is_better"])
        a, b = np.random.default_rng(55).normal(size=(2, 6, 9))
        got = qualities("lpips", self.items(6), features=self.table("a", a), reference_features=self.table("b", b))["lpips"]
        self.assertAlmostEqual(got["value"], ((a - b) ** 2).sum(1).mean(), delta=CLOSE)

    def test_damaged_files_are_errors(self):
        good = np.random.default_rng(56).normal(size=(20, 3))
        reference = self.table("good", good)
        whole = Path(reference).read_bytes()
        cases = {"cut.npy": (whole[:-8], "truncated"), "header.npy": (whole[:9], "truncated"),
                 "type.npy": (whole.replace(b"<f8", b"<i8"), "type <i8"), "order.npy": (whole.replace(b"False", b"True "), "C order"),
                 "nan.csv": (b"1,2,3\n4,nan,6\n", "line 2"), "ragged.csv": (b"1,2,3\n4,5\n", "line 2"),
                 "words.csv": (b"a,b\nc,d\n", "line 2: expected numbers"), "empty.csv": (b"", "no row"),
                 "huge.npy": (whole.replace(b"(20, 3)", b"(9999999999999, 3)").replace(b" " * 13 + b"\n", b"\n"), "truncated")}
        for name, (data, said) in cases.items():
            path = self.folder / name
            path.write_bytes(data)
            got, = ask([{"grader": "fid", "params": {"features": str(path), "reference": reference},
                         "corpus": self.items(20)}])
            self.assertIn(said, got.get("error", ""), name)
            self.assertIn(name, got["error"])

    def test_parameters_are_checked_before_the_run(self):
        here = self.table("here", [[1, 2], [3, 4]])
        for grader, params in (("fid", {}), ("fid", {"features": here}), ("fid", {"features": here, "encoder": here}),
                               ("fid", {"features": here, "reference_mean": here}), ("clip_score", {"features": here}),
                               ("lpips", {"features": here}), ("lpips", {"model": here, "reference_features": here}),
                               ("fid", {"features": here, "reference": "/nowhere/x.npy"}),
                               ("fid", {"features": here, "reference": str(self.folder)})):
            got, = ask([{"grader": grader, "params": params, "expected": "", "answer": ""}])
            self.assertTrue(got.get("error"), (grader, params))
        got, = ask([{"grader": "fid", "params": {"features": here, "reference": here}, "expected": "", "answer": "x.png"}])
        self.assertIsNone(got["verdict"])
        self.assertIn("metric of all answers", got["reason"])


if __name__ == "__main__":
    if not GRADE.exists():
        print(f"{GRADE} was not built")
        sys.exit(77)
    unittest.main()
