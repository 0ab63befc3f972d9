"""`fxtap.verify` on dumps of small models: right operators are not accused, a wrong one is found."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing._internal.common_methods_invocations import op_db

import fxtap
from dumps import dumping, run
from fxtap import _core
from fxtap.verification import judging, random_checks
from planted import Planted
from test_op_db import dumped, samples, traced

DTYPES = [torch.float32, torch.bfloat16, torch.float16]


class Model(torch.nn.Module):
    """Embedding, attention with a mask, gelu, layer norm, dropout, topk."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(50, 32)
        self.layer = torch.nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True, activation="gelu")
        self.norm = torch.nn.LayerNorm(32)

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor) -> Any:
        hidden = self.norm(self.layer(self.embedding(tokens), src_key_padding_mask=mask))
        return hidden[:, ::2].contiguous(), torch.topk(hidden, 3)


def tokens_and_mask() -> tuple[torch.Tensor, torch.Tensor]:
    mask = torch.zeros(3, 12, dtype=torch.bool)
    mask[0, 9:] = True
    return torch.randint(0, 50, (3, 12)), mask


def accused(verification: fxtap.Verification) -> list[tuple[str, str, str]]:
    return [(row["target"], row["verdict"], row["reason"]) for row in verification.wrong]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("dynamic", [False, True])
def test_a_right_training_step(dtype: torch.dtype, dynamic: bool, tmp_path: Path) -> None:
    model = Model().to(dtype)
    hidden, _ = run(tmp_path / "dump", model, *tokens_and_mask(), dynamic=dynamic)
    hidden.float().square().mean().backward()
    verification = fxtap.verify(tmp_path / "dump")
    assert accused(verification) == []
    assert (verification.verdict, verification.exit_status) == ("nothing wrong", 0)
    assert verification.counts["exact"] > 100
    assert [row["reason"] for row in verification.operators if row["verdict"] == "not replayed"] == []
    saved = {tensor.node for tensor in fxtap.open(tmp_path / "dump").tensors(io="OUTPUT")}
    assert {row["node"] for row in verification.operators} == saved


