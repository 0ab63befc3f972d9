"""Operators that draw random numbers: what can be said of their results without the numbers that were drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .arguments import Arguments
from .operators import NotReplayedError, Operator

if TYPE_CHECKING:
    from .calls import Call
    from .replay import Replay

__all__ = ["check_random", "is_random"]


def is_random(operator: Operator, arguments: Arguments) -> bool:
    """Return whether a call draws random numbers."""
    return operator.is_random


def check_random(call: Call, row: int, replay: Replay) -> tuple[str, str]:
    """Return the verdict of one result, and its reason."""
    raise NotReplayedError("random")
