"""Plugins in tests: files that register objects, and a context that removes every trace of them."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sweeplib.engine.execution.clusters  # registries are full before their state is remembered
import sweeplib.pictures.figures  # noqa: F401
from sweeplib.engine.base.registry import REGISTRIES
from sweeplib.engine.code import plugins, sources, user_code
from sweeplib.engine.code.user_code import user_file
from sweeplib.networks.kernels import functions
from sweeplib.networks.problem import DEFAULTS, PARAMETERS
from sweeplib.networks.simulation import cases, labelled_runs, numerics_version

ACTIVATION = """
from sweeplib.networks.maths.activations import ACTIVATIONS, Activation
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


def _forget_installed() -> None:
    """Forget the entry points, which are read once a process."""
    user_code.installed_plugins.cache_clear()
    user_code._plugin_packages.cache_clear()


@contextmanager
def nothing_left() -> Iterator[None]:
    """Return a context that restores registries, imported modules and caches to their state at its start."""
    _forget_installed()
    things = [(registry, dict(registry._things)) for registry in REGISTRIES]
    parameters, defaults = dict(PARAMETERS), dict(DEFAULTS)
    path, modules, loaded = list(sys.path), set(sys.modules), dict(plugins._plugins)
    try:
        yield
    finally:
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
        sources._content_of.cache_clear()
        _forget_installed()
        for remembered in (
            cases.numerical_options,
            numerics_version._numerics_version,
            labelled_runs._runs,
            functions.functions,
        ):
            remembered.cache_clear()


DRAWN = """\
from sweeplib.plugins import FIGURES, Figure, InputError


def final_risks(ds, analyses, *, log: bool = True):
    # The mean risk at the last recording time against the learning rate; an option needs a type and a default.
    from matplotlib.figure import Figure as Drawing

    drawing = Drawing()
    axes = drawing.subplots()
    final = ds.risk.isel(time=-1).mean("seed")
    for dynamics in final.dynamics.values:
        axes.plot(ds.gamma, final.sel(dynamics=dynamics), "o-", label=str(dynamics))
    axes.set(xlabel="learning rate", ylabel="population risk at the end", yscale="log" if log else "linear")
    axes.legend()
    return drawing


def arrange(ds, analyses, *, log):
    # Refuse, before anything runs, a sweep that cannot be drawn; called with the outlines of its datasets.
    if "risk" not in ds.variables or set(ds.dims_of("risk")) != {"dynamics", "gamma", "seed", "time"}:
        expected = "the risk, and `grid: {gamma: [...]}`"
        raise InputError("final risks are drawn against gamma alone", value=list(ds.axes), expected=expected)


# `needs=("averages",)` would give `analyses["averages"]`: `sweeplib list analyses` has the names.
FIGURES.register("own", Figure("own", final_risks, "The mean risk at the end of the runs.", arrange=arrange))
"""
"""A plugin of a figure that draws its picture itself, without a declaration."""
