"""Chart: the one declaration of a figure, in layers, which its picture, its interactive plot and its CSV read.

The picture is the still one, the page has the interactive plot. `analyses` are datasets of analyses by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, Literal, TypeAlias

import numpy as np

from sweeplib.analysis.kit.problem_fields import with_constants
from sweeplib.analysis.kit.sweep_axis import SWEEP
from sweeplib.engine.base.arrays import WIDE, logarithmic, wide
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import Outline
from sweeplib.networks.problem import PARAMETERS
from sweeplib.pictures.figures.kit.distances import Distance
from sweeplib.pictures.figures.kit.facets import Facets
from sweeplib.pictures.figures.kit.late_matplotlib import mpl
from sweeplib.pictures.figures.kit.quantities import at_chosen_time
from sweeplib.pictures.figures.kit.references import check_references, references
from sweeplib.pictures.figures.kit.scales import is_log, logarithmic_time
from sweeplib.pictures.figures.kit.style import BY_MARKER, Looks
from sweeplib.statistics.labelled import labelled

Heights = Callable[..., np.ndarray]
"""A law: a function (part of the data of one colour in a panel, numbers x (n,)) that returns heights (n,)."""
Data: TypeAlias = "xr.Dataset | Outline"
"""A dataset, or its outline before anything runs."""
ByName: TypeAlias = "Mapping[str, Data]"
"""Datasets of analyses by their names, or their outlines before anything runs."""
Line = tuple[float, float, str]
"""The slope, the intercept and the name of a line over a map."""
LAW = "law"
"""The name of the variable of laws in the data of an interactive plot without a theory."""
SCALED = "scaled_"
"""The beginning of names of variables in the units of a picture."""


@dataclass(frozen=True)
class Layer:
    """Marks of one kind, in each panel for each colour.

    mark : one of `MARKS` (`kit/marks.py`): `points` with bars, arrows and ∅, `joined` by lines or by `steps`; the
        curve of a `law`; `line`, `band`, `cells`, ...
    y : a variable of the data, with the interval, the bounds and the theory that its name and attributes say; or a law:
        a function (part, x) of the part of one colour in a panel that returns the heights at the numbers x of the
        horizontal axis, NaN where it does not hold; or a number.
    label : its text in the legend; "" for none.
    name : by which the interactive plot refers to a law, as its `theory`.
    dashes : of a law.
    once : whether it is the same for all colours; the part is then that of the panel. The name of a variable: whether
        that is the same for all of them.
    x : the variable of the horizontal axis, by default that of the chart; `up`: that of the vertical axis of cells.
    column : the column of the legend in which it is.
    look, entry : other properties of its lines, and of its entry in the legend.
    """

    mark: str
    y: str | Heights | float = ""
    label: str = ""
    name: str = ""
    dashes: Any = "solid"
    once: bool | str = False
    x: str = ""
    up: str = ""
    column: int = 0
    look: dict[str, Any] = field(default_factory=dict)
    entry: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Level:
    """The axes of one quantity, the variable y of the first layer; each panel is a stack of levels, from the top.

    over : a variable of the data by which y is divided, where it is positive; without any a level below is left out.
    label : of the vertical axis, by default that of y.
    log : whether the axis is logarithmic; None: if the values of y, or of the variable `range`, range over more than a
        factor of `wide`.
    limits : of the axis; None: they follow from what is drawn.
    from_zero : whether a linear axis begins at zero; below it where it would cut a marker.
    height : relative to that of the first level.
    title : above it.
    """

    layers: tuple[Layer, ...] = ()
    over: str = ""
    label: str = ""
    log: bool | None = None
    wide: float = WIDE
    range: str = ""
    limits: tuple[float | None, float | None] | None = None
    from_zero: bool = False
    height: float = 1.0
    title: str = ""

    @property
    def y(self) -> str:
        """Return the variable of the vertical axis; "" if it has none, as that of values along x in rows."""
        first = self.layers[0] if self.layers else Layer("")
        return first.y if isinstance(first.y, str) and first.mark != "ticks" else ""

    def unit(self, data: xr.Dataset) -> xr.DataArray | float:
        """Return the variable `over` where it is positive, by which y is divided; 1 without it."""
        return data[self.over].where(data[self.over] > 0.0) if self.over else 1.0

    def is_logarithmic(self, values: np.ndarray, log_axes: Sequence[str] | None) -> bool:
        """Return whether the vertical axis is logarithmic, by the values on it and by `log_axes` of the chart."""
        finite = values[np.isfinite(values)]
        if self.log is None and log_axes is None:
            guided = any(layer.mark == "guide" for layer in self.layers)
            return wide(values, self.wide) or bool(guided and finite.size and (finite > 0.0).all())
        return is_log("y", log_axes, bool(self.log)) and bool((finite > 0.0).any())


CURVES, STEPPED = ("line", "marked", "runs"), ("stairs", "bins")
"""The marks that are curves, and those that are curves in steps."""
KINDS = dict.fromkeys((*CURVES, *STEPPED), "curves") | {"dots": "cloud"}
"""The kinds of interactive plots by the marks of their first layers."""


@dataclass(frozen=True)
class Chart:
    """A figure of `y` against `x` or, with `z`, a map of z over x and y.

    Labels are the attributes of the variables. If the data have y_error, or y_low and y_high, these are drawn as the
    error or interval of y; the attribute `confidence` or `interval` of the data describes the interval.

    x, y, z : names of variables of the data.
    needs : the analyses that it draws. The data are the first one, unless `data` is given.
    data : function that returns the data from the dataset and these analyses.
    hover : other variables that are shown under the mouse.
    theory : a variable, or the name of a law, that the interactive plot draws as a curve.
    kind : points with error bars, curves with a band, or a cloud: points that nothing connects; "": that of the marks.
    hue : the axis of the colours, by default that of the split. All other axes become filters.
    lines : lines (slope, intercept, name) over a map.
    colors : the colour of each class of a map.
    also : other plots below this one on the page, by their names.
    xs, ys : the other variables that a reader may choose for x and for y; None: all numbers of the data that fit.
    steps : whether curves are steps, each value holding up to the next one; always if stairs are their marks.
    frames : an axis of which one value is shown at a time, chosen by a slider and played by a button.
    log_axes : those of "x" and "y" that are logarithmic; None: the values decide.
    columns : the columns of a table of points that are axes of the plot.

    What the picture has beside that:

    split : what it selects, its panels and colours.
    dash : the axis of the dashes.
    levels : of each panel; by default points of y alone.
    pictures : function like `data` that returns the data of the picture, if these are others.
    more : function (ds, analyses, data) that adds to the data what the picture alone needs.
    published : names of published values of y against x.
    x_over, x_label : a variable of the data by which x is divided, if it is known everywhere; the label of the axis.
    log_x : function of x that tells whether the axis is logarithmic; None: if the values ask for it.
    aside : whether the points of several colours are shifted sideways.
    unknown : what a point without a value has none of; then dynamics without noise have the mark of such points too.
    hue_text : function of the part of a colour that returns a text beside it in the legend.
    share_x : whether panels share the horizontal axis.
    size : the widths of one of several panels and of a single one, and the height of a row, in inches.
    looks : how dynamics are told apart.
    beside : another chart, drawn to the right of a single panel; the first widths of both are relative then.
    """

    x: str
    y: str
    z: str | None = None
    needs: tuple[str, ...] = ()
    data: Callable[[xr.Dataset, Mapping[str, xr.Dataset]], xr.Dataset] | None = None
    hover: tuple[str, ...] = ()
    theory: str | None = None
    hue: str | None = None
    kind: Literal["", "points", "curves", "cloud"] = ""
    lines: tuple[Line, ...] = ()
    colors: Mapping[str, str] = field(default_factory=dict)
    title: str = ""
    also: Mapping[str, Chart] = field(default_factory=dict)
    xs: tuple[str, ...] | None = None
    ys: tuple[str, ...] | None = None
    steps: bool = False
    frames: str | None = None
    log_axes: Sequence[str] | None = None
    columns: tuple[str, ...] = ()
    split: Facets = field(default_factory=lambda: Facets({}))
    dash: str | None = None
    levels: tuple[Level, ...] = ()
    pictures: Callable[[xr.Dataset, Mapping[str, xr.Dataset]], xr.Dataset] | None = None
    more: Callable[[xr.Dataset, Mapping[str, xr.Dataset], xr.Dataset], xr.Dataset] | None = None
    published: Sequence[str] = ()
    x_over: str = ""
    x_label: str = ""
    log_x: Callable[[xr.DataArray], bool] | None = None
    aside: bool = False
    unknown: str = ""
    hue_text: Callable[[xr.Dataset], str] | None = None
    share_x: bool = True
    size: tuple[float, float, float] = (2.3, 3.8, 2.7)
    looks: Looks = BY_MARKER
    beside: Chart | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "hue", self.hue or self.split.hue)
        object.__setattr__(self, "levels", self.levels or (Level((Layer("points", self.y),)),))
        mark = self.levels[0].layers[0].mark
        object.__setattr__(self, "kind", self.kind or KINDS.get(mark, "points"))
        object.__setattr__(self, "steps", self.steps or mark in STEPPED)
        object.__setattr__(self, "theory", self.theory or (LAW if self._laws() else None))

    def _laws(self) -> list[Layer]:
        """Return the laws of the level of y that differ between colours."""
        layers = self.levels[self.place].layers
        return [layer for layer in layers if layer.mark == "law" and layer.once is False and callable(layer.y)]

    @property
    def place(self) -> int:
        """Return the place of the level that the interactive plot draws, counted from the top."""
        y = self.y.removeprefix(SCALED)
        return next((place for place, level in enumerate(self.levels) if level.y == y), 0)

    @property
    def across(self) -> str:
        """Return the variable of the horizontal axis of the picture."""
        return self.levels[0].layers[0].x or self.x

    def begins_at(self) -> Mapping[str, int]:
        """Return the places on axes at which the filters of the plot begin: those that the picture shows."""
        return {dim: place for dim, place in self.split.at.items() if isinstance(place, int)}

    def check(self, ds: Data, analyses: ByName) -> Chart:
        """Return the chart itself; InputError for published values that do not fit its axes."""
        if self.published:
            check_references(self.published, self.x, self.y, analyses[self.needs[0]] if self.needs else ds, self.split)
        return self

    def distances(self, ds: xr.Dataset, analyses: Mapping[str, xr.Dataset]) -> list[Distance]:
        """Return how far each dynamics in the picture is from the published values."""
        if not self.published:
            return []
        data = self.chosen(self.pictured(ds, analyses))
        return references(self.published, self.x, self.y).distances(data, self.split, self.dash)

    def picture(self, ds: xr.Dataset, analyses: Mapping[str, xr.Dataset]) -> mpl.figure.Figure:
        """Return the picture; constants of the datasets are coordinates."""
        from sweeplib.pictures.figures.kit.picture import picture_of

        return picture_of(self, ds, analyses)

    def pictured(self, ds: xr.Dataset, analyses: Mapping[str, xr.Dataset]) -> xr.Dataset:
        """Return the data of the picture, along x; constants are coordinates already."""
        # without analyses the data are made of runs: only those that are drawn are read
        ds = ds if self.needs else self.split.selected(ds)
        make = self.pictures or self.data
        data = analyses[self.needs[0]] if make is None else make(ds, analyses)
        data = data if self.more is None else self.more(ds, analyses, data)
        return data if data[self.across].dims else data.expand_dims(self.across)

    def chosen(self, data: xr.Dataset) -> xr.Dataset:
        """Return the part of the data of the picture that it shows; without analyses `pictured` has selected it."""
        return self.split.selected(data) if self.needs else data

    def labelled(self, ds: xr.Dataset, analyses: Mapping[str, xr.Dataset]) -> xr.Dataset:
        """Return the data of the interactive plot: at the time that the picture shows, if it is a single one.

        If `theory` is the name of a law that is a function, the data have it at their points.
        """
        whole = {name: with_constants(analysis) for name, analysis in analyses.items()}
        data = whole[self.needs[0]] if self.data is None else self.data(with_constants(ds), whole)
        data = data if self.frames else at_chosen_time(data, self.split)
        if self.theory is None or self.theory in data:
            return data
        laws = self._laws()
        heights = [_at_points(law, data, self) for law in laws if self.theory in (law.name, LAW)]
        return data.assign({self.theory: reduce(xr.DataArray.fillna, heights)}) if heights else data

    def page(self, ds: xr.Dataset, analyses: Mapping[str, xr.Dataset]) -> tuple[Chart, xr.Dataset, xr.Dataset]:
        """Return the chart of the page, its data and the dataset: of the top level of the picture, in its units.

        A variable in units of the picture's axes (`x_over`, `over`) has the name of the plain one after `scaled_`; the
        runs of the dataset get such a variable too.
        """
        data, top = self.labelled(ds, analyses), self.levels[0]
        if not (self.x_over or top.over or top.range):
            return self._with_log_axes_of_picture(data, data), data, ds
        whole = {name: with_constants(analysis) for name, analysis in analyses.items()}
        units = data if self.more is None else self.more(with_constants(ds), whole, data)
        declared = self
        if self.x_label and self.x_over and bool(self.split.selected(units[self.x_over]).notnull().all()):
            at = _named(units[self.x] / units[self.x_over], self.x_label, units[self.x])
            declared = replace(declared, x=f"{SCALED}{self.x}", hover=(self.x, *self.hover))
            data = data.assign_coords({declared.x: at})
        if top.over:
            declared = replace(declared, y=f"{SCALED}{self.y}", theory=self.theory and f"{SCALED}{self.theory}")
            data = data.assign(_scaled(data, self.y, self.theory, top, top.unit(units)))
            if (runs := self.y.removesuffix("_mean")) in ds:
                # the label of the axis is that of a mean: single runs have its symbol without the brackets
                symbol = top.label[top.label.find("$") :].replace(r"\langle", "").replace(r"\rangle", "")
                ds = ds.assign({f"{SCALED}{runs}": _named(ds[runs] / top.unit(units), symbol, ds[runs])})
        return declared._with_log_axes_of_picture(data, units), data, ds

    def is_log_x(self, places: xr.DataArray) -> bool:
        """Return whether the horizontal axis is logarithmic, on which the values `places` lie; curves are over time.

        By `log_x` if there is one, else by `log_axes`, else by the values.
        """
        if self.log_x is not None:
            return self.log_x(places)
        by_values = logarithmic_time(places) if self.kind == "curves" else logarithmic(places.values)
        return is_log("x", self.log_axes, by_values)

    def _with_log_axes_of_picture(self, data: xr.Dataset, with_ranges: xr.Dataset) -> Chart:
        """Return the chart with `log_axes` as its picture chooses them, from the values that the picture shows.

        with_ranges : the data with the variable `range` of a level, which only the picture needs.
        """
        if self.z or self.kind == "cloud":  # maps and clouds choose their own
            return self
        selected, level = self.split.selected(data), self.levels[self.place]
        heights = self.split.selected(with_ranges)[level.range] if level.range in with_ranges else selected[self.y]
        log = {"x": self.is_log_x(selected[self.x]), "y": level.is_logarithmic(heights.values, self.log_axes)}
        return replace(self, log_axes=[axis for axis, chosen in log.items() if chosen])


def along(data: xr.Dataset, name: str) -> str:
    """Return the axis along which a coordinate is drawn: itself if it is one, else one of its dimensions.

    Preferred are the ranks of runs and units, then the time, then axes that are no fields of the problem, the longest.
    """
    if name in data.dims:
        return name

    def order(dim: str) -> tuple[bool, bool, bool, int]:
        """Return the key by which the preferred dimension is least."""
        return dim not in ("rank", "unit"), dim != "time", dim in (*PARAMETERS, SWEEP), -data.sizes[dim]

    dims = sorted(map(str, data[name].dims), key=order)
    return dims[0]


def _scaled(
    data: xr.Dataset, y: str, theory: str | None, level: Level, unit: xr.DataArray | float
) -> dict[str, xr.DataArray]:
    """Return y over a unit, labelled as the axis of the level, with its interval and its theory, by their new names."""
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


def _at_points(law: Layer, data: xr.Dataset, chart: Chart) -> xr.DataArray:
    """Return the heights of a law, which is the same for all dynamics, at the points of y."""
    assert callable(law.y)
    x = chart.x
    points = xr.broadcast(data[x], data[chart.y].isel({"dynamics": 0}, drop=True, missing_dims="ignore"))[0]
    heights = points.astype(float).copy(data=np.full(points.shape, np.nan))
    others = [dim for dim in points.dims if not data[x].dims or dim != along(data, x)]
    for place in np.ndindex(*(points.sizes[dim] for dim in others)):
        subset = data.isel(at := dict(zip(others, place, strict=True)))
        ordinates = law.y(subset, subset[x].values.astype(float).ravel())
        heights[at] = ordinates if subset[x].dims else ordinates[0]
    return labelled(heights, law.label or law.name)
