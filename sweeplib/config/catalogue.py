"""The names that a config may use, of each kind, each with its meaning and options."""

import importlib
import inspect
import re
import sys
from collections.abc import Iterable
from typing import Any, NamedTuple

from pydantic import BaseModel

from sweeplib.code.user_modules import installed_plugins
from sweeplib.config.reference import function_options, setting_rows
from sweeplib.errors import InputError
from sweeplib.registry import Registry

KINDS = {
    "dynamics": ("sweeplib.dynamics", "DYNAMICS"),
    "activations": ("sweeplib.maths.activations", "ACTIVATIONS"),
    "analyses": ("sweeplib.analysis", "ANALYSES"),
    "figures": ("sweeplib.figures", "FIGURES"),
    "observables": ("sweeplib.observables", "OBSERVABLES"),
    "targets": ("sweeplib.problem.targets", "TARGETS"),
    "starts": ("sweeplib.problem.starts", "STARTS"),
    "data": ("sweeplib.problem.data", "DATA"),
    "clusters": ("sweeplib.execution.clusters", "CLUSTERS"),
}
"""The kinds of names, each with the registry that has them."""

PLUGINS = "plugins"
"""The kind of the names of installed plugins, which are entry points."""


class Option(NamedTuple):
    """An option of a named thing: its name, default and meaning, as text."""

    name: str
    default: str
    meaning: str


class Entry(NamedTuple):
    """A name, one sentence about it, and its options."""

    name: str
    meaning: str
    options: tuple[Option, ...]


_SPELLED = {
    "activations": (
        Entry(
            "hermite(c0, c1, ...)",
            "any Hermite series, σ = Σ c_n He_n/√n!, to degree 8; `he2` is `hermite(0, 0, 1)`",
            (),
        ),
        Entry("piecewise(x1, y1, x2, y2, ...)", "the line through these points, constant before and after them", ()),
    ),
    "targets": (Entry("a formula", "of the teacher's fields, such as `lam1 + lam1*lam2 + he3(lam3)`", ()),),
}
"""What a config may also write in place of a name."""


def catalogue(kind: str, names: Iterable[str] = ()) -> list[Entry]:
    """Return the entries of a kind: all, or those named; InputError for an unknown kind or name."""
    if kind == PLUGINS:
        return _installed(list(names))
    registry = registry_of(kind)
    chosen = list(names) or list(registry)
    found = [Entry(name, _meaning(registry, name), tuple(_options(kind, registry[name]))) for name in chosen]
    return found if names else [*found, *_SPELLED.get(kind, ())]


def _installed(names: list[str]) -> list[Entry]:
    """Return the installed plugins, with their modules and distributions; nothing of them is imported."""
    known = installed_plugins()
    for name in names:
        if name not in known:
            raise InputError("no such installed plugin", value=name, choices=known)
    found = {
        name: [f"{p.module} of {p.dist.name} {p.dist.version}" if p.dist else p.module for p in known[name]]
        for name in names or known
    }
    return [Entry(name, " and ".join(modules), ()) for name, modules in found.items()]


def registry_of(kind: str) -> Registry[Any]:
    """Return the registry of a kind of names; InputError for an unknown kind."""
    if kind not in KINDS:
        raise InputError("not a kind of names", value=kind, choices=[*KINDS, PLUGINS])
    module, attribute = KINDS[kind]
    registry: Registry[Any] = getattr(importlib.import_module(module), attribute)
    return registry


def _meaning(registry: Registry[Any], name: str) -> str:
    """Return one sentence: of the thing itself if it has one, otherwise of the docstring of its module.

    A class that shares its module with others of its kind has a docstring of its own.
    """
    thing, module = registry[name], registry.origin(name)
    own = next((text for each in ("doc", "caption", "long_name") if (text := getattr(thing, each, None))), None)
    alone = sum(registry.origin(other) == module for other in registry) == 1
    documented = thing if inspect.isclass(thing) and not alone else sys.modules[module]
    text = inspect.cleandoc(own or documented.__doc__ or "").partition("\n\n")[0]
    return re.split(r"\. (?=[A-Z])", " ".join(text.split()))[0].rstrip(".")


def _options(kind: str, thing: Any) -> list[Option]:
    if kind == "dynamics":
        return _settings(thing.Options)
    if kind == "clusters":
        return _settings(thing)
    if kind in ("analyses", "figures"):
        known = function_options(thing.function, 1 if kind == "analyses" else 2)
        return [Option(option.name, option.default.strip("`"), option.meaning) for option in known]
    return []


def _settings(model: type[BaseModel]) -> list[Option]:
    return [Option(row.key, row.default.strip("`"), row.meaning) for row in setting_rows(model, "")]
