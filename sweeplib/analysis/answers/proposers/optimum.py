"""Learning rates and seeds for an optimum, or the value there: bracket it, then make the interval narrow.

1. Bracket: while the steps do not rise by END_RISE to an end of the scan, go on beyond it, to the bounds.
2. A second minimum, not clearly higher than the first and behind a barrier, gets seeds until it is told from the first.
3. Rows: one in each of BINS parts of the range in which the steps are at most NEAR times the least.
4. The answer is the optimum of the analysis, or its value, with the interval, of all rows (`MeanCurve`).
5. Where the form of the curve makes more of the error than the seeds, rates near the optimum are added; otherwise
   seeds, where they make the optimum precise for the least number of simulated steps (Neyman).

A scan has one row a learning rate, in their order; its steps are mean exit steps, or another quantity. Each step above
is a method of `ScanLook` that returns its finding, or None if the step has nothing to ask for. A row is cut off if so
many of its runs do not exit that it has no mean.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

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
from sweeplib.analysis.answers.unexited_runs import exits_go_on
from sweeplib.analysis.kit.seed_values import CUT_OFF, Curves, rate_scan, scan_dim
from sweeplib.engine.base.budget import SEEDS
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.design.questions import Question
from sweeplib.engine.storage.dataset.outline import Outline
from sweeplib.errors import InputError
from sweeplib.statistics.bootstrap import log_means, moments
from sweeplib.statistics.optima import NEAR, MeanCurve

OPTIMA = frozenset({("optimal_learning_rate", "gamma_opt"), ("optimum", "optimum")})
LEAST_VALUES = frozenset({("optimal_learning_rate", "exit_steps_min"), ("optimum", "best")})
"""The analyses, and their variables, for which values of an axis may be added: places of optima, and values there."""
END_RISE, SOME_RISE = 1.5, 1.1
"""The factors above the least mean steps to which a scan goes at its ends, and one that is cut off by rates at which
runs do not exit, where these are surely slower than that."""
BINS = 7
"""The parts of the range, in each of which a row is wanted."""
WIDEST_STEP, LEAST_STEP, AT_BOUND = 0.7, 0.2, 1e-6
"""The distances in ln γ between the end of a scan and the next rate beyond it; below which a rate is at a bound."""
MOSTLY, HOPELESS, MOST_RATES = 4.0, 256.0, 24
"""The variance by the form of the curve, over that by seeds, from which on rates are added, while there are so few.

