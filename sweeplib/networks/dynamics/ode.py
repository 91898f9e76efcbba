"""The deterministic limit of one-pass SGD for d → ∞ at fixed γ/p: the ODE of Saad and Solla (arXiv 2302.05882, eq. 7).

Ṁ = Ψ^M(Ω) − λM, Q̇ = Ψ^GF(Ω) + (γ/(p n_b)) Ψ^Var(Ω) − 2λQ, ȧ = ε (Ψ^a(Ω) − λ_a a) in time t = νγ/(pd), with the
decays λ and λ_a, projected for spherical students, with n_b fresh samples in a batch, for d → ∞ at fixed n_b and γ.
With a schedule γ ξ(t) all three have the factor ξ, and γ in front of Ψ^Var is γ ξ; labels have the noise Δ χ(t). Steps
with a factor h of c have h(|c|) c in place of c: 1/√B of AdaGrad-norm, Ḃ = tr Ψ^Var, and 1/(1 − β) of momentum, the
limit at fixed β; drifts of normalised and clipped steps are sums over nodes. Tangent steps are projected ones.
It is integrated twice: the solution at a tenth of the tolerance is recorded, and its difference to a companion solution
at ten times the tolerance, with drifts by a finer rule where they have no closed form, estimates its error. With
`finite_d`, the means of SGD at finite d are integrated instead, to first order in 1/d (`finite_size`).

A level is the value of the exit rule, by default the risk; a passage is the time at which it first is at a target. Of
n replicas `order` (m,) has the numbers of those that a call is about; arrays (n,), as `until`, have all replicas.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from sweeplib.engine.base.arrays import Array
from sweeplib.errors import InputError, SweeplibError
from sweeplib.networks.dynamics.block_equations import LIMIT_ERROR, MOMENTUM_ERROR, limit_errors
from sweeplib.networks.dynamics.diagnostics import (
    LARGEST_UNDECIDED,
    OF_RISK,
    RISK_ERROR,
    ROUNDING,
    Bound,
    Diagnostic,
    risk_bounds,
)
from sweeplib.networks.dynamics.dynamics import DYNAMICS, ONE_PASS, STEPS, NumericalOptions
from sweeplib.networks.dynamics.finite_size import FINEST, MeanIntegration, MeanSystem
from sweeplib.networks.dynamics.integrated import IntegratedDynamics, IntegrationOptions, passage_errors
from sweeplib.networks.dynamics.ode_limits import LIMITS, LIMITS_AT_FINITE_D
from sweeplib.networks.dynamics.overlap_dynamics import OverlapDynamics
from sweeplib.networks.dynamics.overlap_states import LOST, Overlaps, states_of
from sweeplib.networks.dynamics.replicas import Replicas
from sweeplib.networks.dynamics.step_moments import StepMoments
from sweeplib.networks.kernels.disturbed_drifts import disturbed_address
from sweeplib.networks.kernels.overlap_flow import Systems, inside_address
from sweeplib.networks.kernels.schedules import rates
from sweeplib.networks.maths.expectations import SLOW, Expectations
from sweeplib.networks.maths.expectations.addresses import drifts_address, risk_address
from sweeplib.networks.maths.overlaps import are_dependent, teacher_factors
from sweeplib.networks.numerics.integrators.integration import Integration
from sweeplib.networks.problem import AVERAGES, UPDATES, Limit, Problem
from sweeplib.networks.views import Lazy, OverlapView, View

SAFETY, COARSER = 0.1, 10.0
"""Factors of the requested tolerance, for the recorded solution and its companion."""
COARSEST = 1e-4
"""The largest relative tolerance of a companion, unless more is requested; implicit steps can break Ω ≥ 0."""
DEFAULT_RTOL, LARGEST_DEFAULT_RTOL, LEAST_BY_QUADRATURE = 1e-10, 1e-5, 1e-8
"""The relative tolerance without the option, if drifts have a closed form; its bounds if they are by quadrature."""
TOLERATED = 100.0
"""How many tolerances, times the terms of a risk, its error may be for no other reason: errors of steps add up."""
LOST_OF_COMPANION, LARGEST_LOST = 1e-3, 1e-12
"""The squared norm, over the absolute tolerance, at which a unit of a failing companion is lost; at most the second."""
LEAST_RTOL = 5e-14
"""The smallest relative tolerance above rounding."""


class OdeOptions(IntegrationOptions):
    """Options of the integration, and of the equations.

    finite_d : integrate the mean overlaps and mean risk of SGD to first order in 1/d, instead of the limit d → ∞.
    """

    finite_d: bool = False


class Ode(IntegratedDynamics, OverlapDynamics):
    """The deterministic trajectory of the overlaps of each replica."""

    name = "ode"
    label = "ODE"
    replicas_at_once = 256
    cost_seconds = (3e-11, 0.0, 0.0)
    reads = ONE_PASS | {"batch_size", "schedule", "tasks"} | STEPS | AVERAGES
    undefined: ClassVar[tuple[tuple[str, str], ...]] = (
        ("repeats samples sampling", "its samples are fresh at each instant"),
    )
    limits: ClassVar[tuple[Limit, ...]] = LIMITS
    unaffected_by = frozenset({"times", "thresholds"})
    takes_spectra = True
    uses_drifts = True
    Options: ClassVar[type[IntegrationOptions]] = OdeOptions
    options: IntegrationOptions

    def __init__(self, replicas: Replicas, options: IntegrationOptions) -> None:
        super().__init__(replicas, options)
        self._states = states_of(replicas)
        self._finite_d = isinstance(options, OdeOptions) and options.finite_d
        if self._finite_d and are_dependent(replicas.P).any():
            expected = "independent teacher rows with finite_d; or `finite_d: false`"
            raise InputError("no equations at finite d, as P is singular", key="initial", expected=expected)
        self._rtol = self._tolerances()
        equations = replicas.equations
        self._finer = equations.finer or equations
        self._solution, self._companion = self._integrations(self.replicas.targets)
        self.risk_error = np.zeros(len(replicas))
        if replicas.thresholds.size:
            self._finer_targets = replicas.targets_from(self._companion.levels(np.arange(len(replicas))))
            self._falls = replicas.exit_values_at_start[:, None] - self._finer_targets

    def _integrations(
        self, targets: Array, *before: Integration | MeanIntegration
    ) -> list[Integration | MeanIntegration]:
        """The solution, with `targets` (n, m), and its companion; they go on from two others, if given as `before`."""
        coarse, atol = np.clip(COARSER * self._rtol, None, np.maximum(self._rtol, COARSEST)), self.options.atol
        needed, starts = self.replicas.equations, cast(Any, before or (None, None))
        solution = self._integration(needed, SAFETY * self._rtol, SAFETY * atol, targets, False, starts[0])
        # the companion notes no passages
        companion = self._integration(self._finer, coarse, COARSER * atol, targets[:, :0], True, starts[1])
        return [solution, companion]

    def begin_phase(self, phase: int) -> None:
        """Begin a phase of the tasks: integrate the equations of its task, from where the solutions came."""
        super().begin_phase(phase)
        self._states = states_of(self.replicas)
        no_targets = np.empty((len(self.replicas), 0))
        self._solution, self._companion = self._integrations(no_targets, self._solution, self._companion)

    def _integration(
        self,
        needed: Expectations,
        rtol: Array,
        atol: float,
        targets: Array,
        trembling: bool,
        before: Integration | None,
    ) -> Integration | MeanIntegration:
        """The replicas' solutions by the drifts of `needed`, at tolerances rtol (n,) and atol, after `before` if given.

        targets (n, m) : levels whose passages are sought. trembling : whether they are companions, which show what
        rounding does to small variables, and may lose more small units.
        """
        replicas, states = self.replicas, self._states
        equations = states.equations(self.systems(needed))
        starts = states.starts() if before is None else states.starts_after(before.states)
        ends, rtol = np.ascontiguousarray(replicas.times[:, -1]), np.maximum(rtol, LEAST_RTOL)
        options: dict[str, Any] = {"rtol": rtol, "atol": np.full(len(replicas), atol), "targets": targets}
        most = self.options.max_steps
        if not self._finite_d:
            # a solution that fails where a unit comes to zero goes on `beyond`, without this unit
            lost = min(max(LOST, LOST_OF_COMPANION * atol), LARGEST_LOST) if trembling else LOST
            options |= {"longest": self.longest_step, "beyond": partial(states.without_lost_units, least=lost)}
            return Integration(equations, starts, ends, **options, max_steps=most, after=before, trembling=trembling)
        systems = [
            MeanSystem(equations, i, StepMoments(replicas, i, trained=replicas.trains_second_layer), step_time)
            for i, step_time in enumerate(replicas.step_time.tolist())
        ]
        return MeanIntegration(systems, starts, ends, **options, max_steps=most)

    @property
    def _adapts(self) -> bool:
        """Whether steps have the factor 1/√B."""
        return UPDATES[self.replicas.rule.update].memory is not None

    @property
    def _factor(self) -> float:
        """The factor of c in steps of the weights; with momentum 1/(1 − β), the limit d → ∞ at fixed β."""
        step, numbers = UPDATES[self.replicas.rule.update], self.replicas.rule.numbers
        return 1.0 / (1.0 - numbers[0]) if step.has_velocities else 1.0

    def _tolerances(self) -> Array:
        """The relative tolerance (n,) of each replica: the option, or half of the error of the drifts at the start."""
        start, needed = self.replicas, self.replicas.equations
        finest = FINEST / SAFETY if self._finite_d else DEFAULT_RTOL
        if self.options.rtol is not None or needed.finer is None:
            rtol = self.options.rtol or DEFAULT_RTOL
            return np.full(len(start), max(rtol, finest) if self._finite_d else rtol)
        errors = self.drift_errors(start.fields, start.a, np.zeros(len(start)))
        return np.clip(0.5 * errors, max(finest, LEAST_BY_QUADRATURE), LARGEST_DEFAULT_RTOL)

    def _numbers(self) -> Any:
        """The `Numbers` of the equations, whose noise is the factor (n,) of Ψ^Var."""
        return self.replicas.numbers

    def systems(self, needed: Expectations) -> Systems:
        """The constants of the equations, with the drifts of `needed` and the exit rule as the level."""
        replicas = self.replicas
        P, a, a_star = map(np.ascontiguousarray, (replicas.fields[2], replicas.a, replicas.a_star))
        rules = needed.pair, drifts_address(needed.drifts), risk_address(replicas.exit_rule or needed.risk)
        projected = needed.pair.nodes.size and not self._finite_d
        L_star = teacher_factors(P) if projected else P[:0]
        _, xi, _, anneals, chi = rates(replicas.schedule, noise=replicas.noise_schedule)
        end, layers = np.ascontiguousarray(replicas.times[:, -1]), (P, a, a_star)
        kinds, numbers = (replicas.spherical, replicas.trains_second_layer), self._numbers()
        schedules: Any = replicas.scheduled, xi, anneals, chi, end
        others: Any = self._factor, self._adapts, replicas.is_disturbed, disturbed_address(replicas.is_disturbed)
        return Systems(*kinds, numbers, *layers, *rules, L_star, inside_address(), *schedules, *others)

    def advance(self, to: int, deadline: float = np.inf) -> None:
        """Integrate each running replica, and then its companion, to recording time number `to`, or time it out."""

        def late() -> bool:
            return self.clock() > deadline

        until, order = np.ascontiguousarray(self.replicas.times[:, to]), np.flatnonzero(self.running)
        self._solution.advance(order, until, stops=self.replicas.stop_at_exit, late=late)
        self._check_steps(order, until)
        self._note_exit_errors(late)
        # the last exit has taken some companions to this time already
        before = order[self._companion.times[order] < self._times[order]]
        self._companion.advance(before, self._times, stops=False, late=late)
        self.diverged |= self._solution.failed
        unchecked = (self._companion.times < self._times) & ~self._companion.failed & ~self._companion.spent
        self.stop_those_behind((self._times < until) | unchecked)
        self._observe()

    def _note_exit_errors(self, late: Callable[[], bool]) -> None:
        """Note the errors of new exits, by the levels to which the companion comes at their times; NaN if it is `late`.

        It is brought to the exits of a replica in their order; an exit at time zero has no error.
        """
        new = np.isnan(self.passage_errors) & (self.passages <= self._times[:, None])
        while (order := np.flatnonzero(new.any(axis=1))).size:
            first = np.where(new, self.passages, np.inf)[order].argmin(axis=1)
            until = self._times.copy()
            until[order] = self.passages[order, first]
            self._companion.advance(order, until, stops=False, late=late)
            errors = self._level_errors(order, self._finer_targets[order, first])
            missing = np.where(self._companion.failed[order], np.inf, np.nan)
            errors = np.where(self._companion.times[order] == until[order], errors, missing)
            errors = passage_errors(errors, self._falls[order, first], self._solution.passage_rates[order, first])
            self.passage_errors[order, first] = np.where(until[order] > 0.0, errors, 0.0)
            new[order, first] = False

    def _level_errors(self, order: NDArray[np.intp], targets: Array) -> Array:
        """The errors of the levels of the solutions in `order` when they are at `targets`, where the companion is now.

        They are at least a tenth of the tolerance, or rounding.
        """
        slow = SLOW if self.replicas.equations.finer else 1.0
        least = np.maximum(SAFETY * self._rtol, ROUNDING)[order] * self.replicas.exit_scales[order]
        of_forms = self._finer.form_errors(np.abs(targets), self.a[order], self.replicas.a_star[order])
        return slow * np.abs(self._companion.levels(order) - targets) + least + of_forms

    def _check_steps(self, order: NDArray[np.intp], until: Array) -> None:
        """Raise SweeplibError, which ends all runs, if a solution in `order` took all its steps before `until` (n,)."""
        spent = order[self._solution.spent[order] & (self._times < until)[order] & ~self._solution.failed[order]]
        if spent.size:
            raise SweeplibError(f"the ODE needs more than max_steps steps; it is at time {self._times[spent[0]]:.6g}")

    def _observe(self) -> None:
        """Set the overlaps to those of the states, with the nearest Q for which Ω ≥ 0, and the risk's error and bounds.

        The error is the difference to the companion's risk. As the two may agree by chance, it is at least the
        tolerance of the recorded solution, or rounding, times the terms. The bounds allow `TOLERATED` tolerances.
        """
        if isinstance(self._solution, MeanIntegration):
            self.Q, self.M, self.a = self._overlaps_of(self._solution)
        else:
            vars(self).update(self._states.values(self._solution.states))
        Q, M, _ = self.fields
        terms = self._risks(Q, np.zeros_like(M), self.a)
        least = np.maximum(SAFETY * self._rtol, ROUNDING)
        risk, other = self._recorded_risks(), self._risks_of(self._companion, self._finer)
        slow = SLOW if self.replicas.equations.finer else 1.0
        of_forms = self._finer.form_errors(risk, self.a, self.replicas.a_star)
        error = slow * np.abs(risk - other) + least * terms + of_forms
        # a companion that failed before says nothing of the error now
        self.risk_error = np.where(self._companion.times == self._times, error, np.inf)
        explained = np.maximum(1.0, TOLERATED * self._rtol / LARGEST_UNDECIDED) * terms
        self._bounds = tuple(
            bound for values in (risk, other) for bound in risk_bounds(values, self.risk_error, explained)
        )

    def _overlaps_of(self, path: Integration | MeanIntegration) -> Overlaps:
        """The Q, M and a of a solution: covariances of fields, with Ω ≥ 0; at finite d the mean overlaps.

        They are means over runs to first order in 1/d, which need not have Ω ≥ 0.
        """
        of_states = self._states.overlaps if isinstance(path, MeanIntegration) else self._states.fields
        return of_states(path.states)

    def _recorded_risks(self) -> Array:
        """Return the risks (n,) of the solution now, with the corrections of finite d if the equations have them."""
        if self._finite_d:
            return self._risks_of(self._solution, self.replicas.expectations)
        Q, M, _ = self.fields
        return self._risks(Q, M, self.a)

    def _risks_of(self, path: Integration | MeanIntegration, needed: Expectations) -> Array:
        """The risks (n,) of a solution by the rule of `needed`; at finite d its mean risks."""
        return path.risks if isinstance(path, MeanIntegration) else self._risks(*self._overlaps_of(path), needed)

    def look(self) -> list[tuple[Array, View]]:
        """The view of the state or, with `finite_d`, a weighted view of each member of the replicas' ensembles."""
        if not isinstance(self._solution, MeanIntegration):
            return super().look()
        members, weights = self._solution.ensembles()
        return [
            (weight, self.overlap_view(*self._states.overlaps(member)))
            for weight, member in zip(weights.T, members.swapaxes(0, 1), strict=True)
        ]

    def second_view(self) -> tuple[OverlapView, float]:
        """The view of the companion, and the factor that makes errors of differences to it: its rule may be finer."""
        values = self._states.values(self._companion.states)
        view = self.overlap_view(values["Q"], values["M"], values["a"], by_block=lambda: values.get("by_block"))
        view.average = lambda: values.get("average")
        return view, SLOW if self.replicas.equations.finer else 1.0

    @classmethod
    def finds_levels(cls, options: NumericalOptions) -> bool:
        """Return whether it integrates the limit d → ∞: of means at finite d only the risk is known."""
        return not (isinstance(options, OdeOptions) and options.finite_d)

    @classmethod
    def diagnostics(
        cls, problem: Problem, options: NumericalOptions, observables: Collection[str]
    ) -> dict[str, Diagnostic]:
        """The errors of the drifts, of the risk if an observable has it, and of the limit d → ∞ where it is known."""
        diagnostics = super().diagnostics(problem, options, observables)
        if OF_RISK.intersection(observables):
            comment = (
                "difference to a solution at ten times the tolerance, by a finer rule of quadrature; at least a tenth "
                "of the tolerance"
            )
            if isinstance(options, OdeOptions) and options.finite_d:
                comment += "; without that of the expansion, whose terms of order 1/d^2 are left out"
            diagnostics["risk_error"] = Diagnostic((), RISK_ERROR | {"comment": comment})
        if problem.has_spectrum or UPDATES[problem.update].has_velocities:
            diagnostics["limit_error"] = LIMIT_ERROR if problem.has_spectrum else MOMENTUM_ERROR
        return diagnostics

    def diagnosed(self) -> Mapping[str, Lazy]:
        """The errors of risk and drifts; with several eigenvalues or momentum also the relative one of d → ∞."""
        replicas, values = self.replicas, dict(super().diagnosed())
        if replicas.has_spectrum or UPDATES[replicas.rule.update].has_velocities:
            values["limit_error"] = self._factor**2 * limit_errors(replicas)
        return values

    def risk_errors(self) -> Array:
        """The error (n,) of the present risk, of the integration and of the quadrature."""
        return self.risk_error

    def bounds(self) -> Sequence[Bound]:
        """The bounds of the risk and of that of the companion.

        An error below a hundred tolerances, or 1e-6, times the terms of the risk is explained. Where one solution has
        blown up, the risk of the other is smaller than their difference.
        """
        return self._bounds

    def _risks(self, Q: Array, M: Array, a: Array, needed: Expectations | None = None) -> Array:
        """The risks (n,) at covariances of fields and a (n, p), by the rule of `needed`, the usual one if None."""
        return (needed or self.replicas.expectations).risks(Q, M, self.replicas.fields[2], a, self.replicas.a_star)

    @property
    def _times(self) -> Array:
        return self._solution.times

    @property
    def evaluations(self) -> NDArray[np.int64]:
        """The number of right-hand sides evaluated so far (n,)."""
        return self._solution.evaluations + self._companion.evaluations

    @property
    def passages(self) -> Array:
        """ODE times at which the targets were first reached (n, thresholds), inf where they were not."""
        return self._solution.passages

    @property
    def end_time(self) -> Array:
        """The last ODE time (n,): of the last record, exit or divergence."""
        return self._times.copy()

    @classmethod
    def limits_of(cls, options: NumericalOptions) -> tuple[Limit, ...]:
        """The limits with these options; with `finite_d` also those of the equations at finite d."""
        at_finite_d = isinstance(options, OdeOptions) and options.finite_d
        return (*cls.limits, *LIMITS_AT_FINITE_D) if at_finite_d else cls.limits

    @staticmethod
    def work(problem: Problem, time: float) -> float:
        """Twelve right-hand sides a step, ten steps and five a unit of time, times the entries of the fourth moments.

        Dropout takes drifts at a second layer for each unit and each pair; noise of inputs doubles the teacher's rows.
        """
        p, k = problem.p, problem.k * (1 if problem.input_noise == 0.0 else 2)
        calls = 1 if problem.keep_probability == 1.0 else 1 + 2 * p + p * (p - 1) // 2
        return (60.0 * time + 120.0) * (2000.0 + 10.0 * calls * p**2 * (p + k) ** 2)


DYNAMICS.register("ode", Ode)
