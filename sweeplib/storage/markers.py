"""Marker files `<name>.done.json` beside the datasets `<name>.zarr` of stages; a workflow tracks the markers.

A marker has a digest of the content, so that equal contents have equal markers. `<name>.files.json` has the sizes,
times and digests of the files: changes are noticed without reading the files, and a damaged file can be named.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from sweeplib.storage.damage import DamageError
from sweeplib.storage.files import digest, digest_of, file_digests, read_json, write_json


def write_marker(dataset: Path, done: Mapping[str, Any]) -> None:
    """Write the marker of a finished dataset: the content of `done`, and a digest of the dataset."""
    digests = file_digests(dataset)
    write_json(dataset.with_suffix(".files.json"), _entries(dataset, digests))
    write_json(dataset.with_suffix(".done.json"), {**done, "digest": digest_of(digests)})


def recorded_digests(dataset: Path) -> dict[str, str]:
    """Return the digests of a finished dataset's files as they were written; {} if they are not known."""
    try:
        entries = read_json(dataset.with_suffix(".files.json")) or {}
    except DamageError:
        return {}
    return {name: entry[-1] for name, entry in entries.items()}


def write_digests(path: Path, files: Iterable[Path]) -> None:
    """Write the digests of some files in a folder beside them."""
    write_json(path, {file.name: digest(file.read_bytes()) for file in files})


def remove_stale_markers(directory: Path) -> None:
    """Remove the markers in a sweep's directory whose dataset is gone or was changed."""
    for marker in (directory / "dataset.done.json", *directory.glob("analysis/*.done.json")):
        with suppress(OSError):  # a read-only directory: no stage could be repeated there
            if marker.exists() and not _is_true(marker):
                marker.unlink()


def _is_true(marker: Path) -> bool:
    dataset = marker.with_name(marker.name.removesuffix(".done.json") + ".zarr")
    try:
        done, before = read_json(marker), read_json(dataset.with_suffix(".files.json"))
    except DamageError:
        return False
    if not isinstance(done, dict):
        return False
    if "failed" in done:
        return True
    known = {name: entry[-1] for name, entry in (before or {}).items()}
    if _entries(dataset, known) == before:
        return True
    digests = file_digests(dataset)
    same = bool(digests) and digest_of(digests) == done.get("digest")
    if same:
        write_json(dataset.with_suffix(".files.json"), _entries(dataset, digests))
    return same


def _entries(dataset: Path, digests: Mapping[str, str]) -> dict[str, list[Any]]:
    """Return the size, time and digest (None if not given) of each file of a dataset; {} if there is no dataset."""
    found = {file.relative_to(dataset).as_posix(): file.stat() for file in dataset.rglob("*") if file.is_file()}
    return {name: [stat.st_size, stat.st_mtime_ns, digests.get(name)] for name, stat in sorted(found.items())}
