"""The picture of points: a panel, colour and dash per value of an axis, marks per dynamics, intervals as bars."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sweeplib.analysis.kit.labels import dynamics_label
from sweeplib.analysis.kit.variables import is_stochastic
from sweeplib.engine.base.arrays import logarithmic, wide
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.design.axis import POINT
from sweeplib.errors import InputError
from sweeplib.pictures.figures.kit.facets import numbered_parts
from sweeplib.pictures.figures.kit.guide import draw_guide, guide_entry
from sweeplib.pictures.figures.kit.labels import (
    dynamics_order,
    plain_mean,
    row_label,
    value_label,
    wrapped_label,
)
from sweeplib.pictures.figures.kit.legend import Entry, dynamics_entries, hue_entries, legend_below, unknown_entry
from sweeplib.pictures.figures.kit.panels import Panels, panels_of
from sweeplib.pictures.figures.kit.points import Curve, Level, Points
from sweeplib.pictures.figures.kit.quantities import (
    bound_side,
    bounds,
    interval,
    others_vary,
    shown_dynamics,
    with_numbers,
    with_requests,
)
from sweeplib.pictures.figures.kit.references import References, references
from sweeplib.pictures.figures.kit.scales import few, is_log, logarithmic_above_zero, logarithmic_time
from sweeplib.pictures.figures.kit.style import (
    FAINT,
    INK,
    bound_mark,
    dynamics_look,
    line_look,
    look,
    mark_unknown,
    plain_ticks,
    set_log,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    Shift = Callable[[np.ndarray], np.ndarray]

DASHES: tuple[Any, ...] = ("solid", (0, (4, 1.5)), (0, (1, 1.2)))
THEORY: Any = (0, (2, 1))
MOST_MARKS = 12
"""The number of points of a curve above which only every second, third, ... of them has a marker and an error bar."""
MOST_TICKS, MOST_ROWS = 5, 8
ASIDE = 0.018
"""The shift between points of neighbouring colours, as a fraction of the range of the axis."""
ABOUT = 1.2
"""The factor from a single place on the horizontal axis to the ends of its curves."""
TOUCHING = 0.04
"""The fraction of the height of the axes below which the zero would cut a marker."""
SMOOTH = 200
"""The number of places of a curve of theory."""


def picture_of(points: Points, ds: xr.Dataset, analyses: Mapping[str, xr.Dataset]) -> Drawing:
    """Return the picture that a declaration describes; constants of the datasets are coordinates."""
    whole = points.pictured(ds, analyses)
    selected = points.split.selected(whole)
    if points.x_over and not bool(selected[points.x_over].notnull().all()):
        points = replace(points, x_over="", x_label="")
    top, *below = points.levels or (Level(points.y),)
    levels = (top, *(lower for lower in below if not lower.over or bool((selected[lower.over] > 0.0).any())))
    datasets = [points.split.selected(_requested(whole, level.y, ds)) for level in levels]
    data = datasets[0]
    if data[points.x].dtype.kind not in "iuf":
        raise InputError("not an axis of numbers", key="x", value=points.x, expected="another axis")
    heights = tuple(level.height for level in levels)
    height = 2.7 * sum(heights) / heights[0]
    panels = panels_of(data, points.split, height=height, stack=heights, share_x=points.share_x)
    run = [str(name) for name in data["dynamics"].values if bool(data["requested"].sel(dynamics=name).any())]
    names = dynamics_order(run) if points.unknown else shown_dynamics(data, levels[0].y)
    picture = _Picture(points, panels, names, references(points.published, points.x, points.y))
    picture.scale(data)
    for place, (level, of_level) in enumerate(zip(levels, datasets, strict=True)):
        picture.draw(place, level, of_level)
    panels.xlabel(points.x_label or wrapped_label(data[points.x], 24))
    picture.set_ticks(data)
    legend_below(panels.drawing, picture.entries(data, levels))
    return panels.drawing


def _requested(whole: xr.Dataset, y: str, ds: xr.Dataset) -> xr.Dataset:
    """Return the data with a mask of the runs that were made: its own `Y_requested`, else that of the dataset."""
    if not y:
        return whole
    name = f"{y}_requested"
    return whole.assign(requested=whole[name]) if name in whole else with_requests(whole, y, ds)


class _Columns(NamedTuple):
    """The points of a dynamics and colour, in the order of x: lengths of bars below and above, and three masks."""

    x: np.ndarray
    y: np.ndarray
    below: np.ndarray
    above: np.ndarray
    bound: np.ndarray
    unknown: np.ndarray


@dataclass(frozen=True)
class _Picture:
    """A picture that is being drawn; `names` are its dynamics in the order of their marks."""

    points: Points
    panels: Panels
    names: list[str]
    published: References

    def places(self, data: xr.Dataset) -> xr.DataArray:
        """Return the places of data on the horizontal axis, without the shift of colours."""
        x = data[self.points.x]
        return x / data[self.points.x_over] if self.points.x_over else x

    def scale(self, data: xr.Dataset) -> None:
        """Make the horizontal axes logarithmic where their values ask for it; from a zero on linear up to the next."""
        x, over_time = self.places(data), self.points.kind == "curves"
        if self.points.log_x is not None:
            log = self.points.log_x(x)
        else:
            log = is_log("x", self.points.log_axes, logarithmic_time(x) if over_time else logarithmic(x.values))
        chosen = self.points.log_axes is not None or self.points.log_x is not None
        for axes in (axes for stack in self.panels.stacks for axes in stack):
            if log:
                set_log(axes, "x")
            elif not chosen and not over_time and logarithmic_above_zero(x.values):
                first = float(x.values[x.values > 0.0].min())
                axes.set_xscale("symlog", linthresh=first, linscale=0.5)
                axes.set_xlim(-0.15 * first, 1.25 * float(x.values.max()))

    def draw(self, place: int, level: Level, data: xr.Dataset) -> None:
        """Draw one level of all panels."""
        axes = self.panels.stacks[0][place]
        if level.y and self._is_logarithmic(level, data):
            set_log(axes, "y")
        for panel, subset in self.points.split.parts(data):
            self._panel(self.panels.stacks[panel][place], level, subset, data, first=place == 0)
        if level.limits is not None:
            axes.set_ylim(*level.limits)
        elif level.from_zero and axes.get_yscale() == "linear":
            top = axes.get_ylim()[1]
            axes.set_ylim(bottom=-TOUCHING * top if bool((data[level.y] < TOUCHING * top).any()) else 0.0)
        if level.label:
            self.panels.ylabel(level.label, place)
        elif level.y:
            self.panels.heights(plain_mean(data[level.y]) if "bound" in data[level.y].attrs else data[level.y], place)

    def _is_logarithmic(self, level: Level, data: xr.Dataset) -> bool:
        values = (data[level.y] / level.unit(data)).values
        finite = values[np.isfinite(values)]
        if level.log is None and self.points.log_axes is None:
            return wide(values) or bool(self.points.guide is not None and finite.size and (finite > 0.0).all())
        return is_log("y", self.points.log_axes, bool(level.log)) and bool((finite > 0.0).any())

    def _panel(self, axes: Axes, level: Level, subset: xr.Dataset, data: xr.Dataset, *, first: bool) -> None:
        _lines(axes, level)
        for index, dash, series in self._curves_of(subset) if level.y else ():
            aside = self._aside(data, index)
            for name in self.names:
                self._series(axes, level, series.sel(dynamics=name), (name, index, dash), aside)
            for curve in _curves(level, data, self.points.split.hue) if dash == 0 else ():
                if not curve.once:
                    self._curve(axes, curve, series, line_look(index, curve.name))
                elif index == 0:
                    self._curve(axes, curve, subset, {"color": INK, "gid": curve.name})
            self._ticks(axes, level, series, index)
            if first:
                x_unit, y_unit = _unit(series, self.points.x_over), _unit(series, level.over)
                self.published.draw(axes, series, x_unit=x_unit, y_unit=y_unit)
        if level.marks is not None:
            level.marks(axes, subset)
        if first and self.points.guide is not None:
            draw_guide(axes, subset[level.y], subset[self.points.x], self.points.guide)

    def _ticks(self, axes: Axes, level: Level, series: xr.Dataset, index: int) -> None:
        tick: dict[str, Any] = line_look(index, "end") | {"linewidth": 1.8, "clip_on": False}
        places = self.places(series).where(series["requested"].any())
        if level.top and float(places.min()) < (at := series[level.top].item()) < float(places.max()):
            axes.plot([at, at], [0.96, 1.0], transform=axes.get_xaxis_transform(), **tick)
        if level.right and np.isfinite(at := series[level.right].where(places.notnull().any()).item()):
            axes.plot([0.97, 1.0], [at, at], transform=axes.get_yaxis_transform(), **tick)

    def _curves_of(self, subset: xr.Dataset) -> Iterator[tuple[int, int, xr.Dataset]]:
        """Yield the number of the colour and of the dash of each curve in a panel, and its data."""
        for index, series in self.points.split.colours(subset):
            for dash, single in numbered_parts(series, self.points.dash):
                yield index, dash, single

    def _aside(self, data: xr.Dataset, index: int) -> Shift:
        """Return the function that shifts the places of a colour sideways."""
        if not self.points.aside:
            return lambda x: x
        places, hue = self.places(data).values, self.points.split.hue
        count = data.sizes[hue] if hue else 1
        low, high = np.nanmin(places), np.nanmax(places)
        shift = ASIDE * (index - 0.5 * (count - 1))
        if self.panels.stacks[0][0].get_xscale() == "log":
            return lambda x: x * (high / low if high > low else 10.0) ** shift
        return lambda x: x + shift * (high - low)

    def _columns(self, level: Level, series: xr.Dataset) -> _Columns:
        y, unit = series[level.y], level.unit(series)
        bars = interval(series, level.y) or (np.full(y.shape, np.nan),) * 2
        arrays = [self.places(series), y / unit, *(y.copy(data=bar) / unit for bar in bars)]
        masks = [y.copy(data=bounds(series, level.y)), series["requested"] & y.isnull()]
        columns = [column.values.ravel() for column in xr.broadcast(*arrays, *masks)]
        order = np.argsort(columns[0], kind="stable")
        return _Columns(*(column[order] for column in columns))

    def _series(self, axes: Axes, level: Level, series: xr.Dataset, key: tuple[str, int, int], aside: Shift) -> None:
        """Draw the points of a dynamics: with bars, arrows at bounds, ∅ on the axis for unknown ones."""
        name, index, dash = key
        columns = self._columns(level, series)
        x, values = aside(columns.x), columns.y
        drawable = np.isfinite(x) & ((x > 0) | (axes.get_xscale() != "log"))
        unknown = drawable & columns.unknown.astype(bool)
        style = dynamics_look(name, self.names, look(index))
        if unknown.any() and (is_stochastic(name) or self.points.unknown):
            marked = unknown & ~np.append(False, unknown[:-1]) if self.points.kind == "curves" else unknown
            mark_unknown(axes, x[marked], style["color"])
        defined = drawable & np.isfinite(values)
        if not defined.any():
            return
        style |= self._line(level, name, dash, style)
        if fit := series[level.y].attrs.get("fit"):
            self._curve(axes, Curve("fit", "", fit, DASHES[dash]), series, {"color": style["color"], "gid": "fit"})
            style |= {"linestyle": "none"}
        joined = self.points.joined and level.joined
        crowded = joined or (self.points.joined and self.points.split.hue is not None)
        marks = bars_at = max(1, -(-int(defined.sum()) // MOST_MARKS)) if crowded else 1
        if POINT in series[self.points.x].dims:  # neighbours along x may be rows of other problems
            style, marks = style | {"linestyle": "none", "markersize": 4.0 if bars_at == 1 else 1.5}, 1
        bound = defined & columns.bound.astype(bool)
        lengths = np.nan_to_num(np.array([columns.below, columns.above])).clip(0.0)
        has_bars = interval(series, level.y) is not None
        bars: dict[str, Any] = {"elinewidth": 0.8, "markevery": marks, "errorevery": bars_at}
        if (sure := defined & ~bound).any():
            axes.errorbar(x[sure], values[sure], lengths[:, sure] if has_bars else None, **bars | style)
        if bound.any():
            side = bound_side(series[level.y])
            lengths[[side == "below", side == "above"]] = 0.0
            bars, style = {"elinewidth": 0.8}, style | {"linestyle": "none"}
            axes.errorbar(x[bound], values[bound], lengths[:, bound] if has_bars else None, **bars | style)
            axes.plot(x[bound], values[bound], zorder=5, color=style["color"], **bound_mark(side))

    def _line(self, level: Level, name: str, dash: int, style: Mapping[str, Any]) -> dict[str, Any]:
        """Return the line that joins the points of a dynamics, and what the dash changes of its marker."""
        if not (self.points.joined and level.joined) or (not is_stochastic(name) and is_stochastic(self.names[0])):
            return {"linestyle": "none"} | ({} if is_stochastic(name) else {"zorder": 5})
        steps = {"drawstyle": "steps-mid"} if self.points.joined == "steps" else {}
        line = steps | {"linestyle": DASHES[dash], "linewidth": 1.0, "gid": f"{style['gid']} dash-{dash}"}
        if dash and sum(map(is_stochastic, self.names)) == 1:
            line |= {"markerfacecolor": "white"}  # crosses of dynamics without noise are visible on it
        return line

    def _curve(self, axes: Axes, curve: Curve, series: xr.Dataset, style: Mapping[str, Any]) -> None:
        """Draw a law over one colour's points with runs: a variable of the data, or a function of the axis.

        A function is smooth, but where other parameters of the problem vary along the axis: there it is at the points.
        """
        x, series = series[self.points.x], with_numbers(series, self.points.x)
        run = series["requested"].any([dim for dim in series["requested"].dims if dim not in x.dims]).broadcast_like(x)
        if isinstance(curve.of, str):
            of = series[curve.of]
            of = of.sel(dynamics=self.names[0]) if "dynamics" in of.dims and self.names else of
            of, at = of.where(run).broadcast_like(x), x.values.ravel()
            order = np.argsort(at)
            places, heights = at[order], of.values.ravel()[order]
        else:
            places = at = np.unique(x.values[np.isfinite(x.values) & run.transpose(*x.dims).values]).astype(float)
            if at.size == 1:
                places, at = at * np.array([1.0 / ABOUT, ABOUT]), np.repeat(at, 2)
            elif at.size and (curve.once or not others_vary(series, self.points.x)):
                spaced = np.geomspace if axes.get_xscale() == "log" else np.linspace
                places = at = spaced(at[0], at[-1], SMOOTH)
            heights = curve.of(series.sortby(self.points.x) if self.points.x in series.dims else series, at)
        if np.isfinite(heights).any():
            line = self._law(curve) | {"zorder": 1, **style}
            axes.plot(places / _unit(series, self.points.x_over), heights, **line)

    def _law(self, curve: Curve) -> dict[str, Any]:
        """Return the look of a law: a curve, but a stroke at each row of a table, between which nothing lies."""
        if self.points.x == POINT:
            return {"linestyle": "none", "marker": "_", "markersize": 12.0, "markeredgewidth": 0.9}
        return {"linestyle": curve.dashes, "linewidth": 0.9}

    def set_ticks(self, data: xr.Dataset) -> None:
        """Give logarithmic axes plain ticks, at the few short values of a horizontal one; whole ones for integers."""
        from matplotlib.ticker import FixedLocator, MaxNLocator

        places = few(self.places(data).values, MOST_TICKS)
        stacks = self.panels.stacks if not self.points.share_x else self.panels.stacks[:1]
        for axes in (axes for stack in stacks for axes in stack):
            for axis in (axes.xaxis, axes.yaxis):
                plain_ticks(axis)
            if axes.get_xscale() == "linear" and self.places(data).dtype.kind in "iu":
                axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
            if axes.get_xscale() == "log" and places and places[-1] <= 1e3 * places[0]:
                axes.xaxis.set_major_locator(FixedLocator(places))
            if self.points.x == POINT and data.sizes[POINT] <= MOST_ROWS:
                axes.set_xticks(data[POINT].values, [row_label(row, data[POINT]) for row in data[POINT]])

    def entries(self, data: xr.Dataset, levels: tuple[Level, ...]) -> list[list[Entry]]:
        """Return the entries of the legend, in groups."""
        points, measured = self.points, data[levels[0].y]
        hues, line = _hues(data, points), {"color": INK, "linewidth": 1.0}
        dashes: list[Entry] = [
            (line | {"linestyle": DASHES[n], "gid": f"dash-{n}"}, value_label(series[points.dash], data[points.dash]))
            for n, series in numbered_parts(data, points.dash)
            if points.dash
        ]
        curves = {curve.name: curve for level in levels for curve in _curves(level, data, None) if curve.label}
        named = len(self.names) > 1 or curves or points.published
        kinds = dynamics_entries(self.names, points.split.hue) if named else []
        marks = [unknown_entry(_without_value(data, levels[0].y, points.unknown))]
        if name := measured.attrs.get("bound"):
            arrow = bound_mark(bound_side(measured)) | {"color": INK, "markersize": 12.0}
            marks.append((arrow, data[name].attrs["reason"]))
        if fit := measured.attrs.get("fit"):
            marks.append((line | {"gid": "fit"}, data[fit].attrs["long_name"]))
        laws: list[Entry] = [
            (self._law(curve) | {"color": INK, "gid": name}, curve.label) for name, curve in curves.items()
        ]
        guide = [] if points.guide is None else [guide_entry(points.guide)]
        published = self.published.entries(data, points.split, points.dash)
        return [hues, dashes, kinds, [*laws, *points.entries, *guide, *marks], published]


def _lines(axes: Axes, level: Level) -> None:
    """Draw the straight lines of a level."""
    if level.at is not None:
        axes.axhline(level.at, color=FAINT, linewidth=0.8, zorder=0)
    if level.at_x is not None:
        axes.axvline(level.at_x, color=FAINT, linewidth=0.8, zorder=0, gid="optimum")


def _unit(series: xr.Dataset, over: str) -> float:
    """Return the unit of an axis for one colour; 1 if it is not the same for all of its points."""
    return series[over].item() if over and not series[over].dims else 1.0


def _curves(level: Level, data: xr.Dataset, hue: str | None) -> list[Curve]:
    """Return the curves of a level, with whether the colours have the same one; without any the theory of y."""
    name = data[level.y].attrs.get("theory") if level.y and not level.over else None
    curves = level.curves or ((Curve("theory", data[name].attrs["long_name"], name, THEORY),) if name else ())
    sameness = (curve.once if isinstance(curve.once, bool) else hue not in data[curve.once].dims for curve in curves)
    return [replace(curve, once=once) for curve, once in zip(curves, sameness, strict=True)]


def _hues(data: xr.Dataset, points: Points) -> list[Entry]:
    """Return an entry per colour, with the text of its part; without colours that text alone."""
    if points.hue_text is None or points.split.panel:
        return hue_entries(data, points.split)
    parts = points.split.colours(data)
    named = hue_entries(data, points.split) or [(look(0) | {"color": INK, "linestyle": "none"}, "")]
    texts = [
        ": ".join(filter(None, [label, points.hue_text(series)]))
        for (_, label), (_, series) in zip(named, parts, strict=True)
    ]
    return [(style, text) for (style, _), text in zip(named, texts, strict=True) if text]


def _without_value(data: xr.Dataset, y: str, label: str) -> str:
    """Return the meaning of the mark of points without a value, with the dynamics that have such points if `label`."""
    if not label:
        return "no value"
    unknown = data["requested"] & data[y].isnull()
    names = [name for name in dynamics_order(data["dynamics"].values) if bool(unknown.sel(dynamics=name).any())]
    return f"{label}: {', '.join(map(dynamics_label, names))}"
