"""The dataset of a sweep with its overlap matrices, which are stored in a group for each shape (p, k)."""

from __future__ import annotations

from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

from sweeplib.analysis.kit.labels import at_labels
from sweeplib.engine.base.late_modules import xarray as xr

if TYPE_CHECKING:
    from sweeplib.engine.storage.dataset.folder import Opened


def open_with_overlaps(path: Path | Opened) -> xr.Dataset:
    """Return the dataset at `path`, or of a version already found, with matrices and vectors over all kinds of units.

    Entries beyond the number of students, particles or teachers of a point are NaN. The matrices are in memory, unlike
    those of `open_dataset`, and matrices of every shape are padded to the largest. Without such variables the result is
    that of `open_dataset`.
    """
    from sweeplib.engine.storage.dataset.folder import open_dataset, present_version, shapes_of

    version = path if isinstance(path, tuple) else present_version(path)
    ds = open_dataset(version)
    groups = [open_dataset(version, shape=shape) for shape in shapes_of(version)]
    groups = [group[list(group.data_vars)].reset_coords(drop=True) for group in groups]
    inner = {str(dim) for group in groups for dim in group.dims} - set(map(str, ds.dims))
    sizes = {dim: max(group.sizes.get(dim, 0) for group in groups) for dim in inner}
    paddings = [{dim: (0, sizes[dim] - group.sizes[dim]) for dim in inner if dim in group.dims} for group in groups]
    padded = [group.pad(widths) for group, widths in zip(groups, paddings, strict=True)]
    if not padded:
        return ds
    whole = reduce(lambda first, other: first.combine_first(other), padded)  # it may sort the axes' values
    return ds.merge(whole.reindex({dim: ds[dim] for dim in whole.dims if dim in ds.dims}), join="exact")


def with_overlaps(ds: xr.Dataset) -> xr.Dataset:
    """Return a dataset, or a part of one, with its matrices and vectors over units, from the files it was opened from.

    Without such files, or if they have no others, the dataset is returned as it is.
    """
    source = ds.encoding.get("opened") or Path(str(ds.encoding.get("source", "")))
    if isinstance(source, Path) and not (source / "zarr.json").exists():
        return ds
    whole = open_with_overlaps(source)
    matrices = whole[[name for name in whole.data_vars if name not in ds.variables]]
    if not matrices.data_vars:
        return ds
    chosen = {dim: ds[dim].values for dim in map(str, matrices.indexes) if dim in ds.coords}
    return ds.merge(at_labels(matrices, chosen).reset_coords(drop=True), join="exact")
