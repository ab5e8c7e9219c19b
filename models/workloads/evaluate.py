#!/usr/bin/env python3
"""Measures the quality of the shipped models on the shipped data, without ipw: ONNX Runtime, pycocotools, jiwer and SciPy.

    evaluate.py [--models models] [--only yolo] [--write]      --write: into quality.json

A figure is value, standard error and number of inputs.  Needs NumPy, onnxruntime, Pillow, pycocotools, jiwer and SciPy.
"""
import argparse
import contextlib
import csv
import io
import json
import wave
from pathlib import Path

import numpy as np
import onnxruntime
import scipy.linalg
from PIL import Image
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

import jiwer
from log_mel import log_mel

HERE = Path(__file__).resolve().parent
SIZES = (64, 96, 128)
RESAMPLES = 200     # of the bootstrap
STEPS, GUIDANCE = 20, 2.0


class Model:
    def __init__(self, path):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.inputs = [port.name for port in self.session.get_inputs()]
        self.outputs = [port.name for port in self.session.get_outputs()]

    def __call__(self, *arguments):
        found = self.session.run(None, dict(zip(self.inputs, arguments, strict=True)))
        return dict(zip(self.outputs, found))


def figure(values, statistic=np.mean):
    """Of per-input values, with the standard error of a bootstrap over the inputs."""
    values, random = np.asarray(values), np.random.default_rng(1)
    drawn = [statistic(values[random.integers(len(values), size=len(values))]) for _ in range(RESAMPLES)]
    return {"value": round(float(statistic(values)), 4), "error": round(float(np.std(drawn)), 4), "inputs": len(values)}


def read_rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def read_image(path, side=None):
    with Image.open(path) as file:
        image = file.convert("RGB")
    if side and image.size != (side, side):
        image = image.resize((side, side), Image.BILINEAR)
    return np.asarray(image, np.float32).transpose(2, 0, 1) / 255


# ---- classification ----

def evaluate_classifier(models, name):
    folder, data = models / "vision" / name, models / "data" / "scenes"
    config = json.loads((folder / "config.json").read_text())
    network, rows = Model(folder / "model.onnx"), read_rows(data / "labels.csv")
    pixels = np.stack([(read_image(data / row["file"]) - 0.5) / 0.5 for row in rows])
    order = network(pixels)["logits"].argsort(1)[:, ::-1]
    wanted = np.array([config["label2id"][row["label"]] for row in rows])
    ranks = (order == wanted[:, None]).argmax(1)
    return {"top_1": figure(ranks < 1), "top_5": figure(ranks < 5)}


def evaluate_topics(models):
    folder = models / "text" / "topics-lstm"
    config = json.loads((folder / "config.json").read_text())
    words = {word: index for index, word in enumerate((folder / "vocab.txt").read_text().splitlines())}
    network, right = Model(folder / "model.onnx"), []
    for row in read_rows(models / "data" / "topics.csv"):
        tokens = np.array([[words.get(word, words["[UNK]"]) for word in row["text"].split()]])
        found = network(tokens, np.ones_like(tokens))["logits"].argmax()
        right.append(config["id2label"][str(found)] == row["label"])
    return {"top_1": figure(right)}


# ---- detection ----

def suppress(boxes, scores, most):
    """Indices of the boxes that stay, best first; boxes are x, y, width, height."""
    order, kept = scores.argsort()[::-1], []
    low, high = boxes[:, :2], boxes[:, :2] + boxes[:, 2:]
    area = boxes[:, 2] * boxes[:, 3]
    while len(order) and len(kept) < 300:
        best, order = order[0], order[1:]
        kept.append(best)
        common = np.maximum(0, np.minimum(high[best], high[order]) - np.maximum(low[best], low[order])).prod(1)
        order = order[common <= most * (area[best] + area[order] - common)]
    return kept


def detections(network, path, side, confidence, overlap=0.7):
    found = network(read_image(path, side)[None])["output0"][0].T
    scores, classes = found[:, 4:].max(1), found[:, 4:].argmax(1)
    found, classes, scores = (part[scores > confidence] for part in (found, classes, scores))
    with Image.open(path) as file:
        width = file.size[0]
    boxes = np.concatenate([found[:, :2] - found[:, 2:4] / 2, found[:, 2:4]], 1) * (width / side)
    results = []
    for which in np.unique(classes):
        of = np.flatnonzero(classes == which)
        results += [(int(which), float(scores[i]), boxes[i].tolist()) for i in of[suppress(boxes[of], scores[of], overlap)]]
    return results


def average_precision(truth, found, images):
    """AP at an IoU of 0.5, and the mean of those from 0.5 to 0.95."""
    with contextlib.redirect_stdout(io.StringIO()):
        evaluation = COCOeval(truth, truth.loadRes(found), "bbox")
        evaluation.params.imgIds = images
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return {"map_50": round(float(evaluation.stats[1]), 4), "map_50_95": round(float(evaluation.stats[0]), 4)}


def evaluate_detector(models, size, side, confidence):
    data = models / "data" / "scenes"
    network = Model(models / "vision" / f"scenes-yolo-{size}.onnx")
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO(str(data / "annotations.json"))
    found = [{"image_id": image["id"], "category_id": which, "score": score, "bbox": box}
             for image in truth.dataset["images"]
             for which, score, box in detections(network, data / image["file_name"], side, confidence)]
    return average_precision(truth, found, [image["id"] for image in truth.dataset["images"]])


def evaluate_detectors(models, sizes=SIZES):
    return {f"scenes-yolo-{size}": {f"size {side}, confidence {confidence}": evaluate_detector(models, size, side, confidence)
                                    for side in sizes for confidence in (0.25, 0.001)} for size in "nsm"}


