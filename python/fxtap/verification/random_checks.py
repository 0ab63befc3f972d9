"""Operators that draw random numbers: what can be said of their results without the numbers that were drawn.

A mask has about the share of ones that was asked for; what dropout returns is its input times the mask times the scale;
values lie in their range, and their mean where the distribution puts it. Bounds are at 6 standard errors, which one in
10^9 right results exceeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from .arguments import Arguments, Saved
from .operators import NotReplayedError, Operator

if TYPE_CHECKING:
    from .calls import Call
    from .replay import Replay

__all__ = ["check_random", "is_random"]

Z = 6.0
"""Bound of a mean, in standard errors."""


def _named(operator: Operator, arguments: Arguments) -> dict[str, Any]:
    """Return the arguments by their names in the schema; None for those that are not given."""
    names = [name for name, _ in operator.arguments]
    return dict.fromkeys(names) | dict(zip(names, arguments.args, strict=False)) | arguments.kwargs


def is_random(operator: Operator, arguments: Arguments) -> bool:
    """Return whether a call draws random numbers: an operator that can does not in evaluation, or without dropout."""
    if not operator.is_random:
        return False
    given = _named(operator, arguments)
    if given.get("train", given.get("training")) is False:
        return False
    if "scaled_dot_product" in operator.name:
        return bool(given.get("dropout_p"))
    if operator.name in ("dropout", "alpha_dropout", "feature_dropout", "native_dropout"):
        return given.get("p") != 0
    return True


@dataclass
class Drawn:
    """One result of a random operator, and what is known of its call."""

    values: Tensor
    dtype: torch.dtype
    given: dict[str, Any]
    position: str
    others: dict[str, Saved] = field(default_factory=dict)  # the other results

    def number(self, name: str, default: float) -> float:
        """Return a number among the arguments; `NotReplayedError` if it is a tensor."""
        value = self.given.get(name)
        if isinstance(value, Saved):
            raise NotReplayedError("random")
        return default if value is None else float(value)

    def tensor(self, *names: str) -> Tensor | None:
        """Return the first of these arguments that is a tensor, in float64."""
        for name in names:
            value = self.given.get(name)
            if isinstance(value, Saved):
                return value.in_file.to(torch.float64)
        return None


def _mean_is_plausible(values: Tensor, mean: float | Tensor, variance: float | Tensor, rounding: float = 0.0) -> bool:
    n = values.numel()
    if n == 0:
        return True
    deviation = float((values.to(torch.float64) - mean).mean())
    total = float(torch.as_tensor(variance, dtype=torch.float64).mean()) / n
    return abs(deviation) <= Z * math.sqrt(total) + rounding + 1.0 / n


def _unit(dtype: torch.dtype) -> float:
    return torch.finfo(dtype).eps if dtype.is_floating_point else 0.0


def _uniform(drawn: Drawn) -> str:
    low, high = drawn.number("from", 0.0), drawn.number("to", 1.0)
    width, unit = high - low, _unit(drawn.dtype) * max(abs(low), abs(drawn.number("to", 1.0)))
    values = drawn.values.to(torch.float64)
    if values.numel() and not (float(values.min()) >= low - unit and float(values.max()) <= high + unit):
        return f"values outside {low:g} to {high:g}"
    return "" if _mean_is_plausible(values, (low + high) / 2, width * width / 12, unit) else "implausible mean"


def _normal(drawn: Drawn) -> str:
    mean, std = drawn.tensor("mean"), drawn.tensor("std")
    expected = drawn.number("mean", 0.0) if mean is None else mean
    deviation = drawn.number("std", 1.0) if std is None else std
    values = drawn.values.to(torch.float64)
    scaled = (values - expected) / torch.as_tensor(deviation, dtype=torch.float64).clamp_min(1e-300)
    if not bool(values.isfinite().all()):
        return "values that are not finite"
    if not _mean_is_plausible(scaled, 0.0, 1.0, _unit(drawn.dtype)):
        return "implausible mean"
    n = scaled.numel()
    is_spread = n < 2 or abs(float(scaled.square().mean()) - 1) <= Z * math.sqrt(2 / n) + 40 / n + _unit(drawn.dtype)
    return "" if is_spread else "implausible variance"


def _integers(drawn: Drawn) -> str:
    low = int(drawn.number("low", drawn.number("from", 0)))
    high = drawn.given.get("high", drawn.given.get("to"))
    if high is None:
        raise NotReplayedError("random")
    values = drawn.values.to(torch.float64)
    if values.numel() and not (float(values.min()) >= low and float(values.max()) < drawn.number("high", float(high))):
        return f"values outside {low} to {int(high) - 1}"
    width = int(high) - low
    middle, variance = (low + int(high) - 1) / 2, (width * width - 1) / 12
    return "" if _mean_is_plausible(values, middle, variance) else "implausible mean"


def _permutation(drawn: Drawn) -> str:
    n = drawn.values.numel()
    return "" if torch.equal(drawn.values.to(torch.int64).sort().values, torch.arange(n)) else "not a permutation"


def _bernoulli(drawn: Drawn) -> str:
    given = drawn.tensor("p" if "p" in drawn.given else "self")
    share = drawn.number("p", 0.5) if given is None else given
    return _check_mask(drawn.values, share)


def _check_mask(mask: Tensor, share: float | Tensor) -> str:
    ones = mask.to(torch.float64)
    if not bool(((ones == 0) | (ones == 1)).all()):
        return "values other than 0 and 1"
    probability = torch.as_tensor(share, dtype=torch.float64)
    return "" if _mean_is_plausible(ones, probability, probability * (1 - probability)) else "implausible share of ones"


def _dropout(drawn: Drawn) -> str:
    p = drawn.number("p", 0.5)
    if drawn.position == "1":
        return _check_mask(drawn.values, 1 - p)
    source, mask = drawn.tensor("input", "self"), drawn.others.get("1")
    if source is None:
        raise NotReplayedError("random")
    scale = 0.0 if p >= 1 else 1 / (1 - p)
    found = drawn.values.to(torch.float64)
    kept = found != 0 if mask is None else mask.in_file.to(torch.bool)
    expected = torch.where(kept, source * scale, 0)
    allowed = 4 * _unit(drawn.dtype) * expected.abs() + torch.finfo(drawn.dtype).smallest_normal
    is_right = ((found - expected).abs() <= allowed) | ((found == expected) | (found.isnan() & expected.isnan()))
    # a masked value may be multiplied by zero: what is not finite becomes NaN
    is_right |= ~kept & ~source.isfinite() & found.isnan()
    if not bool(is_right.all()):
        return f"{int((~is_right).sum())} values are not the input times mask and scale"
    return "" if mask is not None or not bool((source != 0).all()) else _check_mask(kept, 1 - p)


def _check_mean(drawn: Drawn, lowest: float, mean: float | Tensor, variance: float | Tensor, *, whole: bool) -> str:
    values = drawn.values.to(torch.float64)
    if not bool(((values >= lowest) & values.isfinite()).all()):
        return f"values below {lowest:g}, or not finite"
    if whole and not torch.equal(values, values.round()):
        return "values that are not whole"
    is_plausible = _mean_is_plausible(values, mean, variance, _unit(drawn.dtype) * float(values.abs().mean()))
    return "" if values.numel() == 0 or is_plausible else "implausible mean"


def _exponential(drawn: Drawn) -> str:
    mean = 1 / drawn.number("lambd", 1.0)
    return _check_mean(drawn, 0, mean, mean * mean, whole=False)


def _geometric(drawn: Drawn) -> str:
    p = drawn.number("p", 0.5)
    return _check_mean(drawn, 1, 1 / p, (1 - p) / p**2, whole=True)


def _poisson(drawn: Drawn) -> str:
    rate = drawn.tensor("self")
    if rate is None:
        raise NotReplayedError("random")
    return _check_mean(drawn, 0, rate, rate, whole=True)


def _log_normal(drawn: Drawn) -> str:
    if not bool((drawn.values >= 0).all()):
        return "values below 0"
    given = {"mean": 1.0, "std": 2.0} | {name: value for name, value in drawn.given.items() if value is not None}
    return _normal(replace(drawn, values=drawn.values.to(torch.float64).log(), given=given))


def _multinomial(drawn: Drawn) -> str:
    weights, index = drawn.tensor("self"), drawn.values.to(torch.int64)
    if weights is None:
        raise NotReplayedError("random")
    if index.numel() and not (int(index.min()) >= 0 and int(index.max()) < weights.shape[-1]):
        return f"values outside 0 to {weights.shape[-1] - 1}"
    if not bool((weights.gather(-1, index) > 0).all()):
        return "values of weight 0"
    ordered = index.sort(-1).values
    repeats = bool((ordered[..., 1:] == ordered[..., :-1]).any())
    return "values drawn twice" if repeats and not drawn.given.get("replacement") else ""


_CHECKS: dict[str, Callable[[Drawn], str]] = {
    "native_dropout": _dropout, "dropout": _dropout, "bernoulli": _bernoulli, "rand": _uniform, "rand_like": _uniform,
    "uniform": _uniform, "randn": _normal, "randn_like": _normal, "normal": _normal, "normal_functional": _normal,
    "randint": _integers, "randint_like": _integers, "randperm": _permutation,
    "exponential": _exponential, "geometric": _geometric, "poisson": _poisson, "log_normal": _log_normal,
    "multinomial": _multinomial,
}  # fmt: skip


def check_random(call: Call, row: int, replay: Replay) -> tuple[str, str]:
    """Return the verdict of one result, and its reason.

    Raises
    ------
    NotReplayedError
        Nothing can be checked.
    """
    check = _CHECKS.get(replay.operator.name)
    saved = call.saved(row)
    if check is None or saved.dtype.is_complex:
        raise NotReplayedError("random")
    others = {call.slots.field(other, "position"): call.saved(other) for other in call.results if other != row}
    given = _named(replay.operator, replay.arguments)
    fault = check(Drawn(saved.in_file, saved.dtype, given, saved.position, others))
    return ("wrong", fault) if fault else ("rounding", "random; its distribution is plausible")
