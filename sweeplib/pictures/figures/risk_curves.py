"""The risk along runs of every dynamics that was run, with the spread over the seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from sweeplib.analysis.kit.labels import dynamics_label
from sweeplib.analysis.kit.two_gaussians import least_risk
from sweeplib.analysis.kit.variables import is_stochastic, require
from sweeplib.engine.base.arrays import DECADE, geometric, wide
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import outline_of
from sweeplib.pictures.figures.figure import FIGURES, Hue, LogAxes, Panel, Published, Where
from sweeplib.pictures.figures.kit.chart import ByName, Chart, Data, chart_figure
from sweeplib.pictures.figures.kit.facets import Facets, arranged, measured_dynamics
from sweeplib.pictures.figures.kit.labels import axis_label, value_label
from sweeplib.pictures.figures.kit.legend import Entry, legend_below
from sweeplib.pictures.figures.kit.panels import panels_of
from sweeplib.pictures.figures.kit.references import References, references
from sweeplib.pictures.figures.kit.scales import above_error, is_log
from sweeplib.pictures.figures.kit.style import COLOURS, DASHES, INK, line_look, look, plain_ticks, set_log
from sweeplib.statistics.labelled import labelled
from sweeplib.statistics.lost_runs import has_run, sample_of, values_of, without_value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

CAPTION = (
    "Population risk against time: the median over the seeds of each dynamics, with a band from the 10 % to the 90 % "
    "quantile for stochastic dynamics. Dynamics without noise: thin dark lines on top. Curves end where more than 2 % "
    "of the runs have no value because they stopped at their exits, diverged, timed out or became inaccurate. A "
    "logarithmic axis has no place for the time 0, and for risks that are not above their error. Dash-dotted and "
    "level, for two Gaussians: the least risk of students of any width."
)
BAND = (0.1, 0.5, 0.9)
DARKER, LIGHTER = 0.6, 0.55
LEAST: dict[str, Any] = {"linestyle": (0, (6, 2, 1, 2)), "linewidth": 0.9, "zorder": 1, "gid": "least"}
MARKS = 5
"""The number of markers on each curve."""


def risk_curves(
    ds: Data,
    analyses: ByName,
    *,
    where: Where = None,
    panel: Panel = None,
    hue: Hue = None,
    log_axes: LogAxes = None,
    reference: Published = (),
) -> Chart:
    """Declare the risk against time; axes that are not selected or drawn are fixed at their middle value."""
    require(ds, "risk")
    split = arranged(outline_of(ds).only("risk"), {"dynamics", "seed", "time"}, where, panel, hue)
    return Chart(
        x="time",
        y="risk",
        data=partial(risk_bands, log_axes=log_axes),
        kind="curves",
        split=split,
        published=reference,
        paint=lambda ds, _: _painted(ds, split, references(reference, "time", "risk"), log_axes),
        log_axes=log_axes,
    )


def _painted(ds: xr.Dataset, split: Facets, published: References, log_axes: Sequence[str] | None) -> Drawing:
    ds = ds.assign(risk=above_error(ds["risk"], ds, DECADE, log_axes))
    data = split.selected(ds[["risk", "status"]])
    panels = panels_of(data, split, width=2.4, alone=4.0, height=2.6)
    names = measured_dynamics(data, "risk")
    for place, index, series in split.series(data):
        axes = panels.stacks[place][0]
        _curves(axes, series, names, index, marked=split.hue is not None)
        published.draw(axes, series)
        _least(axes, series, index)
    axes = panels.stacks[0][0]
    if is_log("y", log_axes, wide(data["risk"].values, DECADE)):
        set_log(axes, "y")
        plain_ticks(axes.yaxis)
    if is_log("x", log_axes, geometric(data["time"].values)):
        set_log(axes, "x")
        plain_ticks(axes.xaxis)
    panels.xlabel(axis_label(ds["time"]))
    panels.ylabel(axis_label(ds["risk"]))
    if not names:
        panels.note("no run has a value")
    bands = split.selected(risk_bands(ds, {}, log_axes)) if published.files else data
    _legend(panels.drawing, data, split, names, published.entries(bands, split))
    return panels.drawing


def risk_quantiles(ds: xr.Dataset, levels: Sequence[float]) -> xr.DataArray:
    """Return quantiles of the risk over the seeds at `levels`, a dim `quantile`; NaN where too many runs have no value.

    The remaining runs are then not a random sample (`analysis.lost_runs`).
    """
    sample = sample_of(values_of(ds, "risk"), ds, of_means=False)
    some = sample.notnull().any("seed")
    return sample.where(some, 0.0).quantile(list(levels), "seed").where(some)


def _curves(axes: Axes, series: xr.Dataset, names: list[str], index: int, *, marked: bool) -> None:
    """Draw the curves of each dynamics; the first one has markers if `marked`, to distinguish colours in grey print."""
    marks = _marks(index, series.sizes["time"]) if marked else {}
    for place, name in enumerate(names):
        low, middle, high = risk_quantiles(series.sel(dynamics=name), BAND)
        if not bool(middle.notnull().any()):
            continue
        line = line_look(index, name) | _line(name, place, look(index)["color"])
        axes.plot(series["time"], middle, **line, **marks)
        marks = {}
        if is_stochastic(name) and series.sizes["seed"] > 1:
            axes.fill_between(series["time"], low, high, color=look(index)["color"], alpha=0.2, linewidth=0, zorder=1)


def _least(axes: Axes, series: xr.Dataset, index: int) -> None:
    """Draw the least risk, where it is known."""
    least = float(least_risk(series))
    if least > 0.0:
        axes.axhline(least, **LEAST | {"color": look(index)["color"]})


def _marks(index: int, times: int) -> dict[str, Any]:
    """Return the marker of a hue, at other times than those of other hues, to distinguish them without colours."""
    step = max(times // MARKS, 1)
    return {
        "marker": look(index)["marker"],
        "markersize": 4.0,
        "markerfacecolor": look(index)["color"],
        "markeredgecolor": "white",
        "markeredgewidth": 0.5,
        "markevery": (step * (2 * index + 1) // (2 * len(COLOURS)), step),
    }


def _line(name: str, place: int, colour: str) -> dict[str, Any]:
    """Return a broad light line for the first stochastic dynamics, thin dark lines on top for those without noise."""
    from matplotlib.colors import to_rgb

    dashes = DASHES[place % len(DASHES)]
    if not is_stochastic(name):
        shade = tuple(DARKER * channel for channel in to_rgb(colour))
        return {"color": shade, "linestyle": dashes, "linewidth": 1.0, "zorder": 4}
    if place > 0:
        return {"color": colour, "linestyle": dashes, "linewidth": 1.6, "zorder": 3}
    tint = tuple(1.0 - LIGHTER * (1.0 - channel) for channel in to_rgb(colour))
    return {"color": tint, "linestyle": dashes, "linewidth": 2.8, "zorder": 2}


def _legend(drawing: Drawing, data: xr.Dataset, split: Facets, names: list[str], published: list[Entry]) -> None:
    hues: list[Entry] = [
        (line_look(index) | {"marker": look(index)["marker"]}, value_label(series[split.hue], data[split.hue]))
        for index, series in split.colours(data)
        if split.hue
    ]
    kinds = [(_line(name, place, INK) | {"gid": name}, dynamics_label(name)) for place, name in enumerate(names)]
    least = LEAST | {"color": INK}, "least at infinite width"
    legend_below(drawing, [hues, kinds, [*published, least]])


def risk_bands(ds: xr.Dataset, _: Mapping[str, xr.Dataset], log_axes: Sequence[str] | None = None) -> xr.Dataset:
    """Return quantiles of the risk over the seeds until too many runs stopped, and the number of stopped runs."""
    lost = without_value(values_of(ds, "risk"), has_run(ds)).sum("seed")
    quantiles = risk_quantiles(ds.assign(risk=above_error(ds["risk"], ds, DECADE, log_axes)), BAND)
    names = {"risk_low": "10 % quantile of the", "risk": "median", "risk_high": "90 % quantile of the"}
    return xr.Dataset(
        {
            name: quantiles.isel(quantile=place, drop=True).assign_attrs(
                ds["risk"].attrs | {"long_name": f"{word} {ds['risk'].attrs['long_name']}"}
            )
            for place, (name, word) in enumerate(names.items())
        }
        | {"seeds_lost": labelled(lost, "runs without a value")}
    ).assign_attrs(interval="10 % to 90 % of the seeds")


FIGURES.add(chart_figure("risk_curves", risk_curves, CAPTION))
