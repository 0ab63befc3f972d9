"""Faults planted into the target side of a variant, and whether a report names them."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.fx import Node

import fxtap
from fxtap import _core
from pairing_mistakes import RESULTS, WRITTEN, allows, is_floating, planted
from pairing_record import Run, skips_of
from pairing_truth import Key, Result, Truth, load
from pairing_variants import Variant

PASSED_ON = frozenset(
    {"_to_copy", "alias", "clone", "copy", "copy_", "detach", "expand", "lift_fresh_copy", "permute", "slice", "select",
     "split", "squeeze", "t", "transpose", "unsqueeze", "view", "_unsafe_view", "reshape", "as_strided", "unbind",
     "split_with_sizes", "empty", "full", "arange", "zeros", "ones",
     "new_zeros", "scalar_tensor"}
)  # fmt: skip
"""Operators that do not compute."""

CONFIDENT = frozenset({"operator", "weight", "graph input", "random"})
"""Reasons that accuse exactly one place."""


@dataclass
class Fault:
    """One planted fault, and the right origins.

    Attributes
    ----------
    graph, node, operator, kind
        Its position in the target side, and the kind of fault.
    paired
        Whether the node has a golden counterpart; otherwise it is in a region that golden computes differently.
    golden, target
        "graph/node" of each side that an origin may name: the node and its counterparts, or, for a region, the next
        nodes below it that have counterparts.
    """

    variant: str
    number: int
    graph: int
    node: str
    operator: str
    kind: str
    paired: bool
    golden: list[str] = field(default_factory=list)
    target: list[str] = field(default_factory=list)

    @property
    def folder(self) -> str:
        return f"{self.variant}.{self.number:02}"


def dump_again(run: Run, root: Path) -> bool:
    """Run a side again with another dump. False if that compiled it again."""
    dump = _core.Dump(str(root))
    graphs = run.graphs()
    for number, graph in graphs.items():
        graph._forms[None].program = _core.Program(graph.gm, graph.record, dump, number, skips_of(graph))
    run()
    dump.close()
    return len(run.graphs()) == len(graphs)


def node_of(key: Key) -> str:
    """Return the "graph/node" of a result's key."""
    graph, _, name = key.split("/", 2)
    return f"{graph}/{name.partition('-')[0]}"


def computes(key: Key) -> bool:
    """Return whether a result is not only another result passed on."""
    return key.partition("-")[2].split(".")[1] not in PASSED_ON


class Places:
    """Return where faults may be planted in a side, and the right origins for each."""

    def __init__(self, run: Run, truth: Truth, clean: list[Result]) -> None:
        self.graphs = run.graphs()
        self.truth = truth
        self.clean = {result.key: result for result in clean}
        self.keys: dict[str, list[Key]] = defaultdict(list)
        for key in truth.target:
            self.keys[node_of(key)].append(key)
        self.golden: dict[int, set[str]] = defaultdict(set)
        self.passed_on = {node_of(key) for key in truth.golden if not computes(key)}
        for key, number in truth.golden.items():
            self.golden[number].add(node_of(key))
        self.surplus: Counter[int] = Counter(number for key, number in truth.target.items() if computes(key))
        self.surplus.subtract(number for key, number in truth.golden.items() if computes(key))

    def counterparts(self, where: str) -> set[str]:
        """Return the golden nodes with a result equal to one of this node's."""
        found: set[str] = set()
        for key in self.keys[where]:
            if self.clean[key].norm > 0 and np.ptp(self.clean[key].values) > 0:  # not a constant
                found |= self.golden[self.truth.target[key]]
        return found

    def computed_again(self, where: str) -> bool:
        """Return whether target computes the values of a node more often than golden, as checkpoints do in backward."""
        return any(self.surplus[self.truth.target[key]] > 0 for key in self.keys[where])

    def candidates(self) -> list[tuple[int, Node]]:
        """Return the dumped nodes that compute floating-point values."""
        found = []
        for number, graph in self.graphs.items():
            assert graph.record is not None
            for node, skip, flags in zip(graph.gm.graph.nodes, skips_of(graph), graph.record.flags, strict=True):
                if skip is not None or not isinstance(node.target, torch._ops.OpOverload):
                    continue
                if flags & {"mutates", "undefined", "view"} or node.target._schema.name[6:] in PASSED_ON:
                    continue
                value = node.meta.get("val")
                if any(is_floating(item) for item in (value if isinstance(value, (tuple, list)) else [value])):
                    found.append((number, node))
        return [(number, node) for number, node in found if self.keys[f"{number}/{node.name}"]]

    def below(self, number: int, node: Node) -> list[str]:
        """Return the first nodes below one without a counterpart that have one."""
        found, seen, waiting = [], {node}, list(node.users)
        while waiting:
            user = waiting.pop(0)
            if user in seen:
                continue
            seen.add(user)
            where = f"{number}/{user.name}"
            if self.counterparts(where):
                found.append(where)
            else:
                waiting += user.users
        return found


def without_operator(key: Key) -> Key:
    """Return a result's key without the operator, which may differ in a faulty run."""
    node, _, rest = key.partition("-")
    return f"{node}.{rest[rest.rindex('PUT') :]}"


def visible(wrong: NDArray[np.float64], right: NDArray[np.float64], tolerances: dict[str, Any]) -> bool:
    """Return whether a result is wrong by far more than the tolerance."""
    allowed = tolerances.get("atol", 1e-4) + tolerances.get("rtol", 1e-4) * np.abs(right)
    return wrong.shape == right.shape and bool((np.abs(wrong - right) > 2 * allowed).any())


