"""Measure what the verification finds: no false alarm, every planted fault, and what it costs.

python bench/verify.py --clean [--only PATTERN] [--keep FOLDER] [--json FILE]
python bench/verify.py --faults N [--seed SEED] [--only PATTERN] [--keep FOLDER] [--json FILE]
python bench/verify.py --programs N [--seed SEED] [--only PATTERN] [--keep FOLDER] [--json FILE]
python bench/verify.py --speed

--clean verifies small models in every dtype, mode and setting, by themselves and against float32; any accusation is a
false alarm.
--faults plants faults into kernels while such a dump is written, --programs into the graphs before they are compiled:
these are verified against float32. --only selects sessions by a shell pattern on
MODEL-DTYPE-MODE. Each prints a line for each dump or fault, then how far the figures are from their limits. --speed
measures the time. The exit status is 1 if an operator is accused that is right, a planted fault is missed, or a target
of time is missed.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import json
import logging
import math
import os
import random
import shutil
import sys
import tempfile
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch

import fxtap
from verify_faults import KINDS, STATES, Fault, Saboteur, draw_faults, run
from verify_models import Session, Setting, corpus, make_dumps, settings_of
from verify_programs import Editor, ProgramFault, bits_of, draw, dump_program
from verify_speed import speed

ACCUSED = ("wrong", "biased")

Row = dict[str, Any]


def selected(pattern: str) -> list[tuple[str, str, str]]:
    """Return the sessions that a pattern selects."""
    return [entry for entry in corpus() if fnmatch.fnmatch("-".join(entry), pattern)]


def verify(folder: Path, golden: Path | None = None) -> tuple[list[Row], float]:
    """Return the operators of a verification, and its time in seconds."""
    began = time.perf_counter()
    report = fxtap.verify(folder, against=golden)
    seconds = time.perf_counter() - began
    name = folder.name if golden is None else f"{folder.name} against {golden.name}"
    return [{**row, "dump": name} for row in report.operators], seconds


def number(row: Row, key: str) -> float:
    """Return a figure of a row; NaN if there is none."""
    value = row.get(key)
    return float(value) if value is not None else math.nan


def share(row: Row, key: str) -> float:
    """Return a count as a share of the elements."""
    return number(row, key) / row["count"] if row.get("count") else math.nan


def describe(row: Row) -> str:
    """Return an operator's figures in one line."""
    figures = " ".join(f"{key}={number(row, key):.3g}" for key in
                       ("ratio", "ratio_usual", "max_ratio", "misrounded", "misrounded_usual", "unexplained",
                        "outliers", "special", "zero_signs", "count", "distinct"))  # fmt: skip
    return (f"{row['verdict']:9} {row['dump']} g{row['graph']} {row['node']} {row['target']} {row['slot']} "
            f"{row['dtype']} {row['reason']!r} {figures}")  # fmt: skip


def print_largest(rows: list[Row], title: str, key: Any, count: int = 8) -> None:
    """Print the rows with the largest figures, one of each operator and dtype."""
    ranked = sorted((row for row in rows if not math.isnan(key(row))), key=key, reverse=True)
    seen: set[tuple[str, str]] = set()
    print(f"\nlargest {title}")
    for row in ranked:
        if (row["target"], row["dtype"]) not in seen:
            seen.add((row["target"], row["dtype"]))
            print(f"  {key(row):10.4g}  {describe(row)}")
        if len(seen) == count:
            return


def print_margins(rows: list[Row]) -> None:
    """Print how near to the limits the figures of operators come that are not accused."""
    right = [row for row in rows if row["verdict"] not in ACCUSED]
    print_largest(right, "ratio (RMS error / RMS allowance)", lambda row: number(row, "ratio"))
    print_largest(right, "error / allowance of one element", lambda row: number(row, "max_ratio"))
    print_largest(right, "share misrounded beyond twice this machine's",
                  lambda row: number(row, "misrounded") - 2 * number(row, "misrounded_usual"))  # fmt: skip
    print_largest(right, "share unexplained", lambda row: share(row, "unexplained"))


