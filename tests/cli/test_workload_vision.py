#!/usr/bin/env python3
# test: asan
"""Classification and detection against ONNX Runtime in Python, with Pillow for the preprocessing of the layouts that
exporters write, and with suppression as torchvision's documentation defines it."""

import json
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
import oracle

oracle.use()
try:
    import numpy as np
    import workload_models as models
    from PIL import Image
except ImportError as error:
    print(f"skipped: {error} (set IPW_PYTHON to an interpreter that has it)")
    sys.exit(77)
import workloads

CLASSES = [f"class {i}" for i in range(12)]
IMAGENET = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])


def answers(name, model, inputs, *settings):
    """As workloads.answers, with each answer read from its JSON."""
    description, lines = workloads.answers(name, model, inputs, *settings)
    if description:
        lines = [json.loads(line["content"]) if "content" in line else line for line in lines]
    return description, lines


def planes(image, mean, std, rescale=1 / 255):
    pixels = np.asarray(image, np.float64).transpose(2, 0, 1) * rescale
    return ((pixels - np.reshape(mean, (3, 1, 1))) / np.reshape(std, (3, 1, 1))).astype(np.float32)[None]


def shorter_edge(image, edge, resample):
    width, height = image.size
    longer = int(edge * max(width, height) / min(width, height))
    return image.resize((edge, longer) if width <= height else (longer, edge), resample)


