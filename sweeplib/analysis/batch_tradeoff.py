"""Steps and samples needed to leave the start, as functions of the batch size."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from pydantic import Field

from sweeplib.analysis.analysis import ANALYSES, EXITS_ONLY, Analysis
from sweeplib.analysis.kit.information import information_exponents
from sweeplib.analysis.kit.needs import need_axis, passages_outline
from sweeplib.analysis.kit.options import CensoredPart, Confidence, LostPart, Positive, RandomSeed, Resamples
from sweeplib.analysis.kit.passages import passages
from sweeplib.analysis.kit.problem_fields import field
from sweeplib.engine.base.arrays import Array
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.storage.dataset.outline import Outline
from sweeplib.statistics.bootstrap import resampling_of
from sweeplib.statistics.fits import Power, power_of
from sweeplib.statistics.labelled import labelled, with_bounds
from sweeplib.statistics.lost_runs import MOST_LOST
from sweeplib.statistics.seed_means import with_error

LargestBatch = Annotated[Positive, Field(description="the largest batch size of the fit.")]


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
    number of fresh samples, where each batch is used r times. NaN where more than `max_censored` of the runs did not
    exit before their end or time limit (seeds_censored), or more than `max_lost` failed or were killed (seeds_lost).
    exponent (_low, _high): x of ν ∝ n_b^x for batches up to `largest_batch`, weighted least squares of logarithms.
    That of the samples is x + 1. The interval is from a wild bootstrap over the seeds, wider by √(χ²/n) and
    Student's t where the points scatter more than their errors (`fits`; reduced_chi2 is χ²/n). prefactor: ν at n_b = 1
    of the fit. NaN for fewer than two batch sizes with three exits; no interval for two, which fit any power.
    The coordinate information_exponent is that of student and teacher together.
    """
    sample = passages(ds, "steps", max_lost)
    steps = sample.of_most(max_censored)
    resampling = resampling_of(ds.sizes["seed"], resamples, random_seed, confidence)

    def power(cell: Array, sizes: Array) -> Power:
        return power_of(cell[:, sizes <= largest_batch], sizes[sizes <= largest_batch], resampling)

    parts = xr.apply_ufunc(
        power, steps, ds["batch_size"].astype(float), input_core_dims=[["seed", "batch_size"], ["batch_size"]],
        output_core_dims=[[]] * 5, vectorize=True, output_dtypes=[float] * 5,
    )  # fmt: skip
    fresh = ds["batch_size"] / field(ds, "repeats", 1)
    nu, n = r"\nu_{\mathrm{ext}}", r"n_{\mathrm{ext}}"
    name, error = rf"\langle {nu}\rangle", rf"\mathrm{{se}}\,{nu}"
    variables = with_error("steps", steps, "mean exit steps", name, error_symbol=error)
    name, error = rf"\langle {n}\rangle", rf"\mathrm{{se}}\,{n}"
    variables |= with_error("samples", steps * fresh, "mean samples until the exit", name, error_symbol=error)
    variables |= _fit(*parts) | sample.counts(ds)
    exponent = information_exponents(ds)
    attrs = {"confidence": confidence, "largest_batch": largest_batch, "max_lost": max_lost}
    return xr.Dataset(variables).assign_coords(information_exponent=exponent).assign_attrs(attrs)


def _fit(*parts: xr.DataArray) -> dict[str, xr.DataArray]:
    *exponent, reduced_chi2, prefactor = parts
    return with_bounds("exponent", exponent, "exponent of the steps in the batch size", "x") | {
        "reduced_chi2": labelled(reduced_chi2, "chi-squared over degrees of freedom of the fitted power", r"\chi^2/n"),
        "prefactor": labelled(prefactor, "steps of the fitted power at one sample a step"),
    }


def _outline(ds: Outline, **_: Any) -> Outline:
    need_axis(ds, "batch_size")
    return passages_outline(ds)


ANALYSES.add(
    Analysis(
        "batch_tradeoff",
        batch_tradeoff,
        "Steps and samples to the exit against the batch size",
        outline=_outline,
        ends=EXITS_ONLY,
    ),
)
