"""Compiled graphs: each call looks up its dump and runs the program for it."""

from __future__ import annotations

import copy
import functools
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch._dynamo.convert_frame import compile_lock
from torch._guards import TracingContext, tracing
from torch.fx import GraphModule
from torch.utils._python_dispatch import _disable_current_modes

from . import _core
from .config import CompilerConfig
from .debug_files import DebugFiles
from .functionalized import expand_mutations
from .scope import active_block
from .selection import explain_empty, skip_reasons
from .session import Block, live_verification, next_graph_id, open_dump, watch_fork
from .weights import mark_weights

if TYPE_CHECKING:
    from .verification.live import Verifier

__all__ = ["CompiledGraph", "Configure", "Pass", "late_call"]

logger = logging.getLogger("fxtap")

Configure = Callable[[Block | None], CompilerConfig]
"""Returns the configuration of the graphs of one compilation for a block, or for None outside of blocks."""


class Pass:
    """State shared by the graphs of one compilation: a backward pass may run in a thread without a block."""

    block: Block | None = None
    """The block in which the forward pass was last called."""


@dataclass
class _Form:
    """A graph under one configuration."""

    program: _core.Program
    dump: _core.Dump | None
    selection: tuple[Any, ...]
    first_call: Callable[[], None] | None


class CompiledGraph:
    """One graph for the run loop in C; called with one list of arguments, which it empties.

    It has one program for each `fxtap.dump` block in which it is called, and one outside of blocks. A forked child
    creates new programs, with its own graph numbers and runs.

    Raises
    ------
    FilterError
        The filter of the block in which it is compiled or called raised, or returned something other than its node.
    """

    def __init__(
        self, gm: GraphModule, kind: str, configure: Configure | CompilerConfig, shared: Pass | None = None
    ) -> None:
        self._boxed_call = True  # an instance attribute: torch's wrappers copy __dict__
        self.gm = gm
        self.kind = kind
        self._configure = (lambda _: configure) if isinstance(configure, CompilerConfig) else configure
        self._shared = shared or Pass()
        self._forms: dict[Block | None, _Form] = {}
        self._roots: set[str] = set()
        self._number = 0
        self._lock = threading.Lock()
        mark_weights(gm)
        self._form = self._add(self._block())
        watch_fork(self)

    @functools.cached_property
    def record(self) -> _core.Graph:
        """The graph's record."""
        return _core.record(self.gm, self.kind)

    @property
    def program(self) -> _core.Program:
        """The program used by the last call."""
        return self._form.program

    @property
    def dump(self) -> _core.Dump | None:
        """The dump of the last call."""
        return self._form.dump

    def _block(self) -> Block | None:
        block = active_block()
        if self.kind != "backward":
            self._shared.block = block
        elif block is None and self._shared.block is not None and not self._shared.block.ended:
            block = self._shared.block
        return block

    def _add(self, block: Block | None) -> _Form:
        with self._lock:
            form = self._forms.get(block)
            if form is None:
                for ended in [other for other in self._forms if other is not None and other.ended]:
                    del self._forms[ended]
                form = self._forms[block] = self._make(self._configure(block), block)
            return form

    def _make(self, config: CompilerConfig, block: Block | None) -> _Form:
        files = DebugFiles(config)
        keep, custom_ops = config.get("debug.data_dump.filter"), bool(config.get("debug.data_dump.custom_ops"))
        on_error: str = config.get("debug.data_dump.on_error")
        verify_every: int = config.get("debug.data_dump.verify_every")
        dump, skip = None, []
        if config.debug.data_dump.enabled:
            dump = open_dump(config, block)
            if expand_mutations(self.gm):
                self.__dict__.pop("record", None)  # another form may have recorded the graph before the change
            skip = skip_reasons(self.gm, self.record, keep, custom_ops)
            skipped = explain_empty(self.gm, self.kind, skip, keep)
            if skipped is not None:
                logger.warning(skipped)
        selection = (keep, custom_ops, on_error, verify_every) if dump is not None else ()
        if not files.enabled:
            for form in self._forms.values():
                if form.dump is dump and form.selection == selection:
                    return form
        number = self._next_number(dump) if dump is not None or files.enabled else 0
        first_call = None
        if files.enabled:
            files.at_compilation(self.record, number)
            first_call = functools.partial(files.at_first_call, self.record, number)
        if dump is None:
            return _Form(_core.Program(self.gm), None, selection, first_call)
        program = _core.Program(
            self.gm, self.record, dump, number, skip, on_error=on_error, log=logger.warning,
            verifier=self._verifier(dump, number, verify_every),
        )  # fmt: skip
        return _Form(program, dump, selection, first_call)

    def _verifier(self, dump: _core.Dump, number: int, every: int) -> Verifier | None:
        """Return what judges the graph's operators in a dump of type "verify"."""
        live = live_verification(dump)
        if live is None:
            return None
        from .verification.live import Verifier  # imported late: few dumps need it

        return Verifier(live, self.gm, self.record, number, every)

    def _next_number(self, dump: _core.Dump | None) -> int:
        """Return the number G of the graph; a new one if the root already has it (a later block of the same path)."""
        root = dump.rank_path if dump is not None else ""
        if self._number == 0 or root in self._roots:
            self._number = next_graph_id()
        self._roots.add(root)
        return self._number

    def after_fork(self) -> None:
        """Reset in a forked child; programs are created at the next call."""
        self._lock = threading.Lock()
        self._number = 0
        self._roots = set()
        self._forms = {block: form for block, form in self._forms.items() if form.dump is None or form.dump.closed}

    def __call__(self, arguments: list[Any]) -> Any:
        block = self._block()
        form = self._forms.get(block)
        if form is None:
            form = self._add(block)
        self._form = form
        first_call, form.first_call = form.first_call, None  # read once: other threads may call concurrently
        if first_call is not None:
            first_call()
        return form.program(arguments)


