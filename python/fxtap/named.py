"""The entry point that torch loads for the backend "fxtap"."""

from .backend import look_up_by_name

__all__ = ["fxtap"]

fxtap = look_up_by_name()
