"""All interfaces give the same answer about two random dumps, field by field."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import random
import shutil
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.fx import Graph, GraphModule, Node

import fxtap
from fxtap import _core
from fxtap.comparison import Report

aten = torch.ops.aten

INTEGERS = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32]
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
FLOATS8 = [torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz]
COMPLEX = [torch.complex64, torch.complex128]
SPECIAL = [0.0, -0.0, math.nan, math.inf, -math.inf, 1e-42, 3e38, 65504.0, 448.0, 1.0, -1.0]
SHAPES: list[tuple[int, ...]] = [(), (1,), (7,), (2, 3), (0, 3), (4, 1, 5), (33, 65)]
PROGRAM = os.environ.get("FXTAP_PROGRAM") or shutil.which("fxtap")

Call = tuple[Any, list[Any], dict[str, Any]]
"""An operator, its arguments (a string names an earlier node), its keyword arguments."""


def random_values(rng: random.Random, dtype: torch.dtype, shape: Sequence[int]) -> torch.Tensor:
    generator = torch.Generator().manual_seed(rng.randrange(2**31))
    if dtype in INTEGERS:
        limit = 2 if dtype == torch.bool else rng.choice([2, 100])
        return torch.randint(0, limit, shape, generator=generator).to(dtype)
    n_parts = 2 if dtype in COMPLEX else 1
    parts = torch.randn((*shape, n_parts), generator=generator, dtype=torch.float64)
    flat = parts.view(-1)
    if flat.numel() > 0 and rng.random() < 0.5:
        for _ in range(rng.randint(1, 5)):
            flat[rng.randrange(flat.numel())] = rng.choice(SPECIAL)
    return torch.view_as_complex(parts).to(dtype) if n_parts == 2 else parts[..., 0].to(dtype)


def disturbed(rng: random.Random, value: torch.Tensor) -> torch.Tensor:
    """Return a copy with another value in some elements, near or far."""
    if value.numel() == 0:
        return value.clone()
    dtype = value.dtype
    wide = value.to(torch.complex128 if dtype in COMPLEX else torch.int64 if dtype in INTEGERS else torch.float64)
    flat = wide.reshape(-1).clone()
    for _ in range(rng.choice([1, 1, 3])):
        i = rng.randrange(flat.numel())
        if dtype in INTEGERS:
            flat[i] = 1 - flat[i].clamp(0, 1)
        else:
            flat[i] = rng.choice([flat[i] * (1 + 1e-7), flat[i] * 1.01 + 1e-3, *map(torch.tensor, SPECIAL)])
    return flat.reshape(value.shape).to(dtype)


def candidates(rng: random.Random, names: list[str], value: torch.Tensor) -> Call:
    """Return a random call on the last of `names`; it may be invalid for the value."""
    x = names[-1]
    other = rng.choice([torch.float32, torch.bfloat16, torch.float64, torch.int32, torch.float8_e5m2])
    calls: list[Call] = [
        (aten.clone.default, [x], {}),
        (aten.view.default, [x, [-1]], {}),
        (aten.t.default, [x], {}),
        (aten.neg.default, [x], {}),
        (aten.mul.Tensor, [x, rng.choice([2, 0.5])], {}),
        (aten.add.Tensor, [x, rng.choice(names)], {"alpha": 2}),
        (aten.cat.default, [[x, x]], {}),
        (aten._to_copy.default, [x], {"dtype": other}),
        (aten.empty_like.default, [x], {}),
        (aten.sum.dim_IntList, [x, [0]], {"keepdim": True}),
        (aten.select.int, [x, 0, 0], {}),
        (aten.split.Tensor, [x, 2], {}),
        (aten.max.dim, [x, 0], {}),
        (aten.div.Tensor_mode, [x, 2], {"rounding_mode": rng.choice(["floor", "trunc"])}),
    ]
    return rng.choice(calls)


@dataclass
class Plan:
    """A random program on inputs x0, x1, ..., and its calls n0, n1, ..., in order."""

    inputs: list[torch.Tensor]
    calls: dict[str, Call] = field(default_factory=dict)

    @classmethod
    def make(cls, rng: random.Random) -> Plan:
        dtypes = rng.choices([INTEGERS, FLOATS, FLOATS8, COMPLEX], [2, 4, 1, 1], k=rng.randint(1, 3))
        plan = cls([random_values(rng, rng.choice(kind), rng.choice(SHAPES)) for kind in dtypes])
        for i, value in enumerate(plan.inputs):
            values = {f"x{i}": value}
            for _ in range(rng.randint(1, 5)):
                call = candidates(rng, list(values), value)
                try:
                    result = evaluate(call, values)
                except (RuntimeError, IndexError, NotImplementedError):
                    continue
                name = f"n{len(plan.calls)}"
                plan.calls[name] = call
                if isinstance(result, torch.Tensor):
                    values[name] = result
        # The last operator fails when it is called with an input of another size.
        plan.calls["last"] = (aten.view.default, ["x0", list(plan.inputs[0].shape)], {})
        return plan

    def build(self) -> GraphModule:
        graph = Graph()
        nodes = {f"x{i}": graph.placeholder(f"x{i}") for i in range(len(self.inputs))}
        for name, (target, args, kwargs) in self.calls.items():
            nodes[name] = graph.create_node(
                "call_function", target, tuple(swap(args, nodes)), swap(kwargs, nodes), name
            )
        graph.output(tuple(nodes[name] for name in self.calls))
        return GraphModule(torch.nn.Module(), graph)


def swap(value: Any, nodes: dict[str, Any]) -> Any:
    """Return arguments with names replaced by their values."""
    if isinstance(value, dict):
        return {key: swap(item, nodes) for key, item in value.items()}
    if isinstance(value, list):
        swapped = [swap(item, nodes) for item in value]
        return tuple(swapped) if any(isinstance(item, Node) for item in swapped) else swapped
    return nodes.get(value, value) if isinstance(value, str) else value


def evaluate(call: Call, values: dict[str, torch.Tensor]) -> Any:
    target, args, kwargs = call
    return target(*swap(args, values), **swap(kwargs, values))


@dataclass
class Side:
    """How one side runs a plan."""

    plan: Plan
    type: str = "npy"
    n_steps: int = 1
    failed: int = -1  # index of the call that fails after its first operators
    left_out: frozenset[str] = frozenset()  # nodes that the filter leaves out

    def dump(self, root: Path, graph: int) -> None:
        gm = self.plan.build()
        record = _core.record(gm)
        skip = ["filter" if name in self.left_out else None for name in record.names]
        dump = _core.Dump(str(root), type=self.type)
        program = _core.Program(gm, record, dump, graph, skip, on_error="raise", log=None)
        for step in range(self.n_steps):
            inputs = [value.clone() for value in self.plan.inputs]
            if step == self.failed:
                inputs[0] = torch.zeros(self.plan.inputs[0].numel() + 2, dtype=inputs[0].dtype)
                with pytest.raises((RuntimeError, IndexError)):
                    program(inputs)
            else:
                program(inputs)
        dump.close()


def other_side(rng: random.Random, golden: Side) -> Side:
    """Return a variation of a side: some values, literals, nodes, the filter, the kind of dump, the steps."""
    plan = Plan(list(golden.plan.inputs), dict(golden.plan.calls))
    target = Side(plan, golden.type, golden.n_steps, golden.failed, golden.left_out)
    for change in rng.sample(["values", "values", "literal", "node", "filter", "type", "steps", "dtype"], 2):
        i = rng.randrange(len(plan.inputs))
        name = rng.choice(list(plan.calls))
        operator, args, kwargs = plan.calls[name]
        if change == "values":
            plan.inputs[i] = disturbed(rng, plan.inputs[i])
        elif change == "literal" and kwargs.keys() & {"alpha", "rounding_mode"}:
            plan.calls[name] = (operator, args, {"alpha": 3} if "alpha" in kwargs else {"rounding_mode": "floor"})
        elif change == "node" and operator is aten.clone.default:
            plan.calls[name] = (aten.contiguous.default, args, kwargs)
        elif change == "filter":
            target.left_out = (target.left_out | {name}) - {"last"}
        elif change == "type":
            target.type = "stats"
        elif change == "steps":
            target.n_steps, target.failed = rng.choice([(1, -1), (2, 0), (3, 1), (2, 1)])
        elif change == "dtype" and plan.inputs[i].dtype in (torch.float32, torch.float64):
            plan.inputs[i] = plan.inputs[i].to(rng.choice([torch.bfloat16, torch.float16, torch.int32]))
    return target


def damage(rng: random.Random, root: Path) -> bool:
    """Truncate a random file; False if there is none."""
    files = [path for path in sorted(root.glob("*/graph_*/*/*.npy")) if not path.is_symlink()]
    if files:
        victim = rng.choice(files)
        victim.chmod(0o600)  # a file with several names is read-only
        os.truncate(victim, victim.stat().st_size - 1)
    return bool(files)


def make_pair(rng: random.Random, root: Path) -> tuple[Path, Path]:
    plan = Plan.make(rng)
    left_out = frozenset(name for name in plan.calls if name != "last" and rng.random() < 0.1)
    n_steps, failed = rng.choice([(1, -1), (2, -1), (2, 0), (3, 1)])
    golden = Side(plan, rng.choice(["npy", "npy", "npy", "stats"]), n_steps, failed, left_out)
    target = other_side(rng, golden)
    paths = root / "golden", root / "target"
    for path, side in zip(paths, (golden, target), strict=True):
        side.dump(path, rng.randint(1, 3))
        if side.type == "npy" and rng.random() < 0.1:
            for index in path.glob("*/fxtap.db*"):
                index.unlink()
    return paths


def number(value: Any) -> Any:
    """Return a value as in JSON: null if it is not finite."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


