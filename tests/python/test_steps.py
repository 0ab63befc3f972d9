"""Steps are numbered in the order in which calls began, also if they overlap."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor

import fxtap
from dumps import dumping

entered = threading.Event()
gate = threading.Event()


@pytest.fixture(scope="module", autouse=True)
def library() -> Iterator[None]:
    """An operator that blocks its first caller (x[0] is 0), or fails (1)."""
    with torch.library._scoped_library("fxtap_steps", "FRAGMENT") as definitions:
        definitions.define("visit(Tensor x) -> Tensor")

        def visit(x: Tensor) -> Tensor:
            kind = float(x[0])
            if kind == 0:
                entered.set()
                assert gate.wait(60)
            elif kind == 1:
                raise ValueError("as asked")
            return x.clone()

        definitions.impl("visit", visit, "CPU")
        definitions.impl("visit", lambda x: torch.empty_like(x), "Meta")
        yield


def compiled(root: Path) -> Callable[[Tensor], Tensor]:
    """Compile a model with the operator; its first call is step 0."""
    function: Callable[[Tensor], Tensor] = torch.compile(
        lambda x: torch.ops.fxtap_steps.visit(x + 0) * 2, backend=dumping(root)
    )
    function(torch.full((2,), 5.0))
    entered.clear()
    gate.clear()
    return function


def first_values(root: Path) -> dict[tuple[int, str], float]:
    """Return each step's number and state with its first input."""
    steps = [step for graph in fxtap.open(root).graphs for step in graph.steps]
    return {(step.step, step.state): float(step.tensors(io="INPUT")[0].numpy()[0]) for step in steps}


def test_the_first_to_begin_ends_last(tmp_path: Path) -> None:
    function = compiled(tmp_path)
    thread = threading.Thread(target=function, args=(torch.zeros(2),))
    thread.start()
    assert entered.wait(60)
    function(torch.full((2,), 9.0))
    gate.set()
    thread.join()
    assert first_values(tmp_path) == {(0, "whole"): 5.0, (1, "whole"): 0.0, (2, "whole"): 9.0}


def test_failed_calls_give_their_numbers_back(tmp_path: Path) -> None:
    function = compiled(tmp_path)
    for _ in range(2):
        with pytest.raises(ValueError, match="as asked"):
            function(torch.ones(2))
    function(torch.full((2,), 9.0))
    assert first_values(tmp_path) == {(0, "whole"): 5.0, (1, "failed"): 1.0, (1, "whole"): 9.0}
    assert sorted(path.name for path in tmp_path.glob("*/graph_*/*")) == ["0", "1", "1.failed-0", "1.failed-1"]
