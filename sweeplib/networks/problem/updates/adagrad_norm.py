"""Steps of AdaGrad-norm: along the gradient over the root of the sum of all squared norms so far."""

import math
from typing import Annotated, Any

from pydantic import Field

from sweeplib.networks.problem.parameters import Parameters, parameter
from sweeplib.networks.problem.updates.update import UPDATES, Update


class Start(Parameters):
    """The memory B_0 at the start."""

    adagrad_start: Annotated[float, Field(gt=0, allow_inf_nan=False)] = parameter(
        1.0, "sum of squared norms at the start", "B_0", 0.5
    )
    """B_0 > 0 of the update `adagrad_norm`: γ g/√B with B ← B + δt ‖g‖² before, δt = γ/(pd): others' b² is B/δt."""


def factor(numbers: Any, T: float, square: float, memory: float) -> tuple[float, float]:
    """Return the factor 1/√B of the gradient and the new memory B, the sum of T ‖g‖² up to this step.

    T : the length of the step in ODE time. square : ‖g‖². memory : B before.
    """
    total = memory + T * square
    return 1.0 / math.sqrt(total), total


def memory(numbers: tuple[float, ...]) -> float:
    """Return the memory at the start, B_0; numbers : (B_0,)."""
    return numbers[0]


UPDATES.add(Update("adagrad_norm", r"-\gamma g/\sqrt{B}", factor, memory, parameters=Start))
