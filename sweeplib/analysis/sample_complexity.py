"""How many samples it takes to leave the start, as the dimension grows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sweeplib.analysis.analysis import ANALYSES, Analysis
from sweeplib.analysis.bootstrap import interval_levels, resampled_counts, resampled_means
from sweeplib.analysis.cells import field, labelled
from sweeplib.analysis.growth_laws import LAWS, best_law, law_fit
from sweeplib.analysis.needs import need_axis, passages_outline
from sweeplib.analysis.options import Confidence, Part, RandomSeed, Resamples
from sweeplib.analysis.passages import passages
from sweeplib.errors import SweeplibError

if TYPE_CHECKING:
    import xarray as xr

    from sweeplib.storage.outline import Outline

Array = NDArray[np.float64]


class Growth(NamedTuple):
    """What is known of n(d) in one cell; arrays over the laws."""

    exponent: float
    low: float
    high: float
    law: float
    offset: Array
    amplitude: Array
    chi2: Array


def sample_complexity(
    ds: xr.Dataset,
    *,
    confidence: Confidence = 0.95,
    resamples: Resamples = 2000,
    random_seed: RandomSeed = 0,
    max_censored: Part = 0.02,
    tolerance: Part = 0.02,
) -> xr.Dataset:
    """Growth of the mean exit steps n with d, per dynamics, threshold and point of the other axes.

    steps_over_d, _error: n/d and its standard error, NaN where more than `max_censored` of the runs did not exit.
    exponent (_low, _high): of n ∝ d^x, weighted least squares of logarithms; interval by bootstrap over the seeds.
    law_offset, law_amplitude, law_chi2, along `law`, an information exponent: fits of n/d = offset + amplitude g(d), g
    being 0, log d or d; the errors of n/d have `tolerance` · n/d added in quadrature, for what the laws neglect.
    best_law: the law of least χ² + 2 · parameters, from three dimensions on.
    The coordinate information_exponent is the teacher's; its law is what theory predicts (arXiv 2003.10409), for
    exponent 3 at learning rates γ ∝ 1/√d.
    """
    import xarray as xr

    sample = passages(ds, "steps")
    kept = sample.censored().sum("seed") <= max_censored * sample.used.sum("seed")
    ratio = sample.restricted().where(kept) / ds["d"]
    draws = resampled_counts(ds.sizes["seed"], resamples, random_seed)

    def of_cell(cell: Array, d: Array) -> Growth:
        return growth_of(cell, d, draws, confidence, tolerance)

    parts = xr.apply_ufunc(
        of_cell, ratio, ds["d"].astype(float), input_core_dims=[["seed", "d"], ["d"]],
        output_core_dims=[[]] * 4 + [["law"]] * 3, vectorize=True, output_dtypes=[float] * 7,
    )  # fmt: skip
    count = ratio.count("seed")
    error = ratio.std("seed", ddof=1) / np.sqrt(count.where(count > 1))
    result = xr.Dataset(_measured(ratio.mean("seed"), error) | _fitted(*parts))
    result = result.assign_coords(law=labelled(xr.DataArray(list(LAWS), dims="law"), "law of an information exponent"))
    return result.assign_coords(information_exponent=teacher_exponent(ds)).assign_attrs(confidence=confidence)


def growth_of(ratio: Array, d: Array, draws: Array, confidence: float, tolerance: float) -> Growth:
    """The growth of n/d, `ratio` (seed, d) with NaN for runs left out."""
    counts = np.isfinite(ratio).sum(axis=0)
    kept = counts > 1
    ratio, d, counts = ratio[:, kept], d[kept], counts[kept]
    if len(d) < 2:
        unknown = np.full(len(LAWS), np.nan)
        return Growth(np.nan, np.nan, np.nan, np.nan, unknown, unknown, unknown)
    mean = resampled_means(np.ones((1, len(ratio))), ratio)[0]
    error = np.hypot(np.nanstd(ratio, axis=0, ddof=1) / np.sqrt(counts), tolerance * mean)
    exponent, low, high = _exponent(ratio, d, mean, error, draws, interval_levels(confidence, float(counts.min())))
    fits = {law: law_fit(law, d, mean, error) for law in LAWS}
    return Growth(exponent, low, high, best_law(fits), *np.array(list(fits.values())).T)


def _exponent(ratio: Array, d: Array, mean: Array, error: Array, draws: Array, levels: Array) -> tuple[float, ...]:
    """1 + the slope of log n/d against log d, and its interval."""
    weights = mean / error
    design = np.vander(np.log(d), 2) * weights[:, None]
    slope = (np.linalg.pinv(design) * weights)[0]
    spread = np.log(resampled_means(draws, ratio)) @ slope
    low, high = np.quantile(spread[np.isfinite(spread)], levels)
    return 1.0 + float(slope @ np.log(mean)), 1.0 + float(low), 1.0 + float(high)


def teacher_exponent(ds: xr.Dataset) -> xr.DataArray:
    """The information exponent of each teacher; NaN for one of an unknown activation."""
    import xarray as xr

    student = field(ds, "activation")
    teacher = field(ds, "teacher_activation", "")
    named = student.where(teacher.isin(["", "None"]), teacher)
    exponent = xr.apply_ufunc(_information_exponent, named, vectorize=True, output_dtypes=[float])
    return labelled(exponent, "information exponent of the teacher", r"\kappa")


def _information_exponent(name: str) -> float:
    from sweeplib.maths.activations import activation

    try:
        return float(activation(str(name)).information_exponent)
    except SweeplibError:
        return np.nan


def _measured(mean: xr.DataArray, error: xr.DataArray) -> dict[str, xr.DataArray]:
    name, symbol = "mean exit steps per dimension", r"\langle\nu_{\mathrm{ext}}\rangle/d"
    return {
        "steps_over_d": labelled(mean, name, symbol),
        "steps_over_d_error": labelled(error, f"standard error of the {name}", rf"\mathrm{{se}}\,{symbol}"),
    }


def _fitted(*parts: xr.DataArray) -> dict[str, xr.DataArray]:
    labels = {
        "exponent": ("exponent of the mean exit steps", "x"),
        "exponent_low": ("exponent of the mean exit steps, lower bound", "x"),
        "exponent_high": ("exponent of the mean exit steps, upper bound", "x"),
        "best_law": ("information exponent whose law fits best",),
        "law_offset": ("offset of the law",),
        "law_amplitude": ("amplitude of the law",),
        "law_chi2": ("chi-squared of the law", r"\chi^2"),
    }
    return {name: labelled(part, *label) for (name, label), part in zip(labels.items(), parts, strict=True)}


def _outline(ds: Outline, **_: Any) -> Outline:
    need_axis(ds, "d")
    return passages_outline(ds).along("law", LAWS)


ANALYSES.register(
    "sample_complexity",
    Analysis(
        "sample_complexity",
        sample_complexity,
        "Growth of the mean exit steps with the input dimension",
        outline=_outline,
    ),
)
