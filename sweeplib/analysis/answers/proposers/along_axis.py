"""What proposers of values along one axis share: the rows of each point go in, requests and an answer come out.

A scan is the rows at one point of the other axes, one for each value x of the axis; γ is the learning rate of a row.
What is sought is a place on the axis: an optimum, or the crossing of a level. The `place` of a point in a dataset is
its index by dimension.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sweeplib.analysis import ANALYSES
from sweeplib.analysis.answers.answer import Answer, State
from sweeplib.analysis.answers.table import named, points, seeds_asked, value
from sweeplib.analysis.kit.problem_fields import with_constants
from sweeplib.analysis.kit.seed_values import Curves, axis_along, curves_along
from sweeplib.engine.base.arrays import Array
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.design.questions import Question, Row
from sweeplib.engine.storage.dataset.outline import Outline
from sweeplib.errors import InputError
from sweeplib.statistics.seed_means import FEWEST_SEEDS

DIGITS = 3
"""The digits of values that are added to an axis."""
CLEAR = 3.0
"""The standard errors by which one mean is clearly larger than another."""
LEAST_PART = 0.02
"""The least part of the seeds that a row gets."""
MOST_SEEDS = 8192
"""Seeds of a row after which values that are not told apart count as equal, and needs are believed."""


@dataclass(frozen=True)
class ScanColumn:
    """The rows of a scan along an axis at one point, in the order of their learning rates.

    x, gamma : values of the axis, which may be whole numbers, and learning rates. steps (seeds, rows) : NaN without a
    run, and where too many runs of a row did not exit, which is `cut_off`. restricted (seeds, rows) : the steps to the
    exit or the horizon. seeds : the numbers of runs that were asked for.
    """

    x: Array
    gamma: Array
    steps: Array
    seeds: NDArray[np.int64]
    cut_off: NDArray[np.bool_]
    restricted: Array
    is_whole: bool = False

    @classmethod
    def of(cls, runs: Curves, seeds: xr.DataArray, place: dict[str, int], dim: str) -> ScanColumn:
        """Return the rows at one point that have runs.

        seeds : the number of runs of each row of the dataset. place : the point. dim : the axis of the scan.
        """

        def here(array: xr.DataArray) -> xr.DataArray:
            """Return the values at the point, along the dimensions that are not of it."""
            return array.isel({name: index for name, index in place.items() if name in array.dims})

        counts, gamma = here(seeds).values, here(runs.x).values
        order = np.argsort(gamma)
        order = order[counts[order] > 0]
        steps, restricted = (
            here(table).transpose("seed", dim).values[:, order] for table in (runs.values, runs.restricted)
        )
        cut_off, x = here(runs.censored).values[order], seeds[dim].values[order]
        is_whole = np.issubdtype(x.dtype, np.integer)
        return cls(x.astype(float), gamma[order], steps, counts[order], cut_off, restricted, is_whole)

    def gamma_of(self, x: float) -> float:
        """Return the learning rate at a value x of the axis, linear in `_scaled` x between rows, and beyond them.

        That is exact where γ is a power of positive x.
        """
        order = np.argsort(self.x)
        return math.exp(_on_lines(self._u[order], np.log(self.gamma)[order], float(self._scaled(np.array(x)))))

    def x_of(self, gamma: float) -> float:
        """Return the value of the axis at a learning rate, rounded to DIGITS digits or to a whole number."""
        u = _on_lines(np.log(self.gamma), self._u, math.log(gamma))
        x = math.exp(u) if self._is_positive else u
        return float(round(x)) if self.is_whole else float(f"{x:.{DIGITS}g}")

    def least_log(self, row: int, errors: float) -> float:
        """Return a lower bound of the logarithm of the mean steps of a row, by its mean steps up to the horizon.

        errors : the number of standard errors of that mean which are subtracted. −∞ for too few seeds.
        """
        steps = self.restricted_steps(row)
        if len(steps) < FEWEST_SEEDS:
            return -math.inf
        least = steps.mean() - errors * steps.std(ddof=1) / math.sqrt(len(steps))
        return math.log(least) if least > 0.0 else -math.inf

    def restricted_steps(self, row: int) -> Array:
        """Return the steps to the exit or the horizon of the runs of a row."""
        steps = self.restricted[:, row]
        return steps[np.isfinite(steps)]

    @property
    def _is_positive(self) -> bool:
        return bool((self.x > 0.0).all())

    @property
    def _u(self) -> Array:
        """The values of the axis as `_scaled`."""
        return self._scaled(self.x)

    def _scaled(self, x: Array) -> Array:
        """Return log x on an axis of positive values, else x."""
        return np.asarray(np.log(x) if self._is_positive else x)


def _on_lines(u: Array, v: Array, at: float) -> float:
    """Return v at u = `at`, on lines through neighbours of ascending u (n,), v (n,), which go on beyond the last ones.

    Through a single point the line has the slope 1.
    """
    if len(u) == 1:
        return float(v[0] + at - u[0])
    near = int(np.clip(np.searchsorted(u, at), 1, len(u) - 1))
    return float(v[near] + (v[near] - v[near - 1]) / (u[near] - u[near - 1]) * (at - u[near]))


def neyman_goals(spreads: Array, prices: Array, seeds: Array, growth: float) -> Array:
    """Return the seeds of rows that make the variance of a number `growth` times smaller for the least price (Neyman).

    The variance is Σ spreads²/seeds, the price Σ prices·seeds, over the rows. All arrays are (rows,).
    """
    costs = spreads / np.sqrt(prices)
    parts = np.maximum(costs / costs.sum(), LEAST_PART)
    parts /= parts.sum()
    goals = growth * parts * np.sum(spreads**2 / parts) / np.sum(spreads**2 / seeds)
    # rows keep the seeds they have: if no goal is above them, all rows grow, so that the next round adds some
    return np.asarray(growth * seeds if (goals <= seeds).all() else goals)


@dataclass(frozen=True)
class ScanFinding:
    """What a look at the rows of a scan says.

    at, low, high : the place on the axis, or the value there, and its interval. state, why : those of the answer.
    seeds : the requests, as the number of seeds that the row at each x is to have.
    needed : an estimate of the runs that are missing for the answer.
    """

    why: str
    seeds: dict[float, int] = field(default_factory=dict)
    state: State = State.open
    at: float = math.nan
    low: float = math.nan
    high: float = math.nan
    needed: float = math.nan


class AlongAxis(ABC):
    """Asks for values of an axis, and seeds, until the interval of a place on it, or of its value, is narrow enough.

    variables : pairs of an analysis and its variable, the subjects of questions that it takes. place : what they look
    for, as messages call it. values : those of `variables` that are no places but values there, in units of their own.
    """

    example: ClassVar[Mapping[str, Any]]
    place: ClassVar[str]
    variables: ClassVar[frozenset[tuple[str, str]]]
    values: ClassVar[frozenset[tuple[str, str]]] = frozenset()

    def __init__(self, name: str, question: Question) -> None:
        self.name, self.question = name, question
        [(self.dim, (low, high))] = question.bounds.items()
        is_place = (question.of, question.variable) not in self.values
        if is_place and not question.relative and (width := question.half_width(low)) > (high - low) / 2:
            problem = "a half width beyond the bounds, in units of the axis"
            raise InputError(problem, key=f"answers.{name}.to", value=width, expected=f"less, or `{width:g} %`")

    @classmethod
    def takes(cls, question: Question) -> bool:
        """Return whether a question is about one of `variables`, and may add values of one axis."""
        return len(question.bounds) == 1 and (question.of, question.variable) in cls.variables

    @abstractmethod
    def finding(self, column: ScanColumn, options: Mapping[str, Any]) -> ScanFinding:
        """Return what a look at the rows of one point finds, with the options of the analysis."""

    def axis(self, outline: Outline, options: Mapping[str, Any]) -> str:
        """Return the axis along which the analysis looks."""
        return axis_along(outline, options["of"], options["along"])

    def runs(self, ds: xr.Dataset, options: Mapping[str, Any]) -> Curves:
        """Return the values of single runs along the axis."""
        # `status` has all dimensions of the grid: each point gets values x of its own
        curves = curves_along(ds, *(options[name] for name in ("of", "along", "time", "max_lost")))
        return curves._replace(x=curves.x.broadcast_like(ds["status"].isel(seed=0, drop=True)))

    def check(self, outline: Outline, options: Mapping[str, Any]) -> None:
        """Raise InputError unless the analysis looks along the axis that may get values."""
        axis = self.axis(outline, ANALYSES[self.question.of].check(options))
        if axis != self.dim:
            problem, key = f"not the axis of the {self.place}", f"answers.{self.name}.refine"
            raise InputError(problem, key=key, value=self.dim, choices=[axis])

    def tell(self, ds: xr.Dataset, options: Mapping[str, Any]) -> list[Answer]:
        """Return the places at all points, each with the rows that it needs."""
        complete = ANALYSES[self.question.of].check(options)
        runs = self.runs(with_constants(ds), complete)
        seeds, variable = seeds_asked(ds), runs.values.isel({"seed": 0, self.dim: 0}, drop=True)
        answers = []
        for place in points(variable, self.question.at):
            column = ScanColumn.of(runs, seeds, place, self.dim)
            if len(column.x):
                row = {name: value(ds, name, index) for name, index in place.items() if name in ds["status"].dims}
                row.pop("dynamics")  # a row is run under all of them
                answers.append(self._answer(named(variable, place), row, column, self.finding(column, complete)))
        return answers

    def _answer(self, at: dict[str, Any], row: dict[str, Any], column: ScanColumn, finding: ScanFinding) -> Answer:
        """Return the finding at a point as an answer; `row` has the values of all other axes of the requests."""
        requests = tuple(self._rows(finding, row, column.is_whole))
        return Answer(
            self.name, at, finding.at, finding.low, finding.high, self.question.half_width(finding.at), finding.state,
            finding.why, finding.needed, requests,
        )  # fmt: skip

    def _rows(self, finding: ScanFinding, row: dict[str, Any], whole: bool) -> Iterator[Row]:
        """Yield the requests of a finding; `whole` says that values of the axis are whole numbers."""
        for x, count in sorted(finding.seeds.items()):
            yield Row({**row, self.dim: round(x) if whole else x}, count, f"{self.name}: {finding.why}")
