"""Graph records: all that torch.fx has of a graph, and nothing else."""

from __future__ import annotations

import operator
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.fx import Graph, GraphModule, Node, symbolic_trace
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.passes.shape_prop import ShapeProp

from fxtap import _core
from graphs import aten, build, chain, trace


def captured(function: Callable[..., Any], *arguments: Any, dynamic: bool | None = None) -> GraphModule:
    """Return the graph that a backend would get."""
    from torch._functorch.aot_autograd import aot_module_simplified

    found: list[GraphModule] = []

    def keep(gm: GraphModule, inputs: Any) -> Any:
        found.append(gm)
        return gm.forward

    def backend(gm: GraphModule, inputs: Any) -> Any:
        return aot_module_simplified(gm, inputs, fw_compiler=keep)

    with torch.no_grad():
        torch.compile(function, backend=backend, dynamic=dynamic)(*arguments)
    return found[0]


def test_names_targets_and_kinds() -> None:
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(2, 2)
            self.bias = torch.nn.Parameter(torch.ones(2))

        def forward(self, x: Tensor) -> Any:
            return (self.linear(x) + self.bias).relu(), x.size(0) * 2, torch.sym_max(x.size(0), 3)

    record = _core.record(symbolic_trace(Model()), "forward")
    assert record.kind == "forward" and len(record) == len(record.names) == 10
    assert dict(zip(record.names, record.targets, strict=True)) == {
        "x": "x",
        "linear": "linear",
        "bias": "bias",
        "add": "operator.add",
        "relu": "relu",
        "size": "size",
        "mul": "operator.mul",
        "size_1": "size",
        "sym_max": "torch.sym_max",
        "output": "output",
    }
    assert record.ops == (
        "placeholder",
        "call_module",
        "get_attr",
        "call_function",
        "call_method",
        "call_method",
        "call_function",
        "call_method",
        "call_function",
        "output",
    )


def test_flags() -> None:
    def make(graph: Graph, x: Node) -> Any:
        targets: list[tuple[Any, ...]] = [
            (aten.add_.Tensor, x, x),
            (aten.empty_like.default, x),
            (aten.rand_like.default, x),
            (aten.view.default, x, [-1]),
            (aten.sin.default, x),
            (operator.neg, x),
            (aten.native_batch_norm.default, x, None, None, x, x, True, 0.1, 0.1),
            (aten._native_batch_norm_legit_functional.default, x, None, None, x, x, True, 0.1, 0.1),
            (torch.ops._c10d_functional.all_reduce.default, x, "sum", "0"),
            (torch.ops._c10d_functional.wait_tensor.default, x),
        ]
        for target, *args in targets:
            graph.call_function(target, tuple(args))
        return x

    flags = _core.record(build(make, "x")).flags
    assert flags[1:11] == (
        {"mutates", "aten"},
        {"undefined", "aten"},
        {"random", "aten"},
        {"view", "aten"},
        {"aten"},
        set(),
        {"aten", "mutates"},
        {"aten"},
        {"async"},
        flags[10],
    )
    assert "async" not in flags[10]


