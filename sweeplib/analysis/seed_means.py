"""Means over the seeds, with standard errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import xarray as xr


def standard_error(values: xr.DataArray) -> xr.DataArray:
    """Return the standard error of the mean over `seed` of the values that are not NaN.

    NaN for fewer than two values, and if one of them is infinite.
    """
    count = values.count("seed")
    with np.errstate(invalid="ignore"):  # of infinite values
        return values.std("seed", ddof=1) / np.sqrt(count.where(count > 1))


def mean_and_error(values: xr.DataArray) -> tuple[xr.DataArray, xr.DataArray]:
    """Return the mean over `seed` of the values that are not NaN, and its standard error."""
    return values.mean("seed"), standard_error(values)
