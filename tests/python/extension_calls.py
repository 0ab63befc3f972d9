"""Every public call of the extension, and its error paths, on a small graph and the dump of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fxtap import _core
from graphs import aten, chain

Call = Callable[[], Any]

RULES = '[[rule]]\ndtype = "float32"\nrtol = 1e-3\n'


def make_dump(path: Path, scale: float) -> None:
    """Two steps of a chain of three operators, values times `scale`."""
    gm = chain(aten.sin.default, aten.exp.default, aten.neg.default)
    record = _core.record(gm)
    dump = _core.Dump(str(path))
    program = _core.Program(gm, record, dump, 1)
    for step in range(2):
        program([torch.linspace(0, 1, 16) * scale + step])
    dump.close()


def refused(call: Call) -> Call:
    """Wrap a call that must fail for a reason other than memory; MemoryError propagates."""

    def run() -> None:
        try:
            call()
        except MemoryError:
            raise
        except Exception:
            return
        raise AssertionError("no error")

    return run


def graph_calls() -> dict[str, Call]:
    gm = chain(aten.sin.default, aten.exp.default, aten.neg.default)
    graph = _core.record(gm)
    data = graph.serialise()
    properties = ["kind", "names", "ops", "targets", "flags", "stack_traces", "module_paths", "module_types", "sources"]
    properties += ["subgraphs", "strict_key", "structural_key"]
    calls: dict[str, Call] = {
        "record": lambda: _core.record(gm),
        "record refused": refused(lambda: _core.record(gm, "no kind")),
        "record of nothing": refused(lambda: _core.record(None)),  # type: ignore[arg-type]
        "serialise": graph.serialise,
        "from_bytes": lambda: _core.Graph.from_bytes(data),
        "from_bytes refused": refused(lambda: _core.Graph.from_bytes(data[:-1])),
        "summarise": lambda: _core.summarise(graph),
        "print refused": refused(lambda: _core.print_graph(graph, "no format")),
        "properties": lambda: [getattr(graph, name) for name in properties],
        "len": lambda: len(graph),
    }
    for form in ("fx", "json", "dot", "html", "py", "txt", "pbtxt"):
        calls[f"print {form}"] = lambda form=form: _core.print_graph(graph, form)  # type: ignore[misc]
    return calls


def program_calls(folder: Path) -> dict[str, Call]:
    gm = chain(aten.sin.default, aten.exp.default, aten.neg.default)
    record = _core.record(gm)
    x = torch.ones(4)
    plain = _core.Program(gm)
    stats = _core.Dump(str(folder / "stats"), type="stats")
    dumping = _core.Program(gm, record, stats, 2)
    files = _core.Program(gm, record, _core.Dump(str(folder / "files")), 3)
    failing = _core.Program(chain(aten.sin.default, refuse))
    return {
        "Program": lambda: _core.Program(gm),
        "Program refused": refused(lambda: _core.Program(gm, on_error="no way")),
        "Program with a bad skip": refused(lambda: _core.Program(gm, record, stats, 4, [None])),
        "call": lambda: plain([x]),
        "call refused": refused(lambda: plain([])),
        "call of no list": refused(lambda: plain(None)),  # type: ignore[arg-type]
        "call that fails": refused(lambda: failing([x])),
        "call with statistics": lambda: dumping([x]),
        "call with files": lambda: files([x]),
        "dumping": lambda: (dumping.dumping, dumping.node_count, stats.rank_path, stats.closed),
        "Dump": lambda: _core.Dump(str(folder / "unused")).close(),
        "Dump refused": refused(lambda: _core.Dump(str(folder), type="no type")),
    }


def refuse(x: Any) -> Any:
    """An operator that fails."""
    raise RuntimeError("refused")


def reader_calls(path: str) -> dict[str, Call]:
    reader = _core.Reader(path)
    tensors = reader.tensors()
    return {
        "Reader": lambda: _core.Reader(path),
        "Reader refused": refused(lambda: _core.Reader(path + "/not there")),
        "reader": lambda: (reader.kind, reader.path, reader.warnings, reader.ranks(), reader.runs(0)),
        "graphs": lambda: (reader.graphs(0), reader.steps(0, 0), reader.nodes(0, 0)),
        "graphs refused": refused(lambda: reader.steps(0, 99)),
        "reader.record": lambda: reader.record(0, 0),
        "tensors": lambda: reader.tensors(pattern="*s*"),
        "tensors refused": refused(lambda: reader.tensors(pattern="nothing")),
        "tensor": lambda: (tensors[0], len(tensors)),
        "tensor refused": refused(lambda: tensors[len(tensors)]),
        "columns": tensors.columns,
        "load": lambda: (tensors.load_meta(0), tensors.load_stats(0)),  # type: ignore[func-returns-value]
        "open": lambda: (lambda v: (bytes(memoryview(v)), v.shape, v.descr, v.fortran_order))(tensors.open(0)),
    }


def compare_calls(good: str, bad: str, rules: str) -> dict[str, Call]:
    report = _core.compare(good, bad)
    shards = [_core.compare(good, bad, shard=i, n_shards=2).serialise() for i in range(2)]
    fields = "verdict counts pairings origins groups steps explanation first_non_finite warnings"
    calls: dict[str, Call] = {
        "compare": lambda: _core.compare(good, bad, threads=1),
        "compare refused": refused(lambda: _core.compare(good, good + "/not there")),
        "compare that is stopped": refused(lambda: _core.compare(good, bad, progress=stop)),
        "compare with bad rules": refused(lambda: _core.compare(good, bad, rules=[("no dtype",)])),  # type: ignore[list-item]
        "compare_ranks refused": refused(lambda: _core.compare_ranks(good)),
        "report": lambda: [getattr(report, name) for name in fields.split()],
        "report item": lambda: (report[0], len(report)),
        "report item refused": refused(lambda: report[len(report)]),
        "report.columns": report.columns,
        "report.columns refused": refused(lambda: report.columns(1)),  # type: ignore[arg-type]
        "report.serialise": report.serialise,
        "report.print refused": refused(lambda: report.print(99)),
        "merge_reports": lambda: _core.merge_reports(shards),
        "merge_reports refused": refused(lambda: _core.merge_reports([shards[0][:-1]])),
        "load_rules": lambda: _core.load_rules(rules),
        "load_rules refused": refused(lambda: _core.load_rules(good)),
        "node_matches": lambda: _core.node_matches("*s*", "sin", "aten.sin.default", "", "", 0),
        "nearest_name": lambda: _core.nearest_name("sine", ("sin", "cos")),
        "nearest_name refused": refused(lambda: _core.nearest_name("sine", (1,))),  # type: ignore[arg-type]
        "claim_block": lambda: _core.claim_block(1),
    }
    for form in range(1, 5):
        calls[f"report.print {form}"] = lambda form=form: report.print(form)  # type: ignore[misc]
    return calls


def verified(dtype: str = "bfloat16") -> _core.Verification:
    """One result that is wrong and measured, one that is not replayed."""
    verification = _core.Verification("good", "bad")
    reference, saved = np.linspace(0, 1, 64), np.linspace(0, 2, 64, dtype="float32")
    spread = np.zeros(64)
    verdict = verification.judge(saved, dtype, reference, third=saved[::-1].copy(), spread=spread, spread_runs=15)
    place = (0, 1, 0, "gelu", "aten.gelu.default", "OUTPUT 0", ("model.py", 3, "forward", "gelu(x)"), "L['self'].act")
    verification.add(*place, dtype, (8, 8), verdict, call=1, order=2)
    verification.add(*place, dtype, (8, 8), "not replayed", "random", call=2, order=2)
    return verification


def verify_calls() -> dict[str, Call]:
    verification = verified()
    shards = [verification.serialise()] * 2
    few = np.zeros(3)
    calls: dict[str, Call] = {
        "Verification": verified,
        "Verification refused": refused(lambda: _core.Verification(None, None)),  # type: ignore[arg-type]
        "judge refused": refused(lambda: verification.judge(few, "float32", few)),
        "judge of no buffer": refused(lambda: verification.judge(few, "float64", 3)),  # type: ignore[arg-type]
        "judge of no dtype": refused(lambda: verified("no dtype")),
        "verification": lambda: [getattr(verification, name) for name in ("verdict", "counts", "wrong", "operators")],
        "verification.serialise": verification.serialise,
        "verification.print refused": refused(lambda: verification.print(99)),
        "merge_verifications": lambda: _core.merge_verifications(shards),
        "merge_verifications refused": refused(lambda: _core.merge_verifications([shards[0][:-1]])),
    }
    for form in range(1, 5):
        calls[f"verification.print {form}"] = lambda form=form: verification.print(form)  # type: ignore[misc]
    return calls


def stop(done: int, total: int) -> None:
    raise KeyError("stopped")


def all_calls(folder: Path) -> dict[str, Call]:
    """Name -> a call without arguments that may be repeated any number of times."""
    make_dump(folder / "good", 1)
    make_dump(folder / "bad", 2)
    (folder / "rules.toml").write_text(RULES)
    return {
        **graph_calls(),
        **program_calls(folder),
        **reader_calls(str(folder / "good")),
        **verify_calls(),
        **compare_calls(str(folder / "good"), str(folder / "bad"), str(folder / "rules.toml")),
    }
