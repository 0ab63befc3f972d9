"""Paths as users write them."""

from __future__ import annotations

import os
from typing import Any

__all__ = ["expand"]


def expand(path: Any) -> Any:
    """Return a path with a leading "~" or "~user" replaced by the home folder; anything else as it is.

    No shell does it for what stands in Python, in a configuration, or behind the "=" of `--path=~/dump`.
    """
    if isinstance(path, (str, bytes, os.PathLike)) and os.fsencode(path).startswith(b"~"):
        return os.path.expanduser(path)  # noqa: PTH111  (bytes too; an unknown user's is left as it is)
    return path
