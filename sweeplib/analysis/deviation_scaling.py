"""How the deviation from the ODE scales with γ/(pd), and with γ, d and p separately."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from sweeplib.analysis.analysis import ANALYSES, Analysis
from sweeplib.analysis.kit.differences import deviations_outline, differences
from sweeplib.analysis.kit.options import Confidence, LostPart, RandomSeed, Reference, Resamples, Until
from sweeplib.analysis.kit.problem_fields import field
from sweeplib.analysis.kit.sweep_axis import SWEEP
from sweeplib.engine.base.arrays import Array
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import Outline, outline_of
from sweeplib.errors import InputError
from sweeplib.networks.problem import PARAMETERS
from sweeplib.statistics.bootstrap import Resampling, log_means, resampling_of
from sweeplib.statistics.fits import line_fit
from sweeplib.statistics.labelled import labelled, with_bounds
from sweeplib.statistics.lost_runs import MOST_LOST

EXPECTED = {"coupling": 0.5, "gamma": 0.5, "d": -0.5, "p": -0.5}
QUANTITIES = tuple(EXPECTED)[1:]
Fit = Callable[[Array, Array], "PowerLawFit"]


class PowerLawFit(NamedTuple):
    """One fit: exponents (variables,) with their intervals, prefactor, χ²/n and relative scatter of the points."""

    exponent: Array
    low: Array
    high: Array
    prefactor: float = np.nan
    reduced_chi2: float = np.nan
    scatter: float = np.nan
    points: float = 0.0


FITTED = ("exponent", "exponent_low", "exponent_high", *PowerLawFit._fields[3:])
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
    fit = partial(power_law, resampling=resampling)
    result = {"exponent_theory": _expected_exponents()}
    for name, largest in deviations.largest().items():
        result |= _fits(name, ds, largest, over, fit)
    scaling = xr.Dataset(result)
    scaling["variable"] = labelled(scaling["variable"], "variable that the deviation scales with")
    return scaling.assign_attrs(reference=reference, confidence=confidence, over=" ".join(over))


def scaling_dims(ds: xr.Dataset | Outline) -> list[str]:
    """Return the dims along which γ, d or p vary and no other field does; InputError if there are none."""
    outline = outline_of(ds)
    varying = [dim for name in QUANTITIES for dim in outline.dims_of(name) if outline.sizes[dim] > 1]
    dims = [dim for dim in outline.axes if dim in varying and (dim in QUANTITIES or dim not in (*PARAMETERS, SWEEP))]
    if not dims:
        expected = f"an axis of {', '.join(QUANTITIES)} in `grid`, or of what they are derived from"
        raise InputError("nothing that the deviation scales with varies", expected=expected)
    return dims


def power_law(values: Array, logarithms: Array, resampling: Resampling) -> PowerLawFit:
    """Return the fit of Π x_v^e_v to the means of `values` (seed, point); `logarithms` (variable, point): log x_v."""
    unknown = np.full(len(logarithms), np.nan)
    points = log_means(values)
    finite = np.isfinite(points.logs)
    number = float(finite.sum())
    design = np.vstack([np.ones(len(finite)), logarithms]).T[finite]
    if number < 2 or np.linalg.matrix_rank(design) < design.shape[1]:
        return PowerLawFit(unknown, unknown, unknown, points=number)
    fit = line_fit(points.at(finite), design, resampling)
    if not fit.misfit.freedom > 0.0:
        return PowerLawFit(fit.best[1:], unknown, unknown, float(np.exp(fit.best[0])), points=number)
    low, high = fit.interval(resampling.confidence)[:, 1:]
    return PowerLawFit(fit.best[1:], low, high, float(np.exp(fit.best[0])), *fit.misfit[:2], number)


def _fits(name: str, ds: xr.Dataset, largest: xr.DataArray, over: list[str], fit: Fit) -> dict[str, xr.DataArray]:
    logs = {key: xr.ufuncs.log(field(ds, key).astype(float)).reset_coords(drop=True) for key in QUANTITIES}
    varying = [key for key in QUANTITIES if set(logs[key].dims) & set(over)]
    coupling = {"coupling": logs["gamma"] - logs["p"] - logs["d"]}
    sets = [coupling, {key: logs[key] for key in varying}]
    fits = [_labelled_fits(largest, regressors, over, fit) for regressors in sets]
    fitted = xr.concat(fits, "variable", combine_attrs="override").reindex(variable=list(EXPECTED))
    parts = [fitted[key_of_fit] for key_of_fit in FITTED]
    return fit_variables(name, parts, largest.attrs["long_name"], around="its power", prefactor="C")


def fit_variables(
    name: str, parts: Sequence[xr.DataArray], quantity: str, *, around: str, prefactor: str, term: str = ""
) -> dict[str, xr.DataArray]:
    """Return the seven parts of fits to a quantity, labelled, as variables whose names begin with `name`."""
    *exponent, factor, reduced_chi2, scatter, points = parts
    chi2 = f"chi-squared over degrees of freedom of the fit to the {quantity}"
    spread = f"relative scatter of the {quantity} around {around}, besides the seeds'"
    return with_bounds(f"{name}_exponent", exponent, f"exponent of {term}the {quantity}", "x") | {
        f"{name}_prefactor": labelled(factor, f"prefactor of {term}the {quantity}", prefactor),
        f"{name}_reduced_chi2": labelled(reduced_chi2, chi2, r"\chi^2/n"),
        f"{name}_scatter": labelled(scatter, spread, r"\tau"),
        f"{name}_points": labelled(points, "points of the fit"),
    }


def _labelled_fits(largest: xr.DataArray, regressors: dict[str, xr.DataArray], over: list[str], fit: Fit) -> xr.Dataset:
    names = xr.DataArray(list(regressors), dims="variable")
    logs = xr.concat(xr.broadcast(*regressors.values()), dim="variable").assign_coords(variable=names)
    fits = fits_over(largest, logs, over, fit, vectors=3)
    parts = dict(zip(FITTED, fits, strict=True))
    return xr.Dataset(parts).assign_coords(variable=names).broadcast_like(names)


def fits_over(
    largest: xr.DataArray, logarithms: xr.DataArray, over: list[str], fit: Callable[..., Any], *, vectors: int
) -> tuple[xr.DataArray, ...]:
    """Return the seven parts of `fit` to the points along `over`, of which the first `vectors` are along `variable`."""
    logarithms = logarithms.expand_dims({dim: largest[dim] for dim in over if dim not in logarithms.dims})
    fits: tuple[xr.DataArray, ...] = xr.apply_ufunc(
        fit,
        largest.reset_coords(drop=True).stack(place=over, create_index=False),
        logarithms.reset_coords(drop=True).stack(place=over, create_index=False),
        input_core_dims=[["seed", "place"], ["variable", "place"]],
        output_core_dims=[["variable"]] * vectors + [[]] * (7 - vectors),
        vectorize=True,
        output_dtypes=[float] * 7,
    )
    return fits


def _expected_exponents() -> xr.DataArray:
    values = xr.DataArray(list(EXPECTED.values()), {"variable": list(EXPECTED)}, "variable")
    return labelled(values, "exponent of the theoretical bound")


def _outline(ds: Outline, *, reference: str, until: float, **_: Any) -> Outline:
    outline, names = deviations_outline(ds, reference, until)
    over = scaling_dims(ds)
    remaining = tuple(dim for dim in outline.dims_of("status") if dim not in over)
    fits = {f"{name}_exponent": (*remaining, "variable") for name in names}
    return outline.without(*over).along("variable", list(EXPECTED)).with_variables(fits, over=" ".join(over))


ANALYSES.add(
    Analysis(
        "deviation_scaling",
        deviation_scaling,
        "Scaling of the deviation from the ODE with γ/(pd)",
        overlaps=True,
        outline=_outline,
    ),
)
