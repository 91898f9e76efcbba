"""Datasets of several sweeps apart, along an axis `sweep`, for analyses and figures that compare them; and as tables.

A table has a row for each combination of parameters, along the axis `point`; rows are matched by their parameters, not
by their place. Labels are the values along an axis. The parts are the datasets of the single sweeps.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from sweeplib.analysis.kit.problem_fields import constants, with_constants
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.design.axis import POINT
from sweeplib.errors import InputError
from sweeplib.networks.problem import PARAMETERS
from sweeplib.statistics.lost_runs import has_run

SWEEP = "sweep"
OF_RUNS = ("dynamics", "seed")
"""The axes of runs that are no parameters of a problem."""
DIGITS = 12
"""Values of a parameter that agree to so many digits are one: they may be computed in several ways."""
COMMON = ("time", "instant", "threshold", "quantile")
"""Axes of which only the values of all sweeps remain: at others a run of one would count as lost."""
ROUNDING = 1e-12
"""The relative difference below which two labels, or values of a coordinate, are one."""


def along_sweeps(datasets: Sequence[xr.Dataset], names: Sequence[str]) -> xr.Dataset:
    """Return datasets of sweeps with their axes, in memory, as one with an axis `sweep` of these names.

    A run that a sweep does not have is missing there. A field that is fixed in each of them, at several values, or that
    follows differently from the axes, is a coordinate along `sweep`. Of variables, times and thresholds those remain
    that all have. InputError for names that are not as many or not different, for an axis of which one of the sweeps
    says nothing, and for sweeps without common times or thresholds.
    """
    if len(names) != len(datasets) or len(set(names)) < len(names):
        raise InputError("not a name for each sweep", key=SWEEP, value=list(names), expected="as many, all different")
    parts = [with_constants(ds).load() for ds in datasets]
    if any(SWEEP in (*ds.dims, *ds.coords) for ds in parts):
        raise InputError("it has an axis of this name already", key=SWEEP, expected="datasets of single sweeps")
    if len({"function" in ds.attrs for ds in parts}) > 1:
        raise InputError("networks and functions have nothing in common", key=SWEEP, expected="sweeps of one kind")
    # the parts get the same variables, axes, labels and sizes
    parts = _with_same_axes(_without_single_values(_with_same_variables(parts)))
    kinds = {name: array.dtype for name, array in parts[0].coords.items() if array.dtype.kind in "iub"}
    parts = _with_same_sizes(at_common_labels(parts))
    # they are put one after the other; what is no axis is compared (`_coordinate`)
    axis = xr.Variable(SWEEP, np.array(names, dtype=str), {"long_name": "sweep", "units": "1"})
    no_axes = [name for name in parts[0].coords if name not in parts[0].indexes]
    bare = [ds.drop_vars(no_axes).drop_attrs(deep=False) for ds in parts]
    whole = xr.concat(bare, SWEEP, data_vars="all", coords="minimal", compat="override", combine_attrs="override")
    joined = {name: _coordinate(str(name), parts, kinds.get(name)) for name in no_axes}
    whole = whole.assign_coords({SWEEP: axis} | joined)
    whole["status"] = whole["status"].astype(parts[0]["status"].dtype)
    attrs = {key: value for key, value in parts[0].attrs.items() if all(ds.attrs.get(key) == value for ds in parts)}
    if functions := dict.fromkeys(ds.attrs["function"] for ds in parts if "function" in ds.attrs):
        attrs["function"] = " and ".join(functions)
    whole = whole.transpose("dynamics", SWEEP, ...).assign_attrs(attrs)
    # what is the same in all is a constant again
    fixed = {name: value for name, value in constants(datasets[0]).items() if name in no_axes and not whole[name].ndim}
    return whole.drop_vars(list(fixed)).assign_attrs(fixed)


def _with_same_variables(parts: Sequence[xr.Dataset]) -> list[xr.Dataset]:
    """Return the parts with the variables that all have, and the errors of these; an unknown error is NaN."""
    names = dict.fromkeys(name for ds in parts for name in ds.data_vars)
    common = [name for name in names if all(name in ds.data_vars for ds in parts)]
    errors = {
        name: ds[name].attrs
        for ds in parts
        for name in ds.data_vars
        if name not in common and ds[name].attrs.get("error_of") in common
    }
    return [
        ds[common].assign(
            {
                name: ds[name] if name in ds else ds[attrs["error_of"]].where(False).assign_attrs(attrs)
                for name, attrs in errors.items()
            }
        )
        for ds in parts
    ]


def _without_single_values(parts: Sequence[xr.Dataset]) -> list[xr.Dataset]:
    """Return the parts without the axes of problems that have one value in each of them, not the same in all."""
    axes = dict.fromkeys(dim for ds in parts for dim in ds["status"].dims if dim not in (*OF_RUNS, POINT))
    single = [
        dim
        for dim in axes
        if all(dim in ds.coords and ds[dim].size == 1 for ds in parts) and len({ds[dim].item() for ds in parts}) > 1
    ]
    return [ds.squeeze([dim for dim in single if dim in ds.dims]) for ds in parts]


def _with_same_axes(parts: Sequence[xr.Dataset]) -> list[xr.Dataset]:
    """Return the parts with every axis of any of them, as tables if one is a table or if axes follow from others."""
    dims = dict.fromkeys(str(dim) for ds in parts for dim in ds.dims)
    # a name that is an axis here and follows from axes there has rows in common only as a column
    if POINT in dims or any(
        name not in ds.dims and ds[name].ndim for name in dims for ds in parts if name in ds.coords
    ):
        single = [name for name in parts[0].coords if not any(ds[name].ndim for ds in parts if name in ds.coords)]
        tables = as_rows([ds.drop_vars(single, errors="ignore") for ds in parts])
        parts = [
            table.assign_coords({name: ds[name] for name in single if name in ds.coords})
            for table, ds in zip(tables, parts, strict=True)
        ]
        dims = dict.fromkeys(str(dim) for ds in parts for dim in ds.dims)
    for name in dims:
        refuse_unknown(name, parts)
    names = [name for name in parts[0].coords if all(name in ds.coords for ds in parts)]
    return [
        ds.drop_vars([name for name in ds.coords if name not in names]).expand_dims(
            [name for name in dims if name not in ds.dims]
        )
        for ds in parts
    ]


def _labels(dim: str, parts: Sequence[xr.Dataset]) -> np.ndarray:
    """Return the labels of an axis: of all parts, or of COMMON axes those that all parts have."""
    columns, labels = [ds.indexes[dim] for ds in parts], parts[0].indexes[dim]
    for column in columns[1:]:
        labels = type(labels)(_every_label(labels, _near_labels(column, labels)))
    if dim in COMMON:
        labels = labels[np.all([labels.isin(_near_labels(column, labels)) for column in columns], axis=0)]
    if not len(labels) and any(map(len, columns)):
        values = [column.tolist() for column in columns]
        raise InputError("the sweeps have no value in common", key=dim, value=values, expected="one or more")
    return np.array(labels.tolist())


def _near_labels(labels: Any, others: Any) -> Any:
    """Return the labels of an axis, where a number that differs from one of `others` by rounding becomes that one."""
    if labels.dtype.kind != "f" or not len(others):
        return labels.values
    nearest = others.values[np.abs(labels.values[:, None] - others.values.astype(float)).argmin(axis=1)]
    return np.where(np.isclose(labels, nearest, rtol=ROUNDING, atol=0.0), nearest, labels)


def _every_label(first: Any, other: Any) -> Any:
    """Return the labels of two axes together: numbers ascending, others in their order."""
    labels = list(dict.fromkeys([*first.tolist(), *np.asarray(other).tolist()]))
    return np.array(sorted(labels) if first.dtype.kind in "iuf" else labels)


def at_common_labels(parts: Sequence[xr.Dataset]) -> list[xr.Dataset]:
    """Return datasets with the same axes at the labels of all; where one has no cases, their status is missing."""
    labels = {dim: _labels(dim, parts) for dim in map(str, parts[0].indexes)}
    return [_at_labels(ds, labels) for ds in parts]


def _at_labels(ds: xr.Dataset, labels: dict[str, np.ndarray]) -> xr.Dataset:
    """Return a dataset at all `labels`, by axis, which may differ from its own by rounding."""
    numbers = {dim: xr.Variable(dim, wanted) for dim, wanted in labels.items() if wanted.dtype.kind == "f"}
    near = {dim: _near_labels(ds.indexes[dim], wanted) for dim, wanted in numbers.items()}
    ds = ds.assign_coords({dim: (dim, values, ds[dim].attrs) for dim, values in near.items()})
    # 0 is the code of missing; texts have no NaN
    texts = [name for name, variable in ds.variables.items() if variable.dtype.kind in "UO"]
    return ds.reindex(labels, fill_value=dict.fromkeys(texts, "") | {"status": np.uint8(0)})


def _with_same_sizes(parts: Sequence[xr.Dataset]) -> list[xr.Dataset]:
    """Return the parts with dimensions that have no labels, such as those over units, padded to the longest."""
    sizes = {dim: max(ds.sizes[dim] for ds in parts) for dim in parts[0].dims if dim not in parts[0].indexes}
    return [
        ds.pad({dim: (0, size - ds.sizes[dim]) for dim, size in sizes.items() if size > ds.sizes[dim]}) for ds in parts
    ]


def _coordinate(name: str, parts: Sequence[xr.Dataset], dtype: Any) -> xr.DataArray:
    """Return a coordinate that is no axis: along `sweep` only if it differs where several parts know it.

    A part does not know it where it has no cases: there its value is NaN or "".
    dtype : that of integers and flags, which the coordinate has if it is known everywhere.
    """
    arrays: Sequence[xr.DataArray] = xr.broadcast(*(ds[name].reset_coords(drop=True) for ds in parts))
    values = np.stack([array.values for array in arrays])
    is_known = values != "" if values.dtype.kind in "UO" else ~np.isnan(values.astype(float))
    first = np.take_along_axis(values, is_known.argmax(axis=0)[None], axis=0)
    same = values == first if values.dtype.kind in "UOb" else np.isclose(values, first, rtol=ROUNDING, atol=0.0)
    dims: tuple[Hashable, ...] = (SWEEP, *arrays[0].dims)
    if bool((same | ~is_known).all()):
        values, is_known, dims = first[0], is_known.any(axis=0), dims[1:]
    values = values.astype(dtype) if dtype is not None and is_known.all() else values
    return xr.DataArray(values, dims=dims, attrs=parts[0][name].attrs)


def are_one_grid(datasets: Sequence[xr.Dataset]) -> bool:
    """Return whether the axes of datasets are those of one grid: then a label means the same in all of them.

    They are not if one is a table, if a name is an axis in one and follows from an axis in another one, as gamma does
    in gamma = gamma0 * d**-delta, and if it follows differently.
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
    """Return whether a coordinate of two datasets has the same values at the labels that both have."""
    first, second = xr.align(first.reset_coords(drop=True), second.reset_coords(drop=True), join="inner")
    if first.dtype.kind == "f":
        return bool(np.allclose(first, second, rtol=10.0**-DIGITS, atol=0.0, equal_nan=True))
    return bool((first.values == second.values).all())


