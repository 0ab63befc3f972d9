"""Golden's operators in place of target's: which of them compute a result of target, and from which values."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .. import _core
from ..reading import DumpReader
from .arguments import DTYPES, Arguments, Decoder, Saved
from .calls import Call, Selection, find_calls
from .operators import NotReplayedError, Operator, find_operator
from .random_checks import is_random
from .replay import Earlier, Literal, Load, Place, Replay, Results

__all__ = ["Counterparts", "Region"]

MAX_OPERATORS = 64
"""A result of target that takes more of golden's operators is judged by itself."""

CAST = "torch.ops.aten._to_copy.default"
"""A conversion that only target has: where a graph has fewer operators, its neighbours may be paired with it."""

_DIFFERING = ("different", "shape mismatch", "dtype mismatch")

_NAME = re.compile(r"([^-]*)-.*\.(INPUT|OUTPUT|INOUT)\.(.+)", re.DOTALL)


class Key(NamedTuple):
    """A saved tensor of a dump."""

    rank: int
    graph: int
    step: int
    node: str
    io: str
    position: str

    @property
    def call(self) -> tuple[int, int, int, str]:
        return self[:4]

    @property
    def place(self) -> Place:
        return self.io, self.position


@dataclass
class Step:
    """One of golden's operators in a region; its tensors are target's, or results of earlier steps."""

    operator: Operator
    arguments: Arguments


class Rounded(Saved):
    """A saved tensor as it is in another dtype."""

    def __init__(self, saved: Saved, dtype: torch.dtype) -> None:
        super().__init__(saved.position, str(dtype).removeprefix("torch."), saved.strides, lambda: self._round(saved))

    def _round(self, saved: Saved) -> Tensor:
        values = saved.in_file
        return values.to(self.dtype).to(values.dtype)


class Region(Replay):
    """Golden's operators that compute the results of one call of target, run on target's values.

    Parameters
    ----------
    steps
        In order of execution; the last one makes the result.
    places
        For each place of target's results: the step, and the place among its results.
    text
        How golden's program differs, for the report; "" if it does not.
    """

    def __init__(self, steps: list[Step], places: dict[Place, Earlier], seed: str, text: str) -> None:
        tensors = [saved for step in steps for saved in step.arguments.tensors]
        super().__init__(steps[-1].operator, steps[0].arguments if len(steps) == 1 else Arguments(tensors, {}), seed)
        self.text = text
        self._steps = steps
        self._places = places

    @property
    def is_single(self) -> bool:
        return len(self._steps) == 1

    def _run(self, load: Load, literal: Literal | None) -> Results:
        done: list[Results] = []

        def resolve(item: Any, fresh: bool) -> Tensor:
            if not isinstance(item, Earlier):
                return load(item, fresh)
            value: Tensor = done[item.index][item.place]
            return value if self._perturb is None else self._perturb(value)

        for step in self._steps:
            done.append(self._call(step.operator, step.arguments, resolve, literal))
        return {place: done[at.index][at.place] for place, at in self._places.items() if at.place in done[at.index]}


def _keys(report: _core.Report, target_rank: int | None) -> Iterator[tuple[Key, Key, str]]:
    """Return the pairs of a comparison: golden's tensor, target's, verdict. Pairs have golden's rank."""
    names = ("pairing", "name", "target_name", "rank", "graph", "target_graph", "step", "target_step", "verdict")
    columns = report.columns(names)
    for pairing, name, other, rank, graph, target_graph, step, target_step, verdict in zip(
        *(columns[field] for field in names), strict=True
    ):
        golden, target = _NAME.fullmatch(name), _NAME.fullmatch(other or name)
        if pairing != "unpaired" and golden is not None and target is not None:
            place = rank if target_rank is None else target_rank, target_graph, target_step
            yield Key(rank, graph, step, *golden.groups()), Key(*place, *target.groups()), verdict


def _limit(value: Any) -> str:
    """Return which limit of a floating dtype a literal is, such as "lowest"; "" if it is none."""
    if not isinstance(value, float) or math.isnan(value):
        return ""
    if math.isinf(value):
        return "highest" if value > 0 else "lowest"
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.float64):
        info = torch.finfo(dtype)
        for limit, name in ((info.max, "highest"), (info.min, "lowest"), (info.tiny, "smallest"), (info.eps, "eps")):
            if value == limit:
                return name
    return ""


def _text(value: Any) -> str:
    if isinstance(value, torch.dtype):
        return str(value)
    return repr(value)


class NoRegionError(Exception):
    """A result is judged by itself; the message says why."""


