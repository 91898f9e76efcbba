"""Two isotropic Gaussians: sgd against NumPy, its samples, the risk against Monte Carlo, refusals, and a sweep.

Scores are at fixed seeds; with a new one, each |z| < 4 fails with 6·10⁻⁵.
"""

import dataclasses

import numpy as np
import pytest
import xarray as xr

from sweeplib import InputError, Problem, simulate
from sweeplib.config import load
from sweeplib.engine.execution.run import run_sweep
from sweeplib.engine.storage.dataset.finalise import finalise
from sweeplib.networks.dynamics.sgd import Sgd, SgdOptions
from sweeplib.networks.maths.activations import activation
from sweeplib.networks.maths.expectations.classes import ClassExpectations, field_means
from sweeplib.networks.numerics.random import normals, random_words, stream_key
from sweeplib.networks.problem.weights import drawn_weights
from sweeplib.networks.simulation import Case, Recording
from sweeplib.networks.simulation.driver import replicas_of
from sweeplib.networks.simulation.sample_keys import samples_key
from tests.in_process import InProcess
from tests.tiers import slow_but

RAMP, DIP = "piecewise(0.5, -2.5, 1.5, 7.5)", "piecewise(0, -2.5, 0.5, -4, 1.5, 7.5)"
FIELDS = {"gamma": 0.3, "p": 3, "k": 0, "d": 37, "Delta": 0.2, "activation": RAMP}
DATA = {"data": "two_gaussians", "contrast": 0.6}
SHOWN = ("overlap_Q", "second_layer")


def made(**fields):
    return Problem(**(FIELDS | DATA | fields))


