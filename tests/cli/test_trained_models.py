#!/usr/bin/env python3
"""The shipped ONNX models and their data: the listed files, data that the generators write again, and the recorded quality,
reproduced without ipw by ONNX Runtime, pycocotools and jiwer, and by `ipw profile`."""

import hashlib
import json
import os
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
import oracle

oracle.use()
SOURCE = Path(os.environ.get("IPW_SOURCE", Path(__file__).parents[2]))
MODELS = SOURCE / "models"
sys.path.append(str(MODELS / "workloads"))
try:
    import digits
    import evaluate
    import numpy as np
    import scenes
    import shape_images
    import topics
except ImportError as error:
    print(f"skipped: {error} (set IPW_PYTHON to an interpreter that has it)")
    sys.exit(77)
from program import ipw

FOLDERS = ("vision", "speech", "text", "diffusion", "data")
LARGEST = 2e6   # bytes of a model, with what belongs to it
TOTAL = 12e6
DELTA = 0.012   # of a share: one of 120 answers, where rounding differs between processors
QUALITY = json.loads((MODELS / "quality.json").read_text())


def size(path):
    return path.stat().st_size if path.is_file() else sum(size(inner) for inner in path.iterdir())


class Files(unittest.TestCase):
    def test_exactly_listed_files_are_there(self):
        listed = dict(reversed(line.split(maxsplit=1)) for line in (MODELS / "SHA256SUMS").read_text().splitlines())
        wanted = {name: checksum for name, checksum in listed.items() if "/" in name}
        found = {str(path.relative_to(MODELS)): hashlib.sha256(path.read_bytes()).hexdigest()
                 for folder in FOLDERS for path in (MODELS / folder).rglob("*") if path.is_file()}
        self.assertEqual(found, wanted)

    def test_models_are_small(self):
        for folder in FOLDERS[:-1]:
            for model in (MODELS / folder).iterdir():
                self.assertLess(size(model), LARGEST, model)
        self.assertLess(sum(size(MODELS / folder) for folder in FOLDERS), TOTAL)


class Data(unittest.TestCase):
    """Generated again, with a few items each: the shipped data are the first of a seed."""

    def test_scenes(self):
        annotations = json.loads((MODELS / "data/scenes/annotations.json").read_text())["annotations"]
        labels = evaluate.read_rows(MODELS / "data/scenes/labels.csv")
        for index in (0, 7, 119):
            pixels, boxes, classes, areas = scenes.scene(np.random.default_rng((scenes.TEST_SEED, index)))
            shipped = scenes.read_png(MODELS / "data/scenes" / labels[index]["file"]).astype(int)
            self.assertLessEqual(abs(shipped - pixels).max(), 1)  # rounding differs between processors
            self.assertEqual(labels[index]["label"], scenes.CLASSES[classes[areas.argmax()]])
            found = [row for row in annotations if row["image_id"] == index]
            self.assertEqual([row["category_id"] for row in found], classes.tolist())
            self.assertEqual([[row["bbox"][0] + row["bbox"][2], row["bbox"][1]] for row in found], boxes[:, [2, 1]].tolist())

    def test_digits(self):
        labels = evaluate.read_rows(MODELS / "data/digits/labels.csv")
        for index in (0, 39):
            (samples, text), = digits.of_voice((digits.TEST_SEED, index, 1, digits.TEST_NOISE))
            with evaluate.wave.open(str(MODELS / "data/digits" / labels[index]["file"])) as file:
                shipped = np.frombuffer(file.readframes(file.getnframes()), "<i2")
            self.assertEqual(labels[index]["label"], text)
            self.assertEqual(len(shipped), len(samples))
            self.assertLess(abs(shipped.astype(float) - samples).max(), 10)  # of 32768

    def test_topics_and_shapes(self):
        rows = evaluate.read_rows(MODELS / "data/topics.csv")
        self.assertEqual([(row["text"], row["label"]) for row in rows],
                         topics.held_out(len(rows), topics.TEST_SEED))
        prompts = evaluate.read_rows(MODELS / "data/shapes.csv")
        self.assertEqual(len({row["prompt"] for row in prompts}), len(prompts))
        self.assertTrue(all(row["prompt"].startswith(row["label"] + " seed=") for row in prompts))


