"""The wheel: its contents, and that it runs in a separate environment."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent

pytestmark = pytest.mark.long


def call(*words: object, cwd: Path) -> str:
    """Return the output of a command that must succeed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("FXTAP_", "PYTHON"))}
    done = subprocess.run(
        list(map(str, words)), cwd=cwd, env=environment, capture_output=True, text=True, timeout=580, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_wheel(tmp_path: Path) -> None:
    pytest.importorskip("scikit_build_core")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    build = f"build-dir={tmp_path / 'build'}"
    call(*pip, "wheel", ROOT, "--no-build-isolation", "--no-deps", "-w", tmp_path, "-C", build, cwd=tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.startswith("fxtap-") and "-cp311-abi3-linux_" in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {"fxtap/__init__.py", "fxtap/_core.abi3.so", "fxtap/_core.pyi", "fxtap/py.typed"} <= set(names)
    assert "fxtap/data/operators.tsv" in names
    assert [name for name in names if name.endswith(".data/scripts/fxtap")]
    assert not [name for name in names if name.startswith(("tests/", "src/", "include/"))]

    call(sys.executable, "-m", "venv", "--without-pip", "env", cwd=tmp_path)
    python = tmp_path / "env" / "bin" / "python"
    site = Path(call(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=tmp_path).strip())
    call(*pip, "--python", python, "install", "--no-deps", "--no-index", wheel, cwd=tmp_path)
    (site / "torch.pth").write_text(sysconfig.get_path("purelib") + "\n")  # PyTorch is not installed again
    program = tmp_path / "env" / "bin" / "fxtap"
    (tmp_path / "script.py").write_text(
        "import torch, fxtap\nprint(fxtap.__file__)\nprint(torch.compile(torch.sin)(torch.zeros(2)).tolist())\n"
    )
    printed = call(program, "run", "-p", "out", "script.py", cwd=tmp_path)
    assert printed == f"{site / 'fxtap' / '__init__.py'}\n[0.0, 0.0]\n"
    assert "aten.sin" in call(program, "ls", "out", cwd=tmp_path)
    options = "{'data_dump.type': 'npy', 'data_dump.path': 'named'}"
    by_name = f"torch.compile(torch.sin, backend='fxtap', options={options})(torch.zeros(2))"
    call(python, "-c", f"import torch; {by_name}", cwd=tmp_path)  # the name is an entry point
    assert len(list((tmp_path / "named").rglob("*.npy"))) == 2
