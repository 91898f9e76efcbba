"""The ODE compared to closed forms, conservation laws, and its own tolerance."""

import dataclasses

import numpy as np
import pytest
from scipy.integrate import DOP853, solve_ivp

from sweeplib import DYNAMICS, Overlaps, Problem, simulate
from sweeplib.engine.status import Status
from sweeplib.errors import InputError, SweeplibError
from sweeplib.networks import theory
from sweeplib.networks.kernels import overlap_flow
from sweeplib.networks.maths.expectations import expectations
from sweeplib.networks.simulation import Case, Recording
from sweeplib.networks.simulation.driver import replicas_of
from tests import plain

RETRIEVAL = Problem(gamma=0.05, p=1, k=1, d=3000, Delta=0.5, activation="square", spherical=True)
COMMITTEE = Problem(gamma=0.5, p=4, k=2, d=200, Delta=0.01, activation="erf", teacher_start="gaussian")
ERROR = 1e-8
"""What rtol = 10⁻¹⁰ leaves in an exit time, relative: errors of the escape's many small steps add up."""


def one_unit(m0: float) -> Overlaps:
    return Overlaps([[1.0]], [[m0]], [[1.0]])


@pytest.mark.rest
@pytest.mark.parametrize("gamma", [0.01, 0.05, 1 / 12, 0.15])
@pytest.mark.parametrize("m0", [-0.02, 0.3])
def test_exit_times_are_exact_for_one_unit(gamma, m0):
    problem = Problem(gamma=gamma, p=1, k=1, d=3000, Delta=0.2, activation="square", spherical=True)
    result = simulate(problem, "ode", times=(0, 200), initial=one_unit(m0), thresholds=(0.01, 0.9))
    expected = theory.exact_exit_time(m0, gamma, 0.2, np.array([0.01, 0.9]))
    np.testing.assert_allclose(result.exit_time[0], np.where(np.isinf(expected), np.nan, expected), rtol=ERROR)
    np.testing.assert_allclose(result.exit_steps, result.exit_time * 3000 / gamma, rtol=1e-14)
    assert np.isnan(result.exit_time[0, 1]) == (gamma == 0.15)


@pytest.mark.rest
def test_it_ends_at_the_last_exit_when_told_to():
    arguments = {"times": (0, 1, 200), "initial": one_unit(0.1), "thresholds": (0.01, 0.9)}
    whole = simulate(RETRIEVAL, "ode", **arguments)
    stopped = simulate(RETRIEVAL, "ode", **arguments, stop="exit")
    assert stopped.exit_time.identical(whole.exit_time)
    assert stopped.end_time.item() == stopped.exit_time.max() < whole.end_time.item() == 200
    assert np.isfinite(stopped.risk[0, :2]).all() and np.isnan(stopped.risk[0, 2])


def test_an_exit_after_the_last_record_is_censored():
    """The integrator's last step may end beyond the exit, which is later than the last record."""
    exit_time = float(theory.exact_exit_time(0.1, 0.05, 0.5, 0.3))
    for fraction, seen in ((0.999, False), (1.001, True)):
        result = simulate(RETRIEVAL, "ode", times=(fraction * exit_time,), initial=one_unit(0.1), thresholds=(0.3,))
        assert np.isfinite(result.exit_time.item()) == seen


def test_records_do_not_depend_on_other_records_or_replicas():
    few = simulate(COMMITTEE, "ode", times=(0, 1.0, 20.0), seeds=(3,), observables=("risk", "overlap_Q"))
    many = simulate(
        COMMITTEE, "ode", times=(0, 0.1, 1.0, 7.3, 20.0), seeds=(1, 2, 3), observables=("risk", "overlap_Q")
    )
    for name in ("risk", "overlap_Q"):
        assert (few[name].sel(seed=3).values == many[name].sel(seed=3, time=few.time).values).all()


@pytest.mark.rest
@pytest.mark.parametrize("spherical", [False, True])
@pytest.mark.parametrize("activation", ["erf", "square"])
def test_gradient_flow_descends_and_overlaps_stay_overlaps(activation, spherical):
    """For γ → 0 and Δ = 0 the risk never rises; Q stays symmetric and Ω ≥ 0; spheres stay spheres."""
    problem = Problem(gamma=1e-6, p=3, k=2, d=50, Delta=0.0, activation=activation, spherical=spherical)
    times = tuple(np.linspace(0, 10, 60))
    result = simulate(problem, "ode", times=times, seeds=(0, 1), observables=("risk", "overlap_Q", "overlap_M"))
    assert (np.diff(result.risk, axis=1) <= 1e-9).all()
    assert (result.risk[:, -1] < result.risk[:, 0]).all()
    for seed in range(2):
        Q, M = result.overlap_Q.values[seed, -1], result.overlap_M.values[seed, -1]
        assert np.linalg.eigvalsh(np.block([[Q, M], [M.T, np.eye(2)]])).min() > -1e-8
        assert (Q == Q.T).all()
        assert (not spherical) or (np.diagonal(Q) == 1.0).all()


