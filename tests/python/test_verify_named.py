"""Dumps without an index: what their files settle, and literals from another dump of the same model."""

from __future__ import annotations

import pickle
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import fxtap
from captured import load_models
from dumps import dumping, graphs, run

DATA = Path(__file__).parent.parent / "data" / "torchair" / "dumps"
NO_INDEX = "no index, and the files do not settle all arguments"
NOT_DUMPED = "an input was not dumped"
MODELS = load_models()


def torchair(name: str, root: Path) -> Path:
    with tarfile.open(next(DATA.glob(f"{name}.tar*"))) as archive:
        archive.extractall(root, filter="data")
    return root


def dumped(root: Path, function: Callable[..., Any], values: list[Tensor]) -> Path:
    torch._dynamo.reset()
    with torch.no_grad():
        run(root, function, *values)
    return root


def without_index(dump: Path, root: Path) -> Path:
    """Copy what TorchAir would have written: no index, and no keyword arguments."""
    shutil.copytree(dump, root)
    for path in root.rglob("fxtap.db*"):
        path.unlink()
    return root


def verdicts(found: fxtap.Verification) -> dict[str, tuple[str, str]]:
    return {row["node"]: (row["verdict"], row["reason"]) for row in found.operators}


def replayed(found: fxtap.Verification) -> set[str]:
    return {node for node, (verdict, _) in verdicts(found).items() if verdict != "not replayed"}


def own(name: str, root: Path) -> Path:
    """Dump a model of the reference with its own inputs."""
    case = MODELS.get(name)
    torch._dynamo.reset()
    model = torch.compile(case.module, backend=dumping(root), dynamic=case.dynamic)
    with torch.no_grad():
        for step in case.steps:
            model(*step)
    return root


@pytest.mark.parametrize("name", ["toy", "mlp", "cnn", "misc"])
def test_what_torchair_wrote(tmp_path: Path, name: str) -> None:
    dump = torchair(name, tmp_path / "torchair")
    alone = fxtap.verify(dump)
    assert alone.verdict == "nothing wrong"
    assert {reason for verdict, reason in verdicts(alone).values() if verdict == "not replayed"} <= {NO_INDEX}
    assert {"add", "addmm", "sub_6", "index"} & verdicts(alone).keys() <= verdicts(alone).keys() - replayed(alone)
    other = own(name, tmp_path / "own")
    whole = fxtap.verify(dump, graph_from=other)
    assert whole.verdict == "nothing wrong"
    assert verdicts(whole).keys() - replayed(whole) <= {"index"}  # TorchAir turned [None, tensor] into text
    assert verdicts(fxtap.verify(dump, against=other)).keys() - replayed(whole) <= {"index"}


def test_layer_norm_of_files_alone_is_judged(tmp_path: Path) -> None:
    """A list of sizes, an epsilon and two weights were saved as positional arguments."""
    dump = torchair("mlp", tmp_path)
    path = next(dump.rglob("native_layer_norm-*OUTPUT.0.*.npy"))
    path.chmod(0o644)
    values = np.load(path)
    np.save(path, values * np.float32(1.01))
    found = fxtap.verify(dump)
    assert [row["node"] for row in found.wrong] == ["native_layer_norm"]


def block(x: Tensor, y: Tensor) -> Tensor:
    z = torch.nn.functional.gelu(x @ y, approximate="tanh")
    z = torch.addmm(z, x, y, beta=0.5)
    z = torch.nn.functional.layer_norm(z, [z.shape[-1]])
    return torch.cat([z.relu(), z.sum(0, keepdim=True)]).clamp(0.1).transpose(0, 1)


def arguments(dtype: torch.dtype) -> list[Tensor]:
    generator = torch.Generator().manual_seed(5)
    return [torch.randn(32, 32, generator=generator).to(dtype) for _ in range(2)]


@pytest.fixture(params=["float32", "bfloat16", "float16", "float64"])
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Path]:
    """The same program with and without an index."""
    dump = dumped(tmp_path / "indexed", block, arguments(getattr(torch, request.param)))
    return dump, without_index(dump, tmp_path / "named")


def test_index_removed(pair: tuple[Path, Path]) -> None:
    indexed, named = pair
    whole = fxtap.verify(indexed)
    assert whole.verdict == "nothing wrong" and whole.counts["not replayed"] == 0
    found = fxtap.verify(named, graph_from=indexed)
    assert found.verdict == "nothing wrong" and found.counts["not replayed"] == 0
    known = {row["node"]: row for row in whole.operators}
    for row in found.operators:
        assert (row["verdict"], row["module"], row["source"]) == tuple(
            known[row["node"]][key] for key in ("verdict", "module", "source")
        )
        assert row["dtype"] == known[row["node"]]["dtype"]
    alone = fxtap.verify(named)
    assert alone.verdict == "nothing wrong"
    left_out = {node: reason for node, (verdict, reason) in verdicts(alone).items() if verdict == "not replayed"}
    assert left_out == {"gelu": NO_INDEX, "addmm": NO_INDEX, "native_layer_norm": NOT_DUMPED}  # its weights are None


