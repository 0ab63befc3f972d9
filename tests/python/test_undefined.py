"""Memory that was never written: excluded from comparisons element by element, and reported if it is used."""

from __future__ import annotations

import math
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

import fxtap
from dumps import graphs, load, run
from graphs import Dumped, aten, build


def dirty(value: float) -> None:
    """Leave garbage in memory that the allocator will reuse."""
    junk = [torch.full((size,), value) for size in (1, 4, 6, 9, 12, 16, 24, 33, 48, 64, 66, 128) for _ in range(60)]
    del junk


def twice(root: Path, function: Callable[..., Any], *arguments: Any, other: Any = None, **options: Any) -> fxtap.Report:
    """Dump a function twice with different garbage (or `other` the second time), and compare."""
    for name, garbage, one in (("a", 7.7, function), ("b", math.nan, other or function)):
        torch._dynamo.reset()
        dirty(garbage)
        run(root / name, one, *arguments, **options)
    return fxtap.compare(root / "a", root / "b")


def findings(root: Path) -> list[tuple[str, str, int, int]]:
    """Return target, argument, number of unwritten elements, number of elements."""
    with sqlite3.connect(next(root.glob("*/fxtap.db"))) as database:
        if not database.execute("SELECT 1 FROM sqlite_schema WHERE name = 'finding'").fetchall():
            return []
        return database.execute(
            "SELECT n.target, f.arg_name, f.count, f.total FROM finding f JOIN node n ON n.id = f.node_id"
            " WHERE f.kind = 2 ORDER BY f.id"
        ).fetchall()


def undefined(root: Path, node: str, io: str = "OUTPUT", position: str = "0") -> list[int]:
    """Return the flat positions, in file order, of a tensor's undefined elements."""
    sql = (
        "SELECT u.ranges FROM tensor t JOIN slot s ON s.id = t.slot_id JOIN node n ON n.id = s.node_id"
        " LEFT JOIN undefined u ON u.value_id = t.value_id WHERE n.name = ? AND s.io = ? AND s.position = ?"
    )
    with sqlite3.connect(next(root.glob("*/fxtap.db"))) as database:
        (row,) = database.execute(sql, (node, ("INPUT", "OUTPUT", "INOUT").index(io), position)).fetchall()
    positions: list[int] = []
    numbers, value, shift = [], 0, 0
    for byte in row[0] or b"":
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            numbers.append(value)
            value, shift = 0, 0
    end = 0
    for gap, count, _ in zip(*[iter(numbers)] * 3, strict=True):
        positions += range(end + gap, end + gap + count)
        end += gap + count
    return positions


def is_same(report: fxtap.Report) -> bool:
    return report.verdict == "same" and not report.origins


def check(root: Path, *options: str) -> subprocess.CompletedProcess[str]:
    program = os.environ.get("FXTAP_PROGRAM") or str(Path(sys.executable).with_name("fxtap"))
    return subprocess.run([program, "check", *options, root], capture_output=True, text=True, check=False)


LIBRARY = torch.library.Library("fxtap_undefined", "FRAGMENT")
LIBRARY.define("store(Tensor x, Tensor(a!) cache, int[] slots) -> ()")
LIBRARY.define("attend(Tensor q, Tensor cache, int n) -> Tensor")


def store(x: Tensor, cache: Tensor, slots: list[int]) -> None:
    cache[slots] = x


def attend(q: Tensor, cache: Tensor, n: int) -> Tensor:
    return torch.softmax(q @ cache[:n].T, -1) @ cache[:n]


for name, function in (("store", store), ("attend", attend)):
    LIBRARY.impl(name, function, "CompositeExplicitAutograd")
torch.library.register_fake("fxtap_undefined::store", lambda x, cache, slots: None, lib=LIBRARY)
torch.library.register_fake("fxtap_undefined::attend", lambda q, cache, n: torch.empty_like(q), lib=LIBRARY)


