"""What a dynamics is: a state of n replicas that can be advanced to a recording time."""

import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from sweeplib.dynamics.replicas import Replicas
from sweeplib.errors import InputError, SweeplibError
from sweeplib.problem import PROBLEM_FIELDS, STARTS, TARGETS, Problem, problem_expectations
from sweeplib.registry import Registry
from sweeplib.views import Lazy, OverlapView, View

Array = NDArray[np.float64]


class NumericalOptions(BaseModel):
    """The numerical options of a dynamics; none unless a dynamics says so."""

    model_config = ConfigDict(frozen=True, extra="forbid")


@dataclass(frozen=True)
class Diagnostic:
    """A number of its own that a dynamics records, such as an estimate of its error: its dimensions and its labels.

    With `over_time` it is recorded at every time at which a replica arrives; otherwise its last value is.
    """

    dims: tuple[str, ...]
    attrs: Mapping[str, str]
    over_time: bool = True


class Dynamics(ABC):
    """The state of n replicas under one dynamics; what the state is, is its own affair.

    Attributes: `running` (n,), false once a replica has stopped at its last exit, diverged or timed out; `diverged` and
    `timed_out` (n,); `exit_steps`, `exit_time` (n, thresholds), NaN where not reached; `end_steps`, `end_time` (n,),
    the last step and time simulated.
    """

    name: ClassVar[str]
    label: ClassVar[str]
    view: ClassVar[type[View]]
    """What observables get of its state."""
    reads: ClassVar[frozenset[str]]
    """The fields of a problem that it acts on: a problem that gives another one a value is refused.

    Problems that differ only in fields that neither it nor an observable reads are one case. What its target and its
    start act on is among them where they are.
    """
    replicas_at_once: ClassVar[int]
    """The number of replicas that one instance advances."""
    lanes: ClassVar[tuple[int, int]] = (1, 1)
    """(fewest, most): replicas are computed side by side in groups of up to `most`, filled up to a multiple of `fewest`
    with copies, which take as long; the wider a group, the less a replica costs."""
    Options: ClassVar[type[NumericalOptions]] = NumericalOptions
    stochastic: ClassVar[bool] = True
    """Whether two seeds with one start may part."""

    running: NDArray[np.bool_]
    diverged: NDArray[np.bool_]
    timed_out: NDArray[np.bool_]

    def __init__(self, replicas: Replicas, options: NumericalOptions) -> None:
        self.replicas = replicas
        self.options = options
        count = len(replicas)
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

    @abstractmethod
    def look(self) -> list[tuple[Array, View]]:
        """Weights (n,) and views: the weighted mean of an observable is recorded, of a sharp state itself, weight one.

        A view is used before the state is advanced again.
        """

    def diagnosed(self) -> dict[str, Array]:
        """The values now (n, *dims) of the `diagnostics`."""
        return {}

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

    @classmethod
    def sizes(cls, problem: Problem, options: NumericalOptions) -> dict[str, int]:
        """The lengths of the dimensions of its view; those of the view's own unless the dynamics says otherwise."""
        return cls.view.sizes(problem)

    @classmethod
    def diagnostics(
        cls, problem: Problem, options: NumericalOptions, observables: Collection[str]
    ) -> dict[str, Diagnostic]:
        """What it records beside the observables, by name."""
        return {}

    @classmethod
    def reads_of(cls, problem: Problem) -> frozenset[str]:
        """The fields of a problem that it acts on, with those that the problem's target and start act on."""
        target = TARGETS[problem.target].reads if "target" in cls.reads else frozenset()
        start = STARTS[problem.student_start].reads if "start" in cls.reads else frozenset()
        return cls.reads | target | start

    @classmethod  # noqa: B027 - most dynamics apply to every problem
    def check(cls, problem: Problem, options: NumericalOptions) -> None:
        """Raise InputError when the dynamics does not apply to the problem, or not with these options."""

    @staticmethod
    def clock() -> float:
        """Seconds on the clock of deadlines."""
        return time.monotonic()


class OverlapDynamics(Dynamics):
    """A dynamics of which the overlaps `Q` (n, p, p), `M` (n, p, k) and `a` (n, p) now are attributes.

    They start as those of the replicas, made when they are first asked for.
    """

    view = OverlapView
    uses_drifts: ClassVar[bool] = False
    """Whether the drifts of the overlaps enter; then the error of the rule that gives them is recorded."""

    def __init__(self, replicas: Replicas, options: NumericalOptions) -> None:
        super().__init__(replicas, options)
        self._drift_error = np.full(len(replicas), np.nan)

    @cached_property
    def Q(self) -> Array:
        """The overlaps of students now (n, p, p)."""
        return self.replicas.Q.copy()

    @cached_property
    def M(self) -> Array:
        """The overlaps of students and teachers now (n, p, k)."""
        return self.replicas.M.copy()

    @cached_property
    def a(self) -> Array:
        """The student's second layer now (n, p)."""
        return self.replicas.a.copy()

    def look(self) -> list[tuple[Array, View]]:
        """The overlaps now."""
        return [(np.ones(len(self.replicas)), self.overlap_view(lambda: self.Q, lambda: self.M, self.a))]

    def overlap_view(self, Q: Lazy, M: Lazy, a: Array, q: Lazy | None = None) -> OverlapView:
        """The view of some overlaps of the replicas."""
        replicas = self.replicas
        return OverlapView(Q, M, replicas.P, a, replicas.a_star, replicas.Delta, replicas.expectations, q)

    @classmethod
    def diagnostics(
        cls, problem: Problem, options: NumericalOptions, observables: Collection[str]
    ) -> dict[str, Diagnostic]:
        """`drift_error`, where it uses drifts that have no closed form."""
        if not (cls.uses_drifts and problem_expectations(problem).finer):
            return {}
        rule = {"comment": "largest at a recording time, over the largest drift; estimated by a finer rule"}
        return {"drift_error": Diagnostic((), {"long_name": "error of the drifts", "units": "1"} | rule, False)}

    def diagnosed(self) -> dict[str, Array]:
        """The largest error of the drifts until now, where they have no closed form."""
        replicas = self.replicas
        if not (self.uses_drifts and replicas.expectations.finer):
            return {}
        state = (self.Q, self.M, replicas.P, self.a, replicas.a_star, replicas.Delta)
        self._drift_error = np.fmax(self._drift_error, replicas.expectations.drift_errors(*state))
        return {"drift_error": self._drift_error}


ONE_PASS = frozenset(PROBLEM_FIELDS) - {"batch_size", "samples"}
"""What a dynamics reads that takes one fresh sample a step, or is a limit of one that does."""


def _checked(name: str, kind: type[Dynamics]) -> None:
    """Raise SweeplibError for a dynamics that does not say what it acts on, or what observables get of it."""
    reads = getattr(kind, "reads", None)
    if not isinstance(reads, frozenset):
        wanted = "`reads = frozenset({...})`, or `reads = ONE_PASS`, all but those of batches and reused samples"
        raise SweeplibError(f"dynamics {name!r} must name the fields of a problem that it acts on: {wanted}")
    if unknown := sorted(reads.difference(PROBLEM_FIELDS)):
        raise InputError(f"dynamics {name!r} reads no field of a problem", value=unknown[0], choices=PROBLEM_FIELDS)
    if not hasattr(kind, "view"):
        raise SweeplibError(f"dynamics {name!r} must name its `view`, such as OverlapView")


DYNAMICS: Registry[type[Dynamics]] = Registry("dynamics", check=_checked)
