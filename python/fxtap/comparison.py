"""Comparing two dumps: pairs of tensors, their differences, and the first operator that went wrong."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Self, TypedDict, Unpack

from . import _core
from .lazy import LazyList
from .paths import expand
from .printed import Printed
from .reading import DumpReader, Fields, PatternError

if TYPE_CHECKING:
    import pandas

    from .verification import Verification

__all__ = ["Origin", "Pair", "PairList", "Report", "Rule", "compare", "compare_ranks"]

Dump = str | os.PathLike[str] | DumpReader
Selection = int | tuple[int, int] | None

_FAILED: Final = ("different", "shape mismatch", "dtype mismatch", "unreadable")


@dataclass(frozen=True, kw_only=True)
class Rule:
    """Tolerances for the pairs that it matches; a later matching rule takes precedence.

    Attributes
    ----------
    dtype
        torch's name of the less precise of both original dtypes, such as "bfloat16"; None for any.
    target, node
        Shell patterns on the operator, and on node or tensor name; None for any.
    rtol, atol
        An element is close if |target - golden| <= atol + rtol * |golden|. Values that no rule sets are those of
        `torch.testing.assert_close` for the dtype.
    cosine
        Smallest cosine similarity.
    max_abs, rel_l2, max_ulp
        Largest absolute error, relative L2 error, distance in units in the last place. A rule that sets only these and
        `cosine`, or some of them, judges only by them.
    """

    dtype: str | None = None
    target: str | None = None
    node: str | None = None
    rtol: float | None = None
    atol: float | None = None
    cosine: float | None = None
    max_abs: float | None = None
    rel_l2: float | None = None
    max_ulp: float | None = None


class Pair(Fields):
    """Two tensors that were compared, or one that has no counterpart.

    Attributes
    ----------
    verdict
        "same", "close", "different", "shape mismatch", "dtype mismatch", "unreadable", "only in golden",
        "only in target", "skipped", "undefined", "not compared" or "written differently" (a literal in the code that
        differs).
    is_literal, is_missing
        The value is written in the code; only one side has the tensor, although the other should have it too.
    name, target_name
        The tensor's name; its name on the target side if it differs, else None.
    node, target, io, position, order
        The node, its target, "INPUT", "OUTPUT" or "INOUT", the position, and the node's index in execution order.
    rank, graph, target_graph, step, target_step
        Rank, and graph and step of each side.
    pairing, confidence
        How it was paired: "exact", "mapped", "by source", "by wiring", "by order", "region" (different groups of
        operators that compute one quantity) or "unpaired"; 0 to 1.
    evidence, n_golden_operators, n_target_operators
        The evidence for the pair, such as "value", "operator", "module"; the number of operators of a region.
    golden_dtype, target_dtype, golden_shape, target_shape
        The original dtypes (torch's names), and the shapes.
    identical_bits, count, mismatched, nan_mismatched, inf_mismatched, undefined_count
        Numbers of elements: compared, outside the tolerance, of these NaN or infinite on one side only, and undefined
        (not compared).
    max_abs_err, max_rel_err, mean_abs_err, rmse, cosine, rel_l2, euclidean, max_ulp, within_1e3, within_5e3
        Metrics (docs/compare.md); None if nothing was measured, `max_ulp` NaN for dtypes without one.
    max_abs_index, max_rel_index, worst
        Flat row-major indices of the largest errors; `worst` has (index, golden, target).
    rtol, atol
        The tolerance that was applied.
    source_file, source_line, source_code, module_path
        Source of the node.
    verified
        Verdict on the target's result, such as "rounding", if the report was verified; else None.
    golden_path, target_path, golden_stats, target_stats, detail
        Files, statistics, and one line about any problem.
    """

    __slots__ = ()

    @property
    def source(self) -> str:
        """ "file:line", or "" if not known."""
        return f"{self.source_file}:{self.source_line}" if self.source_file else ""

    def __repr__(self) -> str:
        error = "" if self.max_abs_err is None else f", max_abs_err {self.max_abs_err:.4g}"
        return f"<Pair {self.name}: {self.verdict}{error}>"


class PairList(LazyList[Pair]):
    """The pairs of a report in order of rank, graph, step and execution; created on access."""

    def __init__(self, report: _core.Report, indices: Sequence[int] | None = None) -> None:
        super().__init__(range(len(report)) if indices is None else indices)
        self._report = report

    def _item(self, index: int) -> Pair:
        return Pair(self._report[index])

    def _subset(self, indices: Sequence[int]) -> Self:
        return type(self)(self._report, indices)

    def __repr__(self) -> str:
        return f"<{len(self):,} pairs>"


@dataclass(frozen=True)
class Origin:
    """Where an error began.

    Attributes
    ----------
    reason
        "operator" (its inputs agree, its output does not), "graph input", "weight", "random" (another seed), "region"
        (not all inputs could be compared; the error began here or just above), "drift" (the inputs agree within the
        tolerance; small errors grew a little and left it here), "before" (an input differs, but no compared tensor
        above it does; see `between`), or "rounding" (of a report that was verified, in place of "operator" and "drift":
        the operator does what golden's does).
    pair
        The worst output (or the input) that differs.
    input_error, output_error
        Largest relative L2 error of its inputs, and of its outputs.
    growth
        output_error / input_error; infinite if the inputs are identical.
    n_carried
        Number of operators below it that only carry the error on.
    follows
        Whether an earlier call had gone wrong before, so that this may be its consequence.
    other_target
        The operator on the target side if it is a different one, else None.
    literal
        An argument written in the code that differs, as text: ``eps: golden 1e-05, target 0.1``; else None.
    between
        For "before", the operators above the input that only one side has: ``_to_copy, only in target``; else None.
    other_source, other_code
        "file:line" and text of the source line on the target side if the text differs, else None.
    between_source, between_code, between_module
        For the first operator of `between`: "file:line" of the line that called it, its text, its module path; None
        if not known.
    """

    reason: str
    pair: Pair
    input_error: float
    output_error: float
    growth: float
    n_carried: int
    follows: bool
    other_target: str | None
    literal: str | None
    between: str | None
    between_source: str | None
    between_code: str | None
    between_module: str | None
    other_source: str | None
    other_code: str | None

    @property
    def node(self) -> str:
        """The node's name."""
        name: str = self.pair.node
        return name

    @property
    def target(self) -> str:
        """The operator, such as "aten.gelu.default"."""
        name: str = self.pair.target
        return name

    @property
    def source(self) -> str:
        """ "file:line", or "" if not known."""
        return self.pair.source


class Report(Printed[_core.Report]):
    """The result of `fxtap.compare` or `fxtap.compare_ranks`.

    Attributes
    ----------
    verification
        What `fxtap.verify` finds on target against golden, after `fxtap.compare(..., verify=True)`; else None.
    is_rounding
        Whether nothing is wrong although there are differences: target's operators do what golden's do, and rounding
        explains everything that differs. None without a verification.
    """

    verification: Verification | None = None
    is_rounding: bool | None = None

    @property
    def verdict(self) -> str:
        """ "same", "close" or "different": the worst of all pairs. Missing, mismatched or unreadable is different."""
        return self._core.verdict

    @property
    def exit_status(self) -> int:
        """The program's exit status: 0 same or close, 1 different, 2 if a file could not be read.

        With a verification: 0 nothing is wrong (`is_rounding`, too), 1 also if an operator is wrong although the sides
        agree, 2 also if nothing could be replayed.
        """
        verified = 0 if self.verification is None else self.verification.exit_status
        if self.counts["unreadable"] > 0 or verified == 2:
            return 2
        return int(verified == 1 or (self.verdict == "different" and not self.is_rounding))

    @property
    def counts(self) -> dict[str, int]:
        """Verdict -> number of pairs."""
        return self._core.counts

    @property
    def pairings(self) -> dict[str, int]:
        """Pairing method -> number of pairs."""
        return self._core.pairings

    @cached_property
    def origins(self) -> list[Origin]:
        """Where errors began, in order of execution."""
        return [Origin(**{**fields, "pair": Pair(fields["pair"])}) for fields in self._core.origins]

    @property
    def pairs(self) -> PairList:
        """All pairs."""
        return PairList(self._core)

    @property
    def differing(self) -> PairList:
        """The pairs that differ, are missing or cannot be compared."""
        table = self._core.columns(["verdict", "is_missing"])
        rows = zip(table["verdict"], table["is_missing"], strict=True)
        return PairList(self._core, [i for i, (verdict, missing) in enumerate(rows) if missing or verdict in _FAILED])

    @property
    def steps(self) -> str | None:
        """What was aligned as an iteration, as text; None if the graphs are equal or there is no index."""
        return self._core.steps

    @property
    def explanation(self) -> str | None:
        """Why the node named by `explain` has its counterpart, and which other candidates there were."""
        return self._core.explanation

    @property
    def first_non_finite(self) -> Pair | None:
        """The first pair in execution order with a NaN or infinity on the target side that golden does not have."""
        fields = self._core.first_non_finite
        return None if fields is None else Pair(fields)

    @property
    def groups(self) -> list[dict[str, Any]]:
        """The steps of graphs that were compared with each other, and the ranges of their pairs."""
        return self._core.groups

    @property
    def warnings(self) -> list[str]:
        """One line for each problem in reading."""
        return self._core.warnings

    def to_pandas(self) -> pandas.DataFrame:
        """Return a table with one row per pair; its columns are `Pair`'s attributes, with the names used in JSON.

        As there, `target` is the node's target; `target_name` is the tensor's name on the target side if it differs.
        """
        import pandas

        verified = {} if self.verification is None else self._core.columns(["verified"])
        return pandas.DataFrame(self._core.columns() | verified)

    @classmethod
    def merge(cls, shards: Sequence[bytes]) -> Report:
        """Return one report from those of all shards of a comparison, in order. ValueError if bytes are invalid."""
        return cls(_core.merge_reports(shards))


def _path(dump: Dump) -> str:
    return dump.path if isinstance(dump, DumpReader) else os.fspath(expand(dump))


def gather_rules(
    rules: str | os.PathLike[str] | Sequence[Rule] | None, amounts: dict[str, float | None]
) -> list[tuple[Any, ...]]:
    """Return the rules as tuples: first the one made of keywords, so that the others take precedence."""
    found: list[tuple[Any, ...]] = []
    if any(value is not None for value in amounts.values()):
        found.append(dataclasses.astuple(Rule(**amounts)))  # type: ignore[arg-type]
    if isinstance(rules, (str, os.PathLike)):
        return found + _core.load_rules(expand(rules))
    for rule in rules or ():
        if not isinstance(rule, Rule):
            raise TypeError(f"rules must be fxtap.Rule objects or the path of a file, not {rule!r}")
        found.append(dataclasses.astuple(rule))
    return found


def _selection(run: Selection, rank: Selection, graph: Selection, step: Selection) -> dict[str, Any]:
    given = {"run": run, "rank": rank, "graph": graph, "step": step}
    return {name: value for name, value in given.items() if value is not None}


class CompareOptions(TypedDict, total=False):
    """The keywords that `compare` and `compare_ranks` share; `compare` describes them."""

    op: str | None
    rules: str | os.PathLike[str] | Sequence[Rule] | None
    rtol: float | None
    atol: float | None
    cosine: float | None
    max_abs: float | None
    rel_l2: float | None
    max_ulp: float | None
    fail_fast: bool
    read_all: bool
    strict: bool
    step_of: str | None
    explain: str | None
    threads: int
    n_worst: int
    shard: tuple[int, int] | None
    progress: Callable[[int, int], object] | None


_TOLERANCES: Final = ("rtol", "atol", "cosine", "max_abs", "rel_l2", "max_ulp")


def _core_options(options: CompareOptions) -> dict[str, Any]:
    """Return the options as the core takes them."""
    given: dict[str, Any] = dict(options)
    amounts = {name: given.pop(name, None) for name in _TOLERANCES}
    given["rules"] = gather_rules(given.pop("rules", None), amounts)
    given["shard"], given["n_shards"] = given.pop("shard", None) or (0, 0)
    return given


@contextlib.contextmanager
def _pattern_errors(options: CompareOptions) -> Iterator[None]:
    """Raise `PatternError` if a pattern matches nothing."""
    __tracebackhide__ = True
    try:
        yield
    except LookupError as error:
        if options.get("op") is None:
            raise
        raise PatternError(str(error)) from None


def compare(
    golden: Dump,
    target: Dump | None = None,
    *,
    run: Selection = None,
    rank: Selection = None,
    graph: Selection = None,
    step: Selection = None,
    map: str | os.PathLike[str] | None = None,
    verify: bool = False,
    **options: Unpack[CompareOptions],
) -> Report:
    """
    Compare two dumps; find the first operator that went wrong.

    Parameters
    ----------
    golden, target
        The reference, and the side that is judged: a dump, a rank, graph or step folder, a folder of .npy files, one
        .npy file, or the result of `fxtap.open`. Dumps without an index (TorchAir's own) are read by file name.
        Without `target`, two parts of `golden` are compared, e.g. `step=(0, 5)`.
    run, rank, graph, step
        Only this one, or (golden's, target's). By default the latest run, and all ranks, graphs and steps.
    map
        A file of lines "GOLDEN-NAME TARGET-NAME" for nodes with different names; `*` is a wildcard.
    verify
        Also verify the target against golden (`fxtap.verify`), with these pairs: `Report.verification`,
        `Report.is_rounding`. Needs PyTorch, and an index on both sides.
    op
        Shell pattern on node, operator, module path, source line or tensor name, as `fxtap compare --op`.
    rules
        A TOML file of rules, or `Rule` objects; they take precedence over the six tolerances below.
    rtol, atol, cosine, max_abs, rel_l2, max_ulp
        Tolerances (see `Rule`). The defaults are those of `torch.testing.assert_close` by dtype; they also apply if
        only `max_ulp` is given and a dtype has no units in the last place.
    fail_fast
        Stop at the first tensor that differs.
    read_all
        Read every file, even if the recorded hashes are equal.
    strict
        Also treat tensors that only one side has, and literals in the code that differ, as differences.
    step_of
        Shell pattern: an iteration begins at each call of the first graph that has a matching operator. By default
        iterations are found by repetition. Used only if the graphs of the two sides are not equal.
    explain
        Name of a node for `Report.explanation`.
    threads
        Number of threads; 0: the number of processors.
    n_worst
        Number of worst elements to keep for each differing pair.
    shard
        (k, n): only every n-th step of a graph, starting with the k-th; for `Report.merge`.
    progress
        Called repeatedly with the number of pairs done and the total; an exception in it stops the comparison.

    Raises
    ------
    OSError, LookupError, ValueError
        A side cannot be opened, has no tensors, or is from a newer fxtap; options, rules or map are invalid; nothing
        was compared, for example because `op` matches nothing (`PatternError`, a LookupError and a ValueError).
        Single files that cannot be read are pairs with the verdict "unreadable".
    """
    __tracebackhide__ = True  # pytest would print all of this docstring
    parts = _selection(run, rank, graph, step)
    if target is None and not any(isinstance(value, tuple) for value in parts.values()):
        raise ValueError("nothing to compare with: pass a second dump, or two parts of this one, as step=(0, 1)")
    if verify and options.get("shard") is not None:
        raise ValueError("verify takes a whole comparison, not a shard")
    golden, target = _path(golden), _path(golden if target is None else target)
    with _pattern_errors(options):
        report = Report(_core.compare(golden, target, **parts, map=expand(map), **_core_options(options)))
    if verify:
        _verify(report, golden, target, parts, options.get("op"))
    return report


def _verify(report: Report, golden: str, target: str, parts: dict[str, Any], op: str | None) -> None:
    """Verify the compared part of the target, with the report's pairs."""
    from .verification.calls import Selection as Part  # imported late: they need torch
    from .verification.run import Comparison, Sides, verify_sides

    def part(name: str, side: int, default: int) -> int:
        value: int | tuple[int, int] = parts.get(name, default)
        return value[side] if isinstance(value, tuple) else value

    sides = Sides.open(target, golden, None, part("run", 1, 0), part("run", 0, 0))
    rank, graph, step = (part(name, 1, -1) for name in ("rank", "graph", "step"))
    comparison = Comparison(report._core, rank)
    report.verification = verify_sides(sides, Part(rank, graph, step, op), comparison)
    report.is_rounding = _core.verify_report(report._core, report.verification._core)


def compare_ranks(
    dump: Dump,
    *,
    run: int | None = None,
    graph: int | None = None,
    step: int | None = None,
    **options: Unpack[CompareOptions],
) -> Report:
    """
    Compare tensors that should be replicas: those of every rank with those of the first rank.

    Tensors with the same graph, node and slot are replicas. The parameters are those of `compare`.

    Raises
    ------
    LookupError
        There is only one rank. Otherwise as `compare`.
    """
    __tracebackhide__ = True
    with _pattern_errors(options):
        return Report(_core.compare_ranks(_path(dump), **_selection(run, None, graph, step), **_core_options(options)))