def as_rows(datasets: Sequence[xr.Dataset]) -> list[xr.Dataset]:
    """Return datasets as tables, in which equal labels of the axis `point` are equal parameters.

    datasets : with all fields as coordinates (`with_constants`). Rows without a run are left out; of rows with equal
    parameters the first stays. InputError for a parameter that one of the datasets does not have.
    """
    tables = [_table(ds) for ds in datasets]
    names = dict.fromkeys(str(name) for ds in tables for name in ds.coords if name not in ds.dims)
    # columns: what varies along the points of a table, and what is fixed at different values in several
    varying = [name for name in names if any(POINT in ds[name].dims for ds in tables if name in ds.coords)]
    varying += [name for name in names if name not in varying and len(_single_values(name, tables)) > 1]
    for name in [name for name in names if any(name not in ds.coords for ds in tables)]:
        if name in PARAMETERS:
            refuse_unknown(name, tables)
        # no parameter but a symbol of an expression: without it the parameters still tell the rows apart
        tables = [ds.drop_vars(name, errors="ignore") for ds in tables]
        varying = [other for other in varying if other != name]
    tables = [_along_points(ds, varying) for ds in tables]
    # rows are numbered by their parameters, in the order in which these first come
    rows: dict[tuple[Any, ...], int] = {}
    keys = [_keys(ds, [name for name in varying if name in PARAMETERS]) for ds in tables]
    for key in (key for of_one in keys for key in of_one):
        rows.setdefault(key, len(rows))
    return [_numbered(ds, [rows[key] for key in of_one]) for ds, of_one in zip(tables, keys, strict=True)]


