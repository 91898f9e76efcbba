"""How the runs of stochastic dynamics fan out, a panel a dynamics, over the path without noise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sweeplib.analysis.cells import is_stochastic, require
from sweeplib.errors import InputError
from sweeplib.figures.facets import selected
from sweeplib.figures.figure import FIGURES, Figure
from sweeplib.figures.interactive import INTERACTIVE, Interactive
from sweeplib.figures.labels import axis_label, dynamics_label
from sweeplib.figures.legend import legend_below
from sweeplib.figures.risk_curves import risk_bands, risk_quantiles, run_dynamics
from sweeplib.figures.style import COLOURS, INK

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

CAPTION = (
    "Population risk against time for each stochastic dynamics: bands from the 5 % to the 95 % and from the 25 % to "
    "the 75 % quantile over the seeds, their median, and some single runs. Dotted: those quantiles of the "
    "first dynamics, to be compared with. Dashed: the median of the dynamics without noise."
)
BANDS = ((0.05, 0.95, 0.18), (0.25, 0.75, 0.32))
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
DOTTED: Any = (0, (1, 1))
DASHED: Any = (0, (5, 2))


def risk_fans(
    ds: xr.Dataset,
    analyses: Mapping[str, xr.Dataset],
    *,
    where: Mapping[str, Any] | None = None,
    runs: int = 6,
) -> Drawing:
    """A figure of the fan of `runs` and all their quantiles at one point; axes not in `where` stand at their middle."""
    require(ds, "risk")
    from matplotlib.figure import Figure as Drawing

    data = selected(ds[["risk", "status"]], where)
    data = data.isel({dim: size // 2 for dim, size in data.sizes.items() if dim not in ("dynamics", "seed", "time")})
    names = run_dynamics(data)
    shown = [name for name in names if is_stochastic(name)]
    if not shown:
        raise InputError(
            "no stochastic dynamics to draw", key="dynamics", value=names, expected="sgd_chain or sde, run"
        )
    bands = {name: risk_quantiles(data.sel(dynamics=name), LEVELS) for name in names}
    width = min(7.0, 1.0 + 2.7 * len(shown)) if len(shown) > 1 else 4.0
    drawing = Drawing(figsize=(width, 3.3), layout="constrained")
    grid = drawing.subplots(1, len(shown), sharex=True, sharey=True, squeeze=False)[0]
    for place, name in enumerate(shown):
        _fan(grid[place], bands[name], COLOURS[place])
        _runs(grid[place], data["risk"].sel(dynamics=name), COLOURS[place], runs)
        if place:
            _dotted(grid[place], bands[shown[0]])
        for other in names:
            if not is_stochastic(other):
                grid[place].plot(data["time"], bands[other].sel(quantile=0.5), color=INK, linestyle=DASHED, zorder=5)
        grid[place].set_title(dynamics_label(name))
        grid[place].set_xlabel(axis_label(ds["time"]))
    grid[0].set_ylabel(axis_label(ds["risk"]))
    _legend(drawing, names, shown)
    return drawing


def _fan(axes: Axes, bands: xr.DataArray, colour: str) -> None:
    for low, high, alpha in BANDS:
        edges = bands.sel(quantile=[low, high]).values
        axes.fill_between(bands["time"], *edges, color=colour, alpha=alpha, linewidth=0, zorder=1)
    axes.plot(bands["time"], bands.sel(quantile=0.5), color=colour, linewidth=1.6, zorder=3)


def _runs(axes: Axes, risk: xr.DataArray, colour: str, runs: int) -> None:
    for one in risk.isel(seed=slice(runs)).transpose("seed", "time").values:
        axes.plot(risk["time"], one, color=colour, linewidth=0.5, alpha=0.8, zorder=2)


def _dotted(axes: Axes, bands: xr.DataArray) -> None:
    for level in LEVELS:
        axes.plot(bands["time"], bands.sel(quantile=level), color=INK, linestyle=DOTTED, linewidth=0.9, zorder=4)


def _legend(drawing: Drawing, names: list[str], shown: list[str]) -> None:
    wide: list[tuple[dict[str, Any], str]] = [
        ({"color": COLOURS[0], "linewidth": 7, "alpha": 0.18, "solid_capstyle": "butt"}, "5 % to 95 %"),
        ({"color": COLOURS[0], "linewidth": 7, "alpha": 0.45, "solid_capstyle": "butt"}, "25 % to 75 %"),
    ]
    lines: list[tuple[dict[str, Any], str]] = [
        ({"color": COLOURS[0], "linewidth": 1.6}, "median"),
        ({"color": COLOURS[0], "linewidth": 0.5}, "single runs"),
    ]
    compared: list[tuple[dict[str, Any], str]] = [
        ({"color": INK, "linestyle": DASHED}, dynamics_label(name)) for name in names if not is_stochastic(name)
    ]
    if len(shown) > 1:
        compared += [
            ({"color": INK, "linestyle": DOTTED, "linewidth": 0.9}, f"quantiles of {dynamics_label(shown[0])}")
        ]
    legend_below(drawing, [wide, lines, compared])


FIGURES.register("risk_fans", Figure("risk_fans", risk_fans, CAPTION))
INTERACTIVE.register(
    "risk_fan_bands", Interactive(x="time", y="risk", data=risk_bands, kind="curves", figure="risk_fans")
)
