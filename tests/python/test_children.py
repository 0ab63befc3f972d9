"""`fxtap run` and the processes that a script starts: all are dumped, and none is disturbed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import fxtap
from dumps import graphs, load, nodes

LAUNCHER = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--rdzv-backend", "c10d", "--rdzv-endpoint"]
RANKS = """
import torch, torch.distributed as dist
torch.set_num_threads(1)
dist.init_process_group("gloo")
x = torch.full((2,), float(dist.get_rank()))
print(torch.compile(lambda x: torch.relu(x) + 1)(x).tolist())
dist.barrier()
dist.destroy_process_group()
"""
SPAWNS = """
import torch, torch.multiprocessing as mp
def work(rank):
    torch.set_num_threads(1)
    torch.compile(lambda x: x * 2)(torch.full((2,), float(rank)))
if __name__ == "__main__":
    mp.spawn(work, nprocs=2)
"""
STARTS = """
import subprocess, sys
code = "import torch; torch.set_num_threads(1); torch.compile(lambda x: x.sin())(torch.ones(2))"
subprocess.run([sys.executable, *sys.argv[1:], "-c", code], check=True)
"""


def run(*arguments: str | Path, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run what `fxtap run` executes, without the program."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [sys.executable, "-m", "fxtap", "run-script", *arguments],
        cwd=cwd,
        env={**inherited, "OMP_NUM_THREADS": "1", "FXTAP_TYPE": "npy", "FXTAP_PATH": "out", **environ},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def starts_python(tmp_path: Path, code: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a script that only starts Python with this code."""
    (tmp_path / "starts.py").write_text(f"import subprocess, sys; subprocess.run([sys.executable, '-c', {code!r}])")
    return run("starts.py", cwd=tmp_path, **environ)


@pytest.mark.parametrize("way", ["module", "executable"])
def test_ranks_of_torchrun(way: str, tmp_path: Path) -> None:
    (tmp_path / "ranks.py").write_text(RANKS)
    torchrun = tmp_path / "bin" / "torchrun"  # the interpreter line that pip writes
    torchrun.parent.mkdir()
    torchrun.write_text(f"#!{sys.executable}\nfrom torch.distributed.run import main\nmain()\n")
    torchrun.chmod(0o755)
    launcher = LAUNCHER if way == "module" else ["torchrun", *LAUNCHER[2:]]
    path = f"{torchrun.parent}{os.pathsep}{os.environ['PATH']}"
    done = run(*launcher, "localhost:0", "ranks.py", cwd=tmp_path, PATH=path)
    assert done.returncode == 0, done.stderr
    assert (
        sorted(done.stdout.split("\n")[:2]) == ["[1.0, 1.0]", "[2.0, 2.0]"] and "nothing was dumped" not in done.stderr
    )
    for rank in (0, 1):
        (graph,) = graphs(tmp_path / "out")[rank : rank + 1]
        root = tmp_path / "out" / f"worldsize2_global_rank{rank}"
        assert graph.name == "graph_1"
        assert load(root / "graph_1" / "0", "relu-aten.relu.default.INPUT.0").tolist() == [float(rank)] * 2


