"""`fxtap run` end to end: an unedited script, PyTorch, and a dump that the other commands read."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import sys
import torch

@torch.compile
def model(x, w):
    return torch.relu(x @ w) - 1

x = torch.ones(2, 3)
for step in range(int(sys.argv[1])):
    print(model(x, torch.eye(3)).sum().item())
sys.exit(5)
"""


def test_an_unedited_script(program: str, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)

    def fxtap(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "COLUMNS": "80"}
        return subprocess.run(
            [program, *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    done = fxtap("run", "--python", sys.executable, "-p", "out", "-f", "*relu*", "-f", "sub", "script.py", "2")
    assert (done.returncode, done.stdout) == (5, "0.0\n0.0\n"), done.stderr
    steps = sorted((tmp_path / "out" / "worldsize1_global_rank0" / "graph_1").iterdir())
    assert [step.name for step in steps] == ["0", "1"]
    names = {path.name.split(".2")[0] for path in steps[0].glob("*.npy")}
    assert names == {
        "relu-aten.relu.default.INPUT.0",
        "relu-aten.relu.default.OUTPUT.0",
        "sub-aten.sub.Tensor.INPUT.0",
        "sub-aten.sub.Tensor.INPUT.1",
        "sub-aten.sub.Tensor.OUTPUT.0",
    }
    listed = fxtap("ls", "out")
    assert listed.returncode == 0 and "relu" in listed.stdout and "sub" in listed.stdout and "mm" not in listed.stdout
    shown = fxtap("show", "out", "sub")
    assert shown.returncode == 0 and "script.py:7" in shown.stdout
    checked = fxtap("check", "out")
    assert checked.returncode == 0 and checked.stdout.startswith("10 files checked")


def test_statistics_alone(program: str, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [program, "run", "--python", sys.executable, "-t", "stats", "-p", "out", "script.py", "1"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 5, done.stderr
    assert [path.name for path in (tmp_path / "out").rglob("*") if path.is_file()] == ["fxtap.db"]
    checked = subprocess.run(
        [program, "check", tmp_path / "out"], capture_output=True, text=True, timeout=60, check=False
    )
    assert (checked.returncode, checked.stdout) == (0, "no files to check\n")


def test_verification(program: str, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [program, "run", "--python", sys.executable, "--type=verify", "-p", "out", "script.py", "1"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 5, done.stderr
    assert "fxtap: NOTHING WRONG" in done.stderr and "NOTHING" not in done.stdout
    assert [path.name for path in (tmp_path / "out").rglob("*") if path.is_file()] == ["fxtap.db"]


def test_a_python_without_fxtap(program: str, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("print('ran')\n")
    bare = tmp_path / "python-bare"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n')
    bare.chmod(0o755)
    (tmp_path / "fxtap").mkdir()  # like a clone in the working directory: not a package
    for how in (["--python", str(bare)], []):
        done = subprocess.run(
            [program, "run", *how, "script.py"],
            cwd=tmp_path, env={**os.environ, "FXTAP_PYTHON": str(bare)}, capture_output=True, text=True, timeout=60,
            check=False,
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"fxtap: {bare} has no module fxtap: install it there")
        assert "--python or FXTAP_PYTHON" in done.stderr and done.stderr.count("\n") == 1


def test_a_script_that_raises(program: str, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("raise ValueError('the script says so')\n")
    done = subprocess.run(
        [program, "run", "--python", sys.executable, "script.py"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 1 and done.stderr.endswith("ValueError: the script says so\n")
    assert not (tmp_path / "worldsize1_global_rank0").exists()
