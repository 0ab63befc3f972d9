"""The first origin of a comparison is the operator with the planted fault; equal runs have no origin."""

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import fxtap
from fxtap.testing import assert_dumps_close
from planted import Fault, Place, Planted


def gpt2() -> Planted:
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(n_layer=2, n_embd=32, n_head=4, vocab_size=101, n_positions=32)
    torch.manual_seed(1)
    model = transformers.GPT2LMHeadModel(config).eval()
    tokens = torch.randint(0, 101, (2, 12))
    with torch.no_grad():
        return Planted.of(lambda ids: model(input_ids=ids, use_cache=False).logits, tokens)


def cnn() -> Planted:
    torch.manual_seed(2)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 12, 3), nn.BatchNorm2d(12), nn.SiLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(12, 5),
        nn.LogSoftmax(-1),
    ).eval()  # fmt: skip
    with torch.no_grad():
        return Planted.of(model, torch.randn(2, 3, 16, 16))


def training_step() -> Planted:
    torch.manual_seed(3)
    model = nn.Sequential(
        nn.Linear(12, 24), nn.LayerNorm(24), nn.GELU(), nn.Dropout(0.2), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 4)
    )

    def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(model(x), y)

    return Planted.of(step, torch.randn(6, 12), torch.randint(0, 4, (6,)))


MODELS = {"gpt2": gpt2, "cnn": cnn, "training_step": training_step}


def one_element(rng: random.Random) -> Fault:
    """Change one element by a tenth of the largest, or by a hundredth, whichever is more."""
    where = rng.random()

    def fault(value: torch.Tensor) -> torch.Tensor:
        wrong = value.clone()  # with the same strides
        place = np.unravel_index(int(where * value.numel()), tuple(value.shape))
        wrong[tuple(map(int, place))] += max(0.1 * float(value.abs().max()), 0.01)
        return wrong

    return fault


def all_elements(rng: random.Random) -> Fault:
    """Change every element by one part in a hundred, plus a thousandth."""
    return lambda value: value * 1.01 + 1e-3


def not_a_number(rng: random.Random) -> Fault:
    """Set the last element to NaN."""

    def fault(value: torch.Tensor) -> torch.Tensor:
        wrong = value.clone()
        wrong[tuple(extent - 1 for extent in value.shape)] = float("nan")
        return wrong

    return fault


FAULTS = (one_element, all_elements, not_a_number)


def first_difference(planted: Planted, root: Path, place: Place, fault: Fault) -> fxtap.comparison.Report:
    planted.run(root / "bad", place, fault)
    return fxtap.compare(root / "good", root / "bad")


def draws(planted: Planted, place: Place) -> bool:
    """Attention draws random numbers only for dropout, which these models do not use."""
    return "random" in planted.flags(place) and "scaled_dot_product" not in place.node


def check_planted(planted: Planted, root: Path, place: Place, fault: Fault) -> None:
    report = first_difference(planted, root, place, fault)
    assert report.verdict == "different"
    origin = report.origins[0]
    assert (origin.pair.graph, origin.node) == (place.graph + 1, place.node)
    assert origin.reason == ("random" if draws(planted, place) else "operator")
    assert origin.pair.io != "INPUT" and origin.pair.verdict == "different"
    others = [other for other in report.origins[1:] if other.pair.graph == place.graph + 1]
    assert not others, "an error has one origin in its graph"
    assert {other.reason for other in report.origins[1:]} <= {"graph input"}  # in the backward graph
    assert report.counts["only in golden"] == report.counts["only in target"] == 0


class Literals(nn.Module):
    """Return literals in the code: arguments that no node feeds."""

    def __init__(self, eps: float = 1e-5, slope: float = 0.1, shift: int = 2) -> None:
        super().__init__()
        self.first, self.norm, self.second = nn.Linear(8, 8), nn.LayerNorm(8, eps), nn.Linear(8, 8)
        self.slope, self.shift = slope, shift

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.leaky_relu(self.norm(self.second(self.first(x)).roll(self.shift)), self.slope).sin()


