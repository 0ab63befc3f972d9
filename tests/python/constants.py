"""Constants that a graph may contain, and a comparison of two constants."""

import math
from typing import Any

import torch


def same(a: Any, b: Any) -> bool:
    """Return whether two constants are equal bit for bit, with equal types."""
    if type(a) is not type(b):
        return False
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and a.shape == b.shape and torch.equal(a.nan_to_num(), b.nan_to_num())
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (float, complex)):
        return repr(a) == repr(b)
    return bool(a == b)


CONSTANTS = [
    0.9,
    float(torch.tensor(0.9)),
    math.inf,
    -math.inf,
    math.nan,
    -0.0,
    5e-324,
    1e16,
    complex(-0.0, math.inf),
    complex(1, -0.0),
    0,
    -1,
    2**63,
    -(2**200),
    10**4000 + 7,
    -(10**4200),
    True,
    None,
    ...,
    slice(None, -1, 2),
    "",
    "it's",
    "a \"b\" 'c'",
    "\x00\n\r\t\x7f\u2028\ufeff\xad",
    "\ud800",
    "\udcff",
    "é中😀",
    "x" * 10000,
    '");import os;("',
    "\\N{DASH} \\",
    b"\xff\"\n'",
    b"",
    bytes(range(256)),
    torch.float32,
    torch.bfloat16,
    torch.float8_e4m3fn,
    torch.device("cpu"),
    torch.device("cuda", 3),
    torch.strided,
    torch.channels_last,
    [1, [2.5, ()]],
    (1,),
    {"a": [1], "it's": {"b": None}},
]
