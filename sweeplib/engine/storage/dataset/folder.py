"""Labelled datasets on disk: zarr v3 for plain `xarray.open_zarr`; the same content always gives the same bytes.

A group of zarr, "p4_k1", has the variables of a group of cases, whose arrays have the same lengths; at the root are
those that all cases share. The manifest of a version lists its files with their checksums.
"""

from __future__ import annotations

import itertools
import math
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from zarr.codecs import Crc32cCodec, ZstdCodec

from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.groups import group_sizes
from sweeplib.engine.storage.dataset.stores import LinkingStore, RegularStore, VersionStore
from sweeplib.engine.storage.dataset.versions import FOLDER, present_folder, replacement
from sweeplib.engine.storage.records.manifest import MANIFEST, bytes_if_any, written_manifest
from sweeplib.engine.variable import stored_attributes
from sweeplib.errors import InputError, SweeplibError

COMPRESSORS = (ZstdCodec(level=0), Crc32cCodec())
"""The compressors of all arrays: zarr's default, then the checksum of the compressed bytes."""
CHUNK_BYTES = 16 * 2**20
"""Arrays up to this number of bytes are one chunk, and one file."""
Opened = tuple[VersionStore | Path, Path, str]
"""A version of a dataset, its folder, and its name; without a manifest it is the folder, and has no name."""
FILE_BYTES = 2**20
"""Reading this number of bytes takes about as long as opening a file."""


class GroupWriter:
    """Writes coordinates and variables of one zarr group, one at a time."""

    def __init__(self, group: zarr.Group) -> None:
        self.group = group
        self._coordinates: list[str] = []

    def coordinate(self, name: str, dims: Sequence[str], values: Any, attributes: Mapping[str, Any]) -> None:
        """Write a coordinate: its values over its dimensions, and its attributes."""
        values = zarr_values(np.asarray(values))
        self.variable(name, dims, values.shape, values.dtype, attributes)[...] = values
        if tuple(dims) != (name,):
            self._coordinates.append(name)

    def variable(
        self,
        name: str,
        dims: Sequence[str],
        shape: Sequence[int],
        dtype: Any,
        attributes: Mapping[str, Any],
    ) -> Any:
        """Return the array of a new variable, to be filled; its fill value is NaN, and NaN is written explicitly."""
        dtype = np.dtype(dtype)
        return self.group.create_array(
            name,
            shape=tuple(shape),
            dtype=str if dtype.kind == "T" else dtype,
            chunks=chunks_of(shape, dtype.itemsize),
            compressors=COMPRESSORS,
            fill_value=np.nan if dtype.kind == "f" else None,
            dimension_names=tuple(dims),
            attributes=stored_attributes(attributes),
            config={"write_empty_chunks": True},
        )

    def stacked(
        self,
        name: str,
        dims: Sequence[str],
        shape: Sequence[int],
        dtype: Any,
        attributes: Mapping[str, Any],
        arrays: Iterable[np.ndarray],
    ) -> None:
        """Write a new variable, of `shape`, from one of the `arrays` for each index along its first dimension.

        The arrays may be made as they are asked for: of a large variable one is in memory at a time.
        """
        array = self.variable(name, dims, shape, dtype, attributes)
        if array.chunks[0] > 1:
            array[...] = np.stack(list(arrays))
            return
        for place, values in enumerate(arrays):
            for selection in _chunk_groups(values, array.chunks[1:]):
                array[(place, *selection)] = values[selection]

    def finish(self, attributes: Mapping[str, Any]) -> None:
        """Write the group's attributes, including the list of coordinates that are not dimensions."""
        coordinates = {"coordinates": " ".join(sorted(self._coordinates))} if self._coordinates else {}
        self.group.update_attributes(dict(attributes) | coordinates)


