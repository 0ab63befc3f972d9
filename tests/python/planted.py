"""Models whose graphs run separately, and runs of them in which one operator returns a wrong result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.fx import Node
from torch.utils._python_dispatch import TorchDispatchMode

from captured import Captured, catch
from fxtap import _core
from fxtap.selection import skip_reasons

Fault = Callable[[torch.Tensor], torch.Tensor]


class Saboteur(TorchDispatchMode):
    """Changes the first floating-point result of the n-th call of an operator."""

    def __init__(self, call: int, fault: Fault) -> None:
        super().__init__()
        self.remaining = call
        self.fault = fault
        self.target: Any = None

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        self.remaining -= 1
        if self.remaining != -1:
            return result
        self.target = func
        if isinstance(result, torch.Tensor):
            return self.fault(result)
        place = next(i for i, item in enumerate(result) if is_floating(item))
        return type(result)([*result[:place], self.fault(result[place]), *result[place + 1 :]])


def is_floating(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point() and value.numel() > 0


@dataclass
class Place:
    """A node whose result can be changed: its graph, the node, and the index of the call of its operator."""

    graph: int
    node: str
    call: int


@dataclass
class Planted:
    """One or two graphs (forward, and the backward that it feeds) with their arguments."""

    graphs: list[Captured]
    records: list[_core.Graph] = field(init=False)
    skips: list[list[str | None]] = field(init=False)

    def __post_init__(self) -> None:
        self.records = [_core.record(entry.gm, entry.kind) for entry in self.graphs]
        self.skips = [skip_reasons(entry.gm, record) for entry, record in zip(self.graphs, self.records, strict=True)]

    @classmethod
    def of(cls, function: Callable[..., Any], *arguments: Any) -> Planted:
        torch._dynamo.reset()
        torch.manual_seed(5)
        return cls(catch(function, [arguments]))

    def arguments(self, graph: int, outputs: Sequence[Any]) -> list[Any]:
        """Return the arguments of a call: those of the first, with the forward graph's saved values from `outputs`."""
        copies = self.graphs[graph].copies()
        if self.graphs[graph].kind == "backward":
            names = [node.name for node in self.graphs[graph].gm.graph.nodes if node.op == "placeholder"]
            n_saved = sum(not name.startswith("tangents") for name in names)
            saved = outputs[len(outputs) - n_saved :]
            copies[:n_saved] = [value.detach().clone() if is_floating(value) else value for value in saved]
        return copies

    def run(self, root: Path, place: Place | None = None, fault: Fault | None = None, seed: int = 5) -> None:
        """Dump one run with a fault at one node."""
        dump = _core.Dump(str(root))
        outputs: Sequence[Any] = ()
        for i, entry in enumerate(self.graphs):
            program = _core.Program(entry.gm, self.records[i], dump, i + 1, self.skips[i])
            arguments = self.arguments(i, outputs)
            torch.manual_seed(seed + i)
            if place is not None and place.graph == i:
                assert fault is not None
                saboteur = Saboteur(place.call, fault)
                with torch.no_grad(), saboteur:
                    outputs = program(arguments)
                assert saboteur.target is not None
            else:
                with torch.no_grad():
                    outputs = program(arguments)
        dump.close()

    def places(self) -> list[Place]:
        """Return the nodes that are dumped, yield floating-point values, and do not write to an argument."""
        found = []
        for i, entry in enumerate(self.graphs):
            call = 0
            for node, skip, flags in zip(entry.gm.graph.nodes, self.skips[i], self.records[i].flags, strict=True):
                if not isinstance(node.target, torch._ops.OpOverload):
                    continue
                if skip is None and not flags & {"mutates", "undefined"} and yields_floating(node):
                    found.append(Place(i, node.name, call))
                call += 1
        return found

    def flags(self, place: Place) -> frozenset[str]:
        record = self.records[place.graph]
        return record.flags[record.names.index(place.node)]


def yields_floating(node: Node) -> bool:
    value = node.meta.get("val")
    return any(is_floating(item) for item in (value if isinstance(value, (tuple, list)) else [value]))
