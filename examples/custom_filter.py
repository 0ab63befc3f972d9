"""Dump selected operators, with a function or with patterns: `python examples/custom_filter.py [DUMP]`."""

import sys

import torch
from torch import nn
from torch.fx import Node

import fxtap


def large_matrix_products(node: Node) -> Node | None:
    """Keep products whose result has at least 1,000 elements."""
    if node.target not in (torch.ops.aten.mm.default, torch.ops.aten.addmm.default):
        return None
    return node if node.meta["val"].numel() >= 1000 else None


root = sys.argv[1] if len(sys.argv) > 1 else "filtered-dump"
model = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 8)).eval()
x = torch.randn(20, 32)
compiled = torch.compile(model, backend="fxtap")
with torch.no_grad():
    with fxtap.dump(f"{root}/function", filter=large_matrix_products):
        compiled(x)
    with fxtap.dump(f"{root}/patterns", filter=["aten.gelu.*", "2"]):  # a target; a module path
        compiled(x)
print(f"the dumps are in {root}")