def _chunk_groups(values: np.ndarray, chunks: Sequence[int]) -> Iterator[tuple[slice, ...]]:
    """Yield selections of whole chunks that cover an array, of about `CHUNK_BYTES` each or of one layer of chunks.

    chunks : the lengths of chunks along the dimensions of `values`; selections divide the first that is chunked.
    """
    split = next((dim for dim, size in enumerate(values.shape) if chunks[dim] < size), None)
    if split is None:
        yield ()
        return
    step, size = chunks[split], values.shape[split]
    step *= max(1, CHUNK_BYTES * size // max(1, values.nbytes) // step)
    for first in range(0, size, step):
        yield (*[slice(None)] * split, slice(first, first + step))


@contextmanager
def written_dataset(path: Path, *, keep: bool = False) -> Iterator[zarr.Group]:
    """Yield the root group of a new dataset, which appears at `path`, complete and consolidated, at the end.

    Chunks that the dataset at `path` has too are linked, not written. The version before is kept for its readers if
    `keep`. DamageError if what is on the disk is not what was written. Only for a writer that holds the lock of `path`.
    """
    with replacement(path, keep=keep) as partial:
        store = LinkingStore(partial, before=present_folder(path))
        root = zarr.create_group(store, zarr_format=3)
        yield root
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of the format; a lost array is named below
            zarr.consolidate_metadata(store)
        written_manifest(partial, store.meant)


def write_dataset(dataset: xr.Dataset, path: Path) -> Path:
    """Write a dataset of xarray to a folder of zarr that appears complete; return its path.

    Only for a writer that holds the lock of `path`. DamageError if what is on the disk is not what was written.
    """
    with written_dataset(path) as root:
        writer = GroupWriter(root)
        for name, variable in sorted(dataset.coords.items(), key=lambda item: str(item[0])):
            writer.coordinate(str(name), [str(dim) for dim in variable.dims], variable.values, variable.attrs)
        for name, variable in sorted(dataset.data_vars.items(), key=lambda item: str(item[0])):
            values = zarr_values(variable.values)
            dims = [str(dim) for dim in variable.dims]
            writer.variable(str(name), dims, values.shape, values.dtype, variable.attrs)[...] = values
        writer.finish(dataset.attrs)
    return path


def open_dataset(path: str | Path | Opened, shape: tuple[int, ...] | None = None) -> xr.Dataset:
    """Return the dataset of a sweep or an analysis, lazily, as `xarray.open_zarr` does, with numpy strings.

    path : of the dataset, or of the folder of a finalised sweep; or a `present_version`.
    shape : the sizes of a group of cases, of networks (p, k): only the variables that need them, the overlap matrices.

    Later reads are from the version that was opened, also when the next version is written meanwhile. InputError if
    there is no dataset; DamageError, also from later reads, if a file is lost or damaged, or two more were written.
    """
    if isinstance(path, tuple):
        return _dataset_of_version(path, shape)
    while True:
        version = present_version(path)
        try:
            return _dataset_of_version(version, shape)
        except SweeplibError:
            # a version that was replaced while it was opened is no error: the next one is opened
            if present_version(path)[1:] == version[1:]:
                raise


def present_version(path: str | Path) -> Opened:
    """Return the present version of a dataset for several calls of `open_dataset`.

    An error counts only if that version is still the present one: a writer may have replaced it meanwhile.
    """
    path = Path(path)
    path = path / "dataset.zarr" if os.path.lexists(path / "dataset.zarr") or (path / FOLDER).is_dir() else path
    remedy = f"delete {path} and repeat the command that wrote it"
    while True:
        folder = present_folder(path)
        before = bytes_if_any(folder / MANIFEST)
        if before is None:
            return folder, folder, ""
        try:
            store = VersionStore(folder, remedy)
        except SweeplibError:
            if bytes_if_any(present_folder(path) / MANIFEST) == before:
                raise
        else:
            return store, folder, store.version


def _dataset_of_version(version: Opened, shape: tuple[int, ...] | None) -> xr.Dataset:
    """Return a version of a dataset, or its group of cases with the sizes `shape`; InputError if there is none."""
    store, path, _ = version
    groups = _groups(version)
    group = None if shape is None else groups.get(shape)
    if shape is None and not _has(version, "zarr.json"):
        raise _no_dataset(path)
    if shape is not None and group is None:
        names = ", ".join(next((group_sizes(name) for name in groups.values()), ()))
        raise InputError(f"no group of this shape ({names})", file=path, value=shape, choices=map(str, groups))
    with warnings.catch_warnings():  # of a dataset that others wrote
        warnings.filterwarnings("ignore", "Failed to open Zarr store with consolidated", RuntimeWarning)
        opened = store if isinstance(store, VersionStore) else RegularStore(path, read_only=True)
        ds = plain(xr.open_zarr(opened, group=group, chunks=None, zarr_format=3))
    if not ds.variables:
        raise _no_dataset(path)
    ds.encoding |= {"source": str(path), "opened": version}
    return ds


def _no_dataset(path: Path) -> InputError:
    """Return the error that a folder has no dataset."""
    return InputError("no dataset here", file=path, expected="`dataset.zarr` in the folder of a finished sweep")


def shapes_of(dataset: Opened) -> list[tuple[int, ...]]:
    """Return the sizes, of networks (p, k), of the groups of cases in a dataset, ascending."""
    return sorted(_groups(dataset))


def _groups(dataset: Opened) -> dict[tuple[int, ...], str]:
    """Return the names of the groups of cases in a dataset, by their sizes.

    A group has arrays below it, "p4_k1/Q/zarr.json"; a coordinate with the name of one, such as `p0`, has none.
    """
    store, path, _ = dataset
    if isinstance(store, VersionStore):
        arrays = [entry.split("/") for entry in store.entries]
    else:
        arrays = [list(file.relative_to(path).parts) for file in path.glob("*/*/zarr.json")]
    names = {parts[0] for parts in arrays if len(parts) == 3 and parts[2] == "zarr.json"}
    sizes = {tuple(group_sizes(name).values()): name for name in sorted(names)}
    return {size: name for size, name in sizes.items() if size}


def _has(dataset: Opened, name: str) -> bool:
    """Return whether a version of a dataset has a file: by its manifest, since the disk may have a newer version.

    Without a manifest the disk is looked at.
    """
    store, path, _ = dataset
    return name in store.entries if isinstance(store, VersionStore) else (path / name).exists()


def plain(ds: xr.Dataset) -> xr.Dataset:
    """Return a dataset in which Dask arrays are lazy arrays of xarray, and strings those of NumPy's own type.

    Every function of xarray, pandas and scipy takes these.
    """
    strings = {name: array for name, array in ds.variables.items() if array.dtype.kind in "OT"}
    lazy = {name: array for name, array in ds.variables.items() if array.chunks and name not in strings}
    if not strings and not lazy:
        return ds
    return ds.assign(
        {name: (array.dims, _lazy_array(array), array.attrs) for name, array in lazy.items()}
        | {
            name: (array.dims, array.values.astype(object).astype("U"), array.attrs, _AS_BEFORE)
            for name, array in strings.items()
        }
    )


_AS_BEFORE = {"dtype": object}
"""The encoding of NumPy's own strings, which zarr does not specify, so that xarray writes strings of any length."""


def _lazy_array(array: xr.Variable) -> Any:
    """Return a Dask array as one of xarray's own that is computed when it is read, and then kept."""
    from xarray.backends import BackendArray
    from xarray.core import indexing

    class Computed(BackendArray):
        """An array of a backend, whose values are computed by Dask."""

        shape, dtype = array.shape, array.dtype

        def __getitem__(self, key: Any) -> Any:
            read = array.data.__getitem__
            basic = indexing.IndexingSupport.BASIC
            return indexing.explicit_indexing_adapter(key, self.shape, basic, lambda place: np.asarray(read(place)))

    return indexing.MemoryCachedArray(indexing.LazilyIndexedArray(Computed()))


def zarr_values(values: np.ndarray) -> np.ndarray:
    """Return values in a type that zarr v3 specifies: strings get variable length, all others stay."""
    return values.astype(np.dtypes.StringDType()) if values.dtype.kind in "UO" else values


def chunks_of(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """Return the chunks of an array: along each dimension the whole length, or 1.

    Every selection then consists of whole chunks, which xarray requires for writing it again. An array of more than
    `CHUNK_BYTES` has chunks of length 1 along its first dimension, and along those other dimensions for which reading
    one point costs least. The cost is `FILE_BYTES` times the number of chunks at one index of the first dimension, plus
    the bytes of a chunk.
    """
    sizes = [max(1, size) for size in shape]
    if math.prod(sizes) * itemsize <= CHUNK_BYTES:
        return tuple(sizes)
    first, *others = sizes
    several = [(size, 1) if size > 1 else (1,) for size in others]
    row_items = math.prod(others)

    def cost(chunk: Sequence[int]) -> int:
        """Return the bytes that reading one point is worth, with chunks of these lengths along the other dimensions."""
        return FILE_BYTES * row_items // math.prod(chunk) + math.prod(chunk) * itemsize

    return (1 if others else first, *min(itertools.product(*several), key=cost))
