"""The cost of a verification: against the eager run in float64 and reading the files; while the model runs."""

from __future__ import annotations

import resource
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import fxtap
from models import make

TARGET = 5.0
"""At most this many times the sum of both."""

LIVE_TARGET = 8.0
"""Type "verify": at most this many times the eager run."""


def _seconds(function: Any, *arguments: Any) -> float:
    began = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - began


def _read(folder: Path) -> None:
    for path in folder.rglob("*.npy"):
        np.load(path, allow_pickle=False).sum()


def _dump(model: Any, inputs: tuple[Tensor, ...], folder: Path) -> None:
    torch._dynamo.reset()
    with torch.no_grad(), fxtap.dump(folder):
        torch.compile(model, backend="fxtap")(*inputs)


def _live(model: Any, inputs: tuple[Tensor, ...], folder: Path) -> float:
    """Return how many times as long the model takes if it is verified while it runs."""
    torch._dynamo.reset()
    with torch.no_grad(), fxtap.dump(folder, type="verify"):
        verified = torch.compile(model, backend="fxtap")
        verified(*inputs)
        pairs = [(_seconds(model, *inputs), _seconds(verified, *inputs)) for _ in range(3)]  # alternating
    eager, live = (min(times) for times in zip(*pairs, strict=True))
    print(f"gpt2 {folder.name}: {live:.2f} s, eager {eager:.2f} s: {live / eager:.1f} x (target {LIVE_TARGET:g})")
    return live / eager


class Tiny(nn.Module):
    """Thousands of operators on few elements."""

    def forward(self, x: Tensor) -> Tensor:
        """Map a vector to a vector."""
        for _ in range(4000):
            x = (x + 0.125) * 0.875
        return x


def speed(folder: Path) -> bool:
    """Print the figures; return whether the targets are met."""
    met = True
    for dtype in (torch.float32, torch.bfloat16):
        model, inputs = make("gpt2")
        root = folder / str(dtype).removeprefix("torch.")
        live = _live(model.to(dtype), inputs, folder / f"live-{root.name}")
        met &= live <= LIVE_TARGET or dtype is not torch.float32
        _dump(model, inputs, root)
        reading = min(_seconds(_read, root) for _ in range(2))
        taken = min(_seconds(fxtap.verify, root) for _ in range(2))
        wide = model.double()
        with torch.no_grad():
            wide(*inputs)
            eager = min(_seconds(wide, *inputs) for _ in range(2))
        factor = taken / (eager + reading)
        met &= factor <= TARGET
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"gpt2 {root.name}: verification {taken:.2f} s, eager in float64 {eager:.2f} s, reading {reading:.2f} s: "
              f"{factor:.1f} x (target {TARGET:g}); peak {peak:.0f} MiB", flush=True)  # fmt: skip
        del model, wide
    root = folder / "tiny"
    _dump(Tiny(), (torch.randn(8),), root)
    count = len(fxtap.verify(root).operators)
    taken = min(_seconds(fxtap.verify, root) for _ in range(2))
    print(f"{count} tiny operators: {1e3 * taken / count:.2f} ms each (target 1)")
    return met and taken / count <= 1e-3
