"""The backend of torch.compile: graphs to be dumped run in our loop, the others go to an inner backend."""

from __future__ import annotations

import copy
import functools
import logging
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.backends.registry import lookup_backend
from torch._functorch import config as functorch_config
from torch._functorch.partitioners import default_partition
from torch.fx import GraphModule

from . import _core
from .ascend import real_backend, real_torchair
from .config import CompilerConfig
from .debug_files import DebugFiles
from .environment import apply_environment
from .functionalized import write_out_mutations
from .scope import active
from .selection import skip_reasons
from .session import Block, next_graph_id, open_dump, watch_fork
from .weights import mark_weights

__all__ = ["Backend", "fxtap", "get_npu_backend"]

logger = logging.getLogger("fxtap")

DUMP_WARNING = (
    "When dumping data of FX Graph, npu run will be skipped, and FALLBACK to EAGER execution, once dump finished, "
    "please make sure to disable the data dump config to ensure that the graph is compiled and executed."
)
"""TorchAir's own sentence."""

SUMMARY_WARNING = (
    "When summarizing FX Graph, npu compilation will be skipped, and FALLBACK to EAGER execution to ensure the "
    "integrity of the analysis data. Once the analysis is complete, please make sure to disable the summary config to "
    "ensure that the graph is compiled and executed."
)
"""TorchAir's own sentence."""

EAGER_WARNING = (
    "config.debug.run_eagerly is on: the FX graph runs eagerly, operator by operator, and nothing is compiled. "
    "Switch it off again once you have seen what you wanted to."
)

BoxedCall = Callable[[list[Any]], Any]
Compiler = Callable[[GraphModule, Sequence[Any]], BoxedCall]


class CompiledGraph:
    """One graph as the run loop in C runs it; called with one list of arguments, which it empties.

    In a forked child its program is made anew, with a graph number and a run of the child's own.
    """

    def __init__(self, gm: GraphModule, kind: str, config: CompilerConfig, block: Block | None = None) -> None:
        self._boxed_call = True  # in the instance: torch's wrappers copy __dict__
        self.gm = gm
        self.kind = kind
        self.on_error: str = config.get("debug.data_dump.on_error")
        self.dump: _core.Dump | None = None
        self.record: _core.Graph | None = None
        self.skip: list[str | None] = []
        mark_weights(gm)
        if config.debug.data_dump.enabled and not (block is not None and block.ended):
            self.dump = open_dump(config, block)
            write_out_mutations(gm)
            self.record = _core.record(gm, kind)
            keep = config.get("debug.data_dump.filter")
            self.skip = skip_reasons(gm, self.record, keep, bool(config.get("debug.data_dump.custom_ops")))
            nodes = zip(gm.graph.nodes, self.skip, strict=True)
            reasons = [reason for node, reason in nodes if node.op == "call_function"]
            if "filter" in reasons and None not in reasons:
                logger.warning("the filter keeps no operator of the %s graph: nothing of it is dumped", kind)
        self._files = DebugFiles(config)
        self._first_call: Callable[[], None] | None = None
        if self._files.wanted and self.record is None:
            self.record = _core.record(gm, kind)
        self.program = self._make_program()
        watch_fork(self)

    def _make_program(self) -> _core.Program:
        number = next_graph_id() if self.record is not None else 0
        if self._files.wanted and self.record is not None:
            self._files.at_compilation(self.record, number)
            self._first_call = functools.partial(self._files.at_first_call, self.record, number)
        if self.dump is None:
            return _core.Program(self.gm)
        return _core.Program(
            self.gm,
            self.record,
            self.dump,
            number,
            self.skip,
            on_error=self.on_error,
            log=logger.warning,
        )

    def after_fork(self) -> None:
        """Begin anew in a forked child."""
        if self.dump is not None and not self.dump.closed:
            self.program = self._make_program()

    def __call__(self, arguments: list[Any]) -> Any:
        first_call, self._first_call = self._first_call, None  # read once: other threads may be here as well
        if first_call is not None:
            first_call()
        return self.program(arguments)


