"""What marks are drawn of; the marks of points, with bars, arrows and what joins them, and of laws.

A look, or style, is a dict of properties of lines and markers, by matplotlib's names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sweeplib.analysis.kit.variables import is_stochastic
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.design.axis import POINT
from sweeplib.pictures.figures.kit.chart import Chart, Layer, Level
from sweeplib.pictures.figures.kit.late_matplotlib import mpl
from sweeplib.pictures.figures.kit.quantities import bound_side, bounds, interval, others_vary, with_numbers
from sweeplib.pictures.figures.kit.style import INK, bound_mark, line_look, look, mark_unknown


@dataclass(frozen=True)
class Part:
    """What a layer is drawn of, and where.

    data, panel, series : the data of all panels, of the panel, and of one colour (and dash) in it.
    names : the dynamics in the order of their looks. index, dash : the numbers of the colour and of the dash.
    """

    chart: Chart
    axes: mpl.axes.Axes
    level: Level
    layer: Layer
    names: list[str]
    data: xr.Dataset
    panel: xr.Dataset
    series: xr.Dataset
    index: int = 0
    dash: int = 0

    def dynamics(self) -> Iterator[tuple[str, xr.Dataset, dict[str, Any]]]:
        """Yield each dynamics, its data and its look; all data in the look of the colour if dynamics are no axis."""
        if "dynamics" not in self.series[self.layer.y].dims:
            yield "", self.series, line_look(self.index) | self.layer.look
            return
        for name in self.names:
            style = self.chart.looks.of(name, self.names, look(self.index))
            yield name, self.series.sel(dynamics=name), style | self.layer.look

    @property
    def number(self) -> float:
        """Return y of a layer in which it is a number."""
        assert isinstance(self.layer.y, int | float)
        return self.layer.y

    @property
    def x(self) -> str:
        """Return the variable of the horizontal axis."""
        return self.layer.x or self.chart.x


def places_of(chart: Chart, data: xr.Dataset) -> xr.DataArray:
    """Return the places of data on the horizontal axis, without the shift of colours."""
    return data[chart.x] / data[chart.x_over] if chart.x_over else data[chart.x]


def unit_of(series: xr.Dataset, over: str) -> float:
    """Return the unit of an axis for one colour; 1 if it is not the same for all of its points."""
    return series[over].item() if over and not series[over].dims else 1.0


MOST_MARKS, MOST_PLACES = 12, 40
"""The number of points above which only every second, third, ... of them has a marker and an error bar.

