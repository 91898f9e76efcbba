"""Properties that every registered dynamics, and a plugin with particles, must have, by the kind of its view."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sweeplib import DYNAMICS, OBSERVABLES, InputError, Problem, simulate
from sweeplib.code.plugins import load_plugins
from sweeplib.simulation import Case, Recording, Status
from sweeplib.simulation.driver import replicas_of
from sweeplib.views import OverlapView, ParticleView
from tests.plugged import nothing_left

PROBLEMS = [
    Problem(gamma=0.2, p=3, k=2, d=60, Delta=0.1, activation="erf"),
    Problem(gamma=0.1, p=2, k=1, d=60, Delta=0.1, activation="square", spherical=True),
]
PARTICLES = Path(__file__).parents[1] / "workflow" / "own" / "particles.py"
BUILT_IN = sorted(name for name in DYNAMICS if DYNAMICS.origin(name).startswith("sweeplib."))
"""Not those that plugins of other tests register in the same process."""
OF_OVERLAPS = [name for name in BUILT_IN if issubclass(DYNAMICS[name].view, OverlapView)]
TRIED = [*BUILT_IN, "cloud"]


OPTIONS = {"dmft": {"paths": 2**15}}


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


@pytest.fixture(params=TRIED)
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


@pytest.fixture
def view(problem, dynamics):
    """The views of some replicas at a time."""
    recording, options = Recording((0.5,), (), ("student_norm",)), tuple(OPTIONS.get(dynamics, {}).items())
    cases = [Case(problem, dynamics, seed, recording, options=options) for seed in range(3)]
    state = DYNAMICS[dynamics](replicas_of(cases), cases[0].numerical_options())
    state.advance(0)
    return state.look()


def test_views_have_the_weight_one_together(view):
    np.testing.assert_allclose(sum(weight for weight, _ in view), 1.0, rtol=1e-12)


def test_the_dimensions_of_a_view_are_those_that_its_observables_name(dynamics):
    kind = DYNAMICS[dynamics]
    for name in recordable(dynamics):
        assert set(OBSERVABLES[name].dims_of(kind.view)) <= set(kind.view.dims)


def omega_stays_a_covariance(view):
    Q, M, P = view.Q, view.M, view.P
    np.testing.assert_allclose(Q, np.swapaxes(Q, -1, -2), atol=1e-12)
    np.testing.assert_allclose(view.q, np.einsum("nii->ni", Q), rtol=1e-12)
    assert np.linalg.eigvalsh(np.block([[Q, M], [np.swapaxes(M, -1, -2), P]])).min() > -1e-7


def particles_have_the_weight_one_together(view):
    n, N, k = view.m.shape
    assert view.q.shape == view.a.shape == view.weight.shape == (n, N)
    assert view.P.shape == (n, k, k)
    np.testing.assert_allclose(view.weight.sum(axis=1), 1.0, rtol=1e-12)
    within = np.einsum("nir,nrs,nis->ni", view.m, np.linalg.inv(view.P), view.m)
    assert (view.q >= np.maximum(within - 1e-9, 0.0)).all()


PROMISES = {OverlapView: omega_stays_a_covariance, ParticleView: particles_have_the_weight_one_together}


def test_a_view_keeps_what_its_kind_promises(view):
    for _, one in view:
        kept = [promise for kind, promise in PROMISES.items() if isinstance(one, kind)]
        assert kept
        for promise in kept:
            promise(one)


@pytest.mark.parametrize("dynamics", OF_OVERLAPS, indirect=True)
def test_omega_stays_a_covariance(run, problem):
    Q, M = run.overlap_Q.values, run.overlap_M.values
    P = np.broadcast_to(run.overlap_P.values[:, None], (*M.shape[:2], problem.k, problem.k))
    np.testing.assert_allclose(Q, np.swapaxes(Q, -1, -2), atol=1e-12)
    omega = np.block([[Q, M], [np.swapaxes(M, -1, -2), P]])
    assert np.linalg.eigvalsh(omega).min() > -1e-7


@pytest.mark.parametrize("dynamics", BUILT_IN, indirect=True)
def test_spherical_students_stay_on_the_sphere(run, problem):
    if problem.spherical and "overlap_Q" in run:
        np.testing.assert_allclose(np.diagonal(run.overlap_Q.values, axis1=-2, axis2=-1), 1.0, atol=1e-9)
    elif problem.spherical:
        np.testing.assert_allclose(run.student_norm, 1.0, atol=1e-9)


@pytest.mark.parametrize("dynamics", BUILT_IN, indirect=True)
def test_risk_is_positive_and_finite(run):
    assert (run.status == Status.ok).all()
    assert (run.risk >= 0).all()
    assert np.isfinite(run.risk).all()


def test_the_same_seed_gives_the_same_bits(run, problem, dynamics):
    names, options = recordable(dynamics), OPTIONS.get(dynamics)
    again = simulate(problem, dynamics, times=np.linspace(0, 2, 5), seeds=[2, 0], observables=names, options=options)
    for name in names:
        np.testing.assert_array_equal(again[name], run[name].sel(seed=[2, 0]))


def test_records_do_not_change_the_run_in_law(problem, dynamics):
    """Recording more often gives the same run, up to rounding."""
    names, options = recordable(dynamics), OPTIONS.get(dynamics)
    often, rarely = (
        simulate(problem, dynamics, times=times, seeds=[1], observables=names, options=options)
        for times in (np.linspace(0, 2, 9), [2.0])
    )
    for name in names:
        if "instant" in often[name].dims:
            continue  # recorded at more instants
        last = [run[name][:, -1] if OBSERVABLES[name].over_time else run[name] for run in (often, rarely)]
        np.testing.assert_allclose(*last, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("dynamics", [None], indirect=True)
@pytest.mark.parametrize("name", ["sde", "sgd_chain"])
def test_kernels_are_compiled_once_whatever_is_recorded(problem, name):
    """One recording time or three, thresholds or none: arrays have the same memory layout, kernels one signature."""
    for times, thresholds in (((0.1,), ()), ((0.1, 0.2, 0.3), (0.1, 0.2)), ((0.1, 0.2), ())):
        simulate(problem, name, times=times, thresholds=thresholds, seeds=range(2))
    case = Case(problem, name, 0, Recording((0.1,)))
    run = DYNAMICS[name](replicas_of([case]), case.numerical_options())
    assert len(run.round.compiled.signatures) == 1


def test_work_grows_with_time_and_is_the_same_everywhere(problem, dynamics):
    work = DYNAMICS[dynamics].work
    assert 0 < work(problem, 1.0) < work(problem, 10.0)


def test_options_are_checked(dynamics, problem):
    with pytest.raises(InputError, match="no_such_option"):
        simulate(problem, dynamics, times=[0.1], options={"no_such_option": 1}, observables=["student_norm"])


def test_a_label_and_a_docstring_say_what_it_is(dynamics):
    assert DYNAMICS[dynamics].label
    assert DYNAMICS[dynamics].__doc__
