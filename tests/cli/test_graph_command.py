"""fxtap graph: formats, subgraphs, files, and errors."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from pathlib import Path

import pytest

from program_run import Run

RANK = "worldsize1_global_rank0"


def test_python_is_the_default(run: Run, small: Path) -> None:
    done = run("graph", small)
    assert (done.returncode, done.stderr) == (0, "")
    compile(done.stdout, "graph.py", "exec")
    assert done.stdout.startswith("# graph_1 (inference) of ")
    assert "mul = torch.ops.aten.mul.Scalar(arg0_1, 2.0)" in done.stdout
    assert run("graph", small, "--format", "fx").stdout == done.stdout


@pytest.mark.parametrize("name", ["py", "txt", "pbtxt", "dot"])
def test_formats(run: Run, small: Path, name: str) -> None:
    begin = {"py": "# -*- coding", "txt": 'name: "graph_1"\n', "pbtxt": "node {", "dot": 'digraph "graph_1'}[name]
    done = run("graph", small, "-f", name)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(begin)


def test_json(run: Run, small: Path) -> None:
    data = json.loads(run("graph", small, "-f", "json").stdout)
    assert [node["name"] for node in data["nodes"]][:2] == ["arg0_1", "mul"]


def test_page_has_statistics(run: Run, small: Path, tmp_path: Path) -> None:
    done = run("graph", small, "--html", "page.html", "--step", "0")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "Wrote page.html\n")
    page = (tmp_path / "page.html").read_text()
    data = json.loads(page.partition('id="data">')[2].partition("</script>")[0])
    nodes = {node["name"]: node for node in data["graphs"][0]["nodes"]}
    places = {stat[0]: stat for stat in nodes["mul"]["stats"]}
    _, dtype, shape, file, count, n_nan, n_inf, n_zero, *numbers = places["OUTPUT.0"]
    assert (dtype, shape, count, n_nan, n_inf, n_zero) == ("float32", "2, 3", 6, 0, 0, 0)
    assert file.endswith(".npy")
    assert len(numbers) == 6
    assert nodes["arg0_1"]["stats"] == []
    assert run("graph", small, "-f", "html", "--step", "0").stdout == page


def test_no_file_is_written_over(run: Run, small: Path, tmp_path: Path) -> None:
    (tmp_path / "out.py").write_text("mine")
    done = run("graph", small, "-o", "out.py")
    assert done.returncode == 2
    assert "out.py" in done.stderr and "--force" in done.stderr
    assert (tmp_path / "out.py").read_text() == "mine"
    assert run("graph", small, "-o", "out.py", "--force").returncode == 0
    assert (tmp_path / "out.py").read_text() == run("graph", small).stdout


def test_summary(run: Run, small: Path) -> None:
    done = run("graph", small, "--summary", "--english")
    rows = list(csv.DictReader(io.StringIO(done.stdout.removeprefix("\ufeff"))))
    assert rows[0]["target"] == "aten.mul.Scalar"
    assert rows[0]["inputs"] == "1x: (float32(2, 3), 2.0)"
    assert run("graph", small, "--summary").stdout.startswith("\ufeff目标函数,")


def test_parts(run: Run, small: Path) -> None:
    done = run("graph", small, "--around", "mul", "--hops", "0")
    assert "    arg0_1," in done.stdout and "mul = " in done.stdout and "sum_1" not in done.stdout
    assert "sum_1 = " in run("graph", small, "--around", "mul", "--hops", "1").stdout
    done = run("graph", small, "--op", "aten.sum*")
    assert "    mul," in done.stdout and "mul = " not in done.stdout
    assert "mul = " in run("graph", small, "--module", "layers.0").stdout == run("graph", small, "--op", "mul").stdout
    assert "mul = " in run("graph", small, "--module", "*").stdout
    done = run("graph", small, "--module", "*.fc")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == 'fxtap: no operator matches "*.fc" in the graph, which has layers.0\n'
    done = run("graph", small, "--around", "nope")
    assert (done.returncode, done.stderr) == (2, "fxtap: no node named nope\n")


def test_around_finds_the_graph(run: Run, small: Path) -> None:
    with sqlite3.connect(small / RANK / "fxtap.db") as index:
        columns = "run_id, 2, kind, strict_key, structural_key, occurrence + 1, record"
        made = index.execute(f"INSERT INTO graph SELECT NULL, {columns} FROM graph").lastrowid
        columns = (
            "source_file, source_line, source_function, source_code, stack, module_path, module_type, flags, skipped"
        )
        select = f"SELECT NULL, {made}, position, name, target, stem, {columns} FROM node"
        index.execute(f"INSERT INTO node {select}")
        index.execute("UPDATE node SET name = 'first_mul' WHERE name = 'mul' AND graph_id <> ?", (made,))
    index.close()
    done = run("graph", small, "--around", "mul", "--hops", "0")
    assert (done.returncode, done.stderr) == (0, "") and "mul = " in done.stdout
    assert done.stdout == run("graph", small, "--around", "mul", "--hops", "0", "--graph", "2").stdout
    done = run("graph", small, "--around", "sum_1")
    assert done.returncode == 2 and 'graphs 1, 2 have a node "sum_1": choose one with --graph G' in done.stderr
    assert len(done.stdout.splitlines()) == 3  # the titles and the two operators
    assert 'no operator "mull" in ' in run("graph", small, "--around", "mull").stderr
    assert "did you mean mul?" in run("graph", small, "--around", "mull").stderr
    assert "2 graphs: choose one" in run("graph", small).stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-f", "svg"], "one of fx, json, dot"),
        (["--html", "a.html", "--summary"], "--html writes its own file"),
        (["--html", "a.html", "-f", "fx"], "--html writes its own file"),
        (["--summary", "-f", "fx"], "--summary is a CSV"),
        (["--graph", "7"], "7"),
        (["--hops", "x"], "x"),
        (["--nonsense"], "nonsense"),
    ],
)
def test_refusals(run: Run, small: Path, arguments: list[str], message: str, tmp_path: Path) -> None:
    done = run("graph", small, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr and done.stderr.count("\n") == 1
    assert not (tmp_path / "a.html").exists()


def test_dump_without_an_index(run: Run, toy: Path) -> None:
    done = run("graph", toy)
    assert (done.returncode, done.stdout) == (2, "")
    assert "index" in done.stderr


def test_operands(run: Run, small: Path) -> None:
    assert "expected a DUMP" in run("graph").stderr
    assert "expected one DUMP" in run("graph", small, small).stderr
    assert run("graph", "nowhere").returncode == 2
    assert run("graph", "--help").stdout.startswith("usage: fxtap graph [options] DUMP\n")
