"""Replicas: runs of one shape, side by side, before any dynamics is chosen."""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sweeplib.maths.expectations import Expectations
from sweeplib.maths.overlaps import Overlaps
from sweeplib.problem.targets import TARGETS

Array = NDArray[np.float64]


class Starts(Protocol):
    """The initial states of replicas, each made when it is asked for."""

    def weights(self, i: int) -> tuple[Array, Array]:
        """W (p, d) and W* (k, d) of replica i."""
        ...

    def overlaps(self, i: int) -> Overlaps:
        """The overlaps of replica i."""
        ...

    def teacher_overlaps(self, i: int) -> Array:
        """P (k, k) of replica i."""
        ...

    def particles(self, i: int, count: int | None) -> tuple[Array, Array]:
        """The m (count, k) and q (count,) of replica i; p units where `count` is None."""
        ...


@dataclass(frozen=True, eq=False)
class Replicas:
    """n runs of problems that share p, k, activations, target and geometry; γ, Δ, d, seed and start may differ.

    `gamma`, `Delta`, `d` and `batch_size` (n,); second layers `a` (n, p), `a_star` (n, k) and the student's rate of
    training `second_layer_rate` (n,); `keys` and `seeds` (n,) uint64 name the streams of random numbers; `times`
    (n, n_times) are the ODE times at which to record; `thresholds` (T,) are the exit thresholds, and `stop_at_exit`
    says that a replica may end at its last one. `starts` makes the initial states when they are first asked for, and
    only in the form that is asked for: weights, overlaps, or particles.
    """

    activation: str
    teacher_activation: str
    target: str
    spherical: bool
    gamma: Array
    Delta: Array
    d: NDArray[np.int64]
    batch_size: NDArray[np.int64]
    a: Array
    a_star: Array
    second_layer_rate: Array
    starts: Starts
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
        return int(self.a.shape[1])

    @property
    def k(self) -> int:
        """Teacher width."""
        return int(self.a_star.shape[1])

    def weights(self, i: int) -> tuple[Array, Array]:
        """The initial weights W (p, d), W* (k, d) of replica i."""
        return self.starts.weights(i)

    def overlaps(self, i: int) -> Overlaps:
        """The initial overlaps Q (p, p), M (p, k), P (k, k) of replica i."""
        return self.starts.overlaps(i)

    def particles(self, i: int, count: int | None = None) -> tuple[Array, Array]:
        """The overlaps m (count, k) with the teacher and the squared norms q (count,) of initial units of replica i.

        These are its p units or, of another `count`, so many of the same law. No p x p array is made.
        """
        return self.starts.particles(i, count)

    @cached_property
    def Q(self) -> Array:
        """Initial overlaps of students (n, p, p)."""
        return np.array([self.overlaps(i).Q for i in range(len(self))])

    @cached_property
    def M(self) -> Array:
        """Initial overlaps of students and teachers (n, p, k)."""
        return np.array([self.overlaps(i).M for i in range(len(self))])

    @cached_property
    def P(self) -> Array:
        """Overlaps of teachers (n, k, k); no p x p array is made."""
        return np.array([self.starts.teacher_overlaps(i) for i in range(len(self))])

    @cached_property
    def expectations(self) -> Expectations:
        """The Gaussian expectations of the target for the activations."""
        return TARGETS[self.target].expectations(self.activation, self.teacher_activation)

    @cached_property
    def step_time(self) -> Array:
        """The ODE time γ/(p d) of one step, for each replica (n,)."""
        return self.gamma / (self.p * self.d)
