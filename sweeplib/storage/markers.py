"""Marker files `<name>.done.json` beside the datasets `<name>.zarr` of stages; a workflow tracks the markers.

A marker has a digest of the content, so that equal contents have equal markers. `<name>.files.json` has the sizes,
times and digests of the files: changes are noticed without reading the files, and a damaged file can be named.

The marker of the dataset has digests of the config and of the identities of its cases (`dataset_made_from`). That of
an analysis, and `figures/<name>.source.json`, say of which dataset, by which options and by which code they were made
(`made_from`). Snakemake remembers this too, but in the folder where it is started.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweeplib.errors import InputError
from sweeplib.storage.contents import own_digests
from sweeplib.storage.damage import DamageError
from sweeplib.storage.files import digest, digest_of, is_below, read_json, write_json
from sweeplib.storage.jobs import at_work_elsewhere
from sweeplib.storage.provenance import stage_code
from sweeplib.strict_yaml import parsed

if TYPE_CHECKING:
    from sweeplib.design.sweep import Sweep

DATASET = "dataset.zarr"
EXECUTION_KEYS = ("cluster", "publish", "timeout")
"""Keys of a config that only affect how it is run."""
UNREAD = (*EXECUTION_KEYS, "analyses", "figures", "plugins")
"""Keys of a config on which the numbers of its dataset do not depend, or only through the cases."""


def write_marker(dataset: Path, done: Mapping[str, Any], digests: Mapping[str, str]) -> None:
    """Write the marker of a finished dataset: the content of `done`, and a digest of its files' `digests`."""
    write_json(dataset.with_suffix(".files.json"), _entries(dataset, digests))
    write_json(dataset.with_suffix(".done.json"), {**done, "digest": digest_of(digests)})


def recorded_digests(dataset: Path) -> dict[str, str]:
    """Return the digests of a finished dataset's files as they were written; {} if they are not known."""
    try:
        entries = read_json(dataset.with_suffix(".files.json")) or {}
    except DamageError:
        return {}
    return {name: entry[-1] for name, entry in entries.items() if is_below(name)}


def write_digests(path: Path, files: Iterable[Path]) -> None:
    """Write the digests of some files in a folder beside them."""
    write_json(path, {file.name: digest(file.read_bytes()) for file in files})


def recorded_files(record: Path) -> Iterator[Path]:
    """Yield the files beside a record of `write_digests` that are as they were written."""
    try:
        digests = read_json(record) or {}
    except DamageError:
        return
    for name, written in digests.items():
        file = record.parent / name
        if is_below(name) and file.is_file() and digest(file.read_bytes()) == written:
            yield file


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
    return [what for what, path in every if _differs(path, now)]


def refuse_outdated(directory: Path, analyses: Iterable[str], figures: Iterable[str]) -> None:
    """InputError if some analyses and figures in a sweep's directory were made from another dataset."""
    if found := outdated(directory, analyses, figures):
        problem = f"the dataset was written again, not what is made from it: {', '.join(found)}"
        raise InputError(problem, file=directory, expected="`sweeplib sweep` or, in Python, `report()` before")


def dataset_made_from(sweep: "Sweep") -> dict[str, Any]:
    """Return what the dataset of a sweep is made from, as entries of its marker."""
    return {
        "settings": settings_digest(sweep.source),
        "numerics": {dynamics: sweep.numerics(dynamics) for dynamics in sweep.runs},
    }


def settings_digest(source: str, *others: str) -> str:
    """Return a digest of what a config says about the numbers of its dataset, without the keys `others`."""
    settings = {key: value for key, value in (parsed(source) or {}).items() if key not in (*UNREAD, *others)}
    return digest(json.dumps(settings, sort_keys=True, default=str).encode())


def is_of_config(sweep: "Sweep", directory: Path) -> bool:
    """Return whether the dataset in a sweep's directory was made from the sweep's config, as far as this is known."""
    return not _differs(directory / "dataset.done.json", dataset_made_from(sweep))


