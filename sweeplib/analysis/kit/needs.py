"""Requirements of analyses: an InputError before anything runs if the sweep does not meet them."""

from __future__ import annotations

from collections.abc import Sequence

from sweeplib.analysis.kit.variables import is_stochastic, require
from sweeplib.engine.storage.dataset.outline import Outline
from sweeplib.errors import InputError
from sweeplib.networks.simulation.labels import label


def need_passages(ds: Outline) -> None:
    """Raise InputError unless the sweep records first passages."""
    require(ds, "exit_steps", "exit_time")


def passages_outline(ds: Outline, *names: str, over: str = "") -> Outline:
    """Return the outline of statistics of first passages; InputError if the sweep records none."""
    need_passages(ds)
    return statistics_outline(ds, "exit_steps", *names, over=(over,))


def statistics_outline(ds: Outline, source: str, *names: str, over: Sequence[str] = ("time",)) -> Outline:
    """Return the outline of statistics of a variable over the seeds, and over other axes, under these names."""
    outline = ds.only(source).without("seed", *over)
    return outline.with_variables(dict.fromkeys(names, outline.dims_of(source)))


def need_axis(ds: Outline, name: str) -> None:
    """Raise InputError unless the sweep has an axis `name` of two values or more."""
    if ds.sizes.get(name, 1) < 2:
        problem = f"the {label(name)['long_name']} does not vary"
        raise InputError(problem, expected=f"an axis {name} in `grid`, of two values or more")


def need_dynamics(ds: Outline, *names: str) -> None:
    """Raise InputError unless the sweep runs all of these dynamics."""
    dynamics = ds.axes["dynamics"]
    for name in names:
        if name not in dynamics:
            raise InputError("not among the dynamics that were run", key="dynamics", value=dynamics, expected=name)


def need_stochastic(ds: Outline) -> None:
    """Raise InputError unless the sweep runs a stochastic dynamics."""
    names = ds.axes["dynamics"]
    if not any(map(is_stochastic, names)):
        raise InputError("no stochastic dynamics was run", key="dynamics", value=names, expected="sgd or sgd_chain")


def need_start(ds: Outline) -> None:
    """Raise InputError unless the start, at the time 0, is recorded."""
    first = float(ds.axes["time"][0])
    if first > 0.0:
        raise InputError("the start is not recorded", key="times", value=first, expected="0 as the first of the times")
