"""Comparing and verifying with many processes: the work is split, and the report is that of a single process."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from .comparison import Dump, Report, compare, compare_ranks

__all__ = ["compare_sharded", "gather_bytes", "is_launched", "run_sharded"]

_ERROR = 2  # exit status
_PARALLEL = {"compare": "--threads", "verify": "--jobs"}
"""Command -> its option for the share of this machine's processors that one process uses."""


def is_launched() -> bool:
    """Return whether torchrun, or a launcher that sets the same variables, started this process."""
    return all(name in os.environ for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"))


def gather_bytes(data: bytes, group: Any = None) -> list[bytes] | None:
    """
    Gather the bytes of every process on rank 0 of a group that works on CPU tensors (gloo).

    Returns
    -------
    list of bytes, or None
        On rank 0, in order of ranks; None on the others. Sizes may differ and may be 0.
    """
    rank, world_size = dist.get_rank(group), dist.get_world_size(group)
    sizes = [torch.zeros(1, dtype=torch.int64) for _ in range(world_size)]
    dist.all_gather(sizes, torch.tensor([len(data)]), group=group)
    if rank != 0:
        if data:
            dist.send(torch.frombuffer(bytearray(data), dtype=torch.uint8), group=group, group_dst=0)
        return None
    gathered = [data]
    for source in range(1, world_size):  # one at a time, so that at most one shard is in transit
        received = torch.empty(int(sizes[source]), dtype=torch.uint8)
        if received.numel():
            dist.recv(received, group=group, group_src=source)
        gathered.append(received.numpy().tobytes())
    return gathered


def compare_sharded(golden: Dump, target: Dump | None = None, *, group: Any = None, **options: Any) -> Report | None:
    """
    Compare two dumps with all processes of a group; every process calls this with the same arguments.

    Parameters
    ----------
    golden, target, **options
        As for `fxtap.compare`; every process must see the same files. Without `target`, the ranks of `golden` are
        compared with each other, as by `fxtap.compare_ranks`.
    group
        A process group that works on CPU tensors (gloo); None for the default one.

    Returns
    -------
    Report, or None
        On rank 0, the report that a single process would make; None on the others.

    Raises
    ------
    RuntimeError
        Another process failed. A failure in this process raises as `fxtap.compare` does.
    """
    shard = (dist.get_rank(group), dist.get_world_size(group))
    error: BaseException | None = None
    data = b""
    try:
        part = compare_ranks(golden, shard=shard, **options) if target is None else compare(
            golden, target, shard=shard, **options
        )  # fmt: skip
        data = part.serialise()
    except (OSError, LookupError, ValueError, MemoryError) as raised:
        error = raised
    shards = gather_bytes(data, group)
    failed = torch.tensor([int(error is not None)])
    dist.all_reduce(failed, group=group)
    if error is not None:
        raise error
    if failed.item():
        raise RuntimeError(f"{int(failed)} of {shard[1]} processes could not compare their part")
    return None if shards is None else Report.merge(shards)


def _run_shard(line: Sequence[str], arguments: Sequence[str], rank: int, world_size: int) -> tuple[int, bytes, bytes]:
    """Run the program on one shard; return its exit status, its standard error, and the shard's report as bytes."""
    with tempfile.TemporaryDirectory(prefix="fxtap-") as folder:
        path = Path(folder) / "shard"
        share = (os.cpu_count() or 1) // int(os.environ.get("LOCAL_WORLD_SIZE", world_size))
        command = [*line, "--shard", f"{rank}/{world_size}", "--out", str(path)]
        command += [_PARALLEL[line[1]], str(max(share, 1)), *arguments]
        # rank 0 shows progress, and errors in the command line for all
        done = subprocess.run(command, check=False, stderr=None if rank == 0 else subprocess.PIPE)
        return done.returncode, done.stderr or b"", path.read_bytes() if path.exists() else b""


def _merge(line: Sequence[str], arguments: Sequence[str], shards: Sequence[bytes]) -> int:
    """Run the program to merge the shards and print the report; return its exit status."""
    with tempfile.TemporaryDirectory(prefix="fxtap-") as folder:
        for number, data in enumerate(shards):
            (Path(folder) / str(number)).write_bytes(data)
        sys.stdout.flush()
        return subprocess.run([*line, "--merge", folder, *arguments], check=False).returncode


def _run_in_group(line: Sequence[str], arguments: Sequence[str]) -> int:
    rank, world_size = dist.get_rank(), dist.get_world_size()
    status, message, data = _run_shard(line, arguments, rank, world_size)
    messages, shards = gather_bytes(message), gather_bytes(data)
    result = torch.tensor([0 if status == 0 and data else _ERROR])
    dist.all_reduce(result, op=dist.ReduceOp.MAX)
    if result.item() == 0 and shards is not None:
        result[0] = _merge(line, arguments, shards)
    elif messages is not None and status == 0:
        sys.stderr.buffer.write(next((line for line in messages if line), b""))
    dist.broadcast(result, src=0)
    return int(result.item())


def run_sharded(program: str, command: str, arguments: Sequence[str]) -> int:
    """
    Run `fxtap compare` or `fxtap verify` as one of torchrun's processes.

    Parameters
    ----------
    program
        Path of the fxtap program.
    command
        "compare" or "verify".
    arguments
        The arguments after it; the same in every process. All processes must see the same files.

    Returns
    -------
    int
        The exit status of the command, the same in every process. Rank 0 prints and writes.
    """
    line = [program, command]
    if not arguments or any(argument in ("-h", "--help") for argument in arguments):
        return subprocess.run([*line, *arguments], check=False).returncode if _is_first() else 0
    dist.init_process_group("gloo")
    try:
        return _run_in_group(line, arguments)
    finally:
        dist.destroy_process_group()


def _is_first() -> bool:
    return os.environ.get("RANK") == "0"
