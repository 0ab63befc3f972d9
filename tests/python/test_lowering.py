"""Lowered graphs: the py, txt and pbtxt that TorchAir wrote for the same graphs, and text that can be parsed again."""

from __future__ import annotations

import ast
import json
import math
import re
import tarfile
import time
from functools import cache
from typing import Any

import pytest
import torch
from google.protobuf import text_format
from torch.fx import Graph, GraphModule

from captured import DATA, catch, catch_model
from constants import CONSTANTS, same
from corpus import record_of, rows
from fxtap import _core
from protos import message_class, parse_ge, parse_graph_def

MODELS = ("toy", "toy_static", "mlp", "mlp_dyn", "cnn", "misc", "gpt_manual", "gpt_math", "gpt_math_dyn", "train_mlp")

N_HEADER_LINES = 4

# Rows of the corpus that cannot be reproduced, with the reason.
CUT = "the measured py ends at an operator's FX line, without its GE lines and the outputs"
UNSTABLE = "a tensor's name in the measured txt holds the address of a Python function"
EXPECTED = dict.fromkeys(
    (301, 324, 705, 707, 852, 881, 1006, 1056, 1059, 1086, 1240, 1600, 1620, 1682, 1695, 1865, 2186, 2447), CUT
) | {644: UNSTABLE}


def py_lines(text: str) -> list[str]:
    """Return the significant lines, with the documented differences undone (docs/graph-formats.md)."""
    lines = [line for line in text.split("\n") if line.strip() and not line.startswith("# File")]
    return [re.sub(r"float\('(-?inf|nan)'\)", r"\1", line) for line in lines]


def printed(record: _core.Graph, form: str, optimised: bool = False) -> str:
    return _core.print_graph(record, form, optimised=optimised).decode()


def ge_message(text: str) -> Any:
    """Parse the graph; `_inference_rule` names symbols by a session-wide counter and is removed."""
    message = parse_ge(text)
    for op in message.op:
        op.attr.pop("_inference_rule", None)
    return message


def is_reproduced(row: dict[str, Any], record: _core.Graph) -> bool:
    # Return whether a row's py is of the optimised graph, which leaves a mark on the last line.
    original = row["py"].rstrip("\n").split("\n")[-1].startswith("_ =")
    if py_lines(printed(record, "py", not original))[N_HEADER_LINES:] != py_lines(row["py"]):
        return False
    if ge_message(printed(record, "txt", True)) != ge_message(row["txt_optimized"]):
        return False
    return "txt_original" not in row or ge_message(printed(record, "txt")) == ge_message(row["txt_original"])


def test_corpus() -> None:
    """Every recorded graph is reproduced, py line by line and txt as a message, except the rows listed above."""
    measured = [row for row in rows() if row["status"] == "ok"]
    assert len(measured) == 1783
    failed = {row["id"] for row in measured if not is_reproduced(row, record_of(row))}
    assert failed == set(EXPECTED)
    assert len(failed) <= 0.05 * len(measured)


def test_corpus_without_a_lowering() -> None:
    """For graphs that TorchAir rejects, the operator is its FX line with a comment; other lines are unchanged."""
    others = [row for row in rows() if row["status"] != "ok"]
    assert len(others) > 200
    for row in others:
        record = record_of(row)
        for optimised in (False, True):
            text = printed(record, "py", optimised)
            ast.parse(text)
            ops = parse_ge(printed(record, "txt", optimised)).op
            opaque = [op.name for op in ops if "_no_lowering" in op.attr]
            comments = re.findall(r"^## FX Code: (\w+).*\n# no lowering: (.+)$", text, re.M)
            assert [name for name, _ in comments] == opaque
            assert text.count("# no lowering: ") == len(opaque)
            assert len(opaque) > 0 or row["op"] == "aten.sym_numel.default"  # its result is a plain number here
            assert ops[-1].type == "NetOutput"
            parse_graph_def(printed(record, "pbtxt", optimised))


@cache
def references() -> dict[str, str]:
    """Return the files that TorchAir wrote: "toy/dynamo_original_graph_1.py" -> text."""
    with tarfile.open(DATA / "graphs.tar.xz") as archive:
        names = [member.name for member in archive if member.isfile()]
        return {name: file.read().decode() for name in names if (file := archive.extractfile(name)) is not None}


