"""Statistics over the seeds of recorded observables, with the steps at which they were recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from sweeplib.analysis.analysis import ANALYSES, analysis_of
from sweeplib.analysis.kit.labels import INNER
from sweeplib.analysis.kit.options import Confidence, LostPart
from sweeplib.analysis.kit.problem_fields import field, step_time
from sweeplib.analysis.kit.variables import over_time, recorded
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import Outline, outline_of
from sweeplib.errors import InputError
from sweeplib.networks.simulation.labels import label
from sweeplib.statistics.estimators import SEEN, Estimator, Fraction, Mean, Quantile
from sweeplib.statistics.labelled import labelled, with_bounds
from sweeplib.statistics.lost_runs import MOST_LOST, sample_of, values_of
from sweeplib.statistics.seed_means import standard_error

Statistic = Annotated[
    Literal["mean", "median"] | dict[Literal["quantile", "below", "above"], float],
    Field(
        description="the number of the law over the seeds: `mean`, `median`, `{quantile: 0.95}`, or the fraction of "
        "the runs with a value `{below: 0.1}` or `{above: 0.1}`.",
    ),
]


def averages(
    ds: xr.Dataset, *, statistic: Statistic = "mean", confidence: Confidence = 0.95, max_lost: LostPart = MOST_LOST
) -> xr.Dataset:
    """Return the mean over `seed` of each observable over time: one number, or one per teacher direction, task, block.

    NAME (_low, _high), NAME_error: the mean, its interval (`estimators`) and its standard error, per dynamics, point
    and time; NaN where more than the fraction `max_lost` of the runs has no value at that time, for any reason, and
    from where a run diverged on; a mean also where a value is infinite. There is no interval and no error of one or two
    runs. With another `statistic` NAME is a median, a quantile or a fraction, without a standard error; ends of
    quantiles are infinite where so few runs do not tell them.
    runs: the number of runs with a value of the first observable. The coordinate steps is the number of steps until
    each time; `teacher`, `task` and `block` number the teacher directions, tasks and blocks of inputs from 1.
    """
    estimator, variables = estimator_of(statistic), dict[str, xr.DataArray]()
    for name in averaged_observables(ds):
        sample = values_over_seeds(ds, name, max_lost, infinite=not isinstance(estimator, Mean))
        variables |= estimated(name, sample, estimator, confidence, ds[name].attrs)
        if "runs" not in variables:
            count = sample.count("seed")
            runs = count.max([dim for dim in INNER if dim in count.dims])
            variables["runs"] = labelled(runs, "runs with a value")
    attrs = {"confidence": confidence, "max_lost": max_lost, "averaged": " ".join(averaged_observables(ds))}
    return xr.Dataset(variables).assign_coords(steps_coordinate(ds)).assign_attrs(attrs)


def estimator_of(statistic: str | Mapping[Any, float]) -> Estimator:
    """Return the estimator of a statistic; InputError for a level of quantiles that is no probability."""
    if isinstance(statistic, str):
        return Mean() if statistic == "mean" else Quantile(0.5)
    if len(statistic) != 1:
        expected = "mean, median, {quantile: 0.95}, {below: 0.1} or {above: 0.1}"
        raise InputError("not one statistic", key="statistic", value=statistic, expected=expected)
    [(kind, level)] = statistic.items()
    if kind != "quantile":
        return Fraction(float(level), above=kind == "above")
    if not 0.0 < level < 1.0:
        expected = "a probability between 0 and 1, such as 0.95"
        raise InputError("not the level of a quantile", key="statistic.quantile", value=level, expected=expected)
    return Quantile(float(level))


def values_over_seeds(
    ds: xr.Dataset, name: str, max_lost: float = MOST_LOST, *, infinite: bool = False
) -> xr.DataArray:
    """Return the values of an observable over `seed`, NaN where too many runs have none for statistics of them.

    infinite : whether infinite values count (`sample_of`).
    """
    return sample_of(numbered(values_of(ds, name)), ds, max_lost, infinite=infinite)


def estimated(
    name: str, sample: xr.DataArray, estimator: Estimator, confidence: float, attrs: Mapping[str, Any]
) -> dict[str, xr.DataArray]:
    """Return the estimate of an observable with `attrs` and its interval; of a mean also its standard error."""
    title, estimate = estimator.title(attrs["long_name"]), estimator(sample, confidence)
    if isinstance(estimator, Fraction):
        return with_bounds(name, estimate, title)
    symbol, units = attrs.get("symbol", ""), attrs.get("units", "1")
    if not isinstance(estimator, Mean):
        return with_bounds(name, estimate, title, symbol, units)
    error = labelled(standard_error(sample), f"standard error of the {title}", units=units)
    return with_bounds(name, estimate, title, symbol, units, comment=SEEN) | {f"{name}_error": error}


def averaged_observables(ds: xr.Dataset | Outline) -> list[str]:
    """Return the names of observables over time that are one number, or one per teacher direction, task or block.

    Of a sweep of a function these are all results.
    """
    outline = outline_of(ds)
    outer = {*outline.variables["status"], "time", *INNER}
    names = recorded(outline)
    return [name for name in names if name not in over_time(outline) or outer.issuperset(outline.variables[name])]


def numbered(values: xr.DataArray) -> xr.DataArray:
    """Return the values with labelled coordinates along INNER dims, counted from 1 as lam1, lam2, ... in formulas."""
    for dim in INNER.keys() & set(values.dims):
        numbers = xr.DataArray(np.arange(1, values.sizes[dim] + 1), dims=dim)
        values = values.assign_coords({dim: labelled(numbers, *INNER[dim])})
    return values


def numbered_axes(outline: Outline) -> Outline:
    """Return the outline in which INNER dims are counted from 1, as those of `numbered` values."""
    for dim in INNER.keys() & outline.axes.keys():
        outline = outline.along(dim, range(1, len(outline.axes[dim]) + 1))
    return outline


def counts_steps(ds: xr.Dataset | Outline) -> bool:
    """Return whether recording times can be counted in steps of SGD: not those of functions and of other networks."""
    outline = outline_of(ds)
    names = {*outline.variables, *outline.attrs}
    return "time" in outline.axes and {"gamma", "p", "d", "activation"} <= names


def steps_coordinate(ds: xr.Dataset) -> dict[str, xr.DataArray]:
    """Return the coordinate `steps` by its name; empty for a dataset that does not count steps (`counts_steps`)."""
    return {"steps": steps_at_times(ds)} if counts_steps(ds) else {}


def steps_at_times(ds: xr.Dataset) -> xr.DataArray:
    """Return the number of steps until each recorded time."""
    steps = ds["time"] * field(ds, "clock", 1.0) / step_time(ds)
    return labelled(steps.round(), **label("steps"))


def _outline(ds: Outline, *, statistic: str | Mapping[Any, float], **_: Any) -> Outline:
    """Return the structure of the result, before anything runs: averaged observables without seeds, and `steps`."""
    estimator_of(statistic)
    names = averaged_observables(ds)
    if not names:
        many = "one per teacher unit, task or block of inputs"
        expected = f"one over time: a number, or {many}, such as risk or subspace_cosine"
        raise InputError("no such observable is recorded", key="observables", expected=expected)
    averages_of = numbered_axes(ds).only(*names).without("seed").with_variables({}, averaged=" ".join(names))
    if not counts_steps(ds):
        return averages_of
    clock = [ds.variables.get(name, ()) for name in ("clock", "gamma", "p", "d")]
    steps = tuple(dict.fromkeys(dim for dims in (*clock, ("time",)) for dim in dims))
    return averages_of.with_coordinate("steps", steps)


DOC = "Observables averaged over the seeds, with intervals"
ANALYSES.add(analysis_of(averages, DOC, overlaps=True, outline=_outline, averages=True))
