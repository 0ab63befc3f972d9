"""Mutable custom operators under functionalisation, expanded to copies of the arguments they change and the call."""

from __future__ import annotations

import logging
import operator
from collections.abc import Callable
from typing import Any

import torch
from torch._ops import OpOverload
from torch._prims_common import compute_required_storage_length
from torch.fx import Graph, GraphModule, Node
from torch.fx.node import map_arg

__all__ = ["HELPER", "expand_mutations"]

logger = logging.getLogger("fxtap")

HELPER = "fxtap_helper"
"""Key in the meta of nodes that create the copies and views for a mutable operator."""

aten = torch.ops.aten


class _UnknownFormError(Exception):
    """A node that this module cannot expand; it is left unchanged."""


class _Expansion:
    """The expansion of one ``auto_functionalized`` node in its graph."""

    def __init__(self, graph: Graph, node: Node) -> None:
        self.graph = graph
        self.node = node
        self.target: OpOverload = node.args[0]  # type: ignore[assignment]
        self.schema = self.target._schema
        self.arguments: dict[str, Any] = dict(node.kwargs)
        self.written = [a for a in self.schema.arguments if a.alias_info is not None and a.alias_info.is_write]
        self.has_offsets = any(name.endswith("_storage_offset") for name in self.arguments)
        self.added: list[Node] = []

    def call(self, target: Callable[..., Any], *args: Any, **kwargs: Any) -> Node:
        """Add a helper node before the expanded node."""
        node = self.graph.call_function(target, args, kwargs)
        self.added.append(node)
        node.meta = {key: value for key, value in self.node.meta.items() if key not in ("val", "tensor_meta")}
        node.meta[HELPER] = True
        values: Any = map_arg((args, kwargs), lambda n: n.meta.get("val"))
        node.meta["val"] = target(*values[0], **values[1])
        return node

    def clone(self, base: Any) -> Any:
        """Copy a tensor with its strides and offset, on which descriptions of its views depend."""
        if base is None:
            return None
        value = base.meta["val"]
        if value.storage_offset() == 0 and value.is_contiguous():
            return self.call(aten.clone.default, base)
        size, stride, offset = value.size(), value.stride(), value.storage_offset()
        numbers = [compute_required_storage_length(size, stride, offset), *size, *stride, offset]
        if any(isinstance(number, torch.SymInt) for number in numbers):  # not constants in the graph
            if self.has_offsets:
                raise _UnknownFormError("views by offset of a base of symbolic layout")
            return self.call(aten.clone.default, base)
        flat = self.call(aten.as_strided.default, base, numbers[:1], [1], 0)
        copy = self.call(aten.clone.default, flat)
        return self.call(aten.as_strided.default, copy, list(size), list(stride), offset)

    def view(self, info: Any, bases: list[Any]) -> Any:
        """Create the view of a base that torch's ViewInfo describes."""
        if info is None:
            return None
        base, kind = bases[info.base_index], type(info).__name__
        if kind == "NotView":
            return base
        if kind == "AliasViewInfo":
            return self.call(aten.alias.default, base)
        if kind == "SliceViewInfo":
            return self.call(aten.slice.Tensor, base, info.dim, info.start, info.end)
        if kind == "AsStridedViewInfo":
            return self.call(aten.as_strided.default, base, info.size, info.stride, info.storage_offset)
        raise _UnknownFormError(kind)

    def replace_views(self) -> list[Any]:
        """Replace view descriptions among the arguments by views of copied bases; return the copies."""
        from torch._higher_order_ops.auto_functionalize import read_view_information_from_args

        bases = [self.clone(base) for base in self.arguments.pop("_all_bases")]
        names: list[str] = [a.name for a in self.written]
        types: list[Any] = [a.type for a in self.written]
        for name, info in read_view_information_from_args(names, types, self.arguments, bases).items():
            views = [self.view(one, bases) for one in info] if isinstance(info, list) else self.view(info, bases)
            self.arguments[name] = views
        return bases

    def create_outs(self) -> list[Any]:
        """Create the tensors for arguments that the operator only writes to."""
        self.arguments.pop("_all_bases", None)
        outs = []
        for argument in self.written:
            prefix = f"_{argument.name}_"
            size, stride = self.arguments.pop(prefix + "size"), self.arguments.pop(prefix + "stride")
            options = {key: self.arguments.pop(prefix + key) for key in ("dtype", "device")}
            outs.append(self.call(aten.empty_strided.default, size, stride, **options))
            self.arguments[argument.name] = outs[-1]
        return outs

    def replace_by_copies(self) -> list[Any]:
        """Replace the arguments that are written to by copies."""
        copies = []
        for argument in self.written:
            value = self.arguments[argument.name]
            is_list = isinstance(value, (list, tuple))
            copies.append([self.clone(one) for one in value] if is_list else self.clone(value))
            self.arguments[argument.name] = copies[-1]
        return copies

    def call_operator(self) -> Node:
        """Add a direct call of the operator: arguments by position, without trailing defaults."""
        args = [(a, self.arguments.pop(a.name, a.default_value)) for a in self.schema.arguments if not a.kwarg_only]
        kwargs = {a.name: self.arguments.pop(a.name) for a in self.schema.arguments if a.name in self.arguments}
        if self.arguments:
            raise _UnknownFormError(f"arguments {sorted(self.arguments)}")
        while args and args[-1][0].has_default_value() and _is_default(args[-1][1], args[-1][0].default_value):
            args.pop()
        name = self.target._overloadpacket.__name__
        node = self.graph.create_node(
            "call_function", self.target, tuple(value for _, value in args), kwargs, name=name
        )
        node.meta = dict(self.node.meta)
        node.meta.pop("tensor_meta", None)
        return node

    def expand(self) -> None:
        is_out = bool(self.written) and f"_{self.written[0].name}_dtype" in self.arguments
        with self.graph.inserting_before(self.node):
            if is_out:
                changed = self.create_outs()
            elif "_all_bases" in self.arguments:
                changed = self.replace_views()
            else:
                changed = self.replace_by_copies()
            call = self.call_operator()
        self.added.append(call)
        value = self.node.meta.get("val")
        if is_out:
            self.replace([call] if len(changed) == 1 else [_item(self.graph, call, i) for i in range(len(changed))])
            return
        n_returns = len(self.schema.returns)
        own = value[: max(1, n_returns)] if isinstance(value, (tuple, list)) else (None,)
        call.meta["val"] = own[0] if n_returns < 2 else tuple(own)
        results = [call] if n_returns < 2 else [_item(self.graph, call, i) for i in range(n_returns)]
        self.replace([*results, *changed])

    def replace(self, results: list[Any]) -> None:
        """Replace the uses of the node's results, and remove the node."""
        if len(results) == 1:
            self.node.replace_all_uses_with(results[0])
        else:
            _check_items(self.node, results)
            for user in list(self.node.users):
                _replace_item(self.graph, user, results[user.args[1]])  # type: ignore[index]
        self.graph.erase_node(self.node)

    def undo(self) -> None:
        for node in reversed(self.added):
            if not node.users:
                self.graph.erase_node(node)


