"""What every registered dynamics keeps, over the registry."""

import numpy as np
import pytest

from sweeplib import DYNAMICS, InputError, Problem, simulate
from sweeplib.simulation import Case, Recording, Status
from sweeplib.simulation.driver import replicas_of

PROBLEMS = [
    Problem(gamma=0.2, p=3, k=2, d=60, Delta=0.1, activation="erf"),
    Problem(gamma=0.1, p=2, k=1, d=60, Delta=0.1, activation="square", spherical=True),
]
OBSERVABLES = ["risk", "overlap_Q", "overlap_M", "overlap_P"]


@pytest.fixture(params=PROBLEMS, ids=["erf", "spherical square"])
def problem(request):
    return request.param


BUILT_IN = sorted(name for name in DYNAMICS if DYNAMICS.origin(name).startswith("sweeplib."))
"""Not those that plugins of other tests register in the same process."""


@pytest.fixture(params=BUILT_IN)
def dynamics(request):
    return request.param


@pytest.fixture
def run(problem, dynamics):
    return simulate(problem, dynamics, times=np.linspace(0, 2, 5), seeds=range(3), observables=OBSERVABLES)


def test_omega_stays_a_covariance(run, problem):
    Q, M = run.overlap_Q.values, run.overlap_M.values
    P = np.broadcast_to(run.overlap_P.values[:, None], (*M.shape[:2], problem.k, problem.k))
    np.testing.assert_allclose(Q, np.swapaxes(Q, -1, -2), atol=1e-12)
    omega = np.block([[Q, M], [np.swapaxes(M, -1, -2), P]])
    assert np.linalg.eigvalsh(omega).min() > -1e-7


def test_spherical_students_stay_on_the_sphere(run, problem):
    if problem.spherical:
        np.testing.assert_allclose(np.diagonal(run.overlap_Q.values, axis1=-2, axis2=-1), 1.0, atol=1e-9)


def test_risk_is_positive_and_finite(run):
    assert (run.status == Status.ok).all()
    assert (run.risk >= 0).all()
    assert np.isfinite(run.risk).all()


def test_the_same_seed_gives_the_same_bits(run, problem, dynamics):
    again = simulate(problem, dynamics, times=np.linspace(0, 2, 5), seeds=[2, 0], observables=OBSERVABLES)
    for name in OBSERVABLES:
        np.testing.assert_array_equal(again[name], run[name].sel(seed=[2, 0]))


def test_records_do_not_change_the_run_in_law(problem, dynamics):
    """Recording oftener gives the same run, to rounding."""
    often = simulate(problem, dynamics, times=np.linspace(0, 2, 9), seeds=[1])
    rarely = simulate(problem, dynamics, times=[2.0], seeds=[1])
    np.testing.assert_allclose(often.risk[:, -1], rarely.risk[:, -1], rtol=1e-6)


@pytest.mark.parametrize("name", ["sde", "sgd_chain"])
def test_kernels_are_compiled_once_whatever_is_recorded(problem, name):
    """One recording time or three, some thresholds or none: arrays of one memory layout, one signature."""
    for times, thresholds in (((0.1,), ()), ((0.1, 0.2, 0.3), (0.1, 0.2)), ((0.1, 0.2), ())):
        simulate(problem, name, times=times, thresholds=thresholds, seeds=range(2))
    case = Case(problem, name, 0, Recording((0.1,)))
    run = DYNAMICS[name](replicas_of([case]), case.numerical_options())
    assert len(run._round.signatures) == 1


def test_work_grows_with_time_and_is_the_same_everywhere(problem, dynamics):
    work = DYNAMICS[dynamics].work
    assert 0 < work(problem, 1.0) < work(problem, 10.0)


def test_options_are_checked(dynamics, problem):
    with pytest.raises(InputError, match="no_such_option"):
        simulate(problem, dynamics, times=[0.1], options={"no_such_option": 1})


def test_a_label_and_a_docstring_say_what_it_is(dynamics):
    assert DYNAMICS[dynamics].label
    assert DYNAMICS[dynamics].__doc__
