"""How many times fewer steps wide students need, each at its best learning rate, against their width."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib import theory
from sweeplib.analysis.cells import field
from sweeplib.figures.facets import Facets, each
from sweeplib.figures.figure import FIGURES, Figure
from sweeplib.figures.interactive import INTERACTIVE, Interactive
from sweeplib.figures.labels import axis_label, value_label, wrapped_label
from sweeplib.figures.legend import dynamics_entries, hue_entries, legend_below
from sweeplib.figures.over_width import dodged, measured_dynamics, over_width, width_axis
from sweeplib.figures.style import INK, THEORY_DASHES, dynamics_look, look, plain_ticks

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

CAPTION = (
    "The least mean exit steps of one student unit over those of p units, each at its own optimal learning rate, with "
    "bootstrap intervals over the seeds; an arrow where an optimum lies beyond the learning rates scanned, so that the "
    "gain is a bound. Dashed: theory for d → ∞, which ends at (12 + Δ)/(2 + Δ), the tick on the right; solid: theory "
    "with the noise of SGD at this d."
)
LIMIT: Any = THEORY_DASHES["quenched"]
WIDTHS = 25


def overparametrisation_gain(
    ds: xr.Dataset,
    analyses: Mapping[str, xr.Dataset],
    *,
    where: Mapping[str, Any] | None = None,
    panel: str | None = None,
    hue: str | None = None,
) -> Drawing:
    """A figure of the gain against p; by default a panel for each d and a colour for each Δ."""
    from matplotlib.figure import Figure as Drawing

    data, split = over_width(analyses["overparametrisation_gain"], where, panel, hue)
    known = bool(data["gain_limit"].notnull().all())
    panels = split.panels(data)
    width = min(7.0, 1.2 + 2.1 * len(panels)) if len(panels) > 1 else 3.6
    drawing = Drawing(figsize=(width, 3.3), layout="constrained")
    grid = drawing.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)[0]
    shown = measured_dynamics(data, "gain")
    for column, part in each(data, panels):
        _panel(grid[column], part, split, shown, known)
        if split.panel:
            grid[column].set_title(value_label(part[split.panel]))
        grid[column].set_xlabel(axis_label(data["p"]))
    grid[0].set_ylabel(wrapped_label(data["gain"], 30))
    _legend(drawing, data, split, shown, known)
    return drawing


def _panel(axes: Axes, part: xr.Dataset, split: Facets, shown: list[str], known: bool) -> None:
    hues = split.hues(part)
    for index, one in each(part, hues):
        p = dodged(one["p"].values, index, len(hues))
        for name in shown:
            _points(axes, p, one.sel(dynamics=name), dynamics_look(name, shown, look(index)))
        if known:
            _theory(axes, one, look(index)["color"])
    axes.set_yscale("log")
    width_axis(axes, part["p"].values)
    plain_ticks(axes.yaxis, (1.0, 2.0, 3.0, 5.0))


def _points(axes: Axes, p: np.ndarray, one: xr.Dataset, looks: dict[str, Any]) -> None:
    gain, low, high = (one[f"gain{end}"].values for end in ("", "_low", "_high"))
    inside = ~one["at_edge"].values
    axes.errorbar(p[inside], gain[inside], yerr=[(gain - low)[inside], (high - gain)[inside]], elinewidth=0.9,
                  linestyle="none", **looks)  # fmt: skip
    bound = looks | {"marker": "^", "markersize": 5, "markerfacecolor": "white"}
    axes.plot(p[~inside], gain[~inside], linestyle="none", **bound)


def _theory(axes: Axes, one: xr.Dataset, colour: str) -> None:
    p = np.geomspace(1.0, max(float(one["p"].max()), 1.0), WIDTHS)
    Delta = float(field(one, "Delta"))
    axes.plot(p, theory.overparametrisation_gain(p, Delta), color=colour, linewidth=0.9, linestyle=LIMIT, zorder=1)
    axes.plot(one["p"], one["gain_noise_corrected"], color=colour, linewidth=0.9, zorder=1)
    end = axes.get_yaxis_transform()
    limit = theory.overparametrisation_gain(np.inf, Delta)
    axes.plot([0.97, 1.0], [limit, limit], color=colour, linewidth=1.8, transform=end, clip_on=False)


def _legend(drawing: Drawing, data: xr.Dataset, split: Facets, shown: list[str], known: bool) -> None:
    hues = hue_entries(data, split)
    kinds = dynamics_entries(shown)
    kinds += [
        (
            {"color": INK, "marker": "^", "markerfacecolor": "white", "linestyle": "none"},
            "bound: optimum beyond the scan",
        )
    ]
    lines: list[tuple[dict[str, Any], str]] = [
        ({"color": INK, "linewidth": 0.9, "linestyle": LIMIT}, r"theory, $d\to\infty$"),
        ({"color": INK, "linewidth": 0.9}, "noise-corrected theory"),
        ({"color": INK, "linewidth": 1.8}, r"$p\to\infty$: $(12+\Delta)/(2+\Delta)$"),
    ]
    legend_below(drawing, [hues, kinds, lines if known else []])


FIGURES.register(
    "overparametrisation_gain",
    Figure("overparametrisation_gain", overparametrisation_gain, CAPTION, needs=("overparametrisation_gain",)),
)
INTERACTIVE.register(
    "gains",
    Interactive(
        x="p",
        y="gain",
        needs=("overparametrisation_gain",),
        also=("gain_limit", "gain_quenched", "at_edge"),
        theory="gain_noise_corrected",
        figure="overparametrisation_gain",
    ),
)
