"""The published and analytic numbers that must come out."""

import numpy as np
import pytest

from sweeplib import Overlaps, Problem, simulate, theory


def test_saad_solla_risk_of_an_erf_committee():
    """arXiv 2302.05882's setting; every printed digit, at time t = ν/d as γ = p."""
    stream = np.random.RandomState(0)
    W = stream.randn(8, 2000)
    W *= np.sqrt(2000) / np.linalg.norm(W, axis=1, keepdims=True)
    W_star = stream.randn(4, 2000)
    problem = Problem(gamma=8.0, p=8, k=4, d=2000, Delta=1e-3, activation="erf", teacher_start="gaussian")
    result = simulate(
        problem,
        "ode",
        times=(0, 1, 10, 100, 1000),
        initial=Overlaps.from_weights(W, W_star),
        options={"rtol": 1e-11, "atol": 1e-14},
    )
    printed = ["0.06121529258", "0.03747876738", "0.003608476193", "0.002854262444", "0.0002507295979"]
    assert [f"{risk:.10g}" for risk in result.risk.values[0]] == printed


def test_phase_retrieval_from_a_given_overlap():
    problem = Problem(gamma=0.1, p=1, k=1, d=3000, Delta=1e-4, activation="square", spherical=True)
    start = Overlaps([[1.0]], [[-0.018478679503644423]], [[1.0]])
    result = simulate(problem, "ode", times=(0, 50), initial=start, thresholds=(0.01,))
    assert result.exit_time.item() == pytest.approx(1.06888883, abs=5e-9)
    assert theory.exact_exit_time(-0.018478679503644423, 0.1, 1e-4, 0.01) == pytest.approx(1.06888883, abs=5e-9)
    assert result.risk.values[0, -1] == pytest.approx(2.5e-5, rel=1e-3)


@pytest.mark.parametrize(("Delta", "floor"), [(0.1, 0.00714), (1.0, 0.0714)])
def test_floor_of_projected_sgd(Delta, floor):
    """Mean risk over 32 seeds and 40 late times, by the chain at d = 500; |z| < 4 beyond the O(1/d) of the ODE.

    Times 0.25 apart are nearly independent (the risk relaxes at a rate 2w ≈ 5); false alarms 6·10⁻⁵ a case.
    """
    problem = Problem(gamma=0.05, p=1, k=1, d=500, Delta=Delta, activation="square", spherical=True)
    times = tuple(6.0 + 0.25 * np.arange(40))
    late = simulate(problem, "sgd_chain", times=times, seeds=range(32), initial=Overlaps([[1.0]], [[0.9]], [[1.0]]))
    means = late.risk.mean("time").values
    assert abs(means.mean() - theory.asymptotic_risk(0.05, Delta)) < 4 * means.std() / np.sqrt(32) + floor * 10 / 500
    assert theory.asymptotic_risk(0.05, Delta) == pytest.approx(floor, abs=5e-5 * Delta / 0.1)


@pytest.mark.parametrize(
    ("gamma", "p", "Delta", "mean", "error"),
    [(1 / 12, 1, 0.0, 1.021, 0.022), (0.05, 1, 0.5, 0.787, 0.018), (0.4, 4, 0.0, 0.424, 0.008)],
)
def test_mean_exit_time_of_sgd(gamma, p, Delta, mean, error):
    """512 random starts by the chain, against the published mean ± standard error: |z| < 4 (false alarms 6·10⁻⁵)."""
    problem = Problem(gamma=gamma, p=p, k=1, d=3000, Delta=Delta, activation="square", spherical=True)
    run = simulate(problem, "sgd_chain", times=(10.0,), seeds=range(512), thresholds=(0.01,), stop="exit")
    exits = run.exit_time.values.ravel()
    assert np.isfinite(exits).all()
    assert abs(exits.mean() - mean) / np.hypot(exits.std() / np.sqrt(512), error) < 4
