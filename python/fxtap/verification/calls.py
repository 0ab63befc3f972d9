"""The operator calls of a dump, in order of execution."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from .. import _core
from ..reading import DumpReader, GraphReader, PatternError
from .arguments import Arguments, Columns, Decoder, Node, Record, Saved, Slots, quiet_read_only_buffers, read_file
from .named import FileRecord, FileSlots, find_record
from .operators import NotReplayedError, Operator, find_operator
from .replaced import with_torchs_kernel

__all__ = ["Call", "Selection", "find_calls"]

_IDENTITY = ("io", "position", "skipped", "dtype", "shape", "strides", "hash")


@dataclass(frozen=True)
class Selection:
    """Which calls: one rank, graph and step, or -1 for all; a shell pattern as in `DumpReader.tensors`."""

    rank: int = -1
    graph: int = -1
    step: int = -1
    op: str | None = None


@dataclass
class Call:
    """One operator call with its saved tensors; `number` is that of the graph's call in its process."""

    rank: int
    graph: int
    step: int
    number: int
    node: Node
    record: Record
    slots: Slots

    @property
    def key(self) -> tuple[int, int, int, str]:
        """What identifies the call within its dump: rank, graph, step, node."""
        return self.rank, self.graph, self.step, self.node.name

    @property
    def inputs(self) -> list[int]:
        """The rows of what it reads."""
        return [row for (io, _), row in self.slots.rows.items() if io == "INPUT"]

    @property
    def results(self) -> list[int]:
        """The rows of its results, and of the arguments that it changed."""
        rows = self.slots.rows
        return [row for (io, _), row in rows.items() if io != "INPUT" and self.slots.field(row, "skipped") is None]

    def operator(self) -> Operator:
        """Return what it calls; `NotReplayedError` if that may not be called, or gives uninitialised memory."""
        if "undefined" in self.node.fields["flags"]:
            raise NotReplayedError("undefined memory")
        return with_torchs_kernel(find_operator(self.node.python))

    def arguments(self) -> Arguments:
        """Return its arguments; `NotReplayedError` if not all are known."""
        return Decoder(self.record, self.slots).arguments(self.node)

    def _producer(self, position: str) -> dict[str, Any] | None:
        """Return the node whose result an argument is."""
        whole, *parts = position.split(".")
        value = next((value for at, _, value in self.node.values() if at == whole), None)
        for part in parts:
            items = value.get("tuple") if isinstance(value, dict) else value
            value = items[int(part)] if isinstance(items, list) and int(part) < len(items) else None
        return self.record.nodes[value["node"]].fields if isinstance(value, dict) and "node" in value else None

    def takes_graph_input(self, position: str) -> bool:
        """Return whether an argument is an input or a constant of the graph, and so known before the first operator."""
        producer = self._producer(position)
        return producer is not None and producer["op"] in ("placeholder", "get_attr")

    def takes_weight(self, position: str) -> bool:
        """Return whether an argument is a parameter, a buffer or a constant."""
        producer = self._producer(position)
        return producer is not None and (producer["op"] == "get_attr" or "weight" in producer["flags"])

    def reads_own_memory(self) -> bool:
        """Return whether the first argument is an operator's fresh result without gaps: its memory has nothing else."""
        producer = self._producer("0")
        row = self.slots.rows.get(("INPUT", "0"))
        if producer is None or producer["op"] != "call_function" or row is None:
            return False
        try:
            operator = find_operator(str(producer["python"]))
        except NotReplayedError:
            return False
        sizes, strides = self.slots.field(row, "shape"), self.slots.field(row, "strides")
        is_dense = strides is not None and math.prod(sizes) == 1 + sum(
            (n - 1) * stride for n, stride in zip(sizes, strides, strict=True)
        )
        return is_dense and not (operator.is_view or operator.is_exact or operator.written)

    def has_equal_literals(self, other: Call) -> bool:
        """Return whether another call is of the same operator, with equal arguments but for tensors."""
        same = self.node.python == other.node.python
        return same and _literals(self.node, self.record) == _literals(other.node, other.record)

    def saved(self, row: int) -> Saved:
        """Return the tensor of a row."""
        return self.slots.saved(row)

    @cached_property
    def identity(self) -> Hashable:
        """What two calls have in common if one must give the results of the other; None if not known."""
        slots = self.slots
        rows = [tuple(slots.field(row, name) for name in _IDENTITY) for row in slots.rows.values()]
        if any(row[-1] is None and row[2] is None for row in rows):
            return None
        try:
            return self.node.python, _literals(self.node, self.record), tuple(rows)
        except NotReplayedError:  # the record is invalid
            return None


def _without_references(value: Any, record: Record) -> Any:
    """Return a value of a record with the kinds of other nodes' results in place of the nodes."""
    if isinstance(value, list):
        return [_without_references(item, record) for item in value]
    if isinstance(value, dict):
        if "node" in value:
            yields = record.yields(value["node"])
            return {"node": sorted(yields) if isinstance(yields, dict) else str(type(yields))}
        return {key: _without_references(item, record) for key, item in value.items()}
    return value


