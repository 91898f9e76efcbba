"""What a dataset has recorded, and by what kind of dynamics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sweeplib.errors import InputError
from sweeplib.storage.outline import outline_of

if TYPE_CHECKING:
    import xarray as xr

    from sweeplib.storage.outline import Outline


def require(ds: xr.Dataset | Outline, *names: str) -> None:
    """Raise InputError when a variable that an analysis reads is not recorded."""
    for name in names:
        if name not in ds.variables:
            wanted = "`thresholds`, such as [0.01]" if name.startswith("exit") else f"{name} among the `observables`"
            raise InputError("not recorded in this sweep", value=name, expected=wanted)


def over_time(ds: xr.Dataset | Outline) -> list[str]:
    """The recorded observables that have a time axis, with or without axes of their own; not errors of others."""
    outline = outline_of(ds)
    return [
        name for name, dims in outline.variables.items() if {"seed", "time"} <= set(dims) and name not in outline.errors
    ]


def is_stochastic(dynamics: str) -> bool:
    """Whether runs of the dynamics have noise of their own, beyond their start; those of an unknown one are said to."""
    from sweeplib.dynamics import DYNAMICS

    return dynamics not in DYNAMICS or getattr(DYNAMICS[dynamics], "stochastic", dynamics != "ode")
