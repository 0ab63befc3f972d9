"""`data_dump.type = "verify"`: operators are judged while the model runs, as `fxtap.verify` judges its dump."""

from __future__ import annotations

import logging
import os
import pickle
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import fxtap
from dumps import dumping, load, python, stems
from fxtap import _core
from fxtap.config import CompilerConfig
from fxtap.environment import apply_environment
from fxtap.verification import live
from fxtap.verification.calls import Call
from fxtap.verification.judging import Judge
from test_verify import Model, in_place, tokens_and_mask

PROGRAM = os.environ.get("FXTAP_PROGRAM") or shutil.which("fxtap") or "fxtap"


def program(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=120, check=False)


def files(root: Path) -> list[str]:
    return sorted(path.name for path in root.rglob("*") if path.is_file() and "fxtap.db" not in path.name)


def verdicts(verification: fxtap.Verification | None) -> list[tuple[Any, ...]]:
    """Return what was found for each operator, but for the numbers of the graphs; equal calls have no numbers."""
    assert verification is not None
    rows = verification.operators
    first = min(row["graph"] for row in rows)
    return [(row["graph"] - first, row["node"], row["slot"], row["dtype"], row["verdict"]) for row in rows]


def tanh_gelu(x: Tensor, *, approximate: str = "none") -> Tensor:
    return 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * x**3)))


@pytest.fixture
def wrong_gelu() -> Iterator[None]:
    with torch.library._scoped_library("aten", "IMPL") as library:
        library.impl("gelu", tanh_gelu, "CPU")
        yield


