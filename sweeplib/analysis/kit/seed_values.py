"""Values of single runs along an axis: of an observable at a time, or of first passages; the axis that scans γ."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import Field

from sweeplib.analysis.kit.passages import Passages, passages
from sweeplib.analysis.kit.problem_fields import field
from sweeplib.analysis.kit.sweep_axis import SWEEP
from sweeplib.analysis.kit.variables import recorded, statistics_outline
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.design.axis import are_numbers
from sweeplib.engine.storage.dataset.outline import Outline, fixed_axes, outline_of
from sweeplib.errors import InputError
from sweeplib.networks.problem import PARAMETERS
from sweeplib.networks.simulation.labels import label, time_text
from sweeplib.statistics.laws import law_along
from sweeplib.statistics.lost_runs import MOST_LOST, STOPPED, has_run, sample_of, unless_lost, values_of, with_status

SEVERAL = "several axes vary the learning rate"
"""The problem of a message."""


def scan_dim(ds: xr.Dataset | Outline, along: str | None = None) -> str:
    """Return the dimension along which gamma is scanned at a fixed problem.

    `gamma` itself if it is an axis. Otherwise the single axis that gamma is derived from and that is no field of the
    problem, such as gamma0 in gamma = gamma0 * d**-delta; `along`, if given, chooses one. InputError if there is none,
    if there are several without a choice, or if other fields of the problem vary along it.
    """
    outline = outline_of(ds)
    dims = outline.dims_of("gamma")
    if along is not None and along not in dims:
        raise InputError("gamma does not vary along", key="along", value=along, choices=dims)
    candidates = [along] if along else scan_dims(outline)
    if len(candidates) > 1:
        raise InputError(SEVERAL, key="along", value=candidates, expected="one of them")
    return _checked(outline, candidates)


def drawn_scan_dim(ds: xr.Dataset | Outline, where: Mapping[str, Any] | None) -> str:
    """Return the dimension along which gamma is scanned in a figure: that which its option `where` does not fix.

    InputError as for `scan_dim`.
    """
    outline = outline_of(ds)
    fixed, scanned = fixed_axes(where), scan_dims(outline)
    candidates = [dim for dim in scanned if dim not in fixed] or scanned
    if len(candidates) > 1:
        raise InputError(SEVERAL, key="where", value=candidates, expected="a value for all but one of them")
    return _checked(outline, candidates)


def scan_dims(outline: Outline) -> list[str]:
    """Return the dimensions along which gamma may be scanned at a fixed problem; several if it is derived from them."""
    dims = outline.dims_of("gamma")
    return ["gamma"] if "gamma" in dims else [dim for dim in dims if dim not in PARAMETERS and dim != SWEEP]


def _checked(outline: Outline, candidates: list[str]) -> str:
    """Return the one candidate for the dimension of a scan, of one at most.

    InputError if there is none, if it has a single value, or if other fields of the problem vary along it.
    """
    if not candidates or outline.sizes[candidates[0]] < 2:
        dims = ", ".join(outline.dims_of("gamma")) if not candidates else ""
        problem = f"the learning rate varies only along {dims}" if dims else "the learning rate does not vary"
        expected = "two learning rates or more in `grid`, or an axis there from which gamma is derived"
        raise InputError(problem, expected=expected)
    (dim,) = candidates
    others = [name for name in PARAMETERS if name != "gamma" and dim in outline.variables.get(name, ())]
    if others:
        raise InputError("not a scan at a fixed problem", key="along", value=dim, expected=f"{', '.join(others)} fixed")
    return dim


PASSAGES = {"exit_steps": "steps", "exit_samples": "steps", "exit_time": "time", "exited": "steps"}
"""The quantities of first passages, by what is read.