def test_a_wrong_literal_would_be_seen(tmp_path: Path) -> None:
    """Literals do come from the other dump: with those of another program, the operator is wrong."""
    named = without_index(dumped(tmp_path / "a", block, arguments(torch.float32)), tmp_path / "named")

    def other(x: Tensor, y: Tensor) -> Tensor:
        z = torch.nn.functional.gelu(x @ y)
        z = torch.addmm(z, x, y, beta=0.25)
        return torch.nn.functional.layer_norm(z, [z.shape[-1]], eps=1e-3)

    found = fxtap.verify(named, graph_from=dumped(tmp_path / "b", other, arguments(torch.float32)))
    assert [row["node"] for row in found.wrong] == ["gelu", "addmm", "native_layer_norm"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_fault_is_found(tmp_path: Path, dtype: torch.dtype) -> None:
    """Judged by the original dtype, though bfloat16 is saved as float32."""
    indexed = dumped(tmp_path / "indexed", block, arguments(dtype))
    named = without_index(indexed, tmp_path / "named")
    path = next(named.rglob("relu-*OUTPUT*.npy"))
    path.chmod(0o644)
    values = torch.from_numpy(np.load(path)) * 1.1
    np.save(path, values.to(dtype).float().numpy())
    for keywords in ({}, {"graph_from": indexed}, {"against": indexed}):
        assert [row["node"] for row in fxtap.verify(named, **keywords).wrong] == ["relu"], keywords


@pytest.mark.parametrize("with_graph", [False, True])
@pytest.mark.parametrize(
    ("removed", "node"), [("mm-*INPUT.1.*", "mm"), ("native_layer_norm-*INPUT.0.*", "native_layer_norm")]
)
def test_a_missing_file(tmp_path: Path, with_graph: bool, removed: str, node: str) -> None:
    indexed = dumped(tmp_path / "indexed", block, arguments(torch.float32))
    named = without_index(indexed, tmp_path / "named")
    for path in named.rglob(removed):
        path.unlink()
    found = verdicts(fxtap.verify(named, graph_from=indexed if with_graph else None))
    assert found[node] == ("not replayed", NOT_DUMPED)
    assert found["relu"][0] == "exact"


def layer_norm_files(root: Path, write_none: Callable[[Path], Any]) -> Path:
    """Write a call of layer norm without weights as TorchAir does."""
    folder = root / "worldsize1_global_rank0" / "graph_1" / "0"
    folder.mkdir(parents=True)
    x = torch.randn(8, 16, generator=torch.Generator().manual_seed(6))
    stem = "native_layer_norm-aten.native_layer_norm.default"
    values = [x.numpy(), np.array([16]), None, None, np.array(1e-5)]
    for i, value in enumerate(values):
        path = folder / f"{stem}.INPUT.{i}.20260601120000000000.npy"
        if value is None:
            write_none(path)
        else:
            np.save(path, value)
    for i, value in enumerate(torch.native_layer_norm(x, [16], None, None, 1e-5)):
        np.save(folder / f"{stem}.OUTPUT.{i}.20260601120000000000.npy", value.numpy())
    return root


def test_pickled_none_is_none(tmp_path: Path) -> None:
    dump = layer_norm_files(tmp_path, lambda path: np.save(path, np.array(None, dtype=object), allow_pickle=True))
    assert fxtap.verify(dump).counts["not replayed"] == 0


class Exploding:
    def __reduce__(self) -> Any:
        return (pytest.fail, ("a pickle was loaded",))


def test_pickles_are_not_loaded_and_damage_is_not_none(tmp_path: Path) -> None:
    def explode(path: Path) -> None:
        np.save(path, np.array(None, dtype=object), allow_pickle=True)
        header = path.read_bytes()[:128]
        path.write_bytes(header + pickle.dumps(np.array([Exploding()], dtype=object)))

    assert fxtap.verify(layer_norm_files(tmp_path / "a", explode)).counts["not replayed"] == 0
    damaged = layer_norm_files(tmp_path / "b", lambda path: path.write_bytes(b"\x93NUMPY"))
    found = verdicts(fxtap.verify(damaged))["native_layer_norm"]
    assert found[0] == "not replayed"


def test_graphs_are_found_by_their_nodes(tmp_path: Path) -> None:
    """The other dump numbers its graphs otherwise."""
    indexed = dumped(tmp_path / "indexed", block, arguments(torch.float32))
    named = without_index(indexed, tmp_path / "named")
    (graph,) = graphs(named)
    graph.rename(graph.with_name("graph_77"))
    found = fxtap.verify(named, graph_from=indexed)
    assert {row["graph"] for row in found.operators} == {77}
    assert found.verdict == "nothing wrong" and found.counts["not replayed"] == 0
