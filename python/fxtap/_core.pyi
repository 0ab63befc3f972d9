"""The extension: FX graphs become C programs and graph records, their tensors go to the dump writer."""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, final

from torch.fx import GraphModule

version: str

@final
class Graph:
    """A graph record, independent of torch: what the index keeps and the printers print. Immutable."""

    @property
    def kind(self) -> str:
        """inference, forward, backward or subgraph."""
    @property
    def names(self) -> tuple[str, ...]:
        """Node names in execution order; all tuples below have one entry a node in the same order."""
    @property
    def ops(self) -> tuple[str, ...]:
        """placeholder, call_function, get_attr, output, call_module or call_method."""
    @property
    def targets(self) -> tuple[str, ...]:
        """aten.add.Tensor, operator.mul, ...: what file names carry."""
    @property
    def flags(self) -> tuple[frozenset[str], ...]:
        """Of mutates, undefined, random, async, aten, view."""
    @property
    def stack_traces(self) -> tuple[str, ...]:
        """torch's own text, "" where there is none."""
    @property
    def module_paths(self) -> tuple[str, ...]:
        """Of the innermost module, as L['self'].blocks.0.fc; "" where there is none."""
    @property
    def module_types(self) -> tuple[str, ...]: ...
    @property
    def sources(self) -> tuple[tuple[str, int, str, str], ...]:
        """File, line, function and code of the innermost frame; ("", 0, "", "") where there is none."""
    @property
    def strict_key(self) -> str:
        """32 hexadecimal digits: targets, wiring, constants, dtypes, device kinds, symbolic shapes."""
    @property
    def structural_key(self) -> str:
        """32 hexadecimal digits: targets and wiring alone."""
    @property
    def subgraphs(self) -> tuple[Graph, ...]:
        """Branches and bodies of higher-order operators, in order of first sight."""
    def serialise(self) -> bytes: ...
    @classmethod
    def from_bytes(cls, data: bytes, /) -> Graph:
        """The record of `serialise`'s bytes. ValueError when they are none."""
    def __len__(self) -> int:
        """The number of nodes."""

def record(gm: GraphModule, kind: str = "inference", *, constant_bytes: int = 1048576) -> Graph:
    """
    Walk a torch.fx graph into a record.

    Parameters
    ----------
    gm
        Any GraphModule; subgraphs of higher-order operators are recorded with it.
    kind
        inference, forward or backward, else ValueError.
    constant_bytes
        Tensors held by the module are recorded with their values up to this many bytes each.
    """

def print_graph(graph: Graph, format: str, *, title: str | None = None, optimised: bool = False) -> bytes:
    """
    The text of a graph as fx, json, dot, html, py, txt or pbtxt, else ValueError. `optimised`: for the last three, the
    graph as TorchAir writes it before the first call.
    """

def summarise(graph: Graph, *, english: bool = False) -> bytes:
    """The CSV of TorchAir's fx_summary: one row a target."""

@final
class Dump:
    """One rank of a dump root, open for writing. Nothing is on disk before the first tensor is."""

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
        `type` is npy or stats; 0 means the library's own choice (1 GiB; at most 4 threads).

        `lent_threads` is the size of torch's OpenMP team: it helps at the end of a call, and processors that it uses
        get no writer threads. 0: none.
        """
    @property
    def rank_path(self) -> str:
        """The absolute path of worldsize{W}_global_rank{R}."""
    @property
    def closed(self) -> bool: ...
    def close(self) -> None:
        """Wait for what is pending and close the index. Programs then run without dumping. Idempotent."""
    def after_fork(self) -> None:
        """To be called first in a forked child: a new run begins, the parent's files are not touched."""

@final
class Program:
    """
    A torch.fx graph compiled for the run loop in C.

    Called with one list of arguments (boxed calling convention), which it empties. Any number of threads may call it
    at once, also from inside itself.
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
    ) -> Program:
        """
        Parameters
        ----------
        record
            Of the same `gm`; needed with `dump`.
        dump, graph_id
            Where each call leaves a step; graph_id >= 1 is unique in the process.
        skip
            One entry a node: why it is not dumped, None for those that are. Only call_function nodes are ever dumped.
        on_error
            "raise": what the dump could not write is raised at the end of the call as OSError, ValueError,
            MemoryError, or RuntimeError where another process kept the index locked. "warn": `log` gets the message
            once, this program stops dumping, the model runs on.
        log
            Called with one line, also where the index is written without locks because the file system has none.
        """
    @property
    def dumping(self) -> bool:
        """Whether the next call dumps anything."""
    @property
    def node_count(self) -> int: ...
    def __call__(self, arguments: list[Any], /) -> Any: ...

@final
class Tensors:
    """Saved tensors of a dump: a sequence of dicts, one entry a field; what is not known is None."""

    def __len__(self) -> int: ...
    def __getitem__(self, i: int, /) -> dict[str, Any]: ...
    def columns(self) -> dict[str, list[Any]]:
        """All of it, field by field."""
    def load_meta(self, i: int, /) -> None:
        """Fill dtype and shape from the file's header where the index did not."""
    def load_stats(self, i: int, /) -> None:
        """Fill statistics and hash from the file's data where the index did not."""
    def open(self, i: int, /) -> Values:
        """Map the file's data; no descriptor stays open. ValueError for dtypes that no tensor has."""

