"""Arrays with labels: long name, units, symbol, and the ends of intervals beside an estimate."""

from __future__ import annotations

from collections.abc import Iterable

from sweeplib.engine.base.late_modules import xarray as xr


def labelled(array: xr.DataArray, long_name: str, symbol: str = "", units: str = "1") -> xr.DataArray:
    """Return the array with these labels and no other attributes."""
    array = array.copy(deep=False)
    array.attrs = {"long_name": long_name, "units": units} | ({"symbol": symbol} if symbol else {})
    return array


def with_bounds(
    name: str, values: Iterable[xr.DataArray], long_name: str, symbol: str = "", units: str = "1"
) -> dict[str, xr.DataArray]:
    """Return an estimate, its lower and its upper bound, labelled: the variables NAME, NAME_low and NAME_high."""
    ends = {"": "", "_low": ", lower bound", "_high": ", upper bound"}
    return {
        f"{name}{end}": labelled(value, f"{long_name}{words}", symbol, units)
        for (end, words), value in zip(ends.items(), values, strict=True)
    }
