"""The overlaps' ODE on a segment of a piecewise linear schedule, with its derivatives by the knots, compiled.

ẋ = F(x, ξ) with ξ(t) = Σ_k ξ_k h_k(t) and h_k the hat of knot k. S_k = ∂x/∂ξ_k follows Ṡ_k = F_x S_k + F_ξ h_k. With
G(x, ν) the slope at ξ = 1 with the noise ν, F = ξ G(x, ξν); as G is linear in ν, F_ξ = G(x, 2ξν).

The state of a system is x (size,), then S_k (size,) of each knot, unless derivatives are not needed, and last the time
since the knot at which the segment begins. i is the number of a system, `room` its work arrays.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.numerics.compiled import inlined
from sweeplib.networks.numerics.integrators.dop853 import Equations

UPDATE = 6e-6
"""The length of a central difference relative to the state: its error and its rounding are both about 1e-10."""


class Segment(NamedTuple):
    """The constants of n systems on the segment of a schedule that begins at one of its K knots.

    slope, arguments : address of the slope of the overlaps at ξ = 1, without a schedule, and its constants.
    noise, base_noise (n,) : the noise among those constants, which changes with ξ, and that of ξ = 1.
    rates (n, K) : ξ_k at the knots.
    knot (1,) : number of the knot at which the segment begins.
    width (n,) : times between two knots.
    """

    slope: Any
    arguments: NDArray[np.int64]
    noise: Array
    base_noise: Array
    rates: Array
    knot: NDArray[np.int64]
    width: Array


class Room(NamedTuple):
    """Work arrays (size,) for the overlaps of a system: a state, and slopes at two states below and above it."""

    state: Array
    below: Array
    above: Array


def systems_of(equations: Equations, noise: Array, rates: Array, width: Array) -> Segment:
    """The `Segment` of n systems with these equations, at its first knot.

    noise (n,) : the array among the constants of the equations that changes with ξ.
    rates (n, K), width (n,) : factors ξ_k at the knots, and the time between two of them.
    """
    calls = equations.calls
    return Segment(calls.slope_of, calls.arguments, noise, noise.copy(), rates, np.zeros(1, np.int64), width)


def room(size: int) -> Room:
    """Work arrays for overlaps of `size` numbers."""
    return Room(np.empty(size), np.empty(size), np.empty(size))


@inlined
def hat(segment: Segment, knot: int, share: float) -> float:
    """The value h_k = ∂ξ/∂ξ_k at a `share` in [0, 1] of the segment; a schedule of one knot is constant."""
    first, last = segment.knot[0], segment.rates.shape[1] - 1
    if knot == first:
        return 1.0 if first == last else 1.0 - share
    return share if knot == first + 1 else 0.0


@inlined
def add_derivative(i: int, state: Array, at: int, rate: float, segment: Segment, room: Room, slope: Array) -> None:
    """Add ξ G_x S_k to the slope of S_k, by a central difference along S_k.

    at : where S_k begins in state and slope. rate : ξ.
    """
    size, largest, steepest = room.state.shape[0], 1.0, 0.0
    for v in range(size):
        largest = max(largest, abs(state[v]))
        steepest = max(steepest, abs(state[at + v]))
    if steepest == 0.0:
        return
    step = UPDATE * largest / steepest
    for v in range(size):
        room.state[v] = state[v] - step * state[at + v]
    segment.slope(i, room.state, segment.arguments, room.below)
    for v in range(size):
        room.state[v] = state[v] + step * state[at + v]
    segment.slope(i, room.state, segment.arguments, room.above)
    for v in range(size):
        slope[at + v] += rate * (room.above[v] - room.below[v]) / (2.0 * step)


def fill_slope(i: int, state: Array, segment: Segment, room: Room, slope: Array) -> None:
    """Fill slope of system i: ẋ (size,), Ṡ_k (size,) of each knot k in the state, and 1 for the time."""
    size, first = room.state.shape[0], segment.knot[0]
    derivatives, after = (state.shape[0] - 1) // size - 1, min(first + 1, segment.rates.shape[1] - 1)
    share, base = state[state.shape[0] - 1] / segment.width[i], segment.base_noise[i]
    rate = segment.rates[i, first] + share * (segment.rates[i, after] - segment.rates[i, first])
    for v in range(size):
        room.state[v] = state[v]
    # room.above is F_ξ first, for all knots, then G for ẋ
    segment.noise[i] = 2.0 * rate * base
    segment.slope(i, room.state, segment.arguments, room.above)
    for knot in range(derivatives):
        for v in range(size):
            slope[size * (knot + 1) + v] = hat(segment, knot, share) * room.above[v]
    segment.noise[i] = rate * base
    segment.slope(i, room.state, segment.arguments, room.above)
    for v in range(size):
        slope[v] = rate * room.above[v]
    # later knots do not act yet: their S_k are zero
    for knot in range(min(derivatives, first + 2)):
        add_derivative(i, state, size * (knot + 1), rate, segment, room, slope)
    slope[slope.shape[0] - 1] = 1.0
