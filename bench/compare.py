"""Measure the comparison in one run: fxtap, the same metrics in NumPy, numpy.allclose, and the bare C reader.

python bench/compare.py [--model gpt2] [--rounds 3] [--only SECTION] [--json FILE]

Contenders take turns (A B C A B C ...) over dumps in the page cache; medians are compared. No pair is decided by hash.
msprobe (PyPI's mindstudio-probe) reads only its own dumps; if it can be imported, the functions that it calls for each
pair of arrays (six of the metrics) take turns too. Sections: large, small, indexed, page.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import fxtap
from capture import alternate
from fxtap.backend import fxtap as backend
from models import make

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = os.environ.get("FXTAP_PROGRAM") or shutil.which("fxtap") or str(ROOT / "build" / "programs" / "fxtap")
sys.path.insert(0, str(ROOT / "tests" / "cli"))


def dump(name: str, root: Path, noise: float) -> None:
    """Dump one inference call of a model with parameters changed by `noise`, relative."""
    torch._dynamo.reset()
    model, inputs = make(name)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1 + noise * torch.randn(parameter.shape, generator=generator))
        function = torch.compile(model, backend=backend)
        with fxtap.dump(root):
            function(*inputs)


def list_pairs(golden: Path, target: Path) -> list[tuple[str, str]]:
    """Return the files of both dumps that are the same tensor, by name without the time stamp."""

    def named(root: Path) -> dict[str, str]:
        found = {}
        for folder, _, names in os.walk(root):
            step = folder.rpartition("/")[2]  # graph numbers continue within a process
            for name in names:
                if name.endswith(".npy"):
                    found[f"{step}/{name[:-25]}"] = f"{folder}/{name}"
        return found

    left, right = named(golden), named(target)
    assert len(left) == len(left.keys() & right.keys())
    return [(left[key], right[key]) for key in sorted(left.keys() & right.keys())]


def ulps(x: np.ndarray) -> np.ndarray:
    bits = np.ascontiguousarray(x).view(np.int32).astype(np.int64)
    return np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)


def numpy_metrics(golden: str, target: str) -> dict[str, Any]:
    """Compute all metrics of one pair as a user would with NumPy."""
    b, a = np.load(golden), np.load(target)
    if b.dtype.kind != "f" or b.size == 0:
        return {"mismatched": int((a != b).sum())}
    y, x = b.astype(np.float64), a.astype(np.float64)
    error, size = np.abs(x - y), np.abs(y)
    finite = np.isfinite(x) & np.isfinite(y)
    with np.errstate(all="ignore"):
        relative = np.where(size > 0, error / size, 0)
    golden_square, target_square = float((y * y).sum()), float((x * x).sum())
    return {
        "identical": a.tobytes() == b.tobytes(),
        "max_abs": float(error.max()),
        "max_abs_at": np.unravel_index(int(error.argmax()), error.shape),
        "max_rel": float(relative.max()),
        "max_rel_at": np.unravel_index(int(relative.argmax()), error.shape),
        "worst": np.argpartition(error.ravel(), -min(5, error.size))[-5:],
        "mean": float(error.mean()),
        "rmse": float(np.sqrt((error * error).mean())),
        "cosine": float((x * y).sum()) / (golden_square * target_square) ** 0.5
        if golden_square * target_square
        else 1.0,
        "rel_l2": float(np.sqrt((error * error).sum() / golden_square)) if golden_square else 0.0,
        "within_1e3": float((error <= 1e-3 * size).mean()),
        "within_5e3": float((error <= 5e-3 * size).mean()),
        "max_ulp": int(np.abs(ulps(a) - ulps(b)).max()) if b.dtype == np.float32 and b.ndim else 0,
        "mismatched": int((error > 1e-5 + 1.3e-6 * size).sum()),
        "not_finite": int((~finite).sum()),
    }


def each(pairs: list[tuple[str, str]], function: Callable[[str, str], object]) -> Callable[[], object]:
    def run() -> None:
        for golden, target in pairs:
            function(golden, target)

    return run


def allclose(golden: str, target: str) -> bool:
    a, b = np.load(target), np.load(golden)
    return np.allclose(a, b) if b.dtype.kind in "fiub" else bool((a == b).all())


def msprobe_metrics() -> Callable[[str, str], object] | None:
    """Return msprobe's computation for one pair, or None if it is not installed."""
    try:
        from msprobe.core.compare.npy_compare import compare_ops_apply, npy_data_check
    except ImportError:
        print("msprobe is not installed (pip install mindstudio-probe): left out", file=sys.stderr)
        return None

    def run(golden: str, target: str) -> object:
        n_value, b_value = np.load(target), np.load(golden)
        failed, message = npy_data_check(n_value, b_value)
        return message if failed else compare_ops_apply(n_value, b_value, failed, message)  # scalars are not included

    return run