class _Builder:
    """Collects golden's operators for the results of one call of target."""

    def __init__(self, counterparts: Counterparts, call: Call) -> None:
        self._all = counterparts
        self._call = call
        self._indices: dict[tuple[int, int, int, str], int] = {}
        self.steps: list[Step] = []
        self.dtypes: dict[torch.dtype, torch.dtype] = {}
        self.differences: list[str] = []

    def add(self, golden: Call) -> int:
        """Add one of golden's calls after those that it depends on; return its index."""
        key = golden.key
        if key in self._indices:
            return self._indices[key]
        if len(self._indices) >= MAX_OPERATORS:
            raise NoRegionError("too many operators of golden's for one of target's")
        self._indices[key] = -1
        operator = find_operator(golden.node.python)
        arguments = _GoldenDecoder(self, golden).arguments(golden.node)
        if is_random(operator, arguments) or (operator.written and self._indices.keys() != {key}):
            raise NoRegionError("golden draws random numbers or changes an argument here")
        self.steps.append(Step(operator, self._with_literals(golden, operator, arguments)))
        self._indices[key] = len(self.steps) - 1
        return self._indices[key]

    def leaf(self, golden: Call, position: str, producer: Key | None) -> Saved | Earlier | None:
        """Return the value for an argument of golden's; None if it has no counterpart in target."""
        source = Key(*golden.key, "INPUT", position)
        for key in (source, producer):
            found = None if key is None else self._all.target_value(key, self._call)
            if key is not None and found is not None:
                self._note_dtype(key, found)
                return found
        if producer is None:
            return self._weight(golden, position)
        if producer.call not in self._all.golden_calls:
            return None
        return Earlier(self.add(self._all.golden_calls[producer.call]), producer.place)

    def _weight(self, golden: Call, position: str) -> Saved | None:
        """Return a weight without a counterpart (one of several with equal values) in target's dtype."""
        row = golden.slots.rows.get(("INPUT", position))
        if row is None or not golden.takes_weight(position):
            return None
        saved = golden.saved(row)
        return Rounded(saved, self.dtypes.get(saved.dtype, saved.dtype))

    def _note_dtype(self, key: Key, found: Saved) -> None:
        name = self._all.golden_dtype(key)
        if name in DTYPES and DTYPES[name].is_floating_point:
            self.dtypes.setdefault(DTYPES[name], found.dtype)

    def _with_literals(self, golden: Call, operator: Operator, arguments: Arguments) -> Arguments:
        """Return golden's literals, but dtypes and their limits as target has them."""
        mine = self._own_literals() if golden.node.python == self._call.node.python else {}

        def choose(value: Any, own: Any) -> Any:
            if isinstance(value, torch.dtype):
                return self.dtypes.get(value, own if isinstance(own, torch.dtype) else value)
            if _limit(value) and _limit(own) == _limit(value):
                return own
            return value

        def walk(value: Any, own: Any, name: str) -> Any:
            if isinstance(value, list):
                others = own if isinstance(own, list) and len(own) == len(value) else [None] * len(value)
                return [walk(item, other, name) for item, other in zip(value, others, strict=True)]
            if isinstance(value, (Saved, Earlier, Tensor)) or (value is None and own is None):
                return value
            chosen = choose(value, own)
            if mine and not isinstance(chosen, (torch.dtype, torch.device)) and chosen != own:
                self.differences.append(f"{name or 'an argument'}: golden {_text(chosen)}, target {_text(own)}")
            return chosen

        names = [name for name, _ in operator.arguments]
        args = [
            walk(value, mine.get(str(i)), names[i] if i < len(names) else "") for i, value in enumerate(arguments.args)
        ]
        for name in mine.keys() - {str(i) for i in range(len(args))} - arguments.kwargs.keys():
            self.differences.append(f"{name}: only in target")
        kwargs = {name: walk(value, mine.get(name), name) for name, value in arguments.kwargs.items()}
        return Arguments(args, kwargs)

    def _own_literals(self) -> dict[str, Any]:
        own = self._call.arguments()
        return {**{str(i): value for i, value in enumerate(own.args)}, **own.kwargs}


class _GoldenDecoder(Decoder):
    """Decodes golden's arguments, with target's values for its tensors."""

    def __init__(self, builder: _Builder, golden: Call) -> None:
        super().__init__(golden.record, golden.slots)
        self._builder = builder
        self._golden = golden

    def value(self, value: Any, position: str) -> Any:
        if not (isinstance(value, dict) and "node" in value):
            return super().value(value, position)
        yields = self.record.yields(value["node"])
        if isinstance(yields, dict) and "tensor" in yields:
            return self._tensor(position, value["node"])
        return super().value(value, position)

    def _tensor(self, position: str, node: int) -> Any:
        found = self._builder.leaf(self._golden, position, self._producer(node))
        if found is None:
            raise NoRegionError("an input of golden's has no counterpart in target")
        return found

    def _producer(self, index: int) -> Key | None:
        """Return the tensor that a node makes, through getitem."""
        fields = self.record.nodes[index].fields
        place = "0"
        if fields["target"] in ("operator.getitem", "_operator.getitem"):
            source, item = fields["args"]
            if not isinstance(source, dict) or "node" not in source or not isinstance(item, int):
                return None
            fields, place = self.record.nodes[source["node"]].fields, str(item)
        return (
            Key(*self._golden.key[:3], str(fields["name"]), "OUTPUT", place)
            if fields["op"] == "call_function"
            else None
        )


