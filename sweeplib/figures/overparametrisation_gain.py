"""The gain of overparametrisation against the width: steps of one unit over steps of p, each at its optimum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib import theory
from sweeplib.analysis.problem_fields import field
from sweeplib.figures.facets import Facets, numbered_parts
from sweeplib.figures.figure import FIGURES, Figure, Hue, Panel, Where
from sweeplib.figures.interactive import INTERACTIVE, Interactive
from sweeplib.figures.labels import axis_label, value_label, wrapped_label
from sweeplib.figures.legend import Entry, dynamics_entries, hue_entries, legend_below
from sweeplib.figures.over_width import dodged, over_width, stochastic_or_all, width_axis, with_width
from sweeplib.figures.panels import panel_grid
from sweeplib.figures.style import INK, THEORY_DASHES, beyond_look, dynamics_look, line_look, look, plain_ticks

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from sweeplib.storage.outline import Outline

CAPTION = (
    "The least mean exit steps of one student unit over those of p units, each at its own optimal learning rate, with "
    "bootstrap intervals over the seeds; an arrow where an optimum lies beyond the scanned learning rates, so that the "
    "gain is a bound. Dashed: theory for d → ∞, with the limit (12 + Δ)/(2 + Δ), the tick on the right; solid: theory "
    "with the noise of SGD at this d."
)
LIMIT: Any = THEORY_DASHES["quenched"]
WIDTHS = 25


def overparametrisation_gain(
    ds: xr.Dataset,
    analyses: Mapping[str, xr.Dataset],
    *,
    where: Where = None,
    panel: Panel = None,
    hue: Hue = None,
) -> Drawing:
    """Return a figure of the gain against p; by default with a panel for each d and a colour for each Δ."""
    split = _arranged(ds, analyses, where=where, panel=panel, hue=hue)
    data = with_width(split.selected(analyses["overparametrisation_gain"]))
    known = bool(data["gain_limit"].notnull().all())
    parts = split.panels(data)
    panels = panel_grid(len(parts), width=2.1, alone=3.6, height=2.8)
    shown = stochastic_or_all(data, "gain")
    for place, part in numbered_parts(data, parts):
        _panel(panels.stacks[place][0], part, split, shown, known)
        if split.panel:
            panels.title(place, value_label(part[split.panel], data[split.panel]))
    panels.xlabel(axis_label(data["p"]))
    panels.ylabel(wrapped_label(data["gain"], 30))
    panels.note(split.title(data))
    _legend(panels.drawing, data, split, shown)
    return panels.drawing


def _arranged(_: xr.Dataset | Outline, analyses: Mapping[str, xr.Dataset | Outline], **choice: Any) -> Facets:
    return over_width(analyses["overparametrisation_gain"], **choice)


def _panel(axes: Axes, part: xr.Dataset, split: Facets, shown: list[str], known: bool) -> None:
    hues = split.hues(part)
    for index, one in numbered_parts(part, hues):
        p = dodged(one["p"].values, index, len(hues))
        for name in shown:
            _points(axes, p, one.sel(dynamics=name), dynamics_look(name, shown, look(index)))
        if known:
            _theory(axes, one, index)
    axes.set_yscale("log")
    width_axis(axes, part["p"].values)
    plain_ticks(axes.yaxis, (1.0, 2.0, 3.0, 5.0))


def _points(axes: Axes, p: np.ndarray, one: xr.Dataset, looks: dict[str, Any]) -> None:
    gain, low, high = (one[f"gain{end}"].values for end in ("", "_low", "_high"))
    inside = ~one["at_edge"].values
    axes.errorbar(p[inside], gain[inside], yerr=[(gain - low)[inside], (high - gain)[inside]], elinewidth=0.9,
                  linestyle="none", **looks)  # fmt: skip
    axes.plot(p[~inside], gain[~inside], linestyle="none", zorder=4, **beyond_look(looks))


def _theory(axes: Axes, one: xr.Dataset, index: int) -> None:
    p = np.geomspace(1.0, max(float(one["p"].max()), 1.0), WIDTHS)
    Delta = float(field(one, "Delta"))
    gain = theory.overparametrisation_gain(p, Delta)
    axes.plot(p, gain, linewidth=0.9, linestyle=LIMIT, zorder=1, **line_look(index, "limit"))
    axes.plot(one["p"], one["gain_noise_corrected"], linewidth=0.9, zorder=1, **line_look(index, "corrected"))
    end: dict[str, Any] = {"linewidth": 1.8, "transform": axes.get_yaxis_transform(), "clip_on": False} | line_look(
        index, "end"
    )
    axes.plot([0.97, 1.0], [theory.overparametrisation_gain(np.inf, Delta)] * 2, **end)


def _legend(drawing: Drawing, data: xr.Dataset, split: Facets, shown: list[str]) -> None:
    beyond = beyond_look({"color": INK}) | {"linestyle": "none"}
    kinds = [*dynamics_entries(shown), (beyond, "bound: optimum beyond the scan")]
    lines: list[Entry] = [
        ({"color": INK, "linewidth": 0.9, "linestyle": LIMIT, "gid": "limit"}, r"theory, $d\to\infty$"),
        ({"color": INK, "linewidth": 0.9, "gid": "corrected"}, "noise-corrected theory"),
        ({"color": INK, "linewidth": 1.8, "gid": "end"}, r"$p\to\infty$: $(12+\Delta)/(2+\Delta)$"),
    ]
    legend_below(drawing, [hue_entries(data, split), kinds, lines])


FIGURES.register(
    "overparametrisation_gain",
    Figure(
        "overparametrisation_gain",
        overparametrisation_gain,
        CAPTION,
        needs=("overparametrisation_gain",),
        arrange=_arranged,
    ),
)
INTERACTIVE.register(
    "gains",
    Interactive(
        x="p",
        y="gain",
        needs=("overparametrisation_gain",),
        hover=("gain_limit", "gain_quenched", "at_edge"),
        theory="gain_noise_corrected",
        figure="overparametrisation_gain",
    ),
)
