"""What proposers of values along one axis share: the rows of each point go in, requests and an answer come out."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sweeplib.analysis import ANALYSES
from sweeplib.analysis.answers.answer import Answer, State
from sweeplib.analysis.answers.proposers.scan import ScanColumn
from sweeplib.analysis.answers.table import named, points, seeds_asked, value
from sweeplib.analysis.kit.seed_values import Curves, axis_along, curves_along
from sweeplib.engine.base.arrays import Array
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.design.questions import Question, Row
from sweeplib.errors import InputError

if TYPE_CHECKING:
    from sweeplib.engine.storage.dataset.outline import Outline

CLEAR = 3.0
"""The standard errors by which one mean is clearly larger than another."""
LEAST_PART = 0.02
"""The least part of the seeds that a row gets."""
MOST_SEEDS = 8192
"""Seeds of a row after which values that are not told apart count as equal, and needs are believed."""


def neyman_goals(spreads: Array, prices: Array, seeds: Array, growth: float) -> Array:
    """Return the seeds of rows that make the variance of a number `growth` times smaller for the least price (Neyman).

    The variance is Σ spreads²/seeds, the price Σ prices·seeds, over the rows.
    """
    costs = spreads / np.sqrt(prices)
    parts = np.maximum(costs / costs.sum(), LEAST_PART)
    parts /= parts.sum()
    goals = growth * parts * np.sum(spreads**2 / parts) / np.sum(spreads**2 / seeds)
    return np.asarray(growth * seeds if (goals <= seeds).all() else goals)


@dataclass(frozen=True)
class ScanFinding:
    """What a look at the rows says: the place and its interval, the state and why, and the seeds of rows by their x.

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

    variables : the analyses, and their variables, of which it takes questions. place : what these look for. values :
    those of the variables that are the value there, in other units than the axis.
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
        """Return whether values of one axis may be added for such a place."""
        return len(question.bounds) == 1 and (question.of, question.variable) in cls.variables

    @abstractmethod
    def finding(self, column: ScanColumn, options: Mapping[str, Any]) -> ScanFinding:
        """Return what a look at the rows of one point finds, with the options of the analysis."""

    def axis(self, outline: Outline, options: Mapping[str, Any]) -> str:
        """Return the axis along which the analysis looks."""
        return axis_along(outline, options["of"], options["along"])

    def runs(self, ds: xr.Dataset, options: Mapping[str, Any]) -> Curves:
        """Return the values of single runs along the axis."""
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
        from sweeplib.analysis.kit.problem_fields import with_constants

        complete = ANALYSES[self.question.of].check(options)
        runs = self.runs(with_constants(ds), complete)
        seeds, variable = seeds_asked(ds), runs.values.isel({"seed": 0, self.dim: 0}, drop=True)
        answers = []
        for place in points(variable, self.question.at):
            column = ScanColumn.of(runs, seeds, place, self.dim)
            if len(column.x):
                row = {name: value(ds, name, index) for name, index in place.items() if name in ds["status"].dims}
                row.pop("dynamics")
                answers.append(self._answer(named(variable, place), row, column, self.finding(column, complete)))
        return answers

    def _answer(self, at: dict[str, Any], row: dict[str, Any], column: ScanColumn, finding: ScanFinding) -> Answer:
        requests = tuple(self._rows(finding, row, column.is_whole))
        return Answer(
            self.name, at, finding.at, finding.low, finding.high, self.question.half_width(finding.at), finding.state,
            finding.why, finding.needed, requests,
        )  # fmt: skip

    def _rows(self, finding: ScanFinding, row: dict[str, Any], whole: bool) -> Iterator[Row]:
        for x, count in sorted(finding.seeds.items()):
            yield Row({**row, self.dim: round(x) if whole else x}, count, f"{self.name}: {finding.why}")
