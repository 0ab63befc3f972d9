"""Measure the cost of graphs: recording and printing one of 5,000 nodes, compared with compiling it; and fxtap graph.

python bench/graph.py [--nodes N] [--program FILE] [--json FILE]

Compiling is torch.compile up to the graph: Dynamo and AOTAutograd, with a backend that does nothing.
"""

from __future__ import annotations

import argparse
import json
import logging
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd
from torch.fx import GraphModule

import fxtap
from fxtap import _core

FORMATS = ("py", "txt", "pbtxt", "fx", "json", "dot", "html")


class Layer(torch.nn.Module):
    """Ten operators."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(8, 8)
        self.norm = torch.nn.LayerNorm(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.nn.functional.gelu(self.fc(self.norm(x)))
        return (y * 2 + x).relu().sin() - x.cos()


def make_model(n_nodes: int) -> torch.nn.Module:
    """Return a model whose graph has about this many nodes: a layer has 10 operators and 4 weights."""
    return torch.nn.Sequential(*[Layer() for _ in range(max(1, n_nodes // 14))]).eval()


def catch_graph(model: torch.nn.Module, x: torch.Tensor) -> tuple[GraphModule, float]:
    """Return the ATen graph of a model and the seconds until torch.compile had produced it."""
    caught: list[GraphModule] = []

    def compiler(gm: GraphModule, _inputs: Sequence[Any]) -> Any:
        caught.append(gm)
        return make_boxed_func(lambda *_: [x])

    torch._dynamo.reset()
    start = time.perf_counter()
    with torch.no_grad():
        torch.compile(model, backend=aot_autograd(fw_compiler=compiler, decompositions={}))(x)
    return caught[0], time.perf_counter() - start


def median_of(run: Callable[[], object], rounds: int = 5) -> float:
    """Return the median seconds of a run."""
    taken = []
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def dump_statistics(model: torch.nn.Module, x: torch.Tensor, folder: str) -> None:
    """Dump one call of the model, statistics only, which the page shows. Files would not change the program's time."""
    config = fxtap.CompilerConfig()
    config.debug.data_dump.type = "stats"
    config.debug.data_dump.path = folder
    torch._dynamo.reset()
    with torch.no_grad():
        torch.compile(model, backend=fxtap.get_npu_backend(compiler_config=config))(x)


def measure_program(program: str, model: torch.nn.Module, x: torch.Tensor, rounds: int = 11) -> dict[str, float]:
    """Return the median wall seconds of a `fxtap graph DUMP` process, by format. Formats take turns."""
    outputs = {name: ["--format", name] for name in FORMATS} | {"summary": ["--summary"]}
    with tempfile.TemporaryDirectory() as folder:
        dump_statistics(model, x, folder)
        taken: dict[str, list[float]] = {name: [] for name in outputs}
        for _ in range(rounds):
            for name, arguments in outputs.items():
                start = time.perf_counter()
                subprocess.run([program, "graph", folder, *arguments], stdout=subprocess.DEVNULL, check=True)
                taken[name].append(time.perf_counter() - start)
        return {f"program {name}": statistics.median(seconds) for name, seconds in taken.items()}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--program", default=shutil.which("fxtap"))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    logging.getLogger("fxtap").setLevel(logging.ERROR)
    torch._dynamo.config.recompile_limit = 64
    model, x = make_model(options.nodes), torch.ones(4, 8)
    gm, compiling = catch_graph(model, x)
    record = _core.record(gm)
    seconds = {"compile": compiling, "record": median_of(lambda: _core.record(gm))}
    for name in FORMATS:
        seconds[f"print {name}"] = median_of(lambda name=name: _core.print_graph(record, name))
    seconds["summary"] = median_of(lambda: _core.summarise(record))
    if options.program:
        seconds.update(measure_program(options.program, model, x))
    print(f"{len(record)} nodes")
    for name, value in seconds.items():
        print(f"{name:16} {value * 1e3:10.1f} ms {value / compiling:8.2%} of compiling")
    if options.json:
        options.json.write_text(json.dumps({"nodes": len(record), "seconds": seconds}, indent=2) + "\n")


if __name__ == "__main__":
    main()
