"""Quantities that the general figures draw: variables of analyses, under the names that a config gives them.

- `exit_steps`, `gamma_opt`, ...: a quantity that an analysis declares (`Analysis.quantities`).
- `risk`, `overlap_M`, ...: a recorded observable, averaged over the seeds.
- `ANALYSIS.VARIABLE`: any other variable in the outline of an analysis.

An outline has the axes, variables and attributes of a dataset without numbers: it is known before anything runs.
A round is one addition of rows to a sweep, for its questions; what the config has is round 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sweeplib.analysis import ANALYSES
from sweeplib.analysis.analysis import declared_quantities
from sweeplib.analysis.kit.problem_fields import has_direction
from sweeplib.analysis.kit.variables import over_time, recorded
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import Outline, fixed_axes, outline_of
from sweeplib.errors import InputError
from sweeplib.networks.problem import PARAMETERS
from sweeplib.networks.simulation.labels import label
from sweeplib.pictures.figures.kit.scales import above_error
from sweeplib.statistics.lost_runs import has_run_at

if TYPE_CHECKING:
    from sweeplib.pictures.figures.kit.chart import ByName, Data
    from sweeplib.pictures.figures.kit.facets import Facets

AVERAGES = "averages"
"""The analysis of observables averaged over the seeds."""
EXITS = ("exit_time", "exit_steps")
"""The recorded quantities of exits."""
PREFERRED = "subspace_cosine"
"""The observable that is drawn by default, if it is recorded."""
NO_DEFAULT = frozenset({"block", "dynamics", "task", "teacher", "threshold", "time"})
"""Axes that are not a horizontal axis unless they are asked for."""

ROUND = "round"
"""The coordinate of the round that asked for a point first: 0 is the config."""
ADDED_SIZE = 0.6
"""The size of the marker of a point that a round has added, relative to the marker of a point of the config."""


@dataclass(frozen=True)
class Quantity:
    """A variable of an analysis; the variable None is the first observable of the averages.

    key : the option of the figure that names it.
    name : the text of that option.
    """

    analysis: str
    variable: str | None
    key: str
    name: str | None

    def outline(self, ds: Data, analyses: ByName) -> tuple[Outline, str]:
        """Return the outline of the variable and its name in the analysis; InputError if the analysis lacks it."""
        outline = outline_of(analyses[self.analysis])
        names = outline.attrs["averaged"].split() if self.analysis == AVERAGES else _variables(outline, outline_of(ds))
        variable = (PREFERRED if PREFERRED in names else names[0]) if self.variable is None else self.variable
        if variable not in names:
            if self.name and "." in self.name:
                choices, expected = [f"{self.analysis}.{name}" for name in names], None
            else:  # the sweep's own are named before those of analyses, which may not be of such a sweep
                choices = [*names, *declared_quantities()]
                expected = f"{', '.join(names)}, or a quantity of an analysis"
            raise InputError("no such quantity", key=self.key, value=self.name, choices=choices, expected=expected)
        return outline.only(variable), variable

    def chart_arguments(self, analyses: ByName, variable: str, log_axes: Sequence[str] | None = None) -> dict[str, Any]:
        """Return arguments of a `Chart` of the variable; of an outline, which has no attributes, only the first two.

        needs : the analysis. data : a function that returns its results, NaN where they are not above their errors, or
        above zero, on a logarithmic axis. hover : the variable that says which are bounds. theory : that of the theory,
        or of a fit.
        """
        analysis = analyses[self.analysis]
        attrs = {} if isinstance(analysis, Outline) else analysis[variable].attrs

        def data(ds: xr.Dataset, results: Mapping[str, xr.Dataset]) -> xr.Dataset:
            """Return the analysis, of whose variable those values are NaN that have no logarithm to read off."""
            measured = results[self.analysis]
            values = above_error(measured[variable], ds, log_axes=log_axes)
            return measured.assign({variable: values.where(values > 0.0) if "y" in (log_axes or ()) else values})

        hover, theory = (attrs["bound"],) if "bound" in attrs else (), attrs.get("theory", attrs.get("fit"))
        return {"needs": (self.analysis,), "data": data, "hover": hover, "theory": theory}


def quantity(name: str | None, key: str = "y") -> Quantity:
    """Return the quantity of this name, the value of the option `key`; InputError for an unknown analysis."""
    if name is None:
        return Quantity(AVERAGES, None, key, name)
    analysis, dot, variable = name.rpartition(".")
    if not dot:
        analysis, variable = declared_quantities().get(name, (AVERAGES, name))
    elif analysis not in ANALYSES:
        raise InputError("no such analysis", key=key, value=analysis, choices=ANALYSES)
    return Quantity(analysis, variable, key, name)


def recorded_quantity(outline: Outline, name: str | None, *, over_time_only: bool = False) -> str:
    """Return the name of a recorded quantity of single runs: `name`, by default the exit time, else an observable.

    over_time_only : whether it must have a value at each time. InputError for one that is not recorded.
    """
    names = over_time(outline) if over_time_only else recorded(outline)
    if not over_time_only:
        names = [*(exit_ for exit_ in EXITS if exit_ in outline.variables), *names]
    if not names:
        expected = "one over time, such as risk" if over_time_only else "`thresholds`, or an observable over time"
        raise InputError("no such quantity is recorded", key="observables", expected=expected)
    if name is not None and name not in names:
        problem = "not a recorded quantity of single runs, a number at each time"
        raise InputError(problem, key="y", value=name, choices=names)
    return name or names[0]


def _variables(outline: Outline, ds: Outline) -> list[str]:
    """Return the variables of an analysis, without those of the dataset and those that describe other variables."""
    ends = ("_error", "_low", "_high")
    return [
        name
        for name in outline.variables
        if name not in ds.variables
        and name not in outline.coordinates
        and name not in outline.errors
        and not any(name.endswith(end) and name.removesuffix(end) in outline.variables for end in ends)
    ]


def horizontal_axis(outline: Outline, x: str | None, chosen: Mapping[str, Any]) -> tuple[str, str]:
    """Return the coordinate `x` to draw against, and the axis along which it is drawn.

    By default it is the longest axis of numbers that `chosen` (where, panel, hue, dash) does not use. A coordinate
    along several axes is drawn along the time or else the longest of those that are not chosen. InputError for a name
    that is no axis of numbers and no coordinate, and if there is none.
    """
    chosen_axes = {axis for option, axis in chosen.items() if option != "where"}
    fixed = fixed_axes(chosen.get("where"), along=x)
    fits = [name for name in _numeric_axes(outline) if name not in fixed]
    if x is None:
        candidates = [name for name in fits if name not in NO_DEFAULT | chosen_axes]
        if not candidates:
            raise InputError("no axis to draw against", expected="an axis of numbers in `grid`, of two values or more")
        return (longest := max(candidates, key=outline.sizes.__getitem__)), longest
    if x in fits:
        return x, x
    along = {name: dims for name in sorted(outline.coordinates) if (dims := _varying_axes(outline, name, fixed))}
    if x not in along or x in outline.axes:
        choices = [*fits, *(name for name in along if name not in outline.axes)]
        raise InputError("no such axis of numbers", key="x", value=x, choices=choices)
    free = [dim for dim in along[x] if dim not in chosen_axes]
    if not free:
        raise InputError("it varies along no free axis", key="x", value=x, expected="another panel, hue or dash")
    return x, "time" if "time" in free else max(free, key=outline.sizes.__getitem__)


def _varying_axes(outline: Outline, name: str, fixed: set[str]) -> list[str]:
    """Return the axes of several values, not fixed, along which a coordinate of an outline varies."""
    dims = outline.variables.get(name, ())
    return [dim for dim in dims if outline.sizes.get(dim, 1) > 1 and dim not in fixed]


def _numeric_axes(outline: Outline) -> list[str]:
    """Return the axes of several values that are all numbers."""
    return [
        name
        for name, values in outline.axes.items()
        if len(values) > 1 and not any(isinstance(value, str | bool) for value in values)
    ]


def at_last_time(outline: Outline, where: Mapping[str, Any] | None, *axes: str | None) -> Mapping[str, Any] | None:
    """Return `where` with the last time added, unless the time is among the `axes`, selected, or no axis."""
    if "time" not in outline.axes or "time" in axes or "time" in (where or {}):
        return where
    return {**(where or {}), "time": outline.axes["time"][-1]}


def at_chosen_time(result: xr.Dataset, split: Facets) -> xr.Dataset:
    """Return an analysis at the one time that the facets select; unchanged if they select none or several."""
    time = split.at.get("time")
    return result.isel(time=time, drop=True) if isinstance(time, int) and "time" in result.dims else result


def with_requests(result: xr.Dataset, variable: str, ds: xr.Dataset) -> xr.Dataset:
    """Return an analysis with the variable `requested`: true where `variable` is a statistic of runs that were made.

    It is false for directions that a teacher does not have. Values of `variable` on a logarithmic axis are above their
    errors (`above_error`).
    """
    result = result.assign({variable: above_error(result[variable], ds)})
    measured = result[variable]
    reduced = has_run_at(measured, ds) & has_direction(measured, ds)
    return result.assign(requested=reduced.broadcast_like(measured).transpose(*measured.dims))


def bounds(data: xr.Dataset, variable: str) -> np.ndarray:
    """Return a mask, in the shape of a variable: where it is only a bound, as the variable its `bound` names says."""
    measured = data[variable]
    name = measured.attrs.get("bound")
    if name is None:
        return np.zeros(measured.shape, dtype=bool)
    return np.asarray(data[name].broadcast_like(measured).transpose(*measured.dims).values, dtype=bool)


def bound_side(variable: xr.DataArray) -> str:
    """Return on which side of the bounds of a variable the truth may lie: "above", "below" or "either"."""
    return str(variable.attrs.get("bound_side", "either"))


def interval(data: xr.Dataset, variable: str) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the lengths of the error bars below and above each value; None if the variable has no uncertainty."""
    middle = data[variable].values
    if f"{variable}_low" in data:
        with np.errstate(invalid="ignore"):  # of an infinite value
            return middle - data[f"{variable}_low"].values, data[f"{variable}_high"].values - middle
    if f"{variable}_error" in data:
        return (error := data[f"{variable}_error"].values), error
    return None


