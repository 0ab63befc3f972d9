"""The examples in C and C++, built by CMake, do what they claim; so does the program of docs/from-c.md."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from documents import HOME, blocks
from program_run import Run, strict_json

EXAMPLES = HOME / "examples"

pytestmark = pytest.mark.skipif("FXTAP_BUILD" not in os.environ, reason="no build folder")


def build() -> Path:
    return Path(os.environ["FXTAP_BUILD"])


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with PyTorch's dump of the model, `golden`, and its `weights`."""
    folder = tmp_path_factory.mktemp("block")
    command = [sys.executable, EXAMPLES / "block.py", folder]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return folder


def example(name: str, *arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [build() / "examples" / f"example_{name}", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **options)


def compared(run: Run, golden: Path, target: Path, *options: object) -> tuple[int, dict[str, Any]]:
    done = run("compare", golden, target, "--json", "report.json", *options)
    return done.returncode, strict_json((target.parent / "report.json").read_text())


def test_the_same_model_in_c(golden: Path, run: Run, tmp_path: Path) -> None:
    done = example("block", golden / "weights", tmp_path / "c")
    assert done.returncode == 0, done.stderr
    status, report = compared(run, golden / "golden", tmp_path / "c")
    assert (status, report["origins"]) == (0, [])
    assert report["counts"]["same"] + report["counts"]["close"] == 25


@pytest.mark.parametrize(("bug", "node"), [("eps", "native_layer_norm"), ("gelu", "gelu"), ("transpose", "t")])
def test_a_bug_in_c_is_named(bug: str, node: str, golden: Path, run: Run, tmp_path: Path) -> None:
    assert example("block", golden / "weights", tmp_path / "c", "--bug", bug).returncode == 0
    status, report = compared(run, golden / "golden", tmp_path / "c")
    assert status == 1
    assert [origin["node"] for origin in report["origins"]] == [node]


MAP = ("--map", EXAMPLES / "fused.map")


def test_fused_operators(golden: Path, run: Run, tmp_path: Path) -> None:
    assert example("fused", golden / "weights", tmp_path / "fused").returncode == 0
    _, report = compared(run, golden / "golden", tmp_path / "fused", *MAP)
    pairs = {
        pair["node"]: pair["verdict"] for pair in report["pairs"] if pair["verdict"] in ("same", "close", "different")
    }
    assert set(pairs) == {"addmm", "add"} and "different" not in pairs.values()


@pytest.mark.parametrize(("bug", "node"), [("eps", "addmm"), ("gelu", "add")])
def test_a_bug_in_a_fused_operator(bug: str, node: str, golden: Path, run: Run, tmp_path: Path) -> None:
    assert example("fused", golden / "weights", tmp_path / "fused", "--bug", bug).returncode == 0
    status, report = compared(run, golden / "golden", tmp_path / "fused", *MAP)
    assert status == 1
    assert [origin["node"] for origin in report["origins"]] == [node]


def server(folder: Path, *arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    if not (build() / "examples" / "example_server").exists():
        pytest.skip("built without C++")
    return example("server", folder, *arguments, **options)


def test_runs_of_a_server_pair_by_request(run: Run, tmp_path: Path) -> None:
    for name in ("first", "second"):
        done = server(tmp_path / name, 60, 4)
        assert (done.returncode, done.stdout, done.stderr) == (0, "served 60 requests\n", "")
    status, report = compared(run, tmp_path / "first", tmp_path / "second")
    assert (status, report["counts"]["same"]) == (0, 240)


def test_a_server_goes_on_without_room(run: Run, tmp_path: Path) -> None:
    """With a file size limit of 384 KiB, which the index reaches after some requests."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (384 << 10, resource.RLIM_INFINITY))

    done = server(tmp_path / "dump", 5000, 4, preexec_fn=limit)
    assert (done.returncode, done.stdout) == (0, "served 5000 requests\n")
    assert re.fullmatch(r"example_server: no more dumps: cannot write the index .*: File too large\n", done.stderr)
    folders = [path.name for path in (tmp_path / "dump").glob("*/graph_1/*")]
    assert sum(name.isdecimal() for name in folders) > 10
    assert not list((tmp_path / "dump").glob("*/graph_1/.*.partial"))


def test_the_program_of_the_page(run: Run, tmp_path: Path) -> None:
    (text,) = [text for _, language, text in blocks((HOME / "docs" / "from-c.md").read_text()) if language == "c"]
    (tmp_path / "program.c").write_text(text)
    library = build() / "src" / "libfxtap.a"
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{HOME / 'include'}"]
    command = ["cc", *flags, "program.c", "-o", "program", library, "-lsqlite3", "-pthread", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=60)
    subprocess.run([tmp_path / "program"], cwd=tmp_path, check=True, timeout=60)
    done = run("ls", "mine")
    assert done.returncode == 0 and re.search(r"^ *1 +relu +aten\.relu +f32\[3\]", done.stdout, re.M), done.stdout
