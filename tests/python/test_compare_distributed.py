"""torchrun ... -m fxtap compare: any number of processes write the same reports as one, byte for byte."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

import fxtap
from fxtap import _core
from fxtap.distributed import run_sharded
from graphs import trace
from planted import Saboteur
from processes import compare_in_group, fail_in_group, launch

FORMS = ("json", "csv", "html")


@pytest.fixture(scope="session")
def program() -> str:
    found = os.environ.get("FXTAP_PROGRAM") or shutil.which("fxtap")
    if not found:
        pytest.skip("no fxtap program: set FXTAP_PROGRAM")
    return str(Path(found).resolve())


def model(x: torch.Tensor) -> torch.Tensor:
    for _ in range(3):
        x = (x @ x.t()).softmax(-1) @ x + x.sin()
    return x


def wrong_by(offset: float, value: torch.Tensor) -> torch.Tensor:
    return value * 1.5 + offset


def dump(root: Path, n_ranks: int, wrong: bool) -> None:
    """Make two graphs of two steps on every rank; an operator is wrong in every group but the first."""
    gms = [trace(model, torch.randn(4, 5)), trace(lambda x: model(x).relu(), torch.randn(4, 5))]
    for rank in range(n_ranks):
        handle = _core.Dump(str(root), world_size=n_ranks, rank=rank)
        for number, gm in enumerate(gms, 1):
            program = _core.Program(gm, _core.record(gm), handle, number)
            for step in range(2):
                generator = torch.Generator().manual_seed(10 * number + step)
                x = torch.randn(4, 5, generator=generator)
                if wrong and (rank, number, step) != (0, 1, 0):
                    with Saboteur(2 + (rank + number + step) % 7, functools.partial(wrong_by, 0.25 * rank)):
                        program([x])
                else:
                    program([x])
        handle.close()


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make two dumps of three ranks; target has an unreadable file and lacks a step."""
    root = tmp_path_factory.mktemp("sides")
    dump(root / "good", 3, wrong=False)
    dump(root / "bad", 3, wrong=True)
    step = root / "bad" / "worldsize3_global_rank2" / "graph_2"
    (root / "bad" / "worldsize3_global_rank1" / "fxtap.db").chmod(0o644)
    shutil.rmtree(step / "1")
    victim = sorted((step / "0").glob("sin-*OUTPUT*.npy"))[0]
    victim.unlink()
    victim.write_bytes(b"\x93NUMPY\x01")
    return root


def reports(folder: Path, text: bytes) -> dict[str, bytes]:
    return {"text": text, **{form: (folder / f"r.{form}").read_bytes() for form in FORMS}}


def by_one(program: str, folder: Path, arguments: Sequence[str]) -> tuple[int, dict[str, bytes]]:
    folder.mkdir(parents=True)
    command = [program, "compare", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=60)
    return done.returncode, reports(folder, done.stdout)


def by_many(program: str, n: int, folder: Path, arguments: Sequence[str]) -> tuple[list[int | None], dict[str, bytes]]:
    statuses = launch(n, folder, run_sharded, program, "compare", arguments)
    for rank in range(1, n):
        assert (folder / f"out.{rank}").read_bytes() == (folder / f"err.{rank}").read_bytes() == b""
    return statuses, reports(folder, (folder / "out.0").read_bytes())


def check_same(program: str, root: Path, n: int, arguments: Sequence[str]) -> int:
    outputs = [item for form in FORMS for item in (f"--{form}", f"r.{form}")]
    status, expected = by_one(program, root / "one", [*arguments, *outputs])
    statuses, found = by_many(program, n, root / "many", [*arguments, *outputs])
    assert statuses == [status] * n, (root / "many" / "err.0").read_text()
    for form, data in expected.items():
        assert found[form] == data, form
    return status


SIZES = [pytest.param(n, marks=[] if n == 3 else pytest.mark.long) for n in (1, 2, 3, 5)]


@pytest.mark.parametrize("n", SIZES)
def test_any_number_of_processes_is_as_one(n: int, program: str, sides: Path, tmp_path: Path) -> None:
    assert check_same(program, tmp_path, n, [str(sides / "good"), str(sides / "bad")]) == 2  # one file is unreadable


def test_more_processes_than_work(program: str, sides: Path, tmp_path: Path) -> None:
    arguments = [str(sides / "good"), str(sides / "bad"), "--rank", "1", "--graph", "1", "--rtol", "0.01", "--max-ulp"]
    assert check_same(program, tmp_path, 5, [*arguments, "3"]) == 1


@pytest.mark.parametrize("n", SIZES)
def test_across_ranks(n: int, program: str, sides: Path, tmp_path: Path) -> None:
    assert check_same(program, tmp_path, n, ["--across-ranks", str(sides / "bad")]) == 2


@pytest.mark.parametrize("n", SIZES)
def test_stopping_early(n: int, program: str, sides: Path, tmp_path: Path) -> None:
    assert check_same(program, tmp_path, n, [str(sides / "good"), str(sides / "bad"), "--fail-fast"]) == 1


