"""The run loop: results, lifetimes of values, failures."""

from __future__ import annotations

import gc
import math
import operator
import signal
import sys
import threading
import traceback
import weakref
from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.fx import Graph, GraphModule, Node, symbolic_trace
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from fxtap import _core
from graphs import Dumped, aten, build, chain, same, trace

Point = namedtuple("Point", "x y")


def run(gm: GraphModule, *arguments: Any) -> Any:
    return _core.Program(gm)(list(arguments))


def check(gm: GraphModule, *arguments: Any) -> Any:
    """Run both ways; the results are identical."""
    expected = gm.forward(*[a.clone() if isinstance(a, Tensor) else a for a in arguments])
    result = run(gm, *arguments)
    assert same(result, expected)
    return result


# ---- results ----


def test_boxed_result_is_not_unpacked() -> None:
    result = check(
        build(lambda g, x: g.call_function(aten._to_copy.default, (x,), {"dtype": torch.float32}), "x"),
        torch.ones(8, 128).half(),
    )
    assert result.shape == (8, 128)


def test_every_kind_of_node() -> None:
    class Inner(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(3, 3)
            self.register_buffer("bias", torch.ones(3))

        def forward(self, x: Tensor, scale: float) -> dict[str, Any]:
            y = self.linear(x) + self.bias
            z = y.reshape(-1).relu()
            parts = torch.split(z, 2)
            return {"sum": parts[0] + parts[-1][0], "all": [z, (y, scale)], "n": x.size(0) * 2}

    check(symbolic_trace(Inner()), torch.randn(2, 3), 0.5)


def test_arguments_are_rebuilt() -> None:
    seen: list[Any] = []

    def watch(*args: Any, **kwargs: Any) -> Tensor:
        seen.append((args, kwargs))
        return args[0]

    def make(graph: Graph, x: Node, n: Node) -> Any:
        y = graph.call_function(
            watch,
            (x, [1, n, [x, None]], (n, 2), slice(None, n, 2), {"a": n, "b": [n]}, Point(n, 3), [], (), "text", [1, 2]),
            {"key": n, "other": [n, 1.5], "constant": {"c": 1}},
        )
        return (y, {"n": n}, [n, [n]], slice(n, None))

    gm = build(make, "x", "n")
    x = torch.ones(2)
    result = run(gm, x, 7)
    args, kwargs = seen[-1]
    assert args[1] == [1, 7, [x, None]] or args[1][:2] == [1, 7]
    assert args[1][2][0] is x and args[2] == (7, 2) and args[3] == slice(None, 7, 2)
    assert args[4] == {"a": 7, "b": [7]} and args[5] == Point(7, 3) and type(args[5]) is Point
    assert args[6:] == ([], (), "text", [1, 2])
    assert kwargs == {"key": 7, "other": [7, 1.5], "constant": {"c": 1}}
    assert [type(a) for a in (args[1], args[1][2], args[6], args[9], args[4]["b"])] == [list] * 5
    assert type(args[4]) is dict and type(kwargs["constant"]) is dict
    assert result[1:] == ({"n": 7}, [7, [7]], slice(7, None))
    assert type(result) is tuple and type(result[1]) is dict and type(result[2]) is list


def test_lists_are_fresh_in_each_call() -> None:
    def spoil(items: list[int]) -> int:
        items.append(1)
        return len(items)

    program = _core.Program(build(lambda g, x: g.call_function(spoil, ([5, 6],)), "x"))
    assert [program([0]), program([0])] == [3, 3]


def test_whole_models() -> None:
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3),
        torch.nn.BatchNorm2d(4),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(4 * 36, 10),
        torch.nn.LayerNorm(10),
    )
    x = torch.randn(2, 3, 8, 8)
    gm = trace(lambda x: torch.autograd.grad(model(x).sum(), list(model.parameters())), x)
    check(gm, x)


def test_higher_order_operators() -> None:
    def branches(graph: Graph, x: Node) -> Node:
        predicate = graph.call_function(aten.gt.Scalar, (graph.call_function(aten.sum.default, (x,)), 0))
        yes, no = graph.get_attr("yes"), graph.get_attr("no")
        return graph.call_function(torch.ops.higher_order.cond, (predicate, yes, no, (x,)))

    root = torch.nn.Module()
    root.yes = chain(aten.sin.default)
    root.no = chain(aten.cos.default)
    graph = Graph()
    graph.output(branches(graph, graph.placeholder("x")))
    gm = GraphModule(root, graph)
    assert torch.equal(run(gm, torch.ones(3)), torch.ones(3).sin())
    assert torch.equal(run(gm, -torch.ones(3)), (-torch.ones(3)).cos())