@pytest.mark.parametrize(
    "change, node, literal",
    [
        ({"eps": 0.1}, "native_layer_norm", "eps: golden 1e-05, target 0.1"),
        ({"slope": 0.3}, "leaky_relu", "negative_slope: golden 0.1, target 0.3"),
        ({"shift": 3}, "roll", "shifts: golden [2], target [3]"),
    ],
)
def test_operator_with_another_literal_is_the_origin(
    change: dict[str, Any], node: str, literal: str, tmp_path: Path
) -> None:
    x = torch.randn(4, 8)
    for name, arguments in (("good", {}), ("bad", change)):
        torch.compiler.reset()
        torch.manual_seed(0)
        with torch.no_grad(), fxtap.dump(tmp_path / name):
            torch.compile(Literals(**arguments).eval(), backend="fxtap")(x)
    report = fxtap.compare(tmp_path / "good", tmp_path / "bad")
    assert [(origin.node, origin.reason) for origin in report.origins] == [(node, "operator")]
    assert report.origins[0].pair.io == "OUTPUT"
    assert report.origins[0].literal == literal
    assert literal in str(report)


class Activated(nn.Module):
    """One line whose module differs between the sides."""

    def __init__(self, activation: nn.Module) -> None:
        super().__init__()
        self.first, self.activation, self.second = nn.Linear(8, 8), activation, nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.first(x)
        h = self.activation(h)
        out: torch.Tensor = self.second(h)
        return out


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(
    "golden, target, operators",
    [
        (nn.GELU(), nn.ReLU(), ("gelu", "relu")),
        (nn.ReLU(), nn.GELU(), ("relu", "gelu")),
        (nn.SiLU(), nn.GELU(), ("silu", "gelu")),
        (nn.Sigmoid(), nn.Tanh(), ("sigmoid", "tanh")),
        (nn.Softmax(-1), nn.LogSoftmax(-1), ("_softmax", "_log_softmax")),
        (nn.LogSoftmax(-1), nn.ReLU(), ("_log_softmax", "relu")),
    ],
)
def test_another_activation_is_held_against_its_own_operator(
    golden: nn.Module, target: nn.Module, operators: tuple[str, str], training: bool, tmp_path: Path
) -> None:
    """In training some of them are followed by a detach of the values for backward, on the same line."""
    for name, activation in {"golden": golden, "target": target}.items():
        torch.compiler.reset()
        torch.manual_seed(0)
        model, x = Activated(activation).train(training), torch.randn(4, 8)
        with fxtap.dump(tmp_path / name), torch.set_grad_enabled(training):
            out = torch.compile(model, backend="fxtap")(x)
            if training:
                out.square().sum().backward()
    report = fxtap.compare(tmp_path / "golden", tmp_path / "target")
    first = report.origins[0]
    assert (first.reason, first.node) == ("operator", operators[0])
    assert (first.target, first.other_target) == tuple(f"aten.{name}.default" for name in operators)
    assert all("detach" not in f"{origin.target} {origin.other_target}" for origin in report.origins)


class Cast(nn.Module):
    def forward(self, y: torch.Tensor) -> torch.Tensor:
        return y.bfloat16().float()  # a round trip


class OneSided(nn.Module):
    """Operators on one side only, between two that both sides have."""

    def __init__(self, kind: str = "") -> None:
        super().__init__()
        self.first, self.norm, self.second = nn.Linear(8, 8), nn.LayerNorm(8), nn.Linear(8, 8)
        self.cast = Cast()
        self.kind = kind

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.norm(self.first(x))
        y = x.sin()
        if self.kind == "cast":
            y = self.cast(y)
        if self.kind == "in place":
            y[:, 0].add_(0.1)
        if self.kind == "custom":
            y = torch.cummax(y, 0).values
        if self.kind == "transposed":
            return nn.functional.linear(y, self.second.weight.t(), self.second.bias).tanh() + y
        return self.second(y).tanh() + y


def place_between(origin: fxtap.comparison.Origin) -> tuple[str | None, ...]:
    return origin.between, origin.between_source, origin.between_code, origin.between_module


def dump_one_sided(root: Path, kind: str, **options: Any) -> None:
    torch.compiler.reset()
    torch.manual_seed(0)
    with torch.no_grad(), fxtap.dump(root, **options):
        torch.compile(OneSided(kind).eval(), backend="fxtap")(torch.randn(4, 8))


