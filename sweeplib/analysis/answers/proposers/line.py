"""Points along an axis with their labels, and what locates the boundaries between them: bisection.

Between two decided points of different labels lies a boundary. A point in the middle is added until they are as near as
is wanted. A point that is not decided is seldom worth more seeds: it lies near the boundary, and points on both sides
of it, which are easier to decide, enclose both. Only where undecided points themselves extend over more than half of
the resolution do they get seeds. A boundary is located if the next points beyond both, as far away, have the same
labels: otherwise one wrong decision among many would pass for a boundary where most points cannot be decided.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sweeplib.engine.design.questions import Precision

ROUNDING = 1e-9
"""The slack of comparisons of distances, in units of the resolution."""
CLOSEST = 0.03125
"""The distance, over the resolution, to which undecided points are enclosed: nearer points would tell nothing new."""
DIGITS = 12
"""The digits of values that are added to an axis."""


@dataclass(frozen=True)
class Ruler:
    """Distances along an axis in units of its resolution, which is one of values or, if relative, of logarithms.

    is_whole : whether the axis has whole numbers only.
    """

    resolution: Precision
    is_whole: bool = False

    @property
    def unit(self) -> float:
        """Return the resolution, of logarithms if it is relative."""
        return math.log1p(self.resolution.to) if self.resolution.relative else self.resolution.to

    def distance(self, low: float, high: float) -> float:
        """Return the distance of two values over the resolution."""
        return (math.log(high / low) if self.resolution.relative else high - low) / self.unit

    def centre(self, low: float, high: float) -> float:
        """Return the middle of two values, not rounded to whole numbers."""
        middle = math.sqrt(low * high) if self.resolution.relative else 0.5 * (low + high)
        return float(f"{middle:.{DIGITS}g}")

    def middle(self, low: float, high: float) -> float | None:
        """Return the value of the axis in the middle of two; None if there is none between them."""
        middle = self.centre(low, high)
        value = round(middle) if self.is_whole else middle
        return value if low < value < high else None

    def mirrored(self, value: float, centre: float) -> float:
        """Return the value that is as far from a centre as another one, on its other side."""
        other = centre * centre / value if self.resolution.relative else 2.0 * centre - value
        return round(other) if self.is_whole else float(f"{other:.{DIGITS}g}")

    def half_width(self, centre: float) -> float:
        """Return the half width that the interval of a boundary may have, in units of the axis: half a resolution."""
        return centre * math.expm1(0.5 * self.unit) if self.resolution.relative else 0.5 * self.unit


class Need(NamedTuple):
    """What locates a boundary next: new values, or more of the runs of points that are not decided, by their places."""

    values: tuple[float, ...] = ()
    places: tuple[int, ...] = ()


@dataclass(frozen=True)
class Line:
    """The points along an axis, in its order, with the codes of their labels; 0 is undecided.

    x : values of the axis. ended : whether a point gets no more runs. ruler : the distances along the axis.
    In all methods a point is its place on the line; `low` and `high` are decided points on both sides of a boundary.
    """

    x: list[Any]
    codes: NDArray[np.int64]
    ended: NDArray[np.bool_]
    ruler: Ruler

    def boundaries(self) -> Iterator[tuple[int, int]]:
        """Yield the places of the decided points on both sides of each boundary."""
        decided = np.flatnonzero(self.codes)
        for low, high in itertools.pairwise(decided):
            if self.codes[low] != self.codes[high]:
                yield int(low), int(high)

    def is_near(self, low: int, high: int) -> bool:
        """Return whether two decided points are as near as is wanted, or nothing is between them."""
        near = self.ruler.distance(self.x[low], self.x[high]) <= 1.0 + ROUNDING
        return near or (high == low + 1 and self.ruler.middle(self.x[low], self.x[high]) is None)

    def is_located(self, low: int, high: int) -> bool:
        """Return whether a boundary lies between two near points, and those beside them do not contradict it."""
        beside = [self._beside(low, -1, high), self._beside(high, 1, low)]
        doubted = any(place is not None and self.codes[place] == 0 for place in beside)
        return self.is_near(low, high) and self.need(low, high) == Need() and not doubted

    def need(self, low: int, high: int) -> Need:
        """Return what is to be run next for a boundary; an empty Need if nothing can be done, or needs to be."""
        if self.is_near(low, high):
            below, above = self._support(low, -1, high), self._support(high, 1, low)
            return Need(below.values + above.values, below.places + above.places)
        if high == low + 1:
            return Need(self._middles((low, high)))
        # undecided points lie in between: their zone must be narrow enough for both ends to fit around it
        first, last = low + 1, high - 1
        zone = self.ruler.distance(self.x[first], self.x[last])
        more = Need((), self._going_on(*range(first, high)))
        if more.places and zone > 0.5:
            return more
        room = max(0.5 * (1.0 - zone), CLOSEST) + ROUNDING
        gaps = [gap for gap in ((low, first), (last, high)) if self.ruler.distance(*(self.x[at] for at in gap)) > room]
        beside = Need(self._middles(*gaps)) if zone < 1.0 else Need()
        return beside if beside.values else more

    def _support(self, place: int, step: int, other: int) -> Need:
        """Return what is to be run to support the label of a decided point beside a boundary: that of the next point.

        step : the direction away from the boundary, −1 or 1. other : the decided point on the other side.
        """
        beside = self._beside(place, step, other)
        if beside is None:
            mirrored = self.ruler.mirrored(self.x[other], self.x[place])
            return Need((mirrored,) if self.x[0] < mirrored < self.x[-1] else ())
        return Need((), () if self.codes[beside] == self.codes[place] else self._going_on(place, beside))

    def _beside(self, place: int, step: int, other: int) -> int | None:
        """Return the next point in the direction `step`; None if it is farther than the resolution and than `other`."""
        beside = place + step
        if not 0 <= beside < len(self.x):
            return None
        apart, across = (self.ruler.distance(*sorted((self.x[place], self.x[at]))) for at in (beside, other))
        return beside if apart <= max(1.0, across) + ROUNDING else None

    def _going_on(self, *places: int) -> tuple[int, ...]:
        """Return those of the points `places` that may get more runs."""
        return tuple(place for place in places if not self.ended[place])

    def _middles(self, *gaps: tuple[int, int]) -> tuple[float, ...]:
        """Return the values in the middle of gaps between two points, where the axis has one."""
        middles = (self.ruler.middle(self.x[low], self.x[high]) for low, high in gaps)
        return tuple(middle for middle in middles if middle is not None)

    def halvings(self, low: int, high: int) -> int:
        """Return how many points bisection still needs to locate a boundary, at the least."""
        return max(1, math.ceil(math.log2(max(self.ruler.distance(self.x[low], self.x[high]), 1.0)) - ROUNDING))
