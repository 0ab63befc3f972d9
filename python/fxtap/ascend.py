"""The real TorchAir, where it is installed."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import logging
from collections.abc import Callable
from types import ModuleType
from typing import Any

from .config import CompilerConfig

__all__ = ["real_backend", "real_torchair"]

logger = logging.getLogger("fxtap")


@functools.cache
def real_torchair() -> ModuleType | None:
    """Return the torchair module where torch_npu and it are installed and work, else None."""
    if importlib.util.find_spec("torch_npu") is None:
        return None
    for name in ("torchair", "torch_npu.dynamo.torchair"):
        try:
            return importlib.import_module(name)
        except ImportError as error:
            logger.debug("%s cannot be imported: %s", name, error)
    return None


def real_config(torchair: ModuleType, config: CompilerConfig) -> tuple[Any, list[str]]:
    """Return TorchAir's own configuration with all that was set, and the options that this version refuses."""
    real = torchair.CompilerConfig()
    own = {path for path, entry, _, _ in config._entries() if entry.own}
    refused = []
    for path, value in config.set_options().items():
        if path in own:
            continue
        *groups, name = path.split(".")
        try:
            section = functools.reduce(getattr, groups, real)
            setattr(section, name, value)
        except (AttributeError, ValueError):
            refused.append(path)
    return real, refused


def real_backend(torchair: ModuleType, config: CompilerConfig, decompositions: dict[Any, Any]) -> Callable[..., Any]:
    """Return TorchAir's own backend, configured alike."""
    real, refused = real_config(torchair, config)
    if refused:
        logger.warning("this version of TorchAir does not have the options %s", ", ".join(refused))
    backend: Callable[..., Any] = torchair.get_npu_backend(compiler_config=real, custom_decompositions=decompositions)
    return backend
