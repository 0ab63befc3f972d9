"""`python -m fxtap`: run an unedited script with fxtap as its backend; other commands run the fxtap program.

The program in turn runs verify-shard and write-repro, which need torch.
"""

from __future__ import annotations

import os
import runpy
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import FrameType
from typing import NoReturn

from .config import CompilerConfig
from .environment import apply_environment
from .paths import is_module

__all__ = ["find_program", "main", "run_script"]

USAGE = """\
usage: python -m fxtap run-script SCRIPT [ARGS...]      run a script with fxtap as torch.compile's default backend
       python -m fxtap run-script -m MODULE [ARGS...]   the same for a module
       python -m fxtap run-script COMMAND [ARGS...]     the same for the Python processes of a command, e.g. torchrun
       python -m fxtap COMMAND [ARGS...]                run the fxtap program: fxtap COMMAND [ARGS...]
       torchrun ... -m fxtap compare [ARGS...]          fxtap compare, with the work split among the processes
       torchrun ... -m fxtap verify [ARGS...]           the same for fxtap verify
The environment configures run-script: FXTAP_TYPE, FXTAP_PATH, FXTAP_FILTER, ... (docs/usage.md)
"""


def find_command(name: str) -> str | None:
    """Return the path of a command to run as a process: not a Python script, or a script of another Python."""
    path = name if Path(name).exists() else shutil.which(name)
    if path is None or Path(path).suffix == ".py" or not os.access(path, os.X_OK) or Path(path).is_dir():
        return None
    with Path(path).open("rb") as file:
        words = os.fsdecode(file.readline(4096)).removeprefix("#!").split()
    python = shutil.which(words[0]) if words and "python" in Path(words[0]).name else None
    is_ours = python is not None and Path(python).parent.resolve() == Path(sys.executable).parent.resolve()
    return None if is_ours else path


def run_command(command: list[str]) -> int:
    """Run a command; return its exit status. Signals are forwarded to it."""
    child = subprocess.Popen(command)

    def send(number: int, _frame: FrameType | None) -> None:
        child.send_signal(number)

    signal.signal(signal.SIGINT, lambda *_: None)  # a terminal also sends it to the command
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, send)
    status = child.wait()
    if status < 0:  # end by the same signal as the command
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return status


def find_problem(target: str, as_module: bool) -> str | None:
    """Return one line that says why nothing can be run, or None."""
    if not (is_module(target) if as_module else Path(target).exists() or shutil.which(target)):
        return f"no such {'module' if as_module else 'script'}: {target}"
    try:
        apply_environment(CompilerConfig())
    except ValueError as error:
        return str(error)
    return None


def prepare_dump() -> None:
    """Set the dump root of every process of the run, and make fxtap its default backend."""
    from .default import become_default, pass_on  # imported late: importing the backend enables its warning at exit
    from .notice import RunWatch

    config = apply_environment(CompilerConfig())
    os.environ["FXTAP_PATH"] = root = config.get("debug.data_dump.path") or str(Path.cwd())
    become_default(RunWatch(Path(root)))
    pass_on()


def run_script(arguments: list[str]) -> int:
    """Run a script, or a module after -m, as `python` would, or a command, with fxtap as the default backend.

    Returns
    -------
    int
        The exit status: 0, that of a command, or 2 if there is nothing to run or a variable has an invalid value.
        Exceptions of the script propagate.
    """
    as_module = arguments[:1] == ["-m"]
    if as_module:
        arguments = arguments[1:]
    if not arguments:
        print(USAGE, end="", file=sys.stderr)
        return 2
    target = arguments[0]
    sys.path[0] = str(Path.cwd() if as_module else Path(target).resolve().parent)
    problem = find_problem(target, as_module)
    if problem is not None:
        print(f"fxtap: {problem}", file=sys.stderr)
        return 2
    prepare_dump()
    command = None if as_module else find_command(target)
    if command is not None:
        return run_command([command, *arguments[1:]])
    sys.argv = list(arguments)
    if as_module:
        runpy.run_module(target, run_name="__main__", alter_sys=True)
    else:
        script = target if Path(target).exists() else str(shutil.which(target))
        sys.path[0] = str(Path(script).resolve().parent)
        runpy.run_path(str(Path(script).absolute()), run_name="__main__")  # absolute, as python makes it
    return 0


def find_program() -> str | None:
    """Return the path of the fxtap program, beside the interpreter or on PATH, or None."""
    return shutil.which("fxtap", path=str(Path(sys.executable).parent)) or shutil.which("fxtap")


def need_program() -> str:
    """Return the path of the fxtap program, or exit with a message."""
    program = find_program()
    if program is None:
        sys.exit("fxtap: the fxtap program is neither beside python nor on PATH")
    return program


def run_program(arguments: list[str]) -> NoReturn:
    """Replace this process by the fxtap program."""
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
    if arguments[0] in ("compare", "verify") and "RANK" in os.environ:
        from .distributed import is_launched, run_sharded  # imported late, as below: they need torch

        if is_launched():
            os.environ.setdefault("FXTAP_PYTHON", sys.executable)
            return run_sharded(need_program(), arguments[0], arguments[1:])
    if arguments[0] == "verify-shard":
        from .verification import command

        return command.main(arguments[1:])
    if arguments[0] == "write-repro":
        from .verification import repro

        return repro.main(arguments[1:])
    run_program(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