SHARED = [
    "name", "target_name", "node", "target", "io", "position", "rank", "graph", "step", "order", "verdict", "pairing",
    "confidence", "evidence", "golden_path", "target_path", "identical_bits", "count", "mismatched", "nan_mismatched",
    "inf_mismatched", "max_abs_err", "max_rel_err", "mean_abs_err", "rmse", "cosine", "rel_l2", "euclidean", "max_ulp",
    "within_1e3", "within_5e3", "max_abs_index", "max_rel_index", "rtol", "atol",
]  # fmt: skip
RENAMED = {"is_literal": "literal", "is_missing": "missing", "source_code": "code", "module_path": "module"}
OPTIONAL = {"detail": "", "undefined_count": 0, "n_golden_operators": 0, "n_target_operators": 0}


def check_pair_in_json(pair: dict[str, Any], entry: dict[str, Any]) -> None:
    for key in SHARED:
        assert entry.get(key) == number(pair[key]), key
    for key, renamed in RENAMED.items():
        assert entry[renamed] == pair[key], key
    for key, default in OPTIONAL.items():
        assert entry.get(key.removeprefix("n_"), default) == pair[key], key
    for side in ("golden", "target"):
        assert entry[f"{side}_dtype"] == (pair[f"{side}_dtype"] or "")
        shape = pair[f"{side}_shape"]
        assert entry[f"{side}_shape"] == (None if shape is None else list(shape))
    worst = [[item["index"], item["golden"], item["target"]] for item in entry.get("worst", [])]
    assert worst == [[number(value) for value in item] for item in pair["worst"] or ()]


