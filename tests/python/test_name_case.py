"""File names stay distinct on a case-insensitive file system, and lead back to their nodes."""

import unicodedata
from pathlib import Path
from typing import Any

import torch
from torch.fx import Graph, Node

import fxtap
from graphs import Dumped, build


def scale(x: torch.Tensor, **factors: float) -> torch.Tensor:
    return x * sum(factors.values())


def relu(x: torch.Tensor) -> torch.Tensor:
    return torch.ops.aten.relu.default(x)


def Relu(x: torch.Tensor) -> torch.Tensor:  # noqa: N802
    return torch.ops.aten.relu.default(x) + 1


def folded(name: str) -> str:
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", name).casefold())


def test_nodes_operators_and_keywords(tmp_path: Path) -> None:
    names = ["Relu", "relu", "RELU", "élan", "Élan", "e\N{COMBINING ACUTE ACCENT}lan", "Straße", "STRASSE"]

    def make(graph: Graph, x: Node) -> Node:
        for number, name in enumerate(names):
            x = graph.create_node("call_function", (relu, Relu)[number % 2], (x,), name=name)
            x.name = name
        x = graph.call_function(scale, (x,), {"alpha": 1.0, "Alpha": 2.0, "é": 3.0, "É": 4.0})
        return graph.call_function(scale, (x,), {"Alpha": 5.0, "alpha": 6.0, "É": 7.0, "é": 8.0})

    dumped = Dumped(build(make, "x"), tmp_path / "out")
    dumped(torch.arange(2.0))
    dumped.dump.close()
    files = [path.name for path in dumped.folder.glob("0/*.npy")]
    assert len({folded(name) for name in files}) == len(files) == 2 * len(names) + 2 * 6
    found: dict[tuple[str, str], Any] = {}
    for tensor in fxtap.open(tmp_path / "out").tensors():
        found[tensor.node, f"{tensor.io} {tensor.position}"] = tensor.numpy().tolist()
    for number, name in enumerate(names):
        raised = (number + 1) // 2
        assert found[name, "OUTPUT 0"] == [raised, 1 + raised]
    wanted = {"scale": {"alpha": 1, "Alpha": 2, "é": 3, "É": 4}, "scale_1": {"alpha": 6, "Alpha": 5, "é": 8, "É": 7}}
    for node, keywords in wanted.items():
        assert {keyword: found[node, f"INPUT {keyword}"] for keyword in keywords} == keywords
