"""Versions of a dataset: `dataset.zarr` is a folder that is replaced in one step by the next version.

A version is known by the digest of its files. The one before the present is kept in `datasets/`, where readers
that had opened it go on. Files of others in the folder, which no manifest names, move into the next version. Up to
version 0.2 of sweeplib `dataset.zarr` was a link into `datasets/`, which is read as well.

`path` is the place of the present version, such as `dataset.zarr`.
"""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path

from sweeplib.engine.storage.records.files import (
    exchange,
    files_below,
    intact_json,
    is_partial,
    partial,
    remove_own,
    sync,
)
from sweeplib.engine.storage.records.manifest import has_manifest, is_own, manifest_at
from sweeplib.errors import InputError

FOLDER = "datasets"
_VERSION = re.compile(r"[0-9a-f]{32}\.zarr")
"""The names of the folders of kept versions."""


@contextmanager
def replacement(path: Path, *, keep: bool = False) -> Iterator[Path]:
    """Yield a folder to write a dataset in; on success it becomes `path`, on failure it is removed.

    keep : whether the version before is kept in `datasets/`; else it is removed. A version with the content of the
    present one changes nothing. InputError if a file, or a link that sweeplib did not make, is at `path`. Only for a
    writer that holds the lock of `path`.
    """
    _refuse_foreign(path)
    for leftover in path.parent.glob(f".{escape(path.name)}.*.partial"):
        if is_partial(leftover):
            _dissolve(leftover, path)
    new = partial(path)
    try:
        yield new
        sync(*new.rglob("*"), new)
        _refuse_foreign(path)
        if path.is_symlink() or name_of(path) != name_of(new) or not manifest_at(path).is_whole():
            _replace(path, new, keep=keep)
    finally:
        _dissolve(new, path)


def _replace(path: Path, new: Path, *, keep: bool) -> None:
    """Put `new` in place of `path`; what was there is then at `new`, or in `datasets/` if it is to be kept.

    If one is to be kept, all older versions are removed.
    """
    name = present_folder(path).name  # of the version in `datasets/` that is not removed
    if os.path.lexists(path):
        exchange(new, path)
    else:
        new.rename(path)
    sync(path.parent)
    if keep and not new.is_symlink() and (before := manifest_at(new)).files and before.is_whole():
        name = f"{name_of(new)}.zarr"
        _move_others(new, path, is_own(new))
        (path.parent / FOLDER).mkdir(exist_ok=True)
        with suppress(OSError):  # it is there already
            new.rename(path.parent / FOLDER / name)
            sync(path.parent / FOLDER)
            sync(path.parent)
    for other in versions(path) if keep else ():
        if other.name != name:
            _dissolve(other, path)


def _dissolve(old: Path, path: Path) -> None:
    """Remove a version that nobody needs; files of others in it move to their places in the present one, at `path`."""
    if old.is_symlink():
        old.unlink()
    elif old.exists():
        is_own_file = is_own(old)
        _move_others(old, path, is_own_file)
        remove_own(old, is_own_file)


def _move_others(old: Path, path: Path, is_own_file: Callable[[str], bool]) -> None:
    """Move the files of `old` that are not the version's own to their places below `path`, unless something is there.

    is_own_file : returns whether a path below the folder is the version's own.
    """
    for file in list(files_below(old)):
        name = file.relative_to(old).as_posix()
        # without a present version they stay where they are
        if not is_own_file(name) and not os.path.lexists(path / name) and path.is_dir():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            file.rename(path / name)


def name_of(version: Path) -> str:
    """Return the name of a version, the digest of its files; "" without an intact manifest."""
    manifest = manifest_at(version)
    return manifest.digest if manifest.files else ""


def versions(path: Path) -> list[Path]:
    """Return the versions of a dataset in `datasets/`, the last written first, then those without metadata.

    Each has a manifest.
    """
    folders = [folder for folder in (path.parent / FOLDER).glob("*.zarr") if _VERSION.fullmatch(folder.name)]
    datasets = [folder for folder in folders if not folder.is_symlink() and has_manifest(folder)]
    return sorted(datasets, key=lambda folder: -_time_of(folder / "zarr.json"))


def _time_of(path: Path) -> int:
    """Return when a file was written, 0 if it is lost."""
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def version_folders(path: Path, name: str) -> Iterator[Path]:
    """Yield the folders in which a version of a name may be that is no longer at `path`: kept, or being removed."""
    version = path.parent / FOLDER / f"{name}.zarr"
    yield version
    yield from (folder for folder in path.parent.glob(f".{escape(path.name)}.*.partial") if name_of(folder) == name)
    yield version  # to which a temporary folder was renamed meanwhile


def present_folder(path: Path) -> Path:
    """Return the folder of the present version; while `path` is being exchanged, that of the last kept one."""
    if path.is_symlink():
        return path.resolve()
    return path if path.exists() else next(iter(versions(path)), path)


def leftovers(directory: Path) -> Iterator[Path]:
    """Yield the temporary files of killed writers below a directory. Only while nobody writes."""
    for path in files_below(directory):
        parts = path.relative_to(directory).parts
        place = next((number for number, name in enumerate(parts, 1) if is_partial(Path(name))), None)
        if place is not None:
            folder = directory.joinpath(*parts[:place])
            # of a dataset, or of records that were converted
            if folder == path or is_own(folder)(path.relative_to(folder).as_posix()) or intact_json(path):
                yield path


def _refuse_foreign(path: Path) -> None:
    """Raise InputError if something is at `path` that sweeplib did not make: a link, or a file."""
    problem = None
    if path.is_symlink() and linked_version(path) is None:
        problem = f"is a link to {path.readlink()}, which sweeplib did not make"
    elif path.exists() and not path.is_dir():
        problem = "is a file, which sweeplib did not make"
    if problem:
        raise InputError(problem, file=path, expected="another name or place for it: the dataset is written here")


def linked_version(path: Path) -> str | None:
    """Return the name of the version to which a link leads; None if it is no link to a version."""
    if not path.is_symlink():
        return None
    folder, _, name = os.fspath(path.readlink()).rpartition("/")
    return name if folder == FOLDER and _VERSION.fullmatch(name) else None
