"""Small dumps of ten operators, one of which may be wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np

STEP = "worldsize1_global_rank0/graph_1/0"


def write_chain(root: Path, wrong: int | None = None, step: str = STEP, names: str = "mul_{}") -> None:
    """Write a chain of ten operators; values are wrong from the faulty operator on."""
    folder = root / step
    folder.mkdir(parents=True, exist_ok=True)
    value = np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8)
    for i in range(10):
        stem = f"{names.format(i)}-aten.mul.Tensor"
        np.save(folder / f"{stem}.INPUT.0.20251017071211{i:06d}.npy", value)
        value = value * np.float32(1.25)
        if i == wrong:
            value = value + np.float32(0.5)
        np.save(folder / f"{stem}.OUTPUT.0.20251017071211{i:06d}.npy", value)
