"""Measure how well two executions of unequal programs are paired, and whether origins are right.

python bench/pairing.py [--only PATTERN] [--list] [--keep FOLDER | --from FOLDER] [--faults N] [--scale]

Models of several kinds are dumped twice, the second time written, compiled or run differently. Which results are the
same quantity is known, because equal quantities have equal values: weights and inputs are random, so others differ.
One line per variant: recall (golden results that have an equal counterpart and are paired with it), precision (pairs of
results whose values are equal), origins (there should be none), the verdict. The exit status is 1 if a target is
missed. --keep keeps the dumps, --from evaluates them again.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import logging
import shutil
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

import fxtap
import pairing_scale
from pairing_faults import Judgement, judge, kept_faults, plant
from pairing_record import Run, Side
from pairing_truth import Truth
from pairing_variants import Variant, all_variants

RECALL, PRECISION, NAMED = 0.99, 0.999, 0.95


@dataclass
class Score:
    """The results of comparing one clean variant."""

    name: str
    reachable: int = 0
    recalled: int = 0
    pairs: int = 0
    right: int = 0
    origins: list[str] = field(default_factory=list)
    verdict: str = ""
    seconds: float = 0.0
    wrong: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)

    @property
    def recall(self) -> float:
        """Share of golden results with an equal counterpart that are paired with one."""
        return self.recalled / self.reachable if self.reachable else 1.0

    @property
    def precision(self) -> float:
        """Share of pairs of results whose values are equal."""
        return self.right / self.pairs if self.pairs else 1.0

    @property
    def good(self) -> bool:
        """Whether this variant reaches the targets."""
        return self.recall >= RECALL and self.precision >= PRECISION and not self.origins

    def line(self) -> str:
        """Return one line of the table."""
        mark = " " if self.good else "!"
        return (
            f"{mark} {self.name:34} recall {100 * self.recall:6.2f}% of {self.reachable:5}  precision "
            f"{100 * self.precision:6.2f}% of {self.pairs:5}  origins {len(self.origins):3}  {self.verdict:9} "
            f"{self.seconds:5.2f} s"
        )


def side_key(side: Side) -> str:
    return f"{side.model}-{zlib.crc32(repr(side).encode()):08x}"


def record(side: Side, root: Path, folder: Path) -> Run:
    """Dump one side."""
    run = Run(side, root, folder)
    run()
    return run


def faults_of(base: Path) -> Path:
    """Return the folder of the faulty dumps that belong to clean ones."""
    return base.with_name(base.name + "-faults")


def generate(variant: Variant, base: Path, n_faults: int = 0) -> None:
    """Dump both sides of a variant below `base`, and faulty runs of its target side beside it.

    Golden sides shared by several variants are dumped once; existing dumps are kept.
    """
    folder = base / variant.name
    shared = base / ".golden" / side_key(variant.golden)
    if not shared.exists():
        record(variant.golden, shared, shared.with_suffix(".src")).close()
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "golden").is_symlink():
        (folder / "golden").symlink_to(Path("..") / ".golden" / shared.name)
    faults_missing = n_faults > 0 and not (faults_of(base) / f"{variant.name}.00").exists()
    if faults_missing or not (folder / "target").exists():
        shutil.rmtree(folder / "target", ignore_errors=True)
        (folder / "truth.json").unlink(missing_ok=True)
        run = record(variant.target, folder / "target", folder / "src")
        run.close()
        if n_faults:
            plant(run, variant, folder, faults_of(base), n_faults)


PAIR_FIELDS = ["verdict", "io", "graph", "step", "target_graph", "target_step", "name", "target_name", "golden_path",
               "target_path"]  # fmt: skip


def keys(columns: dict[str, list[Any]]) -> Iterator[tuple[str, str, str]]:
    """Return the keys of both results of each two-sided pair, and INPUT or OUTPUT."""
    rows = zip(*(columns[name] for name in PAIR_FIELDS), strict=True)
    for _verdict, io, graph, step, target_graph, target_step, name, target_name, golden_path, target_path in rows:
        if golden_path and target_path:
            yield f"{graph}/{step}/{name}", f"{target_graph}/{target_step}/{target_name or name}", io


def describe(origin: Any) -> str:
    pair = origin.pair
    target = f"{pair.target_graph}/{pair.target_name or pair.name}"
    text = f"{origin.reason} at {pair.graph}/{pair.step}/{pair.name} | {target}"
    return f"{text} rel_l2 {origin.output_error:.3g}" + (f" between {origin.between}" if origin.between else "")


def evaluate(variant: Variant, base: Path) -> Score:
    """Compare a variant's dumps and check the pairs against the truth."""
    folder = base / variant.name
    truth = Truth.of(folder, variant.equal)
    start = time.perf_counter()
    report = fxtap.compare(folder / "golden", folder / "target", **variant.tolerances)
    score = Score(variant.name, truth.reachable(), verdict=report.verdict, seconds=time.perf_counter() - start)
    paired = set()
    for golden, target, io in keys(report._core.columns(PAIR_FIELDS)):
        if io == "INPUT" or (golden not in truth.golden and target not in truth.target):
            continue  # uninitialised memory and text are not quantities
        score.pairs += 1
        if truth.golden.get(golden, -1) == truth.target.get(target, -2):
            score.right += 1
            paired.add(golden)
        else:
            score.wrong.append(f"{golden} | {target}")
    score.recalled = len(paired)
    counterparts = set(truth.target.values())
    score.missed = [key for key, number in truth.golden.items() if number in counterparts and key not in paired]
    score.origins = [describe(origin) for origin in report.origins]
    return score


