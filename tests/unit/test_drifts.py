"""Drifts by quadrature against another rule for all fields at once, with functions of NumPy and SciPy.

Fields of rank 2 are in a plane, with Gauss and Legendre's rule in panels between all lines where a function has a kink;
smooth ones of rank 3 are summed over equally spaced nodes in three dimensions.
"""

import math
from itertools import combinations

import numpy as np
import pytest
from scipy import special

from sweeplib.networks.maths.activations import activation
from sweeplib.networks.maths.expectations import FAMILIES, expectations
from sweeplib.networks.maths.expectations.system import System
from sweeplib.networks.numerics.compiled import function_values
from sweeplib.networks.problem import target
from tests.tiers import slow_among, slow_but

RAMP = "piecewise(-0.5, -1, 0.7, 0.4, 1.5, 0)"
KNOTS, LEVELS = np.array([-0.5, 0.7, 1.5]), np.array([-1.0, 0.4, 0.0])
FUNCTIONS = {
    "erf": (lambda x: special.erf(x / math.sqrt(2.0)), lambda x: math.sqrt(2.0 / math.pi) * np.exp(-0.5 * x * x), ()),
    "tanh": (np.tanh, lambda x: 1.0 - np.tanh(x) ** 2, ()),
    "sigmoid": (special.expit, lambda x: special.expit(x) * special.expit(-x), ()),
    "he3": (lambda x: (x**3 - 3.0 * x) / math.sqrt(6.0), lambda x: (3.0 * x * x - 3.0) / math.sqrt(6.0), ()),
    "relu": (lambda x: np.maximum(x, 0.0), lambda x: (x > 0.0) * 1.0, (0.0,)),
    RAMP: (
        lambda x: np.interp(x, KNOTS, LEVELS),
        lambda x: np.concatenate([[0.0], np.diff(LEVELS) / np.diff(KNOTS), [0.0]])[np.searchsorted(KNOTS, x)],
        tuple(KNOTS),
    ),
}
FORMULAS = {
    "tanh(5*lam1)": (lambda x: np.tanh(5.0 * x[0]), ()),
    "tanh(10*lam1) + tanh(lam1 - 1)": (lambda x: np.tanh(10.0 * x[0]) + np.tanh(x[0] - 1.0), ()),
    "relu(lam1 - 0.5)": (lambda x: np.maximum(x[0] - 0.5, 0.0), (0.5,)),
    "tanh(3*lam1) + relu(lam1)": (lambda x: np.tanh(3.0 * x[0]) + np.maximum(x[0], 0.0), (0.0,)),
}
A, A_STAR, DELTA = np.array([1.0, -0.7, 1.3]), np.array([0.8, 1.5, -1.1]), 0.3


def panels(ends):
    """Nodes and weights of N(0, 1) in panels (rows, ends)."""
    x, weight = np.polynomial.legendre.leggauss(12)
    width = np.diff(ends)[..., None]
    u = ends[..., :-1, None] + 0.5 * width * (1.0 + x)
    share = 0.5 * width * weight * np.exp(-0.5 * u * u) / math.sqrt(2.0 * math.pi)
    return u.reshape(len(ends), -1), share.reshape(len(ends), -1)


def in_the_plane(factor, lines, width):
    """The fields (n, nodes) and the weights (nodes,) for a factor (n, 2) and lines (field, knot)."""
    grid = np.arange(-9.0, 9.0 + width, width)
    places = [(factor[m, 0], factor[m, 1], knot) for m, knot in lines]
    with np.errstate(all="ignore"):
        crossings = [
            (c * t - e * b) / (a * t - s * b) for (a, b, c), (s, t, e) in combinations([*places, (0.0, 1.0, 0.0)], 2)
        ]
        along = [c / a for a, b, c in places if b == 0.0]
        near = [at + sign * 2.0**-n for at in crossings for n in range(14) for sign in (-1.0, 1.0)]
        ends = np.unique(np.clip(np.nan_to_num([*grid, *crossings, *near, *along], posinf=9.0, neginf=-9.0), -9.0, 9.0))
        u, share = panels(ends[None])
        rows = [np.broadcast_to(end, u.shape[1]) for end in grid]
        rows += [np.clip((c - a * u[0]) / b, -9.0, 9.0) for a, b, c in places if b != 0.0]
    v, inner = panels(np.sort(np.clip(np.array(rows), -9.0, 9.0), axis=0).T)
    nodes = np.array([np.broadcast_to(u[0][:, None], v.shape).ravel(), v.ravel()])
    weight = (share[0][:, None] * inner).ravel()
    return factor @ nodes[:, weight > 1e-18], weight[weight > 1e-18]


