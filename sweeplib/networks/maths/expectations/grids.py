"""Equally spaced nodes for Gaussian means, E[f(g)] ≈ h Σ_n f(hn) φ(hn), and the steps h that resolve a function.

For analytic functions the error falls as exp(−2πy/h), y the distance of their poles from the real axis, and stays so
for functions that vary on a scale far below one, for which rules of Gauss and Hermite fail. Hinges of a function are a
row: an offset, then knots and jumps of the slope in turn.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.maths.activations.activation import Activation, hinges_of, kink
from sweeplib.networks.numerics.compiled import function_values, without_references

WIDEST = 0.8
"""The longest step: it resolves the Gaussian itself, to 2·10⁻¹³."""
REACH, NEGLIGIBLE = 8.5, 1e-16
"""Where nodes end, in standard deviations, and what polynomials may have beyond: they reach further."""
STEPS = tuple(2.4 * 0.5 ** (0.25 * n) for n in range(33))
"""The steps that are tried, on the scale of a field."""
UNRESOLVED = 0.1
"""The step for functions that none resolves, which have kinks or jumps."""
TOLERANCE = 1e-10
"""The relative error of the mean of a squared function at a step that resolves it."""
PLACES = 32
"""Places of the other fields at which the step of one is sought."""
LONGEST = 3.0
"""The longest panel, in standard deviations."""
SPREAD = 3.0
"""The standard deviation at which a function's step is sought, so that what it has far from zero counts."""
SHIFTS = np.array([[0.0], [0.29], [0.61]])
"""Where the grids that are compared begin, in parts of a step."""


def reach(degree: int) -> float:
    """Where nodes end for products of two polynomials of this degree, in standard deviations."""
    end = REACH
    while end ** (2 * degree) * math.exp(-0.5 * end * end) > NEGLIGIBLE * math.factorial(degree):
        end += 0.25
    return end


def resolving_step(values: Callable[[Array], Array], spread: float = SPREAD) -> float:
    """The step at which the mean of values(x)² over x ~ N(0, spread²) is accurate; values map (n,) to (n,)."""
    for step in STEPS:
        count = math.ceil((REACH + 1.0) * spread / step)
        # a step that resolves a function gives the same mean wherever its grid begins
        x = step * (np.arange(-count, count + 1) + SHIFTS)
        density = np.exp(-0.5 * (x / spread) ** 2)
        means = (values(x.ravel()).reshape(x.shape) ** 2 * density).sum(axis=1) / density.sum(axis=1)
        if np.ptp(means) <= TOLERANCE * abs(means[0]):
            return step
    return UNRESOLVED


def target_steps(values: Callable[[Array], Array], knots: Sequence[Sequence[float]], scale: float) -> list[float]:
    """The step that resolves a function, (k, n) to (n,), in each of k fields of the standard deviation `scale`.

    It is sought at some places of the others. Fields with knots have the length of panels instead.
    """
    k = len(knots)
    # always the same places: steps decide on the bits of results, in every process
    places = scale * np.random.default_rng(0).normal(size=(k, PLACES))

    def along(x: Array, r: int) -> Array:
        """Return the root mean square of f* at the values x of field r, over places of the other fields."""
        fields = np.repeat(places[:, :, None], len(x), axis=2)
        fields[r] = x
        return np.sqrt((values(fields.reshape(k, -1)).reshape(PLACES, -1) ** 2).mean(axis=0))

    return [
        LONGEST if bent else min(resolving_step(partial(along, r=r), scale), WIDEST) for r, bent in enumerate(knots)
    ]


def hinges_row(sigma: Activation) -> list[float]:
    """The row of an activation's hinges, of the kink at zero alone if it is not piecewise linear."""
    offset, hinges = hinges_of(sigma)
    return [offset, *(number for hinge in hinges for number in hinge)]


def filled_up(rows: Sequence[list[float]]) -> Array:
    """Rows of hinges as an array; hinges without a jump fill up the shorter ones."""
    return np.array([row + [0.0] * (max(map(len, rows)) - len(row)) for row in rows])


def rest_values(sigma: Activation, x: Array) -> Array:
    """The values at x (n,) of an activation that is not piecewise linear without its kink at zero."""
    return function_values(sigma.value, x) - kink(sigma) * np.maximum(x, 0.0)


def rest_step(sigma: Activation) -> float:
    """The step that resolves what an activation has beyond its hinges; infinite if that is nothing."""
    # places that are no knots: whatever is smooth and not zero is so at one of them
    if sigma.hinges is not None or np.abs(rest_values(sigma, np.linspace(-3.7, 3.7, 40))).max() <= 1e-12:
        return math.inf
    return resolving_step(partial(rest_values, sigma))


@without_references
def usable_step(reach: float, step: float, most: int) -> float:
    """The step, or a longer one for which `most` nodes reach from zero to `reach`; also for a step that is NaN."""
    return step if step * most > reach else reach / most
