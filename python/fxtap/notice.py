"""Dumps that were enabled but never started: one line at exit gives the reason and a remedy."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import sys
from collections.abc import Callable
from pathlib import Path

__all__ = ["Expectation", "RunWatch"]

_GRAPH_BREAKS = "TORCH_LOGS=graph_breaks shows what torch.compile did not compile"


class Expectation:
    """A backend for which a dump may be enabled; fulfilled when it gets a graph.

    Parameters
    ----------
    wants_dump
        Called at exit if no graph was compiled; returns whether a dump was enabled.
    shared
        Whether a graph of any other shared backend fulfils it too: those configured by the environment.
    """

    def __init__(self, wants_dump: Callable[[], bool], *, shared: bool) -> None:
        self.wants_dump = wants_dump
        self.shared = shared
        _waiting.add(self)

    def fulfil(self) -> None:
        """Note that the backend got a graph."""
        _waiting.difference_update([other for other in _waiting if other is self or (self.shared and other.shared)])


class RunWatch:
    """Observations of `fxtap run` in one process: calls of torch.compile, and in the first process the dump root.

    Attributes
    ----------
    ours
        Number of calls that use fxtap.
    others
        Names of the other backends.
    """

    def __init__(self, root: Path | None = None) -> None:
        self.ours = 0
        self.others: set[str] = set()
        self._root = root
        self._before = self._written()

    def _written(self) -> dict[Path, int]:
        """Return the modification time of each rank's index."""
        if self._root is None:
            return {}
        return {path: path.stat().st_mtime_ns for path in self._root.glob("worldsize*_global_rank*/fxtap.db")}

    def reason(self) -> str | None:
        """Return why nothing was dumped; None if this process or one that it started did dump."""
        if self._root is not None and self._written() != self._before:
            return None
        if self.ours:
            return f"torch.compile was called, but compiled no graph; {_GRAPH_BREAKS}"
        if self.others:
            names = ", ".join(sorted(self.others))
            return f'torch.compile was called only with the backend {names}; pass no backend, or "fxtap"'
        return "no Python process of this run called torch.compile; compile the model, then call it"


_waiting: set[Expectation] = set()
_pid = os.getpid()
watch: RunWatch | None = None
"""Set by `fxtap run`, in each of its Python processes."""


def _reason() -> str | None:
    waiting = [expected for expected in _waiting if expected.wants_dump()]
    if watch is not None and any(expected.shared for expected in waiting):
        return watch.reason()
    if waiting:
        return f"fxtap's backend got no graph: the model was not called, or not compiled; {_GRAPH_BREAKS}"
    return None


@atexit.register
def _report() -> None:
    is_helper = os.getpid() != _pid or multiprocessing.current_process().daemon  # forked, or a data loader
    if is_helper or hasattr(sys, "last_value"):  # an exception ended the process: that is the reason
        return
    reason = _reason()
    if reason is not None:
        print(f"fxtap: nothing was dumped: {reason}", file=sys.stderr)