# ---- buffers that are filled in parts ----


def filled_by_slices(x: Tensor) -> Tensor:
    buffer = torch.empty(4, 6)
    buffer[:, :3] = x
    buffer[:, 3:] = x * 2
    return buffer.relu()


def filled_by_rows(x: Tensor) -> Tensor:
    buffer = x.new_empty(8, 3)
    for i in range(4):
        buffer[i] = x[i]
        buffer.select(0, 4 + i).copy_(x[i])
    return buffer.t().contiguous()


def filled_by_index(x: Tensor) -> Tensor:
    buffer = torch.empty_like(x)
    buffer[torch.tensor([3, 1])] = x[:2]
    buffer.index_copy_(0, torch.tensor([0, 2]), x[2:])
    return buffer + 1


def filled_by_mask(x: Tensor) -> Tensor:
    buffer = torch.empty_strided((4, 3), (1, 4))
    buffer.masked_fill_(x > 0, 1.0)
    return torch.where(x > 0, buffer, x)


def padded(x: Tensor) -> Tensor:
    return functional.pad(x[None], (1, 2), mode="circular").sin()


def padded_batch(x: Tensor) -> Tensor:
    buffer = x.new_empty(3, 5, 3)
    keep = torch.zeros(3, 5, 1, dtype=torch.bool)
    for i, n in enumerate((2, 4, 3)):
        buffer[i, :n] = x[:n]
        keep[i, :n] = True
    return buffer.masked_fill(~keep, 0.0).sum()


def kv_cache(x: Tensor) -> Tensor:
    cache = x.new_empty(2, 16, 3)
    cache[:, :4] = x
    cache[:, 4:8] = x * 2
    return torch.softmax(x @ cache[0, :8].T, -1) @ cache[1, :8]


def joined(x: Tensor) -> Tensor:
    parts = torch.cat([x, torch.empty(2, 3), x * 2])
    rolled = parts.roll(1, 0).flip(0)
    return torch.stack([rolled.flip(0).roll(-1, 0)[:4], x]).cos()


def by_out(x: Tensor) -> Tensor:
    buffer = torch.empty(4, 3)
    torch.mul(x, 2, out=buffer)
    return buffer + 1


def overwritten(x: Tensor) -> Tensor:
    a, b = torch.empty(4, 3), torch.empty(4, 3)
    a.zero_()
    b.fill_(2.0)
    return a + b + x


def unread(x: Tensor) -> tuple[Tensor, Tensor]:
    return x * 2, torch.empty(4, 3)


def through_a_cast(x: Tensor) -> Tensor:
    buffer = torch.empty(4, 6, dtype=torch.float64)
    buffer[:, :3] = x
    half = buffer.to(torch.bfloat16).view(2, 12)
    return half.view(4, 6)[:, :3].float()


def through_other_types(x: Tensor) -> Tensor:
    buffer = torch.empty(4, 3, dtype=torch.int32)
    buffer[:2] = x[:2].view(torch.int32)
    pair = torch.view_as_complex(torch.empty(4, 2))
    pair[:2] = 1.0
    return buffer[:2].view(torch.float32) + torch.view_as_real(pair)[:2, :1]


def filled_together(x: Tensor) -> Tensor:
    buffers = [torch.empty(4, 3) for _ in range(3)]
    torch._foreach_copy_(buffers, [x, x * 2, x * 3])
    return buffers[0] + buffers[1] + buffers[2]


FILLED = [
    filled_by_slices, filled_by_rows, filled_by_index, filled_by_mask, padded, padded_batch, kv_cache, joined, by_out,
    overwritten, unread, filled_together, through_a_cast, through_other_types,
]  # fmt: skip


