"""Operators that return positions: two positions are equally right if the values at them are equal."""

from __future__ import annotations

import torch
from torch import Tensor

from .arguments import Arguments, Saved
from .operators import Operator
from .replay import Place, Replay

__all__ = ["chosen_dimension", "count_wrong_indices"]

_DISTINCT = frozenset({"sort", "topk", "argsort"})
"""Operators whose positions differ from each other."""

_ALONG = frozenset({"argmax", "argmin", "argsort", "cummax", "cummin", "kthvalue", "max", "median", "min", "mode",
                    "nanmedian", "sort", "topk"})  # fmt: skip


def chosen_dimension(operator: Operator, arguments: Arguments) -> tuple[int | None, bool] | None:
    """Return dimension and keepdim of a call that returns positions; None for other operators."""
    if operator.name not in _ALONG or not arguments.args:
        return None
    values = dict(zip((name for name, _ in operator.arguments), arguments.args, strict=False))
    values |= arguments.kwargs
    default = None if operator.name in ("argmax", "argmin") else -1
    keep = operator.name in ("sort", "topk", "argsort", "cummax", "cummin") or bool(values.get("keepdim"))
    dim = values.get("dim", default)
    return (dim if isinstance(dim, int) else None), keep


def _gather(values: Tensor, indices: Tensor, dim: int | None, keep: bool) -> Tensor | None:
    """Return the values at positions along a dimension, or None if a position is out of range."""
    if dim is None:
        values, dim = values.reshape(-1), 0
        indices = indices.reshape(-1)
    elif not keep:
        indices = indices.unsqueeze(dim)
    size = values.shape[dim] if values.ndim else 1
    if indices.numel() and not (int(indices.min()) >= 0 and int(indices.max()) < size):
        return None
    return torch.gather(values, dim, indices)


def count_wrong_indices(replay: Replay, place: Place, saved: Saved, reference: Tensor) -> int | None:
    """Return how many saved positions have another value than the reference's; None for other operators."""
    chosen = chosen_dimension(replay.operator, replay.arguments)
    if chosen is None or place[0] != "OUTPUT" or saved.dtype != torch.int64:
        return None
    dim, keep = chosen
    indices, values = saved.in_file, replay.arguments.tensors[0].in_file
    found, expected = _gather(values, indices, dim, keep), _gather(values, reference, dim, keep)
    if found is None or expected is None:
        return indices.numel()
    wrong = (found != expected) & ~(found.isnan() & expected.isnan())
    count = int(wrong.sum())
    if replay.operator.name in _DISTINCT and indices.ndim:
        ordered = indices.sort(-1 if dim is None else dim).values
        count += int((ordered.diff(dim=-1 if dim is None else dim) == 0).sum())
    return count
