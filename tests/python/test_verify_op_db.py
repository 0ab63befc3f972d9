"""Verification over torch's database of operators and samples: no false alarm, but for listed operators."""

import csv
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db

import fxtap
from fxtap import _core
from test_op_db import dumped, samples, traced

EXCEPTIONS = Path(__file__).parent.parent / "data" / "verify-exceptions.tsv"
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def dump_operators(dtype: torch.dtype, root: Path, count: int, part: tuple[int, int] = (0, 1)) -> int:
    """Dump each operator's first samples, as far as they can be traced and run here; return the number of graphs."""
    dump = _core.Dump(str(root))
    graphs = 0
    for op in op_db[part[0] :: part[1]]:
        if dtype not in op.supported_dtypes("cpu"):
            continue
        try:
            torch.manual_seed(0)
            for sample in samples(op, dtype, count):
                dumped(*traced(op, sample), dump)
                graphs += 1
        except Exception:  # cannot be traced, or not run
            continue
    dump.close()
    return graphs


def accused(root: Path) -> Iterator[dict[str, Any]]:
    report = fxtap.verify(root)
    yield from report.wrong


def exceptions() -> dict[tuple[str, str], str]:
    """Return (operator, dtype) -> the numerical reason."""
    with EXCEPTIONS.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t")
        return {(row["operator"], dtype): row["reason"] for row in rows for dtype in row["dtypes"].split(",")}


@pytest.mark.long
@pytest.mark.parametrize("name", DTYPES)
def test_op_db_without_false_alarm(name: str, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graphs = dump_operators(DTYPES[name], tmp_path / "dump", 4)
    assert graphs > 1000
    listed = exceptions()
    found = {(row["target"], row["dtype"]): row["node"] for row in accused(tmp_path / "dump")}
    assert not found.keys() - listed.keys()
