"""Damaged, hostile and foreign files and trees: one line each, and the rest is still read."""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
import sqlite3
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest

from program_run import Run, strict_json

RANK = "worldsize1_global_rank0"


def damaged(folder: Path, name: str) -> Path:
    """Return one file of step 0, writable and with one name."""
    path = next((folder / RANK / "graph_1" / "0").glob(f"{name}.*"))
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("size", [0, 5, 9, 127, 151])
def test_cut_files_are_named_and_the_others_still_read(size: int, run: Run, small: Path) -> None:
    path = damaged(small, "mul-aten.mul.Scalar.INPUT.0")
    os.truncate(path, size)
    done = run("check", small)
    assert done.returncode == 1
    assert "damaged" in done.stdout
    assert path.name in done.stdout.replace("\n", "")
    assert run("show", small, "mul", "--step", "0").returncode == 2
    assert "OUTPUT.0  f32[2, 3]" in run("show", small, "mul", "--step", "0").stdout
    assert run("ls", small).returncode == 0
    done = run("stat", path, next(path.parent.glob("*OUTPUT*")))
    assert done.returncode == 2
    assert str(path) in done.stderr
    assert "f32" in done.stdout


def test_every_kind_of_damage(run: Run, small: Path) -> None:
    step = small / RANK / "graph_1" / "0"
    shutil.rmtree(small / RANK / "graph_1" / "2.failed-0")
    with sqlite3.connect(small / RANK / "fxtap.db") as index:
        index.execute("DELETE FROM tensor WHERE step_id = 3")
        index.execute("DELETE FROM step WHERE id = 3")
    index.close()
    assert run("check", small).returncode == 0
    assert run("check", small, "--strict").returncode == 1
    damaged(small, "mul-aten.mul.Scalar.INPUT.0").unlink()
    with damaged(small, "sum_1-aten.sum.default.OUTPUT.0").open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\x43")
    with damaged(small, "mul-aten.mul.Scalar.OUTPUT.0").open("ab") as file:
        file.write(b"more")
    np.save(step / "extra.npy", np.zeros(3))
    (small / RANK / "graph_1" / ".9-1.partial").mkdir()
    done = run("check", small, "--json")
    assert done.returncode == 1
    report = json.loads(done.stdout)
    kinds = sorted(p["kind"] for p in report["problems"] if p["kind"] != "non-finite")
    assert kinds == ["changed", "missing", "partial step", "trailing bytes", "unknown"]
    assert run("check", small, "--no-data").returncode == 1


