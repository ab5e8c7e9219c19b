"""Object detection with a network of YOLOv8's shape, random weights.

    ipw run -- python3 examples/workloads/yolo.py --model s --batch 16 --length 640 --precision fp16
"""
import torch
import torch.nn.functional as F
from torch import nn

from common import build, host, measure, options_of, part, to_device

SIZES = {"n": (1 / 3, 0.25, 1024), "s": (1 / 3, 0.5, 1024), "m": (2 / 3, 0.75, 768)}  # depth, width, most channels
CLASSES, BINS = 80, 16


class Conv(nn.Sequential):
    def __init__(self, inputs, outputs, size=1, stride=1):
        super().__init__(nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False), nn.BatchNorm2d(outputs),
                         nn.SiLU())


class Bottleneck(nn.Module):
    def __init__(self, width, is_residual):
        super().__init__()
        self.layers, self.is_residual = nn.Sequential(Conv(width, width, 3), Conv(width, width, 3)), is_residual

    def forward(self, x):
        return x + self.layers(x) if self.is_residual else self.layers(x)


class C2f(nn.Module):
    def __init__(self, inputs, outputs, repeats, is_residual=False):
        super().__init__()
        self.first, self.last = Conv(inputs, outputs), Conv((2 + repeats) * outputs // 2, outputs)
        self.blocks = nn.ModuleList(Bottleneck(outputs // 2, is_residual) for _ in range(repeats))

    def forward(self, x):
        parts = list(self.first(x).chunk(2, 1))
        for block in self.blocks:
            parts.append(block(parts[-1]))
        return self.last(torch.cat(parts, 1))


class SPPF(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first, self.last = Conv(width, width // 2), Conv(2 * width, width)

    def forward(self, x):
        parts = [self.first(x)]
        for _ in range(3):
            parts.append(F.max_pool2d(parts[-1], 5, 1, 2))
        return self.last(torch.cat(parts, 1))


class Yolo(nn.Module):
    def __init__(self, depth, width, most):
        super().__init__()
        c1, c2, c3, c4, c5 = (int(min(channels, most) * width) for channels in (64, 128, 256, 512, 1024))
        few, many = round(3 * depth), round(6 * depth)
        self.stem = nn.Sequential(Conv(3, c1, 3, 2), Conv(c1, c2, 3, 2), C2f(c2, c2, few, True))
        self.p3 = nn.Sequential(Conv(c2, c3, 3, 2), C2f(c3, c3, many, True))
        self.p4 = nn.Sequential(Conv(c3, c4, 3, 2), C2f(c4, c4, many, True))
        self.p5 = nn.Sequential(Conv(c4, c5, 3, 2), C2f(c5, c5, few, True), SPPF(c5))
        self.up4, self.up3 = C2f(c4 + c5, c4, few), C2f(c3 + c4, c3, few)
        self.down3, self.out4 = Conv(c3, c3, 3, 2), C2f(c3 + c4, c4, few)
        self.down4, self.out5 = Conv(c4, c4, 3, 2), C2f(c4 + c5, c5, few)
        boxes, scores = max(16, c3 // 4, 4 * BINS), max(c3, min(CLASSES, 100))
        self.boxes = nn.ModuleList(nn.Sequential(Conv(c, boxes, 3), Conv(boxes, boxes, 3),
                                                 nn.Conv2d(boxes, 4 * BINS, 1)) for c in (c3, c4, c5))
        self.scores = nn.ModuleList(nn.Sequential(Conv(c, scores, 3), Conv(scores, scores, 3),
                                                  nn.Conv2d(scores, CLASSES, 1)) for c in (c3, c4, c5))

    def forward(self, images):
        p3 = self.p3(self.stem(images))
        p4 = self.p4(p3)
        p5 = self.p5(p4)
        n4 = self.up4(torch.cat([F.interpolate(p5, scale_factor=2.0), p4], 1))
        n3 = self.up3(torch.cat([F.interpolate(n4, scale_factor=2.0), p3], 1))
        n4 = self.out4(torch.cat([self.down3(n3), n4], 1))
        n5 = self.out5(torch.cat([self.down4(n4), p5], 1))
        levels = n3, n4, n5
        sides = torch.cat([head(level).flatten(2) for head, level in zip(self.boxes, levels)], 2)
        scores = torch.cat([head(level).flatten(2) for head, level in zip(self.scores, levels)], 2)
        bins = torch.arange(BINS, dtype=sides.dtype, device=sides.device).view(1, 1, BINS, 1)
        distance = (sides.unflatten(1, (4, BINS)).softmax(2) * bins).sum(2)
        return torch.cat([distance, scores.sigmoid()], 1)


options = options_of(__doc__, list(SIZES), length=(640, "side of the images"))
model = build(options, lambda: Yolo(*SIZES[options.model])).to(memory_format=torch.channels_last)
images = host(options, torch.rand(options.batch, 3, options.length, options.length))


def run():
    with part(options, "prepare"):
        pixels = to_device(options, images).contiguous(memory_format=torch.channels_last)
    with part(options, "detect"):
        found = model(pixels)
    with part(options, "select"):
        found[:, 4:].amax(1).topk(300)


measure(options, run, images=options.batch)
