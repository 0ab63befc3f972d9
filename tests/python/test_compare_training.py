"""Comparison of training runs: weights, updates and growing errors."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import fxtap
from dumps import dumping


def train(root: Path, rate: float, *, compile_update: bool = False, n_steps: int = 3) -> None:
    torch.compiler.reset()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 8), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    backend = dumping(root)
    loss = torch.compile(lambda x: model(x).square().mean(), backend=backend)
    update: Any = torch.compile(optimizer.step, backend=backend) if compile_update else optimizer.step
    for step in range(n_steps):
        x = torch.randn(4, 8, generator=torch.Generator().manual_seed(step))
        optimizer.zero_grad()
        loss(x).backward()
        update()


def test_weights_that_an_update_changed_are_one_block(tmp_path: Path) -> None:
    train(tmp_path / "good", 0.2)
    train(tmp_path / "bad", 0.25)
    report = fxtap.compare(tmp_path / "good", tmp_path / "bad")
    first = report.origins[0]
    weights = [
        o for o in report.origins if o.reason == "weight" and (o.pair.graph, o.pair.step) == (first.pair.graph, 1)
    ]
    text = report.to_text()
    assert first.pair.step == 1
    assert len(weights) > 2
    (heading,) = re.findall("^(?:Origin|Also) .*", text, re.M)
    assert re.fullmatch(rf"Origin  weight \S+, read by {first.node}  {first.pair.target}", heading)
    assert f"and {len(weights) - 1} more weights\n" in text
    assert "after step 0's update, which was not dumped: compile opt.step as well" in " ".join(text.split())


def test_a_compiled_update_is_named_itself(tmp_path: Path) -> None:
    train(tmp_path / "good", 0.2, compile_update=True)
    train(tmp_path / "bad", 0.25, compile_update=True)
    report = fxtap.compare(tmp_path / "good", tmp_path / "bad")
    assert report.origins[0].reason == "operator"
    assert report.origins[0].source is not None
    assert "sgd.py" in report.origins[0].source
    assert "update, which was not dumped" not in report.to_text()


def test_weights_of_the_first_step_were_not_updated(tmp_path: Path) -> None:
    for side, scale in (("good", 1.0), ("bad", 1.01)):
        torch.compiler.reset()
        torch.manual_seed(0)
        model = nn.Linear(4, 4)
        model.weight.data.mul_(scale)
        compiled = torch.compile(model, backend=dumping(tmp_path / side))
        for step in range(2):
            compiled(torch.full((2, 4), step + 1.0))
    text = fxtap.compare(tmp_path / "good", tmp_path / "bad").to_text()
    assert "a weight differs already" in text
    assert "update" not in text


def test_an_operator_is_listed_once_where_the_error_grew(tmp_path: Path) -> None:
    """Rounding errors accumulate, and cancellation amplifies them by a different factor in each step."""

    def function(x: torch.Tensor) -> torch.Tensor:
        y = x
        for _ in range(12):
            y = y * 1.1
        return y - x * (0.85 * 1.1**12)

    for side, dtype in (("good", torch.float32), ("bad", torch.bfloat16)):
        torch.compiler.reset()
        compiled = torch.compile(function, backend=dumping(tmp_path / side))
        for step in range(4):
            compiled(torch.randn(64, generator=torch.Generator().manual_seed(step)).bfloat16().to(dtype))
    text = fxtap.compare(tmp_path / "good", tmp_path / "bad").to_text()
    listed = re.search(r"The error grew most in\n((?:  .*\n)+)", text)
    if listed is None:
        pytest.fail(text)
    names = re.findall(r"times +(\S+)", listed[1])
    assert names
    assert len(names) == len(set(names))
    assert len(re.findall(r"^ +in graph \d+, step [0-3]$", listed[1], re.M)) == len(names)