From the second on there is no answer if none can be added: seeds would not narrow the interval to its half.
"""


class OptimumAlong(AlongAxis):
    """Asks for values of an axis, and seeds, until the interval of an optimum on it, or of its value, is narrow enough.

    The optimum is that of `optimal_learning_rate`, or of `optimum`: of any quantity whose means are positive.
    """

    example: ClassVar[Mapping[str, Any]] = {
        "of": "optimal_learning_rate",
        "to": "10 %",
        "refine": {"gamma": [0.05, 1.9]},
    }
    place, variables, values = "optimum", OPTIMA | LEAST_VALUES, LEAST_VALUES

    def __init__(self, name: str, question: Question) -> None:
        super().__init__(name, question)
        low, high = question.bounds[self.dim]
        if low <= 0.0 and (self.dim == "gamma" or question.of == "optimum"):
            key = f"answers.{name}.refine.{self.dim}"
            raise InputError("not bounds of such an axis", key=key, value=[low, high], expected="both above 0")

    def axis(self, outline: Outline, options: Mapping[str, Any]) -> str:
        """Return the axis of the optimum."""
        if self.question.of == "optimum":
            return super().axis(outline, options)
        return scan_dim(outline, options["along"])

    def runs(self, ds: xr.Dataset, options: Mapping[str, Any]) -> Curves:
        """Return the values of single runs along the axis, of exits up to the horizon too."""
        if self.question.of == "optimum":
            return super().runs(ds, options)
        return rate_scan(ds, self.dim, min(CUT_OFF, options["max_censored"]), options["max_lost"])

    def finding(self, column: ScanColumn, options: Mapping[str, Any]) -> ScanFinding:
        """Return what a look at the rows of one point finds."""
        return ScanLook(
            column, self.question, self.question.bounds[self.dim], options["confidence"],
            greatest=options.get("greatest", False),
        ).finding()  # fmt: skip


class _End(NamedTuple):
    """An end of a scan: its row, the next row inside, the bound of the axis beyond it, the sign of ln γ to go there."""

    place: int
    inner: int
    bound: float
    sign: int


class ScanLook:
    """One look at a scan: what is known of its optimum, and what is needed next.

    column : its rows. bounds : the ends of the axis, in the order of γ. finite (rows,) : which have a mean.
    logs (rows,) : logarithms of the means, negative ones if the `greatest` is sought, ∞ without a mean. errors (rows,)
    : their standard errors.
    """

    def __init__(
        self, column: ScanColumn, question: Question, bounds: tuple[float, float], confidence: float = 0.95, *,
        greatest: bool = False,
    ) -> None:  # fmt: skip
        self.column, self.question, self.confidence, self.greatest = column, question, confidence, greatest
        self.bounds = bounds if column.x[0] <= column.x[-1] else bounds[::-1]  # in the order of γ
        points_ = log_means(column.steps)
        logs, errors = points_.logs, np.sqrt(np.diag(points_.covariance))
        present = np.isfinite(column.steps)
        if greatest and np.unique(column.steps[present]).tolist() == [0.0, 1.0]:
            # a row without a success is far from the most of them; its fraction is taken for that of half a success
            counts = present.sum(axis=0)
            none = (np.nansum(column.steps, axis=0) == 0.0) & (counts > 0)
            logs, errors = np.where(none, -np.log(2.0 * counts + 2.0), logs), np.where(none, math.sqrt(2.0), errors)
        self.finite: NDArray[np.bool_] = np.isfinite(logs)
        self.logs = np.where(self.finite, -logs if greatest else logs, np.inf)
        self.errors = np.where(self.finite, errors, 0.0)

    def finding(self) -> ScanFinding:
        """Return the finding of the first step of the module's docstring that has something to ask for."""
        return (
            self._not_positive()
            or self._unseen()
            or self._cut_off()
            or self._beyond()
            or self._second()
            or self._gaps()
            or self._fitted()
        )

    @cached_property
    def best(self) -> int:
        """The row of least mean steps."""
        return int(self.logs.argmin())

    def _not_positive(self) -> ScanFinding | None:
        """A row whose mean is not above 0 gets FIRST seeds. If it stays so there is no answer: it has no logarithm."""
        _, means, _ = moments(self.column.steps)
        rows = np.flatnonzero((means <= 0.0) & ~self.finite)
        if not len(rows):
            return None
        if (few := rows[self.column.seeds[rows] < FIRST]).size:
            return ScanFinding("its values need seeds", {float(x): FIRST for x in self.column.x[few]})
        why = f"the mean at {self.column.gamma[rows[0]]:.3g} is not above 0: `refine: seeds` takes means of any sign"
        return ScanFinding(why, state=State.none)

    def _unseen(self) -> ScanFinding | None:
        """Rows that are not `cut_off` get FIRST seeds, unless their steps are clearly far above the least.

        If no row has a mean, rates beyond the ends are tried.
        """
        far = self.logs - CLEAR * self.errors > self.logs.min() + math.log(NEAR) if self.finite.any() else ~self.finite
        need_seeds = (self.column.seeds < FIRST) & ~self.column.cut_off & ~far
        if need_seeds.any():
            return ScanFinding("its values need seeds", {float(x): FIRST for x in self.column.x[need_seeds]})
        if self.finite.any():
            return None
        beyond = [value for end in self._ends if (value := self._next(*end))]
        if beyond and len(self.finite) < MOST_RATES:
            return ScanFinding("none of its values has a mean, and others may", dict(beyond))
        why = f"none of its {len(self.finite)} values has a mean above 0"
        if self.column.cut_off.any() or np.isnan(self.column.steps).all():
            why = f"too many runs do not exit, or are lost, at all of its {len(self.finite)} values"
            why += ": a longer horizon may help"
        return ScanFinding(why, state=State.none)

    def _cut_off(self) -> ScanFinding | None:
        """No answer if a row that is cut off, whose mean is not known, may be that of the optimum.

        It is not if the steps have risen by END_RISE between the best row and it. Its mean is larger than that of its
        runs up to the horizon: so the steps may be known to have risen at the row itself.
        """
        goal = self.logs.min() + math.log(END_RISE)
        risen = self.finite & (self.logs > goal)
        rows = np.flatnonzero(self.column.cut_off)
        for nearest in map(int, [*rows[rows < self.best][-1:], *rows[rows > self.best][:1]]):
            first, last = sorted((nearest, self.best))
            between = self.logs[first + 1 : last]
            is_beyond = risen[first + 1 : last].any() or (
                self.column.least_log(nearest, CLEAR) > goal
                and bool((between > self.logs.min() + math.log(SOME_RISE)).any())
            )
            if not is_beyond and not self._is_gap(nearest):
                return ScanFinding(self._why_cut_off(nearest), state=State.none)
        return None

    def _why_cut_off(self, row: int) -> str:
        """Return why a row that is cut off has no mean, and whether a longer horizon would give it one."""
        steps = self.column.restricted_steps(row)
        share = np.mean(steps >= steps.max())
        problem = f"at {self.column.gamma[row]:.3g}, near the optimum, {share:.1%} of the runs do not exit"
        goes_on = exits_go_on(steps)
        if goes_on is not False:
            return f"{problem}: a longer horizon {'helps' if goes_on else 'may help'}"
        remedy = "a longer horizon cannot help, smaller upper bounds of the rates or the median of exit_times may"
        return f"{problem}, nearly all of those that had not at half of the horizon: {remedy}"

    def _is_gap(self, row: int) -> bool:
        """Return whether there is room for rates between a row and the next one towards the least steps."""
        toward = self.column.gamma[row + (1 if row < self.best else -1)]
        return abs(math.log(self.column.gamma[row] / toward)) > LEAST_STEP

    def _beyond(self) -> ScanFinding | None:
        """A rate beyond an end of the scan where the steps have not risen by END_RISE; at a bound, more seeds."""
        for end in self._ends:
            if self.logs[end.place] > self.logs.min() + math.log(END_RISE):
                continue
            if beyond := self._next(*end):
                return ScanFinding(f"its optimum may lie beyond {self.column.gamma[end.place]:.3g}", dict([beyond]))
            if end.place == self.best:
                return self._at_bound(end.place, end.inner)
        return None

    @property
    def _ends(self) -> tuple[_End, _End]:
        """The ends of the scan, that of the least γ first; the inner row of a single one is itself."""
        last = len(self.finite) - 1
        return _End(0, min(1, last), self.bounds[0], -1), _End(last, max(0, last - 1), self.bounds[1], 1)

    def _next(self, place: int, inner: int, bound: float, sign: int) -> tuple[float, int] | None:
        """Return a value of the axis beyond an end (the fields of `_End`), and FIRST seeds; None at the bound."""
        gamma, limit = self.column.gamma[place], self.column.gamma_of(bound)
        if sign * math.log(gamma / limit) >= -AT_BOUND:
            return None
        step = abs(math.log(gamma / self.column.gamma[inner])) if inner != place else WIDEST_STEP
        x = self.column.x_of(gamma * math.exp(sign * min(max(step, LEAST_STEP), WIDEST_STEP)))
        end = float(self.column.x[place])
        if self.column.is_whole and x == end:
            x += math.copysign(1.0, bound - end)
        is_within = sign * math.log(self.column.gamma_of(x) / limit) < 0.0 and x not in self.column.x
        return (x if is_within else bound), FIRST

    def _at_bound(self, place: int, inner: int) -> ScanFinding | None:
        """The least steps are at a bound: the optimum lies near or beyond it if the next row's are clearly larger."""
        if len(self.finite) > 1 and self.column.seeds[place] < MOST_SEEDS:
            apart = self.logs[inner] - self.logs[place]
            if apart < CLEAR * math.hypot(self.errors[inner], self.errors[place]):
                return ScanFinding("its optimum is near a bound", self._more([place, inner]))
        gamma = self.column.gamma[place]
        why = f"the best mean is at the bound, {gamma:.3g}: the optimum lies near or beyond it"
        return ScanFinding(why, state=State.none)

    def _more(self, places: list[int]) -> dict[float, int]:
        """Return GROWTH times the seeds of some rows, by x."""
        return {float(self.column.x[at]): int(GROWTH * self.column.seeds[at]) for at in places}

    def _second(self) -> ScanFinding | None:
        """The best row and a second minimum, not clearly higher but behind a barrier that is, get seeds."""
        others = [other for other in self._minima() if self._is_near(other) and self._is_behind_a_barrier(other)]
        if not others:
            return None
        both = sorted((others[0], self.best))
        rates = " and ".join(f"{self.column.gamma[at]:.3g}" for at in both)
        if self.column.seeds[both].max() >= MOST_SEEDS:
            return ScanFinding(f"two optima, near {rates}, are not told apart", state=State.none)
        return ScanFinding(f"two optima, near {rates}, are to be told apart", self._more(both))

    def _is_near(self, other: int) -> bool:
        """Return whether another minimum is not clearly higher than the least."""
        error = CLEAR * math.hypot(self.errors[other], self.errors[self.best])
        return bool(self.logs[other] - self.logs[self.best] <= error + self._dip(other))

    def _is_behind_a_barrier(self, other: int) -> bool:
        """Return whether steps between the least ones and another minimum are clearly higher than at this one."""
        first, last = sorted((other, self.best))
        barrier = (self.logs - CLEAR * self.errors)[first + 1 : last]
        return bool((barrier > self.logs[other] + CLEAR * self.errors[other]).any())

    def _minima(self) -> list[int]:
        """Return the rows, but the best, whose neighbours have more steps."""
        padded = np.concatenate([[np.inf], self.logs, [np.inf]])
        inside = (padded[1:-1] < padded[:-2]) & (padded[1:-1] < padded[2:])
        return [int(at) for at in np.flatnonzero(inside) if at != self.best]

    def _dip(self, at: int) -> float:
        """Return by how much a minimum between rows may be lower, in logarithms, than the row `at` beside it.

        It is a quarter of the rise to the lower of its neighbours.
        """
        beside = self.logs[[place for place in (at - 1, at + 1) if 0 <= place < len(self.logs)]]
        beside = beside[np.isfinite(beside)]
        return 0.25 * float(beside.min() - self.logs[at]) if len(beside) else 0.0

    def _range(self, rise: float) -> tuple[float, float]:
        """Return the learning rates around the best row between which the steps are at most `rise` times the least."""
        goal = self.logs.min() + math.log(rise)
        ends = []
        for step, last in ((-1, 0), (1, len(self.logs) - 1)):
            at = self.best
            while at != last and self.logs[at] < goal and self._rises(at, at + step):
                at += step
            inner = at - step if at != self.best else at
            u, v = np.log(self.column.gamma[[inner, at]]), self.logs[[inner, at]]
            share = 1.0 if v[1] <= goal or at == inner else (goal - v[0]) / (v[1] - v[0])
            ends.append(float(np.exp(u[0] + share * (u[1] - u[0]))))
        return ends[0], ends[1]

    def _rises(self, at: int, beyond: int) -> bool:
        """Return whether the steps are known at the row `beyond` the row `at`, and do not clearly decrease to it."""
        error = CLEAR * math.hypot(self.errors[at], self.errors[beyond])
        return bool(self.finite[beyond] and self.logs[beyond] > self.logs[at] - error)

    def _gaps(self) -> ScanFinding | None:
        """Parts of the range, of BINS equal ones in ln γ, that have no row get one.

        The range is where the steps are at most NEAR times the least.
        """
        low, high = self._range(NEAR)
        if not low < high:
            low, high = low * math.exp(-LEAST_STEP), high * math.exp(LEAST_STEP)
        # rows at the ends are inside in spite of rounding
        edges = np.geomspace(low * (1 - 1e-9), high * (1 + 1e-9), BINS + 1)
        counts = np.histogram(self.column.gamma[self.finite], edges)[0]
        middles = [*np.sqrt(edges[1:] * edges[:-1])[counts == 0], *self._beside_cut_off()]
        inside = [x for x in map(self.column.x_of, middles) if min(self.bounds) <= x <= max(self.bounds)]
        new = {x: FIRST for x in inside if x not in self.column.x}
        return ScanFinding("its range has gaps", new) if new else None

    def _beside_cut_off(self) -> list[float]:
        """Return rates between rows where the steps have not risen yet and neighbours of them that are cut off."""
        rows = np.flatnonzero(self.finite).tolist()
        pairs = [(at, at + step) for step in (-1, 1) for at in rows if 0 <= at + step < len(self.finite)]
        goal, gamma = self.logs.min() + math.log(END_RISE), self.column.gamma
        return [
            float(np.sqrt(gamma[at] * gamma[beside]))
            for at, beside in pairs
            if self.column.cut_off[beside] and self.logs[at] < goal and self._is_gap(beside)
        ]

    def _fitted(self) -> ScanFinding:
        """Return the optimum with its interval, and the rates and seeds that it needs."""
        curve = MeanCurve(self.column.steps, self.column.gamma, greatest=self.greatest)
        optimum = curve.optimum(self.confidence)
        seeds = self.column.seeds[self.finite].astype(float)
        if np.isnan(optimum.at):
            why = "too few values of the range are cut off neither by a bound nor by the horizon"
            return ScanFinding(why, state=State.none)
        if optimum.at_edge:
            why, has_most = "its interval is not closed between the ends of the axis", seeds.max() >= MOST_SEEDS
            more = {} if has_most else self._more([int(at) for at in np.flatnonzero(self.finite)])
            return ScanFinding(why, more, State.none if has_most else State.open)
        tangent, covariance = curve.tangent(optimum.at), curve.covariance
        if (self.question.of, self.question.variable) in LEAST_VALUES:
            at, low, high = optimum.value, optimum.value_low, optimum.value_high
            weights, form = tangent.value_weights, tangent.value_form**2
        else:
            at, low, high = optimum.at, optimum.low, optimum.high
            weights, form = tangent.slope_weights, tangent.slope_form**2
        ratio = self.question.half_width(at) / max(at - low, high - at)
        if ratio >= 1.0:
            return ScanFinding("", {}, State.given, at, low, high, 0.0)
        # variances of the value or the slope there: by the seeds, and by what the values leave open of the curve
        noise = float(weights @ covariance @ weights)
        if form > MOSTLY * noise:
            more = self._rates_near(optimum.at)
            if more or form > HOPELESS * noise:
                untold = f"its {self.finite.sum()} values do not tell the form of the curve as precisely as that"
                why = "the form of the curve is to be told" if more else untold
                return ScanFinding(why, more, State.open if more else State.none, at, low, high)
        variation = np.sqrt(np.diag(covariance) * seeds)
        # a run costs its steps, of which these are the logarithms; another quantity costs the same at all rates
        log_cost = curve.points.values if self.question.of == "optimal_learning_rate" else np.zeros_like(weights)
        goals = neyman_goals(np.abs(weights) * variation, np.exp(log_cost), seeds, ratio**-2)
        needed = float(np.maximum(goals - seeds, 0.0).sum())
        if goals.max() > SEEDS and seeds.max() >= MOST_SEEDS:
            return ScanFinding(f"a rate would need more than {SEEDS:,} seeds", {}, State.none, at, low, high, needed)
        more = dict(zip(map(float, self.column.x[self.finite]), next_totals(seeds, goals), strict=True))
        return ScanFinding(WIDE, more, State.open, at, low, high, needed)

    def _rates_near(self, gamma: float) -> dict[float, int]:
        """Return new rates in the widest of the gaps beside a rate, each with as many seeds as any row has."""
        edges = np.log(self.column.gamma[self.finite])
        near = int(np.clip(np.searchsorted(edges, math.log(gamma)), 1, len(edges) - 1))
        gaps = [at for at in (near - 2, near - 1, near) if 0 <= at < len(edges) - 1]
        widest = sorted(gaps, key=lambda at: edges[at] - edges[at + 1])[:2] if len(edges) < MOST_RATES else []
        inside = [self.column.x_of(math.exp(0.5 * (edges[at] + edges[at + 1]))) for at in widest]
        new = [x for x in inside if min(self.bounds) <= x <= max(self.bounds) and x not in self.column.x]
        return dict.fromkeys(new, int(self.column.seeds[self.finite].max()))


PROPOSERS.register("optimum", OptimumAlong)
