"""Selection of the nodes to dump: operators by rule and by list, then the user's filter."""

from __future__ import annotations

import functools
import logging
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources

from torch._ops import HigherOrderOperator
from torch.fx import GraphModule, Node

from ._core import Graph, nearest_name, node_matches
from .functionalized import HELPER

__all__ = ["Filter", "FilterError", "explain_empty", "glob_filter", "module_path", "skip_reasons"]

logger = logging.getLogger("fxtap")

_FRAME = re.compile(r'^\s*File "(.*)", line (\d+)', re.MULTILINE)
_VARIABLE = re.compile(r"^[LG]\[[^\]]*\]\.?")  # Dynamo's name of the root of the path: L['self'], G['model']

Filter = Callable[[Node], Node | None]
"""Called with a node that would be dumped; returns the node to keep it, None to leave it out."""


class FilterError(ValueError):
    """A filter raised, or returned something other than its node or None; the message names the node."""


@functools.cache
def known_operators() -> frozenset[str]:
    """Return the names of the operators that TorchAir dumps, from the list in the package."""
    text = resources.files("fxtap").joinpath("data/operators.tsv").read_text("utf-8")
    return frozenset(line.split("\t")[0] for line in text.splitlines())


def _written_path(node: Node) -> str:
    """Return the path of the innermost module in Dynamo's form, "L['self'].blocks.0.fc"; "" outside of modules."""
    stack = node.meta.get("nn_module_stack") or {}
    path = ""
    for entry in stack.values():
        path = entry[0] if isinstance(entry, (tuple, list)) else str(entry)
    return path


def module_path(node: Node) -> str:
    """Return the path of a node's innermost module, such as "blocks.0.fc"; "" outside of modules."""
    return _VARIABLE.sub("", _written_path(node))


@dataclass(frozen=True)
class GlobFilter:
    """Keeps nodes that any of its patterns matches; filters with the same patterns are equal."""

    patterns: tuple[str, ...]

    def __call__(self, node: Node) -> Node | None:
        frames = _FRAME.findall(node.stack_trace or "")
        file, line = frames[-1] if frames else ("", "0")
        places = [(node.name, str(node.target), _written_path(node), file, int(line))]
        ends = ["OUTPUT.0", *(f"INPUT.{key}" for key in (*range(len(node.args)), *node.kwargs))]
        places += [(f"{node.name}-{node.target}.{end}", "", "", "", 0) for end in ends]
        return node if any(node_matches(pattern, *place) for pattern in self.patterns for place in places) else None


def glob_filter(*patterns: str) -> Filter:
    """Return a filter that keeps nodes that any of the patterns matches.

    Parameters
    ----------
    patterns
        Shell patterns as for `fxtap ls --op`, matched against a node's name, target, module path and source line:
        "add_*", "aten.mm.*", "blocks.0.*", "model.py:12".

    Examples
    --------
    >>> config.debug.data_dump.filter = fxtap.glob_filter("*attn*", "aten.softmax.*")  # doctest: +SKIP
    """
    for pattern in patterns:
        if not isinstance(pattern, str):
            raise TypeError(f"a pattern must be a string, not {pattern!r}")
    return GlobFilter(patterns)


def _suggest_names(keep: Filter | None, operators: list[Node]) -> str:
    """Return, in parentheses, the nearest names for patterns that match no operator; "" if there are none."""
    if not isinstance(keep, GlobFilter):
        return ""
    names = (name for node in operators for name in (node.name, str(node.target), module_path(node)))
    known = tuple(name for name in dict.fromkeys(names) if name)
    near = {pattern: nearest_name(pattern.strip("*"), known) for pattern in keep.patterns}
    hints = [f"{pattern}: did you mean {name}?" for pattern, name in near.items() if name is not None]
    return f" ({'; '.join(hints)})" if hints else ""


def explain_empty(gm: GraphModule, kind: str, reasons: list[str | None], keep: Filter | None) -> str | None:
    """Return one line that says why no operator of a graph is dumped; None if one is, or the graph has none.

    Parameters
    ----------
    kind
        The kind of the graph, for the message.
    reasons
        The result of `skip_reasons`.
    keep
        The filter; the line suggests names for its patterns.
    """
    skipped = {node: reason for node, reason in zip(gm.graph.nodes, reasons, strict=True) if node.op == "call_function"}
    operators = {node: reason for node, reason in skipped.items() if reason != "getitem"}
    if None in skipped.values() or not operators:
        return None
    if "filter" in operators.values():
        hint = _suggest_names(keep, list(operators))
        return f"the filter keeps no operator of the {kind} graph: nothing of it is dumped{hint}"
    node, reason = next(iter(operators.items()))
    advice = "; data_dump.custom_ops = True dumps custom operators" if reason == "non aten target" else ""
    return f"no operator of the {kind} graph is dumped: {node.name} is skipped ({reason}){advice}"


def _not_selected(node: Node, target: str, flags: frozenset[str], custom_ops: bool) -> str | None:
    """Return why nodes of this kind are not dumped, or None if they are."""
    if node.target is operator.getitem:
        return "getitem"
    if HELPER in node.meta:
        return "copies or views an argument of a mutable operator"
    if "aten" in flags or target in known_operators():
        return None
    if isinstance(node.target, HigherOrderOperator):
        return "higher-order operator; its subgraphs are not dumped"
    return None if custom_ops else "non aten target"


def _apply_filter(keep: Filter, node: Node) -> str | None:
    try:
        answer = keep(node)
    except Exception as error:
        raise FilterError(f"the filter raised {type(error).__name__} for node {node.name}: {error}") from error
    if answer is None:
        return "filter"
    if answer is not node:
        raise FilterError(f"the filter returned {answer!r} for node {node.name}; expected the node itself or None")
    return None


def skip_reasons(
    gm: GraphModule, record: Graph, keep: Filter | None = None, custom_ops: bool = False
) -> list[str | None]:
    """Return, for each node of a graph, why it is not dumped, or None if it is.

    Parameters
    ----------
    gm
        The graph.
    record
        Its record, for target names and flags.
    keep
        The user's filter; called once for each node that would be dumped.
    custom_ops
        Dump operators that are neither ATen's nor on TorchAir's list.

    Raises
    ------
    FilterError
        The filter raised, or returned something other than its node or None.
    """
    reasons: list[str | None] = []
    for node, target, flags in zip(gm.graph.nodes, record.targets, record.flags, strict=True):
        reason: str | None = None
        if node.op == "call_function":
            reason = _not_selected(node, target, flags, custom_ops)
            if reason == "non aten target":
                logger.debug("Skip dump non aten target %s", target)
            elif reason is None and keep is not None:
                reason = _apply_filter(keep, node)
        reasons.append(reason)
    return reasons
