"""Nodes of the law of an input as student units see it: the teacher's fields, the length of the rest, the label.

With an orthonormal basis of the span of the teacher's rows, or of any space that contains it, √d x has N(0, 1)
coordinates g (κ,) along it, and a rest of D dimensions, of length ρ, ρ² ~ χ²(D), and uniform direction, of which unit i
has the coordinate ω. A mean over inputs is a sum over nodes (g, ρ), with the label at each. Where student units and
label are all even or all odd in g, half the nodes do. `fine` is the `Accuracy`, the numbers of nodes; the teacher's
fields are L* g, L* (k, κ) `L_star`.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.engine.base.late_modules import scipy
from sweeplib.networks.maths.activations import activation
from sweeplib.networks.maths.activations.activation import bends_off_zero, hinges_of, kink
from sweeplib.networks.maths.expectations.grids import target_steps
from sweeplib.networks.maths.particles import rules

MOST_TENSOR = 12_000
"""The number of nodes of g up to which all combinations of a rule's nodes are taken."""
MOST_DIMENSIONS_OF_A_TENSOR = 4
"""They are taken in so few dimensions, whatever their number."""
FEWEST, MOST_IN_LINE = 5, 40
"""The least and the largest number of nodes in each direction, in such combinations."""
WITH_A_REST = {1: 24, 2: 18, 3: 13}
"""By dimension of g, the number of nodes in each direction where each node of g has its own nodes of the rest."""
LENGTHS, COSINES = ((8.0, 8), (math.nan, 6)), ((4.0, 14), (10.0, 20), (math.nan, 32))
"""Numbers of nodes for ρ and for ω, each up to a dimension of the rest."""
ANGLES, RADII = ((3.0, 100), (math.nan, 40)), 4
"""Numbers of nodes of the angle between g and ρ, up to a dimension of the rest each, and of the radius."""
OF_A_UNIT = 26
"""Number of nodes for the means of a unit with itself."""
GROWTH = 1.25
"""The factor of these numbers from one level to the next."""
LEAST_WEIGHT = 1e-15
"""Combinations of less weight are left out, except from exact rules. Together they have less than 2e-12."""
POINTS = 2**13
"""Number of low-discrepancy points of g where combinations are too many, doubled for each level."""
SMOOTH_DIMENSIONS = 8
"""The least dimension of the rest in which a kink of a unit, averaged over ω, counts as smooth.

Below, σ̄' has singularities |y ∓ 1|^((D−1)/2) where the kink leaves the sphere.
"""
MOST_HALF_LINE = 4
"""The level up to which a single kink at zero has Gauss rules of the half lines instead of panels."""
CELLS, NARROWEST, LEAST_JUMP = 2048, 1e-11, 1e-4
"""Intervals in which a kink is sought, the width at which the search ends, the least jump of a slope."""


Labels = Callable[[Array], Array]
"""A function of g (κ, n) that returns f* (n,)."""
Classes = Sequence[tuple[float, float, float]]
"""Of each Gaussian of the law of the input its odds, √d times the deviation of its inputs, and what it adds to f*."""


class Inputs(NamedTuple):
    """Nodes g (κ, n), lengths ρ (n,) of the rest, labels f* (n,) and weights (n,), whose sum is one.

    square_norm (n,) : E‖x‖² of the class of each node, to which the noise of SGD is proportional.
    """

    g: Array
    rho: Array
    label: Array
    weight: Array
    square_norm: Array


class Levels(NamedTuple):
    """How often the nodes of g, ρ, ω and of a unit with itself were made finer."""

    g: int = 0
    rho: int = 0
    omega: int = 0
    self_nodes: int = 0


COARSEST = Levels()
"""No number was made finer."""


