"""fxtap: dump every operator of a torch.compile'd model, and find the first one that went wrong.

import torch, fxtap as torchair

config = torchair.CompilerConfig()
config.debug.data_dump.type = "npy"
config.debug.data_dump.path = "./dump"
model = torch.compile(model, backend=torchair.get_npu_backend(compiler_config=config))
"""

from __future__ import annotations

import importlib
import logging
from typing import TYPE_CHECKING, Any

from . import _core
from .comparison import Rule, compare, compare_ranks
from .config import CompilerConfig, OptionError
from .reading import open_dump as open

if TYPE_CHECKING:
    from .backend import get_npu_backend
    from .scope import dump
    from .selection import FilterError, glob_filter, module_path

__version__ = _core.version

__all__ = [
    "CompilerConfig",
    "FilterError",
    "OptionError",
    "Rule",
    "__version__",
    "compare",
    "compare_ranks",
    "dump",
    "get_npu_backend",
    "glob_filter",
    "logger",
    "module_path",
    "open",
]

logger = logging.getLogger("fxtap")

_NEED_TORCH = {
    "FilterError": "selection",
    "dump": "scope",
    "get_npu_backend": "backend",
    "glob_filter": "selection",
    "module_path": "selection",
}
"""Imported when first asked for, so that a dump can be read without torch."""


def __getattr__(name: str) -> Any:
    """Import what needs torch; look for what fxtap does not have in the real TorchAir, where it is installed."""
    if name in _NEED_TORCH:
        return getattr(importlib.import_module(f".{_NEED_TORCH[name]}", __name__), name)
    if not name.startswith("_"):
        from .ascend import real_torchair

        torchair = real_torchair()
        if torchair is not None:
            return getattr(torchair, name)
    raise AttributeError(f"module 'fxtap' has no attribute {name!r}")
