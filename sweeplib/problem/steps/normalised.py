"""Normalised steps, all of the length γ: along the gradient over its norm."""

import math
from typing import Any

from sweeplib.problem.losses import absolute
from sweeplib.problem.steps.step import STEPS, Step

LEAST = 1e-300
"""A smaller ‖g‖² counts as this."""


def factor(numbers: Any, T: float, square: float, memory: float) -> tuple[float, float]:
    """1/‖g‖; 0 without a gradient. Without a branch: loops over it are vectorised."""
    return math.sqrt(square) / max(square, LEAST), memory


def means(numbers: Any, size: float, r: float, Delta: float) -> tuple[float, float]:
    """Those of the absolute loss over ‖g‖/|E|."""
    force, square, _ = absolute.means(numbers, r, Delta)
    return force / size, square / size**2


STEPS.register("normalised", Step("normalised", r"-\gamma g/\lVert g \rVert", factor, means=means))