def test_source_and_module_of_a_compiled_model() -> None:
    class Inner(torch.nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.sin()  # the line

    model = torch.nn.Sequential(Inner(), torch.nn.ReLU())
    gm = captured(model, torch.ones(2))
    record = _core.record(gm)
    i = record.targets.index("aten.sin.default")
    file, line, function, code = record.sources[i]
    lines = Path(__file__).read_text().splitlines()
    assert (Path(file).name, function, code.strip()) == ("test_record.py", "forward", "return x.sin()  # the line")
    assert lines[line - 1].strip() == code.strip()
    assert record.module_types[i].endswith("Inner") and "0" in record.module_paths[i]
    node = list(gm.graph.nodes)[i]
    assert record.stack_traces[i] == node.meta["stack_trace"]
    assert record.module_paths[i] == list(node.meta["nn_module_stack"].values())[-1][0]
    assert record.module_types[record.targets.index("aten.relu.default")] == "torch.nn.modules.activation.ReLU"


def uncompiled(graph: Graph) -> GraphModule:
    """A GraphModule whose Python code is never generated, so that it may contain anything."""
    gm = GraphModule.__new__(GraphModule)
    torch.nn.Module.__init__(gm)
    gm.__dict__["_graph"] = graph
    return gm


def test_every_kind_of_argument_is_kept() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    graph.output(
        graph.call_function(
            print,
            (
                x,
                None,
                True,
                -5,
                2**70,
                1.5,
                float("inf"),
                float("nan"),
                -0.0,
                1 + 2j,
                "tex\x00t\ud800",
                b"\x00\xff",
                torch.float32,
                torch.device("cpu"),
                torch.strided,
                torch.channels_last,
                ...,
                slice(None, x, 2),
                [x, [1]],
                (x, ()),
                {"a": x, 1: 2},
                torch.Size([1, 2]),
                aten.add.Tensor,
                object,
            ),
            {"key": x, "other": torch.int8},
        )
    )
    record = _core.record(uncompiled(graph))
    data = record.serialise()
    again = _core.Graph.from_bytes(data)
    assert again.serialise() == data
    assert (again.strict_key, again.names, again.targets) == (record.strict_key, record.names, record.targets)


CHANGES: dict[str, tuple[Any, Any]] = {
    "int": (1, 2),
    "int and bool": (1, True),
    "int and float": (1, 1.0),
    "float": (1.5, 1.25),
    "zeros": (0.0, -0.0),
    "none": (None, 0),
    "dtype": (torch.float32, torch.float16),
    "text": ("a", "b"),
    "text and bytes": ("a", b"a"),
    "list": ([1], [2]),
    "list and tuple": ([1], (1,)),
    "nesting": ([1, [2]], [[1], 2]),
    "slice": (slice(0, 1), slice(0, 2)),
    "big": (2**70, 2**70 + 1),
    "complex": (1j, 2j),
    "dict": ({"a": 1}, {"a": 2}),
    "tensor": (torch.ones(2), torch.zeros(2)),
}


@pytest.mark.parametrize("name", CHANGES)
def test_the_strict_key_sees_constants(name: str) -> None:
    first, second = (
        _core.record(build(lambda g, x, v=value: g.call_function(print, (x, v)), "x")) for value in CHANGES[name]
    )
    assert first.strict_key != second.strict_key
    assert first.structural_key == second.structural_key or "nesting" in name or "list" in name or "none" in name


def test_keys() -> None:
    base = _core.record(chain(aten.sin.default, aten.cos.default))
    assert base.strict_key == _core.record(chain(aten.sin.default, aten.cos.default)).strict_key
    assert len(base.strict_key) == len(base.structural_key) == 32
    other = _core.record(chain(aten.sin.default, aten.sin.default))
    assert base.strict_key != other.strict_key and base.structural_key != other.structural_key
    half, full = (
        _core.record(captured(lambda x: x.sin() * 2, torch.ones(3, dtype=dtype)))
        for dtype in (torch.float16, torch.float32)
    )
    assert half.strict_key != full.strict_key and half.structural_key == full.structural_key


def test_keys_in_another_process() -> None:
    """Renamed variables change torch's symbols, but not the keys."""
    code = """
import sys
import torch
sys.path.insert(0, {folder!r})
from test_record import captured
from fxtap import _core

def f({a}, {b}):
    {c} = {a}.reshape(-1)
    return torch.cat([{c} * {b}.shape[0], {b}])

record = _core.record(captured(f, torch.ones(3, 5), torch.ones(7), dynamic=True))
print(record.strict_key, record.structural_key)
"""
    keys = {
        subprocess.run(
            [sys.executable, "-c", code.format(folder=str(Path(__file__).parent), a=a, b=b, c=c)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for a, b, c in [("x", "y", "z"), ("long_name", "_q", "x")]
    }
    assert len(keys) == 1


def test_symbolic_shapes() -> None:
    gm = captured(lambda x, k: x.reshape(-1) * k + x.shape[0] * 2, torch.ones(3, 5), 7, dynamic=True)
    assert any(type(node.meta.get("val")) is torch.SymInt for node in gm.graph.nodes)
    static = _core.record(captured(lambda x, k: x.reshape(-1) * k + x.shape[0] * 2, torch.ones(3, 5), 7, dynamic=False))
    record = _core.record(gm)
    assert "operator.mul" in record.targets
    assert record.strict_key != static.strict_key
    assert b"s" in record.serialise()


def test_unbacked_symbols() -> None:
    from torch._subclasses import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    with FakeTensorMode(shape_env=ShapeEnv()) as mode:
        gm = make_fx(lambda x: x.nonzero(), tracing_mode="symbolic")(mode.from_tensor(torch.ones(3)))
    record = _core.record(gm)
    assert record.targets[1] == "aten.nonzero.default"
    _core.Graph.from_bytes(record.serialise())


def test_subgraphs() -> None:
    def f(x: Tensor) -> Tensor:
        return torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,))

    record = _core.record(captured(f, torch.ones(3)))
    assert "cond" in record.targets
    inner = record.subgraphs
    assert [graph.kind for graph in inner] == ["subgraph", "subgraph"]
    assert sorted(target for graph in inner for target in graph.targets if "aten" in target) == [
        "aten.cos.default",
        "aten.sin.default",
    ]
    del record
    assert inner[0].names  # outlives its graph


def test_constants_are_recorded_with_their_values() -> None:
    def with_constant(value: Tensor, limit: int = 1 << 20) -> bytes:
        root = torch.nn.Module()
        root.register_buffer("c", value)
        graph = Graph()
        graph.output(graph.get_attr("c"))
        return _core.record(GraphModule(root, graph), constant_bytes=limit).serialise()

    value = torch.arange(64, dtype=torch.int32)
    payload = value.numpy().tobytes()
    assert payload in with_constant(value) and payload not in with_constant(value, 255)
    assert value.reshape(8, 8).t().contiguous().numpy().tobytes() in with_constant(value.reshape(8, 8).t())
    for odd in (
        torch.eye(2).to_sparse(),
        torch.ones(2, device="meta"),
        torch.tensor([1j]).conj(),
        torch.ones(0),
        torch.tensor([1.0]).to(torch.bfloat16),
        torch.tensor([1 + 1j]).conj().imag,
    ):
        _core.Graph.from_bytes(with_constant(odd))


def test_shapes_of_shape_propagation() -> None:
    gm = chain(aten.sin.default)
    bare = _core.record(gm).strict_key
    ShapeProp(gm).propagate(torch.ones(2, 3))
    assert _core.record(gm).strict_key != bare


def test_several_results_and_none() -> None:
    gm = captured(lambda x: torch.nn.functional.layer_norm(x, (3,)), torch.ones(2, 3))
    assert _core.Graph.from_bytes(_core.record(gm).serialise()).names == _core.record(gm).names


def test_what_is_no_graph_is_refused() -> None:
    with pytest.raises(TypeError, match="GraphModule"):
        _core.record(torch.nn.Linear(1, 1))
    with pytest.raises(ValueError, match="inference, forward or backward"):
        _core.record(chain(aten.sin.default), "sideways")
    data = _core.record(chain(aten.sin.default)).serialise()
    for bad in (b"", data[:-1], data[: len(data) // 2], b"x" * 100, data[:40] + bytes([data[40] ^ 1]) + data[41:]):
        with pytest.raises(ValueError):
            _core.Graph.from_bytes(bad)
    with pytest.raises(TypeError):
        _core.Graph()


def test_hostile_names() -> None:
    name = '");import os;(" \n' + "x" * 10_000
    graph = Graph()
    x = graph.placeholder("x")
    x.name = name
    graph.output(x)
    record = _core.record(uncompiled(graph))
    assert record.names[0] == name
    assert _core.Graph.from_bytes(record.serialise()).names[0] == name


def test_a_large_graph_is_quick() -> None:
    import time

    gm = trace(lambda x: [x := x.sin() + 1 for _ in range(1000)][-1], torch.ones(3))
    started = time.perf_counter()
    record = _core.record(gm)
    assert len(record) == 2002
    assert time.perf_counter() - started < 1


def test_constant_that_cannot_print_itself_is_recorded_by_its_type() -> None:
    class Fickle:
        is_silent = False

        def __repr__(self) -> str:
            if self.is_silent:
                raise RuntimeError("no words")
            return "words"

    graph = Graph()
    graph.output(graph.call_function(operator.add, (graph.placeholder("x"), Fickle())))
    module = GraphModule(torch.nn.Module(), graph)
    Fickle.is_silent = True
    assert b"Fickle object>" in _core.print_graph(_core.record(module, "forward"), "fx")
