"""The torch.compile backend: graphs to be dumped run in the run loop, others go to an inner backend."""

from __future__ import annotations

import contextlib
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
"""TorchAir's message, which `get_npu_backend` logs at each compilation."""

DUMP_NOTE = "a dump is enabled: graphs run operator by operator and are not compiled until it is disabled"

SUMMARY_WARNING = (
    "When summarizing FX Graph, npu compilation will be skipped, and FALLBACK to EAGER execution to ensure the "
    "integrity of the analysis data. Once the analysis is complete, please make sure to disable the summary config to "
    "ensure that the graph is compiled and executed."
)
"""TorchAir's message."""

SUMMARY_NOTE = "the summary is enabled: graphs run operator by operator, uncompiled (see fx_summary.skip_compile)"

EAGER_WARNING = (
    "config.debug.run_eagerly is enabled: the FX graph runs eagerly, operator by operator, and nothing is compiled. "
    "Disable it again when you have finished debugging."
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
        logger.warning('no C++ compiler was found for the backend "inductor"; using "aot_eager"')
        return lookup_backend("aot_eager")
    inductor: Callable[..., Any] = lookup_backend("inductor")
    if mode is not None:
        from torch._inductor import list_mode_options

        inductor = functools.partial(inductor, config_patches=list_mode_options(mode))

    def compile_where_possible(gm: GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        device = _device_without_inductor(gm, example_inputs)
        if device is not None:
            _warn_about_device(device)
        backend: Callable[..., Any] = inductor if device is None else lookup_backend("aot_eager")
        compiled: Callable[..., Any] = backend(gm, example_inputs)
        return compiled

    return compile_where_possible


@functools.cache
def _warn_about_device(device: str) -> None:
    logger.warning('the backend "inductor" has no code for the device "%s"; using "aot_eager"', device)


def _device_without_inductor(gm: GraphModule, example_inputs: Sequence[Any]) -> str | None:
    """Return a device of a graph's tensors for which inductor generates no code; None also if torch cannot tell."""
    try:
        from torch._inductor.codegen.common import get_scheduling_for_device, init_backend_registration
    except ImportError:
        return None
    values = [*example_inputs, *gm.parameters(), *gm.buffers()]
    values += [node.meta.get("example_value") for node in gm.graph.nodes]
    devices = {value.device.type for value in values if isinstance(value, torch.Tensor)} - {"meta"}
    init_backend_registration()
    return next((device for device in sorted(devices) if get_scheduling_for_device(device) is None), None)


def _compiling_backward_at_once() -> contextlib.AbstractContextManager[None]:
    """Make AOTAutograd compile backward graphs with the forward graph; a torch without the option prints none."""
    if not hasattr(functorch_config, "force_non_lazy_backward_lowering"):
        return contextlib.nullcontext()
    patch: contextlib.AbstractContextManager[None] = functorch_config.patch(force_non_lazy_backward_lowering=True)
    return patch


class Backend:
    """A backend for torch.compile.

    Parameters
    ----------
    settings
        Called at each compilation; returns a function from a block, or None outside of blocks, to the configuration.
    decompositions
        Operator -> function, passed to AOTAutograd.
    from_environment
        Whether the environment configures it outside of blocks.
    is_torchairs
        Whether it logs TorchAir's messages.
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
        self._logged: set[str] = set()
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
            An option is unknown or has an invalid value.
        FilterError
            The filter raised, or returned something other than its node or None.
        """
        self._expectation.fulfil()
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

    def _log(self, warning: str, note: str) -> None:
        """Log TorchAir's warning at each compilation, or a note once."""
        if self._is_torchairs:
            logger.warning(warning)
        elif note not in self._logged:
            self._logged.add(note)
            logger.warning(note)

    def _stays_eager(self, config: CompilerConfig) -> bool:
        """Return, and log, whether graphs run in the run loop instead of being compiled."""
        if config.debug.data_dump.enabled:
            self._log(DUMP_WARNING, DUMP_NOTE)
        elif config.debug.run_eagerly:
            self._log(EAGER_WARNING, EAGER_WARNING)
        elif config.debug.fx_summary.enabled and config.debug.fx_summary.skip_compile:
            self._log(SUMMARY_WARNING, SUMMARY_NOTE)
        else:
            return False
        return True

    def _inner(self, config: CompilerConfig, mode: str | None) -> Callable[..., Any]:
        """Return the backend for graphs that are not dumped: the real TorchAir, or the inner backend."""
        torchair = real_torchair()
        if torchair is not None:
            return real_backend(torchair, config, self._decompositions)
        inner = _inner_backend(config.get("inner_backend"), mode)
        files = DebugFiles(config)
        return self._with_files(inner, files) if files.enabled else inner

    def _run_loop(self, config: CompilerConfig, configure: Configure) -> Callable[..., Any]:
        shared = Pass()

        def compiler(kind: str) -> Compiler:
            return lambda gm, _inputs: CompiledGraph(gm, kind, configure, shared)

        keep_mutations = bool(config.get("experimental_config.keep_inference_input_mutations"))
        return self._trace(compiler, keep_mutations=keep_mutations)

    def _trace(self, compiler: Callable[[str], Compiler], *, keep_mutations: bool) -> Callable[..., Any]:
        """Return a backend that traces graphs with AOTAutograd as TorchAir does, and compiles each by its kind."""
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
        """Return the inner backend, which gets Dynamo's graph; a copy is traced to write the files."""

        def compile_and_print(gm: GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
            records: list[tuple[_core.Graph, int]] = []

            def printer(kind: str) -> Compiler:
                def compiler(traced: GraphModule, _inputs: Sequence[Any]) -> BoxedCall:
                    record, number = _core.record(traced, kind), next_graph_id()
                    files.at_compilation(record, number)
                    records.append((record, number))
                    return _core.Program(traced)  # never run

                return compiler

            with _compiling_backward_at_once():
                self._trace(printer, keep_mutations=True)(copy.deepcopy(gm), example_inputs)
            compiled = inner(gm, example_inputs)

            @functools.wraps(compiled)
            def call(*arguments: Any) -> Any:
                pending, records[:] = list(records), []
                for record, number in pending:
                    files.at_first_call(record, number)
                return compiled(*arguments)

            disable: Callable[..., Any] = torch.compiler.disable
            untraced: Callable[..., Any] = disable(call)  # Dynamo must not trace it
            return untraced

        return compile_and_print

    def _warn_without_effect(self, config: CompilerConfig) -> None:
        """Warn once about options that were set but have no effect without the real TorchAir."""
        names = config.without_effect()
        if names and "without effect" not in self._logged and real_torchair() is None:
            self._logged.add("without effect")
            warnings.warn(
                f"these options have an effect only in TorchAir, which is not installed: {', '.join(names)}",
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
        Read at each compilation, so changes apply to graphs that are compiled later. If None, the environment
        (`FXTAP_TYPE`, ...) is read instead.
    custom_decompositions
        Operator -> function, passed to AOTAutograd; none by default.

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
        raise TypeError(f"compiler_config must be a fxtap.CompilerConfig, not {compiler_config!r}")
    return Backend(lambda: functools.partial(_own_or_block, compiler_config.copy()), custom_decompositions)


def _environment_or_block(block: Block | None) -> CompilerConfig:
    return block.config.copy() if block is not None else apply_environment(CompilerConfig())


def _own_or_block(own: CompilerConfig, block: Block | None) -> CompilerConfig:
    """Return a copy of a configuration that was passed, with the block's options if it enables no dump."""
    config = own.copy()
    if block is not None and not config.debug.data_dump.enabled:
        for path, value in block.config.set_options().items():
            config.set(path, value)
    return config


def _with_options(configure: Configure, options: Mapping[str, Any]) -> Configure:
    """Return a configuration function that also sets the options from torch.compile(options=...)."""

    def configured(block: Block | None) -> CompilerConfig:
        config = configure(block)
        for path, value in options.items():
            config.set(path, value)
        return config

    return configured


class _NamedBackend(Backend):
    """The backend registered as "fxtap"."""

    is_named = False
    """Whether it was looked up by name; options that enable a dump arrive only with the first graph."""

    def _wants_dump(self) -> bool:
        return self.is_named or (notice.watch is not None and super()._wants_dump())


_named = _NamedBackend(lambda: _environment_or_block, from_environment=True, is_torchairs=False)


def fxtap(gm: GraphModule, example_inputs: Sequence[Any], **kwargs: Any) -> Callable[..., Any]:
    """Compile a graph: the backend "fxtap", as in `torch.compile(model, backend="fxtap", options={...})`.

    Options come from `torch.compile(options=...)`, then the `fxtap.dump` block, then the environment.
    """
    return _named(gm, example_inputs, **kwargs)


def look_up_by_name() -> Callable[..., Any]:
    """Return the backend for a look-up by name."""
    _named.is_named = True
    return fxtap
