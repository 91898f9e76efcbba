"""Normalised steps, all of the length γ: along the gradient over its norm."""

import math
from typing import Any

from sweeplib.networks.problem.updates.update import UPDATES, Update

LEAST = 1e-300
"""A smaller ‖g‖² counts as this."""


def factor(numbers: Any, T: float, square: float, memory: float) -> tuple[float, float]:
    """Return the factor 1/‖g‖, 0 without a gradient, and the memory as it is, which has no meaning here.

    square : ‖g‖². The rule has no parameters, `numbers`, and the length T of the step does not matter. It has no
    branch: loops over it are vectorised.
    """
    return math.sqrt(square) / max(square, LEAST), memory


UPDATES.add(Update("normalised", r"-\gamma g/\lVert g \rVert", factor, loss="absolute"))
