"""The classical limit of one-pass SGD, γ/p → 0: the ODE without its variance term (arXiv 2302.05882, section 3)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.dynamics.diagnostics import LARGEST_UNDECIDED, Bound
from sweeplib.networks.dynamics.dynamics import DYNAMICS, LOSS, UPDATE, NumericalOptions
from sweeplib.networks.dynamics.integrated import IntegrationOptions
from sweeplib.networks.dynamics.ode import Ode
from sweeplib.networks.dynamics.ode_limits import OF_AVERAGES, OF_DISTURBED
from sweeplib.networks.dynamics.replicas import Replicas
from sweeplib.networks.problem import TAILS, Problem
from sweeplib.networks.views import OverlapView


class GradientFlow(Ode):
    """Gradient flow on the population risk: Ṁ = Ψ^M, Q̇ = Ψ^GF, ȧ = ε Ψ^a, in the time t = νγ/(pd).

    With a schedule all three have the factor ξ(t). With noise of the weights it is Langevin dynamics for d → ∞. The
    label noise does not enter and is set to zero, also in the error of the drifts.
    """

    name = "gradient_flow"
    label = "gradient flow"
    counts_steps = False
    reads = Ode.reads - {"Delta", "noise_schedule", "batch_size"} - LOSS - UPDATE
    limits = (*OF_DISTURBED, *OF_AVERAGES)
    undefined = (
        ("batch_size repeats samples sampling", "a flow for small rates has the mean over all samples"),
        (" ".join(["noise_schedule", *sorted(TAILS)]), "the noise of labels leaves the mean of the gradient as it is"),
    )
    Options = IntegrationOptions

    def __init__(self, replicas: Replicas, options: IntegrationOptions) -> None:
        without = {**replicas.parameters, "Delta": np.zeros(len(replicas))}
        super().__init__(replace(replicas, parameters=without), options)
        # views have the label noise; `_highest` is what the risk, which falls, may be at most
        self._Delta = replicas.Delta
        start = self._risks(*replicas.fields[:2], replicas.a)
        self._highest = (1.0 + LARGEST_UNDECIDED) * start

    def begin_phase(self, phase: int) -> None:
        """Begin a phase of the tasks as every ODE does, and forget the highest allowed risks, of another task."""
        super().begin_phase(phase)
        self._highest = np.full(len(self.replicas), np.inf)

    def overlap_view(self, *overlaps: Any, **others: Any) -> OverlapView:
        """The view of the given overlaps, with the problem's label noise, which observables need, not the flow."""
        view = super().overlap_view(*overlaps, **others)
        view.Delta = self._Delta
        return view

    def drift_errors(self, fields: tuple[Array, Array, Array], a: Array, times: Array) -> Array:
        """The errors (n,) of all drifts but Ψ^Var, which the flow does not have, at covariances of fields and a."""
        return self.replicas.drift_errors(fields, a, times, stretch=0.0)

    def bounds(self) -> Sequence[Bound]:
        """The bounds of the ODE, and of a risk: above an earlier one by no more than both errors, as it falls.

        Risks may rise with decay, dropout, replay or noise of inputs or weights: then there is no such bound.
        """
        risk, highest = self._recorded_risks(), self._highest
        self._highest = np.fmin(highest, risk + self.risk_error)
        numbers = self.replicas.numbers
        noise = numbers.input_noise + numbers.temperature
        # with replay the mean over tasks falls, not the risk of the present one
        falls = (numbers.weight_decay + numbers.second_layer_decay + noise == 0.0) & (self.replicas.replayed is None)
        highest = np.where(falls & (numbers.keep_probability == 1.0), highest, np.inf)
        return *super().bounds(), Bound("risk - risk_error", risk - self.risk_error, highest)

    @classmethod
    def solves_all_rates(cls, problem: Problem, options: NumericalOptions) -> bool:
        """Whether inputs have one eigenvalue; with several the error of d → ∞, which is recorded, grows with γ."""
        return not problem.has_spectrum

    @staticmethod
    def work(problem: Problem, time: float) -> float:
        """The work of the ODE, but drifts without fourth moments: their entries are sums over units."""
        p, k = problem.p, problem.k * (1 if problem.input_noise == 0.0 else 2)
        calls = 1 if problem.keep_probability == 1.0 else 1 + 2 * p + p * (p - 1) // 2
        return (60.0 * time + 120.0) * (2000.0 + 10.0 * calls * p**2 * (p + k))

    def _numbers(self) -> Any:
        """The `Numbers` of the equations, without the noise that is the factor of Ψ^Var."""
        return self.replicas.numbers._replace(noise=np.zeros(len(self.replicas)))


DYNAMICS.register("gradient_flow", GradientFlow)
