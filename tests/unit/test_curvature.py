"""Hessians against finite differences of the risk, batch sharpness against gradients and Hessians of samples."""

from functools import partial
from math import factorial, sqrt

import numpy as np
import pytest

from sweeplib import InputError, Overlaps, Problem, simulate
from sweeplib.networks.kernels.labels import labels
from sweeplib.networks.maths.activations import activation
from sweeplib.networks.maths.curvature import (
    Network,
    _mean,
    _of_moments,
    batch_sharpness,
    curvatures,
    moments,
    nodes,
    products,
    values_of,
)
from sweeplib.networks.maths.expectations import expectations

START = Overlaps([[1, 0.2], [0.2, 0.8]], [[0.3, 0.1], [0, 0.4]], np.eye(2))
EIGENVALUES = ("hessian_bulk", "hessian_outliers", "joint_hessian_outliers")


def recorded(*names, start=START, **fields):  # type: ignore[no-untyped-def]
    """Return observables of a problem at the start, and errors of some, by name."""
    values = {"gamma": 1.0, "p": 2, "k": 2, "Delta": 0.1, "activation": "erf", "a": [1, -0.7], "d": 7} | fields
    observables = [name for name in names if not name.endswith("_error")]
    run = simulate(Problem(**values), "sgd_chain", times=[0], initial=start, observables=observables)
    return [run[name].values.squeeze() for name in names]


def test_numbers_of_another_code() -> None:
    """Eigenvalues and batch sharpness that were computed by closed forms and Sobol' points elsewhere."""
    bulk, outliers, joint = recorded(*EIGENVALUES, second_layer_rate=0.7)
    expected = [-0.0757762, -0.03128507, -0.01901518, -0.00415112, 0.0385389, 0.09275901, 0.10624641, 0.12661818]
    np.testing.assert_allclose(7 * bulk, [-0.0197107, 0.10769822], atol=6e-9)
    np.testing.assert_allclose(7 * outliers, expected, atol=2e-8)
    np.testing.assert_allclose(7 * joint[[0, -1]], [-0.1344, 0.21091765], atol=2e-8)
    for n_b, d, value in ((1, 20, 0.10890), (5, 20, 0.026834), (20, 40, 0.0083110), (200, 400, 0.00084562)):
        assert recorded("batch_sharpness", batch_size=n_b, d=d)[0] == pytest.approx(value, rel=2e-5)
    gradient, noise = recorded("gradient_norm", "noise_trace", d=10**9)
    assert 4e9 * gradient**2 == pytest.approx(0.10636644, rel=1e-7)
    assert 4 * noise == pytest.approx(0.18682198, rel=1e-7)


def test_parts_of_the_batch_sharpness_of_another_code() -> None:
    """E[cᵀhc], E[Σ h_ij c_i (Dλ)_j], E[(Dλ)ᵀh(Dλ)] and tr E[h]V at d → ∞, by Sobol' points there."""
    d, layer = 1e9, np.array([1.0, -0.7])
    label = partial(labels, "committee", "erf", a_star=np.ones(2))
    network = Network(START.factor(), layer, activation("erf"), label, None, 0.1, d, 0.0)
    now = _mean([moments(network, *rule) for rule in nodes(network)])
    of_three = 4 * now.gradient @ now.K @ now.gradient
    parts = 4 * now.single, 4 * d * now.cross @ now.gradient, of_three, (now.bulk * now.noise).sum()
    np.testing.assert_allclose(parts, [0.019961, 0.009490, 0.007414, 0.018723], atol=2e-6)
    assert batch_sharpness(network, now, 1) == pytest.approx(0.106845, abs=2e-5)


@pytest.mark.parametrize("degree", [2, 3, 4, 5, 6, 8])
def test_polynomials_are_exact_whatever_the_degree_of_the_teacher(degree: int) -> None:
    """Moments of the nodes, whose error is stated as 0, are those of many more nodes."""

    def label(lam_star: np.ndarray) -> np.ndarray:
        return np.polynomial.hermite_e.hermeval(lam_star[0], [0.0] * degree + [1.0]) / sqrt(factorial(degree))

    factor = Overlaps([[1.0]], [[0.5]], [[1.0]]).factor()
    network = Network(factor, np.ones(1), activation("square"), label, degree, 0.1, 10.0, 0.7)
    [rule] = nodes(network)
    for moment, expected in zip(moments(network, *rule), moments(network, *products(2, 40)), strict=True):
        np.testing.assert_allclose(moment, expected, rtol=1e-9, atol=1e-9)


