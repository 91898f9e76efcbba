"""Runs without a value, and when a statistic over the seeds may be computed from the remaining runs.

The reason that stops a run early (a crash, exhausted memory, a divergence, a time limit, its exit) may be related to
the values that it would have had. The remaining runs are then not a random sample: their mean is biased by f x, where f
is the fraction lost and x the difference of the means of lost and remaining runs. The data give f but not x.
"""

from __future__ import annotations

from sweeplib.engine.base.late_modules import xarray as xr

MOST_LOST = 0.02
"""A statistic is NaN where more than this fraction of the runs is lost.

Then lost runs whose mean differs by half change the mean by less than 1 %; one lost run of fewer than 50 is too many.
"""
STOPPED = ("timeout", "inaccurate")
"""The statuses of runs that were stopped before their horizon: what they would have done later is not known."""


def has_run(ds: xr.Dataset) -> xr.DataArray:
    """Return a mask: where a run was requested and computed, with any result."""
    return ~with_status(ds, "missing")


def has_run_at(measured: xr.DataArray, ds: xr.Dataset) -> xr.DataArray:
    """Return a mask with the axes of `measured`, a statistic of the runs of `ds`: where any run counts in it."""
    run = has_run(ds)
    reduced = run.any([dim for dim in run.dims if dim not in measured.dims]).reset_coords(drop=True)
    # the statistic may have other labels along an axis than the runs, or in another order
    reduced = reduced.reindex({dim: measured[dim].values for dim in reduced.dims}, fill_value=False)
    return reduced.broadcast_like(measured).transpose(*measured.dims)


def with_status(ds: xr.Dataset, *meanings: str) -> xr.DataArray:
    """Return a mask: where the status of a case is one of `meanings`."""
    codes = status_codes(ds)
    return ds["status"].isin([codes[meaning] for meaning in meanings if meaning in codes])


def status_codes(ds: xr.Dataset) -> dict[str, int]:
    """Return the codes of statuses by name, as the dataset declares them; those of today if its attributes are gone."""
    attrs = ds["status"].attrs
    if "flag_meanings" in attrs and "flag_values" in attrs:
        return dict(zip(attrs["flag_meanings"].split(), map(int, attrs["flag_values"]), strict=True))
    from sweeplib.engine.status import Status

    return {status.name: int(status) for status in Status}


def values_of(ds: xr.Dataset, name: str) -> xr.DataArray:
    """Return the variable `name`, NaN for runs that failed or were killed.

    Runs that diverged or were stopped have the values up to their end.
    """
    return ds[name].where(with_status(ds, "ok", "diverged", *STOPPED))


def has_diverged(ds: xr.Dataset) -> xr.DataArray:
    """Return a mask: where a run diverged; its values would have been larger than any number afterwards."""
    return with_status(ds, "diverged")


def without_value(values: xr.DataArray, run: xr.DataArray, *, infinite: bool = False) -> xr.DataArray:
    """Return a mask over runs, and times if `values` have them: where there was a `run` but no entry is a value.

    infinite : whether infinite entries are values.
    """
    import numpy as np

    inner = [dim for dim in values.dims if dim not in (*run.dims, "time")]
    has_value: xr.DataArray = values.notnull() if infinite else abs(values) < np.inf
    return run & ~has_value.any(inner)


def too_many(lost: xr.DataArray, run: xr.DataArray, max_lost: float) -> xr.DataArray:
    """Return a mask: where more than the fraction `max_lost` of the runs made over `seed` is lost."""
    return lost.sum("seed") > max_lost * run.sum("seed") + 1e-9  # equal is not more, rounded


def sample_of(
    values: xr.DataArray, ds: xr.Dataset, max_lost: float = MOST_LOST, *, of_means: bool = True, infinite: bool = False
) -> xr.DataArray:
    """Return the values that count in statistics over `seed`: NaN for all seeds where too many runs have none.

    values : of the runs of the dataset, over `seed`. A run is lost where it has no value that counts.
    of_means : whether the statistics are means, which are NaN from where any run diverged on (`unless_lost`).
    infinite : whether infinite values count, as they do in medians; a mean has none where any value is infinite.
    """
    run, infinite = has_run(ds), infinite or not of_means
    lost = without_value(values, run, infinite=infinite)
    sample = unless_lost(values, lost, run, max_lost, has_diverged(ds) if of_means else None)
    return sample if infinite else sample.where(~xr.ufuncs.isinf(sample).any("seed"))


def unless_lost(
    values: xr.DataArray, lost: xr.DataArray, run: xr.DataArray, max_lost: float, diverged: xr.DataArray | None = None
) -> xr.DataArray:
    """Return the values, NaN for all seeds where more than the fraction `max_lost` of the runs made is lost.

    run, lost : masks of the runs that were made, and of those without a value. diverged : those that diverged, of which
    one that is lost suffices: a mean over the others, that went to infinity, would come back.
    """
    refused = too_many(lost, run, max_lost)
    return values.where(~(refused if diverged is None else refused | (lost & diverged).any("seed")))
