"""Executions of different programs are paired completely, without false origins; a planted fault is named."""

import importlib.util
import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

sys.path.append(str(Path(__file__).resolve().parents[2] / "bench"))

from pairing import PRECISION, RECALL, evaluate, faults_of, generate
from pairing_faults import judge, kept_faults
from pairing_models import TRANSFORMERS
from pairing_variants import Variant, all_variants

NAMES = (
    "mlp.forward",
    "mlp.rewritten",
    "mlp.train_line_break",
    "mlp.decomposed_all",
    "mlp.recompiled",
    "mlp.train_autocast",
    "gpt.eager_attention",
    "gpt.train_projections",
    "gpt.checkpoint",
    "cnn.train_outer_break",
    "cell.hoisted",
    "experts.vmap",
    "two.order",
    "llama.eager_attention",
)
N_FAULTS = 2
VARIANTS = {variant.name: variant for variant in all_variants()}


@pytest.fixture(autouse=True)
def one_thread(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    caplog.set_level(logging.ERROR, "fxtap")
    yield
    torch.set_num_threads(n_threads)


@pytest.mark.parametrize("name", NAMES)
def test_variant_pairs_and_its_faults_are_named(name: str, tmp_path: Path) -> None:
    variant: Variant = VARIANTS[name]
    if variant.golden.model in TRANSFORMERS and importlib.util.find_spec("transformers") is None:
        pytest.skip("transformers is not installed")
    base = tmp_path / "dumps"
    generate(variant, base, N_FAULTS)
    score = evaluate(variant, base)
    assert score.reachable >= 15
    assert score.origins == []
    assert score.precision >= PRECISION, score.wrong
    assert score.recall >= RECALL, score.missed
    planted = kept_faults(faults_of(base), {name})
    assert len(planted) == N_FAULTS
    for fault in planted:
        judgement = judge(fault, faults_of(base), variant.tolerances)
        assert judgement.verdict == "different"
        assert judgement.right, judgement.line()
        assert judgement.false == [], judgement.line()
