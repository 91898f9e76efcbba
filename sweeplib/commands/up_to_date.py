"""Whether a sweep is as its last complete run left it: then the same command has nothing to do.

The record of the run of all stages has, as `complete`, a digest of what the run was made from (the config, the
overrides, the user's code, the library), digests of the sizes and times of all files of results and of the store, and
what `summary`, `status` and `plan` show. It is compared without importing what a sweep needs. Where anything differs,
Snakemake is asked, which knows what is to be done, and the commands look for themselves.

The keys of this record: `config`, `overrides`, `files`, `made_from`, `results`, `store`, `summary`, `status` (JSON
text), `plan` (the arguments of `table`), `answers` (lines).
"""

import hashlib
import json
import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from sweeplib.commands.snakemake import workflow_folder
from sweeplib.engine.code.sources import package_digest
from sweeplib.engine.files.regular_files import file_bytes, file_text
from sweeplib.engine.storage.records.stage_records import FOLDER as RECORDS
from sweeplib.engine.storage.records.stage_records import (
    WHOLE,
    add_to_record,
    recorded_stage,
    stage_record,
    stage_records,
    tell,
)
from sweeplib.errors import SweeplibError

STORE = "runs"
"""The folder of the run store in that of a sweep."""
NAME = "name="
"""The beginning of an override of a sweep's name."""
CHANGING = ("inventory", "journal", "locks", STORE)
"""The parts of a sweep's folder that are no results: records of runs, and the store from which results are made."""


def complete_run(
    config: Path, overrides: Sequence[str], results: Path, *, or_folder: bool = False
) -> dict[str, Any] | None:
    """Return the record of the last complete run, with its `directory`, if the same command has nothing to do.

    None if the config, the overrides, the user's code, the library or the results are others now.
    or_folder : whether `config` may be the folder of a sweep, for whatever config and overrides it was run.
    """
    # a record that cannot be read, or says other things, is none: Snakemake decides
    with suppress(OSError, SweeplibError, UnicodeDecodeError, TypeError, KeyError, AttributeError):
        directory = config
        if config.is_file():  # a pipe can be read only once
            directory = results / _name(config, overrides)
        elif not or_folder or overrides:
            return None
        record = stage_record(directory, WHOLE).complete
        if directory == config:
            config, overrides = Path(record["config"]), record["overrides"]
        source = made_from(config, overrides, map(Path, record["files"]))
        if record["made_from"] == source and record["results"] == _stats(directory, CHANGING):
            return {**record, "directory": directory}
    return None


def undisturbed_run(config: Path, overrides: Sequence[str], results: Path) -> dict[str, Any]:
    """Return the record of the last complete run if neither the store nor a job has changed since, otherwise {}.

    Then `summary`, `status` and `plan` show what it says, without importing what a sweep needs. Without overrides,
    `config` may be the folder of a sweep, for whatever config and overrides it was run.
    """
    record = complete_run(config, overrides, results, or_folder=True) or {}
    if record and record.get("store") == _stats(record["directory"] / STORE):
        busy = any(job.running or job.outcome for job in stage_records(record["directory"]).values())
        return {} if busy else record
    return {}


def record_complete_run(
    directory: Path, config: Path, overrides: Sequence[str], files: Iterable[Path], begun: str, ending: dict[str, Any]
) -> None:
    """Record that all results are made, and what commands show of them, the `ending` (`sweep.at_the_end`).

    begun : the digest `made_from` when the run began. Nothing is recorded if it is another one now.
    """
    paths = list(map(str, files))
    source = made_from(config, overrides, map(Path, paths))
    if source == begun:
        request = {"config": str(config.resolve()), "overrides": list(overrides), "files": paths, "made_from": source}
        record = {"results": _stats(directory, CHANGING), "store": _stats(directory / STORE)}
        with recorded_stage(directory, WHOLE):
            tell(complete=request | record | ending)


def record_plan(record_before: dict[str, Any], plan: dict[str, Any], answers: Sequence[str]) -> None:
    """Add the table of a plan that found nothing to do, and answers, to the record of the last complete run.

    Of the sweep's folder it keeps what `record_before` says, so that a change since then is noticed.
    """
    record = {name: value for name, value in record_before.items() if name != "directory"}
    add_to_record(record_before["directory"], WHOLE, complete=record | {"plan": plan, "answers": list(answers)})


def made_from(config: Path, overrides: Sequence[str], files: Iterable[Path]) -> str:
    """Return a digest of a config, overrides, files of the user's code, the library, and where others would be found.

    Others are programs, by PATH, modules, by the folders in which Python looks, and those beside the files by their
    names. Left out of these folders are that of the command, which is not searched under `make`, and those of the
    files, which are searched once plugins are loaded.
    """
    code = sorted(files)
    not_always = {str(path.parent) for path in (Path(sys.executable), *code)}
    searched = [folder for folder in sys.path if folder not in not_always]
    beside = {path.parent for path in code}
    modules = sorted(str(path) for folder in beside for way in ("*.py", "*/__init__.py") for path in folder.glob(way))
    request = [*overrides, sys.version, *searched, package_digest(), os.environ.get("PATH", ""), *modules]
    digest = hashlib.blake2b(json.dumps(request).encode(), digest_size=16)
    for path in (config.resolve(), *code, *_workflow()):
        digest.update(os.fsencode(f"{path}\0") + file_bytes(path) + b"\0")
    return digest.hexdigest()


def is_changed(config: Path, overrides: Sequence[str], files: Iterable[Path], begun: str) -> bool:
    """Return whether what a run is made from has changed or is gone; `begun` is the digest when the run began."""
    with suppress(OSError):
        return made_from(config, overrides, files) != begun
    return True


def _workflow() -> list[Path]:
    """Return the files of the workflow."""
    folder = workflow_folder()
    return [folder / "Snakefile", folder / "workflow/Snakefile", *sorted((folder / "workflow").rglob("*.smk"))]


def _stats(directory: Path, without: Sequence[str] = ()) -> str:
    """Return a digest of the names, sizes and times of all files below a directory, `without` some folders in it."""
    digest = hashlib.blake2b(digest_size=16)
    for folder, folders, files in os.walk(directory):
        folders[:] = sorted(name for name in folders if folder != str(directory) or name not in without)
        # of the folder of records, what the workflow tracks changes with results; records (*.json) always change
        is_records = Path(folder).name == RECORDS
        for name in sorted(name for name in files if not is_records or not name.endswith(".json")):
            with suppress(FileNotFoundError):  # a run beside this renames its temporary files
                stat = Path(folder, name).lstat()
                digest.update(os.fsencode(f"{folder}/{name}\0{stat.st_size}\0{stat.st_mtime_ns}\0"))
    return digest.hexdigest()


def _name(config: Path, overrides: Sequence[str]) -> str:
    """Return the name of a sweep by its file and overrides."""
    from sweeplib.engine.files.strict_yaml import parsed

    names = [text.removeprefix(NAME) for text in overrides if text.startswith(NAME)]
    return names[-1] if names else str(parsed(file_text(config, "utf-8-sig"), config).get("name", config.stem))