@pytest.mark.parametrize("type", ["npy", "stats"])
@pytest.mark.parametrize("model", FILLED, ids=lambda model: model.__name__)
def test_equal_runs_are_the_same(model: Callable[..., Any], type: str, tmp_path: Path) -> None:
    x = torch.randn(4, 3)
    report = twice(tmp_path, model, x, type=type)
    assert is_same(report), report
    assert not report.warnings, report.warnings
    assert findings(tmp_path / "a") == findings(tmp_path / "b") == []
    assert check(tmp_path / "b", "--strict").returncode == 0


@pytest.mark.parametrize("model", FILLED, ids=lambda model: model.__name__)
def test_another_input_is_seen(model: Callable[..., Any], tmp_path: Path) -> None:
    """Defined elements are still compared."""
    if model in (overwritten, unread):
        pytest.skip("its input is another either way")

    def other(x: Tensor) -> Any:
        return model(x.clone().masked_fill_(torch.arange(12).view(4, 3) == 4, 9.0))

    def same(x: Tensor) -> Any:
        return model(x.clone().masked_fill_(torch.arange(12).view(4, 3) == 40, 9.0))

    report = twice(tmp_path, same, torch.randn(4, 3), other=other)
    assert report.verdict == "different"
    assert any("masked_fill" in pair.node or "masked_fill" in pair.target for pair in report.differing)


def test_random_numbers_fill(tmp_path: Path) -> None:
    def model(x: Tensor) -> Tensor:
        drawn = torch.empty_like(x).bernoulli_(0.5) * torch.empty(4, 3).normal_()
        return drawn + torch.empty(4, 3).uniform_() + x

    run(tmp_path, model, torch.ones(4, 3))
    assert findings(tmp_path) == []
    assert undefined(tmp_path, "add_1") == []


def test_one_wrong_element_beside_undefined_ones(tmp_path: Path) -> None:
    def make(value: float) -> Callable[[Tensor], Tensor]:
        def model(x: Tensor) -> Tensor:
            buffer = torch.empty(4, 6)
            buffer[:, :3] = x
            buffer[1, 2] = value
            return buffer.clone()[:, :3].relu()

        return model

    report = twice(tmp_path, make(1.0), torch.ones(4, 3), other=make(1.5))
    (pair,) = [p for p in report.pairs if p.node == "clone" and p.io == "OUTPUT"]
    assert (pair.verdict, pair.count, pair.undefined_count, pair.mismatched) == ("different", 12, 12, 1)
    assert pair.max_abs_err == 0.5 and pair.max_abs_index == 8


def test_which_elements(tmp_path: Path) -> None:
    def model(x: Tensor) -> Tensor:
        buffer = torch.empty(3, 4)
        buffer[1, 1:3] = x
        return buffer.t().clone(memory_format=torch.contiguous_format)

    run(tmp_path, model, torch.ones(2))
    assert undefined(tmp_path, "empty") == list(range(12))
    assert undefined(tmp_path, "slice_scatter", "INPUT") == [0, 1, 2, 3]
    assert undefined(tmp_path, "slice_scatter") == [0, 3]
    assert undefined(tmp_path, "select_scatter") == [0, 1, 2, 3, 4, 7, 8, 9, 10, 11]
    state = np.ones((3, 4), bool)
    state[1, 1:3] = False
    order = "F" if np.isfortran(load(graphs(tmp_path)[0] / "0", "t_1-aten.t.default.OUTPUT.0")) else "C"
    assert undefined(tmp_path, "t_1") == np.flatnonzero(state.T.ravel(order)).tolist() and order == "F"
    assert undefined(tmp_path, "clone") == np.flatnonzero(state.T.ravel()).tolist()


def test_statistics_are_of_the_defined_elements(tmp_path: Path) -> None:
    torch.use_deterministic_algorithms(True)
    try:
        run(tmp_path, filled_by_slices, torch.ones(4, 3))
    finally:
        torch.use_deterministic_algorithms(False)
    with sqlite3.connect(next(tmp_path.glob("*/fxtap.db"))) as database:
        rows = database.execute(
            "SELECT count, nan_count, min, max FROM tensors WHERE node = 'slice_scatter' AND io = 'OUTPUT'"
        ).fetchall()
    assert rows == [(12, 0, 1.0, 1.0)]
    done = check(tmp_path, "--strict")
    assert done.returncode == 0, done.stdout
    tensors = fxtap.open(tmp_path).tensors()
    assert [t.undefined_count for t in tensors if t.node == "slice_scatter" and t.io == "OUTPUT"] == [12]


