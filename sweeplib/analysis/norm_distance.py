"""Wasserstein-2 distances between the laws of the students' norms of two dynamics, along runs with the same start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sweeplib.analysis.analysis import ANALYSES, Analysis
from sweeplib.analysis.deviation import mean_and_error
from sweeplib.analysis.differences import check_reference
from sweeplib.analysis.labels import labelled
from sweeplib.analysis.lost_runs import MOST_LOST, made, recorded, unless_lost, without_value
from sweeplib.analysis.options import LostPart
from sweeplib.analysis.recorded import require

if TYPE_CHECKING:
    import xarray as xr

    from sweeplib.storage.outline import Outline

QUANTITY = "norm_quantiles"


def norm_distance(ds: xr.Dataset, *, reference: str = "mean_field", max_lost: LostPart = MOST_LOST) -> xr.Dataset:
    """Return W₂ between the laws of ‖w‖/√d of each other dynamics and of `reference`, over time.

    W₂² = ∫ (F⁻¹ − G⁻¹)² over the levels of the quantiles, per seed. norm_distance and norm_distance_error are mean and
    standard error over the seeds; NaN for the reference itself, and where more than the fraction `max_lost` of the
    pairs has no value.
    norm_moved is the distance of each dynamics from its own start.
    """
    import xarray as xr

    require(ds, QUANTITY)
    check_reference(ds, reference)
    norms, run = recorded(ds, QUANTITY), made(ds)
    others = (ds["dynamics"] != reference).values
    paired = run.isel(dynamics=others) & run.sel(dynamics=reference, drop=True)
    difference = norms.isel(dynamics=others) - norms.sel(dynamics=reference, drop=True)
    distance = _root_mean_square(difference, paired, max_lost)
    moved = _root_mean_square(norms - norms.isel(time=0, drop=True), run, max_lost)
    mean, error = (part.reindex(dynamics=ds["dynamics"].values) for part in mean_and_error(distance))
    found = {
        "norm_distance": labelled(mean, f"distance of the norms from {reference}", "W_2"),
        "norm_distance_error": labelled(error, f"standard error of the distance of the norms from {reference}"),
        "norm_moved": labelled(moved.mean("seed"), "distance of the norms from the start", "W_2"),
    }
    return xr.Dataset(found).assign_attrs(reference=reference, max_lost=max_lost)


def _root_mean_square(difference: xr.DataArray, paired: xr.DataArray, max_lost: float) -> xr.DataArray:
    """Return the root of the mean over the quantiles, where not too many pairs have no value."""
    distance: xr.DataArray = (difference.where(paired) ** 2).mean("quantile", skipna=False) ** 0.5
    return unless_lost(distance, without_value(distance, paired), paired, max_lost)


def _outline(ds: Outline, *, reference: str, **_: Any) -> Outline:
    require(ds, QUANTITY)
    check_reference(ds, reference)
    found = ds.only(QUANTITY).without("seed", "quantile")
    dims = found.dims_of(QUANTITY)
    return found.with_variables({"norm_distance": dims, "norm_moved": dims})


ANALYSES.register(
    "norm_distance",
    Analysis(
        "norm_distance",
        norm_distance,
        "Distances between the laws of the norms",
        outline=_outline,
        quantities={"norm_distance": "norm_distance", "norm_moved": "norm_moved"},
    ),
)
