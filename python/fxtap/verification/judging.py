"""Judging one operator call: which runs it needs, and how their results reach the judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .. import _core
from ..devices import BITS
from .against import Counterparts, Key, Region
from .arguments import Saved
from .calls import Call
from .exact import UNKNOWN, Distances
from .indices import count_wrong_indices
from .operators import NotReplayedError
from .random_checks import check_random, is_random
from .reductions import reduction_length
from .replay import Place, Replay, is_floating

__all__ = ["Judge", "Limits"]

SPREAD_RUNS, MORE_SPREAD_RUNS = 3, 15
"""Perturbed runs for a first estimate, and for one that may accuse."""

MIN_EQUAL_SHARE = 0.99
"""A kernel that gives this share of a result's elements is the one that made it."""

_UNITS = {
    torch.float64: 2.0**-53, torch.float32: 2.0**-24, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8,
    torch.float8_e4m3fn: 2.0**-4, torch.float8_e4m3fnuz: 2.0**-4, torch.float8_e5m2: 2.0**-3,
    torch.float8_e5m2fnuz: 2.0**-3, torch.complex128: 2.0**-53, torch.complex64: 2.0**-24, torch.complex32: 2.0**-11,
}  # fmt: skip
"""Unit roundoff."""

_UNWRITTEN: dict[str, tuple[Place, ...]] = {"_ctc_loss": (("OUTPUT", "1"),)}
"""Results of operators that leave some elements unwritten."""


@dataclass(frozen=True)
class Limits:
    """How much one operator call may take: bytes of its tensors in float64, and seconds of one run; None: no limit."""

    max_bytes: int | None = None
    time_limit: float | None = None


def _row_major(tensor: Tensor) -> Any:
    """Return a tensor's elements as a buffer in row-major order."""
    return tensor.detach().resolve_conj().resolve_neg().contiguous().numpy()


def _bits(tensor: Tensor) -> Tensor:
    plain = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    return plain.contiguous().view(BITS[plain.element_size()])


def _as_tensor(result: Any) -> Tensor:
    if isinstance(result, Tensor):
        return result
    if isinstance(result, (bool, int, float, complex)):
        return torch.tensor(result, dtype=torch.float64 if isinstance(result, float) else None)
    raise NotReplayedError("a result that is not a tensor")


def _made_by(saved: Saved, kernel: Tensor) -> bool:
    """Return whether a kernel gives the saved bits, but for those that depend on the number of threads."""
    values = saved.in_file
    if kernel.shape != values.shape or kernel.numel() == 0:
        return False
    return float((kernel.to(values.dtype) == values).double().mean()) >= MIN_EQUAL_SHARE


