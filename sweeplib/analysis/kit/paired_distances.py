"""Distances between the states of dynamics with the same start, seed by seed, and their statistics over the seeds."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.statistics.lost_runs import has_diverged, has_run, unless_lost, without_value

if TYPE_CHECKING:
    Distance = Callable[[xr.DataArray, xr.DataArray], xr.DataArray]


def from_reference(
    ds: xr.Dataset, state: xr.DataArray, distance: Distance, reference: str, max_lost: float
) -> xr.DataArray:
    """Return the distance of the `state` of each dynamics from that of `reference`, per seed; NaN for itself.

    NaN for all seeds where more than the fraction `max_lost` of the pairs has no value, and from a divergence on.
    """
    run, diverged, others = has_run(ds), has_diverged(ds), (ds["dynamics"] != reference).values
    paired = run.isel(dynamics=others) & run.sel(dynamics=reference, drop=True)
    either_diverged = diverged.isel(dynamics=others) | diverged.sel(dynamics=reference, drop=True)
    distances = distance(state.isel(dynamics=others), state.sel(dynamics=reference, drop=True))
    return _unless_lost(distances, paired, max_lost, either_diverged).reindex(dynamics=ds["dynamics"].values)


def from_start(ds: xr.Dataset, state: xr.DataArray, distance: Distance, max_lost: float) -> xr.DataArray:
    """Return the distance of the `state` of each dynamics from its start, per seed; NaN if that is not recorded."""
    start = state.isel(time=0, drop=True).where(ds["time"][0].item() == 0.0)
    return _unless_lost(distance(state, start), has_run(ds), max_lost, has_diverged(ds))


def _unless_lost(distance: xr.DataArray, run: xr.DataArray, max_lost: float, diverged: xr.DataArray) -> xr.DataArray:
    """Return the distances of pairs that have a `run`, NaN for all seeds where too many of these have none."""
    distance = distance.where(run)
    return unless_lost(distance, without_value(distance, run), run, max_lost, diverged)
