"""The golden side of block.c and fused.c: a transformer block, its weights as .npy files and its dump.

python examples/block.py OUT    # writes OUT/weights and OUT/golden
"""

import sys
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

import fxtap


class Block(nn.Module):
    """Normalise, widen, gelu, narrow, add."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(16)
        self.up = nn.Linear(16, 32)
        self.down = nn.Linear(32, 16)

    def forward(self, x: Tensor) -> Tensor:
        hidden = nn.functional.gelu(self.up(self.norm(x)))
        return x + self.down(hidden)


def main(out: Path) -> None:
    """Save the weights and the input, run once with a dump."""
    torch.manual_seed(0)
    model, x = Block().eval(), torch.randn(4, 16)
    nn.init.normal_(model.norm.weight, 1.0, 0.1)
    (out / "weights").mkdir(parents=True, exist_ok=True)
    for name, tensor in [*model.named_parameters(), ("x", x)]:
        np.save(out / "weights" / f"{name}.npy", tensor.detach().numpy())
    with torch.no_grad(), fxtap.dump(out / "golden"):
        torch.compile(model, backend="fxtap")(x)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
