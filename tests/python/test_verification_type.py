"""Judging, collecting and merging results through the extension's type Verification."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fxtap import _core

SOURCE = ("model.py", 12, "forward", "return gelu(x)")


def saved(value: torch.Tensor) -> np.ndarray[Any, Any]:
    """The form in which a tensor is saved: float32 for what NumPy lacks."""
    lacks = value.dtype == torch.bfloat16 or "float8" in str(value.dtype)
    return (value.float() if lacks else value).numpy()


def add(verification: _core.Verification, verdict: str, node: str = "gelu", order: int = 0, reason: str = "") -> None:
    place = (0, 1, 0, node, "aten.gelu.default", "OUTPUT 0", SOURCE, "L['self'].act", "bfloat16", (4, 16))
    verification.add(*place, verdict, reason, call=3, order=order)


FLOATS = ["float16", "bfloat16", "float32", "float64", "float8_e5m2", "float8_e4m3fn", "float8_e4m3fnuz"]
FLOATS += ["float8_e5m2fnuz"]


@pytest.mark.parametrize("dtype", FLOATS)
def test_torch_rounds_to_nearest(dtype: str) -> None:
    """Torch's own conversion is the correctly rounded one, over the whole range, overflow and subnormals included."""
    generator = torch.Generator().manual_seed(1)
    exponents = torch.randint(-48, 40, (200_000,), generator=generator)
    values = torch.randn(200_000, generator=generator, dtype=torch.float64) * 10.0**exponents
    values = torch.cat([values, torch.linspace(-600, 600, 50_001, dtype=torch.float64)])
    by_float32 = dtype not in ("float32", "float64")  # torch rounds twice: the reference is what it has in between
    if by_float32:
        values = values.float().double()
    special = torch.tensor([0.0, -0.0, torch.inf, -torch.inf, torch.nan], dtype=torch.float64)
    values = torch.cat([values, special])
    rounded = values.float() if by_float32 else values
    result = saved(rounded.to(getattr(torch, dtype)))
    assert _core.Verification(None, "dump").judge(result, dtype, values.numpy()) == "exact"


def test_stages() -> None:
    x = torch.randn(64, 64, generator=torch.Generator().manual_seed(2)).bfloat16()
    reference = torch.nn.functional.gelu(x.double())
    third = saved(torch.nn.functional.gelu(x))
    wrong = saved(torch.nn.functional.gelu(x, approximate="tanh"))
    spread = np.abs(reference.numpy()) * 2**-8
    verification = _core.Verification(None, "dump")
    given: dict[str, Any] = {"pointwise": True, "coarse_dtype": "bfloat16", "reduction": 1}
    assert verification.judge(wrong, "bfloat16", reference.numpy(), **given) == "third"
    given["third"] = third
    assert verification.judge(wrong, "bfloat16", reference.numpy(), **given) == "spread"
    given |= {"spread": spread, "spread_runs": 3}
    assert verification.judge(wrong, "bfloat16", reference.numpy(), **given) == "more spread"
    given["spread_runs"] = 15
    verdict = verification.judge(wrong, "bfloat16", reference.numpy(), **given)
    assert verdict in ("biased", "wrong")
    assert verification.judge(third, "bfloat16", reference.numpy(), **given) in ("exact", "rounding")
    assert verification.judge(wrong, "bfloat16", reference.numpy(), **given) == verdict
    add(verification, verdict)
    (found,) = verification.wrong
    right = reference.bfloat16().float().numpy()
    assert found["misrounded"] == np.mean(wrong != right)
    assert found["misrounded_usual"] == np.mean(third != right)
    assert found["count"] == 64 * 64
    assert (found["node"], found["source"], found["shape"]) == ("gelu", "model.py:12", [4, 16])
    worst = found["worst"][0]
    assert worst["saved"] == wrong.flat[worst["index"]]
    assert worst["exact"] == reference.numpy().flat[worst["index"]]


def test_complex_bool_and_integers() -> None:
    verification = _core.Verification(None, "dump")
    z = np.array([1 + 2j, 3 - 1e-3j])
    assert verification.judge(z.astype("complex64"), "complex64", z) == "exact"
    assert verification.judge(z.astype("complex64") * 1.5, "complex64", z, no_third=True, no_spread=True) == "wrong"
    flags = np.array([True, False])
    assert verification.judge(flags, "bool", flags) == "exact"
    assert verification.judge(~flags, "bool", flags) == "third"
    assert verification.judge(~flags, "bool", flags, third=~flags) == "rounding"
    index = np.array([3, 4])
    assert verification.judge(index, "int64", index + 1, third=index + 1) == "wrong"
    assert verification.judge(index, "int64", index + 1, third=index + 1, wrong_indices=0) == "rounding"


