"""`with fxtap.dump(...)` around models that were compiled before the block, in it, or by another backend."""

from __future__ import annotations

import logging
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import fxtap
from dumps import dumping, graphs, load, nodes, stems
from fxtap.compiled import _copy_graphs

INNER = {"inner_backend": "aot_eager"}  # instead of inductor: compiles as much in less time


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 4)
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.norm(self.fc(x)))


@pytest.fixture(autouse=True)
def seed() -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)


def test_a_model_that_was_compiled_before(tmp_path: Path) -> None:
    model = torch.compile(lambda x: x.sin().cos(), backend="fxtap", options=INNER)
    x = torch.ones(2)
    expected = model(x)
    with fxtap.dump(tmp_path / "first"):
        assert torch.equal(model(x), expected)
    assert torch.equal(model(x), expected)
    with fxtap.dump(tmp_path / "second", filter="cos"):
        model(x + 1)
    (first,), (second,) = graphs(tmp_path / "first"), graphs(tmp_path / "second")
    assert nodes(first / "0") == {"sin", "cos"} and nodes(second / "0") == {"cos"}
    assert [path.name for path in first.iterdir()] == ["0"]
    assert np.array_equal(load(second / "0", "cos-aten.cos.default.INPUT.0"), (x + 1).sin().numpy())


def test_it_is_the_dump_of_a_model_that_is_compiled_in_the_block(tmp_path: Path) -> None:
    """Two dumps have the same names, weights, sources, module paths and values."""
    x = torch.randn(5, 3)
    for name in ("before", "inside"):
        torch._dynamo.reset()
        torch.manual_seed(0)
        model = Net()
        compiled = torch.compile(model, backend="fxtap", options=INNER)
        if name == "before":
            state = {key: value.clone() for key, value in model.state_dict().items()}
            compiled(x).sum().backward()
            model.load_state_dict(state)
            model.zero_grad()
        with fxtap.dump(tmp_path / name):
            compiled(x).sum().backward()
    records = [[graph.record for graph in fxtap.open(tmp_path / name).graphs] for name in ("before", "inside")]
    assert [record.kind for record in records[0]] == ["forward", "backward"]
    for one, other in zip(*records, strict=True):
        assert one.names == other.names and one.strict_key == other.strict_key
        assert one.sources == other.sources and one.module_paths == other.module_paths
    weights = [[t for t in fxtap.open(tmp_path / name).tensors() if t.name] for name in ("before", "inside")]
    assert [t.hash for t in weights[0]] == [t.hash for t in weights[1]]
    assert fxtap.compare(tmp_path / "before", tmp_path / "inside").verdict == "same"


def test_weights_are_known_as_such(tmp_path: Path) -> None:
    model = nn.Linear(3, 3)
    compiled = torch.compile(model, backend="fxtap", options=INNER)
    x = torch.ones(2, 3)
    with torch.no_grad():
        compiled(x)
        with fxtap.dump(tmp_path / "good"):
            compiled(x)
        model.weight += 1
        with fxtap.dump(tmp_path / "bad"):
            compiled(x)
    assert [origin.reason for origin in fxtap.compare(tmp_path / "good", tmp_path / "bad").origins] == ["weight"]


def test_a_block_a_step_gives_that_step(tmp_path: Path) -> None:
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    compiled = torch.compile(model, backend="fxtap", options=INNER)
    for step in range(3):
        with fxtap.dump(tmp_path / str(step)):
            optimizer.zero_grad()
            compiled(torch.full((2, 3), float(step))).sum().backward()
        optimizer.step()
    for step in range(3):
        forward, backward = graphs(tmp_path / str(step))
        assert [path.name for folder in (forward, backward) for path in folder.iterdir()] == ["0", "0"]
        (name,) = [stem for stem in stems(forward / "0") if stem.startswith("addmm-") and stem.endswith("INPUT.1")]
        assert load(forward / "0", name).tolist() == [[step] * 3] * 2
        assert "threshold_backward" in nodes(backward / "0")


def test_the_same_path_again_is_another_graph_of_another_run(tmp_path: Path) -> None:
    model = torch.compile(torch.sin, backend="fxtap", options=INNER)
    for value in range(3):
        with fxtap.dump(tmp_path):
            model(torch.full((2,), float(value)))
    found = graphs(tmp_path)
    assert [load(graph / "0", "sin-aten.sin.default.INPUT.0")[0] for graph in found] == [0.0, 1.0, 2.0]
    assert len(fxtap.open(tmp_path, run=-1).graphs) == 3 and len(fxtap.open(tmp_path).graphs) == 1


