"""Values and texts that no file or index can store unchanged are recorded, and the model runs on."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import fxtap
from fxtap import _core
from graphs import Dumped, build, chain


def test_a_view_without_a_saved_form_is_skipped(tmp_path: Path) -> None:
    pair = torch.zeros((), dtype=torch.uint8).view(torch.float4_e2m1fn_x2)

    def ones(_: Any) -> Tensor:
        return torch.ones(1)

    program = Dumped(chain(ones), tmp_path)
    assert program(pair).shape == (1,)
    (text,) = program.skipped().values()
    assert text.startswith("cannot be saved: ")


def test_a_list_inside_itself(tmp_path: Path) -> None:
    def cycle(x: Tensor) -> list[Any]:
        result: list[Any] = [x]
        result += [result, [result]]
        return result

    program = Dumped(chain(cycle), tmp_path)
    program(torch.ones(1))
    assert program.skipped() == {
        "cycle.OUTPUT.1": "a list inside itself",
        "cycle.OUTPUT.2.0": "a list inside itself",
    }


def test_lists_nested_without_end(tmp_path: Path) -> None:
    def nest(x: Any) -> Any:
        for _ in range(100_000):
            x = [x]
        return x

    program = Dumped(chain(nest), tmp_path)
    program(torch.ones(1))
    assert list(program.skipped().values()) == ["nested too deep"]


def test_lone_surrogates_are_spelled_out_in_the_index(tmp_path: Path) -> None:
    def first(x: Tensor, **_: Any) -> Tensor:
        return x

    gm = build(lambda graph, x: graph.call_function(first, (x,)), "x")
    node = next(node for node in gm.graph.nodes if node.op == "call_function")
    node.name = "node\ud800"
    node.kwargs = {"key\ud800": None}
    program = Dumped(gm, tmp_path, {"command": "script.py \udcff", "versions": "1\udcff"})
    program(torch.ones(1))
    assert program.index("SELECT command FROM run") == [("script.py \\udcff",)]
    assert program.skipped() == {"node\\ud800.INPUT.key\\ud800": "None"}


def test_command_is_text(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="command"):
        _core.Dump(str(tmp_path), command=3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x93NUMPY\x01\x00\x48\x00"
        + b"{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551616,)}\n".ljust(0x48)[:0x48],
    ],
    ids=["empty", "overflow"],
)
def test_what_is_no_array_is_a_value_error(tmp_path: Path, content: bytes) -> None:
    name = "x-aten.x.OUTPUT.0.20251017071211190258.npy"
    (tmp_path / name).write_bytes(content)
    (tensor,) = fxtap.open(tmp_path).tensors()
    with pytest.raises(ValueError):
        tensor.numpy()


def test_a_pickle_is_not_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Hostile:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return (os.mkdir, ("marker",))

    monkeypatch.chdir(tmp_path)
    array = np.empty(1, dtype=object)
    array[0] = Hostile()
    np.save("x-aten.x.OUTPUT.0.20251017071211190258.npy", array, allow_pickle=True)
    (tensor,) = fxtap.open(tmp_path).tensors()
    with pytest.raises(ValueError):
        tensor.numpy()
    assert fxtap.compare(tmp_path, tmp_path).counts["unreadable"] == 1
    fxtap.open(tmp_path).to_pandas()
    assert not (tmp_path / "marker").exists()
