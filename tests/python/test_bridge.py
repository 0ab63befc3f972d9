"""Tensors of every kind as saved: values, names, index entries; with the exchange table and with the fallback."""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch._subclasses import FakeTensorMode
from torch.fx import Graph, Node
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from fxtap import _core
from graphs import Dumped, aten, build, chain


@pytest.fixture(params=["exchange", "fallback"], autouse=True)
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    before = _core.force_dlpack_fallback(request.param == "fallback")
    yield request.param
    _core.force_dlpack_fallback(before)


def keep(x: Any) -> Any:
    """An operator that returns its argument."""
    return None


def dump_one(value: Any, path: Path, **options: Any) -> Dumped:
    dumped = Dumped(build(lambda g, x: g.call_function(keep, (x,)), "x"), path, options)
    dumped(value)
    dumped.dump.close()
    return dumped


def saved(value: Any, path: Path) -> np.ndarray[Any, Any]:
    arrays = dump_one(value, path).arrays()
    assert list(arrays) == [f"keep-{__name__}.keep.INPUT.0"]
    return arrays[f"keep-{__name__}.keep.INPUT.0"]


def skipped(value: Any, path: Path) -> str:
    dumped = dump_one(value, path)
    assert not dumped.files()
    return dumped.skipped()["keep.INPUT.0"]


def original(dumped: Dumped) -> tuple[Any, ...]:
    return dumped.index("SELECT dtype, layout, device, strides, shape FROM value")[0]


# ---- strided tensors ----

STRIDED: dict[str, Callable[[], Tensor]] = {
    "contiguous": lambda: torch.randn(3, 4),
    "transposed": lambda: torch.randn(3, 4).t(),
    "every second column": lambda: torch.randn(3, 8)[:, ::2],
    "channels last": lambda: torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
    "expanded": lambda: torch.ones(1).expand(3, 2),
    "offset": lambda: torch.arange(10, dtype=torch.uint8)[3:],
    "0-d": lambda: torch.tensor(3.5),
    "empty": lambda: torch.empty(0, 3),
    "empty in the middle": lambda: torch.empty(2, 0, 3).transpose(0, 2),
    "one element": lambda: torch.ones(1, 1, 1),
    "many dimensions": lambda: torch.randn([1, 2] * 6).permute(*reversed(range(12))),
    "overlapping": lambda: torch.arange(6.0).as_strided((3, 3), (1, 1)),
    "permuted": lambda: torch.randn(2, 3, 4).permute(1, 2, 0),
    "requires grad": lambda: torch.randn(3, requires_grad=True) * 2,
    "parameter": lambda: torch.nn.Parameter(torch.randn(3)),
    "buffer": lambda: torch.nn.Buffer(torch.randn(3)),
    "inference": lambda: torch.inference_mode()(lambda: torch.randn(3))(),
}


@pytest.mark.parametrize("name", STRIDED)
def test_strided(name: str, tmp_path: Path) -> None:
    tensor = STRIDED[name]()
    expected = tensor.detach().tolist()
    array = saved(tensor, tmp_path)
    assert array.tolist() == expected and array.shape == tensor.shape
    assert array.dtype == tensor.detach().numpy().dtype


def test_column_major_is_saved_as_it_lies(tmp_path: Path) -> None:
    array = saved(torch.randn(3, 4).t(), tmp_path)
    assert array.flags.f_contiguous and not array.flags.c_contiguous


def test_strides_are_in_the_index(tmp_path: Path) -> None:
    assert original(dump_one(torch.randn(3, 8)[:, ::2], tmp_path)) == ("float32", "torch.strided", "cpu", "8,2", "3,4")


# ---- dtypes ----

SAME = [
    torch.bool,
    torch.uint8,
    torch.uint16,
    torch.uint32,
    torch.uint64,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.float32,
    torch.float64,
    torch.complex64,
    torch.complex128,
]


@pytest.mark.parametrize("dtype", SAME, ids=str)
def test_dtypes_that_numpy_has(dtype: torch.dtype, tmp_path: Path) -> None:
    tensor = torch.tensor([0, 1, 1, 0, 1]).to(dtype)
    dumped = dump_one(tensor, tmp_path)
    (array,) = dumped.arrays().values()
    assert array.dtype == tensor.numpy().dtype and array.tolist() == tensor.tolist()
    assert original(dumped)[0] == str(dtype).removeprefix("torch.")


