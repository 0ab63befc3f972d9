"""`python -m fxtap run-script`: unedited scripts with fxtap as the default backend."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import fxtap
from dumps import graphs, nodes, stems

SCRIPT = """
import sys
import torch
import helper_beside_the_script

assert __name__ == "__main__"
model = torch.compile(lambda x: x.sin() * 2)
other = torch.compile(lambda x: x.cos(), backend="eager")
@torch.compile(options={"max_autotune": False})
def third(x):
    return x.exp()
print(sys.argv, model(torch.ones(2)).shape, other(torch.ones(2)).shape, third(torch.ones(2)).shape)
sys.exit(int(sys.argv[-1]))
"""


def run_module(*arguments: str, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fxtap", *arguments],
        cwd=cwd,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def script(tmp_path: Path) -> Path:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "helper_beside_the_script.py").write_text("")
    path = tmp_path / "code" / "script.py"
    path.write_text(SCRIPT)
    return path


def test_unedited_script_is_dumped(script: Path, tmp_path: Path) -> None:
    done = run_module("run-script", str(script), "--a", "0", cwd=tmp_path, FXTAP_TYPE="npy", FXTAP_PATH="out")
    assert done.returncode == 0, done.stderr
    assert f"['{script}', '--a', '0']" in done.stdout
    assert [nodes(graph / "0") for graph in graphs(tmp_path / "out")] == [{"sin", "mul"}, {"exp"}]
    assert (tmp_path / "out" / "worldsize1_global_rank0" / "fxtap.db").exists()


def test_exit_status_and_filter(script: Path, tmp_path: Path) -> None:
    done = run_module(
        "run-script", str(script), "3", cwd=tmp_path, FXTAP_TYPE="npy", FXTAP_PATH="out", FXTAP_FILTER="*mul*"
    )
    assert done.returncode == 3
    assert [stems(graph / "0")[0] for graph in graphs(tmp_path / "out")] == ["mul-aten.mul.Tensor.INPUT.0"]


def test_module(script: Path) -> None:
    done = run_module("run-script", "-m", "script", "0", cwd=script.parent, FXTAP_INNER_BACKEND="eager")
    assert done.returncode == 0, done.stderr
    assert "script.py', '0']" in done.stdout


@pytest.mark.parametrize(
    "arguments", [["run-script"], ["run-script", "nowhere.py"], ["run-script", "-m", "no.where"], []]
)
def test_nothing_to_run_is_one_clear_line(arguments: list[str], tmp_path: Path) -> None:
    done = run_module(*arguments, cwd=tmp_path, FXTAP_TYPE="npy")
    assert done.returncode == 2
    lines = ("usage: ", "fxtap: no such script: nowhere.py\n", "fxtap: no such module: no.where\n")
    assert done.stderr.startswith(lines) and done.stderr.count("fxtap: ") <= 1
    assert "Traceback" not in done.stderr


def test_illegal_environment_is_one_clear_line_before_the_script_runs(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("print('it ran')")
    done = run_module("run-script", "script.py", cwd=tmp_path, FXTAP_TYPE="nyp")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("fxtap: FXTAP_TYPE=nyp: config.debug.data_dump.type: 'nyp' is not one of")
    assert done.stderr.count("\n") == 1


def test_misspelt_variable_is_warned_of_once(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("import torch; torch.compile(lambda x: x.sin())(torch.ones(2))")
    done = run_module("run-script", "script.py", cwd=tmp_path, FXTAP_TYPE="npy", FXTAP_FLITER="*x*", FXTAP_CPU="avx2")
    assert done.returncode == 0
    assert done.stderr.count("unknown variable FXTAP_FLITER; did you mean FXTAP_FILTER?") == 1
    assert "FXTAP_CPU" not in done.stderr


def test_source_files_are_absolute_as_pythons_are(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("import torch; torch.compile(lambda x: x.sin())(torch.ones(2))")
    done = run_module("run-script", "script.py", cwd=tmp_path, FXTAP_TYPE="npy", FXTAP_PATH="out")
    assert done.returncode == 0
    assert fxtap.open(tmp_path / "out").graphs[0].node("sin").source_file == str(tmp_path / "script.py")


def test_help(tmp_path: Path) -> None:
    done = run_module("--help", cwd=tmp_path)
    assert done.returncode == 0 and "run-script" in done.stdout


def test_other_commands_are_the_programs(tmp_path: Path) -> None:
    program = tmp_path / "fxtap"
    program.write_text('#!/bin/sh\necho the program: $0 "$@"\nexit 1\n')
    program.chmod(0o755)
    code = (
        f"import sys, fxtap.__main__ as m; sys.executable = {str(tmp_path / 'python')!r}; m.main(['compare', 'a', 'b'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout.split(":", 1)[0]) == (1, "the program")
    assert done.stdout.endswith("compare a b\n")
