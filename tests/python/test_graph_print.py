"""Printed graphs: the Python code computes the same, all constants round-trip, hostile names do no harm."""

import base64
import json
import math
import re
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.fx import Graph, GraphModule

from captured import DATA, Captured, catch, catch_model, load_models
from constants import CONSTANTS, same
from fxtap import _core

MODELS = load_models()


def forward_of(record: _core.Graph) -> Any:
    namespace: dict[str, Any] = {}
    exec(compile(_core.print_graph(record, "fx"), "<printed>", "exec"), namespace)
    return namespace["forward"]


def check_runs(captured: Captured) -> None:
    record = _core.record(captured.gm, captured.kind)
    forward = forward_of(record)
    torch.manual_seed(3)
    expected = captured.gm(*captured.copies())
    torch.manual_seed(3)
    result = forward(*captured.copies())
    assert same(list(result), list(expected))


@pytest.mark.parametrize("name", MODELS.NAMES)
def test_models_run(name: str) -> None:
    graphs = catch_model(name)
    assert graphs
    for captured in graphs:
        check_runs(captured)


@pytest.mark.parametrize("name", sorted({"cnn", "gpt", "gpt_dyn", "train_mlp", "misc", "kv_index_put"}))
def test_json_says_everything(name: str) -> None:
    for captured in catch_model(name):
        record = _core.record(captured.gm, captured.kind)
        data = json.loads(_core.print_graph(record, "json", title='a "title"'), parse_constant=pytest.fail)
        assert (data["format"], data["version"], data["kind"]) == ("fxtap graph", 1, captured.kind)
        nodes = data["nodes"]
        assert [node["name"] for node in nodes] == [node.name for node in captured.gm.graph.nodes]
        assert tuple(node["op"] for node in nodes) == record.ops
        assert tuple(node["target"] for node in nodes) == record.targets
        for node, source, stack in zip(nodes, record.sources, record.stack_traces, strict=True):
            assert node["source"] is None if source[0] == "" else tuple(node["source"].values()) == source
            assert (node["stack"] or "") == stack
        places = {node["name"]: place for place, node in enumerate(nodes)}
        for node, original in zip(nodes, captured.gm.graph.nodes, strict=True):
            if original.op == "call_function":
                wires = [a for a in node["args"] if isinstance(a, dict) and "node" in a]
                assert [w["node"] for w in wires] == [
                    places[a.name] for a in original.args if isinstance(a, torch.fx.Node)
                ]


def test_summaries_are_torchairs() -> None:
    with tarfile.open(DATA / "summaries.tar.xz") as archive:
        expected = {member.name: archive.extractfile(member).read() for member in archive.getmembers()}  # type: ignore[union-attr]
    assert len(expected) == 15
    for name in sorted({path.split("/")[0] for path in expected}):
        torch._dynamo.reset()
        for number, captured in enumerate(catch_model(name), 1):
            record = _core.record(captured.gm, captured.kind)
            assert _core.summarise(record) == expected.pop(f"{name}/summary_{number}.csv"), name
    assert not expected


# ---- constants ----


def constant_graph(values: list[Any]) -> GraphModule:
    graph = Graph()
    x = graph.placeholder("x")
    graph.output((x, list(values)))
    return GraphModule(torch.nn.Module(), graph)


def test_constants_read_back_from_python() -> None:
    forward = forward_of(_core.record(constant_graph(CONSTANTS)))
    _, values = forward(1)
    for value, expected in zip(values, CONSTANTS, strict=True):
        assert same(value, expected), repr(expected)[:100]


def from_json(value: Any) -> Any:
    """Parse the value of an encoded constant (docs/graph-json.md)."""
    if not isinstance(value, dict):
        return [from_json(item) for item in value] if isinstance(value, list) else value
    ((key, text),) = value.items()
    readers = {
        "int": int,
        "float": float,
        "complex": lambda v: complex(float(v[0]), float(v[1])),
        "string": str,
        "string_base64": lambda v: base64.b64decode(v).decode("utf-8", "surrogatepass"),
        "bytes": base64.b64decode,
        "tuple": lambda v: tuple(map(from_json, v)),
        "dict": lambda v: {from_json(k): from_json(item) for k, item in v},
        "slice": lambda v: slice(*map(from_json, v)),
        "ellipsis": lambda v: ...,
        "device": torch.device,
    }
    return readers[key](text) if key in readers else getattr(torch, text.removeprefix("torch."))