def _literals(node: Node, record: Record) -> str:
    if node.literals is None:
        node.literals = json.dumps(_without_references([node.fields["args"], node.fields["kwargs"]], record))
    return node.literals


def _steps(dump: DumpReader, selection: Selection) -> Iterator[tuple[GraphReader, int, int]]:
    """Return graphs, steps and numbers of calls, in the order of the calls."""
    for rank in dump.ranks:
        if selection.rank not in (-1, rank.rank):
            continue
        found = [
            (step.call, step.step, graph.graph, graph)
            for graph in rank.graphs
            if selection.graph in (-1, graph.graph)
            for step in graph.steps
            if step.state == "whole" and selection.step in (-1, step.step)
        ]
        for number, step, _, graph in sorted(found, key=lambda entry: entry[:3]):
            yield graph, step, number


def _rows_of_nodes(columns: dict[str, list[Any]], world_size: int) -> dict[int, list[int]]:
    """Return the rows of each node, in order of execution."""
    found: dict[int, list[int]] = {}
    for row, (order, size) in enumerate(zip(columns["order"], columns["world_size"], strict=True)):
        if order is not None and size == world_size:
            found.setdefault(order, []).append(row)
    return dict(sorted(found.items()))


@dataclass
class _Source:
    """Where the calls of one graph get their nodes and literals from."""

    record: Record
    by_name: dict[tuple[str, str], Node] | None = None  # of a dump without an index; None: by order
    dtypes: dict[str, dict[tuple[str, str], str]] = field(default_factory=dict)  # of each node's tensors

    def call(self, tensors: _core.Tensors, columns: Columns, order: int, rows: list[int]) -> tuple[Record, Node, Slots]:
        """Return record, node and tensors of the call whose rows these are."""
        load = functools.partial(read_file, tensors)
        if self.by_name is None:
            return self.record, self.record.nodes[order], Slots(load, columns, rows)
        name, target = columns["node"][rows[0]], columns["target"][rows[0]]
        slots = FileSlots(load, columns, rows, self.dtypes.get(name, {}))
        node = self.by_name.get((name, target))
        if node is not None:
            return self.record, replace(node, order=order), slots
        files = FileRecord()
        return files, files.node(order, name, target, slots), slots

    def has(self, order: int) -> bool:
        return self.by_name is not None or order < len(self.record.nodes)


def _source(dump: DumpReader, graph: GraphReader, other: DumpReader | None) -> _Source:
    """Return the source for a graph: its own record, else that of the same graph in another dump, else its files."""
    if graph.rank.has_index:
        return _Source(Record(graph.record))
    quiet_read_only_buffers()  # dtypes are found from the values of files
    names = {(node.name, node.target) for node in graph.nodes}
    found = None if other is None else find_record(graph, names, other)
    if found is None or other is None:
        return _Source(FileRecord(), {})
    record = Record(found.record)
    columns = other._reader.tensors(run=found.run, rank=found.rank.rank, graph=found.graph).columns()
    dtypes: dict[str, dict[tuple[str, str], str]] = {}
    for node, io, position, dtype in zip(*(columns[key] for key in ("node", "io", "position", "dtype")), strict=True):
        dtypes.setdefault(node, {})[io, position] = dtype or ""
    return _Source(record, {(node.name, str(node.fields["target"])): node for node in record.nodes}, dtypes)


def find_calls(dump: DumpReader, selection: Selection, graph_from: DumpReader | None = None) -> Iterator[Call]:
    """Return the operator calls of a dump.

    Parameters
    ----------
    graph_from
        A dump of the same model with an index: gives literals and wiring if `dump` has no index.

    Raises
    ------
    LookupError
        The pattern or the selection matches nothing.
    """
    sources: dict[tuple[int, int], _Source] = {}
    is_empty = True
    for graph, step, number in _steps(dump, selection):
        key = (graph.rank._index, graph.graph)
        source = sources.get(key)
        if source is None:
            source = sources[key] = _source(dump, graph, graph_from)
        for call in _calls_of_step(dump, graph, step, number, source, selection.op):
            is_empty = False
            yield call
    if is_empty:
        if selection.op is not None:
            dump.tensors(selection.op)  # raises with the nearest name
            raise PatternError(f"no operator of the selection matches {selection.op!r}")
        runs = [run for rank in dump.ranks for run in rank.runs]
        why = ": verified while the model ran, and none was wrong" if runs and runs[-1]["type"] == "verify" else ""
        raise LookupError(f"no operator calls in {dump.path}{why}")


def _calls_of_step(
    dump: DumpReader, graph: GraphReader, step: int, number: int, source: _Source, op: str | None
) -> Iterator[Call]:
    rank = graph.rank
    place = {"run": graph.run, "rank": rank.rank, "graph": graph.graph, "step": step}
    tensors = dump._reader.tensors(**place)
    columns = tensors.columns()
    chosen = None if op is None else set(dump.tensors(op, **place)._tensors.columns()["order"])
    for order, rows in _rows_of_nodes(columns, rank.world_size).items():
        if (chosen is None or order in chosen) and source.has(order):
            record, node, slots = source.call(tensors, columns, order, rows)
            yield Call(rank.rank, graph.graph, step, number, node, record, slots)
