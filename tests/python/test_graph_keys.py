"""Graph keys: equal for the same graph under other names or in another process, different for another graph."""

import subprocess
import sys
from typing import Any

import pytest
import torch

from captured import catch
from fxtap import _core

# Symbols are named after the sources of sizes, so other variable names give other symbols and another order of terms.
SOURCE = """
def forward({a}, {b}, {c}):
    {t} = {a} @ {b}
    {u} = torch.cat([{t}, {c}], dim=0)
    return {u}.reshape(-1)[: {t}.shape[0] + {b}.shape[1]] * ({a}.shape[1] * {c}.shape[0] - {b}.shape[1])
"""
NAMES = [("a", "b", "c", "t", "u"), ("x", "weight", "past", "y", "z"), ("zz", "q", "k", "value", "attention")]


def keys(source: str, *shapes: tuple[int, ...], dtype: torch.dtype = torch.float32) -> tuple[str, str]:
    namespace: dict[str, Any] = {"torch": torch}
    exec(compile(source, "model.py", "exec"), namespace)
    torch._dynamo.reset()
    with torch.no_grad():
        inputs = tuple(torch.ones(shape, dtype=dtype) for shape in shapes)
        (captured,) = catch(namespace["forward"], [inputs], dynamic=True)
    record = _core.record(captured.gm)
    return record.strict_key, record.structural_key


def keys_named(names: tuple[str, ...], source: str = SOURCE, **options: Any) -> tuple[str, str]:
    return keys(source.format(**dict(zip("abctu", names, strict=True))), (3, 4), (4, 5), (6, 5), **options)


def test_variables_do_not_count() -> None:
    all_keys = [keys_named(names) for names in NAMES]
    assert len(set(all_keys)) == 1
    strict, structural = all_keys[0]
    assert strict != structural


def test_symbols_were_renamed() -> None:
    """Check the premise of the test above: torch names the symbols of the three differently."""
    symbols = []
    for names in NAMES:
        namespace: dict[str, Any] = {"torch": torch}
        exec(compile(SOURCE.format(**dict(zip("abctu", names, strict=True))), "model.py", "exec"), namespace)
        torch._dynamo.reset()
        with torch.no_grad():
            inputs = (torch.ones(3, 4), torch.ones(4, 5), torch.ones(6, 5))
            (captured,) = catch(namespace["forward"], [inputs], dynamic=True)
        symbols.append(
            [str(n.meta["val"]) for n in captured.gm.graph.nodes if isinstance(n.meta.get("val"), torch.SymInt)]
        )
    assert symbols[0] != symbols[1] and symbols[1] != symbols[2]


PROCESS = """
import sys
sys.path.insert(0, {path!r})
from test_graph_keys import NAMES, keys_named
print(*keys_named(NAMES[1]))
"""


def test_another_process() -> None:
    script = PROCESS.format(path=str(__file__).rpartition("/")[0])
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, text=True)
    assert tuple(done.stdout.split()) == keys_named(NAMES[0])


@pytest.mark.parametrize(
    ("old", "new", "is_structural"),
    [
        ("{a} @", "({a} + 1) @", True),  # one more operator
        ("cat([{t}, {c}]", "cat([{c}, {t}]", True),  # other wiring
        ("{a}.shape[1] * {c}.shape[0]", "{a}.shape[1] * {c}.shape[0] * 2", None),  # another symbolic number
        ("dim=0", "dim=-2", False),  # a constant
    ],
)
def test_changes_count(old: str, new: str, is_structural: bool | None) -> None:
    assert old in SOURCE
    strict, structural = keys_named(NAMES[0])
    other_strict, other_structural = keys_named(NAMES[0], SOURCE.replace(old, new))
    assert strict != other_strict
    if is_structural is not None:
        assert (structural != other_structural) == is_structural


def test_dtype_is_no_structure() -> None:
    strict, structural = keys_named(NAMES[0])
    other_strict, other_structural = keys_named(NAMES[0], dtype=torch.bfloat16)
    assert strict != other_strict
    assert structural == other_structural
