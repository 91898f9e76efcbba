"""Paths and names in a config: what ends in `.py`, `.csv` or `.parquet` is the path of a user's file."""

import os
from collections.abc import Iterable
from pathlib import Path

SUFFIXES = (".py", ".csv", ".parquet")


def located(names: Iterable[str], folder: Path) -> tuple[str, ...]:
    """Return the names with absolute paths of files; relative paths are relative to `folder`."""
    return tuple(str((folder / Path(name).expanduser()).resolve()) if is_file(name) else name for name in names)


def named(names: Iterable[str]) -> list[str]:
    """Return the names with each path reduced to its file name, which does not depend on the folder."""
    return [Path(name).name if is_file(name) else name for name in names]


def seen_from(names: Iterable[str], folder: Path) -> list[str]:
    """Return the names with the paths of files relative to `folder`, so that both can be moved together."""
    start = folder.resolve()
    return [os.path.relpath(name, start) if is_file(name) else name for name in names]


def is_file(name: str) -> bool:
    """Return whether an entry is the path of a file, not a name."""
    return name.endswith(SUFFIXES)
