"""Memory that was never written: which elements of tensors are undefined, and which operators compute with them.

The state of memory is kept for each storage with undefined elements, one cell per element. Views share the cells. An
operator that only moves elements is run a second time on the states of its arguments. The results of one that computes
with undefined elements are undefined as well, and the operator is reported. If no such storage exists, the run loop
does not call this module.
"""

from __future__ import annotations

import functools
import logging
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.multiprocessing.reductions import StorageWeakRef

__all__ = ["Memory"]

logger = logging.getLogger("fxtap")

WeakReference: Any = StorageWeakRef

MAYBE, DERIVED, UNWRITTEN = 1, 2, 3
"""States of an element, with the values used in the index; 0 is defined. Two states combine to the larger one."""

OWN = {"aten", "prims", "inductor_prims"}
"""Namespaces of operators that behave as their schemas declare."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


OVERWRITES = _names("cauchy exponential eye geometric log_normal normal_ normal_functional random uniform zero")
"""Operators that do not read their first argument: they write it, or create a tensor of its size."""

MOVES = _names(
    "as_strided_copy as_strided_scatter block_diag cat channel_shuffle concat constant_pad_nd copy diag "
    "diag_embed diagonal_copy diagonal_scatter embedding expand_copy fill flip fliplr flipud gather hstack "
    "im2col index index_copy index_fill index_put index_select masked_fill masked_scatter masked_select "
    "narrow_copy pad permute_copy pixel_shuffle pixel_unshuffle reflection_pad1d reflection_pad2d "
    "reflection_pad3d repeat repeat_interleave replication_pad1d replication_pad2d replication_pad3d roll rot90 "
    "scatter select_copy select_scatter slice_copy slice_scatter split_copy split_with_sizes_copy squeeze_copy "
    "stack t_copy take take_along_dim tile transpose_copy tril triu unbind_copy unfold_copy unsqueeze_copy "
    "vstack where _pad_circular _unsafe_index _unsafe_index_put _unsafe_masked_index"
)
"""Operators that move elements of their arguments, and constants, to other positions: run on states as on values."""

COPIES = _names(
    "alias_copy clone contiguous convert_element_type detach_copy device_put lift_fresh lift_fresh_copy reshape "
    "to view_copy _conj_copy _fw_primal_copy _neg_view_copy _reshape_copy _to_copy _unsafe_view"
)
"""Operators whose result has the elements of the first argument, in order."""

SHAPES = _names("_assert_tensor_metadata dim numel record_stream")
"""Operators that read no elements, in addition to those recognised by name."""

POINTWISE = _names("bernoulli dropout native_dropout")
"""Operators that are pointwise but not tagged so by torch."""

LINEAR = _names(
    "_adaptive_avg_pool2d _adaptive_avg_pool3d _convolution _fused_rms_norm _log_softmax _safe_softmax _softmax "
    "_scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_attention_math adaptive_avg_pool1d addbmm "
    "addmm addmv addr amax amin avg_pool1d avg_pool2d avg_pool3d baddbmm bilinear bmm convolution cumprod "
    "cumsum dot einsum group_norm layer_norm linalg_vector_norm linear log_softmax logsumexp matmul "
    "max_pool2d_with_indices mean mm mv native_group_norm native_layer_norm norm outer prod rms_norm "
    "scaled_dot_product_attention softmax std std_mean sum upsample_bilinear2d upsample_nearest1d "
    "upsample_nearest2d upsample_nearest3d var var_mean"
)
"""Operators that propagate NaN: a NaN in an element shows which results depend on it."""

PLACES = _names("index indices mask condition repeats")
"""Arguments of MOVES that determine the positions of elements."""

CONSTANTS = _names("value fill_value other self fill")
"""Arguments of MOVES that may be numbers instead of tensors; numbers are defined."""


@dataclass
class Argument:
    """One argument of a call: its name in the schema, its position, its value."""

    name: str
    position: str
    value: Any
    is_written: bool = False
    is_out: bool = False


@dataclass
class Pending:
    """Changes to the state of memory to make when a call has returned."""

    arguments: list[Argument]
    creates: bool = False
    result: Any = None  # states of the results: a tensor, a list of tensors, one level for all, or None
    is_copy: bool = False  # `result` is in element order, whatever the shape
    written: list[tuple[Tensor, Any]] = field(default_factory=list)
    watched: list[tuple[Tensor, Tensor, Tensor]] = field(default_factory=list)  # tensor, its contents, its state
    lengths: dict[int, int] = field(default_factory=dict)  # storage sizes of the arguments, in bytes
    reads: list[tuple[str, str, int, int]] = field(default_factory=list)  # position, name, unwritten elements, elements


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)


def _storage(tensor: Tensor) -> Any:
    """Return the storage of a strided tensor, else None."""
    try:
        return tensor.untyped_storage() if tensor.layout is torch.strided else None
    except (RuntimeError, NotImplementedError):
        return None


def _version(tensor: Tensor) -> int:
    try:
        return tensor._version
    except RuntimeError:  # an inference tensor
        return -1


def _bits(tensor: Tensor) -> Tensor:
    """Return the bytes of each element along an added last axis."""
    plain = tensor.detach().resolve_conj().resolve_neg().contiguous()
    return plain.reshape(-1).view(torch.uint8).reshape(*tensor.shape, plain.element_size())


@functools.cache
def _name(target: Any) -> str:
    """Return an operator's name without namespace, overload, and the underscore of an in-place operator."""
    name: str = target._overloadpacket.__name__ if isinstance(target, OpOverload) else ""
    return name[:-1] if name.endswith("_") and not name.endswith("__") else name


