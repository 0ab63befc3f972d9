"""Differential test over torch's database of operators and samples: saved values are those that torch computed.

Each sample is traced to a graph, run node by node here (the golden values), and dumped twice, asynchronously and
synchronously. Every saved array must equal the golden value bit for bit, after the documented conversions.
"""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.fx import GraphModule, Interpreter, Node
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_flatten, tree_unflatten

from dumps import STAMP
from fxtap import _core
from fxtap.selection import skip_reasons
from fxtap.session import next_graph_id

DTYPES = [torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64]

Saved = dict[str, np.ndarray[Any, Any]]


def as_saved(value: Any) -> np.ndarray[Any, Any] | None:
    """Apply the documented conversion of a value to a NumPy array; None if it has no file."""
    if isinstance(value, torch.Tensor):
        value = value.detach().resolve_conj().resolve_neg()
        if value.layout is not torch.strided:
            value = value.to_dense()
        if value.is_quantized:
            value = value.dequantize()
        if value.dtype in (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2):
            value = value.float()
        if value.dtype is torch.complex32:
            value = value.to(torch.complex64)
        return np.array(value.numpy())
    if isinstance(value, (bool, int, float, complex, str)):
        return np.array(value)
    if isinstance(value, (list, tuple)) and all(isinstance(item, (bool, int, float, complex)) for item in value):
        return np.array(value)
    return None


def places(value: Any, position: str) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """Return position and saved form of all files of one argument or result."""
    if isinstance(value, (list, tuple)) and any(isinstance(item, torch.Tensor) for item in value):
        for j, item in enumerate(value):
            yield from places(item, f"{position}.{j}")
        return
    saved = as_saved(value)
    if saved is not None:
        yield position, saved


class Golden(Interpreter):
    """Runs a graph node by node and records arguments and result of each node."""

    def __init__(self, gm: GraphModule) -> None:
        super().__init__(gm)
        self.saved: Saved = {}

    def run_node(self, n: Node) -> Any:
        if n.op != "call_function" or not isinstance(n.target, torch._ops.OpOverload) or n.target.namespace != "aten":
            return super().run_node(n)
        stem = f"{n.name}-{n.target}"
        arguments, keywords = self.fetch_args_kwargs_from_env(n)
        for position, value in [*enumerate(arguments), *keywords.items()]:
            for place, array in places(value, str(position)):
                self.saved[f"{stem}.INPUT.{place}"] = array
        result = super().run_node(n)
        for position, value in enumerate(result if isinstance(result, (list, tuple)) else [result]):
            for place, array in places(value, str(position)):
                self.saved[f"{stem}.OUTPUT.{place}"] = array
        return result


def traced(op: Any, sample: Any) -> tuple[GraphModule, list[torch.Tensor]]:
    """Return the graph of one sample, and its tensors in the order of the placeholders."""
    leaves, spec = tree_flatten((sample.input, sample.args, sample.kwargs))
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]

    def call(*values: torch.Tensor) -> Any:
        given = iter(values)
        filled = [next(given) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        first, args, kwargs = tree_unflatten(filled, spec)
        return op(first, *args, **kwargs)

    torch.manual_seed(1)
    return make_fx(call)(*tensors), tensors


def clones(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    return [tensor.detach().clone() for tensor in tensors]


def dumped(gm: GraphModule, tensors: list[torch.Tensor], dump: _core.Dump) -> Path:
    """Run a graph once with a dump; return the folder of its step."""
    record = _core.record(gm)
    number = next_graph_id()
    program = _core.Program(gm, record, dump, number, skip_reasons(gm, record))
    torch.manual_seed(1)
    program(clones(tensors))
    return Path(dump.rank_path) / f"graph_{number}" / "0"


def read(folder: Path) -> Saved:
    return {STAMP.sub("", path.name): np.load(path, allow_pickle=False) for path in folder.glob("*.npy")}


def differences(saved: Saved, golden: Saved) -> list[str]:
    """Return missing, unexpected and different files; INOUT files are checked elsewhere."""
    saved = {name: array for name, array in saved.items() if ".INOUT." not in name}
    found = [f"missing {name}" for name in sorted(golden.keys() - saved.keys())]
    found += [f"unexpected {name}" for name in sorted(saved.keys() - golden.keys())]
    for name in sorted(saved.keys() & golden.keys()):
        mine, other = saved[name], golden[name]
        if mine.dtype != other.dtype or mine.shape != other.shape:
            found.append(f"{name}: {mine.dtype}{mine.shape} for {other.dtype}{other.shape}")
        elif mine.tobytes("C") != other.tobytes("C"):
            found.append(f"{name}: values differ")
    return found


def inouts(saved: Saved) -> Saved:
    """Return the mutated values, under the names that `differences` compares."""
    return {name.replace(".INOUT.", ".after."): array for name, array in saved.items() if ".INOUT." in name}


def samples(op: Any, dtype: torch.dtype, count: int) -> list[Any]:
    found = []
    for sample in op.sample_inputs("cpu", dtype, requires_grad=False):
        found.append(sample)
        if len(found) == count:
            break
    return found


def check_operators(dtype: torch.dtype, root: Path, count: int) -> tuple[set[str], list[str], list[str]]:
    """Return the checked operators, those that could not be traced or run here, and the differences."""
    checked: set[str] = set()
    untraceable: list[str] = []
    wrong: list[str] = []
    background = _core.Dump(str(root / "async"))
    foreground = _core.Dump(str(root / "sync"), sync=True)
    for op in op_db:
        if dtype not in op.supported_dtypes("cpu"):
            continue
        try:
            graphs = [traced(op, sample) for sample in samples(op, dtype, count)]
            golden = []
            for gm, tensors in graphs:
                run = Golden(gm)
                torch.manual_seed(1)
                run.run(*clones(tensors))
                golden.append(run.saved)
        except Exception as error:
            untraceable.append(f"{op.name}: {type(error).__name__}")
            continue
        for (gm, tensors), expected in zip(graphs, golden, strict=True):
            first, second = read(dumped(gm, tensors, background)), read(dumped(gm, tensors, foreground))
            wrong += [f"{op.name}: {text}" for text in differences(first, expected)]
            wrong += [f"{op.name}: sync: {text}" for text in differences(second, expected)]
            wrong += [f"{op.name}: sync INOUT: {text}" for text in differences(inouts(second), inouts(first))]
            checked.add(op.name)
    background.close()
    foreground.close()
    return checked, untraceable, wrong


WANTED = {torch.float32: 300, torch.bfloat16: 250, torch.int64: 200, torch.bool: 150, torch.complex64: 150}


@pytest.fixture(autouse=True)
def filled_memory() -> Iterator[None]:
    """Let torch fill uninitialised memory, so that its contents are deterministic."""
    torch.use_deterministic_algorithms(True, warn_only=True)
    yield
    torch.use_deterministic_algorithms(False)


def check(dtype: torch.dtype, root: Path, count: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        checked, untraceable, wrong = check_operators(dtype, root, count)
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong[:40])
    assert len(checked) >= WANTED[dtype], untraceable


@pytest.mark.parametrize(
    "dtype",
    [d if d in (torch.float32, torch.bfloat16) else pytest.param(d, marks=pytest.mark.long) for d in DTYPES],
    ids=str,
)
def test_saved_is_what_torch_computed(dtype: torch.dtype, tmp_path: Path) -> None:
    check(dtype, tmp_path, 1)


@pytest.mark.long
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_more_samples(dtype: torch.dtype, tmp_path: Path) -> None:
    check(dtype, tmp_path, 8)
