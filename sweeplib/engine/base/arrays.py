"""The type of most arrays, and whether the values of one are drawn on a logarithmic axis."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
"""An array of real numbers."""
WIDE = 20.0
"""The range above which positive values have a logarithmic axis."""
DECADE = 10.0
"""The range above which positive values along a run have a logarithmic axis."""
FAR_APART = 5.0
"""The ratio of two values from which they have a logarithmic axis."""


def geometric(values: np.ndarray) -> bool:
    """Return whether ascending values, except zeros at the start, are evenly spaced on a logarithmic scale."""
    gaps = np.diff(np.log(values[values > 0.0]))
    return bool(gaps.size > 1 and gaps.max() < 1.5 * gaps.min())


def wide(values: np.ndarray, ratio: float = WIDE) -> bool:
    """Return whether all finite values are positive, and the largest is more than `ratio` times the smallest."""
    finite = values[np.isfinite(values)]
    return bool(finite.size and 0.0 < ratio * finite.min() < finite.max())


def logarithmic(places: np.ndarray) -> bool:
    """Return whether an axis of a sweep with some values is drawn on a logarithmic scale.

    It is, if the values are positive and evenly spaced on that scale, range widely, or are two far apart.
    """
    values = np.unique(places[np.isfinite(places)].astype(float))
    if not values.size or values[0] <= 0.0:
        return False
    return geometric(values) or wide(values) or (len(values) == 2 and wide(values, FAR_APART))
