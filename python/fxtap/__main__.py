"""`python -m fxtap`: run an unedited script with fxtap as its backend; everything else is the fxtap program's."""

from __future__ import annotations

import functools
import importlib.util
import os
import runpy
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import torch

from .backend import fxtap
from .config import CompilerConfig
from .distributed import is_launched, run_compare
from .environment import apply_environment

__all__ = ["become_default", "find_program", "main", "run_script"]

USAGE = """\
usage: python -m fxtap run-script SCRIPT [ARGS...]      run a script with fxtap as torch.compile's default backend
       python -m fxtap run-script -m MODULE [ARGS...]   the same for a module
       python -m fxtap COMMAND [ARGS...]                as the fxtap program: fxtap COMMAND [ARGS...]
       torchrun ... -m fxtap compare [ARGS...]          fxtap compare, the work split among the processes
run-script is configured by the environment: FXTAP_TYPE, FXTAP_PATH, FXTAP_FILTER, ... (docs/usage.md)
"""


def become_default() -> None:
    """Make fxtap the backend of every torch.compile that names none, or "inductor"; others keep theirs.

    Options meant for inductor are left aside, its `mode` is used where a graph is not dumped.
    """
    original = torch.compile

    def ours(gm: Any, example_inputs: Any, **kwargs: Any) -> Callable[..., Any]:
        return fxtap(gm, example_inputs, mode=kwargs.get("mode"))

    ours.__name__ = "fxtap"  # as torch calls it in messages

    @functools.wraps(original)
    def compile_with_fxtap(model: Any = None, *, backend: Any = None, **kwargs: Any) -> Any:
        if backend is None or backend == "inductor":
            backend, kwargs["options"] = ours, None
        return original(model, backend=backend, **kwargs)

    torch.compile = compile_with_fxtap


def is_module(name: str) -> bool:
    """Whether there is a module of that name; its parents are imported."""
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def complaint(target: str, as_module: bool) -> str | None:
    """Return why nothing can be run, in a line, or None."""
    if not (is_module(target) if as_module else Path(target).exists()):
        return f"no such {'module' if as_module else 'script'}: {target}"
    try:
        apply_environment(CompilerConfig())
    except ValueError as error:
        return str(error)
    return None


def run_script(arguments: list[str]) -> int:
    """Run a script, or a module after -m, as `python` would, with fxtap as the default backend.

    Returns
    -------
    int
        The exit status: 0, or 2 where there is nothing to run or a variable has an illegal value. What the script
        raises is passed through.
    """
    as_module = arguments[:1] == ["-m"]
    if as_module:
        arguments = arguments[1:]
    if not arguments:
        print(USAGE, end="", file=sys.stderr)
        return 2
    target = arguments[0]
    sys.path[0] = str(Path.cwd() if as_module else Path(target).resolve().parent)
    problem = complaint(target, as_module)
    if problem is not None:
        print(f"fxtap: {problem}", file=sys.stderr)
        return 2
    become_default()
    sys.argv = list(arguments)
    if as_module:
        runpy.run_module(target, run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(str(Path(target).absolute()), run_name="__main__")  # as python: source files are absolute
    return 0


def find_program() -> str | None:
    """Return the path of the fxtap program: beside the interpreter, else on PATH; None where it is not."""
    return shutil.which("fxtap", path=str(Path(sys.executable).parent)) or shutil.which("fxtap")


def need_program() -> str:
    """Return the path of the fxtap program, or end with a line."""
    program = find_program()
    if program is None:
        sys.exit("fxtap: the fxtap program is neither beside python nor on PATH")
    return program


def run_program(arguments: list[str]) -> NoReturn:
    """Become the fxtap program."""
    program = need_program()
    os.environ.setdefault("FXTAP_PYTHON", sys.executable)
    sys.stdout.flush()
    os.execv(program, ["fxtap", *arguments])


def main(arguments: list[str]) -> int:
    """Run a command line; return the exit status."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE, end="", file=sys.stdout if arguments else sys.stderr)
        return 0 if arguments else 2
    if arguments[0] == "run-script":
        return run_script(arguments[1:])
    if arguments[0] == "compare" and is_launched():
        return run_compare(need_program(), arguments[1:])
    run_program(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