# ---- speech ----

def transcript(folder, features, parts, tokens, config):
    """Greedy decoding with the cache of keys and values."""
    encoder, first, following = parts
    states = encoder(features[None])["last_hidden_state"]
    ids = [config["decoder_start_token_id"]] + [token for _, token in config["forced_decoder_ids"]]
    out, words = first(np.array([ids]), states), []
    cache = {name: value for name, value in out.items() if name != "logits"}
    while len(words) < 12:
        token = int(out["logits"][0, -1].argmax())
        if token == config["eos_token_id"]:
            break
        words.append(tokens[token])
        past = [cache[name.replace("past_key_values", "present")] for name in following.inputs[1:]]
        out = following(np.array([[token]]), *past)
        cache.update({name: value for name, value in out.items() if name != "logits"})
    return "".join(words).replace("\u0120", " ").strip()


def evaluate_digits(models):
    folder, data = models / "speech" / "digits-whisper", models / "data" / "digits"
    config = json.loads((folder / "generation_config.json").read_text())
    tokens = {index: token for token, index in json.loads((folder / "vocab.json").read_text()).items()}
    parts = [Model(folder / f"{name}_model.onnx") for name in ("encoder", "decoder", "decoder_with_past")]
    counts = []
    for row in read_rows(data / "labels.csv"):
        with wave.open(str(data / row["file"])) as file:
            samples = np.frombuffer(file.readframes(file.getnframes()), "<i2") / 32768
        found = transcript(folder, log_mel(samples), parts, tokens, config)
        pair = []
        for output in (jiwer.process_words(row["label"], found), jiwer.process_characters(row["label"], found)):
            pair += [output.substitutions + output.deletions + output.insertions,
                     output.substitutions + output.deletions + output.hits]
        counts.append(pair)
    counts = np.array(counts)
    return {"wer": figure(counts[:, :2], lambda rows: rows[:, 0].sum() / rows[:, 1].sum()),
            "cer": figure(counts[:, 2:], lambda rows: rows[:, 0].sum() / rows[:, 1].sum())}


# ---- diffusion ----

def signal_shares(models):
    config = json.loads((models / "diffusion" / "shapes-diffusion" / "scheduler" / "scheduler_config.json").read_text())
    return np.cumprod(1 - np.linspace(config["beta_start"], config["beta_end"], config["num_train_timesteps"]))


def generate(network, shares, classes, seed):
    """DDIM with guidance; images in -1 to 1."""
    x = np.random.default_rng(seed).standard_normal((len(classes), 3, 32, 32)).astype(np.float32)
    every, labels = len(shares) // STEPS, np.concatenate([classes, np.full_like(classes, 10)])
    for step in range(STEPS - 1, -1, -1):
        at = np.full(len(labels), step * every)
        with_class, without = np.split(network(np.concatenate([x, x]), at, labels)["out_sample"], 2)
        predicted = without + GUIDANCE * (with_class - without)
        now, then = shares[step * every], shares[(step - 1) * every if step else 0]
        image = np.clip((x - (1 - now) ** 0.5 * predicted) / now ** 0.5, -1, 1)
        x = (then ** 0.5 * image + (1 - then) ** 0.5 * predicted).astype(np.float32)
    return np.round((np.clip(x, -1, 1) + 1) * 127.5).astype(np.float32) / 127.5 - 1


def frechet_distance(a, b):
    root = scipy.linalg.sqrtm(np.cov(a.T) @ np.cov(b.T)).real
    return float(((a.mean(0) - b.mean(0)) ** 2).sum() + np.trace(np.cov(a.T) + np.cov(b.T) - 2 * root))


def evaluate_diffusion(models):
    """FID of the prompts of shapes.csv; the error is that of three sets of noise."""
    folder = models / "diffusion"
    names = json.loads((folder / "shapes-diffusion" / "model_index.json").read_text())["ipw_classes"]
    network, encoder = Model(folder / "shapes-diffusion" / "unet" / "model.onnx"), Model(folder / "shapes-encoder.onnx")
    classes = np.array([names.index(row["label"]) for row in read_rows(models / "data" / "shapes.csv")])
    references, shares = np.load(folder / "shapes-reference.npy"), signal_shares(models)
    found = []
    for seed in range(3):
        images = np.concatenate([generate(network, shares, some, (seed, index))
                                 for index, some in enumerate(np.split(classes, 10))])
        found.append(frechet_distance(encoder(images)["features"], references))
    return {"fid": {"value": round(float(np.mean(found)), 3), "error": round(float(np.std(found, ddof=1)), 3),
                    "inputs": len(classes)},
            "fid_of_references": round(frechet_distance(references[:len(classes)], references[-len(classes):]), 3)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--models", type=Path, default=HERE.parent)
    parser.add_argument("--only", help="vit, resnet, yolo, topics, digits or diffusion")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    parts = {"vit": lambda models: {"scenes-vit": evaluate_classifier(models, "scenes-vit")},
             "resnet": lambda models: {"scenes-resnet": evaluate_classifier(models, "scenes-resnet")},
             "yolo": evaluate_detectors,
             "topics": lambda models: {"topics-lstm": evaluate_topics(models)},
             "digits": lambda models: {"digits-whisper": evaluate_digits(models)},
             "diffusion": lambda models: {"shapes-diffusion": evaluate_diffusion(models)}}
    found = {}
    for name, evaluate in parts.items():
        if options.only in (None, name):
            found.update(evaluate(options.models))
    text = json.dumps(found, indent=1) + "\n"
    print(text, end="")
    if options.write:
        (options.models / "quality.json").write_text(text)


if __name__ == "__main__":
    main()
