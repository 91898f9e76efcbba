"""A bandit of ten arms, and what it costs not to know the best one: upper confidence bounds, or chance now and then."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from sweeplib import Result, simulator


@simulator(regret=Result("1", label="regret"))
def bandit(
    rng,
    policy: Literal["ucb", "epsilon"] = "ucb",
    explore: Annotated[float, Field(ge=0, description="exploration")] = 0.3,
    pulls: int = 1000,
    arms: int = 10,
):
    chances, chance = rng.random(arms), rng.random((pulls, 2)).tolist()
    wins, counts, regret = np.zeros(arms), np.zeros(arms), 0.0
    for pull, (coin, luck) in enumerate(chance):
        if pull < arms:
            arm = pull
        elif policy == "ucb":
            arm = int(np.argmax(wins / counts + explore * np.sqrt(np.log(pull) / counts)))
        elif coin < explore:
            arm = int(rng.integers(arms))
        else:
            arm = int(np.argmax(wins / counts))
        counts[arm] += 1
        wins[arm] += luck < chances[arm]
        regret += chances.max() - chances[arm]
    return regret
