"""Whose results a folder holds: the file that describes the sweep, so that another of the same name is told from it.

The file may change and grow, be renamed, and move with its results. What is refused is a second file that is there at
the same time, has the same name for its sweep, and says something else.
"""

import os
from pathlib import Path
from typing import Any

import yaml

from sweeplib.errors import InputError
from sweeplib.storage.files import read_json, write_json

ORIGIN = "origin.json"


def check_origin(config: Path, directory: Path) -> None:
    """Raise InputError where a sweep's directory holds the results of another file's sweep of this name."""
    other = _recorded(directory)
    if other is None or not other.is_file() or _is_own(config, directory):
        return
    if other.samefile(config) or other.read_bytes() == config.read_bytes() or _name(other) != directory.name:
        return
    problem = f"{directory} has the results of {other.resolve()}, whose sweep is called {directory.name!r} as well"
    expected = f"another `name`, another --results, or no {directory / ORIGIN} for this file to take over"
    raise InputError(problem, file=config, expected=expected)


def record_origin(config: Path, directory: Path) -> None:
    """Write down, in a sweep's directory, the file that describes it; relative to it, as both may be moved."""
    if not _is_own(config, directory) and not _is(_recorded(directory), config):
        write_json(directory / ORIGIN, {"config": os.path.relpath(config.resolve(), directory.resolve())})


def _is_own(config: Path, directory: Path) -> bool:
    """Whether it is the complete config that is written beside the results."""
    return config.resolve() == directory.resolve() / "config.yaml"


def _is(other: Path | None, config: Path) -> bool:
    return other is not None and other.is_file() and other.samefile(config)


def _recorded(directory: Path) -> Path | None:
    said: dict[str, Any] = read_json(directory / ORIGIN) or {}
    config = said.get("config")
    return directory.resolve() / config if isinstance(config, str) else None


def _name(config: Path) -> str | None:
    """The name of the sweep that a file describes; None where it describes none any more."""
    try:
        said = yaml.safe_load(config.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return None
    return str(said.get("name", config.stem)) if isinstance(said, dict) else None