The second is that along a parameter, where every point has runs of its own: a bend without a bar may be noise.
"""
ASIDE = 0.018
"""The shift between points of neighbouring colours, as a fraction of the range of the axis."""
ABOUT = 1.2
"""The factor from a single place on the horizontal axis to the ends of its curves."""
SMOOTH = 200
"""The number of places of a law."""
DASHES: tuple[Any, ...] = ("solid", (0, (4, 1.5)), (0, (1, 1.2)))
"""The dashes of the values of the axis `dash`, in their order."""
JOINED = frozenset({"joined", "steps"})
"""The marks of points that lines join."""


def points(piece: Part) -> None:
    """Draw the points of each dynamics."""
    for name, series, style in piece.dynamics():
        _points_of(piece, name, series, style)


def _points_of(piece: Part, name: str, series: xr.Dataset, style: dict[str, Any]) -> None:
    """Draw the points of the dynamics `name`: with bars, arrows at bounds, ∅ on the axis for unknown ones."""
    axes, chart, y = piece.axes, piece.chart, str(piece.layer.y)
    lengths = interval(series, y)
    bars = lengths or (np.full(series[y].shape, np.nan),) * 2
    unit = piece.level.unit(series)
    arrays = [places_of(chart, series), series[y] / unit, *(series[y].copy(data=bar) / unit for bar in bars)]
    masks = [series[y].copy(data=bounds(series, y)), series["requested"] & ~np.isfinite(series[y])]
    columns = [column.values.ravel() for column in xr.broadcast(*arrays, *masks)]
    order = np.argsort(columns[0], kind="stable")
    places, values, below, above, is_bound, is_unknown = (column[order] for column in columns)
    x = _aside(piece, places)
    drawable = np.isfinite(x) & ((x > 0) | (axes.get_xscale() != "log"))
    unknown = drawable & is_unknown.astype(bool)
    if unknown.any() and (is_stochastic(name) or chart.unknown):
        # a curve has one mark where a stretch without values begins
        begins = unknown & ~np.append(False, unknown[:-1]) if chart.kind == "curves" else unknown
        mark_unknown(axes, x[begins], style["color"])
    defined = drawable & np.isfinite(values)
    if not defined.any():
        return
    style |= _joining(piece, name, style)
    if fit := series[y].attrs.get("fit"):
        _draw_law(piece, fit, series, DASHES[piece.dash], {"color": style["color"], "gid": "fit"})
        style |= {"linestyle": "none"}
    crowded = piece.layer.mark in JOINED or (piece.layer.mark == "sparse" and chart.split.hue is not None)
    most = MOST_MARKS if chart.kind == "curves" else MOST_PLACES
    marks = bars_at = max(1, -(-int(defined.sum()) // most)) if crowded else 1
    if POINT in series[chart.x].dims:  # neighbours along x may be rows of other problems
        style, marks = style | {"linestyle": "none", "markersize": 4.0 if bars_at == 1 else 1.5}, 1
    bound, side = defined & is_bound.astype(bool), bound_side(series[y])
    ends = np.array([below, above])
    ends[np.ix_([side == "below", side == "above"], bound)] = 0.0  # the arrow of a bound takes the place of the bar
    has_bar = np.isin(np.arange(x.size), np.flatnonzero(defined)[::bars_at]) | bound
    for edge, endless in enumerate(np.isposinf(ends) & defined & has_bar):
        _endless_bars(axes, x[endless], values[endless], edge, style["color"])
    ends = np.nan_to_num(ends, posinf=0.0).clip(0.0)
    if (defined & ~bound).any():
        often = {"markevery": marks, "errorevery": bars_at}
        heights = np.where(bound, np.nan, values)[defined]  # no line leads past a bound
        axes.errorbar(x[defined], heights, ends[:, defined] if lengths else None, elinewidth=0.8, **often | style)
    if bound.any():
        style |= {"linestyle": "none"}
        axes.errorbar(x[bound], values[bound], ends[:, bound] if lengths else None, elinewidth=0.8, **style)
        axes.plot(x[bound], values[bound], zorder=5, color=style["color"], **bound_mark(side))


def _endless_bars(axes: mpl.axes.Axes, x: np.ndarray, values: np.ndarray, edge: int, colour: str) -> None:
    """Draw bars from points to an edge of the axes, 0: the lower one, 1: the upper one, with the head of an arrow."""
    arrow = {"arrowstyle": "->", "color": colour, "linewidth": 0.8, "shrinkA": 0.0, "shrinkB": 0.0}
    # it changes no limits of the axes
    at: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "textcoords": "data"}
    for start in zip(x, values, strict=True):
        axes.annotate("", (start[0], edge), start, **at, arrowprops=arrow, gid="endless")


def _aside(piece: Part, x: np.ndarray) -> np.ndarray:
    """Return places x (n,), shifted sideways by the number of the colour if the chart's points are `aside`."""
    if not piece.chart.aside:
        return x
    places, hue = places_of(piece.chart, piece.data).values, piece.chart.split.hue
    low, high = np.nanmin(places), np.nanmax(places)
    shift = ASIDE * (piece.index - 0.5 * ((piece.data.sizes[hue] if hue else 1) - 1))
    if piece.axes.get_xscale() == "log":
        return x * (high / low if high > low else 10.0) ** shift
    return x + shift * (high - low)