def train(type: str, root: Path, dtype: torch.dtype, autocast: bool = False) -> tuple[CompilerConfig, list[Tensor]]:
    """Run a training step; return the block's configuration, and results, gradients and the next random numbers."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = Model().to(dtype)
    with fxtap.dump(root / type, type=type) as config, torch.autocast("cpu", enabled=autocast):
        hidden, top = torch.compile(model, backend="fxtap")(*tokens_and_mask())
        hidden.float().square().mean().backward()
    gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    return config, [hidden, *top, *gradients, torch.rand(5)]


@pytest.mark.parametrize(
    ("dtype", "autocast"),
    [(torch.float32, False), (torch.bfloat16, False), (torch.float16, False), (torch.float32, True)],
    ids=str,
)
def test_a_right_training_step(dtype: torch.dtype, autocast: bool, tmp_path: Path) -> None:
    """Verdicts are those of a dump, results those of the model, and nothing but the index is written."""
    _, expected = train("npy", tmp_path, dtype, autocast)
    config, results = train("verify", tmp_path, dtype, autocast)
    assert all(torch.equal(found, wanted) for found, wanted in zip(results, expected, strict=True))
    assert config.verification is not None and config.verification.verdict == "nothing wrong"
    assert verdicts(config.verification) == verdicts(fxtap.verify(tmp_path / "npy"))
    assert config.verification.counts["exact"] > 100
    assert files(tmp_path / "verify") == []


def test_the_index_has_the_graphs(tmp_path: Path) -> None:
    train("verify", tmp_path, torch.float32)
    root = tmp_path / "verify"
    opened = fxtap.open(root)
    assert [graph.n_steps for graph in opened.graphs] == [1, 1] and len(opened) == 0
    assert opened.ranks[0].runs[0]["type"] == "verify"
    assert [path.name for path in (root / "worldsize1_global_rank0").iterdir()] == ["fxtap.db"]
    listed = program("ls", root)
    assert listed.returncode == 0 and "backward" in listed.stdout
    drawn = program("graph", root, "--graph", str(opened.graphs[0].graph))
    assert drawn.returncode == 0 and "gelu" in drawn.stdout
    again = program("verify", root)
    assert again.returncode == 2 and "verified while the model ran, and none was wrong" in again.stderr


def test_a_wrong_kernel(
    wrong_gelu: None, tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = nn.Linear(16, 32), nn.LayerNorm(32)

    def model(x: Tensor) -> Tensor:
        hidden = nn.functional.gelu(first(x))
        return nn.functional.gelu(second(hidden))

    compiled = torch.compile(model, backend="fxtap")
    values = [torch.randn(8, 16) for _ in range(3)]
    with caplog.at_level(logging.WARNING, "fxtap"), fxtap.dump(tmp_path, type="verify") as config:
        for x in values:
            compiled(x).sum().backward()
        assert config.verification is not None
        found = [row["node"] for row in config.verification.wrong]
        assert found == ["gelu", "gelu_1"]
    steps = sorted(tmp_path.glob("*/graph_*/*"))
    assert [step.name for step in steps] == ["0", "1", "2"]
    for step, x in zip(steps, values, strict=True):
        assert stems(step) == [f"{node}-aten.gelu.default.{io}.0" for node in found for io in ("INPUT", "OUTPUT")]
        saved = torch.from_numpy(load(step, "gelu-aten.gelu.default.OUTPUT.0"))
        assert torch.equal(saved, tanh_gelu(first(x)))
    lines = [record.getMessage() for record in caplog.records if " is wrong in " in record.getMessage()]
    assert len(lines) == 2 and all("times what rounding allows" in line for line in lines)
    assert [line.rpartition(".py:")[2].partition(": ")[2] for line in lines] == [
        "hidden = nn.functional.gelu(first(x))",
        "return nn.functional.gelu(second(hidden))",
    ]
    (answer,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("fxtap: ")]
    assert answer.startswith("fxtap: WRONG  gelu  aten.gelu.default  2 of ") and "test_verify_live.py:" in answer
    again = program("verify", tmp_path)
    assert again.returncode == 1 and "6 of 6 operators are wrong" in again.stdout


def test_what_is_saved_gets_the_same_verdict(wrong_gelu: None, tmp_path: Path) -> None:
    def model(x: Tensor) -> Tensor:
        return torch.nn.functional.gelu(x.t()[1:]).exp()

    x = torch.randn(30, 20).to(torch.bfloat16)
    with fxtap.dump(tmp_path, type="verify") as config:
        torch.compile(model, backend="fxtap")(x)
    assert config.verification is not None
    (found,), (again,) = config.verification.wrong, fxtap.verify(tmp_path).wrong
    assert found == again and found["verdict"] in ("wrong", "biased")


def test_arguments_that_are_changed_are_saved_as_they_were(tmp_path: Path) -> None:
    def add_half_more(tensors: list[Tensor], value: float) -> None:
        for tensor in tensors:
            tensor.copy_(tensor + 1.5 * value)

    def model(x: Tensor) -> Tensor:
        x = x.clone()
        torch._foreach_add_([x, x[1:3].clone()], 0.5)
        return x

    with torch.library._scoped_library("aten", "IMPL") as library:
        library.impl("_foreach_add_.Scalar", add_half_more, "CPU")
        gm = torch.fx.experimental.proxy_tensor.make_fx(model)(torch.ones(4))
        record = _core.record(gm)
        found = live.Live(str(tmp_path), 0)
        dump = _core.Dump(str(tmp_path), type="verify")
        verifier = live.Verifier(found, gm, record, 1, 1)
        result = _core.Program(gm, record, dump, 1, verifier=verifier)([torch.ones(4)])
        dump.close()
    assert torch.equal(result, torch.full((4,), 1.75))
    (folder,) = tmp_path.glob("*/graph_1/0")
    names = [f"_foreach_add_-aten._foreach_add_.Scalar.{place}" for place in ("INOUT.0.0", "INPUT.0.0")]
    assert load(folder, names[0]).tolist() == [1.75] * 4 and load(folder, names[1]).tolist() == [1.0] * 4
    assert [row["slot"] for row in fxtap.verify(tmp_path).wrong] == ["INOUT.0.0"]


def partly_written(x: Tensor) -> Any:
    memory = torch.empty_like(x)
    memory[:2] = x[:2]
    return memory + 1, memory.new_empty(3), memory[:2] * 2


def random_numbers(x: Tensor) -> Any:
    return torch.nn.functional.dropout(x, 0.4), torch.rand_like(x), torch.bernoulli(x.sigmoid()), torch.randperm(30)


def odd_layouts(x: Tensor) -> Any:
    y = torch.complex(x, x.flip(0)).conj()
    wide = x[0].expand(5, x.shape[1])
    return y @ y.mH, wide.add(1), x[:, ::2].exp(), x.t().contiguous().sum(0), x.as_strided((3, 3), (1, 2)) * 2


@pytest.mark.parametrize("function", [in_place, partly_written, random_numbers, odd_layouts])
def test_operators_of_all_kinds(function: Callable[..., Any], tmp_path: Path) -> None:
    inputs = [torch.randn(6, 8), torch.randn(6, 8)][: 2 if function is in_place else 1]
    found = {}
    for type in ("npy", "verify"):
        torch._dynamo.reset()
        torch.manual_seed(3)
        with fxtap.dump(tmp_path / type, type=type) as config:
            results = torch.compile(function, backend="fxtap")(*[x.clone() for x in inputs])
        found[type] = [str(results), str(torch.rand(3))] if function is not partly_written else []
    assert found["npy"] == found["verify"]
    assert verdicts(config.verification) == verdicts(fxtap.verify(tmp_path / "npy"))
    assert config.verification is not None and config.verification.wrong == []


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("default", [torch.float64, torch.bfloat16], ids=str)
def test_the_models_settings_stay(mode: Callable[[], Any], default: torch.dtype, tmp_path: Path) -> None:
    torch.set_default_dtype(default)
    try:
        with mode(), fxtap.dump(tmp_path, type="verify") as config:
            result = torch.compile(lambda n: n.sum() / n.numel() + n.exp(), backend="fxtap")(torch.arange(9))
            assert result.dtype is default and torch.get_default_dtype() is default
    finally:
        torch.set_default_dtype(torch.float32)
    assert config.verification is not None and config.verification.verdict == "nothing wrong"
    assert config.verification.counts["not replayed"] == 0


def test_threads_see_the_models_default_dtype(tmp_path: Path) -> None:
    """Creating a tensor in another thread must not depend on a judgement that is going on."""
    stop, dtypes = threading.Event(), set()

    def create() -> None:
        while not stop.is_set():
            dtypes.add(torch.ones(1).dtype)

    thread = threading.Thread(target=create)
    model = torch.compile(lambda x: torch.softmax(x @ x, -1).exp().sum(), backend="fxtap")
    thread.start()
    try:
        with fxtap.dump(tmp_path, type="verify"):
            for _ in range(5):
                model(torch.randn(300, 300))
    finally:
        stop.set()
        thread.join()
    assert dtypes == {torch.float32}


def test_models_in_several_threads(tmp_path: Path) -> None:
    model = torch.compile(lambda x: (x @ x).exp().sum(), backend="fxtap")
    results: list[Tensor] = []

    def run() -> None:
        results.extend(model(torch.full((20, 20), 0.01)) for _ in range(10))

    threads = [threading.Thread(target=run) for _ in range(3)]
    config = CompilerConfig()
    config.debug.data_dump.type, config.debug.data_dump.path = "verify", tmp_path
    model = torch.compile(lambda x: (x @ x).exp().sum(), backend=fxtap.get_npu_backend(compiler_config=config))
    model(torch.full((20, 20), 0.01))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 30 and len({float(result) for result in results}) == 1
    assert config.verification is not None
    assert [row["node"] for row in config.verification.operators] == ["mm", "exp", "sum_1"]


class Recorded:
    """Notes which calls are judged."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[tuple[str, int]] = []
        judge = live.Live.judge

        def record(self_: live.Live, call: Call) -> bool:
            self.calls.append((call.node.name, call.step))
            return judge(self_, call)

        monkeypatch.setattr(live.Live, "judge", record)


