"""Spectral steps: numbers of independent codes, limits in which they are normalised steps, the map, matrices."""

import dataclasses
import math

import numpy as np
import plain
import pytest
from scipy.integrate import solve_ivp
from scipy.special import erf, gammaln

from sweeplib import InputError, Overlaps, Problem, simulate
from sweeplib.networks.kernels.spectral import empty_spectrum, fill_spectral_matrix
from sweeplib.networks.kernels.steps import step_rule
from sweeplib.networks.numerics.compiled import specialised
from sweeplib.networks.problem import Rule, problem_expectations
from tests.tiers import slow_among

D, ETA = 30, 0.1
"""A step moves each row by η√d: γ = η√d p."""
COMMITTEE = Problem(gamma=ETA * 2 * math.sqrt(D), p=2, k=2, d=D, Delta=0.1, activation="erf", a=(1.0, -0.7))
START = Overlaps(np.array([[1.0, 0.2], [0.2, 0.8]]), np.array([[0.3, 0.1], [0.0, 0.4]]), np.eye(2))
SHOWN = ("overlap_Q", "overlap_M")
NAN = math.nan


def entries(ds):
    """Return M 11 12 21 22 and Q 11 12 22 of all seeds at the last time, as columns."""
    Q, M = (ds[name].isel(time=-1).values.reshape(len(ds.seed), -1) for name in SHOWN)
    return np.hstack([M, Q[:, [0, 1, 3]]])


NUMBERS = {
    "polar": ({"update": "spectral"}, [0.3770, 0.2361, -0.0625, 0.3113, 1.0637, 0.3676, 0.8696]),
    "ridge": (
        {"update": "spectral", "spectral_ridge": 0.2},
        [0.3550, 0.1914, -0.0390, 0.3395, 0.9862, 0.2742, 0.7650],
    ),
    "newton_schulz": ({"update": "newton_schulz"}, [NAN, NAN, NAN, NAN, 1.0456, 0.3458, 0.8599]),
    "one sample": (
        {"update": "spectral", "batch_size": 1},
        [0.3301, 0.1540, -0.0224, 0.3620, 1.0246, 0.2239, 0.7948],
    ),
    "momentum": (
        {"update": "spectral_momentum", "momentum": 0.8},
        [NAN, NAN, NAN, NAN, 1.3419, 0.5488, 1.1779],
    ),
    "decay": (
        {"update": "spectral", "weight_decay": 0.02 / (ETA / math.sqrt(D))},
        [NAN, NAN, NAN, NAN, 0.7824, 0.2713, 0.6398],
    ),
}
ERRORS = np.array([3e-4] * 4 + [5e-4] * 3)


@pytest.mark.rest
@pytest.mark.parametrize("kind", NUMBERS)
@pytest.mark.parametrize(("dynamics", "count"), slow_among([("sgd", 1000), ("sgd_chain", 10_000)], ("sgd", 1000)))
def test_means_of_spectral_steps_are_those_of_an_independent_code(dynamics, count, kind):
    """At d = 30 after 8 steps: |z| < 4 for all means, with the errors of the numbers."""
    fields, numbers = NUMBERS[kind]
    problem = dataclasses.replace(COMMITTEE, **{"batch_size": 5} | fields)
    times = [8 * problem.step_time()]
    runs = entries(simulate(problem, dynamics, times=times, seeds=range(count), initial=START, observables=SHOWN))
    z = (runs.mean(axis=0) - numbers) / np.hypot(runs.std(axis=0, ddof=1) / math.sqrt(count), ERRORS)
    assert np.nanmax(np.abs(z)) < 4.0


@pytest.mark.rest
@pytest.mark.parametrize("dynamics", ["sgd", "sgd_chain"])
@pytest.mark.parametrize(
    "fields",
    [{"p": 1, "a": 1.0, "batch_size": n_b} for n_b in (1, 3, 40)]
    + [{"p": p, "a": 1.0, "batch_size": 1} for p in (2, 5)],
)
def test_of_one_unit_or_one_sample_they_are_normalised_steps(dynamics, fields):
    problem = dataclasses.replace(COMMITTEE, **fields)
    found, expected = (
        simulate(
            dataclasses.replace(problem, update=update),
            dynamics,
            times=[40 * problem.step_time()],
            seeds=3,
            observables=SHOWN,
            pair_by=["seed"],
        )
        for update in ("spectral", "normalised")
    )
    for name in SHOWN:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-12, atol=1e-13)


