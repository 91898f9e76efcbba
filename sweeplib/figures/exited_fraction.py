"""The fraction of runs that exited, against the learning rate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sweeplib import theory
from sweeplib.analysis.kit.labels import labelled
from sweeplib.analysis.kit.lost_runs import STOPPED, with_status
from sweeplib.analysis.kit.passages import passages
from sweeplib.analysis.kit.phase_retrieval import escape_theory_holds
from sweeplib.analysis.kit.problem_fields import field
from sweeplib.analysis.kit.scan import drawn_scan_dim
from sweeplib.figures.figure import FIGURES, Hue, Panel, Where
from sweeplib.figures.kit.chart import ByName, Data, chart_figure
from sweeplib.figures.kit.facets import arranged, free_axes
from sweeplib.figures.kit.labels import symbol
from sweeplib.figures.kit.points import Level, Points
from sweeplib.figures.kit.scales import logarithmic_along
from sweeplib.figures.kit.style import INK, line_look
from sweeplib.late_modules import xarray as xr
from sweeplib.storage.dataset.outline import Outline, outline_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CAPTION = (
    "Fraction of the runs that exited at the threshold T before the horizon, against the learning rate, with Wilson "
    "intervals where some runs exited and some did not. Ticks on top: the largest learning rate at which linear "
    "theory learns, the smaller of twice the optimum and, for p > 1, p²/8; without a tick it lies beyond the axis. "
    "Points of several colours at one learning rate are shifted sideways. Open triangles: lower bounds, where all runs "
    "that did not exit were ended by their time limit, before the horizon. ∅ on the axis: no value."
)
TICK: dict[str, Any] = {"color": INK, "marker": "|", "markersize": 8, "markeredgewidth": 2.2, "linestyle": "none"}


def exited_fraction(ds: Data, analyses: ByName, *, where: Where = None, panel: Panel = None, hue: Hue = None) -> Points:
    """Declare the exited fraction against γ/γ_opt (γ without a theory); by default a panel per threshold."""
    exits, dim = outline_of(analyses["exit_times"]), drawn_scan_dim(ds, where)
    several = "threshold" in free_axes(exits, where)
    panel = panel or ("threshold" if several and hue != "threshold" else None)
    split = arranged(exits, {"dynamics", dim}, where, panel, hue)
    known, label = False, ""
    if not isinstance(ds, Outline) and bool(escape_theory_holds(ds).all()):
        known, label = True, f"{symbol(field(ds, 'gamma'))}/$\\gamma_{{\\mathrm{{opt}}}}$"

    def ends(axes: Axes, part: xr.Dataset) -> None:
        for index, one in split.colours(part):
            rates, end = one["gamma"] / one["unit"], one["end"].item()
            if float(rates.min()) < end < float(rates.max()):
                tick = line_look(index, "end") | {"linewidth": 2.2, "transform": axes.get_xaxis_transform()}
                axes.plot([end, end], [0.96, 1.0], **tick)

    def more(ds: xr.Dataset, _: Mapping[str, xr.Dataset], data: xr.Dataset) -> xr.Dataset:
        fraction, p, Delta = data["exited_fraction"], field(ds, "p"), field(ds, "Delta")
        bars = {name: data[name].where((fraction > 0.0) & (fraction < 1.0)) for name in ENDS}
        cut = labelled(_cut_short(ds) & (fraction < 1.0), "bound").assign_attrs(reason=REASON)
        data = data.assign(bars | {"cut_short": cut, "exited_fraction": fraction.assign_attrs(bound="cut_short")})
        if not known:
            return data
        unit = theory.optimal_learning_rate(p, Delta)
        return data.assign(unit=unit, end=theory.learnable_range(p, Delta) / unit)

    return Points(
        x="gamma",
        y="exited_fraction",
        needs=("exit_times",),
        hover=("exit_steps_median",),
        split=split,
        levels=(
            Level("exited_fraction", log=False, limits=(-0.05, 1.05), bound="over", marks=ends if known else None),
        ),
        more=more,
        x_over="unit" if known else "",
        x_label=label,
        log_x=lambda rates: logarithmic_along(rates, dim),
        joined=True,
        aside=True,
        entries=((TICK | {"gid": "end"}, "end of linear theory"),),
    )


ENDS = ("exited_fraction_low", "exited_fraction_high")
REASON = "lower bound: runs were out of time"


def _cut_short(ds: xr.Dataset) -> xr.DataArray:
    """Return, per cell, whether no run without an exit was observed up to the horizon, for want of time."""
    left = passages(ds, "steps").censored()
    late = left & with_status(ds, *STOPPED)
    return late.any("seed") & ~(left & ~with_status(ds, *STOPPED)).any("seed")


FIGURES.add(chart_figure("exited_fraction", exited_fraction, CAPTION, ("exit_times",)))
