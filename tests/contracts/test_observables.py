"""Properties that every registered observable must have."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from sweeplib import OBSERVABLES, Problem, simulate
from sweeplib.contracts import observables as contract
from sweeplib.contracts.check import checks_of
from sweeplib.engine.variable import stored_attributes
from sweeplib.networks.maths.expectations import expectations
from sweeplib.networks.views import QUANTILES, OverlapView, ParticleView, TrainingView, View

PROBLEM = Problem(gamma=0.2, p=3, k=2, d=40, Delta=0.1, activation="erf")
REUSED = replace(PROBLEM, samples=20)
SIZES = {"seed": 2, "time": 3, "quantile": len(QUANTILES), "student": 3, "student_2": 3, "teacher": 2, "teacher_2": 2}
SIZES |= {"block": 1, "task": 1, "outlier": 15, "joint_outlier": 18}
LINEAR = {"risk_of_block"}
"""The observables of linear students alone."""
OF_BOTH_LAYERS = {"joint_hessian_outliers"}
"""The observables of students whose second layer is trained."""


OF_AVERAGES = {"risk_of_average", "average_Q", "average_M"}
"""The observables of averages of the iterates."""


@pytest.fixture(scope="module", params=[name for name in OBSERVABLES if OBSERVABLES[name].is_of(TrainingView)])
def observable(request):
    return OBSERVABLES[request.param]


@pytest.fixture(scope="module")
def recorded(observable):
    problem, dynamics = (PROBLEM, "sgd_chain") if observable.is_of(OverlapView) else (REUSED, "sgd")
    problem = replace(problem, activation="linear") if observable.name in LINEAR else problem
    problem = replace(problem, second_layer_rate=0.5) if observable.name in OF_BOTH_LAYERS else problem
    problem = replace(problem, averaging_order=1.0) if observable.name in OF_AVERAGES else problem
    ds = simulate(problem, dynamics, times=[0.0, 0.5, 1.0], seeds=range(2), observables=[observable.name])
    return ds[observable.name]


def test_its_array_has_the_dims_it_declares(observable, recorded):
    dims = ("seed", *(("time",) if observable.over_time else ()), *observable.dims_of(TrainingView))
    assert recorded.dims == dims
    assert recorded.shape == tuple(SIZES[dim] for dim in dims)
    assert np.isfinite(recorded).all()


def test_it_is_labelled(observable, recorded):
    labels = {"long_name": observable.long_name, "units": observable.units, "symbol": observable.symbol}
    assert recorded.attrs == stored_attributes(labels)
    assert all(recorded.attrs.values())


def arrays(lengths):
    """Return random arrays of three replicas, by name, with these lengths of their other axes."""
    rng = np.random.default_rng(4)
    return {name: rng.random((3, *shape)) for name, shape in lengths.items()}


@pytest.mark.parametrize("check", checks_of(contract))
@pytest.mark.parametrize("name", OBSERVABLES)
def test_in_every_view(name, check):
    check(name)


def test_the_nearest_of_its_views_is_taken_from_one_derived_from_them():
    class Aged(ParticleView):
        """Particles."""

    for name in ("overlap_M", "student_norm"):
        observable = OBSERVABLES[name]
        assert observable.function_of(Aged) is observable.function_of(ParticleView)
        assert observable.dims_of(Aged) == observable.dims_of(ParticleView)
    assert not OBSERVABLES["risk"].is_of(Aged)
    assert not OBSERVABLES["risk"].is_of(View)


def test_what_a_view_is_not_asked_for_is_not_made():
    def never():
        raise AssertionError("made")

    given = arrays({"M": (4, 2), "P": (2, 2), "a": (4,), "a_star": (2,), "Delta": ()})
    view = OverlapView(never, expectations=expectations("erf"), q=lambda: np.ones((3, 4)), **given)
    np.testing.assert_array_equal(OBSERVABLES["student_norm"].function_of(OverlapView)(view), 1.0)


def test_ten_thousand_students_start_without_their_overlaps():
    """Their Q would take 0.8 GB, and its check minutes."""
    wide = Problem(gamma=0.1, p=10_000, d=20, k=1, Delta=0.0, activation="erf")
    tracemalloc.start()
    run = simulate(wide, "sgd", times=[0.0], observables=["student_norm", "overlap_M", "overlap_P"])
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 50e6
    assert run.student_norm.item() == pytest.approx(1.0, abs=0.02)
