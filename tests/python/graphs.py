"""Graphs built by hand or traced, their programs, and the files that a program wrote."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.fx import Graph, GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx

from fxtap import _core

aten = torch.ops.aten
_ids = iter(range(1, 1_000_000))
_lock = threading.Lock()


def build(make: Callable[..., Any], *names: str) -> GraphModule:
    """Return the graph of `make(graph, *placeholders)`, which returns the output."""
    graph = Graph()
    inputs = [graph.placeholder(name) for name in names]
    graph.output(make(graph, *inputs))
    return GraphModule(torch.nn.Module(), graph)


def chain(*targets: Any) -> GraphModule:
    """Return a graph that applies functions of one argument to x."""

    def make(graph: Graph, x: Node) -> Node:
        for target in targets:
            x = graph.call_function(target, (x,))
        return x

    return build(make, "x")


def trace(function: Callable[..., Any], *arguments: Any) -> GraphModule:
    """Return the ATen graph of a function."""
    return make_fx(function)(*arguments)


@dataclass
class Dumped:
    """Return a program that dumps, and its folder."""

    gm: GraphModule
    path: Path
    options: dict[str, Any] = field(default_factory=dict)
    skip: list[str | None] | None = None
    on_error: str = "raise"
    log: Callable[[str], object] | None = None

    def __post_init__(self) -> None:
        with _lock:
            self.graph_id = next(_ids)
        self.record = _core.record(self.gm)
        self.dump = _core.Dump(str(self.path), **self.options)
        self.program = _core.Program(
            self.gm, self.record, self.dump, self.graph_id, self.skip, on_error=self.on_error, log=self.log
        )

    def __call__(self, *arguments: Any) -> Any:
        return self.program(list(arguments))

    @property
    def folder(self) -> Path:
        return Path(self.dump.rank_path) / f"graph_{self.graph_id}"

    def files(self, step: int = 0) -> dict[str, Path]:
        """Return name without time stamp -> file."""
        found = {}
        for file in sorted((self.folder / str(step)).glob("*.npy")):
            name = re.sub(r"\.\d{20}\.npy$", "", file.name)
            assert name not in found, f"{name} twice"
            found[name] = file
        return found

    def arrays(self, step: int = 0) -> dict[str, NDArray[Any]]:
        return {name: np.load(file, allow_pickle=False) for name, file in self.files(step).items()}

    def array(self, name: str, step: int = 0) -> NDArray[Any]:
        return np.load(self.files(step)[name], allow_pickle=False)

    def index(self, sql: str) -> list[tuple[Any, ...]]:
        import sqlite3

        database = sqlite3.connect(f"file:{self.dump.rank_path}/fxtap.db?mode=ro", uri=True)
        try:
            return database.execute(sql).fetchall()
        finally:
            database.close()

    def skipped(self) -> dict[str, str]:
        """Return NODE.IO.POSITION -> the reason, for values that were not saved."""
        rows = self.index(
            "SELECT node.name, slot.io, slot.position, tensor.skipped FROM tensor JOIN slot ON slot.id = slot_id"
            " JOIN node ON node.id = node_id WHERE tensor.skipped IS NOT NULL"
        )
        return {f"{name}.{('INPUT', 'OUTPUT', 'INOUT')[io]}.{position}": text for name, io, position, text in rows}

    def steps(self) -> list[str]:
        return sorted(entry.name for entry in self.folder.iterdir()) if self.folder.exists() else []


def same(a: Any, b: Any) -> bool:
    """Return whether two values are equal bit for bit, including containers."""
    if isinstance(a, torch.Tensor):
        if a.shape != b.shape or a.dtype != b.dtype or a.stride() != b.stride():
            return False
        return torch.equal(a.contiguous().view(torch.uint8), b.contiguous().view(torch.uint8)) if a.numel() else True
    if isinstance(a, (tuple, list)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return type(a) is type(b) and list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    return type(a) is type(b) and (a == b or (a != a and b != b))