def n_bytes_of(pairs: list[tuple[str, str]]) -> int:
    return sum(Path(path).stat().st_size for pair in pairs for path in pair)


def ours(
    golden: Path, target: Path, threads: int, *, with_hashes: bool = False, cpu: str | None = None
) -> Callable[[], object]:
    command = [PROGRAM, "compare", golden, target, "-q", "--threads", str(threads)]
    command += [] if with_hashes else ["--read-all"]
    if threads == 1 and shutil.which("taskset"):
        command = ["taskset", "-c", "0", *command]
    environment = {**os.environ, "FXTAP_CPU": cpu} if cpu else None

    def run() -> None:
        done = subprocess.run(command, stdout=subprocess.DEVNULL, env=environment, check=False)
        assert done.returncode in (0, 1)

    return run


def peak_private_mib(command: list[str | Path]) -> float:
    """Return the largest RssAnon of a command while it runs."""
    process, peak = subprocess.Popen(command, stdout=subprocess.DEVNULL), 0
    while process.poll() is None:
        try:
            lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
        except OSError:
            break
        peak = max([peak, *(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))])
        time.sleep(0.002)
    process.wait()
    return peak / 1024


def limit(pairs: list[tuple[str, str]], work: Path) -> Callable[[], float]:
    program, listing = work / "limit_reader", work / "list"
    source = ROOT / "bench" / "limit_reader.c"
    subprocess.run(["cc", "-O3", "-march=native", "-D_GNU_SOURCE", source, "-o", program], check=True)
    listing.write_text("".join(f"{a} {b}\n" for a, b in pairs))

    def run() -> float:
        out = subprocess.run([program, listing], capture_output=True, text=True, check=True).stdout
        return float(out.split()[0])

    return run


def measure(golden: Path, target: Path, work: Path, rounds: int, sample: int = 1) -> dict[str, Any]:
    """
    NumPy processes only every `sample`-th pair, msprobe every tenth of those; their seconds are scaled by bytes.

    Finding the pairs is part of every contender's work.
    """
    pairs = list_pairs(golden, target)
    n_bytes = n_bytes_of(pairs)
    shares = {"allclose": pairs[::sample], "numpy": pairs[::sample]}
    python = {"allclose": allclose, "numpy": numpy_metrics}
    if msprobe := msprobe_metrics():
        shares["msprobe"], python["msprobe"] = pairs[:: 10 * sample], msprobe
    seconds = alternate(
        {
            "ours_1": ours(golden, target, 1),
            "ours_1_avx2": ours(golden, target, 1, cpu="avx2"),
            "ours_2": ours(golden, target, 2),
            "find_pairs": lambda: list_pairs(golden, target) and None,
            "limit": limit(pairs, work),
            **{name: each(shares[name], python[name]) for name in python},
        },
        rounds,
    )
    for name, some in shares.items():
        seconds[name] = seconds[name] * n_bytes / n_bytes_of(some) + seconds["find_pairs"]
    private = peak_private_mib([PROGRAM, "compare", golden, target, "-q", "--read-all"])
    return {
        "pairs": len(pairs),
        "gigabytes": n_bytes / 1e9,
        "seconds": seconds,
        **{f"{name}_over_ours_{n}": seconds[name] / seconds[f"ours_{n}"] for name in python for n in (1, 2)},
        "numpy_over_ours_1_avx2": seconds["numpy"] / seconds["ours_1_avx2"],
        "share_of_limit_1": seconds["limit"] / seconds["ours_1"],
        "share_of_limit_1_avx2": seconds["limit"] / seconds["ours_1_avx2"],
        "private_mib": private,
    }


