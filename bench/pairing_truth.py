"""Which results of two dumps are the same quantity: equal quantities have equal values, others do not."""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import fxtap

Key = str
"""A result: "graph/step/name" of its tensor, such as "2/0/mul_1-aten.mul.Tensor.OUTPUT.0"."""

HUGE = 1e30  # the smallest number of a dtype, as in masks; its square must be finite


@dataclass
class Result:
    """One result of one side."""

    key: Key
    shape: tuple[int, ...]
    values: NDArray[np.float64]
    huge: bytes
    ordered: NDArray[np.float64]
    norm: float
    exact: bool


def key_of(fields: Any) -> Key:
    return f"{fields.graph}/{fields.step}/{fields.name}"


def special(values: NDArray[np.float64]) -> NDArray[np.int8]:
    """Classify special values: 3 for NaN, 2 or -2 for an infinity, 1 or -1 for a huge number, otherwise 0."""
    sign = np.where(np.abs(values) >= HUGE, np.sign(values), 0) * np.where(np.isinf(values), 2, 1)
    found: NDArray[np.int8] = np.where(np.isnan(values), 3, sign).astype(np.int8)
    return found


def load(root: Path) -> list[Result]:
    """Return all results of a dump that have values, in order of execution."""
    found = []
    for tensor in fxtap.open(root).tensors():
        if tensor.io == "INPUT" or tensor.skipped is not None or tensor.path is None or "empty" in tensor.target:
            continue
        array = tensor.numpy()
        if array.dtype.kind not in "fiubc" or array.size == 0:
            continue
        values = np.abs(array) if array.dtype.kind == "c" else array.astype(np.float64)
        values = values.astype(np.float64).ravel()
        large = special(values)
        values = np.where(large != 0, 0, values)
        found.append(
            Result(key_of(tensor), tuple(array.shape), values, np.sort(large).tobytes(), np.sort(values),
                   float(np.linalg.norm(values)), array.dtype.kind in "iub")
        )  # fmt: skip
    return found


def turned(result: Result) -> NDArray[np.float64]:
    """Return the values under every permutation of the axes longer than one, one row each."""
    array = result.values.reshape([extent for extent in result.shape if extent != 1])
    orders = itertools.permutations(range(array.ndim)) if array.ndim <= 4 else [tuple(range(array.ndim))]
    return np.stack([array.transpose(order).ravel() for order in orders])


def distance(a: Result, others: list[Result], limit: float) -> NDArray[np.float64]:
    """Return relative L2 distances up to a transposition."""
    scale = np.array([max(a.norm, other.norm, 1e-300) for other in others])
    sorted_values = np.stack([other.ordered for other in others])
    far: NDArray[np.float64] = np.linalg.norm(sorted_values - a.ordered, axis=1) / scale
    if limit < 1e-3:  # other values do not have so exactly the same distribution
        return far
    mine = turned(a)
    for place in np.flatnonzero(far <= limit):
        theirs = turned(others[place])
        straight = np.linalg.norm(mine - others[place].values, axis=1).min()
        far[place] = min(straight, np.linalg.norm(theirs - a.values, axis=1).min()) / scale[place]
    return far


def classes(golden: list[Result], target: list[Result], limit: float) -> tuple[dict[Key, int], dict[Key, int]]:
    """Number the quantities: results with the same number have equal values."""
    items = [*golden, *target]
    parent = list(range(len(items)))

    def find(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    first: dict[tuple[bytes, bytes], int] = {}
    groups: dict[tuple[int, bytes], list[int]] = defaultdict(list)
    for i, item in enumerate(items):
        parent[i] = first.setdefault((item.huge, item.ordered.tobytes()), i)
        if parent[i] == i:
            groups[(item.values.size, item.huge)].append(i)
    for members in groups.values():
        for place, i in enumerate(members[:-1]):
            rest = members[place + 1 :]
            far = distance(items[i], [items[j] for j in rest], limit)
            for j, apart in zip(rest, far, strict=True):
                exact = items[i].exact or items[j].exact
                if apart <= (0 if exact else limit):
                    parent[find(j)] = find(i)
    numbers = [find(i) for i in range(len(items))]
    return (
        {item.key: numbers[i] for i, item in enumerate(golden)},
        {item.key: numbers[len(golden) + i] for i, item in enumerate(target)},
    )


@dataclass
class Truth:
    """The quantity of each result of both sides."""

    golden: dict[Key, int]
    target: dict[Key, int]

    @classmethod
    def of(cls, folder: Path, limit: float) -> Truth:
        """Compute it from the dumps of a variant, or load an earlier result."""
        cache = folder / "truth.json"
        if cache.exists():
            return cls(**json.loads(cache.read_text()))
        truth = cls(*classes(load(folder / "golden"), load(folder / "target"), limit))
        cache.write_text(json.dumps({"golden": truth.golden, "target": truth.target}))
        return truth

    def reachable(self) -> int:
        """Return how many golden results can be paired with an equal one, with each result in one pair."""
        counts: dict[int, list[int]] = defaultdict(lambda: [0, 0])
        for side, numbers in enumerate((self.golden, self.target)):
            for number in numbers.values():
                counts[number][side] += 1
        return sum(min(pair) for pair in counts.values())
