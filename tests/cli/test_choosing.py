"""Patterns, steps and files that do not exist: every command reports it, and what exists."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pytest

from program_run import Run

RANK = "worldsize1_global_rank0"


@pytest.mark.parametrize("form", [[], ["-l"], ["--json"], ["--csv"], ["--nodes", "--csv"]])
def test_a_pattern_that_matches_nothing(form: list[str], run: Run, small: Path) -> None:
    done = run("ls", small, "--op", "aten.mull.Scalar", *form)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f'fxtap: nothing matches "aten.mull.Scalar" in {small}, did you mean aten.mul.Scalar?\n'
    done = run("ls", small, "--op", "qwertyuiop*", *form)
    assert done.stderr.endswith(", which has mul, aten.mul.Scalar, layers.0, getitem, ...\n")


def test_module_paths_without_their_root(run: Run, small: Path) -> None:
    with sqlite3.connect(small / RANK / "fxtap.db") as index:
        index.execute("UPDATE node SET module_path = 'L[''self'']._orig_mod.blocks.1.fc' WHERE name = 'mul'")
    index.close()
    expected = run("ls", small, "--op", "mul").stdout
    assert "mul" in expected and "sum_1" not in expected
    for pattern in ("blocks.1*", "_orig_mod.blocks.1.fc", "*blocks.1.fc", "L?'self'?.*"):
        assert run("ls", small, "--op", pattern).stdout == expected, pattern
        assert "mul" in run("compare", small, small, "--op", pattern, "--json", "-").stdout


def test_comparing_nothing_is_not_the_same(run: Run, small: Path) -> None:
    done = run("compare", small, small, "--op", "aten.mull.Scalar")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f'fxtap: nothing matches "aten.mull.Scalar" in {small}, did you mean aten.mul.Scalar?\n'
    for command in (["ls"], ["compare", small]):
        done = run(*command, small, "--op", "operator.*")
        assert (done.returncode, done.stdout) == (2, "")
        assert 'getitem, which "operator.*" matches' in done.stderr and "is not dumped: non aten target" in done.stderr
    assert run("ls", small, "--op", "getitem", "--nodes", "--csv", "--all").returncode == 0


@pytest.mark.parametrize("form", [[], ["--json"], ["--csv"], ["-l"]])
def test_a_step_that_is_not_there(form: list[str], run: Run, small: Path) -> None:
    done = run("ls", small, "-s", "9", *form)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"fxtap: no step 9 in {small}: the dump has steps 0 to 2\n"


def test_two_steps_are_a_pair_not_a_range(run: Run, small: Path) -> None:
    done = run("compare", small, "--step", "8:9")
    assert done.returncode == 2 and "golden's step 8 was to be compared with target's step 9" in done.stderr
    done = run("compare", small, "--step", "0-1")
    assert done.returncode == 2 and "A or A:B (two numbers from 0 on, no range)" in done.stderr
    assert "golden's step A, target's step A or B; no range" in run("compare", "--help").stdout


def test_a_file_that_is_no_array(run: Run, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\n")
    for command in (["ls"], ["check"], ["compare", "train.py"]):
        done = run(*command, "train.py")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.endswith("train.py: neither a dump nor an .npy file\n")


def test_a_long_reason_makes_no_column_wide(run: Run, small: Path) -> None:
    with sqlite3.connect(small / RANK / "fxtap.db") as index:
        index.execute("UPDATE node SET skipped = 'higher-order operator; its subgraphs are not dumped'"
                      " WHERE target LIKE 'arg%'")  # fmt: skip
    index.close()
    short = run("ls", small, COLUMNS="1000").stdout
    table = run("ls", "-a", small, COLUMNS="1000").stdout
    reason = "skipped: higher-order operator; its subgraphs are not dumped"
    (line,) = [line for line in table.splitlines() if reason in line]
    before = line.index(reason)
    wide = max(len(line) for line in short.splitlines())
    assert max(len(line) for line in table.splitlines()) <= max(wide + 24, before + len(reason) + 20)
    narrow = run("ls", "-a", small, COLUMNS="80").stdout
    assert "skipped: higher-order operator" in narrow and max(len(line) for line in narrow.splitlines()) <= 80


def test_texts_are_shown(run: Run, small: Path) -> None:
    path = next((small / RANK / "graph_1" / "1").glob("mul-*.INPUT.1.*.npy"))
    path.chmod(0o644)
    path.unlink()
    np.save(path, np.array("sum\x1b"))
    (small / RANK / "fxtap.db").unlink()
    listed = run("ls", "-l", small).stdout
    assert '= "sum' in listed and "\x1b" not in listed


def test_a_number_that_is_not_there(run: Run, small: Path) -> None:
    """The message names what exists, whichever number it is."""
    for command in (["ls"], ["graph"], ["show"]):
        for option, there in (("--run", "run 1"), ("--rank", "rank 0"), ("--graph", "graph 1")):
            done = run(*command, small, *(["mul"] if command == ["show"] else []), option, "9")
            assert (done.returncode, done.stdout) == (2, ""), (command, option)
            assert done.stderr == f"fxtap: no {option[2:]} 9 in {small}: the dump has {there}\n"
    for option, there in (("--run", "run 1"), ("--rank", "rank 0"), ("--graph", "graph 1"), ("--step", "steps 0 to 1")):
        done = run("compare", small, small, option, "9")
        assert (done.returncode, done.stdout) == (2, "")
        verb = "are" if there.startswith("steps") else "is"
        assert done.stderr == f"fxtap: {small}: no tensors of {option[2:]} 9: there {verb} {there}\n"


def test_a_pattern_that_has_no_letter_is_not_corrected(run: Run, small: Path) -> None:
    for command in (["ls", small], ["compare", small, small]):
        done = run(*command, "--op", "[")
        assert (done.returncode, done.stdout) == (2, "")
        assert (
            done.stderr
            == f'fxtap: nothing matches "[" in {small}, which has mul, aten.mul.Scalar, layers.0, getitem, ...\n'
        )


def test_empty_texts(run: Run, small: Path) -> None:
    for option in ("--op", "--html", "--map", "--step-of", "--explain", "--rules", "--step"):
        done = run("compare", small, small, option, "")
        assert (done.returncode, done.stdout) == (2, "")
        assert f'{option} needs a value, not ""' in done.stderr
    for command in (["compare", "", small], ["compare", small, ""], ["ls", ""], ["show", "", "mul"], ["check", ""]):
        done = run(*command)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == 'fxtap: cannot open "": No such file or directory\n'
