"""Batches of fresh samples: the step compared to NumPy, a batch of one compared to plain SGD, and exits."""

import numpy as np
import pytest

from sweeplib import InputError, Problem, simulate
from sweeplib.dynamics import DYNAMICS
from sweeplib.numerics.random import normals
from sweeplib.simulation import Case, Recording
from sweeplib.simulation.driver import replicas_of, samples_key

FIELDS = {"gamma": 0.3, "p": 3, "k": 2, "d": 50, "Delta": 0.2, "activation": "square"}


def steps_by_numpy(case, count):
    """Return W after some steps w_i += (γ/p)(1/n_b) Σ a_i σ'(λ_i) E x, with the samples x of the stream in order."""
    problem, (W, W_star) = case.problem, replicas_of([case]).weights(0)
    W, key, n_b, d = W.copy(), samples_key(case), problem.batch_size, problem.d
    layer = np.full(problem.p, problem.a)
    for step in range(count):
        draws = np.array([normals(key, case.seed, step * n_b + s, 32 * (d // 32 + 1)) for s in range(n_b)])
        x, z = draws[:, :d], draws[:, d]
        lam, lam_star = x @ W.T / np.sqrt(d), x @ W_star.T / np.sqrt(d)
        error = (lam_star**2).mean(axis=1) + np.sqrt(problem.Delta) * z - lam**2 @ layer / problem.p
        W += problem.gamma / problem.p * (2 * layer * lam * error[:, None]).T @ x / np.sqrt(d) / n_b
        layer = layer + problem.second_layer_rate * problem.step_time() * (lam**2 * error[:, None]).mean(axis=0)
        if problem.spherical:
            W *= np.sqrt(d) / np.linalg.norm(W, axis=1, keepdims=True)
    return W @ W.T / d, W @ W_star.T / d, layer


@pytest.mark.parametrize("batch_size", [2, 4, 7])
@pytest.mark.parametrize("more", [{}, {"spherical": True}, {"second_layer_rate": 0.5}], ids=["plain", "sphere", "both"])
def test_a_step_moves_by_the_mean_over_the_batch(batch_size, more):
    problem = Problem(batch_size=batch_size, **FIELDS, **more)
    case = Case(problem, "sgd", 3, Recording((20 * problem.step_time(),), (), ("overlap_Q", "overlap_M")))
    ds = simulate(problem, "sgd", times=case.recording.times, seeds=[3], observables=case.recording.observables)
    Q, M, _ = steps_by_numpy(case, 20)
    np.testing.assert_allclose(ds.overlap_Q[0, 0], Q, rtol=1e-9)
    np.testing.assert_allclose(ds.overlap_M[0, 0], M, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("spherical", [False, True])
def test_exits_are_those_of_the_risks_of_each_step(spherical):
    problem = Problem(batch_size=5, spherical=spherical, **FIELDS | {"activation": "erf"})
    times = np.arange(800) * problem.step_time()
    every = simulate(problem, "sgd", times=times, seeds=range(3))
    exits = simulate(problem, "sgd", times=times[-1:], seeds=range(3), thresholds=[0.1, 0.2])
    for place, threshold in enumerate((0.1, 0.2)):
        below = every.risk.values <= (1 - threshold) * every.risk.values[:, :1]
        assert below.any(axis=1).all()
        np.testing.assert_array_equal(exits.exit_steps[:, place], below.argmax(axis=1))


def test_larger_batches_scatter_less():
    """The covariance over seeds of a step's increment is that of one sample over n_b: its trace within 5 deviations."""
    spread = []
    for batch_size in (1, 16):
        problem = Problem(batch_size=batch_size, **FIELDS | {"activation": "erf"})
        W = replicas_of([Case(problem, "sgd", 0, Recording((0.0,)))]).weights(0)
        once = simulate(
            problem, "sgd", times=[problem.step_time()], seeds=range(800), initial=W, observables=["overlap_M"]
        )
        squares = ((once.overlap_M - once.overlap_M.mean("seed")) ** 2).sum(["time", "student", "teacher"])
        spread.append((squares.mean().item(), squares.std().item() / np.sqrt(800)))
    (one, one_error), (many, many_error) = spread
    assert abs(one - 16 * many) < 5 * np.hypot(one_error, 16 * many_error) < 0.5 * one


def test_dynamics_of_single_samples_refuse_it():
    for name in set(DYNAMICS) & {"sgd_chain", "ode", "sde", "gradient_flow"}:
        with pytest.raises(InputError, match="batch_size"):
            simulate(Problem(batch_size=2, **FIELDS), name, times=[0.1])
