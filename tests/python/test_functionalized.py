"""Mutable custom operators, which torch.compile wraps in auto_functionalized, are dumped like any other operator."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import fxtap
from dumps import graphs, load, run, stems

LIBRARY = torch.library.Library("fxtap_mutable", "FRAGMENT")


FAULT = [0.0]  # the operator's fault


@torch.library.custom_op("fxtap_mutable::scale", mutates_args={"out"})
def scale(out: Tensor, x: Tensor, factor: float = 2.0) -> None:
    """Write a multiple of x."""
    out.copy_(x * factor + FAULT[0])


@torch.library.custom_op("fxtap_mutable::both", mutates_args={"outs", "extra"})
def both(outs: list[Tensor], x: Tensor, extra: Tensor | None = None, *, step: int = 1) -> tuple[Tensor, Tensor]:
    """Write to a list and an optional tensor; return two tensors."""
    for i, out in enumerate(outs):
        out.copy_(x + i * step)
    if extra is not None:
        extra.add_(step)
    return x + 100, x + 200


@both.register_fake
def _(outs: list[Tensor], x: Tensor, extra: Tensor | None = None, *, step: int = 1) -> tuple[Tensor, Tensor]:
    return torch.empty_like(x), torch.empty_like(x)


@pytest.fixture(params=["v2", "v1"], autouse=True)
def form(request: pytest.FixtureRequest) -> Iterator[str]:
    """Select the form in which torch writes mutable operators to a graph."""
    with torch._inductor.config.patch(enable_auto_functionalized_v2=request.param == "v2"):
        yield request.param


def folder(root: Path) -> Path:
    (graph,) = graphs(root)
    return graph / "0"


def nodes_of(root: Path) -> dict[str, tuple[str, str | None]]:
    """Return name -> target and why it is not dumped."""
    with sqlite3.connect(next(root.glob("*/fxtap.db"))) as database:
        rows = database.execute("SELECT name, target, skipped FROM node").fetchall()
    return {name: (target, skipped) for name, target, skipped in rows}


def values(root: Path, stem: str) -> list[Any]:
    result: list[Any] = load(folder(root), stem).tolist()
    return result


def same_as_eager(root: Path, function: Callable[..., Any], *arguments: Any, **options: Any) -> None:
    copies = [a.clone() if isinstance(a, Tensor) else a for a in arguments]
    expected = function(*copies)
    given = [a.clone() if isinstance(a, Tensor) else a for a in arguments]
    result = run(root, function, *given, **options)
    assert torch.equal(torch.utils._pytree.tree_leaves(result)[0], torch.utils._pytree.tree_leaves(expected)[0])
    for got, want in zip(given, copies, strict=True):
        assert not isinstance(got, Tensor) or torch.equal(got, want)


def test_before_and_after_under_its_own_name(tmp_path: Path) -> None:
    def model(x: Tensor) -> Tensor:
        out = torch.zeros_like(x)
        torch.ops.fxtap_mutable.scale(out, x, 3.0)
        return out + 1

    same_as_eager(tmp_path, model, torch.arange(3.0), custom_ops=True)
    stem = "scale-fxtap_mutable.scale.default"
    assert [name for name in stems(folder(tmp_path)) if "fxtap_mutable" in name] == [
        f"{stem}.INOUT.0",
        f"{stem}.INPUT.0",
        f"{stem}.INPUT.1",
        f"{stem}.INPUT.2",
    ]
    assert values(tmp_path, f"{stem}.INPUT.0") == [0, 0, 0]
    assert values(tmp_path, f"{stem}.INPUT.1") == [0, 1, 2]
    assert values(tmp_path, f"{stem}.INOUT.0") == [0, 3, 6]
    assert load(folder(tmp_path), "add-aten.add.Tensor.INPUT.0").tolist() == [0, 3, 6]


def test_without_custom_ops_it_is_known_by_its_name(tmp_path: Path) -> None:
    def model(x: Tensor) -> Tensor:
        out = torch.zeros_like(x)
        torch.ops.fxtap_mutable.scale(out, x)
        return out + 1

    same_as_eager(tmp_path, model, torch.arange(3.0))
    assert nodes_of(tmp_path)["scale"] == ("fxtap_mutable.scale.default", "non aten target")
    assert not [name for name in stems(folder(tmp_path)) if "fxtap_mutable" in name or name.startswith("clone")]


def test_lists_optional_tensors_keywords_and_results(tmp_path: Path) -> None:
    def model(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        first, second = torch.zeros_like(x), torch.ones_like(x)
        a, b = torch.ops.fxtap_mutable.both([first, second], x, step=5)
        c, _ = torch.ops.fxtap_mutable.both([first], a, y)
        return first + second, b, c

    same_as_eager(tmp_path, model, torch.arange(3.0), torch.full((3,), 7.0), custom_ops=True)
    one, two = "both-fxtap_mutable.both.default", "both_1-fxtap_mutable.both.default"
    assert values(tmp_path, f"{one}.INPUT.0.1") == [1, 1, 1]
    assert values(tmp_path, f"{one}.INPUT.step") == 5
    assert values(tmp_path, f"{one}.INOUT.0.0") == [0, 1, 2]
    assert values(tmp_path, f"{one}.INOUT.0.1") == [5, 6, 7]
    assert values(tmp_path, f"{one}.OUTPUT.1") == [200, 201, 202]
    assert values(tmp_path, f"{two}.INPUT.0.0") == [0, 1, 2]
    assert values(tmp_path, f"{two}.INPUT.2") == [7, 7, 7]
    assert values(tmp_path, f"{two}.INOUT.0.0") == [100, 101, 102]
    assert values(tmp_path, f"{two}.INOUT.2") == [8, 8, 8]


@pytest.mark.parametrize(
    "view",
    [
        lambda out: out[1:3],
        lambda out: out[:, 1],
        lambda out: out.t()[0],
        lambda out: out.view(-1)[2:5],
        lambda out: out.view(12),
    ],
    ids=["slice", "column", "transposed", "flat", "alias"],
)
def test_views(view: Callable[[Tensor], Tensor], tmp_path: Path) -> None:
    def model(x: Tensor) -> Tensor:
        out = torch.zeros(4, 3)
        part = view(out)
        torch.ops.fxtap_mutable.scale(part, x.expand(part.shape))
        return out * 1

    same_as_eager(tmp_path, model, torch.ones(1), custom_ops=True)
    stem = "scale-fxtap_mutable.scale.default"
    shape = view(torch.zeros(4, 3)).shape
    before, after = load(folder(tmp_path), f"{stem}.INPUT.0"), load(folder(tmp_path), f"{stem}.INOUT.0")
    assert before.shape == after.shape == shape
    assert np.all(before == 0) and np.all(after == 2)


def test_an_input_of_the_graph(tmp_path: Path) -> None:
    def whole(out: Tensor, x: Tensor) -> Tensor:
        torch.ops.fxtap_mutable.scale(out, x)
        return out + 1

    def part(out: Tensor, x: Tensor) -> Tensor:
        torch.ops.fxtap_mutable.scale(out[1:], x)
        return out + 1

    same_as_eager(tmp_path / "part", part, torch.zeros(4), torch.ones(3), custom_ops=True)
    memory = torch.zeros(10)
    run(tmp_path / "offset", whole, memory[2:9:2], torch.ones(4), custom_ops=True)
    assert memory.tolist() == [0, 0, 2, 0, 2, 0, 2, 0, 2, 0]


def test_symbolic_shapes(tmp_path: Path) -> None:
    def model(x: Tensor) -> Tensor:
        out = torch.zeros_like(x)
        torch.ops.fxtap_mutable.scale(out[1:], x[1:])
        return out + x.shape[0]

    same_as_eager(tmp_path, model, torch.arange(5.0), custom_ops=True, dynamic=True)
    assert values(tmp_path, "scale-fxtap_mutable.scale.default.INOUT.0") == [2, 4, 6, 8]


def test_the_same_graph_with_and_without(tmp_path: Path) -> None:
    """The key of a graph does not depend on what is dumped."""

    def model(x: Tensor) -> Tensor:
        out = torch.zeros_like(x)
        torch.ops.fxtap_mutable.scale(out, x)
        return out + 1

    keys = []
    for name in ("with", "without"):
        torch._dynamo.reset()
        run(tmp_path / name, model, torch.arange(3.0), custom_ops=name == "with")
        with sqlite3.connect(next((tmp_path / name).glob("*/fxtap.db"))) as database:
            keys += database.execute("SELECT strict_key FROM graph").fetchall()
    assert len(keys) == 2 and keys[0] == keys[1]


@pytest.mark.skipif(not hasattr(torch.Tag, "out"), reason="torch has no tag for out= operators")
def test_an_operator_that_only_writes(form: str, tmp_path: Path) -> None:
    tags = (torch.Tag.out, torch.Tag.needs_exact_strides)
    LIBRARY.define(f"filled_{form}.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)", tags=tags)

    def fill(x: Tensor, *, out: Tensor) -> Tensor:
        return out.copy_(x * 5)

    LIBRARY.impl(f"filled_{form}.out", fill, "CompositeExplicitAutograd")
    torch.library.register_fake(f"fxtap_mutable::filled_{form}.out", lambda x, *, out: out, lib=LIBRARY)
    operator = getattr(torch.ops.fxtap_mutable, f"filled_{form}").out

    def model(x: Tensor) -> Tensor:
        out = torch.zeros_like(x)
        operator(x, out=out)
        return out + 1

    same_as_eager(tmp_path, model, torch.ones(3), custom_ops=True)
    (name,) = [name for name in stems(folder(tmp_path)) if name.endswith("OUTPUT.0") and "fxtap_mutable" in name]
    assert values(tmp_path, name) == [5, 5, 5]


@pytest.mark.parametrize("dumped", [True, False], ids=["dumped", "skipped"])
def test_a_comparison_names_the_one_that_went_wrong(dumped: bool, tmp_path: Path) -> None:
    """Readers of its in-place result find it as a producer; if it was not dumped, it is named all the same."""

    def model(x: Tensor) -> Tensor:
        hidden = torch.tanh(x)
        out = torch.empty_like(hidden)
        torch.ops.fxtap_mutable.scale(out, hidden)
        return out * 3

    for name, offset in (("good", 0.0), ("bad", 0.125)):
        torch._dynamo.reset()
        FAULT[0] = offset
        run(tmp_path / name, model, torch.ones(8), custom_ops=dumped)
    FAULT[0] = 0.0
    report = fxtap.compare(tmp_path / "good", tmp_path / "bad")
    (origin,) = report.origins
    if dumped:
        assert (origin.reason, origin.node, origin.target) == ("operator", "scale", "fxtap_mutable.scale.default")
    else:
        assert origin.reason == "before" and origin.between == "scale (fxtap_mutable.scale.default), not dumped"
        assert "test_functionalized.py" in origin.between_source
