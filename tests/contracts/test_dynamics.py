"""Properties that every registered dynamics, and a plugin with particles, must have, by the kind of its view."""

from pathlib import Path

import pytest

from sweeplib import DYNAMICS, OBSERVABLES, simulate
from sweeplib.contracts import dynamics as contract
from sweeplib.contracts.check import checks_of
from sweeplib.engine.code.plugins import load_plugins
from sweeplib.networks.simulation import Case, Recording
from sweeplib.networks.simulation.driver import replicas_of
from tests.plugged import nothing_left
from tests.tiers import ALONE, slow_among

PARTICLES = Path(__file__).parents[1] / "workflow" / "own" / "particles.py"
BUILT_IN = sorted(name for name in DYNAMICS if DYNAMICS.origin(name).startswith("sweeplib."))
"""Not those that plugins of other tests register in the same process."""
TRIED = [*BUILT_IN, "cloud"]


@pytest.fixture(scope="module", autouse=True)
def plugin():
    with nothing_left():
        load_plugins([str(PARTICLES)])
        yield


@pytest.fixture(params=slow_among(TRIED, *ALONE))
def dynamics(request):
    return request.param


def recordable(dynamics):
    view = DYNAMICS[dynamics].view
    return [name for name, observable in OBSERVABLES.items() if observable.is_of(view) and not observable.needs]


OF_LAW = pytest.param(contract.it_has_the_law_that_it_says, marks=pytest.mark.slow)
OF_FIELDS = contract.it_depends_on_the_fields_that_it_reads_and_on_no_other
"""Of the built-in dynamics tested in `test_reads`, field by field."""


@pytest.mark.parametrize(
    "check", [*(each for each in checks_of(contract) if each not in (OF_FIELDS, *OF_LAW.values)), OF_LAW]
)
def test_dynamics(dynamics, check):
    check(dynamics)


def test_a_plugin_depends_on_the_fields_that_it_reads_and_on_no_other():
    OF_FIELDS("cloud")


def test_the_dimensions_of_a_view_are_those_that_its_observables_name(dynamics):
    kind = DYNAMICS[dynamics]
    for name in recordable(dynamics):
        assert set(OBSERVABLES[name].dims_of(kind.view)) <= set(kind.view.dims)


@pytest.mark.parametrize("problem", contract.PROBLEMS, ids=["erf", "spherical square"])
@pytest.mark.parametrize("name", ["sde", "sgd_chain"])
def test_kernels_are_compiled_once_whatever_is_recorded(problem, name):
    """One recording time or three, thresholds or none: arrays have the same memory layout, kernels one signature."""
    for times, thresholds in (((0.1,), ()), ((0.1, 0.2, 0.3), (0.1, 0.2)), ((0.1, 0.2), ())):
        simulate(problem, name, times=times, thresholds=thresholds, seeds=range(2))
    case = Case(problem, name, 0, Recording((0.1,)))
    run = DYNAMICS[name](replicas_of([case]), case.numerical_options())
    assert len(run.round.compiled.signatures) == 1
