"""Labels of the arrays that an analysis makes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sweeplib.analysis.recorded import is_stochastic

if TYPE_CHECKING:
    import xarray as xr


def labelled(array: xr.DataArray, long_name: str, symbol: str = "", units: str = "1") -> xr.DataArray:
    """Return the array with these labels and no other attributes."""
    array = array.copy(deep=False)
    array.attrs = {"long_name": long_name, "units": units} | ({"symbol": symbol} if symbol else {})
    return array


def dynamics_label(name: str) -> str:
    """Return the name of the dynamics in legends and labels."""
    from sweeplib.dynamics import DYNAMICS

    return DYNAMICS[name].label if name in DYNAMICS else name


def with_article(name: str) -> str:
    """Return the name of the dynamics in a sentence: 'the mean field', 'SGD'."""
    label = dynamics_label(name)
    return label if is_stochastic(name) else f"the {label}"
