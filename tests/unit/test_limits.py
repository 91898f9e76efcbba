"""What goes with what: limits of problems and of dynamics, and the table that is made of them."""

import pytest

from sweeplib import DYNAMICS, InputError, Problem
from sweeplib.config.combination_table import combination_table
from sweeplib.networks.problem import PARAMETERS, Limit
from sweeplib.networks.problem.combinations import COMBINATIONS, SPHERE, WIDTHS
from sweeplib.networks.simulation import Case, Recording

PLAIN = {"gamma": 0.2, "p": 2, "k": 1, "d": 60, "Delta": 0.1, "activation": "erf"}
BUILT_IN = sorted(name for name in DYNAMICS if DYNAMICS.origin(name).startswith("sweeplib."))


def test_a_limit_refuses_a_value_beside_a_feature_alone():
    limit = Limit("batch_size repeats", "no {problem.activation} batches", beside=SPHERE)
    limit.refuse(Problem(**PLAIN, batch_size=3))
    limit.refuse(Problem(**PLAIN, spherical=True))
    with pytest.raises(InputError) as refused:
        limit.refuse(Problem(**PLAIN, spherical=True, repeats=3))
    assert str(refused.value) == "repeats: no erf batches; got 3; expected 1 with students on the sphere"


def test_a_limit_can_be_a_bound():
    limit = Limit(
        "p",
        "too wide",
        lambda problem: f"at most d = {problem.d}",
        where=lambda problem: problem.p + problem.k > problem.d,
        value=lambda problem: problem.p + problem.k,
    )
    limit.refuse(Problem(**PLAIN))
    with pytest.raises(InputError, match="p: too wide; got 61; expected at most d = 60"):
        limit.refuse(Problem(**PLAIN | {"p": 60}))


@pytest.mark.parametrize("name", BUILT_IN)
def test_what_a_dynamics_says_of_parameters_fits_together(name):
    kind = DYNAMICS[name]
    assert kind.meaningless().keys() <= PARAMETERS.keys() - kind.reads
    reads = kind.reads | {"data"} if kind.takes_spectra else kind.reads
    keys = {key for limit in kind.limits_of(kind.Options()) for key in limit.keys.split()}
    assert keys <= reads | kind.Options.model_fields.keys()


def test_reasons_are_said_where_a_parameter_means_nothing():
    case = Case(Problem(**PLAIN, samples=10), "sgd_chain", 0, Recording((1.0,)))
    with pytest.raises(
        InputError, match="does not act on samples: the overlaps of a student that sees samples again are"
    ):
        case.check()


def test_constant_noise_by_a_schedule_is_constant_noise():
    problem = Problem(**PLAIN | {"k": 2}, tasks="in_turn", switch_time=0.5, noise_schedule="1")
    Case(problem, "ode", 0, Recording((1.0,))).check()


def test_the_table_has_every_dynamics_and_every_limit():
    table = combination_table()
    limits = [limit for name in BUILT_IN for limit in DYNAMICS[name].limits]
    for key in {key for limit in (*WIDTHS, *COMBINATIONS, *limits) for key in limit.keys.split()}:
        assert f"`{key}`" in table
    assert all(f"`{name}`" in table for name in BUILT_IN)
    assert "{" not in table.replace("ode: {finite_d: true}", "")
