"""Labelled datasets as tables of the page, a column per axis or variable, a row per point; the table of optima.

The points of axes `dims` are flat, the last axis fastest; a `mask` of them says which have a row. A level is one of the
different values of an axis, or of a column of names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from sweeplib.analysis.kit.headlines import number_with_interval
from sweeplib.analysis.kit.labels import dynamics_label
from sweeplib.analysis.kit.rows import Rows, rows_of, spread
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.pictures.figures.kit.chart import SCALED
from sweeplib.pictures.figures.kit.facets import dynamics_where
from sweeplib.pictures.figures.kit.labels import MOST_DIGITS, axis_label, digits_apart, number
from sweeplib.pictures.report.mathematics import html_label, plain_label, value_text

DIGITS = 9
"""The digits of numbers in the page."""
ENDS, ENDLESS = ("_low", "_high"), {np.inf: "Infinity", -np.inf: "-Infinity"}
"""The ends of names of ends of intervals, and infinite ones as texts."""
LARGEST_WHOLE = 2**53
"""The largest whole number up to which the page's script has all of them."""
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

    @property
    def names(self) -> list[str]:
        """Return the levels as text; none without levels."""
        return [str(level) for level in self.levels or []]

    def json(self) -> dict[str, Any]:
        """Return the object for the page's script."""
        coded = {} if self.levels is None else {"levels": list(map(_for_script, self.levels)), "labels": self.labels}
        markup = {} if self.html is None else {"html": self.html}
        return {"name": self.name, "label": self.label, "values": self.values} | coded | markup


@dataclass(frozen=True)
class PageTable:
    """Columns of equal length; without columns if there are too many `rows` for a page.

    `constants` are values that all rows share, which only the CSV file has.
    """

    name: str
    title: str
    rows: int
    columns: list[PageColumn] = field(default_factory=list)
    constants: Mapping[str, Any] = field(default_factory=dict)

    def json(self) -> dict[str, Any]:
        """Return the object for the page's script."""
        constants = {name: _for_script(value) for name, value in self.constants.items()}
        columns = [column.json() for column in self.columns]
        return {"name": self.name, "rows": self.rows, "columns": columns, "constants": constants}


def _for_script(value: Any) -> Any:
    """Return a level or constant for the script: as text an infinite number or NaN, and a whole one that it rounds."""
    if isinstance(value, float):
        return value if np.isfinite(value) else str(value)
    return str(value) if isinstance(value, int) and abs(value) > LARGEST_WHOLE else value


def analysis_tables(name: str, analysis: xr.Dataset, dataset: xr.Dataset) -> list[PageTable]:
    """Return an analysis of a dataset as tables: the rows of `rows_of`, as in exported files."""
    return [_table(rows, str(analysis.attrs.get("title", name))) for rows in rows_of(name, analysis, dataset)]


def _table(rows: Rows, title: str) -> PageTable:
    """Return rows as a table, without columns if it has more than MOST_CELLS."""
    names = [*rows.parameters, *rows.variables, *rows.runs]
    if rows.mask.size * (len(rows.dims) + len(names)) > MOST_CELLS:
        return PageTable(rows.name, title, int(rows.mask.sum()))
    page_columns = columns(rows.data, rows.dims, names, rows.mask)
    return PageTable(rows.name, title, int(rows.mask.sum()), page_columns, rows.constants)


def columns(ds: xr.Dataset, dims: Sequence[str], names: Iterable[str], mask: np.ndarray) -> list[PageColumn]:
    """Return the axes `dims` and the variables `names` as columns over the points in C order, for those in `mask`."""
    return [*(_axis(ds, dim, dims, mask) for dim in dims), *(_variable(ds, name, dims, mask) for name in names)]


def _axis(ds: xr.Dataset, dim: str, dims: Sequence[str], mask: np.ndarray) -> PageColumn:
    """Return an axis as a column: its levels are all values of the axis, and a cell is the index of one of them."""
    places = xr.DataArray(np.arange(ds.sizes[dim]), dims=dim)
    codes = spread(places, ds, dims)[mask]
    label = heading(ds[dim])
    levels = _levels(ds[dim], ds[dim].values.tolist())
    return PageColumn(dim, plain_label(label), codes.tolist(), *levels, html=_html(label))


def _variable(ds: xr.Dataset, name: str, dims: Sequence[str], mask: np.ndarray) -> PageColumn:
    """Return a variable as a column: numbers, or the indices of its levels if these are names."""
    array = ds[name]
    flat = spread(array, ds, dims)[mask]
    in_units = name.startswith(SCALED)  # their symbol alone tells them from the plain variable
    label = heading(array) if name in ds.coords or in_units else name_of(array)
    if flat.dtype.kind in "UOTb" or "flag_meanings" in array.attrs:
        levels, codes = np.unique(flat.astype("U") if flat.dtype.kind in "OT" else flat, return_inverse=True)
        return PageColumn(name, plain_label(label), codes.tolist(), *_levels(array, levels.tolist()), html=_html(label))
    numbers: list[Any] = flat.tolist() if flat.dtype.kind in "iu" else rounded(flat)
    if name.endswith(ENDS):  # JSON has no infinite number; the script reads these words
        numbers = [ENDLESS.get(end, number) for end, number in zip(flat.tolist(), numbers, strict=True)]
    return PageColumn(name, plain_label(label), numbers, html=_html(label))


