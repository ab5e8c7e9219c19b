"""Image generation with networks of Stable Diffusion 1's shape, random weights: text encoder, guided UNet steps, VAE decoder.

    ipw run -- python3 examples/workloads/stable_diffusion.py --batch 1 --steps 20 --precision fp16

The text encoder is CLIP's of transformers.  Images have 512 x 512 pixels; a step runs the UNet for two conditions.
"""
import math

import torch
import torch.nn.functional as F
from torch import nn
from transformers import CLIPTextConfig, CLIPTextModel

from common import build, measure, options_of, part

WIDTHS, HEADS, CONTEXT, LATENT = (320, 640, 1280, 1280), 8, 768, 64
VAE_WIDTHS, TOKENS, GUIDANCE = (512, 512, 256, 128), 77, 7.5
EMBEDDED = 4 * WIDTHS[0]


def norm(width):
    return nn.GroupNorm(32, width)


class ResBlock(nn.Module):
    def __init__(self, inputs, outputs, embedded=0):
        super().__init__()
        self.norm1, self.conv1 = norm(inputs), nn.Conv2d(inputs, outputs, 3, padding=1)
        self.time = nn.Linear(embedded, outputs) if embedded else None
        self.norm2, self.conv2 = norm(outputs), nn.Conv2d(outputs, outputs, 3, padding=1)
        self.shortcut = nn.Identity() if inputs == outputs else nn.Conv2d(inputs, outputs, 1)

    def forward(self, x, time=None):
        y = self.conv1(F.silu(self.norm1(x)))
        if self.time:
            y = y + self.time(F.silu(time))[:, :, None, None]
        return self.shortcut(x) + self.conv2(F.silu(self.norm2(y)))


class Attention(nn.Module):
    def __init__(self, width, context=None, heads=HEADS):
        super().__init__()
        self.heads = heads
        self.q = nn.Linear(width, width, bias=False)
        self.k, self.v = (nn.Linear(context or width, width, bias=False) for _ in range(2))
        self.out = nn.Linear(width, width)

    def forward(self, x, context=None):
        context = x if context is None else context
        q, k, v = (layer(of).unflatten(2, (self.heads, -1)).transpose(1, 2)
                   for layer, of in ((self.q, x), (self.k, context), (self.v, context)))
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class Transformer(nn.Module):
    """Self-attention, cross-attention to the text and a gated feed-forward network."""

    def __init__(self, width):
        super().__init__()
        self.norm, self.first, self.last = norm(width), nn.Conv2d(width, width, 1), nn.Conv2d(width, width, 1)
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(width) for _ in range(3))
        self.own, self.cross = Attention(width), Attention(width, CONTEXT)
        self.gated, self.down = nn.Linear(width, 8 * width), nn.Linear(4 * width, width)

    def forward(self, x, text):
        y = self.first(self.norm(x))
        shape = y.shape
        y = y.flatten(2).transpose(1, 2)
        y = y + self.own(self.norm1(y))
        y = y + self.cross(self.norm2(y), text)
        value, gate = self.gated(self.norm3(y)).chunk(2, -1)
        y = y + self.down(value * F.gelu(gate))
        return x + self.last(y.transpose(1, 2).reshape(shape))


