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
"""The innermost `fxtap.dump` block of this thread."""


def active_block() -> Block | None:
    """Return the innermost block of this thread, or None."""
    block = active.get()
    return None if block is None or block.ended else block  # a task may outlive the block in which it began


@contextlib.contextmanager
def dump(
    path: str | os.PathLike[str],
    *,
    type: str = "npy",
    filter: Filter | str | list[str] | None = None,
    **options: Any,
) -> Iterator[CompilerConfig]:
    """Dump the graphs that the backend "fxtap" runs in a `with` block, whether compiled in the block or before.

    When the block ends, the dump is complete and closed; the models run on without dumping. Nested blocks, or blocks in
    several threads, may share a path: the last one to end closes the dump. If no model with this backend is called in
    the block, a warning is logged.

    Parameters
    ----------
    path
        The dump root; created if missing. "~" is the home folder.
    type
        "npy" (files and index), "stats" (index only) or "verify": each operator call is judged as `fxtap.verify` does;
        only tensors of wrong ones are saved. When the block ends, one line on standard error tells the result;
        `verification` of what is yielded has all of it.
    filter
        A filter, or shell patterns on node name, operator, module path or source line.
    options
        Any other option of `config.debug.data_dump`, for example `sync=True`.

    Yields
    ------
    CompilerConfig
        The configuration in use; changes apply to models whose first call in the block comes later.

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
                'fxtap.dump(%r): nothing was dumped: no model with the backend "fxtap" was called in the block; use '
                'torch.compile(model, backend="fxtap") and call it in the block (TORCH_LOGS=graph_breaks shows what '
                "was not compiled)",
                os.fspath(path),
            )
    finally:
        active.reset(token)
        close_block(block)
