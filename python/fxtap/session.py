"""What a process shares: the dumps that are open, the graph numbers, the rank; fork and exit."""

from __future__ import annotations

import atexit
import itertools
import os
import platform
import sys
import threading
import weakref
from collections.abc import Iterator
from typing import Protocol

import numpy
import torch
import torch.distributed

from ._core import Dump
from .config import CompilerConfig

__all__ = ["close_dump", "next_graph_id", "open_dump", "watch_fork", "world"]


class Forkable(Protocol):
    """What has to know that it lives in a forked child now."""

    def after_fork(self) -> None:
        """Called once in the child, before anything else of fxtap runs there."""


_lock = threading.Lock()
_dumps: dict[tuple[object, ...], Dump] = {}
_graph_ids: Iterator[int] = itertools.count(1)
_watchers: weakref.WeakSet[Forkable] = weakref.WeakSet()


def next_graph_id() -> int:
    """Return the number G of a graph: from 1, in order of compilation; in a forked child from its pid * 1000 + 1."""
    with _lock:
        return next(_graph_ids)


def world() -> tuple[int, int]:
    """Return torch.distributed's world size and rank when it is initialised with more than one rank, else (1, 0)."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        size = torch.distributed.get_world_size()
        if size > 1:
            return size, torch.distributed.get_rank()
    return 1, 0


def versions() -> str:
    """Return the line of versions that a run row of the index has."""
    return f"torch {torch.__version__}, numpy {numpy.__version__}, python {platform.python_version()}"


def open_dump(config: CompilerConfig) -> Dump:
    """Return the dump that a configuration asks for, shared by all graphs of the process that ask for the same.

    Nothing is on disk before the first tensor is.
    """
    size, rank = world()
    kind: str = config.get("debug.data_dump.type")
    path = os.path.realpath(config.get("debug.data_dump.path") or ".")
    sync, dedup = bool(config.get("debug.data_dump.sync")), bool(config.get("debug.data_dump.dedup"))
    queue_bytes: int = config.get("debug.data_dump.queue_bytes")
    threads: int = config.get("debug.data_dump.threads")
    key = (path, size, rank, kind, sync, dedup, queue_bytes, threads)
    with _lock:
        dump = _dumps.get(key)
        if dump is None or dump.closed:
            dump = _dumps[key] = Dump(
                path,
                world_size=size,
                rank=rank,
                type=kind,
                sync=sync,
                dedup=dedup,
                queue_bytes=queue_bytes,
                threads=threads,
                versions=versions(),
                command=" ".join(sys.argv),
            )
        return dump


def close_dump(dump: Dump) -> None:
    """Close a dump and forget it; programs that used it run without dumping from then on."""
    with _lock:
        for key in [key for key, known in _dumps.items() if known is dump]:
            del _dumps[key]
    dump.close()


def watch_fork(watcher: Forkable) -> None:
    """Have `after_fork` of an object called in forked children, for as long as the object lives."""
    with _lock:
        _watchers.add(watcher)


@atexit.register
def _close_all() -> None:
    for dump in list(_dumps.values()):
        dump.close()
    _dumps.clear()


def _after_fork_in_child() -> None:
    """Give the child graph numbers of its own, so that it never writes where its parent does."""
    global _lock, _graph_ids
    _lock = threading.Lock()
    _graph_ids = itertools.count(os.getpid() * 1000 + 1)
    for dump in list(_dumps.values()):
        dump.after_fork()
    for watcher in list(_watchers):
        watcher.after_fork()


os.register_at_fork(after_in_child=_after_fork_in_child)
