"""The nonlinear dynamics: its limits, its units, and how near to it students of finite width stay."""

import numpy as np
import pytest

from sweeplib import InputError, Problem, simulate

TIMES = np.geomspace(0.05, 2.0, 12)
FIELDS = {"k": 1, "d": 5, "Delta": 0.0, "activation": "square", "start": "gaussian"}


def runs(dynamics, p, *, gamma=1.0, seeds=range(1), particles=4096, **fields):
    problem = Problem(**(FIELDS | {"p": p, "gamma": gamma} | fields))
    options = {"particles": particles} if dynamics == "nonlinear_dynamics" else None
    asked = {"times": TIMES, "seeds": seeds, "observables": ["risk", "overlap_M", "student_norm"]}
    return simulate(problem, dynamics, options=options, **asked)


@pytest.mark.parametrize(
    "fields",
    [{}, {"spherical": True, "start": "sphere"}, {"second_layer_rate": 0.5}, {"schedule": "1/(1 + t)"}],
    ids=str,
)
def test_with_no_other_particles_it_is_the_mean_field(fields):
    alone, mean_field = runs("nonlinear_dynamics", 6, particles=6, **fields), runs("mean_field", 6, **fields)
    for name in ("risk", "overlap_M", "student_norm"):
        np.testing.assert_array_equal(alone[name], mean_field[name])


def test_units_start_from_the_weights_of_sgd_and_do_not_feel_each_other():
    """With 4 or 40 units of the same law, the measure has the same risk up to N^(−1/2), and a student has not."""
    few, many, student = (
        runs(*which, seeds=range(4))
        for which in (("nonlinear_dynamics", 4), ("nonlinear_dynamics", 40), ("mean_field", 4))
    )
    assert few.overlap_M.shape == (4, len(TIMES), 4, 1)
    np.testing.assert_allclose(few.risk, many.risk, rtol=0.15)
    assert (abs(student.risk[:, 0] / few.risk[:, 0] - 1.0)).max() > 0.5
    start = simulate(Problem(**FIELDS, p=4, gamma=1.0), "sgd", times=[0.0], seeds=range(4), observables=["overlap_M"])
    at_first = simulate(
        Problem(**FIELDS, p=4, gamma=1.0), "nonlinear_dynamics", times=[0.0], seeds=range(4), observables=["overlap_M"]
    )
    np.testing.assert_allclose(at_first.overlap_M.values, start.overlap_M.values, rtol=1e-12, atol=1e-14)


def test_the_noise_is_that_of_the_step_of_sgd():
    """γ/p of the units, not of the particles: with the noise of the labels alone, dq/dt has γ Δ E[σ'²]/p more."""
    problem = Problem(**FIELDS | {"Delta": 4.0, "p": 2, "gamma": 0.01})
    asked = {"times": [1e-6], "observables": ["student_norm"]}
    silent, noisy = (
        simulate(problem, "nonlinear_dynamics", options={"particles": 64, "noise": noise}, **asked).student_norm.item()
        for noise in ("none", "labels")
    )
    assert noisy - silent == pytest.approx(1e-6 * 0.01 / 2 * 4.0 * 4.0 * noisy, rel=1e-3)


def test_norms_that_go_to_zero_need_few_steps():
    """Drifts of units within the teacher's span vary from node to node; steps were 10⁻⁵ long from t = 16.05 on."""
    problem = Problem(gamma=0.1, p=4, k=1, d=6, Delta=0.1, activation="relu")
    run = simulate(problem, "nonlinear_dynamics", times=[17.0], options={"particles": 64, "max_steps": 100})
    assert run.status == 1 and 0.0 < run.risk_error.item() < 0.003 * run.risk.item()


@pytest.mark.long
@pytest.mark.parametrize("dynamics", ["weight_flow", "sgd"])
def test_propagation_of_chaos(dynamics):
    """The mean over units and starts of sup_t |m_i − m̄_i| falls as p^(−1/2); SGD makes steps of 2·10⁻⁵ in time."""
    widths, distances = (16, 64, 256), []
    for p in widths:
        fields = {"gamma": 1e-4 * p, "seeds": range(16)}
        units, others = (runs(name, p, **fields) for name in (dynamics, "nonlinear_dynamics"))
        distances.append(abs(units.overlap_M.values - others.overlap_M.values).max(axis=1).mean(axis=(1, 2)))
    mean = np.mean(distances, axis=1)
    error = np.std(distances, axis=1) / np.sqrt(15) / mean
    slope = np.log(mean[2] / mean[0]) / np.log(16.0)
    assert slope == pytest.approx(-0.5, abs=4.0 * np.hypot(error[0], error[2]) / np.log(16.0))
    assert np.hypot(error[0], error[2]) < 0.25


@pytest.mark.parametrize(
    ("fields", "particles", "said"),
    [
        ({"p": 8}, 4, "particles: too few particles; got 4; expected at least the p = 8 units"),
        ({"p": 2, "a": (1.0, 2.0)}, 64, "a: no law for the other particles"),
        ({"p": 2, "d": 2}, 64, "no mean field in so few dimensions"),
    ],
)
def test_what_has_no_measure_is_refused(fields, particles, said):
    with pytest.raises(InputError) as caught:
        simulate(
            Problem(**FIELDS | {"gamma": 1.0} | fields),
            "nonlinear_dynamics",
            times=[0.0],
            options={"particles": particles},
        )
    assert said in str(caught.value)


def test_second_layers_of_equal_units_are_accepted():
    pair, number = (runs("nonlinear_dynamics", 2, particles=64, a=a) for a in ((2.0, 2.0), 2.0))
    np.testing.assert_array_equal(pair.risk, number.risk)
