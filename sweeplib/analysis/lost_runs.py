"""Runs without a value, and when the others may stand for them in a statistic over the seeds.

What stops a run early has to do with what it would have shown: a crash, memory that ran out, a divergence, a time
limit, its exit. The runs that are left are then no random sample of all, and their mean is biased by f x, where f is
the fraction that is lost and x how far off its mean is: the data tell f, and nothing tells x.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sweeplib.analysis.status import with_status

if TYPE_CHECKING:
    import xarray as xr

MOST_LOST = 0.02
"""A statistic is refused, NaN, where more than this fraction of the runs is lost.

Then lost runs that are off by half of the mean move it by less than 1 %; one lost run of fewer than 50 is too many.
"""


def made(ds: xr.Dataset) -> xr.DataArray:
    """Where a run was asked for and made, whatever became of it."""
    return ~with_status(ds, "missing")


def recorded(ds: xr.Dataset, name: str) -> xr.DataArray:
    """What was recorded of runs, as far as they came: also of those that diverged later, or ran out of time."""
    return ds[name].where(with_status(ds, "ok", "diverged", "timeout"))


def without_value(values: xr.DataArray, run: xr.DataArray) -> xr.DataArray:
    """Where there was a `run` but `values` has nothing of it at a time, in any of its entries."""
    inner = [dim for dim in values.dims if dim not in (*run.dims, "time")]
    return run & values.isnull().all(inner)


def too_many(lost: xr.DataArray, run: xr.DataArray, max_lost: float) -> xr.DataArray:
    """Where more than the fraction `max_lost` of the runs made over `seed` is lost."""
    return lost.sum("seed") > max_lost * run.sum("seed") + 1e-9


def unless_lost(values: xr.DataArray, lost: xr.DataArray, run: xr.DataArray, max_lost: float) -> xr.DataArray:
    """The values, NaN for all seeds where more than the fraction `max_lost` of the runs made is lost."""
    return values.where(~too_many(lost, run, max_lost))
