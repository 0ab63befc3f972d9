"""The whole chain in float64: how far the tensors of two dumps are from the exact value."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .against import Counterparts, Key
from .arguments import DTYPES, Saved
from .calls import Call
from .operators import NotReplayedError
from .random_checks import is_random
from .replay import Place, Replay, Results, is_floating

__all__ = ["UNKNOWN", "Distances", "measure_distances"]


class Distances(NamedTuple):
    """Relative L2 distances of a result from the exact value.

    Attributes
    ----------
    golden, target
        Of the two dumps.
    expected
        Of a run in float64 whose every result is rounded to target's dtype: what rounding explains.
    """

    golden: float
    target: float
    expected: float


UNKNOWN = Distances(math.nan, math.nan, math.nan)


def _distance(value: Tensor, exact: Tensor) -> float:
    """Return |value - exact| / |exact| over the finite elements; NaN if the shapes differ."""
    if value.shape != exact.shape:
        return math.nan
    finite = value.isfinite() & exact.isfinite()
    error = float(torch.linalg.vector_norm(torch.where(finite, value.to(exact.dtype) - exact, 0)))
    size = float(torch.linalg.vector_norm(torch.where(finite, exact, 0)))
    return error / size if size > 0 else error


class _Chain:
    """A run of golden's calls, in which each takes the results of those before it.

    What a value is made of is known by its hash: an argument that has the bits of an earlier result is that result. An
    argument that no call made, and a result that cannot be computed again, keep their dumped values; with `dtypes`, as
    target would round them.
    """

    def __init__(self, last_uses: Mapping[str, int], dtypes: _Dtypes | None = None) -> None:
        self._last_uses = last_uses
        self._dtypes = dtypes
        self._values: dict[str, Tensor] = {}

    def run(self, call: Call, replay: Replay) -> Results:
        """Return the results of a call.

        Raises
        ------
        NotReplayedError
            The operator raised.
        """

        def load(saved: Saved, fresh: bool) -> Tensor:
            value = self._values.get(_hash(call, ("INPUT", saved.position)))
            if value is None or value.shape != saved.in_file.shape:
                value = saved.double(fresh)
                return value if self._dtypes is None else self._dtypes.rounded_input(call, saved, value)
            return value.clone() if fresh else value

        return replay.run_on(load)

    def keep(self, number: int, digest: str, value: Tensor) -> None:
        """Keep a result of the call of this number for calls that follow."""
        if self._last_uses.get(digest, -1) > number:
            self._values[digest] = value

    def drop(self, number: int, digests: Sequence[str]) -> None:
        """Free the values that no later call takes."""
        for digest in digests:
            if self._last_uses[digest] <= number:
                self._values.pop(digest, None)


def _hash(call: Call, place: Place) -> str:
    row = call.slots.rows.get(place)
    return "" if row is None else str(call.slots.field(row, "hash") or "")


def _input_hashes(call: Call) -> list[str]:
    return [_hash(call, place) for place in call.slots.rows if place[0] == "INPUT"]


def _last_uses(calls: Sequence[Call]) -> dict[str, int]:
    """Return the number of the last call that takes each value, by its hash."""
    return {digest: number for number, call in enumerate(calls) for digest in _input_hashes(call)}


def _prepare(call: Call) -> Replay:
    operator = call.operator()
    arguments = call.arguments()
    if operator.is_native or is_random(operator, arguments):
        raise NotReplayedError("random, or of a meaning that depends on the dtype")
    return Replay(operator, arguments, "")


def _rounded(value: Tensor, dtype: torch.dtype) -> Tensor:
    return value.to(dtype).to(value.dtype)


class _Dtypes:
    """Target's dtype for each of golden's results."""

    def __init__(self, counterparts: Counterparts) -> None:
        self._counterparts = counterparts
        self._seen: dict[str, Counter[str]] = {}

    def of(self, golden: str, target: Saved | None) -> torch.dtype:
        """Return the dtype of the counterpart; without one, the usual one for golden's dtype."""
        if target is not None:
            self._seen.setdefault(golden, Counter())[target.name] += 1
            return target.dtype
        usual = self._seen.get(golden)
        return DTYPES.get(usual.most_common(1)[0][0] if usual else golden, torch.float64)

    def rounded_input(self, call: Call, saved: Saved, value: Tensor) -> Tensor:
        """Round an input of golden's graph as target's is."""
        name = self._counterparts.target_dtype(Key(*call.key, "INPUT", saved.position)) or saved.name
        dtype = DTYPES.get(name, torch.float64)
        return _rounded(value, dtype) if is_floating(value.dtype) and dtype.is_floating_point else value


def measure_distances(golden: Sequence[Call], counterparts: Counterparts) -> dict[Key, Distances]:
    """
    Run golden's calls in float64 from the inputs of its graphs; measure both dumps' results against that.

    Parameters
    ----------
    golden
        Golden's calls in order of execution.
    counterparts
        The pairs of golden's and target's tensors.

    Returns
    -------
    dict
        By target's tensor. Values are freed after their last use.
    """
    last_uses = _last_uses(golden)
    dtypes = _Dtypes(counterparts)
    exact, rounded = _Chain(last_uses), _Chain(last_uses, dtypes)
    found: dict[Key, Distances] = {}
    for number, call in enumerate(golden):
        try:
            replay = _prepare(call)
            results = exact.run(call, replay), rounded.run(call, replay)
        except NotReplayedError:
            continue
        for row in call.results:
            place = call.slots.place(row)
            values: list[Any] = [result.get(place) for result in results]
            if all(isinstance(value, Tensor) and is_floating(value.dtype) for value in values):
                found.update(_measure(call, row, values, counterparts, dtypes))
                exact.keep(number, _hash(call, place), values[0])
                rounded.keep(number, _hash(call, place), values[1])
        exact.drop(number, _input_hashes(call))
        rounded.drop(number, _input_hashes(call))
    return found


def _measure(
    call: Call, row: int, values: list[Any], counterparts: Counterparts, dtypes: _Dtypes
) -> dict[Key, Distances]:
    """Round values[1] to target's dtype; return the distances from values[0] of each counterpart of a result."""
    targets = counterparts.results_of(Key(*call.key, *call.slots.place(row)))
    saved = next(iter(targets.values()), None)
    try:
        dtype = dtypes.of(call.slots.field(row, "dtype") or "", saved)
        values[1] = _rounded(values[1], dtype) if is_floating(dtype) else values[1]
        expected = _distance(values[1], values[0])
        own = _distance(call.saved(row).double(), values[0])
        return {key: Distances(own, _distance(value.double(), values[0]), expected) for key, value in targets.items()}
    except NotReplayedError:
        return {}
