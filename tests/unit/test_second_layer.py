"""One step of both layers: the update itself, in both simulators of SGD."""

import dataclasses

import numpy as np
import pytest

from sweeplib import Overlaps, Problem
from sweeplib.networks.kernels.sample_blocks import MULTIPLE
from sweeplib.networks.maths.activations import activation
from sweeplib.networks.numerics.random import fill_normals, normals
from sweeplib.networks.simulation import Case, Recording, run_cases
from sweeplib.networks.simulation.sample_keys import samples_key

COMMITTEE = Problem(
    gamma=2.0, p=3, k=2, d=21, Delta=0.3, activation="erf", a=(0.7, -0.4, 1.1), a_star=(2.0, 1.0), second_layer_rate=1.5
)
SHOWN = ("overlap_Q", "overlap_M", "second_layer")


def response(problem, a, lam, lam_star, z):
    """Return (σ(λ), σ'(λ), E) at local fields λ, λ* and label noise z."""
    student = activation(problem.activation)
    value, slope, target = (
        np.array([function(field) for field in fields])
        for function, fields in ((student.value, lam), (student.derivative, lam), (student.value, lam_star))
    )
    return value, slope, np.mean(problem.a_star * target) + np.sqrt(problem.Delta) * z - np.mean(a * value)


def step_in_numpy(problem, W, W_star, a, sample):
    """Return (W, a) after one step on the sample (√d x, z), where both layers use their values before it."""
    x = sample[:-1] / np.sqrt(problem.d)
    value, slope, displacement = response(problem, a, W @ x, W_star @ x, sample[-1])
    moved = W + problem.gamma / problem.p * np.outer(a * slope, x) * displacement
    if problem.spherical:
        moved *= np.sqrt(problem.d) / np.linalg.norm(moved, axis=1, keepdims=True)
    return moved, a + problem.second_layer_rate * problem.step_time() * value * displacement


def samples_of(case, seed, step):
    """Return the numbers of a step: d of the sample, and one of the noise."""
    out = np.empty(MULTIPLE * (case.problem.d // MULTIPLE + 1))
    fill_normals(np.uint64(samples_key(case)), np.uint64(seed), np.uint64(step), out)
    return out[: case.problem.d + 1]


@pytest.mark.rest
@pytest.mark.parametrize("spherical", [False, True])
@pytest.mark.parametrize("rate", [0.0, 1.5])
@pytest.mark.parametrize("thresholds", [(), (0.9,)], ids=["no exits", "exits"])
@pytest.mark.parametrize("d", [21, 1100])
@pytest.mark.parametrize("shown", [(0, 1, 2, 3), (0, 11)], ids=["step by step", "blocks"])
def test_sgd_takes_the_steps_written_down(shown, d, rate, spherical, thresholds):
    """With the same samples the results agree up to rounding, with and without overlaps for exits."""
    problem = dataclasses.replace(COMMITTEE, d=d, second_layer_rate=rate, spherical=spherical)
    rng = np.random.default_rng(0)
    W, W_star, a = rng.normal(size=(3, d)), rng.normal(size=(2, d)), np.array(problem.a)
    W *= np.sqrt(d) / np.linalg.norm(W, axis=1, keepdims=True)
    times = tuple(np.array(shown) * problem.step_time())
    case = Case(problem, "sgd", 5, Recording(times, observables=SHOWN, thresholds=thresholds))
    data = run_cases([case], initial=(W, W_star)).data
    for step in range(max(shown) + 1):
        if step in shown:
            n = shown.index(step)
            np.testing.assert_allclose(data["second_layer"][0, n], a, rtol=1e-13)
            np.testing.assert_allclose(data["overlap_Q"][0, n], W @ W.T / d, rtol=1e-11, atol=1e-13)
            np.testing.assert_allclose(data["overlap_M"][0, n], W @ W_star.T / d, rtol=1e-11, atol=1e-13)
        W, a = step_in_numpy(problem, W, W_star, a, samples_of(case, 5, step))
    assert (a == problem.a).all() == (rate == 0.0)


@pytest.mark.parametrize("seed", range(8))
def test_the_chain_takes_the_step_written_down(seed):
    """One step with the same normals: a and M up to rounding, and Q up to ‖x‖², the same in all its entries."""
    a, rate = np.array(COMMITTEE.a), COMMITTEE.step_time()
    Q, M = np.eye(3) + 0.3 * (1 - np.eye(3)), np.full((3, 2), [0.4, -0.2])
    case = Case(COMMITTEE, "sgd_chain", seed, Recording((rate,), observables=SHOWN))
    data = run_cases([case], initial=Overlaps(Q, M, np.eye(2))).data
    frame = normals(samples_key(case), seed, 0, 8).reshape(4, 2).T.ravel()
    lam, lam_star = M @ frame[:2] + np.linalg.cholesky(Q - M @ M.T) @ frame[2:5], frame[:2]
    value, slope, displacement = response(COMMITTEE, a, lam, lam_star, frame[5])
    c = rate * a * slope * displacement
    trained = a + COMMITTEE.second_layer_rate * rate * value * displacement
    np.testing.assert_allclose(data["second_layer"][0, 0], trained, rtol=1e-13)
    np.testing.assert_allclose(data["overlap_M"][0, 0], M + np.outer(c, lam_star), rtol=1e-12)
    of_sample, linear = np.outer(c, c), Q + np.outer(c, lam) + np.outer(lam, c)
    square = np.sum((data["overlap_Q"][0, 0] - linear) * of_sample) / np.sum(of_sample**2)
    np.testing.assert_allclose(data["overlap_Q"][0, 0], linear + square * of_sample, rtol=1e-13, atol=1e-13)
    assert square > frame[:5] @ frame[:5]


def test_bits_of_a_case_with_both_layers_depend_on_no_other():
    """Any subset, in any order, of cases that differ in γ, ε, d and seed gives the same result."""
    problems = [
        dataclasses.replace(COMMITTEE, gamma=gamma, second_layer_rate=rate, d=d)
        for gamma in (0.5, 2.0)
        for rate in (0.1, 3.0)
        for d in (10, 300)
    ]
    recording = Recording((0.0, 0.1, 0.5), observables=SHOWN, thresholds=(0.05,))
    cases = [Case(problem, "sgd_chain", seed, recording) for problem in problems for seed in range(9)]
    whole = run_cases(cases)
    order = np.random.default_rng(0).permutation(len(cases))[:37]
    part = run_cases([cases[i] for i in order])
    for name, values in part.data.items():
        np.testing.assert_array_equal(values, whole.data[name][order])
