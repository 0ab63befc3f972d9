"""`fxtap.dump`: a block in which the backend "fxtap" dumps."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

from .config import CompilerConfig
from .selection import Filter
from .session import Block, close_block

__all__ = ["active", "dump"]

active: ContextVar[tuple[CompilerConfig, Block] | None] = ContextVar("fxtap_active", default=None)
"""The innermost `fxtap.dump` block that this thread is in: its configuration, and what it opened."""


@contextlib.contextmanager
def dump(
    path: str | os.PathLike[str],
    *,
    type: str = "npy",
    filter: Filter | str | list[str] | None = None,
    **options: Any,
) -> Iterator[CompilerConfig]:
    """Dump the models that the backend "fxtap" compiles inside a `with` block.

    A model is compiled at its first call, so that is the call to have inside. When the block ends the dump is whole
    on disk and closed; the models run on without dumping. Blocks inside each other, or in several threads, may share a
    path: the last that ends closes the dump.

    Parameters
    ----------
    path
        The dump root; made when it is not there.
    type
        "npy" (files and index) or "stats" (index alone).
    filter
        A filter, or shell patterns on node name, target or module path.
    options
        Any other option of `config.debug.data_dump`, as `sync=True`.

    Yields
    ------
    CompilerConfig
        The configuration in force; changes to it count for what is compiled later in the block.

    Examples
    --------
    >>> model = torch.compile(model, backend="fxtap")  # doctest: +SKIP
    >>> with fxtap.dump("good", filter="*attn*"):  # doctest: +SKIP
    ...     model(x)
    """
    config = CompilerConfig()
    config.debug.data_dump.type = type
    config.debug.data_dump.path = path
    config.debug.data_dump.filter = filter
    for name, value in options.items():
        setattr(config.debug.data_dump, name, value)
    block = Block()
    token = active.set((config, block))
    try:
        yield config
    finally:
        active.reset(token)
        close_block(block)
