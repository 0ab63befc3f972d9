"""Reading a dump: ranks, graphs, steps, nodes and tensors, each loaded on first access."""

from __future__ import annotations

import difflib
import errno
import html
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from . import _core
from .lazy import LazyList
from .paths import expand

if TYPE_CHECKING:
    import pandas

__all__ = [
    "DumpReader",
    "GraphReader",
    "NodeReader",
    "PatternError",
    "RankReader",
    "StepReader",
    "Tensor",
    "TensorList",
    "open_dump",
]

SHOWN = 12
"""Maximum number of rows of a table in a terminal or a notebook."""

_IO = {"INPUT": 0, "OUTPUT": 1, "INOUT": 2}
_STATS = ("count", "min", "max", "mean", "std", "rms", "l2_norm", "abs_max")
_COUNTS = ("nan_count", "pos_inf_count", "neg_inf_count", "zero_count", "subnormal_count")


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, (float, complex)) else "" if value is None else str(value)


def _rows(header: Sequence[str], rows: Iterable[Sequence[str]], total: int) -> str:
    """Return an aligned table, with a last line for the number of omitted rows."""
    table = [list(header), *(list(row) for row in rows)]
    widths = [max(len(row[k]) for row in table) for k in range(len(header))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]
    if total > len(table) - 1:
        lines.append(f"... {total - len(table) + 1:,} more")
    return "\n".join(lines)


def _html_rows(header: Sequence[str], rows: Iterable[Sequence[str]], total: int) -> str:
    def line(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    body = [line(row, "td") for row in rows]
    if total > len(body):
        body.append(f"<tr><td colspan={len(header)}>... {total - len(body):,} more</td></tr>")
    return f"<table><thead>{line(header, 'th')}</thead><tbody>{''.join(body)}</tbody></table>"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _hint(name: str, known: Iterable[str]) -> str:
    """Suggest a similar name, one that contains the given name, or the longest one that is a prefix of it."""
    names = list(dict.fromkeys(known))
    near = difflib.get_close_matches(name, names, n=1)
    if not near and len(name) > 1:
        near = [other for other in names if name.lower() in other.lower()]
        near = near or sorted((other for other in names if name.startswith(other)), key=len, reverse=True)
    return f"; did you mean {near[0]!r}?" if near else ""


class PatternError(LookupError, ValueError):
    """A pattern that matches nothing; the message suggests the nearest name."""


class Fields:
    """Attributes from a dict made by the extension."""

    __slots__ = ("_fields",)

    def __init__(self, fields: dict[str, Any]) -> None:
        self._fields = fields

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_"):
            try:
                return self._fields[name]
            except KeyError:
                pass
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._fields]


def _array_of(values: _core.Values, path: str) -> np.ndarray[Any, Any]:
    """Return a file's values like NumPy's memory map, but without an open descriptor."""
    order: Literal["C", "F"] = "F" if values.fortran_order else "C"
    buffer: Any = values  # Python 3.11 has no type for buffers
    array = np.ndarray.__new__(np.memmap, values.shape, np.dtype(values.descr), buffer, 0, None, order)
    vars(array).update(_mmap=values, filename=str(Path(path).absolute()), mode="r")
    return array


