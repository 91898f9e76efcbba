"""What the theory of regimes says of the points of a dataset, where its hypotheses hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sweeplib.analysis.problem_fields import field, one_pass_committee
from sweeplib.theory.regimes import (
    coupling_exponent,
    deviation_exponent,
    excess_risk_exponent,
    noise_weight_exponent,
    regime,
)

if TYPE_CHECKING:
    import xarray as xr

EXPONENTS = {
    "excess_risk": excess_risk_exponent,
    "noise_weight": noise_weight_exponent,
    "deviation": deviation_exponent,
}
PLANE = ("delta", "kappa")
ROUNDING = 1e-6


def scaling_holds(ds: xr.Dataset) -> xr.DataArray:
    """Where the dataset is one of γ = γ0 d^−delta and p = p0 d^kappa rounded, of students that are free to grow.

    Not on the sphere, which holds Q_ii at 1, with the second layer frozen, and of a committee learned from one fresh
    sample a step.
    """
    import xarray as xr

    delta, kappa = (field(ds, name) for name in PLANE)
    log_d = xr.ufuncs.log(ds["d"])
    rate = xr.ufuncs.log(field(ds, "gamma")) + delta * log_d
    width, growth = field(ds, "p"), xr.ufuncs.exp(kappa * log_d)
    most, least = ((width + 0.5) / growth).min("d"), ((width - 0.5) / growth).max("d")
    return (
        (rate.max("d") - rate.min("d") < ROUNDING)
        & (least <= most * (1.0 + ROUNDING))
        & one_pass_committee(ds)
        & ~field(ds, "spherical", False).astype(bool)
        & (field(ds, "second_layer_rate", 0.0) == 0.0)
    )


def regimes_expected(ds: xr.Dataset) -> dict[str, xr.DataArray]:
    """regime_theory and the exponents of theory at each (delta, kappa); where it does not hold 0, undecided, and NaN.

    Empty where the exponents of learning rate and width are no coordinates.
    """
    if not all(name in ds.coords or name in ds.attrs for name in PLANE):
        return {}
    at, holds = [field(ds, name) for name in PLANE], scaling_holds(ds)
    found = {"regime_theory": regime(*at).where(holds, 0.0).astype(np.uint8)}
    for name, exponent in EXPONENTS.items():
        values = exponent(*at)
        found[f"{name}_exponent_theory"] = values.where(holds).assign_attrs(values.attrs)
    return found | {"coupling_exponent": coupling_exponent(*at)}
