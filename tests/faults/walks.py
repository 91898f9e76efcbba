"""Walks of three parts, each with a state that is kept; some fail on their way."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from sweeplib import Result, simulator

FAILS = 1.0
"""The drift at which a walk fails if it comes far."""


@simulator(x=Result("1", dims={"time": "times"}), end="1")
def walk(rng: np.random.Generator, times: Any, drift: float = 0.0, state: Any = None) -> Iterator[Any]:
    x, done = state or (0.0, 0)
    for time in times:
        while done < time:
            x, done = x + drift + rng.normal(), done + 1
        if drift == FAILS and x > 2.5:
            raise ArithmeticError("a walk that comes far")
        yield {"x": x, "end": done}, (x, done)
