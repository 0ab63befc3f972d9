"""The arguments of a recorded operator call: literals from the graph record, tensors and sizes from the dump."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from .. import _core
from .operators import NotReplayedError

__all__ = ["Arguments", "Node", "Record", "Saved", "Slots", "map_leaves", "read_file"]

DTYPES: dict[str, torch.dtype] = {
    str(dtype).removeprefix("torch."): dtype for dtype in vars(torch).values() if isinstance(dtype, torch.dtype)
}
"""torch's names of its dtypes."""

_FILE_DTYPES = {
    "<f4": torch.float32, "<f8": torch.float64, "<f2": torch.float16, "|b1": torch.bool, "|i1": torch.int8,
    "|u1": torch.uint8, "<i2": torch.int16, "<i4": torch.int32, "<i8": torch.int64, "<u2": torch.uint16,
    "<u4": torch.uint32, "<u8": torch.uint64, "<c8": torch.complex64, "<c16": torch.complex128,
}  # fmt: skip

_FORMATS = {
    f"torch.{name}": getattr(torch, name)
    for name in ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")
}

MAX_GAPS = 4
"""A strided argument is rebuilt if its elements span at most this many times their number."""


def restride(tensor: Tensor, strides: Sequence[int]) -> Tensor:
    """Return equal values with other strides, as far as the elements do not overlap; else the tensor itself."""
    sizes = tensor.shape
    if len(strides) != len(sizes) or tensor.numel() == 0:
        return tensor
    if all(n == 1 or a == b for n, a, b in zip(sizes, strides, tensor.stride(), strict=True)):
        return tensor
    expanded = [n > 1 and stride == 0 for n, stride in zip(sizes, strides, strict=True)]
    core = tensor[tuple(slice(0, 1) if one else slice(None) for one in expanded)]
    extent = 1
    for stride, n in sorted((stride, n) for stride, n in zip(strides, core.shape, strict=True) if n > 1):
        if stride < extent:
            return tensor
        extent += stride * (n - 1)
    if extent > MAX_GAPS * core.numel() + 64:
        return tensor
    memory = torch.zeros(extent, dtype=tensor.dtype) if extent > core.numel() else tensor.new_empty(extent)
    return memory.as_strided(core.shape, [max(0, s) for s in strides]).copy_(core).expand(sizes)


class Saved:
    """One saved tensor: its values in the forms that the runs of an operator need.

    Attributes
    ----------
    position
        "0", "1.2", or a keyword.
    dtype
        The original one; the file's is wider for bfloat16 and the like.
    """

    def __init__(self, position: str, name: str, strides: Sequence[int] | None, load: Callable[[], Tensor]) -> None:
        self.position = position
        self.name = name
        self.strides = strides
        self._load = load

    @cached_property
    def dtype(self) -> torch.dtype:
        if self.name not in DTYPES:
            raise NotReplayedError(f"dtype {self.name}")
        return DTYPES[self.name]

    @cached_property
    def in_file(self) -> Tensor:
        """The values as they are in a file, not to be written to."""
        return self._load()

    def original(self, fresh: bool = False) -> Tensor:
        """Return the tensor in its original dtype and strides; `fresh`: in memory of its own."""
        saved = self.in_file
        tensor = saved.to(self.dtype)
        if self.strides is not None:
            tensor = restride(tensor, self.strides)
        return tensor.clone() if fresh and tensor.data_ptr() == saved.data_ptr() else tensor

    def double(self, fresh: bool = False) -> Tensor:
        """Return the tensor in float64 or complex128 if it is one of floats, else in its original dtype."""
        if not (self.dtype.is_floating_point or self.dtype.is_complex):
            return self.original(fresh)
        saved = self.in_file
        if self.strides is not None:
            saved = restride(saved, self.strides)
        return saved.to(torch.complex128 if self.dtype.is_complex else torch.float64, copy=fresh)

    def number(self, kind: type) -> Any:
        """Return the only element."""
        tensor = self.in_file
        if tensor.numel() != 1:
            raise NotReplayedError("a number is not recorded as one")
        return kind(tensor.item())