def test_constants_read_back_from_json() -> None:
    record = _core.record(constant_graph(CONSTANTS))
    data = json.loads(_core.print_graph(record, "json"), parse_constant=pytest.fail)
    values = from_json(data["nodes"][-1]["args"][0]["tuple"][1])
    for value, expected in zip(values, CONSTANTS, strict=True):
        assert same(value, expected), repr(expected)[:100]


@pytest.mark.parametrize(
    "tensor",
    [
        torch.tensor([0.9, -0.0, math.inf, math.nan]),
        torch.tensor(1.5, dtype=torch.bfloat16),
        torch.zeros(0, 3),
        torch.tensor([[True], [False]]),
        torch.tensor([1 + 2j, -0.0]),
        torch.tensor(-(2**63)),
        torch.arange(6).reshape(2, 3).t(),
        torch.tensor([448.0, 0.5]).to(torch.float8_e4m3fn),
    ],
    ids=lambda t: f"{t.dtype}{list(t.shape)}",
)
def test_tensor_constants(tensor: torch.Tensor) -> None:
    graph = Graph()
    module = torch.nn.Module()
    module.register_buffer("held", tensor)
    graph.output((graph.get_attr("held"),))
    (result,) = forward_of(_core.record(GraphModule(module, graph)))()
    assert result.dtype == tensor.dtype and result.shape == tensor.shape
    raw = [t.contiguous().reshape(-1).view(torch.uint8) for t in (result, tensor)]
    assert torch.equal(*raw)


# ---- subgraphs ----


def branch(x: torch.Tensor) -> torch.Tensor:
    result: torch.Tensor = torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,))
    return result * 2


def loop(x: torch.Tensor) -> torch.Tensor:
    while_loop: Any = torch._higher_order_ops.while_loop
    _, result = while_loop(lambda i, _: i < 4, lambda i, y: (i + 1, y * 1.5), (torch.tensor(0), x))
    assert isinstance(result, torch.Tensor)
    return result


@pytest.mark.parametrize(("function", "n_subgraphs"), [(branch, 2), (loop, 2)])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_subgraphs_run(function: Any, n_subgraphs: int, sign: float) -> None:
    with torch.no_grad():
        (captured,) = catch(function, [(torch.full((3,), sign),)])
    assert len(_core.record(captured.gm).subgraphs) == n_subgraphs
    check_runs(captured)


# ---- hostile names ----

HOSTILE = [
    '");import os;("',
    "torch",
    "class",
    "</script><img src=x onerror=alert(1)>",
    "a\nb",
    "é",
    'x"]; evil [label="',
]


def hostile_graph() -> GraphModule:
    graph = Graph()
    x = graph.placeholder("x")
    for name in HOSTILE:
        x = graph.call_function(torch.ops.aten.neg.default, (x,))
        x.name = name
    graph.output((x,))
    return GraphModule(torch.nn.Module(), graph)


def test_hostile_names_run() -> None:
    (result,) = forward_of(_core.record(hostile_graph()))(torch.ones(2))
    assert torch.equal(result, -torch.ones(2))


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_graphviz_reads_dot() -> None:
    with torch.no_grad():
        records = [_core.record(hostile_graph())] + [_core.record(c.gm) for c in catch(branch, [(torch.ones(3),)])]
    records += [_core.record(c.gm) for c in catch_model("cnn")]
    for record in records:
        text = _core.print_graph(record, "dot", title='a "b"')
        drawn = subprocess.run(["dot", "-Tplain"], input=text, capture_output=True, check=True).stdout.decode()
        n_nodes = len(record) + sum(map(len, record.subgraphs))
        assert sum(line.startswith("node ") for line in drawn.splitlines()) == n_nodes


# ---- the page ----

