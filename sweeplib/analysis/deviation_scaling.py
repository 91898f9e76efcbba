"""How the deviation from the ODE scales with γ/(pd), and with γ, d and p separately."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from sweeplib.analysis.analysis import ANALYSES, analysis_of
from sweeplib.analysis.kit.differences import comparison_attrs, deviations_outline, differences
from sweeplib.analysis.kit.options import Confidence, LostPart, RandomSeed, Reference, Resamples, Until
from sweeplib.analysis.kit.problem_fields import field
from sweeplib.analysis.kit.sweep_axis import SWEEP
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import Outline, outline_of
from sweeplib.errors import InputError
from sweeplib.networks.problem import PARAMETERS
from sweeplib.statistics.bootstrap import Resampling, resampling_of
from sweeplib.statistics.fits import PowerLaw, power_law
from sweeplib.statistics.labelled import labelled, with_bounds
from sweeplib.statistics.laws import law_along
from sweeplib.statistics.lost_runs import MOST_LOST

EXPECTED = {"coupling": 0.5, "gamma": 0.5, "d": -0.5, "p": -0.5}
"""The exponents of the theoretical bound, by variable; `coupling` is γ/(pd)."""
QUANTITIES = tuple(EXPECTED)[1:]
"""The variables that are fields of a problem: all but the coupling."""
FITTED = ("exponent", "exponent_low", "exponent_high", *PowerLaw._fields[3:])
"""The parts of a fit, as the ends of the names of variables."""


def deviation_scaling(
    ds: xr.Dataset,
    *,
    reference: Reference = "ode",
    until: Until = np.inf,
    max_lost: LostPart = MOST_LOST,
    confidence: Confidence = 0.95,
    resamples: Resamples = 2000,
    random_seed: RandomSeed = 0,
) -> xr.Dataset:
    """Return exponents of the mean largest deviation from `reference`, per observable, dynamics and remaining axis.

    Entries along `variable`: "coupling" is a fit of C (γ/(pd))^x to all points; gamma, d and p are the exponents of one
    fit of C γ^x d^y p^z, with those variables that vary, NaN where they do not vary independently of each other. All
    fits are least squares of logarithms, weighted by the errors, with intervals by a wild bootstrap over the seeds
    that resamples all points jointly, of points with three pairs or more; no interval where the exponents are as many
    as the points determine. exponent_theory: the exponents of the bound
    ‖Ω^ν − Ω(νγ/(pd))‖∞ ≤ e^{Ct} √(γ/(pd)) (arXiv 2302.05882).
    Where the points deviate from the power law by more than their errors, x_reduced_chi2 (χ² over the degrees of
    freedom n) is above 1, x_scatter is the relative scatter that explains the excess, and the interval includes that
    scatter: it is wider by √(χ²/n) and by Student's t of n (`fits`). The interval is valid for points that scatter at
    random. It is not for a systematic bend, as at learning rates so large that SGD follows other dynamics.
    The attribute `over` lists the axes along which the points lie.
    """
    deviations = differences(ds, reference, until, max_lost)
    over = scaling_dims(ds)
    resampling = resampling_of(ds.sizes["seed"], resamples, random_seed, confidence)
    result = {"exponent_theory": expected_exponents(list(EXPECTED))}
    for name, largest in deviations.largest().items():
        result |= _fits(name, ds, largest, over, resampling)
    scaling = xr.Dataset(result)
    scaling["variable"] = labelled(scaling["variable"], "variable that the deviation scales with")
    options = comparison_attrs(ds, reference, until, max_lost)
    return scaling.assign_attrs(options | {"confidence": confidence, "over": " ".join(over)})


def scaling_dims(ds: xr.Dataset | Outline) -> list[str]:
    """Return the dims along which γ, d or p vary and no other field of the problem is an axis; InputError for none."""
    outline = outline_of(ds)
    varying = [dim for name in QUANTITIES for dim in outline.dims_of(name) if outline.sizes[dim] > 1]
    dims = [dim for dim in outline.axes if dim in varying and (dim in QUANTITIES or dim not in (*PARAMETERS, SWEEP))]
    if not dims:
        expected = f"an axis of {', '.join(QUANTITIES)} in `grid`, or of what they are derived from"
        raise InputError("nothing that the deviation scales with varies", expected=expected)
    return dims


def _fits(
    name: str, ds: xr.Dataset, largest: xr.DataArray, over: list[str], resampling: Resampling
) -> dict[str, xr.DataArray]:
    """Return the fits to the `largest` deviations of the observable `name`, along `variable`, as labelled variables.

    One fit is to the coupling alone, a second one to those of γ, d and p that vary along the axes `over`; entries of
    the others are NaN. largest : of each pair, over `seed` and the axes of `ds`.
    """
    logs = {key: xr.ufuncs.log(field(ds, key).astype(float)).reset_coords(drop=True) for key in QUANTITIES}
    varying = [key for key in QUANTITIES if set(logs[key].dims) & set(over)]
    coupling = {"coupling": logs["gamma"] - logs["p"] - logs["d"]}
    fits = []
    for regressors in (coupling, {key: logs[key] for key in varying}):
        names = xr.DataArray(list(regressors), dims="variable")
        parts = fits_over(largest, along_variables(regressors), over, power_law, resampling)
        fitted = xr.Dataset(dict(zip(FITTED, parts, strict=True)))
        fits.append(fitted.assign_coords(variable=names).broadcast_like(names))
    # with an entry, NaN, of each variable that does not vary
    fitted = xr.concat(fits, "variable", combine_attrs="override").reindex(variable=list(EXPECTED))
    ends = [fitted[end] for end in FITTED]
    return fit_variables(name, ends, largest.attrs["long_name"], around="its power", prefactor="C")


def fit_variables(
    name: str, parts: Sequence[xr.DataArray], quantity: str, *, around: str, prefactor: str, term: str = ""
) -> dict[str, xr.DataArray]:
    """Return the seven parts (FITTED) of fits to a quantity, labelled, as variables whose names begin with `name`.

    quantity : its long name. around : what points scatter around, in words. prefactor : its symbol. term : "a term of "
    if the fit is a sum.
    """
    *exponent, factor, reduced_chi2, scatter, points = parts
    chi2 = f"chi-squared over degrees of freedom of the fit to the {quantity}"
    spread = f"relative scatter of the {quantity} around {around}, besides the seeds'"
    return with_bounds(f"{name}_exponent", exponent, f"exponent of {term}the {quantity}", "x") | {
        f"{name}_prefactor": labelled(factor, f"prefactor of {term}the {quantity}", prefactor),
        f"{name}_reduced_chi2": labelled(reduced_chi2, chi2, r"\chi^2/n"),
        f"{name}_scatter": labelled(scatter, spread, r"\tau"),
        f"{name}_points": labelled(points, "points of the fit"),
    }


def along_variables(arrays: Mapping[str, xr.DataArray]) -> xr.DataArray:
    """Return arrays, by the name of a variable each, as one array along the dimension `variable`."""
    return xr.concat(xr.broadcast(*arrays.values()), "variable").assign_coords(variable=list(arrays))


def fits_over(
    largest: xr.DataArray, logarithms: xr.DataArray, over: list[str], law: Callable[..., Any], resampling: Resampling
) -> tuple[xr.DataArray, ...]:
    """Return the seven parts (FITTED) of the fit of a law to all points along the axes `over` together.

    largest : the values, over `seed` too. logarithms : those of the variables, along `variable`. law : `power_law` or
    `sum_of_powers`.
    """
    logarithms = logarithms.expand_dims({dim: largest[dim] for dim in over if dim not in logarithms.dims})
    values, x = (array.reset_coords(drop=True).stack(place=over, create_index=False) for array in (largest, logarithms))
    return law_along("place", values, x, law, "variable", resampling=resampling)


def expected_exponents(names: Sequence[str]) -> xr.DataArray:
    """Return the exponents of the theoretical bound for the variables `names`, along `variable`."""
    values = xr.DataArray([EXPECTED[name] for name in names], {"variable": list(names)}, "variable")
    return labelled(values, "exponent of the theoretical bound")


def _outline(ds: Outline, **options: Any) -> Outline:
    """Return the structure of the result, before anything runs: exponents along `variable` and the remaining axes."""
    outline, names = deviations_outline(ds, options["reference"], options["until"])
    over = scaling_dims(ds)
    remaining = tuple(dim for dim in outline.dims_of("status") if dim not in over)
    fits = {f"{name}_exponent": (*remaining, "variable") for name in names}
    return outline.without(*over).along("variable", list(EXPECTED)).with_variables(fits, over=" ".join(over), **options)


ANALYSES.add(
    analysis_of(
        deviation_scaling, "Scaling of the deviation from a reference with γ/(pd)", overlaps=True, outline=_outline
    )
)
