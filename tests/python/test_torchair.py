"""The files that TorchAir wrote for 14 models, and, for four of them, equal values.

The reference was recorded by running TorchAir (tests/data/torchair). These differences are intended:

- None is recorded without a file; TorchAir pickles it.
- A list with a tensor in it expands to INPUT.I.J even if it begins with None; TorchAir turns it into text.
- Keyword arguments are saved under their names; TorchAir omits them.
- A Python function is named operator.mul; TorchAir writes <built-in function mul>.
- CPU attention is an ATen operator and is dumped; TorchAir has no lowering for it and skips it.
"""

import re
import tarfile
from collections import Counter
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

import fxtap as torchair
from captured import load_models

DATA = Path(__file__).parent.parent / "data" / "torchair"
CPU_ATTENTION = "aten._scaled_dot_product_flash_attention_for_cpu.default"
STAMP = re.compile(r"\.\d{20}\.npy$")

Files = dict[tuple[str, str], Path]


MODELS = load_models()


def measured_names() -> dict[str, list[tuple[str, str, str, str, bool]]]:
    """Return, for each model: folder, name without time stamp, dtype, shape, pickled."""
    tables = {}
    with tarfile.open(DATA / "names.tar.xz") as archive:
        for member in archive.getmembers():
            stream = archive.extractfile(member)
            assert stream is not None
            rows = [line.rstrip("\n").split("\t") for line in stream.read().decode().splitlines()]
            tables[member.name.split("/")[0]] = [
                (row[0], row[1], row[2], row[3], row[4:] == ["pickled"]) for row in rows if not row[0].startswith("#")
            ]
    return tables


MEASURED = measured_names()


def run_model(name: str, root: Path) -> Files:
    """Dump a model as the reference was dumped; return its files by folder and name without time stamp."""
    case = MODELS.get(name)
    config = torchair.CompilerConfig()
    config.debug.data_dump.type = "npy"
    config.debug.data_dump.path = root
    backend = torchair.get_npu_backend(compiler_config=config)
    model = torch.compile(case.module, backend=backend, dynamic=case.dynamic, fullgraph=case.fullgraph)
    kernels: AbstractContextManager[Any] = sdpa_kernel(SDPBackend.MATH) if "math" in name else nullcontext()
    with kernels, nullcontext() if case.train else torch.no_grad():
        for step in case.steps:
            for index, dim in case.mark_dynamic:
                torch._dynamo.mark_dynamic(step[index], dim)
            result = model(*step)
            if case.train:
                result.backward()
    return files_of(root)


def files_of(root: Path) -> Files:
    """Number the folders as if the model's first graph were the first of the process."""
    paths = sorted(root.rglob("*.npy"))
    numbers = sorted({int(path.parent.parent.name.removeprefix("graph_")) for path in paths})
    rank = {f"graph_{number}": f"graph_{place}" for place, number in enumerate(numbers, 1)}
    files = {}
    for path in paths:
        graph, step = path.parent.parent.name, path.parent.name
        folder = f"{path.parent.parent.parent.name}/{rank[graph]}/{step}"
        key = (folder, STAMP.sub("", path.name))
        assert key not in files, f"two files of one name: {key}"
        files[key] = path
    return files


def ours(name: str) -> str:
    """Convert a TorchAir name to fxtap's."""
    return re.sub(r"<built-in function (\w+)>", lambda m: function_name(m[1]), name)


def function_name(name: str) -> str:
    return f"math.{name}" if name in ("floor", "ceil", "trunc") else f"operator.{name}"


def is_extra(name: str) -> bool:
    """Return whether TorchAir is known to omit a file."""
    node, _, place = name.partition(".INPUT." if ".INPUT." in name else ".OUTPUT.")
    return node.endswith(CPU_ATTENTION) or not place.split(".")[0].isdecimal()


@pytest.mark.parametrize("name", sorted(MEASURED))
def test_same_names_dtypes_and_shapes(name: str, tmp_path: Path) -> None:
    files = run_model(name, tmp_path)
    expanded = 0
    wanted: dict[tuple[str, str], tuple[str, str]] = {}
    for folder, stem, dtype, shape, pickled in MEASURED[name]:
        if pickled:
            assert (folder, ours(stem)) not in files, f"{stem} is None and has no file"
        elif dtype.startswith("<U"):  # a list that begins with None
            assert (folder, f"{stem}.1") in files and (folder, f"{stem}.0") not in files
            expanded += 1
        else:
            wanted[folder, ours(stem)] = (dtype, shape)
    assert not wanted.keys() - files.keys()
    extra = [key for key in files.keys() - wanted.keys() if not is_extra(key[1])]
    assert len(extra) == expanded, extra
    for key, (dtype, shape) in wanted.items():
        array = np.load(files[key], allow_pickle=False, mmap_mode="r")
        assert (str(array.dtype), str(array.shape)) == (dtype, shape), key


@pytest.mark.parametrize("name", sorted(path.name.removesuffix(".tar.gz") for path in (DATA / "dumps").iterdir()))
def test_same_values(name: str, tmp_path: Path) -> None:
    with tarfile.open(DATA / "dumps" / f"{name}.tar.gz") as archive:
        archive.extractall(tmp_path / "measured", filter="data")
    measured = files_of(tmp_path / "measured")
    files = run_model(name, tmp_path / "ours")
    counts: Counter[str] = Counter()
    for key, path in measured.items():
        with path.open("rb") as stream:
            version = np.lib.format.read_magic(stream)
            assert version == (1, 0)
            _, _, dtype = np.lib.format.read_array_header_1_0(stream)
        if dtype.hasobject or dtype.kind == "U":
            counts["not a tensor"] += 1
            continue
        golden = np.load(path)
        array = np.load(files[key[0], ours(key[1])], allow_pickle=False)
        assert array.dtype == golden.dtype and array.shape == golden.shape
        assert array.flags.f_contiguous == golden.flags.f_contiguous
        if array.tobytes() == golden.tobytes():
            counts["equal"] += 1
            continue
        assert dtype.kind == "f", key
        np.testing.assert_allclose(array, golden, rtol=1e-5, atol=1e-6, err_msg=str(key))
        counts["near"] += 1  # recorded on another processor, whose kernels may round differently
    assert counts["equal"] > 20 and counts["near"] < counts["equal"] and counts["not a tensor"] <= 3


def test_dynamic_shapes_name_python_functions(tmp_path: Path) -> None:
    """TorchAir's dynamic SDPA models have SymInt arithmetic; fxtap's file names are valid on every file system."""
    files = run_model("symops", tmp_path)
    targets = {stem.split("-", 1)[1].split(".INPUT")[0] for _, stem in files if ".INPUT" in stem}
    assert "operator.mul" in targets
    assert not [target for target in targets if "<" in target]
