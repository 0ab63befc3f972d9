"""Paths and modules given by users."""

from __future__ import annotations

import importlib.util
import os
from typing import Any

__all__ = ["expand", "is_module"]


def expand(path: Any) -> Any:
    """Return a path with a leading "~" or "~user" replaced by the home folder; anything else unchanged.

    A shell does not expand paths in Python code, in a configuration, or after the "=" of `--path=~/dump`.
    """
    if isinstance(path, (str, bytes, os.PathLike)) and os.fsencode(path).startswith(b"~"):
        return os.path.expanduser(path)  # noqa: PTH111  (also bytes; an unknown user is left unchanged)
    return path


def is_module(name: str) -> bool:
    """Return whether a module of that name exists; its parents are imported. A stub without a spec does not count."""
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False
