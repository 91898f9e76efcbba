"""The Huber loss: ½ E² of the displacement E = y − f up to |E| = h, h (|E| − h/2) beyond; its force is E, clipped."""

import math
from typing import Annotated, Any

from pydantic import Field

from sweeplib.networks.problem.losses.loss import LOSSES, Loss
from sweeplib.networks.problem.parameters import Parameters, parameter


class Width(Parameters):
    """The displacement h up to which the loss is a square."""

    huber_delta: Annotated[float, Field(gt=0, allow_inf_nan=False)] = parameter(
        1.0, "largest force of the Huber loss", r"\delta_{\mathrm{H}}", 0.3
    )
    """δ > 0 of the loss `huber`: the displacement up to which it is that of the square loss."""


def force(numbers: Any, E: float, y: float) -> float:
    """The displacement E, clipped at ±h; numbers : (h,)."""
    return min(max(E, -numbers[0]), numbers[0])


def value(numbers: Any, E: float, y: float) -> float:
    """The loss ½ E², or h (|E| − h/2) where |E| is beyond h; numbers : (h,)."""
    h = numbers[0]
    return 0.5 * E * E if abs(E) < h else h * (abs(E) - 0.5 * h)


def means(numbers: Any, r: float, Delta: float) -> tuple[float, float, float]:
    """The means of the force, its square and the loss, for a normal E of mean r and variance Δ > 0; numbers : (h,).

    A and B are ∓h in standard deviations of E from its mean.
    """
    h, deviation = numbers[0], math.sqrt(Delta)
    A, B = (-h - r) / deviation, (h - r) / deviation
    below, above = 0.5 * math.erfc(-A / math.sqrt(2.0)), 0.5 * math.erfc(B / math.sqrt(2.0))
    at_A, at_B = math.exp(-A * A / 2.0) / math.sqrt(2.0 * math.pi), math.exp(-B * B / 2.0) / math.sqrt(2.0 * math.pi)
    inside = 1.0 - below - above
    squares = r * r * inside - 2.0 * r * deviation * (at_B - at_A) + Delta * (inside - B * at_B + A * at_A)
    lines = (r - h / 2.0) * above + deviation * at_B + (-r - h / 2.0) * below + deviation * at_A
    force = r * inside - deviation * (at_B - at_A) + h * (above - below)
    return force, squares + h * h * (above + below), 0.5 * squares + h * lines


LOSSES.add(Loss("huber", r"h_\delta(y - f)", force, value, means, parameters=Width))
