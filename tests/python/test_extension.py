"""The extension repeated ten thousand times without a leak, and with every allocation failing once."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from extension_calls import Call, all_calls
from fxtap import _core

MANY = 10_000
WRITING = {"call with files", "call with statistics", "Dump"}  # remember what they wrote: a few bytes per step
SECONDS = 0.1


HEAP = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "used", "free", "keep")


class Heap(ctypes.Structure):
    """glibc's struct mallinfo2."""

    _fields_ = [(name, ctypes.c_size_t) for name in HEAP]


def heap_bytes() -> int:
    info = ctypes.CDLL(None).mallinfo2
    info.restype = Heap
    heap = info()
    return int(heap.used + heap.hblkhd)


def in_use() -> tuple[int, int, int, int]:
    """Count collected objects, pymalloc's blocks, bytes of malloc, and references to singletons."""
    gc.collect()
    singletons = (None, True, False, (), "", 0, 1, _core.Graph, _core.Report, _core.Reader, _core.Program)
    return len(gc.get_objects()), sys.getallocatedblocks(), heap_bytes(), sum(map(sys.getrefcount, singletons))


def repeat(call: Call, most: int, seconds: float) -> int:
    end = time.monotonic() + seconds
    n = 0
    while n < most and (n < 50 or time.monotonic() < end):
        call()
        n += 1
    return n


def leaks(call: Call, seconds: float) -> str:
    """Return what grows with every call. A leak occurs each time, so the smallest of three results counts."""
    repeat(call, 50, 0)
    found = ""
    for _ in range(3):
        before = in_use()
        n = repeat(call, MANY, seconds)
        grown = [b - a for a, b in zip(before, in_use(), strict=True)]
        limits = (n // 2, n // 2, 8 * n + 4096, n // 2)
        names = ("objects", "blocks", "bytes", "references")
        found = ", ".join(f"{g} {name}" for g, name, limit in zip(grown, names, limits, strict=True) if g > limit)
        if not found:
            return ""
        found = f"{n} calls leave {found}"
    return found


@pytest.fixture
def frozen() -> Iterator[None]:
    """Exclude existing objects, most of them PyTorch's, from the collections that follow."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def check_leaks(folder: Path, seconds: float) -> None:
    found = {name: leaks(call, seconds) for name, call in all_calls(folder).items() if name not in WRITING}
    assert not {name: text for name, text in found.items() if text}


@pytest.mark.usefixtures("frozen")
def test_nothing_leaks(tmp_path: Path) -> None:
    check_leaks(tmp_path, SECONDS)


@pytest.mark.long
@pytest.mark.usefixtures("frozen")
def test_nothing_leaks_in_ten_thousand_calls(tmp_path: Path) -> None:
    check_leaks(tmp_path, 60)


@pytest.mark.usefixtures("frozen")
def test_a_leak_is_seen() -> None:
    kept: list[object] = []
    assert "objects" in leaks(lambda: kept.append([]), SECONDS)
    if "libasan" not in os.environ.get("LD_PRELOAD", ""):  # which has no mallinfo
        lost = ctypes.CDLL(None).malloc
        assert "bytes" in leaks(lambda: lost(100), SECONDS)
    assert "references" in leaks(lambda: ctypes.pythonapi.Py_IncRef(ctypes.py_object(None)), SECONDS)


# ---- allocations that fail ----

FAIL = """
import ctypes, sys, faulthandler
from pathlib import Path
sys.path.insert(0, {tests!r})
import _testcapi
from extension_calls import all_calls
from fxtap import _core

faulthandler.enable()
fail = ctypes.CDLL(None).fail_allocation if {way!r} == "library" else None
if fail is not None:
    fail.argtypes = [ctypes.c_size_t, ctypes.c_size_t, ctypes.c_long]
    maps = [line.split()[0] for line in open("/proc/self/maps") if line.rstrip().endswith(Path(_core.__file__).name)]
    first, last = int(maps[0].split("-")[0], 16), int(maps[-1].split("-")[1], 16)

def arm(n):
    if fail is not None:
        fail(first, last, n)
    else:
        _testcapi.set_nomemory(n, n + 1)

def disarm():
    if fail is not None:
        return bool(fail(0, 0, -1))
    _testcapi.remove_mem_hooks()
    return False

def attempt(call, n):
    error = None
    arm(n)
    try:
        call()
    except MemoryError:
        error = "MemoryError"
    except BaseException as caught:
        disarm()
        error = repr(caught)
    pending = disarm()
    return error, pending

TORCH = ("record", "Program", "call", "Dump") # PyTorch's bindings crash without memory, whoever calls them
failures = 0
for name, call in all_calls(Path(sys.argv[1])).items():
    if {way!r} == "python" and name.startswith(TORCH):
        continue
    print(name, file=sys.stderr, flush=True)
    for _ in range(3):
        call()
    untouched = n = 0
    while n < {most} and untouched < 20:
        error, pending = attempt(call, n)
        if error not in (None, "MemoryError"):
            print(name, n, error)
        untouched = untouched + 1 if error is None else 0
        failures += error is not None
        if pending:
            break
        n += 1 if n < {every} else 1 + n // {every}
    call()
print(failures, "failures", file=sys.stderr)
"""


def fail_allocations(way: str, folder: Path, environment: dict[str, str], most: int, every: int) -> None:
    code = FAIL.format(tests=str(Path(__file__).parent), way=way, most=most, every=every)
    done = subprocess.run(
        [sys.executable, "-c", code, folder],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=3000,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == ""
    assert int(done.stderr.split()[-2]) > 100


@pytest.fixture
def preloaded(tmp_path: Path) -> dict[str, str]:
    if "libasan" in os.environ.get("LD_PRELOAD", ""):
        pytest.skip("AddressSanitizer brings an allocator of its own")
    library = tmp_path / "fail_allocation.so"
    source = Path(__file__).with_name("fail_allocation.c")
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, source], check=True)
    return {"LD_PRELOAD": str(library)}


def test_every_allocation_of_the_library_fails_once(tmp_path: Path, preloaded: dict[str, str]) -> None:
    fail_allocations("library", tmp_path, preloaded, most=100_000, every=30)


def test_every_allocation_of_python_fails_once(tmp_path: Path) -> None:
    pytest.importorskip("_testcapi")
    fail_allocations("python", tmp_path, {}, most=100_000, every=60)


@pytest.mark.long
def test_every_single_allocation_of_the_library_fails_once(tmp_path: Path, preloaded: dict[str, str]) -> None:
    fail_allocations("library", tmp_path, preloaded, most=1_000_000, every=1_000_000)