def chain(x: Tensor) -> Tensor:
    for _ in range(20):
        x = (x + 0.125) * 0.875
    return x


def test_a_share_of_the_calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each operator has its turn once in N steps; the calls of a step are a random share, the same in each run."""
    recorded = []
    for run in ("first", "second"):
        torch._dynamo.reset()
        seen = Recorded(monkeypatch)
        with fxtap.dump(tmp_path / run, type="verify", verify_every=5) as config:
            model = torch.compile(chain, backend="fxtap")
            for _ in range(15):
                model(torch.ones(3))
        recorded.append(seen.calls)
        monkeypatch.undo()
    assert recorded[0] == recorded[1]
    names = sorted({name for name, _ in recorded[0]})
    assert len(names) == 40
    for turn in range(3):
        assert sorted(name for name, step in recorded[0] if step // 5 == turn) == names
    by_step = [sum(step == wanted for _, step in recorded[0]) for wanted in range(15)]
    assert sum(by_step) == 120 and max(by_step) < 20
    places = {name: [step % 5 for other, step in recorded[0] if other == name] for name in names}
    assert len(set(map(tuple, places.values()))) > 10
    assert config.verification is not None and config.verification.counts["exact"] == 40


def test_only_what_the_filter_keeps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen = Recorded(monkeypatch)
    with fxtap.dump(tmp_path, type="verify", filter="mul*"):
        torch.compile(chain, backend="fxtap")(torch.ones(3))
    assert len(seen.calls) == 20 and {name.partition("_")[0] for name, _ in seen.calls} == {"mul"}


def test_long_runs_keep_one_result_of_each_operator(tmp_path: Path) -> None:
    with fxtap.dump(tmp_path, type="verify") as config:
        model = torch.compile(chain, backend="fxtap")
        for _ in range(20):
            model(torch.randn(3))
    (found,) = config._verifications
    assert len(found.shards()) == 41 and config.verification is not None
    assert sum(config.verification.counts.values()) == 40


@pytest.mark.parametrize("error", [ValueError("no"), RuntimeError("no"), MemoryError()])
def test_a_failing_judgement_is_a_reason(error: Exception, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def check(self: Judge, call: Call) -> Any:
        torch.rand(3)
        raise error

    monkeypatch.setattr(Judge, "check", check)
    torch.manual_seed(1)
    expected = torch.rand(1)
    torch.manual_seed(1)
    with fxtap.dump(tmp_path, type="verify") as config:
        result = torch.compile(lambda x: x.exp(), backend="fxtap")(torch.ones(2))
    assert torch.equal(result, torch.ones(2).exp()) and torch.equal(torch.rand(1), expected)
    assert config.verification is not None
    (row,) = config.verification.operators
    assert (row["verdict"], row["reason"]) == ("not replayed", f"raises {type(error).__name__}")


def test_ctrl_c_ends_the_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def check(self: Judge, call: Call) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(Judge, "check", check)
    with pytest.raises(KeyboardInterrupt), fxtap.dump(tmp_path, type="verify"):
        torch.compile(lambda x: x.exp(), backend="fxtap")(torch.ones(2))


class TestSpellings:
    def test_options_of_compile(self, tmp_path: Path) -> None:
        options = {"data_dump.type": "verify", "data_dump.path": str(tmp_path), "data_dump.verify_every": 1}
        torch.compile(lambda x: x.exp(), backend="fxtap", options=options)(torch.ones(2))
        assert files(tmp_path) == [] and len(fxtap.open(tmp_path).graphs) == 1

    def test_a_configuration(self, tmp_path: Path) -> None:
        config = CompilerConfig()
        config.debug.data_dump.type = "verify"
        config.debug.data_dump.path = tmp_path
        assert config.verification is None and config.debug.data_dump.verify_every == 1
        backend = fxtap.get_npu_backend(compiler_config=config)
        torch.compile(lambda x: x.exp(), backend=backend)(torch.ones(2))
        assert config.verification is not None and config.verification.counts["exact"] <= 1
        assert pickle.loads(pickle.dumps(config)) == config

    def test_blocks_of_one_path_have_their_own(self, tmp_path: Path) -> None:
        model = torch.compile(lambda x: x.exp(), backend="fxtap")
        with fxtap.dump(tmp_path, type="verify") as first:
            model(torch.ones(2))
        with fxtap.dump(tmp_path, type="verify") as second:
            model(torch.ones(2))
            torch.compile(lambda x: x.sin(), backend="fxtap")(torch.ones(2))
        nodes = [[row["node"] for row in c.verification.operators] for c in (first, second) if c.verification]
        assert nodes == [["exp"], ["exp", "sin"]]

    def test_a_dump_of_another_type_has_none(self, tmp_path: Path) -> None:
        with fxtap.dump(tmp_path) as config:
            torch.compile(lambda x: x.exp(), backend="fxtap")(torch.ones(2))
        assert config.verification is None

    @pytest.mark.parametrize("value", [0, -1, 2.0, "2", None, True, 2**63])
    def test_invalid_shares(self, value: Any, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match=r"^config\.debug\.data_dump\.verify_every: "):
            CompilerConfig().set("data_dump.verify_every", value)
        with pytest.raises(ValueError, match="verify_every"), fxtap.dump(tmp_path, type="verify", verify_every=value):
            pass

    def test_an_invalid_type(self) -> None:
        with pytest.raises(ValueError, match="'verified' is not one of"):
            CompilerConfig().debug.data_dump.type = "verified"
        with pytest.raises(ValueError, match="FXTAP_VERIFY_EVERY=often"):
            apply_environment(CompilerConfig(), {"FXTAP_VERIFY_EVERY": "often"})

    @pytest.mark.parametrize("is_wrong", [False, True])
    def test_a_script(self, is_wrong: bool, tmp_path: Path) -> None:
        """The answer is one line on standard error when the process ends; the script's output is its own."""
        (tmp_path / "script.py").write_text(
            "import torch\n"
            "def exp(x):\n"
            "    return torch.ones_like(x)\n"
            + ("library = torch.library.Library('aten', 'IMPL')\nlibrary.impl('exp', exp, 'CPU')\n" if is_wrong else "")
            + "model = torch.compile(lambda x: x.exp().cos())\n"
            "print(float(model(torch.ones(2)).sum()) < 9)\n"
        )
        done = subprocess.run(
            [PROGRAM, "run", "--python", sys.executable, "--type", "verify", "--path", "out", "script.py"],
            cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr
        told = [line for line in done.stderr.splitlines() if line.startswith("fxtap: ")]
        right = "fxtap: NOTHING WRONG  2 operators are right within float32's rounding"
        wrong = "fxtap: WRONG  exp  aten.exp.default  1 of 2 operators is wrong"
        assert len(told) == 1 and told[0].startswith(wrong if is_wrong else right)
        assert len(files(tmp_path / "out")) == (2 if is_wrong else 0)

    def test_a_forked_child_has_its_own(self, tmp_path: Path) -> None:
        done = python(
            """
            import os, sys, torch, fxtap
            model = torch.compile(lambda x: x.exp().cos(), backend="fxtap",
                                  options={"data_dump.type": "verify", "data_dump.path": "out"})
            model(torch.ones(2))
            if os.fork() == 0:
                model(torch.ones(2))
                sys.exit()
            os.wait()
            """,
            tmp_path,
        )
        told = [line for line in done.stderr.splitlines() if line.startswith("fxtap: ")]
        assert told == ["fxtap: NOTHING WRONG  2 operators are right within float32's rounding"] * 2, done.stderr


class TestReplacedKernels:
    """A kernel that a Python program has replaced is not judged by itself."""

    def found(self, root: Path, name: str, kernel: Callable[..., Any], function: Callable[..., Any]) -> list[Any]:
        with torch.library._scoped_library("aten", "IMPL") as library:
            library.impl(name, kernel, "CPU")
            torch.compile(function, backend=dumping(root))(torch.rand(4, 6) + 0.5)
            rows = fxtap.verify(root).operators
        return [(row["target"], row["verdict"], row["reason"]) for row in rows]

    def test_an_out_form(self, tmp_path: Path) -> None:
        (row,) = self.found(tmp_path, "exp", lambda x: x + 1, lambda x: x.exp())
        assert row == ("aten.exp.default", "wrong", "")

    def test_a_decomposition(self, tmp_path: Path) -> None:
        def norm(x: Tensor, shape: Any, weight: Any, bias: Any, eps: float) -> Any:
            return x * 1.001, x.mean(-1, keepdim=True), x.var(-1, keepdim=True)

        (row,) = self.found(tmp_path, "native_layer_norm", norm, lambda x: torch.layer_norm(x, (6,)))
        assert row[:2] == ("aten.native_layer_norm.default", "wrong")

    def test_a_right_one(self, tmp_path: Path) -> None:
        (row,) = self.found(tmp_path, "relu", lambda x: torch.where(x > 0, x, 0), lambda x: x.relu())
        assert row == ("aten.relu.default", "exact", "")

    def test_none(self, tmp_path: Path) -> None:
        (row,) = self.found(tmp_path, "cumsum", lambda x, dim: x * 2, lambda x: x.cumsum(0))
        assert row[1] in ("wrong", "not replayed")
