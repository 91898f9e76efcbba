"""Means over the seeds of recorded observables, with the steps at which they were recorded."""

from __future__ import annotations

from typing import Any

import numpy as np

from sweeplib.analysis.analysis import ANALYSES, Analysis
from sweeplib.analysis.kit.labels import labelled
from sweeplib.analysis.kit.lost_runs import MOST_LOST, has_diverged, has_run, unless_lost, values_of, without_value
from sweeplib.analysis.kit.options import LostPart
from sweeplib.analysis.kit.problem_fields import field, step_time
from sweeplib.analysis.kit.seed_means import with_error
from sweeplib.analysis.kit.variables import over_time
from sweeplib.errors import InputError
from sweeplib.late_modules import xarray as xr
from sweeplib.simulation.labels import label
from sweeplib.storage.dataset.outline import Outline, outline_of

INNER = {"teacher": ("teacher direction", "r"), "task": ("task", r"\tau"), "block": ("block of inputs", "b")}
"""The dimensions that an averaged observable may have of its own, counted from 1, and their labels."""


def averages(ds: xr.Dataset, *, max_lost: LostPart = MOST_LOST) -> xr.Dataset:
    """Return means over `seed` of each observable over time: one number, or one per teacher direction, task or block.

    NAME, NAME_error: mean and standard error over the seeds, per dynamics, point and time; NaN where more than the
    fraction `max_lost` of the runs has no value at that time, for any reason, and from where a run diverged on.
    NAME_error is NaN for one or two runs.
    runs: the number of runs with a value of the first observable. The coordinate steps is the number of steps until
    each time; `teacher`, `task` and `block` number the teacher directions, tasks and blocks of inputs from 1.
    """
    run = has_run(ds)
    variables: dict[str, xr.DataArray] = {}
    for name in averaged_observables(ds):
        values = numbered(values_of(ds, name))
        sample = unless_lost(values, without_value(values, run), run, max_lost, has_diverged(ds))
        attrs = ds[name].attrs
        variables |= with_error(
            name, sample, attrs["long_name"], attrs.get("symbol", ""), units=attrs.get("units", "1")
        )
        if "runs" not in variables:
            count = sample.count("seed")
            runs = count.max([dim for dim in INNER if dim in count.dims])
            variables["runs"] = labelled(runs, "runs with a value")
    attrs = {"max_lost": max_lost, "averaged": " ".join(averaged_observables(ds))}
    return xr.Dataset(variables).assign_coords(steps=steps_at_times(ds)).assign_attrs(attrs)


def averaged_observables(ds: xr.Dataset | Outline) -> list[str]:
    """Return the observables over time that are one number, or one per teacher direction, task or block."""
    outline = outline_of(ds)
    outer = {*outline.variables["status"], "time", *INNER}
    return [name for name in over_time(outline) if outer.issuperset(outline.variables[name])]


def numbered(values: xr.DataArray) -> xr.DataArray:
    """Return the values with labelled coordinates of INNER, counted from 1 like lam1, lam2, ... of a formula."""
    for dim in INNER.keys() & set(values.dims):
        numbers = xr.DataArray(np.arange(1, values.sizes[dim] + 1), dims=dim)
        values = values.assign_coords({dim: labelled(numbers, *INNER[dim])})
    return values


def steps_at_times(ds: xr.Dataset) -> xr.DataArray:
    """Return the number of steps until each recorded time."""
    steps = ds["time"] * field(ds, "clock", 1.0) / step_time(ds)
    return steps.round().assign_attrs(label("steps"))


def _outline(ds: Outline, **_: Any) -> Outline:
    names = averaged_observables(ds)
    if not names:
        expected = (
            "one over time: a number, or one per teacher unit, task or block of inputs, such as risk or subspace_cosine"
        )
        raise InputError("no such observable is recorded", key="observables", expected=expected)
    outline = ds
    for dim in INNER.keys() & ds.axes.keys():
        outline = outline.along(dim, range(1, len(ds.axes[dim]) + 1))
    clock = [ds.variables.get(name, ()) for name in ("clock", "gamma", "p", "d")]
    steps = tuple(dict.fromkeys(dim for dims in (*clock, ("time",)) for dim in dims))
    averages_of = outline.only(*names).without("seed").with_variables({}, averaged=" ".join(names))
    return averages_of.with_coordinate("steps", steps)


ANALYSES.add(
    Analysis(
        "averages", averages, "Observables averaged over the seeds, with standard errors", overlaps=True,
        outline=_outline,
    ),
)  # fmt: skip
