"""Faults in the program of the verification benchmark's models: the kernels are right, the graph asks for the wrong.

A fault changes one operator of a graph before it is compiled, as a wrong line of the model's code would. Only golden
tells: each is verified against a dump of the right program in float32.
"""

from __future__ import annotations

import operator
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.fx import GraphModule, Node

import fxtap
from verify_faults import ATTENTION, HEAD_SIZES, NORMS
from verify_models import HEADS, Session, Setting

aten: Any = torch.ops.aten
PASSED_ON = {"view", "_unsafe_view", "clone", "transpose", "permute", "t", "expand", "unsqueeze", "squeeze", "slice",
             "_to_copy", "getitem", "detach", "alias"}  # fmt: skip


def name_of(node: Node) -> str:
    return node.target._schema.name.partition("::")[2] if isinstance(node.target, torch._ops.OpOverload) else ""


def value_of(node: Any) -> torch.Tensor:
    """Return the fake tensor that a node makes; an empty one if it makes none."""
    value = node.meta.get("val") if isinstance(node, Node) else None
    return value if isinstance(value, torch.Tensor) else torch.empty(0)


def insert(node: Node, target: Any, *args: Any, **kwargs: Any) -> Node:
    """Insert a call before a node, from the same line of code."""
    with node.graph.inserting_before(node):
        new = node.graph.call_function(target, args, kwargs)
    plain = torch.fx.node.map_arg((args, kwargs), value_of)
    new.meta = {**node.meta, "val": target(*plain[0], **plain[1])}
    return new


def replace(node: Node, new: Node) -> list[Node]:
    node.replace_all_uses_with(new, delete_user_cb=lambda user: user is not new)
    return [node, new]


def with_literal(node: Node, place: int, value: Any) -> list[Node]:
    node.update_arg(place, value)
    return [node]


def tanh_gelu(node: Node) -> list[Node]:
    if name_of(node) not in ("gelu", "gelu_backward") or node.kwargs.get("approximate") == "tanh":
        return []
    node.update_kwarg("approximate", "tanh")
    return [node]


def other_eps(node: Node) -> list[Node]:
    """Use 1e-3 in a norm, or in the sum that stands for one."""
    if name_of(node) in NORMS and isinstance(node.args[-1], float):
        return with_literal(node, len(node.args) - 1, 1e-3)
    literal = node.args[1] if name_of(node) == "add" and len(node.args) > 1 else None
    return with_literal(node, 1, 1e-3) if isinstance(literal, float) and 0 < literal < 1e-3 else []


def other_scale(node: Node) -> list[Node]:
    """Use 1/sqrt(d + 1) in attention, or in the product that stands for it."""
    if name_of(node) in ATTENTION:
        node.update_kwarg("scale", (value_of(node.args[0]).shape[-1] + 1) ** -0.5)
        return [node]
    factor = node.args[1] if name_of(node) in ("mul", "div") and len(node.args) > 1 else None
    for size in HEAD_SIZES if isinstance(factor, float) else ():
        for power in (-0.5, -0.25, 0.5, 0.25):
            if abs(factor - size**power) < 1e-6:
                return with_literal(node, 1, (size + 1) ** power)
    return []


def wrong_heads(node: Node) -> list[Node]:
    """Give each query head another key head's group, or read features as heads."""
    shape = value_of(node).shape
    if name_of(node) == "expand" and len(shape) == 5 and shape[1] == shape[2] > 1:
        swapped = insert(node.next, aten.transpose.int, node, 1, 2)
        new = insert(swapped.next, aten.clone.default, swapped, memory_format=torch.contiguous_format)
        node.replace_all_uses_with(new, delete_user_cb=lambda user: user is not swapped)
        return [swapped, new]
    is_split = name_of(node) in ("view", "_unsafe_view") and len(shape) == 4 and shape[2] == HEADS
    if is_split and value_of(node.args[0]).dim() == 3 and all(isinstance(n, int) for n in shape):
        batch, tokens, heads, size = shape
        other = insert(node, aten.view.default, node.args[0], [batch, tokens, size, heads])
        swapped = insert(node, aten.transpose.int, other, 2, 3)
        new = insert(node, aten.clone.default, swapped, memory_format=torch.contiguous_format)
        return [other, swapped, *replace(node, new)]
    return []


