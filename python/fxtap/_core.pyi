"""The extension: compiles FX graphs to C programs, records graphs, and writes, reads and compares dumps."""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, final

from torch.fx import GraphModule

version: str

@final
class Graph:
    """A graph record, independent of torch, as stored in the index and printed by the printers. Immutable."""

    @property
    def kind(self) -> str:
        """inference, forward, backward or subgraph."""
    @property
    def names(self) -> tuple[str, ...]:
        """Node names in execution order; all tuples below have one entry per node in the same order."""
    @property
    def ops(self) -> tuple[str, ...]:
        """placeholder, call_function, get_attr, output, call_module or call_method."""
    @property
    def targets(self) -> tuple[str, ...]:
        """aten.add.Tensor, operator.mul, ..., as in file names."""
    @property
    def flags(self) -> tuple[frozenset[str], ...]:
        """Subsets of mutates, undefined, random, async, aten, view."""
    @property
    def stack_traces(self) -> tuple[str, ...]:
        """torch's text, or ""."""
    @property
    def module_paths(self) -> tuple[str, ...]:
        """Path of the innermost module, such as L['self'].blocks.0.fc, or ""."""
    @property
    def module_types(self) -> tuple[str, ...]: ...
    @property
    def sources(self) -> tuple[tuple[str, int, str, str], ...]:
        """File, line, function and code of the innermost frame, or ("", 0, "", "")."""
    @property
    def strict_key(self) -> str:
        """32 hexadecimal digits: targets, wiring, constants, dtypes, device kinds, symbolic shapes."""
    @property
    def structural_key(self) -> str:
        """32 hexadecimal digits: targets and wiring only."""
    @property
    def subgraphs(self) -> tuple[Graph, ...]:
        """Branches and bodies of higher-order operators, in order of first occurrence."""
    def serialise(self) -> bytes: ...
    @classmethod
    def from_bytes(cls, data: bytes, /) -> Graph:
        """Restore a record from the bytes of `serialise`. ValueError if they are invalid."""
    def __len__(self) -> int:
        """The number of nodes."""

def record(gm: GraphModule, kind: str = "inference", *, constant_bytes: int = 1048576) -> Graph:
    """
    Record a torch.fx graph.

    Parameters
    ----------
    gm
        Any GraphModule; subgraphs of higher-order operators are recorded with it.
    kind
        inference, forward or backward, else ValueError.
    constant_bytes
        Constant tensors of the module up to this size each are recorded with their values.
    """

def print_graph(graph: Graph, format: str, *, title: str | None = None, optimised: bool = False) -> bytes:
    """
    Print a graph as fx, json, dot, html, py, txt or pbtxt; ValueError for other formats. `optimised`: for the last
    three, the graph as TorchAir writes it before the first call.
    """

def summarise(graph: Graph, *, english: bool = False) -> bytes:
    """Return the CSV of TorchAir's fx_summary: one row per target."""

@final
class Dump:
    """One rank of a dump root, open for writing. Nothing is written before the first tensor."""

    def __new__(
        cls,
        path: str,
        *,
        world_size: int = 1,
        rank: int = 0,
        type: str = "npy",
        sync: bool = False,
        dedup: bool = True,
        queue_bytes: int = 0,
        threads: int = 0,
        lent_threads: int = 0,
        versions: str | None = None,
        command: str | None = None,
    ) -> Dump:
        """
        `type` is npy, stats or verify. `queue_bytes` and `threads`: 0 is the default (1 GiB; at most 4 threads).

        `lent_threads` is the size of torch's OpenMP team, which helps at the end of a call; its processors get no
        writer threads. 0: none.
        """
    @property
    def rank_path(self) -> str:
        """The absolute path of worldsize{W}_global_rank{R}."""
    @property
    def closed(self) -> bool: ...
    def close(self) -> None:
        """Wait for pending writes and close the index. Programs then run without dumping. Idempotent."""
    def after_fork(self) -> None:
        """Must be called first in a forked child: begins a new run; the parent's files are not touched."""