def read_file(tensors: _core.Tensors, row: int) -> Tensor:
    """Return the values of a tensor's file.

    Raises
    ------
    NotReplayedError
        It cannot be read, or torch has no such dtype.
    """
    try:
        values = tensors.open(row)
    except (OSError, ValueError, LookupError, RuntimeError):
        raise NotReplayedError("a file cannot be read") from None
    dtype = _FILE_DTYPES.get(values.descr)
    if dtype is None:
        raise NotReplayedError(f"dtype {tensors[row]['dtype']}")
    if 0 in values.shape:
        return torch.empty(values.shape, dtype=dtype)
    flat = torch.frombuffer(values, dtype=dtype)
    if values.fortran_order:
        return flat.view(values.shape[::-1]).permute(*reversed(range(len(values.shape))))
    return flat.view(values.shape)


def map_leaves(tree: Any, function: Callable[[Any], Any]) -> Any:
    """Apply a function to the leaves of lists, tuples and dicts."""
    if isinstance(tree, (list, tuple)):
        return type(tree)([map_leaves(item, function) for item in tree])
    if isinstance(tree, dict):
        return {key: map_leaves(item, function) for key, item in tree.items()}
    return function(tree)


def _leaves(tree: Any) -> Iterator[Any]:
    if isinstance(tree, (list, tuple)):
        for item in tree:
            yield from _leaves(item)
    elif isinstance(tree, dict):
        yield from _leaves(list(tree.values()))
    else:
        yield tree


@dataclass
class Arguments:
    """Arguments of a call; tensors are `Saved`."""

    args: list[Any]
    kwargs: dict[str, Any]

    @cached_property
    def tensors(self) -> list[Saved]:
        """The tensors, in order."""
        return [leaf for leaf in _leaves([self.args, self.kwargs]) if isinstance(leaf, Saved)]


@dataclass
class Node:
    """A node of a record: the JSON of docs/graph-json.md."""

    order: int
    fields: dict[str, Any]
    literals: str | None = None  # for `Call.identity`

    @property
    def name(self) -> str:
        return str(self.fields["name"])

    @property
    def python(self) -> str:
        return str(self.fields["python"])

    @property
    def source(self) -> tuple[str, int, str, str]:
        """File, line, function and code; empty if not known."""
        found = self.fields["source"]
        if found is None:
            return "", 0, "", ""
        return found["file"] or "", found["line"] or 0, found["function"] or "", found["code"] or ""

    @property
    def module(self) -> str:
        return self.fields["module_path"] or ""

    def values(self) -> Iterator[tuple[str, str, Any]]:
        """Return position, name in the schema and value of each argument."""
        names = self.fields.get("arg_names") or []
        for i, value in enumerate(self.fields["args"]):
            yield str(i), (names[i] if i < len(names) else None) or "", value
        for name, value in self.fields["kwargs"]:
            yield name, name, value


class Record:
    """A graph record with its nodes decoded."""

    def __init__(self, graph: _core.Graph) -> None:
        decoded = json.loads(_core.print_graph(graph, "json"))
        self.nodes = [Node(order, fields) for order, fields in enumerate(decoded["nodes"])]

    def yields(self, index: int) -> Any:
        """Return the description of a node's result."""
        if not 0 <= index < len(self.nodes):
            raise NotReplayedError("an invalid record")
        return self.nodes[index].fields["yields"]


Columns = Mapping[str, Sequence[Any]]


