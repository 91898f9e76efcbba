"""Replicas: the problems, starts and recording times of runs of one shape, independent of the dynamics.

n counts replicas, i is the number of one, L the number of blocks of coordinates in which inputs have one eigenvalue
each. Fields are the products λ, λ* of weights and inputs: their covariances are the overlaps Q, M, P where all
eigenvalues are one. Exits are found on the values of an exit rule, a function of fields' covariances: the risk, or that
of another observable (`ExitLevel`).
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.dynamics.diagnostics import ROUNDING
from sweeplib.networks.dynamics.label_means import LabelMeans
from sweeplib.networks.dynamics.lessons import Lessons
from sweeplib.networks.dynamics.second_layers import Regression, second_layers
from sweeplib.networks.kernels.disturbed_drifts import disturbed_drifts
from sweeplib.networks.kernels.loss_drifts import expectations_of_steps
from sweeplib.networks.kernels.numbers import Numbers
from sweeplib.networks.kernels.schedules import rates
from sweeplib.networks.maths.expectations import Expectations, Risks
from sweeplib.networks.maths.expectations.system import Drifts, System
from sweeplib.networks.maths.overlaps import Overlaps
from sweeplib.networks.numerics.compiled import call_by_address
from sweeplib.networks.problem import UPDATES, Criterion, Rule
from sweeplib.networks.problem.data import DATA
from sweeplib.networks.problem.targets import target
from sweeplib.networks.views import Blocks, ExitLevel, OverlapView

# its square, 1e-300, is the LEAST χ of networks/kernels/schedules.py, and still a normal double
FAINT = 1e-150
"""The least √Δ of labels that are signs: with it they are of either sign where f* = 0, as in the limit Δ → 0."""


class Starts(Protocol):
    """The initial states of replicas, computed on request."""

    def weights(self, i: int) -> tuple[Array, Array]:
        """W (p, d) and W* (k, d) of replica i."""
        ...

    def overlaps(self, i: int) -> Overlaps:
        """The overlaps of replica i."""
        ...

    def block_overlaps(self, i: int, multiplicities: Array) -> tuple[Array, Array, Array]:
        """Q (L, p, p), M (L, p, k), P (L, k, k) of blocks of `multiplicities` (L,) inputs, with the sums `overlaps`."""
        ...

    def teacher_overlaps(self, i: int) -> Array:
        """P (k, k) of replica i."""
        ...

    def particles(self, i: int, count: int | None) -> tuple[Array, Array]:
        """Overlaps m (count, k) and squared norms q (count,) of units of replica i; p units if `count` is None."""
        ...

    def offsets(self, i: int, count: int) -> Array:
        """Offsets b (count,) of units of replica i."""
        ...


@dataclass(frozen=True, eq=False)
class Replicas:
    """n runs of problems that share p, k, functions, loss, step, geometry, batches, schedules, data law.

    γ, Δ, d, seed and start may differ.

    activation, teacher_activation, target : names; the target's has the values of its parameters.
    criterion, rule : the loss, and what a step makes of the gradient, with their numbers.
    spherical : whether units of the student stay on their sphere, of norm √d.
    batch_size, repeats : samples of a batch, and steps that use it.
    schedule, noise_schedule : formulas of the factors ξ(t) of the learning rate and χ(t) of Δ, None for constant ones.
    parameters : by name, values (n,) of a problem's own parameters that are real numbers, such as γ; see `numbers`.
    d (n,) : dimensions.
    samples (n,) : sizes of the training sets; zero where samples are fresh, in all problems or in none.
    epochs (n,) : whether batches are passes through the training set.
    data : the data law.
    law : by name, values (n,) of the parameters of the data law; none if it has eigenvalues.
    eigenvalues, multiplicities (n, L) : of the inputs' covariance; one eigenvalue of all d unless the law has others.
    refit_keys (n,) uint64 : streams of the fresh samples to which observables fit the second layer.
    a (n, p), a_star (n, k) : second layers at the start.
    has_offsets : whether units have offsets, in all problems or in none.
    starts : the initial states, as weights, overlaps or particles; only the requested form is computed.
    keys, seeds (n,) uint64 : names of the streams of random numbers.
    times (n, n_times) : ODE times at which to record.
    thresholds (n_thresholds,) : exit thresholds.
    stop_at_exit : whether a replica may end at its last exit.
    levels (n,) : the observable whose fall makes an exit; the rules are one, the targets may differ.
    lessons : the tasks, if there are several; a and a_star are those of the present task.
    """

    activation: str
    teacher_activation: str
    target: str
    criterion: Criterion
    rule: Rule
    spherical: bool
    batch_size: int
    repeats: int
    schedule: str | None
    noise_schedule: str | None
    parameters: Mapping[str, Array]
    d: NDArray[np.int64]
    samples: NDArray[np.int64]
    epochs: NDArray[np.bool_]
    data: str
    law: Mapping[str, Array]
    eigenvalues: Array
    multiplicities: Array
    refit_keys: NDArray[np.uint64]
    a: Array
    a_star: Array
    has_offsets: bool
    starts: Starts
    keys: NDArray[np.uint64]
    seeds: NDArray[np.uint64]
    times: Array
    thresholds: Array
    stop_at_exit: bool
    levels: Sequence[ExitLevel]
    lessons: Lessons | None = None

    def __len__(self) -> int:
        return len(self.d)

    @property
    def replayed(self) -> Lessons | None:
        """The tasks, if steps may be of other tasks than the present one; otherwise None."""
        return self.lessons if self.lessons is not None and self.lessons.replays else None

    @property
    def scheduled(self) -> bool:
        """Whether the learning rate, the label noise or the weight of an average depends on the time."""
        return self.schedule is not None or self.noise_schedule is not None or self.has_averages

    @property
    def has_averages(self) -> bool:
        """Whether there are averages of the weights; replicas agree in this."""
        # exponential averages have a rate, those of equal or growing weights an order; either is zero without them
        return bool(self.numbers.averaging_rate[0] + self.numbers.averaging_order[0] > 0.0)

    @property
    def trains_second_layer(self) -> bool:
        """Whether the second layers are trained; replicas agree in this."""
        return bool(self.numbers.second_layer_rate[0] > 0.0)

    @property
    def drops(self) -> bool:
        """Whether steps leave out units."""
        return bool((self.numbers.keep_probability < 1.0).any())

    @property
    def has_input_noise(self) -> bool:
        """Whether the student's inputs have noise of their own."""
        return bool((self.numbers.input_noise > 0.0).any())

    @property
    def is_disturbed(self) -> bool:
        """Whether steps leave out units, or inputs have noise."""
        return self.drops or self.has_input_noise

    @property
    def gamma(self) -> Array:
        """The learning rates (n,)."""
        return self.parameters["gamma"]

    @property
    def Delta(self) -> Array:
        """The label-noise variances (n,)."""
        return self.parameters["Delta"]

    @cached_property
    def risk_scales(self) -> Array:
        """The sizes (n,) of the terms that cancel in the risk, for its rounding: the risks at the start with M = 0."""
        Q, M, P = self.fields
        return self.population.risks(Q, np.zeros_like(M), P, self.a, self.a_star)

    @cached_property
    def numbers(self) -> Any:
        """The `Numbers` of the replicas, each (n,), for kernels: the parameters, and d, T, the noise and √Δ."""
        numbers: dict[str, Array] = {"d": self.d.astype(float), "T": self.step_time}
        numbers["noise"] = self.gamma / (self.p * self.batch_size)
        numbers["deviation"] = np.maximum(np.sqrt(self.Delta), FAINT if self.criterion.signs else 0.0)
        return Numbers(**self.parameters, **numbers)

    def numbers_of(self, i: int) -> Any:
        """The `Numbers` of replica i, as floats."""
        return Numbers(*(float(values[i]) for values in self.numbers))

    @property
    def memory(self) -> Array:
        """The memory (n, 1) of the rule of the steps at the start, B of AdaGrad-norm; zero for rules without one."""
        memory_at_start = UPDATES[self.rule.update].memory
        return np.full((len(self), 1), memory_at_start(self.rule.numbers) if memory_at_start else 0.0)

    @property
    def p(self) -> int:
        """Student width."""
        return int(self.a.shape[1])

    @property
    def k(self) -> int:
        """Teacher width."""
        return int(self.a_star.shape[1])

    def at_phase(self, phase: int, a: Array, heads: Array | None) -> "Replicas":
        """The replicas in another `phase` of their tasks, with its second layers of student and teacher.

        a (n, p) : the student's second layer now. heads : those of all tasks now, None if the others have not changed.
        """
        assert self.lessons is not None
        before, replicas = self.lessons, copy.copy(self)
        lessons = replace(before, heads=before.layers(a, heads)[0][:, : before.heads.shape[1]].copy(), phase=phase)
        a_star = np.ascontiguousarray(before.a_star[:, before.order[phase]])
        # not `replace`, which would lose the cached properties: starts, overlaps and expectations stay
        vars(replicas).update(lessons=lessons, a=lessons.heads[:, lessons.head].copy(), a_star=a_star)
        vars(replicas).pop("risk_scales", None)  # of another task, by its second layers
        return replicas

    def weights(self, i: int) -> tuple[Array, Array]:
        """The initial weights W (p, d), W* (k, d) of replica i."""
        return self.starts.weights(i)

    def overlaps(self, i: int) -> Overlaps:
        """The initial overlaps Q (p, p), M (p, k), P (k, k) of replica i."""
        return self.starts.overlaps(i)

    def particles(self, i: int, count: int | None = None) -> tuple[Array, Array]:
        """The overlaps m (count, k) with the teacher and the squared norms q (count,) of initial units of replica i.

        With a `count` other than p, units are drawn from the same law. No p x p array is computed.
        """
        return self.starts.particles(i, count)

    def offsets(self) -> Array:
        """The offsets b (n, p) at the start, zero without offsets."""
        return np.array([self.starts.offsets(i, self.p) for i in range(len(self))])

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
        """Overlaps of teachers (n, k, k); no p x p array is computed."""
        return np.array([self.starts.teacher_overlaps(i) for i in range(len(self))])

    @cached_property
    def expectations(self) -> Expectations:
        """The Gaussian expectations of the target for the activations: risk and drifts of plain steps."""
        return target(self.target).expectations(self.activation, self.teacher_activation)

    @cached_property
    def equations(self) -> Expectations:
        """The Gaussian expectations with the drifts of the problem's loss and rule of steps."""
        names = self.activation, self.target, self.teacher_activation
        return expectations_of_steps(self.criterion, self.rule, self.expectations, self.p + self.k, *names)

    @property
    def exit_rule(self) -> Callable[..., None] | None:
        """The exit rule as `ExitLevel` has it, a function for kernels; None for the risk."""
        return self.levels[0].rule

    def exit_values(self, Q: Array, M: Array, P: Array, a: Array, a_star: Array) -> Array:
        """The values (n,) of the exit rule, by default the risk, at covariances of fields and second layers.

        Q (n, p, p), M (n, p, k), P (n, k, k), a (n, p), a_star (n, k).
        """
        rule = self.expectations if self.exit_rule is None else replace(self.expectations, risk=self.exit_rule)
        return rule.risks(Q, M, P, a, a_star)

    @cached_property
    def exit_values_at_start(self) -> Array:
        """The values (n,) of the exit rule at the start."""
        return self.exit_values(*self.fields, self.a, self.a_star)

    @property
    def targets(self) -> Array:
        """The values (n, n_thresholds) of the exit rule at which the thresholds are reached; −inf: never.

        A threshold is never reached where the fall to it is within the rounding of the value.
        """
        if not self.thresholds.size:  # the values of wide students take minutes
            return np.empty((len(self), 0))
        targets = self.targets_from(self.exit_values_at_start)
        fall = self.exit_values_at_start[:, None] - targets  # 0 where they are reached at the start
        return np.where((fall > 0.0) & (fall <= ROUNDING * self.exit_scales[:, None]), -np.inf, targets)

    @cached_property
    def exit_scales(self) -> Array:
        """The sizes (n,) of the terms of the exit rule's values, for rounding: the larger of start and M = 0."""
        Q, M, P = self.fields
        return np.fmax(np.abs(self.exit_values_at_start), self.exit_values(Q, np.zeros_like(M), P, self.a, self.a_star))

    def targets_from(self, values: Array) -> Array:
        """The values (n, n_thresholds) of the exit rule at which thresholds T are reached, from `values` (n,) at start.

        The observable is then 1 − T times what it is at the start.
        """
        if not self.thresholds.size:
            return np.empty((len(self), 0))
        P, shares = self.fields[2], (1.0 - self.thresholds).tolist()
        of_replicas = zip(self.levels, values.tolist(), P, self.a_star, strict=True)
        return np.array([[level.target(x, share, *teacher) for share in shares] for level, x, *teacher in of_replicas])

    def reached(self, targets: Array) -> NDArray[np.bool_]:
        """Return which of the `targets` (n, n_thresholds) of the exit rule are reached at the start."""
        return self.exit_values_at_start[:, None] <= targets if targets.size else np.zeros(targets.shape, bool)

    def drift_errors(
        self, fields: tuple[Array, Array, Array], a: Array, times: Array, *, stretch: float = 1.0
    ) -> Array:
        """The errors (n,) of the drifts, relative to the largest, by a finer rule of quadrature.

        fields : the covariances Q (n, p, p), M (n, p, k), P (n, k, k). a (n, p). times (n,) : ODE times, which set the
        label noise. stretch : the factor of Ω in Ψ^Var, 0 if the dynamics does not use it.
        The drifts are those of steps with dropout and noise of inputs, where there are any.
        """
        keep, noise = self.numbers.keep_probability, self.numbers.input_noise

        def disturbed(rule: Expectations, system: System, i: int) -> Drifts:
            return disturbed_drifts(rule, system, keep[i], noise[i], with_variance=stretch != 0.0)

        state, drifts_of = (*fields, a, self.a_star, self._noise_at(times)), disturbed if self.is_disturbed else None
        return self.equations.drift_errors(*state, stretch=stretch, drifts_of=drifts_of)

    def _noise_at(self, times: Array) -> Array:
        """The label-noise variances Δ χ(t) (n,) at ODE times (n,)."""
        if self.noise_schedule is None:
            return self.Delta
        factors = np.empty(len(self))
        call_by_address(rates(None, noise=self.noise_schedule).noise, np.ascontiguousarray(times), factors)
        return self.Delta * factors

    @property
    def of_labels(self) -> LabelMeans:
        """The functions for means over fresh labels, such as test loss and curvatures, which observables call."""
        return LabelMeans(self.criterion, self.activation, self.target, self.teacher_activation)

    @cached_property
    def population(self) -> Risks:
        """The risks over the inputs of the data law, which observables call; inputs need not be Gaussian."""
        return DATA[self.data].expectations(self.activation, self.expectations, **self.law)

    @property
    def has_spectrum(self) -> bool:
        """Whether inputs have eigenvalues other than one, so that the covariances of fields are not the overlaps."""
        return DATA[self.data].has_spectrum

    @cached_property
    def blocks(self) -> Blocks:
        """The overlaps of the blocks of inputs at the start; one block without a spectrum."""
        if not self.has_spectrum:
            return Blocks(self.eigenvalues, self.Q[:, None], self.M[:, None], self.P[:, None])
        overlaps = [self.starts.block_overlaps(i, sizes) for i, sizes in enumerate(self.multiplicities)]
        return Blocks(self.eigenvalues, *(np.array(array) for array in zip(*overlaps, strict=True)))

    @cached_property
    def fields(self) -> tuple[Array, Array, Array]:
        """The covariances Q, M, P (n, ·, ·) of the fields at the start: overlaps of blocks, weighted by eigenvalues."""
        return self.blocks.weighted() if self.has_spectrum else (self.Q, self.M, self.P)

    def law_numbers(self, i: int) -> Array:
        """The numbers of the data law of replica i, as kernels take them: √ of each input's variance, or parameters."""
        if self.has_spectrum:
            return np.repeat(np.sqrt(self.eigenvalues[i]), self.multiplicities[i].astype(int))
        return np.array(list(self.law_of(i).values()), float)

    def law_of(self, i: int) -> dict[str, float]:
        """The parameters of the data law of replica i, by name."""
        return {name: float(values[i]) for name, values in self.law.items()}

    def refitted(self, now: OverlapView, samples: NDArray[np.int64], ridge: Array) -> Array:
        """The second layers (n, p) of ridge regressions on fresh samples, at the overlaps of the view `now`.

        samples (n,) : their numbers, 0 for infinitely many. ridge (n,) : λ of the penalty.
        """
        regression = Regression(samples, ridge, self.refit_keys, self.seeds)
        return second_layers(now, regression, self.activation, self.target, self.teacher_activation)

    @cached_property
    def step_time(self) -> Array:
        """The ODE time γ/(p d) of one step, for each replica (n,)."""
        return self.gamma / (self.p * self.d)
