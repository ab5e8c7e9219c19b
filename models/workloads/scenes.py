#!/usr/bin/env python3
"""Scenes for image classification and object detection: one to three shapes of ten classes, 64 x 64 pixels.

    scenes.py --out models/data/scenes --count 120 --seed 2      PNG files, labels.csv, annotations.json (COCO)

Shapes vary in size, rotation, color and shading, cover each other, and lie on textured, noisy backgrounds.  The label of
an image is the class of the shape with the largest visible area.  Needs NumPy.
"""
import argparse
import csv
import json
import struct
import zlib
from multiprocessing import Pool
from pathlib import Path

import numpy as np

CLASSES = ["circle", "square", "triangle", "star", "cross", "ring", "diamond", "heart", "arrow", "moon"]
SIDE = 64
MOST = 3          # shapes of a scene
SAMPLES = 2       # per pixel and direction
VISIBLE = 0.35    # smallest visible share of a shape
MARGIN = 1.25     # the largest visible area in terms of the second
TEST_SEED, TRAIN_SEED = 2, 1
TURN = {"square": 0.35, "diamond": 0.35, "cross": 0.35, "heart": 0.6}  # limits; otherwise any rotation


def star_corners():
    angles = np.pi / 2 + np.arange(10) * np.pi / 5
    radii = np.where(np.arange(10) % 2 == 0, 1.0, 0.42)
    return np.stack([radii * np.cos(angles), radii * np.sin(angles)], 1)


CORNERS = {
    "triangle": np.array([[0, 1], [-0.95, -0.75], [0.95, -0.75]]),
    "star": star_corners(),
    "arrow": np.array([[1, 0], [0.1, 0.75], [0.1, 0.3], [-0.95, 0.3], [-0.95, -0.3], [0.1, -0.3], [0.1, -0.75]]),
}


def inside_polygon(corners, u, v):
    """Even-odd rule."""
    is_inside = np.zeros(u.shape, bool)
    for (x0, y0), (x1, y1) in zip(corners, np.roll(corners, -1, 0)):
        if y0 == y1:
            continue
        crosses = (v < y0) != (v < y1)
        is_inside ^= crosses & (u < x0 + (v - y0) * (x1 - x0) / (y1 - y0))
    return is_inside


def inside(name, u, v):
    """Which points are in a shape of about unit radius; v points up."""
    if name in CORNERS:
        return inside_polygon(CORNERS[name], u, v)
    if name == "square":
        return np.maximum(abs(u), abs(v)) < 0.8
    if name == "cross":
        return (np.minimum(abs(u), abs(v)) < 0.28) & (np.maximum(abs(u), abs(v)) < 0.95)
    if name == "diamond":
        return abs(u) / 0.62 + abs(v) < 1
    if name == "heart":
        x, y = 1.2 * u, 1.2 * v + 0.1
        return (x * x + y * y - 1) ** 3 - x * x * y ** 3 < 0
    radius = u * u + v * v
    if name == "ring":
        return (radius < 1) & (radius > 0.35)
    if name == "moon":
        return (radius < 1) & ((u - 0.55) ** 2 + v * v > 0.75)
    return radius < 0.95  # circle


def coverage(name, side, x, y, radius, turn, squeeze, samples=SAMPLES):
    """The share of each pixel that a shape covers."""
    at = (np.arange(side * samples) + 0.5) / samples
    mask = np.zeros((side * samples, side * samples), bool)
    near_x = np.flatnonzero(abs(at - x) < 1.3 * radius)
    near_y = np.flatnonzero(abs(at - y) < 1.3 * radius)
    if len(near_x) and len(near_y):
        dx, dy = (at[near_x] - x)[None, :] / radius, (y - at[near_y])[:, None] / radius
        u = (np.cos(turn) * dx + np.sin(turn) * dy) / squeeze
        v = -np.sin(turn) * dx + np.cos(turn) * dy
        mask[near_y[0]:near_y[-1] + 1, near_x[0]:near_x[-1] + 1] = inside(name, u, v)
    return mask.reshape(side, samples, side, samples).mean((1, 3))


def smooth_noise(random, side, cells):
    """Random values on a coarse grid, bilinearly enlarged."""
    grid = random.random((cells + 1, cells + 1))
    at = np.linspace(0, cells, side, endpoint=False)
    low, part = at.astype(int), at % 1
    rows = grid[low] * (1 - part)[:, None] + grid[low + 1] * part[:, None]
    return rows[:, low] * (1 - part) + rows[:, low + 1] * part


def texture(random, side):
    """A pattern of 0 to 1: ramp, stripes, checkerboard or clouds."""
    kind, turn = random.integers(4), random.uniform(0, np.pi)
    y, x = np.mgrid[0:side, 0:side] / side
    along = x * np.cos(turn) + y * np.sin(turn)
    if kind == 0:
        return (along - along.min()) / np.ptp(along)
    if kind == 1:
        return (np.sin(along * random.uniform(10, 45)) > 0).astype(float)
    if kind == 2:
        cells = random.integers(3, 9)
        return ((x * cells).astype(int) + (y * cells).astype(int)) % 2.0
    return smooth_noise(random, side, int(random.integers(3, 10)))


def different_color(random, other, distance):
    while True:
        color = random.random(3)
        if np.linalg.norm(color - other) > distance:
            return color


def draw_shape(random, image, name, radius, background):
    turn = random.uniform(-1, 1) * TURN.get(name, np.pi)
    place = random.uniform(0.75 * radius, SIDE - 0.75 * radius, 2) if radius < 26 else \
        random.uniform(26, SIDE - 26, 2)
    cover = coverage(name, SIDE, *place, radius, turn, random.uniform(0.8, 1))
    color = different_color(random, background, 0.22)
    shade = random.uniform(0, 0.35) * (texture(random, SIDE) - 0.5)
    filled = np.clip(color + shade[..., None], 0, 1)
    image[:] = image * (1 - cover[..., None]) + filled * cover[..., None]
    return cover