class Slots:
    """The tensors of one operator call, by kind and position.

    Parameters
    ----------
    load
        Returns the values of a row, as they are or would be in a file.
    columns
        The fields of the rows, as `_core.Tensors.columns` names them.
    rows
        Those of the call.
    """

    def __init__(self, load: Callable[[int], Tensor], columns: Columns, rows: Sequence[int]) -> None:
        self._load = load
        self._columns = columns
        self.rows = {(columns["io"][row], columns["position"][row]): row for row in rows}

    def count_elements(self) -> int:
        """Return the number of elements of all tensors."""
        return sum(math.prod(self.field(row, "shape") or ()) for row in self.rows.values())

    def field(self, row: int, name: str) -> Any:
        return self._columns[name][row]

    def place(self, row: int) -> tuple[str, str]:
        """Return "INPUT", "OUTPUT" or "INOUT", and the position."""
        return self.field(row, "io"), self.field(row, "position")

    def saved(self, row: int) -> Saved:
        """Return the tensor of a row; `NotReplayedError` if it has no values."""
        skipped = self.field(row, "skipped")
        if skipped is not None:
            raise NotReplayedError(f"an input was not saved: {skipped}")
        if self.field(row, "path") is None:
            raise NotReplayedError("only statistics were recorded")
        if self.field(row, "layout") not in (None, "", "torch.strided"):
            raise NotReplayedError(f"layout {self.field(row, 'layout')}")
        strides = self.field(row, "strides")
        position, dtype = self.field(row, "position"), self.field(row, "dtype")
        return Saved(position, dtype or "", strides, lambda: self._load(row))

    def input(self, position: str, yields: Any) -> Any:
        """Return the value that another node gave to a position."""
        if isinstance(yields, (list, dict)) and (isinstance(yields, list) or "tuple" in yields):
            items = yields if isinstance(yields, list) else yields["tuple"]
            return [self.input(f"{position}.{j}", item) for j, item in enumerate(items)]
        row = self.rows.get(("INPUT", position))
        if row is None:
            return self._element(position)
        if self.field(row, "skipped") == "None":
            return None
        saved = self.saved(row)
        kind = _number_kind(yields, saved.name)
        return saved if kind is None else saved.number(kind)

    def _element(self, position: str) -> Any:
        """Return a number that was saved as an element of a list."""
        whole, _, place = position.rpartition(".")
        row = self.rows.get(("INPUT", whole))
        if row is None or not place.isdecimal():
            raise NotReplayedError("an input was not dumped")
        elements = self.saved(row).in_file
        if elements.ndim != 1 or int(place) >= len(elements):
            raise NotReplayedError("an input was not dumped")
        return elements[int(place)].item()


def _number_kind(yields: Any, dtype: str) -> type | None:
    """Return the type of a number that a node yields, or None for a tensor."""
    if isinstance(yields, bool):
        return bool
    if isinstance(yields, int):
        return int
    if isinstance(yields, dict):
        for name, kind in (("symint", int), ("symfloat", float), ("symbool", bool), ("int", int), ("float", float)):
            if name in yields:
                return kind
    return None


def _hinted(value: dict[str, Any]) -> Any:
    hint = value.get("hint")
    if hint is None:
        raise NotReplayedError("a symbolic size without a value")
    return int(hint) if "symint" in value else bool(hint) if "symbool" in value else float(hint)


def _known(table: Mapping[str, Any], name: Any, what: str) -> Any:
    if name not in table:
        raise NotReplayedError(f"{what} {name}")
    return table[name]


def _special(value: dict[str, Any]) -> Any:
    """Return a literal that is written as an object with one member."""
    kind = next(iter(value))
    content = value[kind]
    if kind in ("float", "int"):
        return {"float": float, "int": int}[kind](content)
    if kind == "complex":
        return complex(*(float(_special(part) if isinstance(part, dict) else part) for part in content))
    if kind == "string":
        return str(content)
    if kind == "dtype":
        return _known(DTYPES, str(content).removeprefix("torch."), "dtype")
    if kind == "device":
        return torch.device("cpu")
    if kind == "layout":
        return _known({"torch.strided": torch.strided}, content, "layout")
    if kind == "memory_format":
        return _known(_FORMATS, content, "memory format")
    if kind.startswith("sym"):
        return _hinted(value)
    if kind == "unknown":
        raise NotReplayedError(str(content))
    raise NotReplayedError("higher-order operator" if kind == "graph" else "an argument that is not recorded")


class Decoder:
    """Turns the values of a record into arguments."""

    def __init__(self, record: Record, slots: Slots) -> None:
        self.record = record
        self.slots = slots

    def value(self, value: Any, position: str) -> Any:
        if value is None or isinstance(value, (bool, int)):
            return value
        if isinstance(value, list) or "tuple" in value:
            items = value if isinstance(value, list) else value["tuple"]
            return [self.value(item, f"{position}.{j}") for j, item in enumerate(items)]
        if "node" in value:
            return self.slots.input(position, self.record.yields(value["node"]))
        return _special(value)

    def arguments(self, node: Node) -> Arguments:
        """Return the arguments of a node.

        Raises
        ------
        NotReplayedError
            Not all of them are known.
        """
        found = Arguments([], {})
        for position, name, value in node.values():
            dropped = name in ("generator", "pin_memory")
            decoded = None if dropped else self.value(value, position)
            if position.isdecimal():
                found.args.append(decoded)
            elif not dropped:
                found.kwargs[position] = decoded
        return found


def quiet_read_only_buffers() -> None:
    """Use up the one warning that torch gives about read-only memory; nothing here writes to files."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.frombuffer(b"\0", dtype=torch.uint8)