@final
class Program:
    """
    A torch.fx graph compiled for the run loop in C.

    Called with one list of arguments (boxed calling convention), which it empties. Calls may be concurrent and
    re-entrant.
    """

    _boxed_call: bool

    def __new__(
        cls,
        gm: GraphModule,
        record: Graph | None = None,
        dump: Dump | None = None,
        graph_id: int = 0,
        skip: Sequence[str | None] | None = None,
        *,
        on_error: str = "raise",
        log: Callable[[str], object] | None = None,
        verifier: Any = None,
    ) -> Program:
        """
        Parameters
        ----------
        record
            The record of `gm`; required with `dump`.
        dump, graph_id
            The dump to which each call writes a step; graph_id >= 1 is unique in the process.
        skip
            One entry per node: why it is not dumped, or None. Only call_function nodes are dumped.
        on_error
            "raise": a write error is raised at the end of the call as OSError, ValueError, MemoryError, or
            RuntimeError if another process kept the index locked. "warn": `log` gets the message once, this program
            stops dumping, the model runs on.
        log
            Called with one line; also if the index is written without locks because the file system has none.
        verifier
            A `fxtap.verification.live.Verifier`: only operators that it finds wrong are dumped. None: all are.
        """
    @property
    def dumping(self) -> bool:
        """Whether the next call dumps any tensor."""
    @property
    def node_count(self) -> int: ...
    def __call__(self, arguments: list[Any], /) -> Any: ...

@final
class Tensors:
    """Saved tensors of a dump: a sequence of dicts, one entry per field; unknown fields are None."""

    def __len__(self) -> int: ...
    def __getitem__(self, i: int, /) -> dict[str, Any]: ...
    def columns(self) -> dict[str, list[Any]]:
        """Return all tensors as columns: field -> values."""
    def load_meta(self, i: int, /) -> None:
        """Load dtype and shape from the file's header if the index does not have them."""
    def load_stats(self, i: int, /) -> None:
        """Compute statistics and hash from the file's data if the index does not have them."""
    def open(self, i: int, /) -> Values:
        """Map the file's data; no descriptor stays open. ValueError for dtypes that tensors do not have."""

@final
class Values:
    """The data of an .npy file: a read-only buffer."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def descr(self) -> str:
        """NumPy's dtype string from the file."""
    @property
    def fortran_order(self) -> bool: ...

@final
class Reader:
    """
    A dump, opened for reading: a root, a rank, graph or step folder, a folder of .npy files, one .npy file.

    Graphs, steps and nodes are returned as dicts in order. A graph is identified by `run` (0 the latest, -1 all, else
    its number) and its index in `graphs(run)`. Raises OSError, ValueError, LookupError.
    """

    def __new__(cls, path: str | bytes | PathLike[str] | PathLike[bytes]) -> Reader: ...
    @property
    def kind(self) -> str:
        """indexed, named (no index, TorchAir's names), plain or file."""
    @property
    def path(self) -> str: ...
    @property
    def warnings(self) -> list[str]:
        """One line for each problem in reading."""
    def ranks(self) -> list[dict[str, Any]]: ...
    def runs(self, rank_i: int, /) -> list[dict[str, Any]]: ...
    def graphs(self, run: int, /) -> list[dict[str, Any]]: ...
    def steps(self, run: int, i: int, /) -> list[dict[str, Any]]: ...
    def nodes(self, run: int, i: int, /) -> list[dict[str, Any]]: ...
    def record(self, run: int, i: int, /) -> Graph:
        """Return a copy of the graph's record. LookupError without an index."""
    def tensors(
        self,
        run: int = 0,
        rank: int = -1,
        graph: int = -1,
        step: int = -1,
        incomplete: bool = False,
        pattern: str | None = None,
        io: int = -1,
    ) -> Tensors:
        """
        Return tensors in order of rank, graph, step, execution; -1 means all. `io`: 0 INPUT, 1 OUTPUT, 2 INOUT.
        LookupError if the pattern matches nothing in the whole run.
        """

