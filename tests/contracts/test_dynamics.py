"""Properties that every registered dynamics, and a plugin with particles, must have, by the kind of its view."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sweeplib import DYNAMICS, OBSERVABLES, Problem, simulate
from sweeplib.code.plugins import load_plugins
from sweeplib.contracts.dynamics import CHECKS
from sweeplib.simulation import Case, Recording
from sweeplib.simulation.driver import replicas_of
from sweeplib.views import OverlapView
from tests.plugged import nothing_left
from tests.tiers import ALONE, slow_among

PROBLEMS = [
    Problem(gamma=0.2, p=3, k=2, d=60, Delta=0.1, activation="erf"),
    Problem(gamma=0.1, p=2, k=1, d=60, Delta=0.1, activation="square", spherical=True),
]
PARTICLES = Path(__file__).parents[1] / "workflow" / "own" / "particles.py"
BUILT_IN = sorted(name for name in DYNAMICS if DYNAMICS.origin(name).startswith("sweeplib."))
"""Not those that plugins of other tests register in the same process."""
OF_OVERLAPS = [name for name in BUILT_IN if issubclass(DYNAMICS[name].view, OverlapView)]
TRIED = [*BUILT_IN, "cloud"]


OPTIONS = {"dmft": {"paths": 2**15}, "nonlinear_dynamics": {"particles": 16}}


def suited(problem, dynamics):
    """The problem, in few dimensions, or with a data set and long steps, for the dynamics that needs these."""
    if dynamics == "weight_flow":
        return replace(problem, d=3)
    if dynamics != "dmft":
        return problem
    return replace(problem, gamma=0.25 * problem.p * problem.d, samples=120, batch_size=120)


@pytest.fixture(scope="module", autouse=True)
def plugin():
    with nothing_left():
        load_plugins([str(PARTICLES)])
        yield


@pytest.fixture(params=slow_among(TRIED, *ALONE))
def dynamics(request):
    return request.param


@pytest.fixture(params=PROBLEMS, ids=["erf", "spherical square"])
def problem(request, dynamics):
    return suited(request.param, dynamics)


def recordable(dynamics):
    view = DYNAMICS[dynamics].view
    return [name for name, observable in OBSERVABLES.items() if observable.is_of(view) and not observable.needs]


@pytest.fixture
def run(problem, dynamics):
    times = np.linspace(0, 2, 5)
    options = OPTIONS.get(dynamics)
    return simulate(problem, dynamics, times=times, seeds=range(3), observables=recordable(dynamics), options=options)


@pytest.mark.parametrize("check", CHECKS)
def test_dynamics(dynamics, check):
    check(dynamics)


def test_the_dimensions_of_a_view_are_those_that_its_observables_name(dynamics):
    kind = DYNAMICS[dynamics]
    for name in recordable(dynamics):
        assert set(OBSERVABLES[name].dims_of(kind.view)) <= set(kind.view.dims)


@pytest.mark.parametrize("dynamics", slow_among(OF_OVERLAPS, *set(ALONE) & set(OF_OVERLAPS)), indirect=True)
def test_omega_stays_a_covariance(run, problem):
    Q, M = run.overlap_Q.values, run.overlap_M.values
    P = np.broadcast_to(run.overlap_P.values[:, None], (*M.shape[:2], problem.k, problem.k))
    np.testing.assert_allclose(Q, np.swapaxes(Q, -1, -2), atol=1e-12)
    omega = np.block([[Q, M], [np.swapaxes(M, -1, -2), P]])
    assert np.linalg.eigvalsh(omega).min() > -1e-7


@pytest.mark.parametrize("dynamics", [None], indirect=True)
@pytest.mark.parametrize("name", ["sde", "sgd_chain"])
def test_kernels_are_compiled_once_whatever_is_recorded(problem, name):
    """One recording time or three, thresholds or none: arrays have the same memory layout, kernels one signature."""
    for times, thresholds in (((0.1,), ()), ((0.1, 0.2, 0.3), (0.1, 0.2)), ((0.1, 0.2), ())):
        simulate(problem, name, times=times, thresholds=thresholds, seeds=range(2))
    case = Case(problem, name, 0, Recording((0.1,)))
    run = DYNAMICS[name](replicas_of([case]), case.numerical_options())
    assert len(run.round.compiled.signatures) == 1
