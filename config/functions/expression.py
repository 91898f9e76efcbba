"""Copies of a protein in a cell that makes them in bursts and loses them one by one, by Gillespie's algorithm."""

from typing import Annotated

import numpy as np
from pydantic import Field

from sweeplib import Result, simulator

copies_over_time = Result("1", dims={"time": "times"}, label="copies")


@simulator(copies=copies_over_time)
def expression(rng, times, burst: Annotated[int, Field(ge=1, description="copies in a burst")] = 1, mean: float = 20):
    n, t, copies = 0, 0.0, []
    for until in times:
        while True:
            bursts = mean / burst  # a time; copies live for one unit of it
            following = t + rng.exponential(1 / (bursts + n))
            if following > until:
                break
            t = following
            n += burst if rng.random() * (bursts + n) < bursts else -1
        t = until  # nothing happens until then: waiting times have no memory
        copies.append(n)
    return np.array(copies)
