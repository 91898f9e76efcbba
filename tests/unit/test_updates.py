"""Steps that are normalised, clipped, of AdaGrad-norm, with momentum, along the sphere: numbers, NumPy, limits."""

import dataclasses
import math

import numpy as np
import plain
import pytest
from scipy.integrate import solve_ivp

from sweeplib import InputError, Overlaps, Problem, simulate
from sweeplib.networks.maths.mean_gradients import mean_slopes
from sweeplib.networks.problem import problem_expectations
from tests.losses import with_loss
from tests.numpy_sgd import SHOWN, takes_the_steps_of_numpy
from tests.tiers import slow_among, slow_but

COMMITTEE = Problem(gamma=1.0, p=2, k=2, d=4000, Delta=0.1, activation="erf", a=(1.0, -0.7))
START = Overlaps(np.array([[1.0, 0.2], [0.2, 0.8]]), np.array([[0.3, 0.1], [0.0, 0.4]]), np.eye(2))
ON_SPHERE = dataclasses.replace(START, Q=np.array([[1.0, 0.2], [0.2, 1.0]]))
ONE = Overlaps(np.eye(1), np.array([[0.3]]), np.eye(1))

RULES = {
    "normalised": {"update": "normalised"},
    "clipped": {"update": "clipped", "clip_norm": 0.4},
    "adagrad_norm": {"update": "adagrad_norm", "adagrad_start": 0.3},
    "heavy_ball": {"update": "heavy_ball", "momentum": 0.8},
    "tangent": {"update": "tangent", "spherical": True},
    "spectral": {"update": "spectral", "spectral_ridge": 0.02},
    "muon": {"update": "muon", "momentum": 0.8},
}


def shown(problem, dynamics, time, start):
    """R, M_11, Q_11 and Q_12 at a time."""
    ds = simulate(problem, dynamics, times=[time], initial=start, observables=("risk", *SHOWN)).isel(seed=0, time=-1)
    return [float(value) for value in (ds.risk, ds.overlap_M[0, 0], *ds.overlap_Q[0])]


@pytest.mark.parametrize(
    ("rule", "start", "expected"),
    [
        (RULES["adagrad_norm"] | {"adagrad_start": 0.5}, START, [0.0475511317, 0.50436669, 1.05982767, 0.32056]),
        (RULES["tangent"], ON_SPHERE, [0.0589250430, 0.47199203, 1.0, 0.39204726]),
        ({"spherical": True}, ON_SPHERE, [0.0589250430, 0.47199203, 1.0, 0.39204726]),
    ],
)
def test_the_ode_of_a_committee_has_the_numbers_of_an_independent_code(rule, start, expected):
    np.testing.assert_allclose(
        shown(dataclasses.replace(COMMITTEE, **rule), "ode", 2.0, start), expected, rtol=1e-7, atol=5e-9
    )


@pytest.mark.parametrize(
    ("rule", "m", "q"),
    [
        pytest.param(RULES["normalised"], [0.26392310, 0.82941280], [0.79635196, 0.93830948], marks=pytest.mark.slow),
        (RULES["clipped"] | {"clip_norm": 0.7}, [0.18111178, 0.64264194], [0.77646592, 0.65370867]),
        (RULES["adagrad_norm"] | {"adagrad_start": 0.5}, [0.41457164, 0.81461963], [0.76598365, 0.79483279]),
    ],
)
def test_the_ode_of_a_linear_unit_has_the_numbers_of_an_independent_code(rule, m, q):
    """The drifts of the first two are sums over nodes, which say that they are better than 1e-12."""
    problem = Problem(gamma=0.5, p=1, k=1, d=100, Delta=0.1, activation="linear", **rule)
    start = Overlaps(np.eye(1), np.zeros((1, 1)), np.eye(1))
    ds = simulate(problem, "ode", times=[0.5, 2.0], initial=start, observables=SHOWN)
    np.testing.assert_allclose(ds.overlap_M.values.ravel(), m, atol=6e-9)
    np.testing.assert_allclose(ds.overlap_Q.values.ravel(), q, atol=6e-9)
    assert "drift_error" not in ds or ds.drift_error.item() < 1e-12


LIKE = {"normalised": {"loss": "absolute"}, "clipped": {"loss": "huber", "huber_delta": 0.4}}


