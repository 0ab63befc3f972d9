"""Measure the cost of a dump, as ratios in one run: fxtap, the naive dumper, plain runs and the bare C writer.

python bench/capture.py [--quick] [--only SECTION] [--json FILE]

Contenders take turns (A B C A B C ...), medians are compared, every run writes to a fresh folder, and folders are
deleted only at the end. Sections: rejected, tiny, gpt, gpt2, stats, memory.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import fxtap
from models import make
from naive import naive_backend, plain_backend

ROOT = Path(__file__).resolve().parent.parent
Run = Callable[[], object]


def alternate(contenders: dict[str, Run], rounds: int) -> dict[str, float]:
    """Run the contenders in turn; return each one's median seconds. A run may return its own seconds."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(rounds + 1):
        for name, run in contenders.items():
            start = time.perf_counter()
            own = run()
            taken = own if isinstance(own, float) else time.perf_counter() - start
            if turn > 0:
                seconds[name].append(taken)
    return {name: statistics.median(values) for name, values in seconds.items()}


def compiled(model: torch.nn.Module, inputs: tuple[Any, ...], backend: Any) -> Run:
    """Compile a model with a backend; return a function that runs one inference call with new token ids each time.

    With the same inputs, the contents of every step would already exist, and a dump would only create links.
    """
    function = torch.compile(model, backend=backend)
    highest = int(max(tensor.max() for tensor in inputs))

    def run() -> None:
        fresh = [torch.randint_like(tensor, 0, highest + 1) for tensor in inputs]
        with torch.no_grad():
            function(*fresh)

    run()
    return run


def dumping(path: Path, **options: Any) -> Any:
    """Return fxtap's backend, dumping to ``path``."""
    config = fxtap.CompilerConfig()
    config.debug.data_dump.type = options.pop("type", "npy")
    config.debug.data_dump.path = str(path)
    for name, value in options.items():
        setattr(config.debug.data_dump, name, value)
    return fxtap.get_npu_backend(compiler_config=config)


def disk_bytes(folder: Path) -> int:
    """Return the bytes of the distinct files below a folder."""
    files = {}
    for path in folder.rglob("*.npy"):
        info = path.stat()
        files[info.st_ino] = info.st_size
    return sum(files.values())


def newest_step(root: Path) -> Path:
    """Return the last step folder of the only graph below a dump root."""
    steps = [p for p in root.glob("worldsize*/graph_*/*") if p.name.isdigit()]
    return max(steps, key=lambda p: int(p.name))


def write_manifest(step: Path, manifest: Path, store: Path) -> None:
    """Describe a step for the bare writer: W SOURCE NAME writes new bytes, L FIRST NAME links.

    Bytes of an earlier step are linked from there, as in the dump itself.
    """
    first: dict[int, str] = {}
    for other in step.parent.iterdir():
        if other != step and other.name.isdigit():
            for entry in os.scandir(other):
                first.setdefault(entry.inode(), entry.path)
    lines = []
    for entry in sorted(os.scandir(step), key=lambda e: e.name):
        inode = entry.inode()
        if inode in first:
            lines.append(f"L {first[inode]} {entry.name}")
        else:
            copy = store / f"{inode}.npy"
            shutil.copyfile(entry.path, copy)
            first[inode] = entry.name
            lines.append(f"W {copy} {entry.name}")
    manifest.write_text("\n".join(lines) + "\n")


class LimitWriter:
    """Return a run of the bare C program that writes one step's bytes; it returns its own seconds."""

    def __init__(self, step: Path, work: Path) -> None:
        self.work = work
        self.manifest = work / "manifest"
        self.program = work / "limit_writer"
        store = work / "sources"
        store.mkdir(parents=True)
        write_manifest(step, self.manifest, store)
        source = ROOT / "bench" / "limit_writer.c"
        subprocess.run(["cc", "-O2", "-D_GNU_SOURCE", "-o", self.program, source], check=True)
        self.count = 0

    def __call__(self) -> float:
        """Write to a fresh folder; return the seconds that the program measured."""
        self.count += 1
        command = [str(self.program), str(self.manifest), str(self.work / f"out{self.count}")]
        return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def hashing(run: Run) -> Run:
    """Return the same call under torch's DebugMode with tensor hashes."""
    from torch.utils._debug_mode import DebugMode

    def hashed() -> None:
        with DebugMode(), DebugMode.log_tensor_hashes(hash_inputs=True):
            run()

    return hashed


