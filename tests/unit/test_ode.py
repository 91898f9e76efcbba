"""The ODE against closed forms, the laws it must keep, and its own tolerance."""

import numpy as np
import pytest

from sweeplib import Overlaps, Problem, simulate, theory
from sweeplib.dynamics import ode
from sweeplib.errors import InputError, SweeplibError
from sweeplib.maths.expectations import expectations
from sweeplib.simulation import Status

RETRIEVAL = Problem(gamma=0.05, p=1, k=1, d=3000, Delta=0.5, activation="square", spherical=True)
COMMITTEE = Problem(gamma=0.5, p=4, k=2, d=200, Delta=0.01, activation="erf", teacher_start="gaussian")
ERROR = 1e-8
"""What rtol = 10⁻¹⁰ leaves in an exit time, relative: errors of the escape's many small steps add up."""


def one_unit(m0: float) -> Overlaps:
    return Overlaps([[1.0]], [[m0]], [[1.0]])


@pytest.mark.parametrize("gamma", [0.01, 0.05, 1 / 12, 0.15])
@pytest.mark.parametrize("m0", [-0.02, 0.3])
def test_exit_times_are_exact_for_one_unit(gamma, m0):
    problem = Problem(gamma=gamma, p=1, k=1, d=3000, Delta=0.2, activation="square", spherical=True)
    result = simulate(problem, "ode", times=(0, 200), initial=one_unit(m0), thresholds=(0.01, 0.9))
    expected = theory.exact_exit_time(m0, gamma, 0.2, np.array([0.01, 0.9]))
    np.testing.assert_allclose(result.exit_time[0], np.where(np.isinf(expected), np.nan, expected), rtol=ERROR)
    np.testing.assert_allclose(result.exit_steps, result.exit_time * 3000 / gamma, rtol=1e-14)
    assert np.isnan(result.exit_time[0, 1]) == (gamma == 0.15)


def test_it_ends_at_the_last_exit_when_told_to():
    arguments = {"times": (0, 1, 200), "initial": one_unit(0.1), "thresholds": (0.01, 0.9)}
    whole = simulate(RETRIEVAL, "ode", **arguments)
    stopped = simulate(RETRIEVAL, "ode", **arguments, stop="exit")
    assert stopped.exit_time.identical(whole.exit_time)
    assert stopped.end_time.item() == stopped.exit_time.max() < whole.end_time.item() == 200
    assert np.isfinite(stopped.risk[0, :2]).all() and np.isnan(stopped.risk[0, 2])


def test_an_exit_after_the_last_record_is_censored():
    """Whatever the integrator's last step overshoots."""
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
    def final(rtol):
        options = {"rtol": rtol, "atol": rtol / 100}
        return simulate(COMMITTEE, "ode", times=(10.0,), seeds=(0,), options=options).risk.item()

    errors = [abs(final(rtol) - final(1e-12)) for rtol in (1e-4, 1e-6, 1e-8)]
    assert errors[0] > 10 * errors[1] > 100 * errors[2]
    assert errors[2] < 1e-8


@pytest.mark.parametrize("method", ["RK45", "Radau"])
def test_methods_agree(method):
    reference = simulate(COMMITTEE, "ode", times=(5.0,)).risk.item()
    assert simulate(COMMITTEE, "ode", times=(5.0,), options={"method": method}).risk.item() == pytest.approx(
        reference, rel=1e-5
    )


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


@pytest.mark.parametrize("spherical", [False, True])
def test_packing_is_undone_by_unpacking(spherical):
    rng = np.random.default_rng(0)
    W, W_star = rng.normal(size=(4, 9)), rng.normal(size=(2, 9))
    W /= np.linalg.norm(W, axis=1, keepdims=True) if spherical else 1.0
    Q, M = np.empty((4, 4)), np.empty((4, 2))
    state = ode.pack(W @ W.T, W @ W_star.T, spherical)
    ode.unpack(state, spherical, Q, M)
    assert state.size == (6 if spherical else 10) + 8
    np.testing.assert_allclose(Q, W @ W.T, atol=1e-15)
    np.testing.assert_allclose(M, W @ W_star.T, atol=1e-15)


def test_symmetric_committee_keeps_its_symmetry():
    """Equal units stay equal: the drifts have no preferred unit."""
    Q, M = np.full((3, 3), 0.4) + 0.6 * np.eye(3), np.full((3, 1), 0.2)
    problem = Problem(gamma=0.4, p=3, k=1, d=100, Delta=0.1, activation="square", spherical=True)
    result = simulate(problem, "ode", times=(2.0,), initial=Overlaps(Q, M, [[1.0]]), observables=("overlap_M", "risk"))
    np.testing.assert_allclose(result.overlap_M.values.ravel(), result.overlap_M.values.ravel()[0], rtol=1e-9)
    start = expectations("square").risks(Q[None], M[None], np.ones((1, 1, 1)), np.ones((1, 3)), np.ones((1, 1)))
    assert result.risk.item() < start[0]