@pytest.mark.rest
@pytest.mark.parametrize("rule", slow_but(LIKE, "clipped"))
def test_the_ode_of_a_linear_unit_is_that_of_a_loss(rule):
    """c = E: a normalised step is one of the absolute loss, a clipped one that of Huber's; without noise too."""
    for Delta, tolerance in ((0.1, 1e-8), (0.0, 2e-2)):
        fields = {"gamma": 0.5, "p": 1, "k": 1, "d": 100, "Delta": Delta, "activation": "linear"}
        found, expected = (
            simulate(Problem(**fields | one), "ode", times=[2.0], initial=ONE, observables=SHOWN)
            for one in (RULES[rule], LIKE[rule])
        )
        for name in SHOWN[:2]:
            np.testing.assert_allclose(found[name], expected[name], rtol=tolerance)


FINITE = {
    "plain": ({}, (0.91420, 32e-5), (1.00097, 58e-5), None),
    "normalised": ({"gamma": 0.5}, (0.92813, 60e-5), (1.15138, 125e-5), None),
    "clipped": ({"second_layer_rate": 0.7}, (0.85702, 25e-5), (0.98374, 38e-5), (0.78839, 24e-5)),
    "adagrad_norm": ({}, (0.99516, 34e-5), (1.15462, 69e-5), None),
    "heavy_ball": ({"gamma": 0.3}, (1.09118, 45e-5), (1.40833, 105e-5), None),
    "tangent": ({}, (0.91010, 15e-5), None, None),
    "sphere": ({"spherical": True}, (0.91157, 15e-5), None, None),
}


@pytest.mark.rest
@pytest.mark.parametrize("rule", FINITE)
@pytest.mark.parametrize(("dynamics", "count"), slow_among([("sgd", 1000), ("sgd_chain", 8000)], ("sgd", 1000)))
def test_means_at_finite_d_are_those_of_an_independent_code(dynamics, count, rule):
    """Of erf in d = 10 after 50 steps, against 10⁵ runs on weights: |z| < 4 for all means."""
    given, *expected = FINITE[rule]
    fields = {"gamma": 1.0, "p": 1, "k": 1, "d": 10, "Delta": 0.1, "activation": "erf"} | RULES.get(rule, {}) | given
    problem = Problem(**fields)
    times = [50 * problem.step_time()]
    ds = simulate(problem, dynamics, times=times, seeds=range(count), initial=ONE, observables=SHOWN)
    for name, known in zip(("overlap_M", "overlap_Q", "second_layer"), expected, strict=True):
        if known is not None:
            own = float(ds[name].std(ddof=1)) / math.sqrt(count)
            assert abs(float(ds[name].mean()) - known[0]) < 4.0 * math.hypot(own, known[1])


@pytest.mark.rest
@pytest.mark.parametrize(("rule", "expected"), [("tangent", [0.4528661, 0.3645506]), (None, [0.4555014, 0.3633021])])
def test_the_map_of_tangent_steps_has_the_numbers_of_an_independent_code(rule, expected):
    """Without the factor 1 + 2/d of Ψ^Var, d = 800, which changes both by less than 2·10⁻⁵."""
    fields = {"gamma": 0.8 * 2 * 800, "d": 800, "batch_size": 1200, "spherical": True} | (RULES[rule] if rule else {})
    found = shown(dataclasses.replace(COMMITTEE, **fields), "overlap_map", 1.6, ON_SPHERE)
    np.testing.assert_allclose([found[1], found[3]], expected, atol=2e-5)


def test_the_map_of_tangent_steps_differs_from_the_projected_one_as_that_of_an_independent_code():
    fields = {"gamma": 0.8 * 2 * 800, "d": 800, "batch_size": 1200, "spherical": True}
    tangent, projected = (
        np.array(shown(dataclasses.replace(COMMITTEE, **fields, update=step), "overlap_map", 1.6, ON_SPHERE))
        for step in ("tangent", "plain")
    )
    np.testing.assert_allclose((tangent - projected)[[1, 3]], [-0.0026353, 0.0012485], atol=1e-6)