class Tensor:
    """One saved tensor.

    Attributes
    ----------
    name
        The full file name without time stamp, such as "add-aten.add.Tensor.INPUT.0".
    node, target, io, position, arg_name
        The node, its target, "INPUT", "OUTPUT" or "INOUT", the position ("0", "1.2", a keyword), and the argument's
        name in the schema.
    rank, graph, step, order
        Rank, graph and step; `order` is the index of its node in execution order.
    dtype, shape, strides, device
        Those of the original tensor; dtype is torch's name, such as "bfloat16". `shape` is that of the saved array.
    saved_dtype, bytes, hash, path
        Those of the file. `path` is None if there is no file.
    skipped
        The argument or the reason if no value was saved, such as "None" or "meta tensor".
    min, max, mean, std, rms, l2_norm, abs_max, count, nan_count, ...
        Statistics, from the index or computed from the file.
    """

    def __init__(self, tensors: _core.Tensors, index: int) -> None:
        self._tensors = tensors
        self._index = index

    @cached_property
    def _fields(self) -> dict[str, Any]:
        return self._tensors[self._index]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._fields:
            raise AttributeError(f"a tensor has no attribute {name!r}")
        value = self._fields[name]
        if value is None and self._fields["skipped"] is None and self._fields["path"] is not None:
            self._load(name)
            value = self._fields[name]
        return value

    def _load(self, name: str) -> None:
        """Load from the file a field that the index does not have."""
        needs_data = name in _STATS or name in _COUNTS or name == "hash"
        known = self._fields["count"] if needs_data else self._fields["dtype"]
        if known is not None or (name not in ("dtype", "shape", "strides", "saved_dtype", "bytes") and not needs_data):
            return
        (self._tensors.load_stats if needs_data else self._tensors.load_meta)(self._index)
        self.__dict__.pop("_fields", None)

    @property
    def place(self) -> str:
        """INPUT.0, OUTPUT.1, INPUT.alpha, ...; "" for a file of an unknown operator."""
        return f"{self._fields['io']}.{self._fields['position']}" if self._fields["io"] else ""

    @property
    def stats(self) -> dict[str, Any]:
        """All statistics."""
        return {name: getattr(self, name) for name in (*_STATS, *_COUNTS)}

    def numpy(self) -> np.ndarray[Any, Any]:
        """Return the values as a read-only array, mapped from the file.

        bfloat16 and the float8 types are returned as float32, complex32 as complex64, without loss: NumPy does not have
        these types.

        Raises
        ------
        LookupError
            No value was saved: the dump has statistics only, or `skipped` is the reason.
        OSError, ValueError
            The file is missing, truncated, or not an .npy file; object arrays are never unpickled.
        """
        path = self._fields["path"]
        if path is None or self._fields["skipped"] is not None:
            what = self._fields["skipped"] or "only statistics were recorded"
            raise LookupError(f"{self._fields['name']} has no file: {what}")
        if Path(path).is_symlink():
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        try:
            return _array_of(self._tensors.open(self._index), path)
        except ValueError:  # a dtype that tensors do not have, such as dates: let NumPy read it or raise
            pass
        try:
            array: np.ndarray[Any, Any] = np.load(path, mmap_mode="r", allow_pickle=False)
        except OSError:
            raise
        except Exception:  # an array without elements cannot be mapped
            try:
                array = np.load(path, allow_pickle=False)
            except (OSError, MemoryError, ValueError):
                raise
            except Exception as error:  # NumPy's reader passes on EOFError, OverflowError and tokenizer errors
                raise ValueError(f"{path}: {error}") from None
            array.flags.writeable = False
        return array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        array = np.asarray(self.numpy(), dtype)
        return array.copy() if copy else array

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._fields]

    def __repr__(self) -> str:
        fields = self._fields
        if fields["skipped"] is not None:
            return f"<Tensor {fields['name']}: {fields['skipped']}, not saved>"
        return f"<Tensor {fields['name']}: {self.dtype}{list(self.shape or ())}>"

    def _row(self) -> list[str]:
        fields = self._fields
        where = [_number(fields[name]) for name in ("rank", "graph", "step")]
        if fields["skipped"] is not None:
            return [*where, fields["node"] or fields["name"], self.place, fields["skipped"], "", "", "", ""]
        try:
            shape = "x".join(map(str, self.shape or ())) or "scalar"
            values = [_number(getattr(self, name)) for name in ("min", "max", "mean")]
        except (OSError, ValueError) as error:
            return [*where, fields["node"] or fields["name"], self.place, str(error), "", "", "", ""]
        return [*where, fields["node"] or fields["name"], self.place, str(self.dtype), shape, *values]


_TENSOR_HEADER = ("rank", "graph", "step", "node", "place", "dtype", "shape", "min", "max", "mean")


