"""Verification: every dumped operator again, in float64, on its own inputs."""

from __future__ import annotations

from .report import Verification
from .verify import verify

__all__ = ["Verification", "verify"]
