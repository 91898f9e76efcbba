"""Points against an axis: one declaration, which the picture of a figure and its interactive plot draw."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sweeplib.analysis.kit.problem_fields import with_constants
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.pictures.figures.kit.chart import Chart
from sweeplib.pictures.figures.kit.interactive import Interactive, along
from sweeplib.pictures.figures.kit.quantities import at_chosen_time
from sweeplib.statistics.labelled import labelled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from sweeplib.pictures.figures.kit.legend import Entry

    Heights = Callable[[xr.Dataset, np.ndarray], np.ndarray]
    Marks = Callable[[Axes, xr.Dataset], None]


SCALED = "scaled_"
"""The beginning of names of variables in the units of a picture."""


@dataclass(frozen=True)
class Curve:
    """A law, drawn as a curve for each colour.

    name, label : its name, and its text in the legend; "" for none.
    of : a variable of the data, drawn from point to point; or a function (part, x) of the part of one colour in a panel
        that returns the heights at the numbers x of the horizontal axis, NaN where the law does not hold.
    once : whether the law is the same for all colours; the part is then that of the panel. The name of a variable:
        whether it is the same for all of them.
    """

    name: str
    label: str
    of: str | Heights
    dashes: Any = "solid"
    once: bool | str = False


@dataclass(frozen=True)
class Level:
    """The axes of one quantity; each panel is a stack of levels, from the top.

    y : a variable of the data, with its interval; "" if `marks` draws all.
    over : a variable of the data by which y is divided, where it is positive; without any a level below is left out.
    label : of the vertical axis, by default that of y.
    log : whether the axis is logarithmic; None: if the values range widely.
    limits : of the axis; None: they follow from the points.
    from_zero : whether a linear axis begins at zero; below it where it would cut a marker.
    at, at_x : the height of a line across; the place of a line from below.
    top, right : variables of the data with a tick for each colour at the upper end of the axes, if it is between the
        points, and at the right end.
    marks : function (axes, panel) that draws more, from the data of a panel.
    height : relative to that of the first level.
    joined : whether lines join the points here as the chart says.
    """

    y: str
    curves: tuple[Curve, ...] = ()
    over: str = ""
    label: str = ""
    log: bool | None = None
    limits: tuple[float, float] | None = None
    from_zero: bool = False
    at: float | None = None
    at_x: float | None = None
    top: str = ""
    right: str = ""
    marks: Marks | None = None
    height: float = 1.0
    joined: bool = True

    def unit(self, data: xr.Dataset) -> xr.DataArray | float:
        """Return that by which y is divided: `over` where it is positive."""
        return data[self.over].where(data[self.over] > 0.0) if self.over else 1.0


@dataclass(frozen=True)
class Points(Chart):
    """A chart of points, one by one or as curves.

    levels : of each panel; by default y alone.
    more : function (ds, analyses, data) that adds to the data what the picture alone needs.
    x_over, x_label : a variable of the data by which x is divided, if it is known everywhere; the label of that ratio.
    log_x : function of x that tells whether the axis is logarithmic; None: if the values ask for it.
    joined : whether lines join the points of stochastic dynamics; "steps": each holds from the middle between two
        points to the next middle.
    aside : whether the points of several colours are shifted sideways.
    unknown : what a point without a value has none of; then dynamics without noise have the mark of such points too.
    entries : more entries of the legend.
    hue_text : function of the part of a colour that returns a text beside it in the legend.
    guide, share_x : the slope of a line to compare with; whether panels share the horizontal axis.
    """

    levels: tuple[Level, ...] = ()
    more: Callable[[xr.Dataset, Mapping[str, xr.Dataset], xr.Dataset], xr.Dataset] | None = None
    x_over: str = ""
    x_label: str = ""
    log_x: Callable[[xr.DataArray], bool] | None = None
    joined: bool | Literal["steps"] = False
    aside: bool = False
    unknown: str = ""
    entries: tuple[Entry, ...] = ()
    hue_text: Callable[[xr.Dataset], str] | None = None
    guide: float | None = None
    share_x: bool = True

    def labelled(self, ds: xr.Dataset, analyses: Mapping[str, xr.Dataset]) -> xr.Dataset:
        """Return the data of the interactive plot: at the time that the picture shows, if it is a single one.

        If `theory` is the name of a curve that is a function, the data have it at their points.
        """
        data = at_chosen_time(super().labelled(ds, analyses), self.split)
        laws = {curve.name: curve for level in self.levels for curve in level.curves if not isinstance(curve.of, str)}
        law = laws.get(self.theory or "")
        if law is None or law.name in data.variables:
            return data
        return data.assign({law.name: _at_points(law, data, self.x, self.y)})

    def page(self, ds: xr.Dataset, analyses: Mapping[str, xr.Dataset]) -> tuple[Interactive, xr.Dataset, xr.Dataset]:
        """Return what the page draws, its data and the dataset: the top level of the picture, in the units of its axes.

        What is in these units has the name of the plain variable after `scaled_`; runs of the dataset are in them too.
        """
        data, top = self.labelled(ds, analyses), (*self.levels, Level(self.y))[0]
        if not (self.x_over or top.over):
            return self, data, ds
        whole = {name: with_constants(analysis) for name, analysis in analyses.items()}
        units = data if self.more is None else self.more(with_constants(ds), whole, data)
        declared = self
        if self.x_over and bool(self.split.selected(units[self.x_over]).notnull().all()):
            at = _named(units[self.x] / units[self.x_over], self.x_label, units[self.x])
            declared = replace(declared, x=f"{SCALED}{self.x}")
            data = data.assign_coords({declared.x: at})
        if top.over:
            declared = replace(declared, y=f"{SCALED}{self.y}", theory=self.theory and f"{SCALED}{self.theory}")
            data = data.assign(_scaled(data, self.y, self.theory, top, top.unit(units)))
            if (runs := self.y.removesuffix("_mean")) in ds:
                symbol = top.label[top.label.find("$") :].replace(r"\langle", "").replace(r"\rangle", "")
                ds = ds.assign({f"{SCALED}{runs}": _named(ds[runs] / top.unit(units), symbol, ds[runs])})
        if self.log_axes is None and self.log_x is not None and top.log is not None:
            log = {"x": self.log_x(data[declared.x]), "y": top.log}
            declared = replace(declared, log_axes=[axis for axis, is_log in log.items() if is_log])
        return declared, data, ds

    def pictured(self, ds: xr.Dataset, analyses: Mapping[str, xr.Dataset]) -> xr.Dataset:
        """Return the data of the picture, along x; constants are coordinates already."""
        data = super().pictured(ds, analyses)
        data = data if self.more is None else self.more(ds, analyses, data)
        return data if data[self.x].dims else data.expand_dims(self.x)

    def picture(self, ds: xr.Dataset, analyses: Mapping[str, xr.Dataset]) -> Drawing:
        """Return the picture."""
        from sweeplib.pictures.figures.kit.picture import picture_of

        return picture_of(self, ds, analyses)


def _scaled(
    data: xr.Dataset, y: str, theory: str | None, level: Level, unit: xr.DataArray | float
) -> dict[str, xr.DataArray]:
    """Return y over a unit with what describes it: its interval, its bounds, its theory."""
    value, described = data[y], [f"{y}{end}" for end in ("_low", "_high", "_error")]
    bound = {key: text for key, text in value.attrs.items() if key in ("bound", "bound_side")}
    scaled = {
        SCALED + name: (data[name] / unit).assign_attrs(data[name].attrs)
        for name in (*described, *filter(None, [theory]))
        if name in data.variables
    }
    return scaled | {SCALED + y: _named(value / unit, level.label, value).assign_attrs(bound)}


def _named(values: xr.DataArray, label: str, plain: xr.DataArray) -> xr.DataArray:
    """Return values with the words and the mathematics of the label of an axis as their name and symbol.

    Without words the name is that of the plain variable, which the values are in other units.
    """
    words, _, mathematics = label.replace("\n", " ").partition("$")
    return labelled(values, words.strip() or plain.attrs["long_name"], mathematics.replace("$", "").strip())


def _at_points(curve: Curve, data: xr.Dataset, x: str, y: str) -> xr.DataArray:
    """Return a law at the points of y, which is the same for all dynamics."""
    assert callable(curve.of)
    points = xr.broadcast(data[x], data[y].isel({"dynamics": 0}, drop=True, missing_dims="ignore"))[0]
    heights = points.astype(float).copy(data=np.full(points.shape, np.nan))
    others = [dim for dim in points.dims if not data[x].dims or dim != along(data, x)]
    for place in np.ndindex(*(points.sizes[dim] for dim in others)):
        subset = data.isel(at := dict(zip(others, place, strict=True)))
        ordinates = curve.of(subset, subset[x].values.astype(float).ravel())
        heights[at] = ordinates if subset[x].dims else ordinates[0]
    return labelled(heights, curve.label)
