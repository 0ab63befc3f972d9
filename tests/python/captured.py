"""AOTAutograd's graphs with the arguments of their first calls, captured before they ran."""

import importlib.util
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import default_partition
from torch.fx import GraphModule
from torch.nn.attention import SDPBackend, sdpa_kernel

DATA = Path(__file__).parent.parent / "data" / "torchair"


def load_models() -> ModuleType:
    """Return the module of reference models."""
    name = "torchair_models"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, DATA / "models.py")
        assert spec is not None and spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def clone(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


@dataclass
class Captured:
    """A graph, and copies of the arguments of its first call."""

    gm: GraphModule
    kind: str
    arguments: list[Any] | None = None

    def copies(self) -> list[Any]:
        assert self.arguments is not None
        return [clone(value) for value in self.arguments]


def catch(function: Callable[..., Any], steps: Sequence[tuple[Any, ...]], **options: Any) -> list[Captured]:
    """Compile, call once with each of `steps`, and run backward if the result requires grad."""
    caught: list[Captured] = []

    def compiler(kind: str) -> Callable[..., Any]:
        def compile_one(gm: GraphModule, _inputs: Sequence[Any]) -> Any:
            entry = Captured(gm, kind)
            caught.append(entry)

            def run(*arguments: Any) -> Any:
                if entry.arguments is None:
                    entry.arguments = [clone(value) for value in arguments]
                return gm.forward(*arguments)

            return make_boxed_func(run)

        return compile_one

    backend = aot_autograd(
        fw_compiler=compiler("forward"),
        bw_compiler=compiler("backward"),
        inference_compiler=compiler("inference"),
        partition_fn=default_partition,
        decompositions={},
        keep_inference_input_mutations=True,
    )
    compiled = torch.compile(function, backend=backend, **options)
    for step in steps:
        result = compiled(*step)
        if isinstance(result, torch.Tensor) and result.requires_grad:
            result.sum().backward()
    return caught


@cache
def catch_model(name: str) -> list[Captured]:
    """Return the graphs of a reference model at its first step. They must not be modified."""
    case = load_models().get(name)
    kernels: AbstractContextManager[Any] = sdpa_kernel(SDPBackend.MATH) if "math" in name else nullcontext()
    with kernels, nullcontext() if case.train else torch.no_grad():
        for index, dim in case.mark_dynamic:
            torch._dynamo.mark_dynamic(case.steps[0][index], dim)
        return catch(case.module, case.steps[:1], dynamic=case.dynamic, fullgraph=case.fullgraph)