def center(image, side):
    left, top = ((size - side) // 2 for size in image.size)
    return image.crop((left, top, left + side, top + side))


def softmax(logits):
    powers = np.exp(logits - logits.max())
    return powers / powers.sum()


class Vision(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(holder.cleanup)
        cls.folder = Path(holder.name)
        random = np.random.default_rng(7)
        cls.images = []
        for number, (width, height, ending) in enumerate([(61, 43, "png"), (40, 96, "png"), (64, 64, "png"),
                                                          (130, 70, "jpg"), (33, 33, "jpg")]):
            coarse = random.integers(0, 256, (5, 5, 3), np.uint8)
            noise = random.integers(-20, 20, (height, width, 3))
            smooth = np.asarray(Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC), int)
            path = cls.folder / f"image{number}.{ending}"
            Image.fromarray(np.clip(smooth + noise, 0, 255).astype(np.uint8)).save(path)
            cls.images.append(path)

    def path(self, name):
        return self.folder / self.id().rsplit(".", 1)[-1] / name

    def opened(self):
        return [Image.open(path).convert("RGB") for path in self.images]


class Classification(Vision):
    def compare(self, found, logits, labels=CLASSES, within=2e-4):
        scores = softmax(logits.astype(np.float64))
        self.assertEqual(len(found), min(10, len(labels)))
        for entry in found:
            self.assertAlmostEqual(entry["score"], scores[labels.index(entry["label"])], delta=within)
        listed = [entry["score"] for entry in found]
        self.assertEqual(listed, sorted(listed, reverse=True))
        self.assertAlmostEqual(listed[0], scores.max(), delta=within)
        self.assertGreater(scores.max() - scores.min(), 0.05)  # a model whose answers depend on nothing proves nothing

    def check(self, file, prepare, name="vit", within=2e-4, model=None, settings=()):
        """Answers to all images equal those to `prepare`d ones; model: the directory, if not the file itself."""
        _, found = answers(name, model or file, self.images, *settings)
        for image, entry in zip(self.opened(), found, strict=True):
            self.compare(entry, models.run(file, pixel_values=prepare(image))[0], within=within)

    def optimum(self, side, **processor):
        folder = self.path("model")
        models.write_json(folder / "config.json", id2label={str(i): label for i, label in enumerate(CLASSES)})
        models.write_json(folder / "preprocessor_config.json", **processor)
        return folder, models.classifier(folder / "model.onnx", side, len(CLASSES))

    def test_optimum_vit_resizes_both_edges(self):
        mean = std = [0.5, 0.5, 0.5]
        for resample in (0, 1, 2, 3):
            with self.subTest(resample=resample):
                folder, file = self.optimum(
                    32, image_processor_type="ViTImageProcessor", do_resize=True, size={"height": 32, "width": 32},
                    resample=resample, do_rescale=True, rescale_factor=1 / 255, do_normalize=True, image_mean=mean,
                    image_std=std)
                self.check(file, lambda image: planes(image.resize((32, 32), resample), mean, std), model=folder)

    def test_optimum_crops_the_center(self):
        mean, std = [0.48, 0.45, 0.40], [0.26, 0.26, 0.27]
        folder, file = self.optimum(
            32, size={"shortest_edge": 36}, do_center_crop=True, crop_size={"height": 32, "width": 32},
            resample=3, image_mean=mean, image_std=std)
        self.check(file, lambda image: planes(center(shorter_edge(image, 36, 3), 32), mean, std), model=folder)

    def test_optimum_resnet_has_a_share_to_crop(self):
        folder, file = self.optimum(
            None, image_processor_type="ConvNextImageProcessor", size={"shortest_edge": 28}, crop_pct=0.875, resample=3,
            image_mean=IMAGENET[0], image_std=IMAGENET[1])
        self.check(file, lambda image: planes(center(shorter_edge(image, 32, 3), 28), *IMAGENET), "resnet", model=folder)

    def test_numbers_as_sizes_and_no_normalization(self):
        folder, file = self.optimum(None, size=24, resample=2, do_normalize=False, do_rescale=False)
        self.check(file, lambda image: planes(image.resize((24, 24), 2), [0] * 3, [1] * 3, 1) , model=folder, within=1)
        folder, file = self.optimum(None, size=24, resample=2, do_normalize=False)
        self.check(file, lambda image: planes(image.resize((24, 24), 2), [0] * 3, [1] * 3), model=folder)

    def test_torchvision_has_the_file_and_labels_beside(self):
        file = models.classifier(self.path("resnet50.onnx"), 56, len(CLASSES))
        (file.parent / "resnet50.labels.txt").write_text("\n".join(CLASSES) + "\n")
        self.check(file, lambda image: planes(center(shorter_edge(image, 64, 2), 56), *IMAGENET), "resnet")

    def test_size_of_a_free_model_scales_the_transform(self):
        file = models.classifier(self.path("vit.onnx"), None, len(CLASSES), metadata={"names": CLASSES})
        self.check(file, lambda image: planes(center(shorter_edge(image, 32, 2), 28), *IMAGENET), settings=["size=28"])

    def test_files_beside_a_model_have_its_name(self):
        file = models.classifier(self.path("small.onnx"), 32, len(CLASSES))
        models.write_json(file.parent / "small.config.json", id2label=dict(enumerate(CLASSES)))
        models.write_json(file.parent / "small.preprocessor_config.json", size={"height": 32, "width": 32}, resample=2,
                          image_mean=[0.5] * 3, image_std=[0.5] * 3)
        models.write_json(file.parent / "config.json", id2label={"0": "of another model"})
        self.check(file, lambda image: planes(image.resize((32, 32), 2), [0.5] * 3, [0.5] * 3))

    def test_half_precision_probabilities_and_numbers(self):
        file = models.classifier(self.path("half.onnx"), 32, 5, half=True)
        _, found = answers("vit", file, self.images)
        for image, entry in zip(self.opened(), found, strict=True):
            pixels = planes(center(shorter_edge(image, 37, 2), 32), *IMAGENET).astype(np.float16)
            self.compare(entry, models.run(file, pixel_values=pixels)[0], list("01234"), 2e-3)
        logits = models.classifier(self.path("logits.onnx"), 32, 5)
        done = models.classifier(self.path("probabilities.onnx"), 32, 5, probabilities=True)
        for one, other in zip(answers("vit", logits, self.images)[1], answers("vit", done, self.images)[1]):
            self.assertEqual([entry["label"] for entry in one], [entry["label"] for entry in other])
            np.testing.assert_allclose([entry["score"] for entry in one], [entry["score"] for entry in other], atol=1e-5)

    def test_top_limits_the_answer(self):
        file = models.classifier(self.path("vit.onnx"), 32, len(CLASSES))
        whole = answers("vit", file, self.images[:1])[1][0]
        self.assertEqual(answers("vit", file, self.images[:1], "top=3")[1][0], whole[:3])

    def test_a_batch_has_the_answers_of_its_images(self):
        for batch in ("batch", 1):
            file = models.classifier(self.path(f"{batch}.onnx"), 32, len(CLASSES), batch=batch)
            alone = answers("vit", file, self.images)[1]
            for size in (2, 5):
                together = answers("vit", file, self.images, f"batch:{size}")[1]
                for one, other in zip(alone, together, strict=True):
                    np.testing.assert_allclose([e["score"] for e in one], [e["score"] for e in other], atol=1e-5)
                    self.assertEqual([e["label"] for e in one], [e["label"] for e in other])

    def test_the_description_names_the_model_and_runtime(self):
        file = models.classifier(self.path("vit.onnx"), 32, len(CLASSES), metadata={"names": CLASSES})
        description, _ = answers("vit", file, [])
        self.assertEqual(description["workload"], "vit")
        self.assertEqual(description["model"]["file"], str(file))
        self.assertEqual(description["model"]["bytes"], file.stat().st_size)
        self.assertEqual(description["model"]["inputs"], [{"name": "pixel_values", "type": "float", "shape": "?x3x32x32"}])
        self.assertEqual(description["onnxruntime"]["provider"], "cpu")
        self.assertEqual(description["onnxruntime"]["threads"], 1)
        self.assertEqual(description["labels"], len(CLASSES))


def letterbox(image, side):
    """As in ultralytics: bilinear without antialiasing, on gray; also the scale and the offsets."""
    width, height = image.size
    scale = min(side / height, side / width)
    inner = round(width * scale), round(height * scale)
    left, top = (round((side - each) / 2 - 0.1) for each in inner)
    pixels = np.asarray(image, np.float64)
    for axis, (to, size) in enumerate(((inner[1], height), (inner[0], width))):
        at = np.clip((np.arange(to) + 0.5) * size / to - 0.5, 0, size - 1)
        low = np.floor(at).astype(int)
        part = (at - low).reshape([-1 if i == axis else 1 for i in range(3)])
        pixels = (np.take(pixels, low, axis) * (1 - part)
                  + np.take(pixels, np.minimum(low + 1, size - 1), axis) * part)
    square = np.full((side, side, 3), 114.0)
    square[top:top + inner[1], left:left + inner[0]] = np.round(pixels)
    return square, scale, left, top


def suppress(boxes, scores, classes, iou):
    """Indices that stay, by score: each class is moved to a place of its own, and overlaps are computed once."""
    moved = boxes + classes[:, None] * 7680.0
    order, stay = np.argsort(-scores, kind="stable"), []
    areas = (moved[:, 2] - moved[:, 0]) * (moved[:, 3] - moved[:, 1])
    while order.size:
        first, order = order[0], order[1:]
        stay.append(first)
        low, high = np.maximum(moved[first, :2], moved[order, :2]), np.minimum(moved[first, 2:], moved[order, 2:])
        shared = np.clip(high - low, 0, None).prod(1)
        order = order[shared / (areas[first] + areas[order] - shared) <= iou]
    return stay


class Detection(Vision):
    NAMES = ["person", "driver's seat", 'a "quoted" one', "füße", "back\\slash"]

    def expected(self, file, image, side, confidence=0.25, iou=0.7, most=300):
        square, scale, left, top = letterbox(image, side)
        rows = models.run(file, images=planes(square, [0] * 3, [1] * 3))[0].astype(np.float64)
        classes, scores = rows[4:].argmax(0), rows[4:].max(0)
        which = scores > confidence
        middle, half = rows[:2, which].T, rows[2:4, which].T / 2
        boxes = np.concatenate([middle - half, middle + half], 1)
        found = []
        for index in suppress(boxes, scores[which], classes[which], iou)[:most]:
            box = (boxes[index] - [left, top, left, top]) / scale
            box = np.clip(box, 0, [*image.size, *image.size])
            found.append((self.NAMES[classes[which][index]], scores[which][index], [*box[:2], *(box[2:] - box[:2])]))
        return found

    def matched(self, found, expected, within):
        """How many of those expected were found, with boxes within 100 times as many pixels."""
        listed = [entry["score"] for entry in found]
        self.assertEqual(listed, sorted(listed, reverse=True))
        return sum(any(entry["label"] == label and abs(entry["score"] - score) < within
                       and np.abs(np.subtract(entry["box"], box)).max() < 100 * within for entry in found)
                   for label, score, box in expected)

    def check(self, file, side, images, *settings, **given):
        """An image that is resized differs by a level of gray from the reference, so that a few detections cross the
        confidence or the overlap: nine of ten are the same.  Without resizing, all are."""
        _, found = answers("yolo", file, [self.images[i] for i in images], *settings)
        every = self.opened()
        for index, entry in zip(images, found, strict=True):
            with self.subTest(image=self.images[index].name):
                expected = self.expected(file, every[index], side, **given)
                self.assertGreater(len(expected), 5)
                if every[index].size == (side, side):
                    self.assertEqual(len(entry), len(expected))
                    self.assertEqual(self.matched(entry, expected, 1e-4), len(expected))
                else:
                    self.assertAlmostEqual(len(entry), len(expected), delta=0.1 * len(expected))
                    self.assertGreaterEqual(self.matched(entry, expected, 5e-3), 0.9 * len(expected))

    def test_fixed_size_of_the_image_itself(self):
        file = models.detector(self.path("yolo.onnx"), 64, self.NAMES)
        self.check(file, 64, [2])
        self.check(file, 64, [2], "confidence=0.001", "iou=0.3", confidence=0.001, iou=0.3)
        self.check(file, 64, [2], "confidence=0", "iou=1", "max_detections=7", confidence=0, iou=1, most=7)

    def test_free_size_from_metadata_or_parameter(self):
        file = models.detector(self.path("yolo.onnx"), None, self.NAMES, metadata={"imgsz": [96, 96]}, size=96)
        description, _ = answers("yolo", file, [])
        self.assertEqual(description["size"], 96)
        for index in range(5):
            self.check(file, 96, [index])
        self.check(file, 160, [2], "size=160")

    def test_batches(self):
        file = models.detector(self.path("yolo.onnx"), 64, self.NAMES)
        alone, together = (answers("yolo", file, self.images, *more)[1] for more in ((), ("batch:3",)))
        for one, other in zip(alone, together, strict=True):
            self.assertEqual([entry["label"] for entry in one], [entry["label"] for entry in other])
            np.testing.assert_allclose([e["score"] for e in one], [e["score"] for e in other], atol=1e-5)

    def test_end_to_end_models_have_selected_already(self):
        objects = np.zeros((1, 300, 6), np.float32)
        objects[0, :3] = [[8, 16, 24, 40, 0.9, 1], [9, 16, 24, 40, 0.8, 1], [-4, 2, 70, 12.5, 0.95, 0]]
        objects[0, 3] = [0, 0, 8, 8, 0.2, 0]
        file = models.constant_output(self.path("yolo.onnx"), objects, side=64, name="output0",
                                      metadata={"names": self.NAMES, "end2end": "True"})
        [found] = answers("yolo", file, [self.images[2]])[1]
        self.assertEqual(found, [{"label": self.NAMES[0], "score": 0.95, "box": [0, 2, 64, 10.5]},
                                 {"label": self.NAMES[1], "score": 0.9, "box": [8, 16, 16, 24]},
                                 {"label": self.NAMES[1], "score": 0.8, "box": [9, 16, 15, 24]}])


class BadInput(Vision):
    def refused(self, name, model, *words, settings=()):
        found, error = answers(name, model, [], *settings)
        self.assertIsNone(found)
        self.assertEqual(len(error.splitlines()), 1, error)
        for word in words:
            self.assertIn(word, error)

    def failed(self, name, model, *words, settings=()):
        [entry] = answers(name, model, [self.images[2]], *settings)[1]
        self.assertIn("error", entry)
        for word in words:
            self.assertIn(word, entry["error"])
        return entry

    def test_damaged_images_are_named_and_the_others_answered(self):
        file = models.classifier(self.path("vit.onnx"), 32, 4)
        half = self.path("half.png")
        half.write_bytes(self.images[0].read_bytes()[:200])
        text = self.path("text.png")
        text.write_text("no image")
        inputs = [self.images[0], half, text, self.path("absent.png"), self.images[1]]
        found = answers("vit", file, inputs)[1]
        for place, path in ((1, half), (2, text), (3, inputs[3])):
            self.assertIn(str(path), found[place]["error"])
        self.assertEqual(len(found[0]), 4)
        self.assertEqual(len(found[4]), 4)

    def test_nan_and_infinite_outputs(self):
        for value, word in ((np.nan, "NaN"), (np.inf, "infinite")):
            file = models.constant_output(self.path("vit.onnx"), [[0.5, value, 0.1]])
            self.failed("vit", file, str(file), "output logits (1x3)", word, "element 1")
        rows = np.full((1, 6, 30), np.nan)
        file = models.constant_output(self.path("yolo.onnx"), rows, name="output0")
        self.failed("yolo", file, "output0 (1x6x30)", "NaN")

    def test_wrong_shapes(self):
        file = models.constant_output(self.path("pairs.onnx"), np.zeros((1, 4, 4)))
        self.failed("vit", file, "output logits has the shape 4x4", "a value per class")
        self.failed("yolo", file, "output logits has the shape 1x4x4", "(4 + classes) x anchors")
        flat = models.constant_output(self.path("flat.onnx"), np.zeros((1, 4)))
        self.failed("yolo", flat, "output logits has the shape 1x4: expected 3 dimensions")
        v5 = models.constant_output(self.path("v5.onnx"), np.zeros((1, 60, 9)), metadata={"names": ["a"] * 4})
        self.failed("yolo", v5, "1x60x9", "(4 + 4 classes) x anchors")

    def test_labels_must_fit(self):
        file = models.classifier(self.path("vit.onnx"), 32, 4)
        (file.parent / "vit.labels.txt").write_text("a\nb\n")
        self.refused("vit", file, str(file), "4 classes, but 2 labels")
        for names, word in (("{0: 'a', 1 'b'}", "a colon"), ("{0: 'a', x: 'b'}", "the number of a class"),
                            ("['a', 'b", "the end of a quoted name"), ("person", "a dictionary or a list")):
            file = models.classifier(self.path("names.onnx"), 32, 4, metadata={"names": names})
            self.refused("resnet", file, str(file), "names", word)

    def test_models_of_another_kind(self):
        vocabulary = models.text_classifier(self.path("text.onnx"), 10, 3)
        self.refused("vit", vocabulary, str(vocabulary), "input input_ids is int64", "expected float")
        three = models.classifier(self.path("eight.onnx"), 32, 4, batch=8)
        self.refused("vit", three, "batch size is fixed at 8")
        segments = models.detector(self.path("segments.onnx"), 64, ["a"], metadata={"task": "segment"})
        self.refused("yolo", segments, 'the task "segment"')
        damaged = self.path("damaged.onnx")
        damaged.write_bytes(b"no model")
        self.refused("vit", damaged, str(damaged))
        self.refused("vit", self.path("absent.onnx"), str(self.path("absent.onnx")))
        empty = self.path("empty")
        empty.mkdir()
        self.refused("vit", empty, str(empty), "model.onnx")
        self.refused("vit", "scenes-vut-nothing", "scenes-vut-nothing")

    def test_processors_that_are_not_understood(self):
        file = models.classifier(self.path("vit.onnx"), 32, 4)
        processor = file.parent / "vit.preprocessor_config.json"
        for members, word in (({"size": {"shortest_edge": 32}}, "do_center_crop"), ({"size": 0}, "size"),
                              ({"size": 32, "resample": 5}, "resample"), ({"size": 32, "do_resize": False}, "do_resize"),
                              ({"size": 32, "resample": 2, "image_mean": [1, 2]}, "image_mean")):
            models.write_json(processor, **members)
            self.refused("vit", file, "preprocessor_config.json", word)
        processor.write_text("{")
        self.refused("vit", file, str(processor))

    def test_parameters_that_do_not_fit(self):
        file = models.classifier(self.path("vit.onnx"), 32, 4)
        self.failed("vit", file, "size=64", "32 x 32 only", settings=["size=64"])
        self.failed("vit", file, "top", settings=["top=0"])
        self.failed("vit", file, "confidence", settings=["confidence=0.5"])
        yolo = models.detector(self.path("yolo.onnx"), None, ["a", "b"])
        self.failed("yolo", yolo, "size=100", "stride, 8", settings=["size=100"])
        self.failed("yolo", yolo, "iou", settings=["iou=2"])
        self.refused("vit", file, "provider", settings=["client:provider=tpu"])
        self.refused("vit", file, "/absent", settings=["client:library=/absent"])

    def test_extremely_long_images(self):
        long = self.path("long.png")
        file = models.classifier(self.path("vit.onnx"), 224, 4)
        Image.new("RGB", (20000, 2)).save(long)
        [entry] = answers("vit", file, [long])[1]
        self.assertIn("too long to resize", entry["error"])
        self.assertIn(str(long), entry["error"])


if __name__ == "__main__":
    unittest.main()
