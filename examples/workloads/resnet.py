"""Image classification with a ResNet of torchvision, random weights.

    ipw run -- python3 examples/workloads/resnet.py --model resnet50 --batch 64 --precision bf16
"""
import torch
import torchvision

from common import build, host, measure, options_of, part, to_device

options = options_of(__doc__, ["resnet50", "resnet18", "resnet152"])
model = build(options, getattr(torchvision.models, options.model)).to(memory_format=torch.channels_last)
images = host(options, torch.rand(options.batch, 3, 224, 224))


def run():
    with part(options, "prepare"):
        pixels = to_device(options, images).contiguous(memory_format=torch.channels_last)
    with part(options, "classify"):
        model(pixels).argmax(-1)


measure(options, run, images=options.batch)
