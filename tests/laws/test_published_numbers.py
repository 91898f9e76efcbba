"""The published and analytic numbers of `sweeplib/networks/reference` are reproduced."""

import numpy as np
import pytest

from sweeplib import Overlaps, Problem, simulate
from sweeplib.engine.files.published import reference
from sweeplib.networks import theory
from sweeplib.networks.problem import PARAMETERS
from tests.tiers import slow_but


def published(name):
    """Return the rows of a file, each with its problem and its other values."""
    rows = list(reference(name).rows())
    return [({key: row[key] for key in row if key in PARAMETERS}, row) for row in rows]


def problem_of(fields, **others):
    """Return the problem of a row; floats of the file become whole numbers or truth values where fields need them."""
    kinds = {"p": int, "k": int, "d": int, "spherical": bool}
    return Problem(**{key: kinds.get(key, lambda value: value)(value) for key, value in (fields | others).items()})


@pytest.mark.rest
def test_saad_solla_risk_of_an_erf_committee():
    """The setting of arXiv 2302.05882: every printed digit, at time t = ν/d as γ = p."""
    stream = np.random.RandomState(0)
    W = stream.randn(8, 2000)
    W *= np.sqrt(2000) / np.linalg.norm(W, axis=1, keepdims=True)
    W_star = stream.randn(4, 2000)
    rows = published("saad_solla_erf")
    problem = problem_of(rows[0][0], teacher_start="gaussian")
    result = simulate(
        problem,
        "ode",
        times=tuple(row["time"] for _, row in rows),
        initial=Overlaps.from_weights(W, W_star),
        options={"rtol": 1e-11, "atol": 1e-14},
    )
    assert [f"{risk:.10g}" for risk in result.risk.values[0]] == [f"{row['risk']:.10g}" for _, row in rows]


@pytest.mark.rest
def test_phase_retrieval_from_a_given_overlap():
    [(fields, row)] = published("phase_retrieval_ode")
    problem, m0, T = problem_of(fields), row["start_overlap"], row["threshold"]
    result = simulate(problem, "ode", times=(0, 50), initial=Overlaps([[1.0]], [[m0]], [[1.0]]), thresholds=(T,))
    assert result.exit_time.item() == pytest.approx(row["exit_time"], abs=5e-9)
    assert theory.exact_exit_time(m0, problem.gamma, problem.Delta, T) == pytest.approx(row["exit_time"], abs=5e-9)
    assert result.risk.values[0, -1] == pytest.approx(row["late_risk"], rel=1e-3)


@pytest.mark.rest
@pytest.mark.parametrize(("fields", "row"), published("phase_retrieval_floors"))
def test_floor_of_projected_sgd(fields, row):
    """Mean risk over 32 seeds and 40 late times, by the chain at d = 500; |z| < 4 beyond the O(1/d) of the ODE.

    Times 0.25 apart are nearly independent (the risk relaxes at a rate 2w ≈ 5); false alarms 6·10⁻⁵ a case.
    """
    problem, floor = problem_of(fields, d=500), row["risk_floor"]
    gamma, Delta = problem.gamma, problem.Delta
    times = tuple(6.0 + 0.25 * np.arange(40))
    late = simulate(problem, "sgd_chain", times=times, seeds=range(32), initial=Overlaps([[1.0]], [[0.9]], [[1.0]]))
    means = late.risk.mean("time").values
    assert abs(means.mean() - theory.asymptotic_risk(gamma, Delta)) < 4 * means.std() / np.sqrt(32) + floor * 10 / 500
    assert theory.asymptotic_risk(gamma, Delta) == pytest.approx(floor, abs=5e-5 * Delta / 0.1)


@pytest.mark.parametrize(
    ("fields", "row"), slow_but(published("phase_retrieval_exit_times"), published("phase_retrieval_exit_times")[0])
)
def test_mean_exit_time_of_sgd(fields, row):
    """512 random starts by the chain, against the published mean ± standard error: |z| < 4 (false alarms 6·10⁻⁵)."""
    thresholds = (row["threshold"],)
    run = simulate(problem_of(fields), "sgd_chain", times=(10.0,), seeds=range(512), thresholds=thresholds, stop="exit")
    exits = run.exit_time.values.ravel()
    assert np.isfinite(exits).all()
    error = np.hypot(exits.std() / np.sqrt(512), row["exit_time_mean_error"])
    assert abs(exits.mean() - row["exit_time_mean"]) / error < 4