@functools.cache
def _kind(target: Any) -> str:
    """Return how an operator treats undefined elements."""
    if not isinstance(target, OpOverload) or target.namespace not in OWN:
        return "opaque"
    full, name = target._overloadpacket.__name__, _name(target)
    if (
        full in OVERWRITES
        or name in OVERWRITES
        or (name == "bernoulli" and target._overloadname not in ("default", "out"))
    ):
        return "overwrite"
    if name in COPIES:
        return "copy"
    if name in MOVES:
        return "move"
    returns = [r.alias_info for r in target._schema.returns]
    if any(alias is not None and not alias.is_write for alias in returns):
        return "view"
    if name.startswith("_foreach_"):
        return "overwrite" if name == "_foreach_zero" else "foreach"
    if name.endswith("_like") or full.startswith(("new_", "sym_", "is_", "size", "stride", "set_")) or name in SHAPES:
        return "shape"
    if torch.Tag.pointwise in target.tags or name in POINTWISE or _has_pointwise_variant(target):
        return "pointwise"
    return "linear" if name in LINEAR else "compute"


def _has_pointwise_variant(target: OpOverload) -> bool:
    """Return whether another overload or form is tagged as pointwise; in-place operators often are not tagged."""
    packet = getattr(torch.ops.aten, _name(target), None)
    overloads = packet.overloads() if packet is not None else []
    return any(torch.Tag.pointwise in getattr(packet, name).tags for name in overloads)


