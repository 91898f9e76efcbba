"""What proposers read of datasets: the points at which a question is asked, and the seeds that rows have.

The `place` of a point is its index by dimension. The rows of a point are those that agree with it in the axes that it
has; a row is one point of the grid, with all of its seeds, under all dynamics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.design.axis import places_in
from sweeplib.engine.design.questions import Row
from sweeplib.statistics.lost_runs import with_status


def seeds_asked(ds: xr.Dataset) -> xr.DataArray:
    """Return the number of runs that were requested of each row of each dynamics, whatever became of them."""
    return (~with_status(ds, "missing")).sum("seed")


def rows_asked(ds: xr.Dataset) -> Iterator[Row]:
    """Yield each point of the grid that has runs, with the number of its seeds."""
    dims = row_dims(ds)
    counts = values_at(seeds_asked(ds).max("dynamics"), dims)
    for place in np.argwhere(counts > 0).tolist():
        at = {dim: value(ds, dim, index) for dim, index in zip(dims, place, strict=True)}
        yield Row(at, int(counts[tuple(place)]), "")


class AskedRows:
    """The rows of a dataset with the number of their seeds, read once.

    dims : the axes of the numbers `_counts`, and `_columns` their labels. _names : the axes that name a row.
    """

    def __init__(self, ds: xr.Dataset) -> None:
        counts = seeds_asked(ds)
        self.dims, self._counts = [str(dim) for dim in counts.dims], np.asarray(counts.values)
        self._columns = {dim: ds[dim].values.tolist() for dim in self.dims}
        self._names = row_dims(ds)

    def at(self, place: Mapping[str, int]) -> list[tuple[dict[str, Any], int]]:
        """Return the rows of a place that have seeds: each as values by axis, with the number of its seeds.

        Without `dynamics` in the place, the number is the largest of any dynamics.
        """
        fixed = {dim: index for dim, index in place.items() if dim in self.dims}
        counts = self._counts[tuple(fixed.get(dim, slice(None)) for dim in self.dims)]
        free = [dim for dim in self.dims if dim not in fixed]
        if "dynamics" in free:
            counts = counts.max(axis=free.index("dynamics"))
            free.remove("dynamics")
        rows = []
        # without a free axis `counts` is one number, whose places argwhere does not list
        for index in np.argwhere(counts > 0).tolist() if free else [[]] * int(counts > 0):
            places = {**fixed, **dict(zip(free, index, strict=True))}
            rows.append(({dim: self._columns[dim][places[dim]] for dim in self._names}, int(counts[tuple(index)])))
        return rows


def points(variable: xr.DataArray, at: Mapping[str, tuple[Any, ...]]) -> Iterator[dict[str, int]]:
    """Yield the place of each point of a variable at which a question is asked.

    at : by axis, the values at which it is asked; all of them on axes that are not named.
    """
    dims = [str(dim) for dim in variable.dims]
    wanted = [_places(variable, dim, at.get(dim)) for dim in dims]
    for place in np.ndindex(*map(len, wanted)):
        yield {dim: wanted[number][index] for number, (dim, index) in enumerate(zip(dims, place, strict=True))}


def _places(variable: xr.DataArray, dim: str, values: tuple[Any, ...] | None) -> list[int]:
    """Return the indices of values along a dimension, ascending; all indices for None."""
    if values is None:
        return list(range(variable.sizes[dim]))
    column = variable[dim].values.tolist()
    return sorted(place for places in places_in(column, dim, values) for place in places)


def named(variable: xr.DataArray, place: Mapping[str, int]) -> dict[str, Any]:
    """Return the coordinates of the point at a place, without those on axes of one value."""
    return names_of(variable)(place)


def names_of(variable: xr.DataArray) -> Callable[[Mapping[str, int]], dict[str, Any]]:
    """Return a function of a place that returns its coordinates, as `named` does: faster for many points."""
    columns = {str(dim): variable[dim].values.tolist() for dim, size in variable.sizes.items() if size > 1}
    return lambda place: {dim: columns[dim][index] for dim, index in place.items() if dim in columns}


def value(ds: xr.Dataset | xr.DataArray, dim: str, index: int) -> Any:
    """Return the coordinate at an index of a dimension as a plain Python value."""
    return ds[dim].values[index].item()


def row_dims(ds: xr.Dataset) -> list[str]:
    """Return the dimensions of the grid of problems, without dynamics and seeds."""
    return [str(dim) for dim in ds["status"].dims if dim not in ("dynamics", "seed")]


def values_at(variable: xr.DataArray, dims: list[str]) -> NDArray[Any]:
    """Return a variable as a numpy array over its dimensions `dims`, in this order."""
    return np.asarray(variable.transpose(*dims).values)
