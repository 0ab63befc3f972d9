"""A tensor with more bytes than one write() transfers."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from dumps import graphs, load, run

N = (1 << 31) + 5


@pytest.mark.long
def test_more_than_one_write_moves(tmp_path: Path) -> None:
    if shutil.disk_usage(tmp_path).free < 3 * N:
        pytest.skip("no room")
    x = torch.zeros(N, dtype=torch.uint8)
    x[-1] = 7
    run(tmp_path, lambda x: x[-1:] + 1, x)
    (graph,) = graphs(tmp_path)
    ((path, saved),) = [
        (path, array)
        for path in (graph / "0").glob("*.INPUT.0.*.npy")
        if (array := np.load(path, mmap_mode="r")).shape == (N,)
    ]
    assert saved.dtype == np.uint8 and saved[-1] == 7 and saved[-2] == 0 and path.stat().st_size == N + 128
    assert load(graph / "0", "add-aten.add.Tensor.OUTPUT.0").tolist() == [8]
    path.unlink()
