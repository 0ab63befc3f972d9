"""A graph's record marks the inputs that are parameters and buffers."""

from __future__ import annotations

from pathlib import Path

import torch

import fxtap
from fxtap import _core
from fxtap.backend import fxtap as backend


def weights_of(path: Path, number: int) -> dict[str, bool]:
    """Return placeholder name -> whether it is a weight, for the n-th graph of the dump."""
    graph = _core.Reader(path).record(0, number)
    return {
        target: "weight" in flags
        for op, target, flags in zip(graph.ops, graph.targets, graph.flags, strict=True)
        if op == "placeholder"
    }


def test_inference_and_training(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3)).eval()
    with torch.no_grad(), fxtap.dump(tmp_path / "inference"):
        torch.compile(model, backend=backend)(torch.ones(2, 4))
    found = weights_of(tmp_path / "inference", 0)
    assert list(found.values()).count(False) == 1  # the batch of rows
    assert list(found.values()).count(True) == 6  # weight and bias twice, running mean and variance

    torch._dynamo.reset()
    model.train()
    with fxtap.dump(tmp_path / "training"):
        torch.compile(model, backend=backend)(torch.ones(2, 4)).sum().backward()
    forward, backward = weights_of(tmp_path / "training", 0), weights_of(tmp_path / "training", 1)
    assert list(forward.values()).count(False) == 1
    assert any(backward.values())
    assert not backward["tangents_1"]