def _is_default(value: Any, default: Any) -> bool:
    return type(value) is type(default) and not isinstance(value, (Node, list, tuple)) and bool(value == default)


def _item(graph: Graph, node: Node, index: int) -> Node:
    with graph.inserting_after(node):
        item = graph.call_function(operator.getitem, (node, index))
    value = node.meta.get("val")
    if isinstance(value, (tuple, list)):
        item.meta["val"] = value[index]
    return item


def _check_items(node: Node, values: list[Any]) -> None:
    """Raise if anything other than single elements of a list is used."""
    for user in node.users:
        if user.target is not operator.getitem:
            raise _UnknownFormError(f"{user} uses the whole result of {node}")
        value = values[user.args[1]]  # type: ignore[index]
        if isinstance(value, list):
            _check_items(user, value)


def _replace_item(graph: Graph, item: Node, value: Any) -> None:
    """Replace the uses of `item` by `value`: a node, or a list of nodes of which elements are used."""
    if isinstance(value, list):
        for user in list(item.users):
            _replace_item(graph, user, value[user.args[1]])  # type: ignore[index]
    elif value is not None:
        item.replace_all_uses_with(value)
    if not item.users:
        graph.erase_node(item)


def _is_functionalized(node: Node) -> bool:
    higher_order = torch.ops.higher_order
    kinds = (higher_order.auto_functionalized, getattr(higher_order, "auto_functionalized_v2", None))
    return node.op == "call_function" and node.target in kinds and isinstance(node.args[0], OpOverload)


def expand_mutations(gm: GraphModule) -> bool:
    """Expand the mutable custom operators of a graph, as inductor does: copies of changed arguments, then the call.

    AOTAutograd wraps such an operator in a higher-order one, `auto_functionalized` or `auto_functionalized_v2`, which
    makes the copies. After the expansion the operator is a node with its own name and arguments, so its tensors can be
    saved before and after it. The nodes that create copies and views have ``meta["fxtap_helper"]``. Unknown forms are
    left unchanged. Returns whether the graph had any such operator.
    """
    found = [node for node in gm.graph.nodes if _is_functionalized(node)]
    for node in found:
        expansion = _Expansion(gm.graph, node)
        try:
            expansion.expand()
        except Exception as error:  # the graph still runs unchanged
            expansion.undo()
            logger.debug("%s of %s was not expanded: %s", node.target, node.args[0], error)
    if found:
        gm.recompile()
    return bool(found)
