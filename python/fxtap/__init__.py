"""fxtap: dump every operator of a torch.compile'd model and find the first one that went wrong.

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
from .reading import PatternError
from .reading import open_dump as open

if TYPE_CHECKING:
    from . import distributed, testing
    from .backend import get_npu_backend
    from .scope import dump
    from .selection import FilterError, glob_filter, module_path
    from .verification.report import Verification
    from .verification.run import verify

__version__ = _core.version

__all__ = [
    "CompilerConfig",
    "FilterError",
    "OptionError",
    "PatternError",
    "Rule",
    "Verification",
    "__version__",
    "compare",
    "compare_ranks",
    "distributed",
    "dump",
    "get_npu_backend",
    "glob_filter",
    "logger",
    "module_path",
    "open",
    "testing",
    "verify",
]

logger = logging.getLogger("fxtap")

_LAZY = {
    "FilterError": "selection",
    "Verification": "verification",
    "distributed": "",
    "dump": "scope",
    "get_npu_backend": "backend",
    "glob_filter": "selection",
    "module_path": "selection",
    "testing": "",
    "verify": "verification",
}
"""Name -> its module, or "" for a module: imported at first use, so that a dump can be read without torch."""


def __getattr__(name: str) -> Any:
    """Import names that need torch at first use; take other names from the real TorchAir, if it is installed."""
    if name in _LAZY:
        module = importlib.import_module(f".{_LAZY[name] or name}", __name__)
        return getattr(module, name) if _LAZY[name] else module
    if not name.startswith("_"):
        from .ascend import real_torchair

        torchair = real_torchair()
        if torchair is not None:
            return getattr(torchair, name)
    raise AttributeError(f"module 'fxtap' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
