"""The device "npu" of npu.cpp: its build and its registration with torch, once a process."""

from __future__ import annotations

import contextlib
import fcntl
import types
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import torch

HERE = Path(__file__).parent
BUILD = HERE.parent.parent / "build" / "device"


class HostCopy(NamedTuple):
    """A copy from a device to the host."""

    address: int
    n_bytes: int
    device: int


def build() -> Path:
    """Compile the extension if its source or torch changed; processes take turns."""
    from torch.utils.cpp_extension import load

    folder = BUILD / torch.__version__
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / "npu_device.so"
    with (folder / "turn").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not library.exists() or library.stat().st_mtime < (HERE / "npu.cpp").stat().st_mtime:
            load("npu_device", [str(HERE / "npu.cpp")], extra_cflags=["-O0", "-g0"], build_directory=str(folder),
                 is_python_module=False)  # fmt: skip
    return library


class _Device(contextlib.ContextDecorator):
    def __init__(self, device: int | str | torch.device) -> None:
        self.index = device if isinstance(device, int) else torch.device(device).index or 0

    def __enter__(self) -> None:
        self.previous = torch.ops.npu_test.current_device()
        torch.ops.npu_test.set_device(self.index)

    def __exit__(self, *_: object) -> None:
        torch.ops.npu_test.set_device(self.previous)


def register() -> None:
    torch.ops.load_library(str(build()))
    ops = torch.ops.npu_test
    module = types.ModuleType("torch.npu")
    vars(module).update(
        device=_Device, is_available=lambda: True, is_initialized=lambda: True, _lazy_init=lambda: None,
        _is_in_bad_fork=ops.is_forked, device_count=lambda: 2, current_device=ops.current_device,
        set_device=lambda device: ops.set_device(_Device(device).index),
        synchronize=lambda device=None: ops.synchronize(),
        manual_seed=lambda seed: None, manual_seed_all=lambda seed: None,
        get_rng_state=lambda device="npu": torch.get_rng_state(),
        set_rng_state=lambda state, device="npu": torch.set_rng_state(state),
        get_amp_supported_dtype=lambda: [torch.float16, torch.bfloat16],
        current_stream=lambda device=None: torch.Stream(device="npu"),
    )  # fmt: skip
    torch.utils.rename_privateuse1_backend("npu")
    torch._register_device_module("npu", module)
    torch.utils.generate_methods_for_privateuse1_backend(for_tensor=True, for_module=True, for_storage=True)


def take_host_copies() -> list[HostCopy]:
    """Return the copies to the host since the last call."""
    numbers = torch.ops.npu_test.take_host_copies()
    return [HostCopy(*numbers[i : i + 3]) for i in range(0, len(numbers), 3)]


@contextlib.contextmanager
def queued(delay_us: int = 2000) -> Iterator[None]:
    """Queue the work of the devices, each piece delayed; what is read before it has run is poison."""
    torch.ops.npu_test.set_delay(delay_us)
    try:
        yield
    finally:
        torch.ops.npu_test.set_delay(-1)
