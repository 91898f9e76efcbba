"""Noise of labels with heavy tails, or outliers: numbers of an independent code, SciPy, NumPy, laws, refusals."""

import dataclasses
import math

import numpy as np
import pytest
from scipy import integrate, stats

from sweeplib import DYNAMICS, InputError, Overlaps, Problem, simulate
from sweeplib.networks.kernels.label_noise import variances
from sweeplib.networks.simulation import Case, Recording
from tests.numpy_sgd import takes_the_steps_of_numpy
from tests.tiers import slow_among

COMMITTEE = Problem(gamma=1.0, p=2, k=2, d=30, Delta=0.5, activation="erf", a=(1.0, -0.7))
START = Overlaps(np.array([[1.0, 0.2], [0.2, 0.8]]), np.array([[0.3, 0.1], [0.0, 0.4]]), np.eye(2))
LINEAR = Problem(gamma=1.0, p=1, k=1, d=800, Delta=0.25, activation="linear", loss="huber", huber_delta=0.3)
ONE = Overlaps(np.eye(1), np.array([[0.3]]), np.eye(1))
SHOWN = ("overlap_M", "overlap_Q")
TAILS = {"t3": {"noise_tail": 1 / 3}, "t5": {"noise_tail": 0.2}, "outliers": {"outlier_share": 0.05}}


def means_by_scipy(r, Delta, h, law):
    """E g and E g² of the Huber force at a displacement r + √Δ z, for a frozen law of z, by integrals of SciPy."""
    s = math.sqrt(Delta)
    low, high = (-h - r) / s, (h - r) / s
    below, above = law.cdf(low), law.sf(high)
    inside = [integrate.quad(lambda z, n=n: (r + s * z) ** n * law.pdf(z), low, high, epsabs=1e-13)[0] for n in (1, 2)]
    return inside[0] + h * (above - below), inside[1] + h * h * (above + below)


def student(degrees):
    """Student's t of the variance 1."""
    return stats.t(degrees, scale=math.sqrt((degrees - 2) / degrees))


def test_the_means_of_the_huber_force_have_the_numbers_of_another_code():
    nodes = np.array(variances(0.2, 0.0, 10.0)).reshape(-1, 2)
    normal = [means_by_scipy(0.3, 0.5 * square, 0.3, stats.norm()) for _, square in nodes]
    np.testing.assert_allclose(nodes[:, 0] @ normal, [0.1121519723, 0.0694397996], atol=6e-11)


@pytest.mark.parametrize("degrees", [2.004, 2.02, 2.5, 3.0, 20.0, 1e5])
def test_means_over_scales_are_those_of_students_t(degrees):
    nodes = np.array(variances(1.0 / degrees, 0.0, 10.0)).reshape(-1, 2)
    assert nodes[:, 0].sum() == pytest.approx(1.0, abs=1e-14)
    # near ν = 2 a part of it is beyond s² = e^600
    assert nodes[:, 0] @ nodes[:, 1] == pytest.approx(1.0, abs=1e-10)
    for r, h in ((0.3, 0.3), (3.0, 0.05)):
        normal = [means_by_scipy(r, 0.5 * square, h, stats.norm()) for _, square in nodes]
        np.testing.assert_allclose(nodes[:, 0] @ normal, means_by_scipy(r, 0.5, h, student(degrees)), atol=2e-10)


KNOWN = {
    "t5": [0.42651213, 0.85668149, 0.6504601, 0.76637104],
    "t3": [0.4286028, 0.85359564, 0.65824975, 0.76296295],
    "outliers": [0.43181611, 0.84889707, 0.67140493, 0.75787482],
}
# of the numbers as they are known: beyond t5 they are not of all their digits
ATOL = {"t5": 1e-8, "t3": 3e-6, "outliers": 1e-7}


