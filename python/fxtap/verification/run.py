"""`fxtap.verify`: every operator call of a dump again, from its own inputs, in float64."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Hashable, Iterator

import torch

from .. import _core
from ..paths import expand
from ..reading import DumpReader, open_dump
from .against import Counterparts
from .arguments import quiet_read_only_buffers
from .calls import Call, Selection, find_calls
from .exact import measure_distances
from .judging import Judge, Limits
from .report import Verification

__all__ = ["verify"]


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


def verify(
    target: str | os.PathLike[str] | DumpReader,
    *,
    against: str | os.PathLike[str] | DumpReader | None = None,
    exact: bool = False,
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
        A dump with an index, or the result of `fxtap.open`.
    against
        A reference dump of the same model: golden's operators, with golden's literals, run on target's inputs. By
        default target's own operators.
    exact
        Also run golden's graph in float64 from its dumped inputs, and measure both dumps' results against that. Values
        are freed after their last use. Every shard runs the whole chain.
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
        The dump cannot be opened, has no index or no tensors, or `op` matches nothing.
    """
    __tracebackhide__ = True  # pytest would print all of this docstring
    dump = target if isinstance(target, DumpReader) else open_dump(expand(target), run=run)
    rank, graph, step = (-1 if value is None else value for value in (rank, graph, step))
    selection = Selection(rank, graph, step, op)
    limits = Limits(default_max_bytes() if max_bytes is None else max_bytes, time_limit)
    golden = open_dump(expand(against)) if isinstance(against, (str, os.PathLike)) else against
    calls = list(find_calls(dump, selection))
    counterparts = None
    distances = None
    if exact and golden is None:
        raise ValueError("exact needs a golden dump: pass against")
    if golden is not None:
        report = _core.compare(golden.path, dump.path, run=(golden._run, dump._run))
        counterparts = Counterparts(
            golden, report, calls if selection == Selection() else find_calls(dump, Selection())
        )
    core = _core.Verification(None if golden is None else golden.path, dump.path)
    quiet_read_only_buffers()
    with torch.no_grad(), _threads(threads):
        if exact and counterparts is not None:
            distances = measure_distances(list(counterparts.golden_calls.values()), counterparts)
        _run(calls, Judge(core, limits, counterparts, distances), Sharing(shard, counterparts is None), progress)
    return Verification(core)
