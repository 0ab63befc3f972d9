"""Marking the inputs of a graph that are parameters or buffers of the model, for reports about differing weights."""

from __future__ import annotations

import re

from torch._guards import TracingContext
from torch.fx import GraphModule, Node

__all__ = ["mark_weights"]

PRIMAL = re.compile(r"(?:primals_(?P<one>[0-9]+)|arg(?P<zero>[0-9]+)_1)\Z")


def input_index(node: Node) -> int | None:
    """Return the index of a placeholder in the inputs of the forward pass; None for a tangent or saved activation."""
    desc = node.meta.get("desc")
    if desc is not None:
        index = getattr(desc, "idx", None)
        return index if isinstance(index, int) else None
    match = PRIMAL.match(str(node.target))
    if match is None:
        return None
    return int(match["zero"]) if match["zero"] is not None else int(match["one"]) - 1


def mark_weights(gm: GraphModule) -> None:
    """Mark placeholders that are parameters or buffers, in ``node.meta["fxtap_weight"]``, for the graph's record.

    AOTAutograd lists them as inputs whose storage does not change (``static_input_indices``, torch >= 2.4). Outside of
    a compilation this list is not available, and nothing is marked.
    """
    context = TracingContext.try_get()
    static = set(getattr(getattr(context, "fw_metadata", None), "static_input_indices", None) or ())
    for node in gm.graph.find_nodes(op="placeholder"):
        kind = type(node.meta.get("desc")).__name__
        if kind in ("ParamAOTInput", "BufferAOTInput") or input_index(node) in static:
            node.meta["fxtap_weight"] = True
