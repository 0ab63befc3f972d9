"""What the program's tests pass around."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from typing import Any

Run = Callable[..., subprocess.CompletedProcess[str]]


def reject_constant(name: str) -> None:
    """For json.loads: NaN and Infinity are not JSON."""
    raise ValueError(f"{name} is not JSON")


def strict_json(text: str) -> Any:
    """What a JSON text says; ValueError where a strict reader would refuse it."""
    return json.loads(text, parse_constant=reject_constant)
