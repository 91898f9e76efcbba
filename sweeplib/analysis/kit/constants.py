"""Constants of a dataset: attributes in the stored dataset, coordinates while analyses and figures work on it."""

from __future__ import annotations

from sweeplib.analysis.kit.problem_fields import constants, field
from sweeplib.late_modules import xarray as xr
from sweeplib.problem import PARAMETERS


def with_constants(ds: xr.Dataset) -> xr.Dataset:
    """Return the dataset with its constants as labelled coordinates: ds["p"] exists whether or not p varies.

    Dask arrays become arrays that are computed when they are read.
    """
    from sweeplib.storage.dataset.folder import plain

    ds = plain(ds)
    return ds.assign_coords({name: _coordinate(ds, name) for name in constants(ds) if name not in ds.variables})


def _coordinate(ds: xr.Dataset, name: str) -> xr.DataArray:
    """Return a constant as a coordinate; a flag stored as 1 or 0 becomes true or false."""
    coordinate = field(ds, name)
    return coordinate.astype(bool) if name in PARAMETERS and PARAMETERS[name].type is bool else coordinate


def without_constants(result: xr.Dataset, ds: xr.Dataset) -> xr.Dataset:
    """Return `result`, computed from `ds`, with the constants of `ds` as attributes unless they became an axis."""
    fixed = {name: ds.attrs[name] for name in constants(ds) if name not in ds.variables}
    held = {name: value for name, value in fixed.items() if not (name in result.coords and result[name].ndim)}
    fixed_names = {"fixed": ds.attrs["fixed"]} if "fixed" in ds.attrs else {}
    return result.drop_vars(held, errors="ignore").assign_attrs(held | fixed_names)