def risks_of(name: str, d: int, p: int, a_star: np.ndarray):  # type: ignore[no-untyped-def]
    """Return a function of many W (n, p d) and a (n, p) in coordinates of one rate, and of W*, that is the risk."""
    rule = expectations(name)

    def risks(theta: np.ndarray, W_star: np.ndarray, epsilon: float) -> np.ndarray:
        W, a = theta[:, : p * d].reshape(-1, p, d), sqrt(epsilon / d) * theta[:, p * d :]
        Q, M = W @ W.swapaxes(1, 2) / d, W @ W_star.T / d
        P, layers = np.repeat((W_star @ W_star.T / d)[None], len(W), 0), np.repeat(a_star[None], len(W), 0)
        return rule.risks(Q, M, P, a, layers)

    return risks


def hessian_by_differences(function, theta: np.ndarray, step: float = 0.02) -> np.ndarray:  # type: ignore[no-untyped-def]
    """Return second derivatives, by differences of fourth order."""
    first = np.array([8.0, -8.0, -1.0, 1.0]) / (12.0 * step)
    unit = step * np.eye(len(theta))
    places = np.concatenate([unit, -unit, 2 * unit, -2 * unit]).reshape(4, len(theta), -1)
    moved = theta + places[:, :, None, None] + places[None, None]
    values = function(moved.reshape(-1, len(theta))).reshape(4, len(theta), 4, len(theta))
    return np.einsum("a,aibj,b->ij", first, values, first)


TANH = pytest.param("tanh", 1, 1, 1e-4, marks=pytest.mark.rest)  # compiles a quadrature


@pytest.mark.parametrize(
    ("name", "p", "k", "atol"),
    [("erf", 2, 2, 1e-6), ("square", 2, 1, 1e-6), ("he3", 1, 2, 1e-5), TANH, ("erf", 2, 3, 0.0)],
)
def test_eigenvalues_are_those_of_second_differences_of_the_risk(name: str, p: int, k: int, atol: float) -> None:
    """By all weights of both layers: the bulk is d − p − k fold."""
    d, epsilon, rng = p + k + 2, 0.7, np.random.default_rng(p + k)
    W, W_star, a, a_star = (0.8 * rng.normal(size=shape) for shape in ((p, d), (k, d), p, k))
    problem = {"p": p, "k": k, "d": d, "activation": name, "a": list(a), "a_star": list(a_star), "gamma": 0.3}
    names = [*EIGENVALUES, "sharpness", "least_curvature", "gradient_norm", *(f"{item}_error" for item in EIGENVALUES)]
    start = Overlaps.from_weights(W, W_star)
    bulk, outliers, joint, sharpness, least, gradient, *errors = recorded(
        *names, start=start, second_layer_rate=epsilon, **problem
    )
    risks, theta = risks_of(name, d, p, a_star), np.concatenate([W.ravel(), a / sqrt(epsilon / d)])
    matrix = hessian_by_differences(lambda moved: risks(moved, W_star, epsilon), theta)
    tolerance = atol * np.abs(matrix).max() + max(float(np.max(error)) for error in errors)
    of_first = np.sort(np.concatenate([np.repeat(bulk, d - p - k), outliers]))
    of_both = np.sort(np.concatenate([np.repeat(bulk, d - p - k), joint]))
    np.testing.assert_allclose(of_first, np.linalg.eigvalsh(matrix[: p * d, : p * d]), atol=tolerance)
    np.testing.assert_allclose(of_both, np.linalg.eigvalsh(matrix), atol=tolerance)
    np.testing.assert_allclose([least, sharpness], 0.3 * of_both[[0, -1]], rtol=1e-12)
    moved = theta + 1e-4 * np.concatenate([np.eye(p * d, len(theta)), -np.eye(p * d, len(theta))])
    slopes = np.diff(risks(moved, W_star, epsilon).reshape(2, -1)[::-1], axis=0) / 2e-4
    assert gradient == pytest.approx(np.linalg.norm(slopes), rel=1e-5)


