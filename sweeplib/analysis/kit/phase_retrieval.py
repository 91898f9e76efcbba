"""The hypotheses of the closed forms of phase retrieval: for which problems of a dataset they hold.

The forms are in `sweeplib.networks.theory`.

- All closed forms: a committee learned from one fresh sample a step, σ = σ* = λ², one teacher unit with ‖w*‖² = d,
  spherical students, a = a* = 1, a frozen second layer.
- The risk floor: in addition one student unit that does not start at m = 0, where the ODE stays. Any other start.
- The optimal learning rate and the gain, which describe the escape: in addition a start uniform on the sphere, so that
  √d m_j ~ N(0, 1). A given m0 violates this.
  And exits on the risk.
- Exit times, whose linear theory neglects the overlaps between students: in addition, for p > 1, a learning rate at
  which these decay, γ < p²/8 (`student_alignment_rate`). At p = 2, Δ = 0, γ = .65 they grow, and SGD needs 3.98 ± .21
  to the exit at d = 30 000, T = .01, where the formula gives 2.55.
"""

from __future__ import annotations

import numpy as np

from sweeplib.analysis.kit.problem_fields import field, one_pass_committee, ones
from sweeplib.analysis.kit.variables import stochastic
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.networks import theory
from sweeplib.networks.theory import student_alignment_rate

UNIT_TEACHERS = ("orthogonal", "sphere")
"""Laws of the teacher's weights whose rows have the norm √d. Norms of Gaussian rows scatter by the fraction 1/√(2d)."""


def floor_theory_holds(ds: xr.Dataset) -> xr.DataArray:
    """Return a mask: where `asymptotic_risk` is the final risk of SGD and its ODE."""
    return _is_phase_retrieval(ds) & (field(ds, "p") == 1) & (field(ds, "m0", np.nan) != 0.0)


def escape_theory_holds(ds: xr.Dataset) -> xr.DataArray:
    """Return a mask: where the closed forms of optimal learning rate, learnable range and gain describe the escape."""
    start = field(ds, "start", "sphere") == "sphere"
    start &= ds.attrs.get("exit_on", "risk") == "risk"
    return _is_phase_retrieval(ds) & start & field(ds, "m0", np.nan).isnull()


def escape_of(ds: xr.Dataset, dim: str) -> tuple[xr.DataArray, ...]:
    """Return where the closed forms of the escape hold, and p, d, Δ, T, without the axis `dim` that scans γ."""
    constants = ds.drop_vars("gamma").isel({dim: 0}, drop=True)
    return escape_theory_holds(constants), *(field(constants, name) for name in ("p", "d", "Delta", "threshold"))


def exit_theory_holds(ds: xr.Dataset) -> xr.DataArray:
    """Return a mask: where exit times and their distributions are those of linear theory."""
    p = field(ds, "p")
    return escape_theory_holds(ds) & ((p == 1) | (student_alignment_rate(field(ds, "gamma"), p) > 0.0))


def _is_phase_retrieval(ds: xr.Dataset) -> xr.DataArray:
    """Return a mask: where problems are those of the closed forms, but for their start and their learning rate."""
    teacher = field(ds, "teacher_activation", "")
    return (
        one_pass_committee(ds)
        & (field(ds, "activation") == "square")
        # a teacher without an activation of its own, stored as "" or as the text of None, has the student's
        & teacher.isin(["", "None", "square"])
        & (field(ds, "k") == 1)
        & field(ds, "teacher_start", UNIT_TEACHERS[0]).isin(UNIT_TEACHERS)
        & field(ds, "spherical", False).astype(bool)
        & ones(field(ds, "a", 1.0))
        & ones(field(ds, "a_star", 1.0))
        & (field(ds, "second_layer_rate", 0.0) == 0.0)
    )


def by_dynamics(data: xr.Dataset, noisy: xr.DataArray, ode: xr.DataArray, flow: xr.DataArray | float) -> xr.DataArray:
    """Return the theory of each dynamics of the data, along `dynamics`; NaN for deterministic dynamics of plugins.

    noisy : the theory of all stochastic dynamics. ode, flow : those of the ODE and of gradient flow.
    """
    names = data["dynamics"]
    quiet = xr.where(names == "ode", ode, xr.where(names == "gradient_flow", flow, np.nan))
    return xr.where(stochastic(data), noisy, quiet)


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
