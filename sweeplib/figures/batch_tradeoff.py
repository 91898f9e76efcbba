"""Steps and samples to the exit against the batch size, with the fitted powers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib.analysis.headlines import between
from sweeplib.figures.facets import Facets, arranged, measured_dynamics, numbered_parts
from sweeplib.figures.figure import FIGURES, Figure, Hue, Panel, Where
from sweeplib.figures.labels import MINUS, axis_label, value_label, wrapped_label
from sweeplib.figures.legend import Entry, dynamics_entries, legend_below
from sweeplib.figures.panels import panel_grid
from sweeplib.figures.style import INK, dynamics_look, line_look, look, plain_ticks

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from sweeplib.storage.outline import Outline

CAPTION = (
    "Mean numbers of steps and of fresh samples to the exit against the batch size, with standard errors over the "
    "seeds. Lines: powers of the batch size fitted to the steps of the first dynamics, with their slope and interval, "
    "over the batch sizes of the fit. Points with too many runs without an exit are left out."
)
LEVELS = ("steps", "samples")
NARROW = 0.05
"""The width of an interval below which a slope is written with three digits."""


def batch_tradeoff(
    ds: xr.Dataset,
    analyses: Mapping[str, xr.Dataset],
    *,
    where: Where = None,
    panel: Panel = None,
    hue: Hue = None,
) -> Drawing:
    """Return a figure of steps above and samples below; axes not selected or drawn are fixed at their middle value."""
    split = _arranged(ds, analyses, where=where, panel=panel, hue=hue)
    found = analyses["batch_tradeoff"]
    data = split.selected(found)
    parts = split.panels(data)
    panels = panel_grid(len(parts), width=2.3, alone=3.8, height=4.4, stack=(1.0, 1.0))
    shown = measured_dynamics(data, "steps")
    for axes in panels.stacks[0]:
        axes.set_xscale("log")
        axes.set_yscale("log")
    for place, part in numbered_parts(data, parts):
        for index, one in numbered_parts(part, split.hues(part)):
            for axes, level in zip(panels.stacks[place], LEVELS, strict=True):
                _points(axes, one, level, shown, index)
                if shown:
                    _fit(axes, one.sel(dynamics=shown[0]), level, index, found.attrs["largest_batch"])
        if split.panel:
            panels.title(place, value_label(part[split.panel], data[split.panel]))
    for axes in panels.stacks[0]:
        plain_ticks(axes.yaxis, (1.0, 2.0, 5.0))
    panels.xlabel(axis_label(data["batch_size"]))
    for number, name in enumerate(LEVELS):
        panels.ylabel(wrapped_label(data[name], 22), level=number)
    panels.note(split.title(data))
    kinds = dynamics_entries(shown) if len(shown) > 1 else []
    legend_below(panels.drawing, [_hues(data, split, shown), kinds])
    return panels.drawing


def _arranged(_: xr.Dataset | Outline, analyses: Mapping[str, xr.Dataset | Outline], **choice: Any) -> Facets:
    return arranged(analyses["batch_tradeoff"], {"dynamics", "batch_size"}, **choice)


def _points(axes: Axes, one: xr.Dataset, level: str, shown: list[str], index: int) -> None:
    for name in shown:
        run, style = one.sel(dynamics=name), dynamics_look(name, shown, look(index)) | {"linestyle": "none"}
        heights, errors = (run[part].values for part in (level, f"{level}_error"))
        axes.errorbar(run["batch_size"].values, heights, np.nan_to_num(errors), elinewidth=0.8, **style)


def _fit(axes: Axes, one: xr.Dataset, level: str, index: int, largest: float) -> None:
    sizes = one["batch_size"].values[(one["steps"].notnull() & (one["batch_size"] <= largest)).values].astype(float)
    if not len(sizes) or not np.isfinite(one["exponent"].item()):
        return
    repeats = float(one["repeats"]) if "repeats" in one.coords else 1.0
    ends = np.array([sizes.min(), sizes.max()])
    steps = one["prefactor"].item() * ends ** one["exponent"].item()
    axes.plot(ends, steps if level == "steps" else steps * ends / repeats, **line_look(index), linewidth=0.9, zorder=1)


def _hues(data: xr.Dataset, split: Facets, shown: list[str]) -> list[Entry]:
    """Return an entry per colour, with the slope of the steps if there is one panel."""
    found: list[Entry] = []
    for index, one in numbered_parts(data, split.hues(data)):
        name = value_label(one[split.hue], data[split.hue]) if split.hue else ""
        slope = _slope(one.sel(dynamics=shown[0])) if shown and not split.panel else ""
        if text := ": ".join(part for part in (name, slope) if part):
            found.append(
                (look(index) | {"color": look(index)["color"] if split.hue else INK} | {"linestyle": "none"}, text)
            )
    return found


def _slope(one: xr.Dataset) -> str:
    exponent, low, high = (one[name].item() for name in ("exponent", "exponent_low", "exponent_high"))
    if not np.isfinite(exponent):
        return ""
    digits = 2 if high - low > NARROW else 3
    return f"slope {exponent:.{digits}f} {between(f'{low:.{digits}f}', f'{high:.{digits}f}')}".replace("-", MINUS)


FIGURES.register(
    "batch_tradeoff",
    Figure("batch_tradeoff", batch_tradeoff, CAPTION, needs=("batch_tradeoff",), arrange=_arranged),
)