def test_inference_mode() -> None:
    with torch.inference_mode():
        gm = build(lambda g, x: g.call_function(aten.mul_.Tensor, (g.call_function(aten.add.Tensor, (x, 1)), 2)), "x")
        assert run(gm, torch.ones(3)).tolist() == [4, 4, 4]


def test_random_numbers_are_drawn_as_without() -> None:
    gm = build(
        lambda g, x: g.call_function(aten.rand_like.default, (g.call_function(aten.rand_like.default, (x,)),)), "x"
    )
    torch.manual_seed(0)
    expected, state = gm.forward(torch.ones(4)), torch.get_rng_state()
    torch.manual_seed(0)
    assert torch.equal(run(gm, torch.ones(4)), expected)
    assert torch.equal(torch.get_rng_state(), state)


def test_attributes_are_read_when_they_are_needed() -> None:
    graph = Graph()
    graph.output(graph.get_attr("a.b"))
    root = torch.nn.Module()
    root.a = torch.nn.Module()
    root.a.b = torch.nn.Parameter(torch.ones(1))
    gm = GraphModule(root, graph)
    program = _core.Program(gm)
    gm.a.b = torch.nn.Parameter(torch.zeros(1))
    assert program([]) is gm.a.b


def test_modes_see_operators_as_without() -> None:
    seen: list[str] = []

    class Function(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(f"function {func}")
            return func(*args, **(kwargs or {}))

    class Dispatch(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(f"dispatch {func}")
            return func(*args, **(kwargs or {}))

    gm = chain(aten.sin.default, aten.cos.default)
    program = _core.Program(gm)
    both = []
    for call in (lambda: gm.forward(torch.ones(2)), lambda: program([torch.ones(2)])):
        x = torch.ones(2)  # noqa: F841
        seen.clear()
        with Function(), Dispatch():
            call()
        both.append([line for line in seen if "ones" not in line])
    assert both[0] == both[1] and len(both[0]) == 4


# ---- arguments ----


@pytest.mark.parametrize("given", [0, 2, 3])
def test_wrong_number_of_arguments(given: int, tmp_path: Path) -> None:
    dumped = Dumped(chain(aten.sin.default), tmp_path)
    with pytest.raises(TypeError, match=rf"takes 1 argument, but {given} (was|were) given"):
        dumped(*[torch.ones(1)] * given)
    dumped.dump.close()
    assert not list(tmp_path.iterdir())


def test_defaults_of_placeholders() -> None:
    graph = Graph()
    x, k = graph.placeholder("x"), graph.placeholder("k", default_value=3)
    graph.output(graph.call_function(operator.mul, (x, k)))
    program = _core.Program(GraphModule(torch.nn.Module(), graph))
    assert (program([2]), program([2, 5])) == (6, 10)
    with pytest.raises(TypeError, match="takes from 1 to 2 arguments, but 0 were given"):
        program([])


def test_only_the_boxed_convention() -> None:
    program = _core.Program(chain(aten.sin.default))
    assert program._boxed_call is True
    program._boxed_call = False
    assert program._boxed_call is False
    for arguments in [(torch.ones(1),), (), ([1], [2]), ((1,),)]:
        with pytest.raises(TypeError, match="one list"):
            program(*arguments)
    with pytest.raises(TypeError, match="one list"):
        program([torch.ones(1)], x=1)


def test_what_cannot_be_compiled_is_refused() -> None:
    with pytest.raises(TypeError, match="GraphModule"):
        _core.Program(torch.nn.Linear(1, 1))
    with pytest.raises(ValueError, match="variadic arguments"):
        _core.Program(symbolic_trace(lambda *xs: xs[0]))
    gm = chain(aten.sin.default)
    gm.graph.erase_node(next(iter(reversed(gm.graph.nodes))))
    with pytest.raises(ValueError, match="output"):
        _core.Program(gm)


def test_plan_arguments_are_checked(tmp_path: Path) -> None:
    gm = chain(aten.sin.default)
    record, other = _core.record(gm), _core.record(chain(aten.sin.default, aten.cos.default))
    dump = _core.Dump(str(tmp_path))
    with pytest.raises(ValueError, match="on_error"):
        _core.Program(gm, on_error="ignore")
    with pytest.raises(ValueError, match="graph_id"):
        _core.Program(gm, record, dump)
    with pytest.raises(ValueError, match="4 nodes, the graph has 3"):
        _core.Program(gm, other, dump, 1)
    with pytest.raises(ValueError, match="skip has 1 entries for 3 nodes"):
        _core.Program(gm, record, dump, 1, [None])
    with pytest.raises(TypeError, match=r"skip\[1\]"):
        _core.Program(gm, record, dump, 1, [None, 1, None])
    with pytest.raises(TypeError, match="Graph"):
        _core.Program(gm, None, dump, 1)
    with pytest.raises(TypeError, match="Dump"):
        _core.Program(gm, record, "dump", 1)
    with pytest.raises(ValueError, match="type"):
        _core.Dump(str(tmp_path), type="csv")
    dump.close()
    dump.close()
    assert dump.closed
    with pytest.raises(ValueError, match="closed"):
        _core.Program(gm, record, dump, 1)


# ---- lifetimes ----


class Counter:
    """A mode that counts the live tensors among those it sees."""

    __name__ = "counter"

    def __init__(self) -> None:
        self.alive: weakref.WeakSet[Tensor] = weakref.WeakSet()
        self.most = 0

    def __call__(self, value: Any) -> Any:
        for tensor in value if isinstance(value, list) else [value]:
            self.alive.add(tensor)
        self.most = max(self.most, len(self.alive))
        return value


def chain_with_counter(counter: Counter, n: int, in_list: bool) -> GraphModule:
    def make(graph: Graph, x: Node) -> Node:
        for _ in range(n):
            x = graph.call_function(counter, (graph.call_function(aten.relu.default, (x,)),))
            if in_list:
                x = graph.call_function(aten.cat.default, ([x, x],))
                x = graph.call_function(operator.getitem, (graph.call_function(aten.split.Tensor, (x, 2)), 0))
        return x

    return build(make, "x")


@pytest.mark.parametrize("in_list", [False, True])
def test_values_die_at_their_last_use(in_list: bool) -> None:
    counter = Counter()
    run(chain_with_counter(counter, 200, in_list), torch.ones(2))
    assert counter.most <= 3


@pytest.mark.parametrize("in_list", [False, True])
@pytest.mark.parametrize(
    ("options", "keeps"),
    [({}, False), ({"sync": True}, True), ({"type": "stats", "sync": True}, True), ({"queue_bytes": 1}, True)],
    ids=["all skipped", "sync", "stats", "no queue"],
)
def test_a_dump_keeps_no_more_values_than_it_must(
    options: dict[str, Any], keeps: bool, in_list: bool, tmp_path: Path
) -> None:
    """The count is the same for 50 operators and for 200."""
    most = []
    for n in (50, 200):
        counter = Counter()
        gm = chain_with_counter(counter, n, in_list)
        dumped = Dumped(gm, tmp_path / str(n), options, None if keeps else ["filter"] * len(gm.graph.nodes))
        dumped(torch.ones(2))
        dumped.dump.close()
        most.append(counter.most)
        assert not counter.alive
        assert (Path(dumped.dump.rank_path) / "fxtap.db").exists() == keeps
    assert max(most) <= 5


def test_unused_values_die_at_once() -> None:
    class Watched:
        pass

    references: list[Any] = []

    def make_one(x: Any) -> Watched:
        made = Watched()
        references.append(weakref.ref(made))
        return made

    def is_dead(x: Any) -> bool:
        return references[0]() is None

    def make(graph: Graph, x: Node) -> Node:
        graph.call_function(make_one, (x,))
        return graph.call_function(is_dead, (x,))

    assert run(build(make, "x"), 1) is True


def test_the_callers_list_is_emptied_and_its_tensors_die() -> None:
    arguments = [torch.ones(3), torch.ones(4)]
    reference = weakref.ref(arguments[0])

    def is_dead(x: Tensor) -> bool:
        return reference() is None

    def make(graph: Graph, x: Node, y: Node) -> Any:
        return (graph.call_function(aten.sin.default, (x,)), graph.call_function(is_dead, (y,)))

    assert _core.Program(build(make, "x", "y"))(arguments)[1] is True
    assert arguments == []


def test_nothing_leaks(tmp_path: Path) -> None:
    x = torch.ones(16)
    gm = chain(aten.sin.default, aten.cos.default)
    dumped = Dumped(gm, tmp_path)
    for call in (lambda: _core.Program(gm)([x]), lambda: dumped(x), lambda: _core.record(gm).serialise()):
        call()
        gc.collect()
        before = sys.getrefcount(x), sys.getrefcount(aten.sin.default), sys.getrefcount(gm)
        for _ in range(20):
            call()
        gc.collect()
        assert (sys.getrefcount(x), sys.getrefcount(aten.sin.default), sys.getrefcount(gm)) == before
    dumped.dump.close()


def test_programs_are_collected(tmp_path: Path) -> None:
    gm = chain(aten.sin.default)
    program = _core.Program(gm)
    gm.program = program  # type: ignore[assignment]
    program.itself = program  # type: ignore[attr-defined]
    reference = weakref.ref(program)
    del gm, program
    gc.collect()
    assert reference() is None


# ---- exceptions ----


def test_exceptions_keep_their_traceback_and_say_where() -> None:
    def fail(x: Any) -> None:
        raise KeyError("of the operator")

    def make(graph: Graph, x: Node) -> Node:
        node = graph.call_function(fail, (x,))
        node.meta["stack_trace"] = 'File "model.py", line 12, in forward\n    y = fail(x)\n'
        return node

    with pytest.raises(KeyError, match="of the operator") as caught:
        run(build(make, "x"), 1)
    assert caught.value.__notes__[0].startswith("in node fail = ")
    assert caught.value.__notes__[0].endswith('File "model.py", line 12, in forward')
    assert [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)][-1] == "fail"


def test_an_operator_that_raises_fails_the_call_alone(tmp_path: Path) -> None:
    dumped = Dumped(
        build(lambda g, x, y: g.call_function(aten.mm.default, (g.call_function(aten.sin.default, (x,)), y)), "x", "y"),
        tmp_path,
    )
    dumped(torch.ones(2, 2), torch.ones(2, 2))
    with pytest.raises(RuntimeError, match="mat1 and mat2") as caught:
        dumped(torch.ones(2, 2), torch.ones(3, 3))
    assert "in node mm_default = aten.mm.default" in caught.value.__notes__
    dumped(torch.ones(2, 2), torch.ones(2, 2))
    dumped.dump.close()
    assert [name for name in dumped.steps() if "failed" not in name] == ["0", "1"]
    assert len([name for name in dumped.steps() if "failed" in name]) == 1


@pytest.mark.parametrize("with_dump", [False, True])
def test_ctrl_c_between_nodes(with_dump: bool, tmp_path: Path) -> None:
    def interrupt(x: Tensor) -> Tensor:
        signal.raise_signal(signal.SIGINT)
        return x

    ran: list[int] = []

    def after(x: Tensor) -> Tensor:
        ran.append(1)
        return x

    gm = chain(aten.sin.default, operator.neg, after)
    for node in gm.graph.nodes:
        if node.target is operator.neg:
            node.target = interrupt
    program: Any = Dumped(gm, tmp_path) if with_dump else _core.Program(gm)
    with pytest.raises(KeyboardInterrupt):
        program(torch.ones(1)) if with_dump else program([torch.ones(1)])
    assert not ran
    if with_dump:
        program.dump.close()
        assert [name.split("-")[0] for name in program.steps()] == ["0.failed"]


# ---- threads ----


def test_reentrant() -> None:
    gm = build(lambda g, n: g.call_function(print, (n,)), "n")
    program = _core.Program(gm)

    def again(n: int) -> int:
        return n if n == 0 else n + int(holder[0]([n - 1]))

    gm = build(lambda g, n: g.call_function(again, (n,)), "n")
    holder = [_core.Program(gm)]
    assert holder[0]([10]) == 55
    assert program is not None


@pytest.mark.parametrize("with_dump", [False, True])
def test_many_threads_in_one_program(with_dump: bool, tmp_path: Path) -> None:
    gm = chain(*[aten.sin.default, aten.cos.default, aten.neg.default] * 5)
    dumped = Dumped(gm, tmp_path) if with_dump else None
    program = dumped.program if dumped else _core.Program(gm)
    wrong: list[Any] = []

    def work(seed: int) -> None:
        x = torch.full((64,), float(seed))
        expected = gm.forward(x)
        for _ in range(5):
            if not torch.equal(program([x]), expected):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    if dumped:
        dumped.dump.close()
        assert dumped.steps() == sorted(map(str, range(30)))
        for step in range(30):
            arrays = dumped.arrays(step)
            assert math.isclose(
                float(arrays["sin_default-aten.sin.default.OUTPUT.0"][0]),
                float(torch.tensor(arrays["sin_default-aten.sin.default.INPUT.0"][0]).sin()),
                abs_tol=1e-6,
            )