def clean(pattern: str, folder: Path, delete: bool) -> tuple[int, list[Row]]:
    """Verify the corpus, by itself and against float32; return the number of false alarms, and all operators."""
    rows: list[Row] = []
    for model, dtype, mode in selected(pattern):
        began = time.perf_counter()
        golden = make_dumps(folder, model, "float32", mode, settings_of(model, "float32", mode)[:1])[0]
        dumps = make_dumps(folder, model, dtype, mode, settings_of(model, dtype, mode))
        print(f"{time.perf_counter() - began:50.1f} s to make", flush=True)
        for dump in dumps:
            found = verify_clean(dump, None)
            if dump != golden:
                found += verify_clean(dump, golden)
            rows += found
            if delete and dump != golden and not any(row["verdict"] in ACCUSED for row in found):
                shutil.rmtree(dump)
    print_margins(rows)
    print_reasons(rows)
    false = sum(row["verdict"] in ACCUSED for row in rows)
    print(f"\n{len(rows)} operator calls, {false} accused")
    return false, rows


def verify_clean(dump: Path, golden: Path | None) -> list[Row]:
    """Verify one dump without a fault, and print what was found."""
    found, seconds = verify(dump, golden)
    counts = Counter(row["verdict"] for row in found)
    told = ", ".join(f"{counts[name]} {name}" for name in sorted(counts))
    title = dump.name if golden is None else "  against float32"
    print(f"{title:40} {seconds:6.1f} s, {1e3 * seconds / len(found):.2f} ms an operator: {told}", flush=True)
    for row in found:
        if row["verdict"] in ACCUSED:
            print("   " + describe(row), flush=True)
    return found


def print_reasons(rows: list[Row]) -> None:
    """Print why operators were not replayed, and which."""
    reasons: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        if row["verdict"] == "not replayed":
            reasons[row["reason"]][row["target"]] += 1
    for reason, operators in reasons.items():
        print(f"not replayed, {reason}: {', '.join(f'{name} {n}' for name, n in operators.most_common(6))}")


def groups_of(faults: list[Fault], size: int) -> Iterator[tuple[str, list[Fault]]]:
    """Split faults into those that are planted in one run."""
    by_state: dict[str, list[Fault]] = defaultdict(list)
    for fault in faults:
        by_state[fault.state].append(fault)
    for name, those in by_state.items():
        for i in range(0, len(those), size):
            yield name, those[i : i + size]


def survey(session: Session, root: Path, setting: Any) -> tuple[dict[str, list[tuple[int, str, str]]], Counter[str]]:
    """Return where each kind of fault changes a bit, and how often each changes none."""
    found: dict[str, list[tuple[int, str, str]]] = {}
    unchanged: Counter[str] = Counter()
    for name in ("plain", "poisoned", "hot"):
        kinds = [kind for kind in KINDS if STATES.get(kind, "plain") == name]
        saboteur = Saboteur(session, None, kinds)
        run(session, root / name, setting, saboteur, name)
        found |= saboteur.found
        unchanged += saboteur.unchanged
    return found, unchanged


def faults(pattern: str, folder: Path, wanted: int, delete: bool, seed: int) -> tuple[int, list[Row]]:
    """Plant faults and verify; return the number of misses and false alarms, and the operators at fault."""
    sessions = selected(pattern)
    random.Random(seed).shuffle(sessions)
    planted: Counter[str] = Counter()
    unchanged: Counter[str] = Counter()
    judged: list[Row] = []
    false = 0
    for i, entry in enumerate(sessions):
        count = (wanted - len(judged)) // (len(sessions) - i)
        session, setting, name = Session(*entry), settings_of(*entry)[0], "-".join(entry)
        scratch = folder / f".{name}"
        shutil.rmtree(scratch, ignore_errors=True)
        session.run(scratch / "first", setting)
        places, without = survey(session, scratch, setting)
        unchanged += without
        shutil.rmtree(scratch)
        draw, taken, here, number_ = random.Random(f"{name} {seed}"), set[tuple[int, str]](), list[Row](), 0
        while drawn := draw_faults(places, planted, taken, count - len(here), draw):
            for weights, group in groups_of(drawn, 4):
                root = folder / f"{name}.{number_}"
                number_ += 1
                found, wrong = plant(session, root, setting, group, weights)
                here += found
                false += wrong
                if delete and wrong == 0 and all(row["found"] for row in found):
                    shutil.rmtree(root, ignore_errors=True)
        judged += here
    print_kinds(judged, unchanged)
    missed = sum(not row["found"] for row in judged)
    print(f"\n{len(judged)} faults planted, {missed} missed, {false} others accused")
    return missed + false, judged


