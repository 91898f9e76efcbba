"""The closed forms compared to independent routes: drifts, simulations, minimisation, the ODE."""

import numpy as np
import pytest
import xarray as xr
from scipy.integrate import quad, solve_ivp
from scipy.optimize import minimize_scalar
from scipy.stats import beta

from sweeplib.engine.files.published import reference
from sweeplib.networks import theory
from sweeplib.networks.maths.expectations import expectations
from sweeplib.networks.theory.exit_times import mean_log_growth, noise_variance
from tests import plain
from tests.tiers import slow_but

SETTINGS = [(1, 0.05, 0.3), (2, 0.2, 1.0), (4, 0.4, 0.0), (8, 1.5, 0.5)]


def spherical_drifts(M, Q, gamma, Delta):
    p = len(M)
    one = np.ones((1, 1))
    drift_M, drift_Q, drift_Var, _ = plain.drifts(expectations("square"), Q, M, one, np.ones(p), one[0], Delta)
    drift_Q += gamma / p * drift_Var
    norm = np.diagonal(drift_Q)
    return drift_M - M * norm[:, None] / 2, drift_Q - Q * (norm[:, None] + norm) / 2


@pytest.mark.parametrize(("p", "gamma", "Delta"), SETTINGS)
def test_rates_are_the_jacobian_at_the_origin(p, gamma, Delta):
    small = 1e-6
    drift_M, _ = spherical_drifts(np.eye(p)[:, :1] * small, np.eye(p), gamma, Delta)
    assert drift_M[0, 0] / small == pytest.approx(theory.escape_rate(gamma, p, Delta), rel=1e-9)
    if p > 1:
        Q = np.eye(p)
        Q[0, 1] = Q[1, 0] = small
        _, drift_Q = spherical_drifts(np.zeros((p, 1)), Q, gamma, Delta)
        assert -drift_Q[0, 1] / small == pytest.approx(theory.student_alignment_rate(gamma, p), rel=1e-9)


@pytest.mark.parametrize(("p", "Delta"), [(1, 0.0), (1, 1.0), (2, 0.5), (16, 2.0)])
def test_optimal_learning_rate_minimises_the_steps(p, Delta):
    largest = theory.maximal_learning_rate(p, Delta)

    def steps(gamma):
        return theory.annealed_exit_time(gamma, p, 1e5, Delta, 0.1) * p * 1e5 / gamma

    found = minimize_scalar(steps, bounds=(0.01 * largest, 0.99 * largest), method="bounded", options={"xatol": 1e-10})
    assert theory.optimal_learning_rate(p, Delta) == pytest.approx(found.x, rel=1e-6)
    assert theory.escape_rate(largest, p, Delta) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    ("T", "Delta", "d", "known"),
    [
        (0.1, 0.0, 300, 1 / 12),
        (0.1, 0.5, 300, 0.079926),
        (0.1, 1.0, 300, 0.076785),
        (0.1, 0.5, 3000, 0.079950),
        (0.1, 1.0, 3000, 0.076830),
        (0.01, 0.5, 1000, None),
        (0.5, 1.0, 300, None),
    ],
)
def test_the_odes_own_optimum_is_that_of_its_mean_exit_steps(T, Delta, d, known):
    """By adaptive quadrature over the law of m0, sin^(d−2) of an angle, whose logarithm is in the weight at zero."""
    norm = quad(lambda z: np.sqrt(d) * (1.0 - z * z) ** ((d - 3) / 2), 0.0, 1.0, points=[3 / np.sqrt(d)])[0]

    def steps(gamma):
        def density(root):  # m0 = root³, so that the logarithm is smooth
            m0 = root**3
            time = theory.exact_exit_time(m0, gamma, Delta, T)
            return time * np.sqrt(d) * (1.0 - m0 * m0) ** ((d - 3) / 2) * 3.0 * root**2

        last = (12.0 / np.sqrt(d)) ** (1 / 3)
        return quad(density, 0.0, min(last, 0.8), limit=400, epsabs=0.0, epsrel=1e-12)[0] / norm / gamma

    found = theory.exact_optimal_learning_rate(d, Delta, T)
    near = np.array([0.99, 1.0, 1.01]) * found
    left, middle, right = (steps(gamma) for gamma in near)
    off = 0.5 * (left - right) / (left - 2.0 * middle + right)  # the vertex of the parabola, in hundredths
    assert abs(off) < 0.02
    assert found <= theory.optimal_learning_rate(1.0, Delta) * (1.0 + 1e-9)
    if known:
        assert found == pytest.approx(known, abs=6e-7)