def one_element(result: torch.Tensor) -> torch.Tensor:
    wrong = result.clone(memory_format=torch.contiguous_format)
    wrong.view(-1)[wrong.numel() // 2] += 0.5
    return wrong


FAULTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "element": one_element,
    "scaled": lambda result: result * 1.02,
    "stale": torch.zeros_like,
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_wrong_operator_is_the_only_one_accused(dtype: torch.dtype, fault: str, tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.LayerNorm(32)).to(dtype)
    planted = Planted.of(lambda x: torch.softmax(model(x), -1), torch.randn(8, 16, dtype=dtype))
    for number, place in enumerate(planted.places()[::2]):
        root = tmp_path / str(number)
        planted.run(root, place, FAULTS[fault])
        verification = fxtap.verify(root)
        found = {(row["graph"], row["node"]) for row in verification.wrong}
        assert found == {(place.graph + 1, place.node)}, (place, accused(verification))
        assert verification.exit_status == 1


def in_place(x: torch.Tensor, y: torch.Tensor) -> Any:
    x = x.clone()
    x.add_(y, alpha=0.3)
    x[1:3].mul_(2.5)
    torch._foreach_add_([x, y.clone()], 0.1)
    return x, torch._foreach_mul([x, y], 3.0), torch.split(x, 2), torch.full((3,), 0.1), x.t().contiguous()


def test_in_place_operators_lists_and_several_results(tmp_path: Path) -> None:
    run(tmp_path, in_place, torch.randn(4, 6), torch.randn(4, 6))
    verification = fxtap.verify(tmp_path)
    assert accused(verification) == []
    assert verification.counts["not replayed"] == 0
    saved = [t.node for t in fxtap.open(tmp_path).tensors() if t.io != "INPUT"]
    assert {row["node"]: row["results"] for row in verification.operators} == {n: saved.count(n) for n in saved}


def add_half_more(tensors: list[torch.Tensor], value: float) -> None:
    for tensor in tensors:
        tensor.copy_(tensor + 1.5 * value)


def test_a_wrong_change_in_place_is_found(tmp_path: Path) -> None:
    with torch.library._scoped_library("aten", "IMPL") as library:
        library.impl("_foreach_add_.Scalar", add_half_more, "CPU")
        dump = _core.Dump(str(tmp_path))
        gm = make_fx(lambda x: (torch._foreach_add_([x], 0.5), x)[1])(torch.ones(4))
        dumped(gm, [torch.ones(4)], dump)
        dump.close()
    wrong = fxtap.verify(tmp_path).wrong
    assert [(row["target"], row["slot"]) for row in wrong] == [("aten._foreach_add_.Scalar", "INOUT.0.0")]


def test_a_lost_sign_of_zero_is_found_in_a_cast(tmp_path: Path) -> None:
    planted = Planted.of(lambda x: (x.bfloat16() * 0).float() + 1, torch.linspace(-1, 1, 64))
    place = next(place for place in planted.places() if place.node == "_to_copy_1")
    planted.run(tmp_path, place, torch.abs)
    assert accused(fxtap.verify(tmp_path)) == [("aten._to_copy.default", "biased", "sign of zero")]


def test_grouped_products(tmp_path: Path) -> None:
    """Products of groups of rows, for which torch has no kernel in float64: over rows, columns and inner dimensions."""
    ends = torch.tensor([16, 16, 48], dtype=torch.int32)
    a, b, stacked = torch.randn(48, 32), torch.randn(32, 48), torch.randn(3, 32, 16)
    grouped = torch.ops.aten._grouped_mm.default
    arguments = [t.bfloat16() for t in (a, b, stacked)]

    def products(a: torch.Tensor, b: torch.Tensor, stacked: torch.Tensor) -> Any:
        return grouped(a, stacked, ends), grouped(b, a, ends), grouped(stacked.mT, b, ends)

    planted = Planted.of(products, *arguments)
    planted.run(tmp_path / "right")
    verification = fxtap.verify(tmp_path / "right")
    assert accused(verification) == []
    assert verification.counts["not replayed"] == 0
    places = planted.places()
    planted.run(tmp_path / "wrong", places[-1], one_element)
    assert [row["target"] for row in fxtap.verify(tmp_path / "wrong").wrong] == ["aten._grouped_mm.default"]


def filled(x: torch.Tensor, index: torch.Tensor) -> Any:
    """Write some rows of fresh memory, and compute with all."""
    made = x.new_empty(6, 5).index_put((index,), x)
    return made + x[0], made.sum(0), made.t().contiguous()


def put_one_row_less(x: torch.Tensor, indices: list[torch.Tensor], values: torch.Tensor) -> torch.Tensor:
    result = x.clone()
    result[indices[0][1:]] = values[1:]
    return result


def test_operators_on_undefined_memory_are_replayed_with_what_it_held(tmp_path: Path) -> None:
    x, index = torch.randn(4, 5), torch.tensor([4, 0, 3, 1])
    run(tmp_path / "right", filled, x, index)
    verification = fxtap.verify(tmp_path / "right")
    assert accused(verification) == []
    skipped = [row["target"] for row in verification.operators if row["verdict"] == "not replayed"]
    assert skipped == ["aten.new_empty.default"]
    assert any(t.undefined_count for t in fxtap.open(tmp_path / "right").tensors(io="OUTPUT") if "add" in t.node)
    with torch.library._scoped_library("aten", "IMPL") as library:
        library.impl("index_put", put_one_row_less, "CPU")
        run(tmp_path / "wrong", filled, x, index)
    assert [row["target"] for row in fxtap.verify(tmp_path / "wrong").wrong] == ["aten.index_put.default"]


def drawn(x: torch.Tensor) -> Any:
    return (torch.nn.functional.dropout(x, 0.3), torch.bernoulli(torch.full_like(x, 0.2)), torch.rand_like(x),
            torch.randn_like(x), torch.randint(3, 9, (500,)), torch.randperm(40), x.clone().uniform_(-1))  # fmt: skip


def test_random_operators_are_checked_for_what_can_be(tmp_path: Path) -> None:
    run(tmp_path, drawn, torch.randn(40, 50))
    verification = fxtap.verify(tmp_path)
    assert accused(verification) == []
    plausible = {row["target"].split(".")[1] for row in verification.operators if row["reason"].startswith("random")}
    assert {"native_dropout", "bernoulli", "rand_like", "randn_like", "randint", "randperm"} <= plausible


def drawn_from_distributions(x: torch.Tensor) -> Any:
    weights = torch.tensor([[0.0, 1.0, 2.0, 3.0], [1.0, 0.0, 0.0, 1.0]])
    return (torch.ops.aten.exponential(x, 2.0), torch.ops.aten.geometric(x, 0.3), torch.poisson(x.abs() * 3),
            torch.ops.aten.log_normal(x, 0.5, 1.5), torch.multinomial(weights, 2),
            torch.multinomial(weights, 50, replacement=True))  # fmt: skip


WRONG_DRAWS: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], str]] = {
    "exponential": (lambda r: -r, "values below 0, or not finite"),
    "geometric": (lambda r: r + 1, "implausible mean"),
    "poisson": (lambda r: r + 0.5, "values that are not whole"),
    "log_normal": (lambda r: r * 3, "implausible mean"),
    "multinomial": (lambda r: r * 0 + 1, "values of weight 0"),
}


def dump_draws(root: Path) -> None:
    dump = _core.Dump(str(root))
    x = torch.randn(40, 50, generator=torch.Generator().manual_seed(1))
    torch.manual_seed(2)
    dumped(make_fx(drawn_from_distributions)(x), [x], dump)
    dump.close()


def test_draws_from_distributions_are_plausible(tmp_path: Path) -> None:
    dump_draws(tmp_path)
    verification = fxtap.verify(tmp_path)
    assert accused(verification) == []
    plausible = {row["target"].split(".")[1] for row in verification.operators if row["reason"].startswith("random")}
    assert plausible == WRONG_DRAWS.keys()