def plant(session: Session, root: Path, setting: Setting, group: list[Fault], weights: str) -> tuple[list[Row], int]:
    """Dump one run with faults and verify it; faults that stop the model, such as an index out of range, are none."""
    shutil.rmtree(root, ignore_errors=True)
    plan = {(fault.position, fault.node): fault for fault in group}
    try:
        run(session, root, setting, Saboteur(session, plan, ()), weights)
    except (IndexError, RuntimeError) as error:
        if len(group) == 1:
            print(f"  {root.name} {group[0].kind} at {group[0].node} stops the model: {error}")
            return [], 0
        judged = [plant(session, root, setting, [fault], weights) for fault in group]
        return [row for rows, _ in judged for row in rows], sum(wrong for _, wrong in judged)
    return judge_group(root, group, weights)


def judge_group(root: Path, group: list[Fault], weights: str) -> tuple[list[Row], int]:
    """Verify one dump with faults; return the operators at fault, and the number of others that are accused."""
    rows, seconds = verify(root)
    by_place = {(row["graph"], row["node"]): row for row in rows}
    judged = []
    for fault in group:
        row = by_place.pop((fault.graph, fault.node), None)
        if not fault.changed:
            print(f"  {root.name} {fault.kind} at {fault.node} changed no bit")
            continue
        row = row or {"verdict": "not dumped", "dump": root.name, "graph": fault.graph, "node": fault.node,
                      "target": fault.operator, "slot": "", "dtype": "", "reason": ""}  # fmt: skip
        found = row["verdict"] in ACCUSED
        judged.append({**row, "found": found, "fault": asdict(fault)})
        print(f"{'  ' if found else '! '}{fault.kind:24} {describe(row)}", flush=True)
    others = [row for row in by_place.values() if row["verdict"] in ACCUSED]
    for row in others:
        print(f"? {weights:24} {describe(row)}", flush=True)
    print(f"  {root.name}: {seconds:.1f} s", flush=True)
    return judged, len(others)


def programs(pattern: str, folder: Path, wanted: int, delete: bool, seed: int) -> tuple[int, list[Row]]:
    """Plant faults into programs and verify against float32; return the number of misses and false alarms, and rows."""
    sessions = selected(pattern)
    random.Random(seed).shuffle(sessions)
    judged: list[Row] = []
    used: Counter[str] = Counter()
    false = 0
    for i, entry in enumerate(sessions):
        count = (wanted - len(judged)) // (len(sessions) - i)
        model, _, mode = entry
        golden = make_dumps(folder, model, "float32", mode, settings_of(model, "float32", mode)[:1])[0]
        setting, scratch = settings_of(*entry)[1], folder / f".{'-'.join(entry)}"
        shutil.rmtree(scratch, ignore_errors=True)
        survey_ = Editor([])
        numbers = dump_program(entry, setting, scratch / "right", survey_)
        drawn = draw(survey_.found, used, count, random.Random(f"{entry} {seed}"))
        for first in range(0, len(drawn), 3):
            group, root = drawn[first : first + 3], folder / f"{'-'.join(entry)}.program{first}"
            shutil.rmtree(root, ignore_errors=True)
            try:
                edited = dump_program(entry, setting, root, Editor(group))
            except (IndexError, RuntimeError) as error:
                print(f"  {root.name} {', '.join(fault.kind for fault in group)}: stops the model: {error}")
                continue
            graphs = [(edited[fault.position], numbers[fault.position]) for fault in group]
            found, wrong = judge_programs(root, scratch / "right", golden, group, graphs)
            judged += found
            false += wrong
            if delete and wrong == 0 and all(row["found"] for row in found):
                shutil.rmtree(root)
        shutil.rmtree(scratch)
    missed = sum(not row["found"] for row in judged)
    counts = Counter(row["fault"]["kind"] for row in judged)
    print("\n" + ", ".join(f"{kind} {n}" for kind, n in counts.most_common()))
    print(f"{len(judged)} faults planted into programs, {missed} missed, {false} others accused")
    return missed + false, judged


