"""What proposers read of datasets: the points at which a question is asked, and the seeds that rows have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib.analysis.kit.status import with_status
from sweeplib.design.axis import places_in
from sweeplib.design.questions import Row

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import NDArray

RESULT_DIMS = ("dynamics", "threshold")
"""Dimensions along which a row has several values."""


def seeds_asked(ds: xr.Dataset) -> xr.DataArray:
    """Return the number of runs of each row of each dynamics, whatever became of them."""
    return (~with_status(ds, "missing")).sum("seed")


def rows_asked(ds: xr.Dataset) -> Iterator[Row]:
    """Yield each point of the grid that has runs, with the number of its seeds."""
    counts, dims = seeds_asked(ds).max("dynamics"), row_dims(ds)
    there = values_at(counts, dims)
    for place in np.argwhere(there > 0).tolist():
        at = {dim: value(ds, dim, index) for dim, index in zip(dims, place, strict=True)}
        yield Row(at, int(there[tuple(place)]), "")


def points(variable: xr.DataArray, at: Mapping[str, tuple[Any, ...]]) -> Iterator[dict[str, int]]:
    """Yield the index, by dimension, of each point of a variable at which a question is asked."""
    dims = [str(dim) for dim in variable.dims]
    wanted = [_places(variable, dim, at.get(dim)) for dim in dims]
    for place in np.ndindex(*map(len, wanted)):
        yield {dim: wanted[number][index] for number, (dim, index) in enumerate(zip(dims, place, strict=True))}


def _places(variable: xr.DataArray, dim: str, values: tuple[Any, ...] | None) -> list[int]:
    if values is None:
        return list(range(variable.sizes[dim]))
    column = variable[dim].values.tolist()
    return sorted(place for places in places_in(column, dim, values) for place in places)


def named(variable: xr.DataArray, place: Mapping[str, int]) -> dict[str, Any]:
    """Return the coordinates of a point, without those of which there is only one."""
    return {dim: value(variable, dim, index) for dim, index in place.items() if variable.sizes[dim] > 1}


def value(ds: xr.Dataset | xr.DataArray, dim: str, index: int) -> Any:
    """Return a coordinate of a dimension as a plain value."""
    return ds[dim].values[index].item()


def row_dims(ds: xr.Dataset) -> list[str]:
    """Return the dimensions of the grid."""
    return [str(dim) for dim in ds["status"].dims if dim not in ("dynamics", "seed")]


def values_at(variable: xr.DataArray, dims: list[str]) -> NDArray[Any]:
    """Return a variable as an array over some dimensions, in this order."""
    return np.asarray(variable.transpose(*dims).values)