@pytest.mark.parametrize("name", MODELS)
def test_models(name: str) -> None:
    """The files of a model are equal: py and txt byte for byte, pbtxt as a message."""
    names = {path.rpartition(".")[0] for path in references() if path.startswith(f"{name}/")}
    records = [_core.record(captured.gm, captured.kind) for captured in catch_model(name)]
    assert len(names) == 2 * len(records)
    for number, record in enumerate(records, start=1):
        for stage in ("original", "optimized"):
            reference = f"{name}/dynamo_{stage}_graph_{number}"
            options: dict[str, Any] = {"optimised": stage == "optimized", "title": f"graph_{number}"}
            py = _core.print_graph(record, "py", **options).decode()
            py = py.replace(f'File "{DATA / "models.py"}"', 'File "/models/models.py"')
            assert py_lines(py) == py_lines(references()[f"{reference}.py"])
            if "inf" not in py:
                assert py == references()[f"{reference}.py"]
            txt = _core.print_graph(record, "txt", **options).decode()
            assert txt == references()[f"{reference}.txt"]
            pbtxt = _core.print_graph(record, "pbtxt", **options).decode()
            assert parse_graph_def(pbtxt) == parse_graph_def(references()[f"{reference}.pbtxt"])


def test_a_source_line_is_told_once() -> None:
    """An in-place update of a cache: the text of the statement is not repeated for a part of it."""
    record = _core.record((graph := catch_model("kv")[0]).gm, graph.kind)
    py = _core.print_graph(record, "py", optimised=True).decode()
    py = py.replace(f'File "{DATA / "models.py"}"', 'File "/models/models.py"')
    assert py == (DATA / "kv_optimized.txt").read_text()


# ---- graphs without a recorded reference ----


def indexing(x: torch.Tensor, i: torch.Tensor) -> tuple[torch.Tensor, ...]:
    rows, cells = i[:, 0], x.gather(1, i)
    return (
        torch.zeros_like(x).scatter(1, i, cells),
        x[rows].transpose(0, 1).contiguous().view(-1),
        x.index_add(0, rows, x[rows]).topk(2, -1).values,
        torch.cat([x, x.flip(0)], 1)[..., 1::2].expand(2, -1, -1),
        torch.where(x > 0, x, -x).masked_fill(x > 1, 0.5).cumsum(1),
    )