class Hostile:
    """Leaves a mark when unpickled."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (os.system, ("touch marker",))


@pytest.mark.parametrize("descr", ["|O", "O", [("a", "<i4"), ("b", "|O")]])
@pytest.mark.parametrize("shape", [(), (1,), (0,)])
def test_a_pickle_is_refused_and_never_run(descr: object, shape: tuple[int, ...], run: Run, tmp_path: Path) -> None:
    path = tmp_path / "object.npy"
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": shape})
        pickle.dump(Hostile(), file)
    np.save(tmp_path / "plain.npy", np.zeros(shape))
    listed = run("ls", tmp_path)
    assert listed.returncode == 0 and "plain.npy" in listed.stdout
    for arguments, status in (
        (["check", tmp_path], 1),
        (["stat", path], 2),
        (["compare", path, path], 2),
        (["compare", path, "plain.npy"], 2),
    ):
        done = run(*arguments)
        assert done.returncode == status, arguments
        assert re.search(r"object\s+array|structured\s+dtype", done.stdout + done.stderr), arguments
    assert not (tmp_path / "marker").exists()


def header(dictionary: str, version: int = 1, length: int | None = None) -> bytes:
    """Return a header of an .npy file; `length` is the length that it declares."""
    text = dictionary.encode() + b"\n"
    field = (len(text) if length is None else length).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + field + text


def described(descr: str = "'<f4'", shape: str = "(6,)", order: str = "False") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}}}"


HOSTILE = [
    b"",
    b"\x93NUMPY",
    b"\x93NUMPY\x02\x00\xf0\xff\xff\xff",
    b"\x93NUMPY\x03\x00\xff\xff\xff\xff" + b" " * 1000,
    header(described(), version=2, length=1 << 31),
    header(described(shape="(4294967296, 4294967296)")),
    header(described(shape="(9223372036854775807,)")),
    header(described(shape="(2305843009213693952,)", order="True")),
    header(described(shape=f"({'2, ' * 63})")),
    header(described(shape=f"({'1, ' * 9000})")) + bytes(4),
    header(described(shape=f"({'9' * 9000},)")),
    header(described(shape="(6)")),
    header(described(descr="'<ixy'")),
    header(described(descr="''")),
    header(described(descr="'<U4294967295'", shape="(4294967295,)")),
    header(described(descr=f"'<f{'4' * 9000}'")),
    header(described(descr=f"{'[' * 9000}'<f4'{']' * 9000}")),
    header(described(descr=f"'{'<' * 60000}")),
    header(described() + "{" * 60000),
]


@pytest.mark.parametrize("data", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_npy(data: bytes, run: Run, tmp_path: Path) -> None:
    path = tmp_path / "hostile.npy"
    path.write_bytes(data)
    done = run("stat", path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    report = strict_json(run("stat", "--json", path).stdout)
    assert isinstance(report, list)
    assert report[0]["path"] == str(path)
    assert report[0]["error"]


def test_hostile_npy_takes_no_memory(program: str, tmp_path: Path) -> None:
    """All of them at once, with 64 MiB of address space."""
    if b"__asan_init" in Path(program).read_bytes() or b"__tsan_init" in Path(program).read_bytes():
        pytest.skip("sanitisers take more themselves")
    (tmp_path / "files").mkdir()
    for i, data in enumerate(HOSTILE):
        (tmp_path / "files" / f"{i}.npy").write_bytes(data)
    for arguments, status in ((["ls", "files"], 0), (["check", "files"], 1), (["compare", "files", "files"], 2)):
        done = subprocess.run(
            ["prlimit", f"--as={64 << 20}", program, *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == status, done.stderr
        assert "memory" not in done.stderr
        if status == 2:
            assert f"{len(HOSTILE)} cannot be read" in done.stdout
        if status == 1:
            assert f"damaged ({len(HOSTILE)})" in done.stdout


def test_empty_and_unreadable_trees(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = run("ls", "empty")
    assert done.returncode == 2
    assert "neither a dump nor an .npy file" in done.stderr
    (tmp_path / "hollow" / RANK).mkdir(parents=True)
    assert run("ls", "hollow").stdout == "no graphs\n"
    assert run("check", "hollow").returncode == 0


def test_an_index_of_a_later_version(run: Run, small: Path) -> None:
    with sqlite3.connect(small / RANK / "fxtap.db") as index:
        index.execute("PRAGMA user_version = 99")
    index.close()
    for command in ("ls", "check"):
        done = run(command, small)
        assert done.returncode == 2
        assert "index version 99 is not supported" in done.stderr


def test_a_damaged_index_is_a_warning(run: Run, small: Path) -> None:
    (small / RANK / "fxtap.db").write_bytes(b"junk" * 100)
    done = run("ls", small)
    assert done.returncode == 0
    assert "warning: " in done.stderr
    assert "mul" in done.stdout
    done = run("check", small)
    assert done.returncode == 1
    assert "not an SQLite database" in done.stdout


def test_links_inside_are_not_followed(run: Run, small: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(small)
    assert "graph 1" in run("ls", "link").stdout
    graph = small / RANK / "graph_1"
    (graph / "0").rename(tmp_path / "outside")
    (graph / "0").symlink_to(tmp_path / "outside")
    done = run("ls", small, "--step", "0", "--json")
    assert "symbolic link, not followed" in done.stderr
    assert all(tensor["path"] is None for tensor in json.loads(done.stdout)["tensors"])
    assert run("ls", small / "x" / ".." / ".." / "absent").returncode == 2
    assert run("check", small).returncode == 1


def cut_while_compared(program: str, folder: Path) -> tuple[int, str]:
    n_bytes = 1 << 28
    for name in ("a", "b"):
        header = np.lib.format.header_data_from_array_1_0(np.empty(0, np.float32)) | {"shape": (n_bytes // 4,)}
        with (folder / f"{name}.npy").open("wb") as file:
            np.lib.format.write_array_header_1_0(file, header)
            file.truncate(file.tell() + n_bytes)  # a hole
    command = [program, "compare", "--read-all", str(folder / "a.npy"), str(folder / "b.npy")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None and "b.npy" not in Path(f"/proc/{process.pid}/maps").read_text():
            pass
        os.truncate(folder / "b.npy", 5000)
        _, messages = process.communicate(timeout=60)
    return process.returncode, messages


def test_a_file_that_is_cut_while_it_is_read(program: str, tmp_path: Path) -> None:
    for _ in range(20):
        status, messages = cut_while_compared(program, tmp_path)
        if status != 0:  # otherwise it was truncated too late
            break
    assert status == 2
    assert messages.startswith("fxtap: ") and messages.count("\n") == 1 and "truncated" in messages


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to become another user")
@pytest.mark.parametrize("closed", ["worldsize1_global_rank0", "worldsize1_global_rank0/graph_1", "graph_1/1"])
@pytest.mark.parametrize("has_index", [True, False])
def test_a_folder_that_may_not_be_read(closed: str, has_index: bool, program: str, small: Path) -> None:
    """It is not empty: what is in it is unknown, not missing, and the status says so."""
    folder = Path(tempfile.mkdtemp(prefix="fxtap-closed-"))
    try:
        for name in ("golden", "target"):
            shutil.copytree(small, folder / name)
            for index in folder.glob("*/*/fxtap.db*") if not has_index else ():
                index.unlink()
        shut = next(path for path in (folder / "target").rglob("*") if str(path).endswith(closed))
        subprocess.run(["chmod", "-R", "a+rX", folder], check=True)
        shut.chmod(0)

        def run_as_nobody(*arguments: object) -> subprocess.CompletedProcess[str]:
            command = [program, *map(str, arguments)]
            return subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=60, user=65534, cwd=folder,
                env={"LC_ALL": "C.UTF-8"},
            )  # fmt: skip

        cause = f"cannot open the folder {shut}: Permission denied"
        is_indexed_step = has_index and closed == "graph_1/1"  # whose files are opened one by one
        for sides in (["golden", "target"], ["target", "golden"], ["target", "target"]):
            done = run_as_nobody("compare", *sides, *(["--read-all"] if is_indexed_step else []))
            assert done.returncode == 2, done.stdout
            if not is_indexed_step:
                assert (done.stdout, done.stderr) == ("", f"fxtap: {cause}\n")
            assert "Permission denied" in done.stdout + done.stderr
        if not is_indexed_step:
            done = run_as_nobody("ls", "target")
            assert done.returncode == 2
            assert f"fxtap: warning: {cause}\n" in done.stderr and "no graphs" not in done.stdout
            assert run_as_nobody("ls", "target", "--json").returncode == 2
        assert run_as_nobody("compare", "golden", "target", "--step", "0").returncode == (0 if is_indexed_step else 2)
    finally:
        shutil.rmtree(folder)
