"""The user's own modules: modules that are not part of Python, of this package, or of an installed package.

Packages that offer plugins by entry points count as the user's own, whatever is loaded: their code is in the digests.
"""

import importlib.util
import os
import sys
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

PACKAGE = __name__.partition(".")[0]
_PYTHON = Path(os.__file__).parent
_INSTALLED = {"site-packages", "dist-packages"}
GROUP = "sweeplib.plugins"
"""The group of the entry points that name the modules of installed plugins."""


@cache
def installed_plugins() -> dict[str, tuple[EntryPoint, ...]]:
    """Return the entry points of installed plugins, by name; more than one if several distributions have the name."""
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


def forget_installed() -> None:
    """Forget the entry points, which are read once a process."""
    installed_plugins.cache_clear()
    _plugin_packages.cache_clear()


def module_spec(name: str) -> ModuleSpec | None:
    """Return the spec of a module, found without importing anything, not even its parents; None if there is none."""
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
