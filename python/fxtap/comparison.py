"""Comparing two dumps: what pairs with what, how far each pair is apart, and which operator went wrong first."""

from __future__ import annotations

import contextlib
import dataclasses
import html
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypedDict, Unpack

from . import _core
from .lazy import LazyList
from .paths import expand
from .reading import DumpReader, PatternError

if TYPE_CHECKING:
    import pandas

__all__ = ["Origin", "Pair", "PairList", "Report", "Rule", "compare", "compare_ranks"]

Dump = str | os.PathLike[str] | DumpReader
Selection = int | tuple[int, int] | None

_TEXT, _JSON, _CSV, _HTML = 1, 2, 3, 4  # fxtap_report_format
_BAD: Final = ("different", "shape mismatch", "dtype mismatch", "unreadable")


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What counts as close, for the pairs that it matches; of several that match, the later one wins.

    Attributes
    ----------
    dtype
        torch's name of the less precise of both original dtypes, as "bfloat16"; None for any.
    target, node
        Shell patterns on the operator, and on node or tensor name; None for any.
    rtol, atol
        An element is close when |target - golden| <= atol + rtol * |golden|. What no rule sets is
        `torch.testing.assert_close`'s for the dtype.
    cosine
        Least cosine similarity.
    max_abs, rel_l2, max_ulp
        Largest absolute error, relative L2 error, distance in units of the last place. A rule of these four alone
        judges by them alone.
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