KINDS = {
    "fresh": {},
    "both layers": {"second_layer_rate": 0.5, "second_layer_decay": 0.2},
    "batches": {"batch_size": 6},
    "one sample": {"samples": 1, "batch_size": 1},
    "a training set": {"samples": 7, "batch_size": 7},
    "huber": with_loss("huber"),
    "logistic, batches": with_loss("logistic", "sign") | {"batch_size": 6},
    "decay": {"weight_decay": 0.3},
    "decay, batches": {"weight_decay": 0.3, "batch_size": 3},
    "decay, a training set": {"weight_decay": 0.3, "samples": 7, "batch_size": 7},
    "sphere": {"spherical": True},
    "sphere, a training set": {"spherical": True, "samples": 7, "batch_size": 7},
}
PAIRS = [(rule, kind) for rule in RULES for kind in KINDS if rule != "tangent" or "decay" not in kind]


@pytest.mark.rest
@pytest.mark.parametrize(("rule", "kind"), PAIRS)
def test_sgd_takes_the_steps_of_its_rule_in_numpy(rule, kind):
    """And finds the exit where NumPy does, by the risk at each step."""
    fields = {
        "d": 40,
        "gamma": 0.5 if rule in ("normalised", "adagrad_norm", "heavy_ball", "spectral", "muon") else 1.0,
    }
    takes_the_steps_of_numpy(dataclasses.replace(COMMITTEE, **fields | RULES[rule] | KINDS[kind]), 1e-9)


@pytest.mark.rest
@pytest.mark.parametrize("rule", slow_but(RULES, "clipped", "heavy_ball"))
def test_exits_of_the_chain_do_not_depend_on_the_bound_of_the_risk(rule):
    """The risk is computed only when it may have reached its target; that of each step says where it did."""
    problem = dataclasses.replace(COMMITTEE, d=60, gamma=0.2, k=1, a=1.0, **RULES[rule])
    times = problem.step_time() * np.arange(1501)
    ds = simulate(problem, "sgd_chain", times=times, seeds=range(4), thresholds=[0.3])
    below = ds.risk.values <= 0.7 * ds.risk.values[:, :1]
    assert below.any(axis=1).all()
    np.testing.assert_array_equal(ds.exit_steps.values[:, 0], below.argmax(axis=1))


@pytest.mark.parametrize("dynamics", ["sgd", "sgd_chain"])
def test_a_clip_that_no_gradient_reaches_is_no_clip(dynamics):
    """To the bit."""
    problem = dataclasses.replace(COMMITTEE, d=40)
    clipped, plain = (
        simulate(one, dynamics, times=[2.0], seeds=3, observables=("risk", *SHOWN), root_seed=1, pair_by=["seed"])
        for one in (dataclasses.replace(problem, update="clipped", clip_norm=1e200), problem)
    )
    for name in ("risk", *SHOWN):
        np.testing.assert_array_equal(clipped[name], plain[name])


@pytest.mark.parametrize("dynamics", ["sgd", "sgd_chain"])
def test_small_clips_at_large_rates_are_normalised_steps(dynamics):
    """At γκ fixed, κ = 10⁻⁹; times are counted in steps."""
    runs = []
    for rule in ({"update": "clipped", "clip_norm": 1e-9, "gamma": 0.5e9}, {"update": "normalised", "gamma": 0.5}):
        problem = dataclasses.replace(COMMITTEE, d=40, **rule)
        given = {"times": [80 * problem.step_time()], "seeds": 2, "observables": SHOWN, "pair_by": ["seed"]}
        runs.append(simulate(problem, dynamics, **given))
    for name in SHOWN:
        np.testing.assert_allclose(runs[0][name], runs[1][name], rtol=1e-9)


@pytest.mark.rest
def test_sgd_without_momentum_is_plain():
    problem = dataclasses.replace(COMMITTEE, d=40)
    without, plain = (
        simulate(one, "sgd", times=[2.0], seeds=3, observables=SHOWN, pair_by=["seed"])
        for one in (dataclasses.replace(problem, update="heavy_ball", momentum=0.0), problem)
    )
    for name in SHOWN:
        np.testing.assert_allclose(without[name], plain[name], rtol=1e-11, atol=1e-13)