@functools.cache
def _has_cpp_compiler() -> bool:
    from torch._inductor.cpp_builder import get_cpp_compiler

    try:
        return bool(get_cpp_compiler())
    except Exception:
        return False


def _inner_backend(choice: Any, mode: str | None) -> Callable[..., Any]:
    """Return the backend for graphs that are not dumped."""
    if choice != "inductor":
        return lookup_backend(choice)
    if not _has_cpp_compiler():
        logger.warning('no C++ compiler was found for the backend "inductor": the graph runs by "aot_eager"')
        return lookup_backend("aot_eager")
    inductor: Callable[..., Any] = lookup_backend("inductor")
    if mode is None:
        return inductor
    from torch._inductor import list_mode_options

    return functools.partial(inductor, config_patches=list_mode_options(mode))


class Backend:
    """A backend for torch.compile.

    Parameters
    ----------
    configure
        Called at each compilation; returns the configuration for it, which the backend may change.
    decompositions
        Operator -> function, handed to AOTAutograd.
    block
        Called at each compilation; returns the `fxtap.dump` block that it belongs to, None outside of blocks.
    """

    __name__ = "fxtap"

    def __init__(
        self,
        configure: Callable[[], CompilerConfig],
        decompositions: Mapping[Any, Any] | None = None,
        block: Callable[[], Block | None] = lambda: None,
    ) -> None:
        self._configure = configure
        self._block = block
        self._decompositions = dict(decompositions or {})
        self._warned = False

    def __call__(
        self,
        gm: GraphModule,
        example_inputs: Sequence[Any],
        *,
        options: Mapping[str, Any] | None = None,
        mode: str | None = None,
        **ignored: Any,
    ) -> Callable[..., Any]:
        """Compile one of Dynamo's graphs.

        Parameters
        ----------
        options
            From torch.compile(options=...): option paths, as "data_dump.type", and their values.
        mode
            From torch.compile(mode=...), for inductor.

        Raises
        ------
        OptionError, ValueError, TypeError
            An option is none, or has a value that is not legal.
        FilterError
            The filter raised, or returned something else than its node or None.
        """
        config = self._configure()
        for path, value in (options or {}).items():
            config.set(path, value)
        self._warn_without_effect(config)
        compiled: Callable[..., Any] = self._choose(config, mode)(gm, example_inputs)
        return compiled

    def _choose(self, config: CompilerConfig, mode: str | None) -> Callable[..., Any]:
        """Return what compiles the graph: our run loop, the real TorchAir, or the inner backend."""
        if config.debug.data_dump.enabled:
            logger.warning(DUMP_WARNING)
            return self._run_loop(config)
        if config.debug.run_eagerly:
            logger.warning(EAGER_WARNING)
            return self._run_loop(config)
        if config.debug.fx_summary.enabled and config.debug.fx_summary.skip_compile:
            logger.warning(SUMMARY_WARNING)
            return self._run_loop(config)
        torchair = real_torchair()
        if torchair is not None:
            return real_backend(torchair, config, self._decompositions)
        inner = _inner_backend(config.get("inner_backend"), mode)
        files = DebugFiles(config)
        return self._with_files(inner, files) if files.wanted else inner

    def _run_loop(self, config: CompilerConfig) -> Callable[..., Any]:
        block = self._block()

        def compiler(kind: str) -> Compiler:
            return lambda gm, _inputs: CompiledGraph(gm, kind, config, block)

        keep_mutations = bool(config.get("experimental_config.keep_inference_input_mutations"))
        return self._trace(compiler, keep_mutations=keep_mutations)

    def _trace(self, compiler: Callable[[str], Compiler], *, keep_mutations: bool) -> Callable[..., Any]:
        """Return a backend that has AOTAutograd trace graphs as for TorchAir, and compiles each by its kind."""
        backend: Callable[..., Any] = aot_autograd(
            fw_compiler=compiler("forward"),
            bw_compiler=compiler("backward"),
            inference_compiler=compiler("inference"),
            partition_fn=default_partition,
            decompositions=self._decompositions,
            keep_inference_input_mutations=keep_mutations,
        )
        return backend

    def _with_files(self, inner: Callable[..., Any], files: DebugFiles) -> Callable[..., Any]:
        """Return the inner backend, with the files written from a copy of the graph: it wants Dynamo's own."""

        def compile_and_print(gm: GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
            records: list[tuple[_core.Graph, int]] = []

            def printer(kind: str) -> Compiler:
                def compiler(traced: GraphModule, _inputs: Sequence[Any]) -> BoxedCall:
                    record, number = _core.record(traced, kind), next_graph_id()
                    files.at_compilation(record, number)
                    records.append((record, number))
                    return _core.Program(traced)  # never run

                return compiler

            with functorch_config.patch(force_non_lazy_backward_lowering=True):
                self._trace(printer, keep_mutations=True)(copy.deepcopy(gm), example_inputs)
            compiled = inner(gm, example_inputs)

            @functools.wraps(compiled)
            def call(*arguments: Any) -> Any:
                pending, records[:] = list(records), []
                for record, number in pending:
                    files.at_first_call(record, number)
                return compiled(*arguments)

            disable: Callable[..., Any] = torch.compiler.disable
            untraced: Callable[..., Any] = disable(call)  # Dynamo is not to look inside
            return untraced

        return compile_and_print

    def _warn_without_effect(self, config: CompilerConfig) -> None:
        """Warn, once in all, of options that were set and do nothing without the real TorchAir."""
        names = config.without_effect()
        if names and not self._warned and real_torchair() is None:
            self._warned = True
            warnings.warn(
                f"these options have an effect in TorchAir only, which is not installed: {', '.join(names)}",
                UserWarning,
                stacklevel=3,
            )


def get_npu_backend(
    *, compiler_config: CompilerConfig | None = None, custom_decompositions: Mapping[Any, Any] | None = None
) -> Backend:
    """Return a backend for torch.compile, as `torchair.get_npu_backend`.

    Parameters
    ----------
    compiler_config
        Read at each compilation, so that later changes count for graphs that are compiled later. Without it, the
        environment is (`FXTAP_TYPE`, ...).
    custom_decompositions
        Operator -> function, handed to AOTAutograd; none by default.

    Examples
    --------
    >>> import fxtap as torchair  # doctest: +SKIP
    >>> config = torchair.CompilerConfig()  # doctest: +SKIP
    >>> config.debug.data_dump.type = "npy"  # doctest: +SKIP
    >>> backend = torchair.get_npu_backend(compiler_config=config)  # doctest: +SKIP
    >>> model = torch.compile(model, backend=backend)  # doctest: +SKIP
    """
    if compiler_config is None:
        return Backend(lambda: apply_environment(CompilerConfig()), custom_decompositions)
    if not isinstance(compiler_config, CompilerConfig):
        raise TypeError(f"compiler_config is a fxtap.CompilerConfig, not {compiler_config!r}")
    return Backend(compiler_config.copy, custom_decompositions)


def _named_config() -> CompilerConfig:
    scoped = active.get()
    return scoped[0].copy() if scoped is not None else apply_environment(CompilerConfig())


def _named_block() -> Block | None:
    scoped = active.get()
    return scoped[1] if scoped is not None else None


_named = Backend(_named_config, block=_named_block)


def fxtap(gm: GraphModule, example_inputs: Sequence[Any], **kwargs: Any) -> Callable[..., Any]:
    """Compile a graph: the backend of the name "fxtap", `torch.compile(model, backend="fxtap", options={...})`.

    Options come from `torch.compile(options=...)`, else from the `fxtap.dump` block, else from the environment.
    """
    return _named(gm, example_inputs, **kwargs)
