"""Datasets of several sweeps as one: the union of their cases, whose numbers must agree where sweeps share a case.

Labels are the values along an axis: gamma=0.1, not places.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np

from sweeplib.analysis.kit.problem_fields import constants, with_constants
from sweeplib.analysis.kit.sweep_axis import (
    COMMON,
    along_sweeps,
    are_one_grid,
    as_rows,
    at_common_labels,
    refuse_unknown,
)
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.design.axis import POINT
from sweeplib.engine.storage.records.provenance import are_one
from sweeplib.errors import InputError
from sweeplib.networks.problem import PARAMETERS
from sweeplib.networks.simulation.labels import OF_RUNS
from sweeplib.statistics.lost_runs import STOPPED, with_status

RESULT = 3
"""The rank of a case that ended by itself, whose numbers are the same in all datasets (`_rank`)."""


def combine(*datasets: Any, sweep: Sequence[str] | None = None) -> xr.Dataset:
    """Return one dataset with the cases of all datasets of sweeps, in memory.

    sweep : names of the datasets, which then stay apart, along an axis `sweep` that figures and analyses take as any
        other (`sweep_axis`): sweeps are compared. By default they are united, as follows.

    A field that is fixed in each dataset, but at different values, becomes an axis. Tables, and grids with other axes
    or zips than each other, become one table, an axis `point`, whose rows are matched by their parameters. A case that
    several have must have the same bits in all of them, or agree to 10⁻⁶ unless all are of one type of processor and
    one numba; one that failed, was killed or was stopped by a limit is taken from a dataset in which it ended. A case
    that none has is `missing` and NaN. Overlap matrices, which are stored in groups, are left out. InputError, naming
    the variable and the labels, for numbers that differ, and for sweeps that recorded other observables, times,
    thresholds or units.
    """
    if not datasets:
        raise InputError("nothing to combine", expected="datasets of sweeps")
    for ds in datasets:
        if not isinstance(ds, xr.Dataset):
            expected = "datasets, as in `combine(sweeplib.open(A), sweeplib.open(B))`"
            raise InputError("not the dataset of a sweep", value=type(ds).__name__, expected=expected)
        if "status" not in ds.variables:
            raise InputError("not the dataset of a sweep", value="without status", expected="that of `sweeplib.open`")
    for key in OF_RUNS:
        _require_same(key, [ds.attrs.get(key) for ds in datasets])
    _require_same_units(datasets)
    if sweep is not None:
        return along_sweeps(datasets, sweep)
    first, *others = _with_same_axes(datasets)
    exact = are_one(name for ds in datasets for name in ds.attrs.get("processors", "").split(", "))
    whole = reduce(partial(_merged, exact=exact), others, first)
    names = [name for name in constants(whole) if name in whole.coords and not whole[name].ndim]
    whole = whole.assign_attrs({name: value for name, value in constants(datasets[0]).items() if name in names})
    return whole.drop_vars(names)


def _with_same_axes(datasets: Sequence[xr.Dataset]) -> list[xr.Dataset]:
    """Return the datasets with their fields as coordinates, and with every axis of any of them."""
    loaded = [with_constants(ds).load() for ds in datasets]
    loaded = loaded if are_one_grid(loaded) else as_rows(loaded)
    attrs = {key: value for key, value in loaded[0].attrs.items() if all(ds.attrs.get(key) == value for ds in loaded)}
    names = dict.fromkeys(str(name) for ds in loaded for name in ds.coords)
    axes = [name for name in names if any(name in ds.dims for ds in loaded) or _differs(name, loaded)]
    for name in COMMON:
        _require_same(name, [ds[name].values.tolist() if name in ds.dims else None for ds in loaded])
    whole = [ds.expand_dims([name for name in axes if name not in ds.dims]) for ds in loaded]
    return [ds.drop_attrs(deep=False).assign_attrs(attrs) for ds in whole]


def _differs(name: str, datasets: Sequence[xr.Dataset]) -> bool:
    """Return whether a field is fixed in each dataset, at several values; InputError if one does not have it."""
    refuse_unknown(name, datasets)
    return all(not ds[name].ndim for ds in datasets) and len({ds[name].item() for ds in datasets}) > 1


def _require_same(key: str, values: Sequence[Any]) -> None:
    """Raise InputError, with the key, unless the values of all sweeps are the same."""
    if any(value != values[0] for value in values[1:]):
        raise InputError("sweeps that recorded differently", key=key, value=values, expected="the same in all of them")


def _require_same_units(datasets: Sequence[xr.Dataset]) -> None:
    """Raise InputError for times that are counted differently, and variables of one name in other units."""
    _require_same("times", [_count(ds["time"].attrs) for ds in datasets if "time" in ds.coords])
    for name in dict.fromkeys(str(name) for ds in datasets for name in ds.data_vars if name != "status"):
        for key in ("units", "flag_meanings"):
            values = [ds[name].attrs[key] for ds in datasets if name in ds and key in ds[name].attrs]
            _require_same(f"{name}, {key}", values)


def _count(attrs: Mapping[str, Any]) -> str:
    """Return in words what recorded times count, by the attributes of their axis."""
    return str(attrs.get("clock", "ODE time")) + (f", scale {attrs['scale']}" if "scale" in attrs else "")


def _merged(first: xr.Dataset, other: xr.Dataset, *, exact: bool) -> xr.Dataset:
    """Return the union of two datasets with the same axes, each case from the one that has more of it (`_rank`).

    exact : whether cases with a result in both must have the same bits. InputError if they differ.
    """
    first, other = at_common_labels([first, other])
    best, second, ok = _rank(first), _rank(other), with_status(first, "ok")
    merged: dict[str, xr.DataArray] = {}
    for name in dict.fromkeys(map(str, (*first.data_vars, *other.data_vars))):
        of_first, of_other = (_values(ds, name, first, other) for ds in (first, other))
        _refuse_differences(name, of_first, of_other, (best == RESULT) & (second == RESULT), ok, exact=exact)
        chosen = of_first.where(best >= second, of_other).transpose(*of_first.dims).astype(of_first.dtype)
        merged[name] = chosen.assign_attrs(of_first.attrs)
    coords = {name: _coordinate(str(name), first, other) for name in first.coords if name not in first.indexes}
    return first.assign(merged).assign_coords(coords)


def _rank(ds: xr.Dataset) -> xr.DataArray:
    """Return 0 for missing cases, 1 for those that failed or were killed, 2 for those stopped by a limit, else 3."""
    lost, stopped = with_status(ds, "failed", "killed"), with_status(ds, *STOPPED)
    rank: xr.DataArray = RESULT - stopped - 2 * lost - 3 * with_status(ds, "missing").astype(int)
    return rank


def _values(ds: xr.Dataset, name: str, first: xr.Dataset, other: xr.Dataset) -> xr.DataArray:
    """Return the variable `name` of a dataset; NaN for an error or a diagnostic that one sweep has not recorded.

    first, other : both datasets, of which one has it.
    """
    from sweeplib.networks.observables import OBSERVABLES

    if name in ds:
        return ds[name]
    if name in OBSERVABLES or name.startswith(("exit_", "end_")):
        expected = f"datasets without it: `ds.drop_vars({name!r})`"
        raise InputError("not recorded in every sweep", key=name, expected=expected)
    like = first[name] if name in first else other[name]
    return like.where(False)


def _refuse_differences(
    name: str, first: xr.DataArray, second: xr.DataArray, mask: xr.DataArray, regular: Any, *, exact: bool
) -> None:
    """Raise InputError, with the labels of the first such case, if a case of the `mask` has other numbers in `second`.

    name : of the variable. regular : where runs did not diverge, as numbers of those may be arbitrarily large.
    exact : whether all bits must be the same, as on one type of processor.
    """
    if first.dtype.kind != "f":
        same = first == second
    else:
        # what cancels is known to a part of the largest number of its case, or of other seeds
        largest = abs(first).where(np.isfinite(first)).max([dim for dim in first.dims if dim not in mask.dims])
        largest = largest.fillna(0.0)
        if "seed" in largest.dims:
            largest = xr.ufuncs.maximum(largest, largest.where(regular, 0.0).max("seed"))
        tolerance = (0.0, 0.0) if exact else (1e-6, 1e-12 * largest)
        same = xr.apply_ufunc(partial(np.isclose, equal_nan=True), first, second, *tolerance)
    wrong = (mask & ~same).transpose(*first.dims)
    if not bool(wrong.any()):
        return
    place = dict(zip(wrong.dims, np.argwhere(wrong.values)[0], strict=True))
    labels: dict[str, Any] = {}
    for dim, at in place.items():
        names = [dim] if dim != POINT else [name for name in PARAMETERS if name in first.coords and first[name].ndim]
        labels |= {str(name): first[name].values[at].item() for name in names if name in first.coords}
    values = [array.isel(place).item() for array in (first, second)]
    at = ", ".join(f"{dim}={value}" for dim, value in labels.items())
    raise InputError(f"other numbers of one case at {at}", key=name, value=values, expected="the same in all sweeps")


def _coordinate(name: str, ds: xr.Dataset, other: xr.Dataset) -> xr.DataArray:
    """Return a coordinate that is no axis, of two datasets, over the axes along which it varies in one of them."""
    first, second = xr.broadcast(ds[name], other[name])
    masks = [array != "" if array.dtype.kind in "UO" else array.notnull() for array in (first, second)]
    _refuse_differences(name, first, second, masks[0] & masks[1], False, exact=False)
    coordinate = first.where(masks[0], second)
    return coordinate.astype(str if coordinate.dtype.kind in "UO" else coordinate.dtype).assign_attrs(ds[name].attrs)
