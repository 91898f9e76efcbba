"""The variables that a dataset has recorded, the kind of dynamics that recorded them, and what analyses need of both.

A sweep that does not meet a need is refused, by an InputError, before anything runs. So most functions take the outline
of a dataset: its axes, variables and attributes without numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import Outline, outline_of
from sweeplib.errors import InputError
from sweeplib.networks.simulation.labels import label
from sweeplib.statistics.lost_runs import with_status

DECLARED_BY = {"exit_": "`thresholds`, such as [0.01]", "schedule_": "an optimal `schedule`, such as optimal(6)"}
"""What a sweep needs for variables that are no observables, by how their names begin."""


def require(ds: xr.Dataset | Outline, *names: str) -> None:
    """Raise InputError if a variable that an analysis reads is not recorded."""
    for name in names:
        if name not in ds.variables:
            declared = next((text for start, text in DECLARED_BY.items() if name.startswith(start)), None)
            expected = declared or f"{name} among the `observables`"
            raise InputError("not recorded in this sweep", value=name, expected=expected)


def over_time(ds: xr.Dataset | Outline) -> list[str]:
    """Return the recorded observables that have a time axis; not the errors of other observables."""
    outline = outline_of(ds)
    return [
        name for name, dims in outline.variables.items() if {"seed", "time"} <= set(dims) and name not in outline.errors
    ]


def recorded(ds: xr.Dataset | Outline) -> list[str]:
    """Return the observables over time of networks, or all results of functions; not the errors of others."""
    outline = outline_of(ds)
    if "function" not in outline.attrs:
        return over_time(outline)
    others = {"status", *outline.axes, *outline.coordinates, *outline.errors}
    return [name for name, dims in outline.variables.items() if "seed" in dims and name not in others]


def stops_at_exits(ds: xr.Dataset) -> bool:
    """Return whether runs stop at exits, by the values of a dataset: regular runs then lack their last values.

    An observable that is not known at the first time either says nothing.
    """
    if "exit_time" not in ds:
        return False
    ok, names = with_status(ds, "ok"), over_time(ds)
    for name in names:
        inner = [dim for dim in ds[name].dims if dim not in (*ok.dims, "time")]
        first, last = (ds[name].isel(time=at).notnull().any(inner) for at in (0, -1))
        if bool((ok & first & ~last).any()):
            return True
    return False


def is_stochastic(dynamics: str) -> bool:
    """Return whether runs of the dynamics are noisy beyond their start; true for an unknown dynamics."""
    from sweeplib.networks.dynamics import DYNAMICS

    return dynamics not in DYNAMICS or (DYNAMICS[dynamics].stochastic and not DYNAMICS[dynamics].sampled)


def stochastic(data: xr.Dataset | xr.DataArray) -> xr.DataArray:
    """Return a mask along `dynamics`: those whose runs are noisy beyond their start."""
    names = data["dynamics"]
    return xr.DataArray([is_stochastic(str(name)) for name in names.values], {"dynamics": names})


def need_passages(ds: Outline) -> None:
    """Raise InputError unless the sweep records first passages."""
    require(ds, "exit_steps", "exit_time")


def passages_outline(ds: Outline, *names: str, over: str = "") -> Outline:
    """Return the outline with variables `names` that are statistics of first passages over seeds, and the axis `over`.

    InputError if the sweep records no first passages.
    """
    need_passages(ds)
    return statistics_outline(ds, "exit_steps", *names, over=(over,))


def statistics_outline(ds: Outline, source: str, *names: str, over: Sequence[str] = ("time",)) -> Outline:
    """Return the outline with variables `names` that are statistics of the variable `source` over seeds.

    over : the axes, besides `seed`, that the statistics reduce.
    """
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


def need_later_time(ds: Outline, until: float = float("inf")) -> None:
    """Raise InputError unless a time after the start, and no later than `until`, is recorded."""
    times = ds.axes["time"]
    if not any(0.0 < time <= until for time in times):
        expected = f"a recorded time above 0, of {', '.join(map(str, times[:5]))}{', ...' * (len(times) > 5)}"
        trouble = "no time after the start is compared"
        if until < float("inf"):
            raise InputError(trouble, key="until", value=until, expected=expected)
        raise InputError(trouble, key="times", value=list(times), expected="a recorded time above 0")


def need_start(ds: Outline) -> None:
    """Raise InputError unless the start, at the time 0, is recorded."""
    first = float(ds.axes["time"][0])
    if first > 0.0:
        raise InputError("the start is not recorded", key="times", value=first, expected="0 as the first of the times")
