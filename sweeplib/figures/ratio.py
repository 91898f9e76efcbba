"""A quantity over its value at one point of an axis: curves that nearly coincide are distinguishable in their ratio."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from sweeplib.analysis.averages import numbered
from sweeplib.analysis.labels import labelled
from sweeplib.analysis.lost_runs import MOST_LOST, diverged, made, recorded, unless_lost, without_value
from sweeplib.analysis.overlaps import with_overlaps
from sweeplib.analysis.passages import passages
from sweeplib.analysis.recorded import is_stochastic
from sweeplib.analysis.seed_means import FEWEST_SEEDS
from sweeplib.design.axis import places_in
from sweeplib.errors import InputError
from sweeplib.figures.curves import Curves, chosen_curves, curve_panels, draw_curves, finish_curves, interactive_curves
from sweeplib.figures.figure import FIGURES, Dash, Drawn, Figure, Horizontal, Hue, Panel, Where
from sweeplib.figures.labels import value_label
from sweeplib.figures.quantities import AVERAGES, bounds, interval, quantity, shown_dynamics, with_requests
from sweeplib.figures.style import FAINT
from sweeplib.storage.outline import outline_of

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure as Drawing

    from sweeplib.figures.interactive import Interactive
    from sweeplib.storage.outline import Outline

CAPTION = (
    "A quantity against an axis of the sweep or the steps, with its uncertainty, and below its ratio to the value "
    "at one point, with the standard error, in which the correlation of runs with the same seed is included; for "
    "quantities that are not means over the seeds, the two uncertainties are added as if independent. ∅ on the "
    "axis: no value, as more than 2 % of the runs have none or, in a ratio, as one of the two is only a bound, "
    "or, on a logarithmic axis, as the value is not above its error."
)
STACK = (1.5, 1.0)

Compared = Annotated[
    Mapping[str, Any] | None,
    Field(
        description="the point with whose value the others are compared, such as `{dynamics: ode}` or `{gamma: 0.1}`; "
        "by default the first dynamics without noise."
    ),
]


def ratio(
    ds: xr.Dataset,
    analyses: Mapping[str, xr.Dataset],
    *,
    to: Compared = None,
    y: Drawn = None,
    x: Horizontal = None,
    where: Where = None,
    panel: Panel = None,
    hue: Hue = None,
    dash: Dash = None,
) -> Drawing:
    """Return the figure of `y` against `x`, and below it of `y` over its value at `to`, such as `{dynamics: ode}`.

    By default `to` is the first dynamics without noise.
    """
    curves = _arranged(ds, analyses, to=to, y=y, x=x, where=where, panel=panel, hue=hue, dash=dash)
    found = with_requests(analyses[curves.analysis], curves.variable, ds)
    point = _point(outline_of(found), to)
    data = curves.split.selected(found)
    compared = found["requested"] & found["requested"].isel(point, drop=True)
    below = curves.split.selected(found.assign(ratios(ds, found, curves, point) | {"requested": compared}))
    panels = curve_panels(data, curves, STACK)
    draw_curves(panels, data, curves)
    draw_curves(panels, below, replace(curves, variable="ratio"), level=1, shown=shown_dynamics(data, curves.variable))
    for _, lower in panels.stacks:
        lower.axhline(1.0, color=FAINT, linewidth=0.8, zorder=0)
    finish_curves(panels, data, curves)
    return panels.drawing


def _arranged(
    ds: xr.Dataset | Outline,
    analyses: Mapping[str, xr.Dataset | Outline],
    *,
    to: Mapping[str, Any] | None,
    **choice: Any,
) -> Curves:
    curves = chosen_curves(ds, analyses, **choice)
    outline = outline_of(analyses[curves.analysis]).only(curves.variable)
    _point(outline, to)
    if to is not None and curves.along in to:
        raise InputError("the axis that is drawn", key="to", value=curves.along, expected="a point of another axis")
    return curves


def _point(outline: Outline, to: Mapping[str, Any] | None) -> dict[str, int]:
    """Return the selection (for isel) of the point `to`; InputError for an unknown axis or value."""
    if to is None:
        quiet = [name for name in outline.axes["dynamics"] if not is_stochastic(name)]
        if not quiet or len(outline.axes["dynamics"]) < 2:
            expected = "the point with which the others are compared, such as {gamma: 0.1}"
            raise InputError("nothing to compare with", key="to", expected=expected)
        to = {"dynamics": quiet[0]}
    if not to:
        raise InputError("no point", key="to", value={}, expected="an axis and its value")
    found = {}
    for axis, value in to.items():
        if axis not in outline.axes:
            choices = [name for name, size in outline.sizes.items() if size > 1]
            raise InputError("no such axis", key=f"to.{axis}", value=axis, choices=choices)
        try:
            found[axis] = places_in(outline.axes[axis], axis, [value])[0][0]
        except InputError as error:
            raise error.within(prefix="to") from None
    return found


def ratios(ds: xr.Dataset, found: xr.Dataset, curves: Curves, point: Mapping[str, int]) -> dict[str, xr.DataArray]:
    """Return the variables ratio and ratio_error: a quantity over its value at a `point`.

    The variance of the ratio r = a/b is r² (var a/a² + var b/b² − 2 cov(a, b)/(ab)). It is NaN where one of the two is
    only a bound.
    """
    measured = found[curves.variable]
    above = measured.where(measured.copy(data=~bounds(found, curves.variable)))
    below = above.isel(point, drop=True)
    value = above / below.where(below != 0.0)
    relative = _relative_variance(ds, found, curves, point)
    error = value.where(False) if relative is None else abs(value) * relative**0.5
    reference = ", ".join(value_label(found[axis].isel({axis: place}), found[axis]) for axis, place in point.items())
    made_ratio = {
        "ratio": labelled(value, f"ratio to {reference}"),
        "ratio_error": labelled(error, f"standard error of the ratio to {reference}"),
    }
    return {name: part.transpose(*above.dims) for name, part in made_ratio.items()}


def _relative_variance(
    ds: xr.Dataset, found: xr.Dataset, curves: Curves, point: Mapping[str, int]
) -> xr.DataArray | None:
    """Return the variance of log a/b; None without any uncertainty."""
    runs = _runs(ds, found, curves)
    if runs is None:
        ends = [f"{curves.variable}_{end}" for end in ("low", "high")] if f"{curves.variable}_error" in found else []
        bars = interval(found.drop_vars(ends, errors="ignore"), curves.variable)
        if bars is None:
            return None
        squared = (found[curves.variable].copy(data=0.5 * (bars[0] + bars[1])) / found[curves.variable]) ** 2
        other = squared + squared.isel(point, drop=True)
        return other.where(_elsewhere(found, point), 0.0)
    relative = runs / runs.mean("seed")
    difference = relative - relative.isel(point, drop=True)
    both = difference.count("seed")
    spread: xr.DataArray = difference.var("seed", ddof=1) / both.where(both >= FEWEST_SEEDS)
    return spread


def _elsewhere(found: xr.Dataset, point: Mapping[str, int]) -> xr.DataArray:
    import xarray as xr

    here = xr.DataArray(True)
    for axis, place in point.items():
        here = here & (xr.DataArray(np.arange(found.sizes[axis]), dims=axis) == place)
    return ~here


def _runs(ds: xr.Dataset, found: xr.Dataset, curves: Curves) -> xr.DataArray | None:
    """Return the values of the runs, along `seed`, of which the quantity is the mean; None if it is no such mean.

    Also None for an observable over units of a dataset that was not opened from files: its overlaps are not known.
    """
    if curves.analysis == AVERAGES:
        ds = ds if curves.variable in ds else with_overlaps(ds)
        if curves.variable not in ds:
            return None
        values, run = numbered(recorded(ds, curves.variable)), made(ds)
        lost = found.attrs.get("max_lost", MOST_LOST)
        return unless_lost(values, without_value(values, run), run, lost, diverged(ds))
    if curves.analysis == "exit_times" and curves.variable in ("exit_steps_mean", "exit_time_mean"):
        return passages(ds, "steps", found.attrs.get("max_lost", MOST_LOST)).restricted()
    return None


def _interactive(
    ds: xr.Dataset, analyses: Mapping[str, xr.Dataset], *, to: Mapping[str, Any] | None, **options: Any
) -> Interactive:
    curves = _arranged(ds, analyses, to=to, **options)

    def with_ratios(ds: xr.Dataset, found: xr.Dataset) -> xr.Dataset:
        return found.assign(ratios(ds, found, curves, _point(outline_of(found), to)))

    return interactive_curves(curves, analyses, "ratio", with_ratios)


def _needs(*, y: str | None, **_: Any) -> tuple[str, ...]:
    return (quantity(y).analysis,)


FIGURES.register("ratio", Figure("ratio", ratio, CAPTION, needs=_needs, arrange=_arranged, interactive=_interactive))
