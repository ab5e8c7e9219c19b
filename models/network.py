"""A Llama as llama.cpp computes it: RMSNorm, rotary positions, SwiGLU, grouped keys, tied embedding.

Rotary pairs are neighbors (0,1), (2,3), ...: that is the order of the `llama` architecture in GGUF,
so the weights go into a file as they are.
"""
import torch
import torch.nn.functional as F
from torch import nn

from shapes import NORM_EPSILON, ROPE_BASE


def rotary_table(head_width, length):
    angles = torch.outer(torch.arange(length, dtype=torch.float64),
                         ROPE_BASE ** (-torch.arange(0, head_width, 2, dtype=torch.float64)
                                       / head_width))
    return torch.stack([angles.cos(), angles.sin()]).float()


def rotate(x, table):
    """x: batch, heads, length, head width.  Angles are never rounded to fewer bits than float32."""
    cos, sin = table[0, :x.shape[2]], table[1, :x.shape[2]]
    even, odd = x[..., 0::2], x[..., 1::2]
    turned = torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1)
    return turned.flatten(-2).to(x.dtype)


class Block(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        kv_width = shape.kv_heads * shape.head_width
        self.attn_norm = nn.Parameter(torch.ones(shape.width))
        self.attn_q = nn.Linear(shape.width, shape.width, bias=False)
        self.attn_k = nn.Linear(shape.width, kv_width, bias=False)
        self.attn_v = nn.Linear(shape.width, kv_width, bias=False)
        self.attn_output = nn.Linear(shape.width, shape.width, bias=False)
        self.ffn_norm = nn.Parameter(torch.ones(shape.width))
        self.ffn_gate = nn.Linear(shape.width, shape.hidden, bias=False)
        self.ffn_up = nn.Linear(shape.width, shape.hidden, bias=False)
        self.ffn_down = nn.Linear(shape.hidden, shape.width, bias=False)

    def heads(self, x, count):
        return x.view(x.shape[0], x.shape[1], count, self.shape.head_width).transpose(1, 2)

    def attend(self, x, table):
        shape = self.shape
        q = rotate(self.heads(self.attn_q(x), shape.heads), table)
        k = rotate(self.heads(self.attn_k(x), shape.kv_heads), table)
        v = self.heads(self.attn_v(x), shape.kv_heads)
        groups = shape.heads // shape.kv_heads
        if groups > 1:
            k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.attn_output(mixed.transpose(1, 2).flatten(2))

    def forward(self, x, table):
        x = x + self.attend(norm(x, self.attn_norm), table)
        y = norm(x, self.ffn_norm)
        return x + self.ffn_down(F.silu(self.ffn_gate(y)) * self.ffn_up(y))


def norm(x, weight):
    return F.rms_norm(x, weight.shape, weight.to(x.dtype), NORM_EPSILON)


class Llama(nn.Module):
    """Names of parts are those of the tensors in GGUF."""

    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        self.token_embd = nn.Embedding(shape.vocabulary, shape.width)
        self.blk = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.output_norm = nn.Parameter(torch.ones(shape.width))
        self.register_buffer("table", rotary_table(shape.head_width, shape.context), persistent=False)
        for name, weight in self.named_parameters():
            if weight.dim() == 2:
                nn.init.normal_(weight, std=0.02)
                if name.endswith(("attn_output.weight", "ffn_down.weight")):
                    weight.data /= (2 * shape.layers) ** 0.5

    def forward(self, tokens):
        x = self.token_embd(tokens)
        if torch.is_autocast_enabled(x.device.type):
            x = x.to(torch.get_autocast_dtype(x.device.type))
        for block in self.blk:
            x = block(x, self.table)
        return F.linear(norm(x, self.output_norm), self.token_embd.weight)


@torch.no_grad()
def greedy(model, prompts, end, most):
    """The likeliest tokens after each prompt, without the end; all prompts at once."""
    device = model.token_embd.weight.device
    starts = [len(prompt) for prompt in prompts]
    tokens = torch.zeros(len(prompts), max(starts) + most, dtype=torch.long)
    for row, prompt in enumerate(prompts):
        tokens[row, :len(prompt)] = torch.tensor(prompt)
    tokens = tokens.to(device)
    at = torch.tensor(starts, device=device)
    rows = torch.arange(len(prompts), device=device)
    done = torch.zeros(len(prompts), dtype=torch.bool, device=device)
    for step in range(most):
        logits = model(tokens[:, :max(starts) + step])
        token = logits[rows, at - 1].float().argmax(-1)
        tokens[rows, at] = token
        at += 1
        done |= token == end
        if done.all():
            break
    outputs = []
    for start, row in zip(starts, tokens.tolist()):
        output = row[start:start + most]
        outputs.append(output[:output.index(end)] if end in output else output)
    return outputs
