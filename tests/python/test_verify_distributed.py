"""torchrun ... -m fxtap verify: any number of processes write the same reports as one, byte for byte."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from fxtap import _core
from fxtap.distributed import run_sharded
from graphs import trace
from planted import Saboteur
from processes import launch

FORMS = ("json", "csv", "html")


@pytest.fixture(scope="session")
def program() -> str:
    found = os.environ.get("FXTAP_PROGRAM") or shutil.which("fxtap")
    if not found:
        pytest.skip("no fxtap program: set FXTAP_PROGRAM")
    return str(Path(found).resolve())


def model(x: torch.Tensor) -> torch.Tensor:
    for _ in range(3):
        x = (x @ x.t()).softmax(-1) @ x + x.sin()
    return x


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a dump of two ranks with two graphs of two steps; one operator is wrong on rank 1."""
    root = tmp_path_factory.mktemp("verified") / "target"
    gms = [trace(model, torch.randn(4, 5)), trace(lambda x: model(x).relu(), torch.randn(4, 5))]
    for rank in range(2):
        handle = _core.Dump(str(root), world_size=2, rank=rank)
        programs = [_core.Program(gm, _core.record(gm), handle, number) for number, gm in enumerate(gms, 1)]
        for step in range(2):
            for number, compiled in enumerate(programs):
                generator = torch.Generator().manual_seed(100 * rank + 10 * number + step)
                x = torch.randn(4, 5, generator=generator)
                with torch.no_grad():
                    if (rank, number, step) == (1, 1, 0):
                        with Saboteur(4, functools.partial(torch.mul, 1.5)):
                            compiled([x])
                    else:
                        compiled([x])
        handle.close()
    return root


def reports(folder: Path, text: bytes) -> dict[str, bytes]:
    return {"text": text, **{form: (folder / f"r.{form}").read_bytes() for form in FORMS}}


def by_one(program: str, folder: Path, arguments: Sequence[str]) -> tuple[int, dict[str, bytes]]:
    folder.mkdir(parents=True)
    done = subprocess.run(
        [program, "verify", *arguments],
        cwd=folder,
        env={**os.environ, "FXTAP_PYTHON": sys.executable},
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert done.stderr == b""
    return done.returncode, reports(folder, done.stdout)


@pytest.mark.parametrize("n", [2, 3])
def test_any_number_of_processes_is_as_one(
    n: int, program: str, target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FXTAP_PYTHON", sys.executable)
    arguments = [str(target), *(item for form in FORMS for item in (f"--{form}", f"r.{form}"))]
    status, expected = by_one(program, tmp_path / "one", [*arguments, "--jobs", "1"])
    assert status == 1 and expected["text"].startswith(b"WRONG") and len(expected["csv"].splitlines()) > 40
    assert launch(n, tmp_path / "many", run_sharded, program, "verify", arguments) == [1] * n
    for rank in range(n):
        assert (tmp_path / "many" / f"err.{rank}").read_bytes() == b""
        assert rank == 0 or (tmp_path / "many" / f"out.{rank}").read_bytes() == b""
    found = reports(tmp_path / "many", (tmp_path / "many" / "out.0").read_bytes())
    for form, data in expected.items():
        assert found[form] == data, form


def test_trouble_is_said_once(program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FXTAP_PYTHON", sys.executable)
    assert launch(2, tmp_path, run_sharded, program, "verify", ["nowhere"]) == [2, 2]
    lines = [(tmp_path / f"err.{rank}").read_text() for rank in range(2)]
    assert "nowhere" in lines[0] and lines[0].count("\n") == 1 and lines[1] == ""
