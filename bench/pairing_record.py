"""One side of a variant: how a model is built, compiled, run and dumped."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as functional
from torch import Tensor, nn
from torch.fx import GraphModule
from torch.nn.attention import SDPBackend, sdpa_kernel

import fxtap
import fxtap.session
import pairing_passes
from fxtap.backend import Backend
from fxtap.compiled import CompiledGraph
from fxtap.selection import skip_reasons
from pairing_models import PLAIN, Wrapper, load_source, make_inputs, make_model


@dataclass(frozen=True)
class Side:
    """How one side is run.

    Attributes
    ----------
    model
        A name, or two joined by "+": both are compiled and called, in this order.
    calls
        One letter per call, the seed of its inputs; for a capital letter, the inputs have another size.
    grad
        "no": under no_grad; "forward": with gradients, without backward; "train": backward and an SGD step per call.
    edits, shift, file
        For the source of plain models: (old, new) text, number of lines to prepend, the file's name.
    attention, math
        transformers' attention; whether scaled_dot_product_attention is decomposed.
    wrap
        The attribute names of modules around the model, outermost first; ("()",) for a plain function.
    decompose
        Names of ATen operators that AOTAutograd decomposes.
    passes
        Names of functions of pairing_passes, in order.
    breaks
        Names of submodules before which the graph is broken.
    frozen
        Prefixes of parameters without gradient.
    """

    model: str
    calls: str = "a"
    grad: str = "no"
    edits: tuple[tuple[str, str], ...] = ()
    shift: int = 0
    file: str = "model.py"
    attention: str = "sdpa"
    math: bool = False
    wrap: tuple[str, ...] = ()
    decompose: tuple[str, ...] = ()
    passes: tuple[str, ...] = ()
    breaks: tuple[str, ...] = ()
    frozen: tuple[str, ...] = ()
    dtype: torch.dtype = torch.float32
    autocast: bool = False
    dynamic: bool | None = False


class Recorder(Backend):
    """The backend, with passes over each graph before it is compiled; stores what it compiled."""

    def __init__(self, root: Path, side: Side) -> None:
        config = fxtap.CompilerConfig()
        config.debug.data_dump.type = "npy"
        config.debug.data_dump.path = root
        self.graphs: list[CompiledGraph] = []
        self._passes = side.passes
        super().__init__(lambda: lambda _block: config.copy(), decompositions(side.decompose))

    def _trace(self, compiler: Callable[[str], Any], *, keep_mutations: bool) -> Callable[..., Any]:
        def rewriting(kind: str) -> Callable[..., Any]:
            compile_one = compiler(kind)

            def run(gm: GraphModule, inputs: Any) -> Any:
                pairing_passes.apply(gm, self._passes)
                self.graphs.append(compile_one(gm, inputs))
                return self.graphs[-1]

            return run

        return super()._trace(rewriting, keep_mutations=keep_mutations)


def skips_of(graph: CompiledGraph) -> list[str | None]:
    """Return why each node of a graph is not dumped; None for those that are."""
    return skip_reasons(graph.gm, graph.record)


def decompositions(names: tuple[str, ...]) -> dict[Any, Any]:
    """Return torch's decompositions of operators, by name."""
    packets = [getattr(torch.ops.aten, name) for name in names]
    return dict(torch._decomp.get_decompositions(packets))


def break_before(model: nn.Module, names: tuple[str, ...]) -> None:
    """Break the graph before calls of submodules."""
    for name in names:
        model.get_submodule(name).register_forward_pre_hook(lambda *_: torch._dynamo.graph_break())


def wrapped(model: nn.Module, names: tuple[str, ...]) -> Callable[..., Any]:
    """Return the model with modules around it, or as a function that calls it."""
    if names == ("()",):

        def function(*inputs: Any, **kwargs: Any) -> Any:
            return model(*inputs, **kwargs)

        return function
    for name in reversed(names):
        model = Wrapper(model, name)
    return model


def loss_of(output: Any) -> Tensor:
    """Return the cross entropy with labels seeded by the output's size."""
    logits = getattr(output, "logits", output).float().flatten(0, -2)
    random = torch.Generator().manual_seed(logits.shape[0])
    labels = torch.randint(0, logits.shape[1], (logits.shape[0],), generator=random)
    return functional.cross_entropy(logits, labels) * logits.shape[0]


class Run:
    """A side that is compiled once, and can be run repeatedly from the same start."""

    def __init__(self, side: Side, root: Path, sources: Path) -> None:
        self.side = side
        self.recorder = Recorder(root, side)
        torch._dynamo.reset()
        fxtap.session._graph_ids = itertools.count(0)  # each dump as in a separate process
        self._before_graphs = fxtap.session.next_graph_id()
        self.models: dict[str, nn.Module] = {}
        self.functions: dict[str, Callable[..., Any]] = {}
        for name in side.model.split("+"):
            source = load_source(sources / side.file, side.edits, side.shift) if name in PLAIN else None
            model = make_model(name, source, side.attention).to(side.dtype).train(side.grad == "train")
            for parameter_name, parameter in model.named_parameters():
                parameter.requires_grad_(not parameter_name.startswith(side.frozen or ("-",)))
            break_before(model, side.breaks)
            self.models[name] = model
            function = wrapped(model, side.wrap)
            self.functions[name] = torch.compile(function, backend=self.recorder, dynamic=side.dynamic)
        self.start = {
            name: {key: value.clone() for key, value in model.state_dict().items()}
            for name, model in self.models.items()
        }

    def graphs(self) -> dict[int, CompiledGraph]:
        """Return what was compiled, by graph number."""
        return dict(enumerate(self.recorder.graphs, self._before_graphs + 1))

    @contextlib.contextmanager
    def surroundings(self) -> Iterator[None]:
        """Enter the modes in which the side runs."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.set_grad_enabled(self.side.grad != "no"))
            if self.side.autocast:
                stack.enter_context(torch.autocast("cpu", torch.bfloat16))
            if self.side.math:
                stack.enter_context(sdpa_kernel(SDPBackend.MATH))
            yield

    def call(self, name: str, letter: str) -> None:
        """Run one call, and in training one step."""
        args, kwargs = make_inputs(name, letter)
        if self.side.dtype != torch.float32:
            args = tuple(self.cast(value) for value in args)
            kwargs = {key: self.cast(value) for key, value in kwargs.items()}
        with self.surroundings():
            output = self.functions[name](*args, **kwargs)
        if self.side.grad == "train":
            loss_of(output).backward()
            with torch.no_grad():
                for parameter in self.models[name].parameters():
                    if parameter.grad is not None:
                        parameter -= 0.01 * parameter.grad
                        parameter.grad = None

    def cast(self, value: Tensor) -> Tensor:
        return value.to(self.side.dtype) if value.is_floating_point() else value

    def __call__(self) -> None:
        """Run all calls from the initial weights."""
        for name, model in self.models.items():
            model.load_state_dict(self.start[name])
        torch.manual_seed(0)
        for letter in self.side.calls:
            for name in self.models:
                self.call(name, letter)

    def close(self) -> None:
        """End the dump."""
        for graph in self.recorder.graphs:
            if graph.dump is not None:
                graph.dump.close()