@pytest.mark.rest
@pytest.mark.parametrize("update", ["spectral", "newton_schulz"])
def test_without_momentum_it_is_a_step_of_the_gradient(update):
    """Of the weights; one sample has a kernel of its own. A training set of one sample is normalised."""
    kept = {"spectral": "spectral_momentum", "newton_schulz": "muon"}[update]
    for batch in ({"batch_size": 1}, {"batch_size": 4}, {"samples": 1, "batch_size": 1}):
        problem = dataclasses.replace(COMMITTEE, second_layer_rate=0.5, **batch)
        times = [20 * problem.step_time()]
        found, expected = (
            simulate(
                dataclasses.replace(problem, **one), "sgd", times=times, seeds=2, observables=SHOWN, pair_by=["seed"]
            )
            for one in ({"update": kept, "momentum": 0.0}, {"update": update})
        )
        for name in SHOWN:
            np.testing.assert_allclose(found[name], expected[name], rtol=1e-12, atol=1e-13)


@pytest.mark.rest
def test_a_replica_of_the_chain_does_not_depend_on_others():
    """To the bit: rotations go on in some lanes after they have ended in others."""
    problem = dataclasses.replace(COMMITTEE, p=5, a=1.0, batch_size=3, update="muon")
    few, many = (
        simulate(problem, "sgd_chain", times=[30 * problem.step_time()], seeds=range(count), observables=SHOWN)
        for count in (3, 50)
    )
    for name in SHOWN:
        np.testing.assert_array_equal(few[name], many[name][:3])


def map_by_formulas(eta, samples, dimension, count, *, ridge=0.0, decay=0.0, stretch=1.0):
    """M and Q after some steps of the map M ← (1−s) M + η H Ψ^M, H = K^(−1/2), and so on; K over Ω·stretch."""
    problem, a, P = COMMITTEE, np.array(COMMITTEE.a), np.eye(2)
    needed, Q, M, kept = problem_expectations(problem), START.Q, START.M, 1.0 - decay
    for _ in range(count):
        drifts = plain.drifts(needed, Q, M, P, a, np.ones(2), problem.Delta)
        wide = plain.drifts(needed, *(stretch * part for part in (Q, M, P)), a, np.ones(2), problem.Delta)
        # E[c_i λ_j] = Σ D_im Ω_mj, with the slopes D_ij = −(a_i a_j/2) E[σ'_i σ'_j] of students in closed form
        D = np.diag(np.zeros(2))
        D[0, 1] = D[1, 0] = -a.prod() / 2 * (2 / math.pi) / math.sqrt((1 + Q[0, 0]) * (1 + Q[1, 1]) - Q[0, 1] ** 2)
        inside = Q - M @ M.T
        G = np.zeros((2, 2))
        along = drifts.M @ M.T
        for i in range(2):  # G_ii = Ψ^GF_ii/2 gives D_ii
            D[i, i] = (drifts.GF[i, i] / 2 - along[i, i] - D[i, 1 - i] * inside[1 - i, i]) / inside[i, i]
        G = D @ inside + along
        products = D @ inside @ D.T + drifts.M @ drifts.M.T
        K = (1 - 1 / samples) * products + dimension / samples * wide.Var
        values, vectors = np.linalg.eigh(K)
        H = eta * vectors @ np.diag((values + ridge**2) ** -0.5) @ vectors.T
        M = kept * M + H @ drifts.M
        Q = kept**2 * Q + kept * (H @ G + G.T @ H) + H @ K @ H
    return np.array([*M.ravel(), Q[0, 0], Q[0, 1], Q[1, 1]])


MAPS = [
    (
        (0.3, 3000, 2000, 3, {}),
        [0.4878533, 0.4414582, -0.1694569, 0.1730433, 1.2700737, 0.6213385, 1.1532881],
    ),
    (
        (0.3, 3000, 2000, 3, {"ridge": 0.3}),
        [0.4679499, 0.3852437, -0.1251786, 0.2091128, 1.0477772, 0.3741106, 0.7603973],
    ),
    ((0.2, 1000, 2000, 4, {"decay": 0.05}), [0.3603652, NAN, NAN, NAN, 0.8021094, 0.3383937, 0.6972236]),
]


@pytest.mark.parametrize(("setting", "numbers"), MAPS)
def test_the_map_of_spectral_steps_has_the_numbers_of_an_independent_code(setting, numbers):
    """Its formulas have, to all digits; `overlap_map` has Ψ^Var at Ω (1 + 2/d), which changes them by 1·10⁻⁴."""
    eta, samples, d, count, more = setting
    found, known = map_by_formulas(eta, samples, d, count, **more), ~np.isnan(numbers)
    np.testing.assert_allclose(found[known], np.array(numbers)[known], atol=6e-8)
    root = math.sqrt(d)
    problem = dataclasses.replace(
        COMMITTEE,
        d=d,
        gamma=2 * eta * root,
        batch_size=samples,
        update="spectral",
        spectral_ridge=more.get("ridge", 0.0) / root,
        weight_decay=more.get("decay", 0.0) * root / eta,
    )
    ds = simulate(problem, "overlap_map", times=[count * problem.step_time()], initial=START, observables=SHOWN)
    expected = map_by_formulas(eta, samples, d, count, stretch=1 + 2 / d, **more)
    np.testing.assert_allclose(entries(ds)[0], expected, rtol=1e-8)
    assert np.abs(expected - found).max() < 2e-4


