"""Interactive: the declaration of an interactive plot, which the report draws from labelled data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from sweeplib.analysis.kit.problem_fields import with_constants
from sweeplib.analysis.kit.sweep_axis import SWEEP
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.base.registry import Registry
from sweeplib.networks.problem import PARAMETERS

if TYPE_CHECKING:
    from sweeplib.pictures.figures.kit.distances import Distance

Line = tuple[float, float, str]


@dataclass(frozen=True)
class Interactive:
    """An interactive plot of `y` against `x` or, with `z`, a map of z over x and y.

    Labels are the attributes of the variables. If the data have y_error, or y_low and y_high, these are drawn as the
    error or interval of y; the attribute `confidence` or `interval` of the data describes the interval.

    x, y, z : names of variables of the data.
    needs : the analyses that the plot needs. The data are the first one, unless `data` is given.
    data : function that returns the data from the dataset and these analyses.
    hover : other variables that are shown under the mouse.
    theory : a variable that is drawn as a curve.
    kind : points with error bars, curves with a band, or a cloud: points that nothing connects.
    hue : the axis of the colours, by default the first suitable one. All other axes become filters.
    lines : lines (slope, intercept, name) over a map.
    colors : the colour of each class of a map.
    figure : the static figure that the report places beside the plot.
    xs, ys : the other variables that a reader may choose for x and for y; None: all numbers of the data that fit.
    steps : whether curves are steps, each value holding up to the next one.
    frames : an axis of which one value is shown at a time, chosen by a slider and played by a button.
    log_axes : those of "x" and "y" that are logarithmic; None: the values decide.
    columns : the columns of a table of points that are axes of the plot.
    """

    x: str
    y: str
    z: str | None = None
    needs: tuple[str, ...] = ()
    data: Callable[[xr.Dataset, Mapping[str, xr.Dataset]], xr.Dataset] | None = None
    hover: tuple[str, ...] = ()
    theory: str | None = None
    hue: str | None = None
    kind: Literal["points", "curves", "cloud"] = "points"
    lines: tuple[Line, ...] = ()
    colors: Mapping[str, str] = field(default_factory=dict)
    title: str = ""
    figure: str = ""
    xs: tuple[str, ...] | None = None
    ys: tuple[str, ...] | None = None
    steps: bool = False
    frames: str | None = None
    log_axes: Sequence[str] | None = None
    columns: tuple[str, ...] = ()

    def begins_at(self) -> Mapping[str, int]:
        """Return the places on axes at which the filters begin; at the first one on the other axes."""
        return {}

    def distances(self, ds: xr.Dataset, analyses: Mapping[str, xr.Dataset]) -> Sequence[Distance]:
        """Return how far each dynamics is from published values; none without a picture."""
        return []

    def page(self, ds: xr.Dataset, analyses: Mapping[str, xr.Dataset]) -> tuple[Interactive, xr.Dataset, xr.Dataset]:
        """Return what the page draws, by the names of its axes, its data, and the dataset with the runs behind it."""
        return self, self.labelled(ds, analyses), ds

    def labelled(self, ds: xr.Dataset, analyses: Mapping[str, xr.Dataset]) -> xr.Dataset:
        """Return the data of the plot, from a dataset and the analyses that it needs."""
        whole = {name: with_constants(analysis) for name, analysis in analyses.items()}
        return whole[self.needs[0]] if self.data is None else self.data(with_constants(ds), whole)


INTERACTIVE: Registry[Interactive] = Registry("interactive plot")


def along(data: xr.Dataset, name: str) -> str:
    """Return the axis of a coordinate: itself; the ranks of runs, units, the time, or else no field of the problem."""
    if name in data.dims:
        return name

    def order(dim: str) -> tuple[bool, bool, bool, int]:
        return dim not in ("rank", "unit"), dim != "time", dim in (*PARAMETERS, SWEEP), -data.sizes[dim]

    dims = sorted(map(str, data[name].dims), key=order)
    return dims[0]