PROBE = """
<script>
try {
  const steps = [];
  for (const id of ['expand', 'collapse', 'theme', 'fit', 'inputs']) document.getElementById(id).click();
  const search = document.getElementById('search');
  search.value = SEARCH;
  search.dispatchEvent(new Event('input'));
  steps.push(document.querySelector('#panel p').textContent);
  search.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter'}));
  steps.push(document.querySelector('#panel h2').textContent);
  steps.push(String(document.images.length));
  steps.push([...document.querySelectorAll('#panel li')].map((li) => li.textContent).join(' '));
  steps.push(String(performance.now()));
  const out = document.createElement('pre');
  out.id = 'probe';
  out.textContent = btoa(unescape(encodeURIComponent(JSON.stringify(steps))));
  document.body.appendChild(out);
} catch (error) { console.error(String(error)); }
</script></body>"""


def probe(record: _core.Graph, search: str, folder: Path) -> list[str]:
    """Load the page, press every button, search, open the match; return the text of the panel."""
    page = _core.print_graph(record, "html", title="<b>title</b>").decode()
    path = folder / "page.html"
    path.write_text(page.replace("</body>", PROBE.replace("SEARCH", json.dumps(search).replace("<", "\\u003c"))))
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom"]
    done = subprocess.run([*command, f"file://{path}"], capture_output=True, check=True, timeout=60, cwd=folder)
    assert b"CONSOLE" not in done.stderr, done.stderr.decode()
    text = done.stdout.decode().rpartition('<pre id="probe">')[2].partition("</pre>")[0]
    return list(json.loads(base64.b64decode(text)))


@pytest.mark.skipif(shutil.which("chromium") is None, reason="Chromium is not installed")
def test_page_in_a_browser(tmp_path: Path) -> None:
    (captured,) = catch_model("cnn")
    found, name, _, links, _ = probe(_core.record(captured.gm), "convolution.default", tmp_path)
    assert found.startswith("1 of ")
    assert name == "convolution"
    assert "_native_batch_norm_legit_no_training" in links
    found, name, n_images, *_ = probe(_core.record(hostile_graph()), "onerror", tmp_path)
    assert (found, name, n_images) == (f"1 of {len(HOSTILE) + 2} nodes", HOSTILE[3], "0")


def layered_graph(n_layers: int) -> GraphModule:
    """Build layers of ten operators, each in its own module."""
    graph = Graph()
    x = graph.placeholder("x")
    x.meta["val"] = torch.zeros(2)
    for i in range(n_layers):
        first = x
        for _ in range(10):
            x = graph.call_function(torch.ops.aten.add.Tensor, (x, first))
            x.meta |= {
                "val": torch.zeros(2),
                "nn_module_stack": {"l": ("model", "m.Model"), "i": (f"model.{i}", "m.L")},
            }
    graph.output((x,))
    return GraphModule(torch.nn.Module(), graph)


@pytest.mark.skipif(shutil.which("chromium") is None, reason="Chromium is not installed")
def test_large_page_is_quick(tmp_path: Path) -> None:
    """A page of 5,000 operators can be loaded, opened, closed, laid out again and searched."""
    found, name, _, _, milliseconds = probe(_core.record(layered_graph(500)), "add_tensor_2500", tmp_path)
    assert (found, name) == ("1 of 5002 nodes", "add_tensor_2500")
    assert float(milliseconds) < 10_000, milliseconds
    print(milliseconds)


@pytest.mark.parametrize("format", ["fx", "json", "dot", "html", "py", "txt", "pbtxt"])
def test_nothing_that_a_terminal_obeys_is_printed(format: str) -> None:
    hostile = "\x1b[2J\x07\x7f\x9b31m\u202eé\u2028\ufeff"
    graph = Graph()
    x = graph.placeholder("x")
    node = graph.call_function(torch.ops.aten.add.Tensor, (x, 1))
    node.meta["stack_trace"] = f'  File "{hostile}.py", line 3, in {hostile}\n    {hostile}\n'
    node.meta["nn_module_stack"] = {hostile: (hostile, torch.nn.Linear)}
    graph.output(node)
    text = _core.print_graph(_core.record(GraphModule(torch.nn.Module(), graph)), format, title=hostile).decode()
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\u2028\ufeff]", text)
