"""Programs that compute the same but are written differently: what is reported, and what is a difference."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import fxtap
from dumps import run

Function = Callable[..., torch.Tensor]


def both(tmp_path: Path, golden: Function, target: Function, *arguments: Any, **options: Any) -> fxtap.Report:
    for side, function in (("golden", golden), ("target", target)):
        torch.compiler.reset()
        run(tmp_path / side, function, *arguments)
    return fxtap.compare(tmp_path / "golden", tmp_path / "target", **options)


X = torch.linspace(-1, 9, 24).reshape(4, 6)


@pytest.mark.parametrize(
    ("golden", "target"),
    [
        (lambda x: x * 2, lambda x: x * 2.0),
        (lambda x: torch.clamp(x, 0, 6), lambda x: torch.clamp(x, 0.0, 6.0)),
        (lambda x: torch.where(x > 1, x, 0), lambda x: torch.where(x > 1.0, x, 0.0)),
        (lambda x: torch.full_like(x, True), lambda x: torch.full_like(x, 1)),
    ],
)
def test_a_number_counts_by_its_value(golden: Function, target: Function, tmp_path: Path) -> None:
    report = both(tmp_path, golden, target, X)
    assert report.verdict == "same" and not report.origins and not report.differing
    assert report.counts["written differently"] == 0


def test_another_number_is_another_program(tmp_path: Path) -> None:
    report = both(tmp_path, lambda x: x - 1, lambda x: x - 1.5, X)
    assert report.verdict == "different"
    (origin,) = report.origins
    assert origin.pair.node == "sub" and origin.literal == "other: golden 1.0, target 1.5"
    harmless = both(tmp_path / "b", lambda x: torch.clamp(x, -50, 50), lambda x: torch.clamp(x, -60, 60), X)
    assert harmless.verdict == "same" and harmless.counts["written differently"] == 2
    strict = fxtap.compare(tmp_path / "b/golden", tmp_path / "b/target", strict=True)
    assert strict.verdict == "different"


def test_sizes_that_are_written_differently(tmp_path: Path) -> None:
    view, reshape = torch.ops.aten.view.default, (4, 2, 3)
    report = both(tmp_path, lambda x: view(x, reshape).sin(), lambda x: view(x, (-1, 2, 3)).sin(), X)
    assert report.verdict == "same" and not report.differing


@pytest.mark.parametrize(("a", "b"), [(float("-inf"), -1e9), (-1e9, float("-inf"))])
def test_a_literal_that_is_infinite_is_told_so(a: float, b: float, tmp_path: Path) -> None:
    mask = torch.tensor([[True, False], [False, False]])

    def model(fill: float) -> Function:
        return lambda x: x.masked_fill(mask.to(x.device), fill) + 0.0

    report = both(tmp_path, model(a), model(b), torch.zeros(2, 2))
    assert report.verdict == "different"
    assert f"golden {a}" in report.origins[0].literal.replace("-1000000000.0", "-1e9").replace("-1e9", str(-1e9))
    told = json.loads(report.to_json())["pairs"]
    worst = [entry for pair in told for entry in pair.get("worst", ())]
    assert all(entry["golden"] is not None or entry["golden_text"] in ("inf", "-inf", "nan") for entry in worst)


def test_a_cut_graph_is_one_execution(tmp_path: Path) -> None:
    def model(cut: bool, offset: float) -> Function:
        def forward(x: torch.Tensor) -> torch.Tensor:
            y = torch.sin(x) * 2
            if cut:
                torch._dynamo.graph_break()
            return torch.tanh(torch.cos(y + offset)) * 3

        return forward

    whole = both(tmp_path / "a", model(False, 0.0), model(True, 0.0), X)
    assert whole.verdict == "same" and whole.steps == "1 iteration, of 1 call and 2 calls"
    assert whole.counts["only in golden"] + whole.counts["only in target"] == 0
    wrong = both(tmp_path / "b", model(False, 0.0), model(True, 0.01), X)
    assert [origin.pair.node for origin in wrong.origins] == ["add"]
    assert wrong.origins[0].literal == "other: golden 0.0, target 0.01"


def test_training_pairs_with_inference(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.GELU(), torch.nn.Linear(6, 6))
    for side, grad in (("inference", False), ("training", True)):
        torch.compiler.reset()
        with torch.set_grad_enabled(grad):
            result = run(tmp_path / side, model, X)
        if grad:
            result.sum().backward()
    report = fxtap.compare(tmp_path / "inference", tmp_path / "training")
    assert report.verdict == "same" and report.counts["only in golden"] == 0
    assert report.counts["same"] == 14


def test_an_explanation_names_evidence_and_rivals(tmp_path: Path) -> None:
    golden = lambda x: torch.tanh(torch.sin(x) * 2)  # noqa: E731
    target = lambda x: torch.tanh(torch.sin(x) * 2 + 0.5)  # noqa: E731
    report = both(tmp_path, golden, target, X, explain="tanh")
    assert report.explanation is not None
    assert report.explanation.startswith("golden tanh (graph ") and "operator" in report.explanation
    assert "another value" in report.explanation.partition("against")[2]
    assert fxtap.compare(tmp_path / "golden", tmp_path / "golden", explain="tanh").explanation is not None
