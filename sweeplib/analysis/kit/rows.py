"""Analyses as rows: one for each point that was run, with axes, parameters, variables and runs as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sweeplib.analysis.kit.problem_fields import constants, has_direction, with_constants
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.statistics.labelled import labelled
from sweeplib.statistics.lost_runs import status_codes

RUNS = "runs"
"""The name of the column of the number of runs."""
ENDS = ("_low", "_high", "_error")
"""What names of variables end in that describe another one, in the order of the columns."""


@dataclass(frozen=True)
class Rows:
    """The points of some variables of an analysis, along the axes `dims`, of which runs were made.

    data : the part of the analysis with these axes, with the numbers of runs as variables and constants as coordinates.
    variables, runs : the names of columns, in their order.
    mask : which points have runs, the last axis fastest.
    """

    name: str
    data: xr.Dataset
    dims: tuple[str, ...]
    variables: tuple[str, ...]
    runs: tuple[str, ...]
    mask: NDArray[np.bool_]

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of columns of coordinates along the axes."""
        return parameters_along(self.data, self.dims)

    @property
    def constants(self) -> dict[str, Any]:
        """The values that all rows share, by name."""
        return {name: value for name, value in constant_values(self.data).items() if name not in self.data.data_vars}

    def column(self, name: str) -> NDArray[Any]:
        """Return the values of a column, a flag by its name."""
        values, attrs = spread(self.data[name], self.data, self.dims)[self.mask], self.data[name].attrs
        return _words(values, attrs) if "flag_meanings" in attrs else values


def rows_of(name: str, analysis: xr.Dataset, dataset: xr.Dataset) -> list[Rows]:
    """Return the variables of an analysis as rows, in a table for each of the `_tabulated` sets of axes.

    A variable with fewer axes is in the first table that has all of its axes, if the others are axes of the sweep or
    the threshold: repeated for each time, teacher or task, it would count several times. The numbers of runs are those
    of the dataset: `runs`, unless the analysis counts them itself, and `runs_STATUS` for each status other than ok that
    some have. Points without a run have no row.
    """
    axes = {str(variable): {str(dim) for dim in array.dims} for variable, array in analysis.data_vars.items()}
    outer = {*map(str, dataset["status"].dims), "threshold"}
    inner = dict.fromkeys(frozenset(dims - outer) for dims in axes.values())
    sets = [dims for kind in inner for dims in _tabulated([dims for dims in axes.values() if dims - outer == kind])]
    tables, remaining = [], list(axes)
    for dims in sorted(sets, key=len):
        names = [
            variable for variable in remaining if axes[variable] <= dims and axes[variable] - outer == dims - outer
        ]
        remaining = [variable for variable in remaining if variable not in names]
        suffix = "_".join(["", *sorted(dim for dim in dims if not all(dim in other for other in sets))])
        order = [dim for dim in map(str, analysis.dims) if dim in dims]
        tables.append(_rows(name + suffix, analysis, names, order, dataset))
    return tables


def _rows(name: str, analysis: xr.Dataset, names: list[str], dims: list[str], dataset: xr.Dataset) -> Rows:
    """Return the variables `names` of an analysis along the axes `dims` as rows; `name` is that of the table."""
    subset = analysis.drop_dims([dim for dim in analysis.dims if dim not in dims])
    numbers = numbers_of_runs(dataset, subset)
    is_row = (numbers[RUNS] > 0) & has_direction(subset, dataset).reset_coords(drop=True)
    counts = {entry: subset.get(entry, number) for entry, number in numbers.items() if entry not in names}
    data = with_constants(subset[names]).assign(counts)
    return Rows(name, data, tuple(dims), _in_order(names), tuple(counts), spread(is_row, subset, dims))


def numbers_of_runs(dataset: xr.Dataset, data: xr.Dataset) -> dict[str, xr.DataArray]:
    """Return the numbers of runs at each point of `data`: `runs`, and `runs_STATUS` of statuses other than ok."""
    counts = runs_by_status(dataset, data)
    total = labelled(sum(counts.values(), xr.DataArray(0)), "runs made")
    others = {entry: count for entry, count in counts.items() if entry != "ok" and bool((count > 0).any())}
    return {RUNS: total} | {
        f"{RUNS}_{entry}": labelled(count, f"runs made that ended {entry}") for entry, count in others.items()
    }


def runs_by_status(dataset: xr.Dataset, data: xr.Dataset) -> dict[str, xr.DataArray]:
    """Return, by the names of statuses, how many runs of `dataset` each point of `data`, an analysis of it, has.

    Counts are summed over axes that `data` no longer has; runs that were not requested are not counted.
    """
    status = dataset["status"]
    axes = [dim for dim in status.dims if dim in data.dims and dim != "seed"]
    over = [dim for dim in status.dims if dim not in axes]
    counts = {}
    for meaning, code in status_codes(dataset).items():
        if meaning != "missing":
            number = (status == code).sum(over).reset_coords(drop=True)
            # `data` may have other labels along an axis than the dataset, or in another order
            counts[meaning] = number.reindex({dim: data[dim] for dim in axes}, fill_value=0).transpose(*axes)
    return counts


def parameters_along(data: xr.Dataset, dims: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the coordinates that have values along some of these axes, but for the axes themselves."""
    names = map(str, data.coords)
    return tuple(
        name for name in names if name not in data.dims and data[name].ndim and set(data[name].dims) <= {*dims}
    )


def constant_values(ds: xr.Dataset) -> dict[str, Any]:
    """Return the values that all points of a dataset share, by name; a flag is true or false."""
    whole = with_constants(ds)
    return {name: whole[name].item() for name in constants(ds) if not whole[name].ndim}


def spread(array: xr.DataArray, ds: xr.Dataset, dims: Sequence[str]) -> NDArray[Any]:
    """Return the values of an array at every point of the axes `dims` of `ds`, flat, the last axis fastest."""
    shape = [ds.sizes[dim] for dim in dims]
    axes = [dim for dim in dims if dim in array.dims]
    index = tuple(slice(None) if dim in axes else None for dim in dims)
    return np.broadcast_to(array.transpose(*axes).values[index], shape).ravel()


def _tabulated(sets: list[set[str]]) -> list[set[str]]:
    """Return the sets of axes that get a table: the maximal ones, and sets contained in several of these.

    Variables of the latter would be repeated in each table.
    """
    unique = [dims for place, dims in enumerate(sets) if dims not in sets[:place]]
    largest = [dims for dims in unique if not any(dims < other for other in unique)]
    return [dims for dims in unique if dims in largest or sum(dims < other for other in largest) > 1]


def _in_order(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of variables, each with the ends of its interval and its error behind it."""

    def place(name: str) -> tuple[int, ...]:
        """Return the place of a name: behind that of the variable that it describes."""
        for rank, end in enumerate(ENDS):
            if name.endswith(end) and (stem := name.removesuffix(end)) in names:
                return (*place(stem), rank)
        return (names.index(name),)

    return tuple(sorted(names, key=place))


def _words(codes: NDArray[Any], attrs: dict[str, Any]) -> NDArray[Any]:
    """Return the names of `codes` (n,) by the flags in the attributes of their variable (CF conventions)."""
    meanings = dict(zip(np.asarray(attrs["flag_values"]).tolist(), attrs["flag_meanings"].split(), strict=True))
    return np.array([meanings[code] for code in codes.tolist()], dtype=object)