def test_nested_blocks_of_one_path_continue_the_graph(tmp_path: Path) -> None:
    model = torch.compile(torch.sin, backend="fxtap", options=INNER)
    with fxtap.dump(tmp_path, filter="sin"):
        model(torch.ones(2))
        with fxtap.dump(tmp_path, filter="sin"):
            model(torch.ones(2))
        model(torch.ones(2))
    (graph,) = graphs(tmp_path)
    assert sorted(path.name for path in graph.iterdir()) == ["0", "1", "2"]


def test_dynamic_shapes_stay_dynamic(tmp_path: Path) -> None:
    model = torch.compile(lambda x: x.reshape(-1) * x.shape[0], backend="fxtap", options=INNER, dynamic=True)
    model(torch.ones(3, 5))
    with fxtap.dump(tmp_path):
        for n in (3, 4, 6):
            assert model(torch.ones(n, 5)).tolist() == [float(n)] * 5 * n
    (graph,) = graphs(tmp_path)
    assert sorted(path.name for path in graph.iterdir()) == ["0", "1", "2"]


def test_inductor_may_change_the_graph_it_is_given(tmp_path: Path) -> None:
    model = Net().eval()
    compiled = torch.compile(model, backend="fxtap")
    x = torch.randn(2, 3)
    with torch.no_grad():
        compiled(x)
        with fxtap.dump(tmp_path):
            result = compiled(x)
        assert torch.allclose(result, model(x), atol=1e-6)
    (graph,) = graphs(tmp_path)
    assert {"addmm", "relu"} <= nodes(graph / "0")


def test_options_go_before_the_block(tmp_path: Path) -> None:
    options = {"data_dump.type": "npy", "data_dump.path": tmp_path / "own", "data_dump.filter": "*"}
    model = torch.compile(torch.sin, backend="fxtap", options=options)
    model(torch.ones(2))
    with fxtap.dump(tmp_path / "block"):
        model(torch.ones(2))
    model(torch.ones(2))
    (graph,) = graphs(tmp_path / "own")
    assert sorted(path.name for path in graph.iterdir()) == ["0", "1", "2"] and not (tmp_path / "block").exists()


def test_the_block_goes_before_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FXTAP_TYPE", "npy")
    monkeypatch.setenv("FXTAP_PATH", str(tmp_path / "environment"))
    model = torch.compile(torch.sin, backend="fxtap")
    model(torch.zeros(2))
    with fxtap.dump(tmp_path / "block"):
        model(torch.ones(2))
    model(torch.zeros(2))
    (own,), (block,) = graphs(tmp_path / "environment"), graphs(tmp_path / "block")
    assert sorted(path.name for path in own.iterdir()) == ["0", "1"]
    assert load(block / "0", "sin-aten.sin.default.INPUT.0").tolist() == [1.0, 1.0]


@pytest.mark.parametrize("asks", [False, True])
def test_get_npu_backend(asks: bool, tmp_path: Path) -> None:
    """A block enables the dump for a configuration that does not."""
    config = fxtap.CompilerConfig()
    config.inner_backend = "aot_eager"
    if asks:
        config.debug.data_dump.type = "npy"
        config.debug.data_dump.path = tmp_path / "own"
    model = torch.compile(torch.sin, backend=fxtap.get_npu_backend(compiler_config=config))
    model(torch.ones(2))
    with fxtap.dump(tmp_path / "block"):
        model(torch.ones(2))
    assert len(graphs(tmp_path / ("own" if asks else "block"))) == 1
    assert (tmp_path / "block").exists() != asks


def test_backward_in_a_thread_without_the_block(tmp_path: Path) -> None:
    """Backward in a thread without a block, as on a device: it belongs to the block of its forward pass."""
    model = torch.compile(lambda x: x.sin().sum(), backend="fxtap", options=INNER)
    x = torch.ones(2, requires_grad=True)
    model(x).backward()
    with fxtap.dump(tmp_path):
        loss = model(x)
        thread = threading.Thread(target=loss.backward)
        thread.start()
        thread.join()
    forward, backward = graphs(tmp_path)
    assert nodes(forward / "0") == {"sin", "sum_1"} and "mul" in nodes(backward / "0")


def test_threads_in_blocks_of_their_own(tmp_path: Path) -> None:
    model = torch.compile(torch.sin, backend="fxtap", options=INNER, dynamic=False)
    model(torch.ones(2))
    barrier = threading.Barrier(4)

    def work(k: int) -> None:
        with fxtap.dump(tmp_path / str(k)):
            barrier.wait()
            for step in range(5):
                model(torch.full((2,), float(10 * k + step)))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(4):
        (graph,) = graphs(tmp_path / str(k))
        values = [load(graph / str(step), "sin-aten.sin.default.INPUT.0")[0] for step in range(5)]
        assert values == [10 * k + step for step in range(5)]


