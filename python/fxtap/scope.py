"""`fxtap.dump`: a block in which the backend "fxtap" dumps."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

from .config import CompilerConfig
from .selection import Filter
from .session import Block, close_block

__all__ = ["active", "active_block", "dump"]

logger = logging.getLogger("fxtap")

active: ContextVar[Block | None] = ContextVar("fxtap_active", default=None)
"""The innermost `fxtap.dump` block that this thread is in."""


def active_block() -> Block | None:
    """Return the innermost block that this thread is in, None where it is in none."""
    block = active.get()
    return None if block is None or block.ended else block  # a task may outlive the block that it began in


@contextlib.contextmanager
def dump(
    path: str | os.PathLike[str],
    *,
    type: str = "npy",
    filter: Filter | str | list[str] | None = None,
    **options: Any,
) -> Iterator[CompilerConfig]:
    """Dump what the backend "fxtap" runs inside a `with` block, whether it was compiled there or before.

    When the block ends the dump is whole on disk and closed; the models run on without dumping. Blocks inside each
    other, or in several threads, may share a path: the last that ends closes the dump. A block in which no model of
    that backend is called says so in the log.

    Parameters
    ----------
    path
        The dump root; made when it is not there. "~" is the home folder.
    type
        "npy" (files and index) or "stats" (index alone).
    filter
        A filter, or shell patterns on node name, operator, module path or source line.
    options
        Any other option of `config.debug.data_dump`, as `sync=True`.

    Yields
    ------
    CompilerConfig
        The configuration in force; changes to it count for models that are called in the block later for the first
        time.

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
    block = Block(config)
    token = active.set(block)
    try:
        yield config
        if not block.dumps and config.debug.data_dump.enabled:
            logger.warning(
                'fxtap.dump(%r): nothing was dumped, for no model of the backend "fxtap" was called in the block; use '
                'torch.compile(model, backend="fxtap") and call it inside (TORCH_LOGS=graph_breaks tells what was not '
                "compiled)",
                os.fspath(path),
            )
    finally:
        active.reset(token)
        close_block(block)
