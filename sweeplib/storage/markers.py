"""`<name>.done.json` beside each `<name>.zarr` that a stage makes: what a workflow knows it by.

It has a digest of the content, so that a copy of the same content is the same. `<name>.files.json` has sizes and times
of the files, by which a change is noticed without reading them.
"""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from sweeplib.storage.damage import DamageError
from sweeplib.storage.files import files_digest, read_json, write_json


def write_marker(dataset: Path, done: Mapping[str, Any]) -> None:
    """Write that a dataset is made, with a digest of what is in it beside what is to be said of it."""
    write_json(dataset.with_suffix(".files.json"), _files(dataset))
    write_json(dataset.with_suffix(".done.json"), {**done, "digest": files_digest(dataset)})


def remove_stale_markers(directory: Path) -> None:
    """Remove the markers in a sweep's directory whose dataset is gone, or is not the one that was made."""
    for marker in (directory / "dataset.done.json", *directory.glob("analysis/*.done.json")):
        with suppress(OSError):  # where nothing can be removed, nothing could be made again
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
    """The size and the time of each file of a dataset; none where there is no dataset."""
    found = {file.relative_to(dataset).as_posix(): file.stat() for file in dataset.rglob("*") if file.is_file()}
    return {name: [stat.st_size, stat.st_mtime_ns] for name, stat in sorted(found.items())}
