"""Values of an axis, and seeds, for the place at which a mean or a fraction of runs passes a level.

1. Rows without a mean get seeds; fewer than `FEWEST` rows get others in their widest gaps.
2. While no row is on the other side of the level, rows are added beyond the end that is nearer to it, to the bounds.
   So they are beyond an end that is not clearly on a side: the level may be passed there once more.
3. Several crossings get seeds at the rows between them until there is one, or all of these rows are clearly on a side.
4. The answer is the crossing of the analysis, with its interval, of all rows (`MeanCurve`).
5. The gap in which it lies is narrowed to the interval, as long as it is wider than GAP times the wanted half width,
   as rows far from the crossing tell little of it, or the form of the curve makes more of the error than the seeds.
   Otherwise the rows beside the crossing get seeds.

Each step is a method of `CrossingLook` that returns its finding, or None if the step has nothing to ask for.
A row is on a side of the level clearly if its mean is farther from it than CLEAR standard errors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sweeplib.analysis.answers.answer import State
from sweeplib.analysis.answers.proposer import PROPOSERS
from sweeplib.analysis.answers.proposers.along_axis import (
    CLEAR,
    MOST_SEEDS,
    AlongAxis,
    ScanColumn,
    ScanFinding,
    neyman_goals,
)
from sweeplib.analysis.answers.proposers.seeds import FIRST, GROWTH, WIDE, next_totals
from sweeplib.engine.base.arrays import Array
from sweeplib.engine.base.budget import SEEDS
from sweeplib.engine.design.questions import Question
from sweeplib.statistics.optima import FEWEST, MeanCurve
from sweeplib.statistics.smooth_curve import Crossing

GAP = 4.0
"""The width of the gap in which a crossing lies, over the half width that is wanted, below which it is not divided."""
MARGIN = 0.15
"""The part of a gap at its ends in which no row is added."""
DIGIT = 20.0
"""The parts of a gap to which a value in it is rounded."""
MOST_ROWS = 60
"""The rows beyond which none are added."""


class CrossingAlong(AlongAxis):
    """Asks for values of an axis, and seeds, until the interval of a crossing along it is narrow enough."""

    example: ClassVar[Mapping[str, Any]] = {"of": "crossing", "to": "5 %", "refine": {"gamma": [0.05, 1.9]}}
    place, variables = "crossing", frozenset({("crossing", "crossing")})

    def finding(self, column: ScanColumn, options: Mapping[str, Any]) -> ScanFinding:
        """Return what a look at the rows of one point finds."""
        bounds = self.question.bounds[self.dim]
        return CrossingLook(column, self.question, bounds, options["level"], options["confidence"]).finding()


class CrossingLook:
    """One look at rows along an axis: where their means pass a level, and what is needed next.

    column : all rows. bounds : the least and the greatest value that may be added. Of the rows with a mean, in the
    order of the axis: `x`, `seeds`, the `distance` of the mean from the level, and whether it `is_clear` (rows,).
    """

    def __init__(
        self, column: ScanColumn, question: Question, bounds: tuple[float, float], level: float,
        confidence: float = 0.95,
    ) -> None:  # fmt: skip
        self.column, self.question, self.bounds = column, question, bounds
        self.level, self.confidence = level, confidence
        self.curve = MeanCurve(column.steps, column.x)
        self.x, apart = self.curve.x, self.curve.linear.logs - level
        # a mask of all rows
        self.has_mean: NDArray[np.bool_] = np.isin(column.x, self.x)
        self.seeds = column.seeds[self.has_mean].astype(float)
        self.distance, self.is_clear = np.abs(apart), np.abs(apart) > CLEAR * self.curve.errors

    def finding(self) -> ScanFinding:
        """Return the finding of the first step of the module's docstring that has something to ask for."""
        return self._unseen() or self._beyond() or self._several() or self._placed()

    @cached_property
    def crossings(self) -> list[Crossing]:
        """The places at which the smooth curve passes the level."""
        return self.curve.crossings(self.level, self.confidence)

    def _unseen(self) -> ScanFinding | None:
        """Rows without a mean get seeds; too few rows get others between them or, without a gap, beyond them."""
        need_seeds = ~self.has_mean & (self.column.seeds < FIRST)
        if need_seeds.any():
            return ScanFinding("its values need seeds", {float(x): FIRST for x in self.column.x[need_seeds]})
        if len(self.x) >= FEWEST:
            return None
        edges = np.array(sorted({*self.column.x, *self.bounds}))
        new = self._between(edges, FEWEST - len(self.x))
        if len(self.column.x) >= MOST_ROWS or not new:
            return ScanFinding(
                f"a crossing needs {FEWEST} values with means, of which there are {len(self.x)}", state=State.none
            )
        return ScanFinding("too few values have a mean", dict.fromkeys(new, FIRST))

    def _between(self, places: Array, count: int) -> list[float]:
        """Return the middles of the widest gaps between ascending values of the axis, `count` at most."""
        widest = np.argsort(places[:-1] - places[1:], kind="stable")[:count]
        return self._new(0.5 * (places[widest] + places[widest + 1]), float(np.diff(places).max()))

    def _new(self, values: Array, gap: float) -> list[float]:
        """Return those of some values, rounded to about gap/DIGIT, that are within the bounds and no rows yet."""
        digits = -math.floor(math.log10(gap / DIGIT))
        rounded = {float(round(x)) if self.column.is_whole else round(float(x), digits) for x in values}
        return sorted(x for x in rounded if self.bounds[0] <= x <= self.bounds[1] and x not in self.column.x)

    def _beyond(self) -> ScanFinding | None:
        """Return a row beyond an end of the scan near which the level may be passed.

        That is so if there is no crossing, the interval of one reaches beyond the end, or the mean at the end is not
        clearly on a side.
        """
        first, last = self.x[0], self.x[-1]
        is_open = [
            any(cross.low < first for cross in self.crossings),
            any(cross.high > last for cross in self.crossings),
        ]
        if self.crossings and not any(is_open) and self.is_clear[[0, -1]].all():
            return None
        nearer = [0, -1] if self.distance[0] <= self.distance[-1] else [-1, 0]
        for end in nearer:
            if self.crossings and not is_open[end] and self.is_clear[end]:
                continue
            bound, step = self.bounds[end], abs(self.x[end] - self.x[end + 1 if end == 0 else end - 1])
            place = max(bound, first - step) if end == 0 else min(bound, last + step)
            if new := [x for x in self._new(np.array([place]), step) if not first <= x <= last]:
                return ScanFinding(f"the crossing may lie beyond {self.x[end]:.3g}", dict.fromkeys(new, FIRST))
        # no row can be added beyond an end: more values between them tell, if the level is passed there
        if self.crossings and self.is_clear[[0, -1]].all():
            return None
        # why the question stays open
        if self.crossings and not any(is_open):
            ends = ~self.is_clear
            ends[1:-1] = False
            again = " and ".join(f"{x:.3g}" for x in self.x[ends])
            return self._untold(f"the level is passed once more near {again}, at the end of the bounds", ends)
        return self._untold("the level is not passed between the bounds", np.ones(len(self.x), bool))

    def _several(self) -> ScanFinding | None:
        """Rows between several crossings get seeds: some of the crossings may be noise."""
        if len(self.crossings) == 1:
            return None
        places = [cross.at for cross in self.crossings]
        near = " and ".join(f"{at:.3g}" for at in places)
        low, high = np.searchsorted(self.x, [places[0], places[-1]])
        rows = np.arange(len(self.x))
        return self._untold(f"the level is passed more than once, near {near}", (rows >= low - 1) & (rows <= high))

    def _untold(self, why: str, rows: NDArray[np.bool_]) -> ScanFinding:
        """Return seeds for those of the `rows` (a mask) that are not clearly on a side of the level.

        If none may get more, there is no answer, for the reason `why`.
        """
        more = rows & ~self.is_clear & (self.seeds < MOST_SEEDS)
        if more.any():
            return ScanFinding(f"it is to be told whether {why}", self._grown(more))
        return ScanFinding(why, state=State.none)

    def _grown(self, rows: NDArray[np.bool_]) -> dict[float, int]:
        """Return GROWTH times the seeds of the `rows` (a mask), FIRST at least, by x."""
        counts = np.maximum(FIRST, GROWTH * self.seeds[rows])
        return {float(x): int(count) for x, count in zip(self.x[rows], counts, strict=True)}

    def _placed(self) -> ScanFinding:
        """Return the crossing with its interval, and the rows and seeds that it needs."""
        [(at, low, high, _)] = self.crossings
        right = int(np.clip(np.searchsorted(self.x, at), 1, len(self.x) - 1))
        beside = np.abs(np.arange(len(self.x)) - (right - 0.5)) < 2.0  # two rows on each side
        need_seeds = beside & (self.seeds < FIRST)
        if need_seeds.any():
            return ScanFinding("its values need seeds", {float(x): FIRST for x in self.x[need_seeds]})
        wanted = self.question.half_width(at)
        ratio = max(at - low, high - at) / wanted if wanted > 0.0 else math.inf
        if ratio <= 1.0:
            return ScanFinding("", {}, State.given, at, low, high, 0.0)
        if new := self._narrower(right, self.crossings[0], wanted):
            seeds = int(self.seeds[beside].max())
            return ScanFinding(
                "the gap in which the crossing lies is wide", dict.fromkeys(new, seeds), State.open, at, low, high
            )
        if not self.curve.errors.any():  # of a deterministic dynamics: seeds tell no more
            why = f"its {len(self.x)} values do not tell the form of the curve as precisely as that"
            return ScanFinding(why, {}, State.none, at, low, high)
        if math.isinf(ratio):
            return self._untold_ends(at)
        spreads = np.abs(self.curve.at_levels.tangent(at).value_weights) * self.curve.errors * np.sqrt(self.seeds)
        goals = neyman_goals(spreads, np.ones_like(spreads), self.seeds, ratio**2)
        needed = float(np.maximum(goals - self.seeds, 0.0).sum())
        if not goals.max() <= SEEDS:
            return ScanFinding(f"a value would need more than {SEEDS:,} seeds", {}, State.none, at, low, high, needed)
        more = dict(zip(map(float, self.x), next_totals(self.seeds, goals), strict=True))
        return ScanFinding(WIDE, more, State.open, at, low, high, needed)

    def _untold_ends(self, at: float) -> ScanFinding:
        """Return seeds for all rows where an end of the interval of a crossing is open, until they have MOST_SEEDS."""
        why, more = "an end of its interval is not told", self.seeds < MOST_SEEDS
        if more.any():
            return ScanFinding(why, self._grown(more), State.open, at)
        return ScanFinding(why, {}, State.none, at)

    def _narrower(self, right: int, crossing: Crossing, wanted: float) -> list[float]:
        """Return new values in the gap between rows `right` − 1 and `right`, at the ends of the crossing's interval.

        None if the gap is narrow for the half width `wanted` and seeds make most of the error.
        """
        gap, curve = self.x[right] - self.x[right - 1], self.curve.at_levels
        by_seeds = curve.noise_at(crossing.at) >= curve.tangent(crossing.at).value_form
        if (gap <= GAP * wanted and by_seeds) or len(self.x) >= MOST_ROWS:
            return []
        inner = self.x[right - 1] + MARGIN * gap, self.x[right] - MARGIN * gap
        return self._new(np.clip([crossing.low, crossing.high], *inner), gap)


PROPOSERS.register("crossing", CrossingAlong)