class TensorList(LazyList[Tensor]):
    """Tensors of a dump, in order of rank, graph, step and execution; loaded on access."""

    def __init__(self, tensors: _core.Tensors, indices: Sequence[int] | None = None) -> None:
        super().__init__(range(len(tensors)) if indices is None else indices)
        self._tensors = tensors

    def _item(self, index: int) -> Tensor:
        return Tensor(self._tensors, index)

    def _subset(self, indices: Sequence[int]) -> Self:
        return type(self)(self._tensors, indices)

    def to_pandas(self) -> pandas.DataFrame:
        """Return a table with one row per tensor: rank, graph, step, node, dtype, shape, statistics, file.

        Fields that are not in the index (as in TorchAir's own dumps) are read from the files first.
        """
        import pandas

        for tensor in self:
            try:
                _ = tensor.count
            except (OSError, ValueError):
                continue  # text, or a file that cannot be read: the row has the known fields
        frame = pandas.DataFrame(self._tensors.columns())
        return frame if len(self) == len(self._tensors) else frame.iloc[list(self._indices)].reset_index(drop=True)

    def __repr__(self) -> str:
        rows = (tensor._row() for tensor in self[:SHOWN])
        return f"{len(self):,} tensors\n{_rows(_TENSOR_HEADER, rows, len(self))}"

    def _repr_html_(self) -> str:
        rows = (tensor._row() for tensor in self[:SHOWN])
        return f"<p>{len(self):,} tensors</p>{_html_rows(_TENSOR_HEADER, rows, len(self))}"


class NodeReader(Fields):
    """One node of a graph.

    Attributes
    ----------
    name, target, order
        As in the graph; `order` is its index in order of execution.
    source_file, source_line, source_function, source_code, stack
        Its source; "" and 0 if not known.
    module_path, module_type
        The innermost module.
    skipped
        Why it is not dumped, or None if it is dumped.
    """

    def __init__(self, graph: GraphReader, fields: dict[str, Any]) -> None:
        super().__init__(fields)
        self._graph = graph

    def tensors(self, step: int = -1, io: str | None = None) -> TensorList:
        """Return its tensors in one step, or in all steps (-1)."""
        found = self._graph.tensors(step=step, io=io)
        return found.where(lambda tensor: tensor.order == self.order)

    def __repr__(self) -> str:
        where = f" ({self.source_file}:{self.source_line})" if self.source_file else ""
        skipped = f", not dumped: {self.skipped}" if self.skipped else ""
        return f"<Node {self.name} = {self.target}{where}{skipped}>"


class StepReader(Fields):
    """One call of a graph.

    Attributes
    ----------
    step, call
        Its number in the graph, and in the whole process (-1 if not known).
    state, reason
        "whole", "failed" or "partial", and the reason.
    folder, started_us, ended_us
        The folder of its files; microseconds since 1970, UTC.
    """

    def __init__(self, graph: GraphReader, fields: dict[str, Any]) -> None:
        super().__init__(fields)
        self._graph = graph

    def tensors(self, pattern: str | None = None, io: str | None = None) -> TensorList:
        """Return its tensors, all or those matching a pattern (node, target, module path, tensor name)."""
        whole = self.state == "whole"
        found = self._graph.tensors(pattern, step=self.step if whole else -1, io=io, incomplete=not whole)
        if whole:
            return found
        if self.call >= 0:  # call numbers are unique in a process; a dump of statistics has no folders
            return found.where(lambda tensor: tensor.state == self.state and tensor.call == self.call)
        return found.where(
            lambda tensor: tensor.state == self.state and str(tensor.path or "").startswith(self.folder + os.sep)
        )

    def __repr__(self) -> str:
        return f"<Step {self.step} of graph_{self._graph.graph}{'' if self.state == 'whole' else ': ' + self.state}>"


