"""Labelled datasets as tables of the page: a column per axis or variable, a row per point."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sweeplib.analysis.kit.labels import dynamics_label
from sweeplib.figures.kit.labels import axis_label
from sweeplib.late_modules import xarray as xr
from sweeplib.report.mathematics import html_label, plain_label, value_text

DIGITS = 9
MOST_CELLS = 150_000
"""The largest number of cells in one table of the page: about a megabyte."""


@dataclass(frozen=True)
class PageColumn:
    """A column: the `values` of the rows; with `levels`, the values are indices of levels, which `labels` name.

    `html` is the label with mathematics, None if it has none.
    """

    name: str
    label: str
    values: list[Any]
    levels: list[Any] | None = None
    labels: list[str] | None = None
    html: str | None = None

    def json(self) -> dict[str, Any]:
        """Return the object for the page's script."""
        coded = {} if self.levels is None else {"levels": self.levels, "labels": self.labels}
        markup = {} if self.html is None else {"html": self.html}
        return {"name": self.name, "label": self.label, "values": self.values} | coded | markup


@dataclass(frozen=True)
class PageTable:
    """Columns of equal length; without columns if there are too many `rows` for a page."""

    name: str
    title: str
    rows: int
    columns: list[PageColumn] = field(default_factory=list)

    def json(self) -> dict[str, Any]:
        """Return the object for the page's script."""
        return {"name": self.name, "rows": self.rows, "columns": [column.json() for column in self.columns]}


def analysis_tables(name: str, analysis: xr.Dataset) -> list[PageTable]:
    """Return the variables of an analysis as tables, one for each of the `_tabulated` sets of axes.

    A variable with fewer axes is in the first table that has all of its axes. Rows without any number are left out.
    """
    axes = {str(variable): {str(dim) for dim in array.dims} for variable, array in analysis.data_vars.items()}
    unique = _tabulated(list(axes.values()))
    tables, remaining = [], list(axes)
    for dims in sorted(unique, key=len):
        names = [variable for variable in remaining if axes[variable] <= dims]
        remaining = [variable for variable in remaining if variable not in names]
        order = [str(dim) for dim in analysis.dims if dim in dims]
        suffix = "_".join(["", *sorted(dim for dim in dims if not all(dim in other for other in unique))])
        tables.append(_table(name + suffix, analysis, order, names))
    return tables


def _tabulated(sets: list[set[str]]) -> list[set[str]]:
    """Return the maximal sets, and the sets contained in several of them, which would be repeated in each."""
    unique = [dims for place, dims in enumerate(sets) if dims not in sets[:place]]
    largest = [dims for dims in unique if not any(dims < other for other in unique)]
    return [dims for dims in unique if dims in largest or sum(dims < other for other in largest) > 1]


def _table(name: str, analysis: xr.Dataset, dims: list[str], names: list[str]) -> PageTable:
    """Return a table of some variables over some axes; rows without any finite number are left out."""
    title = str(analysis.attrs.get("title", name))
    cells = int(np.prod([analysis.sizes[dim] for dim in dims])) * (len(dims) + len(names))
    if cells > MOST_CELLS:
        return PageTable(name, title, cells // (len(dims) + len(names)))
    floats = [xr.ufuncs.isfinite(analysis[variable]) for variable in names if analysis[variable].dtype.kind == "f"]
    mask = _spread(sum(floats, xr.DataArray(False)) > 0, analysis, dims) if floats else None
    table_columns = columns(analysis, dims, names, mask)
    return PageTable(name, title, len(table_columns[0].values) if table_columns else 0, table_columns)


def columns(
    ds: xr.Dataset, dims: Sequence[str], names: Iterable[str], mask: np.ndarray | None = None
) -> list[PageColumn]:
    """Return the axes `dims` and the variables `names` as columns over the points in C order, for those in `kept`."""
    return [*(_axis(ds, dim, dims, mask) for dim in dims), *(_variable(ds, name, dims, mask) for name in names)]


def _axis(ds: xr.Dataset, dim: str, dims: Sequence[str], mask: np.ndarray | None) -> PageColumn:
    places = xr.DataArray(np.arange(ds.sizes[dim]), dims=dim)
    flat = _spread(places, ds, dims)
    codes = flat if mask is None else flat[mask]
    label = heading(ds[dim])
    levels = _levels(ds[dim], ds[dim].values.tolist())
    return PageColumn(dim, plain_label(label), codes.tolist(), *levels, html=_html(label))


def _variable(ds: xr.Dataset, name: str, dims: Sequence[str], mask: np.ndarray | None) -> PageColumn:
    """Return a variable as a column: numbers, or the indices of its levels if these are names."""
    array = ds[name]
    flat = _spread(array, ds, dims)
    flat = flat if mask is None else flat[mask]
    label = heading(array) if name in ds.coords else name_of(array)
    if flat.dtype.kind in "UOTb" or "flag_meanings" in array.attrs:
        levels, codes = np.unique(flat.astype("U") if flat.dtype.kind in "OT" else flat, return_inverse=True)
        return PageColumn(name, plain_label(label), codes.tolist(), *_levels(array, levels.tolist()), html=_html(label))
    numbers = flat.tolist() if flat.dtype.kind in "iu" else _rounded(flat)
    return PageColumn(name, plain_label(label), numbers, html=_html(label))


def _html(label: str) -> str | None:
    return str(html_label(label)) if "$" in label else None


def heading(array: xr.DataArray) -> str:
    """Return name, symbol and units of an array, with a capital letter and mathematics between dollars."""
    return capital(axis_label(array))


def name_of(array: xr.DataArray) -> str:
    """Return the name of an array, and its units if it has any, with a capital letter."""
    return capital(axis_label(array.assign_attrs(symbol="")))


def capital(text: str) -> str:
    """Return a label with a capital letter; names of parameters and Greek symbols stay as they are."""
    is_symbol = "_" in text.split(maxsplit=1)[0] or not text[:1].isascii()
    return text if is_symbol else text[:1].upper() + text[1:]


def _spread(array: xr.DataArray, ds: xr.Dataset, dims: Sequence[str]) -> np.ndarray:
    """Return the values at every point of `dims`, flat."""
    shape = [ds.sizes[dim] for dim in dims]
    axes = [dim for dim in dims if dim in array.dims]
    index = tuple(slice(None) if dim in axes else None for dim in dims)
    return np.broadcast_to(array.transpose(*axes).values[index], shape).ravel()


def _levels(array: xr.DataArray, levels: list[Any]) -> tuple[list[Any], list[str]]:
    """Return the levels of a column, as data and as labels."""
    attrs = array.attrs
    if "flag_meanings" in attrs:
        meanings = dict(zip(attrs["flag_values"], attrs["flag_meanings"].split(), strict=True))
        levels = [meanings[level] for level in levels]
        return levels, [level.replace("_", " ") for level in levels]
    name = str(array.name)
    return levels, [dynamics_label(level) if name == "dynamics" else value_text(level, name) for level in levels]


def _rounded(values: np.ndarray) -> list[float | None]:
    """Return the numbers with DIGITS digits; None for infinite numbers and NaN, which JSON does not have."""
    return [float(f"{number:.{DIGITS}g}") if np.isfinite(number) else None for number in values.tolist()]
