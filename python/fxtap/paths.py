"""Paths given by users."""

from __future__ import annotations

import os
from typing import Any

__all__ = ["expand"]


def expand(path: Any) -> Any:
    """Return a path with a leading "~" or "~user" replaced by the home folder; anything else unchanged.

    A shell does not expand paths in Python code, in a configuration, or after the "=" of `--path=~/dump`.
    """
    if isinstance(path, (str, bytes, os.PathLike)) and os.fsencode(path).startswith(b"~"):
        return os.path.expanduser(path)  # noqa: PTH111  (also bytes; an unknown user is left unchanged)
    return path
