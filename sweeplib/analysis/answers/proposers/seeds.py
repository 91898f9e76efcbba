"""More seeds, for any variable of an analysis that has an interval from seeds.

The fixed-width rule (Chow and Robbins 1965, doi 10.1214/aoms/1177700156): rounds of seeds in their order, all of a
round finished before it is used, FIRST seeds at least, until the interval is as narrow as was asked. It looks at the
width, hardly at the value, so that the interval at the end covers as often as it says: the table is in
docs/how-to/answers.md. Each point gets the seeds that it needs itself (`growth_needed`): that is Neyman's
allocation, as each answer is to have its own precision. The number is known as well as the width is; therefore a round
goes to GROWTH times the seeds at most, and to the part SAFE of what is needed before the last one.

Equal values say nothing of the width of a mean, and no width is relative to a value of 0: both are said, as it is known
that they are, and no seeds are added for them beyond SEEDS_FOR_NOTHING.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sweeplib.analysis import ANALYSES
from sweeplib.analysis.analysis import Treated
from sweeplib.analysis.answers.answer import Answer, State
from sweeplib.analysis.answers.proposer import PROPOSERS
from sweeplib.analysis.answers.table import AskedRows, names_of, points, seeds_asked, values_at
from sweeplib.analysis.answers.unexited_runs import UnexitedRuns
from sweeplib.analysis.kit.variables import is_stochastic
from sweeplib.engine.base.budget import SEEDS
from sweeplib.engine.base.late_modules import scipy
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.design.questions import Question, Row
from sweeplib.engine.storage.dataset.outline import Outline
from sweeplib.errors import InputError
from sweeplib.statistics.estimators import PART_OF_TAIL, unseen
from sweeplib.statistics.lost_runs import MOST_LOST, has_run, values_of, with_status, without_value
from sweeplib.statistics.seed_means import FEWEST_SEEDS

FIRST = 64
"""Seeds before an interval is looked at: with fewer, rounds that stop at a width cover less."""
GROWTH = 4.0
"""The most by which a round multiplies the seeds, before the last round."""
SAFE = 0.6
"""The part of the seeds that are needed, as estimated, to which a round before the last one goes."""
MARGIN = 1.01
"""What the last round asks for beyond the estimate, so that there is seldom another one."""
STEP = 1.2
"""The least growth of a round."""
UNKNOWN_GROWTH = 1.5
"""The growth of a round where the width does not tell what is needed."""
SEEDS_FOR_NOTHING = 4096
"""The seeds after which a fraction of 0, or an interval about 0, is not asked for a relative precision any more."""
ROUNDING = 1e-9
"""The relative width below which the interval of runs of a deterministic dynamics is that of equal runs."""
WIDE, NO_INTERVAL = "its interval is too wide", "so few seeds have no interval"
ONE_SIDED = "so few seeds do not tell an end of its interval"
# NOTHING is for a value 0, relative to which no width is wanted
NOTHING = "a relative precision of the value 0"
ABOUT_ZERO = "its interval contains 0, so that a relative precision is out of reach; ask in its units, as `to: 0.01`"
EQUAL = "equal in all runs of a deterministic dynamics"
UNMOVED = "more seeds leave its interval as it is, as not all dynamics get them (`where`)"
"""The reasons for an answer's state, as its `why`."""


def next_totals(seeds: NDArray[np.float64], goals: NDArray[np.float64]) -> list[int]:
    """Return the seeds of rows in the next round, which need `goals` seeds in all."""
    near = goals <= seeds / SAFE
    # decisions: The mean of anything has one interval
    totals = np.where(near, MARGIN * goals, np.minimum(SAFE * goals, GROWTH * seeds))
    totals = np.where(goals > seeds, np.maximum(totals, STEP * seeds), seeds)
    return [math.ceil(total) for total in totals]


