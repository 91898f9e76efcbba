"""Properties that every registered start, and a plugin, must have."""

from pathlib import Path

import numpy as np
import pytest

from sweeplib import InputError, Problem, simulate
from sweeplib.code.plugins import load_plugins
from sweeplib.problem import STARTS
from sweeplib.problem.weights import drawn_weights
from sweeplib.simulation import Case, Recording
from sweeplib.simulation.driver import replicas_of
from tests.plugged import nothing_left

OPPOSED = Path(__file__).parents[1] / "workflow" / "own" / "opposed_start.py"
TRIED = [*STARTS, "opposed"]


@pytest.fixture(scope="module", autouse=True)
def plugin():
    with nothing_left():
        load_plugins([str(OPPOSED)])
        yield


@pytest.fixture(params=TRIED)
def problem(request):
    return started(request.param)


def started(name, **fields):
    """Return a problem with this start."""
    common = {"gamma": 0.1, "p": 3, "k": 2, "d": 30, "Delta": 0.0, "activation": "erf", "start": name}
    return Problem(**(common | ({"m0": 0.4} if name == "warm" else {}) | fields))


def test_its_weights_are_the_same_whenever_they_are_drawn(problem):
    W, W_star = drawn_weights(problem, root_seed=3, seed=1)
    assert W.shape == (3, 30) and W_star.shape == (2, 30)
    assert np.isfinite(W).all()
    np.testing.assert_array_equal(drawn_weights(problem, root_seed=3, seed=1)[0], W)
    assert not np.array_equal(drawn_weights(problem, root_seed=3, seed=2)[0], W)


def test_on_the_sphere_are_rows_of_norm_root_d(problem):
    if not STARTS[problem.start].on_sphere:
        with pytest.raises(InputError, match="start on the sphere"):
            started(problem.start, spherical=True)
        return
    W, _ = drawn_weights(started(problem.start, spherical=True), root_seed=0, seed=0)
    np.testing.assert_allclose((W**2).sum(axis=1), 30.0, rtol=1e-12)


def test_overlaps_and_particles_are_those_of_the_weights(problem):
    replicas = replicas_of([Case(problem, "sgd", seed, Recording((0.0,))) for seed in (0, 1)])
    for i in (0, 1):
        (W, W_star), (m, q) = replicas.weights(i), replicas.particles(i)
        np.testing.assert_allclose(m, W @ W_star.T / 30, rtol=1e-12)
        np.testing.assert_allclose(q, np.diag(W @ W.T) / 30, rtol=1e-12)
        for found, at in ((replicas.M, m), (replicas.P, W_star @ W_star.T / 30), (replicas.Q, W @ W.T / 30)):
            np.testing.assert_allclose(found[i], at, rtol=1e-12, atol=1e-15)
        more, _ = replicas.particles(i, 7)
        assert more.shape == (7, 2)


def test_a_warm_start_has_its_overlap_with_the_teacher_of_each_unit():
    W, W_star = drawn_weights(started("warm", p=5, m0=-0.3), root_seed=0, seed=0)
    cosines = W @ W_star.T / 30
    np.testing.assert_allclose(cosines[np.arange(5), np.arange(5) % 2], -0.3, rtol=1e-12)
    assert np.linalg.matrix_rank(W) == 5
    W, _ = drawn_weights(started("warm", p=1, m0=0.9), root_seed=0, seed=0)
    assert W.shape == (1, 30)


@pytest.mark.parametrize(
    ("fields", "key", "said"),
    [
        ({"start": "warn"}, "start", "did you mean 'warm'"),
        ({"start": "warm", "m0": None}, "m0", "a warm start needs its overlap"),
        ({"start": "warm", "d": 1, "k": 1}, "m0", "expected d > 1"),
        ({"start": "sphere", "m0": 0.1}, "m0", "`start: warm` takes any k"),
        ({"start": "gaussian", "m0": 0.1, "k": 1}, "start", "start on the sphere"),
        ({"start": "opposed", "m0": 0.1}, "start", "start on the sphere"),
    ],
)
def test_what_does_not_fit_is_refused(fields, key, said):
    with pytest.raises(InputError) as caught:
        started("warm", **fields)
    assert caught.value.key == key
    assert said in str(caught.value)


def test_a_warm_start_learns_from_where_it_starts():
    run = simulate(started("warm", m0=0.8), "ode", times=[0.0], observables=["overlap_M"])
    assert run.overlap_M.isel(seed=0, time=0, student=1, teacher=1).item() == pytest.approx(0.8)