def _table(ds: xr.Dataset) -> xr.Dataset:
    """Return a dataset with an axis of points in place of the axes of its grid, and with the rows that have runs."""
    if POINT in ds.dims:
        ds = ds.drop_vars(POINT, errors="ignore").rename_dims({POINT: "row"})
    axes = [dim for dim in ds["status"].dims if dim not in OF_RUNS]
    ds = ds.stack({POINT: axes}, create_index=False) if axes else ds.expand_dims(POINT)
    return ds.isel({POINT: np.flatnonzero(has_run(ds).any([dim for dim in OF_RUNS if dim in ds["status"].dims]))})


def _single_values(name: str, tables: Sequence[xr.Dataset]) -> set[Any]:
    """The values of a field in the tables in which it is fixed."""
    return {ds[name].item() for ds in tables if name in ds.coords and not ds[name].ndim}


def refuse_unknown(name: str, datasets: Sequence[xr.Dataset]) -> None:
    """Raise InputError unless all datasets have a field, as an axis or a coordinate."""
    if any(name not in ds.dims and name not in ds.coords for ds in datasets):
        values = [_few_values(ds[name]) if name in ds.coords else None for ds in datasets]
        raise InputError("not a field of all sweeps", key=name, value=values, expected="sweeps that all have it")


def _few_values(coordinate: xr.DataArray) -> Any:
    """Return the values of a coordinate for a message: at most a few."""
    values = np.unique(coordinate.values).tolist()
    return values[0] if len(values) == 1 else values[:3]


