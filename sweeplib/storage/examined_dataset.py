"""Examination of finished datasets: every file is read and compared with what was written."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sweeplib.storage.contents import NAME, is_entry_of, own_digests, recorded_entries
from sweeplib.storage.damage import DAMAGED, LOST
from sweeplib.storage.files import digest_of, file_digests, is_intact
from sweeplib.storage.markers import recorded_digests
from sweeplib.storage.versions import present

METADATA = ("zarr.json", NAME)


@dataclass(frozen=True)
class DatasetHarm:
    """A damaged or lost file of a dataset, and what of the dataset it holds: an array, and where in it.

    `places` are the indices of the chunk along those dimensions that the array is cut along.
    """

    file: Path
    problem: str
    array: str = ""
    places: tuple[tuple[str, int], ...] = ()


def examined_dataset(path: Path, digest: str | None) -> tuple[int, list[DatasetHarm]]:
    """Return the number of chunks that were read in a dataset, and its damaged files; files of others are neither.

    `digest` is that of the dataset as it was written, None if it is not known.
    """
    version, recorded = present(path), recorded_digests(path)
    found = own_digests(version)
    if recorded and digest in (None, digest_of(recorded)):
        found = {name: content for name, content in file_digests(version).items() if name in recorded}
        problems = {
            name: DAMAGED if name in found else LOST for name, content in recorded.items() if found.get(name) != content
        }
    else:
        unlike = digest is not None and digest_of(found) != digest
        problems = dict(_inconsistent(version, found)) or ({"": DAMAGED} if unlike else {})
    chunks = sum(not name.endswith(METADATA) for name in found)
    return chunks, [_harm(version, name, problem) for name, problem in sorted(problems.items())]


def _inconsistent(version: Path, found: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the files that contradict the dataset's certificate or checksums, where their digests are not known."""
    recorded = recorded_entries(version)
    if not recorded:
        yield NAME, DAMAGED
    yield from ((name, LOST) for name in recorded.keys() - found.keys())
    for name in found.keys() - {NAME}:
        content = (version / name).read_bytes()
        like = name not in recorded or is_entry_of(recorded[name], name, content)
        if not like or (not name.endswith(METADATA) and not is_intact(content)):
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
