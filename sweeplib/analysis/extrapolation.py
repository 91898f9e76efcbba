"""The limit of a quantity along an axis, such as the input dimension, from its values at finite ones."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from sweeplib.analysis.analysis import ANALYSES, analysis_of, declared_quantities
from sweeplib.analysis.averages import averaged_observables, numbered
from sweeplib.analysis.kit.options import Confidence, LostPart, Positive
from sweeplib.analysis.kit.passages import passages
from sweeplib.analysis.kit.seed_values import AtTime, time_chosen, time_words
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import Outline, outline_of
from sweeplib.errors import InputError
from sweeplib.networks.simulation.labels import label
from sweeplib.statistics.extrapolation import TRUSTED, Limit, extrapolated
from sweeplib.statistics.labelled import labelled, standard_errors, with_bounds
from sweeplib.statistics.lost_runs import MOST_LOST, has_run, values_of
from sweeplib.statistics.seed_means import FEWEST_SEEDS

AVERAGES = "averages"
OWN_STARTS = ("p", "k", "d")
"""Axes along which runs with the same seed have other starts."""
LEAST_SIGNAL = 2.0
"""Values below this number of errors have no logarithm that counts."""
Of = Annotated[
    str | None,
    Field(
        description="the quantity: that of an analysis, such as exit_steps or gamma_opt, or a recorded observable; by "
        "default the exit steps, else the first observable."
    ),
]
Axis = Annotated[str, Field(description="the axis along which the limit is taken, to ∞.")]
LawName = Annotated[
    Literal["constant", "log", "power"],
    Field(
        description="what the quantity tends to: a `constant`, A ln d (`log`: the limit is A), or a power of d "
        "(`power`: the limit is its exponent)."
    ),
]
Per = Annotated[
    float, Field(ge=-10, le=10, description="the quantity over this power of the axis has the law: 1 for steps/d.")
]
Correction = Annotated[
    Positive, Field(le=10, description="the exponent of the slowest correction, d^-0.5 or faster by default.")
]
VERDICTS: dict[str, Any] = {"flag_values": [0, 1, 2], "flag_meanings": "trusted too_few_values other_form"}
"""The flags (CF conventions) of a verdict: TRUSTED, FEW and MISFIT of `statistics.extrapolation`, in this order."""


def extrapolation(
    ds: xr.Dataset,
    *,
    of: Of = None,
    axis: Axis = "d",
    law: LawName = "constant",
    per: Per = 0.0,
    correction: Correction = 0.5,
    time: AtTime = None,
    confidence: Confidence = 0.95,
    max_lost: LostPart = MOST_LOST,
) -> xr.Dataset:
    """Return the limit of a quantity as an axis, d say, goes to ∞, per dynamics and point of the other axes.

    limit (_low, _high): with `law: constant` that of the quantity over d^per; with `log` that of this over ln d, by a
    fit of A ln d + B; with `power` the exponent of d. Beside these terms there are corrections d^−x whose exponents are
    not known but for the least one, `correction`: the interval has in it the errors, the choice of the exponents, and
    what corrections of the size that the points show may change (`sweeplib.statistics`). It says nothing of slower
    corrections, such as 1/ln d. Points along p, k and d have errors of their own, but for samples shared by `pair_by`.
    Along other axes runs with the same seed have the same start, for which intervals of observables and exits allow;
    those of what other analyses give do not.
    verdict: 0 where the limit is trusted; 1, too_few_values, for fewer values of the axis than the law has coefficients
    and two, or a last one below eight times the first; 2, other_form, where the points clearly, at .001, deviate from
    all such forms. There limit is NaN. reduced_chi2 is χ² over the degrees of freedom; values_used the number of
    points; limit_error_of_value, along the axis, the error of the limit by that of each point. Points without a value
    or an error, with a mere bound, or, with `power`, below two errors are left out.
    """
    name, source, variable = _source(outline_of(ds), of)
    measured, errors, at = _values(ds, source, variable, time, {"max_lost": max_lost})
    scale = ds[axis].astype(float) ** per
    measured, errors, attrs = measured / scale, errors / scale, measured.attrs
    if law == "power":
        measured = measured.where(measured > LEAST_SIGNAL * errors)
        measured, errors = xr.ufuncs.log(measured), errors / measured
    errors = errors.broadcast_like(measured).transpose(*measured.dims)
    freedom = (_fewest_seeds(ds, measured) - 1.0).broadcast_like(measured).transpose(*measured.dims)
    by_seed = _parts_of_seeds(ds, source, variable, time, axis, max_lost)
    parts, shares = xr.apply_ufunc(
        lambda y, e, n, s, x: _numbers(extrapolated(x, y, e, n, law, correction, confidence, s if s.size else None)),
        *(array.sortby(axis) for array in (measured, errors, freedom, by_seed, ds[axis].astype(float))),
        input_core_dims=[[axis], [axis], [axis], [axis, "seed"], [axis]], output_core_dims=[["part"], [axis]],
        vectorize=True, output_dtypes=[float] * 2, dask_gufunc_kwargs={"output_sizes": {"part": 6}},
    )  # fmt: skip
    attrs = attrs | {"long_name": f"{attrs['long_name']}{time_words(ds, time)}"}
    variables = _variables(parts, attrs, axis, law, per)
    title, units = f"error of the limit by that of one {axis}", variables["limit"].attrs["units"]
    variables["limit_error_of_value"] = labelled(abs(shares * errors), title, units=units)
    return xr.Dataset(variables).assign_attrs(
        of=name, axis=axis, law=law, per=per, correction=correction, confidence=confidence, max_lost=max_lost, **at
    )


def _numbers(limit: Limit) -> tuple[np.ndarray, np.ndarray]:
    """Return the six numbers of a limit (6,), and the shares (n,) of the points in its error."""
    return np.array(limit[:-1], float), limit.shares


def _source(ds: Outline, of: str | None) -> tuple[str, str, str]:
    """Return the name of a quantity, the analysis that has it and its variable there.

    Without a name it is the mean of the exit steps, or else of the first recorded observable.
    """
    if of is None:
        of = "exit_steps" if "exit_steps" in ds.variables else next(iter(averaged_observables(ds)), "risk")
    # a result of a function may have the name of a quantity of an analysis, which needs networks
    declared = {} if of in averaged_observables(ds) else declared_quantities()
    return of, *declared.get(of, (AVERAGES, of))


def _values(
    ds: xr.Dataset, source: str, variable: str, time: float | None, options: dict[str, Any]
) -> tuple[xr.DataArray, xr.DataArray, dict[str, float]]:
    """Return a variable of the analysis `source`, NaN where it is only a bound, its standard errors, and their time.

    time : a recorded time, by default the last. options : of the analysis, of which it gets those that it has.
    Without standard errors they are those of a normal number with the interval of the variable.
    """
    accepted = {name: value for name, value in options.items() if name in ANALYSES[source].check({})}
    result = ANALYSES[source](ds, **accepted)
    at = time_chosen(result[variable], time)
    result = result.sel(at, drop=True)
    value = result[variable]
    if "bound" in value.attrs:
        value = value.where(~result[value.attrs["bound"]].astype(bool)).assign_attrs(value.attrs)
    return value, standard_errors(result, variable), at


def _parts_of_seeds(
    ds: xr.Dataset, source: str, variable: str, time: float | None, axis: str, max_lost: float
) -> xr.DataArray:
    """Return the part of each seed in the error of each point, of length 1 over `seed`; no seeds if none are shared.

    It is of length 0 where the values of all seeds are equal.
    """
    if axis in OWN_STARTS or source not in (AVERAGES, "exit_times"):
        return xr.DataArray(np.empty((ds.sizes[axis], 0)), {axis: ds[axis]}, (axis, "seed"))
    if source == AVERAGES:
        values = numbered(values_of(ds, variable))
        values = values.sel(time_chosen(values, time), drop=True)
    else:
        values = passages(ds, "time" if variable.startswith("exit_time") else "steps", max_lost).restricted
    centred = (values - values.mean("seed")).fillna(0.0)
    length = ((centred**2).sum("seed")) ** 0.5
    return centred / length.where(length > 0.0, 1.0)


def _fewest_seeds(ds: xr.Dataset, measured: xr.DataArray) -> xr.DataArray:
    """Return the least number of seeds of the rows that take part in a value."""
    counts = has_run(ds).sum("seed")
    counts = counts.where(counts > 0)
    over = [dim for dim in counts.dims if dim not in measured.dims]
    return counts.min(over).fillna(FEWEST_SEEDS).clip(FEWEST_SEEDS)


def _variables(parts: xr.DataArray, attrs: dict[str, Any], axis: str, law: str, per: float) -> dict[str, xr.DataArray]:
    """Return the numbers of the limits, along `part` in the order of `Limit`, as labelled variables.

    attrs : those of the quantity. axis, law, per : options of `extrapolation`.
    """
    power = {0.0: "", 1.0: f" over {axis}"}.get(per, f" over {axis}^{per:g}")
    quantity = f"{attrs['long_name']}{power}"
    names = {
        "constant": f"limit of the {quantity} as {axis} → ∞",
        "log": f"limit of the {quantity} over ln {axis} as {axis} → ∞",
        "power": f"exponent of {axis} of the {quantity} as {axis} → ∞",
    }
    *bounds, verdict, used, reduced_chi2 = parts.transpose("part", ...)
    needs = f"more values of {axis}, or larger ones"
    reason = f"too few values of {axis}, or points that deviate from the law and its corrections"
    units = str(attrs.get("units", "1")) if law != "power" else "1"
    units += f"/{axis}^{per:g}" * (units != "1" and per != 0.0)
    return with_bounds("limit", bounds, names[law], units=units, needs=needs, bound="untrusted") | {
        "verdict": labelled(verdict.astype(np.uint8), "whether the limit is trusted", **VERDICTS),
        "untrusted": labelled(verdict != TRUSTED, "the limit is not trusted", reason=reason),
        "reduced_chi2": labelled(reduced_chi2, "chi-squared over degrees of freedom of the fit", r"\chi^2/n"),
        "values_used": labelled(used.astype(int), f"points of the fit along {axis}"),
    }


def _outline(ds: Outline, *, of: str | None, axis: str, time: float | None, **_: Any) -> Outline:
    """Return the structure of the result, before anything runs: a limit for each point of the other axes.

    InputError unless the quantity is known, has the axis with two positive values or more, and is recorded at the time.
    """
    name, source, variable = _source(ds, of)
    # all but the limit itself; a result of a function may have its name, or that of another
    declared = [other for other in declared_quantities() if other != "limit"]
    quantities = list(dict.fromkeys([*declared, *averaged_observables(ds)]))
    if name not in quantities:
        raise InputError("not a quantity", key="of", value=name, choices=quantities)
    outlined = ANALYSES[source].outlined(ds, {})
    if outlined is None:
        raise InputError("its analysis does not say what it returns", key="of", value=name, choices=quantities)
    dims = outlined.dims_of(variable)
    # no sweep goes to infinite times; the others are no numbers that grow
    choices = [dim for dim in dims if dim not in ("dynamics", "time", "threshold")]
    if axis not in choices:
        raise InputError("not an axis of this quantity", key="axis", value=axis, choices=choices)
    # the result may have an axis along which the parameter is fixed: the dataset has none then
    values = ds.axes.get(axis, ())
    if len(values) < 2 or any(isinstance(number, str | bool) or number <= 0 for number in values):
        text = f"{label(axis)['long_name']} {list(values)[:3]}"
        raise InputError("no axis that goes to ∞", key="axis", value=text, expected="two values or more, all above 0")
    times = ds.axes["time"] if "time" in dims else ()
    if time is not None and time not in times:
        raise InputError("not a recorded time of this quantity", key="time", value=time, choices=map(str, times))
    others = tuple(dim for dim in dims if dim not in (axis, "time"))
    outline = outlined.only(variable).without("time")
    return outline.with_variables({"limit": others, "untrusted": others, "limit_error_of_value": (*others, axis)})


DOC = "The limit of a quantity as an axis goes to infinity"
ANALYSES.add(analysis_of(extrapolation, DOC, outline=_outline, headline="limit", quantities=["limit"]))
