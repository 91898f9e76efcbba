"""Seeds: the numbers of replicas."""

from typing import Any

import numpy as np

from sweeplib.errors import InputError


def checked_seed(seed: Any) -> int:
    """Return the seed as an int; InputError unless it is a whole number in [0, 2^32)."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**32:
        raise InputError("not a seed", key="seed", value=seed, expected="a whole number in [0, 2^32)")
    return int(seed)