def _copy_graphs(gm: GraphModule) -> GraphModule:
    """Return a copy with its own graphs but shared tensors and modules: inner backends modify their graph."""
    memo: dict[int, Any] = {}
    for module in gm.modules():
        if not isinstance(module, GraphModule):
            memo[id(module)] = module
        shared = (*module.parameters(recurse=False), *module.buffers(recurse=False), *vars(module).values())
        memo.update((id(value), value) for value in shared if isinstance(value, torch.Tensor))
    copied = copy.deepcopy(gm, memo)
    for node, other in zip(gm.graph.nodes, copied.graph.nodes, strict=True):
        other.meta.pop("grapharg", None)  # refers to the call's own tensors
        if hasattr(node, "_dynamo_source"):
            other._dynamo_source = node._dynamo_source
    if hasattr(gm, "_param_name_to_source"):  # AOTAutograd identifies weights by it
        copied._param_name_to_source = gm._param_name_to_source
    return copied


def late_call(
    gm: GraphModule,
    example_inputs: Sequence[Any],
    inner: Callable[..., Callable[..., Any]],
    trace: Callable[[GraphModule, Sequence[Any]], Callable[..., Any]],
) -> Callable[..., Any]:
    """Compile one of Dynamo's graphs with an inner backend, for calls outside of blocks that dump.

    Parameters
    ----------
    trace
        Compiles a copy for the run loop at the first call in such a block, with the shapes, symbols and grad mode of
        this compilation.
    """
    copied = _copy_graphs(gm)
    nodes = copied.graph.find_nodes(op="placeholder")
    examples = [node.meta.get("example_value", example) for node, example in zip(nodes, example_inputs, strict=True)]
    context = TracingContext.try_get()
    fake_mode = context.fake_mode if context is not None else None
    grad_enabled = torch.is_grad_enabled()
    compiled = inner(gm, example_inputs)
    late: list[Callable[..., Any]] = []

    def traced() -> Callable[..., Any]:
        with compile_lock:
            if not late:
                with tracing(TracingContext(fake_mode)), _disable_current_modes(), torch.set_grad_enabled(grad_enabled):
                    late.append(trace(copied, examples))
        return late[0]

    @functools.wraps(compiled)
    def call(*arguments: Any) -> Any:
        block = active_block()
        if block is None or not block.config.debug.data_dump.enabled:
            return compiled(*arguments)
        return (late[0] if late else traced())(*arguments)

    return call
