"""Dumps without an index (TorchAir's own): operator calls by what their files settle, and by another dump's record.

The names of files give node, operator, and position; a file gives values and shape. Numbers and lists of them are saved
as tensors, None as a pickled object, keyword arguments not at all. bfloat16 is saved as float32.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..reading import DumpReader, GraphReader
from .arguments import DTYPES, Columns, Node, Record, Saved, Slots
from .operators import NotReplayedError, find_operator

__all__ = ["FileRecord", "FileSlots", "find_record"]

_IN_FLOAT32 = ("bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")
"""Dtypes that are saved as float32."""

_WITHOUT_EFFECT = ("memory_format", "device", "layout", "pin_memory", "non_blocking", "generator")
"""Keyword arguments that do not change a value."""

_KINDS = ({"tensor": None}, {"int": None}, {"float": None})
"""What the nodes of a `FileRecord` yield."""
_TENSOR, _INT, _FLOAT = ({"node": kind} for kind in range(len(_KINDS)))

_NO_LITERALS = "no index, and the files do not settle all arguments"

_OBJECT = re.compile(rb"'descr': *'\|O'")


def _has_values_of(values: Tensor, name: str) -> bool:
    """Return whether every element of a float32 tensor is a number of a coarser dtype."""
    return bool(torch.isclose(values.to(DTYPES[name]).to(values.dtype), values, 0, 0, equal_nan=True).all())


class FileSlots(Slots):
    """The saved tensors of one call, with dtypes and shapes from their files.

    Parameters
    ----------
    dtypes
        The dtypes of the same call in another dump, by kind and position: for those that a file does not tell apart.
    """

    def __init__(
        self,
        load: Callable[[int], Tensor],
        columns: Columns,
        rows: Sequence[int],
        dtypes: dict[tuple[str, str], str],
    ) -> None:
        super().__init__(load, columns, rows)
        self._dtypes = dtypes
        self._files: dict[int, tuple[str, tuple[int, ...]]] = {}

    def file(self, row: int) -> tuple[str, tuple[int, ...]]:
        """Return dtype and shape of a file; "", () if it has no values that can be read."""
        if row not in self._files:
            try:
                values = self._saved(row, "").in_file
                self._files[row] = str(values.dtype).removeprefix("torch."), tuple(values.shape)
            except NotReplayedError:
                self._files[row] = "", ()
        return self._files[row]

    def _saved(self, row: int, dtype: str) -> Saved:
        return Saved(self._columns["position"][row], dtype, None, lambda: self._load(row))

    def saved(self, row: int) -> Saved:
        if self.file(row)[0] == "":
            raise NotReplayedError("an input was not dumped as a tensor")
        return super().saved(row)

    def field(self, row: int, name: str) -> Any:
        if name == "shape":
            return self.file(row)[1]
        return self._dtype(row) if name == "dtype" else super().field(row, name)

    def _dtype(self, row: int) -> str:
        name = self.file(row)[0]
        if name != "float32":
            return name
        if self.place(row)[0] == "INPUT" and self._result_dtype not in _IN_FLOAT32:
            return name
        return self._coarse(row)

    def _coarse(self, row: int) -> str:
        """Return the dtype of values that are saved as float32."""
        given = self._dtypes.get(self.place(row), "")
        values = self._saved(row, "float32").in_file
        names = [given] if given in _IN_FLOAT32 else ["bfloat16"]
        return next((name for name in names if values.numel() > 0 and _has_values_of(values, name)), "float32")

    @cached_property
    def _result_dtype(self) -> str:
        """The coarsest dtype of the results: if it is bfloat16, inputs with such values are too."""
        results = [row for row in self.rows.values() if self.place(row)[0] != "INPUT"]
        found = [self._coarse(row) for row in results if self.file(row)[0] == "float32"]
        return found[0] if found and all(name != "float32" for name in found) else "float32"

    def is_none(self, row: int) -> bool:
        """Return whether a file is a pickled object: None, where a schema allows that."""
        with Path(self._columns["path"][row]).open("rb") as file:
            return _OBJECT.search(file.read(256)) is not None


class FileRecord(Record):
    """Stands for the graph record of calls that only their files describe."""

    def __init__(self) -> None:
        fields = {"op": "unknown", "target": "", "name": "", "flags": []}
        self.nodes = [Node(order, {**fields, "yields": kind}) for order, kind in enumerate(_KINDS)]

    @staticmethod
    def node(order: int, name: str, target: str, slots: FileSlots) -> Node:
        """Return a node whose arguments are what the files give."""
        python = f"torch.ops.{target}"
        fields: dict[str, Any] = {
            "name": name, "op": "call_function", "target": target, "python": python, "args": [], "kwargs": [],
            "source": None, "module_path": None, "flags": [],
        }  # fmt: skip
        try:
            fields["args"], fields["kwargs"] = _arguments(python, slots)
        except (NotReplayedError, OSError) as error:
            fields["args"] = [{"unknown": str(error)}]
        return Node(order, fields)


def _arguments(python: str, slots: FileSlots) -> tuple[list[Any], list[list[Any]]]:
    """Return the arguments of a call as a record has them.

    Raises
    ------
    NotReplayedError
        The files do not settle them.
    """
    function = find_operator(python).function
    if not isinstance(function, torch._ops.OpOverload):
        raise NotReplayedError(_NO_LITERALS)
    args: list[Any] = []
    kwargs: list[list[Any]] = []
    for i, argument in enumerate(function._schema.arguments):
        name, kind = argument.name, str(argument.type)
        is_saved = any(place == ("INPUT", str(i)) or place[1].startswith(f"{i}.") for place in slots.rows)
        if not argument.kwarg_only:
            if is_saved and len(args) == i:
                args.append(_value(str(i), kind, slots))
            elif is_saved or not argument.has_default_value():  # defaults at the end have no file
                raise NotReplayedError("an input was not dumped")
        elif name == "dtype":
            result = next((row for row in slots.rows.values() if slots.place(row)[0] == "OUTPUT"), None)
            if result is not None:
                kwargs.append([name, {"dtype": slots.field(result, "dtype")}])
        elif name not in _WITHOUT_EFFECT:
            raise NotReplayedError(_NO_LITERALS)
    return args, kwargs


def _value(position: str, kind: str, slots: FileSlots) -> Any:
    """Return the value of a positional argument of a type of the schema."""
    is_optional = kind.startswith("Optional[")
    base = kind.removeprefix("Optional[").removesuffix("]") if is_optional else kind
    row = slots.rows.get(("INPUT", position))
    if row is None:
        return _items(position, slots)
    dtype, shape = slots.file(row)
    if dtype == "" and is_optional and slots.is_none(row):
        return None
    if base == "Tensor" and dtype:
        return _FLOAT if dtype == "float64" and shape == () and position != "0" else _TENSOR
    if base in ("int", "float", "bool", "number", "Scalar") and dtype and shape == ():
        return _FLOAT if dtype == "float64" else slots.saved(row).number(bool if dtype == "bool" else int)
    if base in ("List[int]", "List[bool]", "List[float]") and dtype and len(shape) <= 1:
        numbers = slots.saved(row).in_file.reshape(-1).tolist()
        return numbers if base == "List[bool]" else [{base[5:-1]: number} for number in numbers]
    raise NotReplayedError(_NO_LITERALS)


def _items(position: str, slots: FileSlots) -> list[Any]:
    """Return the items of a list of tensors."""
    n = sum(place[0] == "INPUT" and place[1].startswith(f"{position}.") for place in slots.rows)
    if any(("INPUT", f"{position}.{j}") not in slots.rows for j in range(n)):
        raise NotReplayedError("an input was not dumped")
    return [_TENSOR] * n


def find_record(graph: GraphReader, names: set[tuple[str, str]], other: DumpReader) -> GraphReader | None:
    """Return the graph of another dump that has the most nodes of the same name and operator, or None."""
    ranks = {rank.rank: rank for rank in other.ranks}
    rank = ranks.get(graph.rank.rank) or next(iter(ranks.values()), None)
    best: tuple[int, bool] = (0, False)
    found = None
    for candidate in rank.graphs if rank is not None else ():
        nodes = {(node.name, node.target) for node in candidate.nodes}
        likeness = len(nodes & names), candidate.graph == graph.graph
        if likeness[0] > 0 and likeness > best:
            best, found = likeness, candidate
    return found
