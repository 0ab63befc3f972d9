"""The metrics of a pair, computed independently: with NumPy's long double, and Python's integers where NumPy wraps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "complex64": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex128": (1e-7, 1e-7),
    "bfloat16": (1.6e-2, 1e-5),
    "float8_e5m2": (0.25, 1e-5),
    "float8_e5m2fnuz": (0.25, 1e-5),
    "float8_e4m3fn": (0.125, 1e-5),
    "float8_e4m3fnuz": (0.125, 1e-5),
}
"""The tolerances of torch.testing.assert_close; integers and bool are compared exactly."""

FROM_DUMPS = ("bfloat16", "float8_e5m2", "float8_e5m2fnuz", "float8_e4m3fn", "float8_e4m3fnuz")
"""Saved as float32 but judged in the original dtype."""

_PLACES = {"float16": np.int16, "float32": np.int32, "float64": np.int64}


def judged(golden: Array, target: Array) -> str:
    """Return the less precise of both dtypes."""
    names = (golden.dtype.name, target.dtype.name)
    for name in TOLERANCES:
        if name in names:
            return name
    return names[0]


@dataclass
class Metrics:
    """The expected result of comparing two arrays; `slack` fields are bounds."""

    max_abs_err: float
    max_rel_err: float
    mean_abs_err: float
    rmse: float
    euclidean: float
    cosine: float
    rel_l2: float
    max_ulp: float
    mismatched: tuple[int, int]
    within_1e3: tuple[float, float]
    within_5e3: tuple[float, float]
    nan_mismatched: int
    inf_mismatched: int
    n_finite: int
    errors: Array
    """|a - b| of every element in row-major order; NaN if a side is not finite"""
    ratios: Array
    """|a - b| / |b|; NaN if both golden and the error are 0"""


def _wide(array: Array) -> Array:
    """Convert values to a type whose arithmetic is exact enough for all of them."""
    flat = array.reshape(-1)  # row-major, whatever the memory order
    if array.dtype.kind in "biu":
        return np.array([int(value) for value in flat.tolist()] or [], dtype=object)
    return flat.astype(np.clongdouble if array.dtype.kind == "c" else np.longdouble)


def _places(array: Array, dtype: str) -> list[int]:
    """Return each value's rank among all numbers of a dtype; -0.0 and 0.0 have the same rank."""
    narrow = array.reshape(-1)
    if dtype == "bfloat16":  # the upper half of the float32 in which it was saved
        halves = (narrow.view(np.uint32) >> 16).astype(np.uint16).view(np.int16).tolist()
        return [value if value >= 0 else -32768 - value for value in halves]
    if dtype == "float16" and narrow.dtype == np.float64:
        narrow = narrow.astype(np.float32)
    integers = narrow.astype(dtype).view(_PLACES[dtype]).tolist()
    lowest = int(np.iinfo(_PLACES[dtype]).min)
    return [value if value >= 0 else lowest - value for value in integers]


def _max_ulp(golden: Array, target: Array, finite: Array, dtype: str) -> float:
    if dtype not in _PLACES and dtype != "bfloat16":
        return float("nan")
    pairs = zip(_places(golden, dtype), _places(target, dtype), finite.tolist(), strict=True)
    return float(max((abs(a - b) for a, b, counts in pairs if counts), default=0))


def _not_finite(golden: Array, target: Array) -> tuple[Array, Array, Array, Array]:
    """Return which pairs are finite, equal but not finite, NaN on one side only, and otherwise infinite."""
    b, a = golden.reshape(-1), target.reshape(-1)
    finite = np.isfinite(b) & np.isfinite(a)
    nans = np.isnan(b), np.isnan(a)
    if golden.dtype.kind == "c":
        same = ((b.real == a.real) | (np.isnan(b.real) & np.isnan(a.real))) & (
            (b.imag == a.imag) | (np.isnan(b.imag) & np.isnan(a.imag))
        )
        equal = ~finite & ((nans[0] & nans[1]) | same)
    else:
        equal = ~finite & ((nans[0] & nans[1]) | (b == a))
    nan = ~finite & (nans[0] != nans[1])
    return finite, equal, nan, ~finite & ~equal & ~nan


