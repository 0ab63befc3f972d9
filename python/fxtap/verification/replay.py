"""Running one recorded operator call again: in float64, with its inputs perturbed, and as it was."""

from __future__ import annotations

import contextlib
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .arguments import Arguments, Saved, map_leaves
from .operators import NotReplayedError, Operator

__all__ = ["CANCELLING", "Earlier", "Place", "Replay", "Results", "flatten_results", "is_floating"]

Place = tuple[str, str]
"""("OUTPUT", "0") or ("INOUT", "1.2")."""

Results = dict[Place, Any]

Load = Callable[[Any, bool], Tensor]
"""Returns the tensor for a `Saved` or `Earlier`; True: in memory of its own."""

Literal = Callable[[Any], Any]

_WIDE = {
    torch.float16: torch.float64, torch.bfloat16: torch.float64, torch.float32: torch.float64,
    torch.complex32: torch.complex128, torch.complex64: torch.complex128,
}  # fmt: skip

CANCELLING = frozenset({"gelu", "gelu_backward"})
"""
Functions that kernels evaluate as x/2 (1 + erf(...)): where erf is near -1, the sum cancels, and its rounding is one of
x/2, however small the result is. A change of the inputs does not show it. The first argument is the factor.
"""

_ADDENDS = {
    **dict.fromkeys(("mm", "bmm", "mv", "dot", "inner", "matmul", "convolution_backward"), None),
    **dict.fromkeys(("addmm", "addmv", "addbmm", "baddbmm"), 0),
    **dict.fromkeys(("linear", "convolution", "_convolution", "conv1d", "conv2d", "conv3d", "mkldnn_convolution"), 2),
}
"""Operators whose elements are sums of products of two arguments, and which argument is added to that."""

_NO_MEMORY = ("not enough memory", "can't allocate memory", "out of memory")


def flatten_results(result: Any, position: str = "") -> Iterator[tuple[str, Any]]:
    """Return position and value of the results of an operator, as a dump numbers them."""
    if isinstance(result, (list, tuple)):
        for i, item in enumerate(result):
            yield from flatten_results(item, f"{position}.{i}" if position else str(i))
    elif result is not None:
        yield position or "0", result


@dataclass(frozen=True)
class Earlier:
    """An argument that is a result of an operator that ran before in the same replay."""

    index: int
    place: Place


@contextlib.contextmanager
def _default_dtype(dtype: torch.dtype) -> Iterator[None]:
    """Set the dtype of results that are made of integers alone."""
    before = torch.get_default_dtype()
    if dtype is before:
        yield
        return
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def is_floating(dtype: torch.dtype) -> bool:
    return dtype.is_floating_point or dtype.is_complex


