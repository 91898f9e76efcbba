"""Flat states of the equations of the ODE: of overlaps, of those of blocks of inputs, and with the heads of tasks.

Each kind of state has the equations that it belongs to, its start, and what it says about the student. A flat state has
`size` numbers: Q's upper triangle (on the sphere without the diagonal) and M row by row, then what a subclass adds. The
last variable is the time if there is a schedule. H counts the heads, second layers of the student.
"""

from typing import Any

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.dynamics.block_equations import block_equations, block_starts, blocks_of
from sweeplib.networks.dynamics.replicas import Replicas
from sweeplib.networks.kernels.average_flow import average_equations, averages_of, with_averages
from sweeplib.networks.kernels.overlap_flow import Systems, fill_slope, overlaps_of, pack, state_risk, work_space
from sweeplib.networks.kernels.replay_flow import mixture_equations, with_heads
from sweeplib.networks.maths.activations import activation
from sweeplib.networks.maths.activations.activation import kink
from sweeplib.networks.maths.overlaps import nearest_covariances, on_sphere
from sweeplib.networks.numerics.integrators.dop853 import Equations
from sweeplib.networks.problem import UPDATES
from sweeplib.networks.views import Blocks

LOST = 1e-18
"""The squared norm of a lost unit relative to the largest: it counts for a part of 1e-9 in the network's output."""
Overlaps = tuple[Array, Array, Array]
"""Q (n, p, p), M (n, p, k) and a (n, p)."""


class OverlapStates:
    """States (n, size) of Q and M, of a if it is trained, and last of the time or of B of AdaGrad-norm, if any."""

    def __init__(self, replicas: Replicas) -> None:
        self.replicas, self.trained = replicas, replicas.trains_second_layer

    def equations(self, systems: Systems) -> Equations:
        """The equations of these states, with the constants `systems` of the replicas."""
        return Equations(fill_slope, systems, work_space(self.replicas.p, self.replicas.k), state_risk)

    def starts(self) -> Array:
        """The states (n, size) at time zero."""
        replicas, last = self.replicas, self.replicas.memory[:, 0] if self._timed else None
        return pack(replicas.Q, replicas.M, replicas.a, replicas.spherical, self.trained, last)

    def starts_after(self, states: Array) -> Array:
        """The states at the start of a phase of the tasks: those at the end of the phase before, with its head as a."""
        states = states.copy()
        if self.trained:
            states[:, self._head_at(states)] = self.replicas.a
        return states

    def overlaps(self, states: Array) -> Overlaps:
        """Q, M and a of states (n, size) as they are: rounding and errors of integration may break Ω ≥ 0."""
        replicas = self.replicas
        Q, M, others = overlaps_of(states, replicas.p, replicas.k, replicas.spherical)
        return Q, M, (others[:, : replicas.p] if self.trained else replicas.a).copy()

    def fields(self, states: Array) -> Overlaps:
        """The covariances Q and M of the fields, and a, in states (n, size), with the nearest Q for which Ω ≥ 0."""
        Q, M, a = self.overlaps(states)
        Q = nearest_covariances(Q, M, self.replicas.P)
        return (*on_sphere(Q, M), a) if self.replicas.spherical else (Q, M, a)

    def values(self, states: Array) -> dict[str, Any]:
        """The values that attributes of an `OverlapDynamics` have in states (n, size), by name: Q, M, a and others."""
        return dict(zip(("Q", "M", "a"), self.fields(states), strict=True))

    def without_lost_units(self, i: int, state: Array, least: float = LOST) -> Array | None:
        """The state (size,) of replica i with its lost units at zero, where σ' = 0 holds them; None without any.

        least : the squared norm of a unit, relative to the largest, up to which it is lost.

        Units with a kinked activation feel a force of fixed size however small they are, so that some come to zero in
        finite time. No integrator passes this point.
        """
        replicas = self.replicas
        if replicas.spherical or kink(activation(replicas.activation)) == 0.0:
            return None
        (Q,), (M,), (others,) = overlaps_of(state[None], replicas.p, replicas.k, replicas.spherical)
        a, norms = others[: replicas.p] if self.trained else replicas.a[i], np.diagonal(Q)
        # units that are zero already, with all their overlaps, need not be set to zero again
        lost = (norms <= least * norms.max()) & ((norms != 0.0) | M.any(axis=1) | (np.abs(Q).sum(axis=1) > norms))
        if not lost.any():
            return None
        Q[lost], Q[:, lost], M[lost] = 0.0, 0.0, 0.0
        last = state[-1:] if self._timed else None
        return pack(Q[None], M[None], a[None], replicas.spherical, self.trained, last)[0]

    @property
    def _timed(self) -> bool:
        """Whether the last variable is the time, or B."""
        return self.replicas.scheduled or UPDATES[self.replicas.rule.update].memory is not None

    def _head_at(self, states: Array) -> slice:
        """The columns of the states that are the trained second layer; only the time, or B, stands behind."""
        last = states.shape[1] - self._timed
        return slice(last - self.replicas.p, last)