def test_ranks_of_spawn(tmp_path: Path) -> None:
    (tmp_path / "spawns.py").write_text(SPAWNS)
    done = run("spawns.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = graphs(tmp_path / "out")  # without torch.distributed they share a rank but no graph
    assert len(found) == 2 and all(int(graph.name[6:]) % 1000 == 1 for graph in found)
    values = sorted(load(graph / "0", "mul-aten.mul.Tensor.INPUT.0")[0] for graph in found)
    assert values == [0.0, 1.0] and "nothing was dumped" not in done.stderr


def test_children_by_subprocess_and_in_isolation(tmp_path: Path) -> None:
    (tmp_path / "starts.py").write_text(STARTS)
    done = run("starts.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (graph,) = graphs(tmp_path / "out")
    assert nodes(graph / "0") == {"sin"}
    shutil.rmtree(tmp_path / "out")
    isolated = run("starts.py", "-I", cwd=tmp_path)  # it ignores PYTHON variables, as requested
    assert isolated.returncode == 0 and not (tmp_path / "out").exists()
    assert "no Python process of this run called torch.compile" in isolated.stderr


def test_children_in_other_folders_share_the_dump(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "script.py").write_text(f"import os; os.chdir('elsewhere')\n{STARTS}")
    assert run("script.py", cwd=tmp_path).returncode == 0
    assert len(graphs(tmp_path / "out")) == 1


@pytest.mark.parametrize("kind", ["sh", "other python"])
def test_commands_that_are_no_script_of_this_python(kind: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import torch; torch.compile(lambda x: x.sin())(torch.ones(2)); raise SystemExit(7)"
    )
    command = tmp_path / "launch"
    if kind == "sh":
        command.write_text(f'#!/bin/sh\n"{sys.executable}" train.py "$@"\n')
    else:
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / "python3").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        (tmp_path / "other" / "python3").chmod(0o755)
        command.write_text(f"#!{tmp_path / 'other' / 'python3'}\nimport runpy; runpy.run_path('train.py')\n")
    command.chmod(0o755)
    done = run("./launch", cwd=tmp_path)
    assert done.returncode == 7 and "nothing was dumped" not in done.stderr, done.stderr
    assert len(graphs(tmp_path / "out")) == 1


def test_a_command_that_a_signal_ends(tmp_path: Path) -> None:
    (tmp_path / "launch.sh").write_text("#!/bin/sh\nkill -TERM $$\n")
    (tmp_path / "launch.sh").chmod(0o755)
    done = run("./launch.sh", cwd=tmp_path)
    assert done.returncode == -15 and "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_child_without_torch_imports_nothing_of_ours(tmp_path: Path) -> None:
    code = (
        "import sys; print(sorted(name for name in sys.modules if name.split('.')[0] in ('fxtap', 'numpy', 'torch')))"
    )
    assert starts_python(tmp_path, code).stdout == "[]\n"
    code = "import torch, sys; print('fxtap' in sys.modules, torch.compile.__name__)"
    assert starts_python(tmp_path, code).stdout == "False compile\n"


def test_a_child_that_cannot_import_fxtap_says_so(tmp_path: Path) -> None:
    call = "torch.compile(torch.sin, backend='eager')(torch.zeros(1))"
    code = f"import sys, torch; sys.modules['fxtap'] = None; print({call})"
    done = starts_python(tmp_path, code)
    assert "tensor([0.])" in done.stdout
    (line,) = [line for line in done.stderr.splitlines() if "cannot import fxtap" in line]
    assert line.startswith("fxtap: nothing is dumped in process") and sys.executable in line


@pytest.mark.parametrize(
    "theirs", ["", "print('theirs', 'hook' in ''.join(sys.path))", "raise ImportError('inner')", "1/0"]
)
def test_the_users_own_sitecustomize(theirs: str, tmp_path: Path) -> None:
    """It runs as without fxtap: afterwards only the hook that waits for torch shows that fxtap's module was there."""
    (tmp_path / "site").mkdir()
    if theirs:
        (tmp_path / "site" / "sitecustomize.py").write_text(f"import sys\nmark = 1\n{theirs}\n")
    code = "import sys; print(getattr(sys.modules.get('sitecustomize'), 'mark', None))"
    with_ours = starts_python(tmp_path, code, PYTHONPATH=str(tmp_path / "site"))
    plain = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if theirs.startswith("print"):
        once_in_the_script = "theirs False\n"
        assert with_ours.stdout == once_in_the_script + "theirs False\n" + plain.stdout.split("\n", 1)[1]
    else:
        assert with_ours.stdout == plain.stdout
    error = [line for line in plain.stderr.splitlines() if line]
    assert all(line in with_ours.stderr for line in error)


def test_other_finders_and_the_loader_are_left_alone(tmp_path: Path) -> None:
    code = (
        "import importlib.resources, sys, torch; print(type(torch.__loader__).__name__, vars(torch.__loader__).keys()"
        " - {'name', 'path'}, [f for f in sys.meta_path if 'Torch' in type(f).__name__],"
        " importlib.resources.files('torch').joinpath('__init__.py').is_file())"
    )
    assert starts_python(tmp_path, code).stdout == "SourceFileLoader set() [] True\n"


def test_the_hook_compiles_in_old_pythons() -> None:
    """The hook parses in Python 2.7 and 3.6: both reach its version check."""
    import ast

    from fxtap.default import HOOK

    tree = ast.parse((HOOK / "sitecustomize.py").read_text(), feature_version=(3, 4))
    newer = (ast.JoinedStr, ast.AnnAssign, ast.NamedExpr, ast.AsyncFunctionDef, ast.Nonlocal, ast.Match)
    assert not [node for node in ast.walk(tree) if isinstance(node, newer)]
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    assert not [f for f in functions if f.returns or f.args.kwonlyargs or any(a.annotation for a in f.args.args)]


@pytest.mark.parametrize(
    ("script", "wanted"),
    [
        ("import torch; torch.nn.Linear(2, 2)(torch.ones(2))", "no Python process of this run called torch.compile"),
        ("import torch; torch.compile(torch.sin, backend='eager')(torch.ones(2))", 'only with the backend "eager"'),
        ("import torch; torch.compile(torch.sin)", "compiled no graph; TORCH_LOGS=graph_breaks"),
        ("import torch; torch.compile(torch.sin)(torch.ones(2))", None),
        ("import fxtap, torch; c = fxtap.CompilerConfig(); c.debug.data_dump.type = 'npy';"
         "b = fxtap.get_npu_backend(compiler_config=c); torch.compile(torch.sin, backend=b)", "graph"),
        ("1 / 0", None),
        ("import os\nif os.fork() == 0: raise SystemExit\nos.wait()", "no Python process"),
    ],
)  # fmt: skip
def test_a_run_that_dumps_nothing_says_why(script: str, wanted: str | None, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(script)
    done = run("script.py", cwd=tmp_path)
    lines = [line for line in done.stderr.splitlines() if line.startswith("fxtap: nothing was dumped")]
    assert len(lines) == (wanted is not None)
    assert wanted is None or wanted in lines[0]


DDP = """
import os, torch, torch.distributed as dist, fxtap
from torch import nn
torch.set_num_threads(1)
os.environ.update(MASTER_ADDR="localhost", MASTER_PORT="0", RANK="0", WORLD_SIZE="1")
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
config = fxtap.CompilerConfig()
config.debug.data_dump.type = "npy"
backend, options = WAY
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
torch.compile(model, backend=backend, options=options)(torch.ones(1, 2))
dist.destroy_process_group()
"""


@pytest.mark.parametrize(
    "way",
    [
        "fxtap.get_npu_backend(compiler_config=config), None",
        '"fxtap", {"data_dump.type": "npy"}',
        '"fxtap", None',
    ],
)
def test_frames_that_dynamo_skips(way: str, tmp_path: Path) -> None:
    """Nothing was compiled, so the backend was never called: only a line at exit can report it."""
    environ = {**os.environ, **({"FXTAP_TYPE": "npy"} if way.endswith("None") and "config" not in way else {})}
    done = subprocess.run(
        [sys.executable, "-c", DDP.replace("WAY", way)],
        cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    if list(tmp_path.iterdir()):
        pytest.skip("this version of torch compiles it")
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("fxtap: ")]
    assert "nothing was dumped" in line and "TORCH_LOGS=graph_breaks" in line


def test_a_backend_that_is_not_asked_for_a_dump_says_nothing(tmp_path: Path) -> None:
    for code in (
        "import fxtap; fxtap.get_npu_backend(compiler_config=fxtap.CompilerConfig())",
        "import fxtap; fxtap.get_npu_backend()",
        "import torch; torch.compile(torch.sin, backend='fxtap', options={'inner_backend': 'eager'})(torch.ones(1))",
    ):
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
        )
        assert (done.returncode, done.stderr) == (0, ""), code


def test_the_dump_of_a_run_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "starts.py").write_text(STARTS)
    assert run("starts.py", cwd=tmp_path).returncode == 0
    (node,) = fxtap.open(tmp_path / "out").graphs[0].nodes[1:2]
    assert node.target == "aten.sin.default"
