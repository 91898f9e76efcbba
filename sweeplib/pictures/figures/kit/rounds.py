"""The round of a sweep with questions that asked for each point of a figure: 0 for those of the config."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.networks.simulation.labels import label

ROUND = "round"
ADDED_SIZE = 0.6
"""The size of the marker of a point that a round has added, relative to that of one of the config."""


def with_rounds(result: xr.Dataset, ds: xr.Dataset, variable: str) -> xr.Dataset:
    """Return data with the round in which the points of a variable were first asked for, NaN where they were not.

    Of a point that many rows take part in it is that of the first one. Unchanged if no round has added to the dataset.
    """
    if ROUND not in ds.coords or not bool((ds[ROUND] > 0).any()):
        return result
    rounds = ds[ROUND].where(ds[ROUND] >= 0)
    first = rounds.min([dim for dim in rounds.dims if dim not in result[variable].dims])
    places = {dim: result[dim].values for dim in first.dims if dim in result.indexes}
    return result.drop_vars(ROUND, errors="ignore").assign({ROUND: first.sel(places).assign_attrs(label(ROUND))})


def is_asked(data: xr.Dataset, like: xr.DataArray) -> NDArray[np.bool_]:
    """Return which points of a variable the config or a round has asked for, in the order of its axes."""
    return np.isfinite(_rounds_of(data, like))


def is_added(data: xr.Dataset, like: xr.DataArray) -> NDArray[np.bool_]:
    """Return which points of a variable rounds have added, in the order of its axes."""
    return np.asarray(_rounds_of(data, like) > 0)


def _rounds_of(data: xr.Dataset, like: xr.DataArray) -> NDArray[np.float64]:
    """Return the round of each point of a variable, NaN where none asked for it; 0 if no round has added any."""
    if ROUND not in data:
        return np.zeros(like.shape)
    return np.asarray(data[ROUND].broadcast_like(like).transpose(*like.dims).values, float)