def in_space(factor, step):
    x = step * np.arange(-int(7.5 / step), int(7.5 / step) + 1)
    nodes = np.array([part.ravel() for part in np.meshgrid(x, x, x)])
    weight = (step / math.sqrt(2.0 * math.pi)) ** 3 * np.exp(-0.5 * (nodes * nodes).sum(axis=0))
    return factor @ nodes[:, weight > 1e-16], weight[weight > 1e-16]


def expected(student, labels, p, fields, weight):
    """Ψ^M, Ψ^GF, Ψ^Var, Ψ^a, flat."""
    value, slope, _ = FUNCTIONS[student]
    lam, lam_star = fields[:p], fields[p:]
    f, pull = value(lam), A[:p, None] * slope(lam)
    error = labels(lam_star) - A[:p] @ f / p
    flow, drift = ((pull * error * weight) @ part.T for part in (lam, lam_star))
    square = (pull * (error * error + DELTA) * weight) @ pull.T
    return [drift, flow + flow.T, square, f @ (weight * error)]


def compared(found, student, labels, p, factor, nodes):
    """Drifts are within their stated error, and this or the true one is below 10⁻⁸ of the largest."""
    omega, k = factor @ factor.T, len(factor) - p
    Q, M, P = (np.ascontiguousarray(part) for part in (omega[:p, :p], omega[:p, p:], omega[p:, p:]))
    results = found.drifts_of(System(Q, M, P, A[:p], A_STAR[:k], DELTA, 1.0))
    stated = found.drift_errors(*(np.asarray(part)[None] for part in (Q, M, P, A[:p], A_STAR[:k], DELTA)))[0]
    true = expected(student, labels, p, *nodes)
    largest = max(np.abs(part).max() for part in true)
    error = max(np.abs(one - other).max() for one, other in zip(results, true, strict=True)) / largest
    assert error <= max(3.0 * stated, 1e-8)
    assert error <= 1e-8 or stated <= 10.0 * error
    return error, stated


STUDENTS = ("erf", "tanh", "sigmoid", "relu")
PAIRS = [(student, teacher) for student in STUDENTS for teacher in ("erf", "tanh", "he3", "relu", RAMP)]
PLANES = {
    (1, 1): np.array([[0.9, 0.0], [0.5, 1.1]]),
    (2, 1): np.array([[0.8, 0.3], [-0.4, 0.9], [0.7, 0.7]]),
    (2, 2): np.array([[1.0, 0.0], [0.2, 0.8], [0.9, 0.1], [-0.5, 0.6]]),
    (3, 2): np.array([[1.0, 0.0], [0.2, 0.8], [0.5, 0.5], [0.9, 0.1], [-0.5, 0.6]]),
}
"""Factors of Ω of rank 2, of so many students and teachers."""


@pytest.mark.parametrize(("student", "teacher"), slow_but(PAIRS, ("sigmoid", RAMP), ("relu", "tanh")))
def test_drifts_of_committees_of_rank_two(student, teacher):
    found = FAMILIES["quadrature"].pair_expectations(activation(student), activation(teacher))
    value, _, knots = FUNCTIONS[teacher]
    for (p, k), factor in PLANES.items():
        lines = [(i, knot) for i in range(p) for knot in FUNCTIONS[student][2]]
        lines += [(p + r, knot) for r in range(k) for knot in knots]

        def labels(lam_star, k=k):
            return A_STAR[:k] @ value(lam_star) / k

        compared(found, student, labels, p, factor, in_the_plane(factor, lines, 0.75))


