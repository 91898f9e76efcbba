"""Points and seeds for the boundaries between labelled points: regimes, limits.

Along each axis with a resolution, through each point of the config's grid, boundaries are enclosed by decided points
(`line`). Points of that grid that are not decided, and do not lie within the resolution of a boundary, get larger
values of the axes that have bounds, such as d, and then GROWTH times the seeds, until they are decided or have MOST.

A label may need all values of an axis, as that of a limit d → ∞ does: such an axis is hidden, as the labels do not have
its dimension, and a point of the labels has several rows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sweeplib.analysis import ANALYSES
from sweeplib.analysis.answers.answer import Answer, State
from sweeplib.analysis.answers.proposer import PROPOSERS
from sweeplib.analysis.answers.proposers.line import Line, Need, Ruler
from sweeplib.analysis.answers.table import points, row_dims, seeds_asked, value, values_at
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.design.questions import Question, Row
from sweeplib.engine.storage.dataset.outline import Outline
from sweeplib.errors import InputError
from sweeplib.statistics.lost_runs import with_status

GROWTH, MOST = 4, 1024
"""The factor by which seeds grow, and the number beyond which they do not."""
LEAST_DECIDABLE = 0.1
"""An undecided point gets no seeds if the probability that they decide it is smaller."""
FEWEST_LIMIT = 6
"""Values of an axis with bounds, such as d, before larger ones are tried: fewer give too wide an error of a scaling."""
DIGITS = 3
"""The digits of values that are added to an axis with bounds."""
Place = tuple[int, ...]
"""The index of a point, over the dimensions of the labels."""


class Boundaries:
    """Asks for points and seeds until all points are decided, or lie within the resolution of a boundary."""

    example: ClassVar[Mapping[str, Any]] = {
        "of": "regimes",
        "to": "decided",
        "refine": {"delta": 0.05, "d": [100, 10000]},
    }

    def __init__(self, name: str, question: Question) -> None:
        self.name, self.question = name, question

    @classmethod
    def takes(cls, question: Question) -> bool:
        """Return whether labels are wanted."""
        return question.decided

    def check(self, outline: Outline, options: Mapping[str, Any]) -> None:
        """Raise InputError unless axes with a resolution are those of the labels, and those with bounds are others."""
        analysed = ANALYSES[self.question.of].outlined(outline, options)
        dims = () if analysed is None else analysed.dims_of(self.question.variable)
        key = f"answers.{self.name}.refine"
        for axis in self.question.resolution:
            if axis not in dims:
                expected = "two bounds, as [100, 10000], of an axis that a label needs all values of"
                raise InputError(
                    "labels do not vary with this axis", key=f"{key}.{axis}", value=axis, expected=expected
                )
        for axis, bounds in self.question.bounds.items():
            if axis in dims:
                expected = "its resolution, as 0.02 or 5 %: the bounds are the ends of its grid"
                raise InputError(
                    "labels vary with this axis", key=f"{key}.{axis}", value=list(bounds), expected=expected
                )

    def tell(self, ds: xr.Dataset, options: Mapping[str, Any]) -> list[Answer]:
        """Return the boundaries along all lines, and the points that are not decided, with the rows that they need."""
        analysis = ANALYSES[self.question.of]
        result = analysis(ds, **options)
        labels = result[self.question.variable]
        labels = labels.transpose(*[dim for dim in row_dims(ds) if dim in labels.dims], ...)
        decidable = result[analysis.decidable] if analysis.decidable else xr.ones_like(labels, float)
        return Labelled(self.name, self.question, ds, labels, decidable.transpose(*labels.dims)).answers()


@dataclass(frozen=True)
class Labelled:
    """The labels of points, with the rows that take part in each, and whether more seeds may decide them.

    name, question : the question. ds : the rows. labels : codes, whose meanings are flags; 0 is undecided.
    decidable : of each point, the probability that more seeds decide its label.
    """

    name: str
    question: Question
    ds: xr.Dataset
    labels: xr.DataArray
    decidable: xr.DataArray

    def answers(self) -> list[Answer]:
        """Return the boundaries, and the points of the config that are neither decided nor near one."""
        within = np.zeros(self.codes.shape, bool)
        answers: list[Answer] = []
        for axis in self.question.resolution:
            for place in self._lines(axis):
                answers += self._along(axis, place, within)
        answers += [self._undecided(place) for place in self._bases() if not self.codes[place] and not within[place]]
        return answers or [self._uniform()]

    @cached_property
    def dims(self) -> list[str]:
        """The dimensions of the labels."""
        return [str(dim) for dim in self.labels.dims]

    @cached_property
    def hidden(self) -> list[str]:
        """The axes of the grid whose values all take part in a label."""
        return [dim for dim in row_dims(self.ds) if dim not in self.dims]

    @cached_property
    def codes(self) -> NDArray[np.int64]:
        """The labels, 0 where there is none."""
        return np.asarray(self.labels.values).astype(np.int64)

    @cached_property
    def _rounds(self) -> NDArray[np.int64]:
        """The round that asked for each row first, over the axes of the labels and the hidden ones; -1 for none."""
        rounds = self.ds["round"] if "round" in self.ds else xr.zeros_like(self.ds["status"][..., 0], np.int64)
        rows = rounds.max("dynamics") if "dynamics" in rounds.dims else rounds
        return values_at(rows.broadcast_like(self.labels), [*self.dims, *self.hidden])

    @cached_property
    def _seeds(self) -> NDArray[np.int64]:
        """The number of seeds of each row, over the axes of the labels and the hidden ones."""
        counts = seeds_asked(self.ds).max("dynamics")
        return values_at(counts.broadcast_like(self.labels), [*self.dims, *self.hidden])

    @cached_property
    def _fewest(self) -> int:
        """The least number of seeds of any row, which new rows get."""
        return int(self._seeds[self._seeds > 0].min())

    def _bases(self) -> Iterator[Place]:
        """Yield the points of the config that have runs and at which the question is asked."""
        of_config = (self._rounds == 0) & (self._seeds > 0)
        is_base = of_config.any(axis=tuple(range(len(self.dims), of_config.ndim)))
        for place in points(self.labels, self.question.at):
            index = tuple(place[dim] for dim in self.dims)
            if is_base[index]:
                yield index

    def _lines(self, axis: str) -> Iterator[Place]:
        """Yield a point of each line along an axis through points of the config."""
        at = self.dims.index(axis)
        yield from dict.fromkeys((*place[:at], 0, *place[at + 1 :]) for place in self._bases())

    def _along(self, axis: str, place: Place, within: NDArray[np.bool_]) -> Iterator[Answer]:
        """Yield the boundaries along an axis, on the line through a point.

        within (all points) : set to true at the points that lie between the ends of a boundary.
        """
        at = self.dims.index(axis)
        on_line = [(*place[:at], index, *place[at + 1 :]) for index in range(self.codes.shape[at])]
        on_line = [index for index in on_line if self._seeds[index].any() or (self._rounds[index] > 0).any()]
        values = [value(self.labels, axis, index[at]) for index in on_line]
        whole = all(isinstance(number, int) for number in values)
        codes, ended = (np.array([of(index) for index in on_line]) for of in (self.codes.__getitem__, self._has_ended))
        line = Line(values, codes, ended, Ruler(self.question.resolution[axis], whole))
        for low, high in line.boundaries():
            for index in on_line[low : high + 1]:
                within[index] = True
            yield self._boundary(axis, line, on_line, low, high)

    def _boundary(self, axis: str, line: Line, on_line: list[Place], low: int, high: int) -> Answer:
        """Return the answer of one boundary: its place between two decided points, and what locates it next.

        on_line : the points of the line. low, high : the numbers on it of the decided points on both sides.
        """
        ends = line.x[low], line.x[high]
        between = " and ".join(self._meaning(int(line.codes[place])) for place in (low, high))
        at = {"along": axis, **self._named(on_line[low], but=axis), "between": between}
        centre = line.ruler.centre(*ends)
        answer = Answer(self.name, at, centre, float(ends[0]), float(ends[1]), line.ruler.half_width(centre))
        if line.is_located(low, high):
            return replace(answer, state=State.given, cases=0.0)
        need = line.need(low, high)
        # not located, and nothing more can be run for it
        if need == Need():
            why = self._not_decided(on_line[low : high + 1])
            return replace(answer, state=State.none, why=why)
        new = [self._row(on_line[low], hidden, {axis: x}) for x in need.values for hidden in self._hidden(on_line[low])]
        rows = new + [row for place in need.places for row in self._grown(on_line[place])]
        # at the least: points of the bisection, times the rows of a point, times the seeds of a new row
        cases = float(line.halvings(low, high) * len(self._hidden(on_line[low])) * self._fewest)
        why = "the points beside it are to be decided" if line.is_near(low, high) else "its points are too far apart"
        return replace(answer, why=why, cases=cases, requests=self._because(rows, f"boundary of {between}"))

    def _undecided(self, place: Place) -> Answer:
        """Return the answer of a point that is not decided, with the runs that may decide it, or why none do."""
        answer = Answer(self.name, self._named(place) | {"between": "not decided"})
        if self._is_lost(place):
            return replace(answer, state=State.none, why="its runs have ended without a result")
        if self._has_ended(place):
            return replace(answer, state=State.none, why=self._not_decided([place]))
        rows = self._because(self._grown(place), "not decided")
        return replace(answer, why="not decided", requests=rows)

    def _uniform(self) -> Answer:
        """Return the one answer where all points are decided and no line has a boundary."""
        kinds = sorted({self._meaning(self.codes[place]) for place in self._bases()})
        return Answer(
            self.name, {}, state=State.given, why=f"no boundary: all points are {' or '.join(kinds)}", cases=0.0
        )

    def _meaning(self, code: int) -> str:
        """Return the name of the label that a code stands for."""
        meanings = dict(zip(self.labels.attrs["flag_values"], self.labels.attrs["flag_meanings"].split(), strict=True))
        return str(meanings[code])

    def _named(self, place: Place, but: str | None = None) -> dict[str, Any]:
        """Return the coordinates of a point on axes of several values, without the axis `but`."""
        dims = zip(self.dims, place, strict=True)
        return {dim: value(self.labels, dim, at) for dim, at in dims if dim != but and self.labels.sizes[dim] > 1}

    def _most(self, places: list[Place]) -> int:
        """Return the greatest number of seeds that any row of some points has."""
        return max(int(self._seeds[place].max()) for place in places)

    def _is_lost(self, place: Place) -> bool:
        """Return whether no run at a point has a result."""
        here = self.ds["status"].isel(
            {dim: at for dim, at in zip(self.dims, place, strict=True) if dim in self.ds["status"].dims}
        )
        return not bool(with_status(here.to_dataset(), "ok").any())

    def _not_decided(self, places: list[Place]) -> str:
        """Return why points, some of which are not decided, get no more runs."""
        if any(self._takes_no_seeds(place) for place in places):
            values = f" with these values of {', '.join(self.hidden)}" if self.hidden else ""
            return f"no number of seeds decides points there{values}"
        return f"points there are not decided with {self._most(places):,} seeds"

    def _takes_no_seeds(self, place: Place) -> bool:
        """Return whether a point is not decided and hardly would be by any number of seeds."""
        return not self.codes[place] and float(self.decidable.values[place]) < LEAST_DECIDABLE

    def _has_ended(self, place: Place) -> bool:
        """Return whether nothing more may be run for a point."""
        enough = GROWTH * self._most([place]) > MOST or self._takes_no_seeds(place)
        return enough and not self._limit_values(place)

    def _hidden(self, place: Place) -> list[dict[str, Any]]:
        """Return the values of the hidden axes of the rows that were asked for at a point."""
        places = np.argwhere(self._rounds[place] >= 0).tolist()
        at = (zip(self.hidden, index, strict=True) for index in places)
        return [{dim: value(self.ds, dim, place) for dim, place in pairs} for pairs in at]

    def _counts(self, place: Place) -> list[int]:
        """Return the seeds of the rows that were asked for at a point."""
        return [int(count) for count in self._seeds[place][self._rounds[place] >= 0]]

    def _limit_values(self, place: Place) -> dict[str, int | float]:
        """Return the next value of an axis with bounds for a point (`next_value`), by the name of the axis.

        Empty if all such axes are at their bounds, or there are none.
        """
        for axis, (low, high) in self.question.bounds.items():
            column = sorted({hidden[axis] for hidden in self._hidden(place)})
            following = next_value(column, low, high)
            if following is not None:
                return {axis: following}
        return {}

    def _grown(self, place: Place) -> list[Row]:
        """Return rows that may decide a point: one with a new value of an axis with bounds, otherwise more seeds."""
        hidden, changed = self._hidden(place), self._limit_values(place)
        if changed:
            # rows that differ in this axis alone become one
            rows = [self._row(place, at, changed) for at in hidden]
            return list({tuple(row.at.items()): row for row in rows}.values())
        runs = [at for at, count in zip(hidden, self._counts(place), strict=True) if count]
        rows = [self._row(place, at) for at in runs]
        return [replace(row, seeds=GROWTH * row.seeds) for row in rows]

    def _row(self, place: Place, hidden: Mapping[str, Any], changed: Mapping[str, Any] | None = None) -> Row:
        """Return the row to ask for at a point, with these values of the `hidden` axes.

        changed : values, by axis, that make it a new row, which gets the fewest seeds of any row. Otherwise it gets as
        many as the row with the most seeds at the point.
        """
        at = {dim: value(self.labels, dim, index) for dim, index in zip(self.dims, place, strict=True)}
        at = {dim: at[dim] for dim in row_dims(self.ds) if dim in at} | dict(hidden)
        seeds = self._fewest if changed else self._most([place])
        return Row(at | dict(changed or {}), seeds, "")

    def _because(self, rows: list[Row], reason: str) -> tuple[Row, ...]:
        return tuple(replace(row, reason=f"{self.name}: {reason}") for row in rows)


def next_value(column: list[Any], low: float, high: float) -> Any:
    """Return the next value of an axis on which a limit is taken; None if there is none.

    Up to FEWEST_LIMIT values the middle of the widest gap of logarithms from the lower bound on, then one beyond the
    last, by the largest ratio of neighbours, to the upper bound.
    """
    whole = all(isinstance(number, int) for number in column)
    edges = [low, *column] if low < column[0] else column
    ratios = [after / before for before, after in itertools.pairwise(edges)]
    if ratios and len(column) < FEWEST_LIMIT:
        widest = ratios.index(max(ratios))
        middle = rounded(math.sqrt(edges[widest] * edges[widest + 1]), whole)
        if edges[widest] < middle < edges[widest + 1]:
            return middle
    beyond = rounded(min(column[-1] * max([2.0, *ratios]), high), whole)
    return beyond if column[-1] < beyond <= high else None


def rounded(number: float, whole: bool) -> int | float:
    """Return a number to DIGITS digits, as an int if the axis has whole numbers."""
    short = float(f"{number:.{DIGITS}g}")
    return round(short) if whole else short


PROPOSERS.register("boundary", Boundaries)
