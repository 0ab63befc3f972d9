"""A Python run killed at any moment leaves a dump in which `fxtap check` finds exactly what is incomplete."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

N_KILLS = 200

# One process imports torch once; each of its forked children dumps steps until it is killed.
CODE = """
import os, random, signal, sys, time, torch, fxtap
torch.set_num_threads(1)
choose = random.Random(7)
n_kills, sync = int(sys.argv[1]), sys.argv[2] == "sync"
options = {"data_dump.type": "npy", "data_dump.path": "out", "data_dump.sync": sync}

def model(x):
    for _ in range(10):
        x = (x * 1.5).sin()
    return x

compiled = torch.compile(model, backend="fxtap", options=options)
compiled(torch.rand(3000))
for _ in range(n_kills):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, b"x")
        while True:
            compiled(torch.rand(3000))
    os.read(reader, 1)
    os.close(reader)
    os.close(writer)
    time.sleep(choose.random() * 0.3)
    os.kill(child, signal.SIGKILL)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    print(child, flush=True)
"""


def is_whole(path: Path) -> bool:
    """Return whether NumPy can read a file."""
    try:
        np.load(path, allow_pickle=False)
    except (ValueError, EOFError):
        return False
    return True


@pytest.mark.long
@pytest.mark.parametrize("sync", ["async", "sync"])
def test_killed_at_any_moment(program: str, sync: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(N_KILLS // 2), sync],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.split()) == N_KILLS // 2
    checked = subprocess.run([program, "check", "--json", "out"], cwd=tmp_path, capture_output=True, check=False)
    report = json.loads(checked.stdout)
    rank = tmp_path / "out" / "worldsize1_global_rank0"
    partial = {str(path) for path in rank.glob("graph_*/.*.partial")}
    assert partial  # a step was interrupted
    steps = [path for path in rank.glob("graph_*/*") if path.name.isdigit()]
    assert len(steps) >= 5
    for step in steps:  # files below a step's name are complete
        files = list(step.glob("*.npy"))
        assert len(files) == 50 and len(list(step.iterdir())) == 50, step
        for path in files:
            np.load(path, allow_pickle=False)
    problems: dict[str, set[str]] = {}
    for problem in report["problems"]:
        problems.setdefault(problem["kind"], set()).add(str(tmp_path / problem["path"]))
    assert problems.pop("partial step") == partial
    cut = {str(path) for path in rank.glob("graph_*/.*.partial/*.npy") if not is_whole(path)}
    named = problems.pop("damaged", set())
    assert named == cut and not problems
