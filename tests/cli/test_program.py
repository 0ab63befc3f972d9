"""The program end to end: exit statuses, hostile input, pipes, signals, environment."""

from __future__ import annotations

import csv
import io
import itertools
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from program_run import Run, strict_json

RANK = "worldsize1_global_rank0"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "expected a command"),
        (["lsx"], "did you mean ls?"),
        (["--jsn"], "unknown option"),
        (["ls", "--jsn", "x"], "did you mean --json?"),
        (["ls", "-x"], 'unknown option "-x"'),
        (["ls", "--step"], "--step needs a value"),
        (["ls", "small", "--step", "one"], "takes a number"),
        (["ls", "small", "--sort", "size"], "--sort takes one of"),
        (["ls", "small", "--json", "--csv"], "not both"),
        (["ls"], "expected a DUMP"),
        (["ls", "small", "small"], "one DUMP"),
        (["ls", "absent"], "No such file"),
        (["ls", "small", "--graph", "9"], "no graph 9"),
        (["ls", "small", "--rank", "9"], "no rank 9"),
        (["ls", "small", "--run", "9"], "no run 9"),
        (["show", "small"], "a DUMP and a NODE"),
        (["show", "small", "mull"], "did you mean mul?"),
        (["show", "small", "mull", "--graph", "1"], 'no operator "mull" in graph 1 of '),
        (["show", "small", "mul", "--step", "77"], "no step 77"),
        (["check"], "expected a DUMP"),
        (["check", "absent"], "No such file"),
        (["stat"], "expected a FILE"),
        (["run"], "expected a SCRIPT"),
        (["run", "--type", "nyp", "x.py"], "--type takes npy, stats or verify"),
        (["run", "--python", "/nonexistent/python", "x.py"], "cannot run"),
    ],
)
def test_trouble_is_one_line_and_status_two(arguments: list[str], message: str, run: Run, small: Path) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert message in done.stderr
    assert done.stderr.startswith("fxtap")
    assert done.stderr.count("\n") == 1


def test_version(run: Run) -> None:
    assert re.fullmatch(r"fxtap \d+\.\d+\.\d+\n", run("--version").stdout)


def test_json_is_strict_and_whole(run: Run, small: Path) -> None:
    listing = strict_json(run("ls", small, "--json").stdout)
    assert isinstance(listing, dict)
    assert listing["kind"] == "indexed"
    assert len(listing["tensors"]) == 14
    output = next(t for t in listing["tensors"] if t["name"] == "mul-aten.mul.Scalar.OUTPUT.0" and t["step"] == 1)
    array = np.load(output["path"], allow_pickle=False)
    assert output["shape"] == list(array.shape)
    assert output["statistics"]["max"] is None
    assert output["statistics"]["pos_inf"] == 1
    assert output["statistics"]["min"] == array.min()


def test_csv_reads_back(run: Run, small: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(run("ls", small, "--csv").stdout)))
    assert len(rows) == 14
    assert {row["node"] for row in rows} == {"mul", "sum_1"}
    assert rows[0]["mean"] == "3.5"