def shifted_mask(node: Node) -> list[Node]:
    """Move a mask by one place."""
    other = {"le": aten.lt, "lt": aten.le, "ge": aten.gt, "gt": aten.ge}.get(name_of(node))
    if other is not None:
        node.target = getattr(other, node.target._overloadname)
        return [node]
    if name_of(node) in ("triu", "tril"):
        node.args = (node.args[0], (node.args[1] if len(node.args) > 1 else 0) + 1)
        return [node]
    return []


def other_dimension(node: Node) -> list[Node]:
    """Compute a softmax over the queries in place of the keys."""
    shape = value_of(node).shape
    is_square = name_of(node) == "_softmax" and len(shape) == 4 and shape[-1] == shape[-2]
    return with_literal(node, 1, -2) if is_square else []


KINDS: dict[str, Callable[[Node], list[Node]]] = {
    "tanh gelu": tanh_gelu, "other eps": other_eps, "scale 1/sqrt(d+1)": other_scale,
    "wrong heads": wrong_heads, "mask off by one": shifted_mask, "softmax over queries": other_dimension,
}  # fmt: skip
"""Faults of a program. Each changes the graph at a node to which it applies, and returns the nodes that changed.

None casts to another dtype: which one a program computes in is its own choice, as with autocast.
"""


@dataclass
class ProgramFault:
    """One fault: its kind and the node, by its name in the right program.

    Attributes
    ----------
    nodes
        The names of the operators that it changed or inserted, and of those that only pass on what they give.
    result
        The name of the last one that it changed.
    """

    kind: str
    position: int
    node: str
    nodes: set[str] = field(default_factory=set)
    result: str = ""


@dataclass
class Editor:
    """Edits the graphs of a session; without faults, finds where each kind applies."""

    faults: list[ProgramFault]
    found: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    position: int = -1

    def __call__(self, gm: GraphModule) -> None:
        """Edit the next graph."""
        self.position += 1
        if not self.faults:
            self.survey(gm)
            return
        for fault in self.faults:
            if fault.position == self.position:
                node = next(n for n in gm.graph.nodes if n.name == fault.node)
                self.plant(fault, node)
        gm.graph.eliminate_dead_code()
        gm.recompile()

    def survey(self, gm: GraphModule) -> None:
        for kind, edit in KINDS.items():
            copied = torch.fx.Graph()
            copied.graph_copy(gm.graph, {})
            names = [node.name for node in gm.graph.nodes if node.op != "output"]
            for name, node in zip(names, list(copied.nodes), strict=True):
                if edit(node):
                    self.found.setdefault(kind, []).append((self.position, name))

    @staticmethod
    def plant(fault: ProgramFault, node: Node) -> None:
        changed = KINDS[fault.kind](node)
        fault.result = changed[-1].name
        waiting = list(changed)
        while waiting:
            one = waiting.pop()
            fault.nodes.add(one.name)
            passed_on = [user for user in one.users if name_of(user) in PASSED_ON or user.target is operator.getitem]
            waiting += [user for user in passed_on if user.name not in fault.nodes]


def bits_of(dump: Path, graph: int, node: str) -> bytes:
    """Return the first result of a node."""
    found = fxtap.open(dump).tensors(graph=graph, io="OUTPUT")
    return next(tensor.numpy().tobytes() for tensor in found if tensor.node == node)


def draw(
    found: dict[str, list[tuple[int, str]]], used: Counter[str], count: int, random_: random.Random
) -> list[ProgramFault]:
    """Choose places for the kinds that are rarest so far, at most one fault a node."""
    rest = {kind: random_.sample(places, len(places)) for kind, places in found.items()}
    drawn: dict[tuple[int, str], ProgramFault] = {}
    while len(drawn) < count and any(rest.values()):
        kind = min((kind for kind in rest if rest[kind]), key=lambda kind: (used[kind], random_.random()))
        place = rest[kind].pop()
        used[kind] += 1
        drawn.setdefault(place, ProgramFault(kind, *place))
    return list(drawn.values())


def dump_program(entry: tuple[str, str, str], setting: Setting, root: Path, editor: Editor) -> list[int]:
    """Dump one run of an edited program; return the numbers of its graphs in the dump."""
    session = Session(*entry, edit=editor)
    session.run(root, setting)
    return [graph._number for graph in session.backend.graphs]
