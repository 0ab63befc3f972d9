"""`fxtap repro`: a folder that needs torch and NumPy alone, and judges as `fxtap verify` does."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import fxtap
from program_run import Run
from replayed import Wrong, by_tanh, dump, example, model, scaled, wrong_gelu

aten = torch.ops.aten


def run_script(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a script where fxtap cannot be imported."""
    block = "import sys; sys.modules['fxtap'] = None; sys.argv = sys.argv[1:]; import runpy; "
    return subprocess.run(
        [sys.executable, "-I", "-c", block + "runpy.run_path(sys.argv[0], run_name='__main__')",
         str(folder / "repro.py"), *arguments],
        cwd="/",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )  # fmt: skip


def repro(run: Run, *arguments: object) -> subprocess.CompletedProcess[str]:
    return run("repro", *arguments, FXTAP_PYTHON=sys.executable)


def x(*sizes: int, dtype: torch.dtype = torch.float32, seed: int = 1) -> torch.Tensor:
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(seed), dtype=torch.float32).to(dtype)


CASES: dict[str, tuple[str, Callable[..., Any], list[Any]]] = {
    "gelu, bfloat16": ("gelu", lambda a: aten.gelu.default(a, approximate="tanh"), [x(64, 8, dtype=torch.bfloat16)]),
    "several results": ("norm", lambda a: aten.native_layer_norm.default(a, [8], None, None, 1e-5)[0] * 2, [x(64, 8)]),
    "float16": ("mm", lambda a, b: aten.mm.default(a, b), [x(9, 64, dtype=torch.float16), x(64, 9).half()]),
    "in place": ("add_", lambda a, b: aten.add_.Tensor(a.clone(), b, alpha=2.5), [x(64), x(64, seed=2)]),
    "in place, not returned": (
        "_foreach", lambda a, b: aten._foreach_add_.List([c := a.clone()], [b]) or c * 1, [x(64), x(64, seed=2)],
    ),
    "list argument": ("cat", lambda a, b: aten.cat.default([a, b.t()], 1), [x(4, 8), x(8, 4)]),
    "list of results": ("split", lambda a: aten.split.Tensor(a, 2)[1] * 2, [x(5, 8)]),
    "list with a hole": ("index", lambda a, i: aten.index.Tensor(a, [None, i]), [x(4, 8), torch.tensor([3, 0])]),
    "complex": ("mul", lambda a: aten.mul.Tensor(a, 2 - 1j), [torch.complex(x(64), x(64, seed=2))]),
    "integers": ("add", lambda a: aten.add.Scalar(a, 3), [torch.arange(9)]),
    "bools": ("gt", lambda a: aten.gt.Scalar(a, 0.5), [x(64)]),
    "dtype": ("to_copy", lambda a: aten._to_copy.default(a, dtype=torch.bfloat16), [x(64)]),
    "sum in float64": ("sum", lambda a: aten.sum.dim_IntList(a, [0], True, dtype=torch.float64), [x(64, 8)]),
    "positions": ("topk", lambda a: aten.topk.default(a, 3)[1], [x(8, 64)]),
    "position of all": ("argmax", lambda a: aten.argmax.default(a), [x(8, 64)]),
    "infinite literal": ("masked", lambda a: aten.masked_fill.Scalar(a, a > 0, float("-inf")), [x(64)]),
    "no argument of a dtype": ("arange", lambda: aten.arange.start_step(0, 9, 2, device="cpu"), []),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_right_is_right(name: str, run: Run, tmp_path: Path) -> None:
    part, function, arguments = CASES[name]
    dump(tmp_path / "dump", function, arguments)
    (node,) = [n.name for n in fxtap.open(tmp_path / "dump").graphs[0].nodes if part in n.name and n.skipped is None][
        :1
    ]
    done = repro(run, "dump", node, "-o", "out")
    assert (done.returncode, done.stdout, done.stderr) == (0, "Wrote out\n", "")
    done = run_script(tmp_path / "out")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == "" and done.stdout.endswith("RIGHT\n")


def one_element_off(result: torch.Tensor, *_: torch.Tensor) -> torch.Tensor:
    changed = result.clone()
    changed[2, 3] += 0.02
    return changed


def test_symbolic_sizes(run: Run, tmp_path: Path) -> None:
    compiled = torch.compile(lambda a: a.view(-1, a.shape[0]).sin() + a.shape[1], backend="fxtap", dynamic=True)
    with fxtap.dump(tmp_path / "dump"):
        compiled(x(4, 6))
    for node in ("view", "add"):
        (found,) = [n.name for n in fxtap.open(tmp_path / "dump").graphs[0].nodes if node in n.name and not n.skipped]
        assert repro(run, "dump", found, "-o", node).returncode == 0
        assert run_script(tmp_path / node).returncode == 0
    assert "[-1, 4]" in (tmp_path / "view" / "repro.py").read_text()


@pytest.mark.parametrize(
    ("dtype", "fault", "said"),
    [
        (torch.float32, scaled(1.1), "times what rounding explains"),
        (torch.bfloat16, scaled(1.1), "times what rounding explains"),
        (torch.bfloat16, by_tanh, "of its elements are not correctly rounded"),
        (torch.float32, lambda r, *_: r.index_fill(0, torch.tensor([2]), float("nan")), "64 NaN, infinities"),
        (torch.float16, one_element_off, "elements are far from the exact"),
    ],
)
def test_wrong_is_wrong(dtype: torch.dtype, fault: Any, said: str, run: Run, tmp_path: Path) -> None:
    dump(tmp_path / "dump", model, [example(dtype)], wrong_gelu(fault))
    assert repro(run, "dump", "gelu_1").returncode == 0
    folder = tmp_path / "repro-gelu_1"
    done = run_script(folder)
    assert (done.returncode, done.stderr) == (1, ""), done.stdout
    assert "\nWRONG  output_0: " in done.stdout and said in done.stdout
    assert run_script(folder, "--device", "cpu").returncode == 0, "what this machine computes is right"
    written = [path for path in folder.iterdir() if path.suffix in (".py", ".md")]
    assert len(written) == 2
    for path in written:
        assert str(tmp_path) not in path.read_text() and os.sep + "home" not in path.read_text()
    assert len((folder / "README.md").read_text().splitlines()) == 1


def test_a_step(run: Run, tmp_path: Path) -> None:
    dump(tmp_path / "dump", model, [example()], wrong_gelu(scaled(1.1)), steps=2)
    for arguments, status in (([], 1), (["--step", 0], 0), (["--step", 1, "--graph", 1, "--rank", 0], 1)):
        assert repro(run, "dump", "gelu_1", "-o", "out", "--force", *arguments).returncode == 0
        assert run_script(tmp_path / "out").returncode == status


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["dump", "gely_1"], "did you mean 'gelu_1'?"),
        (["dump", "gelu_1", "--step", 9], "no complete step 9"),
        (["dump", "gelu_1", "--graph", 9], "no such rank or graph"),
        (["dump", "gelu_1", "-o", "full"], "'full' already exists; use --force"),
        (["dump", "rand_like"], "rand_like cannot be run again: random"),
        (["nowhere", "gelu_1"], "nowhere': No such file or directory"),
        (["dump"], "expected a DUMP and a NODE"),
        (["dump", "gelu_1", "more"], "too many operands: 'more'"),
    ],
)
def test_trouble_is_one_line(arguments: list[Any], said: str, run: Run, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("")
    dump(tmp_path / "dump", lambda a: model(a) * torch.rand_like(a), [example()])
    done = repro(run, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr and done.stderr.count("\n") == 1


def test_texts_of_a_dump_are_not_code(run: Run, tmp_path: Path) -> None:
    """A literal, a node name and a module path that would be code if they were written as they are."""
    from torch.fx import Graph, GraphModule

    from fxtap import _core

    text = '"); import os; os.mkdir("executed") #\n\\'
    graph = Graph()
    a = graph.placeholder("a")
    node = graph.call_function(aten.div.Tensor_mode, (a, a), {"rounding_mode": text})
    node.name = 'div"""\nimport os; os.mkdir("executed")\n"""'
    graph.output(node)
    gm = GraphModule(torch.nn.Module(), graph)
    handle = _core.Dump(str(tmp_path / "dump"))
    record = _core.record(gm)
    node.kwargs = {"rounding_mode": "floor"}  # the record keeps what is hostile
    gm.recompile()
    _core.Program(gm, record, handle, 1)([x(4)])
    handle.close()
    done = repro(run, "dump", node.name, "-o", "out")
    assert done.returncode == 0, done.stderr
    code = (tmp_path / "out" / "repro.py").read_text()
    strings = [item.value for item in ast.walk(ast.parse(code)) if isinstance(item, ast.Constant)]
    assert text in strings
    run_script(tmp_path / "out")
    assert not list(tmp_path.rglob("executed")) and not Path("/executed").exists()


def in_bfloat16(result: torch.Tensor, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """A product whose sums are rounded after each term."""
    total = torch.zeros_like(result)
    for k in range(left.shape[1]):
        total = total + left[:, k : k + 1] * right[k]
    return total


def one_spacing_more(result: torch.Tensor, *_: torch.Tensor) -> torch.Tensor:
    changed = result.clone()
    changed[1, 2] *= 1 + 2**-7 * 3
    return changed


def one_value_more(result: torch.Tensor, *_: torch.Tensor) -> torch.Tensor:
    changed = result.clone()
    changed[1, 2] += 2e-4
    return changed


@pytest.mark.parametrize(
    ("dtype", "fault", "said"),
    [
        (torch.bfloat16, None, "RIGHT"),
        (torch.bfloat16, in_bfloat16, "WRONG"),
        (torch.bfloat16, one_spacing_more, "WRONG"),
        (torch.float32, None, "RIGHT"),
        (torch.float32, one_value_more, "WRONG"),
    ],
)
def test_a_sum_is_judged_as_by_verify(dtype: torch.dtype, fault: Any, said: str, run: Run, tmp_path: Path) -> None:
    """Few elements of a sum, or one, tell more than few of a function."""
    faults = Wrong(torch.ops.aten.mm.default, 0, fault) if fault is not None else None
    dump(tmp_path / "dump", lambda a, b: a @ b, [x(5, 512).to(dtype), x(512, 8, seed=2).to(dtype)], faults)
    done = run("verify", "dump", FXTAP_PYTHON=sys.executable)
    assert repro(run, "dump", "mm", "-o", "out").returncode == 0
    shown = run_script(tmp_path / "out")
    assert (done.returncode, shown.returncode) == ((0, 0) if said == "RIGHT" else (1, 1)), shown.stdout
    assert shown.stdout.splitlines()[-1].startswith(said)


def both_answers(dtype: torch.dtype, run: Run, folder: Path) -> tuple[dict[str, Any], list[list[str]]]:
    """Return what `fxtap verify` and a repro's script tell of one wrong gelu: a row, and columns of two lines."""
    dump(folder / "dump", model, [example(dtype)], wrong_gelu(by_tanh))
    done = run("verify", "dump", "--op", "gelu_1", "--json", "-", FXTAP_PYTHON=sys.executable)
    (wrong,) = json.loads(done.stdout)["wrong"]
    assert repro(run, "dump", "gelu_1", "-o", "out").returncode == 0
    lines = run_script(folder / "out").stdout.splitlines()
    return wrong, [line.split() for line in lines if line.startswith("output_0")]


def test_numbers_are_those_of_verify(run: Run, tmp_path: Path) -> None:
    wrong, lines = both_answers(torch.bfloat16, run, tmp_path)
    usual, found = (line[-1] for line in lines)
    assert found == f"{wrong['misrounded']:.2%}" and usual == f"{wrong['misrounded_usual']:.2%}"


def test_the_allowance_is_that_of_verify(run: Run, tmp_path: Path) -> None:
    """Also where a kernel cancels, as gelu's does for large negative numbers."""
    wrong, lines = both_answers(torch.float32, run, tmp_path)
    usual, found = (float(line[-2].replace(",", "")) for line in lines)
    assert found == pytest.approx(wrong["ratio"], rel=0.1)  # other perturbations
    assert usual == pytest.approx(wrong["ratio_usual"], rel=0.1)
