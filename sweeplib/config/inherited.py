"""`from: FILE` in a config: the keys of another config, of which this one changes some."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from sweeplib.config.overrides import PLACES, take_out
from sweeplib.engine.code.user_code import located, located_command, with_files
from sweeplib.engine.files.strict_yaml import Document
from sweeplib.errors import InputError

FROM = "from"
"""The key that names the other config."""
MOST_FILES = 10
"""Files in a chain of configs; more are taken for a cycle."""
NAMED = ("dynamics", "analyses", "figures")
"""The sections of names with options, which may also be lists of names."""

Read = Callable[[Path], tuple[Document, dict[str, Any]]]
"""A function that reads a config: its document, which knows the lines of keys, and its keys and values."""


def base_configs(
    path: Path, folder: Path, keys: Mapping[str, Any], read_config: Read
) -> list[tuple[Path, Document, dict[str, Any]]]:
    """Return the configs from which a file starts, the nearest first: their files, documents, and keys and values.

    The path in the file is relative to `folder`, those in the others are relative to their own folders; those in what
    is returned are absolute. InputError for what is no path, and for a file that starts from itself.

    path, keys : the file, and its keys and values.
    """
    files: list[tuple[Path, Document, dict[str, Any]]] = []
    while FROM in keys:
        name = keys[FROM]
        if not isinstance(name, str) or not name:
            raise InputError("not a path", file=path, key=FROM, value=name, expected="the path of a sweep's YAML file")
        base = folder / Path(name).expanduser()
        if len(files) == MOST_FILES:
            expected = f"at most {MOST_FILES} files, of which none starts from itself"
            raise InputError("too many files to start from", file=path, key=FROM, value=name, expected=expected)
        try:
            document, keys = read_config(base)
        except InputError as error:
            if error.file is not None:
                raise
            raise error.within(file=path, prefix=FROM) from None
        keys = with_files(keys, partial(located, folder=base.parent))
        match keys:
            case {"simulator": {"command": str() | list() as command} as simulator}:
                keys |= {"simulator": simulator | {"command": located_command(command, base.parent)}}
        files.append((base, document, keys))
        path, folder = base, base.parent
    return files


def merged_config(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys and values of a config that starts from another one, but for `from` and the other's `name`.

    A name below a section of PLACES (`problem`, `parameters`, `grid`, `derive`) replaces that of the other in any of
    them, or takes it out if it is null. Mappings of NAMED sections add names, or options of a name; lists replace all
    of the section. The values of all other keys replace the other's.

    base, changes : the keys and values of the other config, and of the one that starts from it.
    """
    data = {key: value for key, value in base.items() if key not in ("name", FROM)}
    names = {name for place in PLACES for name in _names(changes.get(place))}
    take_out(data, names)
    for key, value in changes.items():
        if key in PLACES and isinstance(value, dict) and isinstance(data.get(key, {}), dict):
            names_with_values = {name: options for name, options in value.items() if options is not None}
            data[key] = {**data.get(key, {}), **names_with_values}
        elif key in NAMED and isinstance(value, dict):
            data[key] = _with_names(data.get(key), value)
        elif key != FROM:
            data[key] = value
    return data


def _names(section: Any) -> list[str]:
    """Return the names that a section gives, with those of linked axes."""
    if not isinstance(section, dict):
        return []
    linked = section.get("zip")
    zipped = [axes for axes in linked if isinstance(axes, dict)] if isinstance(linked, list) else []
    return [*section, *(name for axes in zipped for name in axes)]


def _with_names(section: Any, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the names of a section of the other config, with options, changed by those of this one.

    A name in both with options in both has all of these, this one's first; null keeps what the other has.
    """
    merged: dict[str, Any] = dict.fromkeys(section) if isinstance(section, list) else dict(section or {})
    for name, options in changes.items():
        before = merged.get(name)
        if isinstance(before, dict) and isinstance(options, dict):
            merged[name] = {**before, **options}
        elif options is not None or name not in merged:
            merged[name] = options
    return merged
