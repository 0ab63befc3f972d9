"""A sequence whose items are made when they are asked for."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Self, TypeVar, overload

__all__ = ["LazyList"]

T = TypeVar("T")


class LazyList(Sequence[T]):
    """Items of something by their numbers there; slices and selections hold numbers alone."""

    def __init__(self, chosen: Sequence[int]) -> None:
        self._chosen = chosen

    @abstractmethod
    def _make(self, number: int) -> T:
        """Make the item of a number."""

    @abstractmethod
    def _only(self, chosen: Sequence[int]) -> Self:
        """Return a list of the same kind with other numbers."""

    def __len__(self) -> int:
        return len(self._chosen)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: int | slice) -> T | Self:
        if isinstance(index, slice):
            return self._only(self._chosen[index])
        return self._make(self._chosen[index])

    def __iter__(self) -> Iterator[T]:
        return (self._make(number) for number in self._chosen)

    def where(self, keep: Callable[[T], bool]) -> Self:
        """Return the items for which a function returns True."""
        return self._only([number for number in self._chosen if keep(self._make(number))])
