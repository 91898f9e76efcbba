"""Datasets of sweeps as tables of points: a row for each combination of parameters, known by these, not by a place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.errors import InputError
from sweeplib.networks.problem import PARAMETERS
from sweeplib.statistics.lost_runs import has_run

POINT = "point"
OF_RUNS = ("dynamics", "seed")
"""The axes of runs that are no parameters of a problem."""
DIGITS = 12
"""Values of a parameter that agree to so many digits are one: they may be computed in several ways."""


def are_one_grid(datasets: Sequence[xr.Dataset]) -> bool:
    """Return whether the axes of datasets are those of one grid: then a label means the same in all of them.

    They are not if one is a table, if a name is an axis in one and follows from an axis in another one, and if it
    follows differently.
    """
    if any(POINT in ds.dims for ds in datasets):
        return False
    followers = {str(name) for ds in datasets for name in ds.coords if name not in ds.dims and ds[name].ndim}
    if any(name in ds.dims for ds in datasets for name in followers):
        return False
    for name in followers:
        along = [ds[name] for ds in datasets if name in ds.coords and ds[name].ndim]
        if any(array.dims != along[0].dims or not _agree(along[0], array) for array in along[1:]):
            return False
    return True


def _agree(first: xr.DataArray, second: xr.DataArray) -> bool:
    """Return whether a coordinate has the same values where both have labels."""
    mine, its = xr.align(first.reset_coords(drop=True), second.reset_coords(drop=True), join="inner")
    if first.dtype.kind == "f":
        return bool(np.allclose(mine, its, rtol=10.0**-DIGITS, atol=0.0, equal_nan=True))
    return bool((mine.values == its.values).all())


def as_rows(datasets: Sequence[xr.Dataset]) -> list[xr.Dataset]:
    """Return datasets, whose fields are coordinates, as tables: equal labels of the axis `point` are equal parameters.

    Rows without a run are left out. InputError for a parameter that one of the datasets does not have.
    """
    tables = [_table(ds) for ds in datasets]
    names = dict.fromkeys(str(name) for ds in tables for name in ds.coords if name not in ds.dims)
    varying = [name for name in names if any(POINT in ds[name].dims for ds in tables if name in ds.coords)]
    varying += [name for name in names if name not in varying and len(_single_values(name, tables)) > 1]
    for name in [name for name in names if any(name not in ds.coords for ds in tables)]:
        if name in PARAMETERS:
            values = [_few_values(ds[name]) if name in ds.coords else None for ds in tables]
            raise InputError("not a field of all sweeps", key=name, value=values, expected="sweeps that all have it")
        tables = [ds.drop_vars(name, errors="ignore") for ds in tables]
        varying = [other for other in varying if other != name]
    tables = [_along_points(ds, varying) for ds in tables]
    rows: dict[tuple[Any, ...], int] = {}
    keys = [_keys(ds, [name for name in varying if name in PARAMETERS]) for ds in tables]
    for key in (key for of_one in keys for key in of_one):
        rows.setdefault(key, len(rows))
    return [_numbered(ds, [rows[key] for key in of_one]) for ds, of_one in zip(tables, keys, strict=True)]


def _table(ds: xr.Dataset) -> xr.Dataset:
    """Return a dataset with an axis of points in place of those of its grid, and with the rows that have runs."""
    if POINT in ds.dims:
        ds = ds.drop_vars(POINT, errors="ignore").rename_dims({POINT: "row"})
    axes = [dim for dim in ds["status"].dims if dim not in OF_RUNS]
    ds = ds.stack({POINT: axes}, create_index=False) if axes else ds.expand_dims(POINT)
    return ds.isel({POINT: np.flatnonzero(has_run(ds).any([dim for dim in OF_RUNS if dim in ds["status"].dims]))})


def _single_values(name: str, tables: Sequence[xr.Dataset]) -> set[Any]:
    """The values of a field in the tables in which it is fixed."""
    return {ds[name].item() for ds in tables if name in ds.coords and not ds[name].ndim}


def _few_values(coordinate: xr.DataArray) -> Any:
    """Return the values of a coordinate for a message: at most a few."""
    values = np.unique(coordinate.values).tolist()
    return values[0] if len(values) == 1 else values[:3]


def _along_points(ds: xr.Dataset, names: Sequence[str]) -> xr.Dataset:
    """Return a table whose coordinates of these names are along its points."""
    single = {name: ds[name] for name in names if not ds[name].ndim}
    count = ds.sizes[POINT]
    return ds.assign_coords(
        {name: (POINT, np.full(count, value.item()), value.attrs) for name, value in single.items()}
    )


def _keys(ds: xr.Dataset, names: Sequence[str]) -> list[tuple[Any, ...]]:
    """Return the parameters of each row."""
    columns = [[_rounded(value) for value in ds[name].values.tolist()] for name in sorted(names)]
    return list(zip(*columns, strict=True)) if columns else [()] * ds.sizes[POINT]


def _rounded(value: Any) -> Any:
    """A value of a parameter, a number as its first digits: they may be computed in several ways."""
    return f"{value:.{DIGITS}g}" if isinstance(value, float) else value


def _numbered(ds: xr.Dataset, numbers: list[int]) -> xr.Dataset:
    """Return a table with these labels of its rows; of rows with the same parameters it has the first."""
    first = [numbers.index(number) for number in dict.fromkeys(numbers)]
    return (
        ds.isel({POINT: first}).assign_coords({POINT: [numbers[at] for at in first]}).transpose("dynamics", POINT, ...)
    )