def accepted(places: Places, fault: Fault, node: Node, differs: Callable[[str], bool]) -> bool:
    """Set the right origins; False if the fault has no visible effect."""
    where = f"{fault.graph}/{node.name}"
    counterparts = places.counterparts(where)
    fault.paired = bool(counterparts) and not places.computed_again(where)
    seen = [where] if counterparts else []
    if not fault.paired:
        seen += [other for other in places.below(fault.graph, node) if differs(other)]
    if not seen or not differs(where):
        return False
    fault.target = sorted({where, *seen})
    golden = set().union(*(places.counterparts(other) for other in seen))
    if fault.paired:  # a view of the right value is not at fault
        golden = golden - places.passed_on or golden
    fault.golden = sorted(golden)
    return True


def plant(run: Run, variant: Variant, folder: Path, base: Path, count: int) -> list[Fault]:
    """Dump `count` faulty runs of a variant's target side, each in its own folder below `base`.

    `run` is the one that wrote the clean dump in `folder`.
    """
    truth = Truth.of(folder, variant.equal)
    draw = random.Random(variant.name)
    if not dump_again(run, base / ".warm"):
        return []
    places = Places(run, truth, load(folder / "target"))
    faults: list[Fault] = []
    for number in range(count):
        fault = plant_one(run, places, variant, base, number, draw)
        if fault is None:
            break
        link = base / fault.folder / "golden"
        link.symlink_to(os.path.relpath((folder / "golden").resolve(), link.parent.resolve()))
        (base / fault.folder / "fault.json").write_text(json.dumps(asdict(fault), indent=1) + "\n")
        faults.append(fault)
    shutil.rmtree(base / ".warm", ignore_errors=True)
    return faults


def plant_one(run: Run, places: Places, variant: Variant, base: Path, number: int, draw: random.Random) -> Fault | None:
    """Dump the first kind of mistake, in random order, that some node allows and that has a visible effect."""
    candidates = places.candidates()
    for kind in draw.sample([*RESULTS, *WRITTEN], len(RESULTS) + len(WRITTEN)):
        possible = [item for item in candidates if allows(item[1], kind)]
        for graph, node in draw.sample(possible, min(len(possible), 5)):
            fault = Fault(variant.name, number, graph, node.name, str(node.target), kind, False)
            if dump_fault(run, places, fault, node, base, variant):
                return fault
    return None


def dump_fault(run: Run, places: Places, fault: Fault, node: Node, base: Path, variant: Variant) -> bool:
    """Dump one faulty run; remove it if the fault has no visible effect."""
    root = base / fault.folder
    shutil.rmtree(root, ignore_errors=True)
    graph = places.graphs[fault.graph]
    try:
        with planted(graph, node, fault.kind):
            same_graphs = dump_again(run, root / "target")
    except RuntimeError:  # another operator of the run rejects the result
        same_graphs = False
    if same_graphs:
        wrong = {without_operator(result.key): result.values for result in load(root / "target")}

        def differs(where: str) -> bool:
            pairs = ((wrong.get(without_operator(key)), places.clean[key].values) for key in places.keys[where])
            return any(found is not None and visible(found, right, variant.tolerances) for found, right in pairs)

        if accepted(places, fault, node, differs):
            return True
    shutil.rmtree(root, ignore_errors=True)
    return False


@dataclass
class Judgement:
    """The outcome of a report on a planted fault."""

    fault: Fault
    right: bool
    false: list[str]
    first: str
    verdict: str

    @property
    def bad(self) -> bool:
        """Whether the fault was not named, or something else was."""
        return not self.right or bool(self.false)

    def line(self) -> str:
        """Return one line of the table."""
        mark = "!" if self.bad else " "
        also = f" accused: {'; '.join(self.false[:3])}" if self.false else ""
        return f"{mark} {self.fault.folder:32} {self.fault.kind:8} {self.fault.node:24} first: {self.first}{also}"


def names(origin: Any) -> tuple[str, str]:
    """Return the "graph/node" of both sides of an origin."""
    pair = origin.pair
    target = (pair.target_name or pair.name).partition("-")[0]
    return f"{pair.graph}/{pair.name.partition('-')[0]}", f"{pair.target_graph}/{target}"


def is_right(fault: Fault, origin: Any) -> bool:
    golden, target = names(origin)
    named = (origin.pair.golden_path and golden in fault.golden) or (origin.pair.target_path and target in fault.target)
    alone = not fault.paired or fault.kind == "operator"  # other operators need not be a pair
    return bool(named) or (alone and fault.node in (origin.between or "").replace(",", " ").split())


def judge(fault: Fault, base: Path, tolerances: dict[str, Any]) -> Judgement:
    """Compare a faulty dump with golden; check the origins against the planted fault."""
    report = fxtap.compare(base / fault.folder / "golden", base / fault.folder / "target", **tolerances)
    origins = report.origins
    right = [is_right(fault, origin) for origin in origins]
    false = [origin for origin, good in zip(origins, right, strict=True) if not good and origin.reason in CONFIDENT]
    if false:
        told = json.loads(report.to_json())["origins"]
        follows = {(entry["graph"], entry["step"], entry["name"]) for entry in told if entry.get("follows")}
        false = [item for item in false if (item.pair.graph, item.pair.step, item.pair.name) not in follows]
    first = f"{origins[0].reason} {' | '.join(names(origins[0]))}" if origins else "none"
    accused = [f"{origin.reason} {' | '.join(names(origin))}" for origin in false]
    return Judgement(fault, bool(right) and right[0], accused, first, report.verdict)


def kept_faults(base: Path, wanted: set[str]) -> list[Fault]:
    """Return the faults in a folder, of the selected variants."""
    found = [Fault(**json.loads(path.read_text())) for path in sorted(base.glob("*/fault.json"))]
    return [fault for fault in found if fault.variant in wanted]