@final
class Values:
    """The data of an .npy file: a read-only buffer."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def descr(self) -> str:
        """NumPy's name of the dtype, as it stands in the file."""
    @property
    def fortran_order(self) -> bool: ...

@final
class Reader:
    """
    A dump, opened for reading: a root, a rank, graph or step folder, a folder of .npy files, one .npy file.

    Graphs, steps and nodes come as dicts in order. A graph is named by `run` (0 the latest, -1 all, else that one) and
    its place in `graphs(run)`. Raises OSError, ValueError, LookupError.
    """

    def __new__(cls, path: str | bytes | PathLike[str] | PathLike[bytes]) -> Reader: ...
    @property
    def kind(self) -> str:
        """indexed, named (no index, TorchAir's names), plain or file."""
    @property
    def path(self) -> str: ...
    @property
    def warnings(self) -> list[str]:
        """One line for each thing that could not be read as it should."""
    def ranks(self) -> list[dict[str, Any]]: ...
    def runs(self, rank_i: int, /) -> list[dict[str, Any]]: ...
    def graphs(self, run: int, /) -> list[dict[str, Any]]: ...
    def steps(self, run: int, i: int, /) -> list[dict[str, Any]]: ...
    def nodes(self, run: int, i: int, /) -> list[dict[str, Any]]: ...
    def record(self, run: int, i: int, /) -> Graph:
        """The graph's record, a copy. LookupError without an index."""
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
        Tensors in order of rank, graph, step, execution; -1 means all. `io`: 0 INPUT, 1 OUTPUT, 2 INOUT. LookupError
        where the pattern matches nothing in the whole run.
        """

@final
class Report:
    """A finished comparison (include/fxtap/compare.h): a sequence of pairs, each a dict; what is not known is None."""

    def __len__(self) -> int: ...
    def __getitem__(self, i: int, /) -> dict[str, Any]: ...
    def columns(self, names: Sequence[str] = ..., /) -> dict[str, list[Any]]:
        """The pairs field by field: the named ones, else all that fit a table."""
    @property
    def verdict(self) -> str: ...
    @property
    def counts(self) -> dict[str, int]:
        """Verdict -> pairs."""
    @property
    def pairings(self) -> dict[str, int]:
        """Way of pairing -> pairs."""
    @property
    def origins(self) -> list[dict[str, Any]]:
        """Their `pair` is a dict as the report's items."""
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
        """As text (1), JSON (2), CSV (3) or HTML (4), in UTF-8. `width` in columns, 0: 80."""
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
    Compare two dumps, without the GIL. A pair selects golden's and target's; 0 is the latest run, -1 stands for all.

    Signals are seen ten times a second; an exception of a handler or of `progress` ends the comparison.
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
    """Compare the ranks of one dump with its first, as `compare`."""

def load_rules(path: str | bytes | PathLike[str] | PathLike[bytes], /) -> list[_Rule]:
    """The rules of a TOML file. OSError, ValueError."""

def merge_reports(shards: Sequence[bytes], /) -> Report:
    """One report from the bytes of its shards, in their order. ValueError."""

def claim_block(first: int, /) -> int:
    """The first block of 1000 graph numbers, from `first` on, that neither this process nor a forked relative has."""

def node_matches(pattern: str, name: str, target: str, module_path: str, source_file: str, source_line: int, /) -> bool:
    """Whether a shell pattern chooses a node, as `fxtap ls --op` does (include/fxtap/reader.h)."""

def nearest_name(typed: str, names: tuple[str, ...], /) -> str | None:
    """The nearest of some names to what was typed; None where none is near."""

def force_dlpack_fallback(on: bool, /) -> bool:
    """For tests: take every tensor by __dlpack__ instead of the exchange table. Returns what was set before."""