@pytest.mark.rest
@pytest.mark.parametrize("kind", slow_among(KNOWN, "t3"))
def test_the_ode_of_a_linear_unit_with_tails_has_known_numbers_and_those_of_scipy(kind):
    """M and Q at t = 1, 3 of ṁ = κ₁(P − m), q̇ = 2κ₁(m − q) + γκ₂, means over r ~ N(0, V); all digits by SciPy."""
    ds = simulate(dataclasses.replace(LINEAR, **TAILS[kind]), "ode", times=[1.0, 3.0], initial=ONE, observables=SHOWN)
    found = np.column_stack([ds[name].values.ravel() for name in SHOWN]).ravel()
    np.testing.assert_allclose(found, KNOWN[kind], atol=ATOL[kind])

    def means(m, q, square):
        """E g' and E g² given s²: the displacement is normal, with the variance of f* − f and that of the label."""
        spread = np.sqrt(1.0 - 2.0 * m + q + 0.25 * square)
        edge = 0.3 / spread
        inside = 2.0 * stats.norm.cdf(edge) - 1.0
        return np.array([inside, spread**2 * (inside - 2.0 * edge * stats.norm.pdf(edge)) + 0.09 * (1.0 - inside)])

    def over_scales(m, q):
        if kind == "outliers":
            return 0.95 * means(m, q, 1 / 5.95) + 0.05 * means(m, q, 100 / 5.95)
        law = stats.chi2(1.0 / TAILS[kind]["noise_tail"])
        pieces = (0.0, 1.0), (1.0, 4.0), (4.0, 10.0)
        x, weight = np.polynomial.legendre.leggauss(100)
        # in the root of χ² all functions are smooth at zero
        places = [((low + high) / 2 + (high - low) / 2 * x, (high - low) / 2 * weight) for low, high in pieces]
        root, weight = (np.concatenate(arrays) for arrays in zip(*places, strict=True))
        return means(m, q, (law.args[0] - 2.0) / root**2) @ (weight * 2.0 * root * law.pdf(root**2))

    def speed(_, state):
        (m, q), (first, second) = state, over_scales(*state)
        return [first * (1.0 - m), 2.0 * first * (m - q) + second]

    exact = integrate.solve_ivp(speed, (0.0, 3.0), [0.3, 1.0], "DOP853", [1.0, 3.0], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found, exact.y.T.ravel(), atol=5e-9)


def test_the_ode_of_the_square_loss_is_that_of_gaussian_noise():
    """To the bit; the mean loss too."""
    one, other = (
        simulate(problem, "ode", times=[1.0], initial=START, observables=("risk", "test_loss"))
        for problem in (COMMITTEE, dataclasses.replace(COMMITTEE, noise_tail=0.4, outlier_share=0.1))
    )
    for name in ("risk", "test_loss"):
        np.testing.assert_array_equal(one[name], other[name])


def test_the_mean_loss_is_that_of_scipy():
    """Of a unit without outputs, from f* = 0: E h_δ(√Δ z)."""
    problem = dataclasses.replace(LINEAR, noise_tail=1 / 3, a=0.0, a_star=0.0)
    found = simulate(problem, "ode", times=[0.0], initial=ONE, observables=("test_loss",)).test_loss.item()
    loss = lambda z: z * z / 2.0 if abs(z) < 0.3 else 0.3 * (abs(z) - 0.15)  # noqa: E731
    expected = 2.0 * sum(
        integrate.quad(lambda z: loss(0.5 * z) * student(3).pdf(z), *ends)[0] for ends in ((0, 0.6), (0.6, np.inf))
    )
    assert found == pytest.approx(expected, rel=1e-8)


MEANS = {
    "t5": ({"noise_tail": 0.2}, [0.3732, 0.2189, -0.0515, 0.3215, 1.0349, 0.2546, 0.7778]),
    "outliers": (
        {"outlier_share": 0.05, "loss": "huber", "huber_delta": 0.3},
        [math.nan, 0.1510, math.nan, math.nan, 0.9871, 0.2421, 0.7753],
    ),
}


@pytest.mark.rest
@pytest.mark.parametrize("kind", MEANS)
@pytest.mark.parametrize(("dynamics", "count"), slow_among([("sgd", 2000), ("sgd_chain", 10_000)], ("sgd", 2000)))
def test_means_with_tails_are_those_of_another_code(dynamics, count, kind):
    """At d = 30 after 40 steps: |z| < 4.5 for all means, with the errors of the numbers."""
    more, numbers = MEANS[kind]
    problem = dataclasses.replace(COMMITTEE, **more)
    times = [40 * problem.step_time()]
    ds = simulate(problem, dynamics, times=times, seeds=range(count), initial=START, observables=SHOWN)
    M, Q = (ds[name].values.reshape(count, -1) for name in SHOWN)
    runs = np.hstack([M, Q[:, [0, 1, 3]]])
    z = (runs.mean(axis=0) - numbers) / np.hypot(runs.std(axis=0, ddof=1) / math.sqrt(count), 3e-4)
    assert np.nanmax(np.abs(z)) < 4.5


