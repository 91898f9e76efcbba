"""Gradient flow on the empirical risk of a training set, Θ̇ = −∇R̂_n: full-batch gradient descent for γ → 0.

The training set is that of `sgd` with `samples` and `batch_size` n, whose steps approach the flow as their length
γ/(pd), and whose limit d → ∞ at fixed n/d is that of `dmft` with such steps. `networks/kernels/training_flow.py` has
the equations. Each run is integrated twice: the solution at a tenth of the tolerance is recorded, and its difference to
a companion solution at ten times the tolerance estimates its error. The two are systems 0 and 1 of an `Integration`.

A flat state is W (p, d), a (p,), the offsets b (p,) and, with a schedule, the time.
"""

from collections.abc import Callable, Collection

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.errors import SweeplibError
from sweeplib.networks.dynamics.diagnostics import OF_RISK, RISK_ERROR, ROUNDING, Diagnostic
from sweeplib.networks.dynamics.dynamics import DECAYS, DYNAMICS, LOSS, OFFSETS, ONE_PASS, NumericalOptions
from sweeplib.networks.dynamics.integrated import IntegratedDynamics, IntegrationOptions, passage_errors
from sweeplib.networks.dynamics.replicas import Replicas
from sweeplib.networks.dynamics.weight_dynamics import WeightDynamics, full_batch
from sweeplib.networks.kernels.schedules import rates
from sweeplib.networks.kernels.training_flow import (
    Fields,
    Flow,
    Room,
    Samples,
    Student,
    fill_slope,
    new_chunk,
    state_level,
)
from sweeplib.networks.numerics.compiled import specialised
from sweeplib.networks.numerics.integrators.dop853 import Equations
from sweeplib.networks.numerics.integrators.integration import Integration
from sweeplib.networks.problem import Problem
from sweeplib.networks.views import OverlapView

DEFAULT_RTOL = 1e-8
"""The relative tolerance without the option `rtol`."""
SAFETY, COARSER = 0.1, 10.0
"""Factors of the tolerance, for the recorded solution and its companion."""
SOLUTION, COMPANION = np.array([0]), np.array([1])
"""The numbers of both in an integration."""
WORK_A_LOOK = 2e8
"""Nominal operations after which the clock is read."""
ARRAYS_OF_STATE = 50
"""Arrays of the size of a state that an integration has: 25 of its work space, 12 of each of the two solutions."""


