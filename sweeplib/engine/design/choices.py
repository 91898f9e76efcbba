"""Where a run of a sweep runs, if that depends on costs or on other runs, and which simulator of a law is taken.

A config may name a law, such as SGD, and several dynamics that are exact for it, its simulators. Each of them is a run
of its own, at the points where it is the cheapest; the dataset has them as one. Their cases are shared with all sweeps
that name the simulator; only what makes the dataset knows of the law. `points` are tables (n rows) of the values of the
grid's names.

Costs are those of a model of the simulator, and not measured, so that a config has the same rows on every
machine, and a point the same simulator however the sweep grows.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sweeplib.engine.base.table import Column, Table
from sweeplib.engine.cases import Case
from sweeplib.errors import InputError

if TYPE_CHECKING:
    from sweeplib.engine.design.design import Design

COST = "cost"
"""The name in a `when` that means the seconds of all seeds of a point."""

LARGEST = float(np.finfo(float).max)
"""The seconds of what cannot be run, as expressions have finite numbers only."""

UNKNOWN = -2
"""Stands for the number of the run at a point that was not looked at yet."""


@dataclass(frozen=True)
class Choice:
    """The condition of a run that depends on costs or on other runs: whether it runs at points.

    It stands where other runs have the expression of their `when` (`places.Condition`).
    """

    sweep: "Design"
    run: str

    @property
    def names(self) -> frozenset[str]:
        """Return the names on whose values it depends: a cost depends on nearly all of a grid's."""
        return frozenset(self.sweep.grid.names)

    @property
    def text(self) -> str:
        """Return a text of all that it depends on, but for the grid, the seeds and the recording times."""
        runs = self.sweep.runs.items()
        return repr((self.run, [(name, dict(run.where), dict(run.options), run.when, run.law) for name, run in runs]))

    def __str__(self) -> str:
        return str(self.sweep.runs[self.run].when)

    def evaluated(self, columns: Mapping[str, Sequence[Any]], count: int) -> list[bool]:
        """Return whether the run runs at each of `count` points; InputError for a point that no simulator takes.

        columns : the values of all names of the grid at the points. What was found is remembered in `Design.choices`.
        """
        grid, law = self.sweep.grid, self.sweep.runs[self.run].law
        codes = self.sweep.choices.setdefault(law or self.run, np.full(grid.size, UNKNOWN, np.int8))
        places = [[axis.place_of[value] for value in columns[axis.name]] for axis in grid.axes]
        flat = np.ravel_multi_index(places, grid.shape) if places else np.zeros(count, np.int64)
        new = np.flatnonzero(codes[flat] == UNKNOWN)
        if len(new):
            points = Table({name: Column.of(items) for name, items in columns.items()}, count)
            codes[flat[new]] = _numbers_at(self.sweep, self.run, points.at(new))
        return (codes[flat] == (self.sweep.laws[law].index(self.run) if law else 0)).tolist()


def is_a_choice(sweep: "Design", run: str) -> bool:
    """Return whether where a run runs depends on more than the names of the grid."""
    when = sweep.runs[run].when
    return sweep.runs[run].law is not None or (when is not None and not when.names.issubset(sweep.grid.names))


def _numbers_at(sweep: "Design", run: str, points: Table) -> NDArray[np.int64]:
    """Return the index (n,), among the runs of its law, of the one that runs at each point; -1 where none does.

    run : any of the law, or a run that has none and is the only one, with index 0.
    """
    runs = sweep.laws[sweep.runs[run].law or run]
    seconds = np.array([_seconds_where_taken(sweep, other, points) for other in runs])
    wanted = _runs_at(sweep, run, points, seconds.min(axis=0))
    if len(runs) > 1:
        refused = wanted & ~np.isfinite(seconds).any(axis=0)
        _refuse_untaken(sweep, run, points.at(np.flatnonzero(refused)))
    return np.where(wanted, seconds.argmin(axis=0), -1)


def _runs_at(sweep: "Design", run: str, points: Table, seconds: NDArray[np.float64] | None = None) -> NDArray[np.bool_]:
    """Return whether a run, or one of its law, runs at each of n points, by its `where` and `when`, as an array (n,).

    seconds (n,) : of a case, if they are known, for the `cost` in its `when`.
    """
    conditions, runs = sweep.runs[run], np.ones(len(points), bool)
    for name, values in ((name, values) for name, values in conditions.where.items() if name != "seed"):
        axis = next(axis for axis in sweep.grid.axes if name in axis.names)
        # as the axis has them: a config may have rounded the numbers of `where`
        wanted = {axis.column(name)[place] for place in axis.places(name, values)}
        runs &= np.array([value in wanted for value in points.column(name).items()], bool)
    if conditions.when is None:
        return runs
    columns: dict[str, Sequence[Any]] = {}
    for name in conditions.when.names:
        if name in sweep.grid.names:
            columns[name] = points.column(name).items()
        elif name == COST:
            columns[name] = row_seconds(sweep, run, points, seconds).tolist()
        else:
            # the name of another run, or law, means whether that runs there
            columns[name] = _runs_at(sweep, sweep.laws[name][0], points).astype(float).tolist()
    return runs & np.array(conditions.when.evaluated(columns, len(points)), bool)


def row_seconds(
    sweep: "Design", run: str, points: Table, seconds: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Return the seconds (n,) that all seeds of the config take at each point, of a law by its cheapest simulator.

    run : its name, or that of any run of the law. seconds (n,) : of a case, if they are known.
    """
    if seconds is None:
        runs = sweep.laws[sweep.runs[run].law or run]
        seconds = np.min([_seconds_where_taken(sweep, other, points) for other in runs], axis=0)
    places = [place for place, _ in sweep.seeds_of(run)]
    with np.errstate(over="ignore"):
        # a point has the first of the seeds: as many of the run's as stand before that count
        of_row = np.searchsorted(places, sweep.own_counts(points)) * np.minimum(seconds, LARGEST)
    return np.minimum(of_row, LARGEST)


def _seconds_where_taken(sweep: "Design", run: str, points: Table) -> NDArray[np.float64]:
    """Return the modelled seconds (n,) of a case of a run; infinite where a simulator of a law cannot run it."""
    cases = sweep.cases_at(run, points)
    seconds = np.array(cases.numbers(sweep.simulator.seconds), float)
    for check in sweep.simulator.checks() if sweep.runs[run].law else ():
        errors = cases.column_of(partial(_refusal, check)).items()
        seconds[[error is not None for error in errors]] = np.inf
    return seconds


def _refusal(check: Callable[[Case], None], case: Case) -> InputError | None:
    """Return the error with which a check refuses a case, None if it passes."""
    try:
        check(case)
    except InputError as error:
        return error
    return None


def _refuse_untaken(sweep: "Design", run: str, points: Table) -> None:
    """Raise InputError, unless there are none, for points that no simulator of a run's law takes, with the reasons."""
    if not len(points):
        return
    law, reasons = sweep.runs[run].law, []
    for simulator in sweep.laws[law or run]:
        [case] = sweep.cases_at(simulator, points.at(slice(1)))
        errors = [error for check in sweep.simulator.checks() if (error := _refusal(check, case)) is not None]
        reasons.append(f"{case.dynamics}: {errors[0]}")
    fixed = sweep.grid.fixed
    at = ", ".join(f"{name}={points.column(name).value(0)}" for name in points.columns if name not in fixed)
    problem = f"no simulator takes the point {at} ({'; '.join(reasons)})"
    raise InputError(problem, key=f"dynamics.{law}", expected="a `when`, or another simulator of this law")
