"""Calls of one graph pair by their weights; gradient sums and results pair by what they are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import fxtap
from dumps import dumping

Forward = Callable[["Blocks", Tensor], Tensor]


class Blocks(nn.Module):
    """Residual blocks of the same shape, and a norm that they share."""

    def __init__(self, count: int, forward: Forward) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 6)) for _ in range(count))
        self.norm = nn.LayerNorm(6)
        self._forward = forward

    def forward(self, x: Tensor) -> Tensor:
        return self._forward(self, x)


def in_turn(order: tuple[int, ...]) -> Forward:
    """Each block separately on the same input, so that the order has no effect."""

    def forward(model: Blocks, x: Tensor) -> Tensor:
        results = {number: model.blocks[number](x) for number in order}
        return torch.stack([results[number] for number in sorted(results)])

    return forward


def chain(model: Blocks, x: Tensor) -> Tensor:
    for block in model.blocks:
        x = x + block(model.norm(x))
    return x


def dump_by_block(root: Path, forward: Forward, count: int, apart: bool, spoil: int | None = None) -> None:
    """Each block compiled separately: one graph that is called for each block or, with `apart`, one graph per block."""
    torch.compiler.reset()
    one = dumping(root)
    model = Blocks(count, forward)
    if spoil is not None:
        with torch.no_grad():
            model.blocks[spoil][0].weight[0, 0] += 1
    for number in range(count):
        model.blocks[number] = torch.compile(
            model.blocks[number], backend=dumping(root) if apart else one, dynamic=False
        )
    with torch.no_grad():
        model(torch.linspace(-1, 1, 12).reshape(2, 6))


def calls(report: fxtap.Report) -> list[tuple[int, int]]:
    """Return the target call that each golden call is compared with; -1: none."""
    return sorted((group["step"], group["target_step"]) for group in report.groups)


@pytest.mark.parametrize("apart", [False, True])
def test_calls_in_another_order_are_the_same(apart: bool, tmp_path: Path) -> None:
    dump_by_block(tmp_path / "golden", in_turn((0, 1, 2, 3)), 4, apart)
    dump_by_block(tmp_path / "target", in_turn((2, 0, 3, 1)), 4, apart)
    report = fxtap.compare(tmp_path / "golden", tmp_path / "target")
    assert report.verdict == "same" and not report.origins
    if not apart:
        assert calls(report) == [(0, 1), (1, 3), (2, 0), (3, 2)]


@pytest.mark.parametrize("apart", [False, True])
def test_a_call_more_shifts_no_other(apart: bool, tmp_path: Path) -> None:
    dump_by_block(tmp_path / "golden", in_turn((0, 1, 2, 3)), 4, apart)
    dump_by_block(tmp_path / "target", in_turn((0, 2, 3)), 4, apart)
    report = fxtap.compare(tmp_path / "golden", tmp_path / "target")
    assert not report.origins and not [pair for pair in report.pairs if pair.verdict == "different"]
    if not apart:
        assert calls(report) == [(0, 0), (1, -1), (2, 1), (3, 2)]


@pytest.mark.parametrize("apart", [False, True])
def test_a_weight_of_a_call_is_named(apart: bool, tmp_path: Path) -> None:
    dump_by_block(tmp_path / "golden", in_turn((0, 1, 2)), 3, apart)
    dump_by_block(tmp_path / "target", in_turn((0, 1, 2)), 3, apart, spoil=1)
    report = fxtap.compare(tmp_path / "golden", tmp_path / "target")
    (origin,) = report.origins
    assert origin.reason == "weight" and not origin.follows
    if not apart:
        assert (origin.pair.step, origin.pair.target_step) == (1, 1)


def halves(model: Blocks, compiled: Callable[..., Any]) -> Forward:
    """The same chain in two graphs, split at the third block."""

    def part(first: int, end: int) -> Callable[[Tensor], Tensor]:
        def run(x: Tensor) -> Tensor:
            for block in model.blocks[first:end]:
                x = x + block(model.norm(x))
            return x

        run.__name__ = f"part_{first}"
        return run

    parts = [compiled(part(0, 3)), compiled(part(3, 4))]
    return lambda _, x: parts[1](parts[0](x))


def train(root: Path, is_cut: bool) -> None:
    torch.compiler.reset()
    model = Blocks(4, chain)

    def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
        return torch.compile(function, backend=dumping(root), dynamic=False)

    run = halves(model, compiled) if is_cut else compiled(chain)
    run(model, torch.linspace(-1, 1, 12).reshape(2, 6)).square().sum().backward()


@pytest.mark.parametrize("is_golden_cut", [False, True])
def test_partial_sums_of_gradients_are_strangers(is_golden_cut: bool, tmp_path: Path) -> None:
    """Autograd sums a shared norm's gradients within each graph: another split gives other sums."""
    train(tmp_path / "golden", is_golden_cut)
    train(tmp_path / "target", not is_golden_cut)
    report = fxtap.compare(tmp_path / "golden", tmp_path / "target")
    assert report.verdict in ("same", "close")
    assert not report.origins and not report.differing


@pytest.mark.parametrize("last", [lambda x, y: x - y, lambda x, y: x + 2.5 * y, lambda x, _: x + x])
def test_a_wrong_last_operator_is_seen(last: Callable[[Tensor, Tensor], Tensor], tmp_path: Path) -> None:
    """Results are compared even if neither their operators nor their inputs agree."""

    def golden(x: Tensor) -> Tensor:
        return torch.sin(x) + torch.cos(x)

    def target(given: Tensor) -> Tensor:
        return last(given.sin(), given.cos())

    for side, function in (("golden", golden), ("target", target)):
        torch.compiler.reset()
        torch.compile(function, backend=dumping(tmp_path / side))(torch.linspace(-1, 1, 12))
    report = fxtap.compare(tmp_path / "golden", tmp_path / "target")
    assert report.verdict == "different"
    assert "add" in {origin.node for origin in report.origins}


def test_one_batch_is_not_two(tmp_path: Path) -> None:
    """A result of two inputs together is not a counterpart of either input's result."""
    model = Blocks(2, chain)
    x = torch.linspace(-1, 1, 12).reshape(2, 6)

    def apart(a: Tensor, b: Tensor) -> Tensor:
        return chain(model, a) * chain(model, b)

    def together(a: Tensor, b: Tensor) -> Tensor:
        left, right = chain(model, torch.cat([a, b])).chunk(2)
        return left * right

    for side, function in (("golden", apart), ("target", together)):
        torch.compiler.reset()
        with torch.no_grad():
            torch.compile(function, backend=dumping(tmp_path / side))(x, x.flip(0).cos())
    report = fxtap.compare(tmp_path / "golden", tmp_path / "target")
    assert report.verdict in ("same", "close") and not report.origins