def test_gradient_flow_of_one_square_unit_keeps_its_first_integral():
    """For γ → 0 and p = k = 1, log((q − m²)/m²) falls at the constant rate 8.

    Ψ^M = m (6 − 6q) and Ψ^GF = 4q(1 − q) + 8(m² − q²) give
    d(q − m²)/dt = (q − m²)(4 − 12q) and d(m²)/dt = m²(12 − 12q).
    """
    problem = Problem(gamma=1e-12, p=1, k=1, d=50, Delta=0.0, activation="square")
    start = Overlaps([[0.7]], [[0.2]], [[1.0]])
    times = np.linspace(0, 1, 9)
    result = simulate(problem, "ode", times=tuple(times), initial=start, observables=("overlap_Q", "overlap_M"))
    q, m = result.overlap_Q.values.ravel(), result.overlap_M.values.ravel()
    integral = np.log(q - m**2) - 2 * np.log(m) + 8 * times
    np.testing.assert_allclose(integral, integral[0], atol=1e-7)


def test_error_falls_with_the_tolerance():
    def overlaps(rtol):
        options = {"rtol": rtol, "atol": rtol / 100}
        times = (3.0, 10.0, 30.0)
        result = simulate(COMMITTEE, "ode", times=times, observables=("overlap_Q", "overlap_M"), options=options)
        return np.concatenate([result.overlap_Q.values.ravel(), result.overlap_M.values.ravel()])

    exact = overlaps(1e-12)
    errors = [abs(overlaps(rtol) - exact).max() for rtol in (1e-4, 1e-7, 1e-10)]
    assert errors[0] > 100 * errors[1] > 1e4 * errors[2]
    assert errors[2] < 1e-9


def plain_slope(problem, P):
    """Return the right-hand side of plain students by NumPy alone, on the full state (Q, M)."""
    p, k, pair = problem.p, problem.k, expectations(problem.activation, problem.teacher)
    a, a_star = np.broadcast_to(problem.a, p) * 1.0, np.broadcast_to(problem.a_star, k) * 1.0

    def slope(_, state):
        Q, M = state[: p * p].reshape(p, p), state[p * p :].reshape(p, k)
        drift_M, drift_Q, drift_Var, _ = plain.drifts(pair, Q, M, P, a, a_star, problem.Delta)
        return np.concatenate([(drift_Q + problem.gamma / p * drift_Var).ravel(), drift_M.ravel()])

    return slope


@pytest.mark.rest
@pytest.mark.parametrize("method", ["DOP853", "Radau"])
def test_it_agrees_with_scipys_integrators(method):
    rng = np.random.default_rng(4)
    start = Overlaps.from_weights(rng.normal(size=(2, 40)), rng.normal(size=(2, 40)))
    problem = Problem(gamma=0.5, p=2, k=2, d=40, Delta=0.01, activation="erf", teacher_start="gaussian")
    ours = simulate(problem, "ode", times=(2.0, 5.0), initial=start, observables=("overlap_Q", "overlap_M"))
    state = np.concatenate([start.Q.ravel(), start.M.ravel()])
    theirs = solve_ivp(
        plain_slope(problem, start.P), (0, 5), state, method=method, t_eval=(2.0, 5.0), rtol=1e-10, atol=1e-12
    )
    np.testing.assert_allclose(ours.overlap_Q.values[0].reshape(2, 4), theirs.y[:4].T, rtol=2e-8)
    np.testing.assert_allclose(ours.overlap_M.values[0].reshape(2, 4), theirs.y[4:].T, rtol=2e-8)


def test_it_takes_the_steps_of_scipys_dop853():
    """Same coefficients, same step control: times and states at the ends of the steps agree up to rounding."""
    start = Overlaps([[0.9]], [[0.2]], [[1.0]])
    problem = Problem(gamma=0.05, p=1, k=1, d=40, Delta=0.1, activation="square")
    theirs = DOP853(plain_slope(problem, start.P), 0.0, np.array([0.9, 0.2]), 100.0, rtol=1e-7, atol=1e-10)
    case = Case(problem, "ode", 0, Recording((2.0,)), options=(("rtol", 1e-6), ("atol", 1e-9)))
    ours = DYNAMICS["ode"](replicas_of([case], start), case.numerical_options())
    ours.advance(0)
    steps = 0
    while theirs.t < 2.0:
        theirs.step()
        steps += 1
    followed = ours._solution._solutions
    assert case.numerical_options().max_steps - followed.budget[0] == steps > 3
    # The length of a step follows from an error of 1e-7 of the state, which rounding changes by some 1e-9 of itself.
    assert followed.time[0] == pytest.approx(theirs.t, rel=1e-8)
    np.testing.assert_allclose(followed.state[0], theirs.y, rtol=1e-10)


