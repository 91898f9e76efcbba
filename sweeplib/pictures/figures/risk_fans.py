"""The spread of runs of stochastic dynamics, in one panel per dynamics and point, and the path without noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from sweeplib.analysis.kit.labels import dynamics_label
from sweeplib.analysis.kit.variables import is_stochastic, need_stochastic, require
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import fixed_axes, outline_of
from sweeplib.errors import SweeplibError
from sweeplib.pictures.figures.figure import FIGURES, LogAxes, SingleRuns, Where, chart_figure
from sweeplib.pictures.figures.kit.chart import ByName, Chart, Data, Layer, Level
from sweeplib.pictures.figures.kit.facets import arranged, dynamics_where
from sweeplib.pictures.figures.kit.labels import dynamics_order
from sweeplib.pictures.figures.kit.style import COLOURS, INK
from sweeplib.pictures.figures.risk_curves import risk_bands, risk_quantiles

CAPTION = (
    "Population risk against time for each stochastic dynamics: bands from the 5 % to the 95 % and from the 25 % to "
    "the 75 % quantile over the seeds, their median, and some single runs. Dotted: the quantiles of the first "
    "dynamics, for comparison. Dashed: the median of the dynamics without noise."
)
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
"""The levels of the quantiles of a fan."""
MEDIAN: dict[str, Any] = {"color": COLOURS[0], "gid": "median"}
DOTTED = {"color": INK, "linestyle": (0, (1, 1)), "linewidth": 0.9, "alpha": 1.0, "zorder": 4, "gid": "compared"}
DASHES: Any = ((0, (5, 2)), (0, (5, 1, 1, 1)), (0, (8, 1, 1, 1, 1, 1)))
"""The dashes of dynamics without noise, in their order."""
FAN = (
    Layer("line", "risk", "median", column=1, look={"linewidth": 1.6, "zorder": 3} | MEDIAN),
    Layer("band", "outer", "5 % to 95 %", look={"alpha": 0.18} | MEDIAN),
    Layer("band", "inner", "25 % to 75 %", look={"alpha": 0.32} | MEDIAN, entry={"alpha": 0.45}),
    Layer("lines", "runs", "single runs", column=1, look={"alpha": 0.8}),
)
"""The layers of runs of a stochastic dynamics."""


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
    points = [axis for axis in where or () if axis not in axes | fixed_axes(where)]
    split = arranged(outline.only("risk"), axes, where, panel=next(iter(points), None), most=len(points[:1]))
    names = dynamics_order(split.selected(xr.DataArray(list(outline.axes["dynamics"]), dims="dynamics")).values)
    noisy, quiet = ([name for name in names if is_stochastic(name) is noise] for noise in (True, False))
    return Chart(
        x="time",
        y="risk",
        data=partial(risk_bands, log_axes=log_axes),
        split=replace(split, beside="dynamics"),
        pictures=partial(_fans, runs=runs),
        levels=(Level((*FAN, *_paths(quiet), _compared(next(iter(noisy), ""))), log=False),),
        log_x=lambda _: "x" in (log_axes or ()),
        size=(2.7, 4.0, 2.8),
        log_axes=log_axes,
    )


def _compared(first: str) -> Layer:
    """Return the layer of the quantiles of the first dynamics, which the panels of the others have for comparison."""
    return Layer("lines", "first", f"quantiles of {dynamics_label(first)}", column=2, look=DOTTED)


def _paths(quiet: list[str]) -> list[Layer]:
    """Return the layers of the medians of dynamics without noise, `quiet`."""
    looks = [{"color": INK, "linestyle": dashes, "zorder": 5} for dashes in DASHES]
    return [
        Layer("line", f"path_{name}", dynamics_label(name), column=2, look=looks[place % len(looks)] | {"gid": name})
        for place, name in enumerate(quiet)
    ]


def _fans(ds: xr.Dataset, _: Mapping[str, xr.Dataset], *, runs: int) -> xr.Dataset:
    """Return the quantiles of dynamics with noise, some of their runs, and the medians of the others.

    Names are those that the layers draw: `outer` and `inner` bands around the median `risk`, `runs`, `first` (the
    quantiles of the first dynamics, in panels of others), `path_NAME`.
    """
    bands = risk_quantiles(ds, LEVELS).assign_attrs(ds["risk"].attrs)
    names = dynamics_where(ds["risk"].notnull())
    noisy = [name for name in names if is_stochastic(name)]
    if not noisy:
        raise SweeplibError("no run of a stochastic dynamics has a risk")
    fans = bands.sel(dynamics=noisy)
    ends = dict(zip(("outer_low", "inner_low", "risk", "inner_high", "outer_high"), LEVELS, strict=True))
    fan = {name: fans.sel(quantile=level, drop=True) for name, level in ends.items()}
    first = bands.sel(dynamics=noisy[0], drop=True).where(fans["dynamics"] != noisy[0])
    quiet = [str(name) for name in ds["dynamics"].values if not is_stochastic(str(name))]
    paths = {f"path_{name}": bands.sel(dynamics=name, quantile=0.5, drop=True) for name in quiet}
    single = ds["risk"].sel(dynamics=noisy).isel(seed=slice(runs))
    return xr.Dataset(fan | paths | {"outer": fan["risk"], "inner": fan["risk"], "first": first, "runs": single})


FIGURES.add(chart_figure("risk_fans", risk_fans, CAPTION))
