"""All metrics of random pairs, over all dtypes, shapes, orders and special values, compared with an oracle."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import fxtap
from graphs import Dumped, build
from oracle import FROM_DUMPS, TOLERANCES, measure

Array = NDArray[Any]

FLOATS = ("float16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
SHAPES = [(), (0,), (3, 0, 2), (1,), (7,), (64,), (5, 13), (2, 3, 4), (257,), (33, 65), (4, 1, 3, 2), (4099,)]


def special(dtype: np.dtype[Any]) -> list[Any]:
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return [info.min, info.max, 0, 1]
    if dtype.kind == "c":
        return [complex(np.nan, 1), complex(np.inf, -2), complex(0.0, -0.0), complex(-np.inf, np.nan), 3 + 4j]
    info_f = np.finfo(dtype)
    return [np.nan, np.inf, -np.inf, 0.0, -0.0, info_f.max, info_f.min, info_f.tiny, info_f.smallest_subnormal]


def values(rng: np.random.Generator, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        wide = rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
        small = rng.integers(max(info.min, -50), 50, shape).astype(dtype)
        return np.asarray(wide if rng.random() < 0.5 else small)
    scale = 10.0 ** rng.integers(-4, 4)
    drawn = rng.standard_normal(shape) * scale
    if dtype.kind == "c":
        drawn = drawn + 1j * rng.standard_normal(shape) * scale
    return np.asarray(drawn).astype(dtype)


def sprinkle(rng: np.random.Generator, array: Array) -> Array:
    """Insert special values at some positions."""
    if array.size and array.dtype.kind != "b" and rng.random() < 0.4:
        flat = array.reshape(-1).copy()
        for _ in range(int(rng.integers(1, 6))):
            flat[rng.integers(flat.size)] = rng.choice(np.array(special(array.dtype), dtype=array.dtype))
        array = flat.reshape(array.shape)
    return array


def change(rng: np.random.Generator, golden: Array, dtype: np.dtype[Any]) -> Array:
    """Return a target for a golden array: equal, nearly equal, different in one element, or unrelated."""
    kind = rng.integers(5)
    with np.errstate(all="ignore"):
        target = golden.astype(dtype)
        if kind == 0:
            return target
        if kind == 1:
            return sprinkle(rng, values(rng, dtype, golden.shape))
        if kind == 2 or dtype.kind in "biu":
            flat = target.reshape(-1).copy()
            if flat.size:
                flat[rng.integers(flat.size)] = values(rng, dtype, ())
            return sprinkle(rng, flat.reshape(golden.shape))
        noise = 1 + rng.standard_normal(golden.shape) * 10.0 ** rng.integers(-8, 0)
        return np.asarray(target * noise).astype(dtype)


def random_pair(rng: np.random.Generator) -> tuple[Array, Array]:
    family = rng.choice(np.array(["bool", "float", "float", "complex", "integer"]))
    names = {"bool": ("bool",), "float": FLOATS, "complex": COMPLEX, "integer": INTEGERS}[str(family)]
    first = np.dtype(str(rng.choice(np.array(names))))
    second = first if rng.random() < 0.7 else np.dtype(str(rng.choice(np.array(names))))
    shape = SHAPES[rng.integers(len(SHAPES))]
    golden = sprinkle(rng, values(rng, first, shape))
    return golden, change(rng, golden, second)


def stored(rng: np.random.Generator, array: Array) -> Array:
    """Return the same values in another memory order or byte order."""
    if array.ndim and rng.random() < 0.3:  # asfortranarray turns 0-d into 1-d
        array = np.asfortranarray(array)
    if rng.random() < 0.2:
        array = array.astype(array.dtype.newbyteorder(">"))
    return array


def near(found: float, expected: float, relative: float, absolute: float = 0.0) -> bool:
    if math.isnan(expected) or math.isinf(expected):
        return (math.isnan(found) and math.isnan(expected)) or found == expected
    return abs(found - expected) <= relative * abs(expected) + absolute


def verdict(golden: Array, target: Array, pair: fxtap.comparison.Pair) -> str:
    if pair.identical_bits or (pair.nan_mismatched + pair.inf_mismatched == 0 and pair.max_abs_err == 0):
        return "same"
    return "different" if pair.mismatched else "close"


def check(golden: Array, target: Array, pair: fxtap.comparison.Pair, recorded: str | None = None) -> None:
    with np.errstate(all="ignore"):
        expected = measure(golden, target, recorded)
    complex_ulps = 4 if golden.dtype.kind == "c" else 1  # a modulus is rounded as well
    assert pair.count == golden.size
    assert near(pair.max_abs_err, expected.max_abs_err, 1e-15 * complex_ulps)
    assert near(pair.max_rel_err, expected.max_rel_err, 1e-15 * complex_ulps)
    for name in ("mean_abs_err", "rmse", "euclidean", "rel_l2"):
        assert near(getattr(pair, name), getattr(expected, name), 1e-13), name
    assert near(pair.cosine, expected.cosine, 0, 1e-12)
    assert near(pair.max_ulp, expected.max_ulp, 1e-15)
    assert expected.mismatched[0] <= pair.mismatched <= expected.mismatched[1]
    for name in ("within_1e3", "within_5e3"):
        low, high = getattr(expected, name)
        assert low - 1e-15 <= getattr(pair, name) <= high + 1e-15, name
    assert (pair.nan_mismatched, pair.inf_mismatched) == (expected.nan_mismatched, expected.inf_mismatched)
    n_shown = min(5, pair.nan_mismatched + pair.inf_mismatched)
    if expected.max_abs_err > 0:
        assert near(float(expected.errors[pair.max_abs_index]), expected.max_abs_err, 1e-15 * complex_ulps)
        assert n_shown == 5 or pair.worst[n_shown][0] == pair.max_abs_index
    assert not any(np.isfinite(values).all() for _, *values in pair.worst[:n_shown])
    if expected.max_rel_err > 0:
        assert near(float(expected.ratios[pair.max_rel_index]), expected.max_rel_err, 1e-15 * complex_ulps)
    same_bits = golden.dtype == target.dtype and golden.tobytes() == target.tobytes()
    assert pair.identical_bits == same_bits
    assert pair.verdict == verdict(golden, target, pair)


def check_many(root: Path, seed: int, n: int) -> None:
    """Write n pairs to two folders, compare the folders, and check every pair."""
    rng = np.random.default_rng(seed)
    pairs = {}
    (root / "golden").mkdir(parents=True)
    (root / "target").mkdir()
    for i in range(n):
        golden, target = random_pair(rng)
        name = f"{i:05}"
        np.save(root / "golden" / f"{name}.npy", stored(rng, golden))
        np.save(root / "target" / f"{name}.npy", stored(rng, target))
        pairs[name] = golden, target
    report = fxtap.compare(root / "golden", root / "target")
    found = {Path(pair.golden_path).stem: pair for pair in report.pairs}
    assert found.keys() == pairs.keys()
    failures = []
    for name, (golden, target) in pairs.items():
        try:
            check(golden, target, found[name])
        except AssertionError as error:
            error.add_note(f"pair {name} of seed {seed}: {golden.dtype} {target.dtype} {golden.shape} {found[name]!r}")
            failures.append(str(error).splitlines()[0] + " | " + error.__notes__[0])
    assert not failures, "\n".join(failures[:40])


def test_random_pairs(tmp_path: Path) -> None:
    check_many(tmp_path, 1, 600)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10))
def test_many_random_pairs(tmp_path: Path, seed: int) -> None:
    check_many(tmp_path, 100 + seed, 1000)


@pytest.mark.parametrize("name", FROM_DUMPS)
def test_dtypes_that_numpy_has_not(name: str, tmp_path: Path) -> None:
    """Values saved as float32 are judged by the dtype in the index."""
    rng = np.random.default_rng(len(name))
    dtype = getattr(torch, name)
    gm = build(lambda graph, x: graph.call_function(torch.ops.aten.clone.default, (x,)), "x")
    for shape in ((), (0,), (40,), (13, 21)):
        golden = torch.from_numpy(sprinkle(rng, values(rng, np.dtype("float32"), shape))).to(dtype)
        noise = torch.from_numpy(np.asarray(1 + rng.standard_normal(shape) * 0.2, dtype=np.float32))
        target = (golden.float() * noise).to(dtype)
        for side, tensor in (("golden", golden), ("target", target)):
            dumped = Dumped(gm, tmp_path / f"{side}{shape}")
            dumped(tensor)
            dumped.dump.close()
        report = fxtap.compare(tmp_path / f"golden{shape}", tmp_path / f"target{shape}", read_all=True)
        assert [pair.io for pair in report.pairs if pair.count is not None] == ["INPUT", "OUTPUT"]
        for pair in report.pairs[:2]:
            assert (pair.golden_dtype, pair.target_dtype) == (name, name)
            assert pair.rtol == TOLERANCES[name][0]
            check(golden.float().numpy(), target.float().numpy(), pair, name)
