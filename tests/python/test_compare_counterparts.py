"""Which operator of one program is held against which of the other where neither values nor lines tell."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import fxtap
from graphs import Dumped, trace

Function = Callable[..., Any]


def both(tmp_path: Path, golden: Function, target: Function, *arguments: Any, **options: Any) -> fxtap.Report:
    """Compare the traced graphs of two functions. Each is given tensors, or two of them, golden's and target's."""
    for side, function in enumerate((golden, target)):
        given = [one[side] if isinstance(one, tuple) else one for one in arguments]
        program = Dumped(trace(function, *given), tmp_path / ("golden", "target")[side])
        program(*given)
        program.dump.close()
    return fxtap.compare(tmp_path / "golden", tmp_path / "target", **options)


def counterparts(report: fxtap.Report, operator: str) -> dict[str, str]:
    """The node of target's against which the result of each of golden's nodes was held."""
    return {
        pair.node: (pair.target_name or pair.name).partition("-")[0]
        for pair in report.pairs
        if pair.io == "OUTPUT" and pair.target == operator and pair.golden_path and pair.target_path
    }


def nth(name: str, i: int) -> str:
    return f"{name}_{i}" if i > 0 else name


def test_what_stands_far_back_among_many_inputs_pairs_by_its_place(tmp_path: Path) -> None:
    n = 80

    def golden(x: torch.Tensor, *weights: torch.Tensor) -> list[torch.Tensor]:
        return [(x * weight).sin() for weight in weights]

    def target(x: torch.Tensor, *weights: torch.Tensor) -> list[torch.Tensor]:
        y = x.cos()
        return [(y * weight).sin() for weight in reversed(weights)][::-1]

    torch.manual_seed(0)
    weights = [(torch.randn(8), torch.randn(8)) for _ in range(n)]
    report = both(tmp_path, golden, target, torch.randn(8), *weights)
    assert counterparts(report, "aten.mul.Tensor") == {nth("mul", i): nth("mul", n - 1 - i) for i in range(n)}


def test_parts_of_one_value_pair_by_their_index(tmp_path: Path) -> None:
    n = 12
    torch.manual_seed(0)
    weight = torch.randn(8, 8)

    def recurrent(x: torch.Tensor, order: list[int]) -> torch.Tensor:
        h = torch.zeros(4, 8)
        for t in order:
            h = torch.tanh(x[:, t] @ weight + h @ weight)
        return h

    def golden(x: torch.Tensor) -> torch.Tensor:
        return recurrent(x, list(range(n)))

    def target(x: torch.Tensor) -> torch.Tensor:
        return recurrent(x * 1.5, [0, *range(n)])

    report = both(tmp_path, golden, target, torch.randn(4, n, 8))
    indices = [p for p in report.pairs if p.target == "aten.select.int" and p.position == "2" and p.golden_path]
    assert len(indices) == n and {pair.verdict for pair in indices} == {"same"}


def test_many_parts_of_one_value_pair_by_their_index(tmp_path: Path) -> None:
    n = 20

    def golden(x: torch.Tensor) -> list[torch.Tensor]:
        return [x[i].sin() for i in range(n)]

    def target(x: torch.Tensor) -> list[torch.Tensor]:
        y = x * 1.5
        return [y[0].sin(), *[y[i].sin() for i in range(n)], y[0].sin()]

    torch.manual_seed(0)
    report = both(tmp_path, golden, target, torch.randn(n, 8))
    indices = [p for p in report.pairs if p.target == "aten.select.int" and p.position == "2" and p.golden_path]
    assert len(indices) == n and {pair.verdict for pair in indices} == {"same"}


def test_plain_files_pair_by_their_names_alone(tmp_path: Path) -> None:
    for side, names in (("golden", "abd"), ("target", "acd")):
        (tmp_path / side).mkdir()
        for name in names:
            np.save(tmp_path / side / f"{name}.npy", np.arange(6.0) + (name != "a"))
    report = fxtap.compare(tmp_path / "golden", tmp_path / "target")
    assert report.counts["same"] == 2 and report.verdict == "different"
    assert report.counts["only in golden"] == report.counts["only in target"] == 1
    assert {pair.name for pair in report.pairs if pair.verdict == "only in golden"} == {"b.npy"}
    (first,) = [pair for pair in report.pairs if pair.name == "a.npy"]
    assert (first.pairing, first.evidence, first.confidence) == ("exact", ["name"], 1.0)


def test_no_reason_is_made_up_for_plain_files(tmp_path: Path) -> None:
    for side in range(2):
        np.save(tmp_path / f"{side}.npy", np.arange(6.0) * (side + 1))
    text = fxtap.compare(tmp_path / "0.npy", tmp_path / "1.npy").to_text()
    assert "Origin  0.npy\n  error " in text


def test_an_operator_that_one_side_did_not_dump_is_not_between(tmp_path: Path) -> None:
    def golden(x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(torch.relu(x.sin()) + 0.5)

    def target(x: torch.Tensor) -> torch.Tensor:
        return torch.tanh((torch.relu(x.sin()) + 0.5) * 1.1)

    x = torch.linspace(-1, 1, 12)
    for side, function, left_out in (("golden", golden, "relu"), ("target", target, None)):
        graph = trace(function, x)
        skip = ["not wanted" if left_out is not None and node.name == left_out else None for node in graph.graph.nodes]
        program = Dumped(graph, tmp_path / side, skip=skip)
        program(x)
        program.dump.close()
    report = fxtap.compare(tmp_path / "golden", tmp_path / "target")
    assert report.origins and all("relu" not in (origin.between or "") for origin in report.origins)
    assert "mul" in (report.origins[0].between or "")
