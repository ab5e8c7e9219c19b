#!/usr/bin/env python3
"""Trains the networks for scenes: scenes-vit, scenes-resnet, and scenes-yolo in three sizes; see ../README.md.

    train_scenes.py --out FOLDER --seconds 240

Needs PyTorch and NumPy; a GPU for anything but a trial.  Written are the averaged weights (.npz) and scenes.json.
"""
import argparse
import time
from pathlib import Path

import torch
import torch.nn.functional as F

import scenes
from scene_networks import YOLO_SIZES, ResNet, VisionTransformer, Yolo
from training import Batches, Trainer, add_options, parameters, save, train, write_result
from yolo_loss import yolo_loss

MEAN, DEVIATION = 0.5, 0.5   # of the classifiers' inputs
SIZES = (64, 96, 128)        # of the detectors' inputs
BATCH = 512


def enlarged(images, side):
    """As ipw and ultralytics do before inference, but without rounding to 8 bits."""
    pixels = images.permute(0, 3, 1, 2).float() / 255
    return pixels if side == scenes.SIDE else F.interpolate(pixels, (side, side), mode="bilinear")


def mirrored(images, boxes):
    """Half of them from left to right; labels stay."""
    is_mirrored = torch.rand(len(images), 1, 1, device=images.device) < 0.5
    turned = torch.stack([scenes.SIDE - boxes[..., 2], boxes[..., 1], scenes.SIDE - boxes[..., 0], boxes[..., 3]], -1)
    return (torch.where(is_mirrored[..., None], images.flip(2), images), torch.where(is_mirrored, turned, boxes))


def classification_loss(network, images, boxes, classes, labels):
    images, boxes = mirrored(images, boxes)
    pixels = (enlarged(images, scenes.SIDE) - MEAN) / DEVIATION
    return F.cross_entropy(network(pixels).float(), labels, label_smoothing=0.05)


def detection_loss(network, images, boxes, classes, labels, side=SIZES[0]):
    """Of every second image: detectors cost more than classifiers."""
    images, boxes = mirrored(images[::2], boxes[::2])
    classes = classes[::2]
    return yolo_loss(network, enlarged(images, side), boxes * (side / scenes.SIDE), classes)


@torch.no_grad()
def accuracy(network, images, labels):
    right = 0
    for first in range(0, len(images), 1000):
        pixels = (enlarged(images[first:first + 1000], scenes.SIDE) - MEAN) / DEVIATION
        right += (network(pixels).argmax(1) == labels[first:first + 1000]).sum().item()
    return right / len(images)


@torch.no_grad()
def recall(network, images, boxes, classes, side):
    """Share of objects whose best anchor of their class, by score, has an IoU of 0.5 or more: a quick look, no mAP."""
    from yolo_loss import complete_iou
    output = network(enlarged(images[:1000], side)).transpose(1, 2)
    low, high = output[..., :2] - output[..., 2:4] / 2, output[..., :2] + output[..., 2:4] / 2
    found = torch.cat([low, high], -1)
    hits = objects = 0
    for index in range(classes.shape[1]):
        which = classes[:1000, index]
        score = output[..., 4:].gather(2, which.clamp(min=0)[:, None, None].expand(-1, output.shape[1], 1))[..., 0]
        best = score.argmax(1)
        box = found[torch.arange(len(found)), best]
        iou = complete_iou(box, boxes[:1000, index] * (side / scenes.SIDE))[0]
        hits += ((iou >= 0.5) & (which >= 0)).sum().item()
        objects += (which >= 0).sum().item()
    return hits / objects


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    add_options(parser)
    parser.add_argument("--scenes", type=int, default=120000, help="for training (120000)")
    options = parser.parse_args()
    out, begin = Path(options.out), time.monotonic()
    out.mkdir(parents=True, exist_ok=True)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    count, batch, tests = (300, 32, 100) if options.trial else (options.scenes, BATCH, 4000)
    arrays = scenes.dataset(count, scenes.TRAIN_SEED, options.workers)
    test = [torch.as_tensor(array).to(device) for array in scenes.dataset(tests, 3, options.workers)]
    print(f"scenes after {time.monotonic() - begin:.1f} s", flush=True)
    torch.manual_seed(1)
    batches = Batches(arrays, batch, device)
    graph = not options.no_graph
    classifiers = {"scenes-vit": Trainer(VisionTransformer(), classification_loss, batches, 1.5e-3, is_recorded=graph),
                   "scenes-resnet": Trainer(ResNet(), classification_loss, batches, 3e-3, is_recorded=graph)}
    detectors = {f"scenes-yolo-{size}": Trainer(Yolo(size), detection_loss, batches, 3e-3, variants=SIZES,
                                                     is_recorded=graph)
                 for size in YOLO_SIZES}
    print(f"networks after {time.monotonic() - begin:.1f} s", flush=True)
    steps = train(options, [*classifiers.values(), *detectors.values()], "scenes", SIZES, [0.4, 0.3, 0.3])
    found = {}
    images, boxes, classes, labels = test
    for name, trainer in {**classifiers, **detectors}.items():
        save(trainer.average, out / f"{name}.npz")
        found[name] = {"parameters": parameters(trainer.average)}
        if name in classifiers:
            found[name]["accuracy"] = accuracy(trainer.average, images, labels)
        else:
            found[name]["recall"] = {side: recall(trainer.average, images, boxes, classes, side) for side in SIZES}
    write_result(out / "scenes.json", scenes=count, batch=batch, steps=steps,
                 seconds=time.monotonic() - begin, models=found)


if __name__ == "__main__":
    main()
