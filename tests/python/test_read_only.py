"""Reading a dump never writes into it, whether it is complete or was left by a killed process with its log."""

import hashlib
import os
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import fxtap
from dumps import graphs, python, run

PROGRAM = os.environ.get("FXTAP_PROGRAM") or shutil.which("fxtap") or "fxtap"
INDEX = "worldsize1_global_rank0/fxtap.db"

KILLED = """
    import os, signal, sys, torch, fxtap
    from dumps import dumping
    model = torch.compile(lambda x: x.relu() * 2, backend=dumping(sys.argv[1]))
    model(torch.ones(4)), model(torch.ones(4))
    os.kill(os.getpid(), signal.SIGKILL)
"""


def state(root: Path) -> dict[str, tuple[int, int, str]]:
    """Return mode, modification time and SHA-256 of every file and folder."""
    return {
        str(path.relative_to(root)): (
            path.stat().st_mode,
            path.stat().st_mtime_ns,
            "" if path.is_dir() else hashlib.sha256(path.read_bytes()).hexdigest(),
        )
        for path in [root, *root.rglob("*")]
    }


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that another user may enter, unlike pytest's own."""
    path = Path(tempfile.mkdtemp(prefix="fxtap-read-only-"))
    path.chmod(0o755)
    yield path
    subprocess.run(["chmod", "-R", "u+w", path], check=True)
    shutil.rmtree(path)


def enlarge(index: Path) -> None:
    """Grow the index so that reading all of it for each graph would be noticeable."""
    with sqlite3.connect(index) as database:
        database.execute("UPDATE node SET stack = hex(zeroblob(600000))")
    database.close()


def make(kind: str, root: Path) -> None:
    """Write a dump: "whole", "large", "killed" (with its log) or "copied" (the same, without the log's map)."""
    if kind in ("whole", "large"):
        run(root, lambda x: x.relu() * 2, torch.ones(4))
        run(root, lambda x: x.exp(), torch.ones(4))
        if kind == "large":
            enlarge(root / INDEX)
        return
    done = python(KILLED, Path(__file__).parent, str(root))
    assert done.returncode == -9, done.stderr
    assert Path(f"{root / INDEX}-wal").exists()
    if kind == "copied":
        Path(f"{root / INDEX}-shm").unlink()


def read(root: Path, user: int | None) -> None:
    """Read the dump through every interface."""
    file = next(root.rglob("*.npy"))
    for command in (
        ["ls", root],
        ["ls", root, "--json"],
        ["show", root, "relu"],
        ["check", root],
        ["graph", graphs(root)[0]],
    ):
        subprocess.run([PROGRAM, *command], check=True, capture_output=True, user=user, cwd="/")
    for command in (["compare", root, root, "--read-all"], ["stat", file]):
        subprocess.run([PROGRAM, *command], check=True, capture_output=True, user=user, cwd="/")


@pytest.mark.parametrize("kind", ["whole", "large", "killed", "copied"])
def test_nothing_is_written(kind: str, folder: Path) -> None:
    root = folder / "dump"
    make(kind, root)
    before = state(root)
    read(root, None)
    assert state(root) == before
    dump = fxtap.open(root)
    assert len(dump.tensors()) > 0
    assert not dump.warnings
    for tensor in dump.tensors():
        if tensor.path is not None:
            tensor.numpy()
    assert fxtap.compare(root, root).verdict == "same"
    assert state(root) == before


@pytest.mark.parametrize("kind", ["whole", "large", "killed", "copied"])
def test_a_folder_that_may_not_be_written(kind: str, folder: Path) -> None:
    root = folder / "dump"
    make(kind, root)
    subprocess.run(["chmod", "-R", "a-w,a+rX", root], check=True)
    before = state(root)
    read(root, 65534 if os.geteuid() == 0 else None)
    assert state(root) == before