class Accuracy(NamedTuple):
    """How fine the rules are, and what they allow for.

    g, rho, omega, self_nodes : numbers of nodes in each direction of g, for ρ, for ω and for a unit with itself.
    level : how often the number for g was made finer.
    exact : whether student and label are polynomials, for which the rules are exact.
    even : whether the student is a polynomial, whose means are polynomials in ρ².
    kinked : whether the integrand may have kinks on lines through g = 0, of one or two dimensions.
    at_zero : whether the student has a kink at zero, and no offsets.
    polar : whether g and ρ have nodes in polar coordinates, g of them for the angle and rho for the radius.
    rough : whether it has kinks or jumps elsewhere, even if smoothed over a width that vanishes as students turn to the
        teacher, or the points are no grid: then errors fall with a power of the number of nodes, else exponentially.
    """

    g: int
    rho: int
    omega: int
    self_nodes: int
    level: int
    exact: bool
    even: bool
    kinked: bool
    at_zero: bool
    polar: bool
    rough: bool


class Label(NamedTuple):
    """What rules need of a label f*(λ*): its degree if it is a polynomial, else None, and its kinks.

    kinked : whether it has any.
    elsewhere : whether there may be some but where a field is zero.
    """

    degree: int | None
    kinked: bool
    elsewhere: bool = False


