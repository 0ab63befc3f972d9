"""Which nodes of a graph are dumped: operators by rule and by list, then the user's filter."""

from __future__ import annotations

import functools
import logging
import operator
import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from importlib import resources

from torch._ops import HigherOrderOperator
from torch.fx import GraphModule, Node

from ._core import Graph
from .functionalized import HELPER

__all__ = ["Filter", "FilterError", "glob_filter", "module_path", "skip_reasons"]

logger = logging.getLogger("fxtap")

_VARIABLE = re.compile(r"^[LG]\[[^\]]*\]\.?")  # Dynamo's name of what the path begins at: L['self'], G['model']

Filter = Callable[[Node], Node | None]
"""Called with a node that would be dumped; returns it to have it dumped, None to leave it out."""


class FilterError(ValueError):
    """A filter raised, or returned something that is neither its node nor None; the message names the node."""


@functools.cache
def known_operators() -> frozenset[str]:
    """Return the names of the operators that TorchAir dumps, from the list in the package."""
    text = resources.files("fxtap").joinpath("data/operators.txt").read_text("utf-8")
    return frozenset(text.split())


def module_path(node: Node) -> str:
    """Return the path of the innermost module that a node comes from, as "blocks.0.fc"; "" outside of modules."""
    stack = node.meta.get("nn_module_stack") or {}
    path = ""
    for entry in stack.values():
        path = entry[0] if isinstance(entry, (tuple, list)) else str(entry)
    return _VARIABLE.sub("", path)


def glob_filter(*patterns: str) -> Filter:
    """Return a filter that keeps what any of the patterns matches.

    Parameters
    ----------
    patterns
        Shell patterns, matched against a node's name, its target and its module path: "add_*", "aten.mm.*",
        "*blocks.0.*", "blocks.0.fc".

    Examples
    --------
    >>> config.debug.data_dump.filter = fxtap.glob_filter("*attn*", "aten.softmax.*")  # doctest: +SKIP
    """
    for pattern in patterns:
        if not isinstance(pattern, str):
            raise TypeError(f"a pattern is text, not {pattern!r}")

    def keep(node: Node) -> Node | None:
        texts = (node.name, str(node.target), module_path(node))
        return node if any(fnmatchcase(text, pattern) for pattern in patterns for text in texts) else None

    keep.__name__ = f"glob_filter({', '.join(patterns)})"
    return keep


def _not_selected(node: Node, target: str, flags: frozenset[str], custom_ops: bool) -> str | None:
    """Return why the kind of node is not dumped, None where it is."""
    if node.target is operator.getitem:
        return "getitem"
    if HELPER in node.meta:
        return "copies or views what a mutable operator changes"
    if "aten" in flags or target in known_operators():
        return None
    if isinstance(node.target, HigherOrderOperator):
        return "higher-order operator; what its graphs run is not dumped"
    return None if custom_ops else "non aten target"


def _ask(keep: Filter, node: Node) -> str | None:
    try:
        answer = keep(node)
    except Exception as error:
        raise FilterError(f"the filter raised {type(error).__name__} for node {node.name}: {error}") from error
    if answer is None:
        return "filter"
    if answer is not node:
        raise FilterError(f"the filter returned {answer!r} for node {node.name}; the node itself or None is wanted")
    return None


def skip_reasons(
    gm: GraphModule, record: Graph, keep: Filter | None = None, custom_ops: bool = False
) -> list[str | None]:
    """Return, for each node of a graph, why it is not dumped; None for those that are.

    Parameters
    ----------
    gm
        The graph.
    record
        Its record, for the targets' names and flags.
    keep
        The user's filter; called once for each node that would be dumped.
    custom_ops
        Dump operators that are neither ATen's nor in TorchAir's list.

    Raises
    ------
    FilterError
        The filter raised, or returned something else than its node or None.
    """
    reasons: list[str | None] = []
    for node, target, flags in zip(gm.graph.nodes, record.targets, record.flags, strict=True):
        reason: str | None = None
        if node.op == "call_function":
            reason = _not_selected(node, target, flags, custom_ops)
            if reason == "non aten target":
                logger.debug("Skip dump non aten target %s", target)
            elif reason is None and keep is not None:
                reason = _ask(keep, node)
        reasons.append(reason)
    return reasons
