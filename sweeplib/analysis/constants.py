"""What is the same at all points of a dataset: stored as attributes, of which analyses and figures make coordinates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sweeplib.problem import PROBLEM_FIELDS
from sweeplib.storage.labels import label, named
from sweeplib.sweep.fields import FIELD_TYPES

if TYPE_CHECKING:
    import xarray as xr


def constants(ds: xr.Dataset) -> dict[str, Any]:
    """The fields of the problem, and other numbers of the grid, that are attributes of the dataset, by name."""
    names = dict.fromkeys([*PROBLEM_FIELDS, *named(ds.attrs.get("fixed", ""))])
    return {name: ds.attrs[name] for name in names if name in ds.attrs and name not in ds.variables}


def _value(name: str, stored: Any) -> Any:
    """True or false where 1 or 0 is stored for it."""
    return bool(stored) if FIELD_TYPES.get(name) is bool else stored


def with_constants(ds: xr.Dataset) -> xr.Dataset:
    """The dataset with its constants as labelled coordinates: ds["p"] is the width, whether it varies or not."""
    import xarray as xr

    held = {name: _value(name, stored) for name, stored in constants(ds).items()}
    return ds.assign_coords({name: xr.DataArray(value, attrs=label(name)) for name, value in held.items()})


def without_constants(result: xr.Dataset, ds: xr.Dataset) -> xr.Dataset:
    """What was made of `ds` with its constants as attributes again, but for those that have become an axis."""
    held = {name: value for name, value in constants(ds).items() if not (name in result.coords and result[name].ndim)}
    fixed = {"fixed": ds.attrs["fixed"]} if "fixed" in ds.attrs else {}
    return result.drop_vars(held, errors="ignore").assign_attrs(held | fixed)
