"""The origin of a results folder: the config file of its sweep, which detects two sweeps with the same name.

A sweep that is described in Python has none; it is refused where there is one.

The file may change, grow, be renamed, and move together with its results. It is refused only if a second file exists at
the same time, has the same sweep name, and has other content.
"""

import os
from pathlib import Path
from typing import Any

import yaml

from sweeplib.errors import InputError
from sweeplib.storage.files import read_json, write_json

ORIGIN = "origin.json"


def check_origin(config: Path, directory: Path) -> None:
    """Raise InputError if a sweep's directory holds the results of another config file with the same sweep name."""
    other = _recorded(directory)
    if other is None or not other.is_file() or _is_own(config, directory):
        return
    if other.samefile(config) or other.read_bytes() == config.read_bytes() or _name(other) != directory.name:
        return
    problem = f"{directory} has the results of {other.resolve()}, whose sweep is also called {directory.name!r}"
    expected = f"another `name`, another --results, or no file {directory / ORIGIN} (then this file takes over)"
    raise InputError(problem, file=config, expected=expected)


def refuse_other_origin(directory: Path) -> None:
    """Raise InputError if a directory has the results of a config file that still exists and has the sweep's name."""
    other = _recorded(directory)
    if other is not None and other.is_file() and _name(other) == directory.name:
        problem = f"{directory} has the results of {other.resolve()}"
        expected = "`Sweep.from_yaml` with this file, another `name`, or another folder of results"
        raise InputError(problem, key="name", value=directory.name, expected=expected)


def record_origin(config: Path, directory: Path) -> None:
    """Record a sweep's config file in its directory, relative to the directory because both may be moved."""
    if not _is_own(config, directory) and not _is(_recorded(directory), config):
        write_json(directory / ORIGIN, {"config": os.path.relpath(config.resolve(), directory.resolve())})


def _is_own(config: Path, directory: Path) -> bool:
    """Return whether the config is a complete config that was written beside the results."""
    return config.resolve().parent == directory.resolve()


def _is(other: Path | None, config: Path) -> bool:
    return other is not None and other.is_file() and other.samefile(config)


def _recorded(directory: Path) -> Path | None:
    content: dict[str, Any] = read_json(directory / ORIGIN) or {}
    config = content.get("config")
    return directory.resolve() / config if isinstance(config, str) else None


def _name(config: Path) -> str | None:
    """Return the name of the sweep that a file describes; None if it no longer describes one."""
    try:
        content = yaml.safe_load(config.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return None
    return str(content.get("name", config.stem)) if isinstance(content, dict) else None