class Quality(unittest.TestCase):
    """The figures of quality.json."""

    def expect(self, found, wanted):
        for name, figure in found.items():
            recorded = wanted[name]
            if isinstance(figure, dict):
                figure, recorded = figure["value"], recorded["value"]
            self.assertAlmostEqual(figure, recorded, delta=DELTA, msg=name)

    def test_classifiers(self):
        for name in ("scenes-vit", "scenes-resnet"):
            self.expect(evaluate.evaluate_classifier(MODELS, name), QUALITY[name])

    def test_detectors(self):
        for size_name in "nsm":
            key = "size 64, confidence 0.25"
            self.expect(evaluate.evaluate_detector(MODELS, size_name, 64, 0.25), QUALITY[f"scenes-yolo-{size_name}"][key])

    def test_larger_detectors_and_images_are_better(self):
        n, s, m = (QUALITY[f"scenes-yolo-{name}"] for name in "nsm")
        for key in n:
            self.assertLess(n[key]["map_50_95"], s[key]["map_50_95"])
            self.assertLess(s[key]["map_50_95"], m[key]["map_50_95"])

    def test_topics(self):
        self.expect(evaluate.evaluate_topics(MODELS), QUALITY["topics-lstm"])

    def test_digits(self):
        self.expect(evaluate.evaluate_digits(MODELS), QUALITY["digits-whisper"])

    def test_features_of_reference_images(self):
        references = np.load(MODELS / "diffusion/shapes-reference.npy")
        self.assertEqual(references.shape, (500, 64))
        images = np.stack([shape_images.shape_image((shape_images.REFERENCE_SEED, index))[0] for index in range(10)])
        encoder = evaluate.Model(MODELS / "diffusion/shapes-encoder.onnx")
        features = encoder(images.transpose(0, 3, 1, 2).astype(np.float32) / 127.5 - 1)["features"]
        self.assertLess(abs(features - references[:10]).max(), 0.02 * abs(references).max())

    def test_generated_images_are_of_their_class(self):
        """By the nearest mean of the reference images of each class, whose classes take turns."""
        references = np.load(MODELS / "diffusion/shapes-reference.npy")
        means = np.stack([references[which::10].mean(0) for which in range(10)])
        network = evaluate.Model(MODELS / "diffusion/shapes-diffusion/unet/model.onnx")
        encoder = evaluate.Model(MODELS / "diffusion/shapes-encoder.onnx")
        images = evaluate.generate(network, evaluate.signal_shares(MODELS), np.arange(10), 0)
        distance = np.linalg.norm(encoder(images)["features"][:, None] - means[None], axis=2)
        self.assertGreaterEqual((distance.argmin(1) == np.arange(10)).sum(), 8)


class Profile(unittest.TestCase):
    """`ipw profile` with nothing but the name of a workload finds the same quality."""

    def test_quality_is_that_of_other_software(self):
        for workload, model, metric in (("vit", "scenes-vit", "top_1"), ("lstm", "topics-lstm", "top_1"),
                                        ("whisper", "digits-whisper", "wer")):
            with tempfile.TemporaryDirectory() as folder, self.subTest(workload=workload):
                done = ipw(None, "profile", "--workload", workload, "--idle", "0", "--format", "json", "--output-dir",
                           folder, "--client-param", "threads=1", env={"IPW_MODELS": str(MODELS)})
                if "onnxruntime" in done.stderr and done.returncode:
                    self.skipTest(done.stderr.splitlines()[-1])
                self.assertEqual(done.returncode, 0, done.stderr)
                found = {row["name"]: row["value"] for row in json.loads(done.stdout)["quality"]}
                self.assertAlmostEqual(found[metric], QUALITY[model][metric]["value"], delta=DELTA)


if __name__ == "__main__":
    unittest.main()