def _joining(piece: Part, name: str, style: Mapping[str, Any]) -> dict[str, Any]:
    """Return the look of the line that joins the points of a dynamics, and what the dash changes of its marker.

    Dynamics without noise are not joined where one with noise is drawn.
    """
    if piece.layer.mark not in JOINED or (not is_stochastic(name) and is_stochastic(piece.names[0])):
        look: dict[str, Any] = {"linestyle": "none"} | ({} if is_stochastic(name) else {"zorder": 5})
        if piece.layer.mark in JOINED and piece.chart.dash:  # crosses of one colour are told apart by lines alone
            look |= {"linestyle": DASHES[piece.dash], "linewidth": 0.5}
        return look
    line = {"linestyle": DASHES[piece.dash], "linewidth": 1.0, "gid": f"{style['gid']} dash-{piece.dash}"}
    if piece.dash and sum(map(is_stochastic, piece.names)) == 1:
        line |= {"markerfacecolor": "white"}  # crosses of dynamics without noise are visible on it
    return line | ({"drawstyle": "steps-mid"} if piece.layer.mark == "steps" else {})


def law(piece: Part) -> None:
    """Draw a law over one colour's points with runs, or once over those of the panel."""
    once, hue = piece.layer.once, piece.chart.split.hue
    once = once if isinstance(once, bool) else hue not in piece.data[once].dims
    if piece.dash or (once and piece.index):
        return
    style = {"color": INK, "gid": piece.layer.name} if once else line_look(piece.index, piece.layer.name)
    assert not isinstance(piece.layer.y, float)
    _draw_law(piece, piece.layer.y, piece.panel if once else piece.series, piece.layer.dashes, style, smooth=once)


def _draw_law(
    piece: Part, of: Any, series: xr.Dataset, dashes: Any, style: Mapping[str, Any], smooth: bool = False
) -> None:
    """Draw a law, `of`: a variable of the data from point to point, or a function of (data, places on the axis).

    series : the data of a colour, or of a panel. dashes : those of the layer, for `law_look`. style : properties of the
    line, beside these. smooth : whether a function is drawn at many places. Otherwise it is so unless other parameters
    of the problem vary along the axis: then it is known at the points alone.
    """
    name = piece.x
    if piece.layer.x:
        at, line = series[name].values, law_look(piece.chart, dashes) | dict(style) | piece.layer.look
        if np.isfinite(at).any():
            piece.axes.plot(at, of(series, at), **line)
        return
    x, series = series[name], with_numbers(series, name)
    run = series["requested"].any([dim for dim in series["requested"].dims if dim not in x.dims]).broadcast_like(x)
    if isinstance(of, str):
        heights_of = series[of]
        if "dynamics" in heights_of.dims and piece.names:
            heights_of = heights_of.sel(dynamics=piece.names[0])
        heights_of, at = heights_of.where(run).broadcast_like(x), x.values.ravel()
        order = np.argsort(at)
        places, heights = at[order], heights_of.values.ravel()[order]
    else:
        places = at = np.unique(x.values[np.isfinite(x.values) & run.transpose(*x.dims).values]).astype(float)
        if at.size == 1:  # a short line about a single place
            places, at = at * np.array([1.0 / ABOUT, ABOUT]), np.repeat(at, 2)
        elif at.size and (smooth or not others_vary(series, name)):
            spaced = np.geomspace if piece.axes.get_xscale() == "log" else np.linspace
            places = at = spaced(at[0], at[-1], SMOOTH)
        heights = of(series.sortby(name) if name in series.dims else series, at)
    if np.isfinite(heights).any():
        line = law_look(piece.chart, dashes) | {"zorder": 1, **style}
        piece.axes.plot(places / unit_of(series, piece.chart.x_over), heights, **line)


def law_look(chart: Chart, dashes: Any) -> dict[str, Any]:
    """Return the look of a law: a curve, but a stroke at each row of a table, between which nothing lies."""
    if chart.x == POINT:
        return {"linestyle": "none", "marker": "_", "markersize": 12.0, "markeredgewidth": 0.9}
    return {"linestyle": dashes, "linewidth": 0.9}