def test_the_odes_own_optimum_is_found_below_the_rates_at_which_some_starts_never_exit():
    """It was NaN where some start does not at .38 of the largest rate. The mean over 2·10⁵ quantiles has no less."""
    found = theory.exact_optimal_learning_rate(300, 1.0, [0.95, 0.99])
    m0 = np.sqrt(beta.ppf((np.arange(200_000) + 0.5) / 200_000, 0.5, 149.5))
    left, middle, right = (theory.exact_exit_time(m0, x * found[0], 1.0, 0.95).mean() / x for x in (0.99, 1.0, 1.01))
    assert abs(0.5 * (left - right) / (left - 2.0 * middle + right)) < 0.02
    assert np.isnan(found[1])  # at which few starts, but not too few, decide


@pytest.mark.parametrize(
    ("name", "formula", "column"),
    [
        ("phase_retrieval_optima", theory.optimal_learning_rate, "gamma_opt"),
        ("phase_retrieval_gains", theory.overparametrisation_gain, "gain"),
    ],
)
def test_published_optima_and_gains(name, formula, column):
    p, Delta, values = (np.array(reference(name).columns[each]) for each in ("p", "Delta", column))
    np.testing.assert_allclose(formula(p, Delta), values, rtol=1e-14)


def test_gain_is_the_ratio_of_the_steps():
    assert theory.overparametrisation_gain(1, 0.7) == pytest.approx(1.0)
    steps = [
        p / (theory.optimal_learning_rate(p, 0.5) * theory.escape_rate(theory.optimal_learning_rate(p, 0.5), p, 0.5))
        for p in (1, 5)
    ]
    assert theory.overparametrisation_gain(5, 0.5) == pytest.approx(steps[0] / steps[1])


@pytest.mark.parametrize(("p", "Delta"), [(1, 0.0), (1, 1.0), (3, 0.5)])
def test_noise_variance_is_that_of_the_increments(p, Delta):
    """Exact quadrature: V = Var[2 λ_1 λ* E] is a polynomial of degree 8 in p + 1 fields."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(5)
    fields = np.stack([axis.ravel() for axis in np.meshgrid(*[nodes] * (p + 1), indexing="ij")])
    weight = np.prod(np.stack(np.meshgrid(*[weights] * (p + 1), indexing="ij")), axis=0).ravel()
    weight /= weight.sum()
    lam, lam_star = fields[:-1], fields[-1]
    squared_error = (lam_star**2 - (lam**2).sum(axis=0) / p) ** 2 + Delta
    assert weight @ (4 * lam[0] ** 2 * lam_star**2 * squared_error) == pytest.approx(
        noise_variance(p, Delta), rel=1e-12
    )


@pytest.mark.parametrize(
    ("m", "gamma", "Delta"), [(0.0, 0.1, 0.5), (0.3, 0.05, 0.0), (-0.8, 0.12, 1.3), (1.0, 0.1, 0.2)]
)
def test_increments_on_the_sphere_scatter_as_by_quadrature(m, gamma, Delta):
    """Exact quadrature: polynomials of degree 16 in two fields and the label noise."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(12)
    lam, across, noise = np.meshgrid(nodes, nodes, nodes, indexing="ij")
    weight = np.einsum("i,j,k->ijk", weights, weights, weights) / weights.sum() ** 3
    lam_star = m * lam + np.sqrt(1 - m**2) * across
    displacement = lam_star**2 + np.sqrt(Delta) * noise - lam**2
    steps_M, steps_Q = 2 * lam * lam_star * displacement, 4 * lam**2 * displacement * (1 + gamma * displacement)

    def covariance(one, other):
        return (weight * one * other).sum() - (weight * one).sum() * (weight * other).sum()

    assert theory.overlap_variance(m, Delta) == pytest.approx(covariance(steps_M, steps_M), rel=1e-9, abs=1e-9)
    assert theory.norm_variance(m, gamma, Delta) == pytest.approx(covariance(steps_Q, steps_Q), rel=1e-9)
    mixed = covariance(steps_M, steps_Q)
    assert theory.overlap_norm_covariance(m, gamma, Delta) == pytest.approx(mixed, rel=1e-9, abs=1e-9)
    along = steps_M - 0.5 * m * steps_Q
    found = theory.spherical_noise_variance(m, gamma, Delta)
    assert found == pytest.approx(covariance(along, along), rel=1e-9, abs=1e-9)


