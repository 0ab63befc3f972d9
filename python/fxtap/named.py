"""What torch imports for the backend of the name "fxtap"."""

from .backend import look_up_by_name

__all__ = ["fxtap"]

fxtap = look_up_by_name()
