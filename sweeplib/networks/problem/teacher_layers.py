"""Second layers of teachers: given as numbers, or as the power law `power(beta)` in the rows.

`power(beta)` is a*_r = k r^−β/√(Σ_s s^−2β), r = 1, ..., k, so that f* = Σ_r α_r σ*(λ*_r) with α_r ∝ r^−β and
Σ α_r² = 1.
"""

import math
import re
from typing import Any

import numpy as np

from sweeplib.errors import InputError
from sweeplib.networks.maths.activations.named import spelled

LAW = re.compile(r"power\s*\(\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)\s*\)", re.ASCII | re.IGNORECASE)
"""A power law as it is written, with its exponent β."""
EXPECTED = "a number, a list with one number a row, or the power law power(beta), as power(1.5)"


def canonical_layer(value: Any) -> Any:
    """Return a second layer as it is, but with one spelling of a power law; InputError for another text."""
    if not isinstance(value, str):
        return value
    match = LAW.fullmatch(value.strip())
    beta = float(match[1]) if match else math.nan
    if not math.isfinite(beta):
        raise InputError("no second layer of a teacher", value=value, expected=EXPECTED)
    return spelled("power", (beta + 0.0,))  # + 0.0: −0 is 0


def teacher_layer(value: float | tuple[float, ...] | str, k: int) -> tuple[float, ...]:
    """Return the numbers a* (k,) of a canonical second layer."""
    if isinstance(value, tuple):
        return value
    if not isinstance(value, str):
        return (value,) * k
    [beta] = re.findall(r"\((.*)\)", value)
    logarithms = -float(beta) * np.log(np.arange(1, k + 1))
    # the largest row first: powers of a steep law overflow or vanish
    powers = np.exp(logarithms - logarithms.max(initial=-math.inf))
    return tuple((k * powers / math.sqrt((powers**2).sum())).tolist()) if k else ()
