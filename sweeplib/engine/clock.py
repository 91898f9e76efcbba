"""Clock: the unit of the recording times of a sweep, point by point.

A sweep's recording times are multiples of it: at a point they are the times in the config times the unit's value there.
"""

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
        """Return the names, among those of a grid, on whose values the unit depends."""

    @abstractmethod
    def attributes(self) -> dict[str, Any]:
        """Return the attributes of the coordinate of recording times, which say their unit."""

    @abstractmethod
    def lengths(self, columns: Mapping[str, Sequence[Any]], count: int) -> list[float]:
        """Return the value of the unit at `count` points; InputError unless it is positive.

        columns : the values of `names` at these points.
        """
