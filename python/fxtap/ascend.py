"""The real TorchAir, if it is installed."""

from __future__ import annotations

import functools
import importlib
import logging
from collections.abc import Callable
from types import ModuleType
from typing import Any

from .config import CompilerConfig
from .paths import is_module

__all__ = ["real_backend", "real_torchair"]

logger = logging.getLogger("fxtap")


@functools.cache
def real_torchair() -> ModuleType | None:
    """Return the torchair module if it and torch_npu are installed and work, else None."""
    if not is_module("torch_npu"):
        return None
    for name in ("torchair", "torch_npu.dynamo.torchair"):
        try:
            return importlib.import_module(name)
        except ImportError as error:
            logger.debug("%s cannot be imported: %s", name, error)
    return None


def real_config(torchair: ModuleType, config: CompilerConfig) -> tuple[Any, list[str]]:
    """Return TorchAir's configuration with the same options set, and the options that its version rejects."""
    real = torchair.CompilerConfig()
    own = {path for path, entry, _, _ in config._entries() if entry.own}
    rejected = []
    for path, value in config.set_options().items():
        if path in own:
            continue
        *groups, name = path.split(".")
        try:
            section = functools.reduce(getattr, groups, real)
            setattr(section, name, value)
        except (AttributeError, ValueError):
            rejected.append(path)
    return real, rejected


def real_backend(torchair: ModuleType, config: CompilerConfig, decompositions: dict[Any, Any]) -> Callable[..., Any]:
    """Return TorchAir's backend with the same configuration."""
    real, rejected = real_config(torchair, config)
    if rejected:
        logger.warning("this version of TorchAir does not have the options %s", ", ".join(rejected))
    backend: Callable[..., Any] = torchair.get_npu_backend(compiler_config=real, custom_decompositions=decompositions)
    return backend
