"""The user's own code: modules that are not part of Python, of this package, or of an installed package; their files.

In a config, what ends in `.py` or as tables do is the path of a user's file; such entries of a config are its `names`.
Packages that offer plugins by entry points count as the user's own, whatever is loaded: their code is in the digests.
"""

import importlib.util
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweeplib.engine.files.regular_files import file_bytes

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

PACKAGE = __name__.partition(".")[0]
"""The name of this package."""
_PYTHON = Path(os.__file__).parent
"""The folder of Python's own modules."""
_INSTALLED = {"site-packages", "dist-packages"}
"""The names of folders of installed packages."""
GROUP = "sweeplib.plugins"
"""The group of the entry points that name the modules of installed plugins."""
SUFFIXES = (".py", ".csv", ".tsv", ".txt", ".parquet")
"""The ends of the paths of a user's files."""


@cache
def installed_plugins() -> "dict[str, tuple[EntryPoint, ...]]":
    """Return the entry points of installed plugins, by name; more than one if several distributions have the name."""
    from importlib.metadata import entry_points  # takes 8 ms, which not every command needs

    plugins: dict[str, dict[tuple[str, str], EntryPoint]] = {}
    for point in entry_points(group=GROUP):
        plugins.setdefault(point.name, {})[point.value, point.dist.name if point.dist else ""] = point
    return {name: tuple(plugins[name].values()) for name in sorted(plugins)}


@cache
def _plugin_packages() -> frozenset[str]:
    """Return the top-level packages that the entry points of installed plugins name."""
    return frozenset(point.module.partition(".")[0] for points in installed_plugins().values() for point in points)


def user_file(name: str) -> Path | None:
    """Return the file of a user's module, found without importing it; None if the name is not a user's module."""
    spec = None if name.partition(".")[0] == PACKAGE else module_spec(name)
    if spec is None or not spec.has_location or spec.origin is None:
        return None
    path = Path(spec.origin)
    installed = path.is_relative_to(_PYTHON) or bool(_INSTALLED.intersection(path.parts))
    return None if installed and name.partition(".")[0] not in _plugin_packages() else path


_imports: dict[str, tuple[Any, Path | None, bytes]] = {}
"""The specs of the modules that `remember_imports` has met; of the user's their files, with their content then."""


def remember_imports() -> None:
    """Read the files of the user's modules that were imported, or reloaded, since the last time."""
    for name, module in list(sys.modules.items()):
        spec = getattr(module, "__spec__", None)
        if spec is not None and (name not in _imports or _imports[name][0] is not spec):
            path = user_file(name)
            _imports[name] = spec, path, file_bytes(path) if path is not None and path.is_file() else b""


def edited_since_import(paths: Iterable[Path]) -> list[Path]:
    """Return those files of the user's modules that have another content than when `remember_imports` read them."""
    remember_imports()
    before = {path: content for _, path, content in _imports.values() if path is not None}
    return [path for path in paths if path in before and path.is_file() and file_bytes(path) != before[path]]


def module_spec(name: str) -> ModuleSpec | None:
    """Return the spec of a module, found without importing anything, not even its parents; None if there is none."""
    # a plugin that was imported under a name of its own (`plugins`) is on no path
    if name in sys.modules:
        return sys.modules[name].__spec__
    parent, _, _ = name.rpartition(".")
    if not parent:
        return importlib.util.find_spec(name)
    above = module_spec(parent)
    folders = above.submodule_search_locations if above is not None else None
    return PathFinder.find_spec(name, folders) if folders else None


def with_parents(name: str) -> list[str]:
    """Return the packages that importing a module imports, outermost first, and the module itself."""
    parts = name.split(".")
    return [".".join(parts[: end + 1]) for end in range(len(parts))]


def package_of(name: str) -> str:
    """Return the package to which a module's relative imports refer, "" for a module outside of any."""
    spec = module_spec(name)
    return spec.parent or "" if spec is not None else ""


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
    """Return a config, or some of its keys, with all names converted that may be those of a user's files.

    These are the plugins, the file of a function, a table of points, and the published values that figures show.
    Malformed parts of a config are kept. convert : called with several names, returns as many.
    """
    converted = dict(config)
    if isinstance(converted.get("points"), str):
        [converted["points"]] = convert([converted["points"]])
    if isinstance(simulator := converted.get("simulator"), str):
        path, _ = file_and_name(simulator)
        converted["simulator"] = "".join([*convert([path]), simulator.removeprefix(path)])
    figures = converted.get("figures")
    if isinstance(figures, Mapping):
        sections = {name: dict(options) for name, options in figures.items() if isinstance(options, Mapping)}
        converted["figures"] = {**figures, **sections}
        for section in sections.values():
            _convert(section, "reference", convert)
    _convert(converted, "plugins", convert)
    return converted


def _convert(section: dict[str, Any], key: str, convert: Callable[[list[str]], Iterable[str]]) -> None:
    """Replace the list of names under a key of a section by their conversions; anything else there stays."""
    names = section.get(key)
    if isinstance(names, list | tuple) and all(isinstance(name, str) for name in names):
        section[key] = list(convert(list(names)))


def file_and_name(simulator: str) -> tuple[str, str]:
    """Return the two parts of FILE:NAME; the name is "" in FILE alone. A folder may have a colon in its name."""
    path, _, name = simulator.rpartition(":")
    return (path, name) if path and not is_file(name) else (simulator, "")


def is_file(name: str) -> bool:
    """Return whether an entry is the path of a file, not a name."""
    return name.lower().endswith(SUFFIXES) or Path(name).is_absolute()


def is_there(name: str) -> bool:
    """Return whether a name is the absolute path of a file."""
    return Path(name).is_absolute() and Path(name).is_file()


def file_in(word: str, folder: Path = Path()) -> tuple[str, str]:
    """Return what stands before the file in a word of a command, as in `--data=FILE`, and its path; "" without a file.

    In a command single braces are those of parameters; the braces of a path are doubled.
    folder : an absolute one, in which relative paths are looked for; none are by default.
    """
    for before in ("", word[: word.find("=") + 1]):
        path = folder / word[len(before) :].replace("{{", "{").replace("}}", "}")
        if is_there(str(path)):
            return before, str(path)
    return word, ""


def files_in(words: Iterable[str]) -> list[str]:
    """Return the paths of the files in the words of a command."""
    return [path for word in words if (path := file_in(word)[1])]


def words_of(command: str | list[Any]) -> list[str]:
    """Return the words of a command, split as by a shell; split at blanks if a quote in it has no end."""
    if isinstance(command, list):
        return list(map(str, command))
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def located_command(command: str | list[Any], folder: Path) -> str:
    """Return a command with the absolute paths of those files in its words that are in `folder`, as `file_in` has them.

    Links to files are not followed: what a program does may depend on the name by which it is called.
    """
    parts = (file_in(word, folder.absolute()) for word in words_of(command))
    return command_of(before + path_in_command(_in_real_folder(path)) if path else before for before, path in parts)


def _in_real_folder(path: str) -> Path:
    """Return a path of which the folder, not the file, is without links."""
    return Path(path).parent.resolve() / Path(path).name


def path_in_command(path: str | Path) -> str:
    """Return a path as a command has it, with doubled braces."""
    return str(path).replace("{", "{{").replace("}", "}}")


def command_of(words: Iterable[str]) -> str:
    """Return the command of some words, quoted for a shell but for the braces of parameters, as in {T}."""
    return " ".join(word if re.fullmatch(r"[\w@%+=:,./{}-]+", word) else shlex.quote(word) for word in words)
