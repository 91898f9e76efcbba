"""Advice of a plan about its costs, made from the measurements."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from sweeplib.engine.design.design import Design, Run
from sweeplib.engine.design.grid import Axis, Grid
from sweeplib.engine.execution import advice as module
from sweeplib.engine.execution.advice import advice
from sweeplib.engine.execution.calibration import Calibration, Pilot
from sweeplib.engine.execution.child import DiedError, TimeUpError
from sweeplib.engine.execution.estimates import Cost, DynamicsPlan, LayoutPlan
from sweeplib.engine.execution.plan import write_plan
from sweeplib.engine.process.troubles import Trouble
from sweeplib.networks.hints import ALTERNATIVES, NetworkHints, OtherDynamics
from sweeplib.networks.problem import Problem
from sweeplib.networks.simulation import Case, Recording
from sweeplib.networks.simulation.sample_keys import samples_key
from tests.in_process import InProcess


class Measured(Calibration):
    """A calibration with given costs, by dynamics and options."""

    def __init__(self, costs: Mapping[object, float | Exception]) -> None:
        super().__init__()
        self.given = costs

    def compile(self, pilot: Pilot) -> None:
        """Do nothing."""

    def cost(self, pilot: Pilot, seconds: float) -> Cost:
        cost = self.given[pilot.dynamics, pilot.cases[0].options]
        if isinstance(cost, Exception):
            raise cost
        return Cost(cost)


CHAIN = ("sgd_chain", ())


def said(
    seconds: Mapping[str, float],
    costs: Mapping[object, float | Exception],
    options: tuple[tuple[str, float], ...] = (),
    todo: int = 1000,
    **changes: object,
) -> list[str]:
    """Return the advice for dynamics that take these seconds per case."""
    problem = Problem(**{"gamma": 0.1, "p": 1, "k": 1, "d": 300, "Delta": 0.0, "activation": "erf", **changes})
    parts, pilots = {}, {}
    for name, cost in seconds.items():
        own = options if name == "ode" else ()
        parts[name] = DynamicsPlan(
            1, todo, 0, {"cheap": LayoutPlan(1, 1, cost / 100, 1), "dear": LayoutPlan(todo, 128, cost, 1)}
        )
        cases = tuple(Case(replace(problem, d=d), name, 0, Recording((1.0,)), options=own) for d in (problem.d, 1000))
        pilots[name] = {"dear": Pilot("dear", cases), "cheap": Pilot("cheap", cases[:1])}
    return list(advice(parts, pilots, Measured(costs)))


def test_the_chain_is_told_of_where_the_sde_dominates() -> None:
    [found] = said({"sde": 9.3, "ode": 0.7}, {CHAIN: 0.3})
    assert found == (
        "sde takes 93 % of the time: at d = 300 to 1000 sgd_chain is exact in law and 31 times cheaper here"
    )


def test_the_chain_is_told_of_where_weights_dominate_if_it_applies() -> None:
    assert "sgd_chain is exact in law and" in said({"sgd": 1.0}, {CHAIN: 0.01})[0]
    assert said({"sgd": 1.0}, {}, offset_scale=1.0) == []
    assert said({"sgd": 1.0}, {CHAIN: 0.9}) == []


def test_a_looser_tolerance_is_told_of_where_an_ode_dominates() -> None:
    loose = ("ode", (("rtol", 1e-6),))
    [found] = said({"sgd_chain": 0.01, "ode": 1.7}, {loose: 0.34}, (("rtol", 1e-10),))
    assert found == (
        "ode takes 99 % of the time, a case 170 times as long as one of sgd_chain: "
        "at d = 300 to 1000 rtol 1e-6 instead of 1e-10 is 5 times cheaper here"
    )
    [found] = said({"sgd_chain": 0.01, "ode": 1.7}, {loose: 0.34})
    assert "rtol 1e-6 instead of the default is 5 times cheaper here" in found
    [found] = said({"sgd_chain": 0.01, "ode": 1.7}, {}, (("rtol", 1e-6),))
    assert found == "ode takes 99 % of the time, a case 170 times as long as one of sgd_chain"


def test_the_chain_is_told_of_where_means_at_finite_d_dominate() -> None:
    """Such runs take seconds if p + k exceeds 4, for relu earlier; otherwise the ODE is cheaper than the chain."""
    loose = ("ode", (("finite_d", True), ("rtol", 1e-6)))
    [found] = said({"ode": 24.0}, {CHAIN: 0.1, loose: 20.0}, (("finite_d", True),), p=6, k=2)
    assert found == (
        "ode takes 100 % of the time: at d = 300 to 1000 sgd_chain has these means, over its seeds, and is "
        "240 times cheaper here"
    )
    assert said({"ode": 24.0}, {("ode", (("rtol", 1e-6),)): 20.0}) == []


@pytest.mark.parametrize("error", [DiedError(Trouble("dead")), TimeUpError(Trouble("late"))])
def test_an_alternative_that_cannot_be_measured_is_not_told_of(error: Exception) -> None:
    [found] = said({"sde": 9.3, "ode": 0.7}, {CHAIN: error})
    assert found == "sde takes 93 % of the time"


def test_short_sweeps_and_even_ones_need_no_advice() -> None:
    assert said({"sde": 0.05}, {CHAIN: 1e-6}) == []
    assert said({"sde": 1.0, "ode": 1.0, "sgd": 1.0}, {}) == []


@pytest.mark.parametrize("alternative", ALTERNATIVES, ids=lambda each: f"{each.replaced} {each.kind}")
def test_an_alternative_is_a_case_that_runs(alternative: OtherDynamics) -> None:
    problem = Problem(gamma=0.1, p=1, k=1, d=300, Delta=0.0, activation="erf")
    strict = tuple((name, value / 1e4) for name, value in alternative.options.items())
    options = (*strict, *alternative.when.items())
    other = alternative.case(Case(problem, alternative.replaced, 0, Recording((1.0,)), options=options))
    assert other is not None
    other.check()


@pytest.mark.rest
def test_a_plan_measures_what_it_advises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDE and the chain at p = 1, where only a measurement shows how much cheaper the chain is."""
    monkeypatch.setattr(module, "ADVISED_SECONDS", 0.0)
    monkeypatch.setattr(module, "LEAST_FACTOR", 1.1)
    fixed = {"p": 1, "k": 1, "gamma": 0.05, "Delta": 0.0, "activation": "square", "spherical": True}
    grid = Grid((Axis("d", (300,)),), fixed)
    sweep = Design("noisy", grid, tuple(range(64)), {"sde": Run("sde")}, Recording((4.0,)), cluster=InProcess())
    plan = write_plan(sweep, tmp_path)
    [text] = plan.advice
    assert text.startswith("sde takes 100 % of the time: at d = 300 sgd_chain is exact in law and ")
    assert text in str(plan.record())


def test_a_trial_of_a_horizon_runs_whatever_is_recorded() -> None:
    """Without the parameters of the observables that it does not record, and with the samples of its case."""
    problem = Problem(gamma=0.5, p=2, k=2, d=20, Delta=0.1, activation="erf", ridge=0.01)
    case = Case(problem, "sgd_chain", 0, Recording((0.0, 1.0), (0.5,), ("risk", "refitted_risk")))
    trial = NetworkHints().to_passage(case, 2.0)
    assert trial is not None
    trial.check()
    assert samples_key(trial) == samples_key(case)
