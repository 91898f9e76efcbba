"""Questions that a sweep is to answer to a precision, and the rows that rounds have added to it for them.

A row is a point with the number of seeds that a round asks for. A place is a point's values along the axes, a tuple.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from sweeplib.engine.design.axis import Axis
from sweeplib.engine.language import Expression

if TYPE_CHECKING:
    from sweeplib.engine.design.design import Design


class Precision(NamedTuple):
    """A width `to` which something is wanted, `relative` to its value or in its units."""

    to: float
    relative: bool


@dataclass(frozen=True)
class Question:
    """A `variable` of the analysis `of` that is wanted to a precision, at all points or those `at` some values.

    to : the half width of its 95 % interval, `relative` to the value or in its units; None where labels are to be
        decided.
    bounds : the range of each axis that may get values; none if only seeds may be added.
    resolution : the distance to which boundaries between labels are to be located along axes.
    budget : the number of cases that may be added for it; None for no limit.
    seconds : the seconds of processors that these may take.
    options : those of the analysis for this question, beside those of the sweep.
    """

    of: str
    variable: str
    to: float | None
    relative: bool = True
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    at: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    budget: int | None = None
    seconds: float = math.inf
    resolution: Mapping[str, Precision] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    def options_in(self, analyses: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """Return the options of its analysis, beside those that the sweep's `analyses`, by name, have for it."""
        return {**analyses.get(self.of, {}), **self.options}

    @property
    def decided(self) -> bool:
        """Return whether labels are wanted, not a number."""
        return self.to is None

    def half_width(self, value: float) -> float:
        """Return the half width that the interval of a value may have, NaN where labels are wanted."""
        to = math.nan if self.to is None else self.to
        return to * abs(value) if self.relative else to

    @property
    def precision(self) -> str:
        """Return the precision in words: `2 %`, `0.02` or `decided`."""
        if self.to is None:
            return "decided"
        return f"{100 * self.to:g} %" if self.relative else f"{self.to:g}"


@dataclass(frozen=True)
class Row:
    """A point that a round has asked for: the values of all axes, the number of its first `seeds`, and the `reason`."""

    at: Mapping[str, Any]
    seeds: int
    reason: str


@dataclass(frozen=True)
class RowCounts:
    """The number of seeds of each point of a sweep that has grown by rows: those of the config, or more; 0 elsewhere.

    It stands where a sweep has the expression of its `seeds` (`Design.replicas`).

    axes : those of the config. most : its number of seeds. seeds : the expression of their number, if there is one.
    rounds : the rows of each round; the first is round 1.
    """

    axes: tuple[Axis, ...]
    most: int
    seeds: Expression | None
    rounds: tuple[tuple[Row, ...], ...]

    @property
    def names(self) -> frozenset[str]:
        """Return the names of the grid on whose values the number of seeds depends: those of axes, and of `seeds`."""
        names: frozenset[str] = frozenset() if self.seeds is None else self.seeds.names
        return names.union(axis.name for axis in self.axes)

    @property
    def text(self) -> str:
        """Return a text of all that the numbers depend on."""
        axes = [(axis.name, axis.values) for axis in self.axes]
        return repr((axes, self.most, self.seeds and self.seeds.text, self._requests))

    def __str__(self) -> str:
        return f"{self.seeds or self.most} and those of {len(self.rounds)} rounds"

    @cached_property
    def _requests(self) -> dict[tuple[Any, ...], int]:
        """Return the largest number of seeds that rows ask for at each point, by its values along the axes."""
        requests: dict[tuple[Any, ...], int] = {}
        for row in (row for rows in self.rounds for row in rows):
            place = self._place(row)
            requests[place] = max(row.seeds, requests.get(place, 0))
        return requests

    def evaluated(self, columns: Mapping[str, Sequence[Any]], count: int) -> list[int]:
        """Return the number of seeds of each of `count` points, from the values of `names` there.

        It is the larger of the config's, at points of its grid, and of what rows ask for.
        """
        places = self._places(columns, count)
        counts = self._own_counts(columns, places)
        return [max(number, self._requests.get(place, 0)) for number, place in zip(counts, places, strict=True)]

    def first_rounds(self, columns: Mapping[str, Sequence[Any]], count: int) -> list[tuple[int, str]]:
        """Return, for each of `count` points, the round that gave it seeds first, and why: 0 is the config, -1 none."""
        first: dict[tuple[Any, ...], tuple[int, str]] = {}
        for number, rows in enumerate(self.rounds, 1):
            for row in rows:
                first.setdefault(self._place(row), (number, row.reason))
        places = self._places(columns, count)
        counts = self._own_counts(columns, places)
        return [
            (0, "of the config") if number else first.get(place, (-1, ""))
            for number, place in zip(counts, places, strict=True)
        ]

    def _own_counts(self, columns: Mapping[str, Sequence[Any]], places: Sequence[tuple[Any, ...]]) -> list[int]:
        """Return the number of seeds that the config gives the point at each of some places; 0 outside of its grid."""
        count = len(places)
        counts = [self.most] * count if self.seeds is None else self.seeds.evaluated(columns, count)
        values_of_axes = [frozenset(axis.values) for axis in self.axes]
        inside = (all(value in values for value, values in zip(place, values_of_axes, strict=True)) for place in places)
        return [int(number) if is_own else 0 for number, is_own in zip(counts, inside, strict=True)]

    def _place(self, row: Row) -> tuple[Any, ...]:
        """Return the place of a row."""
        return tuple(row.at[axis.name] for axis in self.axes)

    def _places(self, columns: Mapping[str, Sequence[Any]], count: int) -> list[tuple[Any, ...]]:
        """Return the place of each of `count` points, from the values of the axes' names there."""
        values = [columns[axis.name] for axis in self.axes]
        return list(zip(*values, strict=True)) if values else [()] * count


def with_rows(sweep: "Design", rounds: Iterable[Iterable[Row]]) -> "Design":
    """Return a sweep with the rows of rounds: its grid has their values, and seeds where a row asks for some.

    Points of the larger grid that nobody asked for have no seeds, and the status `missing` in the dataset. Rows that
    the sweep has already are replaced.
    """
    tuples = tuple(map(tuple, rounds))
    rows = [row for of_round in tuples for row in of_round]
    sweep = without_rows(sweep)
    seeds = sweep.replicas
    if not rows or isinstance(seeds, RowCounts):  # no RowCounts any more; mypy does not know
        return sweep
    axes = tuple(_axis_with(axis, [row.at[axis.name] for row in rows]) for axis in sweep.grid.axes)
    counts = RowCounts(sweep.grid.axes, len(sweep.seeds), seeds, tuples)
    most = max(len(sweep.seeds), *(row.seeds for row in rows))
    return replace(sweep, grid=replace(sweep.grid, axes=axes), seeds=tuple(range(most)), replicas=counts)


def without_rows(sweep: "Design") -> "Design":
    """Return the sweep as its config says it, from one that may have grown by rows."""
    counts = sweep.replicas
    if not isinstance(counts, RowCounts):
        return sweep
    grid = replace(sweep.grid, axes=counts.axes)
    return replace(sweep, grid=grid, seeds=tuple(range(counts.most)), replicas=counts.seeds)


def _axis_with(axis: Axis, values: Iterable[Any]) -> Axis:
    """Return an axis with those of some values, too, that it lacks."""
    new = sorted(set(values).difference(axis.values))
    return replace(axis, values=(*axis.values, *new)) if new else axis