def others_vary(series: xr.Dataset, x: str) -> bool:
    """Return whether parameters of the problem other than x vary along the axes of x."""
    return any(len(np.unique(other.values)) > 1 for other in _others(series, x))


def with_numbers(data: xr.Dataset, x: str) -> xr.Dataset:
    """Return the data in which parameters along the axes of x that have one value everywhere are single numbers.

    Laws need such numbers.
    """
    others = [other for other in _others(data, x) if other.name not in data.dims]
    return data.assign_coords({str(other.name): other.values.flat[0] for other in others if np.unique(other).size == 1})


def _others(series: xr.Dataset, x: str) -> list[xr.DataArray]:
    """Return the parameters of the problem other than x that have values along the axes of x."""
    along, names = set(series[x].dims), PARAMETERS.keys() - {x}
    return [series[name] for name in series.coords if name in names and along & set(series[name].dims)]


def with_rounds(result: xr.Dataset, ds: xr.Dataset, variable: str) -> xr.Dataset:
    """Return data with a variable `round`: when the points of a variable were first asked for, NaN where never.

    If many rows take part in a point, it is that of the first one. Unchanged if no round has added to the dataset.
    """
    if ROUND not in ds.coords or not bool((ds[ROUND] > 0).any()):
        return result
    rounds = ds[ROUND].where(ds[ROUND] >= 0)
    first = rounds.min([dim for dim in rounds.dims if dim not in result[variable].dims])
    places = {dim: result[dim].values for dim in first.dims if dim in result.indexes}
    return result.drop_vars(ROUND, errors="ignore").assign({ROUND: first.sel(places).assign_attrs(label(ROUND))})


def is_asked(data: xr.Dataset, like: xr.DataArray) -> NDArray[np.bool_]:
    """Return a mask, in the shape of `like`: the points that the config or a round has asked for (`with_rounds`)."""
    return np.isfinite(_rounds_of(data, like))


def is_added(data: xr.Dataset, like: xr.DataArray) -> NDArray[np.bool_]:
    """Return a mask, in the shape of `like`: the points that rounds have added (`with_rounds`)."""
    return np.asarray(_rounds_of(data, like) > 0)


def _rounds_of(data: xr.Dataset, like: xr.DataArray) -> NDArray[np.float64]:
    """Return the round that first asked for each point of a variable, in the shape of `like`; NaN where none has.

    Data without rounds (`with_rounds`) have the config's points alone, of round 0.
    """
    if ROUND not in data:
        return np.zeros(like.shape)
    return np.asarray(data[ROUND].broadcast_like(like).transpose(*like.dims).values, float)
