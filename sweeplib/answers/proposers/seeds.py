"""More seeds, for any variable of an analysis that has an interval from seeds.

The fixed-width rule (Chow and Robbins 1965, doi 10.1214/aoms/1177700156): rounds of seeds in their order, all of a
round finished before it is used, FIRST seeds at least, until the interval is as narrow as was asked. It looks at the
width, hardly at the value, so that the interval at the end covers as often as one of a fixed number of seeds: the
table is in docs/how-to/answers.md. Each point gets the seeds that it needs itself (`growth_needed`): that is Neyman's
allocation, as each answer is to have its own precision. The number is known as well as the width is; therefore a round
goes to GROWTH times the seeds at most, and to the part SAFE of what is needed before the last one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sweeplib.analysis import ANALYSES
from sweeplib.analysis.kit.lost_runs import has_run
from sweeplib.answers.answer import Answer, State
from sweeplib.answers.proposer import PROPOSERS
from sweeplib.answers.table import AskedRows, names_of, points, seeds_asked, values_at
from sweeplib.answers.unexited_runs import UnexitedRuns
from sweeplib.budget import SEEDS
from sweeplib.design.questions import Question, Row
from sweeplib.errors import InputError
from sweeplib.late_modules import scipy
from sweeplib.late_modules import xarray as xr
from sweeplib.storage.dataset.outline import Outline

if TYPE_CHECKING:
    from numpy.typing import NDArray

FIRST = 64
"""Seeds before an interval is looked at: with fewer, rounds that stop at a width cover less."""
GROWTH = 4.0
SAFE = 0.6
MARGIN = 1.01
"""What the last round asks for beyond the estimate, so that there is seldom another one."""
WIDE, NO_INTERVAL = "its interval is too wide", "so few seeds have no interval"
STEP = 1.02
"""The least growth of a round."""
UNMOVED = "more seeds leave its interval as it is, as not all dynamics get them (`where`)"


def next_totals(seeds: NDArray[np.float64], goals: NDArray[np.float64]) -> list[int]:
    """Return the seeds of rows in the next round, which need `goals` seeds in all."""
    near = goals <= seeds / SAFE
    totals = np.where(near, MARGIN * goals, np.minimum(SAFE * goals, GROWTH * seeds))
    totals = np.where(goals > seeds, np.maximum(totals, STEP * seeds), seeds)
    return [math.ceil(total) for total in totals]


class MoreSeeds:
    """Asks for seeds at each point until its interval is narrow enough."""

    example: ClassVar[Mapping[str, Any]] = {"of": "exit_times", "variable": "exit_steps_mean", "to": "10 %"}

    def __init__(self, name: str, question: Question) -> None:
        self.name, self.question = name, question

    @classmethod
    def takes(cls, question: Question) -> bool:
        """Return whether only seeds may be added."""
        return not (question.bounds or question.decided)

    def check(self, outline: Outline, options: Mapping[str, Any]) -> None:
        """Every sweep that fits the analysis may have more seeds."""

    def tell(self, ds: xr.Dataset, options: Mapping[str, Any]) -> list[Answer]:
        """Return the answers from the variable and its interval, each with the rows that take part in it."""
        result, every = ANALYSES[self.question.of](ds, **options), _with_seeds_of_all(ds)
        fewest = FIRST if every is None else seeds_asked(every).where(has_run(every).any("seed")).min().item()
        freedom = min(FIRST, fewest) - 1.0
        variable, low, high = self._interval(result, freedom)
        rows, named, dims = AskedRows(ds), names_of(variable), [str(dim) for dim in variable.dims]
        flag = result[variable.attrs["bound"]] if "bound" in variable.attrs else None
        impossible = None if flag is None else values_at(flag.broadcast_like(variable), dims)
        columns = [values_at(array, dims) for array in (variable, low, high)]
        unmoved = np.zeros(variable.shape, bool)
        if every is not None:
            of_all = self._interval(ANALYSES[self.question.of](every, **options), freedom)
            unmoved = np.logical_and.reduce([values_at(a, dims) == b for a, b in zip(of_all, columns, strict=True)])
        answers, unexited = [], UnexitedRuns(ds)
        for place in points(variable, self.question.at):
            index = tuple(place[dim] for dim in dims)
            numbers = [float(column[index]) for column in columns]
            why = _flagged(flag, unexited, place) if impossible is not None and impossible[index] else ""
            why = why or (UNMOVED if unmoved[index] else "")
            answer = self._answer(rows.at(place), named(place), numbers, why)
            answers += [answer] if answer is not None else []
        return answers

    def _interval(self, result: xr.Dataset, freedom: float) -> tuple[xr.DataArray, ...]:
        """Return the variable and the ends of its interval: its own, or by its standard error and Student's t.

        t is that of FIRST seeds, the fewest of an answer that is given, or of fewer that all dynamics have; with more
        the interval is a little too wide.
        """
        name = self.question.variable
        if f"{name}_error" in result and f"{name}_low" not in result:
            half = result[f"{name}_error"] * float(scipy.special.stdtrit(freedom, 0.975))
            return result[name], result[name] - half, result[name] + half
        names = [name, f"{name}_low", f"{name}_high"]
        if all(variable in result for variable in names):
            return tuple(result[variable] for variable in names)
        variables = [variable.removesuffix("_low") for variable in map(str, result) if variable.endswith("_low")]
        problem, key = f"{self.question.of} has no interval of it", f"answers.{self.name}.variable"
        raise InputError(problem, key=key, value=name, choices=variables)

    def _answer(
        self, rows: list[tuple[dict[str, Any], int]], at: dict[str, Any], numbers: list[float], why: str
    ) -> Answer | None:
        """Return the answer at one point from the rows that take part in it; None without any."""
        if not rows:
            return None
        worth, low, high = numbers
        answer = Answer(self.name, at, worth, low, high, self.question.half_width(worth))
        fewest = min(seeds for _, seeds in rows)
        ratio = answer.half_width / answer.wanted if answer.wanted > 0.0 else math.inf
        if fewest >= FIRST and ratio <= 1.0 and why in ("", UNMOVED):
            return replace(answer, state=State.given, cases=0.0)
        if why or (fewest >= FIRST and not math.isfinite(ratio)):
            return replace(answer, state=State.none, why=why or _no_interval(answer, fewest))
        if math.isfinite(ratio):
            return self._asking(answer, rows)
        return replace(self._asking(answer, rows), why=NO_INTERVAL, cases=math.nan)

    def _asking(self, answer: Answer, rows: list[tuple[dict[str, Any], int]]) -> Answer:
        seeds = np.array([count for _, count in rows], dtype=float)
        goals = np.maximum(FIRST, np.floor(seeds * growth_needed(answer)) + 1.0)
        cases = float((goals - seeds).sum())
        if goals.max() > SEEDS:
            return replace(answer, state=State.none, why=f"a point would need more than {SEEDS:,} seeds", cases=cases)
        reason = f"{self.name}: {self.question.precision}"
        totals = np.where(seeds < FIRST, FIRST, next_totals(seeds, goals)).tolist()
        requests = tuple(Row(at, total, reason) for (at, _), total in zip(rows, totals, strict=True))
        return replace(answer, why=WIDE, cases=cases, requests=requests)


def _with_seeds_of_all(ds: xr.Dataset) -> xr.Dataset | None:
    """Return the dataset without seeds that only some of the dynamics of a row have; None if there are none."""
    run = has_run(ds)
    everyone = (run | ~run.any("seed")).all("dynamics")
    if not bool((run & ~everyone).any()):
        return None
    return ds.assign(status=ds["status"].where(everyone, 0).astype(ds["status"].dtype).assign_attrs(ds["status"].attrs))


def growth_needed(answer: Answer) -> float:
    """Return the factor, 1 at least, by which the seeds of an answer must grow for the half width that is wanted.

    The smaller of the distances from the value to the ends of its interval falls like the root of the seeds, their
    difference like the seeds; of positive values in logarithms, as the intervals of means do (`mean_interval`).
    """
    value, low, high, wanted = answer.value, answer.low, answer.high, answer.wanted
    if low > 0.0:
        value, low, high, wanted = 0.0, math.log(low / value), math.log(high / value), math.log1p(wanted / value)
    least, most = sorted((value - low, high - value))
    if not math.isfinite(most) or not wanted > 0.0:
        return 1.0
    root = (least + math.sqrt(least**2 + 4.0 * (most - least) * wanted)) / (2.0 * wanted)
    return max(1.0, root**2)


def _flagged(flag: xr.DataArray | None, unexited: UnexitedRuns, place: Mapping[str, int]) -> str:
    """Return why a flag of the analysis says that a value is none that more seeds make precise."""
    if flag is None:
        return ""
    reason = str(flag.attrs.get("reason", flag.name))
    return f"{reason}, {unexited.why(place)}" if flag.name == "restricted" else reason


def _no_interval(answer: Answer, seeds: int) -> str:
    if math.isfinite(answer.value) and answer.wanted == 0.0:
        return "a relative precision of the value 0"
    return f"{seeds} seeds have no such value or no interval of it"


PROPOSERS.register("seeds", MoreSeeds)
