"""Forked children, failing dumps, exit without close."""

import os
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import torch

import fxtap
from dumps import dumping, graphs, load, python, run, stems


def test_forked_child_runs_the_graph_too(tmp_path: Path) -> None:
    done = python(
        """
        import os, torch, fxtap
        torch.set_num_threads(1)
        options = {"data_dump.type": "npy", "data_dump.path": "out"}
        model = torch.compile(torch.sin, backend="fxtap", options=options)
        model(torch.zeros(3))
        child = os.fork()
        model(torch.full((3,), 2.0 if child else 1.0))
        if child == 0:
            model(torch.ones(3))
            torch.compile(torch.cos, backend="fxtap", options=options)(torch.ones(3))
            os._exit(0)
        pid, status = os.waitpid(child, 0)
        print(child, status)
        """,
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    child, status = map(int, done.stdout.split())
    assert status == 0
    folders = graphs(tmp_path / "out")
    assert [folder.name for folder in folders] == ["graph_1", f"graph_{child * 1000 + 1}", f"graph_{child * 1000 + 2}"]
    mine, again, new = folders
    assert [sorted(path.name for path in folder.iterdir()) for folder in folders] == [["0", "1"], ["0", "1"], ["0"]]
    assert load(mine / "1", "sin-aten.sin.default.INPUT.0").tolist() == [2.0] * 3
    assert load(again / "0", "sin-aten.sin.default.INPUT.0").tolist() == [1.0] * 3
    assert stems(new / "0")[0].startswith("cos-")


def test_relatives_have_no_graph_number_in_common(tmp_path: Path) -> None:
    """More than a block each, grandchildren, reused pids, and a parent whose numbers reach a child's block."""
    done = python(
        """
        import os
        from unittest import mock
        from fxtap import session

        def numbers(n):
            return [session.next_graph_id() for _ in range(n)]

        def fork(pid, body):
            read, write = os.pipe()
            with mock.patch("os.getpid", lambda: pid):
                child = os.fork()
            if child == 0:
                os.close(read)
                with os.fdopen(write, "w") as file:
                    file.write(" ".join(map(str, body())))
                os._exit(0)
            os.close(write)
            with os.fdopen(read) as file:
                found = [int(word) for word in file.read().split()]
            os.waitpid(child, 0)
            return found

        mine = numbers(3)
        first = fork(2, lambda: numbers(2500) + fork(3, lambda: numbers(1200)))
        again = fork(2, lambda: numbers(3))
        neighbour = fork(50, lambda: numbers(3))
        mine += numbers(4000)
        everything = mine + first + again + neighbour
        assert len(set(everything)) == len(everything), "a number twice"
        print(mine[:4], first[0], neighbour[0], max(everything) < 2**32)
        """,
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[1, 2, 3, 4] 2001 50001 True\n"


@pytest.mark.parametrize("end", ["sys.exit(0)", "raise RuntimeError", "os.kill(os.getpid(), signal.SIGKILL)"])
def test_however_a_forked_child_ends_the_parents_files_stay(end: str, tmp_path: Path) -> None:
    done = python(
        f"""
        import glob, os, signal, sys, torch, fxtap
        torch.set_num_threads(1)
        options = {{"data_dump.type": "npy", "data_dump.path": "out"}}
        model = torch.compile(torch.sin, backend="fxtap", options=options)
        model(torch.zeros(3))
        files = {{name: open(name, "rb").read() for name in glob.glob("out/*/graph_1/0/*.npy")}}
        if os.fork() == 0:
            model(torch.ones(3))
            {end}
        os.wait()
        assert len(files) == 2
        assert all(open(name, "rb").read() == content for name, content in files.items())
        model(torch.full((3,), 2.0))
        """,
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    mine, childs = graphs(tmp_path / "out")
    assert mine.name == "graph_1"
    assert [sorted(path.name for path in folder.iterdir()) for folder in (mine, childs)] == [["0", "1"], ["0"]]
    dump = fxtap.open(tmp_path / "out", run=1)
    assert [step.state for step in dump.graphs[0].steps] == ["whole", "whole"]
    assert load(childs / "0", "sin-aten.sin.default.INPUT.0").tolist() == [1.0] * 3


def test_no_writer_threads_where_torch_uses_all_processors(tmp_path: Path) -> None:
    """A writer on a processor of torch's OpenMP team would delay every operator: the team writes instead."""
    done = python(
        """
        import glob, os, torch, fxtap
        for threads in len(os.sched_getaffinity(0)), 1:
            torch.set_num_threads(threads)
            options = {"data_dump.type": "npy", "data_dump.path": f"out{threads}"}
            torch.compile(torch.nn.Sequential(*[torch.nn.ReLU()] * 20), backend="fxtap", options=options)(torch.ones(9))
            print(sum(open(name).read() == "fxtap writer\\n" for name in glob.glob("/proc/self/task/*/comm")))
        """,
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    with_all, with_one = map(int, done.stdout.split())
    assert with_all == 0
    assert with_one == min(len(os.sched_getaffinity(0)) - 1, 4)
    assert len(list(graphs(tmp_path / "out1")[0].glob("0/*.npy"))) == 40


@pytest.mark.parametrize("imported", ["first", "in the child"])
def test_forked_child_of_a_process_with_a_team(imported: str, tmp_path: Path) -> None:
    """A child has no threads of torch's OpenMP team: waiting for them would hang."""
    done = python(
        f"""
        import os, signal, torch
        if {imported == "first"}:
            import fxtap
        torch.rand(1 << 20).sin()
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            import fxtap
            model = torch.nn.Sequential(*[torch.nn.ReLU()] * 20)
            options = {{"data_dump.type": "npy", "data_dump.path": "out"}}
            torch.compile(model, backend="fxtap", options=options)(torch.ones(9))
            os._exit(0)
        print(os.waitpid(child, 0)[1])
        """,
        tmp_path,
    )
    assert done.stdout == "0\n", done.stderr
    assert len(list(graphs(tmp_path / "out")[0].glob("0/*.npy"))) == 40


def test_path_that_is_a_file_fails_at_the_call(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    model = torch.compile(torch.sin, backend=dumping(tmp_path / "file"))
    for _ in range(2):
        with pytest.raises(NotADirectoryError) as caught:
            model(torch.ones(2))
        assert str(tmp_path / "file") in str(caught.value.filename)


def test_missing_folders_are_made(tmp_path: Path) -> None:
    run(tmp_path / "a" / "b" / "c", torch.sin, torch.ones(2))
    assert len(graphs(tmp_path / "a" / "b" / "c")) == 1


def test_on_error_warn_lets_the_model_go_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("x")
    model = torch.compile(torch.sin, backend=dumping(tmp_path / "file", on_error="warn"))
    for _ in range(3):
        assert model(torch.zeros(2)).tolist() == [0.0, 0.0]
    failures = [record for record in caplog.records if record.name == "fxtap" and "file" in record.getMessage()]
    assert len(failures) == 1


def test_exit_without_close_and_unhandled_exception(tmp_path: Path) -> None:
    done = python(
        """
        import torch, fxtap
        model = torch.compile(torch.sin, backend="fxtap", options={"data_dump.type": "npy", "data_dump.path": "out"})
        model(torch.ones(1 << 20))
        raise RuntimeError("on purpose")
        """,
        tmp_path,
    )
    assert done.returncode == 1 and done.stderr.strip().endswith("RuntimeError: on purpose")
    (graph,) = graphs(tmp_path / "out")
    assert len(stems(graph / "0")) == 2
    for path in graph.rglob("*.npy"):
        np.load(path)


def test_operator_that_raises(tmp_path: Path) -> None:
    def model(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return x.sin()[i]

    compiled = torch.compile(model, backend=dumping(tmp_path))
    x = torch.ones(3)
    with pytest.raises(IndexError):
        compiled(x, torch.tensor([7]))
    assert compiled(x, torch.tensor([1])).tolist() == x.sin()[1:2].tolist()
    (graph,) = graphs(tmp_path)
    assert (graph / "0").is_dir()
    failed = [path for path in graph.iterdir() if ".failed-" in path.name]
    assert len(failed) == 1 and "sin-aten.sin.default.OUTPUT.0" in stems(failed[0])


def test_sixty_four_descriptors(tmp_path: Path) -> None:
    done = python(
        """
        import os, resource, torch, fxtap
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        options = {"data_dump.type": "npy", "data_dump.path": "out", "data_dump.threads": 8}
        model = torch.compile(lambda x: [x + k for k in range(60)], backend="fxtap", options=options)
        for k in range(3):
            model(torch.full((3,), float(k)))
            print(len(os.listdir("/proc/self/fd")))
        """,
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    counts = list(map(int, done.stdout.split()))
    assert counts[1] == counts[2] < 32
    (graph,) = graphs(tmp_path / "out")
    assert [len(stems(graph / str(step))) for step in range(3)] == [180] * 3


def test_ctrl_c_in_the_middle_of_a_step(tmp_path: Path) -> None:
    code = """
        import time, torch, fxtap
        wait = False
        @torch.library.custom_op("fxtap_test::long", mutates_args=())
        def long(x: torch.Tensor) -> torch.Tensor:
            if wait:
                print("waiting", flush=True)
                time.sleep(100)
            return x.clone()
        @long.register_fake
        def _(x):
            return torch.empty_like(x)
        def model(x):
            for _ in range(20):
                x = x * 1.01
            return long(x) + 1
        options = {"data_dump.type": "npy", "data_dump.path": "out"}
        compiled = torch.compile(model, backend="fxtap", options=options)
        compiled(torch.rand(20_000))
        wait = True
        compiled(torch.rand(20_000))
        """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None and process.stdout.readline() == "waiting\n"
        process.send_signal(signal.SIGINT)
        _, messages = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == -signal.SIGINT
    assert "\nKeyboardInterrupt\n" in messages and "Error" not in messages
    assert "in node long = fxtap_test.long.default" in messages
    (graph,) = fxtap.open(tmp_path / "out").graphs
    whole, failed = graph.steps
    assert (whole.state, failed.state, failed.reason) == ("whole", "failed", "KeyboardInterrupt()")
    assert len(whole.tensors(io="OUTPUT")) == 21
    values = [tensor.numpy() for tensor in failed.tensors(io="OUTPUT")]
    assert len(values) == 20 and all(len(value) == 20_000 for value in values)
    assert not list((tmp_path / "out").rglob(".*.partial"))


def test_ranks(tmp_path: Path) -> None:
    code = """
        import os, sys, torch, torch.distributed as dist, fxtap
        store = dist.FileStore(os.path.abspath("store"), 2)
        dist.init_process_group("gloo", store=store, rank=int(sys.argv[1]), world_size=2)
        options = {"data_dump.type": "npy", "data_dump.path": "out"}
        torch.compile(torch.sin, backend="fxtap", options=options)(torch.full((2,), float(dist.get_rank())))
        dist.barrier()
        dist.destroy_process_group()
        """
    ranks = [
        subprocess.Popen([sys.executable, "-c", textwrap.dedent(code), str(rank)], cwd=tmp_path) for rank in range(2)
    ]
    assert [rank.wait(timeout=120) for rank in ranks] == [0, 0]
    for rank in range(2):
        folder = tmp_path / "out" / f"worldsize2_global_rank{rank}"
        assert load(folder / "graph_1" / "0", "sin-aten.sin.default.INPUT.0").tolist() == [float(rank)] * 2


def test_import_changes_no_floating_point_mode() -> None:
    assert fxtap.__version__ and sys.float_info.min / 2 != 0


def test_a_dump_is_read_without_torch(tmp_path: Path) -> None:
    run(tmp_path / "out", torch.sin, torch.ones(2))
    done = python(
        """
        import sys, fxtap
        print(fxtap.open("out").tensors()[0].numpy().tolist(), fxtap.CompilerConfig().mode, "torch" in sys.modules)
        """,
        tmp_path,
    )
    assert done.stdout == "[1.0, 1.0] max-autotune False\n", done.stderr


def test_many_processes_start_one_fresh_root_together(tmp_path: Path) -> None:
    done = python(
        """
        import os, torch, fxtap
        torch.set_num_threads(1)
        from torch.fx import symbolic_trace
        from fxtap import _core
        from fxtap.session import next_graph_id
        gm = symbolic_trace(lambda x: torch.ops.aten.sin.default(x))
        reader, writer = os.pipe()
        children = []
        for k in range(16):
            pid = os.fork()
            if pid == 0:
                os.close(writer)
                os.read(reader, 1)  # all begin when the parent closes its end
                record = _core.record(gm)
                dump = _core.Dump("out")
                program = _core.Program(gm, record, dump, next_graph_id(), [None] * len(record))
                for step in range(3):
                    program([torch.full((4,), float(k))])
                dump.close()
                os._exit(0)
            children.append(pid)
        os.close(reader)
        os.close(writer)
        print([os.waitpid(pid, 0)[1] for pid in children])
        """,
        tmp_path,
    )
    assert done.stdout == f"{[0] * 16}\n", done.stderr
    dump = fxtap.open(tmp_path / "out", run=-1)
    assert len(dump.graphs) == 16 and not dump.warnings
    values = set()
    for graph in dump.graphs:
        assert [step.state for step in graph.steps] == ["whole"] * 3
        values.add(graph.tensors(io="INPUT")[0].numpy()[0])
    assert values == set(range(16))


@pytest.mark.parametrize("what", ["out", "out/worldsize*", "out/worldsize*/graph_*"])
def test_root_that_vanishes_between_steps(what: str, tmp_path: Path) -> None:
    """The tree is created again with the next step number, and is a valid dump."""
    root = tmp_path / "out"
    model = torch.compile(torch.sin, backend=dumping(root), dynamic=False)
    for step in range(3):
        x = torch.full((2,), float(step))
        assert torch.equal(model(x), x.sin())
        if step < 2:
            (folder,) = tmp_path.glob(what)
            shutil.rmtree(folder)
    (graph,) = graphs(root)
    assert [path.name for path in graph.iterdir()] == ["2"]
    assert load(graph / "2", "sin-aten.sin.default.INPUT.0").tolist() == [2.0, 2.0]
    dump = fxtap.open(root)
    assert dump.graphs[-1].steps[-1].state == "whole"
    assert dump.graphs[-1].steps[-1].tensors(io="OUTPUT")[0].numpy().tolist() == x.sin().tolist()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: becomes another user")
def test_read_only_folder(tmp_path: Path) -> None:
    done = python(
        """
        import os, torch, fxtap
        options = {"data_dump.type": "npy", "data_dump.path": "out"}
        model = torch.compile(torch.sin, backend="fxtap", options=options)
        model(torch.ones(2))
        os.chmod(".", 0o755)
        os.chmod("out/worldsize1_global_rank0/graph_1", 0o500)
        os.seteuid(65534)
        for _ in range(2):
            try:
                model(torch.ones(2))
            except PermissionError as error:
                print(error.errno, error.filename)
        """,
        tmp_path,
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 2, done.stderr
    for line in lines:
        assert line.startswith(f"13 {tmp_path}")
