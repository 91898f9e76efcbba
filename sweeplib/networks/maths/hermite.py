"""Hermite coefficients of activations, and the information exponent that they define."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sweeplib.engine.base.arrays import Array
from sweeplib.errors import InputError
from sweeplib.networks.maths.activations import Activation

_REACH = 14
"""Where panels end, in standard deviations of z."""
_NODES_PER_PANEL = 32
"""Nodes of Gauss and Legendre between two ends; half of them tell the error."""


@dataclass(frozen=True)
class HermiteSeries:
    """Coefficients c_0, c_1, ... in the normalised Hermite polynomials, each with its error estimate."""

    coefficients: Array
    errors: Array


def hermite_polynomials(z: Array, degree: int) -> Array:
    """The values h_n(z) = He_n(z)/√n! for n = 0..degree, (degree + 1, *z.shape): orthonormal under N(0, 1)."""
    z = np.asarray(z, dtype=float)
    values = np.empty((degree + 1, *z.shape))
    values[0] = 1.0
    if degree > 0:
        values[1] = z
    for n in range(1, degree):
        values[n + 1] = (z * values[n] - math.sqrt(n) * values[n - 1]) / math.sqrt(n + 1)
    return values


def hermite_series(
    function: Callable[[float], float], degree: int = 20, knots: tuple[float, ...] = ()
) -> HermiteSeries:
    """The coefficients c_n = E[σ(z) h_n(z)] of a function σ, z ~ N(0, 1), for n = 0..degree.

    Gauss-Legendre quadrature on the panels between the integers of [−14, 14] and the `knots`: exact to rounding for
    smooth functions and for those with kinks at these, where Gauss-Hermite quadrature converges only as one over the
    number of nodes. The error is the difference to the rule with half the nodes, plus the rounding.
    """
    ends = np.unique([*np.arange(-_REACH, _REACH + 1), *(knot for knot in knots if abs(knot) < _REACH)])
    fine = _panel_coefficients(function, degree, _NODES_PER_PANEL, ends)
    coarse = _panel_coefficients(function, degree, _NODES_PER_PANEL // 2, ends)
    rounding = 64 * np.finfo(float).eps * np.max(np.abs(fine))
    return HermiteSeries(fine, np.abs(fine - coarse) + rounding)


def hermite_orders(activation: Activation, variances: tuple[float, ...] = (1.0,), degree: int = 20) -> frozenset[int]:
    """The orders from 1 to `degree` of the non-zero Hermite coefficients of σ(√q z) for any of these variances q.

    Zero means below ten times its error estimate.
    """
    knots = [] if activation.hinges is None else [knot for knot, _ in activation.hinges[1]]

    def orders(root: float) -> list[int]:
        """Return the orders that the activation has at fields of the standard deviation `root`, beyond errors."""
        series = hermite_series(lambda z: activation.value(root * z), degree, tuple(knot / root for knot in knots))
        return [int(n) for n in np.flatnonzero(np.abs(series.coefficients) > 10 * series.errors)]

    return frozenset(n for variance in variances for n in orders(math.sqrt(variance)) if n > 0)


def information_exponent(activation: Activation, degree: int = 20) -> int:
    """The order of the first non-zero Hermite coefficient beyond the constant (arXiv 2003.10409).

    Raises InputError when all are zero, up to `degree`.
    """
    orders = hermite_orders(activation, degree=degree)
    if not orders:
        raise InputError(f"no Hermite coefficient up to order {degree}", value=activation.name)
    return min(orders)


def pair_information_exponent(
    student: Activation,
    teacher: Activation,
    *,
    student_variances: tuple[float, ...] = (1.0,),
    teacher_variances: tuple[float, ...] = (1.0,),
) -> int:
    """The lowest order κ ≥ 1 at which both student and teacher have a Hermite coefficient.

    For fields of variance 1 and covariance m, E[σ(λ) σ*(λ*)] = Σ_l c_l(σ) c_l(σ*) m^l: the drift of a unit towards the
    teacher scales as m^(κ−1) at small m (arXiv 2003.10409, whose student is the teacher's own function). A field of
    variance q has the coefficients of σ(√q z); units that are free to grow have those of several `student_variances`.
    InputError if there is no such order, and thus no drift.
    """
    common = hermite_orders(student, student_variances) & hermite_orders(teacher, teacher_variances)
    if not common:
        pair, expected = f"{student.name}, {teacher.name}", "a Hermite coefficient of one order in both"
        raise InputError("student and teacher have nothing in common", value=pair, expected=expected)
    return min(common)


def _panel_coefficients(function: Callable[[float], float], degree: int, nodes: int, ends: Array) -> Array:
    """The coefficients (degree + 1,) by Gauss-Legendre quadrature, `nodes` in each panel between the `ends`."""
    offsets, weights = np.polynomial.legendre.leggauss(nodes)
    lengths = np.diff(ends)[:, None]
    z = (ends[:-1, None] + lengths * (0.5 * (offsets + 1.0))).ravel()
    density = (lengths * (0.5 * weights)).ravel() * np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    values = np.array([function(float(field)) for field in z])
    return hermite_polynomials(z, degree) @ (density * values)
