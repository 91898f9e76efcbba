"""The outcome of each run of SGD at the horizon, compared to gradient flow and the ODE from the same start."""

from __future__ import annotations

from sweeplib.analysis.kit.variables import is_stochastic, need_dynamics, need_start, need_stochastic, require
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import Outline
from sweeplib.statistics.labelled import labelled
from sweeplib.statistics.lost_runs import MOST_LOST, has_run, unless_lost, values_of, without_value

LIMITS = ("gradient_flow", "ode")
"""The dynamics that SGD is compared to."""


def regime_samples(ds: xr.Dataset, max_lost: float = MOST_LOST) -> xr.Dataset:
    """Return, per seed and point, `excess` R_SGD − R_GF, `fall` R(0) − R_GF, and `growth` of log tr Q_SGD/tr Q_ODE.

    All are at the last recorded time. They are NaN for all seeds where more than the fraction `max_lost` of the runs
    has no value there, for example because they diverged, timed out or became inaccurate; `seeds_lost` is the
    number of these runs per point. Where the ODE was run for no seed of a point, `growth` is that of SGD alone, which
    includes the spread of the starts.
    """
    # of each seed and point, pairs of SGD with gradient flow, and with the ODE if that has any run at the point
    run = has_run(ds)
    risk, norm = values_of(ds, "risk"), values_of(ds, "student_norm")
    final = risk.isel(time=-1)
    growth = xr.ufuncs.log(norm.isel(time=-1) / norm.isel(time=0))
    sgd_run = sgd_values(run, run)
    with_flow = sgd_run & run.sel(dynamics="gradient_flow", drop=True)
    ode_run = run.sel(dynamics="ode", drop=True)
    with_ode = sgd_run & (ode_run | ~ode_run.any("seed"))
    flow = final.sel(dynamics="gradient_flow", drop=True).where(with_flow)
    ode = growth.sel(dynamics="ode", drop=True).where(ode_run.any("seed"), 0.0)
    sgd, start = sgd_values(final, run), sgd_values(risk.isel(time=0), run)
    excess, grown = sgd - flow, (sgd_values(growth, run) - ode).where(with_ode)
    lost_excess, lost_growth = without_value(excess, with_flow), without_value(grown, with_ode)

    def variable(values: xr.DataArray, long_name: str) -> xr.DataArray:
        """Return values per seed, labelled; NaN for all seeds where too many pairs of SGD and flow have no excess."""
        return labelled(unless_lost(values, lost_excess, with_flow, max_lost), long_name)

    variables = {
        "excess": variable(excess, "final risk of SGD above that of gradient flow"),
        "fall": variable((start - flow).where(sgd.notnull()), "fall of the risk by gradient flow"),
        "growth": labelled(unless_lost(grown, lost_growth, with_ode, max_lost), "growth of log tr Q beyond the ODE's"),
        "seeds_lost": labelled((lost_excess | lost_growth).sum("seed"), "runs without a value at the end"),
    }
    return xr.Dataset(variables).drop_vars("time", errors="ignore")


def sgd_values(values: xr.DataArray, run: xr.DataArray) -> xr.DataArray:
    """Return the values of SGD at each point, from the first stochastic dynamics that has a `run` there."""
    names = [str(name) for name in values["dynamics"].values if is_stochastic(str(name))]
    merged, has_value = values.sel(dynamics=names[0], drop=True), run.sel(dynamics=names[0], drop=True)
    for name in names[1:]:
        merged = merged.where(has_value, values.sel(dynamics=name, drop=True))
        has_value = has_value | run.sel(dynamics=name, drop=True)
    return merged


def need_samples(ds: Outline) -> None:
    """Raise InputError if the sweep does not run the dynamics, or record the start or the variables of the samples."""
    require(ds, "risk", "student_norm")
    need_dynamics(ds, *LIMITS)
    need_stochastic(ds)
    need_start(ds)