def judge_programs(
    root: Path, right: Path, golden: Path, group: list[ProgramFault], graphs: list[tuple[int, int]]
) -> tuple[list[Row], int]:
    """Verify one edited program; return a row for each fault, and the number of other operators that are accused."""
    rows, seconds = verify(root, golden)
    accused = {(row["graph"], row["node"]): row for row in rows if row["verdict"] in ACCUSED}
    judged = []
    for fault, (graph, before) in zip(group, graphs, strict=True):
        named = [accused.pop((graph, node)) for node in fault.nodes if (graph, node) in accused]
        if not named and bits_of(root, graph, fault.result) == bits_of(right, before, fault.node):
            print(f"  {root.name} {fault.kind} at {fault.node} changed no bit")
            continue
        shown = named or [row for row in rows if (row["graph"], row["node"]) == (graph, fault.result)]
        judged.append({**shown[0], "found": bool(named), "fault": {**asdict(fault), "nodes": sorted(fault.nodes)}})
        print(f"{'  ' if named else '! '}{fault.kind:24} {describe(shown[0])}", flush=True)
    for row in accused.values():
        print(f"? {'':24} {describe(row)}", flush=True)
    print(f"  {root.name}: {seconds:.1f} s", flush=True)
    return judged, len(accused)


def print_kinds(judged: list[Row], unchanged: Counter[str]) -> None:
    """Print, for each kind of fault, how many were found and how near to the limits the weakest was."""
    print(f"\n{'kind':26}{'planted':>8}{'found':>7}{'wrong':>7}{'biased':>7}{'changes no bit':>16}")
    for kind in KINDS:
        rows = [row for row in judged if row["fault"]["kind"] == kind]
        verdicts = Counter(row["verdict"] for row in rows)
        print(f"{kind:26}{len(rows):8}{sum(row['found'] for row in rows):7}{verdicts['wrong']:7}{verdicts['biased']:7}"
              f"{unchanged[kind]:16}")  # fmt: skip
    found = [row for row in judged if row["found"]]
    weakest = sorted((row for row in found if row["verdict"] == "wrong" and row["ratio"] is not None),
                     key=lambda row: (number(row, "special") > 0, number(row, "max_ratio")))  # fmt: skip
    for title, rows in (("wrong", weakest), ("biased", sorted((row for row in found if row["verdict"] == "biased"),
                                                            key=lambda row: share(row, "unexplained")))):  # fmt: skip
        print(f"\nweakest that are {title}")
        for row in rows[:8]:
            print(f"  {row['fault']['kind']:24} {describe(row)}")


@contextlib.contextmanager
def kept_or_temporary(keep: str | None) -> Iterator[Path]:
    """Give a folder for dumps; a temporary one is removed."""
    if keep is not None:
        Path(keep).mkdir(parents=True, exist_ok=True)
        yield Path(keep)
        return
    with tempfile.TemporaryDirectory(prefix="fxtap-verify-") as folder:
        yield Path(folder)


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clean", action="store_true")
    parser.add_argument("--faults", type=int, metavar="N")
    parser.add_argument("--programs", type=int, metavar="N")
    parser.add_argument("--seed", type=int, default=1, help="draws other faults")
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--only", default="*")
    parser.add_argument("--keep", metavar="FOLDER", help="keep the dumps, and use those that exist")
    parser.add_argument("--json", metavar="FILE", help="write all operators, or all planted faults")
    options = parser.parse_args()
    if not (options.clean or options.speed or options.faults or options.programs):
        parser.error("nothing to do: use --clean, --faults N, --programs N or --speed")
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    began, status, rows = time.perf_counter(), 0, []
    with kept_or_temporary(options.keep) as folder:
        if options.clean:
            status, rows = clean(options.only, folder, options.keep is None)
        for count, plant_all in ((options.faults, faults), (options.programs, programs)):
            if count:
                missed, rows = plant_all(options.only, folder, count, options.keep is None, options.seed)
                status += missed
        if options.speed:
            status += not speed(folder)
    print(f"{time.perf_counter() - began:.0f} s")
    if options.json is not None:
        Path(options.json).write_text(json.dumps(rows, indent=1) + "\n")
    return 1 if status else 0


if __name__ == "__main__":
    sys.exit(main())