class NoRoomError(Exception):
    """The dumps of a section would not fit; the message has the folder and the space needed."""


def rounds_in_room(place: Path, rounds: int, step_bytes: int) -> int:
    """Return at most `rounds`, limited by the space for dumps (in memory, less what the model needs).

    A round writes a step of fxtap's, of the bare writer's and of the naive dumper's, which is about twice as large; of
    the first steps three of each stay. Raises NoRoomError if three rounds do not fit.
    """
    free = shutil.disk_usage(place).free
    if place == Path("/dev/shm"):
        meminfo = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        free = min(free, int(meminfo["MemAvailable"].split()[0]) * 1024 // 2)
    fitting = free // step_bytes // 4 - 3
    if fitting < min(rounds, 3):
        raise NoRoomError(f"needs about {24 * step_bytes >> 20} MiB in {place}, {free >> 20} MiB are free")
    return min(rounds, fitting)


def full_dump(name: str, place: Path, rounds: int) -> dict[str, Any]:
    """Measure naive, plain, aot_eager, DebugMode and fxtap on one model, on one folder's file system."""
    torch._dynamo.reset()
    model, inputs = make(name)
    work = Path(tempfile.mkdtemp(prefix=f"fxtap-bench-{name}-", dir=place))
    try:
        plain = compiled(model, inputs, plain_backend([]))
        eager = compiled(model, inputs, "aot_eager")
        naive = compiled(model, inputs, naive_backend(work / "naive"))
        ours = compiled(model, inputs, dumping(work / "fxtap"))
        ours()
        rounds = rounds_in_room(place, rounds, disk_bytes(newest_step(work / "fxtap").parent / "0"))
        firsts = max(3, rounds // 3)
        limit = LimitWriter(newest_step(work / "fxtap"), work / "limit")
        contenders = {"plain": plain, "aot_eager": eager, "naive": naive, "fxtap": ours, "limit": limit}
        if name != "gpt2":
            contenders["debug_mode"] = hashing(eager)
        seconds = alternate(contenders, rounds)
        first = alternate_first(model, inputs, work, firsts)
        steps = len(list((work / "naive" / "graph_1").iterdir()))  # both contenders dumped as many
        result = {
            "seconds": seconds,
            "speedup over naive": seconds["naive"] / seconds["fxtap"],
            "speedup over naive, first step": first["naive"] / first["fxtap"],
            "against the limit": seconds["fxtap"] / max(seconds["plain"], seconds["limit"]),
            "disk against naive": disk_bytes(work / "fxtap") / disk_bytes(work / "naive"),
            "disk against naive, first step": disk_bytes(newest_step(work / "first-fxtap-1"))
            / disk_bytes(work / "naive" / "graph_1" / "0"),
            "files a step": sum(1 for _ in newest_step(work / "fxtap").iterdir()),
            "steps": steps,
        }
    finally:
        torch._dynamo.reset()
        shutil.rmtree(work, ignore_errors=True)
    return result


def alternate_first(model: torch.nn.Module, inputs: tuple[Any, ...], work: Path, rounds: int) -> dict[str, float]:
    """Return the median seconds of the first step in a new dump root (an index is created, nothing can be linked)."""
    seconds: dict[str, list[float]] = {"naive": [], "fxtap": []}
    for turn in range(rounds):
        for name, backend in (
            ("naive", naive_backend(work / f"first-naive-{turn}")),
            ("fxtap", dumping(work / f"first-fxtap-{turn}")),
        ):
            torch._dynamo.reset()
            function = torch.compile(model, backend=first_call_timer(backend, seconds[name]))
            with torch.no_grad():
                function(*inputs)
            if turn > 1:  # two are kept: their bytes are compared
                shutil.rmtree(work / f"first-{name}-{turn}", ignore_errors=True)
    return {name: statistics.median(values) for name, values in seconds.items()}


def first_call_timer(backend: Any, seconds: list[float]) -> Any:
    """Wrap a backend so that calls of its compiled function are timed, without compilation."""

    def wrapped(module: torch.fx.GraphModule, example_inputs: Any, **options: Any) -> Any:
        function = backend(module, example_inputs, **options)

        def call(*args: Any) -> Any:
            start = time.perf_counter()
            result = function(*args)
            seconds.append(time.perf_counter() - start)
            return result

        return call

    return wrapped


def rejected(rounds: int) -> dict[str, Any]:
    """Compare the run loop, with every node rejected by the filter, with the graph's generated code."""
    model, inputs = make("tiny")
    seen: list[torch.fx.GraphModule] = []
    plain = compiled(model, inputs, plain_backend(seen))
    with tempfile.TemporaryDirectory() as folder:
        ours = compiled(model, inputs, dumping(Path(folder), filter=lambda node: None))
        calls = 20

        def repeat(run: Run) -> Run:
            return lambda: [run() for _ in range(calls)] and None

        seconds = alternate({"generated": repeat(plain), "fxtap": repeat(ours)}, rounds)
        torch._dynamo.reset()
    return {"seconds": {k: v / calls for k, v in seconds.items()}, "ratio": seconds["fxtap"] / seconds["generated"]}


def stats_only(rounds: int) -> dict[str, Any]:
    """Measure statistics without files on GPT-2 124M, batch 4, 128 tokens."""
    model, inputs = make("gpt2")
    with tempfile.TemporaryDirectory() as folder:
        eager = compiled(model, inputs, "aot_eager")
        ours = compiled(model, inputs, dumping(Path(folder), type="stats"))
        seconds = alternate({"aot_eager": eager, "fxtap": ours}, rounds)
        torch._dynamo.reset()
    return {"seconds": seconds, "ratio": seconds["fxtap"] / seconds["aot_eager"]}


def peak_memory(_rounds: int) -> dict[str, Any]:
    """Measure the peak resident memory of a full dump of GPT-2 over the model's own, with queues of 64 MiB and 1 GiB.

    glibc keeps freed blocks (its threshold for returning them grows by itself, to 32 MiB), which are not in use: the
    threshold is fixed for all three.
    """
    peaks = {}
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "131072"}
    for label, queue in (("model", None), ("64 MiB", 64 << 20), ("1 GiB", 1 << 30)):
        command = [sys.executable, __file__, "--peak", "0" if queue is None else str(queue)]
        out = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
        peaks[label] = int(out) * 1024
    over = {label: (peak - peaks["model"]) / (1 << 20) for label, peak in peaks.items() if label != "model"}
    return {"peak bytes": peaks, "MiB over the model's own": over}


def print_peak(queue_bytes: int) -> None:
    """Run GPT-2 twice, with a dump if ``queue_bytes``, and print the process' peak resident KiB."""
    model, inputs = make("gpt2")
    folder = tempfile.mkdtemp(prefix="fxtap-bench-", dir=ROOT / "build")
    try:
        backend = dumping(Path(folder), queue_bytes=queue_bytes) if queue_bytes else plain_backend([])
        run = compiled(model, inputs, backend)
        run()
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
        torch._dynamo.reset()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def places() -> dict[str, Path]:
    """Return the folders to write to: on the project's disk, and in memory."""
    disk = ROOT / "build"
    disk.mkdir(exist_ok=True)
    found = {"disk": disk}
    if Path("/dev/shm").is_dir():
        found["tmpfs"] = Path("/dev/shm")
    return found


def sections(quick: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return all measurements by name."""
    rounds = 5 if quick else 15
    table: dict[str, Callable[[], dict[str, Any]]] = {"rejected": lambda: rejected(rounds * 3)}
    for name, turns in (("tiny", rounds), ("gpt", 5), ("gpt2", 2)):  # all their dumps are kept until the end
        for where, place in places().items():
            table[f"{name} {where}"] = lambda name=name, place=place, turns=turns: full_dump(name, place, turns)
    table["stats"] = lambda: stats_only(5 if quick else 11)
    table["memory"] = lambda: peak_memory(1)
    return table


def show(name: str, result: dict[str, Any]) -> None:
    """Print one section's figures."""
    print(f"\n{name}")
    for key, value in result.items():
        if isinstance(value, dict):
            text = ", ".join(f"{k} {v * 1e3:.2f} ms" if key == "seconds" else f"{k} {v:.0f}" for k, v in value.items())
        else:
            text = f"{value:.3g}" if isinstance(value, float) else str(value)
        print(f"  {key:34} {text}")


def main() -> None:
    """Run the selected sections and print their ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--only", help="sections whose name contains this")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--peak", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    torch._dynamo.config.recompile_limit = 64  # the contenders share the model's code
    if options.peak is not None:
        print_peak(options.peak)
        return
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {os.cpu_count()} processors")
    results = {}
    for name, section in sections(options.quick).items():
        if options.only is None or options.only in name:
            try:
                results[name] = section()
            except NoRoomError as error:
                print(f"\n{name}\n  left out: {error}")
                continue
            show(name, results[name])
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
