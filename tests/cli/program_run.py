"""Types and helpers shared by the program's tests."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from typing import Any

Run = Callable[..., subprocess.CompletedProcess[str]]


def reject_constant(name: str) -> None:
    """For json.loads: reject NaN and Infinity, which are not JSON."""
    raise ValueError(f"{name} is not JSON")


def strict_json(text: str) -> Any:
    """Parse JSON; ValueError if a strict parser would reject it."""
    return json.loads(text, parse_constant=reject_constant)
