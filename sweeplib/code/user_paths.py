"""Paths and names in a config: what ends in `.py`, `.csv` or `.parquet` is the path of a user's file."""

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

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


def with_files(config: Mapping[str, Any], convert: Callable[[list[str]], Iterable[str]]) -> dict[str, Any]:
    """Return a config, or some of its keys, with `convert` applied to all names that may be those of a user's files.

    These are the plugins, a table of points, and the published values that figures show. What is not as a config should
    be stays as it is.
    """
    converted = dict(config)
    if isinstance(converted.get("points"), str):
        [converted["points"]] = convert([converted["points"]])
    figures = converted.get("figures")
    if isinstance(figures, Mapping):
        drawn = {name: dict(options) for name, options in figures.items() if isinstance(options, Mapping)}
        converted["figures"] = {**figures, **drawn}
        for section in drawn.values():
            _convert(section, "reference", convert)
    _convert(converted, "plugins", convert)
    return converted


def _convert(section: dict[str, Any], key: str, convert: Callable[[list[str]], Iterable[str]]) -> None:
    names = section.get(key)
    if isinstance(names, list | tuple) and all(isinstance(name, str) for name in names):
        section[key] = list(convert(list(names)))


def is_file(name: str) -> bool:
    """Return whether an entry is the path of a file, not a name."""
    return name.endswith(SUFFIXES)
