"""Which axis of a dataset scans the learning rate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sweeplib.analysis.cells import field
from sweeplib.errors import InputError
from sweeplib.problem import PROBLEM_FIELDS

if TYPE_CHECKING:
    import xarray as xr


def scan_dim(ds: xr.Dataset, along: str | None = None) -> str:
    """The dimension along which gamma is scanned at a fixed problem.

    `gamma` itself where it is an axis; else the one axis of a derived gamma that is no field of the problem, such as
    gamma0 in gamma = gamma0 * d**-delta. InputError where there is none, or more than one and `along` does not say.
    """
    gamma = field(ds, "gamma")
    dims = [str(dim) for dim in gamma.dims]
    if along is not None:
        if along not in dims:
            raise InputError("gamma does not vary along", key="along", value=along, choices=dims)
        return along
    candidates = ["gamma"] if "gamma" in dims else [dim for dim in dims if dim not in PROBLEM_FIELDS]
    if len(candidates) != 1 or ds.sizes[candidates[0]] < 2:
        found = ", ".join(candidates) if candidates else f"gamma varies along {', '.join(dims) or 'no axis'}"
        raise InputError(f"no single axis scans the learning rate ({found})", key="along", value=along, choices=dims)
    return candidates[0]
