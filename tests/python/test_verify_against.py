"""Golden's operators on target's values: `fxtap.verify(target, against=golden)`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._decomp import get_decompositions

import fxtap
from planted import Planted

WIDTH = 64


class Block(nn.Module):
    """A transformer's block in small."""

    def __init__(self, *, approximate: str = "none", eps: float = 1e-5, scale: float = WIDTH**-0.5) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH, eps=eps)
        self.attention = nn.Linear(WIDTH, 3 * WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.gelu = nn.GELU(approximate=approximate)
        self.scale = scale

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.attention(self.norm(x)).chunk(3, -1)
        scores = q @ k.transpose(-1, -2) * self.scale
        lowest = torch.full_like(scores, torch.finfo(scores.dtype).min)
        mask = torch.ones(x.shape[-2], x.shape[-2], dtype=torch.bool).tril()
        x = x + torch.where(mask, scores, lowest).softmax(-1) @ v
        return x + self.down(self.gelu(self.up(x)))


def dump(
    root: Path,
    dtype: torch.dtype,
    *,
    decomposed: tuple[str, ...] = (),
    wrap: Callable[[nn.Module], nn.Module] | None = None,
    **changes: Any,
) -> Path:
    """Dump one call of a block with fixed weights and input."""
    torch.manual_seed(3)
    torch._dynamo.reset()
    model = Block(**changes).eval().to(dtype)
    config = fxtap.CompilerConfig()
    config.debug.data_dump.type = "npy"
    config.debug.data_dump.path = str(root)
    table = get_decompositions([getattr(torch.ops.aten, name) for name in decomposed])
    backend = fxtap.get_npu_backend(compiler_config=config, custom_decompositions=table)
    x = torch.randn(4, 16, WIDTH, generator=torch.Generator().manual_seed(4)).to(dtype)
    with torch.inference_mode():
        torch.compile(wrap(model) if wrap else model, backend=backend)(x)
    return root


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return dump(tmp_path_factory.mktemp("golden") / "dump", torch.float32)


def accused(found: fxtap.Verification) -> list[tuple[str, str]]:
    return [(row["node"], row["verdict"]) for row in found.wrong]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_right_program(golden: Path, tmp_path: Path, dtype: torch.dtype) -> None:
    found = fxtap.verify(dump(tmp_path / "d", dtype), against=golden)
    assert found.verdict == "nothing wrong", accused(found)
    assert found.counts["not replayed"] == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    ("changes", "operator", "text"),
    [
        ({"approximate": "tanh"}, "aten.gelu.default", "approximate: only in target"),
        ({"eps": 1e-3}, "aten.native_layer_norm.default", "eps: golden 1e-05, target 0.001"),
        ({"scale": (WIDTH + 1) ** -0.5}, "aten.mul.Tensor", "other: golden 0.125, target"),
    ],
)
def test_literal_that_differs(
    golden: Path, tmp_path: Path, dtype: torch.dtype, changes: dict[str, Any], operator: str, text: str
) -> None:
    found = fxtap.verify(dump(tmp_path / "d", dtype, **changes), against=golden)
    assert [row["target"] for row in found.wrong] == [operator]
    assert found.wrong[0]["reason"].startswith(text)
    assert found.wrong[0]["reason"].endswith("its kernel is right")


@pytest.mark.parametrize(
    "names", [("native_layer_norm",), ("_softmax",), ("gelu", "native_layer_norm", "_softmax", "addmm")]
)
def test_decomposed(golden: Path, tmp_path: Path, names: tuple[str, ...]) -> None:
    """The result of a region is what golden's one operator gives from the region's inputs."""
    found = fxtap.verify(dump(tmp_path / "d", torch.float32, decomposed=names), against=golden)
    assert found.verdict == "nothing wrong", accused(found)


def test_fault_in_a_decomposition(golden: Path, tmp_path: Path) -> None:
    found = fxtap.verify(
        dump(tmp_path / "d", torch.float32, decomposed=("native_layer_norm",), eps=1e-3), against=golden
    )
    assert found.verdict == "wrong"
    assert all("golden computes it by native_layer_norm" in row["reason"] for row in found.wrong), found.wrong


def test_fused_against_decomposed(golden: Path, tmp_path: Path) -> None:
    """Several of golden's operators stand against one of target's."""
    many = dump(tmp_path / "many", torch.float32, decomposed=("native_layer_norm", "_softmax"))
    found = fxtap.verify(golden, against=many)
    assert found.verdict == "nothing wrong", accused(found)


