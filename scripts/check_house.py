"""Check the rules of the house: which folder may include which, and the sizes of files and functions.

A folder of ``src`` includes only from itself and from folders above it in docs/design.md's list; programs and
examples include only public headers and their neighbours. A file has at most 600 lines; of all C functions the median
is at most 20 lines, nine in ten are at most 60, none is over 120. Lines of C have at most 120 columns.
"""

from __future__ import annotations

import ast
import re
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ORDER = ["util", "tensor", "graph", "ge", "index", "writer", "reader", "pair", "compare", "report", "verify"]
PUBLIC_ONLY = ("programs", "examples", "python/ext")
MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 120
MAX_COLUMNS = 120
WIDE_FILES = ("src/ge/table.c",)  # a generated table, one entry a line
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def tracked(*patterns: str) -> list[Path]:
    """Files that git knows (or will know), as paths relative to the root."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns]
    out = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [Path(line) for line in out.splitlines() if (ROOT / line).is_file()]


def include_faults(path: Path, text: str) -> list[str]:
    """Lines of ``path`` that include what its folder must not."""
    faults = []
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if match is None or match[1].startswith("fxtap/"):
            continue
        target = match[1].split("/")[0] if "/" in match[1] else None
        if path.as_posix().startswith(PUBLIC_ONLY) and target in ORDER:
            faults.append(f"{path}:{number}: {match[1]} is internal to the library")
        elif path.parts[0] == "src" and target in ORDER:
            if ORDER.index(target) > ORDER.index(path.parts[1]):
                faults.append(f"{path}:{number}: {path.parts[1]} must not include from {target}")
            elif path.parts[1] in ("pair", "compare", "report", "verify") and target in ("index", "writer", "reader"):
                faults.append(f"{path}:{number}: dumps are read through fxtap/reader.h, not through {match[1]}")
        elif path.parts[0] == "include":
            faults.append(f"{path}:{number}: a public header includes {match[1]}")
    return faults


def c_functions(text: str) -> list[tuple[int, int]]:
    """(first line, length) of each function: its body's braces stand alone in the first column."""
    found, start = [], None
    for number, line in enumerate(text.splitlines(), 1):
        if line == "{":
            start = number
        elif line.startswith("}") and start is not None:
            found.append((start, number - start + 1))
            start = None
    return found


def python_functions(text: str) -> list[tuple[int, int]]:
    """(first line, length) of each function of a Python file."""
    nodes = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [(n.lineno, (n.end_lineno or n.lineno) - n.lineno + 1) for n in nodes]


def size_faults(path: Path, text: str, lengths: list[int]) -> list[str]:
    """Faults of size in one file; the lengths of its functions are added to ``lengths``."""
    faults = []
    n_lines = len(text.splitlines())
    if n_lines > MAX_FILE_LINES:
        faults.append(f"{path}: {n_lines} lines, at most {MAX_FILE_LINES}")
    if path.suffix in (".c", ".h") and path.as_posix() not in WIDE_FILES:
        wide = [number for number, line in enumerate(text.splitlines(), 1) if len(line) > MAX_COLUMNS]
        faults += [f"{path}:{number}: over {MAX_COLUMNS} columns" for number in wide]
    if path.suffix == ".js":
        return faults
    functions = python_functions(text) if path.suffix == ".py" else c_functions(text)
    for first, length in functions:
        lengths.append(length)
        if length > MAX_FUNCTION_LINES:
            faults.append(f"{path}:{first}: a function of {length} lines, at most {MAX_FUNCTION_LINES}")
    return faults


def distribution_faults(lengths: list[int], what: str) -> list[str]:
    """Faults in the distribution of function lengths."""
    if len(lengths) < 2:
        return []
    median = statistics.median(lengths)
    ninth = statistics.quantiles(lengths, n=10)[-1]
    print(f"house: {len(lengths)} {what} functions, median {median:.0f} lines, nine in ten under {ninth:.0f}")
    faults = []
    if median > 20:
        faults.append(f"{what}: the median function has {median:.0f} lines, at most 20")
    if ninth > 60:
        faults.append(f"{what}: the ninth decile of function lengths is {ninth:.0f}, at most 60")
    return faults


def main() -> int:
    """Print every fault; the exit status says whether there was one."""
    faults: list[str] = []
    lengths: dict[str, list[int]] = {"C": [], "Python": []}
    for path in tracked("*.c", "*.h", "*.py", "*.js"):
        text = (ROOT / path).read_text(encoding="utf-8")
        if path.suffix in (".c", ".h"):
            faults += include_faults(path, text)
        if path.parts[0] != "fuzz" or path.suffix != ".py":
            faults += size_faults(path, text, lengths["Python" if path.suffix == ".py" else "C"])
    for what, values in lengths.items():
        faults += distribution_faults(values, what)
    print("\n".join(faults) or "house: in order")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
