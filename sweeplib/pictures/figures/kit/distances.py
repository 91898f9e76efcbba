"""How far dynamics are from published values, where these stand: the ratio to them, and χ² by the errors of both.

A file of published values is a table with the columns x, y, y_error and coordinates of points; a row stands in a curve
of a figure if its coordinates are those of the curve. `x` and `y` are names of variables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any, NamedTuple

import numpy as np

from sweeplib.analysis.kit.labels import dynamics_label
from sweeplib.engine.base.arrays import Array, geometric
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.design.axis import POINT
from sweeplib.engine.files.published import Reference, Value
from sweeplib.pictures.figures.kit.facets import Facets, numbered_parts
from sweeplib.pictures.figures.kit.labels import dynamics_order, value_label
from sweeplib.pictures.figures.kit.quantities import bounds
from sweeplib.statistics.labelled import standard_errors

CLOSE = 1e-6
"""Relative difference below which a number of a file and a number of a dataset are equal."""


def standing_in(file: Reference, subset: xr.Dataset, x: str) -> list[dict[str, Value]]:
    """Return the rows whose coordinates other than `x` agree with those of some point of a part of a dataset."""
    names = [name for name in file.columns if name != x and name in subset.coords]
    agreements: dict[tuple[Value, ...], bool] = {}
    rows = []
    for row in file.rows():
        place = tuple(row[name] for name in names)
        if place not in agreements:
            agreements[place] = bool(agreement(subset, {name: row[name] for name in names}).any())
        if agreements[place]:
            rows.append(row)
    return rows


def agreement(subset: xr.Dataset, values: Mapping[str, Value]) -> xr.DataArray:
    """Return a mask: where the coordinates of a dataset have these values."""
    agreed = (_agreed(subset.coords[name], value) for name, value in values.items())
    return reduce(and_, agreed, xr.DataArray(True))


def _agreed(coordinate: xr.DataArray, value: Value) -> xr.DataArray:
    """Return a mask: where a coordinate has a value of a file."""
    return coordinate.copy(data=np.vectorize(lambda entry: is_same(value, entry), otypes=[bool])(coordinate.values))


def is_same(published: Value, value: Any) -> bool:
    """Return whether a value of a file is that of a dataset, up to rounding."""
    if isinstance(published, float) and isinstance(value, int | float | np.number | np.bool_):
        return bool(np.isclose(float(published), float(value), rtol=CLOSE, atol=0.0))
    return str(published) == str(value)


MATHEMATICS = r"$\chi^2/n$"
"""The symbol of `chi2` in a picture."""


@dataclass(frozen=True)
class Distance:
    """How far a dynamics is from the values of one file, over the `points` of `places` at which both are known.

    ratio : the geometric mean of the ratios of the dynamics to the file; `least` and `greatest` are the ends of these
        ratios. NaN where a number is not positive.
    chi2 : the mean of (difference)²/(σ² + s²) over the points with errors, σ of the file and s of the dynamics; an
        error that is not known counts as 0. NaN without any.
    file : the place of the file in the option `reference`.
    curve, label : where the same values are compared with several curves, which one it is: in words, for a picture.
    """

    file: int
    source: str
    dynamics: str
    points: int
    places: int
    ratio: float
    least: float
    greatest: float
    chi2: float
    curve: str = ""
    label: str = ""

    @property
    def text(self) -> str:
        """The distance in words."""
        at = f" at {self.curve}" if self.curve else ""
        return (
            f"{dynamics_label(self.dynamics)}{at} over {self.source}: {self._ratio} {self._count}{self._chi2('χ²/n')}"
        )

    @property
    def entry(self) -> str:
        """The two lines in a legend, below the source."""
        at = f" at {self.label}" if self.label else ""
        return f"{dynamics_label(self.dynamics)}{at} over it: {self._ratio}\n{self._count}{self._chi2(MATHEMATICS)}"

    @property
    def _ratio(self) -> str:
        ends = f"({_number(self.least)} to {_number(self.greatest)})"
        return f"ratio {_number(self.ratio)} {ends}" if np.isfinite(self.ratio) else "no ratio"

    @property
    def _count(self) -> str:
        return f"at {self.points} of {self.places} points"

    def _chi2(self, name: str) -> str:
        digits = ".3g" if self.chi2 < 1000.0 else ".0f"
        return f", {name} = {self.chi2:{digits}}" if np.isfinite(self.chi2) else ""


def _number(value: float) -> str:
    return f"{value:.3f}" if 0.1 <= value < 10.0 else f"{value:.3g}"


class Curve(NamedTuple):
    """Points (n,) in the order of x, with standard errors, NaN where unknown."""

    x: Array
    y: Array
    error: Array

    def at(self, x: Array) -> Curve:
        """Return the curve, interpolated at x (m,), NaN outside of its points.

        Between two neighbours they lie on a straight line, in the logarithm of y where both are positive, and in that
        of x where it is positive and the points are evenly spaced on that scale.
        """
        # the neighbours of each x; both are the same point where x is one, up to rounding
        right = np.clip(np.searchsorted(self.x, x), 1, max(len(self.x) - 1, 1))
        left, right = right - 1, np.minimum(right, len(self.x) - 1)
        left = np.where(np.isclose(self.x[right], x, rtol=CLOSE, atol=0.0), right, left)
        right = np.where(np.isclose(self.x[left], x, rtol=CLOSE, atol=0.0), left, right)
        with np.errstate(divide="ignore", invalid="ignore"):
            places = (self.x[left], self.x[right], x)
            low, high, middle = _logarithms(*places) if geometric(np.unique(self.x)) else places
            weight = np.where(left == right, 0.0, (middle - low) / (high - low))
            inside = (left == right) & np.isclose(self.x[left], x, rtol=CLOSE, atol=0.0)
            inside |= (left != right) & (weight >= 0.0) & (weight <= 1.0)
            y, other = self.y[left], self.y[right]
            logarithmic = (y > 0.0) & (other > 0.0)
            between = np.where(logarithmic, np.exp((1.0 - weight) * np.log(y) + weight * np.log(other)), np.nan)
            values = np.where(left == right, y, np.where(logarithmic, between, (1.0 - weight) * y + weight * other))
        error = (1.0 - weight) * self.error[left] + weight * self.error[right]
        return Curve(x, np.where(inside, values, np.nan), error)


def _logarithms(low: Array, high: Array, middle: Array) -> tuple[Array, Array, Array]:
    """Return the logarithms of three numbers where all of them are positive, the numbers themselves elsewhere."""
    positive = (low > 0.0) & (high > 0.0) & (middle > 0.0)
    low, high, middle = (
        np.where(positive, np.log(np.where(positive, place, 1.0)), place) for place in (low, high, middle)
    )
    return low, high, middle


class Pairs(NamedTuple):
    """Values of a dynamics (y) and of a file (other) at the same places, NaN where one is unknown, and their errors."""

    y: Array
    error: Array
    other: Array
    other_error: Array


def distances(
    files: Sequence[Reference], x: str, y: str, data: xr.Dataset, split: Facets, dash: str | None
) -> list[Distance]:
    """Return the distance of each dynamics from each file, over all curves of a figure.

    data : what the figure shows. split, dash : its panels and colours, and the axis of its dashes.
    Values of points are compared where they are with a curve through the points of the dynamics, those of a curve at
    the points of the dynamics. Bounds are no values. Where the same row of a file stands in several curves, these have
    a distance each.
    """
    result = []
    for place, file in enumerate(files):
        for name in dynamics_order(data["dynamics"].values):
            series = list(_compared(file, x, y, data.sel(dynamics=[name]), split, dash))
            rows = [row for standing, _, _ in series for row in standing]
            # no row stands in several curves: all curves have one distance
            if len(rows) == len(set(rows)):
                series = [(set(rows), xr.Dataset(), [pairs for _, _, group in series for pairs in group])]
            for _, subset, pairs in series:
                axes = [axis for axis in (split.panel, split.hue, dash) if axis is not None and axis in subset.coords]
                words = ", ".join(f"{axis} = {_plain(subset[axis].item())}" for axis in axes)
                label = ", ".join(value_label(subset[axis], data[axis]) for axis in axes)
                result += [_distance(place, file.source, name, pairs, words, label)] if pairs else []
    return [distance for distance in result if distance.points]


def _plain(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _distance(place: int, source: str, name: str, parts: Sequence[Pairs], curve: str, label: str) -> Distance:
    """Return the distance of the dynamics `name` from the file at a place and of a source, over all parts together.

    place, source : the number of the file in the option `reference`, and whose values it has.
    parts : the values of both at the same points.
    curve, label : which curve it is, in words and for a picture.
    """
    pairs = Pairs(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
    both = np.isfinite(pairs.y) & np.isfinite(pairs.other)
    y, error, other, other_error = (array[both] for array in pairs)
    ratios = y / other if both.any() and (y > 0.0).all() and (other > 0.0).all() else np.full(1, np.nan)
    variance = np.nan_to_num(error) ** 2 + np.nan_to_num(other_error) ** 2
    certain = variance > 0.0
    chi2 = float(np.mean((y - other)[certain] ** 2 / variance[certain])) if certain.any() else np.nan
    mean = float(np.exp(np.mean(np.log(ratios))))
    ends = float(ratios.min()), float(ratios.max())
    return Distance(place, source, name, len(y), both.size, mean, *ends, chi2, curve, label)


def _compared(
    file: Reference, x: str, y: str, data: xr.Dataset, split: Facets, dash: str | None
) -> Iterator[tuple[set[tuple[Value, ...]], xr.Dataset, list[Pairs]]]:
    """Yield, for each curve of one dynamics: the rows of a file that stand in it, its data, and what is compared."""
    for _, _, coloured in split.series(data):
        for _, subset in numbered_parts(coloured, dash):
            rows = [row for row in standing_in(file, subset, x) if np.isfinite([float(row[x]), float(row[y])]).all()]
            if rows:
                yield {tuple(row.values()) for row in rows}, subset, _pairs(file, rows, x, y, subset)


def _pairs(file: Reference, rows: Sequence[Mapping[str, Value]], x: str, y: str, subset: xr.Dataset) -> list[Pairs]:
    """Return the values of a curve and of the rows of a file that stand in it, at the same places.

    Rows whose other coordinates vary along the curve are compared at the points that have all of them.
    """
    measured = _measured(subset, x, y)
    published = Curve(*(np.array([row.get(name, np.nan) for row in rows], float) for name in (x, y, f"{y}_error")))
    others = [name for name in file.columns if name != x and name in subset.coords and subset[name].dims]
    if POINT in subset[x].dims or {dim for name in others for dim in subset[name].dims} & {*subset[x].dims}:
        return _at_equal_points(file, rows, x, subset, measured, published)
    order = np.argsort(published.x, kind="stable")
    if file.look == "curve":
        curve = Curve(*(array[order] for array in published)).at(measured.x)
        return [Pairs(measured.y, measured.error, curve.y, curve.error)]
    finite = np.isfinite(measured.y)
    if not finite.any():
        return [Pairs(np.full(len(rows), np.nan), np.full(len(rows), np.nan), published.y, published.error)]
    curve = Curve(*(array[finite] for array in measured)).at(published.x)
    return [Pairs(curve.y, curve.error, published.y, published.error)]


def _at_equal_points(
    file: Reference, rows: Sequence[Mapping[str, Value]], x: str, subset: xr.Dataset, measured: Curve, published: Curve
) -> list[Pairs]:
    """Return, for each row of a file, its value and those of the points with all of its parameters.

    measured, published : the curve and the rows. Between points of a table nothing is interpolated.
    """
    order = np.argsort(np.broadcast_to(subset[x].values, measured.x.shape).ravel(), kind="stable")
    pairs = []
    for place, row in enumerate(rows):
        same = agreement(subset, {name: row[name] for name in file.columns if name in subset.coords})
        chosen = np.broadcast_to(same.values.ravel(), measured.x.shape)[order]
        count = int(chosen.sum())
        others = (np.full(count, array[place]) for array in (published.y, published.error))
        pairs.append(Pairs(measured.y[chosen], measured.error[chosen], *others))
    return pairs


def _measured(subset: xr.Dataset, x: str, y: str) -> Curve:
    """Return the points of a dynamics in the order of x; a bound is no value."""
    values = subset[y].where(subset[y].copy(data=~bounds(subset, y)))
    errors = standard_errors(subset, y).reset_coords(drop=True)
    arrays = xr.broadcast(subset[x].reset_coords(drop=True), values.reset_coords(drop=True), errors)
    columns = [np.asarray(array.values, float).ravel() for array in arrays]
    order = np.argsort(columns[0], kind="stable")
    return Curve(*(column[order] for column in columns))
