"""Operators that a dump names: found by exact name among those that torch has registered, and what is known of them.

A dump is not trusted. Its records name operators as text; nothing is imported or evaluated. A name is accepted if the
dispatcher lists it, its namespace is not one that touches files, processes or other machines, and it was not defined by
a Python program.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

__all__ = ["NotReplayedError", "Operator", "find_operator"]


class NotReplayedError(Exception):
    """An operator call that cannot be run again; the message is the reason in a few words."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NAME = re.compile(r"torch\.ops\.(\w+)\.(\w+)\.(\w+)", re.ASCII)

_TORCHS = frozenset({"aten", "prims", "inductor_prims", "quantized", "_quantized", "mkldnn", "onednn", "torchvision"})
"""Namespaces whose operators compute, wherever they are implemented."""

_COLLECTIVE = frozenset(
    {"c10d", "c10d_functional", "_c10d_functional", "_c10d_functional_autograd", "symm_mem", "_dtensor"}
)

_EFFECTS = frozenset({"aten::from_file", "aten::_print", "aten::set_data", "aten::_pin_memory", "aten::record_stream"})
"""Operators of torch that do something other than compute."""

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    f"operator.{function.__name__}": function
    for function in (
        operator.add, operator.sub, operator.mul, operator.floordiv, operator.truediv, operator.mod, operator.neg,
        operator.abs, operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge, operator.and_,
        operator.or_, operator.not_,
    )
}  # fmt: skip
"""Python functions that graphs call on numbers."""

_EXACT = _names(
    "alias as_strided cat chunk clone contiguous detach diagonal expand flatten flip gather index index_select "
    "masked_select movedim narrow permute repeat reshape roll select slice split split_with_sizes squeeze stack t "
    "take tile transpose tril triu unbind unfold unsqueeze view where _reshape_alias _unsafe_index _unsafe_view "
    "constant_pad_nd diag_embed lift_fresh_copy slice_scatter select_scatter diagonal_scatter embedding "
    "slice_backward select_backward"
)
"""Operators that move elements without a change: run in the saved precision, and compared bit by bit."""

_POINTWISE = _names("_to_copy to convert_element_type copy hardswish hardswish_backward softplus_backward")
"""Operators that are pointwise but not tagged so by torch."""

_NATIVE = _names("nan_to_num nextafter frexp view_dtype _assert_async")
"""Operators whose meaning depends on the dtype itself: run in it."""

_NOT_UNIQUE = _names(
    "_linalg_eigh _linalg_svd geqrf linalg_eig linalg_eigh linalg_qr linalg_svd lu_unpack qr svd linalg_lstsq "
    "linalg_ldl_factor linalg_ldl_factor_ex svd_lowrank pca_lowrank"
)
"""Operators with several right results."""


@dataclass(frozen=True)
class Operator:
    """An operator that may be called.

    Attributes
    ----------
    function
        Called with the arguments.
    name
        Without namespace, overload and the underscore of an in-place operator, such as "add".
    arguments
        Name and type of each argument of the schema; empty for a Python function.
    written
        Names of the arguments that it changes.
    is_pointwise, is_random, is_view, is_exact, is_native, is_unique
        Each result element depends on one element of each argument; draws random numbers; returns views of its
        argument; moves elements without a change; has a meaning that depends on the dtype; has one right result.
    """

    function: Callable[..., Any]
    name: str
    arguments: tuple[tuple[str, str], ...] = ()
    written: frozenset[str] = frozenset()
    is_pointwise: bool = False
    is_random: bool = False
    is_view: bool = False
    is_exact: bool = False
    is_native: bool = False
    is_unique: bool = True

    @property
    def is_elementwise(self) -> bool:
        """Whether a result element depends on one element of each argument: computed from it, or moved."""
        return self.is_pointwise or self.is_exact or self.is_view


@functools.cache
def _registered() -> frozenset[str]:
    return frozenset(torch._C._dispatch_get_all_op_names())


def _check_registered(qualified: str, namespace: str) -> None:
    """Raise `NotReplayedError` if the operator is not one that may be called."""
    if namespace in _COLLECTIVE:
        raise NotReplayedError("collective")
    if namespace == "higher_order":
        raise NotReplayedError("higher-order operator")
    if qualified not in _registered():
        _registered.cache_clear()  # a library that was loaded since
        if qualified not in _registered():
            raise NotReplayedError("operator not known to this torch" if namespace in _TORCHS else "custom operator")
    if namespace not in _TORCHS:
        has_kernel = any(
            torch._C._dispatch_has_kernel_for_dispatch_key(qualified, key)
            for key in ("CPU", "CompositeImplicitAutograd", "CompositeExplicitAutograd")
        )
        if not has_kernel or qualified.split(".")[0] in {name.split(".")[0] for name in torch.library._defs}:
            raise NotReplayedError("custom operator")
    if qualified.split(".")[0] in _EFFECTS:
        raise NotReplayedError("operator with side effects")


