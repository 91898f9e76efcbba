"""Means of a unit with itself: E[σ²], E[σσ'], E[σσ'λ]/E[λ²] and E[σ'² ‖x‖²], σ at λ + b, λ Gaussian in each class.

Inputs are a mixture of classes, Gaussians with odds and deviations of their own. Closed form for piecewise linear
activations: on the piece from l to u, σ = α + βλ, with the moments T_n = E[λ^n 1(l < λ < u)]; an offset b shifts the
pieces. Other activations by nodes, exactly for polynomials. `rule` is the `SelfRule`, `means` the `SelfMeans` to fill.
"""

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.networks.maths.activations.activation import Activation, kink
from sweeplib.networks.maths.particles import rules
from sweeplib.networks.maths.particles.inputs import Classes, parity_of
from sweeplib.networks.numerics.compiled import over_arrays, without_references
from sweeplib.networks.numerics.elementary import error_function, exponential

FAR, NEAR = 1e100, 1e-150
"""A place beyond all fields, and the least standard deviation."""
SMALLEST_NORM = 1e-20
"""The least E[λ²] of which E[σσ'λ]/E[λ²] is computed; it multiplies numbers that are smaller below."""


class SelfRule(NamedTuple):
    """A rule for the means.

    line (3, n) : nodes of fields of variance one, their weights, and these times E‖x‖² of the class; none for piecewise
        linear activations.
    value, slope : addresses of σ and σ' (x, out).
    pieces (m, 4) : l, u, α and β of each piece; none for other activations.
    classes (c, 2) : odds of each class, and the deviation of its inputs.
    """

    line: Array
    value: Any
    slope: Any
    pieces: Array
    classes: Array


class SelfMeans(NamedTuple):
    """The variances and means of p units, and work arrays (p n,).

    norm, offset (p,) : E[λ²] over inputs of deviation one, and b.
    square, mixed, tilted, steep (p,) : the means E[σ²], E[σσ'λ]/E[λ²], E[σσ'], and E[σ'² ‖x‖²] with E‖x‖² of each
    class.
    """

    norm: Array
    offset: Array
    square: Array
    mixed: Array
    tilted: Array
    steep: Array
    x: Array
    value: Array
    slope: Array


def self_rule(activation: Activation, classes: Classes, count: int, *, offsets: bool) -> SelfRule:
    """The rule for an activation by `count` nodes, with offsets or without, and the classes of a law of inputs."""
    pieces, line = np.empty((0, 4)), np.empty((3, 0))
    if activation.hinges is not None:
        pieces = _pieces(*activation.hinges)
    else:
        polynomial = activation.hermite is not None
        even, kinked = not offsets and parity_of(activation.name) != 0, not offsets and kink(activation) != 0.0
        rule = rules.line(count, polynomial=polynomial, kinked=kinked, even=even)
        line = np.concatenate(
            [[deviation * rule[0], odds * rule[1], odds * deviation**2 * rule[1]] for odds, deviation, _ in classes],
            axis=1,
        )
    odds = np.array([component[:2] for component in classes])
    return SelfRule(line, over_arrays(activation.value), over_arrays(activation.derivative), pieces, odds)


def self_means(p: int, rule: SelfRule) -> SelfMeans:
    """The `SelfMeans` of p units by a rule, empty but for the offsets, which are zero."""
    norm, square, mixed, tilted, steep = (np.empty(p) for _ in range(5))
    x, value, slope = (np.empty(p * rule.line.shape[1]) for _ in range(3))
    return SelfMeans(norm, np.zeros(p), square, mixed, tilted, steep, x, value, slope)


def _pieces(offset: float, hinges: Sequence[tuple[float, float]]) -> Array:
    """The pieces (l, u, α, β) between the knots of σ(λ) = offset + Σ jump (λ − knot)⁺, from pairs (knot, jump)."""
    knots = [-FAR, *(knot for knot, _ in hinges), FAR]
    pieces, constant, slope = [], offset, 0.0
    for number, (low, high) in enumerate(itertools.pairwise(knots)):
        if number:
            knot, jump = hinges[number - 1]
            constant, slope = constant - jump * knot, slope + jump
        pieces.append((low, high, constant, slope))
    return np.array(pieces)


