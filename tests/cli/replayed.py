"""Dumps to verify: a small model, right, or with one operator whose results are changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._python_dispatch import TorchDispatchMode

from fxtap import _core
from fxtap.selection import skip_reasons

Fault = Callable[..., torch.Tensor]
"""Takes the result and the arguments of a call; returns another result."""


class Wrong(TorchDispatchMode):
    """Changes what the n-th call of an operator returns."""

    def __init__(self, operator: Any, call: int, fault: Fault) -> None:
        super().__init__()
        self.operator, self.remaining, self.fault = operator, call, fault

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if func is not self.operator:
            return result
        self.remaining -= 1
        return self.fault(result, *args) if self.remaining == -1 else result


def model(x: torch.Tensor) -> torch.Tensor:
    for _ in range(3):
        x = x + torch.nn.functional.gelu(torch.nn.functional.layer_norm(x @ x.t() @ x, [64]))
    return x.softmax(-1)


def dump(
    root: Path, function: Callable[..., Any], arguments: Sequence[Any], fault: Wrong | None = None, *, steps: int = 1,
    world_size: int = 1,
) -> None:  # fmt: skip
    """Dump calls of a function, with a fault in the last step of the last rank."""
    gm = make_fx(function)(*[arg.clone() if isinstance(arg, torch.Tensor) else arg for arg in arguments])
    record = _core.record(gm)
    for rank in range(world_size):
        handle = _core.Dump(str(root), world_size=world_size, rank=rank)
        program = _core.Program(gm, record, handle, 1, skip_reasons(gm, record))
        for step in range(steps):
            copies = [
                (arg + step + 2 * rank if arg.is_floating_point() else arg.clone())
                if isinstance(arg, torch.Tensor)
                else arg
                for arg in arguments
            ]
            is_last = (rank, step) == (world_size - 1, steps - 1)
            with torch.no_grad():
                if fault is not None and is_last:
                    with fault:
                        program(copies)
                else:
                    program(copies)
        handle.close()


def scaled(factor: float) -> Fault:
    return lambda result, *_: (result.double() * factor).to(result.dtype)


def by_tanh(result: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.gelu(x.float(), approximate="tanh").to(result.dtype)


def wrong_gelu(fault: Fault) -> Wrong:
    return Wrong(torch.ops.aten.gelu.default, 1, fault)


def example(dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(32, 64, generator=torch.Generator().manual_seed(1)).to(dtype)