@pytest.mark.rest
@pytest.mark.parametrize(
    ("dynamics", "d", "more"),
    [
        ("sgd_chain", 20_000, {}),
        ("sgd_chain", 20_000, {"spherical": True}),
        pytest.param("sgd", 1500, {"weight_decay": 0.5}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_momentum_in_many_dimensions_is_a_larger_rate(dynamics, d, more):
    """At fixed β: SGD at γ/(1 − β), with its decay, whose time is t/(1 − β). |z| < 4 for (1 − β) d of 300 and 4000."""
    problem = dataclasses.replace(COMMITTEE, d=d, gamma=0.2, update="heavy_ball", momentum=0.8, **more)
    plain, start = dataclasses.replace(COMMITTEE, gamma=1.0, **more), ON_SPHERE if problem.spherical else START
    expected = shown(plain, "ode", 2.0, start)
    np.testing.assert_allclose(shown(problem, "ode", 0.4, start), expected, rtol=1e-8)
    ds = simulate(problem, dynamics, times=[0.4], seeds=range(48), initial=start, observables=("risk", *SHOWN))
    ds = ds.isel(time=-1)
    for runs, value in zip(
        (ds.risk, ds.overlap_M[:, 0, 0], ds.overlap_Q[:, 0, 0], ds.overlap_Q[:, 0, 1]), expected, strict=True
    ):
        assert abs(float(runs.mean()) - value) < 4.0 * float(runs.std(ddof=1)) / math.sqrt(48) + 1e-9


@pytest.mark.slow
def test_averages_with_momentum_and_decay_are_those_at_a_larger_rate():
    """Whose time is t/(1 − β), and so is that of the average."""
    fields, given = {"weight_decay": 0.5, "second_layer_rate": 0.0}, {"initial": START, "observables": ["average_M"]}
    momentum = {"gamma": 0.2, "update": "heavy_ball", "momentum": 0.8, "averaging_rate": 2.0}
    fast = simulate(dataclasses.replace(COMMITTEE, **fields, **momentum), "ode", times=[0.4], **given)
    slow = simulate(dataclasses.replace(COMMITTEE, **fields, averaging_rate=0.4), "ode", times=[2.0], **given)
    np.testing.assert_allclose(fast.average_M.values, slow.average_M.values, rtol=1e-8)


def test_momentum_that_lasts_has_the_numbers_of_its_equations_and_of_an_independent_code():
    """1 − β = κ δt with κ = 3: by scipy from the drifts, and by the chain at d = 4000, |z| < 4 for four means.

    The ODE at fixed β says that it is wrong here by 1/κ.
    """
    kappa, times, needed = 3.0, 2.0, problem_expectations(COMMITTEE)
    shapes = np.cumsum([0, 4, 4, 4, 4, 4])

    def slope(_, state):
        Q, M, N, S, T = (state[at : at + 4].reshape(2, 2) for at in shapes[:5])
        drifts = plain.drifts(needed, Q, M, np.eye(2), np.array(COMMITTEE.a), np.ones(2), COMMITTEE.Delta)
        D, D_star = (part[0] for part in mean_slopes(drifts.M[None], drifts.GF[None], Q[None], M[None], P, exact))
        G, H = D @ Q + D_star @ M.T, D @ S + D_star @ N.T
        to_velocity = T + kappa * (G.T - S)
        spread = -2 * kappa * T + kappa * (H + H.T) + kappa**2 / 2 * drifts.Var
        return np.concatenate(
            [(S + S.T).ravel(), N.ravel(), (kappa * (drifts.M - N)).ravel(), to_velocity.ravel(), spread.ravel()]
        )

    P, exact = np.eye(2)[None], np.full(1, 1e-14)
    start = np.concatenate([START.Q.ravel(), START.M.ravel(), np.zeros(12)])
    Q, M = solve_ivp(slope, (0, times), start, method="DOP853", rtol=1e-9, atol=1e-11).y[:8, -1].reshape(2, 2, 2)
    risk = needed.risks(Q[None], M[None], P, np.array([COMMITTEE.a]), np.ones((1, 2))).item()
    expected = [0.0606344315, 0.46566483, 1.02799559, 0.33588544]
    np.testing.assert_allclose([risk, M[0, 0], *Q[0]], expected, atol=2e-8)
    d = 4000
    slow = kappa / (2 * d)  # 1 − β = κ γ/(pd) at the rate γ/(1 − β) = 1
    problem = dataclasses.replace(COMMITTEE, d=d, gamma=slow, update="heavy_ball", momentum=1 - slow)
    given = {"times": [times * slow], "initial": START, "observables": ("risk", *SHOWN)}
    ds = simulate(problem, "sgd_chain", seeds=range(64), **given).isel(time=-1)
    for runs, value in zip((ds.risk, ds.overlap_M[:, 0, 0], *ds.overlap_Q[:, 0].values.T), expected, strict=True):
        assert abs(float(runs.mean()) - value) < 4.0 * float(runs.std(ddof=1)) / 8.0
    assert simulate(problem, "ode", **given).limit_error.item() == pytest.approx(1 / kappa)


@pytest.mark.parametrize(
    "rule", slow_but(["normalised", "clipped", "adagrad_norm", "tangent"], "adagrad_norm", "tangent")
)
def test_the_chain_in_many_dimensions_follows_the_ode(rule):
    """At d = 4000, of two units that learn one: |z| < 4 for each of Q_12, M_11, M_21."""
    problem = dataclasses.replace(COMMITTEE, k=1, gamma=0.7, **RULES[rule])
    start = Overlaps(ON_SPHERE.Q, np.array([[0.3], [0.1]]), np.eye(1))
    given = {"times": [0.7], "initial": start, "observables": SHOWN}
    chain = simulate(problem, "sgd_chain", seeds=range(64), **given).isel(time=-1)
    ode = simulate(problem, "ode", **given).isel(time=-1, seed=0)
    for name, place in (("overlap_Q", (0, 1)), ("overlap_M", (0, 0)), ("overlap_M", (1, 0))):
        runs = chain[name].values[:, *place]
        assert abs(runs.mean() - ode[name].values[place]) < 4.0 * runs.std(ddof=1) / 8.0


REFUSED = [
    ("ode", RULES["normalised"] | {"p": 3, "a": 1.0}, r"the update normalised has drifts by nodes.*at most 3"),
    (
        "ode",
        RULES["clipped"] | {"k": 1, **with_loss("huber")},
        "update: no drifts of this update and loss.*clipped, normalised, sign, spectral with the square loss",
    ),
    ("ode", RULES["adagrad_norm"] | {"batch_size": 2}, "batch_size.*1 with the update adagrad_norm"),
    ("ode", RULES["heavy_ball"] | {"data": "power_law", "exponent": 1.0}, "update.*plain with inputs of power_law"),
    ("overlap_map", RULES["clipped"] | {"batch_size": 15}, "batch_size.*at least 16 with the update clipped"),
    ("overlap_map", RULES["normalised"], "batch_size.*at least 16 with the update normalised.*sgd_chain takes it"),
    (
        "overlap_map",
        RULES["tangent"] | {"data": "power_law", "exponent": 1.0},
        "update.*plain with inputs of power_law",
    ),
    ("sgd", RULES["tangent"] | {"weight_decay": 0.1}, "weight_decay: decay pulls along the row, which steps along"),
    ("sgd", RULES["tangent"] | {"spherical": False}, "spherical: no sphere to step along; got False; expected true"),
    (
        "sgd",
        RULES["adagrad_norm"] | {"schedule": "1/(1 + t)"},
        "schedule: a schedule would weigh the squared gradients in B",
    ),
    ("sgd", RULES["normalised"] | {"clip_norm": 0.2}, "the update normalised does not act on clip_norm.*clipped"),
]


@pytest.mark.parametrize(("dynamics", "fields", "said"), REFUSED)
def test_what_is_not_known_is_refused_in_a_line(dynamics, fields, said):
    with pytest.raises(InputError, match=said):
        simulate(dataclasses.replace(COMMITTEE, **fields), dynamics, times=[0.1])


@pytest.mark.parametrize("dynamics", ["gradient_flow", "sde", "dmft", "mean_field", "weight_flow"])
@pytest.mark.parametrize("rule", RULES)
def test_dynamics_of_plain_steps_refuse_others(dynamics, rule):
    with pytest.raises(InputError, match=r"does not act on update.*a dynamics that acts on it: ode, overlap_map, sgd"):
        simulate(dataclasses.replace(COMMITTEE, **RULES[rule]), dynamics, times=[0.1])


def test_the_means_at_finite_d_are_those_of_plain_steps():
    with pytest.raises(InputError, match=r"update: no equations at finite d.*expected plain"):
        simulate(
            dataclasses.replace(COMMITTEE, **RULES["adagrad_norm"]), "ode", times=[1.0], options={"finite_d": True}
        )
