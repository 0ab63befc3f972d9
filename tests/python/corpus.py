"""The recorded corpus of small graphs (tests/data/torchair/ops.jsonl.gz) as graph records, through the C API."""

from __future__ import annotations

import ast
import ctypes
import gzip
import json
import math
import operator
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from fxtap import _core

DATA = Path(__file__).parent.parent / "data" / "torchair"
C = ctypes
U32 = C.c_uint32

V_STRING, V_DTYPE, V_DEVICE, V_LAYOUT, V_MEMORY_FORMAT = 7, 9, 10, 11, 12
V_SYMBOLS = {"SymInt": 14, "SymFloat": 15, "SymBool": 16}
V_LIST, V_TUPLE = 17, 18
PLACEHOLDER, CALL_FUNCTION, GET_ATTR, OUTPUT = 1, 2, 3, 4


class TensorMeta(C.Structure):
    _fields_ = (
        ("struct_size", C.c_size_t),
        ("dtype", C.c_int),
        ("device", C.c_char_p),
        ("layout", C.c_char_p),
        ("requires_grad", C.c_bool),
        ("is_fake", C.c_bool),
        ("shape", C.POINTER(U32)),
        ("strides", C.POINTER(U32)),
        ("n_dims", C.c_size_t),
        ("bytes", C.c_char_p),
        ("n_bytes", C.c_size_t),
    )


class NodeDesc(C.Structure):
    _fields_ = (
        ("struct_size", C.c_size_t),
        ("op", C.c_int),
        ("name", C.c_char_p),
        ("target", C.c_char_p),
        ("target_python", C.c_char_p),
        ("args", C.POINTER(U32)),
        ("n_args", C.c_size_t),
        ("arg_names", C.POINTER(C.c_char_p)),
        ("kwarg_names", C.POINTER(C.c_char_p)),
        ("kwarg_values", C.POINTER(U32)),
        ("n_kwargs", C.c_size_t),
        ("meta", U32),
        ("stack_trace", C.c_char_p),
        ("module_path", C.c_char_p),
        ("module_type", C.c_char_p),
        ("flags", U32),
    )


@dataclass
class Ref:
    name: str


@dataclass
class Text:
    kind: int
    text: str


@dataclass
class Symbol:
    kind: int
    expression: str


@dataclass
class Tensor:
    dtype: str
    shape: list[Any]
    strides: list[int] | None = None
    data: bytes | None = None


@cache
def library() -> C.CDLL:
    """The extension's C functions."""
    lib = C.CDLL(_core.__file__)
    lib.fxtap_error_message.restype = C.c_char_p
    return lib


def array(values: list[int]) -> Any:
    return (U32 * max(1, len(values)))(*values)


class Builder:
    """A record, built node by node."""

    def __init__(self) -> None:
        self.lib = library()
        self.graph = C.c_void_p()
        self.nodes: dict[str, int] = {}
        self.check(self.lib.fxtap_graph_create(1, C.byref(self.graph)))

    def check(self, status: int) -> None:
        if status != 0:
            raise RuntimeError(self.lib.fxtap_error_message().decode())

    def add(self, function: str, *arguments: Any) -> int:
        out = U32()
        self.check(getattr(self.lib, f"fxtap_graph_add_{function}")(self.graph, *arguments, C.byref(out)))
        return out.value

    def text(self, kind: int, text: str) -> int:
        data = text.encode()
        return self.add("text", kind, data, C.c_size_t(len(data)))

    def tensor(self, value: Tensor) -> int:
        shape = [self.value(size) for size in value.shape]
        strides = None if value.strides is None else array([self.value(stride) for stride in value.strides])
        meta = TensorMeta(
            struct_size=C.sizeof(TensorMeta),
            dtype=self.lib.fxtap_dtype_from_name(value.dtype.encode()),
            device=b"cpu",
            is_fake=True,
            shape=array(shape),
            strides=strides,
            n_dims=len(shape),
            bytes=value.data,
            n_bytes=len(value.data or b""),
        )
        return self.add("tensor", C.byref(meta))

    def value(self, value: Any) -> int:
        if value is None:
            return self.add("none")
        if isinstance(value, bool):
            return self.add("bool", C.c_bool(value))
        if isinstance(value, int):
            return self.add("int", C.c_int64(value))
        if isinstance(value, float):
            return self.add("float", C.c_double(value))
        if isinstance(value, complex):
            return self.add("complex", C.c_double(value.real), C.c_double(value.imag))
        if isinstance(value, str):
            return self.text(V_STRING, value)
        if isinstance(value, Text):
            return self.text(value.kind, value.text)
        if isinstance(value, Ref):
            return self.add("node_ref", U32(self.nodes[value.name]))
        if isinstance(value, Symbol):
            return self.add("symbol", value.kind, value.expression.encode(), None)
        if isinstance(value, Tensor):
            return self.tensor(value)
        assert isinstance(value, list | tuple), value
        items = [self.value(item) for item in value]
        return self.add("items", V_LIST if isinstance(value, list) else V_TUPLE, array(items), C.c_size_t(len(items)))

    def node(
        self,
        op: int,
        name: str,
        target: str,
        arguments: tuple[Any, ...] = (),
        keywords: dict[str, Any] | None = None,
        meta: Any = None,
        trace: str | None = None,
    ) -> None:
        values = [self.value(argument) for argument in arguments]
        kwargs = {key: self.value(value) for key, value in (keywords or {}).items()}
        desc = NodeDesc(
            struct_size=C.sizeof(NodeDesc),
            op=op,
            name=name.encode(),
            target=target.encode(),
            args=array(values),
            n_args=len(values),
            kwarg_names=(C.c_char_p * max(1, len(kwargs)))(*[key.encode() for key in kwargs]),
            kwarg_values=array(list(kwargs.values())),
            n_kwargs=len(kwargs),
            meta=0 if meta is None else self.value(meta),
            stack_trace=None if trace is None else trace.encode(),
        )
        self.nodes[name] = self.add("node", C.byref(desc))

    def finish(self) -> _core.Graph:
        """The record as an object of the extension."""
        data, length = C.c_void_p(), C.c_size_t()
        self.check(self.lib.fxtap_graph_serialise(self.graph, C.byref(data), C.byref(length)))
        record = _core.Graph.from_bytes(C.string_at(data, length.value))
        self.lib.fxtap_free(data)
        self.lib.fxtap_graph_free(self.graph)
        return record