class Seen(NamedTuple):
    """What is known of the values at a point.

    noisy : whether the dynamics is stochastic, or may be. varies : 1 if the values differ between seeds, 0 if they are
    equal; NaN as long as too few seeds are known.
    """

    noisy: bool = True
    varies: float = 1.0

    @property
    def equal(self) -> bool:
        """Whether all values are equal."""
        return self.varies == 0.0

    @property
    def first(self) -> int:
        """The seeds before an interval is looked at: few of a deterministic dynamics, as long as it may not vary."""
        return FIRST if self.noisy or self.varies == 1.0 else FEWEST_SEEDS


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
        """Raise InputError for a question about values at the last time, if runs stop at their exits before it."""
        analysis = ANALYSES[self.question.of]
        stops = outline.attrs.get("stop") == "exit" and analysis.treatment("exit") is Treated.left_out
        if not stops or "time" in self.question.at:
            return
        result = analysis.outlined(outline, options)
        if result is not None and "time" in result.variables.get(self.question.variable, ()):
            time, expected = outline.axes["time"][-1], "`stop: end`, or an earlier time, as `at: {time: 1}`"
            problem = "runs stop at their exits and have no value at the last time"
            raise InputError(problem, key=f"answers.{self.name}.at.time", value=time, expected=expected)

    def tell(self, ds: xr.Dataset, options: Mapping[str, Any]) -> list[Answer]:
        """Return the answers from the variable and its interval, each with the rows that take part in it."""
        # an answer that compares dynamics has the seeds of all: if these alone give its interval, others do not move it
        result, common = ANALYSES[self.question.of](ds, **options), _with_seeds_of_all(ds)
        least = FIRST if common is None else seeds_asked(common).where(has_run(common).any("seed")).min().item()
        freedom = min(FIRST, least) - 1.0
        variable, low, high = self._interval(result, freedom)
        rows, named, dims = AskedRows(ds), names_of(variable), [str(dim) for dim in variable.dims]
        flag = result[variable.attrs["bound"]] if "bound" in variable.attrs else xr.zeros_like(variable, dtype=bool)
        lasting = result[flag.attrs["lasting"]] if "lasting" in flag.attrs else flag
        is_open, is_lasting = (values_at(array.broadcast_like(variable), dims) for array in (flag, lasting))
        columns = [values_at(array, dims) for array in (variable, low, high)]
        unmoved, sight_at = np.zeros(variable.shape, bool), self._sights(result, variable, high - low)
        lost = values_at(self._lost(ds, variable), dims)
        if common is not None:
            of_all = self._interval(ANALYSES[self.question.of](common, **options), freedom)
            unmoved = np.logical_and.reduce([values_at(a, dims) == b for a, b in zip(of_all, columns, strict=True)])
        answers, unexited = [], UnexitedRuns(ds, options.get("max_lost", MOST_LOST))
        for place in points(variable, self._at(variable)):
            index = tuple(place[dim] for dim in dims)
            numbers = [float(column[index]) for column in columns]
            fewest = min((seeds for _, seeds in rows.at(place)), default=0)
            # an end of a flagged interval is not known: more seeds may tell it, fewer are tried where the reason lasts
            may_close = is_open[index] and fewest < (FIRST if is_lasting[index] else SEEDS_FOR_NOTHING)
            why = _flagged(flag, unexited, place) if is_open[index] and not may_close else ""
            why = why or (UNMOVED if unmoved[index] else "")
            answer = self._answer(
                rows.at(place), named(place), numbers, why, sight_at(place), is_open=may_close,
                needs=str(variable.attrs.get("needs", "")),
            )  # fmt: skip
            if answer is not None:
                answers.append(replace(answer, note=_of_lost_runs(int(lost[index]), rows.at(place))))
        return answers

    def _lost(self, ds: xr.Dataset, variable: xr.DataArray) -> xr.DataArray:
        """Return how many runs at each point of a variable have no value of it or, if it is not recorded, failed."""
        name = self.question.variable
        lost = without_value(values_of(ds, name), has_run(ds)) if name in ds else with_status(ds, "failed", "killed")
        count = lost.sum([dim for dim in lost.dims if dim not in variable.dims]).reset_coords(drop=True)
        at_points = count.reindex({dim: variable[dim].values for dim in count.dims}, fill_value=0)
        return at_points.broadcast_like(variable)

    def _at(self, variable: xr.DataArray) -> Mapping[str, tuple[Any, ...]]:
        """Return where the question is asked: at the last time, unless it says which."""
        last = {"time": (variable["time"].values[-1].item(),)} if "time" in variable.dims else {}
        return {**last, **self.question.at}

    def _interval(self, result: xr.Dataset, freedom: float) -> tuple[xr.DataArray, ...]:
        """Return the variable and the ends of its interval: its own, or by its standard error and Student's t.

        freedom : the degrees of freedom of t, by the fewest seeds that an answer may have; with more seeds the interval
        is a little too wide. InputError if the analysis has no interval of the variable.
        """
        name = self.question.variable
        if f"{name}_error" in result and f"{name}_low" not in result:
            # the part of .05 beyond each end that `ends_of_mean` leaves there
            half = result[f"{name}_error"] * float(scipy.special.stdtrit(freedom, 1.0 - 0.025 * PART_OF_TAIL))
            return result[name], result[name] - half, result[name] + half
        names = [name, f"{name}_low", f"{name}_high"]
        if all(variable in result for variable in names):
            return tuple(result[variable] for variable in names)
        variables = [variable.removesuffix("_low") for variable in map(str, result) if variable.endswith("_low")]
        problem, key = f"{self.question.of} has no interval of it", f"answers.{self.name}.variable"
        raise InputError(problem, key=key, value=name, choices=variables)

    def _sights(
        self, result: xr.Dataset, variable: xr.DataArray, width: xr.DataArray
    ) -> Callable[[Mapping[str, int]], Seen]:
        """Return a function that says what is known of the values at a point, by its index by dimension.

        Whether values vary is told by the standard error or, for deterministic dynamics, by the `width` of the
        interval: that of a median may be 0 although values vary.
        """
        names = variable["dynamics"].values.tolist() if "dynamics" in variable.dims else []
        noisy, error = [*map(is_stochastic, names)], result.get(f"{self.question.variable}_error")
        spread, dims = width if error is None else error, [str(dim) for dim in variable.dims]
        varies = values_at((abs(spread) > ROUNDING * abs(variable)).where(spread.notnull()), dims)

        def sight_at(place: Mapping[str, int]) -> Seen:
            """Return what is known of the values at an index by dimension."""
            is_noisy = noisy[place["dynamics"]] if noisy else True
            return Seen(
                is_noisy, 1.0 if error is None and is_noisy else float(varies[tuple(place[dim] for dim in dims)])
            )

        return sight_at

    def _answer(
        self,
        rows: list[tuple[dict[str, Any], int]],
        at: dict[str, Any],
        numbers: list[float],
        why: str,
        sight: Seen,
        *,
        is_open: bool = False,
        needs: str = "",
    ) -> Answer | None:
        """Return the answer at one point from the rows that take part in it, with their seeds; None without rows.

        at : coordinates. numbers : the value and the ends of its interval. why : a reason why more seeds do not help,
        or "". is_open : its interval has an end that is not known yet. needs : what the analysis needs for a value.
        """
        if not rows:
            return None
        best, low, high = numbers
        answer = Answer(self.name, at, best, low, high, self.question.half_width(best))
        fewest = min(seeds for _, seeds in rows)
        # equal zeros, or ones, have an interval where others are ones: they are known to be proportions
        is_proportion = sight.noisy and answer.high - answer.low > ROUNDING * abs(answer.value)
        if sight.equal and not is_proportion and fewest >= sight.first and why in ("", UNMOVED):
            return _of_equal_values(answer, fewest, sight.noisy, has_statistic=self.question.of == "averages")
        ratio = answer.half_width / answer.wanted if answer.wanted > 0.0 and not is_open else math.inf
        if fewest >= FIRST and ratio <= 1.0 and why in ("", UNMOVED):
            return replace(answer, state=State.given, cases=0.0)
        why = why or (self._hopeless(answer, fewest, needs) if fewest >= FIRST else "")
        if why:
            return replace(answer, state=State.none, why=why)
        if math.isfinite(ratio):
            return self._asking(answer, rows, sight.first, self._growth(answer))
        growth = max(self._growth(answer), UNKNOWN_GROWTH if is_open else 1.0)
        why = ONE_SIDED if is_open else _not_known(answer)
        return replace(self._asking(answer, rows, sight.first, growth), why=why, cases=math.nan)

    def _hopeless(self, answer: Answer, seeds: int, needs: str) -> str:
        """Return why no number of seeds, or hardly any, makes an answer precise; "" if more seeds may.

        seeds : the number that its rows have now. needs : what the analysis needs for a value.
        """
        if math.isnan(answer.half_width):
            return f"{seeds} seeds have no such value or no interval of it" + (f": it needs {needs}" if needs else "")
        if answer.wanted == 0.0:
            enough = seeds >= SEEDS_FOR_NOTHING or answer.half_width == 0.0
            return f"{NOTHING} in {seeds:,} seeds" if enough else ""
        is_far = self.question.relative and seeds >= SEEDS_FOR_NOTHING and self._growth(answer) > GROWTH**2
        return ABOUT_ZERO if is_far and answer.low <= 0.0 <= answer.high else ""

    def _growth(self, answer: Answer) -> float:
        """Return `growth_needed`; if the interval contains 0, for the precision wanted of its end farther from 0."""
        if not answer.low <= 0.0 <= answer.high:
            return growth_needed(answer)
        wanted = self.question.half_width(max(abs(answer.low), abs(answer.high)))
        return growth_needed(replace(answer, wanted=wanted))

    def _asking(self, answer: Answer, rows: list[tuple[dict[str, Any], int]], first: int, growth: float) -> Answer:
        """Return the answer with requests that multiply the seeds of its rows by `growth`, to `first` at least.

        rows : the values of all axes at each row of the answer, and the number of its seeds so far.
        """
        seeds = np.array([count for _, count in rows], dtype=float)
        goals = np.maximum(first, np.floor(seeds * growth) + 1.0)
        cases = float((goals - seeds).sum())
        if goals.max() > SEEDS:
            return replace(answer, state=State.none, why=f"a point would need more than {SEEDS:,} seeds", cases=cases)
        reason = f"{self.name}: {self.question.precision}"
        totals = np.where(seeds < first, first, next_totals(seeds, goals)).tolist()
        requests = tuple(Row(at, total, reason) for (at, _), total in zip(rows, totals, strict=True))
        return replace(answer, why=WIDE, cases=cases, requests=requests)


