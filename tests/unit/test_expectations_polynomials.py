"""Expectations of polynomials: against the square's own, exact quadrature, Monte Carlo, and in the corners."""

import numpy as np
import pytest

from sweeplib.networks.maths.activations import activation
from sweeplib.networks.maths.expectations import FAMILIES, expectations
from tests import plain
from tests.plain import blocks

SERIES = "hermite(0.3, -1, 0.5, 0.4, 0, 0.1)"
PAIRS = ["he3|he3", "he3|square", f"{SERIES}|he2", "linear|he3", f"square|{SERIES}"]
SAMPLES = 100_000
DELTA = 0.3


def of(pair):
    return FAMILIES["polynomials"].pair_expectations(*map(activation, pair.split("|")))


def drifts(needed, omega, a, a_star):
    """Ψ^M, Ψ^GF, Ψ^Var, Ψ^a."""
    return plain.drifts(needed, *blocks(omega, len(a)), a, a_star, DELTA)


def closed_forms(pair, omega, a, a_star):
    """Risk and drifts, flat."""
    needed = of(pair)
    risk = plain.risk(needed, *blocks(omega, len(a)), a, a_star)
    return np.concatenate([[risk], *map(np.ravel, drifts(needed, omega, a, a_star))])


def moments(pair, fields, a, a_star):
    """Samples (samples, entries) of what `closed_forms` are the means of; the label noise is averaged by hand."""
    student, teacher = map(activation, pair.split("|"))
    lam, lam_star = fields[:, : len(a)], fields[:, len(a) :]
    error = teacher.value(lam_star) @ a_star / len(a_star) - student.value(lam) @ a / len(a)
    slopes = (student.derivative(lam) + 0.0 * lam) * a
    row = slopes * error[:, None]
    flow = row[:, :, None] * lam[:, None, :]
    variance = slopes[:, :, None] * slopes[:, None, :] * (error**2 + DELTA)[:, None, None]
    second_layer = student.value(lam) * error[:, None]
    parts = (error**2 / 2, row[:, :, None] * lam_star[:, None, :], flow + flow.swapaxes(1, 2), variance, second_layer)
    return np.concatenate([part.reshape(len(fields), -1) for part in parts], axis=1)


def factors():
    """Factors F of Ω = F Fᵀ, p = 3, k = 2: random, nearly singular (two units 10⁻⁵ apart, one tiny), rank deficient."""
    full = np.random.default_rng(17).normal(size=(5, 7)) / np.sqrt(7)
    near = full.copy()
    near[1] = near[0] + 1e-5 * near[1]
    near[2] *= 1e-5
    return {"random": full, "nearly singular": near, "rank deficient": full[:, :2]}


@pytest.mark.rest
@pytest.mark.parametrize("kind", factors())
@pytest.mark.parametrize("pair", PAIRS)
def test_equal_monte_carlo(pair, kind):
    """Every entry within 5 standard errors: a fresh seed would fail below 6·10⁻⁷ an entry, 3·10⁻⁴ for all 15 x 28."""
    factor, a, a_star = factors()[kind], np.array([1.0, -0.7, 1.3]), np.array([0.8, 1.5])
    fields = np.random.default_rng(1).normal(size=(SAMPLES, factor.shape[1])) @ factor.T
    samples = moments(pair, fields, a, a_star)
    error = samples.std(axis=0) / np.sqrt(SAMPLES)
    difference = closed_forms(pair, factor @ factor.T, a, a_star) - samples.mean(axis=0)
    assert (error > 0.0).all()
    assert np.abs(difference / error).max() < 5.0


@pytest.mark.parametrize("rank", [3, 2, 1])
@pytest.mark.parametrize("pair", [*PAIRS, "he6|hermite(0, 0, 1, 0, 0, 0, 0, 0, 0.2)"])
def test_equal_exact_quadrature(pair, rank):
    """p = 2, k = 1 on Ω of any rank: 16 Gauss-Hermite nodes an axis are exact up to degree 31, needed is 26."""
    factor = np.random.default_rng(rank).normal(size=(3, rank)) / np.sqrt(rank)
    a, a_star = np.array([1.2, -0.6]), np.array([0.7])
    nodes, weights = np.polynomial.hermite_e.hermegauss(16)
    grid = np.stack([axis.ravel() for axis in np.meshgrid(*[nodes] * rank)], axis=1)
    weight = np.prod(np.stack(np.meshgrid(*[weights / np.sqrt(2.0 * np.pi)] * rank)), axis=0).ravel()
    quadrature = weight @ moments(pair, grid @ factor.T, a, a_star)
    np.testing.assert_allclose(closed_forms(pair, factor @ factor.T, a, a_star), quadrature, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("p", "k"), [(1, 1), (3, 2), (2, 4)])