def test_equal_dumps(program: str, sides: Path, tmp_path: Path) -> None:
    assert check_same(program, tmp_path, 2, [str(sides / "good"), str(sides / "good")]) == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["good", "nowhere"], "nowhere"),
        (["good", "bad", "--no-such-option"], "no-such-option"),
        (["good", "bad", "--csv", "there.csv"], "already exists"),
        (["good"], "cannot be compared"),
    ],
)
def test_trouble_is_said_once(arguments: list[str], said: str, program: str, sides: Path, tmp_path: Path) -> None:
    (tmp_path / "there.csv").write_text("old")
    for name in ("good", "bad"):
        (tmp_path / name).symlink_to(sides / name)
    assert launch(2, tmp_path, run_sharded, program, "compare", arguments) == [2, 2]
    assert [(tmp_path / f"out.{rank}").read_text() for rank in range(2)] == ["", ""]
    lines = [(tmp_path / f"err.{rank}").read_text() for rank in range(2)]
    assert said in lines[0] and lines[0].count("\n") == 1 and lines[1] == ""
    assert (tmp_path / "there.csv").read_text() == "old"


def test_from_a_script(sides: Path, tmp_path: Path) -> None:
    golden, target = str(sides / "good"), str(sides / "bad")
    assert launch(2, tmp_path / "two", compare_in_group, golden, target) == [0, 0]
    assert (tmp_path / "two" / "report.json").read_text() == fxtap.compare(golden, target).to_json()
    assert launch(2, tmp_path / "ranks", compare_in_group, target, None) == [0, 0]
    assert (tmp_path / "ranks" / "report.json").read_text() == fxtap.compare_ranks(target).to_json()


def test_one_that_fails_holds_up_nobody(sides: Path, tmp_path: Path) -> None:
    assert launch(2, tmp_path, fail_in_group, str(sides / "good"), str(sides / "bad")) == [11, 10]


def test_merged_reports_are_the_whole(sides: Path) -> None:
    whole = fxtap.compare(sides / "good", sides / "bad")
    for n in (1, 2, 3, 7, 20):
        shards = [fxtap.compare(sides / "good", sides / "bad", shard=(k, n)).serialise() for k in range(n)]
        merged = fxtap.comparison.Report.merge(shards)
        assert merged.to_text() == whole.to_text()
        assert merged.to_json() == whole.to_json()
        assert merged.to_csv() == whole.to_csv()
        assert merged.to_html() == whole.to_html()
        again = fxtap.comparison.Report.merge([merged.serialise()])
        assert again.to_html() == whole.to_html()
    with pytest.raises(ValueError):
        fxtap.comparison.Report.merge([b"something else"])
    with pytest.raises(ValueError):
        fxtap.comparison.Report.merge([])
    cut = shards[0][: len(shards[0]) // 2]
    with pytest.raises(ValueError):
        fxtap.comparison.Report.merge([cut])


def two_streams(x: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    return x + 0.1 * z.sin()


def dump_chain(root: Path, wrong_steps: Sequence[int]) -> None:
    """Make two graphs: each call's output is the next call's first input; the second input is new and correct."""
    handle = _core.Dump(str(root))
    examples = torch.randn(4, 5), torch.randn(4, 5)
    gms = [trace(function, *examples) for function in (two_streams, lambda x, z: two_streams(x, z) - z.cos())]
    programs = [_core.Program(gm, _core.record(gm), handle, number) for number, gm in enumerate(gms, 1)]
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(4, 5, generator=generator)
    for step in range(24):
        for program in programs:
            z = torch.randn(4, 5, generator=generator)
            if step in wrong_steps:
                fault = functools.partial(torch.add, 5.0) if step == 0 else functools.partial(torch.mul, 1.001)
                with Saboteur(0, fault):  # sin, which reads only z
                    x = program([x, z])
            else:
                x = program([x, z])
    handle.close()


@pytest.mark.parametrize("wrong_steps", [[0, *range(14, 24)], [0, 23], range(24)])
def test_details_of_merged_reports_are_the_whole(wrong_steps: Sequence[int], tmp_path: Path) -> None:
    """Outputs of earlier calls are not origins, although a shard alone takes them for origins: no details are lost."""
    dump_chain(tmp_path / "good", [])
    dump_chain(tmp_path / "bad", wrong_steps)
    whole = fxtap.compare(tmp_path / "good", tmp_path / "bad")
    assert len(whole.origins) == 2 * len(wrong_steps)
    assert len(re.findall(r"\[\d+(?:,\d+){47}\]", whole.to_html())) > 8, "histograms of 48 bins, two a pair"
    first = fxtap.compare(tmp_path / "good", tmp_path / "bad", fail_fast=True)
    for n in (2, 3, 7, 60):
        for fail_fast, expected in ((False, whole), (True, first)):
            parts = [
                fxtap.compare(tmp_path / "good", tmp_path / "bad", fail_fast=fail_fast, shard=(k, n)) for k in range(n)
            ]
            merged = fxtap.comparison.Report.merge([part.serialise() for part in parts])
            assert merged.to_json() == expected.to_json(), (n, fail_fast)
            assert merged.to_html() == expected.to_html(), (n, fail_fast)


@pytest.mark.long
def test_by_torchrun(program: str, sides: Path, tmp_path: Path) -> None:
    arguments = [str(sides / "good"), str(sides / "good"), "--json", "r.json"]
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "fxtap"]
    path = f"{Path(program).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        [*command, "compare", *arguments],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        check=True,
    )
    assert done.stdout.decode().startswith(fxtap.compare(sides / "good", sides / "good").to_text())
    assert (tmp_path / "r.json").read_text() == fxtap.compare(*arguments[:2]).to_json()
