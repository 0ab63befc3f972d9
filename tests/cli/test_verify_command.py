"""`fxtap verify`: the answer first, files, exit statuses, jobs, and what a signal leaves."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import fxtap
from fxtap.verification import command
from fxtap.verification import run as run_module
from program_run import Run
from replayed import Wrong, by_tanh, dump, example, model, scaled, wrong_gelu


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("replayed")
    for name, dtype in (("float32", torch.float32), ("bfloat16", torch.bfloat16)):
        dump(root / name, model, [example(dtype)])
        dump(root / f"{name}-wrong", model, [example(dtype)], wrong_gelu(scaled(1.1)))
        dump(root / f"{name}-tanh", model, [example(dtype)], wrong_gelu(by_tanh))
    dump(root / "ranks", model, [example()], wrong_gelu(scaled(1.1)), steps=2, world_size=2)
    return root


@pytest.fixture
def verify(run: Run, dumps: Path) -> Run:
    def verify(name: object, *arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
        return run("verify", dumps / str(name), *arguments, **{"FXTAP_PYTHON": sys.executable, **variables})

    return verify


def report(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_nothing_wrong(verify: Run, dtype: str) -> None:
    done = verify(dtype)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("NOTHING WRONG  ")
    quiet = verify(dtype, "--quiet")
    assert quiet.returncode == 0 and quiet.stdout.startswith("NOTHING WRONG  ") and len(quiet.stdout.splitlines()) <= 2


@pytest.mark.parametrize(
    ("name", "verdict"),
    [("float32-wrong", "wrong"), ("float32-tanh", "wrong"), ("bfloat16-wrong", "wrong"), ("bfloat16-tanh", "biased")],
)
def test_something_wrong(verify: Run, name: str, verdict: str) -> None:
    done = verify(name)
    assert (done.returncode, done.stderr) == (1, "")
    assert "gelu_1" in done.stdout.splitlines()[0]
    done = verify(name, "--json", "-")
    assert done.returncode == 1
    (wrong,) = report(done)["wrong"]
    assert (wrong["node"], wrong["verdict"]) == ("gelu_1", verdict)
    assert wrong["misrounded"] > 2 * wrong["misrounded_usual"]


def test_files_are_written_once(verify: Run, tmp_path: Path) -> None:
    outputs = ["--json", "r.json", "--csv", "r.csv", "--html", "r.html"]
    done = verify("float32", *outputs)
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if line.startswith("Wrote ")] == [
        "Wrote r.json", "Wrote r.csv", "Wrote r.html",
    ]  # fmt: skip
    assert json.loads((tmp_path / "r.json").read_text())["verdict"] == "nothing wrong"
    again = verify("float32", *outputs)
    assert again.returncode == 2 and "r.json' already exists" in again.stderr
    assert verify("float32", *outputs, "--force").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--op", "gely*"], 'nothing matches "gely*"'),
        (["--step", "7"], "no operator calls"),
        (["--jobs", "0"], "--jobs takes a number from 1 to 1024"),
        (["--threads", "0"], "--threads takes a number"),
        (["--json", "-", "--csv", "-"], "only one report"),
        (["more"], "too many paths: 'more'"),
        (["--jbos", "2"], "did you mean --jobs?"),
        (["--shard", "2/2", "--out", "x"], "--shard takes K/N"),
        (["--shard", "1/2"], "--shard and --out go together"),
    ],
)
def test_trouble_is_one_line(verify: Run, arguments: list[str], said: str) -> None:
    done = verify("float32", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_missing_dump_is_one_line(verify: Run, jobs: str) -> None:
    done = verify("nowhere", "--jobs", jobs)
    assert (done.returncode, done.stdout) == (2, "")
    assert "nowhere': No such file or directory" in done.stderr and done.stderr.count("\n") == 1


def test_nothing_replayed_is_trouble(verify: Run, dumps: Path) -> None:
    dump(dumps / "random", lambda x: torch.ops.aten.binomial.default(x, x), [torch.ones(4)])
    done = verify("random")
    assert done.returncode == 2
    assert "random" in done.stdout


def test_a_part(verify: Run) -> None:
    found = report(verify("ranks", "--json", "-", "--rank", "1", "--step", "1", "--op", "aten.gelu*"))
    assert {(row["rank"], row["step"], row["target"]) for row in found["operators"]} == {(1, 1, "aten.gelu.default")}
    assert [row["node"] for row in found["wrong"]] == ["gelu_1"]
    assert verify("ranks", "--rank", "0", "-q").returncode == 0
    assert verify("ranks", "--step", "0", "-q").returncode == 0


FORMS = ("json", "csv", "html")


def test_the_report_does_not_depend_on_the_split(verify: Run, tmp_path: Path) -> None:
    def reports(folder: str, *arguments: object) -> list[str]:
        (tmp_path / folder).mkdir()
        outputs = [item for form in FORMS for item in (f"--{form}", f"{folder}/r.{form}")]
        done = verify("ranks", *arguments, *outputs)
        assert (done.returncode, done.stderr) == (1, "")
        text = done.stdout.partition("Wrote ")[0]
        return [text, *((tmp_path / folder / f"r.{form}").read_text() for form in FORMS)]

    whole = reports("whole", "--jobs", 1)
    assert "gelu_1" in whole[0] and len(whole[1]) > 10000
    for jobs in (2, 3):
        assert reports(f"jobs{jobs}", "--jobs", jobs) == whole
    (tmp_path / "shards").mkdir()
    for k in range(3):
        assert verify("ranks", "--shard", f"{k}/3", "--out", f"shards/{k}").returncode == 0
    assert reports("merged", "--merge", "shards") == whole


def test_jobs_share_the_comparison(dumps: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One process compares, and runs the exact chain; the report is that of a single process."""
    log = tmp_path / "log"

    def compare_sides(*sides: Any, **options: Any) -> Any:
        with log.open("a") as file:
            file.write("compared\n")
        return run_module.compare_sides(*sides, **options)

    monkeypatch.setattr(command, "compare_sides", compare_sides)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    reports = []
    for jobs in ("1", "3"):
        out = os.open(tmp_path / jobs, os.O_WRONLY | os.O_CREAT)
        target, golden = str(dumps / "ranks"), str(dumps / "float32")
        line = ["--target", target, "--against", golden, "--exact", "--jobs", jobs, "--out-fd", str(out)]
        assert command.main(line) == 0
        reports.append(fxtap.Verification.merge([(tmp_path / jobs).read_bytes()]).to_json())
        assert log.read_text() == "compared\n"
        log.unlink()
    assert reports[0] == reports[1] and "distances" in reports[0]


