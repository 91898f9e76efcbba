"""The escape of a particle from a well of the potential x⁴/4 − x²/2 by noise: an SDE by Euler and Maruyama."""

from typing import Annotated

import numpy as np
from pydantic import Field

from sweeplib import Result, simulator


@simulator(escape=Result("1", label="time of the first arrival in the other well"))
def double_well(rng, barrier: Annotated[float, Field(gt=0, description="barrier over noise")], step: float = 0.01):
    x, steps, noise = -1.0, 0, 1 / (4 * barrier)
    while True:
        for push in (np.sqrt(2 * noise * step) * rng.standard_normal(1000)).tolist():
            x += (x - x**3) * step + push
            steps += 1
            if x >= 1:
                return steps * step