def _count(errors: Array, limits: Array) -> tuple[int, int]:
    """Return lower and upper bounds for the number of errors within the limits."""
    with np.errstate(over="ignore"):
        limits = limits.astype(np.longdouble)
        strict = int((errors <= limits * (1 - np.longdouble(1e-12))).sum())
        kind = int((errors <= limits * (1 + np.longdouble(1e-12))).sum())
    exact = int(((errors == 0) | (errors <= 0)).sum())
    return max(strict, exact), kind


def measure(golden: Array, target: Array, recorded: str | None = None) -> Metrics:
    """Compare two arrays of one shape, both of floats, complex numbers, integers or bools.

    `recorded` is their dtype before they were saved.
    """
    dtype = recorded or judged(golden, target)
    finite, equal, nan, inf = _not_finite(golden, target)
    b, a = _wide(golden)[finite], _wide(target)[finite]
    n = int(finite.sum())
    e = np.abs(a - b)
    e_wide = np.array(e.tolist() if e.dtype == object else e, dtype=np.longdouble)
    size = np.array([abs(x) for x in b] if b.dtype == object else np.abs(b), dtype=np.longdouble)
    other = np.array([abs(x) for x in a] if a.dtype == object else np.abs(a), dtype=np.longdouble)
    products = (a * np.conj(b)).real if a.dtype.kind == "c" else a * b
    product = np.array(products.tolist() if products.dtype == object else products, dtype=np.longdouble).sum()
    squares, golden_squares, target_squares = (e_wide**2).sum(), (size**2).sum(), (other**2).sum()
    nonzero = size != 0
    ratios = np.full(n, np.nan, dtype=np.longdouble)
    ratios[nonzero] = e_wide[nonzero] / size[nonzero]
    ratios[nonzero & (e_wide > np.finfo(np.float64).max)] = np.inf
    all_errors = np.full(finite.size, np.nan, dtype=np.longdouble)
    all_ratios = all_errors.copy()
    all_errors[finite], all_ratios[finite] = e_wide, ratios

    n_equal, n_bad = int(equal.sum()), int(nan.sum() + inf.sum())
    total = finite.size
    rtol, atol = TOLERANCES.get(dtype, (0.0, 0.0))
    close = _count(e_wide, np.longdouble(atol) + np.longdouble(rtol) * size)
    shares = [_count(e_wide, np.longdouble(share) * size) for share in (1e-3, 5e-3)]
    within = [((low + n_equal) / total, (high + n_equal) / total) if total else (1.0, 1.0) for low, high in shares]
    empty = float("nan") if n_bad else 0.0
    cosine: Any = 1.0
    if golden_squares > 0 and target_squares > 0:
        cosine = product / np.sqrt(golden_squares) / np.sqrt(target_squares)
    elif golden_squares > 0 or target_squares > 0:
        cosine = 0.0
    rel_l2: Any = 0.0
    if squares > 0:
        rel_l2 = np.sqrt(squares) / np.sqrt(golden_squares) if golden_squares > 0 else np.inf
    return Metrics(
        max_abs_err=float(e_wide.max()) if n else empty,
        max_rel_err=float(np.nanmax(ratios)) if nonzero.any() else (0.0 if n else empty),
        mean_abs_err=float(e_wide.sum() / n) if n else empty,
        rmse=float(np.sqrt(squares / n)) if n else empty,
        euclidean=float(np.sqrt(squares)) if n else empty,
        cosine=float(cosine) if n or not n_bad else empty,
        rel_l2=float(rel_l2) if n else empty,
        max_ulp=_max_ulp(golden, target, finite, dtype),
        mismatched=(n - close[1] + n_bad, n - close[0] + n_bad),
        within_1e3=within[0],
        within_5e3=within[1],
        nan_mismatched=int(nan.sum()),
        inf_mismatched=int(inf.sum()),
        n_finite=n,
        errors=all_errors,
        ratios=all_ratios,
    )