def accuracy(
    student: str,
    label: Label,
    dimensions: int,
    D: float,
    *,
    offsets: bool = False,
    whole: bool = False,
    levels: Levels = COARSEST,
) -> Accuracy:
    """Return the `Accuracy` for a student's activation, by name, and a label: numbers of nodes, and other properties.

    dimensions : of g. D : the dimension of the rest of the input, 0 without a rest.
    offsets : whether units have offsets.
    whole : whether the rules serve the noise of SGD too, a mean of squares, and not the slope of the risk alone.
    levels : how often each number was made finer. From one level to the next the number for g becomes odd or even, so
        that not both of two rules miss a bend at zero.

    They are exact for two polynomials: of degrees n and m the slope has terms of degree n + max(n, m) in g, the noise
    of degree 2(n − 1) + 2 max(n, m).
    """
    sigma = activation(student)
    bent, m = bool(hinges_of(sigma)[1]), label.degree
    kinked = dimensions in {1, 2} and (label.kinked or kink(sigma) != 0.0)
    # nodes at level 0: of g as many as a grid of all directions allows, of others by the dimension D of the rest
    most = max(FEWEST, min(MOST_IN_LINE, math.floor(MOST_TENSOR ** (1.0 / max(dimensions, 1)))))
    base = min(most, WITH_A_REST.get(dimensions, most)) if D else most
    # each table ends with NaN, which no D is above
    rho, omega, angles = (
        next(count for below, count in counts if not below <= D) for counts in (LENGTHS, COSINES, ANGLES)
    )
    at_zero = kink(sigma) != 0.0 and not offsets
    polar = at_zero and dimensions == 1 and 0.0 < D < SMOOTH_DIMENSIONS
    base, rho = (angles, RADII) if polar else (base, rho)
    # nodes at the levels; polynomials have as many as their degrees need
    g, rho, omega, pairs = (
        round(GROWTH**level * count) for level, count in zip(levels, (base, rho, omega, OF_A_UNIT), strict=True)
    )
    g += (g + levels.g) % 2
    if sigma.hermite is not None:
        n = len(sigma.hermite) - 1
        rho, omega = (n + 1, 2 * n + 1) if whole else (n // 2 + 1, n + 1)
        pairs = n + 1
        if m is not None:
            g = max(n, m) + (n if whole else 1)
    exact = sigma.hermite is not None and m is not None
    # three reasons why errors fall with a power of the number of nodes: a kink that no mean over the rest smooths,
    # one that moves with the offset, kinks of labels that cross in a plane
    unsmoothed = bent and D < SMOOTH_DIMENSIONS and (D > 0 or dimensions > 1)
    moving = bends_off_zero(sigma) and dimensions > 0
    crossed = dimensions > 1 and label.kinked and (label.elsewhere or dimensions > 2)
    rough = unsmoothed or moving or crossed or dimensions > MOST_DIMENSIONS_OF_A_TENSOR
    # g, rho, omega, self_nodes, level
    sizes, even = (g if dimensions else 1, rho, omega, pairs, levels.g), sigma.hermite is not None
    return Accuracy(*sizes, exact, even, kinked and not exact, at_zero, polar, rough and not exact)


def level_of_label(labels: Labels, dimensions: int, D: float, fine: Accuracy, most: float) -> int:
    """The level at which a grid of g resolves a label, or the finest with `most` nodes of g, ρ and ω together.

    Each level has GROWTH times as many nodes along an axis. It is that of `fine` where its rules are no grid.
    """
    if fine.exact or fine.kinked or fine.polar or not 0 < dimensions <= MOST_DIMENSIONS_OF_A_TENSOR:
        return fine.level
    of_rest = (fine.rho if 0.0 < D < math.inf else 1) * (fine.omega if D > 0.0 and not fine.even else 1)
    wanted = 2.0 * rules.REACH / min(target_steps(labels, [()] * dimensions, 1.0)) + 1.0
    count = min(wanted * GROWTH, (most / of_rest) ** (1.0 / dimensions))
    return fine.level + max(0, math.floor(math.log(count / fine.g) / math.log(GROWTH)))


def inputs(L_star: Array, D: float, labels: Labels, classes: Classes, parity: int, fine: Accuracy) -> Inputs:
    """The nodes of a law of inputs that is a mixture of isotropic Gaussians.

    L_star (k, κ) : the teacher's fields are L* g. Labels of two fields may have kinks where one of them is zero;
        kinks of labels of one number are found.
    D : dimension of the rest of the input; ρ is one if D is infinite, and zero for D = 0, without a rest.
    labels : function of g (κ, n) that returns f* (n,).
    classes : of each Gaussian its odds, √d times the standard deviation of its inputs, and what it adds to f*.
    parity : +1 or -1 for an even or odd activation of the student, 0 for others.
    fine : the numbers of nodes.
    """
    parts = [_of_class(L_star, D, labels, component, parity, fine) for component in classes]
    g, *others = (np.concatenate(rows, axis=-1) for rows in zip(*parts, strict=True))
    return Inputs(np.ascontiguousarray(g), *others)


def _of_class(
    L_star: Array, D: float, labels: Labels, component: tuple[float, float, float], parity: int, fine: Accuracy
) -> Inputs:
    """The nodes of one Gaussian of the mixture: its odds, √d times the deviation of its inputs, what it adds to f*.

    The other arguments are those of `inputs`.
    """
    odds, deviation, label_of_class = component
    if fine.polar:
        first, rho, weight = rules.polar(int(D), fine.g, fine.rho)
        g = deviation * first[None]
        label = label_of_class + labels(g)
    else:
        g, rho, label, weight = _products(L_star, D, lambda g: label_of_class + labels(g), deviation, parity, fine)
    return Inputs(g, deviation * rho, label, odds * weight, np.full(len(weight), deviation**2))


def _products(
    L_star: Array, D: float, labels: Labels, deviation: float, parity: int, fine: Accuracy
) -> tuple[Array, Array, Array, Array]:
    """Return nodes g (κ, n) of this deviation, and ρ (n,), labels and weights (n,): each g with each ρ.

    The other arguments are those of `inputs`; with a parity of the label too, g and −g are one node.
    """
    if L_star.shape[1] == 1 and not fine.exact:
        places = kinks(lambda x: labels(deviation * x[None]))
        g, weight = _line(np.union1d(places, [0.0] if fine.at_zero else []), fine)
    else:
        g, weight = _fields(L_star, fine)
    g = deviation * g
    label, mirrored = labels(g), labels(-g)
    if parity and len(g) and np.allclose(mirrored, parity * label, rtol=1e-12, atol=1e-14):
        g, label, weight = _half(g, label, weight)
    single = D == 0 or math.isinf(D)
    lengths = np.array([[float(D > 0)], [1.0]]) if single else rules.lengths(int(D), fine.rho, even=fine.even)
    count = lengths.shape[1]
    weights = np.outer(weight, lengths[1]).ravel()
    return np.repeat(g, count, axis=1), np.tile(lengths[0], len(weight)), np.repeat(label, count), weights


def kinks(function: Callable[[Array], Array]) -> Array:
    """The places (m,) within ±REACH where a function of one number, of arrays (n,), or its slope jumps.

    Each interval is halved around its largest second difference. This falls as the square of the width where the
    function is smooth, and as the width, or not at all, at a kink or a jump.
    """
    at = np.linspace(-rules.REACH, rules.REACH, CELLS + 1)[1:-1]
    values = function(at)
    step, jump, least = at[1] - at[0], np.zeros(len(at)), LEAST_JUMP * max(np.ptp(values), math.ulp(0.0))
    while step > NARROWEST:
        step *= 0.5
        around = at + step * np.arange(-2.0, 3.0)[:, None]
        values = function(around.ravel()).reshape(around.shape)
        second = np.abs(np.diff(values, 2, axis=0))
        largest = second.argmax(axis=0)
        at = at + step * (largest - 1.0)
        # in narrower intervals second differences are rounding errors
        if step > 1e3 * NARROWEST:
            jump = second.max(axis=0) / step
    places = np.sort(at[jump > least])
    return places[np.diff(places, prepend=-math.inf) > 1e3 * NARROWEST]


def with_constant(nodes: Inputs) -> Inputs:
    """The nodes with one more coordinate of g, which is one."""
    return nodes._replace(g=np.vstack([nodes.g, np.ones(nodes.g.shape[1])]))


@cache
def parity_of(name: str) -> int:
    """The parity of an activation by name: +1 for an even one, −1 for an odd one, 0 for others."""
    # values on both sides of zero are compared: any activation by name is a smooth function or a few lines
    value, places = activation(name).value, np.linspace(0.05, 4.0, 37).tolist()
    to_right, to_left = (np.array([value(sign * x) for x in places]) for sign in (1.0, -1.0))
    return next((sign for sign in (1, -1) if np.allclose(to_right, sign * to_left, rtol=1e-12, atol=1e-14)), 0)


def _line(places: Array, fine: Accuracy) -> tuple[Array, Array]:
    """Nodes g (1, n) and weights (n,) of one number, for functions with kinks or jumps at the places (m,)."""
    if places.size and (places.any() or fine.level > MOST_HALF_LINE):
        nodes, weights = rules.panels(places, fine.level)
    else:
        nodes, weights = rules.line(fine.g, kinked=places.size > 0)
    return nodes[None], weights


def _fields(L_star: Array, fine: Accuracy) -> tuple[Array, Array]:
    """Nodes g (κ, n) and weights (n,): polar around kinks in a plane, all combinations of a line's, or Sobol's."""
    dimensions = L_star.shape[1]
    if fine.kinked and dimensions == 2:
        return rules.plane((fine.g + 1) // 2, fine.g, L_star)
    if _by_tensor(dimensions, fine.g):
        nodes, weights = rules.tensor([rules.line(fine.g, polynomial=fine.exact)] * dimensions)
        mask = weights > (0.0 if fine.exact else LEAST_WEIGHT)
        return nodes[:, mask], weights[mask]
    # the points ±g have the same weight: means of odd functions are exact
    points = scipy.stats.qmc.Sobol(dimensions, scramble=True, seed=0).random(POINTS * 2**fine.level)
    half = scipy.special.ndtri(points).T
    return np.concatenate([half, -half], axis=1), np.full(2 * len(points), 0.5 / len(points))


def _by_tensor(dimensions: int, count: int) -> bool:
    """Whether combinations of `count` nodes in each direction are taken, and not low-discrepancy points."""
    return dimensions <= MOST_DIMENSIONS_OF_A_TENSOR or count**dimensions <= 3 * MOST_TENSOR


def count_of_fields(dimensions: int, fine: Accuracy) -> float:
    """About the number of nodes g that `inputs` takes, before halves are left out."""
    if fine.polar:
        return float(fine.g)
    if fine.kinked and dimensions == 2:
        return fine.g * (fine.g + 2.0 * rules.FEWEST_IN_A_PANEL)
    return float(fine.g**dimensions) if _by_tensor(dimensions, fine.g) else 2.0 * POINTS * 2**fine.level


def _half(g: Array, label: Array, weight: Array) -> tuple[Array, Array, Array]:
    """The nodes, labels and weights with one node of each pair ±g, of the weight of both; a node g = 0 stays."""
    # in lexical order g and −g have mirrored places
    order = np.lexsort(g[::-1])
    middle = len(order) // 2
    half = order[middle:]
    weights = weight[half] * 2.0
    if len(order) % 2:
        weights[0] = weight[half[0]]
    return g[:, half], label[half], weights
