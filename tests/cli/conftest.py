"""Fixtures of the program's tests: the binary, and freshly unpacked dumps."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from program_run import Run

DATA = Path(__file__).resolve().parent.parent / "data"


@pytest.fixture(scope="session")
def program() -> str:
    """Return the path of the binary: $FXTAP_PROGRAM, otherwise fxtap in PATH."""
    found = os.environ.get("FXTAP_PROGRAM") or shutil.which("fxtap")
    if not found:
        pytest.skip("no fxtap program: set FXTAP_PROGRAM")
    return str(Path(found).resolve())


@pytest.fixture
def run(program: str, tmp_path: Path) -> Run:
    """Return a function that runs the program in the test's folder and returns its status, output and messages."""

    def run(*arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "COLUMNS": "80", **variables}
        return subprocess.run(
            [program, *map(str, arguments)],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            timeout=60,
            check=False,
        )

    return run


def unpack(archive: Path, folder: Path) -> None:
    """Unpack one of the project's own archives."""
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="fully_trusted")


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Unpack an indexed dump of two complete steps and a failed one; step 1 overflows, the failed one has a NaN."""
    unpack(DATA / "dumps" / "small.tar.gz", tmp_path)
    return tmp_path / "small"


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """Unpack a dump of TorchAir's own, without an index: four operators, two steps."""
    unpack(DATA / "torchair" / "dumps" / "toy.tar.gz", tmp_path)
    (tmp_path / "worldsize1_global_rank0").rename(tmp_path / "toy")
    root = tmp_path / "torchair"
    root.mkdir()
    (tmp_path / "toy").rename(root / "worldsize1_global_rank0")
    return root