def test_noise_on_the_sphere_starts_as_that_of_the_exit_times():
    assert theory.spherical_noise_variance(0.0, 0.1, 0.7) == pytest.approx(noise_variance(1, 0.7))


@pytest.mark.parametrize(("p", "binding"), [(1, "M"), (2, "Q"), (6, "Q"), (7, "M"), (64, "M")])
def test_learnable_range_ends_where_the_first_rate_vanishes(p, binding):
    end = theory.learnable_range(p, 0.0)
    rates = {"M": theory.escape_rate(end, p, 0.0), "Q": theory.student_alignment_rate(end, p) if p > 1 else 1.0}
    assert rates.pop(binding) == pytest.approx(0.0, abs=1e-12)
    assert min(rates.values()) > 0.0


@pytest.mark.parametrize(("gamma", "Delta", "m0"), [(0.05, 0.5, 0.02), (0.1, 1e-4, -0.0185), (1 / 12, 0.0, 0.3)])
def test_exact_exit_time_is_that_of_the_integrated_equation(gamma, Delta, m0):
    def drift(_, m):
        return m * (4 * (1 - 6 * gamma) * (1 - m**2) - 2 * gamma * Delta)

    def level(_, m):
        return (1 - m[0] ** 2) - 0.99 * (1 - m0**2)

    level.terminal = True
    solution = solve_ivp(drift, (0, 50), [m0], events=level, rtol=1e-11, atol=1e-13)
    assert theory.exact_exit_time(m0, gamma, Delta, 0.01) == pytest.approx(solution.t_events[0][0], rel=1e-8)


def test_linear_regime_is_the_limit_of_the_exact_exit_time():
    """For T → 0 at fixed T d the curvature of the drift, of relative order T, is all that it neglects."""
    z = np.sqrt(2) * np.array([0.3, 1.0, 2.0])
    for T in (1e-3, 1e-5):
        d = 30 / T
        linear = np.log(T * d / z**2 + 1 - T) / (2 * theory.escape_rate(0.05, 1, 0.5))
        exact = theory.exact_exit_time(z / np.sqrt(d), 0.05, 0.5, T)
        assert (np.abs(exact / linear - 1) < T).all()


@pytest.mark.rest
@pytest.mark.parametrize("p", [1, 2, 4])
def test_quenched_average_equals_sampling_of_unit_vectors(p):
    """5000 starts at d = 300: |z| < 4 (false alarms 6·10⁻⁵ a case), the neglected O(1/d) added to the error."""
    rng, d, T, n = np.random.default_rng(p), 300, 0.1, 5000
    units = rng.normal(size=(n, p + 1, d))
    units /= np.linalg.norm(units, axis=2, keepdims=True)
    overlaps = units @ units.transpose(0, 2, 1)
    mu = d * (overlaps[:, 1:, 0] ** 2).sum(axis=1)
    tau = d * ((overlaps[:, 1:, 1:] ** 2).sum(axis=(1, 2)) - p)
    growth = np.log((T * p * (p + 1) * d + (1 - T) * (2 * p * mu - tau)) / (2 * p * mu))
    error = growth.std() / np.sqrt(n) + 1 / d
    assert abs(growth.mean() - mean_log_growth(p, d, T)) < 4 * error


