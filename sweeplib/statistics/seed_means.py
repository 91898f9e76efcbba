"""Means over the seeds, with standard errors; intervals of means are in `estimators`."""

from __future__ import annotations

from typing import Any

import numpy as np

from sweeplib.engine.base.late_modules import scipy
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.statistics.labelled import labelled

FEWEST_SEEDS = 3
"""The least number of seeds with an error or an interval; of two seeds, intervals miss half of the time and more."""


def standard_error(values: xr.DataArray) -> xr.DataArray:
    """Return the standard error of the mean over `seed` of the values that are not NaN.

    NaN for fewer than FEWEST_SEEDS values, and if one of them is infinite.
    """
    count = values.count("seed")
    enough = count >= FEWEST_SEEDS
    # zeros in the place of too few values, of which the deviation warns with xarray of 2024
    with np.errstate(invalid="ignore"):  # of infinite values
        return values.where(enough, 0.0).std("seed", ddof=1) / np.sqrt(count.where(enough))


def mean_and_error(values: xr.DataArray) -> tuple[xr.DataArray, xr.DataArray]:
    """Return the mean over `seed` of the values that are not NaN, and its standard error."""
    return values.mean("seed"), standard_error(values)


def with_error(
    name: str,
    values: xr.DataArray,
    long_name: str,
    symbol: str = "",
    *,
    error_symbol: str = "",
    units: str = "1",
    **attributes: Any,
) -> dict[str, xr.DataArray]:
    """Return the mean of values over `seed` and its standard error, labelled: the variables NAME and NAME_error.

    The mean alone has the `attributes`.
    """
    mean, error = mean_and_error(values)
    return {
        name: labelled(mean, long_name, symbol, units, **attributes),
        f"{name}_error": labelled(error, f"standard error of the {long_name}", error_symbol, units),
    }


def interval_by_error(
    mean: xr.DataArray, error: xr.DataArray, count: xr.DataArray, confidence: float | xr.DataArray
) -> tuple[xr.DataArray, xr.DataArray, xr.DataArray]:
    """Return a mean of `count` values, and the ends of its interval by its standard error and Student's law."""
    half = error * xr.apply_ufunc(scipy.special.stdtrit, (count - 1.0).clip(1.0), (1.0 + confidence) / 2.0)
    return mean, mean - half, mean + half


def normal_scores(t: xr.DataArray, freedom: xr.DataArray) -> xr.DataArray:
    """Return the standard normal numbers that are exceeded as often as `t` by Student's t with `freedom` degrees.

    Below a probability of 10⁻²⁵⁰ they are ±√(n log(1 + t²/n)), which is right to a few hundredths (Wallace 1959).
    """

    def scores(t: np.ndarray, freedom: np.ndarray) -> np.ndarray:
        """Return the standard normal numbers of arrays of t and of degrees of freedom."""
        n = np.maximum(freedom, 1.0)
        tail = np.asarray(scipy.special.stdtr(n, -abs(t)))
        far_out = np.where(np.isnan(t), np.nan, np.sqrt(n * np.log1p(t**2 / n)))
        with np.errstate(divide="ignore"):
            return np.sign(t) * np.where(tail > 1e-250, -scipy.special.ndtri(tail), far_out)

    result: xr.DataArray = xr.apply_ufunc(scores, t, freedom)
    return result
