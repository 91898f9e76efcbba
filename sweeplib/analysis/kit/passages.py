"""First passages over seeds, with the runs that have none classified by reason.

- A run that exited has a first passage.
- A run that ended or timed out without an exit is right-censored at its end. A time limit counts seconds and does not
  depend on the rest of the run, so the other runs represent it from there on.
- A run that diverged before its exit never exits. It must not be censored at its divergence, because its exit time is
  known (never): it stays at risk for ever, as in the cumulative incidence of competing risks.
- A run that failed or was killed is lost: nothing is known about it, and the reason may be related to its exit. If few
  runs are lost, the others represent them (`lost_runs`); otherwise the cell has no statistics.
- A missing run was not requested.

A cell is one dynamics, point and threshold: statistics over `seed` give one number a cell.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from sweeplib.analysis.kit.problem_fields import without_values
from sweeplib.analysis.kit.variables import require
from sweeplib.engine.base.arrays import Array
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.statistics.estimators import SEEN, Estimate, RestrictedMean, proportion_interval
from sweeplib.statistics.labelled import labelled, with_bounds
from sweeplib.statistics.lost_runs import MOST_LOST, STOPPED, has_run, too_many, with_status
from sweeplib.statistics.seed_means import FEWEST_SEEDS, standard_error
from sweeplib.statistics.survival import fractions_exited, least_means, medians, restricted_values, staying


@dataclass(frozen=True)
class Passages:
    """First passages of all runs, in steps or in time.

    exit : the first passage, NaN where not reached. end : when the observation of a run stopped, inf for runs that
    diverged; it is meaningful only where not `reached`. used : runs that count. reached : those of them that passed.
    refused : cells in which too many runs were lost. All but `refused` have the same dims, `seed` among them.
    """

    exit: xr.DataArray
    end: xr.DataArray
    used: xr.DataArray
    reached: xr.DataArray
    refused: xr.DataArray

    @property
    def watched(self) -> xr.DataArray:
        """Return, per cell, the time up to which all used runs were observed: the earliest censoring.

        Exits of two dynamics can be compared up to it. It is inf if all runs exited or diverged: of those that diverged
        it is known that they never exit. NaN of no run.
        """
        first = self.end.where(self.censored()).min("seed")
        return first.where(np.isfinite(first), np.inf).where(self.used.any("seed"))

    @property
    def horizon(self) -> xr.DataArray:
        """Return, per cell, the last time at which a used run was observed; inf where all exited, NaN of no run."""
        times = self.exit.fillna(self.end).where(self.used)
        last = times.where(np.isfinite(times)).max("seed")
        return last.where(self.censored().any("seed"), np.inf).where(self.used.any("seed"))

    @cached_property
    def restricted(self) -> xr.DataArray:
        """Return min(first passage, horizon) per seed; NaN for runs that are not used.

        Where runs were censored before the horizon, the values are pseudo-values, whose mean is that of the
        Kaplan-Meier curve (`restricted_values`).
        """
        horizon = self.horizon
        values = self.exit.fillna(np.inf).clip(max=horizon).where(self.used)
        if not bool((self.censored() & (self.end < horizon)).any()):
            return values
        times = self.exit.fillna(self.end).where(self.used)
        pseudo: xr.DataArray = xr.apply_ufunc(
            restricted_values, times, self.reached, horizon, input_core_dims=[["seed"], ["seed"], []],
            output_core_dims=[["seed"]], vectorize=True, output_dtypes=[float],
        )  # fmt: skip
        return pseudo.transpose(*values.dims)

    def mean(self, confidence: float) -> Estimate:
        """Return the mean of min(first passage, horizon) and its interval, whose low end is at most `least_means`."""
        exits = (self.reached & (self.exit < self.horizon)).sum("seed")
        value, low, high = RestrictedMean(self.horizon, exits)(self.restricted, confidence)
        least = xr.apply_ufunc(
            partial(least_means, confidence=confidence), self.exit, self.end, self.used, input_core_dims=[["seed"]] * 3
        )
        low = xr.ufuncs.minimum(low, least)
        return Estimate(value, low.where(self._are_enough), high.where(self._are_enough))

    def mean_error(self) -> xr.DataArray:
        """Return the standard error of the mean; NaN where no run passed."""
        return standard_error(self.restricted).where(self.reached.any("seed") & self._are_enough)

    @property
    def _are_enough(self) -> xr.DataArray:
        """Whether, per cell, FEWEST_SEEDS runs or more were still seen at the first passage: others tell no scatter."""
        first = self.exit.where(self.reached).min("seed")
        ended = self.exit.fillna(self.end) < first
        return (self.used & ~ended).sum("seed") >= FEWEST_SEEDS

    def median(self, confidence: float) -> Estimate:
        """Return the Kaplan-Meier median and its interval; NaN where fewer than half of the runs passed."""
        return Estimate(*self._over_seeds(partial(medians, confidence=confidence), 3))

    def fraction(self, confidence: float) -> Estimate:
        """Return the Kaplan-Meier fraction at the last observed time, and its interval by Clopper and Pearson.

        The interval is that of as many runs without censoring as have the same variance (`fractions_exited`): their
        number need not be whole. The upper end is at least that of the few that are left where others were stopped
        before. No interval for fewer than FEWEST_SEEDS runs.
        """
        passed, equivalent, at_end = self._over_seeds(fractions_exited, 3)
        enough = self.used.sum("seed") >= FEWEST_SEEDS
        low, high = proportion_interval(passed, equivalent, confidence)
        high = xr.ufuncs.maximum(high, 1.0 - (1.0 - passed) * staying(at_end, confidence))
        return Estimate(passed, low.where(enough), high.where(enough))

    def _over_seeds(self, statistic: Callable[..., tuple[Array, ...]], count: int) -> tuple[xr.DataArray, ...]:
        """Return the numbers a cell that a statistic of (exit, end, used), each (..., seeds), returns.

        count : how many these are, which xarray has to know beforehand.
        """
        numbers: tuple[xr.DataArray, ...] = xr.apply_ufunc(
            statistic, self.exit, self.end, self.used, input_core_dims=[["seed"]] * 3, output_core_dims=[()] * count
        )
        return numbers

    def too_censored(self, max_censored: float) -> xr.DataArray:
        """Return a mask: cells in which more than the fraction `max_censored` of the used runs has not exited."""
        return self.censored().sum("seed") > max_censored * self.used.sum("seed") + 1e-9  # equal is not more, rounded

    def of_most(self, max_censored: float) -> xr.DataArray:
        """Return the `restricted` values of cells in which most runs exited: their mean is nearly that of the exits.

        NaN in cells that are `too_censored`.
        """
        return self.restricted.where(~self.too_censored(max_censored))

    def mean_variables(
        self, name: str, mean: Estimate, title: str, symbol: str, *, unit: Any = 1.0, units: str = "1", **attrs: Any
    ) -> dict[str, xr.DataArray]:
        """Return a mean with its interval and its standard error, as the variables NAME, NAME_low, ..., NAME_error.

        mean : as `mean` returns it. unit : what all are multiplied by, such as the time of a step. units : its name.
        The variable `restricted`, which the caller puts beside them, says where the mean is a lower bound.
        """
        title = "restricted " * bool(self.censored().any()) + title
        bound = {"bound": "restricted", "bound_side": "above", "comment": SEEN} | attrs
        error = labelled(self.mean_error() * unit, f"standard error of the {title}", rf"\mathrm{{se}}{symbol}", units)
        return with_bounds(name, (end * unit for end in mean), title, symbol, units, **bound) | {f"{name}_error": error}

    def used_runs(self, did: str = "exit") -> dict[str, xr.DataArray]:
        """Return the labelled numbers of used runs, and of used runs without a passage; `did` is its verb: "exit"."""
        return {
            "seeds_used": labelled(self.used.sum("seed"), "runs used"),
            "seeds_censored": labelled(self.censored().sum("seed"), f"runs used that did not {did}"),
        }

    def counts(self, ds: xr.Dataset) -> dict[str, xr.DataArray]:
        """Return the labelled numbers of runs of a dataset that are used without an exit, and that are lost."""
        lost = labelled(with_status(ds, "failed", "killed").sum("seed"), "runs failed or killed")
        return {"seeds_censored": self.used_runs()["seeds_censored"], "seeds_lost": lost}

    def censored(self) -> xr.DataArray:
        """Return a mask: where a run is used and has not exited."""
        return self.used & ~self.reached


def passages(ds: xr.Dataset, quantity: str, max_lost: float = MOST_LOST) -> Passages:
    """Return the exits of a dataset, of the `quantity` "steps" or "time" (ODE time), with what became of other runs.

    No run is used in cells that have lost more than the fraction `max_lost` of their runs. The arrays have no
    coordinates that are single values.
    """
    exit_name, end_name = f"exit_{quantity}", f"end_{quantity}"
    require(ds, exit_name, end_name)
    ds = without_values(ds)
    exit_, diverged = ds[exit_name], with_status(ds, "diverged")
    refused = too_many(with_status(ds, "failed", "killed"), has_run(ds), max_lost)
    used = ((with_status(ds, "ok", *STOPPED) | diverged) & ~refused).broadcast_like(exit_)
    end = ds[end_name].where(~diverged, np.inf).broadcast_like(exit_)
    order = exit_.dims
    return Passages(exit_, end.transpose(*order), used.transpose(*order), exit_.notnull() & used, refused)


def recorded_passages(
    ds: xr.Dataset, values: xr.DataArray, passed: xr.DataArray, times: xr.DataArray, max_lost: float = MOST_LOST
) -> Passages:
    """Return first passages that are found in a record: the first of the recorded `times` at which runs have `passed`.

    They are those of other quantities than the exits, which simulators find at each step (`passages`). Runs are
    observed while they have `values`.
    values, passed : over all dims of `status`, and time. times : in steps, or in time, along `time` at least.
    The result has the dims of `values` but `time`. A run without any value is lost, whatever its status.
    """
    run, has_value = has_run(ds), values.notnull()
    first, has_some_value = times.where(passed).min("time"), has_value.any("time")
    refused = too_many(run & ~has_some_value, run, max_lost)
    used = has_some_value & ~refused
    end = times.where(has_value).max("time").where(~with_status(ds, "diverged"), np.inf)
    order = [dim for dim in values.dims if dim != "time"]
    first, end, used = (array.transpose(*order) for array in (first, end, used))
    return Passages(first, end, used, first.notnull() & used, refused)
