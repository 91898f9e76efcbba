"""What an interactive plot of the report shows: a declaration over labelled data, drawn by the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from sweeplib.analysis.constants import with_constants
from sweeplib.registry import Registry

if TYPE_CHECKING:
    import xarray as xr

    Data = Callable[[xr.Dataset, Mapping[str, xr.Dataset]], xr.Dataset]

Line = tuple[float, float, str]


@dataclass(frozen=True)
class Interactive:
    """An interactive plot of `y` against `x`, or with `z` a map of z over both; all names of variables of the data.

    The data are the first analysis of `needs`, or what `data(ds, analyses)` makes of the dataset and those analyses.
    Labels are their attributes; the error of y is y_error, its interval y_low and y_high, where they are there: of the
    `confidence` in the attributes of the data, or what their attribute `interval` says. `also` are variables that
    hovering shows besides, `theory` is one that is drawn as a curve. `kind`: points with error bars, or curves with a
    band. `hue` is the axis of the colours, by default the first that can be; all other axes become filters. `lines`
    (slope, intercept, name) lie over a map, whose classes have the `colors` given. `figure` is the static figure that
    it stands beside.
    """

    x: str
    y: str
    z: str | None = None
    needs: tuple[str, ...] = ()
    data: Data | None = None
    also: tuple[str, ...] = ()
    theory: str | None = None
    hue: str | None = None
    kind: Literal["points", "curves"] = "points"
    lines: tuple[Line, ...] = ()
    colors: Mapping[str, str] = field(default_factory=dict)
    title: str = ""
    figure: str = ""

    def labelled(self, ds: xr.Dataset, analyses: Mapping[str, xr.Dataset]) -> xr.Dataset:
        """Return the data that it shows, from a dataset and the analyses that it needs."""
        whole = {name: with_constants(analysis) for name, analysis in analyses.items()}
        return whole[self.needs[0]] if self.data is None else self.data(with_constants(ds), whole)


INTERACTIVE: Registry[Interactive] = Registry("interactive plot")
