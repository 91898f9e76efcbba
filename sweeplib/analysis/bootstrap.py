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
