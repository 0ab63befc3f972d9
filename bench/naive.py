"""The baseline: a dumper in Python that saves each operator's inputs and outputs with ``numpy.save``.

It works like TorchAir's eager-mode data dump: ``torch.fx.Interpreter`` runs the graph node by node; a node's inputs
are saved before it, its outputs after it. Names and folders are prepared once, tensors are saved without needless
copies, nothing is logged.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from functorch.compile import default_partition, make_boxed_func
from torch._dynamo.backends.common import aot_autograd


def _save(prefix: str, place: str, stamp: str, value: Any) -> None:
    if isinstance(value, torch.Tensor):
        tensor = value.detach().cpu()
        if tensor.dtype == torch.bfloat16:
            tensor = tensor.float()
        np.save(f"{prefix}.{place}.{stamp}.npy", tensor.numpy())
    elif isinstance(value, (list, tuple)) and any(isinstance(item, torch.Tensor) for item in value):
        for i, item in enumerate(value):
            _save(prefix, f"{place}.{i}", stamp, item)
    elif isinstance(value, (bool, int, float, list, tuple)):
        np.save(f"{prefix}.{place}.{stamp}.npy", np.array(value))


class NaiveInterpreter(torch.fx.Interpreter):
    """Runs a graph node by node and saves every operator's inputs and outputs under ``folder``/step."""

    def __init__(self, module: torch.fx.GraphModule, folder: Path) -> None:
        super().__init__(module)
        self.folder = folder
        self.step = -1
        self.prefix = ""

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Run one step in a new folder."""
        self.step += 1
        path = self.folder / str(self.step)
        path.mkdir(parents=True)
        self.prefix = str(path)
        return super().run(*args, **kwargs)

    def run_node(self, n: torch.fx.Node) -> Any:
        """Save inputs, run, save outputs for operators; other nodes only run."""
        if not isinstance(n.target, torch._ops.OpOverload):
            return super().run_node(n)
        stamp = datetime.now(UTC).strftime("%Y%m%d%H%M%S%f")
        prefix = f"{self.prefix}/{n.name}-{n.target}"
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        for i, value in enumerate(args):
            _save(prefix, f"INPUT.{i}", stamp, value)
        result = getattr(self, n.op)(n.target, args, kwargs)
        outputs = result if isinstance(result, (list, tuple)) else (result,)
        for i, value in enumerate(outputs):
            _save(prefix, f"OUTPUT.{i}", stamp, value)
        return result


def naive_backend(root: Path) -> Any:
    """Return a backend for ``torch.compile`` that dumps under ``root``/graph_{G}."""
    count = 0

    def compiler(module: torch.fx.GraphModule, _inputs: Any) -> Any:
        nonlocal count
        count += 1
        return make_boxed_func(NaiveInterpreter(module, root / f"graph_{count}").run)

    return aot_autograd(fw_compiler=compiler, partition_fn=default_partition, keep_inference_input_mutations=True)


def plain_backend(seen: list[torch.fx.GraphModule]) -> Any:
    """Return a backend that runs the graph's generated code, and stores the graph in ``seen``."""

    def compiler(module: torch.fx.GraphModule, _inputs: Any) -> Any:
        seen.append(module)
        return make_boxed_func(module.forward)

    return aot_autograd(fw_compiler=compiler, partition_fn=default_partition, keep_inference_input_mutations=True)
