"""The models of the benchmarks: a small GPT with three sets of sizes, and GPT-2 124M."""

from __future__ import annotations

import torch
import torch.nn.functional as functional
from torch import Tensor, nn


class Block(nn.Module):
    """A pre-norm transformer block with causal attention."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, tokens, width) to the same shape."""
        batch, tokens, width = x.shape
        heads = (batch, tokens, self.heads, width // self.heads)
        q, k, v = (t.view(heads).transpose(1, 2) for t in self.qkv(self.norm1(x)).split(width, dim=2))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(batch, tokens, width))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    """A GPT: token and position embeddings, blocks, a head."""

    def __init__(self, layers: int, width: int, heads: int, vocabulary: int, context: int) -> None:
        super().__init__()
        self.token, self.position = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        """Map token ids (batch, tokens) to logits (batch, tokens, vocabulary)."""
        x = self.token(ids) + self.position(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def make(name: str) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """Return a seeded model in evaluation mode and its inputs: "tiny", "gpt" or "gpt2"."""
    torch.manual_seed(0)
    if name == "tiny":
        return GPT(12, 32, 4, 64, 128).eval(), (torch.randint(0, 64, (1, 16)),)
    if name == "gpt":
        return GPT(12, 256, 8, 1024, 128).eval(), (torch.randint(0, 1024, (4, 128)),)
    if name == "gpt2":
        from transformers import GPT2Config, GPT2LMHeadModel

        model = GPT2LMHeadModel(GPT2Config(use_cache=False)).eval()
        return model, (torch.randint(0, 50257, (4, 128)),)
    raise ValueError(f"no benchmark model is called {name!r}")