def test_the_square_by_its_own_formulas_is_the_same(p, k):
    """The family of the square is another derivation, in traces of products of Ω."""
    rng = np.random.default_rng(p)
    factor, a, a_star = rng.normal(size=(p + k, 9)) / 3.0, rng.normal(size=p), rng.normal(size=k)
    omega = factor @ factor.T
    special, general = expectations("square"), of("square|square")
    assert special.drifts is not general.drifts
    for one, other in zip(drifts(special, omega, a, a_star), drifts(general, omega, a, a_star), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
    risks = [plain.risk(needed, *blocks(omega, p), a, a_star) for needed in (special, general)]
    assert risks[0] == pytest.approx(risks[1], rel=1e-12)


@pytest.mark.parametrize("scale", [0.0, 1e-300, 1e-8, 1.0, 1e6])
@pytest.mark.parametrize("pair", ["he3|he3", "he6|he6", f"{SERIES}|he2"])
def test_singular_covariances_of_any_scale_give_numbers(pair, scale):
    """Rank one, p > d, zero variances: finite, and symmetric where it must be."""
    factor = np.array([[1.0], [1.0], [-1.0], [0.0], [1.0]])
    _, flow, variance, _ = results = drifts(of(pair), scale * factor @ factor.T, np.ones(3), np.ones(2))
    assert all(np.isfinite(result).all() for result in results)
    assert (flow == flow.T).all()
    assert (variance == variance.T).all()
    systems = [block[None] for block in blocks(scale * factor @ factor.T, 3)]
    assert -1e-15 <= of(pair).risks(*systems, np.ones((1, 3)), np.ones((1, 2)))[0] < np.inf


@pytest.mark.parametrize("pair", ["he2|he2", "he3|he3", f"{SERIES}|{SERIES}"])
def test_a_perfect_student_is_at_rest(pair):
    """With the teacher's weights and second layer only the label noise moves it: Ψ^Var = Δ a_i a_j E[σ'_i σ'_j]."""
    factor, a = np.random.default_rng(5).normal(size=(3, 6)) / 2.5, np.array([0.5, -1.0, 2.0])
    P = factor @ factor.T
    drift_M, drift_GF, drift_Var, drift_a = drifts(of(pair), np.block([[P, P], [P, P]]), a, a)
    for drift in (drift_M, drift_GF, drift_a):
        np.testing.assert_allclose(drift, 0.0, atol=1e-11)
    assert np.linalg.eigvalsh(drift_Var).min() > 0.0
    assert closed_forms(pair, np.block([[P, P], [P, P]]), a, a)[0] <= 1e-14


@pytest.mark.parametrize("pair", ["he3|he3", "linear|he3", f"{SERIES}|he2"])
def test_what_is_not_a_number_stays_so(pair):
    omega = np.array([[np.nan, 0.1], [0.1, 1.0]])
    assert np.isnan(closed_forms(pair, omega, np.ones(1), np.ones(1))[[0, 1, 2, 4]]).all()


def test_equal_on_the_sphere_to_powers_of_the_overlaps():
    """Q = P = 1, p = k = 1: as E[h_n(λ) h_n(λ*)] = m^n, R = 1 − m^n and Ψ^M = n (m^(n−1) − m)."""
    m = 0.3
    for n in range(1, 7):
        omega = np.array([[1.0, m], [m, 1.0]])
        risk, drift_M, *_ = closed_forms(f"he{n}|he{n}", omega, np.ones(1), np.ones(1))
        assert risk == pytest.approx(1.0 - m**n, rel=1e-12)
        assert drift_M == pytest.approx(n * (m ** (n - 1) - m), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("pair", ["he3|square", f"{SERIES}|he2"])
def test_a_lane_does_not_see_the_others(pair):
    rng = np.random.default_rng(7)
    omegas = [factor @ factor.T for factor in rng.normal(size=(37, 3, 4)) / 2.0]
    systems = [np.stack(parts) for parts in zip(*(tuple(blocks(omega, 2)) for omega in omegas), strict=True)]
    second = rng.normal(size=(37, 2)), rng.normal(size=(37, 1))
    together = of(pair).risks(*systems, *second)
    alone = [of(pair).risks(*(part[i : i + 1] for part in (*systems, *second)))[0] for i in range(37)]
    assert together.tolist() == alone


def test_only_polynomials_are_of_the_family():
    assert FAMILIES["polynomials"].pair_expectations(activation("erf"), activation("he3")) is None
    assert expectations("he3", "square").drifts is of("he3|square").drifts