@pytest.mark.parametrize(
    "dtype",
    [
        torch.bfloat16,
        torch.float8_e4m3fn,
        torch.float8_e5m2,
        torch.float8_e4m3fnuz,
        torch.float8_e5m2fnuz,
        torch.float8_e8m0fnu,
    ],
    ids=str,
)
def test_dtypes_that_become_float32(dtype: torch.dtype, tmp_path: Path) -> None:
    bits = torch.arange(256, dtype=torch.uint8)
    tensor = torch.cat([bits, bits]).view(dtype) if dtype is torch.bfloat16 else bits.view(dtype)
    dumped = dump_one(tensor, tmp_path)
    (array,) = dumped.arrays().values()
    assert array.dtype == np.float32
    assert np.array_equal(array, tensor.float().numpy(), equal_nan=True)
    assert original(dumped)[0] == str(dtype).removeprefix("torch.")


def test_special_values(tmp_path: Path) -> None:
    array = saved(torch.tensor([1, float("nan"), -0.0, 3.3895e38], dtype=torch.bfloat16), tmp_path / "bf16")
    assert array[0] == 1 and np.isnan(array[1]) and array[2] == 0 and np.signbit(array[2]) and array[3] > 3.38e38
    array = saved(torch.tensor([448.0, 0.5]).to(torch.float8_e4m3fn), tmp_path / "f8")
    assert array.tolist() == [448, 0.5] and array.dtype == np.float32


