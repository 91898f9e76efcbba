"""Several sweeps beside each other in tables: settings that differ, headline numbers, cases, provenance."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from sweeplib.analysis import ANALYSES
from sweeplib.analysis.kit.headlines import interval_text, rounded_interval
from sweeplib.analysis.kit.labels import dynamics_label
from sweeplib.analysis.kit.problem_fields import with_constants
from sweeplib.analysis.kit.variables import is_stochastic
from sweeplib.analysis.write import analysis_failure
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.design.design import Design
from sweeplib.engine.files.strict_yaml import flow, parsed
from sweeplib.engine.storage.dataset.folder import open_dataset
from sweeplib.pictures.figures.kit.labels import symbol
from sweeplib.pictures.report.mathematics import value_text

MOST_POINTS = 60
LONGEST = 90
ABSENT = "–"
DIGITS = 12


@dataclass(frozen=True)
class ComparisonRow:
    """A row of a table: its heading, a cell for each sweep, and for each sweep but the first what is `said` of it.

    The heading has its mathematics between dollars.
    """

    heading: str
    cells: list[str]
    ratios: list[str]
    apart: bool = False


@dataclass(frozen=True)
class Headlines:
    """The headline variable of an analysis at the points of several sweeps; `left` points are not shown."""

    name: str
    rows: list[ComparisonRow]
    hidden: int
    at_edge: bool


def differences(sources: Sequence[str]) -> tuple[list[ComparisonRow], int]:
    """Return a row for each key whose value differs between complete configs, and the number of other keys.

    The name of a sweep is no such key.
    """
    configs = [dict(_flat(parsed(source))) for source in sources]
    keys = [key for key in dict.fromkeys(key for config in configs for key in config) if key != "name"]
    rows = []
    for key in keys:
        values = [config.get(key, ABSENT) for config in configs]
        if any(value != values[0] for value in values):
            rows.append(ComparisonRow(key, [v if len(v) <= LONGEST else f"{v[: LONGEST - 1]}…" for v in values], []))
    return rows, len(keys) - len(rows)


def _flat(content: Any, place: str = "") -> Iterable[tuple[str, str]]:
    """Yield dotted keys and their values as text."""
    if isinstance(content, Mapping) and content:
        for key, value in content.items():
            yield from _flat(value, f"{place}.{key}" if place else str(key))
    else:
        yield place, flow(content)


def headline_tables(sweeps: Sequence[tuple[Design, Path]]) -> list[Headlines]:
    """Return the headlines of the analyses that at least one sweep has, one table for each."""
    names = dict.fromkeys(name for sweep, _ in sweeps for name in sweep.analyses if ANALYSES[name].headline)
    tables = [_headlines(name, [_analysis(name, *pair) for pair in sweeps]) for name in names]
    return [table for table in tables if table.rows]


def _analysis(name: str, sweep: Design, directory: Path) -> xr.Dataset | None:
    if name not in sweep.analyses or analysis_failure(directory, name) is not None:
        return None
    return with_constants(open_dataset(directory / "analysis" / f"{name}.zarr"))


def _headlines(name: str, analyses: Sequence[xr.Dataset | None]) -> Headlines:
    """Return the headline of an analysis at all points of several sweeps, a cell for each sweep."""
    variable = ANALYSES[name].headline
    assert variable is not None
    present = [ds for ds in analyses if ds is not None]
    if not present:
        return Headlines(name, [], 0, at_edge=False)
    dims = dict.fromkeys(
        str(dim) for ds in present for dim in ds[variable].dims if ds.sizes[dim] > 1 or dim == "dynamics"
    )
    points = [{} if ds is None else _points(ds, variable, list(dims)) for ds in analyses]
    places = list(dict.fromkeys(place for points_of in points for place in points_of))
    if "dynamics" in dims:
        at = list(dims).index("dynamics")
        places.sort(key=lambda place: not is_stochastic(str(place[at])))
    labels = {dim: next(symbol(ds[dim]) for ds in present if dim in ds.coords) for dim in dims}
    rows = [_row(labels, place, [points_of.get(place) for points_of in points]) for place in places[:MOST_POINTS]]
    edges = any("†" in cell for row in rows for cell in row.cells)
    title = str(present[0][variable].attrs["long_name"])
    return Headlines(title[:1].upper() + title[1:], rows, max(0, len(places) - MOST_POINTS), edges)


@dataclass(frozen=True)
class Value:
    """A number with the ends of its interval; `at_edge` if the number may lie beyond the scan."""

    best: float
    low: float
    high: float
    at_edge: bool


def _points(analysis: xr.Dataset, variable: str, dims: list[str]) -> dict[tuple[Any, ...], Value]:
    """Return the known values of a variable of an analysis by their values along `dims`."""
    axes = [str(dim) for dim in analysis[variable].dims]
    values = {}
    for place in product(*(range(analysis.sizes[dim]) for dim in axes)):
        point = analysis.isel(dict(zip(axes, place, strict=True)))
        best, low, high = (point[f"{variable}{end}"].item() for end in ("", "_low", "_high"))
        if np.isfinite(best):
            key = tuple(_key(point[dim].item()) if dim in point.coords else None for dim in dims)
            values[key] = Value(best, low, high, bool(point["at_edge"]) if "at_edge" in point else False)
    return values


def _key(value: Any) -> Any:
    """Return a coordinate such that numbers that differ by rounding are equal."""
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def _row(labels: Mapping[str, str], place: tuple[Any, ...], values: Sequence[Value | None]) -> ComparisonRow:
    """Return the row of a point, with the ratio of each other value to the first."""
    parts = [
        dynamics_label(value) if dim == "dynamics" else f"{labels[dim]} = {value_text(value, dim)}"
        for dim, value in zip(labels, place, strict=True)
        if value is not None
    ]
    first, *others = values
    ratios = [_ratio(first, other) for other in others]
    apart = any(first and other and _apart(first, other) for other in others)
    return ComparisonRow(", ".join(parts), [_written(value) for value in values], ratios, apart)


def _apart(first: Value, other: Value) -> bool:
    if first.at_edge or other.at_edge:
        return False
    ratio = ratio_of(first, other)
    if ratio is None or not math.isfinite(ratio.low):
        return other.low > first.high or other.high < first.low
    return ratio.low > 1.0 or ratio.high < 1.0


def ratio_of(first: Value, other: Value) -> Value | None:
    """Return the ratio of another value to the first one, with its interval; None if one value is not positive.

    The interval is that of independent values: the distances of the logarithms from the ends of their intervals are
    added in quadrature, each end by itself (Zou and Donner, Stat. Med. 27, 1693, 2008). Its ends are NaN if an interval
    extends to zero or below.
    """
    if min(first.best, other.best) <= 0.0:
        return None
    best = other.best / first.best
    if not min(first.low, other.low) > 0.0:
        return Value(best, math.nan, math.nan, at_edge=False)
    below = math.hypot(math.log(other.best / other.low), math.log(first.high / first.best))
    above = math.hypot(math.log(other.high / other.best), math.log(first.best / first.low))
    return Value(best, best * math.exp(-below), best * math.exp(above), at_edge=False)


def _written(value: Value | None) -> str:
    if value is None:
        return ABSENT
    best, low, high = rounded_interval(value.best, value.low, value.high)
    return (best if low == high != "nan" else f"{best} {interval_text(low, high)}") + " †" * value.at_edge


def _ratio(first: Value | None, other: Value | None) -> str:
    """Return the text of the ratio of another value to the first one; none of bounds, or if one is not positive."""
    if first is None or other is None or first.at_edge or other.at_edge:
        return ABSENT
    ratio = ratio_of(first, other)
    if ratio is None:
        return ABSENT
    return _written(ratio) if ratio.high > ratio.low else f"{ratio.best:.3g}"


def beside(pairs: Sequence[Sequence[tuple[str, str]]]) -> list[ComparisonRow]:
    """Return a row for each name of several lists of (name, text); `apart` where the texts differ."""
    lists = [dict(mapping) for mapping in pairs]
    names = dict.fromkeys(name for mapping in lists for name in mapping)
    rows = [(name, [mapping.get(name, ABSENT) for mapping in lists]) for name in names]
    return [ComparisonRow(name, texts, [], any(text != texts[0] for text in texts)) for name, texts in rows]
