"""The distribution of exits or of an observable over the seeds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib.analysis.averages import numbered
from sweeplib.analysis.labels import dynamics_label, labelled
from sweeplib.analysis.lost_runs import MOST_LOST, made, recorded, unless_lost, without_value
from sweeplib.analysis.passages import passages
from sweeplib.analysis.survival import survival_curve
from sweeplib.figures.facets import Facets, arranged, numbered_parts
from sweeplib.figures.figure import FIGURES, BandConfidence, Drawn, Figure, Hue, Panel, Where
from sweeplib.figures.interactive import Interactive
from sweeplib.figures.labels import dynamics_order, value_label, wrapped_label
from sweeplib.figures.legend import Entry, hue_entries, legend_below
from sweeplib.figures.panels import mark_empty, panel_grid
from sweeplib.figures.quantities import EXITS, at_last_time, recorded_quantity
from sweeplib.figures.scales import wide
from sweeplib.figures.style import DASHES, INK, line_look, plain_ticks
from sweeplib.storage.outline import outline_of

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from sweeplib.storage.outline import Outline

CAPTION = (
    "Fraction of the runs with at most the value on the horizontal axis, with a band of 95 % by default for the first "
    "dynamics. Exits are Kaplan-Meier curves, which end below 1 where runs did not exit. Points at which more than 2 % "
    "of the runs have no value are left out."
)
MOST_RUNS = 12_000
"""The number of runs of the interactive plot above which it has only the points of the figure."""
MOST_PLACES = 1000
"""The number of steps of a curve above which it is thinned."""


def distribution(
    ds: xr.Dataset,
    analyses: Mapping[str, xr.Dataset],
    *,
    y: Drawn = None,
    where: Where = None,
    panel: Panel = None,
    hue: Hue = None,
    confidence: BandConfidence = 0.95,
) -> Drawing:
    """Return the figure of exit_steps, exit_time or an observable at one time, by default the last.

    Other axes are fixed at `where`, or at their middle value.
    """
    name, split = _arranged(ds, analyses, y=y, where=where, panel=panel, hue=hue, confidence=confidence)
    data = split.selected(_sample(ds, name))
    parts = split.panels(data)
    panels = panel_grid(len(parts), width=2.5, alone=4.0, height=2.6)
    used = data["used"].any([dim for dim in data["used"].dims if dim != "dynamics"])
    shown = dynamics_order(data["dynamics"].values[used.values])
    axes = panels.stacks[0][0]
    if wide(data["value"].values):
        axes.set_xscale("log")
    for place, part in numbered_parts(data, parts):
        for index, one in numbered_parts(part, split.hues(part)):
            here = [kind for kind in shown if bool(one["used"].sel(dynamics=kind).any())]
            for kind in here:
                band = confidence if kind == here[0] else None
                _curve(panels.stacks[place][0], one.sel(dynamics=kind), (index, shown.index(kind), kind), band)
        if split.panel:
            panels.title(place, value_label(part[split.panel], data[split.panel]))
    mark_empty(panels)
    axes.set_ylim(-0.02, 1.02)
    if axes.get_xscale() == "log":
        plain_ticks(axes.xaxis, (1.0, 2.0, 5.0))
    panels.xlabel(wrapped_label(ds[name], 26))
    panels.ylabel("fraction of runs\nwith at most this value")
    panels.note(split.title(ds))
    _legend(panels.drawing, data, split, shown)
    return panels.drawing


def _arranged(
    ds: xr.Dataset | Outline,
    _: Mapping[str, xr.Dataset | Outline],
    *,
    y: str | None,
    where: Mapping[str, Any] | None,
    panel: str | None,
    hue: str | None,
    confidence: float,
) -> tuple[str, Facets]:
    outline = outline_of(ds)
    name = recorded_quantity(outline, y)
    measured = outline.only(name)
    return name, arranged(measured, {"dynamics", "seed"}, at_last_time(measured, where, panel, hue), panel, hue)


def _sample(ds: xr.Dataset, name: str) -> xr.Dataset:
    """Return the value of each run, where it is `used`; for runs without an exit `value` is NaN and `end` their end."""
    import xarray as xr

    if name in EXITS:
        found = passages(ds, name.removeprefix("exit_"))
        return xr.Dataset({"value": found.exit.where(found.used), "end": found.end, "used": found.used})
    values, run = recorded(ds, name), made(ds)
    kept = unless_lost(values, without_value(values, run), run, MOST_LOST)
    kept = numbered(kept)
    return xr.Dataset({"value": kept, "end": kept, "used": kept.notnull()})


def _curve(axes: Axes, one: xr.Dataset, place: tuple[int, int, str], confidence: float | None) -> None:
    """Draw one curve, with a band if `confidence` is given."""
    index, dash, kind = place
    used = one["used"].values
    values, ends = one["value"].values[used], one["end"].values[used]
    reached = np.isfinite(values)
    line = line_look(index, kind) | {"linestyle": DASHES[dash % len(DASHES)]}
    if not reached.any():
        if len(ends):
            latest = np.max(ends, where=np.isfinite(ends), initial=0.0)
            axes.plot([0.0, latest], [0.0, 0.0], zorder=3 - dash, **line)
        return
    places, left, low, high = survival_curve(values[reached], ends[~reached], confidence or 0.95)
    kept = np.unique(np.linspace(0, len(places) - 1, min(len(places), MOST_PLACES)).round().astype(int))
    places, left, low, high = (part[kept] for part in (places, left, low, high))
    start = places[0]
    axes.step(np.append(start, places), np.append(0.0, 1.0 - left), where="post", zorder=3 - dash, **line)
    if confidence is not None:
        bounds = np.append(0.0, 1.0 - high), np.append(0.0, 1.0 - low)
        band = {"color": line["color"], "alpha": 0.2, "linewidth": 0, "zorder": 1}
        axes.fill_between(np.append(start, places), *bounds, step="post", **band)


def _legend(drawing: Drawing, data: xr.Dataset, split: Facets, shown: list[str]) -> None:
    hues = hue_entries(data, split, marker="none", linewidth=2.0)
    kinds: list[Entry] = [
        ({"color": INK, "linestyle": DASHES[place % len(DASHES)], "gid": name}, dynamics_label(name))
        for place, name in enumerate(shown)
    ]
    legend_below(drawing, [hues, kinds])


def _interactive(
    ds: xr.Dataset, analyses: Mapping[str, xr.Dataset], *, y: str | None, confidence: float, **choice: Any
) -> Interactive:
    """Return the plot of the same curves; of the points of the figure alone, if there are too many for a page."""
    name, split = _arranged(ds, analyses, y=y, confidence=confidence, **choice)

    def data(whole: xr.Dataset, _: Mapping[str, xr.Dataset]) -> xr.Dataset:
        sample = _sample(whole, name)
        if "time" in sample.dims and "time" in split.at:
            sample = sample.isel(time=split.at["time"])
        sample = sample if sample["used"].size <= MOST_RUNS else split.selected(sample)
        return _curves(sample, confidence, whole[name].attrs)

    return Interactive(
        x="value",
        y="fraction",
        data=data,
        kind="curves",
        hue=split.hue,
        xs=(),
        ys=("fraction_left",),
        steps=True,
        title=f"Distribution of the {ds[name].attrs.get('long_name', name)} over the seeds",
    )


def _curves(sample: xr.Dataset, confidence: float, attrs: Mapping[str, Any]) -> xr.Dataset:
    """Return the curve of each sample over `seed` along the axis `rank`: its values and the fractions up to them."""
    import xarray as xr

    def curve(values: np.ndarray, ends: np.ndarray, used: np.ndarray) -> np.ndarray:
        found = np.full((4, values.size + 1), np.nan)
        reached = used & np.isfinite(values)
        if reached.any():
            places, left, low, high = survival_curve(values[reached], ends[used & ~reached], confidence)
            found[:, 0] = places[0], 0.0, np.nan, np.nan
            found[:, 1 : len(places) + 1] = places, 1.0 - left, 1.0 - high, 1.0 - low
        return found

    found = xr.apply_ufunc(
        curve,
        sample["value"],
        sample["end"],
        sample["used"],
        input_core_dims=[["seed"]] * 3,
        output_core_dims=[["part", "rank"]],
        vectorize=True,
    )
    value, fraction, low, high = (found.isel(part=part, drop=True) for part in range(4))
    said = "fraction of runs with at most this value"
    more = "fraction of runs with more than this value"
    curves = {
        "fraction": labelled(fraction, said),
        "fraction_low": labelled(low, f"{said}, lower bound"),
        "fraction_high": labelled(high, f"{said}, upper bound"),
        "fraction_left": labelled(1.0 - fraction, more),
        "fraction_left_low": labelled(1.0 - high, f"{more}, lower bound"),
        "fraction_left_high": labelled(1.0 - low, f"{more}, upper bound"),
        "value": labelled(value, attrs.get("long_name", "value"), attrs.get("symbol", "")),
    }
    rank = labelled(xr.DataArray(np.arange(value.sizes["rank"]), dims="rank"), "rank of the run")
    return xr.Dataset(curves).assign_coords(rank=rank).assign_attrs(confidence=confidence)


FIGURES.register(
    "distribution", Figure("distribution", distribution, CAPTION, arrange=_arranged, interactive=_interactive)
)
