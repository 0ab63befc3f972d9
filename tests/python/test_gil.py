"""fxtap waits for files and locks without the GIL: other Python threads run meanwhile."""

import os
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from dumps import dumping, run
from fxtap import session
from fxtap._core import Reader

LOCK = """
import sqlite3, sys, time
index = sqlite3.connect(sys.argv[1], isolation_level=None)
index.execute("PRAGMA journal_mode=" + sys.argv[2])
index.execute("BEGIN EXCLUSIVE")
index.execute("UPDATE run SET pid = pid + 1")  # a reader does not wait where nothing is being changed
print("locked", flush=True)
time.sleep(float(sys.argv[3]))
"""


class Counter:
    """A thread that counts while it has the GIL."""

    def __init__(self) -> None:
        self.count = 0
        self.stopped = False

    def __enter__(self) -> "Counter":
        self.thread = threading.Thread(target=self.work)
        self.thread.start()
        return self

    def work(self) -> None:
        while not self.stopped:
            self.count += 1
            time.sleep(0.001)

    def __exit__(self, *_: object) -> None:
        self.stopped = True
        self.thread.join()


def locked(index: Path, journal: str, seconds: float) -> subprocess.Popen[str]:
    """Let another process hold the exclusive lock of an index for a while."""
    command = [sys.executable, "-c", LOCK, str(index), journal, str(seconds)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "locked\n"
    return process


def expect_counting(function: Callable[[], Any], least_seconds: float) -> Any:
    """Call a function that waits, and check that the other thread counted for most of that time."""
    with Counter() as counter:
        began = time.perf_counter()
        result = function()
        seconds = time.perf_counter() - began
        count = counter.count
    assert seconds > least_seconds, "nothing was waited for"
    assert count > 100 * seconds
    return result


@pytest.mark.parametrize("kind", ["npy", "stats"])
@pytest.mark.parametrize("sync", [False, True])
def test_writing_waits_without_the_gil(kind: str, sync: bool, tmp_path: Path) -> None:
    """The first call of a process waits for the index at its beginning, later calls at their end."""
    run(tmp_path / "out", torch.sin, torch.ones(2))
    session._close_all()
    (index,) = tmp_path.rglob("fxtap.db")
    torch._dynamo.reset()
    compiled = torch.compile(torch.cos, backend=dumping(tmp_path / "out", type=kind, sync=sync))
    for _ in range(2):
        locker = locked(index, "WAL", 1.5)
        expect_counting(lambda: compiled(torch.ones(2)), 0.7)
        locker.wait(60)
    with sqlite3.connect(index) as database:
        assert database.execute("SELECT count(*) FROM step").fetchone() == (3,)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Path]:
    """Write two steps to an index whose lock blocks readers."""
    compiled = torch.compile(torch.sin, backend=dumping(tmp_path / "out"))
    compiled(torch.ones(2))
    compiled(torch.ones(2))
    session._close_all()
    (path,) = tmp_path.rglob("fxtap.db")
    database = sqlite3.connect(path)
    database.execute("PRAGMA journal_mode=DELETE")
    database.close()
    yield path


@pytest.mark.parametrize("what", ["runs", "graphs", "nodes", "record", "tensors"])
def test_reading_waits_without_the_gil(what: str, index: Path, tmp_path: Path) -> None:
    reader = Reader(tmp_path / "out")
    if what in ("nodes", "record"):
        reader.graphs(0)
    questions: dict[str, Callable[[], Any]] = {
        "runs": lambda: reader.runs(0),
        "graphs": lambda: reader.graphs(0),
        "nodes": lambda: reader.nodes(0, 0),
        "record": lambda: reader.record(0, 0),
        "tensors": lambda: reader.tensors(),
    }
    locker = locked(index, "DELETE", 1.5)
    expect_counting(questions[what], 0.7)
    locker.wait(60)


def test_threads_share_a_reader(index: Path, tmp_path: Path) -> None:
    """A method that releases the GIL must not admit a second thread to the same reader."""
    reader = Reader(tmp_path / "out")
    answers: list[tuple[int, ...]] = []

    def ask() -> None:
        for _ in range(50):
            counts = len(reader.runs(0)), len(reader.graphs(0)), len(reader.steps(0, 0)), len(reader.nodes(0, 0))
            answers.append((*counts, len(reader.tensors()), len(reader.warnings), len(reader.ranks())))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 200 and set(answers) == {(1, 1, 2, 3, 4, 0, 1)}


def test_no_file_is_touched_with_the_gil_held(tmp_path: Path) -> None:
    """For every call that opens, creates, links or moves a file of a dump, check whether the thread holds the GIL."""
    source = Path(__file__).with_name("gil_watch.c")
    library = tmp_path / "gil_watch.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-fno-builtin", "-o", library, source, "-ldl"], check=True)
    code = """
        import torch, fxtap
        from fxtap._core import Reader, load_rules
        torch.set_num_threads(1)

        def model(x, w):
            return torch.nn.functional.gelu(torch.addmm(w[0], x, w, beta=2.0)).sum(0, dtype=torch.float64), x.argmax()

        for kind, sync, dedup, threads in (("npy", False, True, 0), ("npy", True, True, 0), ("npy", True, False, 2),
                                           ("npy", False, False, 2), ("stats", False, True, 0)):
            options = {"data_dump.type": kind, "data_dump.path": f"watched/{kind}{sync}{dedup}",
                       "data_dump.sync": sync, "data_dump.dedup": dedup, "data_dump.threads": threads}
            torch._dynamo.reset()
            compiled = torch.compile(model, backend="fxtap", options=options)
            for _ in range(2):
                compiled(torch.ones(4, 4), torch.rand(4, 4))
        reader = Reader("watched/npyFalseTrue")
        reader.runs(0), reader.graphs(0), reader.steps(0, 0), reader.nodes(0, 0), reader.record(0, 0), reader.ranks()
        tensors = reader.tensors()
        tensors.load_meta(0), tensors.load_stats(0)
        report = fxtap.compare("watched/npyFalseTrue", "watched/npyTrueTrue")
        open("watched/rules.txt", "w").write("* rtol=1\\n")
        try:
            load_rules("watched/rules.txt")
        except ValueError:
            pass
        del reader, tensors, report
        """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=tmp_path,
        env={**os.environ, "LD_PRELOAD": str(library)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    assert [line for line in lines if line.startswith("held: ")] == []
    assert max(int(line.removeprefix("watched: ")) for line in lines if line.startswith("watched: ")) > 200
