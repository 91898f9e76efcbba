"""Values of an axis and seeds for a limit along it.

1. Values, where there are too few of them, each with FIRST seeds.
2. Where the error by the choice of corrections takes more than the part FORM of the width that is wanted, another
   value: in the widest gap up to six values, then beyond the last one, to the upper bound; but seeds, which make
   corrections surer too, while these cost less than another value.
3. Otherwise seeds: those that give the limit its width for the fewest simulated steps (Neyman).
Points that clearly have another form than the law with its corrections have no limit, however many there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from sweeplib.analysis import ANALYSES
from sweeplib.analysis.answers.answer import Answer, State
from sweeplib.analysis.answers.proposer import PROPOSERS
from sweeplib.analysis.answers.proposers.boundary import next_value
from sweeplib.analysis.answers.proposers.seeds import FIRST, GROWTH, WIDE, next_totals
from sweeplib.analysis.answers.table import AskedRows, named, points
from sweeplib.analysis.averages import counts_steps, steps_at_times
from sweeplib.analysis.kit.problem_fields import with_constants
from sweeplib.engine.base.arrays import Array
from sweeplib.engine.base.budget import SEEDS
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.design.questions import Question, Row
from sweeplib.engine.storage.dataset.outline import Outline
from sweeplib.errors import InputError
from sweeplib.statistics.extrapolation import FEW, MISFIT

FORM, Z = 0.7, 1.96
"""The part of a width that may be the error by the choice of corrections; half an interval over its standard error."""
MOST_FOR_FORM = 4096
"""Seeds beyond which the choice of corrections is not expected to become surer by seeds."""
SeededRows = list[tuple[dict[str, Any], int]]
"""The rows at a point, as values by axis, each with the number of seeds that it has been asked for."""


class LimitAlongAxis:
    """Asks for values of an axis and seeds until the interval of a limit along it is narrow enough."""

    example: ClassVar[Mapping[str, Any]] = {"of": "extrapolation", "to": "50 %", "refine": {"d": [10, 1000]}}

    def __init__(self, name: str, question: Question) -> None:
        self.name, self.question = name, question
        [(self.axis, (self.low, self.high))] = question.bounds.items()

    @classmethod
    def takes(cls, question: Question) -> bool:
        """Return whether values of one axis may be added for the limit of `extrapolation`."""
        return len(question.bounds) == 1 and (question.of, question.variable) == ("extrapolation", "limit")

    def check(self, outline: Outline, options: Mapping[str, Any]) -> None:
        """Raise InputError unless the axis that may get values is that of the limit."""
        along = ANALYSES[self.question.of].check(options)["axis"]
        key = f"answers.{self.name}.refine"
        if along != self.axis:
            raise InputError("not the axis of the limit", key=key, value=self.axis, choices=[along])
        if self.low <= 0.0:
            raise InputError("not bounds", key=f"{key}.{self.axis}", value=self.low, expected="both above 0")

    def tell(self, ds: xr.Dataset, options: Mapping[str, Any]) -> list[Answer]:
        """Return the limits at all points, each with the rows that it needs."""
        result = ANALYSES[self.question.of](ds, **options)
        rows_by_point, steps = AskedRows(ds), steps_of_runs(with_constants(ds))
        answers = []
        for place in points(result["limit"], self.question.at):
            rows = rows_by_point.at(place)
            if rows:
                here = result.isel({dim: at for dim, at in place.items() if dim in result.dims})
                places = {dim: at for dim, at in place.items() if dim in steps.dims}
                answers.append(self._answer(named(result["limit"], place), here, rows, steps.isel(places)))
        return answers

    def _answer(self, at: dict[str, Any], limit: xr.Dataset, rows: SeededRows, steps: xr.DataArray) -> Answer:
        """Return the answer for the point with coordinates `at`, and what to ask for next, by the module's steps.

        limit : the result of `extrapolation` there. steps : the mean steps of a run, along the axis and others.
        """
        value, low, high = (float(limit[f"limit{end}"]) for end in ("", "_low", "_high"))
        answer = Answer(self.name, at, value, low, high, self.question.half_width(value))
        x = sorted({row[self.axis] for row, _ in rows})
        fewest = np.array([min(count for row, count in rows if row[self.axis] == number) for number in x])
        if (fewest < FIRST).any():
            return self._asking(answer, "its points need seeds", rows, dict.fromkeys(x, FIRST))
        verdict = int(limit["verdict"])
        if verdict == MISFIT:
            why = f"its points clearly deviate from the law and its corrections, χ²/n = {float(limit.reduced_chi2):.3g}"
            return replace(answer, state=State.none, why=f"{why}: another law, or larger values of {self.axis}, may do")
        if verdict == FEW:
            return self._another(answer, "too few values, or values too near to each other", rows, x)
        if answer.half_width <= answer.wanted:
            return replace(answer, state=State.given, cases=0.0)
        errors = limit["limit_error_of_value"].sel({self.axis: x}).values
        costs = steps.mean([dim for dim in steps.dims if dim != self.axis]).sel({self.axis: x}).values
        # a value of which no run has counted yet is as dear as the dearest
        costs = np.where(costs > 0.0, costs, np.nanmax(costs))
        # a value that the limit leaves out has the error NaN: it adds none
        return self._wide(answer, rows, x, fewest.astype(float), np.nan_to_num(errors), costs)

    def _wide(
        self, answer: Answer, rows: SeededRows, x: list[Any], seeds: Array, errors: Array, costs: Array
    ) -> Answer:
        """Return an answer whose interval is too wide, with requests that make it narrower: a value, or seeds.

        x : the values of the axis. seeds, errors, costs (values,) : the fewest seeds of a row there, the error of the
        limit by that of the value, and the mean steps of a run.
        """
        by_seeds = float(np.sum(errors**2))
        form = max(0.0, (answer.half_width / Z) ** 2 - by_seeds)
        room = (answer.wanted / Z) ** 2
        spreads = errors * np.sqrt(seeds)
        if form > FORM**2 * room:
            return self._unsure(answer, rows, x, seeds, costs)
        goals = spreads / np.sqrt(costs) * float(np.sum(spreads * np.sqrt(costs))) / (room - form)
        if (goals <= seeds).all():
            goals = seeds * (answer.half_width / answer.wanted) ** 2
        if goals.max() > SEEDS:
            return replace(answer, state=State.none, why=f"a point would need more than {SEEDS:,} seeds")
        request = self._asking(answer, WIDE, rows, dict(zip(x, next_totals(seeds, goals), strict=True)))
        return replace(request, cases=float(np.maximum(goals - seeds, 0.0).sum()))

    def _unsure(self, answer: Answer, rows: SeededRows, x: list[Any], seeds: Array, costs: Array) -> Answer:
        """Return an answer whose corrections are unsure with a request for a value or, while that costs more, seeds."""
        why, following = "the form of its corrections is not sure", next_value(x, self.low, self.high)
        price = 0.0 if following is None else FIRST * costs[-1] * max(1.0, following / x[-1])
        if following is not None and (price <= seeds @ costs or seeds.min() >= MOST_FOR_FORM):
            return self._another(answer, why, rows, x)
        if seeds.min() < MOST_FOR_FORM:
            totals = np.maximum(seeds, np.minimum(GROWTH * seeds, MOST_FOR_FORM)).astype(int).tolist()
            return self._asking(answer, why, rows, dict(zip(x, totals, strict=True)))
        why = f"{why} with {seeds.min():.0f} seeds of values up to {x[-1]:g}"
        return replace(answer, state=State.none, why=why)

    def _another(self, answer: Answer, why: str, rows: SeededRows, x: list[Any]) -> Answer:
        """Return an answer that asks for the next value of the axis with FIRST seeds; state `none` at the bound."""
        following = next_value(x, self.low, self.high)
        if following is None:
            state_why = f"{why}, and {self.axis} has no more values between its bounds"
            return replace(answer, state=State.none, why=state_why)
        places = [{**row, self.axis: following} for row, _ in rows if row[self.axis] == x[-1]]
        reason = f"{self.name}: {why}"
        return replace(answer, why=why, requests=tuple(Row(place, FIRST, reason) for place in places))

    def _asking(self, answer: Answer, why: str, rows: SeededRows, totals: Mapping[Any, int]) -> Answer:
        """Return an answer with requests: each row gets the seeds of `totals` at its value of the axis.

        Rows that have as many are left out.
        """
        wanted = [(row, count, totals[row[self.axis]]) for row, count in rows]
        reason = f"{self.name}: {why}"
        requests = tuple(Row(row, total, reason) for row, count, total in wanted if total > count)
        return replace(answer, why=why, requests=requests)


def steps_of_runs(ds: xr.Dataset) -> xr.DataArray:
    """Return the mean number of steps of the runs of each row: to their ends if recorded, else to the last time.

    Of functions, and of networks without steps, it is 1: what another row costs is not known.
    """
    if "end_steps" in ds:
        return ds["end_steps"].mean("seed")
    if not counts_steps(ds):
        return xr.ones_like(ds["status"].isel(seed=0, drop=True), dtype=float)
    return steps_at_times(ds).isel(time=-1, drop=True)


PROPOSERS.register("extrapolation", LimitAlongAxis)
