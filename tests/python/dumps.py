"""Helpers for test modules that inspect dumps."""

import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import fxtap
from fxtap.backend import Backend

STAMP = re.compile(r"\.(\d{20})\.npy$")


def dumping(root: Path, **options: Any) -> Backend:
    """Return a backend that dumps everything into `root`; further options are data_dump's."""
    config = fxtap.CompilerConfig()
    config.debug.data_dump.type = "npy"
    config.debug.data_dump.path = root
    for name, value in options.items():
        setattr(config.debug.data_dump, name, value)
    return fxtap.get_npu_backend(compiler_config=config)


def run(root: Path, function: Callable[..., Any], *arguments: Any, dynamic: bool | None = None, **options: Any) -> Any:
    """Compile and call a function once with a dump enabled."""
    return torch.compile(function, backend=dumping(root, **options), dynamic=dynamic)(*arguments)


def python(code: str, cwd: Path, *arguments: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    """Run code in a separate process, in a folder."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def graphs(root: Path) -> list[Path]:
    """Return the graph folders, in order of compilation."""
    return sorted(root.glob("*/graph_*"), key=lambda path: int(path.name.removeprefix("graph_")))


def stems(folder: Path) -> list[str]:
    """Return the names without time stamp of a step's files, sorted."""
    return sorted(STAMP.sub("", path.name) for path in folder.glob("*.npy"))


def nodes(folder: Path) -> set[str]:
    """Return the names of the nodes that have files in a step."""
    return {path.name.partition("-")[0] for path in folder.glob("*.npy")}


def load(folder: Path, stem: str) -> np.ndarray[Any, Any]:
    """Load the only file of a step with this name."""
    (path,) = [path for path in folder.glob("*.npy") if STAMP.sub("", path.name) == stem]
    return np.load(path, allow_pickle=False)
