"""`fxtap.verify`: every operator call of a dump again, from its own inputs, in float64."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import torch

from .. import _core
from ..paths import expand
from ..reading import DumpReader, open_dump
from .against import Counterparts, Key
from .arguments import quiet_read_only_buffers
from .calls import Call, Selection, find_calls
from .exact import Distances, measure_distances
from .judging import Judge, Limits
from .report import Verification

__all__ = ["Comparison", "Sides", "compare_sides", "verify", "verify_sides"]

Dump = str | os.PathLike[str] | DumpReader


def _open(dump: Dump, run: int) -> DumpReader:
    return dump if isinstance(dump, DumpReader) else open_dump(expand(dump), run=run)


@contextlib.contextmanager
def _threads(number: int) -> Iterator[None]:
    before = torch.get_num_threads()
    if number > 0:
        torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def default_max_bytes() -> int:
    """Return a quarter of the machine's memory, not of what is free: a report must not depend on the moment."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4


class Sharing:
    """Which calls this process judges: calls with equal values belong to one shard, so that one is replayed."""

    def __init__(self, shard: tuple[int, int] | None, by_values: bool = True) -> None:
        self._by_values = by_values
        self._shard = shard or (0, 1)
        self._known: dict[Hashable, int] = {}
        self._next = 0

    def place(self, call: Call) -> tuple[bool, Hashable]:
        """Return whether a call is in the shard, and its identity if equal calls came before or may follow."""
        identity = call.identity if self._by_values else None
        number = None if identity is None else self._known.get(hash(identity))
        if number is None:
            number, self._next = self._next, self._next + 1
            if identity is not None:
                self._known[hash(identity)] = number
        return number % self._shard[1] == self._shard[0], number


def _run(calls: list[Call], judge: Judge, sharing: Sharing, progress: Callable[[int, int], object] | None) -> None:
    verdicts: dict[Hashable, list[tuple[str, str]]] = {}
    is_stopped = False
    for done, call in enumerate(calls):
        is_mine, identity = sharing.place(call)
        if is_mine:
            if is_stopped:
                judge.skip(call, "interrupted")
            elif identity in verdicts:
                judge.repeat(call, verdicts[identity])
            else:
                verdicts[identity] = judge.check(call)
        if progress is not None and not is_stopped:
            is_stopped = progress(done + 1, len(calls)) is False


@dataclass(frozen=True)
class Sides:
    """The dumps of a verification.

    `graph_from`, else golden, gives literals and wiring to a target without an index.
    """

    target: DumpReader
    golden: DumpReader | None = None
    graph_from: DumpReader | None = None

    @classmethod
    def open(cls, target: Dump, golden: Dump | None, graph_from: Dump | None, run: int, golden_run: int = 0) -> Self:
        """Open the dumps that are not open yet, at their runs; 0: the latest."""
        return cls(
            _open(target, run),
            None if golden is None else _open(golden, golden_run),
            None if graph_from is None else _open(graph_from, 0),
        )

    def calls(self, selection: Selection) -> Iterator[Call]:
        """Return target's calls."""
        return find_calls(self.target, selection, self.graph_from or self.golden)


@dataclass(frozen=True)
class Comparison:
    """What a verification against golden needs before the first call; it can be pickled for another process.

    Attributes
    ----------
    report
        The comparison of golden with target.
    rank
        Target's only rank that it is about, or -1.
    distances
        From the exact values, if they were asked for.
    """

    report: _core.Report
    rank: int = -1
    distances: Mapping[Key, Distances] = field(default_factory=dict)

    def counterparts(self, sides: Sides, calls: list[Call] | None = None) -> Counterparts:
        """Return the pairs; `calls` are all of target's, if they are known."""
        assert sides.golden is not None
        return Counterparts(sides.golden, self.report, calls or sides.calls(Selection(rank=self.rank)))

    def __reduce__(self) -> tuple[Any, ...]:
        return _from_bytes, (self.report.serialise(), self.rank, self.distances)


