"""The loss of YOLOv8: task-aligned assignment of anchors, CIoU and distribution focal loss for boxes, binary cross-entropy
for classes.  Boxes are x0, y0, x1, y1."""
import math

import torch
import torch.nn.functional as F

from scene_networks import CLASS_COUNT, REG_MAX, expected_distance

TOP, ALPHA, BETA = 8, 0.5, 6.0
BOX_WEIGHT, CLASS_WEIGHT, SIDE_WEIGHT = 7.5, 0.5, 1.5


def area(size):
    """Not prod(), whose gradient waits for the GPU and cannot be recorded."""
    return size[..., 0] * size[..., 1]


def complete_iou(a, b):
    """IoU and CIoU of boxes (..., 4)."""
    size_a, size_b = a[..., 2:] - a[..., :2], b[..., 2:] - b[..., :2]
    common = area((torch.minimum(a[..., 2:], b[..., 2:]) - torch.maximum(a[..., :2], b[..., :2])).clamp(min=0))
    iou = common / (area(size_a) + area(size_b) - common + 1e-7)
    hull = torch.maximum(a[..., 2:], b[..., 2:]) - torch.minimum(a[..., :2], b[..., :2])
    apart = (a[..., :2] + a[..., 2:] - b[..., :2] - b[..., 2:]).pow(2).sum(-1) / 4
    v = 4 / math.pi ** 2 * (torch.atan(size_b[..., 0] / (size_b[..., 1] + 1e-7))
                            - torch.atan(size_a[..., 0] / (size_a[..., 1] + 1e-7))).pow(2)
    weight = (v / (v - iou + 1 + 1e-7)).detach()
    return iou, iou - apart / (hull.pow(2).sum(-1) + 1e-7) - v * weight


@torch.no_grad()
def assign(scores, boxes, points, true_boxes, true_classes):
    """For each anchor its object (batch, N), and the target score (batch, N), 0 where it has none."""
    is_object = (true_classes >= 0)[..., None]                                     # batch, objects, 1
    centers = points.t()[None, None]
    within = torch.cat([centers - true_boxes[:, :, None, :2], true_boxes[:, :, None, 2:] - centers], -1).amin(-1) > 0
    iou = complete_iou(boxes[:, None], true_boxes[:, :, None])[0].clamp(min=0)     # batch, objects, N
    which = true_classes.clamp(min=0)[..., None].expand(-1, -1, scores.shape[1])
    score = scores.transpose(1, 2).gather(1, which)
    metric = score.pow(ALPHA) * iou.pow(BETA) * within * is_object
    best = metric.topk(TOP, -1).indices
    chosen = torch.zeros_like(metric).scatter_(-1, best, 1.0) * within * is_object
    first = (chosen * (iou + 1e-6)).argmax(1)                                      # of several objects, the best
    chosen = chosen * F.one_hot(first, metric.shape[1]).transpose(1, 2)
    metric = metric * chosen
    scaled = metric * (iou * chosen).amax(-1, True) / (metric.amax(-1, True) + 1e-9)
    return first, scaled.amax(1), chosen.amax(1)


def yolo_loss(network, images, true_boxes, true_classes):
    """`images` in 0 to 1; boxes in pixels of it."""
    sides, logits, points, strides = network.raw(images)
    sides, logits = sides.float().transpose(1, 2), logits.float().transpose(1, 2)
    distance = expected_distance(sides.transpose(1, 2)).transpose(1, 2) * strides.t()
    centers = points.t()
    boxes = torch.cat([centers - distance[..., :2], centers + distance[..., 2:]], -1)
    first, target, is_chosen = assign(logits.detach().sigmoid(), boxes.detach(), points, true_boxes, true_classes)
    total = target.sum().clamp(min=1)
    true_box = true_boxes.gather(1, first[..., None].expand(-1, -1, 4))
    true_class = true_classes.clamp(min=0).gather(1, first)
    wanted = F.one_hot(true_class, CLASS_COUNT) * target[..., None]
    class_loss = F.binary_cross_entropy_with_logits(logits, wanted, reduction="sum") / total
    weight = target * is_chosen
    box_loss = ((1 - complete_iou(boxes, true_box)[1]) * weight).sum() / total
    true_sides = torch.cat([centers - true_box[..., :2], true_box[..., 2:] - centers], -1)
    true_sides = (true_sides / strides.t()).clamp(0, REG_MAX - 1.01)
    low = true_sides.long()
    part = true_sides - low
    log = F.log_softmax(sides.unflatten(-1, (4, REG_MAX)), -1)
    side_loss = -(log.gather(-1, low[..., None])[..., 0] * (1 - part)
                  + log.gather(-1, low[..., None] + 1)[..., 0] * part).mean(-1)
    side_loss = (side_loss * weight).sum() / total
    return BOX_WEIGHT * box_loss + CLASS_WEIGHT * class_loss + SIDE_WEIGHT * side_loss
