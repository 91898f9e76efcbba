"""Synthetic datasets of finished sweeps, and changes of them."""

import numpy as np
import xarray as xr

from sweeplib.contracts.datasets import FLAGS, STATUS, giant_steps_dataset, norms_dataset, sweep_dataset, units_dataset

__all__ = [
    "FLAGS",
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
        status=ds.status.where(~late, STATUS["timeout"]).astype(np.uint8).assign_attrs(FLAGS),
    )


def with_outcome(ds: xr.Dataset, outcome: str, where: xr.DataArray) -> xr.Dataset:
    """Return the dataset with this status of the runs at `where`; failed and killed runs have no values."""
    status = ds.status.where(~where, STATUS[outcome]).astype(np.uint8).assign_attrs(FLAGS)
    if outcome in ("failed", "killed"):
        ds = ds.assign({name: ds[name].where(~where) for name in ds.data_vars if name != "status"})
    return ds.assign(status=status)