def _along_points(ds: xr.Dataset, names: Sequence[str]) -> xr.Dataset:
    """Return a table in which the coordinates `names` are along its points, also those that were single values."""
    single = {name: ds[name] for name in names if not ds[name].ndim}
    count = ds.sizes[POINT]
    return ds.assign_coords(
        {name: (POINT, np.full(count, value.item()), value.attrs) for name, value in single.items()}
    )


def _keys(ds: xr.Dataset, names: Sequence[str]) -> list[tuple[Any, ...]]:
    """Return the parameters `names` of each row of a table, as keys by which rows are matched."""
    columns = [[_rounded(value) for value in ds[name].values.tolist()] for name in sorted(names)]
    return list(zip(*columns, strict=True)) if columns else [()] * ds.sizes[POINT]


def _rounded(value: Any) -> Any:
    """A value of a parameter, a number as its first digits: they may be computed in several ways."""
    return f"{value:.{DIGITS}g}" if isinstance(value, float) else value


def _numbered(ds: xr.Dataset, numbers: list[int]) -> xr.Dataset:
    """Return a table whose rows have the labels `numbers`; of rows with the same label it has the first."""
    first = [numbers.index(number) for number in dict.fromkeys(numbers)]
    return (
        ds.isel({POINT: first}).assign_coords({POINT: [numbers[at] for at in first]}).transpose("dynamics", POINT, ...)
    )