CSV_NUMBERS = {
    "Cosine": "cosine", "EucDist": "euclidean", "MaxAbsErr": "max_abs_err", "MaxRelativeErr": "max_rel_err",
    "One Thousandth Err Ratio": "within_1e3", "Five Thousandths Err Ratio": "within_5e3", "MeanAbsErr": "mean_abs_err",
    "RMSE": "rmse", "RelativeL2": "rel_l2", "MaxUlp": "max_ulp", "Mismatched": "mismatched",
}  # fmt: skip
CSV_TEXTS = {"Result": "verdict", "Err_message": "detail", "Module": "module_path"}
CSV_STATS = {"max": "max", "min": "min", "mean": "mean", "l2norm": "l2_norm"}


def check_pair_in_csv(pair: dict[str, Any], row: dict[str, str]) -> None:
    for title, key in CSV_TEXTS.items():
        assert row[title] == pair[key], title
    for title, key in CSV_NUMBERS.items():
        check_cell(row[title], pair[key], title)
    verdict = pair["verdict"]
    names = {"golden": pair["name"], "target": pair["target_name"] or pair["name"]}
    for side, name in names.items():
        title = side.capitalize()
        alone = "only in target" if side == "golden" else "only in golden"
        assert row[f"{title} Name"] == ("" if verdict == alone else name)
        assert row[f"{title} Dtype"] == (pair[f"{side}_dtype"] or row[f"{title} Dtype"])
        assert row[f"{title} Tensor Shape"] == str(list(pair[f"{side}_shape"] or ()))
        for words, key in CSV_STATS.items():
            check_cell(row[f"{title} {words}"], (pair[f"{side}_stats"] or {}).get(key), f"{title} {words}")
    assert row["Place"] == f"rank {pair['rank']} graph {pair['graph']} step {pair['step']}"


def check_cell(cell: str, value: float | None, title: str) -> None:
    if value is None or math.isnan(value):
        assert cell in ("", "nan"), title
    else:
        assert float(cell) == value, title


