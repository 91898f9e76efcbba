"""Runs of a sweep as fractions: the declaration of a distribution, and its picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib.analysis.kit.labels import dynamics_label
from sweeplib.engine.base.arrays import wide
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.pictures.figures.kit.chart import Chart
from sweeplib.pictures.figures.kit.labels import dynamics_order, wrapped_label
from sweeplib.pictures.figures.kit.legend import Entry, hue_entries, legend_below
from sweeplib.pictures.figures.kit.panels import mark_empty, panels_of
from sweeplib.pictures.figures.kit.points import Curve
from sweeplib.pictures.figures.kit.style import INK, line_look, plain_ticks
from sweeplib.statistics.survival import survival_curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

DASHES: tuple[Any, ...] = ("solid", (0, (4, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)))
LONG_DASHES: tuple[Any, ...] = ("solid", (0, (6, 1.5, 1, 1.5)), (0, (10, 2)), (0, (6, 1.5, 1, 1.5, 1, 1.5)))
"""The dashes of several dynamics beside laws, which have shorter ones."""
HANDLE = 3.6
"""The length in font sizes of the lines of a legend with long dashes: enough for two of the longest."""
CENSORED: dict[str, Any] = {"linestyle": "none", "marker": "|", "markersize": 7, "markeredgewidth": 1.0}
"""The mark of the end of a run that did not exit."""
MOST_PLACES = 1000
"""The number of steps of a curve above which it is thinned."""


@dataclass(frozen=True)
class Runs(Chart):
    """A chart of distributions over the seeds.

    quantity : the variable of the dataset whose distribution is drawn.
    sample : function of the dataset that returns `value`, `end` and `used` of each run; without a value, a used run was
        watched until its end. With laws also `applies`: where these hold.
    survival : whether the fraction that is left is drawn, from the time 0 on, with strokes at the ends of runs.
    laws : curves of the fraction at times up to the last value; `marks` at (place, 0) by their law, a place.
    """

    quantity: str = ""
    sample: Callable[[xr.Dataset], xr.Dataset] | None = None
    confidence: float = 0.95
    label: str = ""
    survival: bool = False
    laws: tuple[Curve, ...] = ()
    marks: Mapping[str, Callable[[xr.Dataset], float]] = field(default_factory=dict)

    def picture(self, ds: xr.Dataset, analyses: Mapping[str, xr.Dataset]) -> Drawing:
        """Return the picture: a step function for each dynamics, with a band for the first one."""
        assert self.sample is not None
        del analyses
        sample = self.sample(ds)
        data = self.split.selected(sample)
        panels = panels_of(data, self.split, width=2.5, alone=4.0, height=2.6, share_x=not self.survival, whole=sample)
        used = data["used"].any([dim for dim in data["used"].dims if dim != "dynamics"])
        names = dynamics_order(data["dynamics"].values[used.values])
        log = not self.survival and wide(data["value"].values)
        latest = {}
        for place, subset in self.split.parts(data):
            latest[place] = _latest(subset)
        for place, index, series in self.split.series(data):
            self._series(panels.stacks[place][0], series, index, names, latest[place])
        mark_empty(panels)
        for (axes,) in panels.stacks:
            if log:
                axes.set_xscale("log")
                plain_ticks(axes.xaxis)
            axes.set_ylim(0.0 if self.survival else -0.02, 1.02)
            if self.survival:
                axes.set_xlim(left=0.0)
        panels.xlabel(wrapped_label(ds[self.quantity], 26))
        panels.ylabel(self.label)
        legend_below(panels.drawing, self._entries(data, names), *[HANDLE] * self.survival)
        return panels.drawing

    def _dashes(self, place: int) -> Any:
        dashes = LONG_DASHES if self.survival else DASHES
        return dashes[place % len(dashes)]

    def _series(self, axes: Axes, series: xr.Dataset, index: int, names: list[str], latest: float) -> None:
        """Draw the curves of one colour, and the laws if they hold for it."""
        here = [name for name in names if bool(series["used"].sel(dynamics=name).any())]
        for name in here:
            run, place = series.sel(dynamics=name), names.index(name)
            values, ends = (run[column].values[run["used"].values] for column in ("value", "end"))
            line = line_look(index, name) | {"linestyle": self._dashes(place)}
            places, heights, low, high = self._steps(values, ends, latest)
            axes.step(places, heights, where="post", zorder=3 - place, **line)
            if name == here[0]:
                band = {"color": line["color"], "alpha": 0.2, "linewidth": 0, "zorder": 1}
                axes.fill_between(places, low, high, step="post", **band)
            if self.survival:
                watched = np.unique(ends[~np.isfinite(values) & np.isfinite(ends)])
                at = heights[np.searchsorted(places, watched, side="right") - 1]
                axes.plot(watched, at, **CENSORED | {"color": line["color"], "gid": f"{line['gid']} censored"})
        if self.laws and bool(series["applies"]) and bool(series["value"].notnull().any()):
            self._laws(axes, series, index)

    def _steps(self, values: np.ndarray, ends: np.ndarray, latest: float) -> tuple[np.ndarray, ...]:
        """Return the places of a curve, its heights and the ends of its band; flat until the last end without values.

        The curve of diverged runs, which never exit, goes on to the `latest` time.
        """
        reached = np.isfinite(values)
        steps = survival_steps(values[reached], ends[~reached], self.confidence)
        indices = np.unique(np.linspace(0, len(steps[0]) - 1, min(len(steps[0]), MOST_PLACES)).round().astype(int))
        places, survival, low, high = (row[indices] for row in steps)
        if reached.any() and not self.survival:
            places[0] = places[1]
        if self.survival and np.isinf(ends[~reached]).any():
            places, survival, low, high = (np.append(row, row[-1]) for row in (places, survival, low, high))
            places[-1] = max(places[-1], latest)
        return (places, survival, low, high) if self.survival else (places, 1.0 - survival, 1.0 - high, 1.0 - low)

    def _laws(self, axes: Axes, series: xr.Dataset, index: int) -> None:
        times = np.linspace(0.0, 1.05 * float(series["value"].max()), 200)
        for law in self.laws:
            assert callable(law.of)
            style = line_look(index, law.name) | {"linestyle": law.dashes, "linewidth": 1.0, "zorder": 5}
            axes.plot(times, law.of(series, times), **style)
        for name, place in self.marks.items():
            axes.plot(place(series), 0.0, marker="v", markersize=6, clip_on=False, zorder=6, **line_look(index, name))

    def _entries(self, data: xr.Dataset, names: list[str]) -> list[list[Entry]]:
        """Return the entries of the legend, in groups."""
        kinds: list[Entry] = [
            ({"color": INK, "linestyle": self._dashes(place), "gid": name}, dynamics_label(name))
            for place, name in enumerate(names)
        ]
        laws: list[Entry] = [
            ({"color": INK, "linestyle": law.dashes, "linewidth": 1.0, "gid": law.name}, law.label) for law in self.laws
        ]
        mark = {"color": INK, "marker": "v", "linestyle": "none", "markersize": 6}
        marks: list[Entry] = [(mark | {"gid": name}, f"{name} exit time") for name in self.marks]
        watched = np.isfinite(data["end"]) & data["used"] & data["value"].isnull()
        ends: list[Entry] = [(CENSORED | {"color": INK, "gid": "censored"}, "end of a run\nthat did not exit")]
        hues = hue_entries(data, self.split, marker="none", linewidth=2.0)
        return [hues, kinds, [*laws, *marks, *(ends if self.survival and bool(watched.any()) else [])]]


def survival_steps(exits: np.ndarray, ends: np.ndarray, confidence: float) -> tuple[np.ndarray, ...]:
    """Return the places, the heights and the band of a Kaplan-Meier curve from (0, 1) on.

    Without exits all runs are left until the last of the ends.
    """
    if exits.size:
        places, *curves = survival_curve(exits, ends, confidence)
    else:
        places = np.array([np.max(ends, where=np.isfinite(ends), initial=0.0)])
        curves = [np.ones(1), np.full(1, np.nan), np.full(1, np.nan)]
    return np.append(0.0, places), *(np.append(1.0, curve) for curve in curves)


def _latest(subset: xr.Dataset) -> float:
    """Return the last time of an exit, or of the end of a run that could have exited later; else of any run."""
    times = subset["value"].fillna(subset["end"]).where(subset["used"])
    finite = times.where(np.isfinite(times))
    if bool(finite.notnull().any()) or "stopped" not in subset:
        return float(finite.max())
    return float(subset["stopped"].max())
