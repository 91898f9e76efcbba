"""What dynamics record of themselves: errors, with their labels and bounds.

The terms of a risk are the size of the parts of which it is a difference: its rounding error is `ROUNDING` times them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sweeplib.engine.base.arrays import Array


@dataclass(frozen=True)
class Diagnostic:
    """The dimensions `dims` and labels `attrs` of a quantity that a dynamics records itself, such as an error.

    With `over_time` it is recorded at every recording time; otherwise only its last value is.
    """

    dims: tuple[str, ...]
    attrs: Mapping[str, str]
    over_time: bool = True


RISK_ERROR = {
    "long_name": "error of the population risk",
    "units": "1",
    "symbol": r"\delta\mathcal{R}",
    "error_of": "risk",
}
"""The labels of the error of the risk."""
OF_RISK = frozenset({"risk", "test_error", "generalisation_gap"})
"""The observables that contain the risk, with which its error is recorded."""
ROUNDING = 1e-14
"""The rounding error of a risk relative to its terms."""
LARGEST_UNDECIDED = 1e-6
"""The error, relative to the terms of a risk, above which a risk smaller than its error is no result."""


class Bound(NamedTuple):
    """A quantity of replicas, by name, its values (n,) and the largest (n,) allowed: larger ones end as inaccurate."""

    quantity: str
    value: Array
    largest: Array


def risk_bounds(risk: Array, error: Array, terms: Array) -> tuple[Bound, Bound]:
    """The bounds of n risks: none below zero by more than its error, and no error above the risk.

    risk, error, terms (n,) : of each replica. An error is allowed if it is less than `LARGEST_UNDECIDED` times the
        terms: then the risk is zero to rounding.
    """
    above = np.maximum(np.abs(risk), LARGEST_UNDECIDED * terms)
    return Bound("-risk", -risk, error), Bound("risk_error", error, above)