def sampled_batch_sharpness(name: str, W, W_star, a, n_b: int, Delta: float, epsilon: float, batches: int):  # type: ignore[no-untyped-def]
    """Return E[gᵀHg]/E‖g‖² of drawn batches, both layers in coordinates of one rate, and its standard error."""
    rng, (p, d) = np.random.default_rng(n_b), W.shape
    x = rng.normal(size=(batches, n_b, d)) / sqrt(d)
    fields = x @ W.T
    value, slope, bend = values_of(activation(name), fields)
    label = values_of(activation(name), x @ W_star.T)[0].mean(axis=2)
    E = label + sqrt(Delta) * rng.normal(size=label.shape) - value @ a / p
    of_f = np.einsum("bsi,bsj->bsij", slope * a / p, x), sqrt(epsilon / d) * value / p
    g = [-(E.reshape(E.shape + (1,) * (part.ndim - 2)) * part).mean(axis=1) for part in of_f]
    along = np.einsum("bsij,bij->bs", of_f[0], g[0]) + np.einsum("bsi,bi->bs", of_f[1], g[1])
    inner = np.einsum("bsj,bij->bsi", x, g[0])
    bent = (a * bend * inner**2 + 2.0 * sqrt(epsilon / d) * slope * inner * g[1][:, None]).sum(axis=2) / p
    curvature, square = (along**2 - E * bent).mean(axis=1), (g[0] ** 2).sum(axis=(1, 2)) + (g[1] ** 2).sum(axis=1)
    ratio = curvature.mean() / square.mean()
    return ratio, (curvature - ratio * square).std() / square.mean() / sqrt(batches)


@pytest.mark.parametrize(
    ("name", "n_b", "epsilon"),
    [("erf", 1, 0.0), ("erf", 4, 0.9), ("square", 1, 0.9), ("square", 3, 0.0), ("tanh", 2, 0.9), ("linear", 2, 0.5)],
)
def test_batch_sharpness_is_that_of_samples(name: str, n_b: int, epsilon: float) -> None:
    """For d = 6 by four standard errors of drawn batches: a false alarm in 3000 runs of all six cases."""
    rng, d, Delta = np.random.default_rng(3), 6, 0.3
    W, W_star, a = 0.7 * rng.normal(size=(2, d)), rng.normal(size=(1, d)), np.array([1.0, -0.6])
    problem = {"k": 1, "d": d, "Delta": Delta, "activation": name, "a": list(a), "gamma": 0.5, "batch_size": n_b}
    start = Overlaps.from_weights(W, W_star)
    [value] = recorded("batch_sharpness", start=start, second_layer_rate=epsilon, **problem)
    ratio, error = sampled_batch_sharpness(name, W, W_star, a, n_b, Delta, epsilon, 240_000 // n_b)
    assert abs(value / 0.5 - ratio) < 4.0 * error < 0.3 * ratio, (value / 0.5, ratio, error)


@pytest.mark.parametrize("Delta", [0.01, 0.5])
def test_phase_retrieval_has_the_known_limit(Delta: float) -> None:
    """At the optimum the batch sharpness is 12, without γ, at d → ∞: γ = 1/6 is the largest rate, at every noise."""
    one = {"p": 1, "k": 1, "a": 1.0, "activation": "square", "Delta": Delta, "gamma": 1 / 6, "spherical": True}
    optimum = Overlaps([[1]], [[1]], [[1]])
    batch, outliers, bulk = recorded(
        "batch_sharpness", "hessian_outliers", "hessian_bulk", start=optimum, d=10**8, **one
    )
    assert batch == pytest.approx(2.0, rel=1e-6)
    np.testing.assert_allclose(1e8 * outliers, [4.0, 12.0], rtol=1e-9)
    assert 1e8 * bulk == pytest.approx(4.0)


def test_a_linear_unit_learns_up_to_the_edge() -> None:
    """Its batch sharpness is 1 + 4/d without noise, 1 + 2/d with much; a step multiplies its risk on average by
    1 − (2 − γ(1 + 2/d)) γ/d."""
    one = {"p": 1, "k": 1, "a": 1.0, "activation": "linear", "d": 20}
    start = Overlaps([[1]], [[0.2]], [[1]])
    for Delta, value in ((0.0, 1 + 4 / 20), (1e12, 1 + 2 / 20)):
        assert recorded("batch_sharpness", start=start, Delta=Delta, **one)[0] == pytest.approx(value, rel=1e-9)
    for edge in (1.8, 2.2):
        problem = Problem(gamma=edge / (1 + 2 / 20), Delta=0.0, **one)
        times = np.arange(4) * problem.step_time()
        run = simulate(problem, "sgd_chain", times=times, seeds=range(8000), initial=start, observables=["risk"])
        mean, error = run.risk.mean("seed").values, run.risk.std("seed").values / sqrt(8000)
        factor = 1.0 - (2.0 - edge) * problem.gamma / 20
        assert (np.abs(mean - mean[0] * factor ** np.arange(4)) < 4.0 * error + 1e-12).all()
        assert (mean[3] < mean[0]) == (edge < 2.0)


@pytest.mark.parametrize(("p", "k"), [(2, 2), (3, 4)])
def test_the_bulk_of_squares_is_in_closed_form(p: int, k: int) -> None:
    """d · bulk = eig[(4/p²) Q − (2/p)(tr P/k − tr Q/p)], within the stated error, of seven fields too."""
    rng = np.random.default_rng(p)
    start = Overlaps.from_weights(rng.normal(size=(p, 20)), rng.normal(size=(k, 20)))
    bulk, error = recorded(
        "hessian_bulk", "hessian_bulk_error", start=start, p=p, k=k, d=20, a=1.0, activation="square"
    )
    expected = np.linalg.eigvalsh(4 / p**2 * start.Q) - 2 / p * (np.trace(start.P) / k - np.trace(start.Q) / p)
    assert (np.abs(20 * bulk - expected) <= 20 * error + 1e-12).all()
    assert (20 * error < 0.1).all()


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({"activation": "relu"}, "activation"),
        ({"activation": "piecewise(-1, -1, 1, 1)"}, "activation"),
        ({"d": 3}, "d"),
        ({"p": 30, "a": 1.0, "d": 100}, "p"),
        ({"samples": 20}, "samples"),
        ({"loss": "huber"}, "observables"),
        ({"labels": "sign"}, "observables"),
        ({"keep_probability": 0.5}, "observables"),
        ({"input_noise": 0.5}, "observables"),
        ({"offset_scale": 1.0}, "observables"),
        ({"data": "two_level", "level_ratio": 3.0}, "observables"),
    ],
)
def test_where_there_is_no_batch_sharpness_a_line_says_so(fields, key) -> None:  # type: ignore[no-untyped-def]
    values = {"gamma": 1.0, "p": 2, "k": 2, "Delta": 0.1, "activation": "erf", "d": 20} | fields
    with pytest.raises(InputError) as refused:
        simulate(Problem(**values), "sgd", times=[0], observables=["batch_sharpness"])
    assert refused.value.key == key


