"""Steps with momentum: v_i ← β v_i − γ g_i, w_i ← w_i + v_i, without velocity at the start.

Weight decay is part of the gradient g, and so enters the velocity; on the sphere rows of weights alone are projected.
"""

from typing import Annotated

from pydantic import Field

from sweeplib.networks.problem.parameters import Parameters, parameter
from sweeplib.networks.problem.updates.update import UPDATES, Update


class Persistence(Parameters):
    """The part β of a velocity that the next step keeps."""

    momentum: Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)] = parameter(0.9, "momentum", r"\beta", 0.5)
    """0 ≤ β < 1 of momentum: `heavy_ball` is v_i ← β v_i − γ g_i, w_i ← w_i + v_i, at the rate γ/(1 − β)."""


UPDATES.add(Update("heavy_ball", r"\beta v - \gamma g", has_velocities=True, parameters=Persistence))