def test_errors_of_the_comparison_are_one_line(verify: Run, dumps: Path) -> None:
    for jobs in ("1", "2"):
        done = verify("float32", "--against", dumps / "nowhere", "--jobs", jobs)
        assert (done.returncode, done.stdout) == (2, "")
        assert "nowhere': No such file or directory" in done.stderr and done.stderr.count("\n") == 1


def test_graph_from(verify: Run, dumps: Path, tmp_path: Path) -> None:
    named = tmp_path / "named"
    shutil.copytree(dumps / "float32-tanh", named)
    for path in named.rglob("fxtap.db*"):
        path.unlink()
    done = verify(named, "--graph-from", dumps / "float32")
    assert done.returncode == 1 and done.stdout.startswith("WRONG  gelu_1  ")
    assert "not replayed" not in done.stdout
    alone = verify(named)
    assert "no index, and the files do not settle all arguments" in alone.stdout
    for jobs in ("1", "3"):
        found = report(verify(named, "--graph-from", dumps / "float32", "--jobs", jobs, "--json", "-"))
        assert [row["node"] for row in found["wrong"]] == ["gelu_1"]


def test_without_the_package_or_torch(verify: Run, tmp_path: Path) -> None:
    for found in ("fxtap", "nothing"):
        fake = tmp_path / f"python-with-{found}"
        fake.write_text(f'#!/bin/sh\n[ "$3" = {found} ] && exit 0\nexit 77\n')
        fake.chmod(0o755)
        missing = "torch" if found == "fxtap" else "fxtap"
        done = verify("float32", FXTAP_PYTHON=str(fake))
        assert (done.returncode, done.stdout) == (2, "")
        assert f"{fake} has no module {missing}: install it there" in done.stderr and done.stderr.count("\n") == 1


def test_a_dump_as_working_directory_runs_nothing(program: str, dumps: Path, tmp_path: Path) -> None:
    dump(tmp_path / "hostile", model, [example()])
    for name in ("torch", "numpy", "fxtap", "json"):
        (tmp_path / "hostile" / f"{name}.py").write_text("open('executed', 'w')")
    done = subprocess.run(
        [program, "verify", ".", "-q"],
        cwd=tmp_path / "hostile",
        env={**os.environ, "FXTAP_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "hostile" / "executed").exists()


def slow(x: torch.Tensor) -> torch.Tensor:
    for _ in range(400):
        x = (x @ x).softmax(-1)
    return x


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_interrupted_reports_what_is_done(program: str, tmp_path: Path, jobs: str) -> None:
    dump(tmp_path / "slow", slow, [torch.randn(300, 300)])
    process = subprocess.Popen(
        [program, "verify", "slow", "--jobs", jobs],
        cwd=tmp_path,
        env={**os.environ, "FXTAP_PYTHON": sys.executable, "LC_ALL": "C.UTF-8", "COLUMNS": "80"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not children_of(process.pid, "verify-shard"):  # the program now waits for Python
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT
    assert "interrupted" in output[:160]
    assert errors.startswith("fxtap: interrupted: ") and errors.count("\n") == 1


def children_of(pid: int, word: str) -> list[int]:
    found = []
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        try:
            if word in Path(f"/proc/{child}/cmdline").read_text():
                found.append(int(child))
        except OSError:
            pass
    return found


def test_wrong_is_a_mode_that_changes_one_call() -> None:
    with Wrong(torch.ops.aten.sin.default, 1, lambda result, *_: result + 1):
        values = [torch.zeros(1).sin().item() for _ in range(3)]
    assert values == [0, 1, 0]


def test_compare_names_the_command(run: Run, dumps: Path) -> None:
    line = "\n\nIs it rounding?  fxtap verify TARGET --against GOLDEN\n"
    assert run("compare", dumps / "float32", dumps / "bfloat16").stdout.endswith(line)
    assert line not in run("compare", dumps / "float32", dumps / "float32-wrong").stdout
