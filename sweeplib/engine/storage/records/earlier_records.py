"""Records of versions up to 0.3, in a file for each purpose: read where there are no others, and converted.

They were `jobs/STAGE.json`; `*.done.json`, a marker of a finished stage; manifests, with the entries of files, beside
figures and the report; `failures/KIND.NAME.json`; and `journal/complete.json`, which is made anew.
"""

from contextlib import suppress
from pathlib import Path
from typing import Any

from sweeplib.engine.storage.records.files import intact_json, partial, refuse_links, remove, remove_files, write_json

MANIFEST = "manifest.json"
_DONE = ".done.json"
_STAGES = {"dataset": "finalise", "plan": "plan"}
"""The present names of stages by those of their markers; another marker was that of the dynamics of its name."""
_OF_KINDS = {"analysis": "analyse.", "figure": "figure."}
"""The beginnings of the names of stages whose failed attempts have a kind; others were parts of the report."""


def earlier_records(directory: Path) -> dict[str, dict[str, Any]]:
    """Return what earlier records in a sweep's folder say, as contents of present records by the names of stages.

    Each kind of file has a loop; several may tell of one stage, and what they say is added together.
    """
    records = {path.stem: intact_json(path) for path in (directory / "jobs").glob("*.json")}
    for path in directory.glob(f"*{_DONE}"):
        name, marker = path.name.removesuffix(_DONE), intact_json(path)
        stage = _STAGES.get(name, f"simulate.{name}")
        if stage == "plan":
            content = {"counts": marker.get("cases", marker)}
        elif stage == "finalise":
            content = intact_json(directory / "dataset.zarr" / MANIFEST) | {"files": {}}
        else:  # without what they were made from, all cases are computed again
            content = {"counts": marker.get("cases", {}) if "made_from" in marker else {}}
        _add(records, stage, content | {name: marker[name] for name in ("digest", "made_from") if name in marker})
    for path in (directory / "analysis").glob(f"*{_DONE}"):
        name = path.name.removesuffix(_DONE)
        manifest = intact_json(path.with_name(f"{name}.zarr") / MANIFEST)
        _add(records, f"analyse.{name}", manifest | {"files": {}, "digest": intact_json(path).get("digest", "")})
    for folder, stage in (("figures", "figure."), ("report", "report")):
        for path in (directory / folder).glob(f"*.{MANIFEST}"):
            name = path.name.removesuffix(f".{MANIFEST}") if stage == "figure." else ""
            manifest = intact_json(path)
            files = {f"{folder}/{file}": entry for file, entry in manifest.get("files", {}).items()}
            _add(records, stage + name, manifest | {"files": files})
    for path in (directory / "failures").glob("*.*.json"):
        kind, _, name = path.name.removesuffix(".json").partition(".")
        stage = f"{_OF_KINDS[kind]}{name}" if kind in _OF_KINDS else "report"
        if failure := intact_json(path):
            records.setdefault(stage, {}).setdefault("failures", []).append(failure)
    return {name: record | {"name": name} for name, record in records.items() if record}


def _add(records: dict[str, dict[str, Any]], stage: str, content: dict[str, Any]) -> None:
    """Add content to the record of a stage, in place of what it says under the same keys."""
    records[stage] = records.get(stage, {}) | content


def earlier_files(directory: Path) -> list[Path]:
    """Return the earlier records in a sweep's folder, as far as a checksum says that they are sweeplib's own."""
    patterns = (
        *("jobs/*.json", f"*{_DONE}", f"analysis/*{_DONE}", f"figures/*.{MANIFEST}", f"report/*.{MANIFEST}"),
        *("failures/*.*.json", "journal/complete.json"),
    )
    files = [path for pattern in patterns for path in sorted(directory.glob(pattern))]
    return [path for path in files if path.is_file() and not path.is_symlink() and intact_json(path)]


def convert_records(directory: Path, folder: Path) -> None:
    """Write the earlier records of a sweep into the `folder` of present ones, which is not there; then remove them.

    If the process is killed at any time, all earlier records are there, or all are in the folder.
    """
    if not (files := earlier_files(directory)):
        return
    refuse_links(directory, folder)
    beside = partial(folder)
    for name, record in earlier_records(directory).items():
        write_json(beside / f"{name}.json", record)
    with suppress(OSError):  # another process was faster
        beside.rename(folder)
        remove_files(directory, files)
    remove(beside)
