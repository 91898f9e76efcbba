"""The problem of each point of a dataset, as analyses see it: its fields, over the dims along which they vary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sweeplib.errors import InputError
from sweeplib.problem import PROBLEM_FIELDS

if TYPE_CHECKING:
    import xarray as xr


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


def constants(ds: xr.Dataset) -> dict[str, Any]:
    """The fields of the problem, and other numbers of its grid, that are attributes of the dataset, by name.

    They are the same in all of it.
    """
    from sweeplib.storage.labels import named

    names = dict.fromkeys([*PROBLEM_FIELDS, *named(ds.attrs.get("fixed", ""))])
    return {name: ds.attrs[name] for name in names if name in ds.attrs}


def step_time(ds: xr.Dataset) -> xr.DataArray:
    """The ODE time γ/(pd) of a step of SGD."""
    return field(ds, "gamma") / (field(ds, "p") * field(ds, "d"))


def one_pass_committee(ds: xr.Dataset) -> xr.DataArray:
    """Where a committee is learned from one fresh sample a step, of which alone theory speaks."""
    fresh = (field(ds, "batch_size", 1) == 1) & (field(ds, "repeats", 1) == 1) & (field(ds, "samples", 0) == 0)
    return fresh & (field(ds, "target", "committee") == "committee")
