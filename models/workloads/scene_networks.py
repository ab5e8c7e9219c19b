"""Small networks of three well-known shapes for scenes.py: ViT, ResNet and YOLOv8."""
import torch
import torch.nn.functional as F
from torch import nn

CLASS_COUNT = 10


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.scale = heads, (width // heads) ** -0.5
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.reshape(batch, length, self.heads, width // self.heads).transpose(1, 2)
                   for part in self.qkv(x).chunk(3, -1))
        weights = torch.softmax(q @ k.transpose(2, 3) * self.scale, -1)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))


class EncoderBlock(nn.Module):
    def __init__(self, width, heads, hidden):
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(width), Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class VisionTransformer(nn.Module):
    """Patches of 8 x 8, a class token, learned positions, pre-norm blocks."""

    def __init__(self, side=64, patch=8, width=96, layers=4, heads=3, hidden=288):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.token = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.positions = nn.Parameter(torch.randn(1, (side // patch) ** 2 + 1, width) * 0.02)
        self.blocks = nn.Sequential(*(EncoderBlock(width, heads, hidden) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, CLASS_COUNT)

    def forward(self, pixels):
        x = self.patches(pixels).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.positions
        return self.head(self.norm(self.blocks(x))[:, 0])


class BasicBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Identity() if stride == 1 and inputs == outputs else nn.Sequential(
            nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.shortcut(x))


class ResNet(nn.Module):
    """Four stages of two basic blocks, as ResNet-18, with narrow layers and a stem for small images."""

    def __init__(self, widths=(16, 32, 48, 64)):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, widths[0], 3, 1, 1, bias=False), nn.BatchNorm2d(widths[0]), nn.ReLU())
        blocks, inputs = [], widths[0]
        for width in widths:
            blocks += [BasicBlock(inputs, width, 2), BasicBlock(width, width, 1)]
            inputs = width
        self.blocks, self.head = nn.Sequential(*blocks), nn.Linear(widths[-1], CLASS_COUNT)

    def forward(self, pixels):
        return self.head(self.blocks(self.stem(pixels)).mean((2, 3)))


# ---- YOLOv8 ----

REG_MAX = 16  # bins of the distribution of each side's distance
STRIDES = (8, 16, 32)
YOLO_SIZES = {  # widths of stem, P2 to P5; repeats of the bottleneck; width of the head
    "n": ((8, 12, 20, 28, 40), 1, 16),
    "s": ((8, 16, 28, 40, 56), 1, 24),
    "m": ((12, 24, 40, 48, 64), 2, 28),
}


class Conv(nn.Sequential):
    def __init__(self, inputs, outputs, size=1, stride=1):
        super().__init__(nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False), nn.BatchNorm2d(outputs),
                         nn.SiLU())


class Bottleneck(nn.Module):
    def __init__(self, width, is_residual):
        super().__init__()
        self.cv1, self.cv2, self.is_residual = Conv(width, width, 3), Conv(width, width, 3), is_residual

    def forward(self, x):
        y = self.cv2(self.cv1(x))
        return x + y if self.is_residual else y


class C2f(nn.Module):
    """Half of the channels pass through bottlenecks; the outputs of all of them are concatenated."""

    def __init__(self, inputs, outputs, repeats, is_residual=False):
        super().__init__()
        self.half = outputs // 2
        self.cv1 = Conv(inputs, 2 * self.half)
        self.m = nn.ModuleList(Bottleneck(self.half, is_residual) for _ in range(repeats))
        self.cv2 = Conv((2 + repeats) * self.half, outputs)

    def forward(self, x):
        parts = list(self.cv1(x).split(self.half, 1))
        for block in self.m:
            parts.append(block(parts[-1]))
        return self.cv2(torch.cat(parts, 1))


class SPPF(nn.Module):
    """Pooling at three scales, one after another."""

    def __init__(self, width):
        super().__init__()
        self.cv1, self.cv2 = Conv(width, width // 2), Conv(2 * width, width)

    def forward(self, x):
        parts = [self.cv1(x)]
        for _ in range(3):
            parts.append(F.max_pool2d(parts[-1], 5, 1, 2))
        return self.cv2(torch.cat(parts, 1))


class Head(nn.Module):
    """Distances to the four sides and classes, in separate branches, for each level."""

    def __init__(self, widths, width):
        super().__init__()
        self.boxes = nn.ModuleList(nn.Sequential(Conv(w, width, 3), Conv(width, width, 3),
                                                 nn.Conv2d(width, 4 * REG_MAX, 1)) for w in widths)
        self.classes = nn.ModuleList(nn.Sequential(Conv(w, width, 3), Conv(width, width, 3),
                                                   nn.Conv2d(width, CLASS_COUNT, 1)) for w in widths)
        for branch in self.classes:
            nn.init.constant_(branch[-1].bias, -4.0)
        for branch in self.boxes:
            nn.init.constant_(branch[-1].bias, 1.0)

    def forward(self, levels):
        """Distributions (batch, 64, N), class logits (batch, 10, N), anchor points (2, N) and strides (1, N) in
        pixels."""
        sides, classes, points, strides = [], [], [], []
        for level, stride, boxes, scores in zip(levels, STRIDES, self.boxes, self.classes):
            sides.append(boxes(level).flatten(2))
            classes.append(scores(level).flatten(2))
            ones = torch.ones_like(level[:1, :1].float())
            steps = torch.cat([ones.cumsum(3), ones.cumsum(2)], 1).flatten(2)[0]  # 1, 2, 3 ... along x and y
            points.append((steps - 0.5) * stride)
            strides.append(torch.ones_like(steps[:1]) * stride)
        return torch.cat(sides, 2), torch.cat(classes, 2), torch.cat(points, 1), torch.cat(strides, 1)


def expected_distance(sides):
    """Mean of the distribution of each side: (batch, 4, N), in strides."""
    batch, _, count = sides.shape
    weights = torch.softmax(sides.reshape(batch, 4, REG_MAX, count), 2)
    bins = torch.arange(REG_MAX, dtype=weights.dtype, device=sides.device).reshape(1, 1, REG_MAX, 1)
    return (weights * bins).sum(2)


class Yolo(nn.Module):
    def __init__(self, size):
        super().__init__()
        (c0, c1, c2, c3, c4), repeats, head = YOLO_SIZES[size]
        self.stem = nn.Sequential(Conv(3, c0, 3, 2), Conv(c0, c1, 3, 2), C2f(c1, c1, repeats, True))
        self.p3 = nn.Sequential(Conv(c1, c2, 3, 2), C2f(c2, c2, repeats, True))
        self.p4 = nn.Sequential(Conv(c2, c3, 3, 2), C2f(c3, c3, repeats, True))
        self.p5 = nn.Sequential(Conv(c3, c4, 3, 2), C2f(c4, c4, repeats, True), SPPF(c4))
        self.up4, self.up3 = C2f(c3 + c4, c3, repeats), C2f(c2 + c3, c2, repeats)
        self.down3, self.out4 = Conv(c2, c2, 3, 2), C2f(c2 + c3, c3, repeats)
        self.down4, self.out5 = Conv(c3, c3, 3, 2), C2f(c3 + c4, c4, repeats)
        self.head = Head((c2, c3, c4), head)

    def raw(self, pixels):
        p3 = self.p3(self.stem(pixels))
        p4 = self.p4(p3)
        p5 = self.p5(p4)
        n4 = self.up4(torch.cat([F.interpolate(p5, scale_factor=2.0), p4], 1))
        n3 = self.up3(torch.cat([F.interpolate(n4, scale_factor=2.0), p3], 1))
        n4 = self.out4(torch.cat([self.down3(n3), n4], 1))
        n5 = self.out5(torch.cat([self.down4(n4), p5], 1))
        return self.head([n3, n4, n5])

    def forward(self, images):
        """(batch, 4 + classes, N): center, width and height in pixels, then probabilities."""
        sides, classes, points, strides = self.raw(images)
        distance = expected_distance(sides.float()) * strides
        low, high = points - distance[:, :2], points + distance[:, 2:]
        return torch.cat([(low + high) / 2, high - low, classes.float().sigmoid()], 1)