FORMULA_CASES = [(name, student) for name in FORMULAS for student in STUDENTS]


@pytest.mark.parametrize(
    ("name", "student"), slow_but(FORMULA_CASES, ("tanh(5*lam1)", "erf"), ("relu(lam1 - 0.5)", "tanh"))
)
def test_drifts_of_formulas_steep_and_with_kinks(name, student):
    labels, knots = FORMULAS[name]
    for (p, k), factor in PLANES.items():
        if k == 1:
            lines = [(i, knot) for i in range(p) for knot in FUNCTIONS[student][2]]
            lines += [(p, knot) for knot in knots]
            nodes = in_the_plane(factor, lines, 0.2)
            compared(target(name).expectations(student, "erf"), student, labels, p, factor, nodes)


@pytest.mark.slow
@pytest.mark.parametrize("pair", [("tanh", "tanh"), ("erf", "sigmoid"), ("sigmoid", "tanh"), ("tanh", "he3")])
@pytest.mark.parametrize(("p", "k"), [(1, 2), (2, 1), (3, 2), (2, 3)])
def test_drifts_of_smooth_committees_of_rank_three(pair, p, k):
    found = FAMILIES["quadrature"].pair_expectations(*map(activation, pair))
    factor = np.random.default_rng(p + 10 * k).normal(size=(p + k, 3)) / math.sqrt(3.0)
    value = FUNCTIONS[pair[1]][0]
    nodes = in_space(factor, 0.2)
    compared(found, pair[0], lambda lam_star: A_STAR[:k] @ value(lam_star) / k, p, factor, nodes)


PRODUCT = "tanh(5*lam1)*lam2 + 0.5"
RULES = [("erf", "erf"), ("square", "square"), ("he3", "he3"), ("relu", "relu"), ("tanh", "erf")]
ON_PRODUCT = [("erf", PRODUCT), ("relu", PRODUCT)]


@pytest.mark.parametrize(("student", "teacher"), slow_among([*RULES, *ON_PRODUCT], *ON_PRODUCT))
def test_a_rule_that_leaves_out_the_variance_has_the_same_bits_of_all_else(student, teacher):
    needed = target(PRODUCT).expectations(student, "erf") if teacher == PRODUCT else expectations(student, teacher)
    omega = PLANES[3, 2] @ PLANES[3, 2].T + 0.1 * np.eye(5)
    system = System(omega[:3, :3].copy(), omega[:3, 3:].copy(), omega[3:, 3:].copy(), A, A_STAR[:2], DELTA, 1.0)
    whole, without = (needed.drifts_of(system._replace(stretch=stretch)) for stretch in (1.0, 0.0))
    for drift in ("M", "GF", "a"):
        assert np.array_equal(getattr(whole, drift), getattr(without, drift))
        assert np.isfinite(getattr(whole, drift)).all()


def test_the_variance_of_polynomial_students_counts_nodes_of_small_weight():
    """E[σ'² (Δ + E²)] of he5 against relu at the variance 9, by panels of Gauss: 10⁻¹¹ was left out, and not stated."""
    x, weight = np.polynomial.legendre.leggauss(20)
    z = (np.arange(-14.0, 14.0)[:, None] + 0.5 * (x + 1.0)).ravel()
    density = np.tile(0.5 * weight, 28) * np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
    lam = 2.9 * z[:, None] + np.sqrt(9.0 - 2.9**2) * z
    form = activation("he5")
    slope, value = function_values(form.derivative, lam), function_values(form.value, lam)
    expected = density @ (slope**2 * (0.3 + (np.maximum(z, 0.0)[:, None] - value) ** 2)) @ density
    one = np.ones(1)
    found = expectations("he5", "relu").drifts_of(
        System(9.0 * np.eye(1), 2.9 * np.eye(1), np.eye(1), one, one, 0.3, 1.0)
    )
    assert found.Var[0, 0] == pytest.approx(expected, rel=1e-13)