def line(random, image):
    """A thin line over everything, which belongs to no class."""
    y, x = np.mgrid[0:SIDE, 0:SIDE] + 0.5
    turn, through = random.uniform(0, np.pi), random.uniform(8, SIDE - 8, 2)
    distance = abs((x - through[0]) * np.sin(turn) - (y - through[1]) * np.cos(turn))
    cover = np.clip(random.uniform(0.6, 1.8) - distance, 0, 1)[..., None]
    image[:] = image * (1 - cover) + random.random(3) * cover
    return cover[..., 0]


def attempt(random):
    """Image, boxes (x0, y0, x1, y1) of the visible parts, classes, visible areas; None where a shape is hidden."""
    background = random.random(3)
    pattern = texture(random, SIDE)[..., None]
    image = np.clip(background + random.uniform(0, 0.5) * (pattern - 0.5), 0, 1)
    count = random.integers(1, MOST + 1)
    covers, classes = [], random.integers(len(CLASSES), size=count)
    for which in classes:
        radius = np.exp(random.uniform(np.log(6.5), np.log(25 if count == 1 else 19)))
        covers.append(draw_shape(random, image, CLASSES[which], radius, background))
    hides = [line(random, image)] if random.random() < 0.5 else []
    boxes, areas = [], []
    for index, cover in enumerate(covers):
        seen = cover.copy()
        for other in covers[index + 1:] + hides:
            seen *= 1 - other
        rows, columns = np.flatnonzero((seen > 0.5).any(1)), np.flatnonzero((seen > 0.5).any(0))
        if seen.sum() < VISIBLE * cover.sum() or len(rows) < 5 or len(columns) < 5:
            return None
        boxes.append([columns[0], rows[0], columns[-1] + 1, rows[-1] + 1])
        areas.append(seen.sum())
    order = np.sort(areas)
    if count > 1 and order[-1] < MARGIN * order[-2]:
        return None
    image += random.normal(0, random.uniform(0.01, 0.14), image.shape)
    pixels = np.clip(image * random.uniform(0.6, 1) * 255 + 0.5, 0, 255).astype(np.uint8)
    return pixels, np.array(boxes, np.float32), classes, np.array(areas)


def scene(random):
    while True:
        made = attempt(random)
        if made:
            return made


def padded_scenes(keys):
    """Stacked, with three rows of boxes and classes; class -1: none.  The fourth array has the labels."""
    made = []
    for key in keys:
        pixels, boxes, classes, areas = scene(np.random.default_rng(key))
        all_boxes, all_classes = np.zeros((MOST, 4), np.float32), np.full(MOST, -1)
        all_boxes[:len(boxes)], all_classes[:len(boxes)] = boxes, classes
        made.append((pixels, all_boxes, all_classes, classes[areas.argmax()]))
    return [np.stack(column) for column in zip(*made)]


def dataset(count, seed, workers):
    """Arrays of images, boxes, classes and labels: the same ones with any number of workers."""
    parts = [[(seed, index) for index in range(first, min(first + 500, count))] for first in range(0, count, 500)]
    with Pool(workers) as pool:
        made = pool.map(padded_scenes, parts, chunksize=1)
    return [np.concatenate(column) for column in zip(*made)]


def png(pixels):
    """Bytes of a PNG of 8-bit RGB."""
    def chunk(kind, content):
        return (struct.pack(">I", len(content)) + kind + content
                + struct.pack(">I", zlib.crc32(kind + content)))
    height, width = pixels.shape[:2]
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)  # filter 0: as it is
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b""))


def read_png(path):
    """The inverse of png()."""
    content = Path(path).read_bytes()
    width, height = struct.unpack(">II", content[16:24])
    at, packed = 8, b""
    while at < len(content):
        length, kind = struct.unpack(">I4s", content[at:at + 8])
        if kind == b"IDAT":
            packed += content[at + 8:at + 8 + length]
        at += length + 12
    rows = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, 1 + 3 * width)
    assert not rows[:, 0].any(), "filtered rows"
    return rows[:, 1:].reshape(height, width, 3)


def write(folder, count, seed):
    folder.mkdir(parents=True, exist_ok=True)
    coco = {"info": {"description": "Generated scenes of ipw"}, "images": [], "annotations": [],
            "categories": [{"id": index, "name": name} for index, name in enumerate(CLASSES)]}
    labels = []
    for index in range(count):
        pixels, boxes, classes, areas = scene(np.random.default_rng((seed, index)))
        name = f"scene-{index:03d}.png"
        (folder / name).write_bytes(png(pixels))
        labels.append([name, CLASSES[classes[areas.argmax()]]])
        coco["images"].append({"id": index, "file_name": name, "width": SIDE, "height": SIDE})
        for (x0, y0, x1, y1), which, area in zip(boxes.tolist(), classes.tolist(), areas):
            coco["annotations"].append({"id": len(coco["annotations"]) + 1, "image_id": index, "category_id": which,
                                        "bbox": [x0, y0, x1 - x0, y1 - y0], "area": round(float(area), 2),
                                        "iscrowd": 0})
    with open(folder / "labels.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([["file", "label"], *labels])
    (folder / "annotations.json").write_text(json.dumps(coco) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--count", type=int, default=120)
    parser.add_argument("--seed", type=int, default=TEST_SEED)
    options = parser.parse_args()
    write(options.out, options.count, options.seed)


if __name__ == "__main__":
    main()