def integers(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return (a // b, a % b, (a & b) | ~a, a / b, 2 ** a.clamp(0, 3), (a > b).logical_and(a != 0), a.sum() * True)


def mutations(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x.add_(y)[0] = 1.0
    x[:, 1:3].mul_(2)
    y.zero_()
    return x.sum()


def random(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    dropped = torch.nn.functional.dropout(x, 0.5, True)
    return torch.rand(3) + x[0, :3], torch.randn(3, 2), dropped, torch.bernoulli(x.sigmoid()), torch.randperm(4)


class Cells(torch.nn.Module):
    """An embedding, two recurrent cells over three steps, and a normalisation over channels."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(20, 8, padding_idx=0)
        self.lstm, self.gru = torch.nn.LSTMCell(8, 8), torch.nn.GRUCell(8, 8)
        self.norm = torch.nn.GroupNorm(3, 3)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        h = c = g = x.new_zeros(x.shape[0], 8)
        found = []
        for t in range(3):
            h, c = self.lstm(x[:, t], (h, c))
            g = self.gru(h, g)
            found.append(g)
        result: torch.Tensor = self.norm(torch.stack(found, 1))
        return result


def flattened(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Sizes given as -1: with symbolic sizes their expressions are in no list."""
    n = x.shape[0]
    return (
        x.view(n, -1).relu(),
        x.view(-1, x.shape[2]).t() + 1,
        x.unsqueeze(1).view(n, 1, -1).transpose(1, 2) * 2,
        torch.cat([x, x], 1).view(n, 2, -1).cos(),
    )


def check_sound(record: _core.Graph, optimised: bool) -> set[str]:
    """Check that all inputs are defined before, names are unique, and each operator without a lowering has its comment.

    Returns the operators without a lowering.
    """
    text = printed(record, "py", optimised)
    ast.parse(text)
    ops = parse_ge(printed(record, "txt", optimised)).op
    n_outputs: dict[str, int] = {}
    for op in ops:
        for producer, _, output in (name.rpartition(":") for name in op.input if name):
            assert int(output) < n_outputs[producer], (op.name, producer, output)
        assert op.name not in n_outputs
        n_outputs[op.name] = len(op.output_desc)
    nodes = parse_graph_def(printed(record, "pbtxt", optimised)).node
    assert [node.name for node in nodes] == [op.name for op in ops]
    packs = [op for op in ops if op.type == "Pack"]
    assert all(name for op in packs for name in op.input), "a size that is not known"
    opaque = [op for op in ops if "_no_lowering" in op.attr]
    assert re.findall(r"^## FX Code: (\w+).*\n# no lowering: ", text, re.M) == [op.name for op in opaque]
    return {op.type for op in opaque}


SMALL = torch.arange(12).reshape(3, 4) % 5
HELD_OUT: dict[str, tuple[Any, tuple[torch.Tensor, ...], set[str]]] = {
    "indexing": (indexing, (torch.randn(4, 5), torch.tensor([[0, 1], [3, 2], [1, 4]])), set()),
    "integers": (integers, (SMALL, SMALL + 1), set()),
    "int32": (integers, (SMALL.int(), SMALL.int() + 1), set()),
    "mutations": (mutations, (torch.randn(3, 4), torch.randn(3, 4)), set()),
    "random": (random, (torch.randn(4, 4),), set()),
    "flattened": (flattened, (torch.randn(3, 4, 6),), set()),
    "cells": (Cells(), (SMALL,), {"aten.unsafe_split.Tensor"}),
}


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", HELD_OUT)
def test_held_out(name: str, dynamic: bool) -> None:
    """Other models of these kinds: operators that TorchAir can lower have a lowering, and the graph is valid."""
    function, arguments, without = HELD_OUT[name]
    torch._dynamo.reset()
    with torch.no_grad():
        for captured in catch(function, [tuple(argument.clone() for argument in arguments)], dynamic=dynamic):
            record = _core.record(captured.gm, captured.kind)
            for optimised in (False, True):
                assert check_sound(record, optimised) == without


def graph_of(*arguments: Any, target: Any = None, name: str | None = None) -> _core.Graph:
    """Return a graph that calls an operator once on x with further arguments."""
    graph = Graph()
    x = graph.placeholder("x")
    x.meta["val"] = torch.zeros(2, 3)
    call = graph.create_node("call_function", target or torch.ops.aten.add.Tensor, (x, *arguments), name=name)
    call.meta["val"] = torch.zeros(2, 3)
    graph.output((call,))
    return _core.record(GraphModule(torch.nn.Module(), graph))


HOSTILE = (
    "quotes \" and ' and \\",
    "lines\nof\r\ntext\tand \x00\x01\x7f",
    "\u00e9\u4e2d\u6587 \U0001f600 \u2028\u2029",
    "\udcff not UTF-8",
    "x" * 10_000,
    '");import os;("',
    "'''\"\"\"",
    "op {",
    "%s%n{}",
)


def hostile(x: torch.Tensor, text: str) -> torch.Tensor:
    return x


def argument_of(call: str, may_be_bare: bool = False) -> Any:
    """Return the text in `hostile(x: ..., TEXT)`."""
    found = re.search(r"hostile\(x: torch.float32\[2, 3\]cpu, (.*)\)$", call, re.S)
    assert found is not None
    return found[1] if may_be_bare and found[1][0] not in "'\"" else ast.literal_eval(found[1])


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text(text: str) -> None:
    """A string constant round-trips in each form."""
    record = graph_of(text, target=hostile)
    py = printed(record, "py")
    tree = ast.parse(py)
    assert not any(isinstance(node, ast.Import) for node in tree.body[3:])
    (line,) = [line for line in py.split("\n") if line.startswith("## FX Code: hostile")]
    assert argument_of(line, may_be_bare=True) == text
    (code,) = [op.attr["_fx_code"].s.decode() for op in parse_ge(printed(record, "txt")).op if "_fx_code" in op.attr]
    assert argument_of(code) == text
    nodes = parse_graph_def(printed(record, "pbtxt")).node
    (kept,) = [node.attr["_fx_code"].s for node in nodes if "_fx_code" in node.attr]
    assert text_format.Parse(kept, message_class("ge_graph.proto", "ge.AttrDef")()).s.decode() == code


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("lowered", [True, False])
def test_hostile_names(text: str, lowered: bool) -> None:
    """The name of a node is preserved."""
    graph = Graph()
    x = graph.placeholder("x")
    x.meta["val"] = torch.zeros(2, 3)
    target = torch.ops.aten.relu.default if lowered else hostile
    call = graph.call_function(target, (x,) if lowered else (x, 1))
    call.meta["val"] = torch.zeros(2, 3)
    graph.output((call,))
    x._rename(text)
    call._rename(text)
    record = _core.record(GraphModule(torch.nn.Module(), graph))
    plain = re.sub(r"[^A-Za-z0-9_]", "_", text)
    for optimised in (False, True):
        py = printed(record, "py", optimised)
        tree = ast.parse(py)
        assert len(tree.body) <= 12
        assert all(isinstance(node, ast.Assign | ast.Expr | ast.Import | ast.ImportFrom) for node in tree.body)
        assert "import os" not in [ast.unparse(node) for node in tree.body]
        assert plain
        parse_graph_def(printed(record, "pbtxt", optimised))
        message = parse_ge(printed(record, "txt", optimised))
        assert sum(op.type == "Data" for op in message.op) == 1
    assert message.name == "graph_1"


@pytest.mark.parametrize(
    ("target", "is_new"), [("__lshift__", True), ("__and__", True), ("__ilshift__", False), ("bitwise_and_", False)]
)
def test_results_of_operators_in_place(target: str, is_new: bool) -> None:
    """A value that an operator writes to the graph's input is not a separate output."""
    record = graph_of(1, target=getattr(torch.ops.aten, target).Scalar)
    output = parse_ge(printed(record, "txt")).op[-1]
    assert (output.type, len(output.input)) == ("NetOutput", int(is_new))


FLOATS = (math.inf, -math.inf, math.nan, -0.0, 1e300, 5e-324, 0.1)
NUMBERS = (*FLOATS, 2**62, -(2**63), True, complex(1, -2), complex(-0.0, math.inf))


@pytest.mark.parametrize("number", NUMBERS, ids=repr)
def test_numbers(number: complex) -> None:
    """Constants in a GE call round-trip in py."""
    record = graph_of(number)
    (line,) = [line for line in printed(record, "py").split("\n") if "ge.Const(" in line]
    call = ast.parse(line).body[0]
    const = next(n for n in ast.walk(call) if isinstance(n, ast.Call) and ast.unparse(n.func) == "ge.Const")
    value = eval(ast.unparse(const.args[0]), {"float": float, "complex": complex})
    assert repr(value) == repr(number)
    message = parse_ge(printed(record, "txt"))
    (constant,) = [op for op in message.op if op.type == "Const"]
    assert constant.attr["_readable_value"].s.decode() == str(number).replace("'", "")


def test_any_constant_reads_back() -> None:
    """The call of an operator without a lowering is Python with exact constants."""
    for value in CONSTANTS:
        ops = parse_ge(printed(graph_of(value, target=hostile), "txt")).op
        (code,) = [op.attr["_fx_code"].s.decode() for op in ops if "_fx_code" in op.attr]
        call = ast.parse(code.partition(" = ")[2].replace("(x: torch.float32[2, 3]cpu, ", "(", 1), mode="eval").body
        assert isinstance(call, ast.Call)
        assert same(eval(ast.unparse(call.args[0]), {"torch": torch}), value), code[:200]


@pytest.mark.parametrize("number", [2**63, -(2**70), 10**40])
def test_huge_integers(number: int) -> None:
    """Integers that fit no dtype are printed in full."""
    record = graph_of(number)
    assert str(number) in printed(record, "py")
    ast.parse(printed(record, "py"))
    parse_ge(printed(record, "txt"))


def test_without_metadata() -> None:
    """A graph that was never run is printed completely, without an error."""
    graph = Graph()
    x = graph.placeholder("x")
    y = graph.call_function(torch.ops.aten.add.Tensor, (x, x))
    z = graph.call_function(torch.ops.aten.view.default, (y, [2, -1]))
    graph.output((z, None, 3))
    record = _core.record(GraphModule(torch.nn.Module(), graph))
    for optimised in (False, True):
        ast.parse(printed(record, "py", optimised))
        parse_ge(printed(record, "txt", optimised))
        parse_graph_def(printed(record, "pbtxt", optimised))
    assert "Add_0 = ge.Add(x_0, x_0, " in printed(record, "py")


def test_empty() -> None:
    graph = Graph()
    graph.output(())
    record = _core.record(GraphModule(torch.nn.Module(), graph))
    ast.parse(printed(record, "py"))
    assert [op.type for op in parse_ge(printed(record, "txt")).op] in (["NetOutput"], [])
    parse_graph_def(printed(record, "pbtxt"))


def test_large_graph() -> None:
    """5,000 nodes are lowered and printed quickly."""
    graph = Graph()
    x = graph.placeholder("x")
    x.meta["val"] = torch.zeros(8, 8)
    for i in range(5000):
        target = (torch.ops.aten.add.Tensor, torch.ops.aten.mul.Tensor, torch.ops.aten.mm.default)[i % 3]
        x = graph.call_function(target, (x, x))
        x.meta["val"] = torch.zeros(8, 8)
    graph.output((x,))
    record = _core.record(GraphModule(torch.nn.Module(), graph))
    for form in ("py", "txt", "pbtxt"):
        best = math.inf
        for _ in range(3):
            start = time.process_time()
            text = printed(record, form, True)
            best = min(best, time.process_time() - start)
        assert text.count("MatMul") >= 1666
        assert best < 2, (form, best)
        print(json.dumps({form: best}))


# ---- bodies of cond, while_loop, map ----


def nested(x: torch.Tensor) -> torch.Tensor:
    """A loop with a branch; one of the loop's outputs is its input, and so is an output of a branch."""
    higher: Any = torch._higher_order_ops

    def body(i: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = torch.cond(y.sum() > 0, lambda a, b: a.t().relu().t(), lambda a, b: b * 2, (y, z))
        return i + 1, y + 1, z.clone()

    _, y, _ = higher.while_loop(lambda i, _y, _z: i < 3, body, (torch.tensor(0), x, x + 1))
    return torch.tanh(y)


def nested_record() -> _core.Graph:
    with torch.no_grad():
        (captured,) = catch(nested, [(torch.randn(3, 3),)])
    return _core.record(captured.gm)


def types_of(graph: Any) -> list[str]:
    return [op.type for op in graph.op]


LOOP_BODY = ["Data", "Data", "Data", "ReduceSum", "Greater", "cond", "Add", "Add", "Identity", "NetOutput"]


@pytest.mark.parametrize("optimised", [False, True])
def test_bodies_in_txt(optimised: bool) -> None:
    """Each body is a graph in the operator's attribute; its inputs and outputs are not optimised away."""
    graph = parse_ge(printed(nested_record(), "txt", optimised))
    (loop,) = [op for op in graph.op if op.type == "while_loop"]
    assert graph.op[-2].type == "Tanh"
    condition, body = (loop.attr[f"while_loop_{name}_graph_0"].g for name in ("cond", "body"))
    assert condition.name == "while_loop_cond_graph_0"
    assert types_of(condition) == ["Data", "Data", "Data", "Const", "Cast", "Less", "NetOutput"]
    assert [kind for kind in types_of(body) if kind not in ("Const", "Cast")] == LOOP_BODY
    assert len(body.op[-1].input) == 3
    (branch,) = [op for op in body.op if op.type == "cond"]
    assert branch.attr["true_graph_0"].g.name == "while_loop_body_graph_0/true_graph_0"
    assert types_of(branch.attr["true_graph_0"].g) == [
        "Data",
        "Data",
        "Const",
        "Transpose",
        "Relu",
        "Const",
        "Transpose",
        "NetOutput",
    ]
    assert types_of(branch.attr["false_graph_0"].g)[:2] == ["Data", "Data"]
    assert ("_input_name_key" in branch.attr["true_graph_0"].g.op[3].attr) == optimised


@pytest.mark.parametrize("optimised", [False, True])
def test_bodies_in_py(optimised: bool) -> None:
    """Each body is a function in place of the node that contains it, with its FX lines."""
    text = printed(nested_record(), "py", optimised)
    functions = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    assert [function.name for function in functions] == ["while_loop_cond_graph_0", "while_loop_body_graph_0"]
    inner = [node.name for node in functions[1].body if isinstance(node, ast.FunctionDef)]
    assert inner == ["true_graph_0", "false_graph_0"]
    assert (
        re.search(r"^## FX Code: true_graph_0 = .*\n    def true_graph_0\(\):\n        arg0_1_0 = ge.Data", text, re.M)
        is None
    )
    assert re.search(
        r"^    ## FX Code: true_graph_0 = .*\n    def true_graph_0\(\):\n        arg0_1_0 = ge.Data", text, re.M
    )
    assert re.search(r"^        Relu_0 = ge.Relu\(Transpose_0, ", text, re.M)


def test_bodies_in_pbtxt() -> None:
    """Each body is a function of the library, named by the operator's attribute."""
    graph = parse_graph_def(printed(nested_record(), "pbtxt"))
    functions = {function.signature.name: function for function in graph.library.function}
    loop = next(node for node in graph.node if node.op == "while_loop")
    body = functions[loop.attr["while_loop_body_graph_0"].func.name]
    branch = next(node for node in body.node_def if node.op == "cond")
    names = {branch.attr[name].func.name for name in ("true_graph_0", "false_graph_0")}
    assert names == {"while_loop_body_graph_0/true_graph_0", "while_loop_body_graph_0/false_graph_0"}
    assert set(functions) == names | {"while_loop_cond_graph_0", "while_loop_body_graph_0"}
    assert [node.op for node in functions["while_loop_body_graph_0/true_graph_0"].node_def][-2:] == [
        "Transpose", "NetOutput"]  # fmt: skip


def test_outputs_of_bodies_stay() -> None:
    """A returned input, a repeated output, a number and no output each keep their position."""
    inner = Graph()
    x = inner.placeholder("x")
    x.meta["val"] = torch.zeros(2)
    inner.output((x, None, x, 3, 1.5))
    outer = Graph()
    y = outer.placeholder("y")
    y.meta["val"] = torch.zeros(2)
    module = torch.nn.Module()
    module.body = GraphModule(torch.nn.Module(), inner)
    held = outer.get_attr("body")
    outer.output((outer.call_function(hostile, (y, held)),))
    record = _core.record(GraphModule(module, outer))
    for optimised in (False, True):
        py = printed(record, "py", optimised)
        ast.parse(py)
        assert "    _ = ge.NetOutput([x_0, None, x_0, ge.Const(3, dtype=9), ge.Const(1.5, dtype=0)], " in py
        (call,) = [op for op in parse_ge(printed(record, "txt", optimised)).op if op.type.endswith("hostile")]
        assert list(call.attr["body"].g.op[-1].input) == ["x:0", "", "x:0", "Const:0", "Const_1:0"]
        parse_graph_def(printed(record, "pbtxt", optimised))


@pytest.mark.parametrize("text", (*HOSTILE, "class", "1x"), ids=range(len(HOSTILE) + 2))
def test_hostile_names_of_bodies(text: str) -> None:
    graph = Graph()
    x = graph.placeholder("x")
    x.meta["val"] = torch.zeros(2, 3)
    module = torch.nn.Module()
    inner = Graph()
    inner.output((inner.placeholder("x"),))
    module.body = GraphModule(torch.nn.Module(), inner)
    held = graph.get_attr("body")
    graph.output((graph.call_function(hostile, (x, held)),))
    held._rename(text)
    record = _core.record(GraphModule(module, graph))
    tree = ast.parse(printed(record, "py"))
    assert sum(isinstance(node, ast.FunctionDef) for node in tree.body) == 1
    assert sum(isinstance(node, ast.Import | ast.ImportFrom) for node in ast.walk(tree)) == 3
    (call,) = [op for op in parse_ge(printed(record, "txt")).op if op.type.endswith("hostile")]
    (name,) = [name for name, value in call.attr.items() if value.HasField("g")]
    (function,) = parse_graph_def(printed(record, "pbtxt")).library.function
    assert function.signature.name == name == call.attr[name].g.name


def test_tensorboard() -> None:
    """TensorBoard's message class parses pbtxt."""
    graph_pb2 = pytest.importorskip("tensorboard.compat.proto.graph_pb2")
    graph = text_format.Parse(printed(nested_record(), "pbtxt"), graph_pb2.GraphDef())
    assert len(graph.library.function) == 4
    for text in HOSTILE:
        graph = text_format.Parse(printed(graph_of(text, target=hostile), "pbtxt"), graph_pb2.GraphDef())
        assert [node.op for node in graph.node][-1] == "NetOutput"
