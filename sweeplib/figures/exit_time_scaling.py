"""The mean exit time against the input dimension, compared to theory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib import theory
from sweeplib.analysis.needs import need_axis
from sweeplib.analysis.phase_retrieval import exit_theory_holds
from sweeplib.analysis.problem_fields import field
from sweeplib.figures.expected import exit_times_expected
from sweeplib.figures.facets import Facets, arranged, numbered_parts, used_dynamics
from sweeplib.figures.figure import FIGURES, Figure, Hue, Panel, Published, Theories, Where
from sweeplib.figures.interactive import INTERACTIVE, Interactive
from sweeplib.figures.labels import axis_label, plain_mean, value_label
from sweeplib.figures.legend import Entry, dynamics_entries, hue_entries, legend_below, theory_entries
from sweeplib.figures.panels import panel_grid
from sweeplib.figures.quantities import interval
from sweeplib.figures.references import check_references, references
from sweeplib.figures.style import THEORY_DASHES, dynamics_look, line_look, look, plain_ticks
from sweeplib.storage.outline import outline_of

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from sweeplib.storage.outline import Outline

CAPTION = (
    "Mean exit time, in ODE time, against the input dimension, with the intervals of the means; points at which "
    "runs did not exit are left out. Curves: the selected theories, by default quenched (dashed) and noise-corrected "
    "(solid); they are linear in the overlaps, and exact for small T at large T d."
)
COLUMNS = ("d", "exit_time_mean")
TOUCHING = 0.04
"""The fraction of the height of the axes below which the zero would cut a marker; they then begin below zero."""


def exit_time_scaling(
    ds: xr.Dataset,
    analyses: Mapping[str, xr.Dataset],
    *,
    where: Where = None,
    panel: Panel = None,
    hue: Hue = None,
    theories: Theories = ("quenched", "noise-corrected"),
    reference: Published = (),
) -> Drawing:
    """Return a figure of the mean exit time against d; axes not selected or drawn are fixed at their middle."""
    split = _arranged(ds, analyses, where=where, panel=panel, hue=hue, theories=theories, reference=reference)
    data = split.selected(analyses["exit_times"].assign(applies=exit_theory_holds(ds)))
    parts = split.panels(data)
    panels = panel_grid(len(parts), width=2.5, alone=3.8, height=2.8)
    shown = used_dynamics(data)
    published = references(reference, *COLUMNS)
    for place, part in numbered_parts(data, parts):
        for index, one in numbered_parts(part, split.hues(part)):
            _points(panels.stacks[place][0], one, shown, look(index))
            _theory(panels.stacks[place][0], one, index, theories)
            published.draw(panels.stacks[place][0], one)
        if split.panel:
            panels.title(place, value_label(part[split.panel], data[split.panel]))
    axes = panels.stacks[0][0]
    axes.set_xscale("log")
    plain_ticks(axes.xaxis, (1.0, 3.0))
    top = axes.get_ylim()[1]
    touching = bool((data["exit_time_mean"].where(~data["restricted"]) < TOUCHING * top).any())
    axes.set_ylim(bottom=-TOUCHING * top if touching else 0.0)
    panels.xlabel(axis_label(data["d"]))
    panels.ylabel(axis_label(plain_mean(data["exit_time_mean"])))
    panels.note(split.title(data))
    _legend(panels.drawing, data, split, shown, [*theory_entries(theories), *published.entries()])
    return panels.drawing


def _arranged(
    ds: xr.Dataset | Outline,
    analyses: Mapping[str, xr.Dataset | Outline],
    *,
    theories: Sequence[str],
    reference: Sequence[str],
    **choice: Any,
) -> Facets:
    need_axis(outline_of(ds), "d")
    split = arranged(analyses["exit_times"], {"dynamics", "d"}, **choice)
    check_references(reference, *COLUMNS, analyses["exit_times"], split)
    return split


def _points(axes: Axes, one: xr.Dataset, shown: list[str], looks: dict[str, str]) -> None:
    for name in shown:
        run = one.sel(dynamics=name)
        style = dynamics_look(name, shown, looks) | {"linestyle": "none"}
        bars = np.nan_to_num(interval(run, "exit_time_mean"))
        axes.errorbar(run["d"], run["exit_time_mean"].where(~run["restricted"]), bars, elinewidth=0.8, **style)


def _theory(axes: Axes, one: xr.Dataset, index: int, theories: Sequence[str]) -> None:
    """Draw curves between the dimensions if γ is the same at all of them; otherwise one joined point at each."""
    if not bool(one["applies"].all()):
        return
    d = one["d"].values.astype(float)
    gamma = np.broadcast_to(field(one, "gamma").values, d.shape)
    if np.ptp(gamma) == 0.0:
        d = np.geomspace(d.min(), d.max(), 60)
        gamma = np.full_like(d, gamma[0])
    p, Delta, T = (float(field(one, name)) for name in ("p", "Delta", "threshold"))
    for kind in theories:
        time = getattr(theory, f"{kind.replace('-', '_')}_exit_time")(gamma, p, d, Delta, T)
        line = line_look(index, kind) | {"linestyle": THEORY_DASHES[kind], "linewidth": 0.9}
        axes.plot(d, np.where(np.isfinite(time), time, np.nan), zorder=1, **line)


def _legend(drawing: Drawing, data: xr.Dataset, split: Facets, shown: list[str], curves: list[Entry]) -> None:
    hues = hue_entries(data, split)
    kinds = dynamics_entries(shown)
    legend_below(drawing, [hues, kinds, curves])


def unrestricted(ds: xr.Dataset, analyses: Mapping[str, xr.Dataset]) -> xr.Dataset:
    """Return exit times without restricted means, and the exit times of theory for each dynamics, where it holds."""
    exits = analyses["exit_times"]
    mean = exits["exit_time_mean"]
    time = exit_times_expected(exits).where(exit_theory_holds(ds))
    attrs = {"long_name": "exit time of theory", "units": "1", "symbol": mean.attrs["symbol"]}
    drawn = mean.where(~exits["restricted"]).assign_attrs(mean.attrs)
    return exits.assign(exit_time_mean=drawn, exit_time_theory=time.assign_attrs(attrs))


FIGURES.register(
    "exit_time_scaling",
    Figure("exit_time_scaling", exit_time_scaling, CAPTION, needs=("exit_times",), arrange=_arranged),
)
INTERACTIVE.register(
    "exit_times_over_d",
    Interactive(
        x="d",
        y="exit_time_mean",
        data=unrestricted,
        needs=("exit_times",),
        hover=("exit_time_median", "exited_fraction"),
        theory="exit_time_theory",
        figure="exit_time_scaling",
    ),
)
