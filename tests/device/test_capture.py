"""Dumps of functions that run on a device, against what an interpreter records there."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import types
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.fx import Graph, GraphModule

import fxtap
import npu
from recorded import copied, differences, dump, dump_graph, on_host, record

aten = torch.ops.aten
DTYPES = [
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.complex64, torch.complex128, torch.int64,
    torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool, torch.float8_e4m3fn, torch.float8_e5m2,
]  # fmt: skip


def random(*shape: int, device: str = "npu", **options: Any) -> Tensor:
    return torch.randn(shape).to(device).requires_grad_(options.get("requires_grad", False))


def checked(function: Callable[..., Any], *inputs: Any, **options: Any) -> None:
    """Dump a function and compare with the recorder."""
    calls = record(function, list(inputs))
    npu.take_host_copies()
    dump(function, list(inputs), "checked", **options)
    assert differences("checked", calls) == []


def copies(function: Callable[..., Any], *inputs: Any, **options: Any) -> Counter[int]:
    """Return the bytes copied to the host by a dump, by number of copies."""
    torch.npu.synchronize()
    npu.take_host_copies()
    dump(function, list(inputs), "dump", **options)
    return Counter(copy.n_bytes for copy in npu.take_host_copies())


# ---- values ----


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtypes(dtype: torch.dtype) -> None:
    x = (torch.randn(3, 4, dtype=torch.float32) * 3).to(dtype).to("npu")
    with npu.queued():
        checked(lambda x: (x.t().clone(), x[1:]), x)


def views(x: Tensor) -> Any:
    y = x * 2
    return y.t() + 1, y[1:, ::2] * 3, y.view(-1).unfold(0, 4, 2) + 1, y[0].expand(5, -1) + 1, y.sum(), x[:0] + 1


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("options", [{}, {"sync": True}, {"threads": 2}, {"dedup": False}], ids=str)
def test_views_and_options(options: dict[str, Any]) -> None:
    checked(views, random(4, 6), **options)


@pytest.mark.usefixtures("kernels")
def test_conjugate_and_negative_views() -> None:
    x = torch.randn(3, 4, dtype=torch.complex64).to("npu")
    checked(lambda x: (x.conj() * 2, x.conj().imag + 1, x.conj().t() @ x), x)


@pytest.mark.usefixtures("kernels")
def test_zero_dimensions_and_empty_tensors() -> None:
    checked(lambda x, e, z: (z * x, e + 1, torch.cat([e, e]), z.expand(3)), random(3), random(0, 4), random())


@pytest.mark.usefixtures("kernels")
def test_zero_tensor() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    zero = graph.call_function(aten._efficientzerotensor.default, ([3],), {"device": torch.device("npu:0")})
    graph.output(graph.call_function(aten.add.Tensor, (x, zero)))
    gm = GraphModule({}, graph)
    assert differences("dump", dump_graph(gm, [random(3)], "dump")) == []


@pytest.mark.usefixtures("kernels")
def test_backward() -> None:
    torch.manual_seed(1)
    layers = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.LayerNorm(8), torch.nn.GELU()).to("npu")
    checked(lambda x: layers(x).square().mean(), random(4, 6, requires_grad=True))


def mixed(x: Tensor, h: Tensor) -> Any:
    y = (x * 2).cpu() + h
    return y, y.to("npu") @ x.t(), x.sum() + h.sum().to("npu")


@pytest.mark.usefixtures("kernels")
def test_graph_with_cpu_and_device() -> None:
    checked(mixed, random(3, 4), random(3, 4, device="cpu"))
    assert {tensor.device for tensor in fxtap.open("checked").tensors()} >= {"cpu", "npu:0"}


@pytest.mark.usefixtures("kernels")
def test_equal_addresses_on_two_devices() -> None:
    n = 1 << 20
    torch.ops.npu_test.align_devices()
    first, second = torch.full((n,), 1.0).to("npu:0"), torch.full((n,), 2.0).to("npu:1")
    assert first.data_ptr() == second.data_ptr()
    calls = torch.compile(lambda a, b: (a + 1, b + 1), backend="fxtap", options={"data_dump.type": "npy"})
    with fxtap.dump("two"):
        calls(first, second)
    inputs = fxtap.open("two").tensors(io="INPUT")
    assert {(tensor.device, float(tensor.numpy().flat[0])) for tensor in inputs if tensor.numpy().size == n} == {
        ("npu:0", 1.0),
        ("npu:1", 2.0),
    }


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("options", [{}, {"sync": True}, {"threads": 2}, {"filter": ["*_to_copy*"]}], ids=str)
def test_copy_to_the_host_that_does_not_block(options: dict[str, Any]) -> None:
    x = random(50, 50)
    result = dump(lambda x: (x @ x).to("cpu", non_blocking=True), [x], "dump", **options)
    (tensor,) = fxtap.open("dump").tensors("*_to_copy*", io="OUTPUT")
    assert tensor.numpy().tobytes() == on_host(x @ x).tobytes() == result.numpy().tobytes()


# ---- operators that write to their arguments ----


def in_place_graph() -> GraphModule:
    """Values are written again and again, by views too: what is dumped lies between two writes."""
    graph = Graph()
    x = graph.placeholder("x")
    y = graph.call_function(aten.mul.Tensor, (x, 2))
    row = graph.call_function(aten.select.int, (y, 0, 0))
    flat = graph.call_function(aten.view.default, (y, [16]))
    for _ in range(3):
        graph.call_function(aten.add_.Tensor, (y, 1))
        again = graph.call_function(aten.mul_.Tensor, (row, 3))
        graph.call_function(aten.relu_.default, (flat,))
        graph.call_function(aten.copy_.default, (row, again))
    graph.output((graph.call_function(aten.add.Tensor, (y, y)), row, flat))
    return GraphModule({}, graph)


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("options", [{}, {"sync": True}, {"threads": 2}, {"dedup": False}], ids=str)
def test_in_place_operators(options: dict[str, Any]) -> None:
    x = torch.arange(-8.0, 8.0).reshape(4, 4).to("npu")
    assert differences("dump", dump_graph(in_place_graph(), [x], "dump", **options)) == []


@pytest.mark.usefixtures("kernels")
def test_mutated_inputs() -> None:
    checked(lambda *ps: tuple(p.mul_(0.9).add_(1) for p in ps), *[random(4) for _ in range(3)])


def copy_graph() -> GraphModule:
    graph = Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    doubled = graph.call_function(aten.mul.Tensor, (x, 2))
    graph.output(graph.call_function(aten.copy_.default, (y, doubled)))
    return GraphModule({}, graph)


@pytest.mark.parametrize("is_wrong", [False, True])
def test_copied_bits_are_not_copied_again(is_wrong: bool) -> None:
    x, y = random(16, 16), random(16, 16)
    torch.ops.npu_test.make_copies_wrong(is_wrong)
    try:
        config = fxtap.CompilerConfig()
        config.debug.data_dump.type, config.debug.data_dump.path = "npy", "dump"
        npu.take_host_copies()
        result = fxtap.compiled.CompiledGraph(copy_graph(), "inference", config)([x, y])
        n_copies = sum(copy.n_bytes == 1024 for copy in npu.take_host_copies())
    finally:
        torch.ops.npu_test.make_copies_wrong(False)
    assert n_copies == (4 if is_wrong else 3)  # x, the old y, the product; the result only if it is not the product
    (tensor,) = fxtap.open("dump").tensors("copy_*", io="OUTPUT")
    assert tensor.numpy().tobytes() == on_host(x * 2 + (1 if is_wrong else 0)).tobytes() == on_host(result).tobytes()


# ---- how much is copied ----


def test_a_value_is_copied_once() -> None:
    x = random(10, 10)
    assert copies(lambda x: [x * i for i in range(10)], x)[400] == 11
    assert copies(lambda x: [x * i for i in range(10)], x, type="stats")[400] == 11
    assert copies(lambda x: [x * i for i in range(10)], x, dedup=False)[400] == 11


def test_a_transposed_weight_is_copied_once() -> None:
    assert copies(lambda x, w: x @ w.t(), random(4, 32), random(32, 32)) == {4096: 1, 512: 2}


def test_what_is_not_dumped_is_not_copied() -> None:
    x = random(10, 10)
    assert copies(lambda x: [x * i for i in range(10)], x, filter=["nothing"]) == {}
    assert copies(lambda x: (x * 2, x[:5] + 1), x, filter=["*add*"]) == {200: 2}


def test_writes_forget_only_what_they_overlap() -> None:
    parameters = [random(8, 8) for _ in range(8)]

    def step(*parameters: Tensor) -> None:
        for parameter in parameters:
            parameter.mul_(0.9)

    assert copies(step, *parameters) == {256: 16}


@pytest.mark.parametrize("view", [lambda b: b.expand(64, 64, 64), lambda b: b.view(-1).unfold(0, 32, 1)])
def test_elements_in_many_places_are_copied_once(view: Callable[[Tensor], Tensor]) -> None:
    x = random(1, 1, 64)
    counts = copies(lambda b: view(b).sum(), x)
    assert sum(n_bytes * n for n_bytes, n in counts.items()) < 2000
    checked(lambda b: view(b).sum(), x)


# ---- failures ----


def test_an_asynchronous_error_is_the_models() -> None:
    w, i = random(10, 4), torch.tensor([1, 50]).to("npu")
    with npu.queued(), pytest.raises((RuntimeError, IndexError), match="out of range") as caught:
        dump(lambda w, i: torch.nn.functional.embedding(i, w).sum(0), [w, i], "dump")
    notes = getattr(caught.value, "__notes__", [])
    assert any(note.startswith("in node ") for note in notes)
    (step,) = fxtap.open("dump").graphs[0].steps
    assert step.state == "failed"
    assert "out of range" in step.reason
    assert "\n" not in step.reason


def test_no_memory_for_the_copy(caplog: pytest.LogCaptureFixture) -> None:
    x = random(3, 4)
    wanted = on_host(x * 2 + 1)
    torch.ops.npu_test.fail_copy(1)
    with caplog.at_level(logging.WARNING):
        result = dump(lambda x: x * 2 + 1, [x], "dump")
    torch.ops.npu_test.fail_copy(-1)
    assert on_host(result).tobytes() == wanted.tobytes()
    skipped = [tensor.skipped for tensor in fxtap.open("dump").tensors() if tensor.skipped]
    assert skipped[0].endswith("npu: out of memory")
    assert "\n" not in skipped[0]


def test_forked_process() -> None:
    x = random(3)
    function = torch.compile(lambda x: x + 1, backend="fxtap", options={"data_dump.type": "npy"})
    with fxtap.dump("before"):
        function(x)
    child = os.fork()
    if child == 0:
        with fxtap.dump("child"):
            torch.compile(lambda x: x + 1, backend="fxtap")(torch.ones(3))
        os._exit(0 if len(fxtap.open("child").tensors()) > 0 else 1)
    assert os.waitpid(child, 0)[1] == 0
    with fxtap.dump("after"):
        function(x)
    assert len(fxtap.open("after").tensors()) == len(fxtap.open("before").tensors())


# ---- the rest of the product ----


def test_inductor_without_code_for_the_device(caplog: pytest.LogCaptureFixture) -> None:
    layer = torch.nn.Linear(4, 4).to("npu")
    model = torch.compile(layer, backend="fxtap", dynamic=False)
    with torch.no_grad(), caplog.at_level(logging.WARNING):
        for n in (2, 3):
            x = random(n, 4)
            assert on_host(model(x)).tobytes() == on_host(layer(x)).tobytes()
    assert sum("no code for the device" in record.message for record in caplog.records) == 1


@pytest.mark.parametrize("has_stub", [False, True])
def test_get_npu_backend(has_stub: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if has_stub:  # a module that code made for itself, without a spec
        monkeypatch.setitem(sys.modules, "torch_npu", types.ModuleType("torch_npu"))
    config = fxtap.CompilerConfig()
    config.debug.data_dump.type, config.debug.data_dump.path = "npy", "dump"
    x = random(3, 4)
    calls = record(views, [x])
    torch._dynamo.reset()
    torch.compile(views, backend=fxtap.get_npu_backend(compiler_config=config))(copied(x))
    assert differences("dump", calls) == []


def test_cpu_and_device_compared() -> None:
    x = torch.randn(4, 6)
    dump(views, [x], "cpu")
    dump(views, [x.to("npu")], "device")
    report = fxtap.compare("cpu", "device")
    assert report.verdict == "same"
    golden, target = fxtap.open("cpu").graphs, fxtap.open("device").graphs
    assert [graph.structural_key for graph in golden] == [graph.structural_key for graph in target]
    program = os.environ.get("FXTAP_PROGRAM", str(Path(sys.executable).with_name("fxtap")))
    assert {tensor.device for tensor in fxtap.open("device").tensors(io="OUTPUT")} == {"npu:0"}
    for command, word in (("ls", "f32[0,6]"), ("graph", "aten.add.Tensor")):
        done = subprocess.run([program, command, "device"], capture_output=True, text=True, check=True)
        assert word in done.stdout
