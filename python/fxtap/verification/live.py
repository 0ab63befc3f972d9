"""Verification while the model runs: each operator call is judged from its tensors in memory.

The judgement is that of a dump (`Judge`): only the source of the values is another one. It must leave no trace in the
model: it runs without autograd, autocast and modes, draws none of its random numbers, and an exception in it is a
reason not to replay.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
import zlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx import GraphModule

from .. import _core
from .arguments import Record, Slots, map_leaves
from .calls import Call
from .judging import Judge, Limits
from .report import Verification
from .run import default_max_bytes

__all__ = ["Live", "Verifier"]

logger = logging.getLogger("fxtap")

SEVERITY = {name: i for i, name in enumerate(("not replayed", "exact", "rounding", "biased", "wrong"))}

_COLUMNS = ("io", "position", "skipped", "path", "layout", "dtype", "shape", "strides")

_AS_IN_FILES = {torch.complex32: torch.complex64, torch.bfloat16: torch.float32}

_lock = threading.RLock()
"""Held while a call is judged: replaying changes settings of torch that the whole process shares."""


class Values:
    """The tensors of one operator call in memory, with the fields that they would have in a dump."""

    def __init__(self) -> None:
        self._columns: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
        self._tensors: list[Tensor | None] = []

    def slots(self) -> Slots:
        """Return them as the slots of a call."""
        return Slots(self._load, self._columns, range(len(self._tensors)))

    def add(self, io: str, position: str, value: Any) -> None:
        """Add a value as a dump saves it: lists by element, but those of numbers as one array."""
        items = value if isinstance(value, (list, tuple)) else [value]
        if isinstance(value, Tensor):
            self._add_tensor(io, position, value)
        elif all(isinstance(item, (bool, int, float, complex)) for item in items):
            is_wide = not items or any(isinstance(item, float) for item in items)
            self._add_tensor(io, position, torch.tensor(value, dtype=torch.float64 if is_wide else None))
        elif items is value:
            for i, item in enumerate(items):
                self.add(io, f"{position}.{i}", item)
        else:
            self._append(None, io=io, position=position, skipped=str(value))

    def _add_tensor(self, io: str, position: str, tensor: Tensor) -> None:
        reason = _unreadable(tensor)
        if reason is not None:
            self._append(None, io=io, position=position, skipped=reason)
            return
        self._append(
            tensor, io=io, position=position, path="", layout=str(tensor.layout), shape=tuple(tensor.shape),
            dtype=str(tensor.dtype).removeprefix("torch."),
            strides=tensor.stride() if tensor.layout is torch.strided else None,
        )  # fmt: skip

    def _append(self, tensor: Tensor | None, **fields: Any) -> None:
        self._tensors.append(tensor)
        for name in _COLUMNS:
            self._columns[name].append(fields.get(name))

    def _load(self, row: int) -> Tensor:
        tensor = self._tensors[row]
        assert tensor is not None  # `Slots.saved` has looked
        return _as_in_file(tensor)


def _unreadable(tensor: Tensor) -> str | None:
    """Return why a tensor has no values, in a dump's words."""
    if isinstance(tensor, FakeTensor):
        return "fake tensor"
    if type(tensor).__torch_dispatch__ is not torch._C._disabled_torch_dispatch_impl:
        return f"tensor subclass {type(tensor).__qualname__}"
    if tensor.is_nested or tensor.is_meta:
        return "nested tensor" if tensor.is_nested else "meta tensor"
    return None


def _as_in_file(tensor: Tensor) -> Tensor:
    """Return a tensor as a dump saves it: on the host, in a dtype of NumPy, in row-major or column-major order."""
    plain = tensor.detach().to("cpu")
    plain = (plain.dequantize() if plain.is_quantized else plain).resolve_conj().resolve_neg()
    if plain._is_zerotensor():
        plain = plain.clone()
    if plain.dtype in _AS_IN_FILES or (plain.is_floating_point() and plain.element_size() == 1):
        plain = plain.to(_AS_IN_FILES.get(plain.dtype, torch.float32))
    is_column_major = plain.permute(tuple(reversed(range(plain.ndim)))).is_contiguous()
    return plain if is_column_major else plain.contiguous()


