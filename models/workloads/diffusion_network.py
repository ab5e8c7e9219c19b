"""A class-conditional UNet that predicts noise, and the encoder whose features are compared for FID."""
import math

import torch
import torch.nn.functional as F
from torch import nn

CLASS_COUNT = 10
UNCONDITIONAL = CLASS_COUNT       # the class of guidance
STEPS, BETA_FIRST, BETA_LAST = 1000, 1e-4, 0.02
FEATURES = 64


def signal_shares():
    """Products of 1 - beta: the signal's share of the variance at each timestep."""
    return torch.cumprod(1 - torch.linspace(BETA_FIRST, BETA_LAST, STEPS, dtype=torch.float64), 0)


class ResBlock(nn.Module):
    def __init__(self, inputs, outputs, embedding):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(8, inputs), nn.Conv2d(inputs, outputs, 3, padding=1)
        self.embed = nn.Linear(embedding, outputs)
        self.norm2, self.conv2 = nn.GroupNorm(8, outputs), nn.Conv2d(outputs, outputs, 3, padding=1)
        self.shortcut = nn.Identity() if inputs == outputs else nn.Conv2d(inputs, outputs, 1)
        nn.init.zeros_(self.conv2.weight)

    def forward(self, x, embedding):
        y = self.conv1(F.silu(self.norm1(x))) + self.embed(F.silu(embedding))[:, :, None, None]
        return self.shortcut(x) + self.conv2(F.silu(self.norm2(y)))


class SpatialAttention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.qkv, self.out = nn.GroupNorm(8, width), nn.Conv2d(width, 3 * width, 1), nn.Conv2d(width, width, 1)
        self.scale = width ** -0.5

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).flatten(2).chunk(3, 1)
        weights = torch.softmax(q.transpose(1, 2) @ k * self.scale, -1)
        return x + self.out((v @ weights.transpose(1, 2)).reshape(x.shape))


class UNet(nn.Module):
    """Three resolutions, one residual block each way, attention at the lowest one."""

    def __init__(self, widths=(32, 48, 64), embedding=96):
        super().__init__()
        w0, w1, w2 = widths
        self.register_buffer("frequencies", torch.exp(-math.log(10000) * torch.arange(w0) / w0), persistent=False)
        self.time = nn.Sequential(nn.Linear(2 * w0, embedding), nn.SiLU(), nn.Linear(embedding, embedding))
        self.classes = nn.Embedding(CLASS_COUNT + 1, embedding)
        self.first = nn.Conv2d(3, w0, 3, padding=1)
        self.down0, self.less0 = ResBlock(w0, w0, embedding), nn.Conv2d(w0, w0, 3, 2, 1)
        self.down1, self.less1 = ResBlock(w0, w1, embedding), nn.Conv2d(w1, w1, 3, 2, 1)
        self.down2, self.attention = ResBlock(w1, w2, embedding), SpatialAttention(w2)
        self.middle = ResBlock(w2, w2, embedding)
        self.up1, self.attention1 = ResBlock(w2 + w1, w1, embedding), SpatialAttention(w1)
        self.up0 = ResBlock(w1 + w0, w0, embedding)
        self.norm, self.last = nn.GroupNorm(8, w0), nn.Conv2d(w0, 3, 3, padding=1)
        nn.init.zeros_(self.last.weight)

    def forward(self, sample, timestep, class_labels):
        angles = timestep[:, None].to(sample.dtype) * self.frequencies
        embedding = self.time(torch.cat([angles.cos(), angles.sin()], 1)) + self.classes(class_labels)
        x0 = self.down0(self.first(sample), embedding)
        x1 = self.down1(self.less0(x0), embedding)
        x = self.attention(self.down2(self.less1(x1), embedding))
        x = F.interpolate(self.middle(x, embedding), scale_factor=2.0)
        x = F.interpolate(self.attention1(self.up1(torch.cat([x, x1], 1), embedding)), scale_factor=2.0)
        x = self.up0(torch.cat([x, x0], 1), embedding)
        return self.last(F.silu(self.norm(x)))


class ShapesEncoder(nn.Module):
    """A small convolutional network; `features` are those before its classifier."""

    def __init__(self):
        super().__init__()
        layers, inputs = [], 3
        for width, stride in ((16, 1), (32, 2), (32, 1), (48, 2), (FEATURES, 2)):
            layers += [nn.Conv2d(inputs, width, 3, stride, 1), nn.BatchNorm2d(width), nn.SiLU()]
            inputs = width
        self.layers, self.head = nn.Sequential(*layers), nn.Linear(FEATURES, CLASS_COUNT)

    def features(self, images):
        return self.layers(images).mean((2, 3))

    def forward(self, images):
        return self.head(self.features(images))


@torch.no_grad()
def ddim(network, noise, classes, steps=20, guidance=2.0):
    """DDIM without noise, with leading timesteps and clipped predictions as in diffusers, guided."""
    alphas = signal_shares().to(noise.device)
    every = STEPS // steps
    x, other = noise, torch.full_like(classes, UNCONDITIONAL)
    for step in range(steps - 1, -1, -1):
        at = torch.full_like(classes, step * every)
        with_class, without = network(torch.cat([x, x]), torch.cat([at, at]), torch.cat([classes, other])).chunk(2)
        predicted = without + guidance * (with_class - without)
        now = alphas[step * every].float()
        then = alphas[(step - 1) * every if step else 0].float()
        image = ((x - (1 - now).sqrt() * predicted) / now.sqrt()).clamp(-1, 1)
        x = then.sqrt() * image + (1 - then).sqrt() * predicted
    return x
