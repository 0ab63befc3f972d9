"""Programs that compute the same but are written differently: reported nodes, and what counts as a difference."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import fxtap
from dumps import dumping, run

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
    assert origin.pair.node == "sub" and origin.literal == "other: golden 1, target 1.5"
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


@pytest.mark.parametrize(
    ("golden", "target", "told"),
    [
        (lambda x: x.sum([1], True), lambda x: x.sum([1, 0], True), "dim: golden [1], target [1, 0]"),
        (lambda x: torch.flip(x, [0]), lambda x: torch.flip(x, [0, 1]), "dims: golden [0], target [0, 1]"),
        (lambda x: torch.softmax(x, -1), lambda x: torch.softmax(x, 0), "dim: golden -1, target 0"),
        (lambda x: x[:, 1:].sin(), lambda x: x[:, 2:].sin(), "start: golden 1, target 2"),
    ],
)
def test_lists_and_numbers_in_the_code_are_told_as_they_are(
    golden: Function, target: Function, told: str, tmp_path: Path
) -> None:
    report = both(tmp_path, golden, target, X)
    assert told in {pair.detail for pair in report.pairs if pair.verdict == "written differently"}
    assert [origin.literal for origin in report.origins if origin.literal is not None] == [told]
    assert f" {told}\n" in report.to_text()


def test_a_literal_is_told_once_for_all_calls(tmp_path: Path) -> None:
    def norm(epsilon: float) -> Function:
        return lambda x: torch.nn.functional.layer_norm(x, (6,), eps=epsilon)

    for side, epsilon in (("golden", 1e-5), ("target", 1e-3)):
        torch.compiler.reset()
        program = torch.compile(norm(epsilon), backend=dumping(tmp_path / side))
        for _ in range(3):
            program(X)
    text = fxtap.compare(tmp_path / "golden", tmp_path / "target").to_text()
    assert "          native_layer_norm eps: golden 1e-05, target 0.001, in 3 calls\n" in text


@pytest.mark.parametrize("n_golden", [1, 2])
def test_iterations_that_one_side_ran_more_are_missing(n_golden: int, tmp_path: Path) -> None:
    def model(cut: bool) -> Function:
        def forward(x: torch.Tensor) -> torch.Tensor:
            y = torch.sin(x) * 2
            if cut:
                torch._dynamo.graph_break()
            return torch.tanh(y + 1)

        return forward

    for side, cut, n in (("golden", True, n_golden), ("target", False, 3)):
        torch.compiler.reset()
        program = torch.compile(model(cut), backend=dumping(tmp_path / side))
        for step in range(n):
            program(X + step)
    report = fxtap.compare(tmp_path / "golden", tmp_path / "target")
    assert report.verdict == "different" and report.counts["same"] > 0
    assert report.steps is not None and f"{n_golden} iteration" in report.steps and "3 in target" in report.steps
    told = {pair.target_step for pair in report.pairs if pair.verdict == "only in target"}
    assert told == set(range(n_golden, 3)) and not report.counts["different"]
    assert "Written differently" not in report.to_text()  # nor are the numbers in the code of what did not run


def test_names_that_do_not_exist_are_told(tmp_path: Path) -> None:
    report = both(tmp_path, lambda x: x.sin(), lambda x: x.sin() + 1, X, explain="sin")
    assert report.explanation is not None and "(graph " in report.explanation and ", step 0)" in report.explanation
    golden, target = tmp_path / "golden", tmp_path / "target"
    with pytest.raises(LookupError, match="no node is called 'nosuch'"):
        fxtap.compare(golden, target, explain="nosuch")
    with pytest.raises(LookupError, match="nosuch"):
        fxtap.compare(golden, target, step_of="nosuch*")
    assert fxtap.compare(golden, target, step_of="add").counts["same"] == 2  # one side has it
