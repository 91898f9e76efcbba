"""What is the same at all points of a dataset, an attribute of it, is a coordinate to analyses and figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sweeplib.analysis.problem_fields import constants, field
from sweeplib.design.fields import FIELD_TYPES

if TYPE_CHECKING:
    import xarray as xr


def with_constants(ds: xr.Dataset) -> xr.Dataset:
    """The dataset with its constants as labelled coordinates: ds["p"] is the width, whether it varies or not."""
    return ds.assign_coords({name: _coordinate(ds, name) for name in constants(ds) if name not in ds.variables})


def _coordinate(ds: xr.Dataset, name: str) -> xr.DataArray:
    """A constant; true or false where 1 or 0 is stored for it."""
    found = field(ds, name)
    return found.astype(bool) if FIELD_TYPES.get(name) is bool else found


def without_constants(result: xr.Dataset, ds: xr.Dataset) -> xr.Dataset:
    """What was made of `ds` with its constants as attributes again, but for those that have become an axis."""
    fixed = {name: ds.attrs[name] for name in constants(ds) if name not in ds.variables}
    held = {name: value for name, value in fixed.items() if not (name in result.coords and result[name].ndim)}
    said = {"fixed": ds.attrs["fixed"]} if "fixed" in ds.attrs else {}
    return result.drop_vars(held, errors="ignore").assign_attrs(held | said)