def large(work: Path, model: str, rounds: int) -> dict[str, Any]:
    dump(model, work / "golden", 0.0)
    dump(model, work / "target", 1e-6)
    return measure(work / "golden", work / "target", work, rounds)


def small(work: Path, _model: str, rounds: int) -> dict[str, Any]:
    """Measure 100,000 pairs of 256 float32 each, 1,000 steps of 100 nodes, without an index; all close, none equal."""
    random = np.random.default_rng(0)
    header = io.BytesIO()
    np.save(header, np.zeros(256, np.float32))
    start = header.getvalue()[:128]
    for step in range(1000):
        values = random.random((100, 256), np.float32)
        noise = (1 + 1e-6 * random.random((100, 256))).astype(np.float32)
        for side in ("golden", "target"):
            folder = work / side / "worldsize1_global_rank0" / "graph_1" / str(step)
            folder.mkdir(parents=True)
            values = values * noise if side == "target" else values
            for i in range(100):
                name = f"mul_{i}-aten.mul.Tensor.OUTPUT.0.20260101000000{i:06d}.npy"
                (folder / name).write_bytes(start + values[i].tobytes())
    return measure(work / "golden", work / "target", work, rounds, 20)


def chain(x: torch.Tensor) -> torch.Tensor:
    for i in range(33):
        x = x.mul(1.0 + 1e-3 * i)
    return x


def indexed(work: Path, _model: str, rounds: int) -> dict[str, Any]:
    """Measure about 100,000 pairs of two fxtap dumps of the same run, decided by hash, and with all files read."""
    for side in ("golden", "target"):
        torch._dynamo.reset()
        generator = torch.Generator().manual_seed(1)
        function = torch.compile(chain, backend=backend)
        with fxtap.dump(work / side):
            for _ in range(1000):
                function(torch.rand(256, generator=generator))
    golden, target = work / "golden", work / "target"
    contenders = {
        "by_hash": ours(golden, target, 2, with_hashes=True),
        "read_all": ours(golden, target, 2),
    }
    return {
        "pairs": sum(1 for _ in golden.rglob("*.npy")),
        "seconds": alternate(contenders, rounds),
        "private_mib": peak_private_mib([PROGRAM, "compare", golden, target, "-q"]),
        "private_mib_read_all": peak_private_mib([PROGRAM, "compare", golden, target, "-q", "--read-all"]),
    }


def page(work: Path, _model: str, rounds: int) -> dict[str, Any]:
    """Measure opening a report of 50,000 rows in headless Chromium."""
    from browser import Browser

    for side, noise in (("golden", 0), ("target", 1)):
        folder = work / side / "worldsize1_global_rank0" / "graph_1" / "0"
        folder.mkdir(parents=True)
        first = folder / "mul_0-aten.mul.Tensor.OUTPUT.0.20260101000000000000.npy"
        np.save(first, np.arange(16, dtype=np.float32) + noise)
        for i in range(1, 50_000):
            os.link(first, folder / f"mul_{i}-aten.mul.Tensor.OUTPUT.0.20260101{i:012d}.npy")
    report = work / "report.html"
    subprocess.run([PROGRAM, "compare", work / "golden", work / "target", "-q", "--html", report], check=False)
    with Browser(work / "profile") as browser:
        seconds = sorted(browser.open(report) for _ in range(rounds + 1))
    return {"seconds": seconds[len(seconds) // 2], "megabytes": report.stat().st_size / 1e6}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="gpt2", help="of bench/models.py")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=["large", "small", "indexed", "page"])
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    results = {}
    for section in (large, small, indexed, page):
        if arguments.only in (None, section.__name__):
            with tempfile.TemporaryDirectory(prefix="fxtap-bench-") as work:
                results[section.__name__] = section(Path(work), arguments.model, arguments.rounds)
            print(section.__name__, json.dumps(results[section.__name__], indent=2))
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
