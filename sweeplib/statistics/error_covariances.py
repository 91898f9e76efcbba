"""Covariances of the errors of means at several places, of full rank, from the parts that seeds have in them."""

from __future__ import annotations

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.statistics.bootstrap import POOLED_SEEDS

CERTAIN = 1e6
"""The degrees of freedom of errors that are nothing."""
TINY = 1e-12
"""The standard deviation up to which errors of logarithms, or their spread, are nothing, as those of values near 1."""


def errors_of_differences(parts: Array) -> tuple[Array, float]:
    """Return a covariance (n, n) of full rank, from the parts (seeds, n) of errors, and its degrees of freedom.

    Differences between places have the covariance of the parts. What all places share is left out, one pattern is kept
    if it is clearly more than chance (Marchenko and Pastur), and the rest counts as errors of single places.
    """
    n, apart = parts.shape[1], parts - parts.mean(axis=1, keepdims=True)
    covariance = apart.T @ apart
    if np.diag(covariance).max() <= TINY**2:
        return np.zeros_like(covariance), CERTAIN
    freedom = _freedom(apart, covariance)
    pattern = _pattern(covariance, (1.0 + np.sqrt(n / freedom)) ** 2)
    counts = np.maximum(np.count_nonzero(parts, axis=0), 1)
    single = np.maximum(np.diag(covariance) - np.diag(pattern), 0.0) * counts * n / (n - 1.0)
    prior = POOLED_SEEDS * min(1.0, POOLED_SEEDS / freedom)
    return pattern + np.diag((prior * single.mean() + freedom * single) / ((prior + freedom) * counts)), freedom


def freedom_of_levels(parts: Array) -> float:
    """Return the degrees of freedom of the parts (seeds, n) of errors, with what all places share."""
    covariance = parts.T @ parts
    return CERTAIN if np.diag(covariance).max() <= TINY**2 else _freedom(parts, covariance)


def _freedom(parts: Array, covariance: Array) -> float:
    """Return the degrees of freedom of a covariance (n, n) of parts (seeds, n): at most the number of seeds less one.

    They are fewer where few seeds make most of the errors, and never below one.
    """
    by_seed, rank = np.sum(parts**2, axis=1), np.trace(covariance) ** 2 / np.sum(covariance**2)
    # Satterthwaite; by_seed is χ² of so many squares
    seeds = float(by_seed.sum() ** 2 / np.sum(by_seed**2)) * (1.0 + 2.0 / rank)
    return max(1.0, min(seeds, np.count_nonzero(parts.any(axis=1))) - 1.0)


def _pattern(covariance: Array, chance: float) -> Array:
    """Return what a single pattern makes of a covariance (n, n), nothing if it is less than `chance` times the mean."""
    spread = np.sqrt(np.diag(covariance))
    unit = np.where(spread > 0.0, spread, 1.0)
    values, vectors = np.linalg.eigh(covariance / np.outer(unit, unit))
    if values[-1] <= chance * values.mean():
        return np.zeros_like(covariance)
    loading = vectors[:, -1] * unit
    return np.asarray((values[-1] - values[:-1].mean()) * np.outer(loading, loading))