def test_arguments_are_checked() -> None:
    verification = _core.Verification(None, "dump")
    x = np.zeros(4)
    with pytest.raises(ValueError, match="reference has 32 bytes, expected 16"):
        verification.judge(np.zeros(2), "float64", x)
    with pytest.raises(ValueError, match="third has 8 bytes, expected 32"):
        verification.judge(x, "float64", x, third=np.zeros(1))
    with pytest.raises(ValueError, match="spread has 8 bytes"):
        verification.judge(x, "float64", x, spread=np.zeros(1))
    with pytest.raises(ValueError, match="not a whole number"):
        verification.judge(np.zeros(3, dtype="int8"), "float16", x)
    with pytest.raises(ValueError, match="not aligned"):
        verification.judge(np.zeros(1, dtype="float32"), "float32", memoryview(np.zeros(9, dtype="int8"))[1:])
    with pytest.raises(ValueError, match="dtype 'float99' is not known"):
        verification.judge(x, "float99", x)
    with pytest.raises(ValueError, match="not saved"):
        verification.judge(x, "qint8", x)
    with pytest.raises(ValueError, match="verdict 'odd' is not known"):
        add(verification, "odd")
    with pytest.raises(ValueError, match="not contiguous"):
        verification.judge(np.zeros((4, 4))[:, ::2], "float64", x)
    assert verification.operators == []


def test_values_of_a_dump_are_judged(tmp_path: Path) -> None:
    x = np.linspace(0, 1, 12, dtype="float32").reshape(3, 4)
    np.save(tmp_path / "x.npy", x)
    values = _core.Reader(tmp_path / "x.npy").tensors().open(0)
    assert _core.Verification(None, "dump").judge(values, "float32", x.astype("float64")) == "exact"


def build(part: int = 0, n_parts: int = 1) -> _core.Verification:
    verification = _core.Verification("good", "bad")
    for i in range(part, 20, n_parts):
        x = np.linspace(1, 2 + i, 64)
        result = saved(torch.from_numpy(x).bfloat16())
        result[i] *= 1 + i % 3
        settings: dict[str, Any] = {"no_third": True, "spread": np.zeros(64), "spread_runs": 15}
        add(verification, verification.judge(result, "bfloat16", x, **settings), f"gelu_{i}", i)
        if i % 7 == 0:
            add(verification, "not replayed", f"gelu_{i}", i, "random")
    return verification


@pytest.mark.parametrize("n_parts", [2, 3, 7])
def test_the_split_does_not_show(n_parts: int) -> None:
    whole = build()
    merged = _core.merge_verifications([build(part, n_parts).serialise() for part in reversed(range(n_parts))])
    for format in range(1, 5):
        assert merged.print(format) == whole.print(format)
    assert merged.serialise() == whole.serialise()
    assert merged.counts == whole.counts == {"not replayed": 0, "exact": 7, "rounding": 0, "biased": 0, "wrong": 13}
    assert merged.verdict == "wrong"


def test_json_is_what_python_has() -> None:
    verification = build()
    document = json.loads(verification.print(2))
    assert document["verdict"] == "wrong"
    assert document["operators"] == verification.operators
    assert document["wrong"] == verification.wrong
    assert document["counts"] == {"operators": 20, **verification.counts}
    assert {"node", "target", "verdict", "rank", "graph", "step", "slot", "source", "module"} < set(
        document["wrong"][0]
    )


def test_other_threads_run_meanwhile() -> None:
    n = 4_000_000
    x = np.linspace(0, 1, n)
    result, verification = x.astype("float32"), _core.Verification(None, "dump")
    refused: list[str] = []
    running = threading.Event()

    def measure() -> None:
        running.set()
        for _ in range(20):
            assert verification.judge(result, "float32", x) == "exact"

    thread = threading.Thread(target=measure)
    thread.start()
    running.wait()
    while thread.is_alive():
        try:
            _ = verification.counts
        except RuntimeError as error:
            refused.append(str(error))
    thread.join()
    assert refused and set(refused) == {"the verification is in use by another thread"}