# ---- computing with undefined elements ----


def test_an_operator_that_computes_with_it_is_reported(tmp_path: Path) -> None:
    def model(x: Tensor) -> Tensor:
        buffer = torch.empty(4, 6)
        buffer[:, :3] = x
        doubled = buffer * 2
        return doubled + 1

    report = twice(tmp_path, model, torch.ones(4, 3))
    assert report.verdict == "same"
    assert findings(tmp_path / "a") == [("aten.mul.Tensor", "self", 12, 24)]
    assert any("mul" in w and "never written" in w and "test_undefined.py" in w for w in report.warnings)
    done = check(tmp_path / "a")
    assert done.returncode == 1 and "12 of 24 elements" in done.stdout and "doubled = buffer * 2" in done.stdout
    assert "all whole" in done.stdout


def test_what_depends_on_it_is_told_from_what_does_not(tmp_path: Path) -> None:
    def model(x: Tensor) -> Tensor:
        buffer = torch.empty(4, 3)
        buffer[:2] = x[:2]
        product = buffer @ x[:3]
        return torch.cat([product[:2], x])

    assert is_same(twice(tmp_path, model, torch.randn(4, 3)))
    assert undefined(tmp_path / "a", "mm") == [6, 7, 8, 9, 10, 11]
    assert undefined(tmp_path / "a", "cat") == []
    assert findings(tmp_path / "a") == [("aten.mm.default", "self", 6, 12)]


@pytest.mark.parametrize(
    ("name", "compute", "expected"),
    [
        ("sum", lambda b: b.sum(1), [2, 3]),
        ("softmax", lambda b: b.softmax(-1), [6, 7, 8, 9, 10, 11]),
        ("layer_norm", lambda b: functional.layer_norm(b, (3,)), [6, 7, 8, 9, 10, 11]),
        ("compare", lambda b: b > 0, [6, 7, 8, 9, 10, 11]),
        ("sort", lambda b: b.sort(0).values, list(range(12))),
        ("in place", lambda b: b.clone().add_(1), [6, 7, 8, 9, 10, 11]),
        ("cumsum", lambda b: b.cumsum(0), [6, 7, 8, 9, 10, 11]),
    ],
)
def test_what_depends_on_it(
    name: str, compute: Callable[[Tensor], Tensor], expected: list[int], tmp_path: Path
) -> None:
    def model(x: Tensor) -> Tensor:
        buffer = torch.empty(4, 3)
        buffer[:2] = x[:2]
        return compute(buffer)

    assert is_same(twice(tmp_path, model, torch.randn(4, 3)))
    reads = findings(tmp_path / "a")
    assert len(reads) == 1 and reads[0][2:] == (6, 12)
    node = fxtap.open(tmp_path / "a").tensors(io="OUTPUT")[-1].node
    assert undefined(tmp_path / "a", node) == expected


def test_moving_is_not_reading(tmp_path: Path) -> None:
    def model(x: Tensor) -> Tensor:
        buffer = torch.empty(4, 3)
        moved = torch.stack([buffer, buffer.flip(0)])[:, torch.tensor([1, 0])].permute(2, 0, 1).repeat(2, 1, 1)
        return functional.pad(moved.clone(), (1, 1)).reshape(-1)[:3] * 0 + x[0]

    run(tmp_path, model, torch.ones(4, 3))
    assert [target for target, *_ in findings(tmp_path)] == ["aten.mul.Tensor"]


