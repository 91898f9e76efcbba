"""Arrays with labels: long name, units, symbol, and the ends of intervals beside an estimate."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import NormalDist
from typing import Any

import numpy as np

from sweeplib.engine.base.late_modules import xarray as xr


def labelled(
    array: xr.DataArray, long_name: str, symbol: str = "", units: str = "1", **attributes: Any
) -> xr.DataArray:
    """Return the array with these labels and `attributes`, and no others."""
    array = array.copy(deep=False)
    array.attrs = {"long_name": long_name, "units": units} | ({"symbol": symbol} if symbol else {}) | attributes
    return array


def with_bounds(
    name: str, values: Iterable[xr.DataArray], long_name: str, symbol: str = "", units: str = "1", **attributes: Any
) -> dict[str, xr.DataArray]:
    """Return an estimate, its lower and its upper bound, labelled: the variables NAME, NAME_low and NAME_high.

    The estimate alone has the `attributes`.
    """
    value, low, high = values
    return {
        name: labelled(value, long_name, symbol, units, **attributes),
        f"{name}_low": labelled(low, f"{long_name}, lower bound", symbol, units),
        f"{name}_high": labelled(high, f"{long_name}, upper bound", symbol, units),
    }


def standard_errors(data: xr.Dataset, name: str) -> xr.DataArray:
    """Return the standard errors of an estimate: its own, or those of normal numbers with its intervals; else NaN.

    An interval with an end that is not told has none.
    """
    if f"{name}_error" in data:
        return data[f"{name}_error"]
    if f"{name}_low" not in data or "confidence" not in data.attrs:
        return data[name] * np.nan
    width = data[f"{name}_high"] - data[f"{name}_low"]
    return 0.5 * width.where(np.isfinite(width)) / NormalDist().inv_cdf(0.5 + 0.5 * float(data.attrs["confidence"]))
