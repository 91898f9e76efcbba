"""Gaussian expectations in special cases: identities, singular covariances, lanes, divergence."""

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

from sweeplib.networks.maths.activations import activation
from sweeplib.networks.maths.expectations import FAMILIES, expectations
from tests import plain
from tests.plain import blocks

ALIKE = ["erf|erf", "square|square", "relu|relu"]
BY_QUADRATURE = ["relu|erf", "erf|relu"]
PAIRS = ALIKE + BY_QUADRATURE


def of(pair):
    return expectations(*pair.split("|"))


def filled(needed, omega, p, a, a_star, Delta):
    return plain.drifts(needed, *blocks(omega, p), a, a_star, Delta)


def drifts(pair, omega, p, a, a_star, Delta):
    return filled(of(pair), omega, p, a, a_star, Delta)


def risk(pair, omega, p, a, a_star):
    return plain.risk(of(pair), *blocks(omega, p), a, a_star)


def wishart(rng, size, rank):
    factor = rng.normal(size=(size, rank))
    return factor @ factor.T / rank


@pytest.mark.parametrize(("p", "k"), [(1, 1), (3, 2), (2, 4)])
def test_square_equals_the_published_matrices(p, k):
    """arXiv 2305.18502, appendix A: a = a* = 1."""
    omega, Delta = wishart(np.random.default_rng(p), p + k, 9), 0.3
    Q, M, P = blocks(omega, p)
    tr, A = np.trace, np.trace(P) / k - np.trace(Q) / p
    overlap = M @ M.T
    variance = 4 / k**2 * ((tr(P) ** 2 + 2 * tr(P @ P)) * Q + 4 * tr(P) * overlap + 8 * M @ P @ M.T)
    variance -= 8 / (p * k) * ((tr(P) * tr(Q) + 2 * tr(overlap)) * Q + 2 * tr(Q) * overlap + 2 * tr(P) * Q @ Q)
    variance -= 8 / (p * k) * 4 * (overlap @ Q + Q @ overlap)
    variance += 4 / p**2 * ((tr(Q) ** 2 + 2 * tr(Q @ Q)) * Q + 4 * tr(Q) * Q @ Q + 8 * Q @ Q @ Q) + 4 * Delta * Q
    drift_M, drift_GF, drift_Var, _ = drifts("square|square", omega, p, np.ones(p), np.ones(k), Delta)
    np.testing.assert_allclose(drift_M, 2 * A * M + 4 * (M @ P / k - Q @ M / p), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(drift_GF, 4 * A * Q + 8 * (overlap / k - Q @ Q / p), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(drift_Var, variance, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("pair", ALIKE)
def test_a_perfect_student_is_at_rest(pair):
    """With the teacher's weights and second layer and no noise, every drift is zero; noise enters Ψ^Var alone."""
    P = wishart(np.random.default_rng(5), 3, 6)
    a = np.array([0.5, -1.0, 2.0])
    omega = np.block([[P, P], [P, P]])
    for drift in drifts(pair, omega, 3, a, a, 0.0):
        np.testing.assert_allclose(drift, 0.0, atol=1e-12)
    assert risk(pair, omega, 3, a, a) <= 1e-15
    assert np.diagonal(drifts(pair, omega, 3, a, a, 0.2)[2]).min() > 1e-3


@pytest.mark.parametrize("pair", PAIRS)
def test_splitting_units_changes_nothing(pair):
    """A student with every unit doubled is the same network, and its units have the same drifts (rank-deficient Ω)."""
    rng = np.random.default_rng(2)
    omega, a, a_star = wishart(rng, 3, 5), rng.normal(size=2), rng.normal(size=1)
    doubled = [0, 0, 1, 1, 2]
    big = omega[np.ix_(doubled, doubled)]
    small, large = drifts(pair, omega, 2, a, a_star, 0.1), drifts(pair, big, 4, a[[0, 0, 1, 1]], a_star, 0.1)
    close = {"rtol": 1e-6, "atol": 1e-7} if pair in BY_QUADRATURE else {"rtol": 1e-11}
    np.testing.assert_allclose(large[0], small[0][[0, 0, 1, 1]], **close)
    for one, two in zip(small[1:3], large[1:3], strict=True):
        np.testing.assert_allclose(two, one[np.ix_([0, 0, 1, 1], [0, 0, 1, 1])], **close)
    np.testing.assert_allclose(risk(pair, big, 4, a[[0, 0, 1, 1]], a_star), risk(pair, omega, 2, a, a_star), **close)


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("scale", [0.0, 1e-300, 1e-8, 1.0, 1e6])
def test_singular_covariances_of_any_scale_give_numbers(pair, scale):
    """Rank one, p > d, zero variances: results are finite, and symmetric where they must be."""
    factor = np.array([[1.0], [1.0], [-1.0], [0.0], [1.0]])
    omega = scale * factor @ factor.T
    results = drifts(pair, omega, 3, np.ones(3), np.ones(2), 0.1)
    assert all(np.isfinite(result).all() for result in results)
    assert (results[1] == results[1].T).all() and (results[2] == results[2].T).all()
    assert 0.0 <= risk(pair, omega, 3, np.ones(3), np.ones(2)) < np.inf


@pytest.mark.parametrize("pair", PAIRS)
def test_what_is_not_a_number_stays_so(pair):
    omega = np.array([[np.nan, 0.1], [0.1, 1.0]])
    assert np.isnan(risk(pair, omega, 1, np.ones(1), np.ones(1)))
    assert all(np.isnan(result).all() for result in drifts(pair, omega, 1, np.ones(1), np.ones(1), 0.0))


@pytest.mark.parametrize("pair", PAIRS)
def test_a_lane_does_not_see_the_others(pair):
    rng = np.random.default_rng(7)
    systems = [np.stack(list(parts)) for parts in zip(*(blocks(wishart(rng, 3, 4), 2) for _ in range(37)), strict=True)]
    second = rng.normal(size=(37, 2)), rng.normal(size=(37, 1))
    together = of(pair).risks(*systems, *second)
    alone = [of(pair).risks(*(part[i : i + 1] for part in (*systems, *second)))[0] for i in range(37)]
    assert together.tolist() == alone


def test_teacher_activation_defaults_to_the_students():
    assert expectations("erf") is expectations("erf", "erf")


@pytest.mark.parametrize("rank", [7, 3, 2])
@pytest.mark.parametrize("pair", ["erf|erf", "relu|relu"])
def test_quadrature_equals_closed_forms_as_nearly_as_it_says(pair, rank):
    """Two routes to the same numbers, also for singular Ω; the finer rule gives the error of the usual one."""
    quadrature = FAMILIES["quadrature"].pair_expectations(*map(activation, pair.split("|")))
    system = wishart(np.random.default_rng(3), 5, rank), 3, np.array([1.0, -0.7, 1.3]), np.array([0.8, 1.5]), 0.3
    exact, usual, finer = (filled(rule, *system) for rule in (of(pair), quadrature, quadrature.finer))
    for closed, result, fine in zip(exact, usual, finer, strict=True):
        error, largest = np.abs(result - closed).max(), np.abs(closed).max()
        assert error <= 1e-6 * largest
        assert error <= 3.0 * np.abs(result - fine).max() + 2e-8 * largest


@pytest.mark.parametrize("pair", ["relu|relu", *BY_QUADRATURE])
def test_drifts_are_smooth_along_a_path(pair):
    """As adaptive solvers at 1e-10 need: 40 values along a path of unit length are a polynomial of degree 16 to 1e-7.

    On the way one field passes another's orthogonal, and lines on which fields vanish cross.
    """
    start, end = np.random.default_rng(11).normal(size=(2, 4, 5)) / np.sqrt(5)
    s = np.linspace(0.0, 1.0, 40)
    omegas = [factor @ factor.T for factor in (start + 0.5 * x * (end - start) for x in s)]
    values = np.array(
        [
            np.concatenate([drift.ravel() for drift in drifts(pair, omega, 2, np.ones(2), np.ones(2), 0.1)])
            for omega in omegas
        ]
    )
    powers = np.polynomial.chebyshev.chebvander(2.0 * s - 1.0, 16)
    fit = powers @ np.linalg.lstsq(powers, values)[0]
    assert np.abs(fit - values).max() < 1e-7 * np.abs(values).max()


def test_relu_units_equal_opposite_or_without_weights():
    """σ'_i σ'_j σ² of opposite units is never positive; a unit without weights has no drift; equal units' are equal."""
    factor = np.array([[1.0, 0.2], [-1.0, -0.2], [0.0, 0.0], [1.0, 0.2], [0.3, 0.8]])
    drift_M, drift_GF, drift_Var, drift_a = drifts("relu|relu", factor @ factor.T, 4, np.ones(4), np.ones(1), 0.1)
    assert drift_Var[0, 1] == 0.0 and (drift_Var[2] == 0.0).all()
    assert (drift_M[2] == 0.0).all() and drift_GF[2, 2] == 0.0 and drift_a[2] == 0.0
    np.testing.assert_allclose(drift_M[0], drift_M[3], rtol=1e-13)
    np.testing.assert_allclose(drift_Var[0, 0], drift_Var[0, 3], rtol=1e-13)


def test_functions_bound_differently_have_names_of_their_own():
    """Cached machine code is linked by name: two functions with one name, loaded together, become one of them."""
    known = {}
    for pair in ("erf|erf", "tanh|erf", "he3|he3", "relu|relu"):
        for function in (of(pair).risk, of(pair).drifts, (of(pair).finer or of(pair)).drifts):
            called = (function.__globals__.get(name) for name in function.__code__.co_names)
            for inner in (thing.py_func for thing in called if isinstance(thing, Dispatcher)):
                constants = [inner.__globals__.get(name) for name in inner.__code__.co_names]
                constants = [getattr(getattr(thing, "py_func", thing), "__qualname__", thing) for thing in constants]
                assert known.setdefault((inner.__module__, inner.__qualname__), constants) == constants