exit_samples : the samples that were drawn for the steps. exited : 1 for a run that did by its horizon, otherwise 0.
"""
NOT_ALONG = ("dynamics", "seed", "time", "threshold", "teacher", "task", "block", "quantile")
"""Dimensions along which there is no curve."""

Of = Annotated[
    str,
    Field(
        description="the quantity: a recorded observable such as risk, `exit_steps`, `exit_samples`, `exit_time`, or "
        "`exited`, the fraction of runs that did by their horizon."
    ),
]
AlongAxis = Annotated[
    str | None, Field(description="the axis of the grid; needed if the sweep has several axes of numbers.")
]
AtTime = Annotated[float | None, Field(description="the recorded time of an observable; by default the last.")]
CUT_OFF = 0.002
"""The part of the runs at a point that may end without an exit: means then are less than .1 % or so too small."""


class Curves(NamedTuple):
    """Values of runs, NaN for those that do not count, and the numbers on the axis along which they are compared.

    values : over seeds, the axis and others. x : numbers on the axis `along`. restricted : min(value, horizon) of
    exits, whose mean is less than that of the exits; the values where no horizon cuts any off.
    censored, lost : masks of the places at which too many runs did not exit, so that their mean is unknown, or are
    lost. at : the recorded time of the values, if they have one.
    """

    values: xr.DataArray
    x: xr.DataArray
    along: str
    censored: xr.DataArray
    lost: xr.DataArray
    restricted: xr.DataArray
    at: Mapping[str, float] = MappingProxyType({})

    def law(self, law: Callable[..., Any], inner: str = "", **settings: Any) -> tuple[xr.DataArray, ...]:
        """Return the numbers of a `law` along the axis, over all others; arguments are those of `law_along`."""
        return law_along(self.along, self.values, self.x, law, inner, **settings)

    @classmethod
    def complete(cls, values: xr.DataArray, x: xr.DataArray, along: str) -> Curves:
        """Return curves of values that no horizon cuts off."""
        none = xr.zeros_like(values.isel(seed=0, drop=True), dtype=bool)
        return cls(values, x, along, none, none, values)

    @classmethod
    def of_exits(cls, sample: Passages, x: xr.DataArray, along: str, most: float, unit: Any = 1.0) -> Curves:
        """Return curves of exits times `unit`, NaN at places at which more than the fraction `most` did not exit."""
        censored, restricted = sample.too_censored(most), sample.restricted * unit
        return cls(restricted.where(~censored), x, along, censored, sample.refused, restricted)


def curves_along(
    ds: xr.Dataset, of: str, along: str | None = None, time: float | None = None, max_lost: float = MOST_LOST
) -> Curves:
    """Return the values of single runs of a quantity along an axis, by default the only one, at the last time.

    A point has none where more than the fraction `max_lost` of its runs has no value, as `exited` of runs that were
    stopped before their horizon, or, of exits, where more than `CUT_OFF` of them have not exited.
    """
    axis = axis_along(outline_of(ds), of, along)
    if of in PASSAGES:
        sample = passages(ds, PASSAGES[of], max_lost)
        x = ds[axis].astype(float)
        if of == "exited":
            # whether a run that was stopped before its horizon would have exited by then is not known
            is_known = sample.used & (sample.reached | ~with_status(ds, *STOPPED))
            values = sample.reached.astype(float).where(is_known).transpose(*sample.used.dims)
            return Curves.complete(unless_lost(values, values.isnull() & has_run(ds), has_run(ds), max_lost), x, axis)
        return Curves.of_exits(sample, x, axis, CUT_OFF, samples_of_a_step(ds) if of == "exit_samples" else 1.0)
    values = values_of(ds, of)
    at = time_chosen(values, time)
    values = sample_of(values.sel(at, drop=True), ds, max_lost)
    return Curves.complete(values, ds[axis].astype(float), axis)._replace(at=at)


def time_chosen(values: xr.DataArray, time: float | None) -> dict[str, float]:
    """Return the recorded time at which values are looked at, by default the last; {} if they have no times."""
    return {"time": values["time"].values[-1].item() if time is None else time} if "time" in values.dims else {}


def time_words(ds: xr.Dataset, time: float | None) -> str:
    """Return " at time 2" as the end of a name, or in the unit of the times " at 50 d samples"; "" if none is given."""
    attrs = {} if time is None else ds["time"].attrs
    return "" if time is None else f" at {'time ' * ('clock' not in attrs)}{time_text(time, attrs)}"


def rate_scan(ds: xr.Dataset, dim: str, max_censored: float, max_lost: float) -> Curves:
    """Return the exit steps of single runs along the axis `dim`, which scans the learning rate; `x` of the curves is γ.

    NaN at rates at which more than the fraction `max_censored` of the runs is censored, or `max_lost` is lost.
    """
    # `status` has every axis of the grid: γ at each point
    gamma = field(ds, "gamma").astype(float).broadcast_like(ds["status"].isel(seed=0, drop=True))
    return Curves.of_exits(passages(ds, "steps", max_lost), gamma, dim, max_censored)


def axis_along(ds: Outline, of: str, along: str | None) -> str:
    """Return the axis along which the quantity `of` is looked at: `along`, by default the only one.

    InputError unless the axis has three numbers or more and the quantity is recorded.
    """
    names = [*recorded(ds), *(PASSAGES if "exit_steps" in ds.variables else ())]
    if of not in names:
        raise InputError("not recorded in this sweep", key="of", value=of, choices=names)
    axes = [
        name
        for name, values in ds.axes.items()
        if name not in NOT_ALONG and name in ds.dims_of("status") and len(values) > 2 and are_numbers(values)
    ]
    if along is None and len(axes) == 1:
        return axes[0]
    if along not in axes:
        expected = {"choices": axes} if axes else {"expected": "an axis of three numbers or more in `grid`"}
        problem = "several axes of numbers" if along is None and axes else "no such axis of numbers"
        raise InputError(problem, key="along", value=along or ", ".join(axes), **expected)
    return along


def samples_of_a_step(ds: xr.Dataset) -> xr.DataArray:
    """Return the mean number of samples drawn for a step: in epochs, the mean over a whole pass of the training set."""
    size, repeats = field(ds, "batch_size", 1), field(ds, "repeats", 1)
    n, in_epochs = field(ds, "samples", 0), field(ds, "sampling", "").isin(["epochs"])
    whole = xr.where(in_epochs & (n > 0), n / np.ceil(np.maximum(n, 1) / size), size)
    return whole / repeats


def axis_labels(ds: xr.Dataset, axis: str) -> dict[str, Any]:
    """Return the `long_name` and the `units` of an axis: those of the dataset, else of a field of a problem.

    A parameter of a function may have the name of such a field, and another meaning.
    """
    return label(axis) | ds[axis].attrs


def quantity_of(ds: xr.Dataset, of: str, time: float | None) -> tuple[str, str]:
    """Return the name of the mean of a quantity in words, with the time that is given, and its units."""
    if of == "exited":
        return "fraction of runs that exited by their horizon", "1"
    if of == "exit_samples":
        return "mean samples drawn to the exit", "1"
    return f"mean {ds[of].attrs['long_name']}{time_words(ds, time)}", str(ds[of].attrs.get("units", "1"))


def outline_along(ds: Outline, of: str, along: str | None, time: float | None, *names: str) -> Outline:
    """Return the outline of variables `names` that are numbers of a whole curve (`curves_along`).

    An outline is the structure of a dataset, known before anything runs. InputError if the quantity has no such axis,
    or is not recorded at the time.
    """
    axis, source = axis_along(ds, of, along), "exit_steps" if of in PASSAGES else of
    times = ds.axes["time"] if "time" in ds.dims_of(source) else ()
    if time is not None and time not in times:
        raise InputError("not a recorded time of this quantity", key="time", value=time, choices=map(str, times))
    return statistics_outline(ds, source, *names, over=("time", axis)).with_variables({}, along=axis)