class Level(nn.Module):
    """A residual block and, where the level has attention, a transformer."""

    def __init__(self, inputs, outputs, attends):
        super().__init__()
        self.block = ResBlock(inputs, outputs, EMBEDDED)
        self.transformer = Transformer(outputs) if attends else None

    def forward(self, x, time, text):
        x = self.block(x, time)
        return self.transformer(x, text) if self.transformer else x


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(WIDTHS[0], EMBEDDED), nn.SiLU(), nn.Linear(EMBEDDED, EMBEDDED))
        self.first = nn.Conv2d(4, WIDTHS[0], 3, padding=1)
        self.down, self.less, self.up, self.more = (nn.ModuleList() for _ in range(4))
        kept, width = [WIDTHS[0]], WIDTHS[0]
        for index, outputs in enumerate(WIDTHS):
            for _ in range(2):
                self.down.append(Level(width, outputs, index < 3))
                kept.append(outputs)
                width = outputs
            if index < 3:
                self.less.append(nn.Conv2d(width, width, 3, 2, 1))
                kept.append(width)
        self.middle = nn.ModuleList([Level(width, width, True), Level(width, width, False)])
        for index, outputs in reversed(list(enumerate(WIDTHS))):
            for _ in range(3):
                self.up.append(Level(width + kept.pop(), outputs, index < 3))
                width = outputs
            if index:
                self.more.append(nn.Conv2d(width, width, 3, padding=1))
        self.norm, self.last = norm(width), nn.Conv2d(width, 4, 3, padding=1)

    def embedded(self, step, x):
        half = WIDTHS[0] // 2
        angles = step * torch.exp(-math.log(10000) * torch.arange(half, device=x.device) / half)
        return self.time(torch.cat([angles.cos(), angles.sin()]).to(x.dtype)[None])

    def forward(self, x, step, text):
        time = self.embedded(step, x).expand(len(x), -1)
        x = self.first(x)
        kept = [x]
        for index, level in enumerate(self.down):
            x = level(x, time, text)
            kept.append(x)
            if index % 2 and index // 2 < len(self.less):
                x = self.less[index // 2](x)
                kept.append(x)
        for level in self.middle:
            x = level(x, time, text)
        for index, level in enumerate(self.up):
            x = level(torch.cat([x, kept.pop()], 1), time, text)
            if index % 3 == 2 and index // 3 < len(self.more):
                x = self.more[index // 3](F.interpolate(x, scale_factor=2.0))
        return self.last(F.silu(self.norm(x)))


class SpatialAttention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.attention = norm(width), Attention(width, heads=1)

    def forward(self, x):
        y = self.attention(self.norm(x).flatten(2).transpose(1, 2))
        return x + y.transpose(1, 2).reshape(x.shape)


def vae_decoder():
    layers, width = [nn.Conv2d(4, 4, 1), nn.Conv2d(4, VAE_WIDTHS[0], 3, padding=1)], VAE_WIDTHS[0]
    layers += [ResBlock(width, width), SpatialAttention(width), ResBlock(width, width)]
    for index, outputs in enumerate(VAE_WIDTHS):
        for _ in range(3):
            layers.append(ResBlock(width, outputs))
            width = outputs
        if index < 3:
            layers += [nn.Upsample(scale_factor=2.0), nn.Conv2d(width, width, 3, padding=1)]
    return nn.Sequential(*layers, norm(width), nn.SiLU(), nn.Conv2d(width, 3, 3, padding=1))


def make():
    text = CLIPTextModel(CLIPTextConfig(hidden_size=CONTEXT, intermediate_size=3072, num_hidden_layers=12,
                                        num_attention_heads=12, vocab_size=49408, max_position_embeddings=TOKENS))
    return nn.ModuleDict({"text": text, "unet": UNet(), "vae": vae_decoder()})


options = options_of(__doc__, ["sd-1"], steps=20)
model = build(options, make)
prompts = torch.randint(0, 49408, (2 * options.batch, TOKENS))
shares = torch.cumprod(1 - torch.linspace(0.00085 ** 0.5, 0.012 ** 0.5, 1000, dtype=torch.float64) ** 2, 0).tolist()


def denoise(latents, text):
    """DDIM steps with guidance."""
    every = 1000 // options.steps
    for step in range(options.steps - 1, -1, -1):
        with part(options, "denoise step"):
            now, then = shares[step * every], shares[(step - 1) * every] if step else 1.0
            without, with_text = model["unet"](torch.cat([latents, latents]), step * every, text).chunk(2)
            noise = without + GUIDANCE * (with_text - without)
            image = (latents - (1 - now) ** 0.5 * noise) / now ** 0.5
            latents = then ** 0.5 * image + (1 - then) ** 0.5 * noise
    return latents


def run():
    with part(options, "prepare"):
        tokens = prompts.to(options.device)
        latents = torch.randn(options.batch, 4, LATENT, LATENT, device=options.device, dtype=options.dtype)
    with part(options, "encode"):
        text = model["text"](tokens).last_hidden_state
    latents = denoise(latents, text)
    with part(options, "decode"):
        model["vae"](latents / 0.18215)


measure(options, run, images=options.batch, denoise_steps=options.batch * options.steps)