class TrainingFlow(IntegratedDynamics, WeightDynamics):
    """Replicas of the flow, one after another: the weights, which determine the training set's gradient."""

    name = "training_flow"
    label = "training flow"
    replicas_at_once = 8
    stochastic = True  # training sets differ by seed
    samples_of = "sgd"
    counts_steps = False
    cost_seconds = (1.2e-10, 0.0, 0.0)
    reads = ONE_PASS | {"batch_size", "samples", "schedule", "data"} | OFFSETS | DECAYS | LOSS
    undefined = (
        ("repeats sampling", "the flow takes all samples at each instant"),
        ("noise_schedule", "labels are drawn once"),
        ("temperature", "a flow has no noise"),
    )
    limits = (*WeightDynamics.limits, *full_batch("training_flow"))
    unaffected_by = frozenset({"times", "thresholds"})
    Options = IntegrationOptions
    options: IntegrationOptions

    def __init__(self, replicas: Replicas, options: IntegrationOptions) -> None:
        super().__init__(replicas, options)
        self._rtol = options.rtol or DEFAULT_RTOL
        # whether there is a schedule, and the address of ξ
        self._scheduled, self._xi, *_ = rates(replicas.schedule)
        self._integrations = [self._integration(i) for i in range(len(replicas))]
        self._times = np.zeros(len(replicas))
        self._passages = np.full_like(self.passage_errors, np.inf)

    def _integration(self, i: int) -> Integration:
        """The solution of replica i and its companion, at their start."""
        replicas, longest = self.replicas, self.longest_step
        state = self._state(i)
        targets = replicas.targets[i]
        # the companion notes no passages: its targets are −∞
        return Integration(
            Equations(fill_slope, self._flow(i), self._room(i), state_level),
            np.array([state, state]),
            np.repeat(replicas.times[i, -1], 2),
            rtol=self._rtol * np.array([SAFETY, COARSER]),
            atol=self.options.atol * np.array([SAFETY, COARSER]),
            targets=np.array([targets, np.full(len(targets), -np.inf)]),
            max_steps=self.options.max_steps,
            longest=None if longest is None else np.repeat(longest[i], 2),
            steps_a_round=max(1, int(WORK_A_LOOK / (12.0 * self._operations(i)))),
        )

    def _state(self, i: int) -> Array:
        """The flat state of replica i now."""
        W, _ = self._weights[i]
        return np.concatenate([W.ravel(), self.a[i], self._offsets[i], np.zeros(int(self._scheduled))])

    def _flow(self, i: int) -> Flow:
        """The constants of the equations of replica i."""
        replicas, data = self.replicas, self._training_set(i)
        return Flow(
            self._functions,
            Samples(data.x, data.y, data.order),
            np.ascontiguousarray(replicas.a_star[i]),
            replicas.numbers_of(i),
            replicas.spherical,
            self._scheduled,
            self._xi,
            float(replicas.times[i, -1]),
        )

    def _room(self, i: int) -> Room:
        """Work arrays for the equations of replica i; P (k, k) in them is needed for exits alone."""
        replicas, (W, W_star) = self.replicas, self._weights[i]
        p, k = replicas.p, replicas.k
        P = np.ascontiguousarray(replicas.fields[2][i]) if replicas.thresholds.size else np.empty((k, k))
        fields = Fields(np.empty((p, p, 1)), np.empty((p, k, 1)), P[:, :, None])
        student = Student(W.copy(), self.a[i].copy(), self._offsets[i].copy(), W_star)
        return Room(student, fields, specialised(new_chunk)(student, int(replicas.samples[i])), np.empty((2, 1)))

    def _operations(self, i: int) -> float:
        """Nominal operations of a right-hand side of replica i."""
        return float(self.replicas.samples[i] * self._weights[i][0].size * 4)

    def advance(self, to: int, deadline: float = np.inf) -> None:
        """Integrate each running replica to recording time number `to`."""

        def late() -> bool:
            return self.clock() > deadline

        until = self.replicas.times[:, to]
        for i in np.flatnonzero(self.running).tolist():
            self._integrate(i, float(until[i]), late)
        self.diverged = np.array([bool(path.failed[0]) for path in self._integrations])
        unchecked = np.array([_is_unchecked(path) for path in self._integrations])
        self.stop_those_behind((self._times < until) | unchecked)

    def _integrate(self, i: int, until: float, late: Callable[[], bool]) -> None:
        """Bring replica i to the time `until`, or to failure, its last exit or the deadline; its companion follows.

        late : function that returns whether the deadline is over. New passages are noted, and weights set to the state.
        """
        path = self._integrations[i]
        path.advance(SOLUTION, np.full(2, until), stops=self.replicas.stop_at_exit, late=late)
        self._times[i] = time = path.times[0]
        if path.spent[0] and time < until and not path.failed[0]:
            raise SweeplibError(f"{self.name} needs more than max_steps steps; it is at time {time:.6g}")
        for place in np.argsort(path.passages[0]).tolist():
            if np.isinf(self._passages[i, place]) and path.passages[0, place] <= time:
                self._passages[i, place] = path.passages[0, place]
                self.passage_errors[i, place] = self._passage_error(i, place, late)
        path.advance(COMPANION, np.full(2, time), stops=False, late=late)
        W, a, b = self._parts(i, path.states[0])
        self._weights[i][0][:], self.a[i], self._offsets[i] = W, a, b

    def _parts(self, i: int, state: Array) -> tuple[Array, Array, Array]:
        """W (p, d), a (p,) and b (p,) of a flat state of replica i."""
        p, d = self._weights[i][0].shape
        return state[: p * d].reshape(p, d), state[p * d : p * (d + 1)], state[p * (d + 1) : p * (d + 2)]

    def _passage_error(self, i: int, place: int, late: Callable[[], bool]) -> float:
        """The error of the passage of threshold number `place`, by the companion's level at this time.

        inf if the companion failed before, NaN if it is `late` before it is there.
        """
        path, time, target = self._integrations[i], self._passages[i, place], self.replicas.targets[i, place]
        if time == 0.0:
            return 0.0
        path.advance(COMPANION, np.full(2, time), stops=False, late=late)
        if path.times[1] != time:
            return np.inf if path.failed[1] else np.nan
        level_error = abs(path.levels(COMPANION)[0] - target) + self._least_error * self.replicas.exit_scales[i]
        fall = self.replicas.exit_values_at_start[i] - target
        return float(passage_errors(level_error, fall, path.passage_rates[0, place]))

    @property
    def _least_error(self) -> float:
        """The least error of a risk over the size of its terms: the tolerance of the solution, or rounding."""
        return max(SAFETY * self._rtol, ROUNDING)

    def second_view(self) -> tuple[OverlapView, float]:
        """The view of the companion, and 1: the error of an observable is its difference to that of the companion."""
        parts = [self._parts(i, path.states[1]) for i, path in enumerate(self._integrations)]
        weights = [(W, W_star) for (W, _, _), (_, W_star) in zip(parts, self._weights, strict=True)]
        return self.weight_view(weights, np.array([a for _, a, _ in parts]), np.array([b for *_, b in parts])), 1.0

    def risk_errors(self) -> Array:
        """The error (n,) of the present risk: its difference to the companion's, inf where this failed before."""
        [(_, now)] = self.look()
        assert isinstance(now, OverlapView)
        risk, other = (_risks(view) for view in (now, self.second_view()[0]))
        is_followed = np.array([path.times[1] == path.times[0] for path in self._integrations])
        terms = np.fmax(self.replicas.risk_scales, np.abs(risk))
        return self._total_risk_errors(np.where(is_followed, np.abs(risk - other), np.inf) + self._least_error * terms)

    @property
    def passages(self) -> Array:
        """ODE times at which the targets were first reached (n, thresholds), inf where they were not."""
        return self._passages

    @property
    def end_time(self) -> Array:
        """The last ODE time (n,): of the last record, exit or divergence."""
        return self._times.copy()

    @classmethod
    def finds_levels(cls, options: NumericalOptions) -> bool:
        """Return True: exits may be on any level, as its kernel calls the exit rule in place of the risk."""
        return True

    @classmethod
    def diagnostics(
        cls, problem: Problem, options: NumericalOptions, observables: Collection[str]
    ) -> dict[str, Diagnostic]:
        """`risk_error`, with the error of the integration, if a risk is recorded."""
        if not OF_RISK.intersection(observables):
            return {}
        comment = "difference to a solution at ten times the tolerance; at least a tenth of the tolerance"
        return {"risk_error": Diagnostic((), RISK_ERROR | {"comment": comment})}

    @staticmethod
    def memory(problem: Problem, options: NumericalOptions) -> int:
        """The bytes of the weights and of the training set, and of the stages and states of two integrations."""
        return WeightDynamics.memory(problem, options) + 8 * ARRAYS_OF_STATE * problem.p * (problem.d + 2)

    @staticmethod
    def work(problem: Problem, time: float) -> float:
        """Twelve right-hand sides a step, ten steps and five a unit of time, of two solutions with all samples."""
        samples = problem.samples or 0  # None is refused by `check`
        return 2.0 * (60.0 * time + 120.0) * samples * problem.d * (4.0 * problem.p + 4.0)


def _is_unchecked(path: Integration) -> bool:
    """Whether the companion is behind for lack of time, not by a failure or for lack of steps, which last."""
    return bool(path.times[1] < path.times[0] and not (path.failed[1] or path.spent[1]))


def _risks(view: OverlapView) -> Array:
    """The population risks (n,) of a view."""
    fields = view.fields
    return fields.expectations.risks(fields.Q, fields.M, fields.P, fields.a, fields.a_star)


DYNAMICS.register("training_flow", TrainingFlow)
