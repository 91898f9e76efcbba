"""Exits on other observables than the risk: found by kernels, and again in dense records of the observable."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from scipy import integrate
from scipy.stats import norm

from sweeplib import InputError, Problem, simulate
from sweeplib.analysis.kit.phase_retrieval import escape_theory_holds
from sweeplib.config import from_mapping
from sweeplib.networks.dynamics import DYNAMICS
from sweeplib.networks.observables import OBSERVABLES
from sweeplib.networks.simulation import Case, Recording
from sweeplib.networks.simulation.cases import shared_values
from tests.tiers import slow_but

PLAIN = Problem(gamma=1.0, p=3, k=2, d=40, Delta=0.1, activation="erf")
UNIT = Problem(gamma=2.0, p=1, k=1, d=30, Delta=0.25, activation="erf", labels="sign", loss="huber", a=0.5)
LINEAR = Problem(
    gamma=1.0, p=2, k=2, d=20, Delta=0.3, activation="linear", a_star=(1.0, -0.4), teacher_start="gaussian"
)
THRESHOLDS = np.array([0.02, 0.1, 0.3])
STEPS = 150
WITH_LEVELS = [name for name, kind in DYNAMICS.items() if kind.finds_levels(kind.Options())]
TRIED = {f"{name}, {on}": (name, on) for name in WITH_LEVELS for on in ("misalignment", "test_error")}


@pytest.mark.rest
@pytest.mark.parametrize("case", slow_but(TRIED, "sgd_chain, misalignment", "sgd, misalignment"))
def test_an_exit_is_the_first_step_at_which_the_recorded_value_is_low_enough(case: str) -> None:
    """Integrated solutions pass between two steps, by the same steps rounded up."""
    dynamics, on = TRIED[case]
    problem = replace(PLAIN, samples=400, batch_size=400) if dynamics == "training_flow" else PLAIN
    steps = np.arange(STEPS + 1) * PLAIN.step_time()
    asked = {"observables": [on], "thresholds": THRESHOLDS, "exit_on": on, "seeds": 6}
    run = simulate(problem, dynamics, times=steps, **asked)
    low = run[on].values[:, None] <= (1.0 - THRESHOLDS[:, None]) * run[on].values[:, None, :1]
    first = np.where(low.any(axis=2), low.argmax(axis=2), np.nan)
    np.testing.assert_array_equal(np.ceil(run.exit_steps.values - 1e-9), first)
    assert np.isfinite(first).mean() > 0.5
    risk = simulate(problem, dynamics, times=steps[-1:], **asked | {"exit_on": "risk"})
    assert (risk.exit_steps != run.exit_steps).any()


@pytest.mark.rest
@pytest.mark.parametrize("problem", [UNIT, pytest.param(LINEAR, marks=pytest.mark.slow)], ids=["erf", "linear"])
def test_exits_on_the_classification_error_by_angles_are_those_of_its_integrals(problem: Problem) -> None:
    """Kernels compare angles; the recorded error of noisy labels is an integral along lines over all fields."""
    steps = np.arange(STEPS + 1) * problem.step_time()
    asked = {"thresholds": THRESHOLDS, "exit_on": "classification_error", "seeds": 2}
    run = simulate(problem, "sgd_chain", times=steps, observables=["classification_error"], **asked)
    value = run.classification_error.values
    low = value[:, None] <= (1.0 - THRESHOLDS[:, None]) * value[:, None, :1]
    np.testing.assert_array_equal(run.exit_steps, np.where(low.any(axis=2), low.argmax(axis=2), np.nan))
    assert np.isfinite(run.exit_steps).sum() >= 4


@pytest.mark.parametrize("dynamics", ["sgd_chain", pytest.param("sgd", marks=pytest.mark.slow)])
def test_without_noise_the_classification_error_is_the_angle(dynamics: str) -> None:
    """Where its integral along lines has an error of .015: two lines f = 0 and f* = 0 that cross."""
    problem = replace(UNIT, Delta=0.0)
    steps, seen = np.arange(STEPS + 1) * problem.step_time(), ["overlap_Q", "overlap_M"]
    asked = {"thresholds": THRESHOLDS, "exit_on": "classification_error", "seeds": 4}
    run = simulate(problem, dynamics, times=steps, observables=seen, **asked)
    angle = np.arccos((run.overlap_M[..., 0, 0] / np.sqrt(run.overlap_Q[..., 0, 0])).values)
    low = angle[:, None] <= (1.0 - THRESHOLDS[:, None]) * angle[:, None, :1]
    np.testing.assert_array_equal(run.exit_steps, np.where(low.any(axis=2), low.argmax(axis=2), np.nan))
    assert np.isfinite(run.exit_steps).sum() >= 8


@pytest.mark.rest
def test_the_angle_of_a_threshold_has_its_part_of_the_error() -> None:
    """By adaptive integration over the field of the labels; beyond the least error there is none."""
    level = OBSERVABLES["classification_error"].level
    assert level is not None
    problem, P, a_star = replace(UNIT, Delta=0.04), np.array([[2.0]]), np.array([-0.7])
    target = level(problem).target

    def error(angle: float) -> float:
        def mean(z: float) -> float:
            right = norm.cdf(0.7 * OF_ERF(np.sqrt(2.0) * z) / 0.2)
            positive = norm.cdf(z / np.tan(np.pi * angle))
            return float(norm.pdf(z) * (right * (1.0 - positive) + (1.0 - right) * positive))

        return float(integrate.quad(mean, -9.0, 9.0, points=[0.0], epsabs=1e-12, limit=200)[0])

    for start, part in ((0.5, 0.9), (0.45, 0.5), (0.3, 0.7)):
        assert error(target(start, part, P, a_star)) == pytest.approx(part * error(start), rel=1e-5)
    assert target(0.4, 0.01, P, a_star) == -np.inf


def test_the_angle_of_a_threshold_is_that_of_linear_fields_however_small_the_noise() -> None:
    """f* + √Δ z is a Gaussian field: the error at the angle u is arccos(cos πu/√(1 + Δ))/π."""
    for Delta, part in ((0.3, 0.5), (1e-6, 1e-2), (1e-8, 1e-3)):
        level = OBSERVABLES["classification_error"].level
        assert level is not None
        found = level(replace(UNIT, activation="linear", Delta=Delta)).target(0.5, part, np.eye(1), np.ones(1))
        assert found == pytest.approx(np.arccos(np.cos(0.5 * np.pi * part) * np.sqrt(1.0 + Delta)) / np.pi, rel=1e-7)


OF_ERF = np.vectorize(lambda x: 2.0 * norm.cdf(x) - 1.0)


def test_noise_only_lowers_the_targets_of_a_test_error() -> None:
    """(1 − T)(R(0) + Δ/2) − Δ/2, to the bit the target of the risk without noise."""
    common = {"times": [2.0], "thresholds": [0.1], "seeds": 4, "root_seed": 2}
    exits = [
        simulate(replace(PLAIN, Delta=Delta), "sgd_chain", exit_on=on, **common).exit_steps.values
        for Delta, on in (
            (0.0, "risk"),
            (0.0, "test_error"),
            (0.0, "test_loss"),
            (0.1, "test_error"),
            (0.1, "test_loss"),
        )
    ]
    np.testing.assert_array_equal(exits[0], exits[1])
    np.testing.assert_array_equal(exits[0], exits[2])
    np.testing.assert_array_equal(exits[3], exits[4])
    assert (exits[3] > exits[1]).all()


def test_runs_stop_at_their_exit_on_it_and_each_keeps_its_own_noise() -> None:
    """Cases of one batch that differ in Δ have their own targets."""
    common = {"times": np.linspace(0.0, 8.0, 9), "exit_on": "test_error", "thresholds": [0.05], "stop": "exit"}
    together = simulate(PLAIN, "sgd_chain", seeds=3, **common)
    np.testing.assert_array_equal(together.end_steps, together.exit_steps[:, 0])
    assert together.attrs["exit_on"] == "test_error"
    assert together.exit_steps.long_name == "exit time in steps (test error)"
    sweep = from_mapping(
        {
            "name": "levels",
            "problem": {"p": 3, "k": 2, "d": 40, "gamma": 1.0, "activation": "erf"},
            "grid": {"Delta": [0.1, 0.4]},
            "dynamics": ["sgd_chain"],
            "seeds": 3,
            "times": [0, 8],
            "thresholds": [0.05],
            "exit_on": "test_error",
            "figures": [],
        }
    )
    levels = {case.problem.Delta: OBSERVABLES["test_error"].level(case.problem) for _, case in sweep.cases("sgd_chain")}
    P, a_star = np.eye(2), np.ones(2)
    assert {Delta: level.target(1.0, 0.5, P, a_star) for Delta, level in levels.items()} == pytest.approx(
        {0.1: 0.475, 0.4: 0.4}
    )


@pytest.mark.rest
@pytest.mark.parametrize("on", ["misalignment", "classification_error", "test_error"])
def test_exits_of_the_chain_have_those_of_the_ode_as_their_mean(on: str) -> None:
    """From one overlap, at d = 3000, where the ODE's error, of the order 1/d, is a tenth of the standard error."""
    problem = Problem(gamma=0.5, p=1, k=1, d=3000, Delta=0.2, activation="erf", m0=0.2, spherical=True)
    common = {"times": [8.0], "thresholds": [0.1, 0.4], "exit_on": on}
    [expected] = simulate(problem, "ode", **common).exit_time.values
    found = simulate(problem, "sgd_chain", seeds=64, **common).exit_time.values
    error = found.std(axis=0, ddof=1) / 8.0
    assert (np.abs(found.mean(axis=0) - expected) < 4.0 * error).all()
    assert (error < 0.02 * expected).all()


