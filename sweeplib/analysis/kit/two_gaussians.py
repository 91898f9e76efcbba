"""The least risk of two Gaussians for the points of a dataset, where a network of measures of weight one is trained."""

from __future__ import annotations

from sweeplib.analysis.kit.problem_fields import field, ones, with_plain_steps
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.networks.theory import least_network_risk


def least_risk(ds: xr.Dataset) -> xr.DataArray:
    """Return the least risk that a student of any width can reach; NaN for other data and other students.

    Students are plain, with a frozen second layer of ones and without offsets: on a sphere all norms are one, and a
    second layer makes measures of any sign and weight.
    """
    holds = (
        (field(ds, "data", "") == "two_gaussians")
        & ~field(ds, "spherical", False).astype(bool)
        & ones(field(ds, "a", 1.0))
        & (field(ds, "second_layer_rate", 0.0) == 0.0)
        & with_plain_steps(ds)
    )
    names = "activation", "contrast", "d"
    if not bool(holds.any()):
        return xr.full_like(holds, float("nan"), dtype=float)
    risks: xr.DataArray = xr.apply_ufunc(
        least_network_risk, *(field(ds, name) for name in names), vectorize=True, output_dtypes=[float]
    )
    return risks.where(holds)