class GraphReader(Fields):
    """One graph of a dump.

    Attributes
    ----------
    graph, kind
        Its number G, and "inference", "forward" or "backward" (None if not known).
    strict_key, structural_key, occurrence
        The keys that pair it with graphs of other dumps.
    n_nodes, n_dumped, n_steps, path
        Counts, and the folder graph_{G}.
    """

    def __init__(self, dump: DumpReader, run: int, index: int, fields: dict[str, Any]) -> None:
        super().__init__(fields)
        self._dump = dump
        self._place = (run, index)

    @cached_property
    def steps(self) -> list[StepReader]:
        """Its calls, including failed and partial ones."""
        return [StepReader(self, fields) for fields in self._dump._reader.steps(*self._place)]

    @cached_property
    def nodes(self) -> list[NodeReader]:
        """Its nodes in order of execution."""
        return [NodeReader(self, fields) for fields in self._dump._reader.nodes(*self._place)]

    @cached_property
    def record(self) -> _core.Graph:
        """The graph record. LookupError if the dump has no index."""
        return self._dump._reader.record(*self._place)

    @property
    def rank(self) -> RankReader:
        """Its rank."""
        rank: RankReader = self._dump.ranks[self._fields["rank_i"]]
        return rank

    def node(self, name: str) -> NodeReader:
        """Return the node with a name. LookupError if there is none."""
        for node in self.nodes:
            if node.name == name:
                return node
        raise LookupError(f"graph_{self.graph} has no node {name!r}{_hint(name, (node.name for node in self.nodes))}")

    def tensors(
        self, pattern: str | None = None, *, step: int = -1, io: str | None = None, incomplete: bool = False
    ) -> TensorList:
        """Return its tensors; see `DumpReader.tensors`."""
        rank = self.rank
        found = self._dump.tensors(
            pattern, run=self.run, rank=rank.rank, graph=self.graph, step=step, io=io, incomplete=incomplete
        )
        if sum(other.rank == rank.rank for other in self._dump.ranks) == 1:
            return found
        return found.where(lambda tensor: tensor.world_size == rank.world_size)

    def _row(self) -> list[str]:
        return [_number(self.rank.rank), str(self.graph), self.kind or "", str(self.n_nodes), str(self.n_dumped),
                str(self.n_steps)]  # fmt: skip

    def __repr__(self) -> str:
        kind = f"{self.kind}, " if self.kind else ""
        return f"<Graph {self.graph}: {kind}{_count(self.n_dumped, 'node')} dumped, {_count(self.n_steps, 'step')}>"


class RankReader(Fields):
    """One rank of a dump.

    Attributes
    ----------
    rank, world_size, path
        From the name of its folder.
    has_index
        Whether it has an index (fxtap.db).
    """

    def __init__(self, dump: DumpReader, index: int, fields: dict[str, Any]) -> None:
        super().__init__(fields)
        self._dump = dump
        self._index = index

    @cached_property
    def runs(self) -> list[dict[str, Any]]:
        """The processes that wrote it: pid, host, versions, command, times; empty without an index."""
        return self._dump._reader.runs(self._index)

    @property
    def graphs(self) -> list[GraphReader]:
        """Its graphs in order of their numbers."""
        return [graph for graph in self._dump.graphs if graph._fields["rank_i"] == self._index]

    def __repr__(self) -> str:
        return f"<Rank {self.rank} of {self.world_size}: {_count(len(self.graphs), 'graph')}>"


_GRAPH_HEADER = ("rank", "graph", "kind", "nodes", "dumped", "steps")


