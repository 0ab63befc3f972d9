"""Asynchronous collectives: their result is saved at the wait."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import fxtap
from dumps import load

WORLD = 2

CODE = """
import os, sys, torch, torch.distributed as dist, torch.distributed._functional_collectives as collectives, fxtap
store = dist.FileStore(os.path.abspath("store"), 2)
rank = int(sys.argv[1])
dist.init_process_group("gloo", store=store, rank=rank, world_size=2)

def model(x):
    total = collectives.all_reduce(x * 2, "sum", dist.group.WORLD)
    gathered = collectives.all_gather_tensor(x, 0, dist.group.WORLD)
    part = collectives.reduce_scatter_tensor(gathered, "sum", 0, dist.group.WORLD)
    return total + 1, part - 1

options = {"data_dump.type": "npy", "data_dump.path": "out"}
compiled = torch.compile(model, backend="fxtap", options=options, fullgraph=True)
for step in range(3):
    total, part = compiled(torch.full((200_000,), float(rank + 1 + step)))
    assert total[0] == 2 * (1 + 2 + 2 * step) + 1 and part[0] == 2 * (rank + 1 + step) - 1
dist.barrier()
dist.destroy_process_group()
"""


def test_results_are_saved_where_they_are_waited_for(tmp_path: Path) -> None:
    ranks = [
        subprocess.Popen([sys.executable, "-c", textwrap.dedent(CODE), str(rank)], cwd=tmp_path)
        for rank in range(WORLD)
    ]
    try:
        assert [rank.wait(timeout=120) for rank in ranks] == [0] * WORLD
    finally:
        for process in ranks:
            process.kill()
    for rank in range(WORLD):
        (graph,) = fxtap.open(tmp_path / "out").ranks[rank].graphs
        skipped = {node.name: node.skipped for node in graph.nodes if "c10d" in str(node.target)}
        assert set(skipped.values()) == {""} or set(skipped.values()) == {None}
        for step in range(3):
            folder = tmp_path / "out" / f"worldsize2_global_rank{rank}" / "graph_1" / str(step)
            values = {
                path.name.partition("-")[0]: load(folder, path.name[: -len(".20000101000000000000.npy")])
                for path in folder.glob("*c10d*.OUTPUT.0.*.npy")
            }
            sums = 1 + 2 + 2 * step
            assert {name: (array.min(), array.max(), array.size) for name, array in values.items()} == {
                "wait_tensor": (2 * sums, 2 * sums, 200_000),
                "wait_tensor_1": (1 + step, 2 + step, 400_000),
                "wait_tensor_2": (2 * (rank + 1 + step), 2 * (rank + 1 + step), 200_000),
            }
            # the result of a collective is not saved before the wait
            assert load(folder, "all_reduce-_c10d_functional.all_reduce.default.INPUT.0").max() == 2 * (rank + 1 + step)
