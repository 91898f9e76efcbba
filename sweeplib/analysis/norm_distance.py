"""Wasserstein-2 distances between the laws of the students' norms of two dynamics, along runs with the same start."""

from __future__ import annotations

from typing import Any

from sweeplib.analysis.analysis import ANALYSES, analysis_of
from sweeplib.analysis.kit.differences import check_reference, from_reference, from_start
from sweeplib.analysis.kit.labels import with_article
from sweeplib.analysis.kit.options import LostPart, Reference
from sweeplib.analysis.kit.variables import require, statistics_outline
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import Outline
from sweeplib.statistics.lost_runs import MOST_LOST, values_of
from sweeplib.statistics.seed_means import with_error

QUANTITY, NAMES = "norm_quantiles", ("norm_distance", "norm_moved")
"""The observable that the analysis reads, and its variables."""


def norm_distance(ds: xr.Dataset, *, reference: Reference = "mean_field", max_lost: LostPart = MOST_LOST) -> xr.Dataset:
    """Return W₂ between the laws of ‖w‖/√d of each other dynamics and of `reference`, over time.

    W₂² = ∫ (F⁻¹ − G⁻¹)² over the levels of the quantiles, per seed. norm_distance and norm_distance_error are mean and
    standard error over the seeds; NaN for the reference itself, and where more than the fraction `max_lost` of the
    pairs has no value.
    norm_moved, norm_moved_error: the distance of each dynamics from its own start; NaN if that is not recorded.
    """
    norms = values_of(ds, QUANTITY)
    distance = from_reference(ds, norms, _root_mean_square, reference, max_lost)
    moved = from_start(ds, norms, _root_mean_square, max_lost)
    variables = with_error("norm_distance", distance, f"distance of the norms from {with_article(reference)}", "W_2")
    variables |= with_error("norm_moved", moved, "distance of the norms from the start", "W_2")
    return xr.Dataset(variables).assign_attrs(reference=reference, max_lost=max_lost)


def _root_mean_square(first: xr.DataArray, other: xr.DataArray) -> xr.DataArray:
    """Return the root of the mean over `quantile` of squared differences: W₂ of the laws with these quantiles."""
    distance: xr.DataArray = ((first - other) ** 2).mean("quantile", skipna=False) ** 0.5
    return distance


def _outline(ds: Outline, *, reference: str, **_: Any) -> Outline:
    """Return the structure of the result, before anything runs: numbers over seeds and quantiles; the times remain."""
    require(ds, QUANTITY)
    check_reference(ds, reference)
    return statistics_outline(ds, QUANTITY, *NAMES, over=["quantile"])


DOC = "Distances between the laws of the norms"
ANALYSES.add(analysis_of(norm_distance, DOC, outline=_outline, quantities=NAMES))
