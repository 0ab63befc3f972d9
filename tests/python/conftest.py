"""Fixtures of the Python tests."""

import os
from collections.abc import Iterator

import pytest
import torch

os.environ.setdefault("HF_HUB_OFFLINE", "1")


@pytest.fixture(autouse=True)
def clean_slate(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Reset the compiler, seed torch with 0, and remove FXTAP_ variables before each test."""
    for name in [name for name in os.environ if name.startswith("FXTAP_")]:
        monkeypatch.delenv(name)
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()
