"""Registers the device with this process, and gives each test an empty folder."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

if os.environ.get("NPU_WITHOUT_EXCHANGE"):
    del torch.Tensor.__dlpack_c_exchange_api__  # as in a torch that has no such table

import npu

npu.register()
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def empty_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("FXTAP_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    torch._dynamo.reset()
    torch.manual_seed(0)


@pytest.fixture(params=["at once", "queued"])
def kernels(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run a test with kernels run at once, and with queued ones."""
    torch.ops.npu_test.set_delay(1000 if request.param == "queued" else -1)
    yield
    torch.ops.npu_test.set_delay(-1)