@pytest.mark.filterwarnings("error")
def test_blow_up_is_a_divergence_with_its_time():
    """q̇ = 4(1−q)q + 8(m² − q²) + γ Ψ^Var grows as 60 γ q³ for a large start: it blows up at t ≈ 1/(120 γ q₀²)."""
    problem = Problem(gamma=2.0, p=1, k=1, d=300, Delta=0.0, activation="square")
    start = Overlaps([[30.0]], [[0.1]], [[1.0]])
    result = simulate(problem, "ode", times=(0, 1.0), initial=start, thresholds=(0.5,), stop="exit")
    assert result.status.item() == Status.diverged
    assert result.end_time.item() == pytest.approx(1 / (120 * 2 * 30**2), rel=0.1)
    assert np.isnan(result.exit_time.item()) and np.isfinite(result.risk[0, 0])


def test_too_many_steps_are_an_error():
    with pytest.raises(SweeplibError, match="max_steps"):
        simulate(COMMITTEE, "ode", times=(100.0,), options={"max_steps": 3})


def test_unknown_options_are_refused():
    with pytest.raises(InputError):
        simulate(COMMITTEE, "ode", times=(1.0,), options={"tolerance": 1e-3})


@pytest.mark.parametrize("trained", [False, True])
@pytest.mark.parametrize("spherical", [False, True])
def test_packing_is_undone_by_unpacking(spherical, trained):
    rng = np.random.default_rng(0)
    W, W_star = rng.normal(size=(4, 9)), rng.normal(size=(2, 9))
    W /= np.linalg.norm(W, axis=1, keepdims=True) if spherical else 1.0
    Q, M, a, layer = np.empty((4, 4)), np.empty((4, 2)), np.zeros(4), rng.normal(size=(1, 4))
    (state,) = overlap_flow.pack((W @ W.T)[None], (W @ W_star.T)[None], layer, spherical, trained)
    overlap_flow.unpack(state, spherical, trained, Q, M, a)
    assert state.size == (6 if spherical else 10) + 8 + (4 if trained else 0)
    np.testing.assert_allclose(Q, W @ W.T, atol=1e-15)
    np.testing.assert_allclose(M, W @ W_star.T, atol=1e-15)
    assert (a == (layer[0] if trained else 0.0)).all()
    for found, expected in zip(
        overlap_flow.overlaps_of(state[None], 4, 2, spherical), (Q, M, a[: 4 * trained]), strict=True
    ):
        np.testing.assert_array_equal(found[0], expected)


@pytest.mark.rest
def test_a_trained_second_layer_descends_too():
    """Gradient flow in both layers: the risk never rises, and ends lower than with a frozen second layer."""
    layers = {"a": (0.3, -0.2), "a_star": 1.5}
    frozen = Problem(gamma=1e-6, p=2, k=1, d=50, Delta=0.0, activation="erf", **layers)
    trained = dataclasses.replace(frozen, second_layer_rate=2.0)
    times = tuple(np.linspace(0, 20, 100))
    runs = [
        simulate(problem, "ode", times=times, observables=("risk", "second_layer")) for problem in (frozen, trained)
    ]
    assert (np.diff(runs[1].risk) <= 1e-12).all()
    assert runs[1].risk.values[0, -1] < 0.5 * runs[0].risk.values[0, -1]
    assert (runs[0].second_layer.values == [0.3, -0.2]).all()
    assert np.ptp(runs[1].second_layer.values[0], axis=0).min() > 0.1


def test_symmetric_committee_keeps_its_symmetry():
    """Equal units stay equal: the drifts treat all units alike."""
    Q, M = np.full((3, 3), 0.4) + 0.6 * np.eye(3), np.full((3, 1), 0.2)
    problem = Problem(gamma=0.4, p=3, k=1, d=100, Delta=0.1, activation="square", spherical=True)
    result = simulate(problem, "ode", times=(2.0,), initial=Overlaps(Q, M, [[1.0]]), observables=("overlap_M", "risk"))
    np.testing.assert_allclose(result.overlap_M.values.ravel(), result.overlap_M.values.ravel()[0], rtol=1e-9)
    start = expectations("square").risks(Q[None], M[None], np.ones((1, 1, 1)), np.ones((1, 3)), np.ones((1, 1)))
    assert result.risk.item() < start[0]


def test_gradient_flow_is_the_limit_of_small_learning_rates():
    """Its difference to the ODE is linear in γ/p."""
    problems = [dataclasses.replace(COMMITTEE, gamma=gamma) for gamma in (0.02, 0.01)]
    flows = [simulate(problem, "gradient_flow", times=(3.0,)).risk.item() for problem in problems]
    odes = [simulate(problem, "ode", times=(3.0,)).risk.item() for problem in problems]
    assert flows[0] == pytest.approx(flows[1], rel=1e-12)
    assert (odes[0] - flows[0]) / (odes[1] - flows[1]) == pytest.approx(2.0, rel=0.02)