class DumpReader:
    """A dump, opened for reading. Made by `fxtap.open`.

    It is a collection of its tensors: `len(dump)`, `for tensor in dump`, `"add_1" in dump`, `dump["add_1"]`.

    Attributes
    ----------
    path, kind
        The opened path; "indexed", "named" (no index: TorchAir's own), "plain" (other .npy files) or "file".
    warnings
        One line for each problem in reading.
    """

    def __init__(self, path: str | os.PathLike[str], run: int = 0) -> None:
        self._reader = _core.Reader(expand(path))
        self._run = run
        self.path = self._reader.path
        self.kind = self._reader.kind
        if run < -1:
            raise ValueError(f"run must be a run number, 0 for the latest or -1 for all, not {run!r}")
        if run > 0 and not self.graphs:
            raise LookupError(f"no run {run} in {self.path}")

    @property
    def warnings(self) -> list[str]:
        """One line for each problem in reading."""
        return self._reader.warnings

    @cached_property
    def ranks(self) -> list[RankReader]:
        """Its ranks."""
        return [RankReader(self, index, fields) for index, fields in enumerate(self._reader.ranks())]

    @cached_property
    def graphs(self) -> list[GraphReader]:
        """The graphs of all ranks."""
        found = self._reader.graphs(self._run)
        return [GraphReader(self, self._run, index, fields) for index, fields in enumerate(found)]

    def tensors(
        self,
        pattern: str | None = None,
        *,
        rank: int = -1,
        graph: int = -1,
        step: int = -1,
        io: str | None = None,
        incomplete: bool = False,
        run: int | None = None,
    ) -> TensorList:
        """Return tensors, all or some.

        Parameters
        ----------
        pattern
            Shell pattern on node name, target, module path, source line or tensor name, such as "blocks.0.*",
            "model.py:12" or "add_1*.OUTPUT.*"; see docs/usage.md.
        rank, graph, step
            One number, or -1 for all.
        io
            "INPUT", "OUTPUT", "INOUT", or None for all.
        incomplete
            Include tensors of failed and partial steps.

        Raises
        ------
        PatternError
            A ValueError and a LookupError: the pattern matches nothing that was dumped in the run.
        """
        if io is not None and io.upper() not in _IO:
            raise ValueError(f"io must be INPUT, OUTPUT, INOUT or None, not {io!r}")
        try:
            found = self._reader.tensors(
                run=self._run if run is None else run,
                rank=rank,
                graph=graph,
                step=step,
                incomplete=incomplete,
                pattern=pattern,
                io=-1 if io is None else _IO[io.upper()],
            )
        except LookupError as error:
            raise PatternError(str(error)) from None
        return TensorList(found)

    def __getitem__(self, name: str) -> TensorList:
        """Return the tensors whose node or tensor name is exactly `name`; KeyError if there are none."""
        if not isinstance(name, str):
            raise TypeError(f"expected the name of a node or tensor, such as 'add_1', not {name!r}")
        found = self.tensors().where(lambda tensor: name in (tensor.name, tensor.node))
        if not found:
            names = (known for tensor in self.tensors() for known in (tensor.node, tensor.name))
            raise KeyError(f"no node or tensor {name!r} in {self.path}{_hint(name, names)}")
        return found

    def __len__(self) -> int:
        """Return the number of tensors."""
        return len(self.tensors())

    def __iter__(self) -> Iterator[Tensor]:
        """Iterate over the tensors, in order of rank, graph, step and execution."""
        return iter(self.tensors())

    def __bool__(self) -> bool:
        """Return True, without reading the index to count the tensors."""
        return True

    def __contains__(self, name: object) -> bool:
        """Return whether there is a node or tensor with a name, that is, whether `dump[name]` succeeds."""
        return any(name in (tensor.name, tensor.node) for tensor in self)

    def to_pandas(self) -> pandas.DataFrame:
        """Return a table with one row per tensor."""
        return self.tensors().to_pandas()

    def __repr__(self) -> str:
        rows = _rows(_GRAPH_HEADER, (graph._row() for graph in self.graphs[:SHOWN]), len(self.graphs))
        counts = f"{_count(len(self.ranks), 'rank')}, {_count(len(self.graphs), 'graph')}"
        return "\n".join([f"<dump {self.path}: {counts}>", rows])

    def _repr_html_(self) -> str:
        rows = _html_rows(_GRAPH_HEADER, (graph._row() for graph in self.graphs[:SHOWN]), len(self.graphs))
        return f"<p>dump <code>{html.escape(self.path)}</code></p>{rows}"


def open_dump(path: str | os.PathLike[str], *, run: int = 0) -> DumpReader:
    """Open a dump for reading.

    Parameters
    ----------
    path
        A dump root, a rank, graph or step folder (including failed and partial steps), a folder of .npy files, or one
        .npy file; written by fxtap or by TorchAir.
    run
        The run: 0 the latest, -1 all, else its number.

    Raises
    ------
    OSError, LookupError
        It cannot be read, or is empty.
    ValueError
        Its index was written by a later version of fxtap.

    Examples
    --------
    >>> dump = fxtap.open("dump")  # doctest: +SKIP
    >>> dump.tensors("*attn*", io="OUTPUT")[0].numpy()  # doctest: +SKIP
    >>> dump.to_pandas().sort_values("abs_max")  # doctest: +SKIP
    """
    __tracebackhide__ = True  # pytest would print all of this docstring
    return DumpReader(path, run)
