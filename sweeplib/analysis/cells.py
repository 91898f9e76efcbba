"""The cells of a dataset (all of its points at once) as analyses see them: status, fields of the problem, labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sweeplib.errors import InputError
from sweeplib.problem import PROBLEM_FIELDS
from sweeplib.storage.outline import outline_of

if TYPE_CHECKING:
    import xarray as xr

    from sweeplib.storage.outline import Outline


def with_status(ds: xr.Dataset, *meanings: str) -> xr.DataArray:
    """Where the status of a case is one of `meanings`, by the flags that the dataset itself declares."""
    attrs = ds["status"].attrs
    codes = dict(zip(attrs["flag_meanings"].split(), attrs["flag_values"], strict=True))
    return ds["status"].isin([int(codes[meaning]) for meaning in meanings])


def field(ds: xr.Dataset, name: str, default: Any = None) -> xr.DataArray:
    """The field of the problem, over the dims along which it varies; `default` where the dataset does not have it.

    A coordinate or, of a field that is the same in all of the dataset, an attribute. InputError where it is neither and
    has no default.
    """
    import xarray as xr

    from sweeplib.storage.labels import label

    if name in ds.coords:
        return ds.coords[name]
    value = ds.attrs.get(name, default)
    if value is None:
        raise InputError("the dataset does not say", key=name, expected=f"a coordinate or attribute {name}")
    value = str(list(value)) if isinstance(value, list | tuple) else value
    return xr.DataArray(value, name=name, attrs=label(name))


def one_pass_committee(ds: xr.Dataset) -> xr.DataArray:
    """Where a committee is learned from one fresh sample a step, of which alone theory speaks."""
    fresh = (field(ds, "batch_size", 1) == 1) & (field(ds, "samples", 0) == 0)
    return fresh & (field(ds, "target", "committee") == "committee")


def step_time(ds: xr.Dataset) -> xr.DataArray:
    """The ODE time γ/(pd) of a step of SGD."""
    return field(ds, "gamma") / (field(ds, "p") * field(ds, "d"))


def constants(ds: xr.Dataset) -> dict[str, Any]:
    """The fields of the problem, and other numbers of its grid, that are attributes of the dataset, by name.

    They are the same in all of it.
    """
    from sweeplib.storage.labels import named

    names = dict.fromkeys([*PROBLEM_FIELDS, *named(ds.attrs.get("fixed", ""))])
    return {name: ds.attrs[name] for name in names if name in ds.attrs}


def labelled(array: xr.DataArray, long_name: str, symbol: str = "", units: str = "1") -> xr.DataArray:
    """The array with these labels and no other attributes."""
    array = array.copy(deep=False)
    array.attrs = {"long_name": long_name, "units": units} | ({"symbol": symbol} if symbol else {})
    return array


def require(ds: xr.Dataset | Outline, *names: str) -> None:
    """Raise InputError when a variable that an analysis reads is not recorded."""
    for name in names:
        if name not in ds.variables:
            wanted = "`thresholds`, such as [0.01]" if name.startswith("exit") else f"{name} among the `observables`"
            raise InputError("not recorded in this sweep", value=name, expected=wanted)


def over_time(ds: xr.Dataset | Outline) -> list[str]:
    """The recorded observables that have a time axis, with or without axes of their own; not errors of others."""
    outline = outline_of(ds)
    return [
        name for name, dims in outline.variables.items() if {"seed", "time"} <= set(dims) and name not in outline.errors
    ]


def is_stochastic(dynamics: str) -> bool:
    """Whether runs of the dynamics have noise of their own, beyond their start; those of an unknown one are said to."""
    from sweeplib.dynamics import DYNAMICS

    return dynamics not in DYNAMICS or getattr(DYNAMICS[dynamics], "stochastic", dynamics != "ode")