def refused(problem: Problem, dynamics: str, on: str, **options: object) -> str:
    with pytest.raises(InputError) as error:
        simulate(problem, dynamics, times=[1.0], thresholds=[0.1], exit_on=on, options=options or None)
    return str(error.value)


def test_what_has_no_exit_on_it_is_refused_in_a_line() -> None:
    said = refused(PLAIN, "ode", "misalignment", finite_d=True)
    assert said.startswith("exit_on: ode finds exits of the risk alone; got 'misalignment'; expected risk; or")
    assert "mean_field finds exits of the risk alone" in refused(PLAIN, "mean_field", "test_error")
    assert "no closed form of the classification_error" in refused(PLAIN, "sgd", "classification_error")
    assert "no closed form of the test_loss" in refused(replace(PLAIN, loss="huber"), "sgd_chain", "test_loss")
    spectrum = replace(PLAIN, Delta=0.0, data="two_level", level_ratio=3.0, level_fraction=0.5)
    assert "no misalignment to exit on" in refused(spectrum, "sgd_chain", "misalignment")
    assert "no observable to exit on; got 'student_norm'" in refused(PLAIN, "sgd", "student_norm")
    with pytest.raises(InputError, match="exit_on: no exits; got 'misalignment'; expected thresholds beside it"):
        Recording((1.0,), exit_on="misalignment")


