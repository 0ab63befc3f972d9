"""Dumps that were asked for and never began: one line at exit says why, and what to do."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import sys
from collections.abc import Callable
from pathlib import Path

__all__ = ["Expectation", "RunWatch"]

_GRAPH_BREAKS = "TORCH_LOGS=graph_breaks tells what torch.compile left uncompiled"


class Expectation:
    """A backend that may be asked for a dump; `given` is set once it gets a graph.

    Parameters
    ----------
    wants_dump
        Called at exit, where no graph was given: whether a dump was asked for.
    shared
        Backends that are configured by the environment fulfil each other's expectation.
    """

    def __init__(self, wants_dump: Callable[[], bool], *, shared: bool) -> None:
        self.wants_dump = wants_dump
        self.shared = shared
        _waiting.add(self)

    def given(self) -> None:
        """A graph has come."""
        _waiting.difference_update([other for other in _waiting if other is self or (self.shared and other.shared)])


class RunWatch:
    """What `fxtap run` sees of one process: its calls of torch.compile, and in the first process the dump root.

    Attributes
    ----------
    ours
        Calls that use fxtap.
    others
        Names of the backends that calls kept.
    """

    def __init__(self, root: Path | None = None) -> None:
        self.ours = 0
        self.others: set[str] = set()
        self._root = root
        self._before = self._written()

    def _written(self) -> dict[Path, int]:
        """Return when each rank's index was last written."""
        if self._root is None:
            return {}
        return {path: path.stat().st_mtime_ns for path in self._root.glob("worldsize*_global_rank*/fxtap.db")}

    def reason(self) -> str | None:
        """Return why nothing was dumped; None where this process or one that it started did dump."""
        if self._root is not None and self._written() != self._before:
            return None
        if self.ours:
            return f"torch.compile was called, but compiled no graph; {_GRAPH_BREAKS}"
        if self.others:
            names = ", ".join(sorted(self.others))
            return f'torch.compile was called with the backend {names} alone, which keeps it; name none, or "fxtap"'
        return "no Python process of this run called torch.compile; compile the model with it, and call the model"


_waiting: set[Expectation] = set()
_pid = os.getpid()
watch: RunWatch | None = None
"""Set by `fxtap run`, in each of its Python processes."""


def _reason() -> str | None:
    waiting = [expected for expected in _waiting if expected.wants_dump()]
    if watch is not None and any(expected.shared for expected in waiting):
        return watch.reason()
    if waiting:
        return f"no graph came to fxtap's backend: the model was not called, or not compiled; {_GRAPH_BREAKS}"
    return None


@atexit.register
def _say() -> None:
    is_helper = os.getpid() != _pid or multiprocessing.current_process().daemon  # forked, or loads data
    if is_helper or hasattr(sys, "last_value"):  # or ended by an exception: that is reason enough
        return
    reason = _reason()
    if reason is not None:
        print(f"fxtap: nothing was dumped: {reason}", file=sys.stderr)
