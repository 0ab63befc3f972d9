"""Pairs of operators of two programs if neither values nor lines identify them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import fxtap
from graphs import Dumped, trace

PROGRAM = os.environ.get("FXTAP_PROGRAM") or shutil.which("fxtap") or "fxtap"

Function = Callable[..., Any]


def both(tmp_path: Path, golden: Function, target: Function, *arguments: Any, **options: Any) -> fxtap.Report:
    """Compare the traced graphs of two functions. An input is one tensor, or golden's and target's tensors."""
    for side, function in enumerate((golden, target)):
        given = [one[side] if isinstance(one, tuple) else one for one in arguments]
        program = Dumped(trace(function, *given), tmp_path / ("golden", "target")[side])
        program(*given)
        program.dump.close()
    return fxtap.compare(tmp_path / "golden", tmp_path / "target", **options)


def counterparts(report: fxtap.Report, operator: str) -> dict[str, str]:
    """Return the target node whose result was compared with that of each golden node."""
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
    for side, function, wanted in (("golden", golden, "sin tanh"), ("target", target, "sin relu tanh")):
        graph = trace(function, x)
        skip = [None if node.name in wanted.split() else "not wanted" for node in graph.graph.nodes]
        program = Dumped(graph, tmp_path / side, skip=skip)
        program(x)
        program.dump.close()
    report = fxtap.compare(tmp_path / "golden", tmp_path / "target")
    (origin,) = report.origins
    assert (origin.node, origin.reason) == ("tanh", "before")
    assert "relu" not in (origin.between or "") and "relu" not in (origin.between_code or "")


def program(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PROGRAM, "compare", *map(str, arguments)], capture_output=True, text=True, check=False)


def dump_steps(path: Path, function: Function, n: int) -> None:
    x = torch.linspace(0.1, 1, 12).reshape(3, 4)
    dumped = Dumped(trace(function, x), path)
    for _ in range(n):
        dumped(x)
    dumped.dump.close()


def test_steps_that_one_side_ran_more_are_named(tmp_path: Path) -> None:
    for side, n in (("golden", 2), ("target", 4)):
        dump_steps(tmp_path / side, lambda x: (x + 1).sin(), n)
    text = fxtap.compare(tmp_path / "golden", tmp_path / "target").to_text()
    assert "Only in target\n          all of steps 2, 3, which golden did not run\n" in text
    assert "Written differently" not in text
    text = fxtap.compare(tmp_path / "target", tmp_path / "golden").to_text()
    assert "Only in golden\n          all of steps 2, 3, which target did not run\n" in text


def test_what_there_is_in_place_of_a_wrong_number_is_told(tmp_path: Path) -> None:
    dump_steps(tmp_path / "a", torch.sin, 3)
    for option, told in (("step", "steps 0 to 2"), ("graph", "is graph "), ("rank", "is rank 0")):
        found = program("--" + option, 999_999, tmp_path / "a", tmp_path / "a")
        assert found.returncode == 2 and f"no tensors of {option} 999999: there " in found.stderr, found.stderr
        assert told in found.stderr


def test_a_report_that_cannot_be_written_is_found_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for path, words in (
        (tmp_path / "none" / "x.html", "No such file"),
        ("", "No such file"),
        (tmp_path / "folder", "Is a directory"),
    ):
        for force in ([], ["--force"]):
            found = program("--html", path, *force, tmp_path / "missing", tmp_path / "missing")
            assert found.returncode == 2 and found.stdout == ""
            assert found.stderr.startswith("fxtap: cannot write '") and words in found.stderr


def test_a_mismatch_is_told_once(tmp_path: Path) -> None:
    x = torch.linspace(0, 1, 12).reshape(3, 4)
    report = both(tmp_path, lambda x: x.sin().sum(0), lambda x: x.sin().sum(1), x)
    assert report.to_text().count("golden has shape [4], target [3]") == 1


def test_texts_that_differ_are_told_in_full(tmp_path: Path) -> None:
    for side, text in (("golden", "mode of operation " * 4), ("target", "another mode " * 4 + "the end")):
        np.save(tmp_path / f"{side}.npy", np.array(text))
    told = fxtap.compare(tmp_path / "golden.npy", tmp_path / "target.npy").to_text()
    assert 'another mode the end"' in " ".join(told.split())


def test_a_region_is_named_by_the_operator_of_the_side_that_has_one(tmp_path: Path) -> None:
    def one(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.silu(x.sin()).cos()

    def many(x: torch.Tensor) -> torch.Tensor:
        y = x.sin()
        return (y * torch.sigmoid(y)).cos()

    x = torch.linspace(-2, 2, 12)
    report = both(tmp_path, one, many, x)
    assert "silu: 1 operator against 2; results agree" in report.to_text()
    turned = fxtap.compare(tmp_path / "target", tmp_path / "golden")
    assert "silu: 2 operators against 1; results agree" in turned.to_text()