def _of_equal_values(answer: Answer, seeds: int, noisy: bool, *, has_statistic: bool) -> Answer:
    """Return the answer of equal values: given if the dynamics is deterministic, else without an interval.

    has_statistic : whether the analysis has the option.
    """
    if not noisy:
        return replace(answer, state=State.given, why=EQUAL, cases=0.0)
    why = f"no variation in {seeds:,} seeds: {unseen(seeds)}"
    if has_statistic and answer.value in (0.0, 1.0):
        why += "; a proportion has an interval with `statistic: {above: 0.5}`"
    return replace(answer, low=math.nan, high=math.nan, state=State.none, why=why)


def _of_lost_runs(lost: int, rows: list[tuple[dict[str, Any], int]]) -> str:
    """Return in words how many of the runs of the rows of an answer are left out; "" if none is."""
    return f"{lost:,} of {sum(seeds for _, seeds in rows):,} runs have no value" if lost else ""


def _not_known(answer: Answer) -> str:
    """Return why it cannot be told how many seeds an answer needs, where no other reason applies.

    Its half width is not a finite multiple of the wanted one.
    """
    if math.isinf(answer.half_width):
        return ONE_SIDED
    # a half width > 0: the wanted one is 0, as the value is. Otherwise it is NaN, or 0 of equal values
    return f"{NOTHING} so far" if answer.half_width > 0.0 else NO_INTERVAL


