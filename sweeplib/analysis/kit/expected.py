"""Predictions of theory by kind of dynamics: SGD is noisy, the ODE is not, gradient flow has no learning rate."""

from __future__ import annotations

import numpy as np

from sweeplib.analysis.kit.phase_retrieval import exit_theory_holds
from sweeplib.analysis.kit.problem_fields import field
from sweeplib.analysis.kit.variables import is_stochastic
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.networks import theory


def by_dynamics(data: xr.Dataset, noisy: xr.DataArray, ode: xr.DataArray, flow: xr.DataArray | float) -> xr.DataArray:
    """Return for each dynamics of the data the theory of its kind; NaN for deterministic dynamics of plugins."""
    names = data["dynamics"]
    stochastic = names.copy(data=[is_stochastic(str(name)) for name in names.values])
    quiet = xr.where(names == "ode", ode, xr.where(names == "gradient_flow", flow, np.nan))
    return xr.where(stochastic, noisy, quiet)


def exit_times_expected(data: xr.Dataset) -> xr.DataArray:
    """Return exit times: noise-corrected for stochastic dynamics, quenched for the ODE, at γ → 0 for gradient flow.

    NaN where the theory does not hold; it is not evaluated if that is everywhere.
    """
    holds = exit_theory_holds(data)
    if not bool(holds.any()):
        return by_dynamics(data, *[xr.DataArray(np.nan)] * 3)
    gamma, *others = (field(data, name) for name in ("gamma", "p", "d", "Delta", "threshold"))
    noisy, ode = (formula(gamma, *others) for formula in (theory.noise_corrected_exit_time, theory.quenched_exit_time))
    return by_dynamics(data, noisy, ode, theory.quenched_exit_time(0.0, *others)).where(holds)
