"""`fxtap repro`: one recorded operator call as a folder with a script that needs torch and NumPy alone.

Nothing of a dump is trusted. The script's code is `script.py`; what is written into it is the name of an operator that
torch has registered, names made of digits and the schema's words, and literals as Python prints them.
"""

from __future__ import annotations

import argparse
import cmath
import json
import math
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..paths import expand
from ..reading import DumpReader, GraphReader, _hint, open_dump
from .arguments import Saved, quiet_read_only_buffers, restride
from .calls import Call, Selection, find_calls
from .command import describe_error
from .indices import chosen_dimension
from .operators import NotReplayedError, Operator
from .random_checks import is_random
from .reductions import reduction_length
from .replay import CANCELLING

__all__ = ["main", "write_repro"]

README = (
    "`python repro.py` says whether the recorded result of `{}` is right, `python repro.py --device npu:0` judges what "
    "a device computes (PyTorch and NumPy are enough; exit status 0 right, 1 wrong).\n"
)

_BEGIN, _END = "# ---- the call ----\n", "# ---- the judgement ----\n"


def _name(io: str, position: str) -> str:
    """Return the name of a tensor's file and variable."""
    name = f"{io.lower()}_{position.replace('.', '_')}"
    if not re.fullmatch(r"(input|output|inout)_\w+", name, re.ASCII):
        raise NotReplayedError("an argument with an invalid name")
    return name


class Writer:
    """Writes a call as Python code; collects its tensors."""

    def __init__(self, call: Call) -> None:
        self.operator = _find(call)
        self.arguments = call.arguments()
        if is_random(self.operator, self.arguments):
            raise NotReplayedError("random")
        self.inputs: dict[str, Saved] = {}
        self.results = {call.slots.place(row): call.saved(row) for row in call.results}
        if not self.results:
            raise NotReplayedError("none of its results was dumped")

    def tensors(self) -> Iterator[tuple[str, Saved]]:
        """Return names and tensors of inputs and results."""
        yield from self.inputs.items()
        for (io, position), saved in self.results.items():
            yield _name(io, position), saved

    def value(self, value: Any) -> str:
        """Return the code of an argument."""
        if isinstance(value, Saved):
            name = _name("input", value.position)
            self.inputs[name] = value
            return name
        if isinstance(value, (list, tuple)):
            return f"[{', '.join(self.value(item) for item in value)}]"
        if isinstance(value, torch.dtype):
            return f"dtype({value})"
        if isinstance(value, torch.device):
            return "device"
        if isinstance(value, bool) or value is None:
            return repr(value)
        if isinstance(value, float):
            return f"number({value!r})" if math.isfinite(value) else f'float("{value!r}")'
        if isinstance(value, complex) and not cmath.isfinite(value):
            return f'complex("{value!r}")'
        if isinstance(value, (int, str, complex, torch.layout, torch.memory_format)):
            return repr(value) if isinstance(value, str) else str(value)
        raise NotReplayedError("an argument that is not recorded")

    def _results(self) -> str:
        """Return the code of the results by name."""
        overload = self.operator.function
        returns = overload._schema.returns if isinstance(overload, torch._ops.OpOverload) else ()
        has_many = len(returns) > 1 or any("[]" in str(item.type) or "List" in str(item.type) for item in returns)
        found = []
        for io, position in self.results:
            steps = position.split(".") if has_many else []
            code = "result" + "".join(f"[{int(step)}]" for step in steps)
            found.append(f'"{_name(io, position)}": {code if io == "OUTPUT" else _name("input", position)}')
        return f"{{{', '.join(found)}}}"

    def _strides(self) -> dict[str, tuple[int, ...]]:
        """Return the strides of inputs that a loaded array does not have."""
        found = {}
        for name, saved in self.inputs.items():
            plain = saved.in_file
            tensor = plain if saved.strides is None else restride(plain, saved.strides)
            if tensor.stride() != plain.stride() and 0 not in tensor.stride():
                found[name] = tensor.stride()
        return found

    def code(self) -> str:
        """Return the part of the script that is about this call."""
        arguments = [self.value(value) for value in self.arguments.args]
        names = {name for name, _ in self.operator.arguments}
        for name, value in self.arguments.kwargs.items():
            if name not in names:
                raise NotReplayedError("an argument that the operator does not have")
            arguments.append(f"{name}={self.value(value)}")
        tensors = [saved.in_file for saved in self.arguments.tensors]
        terms = {
            _name(*slot): reduction_length(self.operator, tensors, saved.in_file)
            for slot, saved in self.results.items()
        }
        dtypes = ",\n".join(f'    "{name}": {saved.dtype}' for name, saved in self.tensors())
        lines = "".join(f'    {name} = x("{name}")\n' for name in self.inputs)
        return f"""
OPERATOR = torch.ops.{self.operator.function}
DTYPES = {{  # of the tensors; bfloat16 and the like are saved as float32
{dtypes},
}}
STRIDES: dict[str, tuple[int, ...]] = {self._strides()}  # of inputs that are not contiguous
TERMS = {json.dumps(terms)}  # how many terms are summed up in one element of a result
CHOOSES: Any = {chosen_dimension(self.operator, self.arguments)}  # for positions, as of topk: dimension and keepdim
IS_POINTWISE = {self.operator.is_elementwise}
CANCELS = {self.operator.name in CANCELLING}
IN_FLOAT64 = {not self.operator.is_native}  # False: the operator's meaning depends on the dtype


def call(x: Callable[[str], Any], number: Any, dtype: Any, device: Any) -> dict[str, Any]:
    \"\"\"Call the operator with its recorded arguments; return its results by name.\"\"\"
{lines}    result = OPERATOR({", ".join(arguments)})
    return {self._results()}


"""