@pytest.mark.parametrize("name", WRONG_DRAWS)
def test_wrong_draws_are_found(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change, reason = WRONG_DRAWS[name]
    check = random_checks._CHECKS[name]
    dump_draws(tmp_path)
    monkeypatch.setattr(
        random_checks, "_CHECKS", {name: lambda drawn: check(replace(drawn, values=change(drawn.values)))}
    )
    assert {row["reason"] for row in fxtap.verify(tmp_path).wrong} == {reason}


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (lambda result: result * 1.1, "not the input times mask and scale"),
        (lambda result: torch.where(torch.arange(50) < 3, result + 1, result), "not the input times mask and scale"),
    ],
)
def test_a_wrong_dropout_is_found(fault: Callable[[torch.Tensor], torch.Tensor], reason: str, tmp_path: Path) -> None:
    planted = Planted.of(lambda x: torch.ops.aten.native_dropout(x, 0.3, True)[0], torch.randn(40, 50))
    planted.run(tmp_path, next(p for p in planted.places() if "dropout" in p.node), fault)
    (row,) = fxtap.verify(tmp_path).wrong
    assert reason in row["reason"]


def test_worst_elements_of_a_column_major_result(tmp_path: Path) -> None:
    """Coordinates are those of the tensor, whatever the memory order of its file."""

    def fault(result: torch.Tensor) -> torch.Tensor:
        assert result.stride() == (1, 7)
        result[4, 2] += 1
        return result

    planted = Planted.of(lambda x: x.t() * 2.5, torch.randn(5, 7))
    place = next(place for place in planted.places() if place.node.startswith("mul"))
    planted.run(tmp_path, place, fault)
    assert fxtap.open(tmp_path).tensors("mul*", io="OUTPUT")[0].numpy().flags.f_contiguous
    verification = fxtap.verify(tmp_path)
    assert verification.wrong[0]["worst"][0]["index"] == 4 * 5 + 2
    assert "at [4, 2]: " in verification.to_text()


def test_equal_calls_are_replayed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = torch.compile(lambda x: torch.softmax(x * 2, -1), backend=dumping(tmp_path))
    x = torch.randn(4, 5)
    for _ in range(3):
        model(x)
    calls: list[str] = []
    check = judging.Judge.check
    monkeypatch.setattr(judging.Judge, "check", lambda self, call: calls.append(call.node.name) or check(self, call))
    rows = fxtap.verify(tmp_path).operators
    assert len(calls) == len(set(calls)) == len(rows) / 3
    assert [row["verdict"] for row in rows[: len(calls)]] == [
        row["verdict"] for row in rows[len(calls) : 2 * len(calls)]
    ]


def test_shards_make_the_report_of_one_process(tmp_path: Path) -> None:
    run(tmp_path, Model(), *tokens_and_mask())
    whole = fxtap.verify(tmp_path)
    parts = [fxtap.verify(tmp_path, shard=(k, 3)) for k in range(3)]
    assert all(part.operators for part in parts)
    merged = fxtap.Verification.merge([part.serialise() for part in parts])
    assert merged.to_json() == whole.to_json()


def test_limits_are_told(tmp_path: Path) -> None:
    run(tmp_path, lambda x: torch.softmax(x @ x, -1), torch.randn(30, 30))
    reasons = {row["reason"] for row in fxtap.verify(tmp_path, max_bytes=10).operators}
    assert reasons == {"larger than the size limit"}
    assert fxtap.verify(tmp_path, max_bytes=10).exit_status == 2
    assert "takes longer than the time limit" in {
        row["reason"] for row in fxtap.verify(tmp_path, time_limit=1e-9).operators
    }


def test_a_selection_and_a_pattern_that_matches_nothing(tmp_path: Path) -> None:
    run(tmp_path, lambda x: torch.softmax(x @ x, -1), torch.randn(3, 3))
    assert {row["node"] for row in fxtap.verify(tmp_path, op="*mm*").operators} == {"mm"}
    with pytest.raises(fxtap.PatternError, match="softmx"):
        fxtap.verify(tmp_path, op="softmx")
    with pytest.raises(LookupError):
        fxtap.verify(tmp_path, graph=77)


NAMES = (
    "mm bmm addmm nn.functional.conv2d nn.functional.layer_norm softmax gelu sum mean cumsum sort topk max where cat"
)


def verify_samples(names: set[str] | None, dtype: torch.dtype, root: Path, count: int) -> list[tuple[str, str, str]]:
    dump = _core.Dump(str(root))
    for op in op_db:
        if dtype not in op.supported_dtypes("cpu") or (names is not None and op.name not in names):
            continue
        try:
            for sample in samples(op, dtype, count):
                dumped(*traced(op, sample), dump)
        except Exception:
            continue  # cannot be traced, or run here
    dump.close()
    verification = fxtap.verify(root)
    assert verification.counts["exact"] > 0
    return accused(verification)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_samples_of_common_operators(dtype: torch.dtype, tmp_path: Path) -> None:
    assert verify_samples(set(NAMES.split()), dtype, tmp_path, 3) == []


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", [*DTYPES, torch.complex64], ids=str)
def test_samples_of_all_operators(dtype: torch.dtype, tmp_path: Path) -> None:
    assert verify_samples(None, dtype, tmp_path, 4) == []
