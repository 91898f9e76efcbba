"""The cells of a dataset (all of its points at once) as analyses see them: status, fields of the problem, labels."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from sweeplib.errors import InputError

if TYPE_CHECKING:
    import xarray as xr


def with_status(ds: xr.Dataset, *meanings: str) -> xr.DataArray:
    """Where the status of a case is one of `meanings`, by the flags that the dataset itself declares."""
    attrs = ds["status"].attrs
    codes = dict(zip(attrs["flag_meanings"].split(), attrs["flag_values"], strict=True))
    return ds["status"].isin([int(codes[meaning]) for meaning in meanings])


def field(ds: xr.Dataset, name: str, default: Any = None) -> xr.DataArray:
    """The field of the problem over whatever dims it varies along; `default` where it is not stored."""
    import xarray as xr

    if name in ds.coords:
        return ds.coords[name]
    if name in ds.attrs:
        return xr.DataArray(ds.attrs[name])
    if default is None:
        raise InputError("the dataset does not say", key=name, expected=f"a coordinate {name}")
    return xr.DataArray(default)


def labelled(array: xr.DataArray, long_name: str, symbol: str = "", units: str = "1") -> xr.DataArray:
    """The array with these labels and no other attributes."""
    array = array.copy(deep=False)
    array.attrs = {"long_name": long_name, "units": units} | ({"symbol": symbol} if symbol else {})
    return array


def require(ds: xr.Dataset, *names: Hashable) -> None:
    """Raise InputError when a variable that an analysis reads was not recorded."""
    for name in names:
        if name not in ds:
            hint = "recording.thresholds in the config" if str(name).startswith("exit") else "it among the observables"
            raise InputError("not recorded in this sweep", value=str(name), expected=hint)


def over_time(ds: xr.Dataset) -> list[str]:
    """The recorded observables that have a time axis, with or without axes of their own."""
    return [str(name) for name, array in ds.data_vars.items() if {"seed", "time"} <= set(array.dims)]


def is_stochastic(dynamics: str) -> bool:
    """Whether runs of the dynamics have noise of their own, beyond their start; those of an unknown one are said to."""
    from sweeplib.dynamics import DYNAMICS

    return dynamics not in DYNAMICS or getattr(DYNAMICS[dynamics], "stochastic", dynamics != "ode")
