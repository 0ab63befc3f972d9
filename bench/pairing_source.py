"""Plain models of the pairing benchmark. Variants edit copies of this file line by line, as a programmer would."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812
import torch.utils.checkpoint
from torch import Tensor, nn


class Gated(nn.Module):
    """A block of norms, activations and two branches that do not depend on each other."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.left, self.right = nn.Linear(width, width), nn.Linear(width, width)
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        h = self.norm(x)
        h = self.up(h)
        h = F.gelu(h)
        h = self.down(h)
        h = F.silu(h)
        x = x + h
        left = torch.tanh(self.left(x))
        right = torch.sigmoid(self.right(x))
        y = left * right
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-5) * self.scale
        return x + y


class MLP(nn.Module):
    """Three gated blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(24, 32)
        self.blocks = nn.ModuleList(Gated(32) for _ in range(3))
        self.last = nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        x = F.relu(x)
        for block in self.blocks:
            x = block(x)
        logits = self.last(x)
        return F.log_softmax(logits * 2, dim=-1)


class Attention(nn.Module):
    """Causal attention."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        shape = (batch, tokens, self.heads, width // self.heads)
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = q.view(shape).transpose(1, 2), k.view(shape).transpose(1, 2), v.view(shape).transpose(1, 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).reshape(batch, tokens, width))


class Layer(nn.Module):
    """A pre-norm transformer block."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        h = F.gelu(self.up(self.norm2(x)))
        return x + self.down(h)


class GPT(nn.Module):
    """A GPT of three layers."""

    def __init__(self) -> None:
        super().__init__()
        self.token, self.position = nn.Embedding(61, 32), nn.Embedding(16, 32)
        self.layers = nn.ModuleList(Layer(32, 4) for _ in range(3))
        self.norm = nn.LayerNorm(32)
        self.head = nn.Linear(32, 61, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        positions = torch.arange(ids.shape[1], device=ids.device)
        x = self.token(ids) + self.position(positions)
        for layer in self.layers:
            x = layer(x)
        x = self.norm(x)
        return self.head(x)


class Residual(nn.Module):
    """Two convolutions around a batch norm and a group norm."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)
        self.batch_norm, self.group_norm = nn.BatchNorm2d(channels), nn.GroupNorm(4, channels)

    def forward(self, x: Tensor) -> Tensor:
        h = self.conv1(x)
        h = self.batch_norm(h)
        h = F.relu(h)
        h = self.conv2(h)
        h = self.group_norm(h)
        h = F.hardswish(h)
        return x + h


class CNN(nn.Module):
    """A small residual network."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.stages = nn.ModuleList(Residual(8) for _ in range(2))
        self.squeeze, self.excite = nn.Linear(8, 4), nn.Linear(4, 8)
        self.head = nn.Linear(8, 7)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        x = F.max_pool2d(x, 2)
        for stage in self.stages:
            x = stage(x)
        gate = torch.sigmoid(self.excite(F.relu(self.squeeze(x.mean((2, 3))))))
        x = x * gate[:, :, None, None]
        x = F.avg_pool2d(x, 2)
        x = x.amax((2, 3))
        return self.head(x)


class Cell(nn.Module):
    """An LSTM cell, unrolled over time."""

    def __init__(self) -> None:
        super().__init__()
        self.input, self.hidden = nn.Linear(12, 96), nn.Linear(24, 96)
        self.norm = nn.LayerNorm(24)
        self.out = nn.Linear(24, 6)

    def forward(self, x: Tensor) -> Tensor:
        h = x.new_zeros(x.shape[0], 24)
        c = x.new_zeros(x.shape[0], 24)
        outputs = []
        for step in range(x.shape[1]):
            gates = self.input(x[:, step]) + self.hidden(h)
            i, f, g, o = gates.chunk(4, dim=-1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            outputs.append(self.out(self.norm(h)))
        return torch.stack(outputs, dim=1)


class Experts(nn.Module):
    """A dense mixture of experts, each computed by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(16, 24)
        self.gate = nn.Linear(24, 4)
        self.weight = nn.Parameter(torch.ones(4, 24, 24))
        self.bias = nn.Parameter(torch.ones(4, 24))
        self.last = nn.Linear(24, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.first(x))
        share = F.softmax(self.gate(x), dim=-1)
        each = torch.stack([x @ self.weight[n] + self.bias[n] for n in range(4)])
        each = torch.tanh(each)
        y = (each * share.t().unsqueeze(-1)).sum(0)
        x = x + y
        return self.last(x)


class Cache(nn.Module):
    """Attention over a cache of keys and values, written in place, one position per call."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(16, 24), nn.Linear(24, 5)
        self.query, self.key, self.value = nn.Linear(24, 24), nn.Linear(24, 24), nn.Linear(24, 24)
        self.register_buffer("keys", torch.zeros(2, 6, 24))
        self.register_buffer("values", torch.zeros(2, 6, 24))

    def forward(self, x: Tensor, position: Tensor) -> Tensor:
        x = F.relu(self.first(x))
        q, k, v = self.query(x), self.key(x), self.value(x)
        self.keys[:, position] = k.unsqueeze(1)
        self.values[:, position] = v.unsqueeze(1)
        scores = (self.keys @ q.unsqueeze(-1)).squeeze(-1) * 24**-0.5
        scores = scores.masked_fill(torch.arange(6) > position, float("-inf"))
        y = (F.softmax(scores, dim=-1).unsqueeze(1) @ self.values).squeeze(1)
        return self.last(x + y)
