"""What every registered observable keeps, over the registry."""

import numpy as np
import pytest

from sweeplib import OBSERVABLES, Problem, simulate

PROBLEM = Problem(gamma=0.2, p=3, k=2, d=40, Delta=0.1, activation="erf")
SIZES = {"seed": 2, "time": 3, "student": 3, "student_2": 3, "teacher": 2, "teacher_2": 2}


@pytest.fixture(params=sorted(OBSERVABLES))
def observable(request):
    return OBSERVABLES[request.param]


@pytest.fixture
def recorded(observable):
    ds = simulate(PROBLEM, "sgd_chain", times=[0.0, 0.5, 1.0], seeds=range(2), observables=[observable.name])
    return ds[observable.name]


def test_its_array_has_the_dims_it_declares(observable, recorded):
    dims = ("seed", *(("time",) if observable.over_time else ()), *observable.dims)
    assert recorded.dims == dims
    assert recorded.shape == tuple(SIZES[dim] for dim in dims)
    assert np.isfinite(recorded).all()


def test_it_is_labelled(observable, recorded):
    assert recorded.attrs == {
        "long_name": observable.long_name,
        "units": observable.units,
        "symbol": observable.symbol,
    }
    assert all(recorded.attrs.values())


def test_what_is_recorded_once_is_constant(observable):
    """A constant observable is the same whenever the run is looked at first."""
    if observable.over_time:
        return
    early, late = (
        simulate(PROBLEM, "sgd", times=[time], seeds=[0], observables=[observable.name]) for time in (0.0, 1.0)
    )
    np.testing.assert_array_equal(early[observable.name], late[observable.name])