def test_annealed_is_below_quenched():
    gamma = np.linspace(0.01, 0.15, 8)
    quenched = theory.quenched_exit_time(gamma, 1, 3000, 0.0, 0.01)
    assert (theory.annealed_exit_time(gamma, 1, 3000, 0.0, 0.01) < quenched).all()
    assert (theory.noise_corrected_exit_time(gamma, 1, 3000, 0.0, 0.01) < quenched).all()


def diffusion_passages(gamma, p, d, Delta, T, count, step):
    """First passages of the linear SDE from random starts, by Euler-Maruyama with `count` paths."""
    rng = np.random.default_rng(3)
    rate, sigma = theory.escape_rate(gamma, p, Delta), np.sqrt(gamma / p * noise_variance(p, Delta))
    x = rng.normal(size=(count, p))
    tau = 2 * rng.chisquare(p * (p - 1) / 2, count) if p > 1 else np.zeros(count)
    end = (T * p * (p + 1) * d + (1 - T) * (2 * p * (x**2).sum(axis=1) - tau)) / (2 * p)
    times, running = np.zeros(count), (x**2).sum(axis=1) < end
    while running.any():
        shock = np.sqrt(step) * rng.normal(size=(running.sum(), p))
        x[running] += step * rate * x[running] + sigma * shock
        times[running] += step
        running &= (x**2).sum(axis=1) < end
    return times


@pytest.mark.rest
@pytest.mark.parametrize(
    ("gamma", "p", "d", "Delta"),
    slow_but([(0.05, 1, 3000, 0.5), (0.18, 1, 300, 0.0), (0.4, 4, 3000, 0.0)], (0.4, 4, 3000, 0.0)),
)
def test_first_passage_time_is_that_of_the_diffusion(gamma, p, d, Delta):
    """4000 paths, |z| < 4 (false alarms 6·10⁻⁵ a case); an Euler step overshoots the exit by O(√step): 2 % allowed."""
    times = diffusion_passages(gamma, p, d, Delta, 0.01, 4000, 5e-4)
    expected = theory.first_passage_exit_time(gamma, p, d, Delta, 0.01)
    assert abs(times.mean() - expected) < 4 * times.std() / np.sqrt(4000) + 0.02 * expected


@pytest.mark.parametrize(
    ("gamma", "p", "Delta"), [(1e-8, 1, 0.1), (1e-3, 2, 0.1), (0.02, 1, 0.0), (0.1, 1, 1.0), (0.4, 4, 0.5)]
)
def test_noise_correction_is_the_limit_of_the_first_passage(gamma, p, Delta):
    arguments = gamma, p, 1e9, Delta, 0.01
    assert theory.noise_corrected_exit_time(*arguments) == pytest.approx(
        theory.first_passage_exit_time(*arguments), rel=1e-6
    )


def test_first_passage_time_is_smooth_through_the_maximal_learning_rate():
    gamma = 1 / 6 + np.array([-1e-6, 0.0, 1e-6])
    before, at, after = theory.first_passage_exit_time(gamma, 1, 300, 0.0, 0.01)
    assert at == pytest.approx((before + after) / 2, rel=1e-9)
    assert before > at > after


@pytest.mark.parametrize(("p", "d", "Delta"), [(1, 3000, 0.0), (1, 3000, 1.0), (4, 1e5, 0.5)])
def test_noise_corrected_optimum_minimises_its_steps(p, d, Delta):
    optimum = theory.noise_corrected_optimal_learning_rate(p, d, Delta, 0.01)
    gamma = optimum * np.array([0.99, 1.0, 1.01])
    steps = theory.noise_corrected_exit_time(gamma, p, d, Delta, 0.01) / gamma
    assert steps[1] == steps.min()
    assert theory.optimal_learning_rate(p, Delta) < optimum < 1.3 * theory.optimal_learning_rate(p, Delta)


def test_no_optimum_where_noise_alone_exits():
    assert np.isnan(theory.noise_corrected_optimal_learning_rate(1, 300, 0.0, 0.01))