class Counterparts:
    """The pairs of a comparison, as the verification needs them.

    Parameters
    ----------
    golden
        The reference dump.
    report
        A comparison of golden with the dump that is verified.
    target_calls
        All operator calls of that dump.
    """

    def __init__(self, golden: DumpReader, report: _core.Report, target_calls: Iterable[Call]) -> None:
        self.golden_calls = {call.key: call for call in find_calls(golden, Selection())}
        self._order = {call.key: (i, call) for i, call in enumerate(target_calls)}
        self._of_target: dict[Key, Key] = {}
        self._of_golden: dict[Key, list[Key]] = {}
        self._differing: set[Key] = set()
        ranks = {key[0] for key in self._order}
        for mine, other, verdict in _keys(report, ranks.pop() if len(ranks) == 1 else None):
            self._of_target[other] = mine
            self._of_golden.setdefault(mine, []).append(other)
            if verdict in _DIFFERING:
                self._differing.add(other)

    def value(self, call: Call, row: int) -> tuple[int, bool]:
        """Return what tells a value of target: 64 bits of its hash (0: unknown), and whether it differs."""
        key = Key(*call.key, *call.slots.place(row))
        return int((call.slots.field(row, "hash") or "0")[:16], 16), key in self._differing

    def _counterparts(self, golden: Key) -> Iterator[tuple[Key, Call, int]]:
        """Return target's tensors that are paired with one of golden's: with their calls and rows."""
        for key in self._of_golden.get(golden, ()):
            if key.call in self._order:
                owner = self._order[key.call][1]
                row = owner.slots.rows.get(key.place)
                if row is not None:
                    yield key, owner, row

    def results_of(self, golden: Key) -> dict[Key, Saved]:
        """Return target's results that are counterparts of one of golden's."""
        found = {}
        for key, owner, row in self._counterparts(golden):
            if key.io != "INPUT":
                with contextlib.suppress(NotReplayedError):
                    found[key] = owner.saved(row)
        return found

    def target_dtype(self, golden: Key) -> str:
        """Return the name of the dtype of the counterpart of one of golden's tensors, or ""."""
        return next((owner.slots.field(row, "dtype") or "" for _, owner, row in self._counterparts(golden)), "")

    def golden_dtype(self, key: Key) -> str:
        """Return the name of the dtype of one of golden's tensors, or ""."""
        call = self.golden_calls.get(key.call)
        row = None if call is None else call.slots.rows.get(key.place)
        return "" if call is None or row is None else call.slots.field(row, "dtype") or ""

    def target_value(self, golden: Key, call: Call) -> Saved | None:
        """Return target's value for one of golden's: an argument of the call itself, else one known before it."""
        mine, _ = self._order[call.key]
        best: tuple[int, Call, int] | None = None
        for key, owner, row in self._counterparts(golden):
            if key.call == call.key and key.io == "INPUT":
                return call.saved(row)
            at = self._order[key.call][0]
            if key.io == "INPUT" and owner.takes_graph_input(key.position):
                at = -1
            if at < mine and (best is None or at > best[0]):
                best = at, owner, row
        return None if best is None else best[1].saved(best[2])

    def region(self, call: Call) -> Region | str | None:
        """Return golden's operators for a call of target; None if it makes the same call; else why there are none."""
        pairs = {}
        for row in call.results:
            place = call.slots.place(row)
            golden = self._of_target.get(Key(*call.key, *place))
            if golden is not None and golden.io != "INPUT" and golden.call in self.golden_calls:
                pairs[place] = golden
        if not pairs:
            return "no counterpart in golden"
        if self._is_same_call(call, pairs):
            return None
        golden_names = {self.golden_calls[golden.call].node.python for golden in pairs.values()}
        if call.node.python == CAST and CAST not in golden_names:
            return "golden makes no conversion here"
        builder = _Builder(self, call)
        try:
            for place, golden in pairs.items():
                name = self.golden_dtype(golden)
                if name in DTYPES:
                    builder.dtypes.setdefault(DTYPES[name], call.saved(call.slots.rows[place]).dtype)
            places = {
                place: Earlier(builder.add(self.golden_calls[golden.call]), golden.place)
                for place, golden in pairs.items()
            }
        except (NoRegionError, NotReplayedError) as reason:
            return str(reason)
        return Region(builder.steps, places, f"{call.node.name} {call.step}", self._describe(call, builder))

    def _is_same_call(self, call: Call, pairs: dict[Place, Key]) -> bool:
        """Return whether golden calls the same operator with equal literals and paired arguments."""
        calls = {golden.call for golden in pairs.values()}
        golden = self.golden_calls[next(iter(calls))]
        if len(calls) != 1 or not golden.has_equal_literals(call):
            return False
        paired = [self._of_target.get(Key(*call.key, *place)) for place in call.slots.rows if place[0] == "INPUT"]
        return all(key is None or key.call == golden.key for key in paired)

    @staticmethod
    def _describe(call: Call, builder: _Builder) -> str:
        if builder.differences:
            return "; ".join(builder.differences[:3])
        names = [step.operator.name for step in builder.steps]
        if len(names) == 1 and call.node.python.split(".")[3:4] == names:
            return ""
        shown = ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")
        return f"golden computes it by {shown}"
