"""Marker files `<name>.done.json` beside the datasets `<name>.zarr` of stages; a workflow tracks the markers.

A marker has a digest of the content, so that equal contents have equal markers. `<name>.files.json` has the sizes and
times of the files, so that changes are noticed without reading the files.
"""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from sweeplib.storage.damage import DamageError
from sweeplib.storage.files import files_digest, read_json, write_json


def write_marker(dataset: Path, done: Mapping[str, Any]) -> None:
    """Write the marker of a finished dataset: the content of `done`, and a digest of the dataset."""
    write_json(dataset.with_suffix(".files.json"), _files(dataset))
    write_json(dataset.with_suffix(".done.json"), {**done, "digest": files_digest(dataset)})


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
    files = _files(dataset)
    if files == before:
        return True
    same = bool(files) and files_digest(dataset) == done.get("digest")
    if same:
        write_json(dataset.with_suffix(".files.json"), files)
    return same


def _files(dataset: Path) -> dict[str, list[int]]:
    """Return the size and time of each file of a dataset; {} if there is no dataset."""
    found = {file.relative_to(dataset).as_posix(): file.stat() for file in dataset.rglob("*") if file.is_file()}
    return {name: [stat.st_size, stat.st_mtime_ns] for name, stat in sorted(found.items())}
