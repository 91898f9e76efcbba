"""Examination of finished datasets: every file is read and compared with what was written."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sweeplib.storage.checked_store import is_intact
from sweeplib.storage.contents import NAME, recorded_entries
from sweeplib.storage.damage import DAMAGED, LOST
from sweeplib.storage.dataset import version_of
from sweeplib.storage.files import digest_of, file_digests
from sweeplib.storage.markers import recorded_digests

METADATA = ("zarr.json", NAME)
FOREIGN = "not a file of the dataset"


@dataclass(frozen=True)
class DatasetHarm:
    """A damaged, lost or foreign file of a dataset, and what of the dataset it holds: an array, and where in it.

    `places` are the indices of the chunk along those dimensions that the array is cut along.
    """

    file: Path
    problem: str
    array: str = ""
    places: tuple[tuple[str, int], ...] = ()


def examined_dataset(path: Path, digest: str | None) -> tuple[int, list[DatasetHarm]]:
    """Return the number of chunks that were read in a dataset, and its damaged files.

    `digest` is that of the dataset as it was written, None if it is not known.
    """
    version = version_of(path)
    found, recorded = file_digests(version), recorded_digests(path)
    chunks = sum(not name.endswith(METADATA) for name in found)
    if digest is not None and digest_of(found) == digest:
        return chunks, []
    if recorded and digest in (None, digest_of(recorded)):
        problems = dict(_changed(found, recorded))
    else:
        problems = dict(_inconsistent(version, found)) or ({} if digest is None else {"": DAMAGED})
    return chunks, [_harm(version, name, problem) for name, problem in sorted(problems.items())]


def _changed(found: dict[str, str], recorded: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the files whose digests are not the recorded ones, with their problem."""
    for name in found.keys() | recorded.keys():
        if found.get(name) != recorded.get(name):
            yield name, FOREIGN if name not in recorded else LOST if name not in found else DAMAGED


def _inconsistent(version: Path, found: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the files that contradict the dataset's own inventory or checksums, where their digests are not known."""
    recorded = recorded_entries(version)
    if not recorded:
        yield NAME, DAMAGED
    yield from ((name, LOST) for name in recorded.keys() - found.keys())
    for name, content in found.items():
        file = version / name
        if file.name not in METADATA:
            intact = is_intact(file.read_bytes())
        else:
            intact = recorded.get(name) in (None, content, file.stat().st_size)
        if not intact:
            yield name, DAMAGED


def _harm(version: Path, name: str, problem: str) -> DatasetHarm:
    if not name:
        return DatasetHarm(version, problem)
    array, _, key = name.partition("/c/")
    return DatasetHarm(version / name, problem, *((array, _places(version / array, key)) if key else ()))


def _places(array: Path, key: str) -> tuple[tuple[str, int], ...]:
    """Return where a chunk is, along the dimensions that have several chunks; () if the metadata do not say it."""
    try:
        metadata = json.loads((array / "zarr.json").read_bytes())
        dims, sizes = metadata["dimension_names"], metadata["shape"]
        chunks = metadata["chunk_grid"]["configuration"]["chunk_shape"]
        parts = zip(dims, sizes, chunks, map(int, key.split("/")), strict=True)
        return tuple((dim, at) for dim, size, chunk, at in parts if chunk == 1 < size)
    except (OSError, ValueError, TypeError, KeyError):
        return ()
