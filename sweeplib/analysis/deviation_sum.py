"""The deviation from a limit as a sum of powers, one for each thing that the limit leaves out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from sweeplib.analysis.analysis import ANALYSES, analysis_of
from sweeplib.analysis.deviation import sup_deviations
from sweeplib.analysis.deviation_scaling import (
    EXPECTED,
    along_variables,
    expected_exponents,
    fit_variables,
    fits_over,
    scaling_dims,
)
from sweeplib.analysis.kit.differences import comparison_attrs, deviations_outline, differences
from sweeplib.analysis.kit.options import Confidence, LostPart, RandomSeed, Reference, Resamples, Until
from sweeplib.analysis.kit.problem_fields import field, step_time
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import Outline, outline_of
from sweeplib.errors import InputError
from sweeplib.statistics.bootstrap import resampling_of
from sweeplib.statistics.labelled import labelled
from sweeplib.statistics.lost_runs import MOST_LOST
from sweeplib.statistics.sums_of_powers import sum_of_powers

SYMBOLS = {"coupling": r"(\gamma/(pd))", "gamma": r"\gamma", "d": "d", "p": "p"}
"""The symbols of the variables of terms, in LaTeX."""
EXPONENTS, PREFACTORS = "xyz", "ABC"
"""The symbols of exponent and prefactor of the first, the second and the third term."""

Terms = Annotated[
    Sequence[str], Field(description="the variables of the terms: `p`, `d`, `gamma`, or `coupling` for γ/(pd).")
]


def deviation_sum(
    ds: xr.Dataset,
    *,
    reference: Reference = "ode",
    terms: Terms = ("p", "d"),
    until: Until = np.inf,
    max_lost: LostPart = MOST_LOST,
    confidence: Confidence = 0.95,
    resamples: Resamples = 500,
    random_seed: RandomSeed = 0,
) -> xr.Dataset:
    """Return the fit of Σ_t A_t x_t^e_t, A_t ≥ 0, to the mean largest deviation from `reference`, per observable.

    `terms` names the variables x_t: gamma, d, p, or "coupling" for γ/(pd), the ODE time of a step. Bounds are sums:
    sup_t |R(SS) − R(HDMF)| ~ p^(−½) + d^(−½) (arXiv 2302.05882) has the terms p and d,
    sup_t |R_N(SGD) − R(ρ_t)| ≲ √(1/N ∨ ε) (arXiv 1804.06561) the terms p and coupling; `deviation_scaling` fits a
    product. There is a fit for each dynamics and point of the axes along which no x_t varies.
    x_sup_deviation, x_sup_deviation_error: mean and standard error, over the starts, of the largest |difference| of a
    run, as bounds are for single runs: in a mean over runs the noise of SGD would cancel. x_sum: the fitted sum.
    x_exponent, its interval and x_prefactor, along `variable`: NaN for a term without which the points are fitted as
    well; an end of an interval is infinite where resamples often have no such term (`sums_of_powers`).
    A resample takes about a millisecond, as its fit is not linear.
    x_reduced_chi2, x_scatter: as in `deviation_scaling`. The largest deviation of a run is below the sum where its two
    causes act at different times: χ²/n then is above 1, and the scatter widens the intervals.
    """
    deviations = differences(ds, reference, until, max_lost)
    over = _fitted_dims(ds, terms)
    resampling = resampling_of(ds.sizes["seed"], resamples, random_seed, confidence)
    logarithms = along_variables({name: xr.ufuncs.log(_variable(ds, name).astype(float)) for name in terms})
    result = {"exponent_theory": expected_exponents(terms)}
    for name, largest in deviations.largest().items():
        fits = fits_over(largest, logarithms, over, sum_of_powers, resampling)
        quantity = largest.attrs["long_name"]
        result |= sup_deviations(name, largest)
        result |= fit_variables(name, fits, quantity, around="the sum", prefactor="A", term="a term of ")
        prefactor, exponent = (result[f"{name}_{number}"] for number in ("prefactor", "exponent"))
        result[f"{name}_sum"] = _fitted_sum(largest, prefactor, exponent, logarithms)
        result[f"{name}_sup_deviation"].attrs["fit"] = f"{name}_sum"
    summed = xr.Dataset(result)
    summed["variable"] = labelled(summed["variable"], "variable of a term of the deviation")
    options = comparison_attrs(ds, reference, until, max_lost)
    return summed.assign_attrs(options | {"confidence": confidence, "over": " ".join(over)})


def _variable(ds: xr.Dataset, name: str) -> xr.DataArray:
    """Return the variable of a term at all points: γ/(pd) for "coupling", else the field of the problem."""
    return (step_time(ds) if name == "coupling" else field(ds, name)).reset_coords(drop=True)


def _fitted_dims(ds: xr.Dataset | Outline, terms: Sequence[str]) -> list[str]:
    """Return the axes along which the variables of the terms vary; InputError unless the points determine a sum.

    A sum of functions of two variables on a grid is known up to a constant that can be moved between them: with v_t
    values of x_t, Σ v_t − T + 1 independent numbers for the 2T parameters of T terms.
    """
    outline = outline_of(ds)
    wrong = [name for name in terms if name not in EXPECTED]
    if wrong:
        raise InputError("not a variable of the deviation", key="terms", value=wrong[0], choices=list(EXPECTED))
    if not 2 <= len(set(terms)) == len(terms) <= len(EXPONENTS):
        raise InputError("not terms of a sum", key="terms", value=list(terms), expected="two or three different ones")
    scaling = scaling_dims(outline)
    fields = {name: ("gamma", "p", "d") if name == "coupling" else (name,) for name in terms}
    along = {
        name: frozenset(dim for field_name in names for dim in outline.dims_of(field_name) if dim in scaling)
        for name, names in fields.items()
    }
    over = [dim for dim in scaling if any(dim in dims for dims in along.values())]
    values = [int(np.prod([outline.sizes[dim] for dim in dims])) if dims else 1 for dims in along.values()]
    # each variable has axes of its own, and the axes are as many as the terms
    apart = len(set(along.values())) == len(terms) <= len(over)
    if not apart or min(values) < 2 or sum(values) < 3 * len(terms) - 1:
        expected = "variables with axes of their own: two values of each or more, and three of one"
        problem = "the points do not determine a sum of powers"
        raise InputError(problem, key="terms", value=list(terms), expected=expected)
    return over


def _fitted_sum(
    deviations: xr.DataArray, prefactor: xr.DataArray, exponent: xr.DataArray, logarithms: xr.DataArray
) -> xr.DataArray:
    """Return the fitted Σ_t A_t x_t^e_t at all points of the deviations; NaN where the fit resolves no term."""
    total = (prefactor * xr.ufuncs.exp(exponent * logarithms)).sum("variable", min_count=1)
    total = total.broadcast_like(deviations.isel(seed=0, drop=True))
    terms = zip(PREFACTORS, EXPONENTS, logarithms["variable"].values.tolist(), strict=False)
    formula = " + ".join(f"{A}\\,{SYMBOLS[name]}^{{{x}}}" for A, x, name in terms)
    return labelled(total.transpose(*deviations.isel(seed=0, drop=True).dims), f"fit ${formula}$")


def _outline(ds: Outline, *, reference: str, until: float, terms: Sequence[str], **_: Any) -> Outline:
    """Return the structure of the result, before anything runs: exponents along `variable`, suprema and sums."""
    outline, names = deviations_outline(ds, reference, until)
    over = _fitted_dims(ds, terms)
    points = outline.dims_of("status")
    remaining = tuple(dim for dim in points if dim not in over)
    fits = {f"{name}_exponent": (*remaining, "variable") for name in names}
    fits |= {f"{name}_{kind}": points for name in names for kind in ("sup_deviation", "sum")}
    return outline.along("variable", list(terms)).with_variables(fits, over=" ".join(over))


ANALYSES.add(
    analysis_of(
        deviation_sum,
        "The deviation from a limit as a sum of powers of p and d, or of p and γ/(pd)",
        overlaps=True,
        outline=_outline,
    )
)
