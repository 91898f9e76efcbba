"""Paths and names in a config: an entry that ends in `.py` or `.csv` is the path of a user's file, others are names."""

import os
from collections.abc import Iterable
from pathlib import Path

SUFFIXES = (".py", ".csv")


def located(names: Iterable[str], folder: Path) -> tuple[str, ...]:
    """Return the names with absolute paths of files; relative paths are relative to `folder`."""
    return tuple(str((folder / Path(name).expanduser()).resolve()) if _is_file(name) else name for name in names)


def named(names: Iterable[str]) -> list[str]:
    """Return the names with each path reduced to its file name, which does not depend on the folder."""
    return [Path(name).name if _is_file(name) else name for name in names]


def seen_from(names: Iterable[str], folder: Path) -> list[str]:
    """Return the names with the paths of files relative to `folder`, so that both can be moved together."""
    start = folder.resolve()
    return [os.path.relpath(name, start) if _is_file(name) else name for name in names]


def _is_file(name: str) -> bool:
    return name.endswith(SUFFIXES)