# ---- the corpus' notation ----


def split(text: str) -> list[str]:
    """Split at the commas outside brackets."""
    parts, depth, part = [], 0, ""
    for character in text:
        if character == "," and depth == 0:
            parts.append(part.strip())
            part = ""
            continue
        depth += (character in "([") - (character in ")]")
        part += character
    return [*parts, part.strip()] if part.strip() else parts


def parse_meta(text: str) -> Any:
    """Parse "float32[2, s77]", "SymInt(s77)", or a list of them."""
    symbol = re.fullmatch(r"(Sym\w+)\((.*)\)", text)
    if symbol:
        return Symbol(V_SYMBOLS[symbol[1]], symbol[2])
    number = re.fullmatch(r"int\((-?\d+)\)", text)
    if number:
        return int(number[1])
    if text.startswith("["):
        return [parse_meta(part) for part in split(text[1:-1])]
    tensor = re.fullmatch(r"(\w+)\[(.*)\]", text)
    if not tensor:
        return None
    sizes = split(tensor[2])
    return Tensor(
        tensor[1], [int(size) if re.fullmatch(r"-?\d+", size) else Symbol(V_SYMBOLS["SymInt"], size) for size in sizes]
    )


def convert(node: ast.AST, names: set[str]) -> Any:
    """Parse an argument as it was printed."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return Ref(node.id) if node.id in names else {"inf": math.inf, "nan": math.nan}[node.id]
    if isinstance(node, ast.Tuple):
        return tuple(convert(item, names) for item in node.elts)
    if isinstance(node, ast.List):
        return [convert(item, names) for item in node.elts]
    if isinstance(node, ast.Dict):
        return {key.value: convert(value, names) for key, value in zip(node.keys, node.values, strict=True)}  # type: ignore[union-attr]
    if isinstance(node, ast.UnaryOp):
        return -convert(node.operand, names)
    if isinstance(node, ast.Attribute):
        text = ast.unparse(node)
        layout = text in ("torch.strided", "torch.jagged")
        return Text(V_LAYOUT if layout else V_MEMORY_FORMAT if "format" in text else V_DTYPE, text)
    assert isinstance(node, ast.Call) and ast.unparse(node.func) == "device", ast.dump(node)
    return Text(V_DEVICE, node.keywords[0].value.value)  # type: ignore[attr-defined]


# ---- strides, which the corpus does not have: the nodes run on fake tensors ----


def concrete_inputs(row: dict[str, Any]) -> dict[str, Any]:
    """Map each placeholder to a fake tensor of its size, or to a number."""
    free = [tuple(entry) for entry in row["inputs"] if isinstance(entry, list)]
    values: dict[str, Any] = {}
    sizes: dict[str, int] = {}
    metas = {name: parse_meta(meta) for name, target, _, _, meta in nodes_of(row) if target.startswith("placeholder")}
    for name, meta in metas.items():
        if not isinstance(meta, Tensor):
            continue
        for entry in free:
            dtype, shape, strides = entry
            fits = dtype == meta.dtype and len(shape) == len(meta.shape)
            if fits and all(not isinstance(a, int) or a == b for a, b in zip(meta.shape, shape, strict=True)):
                free.remove(entry)
                values[name] = torch.empty_strided(shape, strides, dtype=getattr(torch, dtype))
                sizes |= {a.expression: b for a, b in zip(meta.shape, shape, strict=True) if isinstance(a, Symbol)}
                break
    for name, meta in metas.items():
        if isinstance(meta, Symbol) and meta.expression in sizes:
            values[name] = sizes[meta.expression]
    return values


def resolve(target: str) -> Any:
    """Return the function of a target."""
    if target.startswith("operator."):
        return getattr(operator, target[9:])
    if target.startswith("math."):
        return getattr(math, target[5:])
    if target == "torch.sym_float":
        return float
    function: Any = torch.ops
    for part in target.split("."):
        function = getattr(function, part)
    return function


def run_fake(target: str, arguments: Any, keywords: dict[str, Any], values: dict[str, Any]) -> Any:
    """Return the result of a node on fake tensors, or None if it cannot be run."""

    def real(value: Any) -> Any:
        if isinstance(value, Ref):
            return values[value.name]
        if isinstance(value, Text):
            return "cpu" if value.kind == V_DEVICE else getattr(torch, value.text.removeprefix("torch."))
        if isinstance(value, list | tuple):
            return type(value)(real(item) for item in value)
        return value

    try:
        return resolve(target)(*real(arguments), **{key: real(value) for key, value in keywords.items()})
    except Exception:
        return None


def set_strides(meta: Any, value: Any) -> None:
    if isinstance(meta, Tensor) and isinstance(value, torch.Tensor) and value.ndim == len(meta.shape):
        meta.strides = list(value.stride())
    if isinstance(meta, list) and isinstance(value, list | tuple):
        for item, part in zip(meta, value, strict=False):
            set_strides(item, part)


# ---- rows ----


def nodes_of(row: dict[str, Any]) -> list[list[str]]:
    nodes: list[list[str]] = row.get("fx_nodes_aot", row["fx_nodes"])
    return nodes


def constants(row: dict[str, Any]) -> Iterator[bytes]:
    """Return the values of the graph's constants, which only the py form has."""
    for text in re.findall(r"(?<!\w)tensor\((?:[^()]|\([^()]*\))*\)", row.get("py", "")):
        if not text.startswith("tensor([]"):
            tensor = eval(text, {"tensor": torch.tensor, "torch": torch, "inf": math.inf, "nan": math.nan})
            yield bytes(tensor.contiguous().reshape(-1).view(torch.uint8).numpy())