@without_references
def fill_self_means(rule: SelfRule, means: SelfMeans, slopes: bool) -> None:
    """Fill E[σ²] and, with `slopes` or where they cost nothing more, E[σσ'λ]/E[λ²], E[σσ'] and E[σ'² ‖x‖²]."""
    norm, square, mixed, tilted, steep = means.norm, means.square, means.mixed, means.tilted, means.steep
    for i in range(norm.shape[0]):
        square[i], mixed[i], tilted[i], steep[i] = 0.0, 0.0, 0.0, 0.0
    if rule.pieces.shape[0]:
        for c in range(rule.classes.shape[0]):
            for n in range(rule.pieces.shape[0]):
                add_piece(rule.pieces[n], rule.classes[c, 0], rule.classes[c, 1], means)
    else:
        add_means_by_nodes(rule, means, slopes)
    for i in range(norm.shape[0]):
        # until here `mixed` is E[σσ'λ]
        mixed[i] = mixed[i] / norm[i] if norm[i] > SMALLEST_NORM else 0.0


@without_references
def add_piece(piece: Array, odds: float, deviation: float, means: SelfMeans) -> None:
    """Add the means over one piece (l, u, α, β) in a class of inputs with these odds and this deviation."""
    low_field, high_field, offset, slope = piece[0], piece[1], piece[2], piece[3]
    norm, square, mixed, tilted = means.norm, means.square, means.mixed, means.tilted
    density = math.sqrt(0.5 / math.pi)
    for i in range(norm.shape[0]):
        # FAR over NEAR is finite: units of norm zero need no case of their own
        s, b = max(deviation * math.sqrt(norm[i]), NEAR), means.offset[i]
        low, high, constant = low_field - b, high_field - b, offset + slope * b
        left, right = low / s, high / s
        # T_0, T_1 and T_2 for λ ~ N(0, s²)
        T_0 = 0.5 * (error_function(math.sqrt(0.5) * right) - error_function(math.sqrt(0.5) * left))
        at_left, at_right = density * exponential(-0.5 * left * left), density * exponential(-0.5 * right * right)
        T_1 = s * (at_left - at_right)
        T_2 = s * s * T_0 + s * (low * at_left - high * at_right)
        square[i] += odds * (constant * constant * T_0 + 2.0 * constant * slope * T_1 + slope * slope * T_2)
        mixed[i] += odds * (constant * slope * T_1 + slope * slope * T_2)
        tilted[i] += odds * (constant * slope * T_0 + slope * slope * T_1)
        means.steep[i] += odds * deviation * deviation * slope * slope * T_0


@without_references
def add_means_by_nodes(rule: SelfRule, means: SelfMeans, slopes: bool) -> None:
    """Add the sums over the rule's nodes to E[σ²] and, with `slopes`, to E[σσ'λ], E[σσ'] and E[σ'² ‖x‖²]."""
    norm, offset, mixed, tilted, steep = means.norm, means.offset, means.mixed, means.tilted, means.steep
    x, value, slope, p = means.x, means.value, means.slope, norm.shape[0]
    for n in range(rule.line.shape[1]):
        for i in range(p):
            x[n * p + i] = offset[i] + math.sqrt(norm[i]) * rule.line[0, n]
    rule.value(x, value)
    for n in range(rule.line.shape[1]):
        for i in range(p):
            means.square[i] += rule.line[1, n] * value[n * p + i] * value[n * p + i]
    if slopes:
        rule.slope(x, slope)
        for n in range(rule.line.shape[1]):
            for i in range(p):
                at = n * p + i
                both = rule.line[1, n] * value[at] * slope[at]
                mixed[i] += both * (x[at] - offset[i])
                tilted[i] += both
                steep[i] += rule.line[2, n] * slope[at] * slope[at]
