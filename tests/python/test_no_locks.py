"""A file system without file locks: everything is written, with one warning, and without waiting."""

import errno
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

import fxtap

CODE = """
    import logging, torch, fxtap
    torch.set_num_threads(1)
    options = {"data_dump.type": "npy", "data_dump.path": "out"}
    compiled = torch.compile(lambda x: x * 2, backend="fxtap", options=options)
    for size in (2, 3, 3):
        compiled(torch.ones(size))
    print(sum(len(graph.steps) for graph in fxtap.open("out").graphs), fxtap.open("out").warnings)
    """


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.EACCES])
def test_files_and_index_without_locks(number: int, tmp_path: Path) -> None:
    source = Path(__file__).with_name("no_locks.c")
    library = tmp_path / "no_locks.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(CODE)],
        cwd=tmp_path,
        env={**os.environ, "LD_PRELOAD": str(library), "LOCK_ERRNO": str(number)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "3 []\n"
    assert done.stderr.count("the file system has no locks") == 1
    assert time.monotonic() - began < 50
    dump = fxtap.open(tmp_path / "out")
    assert dump.kind == "indexed" and len(dump.tensors()) == 9
    assert not list(tmp_path.rglob("*.partial")) and len(list(tmp_path.rglob("fxtap.db*"))) == 1
