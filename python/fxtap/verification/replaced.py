"""Operators whose CPU kernel a Python program has replaced: what replays them must not be the kernel that is judged."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._decomp import decomposition_table
from torch._ops import OpOverload

from .operators import NotReplayedError, Operator

__all__ = ["with_torchs_kernel"]


def _full_name(overload: OpOverload) -> str:
    name, variant = str(overload._schema.name), str(overload._schema.overload_name)
    return f"{name}.{variant}" if variant else name


def _is_replaced(overload: OpOverload) -> bool:
    return f"{_full_name(overload).replace('::', '/')}/CPU" in torch.library._impls


def with_torchs_kernel(operator: Operator) -> Operator:
    """Return an operator that runs another of torch's kernels for the same function if its own was replaced.

    Raises
    ------
    NotReplayedError
        There is none.
    """
    overload = operator.function
    if not isinstance(overload, OpOverload) or not _is_replaced(overload):
        return operator
    function = _by_functional_form(overload) if operator.written else _by_out_form(overload)
    function = function or decomposition_table.get(overload)
    if function is None:
        raise NotReplayedError("its kernel was replaced in this process")
    return dataclasses.replace(operator, function=function)


def _by_out_form(overload: OpOverload) -> Callable[..., Any] | None:
    """Return a function that calls the form that writes to given tensors, if that has a kernel of its own."""
    packet: Any = overload._overloadpacket
    inputs = [a.name for a in overload._schema.arguments]
    for name in packet.overloads():
        form = getattr(packet, name)
        outs = [a.name for a in form._schema.arguments if a.is_out]
        is_form = outs and [a.name for a in form._schema.arguments if not a.is_out] == inputs
        own = torch._C._dispatch_has_kernel_for_dispatch_key(_full_name(form), "CPU")
        if is_form and own and not _is_replaced(form):
            return lambda *args, form=form, outs=outs, **kwargs: _call_out(overload, form, outs, args, kwargs)
    return None


def _call_out(overload: OpOverload, form: OpOverload, outs: list[str], args: Any, kwargs: Any) -> Any:
    def to_meta(value: Any) -> Any:
        return value.to("meta") if isinstance(value, Tensor) else value

    like = overload(*map(to_meta, args), **{name: to_meta(value) for name, value in kwargs.items()})
    shapes = [like] if isinstance(like, Tensor) else like
    memory = [torch.empty(shape.shape, dtype=shape.dtype) for shape in shapes]
    return form(*args, **kwargs, **dict(zip(outs, memory, strict=True)))


def _by_functional_form(overload: OpOverload) -> Callable[..., Any] | None:
    """Return a function that writes to the first argument of an in-place operator what the functional form returns."""
    packet = getattr(torch.ops.aten, overload._overloadpacket.__name__.removesuffix("_"), None)
    form = getattr(packet, overload._overloadname, None)
    if not isinstance(form, OpOverload) or form is overload or _is_replaced(form):
        return None

    def call(first: Any, *args: Any, **kwargs: Any) -> Any:
        result = form(first, *args, **kwargs)
        if isinstance(first, Tensor):
            return first.copy_(result)
        for tensor, value in zip(first, result, strict=True):
            tensor.copy_(value)
        return None

    return call
