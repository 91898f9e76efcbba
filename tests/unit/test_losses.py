"""Other losses and labels that are signs: numbers of an independent code, closed forms, samples, what refuses them."""

import dataclasses
import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import erf

from sweeplib import InputError, Overlaps, Problem, simulate
from sweeplib.analysis.kit.problem_fields import with_plain_steps
from sweeplib.networks.dynamics.label_means import LabelMeans, mean_losses
from sweeplib.networks.maths.expectations import expectations
from sweeplib.networks.problem import Criterion
from sweeplib.networks.views import OverlapView
from tests.losses import FORCES, force, with_loss
from tests.tiers import slow_among, slow_but

COMMITTEE = Problem(gamma=1.0, p=2, k=2, d=40, Delta=0.1, activation="erf", a=(1.0, -0.7), loss="correlation")
START = Overlaps(np.array([[1.0, 0.2], [0.2, 0.8]]), np.array([[0.3, 0.1], [0.0, 0.4]]), np.eye(2))
ONE = Overlaps(np.eye(1), np.array([[0.3]]), np.eye(1))
SHOWN = ("overlap_M", "overlap_Q")


def unit(loss, labels="real", **fields):
    """Return the problem of one unit that learns one."""
    common = {"gamma": 1.0, "p": 1, "k": 1, "d": 40, "Delta": 0.25, "activation": "erf"}
    return Problem(**common | with_loss(loss, labels) | fields)


@pytest.mark.rest
def test_the_ode_of_a_committee_has_the_numbers_of_an_independent_code():
    ds = simulate(COMMITTEE, "ode", times=[2.0], initial=START, observables=("risk", *SHOWN)).isel(seed=0, time=-1)
    shown = [ds.risk, ds.overlap_M[0, 0], *ds.overlap_Q[0]]
    expected = [0.0719877846, 0.57011669, 1.28748744, 0.02293811]
    np.testing.assert_allclose([float(value) for value in shown], expected, atol=5e-9)


NUMBERS = {
    ("logistic", "sign"): ([0.45350836, 0.71572241], [1.06852959, 1.25631015], [0.65428416, 0.61446403]),
    ("correlation", "sign"): ([0.61779418, 1.10401945], [1.48592971, 2.44458159], [-0.20272532, -0.31645455]),
    ("huber", "real"): ([0.37335889, 0.50716302], [0.95560497, 0.88926320], [0.15508825, 0.13850459]),
    ("absolute", "real"): ([0.52985155, 0.84979752], [1.12717469, 1.41586258], [0.62117184, 0.54824398]),
}


@pytest.mark.rest
@pytest.mark.parametrize(("loss", "labels"), slow_but(NUMBERS, ("logistic", "sign")))
def test_the_ode_of_a_unit_has_the_numbers_of_an_independent_code(loss, labels):
    """M, Q and the mean loss at two times; the drifts say that they are better than 1e-12."""
    ds = simulate(unit(loss, labels), "ode", times=[1.0, 3.0], initial=ONE, observables=("test_loss", *SHOWN))
    for name, expected in zip((*SHOWN, "test_loss"), NUMBERS[loss, labels], strict=True):
        np.testing.assert_allclose(ds[name].values.ravel(), expected, atol=6e-9)
    assert 0.0 < ds.drift_error.item() < 1e-12


@pytest.mark.rest
def test_classification_errors_are_those_of_an_independent_code():
    """Of a linear unit it is arccos(m/√(q (P + Δ)))/π."""
    shown = {"times": [1.0, 3.0], "initial": ONE, "observables": ("classification_error", *SHOWN)}
    ds = simulate(unit("logistic", "sign"), "ode", **shown)
    np.testing.assert_allclose(ds.classification_error[0], [0.38592258, 0.32875290], atol=2e-6)
    ds = simulate(unit("logistic", "sign", activation="linear"), "ode", **shown)
    np.testing.assert_allclose(ds.overlap_M.values.ravel(), [0.56704168, 0.97288564], atol=6e-9)
    np.testing.assert_allclose(ds.classification_error[0], [0.34038115, 0.25524623], atol=3e-6)
    angle = np.arccos(ds.overlap_M.values / np.sqrt(ds.overlap_Q.values * 1.25)).ravel() / np.pi
    np.testing.assert_allclose(ds.classification_error[0], angle, atol=3e-6)


KAPPAS = {
    "huber": lambda V, b: (math.erf(b), V * (math.erf(b) - 2 * b * math.exp(-b * b) / math.sqrt(math.pi))),
    "absolute": lambda V, _: (math.sqrt(2 / (math.pi * V)), 1.0),
}