def slopes_of_forces(state, normals, eta):
    """dM/dτ and dQ/dτ at n_b = O(1), by means over draws (draws, n_b, 5) of the polar factors of forces; τ = ν/d."""
    M, (q, cross, other) = state[:4].reshape(2, 2), state[4:]
    omega = np.block([[np.eye(2), M.T], [M, np.array([[q, cross], [cross, other]])]])
    fields, a = normals[:, :, :4] @ np.linalg.cholesky(omega).T, np.array(COMMITTEE.a)
    lam_star, lam = fields[:, :, :2], fields[:, :, 2:]
    E = erf(lam_star / math.sqrt(2)).mean(axis=2) + math.sqrt(COMMITTEE.Delta) * normals[:, :, 4]
    E -= erf(lam / math.sqrt(2)) @ a / 2
    C = (a * np.exp(-(lam**2) / 2) * E[:, :, None]).swapaxes(1, 2)
    A = C @ C.swapaxes(1, 2)
    root = np.sqrt(A[:, 0, 0] * A[:, 1, 1] - A[:, 0, 1] ** 2)[:, None, None]
    # √A = (A + √|A| I)/√(tr A + 2√|A|) of 2 x 2 matrices
    polar = np.linalg.solve(A + root * np.eye(2), C * np.sqrt(np.trace(A, axis1=1, axis2=2)[:, None, None] + 2 * root))
    along = (polar @ lam).mean(axis=0)
    Q = eta * (along + along.T) + eta**2 * np.eye(2)
    return np.array([*(eta * (polar @ lam_star).mean(axis=0)).ravel(), Q[0, 0], Q[0, 1], Q[1, 1]])


@pytest.mark.rest
def test_the_chain_of_small_batches_follows_the_means_of_polar_factors():
    """d → ∞, n_b = 5, η = η0/√d: η0 = .5 to ν/d = 1, by means over 10⁵ draws, ±.002 as the numbers; chain: d = 600."""
    eta, n_b, known = 0.5, 5, [0.5021, 0.4804, -0.2163, 0.0879, 1.1653, 0.4322, 0.9573]
    normals = np.random.default_rng(1).standard_normal((100_000, n_b, 5))
    start = np.array([*START.M.ravel(), START.Q[0, 0], START.Q[0, 1], START.Q[1, 1]])
    state = start
    for _ in range(8):  # of the middle of a step, to 3·10⁻⁴
        middle = state + slopes_of_forces(state, normals, eta) / 16
        state = state + slopes_of_forces(middle, normals, eta) / 8
    np.testing.assert_allclose(state, known, atol=6e-3)
    problem = dataclasses.replace(COMMITTEE, d=600, gamma=2 * eta, batch_size=n_b, update="spectral")
    runs = entries(simulate(problem, "sgd_chain", times=[eta], seeds=range(256), initial=START, observables=SHOWN))
    z = (runs.mean(axis=0) - known) / np.hypot(runs.std(axis=0, ddof=1) / 16.0, 2e-3)
    assert np.abs(z).max() < 4.0


@pytest.mark.rest
def test_a_linear_unit_in_many_dimensions_learns_at_its_rate():
    """ṁ = η0 μ_n (P − m)/√(P − 2m + q + Δ), μ_n = √2 Γ((n+1)/2)/Γ(n/2); by the chain at d = 4000, |z| < 4."""
    eta, n_b, Delta = 0.5, 3, 0.2
    mu = math.sqrt(2) * math.exp(gammaln((n_b + 1) / 2) - gammaln(n_b / 2))

    def slope(_, state):
        m, q = state
        size = math.sqrt(1 - 2 * m + q + Delta)
        return [eta * mu * (1 - m) / size, 2 * eta * mu * (m - q) / size + eta**2]

    expected = solve_ivp(slope, (0, 1), [0.3, 1.0], rtol=1e-9).y[:, -1]
    problem = Problem(gamma=eta, p=1, k=1, d=4000, Delta=Delta, activation="linear", batch_size=n_b, update="spectral")
    start = Overlaps(np.eye(1), np.array([[0.3]]), np.eye(1))
    ds = simulate(problem, "sgd_chain", times=[eta], seeds=range(64), initial=start, observables=SHOWN)
    for name, value in zip(("overlap_M", "overlap_Q"), expected, strict=True):
        runs = ds[name].values.ravel()
        assert abs(runs.mean() - value) < 4.0 * runs.std(ddof=1) / 8.0


