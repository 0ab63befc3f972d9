"""The spread of a reference: how far it changes if the inputs change by a unit roundoff."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from fxtap.verification.arguments import Arguments, Saved, map_leaves
from fxtap.verification.operators import find_operator
from fxtap.verification.replay import Place, Replay

UNIT = 2.0**-12
RUNS = 400

generator = torch.Generator().manual_seed(11)


class Given(Saved):
    """A tensor that is not read from a file."""

    def __init__(self, tensor: Tensor) -> None:
        super().__init__("", str(tensor.dtype).removeprefix("torch."), None, lambda: pytest.fail("read"))
        self._tensor = tensor

    @property
    def in_file(self) -> Tensor:
        return self._tensor


class Perturbed(Replay):
    """Measures the spread of every operator by running it on changed inputs."""

    is_sum_of_products = False


def replay(kind: type[Replay], operator: str, *args: Any, **kwargs: Any) -> Replay:
    def given(value: Any) -> Any:
        return Given(value) if isinstance(value, Tensor) else value

    arguments = Arguments(map_leaves(list(args), given), map_leaves(kwargs, given))
    return kind(find_operator(f"torch.ops.aten.{operator}"), arguments, "seed")


def draw(*shape: int) -> Tensor:
    """Return numbers of both signs whose sizes differ: an element depends on few of its terms."""
    return torch.randn(shape, generator=generator).mul_(torch.randn(shape, generator=generator).exp_())


GEOMETRY = ([2, 1], [1, 1], [1, 2], False, [0, 0], 2)
TRANSPOSED = ([2, 2], [1, 0], [1, 1], True, [1, 1], 1)

CASES: dict[str, tuple[Any, ...]] = {
    "mm": ("mm.default", draw(5, 30), draw(30, 7)),
    "bmm": ("bmm.default", draw(3, 5, 8), draw(3, 8, 4)),
    "mv": ("mv.default", draw(9, 30), draw(30)),
    "dot": ("dot.default", draw(30), draw(30)),
    "addmm": ("addmm.default", 20 * draw(7), draw(5, 8), draw(8, 7)),
    "addmv": ("addmv.default", 9 * draw(5), draw(5, 8), draw(8)),
    "addbmm": ("addbmm.default", 9 * draw(5, 4), draw(3, 5, 8), draw(3, 8, 4)),
    "baddbmm": ("baddbmm.default", 9 * draw(3, 5, 4), draw(3, 5, 8), draw(3, 8, 4)),
    "linear": ("linear.default", draw(2, 3, 8), draw(5, 8), 20 * draw(5)),
    "linear without bias": ("linear.default", draw(2, 3, 8), draw(5, 8)),
    "in place": ("addmm_.default", 20 * draw(5, 7), draw(5, 8), draw(8, 7)),
    "convolution": ("convolution.default", draw(2, 4, 9, 8), draw(6, 2, 3, 3), 20 * draw(6), *GEOMETRY),
    "transposed": ("convolution.default", draw(2, 4, 5, 4), draw(4, 3, 3, 3), None, *TRANSPOSED),
    "backward": (
        "convolution_backward.default", draw(2, 6, 5, 6), draw(2, 4, 9, 8), draw(6, 2, 3, 3), [6], *GEOMETRY,
        [True, True, True],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_sums_of_products_by_their_squares(case: str) -> None:
    exact, perturbed = replay(Replay, *CASES[case]), replay(Perturbed, *CASES[case])
    assert exact.is_sum_of_products
    for place in exact.reference():
        expected = perturbed.spread(place, UNIT, RUNS)
        found = exact.spread(place, UNIT, 3)
        assert found.shape == expected.shape and found.dtype == torch.float64
        assert bool(((found - expected).abs() <= 6 / (2 * RUNS) ** 0.5 * expected).all())
        assert abs(float(found.square().mean().sqrt() / expected.square().mean().sqrt()) - 1) < 0.05
        assert torch.equal(found, exact.spread(place, UNIT, 15)), "asking leaves it as it is"


def test_spread_is_that_of_all_roundings_of_inputs() -> None:
    """By hand: c + a1 b1 + a2 b2 changes by u times the root of c^2 + 2 (a1 b1)^2 + 2 (a2 b2)^2."""
    a, b, c = torch.tensor([[1.0, 2.0]]), torch.tensor([[4.0], [1.0]]), torch.tensor([3.0])
    found = replay(Replay, "addmm.default", c, a, b)
    expected = UNIT * (9 + 2 * 16 + 2 * 4) ** 0.5
    assert float(found.spread(("OUTPUT", "0"), UNIT, 3)) == pytest.approx(expected, rel=1e-12)


def test_range_of_float32_is_no_limit() -> None:
    large, small = torch.full((1, 3), 3e38), torch.full((3, 1), 1e-45)
    for a, b in ((large, small), (large, large.T), (small.T, small)):
        found = replay(Replay, "mm.default", a, b)
        expected = UNIT * 6**0.5 * float(a[0, 0]) * float(b[0, 0])
        assert float(found.spread(("OUTPUT", "0"), UNIT, 3)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    "arguments",
    [
        ("mm.default", draw(5, 8).double(), draw(8, 5).double()),
        ("mm.default", draw(5, 8).to(torch.complex64), draw(8, 5).to(torch.complex64)),
        ("softmax.int", draw(5, 8), 1),
    ],
)
def test_other_operators_are_perturbed(arguments: tuple[Any, ...]) -> None:
    found = replay(Replay, *arguments)
    assert not found.is_sum_of_products
    assert torch.view_as_real(found.spread(("OUTPUT", "0"), UNIT, 3) + 0j).count_nonzero() > 0


def test_factors_that_are_literals_are_perturbed_too() -> None:
    given = ("addmm.default", draw(7), draw(5, 8), draw(8, 7))
    assert not replay(Replay, *given, beta=0.5, alpha=0.125).is_sum_of_products
    place: Place = ("OUTPUT", "0")
    plain = replay(Perturbed, *given).spread(place, UNIT, RUNS)
    scaled = replay(Replay, *given, beta=0.5, alpha=0.5).spread(place, UNIT, RUNS)
    assert float((scaled / plain).median()) > 0.55, "more than half: both literals are rounded"


def test_infinities_are_not_changed() -> None:
    """A mask of -inf leaves the other elements' spread as it is."""
    place: Place = ("OUTPUT", "0")
    scores = draw(3, 8)
    masked = torch.cat([scores, torch.full((3, 2), -torch.inf)], 1)
    found = replay(Replay, "softmax.int", masked, 1).spread(place, UNIT, 15)
    assert found.isfinite().all()
    plain = replay(Replay, "softmax.int", scores, 1).spread(place, UNIT, 15)
    assert 0.4 < float((found[:, :8] / plain).log().mean().exp()) < 2.5


def test_perturbation_is_fair_and_repeatable() -> None:
    """Each element changes by the unit, up as often as down, and equally with any number of threads."""
    place: Place = ("OUTPUT", "0")
    ones = torch.ones(100_003)
    assert torch.allclose(replay(Replay, "neg.default", ones).spread(place, UNIT, 3), UNIT * ones.double(), rtol=1e-9)
    total = replay(Replay, "sum.default", ones).spread(place, UNIT, 15)
    assert 0.5 < float(total) / (UNIT * 100_003**0.5) < 1.7
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(3 - min(threads, 2))
        assert torch.equal(total, replay(Replay, "sum.default", ones).spread(place, UNIT, 15))
    finally:
        torch.set_num_threads(threads)
