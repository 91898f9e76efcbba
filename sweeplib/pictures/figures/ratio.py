"""A quantity over its value at one point of an axis: curves that nearly coincide are distinguishable in their ratio."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from sweeplib.analysis.averages import numbered
from sweeplib.analysis.kit.overlaps import with_overlaps
from sweeplib.analysis.kit.passages import passages
from sweeplib.analysis.kit.variables import is_stochastic
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.design.axis import places_in
from sweeplib.engine.storage.dataset.outline import Outline, outline_of
from sweeplib.errors import InputError, errors_under
from sweeplib.pictures.figures.figure import FIGURES, Dash, Drawn, Horizontal, Hue, Panel, Where, chart_figure
from sweeplib.pictures.figures.kit.chart import ByName, Chart, Data, Layer, Level
from sweeplib.pictures.figures.kit.labels import value_label
from sweeplib.pictures.figures.kit.quantities import AVERAGES, bounds, with_requests
from sweeplib.pictures.figures.line import needed, quantity_chart
from sweeplib.statistics.labelled import labelled
from sweeplib.statistics.lost_runs import MOST_LOST, sample_of, values_of
from sweeplib.statistics.seed_means import FEWEST_SEEDS

CAPTION = (
    "A quantity against an axis of the sweep or the steps, with its uncertainty, and below its ratio to the value at "
    "one point, with the standard error, in which the correlation of runs with the same seed is included. A quantity "
    "with an interval and no error, such as a median, has a ratio with an interval, by both as if they were "
    "independent; an arrow at the edge: the interval has no end on that side. ∅ on the axis: no value, as more than 2 "
    "% (by default) of the runs have none or, in a ratio, as one of the two is only a bound, or, on a logarithmic "
    "axis, as the value is not above zero, or its error."
)

Compared = Annotated[
    Mapping[str, Any] | None,
    Field(
        description="the point with whose value the others are compared, such as `{dynamics: ode}` or `{gamma: 0.1}`; "
        "by default the first dynamics without noise."
    ),
]


def ratio(
    ds: Data,
    analyses: ByName,
    *,
    to: Compared = None,
    y: Drawn = None,
    x: Horizontal = None,
    where: Where = None,
    panel: Panel = None,
    hue: Hue = None,
    dash: Dash = None,
) -> Chart:
    """Declare `y` against `x`, and below it `y` over its value at `to`, such as `{dynamics: ode}`.

    By default `to` is the first dynamics without noise.
    """
    chart = quantity_chart(ds, analyses, y, x, {"where": where, "panel": panel, "hue": hue, "dash": dash})
    (analysis,), variable = chart.needs, chart.y
    along = outline_of(analyses[analysis]).only(variable)
    point = _point(along, to)
    if to is not None and chart.x in to:
        raise InputError("the axis that is drawn", key="to", value=chart.x, expected="a point of another axis")

    def data(whole: xr.Dataset, results: Mapping[str, xr.Dataset]) -> xr.Dataset:
        """Return the analysis with the ratio and its error."""
        return results[analysis].assign(ratios(whole, results[analysis], analysis, variable, point))

    def more(whole: xr.Dataset, results: Mapping[str, xr.Dataset], dataset: xr.Dataset) -> xr.Dataset:
        """Return the data with the ratio where it is drawn: not at the point itself, which is 1.

        ratio_requested : where both were run. alone : panels in which there is only what the others are compared with.
        """
        run = with_requests(results[analysis], variable, whole)
        compared = run["requested"] & run["requested"].isel(point, drop=True) & _elsewhere(dataset, point)
        ratio = dataset["ratio"].where(_elsewhere(dataset, point)).assign_attrs(dataset["ratio"].attrs)
        alone = (~compared).where(run[variable].notnull() | compared)
        return dataset.assign({variable: run[variable], "ratio": ratio, "ratio_requested": compared, "alone": alone})

    compared_with = Layer("note", "alone", "compared with this")
    below = Level((Layer("sparse", "ratio"), Layer("across", 1.0), compared_with), height=1.0 / 1.5)
    return replace(chart, y="ratio", data=data, more=more, levels=(*chart.levels, below), theory=None)


def _point(outline: Outline, to: Mapping[str, Any] | None) -> dict[str, int]:
    """Return the index by axis of the point `to`, by default the first dynamics without noise.

    InputError for an unknown axis or value.
    """
    if to is None:
        quiet = [name for name in outline.axes["dynamics"] if not is_stochastic(name)]
        if not quiet or len(outline.axes["dynamics"]) < 2:
            expected = "the point with which the others are compared, such as {gamma: 0.1}"
            raise InputError("nothing to compare with", key="to", expected=expected)
        to = {"dynamics": quiet[0]}
    if not to:
        raise InputError("no point", key="to", value={}, expected="an axis and its value")
    selection = {}
    for axis, value in to.items():
        if axis not in outline.axes:
            choices = [name for name, size in outline.sizes.items() if size > 1]
            raise InputError("no such axis", key=f"to.{axis}", value=axis, choices=choices)
        with errors_under("to"):
            selection[axis] = places_in(outline.axes[axis], axis, [value])[0][0]
    return selection


def ratios(
    ds: xr.Dataset, result: xr.Dataset, analysis: str, variable: str, point: Mapping[str, int]
) -> dict[str, xr.DataArray]:
    """Return the ratio of a quantity to its value at a `point`, with its ratio_error, or its ratio_low and ratio_high.

    The variance of the ratio r = a/b is r² (var a/a² + var b/b² − 2 cov(a, b)/(ab)). A quantity with an interval in
    place of an error has a ratio with an interval. The ratio is NaN where one of the two is only a bound.
    """
    measured = result[variable]
    above = measured.where(measured.copy(data=~bounds(result, variable)))
    below = above.isel(point, drop=True)
    value = above / below.where(below != 0.0)
    reference = ", ".join(value_label(result[axis].isel({axis: place}), result[axis]) for axis, place in point.items())
    variables = {"ratio": labelled(value, f"ratio to {reference}")}
    if (relative := _relative_variance(ds, result, analysis, variable, point)) is not None:
        error = abs(value) * relative**0.5
        variables["ratio_error"] = labelled(error, f"standard error of the ratio to {reference}")
    elif f"{variable}_low" in result:
        for end, values in zip(("low", "high"), _ends(value, result, variable, point), strict=True):
            variables[f"ratio_{end}"] = labelled(values, f"{end} end of the interval of the ratio to {reference}")
    return {name: array.transpose(*above.dims) for name, array in variables.items()}


def _relative_variance(
    ds: xr.Dataset, result: xr.Dataset, analysis: str, variable: str, point: Mapping[str, int]
) -> xr.DataArray | None:
    """Return the variance of log a/b of a variable a and its value b at the `point`; None for one without an error.

    Of means it is that of the values of the runs, those of one seed being correlated; else as if independent.
    """
    if f"{variable}_error" not in result:
        return None
    if (runs := _runs(ds, result, analysis, variable)) is None:
        squared = (result[f"{variable}_error"] / result[variable]) ** 2
        return (squared + squared.isel(point, drop=True)).where(_elsewhere(result, point), 0.0)
    excess = runs / runs.mean("seed") - 1.0
    other = excess.isel(point, drop=True)
    counts, products = (number.count("seed") for number in (excess, excess * other))
    variances = (excess.var("seed", ddof=1) / counts).where(counts >= FEWEST_SEEDS)
    # both may have runs of seeds that the other has not
    covariance = (excess * other).sum("seed") / (products - 1.0).clip(1.0)
    total = variances + variances.isel(point, drop=True)
    return (total - 2.0 * covariance * products / (counts * counts.isel(point, drop=True))).clip(0.0)


def _ends(
    ratio: xr.DataArray, result: xr.Dataset, variable: str, point: Mapping[str, int]
) -> tuple[xr.DataArray, xr.DataArray]:
    """Return the ends of the intervals of ratios a/b, by those of a and b at the `point`, as if these were independent.

    Distances of an end from the value are taken in logarithms: that of a to one side and of b to the other are
    added in squares: of two intervals of one level comes an interval of that level. An interval of a or b that contains
    zero leaves that of the ratio without a bound on one side: its end is zero or infinite.
    """
    with np.errstate(divide="ignore"):
        ends = [abs(np.log(_quotient(result[f"{variable}_{end}"], result[variable]))) for end in ("low", "high")]
    # of a negative number the upper end is the one nearer to zero
    near, far = (xr.where(result[variable] > 0.0, *pair) for pair in (ends, ends[::-1]))
    down, up = (
        (this**2 + that.isel(point, drop=True) ** 2).where(_elsewhere(result, point), 0.0) ** 0.5
        for this, that in ((near, far), (far, near))
    )
    smaller, larger = ratio * np.exp(-down), ratio * np.exp(up)
    return np.minimum(smaller, larger), np.maximum(smaller, larger)


def _quotient(end: xr.DataArray, value: xr.DataArray) -> xr.DataArray:
    """Return the end of an interval over the value in it, zero where they have different signs."""
    return (end / value.where(value != 0.0)).clip(0.0)


def _elsewhere(result: xr.Dataset, point: Mapping[str, int]) -> xr.DataArray:
    """Return a mask along the axes of a point (indices by axis): false there, where the ratio to it is surely 1."""
    here = xr.DataArray(True)
    for axis, place in point.items():
        here = here & (xr.DataArray(np.arange(result.sizes[axis]), dims=axis) == place)
    return ~here


def _runs(ds: xr.Dataset, result: xr.Dataset, analysis: str, variable: str) -> xr.DataArray | None:
    """Return the values of the runs, along `seed`, of which the quantity is the mean; None if it is no such mean.

    Also None for an observable over units of a dataset that was not opened from files: its overlaps are not known.
    """
    if analysis == AVERAGES:
        ds = ds if variable in ds else with_overlaps(ds)
        if variable not in ds:
            return None
        return sample_of(numbered(values_of(ds, variable)), ds, result.attrs.get("max_lost", MOST_LOST))
    if analysis == "exit_times" and variable in ("exit_steps_mean", "exit_time_mean"):
        return passages(ds, "steps", result.attrs.get("max_lost", MOST_LOST)).restricted
    return None


FIGURES.add(chart_figure("ratio", ratio, CAPTION, needed))
