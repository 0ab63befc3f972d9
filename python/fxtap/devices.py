"""What the run loop asks of devices other than the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

__all__ = ["BITS", "same_bits", "synchronise"]

BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
"""Integers that have the bits of a dtype, by its size."""


def _devices(value: Any) -> Iterator[torch.device]:
    if isinstance(value, Tensor):
        yield value.device
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _devices(item)


def synchronise(*values: Any) -> None:
    """Wait for the devices of tensors, in nested lists too: a copy to the host that does not block may be under way."""
    for device in set(_devices(values)):
        if device.type not in ("cpu", "meta"):
            torch.get_device_module(device).synchronize(device)


def same_bits(left: Tensor, right: Tensor) -> bool:
    """Return whether two tensors of one device have equal bits; False where the device cannot tell."""
    dtype = BITS.get(left.element_size())
    if dtype is None or left.is_conj() or left.is_neg() or right.is_conj() or right.is_neg():
        return False
    try:
        return torch.equal(left.view(dtype), right.view(dtype))
    except NotImplementedError:
        return False
