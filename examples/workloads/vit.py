"""Image classification with a vision transformer of torchvision, random weights.

    ipw run -- python3 examples/workloads/vit.py --model vit_b_16 --batch 32 --precision bf16
"""
import torch
import torchvision

from common import build, host, measure, options_of, part, to_device

options = options_of(__doc__, ["vit_b_16", "vit_l_16"])
model = build(options, getattr(torchvision.models, options.model))
images = host(options, torch.rand(options.batch, 3, 224, 224))


def run():
    with part(options, "prepare"):
        pixels = to_device(options, images)
    with part(options, "classify"):
        model(pixels).argmax(-1)


measure(options, run, images=options.batch)