def test_complex32(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        array = saved(torch.tensor([1 + 2j, -0.5j], dtype=torch.complex64).to(torch.complex32), tmp_path)
    assert array.dtype == np.complex64 and array.tolist() == [1 + 2j, -0.5j]


def test_float4(tmp_path: Path) -> None:
    tensor = torch.tensor([0x10, 0x32, 0xF7], dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
    dumped = dump_one(tensor, tmp_path)
    (array,) = dumped.arrays().values()
    assert array.tolist() == [0, 0.5, 1, 1.5, 6, -6]
    assert original(dumped)[0] == "float4_e2m1fn_x2"


@pytest.mark.parametrize(("dtype", "item"), [(torch.bits8, 1), (torch.bits16, 2), (torch.bits1x8, 1)])
def test_bits(dtype: torch.dtype, item: int, tmp_path: Path) -> None:
    plain = torch.tensor([1, 2, 3, 4], dtype=torch.uint8)
    array = saved(plain.view(dtype), tmp_path)
    assert array.dtype.itemsize == item and array.tobytes() == bytes([1, 2, 3, 4])


# ---- bits, layouts, wrappers ----


def test_conj_and_neg(tmp_path: Path) -> None:
    c = torch.tensor([1 + 2j]).conj()
    assert saved(c, tmp_path / "conj").tolist() == [1 - 2j]
    assert saved(c.imag, tmp_path / "neg").tolist() == [-2]
    assert saved(torch._neg_view(torch.tensor([1 + 2j])).conj(), tmp_path / "both").tolist() == [-1 + 2j]
    for dtype in (torch.int8, torch.int32, torch.int64):
        assert saved(torch._neg_view(torch.tensor([1, -2], dtype=dtype)), tmp_path / str(dtype)).tolist() == [-1, 2]
    assert saved(torch.randn(3, 2, dtype=torch.complex64).conj().t()[1:], tmp_path / "view").shape == (1, 3)


@pytest.mark.filterwarnings("ignore")
def test_layouts(tmp_path: Path) -> None:
    eye = torch.eye(2)
    for name, tensor in {
        "sparse_coo": eye.to_sparse(),
        "sparse_csr": eye.to_sparse_csr(),
        "sparse_csc": eye.to_sparse_csc(),
        "sparse_bsr": eye.to_sparse_bsr((1, 2)),
        "sparse_bsc": eye.to_sparse_bsc((2, 1)),
        "_mkldnn": eye.to_mkldnn(),
    }.items():
        dumped = dump_one(tensor, tmp_path / name)
        (array,) = dumped.arrays().values()
        assert array.tolist() == eye.tolist()
        assert original(dumped)[:2] == ("float32", f"torch.{name}")


SPARSE: dict[str, Callable[[], Tensor]] = {
    "duplicates": lambda: torch.sparse_coo_tensor([[0, 0, 2]], [1.0, 2.0, 3.0], (4,)),
    "none stored": lambda: torch.sparse_coo_tensor(torch.empty(1, 0, dtype=torch.int64), torch.empty(0), (3,)),
    "no elements": lambda: torch.empty(0, 3).to_sparse(),
    "hybrid": lambda: torch.sparse_coo_tensor([[0, 2]], torch.randn(2, 3), (4, 3)),
    "three dimensions": lambda: torch.randn(2, 3, 4).relu().to_sparse(),
    "transposed": lambda: torch.randn(3, 4).relu().to_sparse().t(),
    "batched": lambda: torch.randn(2, 3, 4).to_sparse_csr(),
    "conj": lambda: torch.randn(3, 3, dtype=torch.complex64).to_sparse().conj(),
    "requires grad": lambda: torch.randn(3, 3).to_sparse().requires_grad_(),
    **{
        str(dtype): partial(lambda dtype: torch.eye(3).to(dtype).to_sparse(), dtype)
        for dtype in (
            torch.bool,
            torch.int8,
            torch.int64,
            torch.float16,
            torch.bfloat16,
            torch.float64,
            torch.complex128,
        )
    },
    "csr of bfloat16": lambda: torch.eye(3).bfloat16().to_sparse_csr(),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SPARSE)
def test_sparse_is_saved_dense(name: str, tmp_path: Path) -> None:
    tensor = SPARSE[name]()
    dumped = dump_one(tensor, tmp_path)
    (array,) = dumped.arrays().values()
    dense = tensor.detach().to_dense().resolve_conj()
    expected = (dense.float() if tensor.dtype is torch.bfloat16 else dense).numpy()
    assert array.dtype == expected.dtype and array.shape == expected.shape and np.array_equal(array, expected)
    assert original(dumped)[:2] == (str(tensor.dtype).removeprefix("torch."), str(tensor.layout))


@pytest.mark.parametrize("extent", [30, 31])
def test_sparse_that_would_fill_all_memory_is_skipped(extent: int, tmp_path: Path) -> None:
    """The dense tensor would have 2^62 bytes, or an uncountable size."""
    huge = torch.sparse_coo_tensor([[0], [0]], [1.0], (1 << 30, 1 << extent))
    assert skipped(huge, tmp_path).startswith("cannot be read: RuntimeError: ")


@pytest.mark.filterwarnings("ignore")
def test_quantised(tmp_path: Path) -> None:
    x = torch.tensor([0.5, 1.0, -1.5])
    per_tensor = torch.quantize_per_tensor(x, 0.5, 0, torch.qint8)
    dumped = dump_one(per_tensor, tmp_path / "tensor")
    assert next(iter(dumped.arrays().values())).tolist() == x.tolist()
    assert original(dumped)[0] == "qint8"
    per_channel = torch.quantize_per_channel(x[None], torch.tensor([0.5]), torch.tensor([0]), 0, torch.quint8)
    assert saved(per_channel, tmp_path / "channel").tolist() == per_channel.dequantize().tolist()


@pytest.mark.filterwarnings("ignore")
def test_what_cannot_be_saved_is_recorded(tmp_path: Path) -> None:
    with FakeTensorMode():
        fake = torch.ones(3)
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    cases = {"fake tensor": fake, "meta tensor": torch.ones(3, device="meta"), "nested tensor": nested}
    for reason, tensor in cases.items():
        assert skipped(tensor, tmp_path / reason) == reason
    jagged = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
    assert skipped(jagged, tmp_path / "jagged") == "tensor subclass NestedTensor"
    emptied = torch.ones(3)
    emptied.untyped_storage().resize_(0)
    reason = skipped(emptied, tmp_path / "emptied")
    assert reason == "its memory cannot be read"
    functional = torch._to_functional_tensor(torch.ones(2))
    reason = skipped(functional, tmp_path / "functional")
    assert reason == "its memory cannot be read"


def test_zero_tensors_of_forward_mode(tmp_path: Path) -> None:
    assert saved(torch._efficientzerotensor(3), tmp_path).tolist() == [0, 0, 0]


def test_subclasses(tmp_path: Path) -> None:
    class Plain(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            raise AssertionError("seen")

    class Wrapper(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            raise AssertionError("seen")

    assert saved(torch.randn(3).as_subclass(Plain), tmp_path / "plain").shape == (3,)
    assert "Wrapper" in skipped(torch.ones(3).as_subclass(Wrapper), tmp_path / "wrapper")


def test_vmap_and_grad_wrappers(tmp_path: Path) -> None:
    dumped = Dumped(build(lambda g, x: g.call_function(keep, (x,)), "x"), tmp_path)

    def inside(x: Tensor) -> Tensor:
        dumped(x)
        return x.sum()

    torch.func.vmap(inside)(torch.ones(2, 3))
    torch.func.grad(inside)(torch.ones(3))
    dumped.dump.close()
    assert dumped.steps() == ["0", "1"]


# ---- modes and hooks do not see the dump ----


def test_no_mode_sees_the_bridge(tmp_path: Path) -> None:
    seen: list[Any] = []

    class Function(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func)
            return func(*args, **(kwargs or {}))

    class Dispatch(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func)
            return func(*args, **(kwargs or {}))

    tensors = [torch.ones(2), torch.tensor([1j]).conj(), torch.eye(2).to_sparse(), torch.ones(2, requires_grad=True)]
    for i, tensor in enumerate(tensors):
        dumped = Dumped(build(lambda g, x: g.call_function(keep, (x,)), "x"), tmp_path / str(i))
        with Function(), Dispatch():
            dumped(tensor)
        dumped.dump.close()
        assert len(dumped.files()) == 1
    assert seen == []


def test_gradients_flow_as_without(tmp_path: Path) -> None:
    gm = chain(aten.sin.default, aten.exp.default)
    x = torch.randn(4, requires_grad=True)
    (expected,) = torch.autograd.grad(gm.forward(x).sum(), x)
    (gradient,) = torch.autograd.grad(Dumped(gm, tmp_path)(x).sum(), x)
    assert torch.equal(gradient, expected)


def test_tensors_are_given_back(tmp_path: Path) -> None:
    tensors = [torch.ones(5), torch.ones(5).t(), torch.tensor([1j]).conj(), torch.eye(2).to_sparse()]
    dumped = Dumped(build(lambda g, x: g.call_function(keep, (x,)), "x"), tmp_path)
    before = [sys.getrefcount(tensor) for tensor in tensors]
    for tensor in tensors * 3:
        dumped(tensor)
    del tensor
    gc.collect()
    assert [sys.getrefcount(tensor) for tensor in tensors] == before


# ---- numbers, lists, other objects ----


def test_numbers_lists_and_text(tmp_path: Path) -> None:
    def make(graph: Graph, a: Node, b: Node) -> Node:
        return graph.call_function(
            keep_all,
            (
                7,
                True,
                1.5,
                2 + 1j,
                "täxt",
                [1, 2],
                [True, False],
                [1, 2.5],
                [],
                [1, 2j],
                2**63,
                [2**63, 1],
                a,
                b,
                ["a", "b"],
                [[1, 2], [3]],
            ),
            {"key": 3, "other": [0.5], "dtype": torch.float32},
        )

    dumped = Dumped(build(make, "a", "b"), tmp_path)
    dumped(5, [3, 4])
    dumped.dump.close()
    stem = f"keep_all-{__name__}.keep_all.INPUT."
    arrays = {name.removeprefix(stem): array for name, array in dumped.arrays().items() if ".INPUT." in name}
    expected: dict[str, Any] = {
        "0": np.int64(7),
        "1": np.bool_(True),
        "2": np.float64(1.5),
        "3": np.complex128(2 + 1j),
        "4": np.array("täxt"),
        "5": np.array([1, 2]),
        "6": np.array([True, False]),
        "7": np.array([1, 2.5]),
        "8": np.zeros(0),
        "9": np.array([1, 2j]),
        "10": np.uint64(2**63),
        "11": np.array([2**63, 1], np.uint64),
        "12": np.int64(5),
        "13": np.array([3, 4]),
        "14.0": np.array("a"),
        "14.1": np.array("b"),
        "15.0": np.array([1, 2]),
        "15.1": np.array([3]),
        "key": np.int64(3),
        "other": np.array([0.5]),
    }
    assert list(arrays) == sorted(expected)
    for name, array in expected.items():
        assert arrays[name].dtype == array.dtype and arrays[name].shape == array.shape, name
        assert np.array_equal(arrays[name], array), name
    assert dumped.skipped()["keep_all.INPUT.dtype"] == "torch.float32"


def keep_all(*values: Any, **named: Any) -> int:
    return len(values)


def test_what_has_no_array_is_recorded(tmp_path: Path) -> None:
    generator = torch.Generator()
    values = [
        None,
        torch.int64,
        torch.device("cpu"),
        torch.strided,
        torch.channels_last,
        generator,
        2**70,
        -(2**70),
        object(),
        {"a": 1},
        [2**63, -1],
        [None, None],
    ]
    expected = [
        "None",
        "torch.int64",
        "cpu",
        "torch.strided",
        "torch.channels_last",
        "object of type Generator",
        str(2**70),
        str(-(2**70)),
        "object of type object",
        "object of type dict",
    ]
    names = [f"v{i}" for i in range(len(values))]
    dumped = Dumped(build(lambda g, *nodes: g.call_function(keep_all, nodes), *names), tmp_path)
    dumped(*values)
    dumped.dump.close()
    found = dumped.skipped()
    assert [found[f"keep_all.INPUT.{i}"] for i in range(len(expected))] == expected
    assert found["keep_all.INPUT.11.0"] == "None"


def test_lists_of_tensors(tmp_path: Path) -> None:
    x, index = torch.randn(3, 4), torch.tensor([0, 2])
    gm = build(lambda g, x, i: g.call_function(aten.index.Tensor, (x, [None, i])), "x", "i")
    dumped = Dumped(gm, tmp_path)
    dumped(x, index)
    dumped.dump.close()
    stem = "index_tensor-aten.index.Tensor"
    assert set(dumped.files()) == {f"{stem}.INPUT.0", f"{stem}.INPUT.1.1", f"{stem}.OUTPUT.0"}
    assert dumped.array(f"{stem}.INPUT.1.1").tolist() == [0, 2]
    assert dumped.skipped() == {"index_tensor.INPUT.1.0": "None"}
    assert dumped.index("SELECT DISTINCT arg_name FROM slot WHERE position = '1.1'") == [("indices",)]


def test_keyword_tensors_and_out(tmp_path: Path) -> None:
    def make(graph: Graph, a: Node, v: Node, s: Node, z: Node) -> Any:
        found = graph.call_function(aten.searchsorted.Tensor, (a, v), {"sorter": s})
        return (found, graph.call_function(aten.add.out, (a, a), {"out": z}))

    dumped = Dumped(build(make, "a", "v", "s", "z"), tmp_path)
    a, z = torch.tensor([3.0, 1.0, 2.0]), torch.full((3,), 7.0)
    dumped(a, torch.tensor([2.5]), torch.tensor([1, 2, 0]), z)
    dumped.dump.close()
    arrays = dumped.arrays()
    assert arrays["searchsorted_tensor-aten.searchsorted.Tensor.INPUT.sorter"].tolist() == [1, 2, 0]
    assert arrays["add_out-aten.add.out.INPUT.out"].tolist() == [7, 7, 7]
    assert arrays["add_out-aten.add.out.OUTPUT.0"].tolist() == [6, 2, 4] and z.tolist() == [6, 2, 4]
    assert not [name for name in arrays if "INOUT" in name]


def test_defaults_and_none(tmp_path: Path) -> None:
    def make(graph: Graph, x: Node, i: Node, s: Node) -> Any:
        return (
            graph.call_function(aten.clamp.default, (x, None, 1.0)),
            graph.call_function(aten.scatter_reduce.two, (x, 0, i, s, "sum")),
        )

    dumped = Dumped(build(make, "x", "i", "s"), tmp_path)
    dumped(torch.zeros(3), torch.tensor([0, 1]), torch.ones(2))
    dumped.dump.close()
    arrays = dumped.arrays()
    assert [name.partition(".INPUT.")[2] for name in arrays if "clamp" in name and "INPUT" in name] == ["0", "2"]
    assert arrays["scatter_reduce_two-aten.scatter_reduce.two.INPUT.4"].tolist() == "sum"
    assert dumped.skipped() == {"clamp_default.INPUT.1": "None"}


def test_several_and_nested_outputs(tmp_path: Path) -> None:
    def several(x: Tensor) -> Any:
        return (x, [x + 1, 3], None, (2.5, x.shape))

    dumped = Dumped(build(lambda g, x: g.call_function(several, (x,)), "x"), tmp_path)
    dumped(torch.ones(2))
    dumped.dump.close()
    names = [name.rpartition("OUTPUT.")[2] for name in dumped.files() if "OUTPUT" in name]
    assert names == ["0", "1.0", "1.1", "3.0", "3.1"]
    assert dumped.skipped() == {"several.OUTPUT.2": "None"}
