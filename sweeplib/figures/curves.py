"""A quantity as curves: a panel, colour and dash per value of an axis, marks per dynamics, uncertainties as bars."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib.analysis.recorded import is_stochastic
from sweeplib.design.axis import POINT
from sweeplib.errors import InputError
from sweeplib.figures.facets import Facets, arranged, numbered_parts
from sweeplib.figures.interactive import Interactive
from sweeplib.figures.labels import MINUS, number, value_label, wrapped_label
from sweeplib.figures.legend import Entry, dynamics_entries, hue_entries, legend_below, unknown_entry
from sweeplib.figures.panels import Panels, panel_grid
from sweeplib.figures.quantities import (
    at_chosen_time,
    at_last_time,
    bounds,
    horizontal_axis,
    interval,
    quantity,
    shown_dynamics,
)
from sweeplib.figures.scales import above_error, logarithmic, logarithmic_above_zero, logarithmic_time, wide
from sweeplib.figures.style import BOUND, DIM, INK, dynamics_look, look, mark_unknown, plain_ticks

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

    from sweeplib.figures.references import References
    from sweeplib.storage.outline import Outline

DASHES: tuple[Any, ...] = ("solid", (0, (4, 1.5)), (0, (1, 1.2)))
GUIDE: Any = (0, (6, 2, 1, 2))
THEORY: Any = (0, (2, 1))
MOST_MARKS = 12
"""The number of points of a curve above which only every second, third, ... of them has a marker and an error bar."""
MOST_TICKS = 5


@dataclass(frozen=True)
class Curves:
    """What a figure of curves draws.

    analysis, variable : the quantity on the vertical axis.
    x, along : the coordinate on the horizontal axis, and the axis of the data along which a curve runs.
    split : the axes of panels and colours.
    dash : the axis of the dashes.
    """

    analysis: str
    variable: str
    x: str
    along: str
    split: Facets
    dash: str | None

    def dashes(self, data: xr.Dataset) -> list[dict[str, int]]:
        """Return the selection (for isel) of each dash."""
        return [{}] if self.dash is None else [{self.dash: index} for index in range(data.sizes[self.dash])]

    def parts(self, panel: xr.Dataset) -> Iterator[tuple[int, int, xr.Dataset]]:
        """Yield the number of the colour and of the dash of each curve in a panel, and its data."""
        for index, one in numbered_parts(panel, self.split.hues(panel)):
            for dash, single in numbered_parts(one, self.dashes(one)):
                yield index, dash, single


def chosen_curves(
    ds: xr.Dataset | Outline,
    analyses: Mapping[str, xr.Dataset | Outline],
    *,
    y: str | None,
    x: str | None,
    where: Mapping[str, Any] | None,
    panel: str | None,
    hue: str | None,
    dash: str | None,
) -> Curves:
    """Return the curves of the quantity `y` against `x`.

    Other axes that are not selected or drawn are fixed at their middle value, the time at the last one. InputError for
    an unknown quantity, and for axes that cannot be drawn.
    """
    wanted = quantity(y)
    outline, variable = wanted.outline(ds, analyses)
    if "dynamics" not in outline.sizes:
        raise InputError("not a quantity of single dynamics", key="y", value=y, expected="another one, or a map")
    choice = {"where": where, "panel": panel, "hue": hue, "dash": dash}
    coordinate, along = horizontal_axis(outline, x, choice)
    where = at_last_time(outline, where, along, panel, hue, dash)
    drawn = {"dynamics", along}
    free = [dim for dim, size in outline.sizes.items() if size > 1 and dim not in drawn]
    if dash is not None and dash not in free:
        raise InputError("no such axis to draw", key="dash", value=dash, choices=free)
    split = arranged(outline, drawn | ({dash} if dash else set()), where, panel, hue)
    places = split.at.get(dash, range(outline.sizes[dash])) if dash else ()
    if not isinstance(places, int) and len(places) > len(DASHES):
        expected = f"at most {len(DASHES)} values; give `where` some of {dash}"
        raise InputError(f"too many values of {dash}", key="dash", value=len(places), expected=expected)
    return Curves(wanted.analysis, variable, coordinate, along, split, dash)


def curve_panels(data: xr.Dataset, curves: Curves, stack: tuple[float, ...] = (1.0,)) -> Panels:
    """Return the panels of curves, with titles, a note of the fixed values and the label of the horizontal axis."""
    if data[curves.x].dtype.kind not in "iuf":
        raise InputError("not an axis of numbers", key="x", value=curves.x, expected="another axis")
    split = curves.split
    parts = split.panels(data)
    panels = panel_grid(len(parts), width=2.3, alone=3.8, height=2.7 * sum(stack) / stack[0], stack=stack)
    for place, part in numbered_parts(data, parts):
        if split.panel:
            panels.title(place, _title(part, data, split.panel))
    panels.xlabel(wrapped_label(data[curves.x], 24))
    panels.note(_note(data, split))
    _scale(panels.stacks[0][0], data[curves.x], curves.along == "time")
    return panels


def _scale(axes: Axes, x: xr.DataArray, over_time: bool) -> None:
    """Make the horizontal axis logarithmic where its values ask for it; below the first one linear down to a zero."""
    if logarithmic_time(x) if over_time else logarithmic(x.values):
        axes.set_xscale("log")
    elif not over_time and logarithmic_above_zero(x.values):
        first = float(x.values[x.values > 0.0].min())
        axes.set_xscale("symlog", linthresh=first, linscale=0.5)
        axes.set_xlim(-0.15 * first, 1.25 * float(x.values.max()))


def draw_curves(
    panels: Panels,
    data: xr.Dataset,
    curves: Curves,
    *,
    level: int = 0,
    shown: list[str] | None = None,
    guide: float | None = None,
    published: References | None = None,
) -> None:
    """Draw the curves of the variable of `curves` at one level of the panels, with theory and published values.

    Marks follow the order of the dynamics in `shown`, by default those of the variable.
    """
    shown = shown_dynamics(data, curves.variable) if shown is None else shown
    values = data[curves.variable]
    known = values.values[np.isfinite(values.values)]
    if wide(values.values) or (guide is not None and known.size and bool((known > 0.0).all())):
        panels.stacks[0][level].set_yscale("log")
    for place, part in numbered_parts(data, curves.split.panels(data)):
        axes = panels.stacks[place][level]
        for index, dash, single in curves.parts(part):
            for name in shown:
                _curve(axes, single.sel(dynamics=name), curves, (name, shown, index, dash))
            _theory(axes, single.sel(dynamics=shown[0]) if shown else single, curves, index)
            if published is not None:
                published.draw(axes, single)
        if guide is not None:
            _guide(axes, part[curves.variable], part[curves.x], guide)
    panels.ylabel(wrapped_label(values, 26), level)


def finish_curves(panels: Panels, data: xr.Dataset, curves: Curves, *more: list[Entry]) -> None:
    """Give the axes their ticks, and draw the legend below the panels."""
    for axes in panels.stacks[0]:
        _ticks(axes, np.unique(data[curves.x].values))
    legend_below(panels.drawing, [*_entries(data, curves), *more])


def _note(data: xr.Dataset, split: Facets) -> str:
    """Return the values along the axes that are not drawn; a time as its number of steps, if that is one number."""
    if "time" not in split.titled or not (steps := _steps(data)):
        return split.title(data)
    others = replace(split, titled=tuple(dim for dim in split.titled if dim != "time")).title(data)
    return f"{steps} {others}".strip()


def _title(part: xr.Dataset, data: xr.Dataset, panel: str) -> str:
    return (panel == "time" and _steps(part)) or value_label(part[panel], data[panel])


def _steps(data: xr.Dataset) -> str:
    """Return 'after 3 steps' for data at one time, "" if its number of steps varies or is not known."""
    if "steps" not in data.coords:
        return ""
    steps = np.unique(data["steps"].values)
    return f"after {number(steps[0])} step{'s' * bool(steps[0] != 1)}" if len(steps) == 1 else ""


def _curve(axes: Axes, one: xr.Dataset, curves: Curves, place: tuple[str, list[str], int, int]) -> None:
    """Draw one curve: points with their bars, open triangles for bounds, ∅ on the axis for unknown points."""
    name, shown, index, dash = place
    one = one.sortby(curves.x)
    values, where = one[curves.variable].values, one[curves.x].values
    drawable = np.isfinite(where) & ((where > 0) | (axes.get_xscale() != "log"))
    unknown = drawable & ~np.isfinite(values) & one["requested"].values
    style = dynamics_look(name, shown, look(index))
    if unknown.any() and is_stochastic(name):
        mark_unknown(axes, where[unknown], style["color"])
    known = drawable & np.isfinite(values)
    if not known.any():
        return
    bound = bounds(one, curves.variable)
    style |= {"linestyle": DASHES[dash], "linewidth": 1.0, "gid": f"{style['gid']} dash-{dash}"}
    if dash and sum(map(is_stochastic, shown)) == 1:
        style |= {"markerfacecolor": "white"}  # crosses of dynamics without noise are visible on it
    if fit := one[curves.variable].attrs.get("fit"):
        _line(axes, one, curves.x, fit, {"color": style["color"], "linestyle": DASHES[dash], "gid": "fit"})
        style |= {"linestyle": "none"}
    if not is_stochastic(name) and is_stochastic(shown[0]):
        style |= {"linestyle": "none", "gid": f"hue-{index} dynamics-{name}", "zorder": 5}
    marks = bars_at = max(1, -(-int(known.sum()) // MOST_MARKS))
    if POINT in one[curves.x].dims:  # neighbours along x may be rows of other problems
        style, marks = style | {"linestyle": "none", "markersize": 4.0 if bars_at == 1 else 1.5}, 1
    sure = known & ~bound
    if sure.any():
        bars = interval(one, curves.variable)
        lengths = None if bars is None else np.nan_to_num(np.array(bars)[:, sure])
        axes.errorbar(where[sure], values[sure], lengths, elinewidth=0.8, markevery=marks, errorevery=bars_at, **style)
    if (known & bound).any():
        gid = {"color": style["color"], "gid": f"{style['gid']} bound"}
        axes.plot(where[known & bound], values[known & bound], **BOUND | gid)


def _theory(axes: Axes, one: xr.Dataset, curves: Curves, index: int) -> None:
    if name := one[curves.variable].attrs.get("theory"):
        _line(axes, one, curves.x, name, {"color": look(index)["color"], "linestyle": THEORY, "gid": "theory"})


def _line(axes: Axes, one: xr.Dataset, x: str, name: str, style: Mapping[str, Any]) -> None:
    """Draw the variable `name` of a curve as a line below its points."""
    found = one[name].broadcast_like(one[x])
    if bool(found.notnull().any()):
        order = np.argsort(one[x].values)
        axes.plot(one[x].values[order], found.values[order], linewidth=1.0, zorder=1, **style)


def _guide(axes: Axes, mean: xr.DataArray, x: xr.DataArray, slope: float) -> None:
    """Draw a line of the slope through the lower left of the points of a panel, on logarithmic axes."""
    where = np.unique(x.values[x.values > 0])
    lowest = mean.where(mean > 0.0).min([dim for dim in mean.dims if dim not in x.dims])
    if axes.get_xscale() != "log" or axes.get_yscale() != "log" or len(where) < 2 or not bool(lowest.notnull().any()):
        return
    lowest = lowest.broadcast_like(x).transpose(*x.dims)
    points = zip(x.values.ravel().tolist(), lowest.values.ravel().tolist(), strict=True)
    start, height = min((at, low) for at, low in points if at > 0 and np.isfinite(low))
    axes.plot(where, 0.7 * height * (where / start) ** slope, color=DIM, linestyle=GUIDE, linewidth=0.9, gid="guide")


def _ticks(axes: Axes, where: np.ndarray) -> None:
    """Give logarithmic axes plain ticks: at the values of a horizontal axis that has few of them, of few digits."""
    from matplotlib.ticker import FixedLocator

    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() == "log":
            plain_ticks(axis, (1.0, 2.0, 5.0))
    few = len(where) <= MOST_TICKS and all(float(f"{value:.3g}") == value for value in where.tolist())
    if axes.get_xscale() == "log" and few and where[-1] <= 1e3 * where[0]:
        axes.xaxis.set_major_locator(FixedLocator(where.tolist()))


def _entries(data: xr.Dataset, curves: Curves) -> list[list[Entry]]:
    split, shown, measured = curves.split, shown_dynamics(data, curves.variable), data[curves.variable]
    look_of_dash = {"color": INK, "linewidth": 1.0}
    dashes: list[Entry] = [
        (look_of_dash | {"linestyle": DASHES[n], "gid": f"dash-{n}"}, value_label(one[curves.dash], data[curves.dash]))
        for n, one in numbered_parts(data, curves.dashes(data))
        if curves.dash
    ]
    kinds = dynamics_entries(shown) if len(shown) > 1 else []
    marks = [unknown_entry("no value")]
    if name := measured.attrs.get("bound"):
        marks.append((BOUND | {"color": INK, "gid": "bound"}, data[name].attrs["reason"]))
    for kind, linestyle in (("theory", THEORY), ("fit", "solid")):
        if name := measured.attrs.get(kind):
            line = {"color": INK, "linestyle": linestyle, "linewidth": 1.0, "gid": kind}
            marks.append((line, data[name].attrs["long_name"]))
    return [hue_entries(data, split), dashes, kinds, marks]


def guide_entry(slope: float) -> Entry:
    """Return the legend's entry of a line of a slope."""
    text = f"slope {slope:g}".replace("-", MINUS)
    return {"color": DIM, "linestyle": GUIDE, "linewidth": 0.9, "gid": "guide"}, text


def interactive_curves(
    curves: Curves,
    analyses: Mapping[str, xr.Dataset],
    variable: str,
    data: Callable[[xr.Dataset, xr.Dataset], xr.Dataset] | None = None,
) -> Interactive:
    """Return the interactive plot of a variable of the analysis, or of `data` from the dataset and the analysis."""
    attrs = analyses[curves.analysis][curves.variable].attrs

    def shown(ds: xr.Dataset, made: Mapping[str, xr.Dataset]) -> xr.Dataset:
        found = made[curves.analysis]
        found = found if data is None else data(ds, found)
        found = found.assign({variable: above_error(found[variable], ds)})
        return at_chosen_time(found, curves.split)

    return Interactive(
        x=curves.x,
        y=variable,
        needs=(curves.analysis,),
        data=shown,
        hover=(attrs["bound"],) if "bound" in attrs else (),
        theory=attrs.get("theory", attrs.get("fit")) if variable == curves.variable else None,
        kind="curves" if curves.along == "time" else "points",
        hue=curves.split.hue,
    )
