"""`fxtap compare --verify`: both answers in one report, and which differences are only rounding."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import fxtap
from program_run import Run
from replayed import dump, example, model, scaled, wrong_gelu

Compare = Callable[..., subprocess.CompletedProcess[str]]
ROUNDING = "but nothing is wrong: all is rounding"


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("verified")
    for name, dtype in (("float32", torch.float32), ("bfloat16", torch.bfloat16)):
        dump(root / name, model, [example(dtype)])
        dump(root / f"{name}-wrong", model, [example(dtype)], wrong_gelu(scaled(1.1)))
    dump(root / "steps", model, [example()], wrong_gelu(scaled(1.1)), steps=2)
    dump(root / "other-input", model, [example() + 1])
    dump(root / "ranks", model, [example()], wrong_gelu(scaled(1.1)), world_size=2)
    return root


@pytest.fixture
def compare(run: Run, dumps: Path) -> Compare:
    def compare(golden: str, target: str, *arguments: object) -> subprocess.CompletedProcess[str]:
        sides = [dumps / golden, dumps / target] if target else [dumps / golden]
        return run("compare", *sides, "--verify", *arguments, FXTAP_PYTHON=sys.executable)

    return compare


def report(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_rounding_is_nothing_wrong(compare: Compare) -> None:
    done = compare("float32", "bfloat16")
    assert (done.returncode, done.stderr) == (0, "")
    first, _, second, *rest = done.stdout.splitlines()
    assert first.startswith("DIFFERENT  ") and first.endswith(ROUNDING)
    assert second.startswith("NOTHING WRONG  ") and second.endswith("within bfloat16's rounding")
    assert "        rounding: it does what golden's does, with the inputs that it got" in rest
    assert "Is it rounding?" not in done.stdout
    quiet = compare("float32", "bfloat16", "-q")
    assert (quiet.returncode, quiet.stdout) == (0, first + "\n")


def test_a_wrong_operator_is_named(compare: Compare) -> None:
    done = compare("float32", "float32-wrong")
    first, _, second, *_ = done.stdout.splitlines()
    assert done.returncode == 1
    assert first.startswith("DIFFERENT  ") and first.endswith(", and 1 operator is wrong: gelu_1")
    assert second == "WRONG  gelu_1  aten.gelu.default"
    found = report(compare("float32", "float32-wrong", "--json", "-"))
    assert not found["is_rounding"]
    assert [row["node"] for row in found["verification"]["wrong"]] == ["gelu_1"]
    assert [(origin["node"], origin["reason"]) for origin in found["origins"]] == [("gelu_1", "operator")]


def test_a_wrong_operator_is_found_among_rounding(compare: Compare) -> None:
    """All origins are rounding, for the fault is not where the tolerance is first left; something is wrong."""
    found = report(compare("float32", "bfloat16-wrong", "--json", "-"))
    assert {origin["reason"] for origin in found["origins"]} == {"rounding"}
    assert not found["is_rounding"]
    assert compare("float32", "bfloat16-wrong", "-q").returncode == 1


def test_equal_sides_may_both_be_wrong(compare: Compare) -> None:
    done = compare("float32-wrong", "float32-wrong", "-q")
    assert done.returncode == 1
    assert done.stdout.startswith("SAME  ") and done.stdout.endswith("all equal, but 1 operator is wrong: gelu_1\n")
    done = compare("float32", "float32", "-q")
    assert done.returncode == 0 and done.stdout.endswith("all equal, and nothing is wrong\n")


def test_other_inputs_are_not_rounding(compare: Compare) -> None:
    done = compare("float32", "other-input", "-q")
    assert done.returncode == 1
    assert done.stdout.startswith("DIFFERENT  ") and done.stdout.endswith(", though no operator is wrong\n")


def test_what_is_missing_or_not_compared_is_not_rounding(compare: Compare, dumps: Path, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(dumps / "bfloat16", tmp_path / "d")
    removed = next((tmp_path / "d").rglob("gelu_2-*OUTPUT*.npy"))
    removed.unlink()
    assert compare("float32", str(tmp_path / "d"), "-q").returncode == 2  # cannot be read
    done = compare("float32", "bfloat16", "-q", "--fail-fast")
    assert done.returncode == 1 and done.stdout.endswith(", though no operator is wrong\n")


def test_results_have_their_verdict(compare: Compare) -> None:
    rows = list(csv.DictReader(io.StringIO(compare("float32", "float32-wrong", "--csv", "-").stdout)))
    verified = {row["Target Name"]: row["Verified"] for row in rows}
    assert verified["gelu_1-aten.gelu.default.OUTPUT.0"] == "wrong"
    assert verified["gelu_1-aten.gelu.default.INPUT.0"] == ""
    assert verified["gelu-aten.gelu.default.OUTPUT.0"] in ("exact", "rounding")
    pairs = report(compare("float32", "float32-wrong", "--json", "-"))["pairs"]
    assert [pair["node"] for pair in pairs if pair.get("verified") == "wrong"] == ["gelu_1"]


def test_without_verify_nothing_is_added(run: Run, dumps: Path) -> None:
    plain = ["compare", dumps / "float32", dumps / "float32-wrong"]
    assert "Verified" not in run(*plain, "--csv", "-").stdout.splitlines()[0]
    assert not {"verification", "is_rounding"} & json.loads(run(*plain, "--json", "-").stdout).keys()


@pytest.mark.parametrize(("part", "status", "node"), [(["--step", "0:1"], 1, "gelu_1"), (["--step", "1:0"], 1, None)])
def test_two_parts_of_one_dump(compare: Compare, part: list[str], status: int, node: str | None) -> None:
    """The steps have different inputs; the fault is in step 1 alone, and found if that is the target."""
    done = compare("steps", "", *part, "-q")
    assert done.returncode == status
    assert done.stdout.endswith(f"wrong: {node}\n" if node else ", though no operator is wrong\n")


def test_ranks_of_different_numbers(compare: Compare) -> None:
    done = compare("ranks", "", "--rank", "0:1", "--json", "-")
    found = report(done)
    assert {(row["rank"], row["node"]) for row in found["verification"]["wrong"]} == {(1, "gelu_1")}
    assert "gelu_1" in {pair["node"] for pair in found["pairs"] if pair.get("verified") == "wrong"}
    assert not [row for row in found["verification"]["operators"] if row["reason"].startswith("by itself")]


def test_shards_are_verified_when_they_are_merged(compare: Compare, tmp_path: Path) -> None:
    (tmp_path / "shards").mkdir()
    for k in range(2):
        assert compare("float32", "bfloat16", "--shard", f"{k}/2", "--out", f"shards/{k}").returncode == 0
    assert compare("float32", "bfloat16", "--merge", "shards").stdout == compare("float32", "bfloat16").stdout


def test_trouble(compare: Compare, run: Run, dumps: Path, tmp_path: Path) -> None:
    done = run("compare", "--across-ranks", dumps / "ranks", "--verify")
    assert done.returncode == 2 and "--verify and --across-ranks do not go together" in done.stderr
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\nexit 77\n")
    fake.chmod(0o755)
    done = compare("float32", "bfloat16", "--python", fake)
    assert (done.returncode, done.stdout) == (2, "") and done.stderr.count("\n") == 1
    assert "has no module fxtap" in done.stderr and "--python" in done.stderr


def test_nothing_replayed_is_trouble(compare: Compare, dumps: Path) -> None:
    for name in ("random", "random-too"):
        dump(dumps / name, lambda x: torch.ops.aten.binomial.default(x, x), [torch.ones(4)])
    done = compare("random", "random-too", "-q")
    assert done.returncode == 2
    assert done.stdout.endswith("; no operator could be verified\n")


def test_from_python(dumps: Path) -> None:
    found = fxtap.compare(dumps / "float32", dumps / "bfloat16", verify=True)
    assert (found.verdict, found.is_rounding, found.exit_status) == ("different", True, 0)
    assert found.verification is not None and found.verification.verdict == "nothing wrong"
    assert {origin.reason for origin in found.origins} == {"rounding"}
    assert set(found.to_pandas()["verified"].dropna()) == {"exact", "rounding"}
    wrong = fxtap.compare(dumps / "float32", dumps / "float32-wrong", verify=True)
    assert (wrong.is_rounding, wrong.exit_status) == (False, 1)
    assert [pair.node for pair in wrong.pairs if pair.verified == "wrong"] == ["gelu_1"]
    steps = fxtap.compare(dumps / "steps", step=(0, 1), verify=True)
    assert steps.verification is not None and [row["step"] for row in steps.verification.wrong] == [1]
    plain = fxtap.compare(dumps / "float32", dumps / "bfloat16")
    assert (plain.verification, plain.is_rounding, plain.exit_status) == (None, None, 1)
    assert "verified" not in plain.to_pandas()
    with pytest.raises(ValueError, match="not a shard"):
        fxtap.compare(dumps / "float32", dumps / "bfloat16", verify=True, shard=(0, 2))