def _with_seeds_of_all(ds: xr.Dataset) -> xr.Dataset | None:
    """Return the dataset with only the seeds that all dynamics have at a point, other runs missing; None if all do.

    A comparison of dynamics uses these seeds alone: by this dataset one sees whether other seeds moved its interval.
    Dynamics that have no run at a point do not count.
    """
    run = has_run(ds)
    shared = (run | ~run.any("seed")).all("dynamics")
    if not bool((run & ~shared).any()):
        return None
    # 0 is the code of missing
    return ds.assign(status=ds["status"].where(shared, 0).astype(ds["status"].dtype).assign_attrs(ds["status"].attrs))


def growth_needed(answer: Answer) -> float:
    """Return the factor, 1 at least, by which the seeds of an answer must grow for the half width that is wanted.

    The smaller of the distances from the value to the ends of its interval falls like the root of the seeds, their
    difference like the seeds. UNKNOWN_GROWTH where an end is infinite or nothing is wanted.
    """
    least, most = sorted((answer.value - answer.low, answer.high - answer.value))
    if math.isnan(answer.half_width) or answer.wanted < 0.0:
        return 1.0
    if math.isinf(most) or answer.wanted == 0.0:
        return UNKNOWN_GROWTH
    # the solution of least/r + (most − least)/r² = wanted, r² the growth
    root = (least + math.sqrt(least**2 + 4.0 * (most - least) * answer.wanted)) / (2.0 * answer.wanted)
    return max(1.0, root**2)


def _flagged(flag: xr.DataArray, unexited: UnexitedRuns, place: Mapping[str, int]) -> str:
    """Return the reason of a flag of the analysis, which marks values that more seeds do not make precise.

    For means that are restricted to the horizon it adds what the unexited runs at the place say of a longer one.
    """
    reason = str(flag.attrs.get("reason", flag.name))
    return f"{reason}, {unexited.why(place)}" if flag.name == "restricted" else reason


PROPOSERS.register("seeds", MoreSeeds)
