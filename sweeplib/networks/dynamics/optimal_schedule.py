"""The schedule that minimises the risk of the ODE at the last time, among those linear between equally spaced knots.

The risk is the mean over the replicas, which are starts of one problem. Its derivatives by the factors at the knots are
those of the solution, integrated beside it from knot to knot. ln R is descended, with ξ ≥ 0, from the best multiples of
several shapes or, with many knots, from the minimum with half as many; schedules whose solution blows up are no minima.

A schedule is the K factors ξ of the learning rate at its knots: `rates` (K,), or (m, K) of m schedules; n replicas.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sweeplib.engine.base.arrays import Array
from sweeplib.engine.base.late_modules import scipy
from sweeplib.errors import SweeplibError
from sweeplib.networks.dynamics.ode import Ode, OdeOptions
from sweeplib.networks.dynamics.replicas import Replicas
from sweeplib.networks.kernels import overlap_flow, schedule_flow
from sweeplib.networks.numerics.integrators.dop853 import Equations
from sweeplib.networks.numerics.integrators.integration import Integration


class Accuracy(NamedTuple):
    """The relative and absolute tolerance of solutions between two knots, and the largest number of their steps."""

    rtol: float
    atol: float
    max_steps: int


FINE, COARSE = Accuracy(1e-9, 1e-10, 5000), Accuracy(1e-5, 1e-6, 500)
"""Of descents, whose derivatives have errors of about 1e-10 by rounding; and of multiples that are tried."""
STEP = 6e-6
"""The length of a central difference along a derivative, relative to the overlaps."""
LOWEST, HIGHEST, A_DECADE = 1e-3, 1e2, 8
"""The multiples of shapes that are tried lie between these times 1 and p n_b/γ; and their number in a decade."""
DECAYS = 4.0, 20.0
"""The shapes 1/(1 + c t/T) that are tried, T the last time, beside the constant and t/T."""
LEAST = 1e-8
"""What is added to a risk, relative to the risk of a student that is zero, before its logarithm is taken."""
LARGEST_GRADIENT, GOAL, ROUNDS, FEW = 1e-4, 1e-6, 3, 3
"""The change of ln R by one factor above which a descent has found no minimum, and at which it ends; how often it is
begun again; and the largest number of knots that are started from shapes."""
BLOWN_UP = 10.0
"""What ln R is above its first value where the solution blows up."""
DIGITS = 10
"""Decimal digits of the factors, with which a schedule is written as a formula."""


@dataclass(frozen=True)
class Optimum:
    """A schedule, the risk at the last time with it, and how far it is from a minimum.

    rates (K,) : the factors ξ at the knots, of ten digits.
    gradient : the largest change of ln R by one factor: the derivative times the largest factor. Of a factor that is
        zero it counts only where the risk falls as the factor grows.
    """

    rates: Array
    risk: float
    gradient: float


def optimal_schedule(replicas: Replicas, knots: int) -> Optimum:
    """The best schedule of `knots` factors; SweeplibError if the descent does not come to a minimum."""
    best = _minimum(RiskAtEnd(replicas), knots)
    if not best.gradient <= LARGEST_GRADIENT:
        ended = f"the descent ended where the factor of a knot changes ln R by {best.gradient:.2g}"
        raise SweeplibError(f"no optimal schedule of {knots} knots: {ended}, more than {LARGEST_GRADIENT:g}")
    return best


def _minimum(risk: "RiskAtEnd", knots: int) -> Optimum:
    """The lowest minimum from several starts; with more than `FEW` knots, from the minimum with half as many."""
    if knots == 1:
        return _lowest(risk, _multiples(risk, np.ones((1, 1))))
    time = np.linspace(0.0, 1.0, knots)
    if knots > FEW:
        coarse = _minimum(risk, knots // 2 + 1).rates
        return _descent(risk, np.interp(time, np.linspace(0.0, 1.0, len(coarse)), coarse))
    shapes = np.array([*(1.0 / (1.0 + decay * time) for decay in DECAYS), time])
    return _lowest(risk, [np.full(knots, _minimum(risk, 1).rates[0]), *_multiples(risk, shapes)])


def _lowest(risk: "RiskAtEnd", starts: list[Array]) -> Optimum:
    """Return the lowest minimum that descents from `starts`, schedules (K,), reach; SweeplibError without a start."""
    if not starts:
        raise SweeplibError("no optimal schedule: the ODE blows up at all rates that were tried")
    return min((_descent(risk, start) for start in starts), key=lambda optimum: optimum.risk)


def _multiples(risk: "RiskAtEnd", shapes: Array) -> list[Array]:
    """Return the schedules (K,) that are local minima of the risk among multiples of each of the `shapes` (m, K).

    Multiples that are lower than both neighbours are starts of descents.
    """
    lowest, highest = LOWEST * min(1.0, risk.noisy), HIGHEST * max(1.0, risk.noisy)
    factors = np.geomspace(lowest, highest, 1 + round(A_DECADE * np.log10(highest / lowest)))
    tried = np.multiply.outer(shapes, factors).swapaxes(1, 2)
    risks = risk.mean(tried.reshape(-1, shapes.shape[1])).reshape(len(shapes), -1)
    sides = np.pad(risks, ((0, 0), (1, 1)), constant_values=np.inf)
    minima = np.isfinite(risks) & (risks < sides[:, :-2]) & (risks <= sides[:, 2:])
    return list(tried[minima])


def _descent(risk: "RiskAtEnd", start: Array) -> Optimum:
    """Return the minimum that a descent from the schedule `start` (K,) reaches, or where it ended without one."""
    unit, least = start.max() or 1.0, LEAST * risk.largest
    blown_up = np.log(risk.gradient(start)[0] + least) + BLOWN_UP

    def logarithm(factors: Array) -> tuple[float, Array]:
        """Return the logarithm of the risk at `factors` (K,), over `unit`, and its gradient (K,), for scipy."""
        value, slope = risk.gradient(unit * factors)
        if not np.isfinite([value, *slope]).all():
            # a high but finite value, from which a line search turns back
            return blown_up, np.zeros_like(slope)
        return np.log(value + least), slope * unit / (value + least)

    factors, bounds = start / unit, [(0.0, None)] * len(start)
    # begun again at its end, the descent forgets its estimate of the curvature
    for _ in range(ROUNDS):
        options = {"ftol": 0.0, "gtol": GOAL, "maxiter": 500, "maxcor": 30}
        factors = scipy.optimize.minimize(
            logarithm, factors, jac=True, method="L-BFGS-B", bounds=bounds, options=options
        ).x
        # decisions: An optimal schedule is a text in a problem, found in the worker and run as a formula
        rates = np.array([float(f"{rate:.{DIGITS}g}") for rate in unit * factors])
        value, slope = risk.gradient(rates)
        # where a factor is zero, it can only grow
        change = np.where(rates > 0.0, np.abs(slope), np.fmax(0.0, -slope)) * rates.max() / (value + least)
        if change.max() <= LARGEST_GRADIENT:
            break
    return Optimum(rates, value, float(change.max()))


class RiskAtEnd:
    """The mean risk of replicas at their last time, as a function of the factors at the knots of a schedule.

    noisy : p n_b/γ, the factor at which Ψ^Var is as important as the other drifts.
    largest : the mean risk of a student that is zero.
    _systems : the ODEs of all replicas. _starts (n, _size) : their packed states at the start.
    """

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas
        self._trained = replicas.trains_second_layer
        self._systems = Ode(replicas, OdeOptions()).systems(replicas.equations)
        self._starts = overlap_flow.pack(replicas.Q, replicas.M, replicas.a, replicas.spherical, self._trained)
        self._size = self._starts.shape[1]
        self.noisy = 1.0 / float(replicas.numbers.noise.max())

    @cached_property
    def largest(self) -> float:
        """The mean risk of a student that is zero."""
        replicas = self._replicas
        state = replicas.Q, replicas.M, replicas.P, np.zeros_like(replicas.a), replicas.a_star
        return float(replicas.expectations.risks(*state).mean())

    def mean(self, rates: Array) -> Array:
        """The mean risks (m,) of schedules (m, K) at coarse tolerances, not finite for a solution that blows up."""
        states, among = self._ends(rates, COARSE, derivatives=False)
        return self._risks(states, among).reshape(len(rates), -1).mean(axis=1)

    def gradient(self, rates: Array) -> tuple[float, Array]:
        """The mean risk of a schedule (K,), and its derivatives (K,) by the factors at the knots."""
        states, among = self._ends(rates[None], FINE, derivatives=True)
        x, *by_knot = np.split(states, len(rates) + 1, axis=1)
        largest, slope = np.fmax(1.0, np.abs(x).max(axis=1)), np.zeros(len(rates))
        for knot, along in enumerate(by_knot):
            steepest = np.abs(along).max(axis=1)
            step = STEP * largest / np.where(steepest > 0.0, steepest, 1.0)
            above, below = (self._risks(x + side * step[:, None] * along, among) for side in (1.0, -1.0))
            slope[knot] = ((above - below) / (2.0 * step)).mean()
        return float(self._risks(x, among).mean()), slope

    def _risks(self, states: Array, among: NDArray[np.intp]) -> Array:
        """The risks (n,) of states (n, size) of the replicas `among`."""
        replicas = self._replicas
        Q, M, layers = overlap_flow.overlaps_of(states, replicas.p, replicas.k, replicas.spherical)
        a = layers if self._trained else replicas.a[among]
        with np.errstate(all="ignore"):  # of solutions that blew up
            return replicas.expectations.risks(Q, M, replicas.P[among], a, replicas.a_star[among])

    def _ends(self, rates: Array, accuracy: Accuracy, *, derivatives: bool) -> tuple[Array, NDArray[np.intp]]:
        """The states (m n, size) at the last time by schedules (m, K), NaN where one blew up, and their replicas.

        With `derivatives` a state is followed by its derivatives by each of the K factors, of the same size.
        """
        knots = rates.shape[1]
        # row m n + r is replica r with the rates of row m; derivatives by the knots follow the state
        among = np.tile(np.arange(len(self._replicas)), len(rates))
        states = np.zeros((len(among), self._size * (1 + knots * derivatives)))
        states[:, : self._size] = self._starts[among]
        width = self._replicas.times[among, -1] / max(1, knots - 1)
        systems = overlap_flow.chosen_systems(self._systems, among)
        work = overlap_flow.work_space(self._replicas.p, self._replicas.k)
        overlaps = Equations(overlap_flow.fill_slope, systems, work)
        repeated = np.repeat(rates, len(self._replicas), axis=0)
        segment = schedule_flow.systems_of(overlaps, systems.numbers.noise, repeated, width)
        equations = Equations(schedule_flow.fill_slope, segment, schedule_flow.room(self._size))
        for knot in range(max(1, knots - 1)):
            segment.knot[0] = knot
            states = _advanced(equations, states, width, accuracy)
        return states, among


def _advanced(equations: Equations, states: Array, width: Array, accuracy: Accuracy) -> Array:
    """The states (n, size) after a segment between knots, NaN for those that do not come to its end.

    width (n,) : ODE times of the segment.
    """
    order = np.flatnonzero(np.isfinite(states).all(axis=1))
    # the last variable is the time since the knot; states that blew up are not in `order`, but must be numbers
    begun = np.concatenate([np.nan_to_num(states), np.zeros((len(states), 1))], axis=1)
    rtol, atol = np.full((2, len(width)), [[accuracy.rtol], [accuracy.atol]])
    targets, most = np.empty((len(width), 0)), accuracy.max_steps
    solution = Integration(equations, begun, width, rtol=rtol, atol=atol, targets=targets, max_steps=most)
    solution.advance(order, width, stops=False, late=lambda: False)
    return np.where((solution.times >= width)[:, None], solution.states[:, :-1], np.nan)
