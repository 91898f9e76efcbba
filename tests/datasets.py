"""Synthetic datasets of finished sweeps, and changes of them."""

import numpy as np
import xarray as xr

from sweeplib.contracts.datasets import (
    FIXED,
    giant_steps_dataset,
    labelled,
    norms_dataset,
    sweep_dataset,
)
from sweeplib.engine.status import STATUS_LABELS, Status

__all__ = [
    "giant_steps_dataset",
    "norms_dataset",
    "sweep_dataset",
    "timed_out",
    "units_dataset",
    "with_constants_as_attributes",
    "with_outcome",
]


def with_constants_as_attributes(ds: xr.Dataset) -> xr.Dataset:
    """Return the dataset with its scalar coordinates, which are fields of the problem, as attributes."""
    scalars = {str(name): variable.item() for name, variable in ds.coords.items() if not variable.ndim}
    kinds = {name: int(value) if isinstance(value, bool) else value for name, value in scalars.items()}
    return ds.drop_vars(scalars).assign_attrs(kinds)


def timed_out(ds: xr.Dataset, steps: float) -> xr.Dataset:
    """Return the dataset of runs limited to a number of steps: later exits are not observed."""
    late = (ds.exit_steps.isel(threshold=0, drop=True) > steps) | (
        ds.exit_steps.isel(threshold=0, drop=True).isnull() & (ds.end_steps > steps)
    )
    pace = ds.end_time / ds.end_steps
    return ds.assign(
        exit_steps=ds.exit_steps.where(~late),
        exit_time=ds.exit_time.where(~late),
        end_steps=ds.end_steps.where(~late, steps),
        end_time=ds.end_time.where(~late, steps * pace),
        status=ds.status.where(~late, Status.timeout).astype(np.uint8).assign_attrs(STATUS_LABELS),
    )


def with_outcome(ds: xr.Dataset, outcome: str, where: xr.DataArray) -> xr.Dataset:
    """Return the dataset with this status of the runs at `where`; failed and killed runs have no values."""
    status = ds.status.where(~where, Status[outcome]).astype(np.uint8).assign_attrs(STATUS_LABELS)
    if outcome in ("failed", "killed"):
        ds = ds.assign({name: ds[name].where(~where) for name in ds.data_vars if name != "status"})
    return ds.assign(status=status)


def units_dataset(*, shift: float = 0.1, p: int = 64, k: int = 1, seeds: int = 3, times: int = 3) -> xr.Dataset:
    """A sweep without axes with the units of SGD and of a mean field, away by `shift` along the first overlap.

    Overlaps are normal and double from a time to the next, norms are uniform on [0.5, 1.5].
    """
    rng = np.random.default_rng(0)
    M = np.broadcast_to(rng.normal(size=(1, seeds, 1, p, k)), (2, seeds, times, p, k)).copy()
    M *= 2.0 ** np.arange(times)[:, None, None]
    M[1, ..., 0] += shift
    q = np.broadcast_to((0.5 + rng.random((1, seeds, 1, p))) ** 2, M.shape[:-1]).copy()
    outer = ("dynamics", "seed")
    ds = xr.Dataset(
        {
            "overlap_M": ((*outer, "time", "student", "teacher"), M),
            "self_overlap": ((*outer, "time", "student"), q),
            "status": (outer, np.ones((2, seeds), np.uint8)),
        },
        coords={"dynamics": ["sgd", "mean_field"], "seed": np.arange(seeds), "time": np.arange(float(times))},
    ).assign_attrs({name: value for name, value in FIXED.items() if name != "spherical"} | {"p": p, "k": k})
    return labelled(ds).assign_attrs(gamma=0.1, d=40, Delta=0.0)