def sample(problem, key, seed, number):
    """√d x, the class and the label noise of a sample of the stream."""
    draws, d = normals(key, seed, number, 32 * (problem.d // 32 + 1)), problem.d
    own = np.uint64(stream_key(key, "data", "two_gaussians"))
    word, _, _, _ = random_words(np.uint64(0), np.uint64(number), np.uint64(seed), own)
    label = 1.0 if int(word) % 2 else -1.0
    return (1.0 + label * problem.contrast) * draws[:d], label, draws[d]


def steps_by_numpy(case, count):
    """Q and a after some steps w_i += (γ ξ/p)(1/n_b) Σ a_i σ'(λ_i) E x, with the samples of the stream in order."""
    problem, form = case.problem, activation(case.problem.activation)
    value, slope = np.vectorize(form.value, otypes=[float]), np.vectorize(form.derivative, otypes=[float])
    W, d, n_b, key = replicas_of([case]).weights(0)[0].copy(), problem.d, problem.batch_size, samples_key(case)
    layer = np.full(problem.p, problem.a)
    for step in range(count):
        first = 0 if problem.samples else step // problem.repeats * n_b
        x, labels, z = map(
            np.array, zip(*(sample(problem, key, case.seed, first + s) for s in range(n_b)), strict=True)
        )
        lam = x @ W.T / np.sqrt(d)
        rate = 1.0 / (1.0 + (step + 0.5) * problem.step_time()) if problem.schedule else 1.0
        error = labels + np.sqrt(problem.Delta) * z - value(lam) @ layer / problem.p
        W += rate * problem.gamma / problem.p * (layer * slope(lam) * error[:, None]).T @ x / np.sqrt(d) / n_b
        moved = rate * problem.step_time() * (value(lam) * error[:, None]).mean(axis=0)
        layer = layer + problem.second_layer_rate * moved
        if problem.spherical:
            W *= np.sqrt(d) / np.linalg.norm(W, axis=1, keepdims=True)
    return W @ W.T / d, layer


@pytest.mark.rest
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"spherical": True},
        {"second_layer_rate": 0.5, "a": 0.7},
        {"activation": "erf", "Delta": 0.0, "start_scale": 0.8},
        {"schedule": "1/(1 + t)"},
        {"batch_size": 7},
        {"batch_size": 2, "repeats": 3, "spherical": True},
        {"batch_size": 9, "samples": 9},
    ],
    ids=str,
)
def test_sgd_takes_the_steps_of_numpy(fields):
    problem = made(**fields)
    case = Case(problem, "sgd", 3, Recording((24 * problem.step_time(),), (), SHOWN))
    ds = simulate(problem, "sgd", times=case.recording.times, seeds=[3], observables=SHOWN)
    for name, expected in zip(SHOWN, steps_by_numpy(case, 24), strict=True):
        np.testing.assert_allclose(ds[name][0, 0], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.rest
def test_a_step_is_that_of_the_paper():
    """w_i += 2 s_k (y − f) σ'(w_i·x) x with x ~ N(0, (1 ± Δ)² I), for w' = √d w and 2 s_k = γ/(pd)."""
    problem, s_k = made(gamma=2e-3 * 3 * 37, Delta=0.0, start_scale=0.8), 1e-3
    case = Case(problem, "sgd", 0, Recording((problem.step_time(),), (), SHOWN))
    w, form = replicas_of([case]).weights(0)[0] / np.sqrt(problem.d), activation(RAMP)
    x, y, _ = sample(problem, samples_key(case), 0, 0)
    f = np.mean([form.value(field) for field in w @ x])
    w = w + 2.0 * s_k * (y - f) * np.outer([form.derivative(field) for field in w @ x], x)
    ds = simulate(problem, "sgd", times=case.recording.times, seeds=[0], observables=SHOWN)
    np.testing.assert_allclose(ds.overlap_Q[0, 0], w @ w.T, rtol=1e-12)
    assert case.recording.times[0] == pytest.approx(2.0 * s_k)


@pytest.mark.rest
def test_samples_have_the_law_of_the_data():
    """Moments of inputs and labels, between samples, and between two seeds."""
    problem, n = made(samples=40_000, d=10), 40_000
    replicas = replicas_of([Case(problem, "sgd", seed, Recording((0.0,))) for seed in (0, 1)])
    sgd = Sgd(replicas, SgdOptions())
    drawn, other = (sgd._training_set(i) for i in (0, 1))
    y, squares, c = drawn.y, (drawn.x**2).mean(axis=1), problem.contrast
    moments = [
        (y, 0.0),
        (y**2, 1.0 + problem.Delta),
        (squares, 1.0 + c**2),
        (y * squares, 2.0 * c),
        (y * other.y, 0.0),
        (y[1:] * y[:-1], 0.0),
        (drawn.x[:, 0] * y, 0.0),
        (drawn.x[:, 0] * drawn.x[:, 1], 0.0),
    ]
    for values, moment in moments:
        assert abs(values.mean() - moment) < 4 * values.std() / np.sqrt(n)


NAMES = ["erf", "relu", "tanh", "sigmoid", "square", "he3", "hermite(0.3, -1, 0.5)", RAMP, DIP]


@pytest.mark.rest
@pytest.mark.parametrize("name", slow_but(NAMES, "erf", "square", DIP))
def test_the_risk_is_that_of_samples(name):
    problem = made(activation=name, a=(1.0, -0.7, 1.3), d=20, start_scale=0.8)
    W, _ = drawn_weights(problem, root_seed=0, seed=0)
    ds = simulate(problem, "sgd", times=[0.0], observables=["risk", "test_error"])
    rng, n = np.random.default_rng(5), 400_000
    labels = np.repeat([-1.0, 1.0], n // 2)
    factor = np.linalg.cholesky(W @ W.T / problem.d)
    lam = (1.0 + labels * problem.contrast)[:, None] * (rng.normal(size=(n, 3)) @ factor.T)
    f = np.vectorize(activation(name).value, otypes=[float])(lam) @ np.array(problem.a) / 3
    losses = (0.5 * (labels - f) ** 2).reshape(2, -1)
    error = np.sqrt(losses.var(axis=1).sum() / 4 / (n // 2))
    assert abs(ds.risk.item() - losses.mean()) < 4 * error
    assert ds.test_error.item() == pytest.approx(ds.risk.item() + problem.Delta / 2)


@pytest.mark.rest
def test_the_training_risk_of_many_samples_is_the_test_error():
    """The label noise, the classes and the inputs of a training set are those of the population."""
    problem, n = made(samples=30_000, activation=DIP), 30_000
    ds = simulate(problem, "sgd", times=[0.0], observables=["training_risk", "test_error", "generalisation_gap"])
    assert abs(ds.generalisation_gap.item()) < 4 * 1.5 * ds.test_error.item() / np.sqrt(n)


@pytest.mark.parametrize("name", slow_but(["erf", "relu", "square", "he4", "sigmoid", RAMP, DIP], "erf", RAMP))
def test_means_of_one_field_are_those_of_another_quadrature(name):
    form, (nodes, weights) = activation(name), np.polynomial.legendre.leggauss(60)
    scales = np.array([0.0, 1e-3, 0.4, 1.0, 2.5])
    knots = [knot for knot, _ in form.hinges[1]] if form.hinges else []
    for scale, found in zip(scales, field_means(name, scales), strict=True):
        ends = np.unique([*np.arange(-13.0, 14.0), *(knot / scale for knot in knots if abs(knot) < 13 * scale)])
        u = (ends[:-1, None] + 0.5 * np.diff(ends)[:, None] * (1.0 + nodes)).ravel()
        share = (0.5 * np.diff(ends)[:, None] * weights).ravel() * np.exp(-0.5 * u * u) / np.sqrt(2.0 * np.pi)
        assert found == pytest.approx(share @ [form.value(scale * z) for z in u.tolist()], rel=1e-12, abs=1e-13)


def test_one_unit_without_contrast_knows_only_the_mean():
    """As c → 0, R = ½(1 + E[f²]) of a linear student, E[f²] = q."""
    risks = ClassExpectations("linear", (-1.0, 1.0), (np.ones(1), np.ones(1))).risks
    blocks = np.full((1, 1, 1), 0.7), np.empty((1, 1, 0)), np.empty((1, 0, 0))
    assert risks(*blocks, np.ones((1, 1)), np.empty((1, 0))) == pytest.approx(0.5 * 1.7)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"k": 1}, "k: two_gaussians has no teacher; got 1; expected 0"),
        ({"contrast": None}, "contrast: two_gaussians needs it"),
        ({"contrast": 1.0}, "contrast"),
        ({"contrast": -0.5}, "contrast"),
        ({"data": "teacher_student", "k": 1}, "contrast: teacher_student does not act on contrast"),
        ({"data": "teacher_student", "contrast": None}, "k: a teacher without units; got 0; expected 1 or more"),
        ({"data": "two_gausians"}, "did you mean 'two_gaussians'"),
        ({"target": "lam1"}, "target: two_gaussians does not act on target"),
        ({"teacher_activation": "erf"}, "teacher_activation: two_gaussians does not act on teacher_activation"),
        ({"a_star": 2.0}, "a_star: two_gaussians does not act on a_star"),
        ({"teacher_start": "sphere"}, "or a data law that acts on it: power_law, spectrum, teacher_student"),
        ({"m0": 0.5, "start": "warm"}, "m0: no given overlap; got 0.5; expected a teacher and d > 1 beside it"),
        ({"start": "sphere", "start_scale": 0.8}, "start_scale: the start sphere does not act on start_scale"),
        ({"spherical": True, "start_scale": 0.8}, "start_scale: the start sphere does not act on start_scale"),
        ({"start_scale": 0.0}, "start_scale"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused_in_one_line(fields, said):
    with pytest.raises(InputError) as caught:
        made(**fields)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("dynamics", "recorded", "said"),
    [
        ("ode", {}, "ode does not act on data"),
        ("sgd_chain", {}, "a dynamics that acts on it: mean_field"),
        ("sgd", {"observables": ["overlap_M"]}, "observables: two_gaussians has no teacher; got 'overlap_M'"),
        ("sgd", {"observables": ["subspace_cosine"]}, "expected one of "),
        ("sgd", {"observables": ["noise_trace"]}, "two_gaussians has no teacher"),
        ("sgd", {"observables": ["refitted_risk"]}, "two_gaussians has no teacher"),
        ("sgd", {"thresholds": [0.1]}, "thresholds: no exits of two_gaussians"),
    ],
    ids=str,
)
def test_what_has_no_meaning_without_a_teacher_is_refused(dynamics, recorded, said):
    with pytest.raises(InputError) as caught:
        simulate(made(activation="erf"), dynamics, times=[0.0], **recorded)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


CONFIG = f"""\
name: classes
problem: {{data: two_gaussians, k: 0, p: 4, d: 15, Delta: 0, start_scale: 0.8, gamma: 0.5}}
grid:
  contrast: [0.2, 0.8]
  activation: ["{RAMP}", "{DIP}"]
dynamics: [sgd]
seeds: 2
times: [0, 1]
observables: [risk, student_norm]
"""


@pytest.mark.rest
def test_a_sweep_over_the_contrast(tmp_path):
    path = tmp_path / "sweep.yaml"
    path.write_text(CONFIG)
    sweep = dataclasses.replace(load(path), cluster=InProcess(block_size=4))
    run_sweep(sweep, tmp_path, progress=False)
    ds = xr.open_zarr(finalise(sweep, tmp_path), chunks=None)
    assert ds.contrast.values.tolist() == [0.2, 0.8]
    assert ds.contrast.attrs["long_name"] == "contrast of the two classes"
    assert (ds.data, ds.k, ds.start_scale) == ("two_gaussians", 0, 0.8)
    assert {"teacher", "teacher_2"}.isdisjoint(ds.dims)
    assert {"target", "a_star", "teacher_start", "teacher_activation"}.isdisjoint({*ds.attrs, *ds.coords})
    problem = Problem(
        p=4, k=0, d=15, Delta=0, gamma=0.5, start_scale=0.8, activation=DIP, data="two_gaussians", contrast=0.8
    )
    alone = simulate(problem, "sgd", times=[0.0, 1.0], seeds=range(2))
    assert {"target", "a_star", "teacher_start", "teacher_activation"}.isdisjoint(alone.attrs)
    np.testing.assert_array_equal(ds.risk.sel(activation=DIP, contrast=0.8, dynamics="sgd"), alone.risk)
    assert np.isfinite(ds.risk).all()


def test_the_identity_has_the_law_and_its_contrast():
    problems = made(), made(contrast=0.5), Problem(**FIELDS | {"k": 1})
    assert len({Case(problem, "sgd", 0, Recording((0.0,))).identity() for problem in problems}) == 3


def test_the_scale_of_a_start():
    one, other = (drawn_weights(made(start_scale=scale), root_seed=1, seed=2)[0] for scale in (1.0, 0.8))
    np.testing.assert_array_equal(0.8 * one, other)


@pytest.mark.rest
@pytest.mark.parametrize("batch_size", slow_but([1, 4], 4))
def test_the_norm_of_a_linear_unit_follows_its_exact_mean(batch_size):
    """E q' = q (1 − 2γ m_2/d + γ² (m_4 (d + 2)/n_b + m_2² (1 − 1/n_b))/d²) + γ² (1 + Δ) m_2/(d n_b), q = 1 at first.

    m_n = E (1 + y c)^n.
    """
    problem, steps = made(activation="linear", p=1, d=12, gamma=0.8, batch_size=batch_size), 30
    gamma, d, c = problem.gamma, problem.d, problem.contrast
    second, fourth = 1.0 + c**2, 1.0 + 6.0 * c**2 + c**4
    square = (fourth * (d + 2) / batch_size + second**2 * (1.0 - 1.0 / batch_size)) / d**2
    q = 1.0
    for _ in range(steps):
        noise = gamma**2 * (1.0 + problem.Delta) * second / (d * batch_size)
        q = q * (1.0 - 2.0 * gamma * second / d + gamma**2 * square) + noise
    times = [steps * problem.step_time()]
    found = simulate(problem, "sgd", times=times, seeds=range(600), observables=["student_norm"]).student_norm.values
    assert abs(found.mean() - q) < 4 * found.std() / np.sqrt(found.size)


@pytest.mark.rest
def test_the_activation_that_dips_fails_from_small_weights():
    """Small weights shrink to zero, where R = ½(1 + 2.5²); larger ones learn (arXiv 1804.06561)."""
    common = {"activation": DIP, "Delta": 0.0, "p": 100, "d": 40, "gamma": 0.16, "contrast": 0.8}
    small, large = (
        simulate(made(**common, start_scale=scale), "sgd", times=[0.0, 0.3], observables=["risk", "student_norm"])
        for scale in (0.1, 0.4)
    )
    assert small.student_norm[0, 1] < 0.1 * small.student_norm[0, 0]
    assert small.risk[0, 1].item() == pytest.approx(0.5 * (1.0 + 2.5**2), rel=0.05)
    assert large.student_norm[0, 1] > 3.0 * large.student_norm[0, 0]
    assert large.risk[0, 1] < 0.5 * large.risk[0, 0]
