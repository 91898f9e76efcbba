"""The smooth parts and the hinges of functions, and the nodes that resolve them.

`pair` is what rules know of the activations. A field is given as along u + across v of N(0, 1) numbers. Hinges are a
row: an offset, then knots and jumps in turn.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.maths.expectations.grids import WIDEST
from sweeplib.networks.maths.expectations.hinges import has_part
from sweeplib.networks.maths.expectations.plane import Axis, add_bend
from sweeplib.networks.maths.expectations.products import PANEL_STEPS, resolved_by
from sweeplib.networks.maths.expectations.system import Pair
from sweeplib.networks.numerics.compiled import inlined, without_references

Numbers = NDArray[np.int64]
"""An array of whole numbers."""

SHARE, LONGEST = 0.8, 3.7
"""The part of a step that resolves products of four functions; the longest panel."""
NARROW = 0.2
"""Bends that need a shorter step have panels."""
SHORTEST = 0.1
PIECES = int(20.0 / SHORTEST)
"""The shortest panel but for bends, and more panels than there are."""


class Parts(NamedTuple):
    """The smooth rests and the hinges of functions, as n parts of their own.

    field, number (n,) : of which field a part is, and of which function (`function_number`).
    weight, hinged (n,) : b of the function, and whether the part is its hinges.
    """

    field: Numbers
    number: Numbers
    weight: Array
    hinged: Numbers


@inlined
def parts_of(pair: Pair, number: Numbers, weight: Array, p: int) -> Parts:
    """The parts of functions of these numbers and weights (functions,): of p students, and of others with a weight."""
    n, count = len(weight), 0
    parts = Parts(np.empty(2 * n, np.int64), np.empty(2 * n, np.int64), np.empty(2 * n), np.empty(2 * n, np.int64))
    for m in range(n):
        for hinged in range(2):
            # without a smooth rest there is no step that it needs
            has_it = has_part(pair.series[number[m]]) if hinged else pair.steps[0, number[m]] < math.inf
            if has_it and (m < p or weight[m] != 0.0):
                parts.field[count], parts.number[count], parts.hinged[count] = m, number[m], hinged
                parts.weight[count] = weight[m]
                count += 1
    return Parts(parts.field[:count], parts.number[:count], parts.weight[:count], parts.hinged[:count])


@without_references
def step_of(pair: Pair, parts: Parts, n: int, across: float, along: float) -> float:
    """The step in u that resolves part n of along u + across v, or its mean over v if `across` is not zero."""
    if parts.hinged[n] == 0:
        return resolved_by(SHARE * pair.steps[0, parts.number[n]], across, along)
    # hinges alone: the mean over v has a bend, and panels if that is narrow
    step = resolved_by(0.0, across, along)
    return step if step > NARROW else WIDEST


@without_references
def bends(
    pair: Pair,
    parts: Parts,
    m: int,
    centre: float,
    slope: float,
    width: float,
    longest: float,
    limit: float,
    axis: Axis,
    count: int,
) -> int:
    """Add the ends of panels at the narrow bends of part m, a function of centre + slope u + width v.

    Return the number of ends, which was `count` before. longest, limit : the longest panel, and where nodes end.
    """
    if parts.hinged[m] == 1 and slope != 0.0 and WIDEST * width <= NARROW * abs(slope):
        hinges = pair.series[parts.number[m]]
        for knot in range(1, len(hinges), 2):
            if hinges[knot + 1] != 0.0:
                place = (hinges[knot] - centre) / slope
                count = add_bend(axis, count, place, width / abs(slope), longest, limit)
    return count


@without_references
def longest_of(step: float) -> float:
    """The longest panel that resolves what equally spaced nodes at this step do."""
    return max(min(LONGEST, PANEL_STEPS * step), SHORTEST)