# the passes remove these when they change nothing, which depends on strides
GIVE_BACK = re.compile(r"aten\.(clone|copy|slice|slice_scatter|view|alias|repeat|cat)\b|prims\.convert_element_type")


def record_of(row: dict[str, Any]) -> _core.Graph:
    """Build the AOT graph of a row. A node has a stack trace if its FX line is in the py form."""
    builder, names = Builder(), set[str]()
    traced = set(re.findall(r"^## FX Code: (\w+)[: ]", row.get("py", ""), re.M))
    has_constants = any(target.startswith("get_attr") for _, target, *_ in nodes_of(row))
    data = iter(list(constants(row)) if has_constants else [])
    runs = any(GIVE_BACK.match(target) for _, target, *_ in nodes_of(row))
    with FakeTensorMode():
        values = concrete_inputs(row) if runs else {}
        for number, (name, target, arguments, keywords, meta_text) in enumerate(nodes_of(row)):
            meta = parse_meta(meta_text)
            trace = f'  File "x.py", line {number}, in f\n    y = f(x)\n' if name in traced else None
            kind, _, rest = target.partition(":")
            if kind in ("placeholder", "get_attr"):
                set_strides(meta, values.get(name))
                if kind == "get_attr":
                    meta.data = next(data, None)
                builder.node(PLACEHOLDER if kind == "placeholder" else GET_ATTR, name, rest, meta=meta, trace=trace)
            else:
                args = convert(ast.parse(arguments, mode="eval").body, names)
                kwargs = convert(ast.parse(keywords, mode="eval").body, names)
                if target != "output" and runs:
                    values[name] = run_fake(target, args, kwargs, values)
                    set_strides(meta, values[name])
                builder.node(OUTPUT if target == "output" else CALL_FUNCTION, name, target, args, kwargs, meta, trace)
            names.add(name)
    return builder.finish()


@cache
def rows() -> list[dict[str, Any]]:
    with gzip.open(DATA / "ops.jsonl.gz", "rt") as stream:
        return [json.loads(line) for line in stream]