def test_an_index_that_was_never_written(tmp_path: Path) -> None:
    def make(g: Any, x: Any) -> Any:
        index = g.call_function(aten.empty.memory_format, ([2],), {"dtype": torch.int64})
        zero = g.call_function(aten.clamp.default, (index, 0, 0))
        return g.call_function(aten.index_select.default, (x, 0, zero))

    dumped = Dumped(build(make, "x"), tmp_path)
    dumped(torch.ones(4, 3))
    dumped.dump.close()
    assert findings(tmp_path) == [("aten.clamp.default", "self", 2, 2)]
    assert undefined(tmp_path, "index_select_default") == list(range(6))


# ---- in-place operators in a graph that is not functionalised ----


def test_in_place_graphs(tmp_path: Path) -> None:
    def make(g: Any, x: Any) -> Any:
        buffer = g.call_function(aten.empty.memory_format, ([4, 6],))
        left = g.call_function(aten.slice.Tensor, (buffer, 1, 0, 3))
        g.call_function(aten.copy_.default, (left, x))
        before = g.call_function(aten.clone.default, (buffer,))
        right = g.call_function(aten.slice.Tensor, (buffer, 1, 3, 6))
        g.call_function(aten.fill_.Scalar, (right, 2.0))
        return before, g.call_function(aten.relu.default, (buffer,))

    for name, garbage in (("a", 7.7), ("b", math.nan)):
        dirty(garbage)
        dumped = Dumped(build(make, "x"), tmp_path / name)
        dumped(torch.ones(4, 3))
        dumped.dump.close()
    assert is_same(fxtap.compare(tmp_path / "a", tmp_path / "b"))
    assert len(undefined(tmp_path / "a", "clone_default")) == 12
    assert undefined(tmp_path / "a", "relu_default", "INPUT") == []
    assert findings(tmp_path / "a") == []


def test_memory_that_is_used_again_is_another(tmp_path: Path) -> None:
    """States belong to a storage, not to an address."""

    def make(g: Any, x: Any) -> Any:
        for _ in range(20):
            g.call_function(aten.empty.memory_format, ([4, 3],))
            x = g.call_function(aten.add.Scalar, (x, 1))
        return x

    dumped = Dumped(build(make, "x"), tmp_path)
    dumped(torch.ones(4, 3))
    dumped.dump.close()
    assert findings(tmp_path) == []
    assert undefined(tmp_path, "add_scalar_19") == []


def test_memory_that_grows(tmp_path: Path) -> None:
    def make(g: Any, x: Any) -> Any:
        buffer = g.call_function(aten.clone.default, (x,))
        g.call_function(aten.resize_.default, (buffer, [6, 3]))
        whole = g.call_function(aten.clone.default, (buffer,))
        g.call_function(aten.fill_.Scalar, (g.call_function(aten.slice.Tensor, (buffer, 0, 5, 6)), 1.0))
        return whole, g.call_function(aten.clone.default, (buffer,)), g.call_function(aten.resize.default, (x, [5, 3]))

    dumped = Dumped(build(make, "x"), tmp_path)
    dumped(torch.ones(4, 3))
    dumped.dump.close()
    assert undefined(tmp_path, "clone_default_1") == list(range(12, 18))
    assert undefined(tmp_path, "clone_default_2") == [12, 13, 14]
    assert undefined(tmp_path, "resize_default") == [12, 13, 14]


# ---- from one call to the next ----


def test_a_buffer_across_a_graph_break(tmp_path: Path) -> None:
    def model(x: Tensor) -> Tensor:
        buffer = torch.empty(8, 3)
        buffer[:4] = x
        torch._dynamo.graph_break()
        return buffer[:4] * 2, buffer * 1

    report = twice(tmp_path, model, torch.ones(4, 3))
    assert report.verdict == "same"
    assert ("aten.mul.Tensor", "self", 12, 24) in findings(tmp_path / "a")