def runs_column(
    ds: xr.Dataset, words: xr.DataArray, numbers: xr.DataArray, dims: Sequence[str], mask: np.ndarray
) -> PageColumn:
    """Return the numbers of runs at the points as the levels of a column, whose labels are their outcomes in `words`.

    words, numbers : along `dims` or some of them. Each different outcome is a level.
    """
    texts, counts = (spread(array, ds, dims)[mask] for array in (words, numbers))
    labels, first, codes = np.unique(texts, return_index=True, return_inverse=True)
    return PageColumn("runs", "Runs", codes.tolist(), counts[first].tolist(), labels.tolist())


def _html(label: str) -> str | None:
    return str(html_label(label)) if "$" in label else None


def heading(array: xr.DataArray) -> str:
    """Return name, symbol and units of an array, with a capital letter and mathematics between dollars."""
    return capital(axis_label(array))


def name_of(array: xr.DataArray) -> str:
    """Return the name of an array, and its units if it has any, with a capital letter."""
    return capital(axis_label(array.assign_attrs(symbol="")))


def capital(text: str) -> str:
    """Return a label with a capital letter; names of parameters, single letters and Greek symbols stay as they are."""
    word = next(iter(text.split(maxsplit=1)), "")
    is_symbol = "_" in word or len(word) == 1 or not text[:1].isascii()
    return text if is_symbol else text[:1].upper() + text[1:]


def _levels(array: xr.DataArray, levels: list[Any]) -> tuple[list[Any], list[str]]:
    """Return the levels of a column of `array`, as data and as labels; flags (CF conventions) by their names."""
    attrs = array.attrs
    if "flag_meanings" in attrs:
        meanings = dict(zip(attrs["flag_values"], attrs["flag_meanings"].split(), strict=True))
        levels = [meanings[level] for level in levels]
        return levels, [level.replace("_", " ") for level in levels]
    name = str(array.name)
    if name == "dynamics":
        return levels, list(map(dynamics_label, levels))
    digits = digits_apart(array, MOST_DIGITS)
    return levels, [value_text(level, name, digits) for level in levels]


def rounded(values: np.ndarray, digits: int = DIGITS) -> list[float | None]:
    """Return the numbers rounded to `digits` digits; None for infinite numbers and NaN, which JSON does not have."""
    return [float(f"{number:.{digits}g}") if np.isfinite(number) else None for number in values.tolist()]


THEORY = {"gamma_opt_theory": "Annealed and quenched theory", "gamma_opt_noise_corrected": "Noise-corrected theory"}
"""The headings of the optima of theories, by their variables."""

SCANNED = ("gammas_used", "gammas_censored", "gammas_lost", "gammas_few")
"""The numbers of learning rates of a scan, used or left out."""


@dataclass(frozen=True)
class OptimaTable:
    """Headings and rows of cells; the first `axes` cells name the point; `fixed` lists what all points share.

    `unknown`: whether dynamics that were run have no optimum at some point.
    """

    headings: list[str]
    rows: list[list[str]]
    axes: int
    fixed: list[str]
    confidence: float
    at_edge: bool
    unknown: bool


def optima_table(optima: xr.Dataset) -> OptimaTable:
    """Return a table with a row per point and a column per dynamics ('value [low, high]', † at the scan's edge)."""
    axes = [str(dim) for dim in optima["gamma_opt"].dims if dim != "dynamics"]
    dims = [dim for dim in axes if optima.sizes[dim] > 1]
    fixed = [f"{axis_label(optima[dim])} = {number(optima[dim].values[0].item())}" for dim in axes if dim not in dims]
    optima = optima.isel({dim: 0 for dim in axes if dim not in dims})
    scanned = optima[list(SCANNED)].to_dataarray().sum("variable") > 0
    names = dynamics_where(scanned)
    unknown = bool((scanned & optima["gamma_opt"].isnull()).any())
    theory = [name for name in THEORY if optima[name].notnull().any()]
    headings = [heading(optima[dim]) for dim in dims]
    headings += [dynamics_label(name) for name in names] + [THEORY[name] for name in theory]
    rows = []
    for place in product(*(range(optima.sizes[dim]) for dim in dims)):
        point = optima.isel(dict(zip(dims, place, strict=True)))
        measured = [_measured(point.sel(dynamics=name)) for name in names]
        expected = [f"{x:.4g}" if np.isfinite(x := point[name].item()) else "–" for name in theory]
        rows.append([number(point[dim].item()) for dim in dims] + measured + expected)
    at_edge, confidence = bool(optima["at_edge"].any()), float(optima.attrs["confidence"])
    return OptimaTable(headings, rows, len(dims), fixed, confidence, at_edge, unknown)


def _measured(optimum: xr.Dataset) -> str:
    """Return the text of one optimum: its value with its interval, † at the edge of the scan, "–" if there is none."""
    if np.isnan(optimum["gamma_opt"]):
        return "–"
    return number_with_interval(optimum, "gamma_opt") + (" †" if optimum["at_edge"] else "")
