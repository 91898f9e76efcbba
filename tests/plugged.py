"""Plugins in tests: files that register objects, and a context that removes every trace of them."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sweeplib.execution.clusters  # registries are full before their state is remembered
import sweeplib.figures  # noqa: F401
from sweeplib.code import plugins, sources
from sweeplib.code.user_modules import forget_installed, user_file
from sweeplib.kernels import functions
from sweeplib.problem import DEFAULTS, PARAMETERS
from sweeplib.registry import REGISTRIES
from sweeplib.simulation import cases, labelled

ACTIVATION = """
from sweeplib.maths.activations import ACTIVATIONS, Activation
{imports}

def value(field):
    return {scale} * field

def derivative(field):
    return {scale}

ACTIVATIONS.register("{name}", Activation("{name}", "x", value, derivative, 1))
"""


def written(path: Path, text: str) -> str:
    """Return the path of a file with this text, in a folder made for it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


def activation(path: Path, name: str, *, imports: str = "", scale: str = "2.0") -> str:
    """Return the path of a plugin that registers a linear activation."""
    return written(path, ACTIVATION.format(name=name, imports=imports, scale=scale))


@contextmanager
def nothing_left() -> Iterator[None]:
    """Return a context that restores registries, imported modules and caches to their state at its start."""
    forget_installed()
    things = [(registry, dict(registry._things)) for registry in REGISTRIES]
    parameters, defaults = dict(PARAMETERS), dict(DEFAULTS)
    path, modules, loaded = list(sys.path), set(sys.modules), dict(plugins._plugins)
    yield
    for registry, before in things:
        registry._things = before
    for table, before in ((PARAMETERS, parameters), (DEFAULTS, defaults)):
        table.clear()
        table.update(before)
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if user_file(name) and not name.startswith("tests"):
            del sys.modules[name]
    plugins._plugins.clear()
    plugins._plugins.update(loaded)
    sources._parsed.cache_clear()
    forget_installed()
    for remembered in (cases.numerical_options, cases._numerics_version, labelled._runs, functions.functions):
        remembered.cache_clear()
