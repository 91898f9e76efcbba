"""Versions of a dataset in `datasets/`; `dataset.zarr` is a link to one of them and is replaced in one step.

A reader that resolves the link when it opens the dataset keeps that version while new versions are written. A version
is named by a digest of its content. The current version and the previous one are kept.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

from sweeplib.errors import InputError
from sweeplib.storage.files import files_digest, partial, remove, remove_partials, sync, sync_tree

FOLDER = "datasets"
_VERSION = re.compile(r"[0-9a-f]{32}\.zarr")


@contextmanager
def new_version(path: Path) -> Iterator[Path]:
    """Yield a directory to write in; on success the link `path` leads to it, on failure it is removed.

    A version with the content of the current one changes nothing. A second writer waits for the first. A directory
    instead of the link, from an earlier version of sweeplib, is replaced; InputError for a foreign link or a file.
    """
    _refuse_foreign(path)
    lock, versions = path.parent / "locks" / f"{path.name}.lock", path.parent / FOLDER
    lock.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(lock):
        remove_partials(path)
        versions.mkdir(exist_ok=True)
        remove_partials(versions / path.name)
        new = partial(versions / path.name)
        try:
            yield new
            sync_tree(new)
            version = versions / f"{files_digest(new)}.zarr"
            if not _is_complete(version):
                _replace(version, new, partial(versions / path.name))
        finally:
            remove(new)
        _refuse_foreign(path)
        before = linked_version(path)
        if before != version.name:
            _link(path, version.name)
            for other in versions.iterdir():
                if _VERSION.fullmatch(other.name) and other.name not in (version.name, before):
                    _replace(other, None, partial(versions / path.name))


def _refuse_foreign(path: Path) -> None:
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


def _is_complete(version: Path) -> bool:
    return version.is_dir() and files_digest(version) == version.stem


def _replace(version: Path, new: Path | None, old: Path) -> None:
    """Replace the directory `version` by `new`, or by nothing; readers see a complete directory or none."""
    if version.exists():
        version.rename(old)
    if new is not None:
        new.rename(version)
        sync(version.parent)
    remove(old)


def _link(path: Path, name: str) -> None:
    new, old = partial(path), partial(path)
    try:
        new.symlink_to(f"{FOLDER}/{name}", target_is_directory=True)
        if path.is_dir() and not path.is_symlink():
            path.rename(old)
        new.replace(path)
        sync(path.parent)
    finally:
        remove(new)
        remove(old)
