"""Seeds: the numbers of replicas."""

from typing import Any

import numpy as np

from sweeplib.errors import InputError


def checked_seed(seed: Any, key: str = "seed", bits: int = 32) -> int:
    """Return the seed as an int; InputError, with the key, unless it is a whole number in [0, 2^bits)."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**bits:
        raise InputError("not a seed", key=key, value=seed, expected=f"a whole number in [0, 2^{bits})")
    return int(seed)
