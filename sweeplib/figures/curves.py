"""Means over the seeds as curves: a colour per value of one axis, a dash per value of another, marks per dynamics."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib.analysis.recorded import is_stochastic
from sweeplib.errors import InputError
from sweeplib.figures.facets import Facets, arranged, numbered_parts
from sweeplib.figures.labels import MINUS, dynamics_order, number, value_label, wrapped_label
from sweeplib.figures.legend import Entry, bound_entry, dynamics_entries, legend_below
from sweeplib.figures.panels import panel_grid
from sweeplib.figures.risk_curves import geometric
from sweeplib.figures.style import BOUND, DIM, INK, dynamics_look, look, plain_ticks
from sweeplib.storage.outline import outline_of

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from sweeplib.storage.outline import Outline

DASHES: tuple[Any, ...] = ("solid", (0, (4, 1.5)), (0, (1, 1.2)))
GUIDE: Any = (0, (6, 2, 1, 2))
PREFERRED = "subspace_cosine"
DECADES = 20.0
"""The range above which a positive quantity has a logarithmic axis."""
MOST_MARKS = 12
"""The number of points of a curve above which only every second, third, ... of them has a marker and an error bar."""

MOST_TICKS = 5


@dataclass(frozen=True)
class Curves:
    """What a figure of curves draws: the observable, the axes of panels and colours, and that of the dashes.

    bound : name of a variable that is true where the observable is only a lower bound, if there is one.
    """

    observable: str
    split: Facets
    line: str | None
    bound: str | None = None

    def bounds(self, ds: xr.Dataset) -> np.ndarray:
        """Whether each of the data is only a lower bound, in the shape of the observable."""
        measured = ds[self.observable]
        if self.bound is None:
            return np.zeros(measured.shape, dtype=bool)
        return np.asarray(ds[self.bound].broadcast_like(measured).transpose(*measured.dims).values, dtype=bool)

    def lines(self, ds: xr.Dataset) -> list[dict[str, int]]:
        """Return the selection (for isel) of each dash."""
        return [{}] if self.line is None else [{self.line: index} for index in range(ds.sizes[self.line])]


def chosen_curves(
    found: xr.Dataset | Outline, along: set[str], *, observable: str | None, line: str | None, **choice: Any
) -> Curves:
    """Return the curves of the analysis `averages` against something that varies along the axes `along`.

    InputError for an observable that is not averaged, and for axes that cannot be drawn.
    """
    outline = outline_of(found)
    known = outline.attrs["averaged"].split()
    if observable is not None and observable not in known:
        raise InputError("no such average", key="observable", value=observable, choices=known)
    name = observable or (PREFERRED if PREFERRED in known else known[0])
    data = outline.only(name)
    drawn = {"dynamics", *along}
    free = [dim for dim, size in data.sizes.items() if size > 1 and dim not in drawn]
    if line is not None and line not in free:
        raise InputError("no such axis to draw", key="line", value=line, choices=free)
    split = arranged(data, drawn | ({line} if line else set()), **choice)
    places = split.at.get(line, range(data.sizes[line])) if line else ()
    if not isinstance(places, int) and len(places) > len(DASHES):
        expected = f"at most {len(DASHES)} values; give `where` some of {line}"
        raise InputError(f"too many values of {line}", key="line", value=len(places), expected=expected)
    return Curves(name, split, line)


def drawn_curves(found: xr.Dataset, curves: Curves, x: str, *, guide: float | None = None) -> Drawing:
    """Return the figure of an average against the coordinate `x`, with lines of the slope `guide` if it is given."""
    split = curves.split
    data = split.selected(found)
    parts = split.panels(data)
    panels = panel_grid(len(parts), width=2.3, alone=3.8, height=2.7)
    shown = measured_dynamics(data, curves.observable)
    axes = panels.stacks[0][0]
    _scales(axes, data, curves, x)
    for place, part in numbered_parts(data, parts):
        for index, one in numbered_parts(part, split.hues(part)):
            for dash, single in numbered_parts(one, curves.lines(one)):
                for name in shown:
                    _curve(panels.stacks[place][0], single.sel(dynamics=name), curves, x, (name, shown, index, dash))
        if guide is not None:
            _guide(panels.stacks[place][0], part[curves.observable], part[x], guide)
        if split.panel:
            panels.title(place, _title(part, split.panel))
    panels.xlabel(wrapped_label(data[x], 24), once=False)
    panels.ylabel(wrapped_label(data[curves.observable], 26))
    panels.note(_note(data, split))
    _ticks(axes, np.unique(data[x].values))
    legend_below(panels.drawing, _entries(data, curves, shown, guide))
    return panels.drawing


def measured_dynamics(data: xr.Dataset, name: str) -> list[str]:
    """Return the dynamics with a value of the variable `name`, stochastic ones first."""
    known = data["dynamics"].values
    return dynamics_order(kind for kind in known if bool(data[name].sel(dynamics=kind).notnull().any()))


def _note(data: xr.Dataset, split: Facets) -> str:
    """Return the values along the axes that are not drawn; a time as its number of steps, if that is one number."""
    if "time" not in split.titled or not (steps := _steps(data)):
        return split.title(data)
    others = replace(split, titled=tuple(dim for dim in split.titled if dim != "time")).title(data)
    return f"{steps} {others}".strip()


def _title(part: xr.Dataset, panel: str) -> str:
    return (panel == "time" and _steps(part)) or value_label(part[panel])


def _steps(data: xr.Dataset) -> str:
    """Return 'after 3 steps' for data at one time, "" if its number of steps varies."""
    steps = np.unique(data["steps"].values)
    return f"after {number(steps[0])} step{'s' * bool(steps[0] != 1)}" if len(steps) == 1 else ""


def _curve(axes: Axes, one: xr.Dataset, curves: Curves, x: str, place: tuple[str, list[str], int, int]) -> None:
    name, shown, index, dash = place
    mean, error = one[curves.observable], one[f"{curves.observable}_error"]
    known = mean.notnull().values & (np.isfinite(one[x].values))
    if axes.get_xscale() == "log":
        known &= one[x].values > 0
    if not known.any():
        return
    where, height, bar = one[x].values[known], mean.values[known], np.nan_to_num(error.values[known])
    bounds = curves.bounds(one)[known]
    every = max(1, -(-len(where) // MOST_MARKS))
    style = dynamics_look(name, shown, look(index))
    style |= {"linestyle": DASHES[dash], "linewidth": 1.0, "gid": f"{style['gid']} line-{dash}"}
    if dash and sum(map(is_stochastic, shown)) == 1:
        style |= {"markerfacecolor": "white"}  # crosses of dynamics without noise are visible on it
    if not is_stochastic(name) and is_stochastic(shown[0]):
        style |= {"linestyle": "none", "gid": f"hue-{index} dynamics-{name}", "zorder": 5}
    if not bounds.all():
        axes.errorbar(
            where[~bounds], height[~bounds], bar[~bounds], elinewidth=0.8, markevery=every, errorevery=every, **style
        )
    if bounds.any():
        axes.plot(where[bounds], height[bounds], **BOUND | {"color": style["color"], "gid": f"{style['gid']} bound"})


def _guide(axes: Axes, mean: xr.DataArray, x: xr.DataArray, slope: float) -> None:
    """Draw a line of the slope through the lower left of the points of a panel, on logarithmic axes."""
    where = np.unique(x.values[x.values > 0])
    lowest = mean.where(mean > 0.0).min([dim for dim in mean.dims if dim not in x.dims])
    if axes.get_xscale() != "log" or axes.get_yscale() != "log" or len(where) < 2 or not bool(lowest.notnull().any()):
        return
    first = lowest.dropna(x.dims[0])
    start, height = float(x.where(first.notnull()).dropna(x.dims[0])[0]), float(first[0])
    axes.plot(where, 0.7 * height * (where / start) ** slope, color=DIM, linestyle=GUIDE, linewidth=0.9, gid="guide")


def _scales(axes: Axes, data: xr.Dataset, curves: Curves, x: str) -> None:
    """Give axes logarithmic scales where the values call for them, before anything is drawn."""
    where, mean = np.unique(data[x].values), data[curves.observable]
    if geometric(where) or (x != "steps" and 0.0 < DECADES * where[0] < where[-1]):
        axes.set_xscale("log")
    if 0.0 < DECADES * float(mean.min()) < float(mean.max()):
        axes.set_yscale("log")


def _ticks(axes: Axes, where: np.ndarray) -> None:
    """Give logarithmic axes plain ticks: at the values of a horizontal axis that has few of them."""
    from matplotlib.ticker import FixedLocator

    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() == "log":
            plain_ticks(axis, (1.0, 2.0, 5.0))
    if axes.get_xscale() == "log" and len(where) <= MOST_TICKS and where[-1] <= 1e3 * where[0]:
        axes.xaxis.set_major_locator(FixedLocator(where.tolist()))


def _entries(data: xr.Dataset, curves: Curves, shown: list[str], guide: float | None) -> list[list[Entry]]:
    split = curves.split
    hues: list[Entry] = []
    if split.hue:
        hues = [
            (look(n) | {"linestyle": "none"}, value_label(one[split.hue]))
            for n, one in numbered_parts(data, split.hues(data))
        ]
    lines: list[Entry] = []
    if curves.line:
        lines = [
            (
                {"color": INK, "linestyle": DASHES[n], "linewidth": 1.0, "gid": f"line-{n}"},
                value_label(one[curves.line]),
            )
            for n, one in numbered_parts(data, curves.lines(data))
        ]
    kinds = dynamics_entries(shown) if len(shown) > 1 else []
    slope = [] if guide is None else [_guide_entry(guide)]
    bound: list[Entry] = []
    if curves.bounds(data).any():
        bound = [bound_entry("some runs did not exit")]
    return [hues, lines, kinds, slope, bound]


def _guide_entry(slope: float) -> Entry:
    text = f"slope {slope:g}".replace("-", MINUS)
    return {"color": DIM, "linestyle": GUIDE, "linewidth": 0.9, "gid": "guide"}, text
