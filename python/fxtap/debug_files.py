"""The files of `config.debug.graph_dump` and `config.debug.fx_summary`, under TorchAir's names."""

from __future__ import annotations

import contextlib
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from . import _core
from .config import CompilerConfig
from .session import world

__all__ = ["DebugFiles"]


def _write(folder: str | None, stem: str, suffix: str, content: bytes) -> Path:
    """Write a new file `{stem}_rank_{R}_pid_{PID}_ts_{TS}.{suffix}` with mode 0640.

    Raises
    ------
    OSError
        With errno and path; NotADirectoryError if the folder is a regular file.
    """
    root = Path(os.path.realpath(folder or "."))
    try:
        root.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise NotADirectoryError(20, os.strerror(20), str(root)) from None
    while True:
        stamp = datetime.now(tz=UTC).strftime("%Y%m%d%H%M%S%f")
        path = root / f"{stem}_rank_{world()[1]}_pid_{os.getpid()}_ts_{stamp}.{suffix}"
        with contextlib.suppress(FileExistsError):
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o640)
            break
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return path


class DebugFiles:
    """Writes the graph dump and summary that a configuration enables.

    Parameters
    ----------
    config
        Read in the constructor only.
    """

    def __init__(self, config: CompilerConfig) -> None:
        self._graph_type: str | None = config.get("debug.graph_dump.type")
        self._graph_path: str | None = config.get("debug.graph_dump.path")
        self._summary: bool = config.debug.fx_summary.enabled
        self._summary_path: str | None = config.get("debug.fx_summary.path")
        self._english: bool = config.get("debug.fx_summary.language") == "en"

    @property
    def enabled(self) -> bool:
        """Whether there is anything to write."""
        return self._graph_type is not None or self._summary

    def at_compilation(self, graph: _core.Graph, number: int) -> None:
        """Write the summary and the original graph."""
        if self._summary:
            _write(self._summary_path, "summary", "csv", _core.summarise(graph, english=self._english))
        self._print("original", graph, number, optimised=False)

    def at_first_call(self, graph: _core.Graph, number: int) -> None:
        """Write the graph as optimised by TorchAir's passes."""
        self._print("optimized", graph, number, optimised=True)

    def _print(self, stage: str, graph: _core.Graph, number: int, **options: Any) -> None:
        if self._graph_type is not None:
            text = _core.print_graph(graph, self._graph_type, title=f"graph_{number}", **options)
            _write(self._graph_path, f"dynamo_{stage}_graph_{number}", self._graph_type, text)
