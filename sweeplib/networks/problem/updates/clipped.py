"""Clipped steps: along the gradient, whose norm counts as κ where it is larger."""

import math
from typing import Annotated, Any

from pydantic import Field

from sweeplib.networks.problem.parameters import Parameters, parameter
from sweeplib.networks.problem.updates.update import UPDATES, Update


class Threshold(Parameters):
    """The norm κ above which a gradient is clipped."""

    clip_norm: Annotated[float, Field(gt=0, allow_inf_nan=False)] = parameter(
        1.0, "largest norm of a clipped gradient", r"\kappa_{\mathrm{c}}", 0.5
    )
    """κ > 0 of the update `clipped`: the largest norm ‖g‖ of a gradient, √(‖x‖² Σ c_i²) with c_i = a_i σ'(λ_i) E."""


def factor(numbers: Any, T: float, square: float, memory: float) -> tuple[float, float]:
    """Return the factor min(1, κ/‖g‖) of the gradient, and the memory as it is, which has no meaning here.

    numbers : (κ,). square : ‖g‖². The length T of the step does not matter. It has no branch: loops over it are
    vectorised.
    """
    return numbers[0] / max(math.sqrt(square), numbers[0]), memory


UPDATES.add(
    Update("clipped", r"-\gamma g \min(1, \kappa/\lVert g \rVert)", factor, loss="huber", parameters=Threshold),
)
