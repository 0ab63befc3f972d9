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

from . import _core, notice
from .ascend import real_backend, real_torchair
from .compiled import CompiledGraph, Configure, Pass, late_call
from .config import CompilerConfig
from .debug_files import DebugFiles
from .environment import apply_environment
from .scope import active_block
from .session import Block, next_graph_id

__all__ = ["Backend", "fxtap", "get_npu_backend"]

logger = logging.getLogger("fxtap")

DUMP_WARNING = (
    "When dumping data of FX Graph, npu run will be skipped, and FALLBACK to EAGER execution, once dump finished, "
    "please make sure to disable the data dump config to ensure that the graph is compiled and executed."
)
"""TorchAir's own sentence: what `get_npu_backend` says at each compilation."""

DUMP_NOTE = "a dump is on: graphs run operator by operator, as written, and are not compiled until it is off"

SUMMARY_WARNING = (
    "When summarizing FX Graph, npu compilation will be skipped, and FALLBACK to EAGER execution to ensure the "
    "integrity of the analysis data. Once the analysis is complete, please make sure to disable the summary config to "
    "ensure that the graph is compiled and executed."
)
"""TorchAir's own sentence."""

SUMMARY_NOTE = "a summary is on: graphs run operator by operator and are not compiled (see fx_summary.skip_compile)"

EAGER_WARNING = (
    "config.debug.run_eagerly is on: the FX graph runs eagerly, operator by operator, and nothing is compiled. "
    "Switch it off again once you have seen what you wanted to."
)

BoxedCall = Callable[[list[Any]], Any]
Compiler = Callable[[GraphModule, Sequence[Any]], BoxedCall]


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
    settings
        Called at each compilation; returns what gives the configuration of its graphs, in a block and outside.
    decompositions
        Operator -> function, handed to AOTAutograd.
    from_environment
        Outside of blocks the environment configures it.
    is_torchairs
        It says what TorchAir's says.
    """

    __name__ = "fxtap"

    def __init__(
        self,
        settings: Callable[[], Configure],
        decompositions: Mapping[Any, Any] | None = None,
        *,
        from_environment: bool = False,
        is_torchairs: bool = True,
    ) -> None:
        self._settings = settings
        self._decompositions = dict(decompositions or {})
        self._is_torchairs = is_torchairs
        self._said: set[str] = set()
        self._expectation = notice.Expectation(self._wants_dump, shared=from_environment)

    def _wants_dump(self) -> bool:
        try:
            return bool(self._settings()(None).debug.data_dump.enabled)
        except ValueError:
            return False

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
        self._expectation.given()
        configure = _with_options(self._settings(), options or {})
        block = active_block()
        config = configure(block)
        self._warn_without_effect(config)

        def run_loop(gm: GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
            traced: Callable[..., Any] = self._run_loop(config, configure)(gm, example_inputs)
            return traced

        if self._stays_eager(config):
            return run_loop(gm, example_inputs)
        return late_call(gm, example_inputs, self._inner(config, mode), run_loop)

    def _say(self, sentence: str, note: str) -> None:
        """Log TorchAir's sentence at each compilation, or a note once."""
        if self._is_torchairs:
            logger.warning(sentence)
        elif note not in self._said:
            self._said.add(note)
            logger.warning(note)

    def _stays_eager(self, config: CompilerConfig) -> bool:
        """Tell, and say, whether graphs go to our run loop rather than to a compiler."""
        if config.debug.data_dump.enabled:
            self._say(DUMP_WARNING, DUMP_NOTE)
        elif config.debug.run_eagerly:
            self._say(EAGER_WARNING, EAGER_WARNING)
        elif config.debug.fx_summary.enabled and config.debug.fx_summary.skip_compile:
            self._say(SUMMARY_WARNING, SUMMARY_NOTE)
        else:
            return False
        return True

    def _inner(self, config: CompilerConfig, mode: str | None) -> Callable[..., Any]:
        """Return what compiles graphs that are not dumped: the real TorchAir, or the inner backend."""
        torchair = real_torchair()
        if torchair is not None:
            return real_backend(torchair, config, self._decompositions)
        inner = _inner_backend(config.get("inner_backend"), mode)
        files = DebugFiles(config)
        return self._with_files(inner, files) if files.wanted else inner

    def _run_loop(self, config: CompilerConfig, configure: Configure) -> Callable[..., Any]:
        shared = Pass()

        def compiler(kind: str) -> Compiler:
            return lambda gm, _inputs: CompiledGraph(gm, kind, configure, shared)

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
        if names and "without effect" not in self._said and real_torchair() is None:
            self._said.add("without effect")
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
        return Backend(lambda: _environment_or_block, custom_decompositions, from_environment=True)
    if not isinstance(compiler_config, CompilerConfig):
        raise TypeError(f"compiler_config is a fxtap.CompilerConfig, not {compiler_config!r}")
    return Backend(lambda: functools.partial(_own_or_block, compiler_config.copy()), custom_decompositions)


def _environment_or_block(block: Block | None) -> CompilerConfig:
    return block.config.copy() if block is not None else apply_environment(CompilerConfig())


def _own_or_block(own: CompilerConfig, block: Block | None) -> CompilerConfig:
    """Return a configuration that was passed; a block adds its own where that asks for no dump."""
    config = own.copy()
    if block is not None and not config.debug.data_dump.enabled:
        for path, value in block.config.set_options().items():
            config.set(path, value)
    return config


def _with_options(configure: Configure, options: Mapping[str, Any]) -> Configure:
    """Put options from torch.compile(options=...) over a configuration."""

    def configured(block: Block | None) -> CompilerConfig:
        config = configure(block)
        for path, value in options.items():
            config.set(path, value)
        return config

    return configured


class _NamedBackend(Backend):
    """That of the name "fxtap"."""

    is_named = False
    """It was looked up by its name: options that ask for a dump come with the first graph only."""

    def _wants_dump(self) -> bool:
        return self.is_named or (notice.watch is not None and super()._wants_dump())


_named = _NamedBackend(lambda: _environment_or_block, from_environment=True, is_torchairs=False)


def fxtap(gm: GraphModule, example_inputs: Sequence[Any], **kwargs: Any) -> Callable[..., Any]:
    """Compile a graph: the backend of the name "fxtap", `torch.compile(model, backend="fxtap", options={...})`.

    Options come from `torch.compile(options=...)`, else from the `fxtap.dump` block, else from the environment.
    """
    return _named(gm, example_inputs, **kwargs)


def look_up_by_name() -> Callable[..., Any]:
    """Return the backend for torch, which was asked for it by name."""
    _named.is_named = True
    return fxtap