def test_a_layer_that_is_not_trained_has_no_joint_hessian() -> None:
    with pytest.raises(InputError, match="not trained"):
        recorded("joint_hessian_outliers")


def test_runs_that_diverged_have_none() -> None:
    problem = Problem(gamma=30.0, p=1, k=1, d=10, Delta=0.1, activation="square")
    run = simulate(problem, "sgd_chain", times=[0, 300], observables=["sharpness", "batch_sharpness"])
    assert np.isfinite(run.sharpness.values[..., 0]).all()
    assert np.isnan(run.batch_sharpness.values[..., 1]).all()


def panels(end: float, kink: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the product of rules on panels in two dimensions, on the first axis with an end at a kink too.

    Nodes (2, m) and weights (m,).
    """
    node, weight = np.polynomial.legendre.leggauss(8)
    edges = np.arange(-end, end + 1)

    def rule(edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        width = np.diff(edges)[:, None]
        x = edges[:-1, None] + width / 2 * (node + 1)
        return x.ravel(), (width / 2 * weight * np.exp(-(x**2) / 2) / sqrt(2 * np.pi)).ravel()

    (x, of_x), (y, of_y) = rule(np.unique(np.append(edges, kink))), rule(edges)
    return np.array(np.meshgrid(x, y, indexing="ij")).reshape(2, -1), np.outer(of_x, of_y).ravel()


@pytest.mark.parametrize(
    ("student", "label", "P"),
    [
        ("tanh", lambda x: np.maximum(x - 0.2683, 0.0), 1.0),
        ("tanh", lambda x: np.maximum(x, 0.0), 1.0),
        ("erf", lambda x: np.tanh(8 * x), 1.0),
        ("erf", lambda x: np.tanh(8 * x), 25.0),
        ("sigmoid", np.abs, 4.0),
        ("he3", np.tanh, 1.0),
        ("hermite(0, 0, 0, 1, 0, 0, 0, 0.1)", np.tanh, 1.0),
    ],
)
def test_errors_hold_for_labels_with_kinks_and_for_polynomials(student, label, P) -> None:  # type: ignore[no-untyped-def]
    """Panels have no error: they end at the kink, and where polynomials of the samples end too."""
    factor = Overlaps([[1.0]], [[0.5 * sqrt(P)]], [[P]]).factor()
    network = Network(factor, np.array([1.2]), activation(student), lambda x: label(x[0]), None, 0.1, 100.0, 0.0)
    exact = _of_moments(network, moments(network, *panels(13, 0.2683)), 1)
    for name, value, error in zip(exact._fields, *curvatures(network, 1), strict=True):
        expected = getattr(exact, name)
        assert (np.abs(value - expected) <= error + 1e-10 * np.abs(expected).max()).all(), (
            name,
            value,
            expected,
            error,
        )
