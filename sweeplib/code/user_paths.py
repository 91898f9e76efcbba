"""What a config names by a path or by a name: a file of the user's own ends in `.py` or `.csv`, all else is a name."""

import os
from collections.abc import Iterable
from pathlib import Path

SUFFIXES = (".py", ".csv")


def located(names: Iterable[str], folder: Path) -> tuple[str, ...]:
    """The names with the paths of files absolute; relative ones are relative to `folder`."""
    return tuple(str((folder / Path(name).expanduser()).resolve()) if _is_file(name) else name for name in names)


def named(names: Iterable[str]) -> list[str]:
    """The names with files by their names alone, which say the same wherever they lie."""
    return [Path(name).name if _is_file(name) else name for name in names]


def seen_from(names: Iterable[str], folder: Path) -> list[str]:
    """The names with the paths of files relative to `folder`, so that both can be moved together."""
    start = folder.resolve()
    return [os.path.relpath(name, start) if _is_file(name) else name for name in names]


def _is_file(name: str) -> bool:
    return name.endswith(SUFFIXES)