@pytest.mark.parametrize(
    "kind, between, code",
    [
        ("cast", "_to_copy, _to_copy_1", "return y.bfloat16().float()  # a round trip"),
        ("in place", "select, add, select_scatter", "y[:, 0].add_(0.1)"),
        ("custom", "cummax", "y = torch.cummax(y, 0).values"),
        ("transposed", "t_2", "return nn.functional.linear(y, self.second.weight.t(), self.second.bias).tanh() + y"),
    ],
)
def test_operator_that_one_side_alone_has_is_named(kind: str, between: str, code: str, tmp_path: Path) -> None:
    """The report names it, the line that called it and that line's module; its result is read on a different line."""
    dump_one_sided(tmp_path / "without", "")
    dump_one_sided(tmp_path / "with", kind)
    report = fxtap.compare(tmp_path / "without", tmp_path / "with")
    assert [(origin.reason, origin.node) for origin in report.origins] == [("before", "addmm_1")]
    assert report.origins[0].pair.io == "INPUT"
    lines = Path(__file__).read_text().splitlines()
    number = next(n for n, line in enumerate(lines, 1) if line.strip() == code)
    module = "L['self'].cast" if kind == "cast" else None
    place = (f"{__file__}:{number}", code, module)
    assert place_between(report.origins[0]) == (f"{between}, only in target", *place)
    shown = report.to_text(width=200)
    assert "Origin  before addmm_1" in shown and all(f"          {text}\n" in shown for text in place[:2])
    assert f"between {between}, only in target\n" in shown and (module is None or f"          in {module}\n" in shown)
    fields = json.loads(report.to_json())["origins"][0]
    assert tuple(fields[f"between{name}"] for name in ("", "_source", "_code", "_module")) == place_between(
        report.origins[0]
    )
    merged = fxtap.comparison.Report.merge([report.serialise()])
    assert merged.to_json() == report.to_json() and merged.to_html() == report.to_html()
    report = fxtap.compare(tmp_path / "with", tmp_path / "without")
    assert [origin.reason for origin in report.origins] == ["before"]
    assert place_between(report.origins[0]) == (f"{between}, only in golden", *place)


def test_error_above_what_a_filter_kept_begins_at_the_first_that_was_kept(tmp_path: Path) -> None:
    dump_one_sided(tmp_path / "good", "", filter=["tanh", "sin"])
    dump_one_sided(tmp_path / "bad", "transposed", filter=["tanh", "sin"])
    report = fxtap.compare(tmp_path / "good", tmp_path / "bad")
    assert [(origin.reason, origin.node) for origin in report.origins] == [("before", "tanh")]
    assert place_between(report.origins[0]) == (None,) * 4
    assert report.origins[0].n_carried == 1


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("count", [pytest.param(7, id="few"), pytest.param(67, id="many", marks=pytest.mark.long)])
def test_planted_faults(model: str, count: int, tmp_path: Path) -> None:
    planted = MODELS[model]()
    planted.run(tmp_path / "good")
    places = planted.places()
    rng = random.Random(f"{model} {count}")
    for i in range(count):
        place = rng.choice(places)
        fault = FAULTS[i % len(FAULTS)]
        folder = tmp_path / str(i)
        folder.mkdir()
        (folder / "good").symlink_to(tmp_path / "good")
        try:
            check_planted(planted, folder, place, fault(rng))
        except AssertionError as error:
            error.add_note(f"{model}: {place}, {fault.__name__}")
            raise


@pytest.mark.parametrize("model", MODELS)
def test_equal_runs_have_no_origin(model: str, tmp_path: Path) -> None:
    planted = MODELS[model]()
    planted.run(tmp_path / "a")
    planted.run(tmp_path / "b")
    report = assert_dumps_close(tmp_path / "a", tmp_path / "b", read_all=True)
    assert report.verdict == "same" and not report.origins
    assert report.counts["same"] + report.counts["skipped"] == len(report.pairs)


def test_other_seeds(tmp_path: Path) -> None:
    planted = training_step()
    planted.run(tmp_path / "a")
    planted.run(tmp_path / "b", seed=6)
    origin = fxtap.compare(tmp_path / "a", tmp_path / "b").origins[0]
    assert origin.reason == "random" and "dropout" in origin.target
    assert "seeds differ" in fxtap.compare(tmp_path / "a", tmp_path / "b").to_text()


def test_uninitialised_memory_is_never_judged(tmp_path: Path) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        scratch = x.new_empty(x.shape)
        return (torch.ops.aten.fill(scratch, 2.0) + x).relu()

    planted = Planted.of(function, torch.randn(3, 4))
    (record,) = planted.records
    call = [flags for flags, op in zip(record.flags, record.ops, strict=True) if op == "call_function"]
    number = next(i for i, flags in enumerate(call) if "undefined" in flags)
    planted.run(tmp_path / "a")
    planted.run(tmp_path / "b", Place(0, "", number), lambda value: torch.full_like(value, 7.25))
    report = fxtap.compare(tmp_path / "a", tmp_path / "b")
    assert report.verdict == "same" and not report.origins
    assert report.counts["undefined"] == 2  # the output, and the input of the operator that fills it