def _copy(value: Any) -> Any:
    """Return a tensor in memory of its own, with the same strides; other values as they are."""
    if not isinstance(value, Tensor):
        return value
    if value.layout is not torch.strided or value.is_quantized:
        return value.clone()
    core = value
    for dim, (size, stride) in enumerate(zip(value.shape, value.stride(), strict=True)):
        if size > 1 and stride == 0:
            core = core.narrow(dim, 0, 1)
    try:
        memory = torch.empty_strided(core.shape, core.stride(), dtype=core.dtype, device=core.device)
        return memory.copy_(core).expand(value.shape)
    except RuntimeError:  # elements overlap
        return value.clone()


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Run code as `verify` runs it, and leave torch's random numbers as they were. The caller disables autograd."""
    drawn = torch.get_rng_state()
    try:
        with torch.inference_mode(False), torch.no_grad(), torch._C._DisableAutocast():
            yield
    finally:
        if not torch.equal(torch.get_rng_state(), drawn):
            torch.set_rng_state(drawn)


def _fault(row: dict[str, Any]) -> str:
    """Return in a few words what accuses an operator."""
    if row["reason"]:
        return str(row["reason"])
    if row["verdict"] == "biased" and row["misrounded"]:
        usual = "" if row["misrounded_usual"] is None else f", {100 * row['misrounded_usual']:.2g} % is usual"
        return f"{100 * row['misrounded']:.2g} % of its results are not the correctly rounded ones{usual}"
    is_large = (row["ratio"] or 0) >= 1
    times = row["ratio"] if is_large else row.get("max_ratio") or 0.0
    told = f"{times:,.0f}" if times >= 10 else f"{times:.2g}"
    return f"error {'' if is_large else 'of one element '}{told} times what rounding allows"


def _describe(row: dict[str, Any]) -> str:
    """Return one line about a wrong operator."""
    where = f"graph {row['graph']}, step {row['step']}, {row['slot']}"
    source = f"; {row['source']}: {row['code'] or ''}".rstrip(": ") if row["source"] else ""
    return f"{row['node']} ({row['target']}) is {row['verdict']} in {where}: {_fault(row)}{source}"


class Live:
    """What the verification of one dump has found so far: of each operator the worst call.

    Parameters
    ----------
    target
        The dump's root.
    rank
        This process's.
    """

    def __init__(self, target: str, rank: int) -> None:
        self.rank = rank
        self._target = target
        self._limits = Limits(default_max_bytes())
        self._begin()

    def _begin(self) -> None:
        self.has_run = False
        self._worst: dict[tuple[int, str], tuple[int, bytes]] = {}

    def after_fork(self) -> None:
        """Forget what the parent process found."""
        global _lock
        _lock = threading.RLock()
        self._begin()

    def judge(self, call: Call) -> bool:
        """Judge a call; return whether it is wrong or biased."""
        with _lock:
            try:
                with _undisturbed():
                    core = self._new()
                    verdicts = Judge(core, self._limits).check(call)
            except Exception as error:
                logger.debug("%s cannot be verified", call.node.name, exc_info=error)
                core = self._new()
                verdicts = Judge(core, self._limits).skip(call, f"raises {type(error).__name__}")
            severity = max((SEVERITY[verdict] for verdict, _ in verdicts), default=-1)
            self._keep(call, severity, core)
        return severity >= SEVERITY["biased"]

    def _new(self) -> _core.Verification:
        return _core.Verification(None, self._target)

    def _keep(self, call: Call, severity: int, core: _core.Verification) -> None:
        """Keep the results of a call that is worse than the operator's earlier ones; log the first wrong one."""
        key = (call.graph, call.node.name)
        before = self._worst[key][0] if key in self._worst else -1
        if severity > before:
            self._worst[key] = severity, core.serialise()
        if severity >= SEVERITY["biased"] > before:
            logger.warning("%s", _describe(core.wrong[0]))

    def shards(self) -> list[bytes]:
        """Return what was found, for `Verification.merge`."""
        return [self._new().serialise(), *(results for _, results in list(self._worst.values()))]

    def print_answer(self) -> None:
        """Print one line on standard error if a call of the model was to be verified."""
        if self.has_run:
            found = Verification.merge(self.shards())
            parts = [line.strip() for line in found.to_text(160, quiet=True).splitlines()]
            if found.wrong:
                parts.append(found.wrong[0]["source"] or "")
            rank = f"rank {self.rank}: " if self.rank > 0 else ""
            print(f"fxtap: {rank}{'  '.join(part for part in parts if part)}", file=sys.stderr)


