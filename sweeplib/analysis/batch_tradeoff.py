"""Steps and samples needed to leave the start, as functions of the batch size."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from pydantic import Field

from sweeplib.analysis.analysis import ANALYSES, EXITS_ONLY, analysis_of
from sweeplib.analysis.kit.information import information_exponents
from sweeplib.analysis.kit.options import CensoredPart, Confidence, LostPart, Positive, RandomSeed, Resamples
from sweeplib.analysis.kit.passages import passages
from sweeplib.analysis.kit.seed_values import samples_of_a_step
from sweeplib.analysis.kit.variables import need_axis, passages_outline
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import Outline
from sweeplib.statistics.bootstrap import resampling_of
from sweeplib.statistics.fits import MISFIT, power_of
from sweeplib.statistics.labelled import labelled, with_bounds
from sweeplib.statistics.laws import law_along
from sweeplib.statistics.lost_runs import MOST_LOST
from sweeplib.statistics.seed_means import with_error

LargestBatch = Annotated[Positive, Field(description="the largest batch size of the fit.")]
STEPS, SAMPLES = r"\nu_{\mathrm{ext}}", r"n_{\mathrm{ext}}"
"""The symbols, in LaTeX, of the steps and of the samples to the exit."""


def batch_tradeoff(
    ds: xr.Dataset,
    *,
    confidence: Confidence = 0.95,
    resamples: Resamples = 2000,
    random_seed: RandomSeed = 0,
    largest_batch: LargestBatch = np.inf,
    max_censored: CensoredPart = 0.02,
    max_lost: LostPart = MOST_LOST,
) -> xr.Dataset:
    """Return mean exit steps and samples against the batch size n_b, per dynamics, threshold and point.

    steps, steps_error: mean exit steps ν and its standard error. samples, samples_error: the same of ν n_b/r, the
    number of samples drawn, where each batch is used r times; in epochs the last batch of a pass may be smaller.
    NaN where more than `max_censored` of the runs did not
    exit before their end or time limit (seeds_censored), or more than `max_lost` failed or were killed (seeds_lost).
    exponent (_low, _high): x of ν ∝ n_b^x for batches up to `largest_batch`, weighted least squares of logarithms.
    That of the samples is x + 1. The interval is from a wild bootstrap over the seeds, wider by √(χ²/n) and
    Student's t where the points scatter more than their errors (`fits`; reduced_chi2 is χ²/n). prefactor: ν at n_b = 1
    of the fit. NaN for fewer than two batch sizes with three exits; no interval for two, which fit any power.
    The coordinate information_exponent is that of student and teacher together.
    """
    sample, size = passages(ds, "steps", max_lost), ds["batch_size"]
    steps = sample.of_most(max_censored)
    resampling, places = resampling_of(ds.sizes["seed"], resamples, random_seed, confidence), size.astype(float)
    fit = law_along("batch_size", steps, places, power_of, resampling=resampling, largest=largest_batch)
    *exponent, reduced_chi2, prefactor = fit
    variables = _means("steps", steps, "mean exit steps", STEPS)
    variables |= _means("samples", steps * samples_of_a_step(ds), "mean samples until the exit", SAMPLES)
    variables |= with_bounds("exponent", exponent, "exponent of the steps in the batch size", "x")
    variables["reduced_chi2"] = labelled(reduced_chi2, *MISFIT)
    variables["prefactor"] = labelled(prefactor, "steps of the fitted power at one sample a step")
    largest = min(largest_batch, float(size.max()))
    attrs = {"confidence": confidence, "largest_batch": largest, "max_lost": max_lost}
    coords = {"information_exponent": information_exponents(ds)}
    return xr.Dataset(variables | sample.counts(ds)).assign_coords(coords).assign_attrs(attrs)


def _means(name: str, values: xr.DataArray, title: str, symbol: str) -> dict[str, xr.DataArray]:
    """Return the mean of the values over `seed` and its standard error, labelled: NAME and NAME_error."""
    return with_error(name, values, title, rf"\langle {symbol}\rangle", error_symbol=rf"\mathrm{{se}}\,{symbol}")


def _outline(ds: Outline, **_: Any) -> Outline:
    """Return the structure of the result, before anything runs: means by batch size, one exponent for all.

    InputError without an axis of batch sizes.
    """
    need_axis(ds, "batch_size")
    outline = passages_outline(ds, "steps", "samples")
    return outline.with_variables({"exponent": tuple(dim for dim in outline.dims_of("steps") if dim != "batch_size")})


DOC = "Steps and samples to the exit against the batch size"
ANALYSES.add(analysis_of(batch_tradeoff, DOC, outline=_outline, ends=EXITS_ONLY))