class Pair:
    """Two tensors that were compared, or one that has no partner.

    Attributes
    ----------
    verdict
        "same", "close", "different", "shape mismatch", "dtype mismatch", "unreadable", "only in golden",
        "only in target", "skipped", "undefined", "not compared" or "written differently" (a number in the code that
        differs).
    is_literal, is_missing
        The value is written in the code; it stands on one side alone, though the other should have it too.
    name, target_name
        The tensor's name; target's where it differs, else None.
    node, target, io, position, order
        The operator, "INPUT", "OUTPUT" or "INOUT", which one, and the execution order of its node.
    rank, graph, target_graph, step, target_step
        Where it stands.
    pairing, confidence
        How it was paired: "exact", "mapped", "by source", "by wiring", "by order", "region" (operators that are not one
        make one quantity) or "unpaired"; 0 to 1.
    evidence, n_golden_operators, n_target_operators
        What the pair rests on, as "value", "operator", "module"; how many operators make a region's result.
    golden_dtype, target_dtype, golden_shape, target_shape
        The original dtypes (torch's names), and the shapes.
    identical_bits, count, mismatched, nan_mismatched, inf_mismatched, undefined_count
        Elements: all that were compared, outside the tolerance, and those of them where one side alone is NaN, or
        infinite; those that were left out, because nothing had written them.
    max_abs_err, max_rel_err, mean_abs_err, rmse, cosine, rel_l2, euclidean, max_ulp, within_1e3, within_5e3
        Metrics (docs/compare.md); None where nothing was measured, `max_ulp` NaN for dtypes without one.
    max_abs_index, max_rel_index, worst
        Flat row-major positions of the largest errors; `worst` has (position, golden, target).
    rtol, atol
        The tolerance that was applied.
    source_file, source_line, source_code, module_path
        Where the node comes from.
    golden_path, target_path, golden_stats, target_stats, detail
        Files, statistics, and one line on what went wrong.
    """

    __slots__ = ("_fields",)

    def __init__(self, fields: dict[str, Any]) -> None:
        self._fields = fields

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_"):
            try:
                return self._fields[name]
            except KeyError:
                pass
        raise AttributeError(f"a pair has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._fields]

    @property
    def source(self) -> str:
        """ "file:line", "" where that is not known."""
        return f"{self.source_file}:{self.source_line}" if self.source_file else ""

    def __repr__(self) -> str:
        error = "" if self.max_abs_err is None else f", max_abs_err {self.max_abs_err:.4g}"
        return f"<Pair {self.name}: {self.verdict}{error}>"


class PairList(LazyList[Pair]):
    """The pairs of a report in order of rank, graph, step and execution; each is made when it is asked for."""

    def __init__(self, report: _core.Report, chosen: Sequence[int] | None = None) -> None:
        super().__init__(range(len(report)) if chosen is None else chosen)
        self._report = report

    def _make(self, number: int) -> Pair:
        return Pair(self._report[number])

    def _only(self, chosen: Sequence[int]) -> Self:
        return type(self)(self._report, chosen)

    def __repr__(self) -> str:
        return f"<{len(self):,} pairs>"


@dataclass(frozen=True)
class Origin:
    """Where an error began.

    Attributes
    ----------
    reason
        "operator" (its inputs agree, its output does not), "graph input", "weight", "random" (another seed), "region"
        (not all of its inputs could be compared: the error began here or just above), "drift" (its inputs agree
        within the tolerance; small errors grew a little and left it here), or "before" (an input of it differs,
        though nothing that feeds it was found to: see `between`).
    pair
        The worst output (or the input) that differs.
    input_error, output_error
        Largest relative L2 error of its inputs, and of its outputs.
    growth
        output_error / input_error; infinite where the inputs are identical.
    n_carried
        Operators below it that only carry the error on.
    follows
        Whether an earlier call had gone wrong before, so that this may be its consequence.
    other_target
        Target's operator where the two sides call different ones, else None.
    literal
        An argument written in the code that differs, in words: ``eps: golden 1e-05, target 0.1``; else None.
    between
        For "before", the operators above the input that one side alone has: ``_to_copy, only in target``; else None.
    other_source, other_code
        Where target's operator stands, "file:line", and the text of that line, where the text is another; else None.
    between_source, between_code, between_module
        Where the first of these stands: "file:line" of the line that called it, its text, the path of the module; each
        None where not known.
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
        """The operator, as "aten.gelu.default"."""
        name: str = self.pair.target
        return name

    @property
    def source(self) -> str:
        """ "file:line", "" where that is not known."""
        return self.pair.source


class Report:
    """What a comparison found. Made by `fxtap.compare` and `fxtap.compare_ranks`.

    In a terminal it shows as the program's report; in a notebook too.
    """

    def __init__(self, core: _core.Report) -> None:
        self._core = core

    @property
    def verdict(self) -> str:
        """ "same", "close" or "different": the worst of all. What is missing, mismatched or unreadable is different."""
        return self._core.verdict

    @property
    def exit_status(self) -> int:
        """As the program's: 0 the same or close, 1 different, 2 where a file could not be read."""
        if self.counts["unreadable"] > 0:
            return 2
        return int(self.verdict == "different")

    @property
    def counts(self) -> dict[str, int]:
        """Verdict -> number of pairs."""
        return self._core.counts

    @property
    def pairings(self) -> dict[str, int]:
        """How pairs were found -> number of pairs."""
        return self._core.pairings

    @cached_property
    def origins(self) -> list[Origin]:
        """Where errors began, in order of execution."""
        return [Origin(**{**fields, "pair": Pair(fields["pair"])}) for fields in self._core.origins]

    @property
    def pairs(self) -> PairList:
        """Every pair."""
        return PairList(self._core)

    @property
    def differing(self) -> PairList:
        """The pairs that are not as they should be."""
        table = self._core.columns(["verdict", "is_missing"])
        places = zip(table["verdict"], table["is_missing"], strict=True)
        return PairList(self._core, [i for i, (verdict, missing) in enumerate(places) if missing or verdict in _BAD])

    @property
    def steps(self) -> str | None:
        """What was aligned as an iteration, in words; None where graphs are equal or there is no index."""
        return self._core.steps

    @property
    def explanation(self) -> str | None:
        """Why the node that `explain` named is paired as it is, and which others were close."""
        return self._core.explanation

    @property
    def first_non_finite(self) -> Pair | None:
        """The first pair in execution order whose target has a NaN or an infinity where golden has none."""
        fields = self._core.first_non_finite
        return None if fields is None else Pair(fields)

    @property
    def groups(self) -> list[dict[str, Any]]:
        """Steps of graphs that were compared with each other, and where their pairs lie."""
        return self._core.groups

    @property
    def warnings(self) -> list[str]:
        """One line for each thing that could not be read as it should."""
        return self._core.warnings

    def to_text(self, width: int = 80, *, colour: bool = False, ascii: bool = False, quiet: bool = False) -> str:
        """Return the report as the program prints it: `width` in columns, `quiet` for the verdict's line alone."""
        return self._core.print(_TEXT, width=width, colour=colour, ascii=ascii, quiet=quiet).decode()

    def to_json(self) -> str:
        """Return all of it as JSON (docs/compare-json.md)."""
        return self._core.print(_JSON).decode()

    def to_csv(self) -> str:
        """Return one row a pair, with msprobe's column names."""
        return self._core.print(_CSV).decode()

    def to_html(self) -> str:
        """Return a page to look at, in one file."""
        return self._core.print(_HTML).decode()

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write the report as its suffix says: .json, .csv, .html, .txt.

        Raises
        ------
        ValueError
            Another suffix.
        FileExistsError
            The file is there already, and not `force`.
        """
        path = Path(expand(path))
        formats = {".json": _JSON, ".csv": _CSV, ".html": _HTML, ".txt": _TEXT}
        if path.suffix not in formats:
            raise ValueError(f"a report is saved as {', '.join(formats)}, not as {path.name!r}")
        with path.open("wb" if force else "xb") as file:
            file.write(self._core.print(formats[path.suffix]))
        return path

    def to_pandas(self) -> pandas.DataFrame:
        """Return a table with one row a pair; its columns are `Pair`'s attributes, under the names that JSON has.

        As there, `target` is the operator, FX's word for it; `target_name` is the name on the target side, where it is
        another one.
        """
        import pandas

        return pandas.DataFrame(self._core.columns())

    def serialise(self) -> bytes:
        """Return the bytes that `merge` takes."""
        return self._core.serialise()

    @classmethod
    def merge(cls, shards: Sequence[bytes]) -> Report:
        """Return one report from those of all shards of a comparison, in their order. ValueError for other bytes."""
        return cls(_core.merge_reports(shards))

    def __repr__(self) -> str:
        return self.to_text().rstrip("\n")

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.to_text(width=100))}</pre>"


def _path(dump: Dump) -> str:
    return dump.path if isinstance(dump, DumpReader) else os.fspath(expand(dump))


def gather_rules(
    rules: str | os.PathLike[str] | Sequence[Rule] | None, amounts: dict[str, float | None]
) -> list[tuple[Any, ...]]:
    """Return the rules as tuples: the one of the keywords first, so that all others win over it."""
    found: list[tuple[Any, ...]] = []
    if any(value is not None for value in amounts.values()):
        found.append(dataclasses.astuple(Rule(**amounts)))  # type: ignore[arg-type]
    if isinstance(rules, (str, os.PathLike)):
        return found + _core.load_rules(expand(rules))
    for rule in rules or ():
        if not isinstance(rule, Rule):
            raise TypeError(f"rules are fxtap.Rule objects, or the path of a file, not {rule!r}")
        found.append(dataclasses.astuple(rule))
    return found


def _selection(run: Selection, rank: Selection, graph: Selection, step: Selection) -> dict[str, Any]:
    given = {"run": run, "rank": rank, "graph": graph, "step": step}
    return {name: value for name, value in given.items() if value is not None}


class CompareOptions(TypedDict, total=False):
    """What `compare` and `compare_ranks` take by keyword, both alike; `compare` says what each means."""

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
    """Options as the core takes them."""
    given: dict[str, Any] = dict(options)
    amounts = {name: given.pop(name, None) for name in _TOLERANCES}
    given["rules"] = gather_rules(given.pop("rules", None), amounts)
    given["shard"], given["n_shards"] = given.pop("shard", None) or (0, 0)
    return given


@contextlib.contextmanager
def _telling_of(options: CompareOptions) -> Iterator[None]:
    """Tell of a pattern that matches nothing as `PatternError` does."""
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
    **options: Unpack[CompareOptions],
) -> Report:
    """
    Compare two dumps; find the first operator that went wrong.

    Parameters
    ----------
    golden, target
        What is taken as right, and what is judged: a dump, a rank, graph or step folder, a folder of .npy files, one
        .npy file, or what `fxtap.open` returned. Dumps without an index (TorchAir's own) are read by their names.
        No `target`: two parts of `golden`, as `step=(0, 5)`.
    run, rank, graph, step
        Only this one, or (golden's, target's). By default the latest run, and all ranks, graphs and steps.
    map
        A file of lines "GOLDEN-NAME TARGET-NAME", `*` allowed, for what has other names.
    op
        Shell pattern on node, operator, module path, source line or tensor name, as `fxtap compare --op`.
    rules
        A TOML file of rules, or `Rule` objects; they win over the six tolerances below.
    rtol, atol, cosine, max_abs, rel_l2, max_ulp
        What counts as close (see `Rule`); by default as `torch.testing.assert_close`, by dtype, and so where `max_ulp`
        alone is given and a dtype has no units in the last place.
    fail_fast
        Stop at the first tensor that differs.
    read_all
        Read every file, also where the recorded hashes are equal.
    strict
        What one side alone has, and numbers in the code that differ, are differences too, though the programs are
        written differently.
    step_of
        Shell pattern: an iteration begins with each call of the first graph that has an operator which matches. By
        default iterations are found by what repeats. It matters only where the graphs of the two sides are not equal.
    explain
        Name of a node: `Report.explanation` says why it is paired as it is, and which others were close.
    threads
        0: as many as there are processors.
    n_worst
        Coordinates kept of each differing pair.
    shard
        (k, n): only every n-th step of a graph, from the k-th on; put together by `Report.merge`.
    progress
        Called now and then with pairs done and in all; an exception in it stops the comparison.

    Raises
    ------
    OSError, LookupError, ValueError
        A side cannot be opened, has no tensors, or is from a newer fxtap; options, rules or map make no sense; nothing
        was compared, as where `op` matches nothing (`PatternError`, which is a LookupError and a ValueError).
        Single files that cannot be read are pairs with the verdict "unreadable".
    """
    __tracebackhide__ = True  # pytest would print all of this docstring
    parts = _selection(run, rank, graph, step)
    if target is None and not any(isinstance(value, tuple) for value in parts.values()):
        raise ValueError("what is it to be compared with? (A second dump, or two parts of this one: step=(0, 1))")
    golden, target = _path(golden), _path(golden if target is None else target)
    with _telling_of(options):
        return Report(_core.compare(golden, target, **parts, map=expand(map), **_core_options(options)))


def compare_ranks(
    dump: Dump,
    *,
    run: int | None = None,
    graph: int | None = None,
    step: int | None = None,
    **options: Unpack[CompareOptions],
) -> Report:
    """
    Compare tensors that should be replicas: every rank's with the first rank's.

    Those of the same graph, node and place count as replicas. Parameters are `compare`'s.

    Raises
    ------
    LookupError
        There is only one rank. Otherwise as `compare`.
    """
    __tracebackhide__ = True
    with _telling_of(options):
        return Report(_core.compare_ranks(_path(dump), **_selection(run, None, graph, step), **_core_options(options)))
