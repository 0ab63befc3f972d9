"""Functions run by several processes, started as torchrun would start them."""

from __future__ import annotations

import multiprocessing
import os
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch.distributed as dist

from fxtap.distributed import compare_sharded

_fork = multiprocessing.get_context("forkserver")
_fork.set_forkserver_preload(["fxtap.distributed", "processes"])


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def be_one_of(rank: int, n: int, port: int, folder: str, body: Callable[..., int], arguments: Sequence[Any]) -> None:
    """Set up a new process as one started by torchrun."""
    os.environ.update(
        RANK=str(rank), WORLD_SIZE=str(n), LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE=str(n),
        MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
    )  # fmt: skip
    os.chdir(folder)
    for number, name in ((1, "out"), (2, "err")):
        handle = os.open(f"{name}.{rank}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(handle, number)
        os.close(handle)
    sys.exit(body(*arguments))


def launch(n: int, folder: Path, body: Callable[..., int], *arguments: Any) -> list[int | None]:
    """Run a function in n processes; return their exit statuses."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    processes = [
        _fork.Process(target=be_one_of, args=(rank, n, port, str(folder), body, arguments), daemon=True)
        for rank in range(n)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    return [process.exitcode for process in processes]


def compare_in_group(golden: str, target: str | None) -> int:
    dist.init_process_group("gloo")
    report = compare_sharded(golden, target)
    if report is not None:
        Path("report.json").write_text(report.to_json())
    dist.destroy_process_group()
    return 0 if (report is None) == (os.environ["RANK"] != "0") else 1


def fail_in_group(golden: str, target: str) -> int:
    dist.init_process_group("gloo")
    if os.environ["RANK"] == "1":
        target = "nowhere"
    try:
        compare_sharded(golden, target)
    except FileNotFoundError:
        return 10
    except RuntimeError as error:
        return 11 if "1 of 2 processes" in str(error) else 12
    return 13
