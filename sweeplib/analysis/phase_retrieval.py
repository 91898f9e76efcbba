"""Where the closed forms of phase retrieval (`sweeplib.theory`) apply to a dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sweeplib.analysis.cells import field

if TYPE_CHECKING:
    import xarray as xr


def theory_applies(ds: xr.Dataset) -> xr.DataArray:
    """True where student and teacher are square, k = 1, students spherical and all second layers 1."""
    activation = field(ds, "activation")
    teacher = field(ds, "teacher_activation", "")
    same = teacher.isin(["", "None"]) | (teacher == activation)
    return (
        (activation == "square")
        & same
        & (field(ds, "k") == 1)
        & field(ds, "spherical", False).astype(bool)
        & (field(ds, "a", 1.0) == 1.0)
        & (field(ds, "a_star", 1.0) == 1.0)
    )
