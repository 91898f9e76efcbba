"""Marker files `<name>.done.json` beside the datasets `<name>.zarr` of stages; a workflow tracks the markers.

A marker has a digest of the content, so that equal contents have equal markers. `<name>.files.json` has the sizes,
times and digests of the files: changes are noticed without reading the files, and a damaged file can be named.

The marker of an analysis, and `figures/<name>.source.json`, have the digest of the dataset that was read (`source`).
"""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from sweeplib.errors import InputError
from sweeplib.storage.damage import DamageError
from sweeplib.storage.files import digest, digest_of, file_digests, read_json, write_json

UNREAD = ("analyses", "cluster", "figures", "plugins", "publish", "timeout")
"""Keys of a config on which the numbers of its dataset do not depend, or only through the cases."""


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


def source(directory: Path) -> dict[str, str]:
    """Return the digest of the dataset in a sweep's directory, as an entry of what is made from it; {} if unknown."""
    found = (read_json(directory / "dataset.done.json") or {}).get("digest")
    return {"dataset": found} if found else {}


def outdated(directory: Path, analyses: Iterable[str], figures: Iterable[str]) -> list[str]:
    """Return which of the analyses and figures in a sweep's directory were made from another dataset than the present.

    Python and the commands for single stages write a dataset without all that is made from it.
    """
    every = [
        *((f"analysis {name}", directory / "analysis" / f"{name}.done.json") for name in analyses),
        *((f"figure {name}", directory / "figures" / f"{name}.source.json") for name in figures),
    ]
    now = source(directory)
    return [what for what, path in every if _is_of_other(path, now)]


def refuse_outdated(directory: Path, analyses: Iterable[str], figures: Iterable[str]) -> None:
    """InputError if some analyses and figures in a sweep's directory were made from another dataset."""
    if found := outdated(directory, analyses, figures):
        problem = f"the dataset was written again, not what is made from it: {', '.join(found)}"
        raise InputError(problem, file=directory, expected="`sweeplib sweep` or, in Python, `report()` before")


def _is_of_other(path: Path, now: Mapping[str, str]) -> bool:
    try:
        before = (read_json(path) or {}).get("dataset")
    except DamageError:  # `verify` tells
        return False
    return bool(before and now) and before != now["dataset"]


def remove_stale_markers(directory: Path, settings: Mapping[str, Any] | None = None) -> None:
    """Remove the markers in a sweep's directory that are not true any more, so that a workflow runs the stages again.

    Those whose dataset is gone or was changed; analyses and figures of another dataset; if the dataset has other
    `settings` than these, keys of a config and their values, the markers of the dataset and of the simulations.
    """
    marker = directory / "dataset.done.json"
    with suppress(OSError):  # a read-only directory: no stage could be repeated there
        for each in (marker, *directory.glob("analysis/*.done.json")):
            if each.exists() and not _is_true(each):
                each.unlink()
        if not marker.exists():
            return
        other = settings is not None and _has_other(directory / "dataset.zarr", settings)
        simulated = (read_json(marker) or {}).get("cases")
        for dynamics, cases in simulated.items() if isinstance(simulated, dict) else ():
            part = directory / f"{dynamics}.done.json"
            if other or _counts(part) != {status: count for status, count in cases.items() if count}:
                part.unlink(missing_ok=True)
        if other:
            marker.unlink()
        else:
            _remove_outdated(directory)


def _remove_outdated(directory: Path) -> None:
    now = source(directory)
    for path in directory.glob("analysis/*.done.json"):
        if _is_of_other(path, now):
            path.unlink()
    for path in directory.glob("figures/*.source.json"):
        if _is_of_other(path, now):
            path.with_name(path.name.removesuffix(".source.json") + ".png").unlink(missing_ok=True)


def _has_other(dataset: Path, settings: Mapping[str, Any]) -> bool:
    """Return whether the dataset was written from a config with other keys or values than the `settings`."""
    try:
        described = json.loads((dataset / "zarr.json").read_text(encoding="utf-8"))
        written = yaml.safe_load(described["attributes"]["config"])
    except (ValueError, KeyError, TypeError, yaml.YAMLError):
        return False
    return bool(_read(written) != _read(settings))


def _read(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in settings.items() if key not in UNREAD}


def _counts(marker: Path) -> dict[str, int]:
    """Return the numbers of cases of each status that occurs, by the marker of a dynamics; {} if it is damaged."""
    try:
        return (read_json(marker) or {}).get("cases", {})
    except DamageError:
        return {}


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