class Verifier:
    """Judges the operator calls of one graph: what the run loop calls.

    Parameters
    ----------
    live
        Collects the results.
    gm, record
        The graph.
    graph
        Its number.
    every
        One of so many calls of each operator is judged.
    """

    def __init__(self, live: Live, gm: GraphModule, record: _core.Graph, graph: int, every: int) -> None:
        self._live = live
        self._core_record = record
        self._graph = graph
        self._every = every
        nodes = list(gm.graph.nodes)
        self._names = [node.name for node in nodes]
        self._written = [_written_arguments(node.target) for node in nodes]

    @cached_property
    def _record(self) -> Record:
        return Record(self._core_record)

    def _is_drawn(self, order: int, step: int) -> bool:
        """Return whether a call is judged: one in each `every` steps, at a place that is as good as random."""
        turn, place = divmod(step, self._every)
        return self._every == 1 or zlib.crc32(f"{self._names[order]} {turn}".encode()) % self._every == place

    def before(
        self, order: int, step: int, args: tuple[Any, ...], kwargs: dict[str, Any] | None, is_changed: bool
    ) -> tuple[tuple[Any, ...], dict[str, Any] | None] | None:
        """Return the arguments of a call that will be judged, as they are now; None if it will not be.

        Parameters
        ----------
        order
            The node's.
        is_changed
            Whether the operator may write to its arguments.
        """
        self._live.has_run = True
        if not self._is_drawn(order, step):
            return None
        try:
            return map_leaves((args, kwargs), _copy) if is_changed else (args, kwargs)
        except Exception as error:
            logger.debug("%s: its arguments cannot be copied", self._names[order], exc_info=error)
            return None

    def after(
        self, order: int, step: int, number: int, held: tuple[tuple[Any, ...], dict[str, Any] | None],
        args: tuple[Any, ...], kwargs: dict[str, Any] | None, result: Any,
    ) -> bool:  # fmt: skip
        """Judge a call that has returned; return whether it is to be dumped.

        Parameters
        ----------
        number
            That of the graph's call in the dump.
        held
            What `before` returned.
        """
        try:
            values = Values()
            for position, value in _positions(*held):
                values.add("INPUT", position, value)
            for position, value in _results(result):
                values.add("OUTPUT", position, value)
            for position, value in self._inouts(order, args, kwargs, result):
                values.add("INOUT", position, value)
            place = (self._live.rank, self._graph, step, number)
            return self._live.judge(Call(*place, self._record.nodes[order], self._record, values.slots()))
        except Exception as error:  # of its preparation; the model must run on
            logger.debug("%s cannot be verified", self._names[order], exc_info=error)
            return False

    def _inouts(
        self, order: int, args: tuple[Any, ...], kwargs: dict[str, Any] | None, result: Any
    ) -> Iterator[tuple[str, Any]]:
        """Return position and value of the arguments that a call has changed and not returned."""
        returned = list(result) if isinstance(result, (list, tuple)) else [result]
        for i, name in self._written[order]:
            position, value = (str(i), args[i]) if i < len(args) else (name, (kwargs or {}).get(name))
            if value is not None and not any(value is other for other in returned):
                yield position, value


def _positions(args: Sequence[Any], kwargs: dict[str, Any] | None) -> Iterator[tuple[str, Any]]:
    for i, value in enumerate(args):
        yield str(i), value
    yield from (kwargs or {}).items()


def _results(result: Any) -> Iterator[tuple[str, Any]]:
    """Return position and value of what an operator returns."""
    if isinstance(result, (list, tuple)):
        for i, item in enumerate(result):
            yield str(i), item
    elif result is not None:
        yield "0", result


def _written_arguments(target: Any) -> list[tuple[int, str]]:
    """Return index and name of the arguments that an operator's schema says it writes to."""
    arguments = target._schema.arguments if isinstance(target, torch._ops.OpOverload) else []
    return [(i, a.name) for i, a in enumerate(arguments) if a.alias_info is not None and a.alias_info.is_write]