def test_nothing_compiled_by_fxtap_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    model = torch.compile(torch.sin, backend="aot_eager")
    with fxtap.dump(tmp_path / "x"):
        model(torch.ones(2))
    (line,) = [record.getMessage() for record in caplog.records if record.name == "fxtap"]
    assert "nothing was dumped" in line and str(tmp_path / "x") in line and 'backend="fxtap"' in line
    caplog.clear()
    with pytest.raises(ZeroDivisionError), fxtap.dump(tmp_path / "y"):
        raise ZeroDivisionError
    with fxtap.dump(tmp_path / "z", type=None):  # type: ignore[arg-type]
        pass
    assert not [record for record in caplog.records if record.name == "fxtap"]


def test_a_model_is_freed(tmp_path: Path) -> None:
    """The copy kept for later compilation holds no reference to the model's modules and tensors."""
    model = Net()
    weak = weakref.ref(model.fc.weight)
    compiled = torch.compile(model, backend="fxtap", options=INNER)
    with torch.no_grad():
        compiled(torch.ones(2, 3))
        with fxtap.dump(tmp_path):
            compiled(torch.ones(2, 3))
    del model, compiled
    torch._dynamo.reset()
    import gc

    gc.collect()
    assert weak() is None


def test_what_is_kept_for_later_shares_tensors_and_has_graphs_of_its_own() -> None:
    """The copy shares weights: otherwise it would miss the optimizer's updates."""

    root = nn.Module()
    root.fc, root.branch, root.constant = nn.Linear(2, 2), torch.fx.symbolic_trace(lambda x: x.sin()), torch.ones(2)
    root.register_buffer("shift", torch.ones(2))
    graph = torch.fx.Graph()
    x = graph.call_module("branch", (graph.call_module("fc", (graph.placeholder("x"),)),))
    for name in ("shift", "constant"):
        x = graph.call_function(torch.add, (x, graph.get_attr(name)))
    graph.output(graph.call_method("sin", (x,)))
    gm = torch.fx.GraphModule(root, graph)
    kept = _copy_graphs(gm)
    assert kept.fc is gm.fc and kept.constant is gm.constant and kept.shift is gm.shift
    for module in (gm, gm.branch):
        (node,) = module.graph.find_nodes(op="call_method", target="sin")
        node.target = "cos"
    for module in (kept, kept.branch):
        assert module.graph.find_nodes(op="call_method", target="sin")


def test_graphs_without_anything_to_dump_have_an_index_with_the_reasons(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from torch._higher_order_ops import scan

    @torch.library.custom_op("fxtap_block::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @twice.register_fake
    def _(x: torch.Tensor) -> torch.Tensor:
        return torch.empty_like(x)

    def cumulative(start: torch.Tensor, x: torch.Tensor) -> object:
        return scan(lambda carry, row: (carry + row, carry * row), start, x)

    reasons = {}
    for name, model, arguments in (
        ("scan", cumulative, (torch.ones(2), torch.ones(3, 2))),
        ("twice", twice, (torch.ones(2),)),
    ):
        for kind in ("npy", "stats"):
            compiled = torch.compile(model, backend=dumping(tmp_path / kind / name, type=kind))
            compiled(*arguments)
            compiled(*arguments)
            (graph,) = fxtap.open(tmp_path / kind / name).graphs
            assert graph.n_dumped == 0 and [step.state for step in graph.steps] == ["whole", "whole"]
            reasons[name] = graph.node(name).skipped
    assert reasons == {
        "scan": "higher-order operator; its subgraphs are not dumped",
        "twice": "non aten target",
    }
    lines = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING and "is skipped" in r.getMessage()]
    assert "custom_ops = True" in lines[-1] and "twice" in lines[-1]


def test_our_own_words_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    from fxtap.backend import DUMP_NOTE, DUMP_WARNING, _named

    _named._logged.clear()
    for k in range(2):
        with fxtap.dump(tmp_path / str(k)):
            torch.compile(lambda x, k=k: x + k, backend="fxtap")(torch.ones(2))
    assert [record.getMessage() for record in caplog.records if record.name == "fxtap"] == [DUMP_NOTE]
    caplog.clear()
    backend = dumping(tmp_path / "npu")
    for k in range(2):
        torch.compile(lambda x, k=k: x * k, backend=backend)(torch.ones(2))
    assert [record.getMessage() for record in caplog.records if record.name == "fxtap"] == [DUMP_WARNING] * 2
