"""Configuration from the environment: FXTAP_TYPE, FXTAP_PATH, FXTAP_FILTER and one variable for each other option."""

from __future__ import annotations

import difflib
import functools
import logging
import os
from collections.abc import Callable, Mapping
from typing import Any

from .config import CompilerConfig

__all__ = ["VARIABLES", "apply_environment"]

_WORDS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def _switch(text: str) -> bool:
    try:
        return _WORDS[text.strip().lower()]
    except KeyError:
        raise ValueError(f"expected 1 or 0, not {text!r}") from None


def _size(text: str) -> int:
    """Return the number of bytes in "1073741824", "64M" or "1GiB"."""
    stripped = text.strip().lower().removesuffix("ib").removesuffix("b")
    digits = stripped.rstrip("kmg")
    unit = stripped[len(digits) :]
    if not digits.isdecimal() or unit not in _UNITS:
        raise ValueError(f"expected a number of bytes such as 1073741824 or 64M, not {text!r}")
    return int(digits) * _UNITS[unit]


def _word(text: str) -> str | None:
    return None if text.strip().lower() == "none" else text


VARIABLES: dict[str, tuple[str, Callable[[str], Any]]] = {
    "FXTAP_TYPE": ("debug.data_dump.type", _word),
    "FXTAP_PATH": ("debug.data_dump.path", str),
    "FXTAP_FILTER": ("debug.data_dump.filter", str),
    "FXTAP_CUSTOM_OPS": ("debug.data_dump.custom_ops", _switch),
    "FXTAP_DEDUP": ("debug.data_dump.dedup", _switch),
    "FXTAP_SYNC": ("debug.data_dump.sync", _switch),
    "FXTAP_QUEUE_BYTES": ("debug.data_dump.queue_bytes", _size),
    "FXTAP_THREADS": ("debug.data_dump.threads", int),
    "FXTAP_VERIFY_EVERY": ("debug.data_dump.verify_every", int),
    "FXTAP_ON_ERROR": ("debug.data_dump.on_error", str),
    "FXTAP_GRAPH_TYPE": ("debug.graph_dump.type", _word),
    "FXTAP_GRAPH_PATH": ("debug.graph_dump.path", str),
    "FXTAP_SUMMARY_TYPE": ("debug.fx_summary.type", _word),
    "FXTAP_SUMMARY_PATH": ("debug.fx_summary.path", str),
    "FXTAP_SUMMARY_SKIP_COMPILE": ("debug.fx_summary.skip_compile", _switch),
    "FXTAP_SUMMARY_LANGUAGE": ("debug.fx_summary.language", str),
    "FXTAP_RUN_EAGERLY": ("debug.run_eagerly", _switch),
    "FXTAP_INNER_BACKEND": ("inner_backend", str),
}
"""Variable -> the option it sets, and the function that parses its text."""

_OTHERS = {"FXTAP_PYTHON", "FXTAP_CPU", "FXTAP_RUN"}  # read elsewhere

logger = logging.getLogger("fxtap")


@functools.cache
def _warn_misspelt(variable: str) -> None:
    """Warn once about a variable whose name looks misspelt."""
    near = difflib.get_close_matches(variable, VARIABLES, n=1, cutoff=0.8)
    if near and variable not in _OTHERS:
        logger.warning("unknown variable %s; did you mean %s?", variable, near[0])


def apply_environment(config: CompilerConfig, environ: Mapping[str, str] | None = None) -> CompilerConfig:
    """Set the options for which the environment has a variable; empty variables are ignored.

    Variables whose names look misspelt cause one warning each.

    Parameters
    ----------
    config
        Changed in place, and returned.
    environ
        `os.environ` by default.

    Raises
    ------
    ValueError
        A variable has an invalid value; the message names it.
    """
    source = os.environ if environ is None else environ
    for variable in source:
        if variable.startswith("FXTAP_") and variable not in VARIABLES:
            _warn_misspelt(variable)
    for variable, (path, read) in VARIABLES.items():
        text = source.get(variable, "")
        if not text:
            continue
        try:
            config.set(path, read(text))
        except (ValueError, TypeError) as error:
            raise ValueError(f"{variable}={text}: {error}") from None
    return config
