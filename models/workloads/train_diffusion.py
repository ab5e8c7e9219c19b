#!/usr/bin/env python3
"""Trains shapes-diffusion, and the encoder of its FID; see ../README.md.

    train_diffusion.py --out FOLDER --seconds 300

Needs PyTorch and NumPy; a GPU for anything but a trial.  Written are the averaged weights (.npz), diffusion.json and
generated.png.
"""
import argparse
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

import shape_images
from diffusion_network import (CLASS_COUNT, STEPS, UNCONDITIONAL, ShapesEncoder, UNet, ddim, signal_shares)
from scenes import png
from training import Batches, Trainer, add_options, parameters, save, train, write_result

DROPPED = 0.12       # labels replaced by the unconditional class


def centered(images):
    return images.permute(0, 3, 1, 2).float() / 127.5 - 1


def encoder_loss(network, images, classes):
    noisy = centered(images) + 0.05 * torch.randn_like(centered(images))
    return F.cross_entropy(network(noisy).float(), classes)


class DiffusionLoss:
    def __init__(self, device):
        self.shares = signal_shares().float().to(device)

    def __call__(self, network, images, classes):
        x, device = centered(images), images.device
        at = torch.randint(0, STEPS, (len(x),), device=device)
        labels = torch.where(torch.rand(len(x), device=device) < DROPPED, UNCONDITIONAL, classes)
        share = self.shares[at][:, None, None, None]
        noise = torch.randn_like(x)
        return F.mse_loss(network(share.sqrt() * x + (1 - share).sqrt() * noise, at, labels).float(), noise)


def fid(a, b):
    """Squared Frechet distance of two sets of features."""
    a, b = a.double().cpu(), b.double().cpu()
    covariance = torch.cov(a.t()) @ torch.cov(b.t())
    mixed = torch.linalg.eigvals(covariance).real.clamp(min=0).sqrt().sum()
    return ((a.mean(0) - b.mean(0)).pow(2).sum() + torch.cov(a.t()).trace() + torch.cov(b.t()).trace() - 2 * mixed).item()


@torch.no_grad()
def judge(network, encoder, references, guidance, steps):
    """FID against both sets of references, and the share of images that the encoder takes for their class."""
    device = references[0].device
    classes = torch.arange(len(references[0]), device=device) % CLASS_COUNT
    random = torch.Generator(device).manual_seed(5)
    noise = torch.randn(len(classes), 3, shape_images.SIDE, shape_images.SIDE, generator=random, device=device)
    images = ddim(network, noise, classes, steps, guidance).clamp(-1, 1)
    features = encoder.features(images)
    return {"fid": fid(features, encoder.features(references[0])),
            "recognized": (encoder.head(features).argmax(1) == classes).float().mean().item()}, images


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    add_options(parser)
    options = parser.parse_args()
    out, begin = Path(options.out), time.monotonic()
    out.mkdir(parents=True, exist_ok=True)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    count, batch, tests = (500, 16, 50) if options.trial else (100000, 256, 1000)
    images, classes = shape_images.dataset(count, shape_images.TRAIN_SEED, options.workers)
    held = [torch.as_tensor(array).to(device) for array in
            shape_images.dataset(2 * tests, shape_images.REFERENCE_SEED, options.workers)]
    references = [centered(held[0][:tests]), centered(held[0][tests:])]
    print(f"images after {time.monotonic() - begin:.1f} s", flush=True)
    torch.manual_seed(1)
    batches = Batches([images, classes], batch, device)
    encoder = Trainer(ShapesEncoder(), encoder_loss, batches, 2e-3, is_recorded=not options.no_graph)
    unet = Trainer(UNet(), DiffusionLoss(device), batches, 1.5e-3, weight_decay=0.0, decay=0.9995,
                   is_recorded=not options.no_graph)
    share = options.seconds
    options.seconds = 0.08 * share
    encoder_steps = train(options, [encoder], "encoder")
    options.seconds = 0.92 * share
    steps = train(options, [unet], "diffusion")
    save(encoder.average, out / "shapes-encoder.npz")
    save(unet.average, out / "shapes-diffusion.npz")
    with torch.no_grad():
        found = {"encoder_accuracy": (encoder.average(centered(held[0])).argmax(1) == held[1]).float().mean().item(),
                 "fid_of_references": fid(encoder.average.features(references[0]),
                                          encoder.average.features(references[1]))}
    for guidance in (2.0,) if options.trial else (1.0, 1.5, 2.0, 3.0):
        for some in (20,) if options.trial else (10, 20, 50):
            found[f"guidance {guidance}, {some} steps"], made = judge(unet.average, encoder.average, references,
                                                                      guidance, some)
            if guidance == 2.0 and some == 20:
                shown = ((made[:100].permute(0, 2, 3, 1) + 1) * 127.5 + 0.5).clamp(0, 255).byte().cpu().numpy()
    if len(shown) == 100:
        sheet = shown.reshape(10, 10, 32, 32, 3).transpose(0, 2, 1, 3, 4).reshape(320, 320, 3)
        (out / "generated.png").write_bytes(png(np.ascontiguousarray(sheet)))
    write_result(out / "diffusion.json", images=count, batch=batch, encoder_steps=encoder_steps, steps=steps,
                 seconds=time.monotonic() - begin, parameters=parameters(unet.average),
                 encoder_parameters=parameters(encoder.average), found=found)


if __name__ == "__main__":
    main()
