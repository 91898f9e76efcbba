"""The status of the cases of a dataset."""

from __future__ import annotations

from sweeplib.late_modules import xarray as xr

STOPPED = ("timeout", "inaccurate")
"""The statuses of runs that were stopped before their horizon: what they would have done later is not known."""


def with_status(ds: xr.Dataset, *meanings: str) -> xr.DataArray:
    """Return a mask: where the status of a case is one of `meanings`, by the flags that the dataset declares."""
    attrs = ds["status"].attrs
    codes = dict(zip(attrs["flag_meanings"].split(), attrs["flag_values"], strict=True))
    return ds["status"].isin([int(codes[meaning]) for meaning in meanings if meaning in codes])
