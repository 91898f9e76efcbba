"""Values of single runs along an axis: of a recorded observable at a time, or of first passages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import Field

from sweeplib.analysis.kit.needs import statistics_outline
from sweeplib.analysis.kit.passages import Passages, passages
from sweeplib.analysis.kit.problem_fields import field
from sweeplib.analysis.kit.variables import recorded
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import Outline, outline_of
from sweeplib.errors import InputError
from sweeplib.statistics.laws import law_along
from sweeplib.statistics.lost_runs import MOST_LOST, has_diverged, has_run, unless_lost, values_of, without_value

PASSAGES = {"exit_steps": "steps", "exit_samples": "steps", "exit_time": "time", "exited": "steps"}
"""The quantities of first passages, by what is read.

exit_samples : the samples that were drawn for the steps. exited : 1 for a run that did by its horizon, otherwise 0.
"""
NOT_ALONG = ("dynamics", "seed", "time", "threshold", "teacher", "task", "block", "quantile")
"""Dimensions along which there is no curve."""

Of = Annotated[
    str,
    Field(
        description="the quantity: a recorded observable such as risk, `exit_steps`, `exit_samples`, `exit_time`, or "
        "`exited`, the fraction of runs that did by their horizon."
    ),
]
AlongAxis = Annotated[
    str | None, Field(description="the axis of the grid; needed if the sweep has several axes of numbers.")
]
AtTime = Annotated[float | None, Field(description="the recorded time of an observable; by default the last.")]
CUT_OFF = 0.002
"""The part of the runs at a point that may end without an exit: means then are less than .1 % or so too small."""


class Curves(NamedTuple):
    """Values of runs, NaN for those that do not count, and the numbers on the axis along which they are compared.

    `censored` are the places at which too many runs did not exit, so that their mean is unknown, `lost` those at which
    too many were lost, `restricted` the values of exits up to the horizon, whose mean is less than that of the exits.
    """

    values: xr.DataArray
    x: xr.DataArray
    along: str
    censored: xr.DataArray
    lost: xr.DataArray
    restricted: xr.DataArray

    def law(self, law: Callable[..., Any], inner: str = "", **settings: Any) -> tuple[xr.DataArray, ...]:
        """Return the numbers of a law along the axis, as `law_along`."""
        return law_along(self.along, self.values, self.x, law, inner, **settings)

    @classmethod
    def complete(cls, values: xr.DataArray, x: xr.DataArray, along: str) -> Curves:
        """Return curves of values that no horizon cuts off."""
        none = xr.zeros_like(values.isel(seed=0, drop=True), dtype=bool)
        return cls(values, x, along, none, none, values)

    @classmethod
    def of_exits(cls, sample: Passages, x: xr.DataArray, along: str, most: float, unit: Any = 1.0) -> Curves:
        """Return curves of exits in a unit, without places at which more than the fraction `most` did not exit."""
        censored, restricted = sample.too_censored(most), sample.restricted() * unit
        return cls(restricted.where(~censored), x, along, censored, sample.refused, restricted)


def curves_along(
    ds: xr.Dataset, of: str, along: str | None = None, time: float | None = None, max_lost: float = MOST_LOST
) -> Curves:
    """Return the values of single runs of a quantity along an axis, by default the only one, at the last time.

    A point has none where more than the fraction `max_lost` of its runs has no value, or, of exits, where more than
    `CUT_OFF` of them have not exited.
    """
    axis = axis_along(outline_of(ds), of, along)
    if of in PASSAGES:
        sample = passages(ds, PASSAGES[of], max_lost)
        x = ds[axis].astype(float)
        if of == "exited":
            return Curves.complete(sample.reached.astype(float).where(sample.used), x, axis)
        return Curves.of_exits(sample, x, axis, CUT_OFF, samples_of_a_step(ds) if of == "exit_samples" else 1.0)
    run, values = has_run(ds), values_of(ds, of)
    if "time" in values.dims:
        values = values.sel(time=ds["time"].values[-1] if time is None else time, drop=True)
    lost = without_value(values, run)
    runs = unless_lost(values.where(run & ~lost), lost, run, max_lost, has_diverged(ds))
    return Curves.complete(runs, ds[axis].astype(float), axis)


def rate_scan(ds: xr.Dataset, dim: str, max_censored: float, max_lost: float) -> Curves:
    """Return the exit steps along an axis that scans the learning rate, at these rates.

    Rates at which more than these fractions of the runs are censored or lost have none.
    """
    gamma = field(ds, "gamma").astype(float).broadcast_like(ds["status"].isel(seed=0, drop=True))
    return Curves.of_exits(passages(ds, "steps", max_lost), gamma, dim, max_censored)


def axis_along(ds: Outline, of: str, along: str | None) -> str:
    """Return the axis along which a quantity is looked at; InputError unless it is one of three numbers or more."""
    names = [*recorded(ds), *(PASSAGES if "exit_steps" in ds.variables else ())]
    if of not in names:
        raise InputError("not recorded in this sweep", key="of", value=of, choices=names)
    axes = [
        name
        for name, values in ds.axes.items()
        if name not in NOT_ALONG and name in ds.dims_of("status") and len(values) > 2 and _are_numbers(values)
    ]
    if along is None and len(axes) == 1:
        return axes[0]
    if along not in axes:
        expected = {"choices": axes} if axes else {"expected": "an axis of three numbers or more in `grid`"}
        problem = "several axes of numbers" if along is None and axes else "no such axis of numbers"
        raise InputError(problem, key="along", value=along or ", ".join(axes), **expected)
    return along


def _are_numbers(values: Sequence[Any]) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def samples_of_a_step(ds: xr.Dataset) -> xr.DataArray:
    """Return the mean number of samples drawn for a step, of passes over a training set that of a whole pass."""
    size, repeats = field(ds, "batch_size", 1), field(ds, "repeats", 1)
    n, in_epochs = field(ds, "samples", 0), field(ds, "sampling", "").isin(["epochs"])
    whole = xr.where(in_epochs & (n > 0), n / np.ceil(np.maximum(n, 1) / size), size)
    return whole / repeats


def quantity_of(ds: xr.Dataset, of: str) -> tuple[str, str]:
    """Return the name of the mean of a quantity in words, and its units."""
    if of == "exited":
        return "fraction of runs that exited by their horizon", "1"
    if of == "exit_samples":
        return "mean samples drawn to the exit", "1"
    return f"mean {ds[of].attrs['long_name']}", str(ds[of].attrs.get("units", "1"))


def outline_along(ds: Outline, of: str, along: str | None, time: float | None, *names: str) -> Outline:
    """Return the outline of variables that are made of curves along an axis; InputError if a quantity has none."""
    axis, source = axis_along(ds, of, along), "exit_steps" if of in PASSAGES else of
    times = ds.axes["time"] if "time" in ds.dims_of(source) else ()
    if time is not None and time not in times:
        raise InputError("not a recorded time of this quantity", key="time", value=time, choices=map(str, times))
    return statistics_outline(ds, source, *names, over=("time", axis)).with_variables({}, along=axis)