def test_fixed_point_is_at_rest_and_has_the_asymptotic_risk():
    for gamma, Delta in ((0.05, 0.1), (0.1, 1e-4), (0.05, 1.0)):
        m = theory.fixed_point_overlap(gamma, Delta)
        drift_M, _ = spherical_drifts(np.array([[m]]), np.eye(1), gamma, Delta)
        assert abs(drift_M[0, 0]) < 1e-13
        assert theory.asymptotic_risk(gamma, Delta) == pytest.approx(2 * (1 - m**2), rel=1e-9)
    assert theory.fixed_point_overlap(0.2, 0.0) == 0.0 and theory.asymptotic_risk(0.2, 0.0) == 2.0


@pytest.mark.filterwarnings("error")
def test_nothing_exits_beyond_the_maximal_learning_rate():
    gamma = np.array([2 / 12.5, 0.2, 5.0])
    for exit_time in (theory.annealed_exit_time, theory.quenched_exit_time, theory.noise_corrected_exit_time):
        assert np.isposinf(exit_time(gamma, 1, 3000, 0.5, 0.01)).all()
    assert np.isposinf(theory.exact_exit_time(0.1, gamma, 0.5, 0.01)).all()
    assert np.isposinf(theory.exact_exit_time(0.0, 0.05, 0.5, 0.01))


def test_labelled_arrays_broadcast_by_name():
    gamma = xr.DataArray([0.02, 0.05, 0.1], dims="gamma", coords={"gamma": [0.02, 0.05, 0.1]})
    Delta = xr.DataArray([0.0, 1.0], dims="Delta", coords={"Delta": [0.0, 1.0]})
    times = theory.quenched_exit_time(gamma=gamma, p=1, d=3000, Delta=Delta, T=0.01)
    assert times.dims == ("gamma", "Delta") and times.name == "quenched_exit_time"
    assert times.attrs["long_name"] == "quenched exit time" and times.attrs["symbol"].startswith("t_")
    assert float(times.sel(gamma=0.05, Delta=1.0)) == theory.quenched_exit_time(0.05, 1, 3000, 1.0, 0.01)


@pytest.mark.parametrize("p", [np.nan, np.inf, -1.0, 0.5])
def test_a_width_without_a_law_has_no_exit_time_and_leaves_those_beside_it(p):
    widths = np.array([2.0, p])
    for formula in (theory.quenched_exit_time, theory.noise_corrected_exit_time, theory.first_passage_exit_time):
        found = formula(0.01, widths, 1000, 0.1, 0.1)
        assert found[0] == formula(0.01, 2.0, 1000, 0.1, 0.1) < np.inf
        assert np.isnan(found[1])
    assert np.isnan(theory.quenched_survival(0.5, 0.01, widths, 1000, 0.1, 0.1)).tolist() == [False, True]
    assert np.isnan(theory.noise_corrected_optimal_learning_rate(widths, 1000, 0.1, 0.1)).tolist() == [False, True]


def test_formulas_have_values_or_none_at_the_ends_of_their_domains():
    assert np.isnan(theory.exact_optimal_learning_rate([2.0, np.inf, 300.0], [0.5, 0.5, np.nan], 0.1)).all()
    assert np.isnan(theory.noise_corrected_optimal_learning_rate(1, np.inf, 0.0, 0.1))
    passage = theory.first_passage_exit_time([0.0, 1e-7, -0.1], 2, 1000, 0.1, 0.1)
    assert passage[0] == theory.quenched_exit_time(0.0, 2, 1000, 0.1, 0.1) == pytest.approx(passage[1], rel=1e-6)
    assert np.isnan(passage[2])
    assert (theory.quenched_survival([0.1, 1.0, 9.0], 3.0, [[1], [4]], 1000, 1.0, 0.1) == 1.0).all()  # nothing grows
    at, near = theory.noise_corrected_survival(1.0, [1 / 6, 1 / 6 - 1e-9], 1, 100, 0.0, 0.1)
    assert at == pytest.approx(near, rel=1e-6)
    # at twice the best rate ω_M is a rounding error, 4·10⁻¹⁶: the law was .961 there and .899 beside it
    twice = 2.0 * theory.optimal_learning_rate(10, 0.0)
    at, near = theory.noise_corrected_survival(0.3, [twice, twice - 1e-6], 10, 100, 0.0, 0.1)
    assert at == pytest.approx(near, rel=1e-5)