def refuse_other_config(sweep: "Sweep", directory: Path) -> None:
    """Raise InputError unless the last run and the present dataset in a sweep's directory are of the sweep's config."""
    config, made = directory / "config.yaml", dataset_made_from(sweep)
    last = settings_digest(config.read_text(encoding="utf-8")) if config.exists() else made["settings"]
    if last != made["settings"] or not is_of_config(sweep, directory):
        expected = "`sweeplib sweep` with this config before, or the overrides of the last run"
        raise InputError("the present results are of another config", file=directory, expected=expected)


def made_from(directory: Path, sweep: "Sweep", stage: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an analysis or a figure in a sweep's directory is made from now, as entries of its marker."""
    return {**source(directory), "options": dict(options), "code": stage_code(stage, sweep.plugins)}


def stale_outputs(directory: Path, sweep: "Sweep", *, remember: bool) -> list[Path]:
    """Return the outputs of stages in a sweep's directory that a workflow makes again, although they exist.

    Markers whose dataset is gone or was changed; those of the plan, the simulations and the dataset, if the dataset was
    made from another config or has other counts; analyses and figures of another dataset, options or code. Nothing is
    stale while another process of this machine works in the directory. `remember` lets the times of copied files be
    recorded, so that their contents are read once.
    """
    if at_work_elsewhere(directory):
        return []
    marker = directory / "dataset.done.json"
    analyses = {name: directory / "analysis" / f"{name}.done.json" for name in sweep.analyses}
    existing = [each for each in (marker, *analyses.values()) if each.exists()]
    stale = [each for each in existing if not _is_true(each, remember=remember)]
    if marker.exists() and marker not in stale:
        stale += [*_outdated_dataset(directory, sweep, marker), *_outdated_parts(directory, sweep, analyses)]
    return [path for path in dict.fromkeys(stale) if path.exists()]


def _outdated_dataset(directory: Path, sweep: "Sweep", marker: Path) -> Iterator[Path]:
    other = _differs(marker, dataset_made_from(sweep))
    simulated = (read_json(marker) or {}).get("cases")
    for dynamics, cases in simulated.items() if isinstance(simulated, dict) else ():
        part = directory / f"{dynamics}.done.json"
        if other or _counts(part) != {status: count for status, count in cases.items() if count}:
            yield part
    if other:
        yield from (marker, directory / "plan.done.json")


def _outdated_parts(directory: Path, sweep: "Sweep", analyses: Mapping[str, Path]) -> Iterator[Path]:
    for name, path in analyses.items():
        if _differs(path, made_from(directory, sweep, "analyse", sweep.analyses[name])):
            yield path
    for name in sweep.figures:
        path = directory / "figures" / f"{name}.source.json"
        if _differs(path, made_from(directory, sweep, "figure", sweep.drawing(name))):
            yield path.with_name(f"{name}.png")


def _differs(path: Path, now: Mapping[str, Any]) -> bool:
    """Return whether a marker has other values than these of some entries that it has."""
    try:
        before = read_json(path) or {}
    except DamageError:  # `verify` tells
        return False
    written = json.loads(json.dumps(now, default=str))
    return any(name in before and before[name] != value for name, value in written.items())


def _counts(marker: Path) -> dict[str, int]:
    """Return the numbers of cases of each status that occurs, by the marker of a dynamics; {} if it is damaged."""
    try:
        return (read_json(marker) or {}).get("cases", {})
    except DamageError:
        return {}


def _is_true(marker: Path, *, remember: bool) -> bool:
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
    digests = own_digests(dataset)
    same = bool(digests) and digest_of(digests) == done.get("digest")
    if same and remember:
        with suppress(OSError):  # a read-only directory
            write_json(dataset.with_suffix(".files.json"), _entries(dataset, digests))
    return same


def _entries(dataset: Path, digests: Mapping[str, str]) -> dict[str, list[Any]]:
    """Return the size, time and digest of each file of a dataset that is there; {} if there is no dataset."""
    found = {name: (dataset / name).stat() for name in sorted(digests) if (dataset / name).is_file()}
    return {name: [stat.st_size, stat.st_mtime_ns, digests[name]] for name, stat in found.items()}
