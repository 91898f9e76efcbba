"""The deterministic map of the overlaps by steps of SGD with fresh batches: the limit d → ∞ at fixed n_b/d and γ/d.

A step of length T = γ/(pd) with n_b fresh samples has the mean

    ΔM = T Ψ^M,    ΔQ = T Ψ^GF + T² [(d/n_b) Ψ^Var + (1 − 1/n_b) DΩDᵀ],    Δa = ε T Ψ^a,

exact up to a relative error of order 1/d² for plain students, with Ψ^Var at Ω (1 + 2/d) and the products DΩDᵀ of the
mean gradients, from pairs of different samples (`mean_gradients`). With decays, s = λ T, M is first multiplied by
1 − s, Q by (1 − s)² and T Ψ^GF by 1 − s, and Ψ^a has −λ_a a beside it. Spherical students are divided by their norms
after each step. Noise of the weights at the temperature T_w adds 2 T_w T to Q_ii before that, and 2 T_w T d_b/d in a
block of inputs. Tangent steps, with g = diag G and norms 1, have Ψ^M − gM, G − gQ in place of G, of which Ψ^GF is the
sum with its transpose, and DΩDᵀ − gGᵀ − Gg + gQg (`along_sphere`). With a schedule γ ξ(t), T has the factor ξ of the
middle of the step. Every step starts from the mean of the one before. This neglects the fluctuations of the overlaps,
of relative order 1/√min(n_b, d); they would change the means by the square of that.

Where inputs have several eigenvalues, the overlaps of each block have such steps, with the slopes D of the mean
gradients at the fields' Ω = Σ λ_b Ω_b and τ_b = λ_b d_b/d,

    ΔM_b = T λ_b (DΩ_b)_*,    ΔQ_b = T λ_b [DΩ_b + transpose] + T² [(d/n_b) τ_b Ψ^Var + (1 − 1/n_b) λ_b² DΩ_bDᵀ],

up to a relative error of order λ_max/d.

Steps that are normalised, clipped, of AdaGrad-norm or with momentum are in `map_steps`. The factors of the first three
fluctuate at relative order 1/√min(n_b, d), so that means have errors of the order 1/min(n_b, d).

For n_b → ∞ it is gradient descent on the population risk at a finite rate. For T → 0 at fixed γ/n_b its steps are
those of the Euler method for the ODE: `ode` is then faster.

`order` (m,) are the numbers, of all n, of the replicas that take a step: they are the first axis of arrays (m, ...). Q,
M have a second axis of L blocks, (m, L, p, p), if inputs have several eigenvalues; `fields` are covariances Q (m, p,
p), M (m, p, k), P (m, k, k). `of_rule` is what the rule of steps keeps: its memory (m,), its velocities, or nothing.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.dynamics.dynamics import DECAYS, DYNAMICS, ONE_PASS, UPDATE, NumericalOptions
from sweeplib.networks.dynamics.map_steps import (
    LIMITS,
    Velocities,
    along_sphere,
    rescaled_times,
    resting_velocities,
    spectral_matrices,
    with_velocities,
)
from sweeplib.networks.dynamics.replicas import Replicas
from sweeplib.networks.dynamics.step_dynamics import StepDynamics
from sweeplib.networks.kernels.lanes import OVERFLOW
from sweeplib.networks.kernels.numbers import Numbers
from sweeplib.networks.kernels.overlap_flow import ROUNDING
from sweeplib.networks.kernels.schedules import rates
from sweeplib.networks.maths.expectations import SLOW, Expectations
from sweeplib.networks.maths.expectations.system import Drifts, System
from sweeplib.networks.maths.mean_gradients import mean_gradient_products, mean_slopes, resolution_of
from sweeplib.networks.maths.overlaps import blocks_on_sphere, nearest_covariances, on_sphere
from sweeplib.networks.numerics.compiled import call_by_address
from sweeplib.networks.problem import TAILS, UPDATES, Problem, problem_expectations
from sweeplib.networks.views import Blocks, OverlapView

Order = NDArray[np.intp]
"""Numbers (m,) of replicas."""
Fields = tuple[Array, Array, Array]
"""Covariances Q, M and P of fields."""


class OverlapMap(StepDynamics):
    """Replicas of the map, all of which take a step at a time.

    A state is Q, M, a and what the rule keeps. Where drifts are by quadrature, a companion takes the same steps by the
    finer rule, to estimate the error.

    _rule_state : what the rule keeps, as `of_rule`. _resolution (n,) : that of the mean gradients (`resolution_of`).
    """

    name = "overlap_map"
    label = "overlap map"
    replicas_at_once = 256
    stochastic = False
    uses_drifts = True
    drifts_of_updates = False
    reads = ONE_PASS | {"batch_size", "schedule", "temperature"} | DECAYS | UPDATE
    undefined = (
        ("repeats samples sampling", "its batches are fresh at each step"),
        (" ".join(sorted(TAILS)), "of the noise of many labels it knows the variance alone"),
    )
    limits = LIMITS
    unaffected_by = frozenset({"times", "thresholds"})
    takes_spectra = True

    def __init__(self, replicas: Replicas, options: NumericalOptions) -> None:
        super().__init__(replicas, options)
        self._finer = replicas.expectations.finer
        self._rule_state = self._rule_state_at_start()
        self._companion = tuple(array.copy() for array in self._state) if self._finer else None
        self._rates = rates(replicas.schedule, self.stride)
        start = replicas.a, replicas.a_star, replicas.Delta
        self._resolution = resolution_of(replicas.expectations, *replicas.fields, *start)

    @property
    def _overlaps(self) -> tuple[Array, Array]:
        """The overlaps that steps change: Q and M, or those of each block of inputs."""
        return (self.Q, self.M) if self.by_block is None else self.by_block

    @property
    def _state(self) -> tuple[Array, ...]:
        """The arrays that steps change."""
        return *self._overlaps, self.a, *self._rule_state

    def _rule_state_at_start(self) -> tuple[Array, ...]:
        """What the rule of steps keeps, at the start: velocities at rest, its memory (n,), or nothing."""
        step = UPDATES[self.replicas.rule.update]
        if step.has_velocities:
            return resting_velocities(self._overlaps[1])
        return (self.replicas.memory[:, 0].copy(),) if step.memory is not None else ()

    def _definite(self, Q: Array, M: Array) -> Array:
        """Q, or Q_b of each block, replaced by the nearest with Ω ≥ 0 where Ω is indefinite at M."""
        if self.by_block is None:
            return nearest_covariances(Q, M, self.replicas.P)
        P = self.replicas.blocks.P
        return np.stack([nearest_covariances(Q[:, b], M[:, b], P[:, b]) for b in range(Q.shape[1])], axis=1)

    def advance(self, to: int, deadline: float = np.inf) -> None:
        """Take steps until every running replica is at recording time number `to`, where Q is made one with Ω ≥ 0."""
        while (order := self.behind(to)).size:
            self._take_step(order)
            self.stop()
            if self.clock() > deadline:
                self.give_up()
        Q, M = self._overlaps
        Q = self._definite(Q, M)
        if self.by_block is None:
            self.Q = Q
        else:
            self.by_block, self.Q, self.M = (Q, M), Q.sum(axis=1), M.sum(axis=1)
        if self._companion:
            Q, M, *others = self._companion
            self._companion = self._definite(Q, M), M, *others

    def end_state(self) -> Array:
        """The states (n, size) of replicas and, behind them, of companions, flat."""
        parts = *self._state, *(self._companion or ())
        return np.concatenate([array.reshape(len(array), -1) for array in parts], axis=1)

    def go_on(self, earlier: Mapping[str, Array]) -> None:
        """Go on from runs that ended earlier, whose records these are: from their `end_state`."""
        super().go_on(earlier)
        parts = *self._state, *(self._companion or ())
        ends = np.cumsum([array[0].size for array in parts])[:-1]
        for array, values in zip(parts, np.split(earlier["end_state"], ends, axis=1), strict=True):
            array[:] = values.reshape(array.shape)

    @classmethod
    def finds_levels(cls, options: NumericalOptions) -> bool:
        """Return True: exits may be on any level."""
        return True

    @classmethod
    def state_size(cls, problem: Problem, options: NumericalOptions) -> int:
        """The count of numbers in Q and M of each block, a, and what the rule keeps; twice that with a companion."""
        step, blocks, p = UPDATES[problem.update], len(problem.blocks[0]), problem.p
        velocities = 2 * p + problem.k if step.has_velocities else 0
        size = blocks * p * (p + problem.k + velocities) + p + (step.memory is not None)
        return size * (2 if problem_expectations(problem).finer else 1)

    def second_view(self) -> tuple[OverlapView, float] | None:
        """The view of the companion, and the error of an observable over its difference to that of the companion."""
        if self._companion is None:
            return None
        Q, M, a = self._companion[:3]
        of_all = (Q, M) if self.by_block is None else (Q.sum(axis=1), M.sum(axis=1))
        return self.overlap_view(of_all[0], of_all[1], a, by_block=lambda: (Q, M)), SLOW

    def drift_errors(self, fields: Fields, a: Array, times: Array) -> Array:
        """The errors (n,) of the drifts of plain steps, of which all other steps are made."""
        return self.replicas.expectations.drift_errors(*fields, a, self.replicas.a_star, self.replicas.Delta)

    @np.errstate(over="ignore", invalid="ignore")  # in runs that diverged
    def risk_errors(self) -> Array | None:
        """The error (n,) of the present risk: its own, and its difference to that of the map by a finer rule."""
        replicas = self.replicas
        if self._finer is None or self._companion is None:
            return super().risk_errors()
        Q, M, a = self._companion[:3]
        everyone = np.arange(len(replicas))
        finer = self._finer.risks(*self._fields_of(everyone, Q, M), a, replicas.a_star)
        usual = replicas.expectations.risks(*self._fields_of(everyone, *self._overlaps), self.a, replicas.a_star)
        return self._total_risk_errors(SLOW * np.abs(finer - usual))

    @np.errstate(over="ignore", invalid="ignore")  # in runs that diverge
    def _take_step(self, order: Order) -> None:
        """Take a step of the replicas in `order`, and of their companions; note exits and divergences."""
        state = self._state
        T, rule = self._step_time(order), self.replicas.expectations
        for old, values in zip(state, self._stepped(order, T, rule, state), strict=True):
            old[order] = values
        if self._companion and self._finer:
            for old, values in zip(self._companion, self._stepped(order, T, self._finer, self._companion), strict=True):
                old[order] = values
        self.step[order] += 1
        self._note(order)

    def _stepped(self, order: Order, T: Array, rule: Expectations, state: tuple[Array, ...]) -> tuple[Array, ...]:
        """The state of the replicas in `order` after a step of the time T (m,), by a `rule` for the drifts.

        state : that of all replicas before, or of all companions.
        """
        replicas, (Q, M, a, *of_rule) = self.replicas, (array[order] for array in state)
        fields = self._fields_of(order, Q, M)
        drifts = self._drifts(order, rule, *fields, a)
        numbers = Numbers(*(values[order] for values in replicas.numbers))
        force = drifts.a - numbers.second_layer_decay[:, None] * a
        a = a + (numbers.second_layer_rate * T)[:, None] * force
        step = self._step_of_all if self.by_block is None else self._step_of_blocks
        Q, M, *of_rule = step(order, T, drifts, fields, Q, M, *of_rule)
        return Q, M, a, *of_rule

    def _step_of_all(
        self, order: Order, T: Array, drifts: Drifts, fields: Fields, Q: Array, M: Array, *of_rule: Array
    ) -> tuple[Array, ...]:
        """Q (m, p, p), M (m, p, k) and what the rule keeps after a step, for inputs of one eigenvalue.

        T (m,) : the time of the step. drifts, fields : those before it, as Q, M and `of_rule`.
        """
        replicas, n_b, step = self.replicas, self.replicas.batch_size, UPDATES[self.replicas.rule.update]
        resolution = self._resolution[order]
        products, _ = mean_gradient_products(drifts.M, drifts.GF, *fields, resolution)
        noise = (replicas.d[order] / n_b)[:, None, None] * drifts.Var
        if step.is_tangent:
            slopes = mean_slopes(drifts.M, drifts.GF, *fields, resolution)
            drifts, products = along_sphere(drifts, products, slopes, Q, M)
        square = noise + (1.0 - 1.0 / n_b) * products
        shrinkage = 1.0 - replicas.numbers.weight_decay[order][:, None, None] * T[:, None, None]
        heat = self._heat(order, T)
        T, *rule_state = self._rescaled(order, T, square, *of_rule)
        long = T[:, None, None]
        if step.has_velocities or step.spectrum:
            D, D_star = mean_slopes(drifts.M, drifts.GF, *fields, resolution)
            means = drifts.M, D @ Q + D_star @ M.swapaxes(1, 2), (D, D_star), square
            Q, M, *rule_state = self._step_of_velocities(order, long, 1.0, means, shrinkage, Q, M, *of_rule)
        else:
            M = shrinkage * M + long * drifts.M
            Q = shrinkage**2 * Q + shrinkage * long * drifts.GF + (T * T)[:, None, None] * square
        Q, M, *rule_state = self._on_sphere(Q + heat, M, *rule_state)
        # the products above are symmetric to rounding only
        return 0.5 * (Q + Q.transpose(0, 2, 1)), M, *rule_state

    def _on_sphere(self, Q: Array, M: Array, *of_rule: Array) -> tuple[Array, ...]:
        """Q, M and what the rule keeps, with the rows of spherical students divided by their norms, velocities not."""
        if not self.replicas.spherical:
            return Q, M, *of_rule
        if UPDATES[self.replicas.rule.update].has_velocities:
            N, S, U = of_rule
            norms = np.sqrt(np.einsum("nii->ni", Q if self.by_block is None else Q.sum(axis=1)))[:, :, None]
            of_rule = N, S / (norms if self.by_block is None else norms[:, None]), U
        return *(on_sphere if self.by_block is None else blocks_on_sphere)(Q, M), *of_rule

    def _step_of_velocities(
        self,
        order: Order,
        T: Array,
        values: Array | float,
        means: tuple[Array, Array, tuple[Array, Array], Array],
        shrink: Array,
        Q: Array,
        M: Array,
        *of_rule: Array,
    ) -> tuple[Array, ...]:
        """Return Q, M and the velocities of the replicas in `order` after a step of momentum, or a spectral one.

        values : eigenvalues (m, L, 1, 1) of the blocks of inputs; 1 without blocks.
        means : Ψ^M, G and D, each over the eigenvalue, and K. T, shrink : time and 1 − s, with as many axes as Q.
        """
        replicas, rule = self.replicas, self.replicas.rule
        (of_M, of_Q, (D, D_star), square), step = means, UPDATES[rule.update]
        before = Velocities(*of_rule) if step.has_velocities else resting_velocities(M)
        # a spectral step has the time T in its matrices, and 1 in place of T in its velocities
        beta, unit = rule.numbers[0] if step.has_velocities else 0.0, T if step.spectrum is None else np.ones_like(T)

        def matrix_of(U: Array) -> Array:
            """Return H = T h(U/d) (m, p, p), or (m, 1, p, p) by block, with which velocities of products U move."""
            whole = U if self.by_block is None else U.sum(axis=1)
            matrices = spectral_matrices(rule, whole / replicas.d[order, None, None])
            return T * (matrices if self.by_block is None else matrices[:, None])

        turns = unit * values * (D @ before.S + D_star @ before.N.swapaxes(-1, -2))
        terms = (unit * values * of_M, unit * values * of_Q), turns, unit**2 * square
        Q, M, *after = with_velocities(Q, M, before, beta, *terms, matrix_of if step.spectrum else None, shrink)
        return Q, M, *(after if step.has_velocities else ())

    def _rescaled(self, order: Order, T: Array, square: Array, *of_rule: Array) -> tuple[Array, ...]:
        """T (m,) times the rule's factors of gradients with products `square`/d (m, p, p), and what the rule keeps."""
        rule = self.replicas.rule
        if UPDATES[rule.update].factor is None:
            return T, *of_rule
        norms = np.trace(square, axis1=1, axis2=2) / self.replicas.d[order]
        times, memory = rescaled_times(rule, T, norms, of_rule[0] if of_rule else np.zeros(len(T)))
        return times, *([memory] if of_rule else [])

    def _heat(self, order: Order, T: Array) -> Array:
        """What noise of the weights adds to Q (m, p, p) in steps of the times T (m,)."""
        return (2.0 * self.replicas.numbers.temperature[order] * T)[:, None, None] * np.eye(self.replicas.p)

    def _fields_of(self, order: Order, Q: Array, M: Array) -> Fields:
        """The covariances of the fields of the replicas in `order`, by their overlaps or those of their blocks."""
        replicas = self.replicas
        if self.by_block is None:
            return Q, M, replicas.P[order]
        return Blocks(replicas.eigenvalues[order], Q, M, replicas.blocks.P[order]).weighted()

    def _step_of_blocks(
        self, order: Order, T: Array, drifts: Drifts, fields: Fields, Q: Array, M: Array, *of_rule: Array
    ) -> tuple[Array, ...]:
        """Q_b (m, L, p, p), M_b (m, L, p, k) and what the rule keeps after a step, for inputs of L blocks.

        T (m,) : the time of the step. drifts, fields : those before it, of all inputs, as Q, M and `of_rule`.
        """
        replicas, n_b = self.replicas, self.replicas.batch_size
        D, D_star = (array[:, None] for array in mean_slopes(drifts.M, drifts.GF, *fields, self._resolution[order]))
        # DΩ_b along student and teacher, and DΩ_bDᵀ
        X, Y = D @ Q + D_star @ M.swapaxes(2, 3), D @ M + D_star @ replicas.blocks.P[order]
        products = X @ D.swapaxes(2, 3) + Y @ D_star.swapaxes(2, 3)
        values = replicas.eigenvalues[order][:, :, None, None]
        noise = values * replicas.multiplicities[order][:, :, None, None] / n_b * drifts.Var[:, None]
        square = noise + (1.0 - 1.0 / n_b) * values**2 * products
        shrinkage = 1.0 - replicas.numbers.weight_decay[order][:, None, None, None] * T[:, None, None, None]
        shares = replicas.multiplicities[order] / replicas.d[order, None]
        heat = shares[:, :, None, None] * self._heat(order, T)[:, None]
        T, *rule_state = self._rescaled(order, T, square.sum(axis=1), *of_rule)
        long = T[:, None, None, None]
        if UPDATES[replicas.rule.update].has_velocities or UPDATES[replicas.rule.update].spectrum:
            means = Y, X, (D, D_star), square
            Q, M, *rule_state = self._step_of_velocities(order, long, values, means, shrinkage, Q, M, *of_rule)
        else:
            M = shrinkage * M + long * values * Y
            Q = shrinkage**2 * Q + shrinkage * long * values * (X + X.swapaxes(2, 3))
            Q += long**2 * square
        Q = Q + heat
        return self._on_sphere(0.5 * (Q + Q.swapaxes(2, 3)), M, *rule_state)

    def _step_time(self, order: Order) -> Array:
        """The time T (m,) of the next step of the replicas in `order`, with the schedule's factor ξ."""
        T: Array = self.replicas.step_time[order]
        if not self._rates.varying:
            return T
        times, factors = (self.step[order] + 0.5) * T, np.empty(len(order))
        call_by_address(self._rates.rates, times, factors)
        return T * factors

    def _drifts(self, order: Order, rule: Expectations, Q: Array, M: Array, P: Array, a: Array) -> Drifts:
        """The drifts of the replicas in `order`, with m as first axis, by a rule at covariances Q, M, P of fields."""
        replicas = self.replicas
        stretch = 1.0 + (2.0 / replicas.d[order] if self.by_block is None else np.zeros(len(order)))
        parts = (Q, M, P, a, replicas.a_star[order], replicas.Delta[order], stretch)
        lanes = System(*(np.moveaxis(array, 0, -1) for array in parts))
        drifts = Drifts(*(np.moveaxis(drift, -1, 0) for drift in rule.drifts_of_many(lanes)))
        # a drift from M = 0 that is rounding would start an escape
        most = np.sqrt(np.einsum("nii,nrr->nir", drifts.Var, P))
        drifts.M[(M == 0.0) & (np.abs(drifts.M) <= ROUNDING * most)] = 0.0
        return drifts

    def _note(self, order: Order) -> None:
        """Note the exits and the divergences of the last step of the replicas in `order`."""
        state = *self._overlaps, self.a
        largest = [np.abs(array[order]).reshape(len(order), -1).max(axis=1) for array in state]
        bounded = (np.array(largest) < OVERFLOW).all(axis=0)
        self.failed[order[~bounded]] = self.step[order[~bounded]]
        waiting = order[bounded & (self.exits[order] < 0).any(axis=1)]
        if waiting.size:
            replicas = self.replicas
            fields = self._fields_of(waiting, *(array[waiting] for array in self._overlaps))
            levels = replicas.exit_values(*fields, self.a[waiting], replicas.a_star[waiting])
            reached = levels[:, None] <= self.targets[waiting]
            exits = reached & (self.exits[waiting] < 0)
            self.exits[waiting] = np.where(exits, self.step[waiting, None], self.exits[waiting])

    @staticmethod
    def work(problem: Problem, time: float) -> float:
        """The number of steps times the entries of the fourth moments, and the factorisations."""
        p, width = problem.p, problem.p + problem.k
        return time / problem.step_time() * (50_000.0 + 10.0 * p**2 * width**2 + 60.0 * p**3)


DYNAMICS.register("overlap_map", OverlapMap)
