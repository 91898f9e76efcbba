"""The learning rate that minimises the mean number of steps to exit, with a bootstrap interval, beside theory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sweeplib.analysis.analysis import ANALYSES, Analysis
from sweeplib.analysis.bootstrap import interval_levels, resampled_counts, resampled_means
from sweeplib.analysis.cells import field, labelled
from sweeplib.analysis.needs import passages_outline
from sweeplib.analysis.options import Confidence, Part, RandomSeed, Resamples
from sweeplib.analysis.passages import passages
from sweeplib.analysis.phase_retrieval import theory_applies
from sweeplib.analysis.scan import scan_dim
from sweeplib.analysis.speed_fit import FEWEST, fastest, least_steps, local_weights
from sweeplib.theory import noise_corrected_optimal_learning_rate
from sweeplib.theory import optimal_learning_rate as theory_optimum

if TYPE_CHECKING:
    import xarray as xr

    from sweeplib.storage.outline import Outline

Array = NDArray[np.float64]


class Optimum(NamedTuple):
    """One optimum with its interval."""

    gamma: float = np.nan
    low: float = np.nan
    high: float = np.nan
    steps: float = np.nan
    at_edge: bool = False
    gammas_used: int = 0


def scanned(ds: xr.Dataset, max_censored: float) -> tuple[xr.DataArray, xr.DataArray]:
    """The steps to the exit of each run, NaN where more than `max_censored` of the seeds have none, and their γ."""
    sample = passages(ds, "steps")
    steps = sample.restricted().where(sample.censored().sum("seed") <= max_censored * sample.used.sum("seed"))
    return steps, field(ds, "gamma").astype(float).broadcast_like(ds["status"].isel(seed=0, drop=True))


class Minima(NamedTuple):
    """γ of least mean steps, and these, (1 + resamples,): of the sample, then of each resample, NaN where unknown.

    `ends` of the learning rates that count, fewest `seeds` at any of them.
    """

    gamma: Array
    steps: Array
    ends: Array
    seeds: float
    gammas_used: int


def optimal_learning_rate(
    ds: xr.Dataset,
    *,
    confidence: Confidence = 0.95,
    resamples: Resamples = 2000,
    random_seed: RandomSeed = 0,
    max_censored: Part = 0.02,
    along: str | None = None,
) -> xr.Dataset:
    """γ of least mean exit steps per dynamics, threshold and point of the other axes, and what theory says of it.

    gamma_opt is found by the fit of `speed_fit`; its interval by bootstrap over the seeds, resampled jointly for all
    learning rates (so that it holds whether or not the runs were paired), percentiles widened for small samples as
    Student's t. exit_steps_min: the fitted mean exit steps there.
    A γ at which more than `max_censored` of the runs did not exit is left out, as its restricted mean is too short;
    with fewer than 5 left the optimum is NaN. at_edge: the optimum or an end of its interval is at the end of the
    learning rates used, so that the true one may lie beyond.
    gamma_opt_theory: the optimum of annealed and of quenched theory alike; gamma_opt_noise_corrected: with the O(1)
    shift of the exit time by the noise of SGD, which the ODE does not have. NaN where the theory does not apply.
    """
    import xarray as xr

    dim = scan_dim(ds, along)
    steps, gamma = scanned(ds, max_censored)
    draws = resampled_counts(ds.sizes["seed"], resamples, random_seed)

    def of_cell(cell: Array, gammas: Array) -> Optimum:
        return optimum(cell, gammas, draws, confidence)

    parts = xr.apply_ufunc(
        of_cell, steps, gamma, input_core_dims=[["seed", dim], [dim]], output_core_dims=[()] * len(Optimum._fields),
        vectorize=True, output_dtypes=[float] * 4 + [bool, int],
    )  # fmt: skip
    return xr.Dataset(_measured(*parts) | _theory(ds, dim)).assign_attrs(confidence=confidence, along=dim)


def optimum(steps: Array, gamma: Array, draws: Array, confidence: float) -> Optimum:
    """The optimum of one cell: `steps` (seed, gamma), NaN for runs left out; `draws` (resamples, seed)."""
    found = minima(steps, gamma, draws)
    if not found.gammas_used:
        return Optimum(gammas_used=int((np.isfinite(steps).sum(axis=0) > 1).sum()))
    best, spread = found.gamma[0], found.gamma[1:]
    low, high = np.quantile(spread[np.isfinite(spread)], interval_levels(confidence, found.seeds))
    at_edge = bool(np.isclose(found.ends[:, None], [best, low, high], rtol=1e-9).any())
    return Optimum(best, low, high, found.steps[0], at_edge, found.gammas_used)


def minima(steps: Array, gamma: Array, draws: Array) -> Minima:
    """The minima of one cell and of its bootstrap resamples; without `gammas_used` where fewer than FEWEST γ count."""
    observed = np.isfinite(steps)
    kept = observed.sum(axis=0) > 1
    if kept.sum() < FEWEST:
        unknown = np.full(1 + len(draws), np.nan)
        return Minima(unknown, unknown, np.full(2, np.nan), 0.0, 0)
    order = np.flatnonzero(kept)[np.argsort(gamma[kept])]
    steps, gamma, counts = steps[:, order], gamma[order], observed[:, order].sum(axis=0, dtype=float)
    means = resampled_means(np.vstack([np.ones(len(steps)), draws]), steps)
    weights = local_weights(gamma, means[0], counts)
    known = np.isfinite(means).all(axis=1)
    best, least = np.full((2, len(means)), np.nan)
    best[known] = fastest(gamma, means[known], weights)
    least[known] = least_steps(gamma, means[known], weights, best[known])
    return Minima(best, least, gamma[weights > 0][[0, -1]], float(counts.min()), len(order))


def _measured(*parts: xr.DataArray) -> dict[str, xr.DataArray]:
    symbol = r"\hat\gamma_{\mathrm{opt}}"
    labels = {
        "gamma_opt": ("optimal learning rate", symbol),
        "gamma_opt_low": ("optimal learning rate, lower bound", symbol),
        "gamma_opt_high": ("optimal learning rate, upper bound", symbol),
        "exit_steps_min": (
            "mean exit steps at the optimal learning rate",
            r"\min_\gamma\langle\nu_{\mathrm{ext}}\rangle",
        ),
        "at_edge": ("the optimum or its interval ends at the edge of the learning rates used",),
        "gammas_used": ("learning rates used",),
    }
    return {name: labelled(part, *label) for (name, label), part in zip(labels.items(), parts, strict=True)}


def _theory(ds: xr.Dataset, dim: str) -> dict[str, xr.DataArray]:
    one = ds.drop_vars("gamma").isel({dim: 0}, drop=True)
    applies = theory_applies(one)
    p, d, Delta = (field(one, name) for name in ("p", "d", "Delta"))
    results = {
        "gamma_opt_theory": theory_optimum(p, Delta),
        "gamma_opt_noise_corrected": noise_corrected_optimal_learning_rate(p, d, Delta, field(one, "threshold")),
    }
    return {name: result.where(applies).assign_attrs(result.attrs) for name, result in results.items()}


def _outline(ds: Outline, *, along: str | None, **_: Any) -> Outline:
    dim = scan_dim(ds, along)
    return passages_outline(ds).without(dim).also({}, along=dim)


ANALYSES.register(
    "optimal_learning_rate",
    Analysis(
        "optimal_learning_rate",
        optimal_learning_rate,
        "Learning rate of least mean exit steps, beside theory",
        outline=_outline,
    ),
)