def matrices(rule, factor):
    """Return h(R Rᵀ) of a triangular factor R by the kernel, in each of 16 lanes."""
    R = np.repeat(factor[:, :, None], 16, axis=2)
    specialised(fill)(step_rule(rule), R)
    assert np.ptp(R, axis=2).max() == 0.0
    return R[:, :, 0]


def fill(rule, R):
    """Replace R (p, p, lanes) by h(R Rᵀ), in compiled code."""
    p, _, lanes = R.shape
    work = empty_spectrum(p, lanes)
    work.R[:] = R
    fill_spectral_matrix(rule, np.ones(lanes), work)
    R[:] = work.R


@pytest.mark.rest
@pytest.mark.parametrize("p", [1, 2, 3, 16])
def test_polar_factors_of_matrices_near_singular_ones(p):
    """Singular values to 10⁻⁵ of the largest: those of the factor are 1 to rounding over 10⁻⁵; a rank below p stays."""
    rng = np.random.default_rng(p)
    left, right = (np.linalg.qr(rng.standard_normal((p, p)))[0] for _ in range(2))
    for sizes, smallest in ((np.geomspace(1, 0.1, p), 0.1), (np.geomspace(3, 3e-5, p), 1e-5)):
        G = left @ np.diag(sizes) @ right
        R = np.linalg.qr(G.T)[1].T
        np.testing.assert_allclose(matrices(Rule("spectral", (0.0,)), R) @ G, left @ right, atol=1e-14 * p / smallest)
        ridge = left @ np.diag(sizes / np.hypot(sizes, 0.2)) @ right
        np.testing.assert_allclose(matrices(Rule("spectral", (0.2,)), R) @ G, ridge, atol=1e-13)
    if p > 1:
        sizes = np.where(np.arange(p) < p // 2, 1.0 + np.arange(p), 0.0)
        G = left @ np.diag(sizes) @ right
        R = np.linalg.qr(G.T)[1].T
        polar = left @ np.diag(1.0 * (sizes > 0)) @ right
        np.testing.assert_allclose(matrices(Rule("spectral", (0.0,)), R) @ G, polar, atol=1e-12)
    assert not matrices(Rule("spectral", (0.0,)), np.zeros((p, p))).any()


@pytest.mark.rest
def test_steps_of_full_rank_have_the_same_length_in_all_directions():
    """The quadratic term of the change of Q is η² I, exactly: it is all of Q after a step of η = 10⁹, to 10⁻⁹."""
    problem = dataclasses.replace(COMMITTEE, p=3, a=1.0, gamma=3e9 * math.sqrt(D), batch_size=8, update="spectral")
    for dynamics in ("sgd", "sgd_chain"):
        ds = simulate(problem, dynamics, times=[problem.step_time()], seeds=2, observables=SHOWN)
        for Q in ds.overlap_Q.values[:, 0]:
            np.testing.assert_allclose(Q / 1e18, np.eye(3), atol=1e-8)


REFUSED = [
    ("ode", {"update": "spectral", "batch_size": 2}, "batch_size.*1 with the update spectral in ode"),
    (
        "ode",
        {"update": "spectral", "spectral_ridge": 0.1, "k": 1},
        "update: no drifts of a ridge.*spectral_ridge: 0",
    ),
    (
        "ode",
        {"update": "newton_schulz", "k": 1},
        "update: no drifts of this update and loss.*spectral with the square loss",
    ),
    ("ode", {"update": "muon", "k": 1}, "update: no drifts of this update and loss"),
    ("overlap_map", {"update": "muon", "batch_size": 4}, "batch_size.*at least 16 with the update muon"),
    (
        "sgd",
        {"update": "muon", "spectral_ridge": 0.1},
        "muon does not act on spectral_ridge.*spectral, spectral_momentum",
    ),
]


@pytest.mark.parametrize(("dynamics", "fields", "said"), REFUSED)
def test_what_is_not_known_of_spectral_steps_is_refused_in_a_line(dynamics, fields, said):
    with pytest.raises(InputError, match=said):
        simulate(dataclasses.replace(COMMITTEE, **fields), dynamics, times=[0.1])


def test_the_ode_of_one_sample_is_that_of_normalised_steps():
    problem = dataclasses.replace(COMMITTEE, k=1, gamma=0.5)
    found, expected = (
        simulate(dataclasses.replace(problem, update=update), "ode", times=[0.2], observables=SHOWN)
        for update in ("spectral", "normalised")
    )
    for name in SHOWN:
        np.testing.assert_array_equal(found[name], expected[name])
