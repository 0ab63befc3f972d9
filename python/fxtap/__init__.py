"""fxtap: dump every operator of a torch.compile'd model, and find the first one that went wrong.

import torch, fxtap as torchair

config = torchair.CompilerConfig()
config.debug.data_dump.type = "npy"
config.debug.data_dump.path = "./dump"
model = torch.compile(model, backend=torchair.get_npu_backend(compiler_config=config))
"""

from __future__ import annotations

import logging
from typing import Any

from . import _core
from .backend import get_npu_backend
from .config import CompilerConfig, OptionError
from .reading import open_dump as open
from .scope import dump
from .selection import FilterError, glob_filter

__version__ = _core.version

__all__ = [
    "CompilerConfig",
    "FilterError",
    "OptionError",
    "__version__",
    "dump",
    "get_npu_backend",
    "glob_filter",
    "logger",
    "open",
]

logger = logging.getLogger("fxtap")


def __getattr__(name: str) -> Any:
    """Look for what fxtap does not have in the real TorchAir, where it is installed."""
    from .ascend import real_torchair

    torchair = None if name.startswith("__") else real_torchair()
    if torchair is None:
        raise AttributeError(f"module 'fxtap' has no attribute {name!r}")
    return getattr(torchair, name)