def of_outliers(z):
    """The distribution of noise with 5 % of outliers, ten times as wide."""
    root = math.sqrt(0.95 + 0.05 * 100.0)
    return 0.95 * stats.norm.cdf(z * root) + 0.05 * stats.norm.cdf(z * root / 10.0)


LAWS = {"t3": (TAILS["t3"], student(3).cdf), "outliers": (TAILS["outliers"], of_outliers)}
STEPS = {
    "one sample": {},
    "a batch used twice": {"batch_size": 1, "repeats": 2},
    "a spectrum": {"data": "spectrum", "eigenvalues": (3.0, 0.5), "fractions": (1.0, 5.0)},
}


@pytest.mark.parametrize("dynamics", ["sgd", "sgd_chain"])
@pytest.mark.parametrize("steps", slow_among(STEPS, "a batch used twice", "a spectrum"))
@pytest.mark.parametrize("law", LAWS)
def test_a_first_step_has_the_law_of_the_noise(dynamics, steps, law):
    """A linear unit at rest moves by γ √Δ z x: Q/Δ ∝ z², M ∝ z λ*; p-values at 10⁻⁴, 24 of them: false alarms 2·10⁻³.

    A batch of one, used twice, moves by z (1 − (1 − γ)²): the second use sees what the first has left of the error.
    """
    more, cdf = LAWS[law]
    problem = Problem(gamma=0.5, p=1, k=1, d=2000, Delta=0.25, activation="linear", a_star=0.0, start_scale=1e-9)
    problem = dataclasses.replace(problem, **more, **STEPS[steps])
    time = problem.step_time() * problem.repeats
    ds = simulate(problem, dynamics, times=[time], seeds=range(1500), observables=("overlap_Q",))
    # ‖x‖² is 1 up to √(2 Σ λ_b² d_b)/d
    moved = 1.0 - (1.0 - problem.gamma) ** problem.repeats
    size = np.sqrt(ds.overlap_Q.values.ravel() * problem.d / problem.Delta) / moved
    squares = stats.kstest(size, lambda z: cdf(z) - cdf(-z))
    assert squares.pvalue > 1e-4


KINDS = {
    "t3": {**TAILS["t3"], "loss": "huber", "huber_delta": 0.3},
    "outliers, batches": {**TAILS["outliers"], "batch_size": 3},
    "both, clipped": {"noise_tail": 0.45, "outlier_share": 0.3, "update": "clipped", "clip_norm": 0.3},
    "training set": {**TAILS["t3"], "samples": 7, "batch_size": 7},
    "annealed, weight noise": {**TAILS["t5"], "noise_schedule": "exp(-t)", "temperature": 0.1},
}


@pytest.mark.parametrize("kind", KINDS)
def test_sgd_with_tails_takes_the_steps_of_numpy(kind):
    takes_the_steps_of_numpy(dataclasses.replace(COMMITTEE, **KINDS[kind]), 1e-9)


@pytest.mark.parametrize("field", ["noise_tail", "outlier_share"])
def test_tails_are_refused_where_they_are_not_known(field):
    """In one line, with the dynamics that take them, or why they mean nothing."""
    problem = dataclasses.replace(COMMITTEE, a=1.0, **{field: 0.2})
    for dynamics in set(DYNAMICS) - {"sgd", "sgd_chain", "ode", "training_flow"}:
        full = {"batch_size": 30, "samples": 30} if dynamics == "dmft" else {}
        with pytest.raises(InputError, match=f"does not act on {field}.* sgd, sgd_chain") as caught:
            Case(dataclasses.replace(problem, **full), dynamics, 0, Recording((0.5,))).check()
        assert "\n" not in str(caught.value)
    for name in ("classification_error", "refitted_risk"):
        with pytest.raises(InputError, match=r"known of Gaussian noise alone; got 0\.2; expected 0\.0, its default"):
            Case(problem, "ode", 0, Recording((0.5,), observables=(name,))).check()
    with pytest.raises(InputError, match=r"no outliers; got 3\.0; expected an `outlier_share` above zero beside it"):
        dataclasses.replace(COMMITTEE, outlier_scale=3.0)