@pytest.mark.rest
@pytest.mark.parametrize("loss", slow_but(KAPPAS, "huber"))
def test_a_linear_unit_follows_its_equations_in_closed_form(loss):
    """ṁ = κ₁ (P − m), q̇ = 2 κ₁ (m − q) + γ κ₂ with κ₁ = E g'(E), κ₂ = E g(E)², E ~ N(0, P − 2m + q + Δ)."""
    problem = unit(loss, activation="linear", gamma=0.5, Delta=0.1)

    def derivatives(t, state):
        V = 1.1 - 2 * state[0] + state[1]
        b = 0.3 / math.sqrt(2 * V)
        first, second = KAPPAS[loss](V, b)
        second += 0.09 * math.erfc(b) if loss == "huber" else 0.0
        return [first * (1 - state[0]), 2 * first * (state[0] - state[1]) + 0.5 * second]

    expected = solve_ivp(derivatives, (0, 2), [0.3, 1.0], method="DOP853", rtol=1e-10, atol=1e-12).y[:, -1]
    ds = simulate(problem, "ode", times=[2.0], initial=ONE, observables=SHOWN)
    np.testing.assert_allclose([ds[name].item() for name in SHOWN], expected, atol=3e-8)


BY_SAMPLES = [
    (loss, labels, spherical)
    for loss, labels in (("correlation", "real"), ("logistic", "sign"), ("huber", "real"))
    for spherical in (False, True)
]


@pytest.mark.parametrize(("loss", "labels", "spherical"), slow_but(BY_SAMPLES))
def test_the_ode_is_that_of_samples_and_scipy(loss, labels, spherical):
    """Of one unit with both layers, with its fields and the noise of the label on nodes of another kind."""
    fields = {"a": 0.8, "gamma": 0.6, "second_layer_rate": 0.5, "spherical": spherical, "Delta": 0.4}
    problem = unit(loss, labels, activation="tanh", teacher_activation="erf", **fields)
    nodes, weights = np.polynomial.hermite_e.hermegauss(48)
    u, v, z = (part.ravel() for part in np.meshgrid(nodes, nodes, np.linspace(-7, 7, 281), indexing="ij"))
    weight = np.einsum("i,j,l->ijl", weights, weights, np.exp(-(np.linspace(-7, 7, 281) ** 2) / 2) * 0.05).ravel()
    weight /= (2 * np.pi) ** 1.5
    y = erf(u / np.sqrt(2)) + np.sqrt(0.4) * z

    def derivatives(t, state):
        Q, M, a = state
        lam = M * u + np.sqrt(Q - M * M) * v
        g = force(problem, a * np.tanh(lam), y)
        c = a * g / np.cosh(lam) ** 2
        drift_M, flow = weight @ (c * u), 2 * weight @ (c * lam) + 0.6 * (weight @ (c * c))
        if spherical:
            drift_M, flow = drift_M - M * flow / 2, 0.0
        return [flow, drift_M, 0.5 * (weight @ (np.tanh(lam) * g))]

    expected = solve_ivp(derivatives, (0, 0.6), [1.0, 0.3, 0.8], method="RK45", rtol=1e-5, atol=1e-7).y[:, -1]
    ds = simulate(problem, "ode", times=[0.6], initial=ONE, observables=("overlap_Q", "overlap_M", "second_layer"))
    found = [ds[name].item() for name in ("overlap_Q", "overlap_M", "second_layer")]
    np.testing.assert_allclose(found, expected, rtol=5e-4 if labels == "sign" else 5e-5)


FINITE = {
    ("correlation", "real"): ((1.35066, 43e-5), (2.48705, 92e-5)),
    ("huber", "real"): ((0.66479, 23e-5), (0.82717, 34e-5)),
    ("absolute", "real"): ((1.09154, 51e-5), (1.59051, 111e-5)),
    ("logistic", "sign"): ((1.01947, 28e-5), (1.58291, 51e-5)),
}


@pytest.mark.rest
@pytest.mark.parametrize(("loss", "labels"), FINITE)
@pytest.mark.parametrize(("dynamics", "count"), slow_among([("sgd", 1000), ("sgd_chain", 4000)], ("sgd", 1000)))
def test_means_at_finite_d_are_those_of_an_independent_code(dynamics, count, loss, labels):
    """Of erf in d = 10 after 50 steps, against 10⁵ runs on weights: |z| < 4 for two means."""
    problem = unit(loss, labels, d=10, Delta=0.1)
    ds = simulate(problem, dynamics, times=[5.0], seeds=range(count), initial=ONE, observables=SHOWN)
    for name, (mean, error) in zip(SHOWN, FINITE[loss, labels], strict=True):
        own = float(ds[name].std(ddof=1)) / math.sqrt(count)
        assert abs(float(ds[name].mean()) - mean) < 4.0 * math.hypot(own, error)


EACH = [f"{loss} {labels}" for loss in FORCES for labels in ("real", "sign")]


