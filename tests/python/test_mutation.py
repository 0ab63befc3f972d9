"""Mutation: an INPUT is the value before the operator, an output the value after; equal values are written once."""

from __future__ import annotations

import gc
import random
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.fx import Graph, GraphModule, Node

from graphs import Dumped, aten, build, chain

LIBRARY = torch.library.Library("fxtap_test", "FRAGMENT")
LIBRARY.define("triple_(Tensor(a!) x) -> ()")
LIBRARY.define("swap_(Tensor(a!) x, *, Tensor(b!)[] others) -> Tensor(a!)")


def triple(x: Tensor) -> None:
    x.mul_(3)


def swap(x: Tensor, *, others: list[Tensor]) -> Tensor:
    for other in others:
        kept = x.clone()
        x.copy_(other)
        other.copy_(kept)
    return x


LIBRARY.impl("triple_", triple, "CompositeExplicitAutograd")
LIBRARY.impl("swap_", swap, "CompositeExplicitAutograd")


@pytest.fixture(params=[False, True], ids=["async", "sync"])
def sync(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def run(gm: GraphModule, path: Path, *arguments: Any, sync: bool = False, steps: int = 1) -> Dumped:
    dumped = Dumped(gm, path, {"sync": sync})
    for _ in range(steps):
        dumped(*arguments)
    dumped.dump.close()
    return dumped


def places(dumped: Dumped, node: str) -> dict[str, Any]:
    return {
        name.split(".", 3)[-1] if name.startswith(node + "-aten") else name.split(".", 2)[-1]: array.tolist()
        for name, array in dumped.arrays().items()
        if name.startswith(node + "-")
    }


def test_index_put(sync: bool, tmp_path: Path) -> None:
    gm = build(lambda g, x, i, v: g.call_function(aten.index_put_.default, (x, [i], v)), "x", "i", "v")
    dumped = run(gm, tmp_path, torch.arange(3.0), torch.tensor([0]), torch.tensor([9.0]), sync=sync)
    assert places(dumped, "index_put__default") == {
        "INPUT.0": [0, 1, 2],
        "INPUT.1.0": [0],
        "INPUT.2": [9],
        "OUTPUT.0": [9, 1, 2],
    }


def test_a_large_input_is_not_torn(tmp_path: Path) -> None:
    """Many jobs are pending when the memory changes."""

    def make(graph: Graph, x: Node) -> Node:
        for _ in range(6):
            x = graph.call_function(aten.add_.Scalar, (x, 1))
        return x

    dumped = run(build(make, "x"), tmp_path, torch.zeros(500_000))
    for i, name in enumerate(["add__scalar"] + [f"add__scalar_{i}" for i in range(1, 6)]):
        stem = f"{name}-aten.add_.Scalar"
        before, after = dumped.array(f"{stem}.INPUT.0"), dumped.array(f"{stem}.OUTPUT.0")
        assert before.min() == before.max() == i and after.min() == after.max() == i + 1


def test_what_is_mutated_without_being_returned(sync: bool, tmp_path: Path) -> None:
    def make(graph: Graph, x: Node, y: Node) -> Node:
        graph.call_function(torch.ops.fxtap_test.triple_.default, (x,))
        graph.call_function(torch.ops.fxtap_test.swap_.default, (x,), {"others": [y]})
        return x

    dumped = run(build(make, "x", "y"), tmp_path, torch.ones(2), torch.zeros(2), sync=sync)
    triple_stem, swap_stem = "triple__default-fxtap_test.triple_.default", "swap__default-fxtap_test.swap_.default"
    assert {name: array.tolist() for name, array in dumped.arrays().items()} == {
        f"{triple_stem}.INPUT.0": [1, 1],
        f"{triple_stem}.INOUT.0": [3, 3],
        f"{swap_stem}.INPUT.0": [3, 3],
        f"{swap_stem}.INPUT.others.0": [0, 0],
        f"{swap_stem}.INOUT.others.0": [3, 3],
        f"{swap_stem}.OUTPUT.0": [0, 0],
    }


def test_foreach(tmp_path: Path) -> None:
    gm = build(lambda g, x, y: g.call_function(aten._foreach_add_.Scalar, ([x, y], 1)), "x", "y")
    dumped = run(gm, tmp_path, torch.zeros(2), torch.ones(3))
    stem = "_foreach_add__scalar-aten._foreach_add_.Scalar"
    assert dumped.array(f"{stem}.INOUT.0.0").tolist() == [1, 1]
    assert dumped.array(f"{stem}.INOUT.0.1").tolist() == [2, 2, 2]
    assert dumped.array(f"{stem}.INPUT.0.1").tolist() == [1, 1, 1]


def test_hidden_mutation_of_running_statistics(sync: bool, tmp_path: Path) -> None:
    gm = build(
        lambda g, x, m, v: g.call_function(aten.native_batch_norm.default, (x, None, None, m, v, True, 0.5, 0.1)),
        "x",
        "m",
        "v",
    )
    mean = torch.zeros(2)
    dumped = run(gm, tmp_path, torch.ones(4, 2), mean, torch.ones(2), sync=sync)
    stem = "native_batch_norm_default-aten.native_batch_norm.default"
    assert dumped.array(f"{stem}.INPUT.3").tolist() == [0, 0]
    assert dumped.array(f"{stem}.INOUT.3").tolist() == mean.tolist() == [0.5, 0.5]


def test_views_of_what_changes_are_other_values_afterwards(tmp_path: Path) -> None:
    def make(graph: Graph, x: Node) -> Node:
        view = graph.call_function(aten.view.default, (x, [4]))
        graph.call_function(aten.neg.default, (view,))
        graph.call_function(aten.add_.Scalar, (graph.call_function(aten.select.int, (x, 0, 1)), 5))
        return graph.call_function(aten.neg.default, (view,))

    dumped = run(build(make, "x"), tmp_path, torch.zeros(2, 2))
    assert dumped.array("neg_default-aten.neg.default.INPUT.0").tolist() == [0, 0, 0, 0]
    assert dumped.array("neg_default_1-aten.neg.default.INPUT.0").tolist() == [0, 0, 5, 5]


def test_a_node_that_is_not_dumped_mutates_too(tmp_path: Path) -> None:
    def make(graph: Graph, x: Node) -> Node:
        graph.call_function(aten.neg.default, (x,))
        graph.call_function(aten.add_.Scalar, (x, 1))
        return graph.call_function(aten.neg.default, (x,))

    gm = build(make, "x")
    skip = ["filter" if node.target is aten.add_.Scalar else None for node in gm.graph.nodes]
    dumped = Dumped(gm, tmp_path, skip=skip)
    dumped(torch.zeros(100_000))
    dumped.dump.close()
    assert dumped.array("neg_default-aten.neg.default.INPUT.0").max() == 0
    assert dumped.array("neg_default_1-aten.neg.default.INPUT.0").min() == 1


def test_python_functions_may_change_anything(tmp_path: Path) -> None:
    def change(x: Tensor) -> Tensor:
        return x.add_(1)

    dumped = run(chain(aten.neg.default, change, aten.neg.default), tmp_path, torch.zeros(100_000))
    arrays = dumped.arrays()
    assert arrays["neg_default-aten.neg.default.OUTPUT.0"].max() == 0
    (before,) = [array for name, array in arrays.items() if name.startswith("change-") and ".INPUT." in name]
    assert before.max() == 0
    assert arrays["neg_default_1-aten.neg.default.INPUT.0"].min() == 1


@pytest.mark.parametrize("what", ["resize", "set", "out", "storage"])
def test_a_storage_that_moves_while_views_of_it_wait(what: str, tmp_path: Path) -> None:
    """The resized tensor is a view of two elements, the pending value is another view; only the storage is shared."""
    import torch._inductor.lowering  # loads the operators of its namespace

    n = 1 << 20

    def make(graph: Graph, x: Node) -> Any:
        one = graph.call_function(aten.slice.Tensor, (x, 0, 0, 1))
        graph.call_function(aten.expand.default, (one, [32 * n]))  # no computation, but large writes
        whole = graph.call_function(aten.clone.default, (x,))
        start = graph.call_function(aten.slice.Tensor, (whole, 0, 0, 2))
        rest = graph.call_function(aten.slice.Tensor, (whole, 0, 2, n))
        graph.call_function(aten.neg.default, (rest,))
        if what == "resize":
            graph.call_function(aten.resize_.default, (start, [2 * n]))
        elif what == "out":
            graph.call_function(
                aten.cat.out, ([x, x],), {"out": graph.call_function(aten.slice.Tensor, (start, 0, 0, 0))}
            )
        elif what == "storage":
            graph.call_function(torch.ops.inductor.resize_storage_bytes_.default, (start, 0))
        else:
            graph.call_function(aten.set_.source_Tensor, (whole, x))
        return tuple(graph.call_function(aten.full.default, ([n * k], 7.0)) for k in (1, 2))

    gm = build(make, "x")
    skip = [
        None if node.target in (aten.expand.default, aten.neg.default) else "not looked at" for node in gm.graph.nodes
    ]
    dumped = Dumped(gm, tmp_path, {"threads": 1}, skip=skip)
    dumped(torch.arange(float(n)))
    dumped.dump.close()
    assert np.array_equal(dumped.array("neg_default-aten.neg.default.INPUT.0"), np.arange(2, n, dtype=np.float32))


@pytest.mark.parametrize("seed", range(6))
def test_random_programs_async_equals_sync(seed: int, tmp_path: Path) -> None:
    """Random views, in-place operators and fresh values: both dumps have the same values under the same names."""
    choose = random.Random(seed)

    def make(graph: Graph, x: Node) -> Any:
        values = [x, graph.call_function(aten.clone.default, (x,))]
        for _ in range(30):
            value = choose.choice(values)
            target, args = choose.choice(
                [
                    (aten.add_.Scalar, (value, 1)),
                    (aten.mul_.Scalar, (value, 2)),
                    (aten.neg.default, (value,)),
                    (aten.t.default, (value,)),
                    (aten.slice.Tensor, (value, 0, 1, 30)),
                    (aten.clone.default, (value,)),
                    (aten.alias.default, (value,)),
                    (aten.add.Tensor, (value, value)),
                    (aten.sin_.default, (value,)),
                ]
            )
            values.append(graph.call_function(target, args))
        return tuple(values)

    gm = build(make, "x")
    first = run(gm, tmp_path / "a", torch.ones(64, 64)).arrays()
    second = run(gm, tmp_path / "s", torch.ones(64, 64), sync=True).arrays()
    assert first.keys() == second.keys()
    for name, array in first.items():
        assert array.tobytes() == second[name].tobytes(), name


# ---- undeclared writes of operators ----


LIBRARY.define("zeroes(Tensor x, Tensor[] others, Tensor? y=None, *, Tensor? key=None) -> Tensor")


def write_zeroes(x: Tensor, others: list[Tensor], y: Tensor | None = None, *, key: Tensor | None = None) -> Tensor:
    """Write zeros to all arguments but x from the second on, which the schema does not declare."""
    result = x + 1
    for tensor in (*others[1:], y, key):
        if tensor is not None:
            tensor.zero_()
    return result


LIBRARY.impl("zeroes", write_zeroes, "CompositeExplicitAutograd")
zeroes = torch.ops.fxtap_test.zeroes.default

LIARS: list[tuple[str, Callable[[Graph, Node], Node], str]] = [
    ("list", lambda g, y: g.call_function(zeroes, (g.call_function(aten.neg.default, (y,)), [y, y])), "1.1"),
    ("optional", lambda g, y: g.call_function(zeroes, (g.call_function(aten.neg.default, (y,)), [], y)), "2"),
    (
        "keyword",
        lambda g, y: g.call_function(zeroes, (g.call_function(aten.neg.default, (y,)), []), {"key": y}),
        "key",
    ),
    (
        "view",
        lambda g, y: g.call_function(zeroes, (y, [], g.call_function(aten.slice.Tensor, (y, 0, 1000, 2000)))),
        "2",
    ),
]


@pytest.mark.parametrize("dumped_too", [True, False], ids=["dumped", "skipped"])
@pytest.mark.parametrize(("name", "call", "position"), LIARS, ids=[name for name, _, _ in LIARS])
def test_an_undeclared_write_is_found(
    name: str, call: Callable[[Graph, Node], Node], position: str, dumped_too: bool, sync: bool, tmp_path: Path
) -> None:
    def make(graph: Graph, x: Node) -> Node:
        y = graph.call_function(aten.mul.Tensor, (x, 2))
        result = call(graph, y)
        return graph.call_function(aten.add.Tensor, (result, y))

    gm = build(make, "x")
    skip = ["non aten target" if node.name == "zeroes_default" and not dumped_too else None for node in gm.graph.nodes]
    lines: list[str] = []
    dumped = Dumped(gm, tmp_path, {"sync": sync}, skip, log=lines.append)
    for _ in range(2):
        dumped(torch.ones(1 << 20))
    dumped.dump.close()
    before = dumped.array("mul_tensor-aten.mul.Tensor.OUTPUT.0")
    after = dumped.array("add_tensor-aten.add.Tensor.INPUT.1")
    assert before.min() == before.max() == 2
    assert np.count_nonzero(after == 0) == (1000 if name == "view" else 1 << 20)
    rows = dumped.index("SELECT n.target, f.kind, f.position FROM finding f JOIN node n ON n.id = f.node_id")
    assert ("fxtap_test.zeroes.default", 1, position) in rows and {row[0] for row in rows} == {
        "fxtap_test.zeroes.default"
    }
    assert len(lines) == 1 and "fxtap_test.zeroes.default" in lines[0] and "without declaring it" in lines[0]
    if dumped_too:
        inputs = {
            name: array
            for name, array in dumped.arrays().items()
            if name.startswith("zeroes_default-") and "INPUT" in name
        }
        assert inputs and all(np.all(abs(array) == 2) for array in inputs.values())


def test_an_undeclared_write_is_found_by_statistics_too(tmp_path: Path) -> None:
    def make(graph: Graph, x: Node) -> Node:
        y = graph.call_function(aten.mul.Tensor, (x, 2))
        return graph.call_function(zeroes, (x, [], y))

    dumped = Dumped(build(make, "x"), tmp_path, {"type": "stats"})
    dumped(torch.ones(1 << 20))
    dumped.dump.close()
    assert dumped.index("SELECT position, arg_name FROM finding") == [("2", "y")]


def test_an_honest_operator_has_no_finding(sync: bool, tmp_path: Path) -> None:
    def make(graph: Graph, x: Node, y: Node) -> Node:
        graph.call_function(torch.ops.fxtap_test.triple_.default, (x,))
        graph.call_function(torch.ops.fxtap_test.swap_.default, (x,), {"others": [y]})
        return graph.call_function(zeroes, (x, [x]))

    dumped = run(build(make, "x", "y"), tmp_path, torch.ones(2), torch.zeros(2), sync=sync)
    assert dumped.index("SELECT name FROM sqlite_schema WHERE name = 'finding'") == []


# ---- equal values are written once ----


def inode(dumped: Dumped, name: str, step: int = 0) -> int:
    return dumped.files(step)[name].stat().st_ino


def test_one_value_is_one_file(tmp_path: Path) -> None:
    dumped = run(chain(aten.sin.default, aten.cos.default, aten.cos.default), tmp_path, torch.randn(64, 64))
    cos, cos_1 = "cos_default-aten.cos.default", "cos_default_1-aten.cos.default"
    assert inode(dumped, "sin_default-aten.sin.default.OUTPUT.0") == inode(dumped, f"{cos}.INPUT.0")
    assert inode(dumped, f"{cos}.OUTPUT.0") == inode(dumped, f"{cos_1}.INPUT.0")
    assert inode(dumped, f"{cos}.INPUT.0") != inode(dumped, f"{cos}.OUTPUT.0")


def test_weights_are_written_once_over_steps(tmp_path: Path) -> None:
    gm = build(lambda g, x, w: g.call_function(aten.mm.default, (x, w)), "x", "w")
    dumped = Dumped(gm, tmp_path)
    weight = torch.randn(64, 64)
    for _ in range(3):
        dumped(torch.randn(2, 64), weight)
    dumped.dump.close()
    assert len({inode(dumped, "mm_default-aten.mm.default.INPUT.1", step) for step in range(3)}) == 1
    assert len({inode(dumped, "mm_default-aten.mm.default.INPUT.0", step) for step in range(3)}) == 3


def test_views_over_the_same_bytes(tmp_path: Path) -> None:
    def make(graph: Graph, x: Node) -> Node:
        flat = graph.call_function(aten.view.default, (x, [6]))
        back = graph.call_function(aten.view.default, (flat, [2, 3]))
        turned = graph.call_function(aten.t.default, (back,))
        return graph.call_function(aten.alias.default, (turned,))

    x = torch.arange(6.0).reshape(2, 3)
    dumped = run(build(make, "x"), tmp_path, x)
    arrays = dumped.arrays()
    assert arrays["view_default-aten.view.default.OUTPUT.0"].tolist() == x.reshape(-1).tolist()
    assert arrays["view_default_1-aten.view.default.OUTPUT.0"].tolist() == x.tolist()
    assert arrays["t_default-aten.t.default.OUTPUT.0"].tolist() == x.t().tolist()
    assert arrays["alias_default-aten.alias.default.OUTPUT.0"].tolist() == x.t().tolist()


def test_equal_addresses_are_not_equal_values(tmp_path: Path) -> None:
    """Freed memory is reused at once: an address does not identify a value."""

    def make(graph: Graph, x: Node) -> Node:
        for _ in range(30):
            x = graph.call_function(aten.add.Scalar, (x, 1))
        return x

    dumped = run(build(make, "x"), tmp_path, torch.zeros(32))
    for name, array in dumped.arrays().items():
        node = name.partition("-")[0].removeprefix("add_scalar").removeprefix("_") or "0"
        if "INPUT.0" in name or "OUTPUT.0" in name:
            assert array[0] == int(node) + ("OUTPUT" in name), name


def test_deduplication_can_be_switched_off(tmp_path: Path) -> None:
    dumped = Dumped(chain(aten.sin.default, aten.cos.default), tmp_path, {"dedup": False})
    dumped(torch.randn(64))
    dumped.dump.close()
    files = dumped.files()
    assert len({file.stat().st_ino for file in files.values()}) == len(files)


def test_the_queue_bounds_what_is_alive(tmp_path: Path) -> None:
    """Values are freed when their jobs end: 200 values of 1 MiB with a queue of 4 MiB."""
    alive: list[int] = []

    def measure(x: Tensor) -> Tensor:
        alive.append(sum(1 for value in values if value() is not None))
        return x

    values: list[weakref.ref[Tensor]] = []

    def remember(x: Tensor) -> Tensor:
        values.append(weakref.ref(x))
        return x

    def make(graph: Graph, x: Node) -> Node:
        for _ in range(40):
            x = graph.call_function(aten.add.Scalar, (x, 1))
            x = graph.call_function(remember, (x,))
            x = graph.call_function(measure, (x,))
        return x

    gm = build(make, "x")
    skip = [None if node.target is aten.add.Scalar else "no" for node in gm.graph.nodes]
    dumped = Dumped(gm, tmp_path, {"queue_bytes": 4 << 20, "dedup": False}, skip)
    dumped(torch.zeros(1 << 18))
    dumped.dump.close()
    assert max(alive) <= 7
    assert np.all(dumped.array("add_scalar_39-aten.add.Scalar.OUTPUT.0") == 40)


# ---- failures of the dump ----


def test_a_path_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    dumped = Dumped(chain(aten.sin.default), tmp_path / "file")
    with pytest.raises(NotADirectoryError) as caught:
        dumped(torch.ones(2))
    assert str(tmp_path / "file") in str(caught.value.filename)
    assert dumped.program.dumping


def test_warn_once_and_go_on(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    lines: list[str] = []
    dumped = Dumped(chain(aten.sin.default), tmp_path / "file", on_error="warn", log=lines.append)
    for _ in range(3):
        assert torch.equal(dumped(torch.ones(2)), torch.ones(2).sin())
    assert len(lines) == 1 and "file" in lines[0]
    assert not dumped.program.dumping


def test_closing_in_the_middle_of_a_call(tmp_path: Path) -> None:
    holder: list[Dumped] = []

    def close(x: Tensor) -> Tensor:
        holder[0].dump.close()
        return x

    gm = chain(aten.sin.default, close, aten.cos.default)
    holder.append(Dumped(gm, tmp_path))
    holder[0](torch.ones(2))
    assert holder[0].dump.closed and not holder[0].program.dumping
    assert len([name for name in holder[0].files() if "aten" in name]) == 4
    assert torch.equal(holder[0](torch.ones(2)), torch.ones(2).sin().cos())
    assert holder[0].steps() == ["0"]


def test_statistics_only(tmp_path: Path) -> None:
    dumped = Dumped(chain(aten.sin.default), tmp_path, {"type": "stats"})
    dumped(torch.arange(4.0))
    dumped.dump.close()
    assert not list(tmp_path.rglob("*.npy"))
    assert dumped.index("SELECT count(*) FROM tensor") == [(2,)]
    assert dumped.index("SELECT max FROM value ORDER BY max DESC LIMIT 1") == [(3.0,)]


def test_dropped_tensors_die_when_their_jobs_are_done(tmp_path: Path) -> None:
    """A queued job keeps a tensor alive after its last use, but only until the job is done."""
    counts: list[int] = []

    @torch.library.custom_op("fxtap_test::count_alive", mutates_args=())
    def count(x: Tensor) -> Tensor:
        counts.append(sum(type(o) is Tensor and o.shape == x.shape for o in gc.get_objects()))
        return x.clone()

    def graph(g: Graph, x: Node) -> Node:
        for _ in range(80):
            x = g.call_function(aten.add.Tensor, (x, 1))
        return g.call_function(torch.ops.fxtap_test.count_alive.default, (x,))

    dumped = Dumped(build(graph, "x"), tmp_path, {"type": "stats"})
    dumped(torch.zeros(3_000_003))  # large enough that jobs are pending when the loop drops their tensors
    assert counts[0] <= 20
