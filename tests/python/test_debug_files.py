"""graph_dump and fx_summary: names, formats, times of writing, and unchanged results of the graph."""

import os
import re
import stat
from pathlib import Path
from typing import Any

import pytest
import torch

import fxtap
from fxtap.backend import SUMMARY_WARNING

NAME = re.compile(
    r"(dynamo_original_graph_(\d+)|dynamo_optimized_graph_(\d+)|summary)_rank_0_pid_(\d+)_ts_\d{20}\.(\w+)"
)
UMASK = os.umask(0o022)
os.umask(UMASK)


def configured(tmp_path: Path, **options: Any) -> fxtap.CompilerConfig:
    config = fxtap.CompilerConfig()
    for path, value in options.items():
        config.set(path.replace("__", "."), value)
    for section in ("graph_dump", "data_dump", "fx_summary"):
        config.set(f"{section}.path", tmp_path / section)
    return config


def listed(folder: Path) -> list[str]:
    """Return the stems of the files, in order of their time stamps."""
    found = []
    for path in sorted(folder.iterdir(), key=lambda path: path.name.rsplit("_ts_", 1)[1]):
        match = NAME.fullmatch(path.name)
        assert match is not None, path.name
        assert int(match[4]) == os.getpid()
        assert stat.S_IMODE(path.stat().st_mode) == 0o640 & ~UMASK
        found.append(f"{match[1].rstrip('0123456789')}.{match[5]}")
    return found


def test_data_and_graph_dump_together(tmp_path: Path) -> None:
    config = configured(tmp_path, graph_dump__type="py", data_dump__type="npy")
    model = torch.compile(lambda x: x.sin() + 1, backend=fxtap.get_npu_backend(compiler_config=config))
    model(torch.ones(2))
    model(torch.ones(2))
    assert listed(tmp_path / "graph_dump") == ["dynamo_original_graph_.py", "dynamo_optimized_graph_.py"]
    (graph,) = (tmp_path / "data_dump").glob("*/graph_*")
    assert all(f"_{graph.name}_rank" in path.name for path in (tmp_path / "graph_dump").iterdir())


@pytest.mark.parametrize("inner", ["aot_eager", "eager"])
def test_graph_runs_as_it_would_without(inner: str, tmp_path: Path) -> None:
    config = configured(tmp_path, graph_dump__type="txt", inner_backend=inner)
    model = torch.nn.Linear(3, 2)
    compiled = torch.compile(model, backend=fxtap.get_npu_backend(compiler_config=config))
    x = torch.randn(4, 3)
    result = compiled(x)
    assert torch.equal(result, model(x))
    result.sum().backward()
    assert model.weight.grad is not None
    compiled(x)
    found = listed(tmp_path / "graph_dump")
    assert found == ["dynamo_original_graph_.txt"] * 2 + ["dynamo_optimized_graph_.txt"] * 2


@pytest.mark.parametrize("dumped", [False, True])
def test_each_graph_has_a_name_of_its_own(dumped: bool, tmp_path: Path) -> None:
    """In txt the name of a graph is its number, also for the backward pass."""
    options = {"data_dump__type": "npy"} if dumped else {"inner_backend": "aot_eager"}
    config = configured(tmp_path, graph_dump__type="txt", **options)
    model = torch.compile(lambda x: x.sin().sum(), backend=fxtap.get_npu_backend(compiler_config=config))
    model(torch.ones(2, requires_grad=True)).backward()
    files = sorted((tmp_path / "graph_dump").iterdir())
    numbers = {match[2] or match[3] for path in files if (match := NAME.fullmatch(path.name))}
    assert len(files) == 4 and len(numbers) == 2
    for path in files:
        match = NAME.fullmatch(path.name)
        assert match is not None and path.read_text().startswith(f'name: "graph_{match[2] or match[3]}"\n')


def test_summary_skips_compilation(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = configured(tmp_path, fx_summary__type="csv", fx_summary__language="en")
    model = torch.compile(lambda x: x.sin() + x.sin(), backend=fxtap.get_npu_backend(compiler_config=config))
    x = torch.ones(2)
    assert torch.equal(model(x), x.sin() + x.sin())
    assert SUMMARY_WARNING in caplog.text
    assert listed(tmp_path / "fx_summary") == ["summary.csv"]
    (path,) = (tmp_path / "fx_summary").iterdir()
    content = path.read_bytes()
    assert content.startswith(b"\xef\xbb\xbf") and content.endswith(b"\r\n") and b"aten.sin.default" in content


def test_summary_beside_compilation(tmp_path: Path) -> None:
    called = []

    def inner(gm: torch.fx.GraphModule, inputs: Any) -> Any:
        called.append(1)
        return gm.forward

    config = configured(tmp_path, fx_summary__type="csv", fx_summary__skip_compile=False, inner_backend=inner)
    torch.compile(torch.sin, backend=fxtap.get_npu_backend(compiler_config=config))(torch.ones(2))
    assert called == [1] and listed(tmp_path / "fx_summary") == ["summary.csv"]


def test_path_that_is_a_file(tmp_path: Path) -> None:
    config = configured(tmp_path, graph_dump__type="py", inner_backend="eager")
    (tmp_path / "graph_dump").write_text("x")
    model = torch.compile(torch.sin, backend=fxtap.get_npu_backend(compiler_config=config))
    with pytest.raises(Exception, match=f"Not a directory: '{tmp_path}/graph_dump'"):
        model(torch.ones(2))
