"""Lines of code and module paths of nodes in records, the index and reports are those that torch recorded."""

import json
import os
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.fx import Node

from captured import Captured, catch, catch_model, load_models
from dumps import dumping
from fxtap import _core

MODELS = load_models()
PROGRAM = os.environ.get("FXTAP_PROGRAM") or shutil.which("fxtap")

FRAME = re.compile(
    r'^  File "(?P<file>.*)", line (?P<line>\d+), in (?P<function>.*)\n(?:    (?P<code>.*)\n)?', re.MULTILINE
)


def expected(node: Node) -> tuple[Any, ...]:
    """Return a node's innermost frame (file, line, function, code) and innermost module (path, type)."""
    frames = list(FRAME.finditer(node.meta.get("stack_trace") or ""))
    source: tuple[Any, ...] = ("", 0, "", "")
    if frames:
        last = frames[-1]
        source = (last["file"], int(last["line"]), last["function"], (last["code"] or "").strip())
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack")
    if not stack:
        return (*source, "", "")
    path, module = list(stack.values())[-1]
    return (*source, path, module if isinstance(module, str) else f"{module.__module__}.{module.__qualname__}")


def check_record(captured: Captured) -> tuple[int, int]:
    """Compare every node; return how many have a source, and how many a module."""
    record = _core.record(captured.gm, captured.kind)
    given = [
        (*source, path, kind)
        for source, path, kind in zip(record.sources, record.module_paths, record.module_types, strict=True)
    ]
    assert given == [expected(node) for node in captured.gm.graph.nodes]
    return sum(row[0] != "" for row in given), sum(row[4] != "" for row in given)


@pytest.mark.parametrize("name", MODELS.NAMES)
def test_models(name: str) -> None:
    counts = [check_record(captured) for captured in catch_model(name)]
    assert sum(n_sources for n_sources, _ in counts) > 0
    functions = ("toy", "toy_static", "misc", "kv", "kv_index_copy", "kv_index_put", "symops")
    assert sum(n_modules for _, n_modules in counts) > 0 or name in functions


def gpt2() -> torch.nn.Module:
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(n_layer=2, n_embd=32, n_head=4, vocab_size=64, n_positions=16, use_cache=False)
    torch.manual_seed(0)
    model: torch.nn.Module = transformers.GPT2LMHeadModel(config).eval()
    return model


def rows_of(root: Path) -> Iterable[tuple[Any, ...]]:
    (path,) = root.glob("*/fxtap.db")
    with sqlite3.connect(path) as index:
        return index.execute(
            "SELECT name, source_file, source_line, source_function, source_code, module_path, module_type FROM node"
            " ORDER BY graph_id, position"
        ).fetchall()


@pytest.mark.skipif(PROGRAM is None, reason="no fxtap program: set FXTAP_PROGRAM")
def test_gpt2_in_record_index_and_report(tmp_path: Path) -> None:
    model, tokens = gpt2(), torch.arange(8).view(1, 8)
    with torch.no_grad():
        (captured,) = catch(model, [(tokens,)])
        n_sources, n_modules = check_record(captured)
        assert n_sources > 100 and n_modules > 100
        torch._dynamo.reset()
        torch.compile(model, backend=dumping(tmp_path / "good"))(tokens)
    wanted = {node.name: expected(node) for node in captured.gm.graph.nodes}
    assert {name: tuple(row) for name, *row in rows_of(tmp_path / "good")} == wanted
    shutil.copytree(tmp_path / "good", tmp_path / "bad")
    for path in (tmp_path / "bad").rglob("*OUTPUT*.npy"):
        array = np.load(path)
        if array.dtype == np.float32:
            path.unlink()
            np.save(path, array + 1)
    done = subprocess.run(
        [str(PROGRAM), "compare", tmp_path / "good", tmp_path / "bad", "--json", "-"], capture_output=True, check=False
    )
    report = json.loads(done.stdout)
    nodes = [row for row in find_rows(report) if row["node"] in wanted]
    assert len({row["node"] for row in nodes}) > 50
    for row in nodes:
        file, line, _, code, module, _ = wanted[row["node"]]
        assert row["source"] == (f"{file}:{line}" if file else None)
        assert (row["code"] or "", row["module"] or "") == (code, module)


def find_rows(value: Any) -> list[dict[str, Any]]:
    """Yield every object of a report that has a source."""
    if isinstance(value, dict):
        here = [value] if {"node", "source", "module", "code"} <= set(value) else []
        return here + [row for item in value.values() for row in find_rows(item)]
    return [row for item in value for row in find_rows(item)] if isinstance(value, list) else []