class Perceptron(nn.Module):
    def __init__(self, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        torch.manual_seed(4)
        self.first = nn.Linear(16, 32, dtype=dtype)
        self.norm = nn.BatchNorm1d(32, dtype=dtype)
        self.second = nn.Linear(32, 8, dtype=dtype)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = nn.functional.gelu(self.norm(self.first(x)))
        return self.second(hidden).softmax(-1)


@contextmanager
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    with torch.no_grad():
        yield


def dump_model(root: Path, model: nn.Module, x: torch.Tensor, decompositions: Any = None) -> None:
    config = fxtap.CompilerConfig()
    config.debug.data_dump.type = "npy"
    config.debug.data_dump.path = root
    backend = fxtap.get_npu_backend(compiler_config=config, custom_decompositions=decompositions or {})
    with fresh():
        torch.compile(model.eval(), backend=backend)(x)


@pytest.mark.parametrize("part", ["second.weight", "norm.running_mean"])
def test_other_weights(part: str, tmp_path: Path) -> None:
    model, x = Perceptron(), torch.randn(4, 16)
    dump_model(tmp_path / "a", model, x)
    with torch.no_grad():
        model.state_dict()[part].view(-1)[3] += 0.5
    dump_model(tmp_path / "b", model, x)
    report = fxtap.compare(tmp_path / "a", tmp_path / "b")
    assert [origin.reason for origin in report.origins] == ["weight"]
    assert report.origins[0].pair.io == "INPUT"
    assert "a weight differs already" in report.to_text()


def test_other_inputs(tmp_path: Path) -> None:
    model, x = Perceptron(), torch.randn(4, 16)
    dump_model(tmp_path / "a", model, x)
    dump_model(tmp_path / "b", model, x + 0.01)
    report = fxtap.compare(tmp_path / "a", tmp_path / "b")
    assert [origin.reason for origin in report.origins] == ["graph input"]
    assert report.origins[0].pair.order == min(pair.order for pair in report.differing)


def test_bfloat16_pairs_with_float32(tmp_path: Path) -> None:
    x = torch.randn(4, 16)
    dump_model(tmp_path / "a", Perceptron(), x)
    dump_model(tmp_path / "b", Perceptron().to(torch.bfloat16), x.bfloat16())
    report = fxtap.compare(tmp_path / "a", tmp_path / "b")
    assert report.counts["only in golden"] == report.counts["only in target"] == report.counts["dtype mismatch"] == 0
    assert report.pairings["exact"] == len(report.pairs)
    assert {(pair.golden_dtype, pair.target_dtype) for pair in report.pairs if pair.golden_dtype == "float32"} == {
        ("float32", "bfloat16")
    }
    tolerances = {(pair.rtol, pair.atol) for pair in report.pairs if pair.verdict == "close"}
    assert tolerances == {(1.6e-2, 1e-5)}
    assert_dumps_close(tmp_path / "a", tmp_path / "b", cosine=0.99)


def test_other_decomposition_pairs_by_source(tmp_path: Path) -> None:
    from torch._decomp import get_decompositions

    x = torch.randn(4, 16)
    table = get_decompositions([torch.ops.aten.gelu])
    dump_model(tmp_path / "a", Perceptron(), x)
    dump_model(tmp_path / "b", Perceptron(), x, table)
    report = fxtap.compare(tmp_path / "a", tmp_path / "b", rtol=1e-5, atol=1e-5)
    assert report.verdict == "close", "operators of one side alone are told, and are no difference"
    assert not report.origins, "no value differs"
    (gelu,) = [pair for pair in report.pairs if pair.target == "aten.gelu.default" and pair.io == "OUTPUT"]
    assert gelu.pairing == "region" and gelu.verdict in ("same", "close")
    assert gelu.n_golden_operators == 1 and gelu.n_target_operators > 3
    assert not report.differing
    assert fxtap.compare(tmp_path / "a", tmp_path / "b", rtol=1e-5, atol=1e-5, strict=True).verdict == "different"
    after = [pair for pair in report.pairs if pair.order > gelu.order and pair.verdict in ("same", "close")]
    assert {pair.pairing for pair in after} <= {"exact", "by source"} and len(after) > 6
