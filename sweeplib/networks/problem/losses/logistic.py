"""The logistic loss log(1 + e^{−y f}), of labels that are signs.

E = y − f is the displacement; the loss has no parameters, so `numbers` is empty.
"""

import math
from typing import Any

from sweeplib.networks.problem.losses.loss import LOSSES, Loss


def force(numbers: Any, E: float, y: float) -> float:
    """The force y/(1 + e^{y f}), f = y − E, without a branch: loops over it are vectorised."""
    # e^700 is still a double, and beyond it the force is zero in all digits
    return y / (1.0 + math.exp(min(y * (y - E), 700.0)))


def value(numbers: Any, E: float, y: float) -> float:
    """The loss log(1 + e^{−y f}), f = y − E, which does not overflow."""
    margin = y * (y - E)
    return max(-margin, 0.0) + math.log1p(math.exp(-abs(margin)))


LOSSES.add(Loss("logistic", r"\log(1 + e^{-y f})", force, value))
