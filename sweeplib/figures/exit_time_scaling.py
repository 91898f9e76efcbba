"""The mean exit time against the input dimension, compared to theory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sweeplib import theory
from sweeplib.analysis.kit.needs import need_axis
from sweeplib.analysis.kit.phase_retrieval import exit_theory_holds
from sweeplib.analysis.kit.problem_fields import field
from sweeplib.figures.figure import FIGURES, Hue, Panel, Published, Theories, Where
from sweeplib.figures.kit.chart import ByName, Data, chart_figure
from sweeplib.figures.kit.expected import exit_times_expected
from sweeplib.figures.kit.facets import arranged
from sweeplib.figures.kit.points import Curve, Level, Points
from sweeplib.figures.kit.style import THEORY_DASHES
from sweeplib.late_modules import xarray as xr
from sweeplib.storage.dataset.outline import outline_of

CAPTION = (
    "Mean exit time, in ODE time, against the input dimension, with the intervals of the means; points at which runs "
    "did not exit are left out, and marked by ∅ on the axis. Curves: the selected theories, by default quenched "
    "(dashed) and noise-corrected (solid); they are linear in the overlaps, and exact for small T at large T d."
)


def exit_time_scaling(
    ds: Data,
    analyses: ByName,
    *,
    where: Where = None,
    panel: Panel = None,
    hue: Hue = None,
    theories: Theories = ("quenched", "noise-corrected"),
    reference: Published = (),
) -> Points:
    """Declare the mean exit time against d; axes not selected or drawn are fixed at their middle."""
    need_axis(outline_of(ds), "d")
    return Points(
        x="d",
        y="exit_time_mean",
        needs=("exit_times",),
        data=unrestricted,
        hover=("exit_time_median", "exited_fraction"),
        theory="exit_time_theory",
        split=arranged(analyses["exit_times"], {"dynamics", "d"}, where, panel, hue),
        levels=(Level("exit_time_mean", exit_time_curves(theories), log=False, from_zero=True),),
        more=lambda ds, _, data: data.assign(applies=exit_theory_holds(ds)),
        log_x=lambda _: True,
        published=reference,
    )


def exit_time_curves(theories: Sequence[str]) -> tuple[Curve, ...]:
    """Return the curves of these theories of exit times, where the variable `applies` says that they hold."""

    def curve(kind: str) -> Curve:
        def heights(one: xr.Dataset, d: np.ndarray) -> np.ndarray:
            gamma, p, Delta, T = (field(one, name).values for name in ("gamma", "p", "Delta", "threshold"))
            time = getattr(theory, f"{kind.replace('-', '_')}_exit_time")(gamma, p, d, Delta, T)
            return np.where(np.isfinite(time) & bool(one["applies"].all()), time, np.nan)

        return Curve(kind, f"{kind} theory", heights, THEORY_DASHES[kind])

    return tuple(map(curve, theories))


def unrestricted(ds: xr.Dataset, analyses: Mapping[str, xr.Dataset]) -> xr.Dataset:
    """Return exit times without restricted means, and the exit times of theory for each dynamics, where it holds."""
    exits = analyses["exit_times"]
    mean = exits["exit_time_mean"]
    time = exit_times_expected(exits).where(exit_theory_holds(ds))
    attrs = {"long_name": "exit time of theory", "units": "1", "symbol": mean.attrs["symbol"]}
    drawn = mean.where(~exits["restricted"]).assign_attrs(mean.attrs)
    return exits.assign(exit_time_mean=drawn, exit_time_theory=time.assign_attrs(attrs))


FIGURES.add(chart_figure("exit_time_scaling", exit_time_scaling, CAPTION, ("exit_times",)))
