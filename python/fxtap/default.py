"""fxtap as the default backend of torch.compile, for `fxtap run` and the processes that it starts."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from . import notice
from .backend import Backend, fxtap

__all__ = ["HOOK", "become_default", "pass_on"]

HOOK = Path(__file__).resolve().parent / "hook"
"""A folder with a sitecustomize module, which Python imports at startup."""


def become_default(watch: notice.RunWatch) -> None:
    """Make fxtap the backend of every torch.compile call that names none, or "inductor"; others are kept.

    Options for inductor are ignored; its `mode` is used for graphs that are not dumped.
    """
    notice.watch = watch
    original = torch.compile

    def ours(gm: Any, example_inputs: Any, **kwargs: Any) -> Callable[..., Any]:
        return fxtap(gm, example_inputs, mode=kwargs.get("mode"))

    ours.__name__ = "fxtap"  # torch's messages use it

    @functools.wraps(original)
    def compile_with_fxtap(model: Any = None, *, backend: Any = None, **kwargs: Any) -> Any:
        if backend is None or backend == "inductor":
            backend, kwargs["options"] = ours, None
        if backend in (ours, fxtap, "fxtap") or isinstance(backend, Backend):
            watch.ours += 1
        else:
            watch.others.add(f'"{getattr(backend, "__name__", backend)}"')
        return original(model, backend=backend, **kwargs)

    torch.compile = compile_with_fxtap


def pass_on() -> None:
    """Make fxtap the default backend of child processes too, through the environment."""
    inherited = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HOOK), *([inherited] if inherited else [])])
    os.environ["FXTAP_RUN"] = str(os.getpid())
