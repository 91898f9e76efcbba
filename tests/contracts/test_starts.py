"""Properties that every registered start and data law, and a plugin, must have."""

from pathlib import Path

import numpy as np
import pytest

from sweeplib import InputError, Problem, simulate
from sweeplib.contracts import data_laws, starts
from sweeplib.contracts.check import checks_of
from sweeplib.engine.code.plugins import load_plugins
from sweeplib.networks.problem import DATA, STARTS
from sweeplib.networks.problem.weights import drawn_overlaps, drawn_weights
from tests.plugged import nothing_left
from tests.tiers import slow_among, slow_but

OPPOSED = Path(__file__).parents[1] / "workflow" / "own" / "opposed_start.py"
TRIED = [*STARTS, "opposed"]


@pytest.fixture(scope="module", autouse=True)
def plugin():
    with nothing_left():
        load_plugins([str(OPPOSED)])
        yield


def started(name, **fields):
    """Return a problem with this start."""
    common = {"gamma": 0.1, "p": 3, "k": 2, "d": 30, "Delta": 0.0, "activation": "erf", "start": name}
    return Problem(**(common | ({"m0": 0.4} if name == "warm" else {}) | fields))


@pytest.mark.parametrize("check", checks_of(starts))
@pytest.mark.parametrize("name", TRIED)
def test_start(name, check):
    check(name)


@pytest.mark.rest
@pytest.mark.parametrize("check", checks_of(data_laws))
@pytest.mark.parametrize("name", DATA)
def test_data_law(name, check):
    check(name)


def test_a_warm_start_has_its_overlap_with_the_teacher_of_each_unit():
    W, W_star = drawn_weights(started("warm", p=5, m0=-0.3), root_seed=0, seed=0)
    cosines = W @ W_star.T / 30
    np.testing.assert_allclose(cosines[np.arange(5), np.arange(5) % 2], -0.3, rtol=1e-12)
    assert np.linalg.matrix_rank(W) == 5
    W, _ = drawn_weights(started("warm", p=1, m0=0.9), root_seed=0, seed=0)
    assert W.shape == (1, 30)


@pytest.mark.parametrize("law", ["orthogonal", "sphere", "gaussian"])
@pytest.mark.parametrize(("start", "k"), [("warm", 3), ("sphere", 1)])
def test_a_stated_overlap_is_that_of_the_weights_whatever_the_norms_of_the_teacher(start, k, law):
    problem = Problem(gamma=0.1, p=4, k=k, d=30, Delta=0.0, activation="erf", start=start, m0=0.95, teacher_start=law)
    W, W_star = drawn_weights(problem, root_seed=0, seed=1)
    np.testing.assert_allclose(drawn_overlaps(problem, W, W_star).M, W @ W_star.T / 30, rtol=1e-12, atol=1e-14)


@pytest.mark.rest
@pytest.mark.parametrize("m0", [0.0, -0.7])
@pytest.mark.parametrize(("start", "k"), [("warm", 3), ("sphere", 1)])
@pytest.mark.parametrize("dynamics", ["ode", "sde", "sgd_chain", "overlap_map", "mean_field"])
def test_a_stated_overlap_is_exact(dynamics, start, k, m0):
    """As are norms on the sphere and products of orthogonal teachers; all other overlaps are those of the weights."""
    observables = ["overlap_M", "overlap_P", "self_overlap" if dynamics == "mean_field" else "overlap_Q"]
    problem = started(start, p=4, k=k, m0=m0)
    run = simulate(problem, dynamics, times=[0.0], seeds=3, observables=observables)
    own = np.arange(4) % k
    M = run.overlap_M.values[:, 0]
    assert (M[:, np.arange(4), own] == m0).all()
    np.testing.assert_array_equal(run.overlap_P.values[0], np.eye(k))
    norms = run.self_overlap.values if dynamics == "mean_field" else np.diagonal(run.overlap_Q.values, axis1=2, axis2=3)
    np.testing.assert_allclose(norms, 1.0, rtol=0, atol=4e-15 if dynamics == "sgd_chain" else 0.0)
    for seed in range(3):
        W, W_star = drawn_weights(problem, root_seed=0, seed=seed)
        np.testing.assert_allclose(M[seed], W @ W_star.T / 30, rtol=0, atol=1e-15)


@pytest.mark.rest
@pytest.mark.parametrize("dynamics", slow_among(["ode", "gradient_flow", "overlap_map"], "overlap_map"))
@pytest.mark.parametrize(
    ("student", "target"), slow_but([("square", "committee"), ("tanh", "tanh(lam1)**2")], ("square", "committee"))
)
def test_a_start_at_an_exact_fixed_point_stays_there(dynamics, student, target):
    """Without overlap, even functions of the teacher have no pull on M; rounding once started an escape."""
    problem = started("sphere", p=1, k=1, m0=0.0, activation=student, target=target, spherical=True, gamma=0.5)
    run = simulate(problem, dynamics, times=[0.0, 60.0], thresholds=[0.5], observables=["risk", "overlap_M"])
    assert (run.overlap_M.values == 0.0).all()
    assert run.exit_time.isnull().all()


@pytest.mark.parametrize(
    ("fields", "key", "said"),
    [
        ({"start": "warn"}, "start", "did you mean 'warm'"),
        ({"start": "warm", "m0": None}, "m0", "a warm start needs its overlap"),
        ({"start": "warm", "d": 1, "k": 1}, "m0", "expected a teacher and d > 1"),
        ({"start": "sphere", "m0": 0.1}, "m0", "`start: warm` takes any k"),
        ({"start": "gaussian", "m0": 0.1, "k": 1}, "m0", "the start gaussian does not act on m0"),
        ({"start": "opposed", "m0": 0.1}, "m0", "a start that acts on it: sphere, warm"),
    ],
)
def test_what_does_not_fit_is_refused(fields, key, said):
    with pytest.raises(InputError) as caught:
        started("warm", **fields)
    assert caught.value.key == key
    assert said in str(caught.value)


@pytest.mark.rest
def test_a_warm_start_learns_from_where_it_starts():
    run = simulate(started("warm", m0=0.8), "ode", times=[0.0], observables=["overlap_M"])
    assert run.overlap_M.isel(seed=0, time=0, student=1, teacher=1).item() == pytest.approx(0.8)