@pytest.mark.slow
@pytest.mark.parametrize("criterion", EACH)
def test_the_chain_in_many_dimensions_follows_the_ode(criterion):
    """At d = 4000, of two units and batches of three on the sphere: |z| < 4 for each of Q_12, M_11, M_21."""
    fields = {"p": 2, "a": (1.0, -0.7), "d": 4000, "batch_size": 3, "spherical": True, "gamma": 2.0}
    start = Overlaps(np.array([[1.0, 0.2], [0.2, 1.0]]), np.array([[0.3], [0.1]]), np.eye(1))
    given = {"times": [0.5], "initial": start, "observables": SHOWN}
    problem = unit(*criterion.split(), **fields)
    chain = simulate(problem, "sgd_chain", seeds=range(64), **given).isel(time=-1)
    ode = simulate(problem, "ode", **given).isel(time=-1, seed=0)
    for name, place in (("overlap_Q", (0, 1)), ("overlap_M", (0, 0)), ("overlap_M", (1, 0))):
        runs = chain[name].values[:, *place]
        z = (runs.mean() - ode[name].values[place]) / (runs.std(ddof=1) / 8.0)
        assert abs(z) < 4.0


SIZES = [(1, 2, 0.2), (2, 1, 0.1), (4, 2, 0.25), (3, 2, 0.0)]


@pytest.mark.rest
@pytest.mark.parametrize(("p", "k", "Delta"), slow_but(SIZES, (3, 2, 0.0)))
def test_means_over_labels_are_those_of_samples(p, k, Delta):
    """Of overlaps that are neither orthogonal nor normalised: 4·10⁵ samples, five standard errors."""
    rng = np.random.default_rng(7)
    factor = rng.normal(size=(p + k, p + k + 2)) / np.sqrt(p + k)
    omega, a, samples = factor @ factor.T, rng.normal(size=p), 400_000
    P, M, Q = omega[:k, :k], omega[k:, :k], omega[k:, k:]
    fields = factor @ rng.normal(size=(p + k + 2, samples))
    y = erf(fields[:k] / np.sqrt(2)).mean(axis=0) + np.sqrt(Delta) * rng.normal(size=samples)
    f = a @ erf(fields[k:] / np.sqrt(2)) / p
    now = OverlapView(
        Q[None], M[None], P[None], a[None], np.ones((1, k)), np.full(1, Delta), expectations("erf"), b=np.zeros((1, p))
    )
    values = {
        ("square", "real"): 0.5 * (y - f) ** 2,
        ("correlation", "real"): -y * f,
        ("correlation", "sign"): -np.sign(y) * f,
        ("logistic", "real"): np.logaddexp(0.0, -y * f),
        ("logistic", "sign"): np.logaddexp(0.0, -np.sign(y) * f),
        ("absolute", "real"): np.abs(y - f),
        ("huber", "real"): np.where(np.abs(y - f) < 0.3, 0.5 * (y - f) ** 2, 0.3 * (np.abs(y - f) - 0.15)),
    }
    for (loss, labels), value in values.items():
        means = LabelMeans(
            Criterion(loss, (0.3,) if loss == "huber" else (), labels == "sign"), "erf", "committee", "erf"
        )
        error = 5.0 * value.std() / np.sqrt(samples)
        assert abs(means.test_loss(now).value[0] - value.mean()) < error
        assert abs(mean_losses(means, now).value[0] - value.mean()) < error
    wrong = y * f < 0.0
    assert abs(means.classification_error(now).value[0] - wrong.mean()) < 5.0 * wrong.std() / np.sqrt(samples)


IN_TURN = {"k": 2, "tasks": "in_turn", "switch_time": 0.1}
RECORDED = [
    ("test_loss", {"target": "tanh(2*lam1)"}),
    ("test_loss", {"loss": "correlation", "target": "tanh(2*lam1)"}),
    ("test_loss", {"labels": "sign"}),
    ("classification_error", {}),
    ("refitted_risk", {"target": "tanh(2*lam1)"}),
    ("noise_trace", {"target": "tanh(2*lam1)"}),
    ("risk", {"activation": "tanh"}),
    ("test_error", {"activation": "tanh"}),
    ("refitted_risk", {"activation": "tanh"}),
    ("risk_of_task", IN_TURN | {"activation": "tanh"}),
]


@pytest.mark.rest
@pytest.mark.parametrize(("name", "fields"), RECORDED)
def test_an_observable_by_quadrature_has_its_error_beside_it(name, fields):
    """Or by activations that are sums of error functions nearly; closed forms have none."""
    problem = Problem(gamma=0.1, p=2, k=1, d=40, Delta=0.1, activation="erf")
    ds = simulate(dataclasses.replace(problem, **fields), "sgd_chain", times=[0.0, 0.2], seeds=2, observables=[name])
    of_error = {"test_error": "risk_error"}.get(name, f"{name}_error")
    error = ds[of_error]
    assert error.attrs["error_of"] == of_error.removesuffix("_error")
    assert error.dims == ds[name].dims
    assert ((error > 0.0) & (error < 1e-3)).all()
    if name != "classification_error":
        exact = dataclasses.replace(problem, **(IN_TURN if name == "risk_of_task" else {}))
        assert of_error not in simulate(exact, "sgd_chain", times=[0.2], seeds=1, observables=[name])


