"""Units with offsets: sgd against NumPy, the risk against another one, particles against slopes of the risk, refusals.

Scores are at fixed seeds; with a new one, each |z| < 4 fails with 6·10⁻⁵.
"""

import numpy as np
import pytest
from scipy.special import erf

from sweeplib import DYNAMICS, InputError, Problem, simulate
from sweeplib.networks.dynamics.weight_dynamics import population_with
from sweeplib.networks.maths.activations import activation
from sweeplib.networks.maths.offsets import Fields, OffsetRisks, products_of
from sweeplib.networks.numerics.random import normals, random_words, stream_key
from sweeplib.networks.observables import OBSERVABLES
from sweeplib.networks.simulation import Case, Recording
from sweeplib.networks.simulation.driver import replicas_of
from sweeplib.networks.simulation.sample_keys import samples_key
from tests.numpy_sgd import takes_the_steps_of_numpy
from tests.tiers import slow_but

RAMP = "piecewise(-0.5, -0.7, 1, 1.5)"
FIELDS = {"gamma": 0.4, "p": 3, "k": 2, "d": 37, "Delta": 0.2, "activation": "relu", "a": (1.0, -0.6, 0.8)}
OFFSETS = {"offset_scale": 0.7, "offset_rate": 1.5}
CLASSES = {"data": "two_gaussians", "contrast": 0.6, "k": 0}
SHOWN = ("overlap_Q", "offset", "second_layer")


def made(**fields):
    return Problem(**(FIELDS | OFFSETS | fields))


def of_activation(name):
    form = activation(name)
    return np.vectorize(form.value, otypes=[float]), np.vectorize(form.derivative, otypes=[float])


def sample(problem, key, seed, number):
    """√d x, the part of the label that comes with it, and the label noise of a sample of the stream."""
    draws, d = normals(key, seed, number, 32 * (problem.d // 32 + 1)), problem.d
    if problem.data == "teacher_student":
        return draws[:d], 0.0, draws[d]
    own = np.uint64(stream_key(key, "data", "two_gaussians"))
    label = 1.0 if int(random_words(np.uint64(0), np.uint64(number), np.uint64(seed), own)[0]) % 2 else -1.0
    return (1.0 + label * problem.contrast) * draws[:d], label, draws[d]


def steps_by_numpy(case, count):
    """Q, b and a after some steps with the samples of the stream in order; c = a σ'(λ + b) E moves W and b."""
    problem, (value, slope) = case.problem, of_activation(case.problem.activation)
    of_teacher, _ = of_activation(problem.teacher)
    given, key = replicas_of([case]), samples_key(case)
    (W, W_star), b, d, n_b = given.weights(0), given.offsets()[0], problem.d, problem.batch_size
    layer, a_star = given.a[0].copy(), given.a_star[0]
    for step in range(count):
        first = 0 if problem.samples else step // problem.repeats * n_b
        x, label, z = map(np.array, zip(*(sample(problem, key, case.seed, first + s) for s in range(n_b)), strict=True))
        if problem.k:
            label = of_teacher(x @ W_star.T / np.sqrt(d)) @ a_star / problem.k
        field = x @ W.T / np.sqrt(d) + b
        error = label + np.sqrt(problem.Delta) * z - value(field) @ layer / problem.p
        c = layer * slope(field) * error[:, None]
        layer = layer + problem.second_layer_rate * problem.step_time() * (value(field) * error[:, None]).mean(axis=0)
        b = b + problem.offset_rate * problem.step_time() * c.mean(axis=0)
        W = W + problem.gamma / problem.p * c.T @ x / np.sqrt(d) / n_b
        if problem.spherical:
            W *= np.sqrt(d) / np.linalg.norm(W, axis=1, keepdims=True)
    return W @ W.T / d, b, layer


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"spherical": True},
        {"activation": "erf", "second_layer_rate": 0.5},
        pytest.param({"activation": RAMP, "offset_scale": 0.0}, marks=pytest.mark.rest),
        {"activation": "erf", "offset_rate": 0.0},
        pytest.param({"batch_size": 7, "repeats": 2, "second_layer_rate": 0.5}, marks=pytest.mark.slow),
        pytest.param({"batch_size": 9, "samples": 9, "second_layer_rate": 0.5}, marks=pytest.mark.slow),
        pytest.param({"batch_size": 2, "samples": 2, "spherical": True}, marks=pytest.mark.slow),
        CLASSES,
    ],
    ids=str,
)
def test_sgd_takes_the_steps_of_numpy(fields):
    problem = made(**fields)
    case = Case(problem, "sgd", 3, Recording((24 * problem.step_time(),), (), SHOWN))
    ds = simulate(problem, "sgd", times=case.recording.times, seeds=[3], observables=SHOWN)
    for name, expected in zip(SHOWN, steps_by_numpy(case, 24), strict=True):
        np.testing.assert_allclose(ds[name][0, 0], expected, rtol=1e-9, atol=1e-12)


