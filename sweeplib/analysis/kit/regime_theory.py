"""The regimes and exponents that theory predicts for the points of a dataset, where its hypotheses hold."""

from __future__ import annotations

import numpy as np

from sweeplib.analysis.kit.problem_fields import ROUNDING, field, one_pass_committee, same_at_all_d
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.networks.theory.regimes import (
    coupling_exponent,
    deviation_exponent,
    excess_risk_exponent,
    noise_weight_exponent,
    regime,
)

EXPONENTS = {
    "excess_risk": excess_risk_exponent,
    "noise_weight": noise_weight_exponent,
    "deviation": deviation_exponent,
}
PLANE = ("delta", "kappa")


def scaling_holds(ds: xr.Dataset) -> xr.DataArray:
    """Return where γ = γ0 d^−delta, p = p0 d^kappa rounded, and the norms of the students are free.

    This requires students off the sphere (on it Q_ii = 1), a frozen second layer, and a committee learned from one
    fresh sample a step.
    """
    delta, kappa = (field(ds, name) for name in PLANE)
    log_d = xr.ufuncs.log(ds["d"])
    rate = xr.ufuncs.log(field(ds, "gamma")) + delta * log_d
    width, growth = field(ds, "p"), xr.ufuncs.exp(kappa * log_d)
    most, least = ((width + 0.5) / growth).min("d"), ((width - 0.5) / growth).max("d")
    return (
        same_at_all_d(rate)
        & (least <= most * (1.0 + ROUNDING))
        & one_pass_committee(ds)
        & ~field(ds, "spherical", False).astype(bool)
        & (field(ds, "second_layer_rate", 0.0) == 0.0)
    )


def regimes_expected(ds: xr.Dataset) -> dict[str, xr.DataArray]:
    """Return regime_theory and the exponents of theory at each (delta, kappa); 0 (undecided) and NaN outside its range.

    Empty if the exponents of learning rate and width are not coordinates.
    """
    if not all(name in ds.coords or name in ds.attrs for name in PLANE):
        return {}
    at, holds = [field(ds, name) for name in PLANE], scaling_holds(ds)
    variables = {"regime_theory": regime(*at).where(holds, 0.0).astype(np.uint8)}
    for name, exponent in EXPONENTS.items():
        values = exponent(*at)
        variables[f"{name}_exponent_theory"] = values.where(holds).assign_attrs(values.attrs)
    return variables | {"coupling_exponent": coupling_exponent(*at)}
