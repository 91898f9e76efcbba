"""What each run of SGD did by its horizon, beside gradient flow and the ODE from the same start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sweeplib.analysis.cells import is_stochastic, labelled, require, with_status
from sweeplib.analysis.needs import need_dynamics, need_stochastic

if TYPE_CHECKING:
    import xarray as xr

    from sweeplib.storage.outline import Outline

LIMITS = ("gradient_flow", "ode")


def regime_samples(ds: xr.Dataset) -> xr.Dataset:
    """Per seed and point: `excess` R_SGD − R_GF, `fall` R(0) − R_GF, and `growth` of log tr Q_SGD/tr Q_ODE.

    At the last recorded time; NaN where a run is missing or did not end well. Where the ODE was run for no seed of a
    point, `growth` is SGD's own: the spread of the starts is then left in it.
    """
    import xarray as xr

    ok = with_status(ds, "ok")
    risk, norm = ds["risk"].where(ok), ds["student_norm"].where(ok)
    final, growth = risk.isel(time=-1), xr.ufuncs.log(norm.isel(time=-1) / norm.isel(time=0))
    sgd, own = of_sgd(final), of_sgd(growth)
    flow = final.sel(dynamics="gradient_flow", drop=True)
    ode = growth.sel(dynamics="ode", drop=True)
    found = {
        "excess": labelled(sgd - flow, "final risk of SGD above that of gradient flow"),
        "fall": labelled((of_sgd(risk.isel(time=0)) - flow).where(sgd.notnull()), "fall of the risk by gradient flow"),
        "growth": labelled(own - ode.where(ode.notnull().any("seed"), 0.0), "growth of log tr Q beyond the ODE's"),
    }
    return xr.Dataset(found).drop_vars("time", errors="ignore")


def of_sgd(values: xr.DataArray) -> xr.DataArray:
    """The values of SGD at each point, by the first of the stochastic dynamics that was run there."""
    names = [str(name) for name in values["dynamics"].values if is_stochastic(str(name))]
    found = values.sel(dynamics=names[0], drop=True)
    for name in names[1:]:
        found = found.fillna(values.sel(dynamics=name, drop=True))
    return found


def need_samples(ds: Outline) -> None:
    """Raise InputError where the sweep does not run or record what the samples are made of."""
    require(ds, "risk", "student_norm")
    need_dynamics(ds, *LIMITS)
    need_stochastic(ds)
