"""What each operator of a graph took and gave, recorded by an interpreter, against a dump of the same function."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import default_partition
from torch.fx import GraphModule, Interpreter, Node

import fxtap
from fxtap.compiled import CompiledGraph

PLACE = re.compile(r"(.*?)-.*\.(INPUT|OUTPUT|INOUT)\.(.*)$")


class Value(NamedTuple):
    array: np.ndarray[Any, Any]
    device: str
    dtype: str
    strides: tuple[int, ...]


Values = dict[tuple[str, str, str], Value]


def on_host(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """Return a tensor's values as `fxtap.open` reads them: types that numpy lacks as float32."""
    torch.npu.synchronize()
    host = tensor.detach().cpu().resolve_conj().resolve_neg().clone()
    if host.dtype == torch.bfloat16 or "float8" in str(host.dtype):
        host = host.float()
    return host.numpy()


class Recorder(Interpreter):
    def __init__(self, gm: GraphModule, values: Values) -> None:
        super().__init__(gm)
        self.values = values

    def run_node(self, n: Node) -> Any:
        if n.op != "call_function" or n.target is operator.getitem:
            return super().run_node(n)
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        inputs = {**{str(i): value for i, value in enumerate(args)}, **kwargs}
        self.put(n.name, "INPUT", inputs)
        result = super().run_node(n)
        outputs = result if isinstance(result, (list, tuple)) else [result]
        self.put(n.name, "OUTPUT", {str(i): value for i, value in enumerate(outputs)})
        self.put(n.name, "INOUT", inputs)
        return result

    def put(self, node: str, io: str, values: dict[str, Any]) -> None:
        for place, value in values.items():
            if isinstance(value, torch.Tensor):
                dtype = str(value.dtype).removeprefix("torch.")
                self.values[node, io, place] = Value(on_host(value), str(value.device), dtype, value.stride())
            elif isinstance(value, (list, tuple)):
                self.put(node, io, {f"{place}.{i}": item for i, item in enumerate(value)})


def record(function: Callable[..., Any], inputs: list[Any]) -> list[Values]:
    """Run a function compiled by AOTAutograd; return the values of each call of a graph."""
    calls: list[Values] = []

    def compiler(gm: GraphModule, _: Any) -> Any:
        def run(*args: Any) -> Any:
            calls.append({})
            return Recorder(gm, calls[-1]).run(*args)

        return make_boxed_func(run)

    torch._dynamo.reset()
    backend = aot_autograd(
        fw_compiler=compiler, bw_compiler=compiler, inference_compiler=compiler, partition_fn=default_partition,
        keep_inference_input_mutations=True,
    )  # fmt: skip
    run(function, inputs, backend=backend)
    return calls


def run(function: Callable[..., Any], inputs: list[Any], **options: Any) -> Any:
    """Run a compiled function on copies of its inputs, and backward if its result needs it."""
    torch.manual_seed(0)
    result = torch.compile(function, **options)(*[copied(value) for value in inputs])
    if isinstance(result, torch.Tensor) and result.requires_grad:
        result.sum().backward()
    return result


def copied(value: Any) -> Any:
    """Return a copy of a tensor with its strides and views of conjugate and negative kept as they are."""
    if not isinstance(value, torch.Tensor):
        return value
    size = 0 if value.numel() == 0 else sum((n - 1) * s for n, s in zip(value.shape, value.stride(), strict=True)) + 1
    flat = value.detach().as_strided([size], [1]).clone()
    return flat.as_strided(value.shape, value.stride()).requires_grad_(value.requires_grad)


def dump(function: Callable[..., Any], inputs: list[Any], path: str, **options: Any) -> Any:
    torch._dynamo.reset()
    named = {"type": "npy", "path": path, **options}
    return run(function, inputs, backend="fxtap", options={f"data_dump.{k}": v for k, v in named.items()})


def differences(path: str, calls: list[Values]) -> list[str]:
    """Return what differs between a dump and recorded calls, one line each; every tensor must be in both."""
    graphs = fxtap.open(path).graphs
    found = [] if len(graphs) == len(calls) else [f"{len(graphs)} graphs, not {len(calls)}"]
    for graph, values in zip(graphs, calls, strict=False):
        missing = {key for key in values if key[1] != "INOUT"}
        for tensor in graph.tensors():
            match = PLACE.match(tensor.name)
            assert match is not None, tensor.name
            wanted = values.get(match.groups())  # type: ignore[call-overload]
            missing.discard(match.groups())  # type: ignore[arg-type]
            if wanted is not None:  # None: a number
                found += [f"{tensor.name}: {text}" for text in _differences(tensor, wanted)]
        found += [f"missing {key}" for key in sorted(missing)]
    return found


def _differences(tensor: Any, wanted: Value) -> list[str]:
    if tensor.skipped:
        return [f"skipped: {tensor.skipped}"]
    array = tensor.numpy()
    found = []
    if (tensor.device, str(tensor.dtype)) != (wanted.device, wanted.dtype):
        found.append(f"{tensor.dtype} on {tensor.device}, not {wanted.dtype} on {wanted.device}")
    if tuple(tensor.strides) != wanted.strides:
        found.append(f"strides {tensor.strides}, not {wanted.strides}")
    if array.shape != wanted.array.shape or array.tobytes() != wanted.array.tobytes():
        found.append(f"values {array.ravel()[:4]}, not {wanted.array.ravel()[:4]}")
    return found


def dump_graph(gm: GraphModule, inputs: list[Any], path: str, **options: Any) -> list[Values]:
    """Dump a graph as it is, in-place operators too; return the values that an interpreter records."""
    values: Values = {}
    Recorder(gm, values).run(*[copied(value) for value in inputs])
    config = fxtap.CompilerConfig()
    for name, value in {"type": "npy", "path": path, **options}.items():
        setattr(config.debug.data_dump, name, value)
    CompiledGraph(gm, "inference", config)([copied(value) for value in inputs])
    return [values]