def _find(call: Call) -> Operator:
    operator = call.operator()
    if not isinstance(operator.function, torch._ops.OpOverload):
        raise NotReplayedError("not an operator of torch")
    if not operator.is_unique:
        raise NotReplayedError("several results are right")
    return operator


def _find_graph(dump: DumpReader, node: str, rank: int | None, graph: int | None) -> GraphReader:
    """Return the first graph that has a node."""
    chosen = [g for g in dump.graphs if rank in (None, g.rank.rank) and graph in (None, g.graph)]
    if not chosen:
        raise LookupError(f"no such rank or graph in {dump.path}")
    for candidate in chosen:
        if any(found.name == node for found in candidate.nodes):
            return candidate
    raise LookupError(f"no node {node!r} in {dump.path}{_hint(node, (n.name for g in chosen for n in g.nodes))}")


def _find_call(dump: DumpReader, node: str, rank: int | None, graph: int | None, step: int | None) -> Call:
    found = _find_graph(dump, node, rank, graph)
    steps = [entry.step for entry in found.steps if entry.state == "whole" and step in (None, entry.step)]
    if not steps:
        raise LookupError(f"graph_{found.graph} has no complete step" + ("" if step is None else f" {step}"))
    for call in find_calls(dump, Selection(found.rank.rank, found.graph, steps[-1])):
        if call.node.name == node:
            return call
    raise LookupError(f"{node} was not dumped in step {steps[-1]} of graph_{found.graph}")


def _save(folder: Path, name: str, saved: Saved) -> None:
    np.save(folder / f"{name}.npy", saved.in_file.numpy(), allow_pickle=False)


def write_repro(
    dump: DumpReader, node: str, folder: Path | None = None, *, rank: int | None = None, graph: int | None = None,
    step: int | None = None, force: bool = False,
) -> Path:  # fmt: skip
    """Write one operator call as a folder that runs by itself; nothing is executed.

    Parameters
    ----------
    dump, node, rank, graph, step
        The call: by default the first graph that has the node, and its latest step.
    folder
        Created; by default "repro-NODE" in the working directory.
    force
        Write into a folder that is not empty.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    LookupError
        There is no such call.
    NotReplayedError
        It cannot be run again; the message is the reason.
    FileExistsError
        The folder is not empty and `force` is false.
    """
    quiet_read_only_buffers()
    call = _find_call(dump, node, rank, graph, step)
    writer = Writer(call)
    code = writer.code()
    target = Path("repro-" + re.sub(r"[^\w.-]", "_", node, flags=re.ASCII)) if folder is None else folder
    if target.exists() and not force and any(target.iterdir()):
        raise FileExistsError(f"'{target}' already exists; use --force to write into it")
    target.mkdir(parents=True, exist_ok=True)
    for name, saved in writer.tensors():
        _save(target, name, saved)
    template = Path(__file__).with_name("script.py").read_text("utf-8")
    before, _, rest = template.partition(_BEGIN)
    (target / "repro.py").write_text(before + _BEGIN + code + _END + rest.partition(_END)[2], "utf-8")
    (target / "README.md").write_text(README.format(writer.operator.function), "utf-8")
    return target


def main(arguments: Sequence[str]) -> int:
    """Write what the command line asks for; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m fxtap write-repro", allow_abbrev=False)
    for name in ("run", "rank", "graph", "step"):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--folder")
    parser.add_argument("--force", action="store_true")
    parser.add_argument("dump")
    parser.add_argument("node")
    options = parser.parse_args(arguments)
    try:
        folder = write_repro(
            open_dump(options.dump, run=options.run or 0), options.node,
            None if options.folder is None else Path(expand(options.folder)),
            rank=options.rank, graph=options.graph, step=options.step, force=options.force,
        )  # fmt: skip
    except NotReplayedError as error:
        print(f"fxtap: {ascii(options.node)[1:-1]} cannot be run again: {error}", file=sys.stderr)
        return 2
    except (OSError, LookupError, ValueError, MemoryError) as error:
        print(f"fxtap: {describe_error(error)}", file=sys.stderr)
        return 2
    print(f"Wrote {folder}")
    return 0