def _computes(overload: OpOverload) -> bool:
    """Return whether a schema is one of computing: tensors in and out, no text such as the name of a file."""
    takes, gives = overload._schema.arguments, overload._schema.returns
    has_text = any("str" in str(a.type) for a in takes)
    return not has_text and any("Tensor" in str(a.type) for a in takes) and all("Tensor" in str(r.type) for r in gives)


def _has_pointwise_form(name: str) -> bool:
    """Return whether the functional form is tagged as pointwise; other forms often are not tagged."""
    packet = getattr(torch.ops.aten, name, None) if name.isidentifier() else None
    overloads = packet.overloads() if packet is not None else []
    return any(torch.Tag.pointwise in getattr(packet, overload).tags for overload in overloads)


def _base_name(overload: OpOverload) -> str:
    name = overload._overloadpacket.__name__
    return name[:-1] if name.endswith("_") and not name.endswith("__") else name


def _grouped_mm(
    self: Tensor, mat2: Tensor, offs: Tensor | None = None, bias: Tensor | None = None, out_dtype: Any = None
) -> Tensor:
    """Call `aten._grouped_mm`, or compute its products of groups of rows in float64, for which torch has no kernel."""
    if self.dtype is not torch.float64 or offs is None or bias is not None:
        result: Tensor = torch.ops.aten._grouped_mm(self, mat2, offs, bias, out_dtype)
        return result
    ends = offs.tolist()
    groups = [slice(begin, end) for begin, end in zip([0, *ends], ends, strict=False)]
    if self.dim() == 2 and mat2.dim() == 2:
        return torch.stack([self[:, group] @ mat2[group] for group in groups])
    if self.dim() == 2:
        return torch.cat([self[group] @ mat2[i] for i, group in enumerate(groups)])
    return torch.cat([self[i] @ mat2[:, group] for i, group in enumerate(groups)], 1)


_OWN: dict[str, Callable[..., Any]] = {"_grouped_mm": _grouped_mm}
"""Called in place of torch's operator."""


def _describe(overload: OpOverload) -> Operator:
    schema, name = overload._schema, _base_name(overload)
    written = {a.name for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write}
    views = [r.alias_info for r in schema.returns]
    plain = name.removesuffix("_copy")
    return Operator(
        function=_OWN.get(name, overload),
        name=name,
        arguments=tuple((a.name, str(a.type)) for a in schema.arguments),
        written=frozenset(written),
        is_pointwise=name in _POINTWISE
        or torch.Tag.pointwise in overload.tags
        or _has_pointwise_form(name.removeprefix("_foreach_")),
        is_random=torch.Tag.nondeterministic_seeded in overload.tags,
        is_view=any(alias is not None and not alias.is_write for alias in views),
        is_exact=not written and plain in _EXACT and overload._overloadname not in ("dtype",),
        is_native=name in _NATIVE or (name == "view" and overload._overloadname == "dtype"),
        is_unique=name not in _NOT_UNIQUE,
    )


@functools.cache
def find_operator(python: str) -> Operator:
    """Return an operator by the name that a record gives, such as "torch.ops.aten.add.Tensor" or "operator.mul".

    Raises
    ------
    NotReplayedError
        It is not registered, or not one that may be called.
    """
    if python in _FUNCTIONS:
        return Operator(_FUNCTIONS[python], python.removeprefix("operator."), is_pointwise=True, is_native=True)
    if python.startswith("torch.ops.higher_order."):
        raise NotReplayedError("higher-order operator")
    match = _NAME.fullmatch(python)
    if match is None:
        raise NotReplayedError("not an operator")
    namespace, packet, overload = match.groups()
    suffix = "" if overload == "default" else f".{overload}"
    qualified = f"{namespace}::{packet}{suffix}"
    _check_registered(qualified, namespace)
    found = getattr(getattr(getattr(torch.ops, namespace), packet), overload)
    if (
        not isinstance(found, OpOverload)
        or found._schema.overload_name != suffix[1:]
        or str(found._schema.name) + suffix != qualified
    ):
        raise NotReplayedError("not an operator")
    if namespace not in _TORCHS and not _computes(found):
        raise NotReplayedError("custom operator")
    return _describe(found)
