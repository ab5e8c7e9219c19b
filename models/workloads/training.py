"""What the trainings of this folder share: random batches, a recorded training step, averaged weights."""
import copy
import json
import math
import time

import numpy as np
import torch
from torch import nn

WARM_UP = 0.03  # share of the training


def schedule(progress):
    """The learning rate's share: linear warm-up, then a cosine down to a hundredth."""
    if progress < WARM_UP:
        return progress / WARM_UP
    return 0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * min(1, (progress - WARM_UP)
                                                           / (1 - WARM_UP))))


class Batches:
    """Draws random rows of arrays that stay on the device into tensors that stay in place."""

    def __init__(self, arrays, size, device):
        self.sources = [torch.as_tensor(array).to(device) for array in arrays]
        self.places = [source[:size].clone() for source in self.sources]
        self.size, self.device = size, device

    def draw(self):
        which = torch.randint(0, len(self.sources[0]), (self.size,), device=self.device)
        for source, place in zip(self.sources, self.places):
            torch.index_select(source, 0, which, out=place)


class Trainer:
    """A network, its optimizer and its averaged weights.  On a GPU, the step of each variant (an image size, say) is
    recorded once as a CUDA graph and replayed."""

    def __init__(self, network, loss, batches, rate, weight_decay=0.05, decay=0.999, variants=(None,),
                 is_recorded=True):
        self.device = batches.device
        self.network, self.loss, self.batches = network.to(self.device), loss, batches
        self.rate, self.decay = rate, decay
        self.graphs = {}
        is_gpu = self.device.type == "cuda" and is_recorded
        parameters = [p for p in self.network.parameters() if p.requires_grad]
        self.optimizer = torch.optim.AdamW(
            [{"params": [p for p in parameters if p.dim() > 1], "weight_decay": weight_decay},
             {"params": [p for p in parameters if p.dim() <= 1], "weight_decay": 0.0}],
            lr=torch.tensor(0.0, device=self.device) if is_gpu else 0.0, betas=(0.9, 0.98),
            fused=is_gpu, capturable=is_gpu)
        self.average = copy.deepcopy(self.network).eval().requires_grad_(False)
        self.last = {variant: torch.zeros((), device=self.device) for variant in variants}
        if is_gpu:
            self.stream = torch.cuda.Stream()
            for variant in variants:
                self.graphs[variant] = self.record(variant)

    def once(self, variant):
        is_gpu = self.device.type == "cuda"
        with torch.autocast(self.device.type, torch.bfloat16, enabled=is_gpu, cache_enabled=False):
            arguments = () if variant is None else (variant,)
            loss = self.loss(self.network, *self.batches.places, *arguments)
        loss.backward()
        nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self.optimizer.step()
        with torch.no_grad():
            torch._foreach_lerp_(list(self.average.parameters()), list(self.network.parameters()),
                                 1 - self.decay)
            for mine, theirs in zip(self.average.buffers(), self.network.buffers()):
                mine.copy_(theirs)
        self.last[variant].copy_(loss.detach())

    def record(self, variant):
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(3):  # at a rate of 0: only the optimizer's state changes
                self.optimizer.zero_grad(set_to_none=True)
                self.once(variant)
            self.optimizer.zero_grad(set_to_none=True)
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.once(variant)
        return graph

    def step(self, progress, variant=None):
        """Of several trainers at the same time: join() waits for all."""
        rate = self.rate * schedule(progress)
        for group in self.optimizer.param_groups:
            if self.graphs:
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate
        variant = variant if variant in self.last else None
        if self.graphs:
            self.stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self.stream):
                self.graphs[variant].replay()
        else:
            self.optimizer.zero_grad(set_to_none=True)
            self.once(variant)

    def join(self):
        if self.graphs:
            torch.cuda.current_stream().wait_stream(self.stream)


def add_options(parser):
    parser.add_argument("--out", required=True, help="folder to write the weights to")
    parser.add_argument("--seconds", type=float, default=120, help="how long to train (120)")
    parser.add_argument("--steps", type=int, help="how many steps instead")
    parser.add_argument("--workers", type=int, default=16, help="processes that generate data (16)")
    parser.add_argument("--no-graph", action="store_true", help="launch each kernel by itself")
    parser.add_argument("--trial", action="store_true", help="little data, to see that it runs")


def train(options, trainers, name, variants=(None,), weights=None):
    """All trainers on the same batches; returns the number of steps."""
    begin, step, progress, shown = time.monotonic(), 0, 0.0, 0.0
    random = np.random.default_rng(3)
    while progress < 1:
        variant = variants[random.choice(len(variants), p=weights)]
        trainers[0].batches.draw()
        for trainer in trainers:
            trainer.step(progress, variant)
        for trainer in trainers:
            trainer.join()
        step += 1
        if step % 20 == 0 and trainers[0].device.type == "cuda":
            torch.cuda.synchronize()  # so that the clock below tells the truth
        passed = time.monotonic() - begin
        progress = step / options.steps if options.steps else passed / options.seconds
        if progress - shown > 0.1:
            shown = progress
            losses = [round(list(trainer.last.values())[0].item(), 4) for trainer in trainers]
            print(f"{name}: step {step}, {passed:.0f} s, losses {losses}", flush=True)
    return step


def save(network, path):
    """The weights as .npz."""
    np.savez(path, **{key: value.detach().float().cpu().numpy()
                      for key, value in network.state_dict().items()
                      if value.is_floating_point()})


def load(network, path):
    with np.load(path) as arrays:
        state = {key: torch.from_numpy(arrays[key]) for key in arrays}
    missing, unexpected = network.load_state_dict(state, strict=False)
    assert not unexpected and all("num_batches" in key for key in missing), (missing, unexpected)
    return network.eval()


def parameters(network):
    return sum(p.numel() for p in network.parameters())


def write_result(path, **result):
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    path.write_text(json.dumps({**result, "torch": torch.__version__, "device": device}, indent=1) + "\n")
    print(json.dumps(result), flush=True)


def seeded(count, seed):
    """One independent generator of random numbers per item, so that any number of processes makes the same data."""
    return [np.random.default_rng((seed, index)) for index in range(count)]
