"""The cost of a verification: against the eager run in float64 and the reading of files; while the model runs.

Times are of the processor, so that other work on the machine does not count.
"""

from __future__ import annotations

import multiprocessing
import re
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import fxtap
from fxtap.verification.calls import Selection, find_calls
from models import make

TARGET = 5.0
"""At most this many times the sum of both."""

LIVE_TARGET = 8.0
"""Type "verify": at most this many times the eager run."""


def _seconds(function: Any, *arguments: Any) -> float:
    began = time.process_time()
    function(*arguments)
    return time.process_time() - began


def _read(folder: Path) -> None:
    for path in folder.rglob("*.npy"):
        np.load(path, allow_pickle=False).sum()


def _peak() -> int:
    """Return the largest memory of this process so far, in MiB; the files that are mapped count."""
    found = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    return int(found[1]) // 1024 if found else 0


def _verify(folder: Path, threads: int) -> tuple[float, int]:
    """Return the seconds and the additional memory of a verification."""
    torch.set_num_threads(threads)
    before = _peak()
    return _seconds(fxtap.verify, folder), _peak() - before


def _verify_apart(folder: Path) -> tuple[float, int]:
    """Verify in a process that holds no model."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_verify, folder, torch.get_num_threads()).result()


def _largest(folder: Path) -> int:
    """Return the memory of the largest operator's tensors in float64, in MiB."""
    calls = find_calls(fxtap.open(folder), Selection())
    return max(call.slots.count_elements() for call in calls) * 8 // 2**20


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
        taken, memory = min(_verify_apart(root) for _ in range(2))
        wide = model.double()
        with torch.no_grad():
            wide(*inputs)
            eager = min(_seconds(wide, *inputs) for _ in range(2))
        factor = taken / (eager + reading)
        met &= factor <= TARGET
        print(f"gpt2 {root.name}: verification {taken:.2f} s, eager in float64 {eager:.2f} s, reading {reading:.2f} s: "
              f"{factor:.1f} x (target {TARGET:g}); {memory} MiB, {_largest(root)} MiB of them the largest operator's "
              f"tensors in float64", flush=True)  # fmt: skip
        del model, wide
    root = folder / "tiny"
    _dump(Tiny(), (torch.randn(8),), root)
    count = len(fxtap.verify(root).operators)
    taken = min(_seconds(fxtap.verify, root) for _ in range(2))
    print(f"{count} tiny operators: {1e3 * taken / count:.2f} ms each (target 1)")
    return met and taken / count <= 1e-3
