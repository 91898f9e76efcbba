"""The variables that a dataset has recorded, and the kind of dynamics that recorded them."""

from __future__ import annotations

from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import Outline, outline_of
from sweeplib.errors import InputError
from sweeplib.statistics.lost_runs import with_status

DECLARED_BY = {"exit_": "`thresholds`, such as [0.01]", "schedule_": "an optimal `schedule`, such as optimal(6)"}
"""What a sweep needs for variables that are no observables, by how their names begin."""


def require(ds: xr.Dataset | Outline, *names: str) -> None:
    """Raise InputError if a variable that an analysis reads is not recorded."""
    for name in names:
        if name not in ds.variables:
            declared = next((text for start, text in DECLARED_BY.items() if name.startswith(start)), None)
            expected = declared or f"{name} among the `observables`"
            raise InputError("not recorded in this sweep", value=name, expected=expected)


def over_time(ds: xr.Dataset | Outline) -> list[str]:
    """Return the recorded observables that have a time axis; not the errors of other observables."""
    outline = outline_of(ds)
    return [
        name for name, dims in outline.variables.items() if {"seed", "time"} <= set(dims) and name not in outline.errors
    ]


def recorded(ds: xr.Dataset | Outline) -> list[str]:
    """Return the observables over time of networks, or all results of functions; not the errors of others."""
    outline = outline_of(ds)
    if "function" not in outline.attrs:
        return over_time(outline)
    others = {"status", *outline.axes, *outline.coordinates, *outline.errors}
    return [name for name, dims in outline.variables.items() if "seed" in dims and name not in others]


def stops_at_exits(ds: xr.Dataset) -> bool:
    """Return whether runs of a dataset that does not say so stop at exits: regular ones without their last values.

    An observable that is not known at the first time either says nothing.
    """
    if "exit_time" not in ds:
        return False
    ok, names = with_status(ds, "ok"), over_time(ds)
    for name in names:
        inner = [dim for dim in ds[name].dims if dim not in (*ok.dims, "time")]
        first, last = (ds[name].isel(time=at).notnull().any(inner) for at in (0, -1))
        if bool((ok & first & ~last).any()):
            return True
    return False


def is_stochastic(dynamics: str) -> bool:
    """Return whether runs of the dynamics are noisy beyond their start; true for an unknown dynamics."""
    from sweeplib.networks.dynamics import DYNAMICS

    return dynamics not in DYNAMICS or (DYNAMICS[dynamics].stochastic and not DYNAMICS[dynamics].sampled)
