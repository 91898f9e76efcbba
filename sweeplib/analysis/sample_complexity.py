"""The number of samples needed to leave the start, as a function of the dimension."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import Field

from sweeplib.analysis.analysis import ANALYSES, EXITS_ONLY, Analysis
from sweeplib.analysis.kit.information import expected_laws, information_exponents, largest_exponent
from sweeplib.analysis.kit.needs import need_axis, passages_outline
from sweeplib.analysis.kit.options import CensoredPart, Confidence, LostPart, Part, RandomSeed, Resamples
from sweeplib.analysis.kit.passages import passages
from sweeplib.engine.base.arrays import Array
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import Outline
from sweeplib.statistics.bootstrap import Resampling, log_means, resampling_of
from sweeplib.statistics.fits import FEWEST_POINTS, power_of
from sweeplib.statistics.growth_laws import best_law, law_fit, laws
from sweeplib.statistics.labelled import labelled, with_bounds
from sweeplib.statistics.lost_runs import MOST_LOST
from sweeplib.statistics.seed_means import with_error


class Growth(NamedTuple):
    """The growth n(d) in one cell; arrays over the laws."""

    exponent: float
    low: float
    high: float
    reduced_chi2: float
    law: float
    offset: Array
    amplitude: Array
    chi2: Array


Deviating = Annotated[
    Part,
    Field(description="relative deviation of each point from the fitted law that is allowed in addition to its error."),
]


def sample_complexity(
    ds: xr.Dataset,
    *,
    confidence: Confidence = 0.95,
    resamples: Resamples = 2000,
    random_seed: RandomSeed = 0,
    max_censored: CensoredPart = 0.02,
    max_lost: LostPart = MOST_LOST,
    tolerance: Deviating = 0.02,
) -> xr.Dataset:
    """Return the growth of the mean exit steps n with d, per dynamics, threshold and point of the other axes.

    steps_over_d, steps_over_d_error: n/d and its standard error. NaN, and left out of all fits, where more than
    `max_censored` of the runs did not exit before their end or time limit (seeds_censored), or more than `max_lost`
    failed or were killed (seeds_lost).
    exponent (_low, _high): x of n ∝ d^x, weighted least squares of logarithms, at dimensions with three runs or more.
    The interval is from a wild bootstrap over the seeds; it is wider by √(χ²/n) and Student's t where the points
    scatter more than their errors (`fits`; reduced_chi2 is χ²/n). Two dimensions fit any power, without an interval.
    law_offset, law_amplitude, law_chi2, along `law`, an information exponent κ: fits of n/d = offset + amplitude g(d),
    where g is 0 (κ = 1), log d (κ = 2) or d^(κ−2) (κ ≥ 3). `tolerance` · n/d is added in quadrature to the errors of
    n/d, for the terms that the laws neglect. best_law: the law of least χ² + 2 · (number of parameters), for three
    dimensions or more (`growth_laws`).
    The coordinate information_exponent is that of student and teacher together; expected_law is the same, where theory
    predicts its law for these starts, widths and learning rates (arXiv 2003.10409; `information`).
    """
    sample = passages(ds, "steps", max_lost)
    ratio = sample.of_most(max_censored) / ds["d"]
    resampling = resampling_of(ds.sizes["seed"], resamples, random_seed, confidence)
    exponent = information_exponents(ds)
    tried = laws(float(exponent.max()))

    growth_at = partial(growth_of, resampling=resampling, tolerance=tolerance, tried=tried)
    parts = xr.apply_ufunc(
        growth_at, ratio, ds["d"].astype(float), input_core_dims=[["seed", "d"], ["d"]],
        output_core_dims=[[]] * 5 + [["law"]] * 3, vectorize=True, output_dtypes=[float] * 8,
    )  # fmt: skip
    symbol = r"\langle\nu_{\mathrm{ext}}\rangle/d"
    error_symbol = rf"\mathrm{{se}}\,{symbol}"
    variables = with_error("steps_over_d", ratio, "mean exit steps per dimension", symbol, error_symbol=error_symbol)
    variables |= sample.counts(ds) | _fit_variables(*parts) | {"expected_law": expected_laws(ds)}
    law = labelled(xr.DataArray(list(tried), dims="law"), "law of an information exponent")
    coords = {"law": law, "information_exponent": exponent}
    return xr.Dataset(variables).assign_coords(coords).assign_attrs(confidence=confidence, max_lost=max_lost)


def growth_of(ratio: Array, d: Array, resampling: Resampling, tolerance: float, tried: Sequence[int]) -> Growth:
    """Return the growth of n/d, `ratio` (seed, d) with NaN for runs left out, for the laws `tried`."""
    points = log_means(ratio)
    finite = np.isfinite(points.logs)
    if finite.sum() < 2:
        unknown = np.full(len(tried), np.nan)
        return Growth(np.nan, np.nan, np.nan, np.nan, np.nan, unknown, unknown, unknown)
    power = power_of(ratio, d, resampling)
    points, d = points.at(finite), d[finite]
    mean = np.exp(points.logs)
    error = mean * np.sqrt(np.diag(points.covariance) + tolerance**2)
    fits = {law: law_fit(law, d, mean, error) for law in tried}
    best = best_law(fits, len(d))
    low, high, chi2 = 1.0 + power.low, 1.0 + power.high, power.reduced_chi2
    return Growth(1.0 + power.exponent, low, high, chi2, best, *np.array(list(fits.values())).T)


def _fit_variables(*parts: xr.DataArray) -> dict[str, xr.DataArray]:
    labels = {
        "reduced_chi2": ("chi-squared over degrees of freedom of the fitted power", r"\chi^2/n"),
        "best_law": ("information exponent whose law fits best",),
        "law_offset": ("offset of the law",),
        "law_amplitude": ("amplitude of the law",),
        "law_chi2": ("chi-squared of the law", r"\chi^2"),
    }
    variables = with_bounds("exponent", parts[:3], "exponent of the mean exit steps", "x")
    variables |= {name: labelled(array, *label) for (name, label), array in zip(labels.items(), parts[3:], strict=True)}
    variables["exponent"].attrs["needs"] = f"{FEWEST_POINTS} dimensions at which three runs or more exited"
    return variables


def _outline(ds: Outline, **_: Any) -> Outline:
    need_axis(ds, "d")
    outline = passages_outline(ds).along("law", laws(largest_exponent(ds)))
    along_axes = outline.dims_of("exit_steps")
    exponent = tuple(dim for dim in along_axes if dim != "d")
    return outline.with_variables({"steps_over_d": along_axes, "exponent": exponent})


ANALYSES.add(
    Analysis(
        "sample_complexity",
        sample_complexity,
        "Growth of the mean exit steps with the input dimension",
        outline=_outline,
        ends=EXITS_ONLY,
        headline="exponent",
        quantities={"exit_steps_exponent": "exponent"},
    ),
)
