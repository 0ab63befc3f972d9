"""A sequence whose items are created on access."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Self, TypeVar, overload

__all__ = ["LazyList"]

T = TypeVar("T")


class LazyList(Sequence[T]):
    """Items of a collection, by index; slices and subsets store only indices."""

    def __init__(self, indices: Sequence[int]) -> None:
        self._indices = indices

    @abstractmethod
    def _item(self, index: int) -> T:
        """Create the item of an index into the collection."""

    @abstractmethod
    def _subset(self, indices: Sequence[int]) -> Self:
        """Return a list of the same type with other indices."""

    def __len__(self) -> int:
        return len(self._indices)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: int | slice) -> T | Self:
        if isinstance(index, slice):
            return self._subset(self._indices[index])
        return self._item(self._indices[index])

    def __iter__(self) -> Iterator[T]:
        return (self._item(index) for index in self._indices)

    def where(self, keep: Callable[[T], bool]) -> Self:
        """Return the items for which a function returns True."""
        return self._subset([index for index in self._indices if keep(self._item(index))])
