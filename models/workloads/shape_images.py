"""Images of 32 x 32 pixels for class-conditional generation: one shape of the classes of scenes.py on a plain or shaded
background, without noise."""
from multiprocessing import Pool

import numpy as np

from scenes import CLASSES, TURN, coverage, different_color

SIDE = 32
TRAIN_SEED, REFERENCE_SEED = 11, 12


def shape_image(key):
    """Pixels and class; the classes take turns, so that any multiple of ten images has equally many of each."""
    random = np.random.default_rng(key)
    which = key[1] % len(CLASSES)
    name = CLASSES[which]
    background = random.random(3)
    color = different_color(random, background, 0.5)
    radius, turn = random.uniform(8, 13), random.uniform(-1, 1) * min(TURN.get(name, np.pi), 0.5)
    place = 16 + random.uniform(-1, 1, 2) * (15 - radius)
    cover = coverage(name, SIDE, *place, radius, turn, random.uniform(0.85, 1), samples=4)[..., None]
    along = (np.mgrid[0:SIDE, 0:SIDE] / SIDE - 0.5)
    shade = random.uniform(0, 0.3) * (along[0] * np.cos(turn * 6) + along[1] * np.sin(turn * 6))[..., None]
    image = (background + shade) * (1 - cover) + color * cover
    return np.clip(image * 255 + 0.5, 0, 255).astype(np.uint8), which


def dataset(count, seed, workers):
    with Pool(workers) as pool:
        made = pool.map(shape_image, [(seed, index) for index in range(count)], chunksize=256)
    return [np.stack(column) for column in zip(*made)]
