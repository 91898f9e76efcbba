"""Absolute tolerances of variables that grow from small ones, compiled.

A variable far below the absolute tolerance that grows like e^{ωt}, such as an overlap at the start of an escape, would
grow without any control of its error. Its tolerance, the floor, is relative to its largest size so far instead, above
the rounding of its slope, until that is the absolute one. A variable that is zero has the absolute one, and so has what
decays.

A companion solution tells what rounding makes of a solution: each of its steps moves every variable by a part of its
size like rounding does, its tremor, and variables whose growth rounding hides start as zeros. It is solved beside the
solution, which has no tremor. i is the number of a solution among `solutions`.
"""

import math

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.numerics.compiled import without_references
from sweeplib.networks.numerics.integrators.solutions import Solutions

SMALL, LARGEST_RELATIVE = 1e-5, 1e-2
"""The size of a variable below which its tolerance is relative to its size; the largest relative one."""
REJECTIONS = 5
"""Rejections in a row of a step after which rounding is taken to hinder it, and floors are raised."""
_TREMOR = 2.0**-52
"""The largest tremor: the distance of doubles, relative to their size."""
_LOOSER, _ABOVE_ROUNDING = 100.0, 10.0
"""By how much floors are raised at once; the tolerance over the rounding of a slope."""
_VANISHING, _SMALLEST, _OF_ROUNDING = 2.0**-100, 1e-305, 1e-10
"""The factor and the least size of small variables without which rounding is left of a slope; its largest value."""


def relative_tolerances(rtol: Array, atol: Array) -> Array:
    """The tolerances (n,) of small variables, relative to their sizes, for tolerances rtol, atol (n,)."""
    return np.clip(atol / SMALL, rtol, LARGEST_RELATIVE)


def tremor(states: Array) -> Array:
    """The tremor (n, size) of companions that start at these states (n, size): how each step moves variables.

    It is relative to their size, of the order of rounding. Variables with one absolute value have one tremor, so that
    the symmetries of a start last.
    """
    # Fibonacci hashing, by 2^64 over the golden ratio: a function of the size alone, the same on every machine
    bits = np.abs(states).view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return np.asarray(_TREMOR * ((bits >> np.uint64(11)) * 2.0**-52 - 1.0), dtype=np.float64)


@without_references
def fill_vanishing(i: int, solutions: Solutions, out: Array) -> bool:
    """Fill out (size,) with the state of solution i, its small variables all but zero; return whether it has any.

    What they have of a slope there is due to a source, or to rounding (`lower_floors`). They keep their signs, and are
    not zero, where equations may have a kink or a case of its own.
    """
    state, atol, relative = solutions.state[i], solutions.atol[i], solutions.relative[i]
    has_small = False
    for v in range(state.shape[0]):
        out[v] = state[v]
        if state[v] != 0.0 and relative * abs(state[v]) < atol:
            has_small = True
            out[v] = math.copysign(max(_VANISHING * abs(state[v]), _SMALLEST), state[v])
    return has_small


@without_references
def lower_floors(i: int, solutions: Solutions, remainders: Array) -> bool:
    """Let the floors of small variables be relative to their size; return whether one of them is zero from now on.

    remainders (size,) : the slope of the state in which small variables are zero. It is that of a source, with which
        they grow beyond `atol`, or rounding. How a variable grows that is no larger than rounding is unknown: a
        companion has zero in its place.
    """
    state, floor = solutions.state[i], solutions.floor[i]
    atol, relative, has_zeroed = solutions.atol[i], solutions.relative[i], False
    for v in range(state.shape[0]):
        size, of_rounding = abs(state[v]), _ABOVE_ROUNDING * abs(remainders[v])
        if size != 0.0 and relative * size < atol:
            floor[v] = min(atol, max(relative * size, of_rounding))
            if size <= of_rounding < _OF_ROUNDING:
                solutions.hidden[i] = True
                if solutions.tremor[i, v] != 0.0:
                    state[v], has_zeroed = 0.0, True
    return has_zeroed


@without_references
def accept(i: int, new: Array, solutions: Solutions) -> None:
    """Accept the new state (size,) of solution i after a step, with the tremor of what is above its floor.

    Floors follow variables that grow.
    """
    state, floor, moves = solutions.state[i], solutions.floor[i], solutions.tremor[i]
    atol, relative = solutions.atol[i], solutions.relative[i]
    for v in range(new.shape[0]):
        state[v] = new[v] * (1.0 + (moves[v] if abs(new[v]) > floor[v] else 0.0))
        floor[v] = min(atol, max(floor[v], relative * abs(state[v])))


@without_references
def raise_floors(i: int, solutions: Solutions) -> bool:
    """Raise the floors below `atol` of solution i, as rounding hinders its steps; return whether there were any."""
    state, floor, atol, have_risen = solutions.state[i], solutions.floor[i], solutions.atol[i], False
    for v in range(floor.shape[0]):
        if floor[v] < atol:
            floor[v], have_risen = min(atol, _LOOSER * floor[v]), True
            solutions.hidden[i] |= floor[v] >= abs(state[v])
    return have_risen