UPDATES = {
    "clipped": {"update": "clipped", "clip_norm": 0.1},
    "clipped, batches": {"update": "clipped", "clip_norm": 0.1, "batch_size": 5},
    "adagrad_norm, a training set": {"update": "adagrad_norm", "adagrad_start": 0.3, "samples": 5, "batch_size": 5},
    "momentum": {"update": "heavy_ball", "momentum": 0.6},
    "tangent": {"update": "tangent", "spherical": True},
    "tangent, a training set": {"update": "tangent", "spherical": True, "samples": 5, "batch_size": 5},
    "muon": {"update": "muon", "batch_size": 5},
    "signs": {"update": "sign"},
}


@pytest.mark.rest
@pytest.mark.parametrize("name", UPDATES)
def test_offsets_have_plain_steps_whatever_the_update(name):
    takes_the_steps_of_numpy(made(activation="erf", second_layer_rate=0.5, **UPDATES[name]), 1e-9)


@pytest.mark.rest
def test_offsets_at_the_start_are_normal_numbers_of_the_seed():
    ds = simulate(made(p=400, a=1.0, offset_rate=0.0), "sgd", times=[0.0, 0.1], seeds=range(3), observables=["offset"])
    np.testing.assert_array_equal(ds.offset[:, 0], ds.offset[:, 1])
    drawn = ds.offset[:, 0].values.ravel() / 0.7
    for moment, expected, variance in ((1, 0.0, 1.0), (2, 1.0, 2.0), (3, 0.0, 15.0), (4, 3.0, 96.0)):
        assert abs((drawn**moment).mean() - expected) < 4.0 * np.sqrt(variance / drawn.size)
    particles = simulate(made(p=400, a=1.0), "mean_field_hd", times=[0.0], seeds=range(3), observables=["offset"])
    np.testing.assert_array_equal(particles.offset[:, 0], ds.offset[:, 0])


def state(problem, seed=0):
    """Q, M, P, a, a* and b of a start, each with an axis of one replica."""
    given = replicas_of([Case(problem, "sgd", seed, Recording((0.0,)))])
    return given, (given.Q, given.M, given.P, given.a, given.a_star), given.offsets()