def totals(scores: list[Score]) -> tuple[list[str], bool]:
    """Compare the totals over all variants with the targets."""
    reachable, recalled = sum(score.reachable for score in scores), sum(score.recalled for score in scores)
    pairs, right = sum(score.pairs for score in scores), sum(score.right for score in scores)
    false = sum(len(score.origins) for score in scores)
    with_false = sum(bool(score.origins) for score in scores)
    different = sum(score.verdict == "different" for score in scores)
    recall, precision = recalled / max(reachable, 1), right / max(pairs, 1)
    good = recall >= RECALL and precision >= PRECISION and false == 0
    return [
        f"recall        {100 * recall:.3f} % of {reachable:,} results (target: {100 * RECALL:g} %)",
        f"precision     {100 * precision:.3f} % of {pairs:,} pairs (target: {100 * PRECISION:g} %)",
        f"false origins {false} in {with_false} of {len(scores)} variants (target: 0)",
        f"verdicts      {different} of {len(scores)} are different (no target: some lack results)",
        f"variants      {sum(score.good for score in scores)} of {len(scores)} reach all three by themselves",
    ], good


def share(total: int, place: int, count: int) -> int:
    """Return the share of `total` for the place-th of `count`."""
    return total // count + (place < total % count)


def measure_clean(variants: list[Variant], base: Path, options: argparse.Namespace) -> list[Score]:
    """Dump the variants unless their dumps exist, compare them, and print a line each."""
    scores = []
    for place, variant in enumerate(variants):
        if options.kept is None:
            generate(variant, base, share(options.faults, place, len(variants)))
        elif not (base / variant.name / "target").exists():
            print(f"? {variant.name}: not in {base}", file=sys.stderr)
            continue
        if options.generate:
            Truth.of(base / variant.name, variant.equal)
            continue
        scores.append(evaluate(variant, base))
        print(scores[-1].line(), flush=True)
        if options.verbose:
            print_details(scores[-1])
    return scores


def measure_faults(variants: list[Variant], base: Path, options: argparse.Namespace) -> list[Judgement]:
    """Judge the reports of all faulty runs."""
    by_name = {variant.name: variant for variant in variants}
    judgements = []
    for fault in kept_faults(faults_of(base), set(by_name)):
        judgements.append(judge(fault, faults_of(base), by_name[fault.variant].tolerances))
        if options.verbose or judgements[-1].bad:
            print(judgements[-1].line(), flush=True)
    return judgements


def fault_totals(judgements: list[Judgement]) -> tuple[list[str], bool]:
    """Count the planted faults that were named, and the reports that accuse another place."""
    named, false = sum(item.right for item in judgements), sum(bool(item.false) for item in judgements)
    share_named = named / len(judgements)
    return [
        f"faults named  {named} of {len(judgements)}, {100 * share_named:.1f} % (target: {100 * NAMED:g} %)",
        f"false accused {false} reports name another place with confidence (target: 0)",
    ], share_named >= NAMED and false == 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="PATTERN", help="variants whose name matches, as 'gpt.*'")
    parser.add_argument("--list", action="store_true", help="print the variants' names and stop")
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--keep", type=Path, metavar="FOLDER", help="leave the dumps there")
    place.add_argument("--from", type=Path, dest="kept", metavar="FOLDER", help="evaluate dumps that --keep left")
    parser.add_argument("--generate", action="store_true", help="with --keep: dump, do not compare")
    parser.add_argument("--faults", type=int, default=320, metavar="N", help="faults to plant in all (default: 320)")
    parser.add_argument("--scale", action="store_true", help="measure large graphs alone: time, nearly linear")
    parser.add_argument("-v", "--verbose", action="store_true", help="name wrong and missing pairs and false origins")
    return parser.parse_args()


def print_details(score: Score) -> None:
    for title, lines in (("wrong", score.wrong), ("missed", score.missed), ("origin", score.origins)):
        for line in lines[:10]:
            print(f"      {title} {line}")
        if len(lines) > 10:
            print(f"      ... {len(lines) - 10} more")


def main() -> int:
    options = parse()
    torch.set_num_threads(1)
    logging.getLogger("fxtap").setLevel(logging.ERROR)
    variants = [item for item in all_variants() if fnmatch.fnmatch(item.name, options.only or "*")]
    if options.list:
        print("\n".join(variant.name for variant in variants))
        return 0
    with contextlib.ExitStack() as stack:
        base = options.kept or options.keep
        if base is None:
            folder = Path(tempfile.mkdtemp(prefix="pairing-"))
            stack.callback(shutil.rmtree, folder)
            base = folder / "dumps"
        if options.scale:
            return 0 if pairing_scale.run(base.with_name(base.name + "-scale")) else 1
        scores = measure_clean(variants, base, options)
        judgements = measure_faults(variants, base, options) if options.faults and not options.generate else []
    results = [totals(scores)] if scores else []
    results += [fault_totals(judgements)] if judgements else []
    for lines, _good in results:
        print("\n".join(lines))
    return 0 if all(good for _lines, good in results) else 1


if __name__ == "__main__":
    sys.exit(main())
