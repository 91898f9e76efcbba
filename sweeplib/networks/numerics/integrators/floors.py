"""Absolute tolerances of variables that grow from small ones, compiled.

A variable far below the absolute tolerance that grows like e^{ωt}, such as an overlap at the start of an escape, would
grow without any control of its error. Its tolerance is relative to its largest size so far instead, above the rounding
of its slope, until that is the absolute one. A variable that is zero has the absolute one, and so has what decays.

A companion solution tells what rounding makes of a solution: each of its steps moves every variable by a part of its
size like rounding does, and variables whose growth rounding hides start as zeros.
"""

import math
from typing import Any

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.numerics.compiled import without_references

SMALL, LARGEST_RELATIVE = 1e-5, 1e-2
"""The size of a variable below which its tolerance is relative to its size; the largest relative one."""
REJECTIONS = 5
"""Rejections in a row of a step after which rounding is taken to hinder it, and floors are raised."""
_TREMOR = 2.0**-52
_LOOSER, _ABOVE_ROUNDING = 100.0, 10.0
"""By how much floors are raised at once; the tolerance over the rounding of a slope."""
_VANISHING, _SMALLEST, _OF_ROUNDING = 2.0**-100, 1e-305, 1e-10
"""The factor and the least size of small variables without which rounding is left of a slope; its largest value."""


def relative_tolerances(rtol: Array, atol: Array) -> Array:
    """The tolerances (n,) of small variables, relative to their sizes."""
    return np.clip(atol / SMALL, rtol, LARGEST_RELATIVE)


def tremor(states: Array) -> Array:
    """The moves (n, size) of the variables of companions in each step, of the order of rounding, from their starts.

    Variables with one absolute value have one move, so that the symmetries of a start last.
    """
    # Fibonacci hashing, by 2^64 over the golden ratio: a function of the size alone, the same on every machine
    bits = np.abs(states).view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return np.asarray(_TREMOR * ((bits >> np.uint64(11)) * 2.0**-52 - 1.0), dtype=np.float64)


@without_references
def vanishing(i: int, solutions: Any, out: Array) -> bool:
    """Fill out (size,) with the state of solution i whose small variables all but vanish; return whether any do."""
    state, atol, relative = solutions.state[i], solutions.atol[i], solutions.relative[i]
    some = False
    for v in range(state.shape[0]):
        out[v] = state[v]
        if state[v] != 0.0 and relative * abs(state[v]) < atol:
            some = True
            out[v] = math.copysign(max(_VANISHING * abs(state[v]), _SMALLEST), state[v])
    return some


@without_references
def lower(i: int, solutions: Any, remainders: Array) -> bool:
    """Let the tolerances of small variables be relative to their size; return whether a variable is zero from now on.

    remainders (size,) : the slope where they vanish, which is that of a source, with which they grow beyond `atol`, or
        rounding. Nobody knows how a variable grows that is no larger than this: a companion has zero in its place.
    """
    state, floor = solutions.state[i], solutions.floor[i]
    atol, relative, moved = solutions.atol[i], solutions.relative[i], False
    for v in range(state.shape[0]):
        size, of_rounding = abs(state[v]), _ABOVE_ROUNDING * abs(remainders[v])
        if size != 0.0 and relative * size < atol:
            floor[v] = min(atol, max(relative * size, of_rounding))
            if size <= of_rounding < _OF_ROUNDING:
                solutions.hidden[i] = True
                if solutions.tremor[i, v] != 0.0:
                    state[v], moved = 0.0, True
    return moved


@without_references
def take(i: int, new: Array, solutions: Any) -> None:
    """Take a new state of solution i, with the tremor of what is above its floor; floors follow variables that grow."""
    state, floor, moves = solutions.state[i], solutions.floor[i], solutions.tremor[i]
    atol, relative = solutions.atol[i], solutions.relative[i]
    for v in range(new.shape[0]):
        state[v] = new[v] * (1.0 + (moves[v] if abs(new[v]) > floor[v] else 0.0))
        floor[v] = min(atol, max(floor[v], relative * abs(state[v])))


@without_references
def are_raised(i: int, solutions: Any) -> bool:
    """Raise the floors below `atol` of solution i, as rounding hinders its steps; return whether there were any."""
    state, floor, atol, some = solutions.state[i], solutions.floor[i], solutions.atol[i], False
    for v in range(floor.shape[0]):
        if floor[v] < atol:
            floor[v], some = min(atol, _LOOSER * floor[v]), True
            solutions.hidden[i] |= floor[v] >= abs(state[v])
    return some