class Judge:
    """Judges operator calls, and adds a row for each result to a collection."""

    def __init__(
        self,
        collection: _core.Verification,
        limits: Limits,
        counterparts: Counterparts | None = None,
        distances: Mapping[Key, Distances] | None = None,
    ) -> None:
        self._collection = collection
        self._limits = limits
        self._counterparts = counterparts
        self._distances = distances or {}
        self._is_alone = False  # the last result was judged without golden's operator

    def skip(self, call: Call, reason: str) -> list[tuple[str, str]]:
        """Add a call that is not replayed."""
        return [self._add(call, row, "not replayed", reason) for row in call.results]

    def repeat(self, call: Call, verdicts: list[tuple[str, str]]) -> None:
        """Add a call whose values equal those of a call that was judged before."""
        for row, (verdict, reason) in zip(call.results, verdicts, strict=True):
            self._add(call, row, verdict, reason or "equal values as in an earlier call")

    def check(self, call: Call) -> list[tuple[str, str]]:
        """Replay a call and add its verdicts; return them with their reasons."""
        try:
            replay = self._prepare(call)
        except NotReplayedError as error:
            return self.skip(call, str(error))
        region = None if self._counterparts is None else self._counterparts.region(call)
        verdicts = []
        for row in call.results:
            try:
                verdict, reason = self._judge_against(call, row, replay, region)
            except NotReplayedError as error:
                verdict, reason = "not replayed", str(error)
            except (MemoryError, RuntimeError) as error:
                if isinstance(error, RuntimeError) and "memory" not in str(error):
                    raise
                verdict, reason = "not replayed", "out of memory"
            verdicts.append(self._add(call, row, verdict, reason))
        return verdicts

    def _add(self, call: Call, row: int, verdict: str, reason: str) -> tuple[str, str]:
        node, field = call.node, call.slots.field
        self._collection.add(
            call.rank, call.graph, call.step, node.name, str(node.fields["target"]),
            ".".join(call.slots.place(row)), node.source, node.module, field(row, "dtype") or "",
            field(row, "shape") or (), verdict, reason, call=call.number, order=node.order,
            distances=self._distances.get(Key(*call.key, *call.slots.place(row)), UNKNOWN),
            **self._passes_on(call, row),
        )  # fmt: skip
        return verdict, reason

    def _passes_on(self, call: Call, row: int) -> dict[str, Any]:
        """Return how a result stands to golden's."""
        all_pairs = self._counterparts
        if all_pairs is None:
            return {}
        inputs = [all_pairs.value(call, row) for row in call.inputs]
        return {"alone": self._is_alone, "value": all_pairs.value(call, row), "inputs": inputs}

    def _prepare(self, call: Call) -> Replay:
        operator = call.operator()
        limit = self._limits.max_bytes
        if limit is not None and call.slots.count_elements() * 8 > limit:
            raise NotReplayedError("larger than the size limit")
        arguments = call.arguments()
        return Replay(operator, arguments, f"{call.node.name} {call.step}")

    def _judge_against(self, call: Call, row: int, replay: Replay, region: Region | str | None) -> tuple[str, str]:
        """Return the verdict of one result by golden's operators, or by its own where golden has none for it."""
        self._is_alone = region is not None
        if region is None or is_random(replay.operator, replay.arguments):
            return self._judge(call, row, replay)
        if isinstance(region, str):
            verdict, reason = self._judge(call, row, replay)
            return verdict, reason or f"by itself: {region}"
        try:
            verdict, reason = self._judge(call, row, region)
        except NotReplayedError as error:
            verdict, reason = self._judge(call, row, replay)
            return verdict, reason or f"by itself: {error}"
        self._is_alone = False
        if verdict not in ("wrong", "biased"):
            return verdict, reason
        own, _ = self._judge(call, row, replay)
        self._judge(call, row, region)  # the numbers of the report are those against golden
        text = "its kernel is wrong, too" if own in ("wrong", "biased") else "its kernel is right"
        return verdict, "; ".join(part for part in (region.text, text) if part)

    def _judge(self, call: Call, row: int, replay: Replay) -> tuple[str, str]:
        """Return the verdict of one result, and its reason."""
        saved = call.saved(row)
        place = call.slots.place(row)
        operator = replay.operator
        if not isinstance(replay, Region) and is_random(operator, replay.arguments):  # a region draws none
            return check_random(call, row, replay)
        if (
            (operator.is_exact or operator.is_view)
            and not operator.is_native
            and not isinstance(replay, Region)
            and self._moves_right(saved, place, replay)
        ):
            return "exact", ""
        if not operator.is_unique:
            return self._judge_not_unique(saved, place, replay)
        if place in _UNWRITTEN.get(operator.name, ()):
            raise NotReplayedError("undefined memory")
        verdict = self._ask(saved, place, replay)
        if verdict in ("wrong", "biased") and operator.name == "as_strided" and not call.reads_own_memory():
            raise NotReplayedError("depends on memory that was not dumped")
        return verdict, ""

    def _moves_right(self, saved: Saved, place: Place, replay: Replay) -> bool:
        """Return whether an operator that moves elements gives the saved bits."""
        try:
            result = replay.in_file_dtypes().get(place)
        except NotReplayedError:
            return False  # perhaps in another dtype
        expected = saved.in_file
        if not isinstance(result, Tensor) or result.shape != expected.shape or result.dtype != expected.dtype:
            return False
        found, wanted = _bits(expected), _bits(result.resolve_conj().resolve_neg())
        name = str(found.dtype).removeprefix("torch.")
        buffers: Any = found.numpy(), wanted.numpy()  # Python 3.11 has no type for buffers
        return self._collection.judge(buffers[0], name, buffers[1]) == "exact"

    def _judge_not_unique(self, saved: Saved, place: Place, replay: Replay) -> tuple[str, str]:
        third = _as_tensor(replay.third().get(place))
        if torch.equal(saved.in_file, third.to(saved.in_file.dtype)):
            return "rounding", "as this machine's kernel; several results are right"
        raise NotReplayedError("several results are right")

    def _result(self, saved: Saved, place: Place, results: dict[Place, Any]) -> Tensor:
        if place not in results:
            raise NotReplayedError("it has no such result here")
        return _as_tensor(results[place])

    def _ask(self, saved: Saved, place: Place, replay: Replay) -> str:
        """Give the judge what it asks for, until it has a verdict."""
        reference = self._result(saved, place, replay.reference())
        floating = is_floating(saved.dtype)
        if is_floating(reference.dtype) != floating or reference.is_complex() != saved.dtype.is_complex:
            raise NotReplayedError("a result of another kind in float64")
        if reference.shape != saved.in_file.shape:
            if isinstance(replay, Region):
                raise NotReplayedError("golden's result has another shape")
            third = self._result(saved, place, replay.third())
            if third.shape == saved.in_file.shape:
                raise NotReplayedError("a result of another shape in float64")
            return "wrong"
        file_dtype = saved.in_file.dtype
        wide = (torch.complex128 if saved.dtype.is_complex else torch.float64) if floating else file_dtype
        known: dict[str, Any] = {
            "reduction": self._reduction(replay, reference),
            "pointwise": replay.operator.is_elementwise,
            "coarse_dtype": self._coarsest(saved, replay),
        }
        expected, values = _row_major(reference.to(wide)), _row_major(saved.in_file)
        has_other_kernel = True
        while True:
            answer = self._collection.judge(values, saved.name, expected, **known)
            if answer in ("third", "spread", "more spread"):
                self._check_time(replay)
                known |= self._supply(answer, saved, place, replay, reference) | {"continued": True}
            elif answer in ("wrong", "biased") and has_other_kernel and "third" in known:
                has_other_kernel = False
                other = replay.third_without_mkldnn().get(place)
                if not isinstance(other, Tensor) or not _made_by(saved, other):
                    return answer
                known["third"] = _row_major(other.to(file_dtype))
            else:
                return answer

    def _supply(self, need: str, saved: Saved, place: Place, replay: Replay, reference: Tensor) -> dict[str, Any]:
        """Return what the judge asks for: "third", "spread" or "more spread"."""
        if need == "third":
            try:
                third = self._result(saved, place, replay.third())
            except NotReplayedError:
                return {"no_third": True}
            if third.shape != reference.shape:
                raise NotReplayedError("a result of another shape here")
            found: dict[str, Any] = {"third": _row_major(third.to(saved.in_file.dtype))}
            wrong = None if is_floating(saved.dtype) else count_wrong_indices(replay, place, saved, reference)
            return found if wrong is None else found | {"wrong_indices": wrong}
        runs = SPREAD_RUNS if need == "spread" and not replay.is_sum_of_products else MORE_SPREAD_RUNS
        try:
            spread = replay.spread(place, _UNITS.get(saved.dtype, 2.0**-24), runs)
        except NotReplayedError:
            return {"no_spread": True}
        return {"spread": _row_major(spread), "spread_runs": runs}

    def _check_time(self, replay: Replay) -> None:
        limit = self._limits.time_limit
        if limit is not None and replay.seconds > limit:
            raise NotReplayedError("takes longer than the time limit")

    def _reduction(self, replay: Replay, reference: Tensor) -> int:
        tensors = [saved.in_file for saved in replay.arguments.tensors]
        if not replay.is_single:
            return max(1, max((tensor.numel() for tensor in tensors), default=1) // max(1, reference.numel()))
        return reduction_length(replay.operator, tensors, reference)

    def _coarsest(self, saved: Saved, replay: Replay) -> str:
        """Return the least precise dtype among floating arguments and result."""
        floats = [tensor for tensor in (*replay.arguments.tensors, saved) if tensor.dtype in _UNITS]
        return max(floats, key=lambda tensor: _UNITS[tensor.dtype], default=saved).name
