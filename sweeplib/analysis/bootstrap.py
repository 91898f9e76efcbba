"""Bootstrap over the seeds: all points are resampled jointly, so intervals hold for paired and for unpaired runs."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def resampled_counts(seeds: int, resamples: int, random_seed: int) -> Array:
    """Return how often each seed is drawn in each bootstrap resample, shape (resamples, seeds)."""
    generator = np.random.default_rng(random_seed)
    return generator.multinomial(seeds, np.full(seeds, 1.0 / seeds), size=resamples).astype(float)


def resampled_means(draws: Array, values: Array) -> Array:
    """Return the means (resamples, points) of values (seed, points); NaN marks a seed that was not observed."""
    observed = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        means: Array = (draws @ np.where(observed, values, 0.0)) / (draws @ observed)
    return means


def resampled_logarithms(draws: Array, values: Array) -> tuple[NDArray[np.bool_], Array, Array, float]:
    """Return logarithms of the means of values (seed, point) and their changes under resampling.

    The parts are: the mask (point,) of the points of which at least two seeds were observed and whose mean is positive;
    for these the logarithms (kept,); the changes (resamples, kept) in the resamples that have all of them; the least
    number of observed seeds.
    """
    mean = resampled_means(np.ones((1, len(values))), values)[0]
    counts = np.isfinite(values).sum(axis=0)
    kept = (counts > 1) & (mean > 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        shifts = np.log(resampled_means(draws, values[:, kept]) / mean[kept])
    shifts = shifts[np.isfinite(shifts).all(axis=1)]
    return kept, np.log(mean[kept]), shifts, float(counts[kept].min(initial=len(values)))
