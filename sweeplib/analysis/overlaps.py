"""The dataset of a sweep with its overlap matrices, which are stored apart, a group a shape (p, k)."""

from __future__ import annotations

from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

from sweeplib.analysis.problem_fields import field

if TYPE_CHECKING:
    import xarray as xr


def open_with_overlaps(path: Path) -> xr.Dataset:
    """The dataset at `path` with all that is recorded of students, particles and teachers: NaN beyond those there are.

    In memory, unlike `open_dataset`: matrices of all sizes take the room of the largest. Without such records it is
    what `open_dataset` gives.
    """
    from sweeplib.storage.dataset import open_dataset, shape_group, version_of

    path = version_of(path)
    ds = open_dataset(path)
    shapes = [shape for shape in _shapes(ds) if (path / shape_group(*shape)).exists()]
    parts = [open_dataset(path, shape=shape) for shape in shapes]
    parts = [part[list(part.data_vars)].reset_coords(drop=True) for part in parts]
    inner = {str(dim) for part in parts for dim in part.dims} - set(map(str, ds.dims))
    sizes = {dim: max(part.sizes.get(dim, 0) for part in parts) for dim in inner}
    padded = [part.pad({dim: (0, sizes[dim] - part.sizes[dim]) for dim in inner if dim in part.dims}) for part in parts]
    return ds.merge(reduce(lambda one, other: one.combine_first(other), padded)) if padded else ds


def _shapes(ds: xr.Dataset) -> list[tuple[int, int]]:
    import xarray as xr

    p, k = xr.broadcast(field(ds, "p"), field(ds, "k"))
    return sorted({(int(p), int(k)) for p, k in zip(p.values.flat, k.values.flat, strict=True)})
