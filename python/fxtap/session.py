"""Process-wide state: open dumps, graph numbers, the rank; handling of fork and exit."""

from __future__ import annotations

import atexit
import contextlib
import logging
import multiprocessing
import os
import platform
import sys
import threading
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

import numpy
import torch
import torch.distributed

from ._core import Dump, claim_block
from .config import CompilerConfig

if TYPE_CHECKING:
    from .verification.live import Live

__all__ = ["Block", "close_block", "live_verification", "next_graph_id", "open_dump", "watch_fork", "world"]

logger = logging.getLogger("fxtap")


class Forkable(Protocol):
    """An object with state to reset in a forked child."""

    def after_fork(self) -> None:
        """Called once in the child, before any other code of fxtap."""


class Block:
    """One `fxtap.dump` block: its configuration, and the dumps that it opened (guarded by the session's lock)."""

    def __init__(self, config: CompilerConfig) -> None:
        self.config = config
        self.dumps: list[Dump] = []
        self.ended = False


_BLOCK = 1000  # graph numbers that a process claims at a time
_lock = threading.Lock()
_blocks: set[Block] = set()
_unscoped: set[Dump | None] = set()  # opened outside of blocks; no block closes them
_dumps: dict[tuple[object, ...], Dump] = {}
_live: dict[Dump, Live] = {}  # of the open dumps of type "verify"
_graph_ids: Iterator[int] | None = None  # set at the first graph
_watchers: weakref.WeakSet[Forkable] = weakref.WeakSet()


def _graph_numbers(block: int) -> Iterator[int]:
    """Yield numbers that no parent or child process uses, in blocks; the first number is 1.

    A forked child begins with the block of its pid. If that is taken, by an earlier process with that pid or by a
    relative that compiled very many graphs, and after 999 graphs, the next free block is used.
    """
    first = 1
    while True:
        block = claim_block(block)
        yield from range(block * _BLOCK + first, (block + 1) * _BLOCK)
        first, block = 0, block + 1


def next_graph_id() -> int:
    """Return the number G of a graph: from 1, in order of compilation.

    A child that may write to the same folder as its parent counts from pid * 1000 + 1: a forked child, and one started
    by multiprocessing or under `fxtap run`, unless it has its own rank.
    """
    global _graph_ids
    is_runs_own = os.environ.get("FXTAP_RUN") in (None, str(os.getpid()))
    own = world()[0] == 1 and not (is_runs_own and multiprocessing.parent_process() is None)
    with _lock:
        if _graph_ids is None:
            _graph_ids = _graph_numbers(os.getpid() if own else 0)
        return next(_graph_ids)


def world() -> tuple[int, int]:
    """Return torch.distributed's world size and rank if it is initialised with more than one rank, else (1, 0)."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        size = torch.distributed.get_world_size()
        if size > 1:
            return size, torch.distributed.get_rank()
    return 1, 0


def versions() -> str:
    """Return the line of versions for the run row of the index."""
    return f"torch {torch.__version__}, numpy {numpy.__version__}, python {platform.python_version()}"


def open_dump(config: CompilerConfig, block: Block | None = None) -> Dump:
    """Return the dump for a configuration, shared by all graphs of the process with an equal one.

    Nothing is written before the first tensor. If opened for blocks, the dump is closed when the last of them ends.
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
            _unscoped.discard(dump)
            dump = _dumps[key] = Dump(
                path,
                world_size=size,
                rank=rank,
                type=kind,
                sync=sync,
                dedup=dedup,
                queue_bytes=queue_bytes,
                threads=threads,
                lent_threads=torch.get_num_threads(),
                versions=versions(),
                command=" ".join(sys.argv),
            )
            if kind == "verify":
                _live[dump] = _begin_verification(path, rank)
        if dump in _live:
            for configured in (config, *([] if block is None else [block.config])):
                configured.add_verification(_live[dump])
        if block is None:
            _unscoped.add(dump)
        elif dump not in block.dumps:
            block.dumps.append(dump)
            _blocks.add(block)
        return dump


def _begin_verification(path: str, rank: int) -> Live:
    from .verification.live import Live  # imported late: few dumps need it

    live = Live(path, rank)
    _watchers.add(live)
    return live


def live_verification(dump: Dump) -> Live | None:
    """Return what collects the verdicts of an open dump of type "verify"; None for other dumps."""
    return _live.get(dump)


def _close(dump: Dump) -> None:
    """Close a dump; print the answer if it is a verification."""
    live = _live.pop(dump, None)
    try:
        dump.close()
    finally:
        if live is not None:
            live.print_answer()


def close_block(block: Block) -> None:
    """End a block: close the dumps that only it used; their programs then run without dumping.

    Raises
    ------
    OSError
        A dump could not be closed; the others are closed.
    """
    with _lock:
        block.ended = True
        _blocks.discard(block)
        in_use = _unscoped.union(*(other.dumps for other in _blocks))
        closing = [dump for dump in block.dumps if dump not in in_use]
        for key in [key for key, dump in _dumps.items() if dump in closing]:
            del _dumps[key]
    with contextlib.ExitStack() as stack:
        for dump in closing:
            stack.callback(_close, dump)


def watch_fork(watcher: Forkable) -> None:
    """Register an object whose `after_fork` is called in forked children; a weak reference is kept."""
    with _lock:
        _watchers.add(watcher)


@atexit.register
def _close_all() -> None:
    for dump in list(_dumps.values()):
        try:
            _close(dump)
        except Exception as error:  # close the others anyway
            logger.error("the dump in %s could not be closed: %s", dump.rank_path, error)
    _dumps.clear()


def _after_fork_in_child() -> None:
    """Give the child its own graph numbers, so that it never writes to its parent's folders."""
    global _lock, _graph_ids
    _lock = threading.Lock()
    _graph_ids = _graph_numbers(os.getpid())
    for dump in list(_dumps.values()):
        dump.after_fork()
    for watcher in list(_watchers):
        watcher.after_fork()


os.register_at_fork(after_in_child=_after_fork_in_child)
