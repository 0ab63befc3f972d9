"""A finished report of the core: printed as text, JSON, CSV or a page, saved, displayed."""

from __future__ import annotations

import html
import os
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from .paths import expand

__all__ = ["Printed"]

_TEXT, _JSON, _CSV, _HTML = 1, 2, 3, 4  # fxtap_report_format


class _Core(Protocol):
    def print(
        self, format: int, *, width: int = 0, colour: bool = False, ascii: bool = False, quiet: bool = False
    ) -> bytes: ...
    def serialise(self) -> bytes: ...


Core = TypeVar("Core", bound=_Core)


class Printed(Generic[Core]):
    """What a comparison and a verification have in common.

    Terminals and notebooks display it as the program prints it.
    """

    def __init__(self, core: Core) -> None:
        self._core = core

    def to_text(self, width: int = 80, *, colour: bool = False, ascii: bool = False, quiet: bool = False) -> str:
        """Return the report as the program prints it: `width` in columns, `quiet` for the verdict only."""
        return self._core.print(_TEXT, width=width, colour=colour, ascii=ascii, quiet=quiet).decode()

    def to_json(self) -> str:
        """Return the complete report as JSON (docs/compare-json.md, docs/verify.md)."""
        return self._core.print(_JSON).decode()

    def to_csv(self) -> str:
        """Return CSV with one row per pair (with msprobe's column names), or per operator call."""
        return self._core.print(_CSV).decode()

    def to_html(self) -> str:
        """Return a self-contained HTML page."""
        return self._core.print(_HTML).decode()

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write the report in the format of the suffix: .json, .csv, .html, .txt.

        Raises
        ------
        ValueError
            Unknown suffix.
        FileExistsError
            The file exists and `force` is false.
        """
        path = Path(expand(path))
        formats = {".json": _JSON, ".csv": _CSV, ".html": _HTML, ".txt": _TEXT}
        if path.suffix not in formats:
            raise ValueError(f"unknown report format {path.name!r}; use one of {', '.join(formats)}")
        with path.open("wb" if force else "xb") as file:
            file.write(self._core.print(formats[path.suffix]))
        return path

    def serialise(self) -> bytes:
        """Return bytes for `merge`."""
        return self._core.serialise()

    def __repr__(self) -> str:
        return self.to_text().rstrip("\n")

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.to_text(width=100))}</pre>"
