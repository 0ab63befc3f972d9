"""Rewrites of an ATen graph that keep its values: what other versions of torch, or other tracers, produce."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.fx import Graph, GraphModule, Node

aten = torch.ops.aten
Pass = Callable[[Graph], None]
VIEWS = (aten.view.default, aten.t.default, aten.transpose.int, aten.unsqueeze.default, aten.expand.default)


def value_of(argument: Any) -> Any:
    return torch.fx.node.map_arg(argument, lambda node: node.meta.get("val"))


def call(graph: Graph, like: Node, target: Any, *args: Any, **kwargs: Any) -> Node:
    """Add a call, with the source and module of the node that it replaces, and its fake value."""
    node = graph.call_function(target, args, kwargs)
    node.meta = {key: like.meta[key] for key in ("stack_trace", "nn_module_stack") if key in like.meta}
    fake = like.meta.get("val")
    mode = getattr(fake[0] if isinstance(fake, (tuple, list)) else fake, "fake_mode", None)
    if mode is not None:
        with mode, torch.no_grad():
            node.meta["val"] = target(*value_of(args), **value_of(kwargs))
    return node


def nodes_of(graph: Graph, target: Any) -> list[Node]:
    return [node for node in graph.nodes if node.op == "call_function" and node.target == target]


def replace(node: Node, new: Node) -> None:
    node.replace_all_uses_with(new)
    node.graph.erase_node(node)


def replace_results(node: Node, results: dict[int, Node]) -> None:
    """Replace an operator with several results by one node each."""
    for user in list(node.users):
        replace(user, results[user.args[1]])
    node.graph.erase_node(node)


def addmm(graph: Graph) -> None:
    """addmm -> mm, add."""
    for node in nodes_of(graph, aten.addmm.default):
        bias, left, right = node.args
        with graph.inserting_before(node):
            replace(node, call(graph, node, aten.add.Tensor, call(graph, node, aten.mm.default, left, right), bias))


def t_transpose(graph: Graph) -> None:
    """t -> transpose.int."""
    for node in nodes_of(graph, aten.t.default):
        with graph.inserting_before(node):
            replace(node, call(graph, node, aten.transpose.int, node.args[0], 0, 1))


def t_permute(graph: Graph) -> None:
    """t -> permute."""
    for node in nodes_of(graph, aten.t.default):
        with graph.inserting_before(node):
            replace(node, call(graph, node, aten.permute.default, node.args[0], [1, 0]))


def gelu(graph: Graph) -> None:
    """gelu -> mul, mul, erf, add, mul."""
    for node in nodes_of(graph, aten.gelu.default):
        x = node.args[0]
        with graph.inserting_before(node):
            half = call(graph, node, aten.mul.Tensor, x, 0.5)
            erf = call(graph, node, aten.erf.default, call(graph, node, aten.mul.Tensor, x, 0.7071067811865476))
            replace(node, call(graph, node, aten.mul.Tensor, half, call(graph, node, aten.add.Tensor, erf, 1)))


def silu(graph: Graph) -> None:
    """silu -> sigmoid, mul."""
    for node in nodes_of(graph, aten.silu.default):
        x = node.args[0]
        with graph.inserting_before(node):
            replace(node, call(graph, node, aten.mul.Tensor, x, call(graph, node, aten.sigmoid.default, x)))


def layer_norm(graph: Graph) -> None:
    """native_layer_norm over the last dimension -> mean, sub, pow, mean, add, rsqrt, mul, mul, add."""
    for node in nodes_of(graph, aten.native_layer_norm.default):
        x, _shape, weight, bias, eps = node.args
        with graph.inserting_before(node):
            mean = call(graph, node, aten.mean.dim, x, [-1], True)
            centred = call(graph, node, aten.sub.Tensor, x, mean)
            square = call(graph, node, aten.mul.Tensor, centred, centred)
            variance = call(graph, node, aten.mean.dim, square, [-1], True)
            inverse = call(graph, node, aten.rsqrt.default, call(graph, node, aten.add.Tensor, variance, eps))
            y = call(graph, node, aten.mul.Tensor, centred, inverse)
            if weight is not None:
                y = call(graph, node, aten.mul.Tensor, y, weight)
            if bias is not None:
                y = call(graph, node, aten.add.Tensor, y, bias)
        replace_results(node, {0: y, 1: mean, 2: inverse})


def softmax(graph: Graph) -> None:
    """_softmax -> amax, sub, exp, sum, div."""
    for node in nodes_of(graph, aten._softmax.default):
        x, dim, _half = node.args
        with graph.inserting_before(node):
            shifted = call(graph, node, aten.sub.Tensor, x, call(graph, node, aten.amax.default, x, [dim], True))
            power = call(graph, node, aten.exp.default, shifted)
            total = call(graph, node, aten.sum.dim_IntList, power, [dim], True)
            replace(node, call(graph, node, aten.div.Tensor, power, total))


def to_copy(graph: Graph) -> None:
    """t(_to_copy(w)) -> _to_copy(t(w)): the other order of a cast and a view."""
    for node in nodes_of(graph, aten.t.default):
        cast = node.args[0]
        if isinstance(cast, Node) and cast.target == aten._to_copy.default and len(cast.users) == 1:
            with graph.inserting_before(node):
                view = call(graph, node, aten.t.default, cast.args[0])
                replace(node, call(graph, cast, aten._to_copy.default, view, **cast.kwargs))
            graph.erase_node(cast)


def is_tensor(node: Node) -> bool:
    return isinstance(node.meta.get("val"), torch.Tensor)


def computed(graph: Graph) -> list[Node]:
    return [node for node in graph.nodes if node.op == "call_function" and is_tensor(node)]


def inserted(target: Any, every: int, floating: bool = False) -> Pass:
    """Return a pass that inserts an operator without effect after every n-th node."""

    def run(graph: Graph) -> None:
        for node in computed(graph)[every - 1 :: every]:
            if floating and not node.meta["val"].is_floating_point():
                continue
            users = list(node.users)
            with graph.inserting_after(node):
                new = call(graph, node, target, node)
            for user in users:
                user.replace_input_with(node, new)

    return run


def dead_branch(graph: Graph) -> None:
    """Add a logging branch after every fifth node: an unused norm of its value."""
    for node in computed(graph)[4::5]:
        if node.meta["val"].is_floating_point():
            with graph.inserting_after(node):
                total = call(graph, node, aten.abs.default, node)
            with graph.inserting_after(total):
                call(graph, node, aten.sum.default, total)


def no_detach(graph: Graph) -> None:
    """Remove detach, alias and clone of values that are not written to."""
    for target in (aten.detach.default, aten.alias.default):
        for node in nodes_of(graph, target):
            replace(node, node.args[0])


def minus_one(graph: Graph) -> None:
    """Write the first size of a view of several dimensions as -1."""
    for node in nodes_of(graph, aten.view.default):
        sizes = list(node.args[1])
        if len(sizes) > 1 and all(isinstance(size, int) and size > 0 for size in sizes):
            node.args = (node.args[0], [-1, *sizes[1:]])


def view_reshape(graph: Graph) -> None:
    """view -> _unsafe_view, as after a matmul."""
    for node in nodes_of(graph, aten.view.default):
        node.target = aten._unsafe_view.default


def literals(graph: Graph) -> None:
    """Change the type of numbers: 2 -> 2.0."""
    for target in (aten.mul.Tensor, aten.add.Tensor, aten.sub.Tensor, aten.div.Tensor, aten.pow.Tensor_Scalar):
        for node in nodes_of(graph, target):
            node.args = tuple(float(item) if type(item) is int else item for item in node.args)


def constant(graph: Graph) -> None:
    """lift_fresh_copy of a number held by the module -> scalar_tensor."""
    for node in nodes_of(graph, aten.lift_fresh_copy.default):
        value = getattr(graph.owning_module, node.args[0].target)
        with unset_fake_temporarily():
            number = value.item()
        with graph.inserting_before(node):
            replace(node, call(graph, node, aten.scalar_tensor.default, number, dtype=value.dtype))


def commute(graph: Graph) -> None:
    """a + b -> b + a, a * b -> b * a."""
    for target in (aten.mul.Tensor, aten.add.Tensor):
        for node in nodes_of(graph, target):
            if len(node.args) == 2 and all(isinstance(item, Node) for item in node.args) and not node.kwargs:
                node.args = node.args[::-1]


def sub_neg(graph: Graph) -> None:
    """a - b -> a + (-b); a / number -> a * (1 / number)."""
    for node in nodes_of(graph, aten.sub.Tensor):
        if isinstance(node.args[1], Node) and not node.kwargs and is_tensor(node.args[1]):
            with graph.inserting_before(node):
                negative = call(graph, node, aten.neg.default, node.args[1])
                replace(node, call(graph, node, aten.add.Tensor, node.args[0], negative))
    for node in nodes_of(graph, aten.div.Tensor):
        if isinstance(node.args[1], (int, float)) and node.args[1] != 0:
            with graph.inserting_before(node):
                replace(node, call(graph, node, aten.mul.Tensor, node.args[0], 1 / node.args[1]))


def bmm_matmul(graph: Graph) -> None:
    """mm -> unsqueeze, bmm, squeeze."""
    for node in nodes_of(graph, aten.mm.default):
        with graph.inserting_before(node):
            left, right = (call(graph, node, aten.unsqueeze.default, item, 0) for item in node.args)
            replace(node, call(graph, node, aten.squeeze.dim, call(graph, node, aten.bmm.default, left, right), 0))


def rename(graph: Graph) -> None:
    """Give every node a meaningless name."""
    for number, node in enumerate(graph.nodes):
        if node.op == "call_function":
            node._rename(f"v{number * 7 % 1009}")


def no_sources(graph: Graph) -> None:
    """Remove lines of code and module paths."""
    for node in graph.nodes:
        for key in ("stack_trace", "nn_module_stack", "fwd_nn_module_stack", "source_fn_stack"):
            node.meta.pop(key, None)


def reorder(graph: Graph) -> None:
    """Choose at random another order of execution that the wiring allows."""
    draw = random.Random(7)
    nodes = [node for node in graph.nodes if node.op not in ("placeholder", "output")]
    if any(isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable for node in nodes):
        return
    (output,) = graph.find_nodes(op="output")
    waiting = {node: sum(item in set(nodes) for item in set(node.all_input_nodes)) for node in nodes}
    ready = [node for node in nodes if waiting[node] == 0]
    while ready:
        node = ready.pop(max(draw.randrange(len(ready)), draw.randrange(len(ready))))
        output.prepend(node)
        for user in node.users:
            if user in waiting:
                waiting[user] -= 1
                if waiting[user] == 0:
                    ready.append(user)


PASSES: dict[str, Pass] = {
    "addmm": addmm,
    "t_transpose": t_transpose,
    "t_permute": t_permute,
    "gelu": gelu,
    "silu": silu,
    "layer_norm": layer_norm,
    "softmax": softmax,
    "to_copy": to_copy,
    "clone": inserted(aten.clone.default, 4),
    "detach": inserted(aten.detach.default, 3),
    "dead_branch": dead_branch,
    "no_detach": no_detach,
    "minus_one": minus_one,
    "view_reshape": view_reshape,
    "literals": literals,
    "constant": constant,
    "commute": commute,
    "sub_neg": sub_neg,
    "bmm_matmul": bmm_matmul,
    "rename": rename,
    "no_sources": no_sources,
    "reorder": reorder,
}


def apply(gm: GraphModule, names: tuple[str, ...]) -> None:
    """Run passes over a graph, in order."""
    for name in names:
        PASSES[name](gm.graph)
    if names:
        gm.graph.lint()
        gm.recompile()