def test_autocast(golden: Path, tmp_path: Path) -> None:
    """A cast that only target has is judged by itself."""

    class Cast(nn.Module):
        def __init__(self, inner: nn.Module) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, x: Tensor) -> Tensor:
            with torch.autocast("cpu", torch.bfloat16):
                return self.inner(x)

    found = fxtap.verify(dump(tmp_path / "d", torch.float32, wrap=Cast), against=golden)
    assert found.verdict == "nothing wrong", accused(found)


def test_another_scale_of_masked_attention(tmp_path: Path) -> None:
    q, k, v = torch.randn(3, 2, 4, 24, 16, generator=torch.Generator().manual_seed(5))
    mask = torch.ones(24, 24, dtype=torch.bool).tril()
    attend = torch.nn.functional.scaled_dot_product_attention
    for name, size in (("golden", 16), ("target", 17)):
        planted = Planted.of(lambda q, k, v, size=size: attend(q, k, v, attn_mask=mask, scale=size**-0.5), q, k, v)
        planted.run(tmp_path / name)
    wrong = fxtap.verify(tmp_path / "target", against=tmp_path / "golden").wrong
    assert [row["reason"].partition(":")[0] for row in wrong] == ["scale"]


def test_exact_chain(golden: Path, tmp_path: Path) -> None:
    """In bfloat16 the final distance is the rounding's; a program that differs is much further from the exact value."""
    right = fxtap.verify(dump(tmp_path / "b", torch.bfloat16), against=golden, exact=True).operators[-1]["distances"]
    assert right["golden"] < 1e-5 < 1e-3 < right["target"] < 0.1
    assert 0.2 < right["target"] / right["rounding"] < 5
    other = fxtap.verify(dump(tmp_path / "w", torch.float32, eps=1e-1), against=golden, exact=True)
    wrong = other.operators[-1]["distances"]
    assert wrong["rounding"] < 1e-5 < 1e-3 < wrong["target"]
    assert "relative distance from the exact value" in other.to_text()


def test_what_differs_only_because_of_it(golden: Path, tmp_path: Path) -> None:
    """Between runs of equal precision, that is all that differs after the wrong operator."""
    found = fxtap.verify(dump(tmp_path / "w", torch.float32, eps=1e-1), against=golden)
    (wrong,) = found.wrong
    compared = fxtap.compare(golden, tmp_path / "w")
    differing = [
        pair for pair in compared.differing if pair.io != "INPUT" and pair.order > compared.origins[0].pair.order
    ]
    assert wrong["downstream"]["results"] == len(differing) > 10
    assert wrong["downstream"]["first"] == differing[0].node
    assert wrong["downstream"]["first_source"].endswith(f":{differing[0].source_line}")
    text = f"carried {len(differing)} later tensors differ only because of it, first {differing[0].node}"
    assert text in found.to_text()
    alone = fxtap.verify(tmp_path / "w")
    assert "downstream" not in str(alone.operators)


def test_single_ranks_pair_whatever_their_numbers(golden: Path, tmp_path: Path) -> None:
    """Each side has one rank; target's is another one."""
    target = dump(tmp_path / "d", torch.float32, eps=1e-3)
    (folder,) = target.glob("worldsize*")
    folder.rename(folder.with_name("worldsize4_global_rank3"))
    found = fxtap.verify(target, against=golden)
    assert [row["reason"] for row in found.operators if row["reason"].startswith("by itself")] == []
    assert [row["target"] for row in found.wrong] == ["aten.native_layer_norm.default"]


def test_opened_dumps_keep_their_runs(tmp_path: Path) -> None:
    """Both sides are the runs that were opened, not the latest ones."""

    def gelu(approximate: str) -> Planted:
        return Planted.of(lambda x: torch.nn.functional.gelu(x + 1, approximate=approximate), torch.randn(64))

    later = Planted.of(lambda x: torch.softmax(x * 2, -1), torch.randn(64))
    for root, first in (("golden", gelu("none")), ("target", gelu("tanh"))):
        first.run(tmp_path / root)
        later.run(tmp_path / root)
    golden, target = fxtap.open(tmp_path / "golden", run=1), fxtap.open(tmp_path / "target", run=1)
    assert [row["target"] for row in fxtap.verify(target, against=golden).wrong] == ["aten.gelu.default"]


def test_exact_needs_golden(golden: Path) -> None:
    with pytest.raises(ValueError, match="exact needs a golden dump"):
        fxtap.verify(golden, exact=True)