@pytest.mark.slow
def test_the_error_of_a_loss_has_that_of_the_state_of_the_ode():
    """By sums over 640,000 nodes, Richardson's h → 0 and Runge and Kutta; it stated 2·10⁻⁷ for 2·10⁻⁵."""
    problem = Problem(gamma=1.0, p=1, k=1, d=50, Delta=0.25, activation="erf", labels="sign", loss="huber", m0=0.3)
    problem = dataclasses.replace(problem, start="sphere")
    ds = simulate(problem, "ode", times=[1.0, 3.0], seeds=1, observables=["test_loss"])
    off = np.abs(ds.test_loss.values[0] - [0.4419955, 0.3738676])
    assert (off < ds.test_loss_error.values[0]).all()
    assert (ds.test_loss_error.values[0] < 10.0 * off).all()


@pytest.mark.rest
def test_the_generalisation_gap_has_the_error_of_the_risk_beside_it():
    problem = Problem(gamma=0.1, p=2, k=1, d=40, Delta=0.1, activation="erf", target="tanh(2*lam1)", samples=50)
    ds = simulate(problem, "sgd", times=[0.2], seeds=2, observables=["generalisation_gap"])
    assert (ds.risk_error > 0.0).all()


def test_there_is_no_generalisation_gap_of_signs():
    """R + Δ/2 is of real labels, and the training risk of those of the set."""
    problem = Problem(gamma=0.1, p=1, k=1, d=10, Delta=0.1, activation="erf", samples=20, labels="sign")
    with pytest.raises(InputError, match="labels: no test error of signs; got 'sign'; expected `real` labels"):
        simulate(problem, "sgd", times=[0.2], observables=["generalisation_gap"])


@pytest.mark.parametrize("fields", [{"loss": "correlation"}, {"labels": "sign"}])
@pytest.mark.parametrize("dynamics", ["gradient_flow", "overlap_map", "dmft", "mean_field", "weight_flow"])
def test_dynamics_of_the_square_loss_refuse_another(dynamics, fields):
    problem = dataclasses.replace(COMMITTEE, **{"loss": "square"} | fields)
    with pytest.raises(
        InputError, match=r"does not act on (loss|labels).*a dynamics that acts on it: ode, (sde, )?sgd, sgd_chain"
    ):
        simulate(problem, dynamics, times=[1.0])


REFUSED_BY_SDE = [
    (with_loss("logistic"), "loss: no drifts at order 1/d.*correlation, square in sde"),
    ({"labels": "sign"}, "sde does not act on labels"),
]


@pytest.mark.parametrize(("fields", "said"), REFUSED_BY_SDE)
def test_the_sde_refuses_losses_without_closed_drifts(fields, said):
    with pytest.raises(InputError, match=said):
        simulate(dataclasses.replace(COMMITTEE, **fields), "sde", times=[1.0])


@pytest.mark.parametrize(
    ("fields", "options", "observables", "said"),
    [
        ({}, {"finite_d": True}, ["risk"], r"loss: no equations at finite d.*expected square with finite_d"),
        (
            {"loss": "logistic", "labels": "sign"},
            {},
            ["risk"],
            r"sign labels and the loss logistic.*p \+ k of at most 3",
        ),
        ({"labels": "sign"}, {}, ["risk"], "sign labels and the loss correlation have drifts by nodes"),
        ({}, {}, ["noise_trace"], "no drifts of the loss correlation of real labels"),
        ({"huber_delta": 0.5}, {}, ["risk"], "the loss correlation does not act on huber_delta.*a loss.*huber"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_line(fields, options, observables, said):
    with pytest.raises(InputError, match=said):
        simulate(dataclasses.replace(COMMITTEE, **fields), "ode", times=[1.0], options=options, observables=observables)


def test_an_unknown_loss_is_refused_with_the_nearest():
    with pytest.raises(InputError, match=r"loss.*corelation.*correlation"):
        dataclasses.replace(COMMITTEE, loss="corelation")


def test_the_theory_of_plain_steps_covers_no_other_loss():
    """Nor labels that are signs."""
    for criterion, covered in ((("square",), True), (("correlation",), False), (("square", "sign"), False)):
        ds = simulate(unit(*criterion), "sgd_chain", times=[0.1], seeds=[0])
        assert bool(with_plain_steps(ds)) == covered
