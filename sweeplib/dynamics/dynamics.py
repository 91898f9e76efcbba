"""What a dynamics is: a state of n replicas that can be advanced to a recording time."""

import time
from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from sweeplib.dynamics.replicas import Replicas
from sweeplib.problem import PROBLEM_FIELDS, Problem
from sweeplib.registry import Registry

Array = NDArray[np.float64]


class NumericalOptions(BaseModel):
    """The numerical options of a dynamics; none unless a dynamics says so."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class State(NamedTuple):
    """Q (n, p, p), M (n, p, k) and a (n, p) of n replicas, and the weights (n,) of these among their states."""

    weight: Array
    Q: Array
    M: Array
    a: Array


class Dynamics(ABC):
    """The state of n replicas under one dynamics.

    Attributes: `Q` (n, p, p), `M` (n, p, k), `a` (n, p), the state now; `running` (n,), false once a replica has
    stopped at its last exit, diverged or timed out; `diverged` and `timed_out` (n,); `exit_steps`, `exit_time`
    (n, thresholds), NaN where not reached; `end_steps`, `end_time` (n,), the last step and time simulated.
    """

    name: ClassVar[str]
    label: ClassVar[str]
    reads: ClassVar[frozenset[str]] = frozenset(PROBLEM_FIELDS)
    """The fields of a problem on which its numbers depend; problems that differ in others only are one case."""
    together: ClassVar[int]
    """How many replicas are best run in one go."""
    lanes: ClassVar[tuple[int, int]] = (1, 1)
    """(fewest, most): replicas are computed side by side in groups of up to `most`, filled up to a multiple of `fewest`
    with copies, which take as long; the wider a group, the less a replica costs."""
    Options: ClassVar[type[NumericalOptions]] = NumericalOptions
    stochastic: ClassVar[bool] = True
    """Whether two seeds with one start may part."""
    uses_drifts: ClassVar[bool] = False
    """Whether the drifts of the overlaps enter, with the error of the rule that gives them."""
    estimates_error: ClassVar[bool] = False
    """Whether it has `risk_error` (n,), an estimate of the error of the risk now."""

    Q: Array
    M: Array
    a: Array
    running: NDArray[np.bool_]
    diverged: NDArray[np.bool_]
    timed_out: NDArray[np.bool_]
    risk_error: Array

    def __init__(self, replicas: Replicas, options: NumericalOptions) -> None:
        self.replicas = replicas
        self.options = options
        count = len(replicas)
        self.Q, self.M, self.a = replicas.Q.copy(), replicas.M.copy(), replicas.a.copy()
        self.running = np.ones(count, dtype=bool)
        self.diverged = np.zeros(count, dtype=bool)
        self.timed_out = np.zeros(count, dtype=bool)

    @abstractmethod
    def advance(self, to: int, deadline: float = np.inf) -> None:
        """Bring the running replicas to recording time number `to`, or give up at the `deadline` of the clock below."""

    @property
    @abstractmethod
    def exit_steps(self) -> Array:
        """Steps at which each threshold was first reached (n, thresholds), NaN where it was not."""

    @property
    @abstractmethod
    def end_steps(self) -> Array:
        """The last step simulated (n,)."""

    def states(self) -> list[State]:
        """The states now whose weighted mean of an observable is recorded: of a sharp state itself, weight one."""
        return [State(np.ones(len(self.replicas)), self.Q, self.M, self.a)]

    def reached(self, to: int) -> NDArray[np.bool_]:
        """Which replicas (n,) were simulated up to recording time number `to`."""
        return self.end_time >= self.replicas.times[:, to]

    @property
    def exit_time(self) -> Array:
        """ODE times of the exits (n, thresholds)."""
        return self.exit_steps * self.replicas.step_time[:, None]

    @property
    def end_time(self) -> Array:
        """The last ODE time simulated (n,)."""
        return self.end_steps * self.replicas.step_time

    @staticmethod
    @abstractmethod
    def work(problem: Problem, time: float) -> float:
        """Nominal floating-point operations to ODE time `time`, the same on every machine."""

    @staticmethod
    def step_length(options: NumericalOptions) -> float:
        """The SGD steps that one of its own stands for; what `work` says is divided by it."""
        return 1.0

    @classmethod  # noqa: B027 - most dynamics apply to every problem
    def check(cls, problem: Problem) -> None:
        """Raise InputError when the dynamics does not apply to the problem."""

    @staticmethod
    def clock() -> float:
        """Seconds on the clock of deadlines."""
        return time.monotonic()


DYNAMICS: Registry[type[Dynamics]] = Registry("dynamics")
