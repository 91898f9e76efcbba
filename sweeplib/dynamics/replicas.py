"""Replicas: runs of one shape, side by side, before any dynamics is chosen."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Replicas:
    """n runs of problems that share p, k, activations and geometry, and may differ in γ, Δ, d, seed and start.

    `gamma`, `Delta`, `d` (n,); second layers `a` (n, p), `a_star` (n, k) and the student's
    rate of training `second_layer_rate` (n,); initial overlaps `Q` (n, p, p),
    `M` (n, p, k), `P` (n, k, k); `weights(i)` gives the initial (W, W*) of replica i; `keys` and `seeds` (n,) uint64
    name the streams of random numbers; `times` (n, n_times) are the ODE times at which to record; `thresholds` (T,)
    are the exit thresholds, and `stop_at_exit` says that a replica may end at its last one.
    """

    activation: str
    teacher_activation: str
    spherical: bool
    gamma: Array
    Delta: Array
    d: NDArray[np.int64]
    a: Array
    a_star: Array
    second_layer_rate: Array
    Q: Array
    M: Array
    P: Array
    weights: Callable[[int], tuple[Array, Array]]
    keys: NDArray[np.uint64]
    seeds: NDArray[np.uint64]
    times: Array
    thresholds: Array
    stop_at_exit: bool

    def __len__(self) -> int:
        return len(self.gamma)

    @property
    def p(self) -> int:
        """Student width."""
        return int(self.M.shape[1])

    @property
    def k(self) -> int:
        """Teacher width."""
        return int(self.M.shape[2])

    @cached_property
    def step_time(self) -> Array:
        """The ODE time γ/(p d) of one step, for each replica (n,)."""
        return self.gamma / (self.p * self.d)