class BlockStates(OverlapStates):
    """States of the overlaps of each block of inputs of one eigenvalue (`block_equations`)."""

    def equations(self, systems: Systems) -> Equations:
        """The equations of the overlaps of blocks, with the constants `systems` of the fields."""
        return block_equations(self.replicas, systems)

    def starts(self) -> Array:
        """The states at time zero."""
        return block_starts(self.replicas)

    def fields(self, states: Array) -> Overlaps:
        """The covariances Q and M of the fields, and a; each block has the nearest Q_b for which Ω_b ≥ 0."""
        replicas = self.replicas
        Q, M, a = blocks_of(replicas, states)
        return *Blocks(replicas.eigenvalues, Q, M, replicas.blocks.P).weighted()[:2], a

    def values(self, states: Array) -> dict[str, Any]:
        """The values of the attributes by name, with `by_block`; Q and M are sums over the blocks."""
        Q, M, a = blocks_of(self.replicas, states)
        return {"by_block": (Q, M), "Q": Q.sum(axis=1), "M": M.sum(axis=1), "a": a}

    def without_lost_units(self, i: int, state: Array, least: float = LOST) -> Array | None:
        """Return None: a unit may be lost in one block of inputs and not in another."""
        return None


class ReplayStates(OverlapStates):
    """States with the heads of all tasks, of which steps may be in one phase, if second layers are trained."""

    def equations(self, systems: Systems) -> Equations:
        """The mean of the equations of all tasks, weighted by their shares in the steps of this phase."""
        lessons, size = self._lessons, super().starts().shape[1]
        a, a_star = lessons.layers(self.replicas.a)
        return mixture_equations(systems, a, a_star, lessons.shares[:, lessons.phase], lessons.heads.shape[1], size)

    def starts(self) -> Array:
        """The states (n, size) at time zero, with the second layers of all tasks."""
        states = super().starts()
        return with_heads(states, self._head_at(states), self._lessons.heads) if self.trained else states

    def starts_after(self, states: Array) -> Array:
        """The states at the start of a phase: those at the end of the phase before, which have all heads."""
        return states.copy()

    def overlaps(self, states: Array) -> Overlaps:
        """The Q and M of the states, and the head of the present task as a."""
        if self.trained:  # as states of one task, without the other heads
            at = self._heads_at(states)
            states = with_heads(states, at, self._heads(states)[:, self._lessons.head, None])
        return super().overlaps(states)

    def values(self, states: Array) -> dict[str, Any]:
        """The values of the attributes by name, with the `heads` of all tasks."""
        return super().values(states) | ({"heads": self._heads(states)} if self.trained else {})

    def without_lost_units(self, i: int, state: Array, least: float = LOST) -> Array | None:
        """Return None: other tasks may train a unit that is lost for the present one."""
        return None

    @property
    def _lessons(self) -> Any:
        """The tasks that steps of the replicas may be of."""
        return self.replicas.replayed

    def _heads(self, states: Array) -> Array:
        """The second layers (n, H, p) of all tasks in states (n, size)."""
        return states[:, self._heads_at(states)].reshape(self._lessons.heads.shape)

    def _heads_at(self, states: Array) -> slice:
        """The columns of the states that are the heads of all tasks; `_head_at` knows where the last of them ends."""
        last = self._head_at(states).stop
        return slice(last - self._lessons.heads[0].size, last)


class AverageStates(OverlapStates):
    """States with the overlaps of averages of the weights: with W* and W times u, with each other times u²."""

    def equations(self, systems: Systems) -> Equations:
        """The equations of the overlaps, and of the overlaps of averages."""
        return average_equations(systems)

    def starts(self) -> Array:
        """The states (n, size) at time zero, where the averages are the weights."""
        replicas = self.replicas
        Q, M = on_sphere(replicas.Q, replicas.M) if replicas.spherical else (replicas.Q, replicas.M)
        states = super().starts()
        return with_averages(states, Q, M, self._share_of_time(states))

    def values(self, states: Array) -> dict[str, Any]:
        """The values of the attributes by name, with the overlaps Q and M of the `average`."""
        values = super().values(states)
        average = averages_of(states, values["Q"], values["M"], self._share_of_time(states))
        return values | {"average": average}

    def _share_of_time(self, states: Array) -> Array:
        """The factor u (n,) of averages in states: time over the last time, to the power η, the average's order."""
        end, last = states[:, -1], self.replicas.times[:, -1]
        share = np.divide(end, last, out=np.zeros(len(end)), where=last > 0.0)
        return np.asarray(share**self.replicas.numbers.averaging_order)

    def without_lost_units(self, i: int, state: Array, least: float = LOST) -> Array | None:
        """Return None: averages of a lost unit are not lost."""
        return None


def states_of(replicas: Replicas) -> OverlapStates:
    """The kind of states that the replicas have: with averages, of blocks, of several tasks, or plain."""
    if replicas.has_averages:
        return AverageStates(replicas)
    kind = BlockStates if replicas.has_spectrum else OverlapStates if replicas.replayed is None else ReplayStates
    return kind(replicas)