def test_a_pipe_that_closes_is_silent(program: str, small: Path) -> None:
    for ignored in (True, False):
        process = subprocess.Popen(
            [program, "ls", "--csv", str(small)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            restore_signals=not ignored,
        )
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        process.stderr.close()
        assert process.wait(timeout=30) in (0, -signal.SIGPIPE)


def test_a_full_disk_is_trouble(program: str, small: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([program, "ls", str(small)], stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 2
    assert b"No space left" in done.stderr


def test_control_characters_never_reach_the_terminal(run: Run, small: Path) -> None:
    hostile = "\x1b[2J\x07\u202e\x9b31m\nmul"
    with sqlite3.connect(small / RANK / "fxtap.db") as index:
        index.execute("UPDATE node SET name = ?, target = ?, source_code = ?, source_file = ?", (hostile,) * 4)
        index.execute("UPDATE node SET stack = ?, module_path = ?, module_type = ?", (hostile,) * 3)
        index.execute("UPDATE slot SET position = ?, arg_name = ?", (hostile, hostile))
        index.execute("UPDATE step SET reason = ?", (hostile,))
        index.execute("UPDATE value SET device = ?, layout = ?", (hostile, hostile))
        index.execute("UPDATE tensor SET skipped = ? WHERE value_id IS NULL", (hostile,))
    index.close()
    for locale in ("C.UTF-8", "C"):
        for arguments in (
            ["ls", small],
            ["ls", "-l", small],
            ["ls", "-a", small],
            ["show", small, hostile],
            ["check", small],
        ):
            done = run(*arguments, LC_ALL=locale)
            for text in (done.stdout, done.stderr):
                assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text)
            assert "mul" in done.stdout
    assert run("ls", "absent\x1b[31m").stderr.count("\x1b") == 0


def test_ascii_where_the_locale_is_not_utf8(run: Run, toy: Path) -> None:
    assert "█" in run("show", toy, "mul_2").stdout
    plain = run("show", toy, "mul_2", LC_ALL="C").stdout
    assert plain.isascii()
    assert "####" in plain


def test_width(run: Run, toy: Path) -> None:
    for width in (40, 60, 80, 120):
        lines = run("ls", "-l", toy, COLUMNS=str(width)).stdout.splitlines()
        assert max(map(len, lines[1:])) <= width


def save_outputs(root: Path, arrays: dict[str, object]) -> None:
    """Write a dump without an index, with one operator per array."""
    folder = root / RANK / "graph_1" / "0"
    folder.mkdir(parents=True)
    for i, (name, array) in enumerate(arrays.items()):
        np.save(folder / f"{name}-aten.{name}.default.OUTPUT.0.2026010100000000{i:02}00.npy", np.asarray(array))


def test_names_and_shapes_are_whole_before_anything_else(run: Run, tmp_path: Path) -> None:
    name = "convolution_backward_of_the_stem"
    save_outputs(tmp_path / "named", {f"{name}_0": np.ones((8, 22, 32, 32), np.float32), f"{name}_1": np.ones(8)})
    for arguments in (["ls", "named"], ["ls", "-l", "named"]):
        text = run(*arguments).stdout
        assert f"{name}_0" in text
        assert "f32[8,22,32,32]" in text
        assert max(map(len, text.splitlines())) <= 80
        assert "absmax" in text
        assert "f32[8, 22, 32, 32]" in run(*arguments, COLUMNS="200").stdout
        assert max(map(len, run(*arguments, COLUMNS="50").stdout.splitlines()[1:])) <= 50


def test_scalars_are_listed_as_they_are(run: Run, tmp_path: Path) -> None:
    arrays = {"neg": -1, "nan": np.float32("nan"), "neginf": -np.inf, "flag": True, "large": np.uint64(2**64 - 1)}
    save_outputs(tmp_path / "dump", {**arrays, "turned": 3 + 4j, "one": [-1]})
    rows = {line.split()[1]: line for line in run("ls", "-l", "dump").stdout.splitlines()[2:]}
    values = {name: re.search(r"\[\] = (\S+)", rows[name]) for name in arrays}
    found = {name: value and value[1] for name, value in values.items()}
    assert found == {"neg": "-1", "nan": "nan", "neginf": "-inf", "flag": "True", "large": "18446744073709551615"}
    assert rows["neg"].endswith(" = -1") and rows["nan"].endswith("1 nan")
    assert rows["turned"].split()[-1] == "5" and rows["one"].split()[-1] == "1"  # absmax
    np.save(tmp_path / "alone.npy", np.int64(-7))
    assert "i64[] = -7\n" in run("ls", tmp_path / "alone.npy").stdout


def test_short_lists_are_shown_in_one_line(run: Run, tmp_path: Path) -> None:
    lists = {"stride": [1, 1], "eight": range(8), "nan": [1.5, np.nan], "flags": [True, False], "turned": [1j]}
    wide = np.linspace(-1e-5, -1e-6, 8)
    save_outputs(tmp_path / "dump", {**lists, "nine": range(9), "wide": wide, "none": [], "grid": np.ones((8, 8))})
    shown = {
        "stride": "OUTPUT.0  i64[2] = [1, 1]",
        "eight": "OUTPUT.0  i64[8] = [0, 1, 2, 3, 4, 5, 6, 7]",
        "nan": "OUTPUT.0  f64[2] = [1.5, nan]",
        "flags": "OUTPUT.0  b8[2] = [True, False]",
        "turned": "OUTPUT.0  c128[1] = [0+1j]",
    }
    for name, line in shown.items():
        lines = run("show", "dump", name, COLUMNS="200").stdout.splitlines()
        assert lines[3] == line
        assert len(lines) == 5 and lines[4].endswith(".npy")
    assert "    0  1  2  ...  6  7  8\n" in run("show", "dump", "nine").stdout
    assert "min" in run("show", "dump", "stride", "--no-values").stdout
    assert "no elements" in run("show", "dump", "none").stdout
    assert " = [-1e-05, " in run("show", "dump", "wide", COLUMNS="120").stdout
    narrow = run("show", "dump", "wide").stdout
    assert " = [" not in narrow and "mean" in narrow
    assert "..." not in narrow.splitlines()[-2]  # eight values, all shown
    assert max(map(len, run("show", "dump", "grid").stdout.splitlines()[:-1])) <= 80
    assert run("show", "dump", "grid", COLUMNS="100").stdout.count("           1") == 64


def test_long_code_and_paths_are_cut_to_the_width(run: Run, small: Path) -> None:
    file, code = f"/opt/{'deep/' * 30}layers/model.py", f"y = self.attention({', '.join(['argument'] * 20)})"
    stack = "\n".join([f'  File "{file}", line 12, in forward', f"    {code}"] * 2)
    with sqlite3.connect(small / RANK / "fxtap.db") as index:
        index.execute("UPDATE node SET source_file = ?, source_code = ?, stack = ?", (file, code, stack))
        index.execute("UPDATE node SET source_function = 'forward'")
    index.close()
    (small / RANK / "graph_1" / "0" / f"stray-{'x' * 90}.OUTPUT.0.20260101000000000000.npy").write_bytes(b"")
    for arguments in (["show", small, "mul"], ["check", small]):
        for width in (60, 80):
            lines = run(*arguments, COLUMNS=str(width)).stdout.splitlines()
            assert max(map(len, lines)) <= width
        whole = run(*arguments, COLUMNS="1000").stdout
        assert code in whole and "…" not in whole
    shown = run("show", small, "mul").stdout
    assert re.search(r"^  source  ….*/layers/model.py:12 in forward$", shown, re.MULTILINE)
    assert re.search(r'^    File "….*/layers/model.py", line 12, in forward$', shown, re.MULTILINE)
    assert re.search(r"^ {10}y = self.attention\(.*…$", shown, re.MULTILINE)
    assert re.search(r"^  ….*\.OUTPUT\.0\.\d+\.npy$", shown, re.MULTILINE)
    assert re.search(r"model.py:12  y = self.attention.*…$", run("check", small).stdout, re.MULTILINE)
    assert run("show", small, "mul", LC_ALL="C").stdout.isascii()


def test_names_of_files_stand_for_their_operator(run: Run, small: Path) -> None:
    file = next((small / RANK / "graph_1" / "0").glob("mul-*.OUTPUT.0.*"))
    for name in ("mul", file.name, file, "mul-aten.mul.Scalar.OUTPUT.0"):
        assert run("show", small, name, "--step", "0").stdout.startswith("mul  aten.mul.Scalar\n")


def test_opens_at_any_level(run: Run, small: Path) -> None:
    graph = small / RANK / "graph_1"
    for path, n in ((small, 14), (small / RANK, 14), (graph, 14), (graph / "1", 7), (graph / "2.failed-0", 7)):
        assert len(json.loads(run("ls", path, "--json").stdout)["tensors"]) == n
        assert "mul" in run("ls", path).stdout


# ---- stat, statistics ----


@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<f2", "<f8", "i1", "<u8", "<i8", "?", "<c8", ">c16"])
def test_stat_agrees_with_numpy(dtype: str, run: Run, tmp_path: Path) -> None:
    values = (np.arange(24).reshape(2, 3, 4) % 7 - (0 if dtype in ("?", "<u8") else 3)).astype(dtype)
    np.save(tmp_path / "a.npy", values)
    report = json.loads(run("stat", "--json", "a.npy").stdout)[0]
    found = report["statistics"]
    assert report["shape"] == [2, 3, 4]
    assert found["count"] == 24
    assert found["zero"] == int((values == 0).sum())
    assert found["mean"] == pytest.approx(complex(values.astype(complex).mean()).real)
    assert found["abs_max"] == pytest.approx(float(np.abs(values.astype(complex)).max()))
    assert found["l2_norm"] == pytest.approx(float(np.linalg.norm(values.astype(complex).ravel())))
    if "c" not in dtype:
        assert found["min"] == float(values.min())


def test_stat_of_text_scalars_and_fortran_order(run: Run, tmp_path: Path) -> None:
    np.save(tmp_path / "text.npy", np.array("sum\x1bé"))
    np.save(tmp_path / "scalar.npy", np.float32(5))
    np.save(tmp_path / "columns.npy", np.asfortranarray(np.arange(6.0).reshape(2, 3)))
    np.save(tmp_path / "none.npy", np.zeros((0, 3)))
    done = run("stat", "text.npy", "scalar.npy", "columns.npy", "none.npy")
    assert done.returncode == 0
    assert '"sum\\x1bé"' in done.stdout
    assert "column-major" in done.stdout
    assert "no elements" in done.stdout


def test_show_finds_places_in_both_orders(run: Run, tmp_path: Path) -> None:
    step = tmp_path / "dump" / RANK / "graph_1" / "0"
    step.mkdir(parents=True)
    values = np.zeros((3, 5, 7), np.float32)
    values[2, 3, 4] = -9
    values[1, 0, 6] = np.nan
    values[0, 4, 1] = -np.inf
    for i, array in enumerate((values, np.asfortranarray(values))):
        np.save(step / f"n-aten.op.default.OUTPUT.{i}.20260101000000000001.npy", array)
    text = run("show", "dump", "n").stdout
    assert text.count("largest 9 at [2, 3, 4]  first nan at [1, 0, 6]  first inf at [0, 4, 1]") == 2


# ---- run ----


def test_run_hands_the_script_to_python(run: Run, tmp_path: Path) -> None:
    stub = tmp_path / "python"
    stub.write_text('#!/bin/sh\nfor a in "$@"; do echo "[$a]"; done\nenv | grep ^FXTAP_ | sort\nexit 7\n')
    stub.chmod(0o755)
    done = run(
        "run",
        "--type",
        "stats",
        "-p",
        "out",
        "-f",
        "a*",
        "-f",
        "b",
        "--sync",
        "s.py",
        "--step",
        "-h",
        FXTAP_PYTHON=str(stub),
    )
    assert done.returncode == 7
    assert done.stdout.splitlines() == [
        "[-m]", "[fxtap]", "[run-script]", "[s.py]", "[--step]", "[-h]",
        "FXTAP_FILTER=a*,b", "FXTAP_PATH=out", f"FXTAP_PYTHON={stub}", "FXTAP_SYNC=1",
        "FXTAP_TYPE=stats",
    ]  # fmt: skip
    done = run("run", "-m", "train", "--lr", "1", FXTAP_PYTHON=str(stub))
    assert done.stdout.splitlines()[2:] == [
        "[run-script]", "[-m]", "[train]", "[--lr]", "[1]", f"FXTAP_PYTHON={stub}", "FXTAP_TYPE=npy",
    ]  # fmt: skip
    for how in (["--python=~/python"], []):  # not expanded by a shell
        assert run("run", *how, "s.py", FXTAP_PYTHON="~/python", HOME=str(tmp_path)).returncode == 7


# ---- signals ----


def test_ctrl_c_ends_a_check_at_once(program: str, tmp_path: Path) -> None:
    for i in range(4):
        path = tmp_path / f"{i}.npy"
        with path.open("wb") as file:  # sparse: 256 MiB without disk space
            np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (1 << 26,)})
            file.truncate(file.tell() + (4 << 26))
    process = subprocess.Popen([program, "check", str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    output, messages = process.communicate(timeout=30)
    assert process.returncode in (-signal.SIGINT, 0)
    assert messages == b""
    assert process.returncode == 0 or output == b""


# ---- the manual ----

MANUAL = Path(__file__).resolve().parent.parent.parent / "docs" / "man"


@pytest.mark.skipif(shutil.which("groff") is None, reason="no groff")
@pytest.mark.parametrize("page", sorted(MANUAL.glob("*.[13]")), ids=lambda page: page.name)
def test_manual_pages_are_sound(page: Path) -> None:
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-z", str(page)], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.returncode == 0


def test_manual_pages_have_every_option(run: Run) -> None:
    for command in ("ls", "show", "check", "stat", "run"):
        page = (MANUAL / f"fxtap-{command}.1").read_text().replace("\\-", "-")
        for option in re.findall(r"--[a-z-]+", run(command, "--help").stdout.split("options:")[1]):
            assert option in page or option == "--help", (command, option)


@pytest.mark.skipif("FXTAP_BUILD" not in os.environ, reason="no build folder")
@pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler")
def test_the_library_page_s_example_works(small: Path, tmp_path: Path) -> None:
    page = (MANUAL / "libfxtap.3").read_text()
    code = page.split(".EX\n")[1].split(".EE")[0].replace("\\-", "-").replace("\\e", "\\")
    (tmp_path / "example.c").write_text(code)
    include = MANUAL.parent.parent / "include"
    library = Path(os.environ["FXTAP_BUILD"]) / "src"
    if not (library / "libfxtap.so").exists():
        pytest.skip("no shared library")
    command = [
        "cc",
        "-Wall",
        "-Werror",
        f"-I{include}",
        "example.c",
        f"-L{library}",
        "-lfxtap",
        f"-Wl,-rpath,{library}",
        "-o",
        "example",
    ]
    subprocess.run(command, cwd=tmp_path, check=True)
    done = subprocess.run(["./example", str(small)], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "mul-aten.mul.Scalar.OUTPUT.0 12\n" in done.stdout


def test_nothing_is_left_behind(run: Run, small: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in small.rglob("*")}
    for arguments in (["ls", small], ["show", small, "mul"], ["check", small], ["ls", small, "--json"]):
        run(*arguments)
    assert {path: path.stat().st_mtime_ns for path in small.rglob("*")} == before


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))


@pytest.mark.parametrize("command", ["check", "compare", "graph", "ls", "run", "show", "stat"])
def test_help_begins_alike(run: Run, command: str) -> None:
    assert run(command, "--help").stdout.startswith(f"usage: fxtap {command} [options] ")


def test_help_of_a_command(run: Run) -> None:
    """``fxtap help COMMAND`` equals ``fxtap COMMAND --help``, and fails for an unknown command."""
    assert run("help", "ls").stdout == run("ls", "--help").stdout
    assert run("help").stdout == run("--help").stdout
    assert run("help", "nonsense").returncode == 2


@pytest.mark.parametrize(("low", "high"), [(1e8, 1e8 + 5), (-1.5e308, 1.5e308), (1.0, 1.0 + 1e-12), (-1.0, 3.0)])
def test_edges_of_a_histogram_are_told_apart(low: float, high: float, run: Run, tmp_path: Path) -> None:
    """Also if the range is narrow, or its width exceeds float64."""
    folder = tmp_path / "worldsize1_global_rank0" / "graph_1" / "0"
    folder.mkdir(parents=True)
    part = np.linspace(0, 1, 64)
    np.save(folder / "a-aten.add.Tensor.OUTPUT.0.20251017071211000001.npy", low * (1 - part) + high * part)
    lines = run("show", tmp_path, "a").stdout.splitlines()
    labels = [float(line.split()[0]) for line in lines if "\u2588" in line]
    assert len(labels) == 12
    assert all(a < b for a, b in itertools.pairwise(labels))
    assert labels[0] == pytest.approx(low, rel=1e-3)
    assert labels[6] == pytest.approx(low / 2 + high / 2, rel=1e-3)