def test_what_eager_code_wrote_between_calls_is_not_called_unwritten(tmp_path: Path) -> None:
    def model(x: Tensor) -> Tensor:
        buffer = torch.empty(8, 3)
        buffer[:4] = x
        torch._dynamo.graph_break()
        fill(buffer)
        return buffer * 1

    @torch.compiler.disable
    def fill(buffer: Tensor) -> None:
        buffer[4:] = 5.0

    report = twice(tmp_path, model, torch.ones(4, 3))
    assert report.verdict == "same"
    assert findings(tmp_path / "a") == []


# ---- unknown operators ----


def test_a_custom_operator_that_fills_a_part(tmp_path: Path) -> None:
    def model(x: Tensor) -> Tensor:
        cache = torch.empty(8, 3)
        torch.ops.fxtap_undefined.store(x[:2], cache, [1, 3])
        torch.ops.fxtap_undefined.store(x[2:], cache, [0, 2])
        return cache[:4] + 1

    x = torch.randn(4, 3)
    assert is_same(twice(tmp_path, model, x, custom_ops=True))
    assert findings(tmp_path / "a") == []

    def wrong(x: Tensor) -> Tensor:
        cache = torch.empty(8, 3)
        torch.ops.fxtap_undefined.store(x[:2] * 1.5, cache, [1, 3])
        torch.ops.fxtap_undefined.store(x[2:], cache, [0, 2])
        return cache[:4] + 1

    def right(x: Tensor) -> Tensor:
        cache = torch.empty(8, 3)
        torch.ops.fxtap_undefined.store(x[:2] * 1.0, cache, [1, 3])
        torch.ops.fxtap_undefined.store(x[2:], cache, [0, 2])
        return cache[:4] + 1

    report = twice(tmp_path / "other", right, x, other=wrong, custom_ops=True)
    assert report.verdict == "different"
    (pair,) = [p for p in report.pairs if p.node == "store" and p.io == "INOUT"]
    assert (pair.verdict, pair.mismatched) == ("different", 6) and 0 < pair.undefined_count <= 18


def test_what_a_custom_operator_may_have_read_is_not_judged(tmp_path: Path) -> None:
    def model(x: Tensor) -> Tensor:
        cache = torch.empty(8, 3)
        cache[:4] = x
        return torch.ops.fxtap_undefined.attend(x, cache, 4) + 1

    report = twice(tmp_path, model, torch.randn(4, 3), custom_ops=True)
    assert is_same(report)
    (pair,) = [p for p in report.pairs if p.node == "attend" and p.io == "OUTPUT"]
    assert pair.verdict == "same" and pair.undefined_count == 0
    assert findings(tmp_path / "a") == []


# ---- the model's results are unchanged ----


@pytest.mark.parametrize("model", FILLED, ids=lambda model: model.__name__)
def test_results_are_eagers(model: Callable[..., Any], tmp_path: Path) -> None:
    if model is unread:
        pytest.skip("returns garbage")
    x = torch.randn(4, 3)
    expected, state = model(x.clone()), torch.get_rng_state()
    assert torch.equal(run(tmp_path, model, x.clone()), expected)
    assert torch.equal(torch.get_rng_state(), state)


def test_nothing_is_kept_when_it_is_gone(tmp_path: Path) -> None:
    import fxtap.undefined

    memories = [m for m in __import__("gc").get_objects() if type(m) is fxtap.undefined.Memory]
    run(tmp_path, filled_by_slices, torch.ones(4, 3))
    for memory in memories:
        memory.begin_call()
        assert not memory.regions


def test_elements_that_share_memory(tmp_path: Path) -> None:
    def make(g: Any, x: Any) -> Any:
        buffer = g.call_function(aten.empty_strided.default, ([4, 3], [0, 1]))
        return g.call_function(aten.clone.default, (buffer,)), x

    dumped = Dumped(build(make, "x"), tmp_path)
    dumped(torch.ones(4, 3))
    dumped.dump.close()
    assert undefined(tmp_path, "clone_default") == list(range(12))