class Replay:
    """One operator call that can be run again.

    Parameters
    ----------
    operator, arguments
        What is called.
    seed
        A text that makes the perturbation; equal texts give equal numbers.
    """

    def __init__(self, operator: Operator, arguments: Arguments, seed: str) -> None:
        self.operator = operator
        self.arguments = arguments
        self.seconds = 0.0
        self._seed = zlib.crc32(seed.encode())
        self._reference: Results | None = None
        self._third: Results | None = None
        self._changes: dict[float, tuple[int, dict[Place, Tensor]]] = {}
        self._squares: Results | None = None
        self._perturb: Callable[[Tensor], Tensor] | None = None

    @property
    def is_integral(self) -> bool:
        """Whether no argument is of floats, so that the original dtypes are exact."""
        return not any(is_floating(saved.dtype) for saved in self.arguments.tensors)

    @property
    def is_single(self) -> bool:
        """Whether it is one call of `operator` with `arguments`."""
        return True

    @property
    def is_sum_of_products(self) -> bool:
        """
        Whether the operator, applied to the squares of its arguments, gives the exact `spread`. float64 is left out, as
        squares may leave its range, and alpha and beta are, as they may be perturbed, too.
        """
        dtypes = {saved.dtype for saved in self.arguments.tensors}
        is_narrow = all(dtype.is_floating_point and dtype is not torch.float64 for dtype in dtypes)
        return self.is_single and self.operator.name in _ADDENDS and is_narrow and not self.arguments.kwargs

    @property
    def inner_dtype(self) -> torch.dtype:
        """The dtype to which kernels round numbers in the code before they compute with them."""
        floats = [saved.dtype for saved in self.arguments.tensors if is_floating(saved.dtype)]
        has_wide = any(dtype in (torch.float64, torch.complex128) for dtype in floats)
        return torch.float64 if has_wide or not self.arguments.tensors else torch.float32

    def reference(self) -> Results:
        """Return the results in float64 and complex128."""
        if self._reference is None:
            native = self.operator.is_native
            self._reference = self._run(Saved.original if native else Saved.double, None if native else self._number)
        return self._reference

    def third(self) -> Results:
        """Return the results in the original dtypes, by this machine's kernels."""
        if self._third is None:
            self._third = self.reference() if self.operator.is_native else self._run(Saved.original, None)
        return self._third

    def third_without_mkldnn(self) -> Results:
        """Return the results in the original dtypes by torch's other kernels; empty if they raise."""
        before = torch._C._get_mkldnn_enabled()
        torch._C._set_mkldnn_enabled(False)  # torch.backends.mkldnn.flags also warns about TF32
        try:
            return self._run(Saved.original, None)
        except NotReplayedError:
            return {}
        finally:
            torch._C._set_mkldnn_enabled(before)

    def run_on(self, load: Load) -> Results:
        """Return the results in float64 and complex128 for other values of the arguments."""
        return self._run(load, self._number)

    def in_file_dtypes(self) -> Results:
        """Return the results of an operator that only moves elements, in the dtypes of the files."""
        return self._run(lambda saved, fresh: saved.in_file.clone() if fresh else saved.in_file, None)

    def spread(self, place: Place, unit: float, runs: int) -> Tensor:
        """Return the root mean square of the change of each element if inputs change by `unit`, relatively."""
        if self.is_sum_of_products:
            return self._spread_of_sum(place, unit)
        done, sums = self._changes.get(unit, (0, {}))
        for run in range(done, runs):
            self._add_change(sums, unit, run)
        self._changes[unit] = (max(done, runs), sums)
        root = (sums[place] / max(done, runs)).sqrt_()
        return torch.view_as_complex(root) if self.reference()[place].is_complex() else root

    def _spread_of_sum(self, place: Place, unit: float) -> Tensor:
        """
        Return what the runs of `spread` estimate, the root of the sum of (unit x dr/dx)^2 over all inputs x of an
        element r. In r = c + sum of a b, each product has two inputs: the sum is c^2 + 2 sum of (a b)^2.
        """
        addend = _ADDENDS[self.operator.name]
        added = None if addend is None or addend >= len(self.arguments.args) else self.arguments.args[addend]

        def load(saved: Saved, _fresh: bool) -> Tensor:
            square = saved.double(True).square_()
            return square.mul_(0.5) if saved is added else square

        if self._squares is None:
            self._squares = self._run(load, self._number)
        is_plain = (self.operator.name, place) == ("convolution_backward", ("OUTPUT", "2"))  # a bias': sum of c
        squares: Tensor = self._squares[place] * (unit**2 if is_plain else 2 * unit**2)
        return squares.sqrt_()

    def _add_change(self, sums: dict[Place, Tensor], unit: float, run: int) -> None:
        generator = torch.Generator().manual_seed(self._seed * 64 + run)
        converts = self.is_integral and self.operator.is_pointwise  # kernels convert its integers, and compute

        def perturb(tensor: Tensor) -> Tensor:
            if converts and tensor.dtype is not torch.bool:
                tensor = tensor.to(torch.float64)
            if not is_floating(tensor.dtype):
                return tensor
            eights = torch.empty(tensor.numel() // 8 + 1, dtype=torch.int64)
            eights.random_(-(2**63), None, generator=generator)
            signs = eights.view(torch.int8)[: tensor.numel()].view(tensor.shape).to(torch.float64)
            return tensor * torch.full_like(signs, unit).copysign_(signs).add_(1)  # infinities stay

        def number(value: Any) -> Any:
            value = self._number(value)
            if isinstance(value, float):
                sign = int(torch.randint(0, 2, (), generator=generator)) * 2 - 1
                value *= 1 + sign * unit
            return value

        reference = self.reference()
        self._perturb = perturb
        try:
            results = self._run(lambda saved, fresh: perturb(saved.double(fresh)), number)
        finally:
            self._perturb = None
        for place, result in results.items():
            exact = reference[place]
            if isinstance(exact, Tensor) and is_floating(exact.dtype) and result.shape == exact.shape:
                change = _square_of_change(result, exact)
                if self.operator.name in CANCELLING:
                    size = self.arguments.tensors[0].double()
                    if size.shape == change.shape:
                        change.add_(size.mul(unit / 2).square_())
                sums[place] = change if place not in sums else sums[place].add_(change)

    def _number(self, value: Any) -> Any:
        if isinstance(value, torch.dtype):
            return _WIDE.get(value, value)
        if isinstance(value, float) and self.inner_dtype is torch.float32:
            return float(torch.tensor(value, dtype=torch.float32))
        return value

    def _run(self, load: Load, literal: Literal | None) -> Results:
        """Call the operator; `load` makes tensors, `literal` the other arguments."""
        return self._call(self.operator, self.arguments, load, literal)

    def _call(self, operator: Operator, arguments: Arguments, load: Load, literal: Literal | None) -> Results:
        """Call one operator.

        Raises
        ------
        NotReplayedError
            The operator raised.
        """
        written: dict[str, Tensor] = {}

        def argument(value: Any, name: str) -> Any:
            fresh = name in operator.written

            def leaf(item: Any) -> Any:
                if not isinstance(item, (Saved, Earlier)):
                    return item if literal is None else literal(item)
                tensor = load(item, fresh)
                if fresh and isinstance(item, Saved):
                    written[item.position] = tensor
                return tensor

            return map_leaves(value, leaf)

        names = [name for name, _ in operator.arguments]
        names += [""] * (len(arguments.args) - len(names))
        wide = literal is not None
        began = time.perf_counter()
        try:
            args = [argument(value, name) for value, name in zip(arguments.args, names, strict=False)]
            kwargs = {name: argument(value, name) for name, value in arguments.kwargs.items()}
            # threads of the model see the default dtype, too: it is set only where it can decide a result's
            is_integral = not any(is_floating(saved.dtype) for saved in arguments.tensors)
            wanted = torch.float64 if wide else torch.float32
            with _default_dtype(wanted if is_integral else torch.get_default_dtype()):
                result = operator.function(*args, **kwargs)
        except NotReplayedError:
            raise
        except MemoryError:
            raise NotReplayedError("out of memory") from None
        except Exception as error:
            no_memory = any(text in str(error).lower() for text in _NO_MEMORY)
            what = "the original dtypes" if literal is None else "float64"
            raise NotReplayedError("out of memory" if no_memory else f"raises in {what}") from None
        self.seconds = max(self.seconds, time.perf_counter() - began)
        found: Results = {("OUTPUT", position): value for position, value in flatten_results(result)}
        return found | {("INOUT", position): value for position, value in written.items()}


def _square_of_change(result: Tensor, exact: Tensor) -> Tensor:
    """Return the squared change of each element; of real and imaginary part for complex ones."""
    if exact.is_complex():
        result, exact = torch.view_as_real(result), torch.view_as_real(exact)
    return (result - exact).square_()
