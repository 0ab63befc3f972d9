"""The time of pairing: graphs of many nodes that differ at every fiftieth operator, and equal graphs."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

import fxtap
from fxtap import _core
from fxtap.selection import skip_reasons

aten = torch.ops.aten
SIZES = (25_000, 50_000, 100_000)
ALLOWED_S = 2.0
"""Seconds allowed for unequal graphs of 100,000 nodes per side beyond those for equal ones."""
ALLOWED_GROWTH = 2.7
"""Factor allowed over half as many nodes."""

LAYER = 400  # nodes per module


class Chain:
    """A graph of many small operators: a residual stream with branches, without equal values."""

    def __init__(self, changed: bool) -> None:
        self.graph = Graph()
        self.changed = changed
        self.random = random.Random(3)
        self.value = torch.randn(8, generator=torch.Generator().manual_seed(1))
        self.count = 0

    def add(self, target: Any, *args: Any) -> Node:
        node = self.graph.call_function(target, args)
        layer, line = divmod(self.count, LAYER)
        node.meta["val"] = self.value
        line %= 200
        node.meta["stack_trace"] = f'  File "network.py", line {line + 10}, in forward\n    h = op_{line}(h)\n'
        node.meta["nn_module_stack"] = {"layer": (f"L['self'].layers.{layer}", torch.nn.Sequential)}
        return node

    def step(self, h: Node, skip: Node) -> tuple[Node, Node]:
        """One operator of the model, which may be written differently on the changed side."""
        self.count += 1
        number = self.random.uniform(0.5, 1.5)
        kind = self.count % 10
        change = self.count // 50 % 4 if self.changed and self.count % 50 == 0 else None
        if change == 0:
            h = self.add(aten.clone.default, h)
        if kind == 0:
            return self.silu(h, change is not None), h
        if kind == 5:
            return self.add(aten.add.Tensor, h, skip), h
        if kind in (3, 7):
            return self.add(aten.tanh.default, h), skip
        if kind in (2, 8):
            return self.add(aten.add.Tensor, h, number), skip
        return self.add(aten.mul.Tensor, h, number), skip

    def silu(self, h: Node, parts: bool) -> Node:
        if not parts:
            return self.add(aten.silu.default, h)
        return self.add(aten.mul.Tensor, h, self.add(aten.sigmoid.default, h))

    def build(self, n_nodes: int) -> GraphModule:
        h = skip = self.graph.placeholder("x")
        h.meta["val"] = self.value
        while self.count < n_nodes:
            h, skip = self.step(h, skip)
        self.graph.output((h,))
        return GraphModule(torch.nn.Module(), self.graph)


def dump_chain(n_nodes: int, changed: bool, root: Path) -> None:
    """Dump one call of a chain, statistics only."""
    chain = Chain(changed)
    gm = chain.build(n_nodes)
    record = _core.record(gm)
    dump = _core.Dump(str(root), type="stats")
    program = _core.Program(gm, record, dump, 1, skip_reasons(gm, record))
    with torch.no_grad():
        program([chain.value.clone()])
    dump.close()


def measure(n_nodes: int, base: Path) -> tuple[float, float, Any]:
    """Return the seconds for equal graphs and for unequal ones, and the latter's report."""
    folders = {name: base / f"{n_nodes}.{name}" for name in ("golden", "equal", "changed")}
    for name, folder in folders.items():
        if not folder.exists():
            dump_chain(n_nodes, name == "changed", folder)
    seconds = {}
    for name in ("equal", "changed"):
        for _ in range(2):  # the first reads the index from the disk
            start = time.perf_counter()
            report = fxtap.compare(folders["golden"], folders[name])
            seconds[name] = time.perf_counter() - start
    return seconds["equal"], seconds["changed"], report


def run(base: Path) -> bool:
    """Measure all sizes, print a line each; return whether the targets are reached."""
    extra = {}
    good = True
    for n_nodes in SIZES:
        equal, changed, report = measure(n_nodes, base)
        extra[n_nodes] = changed
        columns = report._core.columns(["io", "verdict"])
        results = [verdict for io, verdict in zip(columns["io"], columns["verdict"], strict=True) if io == "OUTPUT"]
        golden = sum(verdict != "only in target" for verdict in results)
        equals = sum(verdict in ("same", "close") for verdict in results)
        grown = changed / extra[n_nodes // 2] if n_nodes // 2 in extra else 0.0
        good = good and grown <= ALLOWED_GROWTH and len(report.origins) == 0
        print(
            f"{n_nodes:7,} nodes  equal {equal:6.2f} s  unequal {changed:6.2f} s  beyond {changed - equal:6.2f} s"
            f"{f'  {grown:.2f} times half as many' if grown else ''}  paired {100 * equals / golden:.2f} %"
            f"  origins {len(report.origins)}",
            flush=True,
        )
    print(f"at {SIZES[-1]:,} nodes {changed - equal:.2f} s beyond equal graphs (target: {ALLOWED_S:g} s)")
    return good and changed - equal <= ALLOWED_S
