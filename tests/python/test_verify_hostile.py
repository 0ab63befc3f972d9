"""Records that name something other than an operator of torch: nothing of it runs."""

from pathlib import Path
from typing import Any

import pytest
import torch

import fxtap
from dumps import run
from fxtap.verification import arguments
from fxtap.verification.operators import NotReplayedError, find_operator

HOSTILE = [
    "os.system", "builtins.exec", "builtins.eval", "__import__", "subprocess.run", "operator.attrgetter",
    "operator.methodcaller", "operator.__call__", "operator.call", "operator.getitem", "operator.setitem",
    "operator.pow", "operator.lshift", "torch.load", "torch.hub.load", "torch.ops.load_library",
    "torch.ops.load_library.default.x", "torch.ops.aten.__class__", "torch.ops.aten.__class__.default",
    "torch.ops.aten.add.__class__", "torch.ops.aten.add.__init__", "torch.ops.aten.add.op", "torch.ops.aten.add",
    "torch.ops.__dict__.clear.default", "torch.ops.aten.add.Tensor.__call__", "torch.ops.aten.add.Tensor\n",
    "torch.ops.aten.add.default", "torch.ops.aten.from_file.default", "torch.ops.aten.from_file.out",
    "torch.ops.aten._print.default", "torch.ops.image.write_file.default", "torch.ops.higher_order.cond",
    "torch.ops.c10d.barrier.default", "torch.ops._c10d_functional.all_reduce.default", "torch.ops.prim.Print.default",
    "torch.ops.profiler._record_function_enter_new.default", "", ".", "torch.ops...", "\0", "x" * 10000,
]  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE, ids=lambda name: repr(name[:30]))
def test_names_that_are_no_operators(name: str) -> None:
    with pytest.raises(NotReplayedError):
        find_operator(name)


def test_an_operator_that_a_program_defined() -> None:
    ran: list[int] = []

    @torch.library.custom_op("fxtap_hostile::trap", mutates_args=())
    def trap(x: torch.Tensor) -> torch.Tensor:
        ran.append(1)
        return x.clone()

    assert trap is not None
    with pytest.raises(NotReplayedError, match="custom operator"):
        find_operator("torch.ops.fxtap_hostile.trap.default")
    assert ran == []


TAMPERED: list[tuple[str, Any]] = [
    ("python", "os.system"), ("python", "torch.ops.aten.from_file.default"), ("args", [{"other": "open('x')"}]),
    ("args", [{"graph": 0}]), ("args", [{"node": 10**9}]), ("args", [{"node": -1}]), ("args", [{"string": "/etc/x"}]),
    ("args", [{"dtype": "torch.load"}]), ("args", [{"layout": "torch.load"}]), ("args", [{"memory_format": "os"}]),
    ("args", [{"symint": "__import__('os')", "hint": None}]), ("args", [[[[{"node": 0}]]]]), ("args", []),
    ("args", [{"node": 0}] * 50), ("kwargs", [["__class__", 1]]), ("kwargs", [["self", {"node": 0}]]),
    ("kwargs", [["out", {"node": 0}]]),
]  # fmt: skip


@pytest.mark.parametrize(("member", "value"), TAMPERED, ids=lambda value: repr(value)[:40])
def test_a_record_that_was_tampered_with(
    member: str, value: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path, lambda x: torch.exp(x) + 1, torch.randn(3))
    read = arguments.Record.__init__

    def tampered(self: arguments.Record, graph: Any) -> None:
        read(self, graph)
        for node in self.nodes:
            if node.fields["name"] == "exp":
                node.fields[member] = value

    monkeypatch.setattr(arguments.Record, "__init__", tampered)
    rows = {row["node"]: row for row in fxtap.verify(tmp_path).operators}
    assert rows["exp"]["verdict"] == "not replayed"
    assert rows["add"]["verdict"] in ("exact", "rounding")
