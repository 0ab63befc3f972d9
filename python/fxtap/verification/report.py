"""The result of a verification."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import _core
from ..printed import Printed

if TYPE_CHECKING:
    import pandas

__all__ = ["Verification"]


class Verification(Printed[_core.Verification]):
    """The result of `fxtap.verify`."""

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
        """Verdict -> number of operator calls: exact, rounding, biased, wrong, not replayed."""
        return self._core.counts

    @property
    def wrong(self) -> list[dict[str, Any]]:
        """The operator calls that are biased or wrong, in order of execution: their worst results."""
        return self._core.wrong

    @property
    def operators(self) -> list[dict[str, Any]]:
        """All operator calls: the worst result of each."""
        return self._core.operators

    def to_pandas(self) -> pandas.DataFrame:
        """Return a table with one row per operator call; its columns are the members of `operators`."""
        import pandas

        return pandas.DataFrame(self.operators)

    @classmethod
    def merge(cls, shards: Sequence[bytes]) -> Verification:
        """Return one verification from those of all shards. ValueError if bytes are invalid."""
        return cls(_core.merge_verifications(shards))