def test_recordings_that_exit_on_the_risk_have_the_identities_of_older_ones() -> None:
    plain, other = Recording((1.0,), (0.1,)), Recording((1.0,), (0.1,), exit_on="test_error")
    values = [shared_values("ode", recording, (), 0, None)[0]["recording"] for recording in (plain, other)]
    assert "exit_on" not in values[0]
    assert values[1] == values[0] | {"exit_on": "test_error"}
    cases = [Case(PLAIN, "ode", 0, recording) for recording in (plain, other)]
    assert cases[0].identity() != cases[1].identity()
    assert plain.covers(plain, "sgd_chain")
    assert not other.covers(plain, "sgd_chain")


def test_identities_have_what_the_observable_of_the_exits_reads() -> None:
    """Gradient flow does not read Δ; its exits on the test error do."""
    quiet = replace(PLAIN, Delta=0.3)
    for on, same in (("risk", True), ("test_error", False)):
        recording = Recording((1.0,), (0.1,), exit_on=on)
        ids = {Case(problem, "gradient_flow", 0, recording).identity() for problem in (PLAIN, quiet)}
        assert (len(ids) == 1) is same


@pytest.mark.rest
def test_no_theory_of_the_risk_stands_beside_exits_on_another_observable() -> None:
    problem = Problem(gamma=0.1, p=1, k=1, d=50, Delta=0.0, activation="square", spherical=True)
    for on, holds in (("risk", True), ("misalignment", False)):
        run = simulate(problem, "sgd_chain", times=[0.5], seeds=4, thresholds=[0.1], exit_on=on)
        assert bool(escape_theory_holds(run)) is holds
        exits: xr.Dataset = run.expand_dims(dynamics=["sgd_chain"]).sweep.exit_times()
        ending = "" if holds else " (misalignment)"
        assert exits.exit_steps_mean.long_name.endswith(f"mean exit steps{ending}")
