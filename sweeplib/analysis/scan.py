"""The axis of a dataset that scans the learning rate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sweeplib.errors import InputError
from sweeplib.problem import PROBLEM_FIELDS
from sweeplib.storage.outline import Outline, outline_of

if TYPE_CHECKING:
    import xarray as xr


def scan_dim(ds: xr.Dataset | Outline, along: str | None = None) -> str:
    """Return the dimension along which gamma is scanned at a fixed problem.

    `gamma` itself if it is an axis. Otherwise the single axis that gamma is derived from and that is no field of the
    problem, such as gamma0 in gamma = gamma0 * d**-delta. InputError if there is none, if there are several and `along`
    does not choose one, or if other fields of the problem vary along it.
    """
    outline = outline_of(ds)
    dims = outline.dims_of("gamma")
    if along is not None and along not in dims:
        raise InputError("gamma does not vary along", key="along", value=along, choices=dims)
    candidates = [along] if along else ["gamma"] if "gamma" in dims else [d for d in dims if d not in PROBLEM_FIELDS]
    problem = f"no single axis scans the learning rate (it varies along {', '.join(dims) or 'none'})"
    if len(candidates) > 1:
        raise InputError(problem, key="along", value=None, choices=candidates)
    if not candidates or outline.sizes[candidates[0]] < 2:
        expected = "two learning rates or more in `grid`, or an axis there from which gamma is derived"
        raise InputError(problem, expected=expected)
    (dim,) = candidates
    others = [name for name in PROBLEM_FIELDS if name != "gamma" and dim in outline.variables.get(name, ())]
    if others:
        raise InputError("not a scan at a fixed problem", key="along", value=dim, expected=f"{', '.join(others)} fixed")
    return dim
