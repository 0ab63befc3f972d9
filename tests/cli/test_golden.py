"""The program's output, byte for byte. FXTAP_UPDATE_GOLDEN=1 rewrites the files: review the diff."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from program_run import Run

GOLDEN = Path(__file__).resolve().parent / "golden"

CASES = [
    ("help", ["--help"]),
    ("ls_help", ["ls", "--help"]),
    ("show_help", ["show", "--help"]),
    ("check_help", ["check", "--help"]),
    ("stat_help", ["stat", "--help"]),
    ("run_help", ["run", "--help"]),
    ("verify_help", ["verify", "--help"]),
    ("repro_help", ["repro", "--help"]),
    ("graph_help", ["graph", "--help"]),
    ("ls", ["ls", "small"]),
    ("ls_all", ["ls", "--all", "small"]),
    ("ls_long", ["ls", "-l", "small", "--step", "0"]),
    ("ls_sorted", ["ls", "small", "--sort", "absmax", "--reverse"]),
    ("ls_op", ["ls", "small", "--op", "aten.mul*"]),
    ("ls_csv", ["ls", "small", "--csv", "--all"]),
    ("ls_json", ["ls", "small", "--json"]),
    ("ls_nodes_json", ["ls", "small", "--json", "--nodes", "--all"]),
    ("ls_nodes_csv", ["ls", "small", "--csv", "--nodes"]),
    ("show", ["show", "small", "mul"]),
    ("show_text", ["show", "small", "sum_1", "--step", "0"]),
    ("show_skipped", ["show", "small", "getitem"]),
    ("show_json", ["show", "small", "mul", "--json"]),
    ("graph", ["graph", "small"]),
    ("check", ["check", "small"]),
    ("check_json", ["check", "small", "--json"]),
    ("torchair_ls", ["ls", "torchair"]),
    ("torchair_ls_long", ["ls", "torchair", "-l", "--step", "0"]),
    ("torchair_show", ["show", "torchair", "mul_2"]),
    ("torchair_check", ["check", "torchair"]),
]


@pytest.mark.parametrize(("name", "arguments"), CASES, ids=[name for name, _ in CASES])
def test_prints_what_it_printed(
    name: str, arguments: list[str], run: Run, small: Path, toy: Path, tmp_path: Path
) -> None:
    done = run(*arguments)
    text = done.stdout.replace("\r\n", "\n").replace(str(tmp_path), "TMP")
    assert done.stderr == ""
    assert done.returncode == (1 if name in ("check", "check_json") else 0)
    file = GOLDEN / f"{name}.txt"
    if os.environ.get("FXTAP_UPDATE_GOLDEN"):
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [name for name, _ in CASES])
def test_fits_eighty_columns(name: str) -> None:
    lines = (GOLDEN / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    if "json" in name or "csv" in name:
        return
    long = [line for line in lines if len(line) > 80 and "TMP" not in line and "/" not in line]
    assert long == []
