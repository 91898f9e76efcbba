"""Clock: the unit of the recording times of a sweep, point by point."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


class Clock(ABC):
    """A unit of recording times."""

    @property
    @abstractmethod
    def text(self) -> str:
        """Return the unit, an expression."""

    @abstractmethod
    def names(self, grid_names: Iterable[str]) -> frozenset[str]:
        """Return the names on which the unit depends, of those of a grid."""

    @abstractmethod
    def attributes(self) -> dict[str, Any]:
        """Return the attributes of recording times."""

    @abstractmethod
    def lengths(self, columns: Mapping[str, Sequence[Any]], count: int) -> list[float]:
        """Return the unit at `count` points; InputError unless it is positive."""
