"""If one failure follows another, the first is reported, and no exception object leaks."""

import gc
import types
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.fx import Graph, GraphModule, Node

from fxtap import _core
from graphs import Dumped, aten, build

alive: "weakref.WeakSet[Exception]" = weakref.WeakSet()


class NoRoomError(MemoryError):
    """An exception raised by the dump, whose instances are counted."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)
        alive.add(self)


class HostileInt(int):
    """A number too large for an array, whose repr raises."""

    def __str__(self) -> str:
        raise NoRoomError("first")


@pytest.mark.parametrize("on_error", ["raise", "warn"])
def test_a_node_fails_twice(on_error: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its input cannot be recorded, and then the memory that it changes cannot be determined."""

    def make(graph: Graph, x: Node) -> Node:
        return graph.call_function(aten.add_.Tensor, (x, HostileInt(2**70)))

    asked: list[str] = []

    def no_dlpack(tensor: torch.Tensor, *_arguments: object, **_keywords: object) -> object:
        asked.append("asked")
        raise NoRoomError("second")

    lines: list[str] = []
    dumped = Dumped(build(make, "x"), tmp_path / "out", on_error=on_error, log=lines.append)
    monkeypatch.setattr(torch.Tensor, "__dlpack__", no_dlpack)
    before = _core.force_dlpack_fallback(True)
    try:
        with pytest.raises(Exception) as raised:
            dumped(torch.ones(2))
        assert "second" not in str(raised.value)
        del raised
    finally:
        _core.force_dlpack_fallback(before)
    gc.collect()
    assert not alive


class Attributes:
    """An object with the given attributes; those that are exceptions are raised."""

    def __init__(self, **attributes: object) -> None:
        self.attributes = attributes

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = self.attributes[name]
        if isinstance(value, Exception):
            raise value
        return value


def module_of(node: Attributes) -> GraphModule:
    """Return a module whose graph has only this node."""
    module = build(lambda graph, x: x, "x")
    type(module).graph = property(lambda self: types.SimpleNamespace(nodes=[node]))  # a class of its own
    return module


FIRST = KeyError("first")


@pytest.mark.parametrize(
    "node",
    [
        Attributes(op="call_function", target=FIRST, args=(), kwargs={}),
        Attributes(op="call_function", target=torch.sin, args=FIRST, kwargs={}),
        Attributes(op="call_function", target=torch.sin, args=(), kwargs=FIRST),
        Attributes(op="placeholder", target=FIRST, args=()),
        Attributes(op="placeholder", target="x", args=FIRST),
        Attributes(op=FIRST, target="x", args=()),
    ],
    ids=["function", "arguments", "keywords", "placeholder", "default", "kind"],
)
def test_the_first_exception_of_a_node_is_raised(node: Attributes) -> None:
    module = module_of(node)
    with pytest.raises(KeyError, match="first"):
        _core.Program(module)


@pytest.mark.parametrize(
    "node",
    [
        Attributes(op="placeholder", target=5, args=()),
        Attributes(op="placeholder", target="x", args=[]),
        Attributes(op="call_function", target=torch.sin, args=(), kwargs=[]),
    ],
    ids=["target", "args", "kwargs"],
)
def test_a_node_of_wrong_types(node: Attributes) -> None:
    module = module_of(node)
    with pytest.raises(TypeError, match=r"placeholder|kwargs"):
        _core.Program(module)


def raising(error: Exception) -> Callable[..., Any]:
    def function(*_arguments: object) -> Any:
        raise error

    return function


def test_a_note_that_cannot_be_made(tmp_path: Path) -> None:
    """The operator's exception propagates whatever happens when the node's source is looked up."""
    gm = build(lambda graph, x: graph.call_function(raising(ValueError("first")), (x,)), "x")
    program = _core.Program(gm)
    node = next(node for node in gm.graph.nodes if node.op == "call_function")

    class Trace(str):
        def splitlines(self, keepends: bool = False) -> list[Any]:
            return ['  File "a.py", line 1, in f', 5]

    for trace in (Trace("text"), "", None):
        node.meta["stack_trace"] = trace
        with pytest.raises(ValueError, match="first"):
            program([torch.ones(2)])