@pytest.mark.parametrize(
    "fields",
    [
        {},
        pytest.param({"activation": "erf"}, marks=pytest.mark.slow),
        {"activation": RAMP},
        pytest.param({"activation": "relu", "teacher_activation": "erf"}, marks=pytest.mark.slow),
        pytest.param({"activation": "tanh", "teacher_activation": "relu"}, marks=pytest.mark.slow),
        pytest.param({"activation": "relu", "target": "lam1 + he2(lam2)"}, marks=pytest.mark.slow),
        pytest.param({"activation": "erf", "target": "lam1*lam2 + tanh(lam1)"}, marks=pytest.mark.slow),
        {"activation": "relu"} | CLASSES,
        pytest.param({"activation": "erf"} | CLASSES, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_the_risk_is_a_mean_over_samples(fields):
    """Of 4·10⁵ samples, at a large d: 0.2 per cent; and E[σσ'] and E[σ f*] of the refitted second layer with it."""
    problem = made(**fields)
    given, (Q, M, P, a, a_star), b = state(problem)
    rng, n = np.random.default_rng(2), 400_000
    W, W_star = given.weights(0)
    x = rng.standard_normal((n, problem.d))
    labels = np.zeros(n)
    if problem.k:
        from sweeplib.networks.kernels.labels import labels as of_target

        labels = of_target(problem.target, problem.teacher, (x @ W_star.T / np.sqrt(problem.d)).T, a_star[0])
    else:
        labels = rng.choice([-1.0, 1.0], n)
        x *= (1.0 + problem.contrast * labels)[:, None]
    values = of_activation(problem.activation)[0](x @ W.T / np.sqrt(problem.d) + b[0])
    found = population_with(given, b)
    squares, products = found.moments(Q, M, P, a_star)
    losses = 0.5 * (labels - values @ a[0] / problem.p) ** 2
    pairs = values[:, :, None] * values[:, None, :]
    for mean, samples in (
        (found.risks(Q, M, P, a, a_star)[0], losses),
        (squares[0], pairs),
        (products[0], values * labels[:, None]),
    ):
        score = (samples.mean(axis=0) - mean) / (samples.std(axis=0) / np.sqrt(n))
        assert abs(score).max() < 4.0


@pytest.mark.rest
@pytest.mark.parametrize("name", ["relu", "erf", RAMP, "he3", "tanh"])
def test_without_offsets_it_is_the_risk_of_overlaps(name):
    problem = made(activation=name, offset_scale=0.0)
    given, overlaps, b = state(problem)
    np.testing.assert_allclose(population_with(given, b).risks(*overlaps), given.population.risks(*overlaps), rtol=1e-7)


def started(problem, dynamics):
    case = Case(problem, dynamics, 0, Recording((0.5,), (), ("risk",)))
    return DYNAMICS[dynamics](replicas_of([case]), case.numerical_options())


def slopes(run):
    """The time derivatives of u and b (κ + 1, p), q (p,) and a (p,), and the numbers themselves."""
    path, p = run._paths[0], run.replicas.p
    kappa, now = len(run._starts[0].u), path.state
    slope = path.rules.rule.derivative(now).slope
    return [(part[: (kappa + 1) * p].reshape(kappa + 1, p), part[(kappa + 1) * p :]) for part in (slope, now)]


def by_differences(risk, state, step=1e-4):
    """The derivatives of the risk in the entries of a state."""
    found = np.empty(state.size)
    for i in range(state.size):
        ends = [risk(state + sign * step * (np.arange(state.size) == i)) for sign in (1.0, -1.0)]
        found[i] = (ends[0] - ends[1]) / (2.0 * step)
    return found


@pytest.mark.rest
@pytest.mark.parametrize("name", slow_but(["erf", "tanh", "he3", "relu", RAMP], "erf", RAMP))
@pytest.mark.parametrize("fields", [{}, CLASSES], ids=["teacher", "classes"])
def test_weight_flow_falls_down_the_risk_of_overlaps(name, fields):
    """u̇ = −p ∂R/∂u, ḃ = −β p ∂R/∂b and ȧ = −ε p ∂R/∂a, R from Q = uᵀu, M = L*u and b by `OffsetRisks`.

    The flow integrates over nodes of three dimensions: to its own estimate of its error.
    """
    problem = made(d=3, activation=name, second_layer_rate=0.5, **fields)
    run = started(problem, "weight_flow")
    (slope, rest_slope), (u, a) = slopes(run)
    L_star, p, given = run._starts[0].L_star, problem.p, run.replicas

    def risk(flat):
        at, layer = flat[: 4 * p].reshape(4, p), flat[None, 4 * p :]
        Q, M = at[:3].T @ at[:3], (L_star @ at[:3]).T
        return population_with(given, at[None, 3]).risks(Q[None], M[None], given.P, layer, given.a_star)[0]

    gradient = -p * by_differences(risk, np.concatenate([u.ravel(), a]))
    gradient[3 * p : 4 * p] *= problem.offset_rate
    gradient[4 * p :] *= problem.second_layer_rate
    found, error = np.concatenate([slope.ravel(), rest_slope]), run._paths[0].risk_now().drift_error
    np.testing.assert_allclose(found, gradient, rtol=0, atol=(1e-7 + 2.0 * error) * abs(gradient).max())
    assert error < {"erf": 1e-5, "tanh": 1e-3}.get(name, 0.2)


@pytest.mark.rest
@pytest.mark.parametrize("name", slow_but(["erf", "relu", RAMP, "he3", "tanh"], "erf", RAMP))
@pytest.mark.parametrize("dynamics", ["mean_field", "mean_field_hd"])
@pytest.mark.parametrize("fields", [{}, CLASSES], ids=["teacher", "classes"])
def test_mean_fields_fall_down_their_own_risk(name, dynamics, fields):
    """q̇ = −4 p q ∂R/∂q, as q = s² and ṡ = −p ∂R/∂s; the terms of a unit with itself are in R by E[σ²] alone."""
    problem = made(d=6, activation=name, second_layer_rate=0.5, **fields)
    run = started(problem, dynamics)
    (slope, rest_slope), (u, rest) = slopes(run)
    p, size, risk = problem.p, u.size, run._paths[0].rules.rule.risk
    gradient = -p * by_differences(risk, np.concatenate([u.ravel(), rest]))
    gradient[size - p : size] *= problem.offset_rate
    gradient[size : size + p] *= 4.0 * rest[:p]
    gradient[size + p :] *= problem.second_layer_rate
    found = np.concatenate([slope.ravel(), rest_slope])
    np.testing.assert_allclose(found, gradient, rtol=0, atol=2e-5 * abs(gradient).max())


@pytest.mark.rest
@pytest.mark.parametrize("name", ["erf", "relu"])
def test_the_risk_of_one_particle_is_that_of_its_overlaps(name):
    problem = made(p=1, a=1.0, activation=name)
    asked = {"times": [0.0], "seeds": range(3), "observables": ["risk"]}
    particle, unit = (simulate(problem, dynamics, **asked).risk.values for dynamics in ("mean_field_hd", "sgd"))
    np.testing.assert_allclose(particle, unit, rtol=1e-9 if name == "relu" else 1e-5)


@pytest.mark.slow
def test_offsets_are_no_part_of_norms_and_overlaps():
    """A spherical particle keeps its norm, and moves as SGD with short steps does; schedules act on offsets too."""
    problem = made(
        d=2, k=1, gamma=0.004, spherical=True, Delta=0.0, activation="erf", offset_rate=8.0, schedule="1/(1 + t)"
    )
    asked = {"times": [0.0, 1.0], "seeds": range(2), "observables": ["student_norm", "offset", "risk"]}
    flow = simulate(problem, "weight_flow", **asked)
    np.testing.assert_allclose(flow.student_norm, 1.0, rtol=1e-9)
    sgd = simulate(problem, "sgd", **asked)
    assert abs(flow.offset[:, 1].values - flow.offset[:, 0].values).max() > 0.1
    np.testing.assert_allclose(sgd.offset, flow.offset, atol=0.06)
    np.testing.assert_allclose(sgd.risk, flow.risk, atol=0.01)
    np.testing.assert_allclose(sgd.risk[:, 0], flow.risk[:, 0], rtol=1e-7)


@pytest.mark.slow
def test_other_particles_have_offsets_of_the_same_law():
    fields = {"a": 1.0, "k": 1, "d": 6, "activation": "erf"}
    problem = made(p=4, **fields)
    asked = {"times": [0.0, 0.5], "seeds": range(2), "observables": ["offset", "risk"]}
    alone, mean_field = (
        simulate(problem, name, options=options, **asked)
        for name, options in (("nonlinear_dynamics", {"particles": 4}), ("mean_field", None))
    )
    np.testing.assert_array_equal(alone.offset, mean_field.offset)
    many = simulate(problem, "nonlinear_dynamics", options={"particles": 512}, **asked)
    np.testing.assert_array_equal(many.offset[:, 0], mean_field.offset[:, 0])
    wide = simulate(made(p=512, **fields), "mean_field", **asked)
    np.testing.assert_allclose(many.risk, wide.risk, rtol=0.1)


@pytest.mark.parametrize(
    ("fields", "asked", "said"),
    [
        ({}, {"thresholds": [0.5]}, "thresholds: sgd finds no exits of units with offsets; got [0.5]; expected [], no"),
        ({}, {"observables": ["noise_trace"]}, "units with offsets have no drifts of overlaps"),
        ({"target": "relu(lam1) + lam2"}, {}, "no risk of units with offsets; got 'relu(lam1) + lam2'"),
        ({"offset_rate": -1.0}, {}, "offset_rate"),
    ],
)
def test_what_offsets_do_not_have_is_refused(fields, asked, said):
    with pytest.raises(InputError) as caught:
        simulate(made(**fields), "sgd", times=[0.0], **asked)
    assert said in str(caught.value)


@pytest.mark.parametrize("dynamics", ["ode", "sgd_chain", "overlap_map", "gradient_flow"])
def test_other_dynamics_name_those_that_know_offsets(dynamics):
    with pytest.raises(
        InputError, match=r"does not act on offset_rate.*mean_field, mean_field_hd.*sgd, training_flow, weight_flow"
    ):
        simulate(made(), dynamics, times=[0.0])


@pytest.mark.rest
def test_particles_find_exits():
    problem = made(p=4, k=1, a=1.0, activation="erf")
    ds = simulate(problem, "mean_field_hd", times=np.linspace(0.0, 4.0, 201), thresholds=[0.3], observables=["risk"])
    level = float(np.interp(ds.exit_time.item(), ds.time, ds.risk[0]))
    assert level == pytest.approx(0.7 * float(ds.risk[0, 0]), rel=1e-4)


def test_a_problem_without_offsets_has_the_text_of_before():
    assert "offset" not in Problem(**FIELDS).text
    assert Problem(**FIELDS, offset_scale=0.0, offset_rate=0.0).text == Problem(**FIELDS).text
    assert not Problem(**FIELDS).has_offsets
    assert isinstance(population_with(state(made())[0], np.zeros((1, 3))), OffsetRisks)


@pytest.mark.long
def test_sgd_of_short_steps_follows_the_flow_of_weights_and_offsets():
    """48 paired starts, γ/p = 1/400: risk and mean square of the offsets; with offsets that stay it is another flow."""
    fields = {"gamma": 0.05, "p": 20, "k": 1, "d": 4, "Delta": 0.1, "activation": "erf", "second_layer_rate": 1.0}
    trained = Problem(**fields, target="lam1 + he2(lam1)/2", offset_scale=1.0, offset_rate=1.0)
    frozen = Problem(**fields, target="lam1 + he2(lam1)/2", offset_scale=1.0)
    common = {"times": [1, 2], "seeds": range(48), "observables": ["risk", "offset"]}
    by_sgd = simulate(trained, "sgd", **common)
    flow, other = (simulate(problem, "weight_flow", **common) for problem in (trained, frozen))

    def scores(x, y):
        return ((x - y).mean("seed") / (x - y).std("seed", ddof=1) * np.sqrt(48)).values

    def squares(ds):
        return (ds.offset**2).mean("student")

    assert (np.abs(scores(by_sgd.risk, flow.risk)) < 4).all()
    assert (np.abs(scores(squares(by_sgd), squares(flow))) < 4).all()
    assert (scores(by_sgd.risk, other.risk) < -4).all()


def moments_by_numpy(case, count):
    """Five means over the units after SGD, with samples of NumPy's generator; target λ + h₂(λ)/2, h₂ normalised."""
    problem, given, rng = case.problem, replicas_of([case]), np.random.default_rng(1000 + case.seed)
    (W, (w_star,)), a, b = given.weights(0), given.a[0], given.offsets()[0]
    root, step = np.sqrt(problem.d), problem.gamma / (problem.p * problem.d)
    x, z = rng.normal(size=(count, problem.d)) / root, np.sqrt(problem.Delta) * rng.normal(size=count)
    of_teacher = x @ w_star
    labels = of_teacher + (of_teacher**2 - 1.0) / np.sqrt(8.0) + z
    for one, label in zip(x, labels, strict=True):
        field = W @ one + b
        value = erf(field / np.sqrt(2.0))
        error = label - a @ value / problem.p
        c = a * np.exp(-0.5 * field**2) * np.sqrt(2.0 / np.pi) * error
        a = a + problem.second_layer_rate * step * value * error
        b = b + problem.offset_rate * step * c
        W = W + step * problem.d * np.outer(c, one)
    return moments_of(a, b, W @ w_star / problem.d, (W**2).sum(axis=1) / problem.d)


def moments_of(a, b, m, q):
    return [each.mean() for each in (b**2, a * b, a**2, a * m, q)]


@pytest.mark.slow
@pytest.mark.parametrize(("dynamics", "d"), [("mean_field", 4), ("mean_field_hd", 64)])
def test_sgd_of_many_units_follows_the_mean_field_with_offsets(dynamics, d):
    """24 paired starts, p = 400, γ/p = 1/200: means over the units of NumPy's SGD; offsets that stay have others."""
    fields = {"gamma": 2.0, "p": 400, "k": 1, "d": d, "Delta": 0.1, "activation": "erf", "second_layer_rate": 1.0}
    fields |= {"target": "lam1 + he2(lam1)/2", "offset_scale": 1.0}
    trained, frozen = Problem(**fields, offset_rate=3.0), Problem(**fields)
    names = ("second_layer", "offset", "overlap_M", "self_overlap")
    cases = [Case(trained, "sgd", seed, Recording((0.0,))) for seed in range(24)]
    by_sgd = np.array([moments_by_numpy(case, round(1.0 / trained.step_time())) for case in cases])

    def scores(problem):
        ds = simulate(problem, dynamics, times=[0, 1], seeds=range(24), observables=names).isel(time=-1, teacher=0)
        limit = np.array([moments_of(*(ds[name][i].values for name in names)) for i in range(24)])
        difference = by_sgd - limit
        return difference.mean(axis=0) / difference.std(axis=0, ddof=1) * np.sqrt(24)

    assert (np.abs(scores(trained)) < 4.0).all()
    assert np.abs(scores(frozen)).max() > 10.0


def test_moments_of_polynomials_are_exact():
    """E[σ(b + s g)²] of the highest degree, by as many nodes as are exact; others cut their tail off."""
    form = activation("hermite(0, 0, 0, 0, 0, 0, 0, 0, 1)")
    b, s = np.array([0.3, -0.8]), np.array([1.0, 2.0])
    x, weight = np.polynomial.hermite_e.hermegauss(20)
    values = np.vectorize(form.value)(b[:, None] + s[:, None] * x)
    found = products_of(Fields.of(form, b, s, 1), np.diag(s**2))
    np.testing.assert_allclose(np.diag(found), (values**2) @ weight / weight.sum(), rtol=1e-13)


@pytest.mark.parametrize("formula", ["he5(lam1) + 0.1*lam6", "tanh(lam1*0.5 + lam2) + lam4"])
def test_targets_of_many_fields_that_are_sums_of_ridges_have_their_moments(formula):
    """E[σ_i f*] with offsets of 10⁻⁹ is that without: few nodes for each of many fields had 0 for he₅ he₅."""
    fields = {"target": formula, "k": int(formula[-1]), "activation": "he5", "teacher_activation": None}
    given, (Q, M, P, a, a_star), _ = state(made(**fields, start="warm", m0=0.9, p=2, a=1.0, Delta=0.0))
    b = np.full((1, 2), 1e-9)
    np.testing.assert_allclose(
        population_with(given, b).risks(Q, M, P, a, a_star), given.population.risks(Q, M, P, a, a_star), rtol=1e-6
    )


@pytest.mark.parametrize("name", ["refitted_risk", "risk_of_average", "test_loss"])
def test_each_risk_of_units_with_offsets_has_its_error(name):
    assert OBSERVABLES[name].estimated(made(activation="erf", averaging_rate=0.1))