@final
class Report:
    """A finished comparison (include/fxtap/compare.h): a sequence of pairs, each a dict; unknown fields are None."""

    def __len__(self) -> int: ...
    def __getitem__(self, i: int, /) -> dict[str, Any]: ...
    def columns(self, names: Sequence[str] = ..., /) -> dict[str, list[Any]]:
        """Return the pairs as columns: the named fields, by default all that fit a table."""
    @property
    def verdict(self) -> str: ...
    @property
    def counts(self) -> dict[str, int]:
        """Verdict -> number of pairs."""
    @property
    def pairings(self) -> dict[str, int]:
        """Pairing method -> number of pairs."""
    @property
    def origins(self) -> list[dict[str, Any]]:
        """Dicts; their `pair` is a dict like the report's items."""
    @property
    def groups(self) -> list[dict[str, Any]]: ...
    @property
    def steps(self) -> str | None: ...
    @property
    def explanation(self) -> str | None: ...
    @property
    def first_non_finite(self) -> dict[str, Any] | None: ...
    @property
    def warnings(self) -> list[str]: ...
    def print(
        self, format: int, *, width: int = 0, colour: bool = False, ascii: bool = False, quiet: bool = False
    ) -> bytes:
        """Return text (1), JSON (2), CSV (3) or HTML (4), in UTF-8. `width` in columns, 0: 80."""
    def serialise(self) -> bytes: ...

_Rule = tuple[
    str | None, str | None, str | None,
    float | None, float | None, float | None, float | None, float | None, float | None,
]  # fmt: skip
"""dtype, target, node; rtol, atol, cosine, max_abs, rel_l2, max_ulp."""

def compare(
    golden: str | bytes | PathLike[str] | PathLike[bytes],
    target: str | bytes | PathLike[str] | PathLike[bytes],
    /,
    *,
    run: int | tuple[int, int] = 0,
    rank: int | tuple[int, int] = -1,
    graph: int | tuple[int, int] = -1,
    step: int | tuple[int, int] = -1,
    op: str | None = None,
    map: str | PathLike[str] | None = None,
    rules: Sequence[_Rule] = (),
    read_all: bool = False,
    fail_fast: bool = False,
    strict: bool = False,
    step_of: str | None = None,
    explain: str | None = None,
    threads: int = 0,
    shard: int = 0,
    n_shards: int = 0,
    n_worst: int = 5,
    progress: Callable[[int, int], object] | None = None,
) -> Report:
    """
    Compare two dumps, without the GIL. A tuple selects golden's and target's; 0 is the latest run, -1 means all.

    Signals are handled ten times a second; an exception of a handler or of `progress` ends the comparison.
    """

def compare_ranks(
    dump: str | bytes | PathLike[str] | PathLike[bytes],
    /,
    *,
    run: int | tuple[int, int] = 0,
    rank: int | tuple[int, int] = -1,
    graph: int | tuple[int, int] = -1,
    step: int | tuple[int, int] = -1,
    op: str | None = None,
    map: str | PathLike[str] | None = None,
    rules: Sequence[_Rule] = (),
    read_all: bool = False,
    fail_fast: bool = False,
    strict: bool = False,
    step_of: str | None = None,
    explain: str | None = None,
    threads: int = 0,
    shard: int = 0,
    n_shards: int = 0,
    n_worst: int = 5,
    progress: Callable[[int, int], object] | None = None,
) -> Report:
    """Compare the ranks of one dump with its first rank; otherwise like `compare`."""

def load_rules(path: str | bytes | PathLike[str] | PathLike[bytes], /) -> list[_Rule]:
    """Load the rules of a TOML file. OSError, ValueError."""

def merge_reports(shards: Sequence[bytes], /) -> Report:
    """Merge the bytes of all shards, in order, into one report. ValueError."""

def verify_report(report: Report, verification: Verification, /) -> bool:
    """Add a verification of the same dumps to a report; return whether rounding explains all that differs."""

