"""A dump without space: a full file system, a quota, a limit on the file size."""

from __future__ import annotations

import errno
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import fxtap
from dumps import python

MEBI = 1 << 20

FILL = '''
import ctypes, os, signal, sys, torch, fxtap
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
n_turns, kind, n_values = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
options = {"data_dump.type": "stats" if kind == "stats" else "npy", "data_dump.sync": kind == "sync"}
options["data_dump.path"] = "place/out"
model = torch.compile(lambda x: [x + k for k in range(4)], backend="fxtap", options=options)
model(torch.zeros(16))
mounted = os.stat("place/").st_dev != os.stat(".").st_dev
filler = open("place/filler", "wb", buffering=0)
before = len(os.listdir("/proc/self/fd"))
def fill_to_the_brim():
    """Write until not a byte is left; clean pages want room anew when written again where the file system copies."""
    for n_bytes in (1 << 16, 1 << 12, 1 << 8, 1):
        try:
            while filler.write(os.urandom(n_bytes)):
                pass
        except OSError:
            ctypes.CDLL(None).syncfs(filler.fileno())

for turn in range(n_turns):
    if mounted and turn == n_turns // 2:
        fill_to_the_brim()
    x = torch.rand(n_values)
    try:
        assert model(x)[3][7] == x[7] + 3
    except OSError as error:
        print(error.errno, error.filename)
    assert len(os.listdir("/proc/self/fd")) <= before
os.unlink("place/ballast")
os.unlink("place/filler")
filler.close()
model(torch.ones(16))
print("went on")
'''


def command(*words: object) -> bool:
    """Run a command of the system; return whether it succeeded."""
    return subprocess.run(list(map(str, words)), capture_output=True, check=False).returncode == 0


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """Provide a mount point, and unmount it afterwards."""
    folder = tmp_path / "place"
    folder.mkdir()
    yield folder
    if folder.is_mount():
        subprocess.run(["umount", folder], check=True)


def fill_tmpfs(place: Path) -> Path:
    """Mount a file system of 1 MiB."""
    if not command("mount", "-t", "tmpfs", "-o", "size=1m", "fxtap-test", place):
        pytest.skip("needs root: no tmpfs can be mounted here")
    return place


def limit_btrfs(place: Path) -> Path:
    """Mount a file system with a user quota of 4 MiB."""
    if shutil.which("mkfs.btrfs") is None:
        pytest.skip("btrfs-progs is not installed")
    image = place.parent / "image"
    with image.open("wb") as file:
        file.truncate(128 * MEBI)
    made = command("mkfs.btrfs", "-q", "-M", image) and command("mount", "-o", "loop", image, place)
    if not made or not command("btrfs", "quota", "enable", place):
        pytest.skip("needs root: no file system with quotas can be mounted here")
    part = place / "part"
    assert command("btrfs", "subvolume", "create", part) and command("btrfs", "qgroup", "limit", "4M", part)
    return part


def check_whatever_is_there(root: Path, n_failed: int, n_whole: int, *, with_files: bool = True) -> None:
    """Check that every file under a final name is complete, and that the index has the right state of each step."""
    dump = fxtap.open(root)
    steps = [step for graph in dump.graphs for step in graph.steps]
    states = [step.state for step in steps]
    assert states.count("whole") == n_whole
    assert states.count("failed") + states.count("partial") <= n_failed  # no space for a folder or a name
    assert len(states) <= n_failed + n_whole
    for path in root.rglob("*.npy"):
        assert np.load(path, allow_pickle=False).shape in [(), (16,), (20_000,), (300_000,)]
    if not with_files:
        return
    last = max(steps, key=lambda step: int(step.call)).tensors(io="OUTPUT")
    assert [tensor.numpy().tolist() for tensor in last] == [[float(k)] * 16 for k in range(1, 5)]


@pytest.mark.parametrize(
    ("prepare", "ballast", "expected", "kind"),
    [
        (fill_tmpfs, 100_000, errno.ENOSPC, "async"),
        (fill_tmpfs, 100_000, errno.ENOSPC, "sync"),
        (limit_btrfs, 3_000_000, errno.EDQUOT, "async"),
        (limit_btrfs, 3_000_000, errno.EDQUOT, "stats"),
    ],
    ids=["full-async", "full-sync", "quota-async", "quota-stats"],
)
def test_no_room(prepare: object, ballast: int, expected: int, kind: str, place: Path, tmp_path: Path) -> None:
    assert callable(prepare)
    folder = prepare(place)
    (folder / "ballast").write_bytes(np.random.default_rng(0).bytes(ballast))
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "place").symlink_to(folder)
    done = python(FILL, tmp_path / "work", "8", kind, "20000")
    assert done.returncode == 0, done.stderr
    *failures, last = done.stdout.splitlines()
    assert last == "went on" and len(failures) >= 3, done.stderr
    for line in failures:
        number, filename = line.split(maxsplit=1)
        assert int(number) == expected and filename.startswith(str(folder / "out"))
    check_whatever_is_there(folder / "out", len(failures), 10 - len(failures), with_files=kind != "stats")


LIMIT = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, ({}, resource.RLIM_INFINITY))\n"


@pytest.mark.parametrize("kind", ["async", "sync"])
def test_file_size_limit(kind: str, tmp_path: Path) -> None:
    (tmp_path / "place").mkdir()
    (tmp_path / "place" / "ballast").touch()
    done = python(LIMIT.format(MEBI) + FILL, tmp_path, "3", kind, "300000")
    assert done.returncode == 0, done.stderr
    *failures, last = done.stdout.splitlines()
    assert last == "went on" and len(failures) == 3
    for line in failures:
        number, filename = line.split(maxsplit=1)
        assert int(number) == errno.EFBIG and filename.startswith(str(tmp_path / "place" / "out"))
        assert filename.endswith(".npy")
    check_whatever_is_there(tmp_path / "place" / "out", 3, 2)


def test_index_over_the_limit(tmp_path: Path) -> None:
    code = """
import signal, torch, fxtap
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
options = {"data_dump.type": "stats", "data_dump.path": "out"}
try:
    torch.compile(torch.sin, backend="fxtap", options=options)(torch.zeros(16))
except OSError as error:
    print(error.errno, error.filename)
"""
    done = python(LIMIT.format(40_000) + code, tmp_path)
    assert done.stdout == f"{errno.EFBIG} {tmp_path}/out/worldsize1_global_rank0/fxtap.db\n", done.stderr
