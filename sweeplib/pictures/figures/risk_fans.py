"""The spread of runs of stochastic dynamics, in one panel per dynamics and point, and the path without noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from sweeplib.analysis.kit.labels import dynamics_label
from sweeplib.analysis.kit.needs import need_stochastic
from sweeplib.analysis.kit.variables import is_stochastic, require
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import outline_of
from sweeplib.errors import SweeplibError
from sweeplib.pictures.figures.figure import FIGURES, LogAxes, SingleRuns, Where
from sweeplib.pictures.figures.kit.chart import ByName, Chart, Data, chart_figure
from sweeplib.pictures.figures.kit.facets import Facets, arranged, measured_dynamics
from sweeplib.pictures.figures.kit.labels import axis_label, value_label
from sweeplib.pictures.figures.kit.legend import Entry, legend_below
from sweeplib.pictures.figures.kit.panels import panel_grid
from sweeplib.pictures.figures.kit.style import COLOURS, INK, plain_ticks, set_log
from sweeplib.pictures.figures.risk_curves import risk_bands, risk_quantiles

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

CAPTION = (
    "Population risk against time for each stochastic dynamics: bands from the 5 % to the 95 % and from the 25 % to "
    "the 75 % quantile over the seeds, their median, and some single runs. Dotted: the quantiles of the first "
    "dynamics, for comparison. Dashed: the median of the dynamics without noise."
)
BANDS = ((0.05, 0.95, 0.18), (0.25, 0.75, 0.32))
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
DOTTED: Any = (0, (1, 1))
DASHES: Any = ((0, (5, 2)), (0, (5, 1, 1, 1)), (0, (8, 1, 1, 1, 1, 1)))


def risk_fans(
    ds: Data, analyses: ByName, *, where: Where = None, log_axes: LogAxes = None, runs: SingleRuns = 6
) -> Chart:
    """Declare `runs` single runs and the quantiles of all, at one point: `where`, or the middle of axes.

    Several values of one axis in `where` are several points, with panels of their own. The axes are linear by default.
    """
    outline = outline_of(ds)
    require(outline, "risk")
    need_stochastic(outline)
    axes = {"dynamics", "seed", "time"}
    listed = {axis: values for axis, values in (where or {}).items() if isinstance(values, list | tuple)}
    points = [axis for axis, values in listed.items() if axis not in axes and len(set(map(str, values))) > 1]
    split = arranged(outline.only("risk"), axes, where, panel=next(iter(points), None), most=len(points[:1]))
    painted = partial(_painted, split=split, runs=runs, log_axes=log_axes or ())
    data = partial(risk_bands, log_axes=log_axes)
    return Chart(x="time", y="risk", data=data, kind="curves", split=split, paint=painted, log_axes=log_axes)


def _painted(
    ds: xr.Dataset, _: Mapping[str, xr.Dataset], *, split: Facets, runs: int, log_axes: Sequence[Literal["x", "y"]]
) -> Drawing:
    data = split.selected(ds[["risk", "status"]])
    names = measured_dynamics(data, "risk")
    stochastic = [name for name in names if is_stochastic(name)]
    if not stochastic:
        raise SweeplibError("no run of a stochastic dynamics has a risk")
    parts = list(split.parts(data))
    panels = panel_grid(len(parts) * len(stochastic), width=2.7, alone=4.0, height=2.8)
    for point, subset in parts:
        bands = {name: risk_quantiles(subset.sel(dynamics=name), LEVELS) for name in names}
        for place, name in enumerate(stochastic):
            panel = point * len(stochastic) + place
            axes = panels.stacks[panel][0]
            _fan(axes, bands[name], COLOURS[0])
            _runs(axes, subset["risk"].sel(dynamics=name), COLOURS[0], runs)
            if place:
                _dotted(axes, bands[stochastic[0]])
            for other, dashes in _without_noise(names).items():
                line = {"color": INK, "linestyle": dashes, "gid": other}
                axes.plot(subset["time"], bands[other].sel(quantile=0.5), zorder=5, **line)
            panels.title(panel, _title(subset, data, split.panel, name))
    for axis in log_axes:
        set_log(panels.stacks[0][0], axis)
        plain_ticks(getattr(panels.stacks[0][0], f"{axis}axis"))
    panels.xlabel(axis_label(ds["time"]))
    panels.ylabel(axis_label(ds["risk"]))
    panels.note(split.title(ds))
    _legend(panels.drawing, names, stochastic)
    return panels.drawing


def _title(subset: xr.Dataset, data: xr.Dataset, axis: str | None, name: str) -> str:
    """Return the title of a panel: its dynamics, and below it the point where there are several."""
    return dynamics_label(name) + (f"\n{value_label(subset[axis], data[axis])}" if axis else "")


def _without_noise(names: list[str]) -> dict[str, Any]:
    """Return the dash style of each deterministic dynamics."""
    return {name: DASHES[place % len(DASHES)] for place, name in enumerate(n for n in names if not is_stochastic(n))}


def _fan(axes: Axes, bands: xr.DataArray, colour: str) -> None:
    for low, high, alpha in BANDS:
        edges = bands.sel(quantile=[low, high]).values
        axes.fill_between(bands["time"], *edges, color=colour, alpha=alpha, linewidth=0, zorder=1)
    axes.plot(bands["time"], bands.sel(quantile=0.5), color=colour, linewidth=1.6, zorder=3, gid="median")


def _runs(axes: Axes, risk: xr.DataArray, colour: str, runs: int) -> None:
    for run in risk.isel(seed=slice(runs)).transpose("seed", "time").values:
        axes.plot(risk["time"], run, color=colour, linewidth=0.5, alpha=0.8, zorder=2, gid="run")


def _dotted(axes: Axes, bands: xr.DataArray) -> None:
    for level in LEVELS:
        curve = bands.sel(quantile=level)
        axes.plot(bands["time"], curve, color=INK, linestyle=DOTTED, linewidth=0.9, zorder=4, gid="compared")


def _legend(drawing: Drawing, names: list[str], stochastic: list[str]) -> None:
    band = {"color": COLOURS[0], "linewidth": 7, "solid_capstyle": "butt", "gid": "median"}
    wide: list[Entry] = [(band | {"alpha": 0.18}, "5 % to 95 %"), (band | {"alpha": 0.45}, "25 % to 75 %")]
    lines: list[Entry] = [
        ({"color": COLOURS[0], "linewidth": 1.6, "gid": "median"}, "median"),
        ({"color": COLOURS[0], "linewidth": 0.5, "gid": "run"}, "single runs"),
    ]
    compared: list[Entry] = [
        ({"color": INK, "linestyle": dashes, "gid": name}, dynamics_label(name))
        for name, dashes in _without_noise(names).items()
    ]
    dotted = {"color": INK, "linestyle": DOTTED, "linewidth": 0.9, "gid": "compared"}
    legend_below(drawing, [wide, lines, [*compared, (dotted, f"quantiles of {dynamics_label(stochastic[0])}")]])


FIGURES.add(chart_figure("risk_fans", risk_fans, CAPTION))