@final
class Verification:
    """Results of operators, judged by their rounding and collected (include/fxtap/verify.h)."""

    def __new__(cls, golden: str | None, target: str) -> Verification: ...
    def judge(
        self,
        saved: Any,
        dtype: str,
        reference: Any,
        *,
        third: Any = None,
        spread: Any = None,
        spread_runs: int = 0,
        reduction: int = 1,
        coarse_dtype: str | None = None,
        pointwise: bool = False,
        wrong_indices: int | None = None,
        no_third: bool = False,
        no_spread: bool = False,
        continued: bool = False,
    ) -> str:
        """
        Judge one result. The measurement of a settled result belongs to the next `add`.

        Parameters
        ----------
        saved, third
            In the saved form of `dtype` (bfloat16 as float32). `third` is the operator run in its own dtype.
        reference, spread
            float64 or complex128; for integers and bools the saved form. All arrays are contiguous, in one order.
        spread_runs
            Perturbed runs that `spread` comes from.
        reduction
            Length of the reduction behind one element.
        coarse_dtype
            The coarsest dtype among inputs and output.
        pointwise
            Pointwise, or a move of data: the sign of zero matters.
        wrong_indices
            Of index results: how many select another value than the reference's.
        no_third, no_spread
            It cannot be computed: judge without it.
        continued
            The last call asked for what this one adds, and all else is as it was.

        Returns
        -------
        str
            "exact", "rounding", "biased" or "wrong"; or what it needs in another call with the same arguments:
            "third", "spread" (3 runs), "more spread" (15 runs: those 3 and 12 more).

        Raises
        ------
        ValueError
            Lengths do not agree, unknown dtype.
        """
    def add(
        self,
        rank: int,
        graph: int,
        step: int,
        node: str,
        op: str,
        slot: str,
        source: tuple[str, int, str, str],
        module: str,
        dtype: str,
        shape: Sequence[int],
        verdict: str,
        reason: str = "",
        *,
        call: int = -1,
        order: int = -1,
        distances: tuple[float, float, float] = ...,
        alone: bool = False,
        value: tuple[int, bool] = ...,
        inputs: Sequence[tuple[int, bool]] = ...,
    ) -> None:
        """
        Record a result; those of one operator call follow each other.

        `source` is file, line, function, code. `call` numbers the calls of the process and `order` the nodes of the
        graph: shards are merged in the order of rank, call, step, graph, order. Without a `reason` it is what judging
        found. `distances`: golden's, target's and rounding's from the exact value, if they were computed. `alone`:
        golden has no operator for it. `value`, `inputs`: 64 bits of the hash, and whether it differs from golden's.
        """
    @property
    def verdict(self) -> str:
        """nothing wrong, or wrong."""
    @property
    def counts(self) -> dict[str, int]:
        """Verdict -> number of operator calls."""
    @property
    def wrong(self) -> list[dict[str, Any]]:
        """The operators that are wrong or biased, as in the JSON."""
    @property
    def operators(self) -> list[dict[str, Any]]:
        """All operator calls, as in the JSON."""
    def print(
        self, format: int, *, width: int = 0, colour: bool = False, ascii: bool = False, quiet: bool = False
    ) -> bytes:
        """Return text (1), JSON (2), CSV (3) or HTML (4), in UTF-8. `width` in columns, 0: 80."""
    def serialise(self) -> bytes: ...

def merge_verifications(shards: Sequence[bytes], /) -> Verification:
    """Merge the bytes of shards, in any order, into one verification. ValueError."""

def claim_block(first: int, /) -> int:
    """Claim the first free block of 1000 graph numbers, from `first` on, not used by this process or a relative."""

def node_matches(pattern: str, name: str, target: str, module_path: str, source_file: str, source_line: int, /) -> bool:
    """Return whether a shell pattern matches a node, as `fxtap ls --op` does (include/fxtap/reader.h)."""

def nearest_name(typed: str, names: tuple[str, ...], /) -> str | None:
    """Return the name nearest to `typed`, or None."""

def force_dlpack_fallback(on: bool, /) -> bool:
    """For tests: convert every tensor with __dlpack__ instead of the exchange table. Returns the previous setting."""
