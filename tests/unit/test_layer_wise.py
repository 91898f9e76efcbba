"""The second layer by ridge regression on fresh samples: against NumPy on weights, exactly and in law."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import erf

from sweeplib import InputError, Overlaps, Problem, simulate
from sweeplib.engine.status import Status
from sweeplib.networks.maths.activations import activation
from sweeplib.networks.maths.second_layer import population_moments, ridge_regression
from sweeplib.networks.problem import target
from sweeplib.networks.simulation import Case, Recording, run_cases
from tests.tiers import slow_but

FIELDS = {"gamma": 1.0, "p": 3, "k": 2, "d": 40, "Delta": 0.2, "activation": "erf", "a_star": (1.0, -0.7)}


def rows(p=3, k=2, d=40, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(p, d)), rng.normal(size=(k, d))


def arc_sines(Q):
    """E[σσᵀ] of fields of covariance Q, σ(x) = erf(x/√2)."""
    root = np.sqrt(1.0 + np.diag(Q))
    return 2.0 / math.pi * np.arcsin(Q / np.outer(root, root))


def moments(W, W_star, a_star):
    """E[σσᵀ], E[σ f*] and E[f*²] of a committee of error functions."""
    both, p = np.concatenate([W, W_star]), len(W)
    found, c = arc_sines(both @ both.T / W.shape[1]), np.array(a_star) / len(W_star)
    return found[:p, :p], found[:p, p:] @ c, c @ found[p:, p:] @ c


def risk_of(a, W, W_star, a_star):
    squares, products, constant = moments(W, W_star, a_star)
    return 0.5 * (constant - 2.0 * products @ a / len(a) + a @ squares @ a / len(a) ** 2)


def refitted(problem, W, **more):
    """The recorded risks (seeds,) at the start."""
    return simulate(problem, "sgd", times=[0.0], initial=W, observables=["refitted_risk"], **more).refitted_risk[:, 0]


@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_infinitely_many_samples_minimise_the_risk_with_its_penalty(ridge):
    W, W_star = rows()
    squares, products, _ = moments(W, W_star, FIELDS["a_star"])
    a = np.linalg.solve(squares / 3 + ridge * np.eye(3), products)
    found = refitted(Problem(ridge=ridge, **FIELDS), (W, W_star)).item()
    assert found == pytest.approx(risk_of(a, W, W_star, FIELDS["a_star"]), rel=1e-10)


def fitted_by_numpy(problem, W, W_star, rng):
    """The risk of a least-squares fit with rows for the penalty, to inputs that are drawn in d dimensions."""
    m, p, d = problem.second_layer_samples, problem.p, problem.d
    x = rng.normal(size=(m, d)) / math.sqrt(d)
    values = erf(x @ W.T / math.sqrt(2))
    y = erf(x @ W_star.T / math.sqrt(2)) @ problem.a_star / problem.k + math.sqrt(problem.Delta) * rng.normal(size=m)
    with_penalty = np.concatenate([values / p, math.sqrt(problem.ridge * m / p) * np.eye(p)])
    a, *_ = np.linalg.lstsq(with_penalty, np.concatenate([y, np.zeros(p)]))
    return risk_of(a, W, W_star, problem.a_star)


@pytest.mark.rest
@pytest.mark.parametrize(("m", "ridge"), slow_but([(2, 0.0), (7, 0.01), (60, 0.0)], (7, 0.01)))
def test_samples_have_the_law_of_a_fit_on_the_weights(m, ridge):
    """Kolmogorov-Smirnov at 1e-4, also for fewer samples than units."""
    problem, (W, W_star) = Problem(second_layer_samples=m, ridge=ridge, **FIELDS), rows()
    rng = np.random.default_rng(1)
    expected = [fitted_by_numpy(problem, W, W_star, rng) for _ in range(1500)]
    found = refitted(problem, (W, W_star), seeds=range(1500))
    assert stats.ks_2samp(found, expected, method="asymp").pvalue > 1e-4


@pytest.mark.rest
@pytest.mark.parametrize(
    ("student", "of"),
    [("relu", "committee"), ("he3", "committee"), ("tanh", "committee"), ("tanh", "lam1 + lam1*lam2")],
)
def test_the_moments_are_those_of_a_product_rule(student, of):
    """For other activations and targets; relu to the accuracy of its kinks."""
    W, W_star = rows(2, 2, 6)
    W, both = 0.5 * W, np.concatenate([W_star, 0.5 * W])
    omega = both @ both.T / 6
    points, weights = np.polynomial.hermite_e.hermegauss(16)
    u = np.reshape(np.meshgrid(*[points] * 4, indexing="ij"), (4, -1))
    weights = np.prod(np.meshgrid(*[weights / weights.sum()] * 4, indexing="ij"), axis=0).ravel()
    fields = np.linalg.cholesky(omega) @ u
    function = np.vectorize(activation(student).value)
    lam_star, values = fields[:2], function(fields[2:])
    f_star = function(lam_star).mean(axis=0) if of == "committee" else lam_star[0] * (1 + lam_star[1])
    parts = omega[2:, 2:], omega[2:, :2], omega[:2, :2], np.ones(2)
    found = population_moments(target(of).expectations(student, student), *(part[None] for part in parts))
    tolerance = 0.02 if student == "relu" else 1e-5
    for one, expected in zip(found, ((weights * values) @ values.T, (weights * values) @ f_star), strict=True):
        np.testing.assert_allclose(one[0], expected, rtol=tolerance, atol=tolerance)


def test_units_of_the_teacher_fit_it_without_error():
    """Equal units share its second layer."""
    _, W_star = rows()
    W = W_star[[0, 1, 1]]
    assert refitted(Problem(**FIELDS), (W, W_star)).item() == pytest.approx(0.0, abs=1e-14)
    squares, products, _ = moments(W, W_star, FIELDS["a_star"])
    a = ridge_regression(squares[None], products[None], np.zeros(1))[0]
    np.testing.assert_allclose(a, 1.5 * np.array([1.0, -0.35, -0.35]), atol=1e-8)


@pytest.mark.rest
def test_more_samples_come_closer_to_infinitely_many():
    """The sets are nested; the excess falls as 1/m."""
    W = rows()
    best = refitted(Problem(**FIELDS), W).item()
    few, many = (
        (refitted(Problem(second_layer_samples=m, **FIELDS), W, seeds=range(100)) - best).mean().item()
        for m in (300, 3000)
    )
    assert few > many > 0.0
    assert few / many == pytest.approx(10.0, rel=0.4)


@pytest.mark.rest
@pytest.mark.parametrize("samples", [None, 40])
def test_the_samples_are_those_of_the_seed_alone(samples):
    """The same for all dynamics, batches and times, as one start and one seed show."""
    W, seeds = rows(), range(3)
    problem = Problem(second_layer_samples=samples, ridge=0.1, **FIELDS)
    others = [Problem(second_layer_samples=samples, ridge=0.1, **FIELDS | {"gamma": 0.1}, batch_size=n) for n in (1, 4)]
    found = [
        simulate(each, name, times=[0.0], seeds=seeds, initial=W, observables=["refitted_risk"]).refitted_risk[:, 0]
        for each in (problem, *others)
        for name in ("sgd", "sgd_chain", "ode", "overlap_map")
    ]
    for one in found[1:]:
        np.testing.assert_allclose(one, found[0], rtol=1e-9)
    assert (len(set(found[0].values.tolist())) == 1) == (samples is None)


@pytest.mark.slow
def test_a_first_layer_that_moves_then_a_second_that_is_fitted():
    """Two giant steps of the first layer: the fit gains from each, and is better than the frozen second layer."""
    d = 200
    problem = Problem(
        gamma=2.0 * 8 * d, p=8, k=2, d=d, Delta=0.01, activation="erf", batch_size=4 * d, second_layer_samples=4 * d
    )
    times = np.arange(3) * problem.step_time()
    runs = [
        simulate(problem, name, times=times, seeds=range(8), observables=["risk", "refitted_risk"]).mean("seed")
        for name in ("sgd", "overlap_map")
    ]
    for run in runs:
        assert (np.diff(run.refitted_risk) < 0).all()
        assert (run.refitted_risk < run.risk).all()
    np.testing.assert_allclose(runs[0].refitted_risk, runs[1].refitted_risk, rtol=0.1)


@pytest.mark.rest
@pytest.mark.parametrize("samples", [{}, {"second_layer_samples": 20}], ids=["all", "20"])
@pytest.mark.parametrize("dynamics", ["sgd", "sgd_chain", "overlap_map"])
def test_a_replica_that_diverged_leaves_the_others_alone(dynamics, samples):
    """`refitted_risk` and `noise_trace` factorise overlaps, which are not finite there."""
    shown = ("refitted_risk", "noise_trace")
    cases = []
    for gamma in (300.0, 0.05):
        problem = Problem(gamma=gamma, p=2, k=1, d=10, Delta=0.1, activation="square", **samples)
        recording = Recording((0.0, 1.0), (), shown)
        cases.append(Case(problem, dynamics, 0, recording, clock=200 * problem.step_time()))
    run = run_cases(cases)
    assert run.status.tolist() == [Status.diverged, Status.ok]
    for name in shown:
        np.testing.assert_array_equal(np.isfinite(run.data[name]), [[True, False], [True, True]])


@pytest.mark.parametrize("field", [{"ridge": -1.0}, {"second_layer_samples": 0}, {"second_layer_samples": 10**9}])
def test_what_is_no_regression_is_refused(field):
    with pytest.raises(InputError, match=next(iter(field))):
        Problem(**FIELDS, **field)


@pytest.mark.rest
def test_a_unit_without_weights_is_fitted():
    """λ = 0 for ever: relu has σ = 0, a singular regression."""
    start = Overlaps([[0.0, 0.0], [0.0, 1.0]], [[0.0], [0.5]], [[1.0]])
    fields = {"gamma": 1.0, "p": 2, "k": 1, "d": 10, "Delta": 0.1, "activation": "relu"}
    for samples in (None, 1, 50):
        problem = Problem(second_layer_samples=samples, **fields)
        found = simulate(problem, "overlap_map", times=[0.0, 0.5], initial=start, observables=["refitted_risk"])
        assert np.isfinite(found.refitted_risk).all()