class Region:
    """The state of one storage: cells of `unit` bytes."""

    def __init__(self, storage: Any, unit: int, version: int) -> None:
        self.reference: Any = WeakReference(storage)
        self.unit = unit
        self.version = version
        self.cells = torch.zeros(-(-storage.nbytes() // unit), dtype=torch.uint8)

    def _view(self, tensor: Tensor) -> Tensor:
        """Return the cells of a tensor's elements, with an added last axis for the cells of one element."""
        unit = math.gcd(self.unit, tensor.element_size())
        if unit != self.unit:
            self.cells = self.cells.repeat_interleave(self.unit // unit)
            self.unit = unit
        k = tensor.element_size() // unit
        needed = -(-tensor.untyped_storage().nbytes() // unit)
        if needed > self.cells.numel():
            self.cells = torch.cat([self.cells, self.cells.new_zeros(needed - self.cells.numel())])
        strides = [*(stride * k for stride in tensor.stride()), 1]
        return self.cells.as_strided((*tensor.shape, k), strides, tensor.storage_offset() * k)

    def read(self, tensor: Tensor) -> Tensor:
        view = self._view(tensor)
        return view[..., 0] if view.shape[-1] == 1 else view.amax(-1)

    def write(self, tensor: Tensor, state: Any) -> None:
        view = self._view(tensor)
        try:
            view.copy_(state.unsqueeze(-1) if isinstance(state, Tensor) else torch.tensor(state, dtype=torch.uint8))
        except RuntimeError:  # elements overlap in memory
            self.cells.clamp_(min=_highest(state) if isinstance(state, Tensor) else state)


class Memory:
    """The state of all storages with undefined elements."""

    def __init__(self) -> None:
        self.regions: dict[int, Region] = {}
        self._call = 0
        self._n_operators = 0

    # ---- states of tensors ----

    def _region(self, tensor: Tensor) -> Region | None:
        storage = _storage(tensor) if self.regions else None
        region = None if storage is None else self.regions.get(storage._cdata)
        if region is not None and region.version != self._stamp(tensor):
            region.cells.clamp_(max=MAYBE)  # it was written to by code that was not observed
            region.version = self._stamp(tensor)
        return region

    def _stamp(self, tensor: Tensor) -> int:
        """Return a number that changes whenever the memory may have been written to unobserved."""
        version = _version(tensor)
        return version if version >= 0 else -self._call - 1

    def _find(self, tensor: Tensor) -> Tensor | None:
        region = self._region(tensor)
        if region is None:
            return None
        state = region.read(tensor)
        return state if bool(state.any()) else None

    def _state(self, tensor: Tensor) -> Tensor:
        state = self._find(tensor)
        return torch.zeros(tensor.shape, dtype=torch.uint8) if state is None else state

    def state(self, tensor: Tensor) -> Tensor | None:
        """Return the state of each element (n bytes in row-major order, on the host), None if all are defined."""
        try:
            state = self._find(tensor)
        except Exception as error:  # treat the elements as defined
            logger.debug("the state of a tensor: %s", error)
            state = None
        return None if state is None else state.contiguous()

    def _set(self, tensor: Tensor, state: Any) -> None:
        storage = _storage(tensor)
        if storage is None or storage.nbytes() == 0 or tensor.numel() == 0:
            return
        if isinstance(state, Tensor) and state.shape != tensor.shape:
            state = _highest(state)  # it is not known which elements
        region = self.regions.get(storage._cdata)
        if region is None:
            if not (bool(state.any()) if isinstance(state, Tensor) else state):
                return
            region = self.regions[storage._cdata] = Region(storage, tensor.element_size(), 0)
        region.write(tensor, state)
        region.version = self._stamp(tensor)
        if not bool(region.cells.any()):
            self.regions.pop(storage._cdata, None)

    def _sweep(self) -> None:
        """Remove the regions of freed storages."""
        for key in [key for key, region in list(self.regions.items()) if region.reference.expired()]:
            self.regions.pop(key, None)

    def begin_call(self) -> None:
        """Begin a call: writes since the last one are unknown for tensors without a version counter."""
        self._call += 1
        self._sweep()

    # ---- calls ----

    def before(self, target: Any, args: Sequence[Any], kwargs: dict[str, Any] | None, creates: bool) -> Pending | None:
        """Prepare for an operator that is about to run; return None if no undefined elements are involved."""
        self._n_operators += 1
        if self._n_operators % 16 == 0:
            self._sweep()
        tensors = list(_tensors((*args, *(kwargs or {}).values())))
        if not creates and not any(self._region(tensor) is not None for tensor in tensors):
            return None
        pending = Pending(_bind(target, args, kwargs or {}), creates)
        for tensor in tensors:
            storage = _storage(tensor)
            if storage is not None:
                pending.lengths[storage._cdata] = storage.nbytes()
        if not creates:
            self._try_plan(target, pending)
        elif _name(target) in ("resize", "resize_as"):
            pending.result = self._first(pending)
        return pending

    def _try_plan(self, target: Any, pending: Pending) -> None:
        try:
            self._plan(target, pending)
        except Exception as error:  # the model must run on
            logger.debug("%s on undefined memory: %s", target, error)
            pending.result = MAYBE
            pending.written = [(t, MAYBE) for a in pending.arguments if a.is_written for t in _tensors(a.value)]

    def _plan(self, target: Any, pending: Pending) -> None:
        kind = _kind(target)
        if kind in ("move", "linear") and _computes(pending.arguments, kind):
            kind = "compute"
        if kind in ("view", "shape"):
            pending.is_copy = kind == "view"
            pending.result = self._first(pending) if kind == "view" else None
        elif kind == "opaque":
            self._plan_opaque(target, pending)
        elif kind == "overwrite":
            self._finish(pending, 0)
        elif kind == "copy":
            pending.is_copy = True
            pending.result = self._first(pending)
        else:
            self._plan_elements(kind, target, pending)

    def _first(self, pending: Pending) -> Tensor | None:
        tensor = next(_tensors(pending.arguments[0].value), None) if pending.arguments else None
        return None if tensor is None else self._state(tensor)

    def _plan_elements(self, kind: str, target: OpOverload, pending: Pending) -> None:
        taken = [a for a in pending.arguments if not a.is_out]
        read = [a for a in taken if kind != "move" or a.name in PLACES]
        if _name(target) == "_foreach_copy":
            read = []
        self._note_reads(pending, read)
        level = self._level(read)
        try:
            if kind == "move":
                states = self._move(target, pending.arguments)
                if level > 0:  # the positions of the elements are not known
                    states = _map(states, lambda state: state.clamp(min=level))
            elif kind == "pointwise":
                states = self._pointwise(read)
            elif kind == "foreach":
                states = self._each(read or taken[1:2])
            elif kind == "linear":
                states = self._probe(target, pending.arguments, level)
            else:
                states = level
        except Exception as error:
            logger.debug("%s on undefined memory: %s", target, error)
            states = self._level(taken)
        self._finish(pending, states)

    def _finish(self, pending: Pending, states: Any) -> None:
        """Record these states for the results of the call, and for the arguments that it writes."""
        written = [a for a in pending.arguments if a.is_written]
        pending.result = states
        if written and isinstance(states, Tensor):
            tensors = list(_tensors(written[0].value))
            pending.written = [(tensors[0], states)] if len(written) == 1 and len(tensors) == 1 else []
            states = _highest(states)
        elif isinstance(states, list):
            tensors = list(_tensors([a.value for a in written]))
            pending.written = list(zip(tensors, states, strict=True)) if len(tensors) == len(states) else []
            states = max(map(_highest, states), default=0)
        if not pending.written:
            pending.written = [(tensor, states) for a in written for tensor in _tensors(a.value)]

    def _note_reads(self, pending: Pending, read: list[Argument]) -> None:
        for argument in read:
            is_list = not isinstance(argument.value, Tensor)
            for i, tensor in enumerate(_tensors(argument.value)):
                state = self._find(tensor)
                n = 0 if state is None else int((state == UNWRITTEN).sum())
                if n > 0:
                    position = f"{argument.position}.{i}" if is_list else argument.position
                    pending.reads.append((position, argument.name, n, tensor.numel()))

    def _level(self, read: list[Argument]) -> int:
        """Return the state of results that depend on all elements of the arguments."""
        states = [self._find(tensor) for argument in read for tensor in _tensors(argument.value)]
        return min(max((_highest(state) for state in states if state is not None), default=0), DERIVED)

    def _move(self, target: OpOverload, arguments: list[Argument]) -> Any:
        """Run the operator on states."""

        def replace(argument: Argument) -> Any:
            if argument.name in PLACES:
                return _map(argument.value, lambda tensor: tensor.detach().cpu())
            is_number = isinstance(argument.value, (int, float, complex)) and argument.name in CONSTANTS
            return 0 if is_number else _map(argument.value, self._state)

        args, kwargs = _unbind(arguments, replace)
        packet = getattr(getattr(torch.ops, target.namespace), _name(target))
        try:
            result = packet(*args, **kwargs)
        except (RuntimeError, NotImplementedError):  # not implemented for uint8
            args, kwargs = _map((args, kwargs), lambda t: t.float() if t.dtype is torch.uint8 else t)
            result = packet(*args, **kwargs)
        return _map(result, lambda state: state.to(torch.uint8), as_list=True)

    def _pointwise(self, read: list[Argument]) -> Tensor:
        states = [self._state(tensor) for argument in read for tensor in _tensors(argument.value)]
        return functools.reduce(torch.maximum, states).clamp(max=DERIVED)

    def _each(self, read: list[Argument]) -> list[Tensor]:
        """Combine lists element by element: the n-th result depends on the n-th tensors."""
        lists = [[self._state(tensor) for tensor in _tensors(argument.value)] for argument in read]
        longest = max(map(len, lists))
        groups = [[states[i] for states in lists if len(states) == longest] for i in range(longest)]
        level = DERIVED if read[0].name == "self" else UNWRITTEN  # a copy computes nothing
        return [functools.reduce(torch.maximum, group).clamp(max=level) for group in groups]

    def _probe(self, target: OpOverload, arguments: list[Argument], level: int) -> Any:
        """Run the operator with zeros and with NaN for the undefined elements; results that differ depend on them."""

        def run(filler: float) -> Any:
            def fill(tensor: Tensor) -> Tensor:
                state = self._find(tensor)
                if state is None:
                    return tensor
                if not tensor.is_floating_point():
                    raise TypeError("indices cannot be replaced")
                return tensor.detach().masked_fill((state > 0).to(tensor.device), filler)

            args, kwargs = _unbind([a for a in arguments if not a.is_out], lambda a: _map(a.value, fill))
            return _map(getattr(getattr(torch.ops, target.namespace), _name(target))(*args, **kwargs), as_list=True)

        if any(a.is_written and not a.is_out for a in arguments):
            raise TypeError("the operator writes to an argument")

        def differ(one: Any, other: Any) -> Any:
            if isinstance(one, (list, tuple)):
                return [differ(a, b) for a, b in zip(one, other, strict=True)]
            same = (one == other) | ((one != one) & (other != other))
            return (~same).to("cpu", torch.uint8) * level

        return differ(run(0.0), run(math.nan))

    def _plan_opaque(self, target: Any, pending: Pending) -> None:
        """Save the contents of the arguments that an unknown operator may write to, to detect the writes."""
        is_known = isinstance(target, OpOverload)
        given = []
        for argument in pending.arguments:
            for tensor in _tensors(argument.value):
                state = self._find(tensor)
                if state is not None and (argument.is_written or not is_known):
                    pending.watched.append((tensor, _bits(tensor).clone(), state.clone()))
                if state is not None and not argument.is_written:
                    given.append(state)
        pending.result = MAYBE if given else None

    def after(self, pending: Pending, result: Any) -> list[tuple[str, str, int, int]]:
        """Update the state after an operator; return its reads of memory that was never written.

        Returns
        -------
        list
            For each such argument: its position, its name, the number of unwritten elements, the number of elements.
        """
        try:
            self._apply(pending, result)
        except Exception as error:  # the model must run on
            logger.debug("the state of memory: %s", error)
            for argument in pending.arguments:
                for tensor in _tensors(argument.value):
                    self._degrade(tensor)
        return pending.reads

    def _apply(self, pending: Pending, result: Any) -> None:
        for tensor, bits, state in pending.watched:
            is_changed = (_bits(tensor) != bits).any(-1).cpu()
            self._set(tensor, state.clamp(max=MAYBE).masked_fill(is_changed, 0))
        for tensor, state in pending.written:
            self._set(tensor, state)
        if pending.creates:
            self._create(pending, result)
        elif pending.result is not None:
            self._set_results(pending, result)
        for argument in pending.arguments:
            for tensor in _tensors(argument.value) if argument.is_written else ():
                self._mark_observed(tensor)

    def _degrade(self, tensor: Tensor) -> None:
        """Set all undefined cells to MAYBE."""
        storage = _storage(tensor)
        region = None if storage is None else self.regions.get(storage._cdata)
        if region is not None:
            region.cells.clamp_(max=MAYBE)

    def _mark_observed(self, tensor: Tensor) -> None:
        """Note that the last write to the tensor was observed."""
        storage = _storage(tensor)
        region = None if storage is None else self.regions.get(storage._cdata)
        if region is not None:
            region.version = self._stamp(tensor)

    def _create(self, pending: Pending, result: Any) -> None:
        """Set the state of the result of `empty`, or of the bytes that `resize_` added."""
        for tensor in _tensors(result):
            storage = _storage(tensor)
            length = None if storage is None else pending.lengths.get(storage._cdata)
            if length is None:
                self._set(tensor, _grown(pending.result, tensor))
                continue
            grown = storage.nbytes() - length
            if grown > 0:
                plain = torch.empty(0, dtype=torch.uint8, device=tensor.device)
                self._set(plain.set_(storage, length, (grown,), (1,)), UNWRITTEN)

    def _set_results(self, pending: Pending, result: Any) -> None:
        states = pending.result
        for i, tensor in enumerate(_tensors(result)):
            storage = _storage(tensor)
            if storage is None or storage._cdata in pending.lengths:
                continue  # a view of an argument, or an argument: its cells are the argument's
            state = states[i] if isinstance(states, list) else states
            if pending.is_copy and isinstance(state, Tensor) and state.numel() == tensor.numel():
                state = state.reshape(tensor.shape)
            self._set(tensor, state)


def _computes(arguments: list[Argument], kind: str) -> bool:
    """Tell whether an operator of a kind does more than that with these arguments."""
    if kind == "linear":
        return any(a.name.startswith("dropout") and a.value for a in arguments)  # draws random numbers
    has_values = any(True for a in arguments if a.name not in PLACES for _ in _tensors(a.value))
    return not has_values or any(a.name in ("accumulate", "reduce") and a.value for a in arguments)


def _grown(before: Tensor | None, tensor: Tensor) -> Any:
    """Return the state of fresh memory; after a resize, it begins with the previous state."""
    if before is None:
        return UNWRITTEN
    state = torch.full((tensor.numel(),), UNWRITTEN, dtype=torch.uint8)
    n = min(before.numel(), tensor.numel())
    state[:n] = before.reshape(-1)[:n]
    return state.reshape(tensor.shape)


def _highest(state: Tensor) -> int:
    return int(state.max()) if state.numel() > 0 else 0


def _map(value: Any, function: Any = lambda tensor: tensor, *, as_list: bool = False) -> Any:
    """Apply a function to each tensor of lists, tuples and dicts."""
    if isinstance(value, Tensor):
        return function(value)
    if isinstance(value, dict):
        return {key: _map(item, function) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = [_map(item, function) for item in value]
        return items if as_list or isinstance(value, list) else tuple(items)
    return value


def _bind(target: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Argument]:
    schema = target._schema.arguments if isinstance(target, OpOverload) else []
    by_name = {a.name: a for a in schema}
    named = [(schema[i].name if i < len(schema) else str(i), str(i), value) for i, value in enumerate(args)]
    named += [(name, name, value) for name, value in kwargs.items()]
    bound = []
    for name, position, value in named:
        alias = by_name[name].alias_info if name in by_name else None
        is_written = alias is not None and alias.is_write
        bound.append(Argument(name, position, value, is_written, is_written and by_name[name].is_out))
    return bound


def _unbind(arguments: list[Argument], replace: Any) -> tuple[list[Any], dict[str, Any]]:
    args = [replace(a) for a in arguments if a.position.isdigit() and not a.is_out]
    return args, {a.name: replace(a) for a in arguments if not a.position.isdigit() and not a.is_out}
