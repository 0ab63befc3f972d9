"""Mistakes planted into one node of a graph: its result is changed, or the node is rewritten wrongly."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.fx import Node

from fxtap import _core
from fxtap.compiled import CompiledGraph

aten = torch.ops.aten


def scaled(value: torch.Tensor) -> torch.Tensor:
    return value * 1.5


def wrong_row(value: torch.Tensor) -> torch.Tensor:
    """Negate the last row (of all but the last dimension) and add one."""
    wrong = value.clone()
    if wrong.dim() == 0:
        return -wrong - 1
    last = wrong[tuple([-1] * (wrong.dim() - 1))] if wrong.dim() > 1 else wrong[-1:]
    last.copy_(-last - 1)
    return wrong


def shifted(value: torch.Tensor) -> torch.Tensor:
    return value + 0.5 * value.abs().mean()


def rolled(value: torch.Tensor) -> torch.Tensor:
    """Move every value to its neighbour's position."""
    return value.roll(1)


RESULTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "scaled": scaled, "row": wrong_row, "shifted": shifted, "rolled": rolled
}  # fmt: skip
"""Changes of the first floating-point result while the node runs; its graph is unchanged."""


def is_floating(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point() and value.numel() > 0


def wrong_result(target: Callable[..., Any], change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[..., Any]:
    """An operator whose first floating-point result is wrong."""

    def call(*args: Any, **kwargs: Any) -> Any:
        result = target(*args, **kwargs)
        if isinstance(result, torch.Tensor):
            return change(result)
        place = next(i for i, item in enumerate(result) if is_floating(item))
        return (*result[:place], change(result[place]), *result[place + 1 :])

    return call


def name_of(node: Node) -> str:
    name: str = node.target._schema.name.removeprefix("aten::")  # type: ignore[union-attr]
    return name


def is_attention(node: Node) -> bool:
    return "scaled_dot_product" in name_of(node) and "backward" not in name_of(node)


def literal(node: Node) -> bool:
    """Change an epsilon, factor, exponent or summand."""
    args = list(node.args)
    for place in reversed(range(1, len(args))):
        number = args[place]
        if type(number) is float:
            args[place] = 0.3 if 0 < number < 1e-3 else number * 1.5
        elif type(number) is int and name_of(node) in ("mul", "add", "sub", "div", "pow"):
            args[place] = number + 1
        if args[place] is not number:
            node.args = tuple(args)
            return True
    return False


def tanh(node: Node) -> bool:
    """Use gelu's approximation."""
    if name_of(node) != "gelu" or node.kwargs:
        return False
    node.kwargs = {"approximate": "tanh"}
    return True


def scale(node: Node) -> bool:
    """Use another attention scale."""
    if is_attention(node):
        node.kwargs = {**node.kwargs, "scale": 0.7}
    return is_attention(node)


def mask(node: Node) -> bool:
    """Switch attention between causal and not causal."""
    if not is_attention(node) or len(node.args) < 5 or "attn_mask" in node.kwargs:
        return False
    node.args = (*node.args[:4], not node.args[4], *node.args[5:])
    return True


OTHERS = {
    aten.silu.default: aten.gelu.default,
    aten.gelu.default: aten.silu.default,
    aten.relu.default: aten.silu.default,
    aten.tanh.default: aten.sigmoid.default,
    aten.sigmoid.default: aten.tanh.default,
    aten.rsqrt.default: aten.reciprocal.default,
    aten.amax.default: aten.amin.default,
    aten.mean.dim: aten.sum.dim_IntList,
}
OF_TWO = {
    aten.add.Tensor: aten.sub.Tensor,
    aten.sub.Tensor: aten.add.Tensor,
    aten.mul.Tensor: aten.add.Tensor,
    aten.div.Tensor: aten.mul.Tensor,
}


def operator(node: Node) -> bool:
    """Use another operator."""
    of_two = len(node.args) == 2 and all(isinstance(item, Node) for item in node.args) and not node.kwargs
    other = OF_TWO.get(node.target) if of_two else None
    other = other or (OTHERS.get(node.target) if not node.kwargs else None)
    if other is not None:
        node.target = other
    return other is not None


def wiring(node: Node) -> bool:
    """Replace the first argument by an earlier value of the same shape."""
    first = node.args[0] if node.args else None
    if not isinstance(first, Node) or not is_floating(first.meta.get("val")):
        return False
    like, before = first.meta["val"], None
    passing = {first, *first.all_input_nodes, *first.users}  # these may be views of the same value
    for other in node.graph.nodes:
        if other is node:
            break
        value = other.meta.get("val")
        if other.op != "call_function" or other in passing or not is_floating(value):
            continue
        if tuple(value.shape) == tuple(like.shape) and value.dtype == like.dtype:
            before = other
    if before is None:
        return False
    node.args = (before, *node.args[1:])
    return True


WRITTEN: dict[str, Callable[[Node], bool]] = {
    "literal": literal, "tanh": tanh, "scale": scale, "mask": mask, "operator": operator, "wiring": wiring
}  # fmt: skip
"""Changes of the graph; False if they do not apply to a node."""


@contextlib.contextmanager
def as_before(node: Node) -> Iterator[None]:
    """Undo all changes to a node at the end."""
    target, args, kwargs = node.target, node.args, node.kwargs
    try:
        yield
    finally:
        node.target, node.args, node.kwargs = target, args, kwargs


def allows(node: Node, kind: str) -> bool:
    """Return whether a mistake of this kind can be made in a node."""
    with as_before(node):
        return kind in RESULTS or WRITTEN[kind](node)


@contextlib.contextmanager
def planted(graph: CompiledGraph, node: Node, kind: str) -> Iterator[None]:
    """Make a mistake in a node, and undo it at the end."""
    record = graph.record
    with as_before(node):
        if kind in RESULTS:
            node.target = wrong_result(node.target, RESULTS[kind])  # type: ignore[arg-type]
        else:
            WRITTEN[kind](node)
            graph.record = _core.record(graph.gm, graph.kind)
        try:
            yield
        finally:
            graph.record = record
