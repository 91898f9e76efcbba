"""The absolute loss |y − f|, whose force is the sign of the displacement.

E = y − f is the displacement; the loss has no parameters, so `numbers` is empty.
"""

import math
from typing import Any

from sweeplib.networks.problem.losses.loss import LOSSES, Loss


def force(numbers: Any, E: float, y: float) -> float:
    """The force sign E, 0 at 0."""
    return 1.0 if E > 0.0 else (-1.0 if E < 0.0 else 0.0)


def value(numbers: Any, E: float, y: float) -> float:
    """Return the loss |E|."""
    return abs(E)


def means(numbers: Any, r: float, Delta: float) -> tuple[float, float, float]:
    """The means of the force, its square and the loss, for a normal displacement E of mean r and variance Δ > 0."""
    deviation = math.sqrt(Delta)
    sign = math.erf(r / (deviation * math.sqrt(2.0)))
    return sign, 1.0, r * sign + 2.0 * deviation * math.exp(-r * r / (2.0 * Delta)) / math.sqrt(2.0 * math.pi)


LOSSES.add(Loss("absolute", r"\lvert y - f \rvert", force, value, means))
