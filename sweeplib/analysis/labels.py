"""Labels of the arrays that an analysis makes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import xarray as xr


def labelled(array: xr.DataArray, long_name: str, symbol: str = "", units: str = "1") -> xr.DataArray:
    """Return the array with these labels and no other attributes."""
    array = array.copy(deep=False)
    array.attrs = {"long_name": long_name, "units": units} | ({"symbol": symbol} if symbol else {})
    return array
