"""Rules of integration for the length and for one coordinate of a Gaussian vector, in few and in very many dimensions.

A vector of D independent N(0, 1) numbers has a length ρ, ρ² ~ χ²(D), and a direction that is uniform on the sphere and
independent of it. One coordinate ω of the direction has the density ∝ (1 − ω²)^((D−3)/2). For D → ∞ the products ρω of
independent directions are independent N(0, 1) numbers.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from functools import cache, wraps
from typing import ParamSpec

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.engine.base.late_modules import scipy
from sweeplib.networks.maths.expectations.gauss import half_range, legendre, normal, trapezoidal

P = ParamSpec("P")

HALF_RANGE = 200
"""The largest D for which ρ has a rule in polynomials of ρ itself."""
REACH = 7.0
"""Where rules of equal steps end, in standard deviations."""

FEWEST_EQUAL = 16
"""With fewer nodes a Gauss rule is more accurate than equal steps."""
FEWEST_IN_A_PANEL = 6
"""Nodes of an angle between two kinks, however near."""
IN_A_PANEL, WIDEST_PANEL = 10, 1.5
"""Nodes in a panel of a line, and its largest width."""


def _remembered(function: Callable[P, Array]) -> Callable[P, Array]:
    """The function with a memory of its results; each caller gets a copy, which it may change."""
    cached = cache(function)

    @wraps(function)
    def copied(*args: P.args, **kwargs: P.kwargs) -> Array:
        return cached(*args, **kwargs).copy()  # type: ignore[arg-type]

    return copied


@_remembered
def lengths(D: int, count: int, *, even: bool) -> Array:
    """Gauss nodes and weights (2, count) of ρ, of polynomials up to 2 count − 1 in ρ², or in ρ for small D.

    Those in ρ² are Laguerre's in ρ²/2, with α = D/2 − 1: for `even` functions, and for all if D > HALF_RANGE. Functions
    with poles are met better by those in ρ. Weights below 10⁻³² are rounding: so are moments from about the 80th on.
    """
    if not even and D <= HALF_RANGE:
        return np.array(half_range(count, D - 1))
    n = np.arange(float(count))
    squares, weights = _gauss(2.0 * n + 0.5 * D, np.sqrt(n[1:] * (n[1:] + 0.5 * D - 1.0)))
    return np.array([np.sqrt(2.0 * squares), weights])


@_remembered
def coordinates(D: float, count: int) -> Array:
    """Gauss nodes and weights (2, count) of ω, or equally spaced ones of a N(0, 1) number for D = ∞.

    The polynomials are those of Gegenbauer with parameter D/2 − 1.
    """
    if math.isinf(D):
        return np.array(trapezoidal(count, 2.0 * REACH / max(count - 1, 1)))
    n = np.arange(2.0, count)
    beside = np.concatenate(
        [[1.0 / D][: count - 1], 0.25 * n * (n + D - 3.0) / ((n + 0.5 * D - 1) * (n + 0.5 * D - 2))]
    )
    return np.array(_gauss(np.zeros(count), np.sqrt(beside)))


def moments(D: float, most: int) -> Array:
    """The moments E[ω^j] for j = 0, ..., most; for D = ∞ ω is a N(0, 1) number."""
    values = np.zeros(most + 1)
    values[0] = 1.0
    for j in range(2, most + 1, 2):
        values[j] = values[j - 2] * (j - 1) / (1.0 if math.isinf(D) else D + j - 2)
    return values


@_remembered
def line(count: int, *, kinked: bool = False, polynomial: bool = False, even: bool = False) -> Array:
    """Nodes and weights (2, n) of a N(0, 1) number, about `count`.

    Gauss rules for polynomials, for few nodes and, of half the line, for a function `kinked` at zero; else equally
    spaced nodes. For `even` functions the nodes are those of one half.
    """
    if kinked:
        x, weights = map(np.array, half_range(math.ceil(count / 2), 0))
        if even:
            return np.array([x, weights])
        return np.array([np.concatenate([-x[::-1], x]), 0.5 * np.concatenate([weights[::-1], weights])])
    nodes = np.array(normal(count)) if polynomial or count < FEWEST_EQUAL else coordinates(math.inf, count)
    if even:
        nodes = nodes[:, count // 2 :]
        # a node at zero is its own mirror image
        nodes[1] *= np.where(nodes[0] > 1e-12, 2.0, 1.0)
    return np.ascontiguousarray(nodes)


def panels(kinks: Array, level: int) -> Array:
    """Nodes and weights (2, n) of a N(0, 1) number, for functions with kinks or jumps at some places within ±REACH.

    Gauss rules on panels that end at the kinks. On each side of one their widths double, from WIDEST_PANEL/2^level on,
    as a kink of a student is smoothed over a width that may be small. None is wider than WIDEST_PANEL/1.5^level.
    """
    ends = np.concatenate([kinks[:1] - 2.0 * REACH, kinks, kinks[-1:] + 2.0 * REACH])
    smallest, widest = WIDEST_PANEL / 2.0**level, WIDEST_PANEL / 1.5**level
    steps = np.minimum(smallest * 2.0 ** np.arange(level + 1), widest)
    distances = np.concatenate([steps, np.full(math.ceil(2.0 * REACH / widest), widest)]).cumsum()
    cuts = [np.array([-REACH, REACH]), kinks]
    for left, right in itertools.pairwise(ends):
        half = distances[distances < 0.5 * (right - left) - 0.25 * smallest]
        cuts += [left + half, right - half, np.array([0.5 * (left + right)])]
    cut, (x, weights) = np.unique(np.concatenate(cuts)), np.array(legendre(IN_A_PANEL))
    cut = cut[np.abs(cut) <= REACH]
    width = np.diff(cut)[:, None]
    nodes = cut[:-1, None] + width * x
    weight = width * weights * np.exp(-0.5 * nodes * nodes)
    return np.array([nodes.ravel(), weight.ravel() / weight.sum()])


def plane(radii: int, angles: int, normals: Array) -> tuple[Array, Array]:
    """Nodes (2, n) and weights (n,) of two independent N(0, 1) numbers, for functions with kinks on lines through zero.

    normals (lines, 2) : a normal of each line. The angle has Gauss nodes between the lines, at least `angles` of them
    in the half plane; the other half has the same nodes with the opposite sign.
    """
    directions = np.arctan2(normals[:, 1], normals[:, 0])[np.abs(normals).max(axis=1) > 0.0] % math.pi
    cuts = np.unique(np.round(directions, 12)) if directions.size else np.zeros(1)
    radius, of_radius = lengths(2, radii, even=False)
    parts, of_angles = [], []
    for left, right in itertools.pairwise([*cuts, cuts[0] + math.pi]):
        x, weights = np.array(legendre(FEWEST_IN_A_PANEL + math.ceil(angles * (right - left) / math.pi)))
        parts.append(left + 0.5 * math.pi + (right - left) * x)
        of_angles.append((right - left) / (2.0 * math.pi) * weights)
    angle = np.concatenate(parts)
    half = np.array([np.outer(function, radius).ravel() for function in (np.cos(angle), np.sin(angle))])
    weight = np.outer(np.concatenate(of_angles), of_radius).ravel()
    return np.concatenate([half, -half], axis=1), np.concatenate([weight, weight])


def polar(D: int, angles: int, radii: int) -> Array:
    """Nodes and weights (3, n) of a N(0, 1) number g and the length ρ of D others, for units with a kink at zero.

    (g, ρ) = r (cos θ, sin θ): r has the law of the length of D + 1 numbers, θ the density ∝ sin^(D−1) θ. The means of
    such a unit over ω are not smooth at two angles, at every r.
    """
    radius, of_radius = lengths(D + 1, radii, even=False)
    count = max(1, round(0.5 * angles / IN_A_PANEL))
    x, weights = np.array(legendre(math.ceil(0.5 * angles / count)))
    # panels from 0 to π/2, and their mirror images
    quarter = (0.5 * math.pi / count * (np.arange(count)[:, None] + x)).ravel()
    angle = np.concatenate([quarter, math.pi - quarter])
    of_angle = np.tile(weights, 2 * count) * np.sin(angle) ** (D - 1)
    parts = np.outer(np.cos(angle), radius), np.outer(np.sin(angle), radius), np.outer(of_angle, of_radius)
    return np.array([array.ravel() for array in parts]) / np.array([[1.0], [1.0], [of_angle.sum()]])


def tensor(axes: Sequence[Array]) -> tuple[Array, Array]:
    """Nodes (dimensions, n) and weights (n,) of all combinations of the nodes of rules (2, count), one a dimension."""
    if not axes:
        return np.empty((0, 1)), np.ones(1)
    nodes, weights = (np.meshgrid(*(axis[row] for axis in axes), indexing="ij") for row in range(2))
    return np.array([array.ravel() for array in nodes]), np.prod([array.ravel() for array in weights], axis=0)


def _gauss(diagonal: Array, beside: Array) -> tuple[Array, Array]:
    """Nodes (n,) and weights (n,) from the Jacobi matrix of the orthogonal polynomials (Golub and Welsch).

    diagonal (n,), beside (n − 1,) : its entries. Weights are the squared first components of its eigenvectors.
    """
    nodes, vectors = scipy.linalg.eigh_tridiagonal(diagonal, beside)
    return nodes, np.asarray(vectors[0] ** 2)
