"""The learning rate that minimises the mean number of steps to exit, with a bootstrap interval, beside theory."""

from typing import NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from sweeplib.analysis.analysis import ANALYSES, Analysis
from sweeplib.analysis.bootstrap import interval_levels, resampled_counts, resampled_means
from sweeplib.analysis.cells import field, labelled
from sweeplib.analysis.passages import passages
from sweeplib.analysis.phase_retrieval import theory_applies
from sweeplib.analysis.scan import scan_dim
from sweeplib.analysis.speed_fit import FEWEST, fastest, least_steps, local_weights
from sweeplib.theory import noise_corrected_optimal_learning_rate
from sweeplib.theory import optimal_learning_rate as theory_optimum

Array = NDArray[np.float64]


class Optimum(NamedTuple):
    """One optimum with its interval."""

    gamma: float = np.nan
    low: float = np.nan
    high: float = np.nan
    steps: float = np.nan
    at_edge: bool = False
    gammas_used: int = 0


def optimal_learning_rate(
    ds: xr.Dataset,
    *,
    confidence: float = 0.95,
    resamples: int = 2000,
    random_seed: int = 0,
    max_censored: float = 0.02,
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
    dim = scan_dim(ds, along)
    sample = passages(ds, "steps")
    steps = sample.restricted().where(sample.censored().sum("seed") <= max_censored * sample.used.sum("seed"))
    gamma = field(ds, "gamma").astype(float).broadcast_like(ds["status"].isel(seed=0, drop=True))
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
    observed = np.isfinite(steps)
    kept = observed.sum(axis=0) > 1
    if kept.sum() < FEWEST:
        return Optimum(gammas_used=int(kept.sum()))
    order = np.flatnonzero(kept)[np.argsort(gamma[kept])]
    steps, gamma, counts = steps[:, order], gamma[order], observed[:, order].sum(axis=0, dtype=float)
    mean = resampled_means(np.ones((1, len(steps))), steps)
    weights = local_weights(gamma, mean[0], counts)
    best = fastest(gamma, mean, weights)
    resampled = resampled_means(draws, steps)
    spread = fastest(gamma, resampled[np.isfinite(resampled).all(axis=1)], weights)
    low, high = np.quantile(spread, interval_levels(confidence, counts.min()))
    ends = gamma[weights > 0][[0, -1]]
    at_edge = bool(np.isclose(ends[:, None], [best[0], low, high], rtol=1e-9).any())
    return Optimum(best[0], low, high, least_steps(gamma, mean, weights, best)[0], at_edge, len(order))


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
        "gamma_opt_noise_corrected": noise_corrected_optimal_learning_rate(p, d, Delta, one["threshold"]),
    }
    return {name: result.where(applies).assign_attrs(result.attrs) for name, result in results.items()}


ANALYSES.register(
    "optimal_learning_rate",
    Analysis("optimal_learning_rate", optimal_learning_rate, "Learning rate of least mean exit steps, beside theory"),
)
