"""The part of `fxtap verify` that needs torch: `python -m fxtap verify-shard` writes a serialised verification."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import pickle
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from types import FrameType
from typing import Any

from .. import _core
from ..reading import open_dump
from .calls import Selection
from .run import Comparison, Sides, compare_sides, verify_sides

__all__ = ["describe_error", "main"]

_ERROR = 2  # exit status
_ERRORS = (OSError, LookupError, ValueError, MemoryError)
_SHOWN_EVERY = 0.1  # seconds between two updates of the progress line
_CALLS_PER_JOB = 64  # fewer are not worth another process
_AGAIN = 1.0  # seconds after which a second signal ends the process

Progress = Callable[[int, int], bool]


class Stop:
    """Notes SIGINT and SIGTERM: the verification then ends early. A later one ends the process."""

    def __init__(self) -> None:
        self.since: float | None = None
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._note)
        # the program starts this process with both blocked, so that none arrives before
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})

    def _note(self, number: int, _frame: FrameType | None) -> None:
        now = time.monotonic()
        if self.since is not None and now - self.since > _AGAIN:  # a terminal and the program may both send the first
            os._exit(128 + number)
        self.since = self.since or now


class ProgressLine:
    """A line on a terminal that is written over, as the program's other commands show it."""

    def __init__(self) -> None:
        self._is_shown = False
        self._next = time.monotonic() + 0.3  # shorter work shows no progress

    def show(self, done: int, total: int) -> None:
        """Show how many operator calls are done, at most ten times a second."""
        now = time.monotonic()
        if now >= self._next and sys.stderr.isatty():
            print(f"\r\033[Kverifying {done:,} of {total:,}", end="", file=sys.stderr, flush=True)
            self._is_shown, self._next = True, now + _SHOWN_EVERY

    def end(self) -> None:
        """Remove the line."""
        if self._is_shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m fxtap verify-shard", allow_abbrev=False)
    parser.add_argument("--out-fd", type=int, required=True)
    parser.add_argument("--target", required=True)
    parser.add_argument("--shard", default="0/1")
    for name in ("run", "golden-run"):
        parser.add_argument(f"--{name}", type=int, default=0)
    for name in ("rank", "graph", "step"):
        parser.add_argument(f"--{name}", type=int, default=-1)
    for name in ("jobs", "report-fd"):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--threads", type=int, default=1)
    for name in ("op", "against", "graph-from"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--exact", action="store_true")
    return parser.parse_args(arguments)


def _sides(options: argparse.Namespace) -> Sides:
    return Sides.open(options.target, options.against, options.graph_from, options.run, options.golden_run)


def _compare(options: argparse.Namespace) -> Comparison | None:
    """Return the comparison with golden: the one whose report `fxtap compare` passes, or a new one."""
    if options.report_fd is None:
        return compare_sides(_sides(options), exact=options.exact, threads=options.threads)
    with os.fdopen(options.report_fd, "rb") as file:
        return Comparison(_core.merge_reports([file.read()]), options.rank)


def _choose_jobs(options: argparse.Namespace) -> int:
    """Return the number of processes."""
    if options.jobs:
        return int(options.jobs)
    dump = open_dump(options.target, run=options.run)
    n_calls: int = sum(graph.n_dumped * graph.n_steps for graph in dump.graphs)
    return max(1, min(len(os.sched_getaffinity(0)), n_calls // _CALLS_PER_JOB))


@dataclass(frozen=True)
class Work:
    """What all processes do alike."""

    options: argparse.Namespace
    comparison: Comparison | None

    def verify(self, shard: tuple[int, int], progress: Progress) -> bytes:
        """Verify one shard; return it serialised."""
        options = self.options
        selection = Selection(options.rank, options.graph, options.step, options.op)
        return verify_sides(
            _sides(options), selection, self.comparison, threads=options.threads, shard=shard, progress=progress
        ).serialise()


def _work(connection: Connection, work: Work, shard: tuple[int, int], stop: Stop) -> None:
    """Verify one shard in a worker process; send progress (a tuple), then the result (bytes) or an error (str)."""
    sent = 0.0

    def progress(done: int, total: int) -> bool:
        nonlocal sent
        if time.monotonic() - sent >= _SHOWN_EVERY:
            sent = time.monotonic()
            connection.send((done, total))
        return stop.since is None

    try:
        connection.send(work.verify(shard, progress))
    except _ERRORS as error:
        connection.send(describe_error(error))


def describe_error(error: BaseException) -> str:
    """Return one line for an error in opening or reading a dump."""
    if isinstance(error, KeyError):
        return str(error.args[0])
    if isinstance(error, MemoryError):
        return "out of memory"
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"cannot open '{os.fsdecode(error.filename)}': {error.strerror}"
    return str(error)


class JobError(RuntimeError):
    """A worker process failed; the message says why."""


def _prepare(connection: Connection, options: argparse.Namespace) -> None:
    """Compare with golden in a worker process; send the pickled comparison, or an error (str)."""
    try:
        connection.send(pickle.dumps(_compare(options)))
    except _ERRORS as error:
        connection.send(describe_error(error))


def _in_processes(
    target: Callable[..., None], arguments: Sequence[tuple[Any, ...]], stop: Stop, line: ProgressLine
) -> list[bytes]:
    """Call a function in a process of its own for each tuple of arguments; return what they send, in order."""
    fork = multiprocessing.get_context("fork")
    pending: dict[Connection, tuple[int, Any]] = {}
    for number, items in enumerate(arguments):
        ours, theirs = fork.Pipe(duplex=False)
        process = fork.Process(target=target, args=(theirs, *items), daemon=True)
        process.start()
        theirs.close()
        pending[ours] = (number, process)
    try:
        return _collect(pending, stop, line)
    finally:
        for _, process in pending.values():  # after an error: they may wait for us to read
            process.kill()


def _in_jobs(options: argparse.Namespace, shards: Sequence[tuple[int, int]], stop: Stop, line: ProgressLine) -> bytes:
    """Verify each shard in a process of its own; return the merged verification, serialised.

    A process of its own also makes the comparison: threads that it starts, and open indexes, must not be forked.
    """
    comparison = None
    if options.against is not None:
        (data,) = _in_processes(_prepare, [(options,)], stop, line)
        comparison = pickle.loads(data)
    work = Work(options, comparison)
    results = _in_processes(_work, [(work, shard, stop) for shard in shards], stop, line)
    return _core.merge_verifications(results).serialise()


def _collect(pending: dict[Connection, tuple[int, Any]], stop: Stop, line: ProgressLine) -> list[bytes]:
    """Return the results of worker processes in order; empties `pending`."""
    results: list[bytes] = [b""] * len(pending)
    done = [0] * len(pending)
    is_told = False
    while pending:
        if stop.since is not None and not is_told:
            is_told = True
            for _, process in pending.values():
                os.kill(process.pid, signal.SIGINT)
        for connection in wait(list(pending), timeout=0.2):
            assert isinstance(connection, Connection)
            number, process = pending[connection]
            try:
                message = connection.recv()
            except EOFError:
                process.join()
                raise JobError(_ended(process.exitcode)) from None
            if isinstance(message, str):
                raise JobError(message)
            if isinstance(message, tuple):
                done[number] = message[0]
                line.show(sum(done) // len(results), message[1])
            else:
                results[number] = message
                del pending[connection]
    return results


def _ended(status: int | None) -> str:
    if status is not None and status < 0:
        return f"a worker process was ended by signal {-status}; fewer --jobs need less memory"
    return "a worker process ended early"


def _run(options: argparse.Namespace) -> bytes:
    stop, line = Stop(), ProgressLine()
    k, n = (int(part) for part in options.shard.split("/"))

    def progress(done: int, total: int) -> bool:
        line.show(done, total)
        return stop.since is None

    try:
        n_jobs = _choose_jobs(options)
        if n_jobs == 1:
            return Work(options, _compare(options)).verify((k, n), progress)
        return _in_jobs(options, [(k + n * j, n * n_jobs) for j in range(n_jobs)], stop, line)
    finally:
        line.end()


def main(arguments: Sequence[str]) -> int:
    """Verify one shard, and write the serialised verification to a file descriptor; return the exit status."""
    options = _parse(arguments)
    try:
        data = _run(options)
    except (*_ERRORS, JobError) as error:
        print(f"fxtap: {describe_error(error)}", file=sys.stderr)
        return _ERROR
    with os.fdopen(options.out_fd, "wb") as file:
        file.write(data)
    return 0