def _from_bytes(report: bytes, rank: int, distances: Mapping[Key, Distances]) -> Comparison:
    return Comparison(_core.merge_reports([report]), rank, distances)


def compare_sides(sides: Sides, *, exact: bool, threads: int) -> Comparison | None:
    """Compare the sides; None without a golden."""
    golden, target = sides.golden, sides.target
    if golden is None:
        if exact:
            raise ValueError("exact needs a golden dump: pass against")
        return None
    comparison = Comparison(_core.compare(golden.path, target.path, run=(golden._run, target._run)))
    if not exact:
        return comparison
    counterparts = comparison.counterparts(sides)
    quiet_read_only_buffers()
    with torch.no_grad(), _threads(threads):
        distances = measure_distances(list(counterparts.golden_calls.values()), counterparts)
    return replace(comparison, distances=distances)


def verify_sides(
    sides: Sides,
    selection: Selection,
    comparison: Comparison | None,
    *,
    max_bytes: int | None = None,
    time_limit: float | None = None,
    threads: int = 0,
    shard: tuple[int, int] | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Verification:
    """Verify the selected calls; `verify` describes the parameters."""
    limits = Limits(default_max_bytes() if max_bytes is None else max_bytes, time_limit)
    calls = list(sides.calls(selection))
    counterparts = None
    distances: Mapping[Key, Distances] = {}
    if comparison is not None:
        counterparts = comparison.counterparts(sides, calls if selection == Selection() else None)
        distances = comparison.distances
    core = _core.Verification(None if sides.golden is None else sides.golden.path, sides.target.path)
    quiet_read_only_buffers()
    with torch.no_grad(), _threads(threads):
        _run(calls, Judge(core, limits, counterparts, distances), Sharing(shard, counterparts is None), progress)
    return Verification(core)


def verify(
    target: Dump,
    *,
    against: Dump | None = None,
    exact: bool = False,
    graph_from: Dump | None = None,
    run: int = 0,
    rank: int | None = None,
    graph: int | None = None,
    step: int | None = None,
    op: str | None = None,
    max_bytes: int | None = None,
    time_limit: float | None = None,
    threads: int = 0,
    shard: tuple[int, int] | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Verification:
    """
    Verify a dump: run every dumped operator call again, in float64 on its own saved inputs, and judge its results.

    Parameters
    ----------
    target
        A dump, or the result of `fxtap.open`.
    against
        A reference dump of the same model: golden's operators, with golden's literals, run on target's inputs. By
        default target's own operators.
    exact
        Also run golden's graph in float64 from its dumped inputs, and measure both dumps' results against that. Values
        are freed after their last use. Every shard runs the whole chain.
    graph_from
        An indexed dump of the same model: gives literals and wiring if `target` has no index (TorchAir's own); by
        default golden. Without both, only calls whose files settle all arguments are replayed.
    run, rank, graph, step
        Only this one. By default the latest run (an opened dump has its own), and all ranks, graphs and steps.
    op
        Shell pattern on node, operator, module path, source line or tensor name, as `fxtap ls --op`.
    max_bytes
        Do not replay calls whose tensors take more than this in float64. By default a quarter of the machine's memory.
    time_limit
        Do not run an operator again that took longer than this, in seconds.
    threads
        Number of torch's threads; 0: as set.
    shard
        (k, n): only the k-th of n parts; for `Verification.merge`.
    progress
        Called with the number of calls done and the total. If it returns False, the other calls are not replayed; an
        exception in it stops the verification.

    Raises
    ------
    OSError, LookupError, ValueError
        A dump cannot be opened or has no tensors, or `op` matches nothing.
    """
    __tracebackhide__ = True  # pytest would print all of this docstring
    sides = Sides.open(target, against, graph_from, run)
    rank, graph, step = (-1 if value is None else value for value in (rank, graph, step))
    return verify_sides(
        sides,
        Selection(rank, graph, step, op),
        compare_sides(sides, exact=exact, threads=threads),
        max_bytes=max_bytes,
        time_limit=time_limit,
        threads=threads,
        shard=shard,
        progress=progress,
    )
