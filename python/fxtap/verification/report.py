"""The result of a verification."""

from __future__ import annotations

import html
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import _core
from ..paths import expand

if TYPE_CHECKING:
    import pandas

__all__ = ["Verification"]

_TEXT, _JSON, _CSV, _HTML = 1, 2, 3, 4  # fxtap_report_format


class Verification:
    """The result of `fxtap.verify`.

    Terminals and notebooks display it as the program prints it.
    """

    def __init__(self, core: _core.Verification) -> None:
        self._core = core

    @property
    def verdict(self) -> str:
        """ "nothing wrong" or "wrong": whether any operator is biased or wrong."""
        return self._core.verdict

    @property
    def exit_status(self) -> int:
        """The program's exit status: 0 nothing wrong, 1 something wrong, 2 nothing could be replayed."""
        if self.verdict == "wrong":
            return 1
        replayed = sum(number for verdict, number in self.counts.items() if verdict != "not replayed")
        return 0 if replayed > 0 else 2

    @property
    def counts(self) -> dict[str, int]:
        """Verdict -> number of results: exact, rounding, biased, wrong, not replayed."""
        return self._core.counts

    @property
    def wrong(self) -> list[dict[str, Any]]:
        """The results that are biased or wrong, in order of execution."""
        return self._core.wrong

    @property
    def operators(self) -> list[dict[str, Any]]:
        """All results."""
        return self._core.operators

    def to_text(self, width: int = 80, *, colour: bool = False, ascii: bool = False, quiet: bool = False) -> str:
        """Return the report as the program prints it: `width` in columns, `quiet` for the verdict only."""
        return self._core.print(_TEXT, width=width, colour=colour, ascii=ascii, quiet=quiet).decode()

    def to_json(self) -> str:
        """Return the complete report as JSON."""
        return self._core.print(_JSON).decode()

    def to_csv(self) -> str:
        """Return CSV with one row per result."""
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

    def to_pandas(self) -> pandas.DataFrame:
        """Return a table with one row per result; its columns are the members of `operators`."""
        import pandas

        return pandas.DataFrame(self.operators)

    def serialise(self) -> bytes:
        """Return bytes for `merge`."""
        return self._core.serialise()

    @classmethod
    def merge(cls, shards: Sequence[bytes]) -> Verification:
        """Return one verification from those of all shards. ValueError if bytes are invalid."""
        return cls(_core.merge_verifications(shards))

    def __repr__(self) -> str:
        return self.to_text().rstrip("\n")

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.to_text(width=100))}</pre>"