def check_forms(report: Report) -> None:
    """The Python objects, the table, JSON, CSV and the text state the same."""
    core = report._core
    pairs = [core[i] for i in range(len(core))]
    parsed = json.loads(report.to_json())
    rows = list(csv.DictReader(io.StringIO(report.to_csv(), newline="")))
    assert len(pairs) == len(parsed["pairs"]) == len(rows)
    for pair, entry, row in zip(pairs, parsed["pairs"], rows, strict=True):
        check_pair_in_json(pair, entry)
        check_pair_in_csv(pair, row)
    for key, column in core.columns().items():
        assert repr(column) == repr([pair[key] for pair in pairs]), key

    counts = Counter(pair["verdict"] for pair in pairs)
    pairings = Counter(pair["pairing"] for pair in pairs)
    assert report.counts == {verdict: counts[verdict] for verdict in report.counts}
    assert report.pairings == {pairing: pairings[pairing] for pairing in report.pairings} == parsed["pairing"]
    assert parsed["counts"].items() >= {"pairs": len(pairs), **report.counts}.items()
    assert parsed["counts"]["missing"] == sum(pair["is_missing"] for pair in pairs)
    assert parsed["verdict"] == report.verdict and parsed["warnings"] == report.warnings
    assert report.to_text().startswith(report.verdict.upper())
    assert (report.exit_status == 0) == (report.verdict != "different")
    assert (report.verdict == "different") == bool(len(report.differing))
    assert sum(group["n_pairs"] for group in report.groups) == len(pairs)
    check_origins(report, parsed["origins"])
    first = report.first_non_finite
    assert parsed["first_non_finite"] == (None if first is None else first.name)


def check_origins(report: Report, entries: list[dict[str, Any]]) -> None:
    for origin, entry in zip(report.origins, entries, strict=True):
        for key in ("node", "target", "reason", "follows", "literal", "between"):
            assert entry[key] == getattr(origin, key), key
        for key in ("input_error", "output_error", "growth"):
            assert entry[key] == number(getattr(origin, key)), key
        assert entry["carried_by"] == origin.n_carried
        assert entry["name"] == origin.pair.name and entry["verdict"] == origin.pair.verdict


def all_forms(report: Report) -> tuple[str, ...]:
    return report.to_text(), report.to_json(), report.to_csv(), report.to_html()


def check_program(golden: Path, target: Path, report: Report) -> None:
    """The program writes the bytes that the Python API returns."""
    files = {name: golden.with_name(f"report.{name}") for name in ("json", "csv", "html")}
    options = [word for name, file in files.items() for word in (f"--{name}", str(file))]
    done = subprocess.run(
        [str(PROGRAM), "compare", *options, golden, target], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == report.exit_status, done.stderr
    assert done.stdout.startswith(report.to_text())
    for name, file in files.items():
        assert file.read_bytes().decode() == getattr(report, f"to_{name}")(), name


def check_all(rng: random.Random, root: Path) -> Report:
    golden, target = make_pair(rng, root)
    is_damaged = rng.random() < 0.1 and damage(rng, target)
    report = fxtap.compare(golden, target)
    check_forms(report)
    check_program(golden, target, report)
    forms = all_forms(report)
    assert all_forms(fxtap.compare(golden, target, threads=1)) == forms
    if not is_damaged:  # damage to files that hashes have settled is seen only if they are read
        assert all_forms(fxtap.compare(golden, target, read_all=True)) == forms
    n = rng.randint(2, 4)
    shards = [fxtap.compare(golden, target, shard=(i, n)).serialise() for i in range(n)]
    assert all_forms(Report.merge(shards)) == forms
    assert all_forms(Report.merge([report.serialise()])) == forms
    return report


@pytest.mark.skipif(PROGRAM is None, reason="no fxtap program: set FXTAP_PROGRAM")
@pytest.mark.parametrize(
    "seeds", [pytest.param(range(60), id="few"), pytest.param(range(60, 2000), id="many", marks=pytest.mark.long)]
)
def test_no_two_answers(seeds: range, tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    for seed in seeds:
        root = tmp_path / str(seed)
        try:
            report = check_all(random.Random(seed), root)
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise
        seen.update({verdict for verdict, count in report.counts.items() if count > 0})
        shutil.rmtree(root)
    # The random pairs prove little unless most verdicts occur.
    rare = {"shape mismatch", "not compared", "written differently"}
    assert seen.keys() >= report.counts.keys() - rare, seen
